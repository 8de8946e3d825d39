/*
 * cli/kv/cmd_kv.c: keys and values from a shell: `holdfast kv get|set|delete|ls|clear|sweep`.
 *
 * Reads are consistent, so that a script sees what it wrote; but a list of a table with an index of
 * namespaces reads that, which the database may update a moment later. Only `set` makes a table; to
 * the others one that is not there is one without keys.
 */
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/frame/json.h"
#include "cli/frame/rows.h"

#include <holdfast/kv.h>

#include <unistd.h>

enum {
    VALUE_MAX = 400 * 1024,
    LARGE_VALUE_MAX = 256 * 1024 * 1024, /* with a blob store */
    YEARS_MS = 1000 * 1000 * 1000
};

enum value_type { VALUE_TEXT, VALUE_NUMBER, VALUE_JSON, VALUE_DYNAMODB, VALUE_BYTES };

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str partition;
    bool partitioned;
    struct hf_str space;
    struct hf_str blobs;
    /* set */
    unsigned type; /* enum value_type */
    struct hf_str file;
    uint64_t ttl_s;
    bool if_absent;
    struct hf_str if_version;
    bool space_index;
    /* get */
    bool dynamodb;
    bool eventual; /* clear as well */
    /* ls, clear */
    bool consistent;
    bool all_spaces;
    struct hf_str from;
    struct hf_str before;
    struct hf_str contains;
    struct hf_str after;
    uint64_t limit;
    bool backward;
    bool keys_only;
    bool yes;
    /* sweep */
    uint64_t older_ms;
};

/* Keys and values, and what they stand on. */
struct place {
    struct hf_db *db;
    struct hf_blobs *blobs; /* NULL: none was named */
    struct hf_kv *kv;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define KEY_SPECS                                                                                  \
    {.heading = "Which keys",                                                                      \
     .kind = OPTION_TEXT,                                                                          \
     .letter = 'n',                                                                                \
     .name = "namespace",                                                                          \
     .value = "TEXT",                                                                              \
     .text = "Namespace of the key; \"global\" by default, in partitions none.",                   \
     FIELD(space)},                                                                                \
        {.kind = OPTION_TEXT,                                                                      \
         .letter = 'p',                                                                            \
         .name = "partition",                                                                      \
         .value = "TEXT",                                                                          \
         .text = "Partition of the key, in a table that has such.",                                \
         FIELD(partition)},                                                                        \
        TABLE_SPECS
#define TABLE_SPECS                                                                                \
    {.kind = OPTION_TEXT,                                                                          \
     .name = "table",                                                                              \
     .value = "NAME",                                                                              \
     .text = "The table; \"keys\" by default, with partitions \"partitioned_keys\".",              \
     FIELD(table)},                                                                                \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "blobs", .value = "URL", .env = "HOLDFAST_BLOBS",             \
        .text = "Where values are that are too large for an item: dir:PATH or s3://BUCKET.",       \
        FIELD(blobs)                                                                               \
    }
#define RANGE_SPECS                                                                                \
    {.kind = OPTION_FLAG,                                                                          \
     .name = "partitioned",                                                                        \
     .text = "All partitions of a table that has such.",                                           \
     FIELD(partitioned)},                                                                          \
        {.kind = OPTION_FLAG,                                                                      \
         .name = "all-namespaces",                                                                 \
         .text = "Whatever the namespace.",                                                        \
         FIELD(all_spaces)},                                                                       \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "from",                                                                           \
         .value = "ID",                                                                            \
         .text = "Ids from this one on.",                                                          \
         FIELD(from)},                                                                             \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "before",                                                                         \
         .value = "ID",                                                                            \
         .text = "Ids before this one.",                                                           \
         FIELD(before)},                                                                           \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "contains", .value = "TEXT",                                  \
        .text = "Ids with this text somewhere.", FIELD(contains)                                   \
    }

static void close_kv(struct place *place)
{
    hf_kv_close(place->kv);
    hf_blobs_close(place->blobs);
    hf_db_close(place->db);
    *place = (struct place){.db = NULL};
}

/* False: *ends says how to end; DATABASE_ABSENT when there is no table. */
static bool open_kv(struct cli *cli, const char *command, const struct settings *settings,
                    bool create, struct place *place, int *ends)
{
    struct database_settings database = settings->database;

    *place = (struct place){.db = NULL};
    database.create = create;
    database.absent_ok = !create && !database.table_needed;
    database.maker = "kv set";
    if (!hf__database_open(cli, command, &database, &place->db, ends))
        return false;
    if (settings->blobs.ptr &&
        hf__cli_events_open_blobs(cli, &database, settings->blobs, &place->blobs) != HF_OK)
        *ends = hf__database_fail(cli, command);
    else if (hf_kv_open(cli->scope, place->db,
                        HF_OPTIONS(hf_kv_options,
                                   .partitioned = settings->partitioned || settings->partition.ptr,
                                   .table = settings->table, .consistent = !settings->eventual,
                                   .no_create = !create, .blobs = place->blobs,
                                   .space_index = settings->space_index),
                        &place->kv) == HF_OK)
        return true;
    else
        *ends = hf__database_unopened(cli, command, &database);
    close_kv(place);
    return false;
}

static struct hf_kv_key key_of(const struct settings *settings, const char *id)
{
    return hf_kv_in(settings->partition, settings->space, hf_str_from(id));
}

enum { ENTRY_FIELDS = 6 };

static void make_fields(struct cli *cli, const struct hf_kv_entry *entry,
                        struct rows_field fields[ENTRY_FIELDS])
{
    struct hf_scope *s = cli->scope;
    bool plain = hf_value_type(entry->value) == HF_TYPE_S;

    fields[0] = hf__rows_text("partition", entry->key.partition);
    if (entry->key.partition.ptr)
        fields[0].text = hf_scope_copy(s, entry->key.partition);
    else
        fields[0].kind = ROWS_JSON; /* no column of nothing */
    fields[1] = hf__rows_text("namespace", hf_scope_copy(s, entry->key.space));
    fields[2] = hf__rows_text("id", hf_scope_copy(s, entry->key.id));
    if (plain)
        fields[3] = hf__rows_text("value", hf_scope_copy(s, hf_value_str(entry->value)));
    else
        fields[3] = (struct rows_field){.name = "value",
                                        .kind = ROWS_RAW,
                                        .text = hf__json_of_value(s, entry->value)};
    fields[4] = hf__rows_text("version", entry->version.ptr ? hf_scope_copy(s, entry->version)
                                                            : entry->version);
    fields[3].cut = true;
    fields[5] = hf__rows_time(cli, "expires", entry->expires_s * 1000000);
}

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    KEY_SPECS,
    {.kind = OPTION_FLAG,
     .name = "eventual",
     .text = "Do not insist on the newest value: half the price at Amazon.",
     FIELD(eventual)},
    DATABASE_JSON(struct settings),
    {.kind = OPTION_FLAG,
     .name = "dynamodb",
     .text = "Print the value in DynamoDB's JSON, which tells a set from a list.",
     FIELD(dynamodb)},
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast kv get motd", "Print the value. Exit code 3: there is none."},
    {"holdfast kv get -n users ann --json | jq .version", "With its version and when it expires."},
};

const struct options_table hf__kv_get_options = {
    .name = "kv get",
    .operands = "ID",
    .about = "Print the value of a key: a text as it is, anything else as JSON. Exit code 3 when "
             "there is none.",
    .specs = get_specs,
    .len = COMMAND_LEN(get_specs),
    .examples = get_examples,
    .examples_len = COMMAND_LEN(get_examples),
};

static int no_value(struct cli *cli, const char *id)
{
    return hf__cli_fail(cli, "kv get", CLI_NOT_FOUND, "there is no '%s'", id);
}

static int print_value(struct cli *cli, const struct settings *settings,
                       const struct hf_kv_entry *entry)
{
    struct hf_str text = hf_value_str(entry->value);
    struct hf_bytes bytes = hf_value_bytes(entry->value);
    struct rows_field fields[ENTRY_FIELDS];

    if (settings->database.quiet)
        return CLI_OK;
    if (settings->database.json) {
        make_fields(cli, entry, fields);
        return hf__rows_one(cli, &settings->database, fields, ENTRY_FIELDS);
    }
    if (settings->dynamodb) {
        struct hf_str json =
            hf_item_to_json(cli->scope, HF_ITEM(cli->scope, HF_V("v", entry->value)));

        /* The value alone, as `kv set --type dynamodb` takes it: without {"v": and }. */
        if (json.len > 6)
            fprintf(cli->out, "%.*s\n", (int)json.len - 6, json.ptr + 5);
    } else if (text.ptr) {
        fwrite(text.ptr, 1, text.len, cli->out);
        fputc('\n', cli->out);
    } else if (bytes.ptr) {
        fwrite(bytes.ptr, 1, bytes.len, cli->out);
    } else {
        hf__json_write_value(cli->out, cli->scope, entry->value);
        fputc('\n', cli->out);
    }
    return hf__cli_flushed(cli, CLI_OK);
}

int hf__kv_get_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct options options;
    struct hf_kv_entry entry;
    struct place place;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_get_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    if (!open_kv(cli, "kv get", &settings, false, &place, &ends))
        return ends == DATABASE_ABSENT ? no_value(cli, options.operands[0]) : ends;
    if (hf_kv_get(cli->scope, place.kv, key_of(&settings, options.operands[0]), NULL, &entry) !=
        HF_OK)
        ends = hf__database_fail(cli, "kv get");
    else if (!entry.value.ptr)
        ends = no_value(cli, options.operands[0]);
    else
        ends = print_value(cli, &settings, &entry);
    close_kv(&place);
    return ends;
}

/* ---- set ------------------------------------------------------------------------------------ */

static const struct option_spec set_specs[] = {
    {.heading = "The value",
     .kind = OPTION_CHOICE,
     .letter = 't',
     .name = "type",
     .choices = "text number json dynamodb bytes",
     .fallback = "text",
     .text = "What it is: json is plain, dynamodb an object such as {\"SS\":[\"a\"]}.",
     FIELD(type)},
    {.kind = OPTION_TEXT,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text = "It is what this file has; - is standard input.",
     FIELD(file)},
    {.kind = OPTION_DURATION,
     .name = "ttl",
     .value = "TIME",
     .min = 1000,
     .max = YEARS_MS * 1000ULL,
     .text = "It expires after this.",
     FIELD(ttl_s)},
    {.kind = OPTION_FLAG,
     .name = "if-absent",
     .text = "Only if there is none; else exit code 4.",
     FIELD(if_absent)},
    {.kind = OPTION_TEXT,
     .name = "if-version",
     .value = "VERSION",
     .text = "Only if the value that is there has this version; else exit code 4.",
     FIELD(if_version)},
    KEY_SPECS,
    {.kind = OPTION_FLAG,
     .name = "namespace-index",
     .text = "If the table is made now, with an index of namespaces: see 'holdfast kv index'.",
     FIELD(space_index)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example set_examples[] = {
    {"holdfast kv set motd 'Back at noon'", "A text."},
    {"holdfast kv set -n jobs nightly \"$(hostname)\" --if-absent --ttl 1h",
     "Who comes first has it; the others end with code 4."},
    {"holdfast kv set manual -t bytes -f manual.pdf --blobs dir:/var/lib/values",
     "A value that is too large for an item."},
    {"holdfast kv set config -t json -f config.json --if-version \"$version\"",
     "Replace what was read before, unless somebody else has."},
};

const struct options_table hf__kv_set_options = {
    .name = "kv set",
    .operands = "ID [VALUE]",
    .about = "Set the value of a key. With --json the entry is printed, with its new version. When "
             "--if-absent or --if-version do not hold nothing is set, and the exit code is 4.",
    .specs = set_specs,
    .len = COMMAND_LEN(set_specs),
    .examples = set_examples,
    .examples_len = COMMAND_LEN(set_examples),
};

static bool from_dynamodb(struct hf_scope *s, struct hf_str text, struct hf_value *value)
{
    struct hf_str whole = hf_scope_format(s, "{\"v\":%.*s}", HF_FMT(text));
    struct hf_item item;

    if (!whole.ptr || hf_item_from_json(s, whole, &item) != HF_OK)
        return false;
    *value = hf_item_get(item, HF_STR("v"));
    return value->ptr != NULL;
}

/* The value that was meant; false when it cannot be, with the error shown. */
static bool read_value(struct cli *cli, const struct settings *settings,
                       const struct options *options, struct hf_value *value)
{
    struct hf_scope *s = cli->scope;
    struct hf_str error = HF_STR("it is no value");
    struct hf_attr attr = {.type = HF_TYPE_S};
    const struct json *json;

    if (settings->file.ptr)
        attr.text = hf__input_read(s, settings->file.ptr,
                                   settings->blobs.ptr ? LARGE_VALUE_MAX : VALUE_MAX, &error);
    else
        attr.text = hf_str_from(options->operands[1]);
    if (!attr.text.ptr) {
        hf__cli_fail(cli, "kv set", CLI_USAGE, "%.*s", HF_FMT(error));
        return false;
    }
    switch ((enum value_type)settings->type) {
    case VALUE_TEXT:
        break;
    case VALUE_NUMBER:
        attr.type = HF_TYPE_N;
        break;
    case VALUE_BYTES:
        attr.type = HF_TYPE_B;
        break;
    case VALUE_DYNAMODB:
        attr.type = HF_TYPE_NONE;
        if (!from_dynamodb(s, attr.text, &attr.value))
            error = HF_STR("it is no value in DynamoDB's JSON");
        break;
    case VALUE_JSON:
        attr.type = HF_TYPE_NONE;
        json = hf__json_read(s, attr.text, &error);
        if (json)
            attr.value = hf__json_to_value(s, json);
        break;
    }
    if (attr.type != HF_TYPE_NONE || attr.value.ptr) {
        attr.name = HF_STR("v");
        if (hf_item_check(s, hf_item_make(s, &attr, 1)) == HF_OK) {
            *value = hf_value_make(s, attr);
            return true;
        }
        error = hf_scope_error(s)->message;
    }
    hf__cli_fail(cli, "kv set", CLI_USAGE, "the value: %.*s", HF_FMT(error));
    return false;
}

int hf__kv_set_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct rows_field fields[ENTRY_FIELDS];
    struct hf_kv_entry entry;
    struct options options;
    struct hf_value value;
    struct place place;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_set_options, args_len, args, 1, 2, &settings, &options,
                          &ends))
        return ends;
    if ((options.operands_len == 2) == (settings.file.ptr != NULL))
        return hf__cli_fail(cli, "kv set", CLI_USAGE,
                            settings.file.ptr ? "a value and --file exclude each other"
                                              : "the value is missing: holdfast kv set ID VALUE");
    if (!read_value(cli, &settings, &options, &value))
        return CLI_USAGE;
    if (!open_kv(cli, "kv set", &settings, true, &place, &ends))
        return ends;
    if (hf_kv_set(cli->scope, place.kv, key_of(&settings, options.operands[0]), value,
                  HF_OPTIONS(hf_kv_set_options, .ttl_s = (uint32_t)(settings.ttl_s / 1000),
                             .if_absent = settings.if_absent, .if_version = settings.if_version),
                  &entry) != HF_OK) {
        ends = hf__database_fail(cli, "kv set");
    } else {
        ends = CLI_OK;
        if (settings.database.json) {
            make_fields(cli, &entry, fields);
            ends = hf__rows_one(cli, &settings.database, fields, ENTRY_FIELDS);
        }
    }
    close_kv(&place);
    return ends;
}

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    {.kind = OPTION_TEXT,
     .name = "if-version",
     .value = "VERSION",
     .text = "Only if the value that is there has this version; else exit code 4.",
     FIELD(if_version)},
    KEY_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example delete_examples[] = {
    {"holdfast kv delete motd", "Done as well when there is none."},
};

const struct options_table hf__kv_delete_options = {
    .name = "kv delete",
    .operands = "ID",
    .about = "Delete a key. That is done as well when there is none; --json tells.",
    .specs = delete_specs,
    .len = COMMAND_LEN(delete_specs),
    .examples = delete_examples,
    .examples_len = COMMAND_LEN(delete_examples),
};

static int print_deleted(struct cli *cli, const struct settings *settings, const char *id,
                         bool deleted)
{
    struct rows_field fields[] = {hf__rows_text("id", hf_str_from(id)),
                                  hf__rows_bool("deleted", deleted)};

    return settings->database.json
               ? hf__rows_one(cli, &settings->database, fields, COMMAND_LEN(fields))
               : (int)CLI_OK;
}

int hf__kv_delete_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct hf_kv_entry old;
    struct options options;
    struct place place;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_delete_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    if (!open_kv(cli, "kv delete", &settings, false, &place, &ends)) {
        if (ends != DATABASE_ABSENT)
            return ends;
        if (settings.if_version.ptr)
            return hf__cli_fail(cli, "kv delete", CLI_CONDITION, "there is no '%s'",
                                options.operands[0]);
        return print_deleted(cli, &settings, options.operands[0], false);
    }
    if (hf_kv_delete(cli->scope, place.kv, key_of(&settings, options.operands[0]),
                     HF_OPTIONS(hf_kv_delete_options, .if_version = settings.if_version),
                     &old) != HF_OK)
        ends = hf__database_fail(cli, "kv delete");
    else
        ends = print_deleted(cli, &settings, options.operands[0], old.value.ptr != NULL);
    close_kv(&place);
    return ends;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    KEY_SPECS,
    RANGE_SPECS,
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
    {.kind = OPTION_FLAG,
     .letter = 'r',
     .name = "reverse",
     .text = "From the last id to the first; where they come in order.",
     FIELD(backward)},
    {.kind = OPTION_FLAG,
     .letter = 'k',
     .name = "keys",
     .text = "Ids alone, without their values.",
     FIELD(keys_only)},
    {.kind = OPTION_FLAG,
     .name = "consistent",
     .text = "All keys that were set before, also those that the index of namespaces may not have "
             "yet: reads the whole table.",
     FIELD(consistent)},
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast kv ls", "All keys of the namespace \"global\"."},
    {"holdfast kv ls -p user-7 --from 2026-01 --before 2026-02 --jsonl",
     "A part of a partition, in the order of ids."},
};

const struct options_table hf__kv_ls_options = {
    .name = "kv ls",
    .operands = "[PREFIX]",
    .about = "List the keys of a namespace, or those whose ids begin with PREFIX. In a partition, "
             "and in a table with an index of namespaces (kv index), they come in order, and only "
             "those are read; otherwise the whole table is.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

static struct hf_kv_range range_of(const struct settings *settings, const struct options *options)
{
    return (struct hf_kv_range){.partition = settings->partition,
                                .space = settings->space,
                                .all_spaces = settings->all_spaces,
                                .prefix = hf_str_from(options->operands_len ? options->operands[0]
                                                                            : NULL),
                                .from = settings->from,
                                .before = settings->before,
                                .id_contains = settings->contains};
}

/* An index that is there is read. */
static enum hf_flag list_consistency(const struct settings *settings, const struct hf_kv *kv)
{
    return !settings->consistent && !settings->all_spaces && hf_kv_has_space_index(kv) ? HF_NO
                                                                                       : HF_YES;
}

static enum hf_status print_list(struct cli *cli, const struct settings *settings,
                                 struct hf_kv_list *list, struct rows *rows)
{
    struct hf_scope *s = cli->scope;
    struct hf_kv_entry entry;
    enum hf_status status;

    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct rows_field fields[ENTRY_FIELDS];

        status = hf_kv_list_next(s, list, &entry);
        if (status != HF_OK || !entry.value.ptr)
            return status;
        make_fields(cli, &entry, fields);
        if (settings->keys_only)
            hf__rows_add(rows, &fields[2], 1);
        else
            hf__rows_add(rows, fields, ENTRY_FIELDS);
        hf_scope_rewind(s, mark);
        /* Nobody reads on: a closed pipe. */
        if (ferror(cli->out))
            return HF_OK;
    }
}

int hf__kv_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct hf_kv_list *list = NULL;
    struct options options;
    struct hf_str next = {0};
    struct hf_kv_range range;
    struct place place;
    struct rows *rows;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_ls_options, args_len, args, 0, 1, &settings, &options,
                          &ends))
        return ends;
    rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    if (!rows)
        return hf__cli_fail(cli, "kv ls", CLI_FAILED, "out of memory");
    if (!open_kv(cli, "kv ls", &settings, false, &place, &ends))
        return hf__rows_none(cli, &settings.database, "entries", ends);
    range = range_of(&settings, &options);
    if (hf_kv_list_open(cli->scope, place.kv, &range,
                        HF_OPTIONS(hf_kv_list_options, .limit = (uint32_t)settings.limit,
                                   .after = settings.after, .backward = settings.backward,
                                   .consistent = list_consistency(&settings, place.kv)),
                        &list) != HF_OK) {
        ends = hf__database_fail(cli, "kv ls");
    } else {
        hf__rows_begin(rows, cli, &settings.database, "entries");
        if (print_list(cli, &settings, list, rows) != HF_OK ||
            hf_kv_list_cursor(cli->scope, list, &next) != HF_OK)
            ends = hf__database_fail(cli, "kv ls");
        else
            ends = CLI_OK;
        ends = hf__rows_end(rows, next, ends);
    }
    hf_kv_list_free(list);
    close_kv(&place);
    return ends;
}

/* ---- clear ---------------------------------------------------------------------------------- */

static const struct option_spec clear_specs[] = {
    {.kind = OPTION_FLAG,
     .letter = 'y',
     .name = "yes",
     .text = "Yes, remove them. Without this nothing is done.",
     FIELD(yes)},
    KEY_SPECS,
    RANGE_SPECS,
    {.kind = OPTION_FLAG,
     .name = "eventual",
     .text = "What was set just before may stay, too. With an index of namespaces (kv index) only "
             "the namespace is read.",
     FIELD(eventual)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example clear_examples[] = {
    {"holdfast kv clear -n sessions --yes", "All keys of a namespace."},
};

const struct options_table hf__kv_clear_options = {
    .name = "kv clear",
    .operands = "[PREFIX]",
    .about = "Remove all keys of a namespace, or those whose ids begin with PREFIX. What is set "
             "meanwhile may stay or go. After a failure, call it again.",
    .specs = clear_specs,
    .len = COMMAND_LEN(clear_specs),
    .examples = clear_examples,
    .examples_len = COMMAND_LEN(clear_examples),
};

int hf__kv_clear_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct options options;
    struct hf_kv_range range;
    uint64_t cleared = 0;
    struct place place;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_clear_options, args_len, args, 0, 1, &settings, &options,
                          &ends))
        return ends;
    if (!settings.yes)
        return hf__cli_fail(cli, "kv clear", CLI_USAGE, "add --yes if that is meant");
    range = range_of(&settings, &options);
    if (!open_kv(cli, "kv clear", &settings, false, &place, &ends) && ends != DATABASE_ABSENT)
        return ends;
    if (place.kv && hf_kv_clear(cli->scope, place.kv, &range,
                                HF_OPTIONS(hf_kv_clear_options, .eventual = settings.eventual),
                                &cleared) != HF_OK) {
        ends = hf__database_fail(cli, "kv clear");
    } else {
        struct rows_field field = hf__rows_number(cli, "cleared", cleared);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    close_kv(&place);
    return ends;
}

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    {.kind = OPTION_DURATION,
     .name = "older",
     .value = "TIME",
     .min = 1000,
     .max = (uint64_t)UINT32_MAX * 1000,
     .fallback = "24h",
     .text = "Nothing that is younger than this, as it may belong to a key that is being set.",
     FIELD(older_ms)},
    {.kind = OPTION_FLAG,
     .name = "partitioned",
     .text = "A table that has partitions.",
     FIELD(partitioned)},
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example sweep_examples[] = {
    {"holdfast kv sweep --blobs s3://values", "Once a night, say."},
};

const struct options_table hf__kv_sweep_options = {
    .name = "kv sweep",
    .about = "Remove the values of the blob store that no key has any more, as it was set anew, "
             "deleted, or has expired. The whole table is read.",
    .specs = sweep_specs,
    .len = COMMAND_LEN(sweep_specs),
    .examples = sweep_examples,
    .examples_len = COMMAND_LEN(sweep_examples),
};

int hf__kv_sweep_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct options options;
    struct place place;
    uint64_t removed = 0;
    int ends;

    if (!hf__cli_operands(cli, &hf__kv_sweep_options, args_len, args, 0, 0, &settings, &options,
                          &ends))
        return ends;
    if (!settings.blobs.ptr)
        return hf__cli_fail(cli, "kv sweep", CLI_USAGE, "--blobs is missing");
    settings.database.table_needed = true; /* an empty one would use none of the blobs */
    if (!open_kv(cli, "kv sweep", &settings, false, &place, &ends))
        return ends;
    hf_scope_timeout_ms(cli->scope, 0); /* it can be interrupted, and called again */
    if (hf_kv_sweep_blobs(cli->scope, place.kv, (uint32_t)(settings.older_ms / 1000), &removed) !=
        HF_OK) {
        ends = hf__database_fail(cli, "kv sweep");
    } else {
        struct rows_field field = hf__rows_number(cli, "blobs", removed);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    close_kv(&place);
    return ends;
}
