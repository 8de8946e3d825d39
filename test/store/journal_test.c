/*
 * store/journal_test.c: how long files of the journal are kept. Keys that are written again and
 * again stay in memory until the journal is large; then one table replaces all of it.
 */
#include "store/store.h"

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "kinds.h"
#include "system.h"

enum {
    KIB = 1024,
    MEMTABLE = 256 * KIB,
    SEGMENT = MEMTABLE / 2 / 5 * 2,    /* of the journal, as disk.h has it */
    FILES = 4 * MEMTABLE / SEGMENT,    /* that are kept when nothing is synced, */
    SYNCED = MEMTABLE / SEGMENT,       /* and when everything is */
    OF_FREE = 8,                       /* and the part of the free space that they may be */
    RECORD = HOT_BYTES + 128,          /* more than a change takes in the journal */
    WRITES_OF_FILE = SEGMENT / RECORD, /* fewer than fit */
    PATIENCE = 1000,                   /* looks, of 5 ms each */
    LARGE = 4096 * KIB                 /* a record that no file has room for */
};

static void open_store(struct test *t, struct fixture *f, enum store_sync sync)
{
    struct store_options options = {.memtable_bytes = MEMTABLE, .sync = sync};

    CHECK_OK(hf__store_open_disk(f->s, test_env(t), hf_str_from(f->path), &options, &f->store));
}

static void begin(struct test *t, struct fixture *f, enum store_sync sync)
{
    *f = (struct fixture){.s = hf_scope_new(test_env(t)), .path = test_directory(t)};
    open_store(t, f, sync);
}

static uint32_t hot(struct fixture *f)
{
    struct hf_bytes value;

    CHECK_OK(hf__store_get(f->s, f->store, NULL, hf_bytes_of("hot", 3), &value));
    return value.len == HOT_BYTES ? load_u32be(value.ptr) : 0;
}

static int files_in(struct fixture *f, const char *folder)
{
    DIR *dir = opendir(hf_scope_format(f->s, "%s/%s", f->path, folder).ptr);
    struct dirent *entry;
    int files = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        files += entry->d_name[0] != '.';
    closedir(dir);
    return files;
}

/* Wait until the journal has at most so many files. */
static bool has_shrunk(struct fixture *f, int files)
{
    for (int i = 0; i < PATIENCE && files_in(f, "journal") > files; i++)
        usleep(5000);
    return files_in(f, "journal") <= files;
}

static void check_hot_keys(struct test *t, enum store_sync sync, int kept)
{
    struct fixture f;
    uint32_t n = 0;

    begin(t, &f, sync);
    /* A file is begun ahead of its time: files are those that are kept, this one and the next. */
    while (files_in(&f, "journal") <= kept)
        CHECK_OK(put_hot(f.s, f.store, ++n));
    CHECK(n >= (unsigned)(kept - 1) * WRITES_OF_FILE);
    CHECK_INT(0, files_in(&f, "db"));
    for (int i = 0; i < 3 * WRITES_OF_FILE; i++)
        CHECK_OK(put_hot(f.s, f.store, ++n));
    for (int i = 0; i < PATIENCE && files_in(&f, "db") == 0; i++)
        usleep(5000);
    CHECK(files_in(&f, "db") > 0);
    for (int i = 0; i < 4 * kept * WRITES_OF_FILE; i++)
        CHECK_OK(put_hot(f.s, f.store, ++n));
    CHECK(has_shrunk(&f, 2 * kept + 2)); /* as many again may wait for being used again */
    hf__store_close(f.store);
    open_store(t, &f, sync);
    CHECK_INT(n, hot(&f));
    CHECK_INT(1, files_in(&f, "journal"));
    fixture_close(&f);
}

TEST(store_journal_files, hot_keys_stay_in_the_journal)
{
    check_hot_keys(t, STORE_SYNC_NONE, FILES);
    check_hot_keys(t, STORE_SYNC_FULL, SYNCED);
}

/* Fresh keys fill maps: their files go with their tables, long before there are as many. */
TEST(store_journal_files, files_go_with_their_tables)
{
    struct fixture f;

    begin(t, &f, STORE_SYNC_NONE);
    for (uint32_t n = 1; n < 20 * WRITES_OF_FILE; n++) {
        uint8_t value[KIB] = {0};

        store_u32be(value, n);
        CHECK_OK(put_bytes(f.s, f.store, hf_bytes_of(value, 4), hf_bytes_of(value, sizeof(value))));
    }
    CHECK(has_shrunk(&f, 5));
    fixture_close(&f);
}

/* Where little is free, little is kept. */
TEST(store_journal_files, a_part_of_what_is_free)
{
    const size_t times = 16; /* as large is everything here */
    struct store_options options = {.memtable_bytes = times * MEMTABLE, .sync = STORE_SYNC_NONE};
    struct fixture f = {.s = hf_scope_new(test_env(t)), .path = test_directory(t)};
    int kept = 6;

    atomic_store(&system_bytes_free, OF_FREE * (uint64_t)kept * times * SEGMENT);
    CHECK_OK(hf__store_open_disk(f.s, test_env(t), hf_str_from(f.path), &options, &f.store));
    for (uint32_t n = 0; n < (FILES - 4) * times * WRITES_OF_FILE; n++)
        CHECK_OK(put_hot(f.s, f.store, n));
    CHECK(has_shrunk(&f, kept + 2));
    CHECK(files_in(&f, "db") > 0);
    atomic_store(&system_bytes_free, 0);
    fixture_close(&f);
}

/* Where too little is free, nothing is kept, so that writes may go on. */
TEST(store_journal_files, a_disk_that_gets_full)
{
    struct store_stats stats;
    struct fixture f;
    uint32_t n = 0;

    begin(t, &f, STORE_SYNC_NONE);
    while (files_in(&f, "journal") < FILES - 1)
        CHECK_OK(put_hot(f.s, f.store, ++n));
    CHECK_INT(0, files_in(&f, "db"));
    atomic_store(&system_bytes_free, 12 << 20); /* less than the reserve, enough for a table */
    hf__store_stats(f.store, &stats);
    CHECK(stats.no_space);
    CHECK_STATUS(HF_NO_SPACE, put_hot(f.s, f.store, n + 1));
    CHECK(has_shrunk(&f, 2));
    atomic_store(&system_bytes_free, 0);
    CHECK_OK(put_hot(f.s, f.store, ++n));
    hf__store_close(f.store);
    open_store(t, &f, STORE_SYNC_NONE);
    CHECK_INT(n, hot(&f));
    fixture_close(&f);
}

/* ---- files that are used again -------------------------------------------------------------- */

/* Bytes of all files of the journal, and how many were made after a time; where the file system
 * does not tell when, none. */
static uint64_t journal_bytes(struct fixture *f, struct timespec since, int *made)
{
    DIR *dir = opendir(hf_scope_format(f->s, "%s/journal", f->path).ptr);
    struct dirent *entry;
    struct statx info;
    uint64_t sum = 0;

    CHECK(dir);
    *made = 0;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' ||
            statx(dirfd(dir), entry->d_name, 0, STATX_SIZE | STATX_BTIME, &info))
            continue;
        sum += info.stx_size;
        *made +=
            (info.stx_mask & STATX_BTIME) && (info.stx_btime.tv_sec > since.tv_sec ||
                                              (info.stx_btime.tv_sec == since.tv_sec &&
                                               info.stx_btime.tv_nsec > (uint32_t)since.tv_nsec));
    }
    closedir(dir);
    return sum;
}

/*
 * Filling a file with zeros costs as much as writing it: when all are there, none is made. Maintenance
 * that comes late has one more made, and on a busy machine it may come late several times: such a
 * round says nothing, and the next one is looked at. A journal that makes its files does so in all.
 */
TEST(store_journal_files, synced_files_are_used_again)
{
    enum { ROUNDS = 12 };
    struct timespec since;
    struct fixture f;
    int made = INT_MAX;

    begin(t, &f, STORE_SYNC_FULL);
    for (int round = 0; round < 1 + ROUNDS && made > 2; round++) {
        clock_gettime(CLOCK_REALTIME, &since);
        for (uint32_t n = 0; n < 6 * (SYNCED + 1) * WRITES_OF_FILE; n++)
            CHECK_OK(put_hot(f.s, f.store, n));
        if (round > 0) /* the first one makes them */
            journal_bytes(&f, since, &made);
    }
    CHECK(made <= 2);
    fixture_close(&f);
}

/* But not one that a single large record made large. */
TEST(store_journal_files, large_files_are_not)
{
    uint8_t *value = calloc(1, LARGE);
    struct timespec since = {0};
    struct fixture f;
    uint64_t most = 2 * (uint64_t)MEMTABLE + 3 * SEGMENT + LARGE;
    int made;

    CHECK(value);
    begin(t, &f, STORE_SYNC_FULL);
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_OK(put_bytes(f.s, f.store, hf_bytes_of("large", 5), hf_bytes_of(value, LARGE)));
        for (uint32_t n = 0; n < 50; n++)
            CHECK_OK(put_hot(f.s, f.store, n));
    }
    for (int i = 0; i < PATIENCE && journal_bytes(&f, since, &made) > most; i++)
        usleep(5000);
    CHECK(journal_bytes(&f, since, &made) <= most);
    fixture_close(&f);
    free(value);
}

/* ---- replaying ------------------------------------------------------------------------------ */

static struct {
    atomic_llong used, most;
} memory;

static void *counted(void *ptr, size_t old_size, size_t new_size, void *user)
{
    long long more = (long long)new_size - (long long)old_size;
    long long used = atomic_fetch_add(&memory.used, more) + more;

    (void)user;
    if (used > atomic_load(&memory.most))
        atomic_store(&memory.most, used);
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* A journal may be much longer than what replaying it leaves in memory. */
TEST(store_journal_files, replaying_needs_little_memory)
{
    const struct store_options options = {.memtable_bytes = 8 * 1024 * KIB,
                                          .sync = STORE_SYNC_NONE};
    const struct hf_env env = {.size = sizeof(env), .alloc = counted};
    const char *path = test_directory(t);
    struct hf_scope *s = hf_scope_new(&env);
    struct acked reported = {{0}};
    struct hf__store *store;
    int out;
    pid_t pid = child_start("small", path, 1, 30000, NULL, &out);
    int status = child_wait(pid, out, &reported);

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_OK);
    CHECK_OK(hf__store_open_disk(s, &env, hf_str_from(path), &options, &store));
    CHECK(atomic_load(&memory.most) < 4 * 1024 * KIB); /* a file of the journal, and a little */
    hf__store_close(store);
    hf_scope_free(s);
}
