/*
 * engine/item/key_filter.c: which keys a table may have; see key_filter.h.
 *
 * A Bloom filter in which a key has its four bits in one word, so that a question is one access to memory. It
 * grows by segments, each four times as large as the one before: a key is added to the newest, and looked for in all.
 *
 * What always holds:
 *
 *  (1) A key that was added is found, by whoever holds the latch of its partition. So that is all the order which the
 *      words need; threads with other latches set bits of the same word, which is why they are atomic.
 *  (2) A filter that could not grow, or would be larger than its limit allows, is full: it finds every key.
 */
#include "engine/item/key_filter.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SEGMENTS_MAX = 12,
    SEGMENT_FIRST = 512, /* words: 4 KiB */
    SEGMENT_GROWTH = 4,
    WORD_KEYS = 3 /* keys for each word: one in 400 others is then found as well */
};

struct segment {
    void *memory;
    _Atomic(uint64_t) *words; /* the same */
    size_t len;               /* of them, a power of two */
};

struct key_filter {
    pthread_mutex_t growing;
    size_t words_max;
    struct segment segments[SEGMENTS_MAX];
    atomic_size_t len;
    atomic_size_t room; /* keys that the newest segment still takes */
    atomic_bool full;
};

struct key_filter *hf__row_filter_new(const struct hf_env *env, size_t bytes_max)
{
    struct key_filter *filter = hf__env_alloc(env, sizeof(*filter));

    if (!filter)
        return NULL;
    memset(filter, 0, sizeof(*filter));
    filter->words_max = bytes_max / sizeof(uint64_t);
    pthread_mutex_init(&filter->growing, NULL);
    return filter;
}

void hf__row_filter_free(const struct hf_env *env, struct key_filter *filter)
{
    if (!filter)
        return;
    for (size_t i = 0; i < atomic_load(&filter->len); i++)
        hf__env_free(env, filter->segments[i].memory, filter->segments[i].len * sizeof(uint64_t));
    pthread_mutex_destroy(&filter->growing);
    hf__env_free(env, filter, sizeof(*filter));
}

static uint64_t key_hash(struct hf_bytes key)
{
    static const uint64_t mix = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = key.len * mix, tail = 0;
    size_t at = 0;

    for (; at + 8 <= key.len; at += 8) {
        hash = (hash ^ load_u64be(key.ptr + at)) * mix;
        hash ^= hash >> 29;
    }
    for (; at < key.len; at++)
        tail = tail << 8 | key.ptr[at];
    hash = (hash ^ tail) * mix;
    return hash ^ hash >> 32;
}

/* Four bits by the low half of the hash; the word is by the high one. */
static uint64_t key_bits(uint64_t hash)
{
    return UINT64_C(1) << (hash & 63) | UINT64_C(1) << (hash >> 6 & 63) |
           UINT64_C(1) << (hash >> 12 & 63) | UINT64_C(1) << (hash >> 18 & 63);
}

static _Atomic(uint64_t) *key_word(const struct segment *segment, uint64_t hash)
{
    assert(segment->words && (segment->len & (segment->len - 1)) == 0);
    return &segment->words[(hash >> 24) & (segment->len - 1)];
}

/* With the lock held: a further segment, unless another thread has made one meanwhile. */
static void segment_add(const struct hf_env *env, struct key_filter *filter)
{
    size_t at = atomic_load(&filter->len), words = SEGMENT_FIRST, all = 0;
    void *memory = NULL;

    if (atomic_load(&filter->room) || atomic_load(&filter->full))
        return;
    for (size_t i = 0; i < at; i++) {
        all += words;
        words *= SEGMENT_GROWTH;
    }
    if (at < SEGMENTS_MAX && all + words <= filter->words_max)
        memory = hf__env_alloc(env, words * sizeof(uint64_t));
    if (!memory) { /* (2) */
        atomic_store(&filter->full, true);
        return;
    }
    memset(memory, 0, words * sizeof(uint64_t));
    filter->segments[at] = (struct segment){memory, memory, words};
    atomic_store(&filter->room, words * WORD_KEYS);
    atomic_store(&filter->len, at + 1);
}

/* Take the place of one key in the newest segment. False: the filter is full. */
static bool room_take(const struct hf_env *env, struct key_filter *filter)
{
    size_t room = atomic_load_explicit(&filter->room, memory_order_relaxed);

    for (;;) {
        while (room)
            if (atomic_compare_exchange_weak(&filter->room, &room, room - 1))
                return true;
        pthread_mutex_lock(&filter->growing);
        segment_add(env, filter);
        pthread_mutex_unlock(&filter->growing);
        if (atomic_load(&filter->full))
            return false;
        room = atomic_load(&filter->room);
    }
}

void hf__row_filter_add(const struct hf_env *env, struct key_filter *filter, struct hf_bytes key)
{
    uint64_t hash = key_hash(key);
    size_t len;

    if (atomic_load_explicit(&filter->full, memory_order_relaxed) || !room_take(env, filter))
        return;
    len = atomic_load(&filter->len);
    assert(len > 0);
    atomic_fetch_or_explicit(key_word(&filter->segments[len - 1], hash), key_bits(hash),
                             memory_order_relaxed);
}

bool hf__row_filter_has(const struct key_filter *filter, struct hf_bytes key)
{
    uint64_t hash = key_hash(key), bits = key_bits(hash);

    if (atomic_load_explicit(&filter->full, memory_order_relaxed))
        return true;
    for (size_t i = atomic_load(&filter->len); i-- > 0;)
        if ((atomic_load_explicit(key_word(&filter->segments[i], hash), memory_order_relaxed) &
             bits) == bits)
            return true;
    return false;
}
