/*
 * streams/consumer_item.h: requests for the items of shards.
 */
#ifndef HF_STREAMS_CONSUMER_ITEM_H
#define HF_STREAMS_CONSUMER_ITEM_H

#include "streams/consumer.h"

struct holders;

/* The range key of a shard, and the key of the item that has it. */
struct hf_str hf__shard_item_sk(struct hf_scope *s, const struct hf_consumer *c,
                                struct hf_str shard);
struct hf_item hf__shard_item_key(struct hf_scope *s, const struct hf_consumer *c,
                                  struct hf_str sk);

/* An update; "#name" stands for `name`, and values are those that were added. */
struct hf_update_item hf__shard_item_update(struct holders *h, const struct hf_consumer *c,
                                            struct hf_str sk, struct hf_str update,
                                            const char *condition);

/* Send it; *view is the item after it, or with HF_CONDITION as it is instead. */
enum hf_status hf__shard_item_send(struct hf_scope *s, struct hf_consumer *c,
                                   const struct hf_update_item *update,
                                   struct shard_lease_view *view);

/* What an update sets to say where a shard is. The values are added. */
const char *hf__shard_item_place(struct holders *h, const struct shard *shard);

/* When an item that is written now expires. */
int64_t hf__shard_item_expires_s(const struct hf_consumer *c);

#endif
