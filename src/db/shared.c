/*
 * db/shared.c: objects that the users of one database share, each kind once.
 *
 * A short list with a count of users for each. It is changed when patterns are opened and closed,
 * so a thread that finds it locked yields its core and tries again.
 */
#include <sched.h>

#include "db/db.h"

struct db_shared {
    struct db_shared *next;
    struct hf_env env;
    const struct hf_shared_kind *kind;
    void *object;
    size_t users;
};

static void shared_lock(struct hf_db *db)
{
    while (atomic_exchange(&db->sharing, true))
        sched_yield();
}

static void shared_unlock(struct hf_db *db)
{
    assert(atomic_load(&db->sharing));
    atomic_store(&db->sharing, false);
}

/* The link that points to the object of that kind, or the end of the list. */
static struct db_shared **shared_find(struct hf_db *db, const struct hf_shared_kind *kind)
{
    struct db_shared **at = &db->shared;

    assert(atomic_load(&db->sharing) && kind);
    while (*at && (*at)->kind != kind)
        at = &(*at)->next;
    return at;
}

static enum hf_status shared_make(struct hf_scope *s, const struct hf_shared_kind *kind,
                                  struct db_shared **share)
{
    const struct hf_env *env = hf__scope_env(s);
    struct db_shared *made = hf__env_alloc(env, sizeof(*made));
    enum hf_status status;

    if (!made)
        return hf__fail_nomem(s);
    *made = (struct db_shared){.env = *env, .kind = kind};
    status = kind->make(s, &made->object);
    if (status != HF_OK)
        hf__env_free(env, made, sizeof(*made));
    else
        *share = made;
    return status;
}

enum hf_status hf_db_share(struct hf_scope *s, struct hf_db *db, const struct hf_shared_kind *kind,
                           void **object)
{
    enum hf_status status = HF_OK;
    struct db_shared **at;

    *object = NULL;
    shared_lock(db);
    at = shared_find(db, kind);
    if (!*at)
        status = shared_make(s, kind, at);
    if (status == HF_OK) {
        assert((*at)->kind == kind);
        (*at)->users++;
        *object = (*at)->object;
    }
    shared_unlock(db);
    return status;
}

void hf_db_unshare(struct hf_db *db, const struct hf_shared_kind *kind)
{
    struct db_shared **at, *share;

    shared_lock(db);
    at = shared_find(db, kind);
    share = *at;
    assert(share && share->users > 0);
    if (--share->users == 0) {
        struct hf_env env = share->env;

        *at = share->next;
        kind->end(share->object);
        hf__env_free(&env, share, sizeof(*share));
    }
    shared_unlock(db);
}
