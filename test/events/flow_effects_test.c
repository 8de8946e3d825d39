/*
 * events/flow_effects_test.c: side effects, on every kind of database, by a virtual clock. (n) is
 * an invariant of events/flow/flow_effect.c.
 */
#include "events/store/events.h"
#include "flow_kit.h"

static struct hf_event_list failed_ones(struct stage *st)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_failed(st->k->scope, st->outbox, NULL, &list));
    return list;
}

KIT_TEST_TX(flow_effects, a_side_effect_is_run_after_the_event_was_stored)
{
    struct hf_event_list list;
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true, .follows = {"b"}});
    stage_part(&st, (struct part){.type = "b", .has_effect = true});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_LOG("v:a a:a q:a v:b a:b", &st);
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_INT(2, list.events_len);
    CHECK_STR("flow.d.a", list.events[0].event.type);
    CHECK_STR("7", list.events[0].event.key);
    CHECK(hf_str_equal(list.events[0].event.causation, result.events[0].id));
    stage_settle(&st, 1000);
    CHECK_LOG("e:a e:b", &st);
    CHECK_TOLD("success:a success:b done:a done:b", &st);
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_INT(0, list.events_len);
    stage_settle(&st, 1000);
    CHECK_LOG("", &st);
    stage_close(&st);
}

KIT_TEST_TX(flow_effects, what_is_refused_has_no_side_effects)
{
    struct hf_event_list list;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true, .follows = {"b"}});
    stage_part(&st, (struct part){.type = "b", .refuses = HF_DENIED});
    stage_start(&st);
    CHECK_STATUS(HF_DENIED, submit(&st, "a", "7", NULL));
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox,
                               HF_OPTIONS(hf_event_list_options, .not_due_too = true), &list));
    CHECK_INT(0, list.events_len);
    stage_close(&st);
}

/* D5 13: memory only, and lost on a crash. Here another process runs it. */
KIT_TEST_TX(flow_effects, side_effects_outlive_the_process)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true});
    st.o.no_effects = true;
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    stage_settle(&st, 5000);
    CHECK_LOG("v:a a:a", &st);
    CHECK(!hf_flows_relay(st.flows));
    hf_flows_close(st.flows);
    st.o.no_effects = false;
    stage_start(&st);
    CHECK(hf_flows_relay(st.flows) != NULL);
    stage_settle(&st, 1000);
    CHECK_LOG("e:a", &st);
    stage_close(&st);
}

/* D5 13: with backoff, and a dead letter that is told as failed, not as done. */
KIT_TEST_TX(flow_effects, what_fails_is_tried_again_after_delays_and_put_aside_in_the_end)
{
    struct hf_event_list list;
    int64_t before;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st,
               (struct part){.type = "a", .has_effect = true, .retries = 3, .effect_fails = 3});
    stage_part(&st, (struct part){.type = "b", .has_effect = true, .effect_fails = 1});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    before = k->t->elapsed_us;
    stage_settle(&st, 30000);
    CHECK_LOG("v:a a:a e:a e:a e:a e:a", &st);
    CHECK_TOLD("success:a retry:a retry:a retry:a done:a", &st);
    CHECK(k->t->elapsed_us - before > 6000000); /* 1 s, 2 s and 4 s, by about 10 % */
    CHECK_INT(0, failed_ones(&st).events_len);

    st.parts[0].effect_fails = 4;
    CHECK_OK(submit(&st, "a", "7", NULL));
    stage_settle(&st, 30000);
    CHECK_LOG("v:a a:a e:a e:a e:a e:a", &st);
    CHECK_TOLD("success:a retry:a retry:a retry:a failed:a", &st);
    list = failed_ones(&st);
    CHECK_INT(1, list.events_len);
    CHECK_STR("attempt 4 failed", list.events[0].error_text);

    /* without retries it is a dead letter at once, and can be run again by hand */
    CHECK_OK(submit(&st, "b", "7", NULL));
    stage_settle(&st, 5000);
    CHECK_LOG("v:b a:b e:b", &st);
    CHECK_TOLD("success:b failed:b", &st);
    CHECK_INT(2, failed_ones(&st).events_len);
    CHECK_OK(hf_outbox_retry_all(k->scope, st.outbox, NULL, NULL));
    stage_settle(&st, 5000);
    CHECK_INT(0, failed_ones(&st).events_len);
    stage_close(&st);
}

/* D5 13: events that a side effect leads to are linked to it. */
KIT_TEST_TX(flow_effects, events_of_a_side_effect_are_linked_and_stored_once)
{
    const struct hf_stored_event *caused;
    struct hf_stored_event event;
    struct hf_flow_result result;
    struct hf_event_tree tree;
    size_t len;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){
                        .type = "a", .has_effect = true, .leads_to = {"b", "c"}, .follows = {"d"}});
    stage_part(&st, (struct part){.type = "b", .follows = {"d"}});
    stage_part(&st, (struct part){.type = "c", .own_stream = "9"});
    stage_part(&st, (struct part){.type = "d"});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", &result));
    stage_settle(&st, 1000);
    CHECK_LOG("v:a a:a q:a v:d a:d e:a v:b a:b q:b v:d a:d v:c a:c", &st);
    CHECK_OK(hf_events_caused_by(k->scope, st.store, result.events[0].id, &caused, &len));
    CHECK_INT(3, len);
    CHECK_OK(hf_events_get(k->scope, st.store,
                           hf_scope_format(k->scope, "%.*s.e1", HF_FMT(result.events[0].id)),
                           &event));
    CHECK_STR("b", event.type);
    CHECK(hf_str_equal(event.causation, result.events[0].id));
    CHECK(hf_str_equal(event.correlation, result.events[0].id));
    CHECK_STR("7", event.stream.id);
    CHECK_OK(hf_events_tree(k->scope, st.store, result.events[0].id, 0, &tree));
    CHECK_INT(3, tree.children_len);
    CHECK_INT(1, stage_version(&st, "9"));
    CHECK_INT(4, stage_version(&st, "7"));
    stage_close(&st);
}

/* (2): it failed after its first event was stored. */
KIT_TEST_TX(flow_effects, running_it_again_stores_nothing_twice)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(
        &st, (struct part){.type = "a", .has_effect = true, .leads_to = {"b", "c"}, .retries = 1});
    stage_part(&st, (struct part){.type = "b"});
    stage_part(&st, (struct part){.type = "c", .refuses = HF_DENIED});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    stage_settle(&st, 500);
    CHECK_LOG("v:a a:a e:a v:b a:b v:c", &st);
    CHECK_TOLD("success:a success:b invalid:c retry:a", &st);
    st.parts[2].refuses = HF_OK;
    stage_settle(&st, 5000);
    CHECK_LOG("e:a v:c a:c", &st);
    CHECK_TOLD("success:c done:a", &st);
    CHECK_INT(3, stage_version(&st, "7"));
    stage_close(&st);
}

/* The process dies after the events of a side effect were stored, before that was noted. */
KIT_TEST_TX(flow_effects, a_crash_after_a_side_effect_runs_it_again)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true, .leads_to = {"b"}});
    stage_part(&st, (struct part){.type = "b"});
    st.relay.lease_ms = 1000;
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    kit_fault(k, HF_FAULT_ERROR, "BatchWriteItem", 0); /* how a delivery is noted */
    for (int i = 0; i < 20; i++) {
        uint32_t wait_ms;

        CHECK_OK(hf_flows_step(k->scope, st.flows, &wait_ms));
        test_advance_ms(k->t, 10);
    }
    CHECK_LOG("v:a a:a e:a v:b a:b", &st);
    hf_flows_close(st.flows);
    kit_no_faults(k);
    test_advance_ms(k->t, 60000);
    stage_start(&st);
    stage_settle(&st, 30000);
    CHECK_LOG("e:a", &st); /* and b is there already */
    CHECK_INT(2, stage_version(&st, "7"));
    CHECK_INT(0, failed_ones(&st).events_len);
    stage_close(&st);
}

/* (3) */
KIT_TEST_TX(flow_effects, what_nobody_knows_is_put_aside)
{
    struct hf_event stranger = {.type = HF_STR("order.placed")};
    struct hf_event_list list;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true});
    stage_start(&st);
    CHECK_OK(hf_outbox_emit(k->scope, st.outbox, &stranger, 1, NULL));
    stage_settle(&st, 1000);
    list = failed_ones(&st);
    CHECK_INT(1, list.events_len);
    CHECK_STR("the event in the outbox is not a side effect of a flow", list.events[0].error_text);
    CHECK_OK(hf_outbox_discard_all(k->scope, st.outbox, NULL, NULL));

    /* a program that does not have that flow any more */
    hf_flows_close(st.flows);
    st.o.no_effects = true;
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    hf_flows_close(st.flows);
    st.parts[0].type = "b";
    st.o.no_effects = false;
    stage_start(&st);
    stage_settle(&st, 1000);
    list = failed_ones(&st);
    CHECK_INT(1, list.events_len);
    CHECK_STR("there is no flow with a side effect for d/a", list.events[0].error_text);
    stage_close(&st);
}

/* (3): its payload is in a blob store that is not there; others do not wait for it. */
KIT_TEST_TX(flow_effects, a_payload_out_of_reach_is_put_aside)
{
    static const uint8_t large[1000] = {'x'};
    struct hf_flow_event event = {.stream = {HF_STR("d"), HF_STR("7")},
                                  .event = {.id = HF_STR("large"),
                                            .type = HF_STR("a"),
                                            .payload = {large, sizeof(large)}}};
    struct hf_event_list list;
    struct hf_blobs *blobs, *part;
    struct stage st;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    stage_open(&st, k);
    hf_events_close(st.store);
    st.store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
    stage_part(&st, (struct part){.type = "a", .has_effect = true});
    stage_part(&st, (struct part){.type = "b", .has_effect = true});
    stage_start(&st);
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &event, NULL, NULL));
    CHECK_OK(submit(&st, "b", "7", NULL));
    part = st.store->blobs;
    st.store->blobs = NULL;
    stage_settle(&st, 5000);
    st.store->blobs = part;
    CHECK_LOG("v:a a:a v:b a:b e:b", &st);
    list = failed_ones(&st);
    CHECK_INT(1, list.events_len);
    CHECK_INT(HF_UNSUPPORTED, list.events[0].error);
    CHECK(strstr(list.events[0].error_text.ptr, "event large"));
    stage_close(&st);
    hf_blobs_close(blobs);
}

/* (1) */
KIT_TEST_TX(flow_effects, an_event_that_cannot_be_read_costs_no_attempt)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    kit_fault(k, HF_FAULT_ERROR, "GetItem", 3);
    stage_settle(&st, 20000);
    kit_no_faults(k);
    stage_settle(&st, 20000);
    CHECK_LOG("v:a a:a e:a", &st);
    CHECK_TOLD("success:a done:a", &st);
    CHECK_INT(0, failed_ones(&st).events_len);
    stage_close(&st);
}

static enum hf_status look_around(struct hf_scope *s, struct hf_flow_call *call,
                                  const struct hf_stored_event *event, void *user)
{
    struct hf_put_item put = {.table = HF_STR("t"), .item = HF_ITEM(s, HF_S("id", HF_STR("x")))};

    (void)user;
    CHECK_INT(1, hf_flow_attempt(call));
    CHECK_INT(1, event->version);
    CHECK(event->position.len == HF_POSITION_LEN);
    CHECK(!hf_flow_state(call));
    CHECK_STATUS(HF_INVALID, hf_flow_write(s, call, &(struct hf_transact_write){.put = &put}));
    return HF_OK;
}

KIT_TEST_TX(flow_effects, a_side_effect_sees_the_stored_event)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .has_effect = true, .effect = look_around});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    stage_settle(&st, 1000);
    CHECK_TOLD("success:a done:a", &st);
    stage_close(&st);
}

static struct hf_str by_payload(const struct hf_flow_event *event, void *user)
{
    (void)user;
    return hf_str_of((const char *)event->event.payload.ptr, event->event.payload.len);
}

KIT_TEST_TX(flow_effects, side_effects_of_one_shard_key_are_in_order)
{
    struct hf_flow_event event = event_of("a", "7");
    struct hf_event_list list;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a",
                                  .has_effect = true,
                                  .effect_fails = 1,
                                  .retries = 1,
                                  .shard_key = by_payload});
    stage_part(&st, (struct part){.type = "b", .has_effect = true, .shard_key = by_payload});
    stage_start(&st);
    event.event.payload = hf_bytes_of("k", 1);
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &event, NULL, NULL));
    event.event.type = HF_STR("b");
    event.stream.id = HF_STR("8");
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &event, NULL, NULL));
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_STR("k", list.events[1].event.key);
    stage_settle(&st, 10000);
    CHECK_LOG("v:a a:a v:b a:b e:a e:a e:b", &st);
    stage_close(&st);
}
