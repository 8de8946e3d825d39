/*
 * server/metrics.h: figures of the server, for Prometheus.
 *
 * Every loop and worker counts for itself, in memory that only it writes; a reader adds them up. So
 * counting costs no more than an addition, and a sum may be a request or two behind.
 */
#ifndef HF_SERVER_METRICS_H
#define HF_SERVER_METRICS_H

#include <holdfast/db.h>

#include "base/buf.h"

struct server;
struct metrics; /* of one loop or worker */

struct metrics *hf__metrics_new(struct hf_scope *s, size_t len);
struct metrics *hf__metrics_thread(struct metrics *metrics, size_t number);

void hf__metrics_call(struct metrics *metrics, enum hf_op op, int status, uint64_t ns);
void hf__metrics_refused(struct metrics *metrics); /* for its signature */
void hf__metrics_bad(struct metrics *metrics);     /* it was not valid HTTP */
void hf__metrics_long(struct metrics *metrics);    /* it blocked a loop for too long */
void hf__metrics_commit(struct metrics *metrics, uint32_t answers, uint64_t ns);
void hf__metrics_accepted(struct metrics *metrics);
void hf__metrics_turned_away(struct metrics *metrics); /* there were too many connections */
void hf__metrics_busy(struct metrics *metrics);        /* there was no memory for an answer */
void hf__metrics_evicted(struct metrics *metrics);   /* others needed the memory of a slow reader */
void hf__metrics_displaced(struct metrics *metrics); /* an idle connection, for a new one */
void hf__metrics_timed_out(struct metrics *metrics);
void hf__metrics_bytes(struct metrics *metrics, size_t in, size_t out);

/* ---- sums, and what happened between two of them -------------------------------------------- */

enum { METRICS_READS = -2, METRICS_WRITES = -1 }; /* beside each enum hf_op: all that read, write */

/* All counters of all threads, added up. */
size_t hf__metrics_words(void); /* length of a sum */
void hf__metrics_sum(const struct server *server, uint64_t *sum);

struct metrics_times {
    uint64_t count;
    uint64_t errors;
    double p50_us; /* by the histogram: exact to a fifth or so; 0 without any */
    double p99_us;
};

/* The operations `of`, an enum hf_op or one of the two above. */
struct metrics_times hf__metrics_between(const uint64_t *before, const uint64_t *now, int of);
/* Waits for a sync; `errors` are the answers that waited. */
struct metrics_times hf__metrics_commits(const uint64_t *before, const uint64_t *now);

struct metrics_events {
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t turned_away;
    uint64_t busy;
    uint64_t evicted;
    uint64_t lengthy;
    uint64_t refused;
};
struct metrics_events hf__metrics_events(const uint64_t *before, const uint64_t *now);

/* Pages in memory, as the kernel counts them. */
uint64_t hf__metrics_resident(void);

/* All of them, and the engine's, in Prometheus' text format. */
void hf__metrics_write(struct hf__buf *buf, struct server *server);

#endif
