/*
 * streams/consumer_sim_test.c: consumers of one name under bad luck: answers get lost, requests
 * are done late or twice, consumers are paused for longer than a lease, and die; meanwhile shards
 * split and handlers fail.
 *
 * What has to hold, in every history:
 *
 *  (1) A change is not handed over before all earlier ones of its item were.
 *  (2) In the end each was handed over.
 *  (3) Without bad luck each was handed over once, however the consumers share the shards, and no
 *      consumer is left without any.
 *  (4) In the table positions, fences and, while the owner is the same, beats never go back; what
 *      is done stays done, and the owner changes with the fence alone.
 */
#include <holdfast/streams.h>

#include <holdfast/table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "played.h"
#include "sim.h"

enum { CONSUMERS = 3, LEASE_MS = 300, ROUNDS = 12 };

/* An item of the table, as it was when it was looked at last. */
struct kept {
    bool done;
    int64_t fence, beat;
    char owner[40], sequence[32];
};

struct model {
    bool good;
    bool producing;
    struct played_stream stream;
    int taken[PLAYED_ITEMS];
    uint64_t handed_over;
    uint64_t by[CONSUMERS];
    uint64_t gaps;
    int shared; /* histories in which each consumer got some */
    struct kept kept[PLAYED_SHARDS];
    uint64_t writes; /* of the database, when it was looked at last */
};

struct shift {
    struct actor *a;
    struct model *m;
    char name[16]; /* of this life */
};

static bool all_taken(const struct model *m)
{
    return !m->producing && memcmp(m->taken, m->stream.numbers, sizeof(m->taken)) == 0;
}

/* (5) */
static bool is_ours(struct shift *shift, struct hf_str shard)
{
    struct hf_scope *s = sim_scope(shift->a->sim);
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_scan scan = {.table = HF_STR("checkpoints")};
    struct hf_scan_result result;
    bool ours = false;

    SIM_CHECK(shift->a, hf_scan(s, sim_db(shift->a->sim), &scan, &result) == HF_OK);
    for (size_t i = 0; i < result.items_len; i++) {
        struct hf_str sk = hf_value_str(hf_item_get(result.items[i], HF_STR("sk")));
        struct hf_str host = hf_value_str(hf_item_get(result.items[i], HF_STR("host")));

        if (sk.len > shard.len && memcmp(sk.ptr + sk.len - shard.len, shard.ptr, shard.len) == 0)
            ours = hf_str_equal(host, hf_str_from(shift->name));
    }
    hf_scope_rewind(s, mark);
    return ours;
}

static enum hf_status take(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct shift *shift = user;
    struct model *m = shift->m;
    struct sim *sim = shift->a->sim;

    SIM_CHECK(shift->a, is_ours(shift, changes[0].shard));
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

static void keep(char *to, size_t size, struct hf_item item, const char *name)
{
    struct hf_str text = hf_value_str(hf_item_get(item, hf_str_from(name)));

    snprintf(to, size, "%.*s", HF_FMT(text));
}

static const char *compare(const struct kept *was, const struct kept *is)
{
    if (was->done && !is->done)
        return "what is done stays done";
    if (strcmp(is->sequence, was->sequence) < 0)
        return "positions do not go back";
    if (is->fence < was->fence)
        return "fences do not go back";
    if (is->fence == was->fence && is->beat < was->beat)
        return "beats do not go back";
    if (is->fence == was->fence && is->owner[0] && strcmp(is->owner, was->owner) != 0)
        return "an owner has a fence of his own";
    return NULL;
}

/* (4) */
static const char *watch(struct sim *sim, void *user)
{
    struct model *m = user;
    struct hf_scope *s = sim_scope(sim);
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_scan scan = {.table = HF_STR("checkpoints")};
    struct hf_scan_result result = {.items_len = 0};
    const char *wrong = NULL;

    if (m->writes == sim_writes(sim))
        return NULL;
    m->writes = sim_writes(sim);
    (void)!hf_scan(s, sim_db(sim), &scan, &result); /* the table may not be there yet */
    for (size_t i = 0; i < result.items_len && !wrong; i++) {
        struct hf_str sk = hf_value_str(hf_item_get(result.items[i], HF_STR("sk")));
        struct kept is = {.done = hf_value_true(hf_item_get(result.items[i], HF_STR("done")))};
        long number;

        if (sk.len < 35)
            continue; /* the head */
        number = strtol(sk.ptr + sk.len - 27, NULL, 10);
        (void)hf_value_i64(hf_item_get(result.items[i], HF_STR("fence")), &is.fence);
        (void)hf_value_i64(hf_item_get(result.items[i], HF_STR("beat")), &is.beat);
        keep(is.owner, sizeof(is.owner), result.items[i], "owner");
        keep(is.sequence, sizeof(is.sequence), result.items[i], "sequence");
        wrong = compare(&m->kept[number], &is);
        m->kept[number] = is;
    }
    hf_scope_rewind(s, mark);
    return wrong;
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

    snprintf(shift.name, sizeof(shift.name), "%s%d", a->name, a->life);
    options.owner = hf_str_from(shift.name);
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
    /* When it dies it starts over, with more changes. */
    sim_start(sim, "p", producer, m);
    sim_watch(sim, watch, m);
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
