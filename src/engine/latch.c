/*
 * engine/latch.c: short locks on partitions.
 *
 * Every partition of every table maps to one of LATCH_COUNT latches. A writer holds the latches of
 * all partitions it looks at and changes, from its first read until its batch is applied. They
 * are taken in ascending order, so writers cannot wait for each other in a circle.
 *
 * A latch remembers the ticket of the newest write under it. A consistent reader, which takes no
 * latch, waits for that ticket: so nobody is shown a state that a crash could take back.
 */
#include "engine/private.h"

void hf__latch(struct engine *e, size_t number)
{
    pthread_mutex_lock(&e->latches[number].lock);
}

void hf__unlatch(struct engine *e, size_t number, uint64_t ticket)
{
    struct latch *latch = &e->latches[number];

    if (ticket)
        atomic_store_explicit(&latch->ticket, ticket, memory_order_release);
    pthread_mutex_unlock(&latch->lock);
}

enum hf_status hf__latch_set(struct hf_scope *s, size_t cap, struct latch_set *set)
{
    set->len = 0;
    set->numbers = hf__scope_array(s, cap, sizeof(*set->numbers));
    return set->numbers ? HF_OK : hf__fail_nomem(s);
}

/* Insertion into a short sorted list; a number that is there already is not added again. */
void hf__latch_want(struct latch_set *set, size_t number)
{
    size_t at = set->len;

    while (at > 0 && set->numbers[at - 1] > number)
        at--;
    if (at > 0 && set->numbers[at - 1] == number)
        return;
    memmove(set->numbers + at + 1, set->numbers + at, (set->len - at) * sizeof(*set->numbers));
    set->numbers[at] = (uint16_t)number;
    set->len++;
}

void hf__latch_all(struct engine *e, struct latch_set *set)
{
    for (size_t i = 0; i < set->len; i++)
        hf__latch(e, set->numbers[i]);
}

void hf__unlatch_all(struct engine *e, struct latch_set *set, uint64_t ticket)
{
    for (size_t i = set->len; i > 0; i--)
        hf__unlatch(e, set->numbers[i - 1], ticket);
}
