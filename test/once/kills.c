/*
 * test/once/kills.c: do-once with real processes that are killed in the middle of it (L7).
 *
 * A server over TCP, and ten workers that all want the same keys done, through the network client
 * and a wrapper that loses a fifth of all calls: half of them before they are done, half of them
 * after. Of the actions three in ten kill their own process with SIGKILL, before or after their
 * work; the parent kills a worker now and then besides. Whoever dies is started again. Keys come in
 * windows, so that all want the same ones at the same time, and a worker goes on to the next window
 * when it has been told a result for all keys of this one.
 *
 *  (1) P14: all workers are told the same result for a key, and it is the one in the table.
 *  (2) At most one is told that its own completion was recorded.
 *  (3) What the odd keys do in the transaction of their completion was done once.
 *
 * The parent has no threads and calls nothing of the library, so it can fork.
 *
 *     once_kills [--keys N] [--workers N] [--seconds N]
 *
 * With --seconds no window is begun after that time, and fewer keys are enough.
 */
#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/once.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/server.h"

enum {
    WORKERS_MAX = 16,
    WINDOW = 250,
    TIMEOUT_MS = 250,
    DIE_BEFORE = 220, /* of a thousand actions */
    DIE_AFTER = 100,
    LIMIT_S = 900
};

/* What all processes share. */
struct shared {
    _Atomic uint32_t keys;  /* all that are wanted */
    _Atomic uint32_t front; /* windows up to here were begun */
    _Atomic bool
        closing; /* no window is begun any more: wait until `keys` says which is the last */
    _Atomic bool closed;
    _Atomic uint64_t number; /* gives each attempt another result */
    _Atomic uint64_t acted, lost, suicides;
    _Atomic int failures;
    struct {
        _Atomic uint64_t told; /* the result that somebody was told */
        _Atomic uint32_t did;
        _Atomic uint8_t seen[WORKERS_MAX]; /* by whom */
    } key[];
};

static struct shared *shared;

static void fail(const char *what, uint32_t key)
{
    fprintf(stderr, "key %u: %s\n", key, what);
    atomic_fetch_add(&shared->failures, 1);
}

static _Noreturn void die(const char *what, struct hf_scope *s)
{
    fprintf(stderr, "%s: %s\n", what, s ? hf_scope_error_text(s) : "");
    exit(2);
}

static void nap_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* ---- the server ----------------------------------------------------------------------------- */

static int serve(int port_to)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct server_options options = {.loops = 1, .signals = true, .drain_ms = 1000};
    struct hf_once_table *onces;
    struct server *server;
    struct hf_db *db;
    sigset_t stops;
    uint16_t port;

    sigemptyset(&stops); /* the server reads them, so nobody may be ended by them */
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, NULL);
    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK ||
        hf_once_table_open(s, db, HF_OPTIONS(hf_once_table_options, .no_threads = true), &onces) !=
            HF_OK ||
        hf__server_open(s, db, &options, &server) != HF_OK)
        die("server", s);
    hf_once_table_close(onces);
    port = hf__server_port(server);
    if (write(port_to, &port, sizeof(port)) != sizeof(port))
        die("pipe", NULL);
    close(port_to);
    if (hf__server_run(s, server) != HF_OK)
        die("server", s);
    hf__server_close(server);
    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}

static struct hf_db *join(struct hf_scope *s, uint16_t port)
{
    struct hf_client_options options = {.size = sizeof(options),
                                        .no_aws_config = true,
                                        .region = HF_STR("us-east-1")};
    struct hf_db *db;

    if (hf_connect(s, hf_scope_format(s, "http://127.0.0.1:%u", port), &options, &db) != HF_OK)
        die("connect", s);
    return db;
}

/* ---- workers -------------------------------------------------------------------------------- */

static void maybe_die(int per_mille)
{
    if (rand() % 1000 < per_mille) {
        atomic_fetch_add(&shared->suicides, 1);
        kill(getpid(), SIGKILL);
    }
}

/* (1) */
static void told(uint32_t key, struct hf_item result)
{
    uint64_t none = 0;
    int64_t by = 0;

    if (!hf_value_i64(hf_item_get(result, HF_STR("by")), &by) || by <= 0) {
        fail("no result", key);
        return;
    }
    if (!atomic_compare_exchange_strong(&shared->key[key].told, &none, (uint64_t)by) &&
        none != (uint64_t)by)
        fail("another result", key);
}

static enum hf_status finish(struct hf_scope *s, struct hf_once *once, uint32_t key,
                             struct hf_item result)
{
    struct hf_update_item effect = {.table = HF_STR("once"),
                                    .key = HF_ITEM(s, HF_S("user", HF_STR("effects")),
                                                   HF_S("key", hf_scope_format(s, "%06u", key))),
                                    .update = HF_STR("ADD times :one"),
                                    .values = HF_ITEM(s, HF_N(":one", 1))};

    if (key % 2) /* (3) */
        return hf_once_commit(s, once, result, &(struct hf_transact_write){.update = &effect}, 1);
    return hf_once_finish(s, once, result);
}

static void act(struct hf_scope *s, struct hf_once *once, uint32_t key)
{
    struct hf_item result = HF_ITEM(s, HF_N("by", atomic_fetch_add(&shared->number, 1) + 1));
    enum hf_status status;

    atomic_fetch_add(&shared->acted, 1);
    maybe_die(DIE_BEFORE);
    if (key % 200 < 2) /* silent for long enough to be replaced */
        nap_ms(rand() % (3 * TIMEOUT_MS));
    status = finish(s, once, key, result);
    if (status == HF_OK) {
        if (atomic_fetch_add(&shared->key[key].did, 1) > 0) /* (2) */
            fail("completed twice", key);
        told(key, result);
    } else if (status == HF_LOST) {
        atomic_fetch_add(&shared->lost, 1);
    } else if (status == HF_CONDITION || status == HF_TX_CANCELED || status == HF_INVALID) {
        fprintf(stderr, "%s\n", hf_scope_error_text(s));
        fail("an odd end", key);
    }
    maybe_die(DIE_AFTER);
    hf_once_close(once);
}

/* Ask for it: was there an answer? */
static bool ask(struct hf_scope *s, struct hf_once_table *onces, uint32_t key)
{
    struct hf_once_record record;
    struct hf_once *once;
    enum hf_status status;

    hf_scope_reset(s);
    hf_scope_timeout_ms(s, 5000);
    status = hf_once_try(s, onces, HF_STR("u"), hf_scope_format(s, "%06u", key),
                         HF_OPTIONS(hf_once_options, .timeout_ms = TIMEOUT_MS,
                                    .no_heartbeats = key % 200 < 2),
                         &once, &record);
    if (status == HF_OK && once) {
        act(s, once, key);
        return false; /* we look at it again */
    }
    if (status == HF_OK && record.state != HF_ONCE_DONE)
        fail("an odd state", key);
    if (status == HF_OK)
        told(key, record.result);
    return status == HF_OK;
}

/* May the window be begun? Whoever asks has been seen by then, or sees that it may not. */
static bool may_begin(uint32_t from)
{
    uint32_t to = from + WINDOW, front = shared->front;

    while (front < to && !atomic_compare_exchange_weak(&shared->front, &front, to))
        ;
    while (shared->closing && !shared->closed)
        nap_ms(1);
    return from < shared->keys;
}

/* Until all keys of the window have been answered. */
static void work_on(struct hf_scope *s, struct hf_once_table *onces, uint32_t from, int me)
{
    bool left = true;

    while (left) {
        left = false;
        for (uint32_t key = from; key < from + WINDOW && key < shared->keys; key++) {
            if (shared->key[key].seen[me])
                continue;
            if (ask(s, onces, key))
                shared->key[key].seen[me] = 1;
            else
                left = true;
        }
        nap_ms(5);
    }
}

static int worker(uint16_t port, int me)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = join(s, port), *faulty;
    struct hf_fault faults[] = {{.kind = HF_FAULT_LOST_ANSWER, .probability = 0.1},
                                {.kind = HF_FAULT_LOST_REQUEST, .probability = 0.1}};
    struct hf_once_table *onces;

    srand((unsigned)getpid());
    if (hf_faulty_open(s, db, &faulty) != HF_OK ||
        hf_once_table_open(s, faulty, NULL, &onces) != HF_OK ||
        hf_faulty_set(s, faulty, faults, 2) != HF_OK)
        die("worker", s);
    for (uint32_t from = 0; may_begin(from); from += WINDOW)
        work_on(s, onces, from, me);
    hf_once_table_close(onces);
    hf_db_close(faulty);
    hf_scope_free(s);
    return 0;
}

/* ---- what is there in the end --------------------------------------------------------------- */

static uint32_t check_records(struct hf_scope *s, struct hf_once_table *onces)
{
    struct hf_once_list list;
    uint32_t key = 0;

    if (hf_once_list(s, onces, HF_STR("u"), NULL, &list) != HF_OK)
        die("list", s);
    for (; key < list.records_len; key++) {
        if (list.records[key].state != HF_ONCE_DONE)
            fail("not done", key);
        told(key, list.records[key].result);
    }
    return key;
}

static uint32_t check_effects(struct hf_scope *s, struct hf_db *db)
{
    struct hf_query query = {.table = HF_STR("once"),
                             .key_condition = HF_STR("#u = :u"),
                             .names = HF_ITEM(s, HF_S("#u", HF_STR("user"))),
                             .values = HF_ITEM(s, HF_S(":u", HF_STR("effects")))};
    struct hf_query_result page;
    uint32_t count = 0;

    do {
        if (hf_query(s, db, &query, &page) != HF_OK)
            die("query", s);
        for (size_t i = 0; i < page.items_len; i++, count++) {
            int64_t times = 0;

            (void)hf_value_i64(hf_item_get(page.items[i], HF_STR("times")), &times);
            if (times != 1)
                fail("its effect was done more than once", count * 2 + 1);
        }
        query.start = page.last;
    } while (page.last.ptr);
    return count;
}

static int check(uint16_t port)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = join(s, port);
    struct hf_once_table *onces;

    if (hf_once_table_open(s, db, HF_OPTIONS(hf_once_table_options, .no_threads = true), &onces) !=
        HF_OK)
        die("check", s);
    if (check_records(s, onces) != shared->keys)
        fail("there are more or fewer", shared->keys);
    if (check_effects(s, db) != shared->keys / 2)
        fail("there are more or fewer effects", shared->keys);
    hf_once_table_close(onces);
    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}

/* ---- the parent ----------------------------------------------------------------------------- */

static pid_t start(int (*run)(uint16_t port, int me), uint16_t port, int me)
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork", NULL);
    if (pid == 0)
        _exit(run(port, me));
    return pid;
}

static int run_check(uint16_t port, int me)
{
    (void)me;
    return check(port);
}

static pid_t start_server(uint16_t *port)
{
    int ends[2];
    pid_t pid;

    if (pipe(ends) != 0)
        die("pipe", NULL);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        _exit(serve(ends[1]));
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], port, sizeof(*port)) != sizeof(*port))
        die("no server", NULL);
    close(ends[0]);
    return pid;
}

/* One look at each worker: those that were killed start again. How many are still at it? */
static int look_after(pid_t *pids, int workers, uint16_t port)
{
    int busy = 0;

    for (int i = 0; i < workers; i++) {
        int how;

        if (pids[i] && waitpid(pids[i], &how, WNOHANG) == pids[i]) {
            if (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL)
                pids[i] = start(worker, port, i);
            else if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
                pids[i] = 0;
            else
                die("a worker ended in another way", NULL);
        }
        busy += pids[i] != 0;
    }
    return busy;
}

/* No window is begun after those that were. */
static void close_up(void)
{
    shared->closing = true;
    if (shared->front < shared->keys)
        shared->keys = shared->front;
    shared->closed = true;
}

int main(int argc, char **argv)
{
    uint32_t keys = 10000, kills = 0, seconds = 0;
    int workers = 10, how;
    pid_t server, checker, pids[WORKERS_MAX];
    time_t began = time(NULL);
    uint16_t port;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--keys") == 0)
            keys = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--workers") == 0)
            workers = (int)strtol(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    }
    if (keys < 2 || keys > 1000000 || workers < 1 || workers > WORKERS_MAX)
        die("usage: once_kills [--keys N] [--workers N] [--seconds N]", NULL);
    shared = mmap(NULL, sizeof(*shared) + keys * sizeof(shared->key[0]), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap", NULL);
    shared->keys = keys;
    server = start_server(&port);
    for (int i = 0; i < workers; i++)
        pids[i] = start(worker, port, i);
    for (int busy = workers; busy > 0; busy = look_after(pids, workers, port)) {
        int victim = rand() % workers;

        if (time(NULL) - began > LIMIT_S || shared->failures)
            break;
        if (seconds && time(NULL) - began >= seconds && !shared->closing)
            close_up();
        nap_ms(10);
        if (rand() % 10 == 0 && pids[victim]) {
            kill(pids[victim], SIGKILL);
            kills++;
        }
    }
    for (int i = 0; i < workers; i++)
        if (pids[i]) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
            fail("a worker is not done", 0);
        }
    checker = start(run_check, port, 0);
    if (waitpid(checker, &how, 0) != checker || how != 0)
        fail("no check", 0);
    kill(server, SIGTERM);
    if (waitpid(server, &how, 0) != server || how != 0)
        fail("the server ended in another way", 0);
    if (shared->suicides * 5 < shared->acted)
        fail("too few were killed in the middle of it", 0);
    printf("%u keys, %d workers: %llu attempts, %llu of them fenced, %llu killed in the midst, "
           "%u kills besides; %d failures; %lld s\n",
           shared->keys, workers, (unsigned long long)shared->acted,
           (unsigned long long)shared->lost, (unsigned long long)shared->suicides, kills,
           shared->failures, (long long)(time(NULL) - began));
    return shared->failures ? 1 : 0;
}
