/*
 * bind/session.h: what lasts longer than a call: a lock that is held, an attempt, a handler.
 *
 * A session that handles something hands over deliveries. The function that a pattern calls, on a
 * thread of the library, puts a delivery into its session and waits until somebody has said what
 * became of it; the language takes it by session.next and ends it by session.done.
 */
#ifndef HF_BIND_SESSION_H
#define HF_BIND_SESSION_H

#include "bind/table.h"

struct bind_session;

struct session_kind {
    const char *name; /* such as "lock" */
    /* End it: what waits is canceled. Called once, when no call uses it any more. NULL: nothing. */
    void (*close)(void *object);
    /* Before it is closed: begin nothing more, and wait for what is under way until the deadline of
     * the scope. NULL: nothing. */
    enum hf_status (*stop)(struct hf_scope *s, void *object);
};

/* A session that nobody can find yet, so that callbacks may name it from the beginning on. */
enum hf_status hf__session_new(struct hf_scope *s, struct hf_bind *bind,
                               const struct session_kind *kind, struct bind_session **session);
/* It never came about. */
void hf__session_drop(struct bind_session *session);
/* It is there, with what it holds; *id is its number. */
void hf__session_begin(struct bind_session *session, void *object, uint64_t *id);

/* What the session of that number holds, for one call, which gives it back. HF_NOT_FOUND: there is
 * none, or it is of another kind. */
enum hf_status hf__session_find(struct hf_scope *s, struct hf_bind *bind, uint64_t id,
                                const struct session_kind *kind, struct bind_session **session,
                                void **object);
void hf__session_give(struct bind_session *session);

/* End the session that was found, and close what it holds. */
void hf__session_end(struct bind_session *session);

/* Find it and end it, but leave what it holds to the caller, who then drops it. */
enum hf_status hf__session_take(struct hf_scope *s, struct hf_bind *bind, uint64_t id,
                                const struct session_kind *kind, struct bind_session **session,
                                void **object);

struct hf_bind *hf__session_bind(struct bind_session *session);

/* Report something: {"type": TYPE, ...}; `rest` is more members, each with a comma before it. Never
 * fails: without memory, or when nobody asks for too long, the oldest are forgotten. */
void hf__session_notice(struct bind_session *session, const char *type, struct hf_str rest);
void hf__session_notice_error(struct bind_session *session, const char *type,
                              const struct hf_error *error);

/* What the language said of a part of a delivery. */
struct session_failure {
    uint64_t index;
    struct hf_str message;
    bool permanent;
};

/* What became of a delivery. */
struct session_outcome {
    bool handed; /* somebody took it, whatever came of it then */
    bool failed;
    bool permanent;   /* it would fail again */
    bool unreachable; /* nothing can be delivered for now: of relays */
    struct hf_str message;
    struct session_failure *failures; /* of single events of it */
    size_t failures_len;
};

/*
 * Hand something over and wait until it was done, or the scope ends. `members` are those of the
 * delivery, such as "\"event\":{...}". `about` is for hf__session_about(). What is in *outcome lives
 * in the scope.
 *
 * HF_CANCELED, HF_TIMEOUT: it was taken back.
 */
enum hf_status hf__session_deliver(struct hf_scope *s, struct bind_session *session,
                                   struct hf_str members, const void *about,
                                   struct session_outcome *outcome);

/* The same, and fail in the scope as the outcome says. */
enum hf_status hf__session_handle(struct hf_scope *s, struct bind_session *session,
                                  struct hf_str members, const void *about);

/*
 * Hand nothing more over, and wait until all that was handed over is done. What still waits is taken back when the
 * session is closed.
 *
 * HF_CANCELED, HF_TIMEOUT: something is not done.
 */
enum hf_status hf__session_drain(struct hf_scope *s, struct bind_session *session);

/* Call `use` with `about` of the delivery with that token while it cannot end. HF_LOST: it is not
 * there any more. */
enum hf_status hf__session_about(
    struct hf_scope *s, struct hf_bind *bind, uint64_t token, const struct session_kind *kind,
    enum hf_status (*use)(struct hf_scope *s, const void *about, void *user), void *user);

/* Which deliveries a session.next has taken, by its result; and give them back, as there is no memory
 * to hand them over. */
uint64_t hf__session_taken(const void *next_result);
void hf__session_untake(struct hf_bind *bind, uint64_t take);

/* bind.c: where a bind keeps its sessions. */
struct bind_sessions *hf__bind_sessions(struct hf_bind *bind);

/* session.c: for bind.c. */
struct bind_sessions *hf__sessions_new(const struct hf_env *env);
void hf__sessions_close_all(struct bind_sessions *sessions);
void hf__sessions_free(struct bind_sessions *sessions);

/* Results and arguments that several sessions have. */
struct session_result {
    uint64_t session;
};
struct session_args {
    uint64_t session;
};

#endif
