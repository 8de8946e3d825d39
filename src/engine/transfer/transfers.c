/*
 * engine/transfer/transfers.c: exports and imports: their records, and the threads that run them.
 *
 * Each has a record among the settings of the database, under "transfer/" and the kind and the tail of its
 * ARN. Settings are in no snapshot of the database (backup/snapshot.c): a restore leaves the records as
 * they are, as they are about what has happened.
 *
 *     RUNNING --> DONE
 *             \-> FAILED
 *
 * An export reads a snapshot of the store, that of the call that began it (export.c). An import fills a table
 * that was created with its record in one batch (import.c), and goes on after a crash where it was. Threads
 * run them, each one at a time, the oldest first; without threads hf_engine_upkeep() does.
 *
 * What always holds:
 *
 *  (1) DONE and FAILED are shown only when they are durable, and stay so.
 *  (2) A table is CREATING as long as an import into it is RUNNING, and nobody else uses it.
 *  (3) One thread at a time runs a transfer, and it alone changes its progress.
 *  (4) When the database was set to a snapshot, imports that ran then fail: their tables are not what
 *      their progress says. An export has a snapshot of its own and does not notice.
 *  (5) Records are kept for 90 days.
 *
 * transfers.lock is the last of all locks; no call is made while it is held.
 */
#include "engine/transfer/transfers.h"

#include "base/cond_monotonic.h"
#include "base/siphash.h"
#include "bulk/bucket.h"
#include "engine/layout.h"
#include "engine/setting.h"
#include "engine/table/catalog.h"
#include "engine/table/tables.h"
#include "ops/fields.h"
#include "wire/wire.h"

#include <errno.h>

enum {
    IMPORTS_MAX = 50, /* that run at a time, as DynamoDB has it */
    EXPORTS_MAX = 300,
    LIST_DEFAULT = 10,
    AGAIN_MS = 1000, /* before work that the database refused is tried again */
    TOKEN_BYTES = 64
};

static const int64_t kept_us = INT64_C(90) * 24 * 60 * 60 * 1000000;
static const int64_t token_us = INT64_C(8) * 60 * 60 * 1000000;

#define SETTING "transfer/"

/* ---- how one is stored ---------------------------------------------------------------------- */

#define AT(member) (uint16_t) offsetof(struct transfer_record, member)
#define NUMBER(wire, member)                                                                       \
    {                                                                                              \
        .name = wire, .kind = FIELD_INT, .at = AT(member), .rules = FIELD_LONG                     \
    }
#define TEXT(wire, member)                                                                         \
    {                                                                                              \
        .name = wire, .kind = FIELD_STR, .at = AT(member)                                          \
    }

extern const struct fields hf__fields_export_table_to_point_in_time;
extern const struct fields hf__fields_import_table;

static const struct field record_list[] = {
    NUMBER("Kind", kind),
    NUMBER("State", state),
    TEXT("Arn", arn),
    TEXT("TableArn", table_arn),
    TEXT("TableId", table_id),
    NUMBER("TableNumber", table_number),
    TEXT("ClientToken", client_token),
    NUMBER("Started", started_us),
    NUMBER("Ended", ended_us),
    {.name = "Export",
     .kind = FIELD_STRUCT,
     .at = AT(export_request),
     .sub = &hf__fields_export_table_to_point_in_time},
    {.name = "Import",
     .kind = FIELD_STRUCT,
     .at = AT(import_request),
     .sub = &hf__fields_import_table},
    NUMBER("Items", items),
    NUMBER("Processed", processed),
    NUMBER("Errors", errors),
    NUMBER("Bytes", bytes),
    TEXT("Object", object),
    NUMBER("Records", records),
    TEXT("FailureCode", failure_code),
    TEXT("FailureMessage", failure_message),
};
static const struct fields record_fields = {"Transfer", record_list, ARRAY_LEN(record_list),
                                            sizeof(struct transfer_record)};

static const char *part_of(int64_t kind)
{
    return kind == TRANSFER_EXPORT ? "/export/" : "/import/";
}

/* The setting that has its record; absent without memory. */
static struct hf_str setting_of(struct hf_scope *s, const struct transfer *transfer)
{
    return hf_scope_format(s, SETTING "%c%.*s",
                           transfer->record.kind == TRANSFER_EXPORT ? 'e' : 'i',
                           HF_FMT(transfer->tail));
}

enum hf_status hf__transfers_stored(struct hf_scope *s, struct engine *e,
                                    const struct transfer *transfer, struct transfer_record *record)
{
    struct hf_str name = setting_of(s, transfer);
    struct hf_bytes json;

    if (!name.ptr)
        return hf__fail_nomem(s);
    TRY(hf__setting_get(s, e, name.ptr, &json));
    *record = (struct transfer_record){.kind = 0};
    return hf__wire_read_answer(s, &record_fields, hf_str_of((const char *)json.ptr, json.len),
                                record);
}

void hf__transfers_put_record(struct hf_scope *s, struct store_batch *batch,
                              const struct transfer *transfer, const struct transfer_record *record)
{
    struct hf_str name = setting_of(s, transfer);
    struct hf__buf json = {.scope = s};

    hf__wire_write(&json, &record_fields, record);
    if (json.failed || !name.ptr)
        batch->ops.failed = true;
    else
        hf__setting_put(s, batch, name.ptr, hf_bytes_of(json.ptr, json.len));
}

/* ---- in memory ------------------------------------------------------------------------------ */

void hf__transfers_init(struct engine *e)
{
    pthread_mutex_init(&e->transfers.lock, NULL);
    cond_monotonic_init(&e->transfers.wake);
}

void hf__transfers_destroy(struct engine *e)
{
    pthread_cond_destroy(&e->transfers.wake);
    pthread_mutex_destroy(&e->transfers.lock);
}

void hf__transfers_free_one(struct engine *e, struct transfer *transfer)
{
    if (!transfer)
        return;
    if (transfer->snapshot)
        hf__store_snapshot_close(e->store, transfer->snapshot);
    hf_scope_free(transfer->memory);
}

void hf__transfers_free(struct engine *e)
{
    struct transfers *t = &e->transfers;

    assert(!t->threads_len);
    for (size_t i = 0; i < t->len; i++)
        hf__transfers_free_one(e, t->list[i]);
    hf__env_free(&e->env, t->list, t->cap * sizeof(*t->list));
    t->list = NULL;
    t->len = t->cap = 0;
}

static bool is_valid(const struct transfer_record *record)
{
    bool is_export = record->kind == TRANSFER_EXPORT;

    return (is_export || record->kind == TRANSFER_IMPORT) && record->state >= TRANSFER_RUNNING &&
           record->state <= TRANSFER_FAILED && record->arn.ptr && record->table_arn.ptr &&
           record->table_id.ptr && record->table_number > 0 && record->table_number < UINT32_MAX &&
           record->items >= 0 && record->errors >= 0 && record->processed >= 0 &&
           record->bytes >= 0 && record->records >= 0 && record->client_token.ptr &&
           (is_export ? record->export_request != NULL
                      : record->import_request && record->import_request->source &&
                            record->import_request->table);
}

/* One in memory of its own, copied by encoding and decoding its record. */
static enum hf_status transfer_make(struct hf_scope *s, struct engine *e, struct hf_str json,
                                    struct transfer **out)
{
    struct hf_scope *memory = hf_scope_new(&e->env);
    struct transfer *made = memory ? hf__scope_array(memory, 1, sizeof(*made)) : NULL;
    struct hf_str text = memory ? hf_scope_copy(memory, json) : (struct hf_str){NULL, 0};
    struct table_arn parts;
    enum hf_status status;

    if (!made || !text.ptr) {
        hf_scope_free(memory);
        return hf__fail_nomem(s);
    }
    made->memory = memory;
    status = hf__wire_read_answer(memory, &record_fields, text, &made->record);
    if (status == HF_OK && is_valid(&made->record) &&
        hf__arn_split_part(made->record.arn, hf_str_from(part_of(made->record.kind)), &parts,
                           &made->tail)) {
        made->restores = atomic_load(&e->restores);
        *out = made;
        return HF_OK;
    }
    if (hf__scope_alloc_failed(memory))
        status = HF_NOMEM;
    hf_scope_free(memory);
    return status == HF_NOMEM
               ? hf__fail_nomem(s)
               : hf__fail(s, HF_CORRUPT, "The record of an export or import is damaged");
}

enum hf_status hf__transfers_reserve(struct hf_scope *s, struct engine *e)
{
    struct transfers *t = &e->transfers;
    size_t cap = t->cap ? t->cap * 2 : 8;
    struct transfer **list;

    if (t->len < t->cap)
        return HF_OK;
    list = hf__env_alloc(&e->env, cap * sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    pthread_mutex_lock(&t->lock);
    if (t->len)
        memcpy(list, t->list, t->len * sizeof(*list));
    hf__env_free(&e->env, t->list, t->cap * sizeof(*t->list));
    t->list = list;
    t->cap = cap;
    pthread_mutex_unlock(&t->lock);
    return HF_OK;
}

static int tail_compare(const struct transfer *a, struct hf_str tail)
{
    return bytes_compare(a->tail.ptr, a->tail.len, tail.ptr, tail.len);
}

static void start_thread(struct engine *e);

void hf__transfers_add(struct engine *e, struct transfer *transfer)
{
    struct transfers *t = &e->transfers;
    size_t at;

    pthread_mutex_lock(&t->lock);
    assert(t->len < t->cap);
    at = t->len;
    while (at > 0 && tail_compare(t->list[at - 1], transfer->tail) > 0)
        at--;
    memmove(t->list + at + 1, t->list + at, (t->len - at) * sizeof(*t->list));
    t->list[at] = transfer;
    t->len++;
    if (transfer->record.kind == TRANSFER_IMPORT && transfer->record.state == TRANSFER_RUNNING)
        atomic_fetch_add(&t->importing, 1);
    if (transfer->record.state == TRANSFER_RUNNING && t->threaded)
        start_thread(e);
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

/* A tail that no other has: the present time in milliseconds and a random number. */
static struct hf_str new_arn(struct hf_scope *s, struct engine *e,
                             const struct transfer_record *record)
{
    struct hf_str arn = {NULL, 0};
    bool taken = true;

    while (taken) {
        uint8_t random[4];

        hf__env_random(&e->env, random, sizeof(random));
        arn = hf_scope_format(s, "%.*s%s%014lld-%08x", HF_FMT(record->table_arn),
                              part_of(record->kind), (long long)(record->started_us / 1000),
                              load_u32be(random));
        taken = false;
        for (size_t i = 0; arn.ptr && i < e->transfers.len; i++)
            taken = taken || hf_str_equal(e->transfers.list[i]->record.arn, arn);
    }
    return arn;
}

enum hf_status hf__transfers_new(struct hf_scope *s, struct engine *e,
                                 struct transfer_record *record, struct transfer **transfer)
{
    struct hf__buf json = {.scope = s};

    ASSERT_SCHEMA_WRITTEN(e);
    record->state = TRANSFER_RUNNING;
    record->started_us = hf__env_wall_us(&e->env) / 1000 * 1000;
    record->arn = new_arn(s, e, record);
    if (!record->client_token.ptr)
        record->client_token = hf__uuid(s, &e->env);
    if (!record->arn.ptr || !record->client_token.ptr)
        return hf__fail_nomem(s);
    hf__wire_write(&json, &record_fields, record);
    if (json.failed || hf__scope_alloc_failed(s)) /* or a part of it is missing */
        return hf__fail_nomem(s);
    return transfer_make(s, e, hf_str_of((const char *)json.ptr, json.len), transfer);
}

/* ---- loading -------------------------------------------------------------------------------- */

static enum hf_status load_one(struct hf_scope *s, struct engine *e, struct hf_bytes key,
                               struct hf_bytes json, struct store_batch *batch)
{
    struct transfer *transfer;
    int64_t ended;

    TRY(transfer_make(s, e, hf_str_of((const char *)json.ptr, json.len), &transfer));
    ended = transfer->record.ended_us;
    if (ended && ended < hf__env_wall_us(&e->env) - kept_us) { /* (5) */
        hf__batch_delete(batch, key);
        hf__transfers_free_one(e, transfer);
        return HF_OK;
    }
    TRY(hf__transfers_reserve(s, e));
    hf__transfers_add(e, transfer);
    return HF_OK;
}

enum hf_status hf__transfers_load(struct hf_scope *s, struct engine *e)
{
    static const uint8_t lower[] = {SPACE_SETTING, 't', 'r', 'a', 'n', 's', 'f', 'e', 'r', '/'};
    static const uint8_t upper[] = {SPACE_SETTING, 't', 'r', 'a', 'n', 's', 'f', 'e', 'r', '0'};
    const struct store_range range = {.lower = {lower, sizeof(lower)},
                                      .upper = {upper, sizeof(upper)}};
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    enum hf_status status;
    uint64_t ticket;
    bool found = true;

    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    do {
        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            status = load_one(s, e, key, value, &batch);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    if (status != HF_OK || e->read_only || !batch.count)
        return status;
    return batch.ops.failed ? hf__fail_nomem(s) : hf__store_write(s, e->store, &batch, &ticket);
}

/* ---- progress ------------------------------------------------------------------------------- */

struct transfer_record hf__transfers_progress(struct engine *e, const struct transfer *transfer)
{
    struct transfer_record record;

    pthread_mutex_lock(&e->transfers.lock);
    record = transfer->record;
    pthread_mutex_unlock(&e->transfers.lock);
    return record;
}

/* Texts of progress live with the transfer. Without memory the old one is shown for longer. */
static struct hf_str text_keep(struct transfer *transfer, struct hf_str old, struct hf_str text)
{
    struct hf_str copy = old;

    if (text.ptr && !hf_str_equal(old, text))
        copy = hf_scope_copy(transfer->memory, text);
    return copy.ptr ? copy : old;
}

void hf__transfers_set_progress(struct engine *e, struct transfer *transfer,
                                const struct transfer_record *record)
{
    struct transfer_record *own = &transfer->record;

    pthread_mutex_lock(&e->transfers.lock);
    own->items = record->items;
    own->processed = record->processed;
    own->errors = record->errors;
    own->bytes = record->bytes;
    own->records = record->records;
    own->object = text_keep(transfer, own->object, record->object);
    own->failure_message = text_keep(transfer, own->failure_message, record->failure_message);
    pthread_mutex_unlock(&e->transfers.lock);
}

/* (1) */
enum hf_status hf__transfers_end(struct hf_scope *s, struct engine *e, struct transfer *transfer,
                                 struct transfer_record record)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint64_t ticket;

    assert(record.state == TRANSFER_DONE || record.state == TRANSFER_FAILED);
    record.ended_us = hf__env_wall_us(&e->env) / 1000 * 1000;
    hf__transfers_put_record(s, &batch, transfer, &record);
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    TRY(hf__store_write(s, e->store, &batch, &ticket));
    TRY(hf__store_sync(s, e->store, ticket));
    hf__transfers_set_progress(e, transfer, &record);
    pthread_mutex_lock(&e->transfers.lock);
    assert(transfer->record.state == TRANSFER_RUNNING);
    transfer->record.failure_code =
        text_keep(transfer, transfer->record.failure_code, record.failure_code);
    transfer->record.ended_us = record.ended_us;
    transfer->record.state = record.state;
    if (record.kind == TRANSFER_IMPORT)
        atomic_fetch_sub(&e->transfers.importing, 1);
    pthread_mutex_unlock(&e->transfers.lock);
    return HF_OK;
}

bool hf__transfers_stopping(struct engine *e)
{
    bool stopped;

    pthread_mutex_lock(&e->transfers.lock);
    stopped = e->transfers.stop;
    pthread_mutex_unlock(&e->transfers.lock);
    return stopped;
}

/* (2) */
bool hf__transfers_fill(struct engine *e, const struct table *table)
{
    struct transfers *t = &e->transfers;
    bool fills = false;

    if (!atomic_load_explicit(&t->importing, memory_order_acquire))
        return false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->len && !fills; i++) {
        const struct transfer_record *record = &t->list[i]->record;

        fills = record->kind == TRANSFER_IMPORT && record->state == TRANSFER_RUNNING &&
                record->table_number == (int64_t)table->id &&
                hf_str_equal(record->table_id, table->record.description->id);
    }
    pthread_mutex_unlock(&t->lock);
    return fills;
}

/* ---- beginning one -------------------------------------------------------------------------- */

enum hf_status hf__transfers_allowed(struct hf_scope *s, struct engine *e, enum transfer_kind kind)
{
    int most = kind == TRANSFER_EXPORT ? EXPORTS_MAX : IMPORTS_MAX;
    int running = 0;

    if (!e->transfers.buckets.ptr)
        return hf__fail(s, HF_INVALID,
                        "Invalid Request: this database has no buckets. Say where they are by "
                        "holdfast serve --buckets dir:PATH, or hf_engine_options.buckets");
    pthread_mutex_lock(&e->transfers.lock);
    for (size_t i = 0; i < e->transfers.len; i++)
        running += e->transfers.list[i]->record.kind == (int64_t)kind &&
                   e->transfers.list[i]->record.state == TRANSFER_RUNNING;
    pthread_mutex_unlock(&e->transfers.lock);
    if (running < most)
        return HF_OK;
    return hf__fail(s, HF_LIMIT,
                    "Subscriber limit exceeded: There is a limit of %d concurrent table %s per "
                    "subscriber",
                    most, kind == TRANSFER_EXPORT ? "exports" : "imports");
}

/* The newest, if there are several. */
struct transfer *hf__transfers_by_token(struct engine *e, enum transfer_kind kind,
                                        struct hf_str token)
{
    int64_t since = hf__env_wall_us(&e->env) - token_us;
    struct transfer *found = NULL;

    ASSERT_SCHEMA_HELD(e);
    pthread_mutex_lock(&e->transfers.lock);
    for (size_t i = 0; token.ptr && i < e->transfers.len; i++) {
        struct transfer *transfer = e->transfers.list[i];
        const struct transfer_record *record = &transfer->record;

        if (record->kind == (int64_t)kind && hf_str_equal(record->client_token, token) &&
            (record->state == TRANSFER_RUNNING || record->ended_us > since))
            found = transfer;
    }
    pthread_mutex_unlock(&e->transfers.lock);
    return found;
}

/* ---- describing and listing ----------------------------------------------------------------- */

enum hf_status hf__transfers_copy(struct hf_scope *s, enum hf_op op, const void *from, void *to)
{
    const struct fields *fields = hf__op(op)->response;
    struct hf__buf json = {.scope = s};

    hf__wire_write(&json, fields, from);
    if (json.failed)
        return hf__fail_nomem(s);
    return hf__wire_read_answer(s, fields, hf_str_of((const char *)json.ptr, json.len), to);
}

enum hf_status hf__transfers_find(struct hf_scope *s, struct engine *e, enum transfer_kind kind,
                                  struct hf_str arn, struct transfer **transfer)
{
    bool is_export = kind == TRANSFER_EXPORT;
    const char *exception = is_export ? "ExportNotFoundException" : "ImportNotFoundException";
    struct table_arn parts;
    struct hf_str tail;

    ASSERT_SCHEMA_HELD(e);
    if (!hf__arn_split_part(arn, hf_str_from(part_of(kind)), &parts, &tail))
        return hf__fail(s, HF_INVALID, is_export ? "Invalid Export ARN" : "Invalid Import ARN");
    if (!hf_str_equal(parts.account, e->account))
        return hf__fail(s, HF_DENIED, "Access is denied");
    for (size_t i = 0; i < e->transfers.len; i++) {
        *transfer = e->transfers.list[i];
        if ((*transfer)->record.kind == (int64_t)kind && hf_str_equal((*transfer)->record.arn, arn))
            return HF_OK;
    }
    return hf__fail_as(s, HF_NOT_FOUND, exception, "%s not found: %.*s",
                       is_export ? "Export" : "Import", HF_FMT(arn));
}

/*
 * A token of a list: which one was last, in a form that the model of ListImports wants: hexadecimal, at
 * least 112 digits. The first eight bytes sign the rest, so that a token of another list is none.
 */
static uint64_t token_sign(const struct engine *e, const uint8_t token[TOKEN_BYTES])
{
    return hf__siphash(e->secret, token + 8, TOKEN_BYTES - 8);
}

static struct hf_str token_make(struct hf_scope *s, struct engine *e, const struct transfer *last)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t token[TOKEN_BYTES] = {0};
    char *text = hf_scope_alloc(s, TOKEN_BYTES * 2);

    if (!text)
        return (struct hf_str){NULL, 0};
    token[8] = (uint8_t)last->record.kind;
    assert(last->tail.len < TOKEN_BYTES - 10);
    token[9] = (uint8_t)last->tail.len;
    memcpy(token + 10, last->tail.ptr, last->tail.len);
    store_u64be(token, token_sign(e, token));
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        text[2 * i] = digits[token[i] >> 4];
        text[2 * i + 1] = digits[token[i] & 15];
    }
    return hf_str_of(text, TOKEN_BYTES * 2);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool token_read(struct engine *e, enum transfer_kind kind, struct hf_str text,
                       uint8_t token[TOKEN_BYTES], struct hf_str *tail)
{
    if (text.len != TOKEN_BYTES * 2)
        return false;
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        int high = digit_of(text.ptr[2 * i]), low = digit_of(text.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        token[i] = (uint8_t)(high << 4 | low);
    }
    *tail = hf_str_of((const char *)token + 10, token[9]);
    return load_u64be(token) == token_sign(e, token) && token[8] == (uint8_t)kind &&
           token[9] < TOKEN_BYTES - 10;
}

/* Exports are listed for the table that they are of, and no longer when that is gone. */
static bool is_listed(struct engine *e, const struct transfer *transfer, struct hf_str table_arn)
{
    const struct transfer_record *record = &transfer->record;
    const struct table *table;
    struct table_arn parts;

    if (!table_arn.ptr)
        return true;
    if (!hf_str_equal(record->table_arn, table_arn))
        return false;
    if (record->kind != TRANSFER_EXPORT || !hf__arn_split(table_arn, &parts))
        return record->kind == TRANSFER_IMPORT;
    table = hf__catalog_find(e, parts.name);
    return table && hf_str_equal(table->record.description->id, record->table_id);
}

enum hf_status hf__transfers_list(struct hf_scope *s, struct engine *e, enum transfer_kind kind,
                                  struct hf_str table_arn, int64_t limit, struct hf_str token,
                                  struct transfer_page *page)
{
    size_t most = limit > 0 ? (size_t)limit : LIST_DEFAULT;
    uint8_t room[TOKEN_BYTES];
    struct hf_str tail = {NULL, 0};
    struct table_arn parts;

    ASSERT_SCHEMA_HELD(e);
    *page = (struct transfer_page){.list = hf__scope_array(s, most, sizeof(*page->list))};
    if (!page->list)
        return hf__fail_nomem(s);
    if (table_arn.ptr && !hf__arn_split(table_arn, &parts))
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: tableArn is not a valid ARN");
    if (token.ptr && !token_read(e, kind, token, room, &tail))
        return hf__fail(s, HF_INVALID, "Invalid Request: Provided nextToken is invalid: %.*s",
                        HF_FMT(token));
    for (size_t i = e->transfers.len; i > 0; i--) {
        const struct transfer *transfer = e->transfers.list[i - 1];

        if (transfer->record.kind != (int64_t)kind || !is_listed(e, transfer, table_arn) ||
            (tail.ptr && tail_compare(transfer, tail) >= 0))
            continue;
        if (page->len == most) {
            page->next_token = token_make(s, e, page->list[most - 1]);
            return page->next_token.ptr ? HF_OK : hf__fail_nomem(s);
        }
        page->list[page->len++] = transfer;
    }
    return HF_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

/* The oldest that waits, and is now ours. The lock is held. (3) */
static struct transfer *transfer_claim(struct transfers *t)
{
    ASSERT_HELD(&t->lock);
    for (size_t i = 0; i < t->len; i++) {
        struct transfer *transfer = t->list[i];

        if (transfer->record.state == TRANSFER_RUNNING && !transfer->claimed) {
            transfer->claimed = true;
            return transfer;
        }
    }
    return NULL;
}

static enum hf_status transfer_run(struct hf_scope *s, struct engine *e, struct transfer *transfer)
{
    return transfer->record.kind == TRANSFER_EXPORT ? hf__transfers_run_export(s, e, transfer)
                                                    : hf__transfers_run_import(s, e, transfer);
}

static void transfer_unclaim(struct engine *e, struct transfer *transfer)
{
    pthread_mutex_lock(&e->transfers.lock);
    transfer->claimed = false;
    pthread_mutex_unlock(&e->transfers.lock);
}

void hf__transfers_run(struct hf_scope *s, struct engine *e)
{
    struct hf_scope *own = hf_scope_new(&e->env);
    struct transfer *transfer;
    bool go_on = own != NULL && !e->transfers.threaded;

    while (go_on) {
        hf_scope_reset(own);
        hf__scope_follow(own, s);
        pthread_mutex_lock(&e->transfers.lock);
        transfer = transfer_claim(&e->transfers);
        pthread_mutex_unlock(&e->transfers.lock);
        if (!transfer)
            break;
        go_on = transfer_run(own, e, transfer) == HF_OK; /* or the next upkeep tries again */
        transfer_unclaim(e, transfer);
    }
    hf_scope_free(own);
}

struct worker {
    struct engine *e;
    struct hf_scope *s;
};

static void *transfers_thread(void *arg)
{
    struct worker worker = *(struct worker *)arg;
    struct engine *e = worker.e;
    struct transfers *t = &e->transfers;
    struct transfer *transfer;

    hf__env_free(&e->env, arg, sizeof(worker));
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        struct timespec until = monotonic_in_ms(AGAIN_MS);
        enum hf_status status;

        transfer = transfer_claim(t);
        if (!transfer) {
            pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        status = transfer_run(worker.s, e, transfer);
        if (status != HF_OK && !hf__transfers_stopping(e))
            hf__env_log(&e->env, HF_LOG_ERROR, "%.*s: %s", HF_FMT(transfer->record.arn),
                        hf_scope_error_text(worker.s));
        pthread_mutex_lock(&t->lock);
        transfer->claimed = false;
        if (status != HF_OK)
            while (!t->stop && pthread_cond_timedwait(&t->wake, &t->lock, &until) != ETIMEDOUT) {
            }
        if (!t->stop)
            hf_scope_reset(worker.s);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* One thread more, if there are more transfers than threads. Without one the others do the work. The lock
 * is held. */
static void start_thread(struct engine *e)
{
    struct transfers *t = &e->transfers;
    struct worker *worker;
    struct hf_scope *scope;
    size_t running = 0;

    ASSERT_HELD(&t->lock);
    for (size_t i = 0; i < t->len; i++)
        running += t->list[i]->record.state == TRANSFER_RUNNING;
    if (running <= t->threads_len || t->threads_len == TRANSFER_THREADS || t->stop)
        return;
    worker = hf__env_alloc(&e->env, sizeof(*worker));
    if (!worker)
        return;
    scope = hf_scope_new(&e->env);
    *worker = (struct worker){.e = e, .s = scope};
    if (scope && pthread_create(&t->threads[t->threads_len], NULL, transfers_thread, worker) == 0) {
        t->scopes[t->threads_len++] = scope; /* `worker` is the thread's now */
        return;
    }
    hf_scope_free(scope);
    hf__env_free(&e->env, worker, sizeof(*worker));
    if (!t->threads_len)
        hf__env_log(&e->env, HF_LOG_ERROR, "exports and imports wait: no thread could be started");
}

void hf__transfers_start(struct engine *e)
{
    struct transfers *t = &e->transfers;

    pthread_mutex_lock(&t->lock);
    t->threaded = true;
    for (size_t i = 0; i < TRANSFER_THREADS; i++)
        start_thread(e);
    pthread_mutex_unlock(&t->lock);
}

void hf__transfers_stop(struct engine *e)
{
    struct transfers *t = &e->transfers;

    pthread_mutex_lock(&t->lock);
    t->stop = true;
    for (size_t i = 0; i < t->threads_len; i++)
        hf_scope_cancel(t->scopes[i]);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; i < t->threads_len; i++) {
        pthread_join(t->threads[i], NULL);
        hf_scope_free(t->scopes[i]);
    }
    t->threads_len = 0;
}
