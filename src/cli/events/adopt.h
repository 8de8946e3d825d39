/*
 * cli/events/adopt.h: the parts of `events adopt`, which imports the table of another event store.
 * cmd_events_adopt.c has the essay.
 */
#ifndef HF_CLI_EVENTS_ADOPT_H
#define HF_CLI_EVENTS_ADOPT_H

#include "cli/events/events.h"
#include "cli/events/events_row.h"
#include "cli/frame/text_map.h"

/* An event of their table, without what it says. */
struct adopt_entry {
    struct hf_str id;      /* as in the key of its row */
    struct hf_str created; /* the same; absent: it is not part of the key */
    int64_t time_us;
    uint64_t sequence; /* 0: none */
    uint64_t version;  /* here; 0: the next one of its stream */
    uint64_t number;   /* in its stream, from 0 */
    uint32_t stream;
};

struct adopt_stream {
    struct hf_event_stream_key key;
    uint64_t events;    /* in their table */
    uint64_t numbered;  /* of these: with a sequence */
    uint64_t head;      /* what its head says is the last sequence; 0: it has none */
    uint64_t taken;     /* are to be imported: the first ones, */
    uint64_t there;     /* but for the first of these, which are there */
    uint64_t version;   /* of its last event in the event store */
    size_t begin, next; /* in adopt.by_stream: its first entry, and the next one to be placed */
};

struct adopt {
    struct command_ctx *c;
    struct hf_scope *s; /* of the command */
    struct hf_db *from;
    struct hf_str table;
    bool sorts; /* created is part of the key */
    bool renumber;
    struct hf_str objects;   /* where payloads are that are in S3; absent: unknown */
    struct hf_blobs *bucket; /* it is this one; NULL: it is a folder */
    struct hf_str bucket_name;
    struct hf_events *store; /* NULL: a dry run */
    uint64_t timeout_ms;
    struct events_progress progress;

    struct hf_scope *memory;        /* of all below */
    struct text_map stream_numbers; /* DOMAIN NUL IDENTIFIER: number of the stream, from 1 */
    struct text_map heads;          /* DOMAIN::IDENTIFIER: the sequence */
    struct adopt_stream *streams;
    size_t streams_len, streams_cap;
    struct adopt_entry *entries; /* by time */
    size_t entries_len, entries_cap;
    struct adopt_entry **by_stream; /* by stream, and there in the order of its versions */
    struct adopt_entry **order;     /* in which they are imported */
    uint64_t done, imported, existing, left, verified;
    bool incomplete; /* something was reported */
};

/* adopt_index.c: read their whole table, but not what events say: `order` and the versions. */
enum hf_status hf__adopt_events_index(struct adopt *a);

/* Report what is not imported. */
void hf__adopt_events_report(struct adopt *a, const char *format, ...) HF_PRINTF(2, 3);

/* The stream of their table with this key; NULL: there is none, or no memory. */
struct adopt_stream *hf__adopt_events_find(struct adopt *a, struct hf_event_stream_key key);

/* adopt_import.c: import them, or in a dry run only read them. */
enum hf_status hf__adopt_events_import(struct adopt *a);

/* adopt_import.c: compare the streams that were imported with those of their table. */
enum hf_status hf__adopt_events_verify(struct adopt *a);

#endif
