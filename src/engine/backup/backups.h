/*
 * engine/backup/backups.h: backups of tables: which there are, copying a table, filling a new one.
 */
#ifndef HF_ENGINE_BACKUP_BACKUPS_H
#define HF_ENGINE_BACKUP_BACKUPS_H

#include "engine/engine.h"
#include "engine/table/schema.h"

/* A backup as it is stored. */
struct backup_record {
    int64_t id;
    int64_t copy_id;  /* the id in the keys of its items */
    int64_t table_id; /* of the source table */
    struct hf_str arn;
    struct hf_str name;
    int64_t created_us;    /* the moment whose state it holds */
    enum hf_flag creating; /* items are still being copied */
    int64_t items;
    int64_t bytes;
    const struct hf_table_description *table; /* the table as it was */
    struct hf_str ttl_attribute;
};

struct backup {
    struct hf_scope *memory;
    /* its counts change until it is AVAILABLE; guarded by schema */
    struct backup_record record;
    struct hf_str tail;                  /* what its ARN ends in; they are listed in this order */
    struct hf__store_snapshot *snapshot; /* the source of the copy; NULL: copied, or not begun */
    struct hf__buf from; /* for maintenance: the next key to copy; empty: the first */
    int64_t items;       /* for maintenance: number of items copied so far */
    int64_t bytes;
};

/* Load all backups; from the snapshot engine.opened, if there is one. */
enum hf_status hf__backups_load(struct hf_scope *s, struct engine *e);
void hf__backups_free(struct engine *e);

/* The schema lock must be held. */
struct backup *hf__backup_by_id(struct engine *e, int64_t id);
enum hf_status hf__backup_find(struct hf_scope *s, struct engine *e, struct hf_str arn,
                               struct backup **backup);
/* The table that is being filled from it, or NULL. */
struct table *hf__backup_target(struct engine *e, const struct backup *backup);
void hf__backup_put_record(struct hf_scope *s, struct store_batch *batch,
                           const struct backup_record *record);

/* ---- backup_copy.c -------------------------------------------------------------------------- */

/* Restart the backups that were being copied when the database was closed. */
enum hf_status hf__backups_resume(struct hf_scope *s, struct engine *e);
enum hf_status hf__backups_copy(struct hf_scope *s, struct engine *e, uint64_t *copied);
/* Does a backup still have to copy these keys of a deleted table? */
bool hf__backups_need(struct engine *e, uint8_t space, uint32_t id);

/* ---- restore.c ------------------------------------------------------------------------------ */

enum hf_status hf__restore(struct hf_scope *s, struct engine *e, uint64_t *restored);

#endif
