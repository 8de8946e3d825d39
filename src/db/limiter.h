/*
 * db/limiter.h: how fast a client sends, learned from being throttled. See limiter.c.
 */
#ifndef HF_DB_LIMITER_H
#define HF_DB_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

/* Times are microseconds of the elapsed clock, rates are calls a second. Not locked: its owner is.
 */
struct limiter {
    bool on; /* from the first throttling on */
    double rate;
    double room;     /* calls that may go at once; below 0: so many are waiting for their turn */
    double room_max; /* as much as collects while nothing is sent */
    int64_t filled_us;
    double measured; /* what is really sent, smoothed */
    int64_t slot;    /* the half second that is being counted */
    uint64_t sent;   /* in it */
    double rate_max; /* the rate at which we were throttled last */
    double plateau;  /* seconds after which the rate is back at rate_max */
    int64_t throttled_us;
};

void hf__limiter_init(struct limiter *l, int64_t now_us);

/* Take a turn: how many microseconds to wait before using it. */
int64_t hf__limiter_take(struct limiter *l, int64_t now_us);

/* The turn will not be used. */
void hf__limiter_return(struct limiter *l);

/* An attempt was answered. */
void hf__limiter_note(struct limiter *l, int64_t now_us, bool throttled);

#endif
