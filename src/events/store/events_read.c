/*
 * events/store/events_read.c: events of one stream, and events by id.
 *
 * A stream is one partition: its events under their versions, and behind them its head. So one
 * query from a version on, or from the head backwards, brings the events and mostly the head with
 * them; it is read by itself only when the page did not reach it.
 *
 *  (1) The head is read with or after the events, so what it forbids (truncated, deleted) is not
 *      handed out; and the version of a page is at least that of its last event.
 *  (2) A query has no upper version: the next item behind the ones that are wanted may stand for a
 *      large append that has them (events.h). It is limited by how many are wanted.
 *  (3) An id is looked for as a position first, as most are; one that a caller chose, and that
 *      looks like one, is found by its own item then.
 */
#include "events/store/events.h"

#include <holdfast/batch.h>

enum { LIMIT = 100, LIMIT_MAX = 100000, PAGE = 1000 };

/* ---- a stream ------------------------------------------------------------------------------- */

/* A read of a stream on its way. */
struct reading {
    struct hf_scope *s;
    struct hf_events *store;
    struct hf_event_stream_key stream;
    struct hf_str pk;
    struct hf_events_read_options o;
    struct events_head head;
    bool have_head;
    uint64_t first; /* the oldest version that may be read; 1 until the head is known */
    uint64_t at;    /* the next version that is wanted; 0: the last one, backward */
    bool end;       /* there are no more */
    struct hf_stored_event *events;
    size_t len, cap;
};

static struct hf_str stream_text(const struct reading *r)
{
    return hf__events_stream_text(r->s, r->stream);
}

static enum hf_status event_keep(struct reading *r, const struct hf_stored_event *event)
{
    void *events = r->events;

    assert(r->len < r->o.limit);
    TRY(hf__pattern_grow(r->s, &events, r->len, &r->cap, sizeof(*event)));
    r->events = events;
    r->events[r->len++] = *event;
    return HF_OK;
}

static bool is_full(const struct reading *r)
{
    return r->end || r->len == r->o.limit;
}

/* Is there nothing to be read any more from `at` on? */
static bool is_past(const struct reading *r)
{
    if (r->o.backward)
        return r->at == 0 || r->at < r->o.to || r->at < r->first;
    return r->at > r->o.to || (r->have_head && r->at > r->head.version);
}

/* (1) Hold what was read so far against the head, and go on behind what it forbids. */
static enum hf_status know_head(struct reading *r, const struct events_head *head)
{
    size_t kept = 0;

    r->head = *head;
    r->have_head = true;
    r->first = hf__events_head_first(head);
    hf__events_observe(r->store, position_str(&head->position));
    if (head->state == EVENTS_DELETED)
        return hf_scope_fail(r->s, HF_DELETED, "stream \"%.*s\" was deleted for good",
                             HF_FMT(stream_text(r)));
    for (size_t i = 0; i < r->len; i++)
        if (r->events[i].version >= r->first &&
            !hf__events_head_expired(r->store, head, r->events[i].position))
            r->events[kept++] = r->events[i];
    assert(kept <= r->len);
    r->len = kept;
    if (r->o.backward && (!r->at || r->at > head->version))
        r->at = head->version;
    if (!r->o.backward && r->at < r->first)
        r->at = r->first;
    r->end = r->end || is_past(r);
    return HF_OK;
}

static enum hf_status need_head(struct reading *r)
{
    struct events_head head;

    if (r->have_head)
        return HF_OK;
    TRY(hf__events_head_read(r->s, r->store, r->pk, &head));
    return know_head(r, &head);
}

static enum hf_status fail_missing(const struct reading *r)
{
    return hf_scope_fail(r->s, HF_CORRUPT, "stream \"%.*s\": version %llu is missing",
                         HF_FMT(stream_text(r)), (unsigned long long)r->at);
}

/* The next version in order. */
static enum hf_status take_event(struct reading *r, const struct hf_stored_event *event)
{
    bool expired = r->have_head && hf__events_head_expired(r->store, &r->head, event->position);

    assert(!is_full(r));
    if (event->version != r->at)
        return fail_missing(r);
    if (!expired && (!r->o.from_us || event->time_us >= r->o.from_us) &&
        (!r->o.until_us || event->time_us < r->o.until_us))
        TRY(event_keep(r, event));
    r->at = r->o.backward ? r->at - 1 : r->at + 1;
    r->end = r->end || is_past(r) || (expired && r->o.backward);
    return HF_OK;
}

/* What is met next begins (or, backward, ends) with `version`. When that is not what is wanted
 * next, what is missing was swept, or is beyond the end: the head knows. */
static enum hf_status meet_version(struct reading *r, uint64_t version)
{
    bool knew = r->have_head;

    if (version == r->at)
        return HF_OK;
    if (!r->o.backward && version > r->at)
        r->have_head = false; /* it may have been swept since */
    TRY(need_head(r));
    if (!r->o.backward && version > r->at && version <= r->first)
        r->at = version;
    if (r->o.backward && !knew && version < r->at)
        r->at = version; /* the end was there when the page was read */
    return HF_OK;
}

static enum hf_status take_event_item(struct reading *r, struct hf_item item, uint64_t version)
{
    struct hf_stored_event event;

    TRY(meet_version(r, version));
    if (is_full(r) || (!r->o.backward && version < r->at)) /* it is being swept */
        return HF_OK;
    TRY(hf__events_item_view(r->s, item, r->stream, version, &event));
    return take_event(r, &event);
}

/* (2) The part of a large append that is wanted. It has two of these, so one may have been taken.
 */
static enum hf_status take_stub(struct reading *r, const struct events_stub *stub)
{
    uint64_t last = stub->first + stub->count - 1;

    TRY(meet_version(r, r->o.backward ? (r->at < last ? r->at : last)
                                      : (r->at > stub->first ? r->at : stub->first)));
    if (!is_full(r) && (r->o.backward ? r->at > last : r->at < stub->first))
        return fail_missing(r);
    while (!is_full(r) && r->at >= stub->first && r->at <= last) {
        uint32_t number = stub->number + (uint32_t)(r->at - stub->first);
        uint64_t before = r->at;
        const struct events_large_range range = {
            .large = stub->large,
            .from = r->o.backward ? stub->number : number,
            .to = r->o.backward ? number : stub->number + (uint32_t)stub->count - 1,
            .backward = r->o.backward,
            .limit = r->o.limit - r->len};
        struct hf_query_result page;

        TRY(hf__events_large_page(r->s, r->store, &range, &page));
        for (size_t i = 0; i < page.items_len && !is_full(r); i++) {
            uint32_t at;

            if (!hf__events_large_number(page.items[i], &at))
                return hf_scope_fail(r->s, HF_CORRUPT, "an item of append %.*s is damaged",
                                     HF_FMT(stub->large));
            TRY(take_event_item(r, page.items[i], stub->first + (at - stub->number)));
        }
        if (r->at == before && !is_full(r))
            TRY(need_head(r)); /* it may be half swept */
        if (r->at == before && !is_full(r))
            return fail_missing(r);
    }
    return HF_OK;
}

static enum hf_status take_item(struct reading *r, struct hf_item item)
{
    struct hf_str sk = hf_value_str(hf_item_get(item, HF_STR("sk")));
    struct events_stub stub;
    struct events_head head;
    uint64_t version;

    if (hf_str_equal(sk, HF_STR("h"))) {
        TRY(hf__events_head_view(r->s, item, &head));
        return know_head(r, &head);
    }
    if (!hf__events_version_read(sk, &version))
        return hf_scope_fail(r->s, HF_CORRUPT, "stream \"%.*s\": the item %.*s is damaged",
                             HF_FMT(stream_text(r)), HF_FMT(sk));
    if (hf__events_stub_view(item, &stub))
        return take_stub(r, &stub);
    return take_event_item(r, item, version);
}

/* (2) */
static enum hf_status read_page(struct reading *r, struct hf_item *start)
{
    uint64_t left = r->o.limit - r->len;
    char sk[EVENTS_VERSION_LEN + 1];
    struct hf_query query = {.table = r->store->table,
                             .key_condition = r->o.backward ? HF_STR("#pk = :pk AND #sk <= :sk")
                                                            : HF_STR("#pk = :pk AND #sk >= :sk"),
                             .names = HF_ITEM(r->s, HF_S("#pk", HF_STR("pk")),
                                              HF_S("#sk", HF_STR("sk"))),
                             .limit = (int64_t)(left < PAGE ? left : PAGE) + 1,
                             .start = *start,
                             .forward = r->o.backward ? HF_NO : HF_YES,
                             .consistent = HF_YES};
    struct hf_query_result result;
    size_t i = 0;

    assert(!is_full(r) && left > 0 && (r->at || r->o.backward));
    hf__events_version_text(r->at, sk);
    query.values = HF_ITEM(r->s, HF_S(":pk", r->pk),
                           HF_S(":sk", r->at ? hf_str_of(sk, EVENTS_VERSION_LEN) : HF_STR("h")));
    TRY(hf_scope_built(r->s));
    TRY(hf_query(r->s, r->store->db, &query, &result));
    for (; i < result.items_len && !is_full(r); i++)
        TRY(take_item(r, result.items[i]));
    *start = result.items_len ? (struct hf_item){NULL, 0} : result.last;
    if (i == result.items_len && !result.last.ptr)
        r->end = true;
    return HF_OK;
}

static enum hf_status read_pages(struct reading *r)
{
    struct hf_item start = {NULL, 0};

    while (!is_full(r)) {
        struct hf_scope_mark mark = hf_scope_mark(r->s);
        size_t before = r->len;

        TRY(read_page(r, &start));
        TRY(need_head(r));
        if (r->len == before && !r->len && !start.ptr) { /* none of them was wanted */
            hf_scope_rewind(r->s, mark);
            r->events = NULL;
            r->cap = 0;
        }
    }
    return need_head(r);
}

static enum hf_status read_begin(struct reading *r)
{
    const struct hf_events_read_options *o = &r->o;

    if (o->limit > LIMIT_MAX)
        return hf_scope_fail_limit(r->s, HF_INVALID,
                                   hf_error_limit_of("limit", LIMIT_MAX, o->limit),
                                   "limit is %u, at most %d are allowed", o->limit, LIMIT_MAX);
    if (o->from > INT64_MAX || o->to > INT64_MAX)
        return hf_scope_fail(r->s, HF_INVALID, "a version has more than 63 bits");
    r->o.limit = o->limit ? o->limit : LIMIT;
    r->first = 1;
    r->at = o->from;
    if (o->backward) {
        r->end = r->at && r->at < o->to;
        return HF_OK;
    }
    r->at = r->at ? r->at : 1;
    r->o.to = o->to ? o->to : INT64_MAX;
    r->end = r->at > r->o.to;
    return HF_OK;
}

enum hf_status hf_events_read(struct hf_scope *s, struct hf_events *store,
                              struct hf_event_stream_key stream,
                              const struct hf_events_read_options *options,
                              struct hf_events_page *page)
{
    struct reading r = {.s = s, .store = store};
    uint64_t last;

    *page = (struct hf_events_page){.events = NULL};
    OPTIONS_COPY(&r.o, options);
    TRY(hf__events_stream_pk(s, 's', stream, &r.pk));
    r.stream =
        (struct hf_event_stream_key){hf_scope_copy(s, stream.domain), hf_scope_copy(s, stream.id)};
    TRY(hf_scope_built(s));
    TRY(read_begin(&r));
    TRY(read_pages(&r));
    if (!r.o.no_payload)
        TRY(hf__events_payloads(s, store, r.events, r.len));
    assert(r.have_head && r.len <= r.o.limit); /* (1) */
    last = r.len ? r.events[r.o.backward ? 0 : r.len - 1].version : 0;
    *page = (struct hf_events_page){.events = r.events,
                                    .events_len = r.len,
                                    .next = r.end || is_past(&r) ? 0 : r.at,
                                    .version = last > r.head.version ? last : r.head.version};
    return hf_scope_ok(s);
}

/* ---- by id ---------------------------------------------------------------------------------- */

enum hf_status hf__events_place_view(struct hf_scope *s, struct hf_item item,
                                     struct events_place *place)
{
    struct hf_value large = hf_item_get(item, HF_STR("l"));
    struct hf_value position = hf_item_get(item, HF_STR("p")); /* i.ID; r.ID has it as its key */
    int64_t version = 0, number = 0;

    *place = (struct events_place){.stream = hf_value_str(hf_item_get(item, HF_STR("s"))),
                                   .position = hf_value_str(
                                       position.ptr ? position : hf_item_get(item, HF_STR("sk"))),
                                   .large = hf_value_str(large)};
    if (!place->stream.len || !hf__events_position_read(place->position, NULL, NULL, NULL) ||
        !hf_value_i64(hf_item_get(item, HF_STR("v")), &version) || version < 1 ||
        (large.ptr &&
         (!is_position(place->large) || !hf_value_i64(hf_item_get(item, HF_STR("n")), &number) ||
          number < 0 || number >= HF_EVENTS_APPEND_MAX)))
        return hf_scope_fail(s, HF_CORRUPT, "the item %.*s/%.*s is damaged",
                             HF_FMT(hf_value_str(hf_item_get(item, HF_STR("pk")))),
                             HF_FMT(hf_value_str(hf_item_get(item, HF_STR("sk")))));
    place->version = (uint64_t)version;
    place->number = (uint32_t)number;
    return HF_OK;
}

/* An event of a large append is where it was staged. */
static struct hf_item place_key(struct hf_scope *s, const struct events_place *place)
{
    char version[EVENTS_VERSION_LEN + 1];

    if (place->large.len)
        return hf__events_large_key(s, place->large, place->number);
    hf__events_version_text(place->version, version);
    return HF_ITEM(s, HF_S("pk", hf__pattern_join(s, HF_STR("s."), place->stream)),
                   HF_S("sk", hf_str_of(version, EVENTS_VERSION_LEN)));
}

static enum hf_status place_stream(struct hf_scope *s, const struct events_place *place,
                                   struct hf_event_stream_key *stream)
{
    struct hf_str parts[2];

    TRY(hf__pattern_key_parts(s, place->stream, parts, ARRAY_LEN(parts)));
    *stream = (struct hf_event_stream_key){parts[0], parts[1]};
    return HF_OK;
}

enum hf_status hf__events_places_read(struct hf_scope *s, struct hf_events *store,
                                      const struct events_place *places, size_t len,
                                      struct hf_stored_event *events)
{
    const struct hf_many_options options = {.size = sizeof(options), .consistent = true};
    struct hf_get *gets = hf_scope_alloc(s, (len + 1) * sizeof(*gets));
    struct hf_get_many_result result;

    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        events[i] = (struct hf_stored_event){.version = 0};
        gets[i] = (struct hf_get){.table = store->table, .key = place_key(s, &places[i])};
    }
    TRY(hf_scope_built(s));
    if (!len)
        return HF_OK;
    TRY(hf_get_many(s, store->db, gets, len, &options, &result));
    for (size_t i = 0; i < len; i++) {
        struct hf_event_stream_key stream;
        bool there = true;

        /* Another event may be there when that of the place was never appended. */
        if (!result.items[i].ptr ||
            !hf_str_equal(hf_value_str(hf_item_get(result.items[i], HF_STR("p"))),
                          places[i].position))
            continue;
        if (places[i].large.len)
            TRY(hf__events_is_there(s, store, places[i].position, &there));
        if (!there)
            continue;
        TRY(place_stream(s, &places[i], &stream));
        TRY(hf__events_item_view(s, result.items[i], stream, places[i].version, &events[i]));
    }
    return HF_OK;
}

/* The commit of the event with that position: it has the same with the number of its first event.
 * In the global order, or where the archived ones are; else absent. One that was put back between
 * the two looks is found by the third. */
static enum hf_status read_commit(struct hf_scope *s, struct hf_events *store,
                                  struct hf_str position, struct hf_item *item)
{
    static const char kinds[] = {'a', 'z', 'a'};
    struct events_position base;

    assert(is_position(position));
    *item = (struct hf_item){NULL, 0};
    memcpy(base.text, position.ptr, HF_POSITION_LEN);
    base.text[HF_POSITION_LEN] = '\0';
    hf__events_position_number(&base, 0);
    for (size_t i = 0; i < ARRAY_LEN(kinds) && !item->ptr; i++)
        TRY(hf__pattern_read(s, store->db, store->table,
                             HF_ITEM(s, HF_S("pk", hf__events_part_of(s, kinds[i], position)),
                                     HF_S("sk", position_str(&base))),
                             item));
    return HF_OK;
}

enum hf_status hf__events_is_there(struct hf_scope *s, struct hf_events *store,
                                   struct hf_str position, bool *there)
{
    struct hf_item item;

    TRY(read_commit(s, store, position, &item));
    *there = item.ptr != NULL;
    return HF_OK;
}

/* The event with that position; no id when there is none. */
static enum hf_status find_at(struct hf_scope *s, struct hf_events *store, struct hf_str position,
                              struct hf_stored_event *event)
{
    struct events_commit commit;
    struct hf_item item;
    struct events_run run = {.events = event, .cap = 1};

    *event = (struct hf_stored_event){.version = 0};
    hf__events_position_read(position, NULL, NULL, &run.from);
    TRY(read_commit(s, store, position, &item));
    if (!item.ptr)
        return HF_OK;
    TRY(hf__events_commit_view(s, item, &commit));
    TRY(hf__events_commit_events(s, store, &commit, &run));
    if (!run.len || !hf_str_equal(event->position, position))
        *event = (struct hf_stored_event){.version = 0};
    return HF_OK;
}

static enum hf_status find_chosen(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                                  struct hf_stored_event *event)
{
    struct events_place place;
    struct hf_item item;

    TRY(hf__pattern_read(s, store->db, store->table,
                         HF_ITEM(s, HF_S("pk", hf__pattern_join(s, HF_STR("i."), id)),
                                 HF_S("sk", HF_STR("i"))),
                         &item));
    if (!item.ptr)
        return HF_OK;
    TRY(hf__events_place_view(s, item, &place));
    return hf__events_places_read(s, store, &place, 1, event);
}

/* (3) */
enum hf_status hf__events_find(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                               struct hf_stored_event *event)
{
    *event = (struct hf_stored_event){.version = 0};
    if (!id.len || id.len > HF_EVENTS_ID_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, id.len),
                                   "an event id has 1 to %d bytes", HF_EVENTS_ID_MAX);
    if (hf__events_position_read(id, NULL, NULL, NULL))
        TRY(find_at(s, store, id, event));
    if (event->id.len && hf_str_equal(event->id, id))
        return HF_OK;
    *event = (struct hf_stored_event){.version = 0};
    TRY(find_chosen(s, store, id, event));
    if (!event->id.len)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no event with the id \"%.*s\"", HF_FMT(id));
    return HF_OK;
}

enum hf_status hf_events_get(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                             struct hf_stored_event *event)
{
    struct hf_stored_event found;
    struct events_head head;
    struct hf_str pk;

    *event = (struct hf_stored_event){.version = 0};
    TRY(hf__events_find(s, store, id, &found));
    TRY(hf__events_stream_pk(s, 's', found.stream, &pk));
    TRY(hf__events_head_read(s, store, pk, &head));
    if (head.state == EVENTS_DELETED || found.version < hf__events_head_first(&head) ||
        hf__events_head_expired(store, &head, found.position))
        return hf_scope_fail(s, HF_NOT_FOUND, "event \"%.*s\" was truncated or deleted",
                             HF_FMT(id));
    TRY(hf__events_payloads(s, store, &found, 1));
    *event = found;
    return hf_scope_ok(s);
}
