/*
 * patterns/consumer_sim_test.c: consumers of one name under bad luck: answers get lost, requests
 * are done late or twice, consumers are paused for longer than a lease, and die; meanwhile shards
 * split and handlers fail.
 *
 * What has to hold, in every history:
 *
 *  (1) A change is not handed over before all earlier ones of its item were.
 *  (2) In the end each was handed over.
 *  (3) Without bad luck each was handed over once, however the consumers share the shards, and no
 *      consumer is left without any.
 */
#include <holdfast/streams.h>

#include <holdfast/table.h>

#include <stdlib.h>
#include <string.h>

#include "played.h"
#include "sim.h"

enum { CONSUMERS = 3, LEASE_MS = 300, ROUNDS = 12 };

struct model {
    bool good;
    bool producing;
    struct played_stream stream;
    int taken[PLAYED_ITEMS];
    uint64_t handed_over;
    uint64_t by[CONSUMERS];
    uint64_t gaps;
    int shared; /* histories in which each consumer got some */
};

struct shift {
    struct actor *a;
    struct model *m;
};

static bool all_taken(const struct model *m)
{
    return !m->producing && memcmp(m->taken, m->stream.numbers, sizeof(m->taken)) == 0;
}

static enum hf_status take(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct shift *shift = user;
    struct model *m = shift->m;
    struct sim *sim = shift->a->sim;

    if (sim_random_below(sim, 10) == 0)
        return hf_scope_fail(s, HF_IO, "bad luck");
    for (size_t i = 0; i < len; i++) {
        int item, n;

        played_read(changes[i].key, changes[i].new_image, &item, &n);
        SIM_CHECK(shift->a, n <= m->taken[item] + 1); /* (1) */
        if (n > m->taken[item])
            m->taken[item] = n;
        m->handed_over++;
        m->by[shift->a->name[0] - 'a']++;
    }
    actor_sleep_ms(shift->a, (uint32_t)sim_random_below(sim, 20));
    return sim_random_below(sim, 20) == 0 && !m->good ? hf_scope_fail(s, HF_IO, "too late") : HF_OK;
}

static void lost(struct hf_str shard, struct hf_str sequence, void *user)
{
    (void)shard, (void)sequence;
    ((struct shift *)user)->m->gaps++;
}

static void consumer(struct actor *a)
{
    struct shift shift = {.a = a, .m = a->user};
    struct hf_consumer_options options = {.size = sizeof(options),
                                          .name = HF_STR("c"),
                                          .lease_ms = LEASE_MS,
                                          .poll_ms = 20,
                                          .batch = 3,
                                          .backoff_ms = 10,
                                          .checkpoint_ms = 50,
                                          .no_threads = true,
                                          .on_gap = lost,
                                          .user = &shift};
    struct hf_consumer *consumer;
    struct played played;

    played_open(&played, a->db, &shift.m->stream);
    while (hf_consumer_open(a->s, &played.db, HF_STR("played"), &options, &consumer) != HF_OK)
        hf_scope_reset(a->s);
    while (!all_taken(shift.m)) {
        enum hf_status status;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, (uint32_t)(shift.m->good ? 5000
                                                           : 100 + sim_random_below(a->sim, 2000)));
        status = hf_consumer_run(a->s, consumer, take, &shift);
        SIM_CHECK(a, status == HF_TIMEOUT || status == HF_OK);
    }
    hf_consumer_close(consumer);
}

static void producer(struct actor *a)
{
    struct model *m = a->user;
    struct sim *sim = a->sim;

    for (int i = 0; i < ROUNDS; i++) {
        int item = (int)sim_random_below(sim, PLAYED_ITEMS);

        for (int j = 0; j < 6; j++)
            played_change(&m->stream, (int)sim_random_below(sim, PLAYED_ITEMS));
        if (sim_random_below(sim, 3) == 0)
            played_split(&m->stream, played_shard_of(&m->stream, item), sim_random_below(sim, 3));
        if (sim_random_below(sim, 5) == 0)
            m->stream.expired = m->stream.calls + 1;
        actor_sleep_ms(a, (uint32_t)sim_random_below(sim, m->good ? 400 : 100));
    }
    m->producing = false;
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[CONSUMERS] = {"a", "b", "c"};
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table spec = {.table = HF_STR("played"),
                                   .attributes = &id,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};
    struct model *m = user;
    bool good = m->good;
    int changes = 0, shared = m->shared;

    memset(m, 0, sizeof(*m));
    m->good = good;
    m->producing = true;
    played_stream_begin(&m->stream, HF_STR("played"));
    m->stream.empty_every = (int)sim_random_below(sim, 3) + 2;
    CHECK_OK(hf_table_ensure(sim_scope(sim), sim_db(sim), &spec, NULL));
    for (int i = 0; i < CONSUMERS; i++)
        sim_start(sim, names[i], consumer, m);
    /* When it dies it begins anew, with more changes. */
    sim_start(sim, "p", producer, m);
    sim_run(sim);
    if (sim_failed(sim))
        return;
    for (int i = 0; i < PLAYED_ITEMS; i++)
        changes += m->stream.numbers[i];
    CHECK(all_taken(m)); /* (2) */
    CHECK_INT(0, m->gaps);
    if (good)
        CHECK_INT(changes, m->handed_over); /* (3) */
    CHECK((int)m->handed_over >= changes);
    m->shared = shared + (m->by[0] && m->by[1] && m->by[2]);
}

static const struct sim_luck bad = {.lost_requests = 15,
                                    .lost_answers = 15,
                                    .twice = 15,
                                    .later_again = 10,
                                    .refused = 15,
                                    .slow = 10,
                                    .pauses = 8,
                                    .deaths = 3,
                                    .slow_ms = 400,
                                    .pause_ms = 900,
                                    .wall_skew_ms = 60000,
                                    .drift_ppm = 500};

TEST(consumer_sim, every_change_in_order_whatever_happens)
{
    struct model *m = calloc(1, sizeof(*m));

    sim_each(t, 300, &bad, history, m);
    free(m);
}

TEST(consumer_sim, without_bad_luck_every_change_once)
{
    const struct sim_luck good = {.slow_ms = 0};
    struct model *m = calloc(1, sizeof(*m));

    m->good = true;
    sim_each(t, 100, &good, history, m);
    if (sim_is_whole())
        CHECK(m->shared > 50); /* (3) */
    free(m);
}
