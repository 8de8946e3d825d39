/*
 * store/lack_test.c: a process that has no descriptor left. What needs one is tried again; nothing
 * stops, and nothing is lost. It happens in a child, which has a limit of its own.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIMIT = 96,
    LACK_MEMTABLE = 256 * 1024,
    ROUNDS = 2,
    BATCHES_MAX = 20000, /* of a round: far more than maps and a journal may grow without files */
    WAIT_STEPS = 1000
};

struct hoard {
    int fds[LIMIT];
    int len;
};

/* Take every descriptor that is left. */
static void hoard_take(struct hoard *hoard)
{
    int fd;

    while (hoard->len < LIMIT && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        hoard->fds[hoard->len++] = fd;
}

static void hoard_drop(struct hoard *hoard)
{
    while (hoard->len > 0)
        close(hoard->fds[--hoard->len]);
}

/* Write until that fails, or for long enough. What was written is counted. */
static enum hf_status write_on(struct hf_scope *s, struct hf__store *store, struct acked *acked)
{
    enum hf_status status = HF_OK;

    for (int i = 0; status == HF_OK && i < BATCHES_MAX; i++) {
        status = write_items(s, store, 0, acked->by_thread[0] + 1, acked->by_thread[0] + 1, true);
        acked->by_thread[0] += status == HF_OK;
        hf_scope_reset(s);
    }
    return status;
}

/* Descriptors are back: soon it goes on. */
static enum hf_status write_again(struct hf_scope *s, struct hf__store *store, struct acked *acked)
{
    enum hf_status status = HF_IO;

    for (int i = 0; status != HF_OK && i < WAIT_STEPS; i++) {
        hf_scope_reset(s);
        status = write_items(s, store, 0, acked->by_thread[0] + 1, acked->by_thread[0] + 1, true);
        if (status != HF_OK)
            usleep(10000);
    }
    acked->by_thread[0] += status == HF_OK;
    return status;
}

static int complain(const char *what, struct hf_scope *s)
{
    fprintf(stderr, "child: %s: %s\n", what, hf_scope_error_text(s));
    return CHILD_WRONG;
}

static int lack_round(struct hf_scope *s, struct hf__store *store, struct acked *acked)
{
    static struct hoard hoard;
    struct store_stats stats;
    enum hf_status status;

    hoard_take(&hoard);
    status = write_on(s, store, acked);
    if (status == HF_OK)
        return complain("it never needed a descriptor", s);
    (void)write_items(s, store, 0, acked->by_thread[0] + 1, acked->by_thread[0] + 1, true);
    if (hf_scope_error(s)->status != status || !hf_scope_error(s)->may_retry ||
        hf_scope_error(s)->may_have_happened)
        return complain("the error of a write", s);
    hf__store_stats(store, &stats);
    if (stats.stopped)
        return complain("stopped", s);
    if (!acked_is_there(s, store, acked))
        return complain("reads", s);
    hoard_drop(&hoard);
    if (write_again(s, store, acked) != HF_OK)
        return complain("with descriptors again", s);
    return CHILD_OK;
}

/* Reads all the while: what fails may be tried again. */
struct reader {
    struct hf__store *store;
    atomic_bool ends;
    bool failed;
};

static void *read_on(void *user)
{
    struct reader *reader = user;
    struct hf_scope *s = hf_scope_new(NULL);

    while (!atomic_load(&reader->ends)) {
        struct hf_bytes value;

        if (hf__store_get(s, reader->store, NULL, bytes_from("item/0/00000001"), &value) == HF_OK
                ? !value.ptr
                : !hf_scope_error(s)->may_retry) {
            complain("a read beside it", s);
            reader->failed = true;
            break;
        }
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

static int lack_rounds(struct hf_scope *s, struct hf__store *store, struct acked *acked)
{
    struct reader reader = {.store = store};
    int result = CHILD_OK;
    pthread_t thread;

    acked->by_thread[0] = 1;
    if (write_items(s, store, 0, 1, 1, true) || pthread_create(&thread, NULL, read_on, &reader))
        return CHILD_ERROR;
    for (int i = 0; result == CHILD_OK && i < ROUNDS; i++)
        result = lack_round(s, store, acked);
    atomic_store(&reader.ends, true);
    pthread_join(thread, NULL);
    return reader.failed ? CHILD_WRONG : result;
}

/* The arguments: a directory, a mode of syncing. */
CHILD(store_lack)
{
    struct store_options options = {.memtable_bytes = LACK_MEMTABLE,
                                    .sync = (enum store_sync)strtoul(args[1], NULL, 10)};
    struct rlimit limit = {LIMIT, LIMIT};
    struct hf_scope *s = hf_scope_new(NULL);
    struct acked acked = {{0}};
    struct hf__store *store;
    int result;

    if (setrlimit(RLIMIT_NOFILE, &limit) ||
        hf__store_open_disk(s, NULL, hf_str_from(args[0]), &options, &store) != HF_OK)
        return complain("open", s);
    result = lack_rounds(s, store, &acked);
    hf__store_close(store);
    if (result != CHILD_OK)
        return result;
    if (hf__store_open_disk(s, NULL, hf_str_from(args[0]), &options, &store) != HF_OK)
        return complain("open again", s);
    if (!acked_is_there(s, store, &acked) || hf__store_verify(s, store, NULL) != HF_OK)
        result = complain("what is there", s);
    hf__store_close(store);
    hf_scope_free(s);
    return result;
}

static void without_descriptors(struct test *t, enum store_sync sync)
{
    char mode[2] = {(char)('0' + (int)sync), '\0'};
    int out, status;
    pid_t pid = test_child("store_lack", (const char *[]){test_directory(t), mode, NULL}, &out);

    close(out);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    CHECK(WIFEXITED(status));
    CHECK_INT(CHILD_OK, WEXITSTATUS(status));
}

/* (5) of store.h. */
TEST(store_lack, writes_go_on_when_descriptors_are_back)
{
    without_descriptors(t, STORE_SYNC_FULL);
}

TEST(store_lack, also_when_syncs_are_shared_by_a_window)
{
    without_descriptors(t, STORE_SYNC_BATCH);
}

TEST(store_lack, also_without_syncs)
{
    without_descriptors(t, STORE_SYNC_NONE);
}
