/*
 * cli/transfer/first_data.c: tables and items that a server starts with, for `holdfast serve --init`.
 *
 *     collect    files are definitions of tables, or items; folders have both, and exports in AWS's layout
 *     define     tables that are missing are created, with a tag that says that they are not loaded yet
 *     load       the items of those tables are stored; of others they are compared
 *     finish     the tag is removed
 *
 * What always holds:
 *
 *  (1) A table that was there before is left as it is. What differs from the files is logged, no more.
 *  (2) A table that this made has all of its items before the tag goes. A start that was killed, or ended with an
 *      error, leaves the tag; the next start stores all items of that table again, and so completes it. A table
 *      with the tag is not served to writers, as what they change would then be overwritten.
 *  (3) All definitions are read before anything is made, and all tables are there before items are stored.
 */
#include "cli/transfer/first_data.h"

#include "base/base.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/child.h"
#include "cli/frame/process/input.h"
#include "cli/table/table_file.h"
#include "cli/transfer/import_source.h"

#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TIMEOUT_MS = 60 * 1000, THREADS = 4, SAY_EVERY_US = 5 * 1000 * 1000 };

/* On tables whose items are not all there yet. */
#define LOADING_TAG "holdfast:init"

enum table_state {
    TABLE_LOADING, /* made by this start, or by one that was not finished */
    TABLE_OLD      /* was there before */
};

struct first_table {
    struct hf_str name;
    enum table_state state;
    bool made;          /* by this start */
    struct hf_str from; /* the file that defines it; absent: none does */
    const struct hf_table_description *description;
    uint64_t items;
    bool differs; /* from the files; was logged */
};

struct definition {
    struct hf_str path;
    const struct table_definition *table;
    struct hf_str request; /* as JSON, to compare */
};

struct loader {
    struct command_ctx c;
    const struct first_data *first;
    struct database_settings database;
    struct import_sources sources;
    struct definition *definitions; /* in the scope, as the rest */
    size_t definitions_len, definitions_cap;
    struct first_table *tables;
    size_t tables_len, tables_cap;
    int64_t said_us; /* when progress was logged last */
};

/* ---- help ----------------------------------------------------------------------------------- */

static void HF_PRINTF(3, 4)
    loader_say(const struct loader *l, enum hf_log_level level, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    l->first->say(l->first->user, level, text);
}

/* One more element of a list in the scope; NULL: no memory. */
static void *list_grow(struct hf_scope *s, void *list, size_t len, size_t *cap, size_t size)
{
    size_t wanted = *cap ? *cap * 2 : 16;
    void *more;

    if (len < *cap)
        return list;
    more = hf_scope_alloc(s, wanted * size);
    if (!more)
        return NULL;
    if (len)
        memcpy(more, list, len * size);
    *cap = wanted;
    return more;
}

static enum hf_status memory_fails(struct loader *l)
{
    return hf_scope_fail(l->c.scope, HF_NOMEM, "out of memory");
}

/* ---- collecting ----------------------------------------------------------------------------- */

/* Is it JSON as a whole, and of tables? */
static bool is_definition(struct hf_scope *s, const char *path)
{
    struct hf_str error = {0};
    struct hf_str text = hf__input_read(s, path, TABLE_FILE_MAX, &error);
    const struct json_node *json = text.ptr ? hf__cli_json_read(s, text, &error) : NULL;
    const struct json_node *table, *resources;

    if (!json || json->kind != JSON_OBJECT)
        return false;
    table = hf__cli_json_member(json, "Table");
    resources = hf__cli_json_member(json, "Resources");
    return (hf__cli_json_member(json, "TableName") && hf__cli_json_member(json, "KeySchema")) ||
           (table && table->kind == JSON_OBJECT && hf__cli_json_member(table, "KeySchema")) ||
           (resources && resources->kind == JSON_OBJECT && !hf__cli_json_member(json, "S")) ||
           hf__cli_table_is_terraform(json);
}

static enum hf_status definition_add(struct loader *l, struct hf_str path,
                                     const struct table_definition *table)
{
    struct hf_str request = hf__cli_table_spec_request(l->c.scope, &table->spec);
    struct definition *more = list_grow(l->c.scope, l->definitions, l->definitions_len,
                                        &l->definitions_cap, sizeof(*more));

    if (!request.ptr || !more)
        return memory_fails(l);
    l->definitions = more;
    for (size_t i = 0; i < l->definitions_len; i++) {
        if (!hf_str_equal(more[i].table->spec.table, table->spec.table))
            continue;
        if (hf_str_equal(more[i].request, request))
            return HF_OK;
        return hf__command_fail(&l->c, CLI_USAGE,
                                "%.*s and %.*s define table %.*s, and not in the same way",
                                HF_FMT(more[i].path), HF_FMT(path), HF_FMT(table->spec.table));
    }
    more[l->definitions_len++] =
        (struct definition){.path = path, .table = table, .request = request};
    return HF_OK;
}

static enum hf_status definitions_read(struct loader *l, struct hf_str path)
{
    struct table_file *file = hf_scope_alloc(l->c.scope, sizeof(*file));
    struct hf_str error = {0};
    struct hf_str text = hf__input_read(l->c.scope, path.ptr, TABLE_FILE_MAX, &error);

    if (!file)
        return memory_fails(l);
    if (!text.ptr)
        return hf__command_fail(&l->c, CLI_USAGE, "%.*s", HF_FMT(error));
    *file = (struct table_file){.s = l->c.scope};
    if (!hf__cli_table_file_read(file, text))
        return hf__command_fail(&l->c, CLI_USAGE, "%.*s: %.*s", HF_FMT(path), HF_FMT(file->error));
    if (file->ignored.len)
        loader_say(l, HF_LOG_WARNING, "%.*s: not used: %.*s", HF_FMT(path), HF_FMT(file->ignored));
    for (size_t i = 0; i < file->tables_len; i++)
        TRY(definition_add(l, path, &file->tables[i]));
    return HF_OK;
}

/* A file that was named, or is in a folder that was. */
static enum hf_status file_add(struct loader *l, struct hf_str path, bool named)
{
    struct hf_scope_mark mark = hf_scope_mark(l->c.scope);
    enum transfer_format format = hf__transfer_format_of(path.ptr);
    bool defines = hf__transfer_ends_with(path.ptr, ".json") && is_definition(l->c.scope, path.ptr);

    hf_scope_rewind(l->c.scope, mark);
    if (defines || (named && format == TRANSFER_AUTO))
        return definitions_read(l, path);
    if (format != TRANSFER_AUTO)
        return hf__import_add_file(&l->c, &l->sources, path);
    loader_say(
        l, HF_LOG_WARNING,
        "%.*s is left out: its name ends with none of .json, .jsonl, .csv, nor with one of these and "
        ".gz",
        HF_FMT(path));
    return HF_OK;
}

static int name_compare(const void *a, const void *b)
{
    const struct hf_str *first = a, *second = b;

    return bytes_compare(first->ptr, first->len, second->ptr, second->len);
}

/* The names in the directory, sorted, without hidden ones. */
static enum hf_status names_read(struct loader *l, const char *path, struct hf_str **names,
                                 size_t *len)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    struct hf_str *list = NULL;
    size_t cap = 0;

    *len = 0;
    if (!dir)
        return hf__command_fail(&l->c, CLI_USAGE, "--init: %s: %s", path, strerror(errno));
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        list = list_grow(l->c.scope, list, *len, &cap, sizeof(*list));
        if (!list)
            break;
        list[(*len)++] =
            hf_scope_format(l->c.scope, "%s%s%s", path,
                            hf__transfer_ends_with(path, "/") ? "" : "/", entry->d_name);
    }
    closedir(dir);
    TRY(hf_scope_built(l->c.scope));
    if (*len)
        qsort(list, *len, sizeof(*list), name_compare);
    *names = list;
    return HF_OK;
}

static bool is_below(struct hf_str path, struct hf_str folder)
{
    return path.len > folder.len && memcmp(path.ptr, folder.ptr, folder.len) == 0 &&
           path.ptr[folder.len] == '/';
}

/* Its files, and the exports at or below it. */
static enum hf_status directory_add(struct loader *l, struct hf_str path)
{
    struct hf_str *dirs, *names = NULL;
    size_t dirs_len, len = 0;

    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        path = hf_scope_copy(l->c.scope, hf_str_of(path.ptr, path.len - 1));
    TRY(hf_scope_built(l->c.scope));
    TRY(hf__transfer_aws_find(l->c.scope, path.ptr, &dirs, &dirs_len));
    TRY(hf__import_add_aws(&l->c, &l->sources, dirs, dirs_len));
    if (dirs_len == 1 && !is_below(dirs[0], path))
        return HF_OK; /* it is the export itself */
    TRY(names_read(l, path.ptr, &names, &len));
    for (size_t i = 0; i < len; i++) {
        bool has_export = false;
        struct stat about;

        for (size_t k = 0; k < dirs_len; k++)
            has_export =
                has_export || hf_str_equal(dirs[k], names[i]) || is_below(dirs[k], names[i]);
        if (stat(names[i].ptr, &about) != 0)
            return hf__command_fail(&l->c, CLI_USAGE, "--init: %.*s: %s", HF_FMT(names[i]),
                                    strerror(errno));
        if (S_ISREG(about.st_mode))
            TRY(file_add(l, names[i], false));
        else if (!has_export)
            loader_say(l, HF_LOG_WARNING, "%.*s is left out: it is neither a file nor an export",
                       HF_FMT(names[i]));
    }
    return HF_OK;
}

static enum hf_status sources_collect(struct loader *l)
{
    for (size_t i = 0; i < l->first->sources->len; i++) {
        struct hf_str path = l->first->sources->values[i];
        struct stat about;

        if (stat(path.ptr, &about) != 0)
            return hf__command_fail(&l->c, CLI_USAGE, "--init: %.*s: %s", HF_FMT(path),
                                    strerror(errno));
        if (S_ISDIR(about.st_mode))
            TRY(directory_add(l, path));
        else
            TRY(file_add(l, path, true));
    }
    /* Definitions beside the data. In folders they were found already. */
    for (size_t i = 0; i < l->sources.tasks_len; i++)
        if (l->sources.tasks[i].schema.ptr)
            TRY(definitions_read(l, l->sources.tasks[i].schema));
    return HF_OK;
}

/* ---- tables --------------------------------------------------------------------------------- */

static struct first_table *table_find(const struct loader *l, struct hf_str name)
{
    for (size_t i = 0; i < l->tables_len; i++)
        if (hf_str_equal(l->tables[i].name, name))
            return &l->tables[i];
    return NULL;
}

static enum hf_status table_describe(struct loader *l, struct hf_str name,
                                     const struct hf_table_description **description)
{
    struct hf_describe_table_result described = {.table = NULL};

    TRY(hf_describe_table(l->c.scope, l->c.db, &(struct hf_describe_table){.table = name},
                          &described));
    *description = described.table;
    return HF_OK;
}

/* A table that was made with another --region or --account keeps its ARN, by which nobody may ask for
 * tags now: then it has none that we made. */
static enum hf_status tag_find(struct loader *l, struct hf_str arn, bool *found)
{
    struct hf_list_tags_of_resource request = {.arn = arn};
    struct hf_list_tags_of_resource_result page;
    enum hf_status status;

    *found = false;
    do {
        status = hf_list_tags_of_resource(l->c.scope, l->c.db, &request, &page);
        if (status == HF_DENIED)
            return hf_scope_ok(l->c.scope);
        TRY(status);
        for (size_t i = 0; i < page.tags_len; i++)
            *found = *found || hf_str_equal(page.tags[i].key, HF_STR(LOADING_TAG));
        request.next_token = page.next_token;
    } while (page.next_token.ptr && !*found);
    return HF_OK;
}

static enum hf_status table_create(struct loader *l, const struct definition *definition)
{
    const struct hf_table_wait_options wait = {.size = sizeof(wait), .timeout_ms = TIMEOUT_MS};
    struct hf_create_table spec = definition->table->spec;
    struct hf_tag *tags = hf_scope_alloc(l->c.scope, (spec.tags_len + 1) * sizeof(*tags));

    if (!tags)
        return memory_fails(l);
    if (spec.tags_len)
        memcpy(tags, spec.tags, spec.tags_len * sizeof(*tags));
    tags[spec.tags_len++] = (struct hf_tag){.key = HF_STR(LOADING_TAG), .value = HF_STR("loading")};
    spec.tags = tags;
    if (hf_table_ensure(l->c.scope, l->c.db, &spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = definition->table->ttl,
                                   .wait = &wait)) != HF_OK)
        return hf__command_fail(&l->c, CLI_USAGE, "%.*s: table %.*s: %s", HF_FMT(definition->path),
                                HF_FMT(spec.table), hf_scope_error_text(l->c.scope));
    return HF_OK;
}

/* The expiry of a table; absent: items do not expire. */
static enum hf_status expiry_find(struct loader *l, struct hf_db *db, struct hf_str table,
                                  struct hf_str *attribute)
{
    struct hf_describe_time_to_live_result result;

    *attribute = (struct hf_str){0};
    TRY(hf_describe_time_to_live(l->c.scope, db, &(struct hf_describe_time_to_live){.table = table},
                                 &result));
    if (result.description && result.description->status == HF_TTL_ENABLED)
        *attribute = result.description->attribute;
    return HF_OK;
}

/*
 * What is different, in the words of hf_table_ensure(), which would also mend what it can. So it is asked about
 * a copy of the table, without items, in a database of its own.
 */
static enum hf_status table_compare(struct loader *l, struct first_table *table,
                                    const struct definition *definition)
{
    struct hf_scope *s = l->c.scope;
    struct hf_create_table copy, before, after;
    struct hf_str ttl, now;
    struct hf_describe_table_result described;
    const char *what = NULL;
    enum hf_status status;
    struct hf_db *db;

    TRY(hf__cli_table_spec_of(s, table->description, &copy));
    copy.deletion_protection = HF_UNSET;
    TRY(expiry_find(l, l->c.db, table->name, &ttl));
    TRY(hf_open(s, HF_STR("memory:"), NULL, &db));
    status = hf_table_ensure(s, db, &copy, HF_OPTIONS(hf_table_options, .ttl_attribute = ttl));
    if (status == HF_OK &&
        hf_table_ensure(s, db, &definition->table->spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = definition->table->ttl)) !=
            HF_OK)
        what = hf_scope_error_text(s);
    if (status == HF_OK && !what) { /* what it has mended differed, too */
        struct hf_str one = {0}, two = {0};

        status =
            hf_describe_table(s, db, &(struct hf_describe_table){.table = table->name}, &described);
        if (status == HF_OK)
            status = hf__cli_table_spec_of(s, described.table, &after);
        if (status == HF_OK)
            status = hf__cli_table_spec_of(s, table->description, &before);
        if (status == HF_OK)
            status = expiry_find(l, db, table->name, &now);
        if (status == HF_OK) {
            before.deletion_protection = after.deletion_protection = HF_UNSET;
            one = hf__cli_table_spec_request(s, &before);
            two = hf__cli_table_spec_request(s, &after);
            if (!hf_str_equal(one, two))
                what = "the stream is off";
            else if (!hf_str_equal(ttl, now))
                what = "items do not expire";
        }
    }
    if (status == HF_OK && what) {
        table->differs = true;
        loader_say(l, HF_LOG_WARNING, "table %.*s is not as %.*s says, and is left as it is: %s",
                   HF_FMT(table->name), HF_FMT(definition->path), what);
    }
    hf_db_close(db);
    return status;
}

/* Find the table and its state, or make it. `definition` may be NULL. */
static enum hf_status table_prepare(struct loader *l, struct hf_str name,
                                    const struct definition *definition, struct hf_str source)
{
    struct first_table *more =
        list_grow(l->c.scope, l->tables, l->tables_len, &l->tables_cap, sizeof(*more));
    struct first_table table = {.name = name};
    enum hf_status status;
    bool loading;

    if (!more)
        return memory_fails(l);
    l->tables = more;
    status = table_describe(l, name, &table.description);
    if (status == HF_NOT_FOUND && !definition)
        return hf__command_fail(&l->c, CLI_USAGE,
                                "%.*s: there is no table %.*s, and no file defines it: add its "
                                "request of CreateTable, as %.*s%s",
                                HF_FMT(source), HF_FMT(name), HF_FMT(name), TRANSFER_SCHEMA_END);
    table.made = status == HF_NOT_FOUND;
    if (table.made) {
        TRY(table_create(l, definition));
        status = table_describe(l, name, &table.description);
    }
    if (status != HF_OK)
        return hf__command_fail(&l->c, CLI_USAGE, "%.*s: table %.*s: %s", HF_FMT(source),
                                HF_FMT(name), hf_scope_error_text(l->c.scope));
    TRY(tag_find(l, table.description->arn, &loading));
    table.state = loading ? TABLE_LOADING : TABLE_OLD;
    if (definition)
        table.from = definition->path;
    if (table.made)
        loader_say(l, HF_LOG_INFO, "created table %.*s of %.*s", HF_FMT(name),
                   HF_FMT(definition->path));
    else if (loading)
        loader_say(l, HF_LOG_INFO,
                   "table %.*s was not loaded completely: its items are stored again",
                   HF_FMT(name));
    if (definition && !table.made)
        TRY(table_compare(l, &table, definition));
    more[l->tables_len++] = table;
    return HF_OK;
}

static enum hf_status tables_prepare(struct loader *l)
{
    for (size_t i = 0; i < l->definitions_len; i++)
        TRY(table_prepare(l, l->definitions[i].table->spec.table, &l->definitions[i],
                          l->definitions[i].path));
    for (size_t i = 0; i < l->sources.tasks_len; i++)
        if (!table_find(l, l->sources.tasks[i].table))
            TRY(table_prepare(l, l->sources.tasks[i].table, NULL, l->sources.tasks[i].source));
    return HF_OK;
}

/* ---- items ---------------------------------------------------------------------------------- */

static void on_progress(void *user, struct hf_str table, uint64_t items, double bytes, double all)
{
    struct loader *l = user;
    const struct hf_env *env = hf_scope_env(l->c.scope);
    int64_t now = env->elapsed_us(env->user);

    if (now - l->said_us < SAY_EVERY_US)
        return;
    l->said_us = now;
    if (all > 0)
        loader_say(l, HF_LOG_INFO, "%.*s: %llu items, %d%%", HF_FMT(table),
                   (unsigned long long)items, (int)(100 * bytes / all));
    else
        loader_say(l, HF_LOG_INFO, "%.*s: %llu items", HF_FMT(table), (unsigned long long)items);
}

static enum hf_status task_load(struct loader *l, struct import_task *task)
{
    struct first_table *table = table_find(l, task->table);
    bool old = table->state == TABLE_OLD;
    struct import_options options = {.ordered = true,
                                     .parallel = THREADS,
                                     .dry_run = old,
                                     .compare = old,
                                     .on_progress = on_progress,
                                     .user = l};
    const struct hf_env *env = hf_scope_env(l->c.scope);
    struct import_result result = {.items = 0};

    l->said_us = env->elapsed_us(env->user);
    task->description = table->description;
    TRY(hf__transfer_import(&l->c, &options, task, &result));
    table->items += result.items;
    if (!old) {
        loader_say(l, HF_LOG_INFO, "%.*s: stored %llu items of %.*s", HF_FMT(table->name),
                   (unsigned long long)result.items, HF_FMT(task->source));
    } else if (result.missing || result.different) {
        table->differs = true;
        loader_say(
            l, HF_LOG_WARNING,
            "table %.*s was there before and is left as it is: of %llu items of %.*s, %llu are missing in "
            "it and %llu are different; the first one is in %.*s",
            HF_FMT(table->name), (unsigned long long)result.items, HF_FMT(task->source),
            (unsigned long long)result.missing, (unsigned long long)result.different,
            HF_FMT(result.first));
    }
    return HF_OK;
}

/* (2) */
static enum hf_status table_finish(struct loader *l, struct first_table *table)
{
    const struct hf_str key = HF_STR(LOADING_TAG);
    struct hf_untag_resource_result none;

    if (table->state == TABLE_OLD) {
        if (!table->differs)
            loader_say(l, HF_LOG_INFO, "table %.*s is there already, unchanged",
                       HF_FMT(table->name));
        return HF_OK;
    }
    return hf_untag_resource(l->c.scope, l->c.db,
                             &(struct hf_untag_resource){.arn = table->description->arn,
                                                         .keys = &key,
                                                         .keys_len = 1},
                             &none);
}

static enum hf_status load_all(struct loader *l)
{
    TRY(sources_collect(l));
    hf_scope_timeout_ms(l->c.scope, 0);
    TRY(tables_prepare(l));
    for (size_t i = 0; i < l->sources.tasks_len; i++)
        TRY(task_load(l, &l->sources.tasks[i]));
    for (size_t i = 0; i < l->tables_len; i++)
        TRY(table_finish(l, &l->tables[i]));
    return HF_OK;
}

int hf__first_data_load(const struct first_data *first)
{
    struct loader l = {.c = {.cli = first->cli,
                             .scope = first->cli->scope,
                             .name = first->command,
                             .db = first->db,
                             .guard = first->guard},
                       .first = first,
                       .database = {.quiet = true, .timeout_ms = TIMEOUT_MS}};
    enum hf_status status;

    l.c.database = &l.database;
    status = load_all(&l);
    if (status == HF_OK || l.c.ends != CLI_OK)
        return l.c.ends;
    return hf__cli_fail(first->cli, first->command, CLI_FAILED, "--init: %s",
                        hf_scope_error_text(first->cli->scope));
}

/* ---- what is not complete ------------------------------------------------------------------- */

/* (2) The first table of a page of names that has the tag; absent: none has. */
static enum hf_status page_unfinished(struct loader *l, const struct hf_list_tables_result *page,
                                      struct hf_str *name)
{
    for (size_t i = 0; i < page->tables_len && !name->ptr; i++) {
        const struct hf_table_description *description;
        bool found;

        TRY(table_describe(l, page->tables[i], &description));
        TRY(tag_find(l, description->arn, &found));
        if (found)
            *name = page->tables[i];
    }
    return HF_OK;
}

static enum hf_status tables_unfinished(struct loader *l, struct hf_str *name)
{
    struct hf_list_tables request = {.limit = 0};
    struct hf_list_tables_result page;

    *name = (struct hf_str){0};
    do {
        TRY(hf_list_tables(l->c.scope, l->c.db, &request, &page));
        TRY(page_unfinished(l, &page, name));
        request.start = page.last;
    } while (page.last.ptr && !name->ptr);
    return HF_OK;
}

int hf__first_data_check(const struct first_data *first, bool read_only)
{
    struct loader l = {.c = {.cli = first->cli, .scope = first->cli->scope, .db = first->db},
                       .first = first};
    struct hf_str name;

    if (tables_unfinished(&l, &name) != HF_OK)
        return hf__cli_fail(first->cli, first->command, CLI_FAILED, "the tables cannot be read: %s",
                            hf_scope_error_text(first->cli->scope));
    if (!name.ptr)
        return CLI_OK;
    if (!read_only)
        return hf__cli_fail(
            first->cli, first->command, CLI_FAILED,
            "table %.*s has not all items of --init, as the start that stored them was "
            "interrupted: start again with the same --init, or delete the table "
            "(holdfast table delete %.*s --db embedded:DIR)",
            HF_FMT(name), HF_FMT(name));
    loader_say(&l, HF_LOG_WARNING,
               "table %.*s has not all items of --init, as the start that stored them was "
               "interrupted",
               HF_FMT(name));
    return CLI_OK;
}
