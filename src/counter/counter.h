/*
 * counter/counter.h: what the files of the counters share. counter.c has the essay.
 */
#ifndef HF_COUNTER_COUNTER_H
#define HF_COUNTER_COUNTER_H

#include <holdfast/counter.h>

#include <pthread.h>

#include "coord/pattern.h"

enum {
    WRITERS_DEFAULT = 16,
    REQUESTS_DEFAULT = 32,
    BLOCK_DEFAULT = 100,
    DROPS_MAX = 40,      /* marks that one write drops */
    ROUNDS_MAX = 100,    /* contacts with one counter, while others drop marks */
    MARK_LEN = 16,       /* of a writer's mark: 64 random bits, in hexadecimal */
    MARKS_MAX = 4096,    /* of our marks, how many a table remembers */
    MARK_BUCKETS = 1024, /* a power of two */
    HINTS = 256          /* a power of two */
};

/* ---- counter_mark.c: our marks, while we do not use them ------------------------------------ */

/* Our place in one counter's item. Whoever has it is the only one to write under it. */
struct mark {
    struct mark *next;          /* in its bucket */
    struct mark *newer, *older; /* by last use */
    uint64_t hash;
    size_t size;  /* of all of it, with the text */
    int64_t last; /* the revision of our last add; 0: the item does not know it */
    char id[MARK_LEN + 1];
    size_t text_len;
    char text[]; /* which item */
};

struct mark_hint {
    uint64_t hash;
    int64_t gone;
};

struct marks {
    const struct hf_env *env;
    pthread_mutex_t mutex; /* guards all below */
    struct mark *buckets[MARK_BUCKETS];
    struct mark *newest, *oldest;
    size_t len;
    struct mark_hint hints[HINTS]; /* when marks were dropped last, as far as we know */
};

void hf__counter_marks_init(struct marks *marks, const struct hf_env *env);
void hf__counter_marks_free(struct marks *marks);

/* A mark for the item that nobody else uses, until it is given back; NULL: no memory. */
struct mark *hf__counter_mark_take(struct marks *marks, struct hf_str text);

/* Give it back: to be used again, or never. NULL is accepted. */
void hf__counter_mark_give(struct marks *marks, struct mark *mark, bool again);

/* When marks of that item were dropped last; 0: never, or we do not know. */
int64_t hf__counter_mark_hint(struct marks *marks, struct hf_str text);
void hf__counter_mark_set_hint(struct marks *marks, struct hf_str text, int64_t gone);

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_counters {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* the next four live here */
    struct hf_str table;
    struct hf_str space;
    struct hf_str hash, sort; /* names of the keys' attributes */
    bool partitioned;
    bool plain;
    uint32_t writers;
    uint32_t requests;
    uint32_t shards;
    struct marks marks;
};

/* ---- counter_item.c: the item, and the requests that change it ------------------------------ */

/* The item of a counter, or of one of its shards. */
struct counter_at {
    struct hf_counter_key name; /* for people */
    struct hf_item key;
    struct hf_str text; /* no other item of the table has it */
    struct hf_str table;
};

/* HF_INVALID when the key cannot be one of this table's. Shard 0 is the counter's own item. */
enum hf_status hf__counter_at(struct hf_scope *s, const struct hf_counters *c,
                              struct hf_counter_key key, uint32_t shard, struct counter_at *at);

/* Is that an attribute of a counter's item, beside its keys? */
bool hf__counter_has(struct hf_str name);

/* "counter 7 of ann", for messages. */
struct hf_str hf__counter_name(struct hf_scope *s, const struct counter_at *at);

/* What an item says. */
struct counter_seen {
    bool found;    /* it has a value */
    int64_t value; /* 0 when it has none */
    bool marked;   /* it has the mark that was asked for */
    int64_t last;  /* that mark's revision */
    int64_t out;   /* what came out of that mark's last change */
    int64_t rev;
    int64_t gone; /* 0: no marks were dropped */
    struct hf_str born;
    uint32_t shards;
};

/* Under which mark a change is made. */
struct counter_mark {
    struct hf_str id; /* absent: under none */
    bool request;     /* the caller has named it */
};

/* HF_CORRUPT when it cannot be a counter. An absent item is one that nobody added to. */
enum hf_status hf__counter_see(struct hf_scope *s, const struct counter_at *at, struct hf_item item,
                               struct counter_mark mark, struct counter_seen *seen);

/* Marks that are to go. */
struct counter_drops {
    struct hf_str names[DROPS_MAX]; /* of attributes; their values go, too */
    size_t len;
};

/* Which marks of the item are too many, the oldest ones. */
void hf__counter_drops(struct hf_scope *s, const struct hf_counters *c, struct hf_item item,
                       struct counter_drops *drops);

/* A change, whole. */
struct counter_change {
    bool set; /* to `by`, instead of adding it */
    int64_t by;
    int64_t low, high; /* the value that it may find; INT64_MIN, INT64_MAX: no such bound */
    struct counter_mark mark;
    bool known;   /* the item has our mark */
    int64_t last; /* if `known`: the revision that our mark has */
    bool guarded; /* only if no marks were dropped since revision `gone` */
    int64_t gone; /* if `guarded`: when marks were dropped last; 0: never */
    bool pinned;  /* only if no change under a mark, and no pinned one, came after revision `rev` */
    int64_t rev;  /* if `pinned`: the revision that was read */
    const struct counter_drops *drops; /* NULL: none */
};

struct hf_update_item hf__counter_change_request(struct hf_scope *s, const struct hf_counters *c,
                                                 const struct counter_at *at,
                                                 const struct counter_change *change);

/* The request that does nothing but drop marks, if nobody else has since `gone`. */
struct hf_update_item hf__counter_drop_request(struct hf_scope *s, const struct hf_counters *c,
                                               const struct counter_at *at, int64_t gone,
                                               const struct counter_drops *drops);

/* ---- counter.c ------------------------------------------------------------------------------ */

/*
 * Make the change, once: HF_OK, HF_LIMIT when the value is not in bounds, HF_EXPIRED, and others.
 * *out is what came out, the value that was in the way, or (set) what was there; *again whether it
 * had been made by an earlier call.
 */
enum hf_status hf__counter_change(struct hf_scope *s, struct hf_counters *c,
                                  const struct counter_at *at, struct counter_change change,
                                  int64_t *out, bool *again);

/* `by` and the caller's bounds as a change, without a mark. HF_INVALID when they cannot be. */
enum hf_status hf__counter_bounds(struct hf_scope *s, const struct counter_at *at, int64_t by,
                                  const struct hf_counter_options *options,
                                  struct counter_change *change);

/* "counter 7 is 3: adding 4 would exceed its bounds" */
enum hf_status hf__counter_limit(struct hf_scope *s, const struct counter_at *at, int64_t by,
                                 int64_t value);

/* ---- counter_shard.c ------------------------------------------------------------------------ */

/* The item to add to, after seeing to it that readers know of it. */
enum hf_status hf__counter_spread(struct hf_scope *s, struct hf_counters *c,
                                  struct hf_counter_key key, struct hf_str request,
                                  struct counter_at *at);

/* The sum over all items, of which there are at least so many. */
enum hf_status hf__counter_sum(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                               uint32_t shards, struct hf_counter_value *value);

#endif
