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
#include "cli/transfer/export_job.h"

#include "base/assert_held.h"
#include "base/base.h"
#include "base/cond_monotonic.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/child.h"

#include <assert.h>
#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATE_EVERY_US = 1000 * 1000, WATCH_MS = 100, GZIP_LEVEL = 6, RATE_PARTS = 4 };

int64_t hf__export_now_us(const struct export_job *job)
{
    const struct hf_env *env = hf_scope_env(job->c->scope);

    return env->elapsed_us(env->user);
}

/* A copy by malloc(), with a NUL behind it; NULL: no memory. */
char *hf__export_text_keep(struct hf_str text)
{
    char *copy = malloc(text.len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

enum hf_status hf__export_memory_fails(struct hf_scope *s)
{
    return hf_scope_fail(s, HF_NOMEM, "out of memory");
}

/* The files that segments write to are there, and counts agree. With the lock held. */
static void job_check(struct export_job *job)
{
    ASSERT_HELD(&job->lock);
    assert(job->files_len > 0 && job->running <= job->segments_len);
    for (size_t i = 0; i < job->segments_len; i++)
        assert(job->segments[i].file < job->files_len && job->segments[i].job == job);
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

    assert(file->fd >= 0);
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
    return *packed_len ? HF_OK : hf__export_memory_fails(s);
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
        return hf__export_memory_fails(s);
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
        return hf__export_memory_fails(s);
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

    assert(!segment->done);
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
    char *copy = cursor.ptr ? hf__export_text_keep(cursor) : NULL;

    if (page->last.ptr && !copy)
        return hf__export_memory_fails(s);
    job_check(job);
    free(segment->cursor);
    segment->cursor = copy;
    segment->done = !page->last.ptr;
    job->files[segment->file].items += page->items_len;
    job->items += page->items_len;
    if ((uint64_t)hf__export_now_us(job) - job->state_us > STATE_EVERY_US)
        return hf__export_state_write(s, job);
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
    wait_ms = hf__transfer_rate_wait_ms(&job->rate, hf__export_now_us(job), page.items_len);
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
    assert(job->running > 0);
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
    enum hf_status status = s ? HF_OK : hf__export_memory_fails(c->scope);
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
            whole.cursor = cursor.ptr ? hf__export_text_keep(cursor) : NULL;
            whole.done = !page.last.ptr;
            wait_ms = hf__transfer_rate_wait_ms(&job->rate, hf__export_now_us(job), page.items_len);
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

    assert(job->files_len > 0);
    if (job->options->format != TRANSFER_CSV || job->files[0].bytes || !job->columns.len)
        return HF_OK;
    header = hf__export_columns_text(s, &job->columns);
    text = header.ptr ? hf__export_text_keep(header) : NULL;
    len = header.len;
    if (!text)
        return hf__export_memory_fails(s);
    status = text_prepare(s, job, &text, &len);
    if (status == HF_OK)
        status = file_append(s, job, &job->files[0], text, len);
    free(text);
    return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

static enum hf_status schema_write(struct export_job *job)
{
    struct hf_scope *s = job->c->scope;
    struct hf_str path = job->dir.ptr ? hf_scope_format(s, "%.*s/schema.json", HF_FMT(job->dir))
                                      : hf__transfer_schema_path(s, job->task->to.ptr);

    if (!path.ptr)
        return hf__export_memory_fails(s);
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
        return hf__export_memory_fails(s);
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
    TRY(hf__export_state_write(s, job)); /* (3) */
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
            status = hf__export_job_new(job);
    }
    if (status == HF_OK)
        status = hf__export_files_open(job);
    if (status == HF_OK)
        status = header_append(job);
    if (status == HF_OK)
        status = hf__export_state_write(c->scope, job);
    if (status == HF_OK)
        segments_watch(job, &progress);
    hf__progress_end(&progress);
    TRY(status);
    if (!hf__export_segments_done(job) || job->failure.set) {
        hf__scope_error_clear(c->scope);
        if (hf__export_state_write(c->scope, job) != HF_OK && !job->failure.set)
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
        state = job->options->resume ? hf__export_aws_find_state(job) : NULL;
        if (state)
            return hf__export_state_use(job, state);
        if (job->options->resume && !job->options->overwrite)
            job->dir = hf__export_aws_find_complete(job);
        *complete = job->dir.ptr != NULL;
        return hf_scope_ok(s); /* what cannot be read is no complete export */
    }
    job->state_path = hf__export_state_path(s, job->task->to);
    if (!job->state_path.ptr)
        return hf__export_memory_fails(s);
    if (!job->options->resume)
        return HF_OK;
    state = hf__transfer_state_read(s, job->state_path.ptr, &error);
    if (error.ptr)
        return hf__command_fail(job->c, CLI_FAILED, "%.*s", HF_FMT(error));
    if (state)
        return hf__export_state_use(job, state);
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
    result->skipped = result->skipped || hf__export_files_named(&job);
    result->items = job.items;
    for (size_t i = 0; i < job.files_len; i++)
        result->bytes += job.files[i].bytes;
    if (job.dir.ptr)
        result->to = job.dir;
    hf__export_job_free(&job);
    pthread_cond_destroy(&job.wake);
    pthread_mutex_destroy(&job.lock);
    return status;
}
