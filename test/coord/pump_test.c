/* coord/pump_test.c: (n) is an invariant of coord/pump.c. */
#include "coord/pump.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "base/wait.h"
#include "test.h"

enum { PATIENCE_MS = 30000 };

static void sleep_ms(int64_t ms)
{
    const struct timespec for_ms = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&for_ms, NULL);
}

static int64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* ---- a pump and what its step does ---------------------------------------------------------- */

struct stage {
    struct hf_env env; /* with a clock of its own, if `clock_us` is to count */
    struct hf_scope *s;
    struct pump *pump;
    _Atomic int64_t clock_us;
    _Atomic int64_t next_us; /* what steps return */
    atomic_int steps;
    atomic_int within, most_within;
    atomic_int shut;  /* steps wait while it is */
    atomic_int asked; /* what is to be done, */
    atomic_int seen;  /* and how much of it a step has seen */
    atomic_bool ends_itself;
    atomic_int was_inside;
};

static int64_t clock_of(void *user)
{
    struct stage *stage = user;

    return atomic_load(&stage->clock_us);
}

static int64_t step(size_t worker, void *user)
{
    struct stage *stage = user;
    int within = atomic_fetch_add(&stage->within, 1) + 1, most = atomic_load(&stage->most_within);
    int asked = atomic_load(&stage->asked), seen = atomic_load(&stage->seen);

    (void)worker;
    while (within > most && !atomic_compare_exchange_weak(&stage->most_within, &most, within))
        ;
    while (asked > seen && !atomic_compare_exchange_weak(&stage->seen, &seen, asked))
        ;
    atomic_fetch_add(&stage->steps, 1);
    while (atomic_load(&stage->shut))
        sleep_ms(1);
    if (atomic_load(&stage->ends_itself)) {
        atomic_fetch_add(&stage->was_inside, hf__pump_is_inside(stage->pump));
        hf__pump_end(stage->pump);
    }
    atomic_fetch_sub(&stage->within, 1);
    return atomic_load(&stage->next_us);
}

static void stage_open(struct stage *stage, size_t workers, bool own_clock)
{
    memset(stage, 0, sizeof(*stage));
    atomic_store(&stage->next_us, INT64_MAX);
    atomic_store(&stage->clock_us, 1000000);
    if (own_clock)
        stage->env =
            (struct hf_env){.size = sizeof(stage->env), .user = stage, .elapsed_us = clock_of};
    stage->s = hf_scope_new(&stage->env);
    CHECK_OK(hf__pump_open(stage->s,
                           &(struct pump_options){.workers = workers, .step = step, .user = stage},
                           &stage->pump));
}

static void stage_close(struct stage *stage)
{
    atomic_store(&stage->shut, 0);
    hf__pump_close(stage->pump);
    hf_scope_free(stage->s);
}

static int64_t elapsed_us(struct stage *stage)
{
    const struct hf_env *env = hf_scope_env(stage->s);

    return env->elapsed_us(env->user);
}

static void wait_for(atomic_int *number, int value)
{
    int64_t end = now_ms() + PATIENCE_MS;

    while (atomic_load(number) < value && now_ms() < end)
        sleep_ms(1);
    CHECK(atomic_load(number) >= value);
}

/* Let steps that wait go on, until none is under way. */
static void let_out(struct stage *stage)
{
    int64_t end = now_ms() + PATIENCE_MS;

    atomic_store(&stage->shut, 0);
    while (atomic_load(&stage->within) && now_ms() < end)
        sleep_ms(1);
    CHECK_INT(0, atomic_load(&stage->within));
}

/* The first step, which is due at once, is over. */
static void start_and_settle(struct stage *stage)
{
    int before = atomic_load(&stage->steps);

    CHECK_OK(hf__pump_start(stage->s, stage->pump));
    wait_for(&stage->steps, before + 1);
    if (!atomic_load(&stage->next_us)) /* there is always one */
        return;
    let_out(stage);
}

/* ---- waking --------------------------------------------------------------------------------- */

enum { WAKES = 20000, WAKERS = 3 };

static void *wake_often(void *user)
{
    struct stage *stage = user;

    for (int i = 0; i < WAKES; i++) {
        atomic_fetch_add(&stage->asked, 1);
        hf__pump_wake(stage->pump);
    }
    return NULL;
}

/* (1) Whatever is asked for before a wake, a step sees. */
TEST(pump, a_wake_is_never_lost)
{
    static const size_t workers[] = {1, 4};

    for (size_t i = 0; i < 2; i++) {
        struct stage stage;
        pthread_t wakers[WAKERS];

        stage_open(&stage, workers[i], false);
        CHECK_OK(hf__pump_start(stage.s, stage.pump));
        for (size_t w = 0; w < WAKERS; w++)
            CHECK_INT(0, pthread_create(&wakers[w], NULL, wake_often, &stage));
        for (size_t w = 0; w < WAKERS; w++)
            pthread_join(wakers[w], NULL);
        wait_for(&stage.seen, WAKES * WAKERS);
        stage_close(&stage);
    }
}

/* (1) */
TEST(pump, a_wake_during_a_step_leads_to_another)
{
    struct stage stage;

    stage_open(&stage, 1, false);
    start_and_settle(&stage);
    for (int round = 1; round <= 20; round++) {
        int before = atomic_load(&stage.steps);

        atomic_store(&stage.shut, 1);
        hf__pump_wake(stage.pump);
        wait_for(&stage.steps, before + 1);
        hf__pump_wake(stage.pump); /* it is in the step */
        atomic_store(&stage.shut, 0);
        wait_for(&stage.steps, before + 2);
    }
    stage_close(&stage);
}

/* As many wakes, as many workers; and all at once. */
TEST(pump, wakes_go_to_different_workers)
{
    struct stage stage;

    stage_open(&stage, 3, false);
    start_and_settle(&stage);
    atomic_store(&stage.shut, 1);
    hf__pump_wake(stage.pump);
    hf__pump_wake(stage.pump);
    wait_for(&stage.within, 2);
    sleep_ms(20);
    CHECK_INT(2, atomic_load(&stage.within));
    let_out(&stage);
    atomic_store(&stage.shut, 1);
    hf__pump_wake_all(stage.pump);
    wait_for(&stage.within, 3);
    CHECK_INT(3, atomic_load(&stage.most_within));
    stage_close(&stage);
}

/* (2) A step that lasts does not keep the others from what is due meanwhile. */
TEST(pump, another_takes_what_is_due_during_a_long_step)
{
    struct stage stage;

    stage_open(&stage, 2, false);
    start_and_settle(&stage);
    hf__pump_wake_at(stage.pump, elapsed_us(&stage) + 50000); /* somebody waits for that, */
    atomic_store(&stage.shut, 1);
    hf__pump_wake(stage.pump); /* and this may be the one who is woken */
    wait_for(&stage.within, 2);
    let_out(&stage);
    atomic_store(&stage.shut, 1);
    hf__pump_wake(stage.pump);
    wait_for(&stage.within, 1);
    hf__pump_wake_at(stage.pump, 0); /* as a step does that begins something long */
    wait_for(&stage.within, 2);
    stage_close(&stage);
}

/* (2) */
TEST(pump, nobody_polls)
{
    struct rusage before, after;
    struct stage stage;
    int steps;

    stage_open(&stage, 8, false);
    start_and_settle(&stage);
    sleep_ms(100);
    steps = atomic_load(&stage.steps);
    getrusage(RUSAGE_SELF, &before);
    sleep_ms(500);
    getrusage(RUSAGE_SELF, &after);
    CHECK_INT(steps, atomic_load(&stage.steps));
    CHECK(after.ru_nvcsw - before.ru_nvcsw < 10); /* slices of 20 ms would be 200 */
    stage_close(&stage);
}

/* Steps begin when they said so, one of all workers; named times that are later add none. */
TEST(pump, a_step_is_called_when_it_is_due_and_not_more_often)
{
    struct stage stage;
    int64_t begin_ms;

    stage_open(&stage, 4, false);
    start_and_settle(&stage);
    for (int i = 0; i < 1000; i++)
        hf__pump_wake_at(stage.pump, elapsed_us(&stage) + INT64_C(3600) * 1000000);
    sleep_ms(50);
    CHECK_INT(1, atomic_load(&stage.steps));
    begin_ms = now_ms();
    hf__pump_wake_at(stage.pump, elapsed_us(&stage) + 100000);
    wait_for(&stage.steps, 2);
    CHECK(now_ms() - begin_ms >= 99);
    sleep_ms(50);
    CHECK_INT(2, atomic_load(&stage.steps));
    stage_close(&stage);
}

/* (6) Time that passes while the system's clock stands still is noticed. */
TEST(pump, a_clock_that_jumps_is_noticed)
{
    struct stage stage;

    stage_open(&stage, 2, true);
    start_and_settle(&stage);
    hf__pump_wake_at(stage.pump, elapsed_us(&stage) + INT64_C(3600) * 1000000);
    sleep_ms(20);
    CHECK_INT(1, atomic_load(&stage.steps));
    atomic_fetch_add(&stage.clock_us, INT64_C(3600) * 1000000);
    wait_for(&stage.steps, 2);
    stage_close(&stage);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* (5) */
TEST(pump, a_stop_is_bounded_and_who_is_left_ends_later)
{
    struct stage stage;
    int64_t begin_ms;

    stage_open(&stage, 3, false);
    start_and_settle(&stage);
    atomic_store(&stage.shut, 1);
    hf__pump_wake(stage.pump);
    wait_for(&stage.within, 1);
    hf__pump_end(stage.pump);
    for (int64_t end = now_ms() + PATIENCE_MS; hf__pump_left(stage.pump) > 1; sleep_ms(1))
        CHECK(now_ms() < end); /* the others end, however long that takes here */
    begin_ms = now_ms();
    CHECK_INT(1, hf__pump_stop(stage.pump, 50000));
    CHECK(now_ms() - begin_ms >= 49);
    CHECK_INT(1, hf__pump_left(stage.pump));
    CHECK_STATUS(HF_IN_USE, hf__pump_start(stage.s, stage.pump));
    hf__pump_wake_all(stage.pump);
    atomic_store(&stage.shut, 0);
    CHECK_INT(0, hf__pump_stop(stage.pump, INT64_MAX));
    CHECK_INT(2, atomic_load(&stage.steps)); /* none follows */
    start_and_settle(&stage);                /* and it can be started again */
    stage_close(&stage);
}

/* (3) */
TEST(pump, no_step_begins_after_a_stop)
{
    for (int round = 0; round < 20; round++) {
        struct stage stage;
        pthread_t waker;
        int steps;

        stage_open(&stage, 3, false);
        atomic_store(&stage.next_us, 0); /* always due */
        start_and_settle(&stage);
        CHECK_INT(0, pthread_create(&waker, NULL, wake_often, &stage));
        CHECK_INT(0, hf__pump_stop(stage.pump, INT64_MAX));
        CHECK_INT(0, atomic_load(&stage.within));
        steps = atomic_load(&stage.steps);
        pthread_join(waker, NULL);
        CHECK_INT(steps, atomic_load(&stage.steps));
        stage_close(&stage);
    }
}

TEST(pump, a_step_can_end_the_pump_but_not_wait_for_it)
{
    struct stage stage;

    stage_open(&stage, 2, false);
    CHECK(!hf__pump_is_inside(stage.pump));
    atomic_store(&stage.ends_itself, true);
    CHECK_OK(hf__pump_start(stage.s, stage.pump));
    CHECK_OK(hf__pump_let_end(stage.s, stage.pump));
    CHECK_INT(1, atomic_load(&stage.steps));
    CHECK_INT(1, atomic_load(&stage.was_inside));
    CHECK(!hf__pump_is_inside(stage.pump));
    stage_close(&stage);
}

TEST(pump, waiting_for_the_end_has_the_deadline_of_a_scope)
{
    struct stage stage;

    stage_open(&stage, 1, false);
    start_and_settle(&stage);
    atomic_store(&stage.shut, 1);
    hf__pump_wake(stage.pump);
    wait_for(&stage.within, 1);
    hf__pump_end(stage.pump);
    hf_scope_timeout_ms(stage.s, 30);
    CHECK_STATUS(HF_TIMEOUT, hf__pump_let_end(stage.s, stage.pump));
    hf_scope_reset(stage.s);
    atomic_store(&stage.shut, 0);
    CHECK_OK(hf__pump_let_end(stage.s, stage.pump));
    stage_close(&stage);
}

/* (3) No thread fits into the memory that there is, if its stack is to be that large. */
TEST(pump, a_thread_that_cannot_be_started)
{
    pthread_attr_t before, large;
    struct stage stage;

    stage_open(&stage, 3, false);
    CHECK_INT(0, pthread_getattr_default_np(&before));
    CHECK_INT(0, pthread_attr_init(&large));
    CHECK_INT(0, pthread_attr_setstacksize(&large, (size_t)1 << 50));
    CHECK_INT(0, pthread_setattr_default_np(&large));
    CHECK_STATUS(HF_LIMIT, hf__pump_start(stage.s, stage.pump));
    CHECK_INT(0, pthread_setattr_default_np(&before));
    pthread_attr_destroy(&large);
    pthread_attr_destroy(&before);
    CHECK_INT(0, atomic_load(&stage.steps));
    start_and_settle(&stage);
    stage_close(&stage);
}

TEST(pump, without_threads)
{
    struct stage stage;

    stage_open(&stage, 0, false);
    CHECK_OK(hf__pump_start(stage.s, stage.pump));
    hf__pump_wake(stage.pump);
    CHECK_INT(0, atomic_load(&stage.steps));
    atomic_store(&stage.next_us, 77);
    CHECK_INT(77, hf__pump_step(stage.pump));
    CHECK_INT(1, atomic_load(&stage.steps));
    CHECK_INT(0, hf__pump_stop(stage.pump, INT64_MAX));
    CHECK_INT(INT64_MAX, hf__pump_step(stage.pump));
    CHECK_INT(1, atomic_load(&stage.steps));
    CHECK_OK(hf__pump_start(stage.s, stage.pump));
    CHECK_INT(77, hf__pump_step(stage.pump));
    stage_close(&stage);
}

/* ---- waiters -------------------------------------------------------------------------------- */

struct wish {
    struct waiters waiters;
    struct hf_scope *s;
    atomic_int looks, holds;
    int64_t until_us;
    enum hf_status status;
};

static bool is_granted(void *user)
{
    struct wish *wish = user;

    atomic_fetch_add(&wish->looks, 1);
    return atomic_load(&wish->holds);
}

static void *wait_for_wish(void *user)
{
    struct wish *wish = user;

    wish->status = hf__waiters_wait(wish->s, &wish->waiters, is_granted, wish, wish->until_us);
    return NULL;
}

static void wish_begin(struct wish *wish, pthread_t *thread, uint32_t timeout_ms)
{
    memset(wish, 0, sizeof(*wish));
    hf__waiters_init(&wish->waiters);
    wish->s = hf_scope_new(NULL);
    wish->until_us = INT64_MAX;
    hf_scope_timeout_ms(wish->s, timeout_ms);
    CHECK_INT(0, pthread_create(thread, NULL, wait_for_wish, wish));
    wait_for(&wish->looks, 1);
}

static void wish_end(struct wish *wish)
{
    hf__waiters_free(&wish->waiters);
    hf_scope_free(wish->s);
}

/* Who is canceled is woken by that; nobody looks again and again. */
TEST(pump, waiters_are_woken_by_what_they_wait_for)
{
    struct wish wish;
    pthread_t thread;

    wish_begin(&wish, &thread, 0);
    sleep_ms(100);
    CHECK_INT(1, atomic_load(&wish.looks));
    hf__waiters_notify(&wish.waiters); /* it does not hold yet */
    wait_for(&wish.looks, 2);
    atomic_store(&wish.holds, 1);
    hf__waiters_notify(&wish.waiters);
    pthread_join(thread, NULL);
    CHECK_OK(wish.status);
    wish_end(&wish);
    wish_begin(&wish, &thread, 0);
    hf_scope_cancel(wish.s);
    pthread_join(thread, NULL);
    CHECK_STATUS(HF_CANCELED, wish.status);
    CHECK_INT(1, atomic_load(&wish.looks));
    wish_end(&wish);
    wish_begin(&wish, &thread, 40);
    pthread_join(thread, NULL);
    CHECK_STATUS(HF_TIMEOUT, wish.status);
    wish_end(&wish);
}

static void *sleep_long(void *user)
{
    struct wish *wish = user;

    atomic_fetch_add(&wish->looks, 1);
    wish->status = hf_scope_sleep_ms(wish->s, 600000);
    return NULL;
}

/* A sleeper does not wake up before it is canceled, and then at once. */
TEST(pump, a_sleeping_scope_does_not_poll)
{
    struct wish wish = {.s = hf_scope_new(NULL)};
    struct rusage before, after;
    pthread_t thread;

    CHECK_INT(0, pthread_create(&thread, NULL, sleep_long, &wish));
    wait_for(&wish.looks, 1);
    sleep_ms(50);
    getrusage(RUSAGE_SELF, &before);
    sleep_ms(300);
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_nvcsw - before.ru_nvcsw < 8); /* slices of 20 ms would be 15 */
    hf_scope_cancel(wish.s);
    pthread_join(thread, NULL);
    CHECK_STATUS(HF_CANCELED, wish.status);
    hf_scope_free(wish.s);
}
