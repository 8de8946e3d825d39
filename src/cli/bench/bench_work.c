/*
 * cli/bench/bench_work.c: the workers of `holdfast bench`: threads that send requests and measure.
 *
 * Without a rate a worker sends the next request when the last one has ended: a closed loop. A
 * database that stalls is then asked less, and the requests that would have waited are not measured
 * ("coordinated omission"). With a rate each request has a time at which it is due:
 *
 *     start + (n * workers + worker number) * second / rate
 *
 * and its duration runs from there, however late it was sent. What is due and was not sent when the
 * time is over counts as missed.
 *
 * Requests of the warm-up are sent and not counted. A put always changes its item: the engine writes
 * nothing for an item that stays as it is.
 */
#include "cli/bench/bench.h"

#include "base/base.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

enum { NAP_MAX_NS = 50 * 1000 * 1000 }; /* how soon a worker that waits sees that it is to stop */

const char *const hf__bench_names[BENCH_KINDS] = {"get",   "put",      "update",
                                                  "query", "transact", "mixed"};

uint64_t hf__bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- requests ------------------------------------------------------------------------------- */

struct hf_item hf__bench_key(struct hf_scope *s, uint64_t number)
{
    return HF_ITEM(s,
                   HF_S("pk", hf_scope_format(s, "p%07llu",
                                              (unsigned long long)(number / BENCH_PARTITION))),
                   HF_N("sk", (int64_t)(number % BENCH_PARTITION)));
}

struct hf_item hf__bench_item(struct hf_scope *s, uint64_t number, int64_t n, struct hf_str data)
{
    return HF_ITEM(s,
                   HF_S("pk", hf_scope_format(s, "p%07llu",
                                              (unsigned long long)(number / BENCH_PARTITION))),
                   HF_N("sk", (int64_t)(number % BENCH_PARTITION)), HF_N("n", n),
                   HF_S("data", data));
}

/* xorshift64*: quick, and good enough to choose keys. */
static uint64_t random_next(struct bench_worker *worker)
{
    assert(worker->random != 0); /* xorshift stays at 0 */
    worker->random ^= worker->random >> 12;
    worker->random ^= worker->random << 25;
    worker->random ^= worker->random >> 27;
    return worker->random * UINT64_C(2685821657736338717);
}

static uint64_t random_item(struct bench_worker *worker)
{
    assert(worker->run->items > 0);
    return (random_next(worker) >> 16) % worker->run->items;
}

static struct hf_update_item update_make(struct bench_worker *worker, uint64_t number)
{
    struct hf_scope *s = worker->scope;

    return (struct hf_update_item){.table = worker->run->table,
                                   .key = hf__bench_key(s, number),
                                   .update = HF_STR("ADD n :one"),
                                   .values = HF_ITEM(s, HF_N(":one", 1))};
}

static enum hf_status query_send(struct bench_worker *worker)
{
    struct hf_scope *s = worker->scope;
    struct hf_str pk =
        hf_scope_format(s, "p%07llu", (unsigned long long)(random_item(worker) / BENCH_PARTITION));
    struct hf_query_result result;

    return hf_query(s, worker->run->db,
                    &(struct hf_query){.table = worker->run->table,
                                       .key_condition = HF_STR("pk = :pk"),
                                       .values = HF_ITEM(s, HF_S(":pk", pk))},
                    &result);
}

/* Two items in one transaction. They are neighbours in the table, and never the same. */
static enum hf_status transact_send(struct bench_worker *worker)
{
    uint64_t first = random_item(worker), second = (first + 1) % worker->run->items;
    struct hf_update_item updates[2] = {update_make(worker, first), update_make(worker, second)};
    struct hf_transact_write actions[2] = {{.update = &updates[0]}, {.update = &updates[1]}};

    assert(first != second);
    return hf_transact_write_items(worker->scope, worker->run->db,
                                   &(struct hf_transact_write_items){.actions = actions,
                                                                     .actions_len = 2},
                                   NULL);
}

static enum hf_status request_send(struct bench_worker *worker, enum bench_op op)
{
    const struct bench_run *run = worker->run;
    struct hf_scope *s = worker->scope;
    struct hf_get_item_result got;
    struct hf_update_item update;

    assert(op < BENCH_OPS);
    switch (op) {
    case BENCH_GET:
        return hf_get_item(s, run->db,
                           &(struct hf_get_item){.table = run->table,
                                                 .key = hf__bench_key(s, random_item(worker))},
                           &got);
    case BENCH_PUT:
        return hf_put_item(
            s, run->db,
            &(struct hf_put_item){.table = run->table,
                                  .item = hf__bench_item(s, random_item(worker),
                                                         (int64_t)(random_next(worker) >> 33),
                                                         run->data)},
            NULL);
    case BENCH_UPDATE:
        update = update_make(worker, random_item(worker));
        return hf_update_item(s, run->db, &update, NULL);
    case BENCH_QUERY:
        return query_send(worker);
    case BENCH_TRANSACT:
    case BENCH_OPS:
        break;
    }
    return transact_send(worker);
}

/* Of a hundred requests of the mixture: 60 get, 20 put, 10 update, 8 query, 2 transact. */
static enum bench_op op_choose(struct bench_worker *worker)
{
    unsigned at;

    if (worker->run->kind != BENCH_MIXED)
        return (enum bench_op)worker->run->kind;
    at = (unsigned)((random_next(worker) >> 32) % 100);
    return at < 60   ? BENCH_GET
           : at < 80 ? BENCH_PUT
           : at < 90 ? BENCH_UPDATE
           : at < 98 ? BENCH_QUERY
                     : BENCH_TRANSACT;
}

/* ---- workers -------------------------------------------------------------------------------- */

static void error_note(struct bench_worker *worker, enum bench_op op)
{
    struct bench_run *run = worker->run;

    pthread_mutex_lock(&run->lock);
    if (!run->error[0])
        snprintf(run->error, sizeof(run->error), "%s: %s", hf__bench_names[op],
                 hf_scope_error_text(worker->scope));
    pthread_mutex_unlock(&run->lock);
}

static void counter_add(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static bool is_over(const struct bench_run *run, uint64_t now)
{
    return now >= run->until_ns || atomic_load_explicit(&run->stop, memory_order_relaxed);
}

/* Wait until `due`; false: it is over before that. */
static bool due_wait(const struct bench_run *run, uint64_t due)
{
    for (;;) {
        uint64_t now = hf__bench_now_ns(), left;
        struct timespec nap = {0, 0};

        if (is_over(run, now) || due >= run->until_ns)
            return false;
        if (now >= due)
            return true;
        left = due - now < NAP_MAX_NS ? due - now : NAP_MAX_NS;
        nap.tv_nsec = (long)left;
        nanosleep(&nap, NULL);
    }
}

/* One request, whose duration runs from `begin_ns`. */
static void request_measure(struct bench_worker *worker, uint64_t begin_ns)
{
    struct bench_run *run = worker->run;
    enum bench_op op = op_choose(worker);
    enum hf_status status;
    uint64_t end_ns;

    hf_scope_reset(worker->scope);
    hf_scope_timeout_ms(worker->scope, run->timeout_ms);
    status = request_send(worker, op);
    end_ns = hf__bench_now_ns();
    counter_add(&worker->done);
    if (begin_ns < run->from_ns)
        return;
    if (status == HF_OK)
        hf__bench_times_add(&worker->ops[op].times, end_ns > begin_ns ? end_ns - begin_ns : 0);
    else if (status == HF_THROTTLED)
        counter_add(&worker->ops[op].throttles);
    else if (!atomic_load(&run->stop)) {
        counter_add(&worker->ops[op].errors);
        error_note(worker, op);
    }
}

static uint64_t due_of(const struct bench_worker *worker, uint64_t nth)
{
    const struct bench_run *run = worker->run;
    double place = (double)(nth * run->connections + worker->number);

    return run->start_ns + (uint64_t)(place * (double)SECOND_NS / (double)run->rate);
}

static void *worker_run(void *user)
{
    struct bench_worker *worker = user;
    struct bench_run *run = worker->run;

    for (uint64_t nth = 0;; nth++) {
        uint64_t begin = run->rate ? due_of(worker, nth) : hf__bench_now_ns();

        if (run->rate ? !due_wait(run, begin) : is_over(run, begin)) {
            while (run->rate && !atomic_load(&run->stop) && begin < run->until_ns) {
                worker->missed++;
                begin = due_of(worker, ++nth);
            }
            return NULL;
        }
        request_measure(worker, begin);
    }
}

void hf__bench_stop(struct bench_run *run)
{
    atomic_store(&run->stop, true);
    for (size_t i = 0; i < run->workers_len; i++)
        hf_scope_cancel(run->workers[i].scope);
}

void hf__bench_join(struct bench_run *run)
{
    for (size_t i = 0; i < run->workers_len; i++)
        pthread_join(run->workers[i].thread, NULL);
}

enum hf_status hf__bench_start(struct hf_scope *s, struct bench_run *run)
{
    assert(run->items > 1 && run->from_ns >= run->start_ns && run->until_ns > run->from_ns);
    for (run->workers_len = 0; run->workers_len < run->connections; run->workers_len++) {
        struct bench_worker *worker = &run->workers[run->workers_len];

        worker->run = run;
        worker->number = run->workers_len;
        worker->random = (run->start_ns + worker->number * UINT64_C(0x9E3779B97F4A7C15)) | 1;
        if (pthread_create(&worker->thread, NULL, worker_run, worker) != 0) {
            hf__bench_stop(run);
            hf__bench_join(run);
            return hf_scope_fail(s, HF_NOMEM, "cannot start %zu threads: use fewer --connections",
                                 run->connections);
        }
    }
    return HF_OK;
}
