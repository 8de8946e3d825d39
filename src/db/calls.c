/*
 * db/calls.c: hf_db_call() with the types of each operation. Written by script/ops from
 * src/ops/ops.def; those that do more are in db/scan.c.
 */
#include "db/db.h"

enum hf_status hf_batch_execute_statement(struct hf_scope *s, struct hf_db *db,
                                          const struct hf_batch_execute_statement *request,
                                          struct hf_batch_execute_statement_result *result)
{
    return hf_db_call(s, db, HF_OP_BATCH_EXECUTE_STATEMENT, request, result);
}

enum hf_status hf_batch_get_item(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_batch_get_item *request,
                                 struct hf_batch_get_item_result *result)
{
    return hf_db_call(s, db, HF_OP_BATCH_GET_ITEM, request, result);
}

enum hf_status hf_batch_write_item(struct hf_scope *s, struct hf_db *db,
                                   const struct hf_batch_write_item *request,
                                   struct hf_batch_write_item_result *result)
{
    return hf_db_call(s, db, HF_OP_BATCH_WRITE_ITEM, request, result);
}

enum hf_status hf_create_table(struct hf_scope *s, struct hf_db *db,
                               const struct hf_create_table *request,
                               struct hf_create_table_result *result)
{
    return hf_db_call(s, db, HF_OP_CREATE_TABLE, request, result);
}

enum hf_status hf_delete_item(struct hf_scope *s, struct hf_db *db,
                              const struct hf_delete_item *request,
                              struct hf_delete_item_result *result)
{
    return hf_db_call(s, db, HF_OP_DELETE_ITEM, request, result);
}

enum hf_status hf_delete_table(struct hf_scope *s, struct hf_db *db,
                               const struct hf_delete_table *request,
                               struct hf_delete_table_result *result)
{
    return hf_db_call(s, db, HF_OP_DELETE_TABLE, request, result);
}

enum hf_status hf_describe_endpoints(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_describe_endpoints *request,
                                     struct hf_describe_endpoints_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_ENDPOINTS, request, result);
}

enum hf_status hf_describe_limits(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_limits *request,
                                  struct hf_describe_limits_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_LIMITS, request, result);
}

enum hf_status hf_describe_stream(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_stream *request,
                                  struct hf_describe_stream_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_STREAM, request, result);
}

enum hf_status hf_describe_table(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_describe_table *request,
                                 struct hf_describe_table_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_TABLE, request, result);
}

enum hf_status hf_describe_time_to_live(struct hf_scope *s, struct hf_db *db,
                                        const struct hf_describe_time_to_live *request,
                                        struct hf_describe_time_to_live_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_TIME_TO_LIVE, request, result);
}

enum hf_status hf_execute_statement(struct hf_scope *s, struct hf_db *db,
                                    const struct hf_execute_statement *request,
                                    struct hf_execute_statement_result *result)
{
    return hf_db_call(s, db, HF_OP_EXECUTE_STATEMENT, request, result);
}

enum hf_status hf_execute_transaction(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_execute_transaction *request,
                                      struct hf_execute_transaction_result *result)
{
    return hf_db_call(s, db, HF_OP_EXECUTE_TRANSACTION, request, result);
}

enum hf_status hf_get_item(struct hf_scope *s, struct hf_db *db, const struct hf_get_item *request,
                           struct hf_get_item_result *result)
{
    return hf_db_call(s, db, HF_OP_GET_ITEM, request, result);
}

enum hf_status hf_get_records(struct hf_scope *s, struct hf_db *db,
                              const struct hf_get_records *request,
                              struct hf_get_records_result *result)
{
    return hf_db_call(s, db, HF_OP_GET_RECORDS, request, result);
}

enum hf_status hf_get_shard_iterator(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_get_shard_iterator *request,
                                     struct hf_get_shard_iterator_result *result)
{
    return hf_db_call(s, db, HF_OP_GET_SHARD_ITERATOR, request, result);
}

enum hf_status hf_list_streams(struct hf_scope *s, struct hf_db *db,
                               const struct hf_list_streams *request,
                               struct hf_list_streams_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_STREAMS, request, result);
}

enum hf_status hf_list_tables(struct hf_scope *s, struct hf_db *db,
                              const struct hf_list_tables *request,
                              struct hf_list_tables_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_TABLES, request, result);
}

enum hf_status hf_list_tags_of_resource(struct hf_scope *s, struct hf_db *db,
                                        const struct hf_list_tags_of_resource *request,
                                        struct hf_list_tags_of_resource_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_TAGS_OF_RESOURCE, request, result);
}

enum hf_status hf_put_item(struct hf_scope *s, struct hf_db *db, const struct hf_put_item *request,
                           struct hf_put_item_result *result)
{
    return hf_db_call(s, db, HF_OP_PUT_ITEM, request, result);
}

enum hf_status hf_query(struct hf_scope *s, struct hf_db *db, const struct hf_query *request,
                        struct hf_query_result *result)
{
    return hf_db_call(s, db, HF_OP_QUERY, request, result);
}

enum hf_status hf_tag_resource(struct hf_scope *s, struct hf_db *db,
                               const struct hf_tag_resource *request,
                               struct hf_tag_resource_result *result)
{
    return hf_db_call(s, db, HF_OP_TAG_RESOURCE, request, result);
}

enum hf_status hf_transact_get_items(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_transact_get_items *request,
                                     struct hf_transact_get_items_result *result)
{
    return hf_db_call(s, db, HF_OP_TRANSACT_GET_ITEMS, request, result);
}

enum hf_status hf_transact_write_items(struct hf_scope *s, struct hf_db *db,
                                       const struct hf_transact_write_items *request,
                                       struct hf_transact_write_items_result *result)
{
    return hf_db_call(s, db, HF_OP_TRANSACT_WRITE_ITEMS, request, result);
}

enum hf_status hf_untag_resource(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_untag_resource *request,
                                 struct hf_untag_resource_result *result)
{
    return hf_db_call(s, db, HF_OP_UNTAG_RESOURCE, request, result);
}

enum hf_status hf_update_item(struct hf_scope *s, struct hf_db *db,
                              const struct hf_update_item *request,
                              struct hf_update_item_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_ITEM, request, result);
}

enum hf_status hf_update_table(struct hf_scope *s, struct hf_db *db,
                               const struct hf_update_table *request,
                               struct hf_update_table_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_TABLE, request, result);
}

enum hf_status hf_update_time_to_live(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_update_time_to_live *request,
                                      struct hf_update_time_to_live_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_TIME_TO_LIVE, request, result);
}

enum hf_status hf_describe_continuous_backups(struct hf_scope *s, struct hf_db *db,
                                              const struct hf_describe_continuous_backups *request,
                                              struct hf_describe_continuous_backups_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_CONTINUOUS_BACKUPS, request, result);
}

enum hf_status hf_update_continuous_backups(struct hf_scope *s, struct hf_db *db,
                                            const struct hf_update_continuous_backups *request,
                                            struct hf_update_continuous_backups_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_CONTINUOUS_BACKUPS, request, result);
}

enum hf_status hf_create_backup(struct hf_scope *s, struct hf_db *db,
                                const struct hf_create_backup *request,
                                struct hf_create_backup_result *result)
{
    return hf_db_call(s, db, HF_OP_CREATE_BACKUP, request, result);
}

enum hf_status hf_delete_backup(struct hf_scope *s, struct hf_db *db,
                                const struct hf_delete_backup *request,
                                struct hf_delete_backup_result *result)
{
    return hf_db_call(s, db, HF_OP_DELETE_BACKUP, request, result);
}

enum hf_status hf_describe_backup(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_backup *request,
                                  struct hf_describe_backup_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_BACKUP, request, result);
}

enum hf_status hf_list_backups(struct hf_scope *s, struct hf_db *db,
                               const struct hf_list_backups *request,
                               struct hf_list_backups_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_BACKUPS, request, result);
}

enum hf_status hf_restore_table_from_backup(struct hf_scope *s, struct hf_db *db,
                                            const struct hf_restore_table_from_backup *request,
                                            struct hf_restore_table_from_backup_result *result)
{
    return hf_db_call(s, db, HF_OP_RESTORE_TABLE_FROM_BACKUP, request, result);
}

enum hf_status hf_delete_resource_policy(struct hf_scope *s, struct hf_db *db,
                                         const struct hf_delete_resource_policy *request,
                                         struct hf_delete_resource_policy_result *result)
{
    return hf_db_call(s, db, HF_OP_DELETE_RESOURCE_POLICY, request, result);
}

enum hf_status hf_get_resource_policy(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_get_resource_policy *request,
                                      struct hf_get_resource_policy_result *result)
{
    return hf_db_call(s, db, HF_OP_GET_RESOURCE_POLICY, request, result);
}

enum hf_status hf_put_resource_policy(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_put_resource_policy *request,
                                      struct hf_put_resource_policy_result *result)
{
    return hf_db_call(s, db, HF_OP_PUT_RESOURCE_POLICY, request, result);
}

enum hf_status
hf_describe_contributor_insights(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_describe_contributor_insights *request,
                                 struct hf_describe_contributor_insights_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_CONTRIBUTOR_INSIGHTS, request, result);
}

enum hf_status hf_describe_export(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_export *request,
                                  struct hf_describe_export_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_EXPORT, request, result);
}

enum hf_status hf_describe_global_table(struct hf_scope *s, struct hf_db *db,
                                        const struct hf_describe_global_table *request,
                                        struct hf_describe_global_table_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_GLOBAL_TABLE, request, result);
}

enum hf_status hf_describe_import(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_import *request,
                                  struct hf_describe_import_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_IMPORT, request, result);
}

enum hf_status hf_describe_kinesis_streaming_destination(
    struct hf_scope *s, struct hf_db *db,
    const struct hf_describe_kinesis_streaming_destination *request,
    struct hf_describe_kinesis_streaming_destination_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_KINESIS_STREAMING_DESTINATION, request, result);
}

enum hf_status
hf_describe_table_replica_auto_scaling(struct hf_scope *s, struct hf_db *db,
                                       const struct hf_describe_table_replica_auto_scaling *request,
                                       struct hf_describe_table_replica_auto_scaling_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_TABLE_REPLICA_AUTO_SCALING, request, result);
}

enum hf_status hf_list_contributor_insights(struct hf_scope *s, struct hf_db *db,
                                            const struct hf_list_contributor_insights *request,
                                            struct hf_list_contributor_insights_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_CONTRIBUTOR_INSIGHTS, request, result);
}

enum hf_status hf_list_exports(struct hf_scope *s, struct hf_db *db,
                               const struct hf_list_exports *request,
                               struct hf_list_exports_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_EXPORTS, request, result);
}

enum hf_status hf_list_global_tables(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_list_global_tables *request,
                                     struct hf_list_global_tables_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_GLOBAL_TABLES, request, result);
}

enum hf_status hf_list_imports(struct hf_scope *s, struct hf_db *db,
                               const struct hf_list_imports *request,
                               struct hf_list_imports_result *result)
{
    return hf_db_call(s, db, HF_OP_LIST_IMPORTS, request, result);
}

enum hf_status hf_create_global_table(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_create_global_table *request,
                                      struct hf_create_global_table_result *result)
{
    return hf_db_call(s, db, HF_OP_CREATE_GLOBAL_TABLE, request, result);
}

enum hf_status
hf_describe_global_table_settings(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_global_table_settings *request,
                                  struct hf_describe_global_table_settings_result *result)
{
    return hf_db_call(s, db, HF_OP_DESCRIBE_GLOBAL_TABLE_SETTINGS, request, result);
}

enum hf_status hf_disable_kinesis_streaming_destination(
    struct hf_scope *s, struct hf_db *db,
    const struct hf_disable_kinesis_streaming_destination *request,
    struct hf_disable_kinesis_streaming_destination_result *result)
{
    return hf_db_call(s, db, HF_OP_DISABLE_KINESIS_STREAMING_DESTINATION, request, result);
}

enum hf_status
hf_export_table_to_point_in_time(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_export_table_to_point_in_time *request,
                                 struct hf_export_table_to_point_in_time_result *result)
{
    return hf_db_call(s, db, HF_OP_EXPORT_TABLE_TO_POINT_IN_TIME, request, result);
}

enum hf_status
hf_restore_table_to_point_in_time(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_restore_table_to_point_in_time *request,
                                  struct hf_restore_table_to_point_in_time_result *result)
{
    return hf_db_call(s, db, HF_OP_RESTORE_TABLE_TO_POINT_IN_TIME, request, result);
}

enum hf_status hf_update_contributor_insights(struct hf_scope *s, struct hf_db *db,
                                              const struct hf_update_contributor_insights *request,
                                              struct hf_update_contributor_insights_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_CONTRIBUTOR_INSIGHTS, request, result);
}

enum hf_status hf_update_global_table(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_update_global_table *request,
                                      struct hf_update_global_table_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_GLOBAL_TABLE, request, result);
}

enum hf_status
hf_update_global_table_settings(struct hf_scope *s, struct hf_db *db,
                                const struct hf_update_global_table_settings *request,
                                struct hf_update_global_table_settings_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_GLOBAL_TABLE_SETTINGS, request, result);
}

enum hf_status
hf_update_table_replica_auto_scaling(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_update_table_replica_auto_scaling *request,
                                     struct hf_update_table_replica_auto_scaling_result *result)
{
    return hf_db_call(s, db, HF_OP_UPDATE_TABLE_REPLICA_AUTO_SCALING, request, result);
}

enum hf_status hf_import_table(struct hf_scope *s, struct hf_db *db,
                               const struct hf_import_table *request,
                               struct hf_import_table_result *result)
{
    return hf_db_call(s, db, HF_OP_IMPORT_TABLE, request, result);
}
