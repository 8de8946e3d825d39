/*
 * cli/top/top.h: what the files of `holdfast top` share: a sample of a server's figures, the rates
 * between two of them, and the screen.
 *
 *     top_read.c      GET /metrics and /_holdfast/top -> struct top_sample
 *     top_view.c      two samples -> struct top_view: rates and percentiles
 *     top_print.c     a view for people, for pipes, or as JSON
 *     top_screen.c    the terminal: its modes, its size, its keys
 */
#ifndef HF_CLI_TOP_TOP_H
#define HF_CLI_TOP_TOP_H

#include "cli/frame/commands.h"

#include <termios.h>

enum {
    TOP_OPS_MAX = 96,
    TOP_TABLES_MAX = 64,
    TOP_PARTITIONS_MAX = 20,
    TOP_LARGEST_MAX = 8,
    TOP_OUTBOXES_MAX = 8,
    TOP_BUCKETS = 22, /* of the server's histograms: they double, from 8 us on */
    TOP_BUCKET_FIRST_US = 8,
    TOP_HISTORY = 60 /* samples in the sparkline */
};

/* ---- samples -------------------------------------------------------------------------------- */

struct top_times {
    uint64_t buckets[TOP_BUCKETS]; /* cumulative, as Prometheus has them; the last is all */
};

struct top_op {
    struct hf_str name;
    uint64_t ok, client_errors, server_errors;
    struct top_times times;
};

struct top_table {
    struct hf_str name;
    uint64_t reads, writes, errors;
};

struct top_partition {
    struct hf_str table, key;
    double rate;
    bool cut;
};

struct top_largest {
    struct hf_str table, key, range;
    uint64_t bytes;
};

/* What waits in an outbox, and for how long: the lag of its relays. */
struct top_outbox {
    struct hf_str name;
    uint64_t waiting, failed;
    int64_t oldest_due_ms; /* 0: nothing is due */
    bool whole;            /* false: there is more than was read */
};

/* Counters since the server started, and what is now. */
struct top_sample {
    int64_t elapsed_us;
    int64_t wall_us;
    struct hf_str version; /* absent: the server does not say */
    struct hf_str refusal; /* why there are no tables; absent: there are */
    uint64_t connections, resident_bytes, store_bytes, disk_bytes, waiting, running;
    uint64_t syncs, received_bytes, sent_bytes;
    bool stopped, no_space;
    struct top_times commit;
    struct top_op ops[TOP_OPS_MAX];
    size_t ops_len;
    struct top_table tables[TOP_TABLES_MAX];
    size_t tables_len;
    struct top_partition partitions[TOP_PARTITIONS_MAX];
    size_t partitions_len;
    struct top_largest largest[TOP_LARGEST_MAX];
    size_t largest_len;
    struct top_outbox outboxes[TOP_OUTBOXES_MAX]; /* those that --outbox names */
    size_t outboxes_len;
};

/* Ask the server. Texts are in the scope. HF_UNSUPPORTED: it is no holdfast server. */
enum hf_status hf__top_read(struct hf_scope *s, const struct database_settings *settings,
                            struct top_sample *sample);

/* ---- views ---------------------------------------------------------------------------------- */

enum top_sort { TOP_BY_RATE, TOP_BY_P99, TOP_BY_ERRORS, TOP_BY_NAME, TOP_SORTS };

struct top_op_view {
    struct hf_str name;
    double rate, errors;
    double p50_us, p99_us; /* negative: there were no requests */
};

struct top_table_view {
    struct hf_str name;
    double reads, writes, errors;
};

struct top_view {
    const struct top_sample *sample; /* the newer one */
    double seconds;                  /* between the two */
    double rate, errors, syncs, received, sent;
    double commit_p50_us, commit_p99_us;
    struct top_op_view ops[TOP_OPS_MAX];
    size_t ops_len;
    struct top_table_view tables[TOP_TABLES_MAX];
    size_t tables_len;
    double history[TOP_HISTORY]; /* requests a second, the newest last */
    size_t history_len;
};

/* `view` keeps its history. A counter that is lower than before belongs to a server that was
 * restarted: all of it counts. */
void hf__top_view_make(struct top_view *view, const struct top_sample *before,
                       const struct top_sample *now, enum top_sort sort);

/* ---- printing ------------------------------------------------------------------------------- */

struct top_look {
    struct hf_str url;
    size_t columns, rows; /* rows 0: as many as it takes */
    uint64_t interval_ms;
    enum top_sort sort;
    bool paused;
    bool utf8;           /* the terminal shows blocks */
    bool keys;           /* the last line says which keys there are */
    struct hf_str error; /* the last sample failed; absent: it did not */
    bool clears;         /* each line clears what was there before */
};

/* At most look->rows lines; no line is wider than look->columns. */
void hf__top_print(FILE *out, struct hf_scope *s, const struct top_view *view,
                   const struct top_look *look);
void hf__top_print_lines(FILE *out, struct cli *cli, const struct top_view *view);
void hf__top_print_json(FILE *out, struct cli *cli, const struct top_view *view);

/* ---- the screen ----------------------------------------------------------------------------- */

/* Take over the terminal; false: it is none. From here on it is restored whatever ends the process,
 * but SIGKILL. */
bool hf__top_screen_begin(void);
void hf__top_screen_end(void); /* also when it has not begun */

/* Its size; what it does not know is 80x24. */
void hf__top_screen_size(size_t *columns, size_t *rows);

/* The next key, after `ms` at most; 0: none. 'q' when the terminal is gone. */
char hf__top_screen_key(int ms);

#endif
