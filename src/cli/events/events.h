/*
 * cli/events/events.h: what the commands about an event store have in common: opening it, naming streams,
 * showing events, what is running for long.
 *
 *     struct settings {
 *         struct database_settings database;
 *         struct events_settings store;
 *     };
 *     static const struct option_spec specs[] = {..., EVENTS_SPECS(struct settings), ...};
 *
 *     if (!hf__cli_events_open(cli, "events read", &settings.database, &settings.store, NULL,
 * &place, &ends)) return ends;
 *     ... place.store ...
 *     hf__cli_events_close(&place);
 */
#ifndef HF_CLI_EVENTS_EVENTS_H
#define HF_CLI_EVENTS_EVENTS_H

#include "cli/frame/database.h"
#include "cli/frame/progress.h"
#include "cli/frame/rows.h"

#include <holdfast/events.h>
#include <holdfast/subscribe.h>

#include <stdatomic.h>

struct events_settings {
    struct hf_str table;
    struct hf_str blobs;
};

/* Its options, for a struct whose member `store` is the settings. */
#define EVENTS_SPECS(type)                                                                         \
    {.heading = "The store",                                                                       \
     .kind = OPTION_TEXT,                                                                          \
     .name = "table",                                                                              \
     .value = "NAME",                                                                              \
     .fallback = "events",                                                                         \
     .text = "The table of the events.",                                                           \
     .offset = offsetof(type, store.table)},                                                       \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "blobs", .value = "URL", .env = "HOLDFAST_BLOBS",             \
        .text = "Where payloads are that are too large for an item: dir:PATH or s3://BUCKET. By "  \
                "default beside an embedded database, and nowhere for others.",                    \
        .offset = offsetof(type, store.blobs)                                                      \
    }

/* Of a walk over the order of all, or over a stream: which events, and where it begins. */
#define EVENTS_WALK_SPECS(type_)                                                                    \
    {.kind = OPTION_TEXT,                                                                           \
     .letter = 'd',                                                                                 \
     .name = "domain",                                                                              \
     .value = "TEXT",                                                                               \
     .text = "Only of this domain.",                                                                \
     .offset = offsetof(type_, domain)},                                                            \
        {.kind = OPTION_TEXT,                                                                       \
         .letter = 't',                                                                             \
         .name = "type",                                                                            \
         .value = "TEXT",                                                                           \
         .text = "Only of this type; may end with *.",                                              \
         .offset = offsetof(type_, type)},                                                          \
        {.kind = OPTION_TEXT,                                                                       \
         .name = "after",                                                                           \
         .value = "POSITION",                                                                       \
         .text =                                                                                    \
             "Begin behind this position, or of a stream behind this version; by default with the " \
             "first event.",                                                                        \
         .offset = offsetof(type_, after)},                                                         \
        {.kind = OPTION_TEXT,                                                                       \
         .name = "since",                                                                           \
         .value = "WHEN",                                                                           \
         .text =                                                                                    \
             "Begin with what was appended then: a time such as 2026-11-15T09:30:00Z, or how long " \
             "ago, such as 15m.",                                                                   \
         .offset = offsetof(type_, since)},                                                         \
    {                                                                                               \
        .kind = OPTION_FLAG, .name = "latest", .text = "Begin with what comes from now on.",        \
        .offset = offsetof(type_, latest)                                                           \
    }

/* A store, and what it stands on. */
struct events_place {
    struct hf_db *db;
    struct hf_blobs *blobs; /* NULL: none was named */
    struct hf_events *store;
};

/*
 * Open the database, the blob store and the event store. `make` says how the table is made when it
 * is missing; NULL: then the store is an empty one in memory, but database->absent_ok and
 * table_needed. False: the error was shown, *ends says how to end.
 */
bool hf__cli_events_open(struct cli *cli, const char *command,
                         const struct database_settings *database,
                         const struct events_settings *settings,
                         const struct hf_events_options *make, struct events_place *place,
                         int *ends);
void hf__cli_events_close(struct events_place *place);

/* A blob store by its URL, with the credentials that the database's options name. */
enum hf_status hf__cli_events_open_blobs(struct cli *cli, const struct database_settings *database,
                                         struct hf_str url, struct hf_blobs **blobs);

/*
 * A stream as it is named on a command line: DOMAIN/ID, or DOMAIN alone. A '/' or '%' in the domain
 * is written %2F or %25; the id is taken as it is. False: it cannot be, which was shown.
 */
bool hf__cli_events_stream(struct cli *cli, const char *command, const char *text,
                           struct hf_stream_key *stream);

/* The same the other way, in the scope; absent: no memory. */
struct hf_str hf__cli_events_stream_text(struct hf_scope *s, struct hf_stream_key stream);

/* "any", "none", "exists" or a version; absent is "any". False: it was shown. */
bool hf__cli_events_expect(struct cli *cli, const char *command, struct hf_str text,
                           enum hf_expect *expect, uint64_t *version);

/* A moment of an option; absent: *us stays as it is. False: it was shown. */
bool hf__cli_events_when(struct cli *cli, const char *command, const char *option,
                         struct hf_str text, int64_t *us);

/* Where a walk with EVENTS_WALK_SPECS begins. */
enum hf_start hf__cli_events_start(struct hf_str after, struct hf_str since, bool latest);

/* One event as a JSON line on the standard output, whole, whoever else prints. *broken: nobody
 * reads it. */
enum hf_status hf__cli_events_print(struct hf_scope *s, struct cli *cli,
                                    const struct hf_stored_event *event, atomic_bool *broken);

/* One event as a row: with --json as a line of an export has it, else in short. */
void hf__cli_events_add(struct rows *rows, const struct hf_stored_event *event);

/* One event alone. Returns how to end. */
int hf__cli_events_one(struct cli *cli, const struct database_settings *settings,
                       const struct hf_stored_event *event);

/* A group that is there, to look at it and at what it has put aside. False: the error was shown. */
bool hf__cli_events_group(struct cli *cli, const char *command, struct hf_events *store,
                          struct hf_str name, struct hf_group **group, int *ends);

/* ---- long work ------------------------------------------------------------------------------ */

/* How far it is, on standard error when that is a terminal, a few times a second. */
struct events_progress {
    struct progress progress;
    const char *what; /* "exported" */
};

void hf__cli_events_progress_begin(struct events_progress *progress, struct cli *cli,
                                   const struct database_settings *settings, const char *what);
/* An hf_events_progress_fn; `user` is the struct. */
enum hf_status hf__cli_events_progress(uint64_t done, uint64_t total, void *user);
void hf__cli_events_progress_end(struct events_progress *progress);

#endif
