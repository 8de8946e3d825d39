/*
 * engine/table/catalog.h: which tables there are, and the names they have.
 *
 * The catalog is guarded by the schema lock: whoever finds a table in it holds that lock for as
 * long as it uses the table.
 */
#ifndef HF_ENGINE_TABLE_CATALOG_H
#define HF_ENGINE_TABLE_CATALOG_H

#include "engine/engine.h"
#include "engine/table/schema.h"
#include "ops/fields.h"

/* Load all tables; from the snapshot engine.opened, if there is one. So for streams. */
enum hf_status hf__catalog_load(struct hf_scope *s, struct engine *e);
void hf__catalog_free(struct engine *e);

/* The table of that name, or NULL. The schema lock must be held. */
struct table *hf__catalog_find(struct engine *e, struct hf_str name);

/* The same by name or ARN, with the errors of operations on items, or of operations on tables. A
 * table that is still being restored is not found. */
enum hf_status hf__catalog_item_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                      struct table **table);
enum hf_status hf__catalog_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                 struct table **table);

/* Is it CREATING, as a backup is being restored into it, or files are being imported? */
bool hf__table_filling(struct engine *e, const struct table *table);

/* The same, with the errors of operations on backups. */
enum hf_status hf__catalog_backup_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                        struct table **table);

/* The same, and also finds a table that is being restored: it can be described, not used or
 * deleted. */
enum hf_status hf__catalog_any_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                     struct table **table);

/* Whether a table is fenced has to be looked up anew, for each table; the schema is write-locked. */
void hf__catalog_forget_fences(struct engine *e);

/* Asserts what always holds of the catalog; for DEV_CHECKS. */
void hf__catalog_check(const struct engine *e);

/* ---- changing it: the schema is write-locked ------------------------------------------------ */

/* A new version of a table from its record; `counts` is taken over (NULL: new ones). */
enum hf_status hf__table_new(struct hf_scope *s, struct engine *e,
                             const struct table_record *record, struct table_counts *counts,
                             struct table **table);
void hf__table_free(struct engine *e, struct table *table, bool with_counts);

/* Store the record; and replace, add or remove the version in memory (schema write-locked). */
void hf__catalog_put_record(struct hf_scope *s, struct store_batch *batch,
                            const struct table_record *record);
void hf__catalog_replace(struct engine *e, struct table *from, struct table *to);
enum hf_status hf__catalog_reserve(struct hf_scope *s, struct engine *e);
void hf__catalog_add(struct engine *e, struct table *table);
void hf__catalog_remove(struct engine *e, struct table *table);

void hf__catalog_delete_record(struct hf_scope *s, struct store_batch *batch, struct hf_str name);

/* HF_CORRUPT when the id that is next, or a higher one, is already in use. */
enum hf_status hf__catalog_check_ids(struct hf_scope *s, const struct engine *e, uint32_t next_id);

/* A new id for a table, index or stream, recorded in the batch. */
uint32_t hf__catalog_new_id(struct hf_scope *s, struct engine *e, struct store_batch *batch);

/* Apply a batch of an operation on tables. */
enum hf_status hf__catalog_commit(struct hf_scope *s, struct engine *e,
                                  const struct store_batch *batch);

/* Apply the batch and the new record, and replace the table by a version that is made from it. */
enum hf_status hf__catalog_update(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                  struct table *table, const struct table_record *record);

/* Fields of struct table_record, for storing it. */
extern const struct fields hf__table_record_fields;

/* ---- arn.c ---------------------------------------------------------------------------------- */

struct hf_str hf__table_arn(struct hf_scope *s, struct engine *e, struct hf_str name);

/* The parts of a table's ARN; false when it is not one. */
struct table_arn {
    struct hf_str region;
    struct hf_str account;
    struct hf_str name;
};
bool hf__arn_is(struct hf_str text);
bool hf__arn_split(struct hf_str arn, struct table_arn *out);
/* The same of what belongs to a table; *tail is what follows `part`, such as "/export/". */
bool hf__arn_split_part(struct hf_str arn, struct hf_str part, struct table_arn *out,
                        struct hf_str *tail);
bool hf__arn_split_backup(struct hf_str arn, struct table_arn *out, struct hf_str *tail);
enum hf_status hf__arn_check_account(struct hf_scope *s, const struct engine *e,
                                     struct hf_str account, struct hf_str arn);

#endif
