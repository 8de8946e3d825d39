/*
 * engine/table/tables.h: what operations on tables share.
 */
#ifndef HF_ENGINE_TABLE_TABLES_H
#define HF_ENGINE_TABLE_TABLES_H

#include "engine/engine.h"
#include "engine/table/schema.h"

struct backup;
struct transfer;

/* What DescribeTable answers, in the scope; after hf__counts_refresh(), if counts may be due. */
enum hf_status hf__table_describe(struct hf_scope *s, struct engine *e, struct table *table,
                                  const struct hf_table_description **out);

enum hf_status hf__describe_new_index(struct hf_scope *s, struct engine *e, struct hf_str table,
                                      const struct hf_index *index, bool local,
                                      enum hf_billing billing, struct hf_index_description *out);

/* What a new table is filled from. */
struct table_origin {
    const struct backup *backup;          /* NULL: from none */
    const struct hf_import_table *import; /* NULL: by none */
    struct transfer *transfer;            /* result: the import's, to be added; or NULL */
};

/* A new table, ACTIVE at once, or CREATING until it is filled; `origin` may be NULL. The caller holds the
 * schema lock for writing, here and below. */
enum hf_status hf__table_create(struct hf_scope *s, struct engine *e,
                                const struct hf_create_table *request, struct table_origin *origin,
                                const struct hf_table_description **out);

/* Remove a table, with what else is in the batch. */
enum hf_status hf__table_delete(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                struct table *table);

/* ---- policies.c, continuous.c --------------------------------------------------------------- */

enum hf_status hf__policy_check(struct hf_scope *s, struct hf_str policy);
int64_t hf__policy_revision(struct engine *e, int64_t last); /* the next one */

/* Fail because the table has no recovery to a point in time, or is not there. */
enum hf_status hf__no_point_in_time(struct hf_scope *s, struct engine *e, struct hf_str name);

#endif
