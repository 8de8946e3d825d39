/*
 * cli/snapshot/cmd_snapshot.c: `holdfast snapshot save`: everything that a data directory holds as one file, from
 * which `holdfast serve --snapshot` starts.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <holdfast/engine.h>

struct settings {
    struct database_settings database;
};

static const struct option_spec snapshot_save_specs[] = {
    DATABASE_ONE(struct settings),
};

static const struct option_example snapshot_save_examples[] = {
    {"holdfast snapshot save shop.snapshot --db embedded:holdfast.db",
     "Save the directory of a server that is stopped."},
    {"holdfast serve --in-memory --snapshot shop.snapshot", "Start a server with it."},
};

const struct options_table hf__snapshot_save_options = {
    .name = "snapshot save",
    .operands = "FILE",
    .about =
        "Write everything that a data directory holds to one file: tables with their settings and indexes, "
        "items, streams and backups. No server may have the directory open. FILE is replaced whole if it "
        "exists.",
    COMMAND_SPECS(snapshot_save),
    .notes =
        "The file has checksums, which find damage. A snapshot can have 256 MiB of data; for larger "
        "databases use 'holdfast export', or copy the directory.",
};

static enum hf_status snapshot_check(struct command_ctx *c)
{
    struct hf_str path;

    if (!str_after(c->database->url, HF_STR("embedded:"), &path))
        return hf__command_fail(
            c, CLI_USAGE,
            "%.*s is no data directory: give --db embedded:DIR, and stop its server "
            "first",
            HF_FMT(c->database->url));
    c->database->read_only = true;
    return HF_OK;
}

static enum hf_status snapshot_save(struct command_ctx *c)
{
    struct hf_engine_snapshot *snapshot;
    struct hf_engine_snapshot_size size;
    enum hf_status status;

    hf_scope_timeout_ms(c->scope, 0);
    TRY(hf_engine_snapshot_take(c->scope, c->db, &snapshot));
    hf_engine_snapshot_size(snapshot, &size);
    status = hf_engine_snapshot_save(c->scope, snapshot, hf__command_operand(c, 0));
    hf_engine_snapshot_free(snapshot);
    TRY(status);
    return COMMAND_PRINT(c, hf__rows_number(c->cli, "tables", size.tables),
                         hf__rows_number(c->cli, "items", size.items),
                         hf__rows_number(c->cli, "bytes", size.bytes));
}

COMMAND_OF(snapshot_save, snapshot_save, COMMAND_SETTINGS(struct settings), .check = snapshot_check,
           .min = 1, .max = 1);
