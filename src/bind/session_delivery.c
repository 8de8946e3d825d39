/*
 * bind/session_delivery.c: what a session hands over: put into its list by the function that a pattern
 * calls, which waits until it is done. (n) is an invariant of session.c.
 */
#include "bind/session_private.h"

#include <inttypes.h>

#include "base/wait.h"

/* ---- deliveries ----------------------------------------------------------------------------- */

static void delivery_list(struct bind_session *session, struct bind_delivery *delivery)
{
    struct bind_sessions *all = session->all;
    struct bind_delivery **at;

    assert(delivery->state == DELIVERY_WAITING && !delivery->next);
    pthread_mutex_lock(&all->mutex);
    delivery->token = ++all->last_token;
    for (at = &session->deliveries; *at;)
        at = &(*at)->next;
    *at = delivery;
    hf__sessions_wake(all);
    pthread_mutex_unlock(&all->mutex);
}

/* (2) True: it was done. */
static bool delivery_unlist(struct bind_session *session, struct bind_delivery *delivery,
                            bool *handed)
{
    struct bind_sessions *all = session->all;
    struct bind_delivery **at = &session->deliveries;
    bool done;

    pthread_mutex_lock(&all->mutex);
    done = delivery->state == DELIVERY_DONE;
    *handed = delivery->state != DELIVERY_WAITING;
    while (*at != delivery) {
        assert(*at); /* (2) */
        at = &(*at)->next;
    }
    *at = delivery->next;
    if (session->draining)
        hf__sessions_wake(all);
    pthread_mutex_unlock(&all->mutex);
    return done;
}

static bool delivery_is_done(struct bind_session *session, const struct bind_delivery *delivery)
{
    bool done;

    pthread_mutex_lock(&session->all->mutex);
    done = delivery->state == DELIVERY_DONE;
    pthread_mutex_unlock(&session->all->mutex);
    return done;
}

/* While a session drains, what was not handed over has not failed: it waits to be canceled. */
static bool delivery_is_kept(struct bind_session *session, const struct bind_delivery *delivery)
{
    bool kept;

    pthread_mutex_lock(&session->all->mutex);
    kept = session->draining && delivery->state == DELIVERY_WAITING;
    pthread_mutex_unlock(&session->all->mutex);
    return kept;
}

/* (3) */
static enum hf_status delivery_wait(struct hf_scope *s, struct bind_session *session,
                                    const struct bind_delivery *delivery)
{
    enum hf_status status;
    uint32_t wakes;

    do {
        wakes = hf__scope_wakes(s);
        if (delivery_is_done(session, delivery))
            return HF_OK;
        status = hf__scope_wait(s, wakes, INT64_MAX);
        if (status == HF_TIMEOUT && delivery_is_kept(session, delivery)) {
            hf_scope_timeout_ms(s, 0);
            status = HF_OK;
        }
    } while (status == HF_OK);
    return status;
}

enum hf_status hf__session_outcome(struct hf_scope *s, const struct session_outcome *said,
                                   struct session_outcome *outcome)
{
    *outcome = *said;
    outcome->message = hf_scope_copy(s, said->message);
    outcome->failures = hf__scope_array(s, said->failures_len + 1, sizeof(*outcome->failures));
    if (!outcome->failures)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < said->failures_len; i++) {
        outcome->failures[i] = said->failures[i];
        outcome->failures[i].message = hf_scope_copy(s, said->failures[i].message);
    }
    return hf_scope_built(s);
}

enum hf_status hf__session_deliver(struct hf_scope *s, struct bind_session *session,
                                   struct hf_str members, const void *about,
                                   struct session_outcome *outcome)
{
    struct bind_delivery delivery = {.scope = s, .members = members, .about = about};
    enum hf_status status;
    bool handed;

    memset(outcome, 0, sizeof(*outcome));
    if (!members.ptr)
        return hf__fail_nomem(s);
    delivery_list(session, &delivery);
    status = delivery_wait(s, session, &delivery);
    if (delivery_unlist(session, &delivery, &handed))
        status = hf__session_outcome(s, &delivery.outcome, outcome);
    outcome->handed = handed;
    assert(outcome->handed || !outcome->failed);
    hf_scope_free(delivery.said);
    return status;
}

enum hf_status hf__session_handle(struct hf_scope *s, struct bind_session *session,
                                  struct hf_str members, const void *about)
{
    struct session_outcome outcome;

    TRY(hf__session_deliver(s, session, members, about, &outcome));
    if (!outcome.failed)
        return hf_scope_ok(s);
    (void)hf_scope_fail(s, outcome.permanent ? HF_INVALID : HF_INTERNAL, "%.*s",
                        HF_FMT(outcome.message.len ? outcome.message
                                                   : HF_STR("the handler failed")));
    hf__scope_error_edit(s)->may_retry = !outcome.permanent;
    return hf_scope_error(s)->status;
}

struct bind_delivery *hf__session_delivery_find(struct bind_sessions *all, uint64_t token,
                                                const struct bind_session **of)
{
    for (struct bind_session *session = all->first; session; session = session->next)
        for (struct bind_delivery *d = session->deliveries; d; d = d->next)
            if (d->token == token && d->state == DELIVERY_HANDED) {
                *of = session;
                return d;
            }
    return NULL;
}

enum hf_status hf__session_delivery_lost(struct hf_scope *s, uint64_t token)
{
    return hf_scope_fail(s, HF_LOST,
                         "there is no delivery %" PRIu64 ": it was ended, or taken back after its "
                         "timeout, with its session or with its lease",
                         token);
}

enum hf_status hf__session_about(
    struct hf_scope *s, struct hf_bind *bind, uint64_t token, const struct session_kind *kind,
    enum hf_status (*use)(struct hf_scope *s, const void *about, void *user), void *user)
{
    struct bind_sessions *all = hf__bind_sessions(bind);
    const struct bind_session *session = NULL;
    struct bind_delivery *delivery;
    enum hf_status status;

    pthread_mutex_lock(&all->mutex);
    delivery = hf__session_delivery_find(all, token, &session);
    if (!delivery || session->kind != kind)
        status = hf__session_delivery_lost(s, token);
    else
        status = use(s, delivery->about, user);
    pthread_mutex_unlock(&all->mutex);
    return status;
}

/* ---- draining ------------------------------------------------------------------------------- */

/* Has everybody said what became of what was handed over, and does its thread know? */
static bool look_for_drained(struct bind_sessions *all, void *user)
{
    const struct bind_session *session = user;
    bool drained = true;

    pthread_mutex_lock(&all->mutex);
    for (const struct bind_delivery *d = session->deliveries; d; d = d->next)
        drained = drained && d->state == DELIVERY_WAITING;
    pthread_mutex_unlock(&all->mutex);
    return drained;
}

enum hf_status hf__session_drain(struct hf_scope *s, struct bind_session *session)
{
    struct bind_sessions *all = session->all;

    pthread_mutex_lock(&all->mutex);
    session->draining = true;
    hf__sessions_wake(all);
    pthread_mutex_unlock(&all->mutex);
    return hf__sessions_wait(s, all, UINT32_MAX, look_for_drained, session);
}
