/*
 * base/cond_monotonic.h: condition variables with timeouts by the monotonic clock.
 *
 * A timeout is a length of time, not a time of the day: when somebody sets the clock back, no thread
 * may sleep for an hour.
 */
#ifndef HF_BASE_COND_MONOTONIC_H
#define HF_BASE_COND_MONOTONIC_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Returns what pthread_cond_init() does. */
static inline int cond_monotonic_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int error = pthread_condattr_init(&attr);

    if (error)
        return error;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    error = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return error;
}

/* The time of the monotonic clock in `us` from now. */
static inline struct timespec monotonic_in_us(int64_t us)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += us / 1000000;
    time.tv_nsec += us % 1000000 * 1000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

static inline struct timespec monotonic_in_ms(int64_t ms)
{
    return monotonic_in_us(ms * 1000);
}

/* Wait at a condition of cond_monotonic_init(), for `us` at most. Returns what
 * pthread_cond_timedwait() does. */
static inline int cond_wait_us(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us)
{
    struct timespec until = monotonic_in_us(us);

    return pthread_cond_timedwait(cond, mutex, &until);
}

static inline int cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ms)
{
    return cond_wait_us(cond, mutex, ms * 1000);
}

#endif
