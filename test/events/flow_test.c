/*
 * events/flow_test.c: registration, aggregates of flows, observers, reading and replay, on every
 * kind of database. (n) is an invariant of events/flow/flow.c.
 */
#include "flow_kit.h"

#include <stdlib.h>

/* ---- registration --------------------------------------------------------------------------- */

struct tally {
    int64_t sum;
    uint64_t events;
};

static enum hf_status add_up(struct hf_scope *s, void *state, const struct hf_stored_event *event,
                             void *user)
{
    struct tally *tally = state;

    (void)s;
    (void)user;
    tally->events++;
    for (size_t i = 0; i < event->payload.len; i++)
        tally->sum += event->payload.ptr[i] - '0';
    return HF_OK;
}

static enum hf_status tally_save(struct hf_scope *s, const void *state, struct hf_item *item,
                                 void *user)
{
    const struct tally *tally = state;

    (void)user;
    *item = HF_ITEM(s, HF_N("sum", tally->sum), HF_N("events", tally->events));
    return HF_OK;
}

static enum hf_status tally_restore(struct hf_scope *s, struct hf_item item, void *state,
                                    void *user)
{
    struct tally *tally = state;
    int64_t events = 0;

    (void)s;
    (void)user;
    CHECK(hf_value_i64(hf_item_get(item, HF_STR("sum")), &tally->sum));
    CHECK(hf_value_i64(hf_item_get(item, HF_STR("events")), &events));
    tally->events = (uint64_t)events;
    return HF_OK;
}

static const struct hf_aggregate tallies = {.domain = {"d", 1},
                                            .state_size = sizeof(struct tally),
                                            .evolve = add_up,
                                            .save = tally_save,
                                            .restore = tally_restore,
                                            .snapshot_every = 5};

static enum hf_status observe_nothing(struct hf_scope *s, const struct hf_stored_event *event,
                                      void *user)
{
    (void)s;
    (void)event;
    (void)user;
    return HF_OK;
}

static enum hf_status nothing(struct hf_scope *s, struct hf_flow_call *call,
                              const struct hf_stored_event *event, void *user)
{
    (void)s;
    (void)call;
    (void)event;
    (void)user;
    return HF_OK;
}

static void check_open(struct hf_scope *s, struct hf_events *store, struct hf_flow flow,
                       const char *message)
{
    struct hf_flows *runtime;

    CHECK_STATUS(HF_INVALID, hf_flows_open(s, store, NULL, &flow, 1, NULL, 0, NULL, &runtime));
    CHECK_ERROR(HF_INVALID, message, s);
    CHECK(!runtime);
}

KIT_TEST_TX(flow, what_cannot_be_registered_is_told)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate other = tallies;
    char long_text[HF_EVENTS_DOMAIN_MAX + 1];
    struct hf_flow good = {.domain = HF_STR("d"), .type = HF_STR("a")}, bad = good;
    struct hf_flow twice[] = {good, {.domain = HF_STR("d"), .type = HF_STR("b")}, good};
    struct hf_flow_observer blind = {.name = HF_STR("blind")};
    struct hf_relay_options relay = {.size = sizeof(relay), .max_attempts = 3};
    struct hf_flow_event unknown = event_of("z", "7");
    struct hf_outbox *outbox;
    struct hf_flows *runtime;

    bad.domain.len = 0;
    check_open(k->scope, store, bad, "flow 1 has no domain");
    bad = good;
    bad.type.len = 0;
    check_open(k->scope, store, bad, "flow 1 has no type");
    bad = good;
    memset(long_text, 'x', sizeof(long_text));
    bad.domain = hf_str_of(long_text, sizeof(long_text));
    check_open(k->scope, store, bad, "flow 1 has a domain of more than 255 bytes");
    bad = good;
    bad.side_effect = nothing;
    check_open(k->scope, store, bad,
               "the flow d/a has a side effect, but there is no outbox for it");
    bad = good;
    other.domain = HF_STR("other");
    bad.aggregate = &other;
    check_open(k->scope, store, bad, "the flow d/a has an aggregate of the domain other");
    other.evolve = NULL;
    check_open(k->scope, store, bad, "aggregate other has no evolve function");

    CHECK_STATUS(HF_DUPLICATE,
                 hf_flows_open(k->scope, store, NULL, twice, 3, NULL, 0, NULL, &runtime));
    CHECK_ERROR(HF_DUPLICATE, "there are two flows for d/a", k->scope);
    CHECK_STATUS(HF_INVALID,
                 hf_flows_open(k->scope, store, NULL, &good, 1, &blind, 1, NULL, &runtime));
    CHECK_ERROR(HF_INVALID, "observer 1 (blind) has no function", k->scope);
    CHECK_STATUS(HF_INVALID, hf_flows_open(k->scope, store, NULL, &good, 1, NULL, 0,
                                           HF_OPTIONS(hf_flows_options,
                                                      .partitions = HF_FLOW_PARTITIONS_MAX + 1),
                                           &runtime));
    CHECK_STATUS(HF_INVALID,
                 hf_flows_open(k->scope, store, NULL, &good, 1, NULL, 0,
                               HF_OPTIONS(hf_flows_options, .depth_max = HF_FLOW_DEPTH_LIMIT + 1),
                               &runtime));
    CHECK_OK(
        hf_outbox_open(k->scope, k->db, HF_OPTIONS(hf_outbox_options, .table = k->other), &outbox));
    bad = good;
    bad.side_effect = nothing;
    CHECK_STATUS(HF_INVALID,
                 hf_flows_open(k->scope, store, outbox, &bad, 1, NULL, 0,
                               HF_OPTIONS(hf_flows_options, .relay = &relay), &runtime));

    /* at the limits; an event that has no flow; a scope that has a transaction */
    CHECK_OK(hf_flows_open(k->scope, store, NULL, &good, 1, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .partitions = HF_FLOW_PARTITIONS_MAX,
                                      .depth_max = HF_FLOW_DEPTH_LIMIT),
                           &runtime));
    CHECK_STATUS(HF_NOT_FOUND, hf_flows_submit(k->scope, runtime, &unknown, NULL, NULL));
    CHECK_ERROR(HF_NOT_FOUND, "there is no flow for d/z", k->scope);
    CHECK_STATUS(HF_NOT_FOUND, hf_flows_post(k->scope, runtime, &unknown, NULL, NULL));
    CHECK(!hf_flows_relay(runtime));
    hf_flows_close(runtime);
    hf_flows_close(NULL);
    hf_outbox_close(outbox);
    hf_events_close(store);
}

TEST(flow, the_queue_of_a_key_is_always_the_same)
{
    struct kit k = {.t = t, .scope = hf_scope_new(test_env(t))};
    struct hf_flow flow = {.domain = HF_STR("d"), .type = HF_STR("a")};
    struct hf_flows *runtime;
    struct hf_events *store;

    k.table = HF_STR("events");
    CHECK_OK(hf_open(k.scope, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &k.db));
    store = open_store(&k);
    CHECK_OK(hf_flows_open(k.scope, store, NULL, &flow, 1, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .partitions = 7), &runtime));
    CHECK_INT(0, hf_flows_partition(runtime, hf_str_of(NULL, 0)));
    CHECK_INT(0, hf_flows_partition(runtime, HF_STR("")));
    CHECK_INT(177670u % 7, hf_flows_partition(runtime, HF_STR("a"))); /* 5381 * 33 + 97 */
    CHECK_INT(193485963u % 7, hf_flows_partition(runtime, HF_STR("abc")));
    hf_flows_close(runtime);
    hf_events_close(store);
    hf_db_close(k.db);
    hf_scope_free(k.scope);
}

/* ---- aggregates ----------------------------------------------------------------------------- */

/* At most nine in a stream; and while it is looked at, another process may be faster. */
static enum hf_status at_most_nine(struct hf_scope *s, struct hf_flow_call *call,
                                   const struct hf_stored_event *event, void *user)
{
    const struct tally *tally = hf_flow_state(call);
    struct part *part = user;
    int64_t more = event->payload.len ? event->payload.ptr[0] - '0' : 0;

    CHECK_INT(tally->events, hf_flow_version(call));
    if (part->user) {
        struct hf_new_event other = {.type = HF_STR("a"), .payload = PAYLOAD("3")};
        struct hf_append append = {.stream = event->stream, .events = &other, .events_len = 1};
        struct hf_events *elsewhere = part->user;
        struct hf_scope *own = hf_scope_new(hf_scope_env(s));

        part->user = NULL;
        CHECK_OK(hf_events_append(own, elsewhere, &append, 1, NULL, NULL));
        hf_scope_free(own);
    }
    return tally->sum + more > 9 ? hf_scope_fail(s, HF_DENIED, "%lld and %lld are too many",
                                                 (long long)tally->sum, (long long)more)
                                 : HF_OK;
}

/* The state is that with the event. */
static enum hf_status is_with_it(struct hf_scope *s, struct hf_flow_call *call,
                                 const struct hf_stored_event *event, void *user)
{
    const struct tally *tally = hf_flow_state(call);

    (void)s;
    (void)user;
    CHECK_INT(event->version, tally->events);
    return HF_OK;
}

static enum hf_status submit_with(struct stage *st, const char *type, const char *id,
                                  const char *payload, struct hf_flow_result *result)
{
    struct hf_flow_event event = event_of(type, id);

    event.event.payload = hf_bytes_of(payload, strlen(payload));
    return hf_flows_submit(st->k->scope, st->flows, &event, NULL, result);
}

KIT_TEST_TX(flow, an_aggregate_decides_on_its_state)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a",
                                  .aggregate = &tallies,
                                  .validate = at_most_nine,
                                  .apply = is_with_it});
    stage_start(&st);
    CHECK_OK(submit_with(&st, "a", "7", "5", NULL));
    CHECK_OK(submit_with(&st, "a", "7", "4", NULL));
    CHECK_STATUS(HF_DENIED, submit_with(&st, "a", "7", "1", NULL));
    CHECK_ERROR(HF_DENIED, "9 and 1 are too many", k->scope);
    CHECK_OK(submit_with(&st, "a", "8", "1", NULL));
    CHECK_INT(2, stage_version(&st, "7"));
    stage_close(&st);
}

/* (1) D5 14: two processes validate against the same state, and one of them has to do it again. */
KIT_TEST_TX(flow, races_across_processes_are_caught_and_taken_anew)
{
    struct hf_events *elsewhere = open_store(k);
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a",
                                  .aggregate = &tallies,
                                  .validate = at_most_nine,
                                  .apply = is_with_it});
    stage_start(&st);
    st.parts[0].user = elsewhere;
    CHECK_OK(submit_with(&st, "a", "7", "5", &result));
    CHECK_INT(2, result.attempts);
    CHECK_INT(2, result.events[0].version);
    CHECK_LOG("v:a a:a c:a v:a a:a", &st);
    CHECK_TOLD("success:a", &st);
    st.parts[0].user = elsewhere; /* now 3 + 5 + 3, and no room for another one */
    CHECK_STATUS(HF_DENIED, submit_with(&st, "a", "7", "1", &result));
    CHECK_ERROR(HF_DENIED, "11 and 1 are too many", k->scope);
    CHECK_LOG("v:a a:a c:a v:a", &st);
    CHECK_TOLD("invalid:a", &st);
    CHECK_INT(3, stage_version(&st, "7"));
    stage_close(&st);
    hf_events_close(elsewhere);
}

static enum hf_status always_late(struct hf_scope *s, struct hf_flow_call *call,
                                  const struct hf_stored_event *event, void *user)
{
    struct part *part = user;
    struct hf_new_event other = {.type = HF_STR("a")};
    struct hf_append append = {.stream = event->stream, .events = &other, .events_len = 1};

    (void)call;
    return hf_events_append(s, part->stage->store, &append, 1, NULL, NULL);
}

KIT_TEST_TX(flow, attempts_at_a_tree_are_bounded)
{
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .aggregate = &tallies, .validate = always_late});
    st.o.max_attempts = 3;
    stage_start(&st);
    CHECK_STATUS(HF_CONDITION, submit(&st, "a", "7", NULL));
    CHECK_ERROR(HF_CONDITION,
                "the tree of d/a was built 3 times, and each time another writer appended first",
                k->scope);
    CHECK_LOG("v:a a:a c:a v:a a:a c:a v:a a:a c:a", &st);
    CHECK_TOLD("canceled:a", &st);
    stage_close(&st);
}

/* Looks at the stream "other", and at the state that the tree has in store. */
static enum hf_status looks_elsewhere(struct hf_scope *s, struct hf_flow_call *call,
                                      const struct hf_stored_event *event, void *user)
{
    struct part *part = user;
    struct hf_aggregate_state other, own;
    struct hf_new_event more = {.type = HF_STR("a")};
    struct hf_append append = {.stream = {HF_STR("d"), HF_STR("other")},
                               .events = &more,
                               .events_len = 1};

    CHECK_OK(hf_flow_load(s, call, &tallies, HF_STR("other"), &other));
    CHECK_OK(hf_flow_load(s, call, &tallies, event->stream.id, &own));
    CHECK_INT(part->user ? 0 : 1, own.version % 2); /* b comes after a of the same tree */
    if (hf_flow_attempt(call) == 1 && part->user)
        return hf_events_append(s, part->stage->store, &append, 1, NULL, NULL);
    return HF_OK;
}

KIT_TEST_TX(flow, states_that_were_only_looked_at_have_to_be_the_same)
{
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .validate = looks_elsewhere, .follows = {"b"}});
    stage_part(&st, (struct part){.type = "b", .validate = looks_elsewhere});
    stage_start(&st);
    st.parts[0].user = &st;
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_INT(2, result.attempts);
    CHECK_INT(2, stage_version(&st, "7"));
    CHECK_INT(1, stage_version(&st, "other"));
    stage_close(&st);
}

KIT_TEST_TX(flow, snapshots_are_made_of_aggregates)
{
    struct hf_event_stream_key stream = {HF_STR("d"), HF_STR("7")};
    struct hf_snapshot snapshot;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .aggregate = &tallies});
    stage_start(&st);
    for (int i = 0; i < 6; i++)
        CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_OK(hf_snapshot_get(k->scope, st.store, stream, hf_str_of(NULL, 0), &snapshot));
    CHECK_INT(5, snapshot.version);
    stage_close(&st);
}

/* ---- observers ------------------------------------------------------------------------------ */

struct watcher {
    struct stage *st;
    const char *name;
    bool fails;
    int errors;
};

static enum hf_status watch(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct watcher *watcher = user;

    stage_note(watcher->st, watcher->st->log, watcher->name, event->type);
    return watcher->fails ? hf_scope_fail(s, HF_DENIED, "%s has seen enough", watcher->name)
                          : HF_OK;
}

static void watch_error(const struct hf_stored_event *event, const struct hf_error *error,
                        void *user)
{
    struct watcher *watcher = user;

    (void)event;
    CHECK_INT(HF_DENIED, error->status);
    watcher->errors++;
}

static void add_observer(struct stage *st, struct watcher *watcher, int priority,
                         const struct hf_flow_filter *filters, size_t len)
{
    watcher->st = st;
    st->observers[st->observers_len++] =
        (struct hf_flow_observer){.name = hf_str_from(watcher->name),
                                  .filters = filters,
                                  .filters_len = len,
                                  .priority = priority,
                                  .observe = watch,
                                  .on_error = watch_error,
                                  .user = watcher};
}

KIT_TEST_TX(flow, observers_are_told_by_priority_of_what_fits_their_filters)
{
    struct hf_flow_filter only_b = {.type = HF_STR("b")};
    struct hf_flow_filter other = {.domain = HF_STR("other")};
    struct hf_flow_filter some[] = {other, {.domain = HF_STR("d"), .type = HF_STR("ab*")}};
    struct watcher late = {.name = "late"}, early = {.name = "early"}, same = {.name = "same"},
                   picky = {.name = "picky"}, away = {.name = "away"}, wild = {.name = "wild"};
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .follows = {"b", "abc"}, .quiet = true});
    stage_part(&st, (struct part){.type = "b", .quiet = true});
    stage_part(&st, (struct part){.type = "abc", .quiet = true});
    add_observer(&st, &late, 5, NULL, 0);
    add_observer(&st, &early, -5, NULL, 0);
    add_observer(&st, &same, 5, NULL, 0);
    add_observer(&st, &picky, 0, &only_b, 1);
    add_observer(&st, &away, 0, &other, 1);
    add_observer(&st, &wild, 1, some, 2);
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_LOG("v:a q:a v:b v:abc early:a late:a same:a early:b picky:b late:b same:b early:abc "
              "wild:abc late:abc same:abc",
              &st);
    CHECK_TOLD("success:a success:b success:abc observed:a observed:a observed:a observed:b "
               "observed:b observed:b observed:b observed:abc observed:abc observed:abc "
               "observed:abc",
               &st);
    stage_close(&st);
}

/* (3) D5 12: an observer's failure cancels nothing that is stored. */
KIT_TEST_TX(flow, an_observer_cannot_cancel_what_is_stored)
{
    struct watcher bad = {.name = "bad", .fails = true}, good = {.name = "good"};
    struct hf_flow_result result;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a"});
    add_observer(&st, &bad, 0, NULL, 0);
    add_observer(&st, &good, 1, NULL, 0);
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", &result));
    CHECK_INT(1, result.events_len);
    CHECK_LOG("v:a a:a bad:a good:a", &st);
    CHECK_TOLD("success:a observer-failed:a observed:a", &st);
    CHECK_INT(1, bad.errors);
    CHECK_INT(1, stage_version(&st, "7"));
    stage_close(&st);
}

KIT_TEST_TX(flow, nobody_waits_for_who_is_fired_and_forgotten)
{
    struct watcher slow = {.name = "slow", .fails = true}, quick = {.name = "quick"};
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .quiet = true});
    add_observer(&st, &slow, -1, NULL, 0);
    add_observer(&st, &quick, 1, NULL, 0);
    st.observers[0].fire_and_forget = true;
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_LOG("v:a quick:a v:a quick:a", &st);
    stage_settle(&st, 0);
    CHECK_LOG("slow:a slow:a", &st);
    CHECK_INT(2, slow.errors);
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_OK(hf_flows_shutdown(k->scope, st.flows, 0)); /* they are told before the end */
    CHECK_LOG("v:a quick:a slow:a", &st);
    CHECK_STATUS(HF_CANCELED, submit(&st, "a", "7", NULL));
    CHECK_ERROR(HF_CANCELED, "the flows are shut down", k->scope);
    stage_close(&st);
}

/* ---- posting -------------------------------------------------------------------------------- */

static void posted(const struct hf_flow_result *result, const struct hf_error *error, void *user)
{
    struct stage *st = user;

    stage_note(st, st->log, result ? "ok" : "no",
               result ? result->events[0].type : hf_str_from(hf_status_name(error->status)));
}

KIT_TEST_TX(flow, posted_events_are_taken_in_their_turn)
{
    struct hf_flow_event a = event_of("a", "7"), b = event_of("b", "7");
    char payload[] = "gone";
    struct hf_events_page page;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .quiet = true});
    stage_part(&st, (struct part){.type = "b", .quiet = true, .refuses = HF_DENIED});
    stage_start(&st);
    a.event.payload = hf_bytes_of(payload, 4);
    CHECK_OK(hf_flows_post(k->scope, st.flows, &a, posted, &st));
    memset(payload, 'x', 4); /* it was copied */
    CHECK_OK(hf_flows_post(k->scope, st.flows, &b, posted, &st));
    CHECK_LOG("", &st);
    stage_settle(&st, 0);
    CHECK_LOG("v:a ok:a v:b no:HF_DENIED", &st);
    CHECK_OK(hf_events_read(k->scope, st.store, a.stream, NULL, &page));
    CHECK_STR("gone", payload_of(&page.events[0]));

    /* what is submitted comes behind what was posted */
    CHECK_OK(hf_flows_post(k->scope, st.flows, &b, posted, &st));
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &a, NULL, NULL));
    CHECK_LOG("v:b no:HF_DENIED v:a", &st);
    CHECK_OK(hf_flows_post(k->scope, st.flows, &a, posted, &st));
    CHECK_OK(hf_flows_shutdown(k->scope, st.flows, 0));
    CHECK_LOG("v:a ok:a", &st);
    CHECK_STATUS(HF_CANCELED, hf_flows_post(k->scope, st.flows, &a, posted, &st));
    stage_close(&st);
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status louder(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                             void *user)
{
    struct hf_str text = hf_scope_format(s, "%.*s!%u", HF_FMT(payload_of(event)), from);

    (void)user;
    event->payload = hf_bytes_of(text.ptr, text.len);
    return HF_OK;
}

KIT_TEST_TX(flow, old_events_are_read_in_their_current_form)
{
    struct hf_new_event old = {.type = HF_STR("a"), .payload = PAYLOAD("x"), .id = HF_STR("old")};
    struct hf_append append = {.stream = {HF_STR("d"), HF_STR("7")},
                               .events = &old,
                               .events_len = 1};
    struct hf_flow_event late = event_of("a", "7");
    struct hf_flow_result result;
    struct hf_stored_event event;
    struct hf_events_page page;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .schema = 3, .upcast = louder});
    stage_start(&st);
    CHECK_OK(hf_events_append(k->scope, st.store, &append, 1, NULL, NULL));
    CHECK_OK(hf_flows_read(k->scope, st.flows, append.stream, NULL, &page));
    CHECK_INT(1, page.events_len);
    CHECK_STR("x!1!2", payload_of(&page.events[0]));
    CHECK_INT(3, page.events[0].schema);
    CHECK_OK(hf_flows_get(k->scope, st.flows, HF_STR("old"), &event));
    CHECK_STR("x!1!2", payload_of(&event));
    CHECK_STATUS(HF_NOT_FOUND, hf_flows_get(k->scope, st.flows, HF_STR("none"), &event));
    CHECK_OK(hf_events_get(k->scope, st.store, HF_STR("old"), &event));
    CHECK_STR("x", payload_of(&event));

    /* an event that comes in an old form is stored in the new one */
    late.event.schema = 2;
    late.event.payload = hf_bytes_of("y", 1);
    CHECK_OK(hf_flows_submit(k->scope, st.flows, &late, NULL, &result));
    CHECK_OK(hf_events_get(k->scope, st.store, result.events[0].id, &event));
    CHECK_STR("y!2", payload_of(&event));
    CHECK_INT(3, event.schema);
    stage_close(&st);
}

/* ---- replay --------------------------------------------------------------------------------- */

struct rerun {
    struct stage *st;
    int resets, errors, pages;
    enum hf_status answer;
};

static enum hf_status rerun_reset(struct hf_scope *s, void *user)
{
    struct rerun *rerun = user;

    (void)s;
    rerun->resets++;
    return HF_OK;
}

static enum hf_status rerun_error(struct hf_scope *s, const struct hf_stored_event *event,
                                  const struct hf_error *error, void *user)
{
    struct rerun *rerun = user;

    CHECK(error->message.len > 0 && event->id.len > 0);
    rerun->errors++;
    return rerun->answer ? hf_scope_fail(s, rerun->answer, "enough") : HF_OK;
}

static enum hf_status rerun_progress(uint64_t done, uint64_t total, void *user)
{
    struct rerun *rerun = user;

    CHECK(done > 0 && total == 0);
    rerun->pages++;
    return HF_OK;
}

/* D5 15: without re-validation, one bad event does not have to end it, and it goes on where it
 * was. */
KIT_TEST_TX(flow, a_replay_takes_stored_events_through_apply_and_observers)
{
    struct watcher slow = {.name = "slow"};
    struct rerun rerun = {0};
    struct hf_replay_options *options =
        HF_OPTIONS(hf_replay_options, .checkpoint = HF_STR("one"), .page = 2, .reset = rerun_reset,
                   .on_error = rerun_error, .on_progress = rerun_progress, .user = &rerun);
    struct hf_replayed replayed;
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .writes = true});
    stage_part(&st, (struct part){.type = "b"});
    add_observer(&st, &slow, 0, NULL, 0);
    st.observers[0].fire_and_forget = true;
    stage_start(&st);
    for (int i = 0; i < 3; i++)
        CHECK_OK(submit(&st, i == 1 ? "b" : "a", "7", NULL));
    stage_settle(&st, 0);
    CHECK_LOG("v:a a:a v:b a:b v:a a:a slow:a slow:b slow:a", &st);
    st.parts[0].refuses = st.parts[1].refuses = HF_DENIED; /* nobody asks */
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:a slow:a a:b slow:b a:a slow:a", &st); /* who is forgotten is waited for, too */
    CHECK_INT(3, replayed.events);
    CHECK_INT(3, replayed.applied);
    CHECK_INT(3, replayed.observed);
    CHECK_INT(0, replayed.failed);
    CHECK_INT(HF_POSITION_LEN, replayed.position.len);
    CHECK_INT(1, rerun.resets);
    CHECK(rerun.pages >= 2);

    /* it goes on behind that, and only that */
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("", &st);
    CHECK_INT(0, replayed.events);
    CHECK_INT(1, rerun.resets);
    st.parts[0].refuses = HF_OK;
    CHECK_OK(submit(&st, "a", "7", NULL));
    stage_settle(&st, 0);
    CHECK_LOG("v:a a:a slow:a", &st);
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:a slow:a", &st);

    /* from the start, and what fails is passed over */
    options->restart = true;
    st.parts[1].fails = HF_IO;
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:a slow:a a:b slow:b a:a slow:a a:a slow:a", &st);
    CHECK_INT(2, rerun.resets);
    CHECK_INT(1, rerun.errors);
    CHECK_INT(1, replayed.failed);
    st.parts[1].fails = HF_LOST; /* a stream was deleted, say: the checkpoint still is ours */
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:a slow:a a:b slow:b a:a slow:a a:a slow:a", &st);
    CHECK_INT(2, rerun.errors);
    CHECK_INT(4, replayed.events);
    options->restart = false;

    /* or ends it, and the next one begins with it */
    options->checkpoint = HF_STR("two");
    rerun.answer = HF_CANCELED;
    CHECK_STATUS(HF_CANCELED, hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:a slow:a a:b", &st);
    rerun.answer = HF_LOST; /* of something else than the checkpoint, */
    options->page = 1;
    CHECK_STATUS(HF_LOST, hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:b", &st); /* which says what was done before */
    st.parts[1].fails = HF_OK;
    options->no_observers = true;
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_LOG("a:b a:a a:a", &st);
    CHECK_INT(4, rerun.resets);

    /* without a checkpoint */
    options = HF_OPTIONS(hf_replay_options, .no_apply = true, .after = replayed.position);
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_INT(0, replayed.events);
    options->after = hf_str_of(NULL, 0);
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_INT(4, replayed.events);
    CHECK_LOG("slow:a slow:b slow:a slow:a", &st);
    CHECK_STATUS(HF_INVALID,
                 hf_flows_replay(k->scope, st.flows,
                                 HF_OPTIONS(hf_replay_options, .checkpoint = HF_STR("x"),
                                            .after = replayed.position),
                                 NULL));
    stage_close(&st);
}

/* Counts how often each event was applied, in the database. */
static enum hf_status count_in_table(struct hf_scope *s, struct hf_flow_call *call,
                                     const struct hf_stored_event *event, void *user)
{
    const struct part *part = user;
    struct hf_update_item update = {.table = part->stage->items,
                                    .key = HF_ITEM(s, HF_S("id", event->id)),
                                    .update = HF_STR(
                                        "SET payload = if_not_exists(payload, :e) ADD times :one"),
                                    .values = HF_ITEM(s, HF_N(":one", 1), HF_S(":e", HF_STR("")))};

    CHECK(hf_flow_replaying(call) == (part->user != NULL));
    return hf_flow_write(s, call, &(struct hf_transact_write){.update = &update});
}

/* Every answer gets lost at some time: what is written together with the checkpoint is written
 * once. */
KIT_TEST_TX(flow, an_interrupted_replay_writes_each_event_once)
{
    enum { EVENTS = 6 };
    struct hf_replay_options *options =
        HF_OPTIONS(hf_replay_options, .checkpoint = HF_STR("one"), .page = 2);
    struct hf_flow_result result;
    struct hf_str ids[EVENTS];
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .apply = count_in_table});
    stage_start(&st);
    for (int i = 0; i < EVENTS; i++) {
        CHECK_OK(submit(&st, "a", "7", &result));
        ids[i] = result.events[0].id;
    }
    st.parts[0].user = &st;
    for (int i = 0; i < 40; i++) {
        enum hf_fault_kind kind = i % 2 ? HF_FAULT_LOST_ANSWER : HF_FAULT_ERROR;

        kit_fault(k, kind, i % 3 ? "TransactWriteItems" : "PutItem", (uint32_t)(i % 5 + 1));
        (void)!hf_flows_replay(k->scope, st.flows, options, NULL);
        kit_no_faults(k);
    }
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, NULL));
    for (int i = 0; i < EVENTS; i++) {
        struct hf_get_item get = {.table = st.items,
                                  .key = HF_ITEM(k->scope, HF_S("id", ids[i])),
                                  .consistent = HF_YES};
        struct hf_get_item_result got;
        int64_t times = 0;

        CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
        CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("times")), &times));
        CHECK_INT(2, times); /* by submit, and by the replay */
    }
    stage_close(&st);
}

static enum hf_status replay_inside(struct hf_scope *s, struct hf_flow_call *call,
                                    const struct hf_stored_event *event, void *user)
{
    struct part *part = user;
    struct hf_scope *own = hf_scope_new(hf_scope_env(s));

    if (part->user) {
        part->user = NULL;
        CHECK_OK(hf_flows_replay(own, part->stage->flows,
                                 HF_OPTIONS(hf_replay_options, .checkpoint = HF_STR("one")), NULL));
    }
    hf_scope_free(own);
    return part_write(s, call, part->stage, event);
}

KIT_TEST_TX(flow, of_two_replays_with_a_checkpoint_the_later_one_goes_on)
{
    struct hf_replay_options *options = HF_OPTIONS(hf_replay_options, .checkpoint = HF_STR("one"));
    struct hf_replayed replayed;
    struct stage st;

    stage_open(&st, k);
    stage_items(&st);
    stage_part(&st, (struct part){.type = "a", .apply = replay_inside});
    stage_start(&st);
    CHECK_OK(submit(&st, "a", "7", NULL));
    CHECK_OK(submit(&st, "a", "7", NULL));
    st.parts[0].user = &st;
    CHECK_STATUS(HF_LOST, hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK(strstr(hf_scope_error_text(k->scope), "another replay has taken over checkpoint one") !=
          NULL);
    CHECK_OK(hf_flows_replay(k->scope, st.flows, options, &replayed));
    CHECK_INT(0, replayed.events);
    stage_close(&st);
}

/* The state at each event is that of then, however many streams there are. */
KIT_TEST_TX(flow, a_replay_has_the_states_of_then)
{
    struct hf_replayed replayed;
    struct stage st;

    stage_open(&st, k);
    stage_part(&st, (struct part){.type = "a", .aggregate = &tallies, .apply = is_with_it});
    stage_start(&st);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 70; i++)
            CHECK_OK(submit(&st, "a", hf_scope_format(k->scope, "s%d", i).ptr, NULL));
    for (int i = 0; i < 8; i++)
        CHECK_OK(submit(&st, "a", "long", NULL));
    CHECK_OK(hf_flows_replay(k->scope, st.flows, NULL, &replayed));
    CHECK_INT(218, replayed.applied);
    CHECK_INT(0, replayed.failed);
    stage_close(&st);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status one_more(struct hf_scope *s, struct hf_flow_call *call,
                               const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event leaf = event_of("leaf", "8");

    (void)event;
    (void)user;
    return hf_flow_emit(s, call, &leaf);
}

TEST(flow, any_failing_allocation_gives_a_stored_tree_or_an_error)
{
    static const struct hf_flow flows[] = {{.domain = {"d", 1},
                                            .type = {"root", 4},
                                            .aggregate = &tallies,
                                            .apply = nothing,
                                            .consequents = one_more,
                                            .compensate = one_more},
                                           {.domain = {"d", 1},
                                            .type = {"leaf", 4},
                                            .compensate = nothing}};
    static const struct hf_flow_observer observer = {.observe = observe_nothing,
                                                     .fire_and_forget = true};

    ALLOC_SWEEP (t, nth) {
        struct hf_scope *outer = hf_scope_new(NULL); /* what is stored is not what is counted */
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_flow_result result = {0};
        struct hf_flow_event event = event_of("root", "7");
        struct hf_flows *runtime = NULL;
        struct hf_events *store;
        struct hf_db *db;
        enum hf_status status = HF_NOMEM;

        CHECK_OK(hf_open(outer, HF_STR("memory:"), NULL, &db));
        CHECK_OK(hf_events_open(outer, db, NULL, &store));
        if (s)
            status = hf_flows_open(s, store, NULL, flows, 2, &observer, 1,
                                   HF_OPTIONS(hf_flows_options, .no_threads = true), &runtime);
        if (status == HF_OK)
            status = hf_flows_submit(s, runtime, &event, NULL, &result);
        CHECK_INT(status == HF_OK ? 2 : 0, result.events_len);
        if (status == HF_OK)
            status = hf_flows_post(s, runtime, &event, NULL, NULL);
        if (status == HF_OK)
            status = hf_flows_revert(s, runtime, result.events[0].id, NULL);
        if (status == HF_OK)
            status =
                hf_flows_replay(s, runtime,
                                HF_OPTIONS(hf_replay_options, .checkpoint = HF_STR("x")), NULL);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        hf_flows_close(runtime);
        hf_events_close(store);
        hf_db_close(db);
        hf_scope_free(s);
        hf_scope_free(outer);
    }
}
