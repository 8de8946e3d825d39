/*
 * cli/transfer/export_job.h: the export of one table, for the files that do it: export_table.c has the threads and
 * the order of things, export_files.c what is on disk, export_state.c where an interrupted export continues.
 */
#ifndef HF_CLI_TRANSFER_EXPORT_JOB_H
#define HF_CLI_TRANSFER_EXPORT_JOB_H

#include "cli/transfer/export_table.h"

#include <pthread.h>

#define PART_END ".part"

struct export_job;
struct json_node;

struct export_file {
    struct hf_str path;
    struct hf_str part; /* its name while it grows */
    int fd;             /* -1: not open */
    bool named;         /* it was complete before: an earlier run has given it its name */
    uint64_t bytes;
    uint64_t items;
};

struct export_segment {
    struct export_job *job;
    pthread_t thread;
    bool started;
    bool done;
    char
        *cursor; /* the key behind which it goes on, as DynamoDB's JSON; NULL: from the beginning */
    size_t file;
};

struct export_job {
    struct command_ctx *c;
    const struct export_options *options;
    const struct export_task *task;
    const struct hf_table_description *description;
    struct hf_str ttl;
    struct transfer_columns columns; /* of CSV */
    bool to_stdout;
    struct hf_str dir;        /* of AWS's layout: AWSDynamoDB/ID */
    struct hf_str state_path; /* absent: standard output */
    int64_t begin_us;         /* by the wall clock */
    struct export_segment *segments;
    size_t segments_len;
    struct export_file *files;
    size_t files_len;
    pthread_mutex_t lock; /* guards what follows, the files and the cursors */
    pthread_cond_t wake;
    bool stop;
    bool reader_gone; /* of standard output */
    struct transfer_failure failure;
    struct transfer_rate rate;
    uint64_t items;
    uint64_t state_us;
    bool state_written;
    size_t running;
};

/* ---- export_table.c ------------------------------------------------------------------------- */

int64_t hf__export_now_us(const struct export_job *job);

/* A copy by malloc(), with a NUL behind it; NULL: no memory. */
char *hf__export_text_keep(struct hf_str text);

enum hf_status hf__export_memory_fails(struct hf_scope *s);

/* ---- export_state.c ------------------------------------------------------------------------- */

/* The headings of the columns, as they are in the state and in --types. */
struct hf_str hf__export_columns_text(struct hf_scope *s, const struct transfer_columns *columns);

/* With the lock held. (2) */
enum hf_status hf__export_state_write(struct hf_scope *s, struct export_job *job);

/* Take everything from the state: files, segments and columns. */
enum hf_status hf__export_state_use(struct export_job *job, const struct json_node *state);

/* ---- export_files.c ------------------------------------------------------------------------- */

/* Where the state of an export to this file is. */
struct hf_str hf__export_state_path(struct hf_scope *s, struct hf_str to);

/* The state of an export of this table to this directory that was interrupted; absent: there is none. */
const struct json_node *hf__export_aws_find_state(struct export_job *job);

/* The directory of a complete export of this table; absent: there is none. */
struct hf_str hf__export_aws_find_complete(struct export_job *job);

/* A new export: where its files are, and one segment for each thread. */
enum hf_status hf__export_job_new(struct export_job *job);

bool hf__export_segments_done(const struct export_job *job);

enum hf_status hf__export_files_open(struct export_job *job);

/* Did an earlier run give all files their names? */
bool hf__export_files_named(const struct export_job *job);

void hf__export_job_free(struct export_job *job);

#endif
