/*
 * cli/events/adopt_import.c: the events of `events adopt`, as the lines of an export, into hf_events_import().
 * That makes an import of it which can be repeated, and which compares what is there already.
 *
 *  (1) When an event cannot be read, or is refused, no later event of its stream is imported: its
 *      version would not be the next one. It is reported, and the others go on.
 *  (2) What an earlier run has imported of a stream is not read again: if the event at the version that
 *      the stream has is the one that belongs there, so are those before it.
 *  (3) Memory is for the events of one read: ROWS_MAX of them, and one object of S3.
 */
#include "base/base.h"
#include "cli/events/adopt.h"
#include "cli/frame/process/input.h"

#include <holdfast/batch.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS_MAX = 25, OBJECT_MAX = 512 * 1024 * 1024, WHY_MAX = 1024 };

/* Lines that are on their way. */
struct feed {
    struct adopt *a;
    struct hf_scope *s; /* of the rows that were read */
    struct hf_scope *line_scope;
    size_t at;             /* in adopt.order: what is read next */
    size_t rows[ROWS_MAX]; /* their places in adopt.order */
    const struct hf_item *items;
    size_t rows_len, row;
    struct hf_str line; /* what is left of it, with its end */
    size_t *lines;      /* those that were made: their places */
    size_t lines_len;
    size_t refused; /* the place of the last line that was, and 1; 0: none was */
};

/* ---- what an event says --------------------------------------------------------------------- */

/* Where the key in a reference begins; NULL: it is none. */
static const char *reference_key(struct hf_str reference)
{
    for (size_t i = 0; i + 2 < reference.len; i++)
        if (reference.ptr[i] == ':' && reference.ptr[i + 1] == ':')
            return reference.ptr + i + 2;
    return NULL;
}

/* No step of it leads out of a folder. */
static bool is_inside(struct hf_str key)
{
    size_t begin = 0;

    if (!key.len || memchr(key.ptr, 0, key.len))
        return false;
    for (size_t i = 0; i <= key.len; i++) {
        if (i < key.len && key.ptr[i] != '/')
            continue;
        if (i - begin == 2 && memcmp(key.ptr + begin, "..", 2) == 0)
            return false;
        begin = i + 1;
    }
    return key.ptr[0] != '/';
}

/* From S3. A bucket that cannot be reached is an error, and not the fault of the event. */
static bool bucket_read(struct feed *f, struct hf_str bucket, struct hf_str key,
                        struct hf_bytes *object, enum hf_status *status, struct hf_str *why)
{
    struct adopt *a = f->a;

    if (!hf_str_equal(bucket, a->bucket_name)) {
        *why =
            hf_scope_format(f->line_scope, "its payload is in bucket %.*s, and --objects is %.*s",
                            HF_FMT(bucket), HF_FMT(a->bucket_name));
        return false;
    }
    *status = hf_blobs_read_object(f->line_scope, a->bucket, key, object);
    if (*status == HF_OK)
        return true;
    if (*status == HF_NOT_FOUND || *status == HF_LIMIT || *status == HF_INVALID) {
        *why = hf_scope_format(f->line_scope, "%s", hf_scope_error_text(f->line_scope));
        *status = HF_OK;
    }
    return false;
}

/* The object that has the payload of an event. False: `why` says why not, or *status is an error. */
static bool object_read(struct feed *f, const struct events_row *row, struct hf_bytes *object,
                        enum hf_status *status, struct hf_str *why)
{
    struct hf_str reference = row->reference, key, text;
    const char *begin = reference_key(reference);
    struct adopt *a = f->a;

    *status = HF_OK;
    if (!begin) {
        *why = HF_STR("its s3Reference is not BUCKET::KEY");
        return false;
    }
    key = hf_str_of(begin, reference.len - (size_t)(begin - reference.ptr));
    if (!a->objects.ptr) {
        *why = hf_scope_format(f->line_scope,
                               "its payload is in S3, \"%.*s\": say with --objects where that is",
                               HF_FMT(reference));
        return false;
    }
    if (a->bucket)
        return bucket_read(f, hf_str_of(reference.ptr, (size_t)(begin - reference.ptr) - 2), key,
                           object, status, why);
    if (!is_inside(key)) {
        *why = HF_STR("its s3Reference leads out of the folder of --objects");
        return false;
    }
    text = hf_scope_format(f->line_scope, "%.*s/%.*s", HF_FMT(a->objects), HF_FMT(key));
    if (!text.ptr) {
        *status = hf_scope_fail(f->line_scope, HF_NOMEM, "out of memory");
        return false;
    }
    text = hf__input_read(f->line_scope, text.ptr, OBJECT_MAX, why);
    *object = hf_bytes_of(text.ptr, text.len);
    return text.ptr != NULL;
}

/* Its line. False: as object_read(). */
static bool line_make(struct feed *f, const struct adopt_entry *entry, struct hf_item item,
                      enum hf_status *status, struct hf_str *why)
{
    struct events_row row;
    struct hf_bytes object;
    struct hf_str json;

    *status = HF_OK;
    if (!item.ptr) {
        *why = HF_STR("it was deleted meanwhile");
        return false;
    }
    if (!hf__cli_events_row_read(f->line_scope, item, &row, why))
        return false;
    if (row.reference.ptr && (!object_read(f, &row, &object, status, why) ||
                              !hf__cli_events_row_object(f->line_scope, object, &row, why)))
        return false;
    row.event.version = entry->version;
    *status = hf_event_to_json(f->line_scope, &row.event, &json);
    if (*status == HF_OK) {
        f->line = hf_scope_format(f->line_scope, "%.*s\n", HF_FMT(json));
        if (!f->line.ptr)
            *status = hf_scope_fail(f->line_scope, HF_NOMEM, "out of memory");
    }
    return *status == HF_OK;
}

/* ---- the feed ------------------------------------------------------------------------------- */

/* (1) `at` is the place of the event that is at fault. */
static void stream_stop(struct adopt *a, size_t at, const char *why)
{
    const struct adopt_entry *entry = a->order[at];
    struct adopt_stream *stream = &a->streams[entry->stream];
    struct hf_scope_mark mark = hf_scope_mark(a->memory);
    struct hf_str text = hf__cli_events_stream_text(a->memory, stream->key);
    unsigned long long rest = stream->taken - entry->number;

    assert(rest >= 1);
    stream->taken = entry->number;
    a->left += rest;
    hf__adopt_events_report(a, "left \"%.*s\" and %llu later events of stream %.*s: %s",
                            HF_FMT(entry->id), rest - 1, HF_FMT(text), why);
    hf_scope_rewind(a->memory, mark);
}

static bool is_taken(const struct adopt *a, size_t at)
{
    const struct adopt_stream *stream = &a->streams[a->order[at]->stream];

    return a->order[at]->number >= stream->there && a->order[at]->number < stream->taken;
}

static enum hf_status rows_read(struct feed *f)
{
    struct hf_get gets[ROWS_MAX];
    struct hf_get_many_result got;
    struct adopt *a = f->a;

    hf_scope_reset(f->s);
    f->rows_len = f->row = 0;
    for (; f->at < a->entries_len && f->rows_len < ROWS_MAX; f->at++) {
        const struct adopt_entry *entry = a->order[f->at];
        struct hf_attr key[] = {hf_attr_of_str(HF_STR("id"), entry->id),
                                hf_attr_of_str(HF_STR("created"), entry->created)};

        if (!is_taken(a, f->at))
            continue;
        f->rows[f->rows_len] = f->at;
        gets[f->rows_len++] = (struct hf_get){a->table, hf_item_make(f->s, key, a->sorts ? 2 : 1)};
    }
    if (!f->rows_len)
        return HF_OK;
    TRY(hf_scope_built(f->s));
    hf_scope_timeout_ms(f->s, (uint32_t)a->timeout_ms);
    TRY(hf_get_many(f->s, a->from, gets, f->rows_len,
                    HF_OPTIONS(hf_many_options, .consistent = true), &got));
    f->items = got.items;
    return HF_OK;
}

/* The next line; absent: there are no more. Errors are those of `s`. */
static enum hf_status line_next(struct hf_scope *s, struct feed *f)
{
    struct adopt *a = f->a;

    f->line = (struct hf_str){0};
    for (;;) {
        struct hf_str why = {0};
        enum hf_status status;
        size_t at;

        TRY(hf_scope_sleep_ms(s, 0)); /* a signal */
        if (f->row == f->rows_len) {
            status = rows_read(f);
            if (status != HF_OK)
                return hf_scope_fail_from(s, status, f->s);
            if (!f->rows_len)
                return HF_OK;
        }
        assert(f->row < f->rows_len && f->rows_len <= ROWS_MAX);
        at = f->rows[f->row++];
        if (!is_taken(a, at)) /* since it was read */
            continue;
        hf_scope_reset(f->line_scope);
        hf_scope_timeout_ms(f->line_scope, (uint32_t)a->timeout_ms);
        if (line_make(f, a->order[at], f->items[f->row - 1], &status, &why)) {
            assert(f->lines_len < a->entries_len);
            f->lines[f->lines_len++] = at;
            return HF_OK;
        }
        if (status != HF_OK)
            return hf_scope_fail_from(s, status, f->line_scope);
        stream_stop(a, at, why.ptr ? why.ptr : "out of memory");
    }
}

static enum hf_status feed_read(struct hf_scope *s, void *bytes, size_t cap, size_t *len,
                                void *user)
{
    struct feed *f = user;

    *len = 0;
    hf_scope_timeout_ms(s, 0);
    if (!f->line.len)
        TRY(line_next(s, f));
    hf_scope_timeout_ms(s, (uint32_t)f->a->timeout_ms);
    *len = f->line.len < cap ? f->line.len : cap;
    if (!*len)
        return HF_OK;
    memcpy(bytes, f->line.ptr, *len);
    f->line = hf_str_of(f->line.ptr + *len, f->line.len - *len);
    return HF_OK;
}

/* ---- the streams as they are ---------------------------------------------------------------- */

static enum hf_status stream_note(struct hf_scope *s, struct hf_event_stream_key key,
                                  const struct hf_event_stream_info *info, void *user)
{
    struct adopt *a = user;
    struct hf_scope_mark mark = hf_scope_mark(a->s);
    struct adopt_stream *stream = hf__adopt_events_find(a, key);

    if (stream)
        stream->version = info->version;
    hf_scope_rewind(a->s, mark);
    hf_scope_timeout_ms(s, (uint32_t)a->timeout_ms);
    return hf_scope_sleep_ms(s, 0);
}

static enum hf_status streams_look(struct adopt *a)
{
    hf_scope_timeout_ms(a->s, (uint32_t)a->timeout_ms);
    return hf_events_streams(a->s, a->store, (struct hf_str){0}, stream_note, a);
}

/* (2) */
static enum hf_status stream_skip(struct adopt *a, struct adopt_stream *stream)
{
    uint64_t there = stream->version < stream->taken ? stream->version : stream->taken;
    const struct adopt_entry *last;
    struct hf_events_page page;
    enum hf_status status;

    if (!there)
        return HF_OK;
    last = a->by_stream[stream->begin + there - 1];
    hf_scope_timeout_ms(a->s, (uint32_t)a->timeout_ms);
    status = hf_events_read(a->s, a->store, stream->key,
                            HF_OPTIONS(hf_events_read_options, .from = there, .to = there,
                                       .no_payload = true),
                            &page);
    if (status == HF_DELETED)
        return hf_scope_ok(a->s);
    TRY(status);
    if (page.events_len != 1 || !hf_str_equal(page.events[0].id, hf__cli_events_row_id(last->id)))
        return HF_OK;
    stream->there = there;
    a->done += there;
    a->existing += there;
    return HF_OK;
}

static enum hf_status streams_skip(struct adopt *a)
{
    TRY(streams_look(a));
    for (size_t i = 0; i < a->streams_len; i++) {
        struct hf_scope_mark mark = hf_scope_mark(a->s);

        TRY(stream_skip(a, &a->streams[i]));
        hf_scope_rewind(a->s, mark);
    }
    return HF_OK;
}

/* ---- importing ------------------------------------------------------------------------------ */

static enum hf_status on_progress(uint64_t done, uint64_t total, void *user)
{
    struct adopt *a = user;

    (void)total;
    hf_scope_timeout_ms(a->s, (uint32_t)a->timeout_ms);
    return hf__cli_events_progress(a->done + done, a->entries_len, &a->progress);
}

/* The number of the line that an import has refused, and why; 0: it failed for another reason. */
static unsigned long long refused_line(const struct adopt *a, char why[WHY_MAX])
{
    const char *text = hf_scope_error_text(a->s);
    unsigned long long line = 0;
    int used = 0;

    switch (hf_scope_error(a->s)->status) {
    case HF_CONDITION:
    case HF_DUPLICATE:
    case HF_IN_USE:
    case HF_INVALID:
    case HF_LIMIT:
    case HF_DELETED:
    case HF_SERIALIZATION:
        break;
    default:
        return 0;
    }
    if (sscanf(text, "line %20llu: %n", &line, &used) != 1 || !used)
        return 0;
    snprintf(why, WHY_MAX, "%s", text + used);
    return line;
}

/* In a dry run: read all lines. */
static enum hf_status lines_count(struct feed *f)
{
    struct adopt *a = f->a;

    for (;;) {
        TRY(line_next(a->s, f));
        if (!f->line.ptr)
            return HF_OK;
        TRY(on_progress(f->lines_len, 0, a));
    }
}

/*
 * Up to the end, or to a line that is refused; then *again is true. It is tried again, as another run may have
 * appended it at the same moment, and only then is its stream stopped.
 */
static enum hf_status lines_import(struct feed *f, bool *again)
{
    struct adopt *a = f->a;
    char why[WHY_MAX] = "";
    unsigned long long line;
    enum hf_status status;
    uint64_t added = 0;

    f->line = (struct hf_str){0};
    f->rows_len = f->row = f->lines_len = 0;
    *again = false;
    if (!a->store) {
        TRY(lines_count(f));
        a->done += f->lines_len;
        return HF_OK;
    }
    status = hf_events_import(a->s, a->store,
                              HF_OPTIONS(hf_events_transfer, .on_progress = on_progress, .user = a),
                              feed_read, f, &added);
    a->imported += added;
    line = status == HF_OK ? f->lines_len + 1 : refused_line(a, why);
    if (!line)
        return status;
    assert(line >= 1 && line <= f->lines_len + (status == HF_OK));
    a->done += line - 1;
    a->existing += line - 1 - added;
    if (status == HF_OK)
        return HF_OK;
    *again = true;
    f->at = f->lines[line - 1];
    if (f->refused != f->at + 1) {
        f->refused = f->at + 1;
        return hf_scope_ok(a->s);
    }
    stream_stop(a, f->at, why);
    return hf_scope_ok(a->s);
}

enum hf_status hf__adopt_events_import(struct adopt *a)
{
    const struct hf_env *env = hf_scope_env(a->s);
    struct feed f = {.a = a, .s = hf_scope_new(env), .line_scope = hf_scope_new(env)};
    enum hf_status status = HF_OK;
    bool again = true;

    f.lines = hf_scope_alloc(a->memory, (a->entries_len + 1) * sizeof(*f.lines));
    if (!f.s || !f.line_scope || !f.lines)
        status = hf_scope_fail(a->s, HF_NOMEM, "out of memory");
    else if (a->store)
        status = streams_skip(a);
    while (status == HF_OK && again) {
        struct hf_scope_mark mark = hf_scope_mark(a->s);

        status = lines_import(&f, &again);
        if (status == HF_OK)
            hf_scope_rewind(a->s, mark);
    }
    hf_scope_free(f.line_scope);
    hf_scope_free(f.s);
    return status;
}

/* ---- verifying ------------------------------------------------------------------------------ */

enum hf_status hf__adopt_events_verify(struct adopt *a)
{
    TRY(streams_look(a));
    for (size_t i = 0; i < a->streams_len; i++) {
        const struct adopt_stream *stream = &a->streams[i];
        struct hf_scope_mark mark = hf_scope_mark(a->s);

        if (stream->taken && stream->version >= stream->taken) {
            a->verified++;
        } else if (stream->taken) {
            struct hf_str text = hf__cli_events_stream_text(a->s, stream->key);

            hf__adopt_events_report(
                a, "stream %.*s has %llu events in its table, and version %llu in the event store",
                HF_FMT(text), (unsigned long long)stream->taken,
                (unsigned long long)stream->version);
        }
        hf_scope_rewind(a->s, mark);
    }
    return HF_OK;
}
