/*
 * store/disk_test.c: the RocksDB store and its directory: opening, locking, syncs that are shared,
 * slow or fail. fdatasync(), write(), pwrite() and pread() of this program are our own, so that a
 * test can make those of the store and of RocksDB fail or take their time.
 */
#include "child.h"
#include "image.h"
#include "power.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rocksdb/c.h>
#include <xxhash.h>

#include "store/journal_form.h"
#include "system.h"

/* ---- the system's calls, as this test wants them -------------------------------------------- */

static atomic_int sync_delay_ms;
atomic_int sync_errno;
static atomic_int sync_calls;
static atomic_int sync_errno_once; /* of files of the journal, as the system does it: */
static atomic_int filled_fd = -1;  /* once per opened file, of which this is the first */

atomic_int write_errno;
const char *_Atomic write_target;
atomic_int read_errno;
const char *_Atomic read_target;
atomic_uint_fast64_t system_bytes_free;

static bool is_in(int fd, const char *target);

/* A write to a file of the journal has failed: everybody who opened it before hears of it once. */
static int once_per_file(int fd)
{
    int none = -1;

    if (!atomic_load(&sync_errno_once) || !is_in(fd, "/journal/"))
        return 0;
    /* Files are told apart by their descriptors: nobody here opens and closes that quickly. */
    if (!atomic_compare_exchange_strong(&filled_fd, &none, fd) && none == fd)
        return 0;
    return atomic_load(&sync_errno_once);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    int error = atomic_load(&sync_errno);
    size_t began = power_sync_begins();

    if (!error)
        error = once_per_file(fd);

    atomic_fetch_add(&sync_calls, 1);
    if (atomic_load(&sync_delay_ms))
        usleep((useconds_t)atomic_load(&sync_delay_ms) * 1000);
    if (error) {
        errno = error;
        return -1;
    }
    error = power_skips_syncs() ? 0 : (int)syscall(SYS_fdatasync, fd);
    if (error == 0)
        power_synced(fd, began);
    return error;
}

static bool is_in(int fd, const char *target)
{
    char link[32], name[256];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, name, sizeof(name) - 1);
    if (len < 0 || !target)
        return true;
    name[len] = '\0';
    return strstr(name, target);
}

/* Whether a file's name has write_target in it. */
static bool is_target(int fd)
{
    return is_in(fd, atomic_load(&write_target));
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t len)
{
    int error = atomic_load(&write_errno);
    ssize_t done;

    if (error && fd > STDERR_FILENO && is_target(fd)) {
        errno = error;
        return -1;
    }
    power_write_begins();
    done = syscall(SYS_write, fd, bytes, len);
    if (done > 0)
        power_wrote(fd, bytes, (size_t)done, -1);
    power_write_ends();
    return done;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *bytes, size_t len,
                                                      off_t at)
{
    int error = atomic_load(&write_errno);
    ssize_t done;

    if (error && is_target(fd)) {
        errno = error;
        return -1;
    }
    power_write_begins();
    done = syscall(SYS_pwrite64, fd, bytes, len, at);
    if (done > 0)
        power_wrote(fd, bytes, (size_t)done, at);
    power_write_ends();
    return done;
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void *bytes, size_t len, off_t at)
{
    int error = atomic_load(&read_errno);

    if (error && is_in(fd, atomic_load(&read_target))) {
        errno = error;
        return -1;
    }
    return syscall(SYS_pread64, fd, bytes, len, at);
}

__attribute__((visibility("default"))) int fstatvfs(int fd, struct statvfs *info)
{
    uint64_t bytes = atomic_load(&system_bytes_free);
    struct statfs here;

    if (fstatfs(fd, &here))
        return -1;
    memset(info, 0, sizeof(*info));
    info->f_frsize = (unsigned long)here.f_bsize;
    info->f_bavail = bytes ? bytes / info->f_frsize : here.f_bavail;
    return 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* A copy of a store that was killed, on a file system that is only read: that need not be able to
 * sync. A failed sync is one all the same. */
TEST(store_disk, read_from_where_nothing_can_be_synced)
{
    static const int errors[] = {EINVAL, EROFS, EIO};
    const struct store_options to_read = {.read_only = true};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t), *image;
    struct acked acked = {.by_thread = {50}};
    struct hf__store *store;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, 1, 50, true));
    image = crash_image(t, s, path);
    hf__store_close(store);
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        enum hf_status status;

        atomic_store(&sync_errno, errors[i]);
        status = hf__store_open_disk(s, test_env(t), hf_str_from(image), &to_read, &store);
        atomic_store(&sync_errno, 0);
        CHECK_INT(errors[i] == EIO ? HF_IO : HF_OK, status);
        if (status != HF_OK)
            continue;
        CHECK(acked_is_there(s, store, &acked));
        hf__store_close(store);
    }
    hf_scope_free(s);
}

TEST(store_disk, a_reopened_store_has_everything)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = in(s, test_directory(t), "new");
    struct acked acked = {.by_thread = {50}};
    struct hf__store *store;
    struct store_stats stats;
    struct newest segment;
    struct stat info;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0700);
    CHECK_OK(write_items(s, store, 0, 1, 25, true));
    CHECK_OK(write_items(s, store, 0, 26, 50, false));
    CHECK(hf__store_durable(store) < hf__store_written(store));
    hf__store_close(store);
    /* It is in tables: there is no journal to replay, not even what is in it. */
    segment = newest_segment(s, path);
    CHECK(segment.end > JOURNAL_START && truncate(segment.file, JOURNAL_START) == 0);
    CHECK_OK(open_at(t, s, path, &store));
    CHECK(acked_is_there(s, store, &acked));
    CHECK_INT(hf__store_written(store), hf__store_durable(store));
    hf__store_stats(store, &stats);
    CHECK(stats.disk_bytes > 50 * 300 && stats.memory_bytes > 0);
    CHECK(!stats.stopped && !stats.no_space);
    hf__store_close(store);
    hf__store_close(NULL);
    hf_scope_free(s);
}

TEST(store_disk, all_settings_open)
{
    static const struct store_options cases[] = {
        {.sync = STORE_SYNC_BATCH, .window_ms = 5},
        {.sync = STORE_SYNC_NONE, .no_verify = true},
        {.compress = true, .cache_bytes = 1 << 20},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct acked acked = {{0}};
    struct hf__store *store;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &cases[i], &store));
        CHECK(acked_is_there(s, store, &acked));
        CHECK_OK(write_items(s, store, 0, acked.by_thread[0] + 1, acked.by_thread[0] + 20, true));
        acked.by_thread[0] += 20;
        if (cases[i].sync == STORE_SYNC_BATCH) {
            for (int wait = 0; wait < 1000; wait++)
                if (hf__store_durable(store) < hf__store_written(store))
                    usleep(5000);
            CHECK_INT(hf__store_written(store), hf__store_durable(store));
        }
        hf__store_close(store);
    }
    hf_scope_free(s);
}

TEST(store_disk, two_openers)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct acked acked = {{0}};
    struct hf__store *store, *second;
    int out, status;
    pid_t pid;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_STATUS(HF_LOCKED, open_at(t, s, path, &second));
    CHECK(!second);
    CHECK(strstr(hf_scope_error_text(s), path));
    pid = child_start("open", path, 0, 0, NULL, &out);
    status = child_wait(pid, out, &acked);
    CHECK(WIFEXITED(status));
    CHECK_INT(HF_LOCKED, WEXITSTATUS(status));
    CHECK_OK(write_items(s, store, 0, 1, 5, true)); /* the first one is none the worse */
    hf__store_close(store);
    pid = child_start("open", path, 0, 0, NULL, &out);
    CHECK_INT(0, child_wait(pid, out, &acked));
    hf_scope_free(s);
}

TEST(store_disk, what_is_not_a_store_is_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store;
    struct stat info;

    write_file(in(s, path, "letter.txt"), "dear", 4);
    CHECK_STATUS(HF_INVALID, open_at(t, s, path, &store));
    CHECK(strstr(hf_scope_error_text(s), path));
    CHECK(stat(in(s, path, "db"), &info) != 0); /* and not touched */
    CHECK_STATUS(HF_INVALID, open_at(t, s, in(s, path, "letter.txt"), &store));
    CHECK_STATUS(HF_INVALID, open_at(t, s, "", &store));
    CHECK_STATUS(HF_IO, open_at(t, s, in(s, path, "no/such"), &store));
    CHECK(!store);
    hf_scope_free(s);
}

TEST(store_disk, a_newer_format_is_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store;

    CHECK_OK(open_at(t, s, path, &store));
    hf__store_close(store);
    write_file(in(s, path, "HOLDFAST"), "holdfast store format 4\n", 24);
    CHECK_STATUS(HF_FORMAT, open_at(t, s, path, &store));
    CHECK_STR(hf_scope_format(s,
                              "The store in %s has format 4; this version supports formats up to 3",
                              path)
                  .ptr,
              hf_scope_error(s)->message);
    write_file(in(s, path, "HOLDFAST"), "holdfast store format 3x\n", 25);
    CHECK_STATUS(HF_CORRUPT, open_at(t, s, path, &store));
    write_file(in(s, path, "HOLDFAST"), "holdfast store format 3\n", 24);
    CHECK_OK(open_at(t, s, path, &store));
    hf__store_close(store);
    hf_scope_free(s);
}

/* What format 1 was: the database's own log, a record of its sequence numbers, no journal. */
static uint64_t make_format_1(struct hf_scope *s, const char *path, uint64_t more)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_writeoptions_t *synced = rocksdb_writeoptions_create();
    char *error = NULL;
    rocksdb_t *db = rocksdb_open(options, in(s, path, "db"), &error);
    uint8_t slots[512 + 24] = {0};
    uint64_t sequence;

    CHECK(!error);
    empty_directory(in(s, path, "journal"));
    CHECK(rmdir(in(s, path, "journal")) == 0);
    rocksdb_writeoptions_set_sync(synced, 1);
    rocksdb_put(db, synced, "in the old log", 14, "there", 5, &error);
    sequence = rocksdb_get_latest_sequence_number(db) + more;
    rocksdb_close(db);
    rocksdb_writeoptions_destroy(synced);
    rocksdb_options_destroy(options);
    for (int i = 0; i < 2; i++) {
        memcpy(slots + 512 * i, "hfdurabl", 8);
        store_u64be(slots + 512 * i + 8, sequence - (i == 1)); /* the older one in the second */
        store_u64be(slots + 512 * i + 16, XXH3_64bits(slots + 512 * i, 16));
    }
    write_file(in(s, path, "durable"), slots, sizeof(slots));
    write_file(in(s, path, "HOLDFAST"), "holdfast store format 1\n", 24);
    return sequence;
}

TEST(store_disk, a_store_of_format_1_is_taken_over)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct acked acked = {.by_thread = {400}};
    struct hf__store *store;
    struct hf_bytes value;
    uint64_t sequence;
    uint8_t *format;
    size_t len;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, 1, 400, true));
    hf__store_close(store);
    sequence = make_format_1(s, path, 0);
    for (uint32_t i = 0; i < 3; i++) { /* and again as what it is now */
        CHECK_OK(open_at(t, s, path, &store));
        CHECK(hf__store_written(store) == sequence + i);
        CHECK(acked_is_there(s, store, &acked));
        CHECK_OK(hf__store_get(s, store, NULL, hf_bytes_of("in the old log", 14), &value));
        CHECK(value.len == 5);
        CHECK_OK(write_items(s, store, 0, 401 + i, 401 + i, true));
        acked.by_thread[0]++;
        hf__store_close(store);
    }
    format = read_file(in(s, path, "HOLDFAST"), &len);
    CHECK(len == 24 && memcmp(format, "holdfast store format 3\n", 24) == 0);
    free(format);

    /* Its record says that there was more. */
    make_format_1(s, path, 1);
    CHECK_STATUS(HF_CORRUPT, open_at(t, s, path, &store));
    CHECK(strstr(hf_scope_error_text(s), "a log file is missing"));
    hf_scope_free(s);
}

/* Also one that nothing was ever written to. */
TEST(store_disk, an_empty_store_of_format_1_is_taken_over)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    rocksdb_options_t *options = rocksdb_options_create();
    struct hf__store *store;
    uint8_t slots[512 + 24] = {0};
    char *error = NULL;

    CHECK_OK(open_at(t, s, path, &store));
    hf__store_close(store);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_close(rocksdb_open(options, in(s, path, "db"), &error));
    rocksdb_options_destroy(options);
    CHECK(!error);
    for (int i = 0; i < 2; i++) {
        memcpy(slots + 512 * i, "hfdurabl", 8);
        store_u64be(slots + 512 * i + 16, XXH3_64bits(slots + 512 * i, 16));
    }
    write_file(in(s, path, "durable"), slots, sizeof(slots));
    write_file(in(s, path, "HOLDFAST"), "holdfast store format 1\n", 24);
    empty_directory(in(s, path, "journal"));
    CHECK(rmdir(in(s, path, "journal")) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(open_at(t, s, path, &store));
        CHECK_INT(0, hf__store_written(store));
        hf__store_close(store);
    }
    hf_scope_free(s);
}

TEST(store_disk, a_reserve_larger_than_the_disk)
{
    struct store_options options = {.reserve_bytes = UINT64_MAX / 2};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    CHECK_STATUS(HF_NO_SPACE, write_items(s, store, 0, 1, 1, true));
    CHECK(hf_scope_error(s)->may_retry);
    hf__store_close(store);
    options.reserve_bytes = 1;
    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    CHECK_OK(write_items(s, store, 0, 1, 5, true));
    hf__store_close(store);
    hf_scope_free(s);
}

/* Every allocation of an open fails in turn. */
TEST(store_disk, an_open_without_memory_leaves_nothing_behind)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store;
    enum hf_status status;
    int failures = -1;

    CHECK(hf_scope_copy(s, HF_STR("warm")).ptr != NULL); /* the scope has its first chunk */
    do {
        failures++;
        t->fail_at = (int64_t)t->allocs + 1 + failures;
        status = open_at(t, s, path, &store);
        t->fail_at = 0;
        CHECK(status == HF_OK ? store != NULL : status == HF_NOMEM && !store);
    } while (status != HF_OK);
    CHECK(failures >= 3);
    hf__store_close(store);
    hf_scope_free(s);
}

/* ---- syncs ---------------------------------------------------------------------------------- */

struct syncer {
    struct test *t;
    struct hf__store *store;
    unsigned thread;
    enum hf_status status;
    bool may_have_happened;
    uint32_t timeout_ms;
    uint32_t count;
};

static void *sync_thread(void *user)
{
    struct syncer *me = user;
    struct hf_scope *s = hf_scope_new(NULL);

    if (me->timeout_ms)
        hf_scope_timeout_ms(s, me->timeout_ms);
    me->status = write_items(s, me->store, me->thread, 1, me->count, true);
    me->may_have_happened = hf_scope_error(s)->may_have_happened;
    hf_scope_free(s);
    return NULL;
}

TEST(store_sync, threads_share_syncs)
{
    enum { CROWD = 32, EACH = 20 };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct syncer syncers[CROWD];
    pthread_t ids[CROWD];
    struct hf__store *store;
    struct store_stats stats;
    int before;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(test_directory(t)), NULL, &store));
    before = atomic_load(&sync_calls);
    for (unsigned i = 0; i < CROWD; i++) {
        syncers[i] = (struct syncer){.t = t, .store = store, .thread = i, .count = EACH};
        pthread_create(&ids[i], NULL, sync_thread, &syncers[i]);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        pthread_join(ids[i], NULL);
        CHECK_OK(syncers[i].status);
    }
    hf__store_stats(store, &stats);
    CHECK(stats.syncs > 0);
    CHECK(stats.sync_waits >= stats.syncs);
    CHECK(stats.syncs * 2 <
          CROWD * EACH); /* usually by ten and more; a loaded machine shares less */
    CHECK_INT(hf__store_written(store), hf__store_durable(store));
    /* It was the journal that was synced, that often. */
    CHECK((uint64_t)(atomic_load(&sync_calls) - before) >= stats.syncs);
    hf__store_close(store);
    hf_scope_free(s);
}

/* A waiter whose time is up leaves, and says that its write may have happened. */
TEST(store_sync, a_waiter_keeps_its_deadline)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct acked acked = {.by_thread = {1, 1}};
    struct hf__store *store;
    struct syncer leader, waiter;
    pthread_t leader_id, waiter_id;

    CHECK_OK(open_at(t, s, test_directory(t), &store));
    leader = (struct syncer){.store = store, .thread = 0, .count = 1};
    waiter = (struct syncer){.store = store, .thread = 1, .count = 1, .timeout_ms = 20};
    atomic_store(&sync_delay_ms, 600);
    pthread_create(&leader_id, NULL, sync_thread, &leader);
    usleep(100000); /* it leads now */
    pthread_create(&waiter_id, NULL, sync_thread, &waiter);
    pthread_join(waiter_id, NULL);
    CHECK_STATUS(HF_TIMEOUT, waiter.status);
    CHECK(waiter.may_have_happened);
    atomic_store(&sync_delay_ms, 0);
    pthread_join(leader_id, NULL);
    CHECK_OK(leader.status);
    CHECK(acked_is_there(s, store, &acked)); /* as indeed it did */
    hf__store_close(store);
    hf_scope_free(s);
}

/* (2) of store.h: what could not be made durable is taken back, in memory. */
static bool rolls_back_soon(struct hf__store *store)
{
    for (int i = 0; !hf__store_is_rolled_back(store) && i < 1000; i++)
        usleep(5000);
    return hf__store_is_rolled_back(store);
}

/* (2) of store.h, and H33: a failed sync is not tried again. */
TEST(store_sync, a_failed_sync_stops_writes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct acked acked = {.by_thread = {5}};
    struct hf__store *store;
    struct store_stats stats;
    struct hf_bytes value;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, 1, 5, true));
    atomic_store(&sync_errno, EIO);
    CHECK_STATUS(HF_IO, write_items(s, store, 0, 6, 6, true));
    CHECK(hf_scope_error(s)->may_have_happened);
    CHECK(strstr(hf_scope_error_text(s), path));
    atomic_store(&sync_errno, 0);
    CHECK_STATUS(HF_STOPPED, write_items(s, store, 0, 7, 7, true));
    CHECK(!hf_scope_error(s)->may_have_happened);
    CHECK(strstr(hf_scope_error_text(s), "Input/output error"));
    CHECK_STATUS(HF_IO, hf__store_sync(s, store, hf__store_written(store)));
    CHECK(acked_is_there(s, store, &acked)); /* reads go on */
    hf__store_stats(store, &stats);
    CHECK(stats.stopped);
    CHECK(hf__store_durable(store) < hf__store_written(store));
    CHECK(rolls_back_soon(store));
    CHECK(acked_is_there(s, store, &acked));
    CHECK_OK(hf__store_get(s, store, NULL, bytes_from("item/0/00000006"), &value));
    CHECK(!value.ptr);
    hf__store_close(store);
    CHECK_OK(open_at(t, s, path, &store)); /* and a reopen is a new start */
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    hf_scope_free(s);
}

/*
 * A write that fails, in the journal, in a table, in the manifest or everywhere, for any reason,
 * stops writes and never the process: with its own log of messages on, this build of RocksDB aborts
 * here.
 */
TEST(store_sync, a_failed_write_stops_writes)
{
    static const char *const targets[] = {NULL, "/journal/", ".sst", "MANIFEST"};

    /* Where background work fails, RocksDB sleeps for a second: there, one mode is enough. */
    for (unsigned i = 0; i < 4 * ARRAY_LEN(targets); i += i < 8 ? 1 : 2) {
        struct store_options options = {.memtable_bytes = SMALL,
                                        .sync = i & 1 ? STORE_SYNC_NONE : STORE_SYNC_FULL};
        struct hf_scope *s = hf_scope_new(test_env(t));
        const char *path = test_directory(t);
        struct acked acked = {.by_thread = {5}};
        struct hf__store *store;
        struct store_stats stats;
        enum hf_status status;
        bool in_journal;

        CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
        CHECK_OK(write_items(s, store, 0, 1, 5, true));
        atomic_store(&write_target, targets[i / 4]);
        atomic_store(&write_errno, i & 2 ? ENOSPC : EIO);
        /* What cannot become a table is in the journal: what comes behind it is not written, unless
         * somebody waits for it already. */
        in_journal = i < 8;
        status = write_items(s, store, 0, 6, 20000, true);
        CHECK(status == HF_IO || (status == HF_STOPPED && !in_journal));
        CHECK(hf_scope_error(s)->may_have_happened == (status == HF_IO));
        atomic_store(&write_errno, 0);
        CHECK_STATUS(HF_STOPPED, write_items(s, store, 0, 20001, 20001, true));
        CHECK(!hf_scope_error(s)->may_have_happened);
        CHECK(acked_is_there(s, store, &acked)); /* reads go on */
        hf__store_stats(store, &stats);
        CHECK(stats.stopped);
        CHECK(rolls_back_soon(store));
        CHECK(acked_is_there(s, store, &acked));
        hf__store_close(store);
        CHECK_OK(open_at(t, s, path, &store));
        CHECK(acked_is_there(s, store, &acked));
        hf__store_close(store);
        hf_scope_free(s);
    }
}

/* ---- the journal and the tables ------------------------------------------------------------- */

/* And a third key, so that the map grows. */
static void put_pair(struct hf_scope *s, struct hf__store *store, uint32_t n)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint8_t value[1024] = {0};
    uint64_t ticket;

    store_u32be(value, n);
    hf__batch_put(&batch, hf_bytes_of("a", 1), hf_bytes_of(value, sizeof(value)));
    if (n > 1)
        hf__batch_put(&batch, hf_bytes_of("b", 1), hf_bytes_of(value, sizeof(value)));
    hf__batch_put(&batch, hf_bytes_of(value, 4), hf_bytes_of(value, sizeof(value)));
    CHECK_OK(hf__store_write(s, store, &batch, &ticket));
    if (n == 1)
        CHECK_OK(hf__store_sync(s, store, ticket));
}

static uint32_t number_at(struct hf_scope *s, struct hf__store *store, const char *key)
{
    struct hf_bytes value;

    CHECK_OK(hf__store_get(s, store, NULL, hf_bytes_of(key, 1), &value));
    return value.ptr ? load_u32be(value.ptr) : 0;
}

/*
 * A table is written when the map is large, and may have in it what the journal has only in memory.
 * Then older changes must not be replayed over newer ones: a batch would be there in part.
 */
TEST(store_journal, a_table_that_is_ahead_of_the_journal)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf__store *store, *after;
    const char *image;
    uint32_t a;

    CHECK_OK(open_at(t, s, path, &store));
    put_pair(s, store, 1);
    for (uint32_t n = 2; n < 200; n++) /* two maps, and less than is flushed unasked */
        put_pair(s, store, n);
    usleep(300000);
    image = crash_image(t, s, path);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(open_at(t, s, image, &after));
        a = number_at(s, after, "a");
        CHECK(a > 1 && a == number_at(s, after, "b"));
        CHECK(hf__store_written(after) == a);
        put_pair(s, after, a + 1);
        CHECK_OK(hf__store_sync(s, after, hf__store_written(after)));
        if (i == 0) {
            const char *next = test_directory(t);

            copy_store(s, image, next);
            hf__store_close(after);
            image = next;
        } else {
            hf__store_close(after);
        }
    }
    hf__store_close(store);
    hf_scope_free(s);
}

/* The note that a store was closed is taken back before anything is written, or it does not open:
 * whoever believes that note throws the journal away. */
TEST(store_journal, a_note_that_cannot_be_written)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct acked acked = {.by_thread = {10}};
    struct hf__store *store;

    CHECK_OK(open_at(t, s, path, &store));
    CHECK_OK(write_items(s, store, 0, 1, 10, true));
    hf__store_close(store);
    atomic_store(&write_target, "/durable");
    atomic_store(&write_errno, EIO);
    CHECK_STATUS(HF_IO, open_at(t, s, path, &store));
    atomic_store(&write_errno, 0);
    CHECK_OK(open_at(t, s, path, &store));
    CHECK(acked_is_there(s, store, &acked));

    /* And a file of the journal stays until what makes it superfluous is noted. */
    atomic_store(&write_errno, EIO);
    CHECK_OK(write_items(s, store, 0, 11, 2000, false));
    CHECK_OK(hf__store_sync(s, store, hf__store_written(store)));
    acked.by_thread[0] = 2000;
    usleep(300000); /* for whoever would drop it */
    path = crash_image(t, s, path);
    atomic_store(&write_errno, 0);
    atomic_store(&write_target, NULL);
    hf__store_close(store);
    CHECK_OK(open_at(t, s, path, &store));
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    hf_scope_free(s);
}

/* The system tells of a failed write once per opened file: whoever fills the file ahead must not
 * be the one who hears it. */
TEST(store_journal, filling_ahead_takes_no_error_away)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__store *store;
    int before = atomic_load(&sync_calls);

    atomic_store(&sync_errno_once, EIO);
    CHECK_OK(open_at(t, s, test_directory(t), &store));
    for (int i = 0; i < 400 && atomic_load(&filled_fd) < 0; i++)
        usleep(5000);
    CHECK(atomic_load(&sync_calls) > before && atomic_load(&filled_fd) >= 0);
    CHECK_STATUS(HF_IO, write_items(s, store, 0, 1, 1, true));
    atomic_store(&sync_errno_once, 0);
    hf__store_close(store);
    hf_scope_free(s);
}
