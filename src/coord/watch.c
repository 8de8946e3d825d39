/*
 * coord/watch.c: for how long a holder has been silent.
 *
 * Whether a holder is gone is judged by watching: the same beat for a whole lease. No clock of the
 * holder is asked for the time. lease.c has the proof that the holder stops counting on its lease
 * before a watcher's time is over.
 *
 * A watch belongs to the pattern's table and not to one who waits, so that one who only tries now
 * and then comes to the same verdict as one who waits. Ids are random: a hash of one chooses a set
 * of slots. A full set grows while all of its holders are still being looked at; otherwise the one
 * that was looked at longest ago makes room.
 *
 *  (1) Time is taken after the answer has come that shows the beat: `now_us` is never earlier than
 *      the reading.
 *  (2) A forgotten sight only delays: watching starts again. So memory is bounded, and for lack of
 *      memory nothing fails.
 */
#include "coord/watch.h"

#include <assert.h>
#include <string.h>

#include "base/assert_held.h"
#include "base/fnv.h"

_Static_assert((WATCH_SETS & (WATCH_SETS - 1)) == 0, "a power of two");
_Static_assert(WATCH_WAYS_MAX % WATCH_WAYS == 0, "sets grow by doubling");

int64_t hf__watch_see(struct watch_sight *sight, uint64_t beat, int64_t now_us)
{
    if (!sight->seen || sight->beat != beat)
        *sight = (struct watch_sight){.beat = beat, .since_us = now_us, .seen = true};
    return sight->since_us;
}

int64_t hf__watch_silent_in(int64_t since_us, uint32_t lease_ms, int64_t now_us)
{
    int64_t left_us = since_us + (int64_t)lease_ms * 1000 - now_us;

    return left_us > 0 ? left_us : 0;
}

/* No holder is in a set twice, and nothing was seen first after it was looked at last. */
static void watch_check(const struct watch_set *set)
{
    assert(set->len <= WATCH_WAYS_MAX);
    assert((set->slots != NULL) == (set->len > 0));
    if (!DEV_CHECKS)
        return;
    for (size_t i = 0; i < set->len; i++) {
        const struct watch_slot *slot = &set->slots[i];

        if (!slot->sight.seen)
            continue;
        assert(slot->sight.since_us <= slot->looked_us);
        for (size_t j = 0; j < i; j++)
            assert(!set->slots[j].sight.seen ||
                   memcmp(set->slots[j].id, slot->id, WATCH_ID_LEN) != 0);
    }
}

static struct watch_set *set_of(struct watch *watch, const char *id)
{
    uint64_t hash = fnv_add(FNV_BEGIN, id, WATCH_ID_LEN);

    return &watch->sets[fnv_fold(hash) & (WATCH_SETS - 1)];
}

/* A new slot in the set; NULL: it is as large as it gets, or there is no memory. */
static struct watch_slot *set_grow(const struct hf_env *env, struct watch_set *set)
{
    size_t len = set->len ? set->len * 2 : WATCH_WAYS, added = set->len;
    struct watch_slot *slots;

    if (len > WATCH_WAYS_MAX)
        return NULL;
    slots = env->alloc(set->slots, set->len * sizeof(*slots), len * sizeof(*slots), env->user);
    if (!slots)
        return NULL;
    for (size_t i = added; i < len; i++)
        slots[i] = (struct watch_slot){.looked_us = INT64_MIN};
    set->slots = slots;
    set->len = len;
    return &slots[added];
}

/* The one with this id, or a slot for it; NULL: there is none. */
static struct watch_slot *slot_find(const struct hf_env *env, struct watch_set *set, const char *id,
                                    int64_t now_us)
{
    struct watch_slot *oldest = NULL, *added = NULL;

    for (size_t i = 0; i < set->len; i++) {
        if (memcmp(set->slots[i].id, id, WATCH_ID_LEN) == 0)
            return &set->slots[i];
        if (!oldest || set->slots[i].looked_us < oldest->looked_us)
            oldest = &set->slots[i];
    }
    if (!oldest || oldest->looked_us > now_us - (int64_t)WATCH_FRESH_MS * 1000)
        added = set_grow(env, set);
    return added ? added : oldest; /* set_grow() moves them only when it adds one */
}

int64_t hf__watch_holder(struct watch *watch, struct hf_str id, uint64_t beat, int64_t now_us)
{
    char fitted[WATCH_ID_LEN] = {0};
    struct watch_slot *slot;
    struct watch_set *set;
    int64_t since_us;

    if (id.len)
        memcpy(fitted, id.ptr, id.len < sizeof(fitted) ? id.len : sizeof(fitted));
    set = set_of(watch, fitted);
    slot = slot_find(watch->env, set, fitted, now_us);
    if (!slot) /* (2) */
        return now_us;
    if (memcmp(slot->id, fitted, sizeof(fitted)) != 0) {
        *slot = (struct watch_slot){.looked_us = now_us};
        memcpy(slot->id, fitted, sizeof(fitted));
    }
    slot->looked_us = now_us;
    assert(!slot->sight.seen || slot->sight.since_us <= now_us);
    since_us = hf__watch_see(&slot->sight, beat, now_us);
    watch_check(set);
    return since_us;
}

void hf__watch_free(struct watch *watch)
{
    for (size_t i = 0; i < WATCH_SETS; i++)
        if (watch->sets[i].slots)
            watch->env->alloc(watch->sets[i].slots,
                              watch->sets[i].len * sizeof(*watch->sets[i].slots), 0,
                              watch->env->user);
}
