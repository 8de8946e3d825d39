/*
 * db/retry_policy.c: whether and when to try again.
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
 *                 tries it again by itself, as the caller may want to read again first
 *
 * Here we differ from the SDKs in two ways. They leave TransactionConflictException to the caller;
 * we take it as transient, since nothing was done and the other transaction is short. And they
 * repeat a write whose answer was lost; we do so only if asked to (repeat_writes), since ADD and
 * list_append would count twice, and a condition would fail of its own earlier success.
 *
 * A delay that would end at the deadline or later is not begun: the error is returned as it is.
 */
#include "db/retry_policy.h"

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

static bool quota_take(struct retry_policy *policy, uint32_t cost)
{
    bool enough;

    pthread_mutex_lock(&policy->lock);
    assert(policy->tokens <= QUOTA);
    enough = policy->tokens >= cost;
    if (enough)
        policy->tokens -= cost;
    pthread_mutex_unlock(&policy->lock);
    return enough;
}

static void quota_return(struct retry_policy *policy, uint32_t held)
{
    pthread_mutex_lock(&policy->lock);
    policy->tokens += held ? held : REWARD;
    if (policy->tokens > QUOTA)
        policy->tokens = QUOTA;
    pthread_mutex_unlock(&policy->lock);
}

static uint32_t slot_take(struct retry_policy *policy)
{
    int64_t wait_us;

    pthread_mutex_lock(&policy->lock);
    wait_us = hf__limiter_take(&policy->limiter, hf__env_elapsed_us(&policy->env));
    pthread_mutex_unlock(&policy->lock);
    return wait_us > (int64_t)UINT32_MAX * 1000 ? UINT32_MAX : (uint32_t)((wait_us + 999) / 1000);
}

static void slot_return(struct retry_policy *policy)
{
    pthread_mutex_lock(&policy->lock);
    hf__limiter_return(&policy->limiter);
    pthread_mutex_unlock(&policy->lock);
}

static void slot_note(struct retry_policy *policy, enum kind kind)
{
    pthread_mutex_lock(&policy->lock);
    hf__limiter_note(&policy->limiter, hf__env_elapsed_us(&policy->env), kind == THROTTLED);
    pthread_mutex_unlock(&policy->lock);
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
static uint32_t random_to(const struct retry_policy *policy, uint32_t max)
{
    uint64_t bits;

    hf__env_random(&policy->env, &bits, sizeof(bits));
    return (uint32_t)(bits % ((uint64_t)max + 1));
}

static uint32_t delay_ms(const struct retry_policy *policy, const struct retry_course *c,
                         const struct hf_error *error, enum kind kind)
{
    const struct hf_retry_options *o = &policy->options;
    uint64_t most = kind == THROTTLED ? o->throttle_ms : o->backoff_ms;
    uint32_t delay;

    for (uint32_t i = 1; i < c->attempt && most < o->backoff_max_ms; i++)
        most *= 2;
    delay = random_to(policy, most < o->backoff_max_ms ? (uint32_t)most : o->backoff_max_ms);
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

enum hf_status hf__retry_wait_to_send(struct hf_scope *s, struct retry_policy *policy)
{
    uint32_t ms;
    enum hf_status status;

    if (policy->options.mode != HF_RETRY_ADAPTIVE)
        return HF_OK;
    ms = slot_take(policy);
    if (ms == 0)
        return HF_OK;
    status = in_time(s, ms) ? delay_wait(s, ms) : HF_TIMEOUT;
    if (status != HF_OK)
        slot_return(policy);
    return status;
}

bool hf__retry_next_attempt(struct hf_scope *s, struct retry_policy *policy, struct retry_course *c)
{
    const struct hf_error *error = hf_scope_error(s);
    enum kind kind = kind_of(error);
    uint32_t cost = kind == THROTTLED ? COST_THROTTLED : COST_TRANSIENT;
    uint32_t delay;

    assert(error->status != HF_OK && c->attempt > 0);
    c->happened = c->happened || error->may_have_happened;
    if (policy->options.mode == HF_RETRY_ADAPTIVE)
        slot_note(policy, kind);
    if (kind == FINAL || c->attempt >= policy->options.max_attempts ||
        (error->may_have_happened && !c->repeatable))
        return false;
    delay = delay_ms(policy, c, error, kind);
    if (!in_time(s, delay) || !quota_take(policy, cost))
        return false;
    c->held = cost;
    return delay_wait(s, delay) == HF_OK && hf__retry_wait_to_send(s, policy) == HF_OK;
}

void hf__retry_succeeded(struct retry_policy *policy, const struct retry_course *c)
{
    if (policy->options.mode == HF_RETRY_ADAPTIVE)
        slot_note(policy, FINAL);
    quota_return(policy, c->held);
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
        return hf__fail(s, HF_INVALID, "unknown retry mode %d", (int)o->mode);
    if (o->max_attempts > ATTEMPTS_MAX)
        return hf__fail(s, HF_INVALID, "max_attempts is %u, and at most %d is allowed",
                        o->max_attempts, ATTEMPTS_MAX);
    if (o->backoff_ms > DELAY_MAX_MS || o->throttle_ms > DELAY_MAX_MS ||
        o->backoff_max_ms > DELAY_MAX_MS)
        return hf__fail(s, HF_INVALID, "a delay between attempts is at most %d milliseconds",
                        DELAY_MAX_MS);
    return HF_OK;
}

enum hf_status hf__retry_policy_open(struct hf_scope *s, const struct hf_retry_options *options,
                                     struct retry_policy *policy)
{
    struct hf_retry_options resolved;

    TRY(options_resolve(s, options, &resolved));
    *policy = (struct retry_policy){.options = resolved, .tokens = QUOTA};
    policy->env = resolved.env ? hf__env_fill(resolved.env) : *hf__scope_env(s);
    policy->options.env = NULL;
    hf__limiter_init(&policy->limiter, hf__env_elapsed_us(&policy->env));
    pthread_mutex_init(&policy->lock, NULL);
    return HF_OK;
}

void hf__retry_policy_close(struct retry_policy *policy)
{
    pthread_mutex_destroy(&policy->lock);
}
