/*
 * db/limiter.h: how fast a client sends, learned from being throttled. See limiter.c.
 */
#ifndef HF_DB_LIMITER_H
#define HF_DB_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

/* Times are microseconds of the elapsed clock, rates are calls a second. The owner's mutex guards it.
 */
struct limiter {
    bool on; /* from the first throttling on */
    double rate;
    double room;     /* calls that may be sent at once; below 0: as many are waiting */
    double room_max; /* what `room` grows to while nothing is sent */
    int64_t filled_us;
    double measured; /* the rate that is really sent, smoothed */
    int64_t slot;    /* the half second that is being counted */
    uint64_t sent;   /* calls in that half second */
    double rate_max; /* the rate at which we were throttled last */
    double plateau;  /* seconds after which the rate is back at rate_max */
    int64_t throttled_us;
};

void hf__limiter_init(struct limiter *l, int64_t now_us);

/* Reserve one call; returns how many microseconds to wait before sending it. */
int64_t hf__limiter_take(struct limiter *l, int64_t now_us);

/* The reserved call will not be sent. */
void hf__limiter_return(struct limiter *l);

/* An attempt was answered. */
void hf__limiter_note(struct limiter *l, int64_t now_us, bool throttled);

#endif
