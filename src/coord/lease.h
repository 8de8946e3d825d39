/*
 * coord/lease.h: a lease, as its holder sees it. lease.c has the essay.
 */
#ifndef HF_COORD_LEASE_H
#define HF_COORD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEASE_MARGIN_PART = 100,  /* a holder counts on its lease but for a hundredth */
    LEASE_HEARTBEAT_PART = 4, /* it is renewed so often in its time, unless options say otherwise */
    LEASE_RETRY_MIN_MS = 10,
    LEASE_RETRY_MAX_MS = 1000
};

/* What was agreed on. */
struct lease_terms {
    uint32_t lease_ms;     /* silence after which others may take over */
    uint32_t heartbeat_ms; /* from one renewal to the next */
};

/* A lease that we have, or had. Its owner's mutex guards it. Both times are of the elapsed clock. */
struct lease {
    int64_t until_us; /* we count on it until then */
    int64_t due_us;   /* the next renewal */
};

/* From one renewal to the next, where nobody has said how often: a quarter of the lease, at least 1. */
uint32_t hf__lease_heartbeat_ms(uint32_t lease_ms);

/* The end of a lease that was asked for at `sent_us`: (1), (2). */
int64_t hf__lease_until(int64_t sent_us, uint32_t lease_ms);

/* A request that was sent at `sent_us` has taken the lease. */
void hf__lease_take(struct lease *lease, struct lease_terms terms, int64_t sent_us);

/* A request that was sent at `sent_us` has renewed it: it ends later, never earlier; (3). */
void hf__lease_renew(struct lease *lease, struct lease_terms terms, int64_t sent_us);

/* A renewal is being sent: the next one is a heartbeat later, whatever becomes of this one. */
void hf__lease_sent(struct lease *lease, struct lease_terms terms, int64_t sent_us);

/* A renewal has failed at `now_us`: the next one is sooner; (4). */
void hf__lease_retry(struct lease *lease, struct lease_terms terms, int64_t now_us);

/* A renewal that asked for `lease_ms` may have been done: others may go by the shorter one; (5). */
void hf__lease_doubt(struct lease *lease, uint32_t lease_ms, int64_t sent_us);

/* How long to wait after a failed renewal. */
uint32_t hf__lease_retry_ms(uint32_t heartbeat_ms);

/* Is it over, by our clock? */
static inline bool lease_is_over(const struct lease *lease, int64_t now_us)
{
    return now_us >= lease->until_us;
}

/* How long we can still count on it; 0: not any more. */
static inline int64_t lease_left_us(const struct lease *lease, int64_t now_us)
{
    return now_us < lease->until_us ? lease->until_us - now_us : 0;
}

#endif
