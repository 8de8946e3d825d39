/*
 * db/again.h: whether a call that failed is worth another attempt, and when: the rules of retry.c,
 * for all that speak to a service. See again.c.
 *
 *     struct again_course c = {.repeatable = true};
 *
 *     TRY(hf__again_turn(s, again));
 *     for (;;) {
 *         c.attempt++;
 *         if (attempt(s) == HF_OK)
 *             break;
 *         if (!hf__again_goes_on(s, again, &c))
 *             return hf_scope_error(s)->status;
 *     }
 *     hf__again_done(again, &c);
 */
#ifndef HF_DB_AGAIN_H
#define HF_DB_AGAIN_H

#include <holdfast/retry.h>

#include <pthread.h>

#include "base/base.h"
#include "db/limiter.h"

/* What all calls on one service share; any thread. */
struct again {
    struct hf_env env;
    struct hf_retry_options options; /* with the defaults filled in */
    pthread_mutex_t lock;            /* guards all below */
    uint32_t tokens;
    struct limiter limiter;
};

/* One call on its way. */
struct again_course {
    bool repeatable; /* doing it twice is as doing it once */
    bool happened;   /* an attempt may have been done */
    uint32_t attempt;
    uint32_t held; /* tokens that the last retry took */
};

/* `options` may be NULL, as may its env: then that of the scope. HF_INVALID: an option cannot be.
 */
enum hf_status hf__again_open(struct hf_scope *s, const struct hf_retry_options *options,
                              struct again *again);
void hf__again_close(struct again *again);

/* In adaptive mode: wait for our turn to send. HF_TIMEOUT without an error of its own: there is
 * none before the deadline. */
enum hf_status hf__again_turn(struct hf_scope *s, struct again *again);

/* After a failed attempt: true when the next one may begin, after the delay that this took;
 * otherwise the scope has the error that the call ends with. */
bool hf__again_goes_on(struct hf_scope *s, struct again *again, struct again_course *course);

/* The last attempt succeeded. */
void hf__again_done(struct again *again, const struct again_course *course);

#endif
