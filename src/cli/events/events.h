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
 *     COMMAND_OF(events_info, info_print, EVENTS_SETTINGS(struct settings),
 *                .place = &hf__cli_events_place, ...);
 */
#ifndef HF_CLI_EVENTS_EVENTS_H
#define HF_CLI_EVENTS_EVENTS_H

#include "cli/frame/command.h"
#include "cli/frame/output/progress.h"

#include <holdfast/events.h>
#include <holdfast/subscribe.h>

#include <stdatomic.h>

struct events_settings {
    struct hf_str table;
    struct hf_str blobs;
};

/* Its options, for a struct whose member `store` is the settings. */
#define EVENTS_SPECS(type)                                                                         \
    OPT_TEXT_IN(type, "table", "NAME", store.table, "The table of the events.",                    \
                .fallback = "events", .heading = "Store"),                                         \
        OPT_TEXT_IN(                                                                               \
            type, "blobs", "URL", store.blobs,                                                     \
            "Blob store for payloads larger than an item: dir:PATH or s3://BUCKET. By default "    \
            "beside an embedded database; other databases have none.",                             \
            .env = "HOLDFAST_BLOBS")

/* Options of commands that read all streams or one: which events, and where to start. */
#define EVENTS_WALK_SPECS(type_)                                                                   \
    OPT_TEXT_IN(type_, "domain", "TEXT", domain, "Only events of this domain.", .letter = 'd'),    \
        OPT_TEXT_IN(type_, "type", "TEXT", type, "Only events of this type; may end with *.",      \
                    .letter = 't'),                                                                \
        OPT_TEXT_IN(                                                                               \
            type_, "after", "POSITION", after,                                                     \
            "Start after this position, or with --stream after this version; by default with "     \
            "the first event."),                                                                   \
        OPT_TEXT_IN(type_, "since", "WHEN", since,                                                 \
                    "Start with events that were appended at or after this: a time such as "       \
                    "2026-11-15T09:30:00Z, or how long ago, such as 15m."),                        \
        OPT_FLAG_IN(type_, "latest", latest, "Start with new events only.")

/* How the settings of these commands begin: hf__cli_events_place finds the store's there. */
struct events_common {
    struct database_settings database;
    struct events_settings store;
};

#define EVENTS_SETTINGS(type)                                                                      \
    COMMAND_SETTINGS_IF(type, offsetof(type, database) == 0 &&                                     \
                                  offsetof(type, store) == offsetof(struct events_common, store))

/* c->place is a struct hf_events. */
extern const struct command_place hf__cli_events_place;

/* The same for commands that make the table, which say how. */
enum hf_status hf__cli_events_place_open(struct command_ctx *c,
                                         const struct hf_events_options *make);
void hf__cli_events_place_close(void *place);

/*
 * A stream as it is named on a command line: DOMAIN/ID, or DOMAIN alone. A '/' or '%' in the domain
 * is written %2F or %25; the id is taken as it is. False: it cannot be, which was shown.
 */
bool hf__cli_events_stream(struct cli *cli, const char *command, const char *text,
                           struct hf_event_stream_key *stream);

/* The same the other way, in the scope; absent: no memory. */
struct hf_str hf__cli_events_stream_text(struct hf_scope *s, struct hf_event_stream_key stream);

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

/* One event alone. */
enum hf_status hf__cli_events_one(struct command_ctx *c, const struct hf_stored_event *event);

/* The group that the first operand names, to show its state and its parked events. */
enum hf_status hf__cli_events_group(struct command_ctx *c, struct hf_group **group);

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
