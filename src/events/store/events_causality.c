/*
 * events/store/events_causality.c: events by what caused them, by correlation, as a tree.
 *
 * r.ID has an item for each event that ID caused or that is correlated with ID, sorted by position,
 * which says where the event is (struct events_place). Those are read, and then the heads of their
 * streams, which say whether the events may be read.
 *
 *  (1) Every page of r.ID is followed, and every read is consistent.
 *  (2) An event that is named and not there is HF_CORRUPT, unless its stream was truncated beyond
 *      it, or deleted: then the sweep may have taken it, and nobody is to see it anyway. Heads are
 *      read after the events, so one that went meanwhile is not mistaken for a damaged one. And
 *      large appends write r.* before they become visible, which they may never.
 *  (3) An event has one cause, so in a tree it comes once, unless causes form a circle: that is
 *      found by its depth. The tree is built level by level, and not by recursion.
 */
#include "events/store/events.h"

#include <holdfast/batch.h>
#include <holdfast/pages.h>

enum { DEPTH_MAX = 100, FIRST_ROOM = 16 };

/* ---- which events may be read --------------------------------------------------------------- */

/* The heads of the streams of all events, one for each event; the same stream is read once. */
static enum hf_status heads_of(struct hf_scope *s, struct hf_events *store,
                               const struct hf_stored_event *events, size_t len,
                               struct events_head *heads)
{
    struct hf_get *gets = hf_scope_alloc(s, len * sizeof(*gets));
    struct hf_get_many_result got;

    assert(len > 0);
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        struct hf_str pk;

        gets[i].table = store->table;
        if (i && hf_str_equal(events[i].stream.domain, events[i - 1].stream.domain) &&
            hf_str_equal(events[i].stream.id, events[i - 1].stream.id)) {
            gets[i].key = gets[i - 1].key;
            continue;
        }
        TRY(hf__events_stream_pk(s, 's', events[i].stream, &pk));
        gets[i].key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", HF_STR("h")));
    }
    TRY(hf_scope_built(s));
    TRY(hf_get_many(s, store->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < len; i++)
        TRY(hf__events_head_view(s, got.items[i], &heads[i]));
    return HF_OK;
}

enum hf_status hf__events_readable(struct hf_scope *s, struct hf_events *store,
                                   const struct hf_stored_event *events, size_t len, bool *readable)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct events_head *heads;

    if (!len)
        return HF_OK;
    heads = hf_scope_alloc(s, len * sizeof(*heads));
    TRY(hf_scope_built(s));
    TRY(heads_of(s, store, events, len, heads));
    for (size_t i = 0; i < len; i++)
        readable[i] = heads[i].state != EVENTS_DELETED &&
                      events[i].version >= hf__events_head_first(&heads[i]) &&
                      !hf__events_head_expired(store, &heads[i], events[i].position);
    hf_scope_rewind(s, mark);
    return HF_OK;
}

/* ---- what r.ID names ------------------------------------------------------------------------ */

struct places {
    struct events_place *list;
    size_t len, cap;
};

static enum hf_status add_place(struct hf_scope *s, struct places *places, struct hf_item item)
{
    if (places->len == places->cap) {
        size_t cap = places->cap ? places->cap * 2 : FIRST_ROOM;
        struct events_place *list = hf_scope_alloc(s, cap * sizeof(*list));

        if (!list)
            return hf_scope_built(s);
        if (places->len)
            memcpy(list, places->list, places->len * sizeof(*list));
        places->list = list;
        places->cap = cap;
    }
    assert(places->len < places->cap);
    item = hf_item_copy(s, item); /* the page goes */
    TRY(hf_scope_built(s));
    TRY(hf__events_place_view(s, item, &places->list[places->len]));
    places->len++;
    return HF_OK;
}

static bool is_of_kind(struct hf_item item, int64_t kind)
{
    int64_t what;

    return hf_value_i64(hf_item_get(item, HF_STR("w")), &what) && (what & kind);
}

/* (1): `kind` is EVENTS_CAUSED or EVENTS_CORRELATED. */
static enum hf_status find_places(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                                  int64_t kind, struct places *places)
{
    struct hf_query query = {.table = store->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk"))),
                             .values =
                                 HF_ITEM(s, HF_S(":pk", hf__pattern_join(s, HF_STR("r."), id))),
                             .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr)
        if (is_of_kind(item, kind)) {
            status = add_place(s, places, item);
            if (status != HF_OK)
                break;
        }
    hf_pages_free(pages);
    return status;
}

/* An event whose correlation was said to be its own id is among those of that. */
static void drop_place(struct places *places, struct hf_str position)
{
    size_t kept = 0;

    for (size_t i = 0; i < places->len; i++)
        if (!hf_str_equal(places->list[i].position, position))
            places->list[kept++] = places->list[i];
    places->len = kept;
}

static enum hf_status fail_missing(struct hf_scope *s, struct hf_str id,
                                   const struct hf_stored_event *event)
{
    return hf_scope_fail(s, HF_CORRUPT,
                         "the event at %.*s, version %llu of stream \"%.*s\", is missing, though "
                         "\"%.*s\" names it",
                         HF_FMT(event->position), (unsigned long long)event->version,
                         HF_FMT(hf__events_stream_text(s, event->stream)), HF_FMT(id));
}

/* Where an event is to be, when it is not there. */
static enum hf_status name_missing(struct hf_scope *s, const struct events_place *place,
                                   struct hf_stored_event *event)
{
    struct hf_str parts[2];

    TRY(hf__pattern_key_parts(s, place->stream, parts, ARRAY_LEN(parts)));
    *event = (struct hf_stored_event){.stream = {parts[0], parts[1]},
                                      .version = place->version,
                                      .position = place->position};
    return HF_OK;
}

/* (2) */
static enum hf_status places_load(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                                  const struct places *places, struct hf_stored_event *events,
                                  size_t *len)
{
    bool *readable = hf_scope_alloc(s, places->len + 1);

    TRY(hf_scope_built(s));
    *len = 0;
    TRY(hf__events_places_read(s, store, places->list, places->len, events));
    for (size_t i = 0; i < places->len; i++)
        if (!events[i].id.len)
            TRY(name_missing(s, &places->list[i], &events[i]));
    TRY(hf__events_readable(s, store, events, places->len, readable));
    for (size_t i = 0; i < places->len; i++) {
        if (!readable[i] || (!events[i].id.len && places->list[i].large.ptr))
            continue;
        if (!events[i].id.len)
            return fail_missing(s, id, &events[i]);
        assert(*len <= i);
        events[(*len)++] = events[i];
    }
    return hf__events_payloads(s, store, events, *len);
}

static enum hf_status check_id(struct hf_scope *s, struct hf_str id)
{
    if (!id.len)
        return hf_scope_fail(s, HF_INVALID, "the event id is empty");
    if (id.len > HF_EVENTS_ID_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, id.len),
                                   "the event id has %zu bytes, at most %d are allowed", id.len,
                                   HF_EVENTS_ID_MAX);
    return HF_OK;
}

static enum hf_status caused_by(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                                struct hf_stored_event **events, size_t *len)
{
    struct places places = {.len = 0};

    TRY(find_places(s, store, id, EVENTS_CAUSED, &places));
    *events = hf_scope_alloc(s, (places.len + 1) * sizeof(**events));
    TRY(hf_scope_built(s));
    return places_load(s, store, id, &places, *events, len);
}

enum hf_status hf_events_caused_by(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                                   const struct hf_stored_event **events, size_t *len)
{
    struct hf_stored_event *list;

    *events = NULL;
    *len = 0;
    TRY(check_id(s, id));
    TRY(caused_by(s, store, id, &list, len));
    *events = list;
    return HF_OK;
}

enum hf_status hf_events_correlated(struct hf_scope *s, struct hf_events *store,
                                    struct hf_str correlation,
                                    const struct hf_stored_event **events, size_t *len)
{
    struct places places = {.len = 0};
    struct hf_stored_event *list;
    enum hf_status status;
    size_t own = 0;

    *events = NULL;
    *len = 0;
    TRY(check_id(s, correlation));
    TRY(find_places(s, store, correlation, EVENTS_CORRELATED, &places));
    list = hf_scope_alloc(s, (places.len + 1) * sizeof(*list));
    TRY(hf_scope_built(s));
    status = hf_events_get(s, store, correlation, &list[0]);
    if (status == HF_OK && hf_str_equal(list[0].correlation, correlation)) {
        own = 1;
        drop_place(&places, list[0].position);
    }
    if (status != HF_OK && status != HF_NOT_FOUND)
        return status;
    TRY(places_load(s, store, correlation, &places, list + own, len));
    *events = list;
    *len += own;
    return HF_OK;
}

/* ---- trees ---------------------------------------------------------------------------------- */

/* Nodes of one level. */
struct level {
    struct hf_event_tree **list;
    size_t len, cap;
};

static enum hf_status add_node(struct hf_scope *s, struct level *level, struct hf_event_tree *node)
{
    if (level->len == level->cap) {
        size_t cap = level->cap ? level->cap * 2 : FIRST_ROOM;
        struct hf_event_tree **list = hf_scope_alloc(s, cap * sizeof(*list));

        if (!list)
            return hf_scope_built(s);
        if (level->len)
            memcpy(list, level->list, level->len * sizeof(struct hf_event_tree *));
        level->list = list;
        level->cap = cap;
    }
    assert(level->len < level->cap);
    level->list[level->len++] = node;
    return HF_OK;
}

static enum hf_status add_children(struct hf_scope *s, struct hf_events *store,
                                   struct hf_event_tree *node, struct level *below)
{
    struct hf_stored_event *events;
    struct hf_event_tree *children;
    size_t len;

    TRY(caused_by(s, store, node->event.id, &events, &len));
    if (!len)
        return HF_OK;
    children = hf_scope_alloc(s, len * sizeof(*children));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        children[i] = (struct hf_event_tree){.event = events[i]};
        TRY(add_node(s, below, &children[i]));
    }
    node->children = children;
    node->children_len = len;
    return HF_OK;
}

/* (3) */
enum hf_status hf_events_tree(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                              uint32_t depth_max, struct hf_event_tree *tree)
{
    struct level level = {.len = 0};

    *tree = (struct hf_event_tree){.children_len = 0};
    if (!depth_max)
        depth_max = DEPTH_MAX;
    TRY(hf_events_get(s, store, id, &tree->event));
    TRY(add_node(s, &level, tree));
    for (uint32_t depth = 0; level.len; depth++) {
        struct level below = {.len = 0};

        for (size_t i = 0; i < level.len; i++)
            TRY(add_children(s, store, level.list[i], &below));
        if (below.len && depth == depth_max) {
            *tree = (struct hf_event_tree){.children_len = 0};
            return hf_scope_fail(s, HF_LIMIT, "the tree of event \"%.*s\" has more than %lu levels",
                                 HF_FMT(id), (unsigned long)depth_max);
        }
        level = below;
    }
    return HF_OK;
}
