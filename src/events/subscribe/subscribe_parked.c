/*
 * events/subscribe/subscribe_parked.c: parked events of a subscription.
 *
 *     pk q.NAME   sk p.POSITION   it is parked
 *                 sk r.POSITION   it is to be handled again, and waits for the holder of the lease
 *     d, i, v     its stream and version; y its type
 *     s, x, a, t  status and text of the last failure, attempts, when
 *
 * Parking an event and moving the checkpoint past it is one transaction, and so is each way between
 * the two: an event is in one place, or was handled.
 */
#include "events/subscribe/subscribe.h"

#include <holdfast/batch.h>
#include <holdfast/pages.h>

enum { LIST = 100, LIST_MAX = 1000, LOOK = 26 };

static struct hf_str parked_sk(struct hf_scope *s, bool replay, struct hf_str position)
{
    return hf__pattern_join(s, replay ? HF_STR("r.") : HF_STR("p."), position);
}

static struct hf_str or_empty(struct hf_str text)
{
    return text.ptr ? text : HF_STR("");
}

static enum hf_status add_put(struct hf_scope *s, struct hf_events *store, struct hf_item item,
                              struct hf_tx *tx)
{
    struct hf_put_item put = {.table = store->table, .item = item};

    TRY(hf_scope_built(s));
    return hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put});
}

enum hf_status hf__parked_put(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                              const struct hf_stored_event *event, const struct hf_error *error,
                              uint32_t attempts, struct hf_tx *tx)
{
    struct hf_item item =
        HF_ITEM(s, HF_S("pk", pk), HF_S("sk", parked_sk(s, false, event->position)),
                HF_S("d", event->stream.domain), HF_S("i", or_empty(event->stream.id)),
                HF_N("v", event->version), HF_S("y", event->type), HF_N("s", error->status),
                HF_S("x", hf__pattern_text(s, or_empty(error->message), SUBSCRIPTION_ERROR_MAX)),
                HF_N("a", attempts), HF_N("t", hf_scope_env(s)->wall_us(hf_scope_env(s)->user)));

    return add_put(s, store, item, tx);
}

enum hf_status hf__sub_park(struct hf_scope *s, struct hf_subscription *sub, struct hf_str token,
                            const struct hf_stored_event *event, const struct hf_error *error,
                            uint32_t attempts, struct sub_move *move)
{
    struct hf_tx *tx;

    *move = (struct sub_move){.token = token,
                              .from = sub->written,
                              .to = hf__sub_checkpoint_at(sub, event),
                              .handled = sub->handled_count,
                              .forget = hf__suspects_forget(sub)};
    assert(attempts > 0 && error->status != HF_OK);
    TRY(hf_tx_new(s, sub->store->db, &tx));
    TRY(hf__parked_put(s, sub->store, sub->pk, event, error, attempts, tx));
    assert(hf_tx_len(tx) == 1); /* the move is the second action */
    TRY(hf__sub_move_tx(s, sub->store, sub->pk, move, tx));
    if (hf_tx_commit(s, tx, NULL) != HF_OK)
        TRY(hf__sub_move_failed(s, 1, move));
    pthread_mutex_lock(&sub->mutex);
    sub->metrics.parked++;
    pthread_mutex_unlock(&sub->mutex);
    hf__sub_notify(sub, HF_SUBSCRIPTION_PARKED, event, error);
    return HF_OK;
}

/* On the condition that it is there. */
enum hf_status hf__parked_del(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                              struct hf_str position, bool replay, struct hf_tx *tx)
{
    struct hf_delete_item del = {
        .table = store->table,
        .key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", parked_sk(s, replay, position))),
        .condition = HF_STR("attribute_exists(#pk)"),
        .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk"))),
    };

    TRY(hf_scope_built(s));
    return hf_tx_add(s, tx, &(struct hf_transact_write){.del = &del});
}

void hf__parked_view(struct hf_item item, struct hf_parked *parked)
{
    struct hf_str sk = hf_value_str(hf_item_get(item, HF_STR("sk")));
    int64_t version = 0, status = 0, attempts = 0, at = 0;

    if (sk.len < 2) /* not one of ours, and without a position */
        sk = HF_STR("p.");
    (void)hf_value_i64(hf_item_get(item, HF_STR("v")), &version);
    (void)hf_value_i64(hf_item_get(item, HF_STR("s")), &status);
    (void)hf_value_i64(hf_item_get(item, HF_STR("a")), &attempts);
    (void)hf_value_i64(hf_item_get(item, HF_STR("t")), &at);
    *parked = (struct hf_parked){
        .position = hf_str_of(sk.ptr + 2, sk.len - 2),
        .stream = {.domain = hf_value_str(hf_item_get(item, HF_STR("d"))),
                   .id = hf_value_str(hf_item_get(item, HF_STR("i")))},
        .version = (uint64_t)version,
        .type = hf_value_str(hf_item_get(item, HF_STR("y"))),
        .error = (enum hf_status)status,
        .error_text = hf_value_str(hf_item_get(item, HF_STR("x"))),
        .attempts = (uint32_t)attempts,
        .parked_us = at,
        .replay = sk.ptr[0] == 'r',
    };
}

/* Items of the subscription with sort keys between the two. */
static struct hf_query range_query(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                   struct hf_str from, struct hf_str to)
{
    return (struct hf_query){
        .table = store->table,
        .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :from AND :to"),
        .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk"))),
        .values = HF_ITEM(s, HF_S(":pk", pk), HF_S(":from", from), HF_S(":to", to)),
        .consistent = HF_YES,
    };
}

enum hf_status hf__sub_look(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            struct sub_item *view, const struct hf_parked **replays, size_t *len)
{
    struct hf_query query = range_query(s, store, pk, HF_STR("q"), HF_STR("r.~"));
    struct hf_query_result result;
    struct hf_parked *list;

    *view = (struct sub_item){0};
    *replays = NULL;
    *len = 0;
    query.limit = LOOK;
    TRY(hf_scope_built(s));
    TRY(hf_query(s, store->db, &query, &result));
    list = hf_scope_alloc(s, (result.items_len + 1) * sizeof(*list));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < result.items_len; i++) {
        struct hf_str sk = hf_value_str(hf_item_get(result.items[i], HF_STR("sk")));

        if (sk.len == 1)
            hf__sub_view(result.items[i], view);
        else if (sk.len > 2)
            hf__parked_view(result.items[i], &list[(*len)++]);
    }
    *replays = list;
    return HF_OK;
}

/* ---- for everybody -------------------------------------------------------------------------- */

enum hf_status hf_subscription_parked(struct hf_scope *s, struct hf_events *store,
                                      struct hf_str name, struct hf_str after, uint32_t limit,
                                      struct hf_parked_list *list)
{
    size_t cap = !limit ? LIST : limit < LIST_MAX ? limit : LIST_MAX;
    struct hf_parked *events = hf_scope_alloc(s, cap * sizeof(*events));
    struct hf_query query;
    struct hf_pages *pages;
    struct hf_item item;
    struct hf_str pk;
    enum hf_status status;

    *list = (struct hf_parked_list){0};
    TRY(hf__sub_pk(s, name, &pk));
    query =
        range_query(s, store, pk, after.len ? hf__pattern_join(s, after, HF_STR("0")) : HF_STR("p"),
                    HF_STR("r.~"));
    query.filter = HF_STR("attribute_exists(#y)");
    query.names =
        HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk")), HF_S("#y", HF_STR("y")));
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        if (list->events_len == cap) {
            struct hf_parked *last = &events[cap - 1];

            list->next = parked_sk(s, last->replay, last->position);
            break;
        }
        item = hf_item_copy(s, item);
        if ((status = hf_item_check(s, item)) != HF_OK)
            break;
        hf__parked_view(item, &events[list->events_len++]);
        assert(list->events_len <= cap);
    }
    hf_pages_free(pages);
    list->events = events;
    return status == HF_OK ? hf_scope_built(s) : status;
}

/* Stale holders remove nothing that their successors have parked. */
static enum hf_status parked_clear_one(struct hf_scope *s, struct hf_events *store,
                                       struct hf_str pk, struct hf_str sk, struct hf_str token)
{
    struct hf_delete_item del = {.table = store->table,
                                 .key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", sk))};
    struct hf_tx *tx;
    enum hf_status status;

    TRY(hf_tx_new(s, store->db, &tx));
    if (token.ptr)
        TRY(hf__sub_guard(s, store, pk, token, true, tx));
    TRY(hf_scope_built(s));
    TRY(hf_tx_add(s, tx, &(struct hf_transact_write){.del = &del}));
    status = hf_tx_commit(s, tx, NULL);
    if (status == HF_TX_CANCELED &&
        hf_str_equal(hf_scope_error(s)->reasons[0].code, HF_STR("ConditionalCheckFailed")))
        return hf_scope_fail(s, HF_LOST, "another process has taken over the subscription");
    return status;
}

enum hf_status hf__parked_clear(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                struct hf_str token)
{
    struct hf_query query = range_query(s, store, pk, HF_STR("p"), HF_STR("r.~"));
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_str sk = hf_value_str(hf_item_get(item, HF_STR("sk")));

        if (sk.len == 1)
            continue;
        status = parked_clear_one(s, store, pk, sk, token);
        if (status != HF_OK)
            break;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

/* One of them, to be handled again or not at all. HF_NOT_FOUND. */
static enum hf_status parked_change(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                    struct hf_str position, bool replay)
{
    struct hf_item key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", parked_sk(s, false, position)));
    struct hf_item item;
    struct hf_tx *tx;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf__pattern_read(s, store->db, store->table, key, &item));
    if (!item.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "\"%.*s\" is not parked", HF_FMT(position));
    TRY(hf_tx_new(s, store->db, &tx));
    TRY(hf__parked_del(s, store, pk, position, false, tx));
    if (replay) {
        item = hf_item_with(s, item,
                            (const struct hf_attr[]){HF_S("sk", parked_sk(s, true, position)),
                                                     HF_N("a", 0)},
                            2);
        TRY(add_put(s, store, item, tx));
    }
    status = hf_tx_commit(s, tx, NULL);
    if (status == HF_TX_CANCELED && !hf_scope_error(s)->may_have_happened)
        return hf_scope_fail(s, HF_NOT_FOUND, "\"%.*s\" is no longer parked", HF_FMT(position));
    return status;
}

static enum hf_status parked_change_all(struct hf_scope *s, struct hf_events *store,
                                        struct hf_str name, struct hf_str pk, bool replay,
                                        uint64_t *done)
{
    struct hf_str after = {0};

    do {
        struct hf_parked_list list;

        TRY(hf_subscription_parked(s, store, name, after, 0, &list));
        for (size_t i = 0; i < list.events_len; i++) {
            enum hf_status status;

            if (list.events[i].replay)
                continue;
            status = parked_change(s, store, pk, list.events[i].position, replay);
            if (status != HF_OK && status != HF_NOT_FOUND)
                return status;
            *done += status == HF_OK;
        }
        after = list.next;
    } while (after.ptr);
    return HF_OK;
}

static enum hf_status parked_change_some(struct hf_scope *s, struct hf_events *store,
                                         struct hf_str name, const struct hf_str *positions,
                                         size_t len, bool replay, uint64_t *done)
{
    uint64_t count = 0;
    struct hf_str pk, missing = {0};
    enum hf_status status = HF_OK;

    if (!done)
        done = &count;
    *done = 0;
    TRY(hf__sub_pk(s, name, &pk));
    if (!positions)
        return parked_change_all(s, store, name, pk, replay, done);
    for (size_t i = 0; i < len; i++) {
        status = parked_change(s, store, pk, positions[i], replay);
        if (status != HF_OK && status != HF_NOT_FOUND)
            return status;
        *done += status == HF_OK;
        if (status == HF_NOT_FOUND && !missing.ptr)
            missing = positions[i];
    }
    if (missing.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "\"%.*s\" is not parked", HF_FMT(missing));
    return HF_OK;
}

enum hf_status hf_subscription_replay(struct hf_scope *s, struct hf_events *store,
                                      struct hf_str name, const struct hf_str *positions,
                                      size_t len, uint64_t *done)
{
    return parked_change_some(s, store, name, positions, len, true, done);
}

enum hf_status hf_subscription_discard(struct hf_scope *s, struct hf_events *store,
                                       struct hf_str name, const struct hf_str *positions,
                                       size_t len, uint64_t *done)
{
    return parked_change_some(s, store, name, positions, len, false, done);
}
