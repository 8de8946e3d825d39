/*
 * events/projection_test.c: projections, which change exactly once for each event: beside the
 * appends, and in them.
 */
#include <holdfast/subscribe.h>

#include <stdio.h>
#include <string.h>

#include "events_kit.h"

#define NAME HF_STR("totals")

struct totals {
    struct kit *k;
    const char *fails; /* events of this type fail */
    const char *clash; /* events of this type have a condition that does not hold */
    int calls, resets, reset_fails;
    int spoils; /* so many writes cannot be: the database refuses the whole transaction */
};

/* Count events by type: total/TYPE has n. */
static enum hf_status count(struct hf_scope *s, struct hf_tx *tx,
                            const struct hf_stored_event *event, void *user)
{
    struct totals *totals = user;
    struct hf_update_item update = {
        .table = totals->k->other,
        .key = HF_ITEM(s, HF_S("id", event->type)),
        .update = HF_STR("ADD #n :one"),
        .names = HF_ITEM(s, HF_S("#n", HF_STR("n"))),
        .values = HF_ITEM(s, HF_N(":one", 1)),
    };

    totals->calls++;
    CHECK(hf_scope_tx(s) == tx);
    if (totals->fails && hf_str_equal(event->type, hf_str_from(totals->fails)))
        return hf_scope_fail(s, HF_IO, "%.*s is bad", HF_FMT(event->type));
    if (totals->clash && hf_str_equal(event->type, hf_str_from(totals->clash))) {
        update.condition = HF_STR("#n < :zero");
        update.values = HF_ITEM(s, HF_N(":one", 1), HF_N(":zero", 0));
    }
    if (totals->spoils) {
        totals->spoils--;
        update.update = HF_STR("no such thing");
    }
    return hf_tx_add(s, tx, &(struct hf_transact_write){.update = &update});
}

static int64_t total(struct kit *k, const char *type)
{
    struct hf_get_item get = {.table = k->other,
                              .key = HF_ITEM(k->scope, HF_S("id", hf_str_from(type))),
                              .consistent = HF_YES};
    struct hf_get_item_result got;
    int64_t n = 0;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    (void)hf_value_i64(hf_item_get(got.item, HF_STR("n")), &n);
    return n;
}

static enum hf_status remove_all(struct hf_scope *s, void *user)
{
    struct totals *totals = user;
    struct hf_scan scan = {.table = totals->k->other, .consistent = HF_YES};
    struct hf_scan_result found;

    totals->resets++;
    if (totals->reset_fails) {
        totals->reset_fails--;
        return hf_scope_fail(s, HF_IO, "not now");
    }
    CHECK_OK(hf_scan(s, totals->k->db, &scan, &found));
    for (size_t i = 0; i < found.items_len; i++) {
        struct hf_delete_item del = {.table = totals->k->other,
                                     .key = HF_ITEM(s, HF_V("id", hf_item_get(found.items[i],
                                                                              HF_STR("id"))))};
        struct hf_delete_item_result done;

        CHECK_OK(hf_delete_item(s, totals->k->db, &del, &done));
    }
    return HF_OK;
}

static struct hf_subscription *project(struct kit *k, struct hf_events *store,
                                       struct totals *totals, struct hf_subscribe_options options)
{
    struct hf_subscription *sub;

    options.size = sizeof(options);
    options.project = count;
    options.reset = remove_all;
    options.user = totals;
    options.no_threads = true;
    CHECK_OK(hf_subscribe(k->scope, store, NAME, &options, &sub));
    return sub;
}

static void append_types(struct kit *k, struct hf_events *store, const char *types)
{
    struct hf_new_event events[20];
    struct hf_append append = {.stream = ORDER("1"), .events = events};

    for (; types[append.events_len]; append.events_len++)
        events[append.events_len] =
            (struct hf_new_event){.type = hf_str_of(types + append.events_len, 1)};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
}

KIT_TEST_TX(projection, each_event_counts_once)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST,
                                               HF_FAULT_CONFLICT, HF_FAULT_THROTTLE};
    struct hf_events *store = open_store(k);
    struct totals totals = {.k = k};
    struct hf_subscription_info info;
    int turns = 0;

    kit_make_table(k, k->other);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct hf_subscription *sub =
            project(k, store, &totals, (struct hf_subscribe_options){.max_attempts = 1});

        append_types(k, store, "ab");
        /* More answers are lost than one commit asks for. */
        kit_fault(k, kinds[i], "TransactWriteItems", 12);
        while (hf_subscription_drain(k->scope, sub, NULL) != HF_OK && turns++ < 100)
            test_advance_ms(k->t, 1000);
        kit_no_faults(k);
        CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
        CHECK_INT(i + 1, total(k, "a"));
        CHECK_INT(i + 1, total(k, "b"));
        hf_subscription_close(sub);
    }
    CHECK_OK(hf_subscription_info(k->scope, store, NAME, &info));
    CHECK_INT(8, info.handled);
    hf_events_close(store);
}

/* Several events in one transaction, as long as they fit together. */
KIT_TEST_TX(projection, many_in_one_transaction)
{
    struct hf_events *store = open_store(k);
    struct totals totals = {.k = k};
    struct hf_subscription *sub =
        project(k, store, &totals, (struct hf_subscribe_options){.batch_max = 4});
    struct hf_subscription_metrics metrics;

    kit_make_table(k, k->other);
    append_types(k, store, "abcdefgh");
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(1, total(k, "h"));
    hf_subscription_metrics(sub, &metrics);
    CHECK_INT(2, metrics.checkpoints);
    CHECK_INT(8, totals.calls);

    append_types(k, store, "aabb"); /* one item twice: not in one transaction */
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(3, total(k, "a"));
    CHECK_INT(3, total(k, "b"));
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(projection, stops_or_parks)
{
    struct hf_events *store = open_store(k);
    struct totals totals = {.k = k, .fails = "b"};
    struct hf_subscription *sub =
        project(k, store, &totals, (struct hf_subscribe_options){.max_attempts = 2});
    struct hf_subscription_info info;

    kit_make_table(k, k->other);
    append_types(k, store, "abc");
    CHECK_STATUS(HF_STOPPED, hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(1, total(k, "a"));
    CHECK_INT(0, total(k, "b"));
    hf_subscription_close(sub);

    /* A condition of its own that does not hold is a failure of the event, too. */
    totals.fails = NULL;
    totals.clash = "b";
    sub = project(k, store, &totals,
                  (struct hf_subscribe_options){.max_attempts = 2, .give_up = HF_GIVE_UP_PARK});
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(1, total(k, "a"));
    CHECK_INT(0, total(k, "b"));
    CHECK_INT(1, total(k, "c"));
    CHECK_OK(hf_subscription_info(k->scope, store, NAME, &info));
    CHECK_INT(1, info.parked);
    CHECK_INT(2, info.handled);

    totals.clash = NULL;
    CHECK_OK(hf_subscription_replay(k->scope, store, NAME, NULL, 0, NULL));
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(1, total(k, "b"));
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(1, total(k, "b"));
    CHECK_OK(hf_subscription_info(k->scope, store, NAME, &info));
    CHECK_INT(0, info.parked);
    hf_subscription_close(sub);
    hf_events_close(store);
}

/* What a replay's own transaction fails with is a failure of that event alone; conflicts are not.
 */
KIT_TEST_TX(projection, a_replay_that_fails_holds_up_no_other)
{
    struct hf_events *store = open_store(k);
    struct totals totals = {.k = k, .fails = "b"};
    struct hf_subscription *sub =
        project(k, store, &totals,
                (struct hf_subscribe_options){.max_attempts = 1, .give_up = HF_GIVE_UP_PARK});
    struct hf_subscription_metrics before, after;
    struct hf_parked_list list;

    kit_make_table(k, k->other);
    append_types(k, store, "abb");
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    totals.fails = NULL;
    totals.spoils = 1;
    CHECK_OK(hf_subscription_replay(k->scope, store, NAME, NULL, 0, NULL));
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(1, total(k, "b"));
    CHECK_OK(hf_subscription_parked(k->scope, store, NAME, (struct hf_str){0}, 0, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(2, list.events[0].version);
    /* Some call two actions on one item a canceled transaction. */
    CHECK(list.events[0].error == HF_INVALID || list.events[0].error == HF_TX_CANCELED);
    CHECK(!list.events[0].replay);

    CHECK_OK(hf_subscription_replay(k->scope, store, NAME, NULL, 0, NULL));
    hf_subscription_metrics(sub, &before);
    kit_fault(k, HF_FAULT_CONFLICT, "TransactWriteItems", 0);
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    kit_no_faults(k);
    hf_subscription_metrics(sub, &after);
    CHECK_INT(before.failures, after.failures);
    CHECK_OK(hf_subscription_parked(k->scope, store, NAME, (struct hf_str){0}, 0, &list));
    CHECK_INT(1, list.events_len);
    CHECK(list.events[0].replay);
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(2, total(k, "b"));
    hf_subscription_close(sub);
    hf_events_close(store);
}

KIT_TEST_TX(projection, is_built_again)
{
    struct hf_events *store = open_store(k);
    struct totals totals = {.k = k, .reset_fails = 1};
    struct hf_subscription *sub = project(k, store, &totals, (struct hf_subscribe_options){0});
    struct hf_subscription *stale = project(k, store, &totals, (struct hf_subscribe_options){0});
    uint32_t wait_ms;

    kit_make_table(k, k->other);
    append_types(k, store, "aab");
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(2, total(k, "a"));
    CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, (struct hf_str){0}));
    append_types(k, store, "c");
    /* A reset that fails is called again; nothing is counted before it is done. */
    CHECK_OK(hf_subscription_step(k->scope, sub, &wait_ms));
    CHECK_STATUS(HF_IO, hf_subscription_drain(k->scope, sub, NULL));
    CHECK_ERROR(HF_IO, "the reset function of \"totals\" failed: not now", k->scope);
    CHECK_INT(0, total(k, "c"));
    CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(2, totals.resets);
    CHECK_INT(2, total(k, "a"));
    CHECK_INT(1, total(k, "b"));
    CHECK_INT(1, total(k, "c"));

    /* One that holds the lease no more counts nothing. */
    test_advance_ms(k->t, 1);
    CHECK_STATUS(HF_LOCKED, hf_subscription_step(k->scope, stale, &wait_ms));
    test_advance_ms(k->t, 20000);
    append_types(k, store, "c");
    CHECK_OK(hf_subscription_drain(k->scope, stale, NULL));
    CHECK_STATUS(HF_LOCKED, hf_subscription_drain(k->scope, sub, NULL));
    CHECK_INT(2, total(k, "c"));
    hf_subscription_close(sub);
    hf_subscription_close(stale);
    hf_events_close(store);
}

/* ---- in the append -------------------------------------------------------------------------- */

/* A version is no place in the global order, and a position is none in a stream. */
KIT_TEST_TX(projection, is_not_built_again_from_a_place_that_cannot_be)
{
    struct hf_events *store = open_store(k);
    struct hf_str position = HF_STR("01KFH2J5M00000000000000000");

    kit_make_table(k, k->other);
    for (int stream = 0; stream < 2; stream++) {
        struct totals totals = {.k = k};
        struct hf_subscribe_options options = {.size = 0};
        struct hf_str wrong = stream ? position : HF_STR("1");
        struct hf_subscription *sub;

        if (stream)
            options.stream = ORDER("1");
        sub = project(k, store, &totals, options);
        CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
        CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, wrong)); /* it has no checkpoint */
        CHECK_STATUS(HF_INVALID, hf_subscription_drain(k->scope, sub, NULL));
        CHECK(strstr(hf_scope_error_text(k->scope), stream ? "not a version" : "not a position"));
        CHECK_INT(0, totals.resets);
        CHECK_OK(hf_subscription_rebuild(k->scope, store, NAME, (struct hf_str){0}));
        append_types(k, store, "ab");
        CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
        CHECK_INT(1, totals.resets);

        CHECK_STATUS(HF_INVALID, hf_subscription_rebuild(k->scope, store, NAME, wrong));
        CHECK(strstr(hf_scope_error_text(k->scope), stream ? "not a version" : "not a position"));
        CHECK_OK(hf_subscription_drain(k->scope, sub, NULL));
        CHECK_INT(1, totals.resets);
        CHECK_INT(1, total(k, "b"));
        hf_subscription_close(sub);
        CHECK_OK(hf_subscription_forget(k->scope, store, NAME));
        CHECK_OK(hf_events_reset(k->scope, store));
    }
    hf_events_close(store);
}

struct placing {
    struct hf_events *store;
    struct hf_append append;
    struct totals totals;
    size_t actions; /* out: of the projection */
};

static enum hf_status place(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct placing *p = user;
    enum hf_status status = hf_project_into(s, p->store, tx, count, &p->totals, &p->append, 1);

    p->actions = hf_tx_len(tx);
    return status != HF_OK ? status
                           : hf_events_append_into(s, p->store, tx, &p->append, 1, NULL, NULL);
}

KIT_TEST_TX(projection, into_the_transaction_of_the_append)
{
    struct hf_new_event events[2] = {{.type = HF_STR("a")}, {.type = HF_STR("b")}};
    struct placing p = {.store = open_store(k),
                        .append = {.stream = ORDER("1"),
                                   .expect = HF_EXPECT_NONE,
                                   .events = events,
                                   .events_len = 2},
                        .totals = {.k = k}};
    struct hf_tx *tx;

    kit_make_table(k, k->other);
    CHECK_OK(hf_tx_run(k->scope, k->db, place, &p, NULL));
    CHECK_INT(2, p.actions);
    CHECK_INT(1, total(k, "a"));
    CHECK_INT(1, total(k, "b"));

    /* Not appended: not counted. */
    CHECK_STATUS(HF_CONDITION, hf_tx_run(k->scope, k->db, place, &p, NULL));
    CHECK_INT(1, total(k, "a"));

    /* Not countable: not appended, and nothing is added. */
    p.totals.fails = "b";
    CHECK_STATUS(HF_IO, hf_tx_run(k->scope, k->db, place, &p, NULL));
    CHECK_INT(0, p.actions);
    CHECK(!hf_scope_tx(k->scope));

    /* Too late: it is not a transaction of its own then. */
    p.totals.fails = NULL;
    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_OK(hf_tx_commit(k->scope, tx, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_project_into(k->scope, p.store, tx, count, &p.totals, &p.append, 1));
    CHECK_INT(1, total(k, "a"));
    hf_events_close(p.store);
}

/* What is known of an event before it is appended. */
static enum hf_status look(struct hf_scope *s, struct hf_tx *tx,
                           const struct hf_stored_event *event, void *user)
{
    char *seen = user;
    size_t len = strlen(seen);

    (void)s;
    (void)tx;
    snprintf(seen + len, 200 - len, "%.*s/%.*s %llu %.*s %s %u;", HF_FMT(event->stream.domain),
             HF_FMT(event->stream.id), (unsigned long long)event->version,
             HF_FMT(event->content_type), event->position.ptr ? "?" : "-", event->schema);
    return HF_OK;
}

KIT_TEST_TX(projection, into_an_append_knows_what_is_known)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event events[2] = {{.type = HF_STR("a")},
                                     {.type = HF_STR("b"),
                                      .schema = 3,
                                      .content_type = HF_STR("text/plain")}};
    struct hf_append appends[2] = {{.stream = ORDER("1"),
                                    .expect = HF_EXPECT_VERSION,
                                    .version = 7,
                                    .events = events,
                                    .events_len = 2},
                                   {.stream = ORDER("2"), .events = events, .events_len = 1}};
    char seen[200] = "";
    struct hf_tx *tx;

    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_OK(hf_project_into(k->scope, store, tx, look, seen, appends, 2));
    CHECK_STR("order/1 8 application/json - 1;order/1 9 text/plain - 3;order/2 0 application/json "
              "- 1;",
              hf_str_from(seen));
    hf_events_close(store);
}
