/*
 * copy/private.h: a copy inside. copy.c has the essay.
 */
#ifndef HF_COPY_PRIVATE_H
#define HF_COPY_PRIVATE_H

#include <holdfast/copy.h>

#include "base/assert_held.h"
#include "coord/pattern.h"

#define COPY_STATE_TABLE HF_STR("holdfast.copy")

enum {
    COPY_SEGMENTS = 4,
    COPY_POLL_MS = 500,
    COPY_EMPTY_PAGES = 3, /* in a row: a shard is read to its end */
    COPY_STREAM_KEEPS_MS = 23 * 60 * 60 * 1000,
    COPY_SAVE_MS = 1000 /* positions of shards are written at most so often */
};

/* ---- a segment of a table's items ----------------------------------------------------------- */

struct copy_segment {
    struct copy_table *table;
    uint32_t number;
    bool done;
    struct hf_item position; /* memory of the env's; absent: at the beginning */
    uint64_t items, bytes;
};

/* ---- a shard of a table's stream ------------------------------------------------------------ */

struct copy_shard {
    struct hf_str id, parent; /* memory of the env's, as are all texts here; absent: none */
    struct hf_str sequence;   /* of the last record that was applied; absent: from the beginning */
    struct hf_str iterator;   /* absent: none yet */
    bool done;                /* read to its end */
    bool listed;              /* it is there still */
    bool dirty;               /* the position is to be written */
    uint32_t empty;           /* pages in a row without records */
    bool current;             /* all records before hf__copy_stream_again() were applied */
    int64_t due_us;           /* when to read it again */
    int64_t saved_us;
    int64_t read_ms; /* when it was read last, by the wall */
};

/* An item of the target that is not as a record says; copy_apply.c. */
struct copy_suspect {
    struct copy_suspect *next;
    struct hf_item key;
    uint64_t hash;  /* of the key */
    uint64_t image; /* digest of the item of the target */
    bool stored;    /* in the state */
    bool reported;  /* as a conflict */
};

enum { COPY_SUSPECT_SLOTS = 4096 };

/* ---- a table -------------------------------------------------------------------------------- */

struct copy_table {
    struct hf_copy *copy;
    struct hf_str source, target; /* names; in the copy's scope, as all texts here */
    struct hf_str pk;             /* of its state */
    struct hf_str hash, range;    /* names of the key's attributes; range may be absent */
    struct hf_create_table spec;  /* of the target */
    struct hf_str ttl;
    struct hf_str source_id; /* of this very table, not of one that is made again */
    uint64_t items_total, bytes_total;
    enum hf_stream_view view; /* of the source's stream; 0: none */
    enum hf_copy_state state;
    bool make;            /* it is not in the target */
    bool begun;           /* the state has a job of this copy */
    bool claimed;         /* and it is ours */
    bool known;           /* the state has a job, maybe of another copy */
    bool restart;         /* it is to be begun again */
    bool clear;           /* what was copied is to be removed first */
    bool made_table;      /* by this copy, maybe in an earlier run */
    bool made_stream;     /* likewise */
    bool following;       /* positions of the stream were taken before items were read */
    bool positioned;      /* all of them */
    struct hf_str stream; /* the ARN that positions are of; memory of the env's */
    uint32_t segments_len;
    struct copy_segment *segments; /* the copy's mutex guards them while threads run */
    struct copy_shard *shards;
    size_t shards_len, shards_cap;
    int64_t look_us;  /* when to list shards again */
    bool gap;         /* changes were removed before they were read */
    int64_t again_us; /* hf__copy_stream_again(), by the wall */
    bool caught_up;   /* no changes are left, if nobody makes any */
    bool current;     /* all that were made before hf__copy_stream_again() were applied */
    struct copy_suspect **suspects; /* a hash table; NULL: none yet */
    size_t suspects_len;
    size_t unstored; /* of them */
    uint64_t conflicts;
};

struct hf_copy {
    struct hf_env env;
    struct hf_db *source, *target;
    struct hf_scope *memory; /* texts that live as long */
    struct hf_copy_options o;
    struct pattern_id run; /* the owner of what we claim */
    struct copy_table *tables;
    size_t tables_len;
    uint8_t seed[16]; /* of digests */
    pthread_mutex_t mutex;
    /* guarded by it: */
    struct hf_copy_progress progress;
    int64_t items_at_us; /* until when items, read and write units are spent */
    int64_t read_at_us;
    int64_t write_at_us;
    bool stop;
    enum hf_status failure;
    struct hf_scope *failed; /* has the error */
    bool state_ready;        /* the table of the state is there */
};

/* ---- copy.c --------------------------------------------------------------------------------- */

void hf__copy_note(struct copy_table *t, const char *format, ...) HF_PRINTF(2, 3);

/* Texts and items in memory of the env's, replaced by a copy of another. HF_NOMEM. */
enum hf_status hf__copy_text_set(struct hf_scope *s, struct hf_copy *c, struct hf_str *text,
                                 struct hf_str to);
enum hf_status hf__copy_item_set(struct hf_scope *s, struct hf_copy *c, struct hf_item *item,
                                 struct hf_item to);

/* What a scope has consumed since its last reset. */
void hf__copy_count(struct hf_copy *c, const struct hf_scope *from, const struct hf_scope *to);

/* The key of an item, in the scope. */
struct hf_item hf__copy_key(struct hf_scope *s, const struct copy_table *t, struct hf_item item);

/* ---- copy_schema.c -------------------------------------------------------------------------- */

/* All about the table of the source, and whether the target's is fit to be copied to. */
enum hf_status hf__copy_table_look(struct hf_scope *s, struct copy_table *t);
enum hf_status hf__copy_table_compare(struct hf_scope *s, struct copy_table *t);
enum hf_status hf__copy_table_make(struct hf_scope *s, struct copy_table *t);
/* Remove all items of the target. */
enum hf_status hf__copy_table_clear(struct hf_scope *s, struct copy_table *t);
enum hf_status hf__copy_ttl_enable(struct hf_scope *s, struct copy_table *t);
enum hf_status hf__copy_stream_enable(struct hf_scope *s, struct copy_table *t);

/* ---- copy_state.c --------------------------------------------------------------------------- */

/* What the state says of the table; nothing is written. */
enum hf_status hf__copy_state_look(struct hf_scope *s, struct copy_table *t);
/* Make it ours: what another process has of it is refused from now on. */
enum hf_status hf__copy_state_claim(struct hf_scope *s, struct copy_table *t);
enum hf_status hf__copy_state_save(struct hf_scope *s, struct copy_table *t,
                                   enum hf_copy_state state);
enum hf_status hf__copy_segment_save(struct hf_scope *s, const struct copy_segment *segment);
enum hf_status hf__copy_shard_save(struct hf_scope *s, struct copy_table *t,
                                   struct copy_shard *shard);
/* A shard that the state may not have yet. */
enum hf_status hf__copy_shard_take(struct hf_scope *s, struct copy_table *t, struct hf_str id,
                                   struct hf_str parent);
enum hf_status hf__copy_conflict_save(struct hf_scope *s, struct copy_table *t,
                                      struct copy_suspect *suspect, bool there);
/* From the beginning: positions and conflicts are forgotten. */
enum hf_status hf__copy_state_forget(struct hf_scope *s, struct copy_table *t);

void hf__copy_segments_free(struct copy_table *t);
enum hf_status hf__copy_segments_make(struct hf_scope *s, struct copy_table *t, uint32_t len);
enum hf_status hf__copy_shard_add(struct hf_scope *s, struct copy_table *t, struct hf_str id,
                                  struct hf_str parent, struct copy_shard **shard);
void hf__copy_shards_free(struct copy_table *t);

/* ---- copy_scan.c ---------------------------------------------------------------------------- */

/* Copy the items of the segments that are not done. */
enum hf_status hf__copy_scan(struct hf_scope *s, struct copy_table *t);

/* Spend so much, as the options allow it. Returns how long to wait. */
uint32_t hf__copy_spend(struct hf_copy *c, size_t items, double read_units, double write_units);

/* ---- copy_stream.c -------------------------------------------------------------------------- */

/* Positions of the stream, before the first item is read. */
enum hf_status hf__copy_stream_begin(struct hf_scope *s, struct copy_table *t);
/* Read the shards that are due, and apply. *due_us: when the next is. t->caught_up, t->current,
 * t->gap. */
enum hf_status hf__copy_stream_step(struct hf_scope *s, struct copy_table *t, int64_t *due_us);
/* Not caught up any more, nor current, until all shards were read to their end again. */
void hf__copy_stream_again(struct copy_table *t);
/* Write all positions. */
enum hf_status hf__copy_stream_save(struct hf_scope *s, struct copy_table *t);

/* ---- copy_apply.c --------------------------------------------------------------------------- */

enum hf_status hf__copy_apply(struct hf_scope *s, struct copy_table *t,
                              const struct hf_record *records, size_t len, double *units);
/* All changes were applied: what of the suspects is a conflict? */
enum hf_status hf__copy_suspects_settle(struct hf_scope *s, struct copy_table *t);
/* A position behind their records is to be written: keep them in the state. */
enum hf_status hf__copy_suspects_store(struct hf_scope *s, struct copy_table *t);
enum hf_status hf__copy_suspect_add(struct hf_scope *s, struct copy_table *t, struct hf_item key,
                                    struct hf_item theirs, bool stored);
void hf__copy_suspects_free(struct copy_table *t);

/* ---- copy_digest.c -------------------------------------------------------------------------- */

/* The same for equal items, whatever database they are from. */
uint64_t hf__copy_digest(struct hf_scope *s, const struct hf_copy *c, struct hf_item item);

/* ---- copy_verify.c -------------------------------------------------------------------------- */

enum hf_status hf__copy_verify(struct hf_scope *s, struct hf_copy *c,
                               hf_copy_difference_fn *difference, void *user,
                               struct hf_copy_result *result);

/* ---- copy_follow.c -------------------------------------------------------------------------- */

/* Apply all changes that were made before the call; with `all` until there are none. */
enum hf_status hf__copy_catch_up(struct hf_scope *s, struct hf_copy *c, bool all);

#endif
