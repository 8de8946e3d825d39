/*
 * base/steady.h: waiting at conditions by the clock that nobody sets.
 *
 * Waits are for so long, not until a time of the day: a clock that is set back must not make a
 * thread sleep for an hour.
 */
#ifndef HF_BASE_STEADY_H
#define HF_BASE_STEADY_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* As pthread_cond_init(). */
static inline int steady_cond_init(pthread_cond_t *cond)
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

static inline struct timespec steady_in_us(int64_t us)
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

static inline struct timespec steady_in_ms(int64_t ms)
{
    return steady_in_us(ms * 1000);
}

/* Wait at a condition of steady_cond_init(), for so long at most. Return as
 * pthread_cond_timedwait() does. */
static inline int steady_wait_us(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us)
{
    struct timespec until = steady_in_us(us);

    return pthread_cond_timedwait(cond, mutex, &until);
}

static inline int steady_wait_ms(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ms)
{
    return steady_wait_us(cond, mutex, ms * 1000);
}

#endif
