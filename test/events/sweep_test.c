/*
 * test/events/sweep_test.c: removing what nobody reads; (n) is an invariant of events_sweep.c.
 */
#include "admin_kit.h"

enum { OLD_S = 60 };

static struct hf_events_swept sweep(struct kit *k, struct hf_events *store)
{
    struct hf_events_swept swept;

    CHECK_OK(hf_events_sweep(k->scope, store, OLD_S, &swept));
    return swept;
}

static void grow_old(struct kit *k)
{
    test_advance_ms(k->t, (OLD_S + 1) * 1000);
}

KIT_TEST_TX(sweep, truncated_events_go_with_all_that_belongs_to_them)
{
    struct hf_events *store = open_store(k);
    const struct hf_stored_event *events;
    struct hf_events_page page;
    struct hf_stored_event event;
    size_t len;

    append_ids(k, store, "1", 1, 3);
    append_ids(k, store, "2", 1, 2);
    append_ids(k, store, "1", 4, 3);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 3));
    CHECK_INT(0, sweep(k, store).events); /* too young */
    grow_old(k);
    CHECK_INT(2, sweep(k, store).events);
    CHECK_INT(0, sweep(k, store).events);

    CHECK_INT(4 + 1, count_items(k, "s.order.1"));
    CHECK_INT(2 + 1, count_items(k, "s.order.2"));
    CHECK_INT(4 + 2, count_items(k, "i."));
    CHECK_INT(4 /* in "other" */ + 6 /* in "cause" */, count_items(k, "r."));
    CHECK_INT(3, count_items(k, "a."));
    CHECK_STR("order/1:3 order/2:1 order/2:2 order/1:4 order/1:5 order/1:6", all_of(k, store));
    check_sound(k, store, 6);

    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, HF_STR("1-2"), &event));
    CHECK_OK(hf_events_get(k->scope, store, HF_STR("1-3"), &event));
    CHECK_OK(hf_events_caused_by(k->scope, store, HF_STR("cause"), &events, &len));
    CHECK_INT(6, len);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(4, page.events_len);
    CHECK_INT(3, page.events[0].version);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .backward = true), &page));
    CHECK_INT(4, page.events_len);

    /* All of it, and on from there. */
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 7));
    CHECK_INT(4, sweep(k, store).events);
    CHECK_INT(1, count_items(k, "s.order.1"));
    CHECK_INT(1, count_items(k, "a."));
    check_sound(k, store, 2);
    append_ids(k, store, "1", 1, 2); /* its id is free again */
    CHECK_OK(hf_events_get(k->scope, store, HF_STR("1-1"), &event));
    CHECK_INT(7, event.version);
    CHECK_STR("order/2:1 order/2:2 order/1:7 order/1:8", all_of(k, store));
    check_sound(k, store, 4);
    hf_events_close(store);
}

KIT_TEST_TX(sweep, limits_take_what_they_hide)
{
    struct hf_events *store = open_store(k);

    CHECK_OK(append_some(k, store, ORDER("count"), HF_EXPECT_ANY, 0, 5, NULL));
    CHECK_OK(append_some(k, store, ORDER("age"), HF_EXPECT_ANY, 0, 3, NULL));
    CHECK_OK(append_some(k, store, ORDER("none"), HF_EXPECT_ANY, 0, 3, NULL));
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("count"), 0, 2));
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("age"), 2 * OLD_S, 0));
    grow_old(k);
    CHECK_OK(append_some(k, store, ORDER("age"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_INT(3, sweep(k, store).events);
    grow_old(k);
    CHECK_INT(3, sweep(k, store).events);
    CHECK_STR("order/count:4 order/count:5 order/none:1 order/none:2 order/none:3 order/age:4",
              all_of(k, store));
    check_sound(k, store, 6);
    hf_events_close(store);
}

KIT_TEST_TX(sweep, a_deleted_stream_leaves_its_tombstone)
{
    struct hf_events *store = open_store(k);
    struct hf_stream_info info;

    for (int i = 0; i < 40; i++)
        append_ids(k, store, "1", 1 + i, 1);
    append_ids(k, store, "2", 1, 2);
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("n.order.1")), HF_S("sk", HF_STR("n"))));
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("n.order.2")), HF_S("sk", HF_STR("n"))));
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("1"), HF_EXPECT_ANY, 0));
    grow_old(k);
    CHECK_INT(40, sweep(k, store).events);
    CHECK_INT(1, count_items(k, "s.order.1"));
    CHECK_INT(1, count_items(k, "n."));
    CHECK_INT(2, count_items(k, "i."));
    CHECK_INT(1, count_items(k, "a."));
    CHECK_STATUS(HF_LOST, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK(info.deleted);
    CHECK_INT(40, info.version);
    check_sound(k, store, 2);
    hf_events_close(store);
}

KIT_TEST_TX(sweep, archived_streams_are_swept_where_they_are)
{
    struct hf_events *store = open_store(k);

    append_ids(k, store, "1", 1, 3);
    append_ids(k, store, "1", 4, 3);
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 5));
    grow_old(k);
    CHECK_INT(4, sweep(k, store).events);
    CHECK_INT(1, count_items(k, "z."));
    CHECK_STR("order/1:5 order/1:6", all_of(k, store));
    check_sound(k, store, 2);
    CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));
    CHECK_STR("order/1:5 order/1:6", all_of(k, store));
    check_sound(k, store, 2);
    hf_events_close(store);
}

/* (1): whichever call is the last one, everything is sound, and the next sweep goes on. */
KIT_TEST_TX(sweep, one_that_was_interrupted_is_repeated)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_REQUEST, HF_FAULT_LOST_ANSWER};
    struct hf_events *store = open_store(k);
    struct hf_events_swept swept;
    uint64_t left = 0;
    int interrupted = 0;

    for (size_t kind = 0; kind < 2; kind++) {
        bool ended = false;

        for (uint32_t n = 0; !ended; n++) {
            struct hf_fault fault = {.kind = kinds[kind], .skip = n};
            const char *id = hf_scope_format(k->scope, "%zu-%u", kind, n).ptr;
            struct hf_events_verified verified;

            append_ids(k, store, id, 1, 4);
            append_ids(k, store, id, 5, 4);
            CHECK_OK(hf_events_truncate(k->scope, store, order_of(id), 7));
            grow_old(k);
            CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
            ended = hf_events_sweep(k->scope, store, OLD_S, &swept) == HF_OK;
            kit_no_faults(k);
            interrupted += !ended;
            CHECK_OK(hf_events_verify(k->scope, store, NULL, &verified));
            sweep(k, store);
            left += 2;
            check_sound(k, store, left);
            CHECK_INT(left, count_items(k, "i."));
            CHECK_INT(left + left / 2, count_items(k, "r."));
            CHECK_INT(left / 2, count_items(k, "a."));
        }
    }
    CHECK(interrupted >= 8);
    hf_events_close(store);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

/* What names a blob keeps it, wherever it stands; what nobody names goes when it is old enough. */
KIT_TEST_TX(sweep, blobs_that_are_named_stay)
{
    struct hf_str digests[5];
    struct hf_blobs *blobs;
    struct hf_events *store;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs});
    for (int i = 0; i < 4; i++) {
        struct hf_str text = hf_scope_format(k->scope, "blob %d", i);

        CHECK_OK(hf_blob_put(k->scope, blobs, hf_bytes_of(text.ptr, text.len), &digests[i]));
    }
    CHECK_INT(0, sweep(k, store).blobs); /* too young */
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("s.a.b")), HF_S("sk", HF_STR("h2")),
                       HF_M("e", HF_ITEM(k->scope, HF_S("b", digests[0])))));
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("q.other")), HF_S("sk", HF_STR("q")),
                       HF_L("deep", HF_LIST(k->scope, HF_SS("", &digests[1], 1)))));
    grow_old(k);
    CHECK_OK(hf_blob_put(k->scope, blobs, hf_bytes_of("blob 2", 6), &digests[2])); /* again */
    CHECK_OK(hf_blob_put(k->scope, blobs, hf_bytes_of("new", 3), &digests[4]));
    CHECK_INT(1, sweep(k, store).blobs);
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(i == 3 ? HF_NOT_FOUND : HF_OK, hf_blob_has(k->scope, blobs, digests[i], NULL));
    grow_old(k);
    CHECK_INT(2, sweep(k, store).blobs);
    CHECK_OK(hf_blob_has(k->scope, blobs, digests[0], NULL));
    CHECK_OK(hf_blob_has(k->scope, blobs, digests[1], NULL));
    hf_events_close(store);
    hf_blobs_close(blobs);
}
