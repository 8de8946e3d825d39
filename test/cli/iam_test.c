/*
 * cli/iam_test.c: the policies that `holdfast iam outbox` prints allow what is called, and nothing
 * that is not.
 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "db/db.h"
#include "test.h"

#include <holdfast/engine.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>

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

static void deliver(struct hf_scope *s, struct hf_db *db)
{
    struct hf_outbox *outbox = open_box(s, db, false);
    struct hf_sink *sink;
    struct hf_relay *relay;
    uint64_t delivered;

    CHECK_OK(
        hf_sink_new(s, HF_OPTIONS(hf_sink_ops, .name = "test", .send = take_some), NULL, &sink));
    CHECK_OK(hf_relay_open(s, outbox, sink, NULL, &relay));
    CHECK_OK(hf_relay_drain(s, relay, &delivered));
    CHECK_INT(3, delivered);
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

static void check_policy(struct hf_scope *s, const struct needs *needs, const char *role,
                         bool create)
{
    const char *args[] = {"--role", role, "--create"};
    char *out = NULL;
    size_t len = 0;
    struct cli cli = {.scope = s, .out = open_memstream(&out, &len), .err = stderr, .width = 80};
    size_t printed = 0;

    CHECK_INT(CLI_OK, hf__iam_outbox_run(&cli, create ? 3 : 2, args));
    CHECK_INT(0, fclose(cli.out));
    for (size_t i = 0; i < needs->len; i++) {
        char action[64];

        snprintf(action, sizeof(action), "\"dynamodb:%s\"", needs->names[i]);
        if (!strstr(out, action))
            fprintf(stderr, "%s needs %s\n", role, needs->names[i]);
        CHECK(strstr(out, action) != NULL);
    }
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
    struct needs first = {.base = {&watched}, .mutex = PTHREAD_MUTEX_INITIALIZER}, producer = first,
                 relay = first, admin = first;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    first.inner = db;
    produce(s, &first.base, true);
    check_policy(s, &first, "producer", true);
    hf_db_close(db);

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    producer.inner = relay.inner = admin.inner = db;
    hf_outbox_close(open_box(s, db, true));
    produce(s, &producer.base, false);
    deliver(s, &relay.base);
    operate(s, &admin.base);
    check_policy(s, &producer, "producer", false);
    check_policy(s, &relay, "relay", false);
    check_policy(s, &admin, "operator", false);
    hf_db_close(db);
    hf_scope_free(s);
}
