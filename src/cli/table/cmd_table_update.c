/*
 * cli/table/cmd_table_update.c: `holdfast table update`: change the settings and indexes of a table.
 *
 * DynamoDB makes one kind of change at a time, so a command may be several requests, with a wait between
 * them:
 *
 *     billing and throughput             first, as new indexes are billed as their table is
 *     remove indexes, then add them      one by one; an index of the same name can be replaced so
 *     stream                             another view needs the stream to be switched off first
 *     expiry                             so does another attribute
 *     class, protection
 *
 * What always holds:
 *
 *  (1) Everything is compared with the table before the first change: what cannot be done, such as adding an
 *      index of a name that is there with other keys, changes nothing.
 *  (2) A setting that is already as wanted is not touched, so the same command can be run again.
 */
#include "base/base.h"
#include "cli/frame/output/progress.h"
#include "cli/table/table.h"
#include "cli/table/table_words.h"

#include <string.h>

enum { LOOK_MIN_MS = 20, LOOK_MAX_MS = 2000 };
enum { UNITS_MAX = 1000 * 1000 * 1000 };
enum { PROJECTED_MAX = 20 }; /* attributes that an index names, as DynamoDB has it */
enum { BILLING_ON_DEMAND, BILLING_PROVISIONED };
enum { CLASS_STANDARD, CLASS_INFREQUENT };

struct settings {
    struct database_settings database;
    unsigned stream;
    struct hf_str ttl;
    bool no_ttl;
    bool protect;
    struct option_list indexes;
    struct option_list removed;
    unsigned billing;
    uint64_t read_units;
    uint64_t write_units;
    unsigned table_class;
    bool no_wait;
    struct hf_create_table words; /* the indexes to add */
};

static const struct option_spec update_specs[] = {
    OPT_LIST(
        "index", "NAME=KEY", indexes,
        "Add a global index, as 'table create' has it: by_day=day:N/keys. May be given several "
        "times.",
        .letter = 'i'),
    OPT_LIST("remove-index", "NAME", removed,
             "Remove a global index; with --index of the same name, replace it. May be given "
             "several times."),
    OPT_CHOICE("stream", TABLE_STREAM_WORDS, stream,
               "Switch the stream of changes on, with these images of the items, or off (none). A "
               "change of the view starts a new stream."),
    OPT_TEXT("ttl", "ATTRIBUTE", ttl, "Let items expire by this attribute."),
    OPT_FLAG("no-ttl", no_ttl, "Let items expire no more."),
    OPT_FLAG("protect", protect, "Refuse to delete the table; --no-protect allows it again."),
    OPT_CHOICE("billing", "on-demand provisioned", billing,
               "How the table is billed. provisioned needs --read-units and --write-units."),
    OPT_NUMBER("read-units", read_units, 1, UNITS_MAX, "Provisioned reads per second."),
    OPT_NUMBER("write-units", write_units, 1, UNITS_MAX, "Provisioned writes per second."),
    OPT_CHOICE("class", "standard infrequent-access", table_class,
               "The table class, which decides what storage and requests cost at Amazon."),
    OPT_FLAG("no-wait", no_wait,
             "Do not wait for the last change. A change before another one is always waited for."),
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS_WITH(
        struct settings,
        "Time limit for a request; then the exit code is 7. There is no limit to the "
        "wait for an index."),
};

static const struct option_example update_examples[] = {
    {"holdfast table update orders --index by_day=day:N --ttl expires",
     "Add an index and let items expire."},
    {"holdfast table update orders --remove-index by_day --index by_day=day:N,total:N",
     "Replace an index."},
    {"holdfast table update orders --no-protect --stream none", "Switch things off."},
};

const struct options_table hf__table_update_options = {
    .name = "table update",
    .operands = "NAME",
    .about = "Change a table, and wait until the change is made. What is already as wanted is left "
             "alone, so the same command can be run again.\n\n"
             "The output lists every setting and whether it was changed.",
    COMMAND_SPECS(update),
};

/* ---- checking ------------------------------------------------------------------------------- */

static bool is_given(const struct command_ctx *c, const char *name)
{
    return hf__options_source(c->table, &c->options, name) == OPTION_GIVEN;
}

/* (1) What no database takes, whatever its table is like. */
static enum hf_status indexes_read_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct hf_create_table *words = &settings->words;
    const struct option_list *removed = &settings->removed;

    for (size_t i = 0; i < removed->len; i++)
        for (size_t j = 0; j < i; j++)
            if (hf_str_equal(removed->values[i], removed->values[j]))
                return hf__command_fail(c, CLI_USAGE, "--remove-index %.*s is given twice",
                                        HF_FMT(removed->values[i]));
    for (size_t i = 0; i < words->global_indexes_len; i++) {
        const struct hf_index *index = &words->global_indexes[i];

        for (size_t j = 0; j < i; j++)
            if (hf_str_equal(index->name, words->global_indexes[j].name))
                return hf__command_fail(c, CLI_USAGE, "--index %.*s is given twice",
                                        HF_FMT(index->name));
        if (index->key_schema_len > 1 &&
            hf_str_equal(index->key_schema[0].name, index->key_schema[1].name))
            return hf__command_fail(c, CLI_USAGE,
                                    "index '%.*s': its hash key and its range key are the same",
                                    HF_FMT(index->name));
        if (index->projection->attributes_len > PROJECTED_MAX)
            return hf__command_fail(c, CLI_USAGE, "index '%.*s' names more than %d attributes",
                                    HF_FMT(index->name), (int)PROJECTED_MAX);
    }
    return HF_OK;
}

static enum hf_status table_update_check(struct command_ctx *c)
{
    static const char *const changes[] = {"index",       "remove-index", "stream",  "ttl",
                                          "no-ttl",      "protect",      "billing", "read-units",
                                          "write-units", "class"};
    struct settings *settings = c->settings;
    struct table_words words = {.key = HF_STR("k"), .indexes = settings->indexes};
    struct hf_str error = {0};
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        any |= is_given(c, changes[i]);
    if (!any)
        return hf__command_fail(c, CLI_USAGE, "give what to change, such as --ttl or --index");
    if (settings->ttl.ptr && settings->no_ttl)
        return hf__command_fail(c, CLI_USAGE, "--ttl and --no-ttl contradict each other");
    if (!settings->read_units != !settings->write_units)
        return hf__command_fail(c, CLI_USAGE, "give both --read-units and --write-units");
    if (is_given(c, "billing") &&
        (settings->billing == BILLING_PROVISIONED) != !!settings->read_units)
        return hf__command_fail(c, CLI_USAGE,
                                settings->read_units
                                    ? "--billing on-demand has no --read-units and --write-units"
                                    : "--billing provisioned needs --read-units and --write-units");
    if (!hf__cli_table_words_read(c->scope, &words, &settings->words, &error))
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    return indexes_read_check(c);
}

/* ---- changes -------------------------------------------------------------------------------- */

struct table_update {
    struct command_ctx *c;
    struct hf_str name;
    const struct hf_table_description *table; /* as it was at the start */
    struct hf_str ttl;                        /* the same; absent: no expiry */
    struct rows *rows;
    struct progress progress;
    bool waits; /* the last request may not be done yet */
};

static void change_report(struct table_update *u, const char *setting, struct hf_str value,
                          bool changed)
{
    COMMAND_ROW(u->rows, hf__rows_text("setting", hf_str_from(setting)),
                hf__rows_text("value", value),
                hf__rows_text("result", changed ? HF_STR("changed") : HF_STR("as it was")),
                (struct rows_field){.name = "changed",
                                    .text = changed ? HF_STR("true") : HF_STR("false"),
                                    .kind = ROWS_JSON});
}

static bool is_settled(const struct hf_table_description *table)
{
    if (table->status != HF_TABLE_ACTIVE)
        return false;
    for (size_t i = 0; i < table->global_indexes_len; i++)
        if (table->global_indexes[i].status && table->global_indexes[i].status != HF_TABLE_ACTIVE)
            return false;
    return true;
}

/* Wait until the table and its indexes are active. */
static enum hf_status change_await(struct table_update *u, const char *what, struct hf_str value)
{
    struct hf_scope *s = u->c->scope;
    const struct hf_env *env = hf_scope_env(s);
    int64_t begin_us = hf__env_elapsed_us(env);
    uint32_t look_ms = LOOK_MIN_MS;

    if (!u->waits)
        return HF_OK;
    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        const struct hf_table_description *table;

        hf_scope_timeout_ms(s, (uint32_t)u->c->database->timeout_ms);
        TRY(hf__cli_table_describe(u->c, u->name, &table));
        if (is_settled(table))
            break;
        if (hf__progress_due(&u->progress, false))
            hf__progress_print(&u->progress, "waiting for %s %.*s: %lld s", what, HF_FMT(value),
                               (long long)((hf__env_elapsed_us(env) - begin_us) / 1000000));
        hf_scope_rewind(s, mark);
        hf_scope_timeout_ms(s, 0);
        TRY(hf_scope_sleep_ms(s, look_ms));
        look_ms = look_ms * 2 < LOOK_MAX_MS ? look_ms * 2 : LOOK_MAX_MS;
    }
    u->waits = false;
    return HF_OK;
}

/* Send a request after what was sent before is done. */
static enum hf_status change_send(struct table_update *u, const char *what, struct hf_str value,
                                  struct hf_update_table *request)
{
    TRY(change_await(u, what, value));
    request->table = u->name;
    hf_scope_timeout_ms(u->c->scope, (uint32_t)u->c->database->timeout_ms);
    TRY(hf_update_table(u->c->scope, u->c->db, request, NULL));
    u->waits = true;
    return HF_OK;
}

/* The same for a change that is complete with it. */
static enum hf_status change_make(struct table_update *u, const char *setting, struct hf_str value,
                                  struct hf_update_table *request)
{
    TRY(change_send(u, setting, value, request));
    change_report(u, setting, value, true);
    return HF_OK;
}

/* ---- indexes -------------------------------------------------------------------------------- */

static const struct hf_index_description *index_find(const struct hf_table_description *table,
                                                     struct hf_str name)
{
    for (size_t i = 0; i < table->global_indexes_len; i++)
        if (hf_str_equal(table->global_indexes[i].name, name))
            return &table->global_indexes[i];
    return NULL;
}

static bool list_has(const struct option_list *list, struct hf_str text)
{
    for (size_t i = 0; i < list->len; i++)
        if (hf_str_equal(list->values[i], text))
            return true;
    return false;
}

static enum hf_scalar_type type_of(const struct hf_attribute_definition *attributes, size_t len,
                                   struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(attributes[i].name, name))
            return attributes[i].type;
    return 0;
}

static bool names_include(const struct hf_str *names, size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(names[i], name))
            return true;
    return false;
}

static bool projection_equals(const struct hf_projection *a, const struct hf_projection *b)
{
    if (!a || !b || a->type != b->type || a->attributes_len != b->attributes_len)
        return false;
    for (size_t i = 0; i < a->attributes_len; i++)
        if (!names_include(b->attributes, b->attributes_len, a->attributes[i]))
            return false;
    return true;
}

static bool index_equals(const struct table_update *u, const struct hf_index_description *is,
                         const struct hf_index *want)
{
    const struct settings *settings = u->c->settings;
    const struct hf_create_table *words = &settings->words;

    if (is->key_schema_len != want->key_schema_len)
        return false;
    for (size_t i = 0; i < is->key_schema_len; i++) {
        struct hf_str name = want->key_schema[i].name;

        if (!hf_str_equal(is->key_schema[i].name, name) ||
            is->key_schema[i].type != want->key_schema[i].type ||
            type_of(u->table->attributes, u->table->attributes_len, name) !=
                type_of(words->attributes, words->attributes_len, name))
            return false;
    }
    return projection_equals(is->projection, want->projection);
}

static const struct hf_index *index_wanted(const struct settings *settings, struct hf_str name)
{
    for (size_t i = 0; i < settings->words.global_indexes_len; i++)
        if (hf_str_equal(settings->words.global_indexes[i].name, name))
            return &settings->words.global_indexes[i];
    return NULL;
}

/* Is it removed? (2) One that is to be replaced by itself is not. */
static bool index_goes(const struct table_update *u, const struct hf_index_description *is)
{
    const struct settings *settings = u->c->settings;
    const struct hf_index *want = index_wanted(settings, is->name);

    return list_has(&settings->removed, is->name) && !(want && index_equals(u, is, want));
}

static bool key_names(const struct hf_key_element *key, size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(key[i].name, name))
            return true;
    return false;
}

static bool indexes_name(const struct table_update *u, bool local, struct hf_str name)
{
    const struct hf_index_description *indexes =
        local ? u->table->local_indexes : u->table->global_indexes;
    size_t len = local ? u->table->local_indexes_len : u->table->global_indexes_len;

    for (size_t i = 0; i < len; i++)
        if ((local || !index_goes(u, &indexes[i])) &&
            key_names(indexes[i].key_schema, indexes[i].key_schema_len, name))
            return true;
    return false;
}

/* The type of an attribute of a key that is there once indexes were removed; 0: of none. */
static enum hf_scalar_type type_kept(const struct table_update *u, struct hf_str name)
{
    if (!key_names(u->table->key_schema, u->table->key_schema_len, name) &&
        !indexes_name(u, true, name) && !indexes_name(u, false, name))
        return 0;
    return type_of(u->table->attributes, u->table->attributes_len, name);
}

/* (1) */
static enum hf_status indexes_check(struct table_update *u)
{
    const struct settings *settings = u->c->settings;
    const struct hf_create_table *words = &settings->words;

    for (size_t i = 0; i < words->global_indexes_len; i++) {
        const struct hf_index *want = &words->global_indexes[i];
        const struct hf_index_description *is = index_find(u->table, want->name);

        for (size_t j = 0; j < u->table->local_indexes_len; j++)
            if (hf_str_equal(u->table->local_indexes[j].name, want->name))
                return hf__command_fail(u->c, CLI_CONDITION, "'%.*s' is a local index of the table",
                                        HF_FMT(want->name));
        if (is && !index_equals(u, is, want) && !list_has(&settings->removed, want->name))
            return hf__command_fail(u->c, CLI_CONDITION,
                                    "index '%.*s' exists with another key or other attributes: add "
                                    "--remove-index %.*s to replace it",
                                    HF_FMT(want->name), HF_FMT(want->name));
        for (size_t j = 0; j < want->key_schema_len; j++) {
            enum hf_scalar_type type = type_kept(u, want->key_schema[j].name);

            if (type &&
                type != type_of(words->attributes, words->attributes_len, want->key_schema[j].name))
                return hf__command_fail(u->c, CLI_CONDITION,
                                        "attribute '%.*s' is a key of the table with another type",
                                        HF_FMT(want->key_schema[j].name));
        }
    }
    return HF_OK;
}

static enum hf_status indexes_remove(struct table_update *u)
{
    const struct settings *settings = u->c->settings;

    for (size_t i = 0; i < settings->removed.len; i++) {
        struct hf_str name = settings->removed.values[i];
        const struct hf_index_description *is = index_find(u->table, name);
        const struct hf_index_delete removed = {.name = name};
        const struct hf_index_change change = {.del = &removed};

        if (!is)
            change_report(u, "remove index", name, false);
        else if (index_goes(u, is))
            TRY(change_make(u, "remove index", name,
                            &(struct hf_update_table){.index_changes = &change,
                                                      .index_changes_len = 1}));
    }
    return HF_OK;
}

/* DynamoDB wants the definitions of the attributes of this index alone. */
static enum hf_status index_add(struct table_update *u, const struct hf_index *index)
{
    const struct settings *settings = u->c->settings;
    const struct hf_create_table *words = &settings->words;
    struct hf_attribute_definition *attributes =
        hf_scope_alloc(u->c->scope, index->key_schema_len * sizeof(*attributes));
    struct hf_index copy = *index;
    const struct hf_index_change change = {.create = &copy};
    const struct hf_throughput units = {.read_units = (int64_t)settings->read_units,
                                        .write_units = (int64_t)settings->write_units};
    const struct hf_throughput_description *is = u->table->throughput;
    const struct hf_throughput as_table = {.read_units = is ? is->read_units : 0,
                                           .write_units = is ? is->write_units : 0};

    if (!attributes)
        return HF_NOMEM;
    for (size_t i = 0; i < index->key_schema_len; i++)
        attributes[i] = (struct hf_attribute_definition){
            .name = index->key_schema[i].name,
            .type = type_of(words->attributes, words->attributes_len, index->key_schema[i].name)};
    if (settings->read_units)
        copy.throughput = &units;
    else if (!is_given(u->c, "billing") && as_table.read_units > 0 && as_table.write_units > 0)
        copy.throughput = &as_table; /* a provisioned table has provisioned indexes */
    return change_make(u, "index", index->name,
                       &(struct hf_update_table){.attributes = attributes,
                                                 .attributes_len = index->key_schema_len,
                                                 .index_changes = &change,
                                                 .index_changes_len = 1});
}

static enum hf_status indexes_add(struct table_update *u)
{
    const struct settings *settings = u->c->settings;

    for (size_t i = 0; i < settings->words.global_indexes_len; i++) {
        const struct hf_index *want = &settings->words.global_indexes[i];
        const struct hf_index_description *is = index_find(u->table, want->name);

        enum hf_status status;

        if (is && index_equals(u, is, want)) {
            change_report(u, "index", want->name, false);
            continue;
        }
        status = index_add(u, want);
        if (status != HF_OK && is)
            hf__cli_notice(u->c->cli, u->c->name,
                           "index '%.*s' was removed, and the one in its place was not added",
                           HF_FMT(want->name));
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* ---- settings ------------------------------------------------------------------------------- */

static enum hf_status stream_change(struct table_update *u)
{
    const struct settings *settings = u->c->settings;
    enum hf_stream_view want = hf__cli_table_view(settings->stream);
    const struct hf_stream_spec *stream = u->table->stream;
    enum hf_stream_view is = stream && stream->enabled == HF_YES ? stream->view : 0;
    const struct hf_stream_spec off = {.enabled = HF_NO};
    const struct hf_stream_spec on = {.enabled = HF_YES, .view = want};
    struct hf_str word = hf_str_from(hf__cli_table_view_word(want));

    if (!is_given(u->c, "stream"))
        return HF_OK;
    if (is != want && is)
        TRY(change_send(u, "stream", word, &(struct hf_update_table){.stream = &off}));
    if (is != want && want)
        TRY(change_send(u, "stream", word, &(struct hf_update_table){.stream = &on}));
    change_report(u, "stream", word, is != want);
    return HF_OK;
}

static enum hf_status ttl_set(struct table_update *u, struct hf_str attribute, bool enabled)
{
    const struct hf_ttl_spec spec = {.enabled = enabled ? HF_YES : HF_NO, .attribute = attribute};

    TRY(change_await(u, "expiry", attribute));
    hf_scope_timeout_ms(u->c->scope, (uint32_t)u->c->database->timeout_ms);
    return hf_update_time_to_live(u->c->scope, u->c->db,
                                  &(struct hf_update_time_to_live){.table = u->name, .spec = &spec},
                                  NULL);
}

static enum hf_status ttl_change(struct table_update *u)
{
    const struct settings *settings = u->c->settings;
    struct hf_str want = settings->ttl;
    bool same = want.ptr ? u->ttl.ptr && hf_str_equal(u->ttl, want) : !u->ttl.ptr;

    if (!want.ptr && !settings->no_ttl)
        return HF_OK;
    if (!same && u->ttl.ptr)
        TRY(ttl_set(u, u->ttl, false));
    if (!same && want.ptr)
        TRY(ttl_set(u, want, true));
    change_report(u, "ttl", want.ptr ? want : HF_STR("none"), !same);
    return HF_OK;
}

/* When a table is provisioned, its indexes have to be as well; they get as much. */
static enum hf_status indexes_provision(struct table_update *u, const struct hf_throughput *units,
                                        struct hf_update_table *request)
{
    size_t len = u->table->global_indexes_len;
    struct hf_index_update *updates = hf_scope_alloc(u->c->scope, (len + 1) * sizeof(*updates));
    struct hf_index_change *changes = hf_scope_alloc(u->c->scope, (len + 1) * sizeof(*changes));

    if (!len)
        return HF_OK;
    if (!updates || !changes)
        return HF_NOMEM;
    for (size_t i = 0; i < len; i++) {
        updates[i] =
            (struct hf_index_update){.name = u->table->global_indexes[i].name, .throughput = units};
        changes[i] = (struct hf_index_change){.update = &updates[i]};
    }
    request->index_changes = changes;
    request->index_changes_len = len;
    return HF_OK;
}

static enum hf_status billing_change(struct table_update *u)
{
    const struct settings *settings = u->c->settings;
    const struct hf_throughput units = {.read_units = (int64_t)settings->read_units,
                                        .write_units = (int64_t)settings->write_units};
    const struct hf_throughput_description *is = u->table->throughput;
    bool on_demand = u->table->billing && u->table->billing->billing == HF_BILLING_PAY_PER_REQUEST;
    struct hf_update_table request = {.throughput = settings->read_units ? &units : NULL};
    struct hf_str word = HF_STR("on-demand");

    if (!is_given(u->c, "billing") && !settings->read_units)
        return HF_OK;
    if (settings->read_units)
        word = hf_scope_format(u->c->scope, "provisioned, %llu reads, %llu writes",
                               (unsigned long long)settings->read_units,
                               (unsigned long long)settings->write_units);
    if (settings->read_units ? !on_demand && is && is->read_units == units.read_units &&
                                   is->write_units == units.write_units
                             : on_demand) {
        change_report(u, "billing", word, false);
        return HF_OK;
    }
    if (!settings->read_units)
        request.billing = HF_BILLING_PAY_PER_REQUEST;
    else if (on_demand) {
        request.billing = HF_BILLING_PROVISIONED;
        TRY(indexes_provision(u, &units, &request));
    }
    return change_make(u, "billing", word, &request);
}

static enum hf_status class_change(struct table_update *u)
{
    const struct settings *settings = u->c->settings;
    enum hf_table_class want =
        settings->table_class == CLASS_INFREQUENT ? HF_TABLE_INFREQUENT_ACCESS : HF_TABLE_STANDARD;
    enum hf_table_class is =
        u->table->table_class ? u->table->table_class->table_class : HF_TABLE_STANDARD;
    struct hf_str word = settings->table_class == CLASS_INFREQUENT ? HF_STR("infrequent-access")
                                                                   : HF_STR("standard");

    if (!is_given(u->c, "class"))
        return HF_OK;
    if (is != want)
        return change_make(u, "class", word, &(struct hf_update_table){.table_class = want});
    change_report(u, "class", word, false);
    return HF_OK;
}

static enum hf_status protection_change(struct table_update *u)
{
    const struct settings *settings = u->c->settings;
    bool is = u->table->deletion_protection == HF_YES;
    struct hf_str word = settings->protect ? HF_STR("on") : HF_STR("off");

    if (!is_given(u->c, "protect"))
        return HF_OK;
    if (is != settings->protect)
        return change_make(u, "protection", word,
                           &(struct hf_update_table){.deletion_protection =
                                                         settings->protect ? HF_YES : HF_NO});
    change_report(u, "protection", word, false);
    return HF_OK;
}

static enum hf_status changes_make(struct table_update *u)
{
    const struct settings *settings = u->c->settings;

    TRY(billing_change(u));
    TRY(indexes_remove(u));
    TRY(indexes_add(u));
    TRY(stream_change(u));
    TRY(ttl_change(u));
    TRY(class_change(u));
    TRY(protection_change(u));
    return settings->no_wait ? HF_OK : change_await(u, "table", u->name);
}

static enum hf_status table_update(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct table_update u = {.c = c, .name = hf__command_operand(c, 0)};
    enum hf_status status;

    TRY(hf__cli_table_describe(c, u.name, &u.table));
    if (settings->ttl.ptr || settings->no_ttl)
        TRY(hf__cli_table_ttl(c, c->db, u.name, &u.ttl));
    TRY(indexes_check(&u));
    u.waits = !is_settled(u.table);
    u.rows = hf__command_rows(c, "changes");
    hf__progress_begin(&u.progress, c->cli, c->database->quiet, false);
    status = changes_make(&u);
    hf__progress_end(&u.progress);
    return status;
}

const struct command hf__table_update_command = {COMMAND_SETTINGS(struct settings), .min = 1,
                                                 .max = 1, .check = table_update_check,
                                                 .body = table_update};
