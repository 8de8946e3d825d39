/*
 * engine/item/counts.h: items and bytes of tables and indexes: stored at a clean close, counted
 * again after a crash.
 */
#ifndef HF_ENGINE_ITEM_COUNTS_H
#define HF_ENGINE_ITEM_COUNTS_H

#include "engine/engine.h"

enum hf_status hf__counts_load(struct hf_scope *s, struct engine *e);
/* Count the table of that name or ARN, unless it is counted already. The caller holds no lock. */
enum hf_status hf__counts_refresh(struct hf_scope *s, struct engine *e, struct hf_str name);
enum hf_status hf__counts_refresh_all(struct hf_scope *s, struct engine *e);
void hf__counts_save(struct hf_scope *s, struct engine *e);

#endif
