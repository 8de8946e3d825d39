/*
 * server/console/figures_private.h: what the files of the figures share.
 */
#ifndef HF_SERVER_CONSOLE_FIGURES_PRIVATE_H
#define HF_SERVER_CONSOLE_FIGURES_PRIVATE_H

#include "server/console/figures.h"
#include "server/metrics.h"

/* Of now. */
struct gauges {
    uint64_t connections;
    uint64_t resident;
    uint64_t input;
    uint64_t output;
    uint64_t waiting;
    uint64_t running;
    uint64_t syncs; /* so far */
    uint64_t store;
    uint64_t disk;
    uint64_t disk_free;
    uint64_t disk_total; /* 0: not known */
    bool stopped;
    bool no_space;
};

/* Five seconds. */
struct point {
    int64_t time_ms;
    uint32_t count[HF_OP_COUNT];
    uint32_t errors[HF_OP_COUNT];
    float read_p50, read_p99, write_p50, write_p99, commit_p50, commit_p99;
    uint64_t commits, committed, syncs;
    struct metrics_events events;
    struct gauges gauges;
};

struct written {
    uint64_t hash; /* of the table's name; 0: free */
    uint64_t before;
    uint64_t now;
};

struct figures {
    struct server *server;
    struct hf_scope *scope; /* of the thread */
    pthread_t thread;
    pthread_cond_t changed;
    pthread_mutex_t lock; /* guards what follows, up to the thread's own */
    bool started;
    bool stops;
    unsigned watches;
    unsigned watches_max;
    unsigned tails;
    struct point *points; /* a ring */
    size_t points_len;
    size_t points_next;
    uint64_t number;       /* of the last news */
    struct hf__buf news;   /* for all */
    struct hf__buf tail;   /* for those who look at requests */
    uint64_t tail_len;     /* requests in it */
    uint64_t tail_dropped; /* requests that rings dropped before it */
    struct hf__buf health; /* the last, as an event */
    /* the thread's own */
    uint64_t *sum, *point_sum, *news_sum;
    uint64_t point_ns, news_ns, tail_ns, health_ns, beat_ns, backups_ns;
    uint64_t point_syncs, news_syncs;
    int64_t clock_us;  /* the wall clock and */
    uint64_t clock_ns; /* the monotonic one, at the last point */
    int64_t jump_ms;
    uint64_t jump_ns;
    struct written *written; /* a hash table that grows */
    size_t written_cap;
    size_t written_len;
    bool written_full; /* there was no memory */
    bool written_any;  /* some were reported in this news */
    struct health_facts facts;
    struct hf__buf text; /* that is being made */
    struct hf__buf more;
};

/* The nth point, the oldest first. */
static inline const struct point *hf__figures_point(const struct figures *f, size_t n)
{
    return &f->points[(f->points_next + POINTS - f->points_len + n) % POINTS];
}

#endif
