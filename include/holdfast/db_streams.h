/*
 * Requests and results of DynamoDB Streams: the changes of a table's items, in shards. The functions
 * are in db_ops.h; db.h includes both, and says what holds for all requests. streams.h has consumers
 * that read all shards of a stream.
 */
#ifndef HOLDFAST_DB_STREAMS_H
#define HOLDFAST_DB_STREAMS_H

#include <holdfast/base.h>
#include <holdfast/db_tables.h>
#include <holdfast/item.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- enums: 0 is "not given" ----------------------------------------------------------------- */

enum hf_stream_status {
    HF_STREAM_ENABLING = 1,
    HF_STREAM_ENABLED,
    HF_STREAM_DISABLING,
    HF_STREAM_DISABLED
};
enum hf_iterator_type {
    HF_ITERATOR_TRIM_HORIZON = 1,
    HF_ITERATOR_LATEST,
    HF_ITERATOR_AT_SEQUENCE_NUMBER,
    HF_ITERATOR_AFTER_SEQUENCE_NUMBER
};
enum hf_change_kind { HF_CHANGE_INSERT = 1, HF_CHANGE_MODIFY, HF_CHANGE_REMOVE };
enum hf_shard_filter_type { HF_SHARD_FILTER_CHILD_SHARDS = 1 };

/* ---- streams -------------------------------------------------------------------------------- */

struct hf_list_streams {
    struct hf_str table; /* absent: of all tables */
    int64_t limit;
    struct hf_str start_arn;
    uint64_t reserved[4];
};

struct hf_stream_name {
    struct hf_str arn;
    struct hf_str table;
    struct hf_str label;
    uint64_t reserved[4];
};

struct hf_list_streams_result {
    const struct hf_stream_name *streams;
    size_t streams_len;
    struct hf_str last_arn;
    uint64_t reserved[4];
};

struct hf_shard_filter {
    enum hf_shard_filter_type type;
    struct hf_str shard;
    uint64_t reserved[4];
};

struct hf_describe_stream {
    struct hf_str arn;
    int64_t limit;
    struct hf_str start_shard;
    const struct hf_shard_filter *filter;
    uint64_t reserved[4];
};

struct hf_sequence_range {
    struct hf_str first;
    struct hf_str last; /* only of a closed shard */
};

struct hf_shard {
    struct hf_str id;
    const struct hf_sequence_range *range;
    struct hf_str parent;
    uint64_t reserved[4];
};

struct hf_stream_description {
    struct hf_str arn;
    struct hf_str label;
    enum hf_stream_status status;
    enum hf_stream_view view;
    int64_t created_us;
    struct hf_str table;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_shard *shards;
    size_t shards_len;
    struct hf_str last_shard;
    uint64_t reserved[4];
};

struct hf_describe_stream_result {
    const struct hf_stream_description *stream;
    uint64_t reserved[4];
};

struct hf_get_shard_iterator {
    struct hf_str arn;
    struct hf_str shard;
    enum hf_iterator_type type;
    struct hf_str sequence;
    uint64_t reserved[4];
};

struct hf_get_shard_iterator_result {
    struct hf_str iterator;
    uint64_t reserved[4];
};

struct hf_get_records {
    struct hf_str iterator;
    int64_t limit;
    uint64_t reserved[4];
};

struct hf_stream_change {
    int64_t created_us;
    struct hf_item keys;
    struct hf_item new_image;
    struct hf_item old_image;
    struct hf_str sequence;
    int64_t size_bytes;
    enum hf_stream_view view;
    uint64_t reserved[4];
};

struct hf_stream_identity {
    struct hf_str principal;
    struct hf_str type;
};

struct hf_record {
    struct hf_str id;
    enum hf_change_kind event;
    struct hf_str version;
    struct hf_str source;
    struct hf_str region;
    const struct hf_stream_change *change;
    const struct hf_stream_identity *identity; /* of the service, for what TTL removed */
    uint64_t reserved[4];
};

struct hf_get_records_result {
    const struct hf_record *records;
    size_t records_len;
    struct hf_str next; /* absent when a closed shard is read to its end */
    uint64_t reserved[4];
};

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
