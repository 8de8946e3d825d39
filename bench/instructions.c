/*
 * bench/instructions.c: one operation, so many times, for callgrind to count: see bench/instructions.
 *
 *     bench_instructions URL OPERATION ITEMS CALLS
 *
 * It uses installed headers alone, so that bench/instructions can build it with the libraries of another version.
 * Everything that is not the call stays outside of measure(), which callgrind collects: loading, requests, scopes.
 * Keys follow one another in the same way in every run, so two runs of a build differ by what threads do.
 */
#include "lib_table.h"

#include <holdfast/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITION = 100, BODY = 700, BATCH = 25, QUERY = 50, TRANSACT = 4 };

struct bench {
    struct hf_scope *s;
    struct hf_db *db;
    size_t items;
    bool indexed;
    size_t at; /* which call it is */
    char body[BODY];
};

static void die(struct hf_scope *s, const char *what)
{
    fprintf(stderr, "bench_instructions: %s: %s\n", what, s ? hf_scope_error_text(s) : "");
    exit(1);
}

/* ---- data ----------------------------------------------------------------------------------- */

static struct hf_item key_of(struct bench *b, size_t number)
{
    return HF_ITEM(b->s, HF_S("pk", hf_scope_format(b->s, "p%08u", (unsigned)(number / PARTITION))),
                   HF_N("sk", number % PARTITION));
}

static struct hf_item item_of(struct bench *b, size_t number)
{
    struct hf_scope *s = b->s;
    const struct hf_str tags[] = {HF_STR("blue"), HF_STR("large"), HF_STR("new")};

    return HF_ITEM(s, HF_S("pk", hf_scope_format(s, "p%08u", (unsigned)(number / PARTITION))),
                   HF_N("sk", number % PARTITION),
                   HF_S("owner", hf_scope_format(s, "o%08u", (unsigned)(number / PARTITION))),
                   HF_N("created", 1700000000 + number + b->at), HF_S("name", HF_STR("Ann Other")),
                   HF_S("email", HF_STR("ann.other@example.com")), HF_BOOL("active", number % 2),
                   HF_N("score", number % 1000), HF_N("visits", 0), HF_SS("tags", tags, 3),
                   HF_S("body", hf_str_of(b->body, BODY)));
}

/* Items are visited in an order that is none: 7919 is prime, and larger than any step that is a pattern. */
static size_t pick(const struct bench *b)
{
    return b->at * 7919 % b->items;
}

static void table_make(struct bench *b)
{
    if (bench_table_make(b->s, b->db, b->indexed) != HF_OK)
        die(b->s, "CreateTable");
    for (size_t i = 0; i < b->items; i++) {
        const struct hf_put_item put = {.table = HF_STR(BENCH_TABLE), .item = item_of(b, i)};

        if (hf_put_item(b->s, b->db, &put, NULL) != HF_OK)
            die(b->s, "PutItem");
        hf_scope_reset(b->s);
    }
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* What callgrind collects. */
enum hf_status measure(struct bench *b, enum hf_op op, const void *request, void *result);

__attribute__((noinline)) enum hf_status measure(struct bench *b, enum hf_op op,
                                                 const void *request, void *result)
{
    return hf_db_call(b->s, b->db, op, request, result);
}

static void check(const struct bench *b, enum hf_status status, bool right, const char *what)
{
    if (status != HF_OK)
        die(b->s, what);
    if (!right)
        die(NULL, "a wrong answer");
}

static void get(struct bench *b)
{
    const struct hf_get_item request = {.table = HF_STR(BENCH_TABLE), .key = key_of(b, pick(b))};
    struct hf_get_item_result result;
    enum hf_status status;

    status = measure(b, HF_OP_GET_ITEM, &request, &result);
    check(b, status, result.item.ptr, "GetItem");
}

static void put(struct bench *b)
{
    const struct hf_put_item request = {.table = HF_STR(BENCH_TABLE), .item = item_of(b, pick(b))};
    struct hf_put_item_result result;
    enum hf_status status;

    status = measure(b, HF_OP_PUT_ITEM, &request, &result);
    check(b, status, true, "PutItem");
}

static struct hf_update_item update_of(struct bench *b, size_t number)
{
    return (struct hf_update_item){.table = HF_STR(BENCH_TABLE),
                                   .key = key_of(b, number),
                                   .update = HF_STR("ADD visits :one"),
                                   .values = HF_ITEM(b->s, HF_N(":one", 1))};
}

static void update(struct bench *b)
{
    const struct hf_update_item request = update_of(b, pick(b));
    struct hf_update_item_result result;
    enum hf_status status;

    status = measure(b, HF_OP_UPDATE_ITEM, &request, &result);
    check(b, status, true, "UpdateItem");
}

static void query(struct bench *b)
{
    size_t partition = pick(b) / PARTITION;
    const struct hf_query request = {
        .table = HF_STR(BENCH_TABLE),
        .index = b->indexed ? HF_STR(BENCH_INDEX) : hf_str_of(NULL, 0),
        .key_condition = b->indexed ? HF_STR("#k = :k") : HF_STR("pk = :k"),
        .names =
            b->indexed ? HF_ITEM(b->s, HF_S("#k", HF_STR("owner"))) : (struct hf_item){NULL, 0},
        .values = HF_ITEM(b->s, HF_S(":k", hf_scope_format(b->s, "%c%08u", b->indexed ? 'o' : 'p',
                                                           (unsigned)partition))),
        .limit = QUERY};
    struct hf_query_result result;
    enum hf_status status;

    status = measure(b, HF_OP_QUERY, &request, &result);
    check(b, status, result.items_len == QUERY, "Query");
}

static void batch(struct bench *b)
{
    struct hf_put_request puts[BATCH];
    struct hf_write_request writes[BATCH];
    struct hf_table_writes table = {.table = HF_STR(BENCH_TABLE),
                                    .writes = writes,
                                    .writes_len = BATCH};
    const struct hf_batch_write_item request = {.tables = &table, .tables_len = 1};
    struct hf_batch_write_item_result result;
    enum hf_status status;

    memset(writes, 0, sizeof(writes));
    for (size_t i = 0; i < BATCH; i++) {
        puts[i] = (struct hf_put_request){.item = item_of(b, (pick(b) + i * 31) % b->items)};
        writes[i].put = &puts[i];
    }
    status = measure(b, HF_OP_BATCH_WRITE_ITEM, &request, &result);
    check(b, status, true, "BatchWriteItem");
}

static void transact(struct bench *b)
{
    size_t first = pick(b);
    const struct hf_put_item puts[] = {{.table = HF_STR(BENCH_TABLE), .item = item_of(b, first)},
                                       {.table = HF_STR(BENCH_TABLE),
                                        .item = item_of(b, (first + 31) % b->items)}};
    const struct hf_update_item change = update_of(b, (first + 62) % b->items);
    const struct hf_condition_check there = {.table = HF_STR(BENCH_TABLE),
                                             .key = key_of(b, (first + 93) % b->items),
                                             .condition = HF_STR("attribute_exists(pk)")};
    const struct hf_transact_write actions[TRANSACT] = {{.put = &puts[0]},
                                                        {.put = &puts[1]},
                                                        {.update = &change},
                                                        {.check = &there}};
    const struct hf_transact_write_items request = {.actions = actions, .actions_len = TRANSACT};
    struct hf_transact_write_items_result result;
    enum hf_status status;

    status = measure(b, HF_OP_TRANSACT_WRITE_ITEMS, &request, &result);
    check(b, status, true, "TransactWriteItems");
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    bool indexed;
} operations[] = {{"get", get, false},       {"put", put, false},
                  {"update", update, false}, {"query50", query, false},
                  {"batch25", batch, false}, {"transact4", transact, false},
                  {"gsi-put", put, true},    {"gsi-query50", query, true}};

int main(int argc, char **argv)
{
    struct bench b = {.s = hf_scope_new(NULL)};
    const struct hf_engine_options options = {.size = sizeof(options), .sync = HF_SYNC_NONE};
    size_t calls = argc > 4 ? strtoul(argv[4], NULL, 10) : 0, op = 0;

    while (argc > 2 && op < sizeof(operations) / sizeof(operations[0]) &&
           strcmp(argv[2], operations[op].name) != 0)
        op++;
    if (argc != 5 || !b.s || op == sizeof(operations) / sizeof(operations[0])) {
        fprintf(stderr, "usage: bench_instructions URL OPERATION ITEMS CALLS\n");
        return 2;
    }
    b.items = strtoul(argv[3], NULL, 10);
    b.indexed = operations[op].indexed;
    memset(b.body, 'b', sizeof(b.body));
    if (b.items < PARTITION || hf_open(b.s, hf_str_from(argv[1]), &options, &b.db) != HF_OK)
        die(b.s, "open");
    table_make(&b);
    for (b.at = 1; b.at <= calls; b.at++) {
        operations[op].run(&b);
        hf_scope_reset(b.s);
    }
    hf_db_close(b.db);
    hf_scope_free(b.s);
    return 0;
}
