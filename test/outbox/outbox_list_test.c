/*
 * outbox/outbox_list_test.c: looking at events, counting them, retrying, discarding, cleaning up,
 * replaying; on every kind of database. (n) is an invariant of outbox_list.c or outbox_admin.c.
 */
#include <holdfast/outbox.h>

#include <stdlib.h>

#include "kit.h"

#include "outbox/outbox.h"

static struct hf_outbox *open_outbox(struct kit *k, uint32_t buckets, uint32_t history_s)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = buckets,
                                       .history_s = history_s),
                            &outbox));
    return outbox;
}

/* `count` events, with numbers from 1 on, and as many keys. */
static void emit_many(struct kit *k, struct hf_outbox *outbox, const char *type, int count)
{
    for (int i = 1; i <= count; i++) {
        struct hf_event event = {.type = hf_str_from(type),
                                 .key = hf_scope_format(k->scope, "key-%d", i),
                                 .sequence = (uint64_t)i};

        CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
        test_advance_ms(k->t, 1);
    }
}

static struct hf_event_list pending(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_pending(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 1000),
                               &list));
    CHECK(!list.next.len);
    return list;
}

static struct hf_event_list failed(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_failed(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 1000),
                              &list));
    CHECK(!list.next.len);
    return list;
}

static struct hf_event_list history(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_history(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 1000),
                               &list));
    CHECK(!list.next.len);
    return list;
}

/* All pending events become dead letters, for one of two reasons. */
static void fail_all(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_event_list list = pending(k, outbox);

    for (size_t i = 0; i < list.events_len; i++) {
        struct hf_outbox_event event = list.events[i];
        struct hf_error error = {.status = event.event.sequence % 3 ? HF_IO : HF_DENIED,
                                 .message = hf_scope_format(k->scope, "number %d is not welcome",
                                                            (int)event.event.sequence)};

        CHECK_OK(hf__outbox_note_failure(k->scope, outbox, &event, &error, 0, true));
    }
}

static void deliver_all(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_event_list list = pending(k, outbox);

    for (size_t i = 0; i < list.events_len; i++)
        CHECK_OK(hf__outbox_done(k->scope, outbox,
                                 (const struct hf_outbox_event *const[]){&list.events[i]}, 1));
}

static struct hf_outbox_event get(struct kit *k, struct hf_outbox *outbox, struct hf_str id)
{
    struct hf_outbox_event event;

    CHECK_OK(hf_outbox_get(k->scope, outbox, id, &event));
    return event;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* (1) (2) Bucket by bucket, in order, in pages of any size. */
KIT_TEST(outbox_list, what_waits_in_pages)
{
    struct hf_outbox *outbox = open_outbox(k, 5, 0);

    emit_many(k, outbox, "t", 40);
    for (uint32_t limit = 1; limit < 60; limit += 13) {
        struct hf_event_list_options options = {.size = sizeof(options), .limit = limit};
        bool seen[41] = {false};
        struct hf_event_list list;
        uint32_t bucket = 0;
        size_t total = 0;

        do {
            CHECK_OK(hf_outbox_pending(k->scope, outbox, &options, &list));
            CHECK(list.events_len == limit || !list.next.len);
            for (size_t i = 0; i < list.events_len; i++, total++) {
                CHECK(list.events[i].bucket >= bucket);
                CHECK(i == 0 || list.events[i].bucket > bucket ||
                      list.events[i].event.sequence > list.events[i - 1].event.sequence);
                CHECK(!seen[list.events[i].event.sequence]);
                seen[list.events[i].event.sequence] = true;
                bucket = list.events[i].bucket;
            }
            options.after = list.next;
        } while (list.next.len);
        CHECK_INT(40, total);
    }
    CHECK_STATUS(HF_INVALID,
                 hf_outbox_pending(k->scope, outbox,
                                   HF_OPTIONS(hf_event_list_options, .after = HF_STR("x")),
                                   &(struct hf_event_list){.events_len = 0}));
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_list, what_is_not_due_is_listed_when_asked_for)
{
    struct hf_outbox *outbox = open_outbox(k, 2, 0);
    struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_event event = {.type = HF_STR("later"), .due_us = k->t->wall_us + 3600000000};
    struct hf_outbox_event one;
    struct hf_event_list list;

    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    emit_many(k, outbox, "now", 2);
    one = pending(k, outbox).events[0];
    CHECK_OK(
        hf__outbox_note_failure(k->scope, outbox, &one, &error, k->t->wall_us + 1000000, false));
    CHECK_INT(1, pending(k, outbox).events_len);
    CHECK_OK(hf_outbox_pending(k->scope, outbox,
                               HF_OPTIONS(hf_event_list_options, .not_due_too = true), &list));
    CHECK_INT(3, list.events_len);
    CHECK_OK(hf_outbox_pending(k->scope, outbox,
                               HF_OPTIONS(hf_event_list_options, .not_due_too = true,
                                          .type = HF_STR("later")),
                               &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(event.due_us, list.events[0].event.due_us);
    test_advance_ms(k->t, 3600000);
    CHECK_INT(3, pending(k, outbox).events_len);
    hf_outbox_close(outbox);
}

/* (1) Failed ones, newest first over all buckets, in pages of any size; by cause, by type. */
KIT_TEST(outbox_list, what_failed_newest_first)
{
    struct hf_outbox *outbox = open_outbox(k, 5, 0);
    struct hf_event_list list;

    emit_many(k, outbox, "t", 30);
    fail_all(k, outbox);
    CHECK_INT(0, pending(k, outbox).events_len);
    for (int oldest = 0; oldest < 2; oldest++)
        for (uint32_t limit = 1; limit < 40; limit += 6) {
            struct hf_event_list_options options = {.size = sizeof(options),
                                                    .limit = limit,
                                                    .oldest_first = oldest};
            uint64_t expected = oldest ? 1 : 30;
            size_t total = 0;

            do {
                CHECK_OK(hf_outbox_failed(k->scope, outbox, &options, &list));
                for (size_t i = 0; i < list.events_len; i++, total++) {
                    CHECK_INT(expected, list.events[i].event.sequence);
                    CHECK_INT(HF_OUTBOX_FAILED, list.events[i].state);
                    CHECK_INT(1, list.events[i].attempts);
                    CHECK(list.events[i].ended_us);
                    expected = oldest ? expected + 1 : expected - 1;
                }
                options.after = list.next;
            } while (list.next.len);
            CHECK_INT(30, total);
        }
    CHECK_OK(hf_outbox_failed(k->scope, outbox,
                              HF_OPTIONS(hf_event_list_options,
                                         .cause = HF_STR("HF_DENIED: number # is not welcome")),
                              &list));
    CHECK_INT(10, list.events_len);
    CHECK_OK(hf_outbox_failed(k->scope, outbox,
                              HF_OPTIONS(hf_event_list_options, .type = HF_STR("other")), &list));
    CHECK_INT(0, list.events_len);
    hf_outbox_close(outbox);
}

/* (3) */
KIT_TEST(outbox_list, the_history_by_time)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 60);
    struct hf_event_list list;
    int64_t between_us;

    emit_many(k, outbox, "one", 4);
    deliver_all(k, outbox);
    test_advance_ms(k->t, 30000);
    between_us = k->t->wall_us;
    emit_many(k, outbox, "two", 3);
    deliver_all(k, outbox);
    list = history(k, outbox);
    CHECK_INT(7, list.events_len);
    CHECK_STR("two", list.events[0].event.type);
    CHECK_INT(HF_OUTBOX_PUBLISHED, list.events[0].state);
    CHECK_OK(hf_outbox_history(k->scope, outbox,
                               HF_OPTIONS(hf_event_list_options, .from_us = between_us), &list));
    CHECK_INT(3, list.events_len);
    CHECK_OK(hf_outbox_history(k->scope, outbox,
                               HF_OPTIONS(hf_event_list_options, .from_us = 1, .to_us = between_us,
                                          .type = HF_STR("one")),
                               &list));
    CHECK_INT(4, list.events_len);
    test_advance_ms(k->t, 31000);
    CHECK_INT(3, history(k, outbox).events_len); /* the others have expired */
    CHECK_STATUS(HF_NOT_FOUND, hf_outbox_get(k->scope, outbox, list.events[0].event.id,
                                             &(struct hf_outbox_event){.bucket = 0}));
    hf_outbox_close(outbox);
}

/* By id, chosen or not, and by ref, in every state. */
KIT_TEST(outbox_list, found_in_every_state)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 3600);
    struct hf_event event = {.type = HF_STR("t"), .time_us = k->t->wall_us};
    struct hf_outbox_event found;

    for (int i = 0; i < 6; i++) {
        struct hf_str id;

        outbox->transactions = i < 4 && kit_has(k, HF_FEATURE_TRANSACTIONS);
        event.id = i % 2 ? hf_scope_format(k->scope, "chosen.%%/%d", i) : hf_str_of(NULL, 0);
        CHECK_OK(
            hf_outbox_emit(k->scope, outbox, &event, 1, HF_OPTIONS(hf_emit_options, .ids = &id)));
        found = get(k, outbox, id);
        CHECK_INT(HF_OUTBOX_PENDING, found.state);
        CHECK(hf_str_equal(id, found.event.id));
        CHECK(hf_str_equal(found.ref, get(k, outbox, found.ref).ref));
        fail_all(k, outbox);
        CHECK_INT(HF_OUTBOX_FAILED, get(k, outbox, id).state);
        CHECK_INT(HF_OUTBOX_FAILED, get(k, outbox, found.ref).state);
        CHECK_OK(hf_outbox_retry(k->scope, outbox, &id, 1, NULL));
        deliver_all(k, outbox);
        CHECK_INT(HF_OUTBOX_PUBLISHED, get(k, outbox, id).state);
        CHECK_INT(HF_OUTBOX_PUBLISHED, get(k, outbox, found.ref).state);
    }
    CHECK_STATUS(HF_NOT_FOUND, hf_outbox_get(k->scope, outbox, HF_STR("nobody"), &found));
    CHECK(!found.item.ptr);
    CHECK(strstr(hf_scope_error_text(k->scope), "there is no event nobody in"));
    CHECK_STATUS(HF_INVALID, hf_outbox_get(k->scope, outbox, HF_STR(""), &found));
    hf_outbox_close(outbox);
}

/* ---- counting ------------------------------------------------------------------------------- */

KIT_TEST(outbox_list, statistics)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 3600);
    struct hf_event event = {.type = HF_STR("later"), .due_us = k->t->wall_us + 3600000000};
    struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_outbox_stats stats;
    struct hf_outbox_event one;

    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK(stats.whole && !stats.pending && !stats.oldest_due_ms && !stats.causes_len);
    emit_many(k, outbox, "t", 5);
    deliver_all(k, outbox);
    emit_many(k, outbox, "t", 12);
    fail_all(k, outbox);
    test_advance_ms(k->t, 1000);
    emit_many(k, outbox, "t", 7);
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    one = pending(k, outbox).events[6];
    CHECK_OK(
        hf__outbox_note_failure(k->scope, outbox, &one, &error, k->t->wall_us + 9000000, false));
    test_advance_ms(k->t, 500);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK(stats.whole);
    CHECK_INT(8, stats.pending);
    CHECK_INT(6, stats.due);
    CHECK_INT(1, stats.scheduled);
    CHECK_INT(1, stats.retrying);
    CHECK_INT(12, stats.failed);
    CHECK_INT(5, stats.published);
    CHECK_INT(507, stats.oldest_due_ms);
    CHECK(stats.oldest_failed_ms >= 1500 && stats.oldest_failed_ms < 3000);
    CHECK(stats.fullest >= 3 && stats.fullest <= 8);
    CHECK_INT(2, stats.causes_len);
    CHECK_STR("HF_IO: number # is not welcome", stats.causes[0].cause);
    CHECK_INT(8, stats.causes[0].count);
    CHECK_INT(4, stats.causes[1].count);
    CHECK(strstr(hf_scope_copy(k->scope, stats.causes[1].example).ptr, "is not welcome"));
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 10, &stats));
    CHECK(!stats.whole);
    CHECK_INT(10, stats.pending + stats.failed + stats.published);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 26, &stats));
    CHECK_INT(25, stats.pending + stats.failed + stats.published);
    hf_outbox_close(outbox);
}

/* (4) More causes than are told apart are one. */
KIT_TEST(outbox_list, many_causes)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_event_list list;
    struct hf_outbox_stats stats;
    uint64_t sum = 0;

    emit_many(k, outbox, "t", 110);
    list = pending(k, outbox);
    for (size_t i = 0; i < list.events_len; i++) {
        struct hf_outbox_event event = list.events[i];
        const char letters[] = {(char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        struct hf_error error = {.status = HF_IO, .message = hf_str_from(letters)};

        CHECK_OK(hf__outbox_note_failure(k->scope, outbox, &event, &error, 0, true));
    }
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(110, stats.failed);
    CHECK_INT(100, stats.causes_len);
    CHECK_STR("other causes", stats.causes[0].cause);
    CHECK_INT(11, stats.causes[0].count);
    for (size_t i = 0; i < stats.causes_len; i++)
        sum += stats.causes[i].count;
    CHECK_INT(110, sum);
    hf_outbox_close(outbox);
}

/* Pages of the database end at a megabyte: all of them are followed. */
KIT_TEST(outbox_list, large_events_are_on_many_pages)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 3600);
    char *text = malloc(300000);
    struct hf_event event = {.type = HF_STR("t"), .payload = hf_bytes_of(text, 300000)};
    struct hf_outbox_stats stats;
    uint64_t done;

    memset(text, 'x', 300000);
    for (int i = 0; i < 10; i++)
        CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    CHECK_INT(10, pending(k, outbox).events_len);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(10, stats.pending);
    fail_all(k, outbox);
    CHECK_INT(10, failed(k, outbox).events_len);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, &done));
    CHECK_INT(10, done);
    deliver_all(k, outbox);
    CHECK_INT(10, history(k, outbox).events_len);
    CHECK_OK(hf_outbox_cleanup(k->scope, outbox, k->t->wall_us + 1, &done));
    CHECK_INT(10, done);
    CHECK_INT(0, history(k, outbox).events_len);
    free(text);
    hf_outbox_close(outbox);
}

/* ---- by hand -------------------------------------------------------------------------------- */

/* (1) (4) Failed ones wait again, in their place, as if nothing had been. */
KIT_TEST(outbox_admin, failed_ones_are_tried_again)
{
    struct hf_outbox *outbox = open_outbox(k, 2, 3600);
    struct hf_str ids[6];
    struct hf_event_list list;
    uint64_t done;

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
        outbox->transactions = !without;
        emit_many(k, outbox, "t", 3);
        fail_all(k, outbox);
        emit_many(k, outbox, "t", 1);
        deliver_all(k, outbox);
        list = failed(k, outbox);
        CHECK_INT(3, list.events_len);
        for (int i = 0; i < 3; i++)
            ids[i] = list.events[i].event.id;
        ids[3] = HF_STR("nobody");
        ids[4] = history(k, outbox).events[0].event.id;
        ids[5] = ids[0]; /* it waits by then */
        kit_fault(k, HF_FAULT_LOST_ANSWER, without ? "PutItem" : "TransactWriteItems", 1);
        CHECK_STATUS(HF_NOT_FOUND, hf_outbox_retry(k->scope, outbox, ids, 6, &done));
        CHECK(strstr(hf_scope_error_text(k->scope), "nobody"));
        kit_no_faults(k);
        CHECK_INT(3, done);
        CHECK_INT(0, failed(k, outbox).events_len);
        list = pending(k, outbox);
        CHECK_INT(3, list.events_len);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(0, list.events[i].attempts);
            CHECK_INT(HF_OK, list.events[i].error);
            CHECK(!list.events[i].error_text.ptr && !list.events[i].ended_us);
        }
        CHECK_INT(HF_OUTBOX_PUBLISHED, get(k, outbox, ids[4]).state);
        CHECK_STATUS(HF_NOT_FOUND, /* no ghosts */
                     hf_outbox_get(k->scope, outbox, ids[3], &(struct hf_outbox_event){0}));
        deliver_all(k, outbox);
    }
    hf_outbox_close(outbox);
}

/* One that waits for its next attempt does not any more. */
KIT_TEST(outbox_admin, a_waiting_one_is_hurried)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_outbox_event event;
    uint64_t done;

    emit_many(k, outbox, "t", 1);
    event = pending(k, outbox).events[0];
    CHECK_OK(
        hf__outbox_note_failure(k->scope, outbox, &event, &error, k->t->wall_us + 9000000, false));
    CHECK_INT(0, pending(k, outbox).events_len);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_outbox_retry(k->scope, outbox, &event.ref, 1, &done));
    CHECK_INT(1, done);
    CHECK_INT(1, pending(k, outbox).events_len);
    CHECK_INT(1, pending(k, outbox).events[0].attempts);
    CHECK_OK(hf_outbox_retry(k->scope, outbox, &event.ref, 1, &done));
    CHECK_INT(0, done);
    hf_outbox_close(outbox);
}

/* What a crash without transactions leaves behind, in p and in f, is put right. */
KIT_TEST(outbox_admin, what_is_there_twice_is_put_right)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    uint64_t done;

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
        struct hf_put_item put = {.table = k->table};

        outbox->transactions = !without;
        emit_many(k, outbox, "t", 1);
        put.item = pending(k, outbox).events[0].item;
        fail_all(k, outbox);
        CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
        CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, &done));
        CHECK_INT(1, done);
        CHECK_INT(0, failed(k, outbox).events_len);
        CHECK_INT(1, pending(k, outbox).events_len);
        deliver_all(k, outbox);
    }
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_admin, all_of_a_kind)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 0);
    uint64_t done;

    emit_many(k, outbox, "t", 120);
    fail_all(k, outbox);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox,
                                 HF_OPTIONS(hf_event_list_options, .limit = 5,
                                            .cause = HF_STR("HF_DENIED: number # is not welcome")),
                                 &done));
    CHECK_INT(5, done);
    CHECK_INT(3, pending(k, outbox).events[0].event.sequence % 3 + 3); /* only those */
    CHECK_OK(
        hf_outbox_discard_all(k->scope, outbox,
                              HF_OPTIONS(hf_event_list_options,
                                         .cause = HF_STR("HF_DENIED: number # is not welcome")),
                              &done));
    CHECK_INT(35, done);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, &done));
    CHECK_INT(80, done);
    CHECK_INT(85, pending(k, outbox).events_len);
    CHECK_INT(0, failed(k, outbox).events_len);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, NULL));
    hf_outbox_close(outbox);
}

/* (2) */
KIT_TEST(outbox_admin, discarded_for_good)
{
    struct hf_outbox *outbox = open_outbox(k, 2, 3600);
    struct hf_str ids[4];
    uint64_t done;

    emit_many(k, outbox, "t", 1);
    ids[0] = pending(k, outbox).events[0].ref;
    fail_all(k, outbox);
    emit_many(k, outbox, "t", 1);
    ids[1] = pending(k, outbox).events[0].ref;
    deliver_all(k, outbox);
    emit_many(k, outbox, "t", 2);
    ids[2] = pending(k, outbox).events[0].ref;
    ids[3] = HF_STR("nobody");
    kit_fault(k, HF_FAULT_LOST_ANSWER, "DeleteItem", 1);
    CHECK_STATUS(HF_NOT_FOUND, hf_outbox_discard(k->scope, outbox, ids, 4, &done));
    CHECK_INT(2, done); /* what is published is not theirs to discard */
    CHECK(hf_str_equal(ids[1], history(k, outbox).events[0].ref));
    CHECK_INT(1, pending(k, outbox).events_len);
    CHECK_INT(0, failed(k, outbox).events_len);
    hf_outbox_close(outbox);
}

/* (3) Only what was published, and long enough ago. */
KIT_TEST(outbox_admin, cleaning_up_touches_nothing_else)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 36000);
    int64_t between_us;
    uint64_t done;

    emit_many(k, outbox, "t", 40);
    deliver_all(k, outbox);
    test_advance_ms(k->t, 1000);
    between_us = k->t->wall_us;
    emit_many(k, outbox, "t", 5);
    deliver_all(k, outbox);
    emit_many(k, outbox, "t", 3);
    fail_all(k, outbox);
    emit_many(k, outbox, "t", 2);
    kit_fault(k, HF_FAULT_UNPROCESSED, "BatchWriteItem", 2);
    CHECK_OK(hf_outbox_cleanup(k->scope, outbox, between_us, &done));
    CHECK_INT(40, done);
    CHECK_INT(5, history(k, outbox).events_len);
    CHECK_OK(hf_outbox_cleanup(k->scope, outbox, INT64_MAX, NULL));
    CHECK_INT(0, history(k, outbox).events_len);
    CHECK_INT(3, failed(k, outbox).events_len);
    CHECK_INT(2, pending(k, outbox).events_len);
    hf_outbox_close(outbox);
}

/* The database removes published events, at their time; no pending event, no dead letter, nor what
 * came back. */
KIT_TEST(outbox_admin, only_what_was_published_expires)
{
    struct hf_outbox *outbox = open_outbox(k, 2, HF_OUTBOX_HISTORY_S);
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    int published = 0, others = 0;
    struct hf_scan_result all;
    struct hf_str ref;
    int64_t ended_s;

    CHECK_INT(7 * 24 * 3600, HF_OUTBOX_HISTORY_S);
    emit_many(k, outbox, "t", 4);
    deliver_all(k, outbox);
    ended_s = k->t->wall_us / 1000000;
    ref = history(k, outbox).events[0].ref;
    CHECK_OK(
        hf_outbox_replay(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 1), NULL));
    emit_many(k, outbox, "t", 3);
    fail_all(k, outbox); /* with the one that came back */
    ref = failed(k, outbox).events[0].ref;
    CHECK_OK(hf_outbox_retry(k->scope, outbox, &ref, 1, NULL));
    emit_many(k, outbox, "t", 2);
    CHECK_OK(hf_scan(k->scope, k->db, &scan, &all));
    for (size_t i = 0; i < all.items_len; i++) {
        struct hf_str pk = hf_value_str(hf_item_get(all.items[i], HF_STR("pk")));
        struct hf_value ttl = hf_item_get(all.items[i], HF_STR("ttl"));
        int64_t at_s = 0;

        if (pk.ptr[0] == 'h') {
            published++;
            CHECK(hf_value_i64(ttl, &at_s));
            CHECK(at_s >= ended_s + HF_OUTBOX_HISTORY_S - 1 &&
                  at_s <= ended_s + HF_OUTBOX_HISTORY_S + 1);
        } else if (pk.ptr[0] == 'p' || pk.ptr[0] == 'f') {
            others++;
            CHECK(!ttl.ptr);
        }
    }
    CHECK_INT(4, published); /* what comes back stays in the history, too */
    CHECK_INT(6, others);
    hf_outbox_close(outbox);
}

/* (1) The history again, with its ids; none twice. */
KIT_TEST(outbox_admin, the_history_is_replayed)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 36000);
    struct hf_event_list before, again;
    uint64_t done;

    emit_many(k, outbox, "t", 8);
    before = pending(k, outbox);
    deliver_all(k, outbox);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "PutItem", 1);
    CHECK_OK(
        hf_outbox_replay(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 3), &done));
    CHECK_INT(3, done);
    /* Those that wait already count for the limit: pages of the history can be replayed. */
    CHECK_OK(
        hf_outbox_replay(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 3), &done));
    CHECK_INT(0, done);
    CHECK_OK(hf_outbox_history(k->scope, outbox,
                               HF_OPTIONS(hf_event_list_options, .limit = 3, .oldest_first = true),
                               &again));
    CHECK_OK(hf_outbox_replay(k->scope, outbox,
                              HF_OPTIONS(hf_event_list_options, .limit = 2, .after = again.next),
                              &done));
    CHECK_INT(2, done);
    CHECK_OK(hf_outbox_replay(k->scope, outbox, NULL, &done));
    CHECK_INT(3, done);
    again = pending(k, outbox);
    CHECK_INT(8, again.events_len);
    for (size_t i = 0; i < 8; i++) {
        CHECK(hf_str_equal(before.events[i].event.id, again.events[i].event.id));
        CHECK_INT(before.events[i].event.time_us, again.events[i].event.time_us);
        CHECK_INT(0, again.events[i].ended_us);
    }
    deliver_all(k, outbox);
    CHECK_INT(8, history(k, outbox).events_len);
    hf_outbox_close(outbox);
}
