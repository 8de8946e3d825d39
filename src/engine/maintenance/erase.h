/*
 * engine/maintenance/erase.h: erasing the keys of a deleted table, index or stream.
 */
#ifndef HF_ENGINE_MAINTENANCE_ERASE_H
#define HF_ENGINE_MAINTENANCE_ERASE_H

#include "engine/engine.h"

/* Record that all keys of this space and id are to be erased. */
void hf__erase_later(struct store_batch *batch, uint8_t space, uint32_t id);
enum hf_status hf__erase_is_pending(struct hf_scope *s, struct engine *e,
                                    const struct hf__store_snapshot *snapshot, uint8_t space,
                                    uint32_t id, bool *pending);
enum hf_status hf__erase(struct hf_scope *s, struct engine *e, uint64_t *erased);

#endif
