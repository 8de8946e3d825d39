/*
 * events/store/events_item.c: how events are stored, and read back.
 *
 * The map of an event, the same bytes in its stream and in the global order. Names are one letter,
 * as they are stored, sent and counted with every event:
 *
 *     a  causation            b  digest of the payload, when that is in the blob store
 *     c  content type, when it is not application/json
 *     h  hash                 i  id, when a caller chose it; else it is the position
 *     m  meta, when there is some
 *     o  correlation, when it is not the event's own id
 *     p  payload, when it is not empty
 *     r  the event that it compensates
 *     s  schema, when it is not 1
 *     t  type                 u  time, microseconds since 1970
 *     z  size of the payload, when that is in the blob store
 *
 * An item in a stream, or in t.COMMIT, has that map as `e` and the position as `p`. What stands
 * for a large append in a stream, twice, has instead of those `l` (COMMIT), `f` (the first
 * version), `n` (how many) and `o` (NUMBER of the first). events.h has the items of the global
 * order.
 *
 *  (1) What is left out comes back as it would have been filled in.
 *  (2) Nothing that is read is believed: what cannot be is HF_CORRUPT, and says where.
 *  (3) Names are in the order in which items keep them, so building one sorts nothing.
 */
#include "events/store/events.h"

#include "base/base32.h"

enum { MAP_ATTRS = 16 };

#define DEFAULT_CONTENT "application/json"

void hf__events_version_text(uint64_t version, char text[EVENTS_VERSION_LEN + 1])
{
    if (version > EVENTS_VERSION_MAX)
        version = EVENTS_VERSION_MAX;
    for (int i = EVENTS_VERSION_LEN - 1; i >= 0; i--, version /= 10)
        text[i] = (char)('0' + version % 10);
    text[EVENTS_VERSION_LEN] = '\0';
}

/* ---- one event ------------------------------------------------------------------------------ */

/* (3) */
struct hf_item hf__events_map(struct hf_scope *s, const struct hf_stored_event *event)
{
    struct hf_attr attrs[MAP_ATTRS];
    size_t len = 0;

    assert(event->type.len && event->position.len == HF_POSITION_LEN && event->id.len);
    assert(!event->blob.len || event->blob.len == HF_BLOB_DIGEST_LEN);
    assert(!event->hash.len || event->hash.len == EVENTS_HASH);
    if (event->causation.len)
        attrs[len++] = (struct hf_attr)HF_S("a", event->causation);
    if (event->blob.len)
        attrs[len++] = (struct hf_attr)HF_S("b", event->blob);
    if (!hf_str_equal(event->content_type, HF_STR(DEFAULT_CONTENT)))
        attrs[len++] = (struct hf_attr)HF_S("c", event->content_type);
    if (event->hash.len)
        attrs[len++] = (struct hf_attr)HF_B("h", event->hash);
    if (!hf_str_equal(event->id, event->position))
        attrs[len++] = (struct hf_attr)HF_S("i", event->id);
    if (event->meta.ptr && hf_item_count(event->meta))
        attrs[len++] = (struct hf_attr)HF_M("m", event->meta);
    if (!hf_str_equal(event->correlation, event->id))
        attrs[len++] = (struct hf_attr)HF_S("o", event->correlation);
    if (event->payload.len && !event->blob.len)
        attrs[len++] = (struct hf_attr)HF_B("p", event->payload);
    if (event->compensates.len)
        attrs[len++] = (struct hf_attr)HF_S("r", event->compensates);
    if (event->schema != 1)
        attrs[len++] = (struct hf_attr)HF_N("s", event->schema);
    attrs[len++] = (struct hf_attr)HF_S("t", event->type);
    attrs[len++] = (struct hf_attr)HF_N("u", event->time_us);
    if (event->blob.len)
        attrs[len++] = (struct hf_attr)HF_N("z", event->payload.len);
    assert(len <= MAP_ATTRS);
    return hf_item_make(s, attrs, len);
}

struct hf_item hf__events_item(struct hf_scope *s, struct hf_str pk, struct hf_str sk,
                               struct hf_str position, struct hf_item map)
{
    return HF_ITEM(s, HF_M("e", map), HF_S("p", position), HF_S("pk", pk), HF_S("sk", sk));
}

static enum hf_status fail_damaged(struct hf_scope *s, const struct hf_stored_event *event)
{
    return hf_scope_fail(s, HF_CORRUPT,
                         "the event at %.*s, version %llu of stream \"%.*s\", is damaged",
                         HF_FMT(event->position), (unsigned long long)event->version,
                         HF_FMT(hf__events_stream_text(s, event->stream)));
}

/* One member of the map; false: it cannot be. */
static bool take_member(char name, struct hf_value value, struct hf_stored_event *event)
{
    int64_t number;

    switch (name) {
    case 'a':
        event->causation = hf_value_str(value);
        return event->causation.len > 0;
    case 'b':
        event->blob = hf_value_str(value);
        return event->blob.len == HF_BLOB_DIGEST_LEN;
    case 'c':
        event->content_type = hf_value_str(value);
        return event->content_type.ptr != NULL;
    case 'h':
        event->hash = hf_value_bytes(value);
        return event->hash.len == EVENTS_HASH;
    case 'i':
        event->id = hf_value_str(value);
        return event->id.len > 0;
    case 'm':
        event->meta = hf_value_item(value);
        return event->meta.ptr != NULL;
    case 'o':
        event->correlation = hf_value_str(value);
        return event->correlation.len > 0;
    case 'p':
        event->payload = hf_value_bytes(value);
        return event->payload.ptr != NULL;
    case 'r':
        event->compensates = hf_value_str(value);
        return event->compensates.len > 0;
    case 's':
        if (!hf_value_i64(value, &number) || number < 0 || number > UINT32_MAX)
            return false;
        event->schema = (uint32_t)number;
        return true;
    case 't':
        event->type = hf_value_str(value);
        return event->type.len > 0;
    case 'u':
        return hf_value_i64(value, &event->time_us);
    default:
        return true; /* z, and what a later version may add */
    }
}

enum hf_status hf__events_map_view(struct hf_scope *s, struct hf_value map,
                                   struct hf_stored_event *event)
{
    struct hf_item item = hf_value_item(map);
    struct hf_item_walk walk = {0};

    *event = (struct hf_stored_event){.id = event->position,
                                      .position = event->position,
                                      .stream = event->stream,
                                      .version = event->version,
                                      .payload = {(const uint8_t *)"", 0},
                                      .content_type = HF_STR(DEFAULT_CONTENT),
                                      .schema = 1};
    while (hf_item_next(item, &walk))
        if (walk.name.len == 1 && !take_member(walk.name.ptr[0], walk.value, event))
            return fail_damaged(s, event);
    if (!event->type.len)
        return fail_damaged(s, event); /* (2): no map, or none of an event */
    if (!event->correlation.len)
        event->correlation = event->id;
    if (event->blob.len)
        event->payload = (struct hf_bytes){NULL, 0};
    return HF_OK;
}

enum hf_status hf__events_item_view(struct hf_scope *s, struct hf_item item,
                                    struct hf_event_stream_key stream, uint64_t version,
                                    struct hf_stored_event *event)
{
    *event = (struct hf_stored_event){.position = hf_value_str(hf_item_get(item, HF_STR("p"))),
                                      .stream = stream,
                                      .version = version};
    if (!is_position(event->position))
        return fail_damaged(s, event);
    return hf__events_map_view(s, hf_item_get(item, HF_STR("e")), event);
}

/* ---- a commit ------------------------------------------------------------------------------- */

static bool take_number(struct hf_value value, uint64_t max, uint64_t *out)
{
    int64_t number;

    if (!hf_value_i64(value, &number) || number < 0 || (uint64_t)number > max)
        return false;
    *out = (uint64_t)number;
    return true;
}

/* (2) */
enum hf_status hf__events_commit_view(struct hf_scope *s, struct hf_item item,
                                      struct events_commit *commit)
{
    struct hf_item_walk walk = {0};
    uint64_t from = 0, count = 0;
    bool good = true;

    *commit = (struct events_commit){.item = item, .stream.id = HF_STR("")};
    while (hf_item_next(item, &walk)) {
        char first = walk.name.len ? walk.name.ptr[0] : '\0';

        if (first == 'x' && walk.name.len == 3)
            commit->count++;
        else if (hf_str_equal(walk.name, HF_STR("sk")))
            commit->position = hf_value_str(walk.value);
        else if (walk.name.len != 1)
            continue;
        else if (first == 'd')
            commit->stream.domain = hf_value_str(walk.value);
        else if (first == 'i')
            commit->stream.id = hf_value_str(walk.value);
        else if (first == 'l')
            commit->large = hf_value_str(walk.value);
        else if (first == 'n')
            good = good && take_number(walk.value, EVENTS_COMMIT_MAX, &count);
        else if (first == 'o')
            good = good && take_number(walk.value, HF_EVENTS_APPEND_MAX, &from);
        else if (first == 'v')
            good = good && take_number(walk.value, INT64_MAX - EVENTS_COMMIT_MAX, &commit->version);
    }
    if (commit->large.ptr)
        commit->count = (uint32_t)count;
    commit->large_from = (uint32_t)from;
    if (good && commit->stream.domain.len && commit->version && commit->stream.id.ptr &&
        is_position(commit->position) &&
        (!commit->large.ptr || (is_position(commit->large) && count)))
        return HF_OK;
    return hf_scope_fail(s, HF_CORRUPT, "the commit %.*s/%.*s is damaged",
                         HF_FMT(hf_value_str(hf_item_get(item, HF_STR("pk")))),
                         HF_FMT(hf_value_str(hf_item_get(item, HF_STR("sk")))));
}

/* The number of the event with that name, or -1. */
static int event_number(struct hf_str name)
{
    uint64_t number;

    if (name.len != 3 || name.ptr[0] != 'x' || !base32_read(name.ptr + 1, 2, BASE32_UPPER, &number))
        return -1;
    return (int)number;
}

/* Those that are in the item. */
static enum hf_status own_events(struct hf_scope *s, const struct events_commit *commit,
                                 struct events_run *run)
{
    size_t room = commit->count < run->cap ? commit->count : run->cap;
    char *texts = hf_scope_alloc(s, (room + 1) * HF_POSITION_LEN);
    struct hf_item_walk walk = {0};

    TRY(hf_scope_built(s));
    while (hf_item_next(commit->item, &walk)) {
        int number = event_number(walk.name);

        if (number < 0 || (uint32_t)number < run->from)
            continue;
        if (run->len == run->cap) {
            run->next = (uint32_t)number;
            return HF_OK;
        }
        assert(run->len < room);
        memcpy(texts, commit->position.ptr, HF_POSITION_LEN - 2);
        texts[HF_POSITION_LEN - 2] = walk.name.ptr[1];
        texts[HF_POSITION_LEN - 1] = walk.name.ptr[2];
        run->events[run->len] =
            (struct hf_stored_event){.position = hf_str_of(texts, HF_POSITION_LEN),
                                     .stream = commit->stream,
                                     .version = commit->version + (uint32_t)number};
        TRY(hf__events_map_view(s, walk.value, &run->events[run->len]));
        texts += HF_POSITION_LEN;
        run->len++;
    }
    return HF_OK;
}

enum hf_status hf__events_commit_events(struct hf_scope *s, struct hf_events *store,
                                        const struct events_commit *commit, struct events_run *run)
{
    run->len = 0;
    run->next = 0;
    assert(run->cap > 0);
    if (!commit->large.ptr)
        return own_events(s, commit, run);
    return hf__events_large_events(s, store, commit, run);
}
