/*
 * cli/transfer/import_state.c: what an import leaves on disk beside its items: how far it is, and the lines that it
 * rejected.
 *
 * What always holds:
 *
 *  (1) The state names a line only after all lines before it were stored, durably, or rejected; import_table.c
 *      has the rest.
 *  (2) Rejected lines are in the file of rejects once: what it has behind the length in the state is cut
 *      off when the import goes on.
 */
#include "cli/transfer/import_job.h"

#include "base/base.h"
#include "cli/frame/output/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_FORMAT = 2, FILE_MODE = 0666 };

int64_t hf__import_now_us(const struct import_job *job)
{
    const struct hf_env *env = hf_scope_env(job->c->scope);

    return env->elapsed_us(env->user);
}

/* ---- the state ------------------------------------------------------------------------------ */

/* Which file it is, so that another one under its name is noticed. */
static const struct transfer_file *file_at(const struct import_job *job, uint64_t at)
{
    return at < job->task->files_len ? &job->task->files[at] : NULL;
}

static struct hf_str table_arn(const struct import_job *job)
{
    struct hf_str arn = job->task->description->arn;

    return arn.ptr ? arn : HF_STR("");
}

static struct hf_str state_text(struct hf_scope *s, const struct import_job *job)
{
    const struct transfer_file *file = file_at(job, job->position.file);
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        fprintf(text.out, "{\"format\":%d,\"source\":", STATE_FORMAT);
        hf__cli_json_write_text(text.out, job->task->source);
        fputs(",\"table\":", text.out);
        hf__cli_json_write_text(text.out, job->task->table);
        fputs(",\"database\":", text.out);
        hf__cli_json_write_text(text.out, job->options->database);
        fputs(",\"arn\":", text.out);
        hf__cli_json_write_text(text.out, table_arn(job));
        fprintf(text.out,
                ",\"created_us\":%llu,\"file\":%llu,\"line\":%llu,\"items\":%llu,\"rejected\":%llu,"
                "\"rejects_bytes\":%llu,\"bytes\":%llu,\"modified_us\":%llu}\n",
                (unsigned long long)job->task->description->created_us,
                (unsigned long long)job->position.file, (unsigned long long)job->position.line,
                (unsigned long long)job->items, (unsigned long long)job->rejected,
                (unsigned long long)job->rejects_bytes,
                (unsigned long long)(file ? file->bytes : 0),
                (unsigned long long)(file ? file->modified_us : 0));
    }
    return hf__cli_json_text_end(&text, s);
}

/* With the lock held; everything up to the position is durable. (1) */
enum hf_status hf__import_state_write(struct hf_scope *s, struct import_job *job)
{
    job->state_us = hf__import_now_us(job);
    if (!job->options->state.ptr || job->options->dry_run || job->no_state)
        return HF_OK;
    if (job->rejects_fd >= 0 && fsync(job->rejects_fd) != 0 && errno != EINVAL)
        return hf__transfer_fail(s, job->options->rejects.ptr, errno);
    if (hf__transfer_write_file(s, job->options->state.ptr, state_text(s, job)) != HF_OK) {
        hf__cli_notice(job->c->cli, job->c->name,
                       "%s; the import goes on, but cannot be resumed (see --state)",
                       hf_scope_error_text(s));
        job->no_state = true;
        job->state_written = false;
        return hf_scope_ok(s);
    }
    job->state_written = true;
    return HF_OK;
}

static enum hf_status state_refuse(struct import_job *job, const char *why)
{
    assert(job->options->state.ptr && why);
    return hf__command_fail(job->c, CLI_CONDITION,
                            "%.*s: %s; import without --resume to begin again",
                            HF_FMT(job->options->state), why);
}

enum hf_status hf__import_state_resume(struct import_job *job)
{
    const struct import_options *options = job->options;
    struct hf_scope *s = job->c->scope;
    uint64_t format = 0, bytes = 0, modified = 0, created = 0;
    const struct transfer_file *file;
    const struct json_node *state;
    struct hf_str error = {0};

    assert(!job->state_written && job->rejects_fd < 0);
    if (!options->resume || !options->state.ptr)
        return HF_OK;
    state = hf__transfer_state_read(s, options->state.ptr, &error);
    if (error.ptr)
        return hf__command_fail(job->c, CLI_FAILED, "%.*s", HF_FMT(error));
    if (!state)
        return HF_OK; /* it was not interrupted, or before its first second was over */
    if (!hf__transfer_state_number(state, "format", &format) || format != STATE_FORMAT)
        return state_refuse(job, "written by another version");
    if (!hf_str_equal(hf__transfer_state_text(state, "source"), job->task->source) ||
        !hf_str_equal(hf__transfer_state_text(state, "table"), job->task->table) ||
        !hf_str_equal(hf__transfer_state_text(state, "database"), options->database))
        return state_refuse(job, "belongs to the import of another source, table or database");
    if (!hf__transfer_state_number(state, "created_us", &created) ||
        !hf__transfer_state_number(state, "file", &job->position.file) ||
        !hf__transfer_state_number(state, "line", &job->position.line) ||
        !hf__transfer_state_number(state, "items", &job->items) ||
        !hf__transfer_state_number(state, "rejected", &job->rejected) ||
        !hf__transfer_state_number(state, "rejects_bytes", &job->rejects_bytes) ||
        !hf__transfer_state_number(state, "bytes", &bytes) ||
        !hf__transfer_state_number(state, "modified_us", &modified) ||
        job->position.file > job->task->files_len)
        return state_refuse(job, "not the state of an import");
    if (job->task->made || created != (uint64_t)job->task->description->created_us ||
        !hf_str_equal(hf__transfer_state_text(state, "arn"), table_arn(job)))
        return state_refuse(job, "the table was deleted since, so what was stored is gone");
    file = file_at(job, job->position.file);
    if (file && (file->bytes != bytes || (uint64_t)file->modified_us != modified))
        return state_refuse(job, "the source was changed since");
    job->state_written = true;
    return HF_OK;
}

/* ---- rejected lines ------------------------------------------------------------------------- */

static enum hf_status rejects_put(struct hf_scope *s, struct import_job *job, struct hf_str text)
{
    struct hf_str parts[] = {text, HF_STR("\n")};

    assert(job->rejects_fd >= 0);
    for (size_t i = 0; i < 2; i++)
        while (parts[i].len) {
            ssize_t done = write(job->rejects_fd, parts[i].ptr, parts[i].len);

            if (done < 0)
                return hf__transfer_fail(s, job->options->rejects.ptr, errno);
            job->rejects_bytes += (uint64_t)done;
            parts[i] = hf_str_of(parts[i].ptr + done, parts[i].len - (size_t)done);
        }
    return HF_OK;
}

/* The file is made with the first line that goes into it. (2) */
static enum hf_status rejects_open(struct hf_scope *s, struct import_job *job)
{
    struct hf_str header;
    struct stat about;

    assert(job->options->rejects.ptr && !job->options->dry_run);
    if (job->rejects_fd >= 0)
        return HF_OK;
    job->rejects_fd = open(job->options->rejects.ptr, O_WRONLY | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (job->rejects_fd < 0)
        return hf__transfer_fail(s, job->options->rejects.ptr, errno);
    if (fstat(job->rejects_fd, &about) != 0)
        return hf__transfer_fail(s, job->options->rejects.ptr, errno);
    if (S_ISREG(about.st_mode) && (uint64_t)about.st_size < job->rejects_bytes)
        job->rejects_bytes = (uint64_t)about.st_size; /* somebody has taken lines out of it */
    if (ftruncate(job->rejects_fd, (off_t)job->rejects_bytes) != 0 && errno != EINVAL)
        return hf__transfer_fail(s, job->options->rejects.ptr, errno);
    if (lseek(job->rejects_fd, 0, SEEK_END) < 0 && errno != ESPIPE)
        return hf__transfer_fail(s, job->options->rejects.ptr, errno);
    header = hf__transfer_source_header(job->source);
    return header.ptr && !job->rejects_bytes ? rejects_put(s, job, header) : HF_OK;
}

const char *hf__import_file_name(const struct import_job *job, size_t file)
{
    const char *path = job->task->files[file].path.ptr;

    assert(file < job->task->files_len);
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* With the lock held. */
enum hf_status hf__import_rejects_flush(struct import_worker *w)
{
    struct import_job *job = w->job;

    assert(w->rejects_len <= w->rejects_cap);
    for (size_t i = 0; i < w->rejects_len; i++) {
        const struct import_reject *reject = &w->rejects[i];

        if (job->rejected++ < IMPORT_NOTICES_MAX)
            hf__cli_notice(job->c->cli, job->c->name, "%s:%llu: skipped: %.*s",
                           hf__import_file_name(job, w->chunk.file),
                           (unsigned long long)reject->line, HF_FMT(reject->reason));
        if (!job->options->rejects.ptr || job->options->dry_run)
            continue;
        TRY(rejects_open(w->scope, job));
        TRY(rejects_put(w->scope, job, reject->text));
    }
    return HF_OK;
}
