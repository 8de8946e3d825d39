/*
 * test/events/sweep_test.c: removing what nobody reads; (n) is an invariant of events_sweep.c.
 */
#include "admin_kit.h"

#include "events/store/events.h"

#include <holdfast/engine.h>
#include <holdfast/prefix.h>

enum { OLD_S = 60 };

static struct hf_events_swept sweep(struct kit *k, struct hf_events *store)
{
    struct hf_events_swept swept;

    CHECK_OK(hf_events_sweep(k->scope, store, OLD_S, &swept));
    return swept;
}

static void grow_old(struct kit *k)
{
    test_advance_ms(k->t, (OLD_S + 10) * 1000); /* large appends are a little ahead */
}

/* ---- what others do meanwhile --------------------------------------------------------------- */

/* Sweep while that happens. */
static struct hf_events_swept sweep_meddled(struct kit *k, struct hf_events *other, enum hf_op op,
                                            meddle_fn *fn)
{
    struct meddled m;
    struct hf_events *store = open_meddled(k, &m, other, op, 0, fn);
    struct hf_events_swept swept;

    CHECK_OK(hf_events_sweep(k->scope, store, OLD_S, &swept));
    CHECK(!m.fn);
    hf_events_close(store);
    return swept;
}

static void unlimit(struct hf_scope *s, struct hf_events *other)
{
    CHECK_OK(hf_events_limit_stream(s, other, ORDER("1"), 0, 0));
}

static void limit_less(struct hf_scope *s, struct hf_events *other)
{
    CHECK_OK(hf_events_limit_stream(s, other, ORDER("1"), 0, 4));
}

static void delete_it(struct hf_scope *s, struct hf_events *other)
{
    CHECK_OK(hf_events_tombstone(s, other, ORDER("1"), HF_EXPECT_ANY, 0));
}

/* (5) */
KIT_TEST_TX(sweep, what_can_be_read_again_stays)
{
    struct hf_events *store = open_store(k);
    struct hf_events_page page;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 5, NULL));
    grow_old(k);
    for (uint32_t max_age_s = 0; max_age_s < 10; max_age_s += 5) {
        CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), max_age_s, 2));
        CHECK_INT(0, sweep_meddled(k, store, HF_OP_TRANSACT_WRITE_ITEMS, unlimit).events);
        CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
        CHECK_INT(5, page.events_len);
        check_sound(k, store, 5);
    }
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 2));
    CHECK_INT(1, sweep_meddled(k, store, HF_OP_TRANSACT_WRITE_ITEMS, limit_less).events);
    check_sound(k, store, 4);
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 2));
    CHECK_INT(4, sweep_meddled(k, store, HF_OP_TRANSACT_WRITE_ITEMS, delete_it).events +
                     sweep(k, store).events);
    check_sound(k, store, 0);
    hf_events_close(store);
}

/* The same of a large append. */
KIT_TEST_TX(sweep, what_can_be_read_again_stays_if_it_is_large)
{
    struct hf_events *store = open_store(k);
    struct hf_events_page page;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 150, NULL));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, NULL));
    grow_old(k);
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 2));
    CHECK_INT(0, sweep_meddled(k, store, HF_OP_TRANSACT_WRITE_ITEMS, unlimit).events);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
    CHECK_INT(152, page.events_len);
    check_sound(k, store, 152);
    hf_events_close(store);
}

static void unarchive(struct hf_scope *s, struct hf_events *other)
{
    CHECK_OK(hf_events_unarchive(s, other, ORDER("1")));
}

/* (1): commits that are moved from where was looked last to where was looked first. */
KIT_TEST_TX(sweep, commits_that_are_moved_are_not_left)
{
    struct hf_events *store = open_store(k);

    for (int large = 0; large < 2; large++) {
        CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, large ? 150 : 5, NULL));
        CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
        CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
        CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 1));
        grow_old(k);
        CHECK_INT(large ? 151 : 5, sweep_meddled(k, store, HF_OP_BATCH_GET_ITEM, unarchive).events);
        CHECK_INT(0, count_items(k, "z."));
        CHECK_INT(1, count_items(k, "a."));
        CHECK_INT(0, count_items(k, "t."));
        check_sound(k, store, 1);
    }
    hf_events_close(store);
}

/* Events are found, and sound, while their commits are put back. */
KIT_TEST_TX(sweep, commits_that_are_moved_are_found)
{
    struct hf_events *store = open_store(k), *meddled;
    struct hf_events_verified verified;
    struct hf_stored_event event;
    struct hf_appended done;
    struct meddled m;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    meddled = open_meddled(k, &m, store, HF_OP_GET_ITEM, 1, unarchive);
    CHECK_OK(hf_events_get(k->scope, meddled, done.ids[0], &event));
    CHECK(!m.fn);
    hf_events_close(meddled);

    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    meddled = open_meddled(k, &m, store, HF_OP_GET_ITEM, 1, put_back_raw);
    CHECK_OK(hf_events_verify(k->scope, meddled, NULL, NULL, &verified));
    CHECK(!m.fn);
    CHECK_INT(2, verified.events);
    hf_events_close(meddled);
    hf_events_close(store);
}

/* ---- streams -------------------------------------------------------------------------------- */

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
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("age"), 2 * OLD_S + 15, 0));
    grow_old(k);
    CHECK_OK(append_some(k, store, ORDER("age"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_INT(3, sweep(k, store).events);
    grow_old(k);
    CHECK_INT(3, sweep(k, store).events);
    CHECK_STR("order/count:4 order/count:5 order/none:1 order/none:2 order/none:3 order/age:4",
              all_of(k, store));
    check_sound(k, store, 6);

    /* What is gone is not missed, also when the limits are gone. */
    for (int lifted = 0; lifted < 2; lifted++) {
        struct hf_events_page page;

        CHECK_OK(hf_events_read(k->scope, store, ORDER("age"), NULL, &page));
        CHECK_INT(1, page.events_len);
        CHECK_INT(4, page.events[0].version);
        CHECK_OK(hf_events_read(k->scope, store, ORDER("count"), NULL, &page));
        CHECK_INT(2, page.events_len);
        CHECK_INT(4, page.events[0].version);
        CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("count"), 0, 0));
        CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("age"), 0, 0));
    }
    hf_events_close(store);
}

KIT_TEST_TX(sweep, a_deleted_stream_leaves_its_tombstone)
{
    struct hf_events *store = open_store(k);
    struct hf_event_stream_info info;

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
    CHECK_STATUS(HF_DELETED, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
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
            CHECK_OK(hf_events_verify(k->scope, store, NULL, NULL, &verified));
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

/* ---- large appends -------------------------------------------------------------------------- */

enum { LARGE = 26 }; /* events, with four items each */

/* One append to two streams. */
static void append_large(struct kit *k, struct hf_events *store, const char *one, const char *other)
{
    struct hf_new_event events[2 * LARGE];
    struct hf_append appends[2] = {{.stream = order_of(one), .events = events, .events_len = LARGE},
                                   {.stream = order_of(other),
                                    .events = events + LARGE,
                                    .events_len = LARGE}};

    for (int i = 0; i < 2 * LARGE; i++)
        events[i] =
            (struct hf_new_event){.id = hf_scope_format(k->scope, "%s-%s-%d", one, other, i),
                                  .type = HF_STR("happened"),
                                  .payload = PAYLOAD("{}"),
                                  .causation = HF_STR("cause"),
                                  .correlation = HF_STR("other")};
    CHECK_OK(hf_events_append(k->scope, store, appends, 2, NULL, NULL));
    CHECK(count_items(k, "t.") >= 2 * LARGE); /* it is one of those */
}

static uint64_t readable(struct kit *k, struct hf_events *store, const char *id, bool backward)
{
    struct hf_events_page page;

    CHECK_OK(hf_events_read(k->scope, store, order_of(id),
                            HF_OPTIONS(hf_events_read_options, .limit = 1000, .backward = backward),
                            &page));
    return page.events_len;
}

/* (2) */
KIT_TEST_TX(sweep, large_appends_go_as_a_whole)
{
    struct hf_events *store = open_store(k);
    struct hf_stored_event event;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, NULL));
    append_large(k, store, "1", "2");
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, NULL));
    check_sound(k, store, 2 * LARGE + 4);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), LARGE));
    grow_old(k);
    CHECK_INT(2, sweep(k, store).events); /* those in front of it */
    CHECK_INT(5, readable(k, store, "1", false));
    CHECK_INT(5, readable(k, store, "1", true));
    check_sound(k, store, 2 * LARGE + 2);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), LARGE + 3));
    CHECK_INT(LARGE, sweep(k, store).events);
    CHECK_INT(2, readable(k, store, "1", false));
    CHECK_INT(2, readable(k, store, "1", true));
    CHECK_INT(LARGE, readable(k, store, "2", false));
    check_sound(k, store, LARGE + 2);
    CHECK_INT(LARGE, count_items(k, "t."));
    CHECK_INT(LARGE, count_items(k, "i."));
    CHECK_INT(2 * LARGE, count_items(k, "r."));
    CHECK_OK(hf_events_get(k->scope, store, HF_STR("1-2-26"), &event));
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, HF_STR("1-2-25"), &event));

    CHECK_OK(hf_events_archive(k->scope, store, ORDER("2")));
    check_sound(k, store, LARGE + 2);
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("2"), HF_EXPECT_ANY, 0));
    CHECK_INT(LARGE, sweep(k, store).events);
    check_sound(k, store, 2);
    CHECK_INT(0, count_items(k, "t."));
    CHECK_INT(0, count_items(k, "i."));
    CHECK_INT(0, count_items(k, "r."));
    CHECK_INT(0, count_items(k, "z."));
    CHECK_INT(1, count_items(k, "s.order.2"));
    hf_events_close(store);
}

/* (2): whichever call is the last one; only what is not there any more is not read meanwhile. */
KIT_TEST_TX(sweep, a_large_append_that_is_half_removed)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_REQUEST, HF_FAULT_LOST_ANSWER};
    struct hf_events *store = open_store(k);
    struct hf_events_swept swept;
    uint32_t step = strstr(k->t->name, "_on_memory") ? 1 : 7; /* every call once is enough */
    uint64_t left = 0;
    int interrupted = 0;

    for (size_t kind = 0; kind < 2; kind++) {
        bool ended = false;

        for (uint32_t n = 0; !ended; n += step) {
            struct hf_fault fault = {.kind = kinds[kind], .skip = n};
            const char *one = hf_scope_format(k->scope, "%zu-%u", kind, n).ptr;
            const char *other = hf_scope_format(k->scope, "%s-other", one).ptr;

            append_large(k, store, one, other);
            CHECK_OK(append_some(k, store, order_of(one), HF_EXPECT_ANY, 0, 2, NULL));
            CHECK_OK(hf_events_truncate(k->scope, store, order_of(one), LARGE + 2));
            CHECK_OK(hf_events_truncate(k->scope, store, order_of(other), LARGE + 1));
            grow_old(k);
            CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
            ended = hf_events_sweep(k->scope, store, OLD_S, &swept) == HF_OK;
            kit_no_faults(k);
            interrupted += !ended;
            CHECK_INT(1, readable(k, store, one, false));
            CHECK_INT(1, readable(k, store, one, true));
            CHECK_INT(0, readable(k, store, other, false));
            CHECK_INT(0, readable(k, store, other, true));
            all_of(k, store);
            CHECK_OK(hf_events_verify(k->scope, store, NULL, NULL, NULL));
            sweep(k, store);
            left++;
            check_sound(k, store, left);
            CHECK_INT(0, count_items(k, "t."));
            CHECK_INT(0, count_items(k, "i."));
            CHECK_INT(0, count_items(k, "r."));
            CHECK_INT(left, count_items(k, "a."));
            /* So that the next round has as much to do as this one had. */
            CHECK_OK(hf_events_tombstone(k->scope, store, order_of(one), HF_EXPECT_ANY, 0));
            sweep(k, store);
            left--;
        }
    }
    CHECK(interrupted >= (step == 1 ? 20 : 3));
    hf_events_close(store);
}

/* (3): an append that did not come to its end, at whichever call that was. */
KIT_TEST_TX(sweep, what_crashed_appends_have_left)
{
    struct hf_events *store = open_store(k);
    struct hf_events_swept swept;
    bool ended = false;
    uint64_t aside = 0;

    for (uint32_t n = 0; !ended; n++) {
        struct hf_fault fault = {.kind = HF_FAULT_LOST_REQUEST, .skip = n};
        struct hf_new_event events[LARGE];
        struct hf_append append = {.stream = ORDER("1"), .events = events, .events_len = LARGE};

        for (int i = 0; i < LARGE; i++)
            events[i] = (struct hf_new_event){.id = hf_scope_format(k->scope, "%u-%d", n, i),
                                              .type = HF_STR("happened"),
                                              .causation = HF_STR("cause"),
                                              .correlation = HF_STR("other")};
        CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
        ended = hf_events_append(k->scope, store, &append, 1, NULL, NULL) == HF_OK;
        kit_no_faults(k);
        test_advance_ms(k->t, 1000);
        CHECK_OK(hf_events_sweep(k->scope, store, OLD_S, &swept));
        CHECK_INT(0, swept.aside); /* it may be under way */
        test_advance_ms(k->t, 3600 * 1000);
        CHECK_OK(hf_events_sweep(k->scope, store, OLD_S, &swept));
        aside += swept.aside;
        CHECK_INT(0, count_items(k, "x"));
        grow_old(k);
        CHECK_OK(hf_events_sweep(k->scope, store, OLD_S, &swept));
        CHECK_INT(0, swept.aside);
        CHECK_INT(0, count_items(k, "y"));
        CHECK_INT(ended ? LARGE : 0, count_items(k, "t."));
        CHECK_INT(ended ? LARGE : 0, count_items(k, "i."));
        CHECK_INT(ended ? 2 * LARGE : 0, count_items(k, "r."));
    }
    CHECK(aside > 0);
    check_sound(k, store, LARGE);
    hf_events_close(store);
}

/* (3): a mark that comes back, long after its append became visible, does no harm. */
KIT_TEST_TX(sweep, marks_of_appends_that_are_visible)
{
    static const char *const marks[] = {"x", "y"};
    struct hf_events *store = open_store(k);
    struct hf_str large;
    struct hf_item stub;

    append_large(k, store, "1", "2");
    stub = get_raw(k, HF_STR("s.order.1"), HF_STR("0000000000000001"));
    large = hf_value_str(hf_item_get(stub, HF_STR("l")));
    for (int i = 0; i < 4; i++) {
        const char *mark = marks[i % 2];

        if (i == 2) { /* the commit that gave it its name goes */
            CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), LARGE + 1));
            grow_old(k);
            CHECK_INT(LARGE, sweep(k, store).events);
        }
        put_raw(k, HF_ITEM(k->scope, HF_S("pk", hf_str_from(mark)), HF_S("sk", large),
                           HF_N("at", 1), HF_N("n", 1), HF_N("t", 1)));
        grow_old(k);
        CHECK_INT(0, sweep(k, store).aside);
        CHECK_INT(0, sweep(k, store).aside);
        CHECK_INT(0, count_items(k, "x") + count_items(k, "y"));
        check_sound(k, store, i < 2 ? 2 * LARGE : LARGE);
        CHECK_INT(LARGE, readable(k, store, "2", false));
    }
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

        CHECK_OK(hf_blob_put(k->scope, store->blobs, hf_bytes_of(text.ptr, text.len), &digests[i]));
    }
    CHECK_INT(0, sweep(k, store).blobs); /* too young */
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("s.a.b")), HF_S("sk", HF_STR("h2")),
                       HF_M("e", HF_ITEM(k->scope, HF_S("b", digests[0])))));
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("q.other")), HF_S("sk", HF_STR("q")),
                       HF_L("deep", HF_LIST(k->scope, HF_SS("", &digests[1], 1)))));
    grow_old(k);
    CHECK_OK(
        hf_blob_put(k->scope, store->blobs, hf_bytes_of("blob 2", 6), &digests[2])); /* again */
    CHECK_OK(hf_blob_put(k->scope, store->blobs, hf_bytes_of("new", 3), &digests[4]));
    CHECK_INT(1, sweep(k, store).blobs);
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(i == 3 ? HF_NOT_FOUND : HF_OK,
                     hf_blob_has(k->scope, store->blobs, digests[i], NULL));
    grow_old(k);
    CHECK_INT(2, sweep(k, store).blobs);
    CHECK_OK(hf_blob_has(k->scope, store->blobs, digests[0], NULL));
    CHECK_OK(hf_blob_has(k->scope, store->blobs, digests[1], NULL));
    hf_events_close(store);
    hf_blobs_close(blobs);
}

static struct hf_str blob_of(struct kit *k, struct hf_events *store, const char *id)
{
    struct hf_stored_event event;

    CHECK_OK(hf_events_get(k->scope, store, hf_str_from(id), &event));
    CHECK_INT(HF_BLOB_DIGEST_LEN, event.blob.len);
    return event.blob;
}

static void append_blob(struct kit *k, struct hf_events *store, const char *stream, const char *id,
                        char content)
{
    uint8_t *bytes = hf_scope_alloc(k->scope, 5000);
    struct hf_new_event event = {.id = hf_str_from(id),
                                 .type = HF_STR("t"),
                                 .payload = hf_bytes_of(bytes, 5000)};
    struct hf_append append = {.stream = order_of(stream), .events = &event, .events_len = 1};

    memset(bytes, content, 5000);
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
}

/* The blob of an event goes after the event, unless another has the same. */
KIT_TEST_TX(sweep, blobs_of_events)
{
    struct hf_str one, both, last;
    struct hf_blobs *blobs;
    struct hf_events *store;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 1000});
    append_blob(k, store, "1", "a", 'x');
    append_blob(k, store, "1", "b", 'y');
    append_blob(k, store, "2", "c", 'y');
    append_blob(k, store, "1", "d", 'z');
    one = blob_of(k, store, "a");
    both = blob_of(k, store, "b");
    CHECK(hf_str_equal(both, blob_of(k, store, "c")));
    last = blob_of(k, store, "d");
    grow_old(k);
    CHECK_INT(0, sweep(k, store).blobs);
    check_sound(k, store, 4);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 3));
    CHECK_INT(1, sweep(k, store).blobs);
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(k->scope, store->blobs, one, NULL));
    CHECK_OK(hf_blob_has(k->scope, store->blobs, both, NULL));
    check_sound(k, store, 2);
    CHECK_OK(hf_blob_delete(k->scope, store->blobs, last));
    CHECK_STATUS(HF_CORRUPT, hf_events_verify(k->scope, store, NULL, NULL, NULL));
    CHECK_ERROR(HF_CORRUPT, "stream \"order/1\", version 3: its payload is not in the blob store",
                k->scope);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* What lies beside a database may be anybody's: each table has its own part of it. */
KIT_TEST_TX(sweep, a_blob_store_that_is_shared)
{
    struct hf_events *store = open_store(k), *other;
    struct hf_events_abilities abilities = hf_events_abilities(store);
    struct hf_str kept, others;
    struct hf_blobs *blobs, *part;

    if (!abilities.blobs) { /* it is not beside anything */
        hf_events_close(store);
        return;
    }
    CHECK_OK(hf_events_open(k->scope, k->db,
                            HF_OPTIONS(hf_events_options, .table = k->other, .blob_bytes = 1000),
                            &other));
    append_blob(k, other, "1", "a", 'x');
    kept = blob_of(k, other, "a");
    CHECK_OK(hf_blobs_open_beside(k->scope, k->db, &blobs));
    CHECK_OK(hf_blobs_part(k->scope, blobs, k->other, &part));
    CHECK_OK(hf_blob_put(k->scope, blobs, hf_bytes_of("others", 6), &others));
    test_advance_ms(k->t, 3600 * 1000);
    CHECK_INT(0, sweep(k, store).blobs);
    CHECK_OK(hf_events_tombstone(k->scope, other, ORDER("1"), HF_EXPECT_ANY, 0));
    CHECK_INT(0, sweep(k, store).blobs);
    CHECK_OK(hf_blob_has(k->scope, part, kept, NULL));
    CHECK_INT(1, sweep(k, other).blobs);
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(k->scope, part, kept, NULL));
    CHECK_OK(hf_blob_has(k->scope, blobs, others, NULL));
    hf_blobs_close(part);
    hf_blobs_close(blobs);
    hf_events_close(store);
    hf_events_close(other);
}

static struct hf_events *open_events(struct kit *k, struct hf_db *db, const char *table,
                                     struct hf_blobs *blobs)
{
    struct hf_events *store;

    CHECK_OK(hf_events_open(k->scope, db,
                            HF_OPTIONS(hf_events_options, .table = hf_str_from(table),
                                       .blobs = blobs, .blob_bytes = 1000),
                            &store));
    return store;
}

/* Two that see their tables under the same name, by prefixes, share a blob store: neither sweeps
 * what the other one has. */
TEST(sweep, prefixes_that_share_a_blob_store)
{
    struct kit k = {.t = t, .scope = hf_scope_new(test_env(t))};
    struct hf_db *dbs[2];
    struct hf_events *stores[2], *same;
    struct hf_blobs *blobs;
    struct hf_stored_event event;

    CHECK_OK(hf_blobs_open(k.scope, HF_STR("memory:"), NULL, &blobs));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_open(k.scope, HF_STR("memory:"),
                         HF_OPTIONS(hf_engine_options, .env = test_env(t)), &dbs[i]));
        CHECK_OK(hf_prefix_open(k.scope, dbs[i], hf_scope_format(k.scope, "p%d-", i), &dbs[i]));
        stores[i] = open_events(&k, dbs[i], "events", blobs);
        append_blob(&k, stores[i], "1", "a", (char)('x' + i));
    }
    grow_old(&k);
    for (int i = 0; i < 2; i++)
        CHECK_INT(0, sweep(&k, stores[i]).blobs);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_events_get(k.scope, stores[i], HF_STR("a"), &event));
        CHECK_INT(5000, event.payload.len);
        hf_events_close(stores[i]);
    }

    /* And the same table is the same, whoever looks at it through what. */
    hf_db_close(dbs[1]);
    CHECK_OK(hf_open(k.scope, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .env = test_env(t)),
                     &dbs[1]));
    stores[0] = open_events(&k, dbs[1], "p-events", NULL);
    append_blob(&k, stores[0], "1", "a", 'x');
    hf_events_close(stores[0]);
    CHECK_OK(hf_prefix_open(k.scope, dbs[1], HF_STR("p-"), &dbs[1]));
    same = open_events(&k, dbs[1], "events", NULL);
    CHECK_OK(hf_events_get(k.scope, same, HF_STR("a"), &event));
    CHECK_INT(5000, event.payload.len);
    hf_events_close(same);
    hf_blobs_close(blobs);
    hf_db_close(dbs[0]);
    hf_db_close(dbs[1]);
    hf_scope_free(k.scope);
}
