/*
 * events/flow_sim_test.c: flows under bad luck, by seed.
 *
 * Hosts submit trees and run side effects; they die at any call and come back, answers get lost,
 * requests are done late or twice. Then luck is even, and all that is left is done. What has to
 * hold, in every history:
 *
 *  (a) An event is stored if and only if what its apply writes is there, once: no projection is
 *      ahead of the log, or behind it.
 *  (b) A tree is there as a whole or not at all.
 *  (c) The events that a side effect leads to are there once for each event that has one, however
 *      often it was run, and whoever died meanwhile.
 *  (d) Nobody gets past the limit that validate has.
 *  (e) A tree that was taken back is taken back as a whole, once, by however many.
 */
#include <holdfast/flow.h>
#include <holdfast/table.h>

#include <stdio.h>

#include "sim.h"

enum { HOSTS = 3, TREES = 3, ROOM = 7 };

#define ITEMS HF_STR("items")

struct story {
    int arrived;
    bool known[HOSTS][TREES], done[HOSTS][TREES];
    uint64_t refused, runs, stored, doubts, reverts; /* over all histories */
};

/* ---- the flows ------------------------------------------------------------------------------ */

static enum hf_status count_one(struct hf_scope *s, void *state,
                                const struct hf_stored_event *event, void *user)
{
    (void)s;
    (void)user;
    if (hf_str_equal(event->type, HF_STR("root")))
        ++*(int64_t *)state;
    return HF_OK;
}

static const struct hf_aggregate counts = {.domain = {"d", 1},
                                           .state_size = sizeof(int64_t),
                                           .evolve = count_one};

/* (d) */
static enum hf_status has_room(struct hf_scope *s, struct hf_flow_call *call,
                               const struct hf_stored_event *event, void *user)
{
    (void)event;
    (void)user;
    return *(const int64_t *)hf_flow_state(call) < ROOM
               ? HF_OK
               : hf_scope_fail(s, HF_DENIED, "there is no more room");
}

static enum hf_status write_item(struct hf_scope *s, struct hf_flow_call *call,
                                 const struct hf_stored_event *event, void *user)
{
    struct hf_update_item update = {.table = ITEMS,
                                    .key = HF_ITEM(s, HF_S("id", event->id)),
                                    .update = HF_STR("ADD times :one"),
                                    .values = HF_ITEM(s, HF_N(":one", 1))};

    (void)user;
    return hf_flow_write(s, call, &(struct hf_transact_write){.update = &update});
}

static enum hf_status two_leaves(struct hf_scope *s, struct hf_flow_call *call,
                                 const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event leaf = {.stream = {HF_STR("d"), HF_STR("leaves")},
                                 .event = {.type = HF_STR("leaf")}};
    enum hf_status status = hf_flow_emit(s, call, &leaf);

    (void)event;
    (void)user;
    leaf.stream.id = hf_str_of(NULL, 0);
    return status == HF_OK ? hf_flow_emit(s, call, &leaf) : status;
}

static enum hf_status lead_on(struct hf_scope *s, struct hf_flow_call *call,
                              const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event next = {.stream = {HF_STR("d"), HF_STR("mails")},
                                 .event = {.type = HF_STR("mail")}};
    struct story *story = user;

    (void)event;
    story->runs++;
    return hf_flow_emit(s, call, &next);
}

static enum hf_status take_back(struct hf_scope *s, struct hf_flow_call *call,
                                const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event back = {.event = {.type = HF_STR("back")}};

    (void)event;
    (void)user;
    return hf_flow_emit(s, call, &back);
}

struct host {
    struct hf_events *store;
    struct hf_outbox *outbox;
    struct hf_flows *flows;
};

static enum hf_status host_open(struct hf_scope *s, struct hf_db *db, struct story *story,
                                struct host *host)
{
    const struct hf_flow flows[] = {{.domain = HF_STR("d"),
                                     .type = HF_STR("root"),
                                     .aggregate = &counts,
                                     .validate = has_room,
                                     .apply = write_item,
                                     .consequents = two_leaves,
                                     .side_effect = lead_on,
                                     .effect_retries = 1000,
                                     .compensate = take_back,
                                     .user = story},
                                    {.domain = HF_STR("d"),
                                     .type = HF_STR("leaf"),
                                     .apply = write_item,
                                     .compensate = take_back},
                                    {.domain = HF_STR("d"),
                                     .type = HF_STR("mail"),
                                     .apply = write_item,
                                     .compensate = take_back},
                                    {.domain = HF_STR("d"),
                                     .type = HF_STR("back"),
                                     .apply = write_item}};
    static const struct hf_relay_options relay = {.size = sizeof(relay),
                                                  .backoff_ms = 20,
                                                  .backoff_max_ms = 100,
                                                  .breaker_ms = 20,
                                                  .lease_ms = 500,
                                                  .poll_ms = 50};
    enum hf_status status = HF_OK;

    if (!host->store)
        status = hf_events_open(s, db, HF_OPTIONS(hf_events_options, .shards = 2), &host->store);
    if (status == HF_OK && !host->outbox)
        status = hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .buckets = 1), &host->outbox);
    if (status == HF_OK)
        status = hf_flows_open(s, host->store, host->outbox, flows, 4, NULL, 0,
                               HF_OPTIONS(hf_flows_options, .no_threads = true, .max_attempts = 50,
                                          .relay = &relay),
                               &host->flows);
    return status;
}

static void host_close(struct host *host)
{
    hf_flows_close(host->flows);
    hf_outbox_close(host->outbox);
    hf_events_close(host->store);
}

/* ---- the hosts ------------------------------------------------------------------------------ */

static void turns(struct actor *a, struct host *host, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t wait_ms;

        hf_scope_reset(a->s);
        (void)!hf_flows_step(a->s, host->flows, &wait_ms);
        actor_sleep_ms(a, 20);
    }
}

static struct hf_str tree_id(struct hf_scope *s, int host, int number)
{
    return hf_scope_format(s, "t-%d-%d", host, number);
}

static void submit(struct actor *a, struct host *host, int me, int number)
{
    struct story *story = a->user;

    while (!story->known[me][number]) {
        struct hf_flow_event event = {.stream = {HF_STR("d"), HF_STR("roots")},
                                      .event = {.type = HF_STR("root")}};
        enum hf_status status;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 3000);
        event.event.id = tree_id(a->s, me, number);
        status = hf_flows_submit(a->s, host->flows, &event, NULL, NULL);
        story->known[me][number] = status == HF_OK || status == HF_DENIED;
        story->done[me][number] = status == HF_OK;
        story->refused += status == HF_DENIED;
        story->doubts += status != HF_OK && hf_scope_error(a->s)->may_have_happened;
        SIM_CHECK(a, status != HF_INVALID && status != HF_CORRUPT && status != HF_LIMIT &&
                         status != HF_DUPLICATE && status != HF_INTERNAL);
    }
}

static void run_host(struct actor *a)
{
    struct story *story = a->user;
    struct host host = {0};
    int me = a->name[0] - 'a';

    while (host_open(a->s, a->db, story, &host) != HF_OK) {
        hf_scope_reset(a->s);
        actor_sleep_ms(a, 20);
    }
    for (int i = 0; i < TREES; i++) {
        submit(a, &host, me, i);
        turns(a, &host, 2);
    }
    story->arrived++;
    host_close(&host);
}

/* Two of them, at the same time. */
static void run_reverter(struct actor *a)
{
    struct story *story = a->user;
    struct host host = {0};
    enum hf_status status = HF_IO;

    while (host_open(a->s, a->db, story, &host) != HF_OK) {
        hf_scope_reset(a->s);
        actor_sleep_ms(a, 20);
    }
    while (status != HF_OK) {
        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 3000);
        status = hf_flows_revert(a->s, host.flows, tree_id(a->s, 0, 0), NULL);
        SIM_CHECK(a, status != HF_INVALID && status != HF_CORRUPT && status != HF_LIMIT &&
                         status != HF_NOT_FOUND && status != HF_UNSUPPORTED);
    }
    story->reverts++;
    host_close(&host);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void settle(struct actor *a)
{
    struct host host = {0};

    SIM_CHECK(a, host_open(a->s, a->db, a->user, &host) == HF_OK);
    for (;;) {
        struct hf_outbox_stats stats;

        turns(a, &host, 10);
        hf_scope_reset(a->s);
        SIM_CHECK(a, hf_outbox_stats(a->s, host.outbox, 0, &stats) == HF_OK);
        SIM_CHECK(a, stats.failed == 0);
        if (stats.pending == 0)
            break;
    }
    host_close(&host);
}

/* How often it was written; (a): as often as it is stored. */
static bool check_event(struct sim *sim, struct hf_events *store, struct hf_str id)
{
    struct hf_scope *s = sim_scope(sim);
    struct hf_get_item get = {.table = ITEMS, .key = HF_ITEM(s, HF_S("id", id))};
    struct hf_get_item_result got;
    struct hf_stored_event event;
    int64_t times = 0;
    enum hf_status status = hf_events_get(s, store, id, &event);

    CHECK(status == HF_OK || status == HF_NOT_FOUND);
    CHECK_OK(hf_get_item(s, sim_db(sim), &get, &got));
    (void)hf_value_i64(hf_item_get(got.item, HF_STR("times")), &times);
    CHECK_INT(status == HF_OK, times);
    return status == HF_OK;
}

static void check_tree(struct sim *sim, struct story *story, struct hf_events *store, int host,
                       int number, bool reverted)
{
    static const char *const parts[] = {"", ".1", ".2", ".e1"};
    struct hf_scope *s = sim_scope(sim);
    struct hf_str root = tree_id(s, host, number);

    for (int i = 0; i < 4; i++) {
        struct hf_str id = hf_scope_format(s, "%.*s%s", HF_FMT(root), parts[i]);

        CHECK(check_event(sim, store, id) == story->done[host][number]); /* (b) (c) */
        id = hf_scope_format(s, "%.*s%s.r1", HF_FMT(root), parts[i]);
        CHECK(check_event(sim, store, id) == reverted); /* (e) */
    }
    story->stored += story->done[host][number];
}

static void check_end(struct sim *sim, struct story *story)
{
    struct hf_scope *s = sim_scope(sim);
    struct hf_aggregate_state state;
    struct hf_events *store;
    int64_t done = 0;

    CHECK_OK(hf_events_open(s, sim_db(sim), NULL, &store));
    for (int h = 0; h < HOSTS; h++)
        for (int i = 0; i < TREES; i++) {
            done += story->done[h][i];
            check_tree(sim, story, store, h, i, h == 0 && i == 0 && story->reverts > 0);
        }
    CHECK_OK(hf_aggregate_load(s, store, &counts, HF_STR("roots"), 0, &state));
    CHECK_INT(done, *(int64_t *)state.state);
    CHECK(done <= ROOM);
    hf_events_close(store);
}

static void make_items(struct sim *sim)
{
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table spec = {.table = ITEMS,
                                   .attributes = &id,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};

    CHECK_OK(hf_table_ensure(sim_scope(sim), sim_db(sim), &spec, NULL));
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[HOSTS] = {"ann", "ben", "cyd"};
    struct story *sum = user;
    struct story story = {0};

    make_items(sim);
    for (int i = 0; i < HOSTS; i++)
        sim_start(sim, names[i], run_host, &story);
    sim_run(sim);
    if (!sim_failed(sim) && story.done[0][0] && sim_random_below(sim, 2)) {
        sim_start(sim, "rex", run_reverter, &story);
        sim_start(sim, "rob", run_reverter, &story);
        sim_run(sim);
    }
    sim_calm(sim);
    if (!sim_failed(sim)) {
        sim_start(sim, "sam", settle, &story);
        sim_run(sim);
    }
    if (!sim_failed(sim) && story.reverts) { /* what joined the tree meanwhile */
        sim_start(sim, "sue", run_reverter, &story);
        sim_run(sim);
    }
    if (!sim_failed(sim))
        check_end(sim, &story);
    sum->refused += story.refused;
    sum->runs += story.runs;
    sum->stored += story.stored;
    sum->doubts += story.doubts;
    sum->reverts += story.reverts;
}

TEST(flow_sim, projections_side_effects_and_reverts_agree_with_the_log)
{
    const struct sim_luck luck = {.lost_requests = 15,
                                  .lost_answers = 25,
                                  .twice = 15,
                                  .later_again = 10,
                                  .refused = 10,
                                  .slow = 10,
                                  .pauses = 5,
                                  .deaths = 5,
                                  .slow_ms = 300,
                                  .pause_ms = 1500,
                                  .wall_skew_ms = 5000,
                                  .drift_ppm = 500};
    struct story sum = {0};

    sim_each(t, 100, &luck, history, &sum);
    if (sim_is_whole()) { /* histories that show nothing prove nothing */
        CHECK(sum.runs > sum.stored);
        CHECK(sum.refused > 20);
        CHECK(sum.reverts > 20);
    }
}
