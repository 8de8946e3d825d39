/* store/child_test.c: the child of child.h, and the loops that kill it. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill.h"

extern char **environ;

enum { ITEM_BYTES = 300, CHILD_MEMTABLE = 256 * 1024 };

/* ---- items ---------------------------------------------------------------------------------- */

static struct hf_bytes item_key(struct hf_scope *s, unsigned thread, uint32_t n)
{
    return bytes_from(hf_scope_format(s, "item/%u/%08u", thread, n).ptr);
}

static struct hf_bytes last_key(struct hf_scope *s, unsigned thread)
{
    return bytes_from(hf_scope_format(s, "last/%u", thread).ptr);
}

static void item_value(uint8_t value[ITEM_BYTES], unsigned thread, uint32_t n)
{
    for (uint32_t i = 0; i < ITEM_BYTES; i++)
        value[i] = (uint8_t)((n + i) * 31 + thread);
}

enum hf_status write_items(struct hf_scope *s, struct hf__store *store, unsigned thread,
                           uint32_t from, uint32_t to, bool sync)
{
    for (uint32_t n = from; n <= to; n++) {
        struct hf__mark mark = hf__scope_mark(s);
        struct store_batch batch = {.ops = {.scope = s}};
        uint8_t value[ITEM_BYTES], number[4];
        uint64_t ticket;

        item_value(value, thread, n);
        store_u32be(number, n);
        hf__batch_put(&batch, item_key(s, thread, n), hf_bytes_of(value, ITEM_BYTES));
        hf__batch_put(&batch, last_key(s, thread), hf_bytes_of(number, 4));
        TRY(hf__store_write(s, store, &batch, &ticket));
        if (sync)
            TRY(hf__store_sync(s, store, ticket));
        hf__scope_rewind(s, mark);
    }
    return HF_OK;
}

/* The newest batch of a thread, or UINT32_MAX when that cannot be read. */
static uint32_t last_of(struct hf_scope *s, struct hf__store *store, unsigned thread)
{
    struct hf_bytes value;

    if (hf__store_get(s, store, NULL, last_key(s, thread), &value) != HF_OK)
        return UINT32_MAX;
    return value.len == 4 ? load_u32be(value.ptr) : 0;
}

bool acked_is_there(struct hf_scope *s, struct hf__store *store, const struct acked *acked)
{
    for (unsigned thread = 0; thread < CHILD_THREADS_MAX; thread++) {
        uint32_t last = last_of(s, store, thread);

        if (last == UINT32_MAX || last < acked->by_thread[thread])
            return false;
        for (uint32_t n = 1; n <= last + 1; n++) {
            struct hf__mark mark = hf__scope_mark(s);
            uint8_t want[ITEM_BYTES];
            struct hf_bytes value;
            bool there;

            item_value(want, thread, n);
            if (hf__store_get(s, store, NULL, item_key(s, thread, n), &value) != HF_OK)
                return false;
            there = value.ptr && value.len == ITEM_BYTES && !memcmp(value.ptr, want, ITEM_BYTES);
            if (there != (n <= last) || (n > last && value.ptr))
                return false;
            hf__scope_rewind(s, mark);
        }
    }
    return true;
}

/* ---- the child ------------------------------------------------------------------------------ */

struct writer {
    struct hf__store *store;
    unsigned thread;
    uint32_t count;
    int failed;
};

static void *writer_thread(void *user)
{
    struct writer *w = user;
    struct hf_scope *s = hf_scope_new(NULL);
    uint32_t from = last_of(s, w->store, w->thread) + 1;

    for (uint32_t n = from; n < from + w->count; n++) {
        uint8_t report[8];

        if (write_items(s, w->store, w->thread, n, n, true) != HF_OK) {
            fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
            w->failed = 1;
            break;
        }
        store_u32be(report, w->thread);
        store_u32be(report + 4, n);
        if (write(STDOUT_FILENO, report, 8) != 8)
            break;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* "write": `threads` write `count` batches each, then close. */
static int child_write(struct hf_scope *s, struct hf__store *store, unsigned threads,
                       unsigned count)
{
    struct writer writers[CHILD_THREADS_MAX];
    pthread_t ids[CHILD_THREADS_MAX];
    int failed = 0;

    (void)s;
    for (unsigned i = 0; i < threads; i++) {
        writers[i] = (struct writer){store, i, count, 0};
        pthread_create(&ids[i], NULL, writer_thread, &writers[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        failed |= writers[i].failed;
    }
    return failed ? CHILD_ERROR : CHILD_OK;
}

/* "check": `count` batches of thread 0 are all there. */
static int child_check(struct hf_scope *s, struct hf__store *store, unsigned threads,
                       unsigned count)
{
    struct acked acked = {.by_thread = {count}};

    (void)threads;
    if (hf__store_verify(s, store, NULL) != HF_OK)
        return CHILD_ERROR;
    if (acked_is_there(s, store, &acked))
        return CHILD_OK;
    return hf_scope_error(s)->status ? CHILD_ERROR : CHILD_WRONG;
}

/* A disk of our own. false: the system does not let us have one. */
static bool mount_disk(const char *path)
{
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return false;
    /* What we mount is not to be seen outside, and goes with us. */
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return mount("holdfast-test", path, "tmpfs", 0, "size=96m") == 0;
}

/* Take `mib` of the disk away, or less when that would leave less than `leave_mib`. */
static void fill(const char *path, int mib, int leave_mib)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    struct statvfs info;
    int free_mib;

    if (fd < 0 || fstatvfs(fd, &info))
        return;
    free_mib = (int)(info.f_bavail * info.f_frsize >> 20);
    if (mib > free_mib - leave_mib)
        mib = free_mib - leave_mib;
    if (mib > 0 && posix_fallocate(fd, 0, (off_t)mib << 20))
        fprintf(stderr, "child: cannot fill %s\n", path);
    close(fd);
}

/* A compaction that is under way takes room too, for a moment: writes must go on soon after. */
static enum hf_status write_soon(struct hf_scope *s, struct hf__store *store, uint32_t from,
                                 uint32_t to)
{
    enum hf_status status = write_items(s, store, 0, from, to, true);

    for (int i = 0; status == HF_NO_SPACE && i < 500; i++) {
        usleep(10000);
        status = write_items(s, store, 0, from, to, true);
    }
    return status;
}

/* "fill": a disk that gets full and empty again; `count` times. */
static int child_fill(struct hf_scope *s, const char *path, unsigned count)
{
    struct store_options options = {.memtable_bytes = 2 << 20};
    struct hf_str inside = hf_scope_format(s, "%s/store", path);
    const char *filler = hf_scope_format(s, "%s/filler", path).ptr;
    const char *filler2 = hf_scope_format(s, "%s/filler2", path).ptr;
    struct hf__store *store;
    struct store_stats stats;
    struct acked acked = {{0}};

    if (!mount_disk(path))
        return CHILD_SKIPPED;
    for (unsigned round = 0; round < count; round++) {
        enum hf_status status;

        if (hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK) {
            fprintf(stderr, "child: round %u: %s\n", round, hf_scope_error_text(s));
            return CHILD_ERROR;
        }
        fill(filler, 24 + 8 * (int)round, 50);
        do { /* what maintenance frees meanwhile is filled, too */
            status = HF_OK;
            while (status == HF_OK && acked.by_thread[0] < 1000000) {
                status = write_items(s, store, 0, acked.by_thread[0] + 1, acked.by_thread[0] + 1,
                                     acked.by_thread[0] % 50 == 0);
                acked.by_thread[0] += status == HF_OK;
            }
            hf__store_stats(store, &stats);
        } while (status == HF_NO_SPACE && !stats.no_space);
        if (status != HF_NO_SPACE || !stats.no_space || stats.stopped ||
            hf_scope_error(s)->may_have_happened || !acked_is_there(s, store, &acked)) {
            fprintf(stderr, "child: round %u: full: %s\n", round, hf_scope_error_text(s));
            return CHILD_WRONG;
        }
        /* Full at close and at open; what the close itself frees is taken away. */
        hf__store_close(store);
        fill(filler2, 96, 4);
        if (hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK ||
            !acked_is_there(s, store, &acked) ||
            write_items(s, store, 0, acked.by_thread[0] + 1, acked.by_thread[0] + 1, true) !=
                HF_NO_SPACE) {
            fprintf(stderr, "child: round %u: opened on a full disk: %s\n", round,
                    hf_scope_error_text(s));
            return CHILD_WRONG;
        }
        hf__store_close(store);
        unlink(filler);
        unlink(filler2);
        hf_scope_reset(s);
        filler2 = hf_scope_format(s, "%s/filler2", path).ptr;
        inside = hf_scope_format(s, "%s/store", path);
        filler = hf_scope_format(s, "%s/filler", path).ptr;
        if (hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK ||
            write_soon(s, store, acked.by_thread[0] + 1, acked.by_thread[0] + 10)) {
            fprintf(stderr, "child: round %u: freed: %s\n", round, hf_scope_error_text(s));
            return CHILD_WRONG;
        }
        acked.by_thread[0] += 10;
        /* Full and free again while it is open. */
        fill(filler, 96, 32); /* more than a compaction that is under way may need */
        status = HF_OK;
        for (int i = 0; status == HF_OK && i < 1000000; i++) {
            status = write_items(s, store, 0, acked.by_thread[0] + 1, acked.by_thread[0] + 1,
                                 i % 50 == 0);
            acked.by_thread[0] += status == HF_OK;
        }
        unlink(filler);
        hf__store_stats(store, &stats); /* who asks before writing hears that there is room again */
        for (int i = 0; stats.no_space && i < 500; i++) {
            usleep(10000);
            hf__store_stats(store, &stats);
        }
        if (status != HF_NO_SPACE || stats.no_space ||
            write_soon(s, store, acked.by_thread[0] + 1, acked.by_thread[0] + 10) != HF_OK) {
            fprintf(stderr, "child: round %u: freed while open: %s\n", round,
                    hf_scope_error_text(s));
            return CHILD_WRONG;
        }
        acked.by_thread[0] += 10;
        if (!acked_is_there(s, store, &acked) || hf__store_verify(s, store, NULL))
            return CHILD_WRONG;
        hf__store_close(store);
    }
    return CHILD_OK;
}

/* A batch of `mib` values that cannot be packed. */
static enum hf_status write_large(struct hf_scope *s, struct hf__store *store, unsigned mib,
                                  uint64_t *random)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint8_t *value = hf_scope_alloc(s, 1 << 20);
    enum hf_status status;
    uint64_t ticket;

    for (unsigned i = 0; i < mib && value; i++) {
        uint8_t key[8];

        for (size_t j = 0; j < 1 << 20; j += 8) {
            *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
            store_u64be(value + j, *random);
        }
        store_u64be(key, i);
        hf__batch_put(&batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(value, 1 << 20));
    }
    status = batch.ops.failed ? HF_NOMEM : hf__store_write(s, store, &batch, &ticket);
    return status == HF_OK ? hf__store_sync(s, store, ticket) : status;
}

/* "large": one batch that is larger than any memtable, on a disk that may have too little room for
 * all that comes of it: its table, a compaction of two of them. */
static int child_large(struct hf_scope *s, const char *path, unsigned mib)
{
    struct store_options options = {.memtable_bytes = 2 << 20};
    struct hf_str inside = hf_scope_format(s, "%s/store", path);
    enum hf_status first, second;
    struct hf__store *store;
    struct store_stats stats;
    uint64_t random = 1;

    if (!mount_disk(path))
        return CHILD_SKIPPED;
    if (hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK)
        return CHILD_ERROR;
    first = write_large(s, store, mib, &random);
    second = write_large(s, store, mib, &random); /* which has the first one flushed */
    if (write_soon(s, store, 1, 10) != HF_OK || hf__store_verify(s, store, NULL) != HF_OK) {
        fprintf(stderr, "child: %u MiB: then %s\n", mib, hf_scope_error_text(s));
        return CHILD_WRONG;
    }
    hf__store_stats(store, &stats);
    hf__store_close(store);
    if (stats.stopped || hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK) {
        fprintf(stderr, "child: %u MiB: stopped, or %s\n", mib, hf_scope_error_text(s));
        return CHILD_WRONG;
    }
    hf__store_close(store);
    if (first == (mib <= 4    ? HF_OK
                  : mib >= 30 ? HF_NO_SPACE
                              : first) &&
        (second == HF_OK || second == HF_NO_SPACE))
        return CHILD_OK;
    fprintf(stderr, "child: %u MiB: %d, then %d\n", mib, (int)first, (int)second);
    return CHILD_WRONG;
}

/* "fill_and_die": until the disk is full, and an end without a close. */
static int child_fill_and_die(struct hf_scope *s, struct hf_str inside)
{
    struct store_options options = {.memtable_bytes = 2 << 20};
    enum hf_status status;
    struct hf__store *store;

    if (hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK)
        return CHILD_ERROR;
    do {
        uint32_t last = last_of(s, store, 0);

        status = write_items(s, store, 0, last + 1, last + 50, false);
        hf_scope_reset(s);
    } while (status == HF_OK);
    kill(getpid(), SIGKILL);
    return CHILD_ERROR;
}

static enum hf_status delete_soon(struct hf_scope *s, struct hf__store *store, uint32_t n)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    enum hf_status status;
    uint64_t ticket;

    hf__batch_delete(&batch, item_key(s, 0, n));
    status = hf__store_write(s, store, &batch, &ticket);
    for (int i = 0; status == HF_NO_SPACE && i < 2000; i++) {
        usleep(10000); /* until what was deleted before is gone */
        status = hf__store_write(s, store, &batch, &ticket);
    }
    return status;
}

/* "free": a store that has filled its disk and was killed opens, takes deletes, and then writes
 * again, although nobody else has made room. */
static int child_free(struct hf_scope *s, const char *path)
{
    struct store_options options = {.memtable_bytes = 2 << 20, .quiet_ms = 50};
    struct hf_str inside = hf_scope_format(s, "%s/store", path);
    struct acked none = {{0}};
    struct hf__store *store;
    struct store_stats stats;
    uint32_t last;
    pid_t pid;
    int out;

    if (!mount_disk(path))
        return CHILD_SKIPPED;
    pid = child_start("fill_and_die", inside.ptr, 0, 0, NULL, &out);
    if (!WIFSIGNALED(child_wait(pid, out, &none)) ||
        hf__store_open_disk(s, NULL, inside, &options, &store) != HF_OK) {
        fprintf(stderr, "child: after the kill: %s\n", hf_scope_error_text(s));
        return CHILD_WRONG;
    }
    last = last_of(s, store, 0);
    for (uint32_t n = 1; n <= last; n++) {
        struct hf__mark mark = hf__scope_mark(s);

        if (delete_soon(s, store, n) != HF_OK) {
            hf__store_stats(store, &stats);
            fprintf(stderr, "child: delete %u of %u: %s\n", n, last, hf_scope_error_text(s));
            return CHILD_WRONG;
        }
        hf__scope_rewind(s, mark);
    }
    if (write_soon(s, store, last + 1, last + 20000) != HF_OK || hf__store_verify(s, store, NULL)) {
        fprintf(stderr, "child: then %s\n", hf_scope_error_text(s));
        return CHILD_WRONG;
    }
    hf__store_close(store);
    return CHILD_OK;
}

static int child_main(const char *mode, const char *path, unsigned threads, unsigned count)
{
    struct store_options options = {.memtable_bytes = CHILD_MEMTABLE};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__store *store;
    int result;

    if (strcmp(mode, "fill") == 0) {
        result = child_fill(s, path, count);
        hf_scope_free(s);
        return result;
    }
    if (strcmp(mode, "fill_and_die") == 0 || strcmp(mode, "free") == 0) {
        result = strcmp(mode, "free") == 0 ? child_free(s, path)
                                           : child_fill_and_die(s, hf_str_from(path));
        hf_scope_free(s);
        return result;
    }
    if (strcmp(mode, "large") == 0) {
        result = child_large(s, path, count);
        hf_scope_free(s);
        return result;
    }
    if (strcmp(mode, "open") == 0) {
        result = (int)hf__store_open_disk(s, NULL, hf_str_from(path), &options, &store);
        hf__store_close(store);
        hf_scope_free(s);
        return result;
    }
    if (hf__store_open_disk(s, NULL, hf_str_from(path), &options, &store) != HF_OK) {
        if (strcmp(mode, "check") != 0)
            fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
        hf_scope_free(s);
        return CHILD_ERROR;
    }
    result = strcmp(mode, "check") == 0 ? child_check(s, store, threads, count)
                                        : child_write(s, store, threads, count);
    hf__store_close(store);
    hf_scope_free(s);
    return result;
}

static struct hf__store *at_exit;

/* RocksDB has ended before. A state of the tables that a thread had just made cannot be given back to it any more,
 * which is no leak that matters: so nobody looks for leaks after this. */
static void close_at_exit(void)
{
    hf__store_close(at_exit);
    _exit(CHILD_OK);
}

/* "exit": a program that closes its store when it exits, and said so before it opened one. */
static void child_exit(const char *path, unsigned count)
{
    struct store_options options = {.memtable_bytes = 256 * 1024};
    struct hf_scope *s = hf_scope_new(NULL);

    if (atexit(close_at_exit) ||
        hf__store_open_disk(s, NULL, hf_str_from(path), &options, &at_exit) != HF_OK ||
        write_items(s, at_exit, 0, 1, count, true) != HF_OK)
        _exit(CHILD_ERROR);
    hf_scope_free(s);
    exit(CHILD_ERROR); /* close_at_exit() has to come to its end */
}

/* "busy": a program that ends while each of its stores writes one table after the other. */
enum { BUSY_STORES = 6, BUSY_MS = 500, BUSY_END_S = 30 };

static void *keep_busy(void *user)
{
    struct store_options options = {.memtable_bytes = 8 << 20, .sync = STORE_SYNC_NONE};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__store *store;

    if (hf__store_open_disk(s, NULL, hf_str_from(user), &options, &store) != HF_OK)
        _exit(CHILD_ERROR);
    for (uint32_t n = 1; write_items(s, store, 0, n, n, false) == HF_OK; n++)
        ;
    for (;;) /* once the exit has begun there are no more tables; what is ours is no leak */
        pause();
    return NULL;
}

static void child_busy(const char *path)
{
    static char paths[BUSY_STORES][4096];

    for (int i = 0; i < BUSY_STORES; i++) {
        pthread_t thread;

        snprintf(paths[i], sizeof(paths[i]), "%s/%d", path, i);
        if (pthread_create(&thread, NULL, keep_busy, paths[i]))
            _exit(CHILD_ERROR);
    }
    usleep(BUSY_MS * 1000);
    alarm(BUSY_END_S);
    exit(CHILD_OK);
}

/* "small": batches of many small changes of the same keys, and an end as if it was killed. */
static void child_small(const char *path, unsigned count)
{
    struct store_options options = {.memtable_bytes = 8 << 20, .sync = STORE_SYNC_NONE};
    struct hf_scope *s = hf_scope_new(NULL);
    enum hf_status status;
    struct hf__store *store;

    status = hf__store_open_disk(s, NULL, hf_str_from(path), &options, &store);
    for (unsigned i = 0; status == HF_OK && i < count; i++) {
        struct hf__mark mark = hf__scope_mark(s);
        struct store_batch batch = {.ops = {.scope = s}};
        uint64_t ticket;

        for (uint8_t key = 1; key <= 20; key++)
            hf__batch_put(&batch, hf_bytes_of(&key, 1), hf_bytes_of("", 0));
        status = hf__store_write(s, store, &batch, &ticket);
        if (status == HF_OK)
            status = hf__store_sync(s, store, ticket);
        if (status == HF_OK)
            hf__scope_rewind(s, mark);
    }
    _exit(status == HF_OK ? CHILD_OK : CHILD_ERROR);
}

/* The arguments of child_start(). */
CHILD(store)
{
    const char *mode = args[0], *path = args[1];
    unsigned threads = (unsigned)strtoul(args[2], NULL, 10);
    unsigned count = (unsigned)strtoul(args[3], NULL, 10);

    if (args[4])
        hf__kill_at(args[4]);
    if (strcmp(mode, "busy") == 0)
        child_busy(path);
    if (strcmp(mode, "small") == 0)
        child_small(path, count);
    if (strcmp(mode, "exit") == 0)
        child_exit(path, count);
    return child_main(mode, path, threads, count);
}

/* ---- the parent ----------------------------------------------------------------------------- */

pid_t child_start(const char *mode, const char *path, unsigned threads, unsigned count,
                  const char *kill_at, int *out)
{
    char threads_text[16], count_text[16];

    snprintf(threads_text, sizeof(threads_text), "%u", threads);
    snprintf(count_text, sizeof(count_text), "%u", count);
    return test_child("store",
                      (const char *[]){mode, path, threads_text, count_text, kill_at, NULL}, out);
}

int child_wait(pid_t pid, int out, struct acked *acked)
{
    uint8_t report[8];
    int status;

    while (read(out, report, 8) == 8) {
        uint32_t thread = load_u32be(report);

        CHECK(thread < CHILD_THREADS_MAX);
        acked->by_thread[thread] = load_u32be(report + 4);
    }
    close(out);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    return status;
}

static void wait_for_report(int out)
{
    struct pollfd wait = {.fd = out, .events = POLLIN};

    poll(&wait, 1, 10000);
}

static void check_acked(struct test *t, const char *path, const struct acked *acked)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__store *store;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), NULL, &store));
    CHECK(acked_is_there(s, store, acked));
    CHECK_OK(hf__store_verify(s, store, NULL));
    hf__store_close(store);
    hf_scope_free(s);
}

/* (1) of store.h: whatever was acked survives kill -9, round after round on one directory. */
TEST(store_kill, acked_writes_survive_kill_9)
{
    const char *path = test_directory(t);
    struct acked acked = {{0}};

    for (int round = 0; round < 20; round++) {
        int out;
        pid_t pid = child_start("write", path, 4, 1000000, NULL, &out);

        /* Sometimes while it opens, mostly while it writes. */
        if (test_random_below(t, 4))
            wait_for_report(out);
        usleep((useconds_t)test_random_below(t, 100000));
        kill(pid, SIGKILL);
        CHECK(WIFSIGNALED(child_wait(pid, out, &acked)));
        if (round % 4 == 3)
            check_acked(t, path, &acked);
    }
    CHECK(acked.by_thread[0] > 20);
}

#ifdef HF_KILL_POINTS
/* As above, at each place where it might matter, on the first and on a later pass. */
TEST(store_kill, acked_writes_survive_every_kill_point)
{
    static const char *const points[] = {
        "after_format_file:1", "before_seal:1",      "after_seal:1",         "before_ballast:1",
        "before_write:1",      "before_write:30",    "after_write:1",        "after_write:30",
        "before_sync:1",       "before_sync:30",     "after_sync:1",         "after_sync:30",
        "after_record:1",      "after_record:30",    "before_close_flush:1", "after_close_flush:1",
        "journal_segment:1",   "table_begun:1",      "before_first_note:1",  "after_first_note:1",
        "table_written:1",     "after_clean_note:1",
    };

    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        const char *path = test_directory(t);
        struct acked acked = {{0}};
        int out;
        pid_t pid = child_start("write", path, 1, 40, points[i], &out);
        int status = child_wait(pid, out, &acked);

        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            fail_msg("%s was not passed", points[i]);
        check_acked(t, path, &acked);
    }
}
#endif

static void on_a_small_disk(struct test *t, const char *mode, unsigned count)
{
    struct acked acked = {{0}};
    int out;
    pid_t pid = child_start(mode, test_directory(t), 0, count, NULL, &out);
    int status = child_wait(pid, out, &acked);

    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED) {
        print_message("skipped: the system does not let us mount a small disk\n");
        return;
    }
    CHECK(WIFEXITED(status)); /* RocksDB would have aborted */
    CHECK_INT(CHILD_OK, WEXITSTATUS(status));
}

/* (3) of store.h. */
TEST(store_space, a_full_disk_is_an_error_and_then_is_not)
{
    on_a_small_disk(t, "fill", 2);
}

/* (3) of store.h, P7 and P9: a full disk is no trap. */
TEST(store_space, deletes_make_room_on_a_disk_that_the_store_has_filled)
{
    on_a_small_disk(t, "free", 0);
}

/* (3) of store.h, by a batch that alone is more than the reserve was reckoned for. */
TEST(store_space, a_large_batch_needs_room_for_all_that_comes_of_it)
{
    for (unsigned mib = 4; mib <= 64; mib += 6)
        if (test_one_in(t, 1))
            on_a_small_disk(t, "large", mib);
}

/* RocksDB's own objects end before ours if it was first called after the program has registered
 * what is to be done at its exit. It is not called then, and all is there. */
TEST(store_child, closed_at_exit)
{
    static const unsigned counts[] = {3, 3000}; /* no table before the exit, and several */

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        const char *path = test_directory(t);
        struct acked acked = {.by_thread = {counts[i]}};
        struct acked reported = {{0}};
        struct hf__store *store;
        int out;
        pid_t pid = child_start("exit", path, 1, counts[i], NULL, &out);
        int status = child_wait(pid, out, &reported);

        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_OK);
        CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), NULL, &store));
        CHECK(acked_is_there(s, store, &acked));
        hf__store_close(store);
        hf_scope_free(s);
    }
}

/* The exit waits for tables that are being written, and for no others. */
TEST(store_child, exits_while_tables_are_written)
{
    struct acked reported = {{0}};
    int out;
    pid_t pid = child_start("busy", test_directory(t), 1, 1, NULL, &out);
    int status = child_wait(pid, out, &reported);

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_OK);
}
