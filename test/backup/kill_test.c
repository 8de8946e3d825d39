/*
 * backup/kill_test.c: a process that writes and ships is killed, again and again. Each one goes on
 * where the last one was: with the same chain. What was acknowledged and shipped is in every restore,
 * and nothing is there twice.
 *
 * The writer puts n under the key "n", and a copy of the sum of all so far under "sum", from what it
 * finds; it reports n when that is durable, and again when it was shipped.
 */
#include "help.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill.h"

enum {
    RUNS = 24,
    WRITES = 60,
    REPORT_MAX = 64,
    CLOSE_MS =
        60000 /* a close ships the rest, however busy the machine is: this only ends a hang */
};

struct report {
    char kind; /* 'd': durable, 's': shipped, 'o': opened */
    uint64_t number;
};

static uint64_t read_number(struct hf_scope *s, struct hf__store *store, const char *name)
{
    struct hf_bytes value;

    if (hf__store_get(s, store, NULL, hf_bytes_of(name, strlen(name)), &value) != HF_OK)
        abort();
    return value.ptr ? load_u64be(value.ptr) : 0;
}

static uint64_t write_next(struct hf_scope *s, struct hf__store *store)
{
    uint64_t n = read_number(s, store, "n") + 1, sum = read_number(s, store, "sum") + n, ticket;
    struct store_batch batch = {.ops = {.scope = s}};
    uint8_t number[8], total[8];

    store_u64be(number, n);
    store_u64be(total, sum);
    hf__batch_put(&batch, hf_bytes_of("n", 1), hf_bytes_of(number, 8));
    hf__batch_put(&batch, hf_bytes_of("sum", 3), hf_bytes_of(total, 8));
    if (hf__store_write(s, store, &batch, &ticket) != HF_OK ||
        hf__store_sync(s, store, ticket) != HF_OK)
        abort();
    return n;
}

static void tell(char kind, uint64_t number)
{
    char line[REPORT_MAX];
    int len = snprintf(line, sizeof(line), "%c %llu\n", kind, (unsigned long long)number);

    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        _exit(1);
}

CHILD(backup_writer)
{
    struct hf_scope *s = hf_scope_new(NULL);
    const struct store_options options = {.sync = STORE_SYNC_FULL,
                                          .keep_bytes = 1 << 24,
                                          .memtable_bytes = 256 * 1024};
    struct ship_options ship = {.directory = hf_str_from(args[0])};
    struct hf_backup_options o = {.size = sizeof(o),
                                  .to = hf_str_from(args[1]),
                                  .window_ms = 50,
                                  .snapshot_ms = 1000,
                                  .close_ms = CLOSE_MS};
    struct hf__shipper *shipper;
    struct hf__store *store;
    uint64_t n = 0;

    hf__kill_at(args[2]);
    if (hf__store_open_disk(s, NULL, hf_str_from(args[0]), &options, &store) != HF_OK ||
        hf__ship_fill(s, &o, &ship.user) != HF_OK ||
        hf__ship_open(s, NULL, store, &ship, &shipper) != HF_OK)
        abort();
    tell('o', read_number(s, store, "n"));
    for (int i = 0; i < WRITES; i++) {
        hf_scope_reset(s);
        n = write_next(s, store);
        tell('d', n);
        if (i % 7 == 6) {
            if (hf__ship_wait(s, shipper) != HF_OK)
                abort();
            tell('s', n);
        }
    }
    hf__ship_close(shipper);
    hf__store_close(store);
    tell('s', n);
    hf_scope_free(s);
    return 0;
}

struct ledger {
    uint64_t durable, shipped, opened;
    uint64_t lines;
};

static void take_lines(struct ledger *ledger, int out, uint64_t stop_at, pid_t pid)
{
    FILE *in = fdopen(out, "r");
    char kind;
    unsigned long long n;

    CHECK(in);
    while (fscanf(in, "%c %llu\n", &kind, &n) == 2) {
        if (kind == 'd' && n > ledger->durable)
            ledger->durable = n;
        if (kind == 's' && n > ledger->shipped)
            ledger->shipped = n;
        if (kind == 'o') {
            CHECK(n >= ledger->durable); /* nothing that was acknowledged is lost */
            ledger->opened++;
        }
        if (++ledger->lines == stop_at)
            kill(pid, SIGKILL);
    }
    fclose(in);
}

/* How often the chain did not go on; *epochs: how often it was begun. */
static size_t count_breaks(struct rig *rig, size_t *epochs)
{
    struct hf__objects *objects;
    struct form form = {.env = *test_env(rig->t)};
    struct chain chain;
    size_t breaks = 0;

    CHECK_OK(hf__signer_new(rig->s, test_env(rig->t), &form.signer));
    CHECK_OK(hf__objects_open(rig->s, test_env(rig->t), rig->url, NULL, &objects));
    CHECK_OK(hf__chain_load(rig->s, objects, &form, CHAIN_NO_LISTS, &chain));
    *epochs = manifest_epochs(&chain.manifest);
    for (size_t i = 0; i < *epochs; i++)
        breaks += !manifest_epoch(&chain.manifest, i)->joined;
    hf__objects_close(objects);
    hf__signer_free(form.signer);
    return breaks;
}

TEST(backup_kill, what_was_shipped_is_in_every_restore)
{
    static const char *const points[] = {
        "",
        "before_segment",
        "after_segment",
        "before_epoch",
        "after_epoch",
        "object_written",
        "object_placed",
        "snapshot_part",
        "before_snapshot_listed",
        "after_snapshot_listed",
        "before_trim",
        "after_sync",
    };
    const char *path = test_directory(t), *place = test_directory(t);
    struct rig rig = {.t = t, .s = hf_scope_new(test_env(t)), .path = path, .place = place};
    struct ledger ledger = {0};
    size_t epochs,
        placed = 0; /* kills that may be between the beginning of an epoch and its note */
    struct hf_backup_info info;
    struct hf_backup *backup;
    uint32_t runs = test_times(RUNS);

    rig.url = hf_scope_format(rig.s, "dir:%s", place);
    for (uint32_t run = 0; run < runs; run++) {
        const char *url = rig.url.ptr;
        const char *point = points[run % ARRAY_LEN(points)], *kill_at = "";
        uint64_t stop_at = 0;
        int out, status;

        pid_t pid;

        placed += strcmp(point, "after_epoch") == 0 || strcmp(point, "object_placed") == 0;
        if (*point)
            kill_at =
                hf_scope_format(rig.s, "%s:%u", point, 1 + (unsigned)test_random_below(t, 5)).ptr;
        else
            stop_at = ledger.lines + 1 + test_random_below(t, WRITES);
        pid = test_child("backup_writer", (const char *[]){path, url, kill_at, NULL}, &out);
        take_lines(&ledger, out, stop_at, pid);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
              (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    }
    CHECK(ledger.durable > 0 && ledger.shipped > 0);
    CHECK_OK(rig_verify(&rig, NULL));
    CHECK(count_breaks(&rig, &epochs) <= 1 + placed);
    CHECK(epochs >= runs / 2);
    CHECK_OK(hf_backup_open(rig.s, rig.url, NULL, &backup));
    hf_backup_info(backup, &info);
    hf_backup_close(backup);
    for (int i = 0; i < 12; i++) {
        const struct store_options read_only = {.read_only = true};
        int64_t at_us =
            i == 0 ? info.newest_us
                   : info.oldest_us +
                         (int64_t)test_random_below(t, (uint64_t)(info.newest_us - info.oldest_us) +
                                                           1);
        struct hf__store *store;
        const char *restored;
        uint64_t n;

        if (rig_restore(&rig, at_us, &restored, NULL) != HF_OK) {
            CHECK(i > 0 && strstr(hf_scope_error_text(rig.s), "nothing was shipped between"));
            continue; /* a kill between the beginning of an epoch and the note of it */
        }
        CHECK_OK(hf__store_open_disk(rig.s, NULL, hf_str_from(restored), &read_only, &store));
        n = read_number(rig.s, store, "n");
        CHECK_INT(n * (n + 1) / 2, read_number(rig.s, store, "sum"));
        if (i == 0)
            CHECK(n >= ledger.shipped);
        hf__store_close(store);
    }
    hf_scope_free(rig.s);
}
