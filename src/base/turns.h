/*
 * base/turns.h: short turns on a core.
 *
 * Linux lets a thread run for milliseconds before another one gets its core. Where threads that
 * answer share the cores with threads that work for long, short turns for both let an answer wait
 * for a part of a millisecond instead of a whole turn. Everybody's share stays as it is.
 *
 * Kernels before 6.12 ignore it, and nothing depends on it. The C library has no name for the call.
 */
#ifndef HF_BASE_TURNS_H
#define HF_BASE_TURNS_H

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT_TURN_NS = 100000 };

/*
 * For the calling thread, and those that it starts from now on; returns what was before, or 0:
 * turns cannot be set.
 */
static inline uint64_t take_turns(uint64_t ns)
{
    struct { /* as linux/sched/types.h has it */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t turn_ns, deadline, period;
    } attr = {.size = sizeof(attr)};
    uint64_t before;

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 || attr.policy != SCHED_OTHER)
        return 0;
    before = attr.turn_ns;
    attr.turn_ns = ns;
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0 ? before : 0;
}

#endif
