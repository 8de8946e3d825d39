/*
 * cli/events/adopt_index.c: the events of their table in the order in which they are imported. Their table has
 * no order that can be relied on (an index by month, and milliseconds), so the keys of all events are
 * read and sorted, about 150 bytes each.
 *
 *  (1) The events of a stream are in the order of their sequences; those without one, which are older,
 *      come before them, by time and id.
 *  (2) The order of all is by time and id, except where that would break (1): the places of a stream's
 *      events in it are given to them in the order of the stream.
 *  (3) A version is the sequence. Where sequences have a gap, what comes behind it is not imported,
 *      unless new versions are wanted.
 */
#include "base/base.h"
#include "cli/events/adopt.h"
#include "cli/frame/foreign_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES_FIRST = 1024, STREAMS_FIRST = 64, REPORT_MAX = 2048 };

static enum hf_status no_memory(struct adopt *a)
{
    return hf_scope_fail(a->s, HF_NOMEM, "out of memory");
}

void hf__adopt_events_report(struct adopt *a, const char *format, ...)
{
    char text[REPORT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    a->incomplete = true;
    hf__cli_events_progress_end(&a->progress);
    hf__cli_notice(a->c->cli, a->c->name, "%s", text);
}

/* Room for one more; in the memory of the run. */
static void *array_grow(struct adopt *a, void *array, size_t len, size_t *cap, size_t first,
                        size_t size)
{
    size_t larger = *cap ? *cap * 2 : first;

    assert(len <= *cap);
    if (len < *cap)
        return array;
    array = hf__scope_grow(a->memory, array, *cap * size, larger * size);
    if (array)
        *cap = larger;
    return array;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* DOMAIN NUL IDENTIFIER, in the scope of the command; absent: no memory. */
static struct hf_str key_join(struct adopt *a, struct hf_event_stream_key key)
{
    char *joined = hf_scope_alloc(a->s, key.domain.len + key.id.len + 1);

    if (!joined)
        return (struct hf_str){0};
    if (key.domain.len)
        memcpy(joined, key.domain.ptr, key.domain.len);
    joined[key.domain.len] = '\0';
    if (key.id.len)
        memcpy(joined + key.domain.len + 1, key.id.ptr, key.id.len);
    return hf_str_of(joined, key.domain.len + key.id.len + 1);
}

struct adopt_stream *hf__adopt_events_find(struct adopt *a, struct hf_event_stream_key key)
{
    struct hf_str joined = key_join(a, key);
    const uint64_t *found = joined.ptr ? hf__cli_text_map_find(&a->stream_numbers, joined) : NULL;

    return found ? &a->streams[*found - 1] : NULL;
}

static enum hf_status stream_of(struct adopt *a, struct hf_event_stream_key key, uint32_t *number)
{
    struct hf_str joined = key_join(a, key);
    struct adopt_stream *streams;
    uint64_t *found = joined.ptr ? hf__cli_text_map_add(&a->stream_numbers, joined) : NULL;

    if (!found)
        return no_memory(a);
    if (!*found) {
        struct adopt_stream stream = {
            .key = {hf_scope_copy(a->memory, key.domain), hf_scope_copy(a->memory, key.id)}};

        streams = array_grow(a, a->streams, a->streams_len, &a->streams_cap, STREAMS_FIRST,
                             sizeof(*streams));
        if (!streams || !stream.key.domain.ptr || !stream.key.id.ptr ||
            a->streams_len == UINT32_MAX)
            return no_memory(a);
        a->streams = streams;
        a->streams[a->streams_len++] = stream;
        *found = a->streams_len;
    }
    *number = (uint32_t)(*found - 1);
    return HF_OK;
}

static enum hf_status entry_add(struct adopt *a, struct hf_item item, const struct events_row *row)
{
    struct adopt_entry entry = {.time_us = row->event.time_us, .sequence = row->sequence};
    struct adopt_entry *entries =
        array_grow(a, a->entries, a->entries_len, &a->entries_cap, ENTRIES_FIRST, sizeof(*entries));

    if (!entries)
        return no_memory(a);
    a->entries = entries;
    TRY(stream_of(a, row->event.stream, &entry.stream));
    entry.id = hf_scope_copy(a->memory, hf_value_str(hf_item_get(item, HF_STR("id"))));
    if (a->sorts)
        entry.created =
            hf_scope_copy(a->memory, hf_value_str(hf_item_get(item, HF_STR("created"))));
    if (!entry.id.ptr || (a->sorts && !entry.created.ptr))
        return no_memory(a);
    assert(a->entries_len < a->entries_cap && entry.stream < a->streams_len);
    a->entries[a->entries_len++] = entry;
    a->streams[entry.stream].events++;
    a->streams[entry.stream].numbered += entry.sequence > 0;
    return HF_OK;
}

static enum hf_status row_take(struct adopt *a, struct hf_item item)
{
    struct hf_str error = {0}, id = hf_value_str(hf_item_get(item, HF_STR("id")));
    struct events_row row;
    uint64_t *head;

    if (!hf__cli_events_row_look(a->s, item, &row, &error)) {
        a->left++;
        hf__adopt_events_report(a, "left \"%.*s\": %.*s", HF_FMT(id), HF_FMT(error));
        return HF_OK;
    }
    if (!row.head)
        return entry_add(a, item, &row);
    head = hf__cli_text_map_add(&a->heads, row.head_of);
    if (!head)
        return no_memory(a);
    *head = row.sequence;
    return HF_OK;
}

static enum hf_status row_scanned(struct hf_item item, void *user)
{
    struct adopt *a = user;

    TRY(row_take(a, item));
    (void)hf__cli_events_progress(a->entries_len, 0, &a->progress);
    return HF_OK;
}

static enum hf_status rows_read(struct adopt *a)
{
    struct hf_scan scan = {
        .table = a->table,
        .consistent = HF_YES,
        .projection = HF_STR("#a, #b, #c, #d, #e, #f"),
        .names = HF_ITEM(a->s, HF_S("#a", HF_STR("id")), HF_S("#b", HF_STR("created")),
                         HF_S("#c", HF_STR("domain")), HF_S("#d", HF_STR("identifier")),
                         HF_S("#e", HF_STR("sequence")), HF_S("#f", HF_STR("version")))};

    return hf__foreign_table_scan(a->c, a->from, &scan, row_scanned, a);
}

/* ---- order ---------------------------------------------------------------------------------- */

static int compare_times(const void *one, const void *other)
{
    const struct adopt_entry *a = one, *b = other;
    int order = (a->time_us > b->time_us) - (a->time_us < b->time_us);

    return order ? order : bytes_compare(a->id.ptr, a->id.len, b->id.ptr, b->id.len);
}

/* (1): entries that are compared are in the order of their times in memory. */
static int compare_in_stream(const void *one, const void *other)
{
    const struct adopt_entry *a = *(struct adopt_entry *const *)one;
    const struct adopt_entry *b = *(struct adopt_entry *const *)other;

    if (a->stream != b->stream)
        return a->stream > b->stream ? 1 : -1;
    if (a->sequence != b->sequence)
        return a->sequence > b->sequence ? 1 : -1;
    return (a > b) - (a < b);
}

static enum hf_status entries_sort(struct adopt *a)
{
    size_t size = (a->entries_len + 1) * sizeof(struct adopt_entry *);

    a->by_stream = hf_scope_alloc(a->memory, size);
    a->order = hf_scope_alloc(a->memory, size);
    if (!a->by_stream || !a->order)
        return no_memory(a);
    if (!a->entries_len)
        return HF_OK;
    qsort(a->entries, a->entries_len, sizeof(*a->entries), compare_times);
    for (size_t i = 0; i < a->entries_len; i++)
        a->by_stream[i] = &a->entries[i];
    qsort(a->by_stream, a->entries_len, sizeof(struct adopt_entry *), compare_in_stream);
    for (size_t i = a->entries_len; i-- > 0;)
        a->streams[a->by_stream[i]->stream].begin = i;
    for (size_t i = 0; i < a->streams_len; i++)
        a->streams[i].next = a->streams[i].begin;
    for (size_t i = 0; i < a->entries_len; i++)
        a->by_stream[i]->number = i - a->streams[a->by_stream[i]->stream].begin;
    for (size_t i = 0; i < a->entries_len; i++) /* (2) */
        a->order[i] = a->by_stream[a->streams[a->entries[i].stream].next++];
    return HF_OK;
}

/* ---- versions ------------------------------------------------------------------------------- */

static struct hf_str stream_text(const struct adopt *a, const struct adopt_stream *stream)
{
    struct hf_str text = hf__cli_events_stream_text(a->s, stream->key);

    return text.ptr ? text : HF_STR("?");
}

/* (3) */
static void stream_number(struct adopt *a, struct adopt_stream *stream)
{
    struct adopt_entry *const *entries = a->by_stream + stream->begin;
    unsigned long long version = 0;

    stream->taken = stream->events;
    if (a->renumber || !stream->numbered)
        return;
    if (stream->numbered < stream->events) {
        stream->taken = 0;
        hf__adopt_events_report(
            a,
            "left stream %.*s: %llu of its %llu events have no sequence, so the others cannot keep "
            "theirs; with --renumber all get new versions",
            HF_FMT(stream_text(a, stream)), (unsigned long long)(stream->events - stream->numbered),
            (unsigned long long)stream->events);
        return;
    }
    while (version < stream->events && entries[version]->sequence == version + 1) {
        entries[version]->version = version + 1;
        version++;
    }
    stream->taken = version;
    if (version < stream->events)
        hf__adopt_events_report(
            a,
            "left %llu events of stream %.*s: sequence %llu is %s; with --renumber they get new "
            "versions",
            (unsigned long long)stream->events - version, HF_FMT(stream_text(a, stream)),
            entries[version]->sequence > version ? version + 1 : version,
            entries[version]->sequence > version ? "missing" : "there twice");
    else if (stream->head > version)
        hf__adopt_events_report(
            a,
            "stream %.*s ends with sequence %llu in its table, and its head says %llu: run it "
            "again if programs still append; otherwise its last events are missing there",
            HF_FMT(stream_text(a, stream)), version, (unsigned long long)stream->head);
}

static enum hf_status streams_number(struct adopt *a)
{
    for (size_t i = 0; i < a->streams_len; i++) {
        struct adopt_stream *stream = &a->streams[i];
        struct hf_scope_mark mark = hf_scope_mark(a->s);
        struct hf_str text =
            hf_scope_format(a->s, "%.*s::%.*s", HF_FMT(stream->key.domain), HF_FMT(stream->key.id));
        const uint64_t *head = text.ptr ? hf__cli_text_map_find(&a->heads, text) : NULL;

        if (!text.ptr)
            return no_memory(a);
        stream->head = head ? *head : 0;
        stream_number(a, stream);
        a->left += stream->events - stream->taken;
        hf_scope_rewind(a->s, mark);
    }
    return HF_OK;
}

enum hf_status hf__adopt_events_index(struct adopt *a)
{
    a->stream_numbers = (struct text_map){.s = a->memory};
    a->heads = (struct text_map){.s = a->memory};
    TRY(rows_read(a));
    TRY(entries_sort(a));
    return streams_number(a);
}
