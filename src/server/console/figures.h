/*
 * server/console/figures.h: figures of the server over time, an hour of them, and news for those who watch.
 *
 * A thread looks at the counters (metrics.h) every POINT_MS and keeps what happened since, in
 * memory of a fixed size. While somebody watches (watcher.h) it makes news every NEWS_MS, and of
 * requests (tail.h) every TAIL_MS.
 *
 *  (1) While nobody watches, it wakes up every POINT_MS and no request costs more than without it.
 *  (2) Loops never wait for anything but its lock, which it holds for no call of the database or the
 *      system.
 */
#ifndef HF_SERVER_FIGURES_H
#define HF_SERVER_FIGURES_H

#include "base/base.h"
#include "base/buf.h"

enum {
    POINT_MS = 5000,
    POINTS = 720, /* an hour */
    NEWS_MS = 1000,
    TAIL_MS = 250,
    HEALTH_MS = 5000,
    HEARTBEAT_MS = 15000
};

struct answer;
struct figures;
struct server;

/* NULL: no memory. */
struct figures *hf__figures_new(struct server *server);
/* Its thread. HF_LIMIT, HF_NOMEM. */
enum hf_status hf__figures_start(struct hf_scope *s, struct figures *figures);
void hf__figures_stop(
    struct figures *figures); /* NULL, and one that was not started, are accepted */
void hf__figures_free(struct figures *figures);

/* ---- watching ------------------------------------------------------------------------------- */

/* One more watches, or one less; with its requests or without. False: there are too many. */
bool hf__figures_watch(struct figures *figures, bool requests);
void hf__figures_unwatch(struct figures *figures, bool requests);

/* What somebody has seen of the news. */
struct news_seen {
    uint64_t number;  /* of the last news that it got, or missed */
    uint64_t dropped; /* requests that it missed since it got some */
    bool missed;      /* it missed something else since then */
};

/* Append what is new; with `missed` only take note of what was missed. */
void hf__figures_news(struct figures *figures, struct news_seen *seen, bool requests, bool missed,
                      struct hf__buf *out);

/* What somebody who begins to watch is to know, and where the news begins for it. */
void hf__figures_begin(struct figures *figures, struct news_seen *seen, struct hf__buf *out);

/* GET /console/api/history */
void hf__figures_history(struct answer *answer, struct hf_bytes body);

/* ---- health.c ------------------------------------------------------------------------------- */

/* What health is judged by: of now, and of the last minutes. */
struct health_facts {
    bool in_memory;
    bool remote;
    bool read_only;
    bool open_to_all;
    bool stopped;  /* a sync failed */
    bool no_space; /* writes are refused */
    uint64_t disk_free;
    uint64_t disk_total; /* 0: not known */
    uint64_t disk_used;
    uint64_t commits; /* in the last minute */
    double commit_p99_us;
    uint64_t connections;
    uint64_t connections_limit;
    uint64_t turned_away; /* in the last minutes, as all that follow */
    uint64_t input, input_limit;
    uint64_t output, output_limit;
    uint64_t busy;
    uint64_t evicted;
    uint64_t lengthy;
    uint64_t refused; /* signatures */
    uint64_t resident;
    uint64_t memory_limit;
    int64_t clock_jump_ms; /* 0: it did not */
    bool backups_known;
    int64_t tables;
    int64_t backup_age_s; /* of the newest; -1: there is none */
};

/* A JSON array of {"level", "what", "advice"}, the worst first. */
void hf__health_write(struct hf__buf *out, const struct health_facts *facts);

#endif
