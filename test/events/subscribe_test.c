/*
 * events/subscribe_test.c: subscriptions, turn by turn; (n) is an invariant of subscribe.c.
 */
#include <holdfast/subscribe.h>

#include <stdio.h>
#include <string.h>

#include "events/store/events.h"
#include "events_kit.h"

enum { LEASE_MS = 10000, DAY = 24 * 3600 * 1000 };

#define NAME HF_STR("mailer")

/* What was handed over, as types with commas; and what is to fail. */
struct seen {
    char types[400];
    size_t batches;
    const char *needs; /* events of this type have 1000 bytes */
    const char *fails; /* events of this type fail, */
    int times;         /* so often */
    int told[8];
    char told_text[200];
    struct kit *k;             /* when it stops, */
    struct hf_events *rebuild; /* tell it to start over */
};

static enum hf_status note(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct seen *seen = user;
    size_t len = strlen(seen->types);

    if (seen->fails && seen->times && hf_str_equal(event->type, hf_str_from(seen->fails))) {
        seen->times--;
        return hf_scope_fail(s, HF_IO, "%.*s is bad", HF_FMT(event->type));
    }
    if (seen->needs && hf_str_equal(event->type, hf_str_from(seen->needs)))
        CHECK_INT(1000, event->payload.len);
    snprintf(seen->types + len, sizeof(seen->types) - len, "%s%.*s", len ? "," : "",
             HF_FMT(event->type));
    return HF_OK;
}

static enum hf_status note_batch(struct hf_scope *s, const struct hf_stored_event *events,
                                 size_t len, void *user)
{
    struct seen *seen = user;
    struct seen before = *seen;

    seen->batches++;
    for (size_t i = 0; i < len; i++) {
        enum hf_status status = note(s, &events[i], user);

        if (status != HF_OK) { /* it does all or nothing */
            memcpy(seen->types, before.types, sizeof(seen->types));
            return status;
        }
    }
    return HF_OK;
}

static void told(enum hf_subscription_event what, const struct hf_stored_event *event,
                 const struct hf_error *error, void *user)
{
    struct seen *seen = user;

    (void)event;
    seen->told[what]++;
    if (what == HF_SUBSCRIPTION_STOPPED && seen->rebuild)
        CHECK_OK(hf_subscription_rebuild(seen->k->scope, seen->rebuild, NAME, (struct hf_str){0}));
    if (error->status != HF_OK)
        snprintf(seen->told_text, sizeof(seen->told_text), "%.*s", HF_FMT(error->message));
}

static struct hf_subscription *subscribe(struct kit *k, struct hf_events *store, struct seen *seen,
                                         struct hf_subscribe_options options)
{
    struct hf_subscription *sub;

    options.size = sizeof(options);
    options.no_threads = true;
    options.user = seen;
    options.on_notice = told;
    options.lease_ms = LEASE_MS;
    if (!options.batch)
        options.each = note;
    CHECK_OK(hf_subscribe(k->scope, store, NAME, &options, &sub));
    return sub;
}

static void append_type(struct kit *k, struct hf_events *store, struct hf_event_stream_key stream,
                        const char *type)
{
    struct hf_new_event event = {.type = hf_str_from(type)};
    struct hf_append append = {.stream = stream, .events = &event, .events_len = 1};

    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
}

static uint64_t drain(struct kit *k, struct hf_subscription *sub)
{
    uint64_t handled;

    CHECK_OK(hf_subscription_drain(k->scope, sub, &handled));
    return handled;
}

static struct hf_subscription_info info_of(struct kit *k, struct hf_events *store)
{
    struct hf_subscription_info info;

    CHECK_OK(hf_subscription_info(k->scope, store, NAME, &info));
    return info;
}

/* ---- handing over --------------------------------------------------------------------------- */

KIT_TEST_TX(subscribe, what_is_there_and_what_comes)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.batches = 0};
    struct hf_subscription *sub = subscribe(k, store, &seen, (struct hf_subscribe_options){0});
    struct hf_subscription_metrics metrics;
    struct hf_subscription_info info;

    CHECK_STATUS(HF_NOT_FOUND, hf_subscription_info(k->scope, store, NAME, &info));
    CHECK_INT(0, drain(k, sub));
    append_type(k, store, ORDER("1"), "a");
    append_type(k, store, ORDER("2"), "b");
    CHECK_INT(2, drain(k, sub));
    append_type(k, store, ORDER("1"), "c");
    CHECK_INT(1, drain(k, sub));
    CHECK_STR("a,b,c", hf_str_from(seen.types));

    hf_subscription_metrics(sub, &metrics);
    CHECK_INT(HF_SUBSCRIPTION_LIVE, metrics.state);
    CHECK_INT(3, metrics.handled);
    CHECK_INT(0, metrics.lag_ms);
    CHECK_INT(1, metrics.fence);
    CHECK_INT(1, hf_subscription_fence(sub));
    info = info_of(k, store);
    CHECK_INT(3, info.handled);
    CHECK_INT(HF_POSITION_LEN, info.checkpoint.len);
    CHECK_INT(1, info.fence);
    CHECK(info.owner.len > 0);

    CHECK_OK(hf_subscription_stop(k->scope, sub));
    CHECK(!info_of(k, store).owner.ptr);
    hf_subscription_close(sub);

    /* Another life goes on from there. */
    append_type(k, store, ORDER("1"), "d");
    sub = subscribe(k, store, &seen, (struct hf_subscribe_options){0});
    CHECK_INT(1, drain(k, sub));
    CHECK_STR("a,b,c,d", hf_str_from(seen.types));
    CHECK_INT(2, hf_subscription_fence(sub));
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(subscribe, start_positions_and_filters)
{
    struct hf_events *store = open_store(k);
    struct hf_events_page page;
    struct {
        struct hf_subscribe_options options;
        const char *expected;
    } cases[] = {
        {{.start = HF_START_FIRST}, "a,b,x,c,new,x"},
        {{.start = HF_START_END}, "new,x"},
        {{.start = HF_START_AFTER}, "x,c,new,x"},
        {{.start = HF_START_TIME}, "c,new,x"},
        {{.domain = HF_STR("item")}, "x,x"},
        {{.type = HF_STR("n*"), .start = HF_START_END}, "new"},
        {{.stream = ORDER("1")}, "a,b,c,new"},
        {{.stream = ORDER("1"), .start = HF_START_END}, "new"},
        {{.stream = ORDER("1"), .start = HF_START_AFTER, .after = HF_STR("2")}, "c,new"},
        {{.stream = ORDER("none")}, ""},
    };
    int64_t from_us;

    append_type(k, store, ORDER("1"), "a");
    append_type(k, store, ORDER("1"), "b");
    append_type(k, store, (struct hf_event_stream_key){HF_STR("item"), HF_STR("")}, "x");
    test_advance_ms(k->t, DAY);
    from_us = k->t->wall_us;
    append_type(k, store, ORDER("1"), "c");
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    cases[2].options.after = hf_scope_copy(k->scope, page.events[1].position);
    cases[3].options.from_us = from_us;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct seen seen = {.batches = 0};
        struct hf_subscription *sub = subscribe(k, store, &seen, cases[i].options);

        if (i == 0) {
            struct hf_subscription *end;

            CHECK_OK(hf_subscription_forget(k->scope, store, NAME));
            /* What comes is the same for all: those that start at the end have looked before. */
            for (size_t j = 1; j < sizeof(cases) / sizeof(cases[0]); j++)
                if (cases[j].options.start == HF_START_END) {
                    struct seen none = {.batches = 0};

                    cases[j].options.each = note;
                    cases[j].options.size = sizeof(cases[j].options);
                    cases[j].options.no_threads = true;
                    cases[j].options.user = &none;
                    CHECK_OK(hf_subscribe(k->scope, store, hf_scope_format(k->scope, "end%zu", j),
                                          &cases[j].options, &end));
                    CHECK_INT(0, drain(k, end));
                    hf_subscription_close(end);
                }
            append_type(k, store, ORDER("1"), "new");
            append_type(k, store, (struct hf_event_stream_key){HF_STR("item"), HF_STR("")}, "x");
        }
        if (cases[i].options.start == HF_START_END) {
            hf_subscription_close(sub);
            cases[i].options.each = note;
            cases[i].options.user = &seen;
            CHECK_OK(hf_subscribe(k->scope, store, hf_scope_format(k->scope, "end%zu", i),
                                  &cases[i].options, &sub));
        }
        drain(k, sub);
        CHECK_STR(cases[i].expected, hf_str_from(seen.types));
        hf_subscription_close(sub);
        CHECK_OK(hf_subscription_forget(k->scope, store, NAME));
    }
    hf_events_close(store);
}

/* A deleted stream has no events and no end, which is nobody's lease. */
KIT_TEST_TX(subscribe, the_end_of_a_deleted_stream)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.batches = 0};
    struct hf_subscription *sub;

    append_type(k, store, ORDER("7"), "a");
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("7"), HF_EXPECT_ANY, 0));
    sub = subscribe(k, store, &seen,
                    (struct hf_subscribe_options){.start = HF_START_END, .stream = ORDER("7")});
    CHECK_INT(0, drain(k, sub));
    CHECK_INT(0, seen.told[HF_SUBSCRIPTION_LOST]);
    CHECK_STR("0000000000000000", info_of(k, store).checkpoint);
    hf_subscription_close(sub);
    hf_events_close(store);
}

/* An empty store, then a crash: the end was noted, so what came in between is not left out. */
KIT_TEST_TX(subscribe, the_end_of_an_empty_store_is_kept)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.batches = 0};

    for (int stream = 0; stream < 2; stream++) {
        struct hf_subscribe_options options = {.start = HF_START_END};
        struct hf_subscription *sub;

        if (stream)
            options.stream = ORDER("7");
        seen.types[0] = '\0';
        sub = subscribe(k, store, &seen, options);
        CHECK_INT(0, drain(k, sub));
        hf_subscription_close(sub);
        append_type(k, store, ORDER("7"), "a");
        sub = subscribe(k, store, &seen, options);
        drain(k, sub);
        CHECK_STR("a", hf_str_from(seen.types));
        hf_subscription_close(sub);
        CHECK_OK(hf_subscription_forget(k->scope, store, NAME));
        CHECK_OK(hf_events_reset(k->scope, store));
    }
    hf_events_close(store);
}

/* The checkpoint moves past what the filter leaves out. */
KIT_TEST_TX(subscribe, checkpoint_passes_what_is_left_out)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.batches = 0};
    struct hf_subscription *sub =
        subscribe(k, store, &seen, (struct hf_subscribe_options){.type = HF_STR("wanted")});
    struct hf_str first;

    append_type(k, store, ORDER("1"), "wanted");
    CHECK_INT(1, drain(k, sub));
    first = info_of(k, store).checkpoint;
    append_type(k, store, ORDER("1"), "other");
    CHECK_INT(0, drain(k, sub));
    CHECK(!hf_str_equal(first, info_of(k, store).checkpoint));
    CHECK_INT(1, info_of(k, store).handled);
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(subscribe, batches)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "t5", .times = 2};
    struct hf_subscription *sub =
        subscribe(k, store, &seen,
                  (struct hf_subscribe_options){.batch = note_batch, .batch_max = 4});

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 9, NULL));
    CHECK_INT(9, drain(k, sub));
    CHECK_STR("t1,t2,t3,t4,t5,t6,t7,t8,t9", hf_str_from(seen.types));
    /* 4 at once; 4 that fail; t5 that fails alone, and does not; t6, t7, t8 alone; t9 */
    CHECK_INT(8, seen.batches);
    CHECK_INT(1, seen.told[HF_SUBSCRIPTION_FAILED]);
    hf_subscription_close(sub);
    hf_events_close(store);
}

/* ---- failing -------------------------------------------------------------------------------- */

KIT_TEST_TX(subscribe, tried_again_with_backoff)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "b", .times = 3};
    struct hf_subscription *sub =
        subscribe(k, store, &seen,
                  (struct hf_subscribe_options){.backoff_ms = 1000, .max_attempts = 4});
    int64_t before_us;
    uint32_t wait_ms;

    append_type(k, store, ORDER("1"), "a");
    append_type(k, store, ORDER("1"), "b");
    append_type(k, store, ORDER("1"), "c");
    before_us = k->t->elapsed_us;
    CHECK_INT(3, drain(k, sub));
    CHECK_STR("a,b,c", hf_str_from(seen.types));
    CHECK_INT(3, seen.told[HF_SUBSCRIPTION_FAILED]);
    CHECK_STR("b is bad", hf_str_from(seen.told_text));
    /* Half of 1, 2 and 4 seconds at least, all of them at most. */
    CHECK(k->t->elapsed_us - before_us >= 3500000 && k->t->elapsed_us - before_us < 8000000);

    /* While it waits nothing is handed over, and what was is in the checkpoint. */
    seen.fails = "e";
    seen.times = 1;
    append_type(k, store, ORDER("1"), "d");
    append_type(k, store, ORDER("1"), "e");
    while (!seen.types[6] || seen.times)
        CHECK_OK(hf_subscription_step(k->scope, sub, &wait_ms));
    CHECK_OK(hf_subscription_step(k->scope, sub, &wait_ms));
    CHECK(wait_ms > 0 && wait_ms <= 1000);
    CHECK_INT(4, info_of(k, store).handled);
    CHECK_STR("a,b,c,d", hf_str_from(seen.types));
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(subscribe, stops_in_front_of_what_cannot_be_handled)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "b", .times = 4};
    struct hf_subscription *sub =
        subscribe(k, store, &seen, (struct hf_subscribe_options){.max_attempts = 3});
    struct hf_subscription_metrics metrics;
    uint32_t wait_ms;

    append_type(k, store, ORDER("1"), "a");
    append_type(k, store, ORDER("1"), "b");
    append_type(k, store, ORDER("1"), "c");
    CHECK_STATUS(HF_STOPPED, hf_subscription_drain(k->scope, sub, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "\"mailer\" gave up at ") != NULL);
    CHECK(strstr(hf_scope_error_text(k->scope), "version 2: b is bad") != NULL);
    CHECK_STR("b is bad", hf_scope_error(k->scope)->cause->message);
    CHECK_STATUS(HF_STOPPED, hf_subscription_step(k->scope, sub, &wait_ms));
    CHECK_STR("a", hf_str_from(seen.types));
    CHECK_INT(1, seen.told[HF_SUBSCRIPTION_STOPPED]);
    hf_subscription_metrics(sub, &metrics);
    CHECK_INT(HF_SUBSCRIPTION_GAVE_UP, metrics.state);
    CHECK_INT(1, info_of(k, store).handled);
    CHECK(!info_of(k, store).owner.ptr); /* others may try */
    CHECK(info_of(k, store).failure.len > 0);

    CHECK_OK(hf_subscription_stop(k->scope, sub));
    CHECK_INT(2, drain(k, sub)); /* it fails once more, and then it does not */
    CHECK_STR("a,b,c", hf_str_from(seen.types));
    CHECK(!info_of(k, store).failure.ptr);
    hf_subscription_close(sub);
    hf_events_close(store);
}

/* The lease is free for who starts over then. */
KIT_TEST_TX(subscribe, gives_up_while_it_is_told_to_begin_anew)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "b", .times = 1, .k = k, .rebuild = store};
    struct hf_subscription *sub =
        subscribe(k, store, &seen, (struct hf_subscribe_options){.max_attempts = 1});

    append_type(k, store, ORDER("1"), "a");
    append_type(k, store, ORDER("1"), "b");
    CHECK_STATUS(HF_STOPPED, hf_subscription_drain(k->scope, sub, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "\"mailer\" gave up at ") != NULL);
    CHECK(info_of(k, store).rebuild);
    CHECK(!info_of(k, store).owner.ptr);
    CHECK_OK(hf_subscription_stop(k->scope, sub));
    CHECK_INT(2, drain(k, sub));
    CHECK_STR("a,a,b", hf_str_from(seen.types));
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(subscribe, parked_listed_replayed_discarded)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "bad", .times = 8};
    struct hf_subscription *sub =
        subscribe(k, store, &seen,
                  (struct hf_subscribe_options){.max_attempts = 2, .give_up = HF_GIVE_UP_PARK});
    struct hf_parked_list list;
    uint64_t done;
    struct hf_str two[2];

    append_type(k, store, ORDER("1"), "bad");
    append_type(k, store, ORDER("2"), "a");
    append_type(k, store, ORDER("3"), "bad");
    append_type(k, store, ORDER("4"), "bad");
    append_type(k, store, ORDER("5"), "b");
    drain(k, sub);
    CHECK_STR("a,b", hf_str_from(seen.types));
    CHECK_INT(3, seen.told[HF_SUBSCRIPTION_PARKED]);
    CHECK_INT(3, info_of(k, store).parked);
    CHECK_INT(2, info_of(k, store).handled);

    CHECK_OK(hf_subscription_parked(k->scope, store, NAME, (struct hf_str){0}, 2, &list));
    CHECK_INT(2, list.events_len);
    CHECK_STR("3", list.events[1].stream.id);
    CHECK_STR("bad", list.events[0].type);
    CHECK_STR("bad is bad", list.events[0].error_text);
    CHECK_INT(HF_IO, list.events[0].error);
    CHECK_INT(2, list.events[0].attempts);
    CHECK_INT(1, list.events[0].version);
    two[0] = list.events[0].position;
    CHECK_OK(hf_subscription_parked(k->scope, store, NAME, list.next, 2, &list));
    CHECK_INT(1, list.events_len);
    CHECK(!list.next.ptr);

    /* One again: it fails again (7th), and is parked again. */
    CHECK_OK(hf_subscription_replay(k->scope, store, NAME, two, 1, &done));
    CHECK_INT(1, done);
    CHECK_OK(hf_subscription_parked(k->scope, store, NAME, (struct hf_str){0}, 0, &list));
    CHECK(list.events[list.events_len - 1].replay);
    drain(k, sub);
    CHECK_INT(3, info_of(k, store).parked);
    CHECK_INT(1, seen.times);
    seen.times = 0;
    two[1] = HF_STR("01KFH2J5M00000000000000000");
    CHECK_STATUS(HF_NOT_FOUND, hf_subscription_replay(k->scope, store, NAME, two, 2, &done));
    CHECK_ERROR(HF_NOT_FOUND, "\"01KFH2J5M00000000000000000\" is not parked", k->scope);
    CHECK_INT(1, done);
    drain(k, sub);
    CHECK_STR("a,b,bad", hf_str_from(seen.types));
    CHECK_INT(2, info_of(k, store).parked);

    CHECK_OK(hf_subscription_discard(k->scope, store, NAME, NULL, 0, &done));
    CHECK_INT(2, done);
    CHECK_INT(0, info_of(k, store).parked);
    hf_subscription_close(sub);
    hf_events_close(store);
}

/* One that is there and cannot be read is parked again, and holds up no other. */
KIT_TEST_TX(subscribe, a_replay_without_its_payload_is_put_aside_again)
{
    static const uint8_t large[1000] = {'x'};
    struct hf_new_event event = {.type = HF_STR("bad"), .payload = {large, sizeof(large)}};
    struct hf_append append = {.stream = ORDER("1"), .events = &event, .events_len = 1};
    struct seen seen = {.fails = "bad", .times = 2};
    struct hf_blobs *blobs;
    struct hf_events *store;
    struct hf_subscription *sub;
    struct hf_events_page page;
    struct hf_parked_list list;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
    sub = subscribe(k, store, &seen,
                    (struct hf_subscribe_options){.max_attempts = 1, .give_up = HF_GIVE_UP_PARK});
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    append_type(k, store, ORDER("2"), "bad");
    drain(k, sub);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_OK(hf_blob_delete(k->scope, store->blobs, page.events[0].blob));
    CHECK_OK(hf_subscription_replay(k->scope, store, NAME, NULL, 0, NULL));
    drain(k, sub);
    CHECK_STR("bad", hf_str_from(seen.types));
    CHECK_OK(hf_subscription_parked(k->scope, store, NAME, (struct hf_str){0}, 0, &list));
    CHECK_INT(1, list.events_len);
    CHECK_STR("1", list.events[0].stream.id);
    CHECK_INT(HF_CORRUPT, list.events[0].error);
    hf_subscription_close(sub);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* Whose payload is gone has failed, by itself: it is parked, or is where it stops; the others
 * come whole, whatever is asked for at once. */
KIT_TEST_TX(subscribe, an_event_without_its_payload_fails_alone)
{
    static const uint8_t large[2][1000] = {{'x'}, {'y'}};
    struct hf_new_event events[] = {{.type = HF_STR("a")},
                                    {.type = HF_STR("gone"), .payload = {large[0], 1000}},
                                    {.type = HF_STR("large"), .payload = {large[1], 1000}},
                                    {.type = HF_STR("z")}};
    struct hf_append append = {.stream = ORDER("1"), .events = events, .events_len = 4};
    struct hf_blobs *blobs;
    struct hf_events *store;
    struct hf_events_page page;
    struct hf_str digest;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    digest = page.events[1].blob;
    for (int i = 0; i < 4; i++) {
        struct hf_subscribe_options options = {.max_attempts = 2, .give_up = HF_GIVE_UP_PARK};
        struct seen seen = {.needs = "large"};
        struct hf_subscription *sub;
        struct hf_parked_list list;

        CHECK_OK(hf_blob_delete(k->scope, store->blobs, digest));
        if (i & 1)
            options.stream = ORDER("1");
        if (i & 2)
            options.batch = note_batch;
        sub = subscribe(k, store, &seen, options);
        drain(k, sub);
        CHECK_STR("a,large,z", hf_str_from(seen.types));
        CHECK_INT(1, seen.told[HF_SUBSCRIPTION_FAILED]);
        CHECK_INT(0, seen.told[HF_SUBSCRIPTION_TROUBLE]);
        CHECK_OK(hf_subscription_parked(k->scope, store, NAME, (struct hf_str){0}, 0, &list));
        CHECK_INT(1, list.events_len);
        CHECK_INT(2, list.events[0].version);
        CHECK_INT(HF_CORRUPT, list.events[0].error);
        CHECK_OK(hf_blob_put(k->scope, store->blobs, events[1].payload, &digest));
        CHECK_OK(hf_subscription_replay(k->scope, store, NAME, NULL, 0, NULL));
        drain(k, sub);
        CHECK_STR("a,large,z,gone", hf_str_from(seen.types));
        hf_subscription_close(sub);
        CHECK_OK(hf_subscription_forget(k->scope, store, NAME));
    }
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* One that comes back in time is handled; one that does not is where it stops. */
KIT_TEST_TX(subscribe, a_payload_that_comes_back_is_handed_over)
{
    static const uint8_t large[1000] = {'x'};
    struct hf_new_event events[] = {{.type = HF_STR("gone"), .payload = {large, 1000}},
                                    {.type = HF_STR("z")}};
    struct hf_append append = {.stream = ORDER("1"), .events = events, .events_len = 2};
    struct seen seen = {.needs = "gone", .fails = "gone", .times = 1};
    struct hf_subscription *sub;
    struct hf_events_page page;
    struct hf_events *store;
    struct hf_blobs *blobs;
    struct hf_str digest;
    uint32_t wait_ms;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_OK(hf_blob_delete(k->scope, store->blobs, page.events[0].blob));
    sub = subscribe(k, store, &seen, (struct hf_subscribe_options){.max_attempts = 3});
    for (int i = 0; i < 100 && !seen.told[HF_SUBSCRIPTION_FAILED]; i++) {
        CHECK_OK(hf_subscription_step(k->scope, sub, &wait_ms));
        test_advance_ms(k->t, 10);
    }
    CHECK_INT(1, seen.told[HF_SUBSCRIPTION_FAILED]);
    CHECK_OK(hf_blob_put(k->scope, store->blobs, events[0].payload, &digest));
    drain(k, sub);
    CHECK_STR("gone,z", hf_str_from(seen.types));
    CHECK_INT(2, seen.told[HF_SUBSCRIPTION_FAILED]); /* once without, and once with it */
    CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, (struct hf_str){0}));
    CHECK_OK(hf_blob_delete(k->scope, store->blobs, digest));
    CHECK_STATUS(HF_STOPPED, hf_subscription_drain(k->scope, sub, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "is missing") != NULL);
    CHECK_STR("gone,z", hf_str_from(seen.types));
    hf_subscription_close(sub);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* ---- the lease ------------------------------------------------------------------------------ */

KIT_TEST_TX(subscribe, one_at_a_time_and_the_stale_one_moves_nothing)
{
    struct hf_events *store = open_store(k);
    struct seen ann_seen = {.batches = 0}, ben_seen = {.batches = 0};
    struct hf_subscribe_options options = {.checkpoint_ms = 3600 * 1000, .owner = HF_STR("ann")};
    struct hf_subscription *ann = subscribe(k, store, &ann_seen, options), *ben;
    struct hf_subscription_metrics metrics;
    uint32_t wait_ms;

    options.owner = HF_STR("ben");
    ben = subscribe(k, store, &ben_seen, options);
    append_type(k, store, ORDER("1"), "a");
    CHECK_INT(1, drain(k, ann));
    CHECK_STATUS(HF_LOCKED, hf_subscription_step(k->scope, ben, &wait_ms));
    CHECK_ERROR(HF_LOCKED, "subscription \"mailer\" is held by \"ann\"", k->scope);
    CHECK(wait_ms > 0 && wait_ms <= 1000);
    test_advance_ms(k->t, LEASE_MS / 2);
    append_type(k, store, ORDER("1"), "b");
    CHECK_INT(1, drain(k, ann)); /* renews, and has it for a lease from here */
    test_advance_ms(k->t, LEASE_MS * 6 / 10);
    CHECK_STATUS(HF_LOCKED, hf_subscription_step(k->scope, ben, &wait_ms));
    test_advance_ms(k->t, LEASE_MS - 1);
    CHECK_STATUS(HF_LOCKED, hf_subscription_step(k->scope, ben, &wait_ms));
    CHECK_INT(1, wait_ms);
    test_advance_ms(k->t, 1);
    append_type(k, store, ORDER("1"), "c");
    CHECK_INT(1, drain(k, ben)); /* a and b were in ann's checkpoint, as there was nothing to do */
    CHECK_STR("c", hf_str_from(ben_seen.types));
    CHECK_INT(2, hf_subscription_fence(ben));

    CHECK_STATUS(HF_LOCKED, hf_subscription_step(k->scope, ann, &wait_ms));
    CHECK_INT(0, hf_subscription_fence(ann));
    hf_subscription_metrics(ann, &metrics);
    CHECK_INT(1, metrics.lost);
    CHECK_INT(1, ann_seen.told[HF_SUBSCRIPTION_LOST]);
    CHECK_STR("ben", info_of(k, store).owner);
    CHECK_OK(hf_subscription_stop(k->scope, ann)); /* leaves ben's lease alone */
    CHECK_STR("ben", info_of(k, store).owner);

    /* Handed over at once. */
    CHECK_OK(hf_subscription_stop(k->scope, ben));
    CHECK_OK(hf_subscription_step(k->scope, ann, &wait_ms));
    CHECK_INT(3, hf_subscription_fence(ann));
    hf_subscription_close(ann);
    hf_subscription_close(ben);
    hf_events_close(store);
}

KIT_TEST_TX(subscribe, begins_anew_when_told)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "bad", .times = 1};
    struct hf_subscription *sub =
        subscribe(k, store, &seen,
                  (struct hf_subscribe_options){.max_attempts = 1, .give_up = HF_GIVE_UP_PARK});
    struct hf_events_page page;

    CHECK_STATUS(HF_NOT_FOUND, hf_subscription_rebuild(k->scope, store, NAME, (struct hf_str){0}));
    append_type(k, store, ORDER("1"), "a");
    append_type(k, store, ORDER("1"), "bad");
    append_type(k, store, ORDER("1"), "c");
    drain(k, sub);
    CHECK_STR("a,c", hf_str_from(seen.types));
    seen.types[0] = '\0';
    CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, (struct hf_str){0}));
    CHECK(info_of(k, store).rebuild);
    CHECK_INT(3, drain(k, sub));
    CHECK_STR("a,bad,c", hf_str_from(seen.types));
    CHECK(!info_of(k, store).rebuild);
    CHECK_INT(0, info_of(k, store).parked);
    CHECK_INT(3, info_of(k, store).handled);

    CHECK_STATUS(HF_INVALID, hf_subscription_rebuild(k->scope, store, NAME, HF_STR("x")));
    CHECK_ERROR(HF_INVALID, "\"x\" is neither a position nor a version", k->scope);

    /* From a position on; told while nobody runs it. */
    hf_subscription_close(sub);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, page.events[1].position));
    sub = subscribe(k, store, &seen, (struct hf_subscribe_options){0});
    CHECK_INT(1, drain(k, sub));
    hf_subscription_close(sub);

    /* One that started at the end begins with the first event; of a stream, too. */
    for (int stream = 0; stream < 2; stream++) {
        struct hf_subscribe_options end = {.start = HF_START_END};

        if (stream)
            end.stream = ORDER("1");
        CHECK_OK(hf_subscription_forget(k->scope, store, NAME));
        sub = subscribe(k, store, &seen, end);
        CHECK_INT(0, drain(k, sub));
        CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, (struct hf_str){0}));
        CHECK_INT(3, drain(k, sub));
        hf_subscription_close(sub);
    }
    CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, HF_STR("2")));
    sub = subscribe(k, store, &seen, (struct hf_subscribe_options){.stream = ORDER("1")});
    CHECK_INT(1, drain(k, sub));
    CHECK_STR("0000000000000003", info_of(k, store).checkpoint);
    hf_subscription_close(sub);
    hf_events_close(store);
}

/* What the database does not do now is done later, and no attempt counts. */
KIT_TEST_TX(subscribe, goes_on_after_trouble)
{
    static const char *const operations[] = {"Query", "UpdateItem", "GetItem", "BatchGetItem",
                                             "TransactWriteItems"};
    static const enum hf_fault_kind kinds[] = {HF_FAULT_THROTTLE, HF_FAULT_LOST_ANSWER,
                                               HF_FAULT_LOST_REQUEST};
    struct hf_events *store = open_store(k);
    struct seen seen = {.batches = 0};
    struct hf_subscription *sub =
        subscribe(k, store, &seen, (struct hf_subscribe_options){.max_attempts = 1});

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        for (size_t j = 0; j < sizeof(kinds) / sizeof(kinds[0]); j++) {
            enum hf_status status;
            int turns = 0;

            append_type(k, store, ORDER("1"), "a");
            seen.types[0] = '\0';
            kit_fault(k, kinds[j], operations[i], 2);
            while ((status = hf_subscription_drain(k->scope, sub, NULL)) != HF_OK && turns++ < 50)
                test_advance_ms(k->t, 100);
            CHECK_OK(status);
            kit_no_faults(k);
            CHECK_STR("a", hf_str_from(seen.types));
        }
    CHECK_INT(15, info_of(k, store).handled);
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(subscribe, options_that_cannot_be)
{
    struct hf_events *store = open_store(k);
    struct hf_subscription *sub;
    char name[HF_SUBSCRIPTION_NAME_MAX + 2];
    struct {
        struct hf_subscribe_options options;
        const char *message;
    } cases[] = {
        {{.lease_ms = 100}, "subscription \"mailer\": set exactly one of each, batch and project"},
        {{.each = note, .batch = note_batch},
         "subscription \"mailer\": set exactly one of each, batch and project"},
        {{.each = note, .stream = ORDER("1"), .type = HF_STR("a")},
         "a subscription to one stream cannot have a domain, a type, archived or a start time"},
        {{.each = note, .start = HF_START_AFTER, .after = HF_STR("7")},
         "\"7\" (after) is not a position"},
        {{.each = note, .start = HF_START_AFTER, .stream = ORDER("1"), .after = HF_STR("x")},
         "\"x\" (after) is not a version"},
        {{.each = note, .batch_max = HF_SUBSCRIPTION_BATCH_MAX + 1},
         "batch_max must be at most "
         "10000"},
        {{.each = note, .lease_ms = 19}, "lease_ms must be at least 20"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cases[i].options.size = sizeof(cases[i].options);
        CHECK_STATUS(HF_INVALID, hf_subscribe(k->scope, store, NAME, &cases[i].options, &sub));
        CHECK_ERROR(HF_INVALID, cases[i].message, k->scope);
        CHECK(!sub);
    }
    memset(name, 'n', sizeof(name));
    CHECK_OK(hf_subscribe(k->scope, store, hf_str_of(name, HF_SUBSCRIPTION_NAME_MAX),
                          HF_OPTIONS(hf_subscribe_options, .each = note), &sub));
    hf_subscription_close(sub);
    CHECK_STATUS(HF_INVALID,
                 hf_subscribe(k->scope, store, hf_str_of(name, HF_SUBSCRIPTION_NAME_MAX + 1),
                              HF_OPTIONS(hf_subscribe_options, .each = note), &sub));
    CHECK_ERROR(HF_INVALID, "the name of a subscription has 1 to 255 bytes, not 256", k->scope);
    CHECK_STATUS(HF_INVALID, hf_subscribe(k->scope, store, HF_STR(""),
                                          HF_OPTIONS(hf_subscribe_options, .each = note), &sub));
    hf_subscription_close(NULL);
    hf_events_close(store);
}
