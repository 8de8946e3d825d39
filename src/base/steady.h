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

static inline struct timespec steady_in_ms(int64_t ms)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

/* Wait at a condition of steady_cond_init(), for so long at most. Returns as
 * pthread_cond_timedwait() does. */
static inline int steady_wait_ms(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ms)
{
    struct timespec until = steady_in_ms(ms);

    return pthread_cond_timedwait(cond, mutex, &until);
}

#endif
