/*
 * store/compact_idle_test.c: tables that are merged when nobody writes, and when they are not.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "child.h"
#include "system.h"

/* ---- helpers -------------------------------------------------------------------------------- */

enum { QUIET_MS = 1000, SOON_MS = 200, MEMTABLE = 8 << 20 };

static int tables_in(const char *path)
{
    char pattern[512];
    glob_t found;
    int len;

    snprintf(pattern, sizeof(pattern), "%s/db/*.sst", path);
    len = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return len;
}

static bool has_one_table(const char *path)
{
    for (int i = 0; i < 200 && tables_in(path) != 1; i++)
        usleep(50000);
    return tables_in(path) == 1;
}

static struct hf__store *open_quiet(struct test *t, struct hf_scope *s, const char *path,
                                    uint32_t quiet_ms)
{
    struct store_options options = {.quiet_ms = quiet_ms,
                                    .memtable_bytes = MEMTABLE,
                                    .reserve_bytes = 1 << 20};
    struct hf__store *store;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    return store;
}

/* The nth hundred items, and with the close a table of them. */
static void add_table(struct hf_scope *s, struct hf__store *store, uint32_t n)
{
    struct acked acked = {{100 * n}};

    CHECK_OK(write_items(s, store, 0, 100 * n - 99, 100 * n, false));
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
}

/* Three tables, and their store, opened just now. */
static struct hf__store *store_with_tables(struct test *t, struct hf_scope *s, const char *path,
                                           uint32_t quiet_ms)
{
    for (uint32_t n = 1; n <= 3; n++) {
        add_table(s, open_quiet(t, s, path, UINT32_MAX), n);
        CHECK_INT(n, tables_in(path));
    }
    return open_quiet(t, s, path, quiet_ms);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Of three tables, too few for a compaction, one is left when nobody writes; and after the next
 * ones, which come without compactions, again. */
TEST(store_compact_idle, tables_are_merged_when_nobody_writes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store = store_with_tables(t, s, path, SOON_MS);
    struct acked acked = {{500}};

    for (uint32_t n = 4; n <= 5; n++) {
        CHECK(has_one_table(path));
        add_table(s, store, n);
        CHECK_INT(2, tables_in(path));
        store = open_quiet(t, s, path, SOON_MS);
    }
    CHECK(acked_is_there(s, store, &acked));
    CHECK_OK(hf__store_verify(s, store, NULL));
    hf__store_close(store);
    hf_scope_free(s);
}

/* After a failed write nothing more is written, not even that. */
TEST(store_compact_idle, a_stopped_store_stays_as_it_is)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store = store_with_tables(t, s, path, QUIET_MS);

    write_target = "/journal/";
    write_errno = EIO;
    CHECK_STATUS(HF_IO, write_items(s, store, 0, 301, 301, true));
    write_errno = 0;
    write_target = NULL;
    usleep(2 * QUIET_MS * 1000);
    CHECK_INT(3, tables_in(path));
    hf__store_close(store);
    hf_scope_free(s);
}

/* Somebody else has filled the disk since the last write: they wait until there is room again. */
TEST(store_compact_idle, a_full_disk_is_not_filled_any_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store = store_with_tables(t, s, path, QUIET_MS);
    struct acked acked = {{300}};

    system_bytes_free = 64 * 1024;
    usleep(2 * QUIET_MS * 1000);
    CHECK_INT(3, tables_in(path));
    system_bytes_free = 0;
    CHECK(has_one_table(path));
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    hf_scope_free(s);
}
