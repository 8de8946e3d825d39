/*
 * engine/read/read.h: reading items by key.
 */
#ifndef HF_ENGINE_READ_READ_H
#define HF_ENGINE_READ_READ_H

#include "engine/item/change.h"

/* The whole of GetItem. */
enum hf_status hf__get_one(struct hf_scope *s, struct engine *e, struct hf_item key,
                           const struct prepared_read *read, struct hf_get_item_result *result);

/* The item of a key that was checked against the schema; and what the projection leaves of it. */
enum hf_status hf__read_key(struct hf_scope *s, struct engine *e, const struct table *table,
                            const struct hf__store_snapshot *snapshot, struct hf_item key,
                            struct row *row);
enum hf_status hf__read_project(struct hf_scope *s, const struct prepared_read *read,
                                struct hf_item *item);

/* ---- transact_get.c ------------------------------------------------------------------------- */

/* A transaction of reads. */
enum hf_status hf__transact_get(struct hf_scope *s, struct engine *e,
                                const struct prepared_get *gets, size_t len,
                                enum hf_return_capacity return_capacity,
                                struct hf_transact_get_items_result *result);

#endif
