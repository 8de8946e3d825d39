/*
 * lock/lock_sim_test.c: locks under bad luck, by seed.
 *
 * Every history has a few hosts that fight for one lock, and two items which it protects: one whose
 * writes carry the fence, one whose writes are guarded in transactions. Hosts pause for longer than
 * a lease, die, lose answers, and have clocks of their own. After every step of any of them:
 *
 *  (a) Nobody believes to hold the lock while another does, in modes that exclude each other. No
 *      pause can break that, as belief is a matter of the clock; acting on it can.
 *  (b) What the lock protects was never written with a lower fence after a higher one, whoever
 *      believes what.
 *  (c) A fence is higher than every one that was handed out before it was asked for.
 *  (d) The item is well-formed: as many hold it as it says.
 *
 * And when luck is even again, everybody gets the lock in the end.
 */
#include <holdfast/lock.h>

#include <stdlib.h>

#include "lock/lock.h"
#include "sim.h"
#include "steps.h"

enum { HOSTS_MAX = 4, ROUNDS = 2, RENEWALS = 3 };

struct host {
    struct hf_lock *lock; /* what it holds, or believed to hold */
    int life;             /* in which of its lives */
    bool done;
};

struct fight {
    uint32_t lease_ms;
    uint32_t permits;
    enum hf_lock_mode modes[HOSTS_MAX]; /* in which each wants it */
    size_t hosts_len;
    struct host hosts[HOSTS_MAX];
    uint64_t highest;     /* fence that was handed out */
    uint64_t seen_writes; /* of the database, when the items were looked at */
    bool only_exclusive;
    uint32_t least_ms;                         /* no lease is shorter */
    uint64_t written[2];                       /* highest fence in the protected items */
    uint64_t grants, losses, refusals, writes; /* over all histories */
};

#define LOCK HF_STR("the lock")
static const struct hf_str protected_items[2] = {{"fenced", 6}, {"guarded", 7}};

/* ---- what has to hold ----------------------------------------------------------------------- */

static const char *check_beliefs(struct sim *sim, struct fight *fight)
{
    size_t held = 0, alone = 0, shared = 0;

    for (size_t i = 0; i < fight->hosts_len; i++) {
        struct host *host = &fight->hosts[i];
        struct actor *a = sim_actor(sim, i);

        if (!host->lock || host->life != a->life)
            continue;
        if (host->lock->state != HF_LOCK_HELD ||
            a->env.elapsed_us(a->env.user) >= host->lock->lease.until_us)
            continue;
        held++;
        alone += host->lock->mode == HF_LOCK_EXCLUSIVE;
        shared += host->lock->mode == HF_LOCK_SHARED;
    }
    if (alone && held > 1)
        return "an exclusive holder is alone";
    if (shared && shared != held)
        return "who shares has nobody beside him who does not";
    if (held - alone - shared > fight->permits)
        return "there are no more holders than permits";
    return NULL;
}

static struct hf_item read_item(struct sim *sim, struct hf_str table, struct hf_item key)
{
    struct hf_get_item get = {.table = table, .key = key, .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(sim_scope(sim), sim_db(sim), &get, &got));
    return got.item;
}

static const char *check_items(struct sim *sim, struct fight *fight)
{
    struct hf_scope *s = sim_scope(sim);
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct lock_view view;
    const char *wrong = NULL;

    for (size_t i = 0; i < 2; i++) {
        struct hf_item item =
            read_item(sim, HF_STR("things"), HF_ITEM(s, HF_S("id", protected_items[i])));
        int64_t fence = 0;

        (void)hf_value_i64(hf_item_get(item, HF_STR("fence")), &fence);
        if ((uint64_t)fence < fight->written[i])
            wrong = i ? "no guarded transaction comes after that of a higher fence"
                      : "no fenced write comes after one with a higher fence";
        fight->written[i] = (uint64_t)fence;
    }
    if (hf__lock_view(s, &(struct pattern_at){.table = HF_STR("locks"), .hash = HF_STR("name")},
                      read_item(sim, HF_STR("locks"), HF_ITEM(s, HF_S("name", LOCK))),
                      &view) != HF_OK)
        wrong = "the lock is well-formed";
    hf_scope_rewind(s, mark);
    return wrong;
}

static const char *watch(struct sim *sim, void *user)
{
    struct fight *fight = user;
    const char *wrong = check_beliefs(sim, fight);

    if (wrong || sim_writes(sim) == fight->seen_writes)
        return wrong;
    fight->seen_writes = sim_writes(sim);
    return check_items(sim, fight);
}

/* ---- what a host does ----------------------------------------------------------------------- */

static struct host *host_of(struct actor *a)
{
    struct fight *fight = a->user;

    for (size_t i = 0;; i++)
        if (sim_actor(a->sim, i) == a)
            return &fight->hosts[i];
}

/* (b) A write whose fence the item itself compares. */
static void write_fenced(struct actor *a, struct hf_lock *lock)
{
    struct fight *fight = a->user;
    struct hf_update_item update = {
        .table = HF_STR("things"),
        .key = HF_ITEM(a->s, HF_S("id", protected_items[0])),
        .update = HF_STR("ADD writes :one"),
        .values = HF_ITEM(a->s, HF_N(":one", 1)),
    };
    enum hf_status status;

    SIM_CHECK(a, hf_lock_guard_update(a->s, lock, hf_str_of(NULL, 0), &update) == HF_OK);
    status = hf_update_item(a->s, a->db, &update, NULL);
    fight->writes += status == HF_OK;
    fight->refusals += status == HF_CONDITION;
}

/* (b) A write that does not compare, guarded by the lock itself. */
static void write_guarded(struct actor *a, struct hf_lock *lock)
{
    struct fight *fight = a->user;
    struct hf_put_item put = {.table = HF_STR("things"),
                              .item = HF_ITEM(a->s, HF_S("id", protected_items[1]),
                                              HF_N("fence", hf_lock_fence(lock)))};
    struct hf_transact_write actions[2] = {{.put = &put}};
    struct hf_transact_write_items both = {.actions = actions, .actions_len = 2};
    enum hf_status status;

    SIM_CHECK(a, hf_lock_guard(a->s, lock, &actions[1]) == HF_OK);
    status = hf_transact_write_items(a->s, a->db, &both, NULL);
    fight->writes += status == HF_OK;
    fight->refusals += status == HF_TX_CANCELED;
}

/* Be busy for so long, renewing what is due. */
static void work_ms(struct actor *a, struct hf_lock_table *locks, uint32_t ms)
{
    hf_scope_timeout_ms(a->s, ms);
    for (;;) {
        uint32_t next_ms = locks_step_of(&a->env, locks), left_ms = hf_scope_left_ms(a->s, ms);

        if (left_ms == 0)
            break;
        actor_sleep_ms(a, next_ms < left_ms ? next_ms + 1 : left_ms);
    }
    hf_scope_timeout_ms(a->s, 0);
}

static void hold(struct actor *a, struct hf_lock_table *locks, struct hf_lock *lock)
{
    struct fight *fight = a->user;
    struct host *host = host_of(a);
    enum hf_status status;

    host->lock = lock;
    host->life = a->life;
    for (int i = 0; i < RENEWALS; i++) {
        struct hf_scope_mark mark = hf_scope_mark(a->s);

        work_ms(a, locks, (uint32_t)sim_random_below(a->sim, fight->lease_ms));
        /* Whatever we believe: a fence has to stop us. */
        if (sim_random_below(a->sim, 2))
            write_fenced(a, lock);
        else if (lock->mode == HF_LOCK_EXCLUSIVE)
            write_guarded(a, lock);
        hf_scope_rewind(a->s, mark);
    }
    fight->losses += hf_lock_state(lock) != HF_LOCK_HELD;
    host->lock = NULL;
    hf_scope_timeout_ms(a->s, fight->lease_ms);
    status = hf_lock_release(a->s, lock);
    hf_scope_timeout_ms(a->s, 0);
    SIM_CHECK(a, status == HF_OK || status == HF_LOST || hf_scope_error(a->s)->may_retry);
}

static void fighter(struct actor *a)
{
    struct fight *fight = a->user;
    struct host *host = host_of(a);
    struct hf_lock_options options = {.size = sizeof(options), .lease_ms = fight->lease_ms};
    struct hf_lock_table *locks;

    options.mode = fight->modes[host - fight->hosts];
    options.permits = options.mode == HF_LOCK_PERMIT ? fight->permits : 0;
    options.poll_ms = fight->lease_ms / 5;
    while (hf_lock_table_open(a->s, a->db,
                              HF_OPTIONS(hf_lock_table_options, .owner = hf_str_from(a->name),
                                         .no_create = true, .no_threads = true),
                              &locks) != HF_OK)
        actor_sleep_ms(a, 10);
    for (int round = 0; round < ROUNDS;) {
        uint64_t before = fight->highest;
        struct hf_lock *lock;
        enum hf_status status;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 1 + (uint32_t)sim_random_below(a->sim, fight->lease_ms * 3));
        status = hf_lock_acquire(a->s, locks, LOCK, &options, &lock);
        hf_scope_timeout_ms(a->s, 0);
        SIM_CHECK(a, (status == HF_OK) == (lock != NULL));
        if (lock) {
            SIM_CHECK(a, hf_lock_fence(lock) > before); /* (c) */
            if (hf_lock_fence(lock) > fight->highest)
                fight->highest = hf_lock_fence(lock);
            fight->grants++;
            hold(a, locks, lock);
            round++;
        }
        work_ms(a, locks, (uint32_t)sim_random_below(a->sim, 20));
    }
    hf_lock_table_close(locks);
    host->done = true;
}

/* ---- histories ------------------------------------------------------------------------------ */

static void make_tables(struct sim *sim)
{
    for (int i = 0; i < 2; i++) {
        struct hf_str name = i ? HF_STR("name") : HF_STR("id");
        struct hf_attribute_definition attribute = {name, HF_SCALAR_S};
        struct hf_key_element key = {name, HF_KEY_HASH};
        struct hf_create_table create = {.table = i ? HF_STR("locks") : HF_STR("things"),
                                         .attributes = &attribute,
                                         .attributes_len = 1,
                                         .key_schema = &key,
                                         .key_schema_len = 1,
                                         .billing = HF_BILLING_PAY_PER_REQUEST};

        CHECK_OK(hf_create_table(sim_scope(sim), sim_db(sim), &create, NULL));
    }
}

/* When all is over a newcomer gets it, after one lease of watching at the most. */
static void newcomer(struct actor *a)
{
    struct fight *fight = a->user;
    struct hf_lock_table *locks;
    struct hf_lock *lock;
    enum hf_status status;

    SIM_CHECK(a, hf_lock_table_open(a->s, a->db,
                                    HF_OPTIONS(hf_lock_table_options, .no_create = true,
                                               .no_threads = true),
                                    &locks) == HF_OK);
    hf_scope_timeout_ms(a->s, fight->lease_ms + 200);
    status = hf_lock_acquire(a->s, locks, LOCK, NULL, &lock);
    SIM_CHECK(a, status == HF_OK);
    SIM_CHECK(a, hf_lock_fence(lock) > fight->highest);
    SIM_CHECK(a, hf_lock_release(a->s, lock) == HF_OK);
    hf_lock_table_close(locks);
}

static void fight_for_it(struct sim *sim, void *user)
{
    static const char *const names[HOSTS_MAX] = {"ann", "ben", "cleo", "dan"};
    struct fight *fight = user;
    uint64_t kind = fight->only_exclusive ? 0 : sim_random_below(sim, 3);

    make_tables(sim);
    fight->lease_ms = fight->least_ms + (uint32_t)sim_random_below(sim, 900);
    fight->permits = 1 + (uint32_t)sim_random_below(sim, 2);
    fight->hosts_len = 2 + sim_random_below(sim, HOSTS_MAX - 1);
    fight->highest = fight->written[0] = fight->written[1] = 0;
    memset(fight->hosts, 0, sizeof(fight->hosts));
    for (size_t i = 0; i < fight->hosts_len; i++)
        fight->modes[i] = kind == 0   ? HF_LOCK_EXCLUSIVE
                          : kind == 1 ? HF_LOCK_EXCLUSIVE + (enum hf_lock_mode)(i & 1)
                                      : HF_LOCK_PERMIT;
    sim_watch(sim, watch, fight);
    for (size_t i = 0; i < fight->hosts_len; i++)
        sim_start(sim, names[i], fighter, fight);
    sim_run(sim);
    for (size_t i = 0; i < fight->hosts_len && !sim_failed(sim); i++)
        CHECK(fight->hosts[i].done);
    sim_calm(sim);
    sim_start(sim, "eve", newcomer, fight);
    sim_run(sim);
}

TEST(lock_sim, every_history_keeps_the_promises)
{
    struct sim_luck luck = {.lost_requests = 30,
                            .lost_answers = 60,
                            .twice = 20,
                            .later_again = 20,
                            .refused = 20,
                            .slow = 50,
                            .slow_ms = 1500,
                            .pauses = 20,
                            .pause_ms = 2500,
                            .deaths = 8,
                            .wall_skew_ms = 30000,
                            .drift_ppm = 3000};
    struct fight fight = {.least_ms = 100};

    sim_each(t, 1500, &luck, fight_for_it, &fight);
    /* The luck was bad enough to prove something. */
    if (sim_is_whole()) {
        CHECK(fight.losses > 100);
        CHECK(fight.refusals > 100);
        CHECK(fight.writes > 1000);
    }
    print_message("%llu grants, %llu lost, %llu writes, %llu refused\n",
                  (unsigned long long)fight.grants, (unsigned long long)fight.losses,
                  (unsigned long long)fight.writes, (unsigned long long)fight.refusals);
}

/* Nobody loses a lock because an answer got lost, and no write is refused: leases are long enough
 * for a few attempts, nobody pauses. */
TEST(lock_sim, lost_answers_alone_lose_no_lock)
{
    struct sim_luck luck = {.lost_answers = 150, .lost_requests = 50, .twice = 50, .refused = 50};
    struct fight fight = {.least_ms = 2000, .only_exclusive = true};

    sim_each(t, 300, &luck, fight_for_it, &fight);
    CHECK_INT(0, fight.losses);
    CHECK_INT(0, fight.refusals);
}

/* ---- elections ------------------------------------------------------------------------------ */

struct ballot {
    struct hf_election *candidates[HOSTS_MAX];
    int lives[HOSTS_MAX];
    uint64_t highest; /* term of anybody so far */
    uint64_t terms;   /* over all histories */
    const char *wrong;
};

static void count_term(struct hf_election *election, uint64_t term, void *user)
{
    struct ballot *ballot = user;

    (void)election;
    if (term <= ballot->highest)
        ballot->wrong = "terms grow from one leader to the next";
    ballot->highest = term;
    ballot->terms++;
}

static const char *watch_ballot(struct sim *sim, void *user)
{
    struct ballot *ballot = user;
    int leaders = 0;

    for (size_t i = 0; i < HOSTS_MAX; i++)
        if (ballot->candidates[i] && ballot->lives[i] == sim_actor(sim, i)->life)
            leaders += hf_election_leads(ballot->candidates[i], NULL);
    return leaders > 1 ? "no two believe to lead at once" : ballot->wrong;
}

/* Stand for a while, several times. */
static void candidate(struct actor *a)
{
    struct ballot *ballot = a->user;
    struct hf_lock_table *locks;
    size_t me = 0;

    while (sim_actor(a->sim, me) != a)
        me++;
    while (
        hf_lock_table_open(a->s, a->db,
                           HF_OPTIONS(hf_lock_table_options, .no_create = true, .no_threads = true),
                           &locks) != HF_OK)
        actor_sleep_ms(a, 10);
    for (int round = 0; round < ROUNDS; round++) {
        SIM_CHECK(a,
                  hf_election_open(a->s, locks, LOCK,
                                   HF_OPTIONS(hf_election_options, .lease_ms = 400, .poll_ms = 50,
                                              .elected = count_term, .user = ballot),
                                   &ballot->candidates[me]) == HF_OK);
        ballot->lives[me] = a->life;
        work_ms(a, locks, 200 + (uint32_t)sim_random_below(a->sim, 1500));
        {
            struct hf_election *mine = ballot->candidates[me];

            ballot->candidates[me] = NULL;
            hf_election_close(mine);
        }
    }
    hf_lock_table_close(locks);
}

static void vote(struct sim *sim, void *user)
{
    static const char *const names[HOSTS_MAX] = {"ann", "ben", "cleo", "dan"};
    struct ballot *ballot = user;

    make_tables(sim);
    memset(ballot->candidates, 0, sizeof(ballot->candidates));
    ballot->highest = 0;
    sim_watch(sim, watch_ballot, ballot);
    for (size_t i = 0; i < HOSTS_MAX; i++)
        sim_start(sim, names[i], candidate, ballot);
    sim_run(sim);
}

TEST(lock_sim, one_leader_at_a_time_and_terms_grow)
{
    struct sim_luck luck = {.lost_requests = 20,
                            .lost_answers = 50,
                            .later_again = 20,
                            .slow = 30,
                            .slow_ms = 800,
                            .pauses = 10,
                            .pause_ms = 1500,
                            .deaths = 4,
                            .wall_skew_ms = 30000,
                            .drift_ppm = 3000};
    struct ballot ballot = {.terms = 0};

    sim_each(t, 300, &luck, vote, &ballot);
    if (sim_is_whole())
        CHECK(ballot.terms > 300);
}
