/*
 * cli/outbox/outbox.h: what the commands about an outbox have in common.
 */
#ifndef HF_CLI_OUTBOX_OUTBOX_H
#define HF_CLI_OUTBOX_OUTBOX_H

#include "cli/frame/command.h"

#include <holdfast/outbox.h>

/*
 * outbox_names.c: open c->place and the blob store (absent: none), for a struct command_place; the
 * table may have other names than the usual. `options` leave out what the frame knows: the blobs, and
 * whether it may be made.
 */
enum hf_status hf__cli_outbox_place_open(struct command_ctx *c, struct hf_str blobs,
                                         const struct hf_outbox_options *options);
void hf__cli_outbox_place_close(void *place);

#define OUTBOX_TABLE(type)                                                                         \
    OPT_TEXT_IN(type, "table", "NAME", table, "The table of the outbox.", .fallback = "outbox")
#define OUTBOX_BLOBS(type)                                                                         \
    OPT_TEXT_IN(type, "blobs", "URL", blobs,                                                       \
                "Blob store for payloads larger than an item: dir:PATH or s3://BUCKET.",           \
                .env = "HOLDFAST_BLOBS")

/* Of commands that create the table if it is missing. */
#define OUTBOX_TABLE_MADE(type)                                                                        \
    OPT_TEXT_IN(type, "table", "NAME", table, "The table of the outbox; created if missing.",          \
                .fallback = "outbox", .heading = "Table"),                                             \
        OUTBOX_BLOBS(type),                                                                            \
        OPT_NUMBER_IN(                                                                                 \
            type, "buckets", buckets, 0, HF_OUTBOX_BUCKETS_MAX,                                        \
            "If the table is created: number of buckets that events are spread over; 16 by default."), \
        OPT_FLAG_IN(                                                                                   \
            type, "stream", stream,                                                                    \
            "If the table is created: enable its stream, which wakes relays in other processes.")

#endif
