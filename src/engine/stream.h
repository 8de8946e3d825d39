/*
 * engine/stream.h: streams of changes, as stream*.c share them.
 *
 * A stream belongs to one enabling of one table's stream and outlives both for 24 hours. Its
 * records lie in shards by the hash of the item's partition key, so all changes of one item are in
 * one shard, in the order in which they happened.
 *
 * Sequence numbers are of the whole engine and never come twice. They are given out before a batch
 * is applied, so a higher number can be in the store before a lower one; readers stop at the lowest
 * that was given out and is not in yet, and so never pass a record by.
 */
#ifndef HF_ENGINE_STREAM_H
#define HF_ENGINE_STREAM_H

#include "engine/private.h"

#define STREAM_LIFE_US (24 * 60 * 60 * INT64_C(1000000))
#define ITERATOR_LIFE_US (15 * 60 * INT64_C(1000000))

enum {
    SHARDS_MAX = 64,
    SEQUENCE_TEXT = 21, /* digits of a sequence number: '1' and 20 more */
    RECORD_KEY = 1 + 4 + 2 + 8,
    RECORD_HEAD = 28
};

struct shard_record {
    struct hf_str id;
    struct hf_str parent;
    int64_t first;   /* sequence number from which on it takes records */
    int64_t last;    /* of a closed shard: no record has a higher one; 0 while it is open */
    int64_t trimmed; /* records below this number are gone */
};

/* As it is stored. */
struct stream_record {
    int64_t id;
    struct hf_str arn;
    struct hf_str label;
    struct hf_str table;
    int64_t view;
    int64_t created_us;
    int64_t disabled_us; /* 0: it is enabled */
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct shard_record *shards;
    size_t shards_len;
};

struct stream {
    struct hf_scope *memory;
    struct stream_record record; /* guarded by the schema lock */
    struct shard_record shards[SHARDS_MAX];
    int64_t closing_us; /* set by hf__stream_disable() until it is settled */
    int64_t closing_at;
    bool listed; /* it is in engine.streams */
};

/* A record in the store: the head, then the key, the new and the old image. */
struct record_head {
    uint8_t event;      /* enum hf_event_name */
    uint8_t by_service; /* TTL's deletion */
    uint8_t view;       /* enum hf_stream_view */
    uint64_t created_us;
    uint32_t keys_len;
    uint32_t new_len;
    uint32_t old_len;
    uint32_t size; /* SizeBytes */
};
void hf__record_head_put(uint8_t *to, const struct record_head *head);
bool hf__record_head_get(struct hf_bytes stored, struct record_head *head);

void hf__record_key(uint8_t key[RECORD_KEY], uint32_t stream, uint16_t shard, uint64_t sequence);

/* Every record below this number that will ever be in the store is in it. */
uint64_t hf__sequence_visible(struct engine *e);

void hf__stream_put_record(struct hf_scope *s, struct store_batch *batch,
                           const struct stream_record *record);

#endif
