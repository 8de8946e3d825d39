/*
 * engine/stream/streams.h: streams of changes.
 *
 * A stream belongs to one enabling of one table's stream and outlives both for 24 hours. Its
 * records lie in shards by the hash of the item's partition key, so all changes of one item are in
 * one shard, in the order in which they happened.
 *
 * Sequence numbers are of the whole engine and never come twice. They are assigned before a batch
 * is applied, so a higher number can be in the store before a lower one; readers stop at the lowest
 * number that is assigned and not yet in the store, and so never miss a record.
 */
#ifndef HF_ENGINE_STREAM_STREAMS_H
#define HF_ENGINE_STREAM_STREAMS_H

#include "engine/engine.h"
#include "engine/item/change.h"

#define STREAM_LIFE_US (24 * 60 * 60 * INT64_C(1000000))
/* Limit of stored numbers, which is never reached in practice: so the next one never wraps to 0. */
#define SEQUENCE_MAX (UINT64_C(1) << 62)

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

/* A stream as it is stored. */
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
    int64_t closing_us; /* from hf__stream_disable() to hf__stream_finish_change() */
    int64_t closing_at;
    bool listed; /* it is in engine.streams */
};

/* A record in the store: the head, then the key, the new and the old image. */
struct record_head {
    uint8_t event;      /* enum hf_change_kind */
    uint8_t by_service; /* TTL's deletion */
    uint8_t view;       /* enum hf_stream_view */
    uint64_t created_us;
    uint32_t keys_len;
    uint32_t new_len;
    uint32_t old_len;
    uint32_t size; /* SizeBytes */
};
void hf__stream_record_head_put(uint8_t *to, const struct record_head *head);
bool hf__stream_record_head_get(struct hf_bytes stored, struct record_head *head);

void hf__stream_record_key(uint8_t key[RECORD_KEY], uint32_t stream, uint16_t shard,
                           uint64_t sequence);

/* Every record below this number that will ever be in the store is in it. */
uint64_t hf__sequence_visible(struct engine *e);

void hf__stream_put_record(struct hf_scope *s, struct store_batch *batch,
                           const struct stream_record *record);

/* Asserts what always holds of a stream; for DEV_CHECKS. */
void hf__stream_check(const struct stream *stream);

/* ---- which streams there are ---------------------------------------------------------------- */

enum hf_status hf__streams_load(struct hf_scope *s, struct engine *e);
void hf__streams_free(struct engine *e);
struct stream *hf__stream_by_id(struct engine *e, uint32_t id);

/* A new enabled stream for a table; its record goes into the batch. Schema write-locked. */
enum hf_status hf__stream_enable(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                 const struct hf_table_description *table, enum hf_stream_view view,
                                 struct stream **stream);
/* The stream takes no more records; it stays readable for 24 hours. */
enum hf_status hf__stream_disable(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                  struct stream *stream);
/* Apply in memory, or drop, what hf__stream_enable() or hf__stream_disable() prepared. */
void hf__stream_finish_change(struct engine *e, struct stream *stream, bool done);

uint32_t hf__stream_id(const struct stream *stream);
struct hf_str hf__stream_arn(const struct stream *stream);
struct hf_str hf__stream_label(const struct stream *stream);

enum hf_status hf__streams_trim(struct hf_scope *s, struct engine *e, uint64_t *trimmed);

/* ---- stream_records.c ----------------------------------------------------------------------- */

/* Add the record of a change; its sequence number is filled in by hf__change_apply(). */
void hf__stream_add(struct hf_scope *s, struct engine *e, struct change_set *set,
                    const struct change *change);
/* Assign numbers to the records of a set, in the order of the batch; and report that they are in
 * the store, or that the batch failed. */
enum hf_status hf__sequence_begin(struct hf_scope *s, struct engine *e, struct change_set *set);
void hf__sequence_end(struct engine *e, struct change_set *set, bool done);
enum hf_status hf__sequencer_load(struct hf_scope *s, struct engine *e);

#endif
