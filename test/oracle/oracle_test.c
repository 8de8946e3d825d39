/*
 * oracle/oracle_test.c: random operations on the engine, every answer compared with the oracle's.
 *
 *     HF_ORACLE_SEEDS=n  so many rounds instead of ROUNDS
 *     HF_ORACLE_SEED=x   only the round with that seed, as it was printed by a mismatch
 *     HF_ORACLE_STEPS=n  so many operations in each round instead of STEPS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crash.h"
#include "drive.h"
#include "ops/fields.h"
#include "wire/wire.h"

enum { ROUNDS_MEMORY = 800, ROUNDS_DISK = 60, STEPS = 500 };

/* ---- calling and comparing ------------------------------------------------------------------- */

void mismatch(struct drive *d, const char *what, const char *expected, const char *actual)
{
    print_error("mismatch: %s\n  expected %s\n  actual   %s\n", what, expected, actual);
    print_error("  in %s %s\n", d->operation, d->request);
    print_error("  step %d of HF_ORACLE_SEED=0x%llx on %s\n", d->step, (unsigned long long)d->seed,
                d->on_disk ? "disk" : "memory");
    fail();
    abort();
}

void expect_text(struct drive *d, const char *what, const char *expected, const char *actual)
{
    if (strcmp(expected, actual) != 0)
        mismatch(d, what, expected, actual);
}

void expect_number(struct drive *d, const char *what, int64_t expected, int64_t actual)
{
    char a[32], b[32];

    if (expected == actual)
        return;
    snprintf(a, sizeof(a), "%lld", (long long)expected);
    snprintf(b, sizeof(b), "%lld", (long long)actual);
    mismatch(d, what, a, b);
}

const char *engine_item(struct drive *d, struct hf_item item)
{
    return item.ptr ? hf_item_to_json(d->w.scope, item).ptr : "none";
}

void expect_item(struct drive *d, const char *what, const struct val *expected,
                 struct hf_item actual)
{
    expect_text(d, what, item_text(&d->o.arena, expected), engine_item(d, actual));
}

static const struct op *op_of(const char *name)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, hf_str_from(name));

    return op ? op : hf__op_of_name(OP_STREAMS, hf_str_from(name));
}

enum hf_status drive_call(struct drive *d, const char *operation, const char *request,
                          void *response_out)
{
    const struct op *op = op_of(operation);
    void *typed = hf_scope_alloc(d->w.scope, op->request->size);
    enum hf_status status;

    d->operation = operation;
    d->request = request;
    d->calls++;
    memset(typed, 0, op->request->size);
    status = hf__wire_read(d->w.scope, op->request, hf_str_from(request), typed);
    if (status == HF_OK)
        status = hf_db_call(d->w.scope, d->w.db, op->op, typed, response_out);
    d->refused += status != HF_OK;
    return status;
}

void drive_ok(struct drive *d, const char *operation, const char *request, void *response_out)
{
    if (drive_call(d, operation, request, response_out) != HF_OK)
        mismatch(d, "status", "", hf_scope_error_text(d->w.scope));
}

bool chance(struct drive *d, int one_in)
{
    return rnd_one_in(&d->g.rnd, one_in);
}

struct otable *some_table(struct drive *d)
{
    return &d->o.tables[rnd_below(&d->g.rnd, d->o.tables_len)];
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void check(struct drive *d)
{
    struct hf_check_report report;

    d->operation = "check";
    d->request = "";
    if (hf_engine_check(d->w.scope, d->w.db, &report) != HF_OK)
        mismatch(d, "check", "", hf_scope_error_text(d->w.scope));
}

static void reopen(struct drive *d)
{
    d->operation = "reopen";
    d->request = "";
    if (d->on_disk)
        world_reopen(&d->w);
    else
        crash_world(&d->w);
}

static void one_step(struct drive *d)
{
    static const struct {
        void (*run)(struct drive *d);
        int weight;
    } kinds[] = {{do_write, 300},
                 {do_batch_write, 40},
                 {do_transact_write, 80},
                 {do_get, 60},
                 {do_batch_get, 30},
                 {do_transact_get, 20},
                 {do_query, 200},
                 {do_scan, 60},
                 {do_index_change, 12},
                 {do_ttl_change, 4},
                 {do_stream_change, 4},
                 {do_recreate, 2},
                 {do_upkeep, 12},
                 {do_advance, 12},
                 {compare_streams, 6},
                 {compare_tables, 6},
                 {check, 4},
                 {reopen, 5}};
    int all = 0, at;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        all += kinds[i].weight;
    at = rnd_below(&d->g.rnd, all);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        at -= kinds[i].weight;
        if (at < 0) {
            kinds[i].run(d);
            return;
        }
    }
}

static void one_round(struct test *t, const char *kind, uint64_t seed, int steps, uint64_t *calls,
                      uint64_t *refused)
{
    struct drive *d = calloc(1, sizeof(*d));

    d->t = t;
    d->seed = seed;
    d->g = (struct gen){.o = &d->o, .rnd = {seed}};
    d->on_disk = strcmp(kind, "disk:") == 0;
    d->w = world_open(t, kind);
    make_tables(d);
    for (d->step = 1; d->step <= steps; d->step++) {
        hf_scope_reset(d->w.scope);
        d->g.now_s = t->wall_us / 1000000;
        one_step(d);
    }
    hf_scope_reset(d->w.scope);
    compare_streams(d);
    compare_tables(d);
    check(d);
    world_close(&d->w);
    arena_free(&d->o.arena);
    *calls += d->calls;
    *refused += d->refused;
    free(d);
}

static long number_from(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 0) : otherwise;
}

static void run_rounds(struct test *t, const char *kind, int otherwise)
{
    long rounds = number_from("HF_ORACLE_SEEDS", (long)test_times((uint32_t)otherwise));
    int steps = (int)number_from("HF_ORACLE_STEPS", STEPS);
    const char *one = getenv("HF_ORACLE_SEED");
    uint64_t calls = 0, refused = 0;
    time_t began = time(NULL);

    if (one) {
        one_round(t, kind, strtoull(one, NULL, 0), steps, &calls, &refused);
        return;
    }
    for (long i = 0; i < rounds; i++)
        one_round(t, kind, test_random(t), steps, &calls, &refused);
    print_message("%s %ld rounds, %llu calls, %llu of them refused by both sides, %ld s\n", kind,
                  rounds, (unsigned long long)calls, (unsigned long long)refused,
                  (long)(time(NULL) - began));
}

TEST(oracle, memory)
{
    run_rounds(t, "memory:", ROUNDS_MEMORY);
}

TEST(oracle, disk)
{
    run_rounds(t, "disk:", ROUNDS_DISK);
}
