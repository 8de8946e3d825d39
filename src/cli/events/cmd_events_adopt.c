/*
 * cli/events/cmd_events_adopt.c: `holdfast events adopt`: the events of another library's table, in an event
 * store.
 *
 * The keys of all of them are read and put in order (adopt_index.c), their rows are read in that order
 * and imported (adopt_import.c, events_row.c), and at the end the streams are compared. Their table is
 * not changed. Events keep their ids, so a run that was interrupted is repeated from the first event
 * on, and those that are there are compared and passed over; the same takes over what their programs
 * have appended since.
 */
#include "base/base.h"
#include "cli/events/adopt.h"
#include "cli/frame/commands.h"
#include "cli/frame/foreign_table.h"
#include "cli/frame/process/child.h"

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct hf_str from_url, objects;
    unsigned library;
    bool dry_run, renumber;
};

static const struct option_spec specs[] = {
    OPT_CHOICE("from", "schemeless", library,
               "The library whose programs write TABLE: @schemeless/event-store with its adapter "
               "for DynamoDB, in any version.",
               .fallback = "schemeless", .heading = "Their table"),
    FOREIGN_TABLE_DB,
    OPT_TEXT("objects", "URL", objects,
             "Where the library has stored large payloads: s3://BUCKET, or a folder with a "
             "copy of the bucket, as 'aws s3 sync' makes it."),
    OPT_FLAG("renumber", renumber,
             "Give all events new versions, in their order. Needed for streams whose sequences "
             "have gaps, or whose first events have none.",
             .heading = "Work"),
    OPT_FLAG("dry-run", dry_run, "Read and count all events: nothing is imported or created."),
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast events adopt prod-schemeless-event-store --dry-run", "Can all of it be imported?"},
    {"holdfast events adopt prod-schemeless-event-store",
     "Import it into the event store \"events\" of the same database."},
    {"holdfast events adopt prod-schemeless-event-store --objects s3://my-event-archive --blobs "
     "s3://shop-blobs",
     "With large payloads."},
    {"holdfast events adopt prod-schemeless-event-store --from-db dynamodb://eu-west-1 --db "
     "embedded:shop.db",
     "From an AWS account into a directory."},
};

const struct options_table hf__events_adopt_options = {
    .name = "events adopt",
    .operands = "TABLE",
    .about = "Import the events of another library's table into an event store: the same streams, "
             "versions, ids, times, causations and correlations. TABLE is not changed. Prints "
             "how many events and streams TABLE has, how many events were imported, existed "
             "before or were left out, and how many streams were verified: after the import, "
             "the last version of each stream is compared with its number of events in TABLE.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "After an interruption, run it again; also to import what was appended since. It keeps "
        "about 150 bytes of memory for each event. What cannot be imported is reported, with the "
        "rest of its stream; other streams are imported, and the exit code is 1.",
};

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status adopt_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__foreign_table_check(c, settings->from_url, settings->store.table, "event store");
}

/* Has it the key that tables of the library have had? */
static enum hf_status adopt_describe(struct adopt *a)
{
    struct hf_describe_table_result described;
    bool hashes = false, others = false;

    TRY(hf_describe_table(a->s, a->from, &(struct hf_describe_table){.table = a->table},
                          &described));
    for (size_t i = 0; i < described.table->key_schema_len; i++) {
        const struct hf_key_element *key = &described.table->key_schema[i];
        bool hash = key->type == HF_KEY_HASH && hf_str_equal(key->name, HF_STR("id"));
        bool sort = key->type == HF_KEY_RANGE && hf_str_equal(key->name, HF_STR("created"));

        hashes = hashes || hash;
        a->sorts = a->sorts || sort;
        others = others || (!hash && !sort);
    }
    for (size_t i = 0; i < described.table->attributes_len; i++) {
        const struct hf_attribute_definition *attribute = &described.table->attributes[i];

        others = others || (attribute->type != HF_SCALAR_S &&
                            (hf_str_equal(attribute->name, HF_STR("id")) ||
                             (a->sorts && hf_str_equal(attribute->name, HF_STR("created")))));
    }
    if (hashes && !others)
        return HF_OK;
    return hf__command_fail(a->c, CLI_USAGE,
                            "table '%.*s' has another key than tables of the schemeless event "
                            "store: check its name",
                            HF_FMT(a->table));
}

/* The bucket of --objects, unless that is a folder. */
static enum hf_status adopt_open_bucket(struct adopt *a)
{
    static const char scheme[] = "s3://";
    const size_t len = sizeof(scheme) - 1;
    struct hf_str url = a->objects;
    size_t end = len;
    enum hf_status status;

    if (url.len <= len || memcmp(url.ptr, scheme, len) != 0)
        return HF_OK;
    while (end < url.len && url.ptr[end] != '/' && url.ptr[end] != '?')
        end++;
    a->bucket_name = hf_str_of(url.ptr + len, end - len);
    status = hf__database_open_blobs(a->c->cli, a->c->database, url, &a->bucket);
    if (status != HF_OK) /* here, as a bucket that is not there is no table that is not */
        hf__command_failed(a->c);
    return status;
}

/* Both databases, and the event store unless this is a dry run. */
static enum hf_status adopt_open(struct adopt *a, struct foreign_table *from)
{
    struct command_ctx *c = a->c;
    const struct settings *settings = c->settings;

    TRY(hf__foreign_table_open(c, settings->from_url, from));
    a->from = from->db;
    TRY(adopt_describe(a));
    TRY(adopt_open_bucket(a));
    if (settings->dry_run)
        return HF_OK;
    TRY(hf__foreign_table_target(c));
    TRY(hf__cli_events_place_open(c, HF_OPTIONS(hf_events_options, .no_create = false)));
    a->store = c->place;
    c->place = NULL; /* closed below */
    return HF_OK;
}

/* ---- the work ------------------------------------------------------------------------------- */

static enum hf_status counts_print(struct adopt *a)
{
    struct command_ctx *c = a->c;
    struct rows_field imported = a->store ? hf__rows_number(c->cli, "imported", a->imported)
                                          : hf__rows_number(c->cli, "importable", a->done);

    hf__cli_events_progress_end(&a->progress);
    TRY(COMMAND_PRINT(c, hf__rows_number(c->cli, "events", a->entries_len),
                      hf__rows_number(c->cli, "streams", a->streams_len), imported,
                      hf__rows_number(c->cli, "existing", a->existing),
                      hf__rows_number(c->cli, "left", a->left),
                      hf__rows_number(c->cli, "verified", a->verified)));
    return a->incomplete ? hf__command_end(c, CLI_FAILED) : HF_OK;
}

static enum hf_status adopt_work(struct adopt *a)
{
    enum hf_status status;

    hf__cli_events_progress_begin(&a->progress, a->c->cli, a->c->database, "read");
    status = hf__adopt_events_index(a);
    a->progress.what = a->store ? "imported" : "read";
    if (status == HF_OK)
        status = hf__adopt_events_import(a);
    if (status == HF_OK && a->store)
        status = hf__adopt_events_verify(a);
    if (status == HF_OK)
        return counts_print(a);
    hf__cli_events_progress_end(&a->progress);
    return status;
}

static enum hf_status adopt_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct adopt a = {.c = c,
                      .s = c->scope,
                      .table = hf__command_operand(c, 0),
                      .renumber = settings->renumber,
                      .objects = settings->objects,
                      .timeout_ms = c->database->timeout_ms,
                      .memory = hf_scope_new(hf_scope_env(c->scope))};
    enum hf_status status = a.memory ? HF_OK : hf__command_fail(c, CLI_FAILED, "out of memory");
    struct foreign_table from = {0};

    if (status == HF_OK)
        status = adopt_open(&a, &from);
    if (status == HF_OK)
        status = adopt_work(&a);
    hf_events_close(a.store);
    hf_blobs_close(a.bucket);
    hf__foreign_table_close(c, &from);
    hf_scope_free(a.memory);
    return status;
}

COMMAND_OF(events_adopt, adopt_body, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .guarded = true, .check = adopt_check);
