/*
 * The operations of a database, one by one. Written by script/ops from src/ops/ops.def.
 *
 * Every function takes a request, which is a struct of its name (db.h), and fills in a result. The
 * rules of db.h for requests and results hold for all. A result may be NULL if it does not matter,
 * and is zeroed when the call fails. Each function blocks until it is done or the deadline of the
 * scope passes, and any thread may call it.
 *
 * Any operation can end with these, which are not repeated below:
 *
 * HF_INVALID    a member of the request is wrong or missing; the message is DynamoDB's
 * HF_NOMEM      out of memory
 * HF_TIMEOUT    the deadline of the scope passed
 * HF_CANCELED   hf_scope_cancel() was called
 * HF_DENIED     the database was opened read-only, or the service denies access
 * HF_THROTTLED  the service throttles, and retries are used up
 * HF_IO         the disk or the network failed
 * HF_NO_SPACE   the disk is too full to write safely; reads still work
 * HF_STOPPED    a sync failed earlier: no more writes until the database is opened again
 * HF_CORRUPT    stored data is damaged
 *
 * hf_scope_error() has the details: whether the call may be retried, and whether a write that
 * failed may still have happened.
 */
#ifndef HOLDFAST_DB_OPS_H
#define HOLDFAST_DB_OPS_H

#include <holdfast/base.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_scope;
struct hf_db;

/* Numbers for hf_db_call(). */
enum hf_op {
    HF_OP_BATCH_EXECUTE_STATEMENT,
    HF_OP_BATCH_GET_ITEM,
    HF_OP_BATCH_WRITE_ITEM,
    HF_OP_CREATE_TABLE,
    HF_OP_DELETE_ITEM,
    HF_OP_DELETE_TABLE,
    HF_OP_DESCRIBE_ENDPOINTS,
    HF_OP_DESCRIBE_LIMITS,
    HF_OP_DESCRIBE_STREAM,
    HF_OP_DESCRIBE_TABLE,
    HF_OP_DESCRIBE_TIME_TO_LIVE,
    HF_OP_EXECUTE_STATEMENT,
    HF_OP_EXECUTE_TRANSACTION,
    HF_OP_GET_ITEM,
    HF_OP_GET_RECORDS,
    HF_OP_GET_SHARD_ITERATOR,
    HF_OP_LIST_STREAMS,
    HF_OP_LIST_TABLES,
    HF_OP_LIST_TAGS_OF_RESOURCE,
    HF_OP_PUT_ITEM,
    HF_OP_QUERY,
    HF_OP_SCAN,
    HF_OP_TAG_RESOURCE,
    HF_OP_TRANSACT_GET_ITEMS,
    HF_OP_TRANSACT_WRITE_ITEMS,
    HF_OP_UNTAG_RESOURCE,
    HF_OP_UPDATE_ITEM,
    HF_OP_UPDATE_TABLE,
    HF_OP_UPDATE_TIME_TO_LIVE,
    HF_OP_DESCRIBE_CONTINUOUS_BACKUPS,
    HF_OP_UPDATE_CONTINUOUS_BACKUPS,
    HF_OP_CREATE_BACKUP,
    HF_OP_DELETE_BACKUP,
    HF_OP_DESCRIBE_BACKUP,
    HF_OP_LIST_BACKUPS,
    HF_OP_RESTORE_TABLE_FROM_BACKUP,
    HF_OP_DELETE_RESOURCE_POLICY,
    HF_OP_GET_RESOURCE_POLICY,
    HF_OP_PUT_RESOURCE_POLICY,
    HF_OP_DESCRIBE_CONTRIBUTOR_INSIGHTS,
    HF_OP_DESCRIBE_EXPORT,
    HF_OP_DESCRIBE_GLOBAL_TABLE,
    HF_OP_DESCRIBE_IMPORT,
    HF_OP_DESCRIBE_KINESIS_STREAMING_DESTINATION,
    HF_OP_DESCRIBE_TABLE_REPLICA_AUTO_SCALING,
    HF_OP_LIST_CONTRIBUTOR_INSIGHTS,
    HF_OP_LIST_EXPORTS,
    HF_OP_LIST_GLOBAL_TABLES,
    HF_OP_LIST_IMPORTS,
    HF_OP_CREATE_GLOBAL_TABLE,
    HF_OP_DESCRIBE_GLOBAL_TABLE_SETTINGS,
    HF_OP_DISABLE_KINESIS_STREAMING_DESTINATION,
    HF_OP_EXPORT_TABLE_TO_POINT_IN_TIME,
    HF_OP_RESTORE_TABLE_TO_POINT_IN_TIME,
    HF_OP_UPDATE_CONTRIBUTOR_INSIGHTS,
    HF_OP_UPDATE_GLOBAL_TABLE,
    HF_OP_UPDATE_GLOBAL_TABLE_SETTINGS,
    HF_OP_UPDATE_TABLE_REPLICA_AUTO_SCALING,
    HF_OP_IMPORT_TABLE,
    HF_OP_COUNT
};

/*
 * BatchExecuteStatement: execute up to 25 statements of PartiQL, each on one item and independent
 * of the others: `responses` has the outcome of each, in their order. All are reads, or all are
 * writes. Clients do not retry it while its outcome is unknown.
 *
 * HF_INVALID  no statement, more than 25, reads among writes, or two on one item
 */
struct hf_batch_execute_statement;
struct hf_batch_execute_statement_result;
HF_API HF_NODISCARD enum hf_status
hf_batch_execute_statement(struct hf_scope *s, struct hf_db *db,
                           const struct hf_batch_execute_statement *request,
                           struct hf_batch_execute_statement_result *result);

/*
 * BatchGetItem: read up to 100 items of any number of tables. Items that did not fit into one
 * answer, or were throttled, are in `unprocessed`: use that as `tables` of the next request.
 * hf_get_many() (batch.h) does that for you.
 *
 * HF_NOT_FOUND  one of the tables does not exist; nothing was read
 * HF_THROTTLED  not one item could be read
 */
struct hf_batch_get_item;
struct hf_batch_get_item_result;
HF_API HF_NODISCARD enum hf_status hf_batch_get_item(struct hf_scope *s, struct hf_db *db,
                                                     const struct hf_batch_get_item *request,
                                                     struct hf_batch_get_item_result *result);

/*
 * BatchWriteItem: put and delete up to 25 items of any number of tables; this is not a
 * transaction. Writes that were not done are in `unprocessed`: use that as `tables` of the next
 * request. hf_write_many() (batch.h) does that for you.
 *
 * HF_NOT_FOUND  one of the tables does not exist; nothing was written
 * HF_THROTTLED  not one write could be done
 */
struct hf_batch_write_item;
struct hf_batch_write_item_result;
HF_API HF_NODISCARD enum hf_status hf_batch_write_item(struct hf_scope *s, struct hf_db *db,
                                                       const struct hf_batch_write_item *request,
                                                       struct hf_batch_write_item_result *result);

/*
 * CreateTable: create a table. It may take a while until it can be used: hf_table_wait() (table.h)
 * waits for that, and hf_table_ensure() creates what is missing and waits. Clients do not retry it
 * while its outcome is unknown.
 *
 * HF_IN_USE  a table of that name exists
 * HF_LIMIT   too many tables are being created, or exist
 */
struct hf_create_table;
struct hf_create_table_result;
HF_API HF_NODISCARD enum hf_status hf_create_table(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_create_table *request,
                                                   struct hf_create_table_result *result);

/*
 * DeleteItem: delete the item with a key, if the condition holds. It is not an error if the item
 * does not exist. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND        no such table
 * HF_CONDITION        the condition does not hold; hf_error.item is the item, if the request asked
 *                     for it
 * HF_TX_CONFLICT      a transaction is writing the item; try again
 * HF_COLLECTION_SIZE  items with this partition key, with their local indexes, exceed 10 GB
 */
struct hf_delete_item;
struct hf_delete_item_result;
HF_API HF_NODISCARD enum hf_status hf_delete_item(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_delete_item *request,
                                                  struct hf_delete_item_result *result);

/*
 * DeleteTable: delete a table with its items and indexes. Clients do not retry it while its
 * outcome is unknown.
 *
 * HF_NOT_FOUND  no such table
 * HF_IN_USE     the table is being created, changed or restored
 * HF_INVALID    deletion protection is on
 */
struct hf_delete_table;
struct hf_delete_table_result;
HF_API HF_NODISCARD enum hf_status hf_delete_table(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_delete_table *request,
                                                   struct hf_delete_table_result *result);

/*
 * DescribeEndpoints: the endpoint for requests, for clients with endpoint discovery.
 */
struct hf_describe_endpoints;
struct hf_describe_endpoints_result;
HF_API HF_NODISCARD enum hf_status
hf_describe_endpoints(struct hf_scope *s, struct hf_db *db,
                      const struct hf_describe_endpoints *request,
                      struct hf_describe_endpoints_result *result);

/*
 * DescribeLimits: the limits of the account for provisioned capacity. The embedded engine has
 * DynamoDB's numbers and enforces none of them.
 */
struct hf_describe_limits;
struct hf_describe_limits_result;
HF_API HF_NODISCARD enum hf_status hf_describe_limits(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_describe_limits *request,
                                                      struct hf_describe_limits_result *result);

/*
 * DescribeStream: a stream and a page of its shards. hf_pages_describe_stream() (pages.h) reads
 * all pages.
 *
 * HF_NOT_FOUND  no such stream
 */
struct hf_describe_stream;
struct hf_describe_stream_result;
HF_API HF_NODISCARD enum hf_status hf_describe_stream(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_describe_stream *request,
                                                      struct hf_describe_stream_result *result);

/*
 * DescribeTable: describe a table: keys, indexes, status, size. In DynamoDB size and number of
 * items are estimates.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_describe_table;
struct hf_describe_table_result;
HF_API HF_NODISCARD enum hf_status hf_describe_table(struct hf_scope *s, struct hf_db *db,
                                                     const struct hf_describe_table *request,
                                                     struct hf_describe_table_result *result);

/*
 * DescribeTimeToLive: whether items of a table expire, and which attribute says when.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_describe_time_to_live;
struct hf_describe_time_to_live_result;
HF_API HF_NODISCARD enum hf_status
hf_describe_time_to_live(struct hf_scope *s, struct hf_db *db,
                         const struct hf_describe_time_to_live *request,
                         struct hf_describe_time_to_live_result *result);

/*
 * ExecuteStatement: execute one statement of PartiQL: a SELECT, which has pages, or a write of one
 * item. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND    no such table
 * HF_CONDITION    the WHERE clause of an UPDATE or DELETE does not hold
 * HF_DUPLICATE    INSERT of a key that exists
 * HF_TX_CONFLICT  a transaction is writing the item; try again
 */
struct hf_execute_statement;
struct hf_execute_statement_result;
HF_API HF_NODISCARD enum hf_status hf_execute_statement(struct hf_scope *s, struct hf_db *db,
                                                        const struct hf_execute_statement *request,
                                                        struct hf_execute_statement_result *result);

/*
 * ExecuteTransaction: execute up to 100 statements of PartiQL, all of them or none: all reads, or
 * all writes. With a token it is safe to repeat; hf_retry_open() and clients give it one.
 *
 * HF_NOT_FOUND       no such table
 * HF_TX_CANCELED     nothing was done; hf_error.reasons has the reason of every statement
 * HF_TX_IN_PROGRESS  the same token is being worked on
 * HF_TOKEN_MISMATCH  the token was used with another request
 */
struct hf_execute_transaction;
struct hf_execute_transaction_result;
HF_API HF_NODISCARD enum hf_status
hf_execute_transaction(struct hf_scope *s, struct hf_db *db,
                       const struct hf_execute_transaction *request,
                       struct hf_execute_transaction_result *result);

/*
 * GetItem: read the item with a key; result->item is absent if there is none. `consistent` sees
 * every write that has succeeded before.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_get_item;
struct hf_get_item_result;
HF_API HF_NODISCARD enum hf_status hf_get_item(struct hf_scope *s, struct hf_db *db,
                                               const struct hf_get_item *request,
                                               struct hf_get_item_result *result);

/*
 * GetRecords: read the next records of a shard. `next` is the iterator of the call after this one,
 * absent at the end of a closed shard. No records does not mean the end. A consumer (streams.h)
 * does all of this for you.
 *
 * HF_NOT_FOUND  no such stream
 * HF_EXPIRED    the iterator is older than 15 minutes; get another
 * HF_TRIMMED    the records at this place are older than a day and gone
 */
struct hf_get_records;
struct hf_get_records_result;
HF_API HF_NODISCARD enum hf_status hf_get_records(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_get_records *request,
                                                  struct hf_get_records_result *result);

/*
 * GetShardIterator: where to start reading a shard: at its oldest record, after its newest, or at
 * or after a sequence number.
 *
 * HF_NOT_FOUND  no such stream or shard
 * HF_TRIMMED    the record of that sequence number is older than a day and gone
 */
struct hf_get_shard_iterator;
struct hf_get_shard_iterator_result;
HF_API HF_NODISCARD enum hf_status
hf_get_shard_iterator(struct hf_scope *s, struct hf_db *db,
                      const struct hf_get_shard_iterator *request,
                      struct hf_get_shard_iterator_result *result);

/*
 * ListStreams: a page of the streams of a table, or of all. hf_pages_list_streams() (pages.h)
 * reads all pages.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_list_streams;
struct hf_list_streams_result;
HF_API HF_NODISCARD enum hf_status hf_list_streams(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_list_streams *request,
                                                   struct hf_list_streams_result *result);

/*
 * ListTables: a page of the names of tables, sorted. hf_pages_list_tables() (pages.h) reads all
 * pages.
 */
struct hf_list_tables;
struct hf_list_tables_result;
HF_API HF_NODISCARD enum hf_status hf_list_tables(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_list_tables *request,
                                                  struct hf_list_tables_result *result);

/*
 * ListTagsOfResource: a page of the tags of a table. hf_pages_list_tags_of_resource() (pages.h)
 * reads all pages.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_list_tags_of_resource;
struct hf_list_tags_of_resource_result;
HF_API HF_NODISCARD enum hf_status
hf_list_tags_of_resource(struct hf_scope *s, struct hf_db *db,
                         const struct hf_list_tags_of_resource *request,
                         struct hf_list_tags_of_resource_result *result);

/*
 * PutItem: write an item, replacing the one with its key, if the condition holds. Clients do not
 * retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND        no such table
 * HF_CONDITION        the condition does not hold; hf_error.item is the item, if the request asked
 *                     for it
 * HF_TX_CONFLICT      a transaction is writing the item; try again
 * HF_COLLECTION_SIZE  items with this partition key, with their local indexes, exceed 10 GB
 */
struct hf_put_item;
struct hf_put_item_result;
HF_API HF_NODISCARD enum hf_status hf_put_item(struct hf_scope *s, struct hf_db *db,
                                               const struct hf_put_item *request,
                                               struct hf_put_item_result *result);

/*
 * Query: read a page of the items with one partition key, in the order of the sort key, of a table
 * or an index. A page has up to 1 MB before the filter; `last` is where the next one starts.
 * hf_pages_query() (pages.h) reads all pages.
 *
 * HF_NOT_FOUND  no such table
 * HF_INVALID    also: no such index
 */
struct hf_query;
struct hf_query_result;
HF_API HF_NODISCARD enum hf_status hf_query(struct hf_scope *s, struct hf_db *db,
                                            const struct hf_query *request,
                                            struct hf_query_result *result);

/*
 * Scan: read a page of all items of a table or an index, or of one of `total_segments` parts of
 * them. A page has up to 1 MB before the filter; `last` is where the next one starts.
 * hf_pages_scan() (pages.h) reads all pages.
 *
 * HF_NOT_FOUND  no such table
 * HF_INVALID    also: no such index
 */
struct hf_scan;
struct hf_scan_result;
HF_API HF_NODISCARD enum hf_status hf_scan(struct hf_scope *s, struct hf_db *db,
                                           const struct hf_scan *request,
                                           struct hf_scan_result *result);

/*
 * TagResource: add tags to a table, or change them. A table has up to 50.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_tag_resource;
struct hf_tag_resource_result;
HF_API HF_NODISCARD enum hf_status hf_tag_resource(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_tag_resource *request,
                                                   struct hf_tag_resource_result *result);

/*
 * TransactGetItems: read up to 100 items of any number of tables as they were at one moment.
 *
 * HF_NOT_FOUND    no such table
 * HF_TX_CANCELED  a transaction is writing one of the items; hf_error.reasons has the reason of
 *                 every action
 */
struct hf_transact_get_items;
struct hf_transact_get_items_result;
HF_API HF_NODISCARD enum hf_status
hf_transact_get_items(struct hf_scope *s, struct hf_db *db,
                      const struct hf_transact_get_items *request,
                      struct hf_transact_get_items_result *result);

/*
 * TransactWriteItems: execute up to 100 writes and checks, on any number of tables, all of them or
 * none. With hf_tx_run() (tx.h) patterns can add actions to one transaction. With a token it is
 * safe to repeat; hf_retry_open() and clients give it one.
 *
 * HF_NOT_FOUND       no such table
 * HF_TX_CANCELED     nothing was done; hf_error.reasons has the reason of every action
 * HF_TX_IN_PROGRESS  the same token is being worked on
 * HF_TOKEN_MISMATCH  the token was used with another request
 */
struct hf_transact_write_items;
struct hf_transact_write_items_result;
HF_API HF_NODISCARD enum hf_status
hf_transact_write_items(struct hf_scope *s, struct hf_db *db,
                        const struct hf_transact_write_items *request,
                        struct hf_transact_write_items_result *result);

/*
 * UntagResource: remove tags of a table. It is not an error if a tag does not exist.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_untag_resource;
struct hf_untag_resource_result;
HF_API HF_NODISCARD enum hf_status hf_untag_resource(struct hf_scope *s, struct hf_db *db,
                                                     const struct hf_untag_resource *request,
                                                     struct hf_untag_resource_result *result);

/*
 * UpdateItem: change the item with a key by an update expression, if the condition holds, or
 * create it. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND        no such table
 * HF_CONDITION        the condition does not hold; hf_error.item is the item, if the request asked
 *                     for it
 * HF_TX_CONFLICT      a transaction is writing the item; try again
 * HF_COLLECTION_SIZE  items with this partition key, with their local indexes, exceed 10 GB
 */
struct hf_update_item;
struct hf_update_item_result;
HF_API HF_NODISCARD enum hf_status hf_update_item(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_update_item *request,
                                                  struct hf_update_item_result *result);

/*
 * UpdateTable: change billing, throughput, indexes, stream, protection or class of a table. One
 * index can be created or deleted per call; hf_table_wait() (table.h) waits until that is done.
 * Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such table or index
 * HF_IN_USE     the table is being created, changed or restored
 * HF_LIMIT      too many indexes, or too many changes of them at once
 */
struct hf_update_table;
struct hf_update_table_result;
HF_API HF_NODISCARD enum hf_status hf_update_table(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_update_table *request,
                                                   struct hf_update_table_result *result);

/*
 * UpdateTimeToLive: turn expiry of items on, by the time in an attribute, or off. Clients do not
 * retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such table
 * HF_INVALID    also: it is on, or off, already
 */
struct hf_update_time_to_live;
struct hf_update_time_to_live_result;
HF_API HF_NODISCARD enum hf_status
hf_update_time_to_live(struct hf_scope *s, struct hf_db *db,
                       const struct hf_update_time_to_live *request,
                       struct hf_update_time_to_live_result *result);

/*
 * DescribeContinuousBackups: whether a table has continuous backups. The embedded engine has none.
 *
 * HF_NOT_FOUND  no such table (TableNotFoundException)
 */
struct hf_describe_continuous_backups;
struct hf_describe_continuous_backups_result;
HF_API HF_NODISCARD enum hf_status
hf_describe_continuous_backups(struct hf_scope *s, struct hf_db *db,
                               const struct hf_describe_continuous_backups *request,
                               struct hf_describe_continuous_backups_result *result);

/*
 * UpdateContinuousBackups: turn point-in-time recovery on or off. The embedded engine has none, so
 * it can only be turned off.
 *
 * HF_NOT_FOUND    no such table (TableNotFoundException)
 * HF_UNSUPPORTED  the embedded engine was asked to switch it on
 *                 (ContinuousBackupsUnavailableException)
 */
struct hf_update_continuous_backups;
struct hf_update_continuous_backups_result;
HF_API HF_NODISCARD enum hf_status
hf_update_continuous_backups(struct hf_scope *s, struct hf_db *db,
                             const struct hf_update_continuous_backups *request,
                             struct hf_update_continuous_backups_result *result);

/*
 * CreateBackup: back up a table as of this moment, inside of the database. Clients do not retry it
 * while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such table (TableNotFoundException)
 */
struct hf_create_backup;
struct hf_create_backup_result;
HF_API HF_NODISCARD enum hf_status hf_create_backup(struct hf_scope *s, struct hf_db *db,
                                                    const struct hf_create_backup *request,
                                                    struct hf_create_backup_result *result);

/*
 * DeleteBackup: delete a backup. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such backup (BackupNotFoundException)
 * HF_IN_USE     it is being made, or a table is being restored from it (BackupInUseException)
 */
struct hf_delete_backup;
struct hf_delete_backup_result;
HF_API HF_NODISCARD enum hf_status hf_delete_backup(struct hf_scope *s, struct hf_db *db,
                                                    const struct hf_delete_backup *request,
                                                    struct hf_delete_backup_result *result);

/*
 * DescribeBackup: describe a backup, and its table as it was.
 *
 * HF_NOT_FOUND  no such backup (BackupNotFoundException)
 */
struct hf_describe_backup;
struct hf_describe_backup_result;
HF_API HF_NODISCARD enum hf_status hf_describe_backup(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_describe_backup *request,
                                                      struct hf_describe_backup_result *result);

/*
 * ListBackups: a page of the backups of a table, or of all, the oldest first.
 */
struct hf_list_backups;
struct hf_list_backups_result;
HF_API HF_NODISCARD enum hf_status hf_list_backups(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_list_backups *request,
                                                   struct hf_list_backups_result *result);

/*
 * RestoreTableFromBackup: create a table from a backup. hf_table_wait() (table.h) waits until it
 * can be used. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such backup (BackupNotFoundException)
 * HF_IN_USE     the backup is being made, or another table is being restored from it
 *               (BackupInUseException); a table of that name exists (TableAlreadyExistsException),
 *               or is being restored (TableInUseException)
 */
struct hf_restore_table_from_backup;
struct hf_restore_table_from_backup_result;
HF_API HF_NODISCARD enum hf_status
hf_restore_table_from_backup(struct hf_scope *s, struct hf_db *db,
                             const struct hf_restore_table_from_backup *request,
                             struct hf_restore_table_from_backup_result *result);

/*
 * DeleteResourcePolicy: remove the resource policy of a table or stream. It is not an error if
 * there is none. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such table; or the policy has another revision than expected
 *               (PolicyNotFoundException)
 */
struct hf_delete_resource_policy;
struct hf_delete_resource_policy_result;
HF_API HF_NODISCARD enum hf_status
hf_delete_resource_policy(struct hf_scope *s, struct hf_db *db,
                          const struct hf_delete_resource_policy *request,
                          struct hf_delete_resource_policy_result *result);

/*
 * GetResourcePolicy: the resource policy of a table or stream, and its revision.
 *
 * HF_NOT_FOUND  no such table; or it has no policy (PolicyNotFoundException)
 */
struct hf_get_resource_policy;
struct hf_get_resource_policy_result;
HF_API HF_NODISCARD enum hf_status
hf_get_resource_policy(struct hf_scope *s, struct hf_db *db,
                       const struct hf_get_resource_policy *request,
                       struct hf_get_resource_policy_result *result);

/*
 * PutResourcePolicy: store a resource policy with a table or stream. The embedded engine keeps it
 * and does not enforce it. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such table; or the policy has another revision than expected
 *               (PolicyNotFoundException)
 */
struct hf_put_resource_policy;
struct hf_put_resource_policy_result;
HF_API HF_NODISCARD enum hf_status
hf_put_resource_policy(struct hf_scope *s, struct hf_db *db,
                       const struct hf_put_resource_policy *request,
                       struct hf_put_resource_policy_result *result);

/*
 * DescribeContributorInsights: whether contributor insights are on. The embedded engine has none:
 * always disabled.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_describe_contributor_insights;
struct hf_describe_contributor_insights_result;
HF_API HF_NODISCARD enum hf_status
hf_describe_contributor_insights(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_describe_contributor_insights *request,
                                 struct hf_describe_contributor_insights_result *result);

/*
 * DescribeExport: an export of a table: whether it is done, what it wrote, or why it failed.
 *
 * HF_NOT_FOUND  no such export (ExportNotFoundException)
 */
struct hf_describe_export;
struct hf_describe_export_result;
HF_API HF_NODISCARD enum hf_status hf_describe_export(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_describe_export *request,
                                                      struct hf_describe_export_result *result);

/*
 * DescribeGlobalTable: a global table of the version of 2017. The embedded engine has none.
 *
 * HF_NOT_FOUND  no such global table (GlobalTableNotFoundException)
 */
struct hf_describe_global_table;
struct hf_describe_global_table_result;
HF_API HF_NODISCARD enum hf_status
hf_describe_global_table(struct hf_scope *s, struct hf_db *db,
                         const struct hf_describe_global_table *request,
                         struct hf_describe_global_table_result *result);

/*
 * DescribeImport: an import into a new table: whether it is done, what it read and put, or why it
 * failed.
 *
 * HF_NOT_FOUND  no such import (ImportNotFoundException)
 */
struct hf_describe_import;
struct hf_describe_import_result;
HF_API HF_NODISCARD enum hf_status hf_describe_import(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_describe_import *request,
                                                      struct hf_describe_import_result *result);

/*
 * DescribeKinesisStreamingDestination: the Kinesis streams that a table's changes go to. The
 * embedded engine has none.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_describe_kinesis_streaming_destination;
struct hf_describe_kinesis_streaming_destination_result;
HF_API HF_NODISCARD enum hf_status hf_describe_kinesis_streaming_destination(
    struct hf_scope *s, struct hf_db *db,
    const struct hf_describe_kinesis_streaming_destination *request,
    struct hf_describe_kinesis_streaming_destination_result *result);

/*
 * DescribeTableReplicaAutoScaling: how replicas of a global table scale. The embedded engine has
 * none.
 *
 * HF_NOT_FOUND  no such global table
 */
struct hf_describe_table_replica_auto_scaling;
struct hf_describe_table_replica_auto_scaling_result;
HF_API HF_NODISCARD enum hf_status hf_describe_table_replica_auto_scaling(
    struct hf_scope *s, struct hf_db *db,
    const struct hf_describe_table_replica_auto_scaling *request,
    struct hf_describe_table_replica_auto_scaling_result *result);

/*
 * ListContributorInsights: a page of the tables and indexes with contributor insights. The
 * embedded engine has none.
 *
 * HF_NOT_FOUND  no such table
 */
struct hf_list_contributor_insights;
struct hf_list_contributor_insights_result;
HF_API HF_NODISCARD enum hf_status
hf_list_contributor_insights(struct hf_scope *s, struct hf_db *db,
                             const struct hf_list_contributor_insights *request,
                             struct hf_list_contributor_insights_result *result);

/*
 * ListExports: a page of the exports of a table, or of all, the newest first; for 90 days.
 */
struct hf_list_exports;
struct hf_list_exports_result;
HF_API HF_NODISCARD enum hf_status hf_list_exports(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_list_exports *request,
                                                   struct hf_list_exports_result *result);

/*
 * ListGlobalTables: a page of the global tables of the version of 2017. The embedded engine has
 * none.
 */
struct hf_list_global_tables;
struct hf_list_global_tables_result;
HF_API HF_NODISCARD enum hf_status
hf_list_global_tables(struct hf_scope *s, struct hf_db *db,
                      const struct hf_list_global_tables *request,
                      struct hf_list_global_tables_result *result);

/*
 * ListImports: a page of the imports of a table, or of all, the newest first; for 90 days.
 */
struct hf_list_imports;
struct hf_list_imports_result;
HF_API HF_NODISCARD enum hf_status hf_list_imports(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_list_imports *request,
                                                   struct hf_list_imports_result *result);

/*
 * CreateGlobalTable: create a global table of the version of 2017, which the service no longer
 * does. Clients do not retry it while its outcome is unknown.
 *
 * HF_INVALID  always, from the embedded engine
 */
struct hf_create_global_table;
struct hf_create_global_table_result;
HF_API HF_NODISCARD enum hf_status
hf_create_global_table(struct hf_scope *s, struct hf_db *db,
                       const struct hf_create_global_table *request,
                       struct hf_create_global_table_result *result);

/*
 * DescribeGlobalTableSettings: the settings of a global table of the version of 2017. The embedded
 * engine has none.
 *
 * HF_NOT_FOUND  no such global table (GlobalTableNotFoundException)
 */
struct hf_describe_global_table_settings;
struct hf_describe_global_table_settings_result;
HF_API HF_NODISCARD enum hf_status
hf_describe_global_table_settings(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_describe_global_table_settings *request,
                                  struct hf_describe_global_table_settings_result *result);

/*
 * DisableKinesisStreamingDestination: stop sending the changes of a table to a Kinesis stream. The
 * embedded engine sends none. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such table, or it has no such destination
 */
struct hf_disable_kinesis_streaming_destination;
struct hf_disable_kinesis_streaming_destination_result;
HF_API HF_NODISCARD enum hf_status hf_disable_kinesis_streaming_destination(
    struct hf_scope *s, struct hf_db *db,
    const struct hf_disable_kinesis_streaming_destination *request,
    struct hf_disable_kinesis_streaming_destination_result *result);

/*
 * ExportTableToPointInTime: export a table to files in a bucket, in the background:
 * hf_describe_export() says when it is done. The embedded engine exports the table as of this
 * call, without point-in-time recovery. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND    no such table (TableNotFoundException)
 * HF_IN_USE       the token was used for another export (ExportConflictException)
 * HF_LIMIT        too many exports are running
 * HF_INVALID      the database has no buckets (hf_engine_options.buckets); or the moment is in the
 *                 future (InvalidExportTimeException)
 * HF_UNSUPPORTED  the embedded engine was asked for the changes of a period, or for a moment in the
 *                 past (PointInTimeRecoveryUnavailableException)
 */
struct hf_export_table_to_point_in_time;
struct hf_export_table_to_point_in_time_result;
HF_API HF_NODISCARD enum hf_status
hf_export_table_to_point_in_time(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_export_table_to_point_in_time *request,
                                 struct hf_export_table_to_point_in_time_result *result);

/*
 * RestoreTableToPointInTime: create a table from another one as of an earlier time. This needs
 * point-in-time recovery, which the embedded engine does not have. Clients do not retry it while
 * its outcome is unknown.
 *
 * HF_NOT_FOUND    no such table (TableNotFoundException)
 * HF_UNSUPPORTED  always, from the embedded engine (PointInTimeRecoveryUnavailableException)
 */
struct hf_restore_table_to_point_in_time;
struct hf_restore_table_to_point_in_time_result;
HF_API HF_NODISCARD enum hf_status
hf_restore_table_to_point_in_time(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_restore_table_to_point_in_time *request,
                                  struct hf_restore_table_to_point_in_time_result *result);

/*
 * UpdateContributorInsights: turn contributor insights of a table or index on or off. The embedded
 * engine has none, so they can only be turned off.
 *
 * HF_NOT_FOUND  no such table
 * HF_INVALID    the embedded engine was asked to switch them on
 */
struct hf_update_contributor_insights;
struct hf_update_contributor_insights_result;
HF_API HF_NODISCARD enum hf_status
hf_update_contributor_insights(struct hf_scope *s, struct hf_db *db,
                               const struct hf_update_contributor_insights *request,
                               struct hf_update_contributor_insights_result *result);

/*
 * UpdateGlobalTable: add or remove replicas of a global table of the version of 2017. The embedded
 * engine has none. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such global table (GlobalTableNotFoundException)
 */
struct hf_update_global_table;
struct hf_update_global_table_result;
HF_API HF_NODISCARD enum hf_status
hf_update_global_table(struct hf_scope *s, struct hf_db *db,
                       const struct hf_update_global_table *request,
                       struct hf_update_global_table_result *result);

/*
 * UpdateGlobalTableSettings: change the settings of a global table of the version of 2017. The
 * embedded engine has none. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such global table (GlobalTableNotFoundException)
 */
struct hf_update_global_table_settings;
struct hf_update_global_table_settings_result;
HF_API HF_NODISCARD enum hf_status
hf_update_global_table_settings(struct hf_scope *s, struct hf_db *db,
                                const struct hf_update_global_table_settings *request,
                                struct hf_update_global_table_settings_result *result);

/*
 * UpdateTableReplicaAutoScaling: change how replicas of a global table scale. The embedded engine
 * has none. Clients do not retry it while its outcome is unknown.
 *
 * HF_NOT_FOUND  no such global table
 */
struct hf_update_table_replica_auto_scaling;
struct hf_update_table_replica_auto_scaling_result;
HF_API HF_NODISCARD enum hf_status
hf_update_table_replica_auto_scaling(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_update_table_replica_auto_scaling *request,
                                     struct hf_update_table_replica_auto_scaling_result *result);

/*
 * ImportTable: create a table and put the items of files in a bucket into it, in the background.
 * Until that has ended, the table is CREATING. An import of which some records could not be put
 * ends as FAILED, and the table has the others. Clients do not retry it while its outcome is
 * unknown.
 *
 * HF_IN_USE   a table of that name exists; or the token was used for an import into another table
 *             (ImportConflictException)
 * HF_LIMIT    too many imports are running, or too many tables
 * HF_INVALID  the database has no buckets (hf_engine_options.buckets)
 */
struct hf_import_table;
struct hf_import_table_result;
HF_API HF_NODISCARD enum hf_status hf_import_table(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_import_table *request,
                                                   struct hf_import_table_result *result);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
