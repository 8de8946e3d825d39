/*
 * test/events/open_test.c: several programs open a store that is new.
 */
#include "admin_kit.h"

enum { STREAMS = 20 }; /* so that what a scan finds first is not what the store says about itself */

/* A database on which others make the store and append, right before our first scan. */
struct overtaken {
    struct hf_db db;
    struct kit *k;
    bool happened;
};

static enum hf_status overtaken_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                     const void *request, void *response)
{
    struct overtaken *o = (struct overtaken *)(void *)db;

    if (op == HF_OP_SCAN && !o->happened) {
        struct hf_events *other = open_store(o->k);

        o->happened = true;
        for (int i = 0; i < STREAMS; i++) {
            struct hf_str id = hf_scope_format(o->k->scope, "%d", i);

            CHECK_OK(append_some(o->k, other, order_of(id.ptr), HF_EXPECT_NONE, 0, 1, NULL));
        }
        hf_events_close(other);
    }
    return o->k->db->calls->call(s, o->k->db, op, request, response);
}

KIT_TEST_TX(open, others_were_quicker)
{
    static const struct db_calls calls = {.call = overtaken_call};
    struct overtaken o = {.db = {.calls = &calls}, .k = k};
    struct hf_scope *s = kit_scope(k);
    struct hf_events *store;

    CHECK_OK(hf_events_open(s, &o.db, HF_OPTIONS(hf_events_options, .table = k->table), &store));
    CHECK(o.happened);
    CHECK_OK(append_some(k, store, order_of("0"), HF_EXPECT_EXISTS, 0, 1, NULL));
    hf_events_close(store);
}
