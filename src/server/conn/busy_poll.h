/*
 * server/conn/busy_poll.h: polling for the next request a little longer before going to sleep.
 *
 * Waking a thread takes longer than most requests. So for a single client that sends its next
 * request as soon as it has its answer, the loop stays awake, and the client does not wait for the
 * wake-up.
 *
 *  (1) A loop stays awake for BUSY_POLL_NS after an answer at most, and only when the last request
 *      came soon enough after the answer before it for that to pay.
 *  (2) Not with many connections, which bring work anyway, nor on a single processor, where the
 *      client could not run meanwhile.
 */
#ifndef HF_SERVER_BUSY_POLL_H
#define HF_SERVER_BUSY_POLL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct busy_poll {
    uv_idle_t idle;       /* while it is active the loop does not sleep */
    bool allowed;         /* there is more than one processor */
    bool pays;            /* (1) */
    uint64_t answered_ns; /* the last answer; 0: none yet */
};

void hf__busy_poll_init(struct busy_poll *poll, uv_loop_t *uv, bool allowed);

/* Requests have come in this iteration of the loop; and they have been answered. */
void hf__busy_poll_asked(struct busy_poll *poll);
void hf__busy_poll_answered(struct busy_poll *poll, unsigned connections);

#endif
