/*
 * engine/transfer/transfers.h: exports and imports: which there are, and running them. transfers.c
 * has the essay.
 */
#ifndef HF_ENGINE_TRANSFER_TRANSFERS_H
#define HF_ENGINE_TRANSFER_TRANSFERS_H

#include "engine/engine.h"
#include "ops/fields.h"

struct table;
struct table_record;
struct store_batch;
struct hf__store_snapshot;

enum transfer_kind { TRANSFER_EXPORT = 1, TRANSFER_IMPORT };

/* Numbers are stored. */
enum transfer_state { TRANSFER_RUNNING = 1, TRANSFER_DONE, TRANSFER_FAILED };

/* As it is stored. What the request says never changes; the rest is progress. */
struct transfer_record {
    int64_t kind;
    int64_t state;
    struct hf_str arn;
    struct hf_str table_arn;
    struct hf_str table_id;
    int64_t table_number; /* the id of the table in keys */
    struct hf_str client_token;
    int64_t started_us;
    int64_t ended_us; /* 0: it runs */
    const struct hf_export_table_to_point_in_time *export_request;
    const struct hf_import_table *import_request;

    int64_t items;     /* exported, or put */
    int64_t processed; /* records read */
    int64_t errors;
    int64_t bytes;        /* exported, or read; of ended objects, while it runs */
    struct hf_str object; /* of an import: the key of the object it is in; absent: none yet */
    int64_t records;      /* of that object that are done */
    struct hf_str failure_code;
    struct hf_str failure_message;
};

struct transfer {
    struct hf_scope *memory;
    struct transfer_record record; /* its progress: guarded by transfers.lock */
    struct hf_str tail;            /* what its ARN ends in; they are listed in this order */
    struct hf__store_snapshot
        *snapshot;     /* of an export that runs; NULL: it has begun before an open */
    bool claimed;      /* a thread runs it; guarded by transfers.lock */
    uint64_t restores; /* of engine.restores, when it began; see transfers.c (4) */
};

/* ---- transfers.c ---------------------------------------------------------------------------- */

void hf__transfers_init(struct engine *e);
void hf__transfers_destroy(struct engine *e);

/* Load all; those that ran when the database was closed run on, or have failed. */
enum hf_status hf__transfers_load(struct hf_scope *s, struct engine *e);
void hf__transfers_start(struct engine *e);
void hf__transfers_stop(struct engine *e); /* what runs goes on at the next open */
void hf__transfers_free(struct engine *e);

/* Run what waits to be run, on this thread: for databases without threads. */
void hf__transfers_run(struct hf_scope *s, struct engine *e);

/* Is an import filling this table? Any thread that holds the schema lock. */
bool hf__transfers_fill(struct engine *e, const struct table *table);

/* HF_INVALID when the database has no buckets; HF_LIMIT when too many of that kind are running. */
enum hf_status hf__transfers_allowed(struct hf_scope *s, struct engine *e, enum transfer_kind kind);

/* The transfer with that token, still within its time; NULL when there is none. */
struct transfer *hf__transfers_by_token(struct engine *e, enum transfer_kind kind,
                                        struct hf_str token);

/*
 * A new one of `record`, whose ARN is made. With the schema lock held for writing: make, put the record
 * into the batch that is committed, and then add or free.
 */
enum hf_status hf__transfers_new(struct hf_scope *s, struct engine *e,
                                 struct transfer_record *record, struct transfer **transfer);
void hf__transfers_put_record(struct hf_scope *s, struct store_batch *batch,
                              const struct transfer *transfer,
                              const struct transfer_record *record);
enum hf_status hf__transfers_reserve(struct hf_scope *s, struct engine *e);
void hf__transfers_add(struct engine *e, struct transfer *transfer);
void hf__transfers_free_one(struct engine *e, struct transfer *transfer);

/* The record as it is stored, in the scope: what a run goes on from. */
enum hf_status hf__transfers_stored(struct hf_scope *s, struct engine *e,
                                    const struct transfer *transfer,
                                    struct transfer_record *record);

/* The progress of one, as others see it. */
struct transfer_record hf__transfers_progress(struct engine *e, const struct transfer *transfer);
void hf__transfers_set_progress(struct engine *e, struct transfer *transfer,
                                const struct transfer_record *record);

/* It has ended: durably, and then for all to see. */
enum hf_status hf__transfers_end(struct hf_scope *s, struct engine *e, struct transfer *transfer,
                                 struct transfer_record record);

/* Is the database being closed? */
bool hf__transfers_stopping(struct engine *e);

/* The one of that ARN. Errors are those of Describe. The schema lock is held. */
enum hf_status hf__transfers_find(struct hf_scope *s, struct engine *e, enum transfer_kind kind,
                                  struct hf_str arn, struct transfer **transfer);

/* A page of a list: those of a kind, of a table if that is given, newest first. */
struct transfer_page {
    const struct transfer **list;
    size_t len;
    struct hf_str next_token;
};
enum hf_status hf__transfers_list(struct hf_scope *s, struct engine *e, enum transfer_kind kind,
                                  struct hf_str table_arn, int64_t limit, struct hf_str token,
                                  struct transfer_page *page);

/* A response in the scope of its own, which points at nothing that changes. */
enum hf_status hf__transfers_copy(struct hf_scope *s, enum hf_op op, const void *from, void *to);

/* ---- import.c: the record of an import, in the batch that makes its table ------------------- */

enum hf_status hf__transfers_record_import(struct hf_scope *s, struct engine *e,
                                           struct store_batch *batch,
                                           const struct table_record *table,
                                           const struct hf_import_table *request,
                                           struct transfer **made);

/* ---- export.c, import.c --------------------------------------------------------------------- */

/* Do it, up to its end, or until it is stopped. A failure is one of the database, not of the transfer. */
enum hf_status hf__transfers_run_export(struct hf_scope *s, struct engine *e,
                                        struct transfer *transfer);
enum hf_status hf__transfers_run_import(struct hf_scope *s, struct engine *e,
                                        struct transfer *transfer);

#endif
