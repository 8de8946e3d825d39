/*
 * cli/iam_test.c: the policies that `holdfast iam outbox|events` print allow what is called, and
 * nothing that is not.
 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "db/db.h"
#include "test.h"

#include <holdfast/engine.h>
#include <holdfast/events.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/subscribe.h>

#include <pthread.h>
#include <stdlib.h>

enum { NAMES_MAX = 32 };

/* Which permissions were needed: names of operations, with transactions as their actions. */
struct needs {
    struct hf_db base;
    struct hf_db *inner;
    pthread_mutex_t mutex; /* guards what follows: relays have threads */
    const char *names[NAMES_MAX];
    size_t len;
};

static void need(struct needs *n, const char *name)
{
    size_t i = 0;

    pthread_mutex_lock(&n->mutex);
    while (i < n->len && strcmp(n->names[i], name) != 0)
        i++;
    CHECK(i < NAMES_MAX);
    n->names[i] = name;
    n->len = i == n->len ? i + 1 : n->len;
    pthread_mutex_unlock(&n->mutex);
}

static enum hf_status watched_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                   const void *request, void *response)
{
    struct needs *n = (struct needs *)db;

    if (op == HF_OP_TRANSACT_WRITE_ITEMS) {
        const struct hf_transact_write_items *tx = request;

        for (size_t i = 0; i < tx->actions_len; i++)
            need(n, tx->actions[i].put     ? "PutItem"
                    : tx->actions[i].del   ? "DeleteItem"
                    : tx->actions[i].check ? "ConditionCheckItem"
                                           : "UpdateItem");
    } else if (op == HF_OP_EXECUTE_STATEMENT) {
        need(n, "PartiQLSelect"); /* relays have no other statements */
    } else {
        need(n, hf_op_name(op).ptr); /* with a NUL */
    }
    return hf_db_call(s, n->inner, op, request, response);
}

static const struct db_calls watched = {.call = watched_call};

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

static bool is_needed(struct needs *n, const char *name)
{
    bool needed = false;

    pthread_mutex_lock(&n->mutex);
    for (size_t i = 0; i < n->len; i++)
        needed = needed || strcmp(n->names[i], name) == 0;
    pthread_mutex_unlock(&n->mutex);
    return needed;
}

/* All that is there, and then a while in which nothing comes. */
static void deliver(struct hf_scope *s, struct needs *n)
{
    struct hf_outbox *outbox = open_box(s, &n->base, false);
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
    while (!is_needed(n, "PartiQLSelect"))
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

/* ---- what is printed ------------------------------------------------------------------------ */

static void check_policy(struct hf_scope *s, const struct needs *needs,
                         int (*command)(struct cli *cli, size_t len, const char *const *args),
                         const char *role, bool create)
{
    const char *args[] = {"--role", role, "--create"};
    char *out = NULL;
    size_t len = 0;
    struct cli cli = {.scope = s, .out = open_memstream(&out, &len), .err = stderr, .width = 80};
    size_t printed = 0, missing = 0;

    CHECK_INT(CLI_OK, command(&cli, create ? 3 : 2, args));
    CHECK_INT(0, fclose(cli.out));
    for (size_t i = 0; i < needs->len; i++) {
        char action[64];

        snprintf(action, sizeof(action), "\"dynamodb:%s\"", needs->names[i]);
        if (!strstr(out, action))
            fprintf(stderr, "%s needs %s\n", role, needs->names[i]);
        missing += !strstr(out, action);
    }
    CHECK_INT(0, missing);
    for (const char *at = out; (at = strstr(at, "\"dynamodb:")) != NULL; at++)
        printed++;
    if (needs->len != printed)
        for (size_t i = 0; i < needs->len; i++)
            fprintf(stderr, "%s calls %s\n", role, needs->names[i]);
    CHECK_INT(needs->len, printed);
    free(out);
}

TEST(iam, policies_allow_what_is_called_and_no_more)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct needs first = {.base = {.calls = &watched}, .mutex = PTHREAD_MUTEX_INITIALIZER},
                 producer = first, relay = first, admin = first;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    first.inner = db;
    produce(s, &first.base, true);
    check_policy(s, &first, hf__iam_outbox_run, "producer", true);
    hf_db_close(db);

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    producer.inner = relay.inner = admin.inner = db;
    hf_outbox_close(open_box(s, db, true));
    produce(s, &producer.base, false);
    deliver(s, &relay);
    operate(s, &admin.base);
    check_policy(s, &producer, hf__iam_outbox_run, "producer", false);
    check_policy(s, &relay, hf__iam_outbox_run, "relay", false);
    check_policy(s, &admin, hf__iam_outbox_run, "operator", false);
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

static enum hf_status ignore(struct hf_scope *s, struct hf_stream_key stream,
                             const struct hf_stream_info *info, void *user)
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
    const struct hf_stream_key large = {HF_STR("large"), HF_STR("1")},
                               order = {HF_STR("order"), HF_STR("1")};
    struct hf_events_verified verified;
    struct hf_stream_info info;
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
    struct needs first = {.base = {.calls = &watched}, .mutex = PTHREAD_MUTEX_INITIALIZER},
                 writer = first, reader = first, admin = first;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    first.inner = db;
    write_events(s, &first.base, true);
    check_policy(s, &first, hf__iam_events_run, "writer", true);
    hf_db_close(db);

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    writer.inner = reader.inner = admin.inner = db;
    hf_events_close(open_events(s, db, true));
    write_events(s, &writer.base, false);
    follow_events(s, &reader.base);
    look_after_events(s, &admin.base);
    check_policy(s, &writer, hf__iam_events_run, "writer", false);
    check_policy(s, &reader, hf__iam_events_run, "reader", false);
    check_policy(s, &admin, hf__iam_events_run, "admin", false);
    hf_db_close(db);
    hf_scope_free(s);
}
