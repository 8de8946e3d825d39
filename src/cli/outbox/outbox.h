/*
 * cli/outbox/outbox.h: what the commands about an outbox have in common.
 */
#ifndef HF_CLI_OUTBOX_OUTBOX_H
#define HF_CLI_OUTBOX_OUTBOX_H

#include "cli/frame/database.h"

#include <holdfast/outbox.h>

/* An outbox, and what it stands on. */
struct outbox_place {
    struct hf_db *db;
    struct hf_blobs *blobs; /* NULL: none was named */
    struct hf_outbox *outbox;
};

/*
 * Open the database, the blob store (absent: none) and the outbox. With no_create, where there is
 * none yet, it is an empty one in memory, but settings->absent_ok and table_needed. False: the error
 * was shown, *ends says how to end.
 */
bool hf__outbox_open(struct cli *cli, const char *command, const struct database_settings *settings,
                     struct hf_str blobs, const struct hf_outbox_options *options,
                     struct outbox_place *place, int *ends);
void hf__outbox_close(struct outbox_place *place);

/* outbox_names.c: hf_outbox_open(), under the names that the table has. */
enum hf_status hf__outbox_open_named(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_outbox_options *options,
                                     struct hf_outbox **outbox);

#define OUTBOX_TABLE(type)                                                                         \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "table", .value = "NAME", .fallback = "outbox",               \
        .text = "The table of the outbox.", .offset = offsetof(type, table)                        \
    }
#define OUTBOX_BLOBS(type)                                                                         \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "blobs", .value = "URL", .env = "HOLDFAST_BLOBS",             \
        .text = "Where payloads are that are too large for an item: dir:PATH or s3://BUCKET.",     \
        .offset = offsetof(type, blobs)                                                            \
    }

#endif
