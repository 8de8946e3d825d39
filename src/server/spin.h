/*
 * server/spin.h: looking for the next request a little longer before going to sleep.
 *
 * To wake a thread takes the system longer than most requests take us. A client that asks again as
 * soon as it has its answer, alone, is worth waiting for awake: it does not have to wait for us to
 * wake up then.
 *
 *  (1) A loop stays awake for SPIN_NS after an answer at most, and only when the last request came
 *      soon enough after the answer before it for that to pay.
 *  (2) Not with many connections, which bring work anyway, nor on a single processor, where the
 *      client could not run meanwhile.
 */
#ifndef HF_SERVER_SPIN_H
#define HF_SERVER_SPIN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct spin {
    uv_idle_t idle;       /* while it is active the loop does not sleep */
    bool allowed;         /* there is more than one processor */
    bool pays;            /* (1) */
    uint64_t answered_ns; /* the last answer; 0: none yet */
};

void hf__spin_init(struct spin *spin, uv_loop_t *uv, bool allowed);

/* A turn has begun with requests; and they have been answered. */
void hf__spin_asked(struct spin *spin);
void hf__spin_answered(struct spin *spin, unsigned connections);

#endif
