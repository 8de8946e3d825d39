/*
 * cli/outbox/cmd_outbox_adopt.c: `holdfast outbox adopt`: the events of another library's table become
 * events of an outbox.
 *
 * A pass reads the whole table, sorts what waits there (adopt_rows.c), and moves it (adopt_move.c). What
 * the programs of that library do meanwhile is respected: a row that one of them has claimed is theirs
 * until its claim ends, and a claim that they take while we look is a condition that fails
 * (adopt_library.c). Whatever ends a run, the next one finishes it.
 *
 * What always holds:
 *
 *  (1) An event is in their table, where a relay of theirs may take it, or in the outbox, or its row
 *      has a mark that only we look for. Never two of these, but for a mark and the outbox.
 *  (2) The id of an event in the outbox is that of its row, so an event is taken once.
 *  (3) Events go into the outbox in the order in which the library would deliver them.
 *  (4) A row that cannot be read stays as it is, and is reported.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/foreign_table.h"
#include "cli/frame/process/child.h"
#include "cli/outbox/adopt.h"
#include "cli/outbox/outbox.h"

enum { BATCH_MAX = HF_TX_ACTIONS_MAX / 3 };

struct settings {
    struct database_settings database;
    struct hf_str from_url;
    struct hf_str table, blobs;
    unsigned library;
    bool failed, dry_run, follow, stream;
    uint64_t lease_ms, grace_ms, poll_ms, batch, buckets;
};

static const struct option_spec specs[] = {
    OPT_CHOICE("from", "outbox-event-bus excalibur excalibur-data", library,
               "The library whose programs write TABLE: outbox-event-bus with its adapter for "
               "DynamoDB, Excalibur.Outbox.DynamoDb, or Excalibur.Data.DynamoDb. Required.",
               .heading = "Their table"),
    FOREIGN_TABLE_DB,
    OPT_FLAG("failed", failed,
             "Also move events that have failed too often: they are delivered again."),
    OPT_TIME("lease", lease_ms, 1, OPTION_DAY_MS,
             "With --from excalibur and excalibur-data: how long a claim lasts there "
             "(LeaseTimeoutSeconds). Claims of outbox-event-bus say when they end.",
             .fallback = "2m"),
    OPT_TIME("grace", grace_ms, 0, OPTION_DAY_MS,
             "How much longer claims are respected than they last: for slow handlers, and for "
             "clocks that differ.",
             .fallback = "1m"),
    OPT_FLAG("dry-run", dry_run, "Only count: nothing is moved or created.", .heading = "Work"),
    OPT_FLAG("follow", follow,
             "Go on until a signal, and move new events: while programs still use the library."),
    OPT_TIME("poll", poll_ms, 100, OPTION_DAY_MS,
             "With --follow: time between two reads of the table.", .fallback = "10s"),
    OPT_NUMBER("batch", batch, 1, BATCH_MAX, "Number of events per transaction.", .fallback = "25"),
    OUTBOX_TABLE_MADE(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast outbox adopt events --from outbox-event-bus --dry-run",
     "Count the events that would be moved."},
    {"holdfast outbox adopt events --from outbox-event-bus",
     "Move the pending events of the table \"events\" into the outbox \"outbox\"."},
    {"holdfast outbox adopt outbox --from excalibur --table events-outbox --follow",
     "Go on moving while old programs still write."},
    {"holdfast outbox adopt events --from outbox-event-bus --from-db dynamodb://eu-west-1 --db "
     "http://127.0.0.1:8000",
     "From one database into another."},
};

const struct options_table hf__outbox_adopt_options = {
    .name = "outbox adopt",
    .operands = "TABLE",
    .about = "Move the pending events of another library's table into an outbox, with their "
             "ids, times and headers, in the order of that library. An event is moved once, "
             "whatever interrupts the command. Programs of the library may go on running: "
             "events that they have claimed are left to them. Prints how many events were "
             "moved, how many were duplicates (their ids had been emitted before), and how "
             "many stayed: delivered, failed, claimed, behind a claimed event of the same key, "
             "unreadable.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "After an interruption, run it again: within seven days if TABLE is in another database. "
        "Rows that are being moved between databases are marked, and programs of the "
        "library do not see them. Unreadable rows are reported and stay as they are; then "
        "the exit code is 1.",
};

/* ---- how it ends ---------------------------------------------------------------------------- */

static enum hf_status print_counts(struct adopt *a)
{
    struct command_ctx *c = a->c;
    const struct settings *settings = c->settings;
    struct rows_field moved = settings->dry_run ? hf__rows_number(c->cli, "movable", a->rows_len)
                                                : hf__rows_number(c->cli, "moved", a->moved);

    hf__progress_end(&a->progress);
    TRY(COMMAND_PRINT(c, moved, hf__rows_number(c->cli, "duplicates", a->duplicates),
                      hf__rows_number(c->cli, "delivered", a->delivered),
                      hf__rows_number(c->cli, "failed", a->failed),
                      hf__rows_number(c->cli, "claimed", a->claimed),
                      hf__rows_number(c->cli, "behind", a->behind),
                      hf__rows_number(c->cli, "unreadable", a->unreadable)));
    return a->unreadable ? hf__command_end(c, CLI_FAILED) : HF_OK;
}

/* Show the error of the scope, and what is done. */
static enum hf_status adopt_fail(struct adopt *a)
{
    struct hf_scope *s = a->s;
    const struct hf_error *error = hf_scope_error(s);
    enum hf_status status = error->status;
    bool doubt = error->may_have_happened;
    int ends = hf__database_exit(error);
    struct hf_str text;

    hf__progress_end(&a->progress);
    if (!a->moved && !a->duplicates)
        return status;
    text = hf_scope_format(s, "%s; %llu events were moved: run it again for the others",
                           hf_scope_error_text(s), (unsigned long long)a->moved);
    if (text.ptr)
        (void)hf_scope_fail(s, status, "%.*s", HF_FMT(text));
    if (doubt)
        (void)hf_scope_doubt(s);
    hf__command_failed(a->c);
    a->c->ends = ends;
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status adopt_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (hf__options_source(c->table, &c->options, "from") == OPTION_DEFAULT)
        return hf__command_missing(c, "--from");
    if (settings->follow && settings->dry_run)
        return hf__command_fail(c, CLI_USAGE, "--follow and --dry-run exclude each other");
    return hf__foreign_table_check(c, settings->from_url, settings->table, "outbox");
}

static bool is_text_key(const struct hf_table_description *table, struct hf_str name)
{
    for (size_t i = 0; i < table->attributes_len; i++)
        if (hf_str_equal(table->attributes[i].name, name))
            return table->attributes[i].type == HF_SCALAR_S;
    return false;
}

/* Is it a table of that library, by its keys? */
static enum hf_status adopt_describe(struct adopt *a)
{
    const struct adopt_library *library = a->library;
    struct hf_describe_table_result described;
    bool fits;

    TRY(hf_describe_table(a->s, a->from, &(struct hf_describe_table){.table = a->table},
                          &described));
    for (size_t i = 0; i < described.table->key_schema_len; i++) {
        struct hf_str name = hf_scope_copy(a->s, described.table->key_schema[i].name);

        TRY(hf_scope_built(a->s));
        if (described.table->key_schema[i].type == HF_KEY_HASH)
            a->hash = name;
        else
            a->sort = name;
    }
    fits = library->sorts == (a->sort.ptr != NULL) && is_text_key(described.table, a->hash) &&
           (!a->sort.ptr || is_text_key(described.table, a->sort)) &&
           (!library->hash || hf_str_equal(a->hash, hf_str_from(library->hash))) &&
           (!library->sort || hf_str_equal(a->sort, hf_str_from(library->sort)));
    if (fits)
        return HF_OK;
    return hf__command_fail(
        a->c, CLI_USAGE,
        "table '%.*s' has another key than tables of %s: check its name, and --from",
        HF_FMT(a->table), library->name);
}

/* Both databases, and the outbox unless this is a dry run. */
static enum hf_status adopt_open(struct adopt *a, struct foreign_table *from)
{
    struct command_ctx *c = a->c;
    const struct settings *settings = c->settings;

    TRY(hf__foreign_table_open(c, settings->from_url, from));
    a->from = from->db;
    TRY(adopt_describe(a));
    a->marking = from->opened != NULL;
    if (settings->dry_run)
        return HF_OK;
    TRY(hf__foreign_table_target(c));
    TRY(hf__cli_outbox_place_open(c, settings->blobs,
                                  HF_OPTIONS(hf_outbox_options, .table = settings->table,
                                             .buckets = (uint32_t)settings->buckets,
                                             .stream = settings->stream)));
    a->outbox = c->place;
    c->place = NULL; /* closed below */
    return HF_OK;
}

/* ---- the work ------------------------------------------------------------------------------- */

static enum hf_status adopt_pass(struct adopt *a)
{
    TRY(hf__adopt_rows(a));
    return a->outbox ? hf__adopt_move(a) : HF_OK;
}

static bool is_signalled(const struct adopt *a)
{
    return hf_scope_error(a->s)->status == HF_CANCELED && a->c->guard &&
           hf__guard_signal(a->c->guard);
}

static enum hf_status adopt_work(struct adopt *a)
{
    const struct settings *settings = a->c->settings;
    enum hf_status status = adopt_pass(a);

    while (status == HF_OK && settings->follow) {
        hf_scope_timeout_ms(a->s, 0);
        status = hf_scope_sleep_ms(a->s, (uint32_t)settings->poll_ms);
        if (status == HF_OK)
            status = adopt_pass(a);
    }
    if (status == HF_OK)
        return print_counts(a);
    if (!is_signalled(a))
        return adopt_fail(a);
    if (settings->follow) /* that is how it ends */
        return print_counts(a);
    TRY(adopt_fail(a));
    a->c->ends = CLI_SIGNAL + hf__guard_signal(a->c->guard);
    return HF_OK;
}

static enum hf_status adopt_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct adopt a = {.c = c,
                      .s = c->scope,
                      .library = &hf__adopt_libraries[settings->library],
                      .table = hf__command_operand(c, 0),
                      .failed_too = settings->failed,
                      .lease_us = (int64_t)settings->lease_ms * 1000,
                      .grace_us = (int64_t)settings->grace_ms * 1000,
                      .timeout_ms = c->database->timeout_ms,
                      .batch = (size_t)settings->batch,
                      .kept = hf_scope_new(hf_scope_env(c->scope)),
                      .pass = hf_scope_new(hf_scope_env(c->scope))};
    enum hf_status status = HF_OK;
    struct foreign_table from = {0};

    a.reported.s = a.kept;
    hf__progress_begin(&a.progress, c->cli, c->database->quiet, false);
    if (!a.kept || !a.pass)
        status = hf__command_fail(c, CLI_FAILED, "out of memory");
    if (status == HF_OK)
        status = adopt_open(&a, &from);
    if (status == HF_OK)
        status = adopt_work(&a);
    hf_outbox_close(a.outbox);
    hf__foreign_table_close(c, &from);
    hf_scope_free(a.pass);
    hf_scope_free(a.kept);
    return status;
}

COMMAND_OF(outbox_adopt, adopt_body, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .guarded = true, .reports_signal = true, .check = adopt_check);
