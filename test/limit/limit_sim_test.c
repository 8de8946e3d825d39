/*
 * limit/limit_sim_test.c: limits under bad luck, by seed (L8).
 *
 * In every history up to 16 hosts take from one name, under one rule, with wall clocks that differ
 * by up to half a window. They lose answers, pause, die, and requests arrive late and twice. P15,
 * by the name's clock (limit.h), of what was allowed and not given back:
 *
 *  (a) Windows: never more than the limit in one; and no window begins before the last one is over.
 *  (b) Sliding: never more than the limit in any window of time.
 *  (c) Rate: in any time t never more than the burst and t divided by the interval. What is given
 *      back is free from that moment on, so here it adds to what is allowed; half of the histories
 *      give nothing back.
 *  (d) Without faults the limit is used up to the last one.
 */
#include <holdfast/limit.h>

#include <stdlib.h>

#include "sim.h"

enum { HOSTS = 16, TAKES = 6, GRANTS_MAX = 2048, WINDOWS_MAX = 2048, ID_LEN = 35 };

struct grant {
    int64_t at_us;
    char window[ID_LEN];
    bool back; /* it was, or may have been, given back */
};

struct window {
    char id[ID_LEN];
    int64_t start_ms;
};

struct story {
    struct hf_limit_rule rule;
    bool luck;
    bool refunds;
    struct grant grants[GRANTS_MAX];
    size_t grants_len;
    struct window windows[WINDOWS_MAX];
    size_t windows_len;
    uint64_t allowed, refused, refunded; /* over all histories */
};

#define TABLE HF_STR("limits")
#define NAME HF_STR("n")

static bool is_window(const struct hf_limit_rule *rule)
{
    return rule->kind == HF_LIMIT_ATTEMPTS || rule->kind == HF_LIMIT_FIXED;
}

/* The window that is there now, by the database itself. */
static void note_window(struct actor *a)
{
    struct story *story = a->user;
    struct hf_get_item get = {.table = TABLE,
                              .key = HF_ITEM(sim_scope(a->sim), HF_S("name", NAME)),
                              .consistent = HF_YES};
    struct hf_get_item_result got;
    struct hf_str id;
    int64_t start_ms;

    SIM_CHECK(a, hf_get_item(sim_scope(a->sim), sim_db(a->sim), &get, &got) == HF_OK);
    id = hf_value_str(hf_item_get(got.item, HF_STR("window")));
    SIM_CHECK(a, id.len == ID_LEN);
    SIM_CHECK(a, hf_value_i64(hf_item_get(got.item, HF_STR("start_ms")), &start_ms));
    for (size_t i = 0; i < story->windows_len; i++)
        if (memcmp(story->windows[i].id, id.ptr, ID_LEN) == 0) {
            SIM_CHECK(a, story->windows[i].start_ms == start_ms);
            return;
        }
    SIM_CHECK(a, story->windows_len < WINDOWS_MAX);
    memcpy(story->windows[story->windows_len].id, id.ptr, ID_LEN);
    story->windows[story->windows_len++].start_ms = start_ms;
}

static void refund(struct actor *a, struct hf_limit_table *limits, struct grant *grant,
                   const struct hf_limit_verdict *verdict)
{
    struct story *story = a->user;
    enum hf_status status;

    grant->back = true; /* from the moment it is asked for */
    status = hf_limit_refund(a->s, limits, NAME, &story->rule, verdict);
    SIM_CHECK(a, status != HF_INVALID && status != HF_CORRUPT && status != HF_LIMIT);
    story->refunded += status == HF_OK;
}

static void host(struct actor *a)
{
    struct story *story = a->user;
    struct hf_limit_table *limits = NULL;

    while (!limits && hf_limit_table_open(a->s, a->db, NULL, &limits) != HF_OK) {
        SIM_CHECK(a, hf_scope_error(a->s)->status != HF_INVALID);
        actor_sleep_ms(a, 20);
    }
    for (int i = 0; i < TAKES; i++) {
        struct hf_limit_verdict verdict;
        enum hf_status status;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 2000);
        status = hf_limit_take(a->s, limits, NAME, &story->rule, NULL, &verdict);
        SIM_CHECK(a, status != HF_INVALID && status != HF_CORRUPT && status != HF_CONDITION);
        SIM_CHECK(a, verdict.allowed == (status == HF_OK));
        story->refused += status == HF_LIMIT;
        if (status == HF_OK) {
            struct grant *grant = &story->grants[story->grants_len++];

            SIM_CHECK(a, story->grants_len < GRANTS_MAX && verdict.window.len == ID_LEN);
            *grant = (struct grant){.at_us = verdict.at_us};
            memcpy(grant->window, verdict.window.ptr, ID_LEN);
            story->allowed++;
            if (is_window(&story->rule))
                note_window(a);
            if (story->refunds && sim_random_below(a->sim, 4) == 0)
                refund(a, limits, grant, &verdict);
        }
        if (story->luck)
            actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, story->rule.window_ms));
    }
    hf_limit_table_close(limits);
}

/* ---- what has to hold ----------------------------------------------------------------------- */

#define HOLDS(sim, condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            print_error("repeat with HF_SIM_SEED=%llu\n", (unsigned long long)sim_seed(sim));      \
        CHECK(condition);                                                                          \
    } while (0)

/* (a) */
static void check_windows(struct sim *sim, struct story *story)
{
    for (size_t i = 0; i < story->windows_len; i++) {
        struct window *window = &story->windows[i];
        uint32_t count = 0;

        for (size_t j = 0; j < story->grants_len; j++)
            count +=
                !story->grants[j].back && memcmp(story->grants[j].window, window->id, ID_LEN) == 0;
        CHECK(count <= story->rule.limit);
        for (size_t j = 0; j < i; j++)
            HOLDS(sim,
                  llabs(window->start_ms - story->windows[j].start_ms) >= story->rule.window_ms);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct grant *x = a, *y = b;

    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

/* (b) (c): at_us is where the slice begins, or the caller's time. */
static void check_any_time(struct sim *sim, struct story *story)
{
    int64_t back = 0;
    int64_t window_us = (int64_t)story->rule.window_ms * 1000;
    int64_t interval_us = window_us / story->rule.limit;
    bool rate = story->rule.kind == HF_LIMIT_RATE;

    for (size_t i = 0; i < story->grants_len; i++)
        back += story->grants[i].back;
    qsort(story->grants, story->grants_len, sizeof(story->grants[0]), by_time);
    for (size_t i = 0; i < story->grants_len; i++) {
        int64_t count = 0;

        for (size_t j = i; j < story->grants_len; j++) {
            int64_t time_us = story->grants[j].at_us - story->grants[i].at_us;

            if (!rate && time_us > window_us)
                break;
            count += rate || !story->grants[j].back;
            HOLDS(sim, count <= (rate ? story->rule.burst + time_us / interval_us + back
                                      : (int64_t)story->rule.limit));
        }
    }
}

static void history(struct sim *sim, void *user)
{
    struct story *story = user;
    size_t hosts = story->luck ? 2 + (size_t)sim_random_below(sim, HOSTS - 1) : HOSTS;
    uint32_t limit = 1 + (uint32_t)sim_random_below(sim, 8);

    story->rule = (struct hf_limit_rule){
        .kind = (enum hf_limit_kind)(HF_LIMIT_ATTEMPTS + sim_random_below(sim, 4)),
        .limit = limit,
        .window_ms = story->luck ? 2000 + (uint32_t)sim_random_below(sim, 3000) : 1000000,
        .burst = 1 + (uint32_t)sim_random_below(sim, limit)};
    if (story->rule.kind == HF_LIMIT_FIXED && !story->luck)
        story->rule.kind = HF_LIMIT_ATTEMPTS; /* a boundary may come at any time */
    story->refunds = story->luck && sim_random_below(sim, 2) == 0;
    story->grants_len = story->windows_len = 0;
    for (size_t i = 0; i < hosts; i++)
        sim_start(sim, "host", host, story);
    sim_run(sim);
    if (is_window(&story->rule))
        check_windows(sim, story);
    else
        check_any_time(sim, story);
    if (!story->luck) /* (d) */
        CHECK_INT(story->rule.kind == HF_LIMIT_RATE ? story->rule.burst : limit, story->grants_len);
}

TEST(limit_sim, never_more_than_the_limit)
{
    struct sim_luck luck = {.lost_requests = 30,
                            .lost_answers = 50,
                            .twice = 20,
                            .later_again = 30,
                            .refused = 20,
                            .slow = 50,
                            .slow_ms = 300,
                            .pauses = 10,
                            .pause_ms = 3000,
                            .deaths = 5,
                            .wall_skew_ms = 1000,
                            .drift_ppm = 1000};
    static struct story story;

    story = (struct story){.luck = true};
    sim_each(t, 1000, &luck, history, &story);
    if (sim_is_whole()) { /* histories that show nothing prove nothing */
        CHECK(story.allowed > 100);
        CHECK(story.refused > 100);
        CHECK(story.refunded > 10);
    }
}

TEST(limit_sim, sixteen_at_once_use_all_of_it)
{
    static struct story story;

    story = (struct story){.luck = false};
    sim_each(t, 200, &(struct sim_luck){.drift_ppm = 1000}, history, &story);
    CHECK(story.refused > 0);
}
