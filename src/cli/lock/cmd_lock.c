/*
 * cli/lock/cmd_lock.c: looking at locks, and taking one away: `holdfast lock ls|show|break`.
 *
 * Looking makes no table: where there is none, nobody has held a lock yet.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

#include <holdfast/lock.h>

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str id;
    bool all;
    uint64_t limit;
};

#define TABLE_SPEC OPT_TEXT("table", "NAME", table, "The table of locks.", .fallback = "locks")

static const char *mode_name(enum hf_lock_mode mode)
{
    switch (mode) {
    case HF_LOCK_EXCLUSIVE:
        return "exclusive";
    case HF_LOCK_SHARED:
        return "shared";
    case HF_LOCK_PERMIT:
        return "permit";
    }
    return "free";
}

static size_t holder_fields(struct cli *cli, const void *all, size_t at, struct rows_field *fields)
{
    const struct hf_lock_holder *holder = &((const struct hf_lock_info *)all)->holders[at];

    fields[0] = hf__rows_text("id", holder->id);
    fields[1] = hf__rows_text("owner", holder->owner);
    fields[2] = hf__rows_number(cli, "fence", holder->fence);
    fields[3] = hf__rows_number(cli, "lease_ms", holder->lease_ms);
    fields[4] = hf__rows_time(cli, "since", holder->since_us);
    fields[5] = hf__rows_time(cli, "renewed", holder->renewed_us);
    return 6;
}

static struct hf_str owners_text(struct cli *cli, const struct hf_lock_info *info)
{
    if (info->holders_len == 0)
        return (struct hf_str){0};
    if (info->holders_len == 1)
        return info->holders[0].owner;
    return hf_scope_format(cli->scope, "%.*s and %zu more", HF_FMT(info->holders[0].owner),
                           info->holders_len - 1);
}

enum { LOCK_FIELDS = 8 };

static void make_fields(struct cli *cli, const struct hf_lock_info *info,
                        struct rows_field fields[LOCK_FIELDS])
{
    const struct hf_lock_holder *first = info->holders_len ? &info->holders[0] : NULL;

    fields[0] = hf__rows_text("name", info->name);
    fields[1] = hf__rows_text("mode", hf_str_from(mode_name(info->mode)));
    fields[2] = hf__rows_number(cli, "fence", info->fence);
    fields[3] = hf__rows_text("owner", owners_text(cli, info));
    fields[4] = hf__rows_time(cli, "since", first ? first->since_us : 0);
    fields[5] = hf__rows_time(cli, "renewed", first ? first->renewed_us : 0);
    fields[6] = hf__rows_array(cli, "holders", info, info->holders_len, holder_fields);
    fields[7] = (struct rows_field){.name = "data", .kind = ROWS_RAW, .cut = true};
    if (info->data.ptr)
        fields[7].text = hf__cli_json_of_value(cli->scope, hf_item_value(info->data));
}

/* To look at them. */
static enum hf_status locks_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_lock_table *locks;

    TRY(hf_lock_table_open(c->scope, c->db,
                           HF_OPTIONS(hf_lock_table_options, .table = settings->table,
                                      .no_create = true, .no_threads = true),
                           &locks));
    c->place = locks;
    return HF_OK;
}

static void locks_close(void *locks)
{
    hf_lock_table_close(locks);
}

static const struct command_place locks_place = {locks_open, locks_close, NULL};

/* Nobody has held any lock yet, so not this one. */
static enum hf_status none_held(struct command_ctx *c)
{
    return hf__command_fail(c, CLI_NOT_FOUND, "lock '%s' does not exist: nobody has held it yet",
                            c->operands[0]);
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    OPT_FLAG("all", all, "Include locks that nobody holds.", .letter = 'a', .heading = "Locks"),
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    TABLE_SPEC,
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast lock ls", "Locks and their holders."},
    {"holdfast lock ls --json backup/ | jq '.locks[].holders[].owner'",
     "Owners of the locks whose names begin with backup/."},
};

const struct options_table hf__lock_ls_options = {
    .name = "lock ls",
    .operands = "[PREFIX]",
    .about = "List the locks that are held, or those whose names begin with PREFIX: name, mode, "
             "fence, owner, since when, last renewal, data. Reads the whole table.",
    COMMAND_SPECS(ls),
};

static enum hf_status locks_list(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_lock_list list = {.locks_len = 0};
    struct rows *rows;

    TRY(hf_lock_list(c->scope, c->place,
                     HF_OPTIONS(hf_lock_list_options, .free_too = settings->all,
                                .limit = (uint32_t)settings->limit,
                                .prefix = hf__command_operand(c, 0)),
                     &list));
    rows = hf__command_rows(c, "locks");
    for (size_t i = 0; i < list.locks_len; i++) {
        struct rows_field fields[LOCK_FIELDS];

        make_fields(c->cli, &list.locks[i], fields);
        hf__rows_add(rows, fields, LOCK_FIELDS);
    }
    return HF_OK;
}

COMMAND_OF(lock_ls, locks_list, COMMAND_SETTINGS(struct settings), .max = 1, .place = &locks_place,
           .table = COMMAND_LOOKS, .list = "locks");

/* ---- show ----------------------------------------------------------------------------------- */

static const struct option_spec show_specs[] = {
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example show_examples[] = {
    {"holdfast lock show backup", "Its holder, since when, and the data stored with it."},
    {"holdfast lock show backup --json | jq .fence", "The highest fence so far."},
};

const struct options_table hf__lock_show_options = {
    .name = "lock show",
    .operands = "NAME",
    .about = "Show a lock. If nobody has ever held it, the exit code is 3.",
    COMMAND_SPECS(show),
};

static enum hf_status lock_show(struct command_ctx *c)
{
    struct rows_field fields[LOCK_FIELDS];
    struct hf_lock_info info;

    if (!c->place)
        return none_held(c);
    TRY(hf_lock_inspect(c->scope, c->place, hf__command_operand(c, 0), &info));
    make_fields(c->cli, &info, fields);
    return hf__command_print(c, fields, LOCK_FIELDS);
}

COMMAND_OF(lock_show, lock_show, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &locks_place, .table = COMMAND_LOOKS);

/* ---- break ---------------------------------------------------------------------------------- */

static const struct option_spec break_specs[] = {
    OPT_TEXT("id", "ID", id,
             "Id of the one holder to take it from, as 'lock show --json' shows it; by default all "
             "holders."),
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example break_examples[] = {
    {"holdfast lock break backup", "Take it from a process that hangs."},
};

const struct options_table hf__lock_break_options = {
    .name = "lock break",
    .operands = "NAME",
    .about =
        "Take a lock away from its holders. They notice at their next renewal; until then only "
        "the fence stops them. The fence keeps growing.",
    COMMAND_SPECS(break),
};

static enum hf_status lock_break(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str name = hf__command_operand(c, 0);
    size_t broken = 0;

    if (!c->place)
        return none_held(c);
    TRY(hf_lock_break(c->scope, c->place, name, settings->id, &broken));
    return COMMAND_PRINT(c, hf__rows_text("name", name), hf__rows_number(c->cli, "broken", broken));
}

COMMAND_OF(lock_break, lock_break, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &locks_place, .table = COMMAND_LOOKS);
