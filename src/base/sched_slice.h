/*
 * base/sched_slice.h: the scheduler's time slice of a thread.
 *
 * Linux lets a thread run for milliseconds before another one gets its core. Where threads that
 * answer requests share the cores with threads that work for long, short time slices for both let
 * an answer wait for a part of a millisecond instead of a whole slice. The share of each thread
 * stays as it is.
 *
 * Kernels before 6.12 ignore the setting, and nothing depends on it. The C library has no function
 * for the system call.
 */
#ifndef HF_BASE_SCHED_SLICE_H
#define HF_BASE_SCHED_SLICE_H

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT_SLICE_NS = 100000 };

/*
 * Set the time slice of the calling thread, and of the threads that it starts from now on. Returns
 * the slice before, or 0 if slices cannot be set.
 */
static inline uint64_t sched_slice_set(uint64_t ns)
{
    struct { /* as linux/sched/types.h has it */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice_ns, deadline, period;
    } attr = {.size = sizeof(attr)};
    uint64_t before;

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 || attr.policy != SCHED_OTHER)
        return 0;
    before = attr.slice_ns;
    attr.slice_ns = ns;
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0 ? before : 0;
}

#endif
