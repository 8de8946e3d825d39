/*
 * Retries: a wrapper for a database that retries calls after temporary failures, by the rules of
 * AWS's SDKs as of November 2026, but only if that cannot double an effect.
 *
 *     struct hf_db *db;
 *     if (hf_retry_open(s, inner, NULL, &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db); // closes the inner one too
 *
 * hf_connect() puts one around its client. A call is retried when hf_error allows it (may_retry)
 * and it was not done, or when doing it twice is the same as once: reads, batches, and
 * transactions, which get a token if they have none. Other calls that may have been done are not
 * retried: their error has may_have_happened.
 */
#ifndef HOLDFAST_RETRY_H
#define HOLDFAST_RETRY_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hf_retry_mode {
    HF_RETRY_STANDARD = 1, /* a quota of tokens bounds the retries of all calls; the default */
    HF_RETRY_ADAPTIVE,     /* and a rate that adapts to throttling delays first attempts, too */
    HF_RETRY_OFF           /* every call is tried once */
};

struct hf_retry_options {
    size_t size; /* set by HF_OPTIONS(); needs none inside hf_client_options */
    const struct hf_env *env;
    enum hf_retry_mode mode; /* default HF_RETRY_STANDARD */
    uint32_t max_attempts;   /* at most, the first one included; default 4 */
    uint32_t backoff_ms;     /* first delay after a failure is random up to this; default 25 */
    uint32_t throttle_ms;    /* first delay after being throttled; default 1000 */
    uint32_t backoff_max_ms; /* no delay is longer; default 20000 */
    bool repeat_writes;      /* repeat single writes that may have been done, as AWS's SDKs do */
    uint64_t reserved[4];    /* as hf_client_options has this struct inside of it */
};

/*
 * A database that does what `inner` does, and tries again. It closes the inner one when it is
 * closed; on failure the inner one stays open and *db is NULL.
 *
 * HF_INVALID  an option is invalid
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_retry_open(struct hf_scope *s, struct hf_db *inner,
                                                 const struct hf_retry_options *options,
                                                 struct hf_db **db);

#ifdef __cplusplus
}
#endif

#endif
