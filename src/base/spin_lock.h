/*
 * base/spin_lock.h: locking a mutex that is held for microseconds: spin, then sleep.
 *
 * Sleeping for such a lock costs more than the wait itself: the thread that unlocks has to wake the
 * sleeper, and the sleeper has to get a core again. With 32 threads on two cores that took half of
 * the time. So a waiter tries a few times, since the holder may be running on another core; then it
 * yields its own core, as the holder may have lost its core; and it sleeps only when that did not
 * help.
 */
#ifndef HF_BASE_SPIN_LOCK_H
#define HF_BASE_SPIN_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum {
    SPIN_LOOKS = 30, /* about two microseconds */
    SPIN_YIELDS = 20 /* times that a waiter yields its core */
};

static inline void spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait before the next attempt; *looks counts those that failed. False: stop spinning, sleep. */
static inline bool spin_wait(int *looks)
{
    spin_pause();
    if (++*looks % SPIN_LOOKS == 0)
        sched_yield();
    return *looks < SPIN_YIELDS * SPIN_LOOKS;
}

/* False: the lock was not free soon enough. */
static inline bool spin_trylock(pthread_mutex_t *lock)
{
    int looks = 0;

    do {
        if (pthread_mutex_trylock(lock) == 0)
            return true;
    } while (spin_wait(&looks));
    return false;
}

static inline void spin_lock(pthread_mutex_t *lock)
{
    if (!spin_trylock(lock))
        pthread_mutex_lock(lock);
}

/*
 * The same for a read-write lock. Readers never sleep while they hold it, so a writer waits for a
 * lookup or two; a reader waits while a batch is applied. Writers take a mutex first, which decides
 * who is next: glibc hands a rwlock from one writer to the next one that sleeps for it, which has to
 * be woken first, and once two sleep, everybody does; a mutex goes to the first running thread that
 * takes it.
 */
static inline void spin_rdlock(pthread_rwlock_t *lock)
{
    int looks = 0;

    do {
        if (pthread_rwlock_tryrdlock(lock) == 0)
            return;
    } while (spin_wait(&looks));
    pthread_rwlock_rdlock(lock);
}

static inline void spin_wrlock(pthread_rwlock_t *lock)
{
    for (int look = 0; look < SPIN_LOOKS; look++) {
        if (pthread_rwlock_trywrlock(lock) == 0)
            return;
        spin_pause();
    }
    pthread_rwlock_wrlock(lock);
}

/* No thread takes the lock twice, so a writer may go before readers that came after it. */
static inline void spin_rwlock_init(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attr;

    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attr);
    pthread_rwlockattr_destroy(&attr);
}

#endif
