/* coord/sim_test.c: the simulation itself, or how far its verdicts can be trusted. */
#include "sim.h"

struct journal {
    uint64_t hash;
    int calls, failures, deaths, done;
    uint64_t acked, doubtful;
    uint64_t ever_doubtful; /* in all histories */
};

static void make_table(struct sim *sim)
{
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table create = {.table = HF_STR("sim"),
                                     .attributes = &id,
                                     .attributes_len = 1,
                                     .key_schema = &key,
                                     .key_schema_len = 1,
                                     .billing = HF_BILLING_PAY_PER_REQUEST};

    CHECK_OK(hf_create_table(sim_scope(sim), sim_db(sim), &create, NULL));
}

/* Adds one to a number, ten times, and does not care about answers. */
static void adder(struct actor *a)
{
    struct journal *j = a->user;

    for (int i = 0; i < 10; i++) {
        struct hf_update_item add = {.table = HF_STR("sim"),
                                     .key = HF_ITEM(a->s, HF_S("id", HF_STR("sum"))),
                                     .update = HF_STR("ADD v :one"),
                                     .values = HF_ITEM(a->s, HF_N(":one", 1))};
        enum hf_status status;

        hf_scope_timeout_ms(a->s, 50);
        status = hf_update_item(a->s, a->db, &add, NULL);
        j->calls++;
        j->failures += status != HF_OK;
        if (status == HF_OK)
            j->acked++;
        else if (hf_scope_error(a->s)->may_have_happened)
            j->doubtful++;
        j->hash = (j->hash ^ (uint64_t)sim_now_us(a->sim) ^ (uint64_t)status) * 1099511628211u;
        actor_sleep_ms(a, 3);
    }
    j->deaths += a->life;
    j->done++;
}

static int64_t sum(struct sim *sim)
{
    struct hf_get_item get = {.table = HF_STR("sim"),
                              .key = HF_ITEM(sim_scope(sim), HF_S("id", HF_STR("sum")))};
    struct hf_get_item_result got;
    int64_t value = 0;

    CHECK_OK(hf_get_item(sim_scope(sim), sim_db(sim), &get, &got));
    (void)hf_value_i64(hf_item_get(got.item, HF_STR("v")), &value);
    return value;
}

static void three_adders(struct sim *sim, void *user)
{
    struct journal *j = user;

    make_table(sim);
    *j = (struct journal){.hash = 1, .ever_doubtful = j->ever_doubtful};
    sim_start(sim, "a", adder, j);
    sim_start(sim, "b", adder, j);
    sim_start(sim, "c", adder, j);
    sim_run(sim);
    j->ever_doubtful += j->doubtful;
    CHECK_INT(3, j->done);
}

/* (1): a seed gives one history, and another seed another one. */
TEST(sim, a_seed_gives_one_history)
{
    struct sim_luck luck = {.lost_answers = 100,
                            .slow = 100,
                            .slow_ms = 200,
                            .pauses = 20,
                            .pause_ms = 500,
                            .deaths = 10,
                            .drift_ppm = 1000,
                            .wall_skew_ms = 1000};
    struct journal first = {0}, second = {0};
    uint64_t seed = t->seed;

    sim_each(t, 1, &luck, three_adders, &first);
    t->seed = seed;
    sim_each(t, 1, &luck, three_adders, &second);
    CHECK(first.hash == second.hash);
    t->seed = seed + 1;
    sim_each(t, 1, &luck, three_adders, &second);
    CHECK(first.hash != second.hash);
}

static void exact(struct sim *sim, void *user)
{
    struct journal *j = user;

    three_adders(sim, j);
    CHECK_INT(30, sum(sim));
    CHECK_INT(0, j->failures);
}

TEST(sim, without_bad_luck_everything_is_done_once)
{
    struct journal j = {0};

    sim_each(t, 20, &(struct sim_luck){.drift_ppm = 100}, exact, &j);
}

static void bounded(struct sim *sim, void *user)
{
    struct journal *j = user;
    int64_t value;

    three_adders(sim, j);
    value = sum(sim);
    CHECK(value >= (int64_t)j->acked && value <= (int64_t)(j->acked + j->doubtful));
}

/* (2): what may have been done is never reported as not done, and late requests do arrive. */
TEST(sim, doubtful_is_what_may_have_been_done)
{
    struct sim_luck luck = {
        .lost_requests = 100, .lost_answers = 100, .refused = 100, .slow = 200, .slow_ms = 300};
    struct journal j = {0};

    sim_each(t, 50, &luck, bounded, &j);
    CHECK(j.ever_doubtful > 0);
}

static void too_many(struct sim *sim, void *user)
{
    struct journal *j = user;

    three_adders(sim, j);
    j->done = sum(sim) > (int64_t)(j->acked + j->doubtful);
}

TEST(sim, done_twice_is_done_twice)
{
    struct journal j = {0};

    sim_each(t, 1, &(struct sim_luck){.twice = 300}, too_many, &j);
    CHECK(j.done);
    sim_each(t, 1, &(struct sim_luck){.later_again = 300}, too_many, &j);
    CHECK(j.done);
}

/* (3): the dead come back, and nothing of theirs is left. */
TEST(sim, the_dead_start_anew)
{
    struct journal j = {0};

    sim_each(t, 60, &(struct sim_luck){.deaths = 50}, three_adders, &j);
    CHECK(j.deaths > 0);
}
