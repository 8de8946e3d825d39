/*
 * cli/foreign/cmd_foreign.c: values, counters and locks from tables of @paradoxical-io/common-aws into tables
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
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

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

#define FROM_SPEC                                                                                  \
    OPT_TEXT("from", "NAME", from, "The table of common-aws to read. It is not changed.",          \
             .heading = "Tables")
#define SPACE_SPECS                                                                                \
    OPT_TEXT("namespace", "TEXT", space,                                                           \
             "Only keys of this namespace: those that begin with TEXT and a dot. By default all "  \
             "keys; their namespace is the text before the first dot.",                            \
             .letter = 'n'),                                                                       \
        OPT_TEXT("default-namespace", "TEXT", bare,                                                \
                 "Namespace for keys without one; \"global\" by default, none in partitions.")

/* An import as it goes. */
struct import {
    struct command_ctx *c;
    struct settings *settings;
    struct hf_str hash, sort; /* names of the keys' attributes; sort absent: there is none */
    uint64_t imported;        /* are in our table now */
    uint64_t kept;            /* were there before, and stay as they were */
    uint64_t skipped;         /* could not be taken over; each was reported */
    void *into;               /* what it goes to */
};

/* What is imported. */
struct import_kind {
    const char *table, *table_sorted; /* ours, without and with partitions */
    enum hf_status (*open)(struct import *im);
    void (*close)(void *into);
    enum hf_status (*take)(struct import *im, struct hf_item item); /* take over one item */
};

/* A key of common-aws, taken apart. */
struct import_key {
    struct hf_str partition; /* absent: there are none */
    struct hf_str space;
    struct hf_str id;
};

/* ---- reading -------------------------------------------------------------------------------- */

static void import_skip(struct import *im, struct hf_str key, const char *why)
{
    im->skipped++;
    hf__cli_notice(im->c->cli, im->c->name, "skipped \"%.*s\": %s", HF_FMT(key), why);
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
        import_skip(im, hash.ptr ? hash : HF_STR("?"), "its key is not a string");
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
static enum hf_status import_describe(struct import *im)
{
    struct hf_describe_table request = {.table = im->settings->from};
    struct hf_describe_table_result described;
    struct hf_scope *s = im->c->scope;

    TRY(hf_describe_table(s, im->c->db, &request, &described));
    for (size_t i = 0; i < described.table->key_schema_len; i++)
        if (described.table->key_schema[i].type == HF_KEY_HASH)
            im->hash = hf_scope_copy(s, described.table->key_schema[i].name);
        else
            im->sort = hf_scope_copy(s, described.table->key_schema[i].name);
    return hf_scope_built(s);
}

static enum hf_status import_items(struct import *im, const struct import_kind *kind)
{
    struct hf_scan scan = {.table = im->settings->from, .consistent = HF_YES};
    struct hf_scope *s = im->c->scope;
    enum hf_status status = HF_OK;
    struct hf_pages *pages;
    struct hf_item item;

    TRY(hf_pages_scan(s, im->c->db, &scan, NULL, &pages));
    while (status == HF_OK) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        hf_scope_timeout_ms(s, (uint32_t)im->c->database->timeout_ms); /* for each item */
        status = hf_pages_next_item(s, pages, &item);
        if (status != HF_OK || !item.ptr)
            break;
        status = kind->take(im, item);
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

/* ---- what all of them do -------------------------------------------------------------------- */

static enum hf_status import_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return settings->from.len ? HF_OK : hf__command_missing(c, "--from");
}

static enum hf_status import_table(struct command_ctx *c)
{
    const struct import_kind *kind = c->command->data;
    struct import im = {.c = c, .settings = c->settings};
    struct settings *settings = c->settings;
    enum hf_status status;

    TRY(import_describe(&im));
    if (!settings->table.len)
        settings->table = hf_str_from(im.sort.ptr ? kind->table_sorted : kind->table);
    if (hf_str_equal(settings->from, settings->table))
        return hf__command_fail(
            c, CLI_USAGE,
            "source and target are the same table: name another target with --table, or another "
            "source with --from");
    TRY(kind->open(&im));
    status = import_items(&im, kind);
    kind->close(im.into);
    TRY(status);
    TRY(COMMAND_PRINT(c, hf__rows_number(c->cli, "imported", im.imported),
                      hf__rows_number(c->cli, "kept", im.kept),
                      hf__rows_number(c->cli, "skipped", im.skipped)));
    return hf__command_end(c, im.skipped ? CLI_FAILED : CLI_OK);
}

#define IMPORT_COMMAND(kind)                                                                       \
    {                                                                                              \
        COMMAND_SETTINGS(struct settings), .check = import_check, .body = import_table,            \
                                           .data = &(kind)                                         \
    }

/* ---- kv import ------------------------------------------------------------------------------ */

static const struct option_spec kv_specs[] = {
    FROM_SPEC,
    OPT_TEXT(
        "table", "NAME", table,
        "Target table; by default \"keys\", or \"partitioned_keys\" with partitions. Created if "
        "missing."),
    SPACE_SPECS,
    OPT_FLAG("namespace-index", space_index,
             "If the table is created, give it a namespace index: see 'holdfast kv index'."),
    DATABASE_ONE(struct settings),
};

static const struct option_example kv_examples[] = {
    {"holdfast kv import --from paradox.prod.keys", "All values, with their namespaces."},
    {"holdfast kv import --from keys --table app_keys -n users", "One namespace."},
};

const struct options_table hf__kv_import_options = {
    .name = "kv import",
    .about =
        "Copy the values of a table of @paradoxical-io/common-aws. JSON becomes the value that "
        "it stands for; other text stays text. Existing keys are not changed, so you can run it "
        "again.",
    COMMAND_SPECS(kv),
};

static struct hf_value value_of(struct hf_scope *s, struct hf_value data)
{
    struct hf_str text = hf_value_str(data), error;
    const struct json_node *json = text.ptr ? hf__cli_json_read(s, text, &error) : NULL;
    struct hf_value value = json ? hf__cli_json_to_value(s, json) : data;

    return value.ptr ? value : data;
}

static enum hf_status value_take(struct import *im, struct hf_item item)
{
    struct hf_value data = hf_item_get(item, HF_STR("data"));
    struct hf_scope *s = im->c->scope;
    struct import_key key;
    enum hf_status status;

    if (!data.ptr || !take_key(im, item, &key))
        return HF_OK;
    status =
        hf_kv_set(s, im->into,
                  (struct hf_kv_key){.partition = key.partition, .space = key.space, .id = key.id},
                  value_of(s, data), HF_OPTIONS(hf_kv_set_options, .if_absent = true), NULL);
    im->imported += status == HF_OK;
    im->kept += status == HF_CONDITION;
    if (status == HF_INVALID)
        import_skip(im, key.id, hf_scope_error_text(s));
    return status == HF_CONDITION || status == HF_INVALID ? HF_OK : status;
}

static enum hf_status kv_open(struct import *im)
{
    struct hf_kv *kv;

    TRY(hf_kv_open(im->c->scope, im->c->db,
                   HF_OPTIONS(hf_kv_options, .table = im->settings->table,
                              .partitioned = im->sort.ptr != NULL,
                              .space_index = im->settings->space_index),
                   &kv));
    im->into = kv;
    return HF_OK;
}

static void kv_close(void *kv)
{
    hf_kv_close(kv);
}

static const struct import_kind kv_kind = {"keys", "partitioned_keys", kv_open, kv_close,
                                           value_take};

const struct command hf__kv_import_command = IMPORT_COMMAND(kv_kind);

/* ---- counter import ------------------------------------------------------------------------- */

static const struct option_spec counter_specs[] = {
    FROM_SPEC,
    OPT_TEXT(
        "table", "NAME", table,
        "Target table; by default \"keys\", or \"partitioned_keys\" with partitions. Created if "
        "missing."),
    SPACE_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example counter_examples[] = {
    {"holdfast counter import --from paradox.prod.keys", "All counters, with their namespaces."},
};

const struct options_table hf__counter_import_options = {
    .name = "counter import",
    .about =
        "Start counters at the values that they have in a table of @paradoxical-io/common-aws. "
        "First stop the programs that count there. Existing counters are not changed, so you can "
        "run it again.",
    COMMAND_SPECS(counter),
};

/* The request id lets an add whose answer was lost, and one of another import, count once. */
static enum hf_status counter_take(struct import *im, struct hf_item item)
{
    struct hf_value count = hf_item_get(item, HF_STR("count"));
    struct hf_scope *s = im->c->scope;
    struct hf_counter_value there;
    struct hf_counter_key key;
    struct import_key parts;
    int64_t number = 0, value;
    bool again = false;

    if (!count.ptr || !take_key(im, item, &parts))
        return HF_OK;
    key =
        (struct hf_counter_key){.id = parts.id, .partition = parts.partition, .space = parts.space};
    if (!hf_value_i64(count, &number)) {
        import_skip(im, parts.id, "its count is not a 64-bit integer");
        return HF_OK;
    }
    TRY(hf_counter_get_many(s, im->into, &key, 1, &there));
    if (!there.found)
        TRY(hf_counter_add_once(s, im->into, key, HF_STR("import"), number, NULL, &value, &again));
    im->imported += !there.found && !again;
    im->kept += there.found || again;
    return HF_OK;
}

static enum hf_status counters_open(struct import *im)
{
    struct hf_counters *counters;

    TRY(hf_counters_open(im->c->scope, im->c->db,
                         HF_OPTIONS(hf_counters_options, .table = im->settings->table,
                                    .partitioned = im->sort.ptr != NULL),
                         &counters));
    im->into = counters;
    return HF_OK;
}

static void counters_close(void *counters)
{
    hf_counters_close(counters);
}

static const struct import_kind counters_kind = {"keys", "partitioned_keys", counters_open,
                                                 counters_close, counter_take};

const struct command hf__counter_import_command = IMPORT_COMMAND(counters_kind);

/* ---- lock import ---------------------------------------------------------------------------- */

static const struct option_spec lock_specs[] = {
    FROM_SPEC,
    OPT_TEXT("table", "NAME", table, "Target table; \"locks\" by default. Created if missing."),
    DATABASE_ONE(struct settings),
};

static const struct option_example lock_examples[] = {
    {"holdfast lock import --from paradox.prod.locks",
     "Before the first program uses the new table."},
};

const struct options_table hf__lock_import_options = {
    .name = "lock import",
    .about =
        "Take over the locks that are held in a table of @paradoxical-io/common-aws. Each stays "
        "held until it would expire there; nothing renews it. Expired locks are skipped, and "
        "locks that are held in the target table are not changed.",
    COMMAND_SPECS(lock),
};

static enum hf_status lock_take(struct import *im, struct hf_item item)
{
    struct hf_str name = hf_value_str(hf_item_get(item, im->hash));
    struct hf_value expires = hf_item_get(item, HF_STR("expiresAt"));
    const struct hf_env *env = hf_scope_env(im->c->scope);
    int64_t at_s = 0, left_ms;
    enum hf_status status;
    struct hf_lock *lock;

    if (!expires.ptr)
        return HF_OK;
    if (!name.len || !hf_value_i64(expires, &at_s)) {
        import_skip(im, name.len ? name : HF_STR("?"), "it has no name or no expiry time");
        return HF_OK;
    }
    if (at_s < 0)
        at_s = 0;
    if (at_s > UINT32_MAX) /* until 2106 */
        at_s = UINT32_MAX;
    left_ms = at_s * 1000 - env->wall_us(env->user) / 1000;
    if (left_ms <= 0)
        return HF_OK;
    status =
        hf_lock_try(im->c->scope, im->into, name,
                    HF_OPTIONS(hf_lock_options, .no_heartbeats = true,
                               .lease_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX),
                    &lock);
    if (status == HF_OK)
        hf_lock_leave(lock);
    im->imported += status == HF_OK;
    im->kept += status == HF_LOCKED;
    return status == HF_LOCKED ? HF_OK : status;
}

static enum hf_status locks_open(struct import *im)
{
    struct hf_str owner =
        hf_scope_format(im->c->scope, "import of table %.*s", HF_FMT(im->settings->from));
    struct hf_lock_table *locks;

    TRY(hf_lock_table_open(im->c->scope, im->c->db,
                           HF_OPTIONS(hf_lock_table_options, .table = im->settings->table,
                                      .owner = owner),
                           &locks));
    im->into = locks;
    return HF_OK;
}

static void locks_close(void *locks)
{
    hf_lock_table_close(locks);
}

static const struct import_kind locks_kind = {"locks", "locks", locks_open, locks_close, lock_take};

const struct command hf__lock_import_command = IMPORT_COMMAND(locks_kind);
