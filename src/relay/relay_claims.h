/*
 * relay/relay_claims.h: competing relays: events that are claimed one by one. relay_claim.c has the
 * essay.
 *
 * The mutex of the relay guards all of this.
 */
#ifndef HF_RELAY_RELAY_CLAIMS_H
#define HF_RELAY_RELAY_CLAIMS_H

#include "relay/relay_keys.h"

struct relay_worker;

enum { RELAY_KNOWN = 64 /* events that wait for a retry and are remembered */ };

/* What a worker has claimed; its memory is that of `io`. */
struct worker_claims {
    const struct hf_claimed_event *events;
    size_t first, len; /* events from `first` on have no outcome yet */
    int64_t renew_us;
    bool renewing; /* the heartbeat thread renews them at this moment: they have to stay */
    bool gone;     /* they were released while a call did not return: relay_stuck.c */
};

/* An event that is due and was released, or waits for a retry; for the lag. */
struct relay_known {
    char seq[RELAY_SEQ_SIZE];
    int64_t due_us;   /* wall; 0: none */
    int64_t until_us; /* elapsed: another relay has delivered it by then, if we have not */
};

struct relay_claims {
    bool woken;      /* there may be new events */
    bool empty;      /* there was nothing to claim */
    int64_t next_us; /* when to claim next */
    uint32_t failures;
    uint32_t running; /* workers that claim, or send what they have claimed */
    struct relay_known known[RELAY_KNOWN];
};

/* May a worker claim some now? Then it is counted as running. The mutex is held. */
bool hf__relay_claim_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us);
void hf__relay_claim_run(struct relay_worker *worker, bool was_probe);

/* The heartbeat thread: renew claims. Returns in how many microseconds to call it again. */
int64_t hf__relay_claim_renew(struct hf_relay *relay);

/* When the oldest known event was due, or now_us; and how many were claimed and not sent. The mutex is
 * held. */
int64_t hf__relay_claim_oldest_us(const struct hf_relay *relay, int64_t now_us, uint64_t *waiting);

/* DEV_CHECKS. The mutex is held. */
void hf__relay_claims_check(const struct hf_relay *relay);

#endif
