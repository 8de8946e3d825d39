/*
 * events/store/events_append_ids.c: ids of events that callers choose.
 *
 * Each is an item of its own, put in the transaction of its event on the condition that it is not
 * there:
 *
 *     pk, sk   "i.ID", "i"
 *     s, v, p  STREAM, version, position of the event
 *     h        the hash of its content (events_chain.c)
 *     l, n     of a large append: COMMIT, and the event's NUMBER in it
 *
 * An id may be there of a large append that did not become visible (events_append_large.c): one
 * that has crashed, or one that is under way. An append that needs the id abandons that one, and
 * the id is free: so after a crash the same append can be repeated at once.
 *
 * An id that we made is a position, and has no such item: so one that is chosen, and looks like a
 * position, is looked for in the global order as well, before anything is sent. Nobody can know the
 * position of an event that is not there yet.
 *
 * An append whose ids are all there, of the same events in the same stream, one behind the other as
 * they are now, has been done before: it is answered as it was then. Any other meeting is a
 * mistake of somebody, and said so: an id in another stream or with other content, or some that are
 * there and some that are not.
 */
#include "events/store/append.h"

#include <holdfast/batch.h>

#include <stdlib.h>

/* ---- twice in one call ---------------------------------------------------------------------- */

static int by_id(const void *one, const void *other)
{
    const struct append_event *a = *(const struct append_event *const *)one;
    const struct append_event *b = *(const struct append_event *const *)other;
    size_t len = a->event.id.len < b->event.id.len ? a->event.id.len : b->event.id.len;
    int order = memcmp(a->event.id.ptr, b->event.id.ptr, len);

    return order ? order
                 : (a->event.id.len > b->event.id.len) - (a->event.id.len < b->event.id.len);
}

enum hf_status hf__append_check_ids(struct appending *a)
{
    struct hf_scope_mark mark = hf_scope_mark(a->s);
    const struct append_event **list = hf_scope_alloc(a->s, a->chosen * sizeof(*list));
    size_t len = 0;

    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->events_len; i++)
        if (a->events[i].chosen)
            list[len++] = &a->events[i];
    assert(len == a->chosen);
    qsort(list, len, sizeof(const struct append_event *), by_id);
    for (size_t i = 1; i < len; i++)
        if (hf_str_equal(list[i - 1]->event.id, list[i]->event.id)) {
            size_t one = (size_t)(list[i - 1] - a->events), other = (size_t)(list[i] - a->events);

            return hf_scope_fail(a->s, HF_DUPLICATE,
                                 "events %zu and %zu have the same id, \"%.*s\"",
                                 (one < other ? one : other) + 1, (one < other ? other : one) + 1,
                                 HF_FMT(list[i]->event.id));
        }
    hf_scope_rewind(a->s, mark);
    return HF_OK;
}

/* ---- items ---------------------------------------------------------------------------------- */

static struct hf_item id_key(struct hf_scope *s, struct hf_str id)
{
    return HF_ITEM(s, HF_S("pk", hf__pattern_join(s, HF_STR("i."), id)), HF_S("sk", HF_STR("i")));
}

struct hf_item hf__append_id_item(struct appending *a, const struct append_target *t,
                                  const struct append_event *p, struct hf_str large, size_t number)
{
    struct hf_attr attrs[8];
    size_t len = 0;

    attrs[len++] = (struct hf_attr)HF_B("h", hf_bytes_of(p->content, EVENTS_HASH));
    if (large.len) {
        attrs[len++] = (struct hf_attr)HF_S("l", large);
        attrs[len++] = (struct hf_attr)HF_N("n", number);
    }
    attrs[len++] = (struct hf_attr)HF_S("p", p->event.position);
    attrs[len++] = (struct hf_attr)HF_S("pk", hf__pattern_join(a->s, HF_STR("i."), p->event.id));
    attrs[len++] = (struct hf_attr)HF_S("s", hf_str_of(t->pk.ptr + 2, t->pk.len - 2));
    attrs[len++] = (struct hf_attr)HF_S("sk", HF_STR("i"));
    attrs[len++] = (struct hf_attr)HF_N("v", p->event.version);
    assert(len <= ARRAY_LEN(attrs));
    return hf_item_make(a->s, attrs, len);
}

/* ---- were they there before? ---------------------------------------------------------------- */

/* An event and what its id says, absent when that is free. */
struct id_match {
    const struct append_target *target;
    const struct append_event *pending;
    struct events_place place;
    struct hf_bytes content;
    bool found;
};

/* Is that large append visible? If not it is given up, and stays invisible. */
static enum hf_status large_decide(struct appending *a, const struct events_place *place,
                                   bool *there)
{
    assert(place->large.len);
    TRY(hf__events_is_there(a->s, a->store, place->position, there));
    if (*there)
        return HF_OK;
    TRY(hf__events_give_up(a->s, a->store, place->large));
    return hf__events_is_there(a->s, a->store, place->position, there);
}

static enum hf_status id_free(struct appending *a, const struct append_event *p,
                              struct hf_str large)
{
    struct hf_delete_item del = {.table = a->store->table,
                                 .key = id_key(a->s, p->event.id),
                                 .condition = HF_STR("#l = :l"),
                                 .names = HF_ITEM(a->s, HF_S("#l", HF_STR("l"))),
                                 .values = HF_ITEM(a->s, HF_S(":l", large))};
    enum hf_status status;
    struct hf_item item;

    TRY(hf_scope_built(a->s));
    status = hf__pattern_write(a->s, a->store->db, &(struct hf_transact_write){.del = &del},
                               del.key, &item);
    return status == HF_CONDITION ? HF_OK : status; /* others did, and may have taken it since */
}

/* The large append that was asked for last, as all events of one have the same answer. */
struct large_verdict {
    struct hf_str large;
    bool there;
};

/* Is the event of that id there? One of this very append is not yet. */
static enum hf_status match_decide(struct appending *a, const struct append_event *p,
                                   const struct events_place *place, struct large_verdict *judged,
                                   bool *found)
{
    *found = !place->large.len;
    if (*found || hf_str_equal(place->large, a->begun) ||
        hf_str_equal(place->large, a->begun_before))
        return HF_OK;
    if (!hf_str_equal(judged->large, place->large)) {
        TRY(large_decide(a, place, &judged->there));
        judged->large = place->large;
    }
    *found = judged->there;
    return *found ? HF_OK : id_free(a, p, place->large);
}

/* The event that has that position, and it for its id. */
static enum hf_status match_position(struct appending *a, struct id_match *m)
{
    uint8_t *content = hf_scope_alloc(a->s, EVENTS_HASH);
    struct hf_stored_event event;
    enum hf_status status;
    struct hf_str pk;

    TRY(hf_scope_built(a->s));
    status = hf__events_find(a->s, a->store, m->pending->event.id, &event);
    if (status != HF_OK)
        return status == HF_NOT_FOUND ? HF_OK : status;
    TRY(hf__events_stream_pk(a->s, 's', event.stream, &pk));
    hf__events_content(&event, content);
    m->place = (struct events_place){.stream = hf_str_of(pk.ptr + 2, pk.len - 2),
                                     .version = event.version,
                                     .position = event.position};
    m->content = hf_bytes_of(content, EVENTS_HASH);
    m->found = true;
    return HF_OK;
}

static bool may_be_position(const struct id_match *m)
{
    return m->pending->chosen && !m->found &&
           hf__events_position_read(m->pending->event.id, NULL, NULL, NULL);
}

/* Ids that are positions of events of this store: most often there is not even a commit. */
static enum hf_status read_positions(struct appending *a, struct id_match *list)
{
    const struct hf_many_options options = {.size = sizeof(options), .consistent = true};
    struct hf_get *gets = hf_scope_alloc(a->s, 2 * a->positions * sizeof(*gets));
    struct hf_get_many_result result;
    size_t len = 0;

    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->events_len; i++) {
        struct events_position base = {{0}};

        if (!may_be_position(&list[i]))
            continue;
        memcpy(base.text, list[i].pending->event.id.ptr, HF_POSITION_LEN);
        hf__events_position_number(&base, 0);
        for (int archived = 0; archived < 2; archived++)
            gets[len++] =
                (struct hf_get){.table = a->store->table,
                                .key = HF_ITEM(a->s,
                                               HF_S("pk",
                                                    hf__events_part_of(a->s, archived ? 'z' : 'a',
                                                                       position_str(&base))),
                                               HF_S("sk", position_str(&base)))};
    }
    TRY(hf_scope_built(a->s));
    assert(len <= 2 * a->positions);
    if (!len)
        return HF_OK;
    TRY(hf_get_many(a->s, a->store->db, gets, len, &options, &result));
    len = 0;
    for (size_t i = 0; i < a->events_len; i++) {
        if (!may_be_position(&list[i]))
            continue;
        len += 2;
        if (result.items[len - 2].ptr || result.items[len - 1].ptr)
            TRY(match_position(a, &list[i]));
    }
    return HF_OK;
}

static enum hf_status read_ids(struct appending *a, struct id_match *list)
{
    const struct hf_many_options options = {.size = sizeof(options), .consistent = true};
    struct hf_get *gets = hf_scope_alloc(a->s, a->events_len * sizeof(*gets));
    struct large_verdict judged = {.there = false};
    struct hf_get_many_result result;
    size_t len = 0;

    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->events_len; i++)
        if (a->events[i].chosen)
            gets[len++] = (struct hf_get){.table = a->store->table,
                                          .key = id_key(a->s, a->events[i].event.id)};
    TRY(hf_scope_built(a->s));
    TRY(hf_get_many(a->s, a->store->db, gets, len, &options, &result));
    len = 0;
    for (size_t i = 0; i < a->events_len; i++) {
        struct hf_item item = {NULL, 0};

        if (a->events[i].chosen)
            item = result.items[len++];
        if (!item.ptr)
            continue;
        TRY(hf__events_place_view(a->s, item, &list[i].place));
        list[i].content = hf_value_bytes(hf_item_get(item, HF_STR("h")));
        TRY(match_decide(a, &a->events[i], &list[i].place, &judged, &list[i].found));
    }
    return a->positions ? read_positions(a, list) : HF_OK;
}

/* "version 3 of stream "order/7"" */
static struct hf_str place_text(struct appending *a, const struct events_place *place)
{
    struct hf_str parts[2] = {HF_STR("?"), HF_STR("")};

    if (hf__pattern_key_parts(a->s, place->stream, parts, 2) != HF_OK)
        return place->stream;
    return hf_scope_format(
        a->s, "version %llu of stream \"%.*s\"", (unsigned long long)place->version,
        HF_FMT(hf__events_stream_text(a->s, (struct hf_event_stream_key){parts[0], parts[1]})));
}

static enum hf_status fail_taken(struct appending *a, const struct id_match *m, const char *but)
{
    struct hf_str place = place_text(a, &m->place);

    return hf_scope_fail(a->s, HF_DUPLICATE, "id \"%.*s\" is already used by %.*s, %s",
                         HF_FMT(m->pending->event.id), HF_FMT(place), but);
}

/* Is what is there what is to be appended? `before`: the event before it in the same stream. */
static enum hf_status match_check(struct appending *a, const struct id_match *m,
                                  const struct id_match *before)
{
    struct hf_str stream = hf_str_of(m->target->pk.ptr + 2, m->target->pk.len - 2);

    assert(m->found);
    if (!hf_str_equal(m->place.stream, stream))
        return fail_taken(a, m, "which is another stream");
    if (m->content.len != EVENTS_HASH ||
        memcmp(m->content.ptr, m->pending->content, EVENTS_HASH) != 0)
        return fail_taken(a, m, "with different content");
    if (before && m->place.version != before->place.version + 1)
        return fail_taken(a, m, "which does not follow the event before it");
    return HF_OK;
}

/* Some are there. */
static enum hf_status matches_check(struct appending *a, const struct id_match *list)
{
    const struct id_match *there = NULL;

    for (size_t i = 0; i < a->events_len && !there; i++)
        there = list[i].found ? &list[i] : NULL;
    assert(there);
    for (size_t i = 0; i < a->events_len; i++) {
        bool behind = i && list[i].target == list[i - 1].target && list[i - 1].found;

        if (list[i].found)
            TRY(match_check(a, &list[i], behind ? &list[i - 1] : NULL));
    }
    for (size_t i = 0; i < a->events_len; i++)
        if (!list[i].found)
            return fail_taken(a, there,
                              list[i].pending->chosen
                                  ? "but not all of these events exist"
                                  : "and other events of this append have no id");
    return HF_OK;
}

/* As they were answered then. */
static enum hf_status results_repeat(struct appending *a, const struct id_match *list)
{
    for (size_t i = 0; a->results && i < a->len; i++) {
        const struct append_target *t = &a->targets[i];
        struct hf_appended *result = &a->results[i];
        struct hf_str *ids = (struct hf_str *)(uintptr_t)result->ids;
        const struct id_match *last;

        result->repeated = true;
        result->last = t->head.version;
        if (!t->len)
            continue;
        last = &list[t->events - a->events + (ptrdiff_t)t->len - 1];
        assert(last->found && last->target == t && last->place.version >= t->len);
        result->first = last->place.version - t->len + 1;
        result->last = last->place.version;
        result->position = hf_scope_copy(a->s, last->place.position);
        for (size_t j = 0; j < t->len; j++)
            ids[j] = t->events[j].event.id;
    }
    return hf_scope_built(a->s);
}

enum hf_status hf__append_look_for_ids(struct appending *a, bool *repeated)
{
    struct id_match *list = hf_scope_alloc(a->s, a->events_len * sizeof(*list));
    size_t found = 0;

    assert(a->chosen > 0);
    *repeated = false;
    TRY(hf_scope_built(a->s));
    for (size_t i = 0, at = 0; i < a->len; i++)
        for (size_t j = 0; j < a->targets[i].len; j++, at++)
            list[at] =
                (struct id_match){.target = &a->targets[i], .pending = &a->targets[i].events[j]};
    TRY(read_ids(a, list));
    for (size_t i = 0; i < a->events_len; i++)
        found += list[i].found;
    if (!found)
        return HF_OK;
    TRY(matches_check(a, list));
    *repeated = true;
    return results_repeat(a, list);
}
