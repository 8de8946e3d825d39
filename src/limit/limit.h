/*
 * limit/limit.h: what the files of limits share. limit.c has the essay.
 */
#ifndef HF_LIMIT_LIMIT_H
#define HF_LIMIT_LIMIT_H

#include <holdfast/limit.h>

#include <pthread.h>

#include "coord/names.h"

enum {
    LIMIT_SLICES = 10,
    LIMIT_LOCKOUT_GROWS = 16,
    LIMIT_TTL_MARGIN_S = 3600, /* clocks may differ; the database removes nothing that counts */
    LIMIT_HINTS = 1024         /* a power of two */
};

/* A hundred years: how long a whole burst may take to come back. Times stay far inside of 64 bits
 * by that. */
#define LIMIT_REST_MAX_US (INT64_C(100) * 366 * 24 * 3600 * 1000000)

/* ---- limit_item.c: the item, and the requests that change it --------------------------------- */

/* An item as it was read. What is not there is 0. */
struct limit_view {
    bool there;
    struct hf_str last;   /* id of the latest write */
    int64_t version;      /* how many there were */
    struct hf_str window; /* id of the window */
    struct hf_item context;
    int64_t locked_ms;
    int64_t lockouts;
    bool has_window; /* HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED */
    int64_t start_ms;
    int64_t count;
    bool has_slices; /* HF_LIMIT_SLIDING */
    int64_t head;
    int64_t width_ms;
    int64_t sum;
    struct hf_item slices;
    struct hf_item refunds;
    bool has_tat; /* HF_LIMIT_RATE */
    int64_t tat_us;
};

/* HF_CORRUPT when it cannot be one of ours. */
enum hf_status hf__limit_view(struct hf_scope *s, struct hf_str table, struct hf_str name,
                              struct hf_item item, struct limit_view *view);

/* What is asked for, with defaults. */
struct limit_ask {
    const struct pattern_at *at;
    struct hf_str name;
    struct hf_str id;
    struct hf_limit_rule rule;
    uint32_t cost;
    struct hf_item context;
    int64_t now_us;
};

struct hf_item hf__limit_key(struct hf_scope *s, const struct pattern_at *at, struct hf_str name);

enum limit_step {
    LIMIT_NEW,    /* a window begins */
    LIMIT_WITHIN, /* one more in the window that is there */
    LIMIT_SLIDE,  /* the window slides on */
    LIMIT_LOCK,   /* not allowed, and a lockout begins */
    LIMIT_DENY
};

/* HF_LIMIT_RATE: how long it takes until a burst that was used up is there again; INT64_MAX: longer
 * than that. */
int64_t hf__limit_rest_us(const struct hf_limit_rule *rule);

/* What is to be done, by the item as it is. */
enum limit_step hf__limit_step(const struct limit_ask *ask, const struct limit_view *view);

/* The request for a step; `view` is what it was decided by. */
struct hf_update_item hf__limit_request(struct hf_scope *s, const struct limit_ask *ask,
                                        const struct limit_view *view, enum limit_step step);

/* The request that gives back what was counted at at_us. */
struct hf_update_item hf__limit_refund_request(struct hf_scope *s, const struct limit_ask *ask,
                                               const struct hf_limit_verdict *verdict);

/* Fill in the verdict from the item; `allowed` is decided already. */
void hf__limit_fill_verdict(const struct limit_ask *ask, const struct limit_view *view,
                            bool allowed, struct hf_limit_verdict *verdict);

/* Where the window is, for the hint: start_ms, head or tat_us. */
int64_t hf__limit_mark(const struct limit_view *view, enum hf_limit_kind kind);

/* ---- limit.c -------------------------------------------------------------------------------- */

/* Where a name was when we saw it last. It only saves a request: a wrong one is refused. */
struct limit_hint {
    uint64_t hash; /* of the name, and never 0 */
    int64_t mark;
    int64_t width_ms;
};

struct hf_limit_table {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* the next one lives here */
    struct pattern_at at;
    pthread_mutex_t mutex; /* guards the hints */
    struct limit_hint hints[LIMIT_HINTS];
};

#endif
