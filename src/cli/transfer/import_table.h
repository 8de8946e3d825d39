/*
 * cli/transfer/import_table.h: the import of one table. import_table.c has the essay.
 */
#ifndef HF_CLI_TRANSFER_IMPORT_TABLE_H
#define HF_CLI_TRANSFER_IMPORT_TABLE_H

#include "cli/transfer/transfer.h"

struct import_options {
    bool skip;           /* lines that cannot be stored are left out; otherwise the first ends it */
    bool dry_run;        /* nothing is stored */
    bool ordered;        /* of several lines with the same key, the last one is stored */
    size_t parallel;     /* threads */
    uint64_t per_second; /* items at most; 0: any number */
    struct hf_str rejects;  /* path; absent: there is no such file */
    struct hf_str state;    /* path; absent: it cannot be resumed */
    bool resume;            /* go on where the state says */
    struct hf_str database; /* which one, as the state names it */
    bool progress;          /* lines of it, where there is no terminal */
    bool compare; /* with dry_run: find out which items the table does not have like this */
    /* Called now and then while it runs, and once at its end; `all` is 0 when it is not known. NULL: nobody. */
    void (*on_progress)(void *user, struct hf_str table, uint64_t items, double bytes, double all);
    void *user;
};

struct import_task {
    struct hf_str table;
    struct hf_str source; /* for messages, and for the state */
    struct transfer_file *files;
    size_t files_len;
    enum transfer_format format;
    struct hf_str schema; /* path of the file with the request of CreateTable; absent: none */
    const struct transfer_columns *types;           /* of --types */
    const struct hf_table_description *description; /* of the table, or made from the schema */
    bool made;                                      /* the table did not exist before this run */
};

struct import_result {
    uint64_t items;    /* that were stored, with those of an import that was resumed */
    uint64_t rejected; /* lines */
    uint64_t bytes;    /* of the lines that were read now */
    /* With `compare`: items that the table does not have, and that are others there; and the first of
     * either, as FILE:LINE (absent: none). */
    uint64_t missing, different;
    struct hf_str first;
};

/* Errors are shown; they name file and line. */
enum hf_status hf__transfer_import(struct command_ctx *c, const struct import_options *options,
                                   const struct import_task *task, struct import_result *result);

#endif
