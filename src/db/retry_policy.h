/*
 * db/retry_policy.h: whether a call that failed gets another attempt, and when: for retry.c, and for the
 * clients of other services. See retry_policy.c.
 *
 *     struct retry_course c = {.repeatable = true};
 *
 *     TRY(hf__retry_wait_to_send(s, policy));
 *     for (;;) {
 *         c.attempt++;
 *         if (attempt(s) == HF_OK)
 *             break;
 *         if (!hf__retry_next_attempt(s, policy, &c))
 *             return hf_scope_error(s)->status;
 *     }
 *     hf__retry_succeeded(policy, &c);
 */
#ifndef HF_DB_RETRY_POLICY_H
#define HF_DB_RETRY_POLICY_H

#include <holdfast/retry.h>

#include <pthread.h>

#include "base/base.h"
#include "db/limiter.h"

/* What all calls on one service share; any thread. */
struct retry_policy {
    struct hf_env env;
    struct hf_retry_options options; /* with the defaults filled in */
    pthread_mutex_t lock;            /* guards all below */
    uint32_t tokens;
    struct limiter limiter;
};

/* One call on its way. */
struct retry_course {
    bool repeatable; /* doing it twice is as doing it once */
    bool happened;   /* an attempt may have been done */
    uint32_t attempt;
    uint32_t held; /* tokens that the last retry took */
};

/* `options` may be NULL, as may its env: then that of the scope is used. HF_INVALID: an option is out
 * of range. */
enum hf_status hf__retry_policy_open(struct hf_scope *s, const struct hf_retry_options *options,
                                     struct retry_policy *policy);
void hf__retry_policy_close(struct retry_policy *policy);

/* In adaptive mode: wait until the rate limit lets us send. HF_TIMEOUT, without setting an error:
 * that is after the deadline. */
enum hf_status hf__retry_wait_to_send(struct hf_scope *s, struct retry_policy *policy);

/* After a failed attempt: true when the next one may begin, after the delay that this took;
 * otherwise the scope has the error that the call ends with. */
bool hf__retry_next_attempt(struct hf_scope *s, struct retry_policy *policy,
                            struct retry_course *course);

/* The last attempt succeeded. */
void hf__retry_succeeded(struct retry_policy *policy, const struct retry_course *course);

#endif
