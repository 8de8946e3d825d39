/*
 * engine/maintenance/ttl.h: items that expire.
 */
#ifndef HF_ENGINE_MAINTENANCE_TTL_H
#define HF_ENGINE_MAINTENANCE_TTL_H

#include "engine/item/change.h"

/* When the item expires, in seconds; false when it never does. */
bool hf__ttl_expiry(struct hf_str attribute, struct hf_item item, uint64_t *expiry);
void hf__ttl_key(struct hf__buf *buf, const struct table *table, uint64_t expiry,
                 struct hf_item item);
void hf__ttl_change(struct hf_scope *s, struct change_set *set, const struct change *change);
enum hf_status hf__ttl_sweep(struct hf_scope *s, struct engine *e, uint64_t *expired);

#endif
