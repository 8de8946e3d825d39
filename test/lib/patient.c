/*
 * test/lib/patient.c: the clock of patient.h.
 *
 * Each processor has a ticker, a thread that may run on it alone. A ticker sleeps for a tick and then
 * adds what has passed, but two ticks at most. The clock is that of the ticker that is behind all others:
 * it goes only while threads get to run on all processors, those of the test as well as the tickers.
 *
 *  (1) The clock never steps back: no ticker does.
 *  (2) It never goes faster than the system's: the slowest ticker does not.
 */
#include "patient.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "test.h"

enum { TICK_US = 2000, TICKERS_MAX = 16 };

struct ticker {
    pthread_t thread;
    int cpu;
    _Atomic int64_t us; /* what it has counted */
};

static struct ticker tickers[TICKERS_MAX];
static size_t tickers_len; /* 0: the clock stands still */
static int64_t begun_us, begun_wall_us;
static atomic_bool ending;

static int64_t system_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void system_sleep_us(int64_t us)
{
    const struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    nanosleep(&left, NULL);
}

static void *ticker_run(void *user)
{
    struct ticker *ticker = user;
    int64_t last_us;
    cpu_set_t only;

    CPU_ZERO(&only);
    CPU_SET(ticker->cpu, &only);
    (void)sched_setaffinity(0, sizeof(only), &only); /* refused: it ticks wherever it is */
    last_us = system_us(CLOCK_MONOTONIC);
    while (!atomic_load(&ending)) {
        int64_t now_us, passed_us;

        system_sleep_us(TICK_US);
        now_us = system_us(CLOCK_MONOTONIC);
        passed_us = now_us - last_us < 2 * TICK_US ? now_us - last_us : 2 * TICK_US;
        last_us = now_us;
        atomic_fetch_add(&ticker->us, passed_us);
    }
    return NULL;
}

int64_t patient_now_us(void)
{
    int64_t least_us = INT64_MAX;

    for (size_t i = 0; i < tickers_len; i++) {
        int64_t us = atomic_load(&tickers[i].us);

        least_us = us < least_us ? us : least_us;
    }
    return begun_us + least_us;
}

static int64_t elapsed_us(void *user)
{
    (void)user;
    return patient_now_us();
}

static int64_t wall_us(void *user)
{
    (void)user;
    return begun_wall_us + patient_now_us() - begun_us;
}

const struct hf_env *patient_begin(void)
{
    static const struct hf_env env = {.size = sizeof(env),
                                      .wall_us = wall_us,
                                      .elapsed_us = elapsed_us};
    size_t len = 0;
    cpu_set_t cpus;

    patient_end(); /* of a test that has failed */
    begun_us = system_us(CLOCK_BOOTTIME);
    begun_wall_us = system_us(CLOCK_REALTIME);
    CHECK_INT(0, sched_getaffinity(0, sizeof(cpus), &cpus));
    for (int cpu = 0; cpu < CPU_SETSIZE && len < TICKERS_MAX; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            tickers[len++] = (struct ticker){.cpu = cpu};
    for (size_t i = 0; i < len; i++)
        CHECK_INT(0, pthread_create(&tickers[i].thread, NULL, ticker_run, &tickers[i]));
    tickers_len = len;
    return &env;
}

void patient_end(void)
{
    atomic_store(&ending, true);
    for (size_t i = 0; i < tickers_len; i++)
        pthread_join(tickers[i].thread, NULL);
    tickers_len = 0;
    atomic_store(&ending, false);
}

void patient_sleep_ms(int64_t ms)
{
    for (int64_t end_us = patient_now_us() + ms * 1000; patient_now_us() < end_us;)
        system_sleep_us(TICK_US / 2);
}
