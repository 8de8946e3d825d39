/*
 * test/lib/requests.c: machines that take requests as bytes.
 *
 * Letters of operations never change, as the corpus is made of them; a new operation takes a new
 * one.
 *
 * After an input everything is as it was before, and hardly any time goes into that. Nothing is
 * done if nothing was written; if only items changed, they are put back and the engine goes on with
 * the numbers it had; if tables, streams or backups changed, the engine is opened again. What the
 * engine has in its cache of expressions stays.
 */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/setting.h"
#include "engine/table/schema.h"
#include "ops/fields.h"
#include "rewind.h"
#include "store/store.h"
#include "wire/wire.h"

enum { LETTERS = 30, UPKEEP = 26, TABLES_MAX = 12, MEMTABLE_BYTES = 4 * 1024 * 1024 };

#define FIRST_US INT64_C(1767225600000000) /* the clock begins in 2026 */

static const struct {
    const char *name;
    unsigned may; /* statuses beyond those of every operation, as bits */
} letters[] = {
#define BIT(status) (1u << HF_##status)
#define WRITES (BIT(CONDITION) | BIT(COLLECTION_SIZE))
#define TABLES (BIT(IN_USE) | BIT(LIMIT))
    {"BatchGetItem", 0},
    {"BatchWriteItem", BIT(COLLECTION_SIZE)},
    {"CreateTable", TABLES},
    {"DeleteItem", WRITES},
    {"DeleteTable", TABLES},
    {"DescribeEndpoints", 0},
    {"DescribeLimits", 0},
    {"DescribeStream", 0},
    {"DescribeTable", 0},
    {"DescribeTimeToLive", 0},
    {"GetItem", 0},
    {"GetRecords", BIT(EXPIRED) | BIT(TRIMMED)},
    {"GetShardIterator", BIT(TRIMMED)},
    {"ListStreams", 0},
    {"ListTables", 0},
    {"ListTagsOfResource", 0},
    {"PutItem", WRITES},
    {"Query", 0},
    {"Scan", 0},
    {"TagResource", TABLES},
    {"TransactGetItems", BIT(TX_CANCELED)},
    {"TransactWriteItems", BIT(TX_CANCELED) | BIT(TOKEN_MISMATCH)},
    {"UntagResource", TABLES},
    {"UpdateItem", WRITES},
    {"UpdateTable", TABLES},
    {"UpdateTimeToLive", TABLES},
    {"", 0}, /* upkeep */
    {"ExecuteStatement", WRITES | BIT(DUPLICATE)},
    {"BatchExecuteStatement", 0},
    {"ExecuteTransaction", BIT(TX_CANCELED) | BIT(TOKEN_MISMATCH)},
};

/* DENIED: any table may be named by an ARN of another account. */
static const unsigned always =
    BIT(OK) | BIT(INVALID) | BIT(SERIALIZATION) | BIT(NOT_FOUND) | BIT(DENIED);

/* ---- the world of a machine ------------------------------------------------------------------ */

static int64_t clock_of(void *user)
{
    return ((struct machine *)user)->now_us;
}

static void sleep_of(int64_t us, void *user)
{
    ((struct machine *)user)->now_us += us;
}

static void random_of(void *bytes, size_t len, void *user)
{
    struct machine *m = user;

    for (size_t i = 0; i < len; i++) {
        m->random = m->random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)bytes)[i] = (uint8_t)(m->random >> 56);
    }
}

static void must_do(struct machine *m, const char *line)
{
    enum hf_status status;
    struct hf_str answer = machine_do(m, (const uint8_t *)line, strlen(line), &status);

    if (status != HF_OK) {
        fprintf(stderr, "%s: %.*s\n", line, HF_FMT(answer));
        abort();
    }
    hf_scope_reset(m->s);
}

/* The tables "users", "orders" and "blobs", with a few items. */
static void make_tables(struct machine *m)
{
    must_do(m, "C{\"TableName\":\"users\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{"
               "\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{"
               "\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},{\"AttributeName\":\"g\","
               "\"AttributeType\":\"S\"}],\"GlobalSecondaryIndexes\":[{\"IndexName\":\"by_g\","
               "\"KeySchema\":[{\"AttributeName\":\"g\",\"KeyType\":\"HASH\"}],\"Projection\":{"
               "\"ProjectionType\":\"ALL\"}}],\"StreamSpecification\":{\"StreamEnabled\":true,"
               "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}");
    must_do(m, "Z{\"TableName\":\"users\",\"TimeToLiveSpecification\":{\"Enabled\":true,"
               "\"AttributeName\":\"e\"}}");
    must_do(m, "C{\"TableName\":\"orders\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{"
               "\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"sk\","
               "\"KeyType\":\"RANGE\"}],\"AttributeDefinitions\":[{\"AttributeName\":\"pk\","
               "\"AttributeType\":\"S\"},{\"AttributeName\":\"sk\",\"AttributeType\":\"N\"},{"
               "\"AttributeName\":\"l\",\"AttributeType\":\"S\"},{\"AttributeName\":\"g\","
               "\"AttributeType\":\"N\"}],\"LocalSecondaryIndexes\":[{\"IndexName\":\"by_l\","
               "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},{"
               "\"AttributeName\":\"l\",\"KeyType\":\"RANGE\"}],\"Projection\":{"
               "\"ProjectionType\":\"INCLUDE\",\"NonKeyAttributes\":[\"v\"]}}],"
               "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"by_g\",\"KeySchema\":[{"
               "\"AttributeName\":\"g\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"l\","
               "\"KeyType\":\"RANGE\"}],\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}}]}");
    must_do(m, "C{\"TableName\":\"blobs\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{"
               "\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{"
               "\"AttributeName\":\"pk\",\"AttributeType\":\"B\"}]}");
    must_do(m, "Q{\"TableName\":\"users\",\"Item\":{\"pk\":{\"S\":\"ann\"},\"g\":{\"S\":\"x\"},"
               "\"v\":{\"N\":\"1\"}}}");
    must_do(m, "Q{\"TableName\":\"users\",\"Item\":{\"pk\":{\"S\":\"ben\"},\"e\":{\"N\":"
               "\"1767225601\"},\"s\":{\"SS\":[\"a\",\"b\"]}}}");
    must_do(m, "Q{\"TableName\":\"orders\",\"Item\":{\"pk\":{\"S\":\"ann\"},\"sk\":{\"N\":\"1\"},"
               "\"l\":{\"S\":\"b\"},\"g\":{\"N\":\"7\"},\"v\":{\"L\":[{\"N\":\"1\"}]}}}");
    must_do(m, "Q{\"TableName\":\"orders\",\"Item\":{\"pk\":{\"S\":\"ann\"},\"sk\":{\"N\":\"-2\"},"
               "\"l\":{\"S\":\"a\"},\"g\":{\"N\":\"7\"}}}");
}

static struct hf_engine_options engine_options(struct machine *m)
{
    return (struct hf_engine_options){.size = sizeof(struct hf_engine_options),
                                      .env = &m->env,
                                      .sync = HF_SYNC_NONE,
                                      .no_upkeep_thread = true,
                                      .stream_shards = 2};
}

static void engine_begin(struct machine *m)
{
    struct hf_engine_options options = engine_options(m);

    if (hf__engine_open_on(m->s, m->store, &options, &m->db) != HF_OK) {
        fprintf(stderr, "%s\n", hf_scope_error_text(m->s));
        abort();
    }
    rewind_forget(m->store);
}

/* What an engine keeps in memory of what is stored, but for the schema. */
struct machine_state {
    uint64_t next;
    uint64_t reserved;
    size_t tables_len;
    struct table_counts counts[TABLES_MAX];
};

static void save_state(struct machine *m)
{
    struct engine *e = hf__engine_of(m->db);
    struct machine_state *state = m->state;

    state->next = e->sequencer.next;
    state->reserved = e->sequencer.reserved;
    state->tables_len = e->catalog.len;
    MUST(state->tables_len <= TABLES_MAX);
    for (size_t i = 0; i < state->tables_len; i++)
        memcpy(&state->counts[i], e->catalog.tables[i]->counts, sizeof(state->counts[i]));
}

static void restore_state(struct machine *m)
{
    struct engine *e = hf__engine_of(m->db);
    const struct machine_state *state = m->state;

    MUST(!e->sequencer.first && e->catalog.len == state->tables_len);
    e->sequencer.next = state->next;
    e->sequencer.reserved = state->reserved;
    for (size_t i = 0; i < state->tables_len; i++) {
        struct table_counts *counts = e->catalog.tables[i]->counts;
        struct key_filter *keys = counts->keys; /* of this engine: it may find more than there is */

        memcpy(counts, &state->counts[i], sizeof(*counts));
        counts->keys = keys;
    }
}

/* Time and randomness are the same for every input. */
static void world_begin(struct machine *m)
{
    m->now_us = FIRST_US + 1000000;
    m->random = 12345;
    m->iterator.len = m->stream.len = m->shard.len = m->last.len = 0;
}

void machine_open(struct machine *m, const char *directory)
{
    struct store_options options = {.sync = STORE_SYNC_NONE, .memtable_bytes = MEMTABLE_BYTES};
    struct hf__store *inner;
    enum hf_status status;

    *m = (struct machine){.now_us = FIRST_US, .random = 1};
    m->env = (struct hf_env){.size = sizeof(struct hf_env),
                             .user = m,
                             .wall_us = clock_of,
                             .elapsed_us = clock_of,
                             .random = random_of,
                             .sleep = sleep_of};
    m->s = hf_scope_new(&m->env);
    status = directory
                 ? hf__store_open_disk(m->s, &m->env, hf_str_from(directory), &options, &inner)
                 : hf__store_open_memory(m->s, &m->env, &inner);
    if (status != HF_OK) {
        fprintf(stderr, "%s: %s\n", directory, hf_scope_error_text(m->s));
        abort();
    }
    rewind_open(m->s, &m->env, inner, &m->store);
    m->state = malloc(sizeof(*m->state));
    MUST(m->state);
    engine_begin(m);
    make_tables(m);
    machine_mark(m);
}

void machine_mark(struct machine *m)
{
    hf_db_close(m->db); /* which saves counts */
    engine_begin(m);
    rewind_mark(m->store);
    save_state(m);
    world_begin(m);
}

void machine_close(struct machine *m)
{
    hf_db_close(m->db);
    rewind_close(m->store);
    hf_scope_free(m->s);
    free(m->state);
}

bool machine_changed(const struct machine *m)
{
    return rewind_wrote(m->store);
}

/* The schema changed: open another engine. It finds the counts that the first one left. */
static void engine_again(struct machine *m)
{
    struct store_batch batch = {.ops = {.scope = m->s}};
    uint64_t ticket;

    hf_db_close(m->db);
    rewind_back(m->store);
    hf__setting_put(m->s, &batch, "clean", hf_bytes_of("1", 1));
    MUST(!batch.ops.failed && hf__store_write(m->s, m->store, &batch, &ticket) == HF_OK);
    engine_begin(m);
}

void machine_end(struct machine *m)
{
    if (rewind_wrote_in(m->store, SPACE_TABLE, SPACE_BACKUP)) {
        engine_again(m);
    } else if (rewind_wrote(m->store)) {
        rewind_back(m->store);
        rewind_forget(m->store);
        restore_state(m);
    }
    world_begin(m);
    hf_scope_reset(m->s);
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* Keep what stands behind `before` in the answer, up to `end`. */
static void keep(struct kept *kept, struct hf_str answer, const char *before, const char *end)
{
    const char *from = memmem(answer.ptr, answer.len, before, strlen(before));
    const char *to;

    if (!from)
        return;
    from += strlen(before);
    to = memmem(from, (size_t)(answer.ptr + answer.len - from), end, strlen(end));
    if (!to || (size_t)(to - from) > KEPT_MAX)
        return;
    kept->len = (size_t)(to - from);
    memcpy(kept->bytes, from, kept->len);
}

static void keep_all(struct machine *m, struct hf_str answer)
{
    keep(&m->iterator, answer, "ShardIterator\":\"", "\"");
    keep(&m->stream, answer, "StreamArn\":\"", "\"");
    keep(&m->shard, answer, "\"ShardId\":\"", "\"");
    keep(&m->last, answer, "\"LastEvaluatedKey\":", "}}");
    if (m->last.len && m->last.len + 2 < KEPT_MAX && m->last.bytes[m->last.len - 1] == '"') {
        memcpy(m->last.bytes + m->last.len, "}}", 2);
        m->last.len += 2;
    }
}

static struct hf_str fill_in(struct machine *m, const uint8_t *body, size_t len)
{
    struct hf__buf out = {.scope = m->s};

    for (size_t i = 0; i < len; i++) {
        const struct kept *kept = NULL;

        if (body[i] == '$' && i + 1 < len) {
            kept = body[i + 1] == 'I'   ? &m->iterator
                   : body[i + 1] == 'S' ? &m->stream
                   : body[i + 1] == 'H' ? &m->shard
                   : body[i + 1] == 'L' ? &m->last
                                        : NULL;
        }
        if (kept) {
            hf__buf_put(&out, kept->bytes, kept->len);
            i++;
        } else {
            hf__buf_put_byte(&out, body[i]);
        }
    }
    hf__buf_reserve(&out, 1);
    return hf_str_of((const char *)out.ptr, out.len);
}

/* ---- requests -------------------------------------------------------------------------------- */

static const struct op *op_of(const char *name)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, hf_str_from(name));

    return op ? op : hf__op_of_name(OP_STREAMS, hf_str_from(name));
}

struct hf_str machine_do(struct machine *m, const uint8_t *line, size_t len, enum hf_status *status)
{
    unsigned letter = (line[0] + 10u * LETTERS - 'A') % LETTERS;
    struct hf__buf buf = {.scope = m->s};
    const struct op *op;
    struct hf_str answer;
    void *request, *response;

    if (letter == UPKEEP) {
        m->now_us += INT64_C(1000000) * (1 + (len > 1 ? line[1] % 8 * 200 : 0));
        *status = hf_engine_upkeep(m->s, m->db, NULL);
        MUST(*status == HF_OK);
        return HF_STR("{}");
    }
    op = op_of(letters[letter].name);
    request = hf__scope_array(m->s, 1, op->request->size);
    response = hf__scope_array(m->s, 1, op->response->size);
    MUST(request && response);
    *status = hf__wire_read(m->s, op->request, fill_in(m, line + 1, len - 1), request);
    if (*status == HF_OK)
        *status = hf_db_call(m->s, m->db, op->op, request, response);
    if (*status == HF_OK)
        hf__wire_write(&buf, op->response, response);
    else
        hf__wire_write_error(&buf, hf_scope_error(m->s));
    MUST(!buf.failed);
    answer = hf_str_of((const char *)buf.ptr, buf.len);
    if (!((always | letters[letter].may) >> *status & 1) || !hf__wire_json_valid(answer)) {
        fprintf(stderr, "%s answers %s: %.*s\n", letters[letter].name, hf_status_name(*status),
                HF_FMT(answer));
        abort();
    }
    keep_all(m, answer);
    return answer;
}

bool next_line(const uint8_t **data, size_t *size, const uint8_t **line, size_t *len)
{
    const uint8_t *end;

    while (*size > 0) {
        end = memchr(*data, '\n', *size);
        *line = *data;
        *len = end ? (size_t)(end - *data) : *size;
        *data += *len + (end != NULL);
        *size -= *len + (end != NULL);
        if (*len > 0)
            return true;
    }
    return false;
}
