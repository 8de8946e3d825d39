/*
 * cli/transfer/cmd_import.c: `holdfast import`: which files, into which tables. import_table.c does the work.
 *
 * A source is a file, standard input, or a directory: an export in AWS's layout, or files named after
 * their tables. From it comes a list of tasks, one for each table. The table of a task is made if it is missing
 * and its definition is known.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"
#include "cli/table/table_words.h"
#include "cli/transfer/import_source.h"

#include <holdfast/table.h>

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MEMTABLE_BYTES = 24 * 1024 * 1024,
    CACHE_BYTES = 8 * 1024 * 1024,
    KEPT_BYTES = 32 * 1024 * 1024, /* free memory that is not given back to the system */
    LARGE_BYTES = 4 * 1024 * 1024, /* larger pieces are */
    PIPE_BYTES = 1024 * 1024 * 1024,
    ON_ERROR_STOP = 0
};

struct settings {
    struct database_settings database;
    struct hf_str table;
    unsigned format; /* enum transfer_format */
    struct hf_str types;
    struct hf_str schema;
    struct hf_str key;
    bool no_create;
    unsigned on_error;
    struct hf_str rejects;
    struct hf_str state;
    bool resume;
    bool dry_run;
    uint64_t parallel;
    uint64_t rate;
    bool progress;
    struct import_sources sources;
};

static const struct option_spec import_specs[] = {
    OPT_TEXT("table", "NAME", table,
             "The table. By default the one that the definition beside the data or the export's "
             "manifest names, or else the name of the file without its end.",
             .letter = 't'),
    OPT_CHOICE(
        "format", TRANSFER_FORMATS, format,
        "jsonl: a line of plain JSON for each item. dynamodb: a line of DynamoDB's JSON. csv: a "
        "header and a record for each item. aws: lines of {\"Item\":{...}}, as in the folder that "
        "DynamoDB's export to S3 makes. auto: by the names and the first line.",
        .letter = 'f', .fallback = "auto"),
    OPT_TEXT(
        "types", "LIST", types,
        "With csv: types of columns whose heading has none, such as age:N,tags:SS. Without it, "
        "they have the types that keys and indexes of the table have, or S."),
    OPT_TEXT(
        "schema", "FILE", schema,
        "If the table is missing, create it as this request of CreateTable says. By default the "
        "file TABLE" TRANSFER_SCHEMA_END " beside the data, if it is there."),
    OPT_TEXT("key", "KEY", key,
             "If the table is missing, create it with this key, such as customer:S,day:N.",
             .letter = 'k'),
    OPT_FLAG("no-create", no_create,
             "Fail if the table is missing, even if its definition is known."),
    OPT_CHOICE(
        "on-error", "stop skip", on_error,
        "stop: end at the first line that cannot be stored. skip: leave such lines out, report "
        "them and write them to the file of --rejects; the exit code is 1 then.",
        .fallback = "stop", .heading = "Errors"),
    OPT_TEXT("rejects", "FILE", rejects,
             "File for lines that were left out. By default SOURCE.rejected."),
    OPT_FLAG("dry-run", dry_run, "Read and check everything, store nothing and create nothing."),
    OPT_FLAG("resume", resume,
             "Continue an import that was interrupted, behind the last line that is certainly "
             "stored."),
    OPT_TEXT("state", "FILE", state,
             "File that records how far the import is; deleted at its end. By default "
             "SOURCE.import-state."),
    OPT_NUMBER("parallel", parallel, 1, TRANSFER_PARALLEL_MAX,
               "So many threads. With a service, each sends requests of its own.", .letter = 'p',
               .fallback = "4", .heading = "Speed"),
    OPT_NUMBER(
        "rate", rate, 1, UINT32_MAX,
        "Store at most so many items a second, on average, to spare the capacity of a table that "
        "is in use."),
    OPT_FLAG("json", database.json, "Print the result as a JSON object.", .heading = "Output"),
    OPT_FLAG("progress", progress,
             "Print progress on standard error, a line a second, also if it is no terminal."),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS_WITH(struct settings,
                        "Time limit for the database, for some hundred items each; then the exit "
                        "code is 7."),
};

static const struct option_example import_examples[] = {
    {"holdfast import orders.jsonl", "Into the table orders."},
    {"holdfast import backup/", "Every table of an export, which is created if it is missing."},
    {"holdfast import people.csv --key name:S --types age:N", "Into a new table people."},
    {"zcat old.gz | holdfast import - --table orders --on-error skip --rejects bad.jsonl",
     "From a pipe; lines that cannot be stored go to bad.jsonl."},
    {"holdfast import s3/AWSDynamoDB/01700000000000-0a1b2c3d --db embedded:local.db",
     "An export that DynamoDB has made, into a directory."},
    {"holdfast import orders.jsonl --dry-run", "Check every line first."},
};

const struct options_table hf__import_options = {
    .name = "import",
    .operands = "SOURCE",
    .about =
        "Store the items of files in tables. SOURCE is a file, - for standard input, or a directory: "
        "an export in the layout of DynamoDB's export to S3, or files named after their tables, as "
        "'holdfast export' writes them. Files may be compressed with gzip.\n\nItems with the same "
        "key are replaced; other items of the table stay. So an import can be repeated. Indexes, "
        "streams and expiry of the table work as for any other write.",
    COMMAND_SPECS(import),
    .notes =
        "An import is not a transaction: while it runs, readers see the items that are stored "
        "already. An item is stored whole or not at all. When the import has ended with exit code 0, "
        "everything is durable.\n\nCtrl-C or a crash leave the file SOURCE.import-state; --resume "
        "continues there, and the result is the same as without the interruption. Standard input "
        "and pipes cannot be continued: repeat the import.\n\nIf a key occurs several times, the last line "
        "wins; with a service this holds for --parallel 1 only. A service that throttles is waited "
        "for: items that it did not process are sent again, with growing delays.\n\nAn error names "
        "the file, the line and the reason. Checksums of an export's manifest are verified before "
        "anything is stored. Exit codes: 0 all was stored, 1 lines were left out, 2 a line or file "
        "is invalid, 3 no such table, 8 a file is damaged. For others see holdfast(1).",
};

/* ---- what a source is ----------------------------------------------------------------------- */

static bool is_directory(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_file(struct hf_str path)
{
    struct stat about;

    return path.ptr && stat(path.ptr, &about) == 0 && S_ISREG(about.st_mode);
}

static enum hf_status memory_fails(struct command_ctx *c)
{
    return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
}

static int name_compare(const void *a, const void *b)
{
    const struct hf_str *first = a, *second = b;

    return bytes_compare(first->ptr, first->len, second->ptr, second->len);
}

/*
 * Files that systems put beside others ("._orders.jsonl" of macOS), and what somebody has hidden. The name of a
 * table may begin with a dot, too: such a file was exported if its definition is beside it, which is JSON.
 */
static bool is_hidden(struct command_ctx *c, struct hf_str path, const char *name)
{
    struct hf_str schema;
    char first = 0;
    size_t len;

    if (name[0] != '.')
        return false;
    schema = hf__transfer_schema_path(c->scope, path.ptr);
    if (schema.ptr && hf__transfer_exists(schema) &&
        hf__transfer_source_peek(c->scope, schema.ptr, &first, 1, &len) == HF_OK && first == '{')
        return false;
    if (name[1] != '_' && !c->database->quiet)
        hf__cli_notice(c->cli, c->name,
                       "%s is left out, as its name begins with a dot: name the file to import it",
                       name);
    return true;
}

/* Files that are named after tables. */
static enum hf_status tasks_of_files(struct command_ctx *c, const char *path)
{
    struct settings *settings = c->settings;
    DIR *dir = opendir(path);
    struct hf_str *names = NULL, unfinished = {0}, path_of;
    size_t len = 0, cap = 0;
    const struct dirent *entry;

    if (!dir)
        return hf__command_fail(c, CLI_FAILED, "%s: %s", path, strerror(errno));
    while ((entry = readdir(dir))) {
        if (hf__transfer_ends_with(entry->d_name, TRANSFER_EXPORT_STATE_END)) {
            unfinished = hf_scope_copy(c->scope, hf_str_from(entry->d_name));
            break;
        }
        if (hf__transfer_ends_with(entry->d_name, TRANSFER_SCHEMA_END) ||
            hf__transfer_format_of(entry->d_name) == TRANSFER_AUTO)
            continue;
        path_of = hf_scope_format(c->scope, "%s%s%s", path,
                                  hf__transfer_ends_with(path, "/") ? "" : "/", entry->d_name);
        if (!path_of.ptr || is_hidden(c, path_of, entry->d_name))
            continue;
        if (len == cap) {
            struct hf_str *more = hf_scope_alloc(c->scope, (cap * 2 + 16) * sizeof(*more));

            if (!more)
                break;
            if (len)
                memcpy(more, names, len * sizeof(*more));
            names = more;
            cap = cap * 2 + 16;
        }
        names[len++] = path_of;
    }
    closedir(dir);
    TRY(hf_scope_built(c->scope));
    if (unfinished.ptr)
        return hf__command_fail(c, CLI_CONDITION,
                                "%s has %.*s: an export to it was interrupted; continue that with "
                                "'holdfast export --resume' first",
                                path, HF_FMT(unfinished));
    if (!len)
        return hf__command_fail(c, CLI_NOT_FOUND,
                                "%s has neither the export of a table nor files that end with "
                                ".jsonl, .json or .csv, or one of these and .gz",
                                path);
    qsort(names, len, sizeof(*names), name_compare);
    for (size_t i = 0; i < len; i++)
        TRY(hf__import_add_file(c, &settings->sources, names[i]));
    return HF_OK;
}

static enum hf_status tasks_find(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str source = hf__command_operand(c, 0);
    const struct {
        const char *option;
        struct hf_str value;
    } for_one[] = {{"table", settings->table},
                   {"schema", settings->schema},
                   {"rejects", settings->rejects},
                   {"state", settings->state}};
    struct hf_str *dirs;
    size_t len;

    if (!is_directory(source.ptr))
        return hf__import_add_file(c, &settings->sources, source);
    TRY(hf__transfer_aws_find(c->scope, source.ptr, &dirs, &len));
    TRY(hf__import_add_aws(c, &settings->sources, dirs, len));
    if (!len)
        TRY(tasks_of_files(c, source.ptr));
    for (size_t i = 0; i < COMMAND_LEN(for_one); i++)
        if (settings->sources.tasks_len > 1 && for_one[i].value.ptr)
            return hf__command_fail(c, CLI_USAGE, "%s has %zu tables: --%s is for one", source.ptr,
                                    settings->sources.tasks_len, for_one[i].option);
    for (size_t i = 0; i < settings->sources.tasks_len; i++)
        for (size_t j = 0; j < i; j++)
            if (hf_str_equal(settings->sources.tasks[i].table, settings->sources.tasks[j].table))
                return hf__command_fail(
                    c, CLI_USAGE, "%.*s and %.*s are both of the table %.*s: import one of them",
                    HF_FMT(settings->sources.tasks[j].source),
                    HF_FMT(settings->sources.tasks[i].source),
                    HF_FMT(settings->sources.tasks[i].table));
    return HF_OK;
}

static bool is_same_file(struct hf_str one, struct hf_str other)
{
    struct stat first, second;

    return one.ptr && other.ptr && stat(one.ptr, &first) == 0 && stat(other.ptr, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* Files that the import writes must not be those that it reads. */
static enum hf_status outputs_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->state.ptr && settings->rejects.ptr &&
        (hf_str_equal(settings->state, settings->rejects) ||
         is_same_file(settings->state, settings->rejects)))
        return hf__command_fail(c, CLI_USAGE, "--state and --rejects name the same file");
    for (size_t i = 0; i < settings->sources.tasks_len; i++)
        for (size_t j = 0; j < settings->sources.tasks[i].files_len; j++) {
            struct hf_str source = settings->sources.tasks[i].files[j].path;
            bool state = is_same_file(settings->state, source);

            if (state || is_same_file(settings->rejects, source))
                return hf__command_fail(c, CLI_USAGE,
                                        "--%s names %.*s, which is imported: name another file",
                                        state ? "state" : "rejects", HF_FMT(source));
        }
    return HF_OK;
}

/* --state replaces the state of an earlier import, and no other file. */
static enum hf_status state_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct json_node *state = NULL;
    struct hf_str error = {0};
    struct stat about;

    if (!settings->state.ptr || stat(settings->state.ptr, &about) != 0)
        return HF_OK;
    if (S_ISREG(about.st_mode))
        state = hf__transfer_state_read(c->scope, settings->state.ptr, &error);
    if (state && hf__transfer_state_text(state, "source").ptr)
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE,
                            "--state: %.*s exists and is not the state of an import: name another "
                            "file",
                            HF_FMT(settings->state));
}

/* Each table is copied through memory of its size, which is wanted again for the next: getting it anew from the
 * system, page by page, was a tenth of an import. */
static void memory_keep(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

/* What the files have; nobody knows how much comes from a pipe. */
static uint64_t bytes_of_all(const struct settings *settings)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < settings->sources.tasks_len; i++)
        for (size_t j = 0; j < settings->sources.tasks[i].files_len; j++)
            bytes += settings->sources.tasks[i].files[j].bytes;
    return bytes ? bytes : PIPE_BYTES;
}

static enum hf_status import_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str source = hf__command_operand(c, 0), error = {0};
    bool piped = hf__import_is_stream(source);
    const char *what = hf_str_equal(source, HF_STR("-")) ? "standard input" : "a pipe or device";

    if (piped && !settings->table.ptr)
        return hf__command_fail(c, CLI_USAGE, "%s has no name of a table: give --table", what);
    if (piped && settings->resume)
        return hf__command_fail(c, CLI_USAGE, "--resume needs a file: %s is read once", what);
    if (piped && settings->on_error != ON_ERROR_STOP && !settings->rejects.ptr &&
        !settings->dry_run)
        return hf__command_fail(c, CLI_USAGE, "--on-error skip needs --rejects FILE with %s", what);
    if (settings->types.ptr &&
        !hf__transfer_columns_read(c->scope, settings->types, &settings->sources.types, &error))
        return hf__command_fail(c, CLI_USAGE, "--types: %.*s", HF_FMT(error));
    settings->sources.table = settings->table;
    settings->sources.format = (enum transfer_format)settings->format;
    c->database->memtable_bytes = MEMTABLE_BYTES;
    c->database->cache_bytes = CACHE_BYTES;
    memory_keep();
    TRY(tasks_find(c));
    c->database->bulk_bytes = bytes_of_all(settings);
    TRY(outputs_check(c));
    TRY(state_check(c));
    c->without_db = settings->dry_run; /* nothing is made: import_open() */
    return HF_OK;
}

/* ---- tables --------------------------------------------------------------------------------- */

/* What the table will be, from its definition. */
static enum hf_status spec_find(struct command_ctx *c, const struct import_task *task,
                                struct hf_create_table *spec, struct hf_str *ttl, bool *found)
{
    const struct settings *settings = c->settings;
    struct hf_str path = settings->schema.ptr ? settings->schema : task->schema;
    struct hf_str error = {0}, text;

    *found = false;
    *ttl = (struct hf_str){0};
    memset(spec, 0, sizeof(*spec));
    if (settings->key.ptr) {
        const struct table_words words = {.key = settings->key};

        if (!hf__cli_table_words_read(c->scope, &words, spec, &error))
            return hf__command_fail(c, CLI_USAGE, "--key: %.*s", HF_FMT(error));
    } else if (path.ptr) {
        text = hf__input_read(c->scope, path.ptr, TRANSFER_SCHEMA_MAX, &error);
        if (!text.ptr)
            return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
        if (!hf__transfer_schema_read(c->scope, text, spec, ttl, &error))
            return hf__command_fail(c, CLI_USAGE, "%.*s: %.*s", HF_FMT(path), HF_FMT(error));
    } else {
        return HF_OK;
    }
    spec->table = task->table;
    *found = true;
    return HF_OK;
}

/* The keys of a table that does not exist yet. */
static const struct hf_table_description *description_of(struct command_ctx *c,
                                                         const struct hf_create_table *spec)
{
    struct hf_table_description *made = hf_scope_alloc(c->scope, sizeof(*made));

    if (made)
        *made = (struct hf_table_description){.name = spec->table,
                                              .attributes = spec->attributes,
                                              .attributes_len = spec->attributes_len,
                                              .key_schema = spec->key_schema,
                                              .key_schema_len = spec->key_schema_len};
    return made;
}

static enum hf_status table_missing(struct command_ctx *c, const struct import_task *task)
{
    return hf__command_fail(
        c, CLI_NOT_FOUND,
        "table %.*s does not exist; give its key, such as --key id:S, or create "
        "it with 'holdfast table create'",
        HF_FMT(task->table));
}

/* Find the table, or make it. */
static enum hf_status table_prepare(struct command_ctx *c, struct import_task *task)
{
    const struct settings *settings = c->settings;
    const struct hf_table_wait_options wait = {.size = sizeof(wait),
                                               .timeout_ms = (uint32_t)c->database->timeout_ms};
    struct hf_describe_table request = {.table = task->table};
    struct hf_describe_table_result described = {.table = NULL};
    enum hf_status status = HF_NOT_FOUND;
    struct hf_create_table spec;
    struct hf_str ttl;
    bool found;

    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    if (c->db)
        status = hf_describe_table(c->scope, c->db, &request, &described);
    task->description = described.table;
    if (status != HF_NOT_FOUND)
        return status;
    TRY(spec_find(c, task, &spec, &ttl, &found));
    if (!found || settings->no_create)
        return table_missing(c, task);
    task->description = description_of(c, &spec);
    if (!task->description)
        return memory_fails(c);
    if (settings->dry_run)
        return hf_scope_ok(c->scope);
    TRY(hf_table_ensure(c->scope, c->db, &spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = ttl, .wait = &wait)));
    TRY(hf_describe_table(c->scope, c->db, &request, &described));
    task->description = described.table;
    task->made = true;
    return HF_OK;
}

/* ---- the import ----------------------------------------------------------------------------- */

static struct hf_str path_beside(struct command_ctx *c, struct hf_str source, const char *end)
{
    while (source.len > 1 && source.ptr[source.len - 1] == '/')
        source.len--;
    return hf_scope_format(c->scope, "%.*s%s", HF_FMT(source), end);
}

/* A state of an earlier import says that it was interrupted. */
static void state_notice(struct command_ctx *c, const struct import_options *options)
{
    if (!options->resume && !options->dry_run && is_file(options->state) && !c->database->quiet)
        hf__cli_notice(c->cli, c->name,
                       "an earlier import was interrupted; this one begins again, --resume would "
                       "continue it");
}

static enum hf_status import_one(struct command_ctx *c, struct import_task *task,
                                 uint64_t *rejected)
{
    const struct settings *settings = c->settings;
    struct hf_str path;
    bool embedded = str_after(c->database->url, HF_STR("embedded:"), &path);
    bool piped = hf__import_is_stream(task->source);
    struct import_options options = {.skip = settings->on_error != ON_ERROR_STOP,
                                     .dry_run = settings->dry_run,
                                     .ordered = embedded,
                                     .parallel = (size_t)settings->parallel,
                                     .per_second = settings->rate,
                                     .rejects = settings->rejects,
                                     .state = settings->state,
                                     .resume = settings->resume,
                                     .progress = settings->progress};
    struct import_result result = {.items = 0};

    TRY(table_prepare(c, task));
    options.database = hf_scope_format(c->scope, "%.*s %.*s", HF_FMT(c->database->url),
                                       HF_FMT(c->database->prefix));
    if (!piped && !options.state.ptr)
        options.state = path_beside(c, task->source, ".import-state");
    if (!piped && !options.rejects.ptr && options.skip)
        options.rejects = path_beside(c, task->source, ".rejected");
    TRY(hf_scope_built(c->scope));
    state_notice(c, &options);
    TRY(hf__transfer_import(c, &options, task, &result));
    *rejected += result.rejected;
    if (c->database->quiet)
        return HF_OK;
    if (!c->listing)
        hf__command_rows(c, "tables");
    COMMAND_ROW(c->rows, hf__rows_text("table", task->table),
                hf__rows_number(c->cli, settings->dry_run ? "valid" : "imported", result.items),
                hf__rows_number(c->cli, "rejected", result.rejected),
                hf__rows_text("from", task->source));
    return HF_OK;
}

/* For --dry-run: the database, if it is there. */
static enum hf_status import_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str path;

    if (!settings->dry_run)
        return HF_OK;
    c->database->read_only = true;
    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    if (str_after(c->database->url, HF_STR("embedded:"), &path) && !is_directory(path.ptr))
        return HF_OK;
    return hf__database_open(c->cli, c->name, c->database, &c->db, &c->ends) ? HF_OK : HF_INVALID;
}

static enum hf_status import_tables(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    uint64_t rejected = 0;

    TRY(import_open(c));
    for (size_t i = 0; i < settings->sources.tasks_len; i++)
        TRY(import_one(c, &settings->sources.tasks[i], &rejected));
    return hf__command_end(c, rejected ? CLI_FAILED : CLI_OK);
}

const struct command hf__import_command = {COMMAND_SETTINGS(struct settings),
                                           .min = 1,
                                           .max = 1,
                                           .table = COMMAND_MAKES,
                                           .guarded = true,
                                           .check = import_check,
                                           .body = import_tables};
