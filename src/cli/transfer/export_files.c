/*
 * cli/transfer/export_files.c: the files of an export: which there are, whether their names are free, opening those
 * that grow. What always holds is in export_table.c.
 */
#include "cli/transfer/export_job.h"

#include "base/base.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_END TRANSFER_EXPORT_STATE_END

enum { FILE_MODE = 0666 };

struct hf_str hf__export_state_path(struct hf_scope *s, struct hf_str to)
{
    return hf_scope_format(s, "%.*s" STATE_END, HF_FMT(to));
}

/* May the definition of the table be written? Not over that of another table, nor over anything else. */
static bool schema_free(struct command_ctx *c, const struct export_task *task)
{
    struct hf_str path = hf__transfer_schema_path(c->scope, task->to.ptr);
    struct hf_str text, ttl, error = {0};
    struct hf_create_table spec;

    if (!hf__transfer_exists(path))
        return true;
    text = hf__input_read(c->scope, path.ptr, TRANSFER_SCHEMA_MAX, &error);
    if (text.ptr && hf__transfer_schema_read(c->scope, text, &spec, &ttl, &error) &&
        hf_str_equal(spec.table, task->table))
        return true;
    hf__command_fail(c, CLI_CONDITION,
                     "%.*s exists and is not the definition of the table %.*s: choose another name "
                     "for --to, or give --no-schema or --overwrite",
                     HF_FMT(path), HF_FMT(task->table));
    return false;
}

bool hf__transfer_export_free(struct command_ctx *c, const struct export_options *options,
                              const struct export_task *task)
{
    struct hf_str state = hf__export_state_path(c->scope, task->to);
    struct stat about;

    if (options->format == TRANSFER_AWS || hf_str_equal(task->to, HF_STR("-")))
        return true;
    if (stat(task->to.ptr, &about) == 0 && !S_ISREG(about.st_mode)) {
        hf__command_fail(c, CLI_USAGE, "%.*s is not a file; use --to - and a redirection",
                         HF_FMT(task->to));
        return false;
    }
    if (options->schema && !options->overwrite && !schema_free(c, task))
        return false;
    if (options->overwrite || options->resume)
        return true;
    if (hf__transfer_exists(state)) {
        hf__command_fail(c, CLI_CONDITION,
                         "an earlier export to %.*s was interrupted: --resume continues it, "
                         "--overwrite begins again",
                         HF_FMT(task->to));
        return false;
    }
    if (hf__transfer_exists(task->to)) {
        hf__command_fail(c, CLI_CONDITION, "%.*s exists: --overwrite replaces it",
                         HF_FMT(task->to));
        return false;
    }
    return true;
}

/* The state of an export of this table to this directory that was interrupted; absent: there is none. */
const struct json_node *hf__export_aws_find_state(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_str *dirs;
    size_t len;

    if (hf__transfer_aws_find(s, job->task->to.ptr, &dirs, &len) != HF_OK)
        return NULL;
    for (size_t i = len; i-- > 0;) { /* the newest first */
        struct hf_str path = hf_scope_format(s, "%.*s/export" STATE_END, HF_FMT(dirs[i]));
        struct hf_str error = {0};
        const struct json_node *state =
            path.ptr ? hf__transfer_state_read(s, path.ptr, &error) : NULL;

        if (state && hf_str_equal(hf__transfer_state_text(state, "table"), job->task->table)) {
            job->dir = dirs[i];
            job->state_path = path;
            return state;
        }
    }
    return NULL;
}

/* The directory of a complete export of this table; absent: there is none. */
struct hf_str hf__export_aws_find_complete(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_str *dirs, id = job->description->id;
    size_t len;

    if (hf__transfer_aws_find(s, job->task->to.ptr, &dirs, &len) != HF_OK)
        len = 0;
    for (size_t i = len; i-- > 0;) { /* the newest first */
        struct transfer_aws aws;

        if (hf__transfer_aws_read(s, dirs[i], &aws) == HF_OK &&
            hf_str_equal(aws.table_arn, job->description->arn) &&
            (!aws.table_id.ptr || !id.ptr || hf_str_equal(aws.table_id, id)))
            return dirs[i];
    }
    return (struct hf_str){0};
}

static enum hf_status aws_begin(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_str id = hf__transfer_aws_id(s);
    struct hf_str above = hf_scope_format(s, "%.*s/AWSDynamoDB", HF_FMT(job->task->to));
    struct hf_str data, started;

    job->dir = hf_scope_format(s, "%.*s/%.*s", HF_FMT(above), HF_FMT(id));
    data = hf_scope_format(s, "%.*s/data", HF_FMT(job->dir));
    started = hf_scope_format(s, "%.*s/_started", HF_FMT(job->dir));
    job->state_path = hf_scope_format(s, "%.*s/export" STATE_END, HF_FMT(job->dir));
    TRY(hf_scope_built(s));
    TRY(hf__transfer_make_dir(s, job->task->to.ptr));
    TRY(hf__transfer_make_dir(s, above.ptr));
    TRY(hf__transfer_make_dir(s, job->dir.ptr));
    TRY(hf__transfer_make_dir(s, data.ptr));
    return hf__transfer_write_file(s, started.ptr, HF_STR(""));
}

/* A new export: where its files are, and one segment for each thread. */
enum hf_status hf__export_job_new(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    size_t len = job->options->parallel;

    if (job->options->format == TRANSFER_AWS)
        TRY(aws_begin(job));
    job->segments = calloc(len, sizeof(*job->segments));
    job->files = calloc(len, sizeof(*job->files));
    if (!job->segments || !job->files)
        return hf__export_memory_fails(s);
    job->segments_len = len;
    job->files_len = job->options->format == TRANSFER_AWS ? len : 1;
    for (size_t i = 0; i < len; i++)
        job->segments[i] = (struct export_segment){.job = job, .file = job->files_len > 1 ? i : 0};
    for (size_t i = 0; i < job->files_len; i++) {
        struct export_file *file = &job->files[i];

        *file = (struct export_file){.path = job->task->to, .fd = -1};
        if (job->options->format == TRANSFER_AWS)
            file->path = hf_scope_format(s, "%.*s/data/%.*s", HF_FMT(job->dir),
                                         HF_FMT(hf__transfer_aws_file_name(s)));
        file->part = hf_scope_format(s, "%.*s" PART_END, HF_FMT(file->path));
    }
    return hf_scope_built(s);
}

bool hf__export_segments_done(const struct export_job *job)
{
    for (size_t i = 0; i < job->segments_len; i++)
        if (!job->segments[i].done)
            return false;
    return true;
}

/* Was the export interrupted after this file got its name? (3) */
static bool file_is_named(const struct export_job *job, const struct export_file *file)
{
    struct stat about;

    return job->state_written && hf__export_segments_done(job) &&
           !hf__transfer_exists(file->part) && stat(file->path.ptr, &about) == 0 &&
           S_ISREG(about.st_mode) && (uint64_t)about.st_size == file->bytes;
}

/* Open the file that grows, which is new or at least as long as the state says, and cut it there. (2) */
static enum hf_status part_open(struct export_job *job, struct export_file *file)
{
    struct hf_scope *s = job->c->scope;
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (file->bytes ? 0 : O_CREAT);
    struct stat about = {.st_size = 0}, there;

    file->fd = open(file->part.ptr, flags, FILE_MODE);
    if (file->fd < 0 && (errno != ENOENT || !file->bytes))
        return hf__transfer_fail(s, file->part.ptr, errno);
    if (file->fd >= 0 && flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return hf__command_fail(job->c, CLI_CONDITION, "another export is writing %.*s",
                                HF_FMT(file->part));
    if (file->fd >= 0 && fstat(file->fd, &about) != 0)
        return hf__transfer_fail(s, file->part.ptr, errno);
    if (file->fd >= 0 && (stat(file->part.ptr, &there) != 0 || there.st_ino != about.st_ino))
        return hf__command_fail(job->c, CLI_CONDITION, "another export has completed %.*s",
                                HF_FMT(file->path));
    if (file->fd < 0 || (uint64_t)about.st_size < file->bytes)
        return hf__command_fail(job->c, CLI_CONDITION,
                                "%.*s is shorter than when the export was interrupted; export "
                                "with --overwrite to begin again",
                                HF_FMT(file->part));
    if (ftruncate(file->fd, (off_t)file->bytes) != 0)
        return hf__transfer_fail(s, file->part.ptr, errno);
    return HF_OK;
}

enum hf_status hf__export_files_open(struct export_job *job)
{
    for (size_t i = 0; i < job->files_len; i++) {
        struct export_file *file = &job->files[i];

        if (job->to_stdout)
            file->fd = STDOUT_FILENO;
        else if (!(file->named = file_is_named(job, file)))
            TRY(part_open(job, file));
    }
    return HF_OK;
}

/* Did an earlier run give all files their names? */
bool hf__export_files_named(const struct export_job *job)
{
    size_t named = 0;

    for (size_t i = 0; i < job->files_len; i++)
        named += job->files[i].named;
    return named && named == job->files_len;
}

void hf__export_job_free(struct export_job *job)
{
    for (size_t i = 0; i < job->files_len; i++)
        if (job->files[i].fd > STDOUT_FILENO)
            close(job->files[i].fd);
    for (size_t i = 0; i < job->segments_len; i++)
        free(job->segments[i].cursor);
    free(job->files);
    free(job->segments);
}
