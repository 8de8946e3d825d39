/*
 * expr/cache.c: compiled programs by kind and text.
 *
 * The cache is SHARDS independent tables, each with a lock and chains of entries. A program is
 * compiled into a scope of its own that its entry keeps. What always holds:
 *
 *  (1) An entry, once linked, stays as it is until hf__expr_cache_free(): a reader that found one
 *      may use it without the lock. So nothing is ever evicted; a shard that is full takes no more,
 *      and what it has not is compiled into the caller's scope.
 *  (2) No lock is held while a text is compiled. Two threads may compile one text at the same
 *      time; the first to link wins and the other uses that entry and drops its own.
 *  (3) Only programs that compiled are kept, so a stream of faulty texts does not fill it.
 *
 * The place of an entry depends on a random seed, so that texts from outside cannot be chosen to
 * meet in one chain.
 */
#include "expr/cache.h"

#include <pthread.h>
#include <xxhash.h>

#include "base/assert_held.h"

enum {
    SHARDS = 16,
    SHARD_ENTRIES_MAX = 256, /* 4096 programs in all */
    SHARD_CHAINS = 256
};

struct entry {
    struct entry *next;
    struct hf_scope *scope; /* owns the program and the text */
    const struct expr *program;
    uint64_t hash;
    enum expr_kind kind;
    struct hf_str text;
};

struct shard {
    pthread_mutex_t lock; /* guards the rest */
    size_t len;
    struct entry *chains[SHARD_CHAINS];
};

struct hf__expr_cache {
    struct hf_env env;
    uint64_t seed;
    struct shard shards[SHARDS];
};

struct hf__expr_cache *hf__expr_cache_new(const struct hf_env *env)
{
    struct hf_env whole = hf__env_fill(env);
    struct hf__expr_cache *cache = hf__env_alloc(&whole, sizeof(*cache));

    if (!cache)
        return NULL;
    memset(cache, 0, sizeof(*cache));
    cache->env = whole;
    hf__env_random(&whole, &cache->seed, sizeof(cache->seed));
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&cache->shards[i].lock, NULL); /* cannot fail on the systems we know */
    return cache;
}

void hf__expr_cache_free(struct hf__expr_cache *cache)
{
    struct hf_env env;

    if (!cache)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        for (size_t k = 0; k < SHARD_CHAINS; k++) {
            struct entry *entry = cache->shards[i].chains[k];

            while (entry) {
                struct entry *next = entry->next; /* it lives in the scope */

                hf_scope_free(entry->scope);
                entry = next;
            }
        }
        pthread_mutex_destroy(&cache->shards[i].lock);
    }
    env = cache->env;
    hf__env_free(&env, cache, sizeof(*cache));
}

/* ---- finding and linking -------------------------------------------------------------------- */

static struct entry **chain_of(struct shard *shard, uint64_t hash)
{
    return &shard->chains[hash / SHARDS % SHARD_CHAINS];
}

static struct entry *entry_find(struct shard *shard, uint64_t hash, enum expr_kind kind,
                                struct hf_str text)
{
    ASSERT_HELD(&shard->lock);
    for (struct entry *entry = *chain_of(shard, hash); entry; entry = entry->next)
        if (entry->hash == hash && entry->kind == kind && hf_str_equal(entry->text, text))
            return entry;
    return NULL;
}

/* The entry of that text, or NULL; *full: the shard takes no more entries. */
static struct entry *look_up(struct shard *shard, uint64_t hash, enum expr_kind kind,
                             struct hf_str text, bool *full)
{
    struct entry *entry;

    pthread_mutex_lock(&shard->lock);
    entry = entry_find(shard, hash, kind, text);
    assert(shard->len <= SHARD_ENTRIES_MAX);
    *full = shard->len == SHARD_ENTRIES_MAX;
    pthread_mutex_unlock(&shard->lock);
    return entry;
}

/* Link `made`, unless another was faster or took the last place; returns what is linked now. */
static struct entry *link_or_find(struct shard *shard, struct entry *made)
{
    struct entry *entry;

    pthread_mutex_lock(&shard->lock);
    assert(made->program && !made->next);
    entry = entry_find(shard, made->hash, made->kind, made->text);
    if (!entry && shard->len < SHARD_ENTRIES_MAX) {
        struct entry **chain = chain_of(shard, made->hash);

        made->next = *chain;
        *chain = made;
        shard->len++;
        entry = made;
    }
    pthread_mutex_unlock(&shard->lock);
    return entry;
}

/* ---- compiling ------------------------------------------------------------------------------ */

/* NULL without memory, or when the text is invalid: the caller compiles it again for the error. */
static struct entry *entry_make(struct hf__expr_cache *cache, uint64_t hash, enum expr_kind kind,
                                struct hf_str text)
{
    struct hf_scope *scope = hf_scope_new(&cache->env);
    struct entry *entry;

    if (!scope)
        return NULL;
    entry = hf__scope_array(scope, 1, sizeof(*entry));
    if (!entry)
        goto failed;
    *entry = (struct entry){.scope = scope, .hash = hash, .kind = kind};
    entry->text = hf_scope_copy(scope, text);
    if (!entry->text.ptr || hf__expr_compile(scope, kind, entry->text, &entry->program) != HF_OK)
        goto failed;
    return entry;
failed:
    hf_scope_free(scope);
    return NULL;
}

enum hf_status hf__expr_cached(struct hf_scope *s, struct hf__expr_cache *cache,
                               enum expr_kind kind, struct hf_str text, const struct expr **expr)
{
    struct shard *shard;
    struct entry *made;
    struct entry *entry;
    uint64_t hash;
    bool full;

    if (!cache || text.len > EXPR_TEXT_MAX)
        return hf__expr_compile(s, kind, text, expr);
    hash = XXH3_64bits_withSeed(text.ptr, text.len, cache->seed + (uint64_t)kind);
    shard = &cache->shards[hash % SHARDS];
    entry = look_up(shard, hash, kind, text, &full);
    if (!entry && !full) {
        made = entry_make(cache, hash, kind, text);
        entry = made ? link_or_find(shard, made) : NULL;
        if (made && made != entry)
            hf_scope_free(made->scope);
    }
    if (!entry)
        return hf__expr_compile(s, kind, text, expr);
    assert(entry->kind == kind && entry->program);
    *expr = entry->program;
    return HF_OK;
}
