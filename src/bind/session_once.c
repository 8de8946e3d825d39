/*
 * bind/session_once.c: attempts of do-once as sessions.
 */
#include "bind/once.h"
#include "bind/session.h"

static void close_attempt(void *object)
{
    hf_once_close(object);
}

static const struct session_kind once_session = {.name = "once", .close = close_attempt};

static void notice_lost(struct hf_once *once, void *user)
{
    (void)once;
    hf__session_notice(user, "lost", (struct hf_str){0});
}

struct once_begin_args {
    struct hf_str table, user, key;
    struct hf_once_options o;
};
struct once_begin_result {
    uint64_t session; /* 0: it has been done before */
    bool begun;
    struct hf_once_record record;
};

#define T once_begin_args
MEMBERS(once_begin_part, TEXT("table", table), TEXT("user", user, REQUIRED),
        TEXT("key", key, REQUIRED), U32("timeout_ms", o.timeout_ms),
        U32("heartbeat_ms", o.heartbeat_ms), BOOL("no_heartbeats", o.no_heartbeats),
        U32("stuck_ms", o.stuck_ms), BYTES("payload", o.payload), U32("keep_s", o.keep_s),
        U32("poll_ms", o.poll_ms));
ARGUMENTS_AS(once_begin, once_begin_part);
ARGUMENTS_AS(once_try, once_begin_part);
#undef T
#define T once_begin_result
MEMBERS(once_begun, BOOL("begun", begun), U64("session", session),
        STRUCT("record", record, hf__bind_once_record));
RESULT_AS(once_begin, once_begun);
RESULT_AS(once_try, once_begun);
#undef T

static enum hf_status begin_attempt(struct hf_scope *s, struct hf_bind *bind,
                                    struct once_begin_args *args, bool wait,
                                    struct once_begin_result *result)
{
    struct hf_once_table *onces;
    struct bind_session *session;
    struct hf_once *once = NULL;
    enum hf_status status;

    TRY(hf__bind_onces(s, bind, args->table, true, &onces));
    TRY(hf__session_new(s, bind, &once_session, &session));
    args->o.size = sizeof(args->o);
    args->o.on_lost = notice_lost;
    args->o.user = session;
    status = wait ? hf_once_begin(s, onces, args->user, args->key, &args->o, &once, &result->record)
                  : hf_once_try(s, onces, args->user, args->key, &args->o, &once, &result->record);
    if (status != HF_OK || !once) {
        hf__session_drop(session);
        return status;
    }
    result->begun = true;
    hf__session_begin(session, once, &result->session);
    return HF_OK;
}

BIND_FUNCTION(once_begin)
{
    return begin_attempt(s, bind, args_in, true, result_out);
}

BIND_FUNCTION(once_try)
{
    return begin_attempt(s, bind, args_in, false, result_out);
}

/* ---- its end -------------------------------------------------------------------------------- */

struct once_end_args {
    uint64_t session;
    struct hf_item result;
};
struct once_left_result {
    bool lost;
    uint32_t left_ms;
    uint64_t tries;
};

#define T once_end_args
MEMBERS(once_end_part, U64("session", session, REQUIRED), ITEM("result", result));
ARGUMENTS_AS(once_finish, once_end_part);
ARGUMENTS_AS(once_fail, once_end_part);
ARGUMENTS_AS(once_finish_actions, once_end_part);
MEMBERS(once_session_part, U64("session", session, REQUIRED));
ARGUMENTS_AS(once_committed, once_session_part);
ARGUMENTS_AS(once_renew, once_session_part);
ARGUMENTS_AS(once_touch, once_session_part);
ARGUMENTS_AS(once_state, once_session_part);
#undef T
NO_RESULT(once_finish);
NO_RESULT(once_fail);
NO_RESULT(once_committed);
NO_RESULT(once_renew);
NO_RESULT(once_touch);
#define T bind_actions
RESULT_AS(once_finish_actions, hf__bind_actions_part);
#undef T
#define T once_left_result
RESULT(once_state, BOOL("lost", lost), U32("left_ms", left_ms), U64("tries", tries));
#undef T

/* Whatever comes out but a failure that can be repeated ends the session. */
static enum hf_status end_attempt(struct hf_scope *s, struct hf_bind *bind,
                                  const struct once_end_args *args, bool failed)
{
    struct bind_session *session;
    enum hf_status status;
    void *once;

    TRY(hf__session_find(s, bind, args->session, &once_session, &session, &once));
    status = failed ? hf_once_fail(s, once, args->result) : hf_once_finish(s, once, args->result);
    if (status == HF_OK || status == HF_LOST)
        hf__session_end(session);
    else
        hf__session_give(session);
    return status;
}

BIND_FUNCTION(once_finish)
{
    (void)result_out;
    return end_attempt(s, bind, args_in, false);
}

BIND_FUNCTION(once_fail)
{
    (void)result_out;
    return end_attempt(s, bind, args_in, true);
}

BIND_FUNCTION(once_finish_actions)
{
    const struct once_end_args *args = args_in;
    struct hf_transact_write action = {0};
    struct bind_session *session;
    enum hf_status status;
    void *once;

    TRY(hf__session_find(s, bind, args->session, &once_session, &session, &once));
    status = hf_once_finish_tx(s, once, args->result, &action);
    if (status == HF_OK)
        status = hf__bind_actions(s, &action, 1, result_out);
    hf__session_give(session);
    return status;
}

BIND_FUNCTION(once_committed)
{
    const struct once_end_args *args = args_in;
    struct bind_session *session;
    void *once;

    (void)result_out;
    TRY(hf__session_find(s, bind, args->session, &once_session, &session, &once));
    hf_once_committed(once);
    hf__session_end(session);
    return HF_OK;
}

BIND_FUNCTION(once_renew)
{
    const struct once_end_args *args = args_in;
    struct bind_session *session;
    enum hf_status status;
    void *once;

    (void)result_out;
    TRY(hf__session_find(s, bind, args->session, &once_session, &session, &once));
    status = hf_once_renew(s, once);
    hf__session_give(session);
    return status;
}

BIND_FUNCTION(once_touch)
{
    const struct once_end_args *args = args_in;
    struct bind_session *session;
    void *once;

    (void)result_out;
    TRY(hf__session_find(s, bind, args->session, &once_session, &session, &once));
    hf_once_touch(once);
    hf__session_give(session);
    return HF_OK;
}

BIND_FUNCTION(once_state)
{
    struct once_left_result *result = result_out;
    const struct once_end_args *args = args_in;
    struct bind_session *session;
    void *once;

    TRY(hf__session_find(s, bind, args->session, &once_session, &session, &once));
    result->lost = hf_once_lost(once);
    result->left_ms = hf_once_left_ms(once);
    result->tries = hf_once_tries(once);
    hf__session_give(session);
    return HF_OK;
}
