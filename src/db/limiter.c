/*
 * db/limiter.c: the client's own rate in adaptive mode, as AWS's SDKs have it: a token bucket whose
 * rate follows the curve that TCP CUBIC follows.
 *
 *     being throttled       rate_max = the rate that is measured, and not more than the bucket's
 *                           rate     = 0.7 rate_max
 *                           plateau  = cube root of (0.3 rate_max / 0.4)
 *     any other answer      rate     = 0.4 (seconds since throttled - plateau)^3 + rate_max
 *     always                rate     = at most twice what is measured, at least one in two seconds
 *
 * So the rate falls at once, comes back quickly, stays near the place where it hurt, and then tries
 * for more. What is sent is measured in half seconds; each new one weighs 0.8 against all before.
 *
 *  (1) Until the service throttles for the first time nothing is delayed.
 *  (2) Turns are handed out in the order of asking: who comes while others wait, waits longer.
 *
 * The constants are those of the SDKs' public sources: botocore retries/adaptive.py, throttling.py
 * and bucket.py, and smithy-typescript's DefaultRateLimiter, which agree.
 */
#include "db/limiter.h"

#include <assert.h>
#include <string.h>

#define DECREASE 0.7
#define SCALE 0.4
#define SMOOTHING 0.8
#define RATE_MIN 0.5
#define ROOM_MIN 1.0
#define RATE_OVER_MEASURED 2.0

enum { SECOND_US = 1000000, SLOT_US = SECOND_US / 2 };

static double us_to_seconds(int64_t us)
{
    return (double)us / SECOND_US;
}

/* Newton's way, from above, where it falls until it has arrived. */
static double cube_root(double v)
{
    double x = v > 1 ? v : 1;

    for (int i = 0; i < 200; i++) {
        double next = (2 * x + v / (x * x)) / 3;

        if (next >= x)
            break;
        x = next;
    }
    return x;
}

void hf__limiter_init(struct limiter *l, int64_t now_us)
{
    memset(l, 0, sizeof(*l));
    l->filled_us = now_us;
    l->throttled_us = now_us;
    l->slot = now_us / SLOT_US;
}

static void bucket_fill(struct limiter *l, int64_t now_us)
{
    if (now_us <= l->filled_us)
        return;
    l->room += us_to_seconds(now_us - l->filled_us) * l->rate;
    if (l->room > l->room_max)
        l->room = l->room_max;
    l->filled_us = now_us;
}

int64_t hf__limiter_take(struct limiter *l, int64_t now_us)
{
    if (!l->on) /* (1) */
        return 0;
    assert(l->rate >= RATE_MIN);
    bucket_fill(l, now_us);
    l->room -= 1;
    return l->room >= 0 ? 0 : (int64_t)(-l->room / l->rate * SECOND_US) + 1; /* (2) */
}

void hf__limiter_return(struct limiter *l)
{
    if (l->on)
        l->room += 1;
}

static void rate_measure(struct limiter *l, int64_t now_us)
{
    int64_t slot = now_us / SLOT_US;

    l->sent++;
    if (slot <= l->slot)
        return;
    l->measured = SMOOTHING * (double)l->sent / us_to_seconds((slot - l->slot) * SLOT_US) +
                  (1 - SMOOTHING) * l->measured;
    l->sent = 0;
    l->slot = slot;
}

static void set_rate(struct limiter *l, double rate)
{
    if (rate > RATE_OVER_MEASURED * l->measured)
        rate = RATE_OVER_MEASURED * l->measured;
    l->rate = rate > RATE_MIN ? rate : RATE_MIN;
    l->room_max = rate > ROOM_MIN ? rate : ROOM_MIN;
    if (l->room > l->room_max)
        l->room = l->room_max;
    assert(l->rate >= RATE_MIN && l->room_max >= ROOM_MIN);
}

void hf__limiter_note(struct limiter *l, int64_t now_us, bool throttled)
{
    double since;

    rate_measure(l, now_us);
    if (!throttled && !l->on)
        return;
    bucket_fill(l, now_us);
    if (throttled) {
        l->rate_max = l->on && l->rate < l->measured ? l->rate : l->measured;
        l->plateau = cube_root(l->rate_max * (1 - DECREASE) / SCALE);
        l->throttled_us = now_us;
        l->on = true;
        set_rate(l, l->rate_max * DECREASE);
        return;
    }
    since = us_to_seconds(now_us - l->throttled_us) - l->plateau;
    set_rate(l, SCALE * since * since * since + l->rate_max);
}
