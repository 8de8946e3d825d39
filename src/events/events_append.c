/*
 * events/events_append.c: appending events.
 *
 * An append knows the heads of its streams (remembered from earlier appends, or read), takes a
 * position behind all of them, and sends one transaction:
 *
 *     with       what the caller wants to happen together with it
 *     head       of each stream: moves on, if it is where it was seen
 *     event      each event under its version
 *     commit     the events of each stream once more, in the order of all; not yet there
 *     marker     a check that this part of the order is open
 *     id         for each id that a caller chose: not taken
 *     related    for each cause and correlation
 *
 *  (1) All events are looked at before anything is sent.
 *  (2) A commit's key has a random part: when it is there, it is ours, and all of the transaction
 *      has happened. So a lost answer is settled by sending the same again. (Where the database is
 *      wrapped so that transactions have tokens, those settle it before.)
 *  (3) What is sent anew, with other positions and versions, is sent only once what was sent before
 *      cannot happen any more: a head has moved on, which never goes back; or the marker is closed,
 *      which never opens. A marker that was missing is made, and the same is sent again.
 *  (4) HF_CONDITION is said of heads as they are, never of remembered ones.
 *  (5) Events that are there by their ids are no mistake: expectations do not matter then.
 */
#include "events/append.h"

#include <holdfast/batch.h>

enum {
    ATTEMPTS = 10,
    MARKER_ATTEMPTS = 100, /* readers who close what we were about to use: we are always behind
                              them then */
    OWN_SIZE = 160         /* of an item: names, numbers, hash, position */
};

#define DEFAULT_CONTENT "application/json"

void *hf__append_keep(struct hf_scope *s, const void *request, size_t size)
{
    void *copy = hf_scope_alloc(s, size);

    return copy ? memcpy(copy, request, size) : NULL;
}

static struct hf_str target_text(const struct appending *a, const struct target *t)
{
    return hf__events_stream_text(a->s, t->append->stream);
}

/* ---- what is to be appended (1) ------------------------------------------------------------- */

static enum hf_status check_text(const struct appending *a, size_t number, const char *what,
                                 struct hf_str text, size_t max)
{
    if (text.len > max)
        return hf_scope_fail(a->s, HF_INVALID, "event %zu: its %s has %zu bytes, more than %zu",
                             number, what, text.len, max);
    return HF_OK;
}

static enum hf_status check_event(const struct appending *a, const struct hf_new_event *event,
                                  size_t number)
{
    if (!event->type.len)
        return hf_scope_fail(a->s, HF_INVALID, "event %zu has no type", number);
    TRY(check_text(a, number, "type", event->type, HF_EVENTS_TYPE_MAX));
    TRY(check_text(a, number, "id", event->id, HF_EVENTS_ID_MAX));
    TRY(check_text(a, number, "content type", event->content_type, HF_EVENTS_TYPE_MAX));
    TRY(check_text(a, number, "causation", event->causation, HF_EVENTS_ID_MAX));
    TRY(check_text(a, number, "correlation", event->correlation, HF_EVENTS_ID_MAX));
    TRY(check_text(a, number, "compensates", event->compensates, HF_EVENTS_ID_MAX));
    if (event->meta.ptr && hf_item_check(a->s, event->meta) != HF_OK) {
        if (hf_scope_error(a->s)->status == HF_NOMEM)
            return HF_NOMEM;
        return hf_scope_fail(a->s, HF_INVALID, "event %zu (%.*s): its meta is no item", number,
                             HF_FMT(event->type));
    }
    return HF_OK;
}

static struct hf_str first_of(struct hf_str one, struct hf_str other)
{
    return one.len ? one : other;
}

static size_t size_of(const struct hf_stored_event *e, size_t pk_len)
{
    return OWN_SIZE + pk_len + e->payload.len + e->type.len + e->causation.len +
           e->correlation.len + e->compensates.len + e->id.len + e->content_type.len +
           (e->meta.ptr ? hf_item_size(e->meta) : 0);
}

/* What does not depend on where it will be. An id that we make is known when it is placed, and so
 * is a correlation that is its own. */
static enum hf_status prepare_event(struct appending *a, const struct target *t,
                                    const struct hf_new_event *given, struct pending *p,
                                    int64_t now_us)
{
    const struct hf_stored_event *parent = a->o.parent;
    size_t number = (size_t)(p - a->events) + 1;

    TRY(check_event(a, given, number));
    *p = (struct pending){.chosen = given->id.len > 0};
    p->event = (struct hf_stored_event){
        .id = given->id,
        .stream = t->append->stream,
        .type = given->type,
        .payload = given->payload,
        .content_type = first_of(given->content_type, HF_STR(DEFAULT_CONTENT)),
        .schema = given->schema ? given->schema : 1,
        .time_us = given->time_us ? given->time_us : now_us,
        .meta =
            given->meta.ptr && hf_item_count(given->meta) ? given->meta : (struct hf_item){NULL, 0},
        .causation = first_of(given->causation, parent ? parent->id : hf_str_of(NULL, 0)),
        .correlation =
            first_of(given->correlation, parent ? parent->correlation : hf_str_of(NULL, 0)),
        .compensates = given->compensates};
    if (p->chosen && hf_str_equal(p->event.correlation, p->event.id))
        p->event.correlation = hf_str_of(NULL, 0);
    a->chosen += p->chosen;
    a->related +=
        (p->event.causation.len > 0) +
        (p->event.correlation.len > 0 && !hf_str_equal(p->event.causation, p->event.correlation));
    p->size = size_of(&p->event, t->pk.len);
    if (p->size > a->store->blob_bytes)
        return hf_scope_fail(a->s, HF_LIMIT,
                             "event %zu (%.*s) has %zu bytes, of these %zu of payload: more than "
                             "the %u of an item, and there is no blob store",
                             number, HF_FMT(given->type), p->size, given->payload.len,
                             a->store->blob_bytes);
    hf__events_content(&p->event, p->content);
    a->bytes += 2 * p->size;
    return HF_OK;
}

static enum hf_status prepare_target(struct appending *a, const struct hf_append *append,
                                     struct target *t)
{
    *t = (struct target){.append = append,
                         .events = a->events + a->events_len,
                         .len = append->events_len};
    TRY(hf__events_stream_pk(a->s, 's', append->stream, &t->pk));
    for (struct target *other = a->targets; other < t; other++)
        if (hf_str_equal(other->pk, t->pk))
            return hf_scope_fail(a->s, HF_INVALID, "stream \"%.*s\" is named twice",
                                 HF_FMT(target_text(a, t)));
    if ((unsigned)append->expect > HF_EXPECT_VERSION)
        return hf_scope_fail(a->s, HF_INVALID, "stream \"%.*s\": %d is no expectation",
                             HF_FMT(target_text(a, t)), (int)append->expect);
    return HF_OK;
}

static enum hf_status prepare(struct appending *a, const struct hf_append *appends)
{
    int64_t now_us = a->store->env.wall_us(a->store->env.user);
    size_t total = 0;

    if (a->len == 0 || a->len > HF_EVENTS_STREAMS_MAX)
        return hf_scope_fail(a->s, a->len ? HF_LIMIT : HF_INVALID,
                             "an append to %zu streams: it may have 1 to %d", a->len,
                             HF_EVENTS_STREAMS_MAX);
    for (size_t i = 0; i < a->len; i++) {
        if (appends[i].events_len > HF_EVENTS_APPEND_MAX - total)
            return hf_scope_fail(a->s, HF_LIMIT, "an append of more than %d events",
                                 HF_EVENTS_APPEND_MAX);
        total += appends[i].events_len;
    }
    a->targets = hf_scope_alloc(a->s, a->len * sizeof(*a->targets));
    a->events = hf_scope_alloc(a->s, (total + 1) * sizeof(*a->events));
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->len; i++) {
        TRY(prepare_target(a, &appends[i], &a->targets[i]));
        for (size_t j = 0; j < appends[i].events_len; j++, a->events_len++)
            TRY(prepare_event(a, &a->targets[i], &appends[i].events[j], &a->targets[i].events[j],
                              now_us));
    }
    return a->chosen > 1 ? hf__append_check_ids(a) : HF_OK;
}

/* ---- heads and expectations ----------------------------------------------------------------- */

/* May the head be taken to be that of a stream without events, as nothing else would do? */
static bool is_to_be_new(const struct target *t)
{
    return t->append->expect == HF_EXPECT_NONE ||
           (t->append->expect == HF_EXPECT_VERSION && t->append->version == 0);
}

static enum hf_status read_heads(struct appending *a)
{
    struct hf_get *gets = hf_scope_alloc(a->s, a->len * sizeof(*gets));
    const struct hf_many_options options = {.size = sizeof(options), .consistent = true};
    struct hf_get_many_result result;
    size_t len = 0;

    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->len; i++)
        if (!a->targets[i].known)
            gets[len++] = (struct hf_get){.table = a->store->table,
                                          .key = HF_ITEM(a->s, HF_S("pk", a->targets[i].pk),
                                                         HF_S("sk", HF_STR("h")))};
    TRY(hf_get_many(a->s, a->store->db, gets, len, &options, &result));
    len = 0;
    for (size_t i = 0; i < a->len; i++)
        if (!a->targets[i].known)
            TRY(hf__append_learn(a, &a->targets[i], result.items[len++]));
    return HF_OK;
}

static enum hf_status look_up(struct appending *a, bool remembered)
{
    struct target *unknown = NULL;
    size_t count = 0;

    for (size_t i = 0; i < a->len; i++) {
        struct target *t = &a->targets[i];

        if (t->known)
            continue;
        if (remembered && t->len)
            t->known = hf__events_heads_find(a->store, t->pk, &t->head) || is_to_be_new(t);
        if (!t->known) {
            unknown = t;
            count++;
        }
    }
    if (count > 1)
        return read_heads(a);
    if (!unknown)
        return HF_OK;
    TRY(hf__events_head_read(a->s, a->store, unknown->pk, &unknown->head));
    unknown->known = unknown->fresh = true;
    return HF_OK;
}

enum hf_status hf__append_learn(struct appending *a, struct target *t, struct hf_item item)
{
    TRY(hf__events_head_view(a->s, item, &t->head));
    hf__events_observe(a->store, position_str(&t->head.position));
    t->known = t->fresh = true;
    hf__events_heads_drop(a->store, t->pk);
    return HF_OK;
}

static bool is_expected(const struct target *t)
{
    switch (t->append->expect) {
    case HF_EXPECT_NONE:
        return t->head.version == 0;
    case HF_EXPECT_EXISTS:
        return t->head.version > 0;
    case HF_EXPECT_VERSION:
        return t->head.version == t->append->version;
    case HF_EXPECT_ANY:
        break;
    }
    return true;
}

static bool is_possible(const struct target *t)
{
    return t->head.state == EVENTS_LIVE && is_expected(t);
}

static struct hf_str expectation(const struct appending *a, const struct target *t)
{
    if (is_to_be_new(t))
        return HF_STR("there was to be none");
    if (t->append->expect == HF_EXPECT_EXISTS)
        return HF_STR("there was to be one");
    return hf_scope_format(a->s, "it was to be at %llu", (unsigned long long)t->append->version);
}

static enum hf_status refuse(const struct appending *a, const struct target *t)
{
    struct hf_str name = target_text(a, t);

    for (size_t i = 0; a->results && i < a->len; i++)
        if (a->targets[i].fresh)
            a->results[i].last = a->targets[i].head.version;
    if (t->head.state == EVENTS_DELETED)
        return hf_scope_fail(a->s, HF_LOST, "stream \"%.*s\" was deleted for good", HF_FMT(name));
    if (t->head.state == EVENTS_ARCHIVED)
        return hf_scope_fail(a->s, HF_IN_USE, "stream \"%.*s\" is archived", HF_FMT(name));
    if (!t->head.version)
        return hf_scope_fail(a->s, HF_CONDITION, "stream \"%.*s\" has no event, but %.*s",
                             HF_FMT(name), HF_FMT(expectation(a, t)));
    return hf_scope_fail(a->s, HF_CONDITION, "stream \"%.*s\" is at version %llu, but %.*s",
                         HF_FMT(name), (unsigned long long)t->head.version,
                         HF_FMT(expectation(a, t)));
}

/* (4) (5) */
enum hf_status hf__append_heads(struct appending *a, bool remembered, bool *repeated)
{
    *repeated = false;
    for (;;) {
        struct target *bad = NULL;

        TRY(look_up(a, remembered));
        for (size_t i = 0; i < a->len && !bad; i++)
            if (!is_possible(&a->targets[i]))
                bad = &a->targets[i];
        if (!bad)
            return HF_OK;
        if (bad->fresh) {
            if (a->chosen)
                TRY(hf__append_look_for_ids(a, repeated));
            return *repeated ? HF_OK : refuse(a, bad);
        }
        for (size_t i = 0; i < a->len; i++)
            a->targets[i].known = a->targets[i].fresh;
        remembered = false;
    }
}

/* ---- where everything will be --------------------------------------------------------------- */

/* Divide the events of the streams among commits. */
static enum hf_status divide(struct appending *a)
{
    size_t max = a->len + a->events_len; /* no commit is empty */

    if (a->commits)
        return HF_OK;
    a->commits = hf_scope_alloc(a->s, max * sizeof(*a->commits));
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->len; i++) {
        struct commit *commit = NULL;
        size_t bytes = 0;

        for (size_t j = 0; j < a->targets[i].len; j++) {
            size_t size = a->targets[i].events[j].size;

            if (!commit || commit->len == EVENTS_COMMIT_MAX || bytes + size > EVENTS_COMMIT_BYTES) {
                commit = &a->commits[a->commits_len++];
                *commit = (struct commit){.target = &a->targets[i], .first = j};
                bytes = a->targets[i].pk.len + OWN_SIZE;
            }
            commit->len++;
            bytes += size;
        }
    }
    return HF_OK;
}

static void place_event(struct appending *a, struct target *t, struct pending *p,
                        const struct events_position *base, uint32_t number)
{
    struct hf_stored_event *e = &p->event;

    p->position = *base;
    hf__events_position_number(&p->position, number);
    e->position = position_str(&p->position);
    e->version = ++t->next.version;
    hf__events_version_text(e->version, p->sk);
    if (!p->chosen)
        e->id = e->position;
    if (a->store->chain) {
        hf__events_chain(e, p->content, t->next.hash, p->hash);
        memcpy(t->next.hash, p->hash, EVENTS_HASH);
        e->hash = hf_bytes_of(p->hash, EVENTS_HASH);
    }
    t->next.position = p->position;
}

/* The map, with a correlation that is the event's own left out. */
static struct hf_item map_of(struct appending *a, struct pending *p)
{
    struct hf_stored_event event = p->event;

    if (!event.correlation.len)
        event.correlation = event.id;
    return hf__events_map(a->s, &event);
}

/* Why an event has no map: a text that is not UTF-8. */
static enum hf_status blame(struct appending *a, const struct pending *p)
{
    const struct hf_stored_event *e = &p->event;
    const struct {
        const char *name;
        struct hf_str text;
    } texts[] = {{"type", e->type},
                 {"id", e->id},
                 {"content type", e->content_type},
                 {"causation", e->causation},
                 {"correlation", e->correlation},
                 {"compensates", e->compensates}};

    if (hf_scope_error(a->s)->status != HF_INVALID)
        return hf_scope_error(a->s)->status;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].text.len &&
            hf_item_check(a->s, HF_ITEM(a->s, HF_S("text", texts[i].text))) == HF_INVALID)
            return hf_scope_fail(a->s, HF_INVALID, "event %zu: its %s is not UTF-8",
                                 (size_t)(p - a->events) + 1, texts[i].name);
    return hf_scope_fail(a->s, HF_INVALID,
                         "event %zu (%.*s) cannot be stored: its meta is too deep",
                         (size_t)(p - a->events) + 1, HF_FMT(e->type));
}

enum hf_status hf__append_place(struct appending *a)
{
    struct events_position base;

    TRY(divide(a));
    for (size_t i = 0; i < a->len; i++) {
        struct target *t = &a->targets[i];

        t->next = t->head;
        hf__events_observe(a->store, position_str(&t->head.position));
    }
    if (!a->commits_len)
        return HF_OK;
    base = hf__events_position_make(a->store, a->shard, (uint32_t)a->commits_len);
    for (size_t i = 0; i < a->commits_len; i++) {
        struct commit *commit = &a->commits[i];

        commit->position = hf__events_position_later(&base, (uint32_t)i);
        for (size_t j = 0; j < commit->len; j++) {
            struct pending *p = &commit->target->events[commit->first + j];

            place_event(a, commit->target, p, &commit->position, (uint32_t)j);
            p->map = map_of(a, p);
            if (hf_item_check(a->s, p->map) != HF_OK)
                return blame(a, p);
        }
    }
    return HF_OK;
}

/* ---- actions -------------------------------------------------------------------------------- */

enum hf_status hf__append_add(struct appending *a, struct hf_transact_write action,
                              enum action_kind kind, size_t index)
{
    if (!action.check && !action.put && !action.del && !action.update)
        return hf_scope_built(a->s); /* its request could not be kept */
    assert(a->actions_len < HF_TX_ACTIONS_MAX);
    a->actions[a->actions_len] = action;
    a->what[a->actions_len++] = (struct action_of){kind, (uint32_t)index};
    return HF_OK;
}

static struct hf_item values_of_head(struct appending *a, const struct target *t)
{
    struct hf_attr attrs[4];
    size_t len = 0;

    if (a->store->chain)
        attrs[len++] = (struct hf_attr)HF_B(":h", hf_bytes_of(t->next.hash, EVENTS_HASH));
    attrs[len++] = (struct hf_attr)HF_S(":p", position_str(&t->next.position));
    if (t->head.version)
        attrs[len++] = (struct hf_attr)HF_S(":s", position_str(&t->head.position));
    attrs[len++] = (struct hf_attr)HF_N(":v", t->next.version);
    return hf_item_make(a->s, attrs, len);
}

/* The stream has an event, so it is at no other version than it was. */
static struct hf_update_item head_update(struct appending *a, const struct target *t)
{
    return (struct hf_update_item){
        .table = a->store->table,
        .key = HF_ITEM(a->s, HF_S("pk", t->pk), HF_S("sk", HF_STR("h"))),
        .update = a->store->chain ? HF_STR("SET #v = :v, #p = :p, #h = :h")
                                  : HF_STR("SET #v = :v, #p = :p"),
        .condition = t->head.version
                         ? HF_STR("#p = :s AND attribute_not_exists(#x)")
                         : HF_STR("attribute_not_exists(#p) AND attribute_not_exists(#x)"),
        .names = a->store->names_head,
        .values = values_of_head(a, t),
        .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
}

/* The stream gets no event: it is only to be as it was expected. */
static struct hf_condition_check head_check(struct appending *a, const struct target *t)
{
    struct hf_condition_check check = {.table = a->store->table,
                                       .key = HF_ITEM(a->s, HF_S("pk", t->pk),
                                                      HF_S("sk", HF_STR("h"))),
                                       .names = HF_ITEM(a->s, HF_S("#p", HF_STR("p")),
                                                        HF_S("#x", HF_STR("x"))),
                                       .returns_on_failure = HF_ON_FAILURE_ALL_OLD};

    if (t->head.version == 0) {
        check.condition = HF_STR("attribute_not_exists(#p) AND attribute_not_exists(#x)");
    } else if (t->append->expect == HF_EXPECT_EXISTS) {
        check.condition = HF_STR("attribute_exists(#p) AND attribute_not_exists(#x)");
    } else {
        check.condition = HF_STR("#p = :s AND attribute_not_exists(#x)");
        check.values = HF_ITEM(a->s, HF_S(":s", position_str(&t->head.position)));
    }
    return check;
}

enum hf_status hf__append_head_action(struct appending *a, size_t i)
{
    struct target *t = &a->targets[i];

    if (t->len) {
        struct hf_update_item update = head_update(a, t);

        return hf__append_add(a, (struct hf_transact_write){.update = APPEND_KEEP(a->s, update)},
                              ACTION_HEAD, i);
    }
    if (t->append->expect != HF_EXPECT_ANY) {
        struct hf_condition_check check = head_check(a, t);

        return hf__append_add(a, (struct hf_transact_write){.check = APPEND_KEEP(a->s, check)},
                              ACTION_HEAD, i);
    }
    return HF_OK;
}

static enum hf_status add_put(struct appending *a, struct hf_item item, bool is_new,
                              enum action_kind kind, size_t index)
{
    struct hf_put_item put = {.table = a->store->table, .item = item};

    if (is_new) {
        put.condition = HF_STR("attribute_not_exists(#pk)");
        put.names = a->store->names_pk;
        put.returns_on_failure =
            kind == ACTION_ID ? HF_ON_FAILURE_ALL_OLD : (enum hf_return_on_failure)0;
    }
    return hf__append_add(a, (struct hf_transact_write){.put = APPEND_KEEP(a->s, put)}, kind,
                          index);
}

/* The item of the order of all; its attributes are in the order in which items keep them. */
static enum hf_status add_commit(struct appending *a, size_t i)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    const struct commit *commit = &a->commits[i];
    const struct target *t = commit->target;
    struct hf_str position = position_str(&commit->position);
    struct hf_attr *attrs = hf_scope_alloc(a->s, (commit->len + 5) * sizeof(*attrs));
    char *names = hf_scope_alloc(a->s, 3 * commit->len);
    size_t len = 0;

    TRY(hf_scope_built(a->s));
    attrs[len++] = (struct hf_attr)HF_S("d", t->append->stream.domain);
    if (t->append->stream.id.len)
        attrs[len++] = (struct hf_attr)HF_S("i", t->append->stream.id);
    attrs[len++] = (struct hf_attr)HF_S("pk", hf__events_part_of(a->s, 'a', position));
    attrs[len++] = (struct hf_attr)HF_S("sk", position);
    attrs[len++] = (struct hf_attr)HF_N("v", t->events[commit->first].event.version);
    for (size_t j = 0; j < commit->len; j++, names += 3) {
        names[0] = 'x';
        names[1] = digits[j >> 5];
        names[2] = digits[j & 31];
        attrs[len++] = (struct hf_attr){.name = hf_str_of(names, 3),
                                        .value = hf_item_value(t->events[commit->first + j].map)};
    }
    return add_put(a, hf_item_make(a->s, attrs, len), true, ACTION_COMMIT, i);
}

static enum hf_status add_related(struct appending *a, const struct target *t,
                                  const struct pending *p, struct hf_str id, int what)
{
    struct hf_str stream = hf_str_of(t->pk.ptr + 2, t->pk.len - 2);

    return add_put(a,
                   HF_ITEM(a->s, HF_S("pk", hf__pattern_join(a->s, HF_STR("r."), id)),
                           HF_S("s", stream), HF_S("sk", p->event.position),
                           HF_N("v", p->event.version), HF_N("w", what)),
                   false, ACTION_RELATED, (size_t)(p - a->events));
}

static enum hf_status add_event(struct appending *a, const struct target *t,
                                const struct pending *p)
{
    const struct hf_stored_event *e = &p->event;
    bool both = hf_str_equal(e->causation, e->correlation);
    size_t index = (size_t)(p - a->events);

    TRY(add_put(a,
                hf__events_item(a->s, t->pk, hf_str_of(p->sk, EVENTS_VERSION_LEN), e->position,
                                p->map),
                false, ACTION_EVENT, index));
    if (p->chosen)
        TRY(add_put(a, hf__append_id_item(a, t, p, hf_str_of(NULL, 0), 0), true, ACTION_ID, index));
    if (e->causation.len)
        TRY(add_related(a, t, p, e->causation, both ? 3 : 1));
    if (e->correlation.len && !both)
        TRY(add_related(a, t, p, e->correlation, 2));
    return HF_OK;
}

static enum hf_status add_marker(struct appending *a)
{
    struct hf_condition_check check =
        hf__events_marker_check(a->s, a->store, position_str(&a->commits[0].position));

    return hf__append_add(a, (struct hf_transact_write){.check = APPEND_KEEP(a->s, check)},
                          ACTION_MARKER, 0);
}

enum hf_status hf__append_actions(struct appending *a)
{
    a->actions = hf_scope_alloc(a->s, HF_TX_ACTIONS_MAX * sizeof(*a->actions));
    a->what = hf_scope_alloc(a->s, HF_TX_ACTIONS_MAX * sizeof(*a->what));
    a->actions_len = 0;
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->o.with_len; i++)
        TRY(hf__append_add(a, a->o.with[i], ACTION_WITH, i));
    for (size_t i = 0; i < a->len; i++) {
        TRY(hf__append_head_action(a, i));
        for (size_t j = 0; j < a->targets[i].len; j++)
            TRY(add_event(a, &a->targets[i], &a->targets[i].events[j]));
    }
    for (size_t i = 0; i < a->commits_len; i++)
        TRY(add_commit(a, i));
    if (a->commits_len)
        TRY(add_marker(a));
    return hf_scope_built(a->s);
}

/* ---- what became of it ---------------------------------------------------------------------- */

/* The reasons of a refusal, sorted by what they are about. */
struct refusal {
    bool done;     /* the commit is there (2) */
    bool ids;      /* an id is taken */
    bool heads;    /* a stream has moved on; its head is known again */
    bool marker;   /* the marker is missing or closed */
    bool with;     /* the caller's own conditions */
    bool conflict; /* others at the same time */
    bool throttled;
    const struct hf_cancel_reason *invalid;
    struct hf_item marker_item;
};

static bool is_code(const struct hf_cancel_reason *reason, const char *code)
{
    return hf_str_equal(reason->code, hf_str_from(code));
}

static void note_refused(const struct appending *a, size_t i, const struct hf_cancel_reason *reason,
                         struct refusal *r)
{
    switch (a->what[i].kind) {
    case ACTION_COMMIT:
        r->done = true;
        break;
    case ACTION_ID:
        r->ids = true;
        break;
    case ACTION_HEAD:
        r->heads = true;
        a->targets[a->what[i].index].known = a->targets[a->what[i].index].fresh = false;
        break;
    case ACTION_MARKER:
        r->marker = true;
        r->marker_item = reason->item;
        break;
    default:
        r->with = true;
        break;
    }
}

static struct refusal read_refusal(const struct appending *a, const struct hf_error *error)
{
    struct refusal r = {.done = false};

    for (size_t i = 0; i < error->reasons_len && i < a->actions_len; i++) {
        const struct hf_cancel_reason *reason = &error->reasons[i];

        if (is_code(reason, "ConditionalCheckFailed"))
            note_refused(a, i, reason, &r);
        else if (is_code(reason, "TransactionConflict"))
            r.conflict = true;
        else if (is_code(reason, "ThrottlingError") ||
                 is_code(reason, "ProvisionedThroughputExceeded"))
            r.throttled = true;
        else if (!is_code(reason, "None") && !r.invalid)
            r.invalid = reason;
    }
    return r;
}

/* What the refusal told about heads, and what it did not tell. */
static enum hf_status learn_heads(struct appending *a, const struct hf_error *error)
{
    const struct hf_cancel_reason *reasons = error->reasons;
    size_t len = error->reasons_len;

    for (size_t i = 0; i < len && i < a->actions_len; i++)
        if (a->what[i].kind == ACTION_HEAD && reasons[i].item.ptr &&
            !a->targets[a->what[i].index].known)
            TRY(hf__append_learn(a, &a->targets[a->what[i].index], reasons[i].item));
    for (size_t i = 0; i < a->len; i++)
        if (!a->targets[i].known) {
            hf__events_heads_drop(a->store, a->targets[i].pk);
            TRY(hf__events_head_read(a->s, a->store, a->targets[i].pk, &a->targets[i].head));
            a->targets[i].known = a->targets[i].fresh = true;
        }
    return HF_OK;
}

/* *made: it was missing, so what was sent can be sent again; else it is closed. */
static enum hf_status pass_marker(struct appending *a, struct hf_item item, bool *made)
{
    struct hf_str position = position_str(&a->commits[0].position);
    struct hf_str closed;

    if (!item.ptr) {
        struct hf_condition_check check = hf__events_marker_check(a->s, a->store, position);

        TRY(hf_scope_built(a->s));
        TRY(hf__pattern_read(a->s, a->store->db, a->store->table, check.key, &item));
    }
    *made = !item.ptr;
    if (!item.ptr)
        return hf__events_marker_make(a->s, a->store, position);
    closed = hf_value_str(hf_item_get(item, HF_STR("c")));
    hf__events_observe(a->store, closed);
    return HF_OK;
}

/* Is the first commit there? Asked when what was sent before may have happened. (3) */
static enum hf_status is_there(struct appending *a, bool *there)
{
    struct hf_str position = position_str(&a->commits[0].position);
    struct hf_item item;

    *there = false;
    if (!a->doubtful || !a->commits_len)
        return HF_OK;
    TRY(hf__pattern_read(a->s, a->store->db, a->store->table,
                         HF_ITEM(a->s, HF_S("pk", hf__events_part_of(a->s, 'a', position)),
                                 HF_S("sk", position)),
                         &item));
    *there = item.ptr != NULL;
    return HF_OK;
}

static enum hf_status cannot(struct appending *a, const struct hf_error *error,
                             const struct refusal *r)
{
    if (r->with)
        return error->status;
    if (r->invalid)
        return hf_scope_fail(a->s, HF_INVALID, "%.*s: %.*s", HF_FMT(r->invalid->code),
                             HF_FMT(r->invalid->message));
    return error->status;
}

/* It was refused. *again: the same can be sent again, after a while. */
static enum hf_status judge_refusal(struct appending *a, enum append_verdict *verdict, bool *again)
{
    struct hf_error error = *hf_scope_error(a->s);
    struct refusal r = read_refusal(a, &error);
    bool there = r.done, made = true;

    if (!there)
        TRY(is_there(a, &there));
    if (there) {
        *verdict = APPEND_DONE;
        return HF_OK;
    }
    if (r.ids) {
        bool repeated;

        TRY(hf__append_look_for_ids(a, &repeated));
        *verdict = repeated ? APPEND_REPEATED : APPEND_ANEW;
        a->doubtful = false; /* the id is taken for good */
        if (repeated || !r.heads)
            return HF_OK;
    }
    if (r.heads)
        TRY(learn_heads(a, &error));
    if (r.marker)
        TRY(pass_marker(a, r.marker_item, &made));
    *again = !r.heads && (made || !r.marker) && (r.marker || r.conflict || r.throttled) && !r.with;
    if (*again)
        return HF_OK;
    if ((!r.heads && made) || (r.with && !r.heads))
        return cannot(a, &error, &r);
    a->doubtful = false; /* (3) */
    *verdict = APPEND_ANEW;
    return HF_OK;
}

static enum hf_status busy(struct appending *a, uint32_t attempts)
{
    return hf_scope_fail(a->s, HF_TX_CONFLICT, "stream \"%.*s\": others were faster, %u times",
                         HF_FMT(target_text(a, &a->targets[0])), attempts);
}

enum hf_status hf__append_wait(struct appending *a, uint32_t attempt)
{
    uint32_t delay_ms = attempt < 8 ? APPEND_FIRST_DELAY_MS << attempt : APPEND_DELAY_MAX_MS;

    if (attempt >= a->o.attempts)
        return busy(a, attempt);
    return hf_scope_sleep_ms(a->s,
                             hf__pattern_jitter_ms(&a->store->env, delay_ms < APPEND_DELAY_MAX_MS
                                                                       ? delay_ms
                                                                       : APPEND_DELAY_MAX_MS));
}

enum hf_status hf__append_send(struct appending *a, enum append_verdict *verdict)
{
    const struct hf_transact_write_items request = {.actions = a->actions,
                                                    .actions_len = a->actions_len};

    for (uint32_t attempt = 1;; attempt++) {
        enum hf_status status = hf_transact_write_items(a->s, a->store->db, &request, NULL);
        const struct hf_error *error = hf_scope_error(a->s);
        bool again = error->may_retry || status == HF_TX_CONFLICT || error->may_have_happened;

        *verdict = APPEND_DONE;
        if (status == HF_OK)
            return HF_OK;
        if (error->may_have_happened)
            a->doubtful = true;
        if (status == HF_TX_CANCELED) {
            again = false;
            status = judge_refusal(a, verdict, &again);
            if (status == HF_OK && !again)
                return HF_OK;
        }
        if (!again || attempt >= a->o.attempts)
            return a->doubtful ? hf_scope_doubt(a->s) : hf_scope_error(a->s)->status;
        status = hf__append_wait(a, attempt);
        if (status != HF_OK)
            return a->doubtful ? hf_scope_doubt(a->s) : status;
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

void hf__append_results(struct appending *a)
{
    for (size_t i = 0; a->results && i < a->len; i++) {
        const struct target *t = &a->targets[i];
        struct hf_str *ids = (struct hf_str *)(uintptr_t)a->results[i].ids;

        a->results[i].first = t->len ? t->head.version + 1 : t->head.version;
        a->results[i].last = t->next.version;
        a->results[i].position = position_str(&t->next.position);
        for (size_t j = 0; j < t->len; j++)
            ids[j] = t->events[j].event.id;
    }
}

void hf__append_done(struct appending *a)
{
    for (size_t i = 0; i < a->len; i++)
        if (a->targets[i].len)
            hf__events_heads_keep(a->store, a->targets[i].pk, &a->targets[i].next);
    hf__append_results(a);
    if (a->events_len)
        hf__events_wake(a->store);
}

/* What the results point to lives in the scope: ids that the caller chose are copied. */
static enum hf_status make_results(struct appending *a)
{
    for (size_t i = 0; a->results && i < a->len; i++)
        a->results[i].ids =
            hf_scope_alloc(a->s, (a->targets[i].len + 1) * sizeof(*a->results[i].ids));
    for (size_t i = 0; a->results && i < a->events_len; i++)
        if (a->events[i].chosen)
            a->events[i].event.id = hf_scope_copy(a->s, a->events[i].event.id);
    return hf_scope_built(a->s);
}

/* At most; an item of the order of all may be needed for each event. */
static size_t actions_of(const struct appending *a)
{
    return a->o.with_len + 2 * a->len + a->events_len + a->chosen + a->related + 1 +
           a->bytes / 2 / (EVENTS_COMMIT_BYTES / 2);
}

static enum hf_status run(struct appending *a)
{
    struct hf_scope_mark mark = hf_scope_mark(a->s);
    uint32_t moved = 0;

    for (uint32_t attempt = 1;; attempt++) {
        enum append_verdict verdict = APPEND_DONE;
        bool repeated, fresh = false;

        TRY(hf__append_heads(a, attempt == 1, &repeated));
        if (repeated)
            return HF_OK;
        TRY(hf__append_place(a));
        TRY(hf__append_actions(a));
        if (!a->actions_len)
            return HF_OK; /* expectations that were held against heads as they are */
        TRY(hf__append_send(a, &verdict));
        if (verdict == APPEND_REPEATED)
            return HF_OK;
        if (verdict == APPEND_DONE) {
            hf__append_done(a);
            return HF_OK;
        }
        for (size_t i = 0; i < a->len; i++)
            fresh = fresh || a->targets[i].fresh;
        if (++moved >= (fresh ? a->o.attempts : MARKER_ATTEMPTS))
            return busy(a, moved);
        hf_scope_rewind(a->s, mark);
        a->commits = NULL;
        a->commits_len = 0;
    }
}

enum hf_status hf_events_append(struct hf_scope *s, struct hf_events *store,
                                const struct hf_append *appends, size_t len,
                                const struct hf_append_options *options,
                                struct hf_appended *results)
{
    struct appending a = {.s = s, .store = store, .len = len, .results = results};
    struct hf_scope_mark mark = hf_scope_mark(s);
    enum hf_status status;

    OPTIONS_COPY(&a.o, options);
    a.o.attempts = a.o.attempts ? a.o.attempts : ATTEMPTS;
    if (results)
        memset(results, 0, len * sizeof(*results));
    TRY(prepare(&a, appends));
    TRY(make_results(&a));
    if (actions_of(&a) > HF_TX_ACTIONS_MAX || a.bytes > EVENTS_TX_BYTES)
        return hf_scope_fail(s, HF_LIMIT, "more events than fit into a transaction");
    a.shard = hf__events_shard_take(store);
    status = run(&a);
    hf__events_shard_give(store, a.shard);
    if (status == HF_OK) {
        if (!results)
            hf_scope_rewind(s, mark);
        return hf_scope_fail(s, HF_OK, "%s", "");
    }
    return status;
}
