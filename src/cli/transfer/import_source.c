/*
 * cli/transfer/import_source.c: what a file or folder is, for `holdfast import` and for the first data of a server.
 *
 * A file is of the table that its definition names, TABLE.schema.json beside it, or else of the one that it is
 * named after. An export in AWS's layout is of the table of its manifest. The format is seen by the end of the
 * name and by the first line.
 */
#include "cli/transfer/import_source.h"

#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PEEK_BYTES = 64 * 1024 };

static bool is_file(struct hf_str path)
{
    struct stat about;

    return path.ptr && stat(path.ptr, &about) == 0 && S_ISREG(about.st_mode);
}

bool hf__import_is_stream(struct hf_str path)
{
    struct stat about;

    return hf_str_equal(path, HF_STR("-")) ||
           (stat(path.ptr, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}

static enum hf_status memory_fails(struct command_ctx *c)
{
    return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
}

static bool is_type_name(struct hf_str name)
{
    static const char *const types[] = {"S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hf_str_equal(name, hf_str_from(types[i])))
            return true;
    return false;
}

/*
 * What the first line of JSON is. In plain JSON the key of an item is a string, a number or $binary; so a line
 * in which every member is an object with the name of a type is DynamoDB's.
 */
static enum transfer_format line_judge(struct hf_scope *s, struct hf_str line)
{
    struct hf_str error = {0};
    const struct json_node *json = hf__cli_json_read(s, line, &error);
    const struct json_node *only = json && json->len == 1 ? json->first : NULL;

    if (!json || json->kind != JSON_OBJECT || !json->len)
        return TRANSFER_JSONL;
    for (const struct json_node *at = json->first; at; at = at->next)
        if (at->kind != JSON_OBJECT || at->len != 1 || !is_type_name(at->first->name))
            return only && hf_str_equal(only->name, HF_STR("Item")) && only->kind == JSON_OBJECT &&
                           only->len && only->first->kind == JSON_OBJECT
                       ? TRANSFER_AWS
                       : TRANSFER_JSONL;
    return TRANSFER_DYNAMODB;
}

/* Which format a file has, when no option says it. */
static enum hf_status format_find(struct command_ctx *c, struct hf_str path,
                                  enum transfer_format *format)
{
    enum transfer_format named = hf__transfer_format_of(path.ptr);
    size_t len = 0, end = 0;
    char *room;

    if (named == TRANSFER_CSV || hf__import_is_stream(path)) {
        *format = named == TRANSFER_CSV ? TRANSFER_CSV : TRANSFER_JSONL;
        return HF_OK;
    }
    room = hf_scope_alloc(c->scope, PEEK_BYTES);
    if (!room)
        return memory_fails(c);
    TRY(hf__transfer_source_peek(c->scope, path.ptr, room, PEEK_BYTES, &len));
    while (end < len && room[end] != '\n')
        end++;
    *format = line_judge(c->scope, hf_str_of(room, end));
    return HF_OK;
}

static enum hf_status file_stat(struct command_ctx *c, struct hf_str path,
                                struct transfer_file *file)
{
    struct stat about;

    *file = (struct transfer_file){.path = path};
    if (hf_str_equal(path, HF_STR("-")))
        return HF_OK;
    if (stat(path.ptr, &about) != 0)
        return hf__command_fail(c, errno == ENOENT ? CLI_NOT_FOUND : CLI_FAILED, "%.*s: %s",
                                HF_FMT(path), strerror(errno));
    if (S_ISREG(about.st_mode)) {
        file->bytes = (uint64_t)about.st_size;
        file->modified_us = (int64_t)about.st_mtim.tv_sec * 1000000 + about.st_mtim.tv_nsec / 1000;
    }
    return HF_OK;
}

static enum hf_status task_add(struct command_ctx *c, struct import_sources *sources,
                               const struct import_task *task)
{
    struct import_task *more = hf_scope_alloc(c->scope, (sources->tasks_len + 1) * sizeof(*more));

    if (!more)
        return memory_fails(c);
    if (sources->tasks_len)
        memcpy(more, sources->tasks, sources->tasks_len * sizeof(*more));
    more[sources->tasks_len++] = *task;
    sources->tasks = more;
    return HF_OK;
}

/* The table that a definition is of. */
static enum hf_status schema_name(struct command_ctx *c, struct hf_str path, struct hf_str *name)
{
    struct hf_str error = {0}, ttl;
    struct hf_str text = hf__input_read(c->scope, path.ptr, TRANSFER_SCHEMA_MAX, &error);
    struct hf_create_table spec;

    if (!text.ptr)
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    if (!hf__transfer_schema_read(c->scope, text, &spec, &ttl, &error))
        return hf__command_fail(c, CLI_USAGE, "%.*s: %.*s", HF_FMT(path), HF_FMT(error));
    *name = spec.table;
    return HF_OK;
}

enum hf_status hf__import_add_file(struct command_ctx *c, struct import_sources *sources,
                                   struct hf_str path)
{
    struct hf_str schema = {0};
    struct transfer_file *file = hf_scope_alloc(c->scope, sizeof(*file));
    struct import_task task = {.source = path,
                               .table = sources->table,
                               .files = file,
                               .files_len = 1,
                               .format = sources->format,
                               .types = &sources->types};

    if (!file)
        return memory_fails(c);
    TRY(file_stat(c, path, file));
    if (!hf__import_is_stream(path))
        schema = hf__transfer_schema_path(c->scope, path.ptr);
    if (is_file(schema))
        task.schema = schema;
    if (!task.table.ptr && task.schema.ptr)
        TRY(schema_name(c, task.schema, &task.table));
    if (!task.table.ptr)
        task.table = hf__transfer_stem(c->scope, path.ptr);
    if (task.format == TRANSFER_AUTO)
        TRY(format_find(c, path, &task.format));
    return task_add(c, sources, &task);
}

static enum hf_status task_of_aws(struct command_ctx *c, struct import_sources *sources,
                                  struct hf_str dir)
{
    struct hf_str schema = hf_scope_format(c->scope, "%.*s/schema.json", HF_FMT(dir));
    struct transfer_aws aws;
    struct import_task task = {.source = dir, .format = TRANSFER_AWS, .types = &sources->types};

    TRY(hf__transfer_aws_read(c->scope, dir, &aws));
    for (size_t i = 0; i < aws.files_len; i++) {
        struct transfer_md5 md5;

        if (!aws.files[i].md5.ptr)
            continue;
        TRY(hf__transfer_md5_file(c->scope, aws.files[i].path.ptr, &md5));
        if (!hf_str_equal(aws.files[i].md5, hf_str_from(md5.base64)))
            return hf__command_fail(c, CLI_CORRUPT,
                                    "%.*s: its MD5 is %s, and the manifest says %.*s: the file is "
                                    "damaged, copy it again",
                                    HF_FMT(aws.files[i].path), md5.base64,
                                    HF_FMT(aws.files[i].md5));
    }
    task.table = sources->table.ptr ? sources->table : aws.table;
    task.files = aws.files;
    task.files_len = aws.files_len;
    if (is_file(schema))
        task.schema = schema;
    if (!task.table.len)
        return hf__command_fail(c, CLI_USAGE,
                                "%.*s/manifest-summary.json names no table: give --table",
                                HF_FMT(dir));
    return task_add(c, sources, &task);
}

/* The complete ones of several exports in AWS's layout. If there are none, the error says what is missing. */
enum hf_status hf__import_add_aws(struct command_ctx *c, struct import_sources *sources,
                                  const struct hf_str *dirs, size_t len)
{
    size_t complete = 0;

    for (size_t i = 0; i < len; i++)
        complete += hf__transfer_aws_complete(c->scope, dirs[i]);
    for (size_t i = 0; i < len; i++) {
        if (!complete || hf__transfer_aws_complete(c->scope, dirs[i]))
            TRY(task_of_aws(c, sources, dirs[i]));
        else
            hf__cli_notice(c->cli, c->name, "%.*s is left out: that export is not complete",
                           HF_FMT(dirs[i]));
    }
    return HF_OK;
}
