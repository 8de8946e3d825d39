/*
 * engine/transfer/export.c: exports of tables: the operations, and writing the files.
 *
 * The call opens a snapshot of the store with the schema locked for writing, so nobody writes meanwhile:
 * its moment is ExportTime. What has the same items and the same bytes for every reader is written from it,
 * file by file, in the layout of bulk/manifest.h.
 *
 * What always holds:
 *
 *  (1) The files of a COMPLETED export have the items of the table at ExportTime, each once.
 *  (2) manifest-summary.json is written last. An export that failed has none.
 *  (3) When the database is closed, the snapshot of an export is gone, and the export has failed.
 */
#include "bulk/bucket.h"
#include "bulk/manifest.h"
#include "bulk/record.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/layout.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/tables.h"
#include "engine/transfer/transfers.h"
#include "http/http.h"
#include "ops/prepare.h"
#include "store/store.h"
#include "wire/wire.h"

#include "base/kill.h"

enum {
    FILE_BYTES = 8 * 1024 * 1024, /* of one file, before it is compressed; about */
    ITEMS_BETWEEN_LOOKS = 500
};

/* ---- describing ----------------------------------------------------------------------------- */

static struct hf_str tail_of(struct hf_str arn)
{
    const char *slash = memrchr(arn.ptr, '/', arn.len);

    assert(slash);
    return hf_str_of(slash + 1, (size_t)(arn.ptr + arn.len - slash - 1));
}

/* The folder of an export, without a slash at its end. */
static struct hf_str folder_of(struct hf_scope *s, const struct transfer_record *record)
{
    struct hf_str prefix = record->export_request->prefix;

    while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
        prefix.len--;
    return hf_scope_format(s, "%.*s%sAWSDynamoDB/%.*s", HF_FMT(prefix), prefix.len ? "/" : "",
                           HF_FMT(tail_of(record->arn)));
}

static enum hf_export_format format_of(const struct transfer_record *record)
{
    return record->export_request->format ? record->export_request->format
                                          : HF_EXPORT_DYNAMODB_JSON;
}

static enum hf_status export_describe(struct hf_scope *s, const struct transfer_record *record,
                                      struct hf_export_description *out)
{
    const struct hf_export_table_to_point_in_time *r = record->export_request;
    struct hf_str manifest = {NULL, 0};

    if (record->state == TRANSFER_DONE) {
        manifest = hf_scope_format(s, "%.*s/manifest-summary.json", HF_FMT(folder_of(s, record)));
        if (!manifest.ptr)
            return hf__fail_nomem(s);
    }
    *out = (struct hf_export_description){
        .arn = record->arn,
        .status = record->state == TRANSFER_RUNNING ? HF_EXPORT_IN_PROGRESS
                  : record->state == TRANSFER_DONE  ? HF_EXPORT_COMPLETED
                                                    : HF_EXPORT_FAILED,
        .started_us = record->started_us,
        .ended_us = record->ended_us,
        .manifest = manifest,
        .table_arn = record->table_arn,
        .table_id = record->table_id,
        .export_time_us = record->started_us,
        .client_token = record->client_token,
        .bucket = r->bucket,
        .bucket_owner = r->bucket_owner,
        .prefix = r->prefix,
        .sse = r->sse ? r->sse : HF_S3_SSE_AES256,
        .sse_kms_key_id = r->sse_kms_key_id,
        .failure_code = record->failure_code,
        .failure_message = record->failure_message,
        .format = format_of(record),
        .type = r->type,
    };
    if (record->state == TRANSFER_DONE) {
        out->billed_bytes = record->bytes;
        out->item_count = record->items;
    }
    return HF_OK;
}

enum hf_status hf__engine_describe_export(struct hf_scope *s, struct engine *e,
                                          const struct hf_describe_export *request,
                                          struct hf_describe_export_result *result)
{
    struct hf_export_description description;
    struct transfer *transfer;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_EXPORT, request));
    pthread_rwlock_rdlock(&e->schema);
    status = hf__transfers_find(s, e, TRANSFER_EXPORT, request->arn, &transfer);
    if (status == HF_OK) {
        struct transfer_record record = hf__transfers_progress(e, transfer);

        status = export_describe(s, &record, &description);
    }
    if (status == HF_OK)
        status =
            hf__transfers_copy(s, HF_OP_DESCRIBE_EXPORT,
                               &(struct hf_describe_export_result){.description = &description},
                               result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

static enum hf_status list_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_list_exports *request,
                                  struct hf_list_exports_result *result)
{
    struct hf_export_summary *list;
    struct transfer_page page;

    TRY(hf__transfers_list(s, e, TRANSFER_EXPORT, request->table_arn, request->limit,
                           request->next_token, &page));
    list = hf__scope_array(s, page.len, sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < page.len; i++) {
        struct transfer_record record = hf__transfers_progress(e, page.list[i]);
        struct hf_export_description d;

        TRY(export_describe(s, &record, &d));
        list[i] = (struct hf_export_summary){.arn = d.arn,
                                             .status = d.status,
                                             .type = d.type ? d.type : HF_EXPORT_FULL};
    }
    return hf__transfers_copy(s, HF_OP_LIST_EXPORTS,
                              &(struct hf_list_exports_result){.exports = list,
                                                               .exports_len = page.len,
                                                               .next_token = page.next_token},
                              result);
}

enum hf_status hf__engine_list_exports(struct hf_scope *s, struct engine *e,
                                       const struct hf_list_exports *request,
                                       struct hf_list_exports_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_LIST_EXPORTS, request));
    pthread_rwlock_rdlock(&e->schema);
    status = list_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* ---- beginning one -------------------------------------------------------------------------- */

#define INVALID_REQUEST "Invalid Request: "

static enum hf_status check_incremental(struct hf_scope *s,
                                        const struct hf_export_table_to_point_in_time *r)
{
    if (r->incremental && !r->type)
        return hf__fail(s, HF_INVALID,
                        INVALID_REQUEST "Export Type expected to be Incremental Export when "
                                        "incremental export specification is provided");
    if (r->incremental && r->type == HF_EXPORT_FULL)
        return hf__fail(s, HF_INVALID,
                        INVALID_REQUEST "When Export Type is Full Export , Incremental Export "
                                        "Specification should not be provided");
    if (r->type == HF_EXPORT_INCREMENTAL && !r->incremental)
        return hf__fail(s, HF_INVALID,
                        INVALID_REQUEST "Incremental Export Specification expected when export "
                                        "type is set as Incremental Export");
    if (r->type == HF_EXPORT_INCREMENTAL && !r->incremental->from_us)
        return hf__fail(s, HF_INVALID,
                        INVALID_REQUEST "ExportFromTime must be provided in "
                                        "IncrementalExportSpecification");
    return HF_OK;
}

static enum hf_status check_request(struct hf_scope *s, const struct engine *e,
                                    const struct hf_export_table_to_point_in_time *r)
{
    struct table_arn parts;

    if (!hf__arn_split(r->table_arn, &parts))
        return hf__fail(s, HF_INVALID,
                        hf__arn_is(r->table_arn)
                            ? INVALID_REQUEST "Table ARN is invalid."
                            : "One or more parameter values were invalid: tableArn is not a valid "
                              "ARN");
    if (!hf_str_equal(parts.account, e->account))
        return hf__fail(s, HF_DENIED, "Access is denied");
    if (r->sse_kms_key_id.ptr && r->sse != HF_S3_SSE_KMS)
        return hf__fail(s, HF_INVALID,
                        INVALID_REQUEST "KMS Key Id is not supported for this encryption type");
    return check_incremental(s, r);
}

/* Is it the same request? What the engine filled in does not count. */
static enum hf_status check_same(struct hf_scope *s,
                                 const struct hf_export_table_to_point_in_time *now,
                                 const struct hf_export_table_to_point_in_time *then)
{
    const struct fields *fields = hf__op(HF_OP_EXPORT_TABLE_TO_POINT_IN_TIME)->request;
    struct hf__buf a = {.scope = s}, b = {.scope = s};

    hf__wire_write(&a, fields, now);
    hf__wire_write(&b, fields, then);
    if (a.failed || b.failed)
        return hf__fail_nomem(s);
    if (bytes_compare(a.ptr, a.len, b.ptr, b.len) == 0)
        return HF_OK;
    return hf__fail_as(s, HF_IN_USE, "ExportConflictException",
                       "Export conflict: Duplicate request detected with conflicting parameters");
}

/* Nothing is known of the past, and nobody knows the future. */
static enum hf_status check_time(struct hf_scope *s, struct engine *e,
                                 const struct hf_export_table_to_point_in_time *r)
{
    if (r->type == HF_EXPORT_INCREMENTAL)
        return hf__no_point_in_time(s, e, r->table_arn);
    if (!r->export_time_us)
        return HF_OK;
    if (r->export_time_us > hf__env_wall_us(&e->env))
        return hf__fail_as(s, HF_INVALID, "InvalidExportTimeException", "Export Time is invalid");
    return hf__no_point_in_time(s, e, r->table_arn);
}

/* The record, and the snapshot of its moment: the schema lock is held for writing. */
static enum hf_status make_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_export_table_to_point_in_time *request,
                                  struct transfer **made)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct transfer_record record = {.kind = TRANSFER_EXPORT,
                                     .client_token = request->client_token,
                                     .export_request = request};
    struct table *table;
    enum hf_status status;

    TRY(hf__catalog_backup_table(s, e, request->table_arn, &table));
    TRY(hf__transfers_allowed(s, e, TRANSFER_EXPORT));
    TRY(hf__transfers_reserve(s, e));
    record.table_arn = table->record.description->arn;
    record.table_id = table->record.description->id;
    record.table_number = table->id;
    TRY(hf__transfers_new(s, e, &record, made));
    hf__transfers_put_record(s, &batch, *made, &(*made)->record);
    status = hf__store_snapshot_open(s, e->store, &(*made)->snapshot);
    if (status == HF_OK)
        status = hf__catalog_commit(s, e, &batch);
    if (status != HF_OK) {
        hf__transfers_free_one(e, *made);
        return status;
    }
    hf__transfers_add(e, *made);
    return HF_OK;
}

static enum hf_status export_locked(struct hf_scope *s, struct engine *e,
                                    const struct hf_export_table_to_point_in_time *request,
                                    struct hf_export_table_to_point_in_time_result *result)
{
    struct hf_export_description description;
    struct transfer *transfer = hf__transfers_by_token(e, TRANSFER_EXPORT, request->client_token);
    struct transfer_record record;
    bool made = !transfer;
    enum hf_status status;

    ASSERT_SCHEMA_WRITTEN(e);
    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    if (made)
        TRY(make_locked(s, e, request, &transfer));
    else
        TRY(check_same(s, request, transfer->record.export_request));
    record = hf__transfers_progress(e, transfer);
    status = export_describe(s, &record, &description);
    if (status == HF_OK)
        status = hf__transfers_copy(s, HF_OP_EXPORT_TABLE_TO_POINT_IN_TIME,
                                    &(struct hf_export_table_to_point_in_time_result){
                                        .description = &description},
                                    result);
    if (status != HF_OK && made) /* it has begun, and only the answer is missing */
        hf__scope_error_edit(s)->may_have_happened = true;
    return status;
}

enum hf_status
hf__engine_export_table_to_point_in_time(struct hf_scope *s, struct engine *e,
                                         const struct hf_export_table_to_point_in_time *request,
                                         struct hf_export_table_to_point_in_time_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_EXPORT_TABLE_TO_POINT_IN_TIME, request));
    TRY(check_request(s, e, request));
    TRY(check_time(s, e, request));
    hf__schema_lock(e);
    status = export_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}

/* ---- writing the files ---------------------------------------------------------------------- */

/* One export that is being written. */
struct exporting {
    struct engine *e;
    struct transfer *transfer;
    struct transfer_record record; /* what has come of it so far */
    struct bucket *bucket;
    struct hf_scope *item;   /* memory for one item */
    struct hf_scope *file;   /* memory for one file */
    struct hf_str folder;    /* in the scope of the run */
    struct hf__buf text;     /* of the file that is being filled; of the env */
    struct hf__buf manifest; /* manifest-files.json; of the env */
    uint64_t items;          /* in that file */
    size_t files;
    bool store_failed; /* it was not the bucket, but our own store, that failed */
};

static enum hf_status file_key_put(struct hf_scope *s, struct exporting *x, const char *name,
                                   struct hf_bytes bytes)
{
    struct hf_str key = hf_scope_format(s, "%.*s/%s", HF_FMT(x->folder), name);

    return key.ptr ? hf__bulk_bucket_put(s, x->bucket, key, bytes) : hf__fail_nomem(s);
}

static enum hf_status file_put(struct hf_scope *s, struct exporting *x)
{
    struct manifest_file file = {.items = x->items};
    struct hf_str name = hf__bulk_manifest_data_name(s, &x->e->env);
    struct hf_bytes packed;

    if (x->text.failed)
        return hf__fail_nomem(s);
    file.key = hf_scope_format(s, "%.*s/data/%.*s.%s.gz", HF_FMT(x->folder), HF_FMT(name),
                               format_of(&x->record) == HF_EXPORT_ION ? "ion" : "json");
    if (!name.ptr || !file.key.ptr)
        return hf__fail_nomem(s);
    TRY(hf__http_pack(s, HTTP_GZIP, hf_bytes_of(x->text.ptr, x->text.len), &packed));
    TRY(hf__bulk_bucket_put(s, x->bucket, file.key, packed));
    hf__kill_point("export_file");
    hf__bulk_md5_of(packed, file.md5);
    hf__bulk_manifest_file(&x->manifest, &file);
    x->files++;
    x->items = 0;
    x->text.len = 0;
    return x->manifest.failed ? hf__fail_nomem(s) : HF_OK;
}

/* In a scope of its own, as there may be many. */
static enum hf_status file_end(struct hf_scope *s, struct exporting *x)
{
    enum hf_status status;

    hf_scope_reset(x->file);
    hf__scope_follow(x->file, s);
    status = file_put(x->file, x);
    return status == HF_OK ? HF_OK : hf_scope_fail_from(s, status, x->file);
}

static enum hf_status item_add(struct hf_scope *s, struct exporting *x, struct hf_bytes value)
{
    struct row row;
    enum hf_status status;

    hf_scope_reset(x->item);
    status = hf__row_decode(x->item, value, &row);
    if (status != HF_OK) {
        x->store_failed = true;
        return hf_scope_fail_from(s, status, x->item);
    }
    if (format_of(&x->record) == HF_EXPORT_ION)
        hf__bulk_record_ion_write(&x->text, x->item, row.item);
    else
        hf__bulk_record_json_write(&x->text, x->item, row.item);
    if (x->text.failed)
        return hf__fail_nomem(s);
    x->items++;
    x->record.items++;
    x->record.bytes += (int64_t)row.size;
    return x->text.len < FILE_BYTES ? HF_OK : file_end(s, x);
}

static enum hf_status items_write(struct hf_scope *s, struct exporting *x)
{
    struct hf__buf lower = {.scope = s}, upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    struct hf_bytes key, value;
    enum hf_status status;
    bool found = true;

    hf__stored_key_prefix(&lower, SPACE_ITEM, (uint32_t)x->record.table_number);
    hf__stored_key_prefix(&upper, SPACE_ITEM, (uint32_t)x->record.table_number + 1);
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, x->e->store, x->transfer->snapshot, &range, &iter));
    do {
        status = hf__store_iter_next(s, iter, &found, &key, &value);
        x->store_failed = status != HF_OK;
        if (status == HF_OK && found)
            status = item_add(s, x, value);
        if (status == HF_OK && x->record.items % ITEMS_BETWEEN_LOOKS == 0)
            status = hf__scope_alive(s);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    if (status == HF_OK && (x->items || !x->files)) /* an empty table has an empty file */
        status = file_end(s, x);
    return status;
}

/* A manifest, and its checksum before it. (2) */
static enum hf_status manifest_put(struct hf_scope *s, struct exporting *x, const char *name,
                                   struct hf_bytes text)
{
    struct hf_str sum_name = hf_scope_format(s, "%s.md5", name);
    struct hf_str text_name = hf_scope_format(s, "%s.json", name);
    char base64[MD5_BASE64_LEN + 1];
    uint8_t md5[MD5_LEN];

    if (!sum_name.ptr || !text_name.ptr)
        return hf__fail_nomem(s);
    hf__bulk_md5_of(text, md5);
    hf__md5_base64(md5, base64);
    TRY(file_key_put(s, x, sum_name.ptr, hf_bytes_of(base64, MD5_BASE64_LEN)));
    return file_key_put(s, x, text_name.ptr, text);
}

static enum hf_status manifests_write(struct hf_scope *s, struct exporting *x)
{
    const struct hf_export_table_to_point_in_time *r = x->record.export_request;
    struct manifest_summary summary = {
        .export_arn = x->record.arn,
        .started_us = x->record.started_us,
        .ended_us = hf__env_wall_us(&x->e->env),
        .export_us = x->record.started_us,
        .table_arn = x->record.table_arn,
        .table_id = x->record.table_id,
        .bucket = r->bucket,
        .prefix = r->prefix,
        .sse = r->sse == HF_S3_SSE_KMS ? "KMS" : "AES256",
        .sse_key = r->sse_kms_key_id,
        .files_key = hf_scope_format(s, "%.*s/manifest-files.json", HF_FMT(x->folder)),
        .bytes = (uint64_t)x->record.bytes,
        .items = (uint64_t)x->record.items,
        .format = format_of(&x->record) == HF_EXPORT_ION ? "ION" : "DYNAMODB_JSON",
    };
    struct hf__buf text = {.scope = s};

    hf__bulk_manifest_summary(&text, &summary);
    if (!summary.files_key.ptr || text.failed)
        return hf__fail_nomem(s);
    TRY(manifest_put(s, x, "manifest-files", hf_bytes_of(x->manifest.ptr, x->manifest.len)));
    hf__kill_point("export_manifest");
    return manifest_put(s, x, "manifest-summary", hf_bytes_of(text.ptr, text.len));
}

static enum hf_status write_all(struct hf_scope *s, struct exporting *x)
{
    TRY(hf__bulk_bucket_open(s, &x->e->env, x->e->transfers.buckets,
                             x->record.export_request->bucket, &x->bucket));
    x->folder = folder_of(s, &x->record);
    if (!x->folder.ptr)
        return hf__fail_nomem(s);
    TRY(file_key_put(s, x, "_started", hf_bytes_of("", 0)));
    TRY(items_write(s, x));
    return manifests_write(s, x);
}

/* The record of an export that has ended with this status. */
static struct transfer_record export_outcome(struct hf_scope *s, struct exporting *x,
                                             enum hf_status status)
{
    struct transfer_record record = x->record;

    record.state = status == HF_OK ? TRANSFER_DONE : TRANSFER_FAILED;
    if (status == HF_OK)
        return record;
    record.failure_code = hf_str_from(x->store_failed ? "InternalServerError"
                                                      : hf__bulk_bucket_code(x->bucket, status));
    record.failure_message = hf_scope_copy(s, hf_str_from(hf_scope_error_text(s)));
    return record;
}

/* (3) */
static enum hf_status end_interrupted(struct hf_scope *s, struct engine *e,
                                      struct transfer *transfer)
{
    struct transfer_record record = hf__transfers_progress(e, transfer);

    record.state = TRANSFER_FAILED;
    record.failure_code = HF_STR("InternalServerError");
    record.failure_message = HF_STR("The database was closed before the export was done: the state "
                                    "that it was to write is gone. Export the table again");
    return hf__transfers_end(s, e, transfer, record);
}

enum hf_status hf__transfers_run_export(struct hf_scope *s, struct engine *e,
                                        struct transfer *transfer)
{
    struct exporting x = {.e = e,
                          .transfer = transfer,
                          .record = hf__transfers_progress(e, transfer),
                          .item = hf_scope_new(&e->env),
                          .file = hf_scope_new(&e->env),
                          .text = {.env = &e->env},
                          .manifest = {.env = &e->env}};
    enum hf_status status;

    if (!transfer->snapshot) {
        hf_scope_free(x.item);
        hf_scope_free(x.file);
        return end_interrupted(s, e, transfer);
    }
    status = x.item && x.file ? write_all(s, &x) : hf__fail_nomem(s);
    if (status == HF_OK || (status != HF_NOMEM && hf__scope_alive(s) == HF_OK)) {
        struct transfer_record record = export_outcome(s, &x, status);

        hf__scope_error_clear(s);
        status = hf__transfers_end(s, e, transfer, record);
        if (status == HF_OK) {
            hf__store_snapshot_close(e->store, transfer->snapshot);
            transfer->snapshot = NULL;
        }
    }
    hf__bulk_bucket_close(x.bucket);
    hf__buf_free(&x.text);
    hf__buf_free(&x.manifest);
    hf_scope_free(x.item);
    hf_scope_free(x.file);
    return status;
}
