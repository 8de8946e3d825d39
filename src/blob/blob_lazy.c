/*
 * blob/blob_lazy.c: blobs as files, in a folder that may not be there yet.
 *
 * Looking for blobs should create no folder, for example after a typing error in a path. So this
 * store opens a store in a folder (blob_dir.c) at the first call that finds the folder, and creates
 * it at the first put. Its parts are the same: a part is opened in the folder of the whole.
 *
 *  (1) Only a put makes something. All other calls find no blobs where there is no folder.
 *  (2) The folder is looked for again by each call until it is there: another process may make it.
 *  (3) `inner` is set once, under the mutex, and stays until the store is closed.
 *  (4) A relative path is one of the directory in which the process was when the store was opened.
 */
#include "blob/private.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "base/assert_held.h"

struct lazy {
    struct hf_blobs blobs;
    struct lazy *above; /* the store that this is a part of, closed after it; NULL: none */
    char *name;         /* the path of the folder; the name of a part */
    size_t name_size;
    bool no_sync;
    uint64_t reserve;
    pthread_mutex_t mutex; /* guards all below */
    struct hf_blobs *inner;
};

static const struct blob_kind lazy_kind;

_Static_assert(offsetof(struct lazy, blobs) == 0, "a store begins with what all stores have");

static struct lazy *lazy_of(struct hf_blobs *blobs)
{
    assert(blobs->kind == &lazy_kind);
    return (struct lazy *)(void *)blobs;
}

/* ---- the folder ----------------------------------------------------------------------------- */

static enum hf_status open_inner(struct hf_scope *s, struct lazy *lazy, bool make);

/* The store in the folder. NULL and HF_OK without `make`: there is no folder. */
static enum hf_status inner_find(struct hf_scope *s, struct lazy *lazy, bool make,
                                 struct hf_blobs **inner)
{
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&lazy->mutex);
    if (!lazy->inner)
        status = open_inner(s, lazy, make);
    *inner = lazy->inner;
    pthread_mutex_unlock(&lazy->mutex);
    assert(*inner || !make || status != HF_OK);
    return status;
}

/* The mutex is held. Mutexes are taken from a part to the whole, never the other way. */
static enum hf_status open_inner(struct hf_scope *s, struct lazy *lazy, bool make)
{
    struct hf_blobs *whole;

    ASSERT_HELD(&lazy->mutex);
    assert(!lazy->inner); /* (3) */
    if (!lazy->above)
        return hf__blobs_open_dir(s, &lazy->blobs.env,
                                  &(struct blob_dir_options){.path = hf_str_from(lazy->name),
                                                             .no_sync = lazy->no_sync,
                                                             .no_create = !make,
                                                             .reserve = lazy->reserve},
                                  &lazy->inner);
    TRY(inner_find(s, lazy->above, make, &whole));
    return whole ? hf__blobs_dir_part(s, whole, hf_str_from(lazy->name), !make, &lazy->inner)
                 : HF_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static enum hf_status lazy_put(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                               struct hf_bytes bytes)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), true, &inner));
    return inner->kind->put(s, inner, digest, bytes);
}

static enum hf_status lazy_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                               struct hf_bytes *bytes)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), false, &inner));
    return inner ? inner->kind->get(s, inner, digest, bytes) : hf__blob_missing(s, digest);
}

static enum hf_status lazy_has(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                               uint64_t *size)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), false, &inner));
    return inner ? inner->kind->has(s, inner, digest, size) : hf__blob_missing(s, digest);
}

static enum hf_status lazy_remove(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), false, &inner));
    return inner ? inner->kind->remove(s, inner, digest) : HF_OK;
}

static enum hf_status lazy_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                                void *user)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), false, &inner));
    return inner ? inner->kind->list(s, inner, fn, user) : HF_OK;
}

static enum hf_status lazy_remove_old(struct hf_scope *s, struct hf_blobs *blobs,
                                      struct hf_str digest, int64_t before_us, bool *removed)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), false, &inner));
    return inner ? inner->kind->remove_old(s, inner, digest, before_us, removed) : HF_OK;
}

static enum hf_status lazy_remove_leftovers(struct hf_scope *s, struct hf_blobs *blobs,
                                            int64_t before_us)
{
    struct hf_blobs *inner;

    TRY(inner_find(s, lazy_of(blobs), false, &inner));
    return inner ? inner->kind->remove_leftovers(s, inner, before_us) : HF_OK;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void lazy_close(struct hf_blobs *blobs)
{
    struct lazy *lazy = lazy_of(blobs);
    struct hf_env env = blobs->env;

    hf_blobs_close(lazy->inner);
    pthread_mutex_destroy(&lazy->mutex);
    hf__env_free(&env, lazy->name, lazy->name_size);
    hf__env_free(&env, lazy, sizeof(*lazy));
}

static enum hf_status lazy_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                                struct hf_blobs **part);

static const struct blob_kind lazy_kind = {.part = lazy_part,
                                           .put = lazy_put,
                                           .get = lazy_get,
                                           .has = lazy_has,
                                           .remove = lazy_remove,
                                           .list = lazy_list,
                                           .remove_old = lazy_remove_old,
                                           .remove_leftovers = lazy_remove_leftovers,
                                           .close = lazy_close};

static enum hf_status lazy_new(struct hf_scope *s, const struct hf_env *env,
                               const struct blob_dir_options *options, struct lazy *above,
                               struct hf_blobs **blobs)
{
    struct lazy *lazy = hf__env_alloc(env, sizeof(*lazy));
    struct hf_blobs *inner;
    enum hf_status status;

    *blobs = NULL;
    if (!lazy)
        return hf__fail_nomem(s);
    memset(lazy, 0, sizeof(*lazy));
    lazy->blobs = (struct hf_blobs){.kind = &lazy_kind, .env = *env, .max = HF_BLOB_MAX};
    lazy->above = above;
    lazy->no_sync = options->no_sync;
    lazy->reserve = options->reserve;
    pthread_mutex_init(&lazy->mutex, NULL);
    lazy->name_size = options->path.len + 1;
    lazy->name = hf__env_alloc(env, lazy->name_size);
    if (lazy->name) {
        memcpy(lazy->name, options->path.ptr, options->path.len);
        lazy->name[options->path.len] = '\0';
    }
    /* A folder that exists and cannot be used is an error now, as with other stores. */
    status = lazy->name ? inner_find(s, lazy, false, &inner) : hf__fail_nomem(s);
    if (status != HF_OK) {
        lazy_close(&lazy->blobs);
        return status;
    }
    *blobs = &lazy->blobs;
    return HF_OK;
}

static enum hf_status lazy_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                                struct hf_blobs **part)
{
    return lazy_new(s, &blobs->env, &(struct blob_dir_options){.path = name}, lazy_of(blobs), part);
}

enum hf_status hf__blobs_open_lazy(struct hf_scope *s, const struct hf_env *env,
                                   const struct blob_dir_options *options, struct hf_blobs **blobs)
{
    struct blob_dir_options o = *options;
    char working[PATH_MAX];

    *blobs = NULL;
    if (o.path.len == 0 || memchr(o.path.ptr, '\0', o.path.len))
        return hf__blobs_open_dir(s, env, &o, blobs);               /* for its error message */
    if (o.path.ptr[0] != '/' && getcwd(working, sizeof(working))) { /* (4) */
        o.path = hf_scope_format(s, "%s/%.*s", working, HF_FMT(o.path));
        if (!o.path.ptr)
            return hf__fail_nomem(s);
    }
    return lazy_new(s, env, &o, NULL, blobs);
}
