/*
 * cli/import/cmd_import.c: values, counters and locks from tables of @paradoxical-io/common-aws into tables
 * of ours: `holdfast kv|counter|lock import --from TABLE`.
 *
 * Its tables look like ours and are not. What it keeps:
 *
 *     key                     S  "NAMESPACE.ID", or "ID" where there is no namespace; or
 *     partitionKey, sortKey   S  the partition, and the same
 *     data                    S  JSON; a value
 *     count                   N  a counter
 *     expiresAt               N  of a lock: seconds since 1970
 *
 * The names of the keys come from the table itself. Nothing is changed in it, and what is in our
 * table already is left as it is. So an import can be run again, after a failure or to take over
 * what has come since.
 */
#include "cli/frame/commands.h"
#include "cli/frame/json.h"
#include "cli/frame/rows.h"

#include <holdfast/counter.h>
#include <holdfast/kv.h>
#include <holdfast/lock.h>
#include <holdfast/pages.h>

struct settings {
    struct database_settings database;
    struct hf_str from;
    struct hf_str table;
    struct hf_str space;
    struct hf_str bare;
    bool space_index;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define FROM_SPEC                                                                                  \
    {                                                                                              \
        .heading = "The tables", .kind = OPTION_TEXT, .name = "from", .value = "NAME",             \
        .text = "The table of common-aws to read. Nothing is changed in it.", FIELD(from)          \
    }
#define SPACE_SPECS                                                                                \
    {.kind = OPTION_TEXT,                                                                          \
     .letter = 'n',                                                                                \
     .name = "namespace",                                                                          \
     .value = "TEXT",                                                                              \
     .text = "Only keys of this namespace: those that begin with TEXT and a dot. By default all; " \
             "the namespace is what is in front of the first dot.",                                \
     FIELD(space)},                                                                                \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "default-namespace", .value = "TEXT",                         \
        .text = "Namespace for keys that have none; \"global\" by default, in partitions none.",   \
        FIELD(bare)                                                                                \
    }

/* An import as it goes. */
struct import {
    struct cli *cli;
    const char *command;
    const struct settings *settings;
    struct hf_db *db;
    struct hf_str hash, sort; /* names of the keys' attributes; sort absent: there is none */
    uint64_t imported;        /* are in our table now */
    uint64_t kept;            /* were there before, and stay as they were */
    uint64_t skipped;         /* could not be taken over; each was reported */
    void *into;               /* what it goes to */
};

/* Take over one item. False: the error is in the scope. */
typedef bool import_fn(struct import *im, struct hf_item item);

/* A key of common-aws, taken apart. */
struct import_key {
    struct hf_str partition; /* absent: there are none */
    struct hf_str space;
    struct hf_str id;
};

/* ---- reading -------------------------------------------------------------------------------- */

static void skip(struct import *im, struct hf_str key, const char *why)
{
    im->skipped++;
    hf__cli_tell(im->cli, im->command, "\"%.*s\" is skipped: %s", HF_FMT(key), why);
}

/* False: it is not to be imported. */
static bool take_key(struct import *im, struct hf_item item, struct import_key *key)
{
    struct hf_str hash = hf_value_str(hf_item_get(item, im->hash));
    struct hf_str joined = im->sort.ptr ? hf_value_str(hf_item_get(item, im->sort)) : hash;
    struct hf_str space = im->settings->space;
    const char *dot = joined.len ? memchr(joined.ptr, '.', joined.len) : NULL;

    *key = (struct import_key){.space = im->settings->bare, .id = joined};
    if (!key->space.ptr) /* where other commands look for them */
        key->space = im->sort.ptr ? HF_STR("") : HF_STR("global");
    if (im->sort.ptr)
        key->partition = hash;
    if (!joined.ptr || !hash.ptr) {
        skip(im, hash.ptr ? hash : HF_STR("?"), "its key is not a string");
        return false;
    }
    if (space.len) {
        if (joined.len <= space.len + 1 || memcmp(joined.ptr, space.ptr, space.len) != 0 ||
            joined.ptr[space.len] != '.')
            return false;
        dot = joined.ptr + space.len;
    }
    if (dot && dot + 1 < joined.ptr + joined.len) {
        key->space = hf_str_of(joined.ptr, (size_t)(dot - joined.ptr));
        key->id = hf_str_of(dot + 1, joined.len - key->space.len - 1);
    }
    return true;
}

/* What the keys of its table are called. */
static bool describe(struct import *im)
{
    struct hf_describe_table request = {.table = im->settings->from};
    struct hf_describe_table_result described;

    if (hf_describe_table(im->cli->scope, im->db, &request, &described) != HF_OK)
        return false;
    for (size_t i = 0; i < described.table->key_schema_len; i++)
        if (described.table->key_schema[i].type == HF_KEY_HASH)
            im->hash = hf_scope_copy(im->cli->scope, described.table->key_schema[i].name);
        else
            im->sort = hf_scope_copy(im->cli->scope, described.table->key_schema[i].name);
    return hf_scope_built(im->cli->scope) == HF_OK;
}

static bool read_all(struct import *im, import_fn *take)
{
    struct hf_scan scan = {.table = im->settings->from, .consistent = HF_YES};
    struct hf_scope *s = im->cli->scope;
    struct hf_pages *pages;
    struct hf_item item;
    bool fine = true;

    if (hf_pages_scan(s, im->db, &scan, NULL, &pages) != HF_OK)
        return false;
    while (fine) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        hf_scope_timeout_ms(s, (uint32_t)im->settings->database.timeout_ms); /* for each item */
        fine = hf_pages_next_item(s, pages, &item) == HF_OK;
        if (!fine || !item.ptr)
            break;
        fine = take(im, item);
        if (fine)
            hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return fine;
}

/* ---- what all of them do -------------------------------------------------------------------- */

static bool begin(struct import *im, const struct options_table *table, size_t args_len,
                  const char *const *args, struct settings *settings, const char *fallback,
                  const char *fallback_sorted, int *ends)
{
    struct options options;

    if (!hf__cli_operands(im->cli, table, args_len, args, 0, 0, settings, &options, ends))
        return false;
    im->settings = settings;
    if (!settings->from.len) {
        *ends = hf__cli_fail(im->cli, im->command, CLI_USAGE, "--from is missing");
        return false;
    }
    if (!hf__database_open(im->cli, im->command, &settings->database, &im->db, ends))
        return false;
    if (!describe(im)) {
        *ends = hf__database_fail(im->cli, im->command);
        hf_db_close(im->db);
        return false;
    }
    if (!settings->table.len)
        settings->table = hf_str_from(im->sort.ptr ? fallback_sorted : fallback);
    if (hf_str_equal(settings->from, settings->table)) {
        *ends = hf__cli_fail(im->cli, im->command, CLI_USAGE,
                             "a table cannot be imported into itself: name another one with "
                             "--table, or rename");
        hf_db_close(im->db);
        return false;
    }
    return true;
}

static int end(struct import *im, bool fine)
{
    struct rows_field fields[] = {hf__rows_number(im->cli, "imported", im->imported),
                                  hf__rows_number(im->cli, "kept", im->kept),
                                  hf__rows_number(im->cli, "skipped", im->skipped)};
    int ends = CLI_OK;

    if (!fine)
        ends = hf__database_fail(im->cli, im->command);
    else
        ends = hf__rows_one(im->cli, &im->settings->database, fields, COMMAND_LEN(fields));
    return ends == CLI_OK && im->skipped ? CLI_FAILED : ends;
}

/* ---- kv import ------------------------------------------------------------------------------ */

static const struct option_spec kv_specs[] = {
    FROM_SPEC,
    {.kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .text = "Our table; \"keys\" by default, with partitions \"partitioned_keys\". Made when it "
             "is missing.",
     FIELD(table)},
    SPACE_SPECS,
    {.kind = OPTION_FLAG,
     .name = "namespace-index",
     .text = "If the table is made now, with an index of namespaces: see 'holdfast kv index'.",
     FIELD(space_index)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example kv_examples[] = {
    {"holdfast kv import --from paradox.prod.keys", "All values, with their namespaces."},
    {"holdfast kv import --from keys --table app_keys -n users", "One namespace."},
};

const struct options_table hf__kv_import_options = {
    .name = "kv import",
    .about =
        "Copy the values of a table of @paradoxical-io/common-aws: JSON becomes the value that "
        "it stands for, and a text that is no JSON stays a text. Keys that are there stay as "
        "they are, so it can be run again.",
    .specs = kv_specs,
    .len = COMMAND_LEN(kv_specs),
    .examples = kv_examples,
    .examples_len = COMMAND_LEN(kv_examples),
};

static struct hf_value value_of(struct hf_scope *s, struct hf_value data)
{
    struct hf_str text = hf_value_str(data), error;
    const struct json *json = text.ptr ? hf__json_read(s, text, &error) : NULL;
    struct hf_value value = json ? hf__json_to_value(s, json) : data;

    return value.ptr ? value : data;
}

static bool take_value(struct import *im, struct hf_item item)
{
    struct hf_value data = hf_item_get(item, HF_STR("data"));
    struct hf_scope *s = im->cli->scope;
    struct import_key key;
    enum hf_status status;

    if (!data.ptr || !take_key(im, item, &key))
        return true;
    status =
        hf_kv_set(s, im->into,
                  (struct hf_kv_key){.partition = key.partition, .space = key.space, .id = key.id},
                  value_of(s, data), HF_OPTIONS(hf_kv_set_options, .if_absent = true), NULL);
    im->imported += status == HF_OK;
    im->kept += status == HF_CONDITION;
    if (status == HF_INVALID)
        skip(im, key.id, hf_scope_error_text(s));
    return status == HF_OK || status == HF_CONDITION || status == HF_INVALID;
}

int hf__kv_import_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct import im = {.cli = cli, .command = "kv import"};
    struct settings settings = {.from = {0}};
    struct hf_kv *kv;
    bool fine;
    int ends;

    if (!begin(&im, &hf__kv_import_options, args_len, args, &settings, "keys", "partitioned_keys",
               &ends))
        return ends;
    fine = hf_kv_open(cli->scope, im.db,
                      HF_OPTIONS(hf_kv_options, .table = settings.table,
                                 .partitioned = im.sort.ptr != NULL,
                                 .space_index = settings.space_index),
                      &kv) == HF_OK;
    im.into = kv;
    fine = fine && read_all(&im, take_value);
    ends = end(&im, fine);
    hf_kv_close(kv);
    hf_db_close(im.db);
    return ends;
}

/* ---- counter import ------------------------------------------------------------------------- */

static const struct option_spec counter_specs[] = {
    FROM_SPEC,
    {.kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .text = "Our table; \"keys\" by default, with partitions \"partitioned_keys\". Made when it "
             "is missing.",
     FIELD(table)},
    SPACE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example counter_examples[] = {
    {"holdfast counter import --from paradox.prod.keys", "All counters, with their namespaces."},
};

const struct options_table hf__counter_import_options = {
    .name = "counter import",
    .about = "Let counters begin at the values that they have in a table of "
             "@paradoxical-io/common-aws. Stop whoever counts there first. Counters that are there "
             "stay as they are, so it can be run again.",
    .specs = counter_specs,
    .len = COMMAND_LEN(counter_specs),
    .examples = counter_examples,
    .examples_len = COMMAND_LEN(counter_examples),
};

/* The request id lets an add whose answer was lost, and one of another import, count once. */
static bool take_counter(struct import *im, struct hf_item item)
{
    struct hf_value count = hf_item_get(item, HF_STR("count"));
    struct hf_scope *s = im->cli->scope;
    struct hf_counter_value there;
    struct hf_counter_key key;
    struct import_key parts;
    int64_t number = 0, value;
    bool again = false;

    if (!count.ptr || !take_key(im, item, &parts))
        return true;
    key =
        (struct hf_counter_key){.id = parts.id, .partition = parts.partition, .space = parts.space};
    if (!hf_value_i64(count, &number)) {
        skip(im, parts.id, "its count is not a whole number of 64 bits");
        return true;
    }
    if (hf_counter_get_many(s, im->into, &key, 1, &there) != HF_OK)
        return false;
    if (!there.found && hf_counter_add_once(s, im->into, key, HF_STR("import"), number, NULL,
                                            &value, &again) != HF_OK)
        return false;
    im->imported += !there.found && !again;
    im->kept += there.found || again;
    return true;
}

int hf__counter_import_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct import im = {.cli = cli, .command = "counter import"};
    struct settings settings = {.from = {0}};
    struct hf_counters *counters;
    bool fine;
    int ends;

    if (!begin(&im, &hf__counter_import_options, args_len, args, &settings, "keys",
               "partitioned_keys", &ends))
        return ends;
    fine = hf_counters_open(cli->scope, im.db,
                            HF_OPTIONS(hf_counters_options, .table = settings.table,
                                       .partitioned = im.sort.ptr != NULL),
                            &counters) == HF_OK;
    im.into = counters;
    fine = fine && read_all(&im, take_counter);
    ends = end(&im, fine);
    hf_counters_close(counters);
    hf_db_close(im.db);
    return ends;
}

/* ---- lock import ---------------------------------------------------------------------------- */

static const struct option_spec lock_specs[] = {
    FROM_SPEC,
    {.kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .text = "Our table; \"locks\" by default. Made when it is missing.",
     FIELD(table)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example lock_examples[] = {
    {"holdfast lock import --from paradox.prod.locks", "Before the first program uses ours."},
};

const struct options_table hf__lock_import_options = {
    .name = "lock import",
    .about = "Hold the locks that are held in a table of @paradoxical-io/common-aws, each until it "
             "would expire there: nobody renews them. Locks that have expired are left out, and "
             "those that are held in our table stay as they are.",
    .specs = lock_specs,
    .len = COMMAND_LEN(lock_specs),
    .examples = lock_examples,
    .examples_len = COMMAND_LEN(lock_examples),
};

static bool take_lock(struct import *im, struct hf_item item)
{
    struct hf_str name = hf_value_str(hf_item_get(item, im->hash));
    struct hf_value expires = hf_item_get(item, HF_STR("expiresAt"));
    const struct hf_env *env = hf_scope_env(im->cli->scope);
    int64_t at_s = 0, left_ms;
    enum hf_status status;
    struct hf_lock *lock;

    if (!expires.ptr)
        return true;
    if (!name.len || !hf_value_i64(expires, &at_s)) {
        skip(im, name.len ? name : HF_STR("?"), "it has no name, or no time to expire at");
        return true;
    }
    if (at_s < 0)
        at_s = 0;
    if (at_s > UINT32_MAX) /* until 2106 */
        at_s = UINT32_MAX;
    left_ms = at_s * 1000 - env->wall_us(env->user) / 1000;
    if (left_ms <= 0)
        return true;
    status =
        hf_lock_try(im->cli->scope, im->into, name,
                    HF_OPTIONS(hf_lock_options, .no_heartbeats = true,
                               .lease_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX),
                    &lock);
    if (status == HF_OK)
        hf_lock_leave(lock);
    im->imported += status == HF_OK;
    im->kept += status == HF_LOCKED;
    return status == HF_OK || status == HF_LOCKED;
}

int hf__lock_import_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct import im = {.cli = cli, .command = "lock import"};
    struct settings settings = {.from = {0}};
    struct hf_lock_table *locks;
    bool fine;
    int ends;

    if (!begin(&im, &hf__lock_import_options, args_len, args, &settings, "locks", "locks", &ends))
        return ends;
    fine =
        hf_lock_table_open(cli->scope, im.db,
                           HF_OPTIONS(hf_lock_table_options, .table = settings.table,
                                      .owner = hf_scope_format(cli->scope, "import of table %.*s",
                                                               HF_FMT(settings.from))),
                           &locks) == HF_OK;
    im.into = locks;
    fine = fine && read_all(&im, take_lock);
    ends = end(&im, fine);
    hf_lock_table_close(locks);
    hf_db_close(im.db);
    return ends;
}
