/*
 * cli/outbox.h: what the commands about an outbox have in common.
 */
#ifndef HF_CLI_OUTBOX_H
#define HF_CLI_OUTBOX_H

#include "cli/database.h"

#include <holdfast/outbox.h>

/* Open the database and the outbox in it. False: the error was shown, *ends says how to end. */
bool hf__outbox_open(struct cli *cli, const char *command, const struct database_settings *settings,
                     const struct hf_outbox_options *options, struct hf_db **db,
                     struct hf_outbox **outbox, int *ends);

#define OUTBOX_TABLE(type)                                                                         \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "table", .value = "NAME", .fallback = "outbox",               \
        .text = "The table of the outbox.", .offset = offsetof(type, table)                        \
    }

#endif
