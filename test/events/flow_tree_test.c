/*
 * events/flow_tree_test.c: the way of events through their flows, on every kind of database. (n) is
 * an invariant of events/flow/flow.c.
 */
#include "flow_kit.h"

/* ---- one event ------------------------------------------------------------------------------ */

KIT_TEST_TX(flow_tree, an_event_goes_all_the_way)
{
    struct hf_flow_result result;
    struct hf_stored_event stored;
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .writes = true, .schema = 3});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_LOG("v:a a:a", &st);
    CHECK_TOLD("success:a", &st);
    CHECK_INT(1, result.events_len);
    CHECK_INT(1, result.attempts);
    CHECK_INT(1, result.events[0].version);
    CHECK_INT(3, result.events[0].schema);
    CHECK_STR("7", result.events[0].stream.id);
    CHECK(hf_str_equal(result.events[0].correlation, result.events[0].id));
    CHECK_INT(0, result.events[0].causation.len);
    CHECK_OK(hf_events_get(k->scope, st.store, result.events[0].id, &stored));
    CHECK_STR("a", stored.type);
    CHECK_INT(3, stored.schema);
    CHECK_INT(result.events[0].time_us, stored.time_us);
    CHECK(stage_item(&st, stored.id).ptr != NULL);
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_INT(2, stage_version(&st, "7"));
    stage_close(&st);
}

KIT_TEST_TX(flow_tree, ids_of_a_process_sort_as_they_were_made)
{
    struct hf_str last = HF_STR("");
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a"});
    stage_start(&st);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(submit(&st, "a", "7", &result));
        CHECK(strcmp(last.ptr, result.events[0].id.ptr) < 0);
        last = result.events[0].id;
        if (i == 10)
            k->t->wall_us -= 5000000; /* the clock steps back */
    }
    stage_close(&st);
}

static enum hf_status replace(struct hf_scope *s, struct hf_flow_call *call,
                              struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    (void)call;
    if (part->user)
        event->type = HF_STR("other");
    event->payload = hf_bytes_of("changed", 7);
    event->meta = HF_ITEM(s, HF_S("by", HF_STR("pre_apply")));
    return HF_OK;
}

KIT_TEST_TX(flow_tree, pre_apply_may_change_what_an_event_says_but_not_what_it_is)
{
    struct hf_flow_result result;
    struct hf_stored_event stored;
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .pre_apply = replace, .writes = true});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_LOG("v:a p:a a:a", &st);
    CHECK_OK(hf_events_get(k->scope, st.store, result.events[0].id, &stored));
    CHECK_STR("changed", payload_of(&stored));
    CHECK_STR("pre_apply", hf_value_str(hf_item_get(stored.meta, HF_STR("by"))));
    CHECK_STR("changed", stage_item(&st, stored.id));
    st.parts[0].user = &st;
    CHECK_STATUS(HF_INVALID, submit(&st, "a", "7", NULL));
    CHECK_ERROR(
        HF_INVALID,
        "pre_apply of d/a changed the id, stream, type, causation, correlation or compensates of "
        "the event",
        k->scope);
    stage_close(&st);
}

KIT_TEST_TX(flow_tree, a_refused_event_is_not_stored)
{
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .refuses = HF_DENIED});
    stage_part(&st, (struct part){.type = "b", .fails = HF_IO});
    stage_start(&st);
    CHECK_STATUS(HF_DENIED, submit(&st, "a", "7", &result));
    CHECK_ERROR(HF_DENIED, "a is refused", k->scope);
    CHECK_INT(0, result.events_len);
    CHECK_LOG("v:a", &st);
    CHECK_TOLD("invalid:a", &st);

    /* whatever it is refused with */
    st.parts[0].refuses = HF_DUPLICATE;
    CHECK_STATUS(HF_DUPLICATE, submit(&st, "a", "7", &result));
    CHECK_ERROR(HF_DUPLICATE, "a is refused", k->scope);
    st.parts[0].refuses = HF_CONDITION;
    CHECK_STATUS(HF_CONDITION, submit(&st, "a", "7", &result));
    CHECK_ERROR(HF_CONDITION, "a is refused", k->scope);
    CHECK_LOG("v:a v:a", &st);
    CHECK_TOLD("invalid:a invalid:a", &st);

    /* an apply that failed is not canceled: it did not happen */
    CHECK_STATUS(HF_IO, submit(&st, "b", "7", NULL));
    CHECK_ERROR(HF_IO, "apply of d/b: read or write failed", k->scope);
    CHECK_LOG("v:b a:b", &st);
    CHECK_TOLD("canceled:b", &st);
    CHECK_INT(0, stage_version(&st, "7"));
    stage_close(&st);
}

/* ---- trees ---------------------------------------------------------------------------------- */

/* a leads to b and e, b to c and d, e to f and g: seven events. */
static void seven(struct stage *st)
{
    stage_part(st, (struct part){.type = "a", .follows = {"b", "e"}, .takes_back = "-a"});
    stage_part(st, (struct part){.type = "b", .follows = {"c", "d"}, .takes_back = "-b"});
    stage_part(st, (struct part){.type = "c", .takes_back = "-c"});
    stage_part(st, (struct part){.type = "d", .own_stream = "9", .takes_back = "-d"});
    stage_part(st, (struct part){.type = "e", .follows = {"f", "g"}, .takes_back = "-e"});
    stage_part(st, (struct part){.type = "f", .own_stream = "9", .takes_back = "-f"});
    stage_part(st, (struct part){.type = "g", .takes_back = "-g"});
}

KIT_TEST_TX(flow_tree, a_tree_is_taken_depth_first_and_stored_whole)
{
    struct hf_flow_result result;
    const struct hf_stored_event *events;
    struct hf_event_tree tree;
    struct stage st;
    char order[8] = "";

    stage_open(&st, k);
    seven(&st);
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_LOG("v:a a:a q:a v:b a:b q:b v:c a:c v:d a:d v:e a:e q:e v:f a:f v:g a:g", &st);
    CHECK_TOLD("success:a success:b success:c success:d success:e success:f success:g", &st);
    CHECK_INT(7, result.events_len);
    events = result.events;
    for (int i = 0; i < 7; i++) {
        order[i] = events[i].type.ptr[0];
        CHECK(hf_str_equal(events[i].correlation, events[0].id));
        CHECK_STR(i == 3 || i == 5 ? "9" : "7", events[i].stream.id);
    }
    CHECK_STR("abcdefg", hf_str_from(order));
    CHECK(hf_str_equal(events[1].causation, events[0].id));
    CHECK(hf_str_equal(events[3].causation, events[1].id));
    CHECK(hf_str_equal(events[6].causation, events[4].id));
    CHECK(hf_str_equal(events[6].id,
                       hf_scope_format(k->scope, "%.*s.2.2", HF_FMT(events[0].id)))); /* (4) */
    CHECK_INT(5, events[6].version);
    CHECK_INT(2, events[5].version);
    CHECK_INT(5, stage_version(&st, "7"));
    CHECK_INT(2, stage_version(&st, "9"));
    CHECK_OK(hf_events_tree(k->scope, st.store, events[0].id, 0, &tree));
    CHECK_INT(2, tree.children_len);
    CHECK_INT(2, tree.children[0].children_len);
    CHECK_STR("g", tree.children[1].children[0].event.type.ptr[0] == 'g'
                       ? tree.children[1].children[0].event.type
                       : tree.children[1].children[1].event.type);
    stage_close(&st);
}

/* (2) D5 15: canceled in reverse, and nothing is left of it. */
KIT_TEST_TX(flow_tree, a_nested_tree_of_seven_cancels_cleanly_last_one_first)
{
    struct stage st;

    stage_open(&st, k);
    seven(&st);
    st.parts[6].refuses = HF_DENIED;
    stage_start(&st);
    CHECK_STATUS(HF_DENIED, submit(&st, "a", "7", NULL));
    CHECK_ERROR(HF_DENIED, "g is refused", k->scope);
    CHECK_LOG("v:a a:a q:a v:b a:b q:b v:c a:c v:d a:d v:e a:e q:e v:f a:f v:g "
              "c:f c:e c:d c:c c:b c:a",
              &st);
    CHECK_TOLD("invalid:g canceled:a canceled:b canceled:c canceled:d canceled:e canceled:f", &st);
    CHECK_INT(0, stage_version(&st, "7"));
    CHECK_INT(0, stage_version(&st, "9"));
    st.parts[6].refuses = HF_OK;
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_INT(5, stage_version(&st, "7"));
    stage_close(&st);
}

/* D5 12: what cannot be stored leaves nothing behind in a projection. */
KIT_TEST_TX(flow_tree, what_could_not_be_stored_is_not_applied)
{
    struct stage st;
    struct hf_flow_event event = event_of("a", "7");
    struct hf_flow_result result;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .writes = true, .follows = {"b"}});
    stage_part(&st, (struct part){.type = "b", .writes = true});
    stage_start(&st);
    event.event.id = HF_STR("e");
    kit_fault(k, HF_FAULT_LOST_REQUEST, "TransactWriteItems", 0);
    CHECK_STATUS(HF_IO, hf_flows_submit(k->scope, st.flows, &event, NULL, &result));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    CHECK_LOG("v:a a:a q:a v:b a:b c:b c:a", &st);
    CHECK_TOLD("canceled:a canceled:b", &st);
    CHECK(!stage_item(&st, HF_STR("e")).ptr);
    CHECK_INT(0, stage_version(&st, "7"));

    /* the same once more settles it */
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &event, NULL, &result));
    CHECK(!result.repeated);
    CHECK(stage_item(&st, HF_STR("e")).ptr && stage_item(&st, HF_STR("e.1")).ptr);
    stage_close(&st);
}

KIT_TEST_TX(flow_tree, a_lost_answer_is_settled)
{
    struct stage st;
    struct hf_flow_result result;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .writes = true, .follows = {"b"}});
    stage_part(&st, (struct part){.type = "b", .writes = true});
    stage_start(&st);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 1);
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_LOG("v:a a:a q:a v:b a:b", &st);
    CHECK_INT(2, result.events_len);
    CHECK_INT(2, result.events[1].version);
    CHECK_INT(2, stage_version(&st, "7"));
    stage_close(&st);
}

static enum hf_status write_if_there(struct hf_scope *s, struct hf_flow_call *call,
                                     const struct hf_stored_event *event, void *user)
{
    const struct part *part = user;
    struct hf_put_item put = {.table = part->stage->items,
                              .item = HF_ITEM(s, HF_S("id", HF_STR("one"))),
                              .condition = HF_STR("attribute_exists(id)")};

    (void)event;
    return hf_flow_write(s, call, &(struct hf_transact_write){.put = &put});
}

KIT_TEST_TX(flow_tree, a_condition_of_what_apply_writes_cancels_the_tree)
{
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .apply = write_if_there});
    stage_start(&st);
    CHECK_STATUS(HF_TX_CANCELED, submit(&st, "a", "7", NULL));
    CHECK_LOG("v:a a:a c:a", &st);
    CHECK_TOLD("canceled:a", &st);
    CHECK_INT(0, stage_version(&st, "7"));
    CHECK_OK(
        hf_put_item(k->scope, k->db,
                    &(struct hf_put_item){.table = st.items,
                                          .item = HF_ITEM(k->scope, HF_S("id", HF_STR("one")))},
                    NULL));
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_INT(1, stage_version(&st, "7"));
    stage_close(&st);
}

static enum hf_status out_of_place(struct hf_scope *s, struct hf_flow_call *call,
                                   const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event other = event_of("a", "7");
    struct hf_put_item put = {.table = HF_STR("t"), .item = HF_ITEM(s, HF_S("id", HF_STR("x")))};
    struct hf_transact_write none = {0};
    struct part *part = user;

    (void)event;
    CHECK_STATUS(HF_INVALID, hf_flow_emit(s, call, &other));
    CHECK_ERROR(HF_INVALID, "only consequents, side_effect and compensate may emit events", s);
    if (part->validate) {
        CHECK_STATUS(HF_INVALID, hf_flow_write(s, call, &(struct hf_transact_write){.put = &put}));
        CHECK_ERROR(HF_INVALID, "only apply may call hf_flow_write()", s);
    } else {
        CHECK_STATUS(HF_INVALID, hf_flow_write(s, call, &none));
    }
    CHECK_STATUS(HF_INVALID, hf_flows_submit(s, part->stage->flows, &other, NULL, NULL));
    CHECK_ERROR(
        HF_INVALID,
        "a function of a flow, or an observer that is waited for, cannot submit events or revert "
        "trees",
        s);
    CHECK(!hf_flow_state(call) && hf_flow_version(call) == 0 && !hf_flow_replaying(call));
    CHECK_INT(1, hf_flow_attempt(call));
    return HF_OK;
}

KIT_TEST_TX(flow_tree, what_is_out_of_place_is_refused)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .validate = out_of_place});
    stage_part(&st, (struct part){.type = "b", .apply = out_of_place});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_OK(submit(&st, "b", "7", NULL));
    stage_close(&st);
}

/* ---- limits --------------------------------------------------------------------------------- */

static enum hf_status chain(struct hf_scope *s, struct hf_flow_call *call,
                            const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event next = {.stream = {HF_STR("d"), hf_str_of(NULL, 0)},
                                 .event = {.type = event->type}};
    int *left = user;

    return (*left)-- > 1 ? hf_flow_emit(s, call, &next) : HF_OK;
}

static enum hf_status many(struct hf_scope *s, struct hf_flow_call *call,
                           const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event leaf = {.stream = {HF_STR("d"), hf_str_of(NULL, 0)},
                                 .event = {.type = HF_STR("leaf")}};
    int *count = user;

    (void)event;
    for (int i = 0; i < *count; i++) {
        enum hf_status status = hf_flow_emit(s, call, &leaf);

        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

KIT_TEST_TX(flow_tree, a_tree_has_limits)
{
    struct hf_events *store = open_store(k);
    int levels = 10, count = HF_FLOW_EVENTS_MAX + 1;
    struct hf_flow flows[] = {
        {.domain = HF_STR("d"), .type = HF_STR("chain"), .consequents = chain, .user = &levels},
        {.domain = HF_STR("d"), .type = HF_STR("many"), .consequents = many, .user = &count},
        {.domain = HF_STR("d"), .type = HF_STR("leaf")}};
    struct hf_flow_event event = event_of("chain", "7");
    struct hf_flow_result result;
    struct hf_flows *runtime;

    CHECK_OK(hf_flows_open(k->scope, store, NULL, flows, 3, NULL, 0, NULL, &runtime));
    CHECK_OK(hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_INT(10, result.events_len);
    levels = 11;
    CHECK_STATUS(HF_LIMIT, hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_ERROR(
        HF_LIMIT,
        "the tree of events has more than 10 levels at d/chain: do the events cause each other?",
        k->scope);
    hf_flows_close(runtime);
    CHECK_OK(hf_flows_open(k->scope, store, NULL, flows, 3, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .depth_max = 2), &runtime));
    levels = 2;
    CHECK_OK(hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    levels = 3;
    CHECK_STATUS(HF_LIMIT, hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    event = event_of("many", "8");
    CHECK_STATUS(HF_LIMIT, hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_ERROR(HF_LIMIT, "an event may emit at most 1000 events", k->scope);
    count = HF_FLOW_EVENTS_MAX;
    CHECK_STATUS(HF_LIMIT, hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_ERROR(HF_LIMIT, "a tree has at most 1000 events", k->scope);
    count = 15;
    CHECK_OK(hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_INT(16, result.events_len);
    hf_flows_close(runtime);
    hf_events_close(store);
}

static enum hf_status do_nothing(struct hf_scope *s, struct hf_flow_call *call,
                                 const struct hf_stored_event *event, void *user)
{
    (void)s;
    (void)call;
    (void)event;
    (void)user;
    return HF_OK;
}

/* A tree alone may be large; side effects, and what apply writes, have to fit into the transaction that
 * makes it visible. */
KIT_TEST_TX(flow_tree, what_a_tree_writes_fits_into_a_transaction)
{
    struct hf_events *store = open_store(k);
    int count = 60;
    struct hf_flow flows[] = {
        {.domain = HF_STR("d"), .type = HF_STR("many"), .consequents = many, .user = &count},
        {.domain = HF_STR("d"), .type = HF_STR("leaf")}};
    struct hf_flow_event event = event_of("many", "7");
    struct hf_flow_result result;
    struct hf_outbox_stats stats;
    struct hf_events_page page;
    struct hf_outbox *outbox;
    struct hf_flows *runtime;

    CHECK_OK(
        hf_outbox_open(k->scope, k->db, HF_OPTIONS(hf_outbox_options, .table = k->other), &outbox));
    CHECK_OK(hf_flows_open(k->scope, store, outbox, flows, 2, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .no_threads = true), &runtime));
    CHECK_OK(hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_INT(61, result.events_len);
    CHECK_INT(61, result.events[60].version);
    hf_flows_close(runtime);
    flows[1].side_effect = do_nothing;
    CHECK_OK(hf_flows_open(k->scope, store, outbox, flows, 2, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .no_threads = true), &runtime));
    event.stream.id = HF_STR("8");
    CHECK_OK(hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_INT(61, result.events_len);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(60, stats.pending);
    count = 100;
    event.stream.id = HF_STR("9");
    CHECK_STATUS(HF_LIMIT, hf_flows_submit(k->scope, runtime, &event, NULL, &result));
    CHECK_OK(hf_events_read(k->scope, store, event.stream, NULL, &page));
    CHECK_INT(0, page.version);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(60, stats.pending);
    hf_flows_close(runtime);
    hf_outbox_close(outbox);
    hf_events_close(store);
}

/* ---- derivation ----------------------------------------------------------------------------- */

static enum hf_status by_hand(struct hf_scope *s, struct hf_flow_call *call,
                              const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event child = {.stream = {HF_STR("d"), HF_STR("")},
                                  .event = {.type = HF_STR("leaf"),
                                            .id = HF_STR("chosen"),
                                            .causation = HF_STR("cause"),
                                            .correlation = HF_STR("group"),
                                            .schema = 5,
                                            .time_us = 17}};

    (void)event;
    (void)user;
    return hf_flow_emit(s, call, &child);
}

KIT_TEST_TX(flow_tree, what_an_event_says_by_itself_is_honoured)
{
    struct hf_events *store = open_store(k);
    struct hf_flow flows[] = {{.domain = HF_STR("d"),
                               .type = HF_STR("root"),
                               .consequents = by_hand},
                              {.domain = HF_STR("d"), .type = HF_STR("leaf")}};
    struct hf_stored_event parent = {.id = HF_STR("p"), .correlation = HF_STR("pc")};
    struct hf_flow_event event = event_of("root", "7");
    struct hf_flow_result result;
    struct hf_flows *runtime;

    CHECK_OK(hf_flows_open(k->scope, store, NULL, flows, 2, NULL, 0, NULL, &runtime));
    CHECK_OK(hf_flows_submit(k->scope, runtime, &event,
                             HF_OPTIONS(hf_submit_options, .parent = &parent), &result));
    CHECK_STR("p", result.events[0].causation);
    CHECK_STR("pc", result.events[0].correlation);
    CHECK_STR("chosen", result.events[1].id);
    CHECK_STR("cause", result.events[1].causation);
    CHECK_STR("group", result.events[1].correlation);
    CHECK_STR("", result.events[1].stream.id);
    CHECK_INT(5, result.events[1].schema);
    CHECK_INT(17, result.events[1].time_us);
    hf_flows_close(runtime);
    hf_events_close(store);
}

/* ---- once ----------------------------------------------------------------------------------- */

KIT_TEST_TX(flow_tree, an_event_with_an_id_is_stored_once)
{
    struct hf_flow_event event = event_of("a", "7"), other = event_of("c", "7");
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    seven(&st);
    stage_start(&st);
    event.event.id = other.event.id = HF_STR("once");
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &event, NULL, &result));
    CHECK(!result.repeated);
    CHECK_LOG("v:a a:a q:a v:b a:b q:b v:c a:c v:d a:d v:e a:e q:e v:f a:f v:g a:g", &st);
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &event, NULL, &result));
    CHECK(result.repeated);
    CHECK_INT(7, result.events_len);
    CHECK_STR("once", result.events[0].id);
    CHECK_STR("once.1.1", result.events[2].id);
    CHECK_STR("g", result.events[6].type);
    CHECK_INT(5, result.events[6].version);
    CHECK_LOG("", &st);
    CHECK_STATUS(HF_DUPLICATE, hf_flows_submit(k->scope, st.flows, &other, NULL, &result));
    CHECK_ERROR(HF_DUPLICATE, "id once is already used by an event d/a of stream 7", k->scope);
    CHECK_INT(5, stage_version(&st, "7"));
    stage_close(&st);
}
