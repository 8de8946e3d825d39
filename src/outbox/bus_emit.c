/*
 * outbox/bus_emit.c: emitting: events through the middleware, then into the outbox.
 *
 * The middleware is called for one event after the other, by the caller's thread and in its scope;
 * or for several at once, where the options say so. Then helpers call it: threads that are started
 * for the call, each with a scope of its own. They take the events in their order, while the caller
 * waits for them and looks at its own scope.
 *
 *  (1) An event is stored when it has come to the end of the way and nothing failed on the way back.
 *      All events of a call are stored together, or none is.
 *  (2) The id that middleware sees is the one that is stored, unless it sets another; also when it
 *      replaces the event by one without an id. Helpers begin when all ids are known, and the events
 *      are stored in the order of the call. So those of one key are handled in that order, whichever
 *      passed the middleware first.
 *  (3) The call fails with the failure of the first event, in the order of the call, whose middleware
 *      failed: the same as if the events had been passed one after the other. Middleware of earlier
 *      events comes to its end, that of later ones is canceled, and no other begins.
 *  (4) A scope has one thread at a time. When the caller's is canceled or late, so are the helpers'.
 *  (5) A transaction has one thread, too: when the scope has one, there are no helpers.
 *  (6) Helpers have no helpers: a call has at most `middleware_concurrency` threads.
 */
#include "outbox/bus.h"

enum { LOOK_US = 20 * 1000 }; /* how often the caller looks at its scope */

/* The events of a call. */
struct bus_emission {
    struct hf_bus *bus;
    const struct hf_event *given;
    const struct hf_event *cause; /* NULL: none */
    struct hf_tx *tx;
    struct hf_event *events; /* as they are now */
    struct hf_str *places;   /* that were reserved for them, in their order */
    bool *reached;           /* by event: it passed all middleware */
    size_t len;
};

struct bus_helper {
    struct bus_crew *crew;
    struct hf_scope *scope; /* a thread that has the crew's mutex may cancel it */
    struct bus_active active;
    pthread_t thread;
    bool started;
    size_t at; /* the event that it passes; the crew's mutex guards it */
};

struct bus_crew {
    struct bus_emission *e;
    struct bus_helper *helpers;
    size_t len;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t ended;  /* a helper has ended */
    size_t running;
    size_t next;                     /* the first event that no helper has taken */
    const struct bus_helper *failed; /* the helper whose failed event is the first; NULL: none */
    bool over;                       /* the caller's scope was canceled, or is late */
};

/* ---- an event ------------------------------------------------------------------------------- */

/* An event that is emitted while another one is handled has that one as its cause. */
static void event_fill(const struct hf_bus *bus, const struct hf_event *cause,
                       struct hf_event *event)
{
    if (!event->time_us)
        event->time_us = bus->env.wall_us(bus->env.user);
    if (!cause)
        return;
    if (!event->causation.len)
        event->causation = cause->id;
    if (!event->correlation.len)
        event->correlation = cause->correlation.len ? cause->correlation : cause->id;
    if (!event->trace_parent.len) {
        event->trace_parent = cause->trace_parent;
        event->trace_state = cause->trace_state;
    }
}

/* Prepare an event for the middleware. */
static enum hf_status begin_event(struct hf_scope *s, struct bus_emission *e, size_t at)
{
    struct hf_event *event = &e->events[at];

    *event = e->given[at];
    event_fill(e->bus, e->cause, event);
    e->places[at] = hf__outbox_reserve(s, e->bus->outbox, event);
    if (!event->id.len)
        event->id = e->places[at];
    return hf_scope_built(s);
}

static enum hf_status event_collect(struct hf_scope *s, struct hf_bus_call *call)
{
    (void)s;
    *call->stored = call->event;
    return HF_OK;
}

static enum hf_status pass_event(struct hf_scope *s, struct bus_emission *e, size_t at)
{
    struct hf_bus_call call = {.bus = e->bus,
                               .phase = HF_BUS_EMIT,
                               .event = e->events[at],
                               .tx = e->tx,
                               .end = event_collect,
                               .stored = &e->events[at]};

    TRY(hf__bus_run(s, &call));
    e->reached[at] = call.reached;
    return HF_OK;
}

static bool same_place(const struct hf_event *one, const struct hf_event *other)
{
    return one->due_us == other->due_us && one->urgent == other->urgent &&
           hf_str_equal(hf__outbox_event_key(one), hf__outbox_event_key(other));
}

/* (1) */
static enum hf_status emission_store(struct hf_scope *s, struct bus_emission *e)
{
    size_t len = 0;

    for (size_t i = 0; i < e->len; i++) {
        if (!e->reached[i])
            continue;
        if (!e->events[i].id.len && same_place(&e->events[i], &e->given[i]))
            e->events[i].id = e->places[i]; /* (2) */
        assert(len <= i);
        e->events[len] = e->events[i];
        e->places[len++] = e->places[i];
    }
    if (!len)
        return HF_OK;
    return hf__outbox_emit_reserved(s, e->bus->outbox, e->tx, e->events, e->places, len);
}

/* ---- helpers -------------------------------------------------------------------------------- */

static bool take_event(struct bus_helper *helper)
{
    struct bus_crew *crew = helper->crew;
    bool more;

    pthread_mutex_lock(&crew->mutex);
    more = !crew->failed && !crew->over && crew->next < crew->e->len;
    if (more)
        helper->at = crew->next++;
    pthread_mutex_unlock(&crew->mutex);
    return more;
}

/* (3): events that have not begun are behind it. */
static void note_failure(struct bus_helper *helper)
{
    struct bus_crew *crew = helper->crew;

    pthread_mutex_lock(&crew->mutex);
    assert(helper->at < crew->next && crew->next <= crew->e->len);
    if (!crew->failed || helper->at < crew->failed->at)
        crew->failed = helper;
    for (size_t i = 0; i < crew->len; i++)
        if (crew->helpers[i].at > crew->failed->at)
            hf_scope_cancel(crew->helpers[i].scope);
    pthread_mutex_unlock(&crew->mutex);
}

static void *helper_run(void *user)
{
    struct bus_helper *helper = user;
    struct bus_crew *crew = helper->crew;
    enum hf_status status = HF_OK;

    while (status == HF_OK && take_event(helper)) {
        status = pass_event(helper->scope, crew->e, helper->at);
        if (status != HF_OK)
            note_failure(helper);
    }
    pthread_mutex_lock(&crew->mutex);
    assert(crew->running);
    crew->running--;
    pthread_cond_signal(&crew->ended);
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

/* Wait until all helpers have ended. (4) */
static enum hf_status crew_wait(struct hf_scope *s, struct bus_crew *crew)
{
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&crew->mutex);
    while (crew->running > 0) {
        cond_wait_us(&crew->ended, &crew->mutex, LOOK_US);
        if (status != HF_OK)
            continue;
        pthread_mutex_unlock(&crew->mutex);
        status = hf_scope_sleep_ms(s, 0);
        pthread_mutex_lock(&crew->mutex);
        crew->over = status != HF_OK;
        for (size_t i = 0; crew->over && i < crew->len; i++)
            hf_scope_cancel(crew->helpers[i].scope);
    }
    pthread_mutex_unlock(&crew->mutex);
    return status;
}

/* Start the helpers and wait for them. If the system has too few threads, fewer helpers do all the
 * work; if it has none, this thread does. */
static enum hf_status run_crew(struct hf_scope *s, struct bus_crew *crew)
{
    const struct hf_error *error;
    size_t started = 0;

    assert(crew->len && !crew->next && !crew->failed);
    crew->running = crew->len; /* nobody looks yet */
    for (size_t i = 0; i < crew->len; i++) {
        struct bus_helper *helper = &crew->helpers[i];

        helper->started = pthread_create(&helper->thread, NULL, helper_run, helper) == 0;
        started += helper->started;
    }
    pthread_mutex_lock(&crew->mutex);
    crew->running -= started ? crew->len - started : crew->len - 1;
    pthread_mutex_unlock(&crew->mutex);
    if (!started)
        helper_run(&crew->helpers[0]);
    TRY(crew_wait(s, crew));
    if (!crew->failed)
        return HF_OK;
    error = hf_scope_error(crew->failed->scope);
    (void)hf_scope_fail(s, error->status, "%.*s", HF_FMT(error->message));
    return error->may_have_happened ? hf_scope_doubt(s) : error->status;
}

static enum hf_status open_crew(struct hf_scope *s, struct bus_crew *crew)
{
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);

    TRY(hf_scope_sleep_ms(s, 0)); /* or it is late already */
    for (size_t i = 0; i < crew->len; i++) {
        struct bus_helper *helper = &crew->helpers[i];

        helper->scope = hf_scope_new(hf_scope_env(s));
        if (!helper->scope)
            return hf_scope_fail(s, HF_NOMEM, "no memory to call middleware concurrently");
        if (left_ms < UINT32_MAX)
            hf_scope_timeout_ms(helper->scope, left_ms ? left_ms : 1);
        helper->crew = crew;
        helper->active =
            (struct bus_active){.scope = helper->scope, .event = crew->e->cause, .helper = true};
        hf__bus_active_begin(crew->e->bus, &helper->active);
    }
    return HF_OK;
}

static void close_crew(struct bus_crew *crew)
{
    for (size_t i = 0; i < crew->len && crew->helpers[i].scope; i++) {
        struct bus_helper *helper = &crew->helpers[i];

        if (helper->started)
            pthread_join(helper->thread, NULL);
        hf__bus_active_end(crew->e->bus, &helper->active);
    }
    for (size_t i = 0; i < crew->len; i++)
        hf_scope_free(crew->helpers[i].scope);
    pthread_cond_destroy(&crew->ended);
    pthread_mutex_destroy(&crew->mutex);
}

/* The events, as middleware has changed them, are in the helpers' scopes until they are stored. */
static enum hf_status emit_at_once(struct hf_scope *s, struct bus_emission *e, size_t width)
{
    struct bus_crew crew = {.e = e, .len = width};
    enum hf_status status;

    crew.helpers = hf_scope_alloc(s, width * sizeof(*crew.helpers));
    TRY(hf_scope_built(s));
    memset(crew.helpers, 0, width * sizeof(*crew.helpers));
    for (size_t i = 0; i < e->len; i++)
        TRY(begin_event(s, e, i)); /* (2) */
    pthread_mutex_init(&crew.mutex, NULL);
    cond_monotonic_init(&crew.ended);
    status = open_crew(s, &crew);
    if (status == HF_OK)
        status = run_crew(s, &crew);
    if (status == HF_OK)
        status = emission_store(s, e);
    close_crew(&crew);
    return status;
}

/* ---- emitting ------------------------------------------------------------------------------- */

static bool has_middleware(struct hf_bus *bus)
{
    const struct bus_middleware *at;

    pthread_mutex_lock(&bus->mutex);
    for (at = bus->first; at && !(at->phases & HF_BUS_EMIT);)
        at = at->next;
    pthread_mutex_unlock(&bus->mutex);
    return at != NULL;
}

/* For how many events middleware is called at once. (5), (6) */
static size_t width_of(const struct bus_emission *e, bool is_helper)
{
    size_t most = e->bus->o.middleware_concurrency;

    if (most == 1 || e->len == 1 || e->tx || is_helper || !has_middleware(e->bus))
        return 1;
    return most < e->len ? most : e->len;
}

/* At once if `tx` is NULL. */
static enum hf_status emit_or_join(struct hf_scope *s, struct hf_bus *bus, struct hf_tx *tx,
                                   const struct hf_event *events, size_t len)
{
    const struct bus_active *active = hf__bus_active(bus, s);
    struct bus_emission e = {
        .bus = bus, .given = events, .cause = active ? active->event : NULL, .tx = tx, .len = len};
    size_t width;

    call_begins(s);
    if (len == 0)
        return HF_OK;
    if (len > SIZE_MAX / sizeof(*e.events))
        return hf_scope_fail(s, HF_LIMIT, "%zu events are too many", len);
    e.events = hf_scope_alloc(s, len * sizeof(*e.events));
    e.places = hf_scope_alloc(s, len * sizeof(*e.places));
    e.reached = hf_scope_alloc(s, len * sizeof(*e.reached));
    TRY(hf_scope_built(s));
    memset(e.places, 0, len * sizeof(*e.places));
    memset(e.reached, 0, len * sizeof(*e.reached));
    width = width_of(&e, active && active->helper);
    if (width > 1)
        return emit_at_once(s, &e, width);
    for (size_t i = 0; i < len; i++) {
        TRY(begin_event(s, &e, i));
        TRY(pass_event(s, &e, i));
    }
    return emission_store(s, &e);
}

enum hf_status hf_bus_emit(struct hf_scope *s, struct hf_bus *bus, const struct hf_event *events,
                           size_t len)
{
    return emit_or_join(s, bus, NULL, events, len);
}

enum hf_status hf_bus_emit_into(struct hf_scope *s, struct hf_bus *bus, struct hf_tx *tx,
                                const struct hf_event *events, size_t len)
{
    if (hf_tx_db(tx) != bus->outbox->db)
        return hf_scope_fail(s, HF_INVALID,
                             "the transaction is on another database than the bus's outbox");
    return emit_or_join(s, bus, tx, events, len);
}
