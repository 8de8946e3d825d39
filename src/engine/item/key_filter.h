/*
 * engine/item/key_filter.h: which keys a table may have, for tables that were empty when it was made.
 *
 * A write reads the item that it replaces. In a table that is being filled there is none, and to find that out costs
 * more than all else that the write does: the tables on disk have a filter each, and all of them are asked. This one
 * remembers all keys of one table that were put since. What it does not find need not be looked for.
 */
#ifndef HF_ENGINE_ITEM_KEY_FILTER_H
#define HF_ENGINE_ITEM_KEY_FILTER_H

#include "base/base.h"

struct key_filter;

/* NULL: out of memory. It takes `bytes_max` at most, three bytes for each key, and nothing while it is empty. */
struct key_filter *hf__row_filter_new(const struct hf_env *env, size_t bytes_max);
void hf__row_filter_free(const struct hf_env *env, struct key_filter *filter);

/* Before the key is written, with the latch of its partition. */
void hf__row_filter_add(const struct hf_env *env, struct key_filter *filter, struct hf_bytes key);

/* May it have been added? With that latch. */
bool hf__row_filter_has(const struct key_filter *filter, struct hf_bytes key);

#endif
