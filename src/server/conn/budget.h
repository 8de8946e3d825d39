/*
 * server/conn/budget.h: the memory that all connections together may have.
 *
 * There is one budget, --memory, in two shares, so that neither side can starve the other:
 *
 *     input     requests that are not complete, or wait for a worker
 *     output    results and answers that are not sent, and what workers may come to hold
 *
 *  (1) A request that would take `input` beyond its share is refused with 503, unless it is small
 *      (INPUT_LEAST): the budget is exceeded by that much per connection at most.
 *  (2) `output` never stays beyond its share. A connection whose answer would take it there, while
 *      its reader is slow, closes the connection of its loop that has waited longest for its
 *      reader, or else itself.
 *  (3) What a worker may come to hold is taken out of the share before it begins, and no more than
 *      three quarters are for that: one quarter is always there for the answers of loops.
 *  (4) Beside the budget there are, for each loop, the answers of one iteration (LOOP_PAUSE and one
 *      answer more), and for each connection its own struct.
 */
#ifndef HF_SERVER_BUDGET_H
#define HF_SERVER_BUDGET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget {
    uint64_t input_max;
    uint64_t output_max;
    _Atomic uint64_t input;
    _Atomic uint64_t output;
    atomic_bool pressed; /* a request waits for memory: slow readers get less time */
};

/* Bytes that this process may have: of the machine, of its control groups, of its limits. */
uint64_t hf__memory_limit(void);

/* Zeros stand for defaults: a quarter of hf__memory_limit(), at most 256 MiB; and half of it for
 * input. An input share of more than half of what is given, or of the default, raises the whole. */
void hf__budget_init(struct budget *budget, uint64_t memory_max, uint64_t input_max);

/* Is memory short, or will it be soon? */
static inline bool hf__budget_pressed(struct budget *budget)
{
    return atomic_load(&budget->pressed) ||
           atomic_load(&budget->output) > budget->output_max - budget->output_max / 8;
}

/* From `*counted` to `now`; returns what all have then. */
static inline uint64_t hf__budget_count(_Atomic uint64_t *all, uint64_t *counted, uint64_t now)
{
    uint64_t change = now - *counted; /* below zero wraps, as it should */
    uint64_t before;

    *counted = now;
    if (change == 0)
        return atomic_load_explicit(all, memory_order_relaxed);
    before = atomic_fetch_add(all, change);
    assert(before + change <= INT64_MAX); /* all never have less than nothing */
    return before + change;
}

#endif
