/*
 * cli/kv/cmd_kv.c: keys and values from a shell: `holdfast kv get|set|delete|ls|clear|sweep`.
 *
 * Reads are consistent, so that a script sees what it wrote; but a list of a table with an index of
 * namespaces reads that, which the database may update a moment later. Only `set` makes a table; to
 * the others one that is not there is one without keys.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/confirm.h"
#include "cli/frame/process/input.h"

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
    struct hf_value value; /* the operand, or what the file has */
};

#define KEY_SPECS                                                                                  \
    OPT_TEXT("namespace", "TEXT", space,                                                           \
             "Namespace of the key; \"global\" by default, none in partitions.", .letter = 'n',    \
             .heading = "Keys"),                                                                   \
        OPT_TEXT("partition", "TEXT", partition, "Partition of the key, in a partitioned table.",  \
                 .letter = 'p'),                                                                   \
        TABLE_SPECS
#define TABLE_SPECS                                                                                \
    OPT_TEXT("table", "NAME", table,                                                               \
             "Table; by default \"keys\", or \"partitioned_keys\" with partitions."),              \
        OPT_TEXT("blobs", "URL", blobs,                                                            \
                 "Blob store for values larger than an item: dir:PATH or s3://BUCKET.",            \
                 .env = "HOLDFAST_BLOBS")
#define RANGE_SPECS                                                                                \
    OPT_FLAG("partitioned", partitioned, "All partitions of a partitioned table."),                \
        OPT_FLAG("all-namespaces", all_spaces, "All namespaces."),                                 \
        OPT_TEXT("from", "ID", from, "First id."),                                                 \
        OPT_TEXT("before", "ID", before, "End before this id."),                                   \
        OPT_TEXT("contains", "TEXT", contains, "Only ids that contain this text.")

static enum hf_status kv_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_kv *kv;

    TRY(hf__command_open_blobs(c, settings->blobs));
    TRY(hf_kv_open(c->scope, c->db,
                   HF_OPTIONS(hf_kv_options,
                              .partitioned = settings->partitioned || settings->partition.ptr,
                              .table = settings->table, .consistent = !settings->eventual,
                              .no_create = !c->makes, .blobs = c->blobs,
                              .space_index = settings->space_index),
                   &kv));
    c->place = kv;
    return HF_OK;
}

static void kv_close(void *kv)
{
    hf_kv_close(kv);
}

static const struct command_place kv_place = {kv_open, kv_close, "kv set"};

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
                                        .text = hf__cli_json_of_value(s, entry->value)};
    fields[4] = hf__rows_text("version", entry->version.ptr ? hf_scope_copy(s, entry->version)
                                                            : entry->version);
    fields[3].cut = true;
    fields[5] = hf__rows_time(cli, "expires", entry->expires_s * 1000000);
}

static enum hf_status entry_print_json(struct command_ctx *c, const struct hf_kv_entry *entry)
{
    struct rows_field fields[ENTRY_FIELDS];

    make_fields(c->cli, entry, fields);
    return hf__command_print_json(c, fields, ENTRY_FIELDS);
}

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    KEY_SPECS,
    OPT_FLAG("eventual", eventual,
             "Use an eventually consistent read, which may return an older value and costs half at "
             "AWS."),
    DATABASE_JSON(struct settings),
    OPT_FLAG("dynamodb", dynamodb,
             "Print the value in DynamoDB's JSON, which distinguishes sets from lists."),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast kv get motd", "Print the value. Exit code 3: the key does not exist."},
    {"holdfast kv get -n users ann --json | jq .version", "With its version and expiry time."},
};

const struct options_table hf__kv_get_options = {
    .name = "kv get",
    .operands = "ID",
    .about = "Print the value of a key: text as it is, other values as JSON. If the key does not "
             "exist, the exit code is 3.",
    COMMAND_SPECS(get),
};

static enum hf_status no_value(struct command_ctx *c, int ends)
{
    return hf__command_fail(c, ends, "key '%s' does not exist", c->operands[0]);
}

static enum hf_status value_print(struct command_ctx *c, const struct hf_kv_entry *entry)
{
    const struct settings *settings = c->settings;
    struct hf_str text = hf_value_str(entry->value);
    struct hf_bytes bytes = hf_value_bytes(entry->value);
    FILE *out = c->cli->out;

    if (c->database->quiet)
        return HF_OK;
    if (c->database->json)
        return entry_print_json(c, entry);
    if (settings->dynamodb) {
        struct hf_str json = hf_item_to_json(c->scope, HF_ITEM(c->scope, HF_V("v", entry->value)));

        /* The value alone, as `kv set --type dynamodb` takes it: without {"v": and }. */
        if (json.len > 6)
            fprintf(out, "%.*s\n", (int)json.len - 6, json.ptr + 5);
    } else if (text.ptr) {
        fwrite(text.ptr, 1, text.len, out);
        fputc('\n', out);
    } else if (bytes.ptr) {
        fwrite(bytes.ptr, 1, bytes.len, out);
    } else {
        hf__cli_json_write_value(out, c->scope, entry->value);
        fputc('\n', out);
    }
    return HF_OK;
}

static enum hf_status kv_get(struct command_ctx *c)
{
    struct hf_kv_entry entry = {.expires_s = 0};

    if (c->place)
        TRY(hf_kv_get(c->scope, c->place, key_of(c->settings, c->operands[0]), NULL, &entry));
    return entry.value.ptr ? value_print(c, &entry) : no_value(c, CLI_NOT_FOUND);
}

COMMAND_OF(kv_get, kv_get, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &kv_place, .table = COMMAND_LOOKS);

/* ---- set ------------------------------------------------------------------------------------ */

static const struct option_spec set_specs[] = {
    OPT_CHOICE(
        "type", "text number json dynamodb bytes", type,
        "Type of the value: json is plain JSON, dynamodb an object such as {\"SS\":[\"a\"]}.",
        .letter = 't', .fallback = "text", .heading = "Value"),
    OPT_TEXT("file", "FILE", file, "Read the value from this file; - is standard input.",
             .letter = 'f'),
    OPT_TIME("ttl", ttl_s, 1000, YEARS_MS * 1000ULL, "The key expires after this time."),
    OPT_FLAG("if-absent", if_absent, "Only if the key does not exist; otherwise exit code 4."),
    OPT_TEXT("if-version", "VERSION", if_version,
             "Only if the key has this version; otherwise exit code 4."),
    KEY_SPECS,
    OPT_FLAG("namespace-index", space_index,
             "If the table is created, give it a namespace index: see 'holdfast kv index'."),
    DATABASE_ONE(struct settings),
};

static const struct option_example set_examples[] = {
    {"holdfast kv set motd 'Back at noon'", "Set a text."},
    {"holdfast kv set -n jobs nightly \"$(hostname)\" --if-absent --ttl 1h",
     "The first one sets it; the others get exit code 4."},
    {"holdfast kv set manual -t bytes -f manual.pdf --blobs dir:/var/lib/values",
     "A value larger than an item can be."},
    {"holdfast kv set config -t json -f config.json --if-version \"$version\"",
     "Replace the version that you read, unless someone changed it since."},
};

const struct options_table hf__kv_set_options = {
    .name = "kv set",
    .operands = "ID [VALUE]",
    .about =
        "Set the value of a key. With --json the entry is printed, with its new version. If the "
        "condition of --if-absent or --if-version is not met, nothing is set and the exit code "
        "is 4.",
    COMMAND_SPECS(set),
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

/* The value that was meant. */
static enum hf_status value_read(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_scope *s = c->scope;
    struct hf_str error = HF_STR("not a valid value");
    struct hf_attr attr = {.type = HF_TYPE_S};
    const struct json_node *json;

    if (settings->file.ptr)
        attr.text = hf__input_read(s, settings->file.ptr,
                                   settings->blobs.ptr ? LARGE_VALUE_MAX : VALUE_MAX, &error);
    else
        attr.text = hf__command_operand(c, 1);
    if (!attr.text.ptr)
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
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
            error = HF_STR("not a valid value in DynamoDB's JSON");
        break;
    case VALUE_JSON:
        attr.type = HF_TYPE_NONE;
        json = hf__cli_json_read(s, attr.text, &error);
        if (json)
            attr.value = hf__cli_json_to_value(s, json);
        break;
    }
    if (attr.type != HF_TYPE_NONE || attr.value.ptr) {
        attr.name = HF_STR("v");
        if (hf_item_check(s, hf_item_make(s, &attr, 1)) == HF_OK) {
            settings->value = hf_value_make(s, attr);
            return HF_OK;
        }
        error = hf_scope_error(s)->message;
    }
    return hf__command_fail(c, CLI_USAGE, "invalid value: %.*s", HF_FMT(error));
}

static enum hf_status kv_set_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if ((c->operands_len == 2) == (settings->file.ptr != NULL))
        return hf__command_fail(c, CLI_USAGE, "%s",
                                settings->file.ptr
                                    ? "a value and --file cannot be combined"
                                    : "missing value; usage: holdfast kv set [options] ID VALUE");
    return value_read(c);
}

static enum hf_status kv_set(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_kv_entry entry;

    TRY(hf_kv_set(c->scope, c->place, key_of(settings, c->operands[0]), settings->value,
                  HF_OPTIONS(hf_kv_set_options, .ttl_s = (uint32_t)(settings->ttl_s / 1000),
                             .if_absent = settings->if_absent, .if_version = settings->if_version),
                  &entry));
    return entry_print_json(c, &entry);
}

COMMAND_OF(kv_set, kv_set, COMMAND_SETTINGS(struct settings), .min = 1, .max = 2,
           .place = &kv_place, .table = COMMAND_MAKES, .check = kv_set_check);

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    OPT_TEXT("if-version", "VERSION", if_version,
             "Only if the key has this version; otherwise exit code 4."),
    KEY_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example delete_examples[] = {
    {"holdfast kv delete motd", "Succeeds if the key does not exist."},
};

const struct options_table hf__kv_delete_options = {
    .name = "kv delete",
    .operands = "ID",
    .about = "Delete a key. Succeeds if the key does not exist; --json shows whether it did.",
    COMMAND_SPECS(delete),
};

static enum hf_status kv_delete(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_kv_entry old = {.expires_s = 0};

    if (!c->place && settings->if_version.ptr)
        return no_value(c, CLI_CONDITION);
    if (c->place)
        TRY(hf_kv_delete(c->scope, c->place, key_of(settings, c->operands[0]),
                         HF_OPTIONS(hf_kv_delete_options, .if_version = settings->if_version),
                         &old));
    return COMMAND_JSON(c, hf__rows_text("id", hf__command_operand(c, 0)),
                        hf__rows_bool("deleted", old.value.ptr != NULL));
}

COMMAND_OF(kv_delete, kv_delete, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &kv_place, .table = COMMAND_LOOKS);

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    KEY_SPECS,
    RANGE_SPECS,
    OPT_NUMBER("limit", limit, 0, UINT32_MAX,
               "At most this many; with --json, \"next\" says where to continue."),
    OPT_TEXT("after", "CURSOR", after,
             "Continue a list: the \"next\" that it printed with --json."),
    OPT_FLAG("reverse", backward, "Last id first; only where ids are listed in order.",
             .letter = 'r'),
    OPT_FLAG("keys", keys_only, "Print ids without values.", .letter = 'k'),
    OPT_FLAG("consistent", consistent,
             "Include keys that the namespace index may not have yet: reads the whole table."),
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast kv ls", "All keys of the namespace \"global\"."},
    {"holdfast kv ls -p user-7 --from 2026-01 --before 2026-02 --jsonl",
     "A range of ids of a partition, in order."},
};

const struct options_table hf__kv_ls_options = {
    .name = "kv ls",
    .operands = "[PREFIX]",
    .about =
        "List the keys of a namespace, or those whose ids begin with PREFIX. In a partition, and "
        "in a table with a namespace index (kv index), they are in order and only they are read; "
        "otherwise the whole table is read.",
    COMMAND_SPECS(ls),
};

static struct hf_kv_range range_of(const struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return (struct hf_kv_range){.partition = settings->partition,
                                .space = settings->space,
                                .all_spaces = settings->all_spaces,
                                .prefix = hf__command_operand(c, 0),
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

static enum hf_status list_print(struct command_ctx *c, struct hf_kv_list *list)
{
    const struct settings *settings = c->settings;
    struct rows *rows = hf__command_rows(c, "entries");
    struct hf_scope *s = c->scope;
    struct hf_kv_entry entry;

    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct rows_field fields[ENTRY_FIELDS];

        TRY(hf_kv_list_next(s, list, &entry));
        if (!entry.value.ptr)
            break;
        make_fields(c->cli, &entry, fields);
        if (settings->keys_only)
            hf__rows_add(rows, &fields[2], 1);
        else
            hf__rows_add(rows, fields, ENTRY_FIELDS);
        hf_scope_rewind(s, mark);
        /* Nobody reads on: a closed pipe. */
        if (ferror(c->cli->out))
            break;
    }
    return hf_kv_list_cursor(s, list, &c->next);
}

static enum hf_status kv_ls(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_kv_range range = range_of(c);
    struct hf_kv_list *list;
    enum hf_status status;

    TRY(hf_kv_list_open(c->scope, c->place, &range,
                        HF_OPTIONS(hf_kv_list_options, .limit = (uint32_t)settings->limit,
                                   .after = settings->after, .backward = settings->backward,
                                   .consistent = list_consistency(settings, c->place)),
                        &list));
    status = list_print(c, list);
    hf_kv_list_free(list);
    return status;
}

COMMAND_OF(kv_ls, kv_ls, COMMAND_SETTINGS(struct settings), .max = 1, .place = &kv_place,
           .table = COMMAND_LOOKS, .list = "entries");

/* ---- clear ---------------------------------------------------------------------------------- */

static const struct option_spec clear_specs[] = {
    OPT_FLAG("yes", yes,
             "Do not ask. Where there is no terminal to ask on, nothing is deleted without it.",
             .letter = 'y'),
    KEY_SPECS,
    RANGE_SPECS,
    OPT_FLAG("eventual", eventual,
             "Use eventually consistent reads, which cost half at AWS: keys set just before may "
             "stay. With a namespace index (kv index) only the namespace is read."),
    DATABASE_ONE(struct settings),
};

static const struct option_example clear_examples[] = {
    {"holdfast kv clear -n sessions --yes", "All keys of a namespace."},
};

const struct options_table hf__kv_clear_options = {
    .name = "kv clear",
    .operands = "[PREFIX]",
    .about =
        "Delete all keys of a namespace, or those whose ids begin with PREFIX. Keys that are set "
        "meanwhile may stay or be deleted. After a failure, run it again.",
    COMMAND_SPECS(clear),
};

static enum hf_status kv_clear_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__command_confirm_now(c, settings->yes, "deletes all these keys");
}

static enum hf_status kv_clear(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_kv_range range = range_of(c);
    uint64_t cleared = 0;

    if (c->place)
        TRY(hf_kv_clear(c->scope, c->place, &range,
                        HF_OPTIONS(hf_kv_clear_options, .eventual = settings->eventual), &cleared));
    return hf__command_count(c, "cleared", cleared);
}

COMMAND_OF(kv_clear, kv_clear, COMMAND_SETTINGS(struct settings), .max = 1, .place = &kv_place,
           .table = COMMAND_LOOKS, .check = kv_clear_check);

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    OPT_TIME("older", older_ms, 1000, (uint64_t)UINT32_MAX * 1000,
             "Keep blobs younger than this: they may belong to a key that is being set.",
             .fallback = "24h"),
    OPT_FLAG("partitioned", partitioned, "The table is partitioned."),
    TABLE_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example sweep_examples[] = {
    {"holdfast kv sweep --blobs s3://values", "Run it once a night, for example."},
};

const struct options_table hf__kv_sweep_options = {
    .name = "kv sweep",
    .about =
        "Delete values from the blob store that no key references any more, because the key was "
        "changed, deleted, or has expired. Reads the whole table.",
    COMMAND_SPECS(sweep),
};

static enum hf_status kv_sweep_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return settings->blobs.ptr ? HF_OK : hf__command_missing(c, "--blobs");
}

static enum hf_status kv_sweep(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint64_t removed = 0;

    hf_scope_timeout_ms(c->scope, 0); /* it can be interrupted, and called again */
    TRY(hf_kv_sweep_blobs(c->scope, c->place, (uint32_t)(settings->older_ms / 1000), &removed));
    return hf__command_count(c, "blobs", removed);
}

/* It needs the table: an empty one would use none of the blobs. */
COMMAND_OF(kv_sweep, kv_sweep, COMMAND_SETTINGS(struct settings), .place = &kv_place,
           .table = COMMAND_NEEDS, .check = kv_sweep_check);
