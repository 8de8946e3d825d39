/*
 * store/tables_test.c: when a map cannot be written as a table: the disk fails, there is no room,
 * no memory, or nothing to write.
 */
#include "store/tables.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "child.h"
#include "kinds.h"
#include "system.h"

enum { KIB = 1024, MIB = 1024 * KIB, SMALL = 256 * KIB, SOON = 5000 };

static enum hf_status open_store(struct test *t, struct hf_scope *s, const char *path,
                                 size_t memtable, uint64_t reserve, struct hf__store **store)
{
    struct store_options options = {.memtable_bytes = memtable,
                                    .reserve_bytes = reserve,
                                    .sync = STORE_SYNC_NONE};

    return hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, store);
}

/* A batch without changes is none: a store that had no other ones is empty, and opens again. */
TEST(store_tables, a_batch_that_changes_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store;

    for (int i = 0; i < 3; i++) {
        struct store_batch batch = {.ops = {.scope = s}};
        uint64_t ticket;

        CHECK_OK(open_store(t, s, path, SMALL, 0, &store));
        CHECK_OK(hf__store_write(s, store, &batch, &ticket));
        CHECK_OK(hf__store_sync(s, store, ticket));
        hf__batch_delete_range(&batch, hf_bytes_of("a", 1), hf_bytes_of("b", 1));
        CHECK_OK(hf__store_write(s, store, &batch, &ticket));
        CHECK_OK(hf__store_sync(s, store, ticket));
        CHECK_INT(0, hf__store_written(store));
        hf__store_close(store);
    }
    hf_scope_free(s);
}

/* Also where the map never gets full, as with one key that is written again and again: otherwise
 * the journal would grow until the disk is full. */
TEST(store_tables, a_table_that_fails_stops_writes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    enum hf_status status = HF_OK;
    struct hf__store *store;
    struct store_stats stats;
    struct hf_bytes value;
    uint32_t n = 0;

    CHECK_OK(open_store(t, s, path, SMALL, 0, &store));
    atomic_store(&write_target, ".sst");
    atomic_store(&write_errno, EIO);
    for (; status == HF_OK && n < 100 * SOON; n += status == HF_OK)
        status = put_hot(s, store, n + 1);
    CHECK(status == HF_STOPPED || (status == HF_IO && hf_scope_error(s)->may_have_happened));
    CHECK(strstr(hf_scope_error_text(s), "writing a table file failed: "));
    hf__store_stats(store, &stats);
    CHECK(stats.stopped);
    atomic_store(&write_errno, 0);
    atomic_store(&write_target, NULL);
    hf__store_close(store);
    CHECK_OK(open_store(t, s, path, SMALL, 0, &store));
    CHECK_OK(hf__store_get(s, store, NULL, hf_bytes_of("hot", 3), &value));
    CHECK(value.len == HOT_BYTES && load_u32be(value.ptr) >= n);
    hf__store_close(store);
    hf_scope_free(s);
}

/* Who has no time to wait reads what is in memory, and is told of the rest; nothing is read for it. */
TEST(store_tables, a_read_without_time_leaves_the_disk_alone)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__patience patience = {.bytes = MIB, .until_ns = UINT64_MAX, .no_waits = true};
    const struct hf_bytes key = hf_bytes_of("k", 1), none = hf_bytes_of("n", 1);
    struct store_batch batch = {.ops = {.scope = s}};
    struct hf__store *store;
    struct hf_bytes value;
    uint64_t ticket;

    CHECK_OK(open_store(t, s, path, SMALL, 0, &store));
    hf__batch_put(&batch, key, hf_bytes_of("value", 5));
    CHECK_OK(hf__store_write(s, store, &batch, &ticket));
    hf__scope_set_patience(s, &patience);
    CHECK_OK(hf__store_get(s, store, NULL, key, &value));
    CHECK_INT(5, value.len);
    hf__store_close(store); /* now it is in a table */

    hf__scope_set_patience(s, NULL);
    CHECK_OK(open_store(t, s, path, SMALL, 0, &store));
    for (int round = 0; round < 2; round++) {
        hf__scope_set_patience(s, &patience);
        CHECK_INT(HF_TIMEOUT, hf__store_get(s, store, NULL, key, &value));
        CHECK(patience.lost);
        patience.lost = false;
    }
    hf__scope_set_patience(s, NULL);
    CHECK_OK(hf__store_get(s, store, NULL, key, &value));
    hf__scope_set_patience(s, &patience);
    value = (struct hf_bytes){0};
    CHECK_OK(hf__store_get(s, store, NULL, key, &value));
    CHECK_INT(5, value.len);
    value = (struct hf_bytes){0};
    CHECK_OK(hf__store_get(s, store, NULL, none, &value)); /* of the same block */
    CHECK(!value.ptr && !patience.lost);
    hf__scope_set_patience(s, NULL);
    hf__store_close(store);
    hf_scope_free(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

static struct {
    pthread_t writer;
    atomic_bool fails; /* for all threads but that one */
    atomic_int failed;
} memory;

static void *alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (atomic_load(&memory.fails) && !pthread_equal(pthread_self(), memory.writer)) {
        atomic_fetch_add(&memory.failed, 1);
        return NULL;
    }
    return realloc(ptr, new_size);
}

/* Who writes tables has no memory for a while: writes are refused then, and go on afterwards. */
TEST(store_tables, memory_that_is_missing_for_a_while)
{
    struct hf_env env = {.size = sizeof(env), .alloc = alloc};
    struct store_options options = {.memtable_bytes = SMALL, .sync = STORE_SYNC_NONE};
    struct hf_scope *s = hf_scope_new(&env);
    struct acked acked = {{0}};
    enum hf_status status = HF_OK;
    struct hf__store *store;
    uint32_t n = 0;

    (void)t;
    memory.writer = pthread_self();
    CHECK_OK(hf__store_open_disk(s, &env, hf_str_from(test_directory(t)), &options, &store));
    for (int round = 0; round < 2; round++) {
        atomic_store(&memory.fails, true);
        for (uint32_t end = n + SOON; status == HF_OK && n < end; n += status == HF_OK)
            status = write_items(s, store, 0, n + 1, n + 1, false);
        CHECK_INT(HF_NOMEM, status);
        CHECK(!hf_scope_error(s)->may_have_happened && atomic_load(&memory.failed) > 0);
        atomic_store(&memory.fails, false);
        CHECK_OK(write_items(s, store, 0, n + 1, n + SOON, false));
        n += SOON;
        status = HF_OK;
    }
    acked.by_thread[0] = n;
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    hf_scope_free(s);
}

/* ---- room ----------------------------------------------------------------------------------- */

/* A table needs room for itself, and no more than who set the reserve wanted to be free besides. */
TEST(store_tables, a_small_reserve_on_a_small_disk)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct acked acked = {.by_thread = {6 * SOON}};
    struct hf__store *store;

    atomic_store(&system_bytes_free, 10 * MIB);
    CHECK_OK(open_store(t, s, path, 4 * MIB, MIB, &store));
    CHECK_OK(write_items(s, store, 0, 1, 6 * SOON, false)); /* 10 MB: five tables */
    hf__store_close(store);
    CHECK_OK(open_store(t, s, path, 4 * MIB, MIB, &store));
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    atomic_store(&system_bytes_free, 0);
    hf_scope_free(s);
}

/* A batch that is larger than what is free is not made a table; not by a close, nor by an open
 * that has to replay it, and for which next to no room is enough. */
TEST(store_tables, no_room_for_a_large_table)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct store_batch batch = {.ops = {.scope = s}};
    struct hf__store *store;
    struct hf_bytes value;
    uint64_t ticket;
    uint8_t *bytes = calloc(1, MIB);

    CHECK(bytes);
    CHECK_OK(open_store(t, s, path, 4 * MIB, MIB, &store));
    for (uint8_t i = 1; i <= 8; i++)
        hf__batch_put(&batch, hf_bytes_of(&i, 1), hf_bytes_of(bytes, MIB));
    atomic_store(&write_target, ".sst"); /* so that it is not one before there is no room */
    atomic_store(&write_errno, EIO);
    CHECK_OK(hf__store_write(s, store, &batch, &ticket));
    atomic_store(&system_bytes_free, 3 * MIB);
    hf__store_close(store);
    atomic_store(&write_errno, 0);
    atomic_store(&write_target, NULL);
    CHECK_OK(open_store(t, s, path, 4 * MIB, MIB, &store)); /* it stays in memory */
    CHECK_OK(hf__store_get(s, store, NULL, hf_bytes_of("\x08", 1), &value));
    CHECK_INT(MIB, value.len);
    hf__store_close(store);
    atomic_store(&system_bytes_free, MIB / 2);
    CHECK_STATUS(HF_NO_SPACE, open_store(t, s, path, 4 * MIB, MIB, &store));
    CHECK(strstr(hf_scope_error_text(s), "--read-only") &&
          strstr(hf_scope_error_text(s), "--reserve"));
    atomic_store(&system_bytes_free, 0);
    CHECK_OK(open_store(t, s, path, 4 * MIB, MIB, &store));
    CHECK_OK(hf__store_get(s, store, NULL, hf_bytes_of("\x08", 1), &value));
    CHECK_INT(MIB, value.len);
    hf__store_close(store);
    free(bytes);
    hf_scope_free(s);
}
