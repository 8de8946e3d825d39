/*
 * events/aggregate/aggregate.c: state from a stream, and commands that are decided on it.
 *
 * Loading. A snapshot, if there is one that fits, and the events behind it, page by page: pages are
 * read into a scope of their own that is emptied after each, so what loading needs does not grow
 * with the stream; the state grows in the caller's scope, by what `evolve` puts there.
 *
 * Handling. Load, decide, append with the version that was loaded. The store refuses it when the
 * stream has moved on; then all of it is done again. A snapshot is made afterwards, when the number
 * of events since a multiple of snapshot_every has passed one: whoever passes it makes it, so
 * there is one for so many events however many processes there are.
 *
 * What always holds:
 *
 *  (1) The events of a command are appended behind exactly those that its state was made of.
 *  (2) A state has every event from the first to its version: a stream that begins later (it was
 *      truncated) and has no snapshot that reaches there has no state.
 *  (3) A snapshot that does not fit is passed over: of another schema, or beyond the end of the
 *      stream or the version that was asked for, or damaged.
 *  (4) Whatever becomes of a snapshot, a command whose events are stored has succeeded.
 *  (5) A command with an id is decided once: its first event has an id that follows from it.
 *  (6) Events that were there already, by their ids, are in the state once: it is loaded again.
 */
#include "events/aggregate/aggregate.h"

#include <holdfast/tx.h>

#include <stdio.h>

enum { PAGE = 500, DELAY_MS = 5, DELAY_MAX_MS = 500, LINE_MAX_LEN = 400 };

enum hf_status hf__aggregate_check(struct hf_scope *s, const struct hf_aggregate *aggregate)
{
    if (aggregate->domain.len == 0)
        return hf_scope_fail(s, HF_INVALID, "an aggregate has no domain");
    if (aggregate->state_size == 0 || !aggregate->evolve)
        return hf_scope_fail(s, HF_INVALID, "aggregate %.*s has no %s", HF_FMT(aggregate->domain),
                             aggregate->evolve ? "state_size" : "evolve function");
    if (!aggregate->save != !aggregate->restore)
        return hf_scope_fail(s, HF_INVALID,
                             "aggregate %.*s has only a %s function; set both save and restore",
                             HF_FMT(aggregate->domain), aggregate->save ? "save" : "restore");
    return HF_OK;
}

struct hf_stored_event hf__event_of_new(const struct hf_new_event *event,
                                        struct hf_event_stream_key stream)
{
    return (struct hf_stored_event){.id = event->id,
                                    .stream = stream,
                                    .type = event->type,
                                    .payload = event->payload,
                                    .content_type = event->content_type.len
                                                        ? event->content_type
                                                        : HF_STR("application/json"),
                                    .schema = event->schema ? event->schema : 1,
                                    .time_us = event->time_us,
                                    .meta = event->meta,
                                    .causation = event->causation,
                                    .correlation = event->correlation,
                                    .compensates = event->compensates};
}

struct hf_new_event hf__event_to_new(const struct hf_stored_event *event)
{
    return (struct hf_new_event){.id = event->id,
                                 .type = event->type,
                                 .payload = event->payload,
                                 .content_type = event->content_type,
                                 .schema = event->schema,
                                 .time_us = event->time_us,
                                 .meta = event->meta,
                                 .causation = event->causation,
                                 .correlation = event->correlation,
                                 .compensates = event->compensates};
}

/* ---- loading -------------------------------------------------------------------------------- */

/* A state without events. */
static enum hf_status state_init(struct hf_scope *s, const struct hf_aggregate *aggregate,
                                 struct hf_str id, struct hf_aggregate_state *state)
{
    struct hf_event_stream_key stream = {aggregate->domain, id};

    *state = (struct hf_aggregate_state){.state = hf_scope_alloc(s, aggregate->state_size)};
    TRY(hf_scope_built(s));
    memset(state->state, 0, aggregate->state_size);
    return aggregate->init ? aggregate->init(s, state->state, stream, aggregate->user) : HF_OK;
}

/* The state of the snapshot, if there is one that fits so far. (3) */
static enum hf_status state_restore(struct hf_scope *s, struct hf_events *store,
                                    const struct hf_aggregate *aggregate, struct hf_str id,
                                    uint64_t version, struct hf_aggregate_state *state)
{
    struct hf_event_stream_key stream = {aggregate->domain, id};
    struct hf_snapshot snapshot;
    enum hf_status status;

    TRY(state_init(s, aggregate, id, state));
    if (!aggregate->restore)
        return HF_OK;
    status = hf_snapshot_get(s, store, stream, aggregate->name, &snapshot);
    if (status == HF_NOT_FOUND || status == HF_CORRUPT)
        return hf_scope_ok(s);
    if (status != HF_OK)
        return status;
    if (snapshot.schema != (aggregate->snapshot_schema ? aggregate->snapshot_schema : 1) ||
        (version && snapshot.version > version))
        return HF_OK;
    assert(snapshot.version > 0 && state->version == 0);
    TRY(aggregate->restore(s, snapshot.item, state->state, aggregate->user));
    state->version = state->snapshot = snapshot.version;
    return HF_OK;
}

enum hf_status hf__aggregate_evolve(struct hf_scope *s, const struct hf_aggregate *aggregate,
                                    const struct hf_stored_event *event,
                                    struct hf_aggregate_state *state)
{
    struct hf_stored_event now = *event;

    TRY(hf_event_upcast(s, aggregate->upcasts, aggregate->upcasts_len, &now));
    TRY(aggregate->evolve(s, state->state, &now, aggregate->user));
    state->version++;
    return HF_OK;
}

struct loader {
    struct hf_scope *s;    /* of the caller: the state lives there */
    struct hf_scope *page; /* of the events */
    struct hf_events *store;
    const struct hf_aggregate *aggregate;
    struct hf_event_stream_key stream;
    uint64_t version; /* up to it; 0: all */
    aggregate_upcast_fn *upcast;
    void *user;
};

/* A failure in the scope of a page as one of the caller's. */
static enum hf_status fail_from_page(const struct loader *l, enum hf_status status)
{
    const struct hf_error *error = hf_scope_error(l->page);

    if (status == HF_OK)
        return HF_OK;
    return error->status == status
               ? hf_scope_fail(l->s, status, "%.*s", HF_FMT(error->message))
               : hf_scope_fail(l->s, status, "the state of %.*s/%.*s could not be built: %s",
                               HF_FMT(l->stream.domain), HF_FMT(l->stream.id),
                               hf_status_text(status));
}

static enum hf_status fail_trimmed(const struct loader *l, uint64_t first)
{
    return hf_scope_fail(
        l->s, HF_TRIMMED,
        "%.*s/%.*s begins at version %llu, and no usable snapshot covers the versions before it",
        HF_FMT(l->stream.domain), HF_FMT(l->stream.id), (unsigned long long)first);
}

static enum hf_status add_page(const struct loader *l, const struct hf_events_page *page,
                               struct hf_aggregate_state *state)
{
    for (size_t i = 0; i < page->events_len; i++) {
        struct hf_stored_event event = page->events[i];

        if (event.version != state->version + 1) /* (2) */
            return fail_trimmed(l, event.version);
        if (l->upcast)
            TRY(fail_from_page(l, l->upcast(l->page, &event, l->user)));
        TRY(hf__aggregate_evolve(l->s, l->aggregate, &event, state));
        assert(state->version == page->events[i].version);
        state->read++;
    }
    return HF_OK;
}

/*
 * All events behind the state; *end is where the stream is. A page may have been read before the
 * end was looked up, and others may have appended in between: so it is read again from there, and
 * only what is missing then is missing for good. (2)
 */
static enum hf_status add_events(const struct loader *l, struct hf_aggregate_state *state,
                                 uint64_t *end)
{
    struct hf_events_read_options o = {.size = sizeof(o), .to = l->version, .limit = PAGE};
    struct hf_events_page page = {0};
    uint64_t wanted;

    *end = 0;
    do {
        uint32_t left_ms = hf_scope_left_ms(l->s, UINT32_MAX);

        hf_scope_reset(l->page);
        if (left_ms != UINT32_MAX)
            hf_scope_timeout_ms(l->page, left_ms ? left_ms : 1);
        TRY(hf_scope_sleep_ms(l->s, 0)); /* canceled? */
        o.from = state->version + 1;
        TRY(fail_from_page(l, hf_events_read(l->page, l->store, l->stream, &o, &page)));
        if (!page.events_len && *end >= o.from)
            return fail_trimmed(l, *end + 1);
        TRY(add_page(l, &page, state));
        *end = page.version;
        wanted = l->version && l->version < *end ? l->version : *end;
    } while (state->version < wanted);
    return HF_OK;
}

static enum hf_status state_load(struct loader *l, struct hf_aggregate_state *state)
{
    uint64_t end;

    TRY(state_restore(l->s, l->store, l->aggregate, l->stream.id, l->version, state));
    if (!(l->version && state->version == l->version)) {
        TRY(add_events(l, state, &end));
        if (state->snapshot && end < state->snapshot) { /* (3): it is of what was there before */
            TRY(state_init(l->s, l->aggregate, l->stream.id, state));
            TRY(add_events(l, state, &end));
        }
        if (state->version < l->version)
            return hf_scope_fail(l->s, HF_NOT_FOUND,
                                 "%.*s/%.*s is at version %llu, not yet at version %llu",
                                 HF_FMT(l->stream.domain), HF_FMT(l->stream.id),
                                 (unsigned long long)end, (unsigned long long)l->version);
    }
    assert(state->version >= state->snapshot); /* (2) */
    assert(!l->version || state->version == l->version);
    return HF_OK;
}

enum hf_status hf__aggregate_load(struct hf_scope *s, struct hf_events *store,
                                  const struct aggregate_wanted *wanted,
                                  struct hf_aggregate_state *loaded)
{
    struct loader l = {.s = s,
                       .page = hf_scope_new(hf_scope_env(s)),
                       .store = store,
                       .aggregate = wanted->aggregate,
                       .stream = {wanted->aggregate->domain, wanted->id},
                       .version = wanted->version,
                       .upcast = wanted->upcast,
                       .user = wanted->user};
    enum hf_status status = l.page ? state_load(&l, loaded) : HF_NOMEM;

    if (!l.page)
        (void)hf_scope_fail(s, HF_NOMEM, "no memory for events");
    hf_scope_free(l.page);
    if (status != HF_OK)
        *loaded = (struct hf_aggregate_state){0};
    return status;
}

enum hf_status hf_aggregate_load(struct hf_scope *s, struct hf_events *store,
                                 const struct hf_aggregate *aggregate, struct hf_str id,
                                 uint64_t version, struct hf_aggregate_state *loaded)
{
    call_begins(s);
    *loaded = (struct hf_aggregate_state){0};
    TRY(hf__aggregate_check(s, aggregate));
    return hf__aggregate_load(
        s, store, &(struct aggregate_wanted){.aggregate = aggregate, .id = id, .version = version},
        loaded);
}

/* ---- snapshots ------------------------------------------------------------------------------ */

bool hf__aggregate_is_due(const struct hf_aggregate *aggregate, uint64_t from, uint64_t to)
{
    uint64_t every =
        aggregate->snapshot_every ? aggregate->snapshot_every : HF_AGGREGATE_SNAPSHOT_EVERY;

    assert(every > 0 && from <= to);
    return aggregate->save && to / every > from / every;
}

enum hf_status hf__aggregate_snapshot(struct hf_scope *s, struct hf_events *store,
                                      const struct hf_aggregate *aggregate, struct hf_str id,
                                      const struct hf_aggregate_state *state, bool *saved)
{
    struct hf_event_stream_key stream = {aggregate->domain, id};
    struct hf_snapshot snapshot = {.version = state->version, .schema = aggregate->snapshot_schema};

    assert(aggregate->save && state->version > 0);
    *saved = false;
    TRY(aggregate->save(s, state->state, &snapshot.item, aggregate->user));
    return hf_snapshot_save(s, store, stream, aggregate->name, &snapshot, saved);
}

void hf__aggregate_log(const struct hf_env *env, const struct hf_error *error,
                       struct hf_event_stream_key stream)
{
    char line[LINE_MAX_LEN];
    int len;

    if (!env->log)
        return;
    len = snprintf(line, sizeof(line), "no snapshot of %.*s/%.*s: %.*s", HF_FMT(stream.domain),
                   HF_FMT(stream.id), HF_FMT(error->message));
    if (len > 0)
        env->log(HF_LOG_WARNING,
                 hf_str_of(line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1),
                 env->user);
}

/* At best effort, in a scope of its own: neither its failure nor its deadline is the command's. (4)
 */
static bool try_snapshot(struct hf_scope *s, struct hf_events *store,
                         const struct hf_aggregate *aggregate, struct hf_str id,
                         const struct hf_aggregate_state *state, const struct hf_handle_options *o)
{
    static const struct hf_error no_memory = {.status = HF_NOMEM,
                                              .message = HF_STR_INIT("out of memory")};
    struct hf_event_stream_key stream = {aggregate->domain, id};
    struct hf_scope *own = hf_scope_new(hf_scope_env(s));
    const struct hf_error *error = &no_memory;
    struct hf_error silent = {0};
    enum hf_status status = HF_NOMEM;
    bool saved = false;

    if (own) {
        hf_scope_timeout_ms(own, hf_scope_left_ms(s, 5000) + 1);
        status = hf__aggregate_snapshot(own, store, aggregate, id, state, &saved);
        error = hf_scope_error(own);
        if (error->status != status) { /* it failed without a word */
            silent =
                (struct hf_error){.status = status, .message = hf_str_from(hf_status_text(status))};
            error = &silent;
        }
    }
    if (status != HF_OK && o->on_error)
        o->on_error(error, stream, o->user);
    else if (status != HF_OK)
        hf__aggregate_log(hf_scope_env(s), error, stream);
    hf_scope_free(own);
    return saved;
}

/* ---- commands ------------------------------------------------------------------------------- */

struct hf_decision {
    uint64_t version;
    struct hf_new_event *events;
    size_t len, cap;
    struct actions with;
};

enum hf_status hf_decision_emit(struct hf_scope *s, struct hf_decision *decision,
                                const struct hf_new_event *event)
{
    void *events = decision->events;

    call_begins(s);
    if (decision->len == HF_AGGREGATE_EVENTS_MAX)
        return hf_scope_fail_limit(s, HF_LIMIT,
                                   HF_ERROR_LIMIT(HF_AGGREGATE_EVENTS_MAX, decision->len + 1),
                                   "a command may emit at most %d events", HF_AGGREGATE_EVENTS_MAX);
    TRY(hf__pattern_grow(s, &events, decision->len, &decision->cap, sizeof(*event)));
    decision->events = events;
    decision->events[decision->len++] = *event;
    return HF_OK;
}

enum hf_status hf_decision_write(struct hf_scope *s, struct hf_decision *decision,
                                 const struct hf_transact_write *action)
{
    call_begins(s);
    return hf__actions_add(s, &decision->with, action);
}

uint64_t hf_decision_version(const struct hf_decision *decision)
{
    return decision->version;
}

struct handling {
    struct hf_events *store;
    const struct hf_aggregate *aggregate;
    struct hf_str id;
    const struct hf_command *command;
    struct hf_handle_options o;
};

static struct hf_str event_id(struct hf_scope *s, struct hf_str command, size_t number)
{
    return hf_scope_format(s, "%.*s.%zu", HF_FMT(command), number);
}

/* The events that the command has led to before, if it has. (5) */
static enum hf_status find_earlier(struct hf_scope *s, const struct handling *h,
                                   struct hf_handled *handled)
{
    struct hf_stored_event *events = NULL;
    size_t len = 0, cap = 0;

    for (;;) {
        void *list = events;
        enum hf_status status;

        TRY(hf__pattern_grow(s, &list, len, &cap, sizeof(*events)));
        events = list;
        status = hf_events_get(s, h->store, event_id(s, h->o.id, len + 1), &events[len]);
        if (status == HF_NOT_FOUND)
            break;
        if (status != HF_OK)
            return status;
        if (!hf_str_equal(events[len].stream.domain, h->aggregate->domain) ||
            !hf_str_equal(events[len].stream.id, h->id))
            return hf_scope_fail(s, HF_DUPLICATE, "command id %.*s was already used for %.*s/%.*s",
                                 HF_FMT(h->o.id), HF_FMT(events[len].stream.domain),
                                 HF_FMT(events[len].stream.id));
        len++;
    }
    hf_scope_ok(s);
    handled->events = events;
    handled->events_len = len;
    handled->repeated = len > 0;
    return HF_OK;
}

/* Each event checked, and put into the state. */
static enum hf_status evolve_all(struct hf_scope *s, const struct handling *h,
                                 struct hf_decision *decision, struct hf_aggregate_state *state,
                                 struct hf_stored_event *events)
{
    const struct hf_aggregate *aggregate = h->aggregate;

    for (size_t i = 0; i < decision->len; i++) {
        struct hf_new_event *event = &decision->events[i];

        if (!event->id.ptr && h->o.id.len) {
            event->id = event_id(s, h->o.id, i + 1);
            TRY(hf_scope_built(s));
        }
        if (!event->time_us)
            event->time_us = hf_scope_env(s)->wall_us(hf_scope_env(s)->user);
        events[i] = hf__event_of_new(event, (struct hf_event_stream_key){aggregate->domain, h->id});
        events[i].version = state->version + 1;
        if (aggregate->check)
            TRY(aggregate->check(s, state->state, &events[i], aggregate->user));
        TRY(hf__aggregate_evolve(s, aggregate, &events[i], state));
    }
    return HF_OK;
}

/* One time through. HF_CONDITION with *conflict: others were faster. */
static enum hf_status command_attempt(struct hf_scope *s, const struct handling *h,
                                      struct hf_handled *handled, bool *conflict)
{
    struct hf_aggregate_state state;
    struct hf_decision decision = {0};
    struct hf_stored_event *events;
    struct hf_append append = {.stream = {h->aggregate->domain, h->id},
                               .expect = HF_EXPECT_VERSION};
    struct hf_append_options options = {.size = sizeof(options),
                                        .parent = h->o.parent,
                                        .join_tx = h->o.join_tx};
    struct hf_appended appended = {0};
    enum hf_status status;

    TRY(hf_aggregate_load(s, h->store, h->aggregate, h->id, 0, &state));
    append.version = decision.version = state.version;
    if (h->command->precondition)
        TRY(h->command->precondition(s, state.state, state.version, h->command->user));
    TRY(h->command->decide(s, state.state, &decision, h->command->user));
    events = hf_scope_alloc(s, (decision.len + 1) * sizeof(*events));
    TRY(hf_scope_built(s));
    TRY(evolve_all(s, h, &decision, &state, events));
    append.events = decision.events;
    append.events_len = decision.len;
    options.with = decision.with.list;
    options.with_len = decision.with.len;
    if (decision.len || decision.with.len) {
        status = hf_events_append(s, h->store, &append, 1, &options, &appended);
        *conflict = status == HF_CONDITION && !hf_scope_error(s)->may_have_happened;
        if (status != HF_OK)
            return status;
    }
    if (appended.repeated) /* (6) */
        TRY(hf_aggregate_load(s, h->store, h->aggregate, h->id, 0, &state));
    for (size_t i = 0; i < decision.len; i++) {
        events[i].id = appended.ids[i];
        if (appended.repeated)
            events[i].version = appended.first + i;
        if (h->o.parent) {
            events[i].causation = events[i].causation.len ? events[i].causation : h->o.parent->id;
            if (!events[i].correlation.len)
                events[i].correlation = h->o.parent->correlation;
        }
        if (!events[i].correlation.len)
            events[i].correlation = events[i].id;
    }
    *handled = (struct hf_handled){.state = state.state,
                                   .version = state.version,
                                   .events = events,
                                   .events_len = decision.len,
                                   .repeated = appended.repeated};
    return HF_OK;
}

static bool is_in_tx(const struct hf_scope *s, const struct handling *h)
{
    const struct hf_tx *tx = h->o.join_tx ? hf_scope_tx(s) : NULL;

    return tx && hf_tx_db(tx) == h->store->db;
}

static void make_snapshot(struct hf_scope *s, const struct handling *h, struct hf_handled *handled)
{
    struct hf_aggregate_state state = {.state = handled->state, .version = handled->version};

    if (!h->o.no_snapshot && !handled->repeated && !is_in_tx(s, h) &&
        hf__aggregate_is_due(h->aggregate, state.version - handled->events_len, state.version))
        handled->snapshot = try_snapshot(s, h->store, h->aggregate, h->id, &state, &h->o);
}

/* Decide, and again while others are faster. (1) */
static enum hf_status command_decide(struct hf_scope *s, const struct handling *h,
                                     struct hf_handled *handled)
{
    struct backoff backoff = {.first_ms = DELAY_MS, .max_ms = DELAY_MAX_MS};

    for (uint32_t number = 1;; number++) {
        bool conflict = false;
        enum hf_status status = command_attempt(s, h, handled, &conflict);

        if (status == HF_OK) {
            handled->attempts = number;
            make_snapshot(s, h, handled);
            return HF_OK;
        }
        if (!conflict)
            return status;
        if (number >= h->o.max_attempts)
            return hf_scope_fail(
                s, HF_CONDITION,
                "a command for %.*s/%.*s was decided %u times, and each time another writer "
                "appended first",
                HF_FMT(h->aggregate->domain), HF_FMT(h->id), number);
        TRY(hf__backoff_sleep(s, &backoff));
    }
}

/* The answer of then, with the state of now, if it was handled before. (5) */
static enum hf_status earlier_answer(struct hf_scope *s, const struct handling *h,
                                     struct hf_handled *handled)
{
    struct hf_aggregate_state state;

    *handled = (struct hf_handled){0};
    TRY(find_earlier(s, h, handled));
    if (!handled->repeated)
        return HF_OK;
    TRY(hf_aggregate_load(s, h->store, h->aggregate, h->id, 0, &state));
    handled->state = state.state;
    handled->version = state.version;
    return HF_OK;
}

static enum hf_status command_handle(struct hf_scope *s, const struct handling *h,
                                     struct hf_handled *handled)
{
    enum hf_status status;

    if (!h->o.id.len)
        return command_decide(s, h, handled);
    TRY(earlier_answer(s, h, handled));
    if (handled->repeated)
        return HF_OK;
    status = command_decide(s, h, handled);
    if (status != HF_DUPLICATE && !(status == HF_OK && handled->repeated))
        return status;
    TRY(earlier_answer(s, h, handled)); /* another has handled it at the same time */
    if (!handled->repeated)
        return hf_scope_fail(s, HF_DUPLICATE, "an event id of command %.*s is already in use",
                             HF_FMT(h->o.id));
    return HF_OK;
}

enum hf_status hf_aggregate_handle(struct hf_scope *s, struct hf_events *store,
                                   const struct hf_aggregate *aggregate, struct hf_str id,
                                   const struct hf_command *command,
                                   const struct hf_handle_options *options,
                                   struct hf_handled *handled)
{
    struct handling h = {.store = store, .aggregate = aggregate, .id = id, .command = command};
    struct hf_handled out = {0};
    enum hf_status status;

    call_begins(s);
    if (handled)
        *handled = out;
    OPTIONS_COPY(&h.o, options);
    h.o.max_attempts = h.o.max_attempts ? h.o.max_attempts : HF_AGGREGATE_ATTEMPTS;
    TRY(hf__aggregate_check(s, aggregate));
    if (!command || !command->decide)
        return hf_scope_fail(s, HF_INVALID, "a command for %.*s has no decide function",
                             HF_FMT(aggregate->domain));
    if (id.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a command for %.*s has no stream id",
                             HF_FMT(aggregate->domain));
    status = command_handle(s, &h, &out);
    if (handled && status == HF_OK)
        *handled = out;
    return status;
}
