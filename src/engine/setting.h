/*
 * engine/setting.h: small named values of the database itself.
 */
#ifndef HF_ENGINE_SETTING_H
#define HF_ENGINE_SETTING_H

#include "engine/engine.h"

void hf__setting_put(struct hf_scope *s, struct store_batch *batch, const char *name,
                     struct hf_bytes value);
void hf__setting_delete(struct hf_scope *s, struct store_batch *batch, const char *name);
enum hf_status hf__setting_get(struct hf_scope *s, struct engine *e, const char *name,
                               struct hf_bytes *value);
/* The same as it was in a snapshot. */
enum hf_status hf__setting_read(struct hf_scope *s, struct engine *e,
                                const struct hf__store_snapshot *snapshot, const char *name,
                                struct hf_bytes *value);

#endif
