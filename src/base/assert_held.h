/*
 * base/assert_held.h: what only builds for tests assert.
 *
 *     ASSERT_HELD(&queue->lock);   this thread holds the mutex
 *     if (DEV_CHECKS)              checks that are too slow for every build
 *         queue_check(queue);
 *
 * Asserts are on in every build, as they cost little. DEV_CHECKS is 1 in the presets dev, asan,
 * tsan, fuzz and coverage, and 0 in a release: there the compiler drops what depends on it, and
 * ASSERT_HELD() is nothing.
 *
 * glibc notes in each mutex which thread has it. Only the holder can read its own number there, as
 * it writes that after locking and removes it before unlocking, so the answer is right whatever
 * other threads do, and there is no race for tsan to find. Other C libraries can only tell that
 * somebody holds the mutex.
 */
#ifndef HF_BASE_ASSERT_HELD_H
#define HF_BASE_ASSERT_HELD_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DEV_CHECKS 1
#endif
#endif
#if !defined(DEV_CHECKS) && (defined(HF_KILL_POINTS) || defined(__SANITIZE_ADDRESS__))
#define DEV_CHECKS 1 /* kill points are what builds for tests have */
#endif
#ifndef DEV_CHECKS
#define DEV_CHECKS 0
#endif

/* The number of a thread is kept, as each look at it is a system call, and simulations assert millions of
 * times. A child of fork() has another number than what it inherits here: then it looks again, as the
 * owner of a mutex that it has locked is not the old one. */
static inline bool mutex_is_held(pthread_mutex_t *mutex)
{
#if defined(__GLIBC__)
    static _Thread_local int self;
    int owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);

    if (owner != self)
        self = (int)syscall(SYS_gettid);
    return owner != 0 && owner == self;
#else
    if (pthread_mutex_trylock(mutex) != 0)
        return true;
    pthread_mutex_unlock(mutex);
    return false;
#endif
}

#if DEV_CHECKS
#define ASSERT_HELD(mutex) assert(mutex_is_held(mutex))
#else
#define ASSERT_HELD(mutex) ((void)(mutex))
#endif

#endif
