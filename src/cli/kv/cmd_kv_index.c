/*
 * cli/kv/cmd_kv_index.c: `holdfast kv index`: a table of keys and values gets an index of namespaces,
 * so that a list reads its namespace alone. The library does it (kv/kv_table.c).
 */
#include "cli/frame/commands.h"
#include "cli/frame/database.h"
#include "cli/frame/rows.h"

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
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
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
    .specs = index_specs,
    .len = COMMAND_LEN(index_specs),
    .examples = index_examples,
    .examples_len = COMMAND_LEN(index_examples),
};

int hf__kv_index_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.table = {0}};
    struct options options;
    uint64_t added = 0;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_index_options, args_len, args, 0, 0, &settings, &options,
                          &ends))
        return ends;
    settings.database.create = true;
    if (!hf__database_open(cli, "kv index", &settings.database, &db, &ends))
        return ends;
    hf_scope_timeout_ms(cli->scope, 0); /* it can be interrupted, and called again */
    if (hf_kv_add_space_index(cli->scope, db, HF_OPTIONS(hf_kv_options, .table = settings.table),
                              &added) != HF_OK) {
        ends = hf__database_fail(cli, "kv index");
    } else {
        struct rows_field field = hf__rows_number(cli, "added", added);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    hf_db_close(db);
    return ends;
}
