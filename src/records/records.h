/*
 * records/records.h: what the files of the records and of their processor share. records.c and
 * processor.c have the essays.
 */
#ifndef HF_RECORDS_RECORDS_H
#define HF_RECORDS_RECORDS_H

#include <holdfast/records.h>

#include <pthread.h>

#include "coord/pattern.h"

/* ---- records_item.c: the item, and the requests that change it ------------------------------ */

enum record_request {
    RECORD_CLAIM,        /* begin an attempt, if nobody else is at it */
    RECORD_TAKE_OVER,    /* the same, from one who was seen to be silent */
    RECORD_BEAT,         /* renew the claim */
    RECORD_COMPLETE,     /* it is processed */
    RECORD_RETRY,        /* the attempt failed */
    RECORD_FAIL,         /* the attempt failed, and it is a failed record now */
    RECORD_RELEASE,      /* the attempt does not count */
    RECORD_EXHAUST,      /* it was begun too often: it becomes a failed record */
    RECORD_EXHAUST_OVER, /* the same, from one who was seen to be silent */
    RECORD_REJECT,       /* it cannot be read: it becomes a failed record */
    RECORD_MARK,         /* it is processed, without an attempt */
    RECORD_RESET,        /* it is unprocessed, as if it were new */
    RECORD_AGAIN,        /* reset it if it is a failed record */
    RECORD_ADOPT,        /* reset what another program put */
    RECORD_ADOPT_DONE,   /* the same for what is processed: it gets its place, and stays as it is */
    RECORD_REQUESTS
};

struct record_text {
    struct hf_str update;
    struct hf_str condition;
    struct hf_item names;
};

struct record_key {
    struct hf_str account;
    struct hf_str run_time;
};

#define NO_KEY ((struct record_key){.account = {NULL, 0}})

struct hf_records {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* all texts live here */
    struct hf_str table;
    struct hf_str index;
    struct hf_str account;
    struct hf_str run_time;
    struct hf_str processed;
    struct hf_str shard;
    uint32_t shards;
    bool index_processed;
    struct record_text texts[RECORD_REQUESTS];
};

/* The texts of all requests, in records->names. HF_NOMEM. */
enum hf_status hf__records_texts(struct hf_scope *s, struct hf_records *records);

/* The names that these texts use, in `s`. */
struct hf_item hf__records_names(struct hf_scope *s, const struct hf_records *records,
                                 const char *text, const char *more);

/* Which shard a record is in: the same forever. */
uint64_t hf__record_hash(struct record_key key);
uint32_t hf__records_shard(struct record_key key, uint32_t shards);

/* The index key of a shard of that state. */
struct hf_str hf__records_shard_text(struct hf_scope *s, enum hf_record_state state,
                                     uint32_t shard);

/* The index key of a record in that state. */
struct hf_str hf__records_place(struct hf_scope *s, const struct hf_records *records,
                                enum hf_record_state state, struct record_key key);

struct hf_item hf__records_key(struct hf_scope *s, const struct hf_records *records,
                               struct record_key key);

/* The time of day as 2026-02-17T12:00:00.000Z. */
struct hf_str hf__records_time(struct hf_scope *s, const struct hf_records *records);

/* A record as it was read; an absent item has no state. HF_CORRUPT when it cannot be one. */
enum hf_status hf__records_view(struct hf_scope *s, const struct hf_records *records,
                                struct hf_item item, struct hf_record_info *info);

/* The beat of its claim; 0 when nobody works on it. */
uint64_t hf__records_beat(struct hf_item item);
/* The lease of its claim. */
uint32_t hf__records_lease_ms(struct hf_item item);
/* Not to be begun before this time of day; 0: at any time. */
int64_t hf__records_after_ms(struct hf_item item);
/* The token of the claim that failed last. */
struct hf_str hf__records_failed_by(struct hf_item item);
/* The id of the last put or reset. */
struct hf_str hf__records_put_id(struct hf_item item);

/* What is known of a failure. */
struct hf_item hf__records_failure(struct hf_scope *s, const struct hf_records *records,
                                   struct hf_str token, enum hf_status status, struct hf_str text);

/* A request of that kind with these values; the values have to be what its texts name. */
struct hf_update_item hf__records_request(struct hf_scope *s, const struct hf_records *records,
                                          enum record_request kind, struct record_key key,
                                          struct hf_item values);

/* What a request has that lets a record wait again; `id` is the new put id. */
struct hf_item hf__records_again_values(struct hf_scope *s, struct hf_records *records,
                                        struct record_key key, struct hf_str id);

/* ---- records_adopt.c ------------------------------------------------------------------------ */

/* Adopt what other programs put among the next `limit` items of the table, from `start` on (absent:
 * its beginning). *last is where to go on; absent: it was the end. */
enum hf_status hf__records_adopt_page(struct hf_scope *s, struct hf_records *records,
                                      struct hf_item start, uint32_t limit, uint64_t *count,
                                      struct hf_item *last);

/* ---- records_list.c ------------------------------------------------------------------------- */

/* The keys in one shard of that state, from `start` on (absent: from its beginning). */
struct hf_query hf__records_shard_query(struct hf_scope *s, const struct hf_records *records,
                                        enum hf_record_state state, uint32_t shard,
                                        struct hf_item start);

/* The key that an index entry names. */
struct record_key hf__records_key_of(const struct hf_records *records, struct hf_item item);

#endif
