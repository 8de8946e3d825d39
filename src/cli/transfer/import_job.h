/*
 * cli/transfer/import_job.h: an import under way: what its threads share (import_table.c), the state file and the
 * file of rejected lines (import_state.c).
 */
#ifndef HF_CLI_TRANSFER_IMPORT_JOB_H
#define HF_CLI_TRANSFER_IMPORT_JOB_H

#include "cli/transfer/import_table.h"

#include <pthread.h>

enum { IMPORT_NOTICES_MAX = 20 }; /* rejected lines that are shown; all are in the file */

/* A line that is no item, or that the database refuses. */
struct import_reject {
    uint64_t line;
    struct hf_str text;
    struct hf_str reason;
};

struct import_job;

struct import_worker {
    struct import_job *job;
    pthread_t thread;
    bool started;
    struct hf_scope *scope;
    struct transfer_chunk chunk;
    struct hf_write *writes;
    uint64_t *lines;      /* of each of them */
    struct hf_str *texts; /* likewise */
    size_t writes_len, writes_cap;
    struct import_reject *rejects; /* in the scope, as what follows */
    size_t rejects_len, rejects_cap;
    uint64_t done_lines; /* of the chunk: all of them, unless it failed */
    bool failed;
};

struct import_job {
    struct command_ctx *c;
    const struct import_options *options;
    const struct import_task *task;
    pthread_mutex_t reading; /* guards the next four */
    struct transfer_source *source;
    struct transfer_columns columns; /* of CSV, once the header was read */
    bool headed;
    bool source_ended;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t wake;
    bool stop;             /* no more chunks are taken */
    bool unsynced;         /* what was stored last may not be durable: the last state stays */
    uint64_t failed_chunk; /* chunks behind it are not stored; UINT64_MAX: none has failed */
    struct transfer_failure failure;
    struct transfer_rate rate;
    uint64_t turn;                     /* the first chunk that is not finished */
    struct transfer_position position; /* everything before it is done */
    uint64_t items, rejected;          /* before the position */
    uint64_t stored;                   /* items of all chunks, for the progress; likewise: */
    uint64_t bytes, source_bytes;
    uint64_t all_bytes;             /* of the source; 0: not known */
    uint64_t missing, different;    /* of `compare`; */
    struct transfer_position first; /* of the first one of them that has a `line` */
    int64_t state_us;               /* when it was written last */
    bool state_written;
    bool no_state;  /* it could not be written: the source may be on a disk that is read-only */
    int rejects_fd; /* -1: not opened yet */
    uint64_t rejects_bytes;
    size_t running;
};

int64_t hf__import_now_us(const struct import_job *job);

/* For messages. */
const char *hf__import_file_name(const struct import_job *job, size_t file);

/* With the lock held; everything up to the position is durable. */
enum hf_status hf__import_state_write(struct hf_scope *s, struct import_job *job);

/* With --resume: set the position, and what was counted before it, to those of the state file. */
enum hf_status hf__import_state_resume(struct import_job *job);

/* With the lock held: report the lines that the worker rejected, and put them into their file. */
enum hf_status hf__import_rejects_flush(struct import_worker *w);

#endif
