/*
 * cli/blobs/cmd_blobs.c: bytes by their digest, from a shell: `holdfast blobs put|get|ls`. What nobody
 * uses any more is removed by `holdfast events sweep`, which knows what events have.
 */
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/input.h"

#include <holdfast/blob.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define DIRECTORY "dir:"

struct settings {
    struct database_settings database;
    struct hf_str blobs;
    struct hf_str part;
    uint64_t limit;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define BLOBS_SPECS                                                                                \
    {.kind = OPTION_TEXT,                                                                          \
     .name = "blobs",                                                                              \
     .value = "URL",                                                                               \
     .env = "HOLDFAST_BLOBS",                                                                      \
     .text = "The blob store: dir:PATH, or s3://BUCKET/PREFIX with ?endpoint=URL, ?region=, "      \
             "?path_style=1, ?create=1. By default the one beside an embedded database.",          \
     FIELD(blobs)},                                                                                \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "part", .value = "NAME",                                      \
        .text = "A part of it, for those who share a store. What events, an outbox or keys have "  \
                "is in the part with the name of their table, with its prefix.",                   \
        FIELD(part)                                                                                \
    }

/* A blob store, and what it is a part of or beside. */
struct place {
    struct hf_db *db;
    struct hf_blobs *whole;
    struct hf_blobs *part; /* NULL: none was named */
    struct hf_blobs *blobs;
};

static void close_place(struct place *place)
{
    hf_blobs_close(place->part);
    hf_blobs_close(place->whole);
    hf_db_close(place->db);
}

static bool is_directory(struct hf_str url)
{
    return url.len > strlen(DIRECTORY) && memcmp(url.ptr, DIRECTORY, strlen(DIRECTORY)) == 0;
}

/* Looking makes nothing: a directory that is named has to be there. */
static bool is_there(struct cli *cli, const char *command, const struct settings *settings,
                     int *ends)
{
    struct stat info;
    const char *path;

    if (settings->database.create || !is_directory(settings->blobs))
        return true;
    path = settings->blobs.ptr + strlen(DIRECTORY);
    if (stat(path, &info) == 0 || errno != ENOENT)
        return true;
    *ends = hf__cli_fail(cli, command, CLI_NOT_FOUND, "there is no directory %s", path);
    return false;
}

/* False: the error was shown, *ends says how to end. */
static bool open_place(struct cli *cli, const char *command, const struct settings *settings,
                       struct place *place, int *ends)
{
    enum hf_status status;

    *place = (struct place){0};
    if (settings->blobs.ptr) {
        if (!is_there(cli, command, settings, ends))
            return false;
        hf_scope_timeout_ms(cli->scope, (uint32_t)settings->database.timeout_ms);
        status =
            hf__cli_events_open_blobs(cli, &settings->database, settings->blobs, &place->whole);
    } else {
        if (!hf__database_open(cli, command, &settings->database, &place->db, ends))
            return false;
        status = hf_blobs_open_beside(cli->scope, place->db, &place->whole);
    }
    if (status == HF_OK && settings->part.ptr)
        status = hf_blobs_part(cli->scope, place->whole, settings->part, &place->part);
    place->blobs = place->part ? place->part : place->whole;
    if (status == HF_OK)
        return true;
    *ends = status == HF_UNSUPPORTED
                ? hf__cli_fail(cli, command, CLI_USAGE,
                               "--blobs is missing: only an embedded database has blobs beside it")
                : hf__database_fail(cli, command);
    close_place(place);
    return false;
}

/* ---- put ------------------------------------------------------------------------------------ */

static const struct option_spec put_specs[] = {
    BLOBS_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example put_examples[] = {
    {"holdfast blobs put photo.jpg --blobs dir:blobs", "Its digest is its name."},
};

const struct options_table hf__blobs_put_options = {
    .name = "blobs put",
    .operands = "[FILE]",
    .about = "Store a file, or standard input, and print its digest: the SHA-256 of its bytes, by "
             "which it is found. The same bytes are stored once.",
    .specs = put_specs,
    .len = COMMAND_LEN(put_specs),
    .examples = put_examples,
    .examples_len = COMMAND_LEN(put_examples),
    .notes = "A sweep removes what no event has: put what an event is to have, and append soon.",
};

int hf__blobs_put_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct hf_str bytes, digest, error = {0};
    struct options options;
    struct place place;
    int ends;

    if (!hf__cli_operands(cli, &hf__blobs_put_options, args_len, args, 0, 1, &settings, &options,
                          &ends))
        return ends;
    bytes = hf__input_read(cli->scope, options.operands_len ? options.operands[0] : "-",
                           HF_BLOB_MAX, &error);
    if (!bytes.ptr)
        return hf__cli_fail(cli, "blobs put", CLI_USAGE, "%.*s", HF_FMT(error));
    settings.database.create = true;
    if (!open_place(cli, "blobs put", &settings, &place, &ends))
        return ends;
    if (hf_blob_put(cli->scope, place.blobs, hf_bytes_of(bytes.ptr, bytes.len), &digest) != HF_OK) {
        ends = hf__database_fail(cli, "blobs put");
    } else {
        struct rows_field fields[] = {hf__rows_text("digest", digest),
                                      hf__rows_number(cli, "size", bytes.len)};

        ends = hf__rows_one(cli, &settings.database, fields, COMMAND_LEN(fields));
    }
    close_place(&place);
    return ends;
}

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    BLOBS_SPECS,
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast blobs get 2cf24dba... > photo.jpg", "What was put, verified."},
    {"holdfast blobs get 2cf24dba... --part events > payload", "The payload of an event."},
};

const struct options_table hf__blobs_get_options = {
    .name = "blobs get",
    .operands = "DIGEST",
    .about = "Write the bytes with this digest to standard output, byte for byte.",
    .specs = get_specs,
    .len = COMMAND_LEN(get_specs),
    .examples = get_examples,
    .examples_len = COMMAND_LEN(get_examples),
    .notes = "The exit code is 8, and nothing is written, when they are not what was put.",
};

int hf__blobs_get_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct options options;
    struct hf_bytes bytes;
    struct place place;
    int ends;

    if (!hf__cli_operands(cli, &hf__blobs_get_options, args_len, args, 1, 1, &settings, &options,
                          &ends) ||
        !open_place(cli, "blobs get", &settings, &place, &ends))
        return ends;
    if (hf_blob_get(cli->scope, place.blobs, hf_str_from(options.operands[0]), &bytes) != HF_OK) {
        ends = hf__database_fail(cli, "blobs get");
    } else {
        fwrite(bytes.ptr, 1, bytes.len, cli->out);
        ends = hf__cli_flushed(cli, CLI_OK);
    }
    close_place(&place);
    return ends;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    {.kind = OPTION_NUMBER,
     .name = "limit",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "At most so many.",
     FIELD(limit)},
    BLOBS_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast blobs ls --db embedded:shop.db", "What programs put beside a database."},
    {"holdfast blobs ls --db embedded:shop.db --part events", "What its events have there."},
};

const struct options_table hf__blobs_ls_options = {
    .name = "blobs ls",
    .about =
        "List blobs, in no order: digest, size, and when they were put last. Those of parts are "
        "listed with --part only.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

struct listing {
    struct cli *cli;
    const struct settings *settings;
    struct rows *rows;
};

static enum hf_status add_blob(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    struct listing *l = user;
    struct hf_scope_mark mark = hf_scope_mark(l->cli->scope);
    struct rows_field fields[] = {hf__rows_text("digest", blob->digest),
                                  hf__rows_number(l->cli, "size", blob->size),
                                  hf__rows_time(l->cli, "put", blob->put_us)};

    if ((l->settings->limit && l->rows->count == l->settings->limit) || ferror(l->cli->out))
        return HF_CANCELED;
    hf__rows_add(l->rows, fields, COMMAND_LEN(fields));
    hf_scope_rewind(l->cli->scope, mark);
    hf_scope_timeout_ms(s, (uint32_t)l->settings->database.timeout_ms);
    return HF_OK;
}

int hf__blobs_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct listing l = {.cli = cli, .settings = &settings};
    struct options options;
    enum hf_status status;
    struct place place;
    int ends;

    if (!hf__cli_options(cli, &hf__blobs_ls_options, args_len, args, &settings, &options, &ends))
        return ends;
    l.rows = hf_scope_alloc(cli->scope, sizeof(*l.rows));
    if (!l.rows)
        return hf__cli_fail(cli, "blobs ls", CLI_FAILED, "out of memory");
    if (!open_place(cli, "blobs ls", &settings, &place, &ends))
        return ends;
    hf__rows_begin(l.rows, cli, &settings.database, "blobs");
    status = hf_blobs_list(cli->scope, place.blobs, add_blob, &l);
    ends =
        status == HF_OK || status == HF_CANCELED ? (int)CLI_OK : hf__database_fail(cli, "blobs ls");
    ends = hf__rows_end(l.rows, (struct hf_str){0}, ends);
    close_place(&place);
    return ends;
}
