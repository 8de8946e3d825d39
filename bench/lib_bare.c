/*
 * bench/lib_bare.c: writing to RocksDB with nothing in between, to compare the engine with.
 *
 * Both loops write 1.1 KB under a random one of as many keys as the engine's table has items, one
 * key per batch, durable before the next. The one goes through store.h, whose writers share an
 * fsync; the other asks RocksDB for a synced write, which has a group commit of its own. RocksDB is
 * set up as the store sets it up, as far as writing goes.
 */
#include "lib_data.h"

#include "store/store.h"

#include <rocksdb/c.h>

enum { BARE_KEY = 24, BARE_VALUE = 1126, BUFFER_BYTES = 16 << 20, LOAD_BATCH = 100 };

struct bench_bare {
    uint64_t items;
    struct hf__store *store; /* one of the two */
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *synced;
    uint8_t text[TEXT_BYTES];
};

static struct bench_bare *bare_new(uint64_t items)
{
    struct bench_bare *bare = calloc(1, sizeof(*bare));
    struct bench_dice dice = {.state = 2};

    if (!bare)
        bench_die("out of memory");
    bare->items = items;
    for (size_t i = 0; i < TEXT_BYTES; i++)
        bare->text[i] = (uint8_t)bench_roll(&dice);
    return bare;
}

/* Scattered, and as long as an engine's key. */
static void key_of(uint8_t key[BARE_KEY], uint64_t number)
{
    struct bench_dice dice = {.state = number};

    memset(key, 0, BARE_KEY);
    store_u64be(key, bench_roll(&dice));
    store_u64be(key + 8, number);
}

static struct hf_bytes value_of(const struct bench_bare *bare, struct bench_dice *dice)
{
    return hf_bytes_of(bare->text + bench_below(dice, TEXT_BYTES - BARE_VALUE), BARE_VALUE);
}

/* ---- through the store ----------------------------------------------------------------------- */

static enum hf_status store_put(struct hf_scope *s, struct bench_bare *bare,
                                struct bench_dice *dice, uint64_t first, size_t count,
                                uint64_t *ticket)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint8_t key[BARE_KEY];

    for (size_t i = 0; i < count; i++) {
        key_of(key, first + i);
        hf__batch_put(&batch, hf_bytes_of(key, sizeof(key)), value_of(bare, dice));
    }
    return hf__store_write(s, bare->store, &batch, ticket);
}

struct bench_bare *bench_bare_open_store(const char *path, uint64_t items)
{
    const struct store_options options = {.sync = STORE_SYNC_FULL};
    struct bench_bare *bare = bare_new(items);
    struct hf_scope *s = hf_scope_new(&bench_env);
    struct bench_dice dice = {.state = 3};
    enum hf_status status;
    uint64_t ticket = 0;

    if (!s)
        bench_die("out of memory");
    status = hf__store_open_disk(s, &bench_env, hf_str_from(path), &options, &bare->store);
    for (uint64_t i = 0; status == HF_OK && i < items; i += LOAD_BATCH) {
        hf_scope_reset(s);
        status = store_put(s, bare, &dice, i, LOAD_BATCH, &ticket);
    }
    if (status == HF_OK)
        status = hf__store_sync(s, bare->store, ticket);
    if (status != HF_OK)
        bench_die("%s: %s", path, hf_scope_error_text(s));
    hf_scope_free(s);
    return bare;
}

enum hf_status bench_op_bare_store(struct bench_worker *w)
{
    struct bench_bare *bare = w->user;
    enum hf_status status;
    uint64_t ticket;

    bench_begin(w);
    status = store_put(w->s, bare, &w->dice, bench_below(&w->dice, bare->items), 1, &ticket);
    if (status == HF_OK)
        status = hf__store_sync(w->s, bare->store, ticket);
    bench_end(w);
    w->items++;
    return status;
}

/* ---- straight -------------------------------------------------------------------------------- */

static enum hf_status rocksdb_put_some(struct hf_scope *s, const struct bench_bare *bare,
                                       const rocksdb_writeoptions_t *options,
                                       struct bench_dice *dice, uint64_t first, size_t count)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    enum hf_status status = HF_OK;
    uint8_t key[BARE_KEY];
    char *error = NULL;

    for (size_t i = 0; i < count; i++) {
        struct hf_bytes value = value_of(bare, dice);

        key_of(key, first + i);
        rocksdb_writebatch_put(batch, (const char *)key, sizeof(key), (const char *)value.ptr,
                               value.len);
    }
    rocksdb_write(bare->db, options, batch, &error);
    rocksdb_writebatch_destroy(batch);
    if (error)
        status = hf__fail(s, HF_IO, "%s", error);
    rocksdb_free(error);
    return status;
}

struct bench_bare *bench_bare_open_rocksdb(const char *path, uint64_t items)
{
    struct bench_bare *bare = bare_new(items);
    struct hf_scope *s = hf_scope_new(NULL);
    struct bench_dice dice = {.state = 4};
    rocksdb_options_t *o = bare->options = rocksdb_options_create();
    char *error = NULL;

    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_write_buffer_size(o, BUFFER_BYTES);
    rocksdb_options_set_max_write_buffer_number(o, 2);
    rocksdb_options_set_max_bytes_for_level_base(o, (uint64_t)4 * BUFFER_BYTES);
    rocksdb_options_set_target_file_size_base(o, BUFFER_BYTES);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb_options_set_max_background_jobs(o, 2);
    rocksdb_options_set_enable_write_thread_adaptive_yield(o, 0);
    rocksdb_options_set_compression(o, rocksdb_no_compression);
    bare->db = rocksdb_open(o, path, &error);
    if (error || !s)
        bench_die("%s: %s", path, error ? error : "out of memory");
    bare->synced = rocksdb_writeoptions_create();
    for (uint64_t i = 0; i < items; i += LOAD_BATCH)
        if (rocksdb_put_some(s, bare, bare->synced, &dice, i, LOAD_BATCH) != HF_OK)
            bench_die("%s: %s", path, hf_scope_error_text(s));
    rocksdb_writeoptions_set_sync(bare->synced, 1);
    hf_scope_free(s);
    return bare;
}

enum hf_status bench_op_bare_rocksdb(struct bench_worker *w)
{
    const struct bench_bare *bare = w->user;
    enum hf_status status;

    bench_begin(w);
    status =
        rocksdb_put_some(w->s, bare, bare->synced, &w->dice, bench_below(&w->dice, bare->items), 1);
    bench_end(w);
    w->items++;
    return status;
}

void bench_bare_close(struct bench_bare *bare)
{
    hf__store_close(bare->store);
    if (bare->db) {
        rocksdb_close(bare->db);
        rocksdb_writeoptions_destroy(bare->synced);
        rocksdb_options_destroy(bare->options);
    }
    free(bare);
}
