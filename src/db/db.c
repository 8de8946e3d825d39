/*
 * db/db.c: the narrow waist. Every operation on every kind of database passes through
 * hf_db_call(), so this is also where an error learns its operation and its table, and where
 * consumed capacity is added up for scopes that want to know.
 */
#include "db/db.h"

#include "db/about.h"

/* ---- consumed capacity ---------------------------------------------------------------------- */

enum { REQUEST_MAX = 512 }; /* bytes of a request struct that can ask for its consumption */

static const struct field *field_named(const struct fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->len; i++)
        if (fields->list[i].name && strcmp(fields->list[i].name, name) == 0)
            return &fields->list[i];
    return NULL;
}

/* The call with its consumption asked for. Calls that a wrapper makes inside of it count once:
 * here. */
static enum hf_status call_counted(struct hf_scope *s, struct hf_db *db, const struct op *entry,
                                   const void *request, void *response)
{
    struct hf_scope_capacity *counter = hf__scope_counter(s);
    const struct field *field = field_named(entry->request, "ReturnConsumedCapacity");
    _Alignas(max_align_t) char copy[REQUEST_MAX];
    const void *asking = request;
    const int total = HF_CAPACITY_TOTAL;
    enum hf_status status;
    int asked = total;

    if (field)
        memcpy(&asked, (const char *)request + field->at, sizeof(asked));
    if (!asked) {
        assert(entry->request->size <= sizeof(copy));
        memcpy(copy, request, entry->request->size);
        memcpy(copy + field->at, &total, sizeof(total));
        asking = copy;
    }
    hf__scope_set_counter(s, NULL);
    status = db->calls->call(s, db, entry->op, asking, response);
    hf__scope_set_counter(s, counter);
    counter->calls++;
    if (status == HF_OK) {
        struct about_units units = hf__about_units(entry->op, request, response);

        counter->read_units += units.read;
        counter->write_units += units.write;
    }
    return status;
}

/* ---- errors --------------------------------------------------------------------------------- */

/* Of the actions of a transaction, that of the first one that was refused. */
static struct hf_str table_at_fault(const struct hf_error *error, enum hf_op op,
                                    const void *request)
{
    if (op == HF_OP_TRANSACT_WRITE_ITEMS || op == HF_OP_TRANSACT_GET_ITEMS)
        for (size_t i = 0; i < error->reasons_len; i++)
            if (!hf_str_equal(error->reasons[i].code, HF_STR("None")))
                return hf__about_nth_table(op, request, i);
    return hf__about_table(op, request);
}

/* The error learns what it is about. Requests are borrowed, so the name is copied. */
static void name_error(struct hf_scope *s, const struct op *entry, const void *request)
{
    struct hf_error *error = hf__scope_error_edit(s);
    struct hf_str table = table_at_fault(error, entry->op, request);

    error->operation = entry->name;
    error->table = (struct hf_str){0};
    if (!table.ptr)
        return;
    error->table = hf_scope_copy(s, table);
    if (hf_str_equal(error->message, HF_STR("Requested resource not found")))
        hf__scope_error_say(s, hf_scope_format(s, "Requested resource not found: table %.*s",
                                               HF_FMT(table)));
}

/* ---- the one call --------------------------------------------------------------------------- */

enum hf_status hf_db_call(struct hf_scope *s, struct hf_db *db, enum hf_op op, const void *request,
                          void *response)
{
    const struct op *entry;
    enum hf_status status;

    hf__scope_error_clear(s);
    if ((unsigned)op >= HF_OP_COUNT)
        return hf__fail(s, HF_UNKNOWN_OPERATION, "There is no operation with the number %d",
                        (int)op);
    entry = hf__op(op);
    if (!db || !request) {
        status = hf__fail(s, HF_INVALID, "%.*s was called without a %s (NULL)", HF_FMT(entry->name),
                          db ? "request" : "database");
        hf__scope_error_edit(s)->operation = entry->name;
        if (response)
            memset(response, 0, entry->response->size);
        return status;
    }
    if (!response) {
        response = hf_scope_alloc(s, entry->response->size);
        if (!response)
            return hf__fail_nomem(s);
    }
    memset(response, 0, entry->response->size);
    status = hf__scope_alive(s);
    if (status == HF_OK)
        status = hf__scope_counter(s) ? call_counted(s, db, entry, request, response)
                                      : db->calls->call(s, db, op, request, response);
    if (status != HF_OK)
        name_error(s, entry, request);
    return status;
}

enum hf_status hf__db_settle(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    hf__scope_error_clear(s);
    return ticket && db->calls->settle ? db->calls->settle(s, db, ticket) : HF_OK;
}

enum hf_status hf_db_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                              bool *supported)
{
    *supported = false;
    hf__scope_error_clear(s);
    if (!db)
        return hf__fail(s, HF_INVALID, "hf_db_supports() was called without a database (NULL)");
    if (feature < HF_FEATURE_TRANSACTIONS || feature > HF_FEATURE_BACKUPS)
        return hf__fail(s, HF_INVALID, "There is no feature with the number %d", (int)feature);
    *supported = true;
    return db->calls->supports ? db->calls->supports(s, db, feature, supported) : HF_OK;
}

enum hf_status hf__db_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    *blobs = NULL;
    if (!db->calls->blobs)
        return hf__fail(s, HF_UNSUPPORTED,
                        "the database is not embedded, so it has no blob store beside it: open one "
                        "by its URL");
    return db->calls->blobs(s, db, blobs);
}

enum hf_status hf__db_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct hf_str *full)
{
    *full = table;
    return db->calls->full_name ? db->calls->full_name(s, db, table, full) : HF_OK;
}

struct hf_str hf_db_opener(struct hf_db *db)
{
    return db && db->calls->opener ? db->calls->opener(db) : (struct hf_str){0};
}

void hf_db_close(struct hf_db *db)
{
    if (db)
        db->calls->close(db);
}

/* ---- typed calls ---------------------------------------------------------------------------- */

/* Where 0 is a legal number, a C program that writes .segment = 0 means it. */
static struct hf_scan scan_as_meant(const struct hf_scan *request)
{
    struct hf_scan meant = *request;

    if (meant.total_segments && meant.segment == 0)
        meant.segment = HF_ZERO;
    return meant;
}

enum hf_status hf_scan(struct hf_scope *s, struct hf_db *db, const struct hf_scan *request,
                       struct hf_scan_result *result)
{
    struct hf_scan meant;

    if (!request)
        return hf_db_call(s, db, HF_OP_SCAN, NULL, result);
    meant = scan_as_meant(request);
    return hf_db_call(s, db, HF_OP_SCAN, &meant, result);
}

#define TYPED_CALL(constant, name)                                                                 \
    enum hf_status hf_##name(struct hf_scope *s, struct hf_db *db,                                 \
                             const struct hf_##name *request, struct hf_##name##_result *result)   \
    {                                                                                              \
        return hf_db_call(s, db, HF_OP_##constant, request, result);                               \
    }

TYPED_CALL(BATCH_EXECUTE_STATEMENT, batch_execute_statement)
TYPED_CALL(BATCH_GET_ITEM, batch_get_item)
TYPED_CALL(BATCH_WRITE_ITEM, batch_write_item)
TYPED_CALL(CREATE_TABLE, create_table)
TYPED_CALL(DELETE_ITEM, delete_item)
TYPED_CALL(DELETE_TABLE, delete_table)
TYPED_CALL(DESCRIBE_ENDPOINTS, describe_endpoints)
TYPED_CALL(DESCRIBE_LIMITS, describe_limits)
TYPED_CALL(DESCRIBE_STREAM, describe_stream)
TYPED_CALL(DESCRIBE_TABLE, describe_table)
TYPED_CALL(DESCRIBE_TIME_TO_LIVE, describe_time_to_live)
TYPED_CALL(EXECUTE_STATEMENT, execute_statement)
TYPED_CALL(EXECUTE_TRANSACTION, execute_transaction)
TYPED_CALL(GET_ITEM, get_item)
TYPED_CALL(GET_RECORDS, get_records)
TYPED_CALL(GET_SHARD_ITERATOR, get_shard_iterator)
TYPED_CALL(LIST_STREAMS, list_streams)
TYPED_CALL(LIST_TABLES, list_tables)
TYPED_CALL(LIST_TAGS_OF_RESOURCE, list_tags_of_resource)
TYPED_CALL(PUT_ITEM, put_item)
TYPED_CALL(QUERY, query)
TYPED_CALL(TAG_RESOURCE, tag_resource)
TYPED_CALL(TRANSACT_GET_ITEMS, transact_get_items)
TYPED_CALL(TRANSACT_WRITE_ITEMS, transact_write_items)
TYPED_CALL(UNTAG_RESOURCE, untag_resource)
TYPED_CALL(UPDATE_ITEM, update_item)
TYPED_CALL(UPDATE_TABLE, update_table)
TYPED_CALL(UPDATE_TIME_TO_LIVE, update_time_to_live)
TYPED_CALL(DESCRIBE_CONTINUOUS_BACKUPS, describe_continuous_backups)
TYPED_CALL(UPDATE_CONTINUOUS_BACKUPS, update_continuous_backups)
TYPED_CALL(CREATE_BACKUP, create_backup)
TYPED_CALL(DELETE_BACKUP, delete_backup)
TYPED_CALL(DESCRIBE_BACKUP, describe_backup)
TYPED_CALL(LIST_BACKUPS, list_backups)
TYPED_CALL(RESTORE_TABLE_FROM_BACKUP, restore_table_from_backup)
TYPED_CALL(DELETE_RESOURCE_POLICY, delete_resource_policy)
TYPED_CALL(GET_RESOURCE_POLICY, get_resource_policy)
TYPED_CALL(PUT_RESOURCE_POLICY, put_resource_policy)
TYPED_CALL(DESCRIBE_CONTRIBUTOR_INSIGHTS, describe_contributor_insights)
TYPED_CALL(DESCRIBE_EXPORT, describe_export)
TYPED_CALL(DESCRIBE_GLOBAL_TABLE, describe_global_table)
TYPED_CALL(DESCRIBE_IMPORT, describe_import)
TYPED_CALL(DESCRIBE_KINESIS_STREAMING_DESTINATION, describe_kinesis_streaming_destination)
TYPED_CALL(DESCRIBE_TABLE_REPLICA_AUTO_SCALING, describe_table_replica_auto_scaling)
TYPED_CALL(LIST_CONTRIBUTOR_INSIGHTS, list_contributor_insights)
TYPED_CALL(LIST_EXPORTS, list_exports)
TYPED_CALL(LIST_GLOBAL_TABLES, list_global_tables)
TYPED_CALL(LIST_IMPORTS, list_imports)
TYPED_CALL(CREATE_GLOBAL_TABLE, create_global_table)
TYPED_CALL(DESCRIBE_GLOBAL_TABLE_SETTINGS, describe_global_table_settings)
TYPED_CALL(DISABLE_KINESIS_STREAMING_DESTINATION, disable_kinesis_streaming_destination)
TYPED_CALL(EXPORT_TABLE_TO_POINT_IN_TIME, export_table_to_point_in_time)
TYPED_CALL(RESTORE_TABLE_TO_POINT_IN_TIME, restore_table_to_point_in_time)
TYPED_CALL(UPDATE_CONTRIBUTOR_INSIGHTS, update_contributor_insights)
TYPED_CALL(UPDATE_GLOBAL_TABLE, update_global_table)
TYPED_CALL(UPDATE_GLOBAL_TABLE_SETTINGS, update_global_table_settings)
TYPED_CALL(UPDATE_TABLE_REPLICA_AUTO_SCALING, update_table_replica_auto_scaling)
