/*
 * events/store/events_import.c: events in, from the JSON lines of an export.
 *
 * Lines are collected as long as one append can take them, and appended together. Positions are
 * given out in the order in which an append names its streams, so an append takes lines as long as
 * each stream has one run of them: "a a b b" but not "a b a". That keeps the global order. It is
 * also kept to what one transaction takes, as larger ones are stored less well.
 *
 *  (1) Events keep their ids, so nothing is appended twice, whoever appends it. What is there
 *      already is compared with the line, and passed over when it is the same: so an import that
 *      was interrupted is repeated from the first line on.
 *  (2) A version that is given has to be the next one of its stream: it is the expectation of the
 *      append. Nothing is renumbered unless that is asked for.
 *  (3) When an append of several lines is refused they are looked at one by one, so that those
 *      before the bad one are in, and the message names that one alone.
 *  (4) The memory of an import is that of one append.
 *
 * With `renumber` there is no expectation that would stand in the way of ids that are the positions
 * of events of this very table (those are not listed anywhere else): then each id is looked for
 * before it is appended.
 */
#include "events/store/events.h"

enum {
    ACTIONS_EACH = 4,   /* an event, its id, its cause, its correlation */
    ACTIONS_STREAM = 2, /* its head, its commit */
    BATCH_BYTES = 300 * 1000,
    BATCH_MAX = (HF_TX_ACTIONS_MAX - ACTIONS_STREAM - 1) / ACTIONS_EACH, /* and the marker */
    TEXT_MAX = 500,
    FIRST_BYTES = 64 * 1024,
    LINE_MAX_BYTES = 1536 * 1024 * 1024
};

_Static_assert(BATCH_MAX *ACTIONS_EACH + ACTIONS_STREAM + 1 <= HF_TX_ACTIONS_MAX,
               "a batch of one stream is one transaction");

/* ---- lines ---------------------------------------------------------------------------------- */

struct lines {
    const struct hf_env *env;
    hf_events_read_fn *read;
    void *user;
    char *ptr;
    size_t cap, from, to; /* what was read and not taken yet */
    uint64_t number;      /* of the line that was taken last, from 1 */
    bool ended;
};

static enum hf_status lines_make_room(struct hf_scope *s, struct lines *lines)
{
    size_t cap = lines->cap ? lines->cap * 2 : FIRST_BYTES;
    char *ptr;

    if (lines->from) {
        memmove(lines->ptr, lines->ptr + lines->from, lines->to - lines->from);
        lines->to -= lines->from;
        lines->from = 0;
    }
    if (lines->to < lines->cap)
        return HF_OK;
    if (cap > LINE_MAX_BYTES)
        return hf_scope_fail(s, HF_SERIALIZATION, "line %llu is longer than %d bytes",
                             (unsigned long long)lines->number + 1, LINE_MAX_BYTES);
    ptr = lines->env->alloc(lines->ptr, lines->cap, cap, lines->env->user);
    if (!ptr)
        return hf_scope_fail(s, HF_NOMEM, "no memory for line %llu",
                             (unsigned long long)lines->number + 1);
    lines->ptr = ptr;
    lines->cap = cap;
    return HF_OK;
}

static enum hf_status lines_read_more(struct hf_scope *s, struct lines *lines)
{
    size_t len = 0;

    assert(!lines->ended && lines->from <= lines->to && lines->to <= lines->cap);
    TRY(lines_make_room(s, lines));
    assert(lines->to < lines->cap);
    TRY(lines->read(s, lines->ptr + lines->to, lines->cap - lines->to, &len, lines->user));
    if (len > lines->cap - lines->to)
        return hf_scope_fail(s, HF_INVALID,
                             "the read function returned more bytes than it was asked for");
    lines->to += len;
    lines->ended = !len;
    return HF_OK;
}

/* The next line, without its end; it lives until the next call. Absent: there are no more. */
static enum hf_status lines_next(struct hf_scope *s, struct lines *lines, struct hf_str *line)
{
    size_t seen = 0, len;

    *line = hf_str_of(NULL, 0);
    for (;;) {
        const char *begin = lines->ptr ? lines->ptr + lines->from : "";
        const char *end = lines->to - lines->from > seen
                              ? memchr(begin + seen, '\n', lines->to - lines->from - seen)
                              : NULL;

        if (end || lines->ended) {
            len = end ? (size_t)(end - begin) : lines->to - lines->from;
            if (!end && !len)
                return HF_OK;
            lines->from += len + (end != NULL);
            lines->number++;
            if (len && begin[len - 1] == '\r')
                len--;
            *line = hf_str_of(begin, len);
            return HF_OK;
        }
        seen = lines->to - lines->from;
        TRY(lines_read_more(s, lines));
    }
}

static bool is_blank(struct hf_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] != ' ' && line.ptr[i] != '\t')
            return false;
    return true;
}

/* ---- a batch -------------------------------------------------------------------------------- */

struct import {
    struct hf_scope *s;
    struct hf_events *store;
    struct hf_events_transfer o;
    struct lines lines;
    struct hf_scope_mark mark; /* before the first line of the batch */
    struct hf_stored_event *given;
    struct hf_new_event *events;
    uint64_t *numbers; /* of their lines */
    size_t len, cap, bytes;
    struct hf_append appends[HF_EVENTS_STREAMS_MAX];
    size_t appends_len;
    uint64_t added, done;
};

/* What is wrong with a line, as the scope's error has it. */
static enum hf_status fail_at_line(struct hf_scope *s, uint64_t number, enum hf_status status)
{
    switch (status) {
    case HF_CONDITION:
    case HF_DUPLICATE:
    case HF_IN_USE:
    case HF_INVALID:
    case HF_LIMIT:
    case HF_DELETED:
    case HF_SERIALIZATION:
        return hf_scope_fail_because(s, status, hf_scope_error(s), "line %llu: %s",
                                     (unsigned long long)number, hf_scope_error_text(s));
    default:
        return status; /* not the line's fault */
    }
}

static bool is_refusal(enum hf_status status)
{
    return status == HF_CONDITION || status == HF_DUPLICATE || status == HF_IN_USE ||
           status == HF_INVALID || status == HF_LIMIT || status == HF_DELETED;
}

static void batch_begin(struct import *im)
{
    hf_scope_rewind(im->s, im->mark);
    im->len = im->bytes = im->appends_len = 0;
}

static struct hf_append append_of(const struct import *im, size_t number)
{
    const struct hf_stored_event *event = &im->given[number];
    bool any = im->o.renumber || !event->version;

    return (struct hf_append){.stream = event->stream,
                              .expect = any ? HF_EXPECT_ANY : HF_EXPECT_VERSION,
                              .version = any ? 0 : event->version - 1,
                              .events = &im->events[number],
                              .events_len = 1};
}

/* Is it there, and the same (1)? */
static enum hf_status is_there(struct import *im, size_t number, bool *there)
{
    const struct hf_stored_event *event = &im->given[number];
    uint8_t wanted[EVENTS_HASH], found[EVENTS_HASH];
    struct hf_stored_event other;
    enum hf_status status = hf__events_find(im->s, im->store, event->id, &other);

    *there = false;
    if (status == HF_NOT_FOUND)
        return HF_OK;
    if (status != HF_OK)
        return status;
    hf__events_content(event, wanted);
    hf__events_content(&other, found);
    *there = hf_str_equal(event->stream.domain, other.stream.domain) &&
             hf_str_equal(event->stream.id, other.stream.id) &&
             (im->o.renumber || !event->version || event->version == other.version) &&
             memcmp(wanted, found, sizeof(wanted)) == 0;
    if (*there)
        return HF_OK;
    return hf_scope_fail(
        im->s, HF_DUPLICATE,
        "id \"%.*s\" is already used by another event: version %llu of stream \"%.*s\"",
        HF_FMT(event->id), (unsigned long long)other.version,
        HF_FMT(hf__events_stream_text(im->s, other.stream)));
}

static enum hf_status append_one(struct import *im, size_t number)
{
    struct hf_append append = append_of(im, number);
    struct hf_appended result;
    bool there;

    TRY(is_there(im, number, &there));
    if (there)
        return HF_OK;
    TRY(hf_events_append(im->s, im->store, &append, 1, NULL, &result));
    im->added += !result.repeated;
    return HF_OK;
}

/* (3) */
static enum hf_status append_each(struct import *im)
{
    for (size_t i = 0; i < im->len; i++) {
        enum hf_status status = append_one(im, i);

        if (status != HF_OK)
            return fail_at_line(im->s, im->numbers[i], status);
        im->done++;
    }
    return HF_OK;
}

/* It was there, and its events at other versions than these (2). */
static bool is_elsewhere(const struct hf_append *append, const struct hf_appended *result)
{
    return result->repeated && append->expect == HF_EXPECT_VERSION &&
           result->first != append->version + 1;
}

static enum hf_status append_all(struct import *im)
{
    struct hf_appended results[HF_EVENTS_STREAMS_MAX];
    enum hf_status status;

    if (im->o.renumber)
        return append_each(im);
    status = hf_events_append(im->s, im->store, im->appends, im->appends_len, NULL, results);
    if (is_refusal(status))
        return append_each(im);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < im->appends_len; i++)
        if (is_elsewhere(&im->appends[i], &results[i]))
            return append_each(im);
    for (size_t i = 0; i < im->appends_len; i++)
        im->added += results[i].repeated ? 0 : im->appends[i].events_len;
    im->done += im->len;
    return HF_OK;
}

static enum hf_status batch_end(struct import *im)
{
    assert(im->len <= im->cap && im->appends_len <= im->len);
    if (!im->len)
        return HF_OK;
    TRY(append_all(im));
    batch_begin(im);
    return im->o.on_progress ? im->o.on_progress(im->done, 0, im->o.user) : HF_OK;
}

/* What it adds to the items of an append, but for the key of its stream. */
static size_t event_size(const struct hf_stored_event *event)
{
    return event->payload.len + event->id.len + event->type.len + event->content_type.len +
           event->causation.len + event->correlation.len + event->compensates.len +
           (event->meta.ptr ? hf_item_size(event->meta) : 0);
}

/* Does it go into the append that is being collected, and as one more of its last stream? The
 * append is to be one transaction, with one commit for each stream: a large one is placed ahead of
 * the time, and what is appended next would come before it. */
static bool batch_fits(const struct import *im, const struct hf_stored_event *event, bool *same)
{
    const struct hf_append *last = im->appends_len ? &im->appends[im->appends_len - 1] : NULL;

    *same = false;
    if (!last)
        return true;
    *same = hf_str_equal(last->stream.domain, event->stream.domain) &&
            hf_str_equal(last->stream.id, event->stream.id);
    if (im->len == im->cap || im->bytes + event_size(event) > BATCH_BYTES ||
        (im->len + 1) * ACTIONS_EACH + (im->appends_len + !*same) * ACTIONS_STREAM + 1 >
            HF_TX_ACTIONS_MAX)
        return false;
    if (*same)
        return last->expect == HF_EXPECT_ANY
                   ? im->o.renumber || !event->version
                   : event->version == last->version + last->events_len + 1;
    for (size_t i = 0; i < im->appends_len; i++)
        if (hf_str_equal(im->appends[i].stream.domain, event->stream.domain) &&
            hf_str_equal(im->appends[i].stream.id, event->stream.id))
            return false;
    return im->appends_len < HF_EVENTS_STREAMS_MAX;
}

static void batch_add(struct import *im, const struct hf_stored_event *event, bool same)
{
    bool own = hf_str_equal(event->correlation, event->id);

    assert(im->len < im->cap && im->appends_len < HF_EVENTS_STREAMS_MAX + (size_t)same);
    assert(!same || im->appends_len > 0);
    im->given[im->len] = *event;
    im->given[im->len].blob = hf_str_of(NULL, 0); /* the payload itself is here */
    im->numbers[im->len] = im->lines.number;
    im->events[im->len] =
        (struct hf_new_event){.id = event->id,
                              .type = event->type,
                              .payload = event->payload,
                              .content_type = event->content_type,
                              .schema = event->schema,
                              .time_us = event->time_us,
                              .meta = event->meta,
                              .causation = event->causation,
                              .correlation = own ? hf_str_of(NULL, 0) : event->correlation,
                              .compensates = event->compensates};
    if (same)
        im->appends[im->appends_len - 1].events_len++;
    else
        im->appends[im->appends_len++] = append_of(im, im->len);
    im->bytes += event_size(event);
    im->len++;
}

/* ---- a line --------------------------------------------------------------------------------- */

/* Filled in as an append would: then the content is that of what is there. */
static enum hf_status parse_event(struct hf_scope *s, struct hf_str line,
                                  struct hf_stored_event *event)
{
    struct hf_str copy = hf_scope_copy(s, line);

    TRY(hf_scope_built(s));
    TRY(hf_event_from_json(s, copy, event));
    if (!event->id.len)
        return hf_scope_fail(s, HF_SERIALIZATION, "the event has no \"id\"");
    if (event->blob.len && !event->payload.len)
        return hf_scope_fail(s, HF_SERIALIZATION,
                             "the event's payload is in a blob store and not in this line");
    if (event->version > EVENTS_VERSION_MAX)
        return hf_scope_fail(s, HF_SERIALIZATION, "the event's \"version\" is too large");
    if (!event->content_type.len)
        event->content_type = HF_STR("application/json");
    if (!event->correlation.len)
        event->correlation = event->id;
    return HF_OK;
}

/* Is it a line that says where a stream begins? Nothing is wrong if it is none. */
static enum hf_status parse_begin(struct hf_scope *s, struct hf_str line, uint64_t *before,
                                  struct hf_event_stream_key *stream)
{
    struct json_reader r = {.s = s, .text = line, .status = HF_SERIALIZATION, .closed = true};
    struct json_member members[] = {{.name = "domain"}, {.name = "stream"}, {.name = "before"}};
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_value domain, id;
    struct hf_str digits;

    *before = 0;
    if (hf__pattern_json_object(&r, members, ARRAY_LEN(members)) != HF_OK || !members[2].raw.len ||
        !members[0].raw.len || !members[1].raw.len) {
        hf_scope_rewind(s, mark);
        return hf_scope_ok(s);
    }
    TRY(hf__pattern_json_value(s, HF_TYPE_S, members[0].raw, &domain));
    TRY(hf__pattern_json_value(s, HF_TYPE_S, members[1].raw, &id));
    *stream = (struct hf_event_stream_key){hf_value_str(domain), hf_value_str(id)};
    digits = members[2].raw;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9' || *before > INT64_MAX / 100)
            return hf_scope_fail(s, HF_SERIALIZATION, "\"before\" is not a version");
        *before = *before * 10 + (uint64_t)(digits.ptr[i] - '0');
    }
    if (!*before || *before > EVENTS_VERSION_MAX)
        return hf_scope_fail(s, HF_SERIALIZATION, "\"before\" is not a version");
    return HF_OK;
}

/* A line that was read: where a stream begins, or an event. */
struct parsed {
    uint64_t before; /* 0: an event */
    struct hf_event_stream_key stream;
    struct hf_stored_event event;
};

static enum hf_status line_parse(struct hf_scope *s, struct hf_str line, struct parsed *parsed)
{
    TRY(parse_begin(s, line, &parsed->before, &parsed->stream));
    return parsed->before ? HF_OK : parse_event(s, line, &parsed->event);
}

static enum hf_status line_take(struct import *im, struct hf_str line, struct parsed *parsed)
{
    uint64_t number = im->lines.number;
    enum hf_status status;
    bool same = false;

    if (parsed->before ? im->len != 0 : !batch_fits(im, &parsed->event, &same)) {
        TRY(batch_end(im));
        TRY(line_parse(im->s, line, parsed)); /* it was in the memory of the batch */
        if (!parsed->before)
            (void)batch_fits(im, &parsed->event, &same);
    }
    if (!parsed->before) {
        batch_add(im, &parsed->event, same);
        return HF_OK;
    }
    if (im->o.renumber || parsed->before == 1)
        return HF_OK;
    status = hf__events_begin_at(im->s, im->store, parsed->stream, parsed->before);
    return status == HF_OK ? HF_OK : fail_at_line(im->s, number, status);
}

/* The lines before it are appended; an error of theirs comes first. That takes the memory of the
 * scope, so its error is kept in another one. */
static enum hf_status line_fail(struct import *im, uint64_t number)
{
    struct hf_scope *kept = hf_scope_new(hf_scope_env(im->s));
    enum hf_status status = hf_scope_error(im->s)->status;
    struct hf_str said = {0};

    if (!kept)
        return hf_scope_fail(im->s, HF_NOMEM, "no memory for the error of line %llu",
                             (unsigned long long)number);
    (void)hf_scope_fail_from(kept, status, im->s);
    status = batch_end(im);
    if (status == HF_OK) {
        said = hf__pattern_text(im->s, hf_str_from(hf_scope_error_text(kept)), TEXT_MAX);
        status = hf_scope_built(im->s);
    }
    if (status == HF_OK)
        status = hf_scope_fail_because(im->s, HF_SERIALIZATION, hf_scope_error(kept),
                                       "line %llu: %.*s", (unsigned long long)number, HF_FMT(said));
    hf_scope_free(kept);
    return status;
}

static enum hf_status lines_take(struct import *im)
{
    for (;;) {
        struct parsed parsed;
        enum hf_status status;
        struct hf_str line;

        TRY(lines_next(im->s, &im->lines, &line));
        if (!line.ptr && im->o.replace)
            return hf_scope_fail(im->s, HF_SERIALIZATION,
                                 "there is no event to import, so nothing was replaced");
        if (!line.ptr)
            return batch_end(im);
        if (is_blank(line))
            continue;
        status = line_parse(im->s, line, &parsed);
        if (status == HF_SERIALIZATION)
            return line_fail(im, im->lines.number);
        if (status != HF_OK)
            return status;
        if (im->o.replace)
            TRY(hf_events_reset(im->s, im->store));
        im->o.replace = false;
        TRY(line_take(im, line, &parsed));
    }
}

enum hf_status hf_events_import(struct hf_scope *s, struct hf_events *store,
                                const struct hf_events_transfer *options, hf_events_read_fn *read,
                                void *user, uint64_t *count)
{
    const struct hf_env *env = hf_scope_env(s);
    struct import im = {.s = s, .store = store, .lines = {.env = env, .read = read, .user = user}};
    enum hf_status status;

    OPTIONS_COPY(&im.o, options);
    if (count)
        *count = 0;
    im.cap = im.o.batch && im.o.batch < BATCH_MAX ? im.o.batch : BATCH_MAX;
    im.given = hf_scope_alloc(s, im.cap * sizeof(*im.given));
    im.events = hf_scope_alloc(s, im.cap * sizeof(*im.events));
    im.numbers = hf_scope_alloc(s, im.cap * sizeof(*im.numbers));
    TRY(hf_scope_built(s));
    im.mark = hf_scope_mark(s);
    status = lines_take(&im);
    hf__env_free(env, im.lines.ptr, im.lines.cap);
    if (count)
        *count = im.added;
    return status;
}
