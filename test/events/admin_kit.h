/*
 * test/events/admin_kit.h: what tests of the sweep, of verify, of exports and imports have in
 * common: looking at the table itself, and all events in their order.
 */
#ifndef HF_TEST_EVENTS_ADMIN_KIT_H
#define HF_TEST_EVENTS_ADMIN_KIT_H

#include "events_kit.h"

#include "db/db.h"
#include "events/store/events.h"

#include <stdio.h>

static inline struct hf_event_stream_key order_of(const char *id)
{
    return (struct hf_event_stream_key){HF_STR("order"), hf_str_from(id)};
}

/* How many items of the table have such a partition key: all that begins like it. */
static inline size_t count_items(struct kit *k, const char *begin)
{
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    size_t found = 0;

    do {
        struct hf_scan_result result;

        CHECK_OK(hf_scan(k->scope, k->db, &scan, &result));
        for (size_t i = 0; i < result.items_len; i++) {
            struct hf_str pk = hf_value_str(hf_item_get(result.items[i], HF_STR("pk")));

            found += pk.len >= strlen(begin) && memcmp(pk.ptr, begin, strlen(begin)) == 0;
        }
        scan.start = result.last;
    } while (scan.start.ptr);
    return found;
}

static inline struct hf_item get_raw(struct kit *k, struct hf_str pk, struct hf_str sk)
{
    struct hf_get_item get = {.table = k->table,
                              .key = HF_ITEM(k->scope, HF_S("pk", pk), HF_S("sk", sk)),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    return got.item;
}

static inline void put_raw(struct kit *k, struct hf_item item)
{
    struct hf_put_item put = {.table = k->table, .item = item};

    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
}

static inline void delete_raw(struct kit *k, struct hf_str pk, struct hf_str sk)
{
    struct hf_delete_item del = {.table = k->table,
                                 .key = HF_ITEM(k->scope, HF_S("pk", pk), HF_S("sk", sk))};

    CHECK_OK(hf_delete_item(k->scope, k->db, &del, NULL));
}

/* Append with ids: "STREAM-1" and so on, from `from` on; each caused by "cause". */
static inline void append_ids(struct kit *k, struct hf_events *store, const char *stream, int from,
                              int count)
{
    struct hf_new_event *events =
        hf_scope_alloc(k->scope, (size_t)(count + 1) * sizeof(struct hf_new_event));
    struct hf_append append = {.stream = order_of(stream),
                               .events = events,
                               .events_len = (size_t)count};

    for (int i = 0; i < count; i++)
        events[i] =
            (struct hf_new_event){.id = hf_scope_format(k->scope, "%s-%d", stream, from + i),
                                  .type = HF_STR("happened"),
                                  .payload = PAYLOAD("{\"total\": 9.50}"),
                                  .causation = HF_STR("cause"),
                                  .correlation = i % 2 ? HF_STR("cause") : HF_STR("other")};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
}

/* "order/1:1 order/2:1 ...", all events in their order, archived ones too. */
static inline struct hf_str all_of(struct kit *k, struct hf_events *store)
{
    struct hf_events_reader *reader;
    struct hf_str text = HF_STR("");
    const struct hf_stored_event *events;
    size_t len;

    CHECK_OK(hf_events_reader_open(k->scope, store,
                                   HF_OPTIONS(hf_events_all_options, .archived = true), &reader));
    do {
        CHECK_OK(hf_events_reader_next(k->scope, reader, &events, &len));
        for (size_t i = 0; i < len; i++)
            text =
                hf_scope_format(k->scope, "%.*s%s%.*s/%.*s:%llu", HF_FMT(text), text.len ? " " : "",
                                HF_FMT(events[i].stream.domain), HF_FMT(events[i].stream.id),
                                (unsigned long long)events[i].version);
    } while (len);
    hf_events_reader_close(reader);
    return text;
}

/* All is well: in the streams, and in the global order. */
static inline void check_sound(struct kit *k, struct hf_events *store, uint64_t events)
{
    struct hf_events_verified verified;
    enum hf_status status = hf_events_verify(k->scope, store, NULL, NULL, &verified);

    if (status != HF_OK)
        printf("%s\n", hf_scope_error_text(k->scope));
    CHECK_OK(status);
    CHECK(!verified.bad.domain.ptr);
    CHECK_INT(events, verified.events);
}

/* ---- what others do meanwhile --------------------------------------------------------------- */

/* A database on which something happens between calls: right before one of those, behind so many. A
 * BatchGetItem finds nothing then: all that it asks for was somewhere else when it was read. */
typedef void meddle_fn(struct hf_scope *s, struct hf_events *other);
struct meddled {
    struct hf_db db;
    struct kit *k;
    struct hf_events *other; /* on the kit's own database */
    enum hf_op op;
    int behind;
    meddle_fn *fn; /* NULL: it has happened */
};

static inline enum hf_status meddled_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                          const void *request, void *response)
{
    struct meddled *m = (struct meddled *)(void *)db;
    meddle_fn *fn = m->fn;

    if (fn && op == m->op && m->behind-- == 0) {
        m->fn = NULL;
        fn(kit_scope(m->k), m->other);
        if (op == HF_OP_BATCH_GET_ITEM)
            return HF_OK;
    }
    return m->k->db->calls->call(s, m->k->db, op, request, response);
}

static inline struct hf_events *open_meddled(struct kit *k, struct meddled *m,
                                             struct hf_events *other, enum hf_op op, int behind,
                                             meddle_fn *fn)
{
    static const struct db_calls calls = {.call = meddled_call};
    struct hf_events *store;

    *m = (struct meddled){.k = k, .other = other, .op = op, .behind = behind};
    m->db.calls = &calls;
    CHECK_OK(
        hf_events_open(k->scope, &m->db, HF_OPTIONS(hf_events_options, .table = k->table), &store));
    m->fn = fn;
    return store;
}

/* Commits go from z.* to a.*, and the head says nothing of it. */
static inline void put_back_raw(struct hf_scope *s, struct hf_events *other)
{
    struct hf_scan scan = {.table = other->table, .consistent = HF_YES};
    struct hf_scan_result all;

    CHECK_OK(hf_scan(s, other->db, &scan, &all));
    for (size_t i = 0; i < all.items_len; i++) {
        struct hf_str pk = hf_value_str(hf_item_get(all.items[i], HF_STR("pk")));
        struct hf_str sk = hf_value_str(hf_item_get(all.items[i], HF_STR("sk")));
        struct hf_attr back;

        if (pk.ptr[0] != 'z')
            continue;
        back = (struct hf_attr)HF_S("pk", hf__events_part_of(s, 'a', sk));
        CHECK_OK(hf_put_item(s, other->db,
                             &(struct hf_put_item){.table = other->table,
                                                   .item = hf_item_with(s, all.items[i], &back, 1)},
                             NULL));
        CHECK_OK(hf_delete_item(s, other->db,
                                &(struct hf_delete_item){.table = other->table,
                                                         .key = HF_ITEM(s, HF_S("pk", pk),
                                                                        HF_S("sk", sk))},
                                NULL));
    }
}

#endif
