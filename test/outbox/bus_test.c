/*
 * outbox/bus_test.c: the event bus, one feature at a time, on every kind of database, by a
 * virtual clock. (n) is an invariant of outbox/bus.c.
 */
#include <holdfast/engine.h>

#include "bus_help.h"

/* ---- from here to there --------------------------------------------------------------------- */

static void check_whole(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    (void)s;
    (void)role;
    CHECK_STR("e-1", event->id);
    CHECK_STR("k-1", event->key);
    CHECK_INT(1700000000000000, event->time_us);
    CHECK_STR("{\"n\":1}", hf_str_of((const char *)event->payload.ptr, event->payload.len));
    CHECK_STR("application/json", event->content_type);
    CHECK_STR("2", event->schema);
    CHECK_STR("shop", event->source);
    CHECK_STR("co", event->correlation);
    CHECK_STR("ca", event->causation);
    CHECK_STR("ag", event->aggregate);
    CHECK_STR("agt", event->aggregate_type);
    CHECK_STR("te", event->tenant);
    CHECK_STR("de", event->destination);
    CHECK_STR("tp", event->trace_parent);
    CHECK_STR("ts", event->trace_state);
    CHECK_STR("yes", hf_value_str(hf_item_get(event->headers, HF_STR("express"))));
}

KIT_TEST(bus, an_event_gets_to_its_handler_whole_and_once)
{
    struct role a = {.name = "a", .inside = check_whole};
    struct stage st;
    struct hf_event event = {.id = HF_STR("e-1"),
                             .type = HF_STR("order.placed"),
                             .key = HF_STR("k-1"),
                             .time_us = 1700000000000000,
                             .payload = hf_bytes_of("{\"n\":1}", 7),
                             .schema = HF_STR("2"),
                             .headers = HF_ITEM(k->scope, HF_S("express", HF_STR("yes"))),
                             .source = HF_STR("shop"),
                             .correlation = HF_STR("co"),
                             .causation = HF_STR("ca"),
                             .aggregate = HF_STR("ag"),
                             .aggregate_type = HF_STR("agt"),
                             .tenant = HF_STR("te"),
                             .destination = HF_STR("de"),
                             .trace_parent = HF_STR("tp"),
                             .trace_state = HF_STR("ts")};

    stage_open(&st, k, 0, 0);
    stage_on(&st, "order.placed", &a);
    CHECK_OK(hf_bus_emit(k->scope, st.bus, &event, 1));
    CHECK_LOG("", &st); /* not before the relay has its turn */
    stage_settle(&st);
    CHECK_LOG("a:order.placed", &st);
    stage_settle(&st);
    CHECK_LOG("", &st);
    CHECK_INT(0, stage_failed(&st).events_len);
    CHECK_ERRORS("", &st);
    CHECK(hf_bus_outbox(st.bus) == st.outbox);
    stage_close(&st);
}

KIT_TEST(bus, many_are_emitted_together_or_not_at_all)
{
    struct hf_event events[101];
    struct role a = {.name = "a"};
    struct stage st;

    for (int i = 0; i < 101; i++)
        events[i] = (struct hf_event){.type = HF_STR("t"), .key = HF_STR("k")};
    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &a);
    CHECK_OK(hf_bus_emit(k->scope, st.bus, events, 0));
    CHECK_OK(hf_bus_emit(k->scope, st.bus, NULL, 0));
    if (kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        CHECK_OK(hf_bus_emit(k->scope, st.bus, events, 100));
        stage_settle(&st);
        CHECK_INT(100, a.calls);
        CHECK_STATUS(HF_LIMIT, hf_bus_emit(k->scope, st.bus, events, 101));
        events[1].type.len = 0;
        CHECK_STATUS(HF_INVALID, hf_bus_emit(k->scope, st.bus, events, 2));
        stage_settle(&st);
        CHECK_INT(100, a.calls);
    }
    stage_close(&st);
}

struct sale {
    struct stage *stage;
    enum hf_status fails;
    bool at_once;
};

static enum hf_status sell(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct sale *sale = user;
    struct hf_put_item put = {.table = sale->stage->k->other,
                              .item = HF_ITEM(s, HF_S("id", HF_STR("7"))),
                              .condition = HF_STR("attribute_not_exists(id)")};
    struct hf_event sold = {.type = HF_STR("sold")};
    enum hf_status status = hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put});

    if (status == HF_OK)
        status = sale->at_once ? hf_bus_emit(s, sale->stage->bus, &sold, 1)
                               : hf_bus_emit_into(s, sale->stage->bus, tx, &sold, 1);
    return status == HF_OK ? sale->fails : status;
}

KIT_TEST(bus, what_is_emitted_in_a_transaction_is_handled_when_it_was_committed)
{
    struct role a = {.name = "a"};
    struct stage st;
    struct sale sale = {.stage = &st, .fails = HF_DENIED};

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        return;
    kit_make_table(k, k->other);
    stage_open(&st, k, 0, 0);
    stage_on(&st, "sold", &a);
    CHECK_STATUS(HF_DENIED, hf_tx_run(k->scope, k->db, sell, &sale, NULL));
    stage_settle(&st);
    CHECK_LOG("", &st);
    sale.at_once = true; /* whatever becomes of the transaction */
    CHECK_STATUS(HF_DENIED, hf_tx_run(k->scope, k->db, sell, &sale, NULL));
    stage_settle(&st);
    CHECK_LOG("a:sold", &st);
    sale.at_once = false;
    sale.fails = HF_OK;
    CHECK_OK(hf_tx_run(k->scope, k->db, sell, &sale, NULL));
    stage_settle(&st);
    CHECK_LOG("a:sold", &st);
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_run(k->scope, k->db, sell, &sale, NULL));
    stage_settle(&st);
    CHECK_LOG("", &st);
    stage_close(&st);
}

/* ---- who handles what ----------------------------------------------------------------------- */

/* (1) */
STAGE_TEST(bus, a_type_has_one_handler)
{
    struct role a = {.name = "a"}, b = {.name = "b"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &a);
    b.stage = &st;
    CHECK_STATUS(HF_DUPLICATE, hf_bus_on(k->scope, st.bus, HF_STR("t"), play, &b));
    CHECK_ERROR(HF_DUPLICATE, "the type t has a handler already", k->scope);
    CHECK_STATUS(HF_DUPLICATE, hf_bus_once(k->scope, st.bus, HF_STR("t"), play, &a));
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("a:t", &st);
    stage_close(&st);
}

STAGE_TEST(bus, a_handler_is_taken_off_by_who_put_it_there)
{
    struct role a = {.name = "a"}, b = {.name = "b"};
    struct stage st;

    stage_open(&st, k, HF_BUS_IGNORE, 0);
    stage_on(&st, "t", &a);
    stage_on(&st, "u", &a);
    stage_once(&st, "v", &b);
    CHECK(!hf_bus_off(st.bus, HF_STR("t"), play, &b));
    CHECK(!hf_bus_off(st.bus, HF_STR("x"), play, &a));
    CHECK(!hf_bus_off(st.bus, HF_STR(""), play, &a));
    CHECK_INT(3, hf_bus_count(st.bus));
    CHECK(hf_bus_off(st.bus, HF_STR("t"), play, &a));
    CHECK(!hf_bus_off(st.bus, HF_STR("t"), play, &a));
    CHECK(hf_bus_off(st.bus, HF_STR("v"), play, &b)); /* also one for one event */
    CHECK_INT(1, hf_bus_count(st.bus));
    stage_emit(&st, "t");
    stage_emit(&st, "v");
    stage_emit(&st, "u");
    stage_settle(&st);
    CHECK_LOG("a:u", &st);
    stage_on(&st, "t", &b); /* the type is free again */
    CHECK_INT(0, hf_bus_off_all(st.bus, HF_STR("nobody's")));
    CHECK_INT(1, hf_bus_off_all(st.bus, HF_STR("t")));
    CHECK_INT(1, hf_bus_count(st.bus));
    stage_on(&st, "t", &b);
    CHECK_INT(2, hf_bus_off_all(st.bus, hf_str_from(NULL)));
    CHECK_INT(0, hf_bus_count(st.bus));
    stage_close(&st);
}

STAGE_TEST(bus, several_types_are_subscribed_to_together_or_not_at_all)
{
    const struct hf_str types[] = {HF_STR("a"), HF_STR("b"), HF_STR("c")};
    const struct hf_str twice[] = {HF_STR("d"), HF_STR("e"), HF_STR("d")};
    const struct hf_str wrong[] = {HF_STR("d"), HF_STR("e*")};
    struct role one = {.name = "one"}, all = {.name = "all"};
    struct stage st;

    stage_open(&st, k, HF_BUS_IGNORE, 0);
    all.stage = &st;
    stage_on(&st, "c", &one);
    CHECK_STATUS(HF_DUPLICATE, hf_bus_subscribe(k->scope, st.bus, types, 3, play, &all));
    CHECK_ERROR(HF_DUPLICATE, "the type c has a handler already", k->scope);
    CHECK_STATUS(HF_DUPLICATE, hf_bus_subscribe(k->scope, st.bus, twice, 3, play, &all));
    CHECK_STATUS(HF_INVALID, hf_bus_subscribe(k->scope, st.bus, wrong, 2, play, &all));
    CHECK_INT(1, hf_bus_count(st.bus));
    CHECK_OK(hf_bus_subscribe(k->scope, st.bus, NULL, 0, play, &all));
    CHECK_OK(hf_bus_subscribe(k->scope, st.bus, types, 2, play, &all));
    stage_emit(&st, "a");
    stage_emit(&st, "c");
    stage_emit(&st, "b");
    stage_settle(&st);
    CHECK_LOG("all:a one:c all:b", &st);
    stage_close(&st);
}

STAGE_TEST(bus, the_registry_can_be_looked_at)
{
    struct role a = {.name = "a"};
    const struct hf_str *types;
    struct stage st;
    size_t len;

    stage_open(&st, k, 0, 0);
    CHECK_OK(hf_bus_types(k->scope, st.bus, &types, &len));
    CHECK_INT(0, len);
    stage_on(&st, "b.*", &a);
    stage_on(&st, "c", &a);
    stage_once(&st, "a", &a);
    CHECK_INT(3, hf_bus_count(st.bus));
    CHECK(hf_bus_has(st.bus, HF_STR("a")));
    CHECK(hf_bus_has(st.bus, HF_STR("b.*")));
    CHECK(!hf_bus_has(st.bus, HF_STR("b.x"))); /* this exact type */
    CHECK(!hf_bus_has(st.bus, HF_STR("")));
    CHECK_OK(hf_bus_types(k->scope, st.bus, &types, &len));
    CHECK_INT(3, len);
    CHECK_STR("a", types[0]);
    CHECK_STR("b.*", types[1]);
    CHECK_STR("c", types[2]);
    CHECK(hf_bus_relay(st.bus));
    stage_close(&st);
}

STAGE_TEST(bus, the_most_exact_handler_is_called)
{
    struct role exact = {.name = "exact"}, deep = {.name = "deep"}, family = {.name = "family"},
                rest = {.name = "rest"};
    struct stage st;

    stage_open(&st, k, HF_BUS_PARK, 0);
    stage_on(&st, "order.*", &family);
    stage_on(&st, "order.item.*", &deep);
    stage_on(&st, "order.placed", &exact);
    stage_emit(&st, "order.placed");
    stage_emit(&st, "order.placed.v2");
    stage_emit(&st, "order.item.added");
    stage_emit(&st, "order.item.added.v2");
    stage_emit(&st, "order.item");
    stage_settle(&st);
    CHECK_LOG("exact:order.placed family:order.placed.v2 deep:order.item.added "
              "deep:order.item.added.v2 family:order.item",
              &st);
    stage_emit(&st, "order");
    stage_emit(&st, "orders.placed");
    stage_emit(&st, "order.");
    stage_settle(&st);
    CHECK_LOG("", &st);
    CHECK_INT(3, stage_failed(&st).events_len);
    stage_on(&st, "*", &rest);
    stage_emit(&st, "order");
    stage_emit(&st, "orders.placed");
    stage_emit(&st, ".");
    stage_emit(&st, "order.canceled");
    stage_settle(&st);
    CHECK_LOG("rest:order rest:orders.placed rest:. family:order.canceled", &st);
    stage_close(&st);
}

STAGE_TEST(bus, types_that_are_none_are_refused)
{
    const char *const wrong[] = {"", "*.x", "a*", "**", "a.**", "a.*.b", "*a", "a.*b"};
    static char longest[HF_EVENT_TEXT_MAX + 2];
    struct hf_bus_wait *wait;
    struct hf_event event;
    struct stage st;

    stage_open(&st, k, 0, 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct hf_str type = hf_str_from(wrong[i]);

        CHECK_STATUS(HF_INVALID, hf_bus_on(k->scope, st.bus, type, play, NULL));
        CHECK_STATUS(HF_INVALID, hf_bus_wait_begin(k->scope, st.bus, type, &wait));
        CHECK(!wait);
        CHECK_STATUS(HF_INVALID, hf_bus_wait_for(k->scope, st.bus, type, 1, &event));
    }
    memset(longest, 'x', sizeof(longest) - 1);
    CHECK_STATUS(HF_INVALID, hf_bus_on(k->scope, st.bus, hf_str_from(longest), play, NULL));
    CHECK_OK(hf_bus_on(k->scope, st.bus, hf_str_of(longest, HF_EVENT_TEXT_MAX), play, NULL));
    CHECK_STATUS(HF_INVALID, hf_bus_on(k->scope, st.bus, HF_STR("t"), NULL, NULL));
    stage_close(&st);
}

/* ---- once ----------------------------------------------------------------------------------- */

/* (3) (4): the event after it is not lost in silence. */
KIT_TEST(bus, once_is_for_one_event_and_the_next_one_is_not_lost)
{
    struct role a = {.name = "a"}, b = {.name = "b"};
    struct hf_event_list failed;
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_once(&st, "t", &a);
    stage_emit(&st, "t");
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("a:t", &st);
    CHECK_INT(0, hf_bus_count(st.bus));
    failed = stage_failed(&st);
    CHECK_INT(1, failed.events_len);
    CHECK_STR("there is no handler for events of type t", failed.events[0].error_text);
    stage_on(&st, "t", &b);
    CHECK_OK(hf_outbox_retry(k->scope, st.outbox, &failed.events[0].event.id, 1, NULL));
    stage_settle(&st);
    CHECK_LOG("b:t", &st);
    CHECK_INT(0, stage_failed(&st).events_len);
    stage_close(&st);
}

KIT_TEST(bus, once_that_fails_is_there_for_the_next_attempt)
{
    struct role a = {.name = "a", .fail_first = 2};
    struct stage st;

    stage_open(&st, k, HF_BUS_IGNORE, 0);
    stage_once(&st, "t", &a);
    stage_emit(&st, "t");
    stage_turn(&st);
    CHECK_LOG("a:t", &st);
    CHECK(hf_bus_has(st.bus, HF_STR("t")));
    stage_settle(&st);
    CHECK_LOG("a:t a:t", &st);
    CHECK(!hf_bus_has(st.bus, HF_STR("t")));
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("", &st);
    CHECK_ERRORS("retry HF_IO a cannot; retry HF_IO a cannot", &st);
    stage_close(&st);
}

static void register_another(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    static struct role another;

    another = (struct role){.stage = role->stage, .name = "another"};
    CHECK(!hf_bus_has(role->stage->bus, event->type)); /* taken away before it is called */
    CHECK_OK(hf_bus_on(s, role->stage->bus, event->type, play, &another));
}

static void take_off(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    (void)s;
    CHECK(hf_bus_off(role->stage->bus, event->type, play, role));
    CHECK(!hf_bus_off(role->stage->bus, event->type, play, role));
}

static void take_all_off(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    (void)s;
    (void)event;
    CHECK_INT(1, hf_bus_off_all(role->stage->bus, hf_str_from(NULL)));
}

/* (4) */
STAGE_TEST(bus, once_that_fails_does_not_come_back_over_others)
{
    struct role a = {.name = "a", .fail_first = 1, .inside = register_another};
    struct role b = {.name = "b", .fail_first = 1, .inside = take_off};
    struct role c = {.name = "c", .fail_first = 1, .inside = take_all_off};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_once(&st, "t", &a);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("a:t another:t", &st);
    CHECK_INT(1, hf_bus_off_all(st.bus, HF_STR("t")));
    stage_once(&st, "t", &b);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("b:t", &st);
    stage_once(&st, "t", &c);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("c:t", &st);
    CHECK_INT(0, hf_bus_count(st.bus));
    CHECK_INT(2, stage_failed(&st).events_len);
    stage_close(&st);
}

static void register_itself(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    if (role->calls < 3)
        CHECK_OK(hf_bus_once(s, role->stage->bus, event->type, play, role));
}

/* (2) */
STAGE_TEST(bus, once_may_ask_for_another_one)
{
    struct role a = {.name = "a", .inside = register_itself};
    struct stage st;

    stage_open(&st, k, HF_BUS_IGNORE, 0);
    stage_once(&st, "t", &a);
    for (int i = 0; i < 4; i++)
        stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("a:t a:t a:t", &st);
    stage_close(&st);
}

/* ---- nobody handles it ---------------------------------------------------------------------- */

/* (3): what the seeds call done was never seen by anybody. */
KIT_TEST(bus, an_event_without_a_handler_becomes_a_dead_letter)
{
    struct hf_event_list failed;
    struct role a = {.name = "a"};
    uint64_t done = 9;
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_ERRORS("given up HF_NOT_FOUND there is no handler for events of type t", &st);
    failed = stage_failed(&st);
    CHECK_INT(1, failed.events_len);
    CHECK_INT(HF_NOT_FOUND, failed.events[0].error);
    CHECK_INT(1, failed.events[0].attempts); /* it would fail again */
    stage_on(&st, "t", &a);
    CHECK_OK(
        hf_outbox_retry(k->scope, hf_bus_outbox(st.bus), &failed.events[0].event.id, 1, &done));
    CHECK_INT(1, done);
    stage_settle(&st);
    CHECK_LOG("a:t", &st);
    CHECK_INT(0, stage_failed(&st).events_len);
    stage_close(&st);
}

KIT_TEST(bus, an_event_without_a_handler_may_wait_for_one)
{
    struct role a = {.name = "a"};
    struct stage st;

    stage_open(&st, k, HF_BUS_RETRY, 0);
    stage_emit(&st, "t");
    stage_turn(&st);
    CHECK_INT(1, stage_pending(&st));
    CHECK_ERRORS("retry HF_NOT_FOUND there is no handler for events of type t", &st);
    stage_on(&st, "t", &a);
    stage_settle(&st);
    CHECK_LOG("a:t", &st);
    stage_emit(&st, "u"); /* but not forever */
    stage_settle(&st);
    CHECK_INT(1, stage_failed(&st).events_len);
    CHECK_INT(STAGE_ATTEMPTS, stage_failed(&st).events[0].attempts);
    stage_close(&st);
}

STAGE_TEST(bus, an_event_without_a_handler_may_be_ignored)
{
    struct stage st;

    stage_open(&st, k, HF_BUS_IGNORE, 0);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_INT(0, stage_failed(&st).events_len);
    CHECK_ERRORS("", &st);
    stage_close(&st);
}

/* Trying again what is not there makes nothing, and what was handled is not handled again. */
KIT_TEST(bus, trying_again_what_is_not_there_leaves_no_ghost)
{
    const struct hf_str ids[] = {HF_STR("nobody"), HF_STR("e-1")};
    struct role a = {.name = "a"};
    uint64_t done = 9;
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "*", &a);
    CHECK_OK(hf_bus_emit(
        k->scope, st.bus,
        &(struct hf_event){.id = HF_STR("e-1"), .type = HF_STR("t"), .time_us = 1700000000000000},
        1));
    stage_settle(&st);
    CHECK_LOG("a:t", &st);
    CHECK_STATUS(HF_NOT_FOUND, hf_outbox_retry(k->scope, st.outbox, ids, 2, &done));
    CHECK_INT(0, done);
    CHECK_INT(0, stage_pending(&st));
    stage_settle(&st);
    CHECK_LOG("", &st);
    stage_close(&st);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* Whatever a handler fails with is a failure of that event: no status of its own calls is taken for
 * something else. */
KIT_TEST(bus, every_failure_of_a_handler_is_one)
{
    const enum hf_status statuses[] = {HF_CONDITION, HF_LOST,      HF_TX_CANCELED,
                                       HF_THROTTLED, HF_NOT_FOUND, HF_DUPLICATE,
                                       HF_LOCKED,    HF_IO,        HF_TX_CONFLICT};
    struct stage st;

    stage_open(&st, k, 0, 0);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct role a = {.name = "a", .fail_first = 9, .fails = statuses[i], .silent = i == 1};
        struct hf_event_list failed;

        stage_on(&st, "t", &a);
        stage_emit(&st, "t");
        stage_turn(&st);
        CHECK_INT(1, a.calls);
        CHECK_INT(1, stage_pending(&st));
        stage_settle(&st);
        CHECK_INT(STAGE_ATTEMPTS, a.calls);
        failed = stage_failed(&st);
        CHECK_INT(1, failed.events_len);
        CHECK_INT(statuses[i], failed.events[0].error);
        CHECK_INT(STAGE_ATTEMPTS, failed.events[0].attempts);
        CHECK_STR(a.silent ? hf_status_text(statuses[i]) : "a cannot", failed.events[0].error_text);
        if (i == 0)
            CHECK_ERRORS("retry HF_CONDITION a cannot; retry HF_CONDITION a cannot; "
                         "given up HF_CONDITION a cannot",
                         &st);
        CHECK_OK(hf_outbox_discard(k->scope, st.outbox, &failed.events[0].event.id, 1, NULL));
        CHECK(hf_bus_off(st.bus, HF_STR("t"), play, &a));
        st.errors_len = st.len = 0;
    }
    stage_close(&st);
}

KIT_TEST(bus, a_failure_keeps_those_behind_it_waiting)
{
    struct role a = {.name = "a", .fail_first = 1}, b = {.name = "b"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &a);
    stage_on(&st, "u", &b);
    stage_emit(&st, "t");
    stage_emit(&st, "u");
    stage_settle(&st);
    CHECK_LOG("a:t a:t b:u", &st);
    stage_close(&st);
}

/* What no event is to blame for is told, too. */
KIT_TEST(bus, trouble_of_the_database_is_told)
{
    struct role a = {.name = "a"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &a);
    stage_emit(&st, "t");
    kit_fault(k, HF_FAULT_THROTTLE, "Query", 0);
    stage_turn(&st);
    kit_no_faults(k);
    CHECK(st.errors_len > 0);
    CHECK(strncmp(st.errors, "retry trouble ", strlen("retry trouble ")) == 0);
    CHECK_INT(0, a.calls);
    stage_settle(&st);
    CHECK_INT(1, a.calls); /* and costs nobody an attempt */
    CHECK_INT(0, stage_failed(&st).events_len);
    stage_close(&st);
}

static char last_line[200];

static void keep_line(enum hf_log_level level, struct hf_str line, void *user)
{
    (void)user;
    snprintf(last_line, sizeof(last_line), "%d %.*s", (int)level, HF_FMT(line));
}

STAGE_TEST(bus, failures_are_logged_when_nobody_wants_them)
{
    struct hf_relay_options relay = {.size = sizeof(relay), .no_threads = true, .max_attempts = 2};
    struct hf_env env = *test_env(k->t);
    struct role a = {.name = "a", .fail_first = 9};
    struct hf_event event = {.id = HF_STR("e-1"), .type = HF_STR("t"), .time_us = 1700000000000000};
    struct stage st = {.k = k};
    struct hf_scope *s;

    last_line[0] = '\0';
    env.log = keep_line;
    s = hf_scope_new(&env);
    CHECK_OK(
        hf_outbox_open(s, k->db,
                       HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = STAGE_BUCKETS),
                       &st.outbox));
    CHECK_OK(hf_bus_open(s, st.outbox, HF_OPTIONS(hf_bus_options, .relay = &relay), &st.bus));
    stage_ready(&st);
    stage_on(&st, "t", &a);
    CHECK_OK(hf_bus_emit(s, st.bus, &event, 1));
    stage_turn(&st);
    CHECK_STR("4 event e-1 of type t will be retried: a cannot", hf_str_from(last_line));
    stage_settle(&st);
    CHECK_STR("3 event e-1 of type t became a dead letter: a cannot", hf_str_from(last_line));
    stage_close(&st);
    hf_scope_free(s);
}

/* ---- cause and correlation ------------------------------------------------------------------ */

struct chain {
    struct role role;
    char id[80], causation[80], correlation[80], trace[80];
};

static void note_chain(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    struct chain *chain = (struct chain *)(void *)role;

    (void)s;
    snprintf(chain->id, sizeof(chain->id), "%.*s", HF_FMT(event->id));
    snprintf(chain->causation, sizeof(chain->causation), "%.*s", HF_FMT(event->causation));
    snprintf(chain->correlation, sizeof(chain->correlation), "%.*s", HF_FMT(event->correlation));
    snprintf(chain->trace, sizeof(chain->trace), "%.*s", HF_FMT(event->trace_parent));
}

KIT_TEST(bus, events_of_a_handler_know_their_cause)
{
    struct chain one = {.role = {.name = "1", .inside = note_chain, .emits = "two"}};
    struct chain two = {.role = {.name = "2", .inside = note_chain, .emits = "three"}};
    struct chain three = {.role = {.name = "3", .inside = note_chain}};
    struct hf_event first = {.type = HF_STR("one"), .trace_parent = HF_STR("tp")};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "one", &one.role);
    stage_on(&st, "two", &two.role);
    stage_on(&st, "three", &three.role);
    CHECK_OK(hf_bus_emit(k->scope, st.bus, &first, 1));
    stage_settle(&st);
    CHECK_LOG("1:one 2:two 3:three", &st);
    CHECK_STR("", hf_str_from(one.causation));
    CHECK_STR("", hf_str_from(one.correlation));
    CHECK_STR(one.id, hf_str_from(two.causation));
    CHECK_STR(one.id, hf_str_from(two.correlation)); /* it began with this one */
    CHECK_STR(two.id, hf_str_from(three.causation));
    CHECK_STR(one.id, hf_str_from(three.correlation));
    CHECK_STR("tp", hf_str_from(three.trace));
    first.correlation = HF_STR("its own");
    CHECK_OK(hf_bus_emit(k->scope, st.bus, &first, 1));
    stage_settle(&st);
    CHECK_STR(two.id, hf_str_from(three.causation));
    CHECK_STR("its own", hf_str_from(three.correlation));
    stage_close(&st);
}

static void emit_with_its_own(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    struct hf_event next = {.type = HF_STR("next"),
                            .causation = HF_STR("c"),
                            .correlation = HF_STR("d"),
                            .trace_parent = HF_STR("e")};

    (void)event;
    CHECK_OK(hf_bus_emit(s, role->stage->bus, &next, 1));
}

STAGE_TEST(bus, events_of_a_handler_may_say_otherwise)
{
    struct role a = {.name = "a", .inside = emit_with_its_own};
    struct chain b = {.role = {.name = "b", .inside = note_chain}};
    struct hf_event outside = {.type = HF_STR("next")};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &a);
    stage_on(&st, "next", &b.role);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("a:t b:next", &st);
    CHECK_STR("c", hf_str_from(b.causation));
    CHECK_STR("d", hf_str_from(b.correlation));
    CHECK_STR("e", hf_str_from(b.trace));
    CHECK_OK(hf_bus_emit(k->scope, st.bus, &outside, 1)); /* and outside there is no cause */
    stage_settle(&st);
    CHECK_STR("", hf_str_from(b.causation));
    stage_close(&st);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Next to a handler, which is called as well: that is what a test of a program wants. */
KIT_TEST(bus, who_waits_gets_the_event_next_to_its_handler)
{
    struct role a = {.name = "a", .fail_first = 1};
    struct hf_bus_wait *exact, *family, *other, *early;
    struct hf_scope *s = kit_scope(k);
    struct hf_event got, again;
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "order.placed", &a);
    CHECK_OK(hf_bus_wait_begin(s, st.bus, HF_STR("order.placed"), &exact));
    CHECK_OK(hf_bus_wait_begin(s, st.bus, HF_STR("order.*"), &family));
    CHECK_OK(hf_bus_wait_begin(s, st.bus, HF_STR("order"), &other));
    CHECK_OK(hf_bus_wait_begin(s, st.bus, HF_STR("order.placed"), &early));
    CHECK_OK(hf_bus_emit(k->scope, st.bus,
                         &(struct hf_event){.type = HF_STR("order.placed"),
                                            .key = HF_STR("7"),
                                            .payload = hf_bytes_of("{}", 2),
                                            .headers =
                                                HF_ITEM(k->scope, HF_S("express", HF_STR("yes")))},
                         1));
    stage_turn(&st);
    CHECK_LOG("a:order.placed", &st);
    CHECK_STATUS(HF_TIMEOUT, hf_bus_wait_end(s, early, 1, &got)); /* the handler has failed */
    CHECK(!got.type.ptr);
    stage_settle(&st);
    CHECK_STATUS(HF_TIMEOUT, hf_bus_wait_end(s, other, 1, &got));
    CHECK_LOG("a:order.placed", &st);
    stage_emit(&st, "order.placed"); /* a later one changes nothing */
    stage_settle(&st);
    CHECK_OK(hf_bus_wait_end(s, exact, 0, &got));
    CHECK_OK(hf_bus_wait_end(s, family, 0, &again));
    CHECK_STR("order.placed", got.type);
    CHECK_STR("7", got.key);
    CHECK_STR("{}", hf_str_of((const char *)got.payload.ptr, got.payload.len));
    CHECK_STR("yes", hf_value_str(hf_item_get(got.headers, HF_STR("express"))));
    CHECK(hf_str_equal(got.id, again.id));
    CHECK(got.id.ptr != again.id.ptr);
    stage_close(&st);
}

/* (3) */
STAGE_TEST(bus, who_waits_is_handler_enough)
{
    struct hf_bus_wait *wait;
    struct hf_event got;
    struct stage st;

    stage_open(&st, k, 0, 0);
    CHECK_OK(hf_bus_wait_begin(k->scope, st.bus, HF_STR("t"), &wait));
    stage_emit(&st, "t");
    stage_emit(&st, "t"); /* but only for one */
    stage_settle(&st);
    CHECK_OK(hf_bus_wait_end(k->scope, wait, 0, &got));
    CHECK_STR("t", got.type);
    CHECK_INT(1, stage_failed(&st).events_len);
    CHECK_INT(0, hf_bus_count(st.bus)); /* nobody who waits is in the registry */
    stage_close(&st);
}

STAGE_TEST(bus, waiting_ends)
{
    struct hf_scope *s = kit_scope(k);
    struct hf_event got;
    int64_t begin_us;
    struct stage st;

    stage_open(&st, k, 0, 0);
    begin_us = k->t->elapsed_us;
    CHECK_STATUS(HF_TIMEOUT, hf_bus_wait_for(s, st.bus, HF_STR("t"), 0, &got));
    CHECK_ERROR(HF_TIMEOUT, "no event of type t within 5000 ms", s);
    CHECK_INT(5000, (k->t->elapsed_us - begin_us) / 1000);
    begin_us = k->t->elapsed_us;
    CHECK_STATUS(HF_TIMEOUT, hf_bus_wait_for(s, st.bus, HF_STR("t"), 7, &got));
    CHECK_INT(7, (k->t->elapsed_us - begin_us) / 1000);
    begin_us = k->t->elapsed_us;
    hf_scope_timeout_ms(s, 50);
    CHECK_STATUS(HF_TIMEOUT, hf_bus_wait_for(s, st.bus, HF_STR("t"), 0, &got));
    CHECK((k->t->elapsed_us - begin_us) / 1000 >= 49);
    CHECK((k->t->elapsed_us - begin_us) / 1000 <= 51);
    hf_scope_timeout_ms(s, 0);
    hf_scope_cancel(s);
    CHECK_STATUS(HF_CANCELED, hf_bus_wait_for(s, st.bus, HF_STR("t"), 0, &got));
    stage_emit(&st, "t"); /* nobody waits any more */
    stage_settle(&st);
    CHECK_INT(1, stage_failed(&st).events_len);
    stage_close(&st);
}

/* ---- competing ------------------------------------------------------------------------------ */

KIT_TEST(bus, a_bus_may_compete_for_its_events)
{
    struct hf_relay_options relay = {.size = sizeof(relay),
                                     .no_threads = true,
                                     .competing = true,
                                     .max_attempts = 2};
    struct role a = {.name = "a", .fail_first = 1}, b = {.name = "b", .fail_first = 9};
    struct stage st = {.k = k};

    CHECK_OK(
        hf_outbox_open(k->scope, k->db,
                       HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = STAGE_BUCKETS),
                       &st.outbox));
    CHECK_OK(hf_bus_open(k->scope, st.outbox,
                         HF_OPTIONS(hf_bus_options, .relay = &relay, .on_error = stage_error,
                                    .user = &st),
                         &st.bus));
    stage_on(&st, "t", &a);
    stage_emit(&st, "t");
    stage_settle(&st);
    CHECK_LOG("a:t a:t", &st);
    CHECK_ERRORS("retry HF_IO a cannot", &st);
    stage_on(&st, "u", &b);
    stage_emit(&st, "u");
    stage_settle(&st);
    CHECK_ERRORS("retry HF_IO b cannot; given up HF_IO b cannot", &st);
    CHECK_INT(1, stage_failed(&st).events_len);
    stage_close(&st);
}

/* ---- options -------------------------------------------------------------------------------- */

static void ended(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                  const struct hf_error *error, void *user)
{
    (void)event;
    (void)outcome;
    (void)error;
    (void)user;
}

STAGE_TEST(bus, what_cannot_be_is_refused)
{
    struct hf_relay_options relay = {.size = sizeof(relay), .on_ended = ended};
    struct hf_bus *bus;
    struct stage st;

    stage_open(&st, k, 0, 0);
    CHECK_STATUS(HF_INVALID, hf_bus_open(k->scope, st.outbox,
                                         HF_OPTIONS(hf_bus_options, .relay = &relay), &bus));
    CHECK(!bus);
    relay = (struct hf_relay_options){.size = sizeof(relay), .dry_run = true};
    CHECK_STATUS(HF_INVALID, hf_bus_open(k->scope, st.outbox,
                                         HF_OPTIONS(hf_bus_options, .relay = &relay), &bus));
    CHECK_STATUS(HF_INVALID,
                 hf_bus_open(k->scope, st.outbox,
                             HF_OPTIONS(hf_bus_options, .unhandled = (enum hf_bus_unhandled)4),
                             &bus));
    CHECK_STATUS(HF_INVALID, hf_bus_use(k->scope, st.bus, 0, NULL, NULL));
    hf_bus_close(NULL);
    stage_close(&st);
}
