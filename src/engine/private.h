/*
 * engine/private.h: the engine's own types.
 *
 * Keys in the store, by their first byte:
 *
 *     0x00 name                                    settings of the database itself
 *     0x01 table name                              a table: JSON of struct table_record
 *     0x02 u32be stream id                         a stream: JSON of struct stream_record
 *     0x03 space, u32be id                         everything under that prefix is to be erased
 *     0x04 u32be backup id                         a backup: JSON of struct backup_record
 *     0x10 u32be table id, hash part, range part   an item: u32le size, then the flat item
 *     0x11 u32be index id, index key parts, table key parts        an index entry: likewise
 *     0x12 u32be copy id, hash part, range part    an item in a backup: as the item was
 *     0x20 u32be stream id, u16be shard, u64be sequence            a stream record
 *     0x30 u32be ttl id, u64be expiry, table key parts             an expiry entry: empty
 *     0x40 token                                   a transaction's token: u64be time, digest;
 *                                                  those of ExecuteTransaction behind 0xFF
 *     0x41 u64be time, token                       the same by age: empty
 *
 * (key parts: model/key.h). Ids are never reused.
 *
 * Locks, in the order in which they are taken:
 *
 *     upkeep_turn     by upkeep, and by a restore, which takes the next two as well
 *     counting        by who counts a table after a crash
 *     engine.schema   read by every operation on items until its write is applied; written by
 *                     operations on tables. So the schema cannot change under a write.
 *     latches         one of LATCH_COUNT per partition; a writer holds those of all partitions that
 *                     it reads and writes, taken in ascending order. Readers take none.
 *     sequencer.lock  briefly, to give out sequence numbers
 *
 * What always holds:
 *
 *  (1) An item, its index entries, its stream record, its expiry entry and its transaction's token
 *      are written by one batch.
 *  (2) A call returns HF_OK only after what it wrote, or what it read with consistent reads, is as
 *      durable as the sync mode says.
 *  (3) No lock is held while waiting for the disk.
 */
#ifndef HF_ENGINE_PRIVATE_H
#define HF_ENGINE_PRIVATE_H

#include <holdfast/engine.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/buf.h"
#include "db/db.h"
#include "expr/cache.h"
#include "expr/expr.h"
#include "model/key.h"
#include "model/value.h"
#include "ops/fields.h"
#include "ops/prepare.h"
#include "store/store.h"

enum {
    SPACE_SETTING = 0x00,
    SPACE_TABLE = 0x01,
    SPACE_STREAM = 0x02,
    SPACE_ERASE = 0x03,
    SPACE_BACKUP = 0x04,
    SPACE_ITEM = 0x10,
    SPACE_INDEX = 0x11,
    SPACE_COPY = 0x12,
    SPACE_RECORD = 0x20,
    SPACE_EXPIRY = 0x30,
    SPACE_TOKEN = 0x40,
    SPACE_TOKEN_AGE = 0x41
};

enum {
    KEY_ATTRS_MAX = 4,           /* attributes of a hash or range key of a global index */
    INDEXES_MAX = 25,            /* 5 local and 20 global */
    LATCH_COUNT = 1024,          /* power of two */
    ROW_HEAD = 4,                /* u32le size in front of a stored item */
    TRANSACTION_FACTOR = 2,      /* transactions cost twice as much on the table */
    PREFIX_LEN = 5,              /* space and id in front of item and index keys */
    PAGE_BYTES_MAX = 1024 * 1024 /* that Query or Scan looks at in one page */
};

/* What a database and a snapshot that is restored into it may hold together, unless told. */
#define SNAPSHOT_MAX (UINT64_C(256) * 1024 * 1024)

/* ---- schema --------------------------------------------------------------------------------- */

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
    bool building; /* entries of items that were there before it are still being added */
    struct key_schema key;
    enum hf_projection_type projection;
    const struct hf_str *included; /* non-key attributes, with HF_PROJECT_INCLUDE */
    size_t included_len;
    struct counts *counts;
};

struct stream;

/* What the catalog keeps of a table, as it is stored. */
struct table_record {
    const struct hf_table_description *description; /* without counts and what is derived */
    int64_t id;
    const struct index_record *indexes; /* ids and states, in the order local, then global */
    size_t indexes_len;
    struct hf_str ttl_attribute; /* absent: off */
    int64_t ttl_id;              /* under which its expiry entries lie; 0: off */
    enum hf_flag ttl_building;   /* items from before are still being looked at */
    int64_t stream_id;           /* 0: none */
    const struct hf_tag *tags;
    size_t tags_len;
    struct hf_str resource_policy;
    int64_t policy_revision; /* the last that was given out, also of a policy that is gone */
    int64_t restore_from;    /* the backup whose items it is being filled with; 0: it is whole */
};

struct index_record {
    struct hf_str name;
    int64_t id;
    enum hf_flag building;
};

/* One version of a table's schema. Nobody changes it; operations on tables replace it. */
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

/* Lives as long as the table, over all versions of its schema. */
struct table_counts {
    struct counts table;
    struct counts indexes[INDEXES_MAX]; /* by position in `ids` */
    uint32_t ids[INDEXES_MAX];
    atomic_bool stale; /* to be counted from engine.opened; cleared with engine.counting held */
};

struct catalog {
    struct table **tables; /* in the order of names */
    size_t len;
    size_t cap;
};

/* What a transaction's request comes to, kept with its token. */
struct token_digest {
    uint8_t bytes[16];
};

/* ---- streams -------------------------------------------------------------------------------- */

struct sequencer {
    pthread_mutex_t lock;
    uint64_t next;
    uint64_t reserved; /* numbers below this are recorded as used up */
    struct sequence_use *first;
    struct sequence_use *last;
};

/* Numbers that were given out and whose records are not in the store yet. */
struct sequence_use {
    uint64_t from;
    uint64_t count;
    bool reserves; /* its batch records the end of a new block */
    struct sequence_use *before;
    struct sequence_use *after;
};

struct streams {
    struct stream **list; /* in the order of their ids */
    size_t len;
    size_t cap;
};

/* ---- backups -------------------------------------------------------------------------------- */

/* As it is stored. */
struct backup_record {
    int64_t id;
    int64_t copy_id;  /* under which its items lie */
    int64_t table_id; /* of the table that it is of */
    struct hf_str arn;
    struct hf_str name;
    int64_t created_us;    /* the moment whose state it holds */
    enum hf_flag creating; /* items are still being copied */
    int64_t items;
    int64_t bytes;
    const struct hf_table_description *table; /* as it was */
    struct hf_str ttl_attribute;
};

struct backup {
    struct hf_scope *memory;
    struct backup_record record;         /* numbers change until it is made; guarded by schema */
    struct hf_str tail;                  /* what its ARN ends in; they are listed in this order */
    struct hf__store_snapshot *snapshot; /* what is copied; NULL: that is done, or to be begun */
    struct hf__buf from;                 /* upkeep's: the key to go on from; empty: the first */
    int64_t items;                       /* upkeep's: copied so far */
    int64_t bytes;
};

struct backups {
    struct backup **list; /* by tail */
    size_t len;
    size_t cap;
};

/* ---- the engine ----------------------------------------------------------------------------- */

struct latch {
    pthread_mutex_t lock;
    atomic_uint_fast64_t ticket; /* of the newest write under it; see latch.c */
};

struct upkeep {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool stop;
    bool poked; /* guarded by lock */
};

enum { ENGINE_OPENER_LEN = 16 };

struct engine {
    struct hf_db db;
    struct hf_env env;
    struct hf__store *store;
    enum hf__wording wording;
    struct hf_str region;
    struct hf_str account;
    uint32_t stream_shards;
    uint32_t max_tables;
    uint8_t secret[16];             /* of this database: signs stream iterators */
    char opener[ENGINE_OPENER_LEN]; /* of this opening: hf_db_opener() */
    struct hf_scope *memory;        /* region, account */
    pthread_rwlock_t schema;        /* to write: hf__schema_lock() */
    struct catalog catalog;         /* guarded by schema */
    struct streams streams;         /* guarded by schema */
    struct backups backups;         /* guarded by schema */
    uint32_t next_id; /* of tables, indexes, streams, backups; guarded by schema (write) */
    struct sequencer sequencer;
    struct latch latches[LATCH_COUNT];
    struct hf__expr_cache *cache;
    struct upkeep upkeep;
    pthread_mutex_t upkeep_turn; /* one round of upkeep at a time */
    pthread_mutex_t counting;
    struct hf__store_snapshot
        *opened;           /* after a crash, until all is counted; guarded by counting */
    uint64_t snapshot_max; /* bytes that a restore may replace and put, together */
    atomic_bool lost;      /* a restore left it open which tables these are; see snapshot.c */
    bool no_sync;
    bool read_only; /* nothing is written: calls that would end in HF_DENIED */
    pthread_mutex_t blobs_lock;
    struct hf_blobs
        *blobs; /* of a database in memory, once somebody asked; guarded by blobs_lock */
};

/* The engine behind a database; NULL when it is another kind of database. */
struct engine *hf__engine_of(struct hf_db *db);

/* HF_STOPPED when it is lost. */
enum hf_status hf__engine_fit(struct hf_scope *s, struct engine *e);

/* HF_DENIED when it was opened read-only, which `what` is not for. */
enum hf_status hf__engine_writable(struct hf_scope *s, const struct engine *e, struct hf_str what);

/*
 * Open the database that lies in `store`, which is closed with it, also when this fails. Whoever
 * has a store of another kind than hf_open() makes, as tests do, starts here.
 */
enum hf_status hf__engine_open_on(struct hf_scope *s, struct hf__store *store,
                                  const struct hf_engine_options *options, struct hf_db **db);

/* ---- engine.c: operations ------------------------------------------------------------------- */

#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    enum hf_status hf__engine_##struct_(struct hf_scope *s, struct engine *e,                      \
                                        const struct hf_##struct_ *request,                        \
                                        struct hf_##struct_##_result *result);
#include "ops/ops.def"
#undef OP

/* ---- catalog.c ------------------------------------------------------------------------------ */

/* Load all tables; from the snapshot engine.opened, where there is one. Likewise streams. */
enum hf_status hf__catalog_load(struct hf_scope *s, struct engine *e);
void hf__catalog_free(struct engine *e);

/* The table of that name, or NULL. The schema lock must be held. */
struct table *hf__catalog_find(struct engine *e, struct hf_str name);

/* As above by name or ARN, failing as operations on items do, and as operations on tables do. A
 * table that is still being restored is not found. */
enum hf_status hf__catalog_item_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                      struct table **table);
enum hf_status hf__catalog_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                 struct table **table);

/* As above, failing as operations on backups do. */
enum hf_status hf__catalog_backup_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                        struct table **table);

/* Also one that is still being restored, which can be described, and neither used nor deleted. */
enum hf_status hf__catalog_any_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                     struct table **table);

/* A new version of a table from its record; `counts` is taken over (NULL: new ones). */
enum hf_status hf__table_new(struct hf_scope *s, struct engine *e,
                             const struct table_record *record, struct table_counts *counts,
                             struct table **table);
void hf__table_free(struct engine *e, struct table *table, bool with_counts);

/* Store the record; and replace, add or remove the version in memory (schema write-locked). */
void hf__catalog_put_record(struct hf_scope *s, struct store_batch *batch,
                            const struct table_record *record);
void hf__catalog_replace(struct engine *e, struct table *from, struct table *to);
enum hf_status hf__catalog_reserve(struct hf_scope *s, struct engine *e);
void hf__catalog_add(struct engine *e, struct table *table);
void hf__catalog_remove(struct engine *e, struct table *table);

void hf__catalog_delete_record(struct hf_scope *s, struct store_batch *batch, struct hf_str name);

/* A new id for a table, index or stream, recorded in the batch. */
uint32_t hf__catalog_new_id(struct hf_scope *s, struct engine *e, struct store_batch *batch);

/* Apply a batch of an operation on tables. */
enum hf_status hf__catalog_commit(struct hf_scope *s, struct engine *e,
                                  const struct store_batch *batch);

/* Apply the batch and the new record, and replace the table by a version that is made from it. */
enum hf_status hf__catalog_update(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                  struct table *table, const struct table_record *record);

/* Fields of struct table_record, for storing it. */
extern const struct fields hf__table_record_fields;

struct index *hf__table_index(struct table *table, struct hf_str name);
struct hf_str hf__table_arn(struct hf_scope *s, struct engine *e, struct hf_str name);

/* arn.c: the parts of a table's ARN; false when it is not one. */
struct table_arn {
    struct hf_str region;
    struct hf_str account;
    struct hf_str name;
};
bool hf__is_arn(struct hf_str text);
bool hf__arn_split(struct hf_str arn, struct table_arn *out);
/* The same of a backup's ARN; *tail is what follows "/backup/". */
bool hf__arn_split_backup(struct hf_str arn, struct table_arn *out, struct hf_str *tail);
enum hf_status hf__arn_check_account(struct hf_scope *s, const struct engine *e,
                                     struct hf_str account, struct hf_str arn);

/* What DescribeTable answers, in the scope; after hf__counts_refresh(), if counts may be due. */
enum hf_status hf__table_describe(struct hf_scope *s, struct engine *e, struct table *table,
                                  const struct hf_table_description **out);

/* ---- throughput.c: all of it in the scope; NULL when there is no memory ---------------------- */

/* Units of a table or index that is new; NULL gives none. */
const struct hf_throughput_description *
hf__describe_throughput(struct hf_scope *s, const struct hf_throughput *throughput);

/* The units that were there become others, within one billing mode and between two. */
const struct hf_throughput_description *
hf__throughput_change(struct hf_scope *s, const struct hf_throughput_description *old,
                      const struct hf_throughput *wanted, int64_t now_us);
const struct hf_throughput_description *
hf__throughput_switch(struct hf_scope *s, const struct hf_throughput_description *old,
                      const struct hf_throughput *wanted);

/* What is stored as it is described today. */
const struct hf_throughput_description *
hf__throughput_today(struct hf_scope *s, const struct hf_throughput_description *stored,
                     int64_t now_us);

/* Limits after a request; each of the two may be NULL, and *out is when there is no limit. */
enum hf_status hf__on_demand_merge(struct hf_scope *s, const struct hf_on_demand_throughput *old,
                                   const struct hf_on_demand_throughput *wanted,
                                   const struct hf_on_demand_throughput **out);

/* What the warm throughput of a table or index follows from. */
struct throughput_of {
    const struct hf_warm_throughput_description *stored; /* NULL: none yet */
    const struct hf_throughput_description *units;
    enum hf_billing billing;
};
const struct hf_warm_throughput_description *hf__warm_describe(struct hf_scope *s,
                                                               struct throughput_of of);

/* What is stored after a request, which may be NULL. `index` is absent for the table's own. */
enum hf_status hf__warm_raise(struct hf_scope *s, struct throughput_of of,
                              const struct hf_warm_throughput *wanted, struct hf_str index,
                              const struct hf_warm_throughput_description **out);

/* ---- continuous.c --------------------------------------------------------------------------- */

/* Fail because the table has no recovery to a point in time, or is not there. */
enum hf_status hf__no_point_in_time(struct hf_scope *s, struct engine *e, struct hf_str name);

/* ---- tables.c ------------------------------------------------------------------------------- */

enum hf_status hf__describe_new_index(struct hf_scope *s, struct engine *e, struct hf_str table,
                                      const struct hf_index *index, bool local,
                                      enum hf_billing billing, struct hf_index_description *out);

/* A new table, ACTIVE at once, or CREATING until it is filled from `backup`. Schema write-locked.
 */
enum hf_status hf__table_create(struct hf_scope *s, struct engine *e,
                                const struct hf_create_table *request, const struct backup *backup,
                                const struct hf_table_description **out);

/* ---- backups.c ------------------------------------------------------------------------------ */

/* As for tables: all from the snapshot engine.opened, where there is one. */
enum hf_status hf__backups_load(struct hf_scope *s, struct engine *e);
void hf__backups_free(struct engine *e);

/* The schema lock must be held. */
struct backup *hf__backup_by_id(struct engine *e, int64_t id);
enum hf_status hf__backup_find(struct hf_scope *s, struct engine *e, struct hf_str arn,
                               struct backup **backup);
/* The table that is being filled from it, or NULL. */
struct table *hf__backup_target(struct engine *e, const struct backup *backup);
void hf__backup_put_record(struct hf_scope *s, struct store_batch *batch,
                           const struct backup_record *record);

/* ---- backup_copy.c -------------------------------------------------------------------------- */

/* Begin anew what was being copied when the database was closed. */
enum hf_status hf__backups_resume(struct hf_scope *s, struct engine *e);
enum hf_status hf__backups_copy(struct hf_scope *s, struct engine *e, uint64_t *copied);
/* Are these keys, of a table that is gone, still to be copied? */
bool hf__backups_need(struct engine *e, uint8_t space, uint32_t id);

/* ---- restore.c ------------------------------------------------------------------------------ */

enum hf_status hf__restore(struct hf_scope *s, struct engine *e, uint64_t *restored);

/* ---- policies.c ----------------------------------------------------------------------------- */

enum hf_status hf__policy_check(struct hf_scope *s, struct hf_str policy);
int64_t hf__policy_revision(struct engine *e, int64_t last); /* the next one */

/* ---- schema.c: keys against schemas --------------------------------------------------------- */

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
 * what the update left alone is not judged again.
 */
enum hf_status hf__schema_check_indexes(struct hf_scope *s, const struct table *table,
                                        struct hf_item item, const struct prepared_write *update,
                                        struct hf_item before);

/* No path of the expression reaches into a key attribute. */
enum hf_status hf__schema_check_paths(struct hf_scope *s, const struct table *table,
                                      const struct expr_bound *bound);

/* The key of an item as an item of its own. */
struct hf_item hf__schema_key_item(struct hf_scope *s, const struct key_schema *key,
                                   struct hf_item item);

/* The stored key of a table's item; the item may be a whole one or only the key. */
void hf__row_key(struct hf__buf *buf, const struct table *table, struct hf_item item);

/* The hash and range parts of a key alone; the item has all of its attributes. */
void hf__key_parts(struct hf__buf *buf, const struct key_schema *key, struct hf_item item);

/* Append a name to a list of them for a message: "a, b". */
void hf__put_name(struct hf__buf *names, struct hf_str name);

/* A value of the right type is not empty and within the limit of a hash or range key. */
enum hf_status hf__schema_check_value(struct hf_scope *s, const struct key_attr *attr, bool hash,
                                      struct hf_value value);

/* The attributes of a key by number, the hash attributes first. */
const struct key_attr *hf__schema_attr(const struct key_schema *key, size_t at);

bool hf__schema_is_key(const struct key_schema *key, struct hf_str name);

/* Which latch the partition of that item has. */
size_t hf__row_latch(const struct table *table, struct hf_item item);
size_t hf__hash_latch(const struct table *table, struct hf_value hash);
size_t hf__stored_latch(struct hf_bytes key);

/* Space and id: what all keys of a table's items (or an index's entries) begin with. */
void hf__key_prefix(struct hf__buf *buf, uint8_t space, uint32_t id);

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

/* ---- rows.c: reading and changing items ----------------------------------------------------- */

/* An item as it is stored, with the size that DynamoDB counts for it. */
struct row {
    struct hf_item item; /* absent: there is none */
    size_t size;
};

/* The row under that stored key. */
enum hf_status hf__row_read(struct hf_scope *s, struct engine *e,
                            const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                            struct row *row);

/* A stored row or index entry, its outline checked; the item points into `stored`. */
enum hf_status hf__row_decode(struct hf_scope *s, struct hf_bytes stored, struct row *row);
void hf__row_encode(struct hf__buf *buf, const struct row *row);

/* What a change does to one index: units to charge, and how its counts move. */
struct index_effect {
    double units;
    int items;
    int64_t bytes;
};

/*
 * One item's change: `before` becomes `after` (either may be absent). hf__change_add() puts into
 * the batch all that it means: the row, index entries, stream record, expiry entry.
 */
struct change {
    struct table *table;
    struct hf_bytes key; /* the stored key */
    struct row before;
    struct row after;
    bool by_service;              /* TTL's deletion */
    bool same;                    /* set: nothing changes, nothing is written */
    double units;                 /* set: of the table */
    struct index_effect *indexes; /* set: one per index of the table; NULL when `same` */
};

struct change_set {
    struct store_batch batch;
    struct change **changes;
    size_t len;
    size_t cap;
    struct hf__buf records;  /* uint8_t *: where in a key of the batch a sequence number goes */
    struct sequence_use use; /* the numbers, between begin and end */
};
enum hf_status hf__change_set(struct hf_scope *s, size_t cap, struct change_set *set);
/* Fill in the stored key of the item; and, with its latch held, the item as it is. */
enum hf_status hf__change_key(struct hf_scope *s, struct change *change, struct hf_item item);
enum hf_status hf__change_read(struct hf_scope *s, struct engine *e, struct change *change);
enum hf_status hf__change_add(struct hf_scope *s, struct engine *e, struct change_set *set,
                              struct change *change);

/* Apply the set (latches held): sequence numbers, batch, counts. *ticket is 0 when there was
 * nothing to write. Then the caller unlatches and calls hf__engine_settle(). */
enum hf_status hf__change_apply(struct hf_scope *s, struct engine *e, struct change_set *set,
                                uint64_t *ticket);

/* Wait until the ticket is durable; a failure says that it may have happened. */
enum hf_status hf__engine_settle(struct hf_scope *s, struct engine *e, uint64_t ticket);

/* Wait until a ticket of others, whose effect this call has seen, is durable. */
enum hf_status hf__engine_settle_seen(struct hf_scope *s, struct engine *e, uint64_t ticket);

/* Wait until what a consistent read under that latch may have seen is durable. */
/* Lock the schema to change it, without keeping readers out for long. */
void hf__schema_lock(struct engine *e);

enum hf_status hf__engine_settle_read(struct hf_scope *s, struct engine *e, size_t latch);

/* ---- latch.c -------------------------------------------------------------------------------- */

/* A set of latches, held in ascending order. */
struct latch_set {
    uint16_t *numbers;
    size_t len;
};

enum hf_status hf__latch_set(struct hf_scope *s, size_t cap, struct latch_set *set);
void hf__latch_want(struct latch_set *set, size_t number);
void hf__latch_all(struct engine *e, struct latch_set *set);
/* The same for who may have no time to wait: see hf__scope_set_patience(). */
enum hf_status hf__latch_all_patient(struct hf_scope *s, struct engine *e, struct latch_set *set);
enum hf_status hf__latch_patient(struct hf_scope *s, struct engine *e, size_t number);
void hf__unlatch_all(struct engine *e, struct latch_set *set, uint64_t ticket);
void hf__latch(struct engine *e, size_t number);

/* `ticket` is that of the write that was made under the latch; 0 when there was none. */
void hf__unlatch(struct engine *e, size_t number, uint64_t ticket);

/* What has to be durable before a read of that partition may be shown. */
uint64_t hf__latch_ticket(struct engine *e, size_t number);

/* The newest ticket, for who holds the latch. */
uint64_t hf__latch_own_ticket(struct engine *e, size_t number);

/* ---- capacity.c ----------------------------------------------------------------------------- */

double hf__read_units(size_t bytes, bool consistent);
double hf__write_units(size_t before, size_t after);

/* Units of one table while an operation adds them up. */
struct usage {
    const struct table *table;
    struct hf_str named; /* as the request named it: its name or its ARN */
    double table_units;
    double index_units[INDEXES_MAX];
    bool index_used[INDEXES_MAX];
    bool transaction; /* tells reads from writes in the answer */
    bool write;
};
/* A transaction's usage of that table, in a list that has room for it; new when it is not there. */
struct usage *hf__usage_of(struct usage *usages, size_t *len, const struct table *table,
                           struct hf_str named);
void hf__usage_add_change(struct usage *usage, const struct change *change, double table_factor);

/* ConsumedCapacity; NULL when it was not asked for. */
const struct hf_capacity *hf__usage_capacity(struct hf_scope *s, const struct usage *usage,
                                             enum hf_return_capacity asked);

/* Add what a further part of one operation cost, on the same table. */
enum hf_status hf__capacity_add(struct hf_scope *s, struct hf_capacity *sum,
                                const struct hf_capacity *more);

/* ItemCollectionMetrics; NULL when not asked for, or the table has no local index. */
const struct hf_collection_metrics *hf__metrics_of(struct hf_scope *s, const struct table *table,
                                                   enum hf_return_metrics asked,
                                                   struct hf_item item);

/* ---- read.c --------------------------------------------------------------------------------- */

/* The whole of GetItem. */
enum hf_status hf__get_one(struct hf_scope *s, struct engine *e, struct hf_item key,
                           const struct prepared_read *read, struct hf_get_item_result *result);

/* The item of a key that was checked against the schema; and what the projection leaves of it. */
enum hf_status hf__read_key(struct hf_scope *s, struct engine *e, const struct table *table,
                            const struct hf__store_snapshot *snapshot, struct hf_item key,
                            struct row *row);
enum hf_status hf__read_project(struct hf_scope *s, const struct prepared_read *read,
                                struct hf_item *item);

/* ---- write.c: what put, update and delete share --------------------------------------------- */

/* Evaluate one prepared write against change->before; fills change->after. */
enum hf_status hf__write_evaluate(struct hf_scope *s, enum write_kind kind,
                                  const struct prepared_write *write, struct change *change);
/* The whole of PutItem, UpdateItem and DeleteItem. */
struct write_answer {
    struct hf_item attributes;
    const struct hf_capacity *capacity;
    const struct hf_collection_metrics *metrics;
};
enum hf_status hf__write_one(struct hf_scope *s, struct engine *e, enum write_kind kind,
                             const struct prepared_write *write, struct write_answer *answer);
/* What can be judged of a write once its table is known. */
enum hf_status hf__write_check_schema(struct hf_scope *s, const struct table *table,
                                      enum write_kind kind, const struct prepared_write *write);

/* ---- transact_write.c, transact_get.c ------------------------------------------------------- */

/* A transaction of writes, whatever request it came in. */
struct transact_request {
    const struct prepared_action *actions;
    size_t len;
    struct hf_str token; /* absent: none */
    struct token_digest digest;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    bool statements; /* a put is an INSERT */
};
enum hf_status hf__transact_write(struct hf_scope *s, struct engine *e,
                                  const struct transact_request *request,
                                  struct hf_transact_write_items_result *result);

/* A transaction of reads. */
enum hf_status hf__transact_get(struct hf_scope *s, struct engine *e,
                                const struct prepared_get *gets, size_t len,
                                enum hf_return_capacity return_capacity,
                                struct hf_transact_get_items_result *result);

/* ---- page.c: what Query and Scan share ------------------------------------------------------ */

struct page_answer {
    const struct hf_item *items;
    size_t items_len;
    int64_t count;
    int64_t scanned;
    size_t bytes; /* looked at */
    struct hf_item last;
    const struct hf_capacity *capacity;
};
/* One page of a prepared query or scan. */
enum hf_status hf__query_page(struct hf_scope *s, struct engine *e,
                              const struct prepared_page *page, struct page_answer *answer);
enum hf_status hf__scan_page(struct hf_scope *s, struct engine *e, const struct prepared_page *page,
                             struct page_answer *answer);
/* The index, and what Select says to the request alone. */
enum hf_status hf__page_check(struct hf_scope *s, struct table *table,
                              const struct prepared_page *page, struct index **index);
/* Projection, filter and Select against the schema; comes behind the keys and the start key. */
enum hf_status hf__page_check_expressions(struct hf_scope *s, const struct table *table,
                                          const struct index *index,
                                          const struct prepared_page *page);
/* Read one page of the keys in [lower, upper). */
enum hf_status hf__page_read(struct hf_scope *s, struct engine *e, struct table *table,
                             struct index *index, const struct prepared_page *page,
                             struct hf_bytes lower, struct hf_bytes upper,
                             struct page_answer *answer);
/* Fail because what was read has nothing behind this key: a partition of one item. */
enum hf_status hf__page_fail_restart(struct hf_scope *s, struct hf_item start);

/* The stored key that a start key stands for; checks its attributes and their types. */
enum hf_status hf__page_start_key(struct hf_scope *s, const struct table *table,
                                  const struct index *index, struct hf_item start,
                                  struct hf__buf *buf);

/* ---- stream.c ------------------------------------------------------------------------------- */

struct stream_record; /* as it is stored */

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
/* Make what hf__stream_enable() or hf__stream_disable() prepared true in memory, or forget it. */
void hf__stream_settle(struct engine *e, struct stream *stream, bool done);

uint32_t hf__stream_id(const struct stream *stream);
struct hf_str hf__stream_arn(const struct stream *stream);
struct hf_str hf__stream_label(const struct stream *stream);

/* Add the record of a change; its sequence number is filled in by hf__change_apply(). */
void hf__stream_add(struct hf_scope *s, struct engine *e, struct change_set *set,
                    const struct change *change);
/* Give numbers to the records of a set, in the order of the batch; and say that they are in, or
 * that the batch failed. */
enum hf_status hf__sequence_begin(struct hf_scope *s, struct engine *e, struct change_set *set);
void hf__sequence_end(struct engine *e, struct change_set *set, bool done);
enum hf_status hf__sequencer_load(struct hf_scope *s, struct engine *e);

enum hf_status hf__streams_trim(struct hf_scope *s, struct engine *e, uint64_t *trimmed);

/* ---- erase.c -------------------------------------------------------------------------------- */

/* Note that all keys of this space and id are to be erased. */
void hf__erase_later(struct store_batch *batch, uint8_t space, uint32_t id);
enum hf_status hf__erase_is_noted(struct hf_scope *s, struct engine *e,
                                  const struct hf__store_snapshot *snapshot, uint8_t space,
                                  uint32_t id, bool *noted);
enum hf_status hf__erase(struct hf_scope *s, struct engine *e, uint64_t *erased);

/* ---- ttl.c, token.c, backfill.c, upkeep.c --------------------------------------------------- */

/* When the item expires, in seconds; false when it never does. */
bool hf__ttl_expiry(struct hf_str attribute, struct hf_item item, uint64_t *expiry);
void hf__ttl_key(struct hf__buf *buf, const struct table *table, uint64_t expiry,
                 struct hf_item item);
void hf__ttl_change(struct hf_scope *s, struct change_set *set, const struct change *change);
enum hf_status hf__ttl_sweep(struct hf_scope *s, struct engine *e, uint64_t *expired);

size_t hf__token_latch(struct hf_str token);
enum hf_status hf__token_digest(struct hf_scope *s, const struct hf_transact_write_items *request,
                                struct token_digest *digest);
/* The same of ExecuteTransaction; and its token, in a space of its own. */
enum hf_status hf__token_digest_statements(struct hf_scope *s,
                                           const struct hf_execute_transaction *request,
                                           struct token_digest *digest);
struct hf_str hf__token_of_statements(struct hf_scope *s, struct hf_str token);
/* *seen: the token was used for this very request less than ten minutes ago; *sizes is what was
 * kept with it. A stored token is u64be time, digest, then a u32be size for each action. */
enum { TOKEN_HEAD = 8 + sizeof(struct token_digest), TOKEN_SIZE = 4 };
enum hf_status hf__token_look(struct hf_scope *s, struct engine *e, struct hf_str token,
                              const struct token_digest *digest, bool *seen,
                              struct hf_bytes *sizes);
void hf__token_add(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                   struct hf_str token, const struct token_digest *digest, struct hf_bytes sizes);
enum hf_status hf__tokens_drop(struct hf_scope *s, struct engine *e, uint64_t *dropped);

enum hf_status hf__backfill(struct hf_scope *s, struct engine *e, uint64_t *looked_at);

enum hf_status hf__upkeep_start(struct hf_scope *s, struct engine *e);
void hf__upkeep_stop(struct engine *e);
void hf__upkeep_poke(struct engine *e); /* there is work: do not wait for the next second */

/* ---- setting.c: small values of the database itself ----------------------------------------- */

void hf__setting_put(struct hf_scope *s, struct store_batch *batch, const char *name,
                     struct hf_bytes value);
void hf__setting_delete(struct hf_scope *s, struct store_batch *batch, const char *name);
enum hf_status hf__setting_get(struct hf_scope *s, struct engine *e, const char *name,
                               struct hf_bytes *value);
/* The same as it was in a snapshot. */
enum hf_status hf__setting_read(struct hf_scope *s, struct engine *e,
                                const struct hf__store_snapshot *snapshot, const char *name,
                                struct hf_bytes *value);

/* ---- counts.c: stored at a clean close, counted again after a crash ------------------------- */

enum hf_status hf__counts_load(struct hf_scope *s, struct engine *e);
/* Count the table of that name or ARN if that is still due. No lock is held. */
enum hf_status hf__counts_refresh(struct hf_scope *s, struct engine *e, struct hf_str name);
enum hf_status hf__counts_refresh_all(struct hf_scope *s, struct engine *e);
void hf__counts_save(struct hf_scope *s, struct engine *e);

#endif
