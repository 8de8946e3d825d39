/*
 * cli/transfer/transfer.h: tables as files, both ways. What `holdfast export` and `holdfast import` share.
 *
 *     source  ->  chunks of whole lines  ->  items  ->  batches  ->  database         import
 *     database  ->  pages of segments  ->  lines  ->  one file per table or segment   export
 *
 * Formats, by enum transfer_format:
 *
 *     JSONL     a line of plain JSON for each item, as item/plain.h has it
 *     DYNAMODB  a line of DynamoDB's JSON for each item
 *     CSV       a header with names and types, name:S,age:N, and a record for each item
 *     AWS       the folder that DynamoDB's export to S3 makes: transfer_aws.c
 */
#ifndef HF_CLI_TRANSFER_TRANSFER_H
#define HF_CLI_TRANSFER_TRANSFER_H

#include "cli/frame/command.h"
#include "cli/frame/output/progress.h"

#include <holdfast/db.h>

enum transfer_format {
    TRANSFER_AUTO,
    TRANSFER_JSONL,
    TRANSFER_DYNAMODB,
    TRANSFER_CSV,
    TRANSFER_AWS
};
#define TRANSFER_FORMATS "auto jsonl dynamodb csv aws" /* in the order of the enum */

enum {
    TRANSFER_LINE_MAX = 16 * 1024 * 1024, /* bytes of a line: as much as a request may have */
    TRANSFER_COLUMNS_MAX = 4096,          /* of CSV */
    TRANSFER_PARALLEL_MAX = 64,
    TRANSFER_FILES_MAX = 100000,             /* of one table */
    TRANSFER_SCHEMA_MAX = 1024 * 1024,       /* bytes */
    TRANSFER_MANIFEST_MAX = 64 * 1024 * 1024 /* bytes */
};

/* ---- names of files, transfer_file.c -------------------------------------------------------- */

/* Is there something of that name? Absent: no. */
bool hf__transfer_exists(struct hf_str path);

bool hf__transfer_ends_with(const char *path, const char *end);

/* What is behind the last slash. */
struct hf_str hf__transfer_base_name(struct hf_str path);

/* By the end of the name, before .gz; TRANSFER_AUTO: it does not say. */
enum transfer_format hf__transfer_format_of(const char *path);

/* The name of the table that a file is named after: "dir/orders.jsonl.gz" is orders. */
struct hf_str hf__transfer_stem(struct hf_scope *s, const char *path);

/*
 * Write a whole small file: under another name first, synced, then renamed, so that it is there whole or
 * not at all. HF_IO or HF_NO_SPACE, and the error of the scope names the file.
 */
enum hf_status hf__transfer_write_file(struct hf_scope *s, const char *path, struct hf_str text);

/* The failure of a system call on a file: HF_NO_SPACE when the disk is full. */
enum hf_status hf__transfer_fail(struct hf_scope *s, const char *path, int error);

/* Make a directory, if it is not there; and make its entries durable. */
enum hf_status hf__transfer_make_dir(struct hf_scope *s, const char *path);
enum hf_status hf__transfer_sync_dir(struct hf_scope *s, const char *path_in_it);

/* The MD5 of a file, as AWS has it: base64 and hex, both with a NUL. */
struct transfer_md5 {
    char base64[25];
    char hex[33];
};
enum hf_status hf__transfer_md5_file(struct hf_scope *s, const char *path,
                                     struct transfer_md5 *md5);
void hf__transfer_md5_text(struct hf_str text, struct transfer_md5 *md5);

/* A state file, which says where an interrupted transfer continues: a JSON object. Absent: there is no
 * such file, or it cannot be read, which *error says then. */
struct json_node;
const struct json_node *hf__transfer_state_read(struct hf_scope *s, const char *path,
                                                struct hf_str *error);
bool hf__transfer_state_number(const struct json_node *state, const char *name, uint64_t *number);
struct hf_str hf__transfer_state_text(const struct json_node *state, const char *name);

/* ---- lines, transfer_line.c and transfer_csv.c ---------------------------------------------- */

struct transfer_column {
    struct hf_str name;
    enum hf_type type;
};

struct transfer_columns {
    struct transfer_column *list;
    size_t len;
    size_t cap;
};

/* Write an item and the end of the line. `columns` is for CSV. */
void hf__transfer_line_write(FILE *out, struct hf_scope *s, enum transfer_format format,
                             const struct transfer_columns *columns, struct hf_item item);

/* The other way. False: *error, a sentence. */
bool hf__transfer_line_read(struct hf_scope *s, enum transfer_format format,
                            const struct transfer_columns *columns, struct hf_str line,
                            struct hf_item *item, struct hf_str *error);

/* "name:S,age:N" of the command line. */
bool hf__transfer_columns_read(struct hf_scope *s, struct hf_str text,
                               struct transfer_columns *columns, struct hf_str *error);

/* Columns for all attributes of the item. Texts are in the scope; they are sorted by
 * hf__transfer_columns_sort(), with the keys of the table first. False: *error. */
bool hf__transfer_columns_add(struct hf_scope *s, struct transfer_columns *columns,
                              struct hf_item item, struct hf_str *error);
/* Columns for the key of the table, which are there also if it has no items. */
bool hf__transfer_columns_add_keys(struct hf_scope *s, struct transfer_columns *columns,
                                   const struct hf_table_description *table, struct hf_str *error);
void hf__transfer_columns_sort(struct transfer_columns *columns,
                               const struct hf_table_description *table);
/* Does the item have an attribute that is in none of them? Its name; absent: it has not. */
struct hf_str hf__transfer_columns_missing(const struct transfer_columns *columns,
                                           struct hf_item item);

void hf__transfer_csv_header(FILE *out, const struct transfer_columns *columns);
void hf__transfer_csv_write(FILE *out, struct hf_scope *s, const struct transfer_columns *columns,
                            struct hf_item item);

/* The header: a name without a type has that of `types`, of the key of the table (may be NULL), or S. */
bool hf__transfer_csv_read_header(struct hf_scope *s, struct hf_str line,
                                  const struct transfer_columns *types,
                                  const struct hf_table_description *table,
                                  struct transfer_columns *columns, struct hf_str *error);
bool hf__transfer_csv_read(struct hf_scope *s, const struct transfer_columns *columns,
                           struct hf_str line, struct hf_item *item, struct hf_str *error);

/* ---- reading files, transfer_source.c ------------------------------------------------------- */

struct transfer_file {
    struct hf_str path;    /* "-": standard input */
    struct hf_str md5;     /* that the manifest names; absent: none */
    struct hf_str md5_hex; /* for a manifest that is written */
    uint64_t bytes;        /* of the file as it is on disk; 0: not known */
    int64_t modified_us;   /* 0: not known */
    uint64_t items;        /* that the manifest names */
    bool has_items;
};

/* Where the import of a table is: all lines before this one are done. */
struct transfer_position {
    uint64_t file; /* place in the list of files */
    uint64_t line; /* lines of it that are done, with the header */
};

/* Some whole lines of one file. */
struct transfer_chunk {
    uint64_t number; /* from 0 */
    size_t file;
    uint64_t first_line; /* number of its first line, from 1 */
    uint64_t lines;
    bool ends_file;
    uint64_t source_bytes; /* that were read of all files for it, as they are on disk */
    char *ptr;
    size_t len, cap;
};

struct transfer_source;

enum hf_status hf__transfer_source_open(struct hf_scope *s, const struct transfer_file *files,
                                        size_t len, enum transfer_format format,
                                        struct transfer_position start,
                                        struct transfer_source **source);
void hf__transfer_source_close(struct transfer_source *source);

/*
 * The next chunk, whose memory is reused and grows. *found is false at the end of all files. One thread
 * at a time. The error of the scope names file and line.
 *
 * HF_IO      the file cannot be read
 * HF_LIMIT   a line is longer than TRANSFER_LINE_MAX
 * HF_CORRUPT the compressed data is damaged or cut
 */
enum hf_status hf__transfer_source_next(struct hf_scope *s, struct transfer_source *source,
                                        struct transfer_chunk *chunk, bool *found);

/* The first record of the file that was begun, for CSV; valid while its chunks are read. */
struct hf_str hf__transfer_source_header(const struct transfer_source *source);

/* The first bytes of a file, decompressed, to find out what it is. At most `max`. */
enum hf_status hf__transfer_source_peek(struct hf_scope *s, const char *path, char *room,
                                        size_t max, size_t *len);

/* ---- AWS's layout, transfer_aws.c ----------------------------------------------------------- */

/* DIR/AWSDynamoDB/ID, of which `path` is one of the three, or an export whose manifest is in it. */
struct transfer_aws {
    struct hf_str dir;   /* that has manifest-summary.json */
    struct hf_str table; /* of the summary's ARN */
    struct hf_str table_arn;
    struct hf_str table_id; /* absent: the summary has none */
    uint64_t items;         /* that the summary names */
    struct transfer_file *files;
    size_t files_len;
};

/* The directories of exports at or below `path`; *len 0: there are none. */
enum hf_status hf__transfer_aws_find(struct hf_scope *s, const char *path, struct hf_str **dirs,
                                     size_t *len);

/* Is there a summary, which is written last? */
bool hf__transfer_aws_complete(struct hf_scope *s, struct hf_str dir);

/* Read and verify the manifests of one. The error of the scope names the file. */
enum hf_status hf__transfer_aws_read(struct hf_scope *s, struct hf_str dir,
                                     struct transfer_aws *aws);

struct transfer_aws_summary {
    struct hf_str dir;
    struct hf_str id; /* of the export */
    struct hf_str table_arn;
    struct hf_str table_id;
    int64_t begin_us, end_us;
    uint64_t items;
    uint64_t bytes;
    const struct transfer_file *files; /* with items and md5 */
    size_t files_len;
};
enum hf_status hf__transfer_aws_write(struct hf_scope *s,
                                      const struct transfer_aws_summary *summary);

/* A new id: the time in milliseconds and some random digits, as AWS's are; and the name of a file. */
struct hf_str hf__transfer_aws_id(struct hf_scope *s);
struct hf_str hf__transfer_aws_file_name(struct hf_scope *s);

/* ---- schemas, transfer_schema.c ------------------------------------------------------------- */

/* The request of CreateTable that would make the table again, with TimeToLiveSpecification. */
struct hf_str hf__transfer_schema_json(struct hf_scope *s, const struct hf_table_description *table,
                                       struct hf_str ttl);

/* Read it; false and *error, a sentence. *ttl is absent when items do not expire. */
bool hf__transfer_schema_read(struct hf_scope *s, struct hf_str text, struct hf_create_table *spec,
                              struct hf_str *ttl, struct hf_str *error);

/* Behind the name of a file while its export is not complete. */
#define TRANSFER_EXPORT_STATE_END ".export-state"

/* Beside a data file: "dir/orders.jsonl.gz" has "dir/orders.schema.json". */
#define TRANSFER_SCHEMA_END ".schema.json"
struct hf_str hf__transfer_schema_path(struct hf_scope *s, const char *data_path);

/* ---- work in threads, transfer_work.c ------------------------------------------------------- */

/* The first failure of several threads. */
struct transfer_failure {
    bool set;
    int ends;
    char text[1024];
};

/* Keep the error of the scope, or a sentence, unless one is there. Not thread-safe. */
void hf__transfer_failure_of(struct transfer_failure *failure, const struct hf_scope *s,
                             const char *what);
void hf__transfer_failure_say(struct transfer_failure *failure, int ends, const char *format, ...)
    HF_PRINTF(3, 4);

/* At most so many items a second; 0: as many as there are. Returns how long to wait for `count` of them. */
struct transfer_rate {
    uint64_t per_second;
    int64_t next_us;
};
uint32_t hf__transfer_rate_wait_ms(struct transfer_rate *rate, int64_t now_us, size_t count);

/* "12.3 MB", "1,234,567" */
struct hf_str hf__transfer_bytes_text(struct hf_scope *s, uint64_t bytes);

/* "42%, 12345 items, 7.1 MB/s, 12s left": `done` of `all` (0: not known) in the same unit. */
void hf__transfer_progress_print(struct progress *progress, struct hf_scope *s, const char *table,
                                 uint64_t items, uint64_t bytes, double done, double all);

#endif
