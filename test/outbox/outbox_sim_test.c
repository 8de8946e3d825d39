/*
 * outbox/outbox_sim_test.c: an outbox under bad luck. Answers get lost, requests are done late or
 * twice, workers are paused for longer than a lease, and die.
 *
 * What has to hold, in every history:
 *
 *  (1) What was emitted is there once; what was not, is not. Who was told that it failed, and not
 *      that it may have happened, finds nothing.
 *  (2) An id that the caller chose is there once, however many emit it.
 *  (3) No two claims of an event have the same fence, and while the lease of one lasts nobody else
 *      has it.
 *  (4) An event is completed by one claim at most, and none is forgotten: in the end each is
 *      published or became a dead letter.
 *  (5) A retry by hand lets an event wait once, in one place.
 */
#include <holdfast/outbox.h>

#include <stdio.h>

#include "sim.h"

#include "outbox/outbox.h"

enum { EVENTS = 6, ACTORS = 3, LEASE_MS = 400, SKEW_MS = 150 };

static const struct hf_str table = {"outbox", 6};

static struct hf_outbox *open_by(struct actor *a)
{
    struct hf_outbox *outbox;

    while (hf_outbox_open(a->s, a->db, HF_OPTIONS(hf_outbox_options, .table = table), &outbox) !=
           HF_OK)
        hf_scope_reset(a->s);
    return outbox;
}

static size_t count_type(struct actor *a, struct hf_outbox *truth, struct hf_str type)
{
    struct hf_event_list list;

    SIM_CHECK(a, hf_outbox_pending(sim_scope(a->sim), truth,
                                   HF_OPTIONS(hf_event_list_options, .type = type, .limit = 1000,
                                              .not_due_too = true),
                                   &list) == HF_OK);
    return list.events_len;
}

/* ---- emitting (1) (2) ----------------------------------------------------------------------- */

struct emitting {
    struct hf_outbox *truth;
    struct {
        char type[16];
        size_t len; /* how many events of that type belong together */
        bool sent, known, done;
    } calls[ACTORS * EVENTS];
    int told; /* how many were told that they have emitted the chosen id */
    bool unknown;
    int seen, told_failed; /* over all histories */
};

static void emitter(struct actor *a)
{
    struct emitting *m = a->user;
    struct hf_outbox *outbox = open_by(a);
    int number = a->name[0] - 'a';

    for (int i = 0; i < EVENTS; i++) {
        int call = number * EVENTS + i;
        struct hf_event events[3];
        bool alone = i == 4;
        enum hf_status status;

        if (m->calls[call].sent)
            continue; /* in another life */
        m->calls[call].sent = true;
        m->calls[call].len = i % 3 == 0 ? 3 : 1;
        snprintf(m->calls[call].type, sizeof(m->calls[call].type), "type-%d", call);
        for (size_t j = 0; j < 3; j++)
            events[j] = (struct hf_event){.type = hf_str_from(m->calls[call].type),
                                          .key = HF_STR("k"),
                                          .sequence = j + 1};
        hf_scope_reset(a->s);
        status = hf_outbox_emit(a->s, outbox, events, m->calls[call].len,
                                HF_OPTIONS(hf_emit_options, .each_alone = alone));
        m->calls[call].known = status == HF_OK || !hf_scope_error(a->s)->may_have_happened;
        m->calls[call].done = status == HF_OK;
    }
    hf_scope_reset(a->s);
    if (number < 2) {
        struct hf_event event = {.type = HF_STR("chosen"), .id = HF_STR("the one")};
        enum hf_status status = hf_outbox_emit(a->s, outbox, &event, 1, NULL);

        m->told += status == HF_OK;
        m->unknown = m->unknown || (status != HF_OK && status != HF_DUPLICATE) || a->life > 0;
    }
    hf_outbox_close(outbox);
}

static void emit_auditor(struct actor *a)
{
    struct emitting *m = a->user;

    for (int i = 0; i < ACTORS * EVENTS; i++) {
        size_t found = count_type(a, m->truth, hf_str_from(m->calls[i].type));

        SIM_CHECK(a, found == 0 || found == m->calls[i].len); /* all or none, none twice */
        if (!m->calls[i].known)
            continue;
        SIM_CHECK(a, (found > 0) == m->calls[i].done);
        m->seen += m->calls[i].done;
        m->told_failed += !m->calls[i].done;
    }
    SIM_CHECK(a, count_type(a, m->truth, HF_STR("chosen")) <= 1);
    SIM_CHECK(a, m->told <= 1 && (m->unknown || m->told == 1));
    SIM_CHECK(a, m->told == 0 || count_type(a, m->truth, HF_STR("chosen")) == 1);
}

static void emit_history(struct sim *sim, void *user)
{
    static const char *const names[ACTORS] = {"ann", "ben", "cyd"};
    struct emitting *sum = user, m = {.told = 0};

    CHECK_OK(hf_outbox_open(sim_scope(sim), sim_db(sim),
                            HF_OPTIONS(hf_outbox_options, .table = table, .buckets = 3), &m.truth));
    for (int i = 0; i < ACTORS; i++)
        sim_start(sim, names[i], emitter, &m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "auditor", emit_auditor, &m);
    sim_run(sim);
    sum->seen += m.seen;
    sum->told_failed += m.told_failed;
    hf_outbox_close(m.truth);
}

TEST(outbox_sim, emitted_once_or_not_at_all)
{
    const struct sim_luck luck = {.lost_requests = 30,
                                  .lost_answers = 60,
                                  .twice = 30,
                                  .later_again = 20,
                                  .refused = 15,
                                  .slow = 10,
                                  .pauses = 8,
                                  .deaths = 8,
                                  .slow_ms = 400,
                                  .pause_ms = 900,
                                  .wall_skew_ms = 5000,
                                  .drift_ppm = 500};
    struct emitting sum = {.seen = 0};

    sim_each(t, 1000, &luck, emit_history, &sum);
    CHECK(!sim_is_whole() || (sum.seen > 1000 && sum.told_failed > 10));
}

/* ---- claiming (3) (4) ----------------------------------------------------------------------- */

struct event_model {
    uint64_t fences;  /* that were told, as bits */
    uint64_t fence;   /* the highest of these */
    int64_t until_us; /* true time: how long its lease surely lasts, */
    bool held;        /* unless it was given up before */
    int published, dead;
};

struct working {
    struct hf_outbox *truth;
    struct event_model events[EVENTS];
    bool history;
    int taken_over, lost, refused, completed; /* over all histories */
};

static struct event_model *model_of(struct working *m, const struct hf_claimed_event *event)
{
    return &m->events[event->event.event.sequence - 1];
}

/* A claim was told, which was asked for then; others may have been told of later ones already. */
static void note_claim(struct actor *a, struct working *m, const struct hf_claimed_event *event,
                       int64_t asked_us)
{
    struct event_model *e = model_of(m, event);

    SIM_CHECK(a, event->fence < 64 && !(e->fences >> event->fence & 1)); /* (3) */
    e->fences |= UINT64_C(1) << event->fence;
    if (event->fence < e->fence)
        return;
    SIM_CHECK(a, !e->held || e->until_us < sim_now_us(a->sim));
    SIM_CHECK(a, !e->published && !e->dead); /* (4) */
    m->taken_over += e->held;
    e->fence = event->fence;
    e->held = true;
    e->until_us = asked_us + (LEASE_MS - 2) * 1000;
}

/* What the worker does with it. */
static void work_on(struct actor *a, struct working *m, struct hf_outbox *outbox,
                    const struct hf_claimed_event *event)
{
    struct hf_claim_options options = {.size = sizeof(options),
                                       .backoff_ms = 20,
                                       .backoff_max_ms = 100,
                                       .lease_ms = LEASE_MS,
                                       .skew_ms = SKEW_MS,
                                       .max_attempts = 1000};
    const struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct event_model *e = model_of(m, event);
    uint64_t what = sim_random_below(a->sim, 10);
    enum hf_status status;

    actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, LEASE_MS / 2));
    if (what == 0)
        return; /* it forgets about it */
    if (what != 2 && e->fence == event->fence)
        e->held = false; /* from when it is sent on others may have it */
    status = what == 1   ? hf_outbox_release(a->s, outbox, event)
             : what == 2 ? hf_outbox_extend(a->s, outbox, event, LEASE_MS)
             : what == 3 ? hf_outbox_fail(a->s, outbox, event, &error, false, &options)
             : what == 4 ? hf_outbox_fail(a->s, outbox, event, &error, true, &options)
                         : hf_outbox_published(a->s, outbox, event);
    m->lost += status == HF_LOST;
    if (status != HF_OK || what < 4)
        return;
    SIM_CHECK(a, !e->published && !e->dead); /* (4) */
    e->published += what > 4;
    e->dead += what == 4;
    m->completed++;
}

static void worker(struct actor *a)
{
    struct working *m = a->user;
    struct hf_outbox *outbox = open_by(a);
    struct hf_claim_options options = {.size = sizeof(options),
                                       .limit = 2,
                                       .lease_ms = LEASE_MS,
                                       .skew_ms = SKEW_MS,
                                       .max_attempts = 1000,
                                       .owner = hf_str_from(a->name)};

    outbox->history_s = m->history ? 3600 : 0;
    for (int idle = 0; idle < 10;) {
        struct hf_claim_list list;
        int64_t asked_us = sim_now_us(a->sim);

        hf_scope_reset(a->s);
        if (hf_outbox_claim(a->s, outbox, &options, &list) != HF_OK) {
            actor_sleep_ms(a, 50);
            continue;
        }
        m->refused += (int)list.refused;
        idle = list.events_len ? 0 : idle + 1;
        for (size_t i = 0; i < list.events_len; i++)
            note_claim(a, m, &list.events[i], asked_us);
        for (size_t i = 0; i < list.events_len; i++)
            work_on(a, m, outbox, &list.events[i]);
        actor_sleep_ms(a, 100);
    }
    hf_outbox_close(outbox);
}

/* (4) Each is where it should be, once. */
static void work_auditor(struct actor *a)
{
    struct working *m = a->user;
    struct hf_scope *s = sim_scope(a->sim);
    struct hf_event_list list;
    int waiting[EVENTS] = {0}, dead[EVENTS] = {0};

    SIM_CHECK(a,
              hf_outbox_pending(s, m->truth, HF_OPTIONS(hf_event_list_options, .not_due_too = true),
                                &list) == HF_OK);
    for (size_t i = 0; i < list.events_len; i++)
        waiting[list.events[i].event.sequence - 1]++;
    SIM_CHECK(a, hf_outbox_failed(s, m->truth, NULL, &list) == HF_OK);
    for (size_t i = 0; i < list.events_len; i++)
        dead[list.events[i].event.sequence - 1]++;
    SIM_CHECK(a, hf_outbox_history(s, m->truth, NULL, &list) == HF_OK);
    for (size_t i = 0; i < list.events_len; i++)
        SIM_CHECK(a, !waiting[list.events[i].event.sequence - 1] &&
                         !dead[list.events[i].event.sequence - 1]);
    for (int i = 0; i < EVENTS; i++) {
        SIM_CHECK(a, waiting[i] + dead[i] <= 1);
        SIM_CHECK(a, !m->events[i].published || !waiting[i]);
        SIM_CHECK(a, !m->events[i].dead || dead[i]);
        SIM_CHECK(a, !waiting[i]); /* none is forgotten */
    }
}

static void work_history(struct sim *sim, void *user)
{
    static const char *const names[ACTORS] = {"ann", "ben", "cyd"};
    struct working *sum = user, m = {.history = false};
    struct hf_scope *s = sim_scope(sim);

    m.history = sim_random_below(sim, 2);
    CHECK_OK(hf_outbox_open(s, sim_db(sim),
                            HF_OPTIONS(hf_outbox_options, .table = table, .buckets = 2), &m.truth));
    for (int i = 0; i < EVENTS; i++) {
        struct hf_event event = {.type = HF_STR("t"), .sequence = (uint64_t)i + 1};

        CHECK_OK(hf_outbox_emit(s, m.truth, &event, 1, NULL));
    }
    for (int i = 0; i < ACTORS; i++)
        sim_start(sim, names[i], worker, &m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "auditor", work_auditor, &m);
    sim_run(sim);
    sum->taken_over += m.taken_over;
    sum->lost += m.lost;
    sum->refused += m.refused;
    sum->completed += m.completed;
    hf_outbox_close(m.truth);
}

TEST(outbox_sim, claimed_by_one_at_a_time)
{
    const struct sim_luck luck = {.lost_requests = 15,
                                  .lost_answers = 15,
                                  .twice = 15,
                                  .later_again = 10,
                                  .refused = 15,
                                  .slow = 10,
                                  .pauses = 10,
                                  .deaths = 5,
                                  .slow_ms = 300,
                                  .pause_ms = 900,
                                  .wall_skew_ms = SKEW_MS / 2,
                                  .drift_ppm = 500};
    struct working sum = {.history = false};

    sim_each(t, 1000, &luck, work_history, &sum);
    CHECK(!sim_is_whole() ||
          (sum.taken_over > 100 && sum.lost > 100 && sum.refused > 10 && sum.completed > 1000));
}

/* ---- failing, and retrying by hand (5) ------------------------------------------------------ */

struct noting {
    struct hf_outbox *truth;
    int told[EVENTS], unsure[EVENTS]; /* failures, since the event was retried by hand */
    bool retried;                     /* then they are not counted */
    int failures;                     /* over all histories */
};

/* Two of these believe that the bucket is theirs. */
static void failing_relay(struct actor *a)
{
    const struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct noting *m = a->user;
    struct hf_outbox *outbox = open_by(a);

    for (int round = 0; round < 6; round++) {
        struct outbox_reading r = {.now_ms = hf__env_wall_ms(&outbox->env),
                                   .skew_ms = OUTBOX_SKEW_MS,
                                   .limit = 10};
        struct hf_outbox_event *events;

        hf_scope_reset(a->s);
        if (hf__outbox_read(a->s, outbox, &r) != HF_OK)
            continue;
        events = r.events;
        for (size_t i = 0; i < r.len; i++) {
            size_t number = events[i].event.sequence - 1;
            bool last = m->retried && events[i].attempts > 2;
            enum hf_status status;

            m->unsure[number]++; /* should we die in it */
            status = hf__outbox_note_failure(a->s, outbox, &events[i], &error, 0, last);
            if (status == HF_OK || !hf_scope_error(a->s)->may_have_happened)
                m->unsure[number]--;
            m->told[number] += status == HF_OK;
        }
    }
    hf_outbox_close(outbox);
}

static void retrier(struct actor *a)
{
    struct noting *m = a->user;
    struct hf_outbox *outbox = open_by(a);

    for (int round = 0; m->retried && round < 10; round++) {
        hf_scope_reset(a->s);
        (void)!hf_outbox_retry_all(a->s, outbox, NULL, NULL);
        actor_sleep_ms(a, 30);
    }
    hf_outbox_close(outbox);
}

static void note_auditor(struct actor *a)
{
    struct noting *m = a->user;
    struct hf_scope *s = sim_scope(a->sim);
    struct hf_event_list waiting, failed;
    int found[EVENTS] = {0};

    SIM_CHECK(a,
              hf_outbox_pending(s, m->truth, HF_OPTIONS(hf_event_list_options, .not_due_too = true),
                                &waiting) == HF_OK);
    SIM_CHECK(a, hf_outbox_failed(s, m->truth, NULL, &failed) == HF_OK);
    for (size_t i = 0; i < waiting.events_len; i++) {
        const struct hf_outbox_event *event = &waiting.events[i];
        size_t number = event->event.sequence - 1;

        found[number]++;
        m->failures += m->told[number];
        SIM_CHECK(a, m->retried || ((int)event->attempts >= m->told[number] &&
                                    (int)event->attempts <= m->told[number] + m->unsure[number]));
    }
    for (size_t i = 0; i < failed.events_len; i++)
        found[failed.events[i].event.sequence - 1]++;
    for (int i = 0; i < EVENTS; i++)
        SIM_CHECK(a, found[i] == 1);
}

static void note_history(struct sim *sim, void *user)
{
    struct noting *sum = user, m = {.failures = 0};
    struct hf_scope *s = sim_scope(sim);

    m.retried = sim_random_below(sim, 2);
    CHECK_OK(hf_outbox_open(s, sim_db(sim),
                            HF_OPTIONS(hf_outbox_options, .table = table, .buckets = 1), &m.truth));
    for (int i = 0; i < EVENTS; i++) {
        struct hf_event event = {.type = HF_STR("t"), .sequence = (uint64_t)i + 1};

        CHECK_OK(hf_outbox_emit(s, m.truth, &event, 1, NULL));
    }
    sim_start(sim, "ann", failing_relay, &m);
    sim_start(sim, "ben", failing_relay, &m);
    sim_start(sim, "cyd", retrier, &m);
    sim_start(sim, "dan", retrier, &m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "auditor", note_auditor, &m);
    sim_run(sim);
    sum->failures += m.failures;
    hf_outbox_close(m.truth);
}

TEST(outbox_sim, failures_are_counted_once_and_nothing_is_lost)
{
    const struct sim_luck luck = {.lost_requests = 20,
                                  .lost_answers = 30,
                                  .twice = 20,
                                  .later_again = 15,
                                  .refused = 15,
                                  .slow = 10,
                                  .pauses = 8,
                                  .deaths = 5,
                                  .slow_ms = 300,
                                  .pause_ms = 500,
                                  .wall_skew_ms = 5000,
                                  .drift_ppm = 500};
    struct noting sum = {.failures = 0};

    sim_each(t, 500, &luck, note_history, &sum);
    CHECK(!sim_is_whole() || sum.failures > 1000);
}
