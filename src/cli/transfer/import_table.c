/*
 * cli/transfer/import_table.c: the import of one table, in several threads.
 *
 * Each thread takes the next chunk of lines (transfer_source.c), makes items of them, checks their keys and
 * stores them; chunks are finished in their order. With `ordered` they are also stored in it, so that of several
 * lines with the same key the last one wins; reading and parsing go on beside that. An embedded database is
 * ordered: its writes take no time of waiting, and are synced together. Services are not, unless there is one thread, as
 * a request takes longer to travel than to be handled.
 *
 * Now and then, and at the end, the state file is written (import_state.c): the file and line up to which everything
 * is stored and durable.
 *
 * What always holds:
 *
 *  (1) The state names a line only after all lines before it were stored, durably, or rejected. Storing a
 *      line twice is the same as once, so an import that goes on there ends as one that was never
 *      interrupted.
 *  (2) Of lines behind one that ended the import, some may be stored. Those before it are.
 *
 *     worker:  read chunk (lock `reading`)  ->  parse  ->  store  ->  wait for turn  ->  finish (lock `lock`)
 */
#include "cli/transfer/import_job.h"

#include "base/assert_held.h"
#include "base/base.h"
#include "base/cond_monotonic.h"
#include "cli/frame/process/child.h"

#include <holdfast/batch.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STATE_EVERY_US = 1000 * 1000,
    WATCH_MS = 100,
    ATTEMPTS = 30 /* of an item that a service does not process */
};

/* Chunks are finished in their order, and none behind one that has failed. With the lock held. */
static void job_check(struct import_job *job)
{
    ASSERT_HELD(&job->lock);
    assert(job->failed_chunk == UINT64_MAX || job->turn <= job->failed_chunk + 1);
    assert(job->position.file <= job->task->files_len);
    assert(job->rejects_fd >= -1 && (job->rejects_fd < 0 || job->options->rejects.ptr));
    assert(!job->state_written || !job->no_state);
}

/* ---- items of lines ------------------------------------------------------------------------- */

/* What is wrong with the key, or the size; absent: nothing. */
static struct hf_str item_problem(struct hf_scope *s, const struct hf_table_description *table,
                                  struct hf_item item)
{
    static const enum hf_type scalars[] = {HF_TYPE_NONE, HF_TYPE_S, HF_TYPE_N, HF_TYPE_B};
    static const char *const words[] = {"", "a string (S)", "a number (N)", "binary (B)"};

    for (size_t k = 0; k < table->key_schema_len; k++) {
        struct hf_str name = table->key_schema[k].name;
        struct hf_value value = hf_item_get(item, name);

        if (!value.ptr)
            return hf_scope_format(s, "the key attribute %.*s is missing", HF_FMT(name));
        for (size_t i = 0; i < table->attributes_len; i++)
            if (hf_str_equal(table->attributes[i].name, name) &&
                hf_value_type(value) != scalars[table->attributes[i].type & 3])
                return hf_scope_format(s, "the key attribute %.*s has to be %s", HF_FMT(name),
                                       words[table->attributes[i].type & 3]);
        if ((hf_value_type(value) == HF_TYPE_S && !hf_value_str(value).len) ||
            (hf_value_type(value) == HF_TYPE_B && !hf_value_bytes(value).len))
            return hf_scope_format(s, "the key attribute %.*s is empty", HF_FMT(name));
    }
    if (hf_item_size(item) > HF_ITEM_SIZE_MAX)
        return hf_scope_format(s, "the item has %zu bytes, and at most %d are allowed",
                               hf_item_size(item), HF_ITEM_SIZE_MAX);
    return (struct hf_str){0};
}

/* The next record of the text, without its end; false: there is none. *lines are those that it has. */
static bool record_take(enum transfer_format format, struct hf_str *text, struct hf_str *record,
                        uint64_t *lines)
{
    bool quoted = false;
    size_t len = 0;

    if (!text->len)
        return false;
    *lines = 1;
    if (format != TRANSFER_CSV) {
        const char *end = memchr(text->ptr, '\n', text->len);

        len = end ? (size_t)(end - text->ptr) : text->len;
    }
    for (; format == TRANSFER_CSV && len < text->len; len++) {
        if (text->ptr[len] == '"')
            quoted = !quoted;
        else if (text->ptr[len] == '\n' && !quoted)
            break;
        else if (text->ptr[len] == '\n')
            (*lines)++;
    }
    *record = hf_str_of(text->ptr, len);
    *text = hf_str_of(text->ptr + len, text->len - len);
    if (text->len)
        *text = hf_str_of(text->ptr + 1, text->len - 1);
    if (record->len && record->ptr[record->len - 1] == '\r')
        record->len--;
    return true;
}

/* A line without an item. In CSV blanks are a value, where there is one column. */
static bool record_is_blank(enum transfer_format format, struct hf_str text)
{
    if (format == TRANSFER_CSV)
        return !text.len;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != ' ' && text.ptr[i] != '\t')
            return false;
    return true;
}

static bool writes_room(struct import_worker *w)
{
    size_t cap = w->writes_cap ? w->writes_cap * 2 : 1024;
    struct hf_write *writes;
    struct hf_str *texts;
    uint64_t *lines;

    if (w->writes_len < w->writes_cap)
        return true;
    writes = realloc(w->writes, cap * sizeof(*writes));
    w->writes = writes ? writes : w->writes;
    lines = realloc(w->lines, cap * sizeof(*lines));
    w->lines = lines ? lines : w->lines;
    texts = realloc(w->texts, cap * sizeof(*texts));
    w->texts = texts ? texts : w->texts;
    if (!writes || !lines || !texts)
        return false;
    w->writes_cap = cap;
    return true;
}

/* With `lock` held. */
static void job_stop(struct import_job *job)
{
    ASSERT_HELD(&job->lock);
    job->stop = true;
    pthread_cond_broadcast(&job->wake);
}

/*
 * With `lock` held: is the failure of this worker's chunk the one to report? Chunks are parsed at the same time, so the
 * first line that is bad may be the second that is noticed; it takes the place of the other.
 */
static bool failure_is_first(struct import_worker *w)
{
    struct import_job *job = w->job;

    ASSERT_HELD(&job->lock);
    if (w->chunk.number >= job->failed_chunk)
        return false;
    if (job->failed_chunk != UINT64_MAX)
        job->failure.set = false;
    job->failed_chunk = w->chunk.number;
    return true;
}

/* The import cannot go on, for the reason that the scope has. A signal is none: it is reported by itself. */
static void worker_fails(struct import_worker *w, bool has_chunk)
{
    struct import_job *job = w->job;

    w->failed = true;
    pthread_mutex_lock(&job->lock);
    if ((!has_chunk || failure_is_first(w)) && hf_scope_error(w->scope)->status != HF_CANCELED)
        hf__transfer_failure_of(&job->failure, w->scope, NULL);
    job_stop(job);
    pthread_mutex_unlock(&job->lock);
}

/* A line that cannot be stored: it is kept for the file of rejects, or ends the import. */
static void line_reject(struct import_worker *w, uint64_t line, struct hf_str text,
                        struct hf_str reason)
{
    struct import_job *job = w->job;
    struct import_reject *more;

    if (!job->options->skip) {
        w->failed = true;
        w->done_lines = line - w->chunk.first_line;
        pthread_mutex_lock(&job->lock);
        if (failure_is_first(w))
            hf__transfer_failure_say(&job->failure, CLI_USAGE, "%s:%llu: %.*s",
                                     hf__import_file_name(job, w->chunk.file),
                                     (unsigned long long)line, HF_FMT(reason));
        job_stop(job); /* this chunk is stored up to the line */
        pthread_mutex_unlock(&job->lock);
        return;
    }
    if (w->rejects_len == w->rejects_cap) {
        size_t cap = w->rejects_cap ? w->rejects_cap * 2 : 16;

        more = hf_scope_alloc(w->scope, cap * sizeof(*more));
        if (!more) {
            hf_scope_fail(w->scope, HF_NOMEM, "out of memory");
            w->done_lines = line - w->chunk.first_line;
            worker_fails(w, true);
            return;
        }
        if (w->rejects_len)
            memcpy(more, w->rejects, w->rejects_len * sizeof(*more));
        w->rejects = more;
        w->rejects_cap = cap;
    }
    assert(w->rejects_len < w->rejects_cap && line >= w->chunk.first_line);
    w->rejects[w->rejects_len++] = (struct import_reject){line, text, reason};
}

/* All lines of the chunk become items, or rejects. */
static void chunk_parse(struct import_worker *w)
{
    const struct import_task *task = w->job->task;
    struct hf_str text = hf_str_of(w->chunk.ptr, w->chunk.len), record;
    uint64_t line = w->chunk.first_line, lines = 0;

    assert(!w->writes_len && !w->rejects_len);
    for (; !w->failed && record_take(task->format, &text, &record, &lines); line += lines) {
        struct hf_str error = {0};
        struct hf_item item;

        if (record_is_blank(task->format, record))
            continue;
        if (hf__transfer_line_read(w->scope, task->format, &w->job->columns, record, &item, &error))
            error = item_problem(w->scope, task->description, item);
        else if (!error.ptr)
            error = HF_STR("out of memory");
        if (error.ptr) {
            line_reject(w, line, record, error);
            continue;
        }
        if (!writes_room(w)) {
            hf_scope_fail(w->scope, HF_NOMEM, "out of memory");
            w->done_lines = line - w->chunk.first_line;
            worker_fails(w, true);
            return;
        }
        assert(w->writes_len < w->writes_cap);
        w->writes[w->writes_len] = (struct hf_write){.table = task->table, .put = item};
        w->lines[w->writes_len] = line;
        w->texts[w->writes_len++] = record;
    }
}

/* ---- storing -------------------------------------------------------------------------------- */

/* What hf_write_many() says of the entry at fault, without the number that it has there. */
static struct hf_str refusal_text(struct hf_scope *s)
{
    static const char behind[] = "): ";
    struct hf_str text = hf_str_from(hf_scope_error_text(s));
    struct hf_str rest = text;
    const char *at;

    if (str_after(text, HF_STR("entry "), &rest) &&
        (at = memmem(rest.ptr, rest.len, behind, sizeof(behind) - 1)))
        text = hf_str_of(at + sizeof(behind) - 1,
                         rest.len - (size_t)(at - rest.ptr) - (sizeof(behind) - 1));
    return hf_scope_copy(s, text);
}

/* Only those are left to be stored. */
static void writes_keep(struct import_worker *w, const size_t *left, size_t len)
{
    assert(len <= w->writes_len);
    for (size_t i = 0; i < len; i++) {
        assert(left[i] >= i);
        w->writes[i] = w->writes[left[i]];
        w->lines[i] = w->lines[left[i]];
        w->texts[i] = w->texts[left[i]];
    }
    w->writes_len = len;
}

static enum hf_status writes_pace(struct import_worker *w)
{
    struct import_job *job = w->job;
    uint32_t wait_ms;

    assert(w->writes_len > 0);
    pthread_mutex_lock(&job->lock);
    wait_ms = hf__transfer_rate_wait_ms(&job->rate, hf__import_now_us(job), w->writes_len);
    pthread_mutex_unlock(&job->lock);
    hf_scope_timeout_ms(w->scope, 0);
    return wait_ms ? hf_scope_sleep_ms(w->scope, wait_ms) : HF_OK;
}

static struct hf_item key_of_item(struct hf_scope *s, const struct hf_table_description *table,
                                  struct hf_item item)
{
    struct hf_attr attrs[2];
    size_t len = table->key_schema_len;

    assert(len <= 2);
    for (size_t i = 0; i < len; i++)
        attrs[i] = hf_attr_of_value(table->key_schema[i].name,
                                    hf_item_get(item, table->key_schema[i].name));
    return hf_item_make(s, attrs, len);
}

/* Which items does the table not have like this? The first one of all that differs is kept. */
static void chunk_compare(struct import_worker *w)
{
    struct import_job *job = w->job;
    const struct import_task *task = job->task;
    uint64_t missing = 0, different = 0;

    for (size_t i = 0; i < w->writes_len; i++) {
        struct hf_scope_mark mark = hf_scope_mark(w->scope);
        struct hf_get_item get = {.table = task->table, .consistent = HF_YES};
        struct hf_get_item_result got = {.item = {.ptr = NULL}};
        bool equal;

        get.key = key_of_item(w->scope, task->description, w->writes[i].put);
        hf_scope_timeout_ms(w->scope, (uint32_t)job->c->database->timeout_ms);
        if (hf_get_item(w->scope, job->c->db, &get, &got) != HF_OK) {
            w->done_lines = w->lines[i] - w->chunk.first_line;
            worker_fails(w, true);
            return;
        }
        equal = got.item.ptr && hf_item_equal(got.item, w->writes[i].put);
        missing += !got.item.ptr;
        different += got.item.ptr && !equal;
        if (!equal) {
            pthread_mutex_lock(&job->lock);
            if (!job->first.line || w->chunk.file < job->first.file ||
                (w->chunk.file == job->first.file && w->lines[i] < job->first.line))
                job->first = (struct transfer_position){.file = w->chunk.file, .line = w->lines[i]};
            pthread_mutex_unlock(&job->lock);
        }
        hf_scope_rewind(w->scope, mark);
    }
    pthread_mutex_lock(&job->lock);
    job->missing += missing;
    job->different += different;
    pthread_mutex_unlock(&job->lock);
}

/* Store the items of the chunk; returns how many. */
static uint64_t chunk_store(struct import_worker *w)
{
    struct import_job *job = w->job;
    struct hf_write_many_result result;
    size_t all = w->writes_len;

    if (job->options->compare)
        chunk_compare(w);
    if (job->options->dry_run || !all)
        return all;
    if (writes_pace(w) != HF_OK) {
        w->done_lines = 0;
        worker_fails(w, true);
        return 0;
    }
    while (w->writes_len) {
        enum hf_status status;

        hf_scope_timeout_ms(w->scope, (uint32_t)job->c->database->timeout_ms);
        status = hf_write_many(w->scope, job->c->db, w->writes, w->writes_len,
                               HF_OPTIONS(hf_many_options, .max_attempts = ATTEMPTS), &result);
        if (status == HF_OK)
            break;
        assert(result.left_len > 0 || status == HF_NOMEM);
        if (!result.left_len || status != HF_INVALID) {
            size_t first = result.left_len ? result.left[0] : 0;

            w->done_lines = w->lines[first] - w->chunk.first_line;
            all -= result.left_len ? result.left_len : w->writes_len;
            worker_fails(w, true);
            return all;
        }
        line_reject(w, w->lines[result.left[0]], w->texts[result.left[0]], refusal_text(w->scope));
        all--;
        if (w->failed)
            return all - (result.left_len - 1);
        writes_keep(w, result.left + 1, result.left_len - 1);
    }
    return all;
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* The chunk is done, or as far as it came; all before it are. */
static void chunk_finish(struct import_worker *w, uint64_t stored)
{
    struct import_job *job = w->job;
    const struct transfer_chunk *chunk = &w->chunk;
    enum hf_status status;

    pthread_mutex_lock(&job->lock);
    job_check(job);
    assert(job->turn == chunk->number && w->done_lines <= chunk->lines);
    assert(stored <= w->done_lines || !chunk->lines);
    job->turn++;
    job->items += stored;
    status = hf__import_rejects_flush(w);
    job->position = (struct transfer_position){.file = chunk->file,
                                               .line = chunk->first_line - 1 + w->done_lines};
    if (!w->failed && chunk->ends_file)
        job->position = (struct transfer_position){.file = chunk->file + 1};
    if (status == HF_OK && !w->failed && stored && !job->options->dry_run &&
        hf__import_now_us(job) - job->state_us > STATE_EVERY_US) {
        hf_scope_timeout_ms(w->scope, 0);
        status = hf_db_sync(w->scope, job->c->db);
        if (status == HF_OK)
            status = hf__import_state_write(w->scope, job);
    }
    if (status != HF_OK) {
        hf__transfer_failure_of(&job->failure, w->scope, NULL);
        job->stop = true;
    }
    pthread_cond_broadcast(&job->wake);
    pthread_mutex_unlock(&job->lock);
}

static void chunk_count(struct import_worker *w, uint64_t stored)
{
    struct import_job *job = w->job;

    assert(stored <= w->chunk.lines);
    pthread_mutex_lock(&job->lock);
    job->stored += stored;
    job->bytes += w->chunk.len;
    job->source_bytes += w->chunk.source_bytes;
    pthread_mutex_unlock(&job->lock);
}

/* Wait until all chunks before ours are finished. False: one of them has failed. */
static bool turn_wait(struct import_worker *w)
{
    struct import_job *job = w->job;
    bool ours;

    pthread_mutex_lock(&job->lock);
    while (job->turn != w->chunk.number && job->failed_chunk >= w->chunk.number)
        pthread_cond_wait(&job->wake, &job->lock);
    ours = job->failed_chunk >= w->chunk.number;
    pthread_mutex_unlock(&job->lock);
    return ours;
}

/* The header of CSV, with the lock `reading` held. */
static enum hf_status header_read(struct import_worker *w)
{
    struct import_job *job = w->job;
    struct hf_str header = hf__transfer_source_header(job->source), error = {0};

    if (job->task->format != TRANSFER_CSV || job->headed)
        return HF_OK;
    if (!header.len && w->chunk.first_line == 1 && !w->chunk.lines)
        return HF_OK; /* a file of no bytes has no items */
    job->headed = true;
    if (hf__transfer_csv_read_header(job->c->scope, header, job->task->types,
                                     job->task->description, &job->columns, &error))
        return HF_OK;
    return hf_scope_fail(w->scope, HF_INVALID, "%s:1: %.*s",
                         hf__import_file_name(job, w->chunk.file), HF_FMT(error));
}

/* The next chunk; false: there are no more, or the import ends. */
static bool chunk_take(struct import_worker *w)
{
    struct import_job *job = w->job;
    bool found = false, stop;
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&job->reading);
    pthread_mutex_lock(&job->lock);
    stop = job->stop;
    pthread_mutex_unlock(&job->lock);
    if (!stop && !job->source_ended) {
        status = hf__transfer_source_next(w->scope, job->source, &w->chunk, &found);
        if (status == HF_OK && found)
            status = header_read(w);
        job->source_ended = status != HF_OK || !found;
    }
    assert(status != HF_OK || !found || w->chunk.file < job->task->files_len);
    pthread_mutex_unlock(&job->reading);
    if (status != HF_OK)
        worker_fails(w, false);
    return status == HF_OK && found;
}

/* Sync what the worker has stored, also if a signal has canceled its scope. */
static enum hf_status worker_sync(struct import_worker *w)
{
    uint64_t ticket = hf__scope_pending_ticket(w->scope);
    struct hf_scope *s = ticket ? hf_scope_new(hf_scope_env(w->scope)) : NULL;
    enum hf_status status;

    if (!ticket)
        return HF_OK;
    if (!s)
        return hf_scope_fail(w->scope, HF_NOMEM, "out of memory");
    hf_scope_sync_later(s, true);
    (void)hf__scope_defer_sync(s, ticket);
    status = hf_db_sync(s, w->job->c->db);
    if (status != HF_OK)
        status = hf_scope_fail_from(w->scope, status, s);
    hf_scope_free(s);
    return status;
}

static void *worker_run(void *user)
{
    struct import_worker *w = user;
    struct import_job *job = w->job;
    struct hf_scope_mark mark = hf_scope_mark(w->scope);
    bool synced;

    while (!w->failed && chunk_take(w)) {
        uint64_t stored = 0;

        w->writes_len = w->rejects_len = w->rejects_cap = 0;
        w->done_lines = w->chunk.lines;
        chunk_parse(w);
        if (job->options->ordered && !turn_wait(w))
            break;
        stored = chunk_store(w);
        chunk_count(w, stored);
        if (!turn_wait(w))
            break;
        chunk_finish(w, stored);
        hf_scope_rewind(w->scope, mark);
    }
    synced = worker_sync(w) == HF_OK;
    if (!synced)
        worker_fails(w, false);
    pthread_mutex_lock(&job->lock);
    job->unsynced = job->unsynced || !synced;
    assert(job->running > 0);
    job->running--;
    pthread_cond_broadcast(&job->wake);
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void progress_show(struct import_job *job, struct progress *progress, bool done)
{
    struct hf_scope *s = job->c->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);

    if (hf__progress_due(progress, done))
        hf__transfer_progress_print(progress, s, job->task->table.ptr, job->stored, job->bytes,
                                    (double)job->source_bytes, (double)job->all_bytes);
    hf_scope_rewind(s, mark);
    if (job->options->on_progress)
        job->options->on_progress(job->options->user, job->task->table, job->stored,
                                  (double)job->source_bytes, (double)job->all_bytes);
}

/* Until all workers have ended. The lock is held, but for the waits. */
static void workers_watch(struct import_job *job, struct progress *progress)
{
    ASSERT_HELD(&job->lock);
    while (job->running) {
        cond_wait_ms(&job->wake, &job->lock, WATCH_MS);
        if (!job->stop && hf_scope_sleep_ms(job->c->scope, 0) != HF_OK)
            job_stop(job);
        progress_show(job, progress, false);
    }
    progress_show(job, progress, true);
}

static void workers_end(struct import_worker *workers, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        hf_scope_free(workers[i].scope);
        free(workers[i].chunk.ptr);
        free(workers[i].writes);
        free(workers[i].lines);
        free(workers[i].texts);
    }
    free(workers);
}

static enum hf_status workers_run(struct import_job *job, struct progress *progress)
{
    struct hf_scope *s = job->c->scope;
    size_t len = job->options->parallel;
    struct import_worker *workers = calloc(len, sizeof(*workers));

    assert(len >= 1 && len <= TRANSFER_PARALLEL_MAX);
    if (!workers)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    pthread_mutex_lock(&job->lock);
    for (size_t i = 0; i < len; i++) {
        workers[i].job = job;
        workers[i].scope = hf_scope_new(hf_scope_env(s));
        if (!workers[i].scope)
            break;
        hf__scope_follow(workers[i].scope, s);
        hf_scope_sync_later(workers[i].scope, true);
        if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0)
            break;
        workers[i].started = true;
        job->running++;
    }
    if (!job->running)
        hf__transfer_failure_say(&job->failure, CLI_FAILED, "no thread could be started");
    workers_watch(job, progress);
    pthread_mutex_unlock(&job->lock);
    workers_end(workers, len);
    return HF_OK;
}

/* The import has ended before its end: say why, and how to go on. */
static enum hf_status job_explain(struct import_job *job)
{
    struct command_ctx *c = job->c;
    int came = c->guard ? hf__guard_signal(c->guard) : 0;
    struct hf_str more = HF_STR("");

    assert(job->stop || job->failure.set);
    if (job->items && !job->options->dry_run)
        more =
            hf_scope_format(c->scope, "; %llu items are stored%s", (unsigned long long)job->items,
                            job->state_written ? "; --resume continues" : "");
    if (!job->failure.set && came)
        return hf__command_fail(c, CLI_SIGNAL + came, "interrupted%.*s", HF_FMT(more));
    return hf__command_fail(c, job->failure.ends, "%s%.*s", job->failure.text, HF_FMT(more));
}

static enum hf_status job_run(struct import_job *job, struct import_result *result)
{
    struct command_ctx *c = job->c;
    struct progress progress;

    hf_scope_timeout_ms(c->scope, 0);
    hf__progress_begin(&progress, c->cli, c->database->quiet, job->options->progress);
    TRY(workers_run(job, &progress));
    hf__progress_end(&progress);
    *result = (struct import_result){.items = job->items,
                                     .rejected = job->rejected,
                                     .bytes = job->bytes,
                                     .missing = job->missing,
                                     .different = job->different};
    if (job->first.line)
        result->first =
            hf_scope_format(c->scope, "%s:%llu", hf__import_file_name(job, job->first.file),
                            (unsigned long long)job->first.line);
    if (job->stop || job->failure.set) {
        if (job->items && !job->unsynced && hf__import_state_write(c->scope, job) != HF_OK)
            job->state_written = false; /* what has ended the import is of more interest */
        return job_explain(job);
    }
    assert(job->position.file == job->task->files_len);
    if (job->rejected > IMPORT_NOTICES_MAX)
        hf__cli_notice(c->cli, c->name, "%llu more lines were skipped",
                       (unsigned long long)job->rejected - IMPORT_NOTICES_MAX);
    if (job->options->state.ptr && !job->options->dry_run)
        unlink(job->options->state.ptr);
    return HF_OK;
}

enum hf_status hf__transfer_import(struct command_ctx *c, const struct import_options *options,
                                   const struct import_task *task, struct import_result *result)
{
    struct import_job job = {.c = c,
                             .options = options,
                             .task = task,
                             .rate = {.per_second = options->per_second},
                             .failed_chunk = UINT64_MAX,
                             .rejects_fd = -1};
    enum hf_status status;

    assert(task->files_len > 0 && task->description && (c->db || options->dry_run));
    for (size_t i = 0; i < task->files_len; i++)
        job.all_bytes += task->files[i].bytes;
    TRY(hf__import_state_resume(&job));
    TRY(hf__transfer_source_open(c->scope, task->files, task->files_len, task->format, job.position,
                                 &job.source));
    job.state_us = hf__import_now_us(&job);
    job.stored = job.items;
    pthread_mutex_init(&job.reading, NULL);
    pthread_mutex_init(&job.lock, NULL);
    cond_monotonic_init(&job.wake);
    status = job_run(&job, result);
    pthread_cond_destroy(&job.wake);
    pthread_mutex_destroy(&job.lock);
    pthread_mutex_destroy(&job.reading);
    if (job.rejects_fd >= 0)
        close(job.rejects_fd);
    hf__transfer_source_close(job.source);
    return status;
}
