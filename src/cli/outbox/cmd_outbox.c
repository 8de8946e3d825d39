/*
 * cli/outbox/cmd_outbox.c: events that wait, have failed or were delivered, from a shell: `holdfast outbox
 * ls|failed|retry|discard|stats|pause|resume|cleanup|replay|sweep`. What delivers them is cmd_relay.c.
 */
#include "cli/outbox/outbox.h"

#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

#include <holdfast/sink.h>

enum { PAGE = 100 };

enum list_state { LIST_PENDING, LIST_FAILED, LIST_HISTORY };

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str blobs;
    uint64_t limit;
    struct hf_str type; /* of lists */
    struct hf_str cause;
    struct hf_str why; /* pause */
    /* lists */
    struct hf_str key, tenant;
    unsigned state; /* enum list_state */
    bool later;
    bool oldest_first;
    /* retry, discard */
    bool all;
    /* stats, cleanup */
    uint64_t scan;
    uint64_t older_ms;
};

#define TABLE_SPEC OUTBOX_TABLE(struct settings), OUTBOX_BLOBS(struct settings)
#define LIMIT_SPEC OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many.")
#define TYPE_SPEC OPT_TEXT("type", "TEXT", type, "Only events of this type; may end with *.")
#define ONLY_SPECS                                                                                 \
    TYPE_SPEC, OPT_TEXT("key", "TEXT", key, "Only events with this order key."),                   \
        OPT_TEXT("tenant", "TEXT", tenant, "Only events of this tenant.")
#define CAUSE_SPEC                                                                                 \
    OPT_TEXT("cause", "TEXT", cause,                                                               \
             "Only events with this cause of failure, as 'outbox stats' shows it.")

static enum hf_status place_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__cli_outbox_place_open(c, settings->blobs,
                                     HF_OPTIONS(hf_outbox_options, .table = settings->table));
}

static const struct command_place outbox_place = {place_open, hf__cli_outbox_place_close,
                                                  "outbox emit"};

/* ---- ls, failed ----------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    OPT_CHOICE(
        "state", "pending failed history", state,
        "pending: events to be delivered; failed: dead letters; history: delivered events that "
        "are still stored.",
        .letter = 's', .fallback = "pending", .heading = "Events"),
    OPT_FLAG("later", later,
             "With pending: include events that are due later or wait for a retry."),
    OPT_FLAG("oldest-first", oldest_first,
             "Oldest first; with failed and history the newest are first by default."),
    ONLY_SPECS,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast outbox ls", "Events that are due now."},
    {"holdfast outbox ls --later --jsonl", "All pending events, with payloads."},
};

const struct options_table hf__outbox_ls_options = {
    .name = "outbox ls",
    .about = "List events: id, type, key, state, whether they are urgent, when they happened, "
             "attempts, last error; with --json all fields.",
    COMMAND_SPECS(ls),
};

static const struct option_spec failed_specs[] = {
    CAUSE_SPEC,
    OPT_FLAG("oldest-first", oldest_first, "Oldest first; the newest are first by default."),
    ONLY_SPECS,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_LIST(struct settings),
};

static const struct option_example failed_examples[] = {
    {"holdfast outbox failed", "Dead letters, and why they failed."},
};

const struct options_table hf__outbox_failed_options = {
    .name = "outbox failed",
    .about = "List dead letters: events that failed too often, or permanently. 'outbox retry' "
             "delivers them again, 'outbox discard' deletes them.",
    COMMAND_SPECS(failed),
};

static struct hf_str event_json(struct cli *cli, const struct hf_event *event)
{
    struct hf_str json;

    return hf_event_json(cli->scope, event, &json) == HF_OK ? json : (struct hf_str){0};
}

static void add_event(struct rows *rows, struct cli *cli, const struct hf_outbox_event *stored)
{
    static const char *const states[] = {"", "pending", "failed", "published"};
    _Static_assert(ARRAY_LEN(states) == HF_OUTBOX_PUBLISHED + 1, "every one has a name");
    const struct hf_event *event = &stored->event;
    struct rows_field fields[] = {
        hf__rows_text("id", event->id),
        hf__rows_text("type", event->type),
        hf__rows_text("key", event->key),
        hf__rows_text("state", hf_str_from(states[stored->state])),
        hf__rows_bool("urgent", event->urgent),
        hf__rows_time(cli, "time", event->time_us),
        hf__rows_number(cli, "attempts", stored->attempts),
        hf__rows_text("error", stored->error == HF_OK ? (struct hf_str){0} : stored->error_text),
        {.name = "cause",
         .kind = ROWS_JSON,
         .text = hf__cli_json_of_text(cli->scope, stored->cause)},
        {.name = "blob", .kind = ROWS_JSON, .text = hf__cli_json_of_text(cli->scope, stored->blob)},
        {.name = "blob_error",
         .kind = ROWS_JSON,
         .text = hf__cli_json_of_text(cli->scope,
                                      stored->blob_error == HF_OK
                                          ? (struct hf_str){0}
                                          : hf_str_from(hf_status_name(stored->blob_error)))},
        {.name = "event", .kind = ROWS_JSON, .text = event_json(cli, event)}};

    hf__rows_add(rows, fields, COMMAND_LEN(fields));
}

static enum hf_status next_page(struct cli *cli, const struct settings *settings,
                                struct hf_outbox *outbox,
                                const struct hf_event_list_options *options,
                                struct hf_event_list *list)
{
    switch ((enum list_state)settings->state) {
    case LIST_FAILED:
        return hf_outbox_failed(cli->scope, outbox, options, list);
    case LIST_HISTORY:
        return hf_outbox_history(cli->scope, outbox, options, list);
    case LIST_PENDING:
        break;
    }
    return hf_outbox_pending(cli->scope, outbox, options, list);
}

static enum hf_status outbox_list(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_event_list_options o = {.size = sizeof(o),
                                      .not_due_too = settings->later,
                                      .oldest_first = settings->oldest_first,
                                      .type = settings->type,
                                      .key = settings->key,
                                      .tenant = settings->tenant,
                                      .cause = settings->cause,
                                      .no_payload = !c->database->json && !c->database->jsonl};
    struct rows *rows = hf__command_rows(c, "events");
    struct hf_event_list page;

    do {
        uint64_t left = settings->limit ? settings->limit - rows->count : PAGE;

        o.limit = (uint32_t)(left < PAGE ? left : PAGE);
        TRY(next_page(c->cli, settings, c->place, &o, &page));
        for (size_t i = 0; i < page.events_len; i++)
            add_event(rows, c->cli, &page.events[i]);
        o.after = page.next;
    } while (o.after.ptr && (!settings->limit || rows->count < settings->limit) &&
             !ferror(c->cli->out));
    return HF_OK;
}

COMMAND_OF(outbox_ls, outbox_list, COMMAND_SETTINGS(struct settings), .place = &outbox_place,
           .table = COMMAND_LOOKS, .list = "events");

static enum hf_status failed_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->state = LIST_FAILED;
    return HF_OK;
}

COMMAND_OF(outbox_failed, outbox_list, COMMAND_SETTINGS(struct settings), .place = &outbox_place,
           .table = COMMAND_LOOKS, .list = "events", .check = failed_check);

/* ---- retry, discard ------------------------------------------------------------------------- */

static const struct option_spec chosen_specs[] = {
    OPT_FLAG("all", all, "All dead letters, or all of a type, key, tenant or cause.",
             .heading = "Events"),
    ONLY_SPECS,
    CAUSE_SPEC,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example retry_examples[] = {
    {"holdfast outbox retry --all", "After the problem is solved: deliver the dead letters."},
    {"holdfast outbox retry 01k3x5", "One of them."},
};

const struct options_table hf__outbox_retry_options = {
    .name = "outbox retry",
    .operands = "[ID...]",
    .about = "Deliver dead letters again, with their attempts reset. Given by id, events that wait "
             "for a retry are retried at once.",
    COMMAND_SPECS_OF(chosen, retry),
};

static const struct option_example discard_examples[] = {
    {"holdfast outbox discard --all --type test.ping", "Dead letters of a type."},
};

const struct options_table hf__outbox_discard_options = {
    .name = "outbox discard",
    .operands = "[ID...]",
    .about = "Delete dead letters; given by id, also pending events. They cannot be restored.",
    COMMAND_SPECS_OF(chosen, discard),
};

typedef enum hf_status chosen_fn(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_str *ids, size_t len, uint64_t *done);
typedef enum hf_status all_fn(struct hf_scope *s, struct hf_outbox *outbox,
                              const struct hf_event_list_options *options, uint64_t *done);

/* What is done to chosen events. */
struct choice {
    chosen_fn *chosen;
    all_fn *all;
    const char *count_name;
};

static enum hf_status choice_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if ((c->operands_len > 0) == settings->all)
        return hf__command_fail(c, CLI_USAGE, "%s",
                                settings->all ? "ids and --all cannot be combined"
                                              : "missing argument: give ids or --all");
    if (!settings->all && (settings->type.ptr || settings->key.ptr || settings->tenant.ptr ||
                           settings->cause.ptr || settings->limit))
        return hf__command_fail(
            c, CLI_USAGE,
            "--type, --key, --tenant, --cause and --limit need --all and cannot be combined with "
            "ids");
    return HF_OK;
}

static enum hf_status choice_do(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct choice *choice = c->command->data;
    struct hf_str *ids = hf_scope_alloc(c->scope, (c->operands_len + 1) * sizeof(*ids));
    enum hf_status status;
    uint64_t done = 0;

    if (!ids)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < c->operands_len; i++)
        ids[i] = hf__command_operand(c, i);
    if (settings->all)
        status = choice->all(c->scope, c->place,
                             HF_OPTIONS(hf_event_list_options, .limit = (uint32_t)settings->limit,
                                        .type = settings->type, .key = settings->key,
                                        .tenant = settings->tenant, .cause = settings->cause),
                             &done);
    else
        status = choice->chosen(c->scope, c->place, ids, c->operands_len, &done);
    if (status != HF_OK)
        hf__command_failed(c);
    if (status == HF_OK || done)
        TRY(hf__command_count(c, choice->count_name, done));
    return status;
}

#define CHOICE_COMMAND(choice)                                                                     \
    {                                                                                              \
        COMMAND_SETTINGS(struct settings), .max = COMMAND_MANY, .place = &outbox_place,            \
                                           .table = COMMAND_EMPTY, .check = choice_check,          \
                                           .body = choice_do, .data = &(choice)                    \
    }

static const struct choice retry_choice = {hf_outbox_retry, hf_outbox_retry_all, "waiting"};

const struct command hf__outbox_retry_command = CHOICE_COMMAND(retry_choice);

static const struct choice discard_choice = {hf_outbox_discard, hf_outbox_discard_all, "discarded"};

const struct command hf__outbox_discard_command = CHOICE_COMMAND(discard_choice);

/* ---- stats ---------------------------------------------------------------------------------- */

static const struct option_spec stats_specs[] = {
    OPT_NUMBER("scan", scan, 0, UINT32_MAX, "Read at most this many events; all by default."),
    ONLY_SPECS,
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example stats_examples[] = {
    {"holdfast outbox stats --json", "For monitoring: oldest_due_ms is the lag of the relays."},
    {"holdfast outbox stats --tenant acme", "Of one tenant."},
};

const struct options_table hf__outbox_stats_options = {
    .name = "outbox stats",
    .about = "Print how many events are pending, dead letters or delivered, the age of the oldest, "
             "and the causes of failures.",
    COMMAND_SPECS(stats),
};

static size_t cause_fields(struct cli *cli, const void *all, size_t at, struct rows_field *fields)
{
    const struct hf_outbox_stats *stats = all;

    fields[0] = hf__rows_number(cli, "count", stats->causes[at].count);
    fields[1] = hf__rows_text("cause", stats->causes[at].cause);
    fields[2] = hf__rows_text("example", stats->causes[at].example);
    return 3;
}

static enum hf_status outbox_stats(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_outbox_stats stats = {.whole = true};
    struct hf_outbox_pause pause = {.paused = false};

    if (c->place)
        TRY(hf_outbox_paused(c->scope, c->place, &pause));
    if (c->place)
        TRY(hf_outbox_stats_of(c->scope, c->place,
                               HF_OPTIONS(hf_event_list_options, .limit = (uint32_t)settings->scan,
                                          .type = settings->type, .key = settings->key,
                                          .tenant = settings->tenant),
                               &stats));
    struct rows_field fields[] = {hf__rows_number(c->cli, "pending", stats.pending),
                                  hf__rows_number(c->cli, "due", stats.due),
                                  hf__rows_number(c->cli, "scheduled", stats.scheduled),
                                  hf__rows_number(c->cli, "retrying", stats.retrying),
                                  hf__rows_number(c->cli, "urgent", stats.urgent),
                                  hf__rows_number(c->cli, "failed", stats.failed),
                                  hf__rows_number(c->cli, "published", stats.published),
                                  hf__rows_ms(c->cli, "oldest_due_ms", stats.oldest_due_ms),
                                  hf__rows_ms(c->cli, "oldest_failed_ms", stats.oldest_failed_ms),
                                  hf__rows_number(c->cli, "fullest_bucket", stats.fullest),
                                  hf__rows_number(c->cli, "unreadable", stats.unreadable),
                                  hf__rows_bool("whole", stats.whole),
                                  hf__rows_bool("paused", pause.paused),
                                  hf__rows_text("paused_why", pause.why),
                                  hf__rows_array(c->cli, "causes", &stats, stats.causes_len,
                                                 cause_fields)};

    fields[COMMAND_LEN(fields) - 1].kind = ROWS_RAW; /* for people, too */
    return hf__command_print(c, fields, COMMAND_LEN(fields));
}

COMMAND_OF(outbox_stats, outbox_stats, COMMAND_SETTINGS(struct settings), .place = &outbox_place,
           .table = COMMAND_LOOKS);

/* ---- pause, resume -------------------------------------------------------------------------- */

static const struct option_spec pause_specs[] = {
    OPT_TEXT("why", "TEXT", why, "The reason, for others who look: in 'outbox stats'."),
    OUTBOX_TABLE(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example pause_examples[] = {
    {"holdfast outbox pause --why 'the shop is down'",
     "Relays finish what is in flight, and wait."},
};

const struct options_table hf__outbox_pause_options = {
    .name = "outbox pause",
    .about = "All relays of the outbox pause, in whatever process they are, until 'outbox resume'. "
             "They notice it with their next heartbeat, within 5 seconds by default. Events are "
             "stored as before.",
    COMMAND_SPECS(pause),
};

static enum hf_status outbox_pause(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf_outbox_pause(c->scope, c->place, settings->why);
}

COMMAND_OF(outbox_pause, outbox_pause, COMMAND_SETTINGS(struct settings), .place = &outbox_place);

static const struct option_spec resume_specs[] = {
    OUTBOX_TABLE(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example resume_examples[] = {
    {"holdfast outbox resume", "Relays deliver again, within 5 seconds."},
};

const struct options_table hf__outbox_resume_options = {
    .name = "outbox resume",
    .about = "Relays that 'outbox pause' has paused go on. It is no failure if they were not "
             "paused.",
    COMMAND_SPECS(resume),
};

static enum hf_status outbox_resume(struct command_ctx *c)
{
    return hf_outbox_resume(c->scope, c->place);
}

COMMAND_OF(outbox_resume, outbox_resume, COMMAND_SETTINGS(struct settings), .place = &outbox_place);

/* ---- cleanup, replay ------------------------------------------------------------------------ */

static const struct option_spec cleanup_specs[] = {
    OPT_TIME("older", older_ms, 0, UINT64_MAX / 1000,
             "Only events that were delivered longer ago than this.", .fallback = "168h"),
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example cleanup_examples[] = {
    {"holdfast outbox cleanup --older 24h", "Keep one day of history."},
};

const struct options_table hf__outbox_cleanup_options = {
    .name = "outbox cleanup",
    .about = "Delete delivered events from the history. Pending events and dead letters are kept.",
    COMMAND_SPECS(cleanup),
};

static enum hf_status outbox_cleanup(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct hf_env *env = hf_scope_env(c->scope);
    uint64_t done = 0;

    TRY(hf_outbox_cleanup(c->scope, c->place,
                          env->wall_us(env->user) - (int64_t)settings->older_ms * 1000, &done));
    return hf__command_count(c, "deleted", done);
}

COMMAND_OF(outbox_cleanup, outbox_cleanup, COMMAND_SETTINGS(struct settings),
           .place = &outbox_place, .table = COMMAND_EMPTY);

static const struct option_spec replay_specs[] = {
    ONLY_SPECS,
    LIMIT_SPEC,
    OPT_TIME("newer", older_ms, 0, UINT64_MAX / 1000,
             "Only events that were delivered within this time; the whole history by default."),
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example replay_examples[] = {
    {"holdfast outbox replay --newer 1h", "Deliver the events of the last hour again."},
};

const struct options_table hf__outbox_replay_options = {
    .name = "outbox replay",
    .about = "Deliver events of the history again, with the same ids.",
    COMMAND_SPECS(replay),
};

static enum hf_status outbox_replay(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct hf_env *env = hf_scope_env(c->scope);
    struct hf_event_list_options o = {.size = sizeof(o),
                                      .limit = (uint32_t)settings->limit,
                                      .type = settings->type,
                                      .key = settings->key,
                                      .tenant = settings->tenant};
    uint64_t done = 0;

    if (settings->older_ms)
        o.from_us = env->wall_us(env->user) - (int64_t)settings->older_ms * 1000;
    TRY(hf_outbox_replay(c->scope, c->place, &o, &done));
    return hf__command_count(c, "waiting", done);
}

COMMAND_OF(outbox_replay, outbox_replay, COMMAND_SETTINGS(struct settings), .place = &outbox_place,
           .table = COMMAND_EMPTY);

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    OPT_TIME("older", older_ms, 1000, (uint64_t)UINT32_MAX * 1000,
             "Keep payloads younger than this: they may belong to an event that is being stored.",
             .fallback = "24h"),
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example sweep_examples[] = {
    {"holdfast outbox sweep --blobs s3://payloads", "Run it once a night, for example."},
};

const struct options_table hf__outbox_sweep_options = {
    .name = "outbox sweep",
    .about =
        "Delete payloads from the blob store that no pending event, dead letter or event of the "
        "history references. Reads the whole table.",
    COMMAND_SPECS(sweep),
};

static enum hf_status sweep_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return settings->blobs.ptr ? HF_OK : hf__command_missing(c, "--blobs");
}

static enum hf_status outbox_sweep(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint64_t removed = 0;

    hf_scope_timeout_ms(c->scope, 0); /* it can be interrupted, and called again */
    TRY(hf_outbox_sweep_blobs(c->scope, c->place, (uint32_t)(settings->older_ms / 1000), &removed));
    return hf__command_count(c, "blobs", removed);
}

/* It needs the table: an empty one would use none of the blobs. */
COMMAND_OF(outbox_sweep, outbox_sweep, COMMAND_SETTINGS(struct settings), .place = &outbox_place,
           .table = COMMAND_NEEDS, .check = sweep_check);
