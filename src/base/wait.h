/*
 * base/wait.h: waiting on behalf of a scope, until something happens, a time has come, or the scope
 * ends.
 *
 *     do {
 *         wakes = hf__scope_wakes(s);
 *         if (is_there(queue))         looked at after `wakes` was taken,
 *             return HF_OK;
 *     } while (hf__scope_wait(s, wakes, until_us) == HF_OK);
 *
 * The thread that changes the queue calls hf__scope_wake() after the change. So no wake is lost.
 * hf__scope_wake() does not wait and takes no lock. Canceling a scope wakes its waiter, too, so that
 * no waiter has to look every few milliseconds whether its scope was canceled.
 *
 * The kernel does the waiting, on a word: see futex(2). Timeouts are by the monotonic clock.
 */
#ifndef HF_BASE_WAIT_H
#define HF_BASE_WAIT_H

#include <holdfast/scope.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(atomic_uint) == 4, "the kernel waits on words of four bytes");

/* Wake all threads that wait on the word, which may be freed memory by now. Signal handlers may
 * call it. */
static inline void futex_wake(atomic_uint *word)
{
    int before = errno;

    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = before;
}

/* Wait while the word is `seen`, at most `us` long; INT64_MAX: no limit. May return early. */
static inline void futex_wait(atomic_uint *word, unsigned seen, int64_t us)
{
    struct timespec limit = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, us == INT64_MAX ? NULL : &limit, NULL, 0);
}

/* The number of wakes so far, to be read before looking at what is waited for. */
uint32_t hf__scope_wakes(const struct hf_scope *s);

/* Wake the thread that waits on this scope. Any thread may call it while the scope exists. */
void hf__scope_wake(struct hf_scope *s);

/*
 * Wait until the scope is woken, if it was not since `wakes` were taken; or until a time of the
 * elapsed clock; INT64_MAX: only a wake ends it, and the scope's own end. HF_OK, perhaps early;
 * HF_TIMEOUT, HF_CANCELED. The waiting is real also when the env has a clock of its own.
 */
enum hf_status hf__scope_wait(struct hf_scope *s, uint32_t wakes, int64_t until_us);

/* Does the env sleep by a function of its own? Then time may pass only while somebody sleeps. */
bool hf__env_has_own_sleep(const struct hf_env *env);

#endif
