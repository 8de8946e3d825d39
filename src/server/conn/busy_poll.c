/*
 * server/conn/busy_poll.c: staying awake for the next request; busy_poll.h says when.
 */
#include "server/conn/busy_poll.h"

#include <assert.h>

enum {
    BUSY_POLL_NS = 50000, /* about what it takes to be woken */
    SOON_NS = 150000,     /* a client that had to be woken, too, and then asked at once */
    CONNECTIONS_MAX = 2
};

static void on_busy_poll(uv_idle_t *idle)
{
    struct busy_poll *poll = idle->data;

    assert(poll->allowed && poll->answered_ns > 0); /* it is started by an answer alone */
    if (uv_hrtime() - poll->answered_ns > BUSY_POLL_NS)
        uv_idle_stop(idle);
}

void hf__busy_poll_init(struct busy_poll *poll, uv_loop_t *uv, bool allowed)
{
    *poll = (struct busy_poll){.allowed = allowed};
    uv_idle_init(uv, &poll->idle);
    poll->idle.data = poll;
}

void hf__busy_poll_asked(struct busy_poll *poll)
{
    if (poll->allowed)
        poll->pays = poll->answered_ns && uv_hrtime() - poll->answered_ns < SOON_NS;
}

void hf__busy_poll_answered(struct busy_poll *poll, unsigned connections)
{
    if (!poll->allowed)
        return;
    poll->answered_ns = uv_hrtime();
    if (poll->pays && connections <= CONNECTIONS_MAX)
        uv_idle_start(&poll->idle, on_busy_poll);
    else
        uv_idle_stop(&poll->idle);
}
