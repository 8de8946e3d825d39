/*
 * once/once_sim_test.c: do-once under bad luck, by seed (L7).
 *
 * In every history a few hosts want the same keys done, and each wants to see all results. They
 * pause for longer than the timeout, die, lose answers, send requests that arrive late or twice,
 * and have clocks of their own. What has to hold:
 *
 *  (a) P14: of each key one completion is recorded, and whoever is told a result is told that one.
 *  (b) Who is told that its completion was recorded is the one whose result all see.
 *  (c) When somebody begins, nobody else may believe that its attempt is safe from being replaced.
 *  (d) What is done in a transaction with the completion is done once.
 *  (e) When luck is even again, all of it ends.
 */
#include <holdfast/once.h>

#include <stdlib.h>

#include "sim.h"
#include "steps.h"

enum { KEYS = 3, HOSTS_MAX = 4, TEXT = 32 };

struct host {
    struct actor *actor;
    int life;
    struct hf_once *once; /* what it is doing */
    int key;
};

struct story {
    uint32_t timeout_ms;
    size_t hosts_len;
    struct host hosts[HOSTS_MAX];
    char known[KEYS][TEXT];    /* the result that somebody was told */
    int number;                /* of attempts, so that results differ */
    int arrived;               /* hosts that have seen all results */
    uint64_t begun, lost, did; /* over all histories */
};

#define TABLE HF_STR("once")
#define USER HF_STR("u")

static struct hf_str key_of(struct hf_scope *s, int key)
{
    return hf_scope_format(s, "k%d", key);
}

static struct host *host_of(struct story *story, struct actor *a)
{
    struct host *host = NULL;

    for (size_t i = 0; i < story->hosts_len && !host; i++)
        if (story->hosts[i].actor == a)
            host = &story->hosts[i];
    if (!host)
        host = &story->hosts[story->hosts_len++];
    if (host->actor != a || host->life != a->life)
        *host = (struct host){.actor = a, .life = a->life};
    return host;
}

/* (a) (b) */
static void told(struct actor *a, int key, struct hf_item result)
{
    struct story *story = a->user;
    struct hf_str text = hf_value_str(hf_item_get(result, HF_STR("by")));

    SIM_CHECK(a, text.len > 0 && text.len < TEXT);
    if (!story->known[key][0])
        memcpy(story->known[key], text.ptr, text.len);
    SIM_CHECK(a, hf_str_equal(text, hf_str_from(story->known[key])));
}

/* (c) */
static void check_alone(struct actor *a, int key)
{
    struct story *story = a->user;

    for (size_t i = 0; i < story->hosts_len; i++) {
        struct host *other = &story->hosts[i];

        if (other->actor != a && other->once && other->key == key &&
            other->life == other->actor->life)
            SIM_CHECK(a, hf_once_left_ms(other->once) == 0);
    }
}

static enum hf_status finish(struct actor *a, struct hf_once *once, int key, struct hf_item result)
{
    struct hf_update_item add = {.table = TABLE,
                                 .key = HF_ITEM(a->s, HF_S("user", HF_STR("effects")),
                                                HF_S("key", key_of(a->s, key))),
                                 .update = HF_STR("ADD v :one"),
                                 .values = HF_ITEM(a->s, HF_N(":one", 1))};

    if (key == 0) /* (d) */
        return hf_once_commit(a->s, once, result, &(struct hf_transact_write){.update = &add}, 1);
    return hf_once_finish(a->s, once, result);
}

/* Our attempt: a while of work, and then it is recorded, or not. */
static void work(struct actor *a, struct hf_once_table *onces, struct host *host, int key)
{
    struct story *story = a->user;
    struct hf_once *once = host->once;
    struct hf_item result;
    enum hf_status status = HF_IO;

    check_alone(a, key);
    story->begun++;
    for (uint64_t i = sim_random_below(a->sim, 4); i > 0; i--) {
        actor_sleep_ms(a, 1 + (uint32_t)sim_random_below(a->sim, story->timeout_ms / 2));
        (void)onces_step_of(&a->env, onces);
    }
    if (sim_random_below(a->sim, 10) > 0) {
        int number = ++story->number;

        for (int i = 0; i < 20 && status != HF_OK && status != HF_LOST; i++) {
            hf_scope_reset(a->s);
            hf_scope_timeout_ms(a->s, 500);
            result = HF_ITEM(a->s, HF_S("by", hf_scope_format(a->s, "%s-%d", a->name, number)));
            status = finish(a, once, key, result);
        }
        SIM_CHECK(a, status != HF_CONDITION && status != HF_TX_CANCELED);
        story->lost += status == HF_LOST;
        if (status == HF_OK) {
            story->did++;
            told(a, key, result);
        }
    }
    host->once = NULL; /* from here on others may begin */
    hf_once_close(once);
}

static void host(struct actor *a)
{
    struct story *story = a->user;
    struct host *me = host_of(story, a);
    struct hf_once_table_options o = {.size = sizeof(o),
                                      .owner = hf_str_from(a->name),
                                      .table = TABLE,
                                      .no_threads = true};
    struct hf_once_table *onces = NULL;

    while (!onces && hf_once_table_open(a->s, a->db, &o, &onces) != HF_OK) {
        SIM_CHECK(a, hf_scope_error(a->s)->status != HF_INVALID);
        actor_sleep_ms(a, 20);
    }
    for (int step = 0; step < KEYS; step++) {
        int key = (int)((step + me->life) % KEYS);
        bool seen = false;

        while (!seen) {
            struct hf_once_record record;
            enum hf_status status;

            hf_scope_reset(a->s);
            hf_scope_timeout_ms(a->s, 3 * story->timeout_ms);
            status = hf_once_begin(a->s, onces, USER, key_of(a->s, key),
                                   HF_OPTIONS(hf_once_options, .timeout_ms = story->timeout_ms,
                                              .poll_ms = 50, .payload = hf_bytes_of("p", 1)),
                                   &me->once, &record);
            me->key = key;
            if (status == HF_OK && me->once) {
                work(a, onces, me, key);
            } else if (status == HF_OK) {
                SIM_CHECK(a, record.state == HF_ONCE_DONE);
                told(a, key, record.result);
                seen = true;
            }
            (void)onces_step_of(&a->env, onces);
        }
    }
    hf_once_table_close(onces);
    story->arrived++;
}

static void read_back(struct sim *sim, struct story *story)
{
    struct hf_scope *s = sim_scope(sim);
    struct hf_once_table *onces;
    struct hf_once_record record;
    struct hf_get_item get = {.table = TABLE,
                              .key = HF_ITEM(s, HF_S("user", HF_STR("effects")),
                                             HF_S("key", key_of(s, 0)))};
    struct hf_get_item_result got;
    int64_t effects = 0;

    CHECK_OK(
        hf_once_table_open(s, sim_db(sim),
                           HF_OPTIONS(hf_once_table_options, .table = TABLE, .no_threads = true),
                           &onces));
    for (int key = 0; key < KEYS; key++) {
        CHECK_OK(hf_once_get(s, onces, USER, key_of(s, key), &record));
        CHECK_INT(HF_ONCE_DONE, record.state);
        CHECK_STR(story->known[key], hf_value_str(hf_item_get(record.result, HF_STR("by"))));
    }
    hf_once_table_close(onces);
    CHECK_OK(hf_get_item(s, sim_db(sim), &get, &got));
    CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("v")), &effects));
    CHECK_INT(1, effects);
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[HOSTS_MAX] = {"ann", "ben", "cyd", "dan"};
    struct story *story = user;
    size_t hosts = 2 + (size_t)sim_random_below(sim, HOSTS_MAX - 1);

    *story = (struct story){.timeout_ms = 40 + (uint32_t)sim_random_below(sim, 400),
                            .begun = story->begun,
                            .lost = story->lost,
                            .did = story->did};
    for (size_t i = 0; i < hosts; i++)
        sim_start(sim, names[i], host, story);
    sim_run(sim);
    if (story->arrived == (int)hosts) /* else it has failed, and says so */
        read_back(sim, story);
}

TEST(once_sim, one_completion_whatever_happens)
{
    struct sim_luck luck = {.lost_requests = 40,
                            .lost_answers = 60,
                            .twice = 20,
                            .later_again = 30,
                            .refused = 20,
                            .slow = 50,
                            .slow_ms = 300,
                            .pauses = 30,
                            .pause_ms = 1500,
                            .deaths = 15,
                            .wall_skew_ms = 3600000,
                            .drift_ppm = 1000};
    struct story story = {0};

    sim_each(t, 2000, &luck, history, &story);
    if (sim_is_whole()) { /* histories that show nothing prove nothing */
        CHECK(story.lost > 0);
        CHECK(story.begun > story.did);
    }
}

TEST(once_sim, with_even_luck_each_is_begun_once)
{
    struct story story = {0};

    sim_each(t, 200, &(struct sim_luck){.wall_skew_ms = 3600000, .drift_ppm = 1000}, history,
             &story);
    CHECK_INT(0, story.lost);
}
