/*
 * ops/prepare.h: everything that DynamoDB checks of a request before it looks at a table.
 *
 * hf__prepare_*() take a request as it came and give back its expressions, compiled and bound, or
 * the error that DynamoDB would give. They run the first ten steps of the order in which the
 * service validates (constraints, mixed parameters, values, legacy shapes, placeholders,
 * expressions, unused placeholders, item size), so a request that is wrong in itself is refused in
 * the same words whether or not its table exists. What needs the table's schema is the engine's.
 *
 * Nothing here knows a database. Everything returned lives in the scope.
 */
#ifndef HF_OPS_PREPARE_H
#define HF_OPS_PREPARE_H

#include <holdfast/db.h>

#include "base/base.h"
#include "expr/expr.h"
#include "expr/partiql.h"
#include "ops/fields.h"

struct hf__expr_cache; /* expr/cache.h; NULL compiles every time */

/* A put, update, delete or condition check. Tables are as the caller named them, here and below. */
struct prepared_write {
    struct hf_str table;
    struct hf_item item;          /* of a put */
    size_t size;                  /* of a put: of the item */
    struct hf_item key;           /* of the others */
    struct expr_bound *condition; /* NULL: none */
    struct expr_bound *update;    /* of an update; NULL: it changes nothing but makes the item */
    enum hf_return_values returns;
    bool return_old_on_failure;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
};

enum write_kind { WRITE_PUT, WRITE_UPDATE, WRITE_DELETE, WRITE_CHECK };

/* Asserts what always holds of a write of that kind that was prepared. */
void hf__prepared_write_check(enum write_kind kind, const struct prepared_write *write);

struct prepared_read {
    struct hf_str table;
    struct expr_bound *projection; /* NULL: all attributes */
    bool consistent;
    enum hf_return_capacity return_capacity;
};

/* A query or a scan. */
struct prepared_page {
    struct hf_str table;
    struct hf_str index;           /* absent: the table itself */
    const struct expr_bound *key;  /* of a query: hf__expr_key_terms() */
    struct expr_bound *filter;     /* NULL: none */
    struct expr_bound *projection; /* NULL: none */
    bool legacy_filter;            /* QueryFilter or ScanFilter: another text in errors */
    bool legacy_projection;        /* AttributesToGet */
    bool legacy_key;               /* KeyConditions */
    bool statement;                /* a SELECT: its filter may speak of keys, and of an index it
                                    * sees what the index has */
    enum hf_select select;         /* 0: not given */
    int64_t limit;                 /* 0: none */
    struct hf_item start;          /* absent: from the beginning */
    bool reverse;
    bool consistent;
    int64_t segment;        /* 0 when there are no segments */
    int64_t total_segments; /* 1 when there are no segments */
    enum hf_return_capacity return_capacity;
};

/* Asserts what always holds of a page that was prepared. */
void hf__prepared_page_check(const struct prepared_page *page);

enum hf_status hf__prepare_put_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                    const struct hf_put_item *request, struct prepared_write *out);
enum hf_status hf__prepare_update_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                       const struct hf_update_item *request,
                                       struct prepared_write *out);
enum hf_status hf__prepare_delete_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                       const struct hf_delete_item *request,
                                       struct prepared_write *out);
enum hf_status hf__prepare_get_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                    const struct hf_get_item *request, struct prepared_read *out);
enum hf_status hf__prepare_query(struct hf_scope *s, struct hf__expr_cache *cache,
                                 const struct hf_query *request, struct prepared_page *out);
enum hf_status hf__prepare_scan(struct hf_scope *s, struct hf__expr_cache *cache,
                                const struct hf_scan *request, struct prepared_page *out);

/*
 * What Select allows, as far as the request itself says. DynamoDB judges it after it found the
 * table and the index, so it is the engine that calls this, then.
 */
enum hf_status hf__prepare_select(struct hf_scope *s, const struct prepared_page *page);

/* One prepared_read per table of the request, in its order. Repeated keys are the engine's. */
enum hf_status hf__prepare_batch_get_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                          const struct hf_batch_get_item *request,
                                          struct prepared_read **out);

enum { BATCH_WRITE_MAX = 25 };

/* `sizes`, BATCH_WRITE_MAX of them, gets those of the items that are put, in the order of the writes; 0 for a
 * delete. NULL: nobody asks. */
enum hf_status hf__prepare_batch_write_item(struct hf_scope *s,
                                            const struct hf_batch_write_item *request,
                                            size_t *sizes);

enum { TRANSACTION_BYTES_MAX = 4 * 1024 * 1024 }; /* that a transaction's request brings */

/*
 * One entry per action. What DynamoDB reports as a reason for cancelling (such as a key of the
 * wrong type) is the engine's; what refuses the whole request is found here.
 */
struct prepared_action {
    enum write_kind kind;
    struct prepared_write write;
};
enum hf_status hf__prepare_transact_write_items(struct hf_scope *s, struct hf__expr_cache *cache,
                                                const struct hf_transact_write_items *request,
                                                struct prepared_action **out);
struct prepared_get {
    struct prepared_read read;
    struct hf_item key;
};
enum hf_status hf__prepare_transact_get_items(struct hf_scope *s, struct hf__expr_cache *cache,
                                              const struct hf_transact_get_items *request,
                                              struct prepared_get **out);

/* The values of a statement's parameters; they are judged before the statement is read. */
enum hf_status hf__prepare_parameters(struct hf_scope *s, const struct hf_value *parameters,
                                      size_t len);

/* A statement, and the item of an INSERT. */
enum hf_status hf__prepare_statement(struct hf_scope *s, struct hf_str text,
                                     const struct hf_value *parameters, size_t len,
                                     struct statement *out);

/*
 * Table operations: all that can be judged without the catalog, including the consistency of
 * schemas, indexes and attribute definitions of a new table.
 */
enum hf_status hf__prepare_create_table(struct hf_scope *s, const struct hf_create_table *request);
enum hf_status hf__prepare_update_table(struct hf_scope *s, const struct hf_update_table *request);
enum hf_status hf__prepare_tag_resource(struct hf_scope *s, const struct hf_tag_resource *request);
enum hf_status hf__prepare_untag_resource(struct hf_scope *s,
                                          const struct hf_untag_resource *request);

/* The ARN of a table, as the tag operations take it: not of an index or a stream. */
enum hf_status hf__prepare_resource_arn(struct hf_scope *s, struct hf_str arn);

enum hf_status hf__prepare_list_backups(struct hf_scope *s, const struct hf_list_backups *request);

/*
 * The table that a backup of `source` is restored to: what RestoreTableFromBackup asks for, and
 * what it leaves as it was, as a request to create it, which is valid.
 */
enum hf_status hf__prepare_restore(struct hf_scope *s,
                                   const struct hf_restore_table_from_backup *request,
                                   const struct hf_table_description *source,
                                   struct hf_create_table *out);

/* The checks that every operation has: constraints of its fields, TableName alone first. */
enum hf_status hf__prepare_plain(struct hf_scope *s, enum hf_op op, const void *request);

/*
 * One index of a new table, or of UpdateTable: its keys are defined, its projection makes sense.
 * `hash` is the name of the table's partition key; the index may have its sort key. Without
 * attributes it is not checked whether the keys are defined: UpdateTable needs the catalog for that.
 */
enum hf_status hf__prepare_index(struct hf_scope *s, const struct hf_index *index, bool local,
                                 const struct hf_attribute_definition *attributes,
                                 size_t attributes_len, struct hf_str hash);

/* Does it ask for encryption with a key of KMS? NULL, and what is disabled, do not. */
bool hf__sse_wanted(const struct hf_sse_spec *sse);

/* What a table or index that is billed by request is ready for without asking, per second. */
enum { ON_DEMAND_READS = 12000, ON_DEMAND_WRITES = 4000 };

/* A global index has throughput of its own exactly when its table is billed by it. */
enum hf_status hf__check_index_throughput(struct hf_scope *s, const struct hf_index *index,
                                          enum hf_billing billing);

/* One or more of [a-zA-Z0-9_.-]. */
bool hf__ops_is_table_name(struct hf_str text);

/* A table's own name out of a TableName that may be an ARN. */
struct hf_str hf__ops_table_name(struct hf_str name_or_arn);

/* Fail with TransactionCanceledException and these reasons, one per action. */
enum hf_status hf__cancel(struct hf_scope *s, const struct hf_cancel_reason *reasons, size_t len);

#endif
