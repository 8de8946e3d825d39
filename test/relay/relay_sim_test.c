/*
 * relay/relay_sim_test.c: several relays on one outbox under bad luck. Answers get lost,
 * requests are done late or twice, relays are paused for longer than a lease, and die; the sink is
 * away at times, fails for some events, takes others and says that it did not.
 *
 * What has to hold, in every history:
 *
 *  (1) What was emitted is delivered; nothing else is.
 *  (2) First deliveries of a key are in the order in which it was emitted, but for those whose
 *      commit took longer than relays allow for (LATE_MS, with clocks that differ): relay_read.c.
 *  (3) In the end nothing waits, whatever happened.
 *  (4) While all is well each event is delivered once, nothing is taken over, no write is refused,
 *      and all buckets are somebody's, in fair shares.
 *  (5) What fails for good becomes a dead letter once, and those behind it go on.
 *  (6) Competing relays deliver all, too, in any order.
 *      With urgent ones among them, in some histories, those have an order of their own.
 *  (7) An event that crashes its handlers becomes a dead letter after max_attempts of that, and one
 *      before anybody was careful; no other is, and those behind it go on.
 */
#include <holdfast/relay.h>

#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

enum {
    KEYS = 5,
    EVENTS = 6,
    RELAYS = 3,
    BUCKETS = 6,
    LEASE_MS = 400,
    LATE_MS = 280,
    KILLERS = 2,
    LIVES = 3 /* max_attempts where there are killers */
};

struct model {
    bool good;
    bool gives_up; /* few attempts */
    bool competing;
    bool lanes;     /* some are urgent */
    bool apart;     /* clocks differ by more than relays allow for */
    uint32_t batch; /* with 4, there are many pages */
    uint32_t batch_max;
    bool keeps_order;
    struct hf_outbox *truth; /* without bad luck */
    bool over;
    int counted; /* relays that have told their share when it was over */
    int producers;
    int outage; /* calls that the sink will not answer yet */
    struct {
        bool tried[EVENTS];   /* it may have been emitted */
        bool emitted[EVENTS]; /* it was */
        int delivered[EVENTS];
        bool gave_up[EVENTS];
        bool late[EVENTS];
        int last[2]; /* the last one that was delivered for the first time; [1]: urgent */
    } keys[KEYS];
    uint64_t refused, taken_over, delivered, doubled;
    bool deadly;
    int killers[KILLERS]; /* numbers of events */
    int killed[KILLERS];  /* how often each did it */
};

/* ---- who emits ------------------------------------------------------------------------------ */

struct hand { /* keys of one producer, so that each key has one */
    struct model *model;
    int first, len;
    int at[KEYS]; /* which is next; outlives deaths */
};

static struct hf_outbox *open_by(struct actor *a)
{
    struct hf_outbox *outbox;

    while (hf_outbox_open(a->s, a->db, NULL, &outbox) != HF_OK) {
        hf_scope_reset(a->s);
        actor_sleep_ms(a, 10);
    }
    return outbox;
}

static bool is_urgent(const struct model *m, int n)
{
    return m->lanes && n % 3 != 0;
}

static void emit_one(struct actor *a, struct hf_outbox *outbox, struct model *m, int key, int n)
{
    int64_t begun_us = sim_now_us(a->sim);
    struct hf_str payload = hf_scope_format(a->s, "%d", key * EVENTS + n);
    struct hf_event event = {.type = HF_STR("test"),
                             .key = hf_scope_format(a->s, "key%d", key),
                             .sequence = sim_seed(a->sim) % 2 ? (uint64_t)n + 1 : 0,
                             .urgent = is_urgent(m, n),
                             .payload = hf_bytes_of(payload.ptr, payload.len)};

    m->keys[key].tried[n] = true;
    m->keys[key].late[n] = true; /* should it die here */
    if (hf_outbox_emit(a->s, outbox, &event, 1, NULL) == HF_OK)
        m->keys[key].emitted[n] = true;
    m->keys[key].late[n] = sim_now_us(a->sim) - begun_us > LATE_MS * 1000;
}

static void producer(struct actor *a)
{
    struct hand *hand = a->user;
    struct hf_outbox *outbox = open_by(a);
    bool more = true;

    if (a->life)
        actor_sleep_ms(a, 500); /* what a former life has sent has arrived by now */
    while (more) {
        more = false;
        for (int key = hand->first; key < hand->first + hand->len; key++) {
            int n = hand->at[key];

            if (n >= EVENTS)
                continue;
            hand->at[key]++;
            emit_one(a, outbox, hand->model, key, n);
            more = true;
            hf_scope_reset(a->s);
            actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 40));
        }
    }
    hand->model->producers--;
    hf_outbox_close(outbox);
}

/* ---- the sink ------------------------------------------------------------------------------- */

static int number_of(const struct hf_event *event)
{
    char text[16] = "";

    if (event->payload.len < sizeof(text))
        memcpy(text, event->payload.ptr, event->payload.len);
    return (int)strtol(text, NULL, 10);
}

/* How many events there are in such partitions, or how many of that number (-1: all). */
static int items_of(struct actor *a, const char *kind, int number)
{
    struct hf_scope *s = sim_scope(a->sim);
    int count = 0;

    for (uint32_t i = 0; i < BUCKETS; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_query query = {.table = HF_STR("outbox"),
                                 .key_condition = HF_STR("#pk = :pk"),
                                 .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk"))),
                                 .values = HF_ITEM(s, HF_S(":pk",
                                                           hf_scope_format(s, "%s.%03u", kind, i))),
                                 .consistent = HF_YES};
        struct hf_query_result result;

        SIM_CHECK(a, hf_query(s, sim_db(a->sim), &query, &result) == HF_OK);
        for (size_t j = 0; j < result.items_len; j++) {
            struct hf_bytes payload =
                hf_value_bytes(hf_item_get(result.items[j], HF_STR("payload")));

            count += number < 0 || number_of(&(struct hf_event){.payload = payload}) == number;
        }
        hf_scope_rewind(s, mark);
    }
    return count;
}

static void accept(struct actor *a, struct model *m, int number)
{
    int key = number / EVENTS, n = number % EVENTS, *last;

    SIM_CHECK(a, number >= 0 && key < KEYS && m->keys[key].tried[n]); /* (1) */
    last = &m->keys[key].last[is_urgent(m, n)];
    if (m->keys[key].delivered[n]++ == 0) {
        /* (2) (6); a dead letter may be on its way still, by a relay that was paused */
        SIM_CHECK(a, m->competing || m->apart || m->keys[key].late[n] || n > *last ||
                         (m->gives_up && items_of(a, "f", number)));
        *last = n > *last ? n : *last;
    } else {
        m->doubled++;
    }
}

/* (7) */
static bool is_killer(const struct model *m, int number)
{
    for (int i = 0; i < KILLERS; i++)
        if (m->deadly && m->killers[i] == number)
            return true;
    return false;
}

static void handle_killer(struct actor *a, struct model *m, int number)
{
    for (int i = 0; i < KILLERS; i++)
        if (m->deadly && m->killers[i] == number) {
            SIM_CHECK(a, ++m->killed[i] <= LIVES + 1);
            actor_die(a);
        }
}

static enum hf_status deliver(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                              size_t len)
{
    struct actor *a = self;
    struct model *m = a->user;

    actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, m->good ? 5 : 60));
    if (!m->good && sim_random_below(a->sim, 25) == 0)
        m->outage = (int)sim_random_below(a->sim, 6);
    if (m->outage > 0 && m->outage--)
        return hf_scope_fail(s, HF_IO, "the sink is away");
    for (size_t i = 0; i < len; i++) {
        uint64_t luck = m->good || m->deadly ? 99 : sim_random_below(a->sim, 30);

        handle_killer(a, m, number_of(&deliveries[i].event->event));

        if (luck != 0)
            accept(a, m, number_of(&deliveries[i].event->event));
        deliveries[i].status = luck <= 1 ? HF_IO : HF_OK;
        if (luck <= 1 && m->keeps_order)
            break;
    }
    return HF_OK;
}

/* ---- relays --------------------------------------------------------------------------------- */

static void ended(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                  const struct hf_error *error, void *user)
{
    struct actor *a = user;
    struct model *m = a->user;
    int number = number_of(&event->event);

    (void)error;
    if (outcome == HF_RELAY_GIVEN_UP) {
        SIM_CHECK(a, m->gives_up || is_killer(m, number));
        SIM_CHECK(a, !m->deadly || (event->crashes == LIVES && event->attempts == LIVES));
        m->keys[number / EVENTS].gave_up[number % EVENTS] = true;
    }
    if (outcome == HF_RELAY_DELIVERED)
        SIM_CHECK(a, m->keys[number / EVENTS].delivered[number % EVENTS] > 0);
}

static void turn(struct actor *a, struct hf_relay *relay)
{
    uint32_t wait_ms;

    hf_scope_reset(a->s);
    SIM_CHECK(a, hf_relay_step(a->s, relay, &wait_ms) == HF_OK);
    actor_sleep_ms(a, wait_ms < 50 ? wait_ms + 1 : 50);
}

/*
 * (4) Nobody leaves before all have told their shares: what one has left is taken by the others at
 * their next look, as it should be.
 */
static void tell_share(struct actor *a, struct hf_relay *relay)
{
    struct model *m = a->user;
    struct hf_relay_metrics metrics;

    hf_relay_metrics(relay, &metrics);
    SIM_CHECK(a, metrics.unsure == 0 && metrics.waiting == 0);
    SIM_CHECK(a, m->competing || metrics.buckets == BUCKETS / RELAYS);
    m->counted++;
    while (m->counted < RELAYS)
        turn(a, relay);
}

/* One relay, from its start until all is over, or it stops of its own accord. */
static void relay_once(struct actor *a, struct hf_outbox *outbox, struct hf_sink *sink)
{
    struct model *m = a->user;
    struct hf_relay_options options = {.size = sizeof(options),
                                       .no_threads = true,
                                       .lease_ms = LEASE_MS,
                                       .poll_ms = 100,
                                       .backoff_ms = 20,
                                       .backoff_max_ms = 200,
                                       .breaker_ms = 20,
                                       .batch = m->batch,
                                       .competing = m->competing,
                                       .max_attempts = m->gives_up ? 2
                                                       : m->deadly ? LIVES
                                                                   : 1000,
                                       .on_ended = ended,
                                       .user = a};
    struct hf_relay_metrics metrics;
    struct hf_relay *relay;
    bool stays = true;

    while (hf_relay_open(a->s, outbox, sink, &options, &relay) != HF_OK) {
        hf_scope_reset(a->s);
        actor_sleep_ms(a, 10);
    }
    while (!m->over && stays) {
        turn(a, relay);
        stays = m->good || sim_random_below(a->sim, 60) != 0;
    }
    if (m->good)
        tell_share(a, relay);
    hf_relay_metrics(relay, &metrics);
    SIM_CHECK(a, metrics.running == 0);
    m->refused += metrics.refused;
    m->taken_over += metrics.taken_over;
    m->delivered += metrics.delivered;
    hf_scope_reset(a->s);
    (void)!hf_relay_stop(a->s, relay);
    hf_relay_metrics(relay, &metrics);
    SIM_CHECK(a, m->competing || metrics.buckets == 0);
    hf_relay_close(relay);
}

static void relaying(struct actor *a)
{
    struct model *m = a->user;
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "test",
                              .batch_max = m->batch_max,
                              .keeps_order = m->keeps_order,
                              .send = deliver};
    struct hf_outbox *outbox = open_by(a);
    struct hf_sink *sink;

    SIM_CHECK(a, hf_sink_new(a->s, &ops, a, &sink) == HF_OK);
    while (!m->over)
        relay_once(a, outbox, sink);
    hf_sink_close(sink);
    hf_outbox_close(outbox);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void boss(struct actor *a)
{
    struct model *m = a->user;

    while (m->producers || items_of(a, "p", -1))
        actor_sleep_ms(a, 20);
    sim_calm(a->sim); /* from here on the relays only end */
    actor_sleep_ms(a, 4000);
    while (items_of(a, "p", -1)) /* what is done once more, late */
        actor_sleep_ms(a, 20);
    m->over = true;
}

static void audit(struct actor *a)
{
    struct model *m = a->user;

    SIM_CHECK(a, items_of(a, "p", -1) == 0); /* (3) */
    for (int key = 0; key < KEYS; key++)
        for (int n = 0; n < EVENTS; n++) {
            bool lost = m->keys[key].emitted[n] && !m->keys[key].delivered[n];

            SIM_CHECK(a, !lost || m->gives_up || is_killer(m, key * EVENTS + n)); /* (1) */
            SIM_CHECK(a, !m->deadly || items_of(a, "f", key * EVENTS + n) ==
                                           (is_killer(m, key * EVENTS + n) &&
                                            m->keys[key].emitted[n])); /* (7) */
            if (lost || m->keys[key].gave_up[n])                       /* (5) */
                SIM_CHECK(a, items_of(a, "f", key * EVENTS + n) == 1);
        }
    if (m->good) {
        SIM_CHECK(a, (m->competing || m->refused == 0) && m->taken_over == 0 && m->doubled == 0);
        SIM_CHECK(a, m->delivered == KEYS * EVENTS);
    }
}

struct tally {
    bool good, gives_up, competing, lanes, apart, deadly;
    uint64_t taken_over, doubled;
};

static void history(struct sim *sim, void *user)
{
    static const char *const names[RELAYS] = {"ann", "ben", "cyd"};
    struct tally *tally = user;
    bool others = tally->gives_up || tally->competing || tally->deadly;
    struct model m = {.good = tally->good,
                      .gives_up = tally->gives_up,
                      .competing = tally->competing,
                      .lanes = tally->lanes || (others && sim_seed(sim) % 2),
                      .apart = tally->apart,
                      .deadly = tally->deadly,
                      .killers = {(int)sim_random_below(sim, KEYS * EVENTS),
                                  (int)sim_random_below(sim, KEYS * EVENTS)},
                      .producers = 2,
                      .batch = sim_random_below(sim, 2) ? 40 : 4,
                      .batch_max = 1 + (uint32_t)sim_random_below(sim, 4),
                      .keeps_order = sim_random_below(sim, 2)};
    struct hand hands[2] = {{.model = &m, .first = 0, .len = 2},
                            {.model = &m, .first = 2, .len = KEYS - 2}};

    for (int key = 0; key < KEYS; key++)
        m.keys[key].last[0] = m.keys[key].last[1] = -1;
    CHECK_OK(hf_outbox_open(sim_scope(sim), sim_db(sim),
                            HF_OPTIONS(hf_outbox_options, .buckets = BUCKETS), &m.truth));
    for (int i = 0; i < RELAYS; i++)
        sim_start(sim, names[i], relaying, &m);
    for (int i = 0; i < 2; i++)
        sim_start(sim, i ? "pia" : "pat", producer, &hands[i]);
    sim_start(sim, "boss", boss, &m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "auditor", audit, &m);
    sim_run(sim);
    tally->taken_over += m.taken_over;
    tally->doubled += m.doubled;
    hf_outbox_close(m.truth);
}

static const struct sim_luck bad = {.lost_requests = 10,
                                    .lost_answers = 10,
                                    .twice = 10,
                                    .later_again = 5,
                                    .refused = 10,
                                    .slow = 10,
                                    .pauses = 4,
                                    .deaths = 2,
                                    .slow_ms = 300,
                                    .pause_ms = 1500,
                                    .wall_skew_ms = 100,
                                    .drift_ppm = 500};

TEST(relay_sim, nothing_is_lost_and_keys_stay_in_order)
{
    struct tally tally = {.good = false};

    sim_each(t, 250, &bad, history, &tally);
    if (sim_is_whole())
        CHECK(tally.taken_over > 0 && tally.doubled > 0);
}

TEST(relay_sim, urgent_ones_have_an_order_of_their_own)
{
    struct tally tally = {.lanes = true};

    sim_each(t, 150, &bad, history, &tally);
}

TEST(relay_sim, urgent_ones_without_bad_luck_are_delivered_once)
{
    const struct sim_luck good = {.slow_ms = 0, .wall_skew_ms = 1000};
    struct tally tally = {.good = true, .lanes = true};

    sim_each(t, 50, &good, history, &tally);
}

TEST(relay_sim, what_is_given_up_lets_others_go_on)
{
    struct tally tally = {.gives_up = true};

    sim_each(t, 150, &bad, history, &tally);
}

TEST(relay_sim, clocks_that_are_far_apart_lose_nothing)
{
    struct sim_luck luck = bad;
    struct tally tally = {.apart = true};

    luck.wall_skew_ms = 10000;
    sim_each(t, 100, &luck, history, &tally);
}

/* Nobody dies but of killers, as what is under way when somebody dies is a suspect. */
static const struct sim_luck deadly = {.lost_requests = 5,
                                       .lost_answers = 5,
                                       .twice = 10,
                                       .refused = 10,
                                       .slow = 10,
                                       .slow_ms = 50,
                                       .wall_skew_ms = 100,
                                       .drift_ppm = 500};

TEST(relay_sim, what_ends_its_process_becomes_a_dead_letter_and_nothing_else)
{
    struct tally tally = {.deadly = true};

    sim_each(t, 150, &deadly, history, &tally);
}

TEST(relay_sim, so_it_is_by_competing_ones)
{
    struct tally tally = {.deadly = true, .competing = true};

    sim_each(t, 150, &deadly, history, &tally);
}

TEST(relay_sim, without_bad_luck_nothing_is_refused)
{
    const struct sim_luck good = {.slow_ms = 0, .wall_skew_ms = 1000};
    struct tally tally = {.good = true};

    sim_each(t, 100, &good, history, &tally);
}

TEST(relay_sim, competing_ones_lose_nothing)
{
    struct tally tally = {.competing = true};

    sim_each(t, 100, &bad, history, &tally);
}

TEST(relay_sim, competing_ones_without_bad_luck_deliver_once)
{
    const struct sim_luck good = {.slow_ms = 0, .wall_skew_ms = 50};
    struct tally tally = {.good = true, .competing = true};

    sim_each(t, 50, &good, history, &tally);
}
