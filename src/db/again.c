/*
 * db/again.c: whether and when to try again.
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
 * A delay that would end at the deadline or later is not begun: the error is returned as it is.
 */
#include "db/again.h"

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

/* ---- quota and rate ------------------------------------------------------------------------- */

static bool quota_take(struct again *a, uint32_t cost)
{
    bool enough;

    pthread_mutex_lock(&a->lock);
    enough = a->tokens >= cost;
    if (enough)
        a->tokens -= cost;
    pthread_mutex_unlock(&a->lock);
    return enough;
}

static void quota_return(struct again *a, uint32_t held)
{
    pthread_mutex_lock(&a->lock);
    a->tokens += held ? held : REWARD;
    if (a->tokens > QUOTA)
        a->tokens = QUOTA;
    pthread_mutex_unlock(&a->lock);
}

static uint32_t turn_take(struct again *a)
{
    int64_t wait_us;

    pthread_mutex_lock(&a->lock);
    wait_us = hf__limiter_take(&a->limiter, hf__env_elapsed_us(&a->env));
    pthread_mutex_unlock(&a->lock);
    return wait_us > (int64_t)UINT32_MAX * 1000 ? UINT32_MAX : (uint32_t)((wait_us + 999) / 1000);
}

static void turn_return(struct again *a)
{
    pthread_mutex_lock(&a->lock);
    hf__limiter_return(&a->limiter);
    pthread_mutex_unlock(&a->lock);
}

static void turn_note(struct again *a, enum kind kind)
{
    pthread_mutex_lock(&a->lock);
    hf__limiter_note(&a->limiter, hf__env_elapsed_us(&a->env), kind == THROTTLED);
    pthread_mutex_unlock(&a->lock);
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
static uint32_t random_to(const struct again *a, uint32_t max)
{
    uint64_t bits;

    hf__env_random(&a->env, &bits, sizeof(bits));
    return (uint32_t)(bits % ((uint64_t)max + 1));
}

static uint32_t delay_ms(const struct again *a, const struct again_course *c,
                         const struct hf_error *error, enum kind kind)
{
    const struct hf_retry_options *o = &a->options;
    uint64_t most = kind == THROTTLED ? o->throttle_ms : o->backoff_ms;
    uint32_t delay;

    for (uint32_t i = 1; i < c->attempt && most < o->backoff_max_ms; i++)
        most *= 2;
    delay = random_to(a, most < o->backoff_max_ms ? (uint32_t)most : o->backoff_max_ms);
    if (error->retry_after_ms <= delay)
        return delay;
    return error->retry_after_ms < delay + ASKED_OVER_MS ? error->retry_after_ms
                                                         : delay + ASKED_OVER_MS;
}

static bool in_time(struct hf_scope *s, uint32_t wait_ms)
{
    return hf__scope_left_ms(s, (int64_t)wait_ms + 1) > wait_ms;
}

/* Sleep with the error in the scope, which stays unless the call is canceled. HF_TIMEOUT: there was
 * less time than it seemed. */
static enum hf_status delay_wait(struct hf_scope *s, uint32_t ms)
{
    struct hf_error error = *hf_scope_error(s);
    enum hf_status status = hf_scope_sleep_ms(s, ms);

    if (status == HF_TIMEOUT)
        *hf__scope_error_edit(s) = error;
    return status;
}

enum hf_status hf__again_turn(struct hf_scope *s, struct again *a)
{
    uint32_t ms;
    enum hf_status status;

    if (a->options.mode != HF_RETRY_ADAPTIVE)
        return HF_OK;
    ms = turn_take(a);
    if (ms == 0)
        return HF_OK;
    status = in_time(s, ms) ? delay_wait(s, ms) : HF_TIMEOUT;
    if (status != HF_OK)
        turn_return(a);
    return status;
}

bool hf__again_goes_on(struct hf_scope *s, struct again *a, struct again_course *c)
{
    const struct hf_error *error = hf_scope_error(s);
    enum kind kind = kind_of(error);
    uint32_t cost = kind == THROTTLED ? COST_THROTTLED : COST_TRANSIENT;
    uint32_t delay;

    c->happened = c->happened || error->may_have_happened;
    if (a->options.mode == HF_RETRY_ADAPTIVE)
        turn_note(a, kind);
    if (kind == FINAL || c->attempt >= a->options.max_attempts ||
        (error->may_have_happened && !c->repeatable))
        return false;
    delay = delay_ms(a, c, error, kind);
    if (!in_time(s, delay) || !quota_take(a, cost))
        return false;
    c->held = cost;
    return delay_wait(s, delay) == HF_OK && hf__again_turn(s, a) == HF_OK;
}

void hf__again_done(struct again *a, const struct again_course *c)
{
    if (a->options.mode == HF_RETRY_ADAPTIVE)
        turn_note(a, FINAL);
    quota_return(a, c->held);
}

/* ---- opening -------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t given, uint32_t fallback)
{
    return given ? given : fallback;
}

/* The options as they are meant. */
static enum hf_status options_resolve(struct hf_scope *s, const struct hf_retry_options *given,
                                      struct hf_retry_options *o)
{
    memset(o, 0, sizeof(*o));
    if (given)
        memcpy(o, given, given->size && given->size < sizeof(*o) ? given->size : sizeof(*o));
    if (o->mode == 0)
        o->mode = HF_RETRY_STANDARD;
    o->max_attempts = o->mode == HF_RETRY_OFF ? 1 : or_default(o->max_attempts, DEFAULT_ATTEMPTS);
    o->backoff_ms = or_default(o->backoff_ms, DEFAULT_BASE_MS);
    o->throttle_ms = or_default(o->throttle_ms, DEFAULT_THROTTLE_MS);
    o->backoff_max_ms = or_default(o->backoff_max_ms, DEFAULT_MAX_DELAY_MS);
    if (o->mode < HF_RETRY_STANDARD || o->mode > HF_RETRY_OFF)
        return hf__fail(s, HF_INVALID, "%d is no mode of trying again", (int)o->mode);
    if (o->max_attempts > ATTEMPTS_MAX)
        return hf__fail(s, HF_INVALID, "%u attempts are more than %d", o->max_attempts,
                        ATTEMPTS_MAX);
    if (o->backoff_ms > DELAY_MAX_MS || o->throttle_ms > DELAY_MAX_MS ||
        o->backoff_max_ms > DELAY_MAX_MS)
        return hf__fail(s, HF_INVALID, "a delay between attempts is at most %d milliseconds",
                        DELAY_MAX_MS);
    return HF_OK;
}

enum hf_status hf__again_open(struct hf_scope *s, const struct hf_retry_options *options,
                              struct again *again)
{
    struct hf_retry_options resolved;

    TRY(options_resolve(s, options, &resolved));
    *again = (struct again){.options = resolved, .tokens = QUOTA};
    again->env = resolved.env ? hf__env_fill(resolved.env) : *hf__scope_env(s);
    again->options.env = NULL;
    hf__limiter_init(&again->limiter, hf__env_elapsed_us(&again->env));
    pthread_mutex_init(&again->lock, NULL);
    return HF_OK;
}

void hf__again_close(struct again *again)
{
    pthread_mutex_destroy(&again->lock);
}
