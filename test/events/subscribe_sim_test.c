/*
 * events/subscribe_sim_test.c: subscriptions under bad luck: hosts that fight for one name while
 * others append, lose answers, are paused for longer than a lease, and die.
 *
 * What has to hold, in every history:
 *
 *  (1) The stored checkpoint never passes an event that no handler has handled, and moves forward
 *      only.
 *  (2) A holder hands events over in their order, without leaving one out, from the checkpoint on.
 *  (3) A projection has counted each event once in the end, and never more than there are; also
 *      when it is told to start over in between.
 *  (4) In the end all is handled, and fences of later leases are higher.
 *  (5) An event that ends whoever handles it is parked after max_attempts of that, and one before
 *      anybody was careful; no other is, and those behind it go on.
 */
#include <holdfast/subscribe.h>
#include <holdfast/table.h>

#include <stdio.h>
#include <string.h>

#include "sim.h"

#include "events/store/events.h"

enum { HOSTS = 3, APPENDS = 8, EVENTS_MAX = 100, LEASE_MS = 300, LIVES = 3 };

static const struct hf_str events_table = {"events", 6}, totals_table = {"totals", 6};

struct history {
    struct hf_events *truth;
    bool handled[EVENTS_MAX]; /* by version of the stream, from 1 on */
    uint64_t checkpoint;      /* the version that was seen in the item */
    uint64_t fence;
    uint64_t appended; /* events that are there for sure; 0 while it is not known */
    bool writer_done;
    bool rebuilt;
    uint64_t seen_writes;
    size_t events, taken, resets, parked; /* over all histories */
    uint64_t killer;                      /* the version of an event; 0: there is none */
    int killed;                           /* how often it did it */
};

struct host {
    struct history *m;
    struct actor *a;
    uint64_t fence, last; /* of the lease that it has: the version handed over last */
};

static struct hf_events *open_by(struct actor *a)
{
    struct hf_events *store;

    while (hf_events_open(a->s, a->db, HF_OPTIONS(hf_events_options, .table = events_table),
                          &store) != HF_OK)
        hf_scope_reset(a->s);
    return store;
}

static void writer(struct actor *a)
{
    struct history *m = a->user;
    struct hf_events *store = open_by(a);
    struct hf_new_event events[2] = {{.type = HF_STR("x")}, {.type = HF_STR("y")}};

    for (int i = 0; i < APPENDS; i++) {
        struct hf_append append = {.stream = {HF_STR("s"), HF_STR("1")},
                                   .events = events,
                                   .events_len = 1 + sim_random_below(a->sim, 2)};

        hf_scope_reset(a->s);
        if (hf_events_append(a->s, store, &append, 1, NULL, NULL) != HF_OK)
            actor_sleep_ms(a, 20);
        actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 100));
    }
    m->writer_done = true;
    hf_events_close(store);
}

/* ---- handlers ------------------------------------------------------------------------------- */

static enum hf_status handle(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct host *host = user;
    struct history *m = host->m;
    uint64_t version = event->version;

    SIM_CHECK(host->a, version < EVENTS_MAX);
    SIM_CHECK(host->a, version == 1 || m->handled[version - 1]);  /* (2) */
    SIM_CHECK(host->a, !host->last || version <= host->last + 1); /* again, or the next */
    if (version == m->killer) {                                   /* (5) */
        SIM_CHECK(host->a, ++m->killed <= LIVES + 1);
        actor_die(host->a);
    }
    if (m->killer) {
        m->handled[version] = true;
        host->last = version;
        return HF_OK;
    }
    if (sim_random_below(host->a->sim, 12) == 0)
        return hf_scope_fail(s, HF_IO, "not this time");
    if (sim_random_below(host->a->sim, 6) == 0)
        actor_sleep_ms(host->a, (uint32_t)sim_random_below(host->a->sim, LEASE_MS));
    m->handled[version] = true;
    host->last = version;
    return HF_OK;
}

static void told(enum hf_subscription_event what, const struct hf_stored_event *event,
                 const struct hf_error *error, void *user)
{
    struct host *host = user;

    (void)error;
    if (what == HF_SUBSCRIPTION_PARKED && host->m->killer) {
        SIM_CHECK(host->a, event->version == host->m->killer);
        host->m->handled[event->version] = true;
        host->last = event->version;
    }
    if (what == HF_SUBSCRIPTION_TAKEN)
        host->last = 0;
    host->m->taken += what == HF_SUBSCRIPTION_TAKEN;
    host->m->parked += what == HF_SUBSCRIPTION_PARKED;
}

/* The count of a type, in the transaction that moves the checkpoint. */
static enum hf_status count(struct hf_scope *s, struct hf_tx *tx,
                            const struct hf_stored_event *event, void *user)
{
    struct hf_update_item update = {
        .table = totals_table,
        .key = HF_ITEM(s, HF_S("id", hf_scope_format(s, "%d", (int)event->version))),
        .update = HF_STR("ADD #n :one"),
        .names = HF_ITEM(s, HF_S("#n", HF_STR("n"))),
        .values = HF_ITEM(s, HF_N(":one", 1)),
    };
    struct host *host = user;

    host->m->handled[event->version] = true;
    return hf_tx_add(s, tx, &(struct hf_transact_write){.update = &update});
}

/* At once, and without bad luck: who is paused in here for longer than a lease would have to ask
 * for the fence before it goes on. */
static enum hf_status forget(struct hf_scope *s, void *user)
{
    struct host *host = user;

    host->m->resets++;
    for (int i = 1; i <= 2 * APPENDS * 3; i++) {
        struct hf_delete_item del = {.table = totals_table,
                                     .key = HF_ITEM(s, HF_S("id", hf_scope_format(s, "%d", i)))};
        struct hf_delete_item_result done;

        SIM_CHECK(host->a, hf_delete_item(s, sim_db(host->a->sim), &del, &done) == HF_OK);
    }
    return HF_OK;
}

/* ---- hosts ---------------------------------------------------------------------------------- */

static void run_host(struct actor *a, bool projection)
{
    struct history *m = a->user;
    struct hf_events *store = open_by(a);
    struct host host = {.m = m, .a = a};
    struct hf_subscribe_options options = {.size = sizeof(options),
                                           .no_threads = true,
                                           .lease_ms = LEASE_MS,
                                           .poll_ms = 50,
                                           .checkpoint_ms = 40,
                                           .backoff_ms = 10,
                                           .max_attempts = 1000,
                                           .on_notice = told,
                                           .owner = hf_str_from(a->name),
                                           .user = &host};
    struct hf_subscription *sub;
    int idle = 0;

    if (projection) {
        options.project = count;
        options.reset = forget;
        options.batch_max = 2;
    } else {
        options.each = handle;
        options.batch_max = 3;
    }
    if (m->killer) {
        options.max_attempts = LIVES;
        options.give_up = HF_GIVE_UP_PARK;
    }
    SIM_CHECK(a, hf_subscribe(a->s, store, HF_STR("q"), &options, &sub) == HF_OK);
    while (idle < 30) {
        uint32_t wait_ms;
        enum hf_status status;
        struct hf_subscription_metrics metrics;

        hf_scope_reset(a->s);
        status = hf_subscription_step(a->s, sub, &wait_ms);
        hf_subscription_metrics(sub, &metrics);
        if (metrics.fence && metrics.fence != host.fence) { /* (4) */
            SIM_CHECK(a, metrics.fence > host.fence);
            host.fence = metrics.fence;
        }
        if (status != HF_OK && wait_ms < 10)
            wait_ms = 10;
        idle = m->writer_done && metrics.state != HF_SUBSCRIPTION_CATCHING_UP ? idle + 1 : 0;
        if (projection && !m->rebuilt && sim_random_below(a->sim, 40) == 0) {
            m->rebuilt = true; /* or may be */
            hf_scope_reset(a->s);
            status = hf_subscription_rebuild(a->s, store, HF_STR("q"), (struct hf_str){0});
        }
        if (wait_ms)
            actor_sleep_ms(a, wait_ms < 50 ? wait_ms : 50);
        if (sim_random_below(a->sim, 60) == 0) {
            hf_scope_reset(a->s);
            status = hf_subscription_stop(a->s, sub);
        }
    }
    hf_subscription_close(sub);
    hf_events_close(store);
}

static void plain_host(struct actor *a)
{
    run_host(a, false);
}

static void projecting_host(struct actor *a)
{
    run_host(a, true);
}

/* ---- what has to hold ----------------------------------------------------------------------- */

/* The version of the event at the stored checkpoint; 0: none. */
static uint64_t stored_version(struct sim *sim, struct history *m)
{
    struct hf_scope *s = sim_scope(sim);
    struct hf_subscription_info info;
    struct hf_events_page page;
    uint64_t version = 0;

    if (hf_subscription_info(s, m->truth, HF_STR("q"), &info) != HF_OK || !info.checkpoint.ptr)
        return 0;
    CHECK_OK(hf_events_read(s, m->truth, (struct hf_event_stream_key){HF_STR("s"), HF_STR("1")},
                            HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
    for (size_t i = 0; i < page.events_len; i++)
        if (memcmp(page.events[i].position.ptr, info.checkpoint.ptr, HF_POSITION_LEN) <= 0)
            version = page.events[i].version;
    return version;
}

static const char *watch(struct sim *sim, void *user)
{
    struct history *m = user;
    struct hf_scope_mark mark;
    uint64_t version;

    if (m->seen_writes == sim_writes(sim))
        return NULL;
    m->seen_writes = sim_writes(sim);
    mark = hf_scope_mark(sim_scope(sim));
    version = stored_version(sim, m);
    hf_scope_rewind(sim_scope(sim), mark);
    if (version < m->checkpoint && !m->rebuilt)
        return "the checkpoint moved back";
    m->checkpoint = version;
    for (uint64_t i = 1; i <= version; i++) /* (1) */
        if (!m->handled[i] && i != m->killer)
            return "the checkpoint has passed an event that was not handled";
    return NULL;
}

static void check_end(struct sim *sim, struct history *m, bool projection)
{
    struct hf_scope *s = sim_scope(sim);
    struct hf_events_page page;

    CHECK_OK(hf_events_read(s, m->truth, (struct hf_event_stream_key){HF_STR("s"), HF_STR("1")},
                            HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
    for (uint64_t i = 1; i <= page.version; i++) {
        struct hf_get_item get = {.table = totals_table,
                                  .key = HF_ITEM(s, HF_S("id", hf_scope_format(s, "%d", (int)i)))};
        struct hf_get_item_result got;
        int64_t n = 0;

        CHECK(m->handled[i]); /* (4) */
        if (!projection)
            continue;
        CHECK_OK(hf_get_item(s, sim_db(sim), &get, &got));
        (void)hf_value_i64(hf_item_get(got.item, HF_STR("n")), &n);
        CHECK_INT(1, n); /* (3) */
    }
    if (m->killer) { /* (5) */
        struct hf_parked_list parked;

        CHECK_OK(hf_subscription_parked(s, m->truth, HF_STR("q"), (struct hf_str){0}, 0, &parked));
        CHECK_INT(1, parked.events_len);
        CHECK_INT((int)m->killer, (int)parked.events[0].version);
        CHECK_INT(LIVES, parked.events[0].attempts);
        CHECK(m->killed >= LIVES);
    }
    m->events += page.version;
}

static void run_history(struct sim *sim, struct history *sum, bool projection)
{
    static const char *const names[HOSTS] = {"ann", "ben", "cyd"};
    const struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element hash = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table create = {.table = totals_table,
                                     .attributes = &id,
                                     .attributes_len = 1,
                                     .key_schema = &hash,
                                     .key_schema_len = 1};
    struct history *m = hf_scope_alloc(sim_scope(sim), sizeof(*m));

    memset(m, 0, sizeof(*m));
    m->killer = sum->killer ? 1 + sim_random_below(sim, APPENDS) : 0;
    CHECK_OK(hf_table_ensure(sim_scope(sim), sim_db(sim), &create, NULL));
    CHECK_OK(hf_events_open(sim_scope(sim), sim_db(sim),
                            HF_OPTIONS(hf_events_options, .table = events_table, .shards = 1),
                            &m->truth));
    sim_watch(sim, watch, m);
    sim_start(sim, "writer", writer, m);
    for (int i = 0; i < HOSTS; i++)
        sim_start(sim, names[i], projection ? projecting_host : plain_host, m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "last", projection ? projecting_host : plain_host, m);
    sim_run(sim);
    if (!sim_failed(sim))
        check_end(sim, m, projection);
    sum->events += m->events;
    sum->taken += m->taken;
    sum->resets += m->resets;
    hf_events_close(m->truth);
}

static void plain_history(struct sim *sim, void *user)
{
    run_history(sim, user, false);
}

static void projection_history(struct sim *sim, void *user)
{
    run_history(sim, user, true);
}

static const struct sim_luck bad_luck = {.lost_requests = 10,
                                         .lost_answers = 10,
                                         .twice = 8,
                                         .later_again = 8,
                                         .refused = 8,
                                         .slow = 10,
                                         .pauses = 10,
                                         .deaths = 4,
                                         .slow_ms = 150,
                                         .pause_ms = 700,
                                         .wall_skew_ms = 2000,
                                         .drift_ppm = 500};

TEST(subscribe_sim, checkpoints_pass_nothing)
{
    struct history sum = {.events = 0};

    sim_each(t, 120, &bad_luck, plain_history, &sum);
    CHECK(!sim_is_whole() || (sum.events > 600 && sum.taken > 240));
}

/* Nobody dies but of the killer, as what is handled when somebody dies is a suspect. */
TEST(subscribe_sim, what_ends_its_process_is_parked_and_nothing_else)
{
    const struct sim_luck luck = {.lost_requests = 5,
                                  .lost_answers = 5,
                                  .twice = 8,
                                  .refused = 8,
                                  .slow = 10,
                                  .slow_ms = 50,
                                  .wall_skew_ms = 2000,
                                  .drift_ppm = 500};
    struct history sum = {.killer = 1};

    sim_each(t, 120, &luck, plain_history, &sum);
}

TEST(subscribe_sim, projections_count_once)
{
    struct history sum = {.events = 0};

    sim_each(t, 120, &bad_luck, projection_history, &sum);
    CHECK(!sim_is_whole() || (sum.events > 600 && sum.resets > 60));
}
