/*
 * outbox/bus_middleware_test.c: what is called around emitting and handling.
 */
#include <holdfast/engine.h>

#include "bus_help.h"

/* A middleware that writes down when it is entered and left, and does as it is told. */
struct layer {
    struct stage *stage;
    const char *name;
    enum {
        PASS,
        DROP,
        NEITHER,
        NEXT_TWICE,
        DROP_TWICE,
        DROP_THEN_NEXT,
        NEXT_THEN_DROP,
        FAIL_BEFORE,
        FAIL_AFTER,
        FORGIVE
    } does;
    bool hide; /* what hf_bus_next() and hf_bus_drop() have to say the second time */
    const char *new_type;
    const char *only; /* for events of this type, others pass; NULL: all */
    void (*inside)(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call);
};

static enum hf_status step(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call)
{
    enum hf_status status;

    switch (layer->does) {
    case DROP:
        return hf_bus_drop(s, call);
    case NEITHER:
        return HF_OK;
    case NEXT_TWICE:
        status = hf_bus_next(s, call);
        CHECK_OK(status);
        status = hf_bus_next(s, call);
        CHECK_INT(HF_INTERNAL, status);
        return layer->hide ? HF_OK : status;
    case DROP_TWICE:
        CHECK_OK(hf_bus_drop(s, call));
        status = hf_bus_drop(s, call);
        return layer->hide ? HF_OK : status;
    case DROP_THEN_NEXT:
        CHECK_OK(hf_bus_drop(s, call));
        status = hf_bus_next(s, call);
        return layer->hide ? HF_OK : status;
    case NEXT_THEN_DROP:
        CHECK_OK(hf_bus_next(s, call));
        status = hf_bus_drop(s, call);
        return layer->hide ? HF_OK : status;
    case FAIL_BEFORE:
        return layer->hide ? HF_DENIED : hf_scope_fail(s, HF_DENIED, "%s objects", layer->name);
    case FAIL_AFTER:
        status = hf_bus_next(s, call);
        return status != HF_OK ? status : hf_scope_fail(s, HF_DENIED, "%s objects", layer->name);
    case FORGIVE:
        (void)!hf_bus_next(s, call);
        return HF_OK;
    default:
        return hf_bus_next(s, call);
    }
}

static enum hf_status layer_run(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct layer *layer = user;
    struct hf_event *event = hf_bus_call_event(call);
    const char *phase = hf_bus_call_phase(call) == HF_BUS_EMIT ? "emit" : "handle";
    enum hf_status status;
    char what[40];

    if (layer->only && !hf_str_equal(event->type, hf_str_from(layer->only)))
        return hf_bus_next(s, call);
    snprintf(what, sizeof(what), "<%s-%s", layer->name, phase);
    stage_say(layer->stage, what, event->type);
    if (layer->inside)
        layer->inside(s, layer, call);
    if (layer->new_type)
        event->type = hf_str_from(layer->new_type);
    status = step(s, layer, call);
    snprintf(what, sizeof(what), "%s-%s>", layer->name, phase);
    stage_say(layer->stage, what, event->type);
    return status;
}

static void use(struct stage *stage, int phases, struct layer *layer)
{
    layer->stage = stage;
    CHECK_OK(hf_bus_use(stage->k->scope, stage->bus, phases, layer_run, layer));
}

static enum hf_status emit(struct stage *stage, const char *type)
{
    struct hf_event event = {.type = hf_str_from(type), .key = HF_STR("k")};

    return hf_bus_emit(stage->k->scope, stage->bus, &event, 1);
}

/* ---- the onion ------------------------------------------------------------------------------ */

STAGE_TEST(bus, middleware_is_around_emitting_and_handling)
{
    struct layer a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c"};
    struct role h = {.name = "h"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &h);
    use(&st, HF_BUS_EMIT | HF_BUS_HANDLE, &a);
    use(&st, HF_BUS_EMIT, &b);
    use(&st, HF_BUS_HANDLE, &c);
    CHECK_OK(emit(&st, "t"));
    CHECK_LOG("<a-emit:t <b-emit:t b-emit>:t a-emit>:t", &st);
    stage_settle(&st);
    CHECK_LOG("<a-handle:t <c-handle:t h:t c-handle>:t a-handle>:t", &st);
    stage_close(&st);
}

STAGE_TEST(bus, middleware_runs_also_when_there_is_no_handler)
{
    struct layer a = {.name = "a"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    use(&st, HF_BUS_HANDLE, &a);
    CHECK_OK(emit(&st, "t"));
    stage_settle(&st);
    CHECK_LOG("<a-handle:t a-handle>:t", &st);
    CHECK_INT(1, stage_failed(&st).events_len);
    stage_close(&st);
}

static void add_a_layer(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call)
{
    static struct layer added;

    (void)call;
    added = (struct layer){.name = "new", .stage = layer->stage};
    CHECK_OK(hf_bus_use(s, layer->stage->bus, HF_BUS_EMIT, layer_run, &added));
    layer->inside = NULL;
}

/* (5) of bus.c */
STAGE_TEST(bus, middleware_that_is_added_on_the_way_is_for_the_next_event)
{
    struct layer a = {.name = "a", .inside = add_a_layer};
    struct stage st;

    stage_open(&st, k, 0, 0);
    use(&st, HF_BUS_EMIT, &a);
    CHECK_OK(emit(&st, "t"));
    CHECK_LOG("<a-emit:t a-emit>:t", &st);
    CHECK_OK(emit(&st, "t"));
    CHECK_LOG("<a-emit:t <new-emit:t new-emit>:t a-emit>:t", &st);
    stage_close(&st);
}

/* ---- changing and dropping ------------------------------------------------------------------ */

static void replace(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call)
{
    (void)layer;
    *hf_bus_call_event(call) =
        (struct hf_event){.type = HF_STR("other"),
                          .key = HF_STR("k"),
                          .correlation = hf_scope_format(s, "c-%d", 1),
                          .headers = HF_ITEM(s, HF_S("by", HF_STR("middleware")))};
}

static void check_replaced(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    (void)s;
    (void)role;
    CHECK_STR("c-1", event->correlation);
    CHECK_STR("middleware", hf_value_str(hf_item_get(event->headers, HF_STR("by"))));
    CHECK_INT(0, event->payload.len);
}

/* What it adds arrives: the seed loses metadata on the way to the table. */
KIT_TEST(bus, what_middleware_makes_of_an_event_is_what_is_stored)
{
    struct layer a = {.name = "a", .inside = replace};
    struct role h = {.name = "h", .inside = check_replaced};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "other", &h);
    use(&st, HF_BUS_EMIT, &a);
    CHECK_OK(hf_bus_emit(k->scope, st.bus,
                         &(struct hf_event){.type = HF_STR("t"), .payload = hf_bytes_of("{}", 2)},
                         1));
    stage_settle(&st);
    CHECK_LOG("<a-emit:t a-emit>:other h:other", &st);
    stage_close(&st);
}

STAGE_TEST(bus, the_handler_is_that_of_the_type_in_the_end)
{
    struct layer a = {.name = "a", .new_type = "t.v2"};
    struct role old = {.name = "old"}, new = {.name = "new"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &old);
    stage_on(&st, "t.v2", &new);
    use(&st, HF_BUS_HANDLE, &a);
    CHECK_OK(emit(&st, "t"));
    stage_settle(&st);
    CHECK_LOG("<a-handle:t new:t.v2 a-handle>:t.v2", &st);
    stage_close(&st);
}

KIT_TEST(bus, what_is_dropped_while_emitting_is_not_stored)
{
    struct layer a = {.name = "a"}, b = {.name = "b", .does = DROP, .only = "bad"},
                 c = {.name = "c"};
    struct hf_event events[] = {{.type = HF_STR("one"), .key = HF_STR("k")},
                                {.type = HF_STR("bad"), .key = HF_STR("k")},
                                {.type = HF_STR("two"), .key = HF_STR("k")}};
    struct role h = {.name = "h"};
    struct stage st;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        return;
    stage_open(&st, k, 0, 0);
    stage_on(&st, "*", &h);
    use(&st, HF_BUS_EMIT, &a);
    use(&st, HF_BUS_EMIT, &b);
    use(&st, HF_BUS_EMIT, &c);
    CHECK_OK(hf_bus_emit(k->scope, st.bus, events, 3));
    CHECK_LOG("<a-emit:one <c-emit:one c-emit>:one a-emit>:one "
              "<a-emit:bad <b-emit:bad b-emit>:bad a-emit>:bad "
              "<a-emit:two <c-emit:two c-emit>:two a-emit>:two",
              &st);
    stage_settle(&st);
    CHECK_LOG("h:one h:two", &st);
    CHECK_OK(emit(&st, "bad")); /* none is left */
    CHECK_INT(0, stage_pending(&st));
    stage_close(&st);
}

KIT_TEST(bus, what_is_dropped_while_handling_is_treated_as_told)
{
    const enum hf_bus_unhandled told[] = {0, HF_BUS_IGNORE, HF_BUS_PARK, HF_BUS_RETRY};

    for (int i = 0; i < 4; i++) {
        struct layer a = {.name = "a", .does = DROP};
        struct role h = {.name = "h"};
        struct hf_event_list failed;
        struct stage st;

        stage_open(&st, k, 0, told[i]);
        stage_on(&st, "t", &h);
        use(&st, HF_BUS_HANDLE, &a);
        CHECK_OK(emit(&st, "t"));
        stage_settle(&st);
        CHECK_INT(0, h.calls);
        failed = stage_failed(&st);
        CHECK_INT(i < 2 ? 0 : 1, failed.events_len);
        if (i >= 2) {
            CHECK_INT(i == 2 ? 1 : STAGE_ATTEMPTS, failed.events[0].attempts);
            CHECK_STR("the middleware dropped events of type t", failed.events[0].error_text);
            CHECK_OK(hf_outbox_discard(k->scope, st.outbox, &failed.events[0].event.id, 1, NULL));
        }
        stage_close(&st);
    }
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* Whether it says so itself or not: what breaks the rules is found out. */
STAGE_TEST(bus, middleware_decides_once)
{
    const char *const twice =
        "middleware 2, while emitting, called hf_bus_next() or hf_bus_drop() more than once";
    const struct {
        int does;
        const char *message;
    } cases[] = {
        {NEITHER, "middleware 2, while emitting, called neither hf_bus_next() nor hf_bus_drop()"},
        {NEXT_TWICE, twice},
        {DROP_TWICE, twice},
        {DROP_THEN_NEXT, twice},
        {NEXT_THEN_DROP, twice},
    };
    struct layer a = {.name = "a"}, b = {.name = "b"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    use(&st, HF_BUS_EMIT, &a);
    use(&st, HF_BUS_EMIT, &b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int hide = 0; hide < 2; hide++) {
            b.does = cases[i].does;
            b.hide = hide;
            CHECK_STATUS(HF_INTERNAL, emit(&st, "t"));
            CHECK_ERROR(HF_INTERNAL, cases[i].message, k->scope);
            CHECK_INT(0, stage_pending(&st));
        }
    stage_close(&st);
}

STAGE_TEST(bus, middleware_that_breaks_the_rules_while_handling_is_a_failure)
{
    struct layer a = {.name = "a", .does = NEITHER};
    struct role h = {.name = "h"};
    struct hf_event_list failed;
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &h);
    use(&st, HF_BUS_HANDLE, &a);
    CHECK_OK(emit(&st, "t"));
    stage_settle(&st);
    failed = stage_failed(&st);
    CHECK_INT(1, failed.events_len);
    CHECK_INT(HF_INTERNAL, failed.events[0].error);
    CHECK_INT(STAGE_ATTEMPTS, failed.events[0].attempts);
    CHECK_INT(0, h.calls);
    stage_close(&st);
}

/* ---- failures ------------------------------------------------------------------------------- */

KIT_TEST(bus, middleware_that_fails_while_emitting_lets_nothing_be_stored)
{
    const int ways[] = {FAIL_BEFORE, FAIL_AFTER};
    struct hf_event events[] = {{.type = HF_STR("good")}, {.type = HF_STR("bad")}};
    struct layer a = {.name = "a", .only = "bad"};
    struct stage st;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        return;
    stage_open(&st, k, 0, 0);
    use(&st, HF_BUS_EMIT, &a);
    for (int i = 0; i < 2; i++) {
        a.does = ways[i];
        CHECK_STATUS(HF_DENIED, hf_bus_emit(k->scope, st.bus, events, 2));
        CHECK_ERROR(HF_DENIED, "a objects", k->scope);
        CHECK_INT(0, stage_pending(&st));
    }
    a.does = FAIL_BEFORE;
    a.hide = true; /* without a word: then there is one that fits, not an older one */
    CHECK_STATUS(HF_INVALID, hf_bus_on(k->scope, st.bus, HF_STR(""), play, NULL));
    CHECK_STATUS(HF_DENIED, hf_bus_emit(k->scope, st.bus, events, 2));
    CHECK_ERROR(HF_DENIED, hf_status_text(HF_DENIED), k->scope);
    stage_close(&st);
}

STAGE_TEST(bus, middleware_that_fails_while_handling_is_tried_again)
{
    struct layer a = {.name = "a", .does = FAIL_AFTER};
    struct role h = {.name = "h"};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &h);
    use(&st, HF_BUS_HANDLE, &a);
    CHECK_OK(emit(&st, "t"));
    stage_turn(&st);
    CHECK_LOG("<a-handle:t h:t a-handle>:t", &st);
    CHECK_ERRORS("retry HF_DENIED a objects", &st);
    a.does = PASS;
    stage_settle(&st);
    CHECK_LOG("<a-handle:t h:t a-handle>:t", &st);
    CHECK_INT(0, stage_failed(&st).events_len);
    stage_close(&st);
}

/* What it returns is what became of the event, whatever happened inside. */
STAGE_TEST(bus, middleware_may_forgive)
{
    struct layer a = {.name = "a", .does = FORGIVE};
    struct role h = {.name = "h", .fail_first = 9};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "t", &h);
    use(&st, HF_BUS_HANDLE, &a);
    CHECK_OK(emit(&st, "t"));
    CHECK_OK(emit(&st, "nobody's"));
    stage_settle(&st);
    CHECK_INT(1, h.calls);
    CHECK_INT(0, stage_failed(&st).events_len);
    CHECK_ERRORS("", &st);
    stage_close(&st);
}

/* ---- what it is told ------------------------------------------------------------------------ */

static struct hf_tx *seen_tx;

static void look(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call)
{
    const struct hf_event *event = hf_bus_call_event(call);

    (void)layer;
    seen_tx = hf_bus_call_tx(call);
    CHECK(seen_tx == NULL || seen_tx == hf_scope_tx(s));
    CHECK(event->time_us == hf_scope_env(s)->wall_us(hf_scope_env(s)->user));
}

static enum hf_status emit_in_tx(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct stage *stage = user;
    struct hf_event event = {.type = HF_STR("t"), .key = HF_STR("k")};
    enum hf_status status = hf_bus_emit_into(s, stage->bus, tx, &event, 1);

    CHECK(seen_tx == tx);
    return status;
}

STAGE_TEST(bus, middleware_is_told_the_transaction_and_the_time)
{
    struct layer a = {.name = "a", .inside = look};
    struct stage st;

    stage_open(&st, k, 0, 0);
    use(&st, HF_BUS_EMIT, &a);
    seen_tx = (struct hf_tx *)(void *)&st;
    CHECK_OK(emit(&st, "t"));
    CHECK(!seen_tx);
    if (kit_has(k, HF_FEATURE_TRANSACTIONS))
        CHECK_OK(hf_tx_run(k->scope, k->db, emit_in_tx, &st, NULL));
    stage_close(&st);
}

static enum hf_status emit_plain_in_tx(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct stage *stage = user;
    struct hf_event event = {.type = HF_STR("t"), .key = HF_STR("k")};

    return hf_bus_emit_into(s, stage->bus, tx, &event, 1);
}

static char seen_id[100];
static const char *new_key, *new_id;
static int64_t new_due_us;

static void look_at_id(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call)
{
    struct hf_event *event = hf_bus_call_event(call);

    (void)s, (void)layer;
    if (new_id)
        event->id = hf_str_from(new_id);
    snprintf(seen_id, sizeof(seen_id), "%.*s", HF_FMT(event->id));
    if (new_key)
        event->key = hf_str_from(new_key);
    if (new_due_us)
        event->due_us = new_due_us;
}

/* (3): also when what it changes would give the event another place, and in a transaction. */
KIT_TEST(bus, middleware_sees_the_id_that_is_given)
{
    struct layer a = {.name = "a", .inside = look_at_id};
    bool transactions = kit_has(k, HF_FEATURE_TRANSACTIONS);
    struct hf_outbox_event event;
    struct stage st;

    stage_open(&st, k, 0, 0);
    use(&st, HF_BUS_EMIT, &a);
    for (int i = 0; i < 5; i++) {
        new_key = i == 1 ? "another" : i == 4 ? "" : NULL;
        new_id = i == 2 ? "mine" : NULL;
        new_due_us = i == 3 ? INT64_C(4102444800000000) : 0;
        seen_id[0] = '\0';
        CHECK_OK(emit(&st, "t"));
        CHECK(seen_id[0] != '\0');
        CHECK_OK(hf_outbox_get(k->scope, hf_bus_outbox(st.bus), hf_str_from(seen_id), &event));
        CHECK_STR(seen_id, event.event.id);
        CHECK(hf_str_equal(event.event.key, hf_str_from(i == 1 ? "another" : i == 4 ? "" : "k")));
        /* What was not changed is where its id says: nothing was stored beside it. */
        if (i == 0 || i == 4)
            CHECK_STR(seen_id, event.ref);
    }
    new_key = new_id = NULL;
    new_due_us = 0;
    if (transactions) {
        seen_tx = NULL;
        a.inside = look_at_id;
        CHECK_OK(hf_tx_run(k->scope, k->db, emit_plain_in_tx, &st, NULL));
        CHECK_OK(hf_outbox_get(k->scope, hf_bus_outbox(st.bus), hf_str_from(seen_id), &event));
        CHECK_STR(seen_id, event.ref);
    }
    stage_close(&st);
}

static void emit_more(struct hf_scope *s, struct layer *layer, struct hf_bus_call *call)
{
    if (hf_str_equal(hf_bus_call_event(call)->type, HF_STR("t")))
        CHECK_OK(hf_bus_emit(s, layer->stage->bus,
                             &(struct hf_event){.type = HF_STR("u"), .key = HF_STR("u")}, 1));
}

static void check_cause(struct hf_scope *s, struct role *role, const struct hf_event *event)
{
    (void)s;
    (void)role;
    if (hf_str_equal(event->type, HF_STR("u")))
        CHECK(event->causation.len > 0);
}

/* It may emit by itself, with the event that is handled as the cause. */
STAGE_TEST(bus, middleware_may_emit)
{
    struct layer a = {.name = "a", .inside = emit_more};
    struct role h = {.name = "h", .inside = check_cause};
    struct stage st;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "*", &h);
    use(&st, HF_BUS_HANDLE, &a);
    CHECK_OK(emit(&st, "t"));
    stage_settle(&st);
    CHECK_INT(2, h.calls);
    CHECK_LOG("<a-handle:t h:t a-handle>:t <a-handle:u h:u a-handle>:u", &st);
    stage_close(&st);
}

/* One event has an id of its own, the next one has not: they have one key, and one place after the
 * other. */
STAGE_TEST(bus, events_of_one_emit_keep_their_order_whoever_gives_ids)
{
    struct role a = {.name = "a"};
    struct stage st;
    struct hf_event events[2] = {{.id = HF_STR("mine"),
                                  .type = HF_STR("first"),
                                  .key = HF_STR("k")},
                                 {.type = HF_STR("second"), .key = HF_STR("k")}};

    stage_open(&st, k, 0, 0);
    stage_on(&st, "first", &a);
    stage_on(&st, "second", &a);
    CHECK_OK(hf_bus_emit(k->scope, st.bus, events, 2));
    stage_settle(&st);
    CHECK_LOG("a:first a:second", &st);
    stage_close(&st);
}

static enum hf_status set_key_k(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    (void)user;
    hf_bus_call_event(call)->key = HF_STR("k");
    return hf_bus_next(s, call);
}

STAGE_TEST(bus, events_of_one_emit_keep_their_order_when_middleware_sets_the_key)
{
    struct role a = {.name = "a"};
    struct stage st;
    int wrong = 0;

    stage_open(&st, k, 0, 0);
    stage_on(&st, "first", &a);
    stage_on(&st, "second", &a);
    CHECK_OK(hf_bus_use(k->scope, st.bus, HF_BUS_EMIT, set_key_k, NULL));
    for (int i = 0; i < 20; i++) {
        struct hf_event events[2] = {{.type = HF_STR("first")}, {.type = HF_STR("second")}};

        CHECK_OK(hf_bus_emit(k->scope, st.bus, events, 2));
        stage_settle(&st);
        wrong += st.len < 8 || memcmp(st.log, "a:first ", 8) != 0;
        st.len = 0;
        test_advance_ms(k->t, 5);
    }
    CHECK_INT(0, wrong);
    stage_close(&st);
}
