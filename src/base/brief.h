/*
 * base/brief.h: taking a lock that is held for microseconds.
 *
 * A thread that sleeps for such a lock costs more than what it waits for: the one that unlocks has
 * to wake it, and it has to get a core again. With 32 threads on two cores that took half of the
 * time. So it looks a few times, since the holder may be at work on another core; then lets others
 * have its own core, as the holder may have lost its; and sleeps only when that did not help.
 */
#ifndef HF_BASE_BRIEF_H
#define HF_BASE_BRIEF_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum {
    BRIEF_LOOKS = 30, /* about two microseconds */
    BRIEF_TURNS = 20  /* times that the core is given away */
};

static inline void brief_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait for the next look, of which *looks were in vain before. False: enough of that. */
static inline bool brief_wait(int *looks)
{
    brief_pause();
    if (++*looks % BRIEF_LOOKS == 0)
        sched_yield();
    return *looks < BRIEF_TURNS * BRIEF_LOOKS;
}

/* False: it was not to be had soon. */
static inline bool brief_trylock(pthread_mutex_t *lock)
{
    int looks = 0;

    do {
        if (pthread_mutex_trylock(lock) == 0)
            return true;
    } while (brief_wait(&looks));
    return false;
}

static inline void brief_lock(pthread_mutex_t *lock)
{
    if (!brief_trylock(lock))
        pthread_mutex_lock(lock);
}

/*
 * The same for a lock that many may read under. Its readers never sleep with it, so a writer waits
 * for a lookup or two; a reader waits for as long as a batch is applied. Writers settle among
 * themselves with a mutex who is next: glibc hands a rwlock from one writer to the next that sleeps
 * for it, which has to be woken first, and once two sleep, everybody does; a mutex goes to whoever
 * runs and takes it.
 */
static inline void brief_rdlock(pthread_rwlock_t *lock)
{
    int looks = 0;

    do {
        if (pthread_rwlock_tryrdlock(lock) == 0)
            return;
    } while (brief_wait(&looks));
    pthread_rwlock_rdlock(lock);
}

static inline void brief_wrlock(pthread_rwlock_t *lock)
{
    for (int look = 0; look < BRIEF_LOOKS; look++) {
        if (pthread_rwlock_trywrlock(lock) == 0)
            return;
        brief_pause();
    }
    pthread_rwlock_wrlock(lock);
}

/* Nobody takes it twice, so a writer may go before readers that came after it. */
static inline void brief_rwlock_init(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attr;

    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attr);
    pthread_rwlockattr_destroy(&attr);
}

#endif
