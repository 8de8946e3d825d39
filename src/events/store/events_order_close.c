/*
 * events/store/events_order_close.c: closing what lies behind a reader, so that nobody can append
 * in front of it any more.
 *
 * Each part of the global order, a day and a shard, has a marker: the position up to which it is
 * closed. An append checks the marker of its part in its transaction (events.h has why that is
 * enough). Days are closed one after the other for good, once a reader has seen a later one.
 *
 *  (1) `upto` is raised to a day before the list of days in front of it is read that counts; so
 *      that list does not grow any more.
 *  (2) Days are closed for good in their order, and marked as closed after all their shards are. So
 *      when a day is marked, no day before it can come or grow any more.
 *  (3) Markers and `upto` never move back: each write has the condition that it moves forward. A
 *      marker that is missing is made by the reader that closes, so that no append can make an open
 *      one.
 */
#include "events/store/order_close.h"

#include <holdfast/batch.h>
#include <holdfast/pages.h>

enum { CLOSE_ATTEMPTS = 20, CLOSE_DELAY_MS = 10, DAY_MS = 24 * 60 * 60 * 1000 };

#define LAST_DAY HF_STR("99999999")

static int text_compare(struct hf_str a, struct hf_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int cmp = len ? memcmp(a.ptr, b.ptr, len) : 0;

    return cmp ? cmp : (a.len > b.len) - (a.len < b.len);
}

static struct hf_item key_of(struct hf_scope *s, struct hf_str pk, struct hf_str sk)
{
    return HF_ITEM(s, HF_S("pk", pk), HF_S("sk", sk));
}

/* ---- closing -------------------------------------------------------------------------------- */

struct events_position hf__events_day_end(struct hf_str day)
{
    int64_t ms = 0;
    bool is_day = hf__events_day_begin(day, &ms);

    assert(is_day);
    (void)is_day;
    return hf__events_position_floor(ms + DAY_MS);
}

/* Read up to where the shards of a day are closed; a marker that is missing gives "". */
static enum hf_status markers_read(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                                   struct events_position *closed)
{
    struct hf_get *gets = hf_scope_alloc(s, store->shards * sizeof(*gets));
    struct hf_get_many_result result;

    TRY(hf_scope_built(s));
    for (uint32_t i = 0; i < store->shards; i++)
        gets[i] = (struct hf_get){.table = store->table,
                                  .key = key_of(s, hf__events_part(s, 'm', day, i), HF_STR("m"))};
    TRY(hf_scope_built(s));
    TRY(hf_get_many(s, store->db, gets, store->shards,
                    HF_OPTIONS(hf_many_options, .consistent = true), &result));
    for (uint32_t i = 0; i < store->shards; i++)
        closed[i] = position_of(hf_value_str(hf_item_get(result.items[i], HF_STR("c"))));
    return HF_OK;
}

/* (3) */
static void marker_move(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                        uint32_t shard, const struct events_position *to,
                        struct hf_update_item *update)
{
    *update =
        (struct hf_update_item){.table = store->table,
                                .key = key_of(s, hf__events_part(s, 'm', day, shard), HF_STR("m")),
                                .update = HF_STR("SET #c = :to"),
                                .condition = HF_STR("attribute_not_exists(#c) OR #c < :to"),
                                .names = HF_ITEM(s, HF_S("#c", HF_STR("c"))),
                                .values = HF_ITEM(s, HF_S(":to", position_str(to)))};
}

/* Move all that are behind. Refusals are no failure: the caller reads the markers again. */
static enum hf_status markers_move(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                                   const struct events_position *closed,
                                   const struct events_position *to)
{
    struct hf_update_item *updates = hf_scope_alloc(s, store->shards * sizeof(*updates));
    struct hf_transact_write *actions = hf_scope_alloc(s, store->shards * sizeof(*actions));
    struct hf_transact_write_items request = {.actions = actions};
    struct hf_transact_write_items_result moved;
    struct hf_update_item_result one;

    TRY(hf_scope_built(s));
    for (uint32_t i = 0; i < store->shards; i++)
        if (position_is_before(&closed[i], to)) {
            marker_move(s, store, day, i, to, &updates[request.actions_len]);
            actions[request.actions_len] =
                (struct hf_transact_write){.update = &updates[request.actions_len]};
            request.actions_len++;
        }
    TRY(hf_scope_built(s));
    assert(request.actions_len > 0); /* the caller has seen one that is behind */
    return request.actions_len == 1 ? hf_update_item(s, store->db, &updates[0], &one)
                                    : hf_transact_write_items(s, store->db, &request, &moved);
}

/* Is it worth to look at the markers again, and try what is left? */
static bool may_move_again(struct hf_scope *s, enum hf_status status)
{
    return status == HF_CONDITION || status == HF_TX_CANCELED || status == HF_TX_CONFLICT ||
           status == HF_TX_IN_PROGRESS || hf_scope_error(s)->may_have_happened;
}

enum hf_status hf__events_close_upto(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                                     const struct events_position *to,
                                     struct events_position *bound)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct events_position closed[HF_EVENTS_SHARDS_MAX];
    struct events_position least;
    enum hf_status status;

    assert(store->shards >= 1 && store->shards <= ARRAY_LEN(closed));
    for (int attempt = 1;; attempt++) {
        hf_scope_rewind(s, mark);
        TRY(markers_read(s, store, day, closed));
        least = closed[0];
        for (uint32_t i = 1; i < store->shards; i++)
            if (position_is_before(&closed[i], &least))
                least = closed[i];
        if (!position_is_before(&least, to))
            break;
        status = markers_move(s, store, day, closed, to);
        if (status == HF_OK) {
            least = *to;
            break;
        }
        if (attempt == CLOSE_ATTEMPTS || !may_move_again(s, status))
            return status;
        TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&store->env, CLOSE_DELAY_MS)));
    }
    hf_scope_rewind(s, mark);
    assert(!position_is_before(&least, to));
    if (bound)
        *bound = least;
    return HF_OK;
}

static enum hf_status upto_raise(struct hf_scope *s, struct hf_events *store, struct hf_str day)
{
    struct hf_item key = key_of(s, HF_STR("d"), HF_STR("closed")), item;
    struct hf_update_item update = {.table = store->table,
                                    .key = key,
                                    .update = HF_STR("SET #u = :day"),
                                    .condition = HF_STR("attribute_not_exists(#u) OR #u < :day"),
                                    .names = HF_ITEM(s, HF_S("#u", HF_STR("u"))),
                                    .values = HF_ITEM(s, HF_S(":day", day))};
    struct hf_str upto;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf__pattern_read(s, store->db, store->table, key, &item));
    upto = hf_value_str(hf_item_get(item, HF_STR("u")));
    if (upto.ptr && text_compare(upto, day) >= 0)
        return HF_OK;
    status =
        hf__pattern_write(s, store->db, &(struct hf_transact_write){.update = &update}, key, &item);
    return status == HF_CONDITION ? HF_OK : status;
}

/* (2): all its shards, then the mark. */
static enum hf_status day_close(struct hf_scope *s, struct hf_events *store, struct hf_str day)
{
    struct events_position end = hf__events_day_end(day);
    struct hf_item key = key_of(s, HF_STR("d"), day), item;
    struct hf_update_item update = {.table = store->table,
                                    .key = key,
                                    .update = HF_STR("SET #closed = :yes"),
                                    .condition = HF_STR("attribute_exists(#pk)"),
                                    .names = HF_ITEM(s, HF_S("#closed", HF_STR("closed")),
                                                     HF_S("#pk", HF_STR("pk"))),
                                    .values = HF_ITEM(s, HF_BOOL(":yes", true))};
    enum hf_status status;

    TRY(hf__events_close_upto(s, store, day, &end, NULL));
    TRY(hf_scope_built(s));
    status =
        hf__pattern_write(s, store->db, &(struct hf_transact_write){.update = &update}, key, &item);
    return status == HF_CONDITION ? HF_OK : status; /* the table was made again */
}

/* Days of the list, of which the key is between the two, with them; not those that are closed when
 * `open` is said. */
static struct hf_query days_query(struct hf_scope *s, struct hf_events *store, struct hf_str from,
                                  struct hf_str to, bool open)
{
    struct hf_item names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk")));

    if (open)
        names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk")),
                        HF_S("#closed", HF_STR("closed")));
    return (struct hf_query){.table = store->table,
                             .key_condition = HF_STR("#pk = :d AND #sk BETWEEN :from AND :to"),
                             .filter = open ? HF_STR("attribute_not_exists(#closed)")
                                            : (struct hf_str){0},
                             .names = names,
                             .values = HF_ITEM(s, HF_S(":d", HF_STR("d")), HF_S(":from", from),
                                               HF_S(":to", to)),
                             .consistent = HF_YES};
}

/* (1) (2) */
enum hf_status hf__events_close_before(struct hf_scope *s, struct hf_events *store,
                                       struct hf_str day)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_query query;
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    assert(hf__events_is_day(day));
    TRY(upto_raise(s, store, day));
    query = days_query(s, store, HF_STR("0"), day, true);
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_str open = hf_value_str(hf_item_get(item, HF_STR("sk")));

        if (text_compare(open, day) >= 0)
            break;
        status = hf__events_is_day(open) ? day_close(s, store, open)
                                         : hf__events_fail_day(s, store, open);
        if (status != HF_OK)
            break;
    }
    hf_pages_free(pages);
    if (status == HF_OK)
        hf_scope_rewind(s, mark);
    return status;
}

/* ---- days ----------------------------------------------------------------------------------- */

enum hf_status hf__events_day_find(struct hf_scope *s, struct hf_events *store, struct hf_str from,
                                   bool newest, struct day *day)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_query query =
        days_query(s, store, newest ? HF_STR("0") : from, newest ? from : LAST_DAY, false);
    struct hf_query_result result;
    struct hf_str text;

    *day = (struct day){0};
    query.limit = 1;
    query.forward = newest ? HF_NO : HF_YES;
    TRY(hf_scope_built(s));
    TRY(hf_query(s, store->db, &query, &result));
    if (result.items_len) {
        text = hf_value_str(hf_item_get(result.items[0], HF_STR("sk")));
        if (!hf__events_is_day(text))
            return hf__events_fail_day(s, store, text);
        memcpy(day->text, text.ptr, text.len);
        day->closed = hf_value_true(hf_item_get(result.items[0], HF_STR("closed")));
    }
    hf_scope_rewind(s, mark);
    return HF_OK;
}

/* The newest commit of a part at or before a position. */
static enum hf_status newest_in(struct hf_scope *s, struct hf_events *store, struct hf_str part,
                                const struct events_position *after,
                                const struct events_position *upto, struct events_position *newest)
{
    struct hf_query query = {
        .table = store->table,
        .key_condition = HF_STR("#pk = :part AND #sk BETWEEN :from AND :to"),
        .projection = HF_STR("#sk"),
        .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk"))),
        .values =
            HF_ITEM(s, HF_S(":part", part), HF_S(":from", hf_scope_format(s, "%s0", after->text)),
                    HF_S(":to", upto->text[0] ? position_str(upto) : HF_STR("~"))),
        .forward = HF_NO,
        .limit = 1,
        .consistent = HF_YES};
    struct hf_query_result result;

    *newest = (struct events_position){0};
    TRY(hf_scope_built(s));
    TRY(hf_query(s, store->db, &query, &result));
    if (result.items_len)
        *newest = position_of(hf_value_str(hf_item_get(result.items[0], HF_STR("sk"))));
    return HF_OK;
}

enum hf_status hf__events_newest_of(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                                    bool archived, const struct events_position *after,
                                    const struct events_position *upto,
                                    struct events_position *newest)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint32_t parts = archived ? 2 * store->shards : store->shards;

    *newest = (struct events_position){0};
    for (uint32_t i = 0; i < parts; i++) {
        char kind = i < store->shards ? 'a' : 'z';
        struct events_position one;

        TRY(newest_in(s, store, hf__events_part(s, kind, day, i % store->shards), after, upto,
                      &one));
        if (one.text[0] && position_is_before(newest, &one))
            *newest = one;
        hf_scope_rewind(s, mark);
    }
    return HF_OK;
}

enum hf_status hf__events_end(struct hf_scope *s, struct hf_events *store,
                              struct events_position *end)
{
    struct events_position none = {0};
    struct day day;
    struct hf_str from = LAST_DAY;
    int64_t ms;

    *end = none;
    for (;;) {
        char before[EVENTS_DAY_LEN + 1];

        TRY(hf__events_day_find(s, store, from, true, &day));
        if (!day.text[0])
            return HF_OK;
        TRY(hf__events_newest_of(s, store, day_str(&day), true, &none, &none, end));
        if (end->text[0])
            break;
        if (!hf__events_day_begin(day_str(&day), &ms))
            return hf__events_fail_day(s, store, day_str(&day));
        hf__events_day(ms - 1, before);
        from = hf_scope_copy(s, hf_str_of(before, EVENTS_DAY_LEN));
        TRY(hf_scope_built(s));
    }
    TRY(hf__events_close_before(s, store, day_str(&day)));
    hf__events_position_number(end, EVENTS_COMMIT_MAX - 1);
    return hf__events_close_upto(s, store, day_str(&day), end, NULL);
}
