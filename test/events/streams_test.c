/*
 * test/events/streams_test.c: info, truncation, limits, the end, the archive, the list; (n) is an
 * invariant of events_streams.c.
 */
#include "events_kit.h"

#include <stdio.h>
#include <stdlib.h>

static struct hf_event_stream_key order_of(const char *id)
{
    return (struct hf_event_stream_key){HF_STR("order"), hf_str_from(id)};
}

/* "3-7" or "none": the versions that are read. */
static struct hf_str versions_of(struct kit *k, struct hf_events *store, const char *id,
                                 bool backward)
{
    uint64_t from = 0, first = 0, last = 0, count = 0;

    do {
        struct hf_events_page page;

        CHECK_OK(hf_events_read(k->scope, store, order_of(id),
                                HF_OPTIONS(hf_events_read_options, .limit = 3, .from = from,
                                           .backward = backward),
                                &page));
        for (size_t i = 0; i < page.events_len; i++, count++) {
            first = count ? first : page.events[i].version;
            last = page.events[i].version;
            CHECK_INT(count, backward ? first - last : last - first); /* no gaps */
        }
        from = page.next;
    } while (from);
    return count ? hf_scope_format(k->scope, "%llu-%llu", (unsigned long long)first,
                                   (unsigned long long)last)
                 : HF_STR("none");
}

KIT_TEST_TX(streams, info)
{
    struct hf_events *store = open_store(k);
    struct hf_event_stream_info info;
    struct hf_appended done;

    CHECK_STATUS(HF_NOT_FOUND, hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK_ERROR(HF_NOT_FOUND, "stream \"order/1\" does not exist", k->scope);
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, &done));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK_INT(3, info.version);
    CHECK_INT(1, info.first);
    CHECK(hf_str_equal(done.position, info.position));
    CHECK_INT(32, info.hash.len);
    CHECK(!info.max_age_s && !info.max_count && !info.archived && !info.deleted);
    CHECK_STATUS(HF_INVALID,
                 hf_events_stream_info(k->scope, store,
                                       (struct hf_event_stream_key){.id = HF_STR("x")}, &info));
    hf_events_close(store);
}

KIT_TEST_TX(streams, truncated_events_are_not_read)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_event_stream_info info;
    struct hf_stored_event event;
    struct hf_events_page page;
    struct hf_appended done;

    CHECK_STATUS(HF_NOT_FOUND, hf_events_truncate(k->scope, store, ORDER("1"), 1));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 7, &done));
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 3));
    CHECK_STR("3-7", versions_of(k, store, "1", false));
    CHECK_STR("7-3", versions_of(k, store, "1", true));
    CHECK_OK(hf_events_read(k->scope, other, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .from = 2, .to = 2), &page));
    CHECK_INT(0, page.events_len);
    CHECK_OK(hf_events_stream_info(k->scope, other, ORDER("1"), &info));
    CHECK_INT(3, info.first);
    CHECK_INT(7, info.version);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, done.ids[1], &event));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[2], &event));

    /* It cannot be taken back; saying less changes nothing, and so does saying it again. */
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 2));
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 3));
    CHECK_STR("3-7", versions_of(k, store, "1", false));

    /* The limit, and one past it. */
    CHECK_STATUS(HF_INVALID, hf_events_truncate(k->scope, store, ORDER("1"), 9));
    CHECK_ERROR(HF_INVALID,
                "stream \"order/1\" is at version 7 and cannot be truncated before version 9",
                k->scope);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 8));
    CHECK_STR("none", versions_of(k, store, "1", false));
    CHECK_STR("none", versions_of(k, store, "1", true));

    /* Appends go on, and know what comes next. */
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_VERSION, 7, 2, &done));
    CHECK_STR("8-9", versions_of(k, store, "1", false));
    hf_events_close(store);
    hf_events_close(other);
}

KIT_TEST_TX(streams, limits_are_honoured_as_events_come_and_age)
{
    struct hf_events *store = open_store(k);
    struct hf_event_stream_info info;
    struct hf_appended done;

    CHECK_STATUS(HF_NOT_FOUND, hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 3));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 5, &done));
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 3));
    CHECK_STR("3-5", versions_of(k, store, "1", false));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    CHECK_STR("4-6", versions_of(k, store, "1", false));
    CHECK_STR("6-4", versions_of(k, store, "1", true));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK_INT(3, info.max_count);
    CHECK_INT(4, info.first);

    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 60, 0));
    CHECK_STR("1-6", versions_of(k, store, "1", false));
    test_advance_ms(k->t, 60 * 1000);
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    test_advance_ms(k->t, 1000);
    CHECK_STR("7-8", versions_of(k, store, "1", false));
    CHECK_STR("8-7", versions_of(k, store, "1", true));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK_INT(60, info.max_age_s);
    CHECK_INT(0, info.max_count);
    CHECK_INT(7, info.first);
    test_advance_ms(k->t, 60 * 1000);
    CHECK_STR("none", versions_of(k, store, "1", false));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK_INT(9, info.first);
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 0));
    CHECK_STR("1-8", versions_of(k, store, "1", false));
    hf_events_close(store);
}

KIT_TEST_TX(streams, the_end)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_event_stream_info info;
    struct hf_events_page page;
    struct hf_stored_event event;
    struct hf_appended done;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL)); /* it remembers */
    CHECK_STATUS(HF_CONDITION, hf_events_tombstone(k->scope, store, ORDER("1"), HF_EXPECT_NONE, 0));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" already exists (version 3)", k->scope);
    CHECK_STATUS(HF_CONDITION,
                 hf_events_tombstone(k->scope, store, ORDER("1"), HF_EXPECT_VERSION, 2));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" is at version 3, expected version 2", k->scope);
    CHECK_STATUS(HF_CONDITION,
                 hf_events_tombstone(k->scope, store, ORDER("2"), HF_EXPECT_EXISTS, 0));
    CHECK_ERROR(HF_CONDITION, "stream \"order/2\" does not exist", k->scope);
    CHECK_STATUS(HF_INVALID,
                 hf_events_tombstone(k->scope, store, ORDER("1"), (enum hf_expect)7, 3));
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("1"), HF_EXPECT_VERSION, 3));
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("1"), HF_EXPECT_VERSION, 3)); /* (1) */

    CHECK_STATUS(HF_DELETED, append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_STATUS(HF_DELETED, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_STATUS(HF_DELETED, hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, done.ids[0], &event));
    CHECK_STATUS(HF_DELETED, hf_events_truncate(k->scope, store, ORDER("1"), 2));
    CHECK_STATUS(HF_DELETED, hf_events_limit_stream(k->scope, store, ORDER("1"), 0, 2));
    CHECK_STATUS(HF_DELETED, hf_events_archive(k->scope, store, ORDER("1")));
    CHECK_STATUS(HF_DELETED, hf_events_unarchive(k->scope, store, ORDER("1")));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK(info.deleted);
    CHECK_INT(3, info.version);
    CHECK_INT(4, info.first);

    /* One that was never there can be ruled out, too. */
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("2"), HF_EXPECT_NONE, 0));
    CHECK_STATUS(HF_DELETED, append_some(k, store, ORDER("2"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("2"), &info));
    CHECK(info.deleted);
    hf_events_close(store);
    hf_events_close(other);
}

/* (1): every answer gets lost once. */
KIT_TEST_TX(streams, lost_answers_do_no_harm)
{
    struct hf_events *store = open_store(k);
    struct hf_event_stream_info info;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 5, NULL));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 3));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_events_limit_stream(k->scope, store, ORDER("1"), 7, 9));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 1);
    CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK_INT(3, info.first);
    CHECK_INT(7, info.max_age_s);
    CHECK_INT(9, info.max_count);
    CHECK(!info.archived);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("1"), HF_EXPECT_VERSION, 5));
    hf_events_close(store);
}

/* ---- the archive ---------------------------------------------------------------------------- */

/* How many commits of the stream are in the parts of that kind. */
static size_t commits_in(struct kit *k, char kind, const char *id)
{
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    size_t found = 0;

    do {
        struct hf_scan_result result;

        CHECK_OK(hf_scan(k->scope, k->db, &scan, &result));
        for (size_t i = 0; i < result.items_len; i++) {
            struct hf_str pk = hf_value_str(hf_item_get(result.items[i], HF_STR("pk")));

            found += pk.ptr[0] == kind && pk.ptr[1] == '.' &&
                     hf_str_equal(hf_value_str(hf_item_get(result.items[i], HF_STR("i"))),
                                  hf_str_from(id));
        }
        scan.start = result.last;
    } while (scan.start.ptr);
    return found;
}

static void fill(struct kit *k, struct hf_events *store, const char *id, int commits)
{
    for (int i = 0; i < commits; i++)
        CHECK_OK(append_some(k, store, order_of(id), HF_EXPECT_ANY, 0, 1 + i % 3, NULL));
}

KIT_TEST_TX(streams, archived_and_back)
{
    enum { COMMITS = 30 };
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_event_stream_info info;
    struct hf_stored_event event;
    struct hf_appended done;
    struct hf_str before;

    CHECK_STATUS(HF_NOT_FOUND, hf_events_archive(k->scope, store, ORDER("1")));
    CHECK_STATUS(HF_NOT_FOUND, hf_events_unarchive(k->scope, store, ORDER("1")));
    fill(k, store, "1", COMMITS);
    fill(k, store, "2", 2);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    before = versions_of(k, store, "1", false);
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    CHECK_INT(0, commits_in(k, 'a', "1"));
    CHECK_INT(COMMITS + 1, commits_in(k, 'z', "1"));
    CHECK_INT(2, commits_in(k, 'a', "2"));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK(info.archived);
    CHECK_STATUS(HF_IN_USE, append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_ERROR(HF_IN_USE, "stream \"order/1\" is archived", k->scope);
    CHECK(hf_str_equal(before, versions_of(k, store, "1", false)));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[0], &event));
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));

    CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));
    CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));
    CHECK_INT(COMMITS + 1, commits_in(k, 'a', "1"));
    CHECK_INT(0, commits_in(k, 'z', "1"));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[0], &event));
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_VERSION, event.version, 1, NULL));
    CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
    CHECK(!info.archived);
    hf_events_close(store);
    hf_events_close(other);
}

/* (3) of events_archive.c: whichever call is the last one, the next one goes on from there. */
KIT_TEST_TX(streams, an_archive_that_was_interrupted_is_repeated)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_REQUEST, HF_FAULT_LOST_ANSWER};
    enum { COMMITS = 27 }; /* two transactions */
    struct hf_events *store = open_store(k);
    int interrupted = 0;

    fill(k, store, "1", COMMITS);
    for (size_t kind = 0; kind < 2; kind++)
        for (int way = 0; way < 2; way++) {
            bool ended = false;

            for (uint32_t n = 0; !ended; n++) {
                struct hf_fault fault = {.kind = kinds[kind], .skip = n};

                CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
                ended = (way ? hf_events_unarchive(k->scope, store, ORDER("1"))
                             : hf_events_archive(k->scope, store, ORDER("1"))) == HF_OK;
                kit_no_faults(k);
                interrupted += !ended;
                CHECK_INT(COMMITS, commits_in(k, 'a', "1") + commits_in(k, 'z', "1"));
                /* Begin again, to be interrupted one call later. */
                CHECK_OK(way ? hf_events_unarchive(k->scope, store, ORDER("1"))
                             : hf_events_archive(k->scope, store, ORDER("1")));
                CHECK_INT(way ? COMMITS : 0, commits_in(k, 'a', "1"));
                if (!ended)
                    CHECK_OK(way ? hf_events_archive(k->scope, store, ORDER("1"))
                                 : hf_events_unarchive(k->scope, store, ORDER("1")));
            }
        }
    CHECK(interrupted >= 4 * 5);
    hf_events_close(store);
}

/* Large appends have stubs in the global order, which move. */
KIT_TEST_TX(streams, large_appends_are_archived)
{
    enum { LARGE = 150 };
    struct hf_events *store = open_store(k);
    struct hf_stored_event event;
    struct hf_appended done;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, LARGE, &done));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    CHECK_INT(0, commits_in(k, 'a', "1"));
    CHECK_INT(2, commits_in(k, 'z', "1"));
    CHECK_STR("1-151", versions_of(k, store, "1", false));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[100], &event));
    CHECK_INT(101, event.version);
    CHECK_OK(hf_events_verify(k->scope, store, NULL, NULL, NULL));
    CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));
    CHECK_INT(2, commits_in(k, 'a', "1"));
    CHECK_OK(hf_events_verify(k->scope, store, NULL, NULL, NULL));
    hf_events_close(store);
}

/* ---- the list ------------------------------------------------------------------------------- */

struct listed {
    struct kit *k;
    struct hf_str names[16];
    size_t len;
    enum hf_status then;
};

static enum hf_status list_one(struct hf_scope *s, struct hf_event_stream_key stream,
                               const struct hf_event_stream_info *info, void *user)
{
    struct listed *listed = user;

    (void)s;
    CHECK(listed->len < 16);
    listed->names[listed->len++] =
        hf_scope_format(listed->k->scope, "%.*s/%.*s@%llu%s", HF_FMT(stream.domain),
                        HF_FMT(stream.id), (unsigned long long)info->version,
                        info->deleted ? "x" : "");
    return listed->then;
}

static int by_name(const void *one, const void *other)
{
    return strcmp(((const struct hf_str *)one)->ptr, ((const struct hf_str *)other)->ptr);
}

KIT_TEST_TX(streams, all_are_listed)
{
    struct hf_events *store = open_store(k);
    struct hf_scope *s = kit_scope(k);
    struct listed listed = {.k = k};

    CHECK_OK(append_some(k, store, ORDER("a.b%/c"), HF_EXPECT_ANY, 0, 2, NULL));
    CHECK_OK(append_some(k, store, ORDER(""), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_OK(append_some(k, store, (struct hf_event_stream_key){HF_STR("x::y"), HF_STR("z")},
                         HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER(""), HF_EXPECT_ANY, 0));
    CHECK_OK(hf_events_streams(s, store, hf_str_of(NULL, 0), list_one, &listed));
    CHECK_INT(3, listed.len);
    qsort(listed.names, listed.len, sizeof(listed.names[0]), by_name);
    CHECK_STR("order/@1x", listed.names[0]);
    CHECK_STR("order/a.b%/c@2", listed.names[1]);
    CHECK_STR("x::y/z@1", listed.names[2]);
    listed.len = 0;
    CHECK_OK(hf_events_streams(s, store, HF_STR("x::y"), list_one, &listed));
    CHECK_INT(1, listed.len);
    listed.len = 0;
    listed.then = HF_CANCELED;
    CHECK_STATUS(HF_CANCELED, hf_events_streams(s, store, hf_str_of(NULL, 0), list_one, &listed));
    CHECK_INT(1, listed.len);
    hf_events_close(store);
}
