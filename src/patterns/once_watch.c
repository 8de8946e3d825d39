/*
 * patterns/once_watch.c: since when an attempt of somebody else is silent.
 *
 * The table remembers, and not who waits, so that one who only tries now and then comes to the same
 * verdict as one who waits. Ids are random, so a few bits of one choose a set; in a full set the
 * one that was looked at longest ago goes.
 *
 *  (1) A forgotten observation only delays: watching starts again.
 *  (2) Memory is fixed, and nothing can fail.
 */
#include "patterns/once.h"

static size_t set_of(const char *id)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < PATTERN_ID_LEN; i++)
        hash = (hash ^ (uint8_t)id[i]) * 16777619u;
    return (hash ^ hash >> 16) & (ONCE_WATCH_SETS - 1);
}

int64_t hf__once_watch(struct once_watch *watch, struct hf_str id, uint64_t beat, int64_t now_us)
{
    char fitted[PATTERN_ID_LEN] = {0};
    struct once_watched *slots, *slot;

    if (id.len) /* an id that is not one of ours is cut or filled up */
        memcpy(fitted, id.ptr, id.len < sizeof(fitted) ? id.len : sizeof(fitted));
    slots = watch->slots[set_of(fitted)];
    slot = &slots[0];
    for (size_t i = 0; i < ONCE_WATCH_WAYS; i++) {
        if (memcmp(slots[i].id, fitted, sizeof(fitted)) == 0) {
            slot = &slots[i];
            break;
        }
        if (slots[i].looked_us < slot->looked_us)
            slot = &slots[i];
    }
    slot->looked_us = now_us;
    if (memcmp(slot->id, fitted, sizeof(fitted)) == 0 && slot->beat == beat)
        return slot->since_us;
    memcpy(slot->id, fitted, sizeof(fitted));
    slot->beat = beat;
    slot->since_us = now_us;
    return now_us;
}
