/*
 * engine/table/schema.h: tables, indexes and their keys, and what fits them.
 *
 * A struct table is one version of a table's schema. Nobody changes it; operations on tables
 * replace it (catalog.h). Counts are the exception: they live on from version to version.
 */
#ifndef HF_ENGINE_TABLE_SCHEMA_H
#define HF_ENGINE_TABLE_SCHEMA_H

#include <stdatomic.h>

#include "expr/expr.h"
#include "model/value.h"
#include "ops/prepare.h"

struct hf_scope;
struct key_filter;

enum {
    KEY_ATTRS_MAX = 4, /* attributes of a hash or range key of a global index */
    INDEXES_MAX = 25   /* 5 local and 20 global */
};

struct key_attr {
    struct hf_str name;
    enum hf_type type; /* S, N or B */
};

/* The key of a table or an index. Tables and local indexes have one hash attribute, one or none
 * range attribute; the lists leave room for global indexes with more. */
struct key_schema {
    struct key_attr hash[KEY_ATTRS_MAX];
    struct key_attr range[KEY_ATTRS_MAX];
    size_t hash_len;
    size_t range_len;
};

/* Items and bytes; changed by writers without a lock, read by DescribeTable. */
struct counts {
    atomic_llong items;
    atomic_llong bytes;
};

struct index {
    uint32_t id;
    struct hf_str name;
    bool local;
    bool building; /* the backfill of older items is not finished */
    struct key_schema key;
    enum hf_projection_type projection;
    const struct hf_str *included; /* non-key attributes, with HF_PROJECT_INCLUDE */
    size_t included_len;
    struct counts *counts;
};

struct stream;

/* The record of a table, as the catalog stores it. */
struct table_record {
    const struct hf_table_description *description; /* without counts and what is derived */
    int64_t id;
    const struct index_record *indexes; /* ids and states, in the order local, then global */
    size_t indexes_len;
    struct hf_str ttl_attribute; /* absent: off */
    int64_t ttl_id;              /* the id in the keys of its expiry entries; 0: off */
    enum hf_flag ttl_building;   /* the backfill of older items is not finished */
    int64_t stream_id;           /* 0: none */
    const struct hf_tag *tags;
    size_t tags_len;
    struct hf_str resource_policy;
    int64_t policy_revision; /* the newest revision, even if that policy was deleted */
    int64_t restore_from;    /* the backup that it is being filled from; 0: none */
};

struct index_record {
    struct hf_str name;
    int64_t id;
    enum hf_flag building;
};

/* One version of a table's schema. It never changes; operations on tables replace it. */
struct table {
    struct hf_scope *memory; /* where all of it lives */
    struct table_record record;
    struct hf_str name;
    uint32_t id;
    struct key_schema key;
    struct index indexes[INDEXES_MAX];
    size_t indexes_len;
    struct hf_str ttl_attribute;
    uint32_t ttl_id;
    struct stream *stream; /* the enabled one, or NULL */
    struct table_counts *counts;
};

/* Whether the data of a table has moved, so that nobody may write it: write/fence.c. */
enum table_fence {
    FENCE_UNKNOWN, /* since the table or the fences changed nobody has asked */
    FENCE_NONE,
    FENCE_SET
};

/* Lives as long as the table, over all versions of its schema. */
struct table_counts {
    struct counts table;
    struct counts indexes[INDEXES_MAX]; /* by position in `ids` */
    uint32_t ids[INDEXES_MAX];
    atomic_ullong changes; /* of items, since the database was opened */
    atomic_bool stale; /* has to be counted from engine.opened; cleared with engine.counting held */
    atomic_uint fence; /* enum table_fence; set with the schema held, to FENCE_UNKNOWN if written */
    struct key_filter *keys; /* of a table that was empty, all keys that were put since; or NULL */
};

struct index *hf__table_index(struct table *table, struct hf_str name);

/* Asserts what always holds of one version of a table; for DEV_CHECKS. */
void hf__table_check(const struct table *table);

/* ---- schema.c: items and keys against schemas ----------------------------------------------- */

/* The key attributes of `item` fit the schema of the table, as a PutItem reports it. */
enum hf_status hf__schema_check_put(struct hf_scope *s, const struct table *table,
                                    struct hf_item item);

/* The same as BatchWriteItem reports it. */
enum hf_status hf__schema_check_batch_put(struct hf_scope *s, const struct table *table,
                                          struct hf_item item);

/* `key` has exactly the key attributes of the table, of the right types and sizes. */
enum hf_status hf__schema_check_key(struct hf_scope *s, const struct table *table,
                                    struct hf_item key);

/*
 * The index keys of an item that is about to be stored have the right types and sizes. A put has
 * neither `update` nor `before`; of an update, `before` is the item as it was, if there was one:
 * attributes that the update does not change are not checked again.
 */
enum hf_status hf__schema_check_indexes(struct hf_scope *s, const struct table *table,
                                        struct hf_item item, const struct prepared_write *update,
                                        struct hf_item before);

/* No path of the expression reaches into a key attribute. */
enum hf_status hf__schema_check_paths(struct hf_scope *s, const struct table *table,
                                      const struct expr_bound *bound);

/* A value of the right type is not empty and within the limit of a hash or range key. */
enum hf_status hf__schema_check_value(struct hf_scope *s, const struct key_attr *attr, bool hash,
                                      struct hf_value value);

/* The attributes of a key by number, the hash attributes first. */
const struct key_attr *hf__schema_attr(const struct key_schema *key, size_t at);

bool hf__schema_is_key(const struct key_schema *key, struct hf_str name);

/* The key of an item as an item of its own. */
struct hf_item hf__schema_key_item(struct hf_scope *s, const struct key_schema *key,
                                   struct hf_item item);

/* Append a name to a list of them for a message: "a, b". */
void hf__put_name(struct hf__buf *names, struct hf_str name);

/* ---- schema.c: stored keys ------------------------------------------------------------------ */

/* The stored key of a table's item; the item may be a whole one or only the key. */
void hf__row_key(struct hf__buf *buf, const struct table *table, struct hf_item item);

/* The hash and range parts of a key alone; the item has all of its attributes. */
void hf__stored_key_parts(struct hf__buf *buf, const struct key_schema *key, struct hf_item item);

/* Which latch the partition of that item has. */
size_t hf__row_latch(const struct table *table, struct hf_item item);
size_t hf__hash_latch(const struct table *table, struct hf_value hash);
size_t hf__stored_latch(struct hf_bytes key);

/* ---- index.c -------------------------------------------------------------------------------- */

/* The entry of an item in an index: its stored key, and the attributes that it projects. False
 * when the item has none. */
bool hf__index_key(struct hf__buf *buf, const struct table *table, const struct index *index,
                   struct hf_item item);
struct hf_item hf__index_project(struct hf_scope *s, const struct table *table,
                                 const struct index *index, struct hf_item item);

bool hf__index_has(const struct index *index, struct hf_item item);

/* Can the index give this attribute? */
bool hf__index_projects(const struct table *table, const struct index *index, struct hf_str name);

#endif
