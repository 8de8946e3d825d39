/*
 * blob/blob_memory.c: blobs in memory: a hash table of them under one lock.
 *
 * A store has any number of handles (hf__blobs_share()), such as those that a database gives out,
 * and is freed with the last of them. Digests are random bits already, so a place in the table is
 * the first of them. A blob is one allocation and is never changed, only replaced as a whole.
 */
#include "blob/private.h"

#include <pthread.h>

#include "base/assert_held.h"

enum {
    FIRST_PLACES = 64, /* a power of two */
    PART_NAME_MAX = 64
};

struct blob {
    struct blob *next; /* in the list of the same place */
    int64_t put_us;
    size_t len;
    char digest[HF_BLOB_DIGEST_LEN];
    uint8_t bytes[];
};

struct pool {
    struct hf_env env;
    pthread_mutex_t lock; /* guards all below */
    unsigned handles;
    struct blob **places;
    size_t places_len;
    size_t blobs_len;
    struct part *parts;
};

/* A part: a pool that lives as long as the pool it is in, or as one of its own handles. */
struct part {
    struct part *next;
    struct hf_blobs *blobs;
    char name[PART_NAME_MAX];
};

struct memory {
    struct hf_blobs blobs;
    struct pool *pool;
};

static const struct blob_kind memory_kind;

_Static_assert((FIRST_PLACES & (FIRST_PLACES - 1)) == 0, "a place is some bits of the digest");
_Static_assert(offsetof(struct memory, blobs) == 0, "a handle begins with what all stores have");

static struct pool *pool_of(struct hf_blobs *blobs)
{
    assert(blobs->kind == &memory_kind);
    return ((struct memory *)(void *)blobs)->pool;
}

static size_t place_of(const struct pool *pool, const char *digest)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < 16; i++)
        bits = bits << 4 | (uint64_t)hex_digit(digest[i]);
    return (size_t)(bits & (pool->places_len - 1));
}

/* The size of the table, and that the pool is in use. The lock is held. */
static void pool_check(struct pool *pool)
{
    ASSERT_HELD(&pool->lock);
    assert(pool->places_len >= FIRST_PLACES && (pool->places_len & (pool->places_len - 1)) == 0);
    assert(pool->handles > 0);
}

/* The pointer to the blob, or the NULL at the end of its list. The lock is held. */
static struct blob **blob_find(struct pool *pool, struct hf_str digest)
{
    struct blob **at;

    assert(digest.len == HF_BLOB_DIGEST_LEN);
    pool_check(pool);
    at = &pool->places[place_of(pool, digest.ptr)];
    while (*at && memcmp((*at)->digest, digest.ptr, HF_BLOB_DIGEST_LEN) != 0)
        at = &(*at)->next;
    return at;
}

static void free_blob(struct pool *pool, struct blob *blob)
{
    hf__env_free(&pool->env, blob, sizeof(*blob) + blob->len);
}

/* Double the table when it is full. Out of memory, lists just get longer. The lock is held. */
static void pool_grow(struct pool *pool)
{
    size_t len = pool->places_len * 2;
    struct blob **old = pool->places;
    size_t old_len = pool->places_len;
    struct blob **places;

    pool_check(pool);
    if (pool->blobs_len < pool->places_len)
        return;
    places = hf__env_alloc(&pool->env, len * sizeof(struct blob *));
    if (!places)
        return;
    memset(places, 0, len * sizeof(struct blob *));
    pool->places = places;
    pool->places_len = len;
    for (size_t i = 0; i < old_len; i++) {
        for (struct blob *blob = old[i], *next; blob; blob = next) {
            size_t place = place_of(pool, blob->digest);

            next = blob->next;
            blob->next = places[place];
            places[place] = blob;
        }
    }
    hf__env_free(&pool->env, old, old_len * sizeof(struct blob *));
}

static enum hf_status memory_put(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                 struct hf_bytes bytes)
{
    struct pool *pool = pool_of(blobs);
    int64_t now_us = hf__env_wall_us(&pool->env);
    struct blob *made;
    struct blob **at;
    bool there;

    pthread_mutex_lock(&pool->lock);
    at = blob_find(pool, digest);
    there = *at != NULL;
    if (there)
        (*at)->put_us = now_us;
    pthread_mutex_unlock(&pool->lock);
    if (there)
        return HF_OK;
    made = hf__env_alloc(&pool->env, sizeof(*made) + bytes.len);
    if (!made)
        return hf__fail_nomem(s);
    made->next = NULL;
    made->put_us = now_us;
    made->len = bytes.len;
    memcpy(made->digest, digest.ptr, HF_BLOB_DIGEST_LEN);
    if (bytes.len)
        memcpy(made->bytes, bytes.ptr, bytes.len);
    pthread_mutex_lock(&pool->lock);
    at = blob_find(pool, digest);
    there = *at != NULL; /* another thread was faster */
    if (there) {
        (*at)->put_us = now_us;
    } else {
        *at = made;
        pool->blobs_len++;
        pool_grow(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    if (there)
        free_blob(pool, made);
    return HF_OK;
}

static enum hf_status memory_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                 struct hf_bytes *bytes)
{
    struct pool *pool = pool_of(blobs);
    uint8_t *copy = NULL;
    struct blob *blob;
    bool there;
    size_t len = 0;

    pthread_mutex_lock(&pool->lock);
    blob = *blob_find(pool, digest);
    there = blob != NULL;
    if (there) {
        len = blob->len;
        copy = hf_scope_alloc(s, len ? len : 1);
        if (copy)
            memcpy(copy, blob->bytes, len);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!there)
        return hf__blob_missing(s, digest);
    if (!copy)
        return hf__fail_nomem(s);
    *bytes = hf_bytes_of(copy, len);
    return HF_OK;
}

static enum hf_status memory_has(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                 uint64_t *size)
{
    struct pool *pool = pool_of(blobs);
    struct blob *blob;

    pthread_mutex_lock(&pool->lock);
    blob = *blob_find(pool, digest);
    if (blob)
        *size = blob->len;
    pthread_mutex_unlock(&pool->lock);
    return blob ? HF_OK : hf__blob_missing(s, digest);
}

static bool take_out(struct pool *pool, struct hf_str digest, int64_t before_us)
{
    struct blob *gone = NULL;
    struct blob **at;

    pthread_mutex_lock(&pool->lock);
    at = blob_find(pool, digest);
    if (*at && (*at)->put_us < before_us) {
        gone = *at;
        *at = gone->next;
        assert(pool->blobs_len > 0);
        pool->blobs_len--;
    }
    pthread_mutex_unlock(&pool->lock);
    if (gone)
        free_blob(pool, gone);
    return gone != NULL;
}

static enum hf_status memory_remove(struct hf_scope *s, struct hf_blobs *blobs,
                                    struct hf_str digest)
{
    (void)s;
    take_out(pool_of(blobs), digest, INT64_MAX);
    return HF_OK;
}

static enum hf_status memory_remove_old(struct hf_scope *s, struct hf_blobs *blobs,
                                        struct hf_str digest, int64_t before_us, bool *removed)
{
    (void)s;
    *removed = take_out(pool_of(blobs), digest, before_us);
    return HF_OK;
}

/* A copy of what is listed of a blob, so that the callback runs without the lock. */
struct listed {
    int64_t put_us;
    uint64_t size;
    char digest[HF_BLOB_DIGEST_LEN];
};

static enum hf_status memory_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                                  void *user)
{
    struct pool *pool = pool_of(blobs);
    enum hf_status status = HF_OK;
    struct listed *list = NULL;
    size_t len = 0;
    size_t size;

    pthread_mutex_lock(&pool->lock);
    size = pool->blobs_len * sizeof(*list);
    if (size)
        list = hf__env_alloc(&pool->env, size);
    for (size_t i = 0; i < pool->places_len && list; i++)
        for (struct blob *blob = pool->places[i]; blob; blob = blob->next, len++) {
            list[len].put_us = blob->put_us;
            list[len].size = blob->len;
            memcpy(list[len].digest, blob->digest, HF_BLOB_DIGEST_LEN);
        }
    assert(!list || len == pool->blobs_len);
    pthread_mutex_unlock(&pool->lock);
    if (size && !list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len && status == HF_OK; i++)
        status = fn(s,
                    &(struct hf_blob_info){.digest = hf_str_of(list[i].digest, HF_BLOB_DIGEST_LEN),
                                           .size = list[i].size,
                                           .put_us = list[i].put_us},
                    user);
    hf__env_free(&pool->env, list, size);
    return status;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void pool_free(struct pool *pool)
{
    struct hf_env env = pool->env;

    assert(pool->handles == 0);
    for (size_t i = 0; i < pool->places_len; i++)
        for (struct blob *blob = pool->places[i], *next; blob; blob = next) {
            next = blob->next;
            free_blob(pool, blob);
        }
    while (pool->parts) {
        struct part *part = pool->parts;

        pool->parts = part->next;
        hf_blobs_close(part->blobs);
        hf__env_free(&env, part, sizeof(*part));
    }
    hf__env_free(&env, pool->places, pool->places_len * sizeof(struct blob *));
    pthread_mutex_destroy(&pool->lock);
    hf__env_free(&env, pool, sizeof(*pool));
}

static void memory_close(struct hf_blobs *blobs)
{
    struct hf_env env = blobs->env;
    struct pool *pool = pool_of(blobs);
    bool last;

    pthread_mutex_lock(&pool->lock);
    pool_check(pool);
    last = --pool->handles == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        pool_free(pool);
    hf__env_free(&env, blobs, sizeof(struct memory));
}

static enum hf_status memory_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                                  struct hf_blobs **part);

static const struct blob_kind memory_kind = {.part = memory_part,
                                             .put = memory_put,
                                             .get = memory_get,
                                             .has = memory_has,
                                             .remove = memory_remove,
                                             .list = memory_list,
                                             .remove_old = memory_remove_old,
                                             .close = memory_close};

/* A new handle, which the pool counts. */
static enum hf_status open_handle(struct hf_scope *s, struct pool *pool, struct hf_blobs **blobs)
{
    struct memory *made = hf__env_alloc(&pool->env, sizeof(*made));

    *blobs = NULL;
    if (!made)
        return hf__fail_nomem(s);
    *made = (struct memory){.blobs = {.kind = &memory_kind, .env = pool->env, .max = HF_BLOB_MAX},
                            .pool = pool};
    pthread_mutex_lock(&pool->lock);
    pool->handles++;
    pthread_mutex_unlock(&pool->lock);
    *blobs = &made->blobs;
    return HF_OK;
}

enum hf_status hf__blobs_open_memory(struct hf_scope *s, const struct hf_env *env,
                                     struct hf_blobs **blobs)
{
    struct pool *pool = hf__env_alloc(env, sizeof(*pool));
    enum hf_status status;

    *blobs = NULL;
    if (!pool)
        return hf__fail_nomem(s);
    *pool = (struct pool){.env = *env};
    pthread_mutex_init(&pool->lock, NULL);
    pool->places = hf__env_alloc(env, FIRST_PLACES * sizeof(struct blob *));
    if (pool->places) {
        memset(pool->places, 0, FIRST_PLACES * sizeof(struct blob *));
        pool->places_len = FIRST_PLACES;
    }
    status = pool->places ? open_handle(s, pool, blobs) : hf__fail_nomem(s);
    if (status != HF_OK)
        pool_free(pool);
    return status;
}

enum hf_status hf__blobs_share(struct hf_scope *s, struct hf_blobs *blobs,
                               struct hf_blobs **another)
{
    assert(blobs->kind == &memory_kind);
    return open_handle(s, pool_of(blobs), another);
}

/* The part of that name, or a new one. The lock is held. */
static enum hf_status find_part(struct hf_scope *s, struct pool *pool, struct hf_str name,
                                struct part **found)
{
    struct part *made;
    enum hf_status status;

    pool_check(pool);
    for (*found = pool->parts; *found; *found = (*found)->next)
        if (hf_str_equal(name, hf_str_from((*found)->name)))
            return HF_OK;
    made = hf__env_alloc(&pool->env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    assert(name.len < sizeof(made->name));
    *made = (struct part){.next = pool->parts};
    memcpy(made->name, name.ptr, name.len);
    status = hf__blobs_open_memory(s, &pool->env, &made->blobs);
    if (status != HF_OK) {
        hf__env_free(&pool->env, made, sizeof(*made));
        return status;
    }
    pool->parts = *found = made;
    return HF_OK;
}

static enum hf_status memory_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                                  struct hf_blobs **part)
{
    struct pool *pool = pool_of(blobs);
    enum hf_status status;
    struct part *found;

    pthread_mutex_lock(&pool->lock);
    status = find_part(s, pool, name, &found);
    if (status == HF_OK)
        status = hf__blobs_share(s, found->blobs, part);
    pthread_mutex_unlock(&pool->lock);
    return status;
}
