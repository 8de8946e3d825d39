/*
 * db/fence.c: a database around a database that refuses writes to tables whose data has moved: for
 * databases of others, as the engine and so `holdfast serve` refuse them (engine/write/fence.c).
 *
 * The fences are items of the table HF_FENCE_TABLE; the wrapper has a list of them.
 *
 *  (1) A write holds the lock for reading while the inner database does it. A change of the list takes
 *      it for writing: so behind a change no write of before is under way.
 *  (2) A write to the table of fences through this wrapper is followed by a look at all of it, before
 *      the call returns. While it is under way other writes wait: of two calls, one of which sets a
 *      fence, the other one was done before it or is refused.
 *  (3) Otherwise a write looks first, when the last look is longer ago than check_ms. One thread looks
 *      at a time, and the others use what they have.
 *  (4) If the table of fences cannot be read, a write fails: it cannot be known whether it is allowed.
 *      If there is no such table, there are no fences.
 */
#include <holdfast/fence.h>

#include <pthread.h>
#include <string.h>

#include "db/call_info.h"
#include "expr/partiql.h"
#include "ops/prepare.h"

#include <holdfast/table.h>

enum { CHECK_MS = 1000 };

struct fence {
    struct hf_str table, to; /* memory of the list's scope */
};

struct fenced {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    uint32_t check_ms;
    bool alone;
    pthread_rwlock_t lock; /* guards the list */
    struct hf_scope *memory;
    struct fence *list;
    size_t len;
    atomic_bool looking;     /* a thread does */
    atomic_llong look_at_us; /* when to look again */
};

static const struct db_calls fenced_calls;

/* ---- the list ------------------------------------------------------------------------------- */

/* A name, or the ARN of a table. */
static struct hf_str plain_name(struct hf_str table)
{
    static const char mark[] = ":table/";
    const size_t len = sizeof(mark) - 1;

    if (table.len > 4 && memcmp(table.ptr, "arn:", 4) == 0)
        for (size_t i = 0; i + len < table.len; i++)
            if (memcmp(table.ptr + i, mark, len) == 0)
                return hf_str_of(table.ptr + i + len, table.len - i - len);
    return table;
}

static const struct fence *fence_find(const struct fenced *f, struct hf_str table)
{
    struct hf_str name = plain_name(table);

    for (size_t i = 0; i < f->len; i++)
        if (hf_str_equal(f->list[i].table, name))
            return &f->list[i];
    return NULL;
}

/* The fences as they are, in the scope. (4) */
static enum hf_status fences_read(struct hf_scope *s, struct hf_db *inner, struct fence **list,
                                  size_t *len)
{
    struct hf_scan scan = {.table = HF_FENCE_TABLE, .consistent = HF_YES};
    struct hf_scan_result page;

    *len = 0;
    *list = hf__scope_array(s, HF_FENCES_MAX, sizeof(**list));
    if (!*list)
        return hf__fail_nomem(s);
    do {
        enum hf_status status = hf_scan(s, inner, &scan, &page);

        if (status == HF_NOT_FOUND)
            return hf_scope_ok(s);
        TRY(status);
        for (size_t i = 0; i < page.items_len && *len < HF_FENCES_MAX; i++)
            (*list)[(*len)++] =
                (struct fence){.table = hf_value_str(hf_item_get(page.items[i], HF_STR("table"))),
                               .to = hf_value_str(hf_item_get(page.items[i], HF_STR("to")))};
        scan.start = page.last;
    } while (page.last.ptr);
    return HF_OK;
}

static bool lists_equal(const struct fenced *f, const struct fence *list, size_t len)
{
    if (len != f->len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!hf_str_equal(list[i].table, f->list[i].table) ||
            !hf_str_equal(list[i].to, f->list[i].to))
            return false;
    return true;
}

/* With the lock for writing. */
static enum hf_status list_set(struct hf_scope *s, struct fenced *f, const struct fence *list,
                               size_t len)
{
    struct hf_scope *memory = hf_scope_new(&f->env);
    struct fence *copy = memory ? hf__scope_array(memory, len + 1, sizeof(*copy)) : NULL;

    for (size_t i = 0; copy && i < len; i++)
        copy[i] =
            (struct fence){hf_scope_copy(memory, list[i].table), hf_scope_copy(memory, list[i].to)};
    if (!copy || hf_scope_built(memory) != HF_OK) {
        hf_scope_free(memory);
        return hf__fail_nomem(s);
    }
    hf_scope_free(f->memory);
    f->memory = memory;
    f->list = copy;
    f->len = len;
    return HF_OK;
}

static void look_done(struct fenced *f)
{
    atomic_store(&f->look_at_us,
                 f->alone ? INT64_MAX : hf__env_elapsed_us(&f->env) + 1000 * (int64_t)f->check_ms);
}

/* (3) On a scope of its own: the caller's may have a pending sync, and its memory is his. */
static enum hf_status fences_look(struct hf_scope *s, struct fenced *f)
{
    struct hf_scope *own;
    struct fence *list = NULL;
    enum hf_status status;
    size_t len = 0;
    bool same;

    if (hf__env_elapsed_us(&f->env) < atomic_load(&f->look_at_us) ||
        atomic_exchange(&f->looking, true))
        return HF_OK;
    own = hf_scope_new(&f->env);
    status = own ? fences_read(own, f->inner, &list, &len) : HF_NOMEM;
    if (status == HF_OK) {
        pthread_rwlock_rdlock(&f->lock);
        same = lists_equal(f, list, len);
        pthread_rwlock_unlock(&f->lock);
        if (!same) {
            pthread_rwlock_wrlock(&f->lock);
            status = list_set(own, f, list, len);
            pthread_rwlock_unlock(&f->lock);
        }
    }
    if (status == HF_OK)
        look_done(f);
    atomic_store(&f->looking, false);
    if (status != HF_OK && own)
        status = hf_scope_fail_from(s, status, own);
    hf_scope_free(own);
    return own ? status : hf__fail_nomem(s);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static bool writes_items(enum hf_op op)
{
    return op == HF_OP_PUT_ITEM || op == HF_OP_UPDATE_ITEM || op == HF_OP_DELETE_ITEM ||
           op == HF_OP_BATCH_WRITE_ITEM || op == HF_OP_TRANSACT_WRITE_ITEMS ||
           op == HF_OP_EXECUTE_STATEMENT || op == HF_OP_BATCH_EXECUTE_STATEMENT ||
           op == HF_OP_EXECUTE_TRANSACTION;
}

static bool is_select(struct hf_str statement)
{
    static const char word[] = "select";
    size_t at = 0;

    while (at < statement.len && (statement.ptr[at] == ' ' || statement.ptr[at] == '\n' ||
                                  statement.ptr[at] == '\t' || statement.ptr[at] == '\r'))
        at++;
    if (statement.len - at < sizeof(word))
        return false;
    for (size_t i = 0; i + 1 < sizeof(word); i++)
        if ((statement.ptr[at + i] | 0x20) != word[i])
            return false;
    return true;
}

/* The nth statement of the request; absent: there are no more. */
static struct hf_str statement_at(enum hf_op op, const void *request, size_t n)
{
    const struct hf_execute_statement *one = request;
    const struct hf_batch_execute_statement *batch = request;
    const struct hf_execute_transaction *tx = request;

    if (op == HF_OP_EXECUTE_STATEMENT)
        return n == 0 ? one->statement : (struct hf_str){0};
    if (op == HF_OP_BATCH_EXECUTE_STATEMENT)
        return n < batch->statements_len ? batch->statements[n].statement : (struct hf_str){0};
    if (op == HF_OP_EXECUTE_TRANSACTION)
        return n < tx->statements_len ? tx->statements[n].statement : (struct hf_str){0};
    return (struct hf_str){0};
}

/* The table of a statement that writes; absent: it reads, or is none. */
static struct hf_str statement_table(struct hf_str statement)
{
    struct hf_scope *own;
    struct hf_str word = {0}, table = {0};

    if (is_select(statement) || statement.len > STATEMENT_TEXT_MAX)
        return table;
    own = hf_scope_new(NULL);
    if (own && hf__partiql_table(own, statement, &word) == HF_OK && word.len)
        table = word.ptr[0] == '"' ? hf_str_of(word.ptr + 1, word.len - 2) : word;
    hf_scope_free(own);
    return table;
}

/* Of the three that are most frequent, without a walk over the fields. */
static struct hf_str single_table(enum hf_op op, const void *request)
{
    const struct hf_put_item *put = request;
    const struct hf_update_item *update = request;
    const struct hf_delete_item *del = request;

    return op == HF_OP_PUT_ITEM      ? put->table
           : op == HF_OP_UPDATE_ITEM ? update->table
           : op == HF_OP_DELETE_ITEM ? del->table
                                     : (struct hf_str){0};
}

/* The nth table that the request writes to; its ptr is NULL behind the last. */
static struct hf_str written_at(enum hf_op op, const void *request, size_t n)
{
    struct hf_str statement;

    if (op == HF_OP_PUT_ITEM || op == HF_OP_UPDATE_ITEM || op == HF_OP_DELETE_ITEM)
        return n == 0 ? single_table(op, request) : (struct hf_str){0};
    statement = statement_at(op, request, n);
    if (!statement.ptr)
        return hf__db_call_nth_table(op, request, n);
    statement = statement_table(statement);
    return statement.ptr ? statement : HF_STR("");
}

static const struct fence *fence_of(const struct fenced *f, enum hf_op op, const void *request)
{
    struct hf_str table;

    for (size_t n = 0; (table = written_at(op, request, n)).ptr; n++) {
        const struct fence *fence = fence_find(f, table);

        if (fence)
            return fence;
    }
    return NULL;
}

/* Might one of the statements be about the table of fences? To parse them all would cost too much. */
static bool says_fence(enum hf_op op, const void *request)
{
    const struct hf_str name = HF_FENCE_TABLE;
    struct hf_str statement;

    for (size_t n = 0; (statement = statement_at(op, request, n)).ptr; n++)
        if (memmem(statement.ptr, statement.len, name.ptr, name.len))
            return true;
    return false;
}

static bool sets_fences(enum hf_op op, const void *request)
{
    struct hf_str table;

    if (op == HF_OP_DELETE_TABLE || op == HF_OP_CREATE_TABLE)
        return hf_str_equal(plain_name(hf__db_call_table(op, request)), HF_FENCE_TABLE);
    if (!writes_items(op) || (statement_at(op, request, 0).ptr && !says_fence(op, request)))
        return false;
    for (size_t n = 0; (table = written_at(op, request, n)).ptr; n++)
        if (hf_str_equal(plain_name(table), HF_FENCE_TABLE))
            return true;
    return false;
}

static enum hf_status write_refuse(struct hf_scope *s, const struct fence *fence)
{
    return hf__fail(s, HF_DENIED,
                    "table %.*s is fenced: its data has moved%s%.*s; nothing was written",
                    HF_FMT(fence->table), fence->to.len ? " to " : "", HF_FMT(fence->to));
}

/* (2) */
static enum hf_status fence_change(struct hf_scope *s, struct fenced *f, enum hf_op op,
                                   const void *request, void *response)
{
    struct fence *list = NULL;
    size_t len = 0;
    struct hf_scope *own = hf_scope_new(&f->env);
    enum hf_status status, looked;

    if (!own)
        return hf__fail_nomem(s);
    pthread_rwlock_wrlock(&f->lock);
    status = f->inner->calls->call(s, f->inner, op, request, response);
    looked = fences_read(own, f->inner, &list, &len);
    if (looked == HF_OK)
        looked = list_set(own, f, list, len);
    if (looked != HF_OK)
        atomic_store(&f->look_at_us, 0);
    pthread_rwlock_unlock(&f->lock);
    if (status == HF_OK && looked != HF_OK)
        status = hf_scope_fail_from(s, looked, own);
    hf_scope_free(own);
    return status;
}

static enum hf_status fenced_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct fenced *f = (struct fenced *)(void *)db;
    const struct fence *fence;
    enum hf_status status;

    if (sets_fences(op, request))
        return fence_change(s, f, op, request, response);
    if (!writes_items(op))
        return f->inner->calls->call(s, f->inner, op, request, response);
    TRY(fences_look(s, f));
    pthread_rwlock_rdlock(&f->lock); /* (1) */
    fence = f->len ? fence_of(f, op, request) : NULL;
    status =
        fence ? write_refuse(s, fence) : f->inner->calls->call(s, f->inner, op, request, response);
    pthread_rwlock_unlock(&f->lock);
    return status;
}

static enum hf_status fenced_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    return hf__db_sync(s, ((struct fenced *)(void *)db)->inner, ticket);
}

static void fenced_close(struct hf_db *db)
{
    struct fenced *f = (struct fenced *)(void *)db;
    struct hf_env env = f->env;

    hf_db_close(f->inner);
    hf_scope_free(f->memory);
    pthread_rwlock_destroy(&f->lock);
    hf__env_free(&env, f, sizeof(*f));
}

static enum hf_status fenced_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                      bool *supported)
{
    return hf_db_supports(s, ((struct fenced *)(void *)db)->inner, feature, supported);
}

static enum hf_status fenced_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct fenced *)(void *)db)->inner, blobs);
}

static enum hf_status fenced_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                       struct hf_str *full)
{
    return hf__db_full_name(s, ((struct fenced *)(void *)db)->inner, table, full);
}

static struct hf_str fenced_opener(struct hf_db *db)
{
    return hf_db_opener(((struct fenced *)(void *)db)->inner);
}

static const struct db_calls fenced_calls = {.call = fenced_call,
                                             .sync = fenced_sync,
                                             .close = fenced_close,
                                             .supports = fenced_supports,
                                             .blobs = fenced_blobs,
                                             .full_name = fenced_full_name,
                                             .opener = fenced_opener};

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status lock_init(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attr;
    int error = pthread_rwlockattr_init(&attr);

    if (error)
        return HF_NOMEM;
#ifdef __GLIBC__ /* else steady writers would keep a fence waiting */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    error = pthread_rwlock_init(lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    return error ? HF_NOMEM : HF_OK;
}

enum hf_status hf_fenced_open(struct hf_scope *s, struct hf_db *inner,
                              const struct hf_fence_options *options, struct hf_db **db)
{
    struct hf_fence_options o = {0};
    struct fenced *f;
    enum hf_status status;

    *db = NULL;
    hf__scope_error_clear(s);
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_fenced_open() was called without a database (NULL)");
    f = hf__env_zalloc(hf__scope_env(s), sizeof(*f));
    if (!f)
        return hf__fail_nomem(s);
    f->db.calls = &fenced_calls;
    f->env = *hf__scope_env(s);
    f->inner = inner;
    f->check_ms = o.check_ms ? o.check_ms : CHECK_MS;
    f->alone = o.alone;
    if (lock_init(&f->lock) != HF_OK) {
        hf__env_free(hf__scope_env(s), f, sizeof(*f));
        return hf__fail_nomem(s);
    }
    status = fences_look(s, f);
    if (status != HF_OK) {
        f->inner = NULL; /* it stays open */
        fenced_close(&f->db);
        return status;
    }
    *db = &f->db;
    return HF_OK;
}

/* ---- setting -------------------------------------------------------------------------------- */

static enum hf_status fence_table(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_attribute_definition attribute = {HF_STR("table"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("table"), HF_KEY_HASH};
    const struct hf_create_table spec = {.table = HF_FENCE_TABLE,
                                         .attributes = &attribute,
                                         .attributes_len = 1,
                                         .key_schema = &key,
                                         .key_schema_len = 1};

    return hf_table_ensure(s, db, &spec, NULL);
}

enum hf_status hf_fence_set(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                            struct hf_str to)
{
    struct hf_put_item put = {.table = HF_FENCE_TABLE};
    struct fence *list;
    size_t len;

    TRY(fence_table(s, db));
    TRY(fences_read(s, db, &list, &len));
    if (len >= HF_FENCES_MAX)
        return hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(HF_FENCES_MAX, len + 1),
                                   "there are %zu fences already", len);
    put.item = HF_ITEM(s, HF_S("table", table), HF_S("to", to.ptr ? to : HF_STR("")),
                       HF_N("since", hf__env_wall_ms(hf__scope_env(s)) / 1000));
    return hf_put_item(s, db, &put, NULL);
}

enum hf_status hf_fence_clear(struct hf_scope *s, struct hf_db *db, struct hf_str table)
{
    struct hf_delete_item del = {.table = HF_FENCE_TABLE, .key = HF_ITEM(s, HF_S("table", table))};
    enum hf_status status = hf_delete_item(s, db, &del, NULL);

    return status == HF_NOT_FOUND ? hf_scope_ok(s) : status;
}

enum hf_status hf_fence_get(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                            struct hf_str *to)
{
    struct hf_get_item get = {.table = HF_FENCE_TABLE,
                              .key = HF_ITEM(s, HF_S("table", table)),
                              .consistent = HF_YES};
    struct hf_get_item_result got;
    enum hf_status status = hf_get_item(s, db, &get, &got);

    *to = (struct hf_str){0};
    if (status == HF_NOT_FOUND)
        return hf_scope_ok(s);
    TRY(status);
    if (got.item.ptr) {
        *to = hf_value_str(hf_item_get(got.item, HF_STR("to")));
        if (!to->ptr)
            *to = HF_STR("");
    }
    return HF_OK;
}
