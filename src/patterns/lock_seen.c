/*
 * patterns/lock_seen.c: which beats of which holders were seen, and when first.
 *
 * Whether a holder is gone is judged by watching: the same beat for a whole lease. What is watched
 * is remembered by the table and not by who waits, so that one who only tries now and then comes to
 * the same verdict as one who waits.
 *
 *  (1) A forgotten observation only delays: watching starts again.
 *  (2) At most SEEN_MAX are remembered; the one that was looked at longest ago goes first.
 */
#include "patterns/lock.h"

struct seen_entry {
    struct seen_entry *chain;         /* in its bucket */
    struct seen_entry *newer, *older; /* by last look */
    char id[PATTERN_ID_LEN];
    uint64_t beat;
    int64_t since_us;
};

/* Ids are random: any of their bytes will do. FNV-1a, should one be somebody else's. */
static size_t bucket_of(const char *id)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < PATTERN_ID_LEN; i++)
        hash = (hash ^ (uint8_t)id[i]) * 16777619u;
    return hash & (SEEN_BUCKETS - 1);
}

static void unlink_age(struct lock_seen *seen, struct seen_entry *entry)
{
    *(entry->newer ? &entry->newer->older : &seen->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &seen->oldest) = entry->newer;
}

static void make_newest(struct lock_seen *seen, struct seen_entry *entry)
{
    entry->newer = NULL;
    entry->older = seen->newest;
    *(seen->newest ? &seen->newest->newer : &seen->oldest) = entry;
    seen->newest = entry;
}

static struct seen_entry *find(struct lock_seen *seen, const char *id)
{
    struct seen_entry *entry = seen->buckets[bucket_of(id)];

    while (entry && memcmp(entry->id, id, PATTERN_ID_LEN) != 0)
        entry = entry->chain;
    return entry;
}

/* (2) */
static void forget_oldest(struct lock_seen *seen)
{
    struct seen_entry *entry = seen->oldest;
    struct seen_entry **link = &seen->buckets[bucket_of(entry->id)];

    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
    unlink_age(seen, entry);
    env_free(seen->env, entry, sizeof(*entry));
    seen->len--;
}

static struct seen_entry *remember(struct lock_seen *seen, const char *id)
{
    struct seen_entry **bucket = &seen->buckets[bucket_of(id)], *entry;

    if (seen->len == SEEN_MAX)
        forget_oldest(seen);
    entry = env_alloc(seen->env, sizeof(*entry));
    if (!entry)
        return NULL;
    memcpy(entry->id, id, PATTERN_ID_LEN);
    entry->chain = *bucket;
    *bucket = entry;
    make_newest(seen, entry);
    seen->len++;
    return entry;
}

/* An id that is not one of ours, of whatever length, cut or filled up. */
static void fit(char *to, struct hf_str text)
{
    memset(to, 0, PATTERN_ID_LEN);
    if (text.len)
        memcpy(to, text.ptr, text.len < PATTERN_ID_LEN ? text.len : PATTERN_ID_LEN);
}

int64_t hf__lock_seen(struct lock_seen *seen, struct hf_str id, uint64_t beat, int64_t now_us)
{
    char fitted_id[PATTERN_ID_LEN];
    struct seen_entry *entry;

    fit(fitted_id, id);
    entry = find(seen, fitted_id);
    if (entry) {
        unlink_age(seen, entry);
        make_newest(seen, entry);
        if (entry->beat == beat)
            return entry->since_us;
    } else {
        entry = remember(seen, fitted_id);
        if (!entry)
            return now_us;
    }
    entry->beat = beat;
    entry->since_us = now_us;
    return now_us;
}

void hf__lock_seen_free(struct lock_seen *seen)
{
    while (seen->oldest)
        forget_oldest(seen);
}
