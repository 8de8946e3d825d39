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

#define FIELD(member) .offset = offsetof(struct settings, member)

static const struct option_spec index_specs[] = {
    {.heading = "Which keys",
     .kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .text = "The table; \"keys\" by default.",
     FIELD(table)},
    DATABASE_ONE(struct settings),
};

static const struct option_example index_examples[] = {
    {"holdfast kv index", "From now on kv ls -n users reads the namespace \"users\" alone."},
};

const struct options_table hf__kv_index_options = {
    .name = "kv index",
    .about = "Give a table without partitions an index of namespaces, or make a table with it: "
             "kv ls reads the keys of its namespace alone then, and not the whole table. Each key "
             "that is made or removed costs one more write at Amazon; setting it again does not. "
             "First stop the programs that have the table open, or start them again afterwards and "
             "call this once more: it adds what is missing. Older versions of holdfast cannot open "
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

const struct command hf__kv_index_command = {COMMAND_SETTINGS(struct settings),
                                             .table = COMMAND_MAKES, .body = kv_index};
