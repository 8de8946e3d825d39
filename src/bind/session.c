/*
 * bind/session.c: sessions, what they hand over, and the methods session.*.
 *
 *  (1) One mutex guards all sessions of a bind. It is never held while a pattern is called, but for
 *      hf__session_about(), whose functions only build something.
 *  (2) A delivery lives on the stack of the thread that waits for it, and is in the list of its
 *      session as long as that thread waits. It is handed over once.
 *  (3) Who waits, for a delivery or for its end, waits by a scope (base/wait.h): cancellation,
 *      deadline and news wake it alike.
 *  (4) A session that ends is first not found any more; then calls that use it are waited for; then
 *      what it holds is closed, which takes deliveries back.
 *  (5) Notices are bounded: the oldest are forgotten, and counted.
 */
#include "bind/session_private.h"

#include <inttypes.h>

#include "base/wait.h"
#include "wire/wire.h"

enum { NOTICES_MAX = 1000, NEXT_DEFAULT = 1 };

struct bind_sessions *hf__sessions_new(const struct hf_env *env)
{
    struct bind_sessions *all = hf__env_zalloc(env, sizeof(*all));

    if (!all)
        return NULL;
    all->env = *env;
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->unused, NULL);
    return all;
}

void hf__sessions_free(struct bind_sessions *all)
{
    struct hf_env env = all->env;

    assert(!all->first && !all->waiters);
    pthread_cond_destroy(&all->unused);
    pthread_mutex_destroy(&all->mutex);
    hf__env_free(&env, all, sizeof(*all));
}

void hf__sessions_wake(struct bind_sessions *all)
{
    for (struct session_waiter *w = all->waiters; w; w = w->next)
        hf__scope_wake(w->scope);
}

/* ---- the life of a session ------------------------------------------------------------------ */

enum hf_status hf__session_new(struct hf_scope *s, struct hf_bind *bind,
                               const struct session_kind *kind, struct bind_session **session)
{
    struct bind_sessions *all = hf__bind_sessions(bind);
    struct bind_session *new = hf__env_zalloc(&all->env, sizeof(*new));

    *session = new;
    if (!new)
        return hf__fail_nomem(s);
    new->all = all;
    new->bind = bind;
    new->kind = kind;
    return HF_OK;
}

static void session_free(struct bind_session *session)
{
    assert(!session->deliveries && !session->users);
    while (session->notices) {
        struct bind_notice *notice = session->notices;

        session->notices = notice->next;
        hf__env_free(&session->all->env, notice, notice->size);
    }
    hf__env_free(&session->all->env, session, sizeof(*session));
}

void hf__session_drop(struct bind_session *session)
{
    session_free(session);
}

void hf__session_begin(struct bind_session *session, void *object, uint64_t *id)
{
    struct bind_sessions *all = session->all;
    struct bind_session **at = &all->first;

    pthread_mutex_lock(&all->mutex);
    assert(!session->id && !session->object && object);
    session->object = object;
    session->id = ++all->last_id;
    *id = session->id;
    while (*at)
        at = &(*at)->next;
    *at = session;
    hf__sessions_wake(all); /* there may be deliveries already */
    pthread_mutex_unlock(&all->mutex);
}

struct hf_bind *hf__session_bind(struct bind_session *session)
{
    return session->bind;
}

static struct bind_session *find_locked(struct bind_sessions *all, uint64_t id)
{
    for (struct bind_session *session = all->first; session; session = session->next)
        if (session->id == id && !session->ending)
            return session;
    return NULL;
}

enum hf_status hf__session_find(struct hf_scope *s, struct hf_bind *bind, uint64_t id,
                                const struct session_kind *kind, struct bind_session **session,
                                void **object)
{
    struct bind_sessions *all = hf__bind_sessions(bind);
    const char *is = NULL;

    pthread_mutex_lock(&all->mutex);
    *session = find_locked(all, id);
    if (*session && kind && (*session)->kind != kind) {
        is = (*session)->kind->name;
        *session = NULL;
    }
    if (*session) {
        (*session)->users++;
        *object = (*session)->object;
    }
    pthread_mutex_unlock(&all->mutex);
    if (*session)
        return HF_OK;
    if (is)
        return hf_scope_fail(s, HF_INVALID, "session %" PRIu64 " is a %s, not a %s", id, is,
                             kind->name);
    return hf_scope_fail(s, HF_NOT_FOUND, "there is no session %" PRIu64, id);
}

void hf__session_give(struct bind_session *session)
{
    struct bind_sessions *all = session->all;

    pthread_mutex_lock(&all->mutex);
    assert(session->users > 0);
    session->users--;
    pthread_cond_broadcast(&all->unused);
    pthread_mutex_unlock(&all->mutex);
}

/* (4) False: another call ends it. */
static bool session_unlist(struct bind_session *session, uint32_t users)
{
    struct bind_sessions *all = session->all;
    struct bind_session **at = &all->first;
    bool first;

    pthread_mutex_lock(&all->mutex);
    first = !session->ending;
    session->ending = true;
    hf__sessions_wake(all);
    while (first && session->users > users)
        pthread_cond_wait(&all->unused, &all->mutex);
    if (first) {
        assert(session->users == users);
        while (*at != session)
            at = &(*at)->next;
        *at = session->next;
    }
    pthread_mutex_unlock(&all->mutex);
    return first;
}

void hf__session_end(struct bind_session *session)
{
    if (!session_unlist(session, 1)) {
        hf__session_give(session);
        return;
    }
    session->users = 0;
    session->kind->close(session->object);
    session_free(session);
}

enum hf_status hf__session_take(struct hf_scope *s, struct hf_bind *bind, uint64_t id,
                                const struct session_kind *kind, struct bind_session **session,
                                void **object)
{
    TRY(hf__session_find(s, bind, id, kind, session, object));
    if (!session_unlist(*session, 1)) {
        hf__session_give(*session);
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no session %" PRIu64, id);
    }
    (*session)->users = 0;
    return HF_OK;
}

void hf__sessions_close_all(struct bind_sessions *all)
{
    struct bind_session *session;

    while ((session = all->first) != NULL) { /* no call runs any more */
        bool ours = session_unlist(session, 0);

        assert(ours);
        (void)ours;
        session->kind->close(session->object);
        session_free(session);
    }
}

/* ---- notices -------------------------------------------------------------------------------- */

static void forget_oldest(struct bind_session *session)
{
    struct bind_notice *oldest = session->notices;

    session->notices = oldest->next;
    session->notices_len--;
    session->forgotten++;
    hf__env_free(&session->all->env, oldest, oldest->size);
}

static struct bind_notice *notice_new(const struct hf_env *env, struct hf_str type,
                                      struct hf_str rest)
{
    const struct hf_str parts[] = {HF_STR("\"type\":\""), type, HF_STR("\""), rest};
    struct bind_notice *notice;
    size_t len = 0;
    char *to;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        len += parts[i].len;
    notice = hf__env_zalloc(env, sizeof(*notice) + len);
    if (!notice)
        return NULL;
    to = (char *)(notice + 1);
    notice->size = sizeof(*notice) + len;
    notice->members = hf_str_of(to, len);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].len)
            memcpy(to, parts[i].ptr, parts[i].len);
        to += parts[i].len;
    }
    return notice;
}

void hf__session_notice(struct bind_session *session, const char *type, struct hf_str rest)
{
    struct bind_sessions *all = session->all;
    struct bind_notice *notice = notice_new(&all->env, hf_str_from(type), rest), **at;

    pthread_mutex_lock(&all->mutex);
    if (notice) {
        for (at = &session->notices; *at;)
            at = &(*at)->next;
        *at = notice;
        session->notices_len++;
        if (session->notices_len > NOTICES_MAX)
            forget_oldest(session);
    } else {
        session->forgotten++;
    }
    hf__sessions_wake(all);
    pthread_mutex_unlock(&all->mutex);
}

void hf__session_notice_error(struct bind_session *session, const char *type,
                              const struct hf_error *error)
{
    struct hf_scope *s = hf_scope_new(&session->all->env);
    struct hf__buf buf = {.scope = s};

    if (s && error && error->status != HF_OK) {
        hf__buf_put_str(&buf, HF_STR(",\"error\":"));
        hf__bind_write_error(&buf, error);
    }
    hf__session_notice(session, type,
                       s && !buf.failed ? hf_str_of((const char *)buf.ptr, buf.len)
                                        : (struct hf_str){0});
    hf_scope_free(s);
}

/* ---- session.next, session.wait ------------------------------------------------------------- */

struct session_next_args {
    uint64_t session;
    uint32_t limit, wait_ms;
    bool again;
};
struct session_next_result {
    struct hf_str deliveries, notices;
    uint64_t *ready;
    size_t ready_len;
    uint64_t take; /* not in the JSON */
};

#define T session_next_args
ARGUMENTS(session_next, U64("session", session), U32("limit", limit), U32("wait_ms", wait_ms),
          BOOL("again", again));
ARGUMENTS(session_wait, U32("wait_ms", wait_ms));
#undef T
#define T session_next_result
RESULT(session_next, JSON("deliveries", deliveries), JSON("notices", notices));
RESULT(session_wait, COUNTS("sessions", ready));
#undef T

/* What a call takes, or looks for. */
struct session_taking {
    const struct session_next_args *args;
    struct hf__buf deliveries, notices;
    uint64_t take;
    uint32_t left;
    bool any;
    bool gone; /* the session that was asked for is not there */
};

static void put_object(struct hf__buf *buf, uint64_t session, struct hf_str members)
{
    hf__buf_format(buf, "%s{\"session\":%" PRIu64 ",", buf->len > 1 ? "," : "", session);
    hf__buf_put_str(buf, members);
    hf__buf_put_byte(buf, '}');
}

static void take_notices(struct session_taking *t, struct bind_session *session)
{
    while (session->notices && !t->notices.failed) {
        struct bind_notice *notice = session->notices;

        put_object(&t->notices, session->id, notice->members);
        if (t->notices.failed)
            return;
        session->notices = notice->next;
        session->notices_len--;
        hf__env_free(&session->all->env, notice, notice->size);
        t->any = true;
    }
}

static void take_deliveries(struct session_taking *t, struct bind_session *session)
{
    for (struct bind_delivery *d = session->deliveries; d && t->left; d = d->next) {
        bool first = d->state == DELIVERY_WAITING && !session->draining;

        if (!first && !(t->args->again && d->state == DELIVERY_HANDED))
            continue;
        hf__buf_format(&t->deliveries, "%s{\"session\":%" PRIu64 ",\"token\":%" PRIu64 ",",
                       t->deliveries.len > 1 ? "," : "", session->id, d->token);
        hf__buf_put_str(&t->deliveries, d->members);
        hf__buf_put_byte(&t->deliveries, '}');
        if (t->deliveries.failed) /* it stays */
            return;
        d->state = DELIVERY_HANDED;
        d->take = t->take;
        t->left--;
        t->any = true;
    }
}

static void take_from(struct bind_sessions *all, struct session_taking *t)
{
    pthread_mutex_lock(&all->mutex);
    t->gone = t->args->session && !find_locked(all, t->args->session);
    for (struct bind_session *session = all->first; session; session = session->next) {
        if (session->ending || (t->args->session && session->id != t->args->session))
            continue;
        take_notices(t, session);
        take_deliveries(t, session);
    }
    pthread_mutex_unlock(&all->mutex);
}

void hf__session_untake(struct hf_bind *bind, uint64_t take)
{
    struct bind_sessions *all = hf__bind_sessions(bind);

    pthread_mutex_lock(&all->mutex);
    for (struct bind_session *session = all->first; session; session = session->next)
        for (struct bind_delivery *d = session->deliveries; d; d = d->next)
            if (d->take == take && d->state == DELIVERY_HANDED)
                d->state = DELIVERY_WAITING;
    hf__sessions_wake(all);
    pthread_mutex_unlock(&all->mutex);
}

uint64_t hf__session_taken(const void *next_result)
{
    return ((const struct session_next_result *)next_result)->take;
}

static uint64_t take_begin(struct bind_sessions *all)
{
    uint64_t take;

    pthread_mutex_lock(&all->mutex);
    take = ++all->last_take;
    pthread_mutex_unlock(&all->mutex);
    return take;
}

static void waiter_add(struct bind_sessions *all, struct session_waiter *waiter)
{
    pthread_mutex_lock(&all->mutex);
    waiter->next = all->waiters;
    all->waiters = waiter;
    pthread_mutex_unlock(&all->mutex);
}

static void waiter_remove(struct bind_sessions *all, struct session_waiter *waiter)
{
    struct session_waiter **at = &all->waiters;

    pthread_mutex_lock(&all->mutex);
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    pthread_mutex_unlock(&all->mutex);
}

/* Until when, by the elapsed clock. */
static int64_t wait_until(const struct hf_scope *s, uint32_t wait_ms)
{
    return hf__env_elapsed_us(hf_scope_env(s)) + (int64_t)wait_ms * 1000;
}

enum hf_status hf__sessions_wait(struct hf_scope *s, struct bind_sessions *all, uint32_t wait_ms,
                                 bool (*look)(struct bind_sessions *all, void *user), void *user)
{
    struct session_waiter waiter = {.scope = s};
    int64_t until = wait_until(s, wait_ms);
    enum hf_status status = HF_OK;

    waiter_add(all, &waiter);
    for (;;) {
        uint32_t wakes = hf__scope_wakes(s);

        if (look(all, user) || hf__env_elapsed_us(hf_scope_env(s)) >= until)
            break;
        status = hf__scope_wait(s, wakes, until);
        if (status == HF_TIMEOUT && hf__env_elapsed_us(hf_scope_env(s)) >= until &&
            hf_scope_left_ms(s, 1) > 0)
            status = hf_scope_ok(s);
        if (status != HF_OK)
            break;
    }
    waiter_remove(all, &waiter);
    return status;
}

static bool look_for_next(struct bind_sessions *all, void *user)
{
    struct session_taking *t = user;

    take_from(all, t);
    return t->any || t->gone || t->deliveries.failed || t->notices.failed;
}

BIND_FUNCTION(session_next)
{
    const struct session_next_args *args = args_in;
    struct session_next_result *result = result_out;
    struct session_taking t = {.args = args,
                               .deliveries = {.scope = s},
                               .notices = {.scope = s},
                               .take = take_begin(hf__bind_sessions(bind)),
                               .left = args->limit ? args->limit : NEXT_DEFAULT};

    hf__buf_put_byte(&t.deliveries, '[');
    hf__buf_put_byte(&t.notices, '[');
    TRY(hf__sessions_wait(s, hf__bind_sessions(bind), args->wait_ms, look_for_next, &t));
    if (t.gone && !t.any)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no session %" PRIu64, args->session);
    hf__buf_put_byte(&t.deliveries, ']');
    hf__buf_put_byte(&t.notices, ']');
    if (t.deliveries.failed || t.notices.failed) {
        hf__session_untake(bind, t.take);
        return hf__fail_nomem(s);
    }
    result->take = t.take;
    result->deliveries = hf_str_of((const char *)t.deliveries.ptr, t.deliveries.len);
    result->notices = hf_str_of((const char *)t.notices.ptr, t.notices.len);
    return HF_OK;
}

static bool session_is_ready(const struct bind_session *session)
{
    if (session->ending)
        return false;
    for (const struct bind_delivery *d = session->deliveries; d && !session->draining; d = d->next)
        if (d->state == DELIVERY_WAITING)
            return true;
    return session->notices != NULL;
}

enum { READY_MAX = 1000 };

static bool look_for_ready(struct bind_sessions *all, void *user)
{
    struct session_next_result *result = user;

    result->ready_len = 0;
    pthread_mutex_lock(&all->mutex);
    for (struct bind_session *session = all->first; session; session = session->next)
        if (session_is_ready(session) && result->ready_len < READY_MAX)
            result->ready[result->ready_len++] = session->id;
    pthread_mutex_unlock(&all->mutex);
    return result->ready_len > 0;
}

BIND_FUNCTION(session_wait)
{
    const struct session_next_args *args = args_in;
    struct session_next_result *result = result_out;

    result->ready = hf__scope_array(s, READY_MAX, sizeof(*result->ready));
    if (!result->ready)
        return hf__fail_nomem(s);
    return hf__sessions_wait(s, hf__bind_sessions(bind), args->wait_ms, look_for_ready, result);
}

/* ---- session.done --------------------------------------------------------------------------- */

struct session_error {
    struct hf_str message;
    bool permanent, unreachable;
};
struct session_done_args {
    uint64_t token;
    struct session_error *error;
    struct session_failure *failures;
    size_t failures_len;
};

#define T session_error
PART(session_error, TEXT("message", message), BOOL("permanent", permanent),
     BOOL("unreachable", unreachable));
#undef T
#define T session_failure
PART(session_failure, U64("index", index, REQUIRED), TEXT("message", message),
     BOOL("permanent", permanent));
#undef T
#define T session_done_args
ARGUMENTS(session_done, U64("token", token, REQUIRED), POINTER("error", error, session_error),
          STRUCTS("failures", failures, session_failure));
#undef T
NO_RESULT(session_done);

/* What was said, in a scope of its own: that of who waits is not ours to use. */
static enum hf_status make_outcome(struct hf_scope *s, const struct session_done_args *args,
                                   struct hf_scope **said, struct session_outcome *outcome)
{
    struct session_outcome given = {.failures = args->failures, .failures_len = args->failures_len};
    enum hf_status status;

    *said = NULL;
    if (args->error) {
        given.failed = true;
        given.permanent = args->error->permanent;
        given.unreachable = args->error->unreachable;
        given.message = args->error->message;
    }
    *said = hf_scope_new(hf_scope_env(s));
    if (!*said)
        return hf__fail_nomem(s);
    status = hf__session_outcome(*said, &given, outcome);
    if (status != HF_OK) {
        hf_scope_free(*said);
        return hf__fail_nomem(s);
    }
    return HF_OK;
}

BIND_FUNCTION(session_done)
{
    struct bind_sessions *all = hf__bind_sessions(bind);
    const struct session_done_args *args = args_in;
    const struct bind_session *session = NULL;
    struct bind_delivery *delivery;
    struct session_outcome outcome;
    struct hf_scope *said;

    (void)result_out;
    TRY(make_outcome(s, args, &said, &outcome));
    pthread_mutex_lock(&all->mutex);
    delivery = hf__session_delivery_find(all, args->token, &session);
    if (delivery) {
        delivery->said = said;
        delivery->outcome = outcome;
        delivery->state = DELIVERY_DONE;
        hf__scope_wake(delivery->scope); /* it lives until it was unlisted, which takes the mutex */
    }
    pthread_mutex_unlock(&all->mutex);
    if (delivery)
        return HF_OK;
    hf_scope_free(said);
    return hf__session_delivery_lost(s, args->token);
}

/* ---- session.close, session.list ------------------------------------------------------------ */

struct session_close_args {
    uint64_t session;
    uint32_t drain_ms;
};

#define T session_close_args
ARGUMENTS(session_close, U64("session", session, REQUIRED), U32("drain_ms", drain_ms));
#undef T
NO_RESULT(session_close);

BIND_FUNCTION(session_close)
{
    const struct session_close_args *args = args_in;
    enum hf_status status = HF_OK;
    struct bind_session *session;
    void *object;

    (void)result_out;
    TRY(hf__session_find(s, bind, args->session, NULL, &session, &object));
    if (args->drain_ms && session->kind->stop) {
        hf__bind_shorten(s, args->drain_ms);
        status = session->kind->stop(s, object);
    }
    hf__session_end(session);
    return status;
}

struct session_row {
    uint64_t session, waiting, handed, notices, forgotten;
    struct hf_str kind;
};
struct session_list_result {
    struct session_row *sessions;
    size_t sessions_len;
};

NO_ARGUMENTS(session_list);
#define T session_row
PART(session_row, U64("session", session), TEXT("kind", kind), U64("waiting", waiting),
     U64("handed", handed), U64("notices", notices), U64("forgotten", forgotten));
#undef T
#define T session_list_result
RESULT(session_list, STRUCTS("sessions", sessions, session_row));
#undef T

static struct session_row row_of(const struct bind_session *session)
{
    struct session_row row = {.session = session->id,
                              .kind = hf_str_from(session->kind->name),
                              .notices = session->notices_len,
                              .forgotten = session->forgotten};

    for (const struct bind_delivery *d = session->deliveries; d; d = d->next) {
        row.waiting += d->state == DELIVERY_WAITING;
        row.handed += d->state == DELIVERY_HANDED;
    }
    return row;
}

BIND_FUNCTION(session_list)
{
    struct bind_sessions *all = hf__bind_sessions(bind);
    struct session_list_result *result = result_out;
    size_t len = 0;

    (void)args_in;
    pthread_mutex_lock(&all->mutex);
    for (const struct bind_session *session = all->first; session; session = session->next)
        len++;
    result->sessions = hf__scope_array(s, len + 1, sizeof(*result->sessions));
    for (const struct bind_session *session = all->first; session && result->sessions;
         session = session->next)
        if (!session->ending)
            result->sessions[result->sessions_len++] = row_of(session);
    pthread_mutex_unlock(&all->mutex);
    return result->sessions ? HF_OK : hf__fail_nomem(s);
}
