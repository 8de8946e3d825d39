/*
 * engine/item/latch.c: short locks on partitions.
 *
 * Every partition of every table maps to one of LATCH_COUNT latches. A writer holds the latches of
 * all partitions it looks at and changes, from its first read until its batch is applied. They
 * are taken in ascending order, so writers cannot wait for each other in a circle.
 *
 * A latch remembers the ticket of the newest write under it. A consistent reader, which takes no
 * latch, waits for that ticket after it has read: so it never returns a state that a crash could
 * take back. While the latch is held the ticket is not known yet; then the reader waits for
 * everything that is written by now, which includes whatever it saw.
 */
#include "engine/item/latch.h"
#include "store/store.h"

#include <time.h>

#include "base/spin_lock.h"

_Static_assert((LATCH_COUNT & (LATCH_COUNT - 1)) == 0 && LATCH_COUNT <= UINT16_MAX + 1,
               "a number is a part of a hash, and fits a latch_set");

#define LATCH_BUSY (UINT64_C(1) << 63) /* in a ticket: the latch is held */

void hf__latch(struct engine *e, size_t number)
{
    struct latch *latch = &e->latches[number];

    assert(number < LATCH_COUNT);
    spin_lock(&latch->lock);
    assert(!(atomic_load(&latch->ticket) & LATCH_BUSY));
    atomic_fetch_or(&latch->ticket, LATCH_BUSY);
}

enum { LATCH_NAPS = 40, LATCH_NAP_NS = 100000 }; /* some milliseconds */

/* A worker may evaluate a long condition or update under the latch. A caller without the patience
 * for that, such as an event loop, gives up instead of waiting. */
enum hf_status hf__latch_patient(struct hf_scope *s, struct engine *e, size_t number)
{
    struct latch *latch = &e->latches[number];

    assert(number < LATCH_COUNT);
    for (int nap = 0; !spin_trylock(&latch->lock); nap++) {
        if (!hf__scope_has_patience(s)) {
            pthread_mutex_lock(&latch->lock);
            break;
        }
        if (nap == LATCH_NAPS || !hf__scope_may_wait(s))
            return hf__scope_lose_patience(s);
        nanosleep(&(struct timespec){.tv_nsec = LATCH_NAP_NS}, NULL);
    }
    atomic_fetch_or(&latch->ticket, LATCH_BUSY);
    return HF_OK;
}

void hf__unlatch(struct engine *e, size_t number, uint64_t ticket)
{
    struct latch *latch = &e->latches[number];

    assert(number < LATCH_COUNT && !(ticket & LATCH_BUSY));
    assert(atomic_load(&latch->ticket) & LATCH_BUSY);
    assert(ticket == 0 || ticket >= hf__latch_own_ticket(e, number)); /* tickets grow */
    ASSERT_HELD(&latch->lock);
    if (ticket)
        atomic_store(&latch->ticket, ticket);
    else
        atomic_fetch_and(&latch->ticket, ~LATCH_BUSY);
    pthread_mutex_unlock(&latch->lock);
}

uint64_t hf__latch_ticket(struct engine *e, size_t number)
{
    uint64_t ticket;

    assert(number < LATCH_COUNT);
    ticket = atomic_load(&e->latches[number].ticket);

    return ticket & LATCH_BUSY ? hf__store_written(e->store) : ticket;
}

uint64_t hf__latch_own_ticket(struct engine *e, size_t number)
{
    ASSERT_HELD(&e->latches[number].lock);
    return atomic_load(&e->latches[number].ticket) & ~LATCH_BUSY;
}

enum hf_status hf__latch_set(struct hf_scope *s, size_t cap, struct latch_set *set)
{
    assert(cap > 0);
    set->len = 0;
    set->cap = cap;
    set->numbers = hf__scope_array(s, cap, sizeof(*set->numbers));
    return set->numbers ? HF_OK : hf__fail_nomem(s);
}

/* Insertion into a short sorted list; a number that is there already is not added again. */
void hf__latch_want(struct latch_set *set, size_t number)
{
    size_t at = set->len;

    assert(number < LATCH_COUNT);
    while (at > 0 && set->numbers[at - 1] > number)
        at--;
    if (at > 0 && set->numbers[at - 1] == number)
        return;
    assert(set->len < set->cap);
    memmove(set->numbers + at + 1, set->numbers + at, (set->len - at) * sizeof(*set->numbers));
    set->numbers[at] = (uint16_t)number;
    set->len++;
}

/* In ascending order, each once: so two writers never wait for each other in a circle. */
static void latch_set_check(const struct latch_set *set)
{
    assert(set->len <= set->cap);
    for (size_t i = 1; i < set->len; i++)
        assert(set->numbers[i - 1] < set->numbers[i]);
}

void hf__latch_all(struct engine *e, struct latch_set *set)
{
    if (DEV_CHECKS)
        latch_set_check(set);
    for (size_t i = 0; i < set->len; i++)
        hf__latch(e, set->numbers[i]);
}

enum hf_status hf__latch_all_patient(struct hf_scope *s, struct engine *e, struct latch_set *set)
{
    if (DEV_CHECKS)
        latch_set_check(set);
    for (size_t i = 0; i < set->len; i++) {
        enum hf_status status = hf__latch_patient(s, e, set->numbers[i]);

        if (status == HF_OK)
            continue;
        set->len = i;
        hf__unlatch_all(e, set, 0);
        return status;
    }
    return HF_OK;
}

void hf__unlatch_all(struct engine *e, struct latch_set *set, uint64_t ticket)
{
    for (size_t i = set->len; i > 0; i--)
        hf__unlatch(e, set->numbers[i - 1], ticket);
}
