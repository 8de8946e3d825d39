/*
 * cli/blobs/cmd_blobs.c: bytes by their digest, from a shell: `holdfast blobs put|get|ls`. What nobody
 * uses any more is removed by `holdfast events sweep`, which knows what events have.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/input.h"

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
    struct hf_str bytes; /* put: what is put */
};

#define BLOBS_SPECS                                                                                \
    OPT_TEXT("blobs", "URL", blobs,                                                                \
             "The blob store: dir:PATH, or s3://BUCKET/PREFIX with ?endpoint=URL, ?region=, "      \
             "?path_style=1, ?create=1. By default the one beside an embedded database.",          \
             .env = "HOLDFAST_BLOBS"),                                                             \
        OPT_TEXT(                                                                                  \
            "part", "NAME", part,                                                                  \
            "Part of the store, for patterns that share it. Blobs of events, an outbox or keys "   \
            "are in the part named like their table, including its prefix.")

static bool is_directory(struct hf_str url)
{
    return url.len > strlen(DIRECTORY) && memcmp(url.ptr, DIRECTORY, strlen(DIRECTORY)) == 0;
}

/* Looking makes nothing: a directory that is named has to be there. */
static enum hf_status directory_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct stat info;
    const char *path;

    c->without_db = settings->blobs.ptr != NULL;
    if (!is_directory(settings->blobs))
        return HF_OK;
    path = settings->blobs.ptr + strlen(DIRECTORY);
    if (stat(path, &info) == 0 || errno != ENOENT)
        return HF_OK;
    return hf__command_fail(c, CLI_NOT_FOUND, "directory %s does not exist", path);
}

static enum hf_status whole_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (!c->without_db)
        return hf_blobs_open_beside(c->scope, c->db, &c->blobs);
    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    return hf__database_open_blobs(c->cli, c->database, settings->blobs, &c->blobs);
}

/* The store, or the part of it that was named. */
static enum hf_status blobs_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    enum hf_status status = whole_open(c);
    struct hf_blobs *part;

    if (status == HF_OK && settings->part.ptr) {
        status = hf_blobs_part(c->scope, c->blobs, settings->part, &part);
        if (status == HF_OK)
            c->place = part;
    } else if (status == HF_OK) {
        c->place = c->blobs;
        c->blobs = NULL;
    }
    if (status == HF_UNSUPPORTED)
        return hf__command_fail(
            c, CLI_USAGE,
            "missing option --blobs: only an embedded database has a default blob store");
    return status;
}

static void blobs_close(void *blobs)
{
    hf_blobs_close(blobs);
}

static const struct command_place blobs_place = {blobs_open, blobs_close, NULL};

/* ---- put ------------------------------------------------------------------------------------ */

static const struct option_spec put_specs[] = {
    BLOBS_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example put_examples[] = {
    {"holdfast blobs put photo.jpg --blobs dir:blobs",
     "Prints the digest, which is the name of the blob."},
};

const struct options_table hf__blobs_put_options = {
    .name = "blobs put",
    .operands = "[FILE]",
    .about = "Store a file, or standard input, and print its digest: the SHA-256 of its bytes, by "
             "which it is found. Equal bytes are stored once.",
    COMMAND_SPECS(put),
    .notes =
        "A sweep removes blobs that no event references: append the event soon after you store "
        "its blob.",
};

static enum hf_status blobs_put_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str error = {0};

    c->without_db = settings->blobs.ptr != NULL;
    settings->bytes =
        hf__input_read(c->scope, c->operands_len ? c->operands[0] : "-", HF_BLOB_MAX, &error);
    return settings->bytes.ptr ? HF_OK : hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
}

static enum hf_status blobs_put(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_bytes bytes = hf_bytes_of(settings->bytes.ptr, settings->bytes.len);
    struct hf_str digest;

    TRY(hf_blob_put(c->scope, c->place, bytes, &digest));
    return COMMAND_PRINT(c, hf__rows_text("digest", digest),
                         hf__rows_number(c->cli, "size", bytes.len));
}

COMMAND_OF(blobs_put, blobs_put, COMMAND_SETTINGS(struct settings), .max = 1, .place = &blobs_place,
           .table = COMMAND_MAKES, .check = blobs_put_check);

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    BLOBS_SPECS,
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast blobs get 2cf24dba... > photo.jpg", "The bytes that were stored, verified."},
    {"holdfast blobs get 2cf24dba... --part events > payload", "The payload of an event."},
};

const struct options_table hf__blobs_get_options = {
    .name = "blobs get",
    .operands = "DIGEST",
    .about = "Write the blob with this digest to standard output, byte for byte.",
    COMMAND_SPECS(get),
    .notes = "If the bytes do not match the digest, nothing is written and the exit code is 8.",
};

static enum hf_status blobs_get(struct command_ctx *c)
{
    struct hf_bytes bytes;

    TRY(hf_blob_get(c->scope, c->place, hf__command_operand(c, 0), &bytes));
    fwrite(bytes.ptr, 1, bytes.len, c->cli->out);
    return HF_OK;
}

COMMAND_OF(blobs_get, blobs_get, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &blobs_place, .check = directory_check);

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    BLOBS_SPECS,
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast blobs ls --db embedded:shop.db", "Blobs that programs stored beside a database."},
    {"holdfast blobs ls --db embedded:shop.db --part events", "Blobs of its events."},
};

const struct options_table hf__blobs_ls_options = {
    .name = "blobs ls",
    .about =
        "List blobs in no particular order: digest, size, and when they were last stored. Blobs "
        "of a part are listed with --part only.",
    COMMAND_SPECS(ls),
};

static enum hf_status blob_add(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    struct command_ctx *c = user;
    const struct settings *settings = c->settings;
    struct hf_scope_mark mark = hf_scope_mark(c->scope);

    if ((settings->limit && c->rows->count == settings->limit) || ferror(c->cli->out))
        return HF_CANCELED;
    COMMAND_ROW(c->rows, hf__rows_text("digest", blob->digest),
                hf__rows_number(c->cli, "size", blob->size),
                hf__rows_time(c->cli, "put", blob->put_us));
    hf_scope_rewind(c->scope, mark);
    hf_scope_timeout_ms(s, (uint32_t)c->database->timeout_ms);
    return HF_OK;
}

static enum hf_status blobs_ls(struct command_ctx *c)
{
    enum hf_status status;

    (void)hf__command_rows(c, "blobs");
    status = hf_blobs_list(c->scope, c->place, blob_add, c);
    return status == HF_CANCELED ? HF_OK : status;
}

COMMAND_OF(blobs_ls, blobs_ls, COMMAND_SETTINGS(struct settings), .place = &blobs_place,
           .check = directory_check);
