/*
 * base/turns.h: short turns on a core.
 *
 * Linux lets a thread run for milliseconds before another one gets its core. Where threads that
 * answer share the cores with threads that work for long, short turns for all of them let an answer
 * wait for a part of a millisecond instead of a whole turn. Everybody's share stays as it is.
 *
 * Kernels before 6.12 ignore it, and nothing depends on it. The C library has no name for the call.
 */
#ifndef HF_BASE_TURNS_H
#define HF_BASE_TURNS_H

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURN_NS = 100000 };

/* For the calling thread, and those that it starts from now on. */
static inline void take_short_turns(void)
{
    struct { /* as linux/sched/types.h has it */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t turn_ns, deadline, period;
    } attr = {.size = sizeof(attr)};

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 || attr.policy != SCHED_OTHER)
        return;
    attr.turn_ns = TURN_NS;
    (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

#endif
