/*
 * cli/transfer/export_table.h: the export of one table. export_table.c has the essay.
 */
#ifndef HF_CLI_TRANSFER_EXPORT_TABLE_H
#define HF_CLI_TRANSFER_EXPORT_TABLE_H

#include "cli/transfer/transfer.h"

struct export_options {
    enum transfer_format format; /* never TRANSFER_AUTO */
    bool gzip;
    bool consistent;
    bool resume;
    bool overwrite;
    bool schema; /* write it beside the data */
    bool progress;
    size_t parallel; /* segments */
    uint64_t per_second;
    const struct transfer_columns *columns; /* of --columns; empty: all */
};

struct export_task {
    struct hf_str table;
    struct hf_str
        to; /* the file; "-": standard output; for AWS's layout the directory above AWSDynamoDB */
};

struct export_result {
    uint64_t items;
    uint64_t bytes;   /* of the files */
    struct hf_str to; /* the file, or the directory with the manifests */
    bool skipped;     /* it was complete, with --resume */
};

/* Errors are shown. */
enum hf_status hf__transfer_export(struct command_ctx *c, const struct export_options *options,
                                   const struct export_task *task, struct export_result *result);

/* Before anything is written: may the file be written? False: the error was shown. */
bool hf__transfer_export_free(struct command_ctx *c, const struct export_options *options,
                              const struct export_task *task);

#endif
