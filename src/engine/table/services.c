/*
 * engine/table/services.c: what other services and regions do for a table: global tables, Kinesis,
 * contributor insights. None of them exists on one machine, and nothing here starts them; so tools
 * for infrastructure, which ask for them, find that there are none.
 */
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/table/tables.h"
#include "ops/prepare.h"

/* ---- global tables -------------------------------------------------------------------------- */

#define NO_GLOBAL_TABLE "Global table with name: '%.*s' does not exist."

static enum hf_status fail_no_global(struct hf_scope *s, struct hf_str name)
{
    return hf__fail_as(s, HF_NOT_FOUND, "GlobalTableNotFoundException", NO_GLOBAL_TABLE,
                       HF_FMT(name));
}

enum hf_status hf__engine_list_global_tables(struct hf_scope *s, struct engine *e,
                                             const struct hf_list_global_tables *request,
                                             struct hf_list_global_tables_result *result)
{
    (void)e;
    (void)result;
    return hf__prepare_plain(s, HF_OP_LIST_GLOBAL_TABLES, request);
}

enum hf_status hf__engine_describe_global_table(struct hf_scope *s, struct engine *e,
                                                const struct hf_describe_global_table *request,
                                                struct hf_describe_global_table_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_GLOBAL_TABLE, request));
    return fail_no_global(s, request->name);
}

/* The answer of the service in every region since it creates only tables of the next version. */
enum hf_status hf__engine_create_global_table(struct hf_scope *s, struct engine *e,
                                              const struct hf_create_global_table *request,
                                              struct hf_create_global_table_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_CREATE_GLOBAL_TABLE, request));
    return hf__fail(s, HF_INVALID,
                    "One or more parameter values were invalid: DynamoDB global tables version "
                    "2017.11.29 is not supported. We recommend using DynamoDB global tables "
                    "version 2019.11.21, instead of version 2017.11.29 (Legacy).");
}

enum hf_status hf__engine_update_global_table(struct hf_scope *s, struct engine *e,
                                              const struct hf_update_global_table *request,
                                              struct hf_update_global_table_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_UPDATE_GLOBAL_TABLE, request));
    return fail_no_global(s, request->name);
}

enum hf_status
hf__engine_describe_global_table_settings(struct hf_scope *s, struct engine *e,
                                          const struct hf_describe_global_table_settings *request,
                                          struct hf_describe_global_table_settings_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_GLOBAL_TABLE_SETTINGS, request));
    return fail_no_global(s, request->name);
}

enum hf_status
hf__engine_update_global_table_settings(struct hf_scope *s, struct engine *e,
                                        const struct hf_update_global_table_settings *request,
                                        struct hf_update_global_table_settings_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_UPDATE_GLOBAL_TABLE_SETTINGS, request));
    return fail_no_global(s, request->name);
}

/* The service has scaling of replicas only for tables that have any. */
enum hf_status hf__engine_describe_table_replica_auto_scaling(
    struct hf_scope *s, struct engine *e,
    const struct hf_describe_table_replica_auto_scaling *request,
    struct hf_describe_table_replica_auto_scaling_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_TABLE_REPLICA_AUTO_SCALING, request));
    return hf__fail(s, HF_NOT_FOUND, NO_GLOBAL_TABLE, HF_FMT(hf__ops_table_name(request->table)));
}

enum hf_status hf__engine_update_table_replica_auto_scaling(
    struct hf_scope *s, struct engine *e,
    const struct hf_update_table_replica_auto_scaling *request,
    struct hf_update_table_replica_auto_scaling_result *result)
{
    (void)e;
    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_UPDATE_TABLE_REPLICA_AUTO_SCALING, request));
    return hf__fail(s, HF_NOT_FOUND, NO_GLOBAL_TABLE, HF_FMT(hf__ops_table_name(request->table)));
}

/* ---- Kinesis and contributor insights ------------------------------------------------------- */

/* The name of the table that is asked about, in the scope. */
static enum hf_status name_of(struct hf_scope *s, struct engine *e, struct hf_str name,
                              struct hf_str *out)
{
    struct table *table;
    enum hf_status status;

    pthread_rwlock_rdlock(&e->schema);
    status = hf__catalog_table(s, e, name, &table);
    if (status == HF_OK)
        *out = hf_scope_copy(s, table->name);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK && !out->ptr ? hf__fail_nomem(s) : status;
}

enum hf_status hf__engine_describe_kinesis_streaming_destination(
    struct hf_scope *s, struct engine *e,
    const struct hf_describe_kinesis_streaming_destination *request,
    struct hf_describe_kinesis_streaming_destination_result *result)
{
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_KINESIS_STREAMING_DESTINATION, request));
    return name_of(s, e, request->table, &result->table);
}

/* There are no streams of Kinesis, so none can be disabled. */
enum hf_status hf__engine_disable_kinesis_streaming_destination(
    struct hf_scope *s, struct engine *e,
    const struct hf_disable_kinesis_streaming_destination *request,
    struct hf_disable_kinesis_streaming_destination_result *result)
{
    struct hf_str name;

    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_DISABLE_KINESIS_STREAMING_DESTINATION, request));
    TRY(name_of(s, e, request->table, &name));
    return hf__fail(s, HF_INVALID,
                    "Table is not in a valid state to enable Kinesis Streaming Destination: "
                    "KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.");
}

/* The names of a table and, unless `wanted` is absent, of one of its global indexes. The schema
 * lock is held. */
static enum hf_status insights_locked(struct hf_scope *s, struct engine *e, struct hf_str name,
                                      struct hf_str wanted, struct hf_str *table_name,
                                      struct hf_str *index_name)
{
    struct table *table;
    struct index *index;

    TRY(hf__catalog_table(s, e, name, &table));
    *table_name = hf_scope_copy(s, table->name);
    if (!wanted.ptr)
        return HF_OK;
    index = hf__table_index(table, wanted);
    if (!index || index->local)
        return hf__fail(s, HF_NOT_FOUND,
                        "Requested resource not found: Index: %.*s not found for table: %.*s",
                        HF_FMT(wanted), HF_FMT(table->name));
    *index_name = hf_scope_copy(s, index->name);
    return HF_OK;
}

enum hf_status
hf__engine_describe_contributor_insights(struct hf_scope *s, struct engine *e,
                                         const struct hf_describe_contributor_insights *request,
                                         struct hf_describe_contributor_insights_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_CONTRIBUTOR_INSIGHTS, request));
    pthread_rwlock_rdlock(&e->schema);
    status = insights_locked(s, e, request->table, request->index, &result->table, &result->index);
    pthread_rwlock_unlock(&e->schema);
    result->status = HF_INSIGHTS_DISABLED;
    return status;
}

/* Contributor insights are always disabled. */
enum hf_status
hf__engine_update_contributor_insights(struct hf_scope *s, struct engine *e,
                                       const struct hf_update_contributor_insights *request,
                                       struct hf_update_contributor_insights_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_UPDATE_CONTRIBUTOR_INSIGHTS, request));
    if (request->action != HF_INSIGHTS_DISABLE)
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: ContributorInsightsAction "
                        "ENABLE is not supported: there are no contributor insights");
    pthread_rwlock_rdlock(&e->schema);
    status = insights_locked(s, e, request->table, request->index, &result->table, &result->index);
    pthread_rwlock_unlock(&e->schema);
    result->status = HF_INSIGHTS_DISABLED;
    return status;
}

/* Disabled contributor insights are not listed. */
enum hf_status
hf__engine_list_contributor_insights(struct hf_scope *s, struct engine *e,
                                     const struct hf_list_contributor_insights *request,
                                     struct hf_list_contributor_insights_result *result)
{
    struct hf_str name;

    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_LIST_CONTRIBUTOR_INSIGHTS, request));
    return request->table.ptr ? name_of(s, e, request->table, &name) : HF_OK;
}
