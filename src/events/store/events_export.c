/*
 * events/store/events_export.c: all events out as JSON lines, in the global order.
 *
 * A line is an event (events_json.c), or says where a stream begins whose first events are not
 * there any more:
 *
 *     {"domain":"order","stream":"7","before":5}
 *
 * stands in front of version 5, when versions before that are not read any more. Without it an
 * import could not tell a stream that was truncated from a file that has lost its beginning.
 *
 *  (1) One page of events is in memory at a time, however many there are.
 *  (2) What is not read any more (truncated, too old, of a deleted stream) does not come back by
 *      way of a file: the heads of the streams of a page are read with it. Archived streams are
 *      among what is exported.
 *  (3) It ends when it has met all that is there; events that are appended meanwhile may be in or
 *      not, but never without those before them.
 */
#include "events/store/events.h"

#include <holdfast/batch.h>

enum { BATCH = 200 };

struct export
{
    struct hf_scope *s;
    struct hf_events *store;
    hf_events_write_fn *write;
    void *user;
    uint64_t count;
};

static bool is_stream(const struct hf_stored_event *a, const struct hf_stored_event *b)
{
    return hf_str_equal(a->stream.domain, b->stream.domain) &&
           hf_str_equal(a->stream.id, b->stream.id);
}

/* (2): the first version that is read of each event's stream; UINT64_MAX: none. */
static enum hf_status firsts_of(struct hf_scope *s, struct hf_events *store,
                                const struct hf_stored_event *events, size_t len, uint64_t *firsts)
{
    struct hf_get *gets = hf_scope_alloc(s, len * sizeof(*gets));
    struct hf_get_many_result got;

    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        struct hf_str pk;

        TRY(hf__events_stream_pk(s, 's', events[i].stream, &pk));
        gets[i] = (struct hf_get){.table = store->table,
                                  .key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", HF_STR("h")))};
    }
    TRY(hf_scope_built(s));
    TRY(hf_get_many(s, store->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < len; i++) {
        struct events_head head;
        struct hf_str pk;

        if (i && is_stream(&events[i], &events[i - 1])) {
            firsts[i] = firsts[i - 1];
            continue;
        }
        TRY(hf__events_head_view(s, got.items[i], &head));
        firsts[i] = UINT64_MAX;
        if (head.state == EVENTS_DELETED)
            continue;
        TRY(hf__events_stream_pk(s, 's', events[i].stream, &pk));
        TRY(hf__events_first_readable(s, store, pk, &head, &firsts[i]));
    }
    return HF_OK;
}

static enum hf_status write_begin(struct export *e, const struct hf_stored_event *event)
{
    struct hf_str line = hf_scope_format(
        e->s, "{\"domain\":%.*s,\"stream\":%.*s,\"before\":%llu}\n",
        HF_FMT(hf__pattern_json_raw(e->s, (struct hf_attr)HF_S("", event->stream.domain))),
        HF_FMT(hf__pattern_json_raw(e->s, (struct hf_attr)HF_S("", event->stream.id))),
        (unsigned long long)event->version);

    TRY(hf_scope_built(e->s));
    return e->write(e->s, line.ptr, line.len, e->user);
}

static enum hf_status write_event(struct export *e, const struct hf_stored_event *event,
                                  uint64_t first)
{
    struct hf_scope_mark mark = hf_scope_mark(e->s);
    struct hf_str line;
    char *end;

    if (event->version < first)
        return HF_OK;
    if (event->version == first && first > 1)
        TRY(write_begin(e, event));
    TRY(hf_event_to_json(e->s, event, &line));
    end = hf_scope_alloc(e->s, line.len + 1);
    if (!end)
        return hf_scope_built(e->s);
    memcpy(end, line.ptr, line.len);
    end[line.len] = '\n';
    TRY(e->write(e->s, end, line.len + 1, e->user));
    e->count++;
    hf_scope_rewind(e->s, mark);
    return HF_OK;
}

static enum hf_status write_page(struct export *e, const struct hf_stored_event *events, size_t len)
{
    uint64_t *firsts = hf_scope_alloc(e->s, len * sizeof(*firsts));

    TRY(hf_scope_built(e->s));
    TRY(firsts_of(e->s, e->store, events, len, firsts));
    for (size_t i = 0; i < len; i++)
        TRY(write_event(e, &events[i], firsts[i]));
    return HF_OK;
}

/* (1) (3) */
static enum hf_status write_all(struct export *e, struct hf_events_reader *reader,
                                const struct hf_events_transfer *o)
{
    const struct hf_stored_event *events;
    size_t len;

    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(e->s);

        TRY(hf_events_reader_next(e->s, reader, &events, &len));
        if (!len)
            return HF_OK;
        TRY(write_page(e, events, len));
        if (o->on_progress)
            TRY(o->on_progress(e->count, 0, o->user));
        hf_scope_rewind(e->s, mark);
    }
}

enum hf_status hf_events_export(struct hf_scope *s, struct hf_events *store,
                                const struct hf_events_transfer *options, hf_events_write_fn *write,
                                void *user, uint64_t *count)
{
    struct export e = {.s = s, .store = store, .write = write, .user = user};
    struct hf_events_transfer o;
    struct hf_events_reader *reader;
    enum hf_status status;

    OPTIONS_COPY(&o, options);
    if (count)
        *count = 0;
    TRY(hf_events_reader_open(s, store,
                              HF_OPTIONS(hf_events_all_options, .after = o.after, .until = o.until,
                                         .domain = o.domain, .limit = o.batch ? o.batch : BATCH,
                                         .archived = true),
                              &reader));
    status = write_all(&e, reader, &o);
    hf_events_reader_close(reader);
    if (count)
        *count = e.count;
    return status;
}
