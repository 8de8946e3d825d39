/*
 * events/revert_test.c: taking trees back, on every kind of database. (n) is an invariant of
 * events/flow/revert.c.
 */
#include "flow_kit.h"

/* a leads to b and e, b to c and d, e to f; "-x" takes x back. */
static void tree_of_six(struct stage *st)
{
    stage_part(st, (struct part){.type = "a", .follows = {"b", "e"}, .takes_back = "-a"});
    stage_part(st, (struct part){.type = "b", .follows = {"c", "d"}, .takes_back = "-b"});
    stage_part(st, (struct part){.type = "c", .takes_back = "-c"});
    stage_part(st, (struct part){.type = "d", .takes_back = "-d", .own_stream = "9"});
    stage_part(st, (struct part){.type = "e", .follows = {"f"}, .takes_back = "-e"});
    stage_part(st, (struct part){.type = "f", .takes_back = "-f"});
}

static void submit_as(struct stage *st, const char *type, const char *id)
{
    struct hf_flow_event event = event_of(type, "7");

    event.event.id = hf_str_from(id);
    event.event.payload = hf_bytes_of("x", 1);
    CHECK_OK(hf_flows_submit(st->k->scope, st->flows, &event, NULL, NULL));
    st->log[0] = st->told[0] = 0;
}

KIT_TEST_TX(revert, a_tree_is_taken_back_newest_first_and_leaves_before_parents)
{
    struct hf_reverted done;
    const struct hf_reverted *e, *b;
    struct hf_stored_event event;
    struct hf_events_page page;
    struct stage st;

    stage_open(&st, k);
    tree_of_six(&st);
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK_LOG("r:f r:e r:d r:c r:b r:a", &st);
    CHECK_TOLD("success:-f success:-e success:-d success:-c success:-b success:-a "
               "reverted:f reverted:e reverted:d reverted:c reverted:b reverted:a",
               &st);
    CHECK_STR("root", done.id);
    CHECK_INT(1, done.events_len);
    CHECK_STR("-a", done.events[0].type);
    CHECK_STR("root.r1", done.events[0].id);
    CHECK_INT(2, done.children_len);
    e = &done.children[0];
    b = &done.children[1];
    CHECK_STR("root.2", e->id);
    CHECK_STR("root.1", b->id);
    CHECK_STR("root.1.2", b->children[0].id);
    CHECK_STR("-d", b->children[0].events[0].type);
    CHECK_INT(10, done.events[0].version); /* behind five of its own and four others */
    CHECK(!done.repeated && !e->repeated);

    /* what such an event says */
    CHECK_OK(hf_events_get(k->scope, st.store, HF_STR("root.1.2.r1"), &event));
    CHECK_STR("-d", event.type);
    CHECK_STR("root.1.2", event.compensates);
    CHECK_STR("root.1.2", event.causation);
    CHECK_STR("root", event.correlation);
    CHECK_STR("9", event.stream.id);
    CHECK_OK(hf_events_read(k->scope, st.store,
                            (struct hf_event_stream_key){HF_STR("d"), HF_STR("7")},
                            HF_OPTIONS(hf_events_read_options, .from = 6), &page));
    CHECK_INT(5, page.events_len);
    CHECK_STR("-f", page.events[0].type);
    CHECK_STR("-e", page.events[1].type);
    CHECK_STR("-c", page.events[2].type);
    CHECK_STR("-b", page.events[3].type);
    CHECK_STR("-a", page.events[4].type);
    stage_close(&st);
}

/* (2) D5 17: running it twice compensates once. */
KIT_TEST_TX(revert, taking_back_twice_answers_with_what_the_first_did)
{
    struct hf_reverted first, second;
    struct hf_revert_preview preview;
    struct stage st;

    stage_open(&st, k);
    tree_of_six(&st);
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_OK(hf_flows_preview_revert(k->scope, st.flows, HF_STR("root"), &preview));
    CHECK_STR("a", preview.root.type);
    CHECK_INT(5, preview.descendants_len);
    CHECK_INT(6, preview.count);
    CHECK_INT(0, preview.reverted);
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &first));
    st.log[0] = st.told[0] = 0;
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &second));
    CHECK_LOG("", &st);
    CHECK_TOLD("", &st);
    CHECK(second.repeated && second.children[1].children[0].repeated);
    CHECK_STR("root.r1", second.events[0].id);
    CHECK_INT(first.events[0].version, second.events[0].version);
    CHECK_INT(2, second.children_len);
    CHECK_STR("-d", second.children[1].children[0].events[0].type);
    CHECK_INT(10, stage_version(&st, "7"));
    CHECK_INT(2, stage_version(&st, "9"));
    CHECK_OK(hf_flows_preview_revert(k->scope, st.flows, HF_STR("root"), &preview));
    CHECK_INT(0, preview.count);
    CHECK_INT(6, preview.reverted);
    CHECK_INT(5, preview.descendants_len); /* what takes back is not part of it */
    stage_close(&st);
}

KIT_TEST_TX(revert, what_stands_in_the_way_is_listed)
{
    struct hf_revert_check check;
    struct hf_revert_preview preview;
    struct stage st;

    stage_open(&st, k);
    tree_of_six(&st);
    st.parts[2].takes_back = NULL;
    st.parts[5].takes_back = NULL;
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_OK(hf_flows_can_revert(k->scope, st.flows, HF_STR("root"), &check));
    CHECK(!check.can);
    CHECK_INT(2, check.obstacles_len);
    CHECK_STR("root.1.1", check.obstacles[0].event.id);
    CHECK_STR("the flow d/c has no compensate", check.obstacles[0].why);
    CHECK_STR("f", check.obstacles[1].event.type);
    CHECK_STATUS(HF_UNSUPPORTED, hf_flows_revert(k->scope, st.flows, HF_STR("root"), NULL));
    CHECK_ERROR(HF_UNSUPPORTED,
                "2 of 6 events cannot be reverted; event root.1.1: the flow d/c has no "
                "compensate",
                k->scope);
    CHECK_LOG("", &st);
    CHECK_TOLD("revert-failed:a", &st);
    CHECK_INT(5, stage_version(&st, "7"));

    /* roots only */
    CHECK_OK(hf_flows_can_revert(k->scope, st.flows, HF_STR("root.1"), &check));
    CHECK(!check.can);
    CHECK_STR("it is not a root: event root caused it", check.obstacles[0].why);
    CHECK_STATUS(HF_INVALID, hf_flows_revert(k->scope, st.flows, HF_STR("root.1"), NULL));
    CHECK_ERROR(
        HF_INVALID,
        "event root.1 is not a root, event root caused it: only whole trees can be reverted",
        k->scope);
    CHECK_STATUS(HF_INVALID,
                 hf_flows_preview_revert(k->scope, st.flows, HF_STR("root.1"), &preview));
    CHECK_STATUS(HF_NOT_FOUND, hf_flows_revert(k->scope, st.flows, HF_STR("none"), NULL));
    CHECK_STATUS(HF_NOT_FOUND, hf_flows_can_revert(k->scope, st.flows, HF_STR("none"), &check));

    /* a program that has not got that flow */
    hf_flows_close(st.flows);
    st.parts[2] = st.parts[--st.parts_len];
    st.parts[2].takes_back = "-f";
    stage_start(&st);
    CHECK_OK(hf_flows_can_revert(k->scope, st.flows, HF_STR("root"), &check));
    CHECK_INT(1, check.obstacles_len);
    CHECK_STR("there is no flow for d/c", check.obstacles[0].why);
    stage_close(&st);
}

/* (3) D5 17: all of it or nothing. */
KIT_TEST_TX(revert, a_failure_leaves_the_tree_as_it_was)
{
    struct hf_reverted done;
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    tree_of_six(&st);
    stage_part(&st, (struct part){.type = "-f", .writes = true});
    stage_part(&st, (struct part){.type = "-b", .fails = HF_IO, .writes = true});
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_STATUS(HF_IO, hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK_LOG("r:f a:-f r:e r:d r:c r:b a:-b c:-f", &st);
    CHECK_TOLD("revert-failed:a", &st);
    CHECK(!done.id.ptr);
    CHECK_INT(5, stage_version(&st, "7"));
    CHECK(!stage_item(&st, HF_STR("root.2.1.r1")).ptr);

    /* no answer, and then it is done once */
    st.parts[7].fails = HF_OK;
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 1);
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK_INT(10, stage_version(&st, "7"));
    CHECK_STR("x", hf_str_from("x"));
    CHECK(stage_item(&st, HF_STR("root.2.1.r1")).ptr != NULL);
    CHECK(stage_item(&st, HF_STR("root.1.r1")).ptr != NULL);
    kit_no_faults(k);
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK_INT(10, stage_version(&st, "7"));
    stage_close(&st);
}

/* Events that take back have a flow of their own: apply and observers, and nothing else. */
KIT_TEST_TX(revert, events_that_take_back_are_applied_and_not_validated)
{
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .takes_back = "-a"});
    stage_part(&st, (struct part){.type = "-a",
                                  .writes = true,
                                  .refuses = HF_DENIED,
                                  .has_effect = true,
                                  .follows = {"a"},
                                  .schema = 4});
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), NULL));
    stage_settle(&st, 1000);
    CHECK_LOG("r:a a:-a", &st);
    CHECK_STR("x", stage_item(&st, HF_STR("root.r1")));
    {
        struct hf_stored_event event;

        CHECK_OK(hf_events_get(k->scope, st.store, HF_STR("root.r1"), &event));
        CHECK_INT(4, event.schema);
    }
    stage_close(&st);
}

/* Nothing to store is fine too. */
KIT_TEST_TX(revert, an_event_may_need_nothing_to_be_taken_back)
{
    struct hf_reverted done;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .takes_back = ""});
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK_INT(0, done.events_len);
    CHECK_LOG("r:a", &st);
    CHECK_TOLD("reverted:a", &st);
    CHECK_INT(1, stage_version(&st, "7"));
    stage_close(&st);
}

/* What a side effect has led to is part of the tree, also when it comes later. */
KIT_TEST_TX(revert, what_joined_the_tree_later_is_taken_back_by_the_next_call)
{
    struct hf_reverted done;
    struct stage st;

    stage_open(&st, k);
    stage_part(
        &st, (struct part){.type = "a", .takes_back = "-a", .has_effect = true, .leads_to = {"b"}});
    stage_part(&st, (struct part){.type = "b", .takes_back = "-b"});
    stage_start(&st);
    submit_as(&st, "a", "root");
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), NULL));
    CHECK_INT(2, stage_version(&st, "7"));
    stage_settle(&st, 1000);
    CHECK_INT(3, stage_version(&st, "7"));
    st.log[0] = 0;
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK_LOG("r:b", &st);
    CHECK(done.repeated && !done.children[0].repeated);
    CHECK_STR("root.e1.r1", done.children[0].events[0].id);
    CHECK_INT(4, stage_version(&st, "7"));
    stage_close(&st);
}

struct twin {
    struct stage *st;
    struct hf_flows *other;
    bool done;
};

/* While one reverts, another process does the same. */
static enum hf_status rival(struct hf_scope *s, struct hf_flow_call *call,
                            const struct hf_stored_event *event, void *user)
{
    struct part *part = user;
    struct twin *twin = part->user;
    struct hf_scope *own = hf_scope_new(hf_scope_env(s));

    (void)call;
    (void)event;
    if (twin && !twin->done) {
        twin->done = true;
        CHECK_OK(hf_flows_revert(own, twin->other, HF_STR("root"), NULL));
    }
    hf_scope_free(own);
    return HF_OK;
}

/* (1) */
KIT_TEST_TX(revert, two_at_the_same_time_do_it_once)
{
    struct hf_reverted done;
    struct twin twin = {0};
    struct stage st;
    struct hf_flows *mine;

    stage_open(&st, k);
    tree_of_six(&st);
    stage_part(&st, (struct part){.type = "-c", .apply = rival});
    stage_start(&st);
    mine = st.flows;
    stage_start(&st);
    twin = (struct twin){.st = &st, .other = st.flows};
    st.flows = mine;
    submit_as(&st, "a", "root");
    st.parts[6].user = &twin;
    CHECK_OK(hf_flows_revert(k->scope, st.flows, HF_STR("root"), &done));
    CHECK(twin.done);
    CHECK(done.repeated);
    CHECK_INT(10, stage_version(&st, "7"));
    CHECK_INT(2, stage_version(&st, "9"));
    hf_flows_close(twin.other);
    stage_close(&st);
}
