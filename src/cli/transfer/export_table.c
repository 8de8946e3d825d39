/*
 * cli/transfer/export_table.c: the export of one table, by segments of a scan in threads of their own.
 *
 * A segment reads a page, writes its items as lines, compresses them as a member of gzip if asked to, and
 * appends that to its file. All segments have one file, except in AWS's layout, where each has its own. While
 * it grows, a file has the name NAME.part; the state file NAME.export-state says how long the file was
 * when it was synced last, and where each segment was then.
 *
 * What always holds:
 *
 *  (1) A file gets its name when all of it is written and synced. The schema is there before, and in AWS's
 *      layout the manifests follow, the summary last.
 *  (2) The state is written after the files were synced up to the lengths in it. To go on, a file is cut to
 *      that length and each segment continues behind its last page, so that no item is twice in it.
 *  (3) Before the first file gets its name, the state says that all segments are done and how long each file is.
 *      So a run that continues knows files that have their names already.
 *  (4) A scan is no snapshot: an item that is changed meanwhile is there as before or as after, once. In a directory
 *      nobody else can change anything.
 */
#include "cli/transfer/export_table.h"

#include "base/base.h"
#include "base/cond_monotonic.h"
#include "cli/frame/child.h"
#include "cli/frame/input.h"
#include "cli/frame/json.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <pthread.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    STATE_FORMAT = 1,
    STATE_EVERY_US = 1000 * 1000,
    WATCH_MS = 100,
    GZIP_LEVEL = 6,
    RATE_PARTS = 4,
    FILE_MODE = 0666
};

#define PART_END ".part"
#define STATE_END TRANSFER_EXPORT_STATE_END

struct export_job;

struct export_file {
    struct hf_str path;
    struct hf_str part; /* its name while it grows */
    int fd;             /* -1: not open */
    bool named;         /* it was complete before: an earlier run has given it its name */
    uint64_t bytes;
    uint64_t items;
};

struct export_segment {
    struct export_job *job;
    pthread_t thread;
    bool started;
    bool done;
    char
        *cursor; /* the key behind which it goes on, as DynamoDB's JSON; NULL: from the beginning */
    size_t file;
};

struct export_job {
    struct command_ctx *c;
    const struct export_options *options;
    const struct export_task *task;
    const struct hf_table_description *description;
    struct hf_str ttl;
    struct transfer_columns columns; /* of CSV */
    bool to_stdout;
    struct hf_str dir;        /* of AWS's layout: AWSDynamoDB/ID */
    struct hf_str state_path; /* absent: standard output */
    int64_t begin_us;         /* by the wall clock */
    struct export_segment *segments;
    size_t segments_len;
    struct export_file *files;
    size_t files_len;
    pthread_mutex_t lock; /* guards what follows, the files and the cursors */
    pthread_cond_t wake;
    bool stop;
    bool reader_gone; /* of standard output */
    struct transfer_failure failure;
    struct transfer_rate rate;
    uint64_t items;
    uint64_t state_us;
    bool state_written;
    size_t running;
};

static int64_t now_us(const struct export_job *job)
{
    const struct hf_env *env = hf_scope_env(job->c->scope);

    return env->elapsed_us(env->user);
}

/* A copy by malloc(), with a NUL behind it; NULL: no memory. */
static char *text_keep(struct hf_str text)
{
    char *copy = malloc(text.len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static enum hf_status memory_fails(struct hf_scope *s)
{
    return hf_scope_fail(s, HF_NOMEM, "out of memory");
}

/* ---- the state ------------------------------------------------------------------------------ */

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

static struct hf_str columns_text(struct hf_scope *s, const struct transfer_columns *columns)
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
        hf__cli_json_write_text(out, columns_text(s, &job->columns));
        fputs(",\"files\":[", out);
        state_files(out, job);
        fputs("],\"segments\":[", out);
        state_segments(out, job);
        fputs("]}\n", out);
    }
    return hf__cli_json_text_end(&text, s);
}

/* With the lock held. (2) */
static enum hf_status state_write(struct hf_scope *s, struct export_job *job)
{
    job->state_us = (uint64_t)now_us(job);
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
        return memory_fails(job->c->scope);
    for (const struct json_node *at = list->first; at; at = at->next, i++) {
        struct hf_str cursor = hf__transfer_state_text(at, "cursor");
        uint64_t done = 0;

        if (!hf__transfer_state_number(at, "done", &done))
            return state_refuse(job, "not the state of an export");
        job->segments[i] = (struct export_segment){.job = job, .done = done != 0};
        job->segments[i].file = job->files_len > 1 ? i : 0;
        if (cursor.ptr && !(job->segments[i].cursor = text_keep(cursor)))
            return memory_fails(job->c->scope);
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
        return memory_fails(job->c->scope);
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
static enum hf_status state_use(struct export_job *job, const struct json_node *state)
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

/* ---- pages ---------------------------------------------------------------------------------- */

/* Stored data must not control a terminal. */
static void text_disarm(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];

        if ((byte < 0x20 && byte != '\n') || byte == 0x7F ||
            (byte == 0xC2 && i + 1 < len && (unsigned char)text[i + 1] < 0xA0))
            text[i] = '?';
        if (byte == 0xC2 && text[i] == '?')
            text[++i] = '?';
    }
}

/* Write at the end of the file, with the lock held. */
static enum hf_status file_append(struct hf_scope *s, struct export_job *job,
                                  struct export_file *file, const char *bytes, size_t len)
{
    size_t at = 0;

    while (at < len) {
        ssize_t done = job->to_stdout
                           ? write(file->fd, bytes + at, len - at)
                           : pwrite(file->fd, bytes + at, len - at, (off_t)(file->bytes + at));

        if (done < 0 && errno == EINTR)
            continue;
        job->reader_gone = job->to_stdout && done < 0 && errno == EPIPE;
        if (done <= 0)
            return hf__transfer_fail(s, job->to_stdout ? "standard output" : file->part.ptr,
                                     done < 0 ? errno : EIO);
        at += (size_t)done;
    }
    file->bytes += len;
    return HF_OK;
}

/* Compress as one member of gzip; the memory is malloc()'s. */
static enum hf_status text_pack(struct hf_scope *s, const char *text, size_t len, char **packed,
                                size_t *packed_len)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(GZIP_LEVEL);
    size_t room = compressor ? libdeflate_gzip_compress_bound(compressor, len) : 0;

    *packed = compressor ? malloc(room) : NULL;
    *packed_len = *packed ? libdeflate_gzip_compress(compressor, text, len, *packed, room) : 0;
    libdeflate_free_compressor(compressor);
    return *packed_len ? HF_OK : memory_fails(s);
}

/* Lines as they go into the file: compressed, or harmless to a terminal. The memory is malloc()'s. */
static enum hf_status text_prepare(struct hf_scope *s, const struct export_job *job, char **text,
                                   size_t *len)
{
    char *packed = NULL;
    size_t packed_len = 0;

    if (job->to_stdout && job->c->cli->terminal)
        text_disarm(*text, *len);
    if (!job->options->gzip || !*len)
        return HF_OK;
    TRY(text_pack(s, *text, *len, &packed, &packed_len));
    free(*text);
    *text = packed;
    *len = packed_len;
    return HF_OK;
}

/* The items of a page as lines, in memory of malloc(). */
static enum hf_status page_write(struct hf_scope *s, const struct export_job *job,
                                 const struct hf_scan_result *page, char **text, size_t *len)
{
    FILE *out = open_memstream(text, len);
    struct hf_str missing = {0};
    bool sound;

    if (!out)
        return memory_fails(s);
    __fsetlocking(out, FSETLOCKING_BYCALLER);
    for (size_t i = 0; i < page->items_len && !missing.ptr; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        if (job->options->format == TRANSFER_CSV && !job->options->columns->len)
            missing = hf__transfer_columns_missing(&job->columns, page->items[i]);
        hf__transfer_line_write(out, s, job->options->format, &job->columns, page->items[i]);
        hf_scope_rewind(s, mark);
    }
    sound = !ferror(out);
    if (fclose(out) != 0 || !sound || hf_scope_built(s) != HF_OK)
        return memory_fails(s);
    if (missing.ptr)
        return hf_scope_fail(s, HF_CONDITION,
                             "while the table was read, an item got the attribute %.*s, which has "
                             "no column; export again, or name the columns with --columns",
                             HF_FMT(missing));
    return HF_OK;
}

static enum hf_status page_read(struct hf_scope *s, const struct export_segment *segment,
                                struct hf_scan_result *page)
{
    const struct export_job *job = segment->job;
    struct hf_scan request = {.table = job->task->table,
                              .consistent = job->options->consistent ? HF_YES : HF_UNSET};

    if (segment->cursor)
        TRY(hf_item_from_json(s, hf_str_from(segment->cursor), &request.start));
    if (job->segments_len > 1) {
        request.segment = segment - job->segments;
        request.segment = request.segment ? request.segment : HF_ZERO;
        request.total_segments = (int64_t)job->segments_len;
    }
    if (job->rate.per_second) /* a part of a second at a time */
        request.limit = (int64_t)(job->rate.per_second / RATE_PARTS + 1);
    hf_scope_timeout_ms(s, (uint32_t)job->c->database->timeout_ms);
    return hf_scan(s, job->c->db, &request, page);
}

/* The page is written: the segment goes on behind it. With the lock held. */
static enum hf_status segment_advance(struct hf_scope *s, struct export_segment *segment,
                                      const struct hf_scan_result *page)
{
    struct export_job *job = segment->job;
    struct hf_str cursor = page->last.ptr ? hf_item_to_json(s, page->last) : (struct hf_str){0};
    char *copy = cursor.ptr ? text_keep(cursor) : NULL;

    if (page->last.ptr && !copy)
        return memory_fails(s);
    free(segment->cursor);
    segment->cursor = copy;
    segment->done = !page->last.ptr;
    job->files[segment->file].items += page->items_len;
    job->items += page->items_len;
    if ((uint64_t)now_us(job) - job->state_us > STATE_EVERY_US)
        return state_write(s, job);
    return HF_OK;
}

static enum hf_status segment_step(struct hf_scope *s, struct export_segment *segment)
{
    struct export_job *job = segment->job;
    struct hf_scan_result page;
    enum hf_status status;
    uint32_t wait_ms = 0;
    char *text = NULL;
    size_t len = 0;

    TRY(page_read(s, segment, &page));
    status = page_write(s, job, &page, &text, &len);
    if (status == HF_OK)
        status = text_prepare(s, job, &text, &len);
    pthread_mutex_lock(&job->lock);
    if (status == HF_OK)
        status = file_append(s, job, &job->files[segment->file], text, len);
    if (status == HF_OK)
        status = segment_advance(s, segment, &page);
    wait_ms = hf__transfer_rate_wait_ms(&job->rate, now_us(job), page.items_len);
    pthread_mutex_unlock(&job->lock);
    free(text);
    hf_scope_timeout_ms(s, 0);
    return status == HF_OK && wait_ms ? hf_scope_sleep_ms(s, wait_ms) : status;
}

static void *segment_run(void *user)
{
    struct export_segment *segment = user;
    struct export_job *job = segment->job;
    struct hf_scope *s = hf_scope_new(hf_scope_env(job->c->scope));
    enum hf_status status = s ? HF_OK : HF_NOMEM;
    bool stop = false;

    while (status == HF_OK && !stop && !segment->done) {
        hf_scope_reset(s);
        hf__scope_follow(s, job->c->scope);
        status = segment_step(s, segment);
        pthread_mutex_lock(&job->lock);
        stop = job->stop;
        pthread_mutex_unlock(&job->lock);
    }
    pthread_mutex_lock(&job->lock);
    if (!s)
        hf__transfer_failure_say(&job->failure, CLI_FAILED, "out of memory");
    else if (status != HF_OK && status != HF_CANCELED)
        hf__transfer_failure_of(&job->failure, s, NULL);
    job->stop = job->stop || status != HF_OK;
    job->running--;
    pthread_cond_broadcast(&job->wake);
    pthread_mutex_unlock(&job->lock);
    hf_scope_free(s);
    return NULL;
}

/* ---- columns -------------------------------------------------------------------------------- */

/* All attributes of all items, by a scan of its own. */
static enum hf_status columns_collect(struct export_job *job, struct progress *progress)
{
    struct command_ctx *c = job->c;
    struct hf_scope *s = hf_scope_new(hf_scope_env(c->scope));
    struct export_segment whole = {.job = job};
    struct hf_scan_result page = {.items_len = 0};
    enum hf_status status = s ? HF_OK : memory_fails(c->scope);
    struct hf_str error = {0};
    uint64_t items = 0;
    uint32_t wait_ms;

    assert(!job->segments_len);
    if (status == HF_OK &&
        !hf__transfer_columns_add_keys(c->scope, &job->columns, job->description, &error))
        status = hf_scope_fail(s, HF_NOMEM, "%.*s", HF_FMT(error));
    while (status == HF_OK && !whole.done) {
        hf_scope_reset(s);
        hf__scope_follow(s, c->scope);
        status = page_read(s, &whole, &page);
        for (size_t i = 0; status == HF_OK && i < page.items_len; i++)
            if (!hf__transfer_columns_add(c->scope, &job->columns, page.items[i], &error))
                status = hf_scope_fail(s, HF_LIMIT, "%.*s", HF_FMT(error));
        if (status == HF_OK) {
            struct hf_str cursor =
                page.last.ptr ? hf_item_to_json(s, page.last) : (struct hf_str){0};

            items += page.items_len;
            free(whole.cursor);
            whole.cursor = cursor.ptr ? text_keep(cursor) : NULL;
            whole.done = !page.last.ptr;
            wait_ms = hf__transfer_rate_wait_ms(&job->rate, now_us(job), page.items_len);
            hf_scope_timeout_ms(s, 0);
            if (wait_ms)
                status = hf_scope_sleep_ms(s, wait_ms);
        }
        if (hf__progress_due(progress, false))
            hf__progress_print(progress, "%s: %llu items read to find the columns",
                               job->task->table.ptr, (unsigned long long)items);
    }
    free(whole.cursor);
    if (status != HF_OK && s)
        status = hf_scope_fail_from(c->scope, status, s);
    hf_scope_free(s);
    hf__transfer_columns_sort(&job->columns, job->description);
    return status;
}

static enum hf_status header_append(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_str header;
    enum hf_status status;
    char *text;
    size_t len;

    if (job->options->format != TRANSFER_CSV || job->files[0].bytes || !job->columns.len)
        return HF_OK;
    header = columns_text(s, &job->columns);
    text = header.ptr ? text_keep(header) : NULL;
    len = header.len;
    if (!text)
        return memory_fails(s);
    status = text_prepare(s, job, &text, &len);
    if (status == HF_OK)
        status = file_append(s, job, &job->files[0], text, len);
    free(text);
    return status;
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct hf_str state_path_of(struct hf_scope *s, struct hf_str to)
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
    struct hf_str state = state_path_of(c->scope, task->to);
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
static const struct json_node *aws_find_state(struct export_job *job)
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
static struct hf_str aws_find_complete(struct export_job *job)
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
static enum hf_status job_new(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    size_t len = job->options->parallel;

    if (job->options->format == TRANSFER_AWS)
        TRY(aws_begin(job));
    job->segments = calloc(len, sizeof(*job->segments));
    job->files = calloc(len, sizeof(*job->files));
    if (!job->segments || !job->files)
        return memory_fails(s);
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

static bool segments_done(const struct export_job *job)
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

    return job->state_written && segments_done(job) && !hf__transfer_exists(file->part) &&
           stat(file->path.ptr, &about) == 0 && S_ISREG(about.st_mode) &&
           (uint64_t)about.st_size == file->bytes;
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

static enum hf_status files_open(struct export_job *job)
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
static bool files_named(const struct export_job *job)
{
    size_t named = 0;

    for (size_t i = 0; i < job->files_len; i++)
        named += job->files[i].named;
    return named && named == job->files_len;
}

static void job_free(struct export_job *job)
{
    for (size_t i = 0; i < job->files_len; i++)
        if (job->files[i].fd > STDOUT_FILENO)
            close(job->files[i].fd);
    for (size_t i = 0; i < job->segments_len; i++)
        free(job->segments[i].cursor);
    free(job->files);
    free(job->segments);
}

/* ---- the end -------------------------------------------------------------------------------- */

static enum hf_status schema_write(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_str path = job->dir.ptr ? hf_scope_format(s, "%.*s/schema.json", HF_FMT(job->dir))
                                      : hf__transfer_schema_path(s, job->task->to.ptr);

    if (!path.ptr)
        return memory_fails(s);
    return hf__transfer_write_file(s, path.ptr,
                                   hf__transfer_schema_json(s, job->description, job->ttl));
}

static enum hf_status manifests_write(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    const struct hf_env *env = hf_scope_env(s);
    struct transfer_file *files = hf_scope_alloc(s, job->files_len * sizeof(*files));
    struct transfer_aws_summary summary = {.dir = job->dir,
                                           .id = hf__transfer_base_name(job->dir),
                                           .table_arn = job->description->arn,
                                           .table_id = job->description->id,
                                           .begin_us = job->begin_us,
                                           .end_us = env->wall_us(env->user),
                                           .items = job->items,
                                           .files = files,
                                           .files_len = job->files_len};

    if (!files)
        return memory_fails(s);
    for (size_t i = 0; i < job->files_len; i++) {
        struct transfer_md5 md5;

        TRY(hf__transfer_md5_file(s, job->files[i].path.ptr, &md5));
        files[i] = (struct transfer_file){.path = job->files[i].path,
                                          .items = job->files[i].items,
                                          .md5 = hf_scope_copy(s, hf_str_from(md5.base64)),
                                          .md5_hex = hf_scope_copy(s, hf_str_from(md5.hex))};
        summary.bytes += job->files[i].bytes;
    }
    return hf__transfer_aws_write(s, &summary);
}

/* All segments are done: the files get their names. (1) */
static enum hf_status job_complete(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;

    if (job->to_stdout)
        return HF_OK;
    if (job->options->schema)
        TRY(schema_write(job));
    for (size_t i = 0; i < job->files_len; i++) {
        struct export_file *file = &job->files[i];
        char *nothing = NULL;
        size_t len = 0;

        if (!file->bytes && job->options->gzip) { /* no data is an empty member, as AWS has it */
            enum hf_status status = text_pack(s, "", 0, &nothing, &len);

            if (status == HF_OK)
                status = file_append(s, job, file, nothing, len);
            free(nothing);
            TRY(status);
        }
    }
    TRY(state_write(s, job)); /* (3) */
    for (size_t i = 0; i < job->files_len; i++) {
        struct export_file *file = &job->files[i];

        if (file->named)
            continue;
        if (fsync(file->fd) != 0 && errno != EINVAL)
            return hf__transfer_fail(s, file->part.ptr, errno);
        if (rename(file->part.ptr, file->path.ptr) != 0)
            return hf__transfer_fail(s, file->path.ptr, errno);
        TRY(hf__transfer_sync_dir(s, file->path.ptr));
    }
    if (job->dir.ptr)
        TRY(manifests_write(job));
    unlink(job->state_path.ptr);
    return HF_OK;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void progress_show(struct export_job *job, struct progress *progress, bool done)
{
    struct hf_scope *s = job->c->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint64_t bytes = 0;

    if (!hf__progress_due(progress, done))
        return;
    for (size_t i = 0; i < job->files_len; i++)
        bytes += job->files[i].bytes;
    hf__transfer_progress_print(progress, s, job->task->table.ptr, job->items, bytes,
                                (double)job->items, (double)job->description->item_count);
    hf_scope_rewind(s, mark);
}

/* Until all segments have ended. */
static void segments_watch(struct export_job *job, struct progress *progress)
{
    pthread_mutex_lock(&job->lock);
    for (size_t i = 0; i < job->segments_len; i++) {
        struct export_segment *segment = &job->segments[i];

        if (segment->done)
            continue;
        segment->started = pthread_create(&segment->thread, NULL, segment_run, segment) == 0;
        job->running += segment->started;
        if (!segment->started) {
            hf__transfer_failure_say(&job->failure, CLI_FAILED, "no thread could be started");
            job->stop = true;
            break;
        }
    }
    while (job->running) {
        cond_wait_ms(&job->wake, &job->lock, WATCH_MS);
        if (hf_scope_sleep_ms(job->c->scope, 0) != HF_OK)
            job->stop = true;
        progress_show(job, progress, false);
    }
    progress_show(job, progress, !job->stop);
    pthread_mutex_unlock(&job->lock);
    for (size_t i = 0; i < job->segments_len; i++)
        if (job->segments[i].started)
            pthread_join(job->segments[i].thread, NULL);
}

/* It has ended before its end: say why, and how to go on. */
static enum hf_status job_explain(struct export_job *job)
{
    struct command_ctx *c = job->c;
    int came = c->guard ? hf__guard_signal(c->guard) : 0;
    struct hf_str more = HF_STR("");

    if (job->reader_gone) /* as `head` does it: that is no error of ours */
        return hf__command_shown(c, CLI_SIGNAL + SIGPIPE);
    if (job->state_written)
        more = hf_scope_format(c->scope,
                               "; %llu items are written; the same command with --resume continues",
                               (unsigned long long)job->items);
    if (!job->failure.set && came)
        return hf__command_fail(c, CLI_SIGNAL + came, "interrupted%.*s", HF_FMT(more));
    return hf__command_fail(c, job->failure.ends, "%s%.*s", job->failure.text, HF_FMT(more));
}

static enum hf_status job_run(struct export_job *job)
{
    struct command_ctx *c = job->c;
    struct progress progress;
    enum hf_status status = HF_OK;

    hf_scope_timeout_ms(c->scope, 0);
    hf__progress_begin(&progress, c->cli,
                       c->database->quiet || (job->to_stdout && c->cli->terminal),
                       job->options->progress);
    if (!job->segments_len) {
        if (job->options->format == TRANSFER_CSV) {
            job->columns = *job->options->columns;
            if (!job->columns.len)
                status = columns_collect(job, &progress);
        }
        if (status == HF_OK)
            status = job_new(job);
    }
    if (status == HF_OK)
        status = files_open(job);
    if (status == HF_OK)
        status = header_append(job);
    if (status == HF_OK)
        status = state_write(c->scope, job);
    if (status == HF_OK)
        segments_watch(job, &progress);
    hf__progress_end(&progress);
    TRY(status);
    if (!segments_done(job) || job->failure.set) {
        hf__scope_error_clear(c->scope);
        if (state_write(c->scope, job) != HF_OK && !job->failure.set)
            job->state_written = false;
        return job_explain(job);
    }
    return job_complete(job);
}

/* The table, and when its items expire. */
static enum hf_status table_describe(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_describe_table_result described;
    struct hf_describe_time_to_live_result ttl;

    TRY(hf_describe_table(s, job->c->db, &(struct hf_describe_table){.table = job->task->table},
                          &described));
    job->description = described.table;
    if (!job->options->schema)
        return HF_OK;
    /* A service that has none, or a user who may not ask: the schema is without it. */
    if (hf_describe_time_to_live(s, job->c->db,
                                 &(struct hf_describe_time_to_live){.table = job->task->table},
                                 &ttl) == HF_OK &&
        ttl.description && ttl.description->status == HF_TTL_ENABLED)
        job->ttl = ttl.description->attribute;
    return hf_scope_ok(s);
}

/* Find what an interrupted export has left. */
static enum hf_status job_begin(struct export_job *job, bool *complete)
{
    struct hf_scope *s = job->c->scope;
    const struct json_node *state = NULL;
    struct hf_str error = {0};

    *complete = false;
    if (job->to_stdout)
        return HF_OK;
    if (job->options->format == TRANSFER_AWS) {
        state = job->options->resume ? aws_find_state(job) : NULL;
        if (state)
            return state_use(job, state);
        if (job->options->resume && !job->options->overwrite)
            job->dir = aws_find_complete(job);
        *complete = job->dir.ptr != NULL;
        return hf_scope_ok(s); /* what cannot be read is no complete export */
    }
    job->state_path = state_path_of(s, job->task->to);
    if (!job->state_path.ptr)
        return memory_fails(s);
    if (!job->options->resume)
        return HF_OK;
    state = hf__transfer_state_read(s, job->state_path.ptr, &error);
    if (error.ptr)
        return hf__command_fail(job->c, CLI_FAILED, "%.*s", HF_FMT(error));
    if (state)
        return state_use(job, state);
    *complete = hf__transfer_exists(job->task->to) && !job->options->overwrite;
    return HF_OK;
}

enum hf_status hf__transfer_export(struct command_ctx *c, const struct export_options *options,
                                   const struct export_task *task, struct export_result *result)
{
    const struct hf_env *env = hf_scope_env(c->scope);
    struct export_job job = {.c = c,
                             .options = options,
                             .task = task,
                             .to_stdout = hf_str_equal(task->to, HF_STR("-")),
                             .begin_us = env->wall_us(env->user),
                             .rate = {.per_second = options->per_second}};
    enum hf_status status;

    pthread_mutex_init(&job.lock, NULL);
    cond_monotonic_init(&job.wake);
    *result = (struct export_result){.to = task->to};
    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    status = table_describe(&job);
    if (status == HF_OK)
        status = job_begin(&job, &result->skipped);
    if (status == HF_OK && !result->skipped)
        status = job_run(&job);
    result->skipped = result->skipped || files_named(&job);
    result->items = job.items;
    for (size_t i = 0; i < job.files_len; i++)
        result->bytes += job.files[i].bytes;
    if (job.dir.ptr)
        result->to = job.dir;
    job_free(&job);
    pthread_cond_destroy(&job.wake);
    pthread_mutex_destroy(&job.lock);
    return status;
}
