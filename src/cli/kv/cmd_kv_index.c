/*
 * cli/kv/cmd_kv_index.c: `holdfast kv index`: a table of keys and values gets an index of namespaces,
 * so that a list reads its namespace alone. The library does it (kv/kv_table.c).
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <holdfast/kv.h>

struct settings {
    struct database_settings database;
    struct hf_str table;
};

static const struct option_spec index_specs[] = {
    OPT_TEXT("table", "NAME", table, "Table; \"keys\" by default.", .heading = "Keys"),
    DATABASE_ONE(struct settings),
};

static const struct option_example index_examples[] = {
    {"holdfast kv index", "From then on 'kv ls -n users' reads only the namespace \"users\"."},
};

const struct options_table hf__kv_index_options = {
    .name = "kv index",
    .about =
        "Add a namespace index to a table without partitions, or create a table that has one. "
        "Then 'kv ls' reads only the keys of its namespace, not the whole table. At AWS each key "
        "that is created or deleted costs one more write; setting an existing key does not. "
        "First stop the programs that have the table open; or restart them afterwards, then run "
        "this command once more to add what is missing. Older versions of holdfast cannot open "
        "the table any more.",
    COMMAND_SPECS(index),
};

static enum hf_status kv_index(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint64_t added = 0;

    hf_scope_timeout_ms(c->scope, 0); /* it can be interrupted, and called again */
    TRY(hf_kv_add_space_index(c->scope, c->db, HF_OPTIONS(hf_kv_options, .table = settings->table),
                              &added));
    return hf__command_count(c, "added", added);
}

COMMAND_OF(kv_index, kv_index, COMMAND_SETTINGS(struct settings), .table = COMMAND_MAKES);
