/*
 * coord/lease.c: when a lease ends for its holder, and when it is renewed.
 *
 * A lease has two sides that never compare clocks. The holder renews a beat in the database. The
 * others watch that beat (watch.c): when it has not changed for the whole lease, they may take over.
 * Nobody stops the holder; it stops itself. So the one thing to prove is that the holder stops
 * first. Let the holder send a renewal at h0 and a watcher read its beat at w0, both in true time:
 *
 *     holder    h0 ---- sent ---- stored -------------------- stops at  h0 + lease - margin
 *     watcher                       w0 -- read -------------------- takes over at  w0 + lease
 *
 * The beat is stored after h0 and read after that, so w0 > h0. Both measure `lease` by their own
 * elapsed clock. The holder's may be slow by up to a hundredth of the watcher's: crystals differ by
 * less than a thousandth, clocks that are being slewed by less than a two-hundredth. Then
 * h0 + (lease - lease/100) by the slow clock comes no later than h0 + lease by the other, which is
 * before w0 + lease. The holder stops first.
 *
 *  (1) A lease counts from before the request that asked for it was sent. What was lost, delayed or
 *      repeated on the way only makes it shorter than it is for others.
 *  (2) It ends early by the margin, a hundredth, for clocks that run at different speeds. This is
 *      the only place that knows the margin.
 *  (3) Of two renewals under way, the one that was sent later counts, whichever is answered last.
 *  (4) A failed renewal is tried again after a quarter of a heartbeat, within bounds, so that there
 *      is time for several before the lease ends.
 *  (5) A renewal without an answer changes nothing, unless it asked for a shorter lease: others may
 *      go by that one.
 *
 * The other side of (1), that of the watchers, is in watch.h. Fences protect against a holder that
 * stops too late all the same; they belong to the patterns and are in their items.
 */
#include "coord/lease.h"

#include <assert.h>

_Static_assert(LEASE_MARGIN_PART > 1, "a lease is longer than its margin");
_Static_assert(LEASE_RETRY_MIN_MS <= LEASE_RETRY_MAX_MS, "bounds of the time between two tries");

uint32_t hf__lease_heartbeat_ms(uint32_t lease_ms)
{
    uint32_t rest = lease_ms % LEASE_HEARTBEAT_PART != 0;

    return lease_ms ? lease_ms / LEASE_HEARTBEAT_PART + rest : 1;
}

int64_t hf__lease_until(int64_t sent_us, uint32_t lease_ms)
{
    int64_t lease_us = (int64_t)lease_ms * 1000;
    int64_t until_us = sent_us + lease_us - lease_us / LEASE_MARGIN_PART;

    assert(until_us >= sent_us && until_us <= sent_us + lease_us);
    return until_us;
}

/* After a request that was sent at `sent_us` and has succeeded. */
static void lease_check(const struct lease *lease, struct lease_terms terms, int64_t sent_us)
{
    assert(lease->until_us >= hf__lease_until(sent_us, terms.lease_ms) && "(3) a shorter lease");
    assert(lease->due_us >= sent_us && "a renewal is due before the last one was sent");
}

void hf__lease_sent(struct lease *lease, struct lease_terms terms, int64_t sent_us)
{
    lease->due_us = sent_us + (int64_t)terms.heartbeat_ms * 1000;
}

void hf__lease_take(struct lease *lease, struct lease_terms terms, int64_t sent_us)
{
    lease->until_us = hf__lease_until(sent_us, terms.lease_ms);
    hf__lease_sent(lease, terms, sent_us);
    lease_check(lease, terms, sent_us);
}

void hf__lease_renew(struct lease *lease, struct lease_terms terms, int64_t sent_us)
{
    int64_t until_us = hf__lease_until(sent_us, terms.lease_ms);

    if (until_us > lease->until_us) /* (3) */
        lease->until_us = until_us;
    hf__lease_sent(lease, terms, sent_us);
    lease_check(lease, terms, sent_us);
}

uint32_t hf__lease_retry_ms(uint32_t heartbeat_ms)
{
    uint32_t ms = heartbeat_ms / 4;

    return ms < LEASE_RETRY_MIN_MS   ? LEASE_RETRY_MIN_MS
           : ms > LEASE_RETRY_MAX_MS ? LEASE_RETRY_MAX_MS
                                     : ms;
}

void hf__lease_retry(struct lease *lease, struct lease_terms terms, int64_t now_us)
{
    lease->due_us = now_us + (int64_t)hf__lease_retry_ms(terms.heartbeat_ms) * 1000;
}

void hf__lease_doubt(struct lease *lease, uint32_t lease_ms, int64_t sent_us)
{
    int64_t until_us = hf__lease_until(sent_us, lease_ms);

    if (until_us < lease->until_us)
        lease->until_us = until_us;
    assert(lease->until_us <= until_us && "(5) others may take over before we stop");
}
