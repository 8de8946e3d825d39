/*
 * cli/counter/cmd_counter.c: counters from a shell: `holdfast counter add|get|set|delete|ls`.
 *
 * A process lives for one add, so it leaves its mark in the counter with every call; the marks of
 * those that came before are dropped as they age (holdfast/counter.h). Whoever has to be able to
 * repeat an add after a crash gives it an id: --request.
 */
#include "cli/frame/commands.h"
#include "cli/frame/rows.h"

#include <holdfast/counter.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str partition;
    struct hf_str space;
    uint64_t shards;
    uint64_t limit;
    struct hf_str after;
    /* add */
    struct hf_str floor;
    struct hf_str ceiling;
    struct hf_str request;
    bool plain;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define KEY_SPECS                                                                                  \
    {.heading = "Which counter",                                                                   \
     .kind = OPTION_TEXT,                                                                          \
     .letter = 'n',                                                                                \
     .name = "namespace",                                                                          \
     .value = "TEXT",                                                                              \
     .text = "Namespace of the counter; \"global\" by default.",                                   \
     FIELD(space)},                                                                                \
        {.kind = OPTION_TEXT,                                                                      \
         .letter = 'p',                                                                            \
         .name = "partition",                                                                      \
         .value = "TEXT",                                                                          \
         .text = "Partition of the counter, in a table that has such.",                            \
         FIELD(partition)},                                                                        \
        {.kind = OPTION_NUMBER,                                                                    \
         .name = "shards",                                                                         \
         .value = "NUMBER",                                                                        \
         .max = HF_COUNTER_SHARDS_MAX,                                                             \
         .text = "Items that the counter is spread over, when many add to it at once.",            \
         FIELD(shards)},                                                                           \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "table", .value = "NAME",                                     \
        .text = "The table; \"keys\" by default, with partitions \"partitioned_keys\".",           \
        FIELD(table)                                                                               \
    }

/* False: *ends says how to end; DATABASE_ABSENT when there is no table, and so no counter. */
static bool open_counters(struct cli *cli, const char *command, const struct settings *settings,
                          bool create, struct hf_db **db, struct hf_counters **counters, int *ends)
{
    struct database_settings database = settings->database;

    database.create = create;
    database.absent_ok = !create;
    if (!hf__database_open(cli, command, &database, db, ends))
        return false;
    if (hf_counters_open(cli->scope, *db,
                         HF_OPTIONS(hf_counters_options, .table = settings->table,
                                    .space = settings->space,
                                    .partitioned = settings->partition.ptr != NULL,
                                    .plain = settings->plain, .no_create = !create,
                                    .shards = (uint32_t)settings->shards),
                         counters) == HF_OK)
        return true;
    *counters = NULL;
    *ends = hf__database_unopened(cli, command, &database);
    hf_db_close(*db);
    *db = NULL;
    return false;
}

static struct hf_counter_key key_of(const struct settings *settings, const char *id)
{
    return hf_counter_of(settings->partition, hf_str_from(id));
}

static bool read_whole(struct cli *cli, const char *command, const char *what, const char *text,
                       int64_t *number, int *ends)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0')
        return true;
    *ends = hf__cli_fail(cli, command, CLI_USAGE, "%s: '%s' is not a whole number of 64 bits", what,
                         text);
    return false;
}

/* The number alone, or an object. */
static int print_value(struct cli *cli, const struct settings *settings, const char *id,
                       int64_t value, const struct rows_field *more)
{
    struct rows_field fields[3] = {hf__rows_text("id", hf_str_from(id)),
                                   hf__rows_signed(cli, "value", value)};

    if (settings->database.quiet)
        return CLI_OK;
    if (more)
        fields[2] = *more;
    if (settings->database.json)
        return hf__rows_one(cli, &settings->database, fields, more ? 3 : 2);
    fprintf(cli->out, "%lld\n", (long long)value);
    return hf__cli_flushed(cli, CLI_OK);
}

/* ---- add ------------------------------------------------------------------------------------ */

static const struct option_spec add_specs[] = {
    {.heading = "The add",
     .kind = OPTION_TEXT,
     .name = "floor",
     .value = "NUMBER",
     .text = "Do not go below this; exit code 4 instead.",
     FIELD(floor)},
    {.kind = OPTION_TEXT,
     .name = "ceiling",
     .value = "NUMBER",
     .text = "Do not go above this; exit code 4 instead.",
     FIELD(ceiling)},
    {.kind = OPTION_TEXT,
     .name = "request",
     .value = "ID",
     .text = "An id of this add: it is counted once, however often it is repeated.",
     FIELD(request)},
    {.kind = OPTION_FLAG,
     .name = "plain",
     .text = "The cheapest write there is; when its answer is lost, it may have been counted.",
     FIELD(plain)},
    KEY_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example add_examples[] = {
    {"holdfast counter add visits", "Add one, and print the new value."},
    {"holdfast counter add stock -3 --floor 0", "Take three, if there are so many; else code 4."},
    {"holdfast counter add paid 20 --request \"$invoice\"",
     "Once, however often the script is run."},
};

const struct options_table hf__counter_add_options = {
    .name = "counter add",
    .operands = "ID [NUMBER]",
    .about = "Add a number, or 1, to a counter and print its value. A counter that nobody added to "
             "is 0.",
    .specs = add_specs,
    .len = COMMAND_LEN(add_specs),
    .examples = add_examples,
    .examples_len = COMMAND_LEN(add_examples),
};

static int add(struct cli *cli, const struct settings *settings, struct hf_counters *counters,
               const char *id, int64_t by, const struct hf_counter_options *bounds)
{
    struct hf_counter_key key = key_of(settings, id);
    struct rows_field again = {0};
    bool repeated = false;
    int64_t value = 0;
    enum hf_status status;

    if (settings->request.ptr)
        status = hf_counter_add_once(cli->scope, counters, key, settings->request, by, bounds,
                                     &value, &repeated);
    else
        status = hf_counter_add(cli->scope, counters, key, by, bounds, &value);
    if (status != HF_OK)
        return hf__database_fail(cli, "counter add");
    again = hf__rows_bool("again", repeated);
    return print_value(cli, settings, id, value, settings->request.ptr ? &again : NULL);
}

int hf__counter_add_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.plain = false};
    struct hf_counter_options bounds = {.size = sizeof(bounds)};
    struct hf_counters *counters;
    struct options options;
    struct hf_db *db;
    int64_t by = 1;
    int ends;

    if (!hf__cli_operands(cli, &hf__counter_add_options, args_len, args, 1, 2, &settings, &options,
                          &ends) ||
        (options.operands_len == 2 &&
         !read_whole(cli, "counter add", "the number", options.operands[1], &by, &ends)) ||
        (settings.floor.ptr &&
         !read_whole(cli, "counter add", "--floor", settings.floor.ptr, &bounds.floor, &ends)) ||
        (settings.ceiling.ptr && !read_whole(cli, "counter add", "--ceiling", settings.ceiling.ptr,
                                             &bounds.ceiling, &ends)))
        return ends;
    if (settings.floor.ptr && bounds.floor == 0)
        bounds.floor = HF_ZERO;
    if (settings.ceiling.ptr && bounds.ceiling == 0)
        bounds.ceiling = HF_ZERO;
    if (!open_counters(cli, "counter add", &settings, true, &db, &counters, &ends))
        return ends;
    ends = add(cli, &settings, counters, options.operands[0], by, &bounds);
    hf_counters_close(counters);
    hf_db_close(db);
    return ends;
}

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    KEY_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast counter get visits", "Its value; 0 when nobody added to it."},
    {"holdfast counter get visits sales returns", "Several: a line each, in that order."},
};

const struct options_table hf__counter_get_options = {
    .name = "counter get",
    .operands = "ID...",
    .about = "Print the value of a counter, or of several with their ids. One that nobody added to "
             "is 0.",
    .specs = get_specs,
    .len = COMMAND_LEN(get_specs),
    .examples = get_examples,
    .examples_len = COMMAND_LEN(get_examples),
};

static int get_many(struct cli *cli, const struct settings *settings, struct hf_counters *counters,
                    const struct options *options)
{
    size_t len = options->operands_len;
    struct rows *rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    struct hf_counter_key *keys = hf_scope_alloc(cli->scope, len * sizeof(*keys));
    struct hf_counter_value *values = hf_scope_alloc(cli->scope, len * sizeof(*values));

    if (!rows || !keys || !values)
        return hf__cli_fail(cli, "counter get", CLI_FAILED, "out of memory");
    for (size_t i = 0; i < len; i++)
        keys[i] = key_of(settings, options->operands[i]);
    memset(values, 0, len * sizeof(*values));
    if (counters && hf_counter_get_many(cli->scope, counters, keys, len, values) != HF_OK)
        return hf__database_fail(cli, "counter get");
    hf__rows_begin(rows, cli, &settings->database, "counters");
    for (size_t i = 0; i < len; i++) {
        struct rows_field fields[] = {hf__rows_text("id", keys[i].id),
                                      hf__rows_signed(cli, "value", values[i].value),
                                      hf__rows_bool("found", values[i].found)};

        fields[2].kind = ROWS_JSON;
        hf__rows_add(rows, fields, COMMAND_LEN(fields));
    }
    return hf__rows_end(rows, (struct hf_str){0}, CLI_OK);
}

int hf__counter_get_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.plain = false};
    struct hf_counters *counters;
    struct options options;
    struct hf_db *db;
    int64_t value = 0;
    int ends;

    if (!hf__cli_operands(cli, &hf__counter_get_options, args_len, args, 1, SIZE_MAX, &settings,
                          &options, &ends) ||
        (!open_counters(cli, "counter get", &settings, false, &db, &counters, &ends) &&
         ends != DATABASE_ABSENT))
        return ends;
    if (options.operands_len > 1 || settings.database.jsonl)
        ends = get_many(cli, &settings, counters, &options);
    else if (counters && hf_counter_get(cli->scope, counters,
                                        key_of(&settings, options.operands[0]), &value) != HF_OK)
        ends = hf__database_fail(cli, "counter get");
    else
        ends = print_value(cli, &settings, options.operands[0], value, NULL);
    hf_counters_close(counters);
    hf_db_close(db);
    return ends;
}

/* ---- set ------------------------------------------------------------------------------------ */

static const struct option_spec set_specs[] = {
    KEY_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example set_examples[] = {
    {"holdfast counter set visits 0", "Begin anew, and print what it was: no add is lost."},
};

const struct options_table hf__counter_set_options = {
    .name = "counter set",
    .operands = "ID NUMBER",
    .about = "Set a counter, and print the value that it had right before.",
    .specs = set_specs,
    .len = COMMAND_LEN(set_specs),
    .examples = set_examples,
    .examples_len = COMMAND_LEN(set_examples),
};

int hf__counter_set_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.plain = false};
    struct hf_counters *counters;
    struct options options;
    struct hf_db *db;
    int64_t value = 0;
    int64_t was = 0;
    int ends;

    if (!hf__cli_operands(cli, &hf__counter_set_options, args_len, args, 2, 2, &settings, &options,
                          &ends) ||
        !read_whole(cli, "counter set", "the number", options.operands[1], &value, &ends) ||
        !open_counters(cli, "counter set", &settings, true, &db, &counters, &ends))
        return ends;
    if (hf_counter_set(cli->scope, counters, key_of(&settings, options.operands[0]), value, &was) !=
        HF_OK) {
        ends = hf__database_fail(cli, "counter set");
    } else if (settings.database.json) {
        struct rows_field before = hf__rows_signed(cli, "was", was);

        ends = print_value(cli, &settings, options.operands[0], value, &before);
    } else {
        ends = print_value(cli, &settings, options.operands[0], was, NULL);
    }
    hf_counters_close(counters);
    hf_db_close(db);
    return ends;
}

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    KEY_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example delete_examples[] = {
    {"holdfast counter delete visits", "With all that it remembers."},
};

const struct options_table hf__counter_delete_options = {
    .name = "counter delete",
    .operands = "ID",
    .about = "Remove a counter and all that it remembers; its value is 0 then. Where every add "
             "counts, 'counter set ID 0' is right.",
    .specs = delete_specs,
    .len = COMMAND_LEN(delete_specs),
    .examples = delete_examples,
    .examples_len = COMMAND_LEN(delete_examples),
};

int hf__counter_delete_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.plain = false};
    struct hf_counters *counters;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__counter_delete_options, args_len, args, 1, 1, &settings,
                          &options, &ends) ||
        (!open_counters(cli, "counter delete", &settings, false, &db, &counters, &ends) &&
         ends != DATABASE_ABSENT))
        return ends;
    ends = CLI_OK;
    if (counters &&
        hf_counter_delete(cli->scope, counters, key_of(&settings, options.operands[0])) != HF_OK) {
        ends = hf__database_fail(cli, "counter delete");
    } else if (settings.database.json) {
        struct rows_field field = hf__rows_text("id", hf_str_from(options.operands[0]));

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    hf_counters_close(counters);
    hf_db_close(db);
    return ends;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    {.kind = OPTION_NUMBER,
     .name = "limit",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "At most so many; --json tells where to go on.",
     FIELD(limit)},
    {.kind = OPTION_TEXT,
     .name = "after",
     .value = "CURSOR",
     .text = "Go on where a list ended: its \"next\".",
     FIELD(after)},
    {.heading = "Which counters",
     .kind = OPTION_TEXT,
     .letter = 'n',
     .name = "namespace",
     .value = "TEXT",
     .text = "Namespace of the counters; \"global\" by default.",
     FIELD(space)},
    {.kind = OPTION_TEXT,
     .letter = 'p',
     .name = "partition",
     .value = "TEXT",
     .text = "Partition of the counters, in a table that has such.",
     FIELD(partition)},
    {.kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .text = "The table; \"keys\" by default, with partitions \"partitioned_keys\".",
     FIELD(table)},
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast counter ls", "All of them, with their values."},
    {"holdfast counter ls --partition ann login", "Those of ann that begin so."},
};

const struct options_table hf__counter_ls_options = {
    .name = "counter ls",
    .operands = "[PREFIX]",
    .about = "List counters with their values, or those whose ids begin with PREFIX. Reads the "
             "whole table, or one partition of it.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

static int list_them(struct cli *cli, const struct settings *settings, struct hf_counters *counters,
                     const char *prefix)
{
    struct rows *rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    struct hf_counter_list list;

    if (!rows)
        return hf__cli_fail(cli, "counter ls", CLI_FAILED, "out of memory");
    if (hf_counter_list(cli->scope, counters,
                        HF_OPTIONS(hf_counter_list_options, .partition = settings->partition,
                                   .prefix = hf_str_from(prefix),
                                   .limit = (uint32_t)settings->limit, .after = settings->after),
                        &list) != HF_OK)
        return hf__database_fail(cli, "counter ls");
    hf__rows_begin(rows, cli, &settings->database, "counters");
    for (size_t i = 0; i < list.counters_len; i++) {
        struct rows_field fields[] = {hf__rows_text("id", list.counters[i].key.id),
                                      hf__rows_signed(cli, "value", list.counters[i].value)};

        hf__rows_add(rows, fields, COMMAND_LEN(fields));
    }
    return hf__rows_end(rows, list.next, CLI_OK);
}

int hf__counter_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.plain = false};
    struct hf_counters *counters;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__counter_ls_options, args_len, args, 0, 1, &settings, &options,
                          &ends))
        return ends;
    if (!open_counters(cli, "counter ls", &settings, false, &db, &counters, &ends))
        return hf__rows_none(cli, &settings.database, "counters", ends);
    ends = list_them(cli, &settings, counters, options.operands_len ? options.operands[0] : NULL);
    hf_counters_close(counters);
    hf_db_close(db);
    return ends;
}
