/*
 * server/admin/admin_snapshots.c: named snapshots of the whole database, for tests that want to start
 * from the same state again and again.
 *
 *     GET    /_holdfast/snapshots                the snapshots that there are
 *     PUT    /_holdfast/snapshots/NAME           take one; it replaces one of the same name
 *     POST   /_holdfast/snapshots/NAME/restore   put everything back
 *     DELETE /_holdfast/snapshots/NAME           forget it
 *
 * They are kept in the server's memory, and go with it. The work is done by a worker (work.h);
 * during a restore all requests wait, as every one of them needs the tables. A restore of a few
 * thousand items takes milliseconds.
 *
 * Workers share the list. One of them may restore a snapshot while another one replaces or deletes
 * it: so a snapshot is freed by the last one that has it, and the lock is held only to look and to
 * change the list.
 */
#include "server/admin/admin.h"

#include <holdfast/engine.h>

#include "base/assert_held.h"
#include "ops/table.h"
#include "server/private.h"

enum { SNAPSHOTS_MAX = 100, NAME_MAX_LEN = 64 };

#define SNAPSHOTS_BYTES_MAX (UINT64_C(1024) * 1024 * 1024) /* of all of them */

/* ---- what is kept --------------------------------------------------------------------------- */

struct named {
    char name[NAME_MAX_LEN];
    size_t name_len;
    struct hf_engine_snapshot *snapshot;
    unsigned users; /* the list is one; guarded by the lock of the list */
};

struct snapshots {
    struct hf_env env;
    pthread_mutex_t lock;              /* guards the next two */
    struct named *list[SNAPSHOTS_MAX]; /* in the order of names */
    size_t len;
};

struct snapshots *hf__snapshots_new(const struct hf_env *env)
{
    struct snapshots *snapshots = hf__env_alloc(env, sizeof(*snapshots));

    if (!snapshots)
        return NULL;
    memset(snapshots, 0, sizeof(*snapshots));
    snapshots->env = *env;
    pthread_mutex_init(&snapshots->lock, NULL);
    return snapshots;
}

static void named_free(struct snapshots *snapshots, struct named *named)
{
    hf_engine_snapshot_free(named->snapshot);
    hf__env_free(&snapshots->env, named, sizeof(*named));
}

/* Release a reference; the last one frees the snapshot. */
static void release_named(struct snapshots *snapshots, struct named *named)
{
    bool last;

    if (!named)
        return;
    pthread_mutex_lock(&snapshots->lock);
    assert(named->users > 0);
    last = --named->users == 0;
    pthread_mutex_unlock(&snapshots->lock);
    if (last)
        named_free(snapshots, named);
}

void hf__snapshots_free(struct snapshots *snapshots)
{
    struct hf_env env;

    if (!snapshots)
        return;
    env = snapshots->env;
    for (size_t i = 0; i < snapshots->len; i++)
        named_free(snapshots, snapshots->list[i]);
    pthread_mutex_destroy(&snapshots->lock);
    hf__env_free(&env, snapshots, sizeof(*snapshots));
}

/* The place of a name in the list, or where it would be inserted. */
static size_t find_position(struct snapshots *snapshots, struct hf_str name, bool *there)
{
    size_t at = 0;
    int order = 1;

    ASSERT_HELD(&snapshots->lock);
    while (at < snapshots->len) {
        order = bytes_compare(snapshots->list[at]->name, snapshots->list[at]->name_len, name.ptr,
                              name.len);
        if (order >= 0)
            break;
        at++;
    }
    *there = at < snapshots->len && order == 0;
    return at;
}

/* The snapshot of that name, whose reference the caller releases; NULL when there is none. With `remove` it is
 * that of the list, which has the snapshot no more. */
static struct named *find_named(struct snapshots *snapshots, struct hf_str name, bool remove)
{
    struct named *named = NULL;
    bool there;
    size_t at;

    pthread_mutex_lock(&snapshots->lock);
    at = find_position(snapshots, name, &there);
    if (there)
        named = snapshots->list[at];
    if (there && remove) {
        snapshots->len--;
        memmove(snapshots->list + at, snapshots->list + at + 1,
                (snapshots->len - at) * sizeof(*snapshots->list));
    } else if (there) {
        named->users++;
    }
    pthread_mutex_unlock(&snapshots->lock);
    return named;
}

static uint64_t bytes_of(const struct named *named)
{
    struct hf_engine_snapshot_size size;

    hf_engine_snapshot_size(named->snapshot, &size);
    return size.bytes;
}

/* The bytes of all snapshots if one of `more` bytes replaced the one at `at`. */
static uint64_t bytes_with(struct snapshots *snapshots, const struct named *more, size_t at,
                           bool there)
{
    uint64_t bytes = bytes_of(more);

    ASSERT_HELD(&snapshots->lock);
    assert(at <= snapshots->len && snapshots->len <= SNAPSHOTS_MAX);
    for (size_t i = 0; i < snapshots->len; i++)
        if (!there || i != at)
            bytes += bytes_of(snapshots->list[i]);
    return bytes;
}

/* Insert into the list. A snapshot of the same name is replaced, and is *old then. */
static enum hf_status put_in(struct hf_scope *s, struct snapshots *snapshots, struct named *named,
                             struct named **old)
{
    enum hf_status status = HF_OK;
    bool there;
    size_t at;

    *old = NULL;
    pthread_mutex_lock(&snapshots->lock);
    at = find_position(snapshots, hf_str_of(named->name, named->name_len), &there);
    if (!there && snapshots->len == SNAPSHOTS_MAX) {
        status = hf__fail(s, HF_LIMIT, "the limit of %d snapshots is reached; delete one first",
                          SNAPSHOTS_MAX);
    } else if (bytes_with(snapshots, named, at, there) > SNAPSHOTS_BYTES_MAX) {
        status = hf__fail(s, HF_LIMIT,
                          "the snapshots would exceed the limit of %llu bytes; delete one first",
                          (unsigned long long)SNAPSHOTS_BYTES_MAX);
    } else if (there) {
        *old = snapshots->list[at];
        snapshots->list[at] = named;
    } else {
        memmove(snapshots->list + at + 1, snapshots->list + at,
                (snapshots->len - at) * sizeof(*snapshots->list));
        snapshots->list[at] = named;
        snapshots->len++;
    }
    pthread_mutex_unlock(&snapshots->lock);
    return status;
}

/* ---- what travels --------------------------------------------------------------------------- */

struct wire_snapshot {
    struct hf_str name;
    int64_t tables;
    int64_t items;
    int64_t bytes;
    int64_t taken;
};
#define T wire_snapshot
static const struct field snapshot_list[] = {STR("name", name), INT("tables", tables, LONG_ALWAYS),
                                             INT("items", items, LONG_ALWAYS),
                                             INT("bytes", bytes, LONG_ALWAYS),
                                             TIME("taken", taken)};
static TABLE(snapshot, "Snapshot");
#undef T

struct list_answer {
    const struct wire_snapshot *snapshots;
    size_t snapshots_len;
};
#define T list_answer
static const struct field list_answer_list[] = {STRUCTS("snapshots", snapshots, snapshot, ALWAYS)};
static TABLE(list_answer, "Snapshots");
#undef T

static struct wire_snapshot describe_snapshot(struct hf_scope *s, const struct named *named)
{
    struct hf_engine_snapshot_size size;

    hf_engine_snapshot_size(named->snapshot, &size);
    return (struct wire_snapshot){.name = hf_scope_copy(s, hf_str_of(named->name, named->name_len)),
                                  .tables = (int64_t)size.tables,
                                  .items = (int64_t)size.items,
                                  .bytes = (int64_t)size.bytes,
                                  .taken = size.taken_us};
}

static bool good_name(struct answer *answer, struct hf_str name)
{
    bool good = name.len >= 1 && name.len <= NAME_MAX_LEN;

    for (size_t i = 0; i < name.len && good; i++) {
        char c = name.ptr[i];

        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    }
    if (!good)
        hf__admin_error(answer, 400,
                        HF_STR("invalid snapshot name; use 1 to 64 letters, digits, - and _"));
    return good;
}

static void answer_missing(struct answer *answer)
{
    hf__admin_error(answer, 404,
                    HF_STR("no such snapshot; GET /_holdfast/snapshots lists all snapshots"));
}

/* ---- requests ------------------------------------------------------------------------------- */

void hf__admin_snapshots_list(struct answer *answer, const struct admin_request *request)
{
    struct context *context = answer->context;
    struct snapshots *snapshots = context->server->snapshots;
    struct wire_snapshot *result =
        hf__scope_array(context->scope, SNAPSHOTS_MAX, sizeof(struct wire_snapshot));
    struct list_answer list = {.snapshots = result};

    (void)request;
    if (!result) {
        hf__admin_failure(answer, hf__fail_nomem(context->scope));
        return;
    }
    pthread_mutex_lock(&snapshots->lock);
    list.snapshots_len = snapshots->len;
    for (size_t i = 0; i < snapshots->len; i++)
        result[i] = describe_snapshot(context->scope, snapshots->list[i]);
    pthread_mutex_unlock(&snapshots->lock);
    hf__admin_answer(answer, &list_answer, &list);
}

static enum hf_status take_snapshot(struct context *context, struct hf_str name,
                                    struct wire_snapshot *result)
{
    struct snapshots *snapshots = context->server->snapshots;
    struct named *named = hf__env_alloc(&snapshots->env, sizeof(*named));
    struct named *old = NULL;
    enum hf_status status;

    if (!named)
        return hf__fail_nomem(context->scope);
    assert(name.len <= sizeof(named->name));
    *named = (struct named){.name_len = name.len, .users = 1};
    memcpy(named->name, name.ptr, name.len);
    status = hf_engine_snapshot_take(context->scope, context->server->engine, &named->snapshot);
    if (status == HF_OK) {
        *result = describe_snapshot(context->scope,
                                    named); /* once it is in the list, it may go at any time */
        status = put_in(context->scope, snapshots, named, &old);
    }
    if (status != HF_OK)
        named_free(snapshots, named);
    release_named(snapshots, old);
    return status;
}

void hf__admin_snapshots_take(struct answer *answer, const struct admin_request *request)
{
    struct wire_snapshot result;
    enum hf_status status;

    if (!good_name(answer, request->name))
        return;
    status = take_snapshot(answer->context, request->name, &result);
    if (status == HF_OK)
        hf__admin_answer(answer, &snapshot, &result);
    else
        hf__admin_failure(answer, status);
}

void hf__admin_snapshots_restore(struct answer *answer, const struct admin_request *request)
{
    struct context *context = answer->context;
    struct snapshots *snapshots = context->server->snapshots;
    struct wire_snapshot result;
    struct named *named;
    enum hf_status status;

    if (!good_name(answer, request->name))
        return;
    named = find_named(snapshots, request->name, false);
    if (!named) {
        answer_missing(answer);
        return;
    }
    status = hf_engine_snapshot_restore(context->scope, context->server->engine, named->snapshot);
    result = describe_snapshot(context->scope, named);
    release_named(snapshots, named);
    if (status == HF_OK)
        hf__admin_answer(answer, &snapshot, &result);
    else
        hf__admin_failure(answer, status);
}

void hf__admin_snapshots_delete(struct answer *answer, const struct admin_request *request)
{
    struct snapshots *snapshots = answer->context->server->snapshots;
    struct named *named;

    if (!good_name(answer, request->name))
        return;
    named = find_named(snapshots, request->name, true);
    if (!named) {
        answer_missing(answer);
        return;
    }
    release_named(snapshots, named);
    hf__admin_snapshots_list(answer, request);
}
