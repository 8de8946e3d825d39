/*
 * db/retry.c: a database around a database that tries again.
 *
 * The rules are those that AWS's SDKs share as "standard" mode from November 2026 on (announced in
 * aws-sdk-cpp#3832 and its sisters, such as aws-sdk-js-v3#8037; described in the SDK reference
 * guide under "Retry behavior"; detailed in aws-sdk-go-v2#3400 and smithy-kotlin#1569; and in
 * botocore's retries/standard.py), for DynamoDB:
 *
 *     attempts   4 with the first one
 *     delay      random from 0 to min(base * 2^n, 20 s) before retry n, counted from 0;
 *                base is 25 ms, after throttling 1000 ms
 *     asked for  a service that says how long to wait (x-amz-retry-after) is given that, but not
 *                less than the delay above and at most 5 s more; the 20 s do not bound it
 *     quota      500 tokens shared by all calls; a retry takes 14, after throttling 5; without
 *                enough of them the error is returned. A call that succeeds puts back what its last
 *                retry took, one that succeeds at once puts back 1, a failed one nothing
 *     adaptive   the same, and limiter.c delays every attempt, the first ones too
 *
 * Which failures are of which kind, given that hf_error.may_retry is set:
 *
 *     throttling  HF_THROTTLED, HF_TX_IN_PROGRESS, HF_LIMIT: TransactionInProgressException and
 *                 LimitExceededException are in the SDKs' list of throttling errors
 *     transient   HF_IO, HF_INTERNAL, HF_TX_CONFLICT
 *     neither     all others. HF_TX_CANCELED, too, even when every reason is a conflict: no SDK
 *                 tries it again by itself, as the caller may want to read anew first
 *
 * Here we differ from the SDKs in two ways. They leave TransactionConflictException to the caller;
 * we take it as transient, since nothing was done and the other transaction is short. And they
 * repeat a write whose answer was lost; we do so only if asked to (repeat_writes), since ADD and
 * list_append would count twice, and a condition would fail of its own earlier success.
 *
 *  (1) After an attempt that may have been done, only what is the same twice as once follows:
 *      operations that ops.def calls so, and transactions by their token, which those without one
 *      are given before the first attempt.
 *  (2) may_have_happened of the last error is true when any attempt may have been done.
 *  (3) Before an attempt the response is zero, and the scope has the memory that it had before the
 *      call, but for the token. The error that is returned is never given back.
 *  (4) A delay that would end at the deadline or later is not begun: the error is returned as it
 * is.
 *
 * Unprocessed parts of batches are a success here; who wants them done repeats those alone.
 */
#include <holdfast/retry.h>

#include <pthread.h>

#include "db/db.h"
#include "db/limiter.h"

enum {
    QUOTA = 500,
    COST_TRANSIENT = 14,
    COST_THROTTLED = 5,
    REWARD = 1, /* of a call that needed no retry */
    ASKED_OVER_MS = 5000,
    DEFAULT_ATTEMPTS = 4,
    DEFAULT_BASE_MS = 25,
    DEFAULT_THROTTLE_MS = 1000,
    DEFAULT_MAX_DELAY_MS = 20000,
    ATTEMPTS_MAX = 1000,
    DELAY_MAX_MS = 3600 * 1000
};

enum kind { FINAL, TRANSIENT, THROTTLED };

struct retry {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    struct hf_retry_options options; /* with the defaults filled in */
    pthread_mutex_t lock;            /* guards all below */
    uint32_t tokens;
    struct limiter limiter;
};

/* One call on its way. */
struct course {
    struct retry *retry;
    const struct op *op;
    const void *request;
    bool repeatable; /* doing it twice is as doing it once */
    bool happened;   /* an attempt may have been done */
    uint32_t attempt;
    uint32_t held; /* tokens that the last retry took */
};

/* ---- quota and rate ------------------------------------------------------------------------- */

static bool quota_take(struct retry *r, uint32_t cost)
{
    bool enough;

    pthread_mutex_lock(&r->lock);
    enough = r->tokens >= cost;
    if (enough)
        r->tokens -= cost;
    pthread_mutex_unlock(&r->lock);
    return enough;
}

static void quota_return(struct retry *r, uint32_t held)
{
    pthread_mutex_lock(&r->lock);
    r->tokens += held ? held : REWARD;
    if (r->tokens > QUOTA)
        r->tokens = QUOTA;
    pthread_mutex_unlock(&r->lock);
}

static uint32_t turn_take(struct retry *r)
{
    int64_t wait_us;

    pthread_mutex_lock(&r->lock);
    wait_us = hf__limiter_take(&r->limiter, hf__env_elapsed_us(&r->env));
    pthread_mutex_unlock(&r->lock);
    return wait_us > (int64_t)UINT32_MAX * 1000 ? UINT32_MAX : (uint32_t)((wait_us + 999) / 1000);
}

static void turn_return(struct retry *r)
{
    pthread_mutex_lock(&r->lock);
    hf__limiter_return(&r->limiter);
    pthread_mutex_unlock(&r->lock);
}

static void turn_note(struct retry *r, enum kind kind)
{
    pthread_mutex_lock(&r->lock);
    hf__limiter_note(&r->limiter, hf__env_elapsed_us(&r->env), kind == THROTTLED);
    pthread_mutex_unlock(&r->lock);
}

/* ---- what to do after a failure ------------------------------------------------------------- */

static enum kind kind_of(const struct hf_error *error)
{
    if (!error->may_retry)
        return FINAL;
    switch (error->status) {
    case HF_THROTTLED:
    case HF_TX_IN_PROGRESS:
    case HF_LIMIT:
        return THROTTLED;
    case HF_IO:
    case HF_INTERNAL:
    case HF_TX_CONFLICT:
        return TRANSIENT;
    default:
        return FINAL;
    }
}

/* A random number from 0 to `max`. The bias of % is below one in a million for an hour. */
static uint32_t random_to(const struct retry *r, uint32_t max)
{
    uint64_t bits;

    hf__env_random(&r->env, &bits, sizeof(bits));
    return (uint32_t)(bits % ((uint64_t)max + 1));
}

static uint32_t delay_ms(const struct course *c, const struct hf_error *error, enum kind kind)
{
    const struct hf_retry_options *o = &c->retry->options;
    uint64_t most = kind == THROTTLED ? o->throttle_ms : o->base_ms;
    uint32_t delay;

    for (uint32_t i = 1; i < c->attempt && most < o->max_delay_ms; i++)
        most *= 2;
    delay = random_to(c->retry, most < o->max_delay_ms ? (uint32_t)most : o->max_delay_ms);
    if (error->retry_after_ms <= delay)
        return delay;
    return error->retry_after_ms < delay + ASKED_OVER_MS ? error->retry_after_ms
                                                         : delay + ASKED_OVER_MS;
}

/* (4) */
static bool in_time(struct hf_scope *s, uint32_t wait_ms)
{
    return hf__scope_left_ms(s, (int64_t)wait_ms + 1) > wait_ms;
}

/* Sleep with the error in the scope, which stays unless the call is canceled. HF_TIMEOUT: there was
 * less time than it seemed. */
static enum hf_status wait(struct hf_scope *s, uint32_t ms)
{
    struct hf_error error = *hf_scope_error(s);
    enum hf_status status = hf_scope_sleep_ms(s, ms);

    if (status == HF_TIMEOUT)
        *hf__scope_error_edit(s) = error;
    return status;
}

/* In adaptive mode: wait for our turn to send. */
static enum hf_status wait_for_turn(struct hf_scope *s, struct retry *r)
{
    uint32_t ms;
    enum hf_status status;

    if (r->options.mode != HF_RETRY_ADAPTIVE)
        return HF_OK;
    ms = turn_take(r);
    if (ms == 0)
        return HF_OK;
    status = in_time(s, ms) ? wait(s, ms) : HF_TIMEOUT;
    if (status != HF_OK)
        turn_return(r);
    return status;
}

/* After a failed attempt: true when the next one may begin, otherwise the scope has the error that
 * the call ends with. */
static bool goes_on(struct hf_scope *s, struct course *c)
{
    const struct hf_error *error = hf_scope_error(s);
    struct retry *r = c->retry;
    enum kind kind = kind_of(error);
    uint32_t cost = kind == THROTTLED ? COST_THROTTLED : COST_TRANSIENT;
    uint32_t delay;

    c->happened = c->happened || error->may_have_happened;
    if (r->options.mode == HF_RETRY_ADAPTIVE)
        turn_note(r, kind);
    if (kind == FINAL || c->attempt >= r->options.attempts ||
        (error->may_have_happened && !c->repeatable)) /* (1) */
        return false;
    delay = delay_ms(c, error, kind);
    if (!in_time(s, delay) || !quota_take(r, cost))
        return false;
    c->held = cost;
    return wait(s, delay) == HF_OK && wait_for_turn(s, r) == HF_OK;
}

/* ---- one call ------------------------------------------------------------------------------- */

static const struct field *token_field(const struct op *op)
{
    for (size_t i = 0; i < op->request->len; i++)
        if (strcmp(op->request->list[i].name, "ClientRequestToken") == 0)
            return &op->request->list[i];
    return NULL;
}

/* (1): the request becomes a copy of itself with a token, if it has none. */
static enum hf_status give_token(struct hf_scope *s, struct course *c)
{
    const struct field *field = token_field(c->op);
    char *copy;
    struct hf_str *token;

    assert(field && field->kind == FIELD_STR);
    if (((const struct hf_str *)(const void *)((const char *)c->request + field->at))->ptr)
        return HF_OK;
    copy = hf_scope_alloc(s, c->op->request->size);
    if (!copy)
        return hf__fail_nomem(s);
    memcpy(copy, c->request, c->op->request->size);
    token = (struct hf_str *)(void *)(copy + field->at);
    *token = hf__uuid(s, &c->retry->env);
    if (!token->ptr)
        return hf__fail_nomem(s);
    c->request = copy;
    return HF_OK;
}

/* Attempt after attempt; see goes_on(). */
static enum hf_status run(struct hf_scope *s, struct course *c, void *response)
{
    struct retry *r = c->retry;
    struct hf__mark mark = hf__scope_mark(s);
    enum hf_status status;

    for (;;) {
        c->attempt++;
        status = r->inner->calls->call(s, r->inner, c->op->op, c->request, response);
        if (status == HF_OK) {
            if (r->options.mode == HF_RETRY_ADAPTIVE)
                turn_note(r, FINAL);
            quota_return(r, c->held);
            return HF_OK;
        }
        if (!goes_on(s, c))
            break;
        hf__scope_error_clear(s); /* (3) */
        hf__scope_rewind(s, mark);
        memset(response, 0, c->op->response->size);
    }
    hf__scope_error_edit(s)->may_have_happened = c->happened; /* (2) */
    return hf_scope_error(s)->status;
}

static enum hf_status retry_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct retry *r = (struct retry *)(void *)db;
    const struct op *entry = hf__op(op);
    struct course c = {.retry = r,
                       .op = entry,
                       .request = request,
                       .repeatable = entry->repeat != OP_REPEAT_NO || r->options.repeat_writes};
    enum hf_status status;

    if (r->options.attempts == 1 && r->options.mode != HF_RETRY_ADAPTIVE)
        return r->inner->calls->call(s, r->inner, op, request, response);
    if (entry->repeat == OP_REPEAT_TOKEN)
        TRY(give_token(s, &c));
    status = wait_for_turn(s, r);
    if (status == HF_TIMEOUT)
        return hf__fail(s, HF_THROTTLED,
                        "The client was throttled, and the rate that it keeps to since then gives "
                        "this call no turn before its deadline");
    return status == HF_OK ? run(s, &c, response) : status;
}

/* ---- the database --------------------------------------------------------------------------- */

static enum hf_status retry_settle(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct retry *r = (struct retry *)(void *)db;

    return hf__db_settle(s, r->inner, ticket);
}

static void retry_close(struct hf_db *db)
{
    struct retry *r = (struct retry *)(void *)db;
    struct hf_env env = r->env;

    hf_db_close(r->inner);
    pthread_mutex_destroy(&r->lock);
    hf__env_free(&env, r, sizeof(*r));
}

static enum hf_status retry_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                     bool *supported)
{
    struct retry *r = (struct retry *)(void *)db;
    struct course c = {.retry = r, .repeatable = true};
    struct hf__mark mark = hf__scope_mark(s);

    for (;;) {
        c.attempt++;
        if (hf_db_supports(s, r->inner, feature, supported) == HF_OK)
            break;
        *supported = false;
        if (!goes_on(s, &c))
            return hf_scope_error(s)->status;
        hf__scope_rewind(s, mark);
    }
    if (c.held) /* most answers are known, and cost nothing */
        quota_return(r, c.held);
    return HF_OK;
}

static enum hf_status retry_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct retry *)(void *)db)->inner, blobs);
}

static const struct db_calls retry_calls = {.call = retry_call,
                                            .settle = retry_settle,
                                            .close = retry_close,
                                            .supports = retry_supports,
                                            .blobs = retry_blobs};

static uint32_t or_default(uint32_t given, uint32_t fallback)
{
    return given ? given : fallback;
}

/* The options as they are meant. */
static enum hf_status resolve(struct hf_scope *s, const struct hf_retry_options *given,
                              struct hf_retry_options *o)
{
    memset(o, 0, sizeof(*o));
    if (given)
        memcpy(o, given, given->size && given->size < sizeof(*o) ? given->size : sizeof(*o));
    if (o->mode == 0)
        o->mode = HF_RETRY_STANDARD;
    o->attempts = o->mode == HF_RETRY_OFF ? 1 : or_default(o->attempts, DEFAULT_ATTEMPTS);
    o->base_ms = or_default(o->base_ms, DEFAULT_BASE_MS);
    o->throttle_ms = or_default(o->throttle_ms, DEFAULT_THROTTLE_MS);
    o->max_delay_ms = or_default(o->max_delay_ms, DEFAULT_MAX_DELAY_MS);
    if (o->mode < HF_RETRY_STANDARD || o->mode > HF_RETRY_OFF)
        return hf__fail(s, HF_INVALID, "%d is no mode of trying again", (int)o->mode);
    if (o->attempts > ATTEMPTS_MAX)
        return hf__fail(s, HF_INVALID, "%u attempts are more than %d", o->attempts, ATTEMPTS_MAX);
    if (o->base_ms > DELAY_MAX_MS || o->throttle_ms > DELAY_MAX_MS ||
        o->max_delay_ms > DELAY_MAX_MS)
        return hf__fail(s, HF_INVALID, "a delay between attempts is at most %d milliseconds",
                        DELAY_MAX_MS);
    return HF_OK;
}

enum hf_status hf_retry_open(struct hf_scope *s, struct hf_db *inner,
                             const struct hf_retry_options *options, struct hf_db **db)
{
    struct hf_retry_options resolved;
    struct hf_env env;
    struct retry *r;

    *db = NULL;
    hf__scope_error_clear(s);
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_retry_open() was called without a database (NULL)");
    TRY(resolve(s, options, &resolved));
    env = resolved.env ? hf__env_fill(resolved.env) : *hf__scope_env(s);
    r = hf__env_alloc(&env, sizeof(*r));
    if (!r)
        return hf__fail_nomem(s);
    memset(r, 0, sizeof(*r));
    r->db.calls = &retry_calls;
    r->env = env;
    r->inner = inner;
    r->options = resolved;
    r->options.env = NULL;
    r->tokens = QUOTA;
    hf__limiter_init(&r->limiter, hf__env_elapsed_us(&env));
    pthread_mutex_init(&r->lock, NULL);
    *db = &r->db;
    return HF_OK;
}
