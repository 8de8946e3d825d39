/*
 * events/reader_sim_test.c: the global order under bad luck. Several append, with clocks that
 * differ by seconds or by days, and are paused, lose answers, and die; others read meanwhile.
 *
 * What has to hold, in every history:
 *
 *  (1) A reader sees positions that only grow, over all of its lives.
 *  (2) What it has read is how the order begins, as it is in the end: nothing was left out, and
 *      nothing came in front of what was read.
 *  (3) In the order, versions of a stream follow each other from 1 on.
 *  (4) What was appended, by who was told so, is there, once.
 *  (5) A reader that reads again what is closed asks for no write.
 */
#include <holdfast/events.h>

#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { WRITERS = 3, READERS = 2, APPENDS = 5, EVENTS_MAX = 200, STREAMS = 3 };

static const struct hf_str table = {"events", 6};
static const char *const stream_ids[STREAMS] = {"1", "2", "3"};

struct log {
    char positions[EVENTS_MAX][HF_POSITION_LEN + 1];
    size_t len;
};

struct reading {
    struct log logs[READERS];
    struct log told; /* of appends that were acknowledged: the position of the last event */
    int begun[WRITERS];
    bool done[WRITERS];
    uint32_t shards;
    size_t events, read_early, acknowledged; /* over all histories */
};

static struct hf_events *open_by(struct actor *a)
{
    struct hf_events *store;

    while (hf_events_open(a->s, a->db, HF_OPTIONS(hf_events_options, .table = table), &store) !=
           HF_OK)
        hf_scope_reset(a->s);
    return store;
}

static void log_add(struct actor *a, struct log *log, struct hf_str position)
{
    SIM_CHECK(a, log->len < EVENTS_MAX && position.len == HF_POSITION_LEN);
    memcpy(log->positions[log->len++], position.ptr, position.len);
}

/* ---- the actors ----------------------------------------------------------------------------- */

static void writer(struct actor *a)
{
    struct reading *m = a->user;
    struct hf_events *store = open_by(a);
    int number = a->name[0] - 'a';

    while (m->begun[number] < APPENDS) {
        struct hf_new_event events[3] = {{.type = HF_STR("x")},
                                         {.type = HF_STR("y")},
                                         {.type = HF_STR("x")}};
        size_t first = sim_random_below(a->sim, STREAMS);
        struct hf_append appends[2] = {{.stream = {HF_STR("s"), hf_str_from(stream_ids[first])},
                                        .events = events,
                                        .events_len = 1 + sim_random_below(a->sim, 3)},
                                       {.stream = {HF_STR("s"),
                                                   hf_str_from(stream_ids[(first + 1) % STREAMS])},
                                        .events = events,
                                        .events_len = 1}};
        size_t len = 1 + (sim_random_below(a->sim, 4) == 0);
        struct hf_appended results[2];

        m->begun[number]++;
        hf_scope_reset(a->s);
        if (hf_events_append(a->s, store, appends, len, NULL, results) == HF_OK)
            for (size_t i = 0; i < len; i++)
                log_add(a, &m->told, results[i].position);
        actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 30));
    }
    m->done[number] = true;
    hf_events_close(store);
}

static bool all_done(const struct reading *m)
{
    for (int i = 0; i < WRITERS; i++)
        if (!m->done[i])
            return false;
    return true;
}

static void reader(struct actor *a)
{
    struct reading *m = a->user;
    struct log *log = &m->logs[a->name[0] - 'x'];
    struct hf_events *store = open_by(a);
    struct hf_events_reader *r;
    struct hf_events_all_options options = {.size = sizeof(options), .limit = 4};
    bool last = false;

    if (log->len)
        options.after = hf_str_from(log->positions[log->len - 1]);
    hf_scope_reset(a->s);
    SIM_CHECK(a, hf_events_reader_open(a->s, store, &options, &r) == HF_OK);
    for (;;) {
        const struct hf_stored_event *events;
        size_t len;
        bool done = all_done(m);

        hf_scope_reset(a->s);
        if (hf_events_reader_next(a->s, r, &events, &len) != HF_OK) {
            actor_sleep_ms(a, 20);
            continue;
        }
        for (size_t i = 0; i < len; i++) {
            SIM_CHECK(a, !log->len || memcmp(log->positions[log->len - 1], events[i].position.ptr,
                                             HF_POSITION_LEN) < 0); /* (1) */
            log_add(a, log, events[i].position);
        }
        if (!done)
            m->read_early += len;
        if (!len && last)
            break;
        last = !len && done;
        if (!len)
            actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 20));
    }
    hf_events_reader_close(r);
    hf_events_close(store);
}

/* ---- what has to hold ----------------------------------------------------------------------- */

static void auditor(struct actor *a)
{
    struct reading *m = a->user;
    struct hf_events *store = open_by(a);
    struct log order = {.len = 0};
    uint64_t versions[STREAMS] = {0}, writes;
    struct hf_events_reader *r;
    const struct hf_stored_event *events;
    size_t len;

    for (int round = 0; round < 2; round++) {
        order.len = 0;
        memset(versions, 0, sizeof(versions));
        writes = sim_writes(a->sim);
        SIM_CHECK(a, hf_events_reader_open(a->s, store, NULL, &r) == HF_OK);
        do {
            SIM_CHECK(a, hf_events_reader_next(a->s, r, &events, &len) == HF_OK);
            for (size_t i = 0; i < len; i++) {
                int stream = events[i].stream.id.ptr[0] - '1';

                SIM_CHECK(a, events[i].version == ++versions[stream]); /* (3) */
                log_add(a, &order, events[i].position);
            }
        } while (len);
        hf_events_reader_close(r);
        SIM_CHECK(a, round == 0 || writes == sim_writes(a->sim)); /* (5) */
    }
    for (int i = 0; i < READERS; i++) { /* (2) */
        SIM_CHECK(a, m->logs[i].len == order.len);
        SIM_CHECK(a, memcmp(m->logs[i].positions, order.positions,
                            order.len * sizeof(order.positions[0])) == 0);
    }
    for (size_t i = 0; i < m->told.len; i++) { /* (4) */
        size_t found = 0;

        for (size_t j = 0; j < order.len; j++)
            found += memcmp(order.positions[j], m->told.positions[i], HF_POSITION_LEN) == 0;
        SIM_CHECK(a, found == 1);
    }
    m->events += order.len;
    m->acknowledged += m->told.len;
    hf_events_close(store);
}

static void history(struct sim *sim, void *user)
{
    static const char *const writers[WRITERS] = {"a", "b", "c"}, *readers[READERS] = {"x", "y"};
    struct reading *sum = user;
    struct reading *m = hf_scope_alloc(sim_scope(sim), sizeof(*m));
    struct hf_events *truth;

    memset(m, 0, sizeof(*m));
    CHECK_OK(hf_events_open(sim_scope(sim), sim_db(sim),
                            HF_OPTIONS(hf_events_options, .table = table, .shards = sum->shards),
                            &truth));
    for (int i = 0; i < WRITERS; i++)
        sim_start(sim, writers[i], writer, m);
    for (int i = 0; i < READERS; i++)
        sim_start(sim, readers[i], reader, m);
    sim_run(sim);
    sim_calm(sim);
    if (!sim_failed(sim)) {
        sim_start(sim, "the auditor", auditor, m);
        sim_run(sim);
    }
    sum->events += m->events;
    sum->read_early += m->read_early;
    sum->acknowledged += m->acknowledged;
    hf_events_close(truth);
}

static const struct sim_luck bad_luck = {.lost_requests = 15,
                                         .lost_answers = 15,
                                         .twice = 10,
                                         .later_again = 10,
                                         .refused = 10,
                                         .slow = 20,
                                         .pauses = 15,
                                         .deaths = 5,
                                         .slow_ms = 200,
                                         .pause_ms = 500,
                                         .wall_skew_ms = 3000,
                                         .drift_ppm = 500};

TEST(reader_sim, nothing_is_skipped_with_clocks_that_differ)
{
    struct reading sum = {.shards = 2};

    sim_each(t, 600, &bad_luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.events > 6000 && sum.read_early > sum.events / 4));
}

TEST(reader_sim, nothing_is_skipped_with_clocks_that_differ_by_days)
{
    struct sim_luck luck = bad_luck;
    struct reading sum = {.shards = 1};

    luck.wall_skew_ms = 40 * 3600 * 1000;
    sim_each(t, 400, &luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.events > 4000 && sum.acknowledged > 1000));
}

/* Nothing goes wrong but that all run at the same time: many histories, of the places where they
 * may meet. */
TEST(reader_sim, nothing_is_skipped_between_two_steps)
{
    const struct sim_luck luck = {.slow = 300, .slow_ms = 40, .wall_skew_ms = 5};
    struct reading sum = {.shards = 3};

    sim_each(t, 600, &luck, history, &sum);
    CHECK(!sim_is_whole() || sum.read_early > sum.events / 4);
}
