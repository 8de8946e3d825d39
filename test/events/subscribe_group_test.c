/*
 * events/subscribe_group_test.c: groups of consumers that share events.
 */
#include <holdfast/subscribe.h>

#include <stdio.h>
#include <string.h>

#include "events/store/events.h"
#include "events_kit.h"

enum { LEASE_MS = 10000 };

#define NAME HF_STR("group")

struct seen {
    char types[600];
    const char *fails;
    int times;
};

static enum hf_status note(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct seen *seen = user;
    size_t len = strlen(seen->types);

    if (seen->fails && seen->times && hf_str_equal(event->type, hf_str_from(seen->fails))) {
        seen->times--;
        return hf_scope_fail(s, HF_IO, "%.*s is bad", HF_FMT(event->type));
    }
    snprintf(seen->types + len, sizeof(seen->types) - len, "%s%.*s%.*s", len ? "," : "",
             HF_FMT(event->stream.id), HF_FMT(event->type));
    return HF_OK;
}

static struct hf_group *open_group(struct kit *k, struct hf_events *store,
                                   struct hf_group_options options)
{
    struct hf_group *group;

    options.size = sizeof(options);
    options.table = k->other;
    options.no_threads = true;
    options.lease_ms = LEASE_MS;
    options.workers = 1;
    options.buckets = 2;
    CHECK_OK(hf_group_open(k->scope, store, NAME, &options, &group));
    return group;
}

/* Until there is nothing to do at once. */
static void run(struct kit *k, struct hf_group *group)
{
    for (int idle = 0, turns = 0; idle < 30 && turns < 1000; turns++) {
        uint32_t wait_ms;

        CHECK_OK(hf_group_step(k->scope, group, &wait_ms));
        idle = wait_ms ? idle + 1 : 0;
        test_advance_ms(k->t, wait_ms < 100 ? wait_ms : 100);
    }
}

static size_t count_of(const char *text, const char *what)
{
    size_t found = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        found++;
    return found;
}

KIT_TEST_TX(group, fetch_ack_nack_park)
{
    struct hf_events *store = open_store(k);
    struct hf_group *group =
        open_group(k, store, (struct hf_group_options){.max_attempts = 2, .backoff_ms = 1000});
    struct hf_group *other = open_group(k, store, (struct hf_group_options){.no_feed = true});
    struct hf_group_list list, more;
    struct hf_parked_list parked;
    struct hf_group_metrics metrics;
    struct hf_str ref;
    uint64_t done;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, NULL));
    run(k, group);
    run(k, group); /* each is fed once */
    CHECK_OK(hf_group_metrics(k->scope, group, &metrics));
    CHECK_INT(3, metrics.pending);
    CHECK_INT(3, metrics.feeder.handled);

    CHECK_OK(hf_group_fetch(k->scope, group, 2, &list));
    CHECK_INT(2, list.events_len);
    CHECK_OK(hf_group_fetch(k->scope, other, 0, &more));
    CHECK_INT(1, more.events_len); /* what others have is not given to us */
    CHECK_STR("1", list.events[0].event.stream.id);
    CHECK_INT(1, payload_of(&list.events[0].event).len);
    CHECK_INT(HF_POSITION_LEN, list.events[0].event.position.len);

    CHECK_OK(hf_group_ack(k->scope, group, &list.events[0]));
    CHECK_OK(hf_group_nack(k->scope, group, &list.events[1], HF_STR("not now")));
    CHECK_OK(hf_group_park(k->scope, other, &more.events[0], HF_STR("never")));

    test_advance_ms(k->t, 2500);
    CHECK_OK(hf_group_fetch(k->scope, group, 0, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(1, list.events[0].attempts);
    CHECK_OK(hf_group_nack(k->scope, group, &list.events[0], (struct hf_str){0}));
    CHECK_OK(hf_group_fetch(k->scope, group, 0, &list));
    CHECK_INT(0, list.events_len);

    CHECK_OK(hf_group_parked(k->scope, group, (struct hf_str){0}, 0, &parked));
    CHECK_INT(2, parked.events_len);
    for (size_t i = 0; i < 2; i++) {
        bool never = hf_str_equal(parked.events[i].error_text, HF_STR("never"));

        CHECK_STR(never ? "never" : "not handled", parked.events[i].error_text);
        CHECK_STR("1", parked.events[i].stream.id);
        CHECK(parked.events[i].version >= 1 && parked.events[i].version <= 3);
        if (never)
            ref = parked.events[i].position;
    }
    CHECK_OK(hf_group_replay(k->scope, group, &ref, 1, &done));
    CHECK_INT(1, done);
    CHECK_OK(hf_group_fetch(k->scope, group, 0, &list));
    CHECK_INT(1, list.events_len);
    CHECK_OK(hf_group_ack(k->scope, group, &list.events[0]));
    CHECK_OK(hf_group_discard(k->scope, group, NULL, 0, &done));
    CHECK_INT(1, done);
    CHECK_OK(hf_group_metrics(k->scope, group, &metrics));
    CHECK_INT(0, metrics.pending + metrics.parked);
    hf_group_close(group);
    hf_group_close(other);
    hf_events_close(store);
}

/* Who is silent loses what it has; extending it is a sign of life. */
KIT_TEST_TX(group, a_silent_consumer_is_replaced)
{
    struct hf_events *store = open_store(k);
    struct hf_group *ann = open_group(k, store, (struct hf_group_options){.owner = HF_STR("ann")});
    struct hf_group *ben =
        open_group(k, store, (struct hf_group_options){.owner = HF_STR("ben"), .no_feed = true});
    struct hf_group_list list, more;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    run(k, ann);
    CHECK_OK(hf_group_fetch(k->scope, ann, 0, &list));
    CHECK_INT(1, list.events_len);
    test_advance_ms(k->t, LEASE_MS - 1);
    CHECK_OK(hf_group_extend(k->scope, ann, &list.events[0]));
    test_advance_ms(k->t, LEASE_MS - 1);
    CHECK_OK(hf_group_fetch(k->scope, ben, 0, &more));
    CHECK_INT(0, more.events_len);
    test_advance_ms(k->t, 3000);
    CHECK_OK(hf_group_fetch(k->scope, ben, 0, &more));
    CHECK_INT(1, more.events_len);
    CHECK_STATUS(HF_LOST, hf_group_ack(k->scope, ann, &list.events[0]));
    CHECK_OK(hf_group_ack(k->scope, ben, &more.events[0]));
    hf_group_close(ann);
    hf_group_close(ben);
    hf_events_close(store);
}

/* (1): what was truncated meanwhile. */
KIT_TEST_TX(group, events_that_are_gone)
{
    struct hf_events *store = open_store(k);
    struct hf_group *group = open_group(k, store, (struct hf_group_options){0});
    struct hf_group_list list;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, NULL));
    run(k, group);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 2));
    CHECK_OK(hf_group_fetch(k->scope, group, 0, &list));
    CHECK_INT(2, list.events_len);
    for (size_t i = 0; i < 2; i++) {
        CHECK_STR("1", list.events[i].event.stream.id);
        CHECK((list.events[i].event.position.ptr != NULL) == (list.events[i].event.version == 2));
        CHECK_OK(hf_group_ack(k->scope, group, &list.events[i]));
    }
    hf_group_close(group);
    hf_events_close(store);
}

/* Two events of the stream, the payload of the first one in the blob store. */
static void append_large_one(struct kit *k, struct hf_events *store,
                             struct hf_event_stream_key stream)
{
    static const uint8_t large[1000] = {'x'};
    struct hf_new_event events[] = {{.id =
                                         hf_scope_format(k->scope, "large%.*s", HF_FMT(stream.id)),
                                     .type = HF_STR("t1"),
                                     .payload = {large, sizeof(large)}},
                                    {.type = HF_STR("t2")}};
    struct hf_append append = {.stream = stream, .events = events, .events_len = 2};

    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
}

static void delete_blob(struct kit *k, struct hf_events *store)
{
    struct hf_events_page page;

    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .no_payload = true), &page));
    CHECK(page.events[0].blob.len);
    CHECK_OK(hf_blob_delete(k->scope, store->blobs, page.events[0].blob));
}

/* (1): an event whose payload is gone, or out of reach, is not one that is gone. */
KIT_TEST_TX(group, a_payload_that_is_gone_is_a_failure)
{
    struct hf_parked_list parked;
    struct hf_blobs *blobs;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    for (int without = 0; without < 2; without++) {
        struct seen seen = {.times = 0};
        struct hf_events *store =
            open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
        struct hf_blobs *part = store->blobs;
        struct hf_group *feeder = open_group(k, store, (struct hf_group_options){0});
        struct hf_group *group = open_group(k, store,
                                            (struct hf_group_options){.handle = note,
                                                                      .user = &seen,
                                                                      .no_feed = true,
                                                                      .backoff_ms = 50,
                                                                      .max_attempts = 2});

        CHECK_OK(hf_group_discard(k->scope, group, NULL, 0, NULL));
        append_large_one(k, store, without ? ORDER("2") : ORDER("1"));
        run(k, feeder);
        if (without)
            store->blobs = NULL;
        else
            delete_blob(k, store);
        run(k, group);
        CHECK_STR(without ? "2t2" : "1t2", hf_str_from(seen.types));
        CHECK_OK(hf_group_parked(k->scope, group, (struct hf_str){0}, 0, &parked));
        CHECK_INT(1, parked.events_len);
        CHECK_INT(without ? HF_UNSUPPORTED : HF_CORRUPT, parked.events[0].error);
        CHECK(strstr(parked.events[0].error_text.ptr, without ? "event large2" : "event large1"));
        store->blobs = part;
        hf_group_close(feeder);
        hf_group_close(group);
        hf_events_close(store);
    }
    hf_blobs_close(blobs);
}

/* Whoever feeds does not need payloads: one that is gone by then is that event's own failure, of
 * all and of one stream. */
KIT_TEST_TX(group, a_payload_that_is_gone_does_not_stop_feeding)
{
    for (int of_stream = 0; of_stream < 2; of_stream++) {
        struct seen seen = {.times = 0};
        struct hf_group_options options = {.handle = note,
                                           .user = &seen,
                                           .backoff_ms = 50,
                                           .max_attempts = 2};
        struct hf_parked_list parked;
        struct hf_events *store;
        struct hf_group *group;
        struct hf_blobs *blobs;
        uint64_t done;

        CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
        store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
        CHECK_OK(hf_events_reset(k->scope, store));
        if (of_stream)
            options.stream = ORDER("1");
        append_large_one(k, store, ORDER("1"));
        delete_blob(k, store);
        CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, NULL));
        group = open_group(k, store, options);
        run(k, group);
        CHECK_INT(1, count_of(seen.types, "1t1"));
        CHECK_INT(2, count_of(seen.types, "1t2"));
        CHECK_INT(1, count_of(seen.types, "1t3"));
        CHECK_OK(hf_group_parked(k->scope, group, (struct hf_str){0}, 0, &parked));
        CHECK_INT(1, parked.events_len);
        CHECK_INT(1, parked.events[0].version);
        CHECK_INT(HF_CORRUPT, parked.events[0].error);
        CHECK_OK(hf_group_discard(k->scope, group, NULL, 0, &done));
        hf_group_close(group);
        hf_events_close(store);
        hf_blobs_close(blobs);
    }
}

/* (1): what cannot be read costs those that were fetched with it nothing. */
KIT_TEST_TX(group, one_that_cannot_be_read_is_left_out)
{
    struct hf_blobs *blobs;
    struct hf_events *store;
    struct hf_group *group;
    struct hf_group_list list;
    struct hf_parked_list parked;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
    group = open_group(k, store, (struct hf_group_options){.max_attempts = 1});
    append_large_one(k, store, ORDER("1"));
    run(k, group);
    delete_blob(k, store);
    CHECK_OK(hf_group_fetch(k->scope, group, 0, &list));
    CHECK_INT(1, list.events_len);
    CHECK_STR("t2", list.events[0].event.type);
    CHECK_INT(0, list.events[0].attempts);
    CHECK_OK(hf_group_ack(k->scope, group, &list.events[0]));
    CHECK_OK(hf_group_parked(k->scope, group, (struct hf_str){0}, 0, &parked));
    CHECK_INT(1, parked.events_len);
    CHECK_INT(HF_CORRUPT, parked.events[0].error);
    hf_group_close(group);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* Whichever event cannot be read now, what the fetch had claimed is there for the next one at once.
 */
KIT_TEST_TX(group, a_fetch_that_fails_gives_back_what_it_had)
{
    struct hf_events *store = open_store(k);
    struct hf_group *group = open_group(k, store, (struct hf_group_options){.max_attempts = 1000});
    enum hf_status status = HF_IO;
    struct hf_group_list list;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, NULL));
    run(k, group);
    for (uint32_t n = 0; status != HF_OK; n++) {
        struct hf_fault fault = {.kind = HF_FAULT_ERROR,
                                 .operation = HF_STR("Query"),
                                 .table = k->table,
                                 .count = 1,
                                 .skip = n};

        CHECK(n < 50);
        CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
        status = hf_group_fetch(k->scope, group, 3, &list);
        kit_no_faults(k);
        if (status != HF_OK) {
            CHECK_INT(0, list.events_len);
            CHECK_OK(hf_group_fetch(k->scope, group, 3, &list));
        }
        CHECK_INT(3, list.events_len);
        test_advance_ms(k->t, LEASE_MS + 60000);
    }
    hf_group_close(group);
    hf_events_close(store);
}

KIT_TEST_TX(group, a_handler_of_each)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "t3", .times = 1};
    struct hf_group *group = open_group(k, store,
                                        (struct hf_group_options){.handle = note,
                                                                  .user = &seen,
                                                                  .backoff_ms = 50,
                                                                  .max_attempts = 3});
    struct hf_group_metrics metrics;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 5, NULL));
    run(k, group);
    for (int i = 1; i <= 5; i++)
        CHECK_INT(1, count_of(seen.types,
                              ((const char *[]){"1t1", "1t2", "1t3", "1t4", "1t5"})[i - 1]));
    seen.fails = "t1";
    seen.times = 3;
    CHECK_OK(append_some(k, store, ORDER("2"), HF_EXPECT_ANY, 0, 2, NULL));
    run(k, group);
    CHECK_INT(0, count_of(seen.types, "2t1"));
    CHECK_INT(1, count_of(seen.types, "2t2"));
    CHECK_OK(hf_group_metrics(k->scope, group, &metrics));
    CHECK_INT(1, metrics.parked);
    CHECK_OK(hf_group_replay(k->scope, group, NULL, 0, NULL));
    run(k, group);
    CHECK_INT(1, count_of(seen.types, "2t1"));
    hf_group_close(group);
    hf_events_close(store);
}

/* (2): events of a stream one after the other, also when one fails in between. */
KIT_TEST_TX(group, ordered_by_stream)
{
    struct hf_events *store = open_store(k);
    struct seen seen = {.fails = "t2", .times = 2};
    struct hf_group *group = open_group(k, store,
                                        (struct hf_group_options){.ordered = true,
                                                                  .handle = note,
                                                                  .user = &seen,
                                                                  .backoff_ms = 50,
                                                                  .max_attempts = 5});
    struct hf_group_list list;
    const char *one = seen.types;

    for (int i = 0; i < 3; i++)
        CHECK_OK(append_some(k, store, i == 1 ? ORDER("2") : ORDER("1"), HF_EXPECT_ANY, 0,
                             i == 2 ? 1 : 3, NULL));
    run(k, group);
    for (int i = 0; i < 4; i++) {
        one = strstr(one, ((const char *[]){"1t1", "1t2", "1t3", "1t1"})[i]);
        CHECK(one != NULL);
        one++;
    }
    one = seen.types;
    for (int i = 0; i < 3; i++) {
        one = strstr(one, ((const char *[]){"2t1", "2t2", "2t3"})[i]);
        CHECK(one != NULL);
        one++;
    }
    CHECK_INT(7, count_of(seen.types, "t"));
    CHECK_STATUS(HF_INVALID, hf_group_fetch(k->scope, group, 0, &list));
    CHECK_ERROR(HF_INVALID,
                "hf_group_fetch() does not work on an ordered group: its events go to the handler",
                k->scope);
    hf_group_close(group);
    hf_events_close(store);
}

/* Streams with names that are as long as they may be. */
KIT_TEST_TX(group, long_names)
{
    char domain[HF_EVENTS_DOMAIN_MAX], id[HF_EVENTS_ID_MAX];
    struct hf_events *store = open_store(k);
    struct seen seen = {.times = 0};
    struct hf_group *group =
        open_group(k, store,
                   (struct hf_group_options){.ordered = true, .handle = note, .user = &seen});

    memset(domain, '.', sizeof(domain)); /* three bytes each, in a key */
    memset(id, '.', sizeof(id));
    CHECK_OK(append_some(k, store,
                         (struct hf_event_stream_key){hf_str_of(domain, sizeof(domain)),
                                                      hf_str_of(id, 400)},
                         HF_EXPECT_ANY, 0, 2, NULL));
    run(k, group);
    CHECK_INT(1, count_of(seen.types, "t1"));
    hf_group_close(group);
    CHECK_STATUS(HF_INVALID, hf_group_open(k->scope, store, HF_STR(""), NULL, &group));
    CHECK_ERROR(HF_INVALID, "the name of a group has 1 to 255 bytes, not 0", k->scope);
    hf_group_close(NULL);
    hf_events_close(store);
}
