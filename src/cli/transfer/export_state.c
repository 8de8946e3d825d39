/*
 * cli/transfer/export_state.c: the state of an export that is not complete: the file NAME.export-state. What always
 * holds is in export_table.c: (2) and (3).
 */
#include "cli/transfer/export_job.h"

#include "base/base.h"
#include "cli/frame/output/json.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { STATE_FORMAT = 1 };

static void state_files(FILE *out, const struct export_job *job)
{
    for (size_t i = 0; i < job->files_len; i++) {
        const struct export_file *file = &job->files[i];

        fputs(i ? ",{\"path\":" : "{\"path\":", out);
        hf__cli_json_write_text(out, file->path);
        fprintf(out, ",\"bytes\":%llu,\"items\":%llu}", (unsigned long long)file->bytes,
                (unsigned long long)file->items);
    }
}

static void state_segments(FILE *out, const struct export_job *job)
{
    for (size_t i = 0; i < job->segments_len; i++) {
        const struct export_segment *segment = &job->segments[i];

        fprintf(out, "%s{\"done\":%d,\"cursor\":", i ? "," : "", segment->done);
        if (segment->cursor)
            hf__cli_json_write_text(out, hf_str_from(segment->cursor));
        else
            fputs("null", out);
        fputc('}', out);
    }
}

struct hf_str hf__export_columns_text(struct hf_scope *s, const struct transfer_columns *columns)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text))
        hf__transfer_csv_header(text.out, columns);
    return hf__cli_json_text_end(&text, s);
}

static struct hf_str state_text(struct hf_scope *s, const struct export_job *job)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        FILE *out = text.out;

        fprintf(out, "{\"format\":%d,\"table\":", STATE_FORMAT);
        hf__cli_json_write_text(out, job->task->table);
        fputs(",\"arn\":", out);
        hf__cli_json_write_text(out, job->description->arn);
        fprintf(out,
                ",\"created_us\":%llu,\"items_as\":%d,\"gzip\":%d,\"begin_us\":%llu,\"columns\":",
                (unsigned long long)job->description->created_us, (int)job->options->format,
                job->options->gzip, (unsigned long long)job->begin_us);
        hf__cli_json_write_text(out, hf__export_columns_text(s, &job->columns));
        fputs(",\"files\":[", out);
        state_files(out, job);
        fputs("],\"segments\":[", out);
        state_segments(out, job);
        fputs("]}\n", out);
    }
    return hf__cli_json_text_end(&text, s);
}

/* With the lock held. (2) */
enum hf_status hf__export_state_write(struct hf_scope *s, struct export_job *job)
{
    job->state_us = (uint64_t)hf__export_now_us(job);
    if (job->to_stdout)
        return HF_OK;
    for (size_t i = 0; i < job->files_len; i++)
        if (job->files[i].fd >= 0 && fdatasync(job->files[i].fd) != 0 && errno != EINVAL)
            return hf__transfer_fail(s, job->files[i].part.ptr, errno);
    TRY(hf__transfer_write_file(s, job->state_path.ptr, state_text(s, job)));
    job->state_written = true;
    return HF_OK;
}

static enum hf_status state_refuse(struct export_job *job, const char *why)
{
    return hf__command_fail(job->c, CLI_CONDITION,
                            "%.*s: %s; export with --overwrite to begin again",
                            HF_FMT(job->state_path), why);
}

static enum hf_status state_use_segments(struct export_job *job, const struct json_node *list)
{
    size_t i = 0;

    job->segments_len = list->len;
    job->segments = calloc(list->len, sizeof(*job->segments));
    if (!job->segments)
        return hf__export_memory_fails(job->c->scope);
    for (const struct json_node *at = list->first; at; at = at->next, i++) {
        struct hf_str cursor = hf__transfer_state_text(at, "cursor");
        uint64_t done = 0;

        if (!hf__transfer_state_number(at, "done", &done))
            return state_refuse(job, "not the state of an export");
        job->segments[i] = (struct export_segment){.job = job, .done = done != 0};
        job->segments[i].file = job->files_len > 1 ? i : 0;
        if (cursor.ptr && !(job->segments[i].cursor = hf__export_text_keep(cursor)))
            return hf__export_memory_fails(job->c->scope);
    }
    return HF_OK;
}

/* Where a file of the state is. Of the path in it, no more than the last name counts: the folder may have
 * been moved, and nothing is written anywhere else. */
static struct hf_str state_file_path(const struct export_job *job, const struct json_node *file)
{
    struct hf_str name = hf__transfer_base_name(hf__transfer_state_text(file, "path"));

    if (!job->dir.ptr)
        return job->task->to;
    if (!name.len || name.ptr[0] == '.')
        return (struct hf_str){0};
    return hf_scope_format(job->c->scope, "%.*s/data/%.*s", HF_FMT(job->dir), HF_FMT(name));
}

static enum hf_status state_use_files(struct export_job *job, const struct json_node *list)
{
    size_t i = 0;

    if (!job->dir.ptr && list->len != 1)
        return state_refuse(job, "not the state of an export");
    job->files_len = list->len;
    job->files = calloc(list->len, sizeof(*job->files));
    if (!job->files)
        return hf__export_memory_fails(job->c->scope);
    for (const struct json_node *at = list->first; at; at = at->next, i++) {
        struct export_file *file = &job->files[i];

        file->fd = -1;
        file->path = state_file_path(job, at);
        file->part = hf_scope_format(job->c->scope, "%.*s" PART_END, HF_FMT(file->path));
        if (!file->path.ptr || !file->part.ptr ||
            !hf__transfer_state_number(at, "bytes", &file->bytes) ||
            !hf__transfer_state_number(at, "items", &file->items))
            return state_refuse(job, "not the state of an export");
        job->items += file->items;
    }
    return HF_OK;
}

/* Take everything from the state: files, segments and columns. */
enum hf_status hf__export_state_use(struct export_job *job, const struct json_node *state)
{
    const struct json_node *files = hf__cli_json_member(state, "files");
    const struct json_node *segments = hf__cli_json_member(state, "segments");
    struct hf_str columns = hf__transfer_state_text(state, "columns"), error = {0};
    uint64_t format = 0, created = 0, items_as = 0, gzip = 0, begin = 0;

    if (!hf__transfer_state_number(state, "format", &format) || format != STATE_FORMAT)
        return state_refuse(job, "written by another version");
    if (!hf__transfer_state_number(state, "created_us", &created) ||
        !hf__transfer_state_number(state, "items_as", &items_as) ||
        !hf__transfer_state_number(state, "gzip", &gzip) ||
        !hf__transfer_state_number(state, "begin_us", &begin) || !files || !segments ||
        files->kind != JSON_ARRAY || segments->kind != JSON_ARRAY || !files->len ||
        !segments->len || segments->len > TRANSFER_PARALLEL_MAX ||
        (files->len != 1 && files->len != segments->len))
        return state_refuse(job, "not the state of an export");
    if (!hf_str_equal(hf__transfer_state_text(state, "table"), job->task->table) ||
        !hf_str_equal(hf__transfer_state_text(state, "arn"), job->description->arn) ||
        created != (uint64_t)job->description->created_us)
        return state_refuse(job, "belongs to another table");
    if (items_as != (uint64_t)job->options->format || (gzip != 0) != job->options->gzip)
        return state_refuse(job, "belongs to an export in another format");
    job->begin_us = (int64_t)begin;
    if (columns.len > 1 &&
        !hf__transfer_csv_read_header(job->c->scope, hf_str_of(columns.ptr, columns.len - 1),
                                      &(struct transfer_columns){0}, NULL, &job->columns, &error))
        return state_refuse(job, "not the state of an export");
    TRY(state_use_files(job, files));
    job->state_written = true;
    return state_use_segments(job, segments);
}
