/*
 * outbox/bus.c: an event bus over an outbox: opening it, and who handles what.
 *
 * A bus is a relay whose sink calls functions. The relay does what is hard: order, retries, dead
 * letters, many processes. The bus finds the function for an event (here), passes the event through
 * the middleware (bus_call.c), and calls the function and those who wait for the event
 * (bus_handle.c). Emitting is in bus_emit.c.
 *
 * Handlers are sorted by type, so the most exact one is found by a few binary searches: for the type
 * itself, then for each prefix that ends with a dot, the longest first, followed by '*', then for "*".
 *
 * What always holds:
 *
 *  (1) A type has at most one handler.
 *  (2) No function of the user's is called while the mutex is held, and none needs anything that
 *      the mutex guards: handlers may be added and removed while they run.
 *  (3) An event is reported as delivered only if a handler or a waiter has had it, or if the options
 *      or a middleware let it go without one.
 *  (4) A handler for one event (hf_bus_once()) is out of the registry while it runs, so that no second
 *      event gets it; when it fails it is put back for the next attempt, unless it was removed
 *      meanwhile or another handler has its type. Putting it back needs no memory.
 *  (5) Middleware that is added while an event is on its way is called for the next event only.
 */
#include "outbox/bus.h"

#include <stdio.h>

enum { SOME = 8, LINE_MAX_LEN = 600 };

/* ---- the registry --------------------------------------------------------------------------- */

enum hf_status hf__bus_check_type(struct hf_scope *s, struct hf_str type)
{
    const char *star = type.len ? memchr(type.ptr, '*', type.len) : NULL;

    if (type.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a handler needs a type");
    if (type.len > HF_EVENT_TEXT_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENT_TEXT_MAX, type.len),
                                   "the type of a handler is longer than %d bytes",
                                   HF_EVENT_TEXT_MAX);
    if (star && (star != type.ptr + type.len - 1 || (type.len > 1 && star[-1] != '.')))
        return hf_scope_fail(s, HF_INVALID,
                             "invalid type %.*s: a '*' has to be all of the last part",
                             HF_FMT(type));
    return HF_OK;
}

/* Compare the type with `head` followed by `tail`. */
static int type_compare(struct hf_str type, struct hf_str head, struct hf_str tail)
{
    size_t of_head = type.len < head.len ? type.len : head.len;
    int order = of_head ? memcmp(type.ptr, head.ptr, of_head) : 0;
    size_t rest, of_tail;

    if (order != 0 || type.len < head.len)
        return order != 0 ? order : -1;
    rest = type.len - head.len;
    of_tail = rest < tail.len ? rest : tail.len;
    order = of_tail ? memcmp(type.ptr + head.len, tail.ptr, of_tail) : 0;
    return order != 0 ? order : (rest > tail.len) - (rest < tail.len);
}

/* The place of the handler of that type, or where it would be inserted. */
static size_t registry_place_of(const struct hf_bus *bus, struct hf_str head, struct hf_str tail,
                                bool *there)
{
    size_t low = 0, high = bus->handlers_len;

    *there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = type_compare(handler_type(bus->handlers[middle]), head, tail);

        if (order == 0)
            *there = true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct bus_handler *handler_get(const struct hf_bus *bus, struct hf_str head,
                                       struct hf_str tail)
{
    bool there;
    size_t place = registry_place_of(bus, head, tail, &there);

    return there ? bus->handlers[place] : NULL;
}

/* (1) Handlers are sorted, no type is there twice, and there is room for those that were taken. */
static void registry_check(struct hf_bus *bus)
{
    ASSERT_HELD(&bus->mutex);
    assert(bus->handlers_len + bus->taken_len <= bus->handlers_cap);
    for (size_t i = 1; DEV_CHECKS && i < bus->handlers_len; i++)
        assert(type_compare(handler_type(bus->handlers[i - 1]), handler_type(bus->handlers[i]),
                            hf_str_of("", 0)) < 0);
}

struct bus_handler *hf__bus_find(struct hf_bus *bus, struct hf_str type)
{
    struct bus_handler *found = handler_get(bus, type, hf_str_of("", 0));

    ASSERT_HELD(&bus->mutex);
    for (size_t i = type.len ? type.len - 1 : 0; !found && i-- > 0;)
        if (type.ptr[i] == '.')
            found = handler_get(bus, hf_str_of(type.ptr, i + 1), HF_STR("*"));
    return found ? found : handler_get(bus, hf_str_of("", 0), HF_STR("*"));
}

static void registry_insert(struct hf_bus *bus, struct bus_handler *handler)
{
    bool there;
    size_t place = registry_place_of(bus, handler_type(handler), hf_str_of("", 0), &there);

    assert(!there && bus->handlers_len < bus->handlers_cap);
    memmove(&bus->handlers[place + 1], &bus->handlers[place],
            (bus->handlers_len - place) * sizeof(struct bus_handler *));
    bus->handlers[place] = handler;
    bus->handlers_len++;
    registry_check(bus);
}

static void registry_remove_at(struct hf_bus *bus, size_t place)
{
    ASSERT_HELD(&bus->mutex);
    assert(place < bus->handlers_len);
    bus->handlers_len--;
    memmove(&bus->handlers[place], &bus->handlers[place + 1],
            (bus->handlers_len - place) * sizeof(struct bus_handler *));
}

static struct bus_handler *handler_new(struct hf_bus *bus, struct hf_str type, hf_bus_fn *handle,
                                       void *user, bool once)
{
    struct bus_handler *handler = hf__env_zalloc(&bus->env, sizeof(*handler) + type.len);

    if (!handler)
        return NULL;
    handler->handle = handle;
    handler->user = user;
    handler->once = once;
    handler->type_len = type.len;
    memcpy(handler->type, type.ptr, type.len);
    return handler;
}

static void handler_free(struct hf_bus *bus, struct bus_handler *handler)
{
    if (handler)
        hf__env_free(&bus->env, handler, sizeof(*handler) + handler->type_len);
}

void hf__bus_take(struct hf_bus *bus, struct bus_handler *handler)
{
    bool there;
    size_t place = registry_place_of(bus, handler_type(handler), hf_str_of("", 0), &there);

    assert(there && bus->handlers[place] == handler);
    registry_remove_at(bus, place);
    handler->next = bus->taken;
    bus->taken = handler;
    bus->taken_len++;
    registry_check(bus);
}

/* (4) */
void hf__bus_put_back(struct hf_bus *bus, struct bus_handler *handler, bool failed)
{
    struct bus_handler **at = &bus->taken;

    ASSERT_HELD(&bus->mutex);
    assert(bus->taken_len);
    while (*at != handler) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = handler->next;
    bus->taken_len--;
    if (failed && !handler->off && !handler_get(bus, handler_type(handler), hf_str_of("", 0)))
        registry_insert(bus, handler);
    else
        handler_free(bus, handler);
}

/* Make room for `more` handlers. */
static bool registry_reserve(struct hf_bus *bus, size_t more)
{
    size_t needed = bus->handlers_len + bus->taken_len + more;
    size_t cap = bus->handlers_cap ? bus->handlers_cap : SOME;
    struct bus_handler **handlers;

    ASSERT_HELD(&bus->mutex);
    while (cap < needed)
        cap *= 2;
    if (cap == bus->handlers_cap)
        return true;
    handlers = hf__env_zalloc(&bus->env, cap * sizeof(struct bus_handler *));
    if (!handlers)
        return false;
    if (bus->handlers_len)
        memcpy(handlers, bus->handlers, bus->handlers_len * sizeof(struct bus_handler *));
    hf__env_free(&bus->env, bus->handlers, bus->handlers_cap * sizeof(struct bus_handler *));
    bus->handlers = handlers;
    bus->handlers_cap = cap;
    return true;
}

/* Add all of these handlers, or none: then *refused is one whose type has a handler, or NULL. (1) */
static bool add_all(struct hf_bus *bus, struct bus_handler **added, size_t len,
                    struct bus_handler **refused)
{
    bool done = false;
    size_t i;

    *refused = NULL;
    pthread_mutex_lock(&bus->mutex);
    if (registry_reserve(bus, len)) {
        for (i = 0; i < len && !handler_get(bus, handler_type(added[i]), hf_str_of("", 0)); i++)
            registry_insert(bus, added[i]);
        done = i == len;
        if (!done)
            *refused = added[i];
        while (!done && i-- > 0) {
            bool there;
            size_t place = registry_place_of(bus, handler_type(added[i]), hf_str_of("", 0), &there);

            assert(there);
            registry_remove_at(bus, place);
        }
    }
    pthread_mutex_unlock(&bus->mutex);
    return done;
}

static enum hf_status bus_subscribe(struct hf_scope *s, struct hf_bus *bus,
                                    const struct hf_str *types, size_t len, hf_bus_fn *handle,
                                    void *user, bool once)
{
    struct bus_handler **added, *refused = NULL;
    bool made = true, done = false;

    if (!handle)
        return hf_scope_fail(s, HF_INVALID, "the handler function is missing");
    for (size_t i = 0; i < len; i++)
        TRY(hf__bus_check_type(s, types[i]));
    if (len == 0)
        return HF_OK;
    if (len > SIZE_MAX / sizeof(struct bus_handler *))
        return hf_scope_fail(s, HF_LIMIT, "%zu handlers are too many", len);
    added = hf_scope_alloc(s, len * sizeof(struct bus_handler *));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        added[i] = made ? handler_new(bus, types[i], handle, user, once) : NULL;
        made = made && added[i];
    }
    if (made)
        done = add_all(bus, added, len, &refused);
    if (done)
        return HF_OK;
    if (refused)
        (void)hf_scope_fail(s, HF_DUPLICATE, "the type %.*s has a handler already",
                            HF_FMT(handler_type(refused)));
    else
        (void)hf_scope_fail(s, HF_NOMEM, "no memory for %zu handlers", len);
    for (size_t i = 0; i < len; i++)
        handler_free(bus, added[i]);
    return hf_scope_error(s)->status;
}

enum hf_status hf_bus_on(struct hf_scope *s, struct hf_bus *bus, struct hf_str type,
                         hf_bus_fn *handle, void *user)
{
    call_begins(s);
    return bus_subscribe(s, bus, &type, 1, handle, user, false);
}

enum hf_status hf_bus_once(struct hf_scope *s, struct hf_bus *bus, struct hf_str type,
                           hf_bus_fn *handle, void *user)
{
    call_begins(s);
    return bus_subscribe(s, bus, &type, 1, handle, user, true);
}

enum hf_status hf_bus_subscribe(struct hf_scope *s, struct hf_bus *bus, const struct hf_str *types,
                                size_t len, hf_bus_fn *handle, void *user)
{
    call_begins(s);
    return bus_subscribe(s, bus, types, len, handle, user, false);
}

/* Mark handlers that run for their one event, so that they are not put back; returns how many. (4) */
static size_t taken_mark_off(struct hf_bus *bus, struct hf_str type, hf_bus_fn *handle,
                             const void *user)
{
    size_t count = 0;

    ASSERT_HELD(&bus->mutex);
    for (struct bus_handler *at = bus->taken; at; at = at->next)
        if (!at->off && (!type.ptr || hf_str_equal(type, handler_type(at))) &&
            (!handle || (at->handle == handle && at->user == user))) {
            at->off = true;
            count++;
        }
    return count;
}

bool hf_bus_off(struct hf_bus *bus, struct hf_str type, hf_bus_fn *handle, void *user)
{
    bool there, taken;
    size_t place;

    pthread_mutex_lock(&bus->mutex);
    place = registry_place_of(bus, type, hf_str_of("", 0), &there);
    if (there && (bus->handlers[place]->handle != handle || bus->handlers[place]->user != user))
        there = false;
    if (there) {
        handler_free(bus, bus->handlers[place]);
        registry_remove_at(bus, place);
    }
    taken = type.len && taken_mark_off(bus, type, handle, user) > 0;
    pthread_mutex_unlock(&bus->mutex);
    return there || taken;
}

size_t hf_bus_off_all(struct hf_bus *bus, struct hf_str type)
{
    size_t count, kept = 0;

    pthread_mutex_lock(&bus->mutex);
    count = taken_mark_off(bus, type, NULL, NULL);
    for (size_t i = 0; i < bus->handlers_len; i++) {
        struct bus_handler *handler = bus->handlers[i];

        if (type.ptr && !hf_str_equal(type, handler_type(handler)))
            bus->handlers[kept++] = handler;
        else
            handler_free(bus, handler);
    }
    count += bus->handlers_len - kept;
    bus->handlers_len = kept;
    registry_check(bus);
    pthread_mutex_unlock(&bus->mutex);
    return count;
}

size_t hf_bus_count(struct hf_bus *bus)
{
    size_t count;

    pthread_mutex_lock(&bus->mutex);
    count = bus->handlers_len;
    pthread_mutex_unlock(&bus->mutex);
    return count;
}

bool hf_bus_has(struct hf_bus *bus, struct hf_str type)
{
    bool there;

    pthread_mutex_lock(&bus->mutex);
    (void)registry_place_of(bus, type, hf_str_of("", 0), &there);
    pthread_mutex_unlock(&bus->mutex);
    return there;
}

enum hf_status hf_bus_types(struct hf_scope *s, struct hf_bus *bus, const struct hf_str **types,
                            size_t *len)
{
    struct hf_str *list;

    call_begins(s);
    *types = NULL;
    *len = 0;
    pthread_mutex_lock(&bus->mutex);
    list = hf_scope_alloc(s, (bus->handlers_len + 1) * sizeof(*list));
    for (size_t i = 0; list && i < bus->handlers_len; i++)
        list[(*len)++] = hf_scope_copy(s, handler_type(bus->handlers[i]));
    pthread_mutex_unlock(&bus->mutex);
    if (hf_scope_built(s) != HF_OK) {
        *len = 0;
        return HF_NOMEM;
    }
    *types = list;
    return HF_OK;
}

enum hf_status hf_bus_use(struct hf_scope *s, struct hf_bus *bus, int phases,
                          hf_bus_middleware_fn *middleware, void *user)
{
    struct bus_middleware *added;

    call_begins(s);
    if (!middleware || !(phases & (HF_BUS_EMIT | HF_BUS_HANDLE)) ||
        (phases & ~(HF_BUS_EMIT | HF_BUS_HANDLE)))
        return hf_scope_fail(s, HF_INVALID,
                             "middleware needs a function, and phases that are HF_BUS_EMIT, "
                             "HF_BUS_HANDLE or both");
    added = hf__env_zalloc(&bus->env, sizeof(*added));
    if (!added)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a middleware");
    added->phases = phases;
    added->call = middleware;
    added->user = user;
    pthread_mutex_lock(&bus->mutex);
    if (bus->last)
        bus->last->next = added;
    else
        bus->first = added;
    bus->last = added;
    pthread_mutex_unlock(&bus->mutex);
    return HF_OK;
}

/* ---- what goes wrong in the background ------------------------------------------------------ */

static void log_error(const struct hf_bus *bus, const struct hf_outbox_event *event,
                      const struct hf_error *error, enum hf_relay_outcome outcome)
{
    const char *then = outcome == HF_RELAY_GIVEN_UP ? "became a dead letter"
                       : outcome == HF_RELAY_UNSURE ? "was handled, but that is not recorded yet"
                                                    : "will be retried";
    char line[LINE_MAX_LEN];
    int len;

    if (!bus->env.log)
        return;
    if (event)
        len = snprintf(line, sizeof(line), "event %.*s of type %.*s %s: %.*s",
                       HF_FMT(event->event.id), HF_FMT(event->event.type), then,
                       HF_FMT(error->message));
    else
        len = snprintf(line, sizeof(line), "event bus: %.*s", HF_FMT(error->message));
    if (len > 0)
        bus->env.log(outcome == HF_RELAY_GIVEN_UP ? HF_LOG_ERROR : HF_LOG_WARNING,
                     hf_str_of(line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1),
                     bus->env.user);
}

static void error_report(const struct hf_bus *bus, const struct hf_outbox_event *event,
                         const struct hf_error *error, enum hf_relay_outcome outcome)
{
    if (bus->o.on_error)
        bus->o.on_error(event, error, outcome, bus->o.user);
    else
        log_error(bus, event, error, outcome);
}

static void on_ended(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                     const struct hf_error *error, void *user)
{
    static const struct hf_error silent = {.status = HF_INTERNAL};

    if (outcome != HF_RELAY_DELIVERED)
        error_report(user, event, error ? error : &silent, outcome);
}

static void on_error(const struct hf_error *error, void *user)
{
    error_report(user, NULL, error, HF_RELAY_RETRY);
}

/* ---- open and close ------------------------------------------------------------------------- */

static void on_stuck(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    const struct hf_bus *bus = user;

    if (bus->on_stuck)
        bus->on_stuck(event, for_ms, bus->stuck_user);
}

static bool is_policy(enum hf_bus_unhandled policy)
{
    return policy == HF_BUS_PARK || policy == HF_BUS_RETRY || policy == HF_BUS_IGNORE;
}

static enum hf_status options_check(struct hf_scope *s, struct hf_bus_options *o,
                                    const struct hf_relay_options *relay)
{
    o->unhandled = o->unhandled ? o->unhandled : HF_BUS_PARK;
    o->dropped = o->dropped ? o->dropped : HF_BUS_IGNORE;
    if (!is_policy(o->unhandled) || !is_policy(o->dropped))
        return hf_scope_fail(s, HF_INVALID,
                             "unhandled and dropped have to be HF_BUS_PARK, HF_BUS_RETRY or "
                             "HF_BUS_IGNORE");
    o->middleware_concurrency = o->middleware_concurrency ? o->middleware_concurrency : 1;
    if (o->middleware_concurrency > HF_BUS_CONCURRENCY_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_BUS_CONCURRENCY_MAX,
                                                  o->middleware_concurrency),
                                   "a middleware_concurrency of %u is more than %d",
                                   o->middleware_concurrency, HF_BUS_CONCURRENCY_MAX);
    if (relay->on_ended || relay->on_error || relay->dry_run)
        return hf_scope_fail(
            s, HF_INVALID,
            "the options of a bus's relay may not set on_ended, on_error or dry_run");
    return HF_OK;
}

static enum hf_status open_inside(struct hf_scope *s, struct hf_bus *bus,
                                  struct hf_relay_options *relay)
{
    relay->size = sizeof(*relay);
    bus->on_stuck = relay->on_stuck;
    bus->stuck_user = relay->user;
    relay->on_ended = on_ended;
    relay->on_error = on_error;
    relay->on_stuck = on_stuck;
    relay->user = bus;
    TRY(hf_sink_new(s, &hf__bus_sink, bus, &bus->sink));
    return hf_relay_open(s, bus->outbox, bus->sink, relay, &bus->relay);
}

enum hf_status hf_bus_open(struct hf_scope *s, struct hf_outbox *outbox,
                           const struct hf_bus_options *options, struct hf_bus **out)
{
    struct hf_relay_options relay;
    struct hf_bus_options o;
    struct hf_bus *bus;
    enum hf_status status;

    *out = NULL;
    OPTIONS_COPY(&o, options);
    OPTIONS_COPY(&relay, o.relay);
    TRY(options_check(s, &o, &relay));
    bus = hf__env_zalloc(hf_scope_env(s), sizeof(*bus));
    if (!bus)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a bus");
    bus->env = *hf_scope_env(s);
    bus->outbox = outbox;
    bus->o = o;
    bus->o.relay = NULL;
    pthread_mutex_init(&bus->mutex, NULL);
    status = open_inside(s, bus, &relay);
    if (status != HF_OK) {
        hf_bus_close(bus);
        return status;
    }
    *out = bus;
    return HF_OK;
}

void hf_bus_close(struct hf_bus *bus)
{
    struct hf_env env;

    if (!bus)
        return;
    env = bus->env;
    hf_relay_close(bus->relay);
    hf_sink_close(bus->sink);
    assert(!bus->taken && !bus->active);
    (void)hf_bus_off_all(bus, hf_str_of(NULL, 0));
    hf__env_free(&env, bus->handlers, bus->handlers_cap * sizeof(struct bus_handler *));
    while (bus->first) {
        struct bus_middleware *next = bus->first->next;

        hf__env_free(&env, bus->first, sizeof(*bus->first));
        bus->first = next;
    }
    hf__bus_forget_waits(bus);
    pthread_mutex_destroy(&bus->mutex);
    hf__env_free(&env, bus, sizeof(*bus));
}

enum hf_status hf_bus_start(struct hf_scope *s, struct hf_bus *bus)
{
    call_begins(s);
    return hf_relay_start(s, bus->relay);
}

enum hf_status hf_bus_stop(struct hf_scope *s, struct hf_bus *bus)
{
    call_begins(s);
    return hf_relay_stop(s, bus->relay);
}

struct hf_relay *hf_bus_relay(struct hf_bus *bus)
{
    return bus->relay;
}

struct hf_outbox *hf_bus_outbox(struct hf_bus *bus)
{
    return bus->outbox;
}
