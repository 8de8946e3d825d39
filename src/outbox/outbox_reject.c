/*
 * outbox/outbox_reject.c: items that wait and cannot be read.
 *
 * Programs in other languages put events into the table, too (docs/emitting.md), and make mistakes.
 * An item that cannot be read is not skipped, as nobody would notice it, and does not block others: it
 * becomes a dead letter, with its mistake as the error.
 *
 *  (1) The dead letter has all attributes of the item except those of its delivery. If its sort key is
 *      not a seq, or is of another bucket, it gets a place that follows from its key, so that two
 *      processes that move it at once use the same place; `from` is the old key.
 *  (2) Retrying makes it pending again, like any other dead letter. If it was corrected before, it is
 *      delivered; if it was in a bucket that does not exist, it is in one that does now.
 *  (3) Once a minute buckets are searched that do not exist: those right behind the last, where a
 *      program with another number of buckets often puts events, and a few others in turn, all within
 *      21 minutes; and sort keys behind those of all events, which no relay reads. A seq begins with
 *      a zero until the year 3084.
 *  (4) The item is removed only if it is still the one that was read: each of its attributes, up to a
 *      hundred, is the same, and it has no other one of docs/emitting.md. An item that was corrected
 *      meanwhile stays, and there is no dead letter. Without transactions the item is marked first,
 *      on this condition.
 *  (5) An item without room for its new place stays where it is; one without room for its cause moves
 *      without it: outbox_item.c.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

enum {
    EVERY_MS = 60000,
    NEAR = 16,   /* buckets right behind the last, which are searched each time */
    BEYOND = 48, /* buckets behind those, of up to a thousand, which are searched each time */
    FEW = 10,
    TIME_US = 1000,
    COMPARED_MAX = 100 /* attributes: an expression has at most 300 operators and 4 KB */
};

/* The attributes of docs/emitting.md, and `put`, which changes each time that an event is retried or
 * replayed. */
static const char *const event_attrs[] = {"type",
                                          "key",
                                          "payload",
                                          "headers",
                                          "content_type",
                                          "time",
                                          "due",
                                          "sequence",
                                          "id",
                                          "source",
                                          "schema",
                                          "correlation",
                                          "causation",
                                          "aggregate",
                                          "tenant",
                                          "destination",
                                          "trace_parent",
                                          "trace_state",
                                          "aggregate_type",
                                          "urgent",
                                          "put"};

static bool is_event_attr(struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(event_attrs); i++)
        if (hf_str_equal(name, hf_str_from(event_attrs[i])))
            return true;
    return false;
}

/* The place of the dead letter (1). False: it is not the item's own place. */
static bool place_for(struct hf_scope *s, const struct hf_outbox *outbox, struct hf_item item,
                      struct outbox_place *place)
{
    struct hf_str pk = pk_of(outbox, item), sk = sk_of(outbox, item);
    int64_t time_us;

    if (hf__outbox_place_read(outbox, sk, place) &&
        hf_str_equal(pk, hf__outbox_pk(s, "p", place->bucket)))
        return true;
    if (!hf_value_i64(hf_item_get(item, HF_STR("time")), &time_us))
        time_us = 0;
    hf__outbox_place_of_id(outbox, hf_scope_format(s, "%.*s %.*s", HF_FMT(pk), HF_FMT(sk)),
                           hf_str_of(NULL, 0), time_us / TIME_US, false, place);
    return false;
}

/* A condition that is being built: placeholders by number. */
struct same {
    struct hf_scope *s;
    struct hf_attr names[COMPARED_MAX], values[COMPARED_MAX];
    size_t len, values_len;
    struct hf_str condition;
};

/* Require that the attribute has this value; value absent: that it does not exist. */
static void same_attr(struct same *same, struct hf_str name, struct hf_value value)
{
    struct hf_scope *s = same->s;
    struct hf_str number = hf_scope_format(s, "%zu", same->len);
    const char *joint = same->len ? " AND " : "";

    if (same->len == COMPARED_MAX)
        return;
    same->names[same->len++] = (struct hf_attr){.name = hf__pattern_join(s, HF_STR("#a"), number),
                                                .type = HF_TYPE_S,
                                                .text = name};
    if (!value.ptr) {
        same->condition = hf_scope_format(s, "%.*s%sattribute_not_exists(#a%.*s)",
                                          HF_FMT(same->condition), joint, HF_FMT(number));
        return;
    }
    same->values[same->values_len++] =
        (struct hf_attr){.name = hf__pattern_join(s, HF_STR(":a"), number), .value = value};
    same->condition = hf_scope_format(s, "%.*s%s#a%.*s = :a%.*s", HF_FMT(same->condition), joint,
                                      HF_FMT(number), HF_FMT(number));
}

/* (4) Delete the item if it is the one that was read. */
static struct hf_delete_item same_del(struct hf_scope *s, const struct hf_outbox *outbox,
                                      struct hf_item item)
{
    struct same same = {.s = s, .condition = HF_STR("")};
    struct hf_item_walk walk = {0};

    /* The key, so that the item has to exist; the attributes of events; and all others. */
    same_attr(&same, outbox->at.hash, hf_item_get(item, outbox->at.hash));
    for (size_t i = 0; i < ARRAY_LEN(event_attrs); i++)
        same_attr(&same, hf_str_from(event_attrs[i]),
                  hf_item_get(item, hf_str_from(event_attrs[i])));
    while (hf_item_next(item, &walk))
        if (!is_event_attr(walk.name) && !hf_str_equal(walk.name, outbox->at.hash))
            same_attr(&same, walk.name, walk.value);
    return (struct hf_delete_item){.table = outbox->table,
                                   .key = hf__outbox_key_of(s, outbox, pk_of(outbox, item),
                                                            sk_of(outbox, item)),
                                   .condition = same.condition,
                                   .names = hf_item_make(s, same.names, same.len),
                                   .values = hf_item_make(s, same.values, same.values_len)};
}

static enum hf_status item_make_dead_letter(struct hf_scope *s, struct hf_outbox *outbox,
                                            struct hf_item item, const struct hf_error *error)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct outbox_failure failure = hf__outbox_failure(s, error);
    struct hf_str pk = pk_of(outbox, item), sk = sk_of(outbox, item);
    struct outbox_place place;
    bool stays = place_for(s, outbox, item, &place);
    const struct hf_attr attrs[] = {HF_S("from",
                                         hf_scope_format(s, "%.*s %.*s", HF_FMT(pk), HF_FMT(sk))),
                                    HF_N("ended", outbox->env.wall_us(outbox->env.user)),
                                    HF_S("error", failure.name),
                                    HF_S("try", id_str(&id)),
                                    HF_S("cause", failure.cause),
                                    HF_S("error_text", failure.text)};
    struct hf_delete_item del = same_del(s, outbox, item);
    size_t first = stays ? 1 : 0;
    const struct outbox_move to = {.partition = "f",
                                   .place = &place,
                                   .more = attrs + first,
                                   .more_len = ARRAY_LEN(attrs) - first};

    TRY(hf_scope_built(s));
    return hf__outbox_make_dead_letter(s, outbox, &del, hf__outbox_moved(s, outbox, item, &to),
                                       id_str(&id));
}

void hf__outbox_reject(struct hf_scope *s, struct hf_outbox *outbox, struct hf_item item)
{
    struct hf_error error = *hf_scope_error(s);
    enum hf_status status;

    error.message = hf_scope_copy(s, error.message);
    hf__outbox_log_skipped(s, outbox);
    status = item_make_dead_letter(s, outbox, item, &error);
    if (status == HF_OK) {
        pthread_mutex_lock(&outbox->mutex);
        outbox->unreadable++;
        pthread_mutex_unlock(&outbox->mutex);
    } else if (status != HF_CONDITION) { /* the item stays, and is found again */
        hf__outbox_log_skipped(s, outbox);
    }
    hf_scope_ok(s);
}

uint64_t hf__outbox_unreadable(struct hf_outbox *outbox)
{
    uint64_t count;

    pthread_mutex_lock(&outbox->mutex);
    count = outbox->unreadable;
    pthread_mutex_unlock(&outbox->mutex);
    return count;
}

/* ---- strays --------------------------------------------------------------------------------- */

/* A few items of that bucket whose sort keys come behind `from`. */
static enum hf_status look_into(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                struct hf_str from)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_query query = {.table = outbox->table,
                             .key_condition = HF_STR("#pk = :pk AND #sk >= :from"),
                             .limit = FEW,
                             .consistent = HF_YES};
    struct hf_query_result page;

    NAMES(&h, "#pk", "#sk");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, "p", bucket)));
    VALUE(&h, HF_S(":from", from));
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    TRY(hf_query(s, outbox->db, &query, &page));
    for (size_t i = 0; i < page.items_len; i++) {
        struct hf_outbox_event event;
        enum hf_status status = hf__outbox_view(s, outbox, page.items[i], &event);

        if (status == HF_CORRUPT)
            hf__outbox_reject(s, outbox, page.items[i]);
        else
            TRY(status);
    }
    return HF_OK;
}

/* Search at most OUTBOX_LOOK_MAX buckets: one request says which of them have such items; if that
 * fails, all are read. */
static enum hf_status look_into_some(struct hf_scope *s, struct hf_outbox *outbox,
                                     const uint32_t *buckets, size_t len, struct hf_str from)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    bool shown[OUTBOX_LOOK_MAX], asked;
    struct outbox_looking look = {.buckets = buckets, .len = len, .shown = shown};

    asked = len > 1 && hf__outbox_look_behind(s, outbox, &look, from) == HF_OK;
    for (size_t i = 0; i < len; i++) {
        hf_scope_rewind(s, mark);
        if (!asked || shown[i])
            TRY(look_into(s, outbox, buckets[i], from));
    }
    hf_scope_rewind(s, mark);
    return HF_OK;
}

static enum hf_status look_through(struct hf_scope *s, struct hf_outbox *outbox, uint32_t first,
                                   uint32_t len, struct hf_str from)
{
    uint32_t end = first + len < HF_OUTBOX_BUCKETS_MAX ? first + len : HF_OUTBOX_BUCKETS_MAX;

    while (first < end) {
        uint32_t buckets[OUTBOX_LOOK_MAX];
        size_t some = 0;

        while (some < OUTBOX_LOOK_MAX && first < end)
            buckets[some++] = first++;
        TRY(look_into_some(s, outbox, buckets, some, from));
    }
    return HF_OK;
}

static enum hf_status look_around(struct hf_scope *s, struct hf_outbox *outbox, uint32_t beyond)
{
    TRY(look_through(s, outbox, 0, outbox->buckets, HF_STR("1")));
    TRY(look_through(s, outbox, outbox->buckets, NEAR, HF_STR("!")));
    return look_through(s, outbox, beyond, BEYOND, HF_STR("!"));
}

/* (3) */
void hf__outbox_find_strays(struct hf_scope *s, struct hf_outbox *outbox)
{
    int64_t now_us = hf__env_elapsed_us(&outbox->env);
    uint32_t beyond;
    bool due;

    pthread_mutex_lock(&outbox->mutex);
    due = now_us >= outbox->strays_us;
    beyond = outbox->strays_at ? outbox->strays_at : outbox->buckets + NEAR;
    if (due) {
        outbox->strays_us = now_us + (int64_t)EVERY_MS * 1000;
        outbox->strays_at = beyond + BEYOND < HF_OUTBOX_BUCKETS_MAX ? beyond + BEYOND : 0;
    }
    pthread_mutex_unlock(&outbox->mutex);
    if (due && look_around(s, outbox, beyond) != HF_OK)
        hf_scope_ok(s); /* the next search is in a minute */
}
