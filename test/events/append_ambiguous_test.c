/*
 * test/events/append_ambiguous_test.c: an append whose first try may still happen, and that is
 * refused then; (n) is an invariant of events_append.c.
 */
#include "admin_kit.h"

/* What others do between the two. */
static void archive(struct hf_scope *s, struct hf_events *other)
{
    CHECK_OK(hf_events_archive(s, other, ORDER("1")));
}

static void delete_for_good(struct hf_scope *s, struct hf_events *other)
{
    CHECK_OK(hf_events_tombstone(s, other, ORDER("1"), HF_EXPECT_ANY, 0));
}

static void append_one(struct hf_scope *s, struct hf_events *other,
                       struct hf_event_stream_key stream)
{
    struct hf_new_event event = {.type = HF_STR("faster")};
    struct hf_append append = {.stream = stream, .events = &event, .events_len = 1};

    CHECK_OK(hf_events_append(s, other, &append, 1, NULL, NULL));
}

static void append_faster(struct hf_scope *s, struct hf_events *other)
{
    append_one(s, other, ORDER("1"));
}

static void archive_and_append_other(struct hf_scope *s, struct hf_events *other)
{
    archive(s, other);
    append_one(s, other, ORDER("2"));
}

/* Append `count` events to order/1 and one to order/2; the request that would make them visible
 * gets lost, and before the next one that happens. *doubt is what the failure says. */
static enum hf_status append_meddled(struct kit *k, struct hf_events *other, meddle_fn *fn,
                                     uint64_t version, size_t count, bool *doubt)
{
    struct hf_new_event *events = hf_scope_alloc(k->scope, count * sizeof(*events));
    struct hf_append appends[] = {{.stream = ORDER("1"),
                                   .expect = HF_EXPECT_VERSION,
                                   .version = version,
                                   .events = events,
                                   .events_len = count},
                                  {.stream = ORDER("2"), .events = events, .events_len = 1}};
    uint32_t before = count > 100; /* a large one notes that it has begun, first */
    struct hf_fault fault = {.kind = HF_FAULT_LOST_REQUEST,
                             .operation = HF_STR("TransactWriteItems"),
                             .skip = before,
                             .count = 1};
    enum hf_status status;
    struct meddled m;
    struct hf_events *store =
        open_meddled(k, &m, other, HF_OP_TRANSACT_WRITE_ITEMS, 1 + (int)before, fn);

    for (size_t i = 0; i < count; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t")};
    CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
    status = hf_events_append(k->scope, store, appends, 2, NULL, NULL);
    *doubt = hf_scope_error(k->scope)->may_have_happened;
    CHECK(!m.fn);
    kit_no_faults(k);
    hf_events_close(store);
    return status;
}

static struct hf_events *open_with_two(struct kit *k)
{
    struct hf_events *store = open_store_with(k, (struct hf_events_options){.shards = 1});

    append_one(k->scope, store, ORDER("1"));
    append_one(k->scope, store, ORDER("2"));
    return store;
}

/* (3): the archive may be left again, with the head where it was: what was sent can happen then. */
KIT_TEST_TX(append_ambiguous, an_archive_leaves_it)
{
    struct hf_events *store = open_with_two(k);
    bool doubt;

    CHECK_STATUS(HF_IN_USE, append_meddled(k, store, archive, 1, 1, &doubt));
    CHECK(doubt);
    hf_events_close(store);
}

/* The same of a large append. What it has staged is given up, so that it cannot become visible;
 * only when that fails, too, it may. */
KIT_TEST_TX(append_ambiguous, a_large_one_is_given_up)
{
    struct hf_events *store = open_with_two(k);
    bool doubt;

    CHECK_STATUS(HF_IN_USE, append_meddled(k, store, archive, 1, 150, &doubt));
    CHECK(!doubt);
    CHECK_INT(0, count_items(k, "x"));
    CHECK_INT(1, count_items(k, "y"));
    hf_events_close(store);
}

/* Nothing that was sent before can happen any more. */
KIT_TEST_TX(append_ambiguous, what_cannot_happen_any_more_leaves_none)
{
    static const struct {
        meddle_fn *fn;
        uint64_t version;
        enum hf_status status;
    } cases[] = {{archive_and_append_other, 1, HF_IN_USE},
                 {append_faster, 1, HF_CONDITION},
                 {delete_for_good, 2, HF_DELETED}};
    struct hf_events *store = open_with_two(k);
    bool doubt;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(cases[i].status,
                     append_meddled(k, store, cases[i].fn, cases[i].version, 1, &doubt));
        CHECK(!doubt);
        if (cases[i].status == HF_IN_USE)
            CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));
    }
    hf_events_close(store);
}

/* A stream that is archived, and of which nothing was sent. */
KIT_TEST_TX(append_ambiguous, nothing_was_sent)
{
    struct hf_events *store = open_with_two(k);

    archive(k->scope, store);
    CHECK_STATUS(HF_IN_USE, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    hf_events_close(store);
}
