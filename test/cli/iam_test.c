/*
 * cli/iam_test.c: the policies that `holdfast iam outbox|events` print allow what is called, and
 * nothing that is not. iam_patterns_test.c has the others.
 */
#include "iam_gate.h"

#include <holdfast/engine.h>
#include <holdfast/events.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/subscribe.h>

/* ---- who does what -------------------------------------------------------------------------- */

static struct hf_outbox *open_box(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_outbox *outbox = NULL;

    CHECK_OK(hf_outbox_open(s, db,
                            HF_OPTIONS(hf_outbox_options, .no_create = !create, .history_s = 3600),
                            &outbox));
    return outbox;
}

static void produce(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_outbox *outbox = open_box(s, db, create);
    const struct hf_event plain[2] = {{.type = HF_STR("a")}, {.type = HF_STR("b")}};
    const struct hf_event named = {.type = HF_STR("c"), .id = HF_STR("mine")};

    CHECK_OK(hf_outbox_emit(s, outbox, plain, 1, NULL));
    CHECK_OK(hf_outbox_emit(s, outbox, plain, 2, NULL));
    CHECK_OK(hf_outbox_emit(s, outbox, &named, 1, NULL));
    CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(s, outbox, &named, 1, NULL));
    CHECK_OK(hf_outbox_emit(s, outbox, plain, 2, HF_OPTIONS(hf_emit_options, .each_alone = true)));
    hf_outbox_close(outbox);
}

/* "a" is taken, "b" not now, "c" never. */
static enum hf_status take_some(struct hf_scope *s, void *sink, struct hf_delivery *deliveries,
                                size_t len)
{
    (void)sink;
    for (size_t i = 0; i < len; i++) {
        char type = deliveries[i].event->event.type.ptr[0];

        deliveries[i].status = type == 'a' ? HF_OK : HF_IO;
        deliveries[i].for_good = type == 'c';
        deliveries[i].error = hf_scope_copy(s, HF_STR("no"));
    }
    return HF_OK;
}

/* All that is there, and then a while in which nothing comes. */
static void deliver(struct hf_scope *s, struct gate *gate)
{
    struct hf_outbox *outbox = open_box(s, &gate->base, false);
    struct hf_sink *sink;
    struct hf_relay *relay;
    uint64_t delivered;

    CHECK_OK(
        hf_sink_new(s, HF_OPTIONS(hf_sink_ops, .name = "test", .send = take_some), NULL, &sink));
    CHECK_OK(hf_relay_open(s, outbox, sink, HF_OPTIONS(hf_relay_options, .poll_ms = 20), &relay));
    CHECK_OK(hf_relay_drain(s, relay, &delivered));
    CHECK_INT(3, delivered);
    CHECK_OK(hf_relay_start(s, relay));
    hf_scope_timeout_ms(s, 60000);
    while (!gate_used(gate, "PartiQLSelect"))
        CHECK_OK(hf_scope_sleep_ms(s, 5));
    CHECK_OK(hf_relay_stop(s, relay));
    hf_scope_timeout_ms(s, 0);
    hf_relay_close(relay);
    hf_sink_close(sink);
    hf_outbox_close(outbox);
}

static void operate(struct hf_scope *s, struct hf_db *db)
{
    struct hf_outbox *outbox = open_box(s, db, false);
    const struct hf_str id = HF_STR("mine");
    struct hf_outbox_stats stats;
    struct hf_event_list list;
    uint64_t done;

    CHECK_OK(hf_outbox_stats(s, outbox, 0, &stats));
    CHECK_OK(hf_outbox_pending(s, outbox, HF_OPTIONS(hf_event_list_options, .not_due_too = true),
                               &list));
    CHECK_INT(2, list.events_len);
    CHECK_OK(hf_outbox_retry(s, outbox, &list.events[0].ref, 1, &done));
    CHECK_OK(hf_outbox_failed(s, outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_OK(hf_outbox_history(s, outbox, NULL, &list));
    CHECK_OK(hf_outbox_retry(s, outbox, &id, 1, &done));
    CHECK_OK(hf_outbox_discard(s, outbox, &id, 1, &done));
    CHECK_OK(hf_outbox_replay(s, outbox, HF_OPTIONS(hf_event_list_options, .limit = 1), &done));
    CHECK_OK(hf_outbox_cleanup(s, outbox, INT64_MAX / 2, &done));
    hf_outbox_close(outbox);
}

TEST(iam, policies_allow_what_is_called_and_no_more)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct gate first, producer, relay, operator;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    gate_open(&first, s, db, IAM(outbox), "--role", "producer", "--create");
    produce(s, &first.base, true);
    gate_check(&first);
    hf_db_close(db);

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    gate_open(&producer, s, db, IAM(outbox), "--role", "producer");
    gate_open(&relay, s, db, IAM(outbox), "--role", "relay");
    gate_open(&operator, s, db, IAM(outbox), "--role", "operator");
    hf_outbox_close(open_box(s, db, true));
    produce(s, &producer.base, false);
    deliver(s, &relay);
    operate(s, &operator.base);
    gate_check(&producer);
    gate_check(&relay);
    gate_check(&operator);
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- events --------------------------------------------------------------------------------- */

enum { MANY = 150 }; /* events, which do not fit into one transaction */

static struct hf_events *open_events(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_events *store = NULL;

    CHECK_OK(hf_events_open(s, db, HF_OPTIONS(hf_events_options, .no_create = !create), &store));
    return store;
}

static void write_events(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_events *store = open_events(s, db, create);
    const struct hf_new_event one = {.type = HF_STR("a")};
    const struct hf_new_event named = {.type = HF_STR("b"), .id = HF_STR("mine")};
    struct hf_new_event many[MANY];
    struct hf_append appends[2] = {
        {.stream = {HF_STR("order"), HF_STR("1")}, .events = &one, .events_len = 1},
        {.stream = {HF_STR("order"), HF_STR("2")}, .events = &named, .events_len = 1}};
    struct hf_append large = {.stream = {HF_STR("large"), HF_STR("1")},
                              .events = many,
                              .events_len = MANY};
    struct hf_append_options options = {.size = sizeof(options)};
    struct hf_stored_event event;
    struct hf_events_page page;

    for (size_t i = 0; i < MANY; i++)
        many[i] = one;
    CHECK_OK(hf_events_append(s, store, appends, 1, NULL, NULL));
    CHECK_OK(hf_events_append(s, store, appends, 2, NULL, NULL));
    CHECK_OK(hf_events_append(s, store, &appends[1], 1, NULL, NULL)); /* again */
    CHECK_OK(hf_events_append(s, store, &large, 1, NULL, NULL));
    appends[0].expect = HF_EXPECT_NONE;
    CHECK_STATUS(HF_CONDITION, hf_events_append(s, store, appends, 1, NULL, NULL));
    appends[0].expect = HF_EXPECT_EXISTS;
    CHECK_OK(hf_events_get(s, store, HF_STR("mine"), &event));
    options.parent = &event;
    CHECK_OK(hf_events_append(s, store, appends, 1, &options, NULL));
    CHECK_OK(hf_events_read(s, store, appends[0].stream, NULL, &page));
    CHECK_INT(3, page.events_len);
    CHECK_OK(hf_events_read(s, store, large.stream, NULL, &page));
    hf_events_close(store);
}

static enum hf_status take(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    const bool *all = user;

    if (*all || !hf_str_equal(event->type, HF_STR("b")))
        return HF_OK;
    return hf_scope_fail(s, HF_IO, "not this one");
}

static void follow_events(struct hf_scope *s, struct hf_db *db)
{
    struct hf_events *store = open_events(s, db, false);
    const struct hf_stored_event *events;
    struct hf_subscription *subscription;
    struct hf_subscription_info info;
    struct hf_parked_list parked;
    struct hf_events_reader *reader;
    struct hf_event_tree tree;
    bool all = false;
    size_t len;

    CHECK_OK(hf_events_reader_open(s, store, NULL, &reader));
    do
        CHECK_OK(hf_events_reader_next(s, reader, &events, &len));
    while (len);
    hf_events_reader_close(reader);
    CHECK_OK(hf_subscribe(s, store, HF_STR("tail"),
                          HF_OPTIONS(hf_subscribe_options, .each = take, .max_attempts = 1,
                                     .give_up = HF_GIVE_UP_PARK, .user = &all, .no_threads = true),
                          &subscription));
    CHECK_OK(hf_subscription_drain(s, subscription, NULL));
    CHECK_OK(hf_subscription_parked(s, store, HF_STR("tail"), (struct hf_str){0}, 0, &parked));
    CHECK_INT(1, parked.events_len);
    all = true;
    CHECK_OK(hf_subscription_replay(s, store, HF_STR("tail"), NULL, 0, NULL));
    CHECK_OK(hf_subscription_drain(s, subscription, NULL));
    CHECK_OK(hf_subscription_parked(s, store, HF_STR("tail"), (struct hf_str){0}, 0, &parked));
    CHECK_INT(0, parked.events_len);
    CHECK_OK(hf_subscription_stop(s, subscription));
    hf_subscription_close(subscription);
    CHECK_OK(hf_subscription_info(s, store, HF_STR("tail"), &info));
    CHECK_OK(hf_events_caused_by(s, store, HF_STR("mine"), &events, &len));
    CHECK_INT(1, len);
    CHECK_OK(hf_events_correlated(s, store, HF_STR("mine"), &events, &len));
    CHECK_OK(hf_events_tree(s, store, HF_STR("mine"), 0, &tree));
    hf_events_close(store);
}

static enum hf_status ignore(struct hf_scope *s, struct hf_event_stream_key stream,
                             const struct hf_event_stream_info *info, void *user)
{
    (void)s, (void)stream, (void)info, (void)user;
    return HF_OK;
}

static enum hf_status collect(struct hf_scope *s, const void *bytes, size_t len, void *user)
{
    (void)s;
    CHECK_INT(1, fwrite(bytes, len, 1, user));
    return HF_OK;
}

static enum hf_status give(struct hf_scope *s, void *bytes, size_t cap, size_t *len, void *user)
{
    (void)s;
    *len = fread(bytes, 1, cap, user);
    return HF_OK;
}

static void look_after_events(struct hf_scope *s, struct hf_db *db)
{
    struct hf_events *store = open_events(s, db, false);
    const struct hf_event_stream_key large = {HF_STR("large"), HF_STR("1")},
                                     order = {HF_STR("order"), HF_STR("1")};
    struct hf_events_verified verified;
    struct hf_event_stream_info info;
    struct hf_events_swept swept;
    FILE *lines = tmpfile();
    uint64_t count, done;

    CHECK_OK(hf_events_export(s, store, NULL, collect, lines, &count));
    rewind(lines);
    CHECK_OK(hf_events_import(s, store, NULL, give, lines, &done)); /* all of it is there */
    CHECK_INT(0, done);
    fclose(lines);
    CHECK_OK(hf_events_verify(s, store, NULL, NULL, &verified));
    CHECK_INT(count, verified.events);
    CHECK_OK(hf_events_streams(s, store, (struct hf_str){0}, ignore, NULL));
    CHECK_OK(hf_events_stream_info(s, store, order, &info));
    CHECK_OK(hf_events_truncate(s, store, order, 2));
    CHECK_OK(hf_events_limit_stream(s, store, order, 0, 1));
    CHECK_OK(hf_events_archive(s, store, large));
    CHECK_OK(hf_events_unarchive(s, store, large));
    CHECK_OK(hf_events_tombstone(s, store, large, HF_EXPECT_EXISTS, 0));
    CHECK_OK(hf_events_sweep(s, store, 1, &swept));
    CHECK_OK(hf_subscription_replay(s, store, HF_STR("tail"), NULL, 0, &done));
    CHECK_OK(hf_subscription_discard(s, store, HF_STR("tail"), NULL, 0, &done));
    CHECK_OK(hf_subscription_rebuild(s, store, HF_STR("tail"), (struct hf_str){0}));
    CHECK_OK(hf_subscription_forget(s, store, HF_STR("tail")));
    hf_events_close(store);
}

TEST(iam, policies_of_an_event_store)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct gate first, writer, reader, admin;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    gate_open(&first, s, db, IAM(events), "--role", "writer", "--create");
    write_events(s, &first.base, true);
    gate_check(&first);
    hf_db_close(db);

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    gate_open(&writer, s, db, IAM(events), "--role", "writer");
    gate_open(&reader, s, db, IAM(events), "--role", "reader");
    gate_open(&admin, s, db, IAM(events), "--role", "admin");
    hf_events_close(open_events(s, db, true));
    write_events(s, &writer.base, false);
    follow_events(s, &reader.base);
    look_after_events(s, &admin.base);
    gate_check(&writer);
    gate_check(&reader);
    gate_check(&admin);
    hf_db_close(db);
    hf_scope_free(s);
}
