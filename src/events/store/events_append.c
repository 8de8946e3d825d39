/*
 * events/store/events_append.c: appending events.
 *
 * An append knows the heads of its streams (remembered from earlier appends, or read), takes a
 * position behind all of them, and sends one transaction:
 *
 *     with       what the caller wants to happen together with it
 *     head       of each stream: moves on, if it is where it was seen
 *     event      each event under its version
 *     commit     the events of each stream once more, in the global order; not yet there
 *     marker     a check that this part of the order is open
 *     id         for each id that a caller chose: not taken
 *     related    for each cause and correlation
 *
 *  (1) All events are looked at before anything is sent.
 *  (2) A commit's key has a random part: when it is there, it is ours, and all of the transaction
 *      has happened. So after a lost answer the same is sent again, and the refusal tells. (Where
 *      the database is wrapped so that transactions have tokens, those tell before.)
 *  (3) A new attempt, with other positions and versions, is made only once the request before it
 *      cannot happen any more: a head has moved on, which never goes back; or the marker is closed,
 *      which never opens. A marker that was missing is made, and the same is sent again. A stream
 *      that was archived has its head where it was, and may be put back: there is no new attempt
 *      then, and the failure says that the request may still happen.
 *  (4) HF_CONDITION is said of heads as they are, never of remembered ones.
 *  (5) Events that are there by their ids are no mistake: expectations do not matter then.
 */
#include "events/store/append.h"

#include "base/assert_held.h"

#include <holdfast/batch.h>

enum {
    ATTEMPTS = 10,
    OWN_SIZE = 160 /* of an item: names, numbers, hash, position */
};

#define DEFAULT_CONTENT "application/json"

static struct hf_str target_text(const struct appending *a, const struct append_target *t)
{
    return hf__events_stream_text(a->s, t->append->stream);
}

void hf__append_check(const struct appending *a)
{
    size_t events = 0, divided = 0;

    assert(a->len >= 1 && a->len <= HF_EVENTS_STREAMS_MAX);
    assert(a->chosen <= a->events_len && a->positions <= a->chosen);
    assert(a->related <= 2 * a->events_len && a->commits_len <= a->events_len);
    for (size_t i = 0; i < a->len; i++) {
        assert(a->targets[i].events == a->events + events); /* one behind the other */
        assert(a->targets[i].known || !a->targets[i].fresh);
        events += a->targets[i].len;
    }
    for (size_t i = 0; i < a->commits_len; i++) {
        const struct append_commit *commit = &a->commits[i];

        assert(commit->len >= 1 && commit->len <= EVENTS_COMMIT_MAX);
        assert(commit->target->events + commit->first == a->events + divided);
        divided += commit->len;
    }
    assert(events == a->events_len && divided == a->events_len);
}

/* ---- what is to be appended (1) ------------------------------------------------------------- */

static enum hf_status check_text(const struct appending *a, size_t number, const char *what,
                                 struct hf_error_limit limit)
{
    if (limit.actual > limit.max)
        return hf_scope_fail_limit(a->s, HF_INVALID, limit,
                                   "event %zu: its %s has %zu bytes, at most %zu are allowed",
                                   number, what, (size_t)limit.actual, (size_t)limit.max);
    return HF_OK;
}

static enum hf_status check_event(const struct appending *a, const struct hf_new_event *event,
                                  size_t number)
{
    if (!event->type.len)
        return hf_scope_fail(a->s, HF_INVALID, "event %zu has no type", number);
    TRY(check_text(a, number, "type", HF_ERROR_LIMIT(HF_EVENTS_TYPE_MAX, event->type.len)));
    TRY(check_text(a, number, "id", HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, event->id.len)));
    TRY(check_text(a, number, "content type",
                   HF_ERROR_LIMIT(HF_EVENTS_TYPE_MAX, event->content_type.len)));
    TRY(check_text(a, number, "causation", HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, event->causation.len)));
    TRY(check_text(a, number, "correlation",
                   HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, event->correlation.len)));
    TRY(check_text(a, number, "compensates",
                   HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, event->compensates.len)));
    if (event->meta.ptr && hf_item_check(a->s, event->meta) != HF_OK) {
        if (hf_scope_error(a->s)->status == HF_NOMEM)
            return HF_NOMEM;
        return hf_scope_fail(a->s, HF_INVALID, "event %zu (%.*s): its meta is not a valid item",
                             number, HF_FMT(event->type));
    }
    return HF_OK;
}

static struct hf_str text_or(struct hf_str one, struct hf_str other)
{
    return one.len ? one : other;
}

static size_t event_size(const struct hf_stored_event *e, size_t pk_len)
{
    return OWN_SIZE + pk_len + e->payload.len + e->type.len + e->causation.len +
           e->correlation.len + e->compensates.len + e->id.len + e->content_type.len +
           (e->meta.ptr ? hf_item_size(e->meta) : 0);
}

/* What does not depend on where it will be. An id that we make is known when it is placed, and so
 * is a correlation that is its own. */
static enum hf_status prepare_event(struct appending *a, const struct append_target *t,
                                    const struct hf_new_event *given, struct append_event *p,
                                    int64_t now_us)
{
    const struct hf_stored_event *parent = a->o.parent;
    size_t related;

    TRY(check_event(a, given, (size_t)(p - a->events) + 1));
    *p = (struct append_event){.chosen = given->id.len > 0};
    p->event = (struct hf_stored_event){
        .id = given->id,
        .stream = t->append->stream,
        .type = given->type,
        .payload = given->payload,
        .content_type = text_or(given->content_type, HF_STR(DEFAULT_CONTENT)),
        .schema = given->schema ? given->schema : 1,
        .time_us = given->time_us ? given->time_us : now_us,
        .meta =
            given->meta.ptr && hf_item_count(given->meta) ? given->meta : (struct hf_item){NULL, 0},
        .causation = text_or(given->causation, parent ? parent->id : hf_str_of(NULL, 0)),
        .correlation = text_or(given->correlation, parent ? text_or(parent->correlation, parent->id)
                                                          : hf_str_of(NULL, 0)),
        .compensates = given->compensates};
    if (p->chosen && hf_str_equal(p->event.correlation, p->event.id))
        p->event.correlation = hf_str_of(NULL, 0);
    p->own_correlation = !p->event.correlation.len;
    related = (p->event.causation.len > 0) +
              (!p->own_correlation && !hf_str_equal(p->event.causation, p->event.correlation));
    a->chosen += p->chosen;
    a->positions += p->chosen && hf__events_position_read(given->id, NULL, NULL, NULL);
    a->related += related;
    p->size = event_size(&p->event, t->pk.len);
    TRY(hf__append_measure(a, p));
    hf__events_content(&p->event, p->content);
    a->bytes += 2 * p->size + (related + p->chosen) * (OWN_SIZE + t->pk.len + HF_EVENTS_ID_MAX);
    return HF_OK;
}

static enum hf_status prepare_target(struct appending *a, const struct hf_append *append,
                                     struct append_target *t)
{
    *t = (struct append_target){.append = append,
                                .events = a->events + a->events_len,
                                .len = append->events_len};
    TRY(hf__events_stream_pk(a->s, 's', append->stream, &t->pk));
    for (struct append_target *other = a->targets; other < t; other++)
        if (hf_str_equal(other->pk, t->pk))
            return hf_scope_fail(a->s, HF_INVALID, "stream \"%.*s\" is named twice",
                                 HF_FMT(target_text(a, t)));
    if ((unsigned)append->expect > HF_EXPECT_VERSION)
        return hf_scope_fail(a->s, HF_INVALID, "stream \"%.*s\": invalid expectation %d",
                             HF_FMT(target_text(a, t)), (int)append->expect);
    return HF_OK;
}

static enum hf_status append_prepare(struct appending *a, const struct hf_append *appends)
{
    int64_t now_us = a->store->env.wall_us(a->store->env.user);
    size_t total = 0;

    if (a->len == 0 || a->len > HF_EVENTS_STREAMS_MAX)
        return hf_scope_fail_limit(a->s, a->len ? HF_LIMIT : HF_INVALID,
                                   HF_ERROR_LIMIT(HF_EVENTS_STREAMS_MAX, a->len),
                                   "an append to %zu streams: 1 to %d are allowed", a->len,
                                   HF_EVENTS_STREAMS_MAX);
    for (size_t i = 0; i < a->len; i++) {
        if (appends[i].events_len > HF_EVENTS_APPEND_MAX - total)
            return hf_scope_fail_limit(a->s, HF_LIMIT,
                                       HF_ERROR_LIMIT(HF_EVENTS_APPEND_MAX,
                                                      total + appends[i].events_len),
                                       "an append of more than %d events", HF_EVENTS_APPEND_MAX);
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
    if (a->chosen > 1)
        TRY(hf__append_check_ids(a));
    return hf__append_divide(a, true);
}

/* ---- heads and expectations ----------------------------------------------------------------- */

/* May the head be taken to be that of a stream without events, as nothing else would do? */
static bool expects_new(const struct append_target *t)
{
    return t->append->expect == HF_EXPECT_NONE ||
           (t->append->expect == HF_EXPECT_VERSION && t->append->version == 0);
}

static enum hf_status heads_read(struct appending *a)
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

static enum hf_status heads_look_up(struct appending *a, bool remembered)
{
    struct append_target *unknown = NULL;
    size_t count = 0;

    for (size_t i = 0; i < a->len; i++) {
        struct append_target *t = &a->targets[i];

        if (t->known)
            continue;
        if (remembered && t->len)
            t->known = hf__events_heads_find(a->store, t->pk, &t->head) || expects_new(t);
        if (!t->known) {
            unknown = t;
            count++;
        }
    }
    if (count > 1)
        return heads_read(a);
    if (!unknown)
        return HF_OK;
    TRY(hf__events_head_read(a->s, a->store, unknown->pk, &unknown->head));
    unknown->known = unknown->fresh = true;
    return HF_OK;
}

enum hf_status hf__append_learn(struct appending *a, struct append_target *t, struct hf_item item)
{
    TRY(hf__events_head_view(a->s, item, &t->head));
    hf__events_observe(a->store, position_str(&t->head.position));
    t->known = t->fresh = true;
    hf__events_heads_drop(a->store, t->pk);
    return HF_OK;
}

static bool is_expected(const struct append_target *t)
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

static bool is_appendable(const struct append_target *t)
{
    return t->head.state == EVENTS_LIVE && is_expected(t);
}

/* (3) */
static enum hf_status fail_archived(const struct appending *a, struct hf_str name)
{
    enum hf_status status =
        hf_scope_fail(a->s, HF_IN_USE, "stream \"%.*s\" is archived", HF_FMT(name));

    return a->may_still_happen ? hf_scope_doubt(a->s) : status;
}

static enum hf_status fail_unexpected(const struct appending *a, const struct append_target *t)
{
    struct hf_str name = target_text(a, t);

    assert(t->known && t->fresh && !is_appendable(t)); /* (4) */
    for (size_t i = 0; a->results && i < a->len; i++)
        if (a->targets[i].fresh)
            a->results[i].last = a->targets[i].head.version;
    if (t->head.state == EVENTS_DELETED)
        return hf_scope_fail(a->s, HF_DELETED, "stream \"%.*s\" was deleted for good",
                             HF_FMT(name));
    if (t->head.state == EVENTS_ARCHIVED)
        return fail_archived(a, name);
    return hf__events_unexpected(a->s, t->append->stream, t->append->expect, t->append->version,
                                 t->head.version);
}

/* The next version of a stream that was imported may be anything: it has to have a key. */
static enum hf_status check_versions(const struct appending *a)
{
    for (size_t i = 0; i < a->len; i++) {
        const struct append_target *t = &a->targets[i];

        if (t->len && t->head.version + t->len > EVENTS_VERSION_MAX)
            return hf_scope_fail(a->s, HF_LIMIT,
                                 "stream \"%.*s\": no version above %llu is possible",
                                 HF_FMT(target_text(a, t)), (unsigned long long)EVENTS_VERSION_MAX);
    }
    return HF_OK;
}

/* (4) (5) */
enum hf_status hf__append_heads(struct appending *a, bool remembered, bool *repeated)
{
    *repeated = false;
    for (;;) {
        struct append_target *bad = NULL;

        TRY(heads_look_up(a, remembered));
        for (size_t i = 0; i < a->len && !bad; i++)
            if (!is_appendable(&a->targets[i]))
                bad = &a->targets[i];
        if (!bad)
            return check_versions(a);
        if (bad->fresh) {
            if (a->chosen)
                TRY(hf__append_look_for_ids(a, repeated));
            return *repeated ? HF_OK : fail_unexpected(a, bad);
        }
        for (size_t i = 0; i < a->len; i++)
            a->targets[i].known = a->targets[i].fresh;
        remembered = false;
    }
}

/* ---- where everything will be --------------------------------------------------------------- */

enum hf_status hf__append_divide(struct appending *a, bool by_bytes)
{
    a->commits_len = 0;
    a->commits = hf_scope_alloc(a->s, (a->events_len + 1) * sizeof(*a->commits));
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->len; i++) {
        struct append_commit *commit = NULL;
        size_t bytes = 0;

        for (size_t j = 0; j < a->targets[i].len; j++) {
            size_t size = a->targets[i].events[j].size;

            if (!commit || commit->len == EVENTS_COMMIT_MAX ||
                (by_bytes && bytes + size > EVENTS_COMMIT_BYTES)) {
                commit = &a->commits[a->commits_len++];
                *commit = (struct append_commit){.target = &a->targets[i], .first = j};
                bytes = a->targets[i].pk.len + OWN_SIZE;
            }
            commit->len++;
            bytes += size;
        }
    }
    if (DEV_CHECKS)
        hf__append_check(a);
    return HF_OK;
}

static void place_event(struct appending *a, struct append_target *t, struct append_event *p,
                        const struct events_position *base, uint32_t number)
{
    struct hf_stored_event *e = &p->event;

    assert(t->head.state == EVENTS_LIVE && t->next.version < EVENTS_VERSION_MAX);
    p->position = *base;
    hf__events_position_number(&p->position, number);
    assert(memcmp(t->next.position.text, p->position.text, HF_POSITION_LEN) < 0);
    e->position = position_str(&p->position);
    e->version = ++t->next.version;
    hf__events_version_text(e->version, p->sk);
    if (!p->chosen)
        e->id = e->position;
    if (p->own_correlation)
        e->correlation = e->id;
    if (a->store->chain) {
        hf__events_chain(e, p->content, t->next.hash, p->hash);
        memcpy(t->next.hash, p->hash, EVENTS_HASH);
        e->hash = hf_bytes_of(p->hash, EVENTS_HASH);
    }
    t->next.position = p->position;
}

void hf__append_place(struct appending *a, const struct events_position *base)
{
    for (size_t i = 0; i < a->len; i++)
        a->targets[i].next = a->targets[i].head;
    for (size_t i = 0; i < a->commits_len; i++) {
        struct append_commit *commit = &a->commits[i];

        commit->position = hf__events_position_later(base, (uint32_t)i);
        for (size_t j = 0; j < commit->len; j++)
            place_event(a, commit->target, &commit->target->events[commit->first + j],
                        &commit->position, (uint32_t)j);
    }
    for (size_t i = 0; i < a->len; i++)
        assert(a->targets[i].next.version == a->targets[i].head.version + a->targets[i].len);
}

/* Why an event has no map: a text that is not UTF-8. */
static enum hf_status fail_map(struct appending *a, const struct append_event *p)
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
    size_t number = (size_t)(p - a->events) + 1;

    if (hf_scope_error(a->s)->status != HF_INVALID)
        return hf_scope_error(a->s)->status;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].text.len &&
            hf_item_check(a->s, HF_ITEM(a->s, HF_S("text", texts[i].text))) == HF_INVALID)
            return hf_scope_fail(a->s, HF_INVALID, "event %zu: its %s is not valid UTF-8", number,
                                 texts[i].name);
    return hf_scope_fail(a->s, HF_INVALID, "event %zu (%.*s): its meta is nested too deeply",
                         number, HF_FMT(e->type));
}

enum hf_status hf__append_map(struct appending *a, struct append_event *p)
{
    assert(p->event.version && p->event.position.len); /* it was placed */
    p->map = hf__events_map(a->s, &p->event);
    return hf_item_check(a->s, p->map) == HF_OK ? HF_OK : fail_map(a, p);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* What the results point to lives in the scope: ids that the caller chose are copied. */
static enum hf_status results_alloc(struct appending *a)
{
    for (size_t i = 0; a->results && i < a->len; i++)
        a->results[i].ids =
            hf_scope_alloc(a->s, (a->targets[i].len + 1) * sizeof(*a->results[i].ids));
    for (size_t i = 0; a->results && i < a->events_len; i++)
        if (a->events[i].chosen)
            a->events[i].event.id = hf_scope_copy(a->s, a->events[i].event.id);
    return hf_scope_built(a->s);
}

/* One transaction behind the heads as they are known. */
static enum hf_status append_try(struct appending *a, enum append_verdict *verdict)
{
    struct events_position base = {.text = ""};

    *verdict = APPEND_DONE;
    for (size_t i = 0; i < a->len; i++)
        hf__events_observe(a->store, position_str(&a->targets[i].head.position));
    if (a->commits_len)
        base = hf__events_position_make(a->store, a->shard, (uint32_t)a->commits_len);
    hf__append_place(a, &base);
    for (size_t i = 0; i < a->events_len; i++)
        TRY(hf__append_map(a, &a->events[i]));
    TRY(hf__append_actions(a));
    if (!a->actions_len)
        return HF_OK; /* expectations that were held against heads as they are */
    return hf__append_send(a, verdict);
}

static enum hf_status append_run(struct appending *a)
{
    struct hf_scope_mark mark = hf_scope_mark(a->s);

    for (bool first = true;; first = false) {
        enum append_verdict verdict;
        bool repeated;

        TRY(hf__append_heads(a, first, &repeated));
        if (!repeated && first && a->positions) /* no condition would see those */
            TRY(hf__append_look_for_ids(a, &repeated));
        if (repeated)
            return HF_OK;
        TRY(hf__append_blobs(a));
        TRY(append_try(a, &verdict));
        if (verdict == APPEND_REPEATED)
            return HF_OK;
        if (verdict == APPEND_DONE) {
            hf__append_done(a);
            return HF_OK;
        }
        TRY(hf__append_wait(a));
        hf_scope_rewind(a->s, mark);
    }
}

/* Many threads of this process append to a stream: they go through its gate one by one, as each
 * would have to try again for each of the others. It is not needed for more than that. */
static bool needs_gate(const struct appending *a)
{
    return a->len == 1 && a->events_len && a->targets[0].append->expect != HF_EXPECT_VERSION &&
           a->targets[0].append->expect != HF_EXPECT_NONE;
}

static enum hf_status append_now(struct appending *a)
{
    bool gate = needs_gate(a);
    enum hf_status status;

    if (gate)
        hf__events_gate_enter(a->s, a->store, a->targets[0].pk);
    a->shard = hf__events_shard_take(a->store);
    status = hf__append_is_large(a) ? hf__append_large(a) : append_run(a);
    hf__events_shard_give(a->store, a->shard);
    if (gate)
        hf__events_gate_leave(a->store, a->targets[0].pk);
    return status;
}

/* At once if `tx` is NULL. */
static enum hf_status append_or_join(struct hf_scope *s, struct hf_events *store, struct hf_tx *tx,
                                     const struct hf_append *appends, size_t len,
                                     const struct hf_append_options *options,
                                     struct hf_appended *results)
{
    struct appending a = {.s = s, .store = store, .len = len, .results = results};
    struct hf_scope_mark mark = hf_scope_mark(s);
    enum hf_status status;

    OPTIONS_COPY(&a.o, options);
    a.o.max_attempts = a.o.max_attempts ? a.o.max_attempts : ATTEMPTS;
    if (results)
        memset(results, 0, len * sizeof(*results));
    status = append_prepare(&a, appends);
    if (status == HF_OK)
        status = results_alloc(&a);
    if (status == HF_OK)
        status = tx ? hf__append_join(&a, tx) : append_now(&a);
    if (status != HF_OK) {
        for (size_t i = 0; results && i < len; i++)
            results[i].ids = NULL;
        return status;
    }
    if (!results && !tx)
        hf_scope_rewind(s, mark);
    return hf_scope_ok(s);
}

enum hf_status hf_events_append(struct hf_scope *s, struct hf_events *store,
                                const struct hf_append *appends, size_t len,
                                const struct hf_append_options *options,
                                struct hf_appended *results)
{
    struct hf_append_options o;
    struct hf_tx *tx;

    OPTIONS_COPY(&o, options);
    tx = o.join_tx ? hf_scope_tx(s) : NULL;
    if (tx && hf_tx_db(tx) != store->db)
        tx = NULL;
    return append_or_join(s, store, tx, appends, len, options, results);
}

enum hf_status hf_events_append_into(struct hf_scope *s, struct hf_events *store, struct hf_tx *tx,
                                     const struct hf_append *appends, size_t len,
                                     const struct hf_append_options *options,
                                     struct hf_appended *results)
{
    if (hf_tx_db(tx) != store->db)
        return hf_scope_fail(s, HF_INVALID,
                             "the transaction is on another database than event store %.*s",
                             HF_FMT(store->table));
    return append_or_join(s, store, tx, appends, len, options, results);
}
