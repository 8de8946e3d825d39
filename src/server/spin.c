/*
 * server/spin.c: staying awake for the next request; spin.h says when.
 */
#include "server/spin.h"

enum {
    SPIN_NS = 50000,  /* about what it takes to be woken */
    SOON_NS = 150000, /* a client that had to be woken, too, and then asked at once */
    CONNECTIONS_MAX = 2
};

static void on_idle(uv_idle_t *idle)
{
    struct spin *spin = idle->data;

    if (uv_hrtime() - spin->answered_ns > SPIN_NS)
        uv_idle_stop(idle);
}

void hf__spin_init(struct spin *spin, uv_loop_t *uv, bool allowed)
{
    *spin = (struct spin){.allowed = allowed};
    uv_idle_init(uv, &spin->idle);
    spin->idle.data = spin;
}

void hf__spin_asked(struct spin *spin)
{
    if (spin->allowed)
        spin->pays = spin->answered_ns && uv_hrtime() - spin->answered_ns < SOON_NS;
}

void hf__spin_answered(struct spin *spin, unsigned connections)
{
    if (!spin->allowed)
        return;
    spin->answered_ns = uv_hrtime();
    if (spin->pays && connections <= CONNECTIONS_MAX)
        uv_idle_start(&spin->idle, on_idle);
    else
        uv_idle_stop(&spin->idle);
}
