/*
 * engine/engine.c: opening and closing a database, and handing each operation to its function.
 */
#include <holdfast/client.h>

#include "backup/ship.h"
#include "base/cond_monotonic.h"
#include "blob/blob.h"
#include "bulk/bucket.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/counts.h"
#include "engine/maintenance/maintenance.h"
#include "engine/operations.h"
#include "engine/setting.h"
#include "engine/stream/streams.h"
#include "engine/table/catalog.h"
#include "engine/transfer/transfers.h"
#include "engine/write/write.h"
#include "expr/cache.h"
#include "ops/fields.h"
#include "ops/prepare.h"
#include "store/store.h"

#include <time.h>

static const struct db_calls engine_calls;

struct engine *hf__engine_of(struct hf_db *db)
{
    return db && db->calls == &engine_calls ? (struct engine *)(void *)db : NULL;
}

enum hf_status hf__engine_fit(struct hf_scope *s, struct engine *e)
{
    if (!atomic_load(&e->lost))
        return HF_OK;
    return hf__fail(
        s, HF_STOPPED,
        "The write of a restore failed and may or may not have taken effect: reopen the database");
}

/* ---- operations ----------------------------------------------------------------------------- */

typedef enum hf_status operation(struct hf_scope *s, struct engine *e, const void *request,
                                 void *result);

#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    static enum hf_status call_##struct_(struct hf_scope *s, struct engine *e,                     \
                                         const void *request, void *result)                        \
    {                                                                                              \
        return hf__engine_##struct_(s, e, request, result);                                        \
    }
#include "ops/ops.def"
#undef OP

static operation *const operations[] = {
#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    [HF_OP_##constant] = call_##struct_,
#include "ops/ops.def"
#undef OP
};

_Static_assert(ARRAY_LEN(operations) == HF_OP_COUNT, "each operation has a function");

/* Statements are writes to the table of operations, but may be SELECTs: the store refuses others.
 */
static bool is_write(enum hf_op op)
{
    return hf__op(op)->access != OP_READ && op != HF_OP_EXECUTE_STATEMENT &&
           op != HF_OP_BATCH_EXECUTE_STATEMENT && op != HF_OP_EXECUTE_TRANSACTION;
}

enum hf_status hf__engine_writable(struct hf_scope *s, const struct engine *e, struct hf_str what)
{
    if (!e->read_only)
        return HF_OK;
    return hf__fail(s, HF_DENIED, "The database was opened read-only: %.*s is refused",
                    HF_FMT(what));
}

static enum hf_status engine_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct engine *e = (struct engine *)(void *)db;
    enum hf_status status;

    assert((unsigned)op < ARRAY_LEN(operations) && operations[op]);
    hf__scope_set_wording(s, e->wording);
    hf__scope_set_reads_durable(s,
                                hf__store_is_rolled_back(e->store)); /* before anything is read */
    hf__scope_alloc_clear(s);
    TRY(hf__engine_fit(s, e));
    if (e->read_only && is_write(op)) {
        TRY(hf__prepare_plain(s, op, request)); /* as clients find out what there is */
        return hf__engine_writable(s, e, hf__op(op)->name);
    }
    status = operations[op](s, e, request, response);
    hf__fences_follow(e);
    if (status == HF_OK && hf__scope_alloc_failed(s)) { /* the answer may lack something */
        status = hf__fail_nomem(s);
        hf__scope_error_edit(s)->may_have_happened = true;
    }
    /* a read changes nothing, even if a sync failed */
    if (status != HF_OK && hf__op(op)->access == OP_READ)
        hf__scope_error_edit(s)->may_have_happened = false;
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum store_sync store_sync_of(enum hf_sync sync)
{
    return sync == HF_SYNC_NONE    ? STORE_SYNC_NONE
           : sync == HF_SYNC_BATCH ? STORE_SYNC_BATCH
                                   : STORE_SYNC_FULL;
}

static enum hf_status open_store(struct hf_scope *s, const struct hf_env *env, struct hf_str url,
                                 const struct hf_engine_options *o, struct hf__store **store)
{
    const struct store_options options = {.sync = store_sync_of(o->sync),
                                          .window_ms = o->sync_window_ms,
                                          .memtable_bytes = o->memtable_bytes,
                                          .cache_bytes = o->cache_bytes,
                                          .reserve_bytes = o->reserve_bytes,
                                          .no_verify = o->no_verify,
                                          .compress = o->compress,
                                          .bulk = o->bulk_bytes > 0,
                                          .read_only = o->read_only,
                                          .no_create = o->no_create,
                                          .keep_bytes = o->backup ? o->backup->journal_bytes : 0};
    struct hf_str path;

    if ((unsigned)o->sync > HF_SYNC_NONE)
        return hf__fail(s, HF_INVALID, "sync is %d, which is not a value of enum hf_sync",
                        (int)o->sync);
    if ((unsigned)o->wording > HF_WORDING_2026)
        return hf__fail(s, HF_INVALID, "wording is %d, which is not a value of enum hf_wording",
                        (int)o->wording);
    if (hf_str_equal(url, HF_STR("memory:")) && o->read_only)
        return hf__fail(s, HF_INVALID,
                        "memory: cannot be read_only, as it is always new and empty");
    if (hf_str_equal(url, HF_STR("memory:")))
        return hf__store_open_memory(s, env, store);
    if (!str_after(url, HF_STR("embedded:"), &path))
        return hf__fail(s, HF_INVALID,
                        "\"%.*s\" is not a database this library opens: use memory:, "
                        "embedded:PATH, http://HOST:PORT, https://HOST:PORT or dynamodb://REGION",
                        HF_FMT(url));
    if (path.len == 0)
        return hf__fail(s, HF_INVALID, "embedded: must be followed by the path of a directory");
    return hf__store_open_disk(s, env, path, &options, store);
}

/*
 * The secret is made once, with the database. It need not be synced: what it signs is about tables,
 * and when a table is durable, everything that was written before it is durable, too.
 */
static enum hf_status load_secret(struct hf_scope *s, struct engine *e)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct hf_bytes stored;
    uint64_t ticket;

    TRY(hf__setting_get(s, e, "secret", &stored));
    if (stored.len == sizeof(e->secret)) {
        memcpy(e->secret, stored.ptr, sizeof(e->secret));
        return HF_OK;
    }
    hf__env_random(&e->env, e->secret, sizeof(e->secret));
    if (e->read_only) /* there is no table yet, either */
        return HF_OK;
    hf__setting_put(s, &batch, "secret", hf_bytes_of(e->secret, sizeof(e->secret)));
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    return hf__store_write(s, e->store, &batch, &ticket);
}

static enum hf_status load_all(struct hf_scope *s, struct engine *e)
{
    TRY(load_secret(s, e));
    TRY(hf__streams_load(s, e));
    TRY(hf__catalog_load(s, e));
    TRY(hf__backups_load(s, e));
    TRY(hf__catalog_check_ids(s, e, e->next_id));
    TRY(hf__sequencer_load(s, e));
    TRY(hf__counts_load(s, e));
    TRY(hf__transfers_load(s, e));
    return e->read_only ? HF_OK : hf__backups_resume(s, e);
}

enum {
    DEFAULT_SHARDS = 4,
    ARN_PART_MAX = 64,
    DEFAULT_TABLES = 2500 /* as DynamoDB has it, per account and region */
};

/* A region or an account becomes a part of ARNs, which requests contain and which are split again:
 * so it is short and contains no separator. */
static enum hf_status arn_part(struct hf_scope *s, struct engine *e, const char *what,
                               struct hf_str wanted, struct hf_str standard, struct hf_str *part)
{
    bool good = wanted.len <= ARN_PART_MAX;

    for (size_t i = 0; i < wanted.len && good; i++) {
        char c = wanted.ptr[i];

        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    }
    if (!good)
        return hf__fail(s, HF_INVALID, "%s may have up to %d letters, digits, - and _", what,
                        ARN_PART_MAX);
    *part = hf_scope_copy(e->memory, wanted.len ? wanted : standard);
    return part->ptr ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status apply_options(struct hf_scope *s, struct engine *e,
                                    const struct hf_engine_options *o)
{
    if (o->stream_shards > SHARDS_MAX)
        return hf__fail(s, HF_INVALID, "stream_shards is %u; a stream has at most %d shards",
                        o->stream_shards, SHARDS_MAX);
    e->stream_shards = o->stream_shards ? o->stream_shards : DEFAULT_SHARDS;
    e->max_tables = o->max_tables ? o->max_tables : DEFAULT_TABLES;
    e->wording = o->wording == HF_WORDING_2026 ? HF__WORDING_2026 : HF__WORDING_CLASSIC;
    TRY(arn_part(s, e, "region", o->region, HF_STR("us-east-1"), &e->region));
    TRY(arn_part(s, e, "account", o->account, HF_STR("123456789012"), &e->account));
    if (o->buckets.ptr) {
        TRY(hf__bulk_bucket_check(s, o->buckets));
        e->transfers.buckets = hf_scope_copy(e->memory, o->buckets);
        if (!e->transfers.buckets.ptr)
            return hf__fail_nomem(s);
    }
    e->cache = hf__expr_cache_new(&e->env);
    return e->cache ? HF_OK : hf__fail_nomem(s);
}

enum { SCHEMA_TRIES = 60, SCHEMA_WAIT_NS = 5000000, SCHEMA_NAP_NS = 10000000 };

/*
 * While a writer waits for the lock, new readers wait, too, until the longest present read has
 * ended. So the writer waits only as long as short reads take, and then lets readers in for a
 * while. After about a second of that it waits until it gets the lock.
 */
void hf__schema_lock(struct engine *e)
{
    for (int i = 0; i < SCHEMA_TRIES; i++) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SCHEMA_WAIT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_rwlock_timedwrlock(&e->schema, &until) == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = SCHEMA_NAP_NS}, NULL);
    }
    pthread_rwlock_wrlock(&e->schema);
}

enum hf_status hf__schema_read(struct hf_scope *s, struct engine *e)
{
    if (pthread_rwlock_tryrdlock(&e->schema) == 0)
        return HF_OK;
    if (!hf__scope_may_wait(s))
        return hf__scope_lose_patience(s);
    pthread_rwlock_rdlock(&e->schema);
    return HF_OK;
}

static void init_locks(struct engine *e)
{
    pthread_rwlockattr_t fair;

    /* Operations on tables must not starve behind a stream of readers. */
    pthread_rwlockattr_init(&fair);
    pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&e->schema, &fair);
    pthread_rwlockattr_destroy(&fair);
    pthread_mutex_init(&e->sequencer.lock, NULL);
    pthread_mutex_init(&e->maintenance.lock, NULL);
    /* Maintenance must not sleep for an hour when somebody sets the clock back. */
    cond_monotonic_init(&e->maintenance.wake);
    pthread_mutex_init(&e->maintenance_lock, NULL);
    pthread_mutex_init(&e->counting, NULL);
    pthread_mutex_init(&e->blobs_lock, NULL);
    hf__transfers_init(e);
    for (size_t i = 0; i < LATCH_COUNT; i++)
        pthread_mutex_init(&e->latches[i].lock, NULL);
}

static void destroy_locks(struct engine *e)
{
    for (size_t i = 0; i < LATCH_COUNT; i++)
        pthread_mutex_destroy(&e->latches[i].lock);
    hf__transfers_destroy(e);
    pthread_mutex_destroy(&e->blobs_lock);
    pthread_mutex_destroy(&e->counting);
    pthread_mutex_destroy(&e->maintenance_lock);
    pthread_cond_destroy(&e->maintenance.wake);
    pthread_mutex_destroy(&e->maintenance.lock);
    pthread_mutex_destroy(&e->sequencer.lock);
    pthread_rwlock_destroy(&e->schema);
}

/* Free everything. A clean close does more before; a failed open does only this. */
static void engine_free(struct engine *e)
{
    struct hf_env env = e->env;

    hf__transfers_stop(e);
    hf__engine_maintenance_stop(e);
    hf__ship_close(e->shipper);
    if (e->opened)
        hf__store_snapshot_close(e->store, e->opened);
    hf__transfers_free(e);
    hf__backups_free(e);
    hf__catalog_free(e);
    hf__streams_free(e);
    hf__expr_cache_free(e->cache);
    hf_blobs_close(e->blobs);
    hf__store_close(e->store);
    hf_scope_free(e->memory);
    destroy_locks(e);
    hf__env_free(&env, e, sizeof(*e));
}

static void engine_close(struct hf_db *db)
{
    struct engine *e = (struct engine *)(void *)db;
    struct hf_scope *s = hf_scope_new(&e->env);

    hf__transfers_stop(e);
    assert(!e->sequencer.first); /* no call is under way */
    hf__engine_maintenance_stop(e);
    if (s && !e->read_only)
        hf__counts_save(s, e);
    hf_scope_free(s);
    engine_free(e);
}

static enum hf_status engine_wait_durable(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    return hf__engine_wait_durable(s, (struct engine *)(void *)db, ticket);
}

/* A database in memory has one blob store for all callers; it is freed with its last handle. */
static enum hf_status memory_blobs(struct hf_scope *s, struct engine *e, struct hf_blobs **blobs)
{
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&e->blobs_lock);
    if (!e->blobs)
        status = hf__blobs_open_memory(s, &e->env, &e->blobs);
    if (status == HF_OK)
        status = hf__blobs_share(s, e->blobs, blobs);
    pthread_mutex_unlock(&e->blobs_lock);
    return status;
}

static enum hf_status engine_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    struct engine *e = (struct engine *)(void *)db;
    struct blob_dir_options options = {.no_sync = e->no_sync};
    struct store_stats stats;

    TRY(hf__engine_writable(s, e, HF_STR("its blob store")));
    hf__store_stats(e->store, &stats);
    if (!stats.path.ptr)
        return memory_blobs(s, e, blobs);
    options.path = hf_scope_format(s, "%.*s/blobs", HF_FMT(stats.path));
    options.reserve = stats.kept_free; /* RocksDB must not meet a full disk */
    if (!options.path.ptr)
        return hf__fail_nomem(s);
    return hf__blobs_open_dir(s, &e->env, &options, blobs);
}

static struct hf_str engine_opener(struct hf_db *db)
{
    struct engine *e = (struct engine *)(void *)db;

    return hf_str_of(e->opener, sizeof(e->opener));
}

/* A write to a directory waits for the disk. A read does so where a block is not in the cache. */
static bool engine_is_quick(struct hf_db *db, enum hf_op op)
{
    struct engine *e = (struct engine *)(void *)db;

    if (op == HF_OP_GET_ITEM)
        return true;
    return e->in_memory &&
           (op == HF_OP_PUT_ITEM || op == HF_OP_UPDATE_ITEM || op == HF_OP_DELETE_ITEM);
}

static const struct db_calls engine_calls = {.call = engine_call,
                                             .is_quick = engine_is_quick,
                                             .sync = engine_wait_durable,
                                             .close = engine_close,
                                             .blobs = engine_blobs,
                                             .opener = engine_opener};

static struct hf_engine_options fill_options(const struct hf_engine_options *options)
{
    struct hf_engine_options o = {.size = sizeof(o)};

    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    return o;
}

/* If two opens got the same text, they would merely wait for each other's leases. */
static void make_opener(struct engine *e)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[ENGINE_OPENER_LEN / 2];

    hf__env_random(&e->env, random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++) {
        e->opener[2 * i] = digits[random[i] >> 4];
        e->opener[2 * i + 1] = digits[random[i] & 15];
    }
}

enum {
    KEY_FILTERS = 4, /* a filter of keys takes at most this part of what a memtable takes */
    KEY_FILTER_BYTES = 16 * 1024 * 1024
};

static enum hf_status start_backup(struct hf_scope *s, struct engine *e,
                                   const struct hf_engine_options *o)
{
    struct ship_options options = {.no_threads = o->no_upkeep_thread};
    struct store_stats stats;

    if (!o->backup)
        return HF_OK;
    hf__store_stats(e->store, &stats);
    options.directory = stats.path;
    TRY(hf__ship_fill(s, o->backup, &options.user));
    return hf__ship_open(s, &e->env, e->store, &options, &e->shipper);
}

enum hf_status hf__engine_open_on(struct hf_scope *s, struct hf__store *store,
                                  const struct hf_engine_options *options, struct hf_db **db)
{
    struct hf_engine_options o = fill_options(options);
    struct hf_env env = hf__env_fill(o.env);
    struct engine *e = hf__env_alloc(&env, sizeof(*e));
    struct store_stats stats;
    enum hf_status status;

    assert(store);
    *db = NULL;
    if (!e) {
        hf__store_close(store);
        return hf__fail_nomem(s);
    }
    memset(e, 0, sizeof(*e));
    e->db.calls = &engine_calls;
    e->env = env;
    e->store = store;
    e->snapshot_max = SNAPSHOT_MAX;
    e->no_sync = o.sync == HF_SYNC_NONE;
    e->key_filter_bytes =
        (o.memtable_bytes ? o.memtable_bytes : KEY_FILTERS * KEY_FILTER_BYTES) / KEY_FILTERS;
    hf__store_stats(store, &stats);
    e->in_memory = !stats.path.ptr;
    make_opener(e);
    e->read_only = o.read_only;
    init_locks(e);
    e->memory = hf_scope_new(&env);
    status = e->memory ? apply_options(s, e, &o) : hf__fail_nomem(s);
    if (status == HF_OK)
        status = load_all(s, e);
    if (status == HF_OK)
        status = start_backup(s, e, &o);
    if (status == HF_OK && !o.no_upkeep_thread && !o.read_only)
        status = hf__engine_maintenance_start(s, e);
    if (status == HF_OK && !o.no_upkeep_thread && !o.read_only)
        hf__transfers_start(e);
    if (status != HF_OK) {
        engine_free(e);
        return status;
    }
    *db = &e->db;
    return HF_OK;
}

static bool is_remote(struct hf_str url)
{
    struct hf_str rest;

    return str_after(url, HF_STR("http://"), &rest) || str_after(url, HF_STR("https://"), &rest) ||
           str_after(url, HF_STR("dynamodb:"), &rest);
}

/* Only a directory that is written to has a journal. */
static enum hf_status check_backup(struct hf_scope *s, struct hf_str url,
                                   const struct hf_engine_options *o)
{
    struct hf_str path;

    if (!str_after(url, HF_STR("embedded:"), &path))
        return hf__fail(
            s, HF_INVALID,
            "only a database in a directory (embedded:PATH) has continuous backups, not "
            "\"%.*s\"",
            HF_FMT(url));
    if (o->read_only)
        return hf__fail(s, HF_INVALID,
                        "a database that is opened read-only cannot have a continuous backup");
    return HF_OK;
}

enum hf_status hf_open(struct hf_scope *s, struct hf_str url,
                       const struct hf_engine_options *options, struct hf_db **db)
{
    struct hf_engine_options o = fill_options(options);
    struct hf_env env = hf__env_fill(o.env);
    struct hf_backup_options backup;
    struct hf__store *store;

    *db = NULL;
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    if (o.backup) {
        TRY(check_backup(s, url, &o));
        TRY(hf__ship_fill(s, o.backup, &backup));
        o.backup = &backup;
    }
    if (is_remote(url))
        return hf_connect(s, url, HF_OPTIONS(hf_client_options, .env = &env, .region = o.region),
                          db);
    TRY(open_store(s, &env, url, &o, &store));
    return hf__engine_open_on(s, store, &o, db);
}

void hf_engine_changes(struct hf_db *db, hf_engine_changes_fn *take, void *user)
{
    struct engine *e = hf__engine_of(db);

    if (!e)
        return;
    pthread_rwlock_rdlock(&e->schema);
    for (size_t i = 0; i < e->catalog.len; i++) {
        const struct table *table = e->catalog.tables[i];
        uint64_t changes = atomic_load_explicit(&table->counts->changes, memory_order_relaxed);

        if (changes)
            take(table->name, changes, user);
    }
    pthread_rwlock_unlock(&e->schema);
}

/* ---- for other languages -------------------------------------------------------------------- */

static enum hf_status sync_of(struct hf_scope *s, struct hf_str text, enum hf_sync *sync)
{
    if (!text.ptr || str_is(text, "full"))
        *sync = HF_SYNC_FULL;
    else if (str_is(text, "batch"))
        *sync = HF_SYNC_BATCH;
    else if (str_is(text, "none"))
        *sync = HF_SYNC_NONE;
    else
        return hf__fail(s, HF_INVALID, "\"sync\" is \"full\", \"batch\" or \"none\"");
    return HF_OK;
}

static enum hf_status open_bound(struct hf_scope *s, struct hf_str url,
                                 const struct hf_bind_url_options *options, struct hf_db **db)
{
    enum hf_sync sync = HF_SYNC_FULL;

    TRY(sync_of(s, options->sync, &sync));
    return hf_open(s, url,
                   HF_OPTIONS(hf_engine_options, .sync = sync, .read_only = options->read_only,
                              .no_create = options->no_create, .region = options->region),
                   db);
}

int hf_bind_open_url(const char *url, size_t url_len, const char *options, size_t options_len,
                     struct hf_bind **bind, char **answer, size_t *answer_len)
{
    return hf_bind_open_by(open_bound, url, url_len, options, options_len, bind, answer,
                           answer_len);
}

void hf_engine_stats(struct hf_db *db, struct hf_engine_stats *stats)
{
    struct engine *e = hf__engine_of(db);
    struct store_stats store;

    memset(stats, 0, sizeof(*stats));
    if (!e)
        return;
    hf__store_stats(e->store, &store);
    *stats = (struct hf_engine_stats){.syncs = store.syncs,
                                      .sync_waits = store.sync_waits,
                                      .disk_bytes = store.disk_bytes,
                                      .memory_bytes = store.memory_bytes,
                                      .stopped = store.stopped,
                                      .no_space = store.no_space,
                                      .read_only = store.read_only,
                                      .embedded = true,
                                      .path = store.path};
}

/* ---- continuous backups ---------------------------------------------------------------------- */

void hf_backup_health(struct hf_db *db, struct hf_backup_health *health)
{
    struct engine *e = hf__engine_of(db);

    *health = (struct hf_backup_health){.state = HF_BACKUP_OFF};
    if (e && e->shipper)
        hf__ship_health(e->shipper, health);
}

enum hf_status hf_backup_wait(struct hf_scope *s, struct hf_db *db)
{
    struct engine *e = hf__engine_of(db);

    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    if (!e || !e->shipper)
        return hf__fail(s, HF_UNSUPPORTED, "the database was opened without a backup");
    return hf__ship_wait(s, e->shipper);
}
