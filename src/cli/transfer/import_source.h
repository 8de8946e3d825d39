/*
 * cli/transfer/import_source.h: what a file or folder is, and into which table it goes. import_source.c has the
 * essay.
 */
#ifndef HF_CLI_TRANSFER_IMPORT_SOURCE_H
#define HF_CLI_TRANSFER_IMPORT_SOURCE_H

#include "cli/transfer/import_table.h"

struct import_sources {
    struct hf_str table;         /* of --table; absent: by the source itself */
    enum transfer_format format; /* TRANSFER_AUTO: by names and first lines */
    struct transfer_columns types;
    struct import_task *tasks; /* in the scope, in the order in which they were added */
    size_t tasks_len;
};

/* Can it be read only once? Standard input, or what is neither a file nor a directory, such as a FIFO. */
bool hf__import_is_stream(struct hf_str path);

/* Add the task of a file, or of standard input. Errors are shown. */
enum hf_status hf__import_add_file(struct command_ctx *c, struct import_sources *sources,
                                   struct hf_str path);

/* Add the complete ones of several exports in AWS's layout: directories of hf__transfer_aws_find(). The files are
 * compared with the checksums of their manifests. Errors are shown. */
enum hf_status hf__import_add_aws(struct command_ctx *c, struct import_sources *sources,
                                  const struct hf_str *dirs, size_t len);

#endif
