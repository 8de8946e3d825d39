/*
 * cli/transfer/first_data.h: tables and items that a server starts with. first_data.c has the essay.
 */
#ifndef HF_CLI_TRANSFER_FIRST_DATA_H
#define HF_CLI_TRANSFER_FIRST_DATA_H

#include "cli/frame/cli.h"

#include <holdfast/db.h>

struct guard;

struct first_data {
    struct cli *cli;
    const char *command; /* for errors */
    struct hf_db *db;
    struct guard *guard;               /* has the signals: one cancels the scope of `cli` */
    const struct option_list *sources; /* files and directories */
    /* What happens, a sentence each: for the log. */
    void (*say)(void *user, enum hf_log_level level, const char *text);
    void *user;
};

/*
 * Create the tables that the sources define and are missing, and store their items in those. Returns CLI_OK, or
 * how the command ends: the error was shown then, and names file and line.
 */
int hf__first_data_load(const struct first_data *first);

/*
 * Is a table there that an earlier start has not filled completely? Then it is not to be served: returns how the
 * command ends, and the error was shown. With `read_only` it is only said.
 */
int hf__first_data_check(const struct first_data *first, bool read_only);

#endif
