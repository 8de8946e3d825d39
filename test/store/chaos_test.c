/*
 * store/chaos_test.c: everything that happens to a store, in any order and combination: modes of
 * syncing, writes and syncs that fail, a disk without room, a process without descriptors, kill -9
 * at any time, closes in the middle of it. A child does it, round after round on one directory, and
 * gets it from a seed. After each round the parent opens the directory to be read, and at times to
 * be written: it is never refused, and what was acked, or seen by a parent, is there.
 *
 * No power fails here, so nothing that the system was handed is lost; power_test.c has that.
 * HF_CHAOS says how many rounds there shall be.
 */
#include "child.h"
#include "system.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS = 20,
    ROUNDS_OF_A_DIRECTORY = 10,
    STEPS_MAX = 250,
    JUNK_BYTES = 6000, /* so that some dozen steps make a table */
    JUNK_KEYS = 20,
    MEMTABLE = 256 * 1024,
    FULL = 5 * 1024 * 1024, /* bytes that a disk has when it is full: enough for an open */
    ROUND_S = 60
};

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *dice, unsigned sides)
{
    dice->state = dice->state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(dice->state >> 33) % sides;
}

/* ---- faults --------------------------------------------------------------------------------- */

static void set_descriptors(bool lack)
{
    static rlim_t most;
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (!most)
        most = limit.rlim_cur;
    limit.rlim_cur = lack ? 3 : most;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* One of them, or none; what was wrong before is mended. */
static void set_fault(struct dice *dice, bool any)
{
    static const char *const targets[] = {"/journal/", "/durable", ".sst", "/MANIFEST"};
    unsigned kind = any ? roll(dice, 12) : UINT_MAX;

    set_descriptors(kind < 3);
    atomic_store(&system_bytes_free, kind >= 3 && kind < 6 ? FULL : 0);
    atomic_store(&sync_errno, kind == 6 ? EIO : 0);
    atomic_store(&write_errno, kind < 7 || kind > 8 ? 0 : kind == 7 ? EIO : ENOSPC);
    atomic_store(&write_target, targets[roll(dice, ARRAY_LEN(targets))]);
}

/* ---- the child ------------------------------------------------------------------------------ */

static enum hf_status write_junk(struct hf_scope *s, struct hf__store *store, struct dice *dice)
{
    static uint8_t value[JUNK_BYTES];
    struct store_batch batch = {.ops = {.scope = s}, .frees = roll(dice, 3) == 0};
    uint8_t key[2] = {'j', (uint8_t)roll(dice, JUNK_KEYS)};
    uint64_t ticket;

    for (size_t i = 0; i < JUNK_BYTES; i += 8) /* which cannot be packed */
        store_u64be(value + i, (uint64_t)roll(dice, UINT32_MAX) << 32 | roll(dice, UINT32_MAX));
    if (batch.frees)
        hf__batch_delete(&batch, hf_bytes_of(key, 2));
    else
        hf__batch_put(&batch, hf_bytes_of(key, 2), hf_bytes_of(value, JUNK_BYTES));
    return hf__store_write(s, store, &batch, &ticket);
}

static uint32_t last_item(struct hf_scope *s, struct hf__store *store)
{
    struct hf_bytes value;

    if (hf__store_get(s, store, NULL, bytes_from("last/0"), &value) != HF_OK)
        return UINT32_MAX;
    return value.ptr && value.len == 4 ? load_u32be(value.ptr) : 0;
}

static void work(struct hf_scope *s, struct hf__store *store, struct dice *dice)
{
    uint32_t last = last_item(s, store);
    unsigned steps = 1 + roll(dice, STEPS_MAX);

    if (last == UINT32_MAX) /* without descriptors, it may be */
        return;
    for (unsigned i = 0; i < steps; i++) {
        uint8_t report[8] = {0};

        hf_scope_reset(s);
        if (roll(dice, 25) == 0)
            set_fault(dice, true);
        if (roll(dice, 100) == 0)
            usleep(roll(dice, 20000)); /* maintenance goes on */
        (void)write_junk(s, store, dice);
        if (write_items(s, store, 0, last + 1, last + 1, true) == HF_OK)
            last++; /* otherwise it may be there, and is written once more */
        store_u32be(report + 4, last);
        if (write(STDOUT_FILENO, report, 8) != 8)
            return;
    }
}

/* The arguments: a directory, a seed. Some ends are a kill, others a close among faults. */
CHILD(store_chaos)
{
    struct dice dice = {strtoull(args[1], NULL, 10)};
    struct store_options options = {.memtable_bytes = MEMTABLE,
                                    .sync = (enum store_sync)roll(&dice, 3),
                                    .quiet_ms = 1 + roll(&dice, 50),
                                    .window_ms = 1 + roll(&dice, 20)};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__store *store;
    enum hf_status status;

    alarm(ROUND_S);
    if (roll(&dice, 4) == 0)
        set_fault(&dice, true);
    if (roll(&dice, 6) == 0) /* in the middle of opening, too */
        ualarm(1 + roll(&dice, 30000), 0);
    status = hf__store_open_disk(s, NULL, hf_str_from(args[0]), &options, &store);
    if (status == HF_CORRUPT)
        fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
    if (status != HF_OK)
        return status == HF_CORRUPT ? CHILD_WRONG : CHILD_ERROR;
    work(s, store, &dice);
    if (roll(&dice, 3))
        kill(getpid(), SIGKILL);
    if (roll(&dice, 2))
        set_fault(&dice, true);
    hf__store_close(store);
    hf_scope_free(s);
    return CHILD_OK;
}

/* ---- the parent ----------------------------------------------------------------------------- */

static void look(struct test *t, const char *path, bool read_only, struct acked *acked)
{
    struct store_options options = {.memtable_bytes = MEMTABLE,
                                    .read_only = read_only,
                                    .sync = (enum store_sync)test_random_below(t, 3)};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__store *store;
    enum hf_status status =
        hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store);

    if (status == HF_INVALID && read_only && !acked->by_thread[0]) { /* not made yet */
        hf_scope_free(s);
        return;
    }
    if (status != HF_OK)
        fail_msg("%s: %s", path, hf_scope_error_text(s));
    if (!acked_is_there(s, store, acked))
        fail_msg("%s: ends at %u, and %u were acked; %s", path, last_item(s, store),
                 acked->by_thread[0], hf_scope_error_text(s));
    CHECK_OK(hf__store_verify(s, store, NULL));
    acked->by_thread[0] = last_item(s, store);
    hf__store_close(store);
    hf_scope_free(s);
}

TEST(store_chaos, in_any_order_refuse_nothing_and_lose_nothing)
{
    const char *wanted = getenv("HF_CHAOS");
    unsigned rounds = wanted ? (unsigned)strtoul(wanted, NULL, 10) : ROUNDS;
    unsigned killed = 0, opened = 0;
    struct acked acked = {{0}};
    const char *path = NULL;

    for (unsigned round = 0; round < rounds; round++) {
        char seed[24];
        int out, status;
        pid_t pid;

        if (round % ROUNDS_OF_A_DIRECTORY == 0) {
            path = test_quick_directory(t);
            acked = (struct acked){{0}};
        }
        snprintf(seed, sizeof(seed), "%llu",
                 (unsigned long long)test_random_below(t, UINT32_MAX) << 20 | round);
        pid = test_child("store_chaos", (const char *[]){path, seed, NULL}, &out);
        status = child_wait(pid, out, &acked);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_WRONG)
            fail_msg("round %u, seed %s: refused", round, seed);
        CHECK(WIFEXITED(status) || WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGALRM);
        killed += WIFSIGNALED(status);
        opened += !WIFEXITED(status) || WEXITSTATUS(status) == CHILD_OK;
        look(t, path, true, &acked);
        if (test_random_below(t, 4) == 0)
            look(t, path, false, &acked);
    }
    CHECK(killed > rounds / 4 && opened > rounds / 2);
}
