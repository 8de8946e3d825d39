/*
 * counter/counter_sim_test.c: counters and sequences in histories full of bad luck: requests and
 * answers get lost, are late, come twice; hosts pause and die. Promise P13 of docs/guarantees.md.
 */
#include <holdfast/counter.h>

#include <stdio.h>

#include "sim.h"

enum { NUMBERS_MAX = 4096, MESSAGES = 12, STOCK = 15, JOBS_MAX = 512 };

static const struct sim_luck bad = {.lost_requests = 40,
                                    .lost_answers = 60,
                                    .twice = 30,
                                    .later_again = 40,
                                    .refused = 30,
                                    .slow = 60,
                                    .slow_ms = 400,
                                    .pauses = 15,
                                    .pause_ms = 1500,
                                    .deaths = 8,
                                    .drift_ppm = 200,
                                    .wall_skew_ms = 100000};

struct ledger {
    uint32_t writers; /* marks that are kept */
    uint32_t shards;
    uint32_t patience_ms;          /* of who adds */
    uint64_t begun, done, refused; /* of one kind of add; the rest is open */
    bool seen[NUMBERS_MAX];        /* which numbers came out */
    int jobs;
    bool acked[JOBS_MAX];
    /* over all histories, so that nothing is shown by histories in which nothing happens */
    uint64_t lives, doubts, losts, limits, tries;
};

/* What has to happen when there are many histories; of a few nothing can be said. */
#define OFTEN(ledger, condition) CHECK((ledger).tries < 10000 || (condition))

static struct hf_counters *open_counters(struct actor *a, const struct ledger *l)
{
    struct hf_counters *c;

    for (;;) {
        if (hf_counters_open(a->s, a->db,
                             HF_OPTIONS(hf_counters_options, .table = HF_STR("sim"),
                                        .writers = l->writers, .shards = l->shards),
                             &c) == HF_OK)
            return c;
        hf_scope_reset(a->s);
        actor_sleep_ms(a, 20);
    }
}

static struct hf_counter_key named(const char *id)
{
    return hf_counter_named(hf_str_from(id));
}

static void begin(struct sim *sim, struct ledger *l)
{
    struct hf_counters *c;

    l->begun = l->done = l->refused = 0;
    l->jobs = 0;
    memset(l->seen, 0, sizeof(l->seen));
    memset(l->acked, 0, sizeof(l->acked));
    CHECK_OK(hf_counters_open(sim_scope(sim), sim_db(sim),
                              HF_OPTIONS(hf_counters_options, .table = HF_STR("sim")), &c));
    CHECK_OK(hf_counter_incr(sim_scope(sim), c, named("stock"), STOCK, NULL));
    hf_counters_close(c);
}

static void run(struct sim *sim, struct ledger *l, actor_fn *actor)
{
    static const char *const names[] = {"ann", "ben", "cem", "dora"};

    begin(sim, l);
    for (size_t i = 0; i < 4; i++)
        sim_start(sim, names[i], actor, l);
    sim_run(sim);
}

static int64_t value_of(struct sim *sim, const char *id)
{
    struct hf_counters *c;
    int64_t value;

    CHECK_OK(hf_counters_open(sim_scope(sim), sim_db(sim),
                              HF_OPTIONS(hf_counters_options, .table = HF_STR("sim")), &c));
    CHECK_OK(hf_counter_get(sim_scope(sim), c, named(id), &value));
    hf_counters_close(c);
    return value;
}

/* What became of an add, by what it said. */
static void book(struct actor *a, struct ledger *l, enum hf_status status)
{
    bool maybe = status != HF_OK && hf_scope_error(a->s)->may_have_happened;

    l->tries++;
    l->done += status == HF_OK;
    l->refused += status != HF_OK && !maybe;
    l->doubts += maybe;
    l->losts += status == HF_EXPIRED;
    l->limits += status == HF_LIMIT;
    SIM_CHECK(a, status != HF_EXPIRED || maybe);
}

static void book_number(struct actor *a, struct ledger *l, int64_t number)
{
    SIM_CHECK(a, number >= 1 && number < NUMBERS_MAX);
    SIM_CHECK(a, !l->seen[number]);
    l->seen[number] = true;
}

static void check_sum(const struct ledger *l, int64_t value)
{
    CHECK(value >= (int64_t)l->done);
    CHECK(value <= (int64_t)(l->begun - l->refused));
}

/* ---- adds ----------------------------------------------------------------------------------- */

/* Each add of one brings out a number that no other did. */
static void adder(struct actor *a)
{
    struct ledger *l = a->user;
    struct hf_counters *c = open_counters(a, l);

    l->lives++;
    for (int i = 0; i < 8; i++) {
        enum hf_status status;
        int64_t value;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, l->patience_ms);
        l->begun++;
        status = hf_counter_incr(a->s, c, named("x"), 1, &value);
        book(a, l, status);
        if (status == HF_OK)
            book_number(a, l, value);
    }
    hf_counters_close(c);
}

static void adds(struct sim *sim, void *user)
{
    run(sim, user, adder);
    check_sum(user, value_of(sim, "x"));
}

TEST(counter_sim, adds_are_counted_once)
{
    struct ledger l = {.writers = 16, .patience_ms = 500};

    sim_each(t, 900, &bad, adds, &l);
    OFTEN(l, l.doubts > 0 && l.doubts < l.tries / 10);
    CHECK(l.losts == 0); /* so many marks are kept that nobody's was dropped */
}

/* One mark is kept: everybody drops everybody else's, all the time. */
TEST(counter_sim, adds_are_counted_once_while_marks_are_dropped)
{
    struct ledger l = {.writers = 1, .patience_ms = 2000};

    sim_each(t, 900, &bad, adds, &l);
    OFTEN(l, l.losts > 0 && l.losts < l.tries / 5);
}

/* When nothing is open the bounds are the same number; and it takes five lost answers in a row to
 * leave an add open. */
TEST(counter_sim, adds_are_exact_when_answers_get_lost)
{
    struct sim_luck luck = {
        .lost_answers = 80, .twice = 50, .later_again = 50, .pauses = 10, .pause_ms = 300};
    struct ledger l = {.writers = 16, .patience_ms = 10000};

    sim_each(t, 500, &luck, adds, &l);
    CHECK(l.lives * 8 == l.tries);
    OFTEN(l, l.doubts <= l.tries / 5000);
}

/* ---- shards --------------------------------------------------------------------------------- */

static void shard_adder(struct actor *a)
{
    struct ledger *l = a->user;
    struct hf_counters *c = open_counters(a, l);

    for (int i = 0; i < 6; i++) {
        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 800);
        l->begun++;
        book(a, l, hf_counter_incr(a->s, c, named("x"), 1, NULL));
    }
    hf_counters_close(c);
}

static void shards(struct sim *sim, void *user)
{
    run(sim, user, shard_adder);
    check_sum(user, value_of(sim, "x"));
}

TEST(counter_sim, no_shard_is_overlooked)
{
    struct ledger l = {.writers = 16, .shards = 3};

    sim_each(t, 400, &bad, shards, &l);
    OFTEN(l, l.doubts > 0);
}

/* ---- request ids ---------------------------------------------------------------------------- */

/* Every message is delivered to all, and again after a death; it counts once. */
static void consumer(struct actor *a)
{
    struct ledger *l = a->user;
    struct hf_counters *c = open_counters(a, l);

    l->lives++;
    for (int i = 0; i < MESSAGES;) {
        struct hf_str id = hf_scope_format(a->s, "message-%d", i);

        hf_scope_timeout_ms(a->s, 1000);
        l->tries++;
        if (hf_counter_add_once(a->s, c, named("m"), id, 10, NULL, NULL, NULL) == HF_OK)
            i++;
        else
            l->doubts += hf_scope_error(a->s)->may_have_happened;
        hf_scope_reset(a->s);
    }
    hf_counters_close(c);
}

static void messages(struct sim *sim, void *user)
{
    run(sim, user, consumer);
    CHECK_INT(MESSAGES * 10, value_of(sim, "m"));
}

TEST(counter_sim, messages_are_counted_once)
{
    struct ledger l = {.writers = 16};

    sim_each(t, 500, &bad, messages, &l);
    OFTEN(l, l.doubts > 0);
}

/* ---- a floor -------------------------------------------------------------------------------- */

static void buyer(struct actor *a)
{
    struct ledger *l = a->user;
    struct hf_counters *c = open_counters(a, l);

    for (int i = 0; i < 7; i++) {
        enum hf_status status;
        int64_t left;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 2000);
        l->begun++;
        status = hf_counter_add(a->s, c, named("stock"), -1,
                                HF_OPTIONS(hf_counter_options, .floor = HF_ZERO), &left);
        book(a, l, status);
        if (status == HF_OK) {
            SIM_CHECK(a, left >= 0 && left < STOCK);
            book_number(a, l, left + 1);
        }
    }
    hf_counters_close(c);
}

static void sale(struct sim *sim, void *user)
{
    int64_t left;

    run(sim, user, buyer);
    left = value_of(sim, "stock");
    CHECK(left >= 0);
    check_sum(user, STOCK - left);
}

TEST(counter_sim, stock_is_not_sold_twice)
{
    struct ledger l = {.writers = 2};

    sim_each(t, 600, &bad, sale, &l);
    OFTEN(l, l.limits > 0 && l.doubts > 0);
}

/* ---- sequences ------------------------------------------------------------------------------ */

static void number_taker(struct actor *a)
{
    struct ledger *l = a->user;
    struct hf_counters *c = open_counters(a, l);

    l->lives++;
    for (int round = 0; round < 2; round++) {
        struct hf_sequence *q;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 0);
        SIM_CHECK(a, hf_sequence_open(a->s, c, named("n"),
                                      HF_OPTIONS(hf_sequence_options, .block = 3), &q) == HF_OK);
        for (int i = 0; i < 5; i++) {
            enum hf_status status;
            int64_t number;

            hf_scope_timeout_ms(a->s, 1000);
            status = hf_sequence_next(a->s, q, &number);
            l->tries++;
            if (status == HF_OK)
                book_number(a, l, number);
            else
                l->doubts += hf_scope_error(a->s)->may_have_happened;
        }
        hf_scope_timeout_ms(a->s, 1000);
        (void)hf_sequence_close(a->s, q); /* gives one back, if nobody was faster */
    }
    hf_counters_close(c);
}

static void numbers(struct sim *sim, void *user)
{
    run(sim, user, number_taker);
}

TEST(counter_sim, no_number_comes_twice)
{
    struct ledger l = {.writers = 2};

    sim_each(t, 600, &bad, numbers, &l);
    OFTEN(l, l.doubts > 0);
}

/* A job is one invoice, which has the next number. */
static enum hf_status invoice(struct hf_scope *s, int64_t first, struct hf_transact_write *actions,
                              size_t cap, size_t *len, void *user)
{
    struct hf_put_item *put = hf_scope_alloc(s, sizeof(*put));

    CHECK(cap > 0);
    *put = (struct hf_put_item){
        .table = HF_STR("sim"),
        .item = HF_ITEM(s, HF_S("key", hf_scope_format(s, "invoice-%lld", (long long)first)),
                        HF_N("job", *(const int *)user)),
        .condition = HF_STR("attribute_not_exists(#key)"),
        .names = HF_ITEM(s, HF_S("#key", HF_STR("key")))};
    actions[0].put = put;
    *len = 1;
    return HF_OK;
}

static void biller(struct actor *a)
{
    struct ledger *l = a->user;
    struct hf_counters *c = open_counters(a, l);
    struct hf_sequence *q;

    SIM_CHECK(a, hf_sequence_open(a->s, c, named("n"), NULL, &q) == HF_OK);
    for (int i = 0; i < 4; i++) {
        int job = l->jobs++;
        enum hf_status status;
        int64_t number;

        SIM_CHECK(a, job < JOBS_MAX);
        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 500);
        l->begun++;
        status = hf_sequence_commit(a->s, q, 1, invoice, &job, &number);
        book(a, l, status);
        if (status == HF_OK) {
            l->acked[job] = true;
            book_number(a, l, number);
        }
    }
    (void)hf_sequence_close(a->s, q);
    hf_counters_close(c);
}

static void bills(struct sim *sim, void *user)
{
    struct ledger *l = user;
    struct hf_scope *s = sim_scope(sim);
    uint8_t invoices[JOBS_MAX] = {0};
    int64_t last, job;

    run(sim, l, biller);
    last = value_of(sim, "n");
    check_sum(l, last);
    for (int64_t n = 1; n <= last + 1; n++) {
        struct hf_str key = hf_scope_format(s, "invoice-%lld", (long long)n);
        struct hf_get_item get = {.table = HF_STR("sim"), .key = HF_ITEM(s, HF_S("key", key))};
        struct hf_get_item_result got;

        CHECK_OK(hf_get_item(s, sim_db(sim), &get, &got));
        CHECK((got.item.ptr != NULL) == (n <= last)); /* no gap, and nothing beyond */
        if (n <= last) {
            CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("job")), &job));
            CHECK_INT(0, invoices[job]++);
        }
    }
    for (int i = 0; i < l->jobs; i++)
        CHECK(!l->acked[i] || invoices[i] == 1);
}

TEST(counter_sim, numbers_without_gaps)
{
    struct ledger l = {.writers = 2};

    sim_each(t, 500, &bad, bills, &l);
    OFTEN(l, l.doubts > 0);
}
