/*
 * events/admin_sim_test.c: archive, truncation and the sweep under bad luck. Some append, small and
 * large; two move streams into the archive and out of it, against each other; two truncate and
 * sweep; all lose requests and answers, are paused, and die.
 *
 * What has to hold, in every history, once all have ended:
 *
 *  (1) Everything can be verified: chains, the global order against the streams, and back.
 *  (2) What was appended, by who was told so, is there at its version, unless it was truncated.
 *  (3) A stream can be moved back out of the archive, and appended to.
 *  (4) Nothing is left of what was swept, or of appends that did not come to their end; unless
 *      requests are done once more long after, as nobody can see to that.
 */
#include <holdfast/events.h>

#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { STREAMS = 2, WRITERS = 2, APPENDS = 4, LARGE = 36, TOLD_MAX = 1000, OLD_S = 30 };

static const struct hf_str table = {"events", 6};
static const char *const stream_ids[STREAMS] = {"1", "2"};

struct told {
    char id[24];
    int stream;
    uint64_t version;
};

struct model {
    struct told told[TOLD_MAX];
    size_t told_len;
    int begun[WRITERS];
    bool late;                  /* requests are done once more, some time later */
    size_t swept, moved, large; /* over all histories */
};

static struct hf_event_stream_key stream_of(size_t number)
{
    return (struct hf_event_stream_key){HF_STR("s"), hf_str_from(stream_ids[number])};
}

static struct hf_events *open_by(struct actor *a)
{
    struct hf_events *store;

    while (hf_events_open(a->s, a->db, HF_OPTIONS(hf_events_options, .table = table), &store) !=
           HF_OK)
        hf_scope_reset(a->s);
    return store;
}

/* ---- the actors ----------------------------------------------------------------------------- */

static void writer(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);
    int number = a->name[0] - 'a';

    while (m->begun[number] < APPENDS) {
        size_t stream = sim_random_below(a->sim, STREAMS);
        size_t len = sim_random_below(a->sim, 5) ? 1 + sim_random_below(a->sim, 3) : LARGE;
        struct hf_new_event events[LARGE];
        struct hf_append append = {.stream = stream_of(stream),
                                   .events = events,
                                   .events_len = len};
        struct hf_appended done;

        hf_scope_reset(a->s);
        for (size_t i = 0; i < len; i++)
            events[i] = (struct hf_new_event){.id = hf_scope_format(a->s, "%s-%d-%zu", a->name,
                                                                    m->begun[number], i),
                                              .type = HF_STR("t"),
                                              .causation = HF_STR("cause"),
                                              .correlation = HF_STR("tree")};
        m->begun[number]++;
        if (hf_events_append(a->s, store, &append, 1, NULL, &done) == HF_OK) {
            SIM_CHECK(a, m->told_len + len <= TOLD_MAX);
            for (size_t i = 0; i < len; i++) {
                struct told *told = &m->told[m->told_len++];

                snprintf(told->id, sizeof(told->id), "%.*s", HF_FMT(events[i].id));
                told->stream = (int)stream;
                told->version = done.first + i;
            }
            m->large += len == LARGE;
        }
        actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 15000));
    }
    hf_events_close(store);
}

static void mover(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);

    for (int i = 0; i < 6; i++) {
        struct hf_event_stream_key stream = stream_of(sim_random_below(a->sim, STREAMS));

        hf_scope_reset(a->s);
        m->moved +=
            (sim_random_below(a->sim, 2) ? hf_events_archive(a->s, store, stream)
                                         : hf_events_unarchive(a->s, store, stream)) == HF_OK;
        actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 15000));
    }
    hf_events_close(store);
}

static void sweeper(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);

    for (int i = 0; i < 4; i++) {
        struct hf_event_stream_key stream = stream_of(sim_random_below(a->sim, STREAMS));
        struct hf_event_stream_info info;
        struct hf_events_swept swept = {0};
        enum hf_status status;

        actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 40000));
        hf_scope_reset(a->s);
        if (hf_events_stream_info(a->s, store, stream, &info) == HF_OK) {
            status = hf_events_truncate(a->s, store, stream,
                                        info.version / 2 + sim_random_below(a->sim, 3));
            SIM_CHECK(a, status != HF_CORRUPT);
        }
        hf_scope_reset(a->s);
        status = hf_events_sweep(a->s, store, OLD_S, &swept);
        SIM_CHECK(a, status != HF_CORRUPT);
        m->swept += swept.events;
    }
    hf_events_close(store);
}

/* ---- what has to hold ----------------------------------------------------------------------- */

static size_t count_items(struct actor *a, const char *begin)
{
    struct hf_scan scan = {.table = table, .consistent = HF_YES};
    size_t found = 0;

    do {
        struct hf_scan_result result;

        SIM_CHECK(a, hf_scan(a->s, a->db, &scan, &result) == HF_OK);
        for (size_t i = 0; i < result.items_len; i++) {
            struct hf_str pk = hf_value_str(hf_item_get(result.items[i], HF_STR("pk")));

            found += pk.len >= strlen(begin) && memcmp(pk.ptr, begin, strlen(begin)) == 0;
        }
        scan.start = result.last;
    } while (scan.start.ptr);
    return found;
}

static void check_told(struct actor *a, struct hf_events *store)
{
    struct model *m = a->user;

    for (size_t i = 0; i < m->told_len; i++) { /* (2) */
        struct told *told = &m->told[i];
        struct hf_event_stream_info info;
        struct hf_stored_event event;

        hf_scope_reset(a->s);
        SIM_CHECK(a, hf_events_stream_info(a->s, store, stream_of((size_t)told->stream), &info) ==
                         HF_OK);
        if (told->version < info.first)
            continue;
        SIM_CHECK(a, hf_events_get(a->s, store, hf_str_from(told->id), &event) == HF_OK);
        SIM_CHECK(a, event.version == told->version);
        SIM_CHECK(a, hf_str_equal(event.stream.id, hf_str_from(stream_ids[told->stream])));
    }
}

static void auditor(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);
    struct hf_events_verified verified;
    struct hf_events_swept swept;
    const struct hf_stored_event *events;
    size_t len;

    SIM_CHECK(a, hf_events_verify(a->s, store, NULL, NULL, &verified) == HF_OK); /* (1) */
    for (size_t i = 0; i < STREAMS; i++) {                                       /* (3) */
        struct hf_new_event event = {.type = HF_STR("t")};
        struct hf_append append = {.stream = stream_of(i), .events = &event, .events_len = 1};
        enum hf_status status = hf_events_unarchive(a->s, store, stream_of(i));

        SIM_CHECK(a, status == HF_OK || status == HF_NOT_FOUND);
        SIM_CHECK(a, hf_events_append(a->s, store, &append, 1, NULL, NULL) == HF_OK);
    }
    check_told(a, store);
    for (int i = 0; i < 3; i++) {
        actor_sleep_ms(a, 600 * 1000);
        hf_scope_reset(a->s);
        SIM_CHECK(a, hf_events_sweep(a->s, store, OLD_S, &swept) == HF_OK);
    }
    SIM_CHECK(a, hf_events_verify(a->s, store, NULL, NULL, &verified) == HF_OK);
    SIM_CHECK(a, count_items(a, "z.") == 0);
    SIM_CHECK(a, hf_events_caused_by(a->s, store, HF_STR("cause"), &events, &len) == HF_OK);
    check_told(a, store);
    if (!m->late) { /* (4): with an id are all but those of this actor */
        SIM_CHECK(a, count_items(a, "x") + count_items(a, "y") == 0);
        SIM_CHECK(a, count_items(a, "i.") >= len);
        SIM_CHECK(a, count_items(a, "i.") == verified.events - STREAMS);
        SIM_CHECK(a, count_items(a, "r.") == 2 * count_items(a, "i."));
    }
    hf_events_close(store);
}

static void history(struct sim *sim, void *user)
{
    static const char *const writers[WRITERS] = {"a", "b"};
    struct model *sum = user;
    struct model *m = hf_scope_alloc(sim_scope(sim), sizeof(*m));
    struct hf_events *truth;

    memset(m, 0, sizeof(*m));
    m->late = sum->late;
    CHECK_OK(hf_events_open(sim_scope(sim), sim_db(sim),
                            HF_OPTIONS(hf_events_options, .table = table, .shards = 2), &truth));
    for (int i = 0; i < WRITERS; i++)
        sim_start(sim, writers[i], writer, m);
    sim_start(sim, "mia", mover, m);
    sim_start(sim, "max", mover, m);
    sim_start(sim, "sue", sweeper, m);
    sim_start(sim, "sam", sweeper, m);
    sim_run(sim);
    sim_calm(sim);
    if (!sim_failed(sim)) {
        sim_start(sim, "the auditor", auditor, m);
        sim_run(sim);
    }
    sum->swept += m->swept;
    sum->moved += m->moved;
    sum->large += m->large;
    hf_events_close(truth);
}

static const struct sim_luck bad_luck = {.lost_requests = 15,
                                         .lost_answers = 15,
                                         .twice = 10,
                                         .refused = 10,
                                         .slow = 20,
                                         .pauses = 15,
                                         .deaths = 5,
                                         .slow_ms = 200,
                                         .pause_ms = 500,
                                         .wall_skew_ms = 3000,
                                         .drift_ppm = 500};

TEST(admin_sim, nothing_is_lost_and_nothing_is_left)
{
    struct model sum = {.late = false};

    sim_each(t, 100, &bad_luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.swept > 300 && sum.moved > 200 && sum.large > 20));
}

TEST(admin_sim, nothing_is_lost_when_requests_are_done_late)
{
    struct sim_luck luck = bad_luck;
    struct model sum = {.late = true};

    luck.later_again = 15;
    sim_each(t, 100, &luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.swept > 300 && sum.moved > 200 && sum.large > 20));
}
