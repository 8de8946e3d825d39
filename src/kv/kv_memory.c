/*
 * kv/kv_memory.c: which version this process saw last of a key, so that to set it again takes
 * one write and no look.
 *
 * A slot has room for one key, which is known by a hash alone, and whoever comes later takes it. So
 * what is remembered may be old, or another key's: it is only ever the condition of a write, and a
 * write with the wrong one is refused.
 *
 *  (1) A version in here was stored, by some write, at some time. Nothing else is concluded from
 *      it.
 */
#include <pthread.h>

#include "kv/kv.h"

enum { TEXT_MAX = 111 };
_Static_assert(TEXT_MAX >= PATTERN_ID_LEN + 1 + KV_PAST_MAX * (KV_PAST_ID_LEN + 1),
               "there is room for every version that we make");

struct slot {
    uint64_t hash;
    uint8_t len; /* 0: nothing is remembered */
    char text[TEXT_MAX];
};

struct kv_memory {
    pthread_mutex_t mutex; /* guards the slots */
    size_t len;
    uint64_t seed;
    struct slot slots[];
};

static size_t size_of(size_t len)
{
    return sizeof(struct kv_memory) + len * sizeof(struct slot);
}

struct kv_memory *hf__kv_memory_new(const struct hf_env *env, size_t len)
{
    struct kv_memory *memory = hf__env_zalloc(env, size_of(len));

    assert(len > 0);
    if (!memory)
        return NULL;
    memory->len = len;
    env->random(&memory->seed, sizeof(memory->seed), env->user);
    pthread_mutex_init(&memory->mutex, NULL);
    return memory;
}

void hf__kv_memory_free(const struct hf_env *env, struct kv_memory *memory)
{
    if (!memory)
        return;
    pthread_mutex_destroy(&memory->mutex);
    hf__env_free(env, memory, size_of(memory->len));
}

static uint64_t hash_mix(uint64_t hash, struct hf_str text)
{
    return (fnv_add(hash, text.ptr, text.len) ^ text.len) * FNV_PRIME;
}

static uint64_t hash_of(const struct kv_memory *memory, const struct kv_place *place)
{
    uint64_t hash = hash_mix(hash_mix(memory->seed ^ FNV_BEGIN, place->hash), place->sort);

    return hash ^ hash >> 32;
}

void hf__kv_remember(struct kv_memory *memory, const struct kv_place *place, struct hf_str version)
{
    uint64_t hash = hash_of(memory, place);
    struct slot *slot = &memory->slots[hash % memory->len];

    if (version.len > TEXT_MAX) /* another program's */
        version.len = 0;
    pthread_mutex_lock(&memory->mutex);
    assert(version.len <= TEXT_MAX);
    slot->hash = hash;
    slot->len = (uint8_t)version.len;
    if (version.len)
        memcpy(slot->text, version.ptr, version.len);
    pthread_mutex_unlock(&memory->mutex);
}

bool hf__kv_recall(struct hf_scope *s, struct kv_memory *memory, const struct kv_place *place,
                   struct hf_str *version)
{
    uint64_t hash = hash_of(memory, place);
    struct slot *slot = &memory->slots[hash % memory->len];
    char text[TEXT_MAX];
    size_t len;

    pthread_mutex_lock(&memory->mutex);
    len = slot->hash == hash ? slot->len : 0;
    assert(len <= TEXT_MAX);
    memcpy(text, slot->text, len);
    pthread_mutex_unlock(&memory->mutex);
    *version = len ? hf_scope_copy(s, hf_str_of(text, len)) : hf_str_of(NULL, 0);
    return version->ptr != NULL;
}
