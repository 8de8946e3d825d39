/*
 * bind/session_lock.c: locks that are held, and candidates for a lead, as sessions.
 */
#include "bind/lock.h"
#include "bind/session.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const lock_modes[] = {NULL, "exclusive", "shared", "permit", NULL};
static const char *const lock_states[] = {NULL, "held", "expired", "stolen", NULL};

static void close_lock(void *object)
{
    struct hf_scope *s = hf_scope_new(NULL);

    if (s)
        hf_scope_timeout_ms(s, 5000);
    if (s)
        (void)hf_lock_release(s, object);
    else
        hf_lock_leave(object);
    hf_scope_free(s);
}

static const struct session_kind lock_session = {.name = "lock", .close = close_lock};

static void notice_lost(struct hf_lock *lock, enum hf_lock_state why, void *user)
{
    (void)lock;
    hf__session_notice(user, "lost",
                       why == HF_LOCK_STOLEN ? HF_STR(",\"why\":\"stolen\"")
                                             : HF_STR(",\"why\":\"expired\""));
}

static void notice_late(struct hf_lock *lock, uint32_t left_ms, void *user)
{
    (void)lock;
    (void)left_ms;
    hf__session_notice(user, "late", (struct hf_str){0});
}

/* ---- acquiring ------------------------------------------------------------------------------ */

struct lock_acquire_args {
    struct hf_str table, name;
    struct hf_lock_options o;
};
struct lock_acquire_result {
    uint64_t session, fence;
    struct hf_item data;
};

#define T lock_acquire_args
MEMBERS(lock_acquire_part, TEXT("table", table), TEXT("name", name, REQUIRED),
        U32("lease_ms", o.lease_ms), U32("heartbeat_ms", o.heartbeat_ms),
        BOOL("no_heartbeats", o.no_heartbeats), CHOICE("mode", o.mode, lock_modes),
        U32("permits", o.permits), U32("poll_ms", o.poll_ms), U32("stuck_ms", o.stuck_ms),
        ITEM("data", o.data), U32("late_ms", o.late_ms));
ARGUMENTS_AS(lock_acquire, lock_acquire_part);
ARGUMENTS_AS(lock_try, lock_acquire_part);
#undef T
#define T lock_acquire_result
MEMBERS(lock_acquired, U64("session", session), U64("fence", fence), ITEM("data", data));
RESULT_AS(lock_acquire, lock_acquired);
RESULT_AS(lock_try, lock_acquired);
#undef T

static enum hf_status acquire_lock(struct hf_scope *s, struct hf_bind *bind,
                                   struct lock_acquire_args *args, bool wait,
                                   struct lock_acquire_result *result)
{
    struct hf_lock_table *locks;
    struct bind_session *session;
    struct hf_lock *lock = NULL;
    enum hf_status status;

    TRY(hf__bind_locks(s, bind, args->table, true, &locks));
    TRY(hf__session_new(s, bind, &lock_session, &session));
    args->o.size = sizeof(args->o);
    args->o.on_lost = notice_lost;
    args->o.on_late = notice_late;
    args->o.user = session;
    status = wait ? hf_lock_acquire(s, locks, args->name, &args->o, &lock)
                  : hf_lock_try(s, locks, args->name, &args->o, &lock);
    if (status != HF_OK) {
        hf__session_drop(session);
        return status;
    }
    result->fence = hf_lock_fence(lock);
    result->data = hf_lock_data(s, lock);
    hf__session_begin(session, lock, &result->session);
    return HF_OK;
}

BIND_FUNCTION(lock_acquire)
{
    return acquire_lock(s, bind, args_in, true, result_out);
}

BIND_FUNCTION(lock_try)
{
    return acquire_lock(s, bind, args_in, false, result_out);
}

/* ---- while it is held ----------------------------------------------------------------------- */

struct lock_held_args {
    uint64_t session;
    struct hf_item data;
    uint32_t lease_ms;
};
struct lock_state_result {
    enum hf_lock_state state;
    uint32_t left_ms;
    uint64_t fence;
    struct hf_str name;
};

#define T lock_held_args
ARGUMENTS(lock_release, U64("session", session, REQUIRED), ITEM("data", data));
ARGUMENTS(lock_extend, U64("session", session, REQUIRED), U32("lease_ms", lease_ms));
ARGUMENTS(lock_set_data, U64("session", session, REQUIRED), ITEM("data", data, REQUIRED));
ARGUMENTS(lock_touch, U64("session", session, REQUIRED));
ARGUMENTS(lock_state, U64("session", session, REQUIRED));
ARGUMENTS(lock_guard_actions, U64("session", session, REQUIRED));
#undef T
NO_RESULT(lock_release);
NO_RESULT(lock_extend);
NO_RESULT(lock_set_data);
NO_RESULT(lock_touch);
#define T lock_state_result
RESULT(lock_state, CHOICE("state", state, lock_states), U32("left_ms", left_ms),
       U64("fence", fence), TEXT("name", name));
#undef T
#define T bind_actions
RESULT_AS(lock_guard_actions, hf__bind_actions_part);
#undef T

/* The lock is gone whatever comes out, and so is the session. */
BIND_FUNCTION(lock_release)
{
    const struct lock_held_args *args = args_in;
    struct bind_session *session;
    enum hf_status status;
    void *lock;

    (void)result_out;
    TRY(hf__session_take(s, bind, args->session, &lock_session, &session, &lock));
    status = args->data.ptr ? hf_lock_release_data(s, lock, args->data) : hf_lock_release(s, lock);
    hf__session_drop(session);
    return status;
}

/* The lock of a session, which is not closed until give_held(). */
struct held_lock {
    struct bind_session *session;
    struct hf_lock *lock;
};

static enum hf_status find_held(struct hf_scope *s, struct hf_bind *bind,
                                const struct lock_held_args *args, struct held_lock *held)
{
    void *lock;

    TRY(hf__session_find(s, bind, args->session, &lock_session, &held->session, &lock));
    held->lock = lock;
    return HF_OK;
}

static enum hf_status give_held(const struct held_lock *held, enum hf_status status)
{
    hf__session_give(held->session);
    return status;
}

BIND_FUNCTION(lock_extend)
{
    const struct lock_held_args *args = args_in;
    struct held_lock held;

    (void)result_out;
    TRY(find_held(s, bind, args, &held));
    return give_held(&held, hf_lock_extend(s, held.lock, args->lease_ms));
}

BIND_FUNCTION(lock_set_data)
{
    const struct lock_held_args *args = args_in;
    struct held_lock held;

    (void)result_out;
    TRY(find_held(s, bind, args, &held));
    return give_held(&held, hf_lock_set_data(s, held.lock, args->data));
}

BIND_FUNCTION(lock_touch)
{
    struct held_lock held;

    (void)result_out;
    TRY(find_held(s, bind, args_in, &held));
    hf_lock_touch(held.lock);
    return give_held(&held, HF_OK);
}

BIND_FUNCTION(lock_state)
{
    struct lock_state_result *result = result_out;
    struct held_lock held;

    TRY(find_held(s, bind, args_in, &held));
    result->state = hf_lock_state(held.lock);
    result->left_ms = hf_lock_left_ms(held.lock);
    result->fence = hf_lock_fence(held.lock);
    result->name = hf_scope_copy(s, hf_lock_name(held.lock));
    return give_held(&held, hf_scope_built(s));
}

BIND_FUNCTION(lock_guard_actions)
{
    struct hf_transact_write action = {0};
    struct held_lock held;
    enum hf_status status;

    TRY(find_held(s, bind, args_in, &held));
    status = hf_lock_guard(s, held.lock, &action);
    if (status == HF_OK)
        status = hf__bind_actions(s, &action, 1, result_out);
    return give_held(&held, status);
}

/* ---- leaders -------------------------------------------------------------------------------- */

static void close_election(void *object)
{
    hf_election_close(object);
}

static const struct session_kind leader_session = {.name = "leader", .close = close_election};

static void notice_term(struct bind_session *session, const char *type, uint64_t term)
{
    char rest[40];
    int len = snprintf(rest, sizeof(rest), ",\"term\":%" PRIu64, term);

    hf__session_notice(session, type, hf_str_of(rest, (size_t)len));
}

static void notice_elected(struct hf_election *election, uint64_t term, void *user)
{
    (void)election;
    notice_term(user, "elected", term);
}

static void notice_deposed(struct hf_election *election, uint64_t term, enum hf_lock_state why,
                           void *user)
{
    (void)election;
    (void)why;
    notice_term(user, "deposed", term);
}

struct leader_args {
    struct hf_str table, name;
    struct hf_election_options o;
    uint64_t session;
};
struct leader_state_result {
    bool leads;
    uint64_t term;
};

#define T leader_args
ARGUMENTS(leader_open, TEXT("table", table), TEXT("name", name, REQUIRED),
          U32("lease_ms", o.lease_ms), U32("heartbeat_ms", o.heartbeat_ms),
          U32("poll_ms", o.poll_ms), ITEM("data", o.data));
ARGUMENTS(leader_state, U64("session", session, REQUIRED));
#undef T
#define T session_result
RESULT(leader_open, U64("session", session));
#undef T
#define T leader_state_result
RESULT(leader_state, BOOL("leads", leads), U64("term", term));
#undef T

BIND_FUNCTION(leader_open)
{
    struct session_result *result = result_out;
    struct leader_args *args = args_in;
    struct hf_election *election;
    struct bind_session *session;
    struct hf_lock_table *locks;
    enum hf_status status;

    TRY(hf__bind_locks(s, bind, args->table, true, &locks));
    TRY(hf__session_new(s, bind, &leader_session, &session));
    args->o.size = sizeof(args->o);
    args->o.elected = notice_elected;
    args->o.deposed = notice_deposed;
    args->o.user = session;
    status = hf_election_open(s, locks, args->name, &args->o, &election);
    if (status != HF_OK) {
        hf__session_drop(session);
        return status;
    }
    hf__session_begin(session, election, &result->session);
    return HF_OK;
}

BIND_FUNCTION(leader_state)
{
    struct leader_state_result *result = result_out;
    const struct leader_args *args = args_in;
    struct bind_session *session;
    void *election;

    TRY(hf__session_find(s, bind, args->session, &leader_session, &session, &election));
    result->leads = hf_election_leads(election, &result->term);
    hf__session_give(session);
    return HF_OK;
}
