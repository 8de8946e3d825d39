/*
 * engine/transfer/import.c: imports into new tables: the operations, and putting the items.
 *
 * The table and the record of the import are made by one batch. Then objects are read in the order of their
 * keys, and each chunk of items is written by a batch that has the progress, too: counts, and the place
 * behind the last record. So after a crash an import goes on where it was, and no record is counted twice.
 * Puts go through the change sets of all writes (item/change.h), so counts and indexes are right, also when
 * keys come twice.
 *
 * As DynamoDB does it: a record that is malformed ends its object, as what is behind it cannot be trusted;
 * an item that the table cannot have is left out. Each is one error. With any error an import ends as
 * FAILED, and the table has the other items. A bucket that does not exist leaves no table.
 *
 * What always holds:
 *
 *  (1) The counts of the durable progress are those of the records up to its place, and the table has the
 *      items of those records.
 *  (2) Of two items with the same key the later one stays.
 *  (3) Nobody but the import uses the table before the import has ended.
 */
#include <xxhash.h>

#include "bulk/bucket.h"
#include "bulk/record.h"
#include "bulk/source.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/tables.h"
#include "engine/transfer/transfers.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "base/kill.h"

enum {
    CHUNK_ITEMS =
        50, /* so many latches at a time, of which tools that look for deadlocks know 64 */
    CHUNK_RECORDS = 1000,
    CHUNK_BYTES = 512 * 1024,
    LOGGED_ERRORS_MAX = 20 /* of one import, since the database was opened */
};

static const int64_t object_done = INT64_MAX; /* instead of a number of records */

/* ---- describing ----------------------------------------------------------------------------- */

static void import_describe(const struct transfer_record *record, struct hf_import_description *out)
{
    const struct hf_import_table *r = record->import_request;
    bool failed = record->state == TRANSFER_FAILED;

    *out = (struct hf_import_description){
        .arn = record->arn,
        .status = failed                              ? HF_IMPORT_FAILED
                  : record->state == TRANSFER_RUNNING ? HF_IMPORT_IN_PROGRESS
                                                      : HF_IMPORT_COMPLETED,
        .table_arn = record->table_arn,
        .table_id = record->table_id,
        .client_token = record->client_token,
        .source = r->source,
        .error_count = record->errors,
        .format = r->format,
        .format_options = r->format_options,
        .compression = r->compression ? r->compression : HF_IMPORT_COMPRESSION_NONE,
        .table = r->table,
        .started_us = record->started_us,
        .ended_us = record->ended_us,
        .processed_bytes = record->bytes,
        .processed_count = record->processed,
        .imported_count = record->items,
    };
    if (failed) {
        out->failure_code = record->failure_code;
        out->failure_message = record->failure_message;
    }
}

enum hf_status hf__engine_describe_import(struct hf_scope *s, struct engine *e,
                                          const struct hf_describe_import *request,
                                          struct hf_describe_import_result *result)
{
    struct hf_import_description description;
    struct transfer *transfer;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_IMPORT, request));
    pthread_rwlock_rdlock(&e->schema);
    status = hf__transfers_find(s, e, TRANSFER_IMPORT, request->arn, &transfer);
    if (status == HF_OK) {
        struct transfer_record record = hf__transfers_progress(e, transfer);

        import_describe(&record, &description);
        status =
            hf__transfers_copy(s, HF_OP_DESCRIBE_IMPORT,
                               &(struct hf_describe_import_result){.description = &description},
                               result);
    }
    pthread_rwlock_unlock(&e->schema);
    return status;
}

static enum hf_status list_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_list_imports *request,
                                  struct hf_list_imports_result *result)
{
    struct hf_import_summary *list;
    struct transfer_page page;

    TRY(hf__transfers_list(s, e, TRANSFER_IMPORT, request->table_arn, request->limit,
                           request->next_token, &page));
    list = hf__scope_array(s, page.len, sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < page.len; i++) {
        struct transfer_record record = hf__transfers_progress(e, page.list[i]);
        struct hf_import_description d;

        import_describe(&record, &d);
        list[i] = (struct hf_import_summary){.arn = d.arn,
                                             .status = d.status,
                                             .table_arn = d.table_arn,
                                             .source = d.source,
                                             .format = d.format,
                                             .started_us = d.started_us,
                                             .ended_us = d.ended_us};
    }
    return hf__transfers_copy(s, HF_OP_LIST_IMPORTS,
                              &(struct hf_list_imports_result){.imports = list,
                                                               .imports_len = page.len,
                                                               .next_token = page.next_token},
                              result);
}

enum hf_status hf__engine_list_imports(struct hf_scope *s, struct engine *e,
                                       const struct hf_list_imports *request,
                                       struct hf_list_imports_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_LIST_IMPORTS, request));
    pthread_rwlock_rdlock(&e->schema);
    status = list_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* ---- beginning one -------------------------------------------------------------------------- */

static enum bulk_packing packing_of(const struct hf_import_table *r)
{
    return r->compression == HF_IMPORT_COMPRESSION_GZIP   ? BULK_GZIP
           : r->compression == HF_IMPORT_COMPRESSION_ZSTD ? BULK_ZSTD
                                                          : BULK_PLAIN;
}

static enum hf_status check_request(struct hf_scope *s, const struct hf_import_table *r)
{
    static const char *const formats[] = {"", "DYNAMODB_JSON", "ION", "CSV"};

    TRY(hf__prepare_plain(s, HF_OP_IMPORT_TABLE, r));
    TRY(hf__prepare_create_table(s, r->table));
    if (r->format_options && r->format_options->csv && r->format != HF_IMPORT_CSV)
        return hf__fail(s, HF_INVALID,
                        "Invalid Request: Unsupported InputFormatOptions for the given input "
                        "format: %s.",
                        formats[r->format]);
    if (hf__bulk_unpack_check(s, packing_of(r)) == HF_OK)
        return HF_OK;
    return hf__fail(s, HF_INVALID, "Invalid Request: InputCompressionType ZSTD: %s",
                    hf_scope_copy(s, hf_str_from(hf_scope_error_text(s))).ptr);
}

enum hf_status hf__transfers_record_import(struct hf_scope *s, struct engine *e,
                                           struct store_batch *batch,
                                           const struct table_record *table,
                                           const struct hf_import_table *request,
                                           struct transfer **made)
{
    struct hf_import_table whole = *request;
    struct hf_s3_source source = *request->source;
    struct transfer_record record = {.kind = TRANSFER_IMPORT,
                                     .table_arn = table->description->arn,
                                     .table_id = table->description->id,
                                     .table_number = table->id,
                                     .client_token = request->client_token,
                                     .import_request = &whole};

    if (!source.bucket_owner.ptr) /* as the service answers it */
        source.bucket_owner = e->account;
    whole.source = &source;
    TRY(hf__transfers_new(s, e, &record, made));
    hf__transfers_put_record(s, batch, *made, &(*made)->record);
    return HF_OK;
}

static enum hf_status fail_exists(struct hf_scope *s, struct hf_str name)
{
    return hf__fail(s, HF_IN_USE, "Table already exists: %.*s", HF_FMT(name));
}

static enum hf_status import_locked(struct hf_scope *s, struct engine *e,
                                    const struct hf_import_table *request,
                                    struct hf_import_table_result *result)
{
    struct hf_str name = request->table->table;
    const struct table *there;
    const struct hf_table_description *described;
    struct table_origin origin = {.import = request};
    struct hf_import_description description;
    struct transfer_record record;
    struct transfer *transfer;
    enum hf_status status;
    bool made;

    ASSERT_SCHEMA_WRITTEN(e);
    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    there = hf__catalog_find(e, name);
    if (there && !hf__transfers_fill(e, there))
        return fail_exists(s, name);
    transfer = hf__transfers_by_token(e, TRANSFER_IMPORT, request->client_token);
    if (transfer && !hf_str_equal(transfer->record.import_request->table->table, name))
        return hf__fail_as(s, HF_IN_USE, "ImportConflictException",
                           "Import conflict: Duplicate request detected with conflicting "
                           "parameters");
    made = !transfer;
    if (made) {
        if (there)
            return fail_exists(s, name);
        TRY(hf__transfers_allowed(s, e, TRANSFER_IMPORT));
        TRY(hf__transfers_reserve(s, e));
        TRY(hf__table_create(s, e, request->table, &origin, &described));
        transfer = origin.transfer;
        hf__transfers_add(e, transfer);
    }
    record = hf__transfers_progress(e, transfer);
    import_describe(&record, &description);
    status =
        hf__transfers_copy(s, HF_OP_IMPORT_TABLE,
                           &(struct hf_import_table_result){.description = &description}, result);
    if (status != HF_OK && made) /* it has begun, and only the answer is missing */
        hf__scope_error_edit(s)->may_have_happened = true;
    return status;
}

enum hf_status hf__engine_import_table(struct hf_scope *s, struct engine *e,
                                       const struct hf_import_table *request,
                                       struct hf_import_table_result *result)
{
    enum hf_status status;

    TRY(check_request(s, request));
    hf__schema_lock(e);
    status = import_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}

/* ---- putting a chunk ------------------------------------------------------------------------ */

/* What was read and is not in the table yet. */
struct chunk {
    struct hf_scope *scope; /* all of it lives here */
    struct hf_item items[CHUNK_ITEMS];
    int64_t numbers[CHUNK_ITEMS]; /* of their records in the object, from 0 */
    size_t len;
    size_t records; /* read since the last chunk */
    size_t bytes;
};

/* One import that runs. */
struct importing {
    struct engine *e;
    struct transfer *transfer;
    struct transfer_record record; /* its progress, with what is in the chunk */
    struct bucket *bucket;
    struct source *source;
    struct chunk chunk;
    struct hf_scope *columns; /* memory for the names of columns */
    struct hf_str *names;
    size_t names_len;
    int logged;
    bool own_failed; /* it was not the bucket, but our own store, that failed */
    bool replaced;   /* the database was set to a snapshot */
};

/* One record that no item was made of. The first one is kept for the description. */
static void error_add(struct importing *x, int64_t number, const char *why)
{
    const struct hf_s3_source *source = x->record.import_request->source;

    x->record.errors++;
    if (x->logged++ < LOGGED_ERRORS_MAX)
        hf__env_log(&x->e->env, HF_LOG_WARNING, "%.*s: %.*s/%.*s, item %lld: %s",
                    HF_FMT(x->record.arn), HF_FMT(source->bucket), HF_FMT(x->record.object),
                    (long long)number, why);
    if (!x->record.failure_message.ptr)
        x->record.failure_message = hf_scope_format(
            x->columns,
            "Some of the items failed validation checks and were not imported. The log of the "
            "database has the first ones: %.*s, item %lld: %s",
            HF_FMT(x->record.object), (long long)number, why);
}

/* A put of an item that the table can have; *fits is false, and there is an error more, when it cannot. */
static enum hf_status change_make(struct importing *x, struct table *table, size_t at,
                                  struct change *change, bool *fits)
{
    struct hf_scope *s = x->chunk.scope;
    struct hf_item item = x->chunk.items[at];
    struct prepared_write put;
    enum hf_status status =
        hf__prepare_put_item(s, x->e->cache,
                             &(struct hf_put_item){.table = table->name, .item = item}, &put);

    if (status == HF_OK)
        status = hf__schema_check_put(s, table, item);
    if (status == HF_OK)
        status = hf__schema_check_indexes(s, table, item, NULL, (struct hf_item){NULL, 0});
    *change = (struct change){.table = table, .after = {item, put.size}};
    if (status == HF_OK)
        status = hf__change_key(s, change, item);
    *fits = status == HF_OK;
    if (status == HF_OK || status == HF_NOMEM)
        return status;
    error_add(x, x->chunk.numbers[at], hf_scope_error_text(s));
    hf__scope_error_clear(s);
    return HF_OK;
}

/* (2): of changes with the same key only the last one is left. */
static size_t drop_repeats(struct change *changes, size_t len)
{
    uint64_t hashes[CHUNK_ITEMS];
    size_t left = 0;

    assert(len <= CHUNK_ITEMS);
    for (size_t i = len; i > 0; i--) {
        struct hf_bytes key = changes[i - 1].key;
        uint64_t hash = XXH3_64bits(key.ptr, key.len);
        bool repeated = false;

        for (size_t k = 0; k < left && !repeated; k++)
            repeated = hashes[k] == hash &&
                       bytes_compare(changes[len - 1 - k].key.ptr, changes[len - 1 - k].key.len,
                                     key.ptr, key.len) == 0;
        if (repeated)
            continue;
        hashes[left] = hash;
        changes[len - 1 - left] = changes[i - 1];
        left++;
    }
    memmove(changes, changes + (len - left), left * sizeof(*changes));
    return left;
}

static enum hf_status changes_apply(struct importing *x, struct change *changes, size_t len)
{
    struct hf_scope *s = x->chunk.scope;
    struct engine *e = x->e;
    struct change_set set;
    struct latch_set latches;
    enum hf_status status;
    uint64_t ticket = 0;

    TRY(hf__change_set(s, len + 1, &set));
    TRY(hf__latch_set(s, len + 1, &latches));
    for (size_t i = 0; i < len; i++)
        hf__latch_want(&latches, hf__stored_latch(changes[i].key));
    hf__latch_all(e, &latches);
    status = HF_OK;
    for (size_t i = 0; i < len && status == HF_OK; i++)
        status = hf__change_read(s, e, &changes[i]);
    for (size_t i = 0; i < len && status == HF_OK; i++)
        status = hf__change_add(s, e, &set, &changes[i]);
    if (status == HF_OK) {
        hf__transfers_put_record(s, &set.batch, x->transfer, &x->record); /* (1) */
        status = set.batch.ops.failed ? hf__fail_nomem(s) : hf__change_apply(s, e, &set, &ticket);
    }
    hf__unlatch_all(e, &latches, status == HF_OK ? ticket : 0);
    return status;
}

/* The table as long as it is the one of this import. */
static struct table *find_table(struct importing *x)
{
    struct table_arn parts;
    struct table *table = NULL;

    if (hf__arn_split(x->record.table_arn, &parts))
        table = hf__catalog_find(x->e, parts.name);
    return table && (int64_t)table->id == x->record.table_number &&
                   atomic_load(&x->e->restores) == x->transfer->restores
               ? table
               : NULL;
}

static enum hf_status chunk_locked(struct importing *x)
{
    struct hf_scope *s = x->chunk.scope;
    struct change *changes = hf__scope_array(s, x->chunk.len + 1, sizeof(*changes));
    struct table *table = find_table(x);
    size_t len = 0;

    if (!changes)
        return hf__fail_nomem(s);
    if (!table) {
        x->replaced = true;
        return hf__fail(s, HF_STOPPED, "The database was set to a snapshot");
    }
    for (size_t i = 0; i < x->chunk.len; i++) {
        bool fits;

        TRY(change_make(x, table, i, &changes[len], &fits));
        len += fits;
    }
    x->record.items += (int64_t)len;
    return changes_apply(x, changes, drop_repeats(changes, len));
}

static enum hf_status chunk_write(struct hf_scope *s, struct importing *x)
{
    struct transfer_record before = x->record;
    enum hf_status status;

    hf__scope_follow(x->chunk.scope, s);
    hf__scope_alloc_clear(x->chunk.scope);
    pthread_rwlock_rdlock(&x->e->schema);
    status = chunk_locked(x);
    pthread_rwlock_unlock(&x->e->schema);
    hf__kill_point("import_chunk");
    if (status == HF_OK) {
        hf__transfers_set_progress(x->e, x->transfer, &x->record);
    } else {
        x->own_failed = true;
        x->record = before;
        (void)hf_scope_fail_from(s, status, x->chunk.scope);
    }
    x->chunk.len = x->chunk.records = x->chunk.bytes = 0;
    hf_scope_reset(x->chunk.scope);
    return status;
}

/* ---- reading objects ------------------------------------------------------------------------ */

static const struct hf_csv_options *csv_of(const struct importing *x)
{
    const struct hf_input_format_options *options = x->record.import_request->format_options;

    return options ? options->csv : NULL;
}

static char delimiter_of(const struct importing *x)
{
    const struct hf_csv_options *csv = csv_of(x);

    return csv && csv->delimiter.len ? csv->delimiter.ptr[0] : ',';
}

/* Names of columns: those of the request, or of the first record. False: *why. */
static bool columns_read(struct importing *x, struct hf_str record, struct hf_str *why)
{
    struct hf_str *cells;
    struct hf_str copy = hf_scope_copy(x->columns, record);

    if (!copy.ptr ||
        !hf__bulk_record_csv_cells(x->columns, copy, delimiter_of(x), &cells, &x->names_len, why)) {
        x->names_len = 0;
        return false;
    }
    for (size_t i = 0; i < x->names_len; i++)
        if (!cells[i].len) {
            *why = HF_STR("a column without a name");
            return false;
        }
    x->names = cells;
    return true;
}

enum outcome {
    RECORD_ITEM,  /* an item is in the chunk */
    RECORD_WRONG, /* no item can be made of it */
    RECORD_BROKEN /* nor of what is behind it */
};

static enum outcome record_read(struct importing *x, struct hf_str text, struct hf_item *item,
                                struct hf_str *why)
{
    const struct hf_import_table *r = x->record.import_request;
    struct hf_scope *s = x->chunk.scope;
    struct hf_str copy = hf_scope_copy(s, text); /* what is read points into it */
    struct hf_str *cells;
    size_t len;

    *why = HF_STR("out of memory");
    if (!copy.ptr)
        return RECORD_BROKEN;
    if (r->format == HF_IMPORT_DYNAMODB_JSON)
        return hf__bulk_record_json_read(s, copy, item, why) ? RECORD_ITEM : RECORD_BROKEN;
    if (r->format == HF_IMPORT_ION)
        return hf__bulk_record_ion_read(s, copy, item, why) ? RECORD_ITEM : RECORD_BROKEN;
    if (!hf__bulk_record_csv_cells(s, copy, delimiter_of(x), &cells, &len, why))
        return RECORD_BROKEN;
    return hf__bulk_record_csv_item(s, x->names, x->names_len, cells, len, r->table->attributes,
                                    r->table->attributes_len, item, why)
               ? RECORD_ITEM
               : RECORD_WRONG;
}

static bool wants_header(const struct importing *x)
{
    return x->record.import_request->format == HF_IMPORT_CSV && !x->names;
}

/* One record of the object. *broken: the object ends here. */
static enum hf_status record_take(struct hf_scope *s, struct importing *x, struct hf_str text,
                                  bool *broken)
{
    struct chunk *chunk = &x->chunk;
    struct hf_item item = {NULL, 0};
    enum outcome outcome;
    struct hf_str why;

    hf__scope_alloc_clear(chunk->scope);
    hf__scope_alloc_clear(x->columns);
    x->record.records++;
    if (wants_header(x)) {
        *broken = !columns_read(x, text, &why);
        outcome = *broken ? RECORD_BROKEN : RECORD_ITEM;
        x->record.processed += *broken;
    } else {
        x->record.processed++;
        outcome = record_read(x, text, &item, &why);
        hf__scope_error_clear(chunk->scope);
        *broken = outcome == RECORD_BROKEN;
    }
    if (hf__scope_alloc_failed(chunk->scope) || hf__scope_alloc_failed(x->columns))
        return hf__fail_nomem(s); /* which says nothing about the record */
    if (outcome != RECORD_ITEM) {
        struct hf_str sentence = hf_scope_copy(chunk->scope, why);

        error_add(x, x->record.records - 1, sentence.ptr ? sentence.ptr : "out of memory");
    } else if (item.ptr) {
        chunk->numbers[chunk->len] = x->record.records - 1;
        chunk->items[chunk->len++] = item;
    }
    chunk->bytes += text.len;
    if (++chunk->records < CHUNK_RECORDS && chunk->len < CHUNK_ITEMS && chunk->bytes < CHUNK_BYTES)
        return HF_OK;
    return chunk_write(s, x);
}

/* Step over what was done before a crash. */
static enum hf_status records_skip(struct hf_scope *s, struct importing *x, int64_t count)
{
    struct hf_str text, why;
    bool found = true;

    for (int64_t i = 0; i < count && found; i++) {
        TRY(hf__bulk_source_next(s, x->source, &text, &found));
        if (found && wants_header(x) && !columns_read(x, text, &why))
            return hf__scope_alloc_failed(x->columns)
                       ? hf__fail_nomem(s)
                       : hf__fail(s, HF_CORRUPT, "%.*s", HF_FMT(why));
    }
    return HF_OK;
}

static enum hf_status records_take(struct hf_scope *s, struct importing *x)
{
    struct hf_str text;
    bool found = true, broken = false;
    enum hf_status status;

    while (found && !broken) {
        TRY(hf__scope_alive(s));
        status = hf__bulk_source_next(s, x->source, &text, &found);
        if (status == HF_CORRUPT) {
            x->record.processed++;
            error_add(x, x->record.records, hf_scope_error_text(s));
            hf__scope_error_clear(s);
            return HF_OK;
        }
        TRY(status);
        if (found)
            TRY(record_take(s, x, text, &broken));
    }
    return HF_OK;
}

static enum hf_status object_read(struct hf_scope *s, struct importing *x, struct hf_str key)
{
    const struct hf_import_table *r = x->record.import_request;
    enum bulk_form form = r->format == HF_IMPORT_CSV   ? SOURCE_CSV
                          : r->format == HF_IMPORT_ION ? SOURCE_ION
                                                       : SOURCE_LINES;
    int64_t skip = hf_str_equal(x->record.object, key) ? x->record.records : 0;
    enum hf_status status;

    if (!skip) {
        x->record.object = hf_scope_copy(s, key);
        x->record.records = 0;
        if (!x->record.object.ptr)
            return hf__fail_nomem(s);
    }
    TRY(hf__bulk_source_open(s, x->bucket, key, form, packing_of(r), &x->source));
    status = records_skip(s, x, skip);
    if (status == HF_CORRUPT) { /* the object is another one than before */
        x->record.processed++;
        error_add(x, x->record.records, hf_scope_error_text(s));
        hf__scope_error_clear(s);
        status = HF_OK;
    } else if (status == HF_OK) {
        status = records_take(s, x);
    }
    if (status == HF_OK) {
        x->record.bytes += (int64_t)hf__bulk_source_bytes(x->source);
        x->record.records = object_done;
        status = chunk_write(s, x);
    }
    hf__bulk_source_close(x->source);
    x->source = NULL;
    return status;
}

static void columns_begin(struct importing *x)
{
    const struct hf_csv_options *csv = csv_of(x);

    x->names = NULL;
    x->names_len = 0;
    if (csv && csv->headers_len) {
        x->names = (struct hf_str *)(void *)(uintptr_t)csv->headers;
        x->names_len = csv->headers_len;
    }
}

static enum hf_status objects_read(struct hf_scope *s, struct importing *x)
{
    const struct hf_s3_source *from = x->record.import_request->source;
    struct hf_str prefix = from->key_prefix.ptr ? from->key_prefix : HF_STR("");
    struct bucket_list list;

    TRY(hf__bulk_bucket_open(s, &x->e->env, x->e->transfers.buckets, from->bucket, &x->bucket));
    TRY(hf__bulk_bucket_list(s, x->bucket, prefix, &list));
    for (size_t i = 0; i < list.len; i++) {
        struct hf_str key = list.objects[i].key;
        int order = x->record.object.ptr ? bytes_compare(key.ptr, key.len, x->record.object.ptr,
                                                         x->record.object.len)
                                         : 1;

        if (order < 0 || (order == 0 && x->record.records == object_done))
            continue;
        columns_begin(x);
        TRY(object_read(s, x, key));
    }
    return HF_OK;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Before anything was put: there is no such bucket, so there is no table. */
static enum hf_status table_remove(struct hf_scope *s, struct importing *x)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    struct table *table;
    enum hf_status status = HF_OK;

    hf__schema_lock(x->e);
    table = find_table(x);
    if (table) {
        hf__transfers_put_record(s, &batch, x->transfer, &x->record);
        status = hf__table_delete(s, x->e, &batch, table);
    }
    pthread_rwlock_unlock(&x->e->schema);
    return status;
}

static enum hf_status import_finish(struct hf_scope *s, struct importing *x, enum hf_status status)
{
    struct transfer_record *record = &x->record;
    struct hf_str text = hf_scope_copy(s, hf_str_from(hf_scope_error_text(s)));
    bool no_table = false;

    hf__scope_error_clear(s);
    record->state = status == HF_OK && !record->errors ? TRANSFER_DONE : TRANSFER_FAILED;
    if (x->replaced) {
        record->failure_code = HF_STR("InternalServerError");
        record->failure_message = HF_STR("The database was set to a snapshot while the import ran");
    } else if (status != HF_OK) {
        record->failure_code = hf_str_from(hf__bulk_bucket_code(x->bucket, status));
        record->failure_message = text;
        no_table = !record->object.ptr && str_is(record->failure_code, "S3NoSuchBucket");
    } else if (record->errors) {
        record->failure_code = HF_STR("ItemValidationError");
    } else {
        record->failure_message = (struct hf_str){NULL, 0};
    }
    hf__kill_point("import_end");
    if (no_table) {
        record->ended_us = hf__env_wall_us(&x->e->env) / 1000 * 1000;
        TRY(table_remove(s, x));
    }
    return hf__transfers_end(s, x->e, x->transfer, *record);
}

enum hf_status hf__transfers_run_import(struct hf_scope *s, struct engine *e,
                                        struct transfer *transfer)
{
    struct importing x = {.e = e,
                          .transfer = transfer,
                          .chunk = {.scope = hf_scope_new(&e->env)},
                          .columns = hf_scope_new(&e->env)};
    enum hf_status status = hf__transfers_stored(s, e, transfer, &x.record);

    if (status != HF_OK)
        x.own_failed = true;
    else
        status = x.chunk.scope && x.columns ? objects_read(s, &x) : hf__fail_nomem(s);
    if (status == HF_OK || x.replaced ||
        (status != HF_NOMEM && !x.own_failed && hf__scope_alive(s) == HF_OK))
        status = import_finish(s, &x, status);
    hf__bulk_source_close(x.source);
    hf__bulk_bucket_close(x.bucket);
    hf_scope_free(x.chunk.scope);
    hf_scope_free(x.columns);
    return status;
}
