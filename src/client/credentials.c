/*
 * client/credentials.c: the chain of sources, what it found, and when it is asked again.
 *
 * What was found is a block of memory, `struct keys`, that never changes. A reader holds a
 * reference; the last to let go wipes and frees it. The lock guards which block is the current one
 * and who is refreshing; sources run without it.
 *
 * By the time left until they expire, keys are
 *
 *     fresh     more than ADVISORY_US          everybody uses them
 *     soon      more than MANDATORY_US         one thread refreshes, the others use them
 *     now       less, or none, or refused      one thread refreshes, the others wait for it
 *
 * A refresh that fails leaves the old keys in use for as long as they are valid, and is not tried
 * again before a pause that differs from process to process; nor is one that brought keys which
 * are about to expire as well. Without valid keys every call tries, and those who waited for one
 * that failed fail with it: otherwise a hundred threads would run into the same timeout one behind
 * the other.
 *
 * What always holds:
 *
 *  (1) At most one thread runs sources, so sources need no locks.
 *  (2) No thread waits longer than its own scope allows, whichever thread refreshes.
 *  (3) A thread that refreshes ahead of need spends at most half of its time on it: keys that are
 *      valid are never lost to a source that hangs.
 *  (4) A refresh that ended because of the refresher's own scope is not an answer for others.
 *  (5) A block of keys is wiped before its memory goes back.
 *  (6) Keys that a service refused are not handed out again before the source was asked.
 */
#include "client/credentials.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/assert_held.h"
#include "base/cond_monotonic.h"
#include "client/source.h"

#define SECOND_US INT64_C(1000000)
#define ADVISORY_US (300 * SECOND_US)
#define MANDATORY_US (60 * SECOND_US)
#define PAUSE_SOON_US (10 * SECOND_US)    /* after a failure ahead of need; up to twice that */
#define PAUSE_NOW_US (1 * SECOND_US)      /* after a failure in the last minute; likewise */
#define OUTLAST_US (300 * SECOND_US)      /* how long expired keys stay in use; likewise */
#define REFUSED_AGAIN_US (30 * SECOND_US) /* a source that gave a refused key again is left alone */

enum {
    WAIT_SLICE_MS = 20, /* how soon a waiter notices that it was canceled */
    FAILURE_MAX = 1024,
    KEY_MAX = 256,
    TOKEN_MAX = 12 * 1024 /* it has to fit into the head of a request */
};

struct keys {
    atomic_int refs;
    size_t size;
    struct source_keys is; /* its strings lie behind this struct */
};

/* Why the last refresh failed, for those who waited for it. */
struct failure {
    uint64_t round; /* which refresh that was; 0: none */
    enum hf_status status;
    bool may_retry;
    char text[FAILURE_MAX];
};

struct credentials {
    struct hf_env env;
    struct credentials_options options; /* without `fixed`; `region` is ours */
    struct keys *given;                 /* options.fixed; NULL when there is none */
    char *region;                       /* where options.region lies */

    struct source source; /* of who refreshes */

    pthread_mutex_t lock;
    pthread_cond_t ended; /* a refresh has ended */
    /* guarded by lock: */
    bool refreshing;
    uint64_t round;    /* refreshes that have ended */
    struct keys *keys; /* NULL: none yet */
    bool refused;      /* a service refused `keys` */
    int64_t retry_us;  /* elapsed clock: no refresh before this while the keys are valid */
    int64_t same_us;   /* elapsed clock: when a source gave a refused key again; 0: never */
    struct failure failure;
};

/* What holds whenever the lock is taken or given back. */
static void credentials_check(struct credentials *c)
{
    ASSERT_HELD(&c->lock);
    assert(!c->refused || c->keys);
    assert(c->failure.round <= c->round);
    assert(!c->keys || (c->keys->is.access_key.len && c->keys->is.secret_key.len));
    assert(!c->failure.round || c->failure.status != HF_OK);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static struct hf_str put_down(char **at, struct hf_str text)
{
    struct hf_str put = hf_str_of(text.ptr ? *at : NULL, text.len);

    assert(text.ptr || !text.len);
    if (text.len)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return put;
}

static struct keys *keys_new(const struct hf_env *env, const struct source_keys *from)
{
    size_t size = sizeof(struct keys) + from->access_key.len + from->secret_key.len +
                  from->session_token.len + from->account.len;
    struct keys *keys = hf__env_alloc(env, size);
    char *at;

    assert(from->access_key.len && from->secret_key.len && from->origin);
    if (!keys)
        return NULL;
    memset(keys, 0, sizeof(*keys));
    at = (char *)(keys + 1);
    atomic_init(&keys->refs, 1);
    keys->size = size;
    keys->is = *from;
    keys->is.access_key = put_down(&at, from->access_key);
    keys->is.secret_key = put_down(&at, from->secret_key);
    keys->is.session_token = put_down(&at, from->session_token);
    keys->is.account = put_down(&at, from->account);
    assert(at == (char *)keys + size);
    return keys;
}

static struct keys *keys_hold(struct keys *keys)
{
    int before = atomic_fetch_add_explicit(&keys->refs, 1, memory_order_relaxed);

    assert(before > 0);
    return keys;
}

static void keys_drop(const struct hf_env *env, struct keys *keys)
{
    int before;
    size_t size;

    if (!keys)
        return;
    before = atomic_fetch_sub_explicit(&keys->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    size = keys->size;
    OPENSSL_cleanse(keys, size);
    hf__env_free(env, keys, size);
}

/* ---- the chain ------------------------------------------------------------------------------ */

static enum hf_status from_program(struct hf_scope *s, struct credentials *c,
                                   struct source_keys *keys)
{
    struct hf_credentials given = {.expires_us = 0};
    enum hf_status status;

    assert(c->options.fn);
    hf__scope_error_clear(s);
    status = c->options.fn(s, &given, c->options.fn_user);
    if (status != HF_OK && hf_scope_error(s)->status == HF_OK)
        return hf__fail(s, status, "The program's own function for credentials failed with %s",
                        hf_status_name(status));
    TRY(status);
    *keys = (struct source_keys){.access_key = given.access_key,
                                 .secret_key = given.secret_key,
                                 .session_token = given.session_token,
                                 .expires_us = given.expires_us,
                                 .origin = "the program's own function"};
    return HF_OK;
}

/* What a database on this machine gets when no credentials were found: some only look that there is
 * something, and DynamoDB Local wants letters and digits. */
static const struct source_keys made_up = {.access_key = HF_STR_INIT("local"),
                                           .secret_key = HF_STR_INIT("local"),
                                           .origin = "this library",
                                           .fixed = true};

bool hf__credentials_made_up(const struct sign_credentials *used)
{
    assert(used->access_key.ptr || !used->access_key.len);
    return hf_str_equal(used->access_key, made_up.access_key) &&
           hf_str_equal(used->secret_key, made_up.secret_key);
}

static enum hf_status fail_without(struct hf_scope *s, const struct credentials *c,
                                   const char *metadata)
{
    assert(metadata);
    return hf__fail(s, HF_DENIED,
                    "No credentials found: %s profile \"%.*s\" has none, "
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI are not set, and the "
                    "metadata service of the machine %s",
                    c->options.profile_asked
                        ? "the"
                        : "AWS_ACCESS_KEY_ID and AWS_WEB_IDENTITY_TOKEN_FILE are not set,",
                    HF_FMT(hf__config_profile(c->options.config)), metadata);
}

/* The first source that is configured decides. */
static enum hf_status from_chain(struct hf_scope *s, struct credentials *c,
                                 struct source_keys *keys)
{
    typedef enum hf_status source_fn(struct hf_scope *, struct source *, bool *,
                                     struct source_keys *);
    static source_fn *const chain[] = {hf__source_environment, hf__source_web_identity,
                                       hf__source_profile, hf__source_container};
    enum { PROFILE = 2 };
    const char *absent = NULL;
    bool found = false;

    for (size_t i = c->options.profile_asked ? PROFILE : 0; i < ARRAY_LEN(chain); i++) {
        TRY(chain[i](s, &c->source, &found, keys));
        if (found)
            return HF_OK;
    }
    if (c->options.local) {
        *keys = made_up;
        return HF_OK;
    }
    TRY(hf__source_metadata(s, &c->source, &absent, keys));
    return absent ? fail_without(s, c, absent) : HF_OK;
}

/* Can the text be sent as it is, and be an answer of a sane source at all? */
static bool is_plain(struct hf_str text, size_t max)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    return text.len <= max;
}

static enum hf_status check_keys(struct hf_scope *s, struct source_keys *keys)
{
    assert(keys->origin);
    if (!keys->access_key.len || !keys->secret_key.len)
        return hf__fail(s, HF_INVALID, "The credentials from %s have no %s", keys->origin,
                        keys->access_key.len ? "secret key" : "access key");
    if (!is_plain(keys->access_key, KEY_MAX) || !is_plain(keys->secret_key, KEY_MAX) ||
        !is_plain(keys->session_token, TOKEN_MAX))
        return hf__fail(s, HF_INVALID,
                        "The credentials from %s have a key or a token that is too long or has "
                        "blanks or other invalid characters",
                        keys->origin);
    if (!keys->session_token.len)
        keys->session_token = hf_str_of(NULL, 0);
    if (!keys->account.len || !is_plain(keys->account, KEY_MAX))
        keys->account = hf_str_of(NULL, 0);
    return HF_OK;
}

/* From `us` to twice that, so that many processes that failed together do not return together. */
static int64_t add_jitter(const struct hf_env *env, int64_t us)
{
    uint32_t random;

    assert(us > 0 && us < INT64_MAX / 2);
    hf__env_random(env, &random, sizeof(random));
    return us + (int64_t)((uint64_t)us * random >> 32);
}

static enum hf_status check_expiry(struct hf_scope *s, struct credentials *c,
                                   struct source_keys *keys)
{
    int64_t now = hf__env_wall_us(&c->env);

    assert(keys->origin);
    if (keys->expires_us == 0 || keys->expires_us > now + (keys->outlast ? MANDATORY_US : 0))
        return HF_OK;
    if (!keys->outlast)
        return hf__fail(s, HF_DENIED,
                        "The credentials from %s have expired already, unless the clock of this "
                        "machine is wrong",
                        keys->origin);
    keys->expires_us = now + ADVISORY_US + add_jitter(&c->env, OUTLAST_US);
    hf__env_log(&c->env, HF_LOG_WARNING,
                "credentials: those from %s have expired; they are used until it has new ones",
                keys->origin);
    return HF_OK;
}

/* Ask the source that decides; new keys, with one reference. */
static enum hf_status keys_fetch(struct hf_scope *s, struct credentials *c, struct keys **fetched)
{
    struct source_keys keys = {.fixed = false};

    if (c->options.fn) {
        TRY(from_program(s, c, &keys));
    } else if (c->given) {
        keys = c->given->is;
    } else {
        enum hf_status status = from_chain(s, c, &keys);

        if (status == HF_IO)
            hf__scope_error_edit(s)->may_retry = true;
        TRY(status);
    }
    TRY(check_keys(s, &keys));
    TRY(check_expiry(s, c, &keys));
    assert(!*fetched);
    *fetched = keys_new(&c->env, &keys);
    return *fetched ? HF_OK : hf__fail_nomem(s);
}

/* ---- refreshing ----------------------------------------------------------------------------- */

enum need { NEED_FRESH, NEED_SOON, NEED_NOW };

struct clocks {
    int64_t wall_us;
    int64_t elapsed_us;
};

static struct clocks clocks_now(const struct hf_env *env)
{
    return (struct clocks){hf__env_wall_us(env), hf__env_elapsed_us(env)};
}

/* Can the current keys be handed out? */
static bool is_usable(struct credentials *c, struct clocks now)
{
    ASSERT_HELD(&c->lock);
    return c->keys && !c->refused &&
           (c->keys->is.expires_us == 0 || c->keys->is.expires_us > now.wall_us);
}

static enum need what_now(struct credentials *c, struct clocks now)
{
    int64_t left;

    ASSERT_HELD(&c->lock);
    if (!is_usable(c, now))
        return NEED_NOW;
    left = c->keys->is.expires_us - now.wall_us;
    if (c->keys->is.expires_us == 0 || left > ADVISORY_US || now.elapsed_us < c->retry_us)
        return NEED_FRESH;
    return left > MANDATORY_US ? NEED_SOON : NEED_NOW;
}

/* (4) */
static bool is_own_failure(enum hf_status status)
{
    return status == HF_TIMEOUT || status == HF_CANCELED || status == HF_NOMEM;
}

/* Store the result of a refresh; *old has to be dropped after the lock is released. */
static void take_over(struct credentials *c, const struct hf_scope *s, enum hf_status status,
                      struct keys *fetched, struct clocks now, int64_t pause_us, struct keys **old)
{
    const struct hf_error *error = hf_scope_error(s);

    ASSERT_HELD(&c->lock);
    credentials_check(c);
    assert(c->refreshing && (status == HF_OK) == (fetched != NULL));
    assert(pause_us > 0);
    c->refreshing = false;
    c->round++;
    c->retry_us = now.elapsed_us + pause_us;
    assert(!c->refused || c->keys); /* keys were refused */
    if (status == HF_OK) {
        if (c->refused && hf_str_equal(c->keys->is.access_key, fetched->is.access_key))
            c->same_us = now.elapsed_us;
        *old = c->keys;
        c->keys = fetched;
        c->refused = false;
        c->source.metadata_seen = fetched->is.outlast;
    } else if (!is_own_failure(status)) {
        c->failure.round = c->round;
        c->failure.status = status;
        c->failure.may_retry = error->may_retry;
        snprintf(c->failure.text, sizeof(c->failure.text), "%.*s", HF_FMT(error->message));
    }
    credentials_check(c);
    pthread_cond_broadcast(&c->ended);
}

/* Refresh, in the one thread that does so. The lock is released while the source is asked. */
static enum hf_status keys_refresh(struct hf_scope *s, struct credentials *c, enum need need)
{
    struct keys *fetched = NULL, *old = NULL;
    enum hf_status status;
    struct clocks now;
    int64_t pause_us, left_ms;
    bool usable;

    ASSERT_HELD(&c->lock);
    assert(!c->refreshing);
    c->refreshing = true;
    pthread_mutex_unlock(&c->lock);

    left_ms = hf__scope_left_ms(s, INT32_MAX);
    c->source.until_us = 0;
    if (need == NEED_SOON && left_ms < INT32_MAX) /* (3) */
        c->source.until_us = hf__env_elapsed_us(&c->env) + left_ms * 1000 / 2;
    status = keys_fetch(s, c, &fetched);
    now = clocks_now(&c->env);
    pause_us = add_jitter(&c->env, need == NEED_SOON ? PAUSE_SOON_US : PAUSE_NOW_US);

    pthread_mutex_lock(&c->lock);
    take_over(c, s, status, fetched, now, pause_us, &old);
    usable = is_usable(c, now);
    pthread_mutex_unlock(&c->lock);

    keys_drop(&c->env, old);
    if (status != HF_OK && usable && hf__scope_left_ms(s, 1) > 0 && status != HF_CANCELED) {
        hf__env_log(&c->env, HF_LOG_WARNING,
                    "credentials: refresh failed, and the old ones stay in use: %s",
                    hf_scope_error_text(s));
        hf__scope_error_clear(s);
        status = HF_OK;
    }
    pthread_mutex_lock(&c->lock);
    return status;
}

/* Wait until the running refresh has ended, and fail if it failed. */
static enum hf_status wait_for(struct hf_scope *s, struct credentials *c)
{
    uint64_t round = c->round;
    enum hf_status status;
    struct failure failure;

    ASSERT_HELD(&c->lock);
    assert(c->refreshing);
    while (c->round == round) {
        cond_wait_ms(&c->ended, &c->lock, WAIT_SLICE_MS);
        if (c->round != round)
            break;
        pthread_mutex_unlock(&c->lock);
        status = hf__scope_alive(s); /* (2) */
        pthread_mutex_lock(&c->lock);
        TRY(status);
    }
    if (c->failure.round != round + 1)
        return HF_OK;
    failure = c->failure;
    pthread_mutex_unlock(&c->lock);
    status = hf__fail(s, failure.status, "%s", failure.text);
    hf__scope_error_edit(s)->may_retry = failure.may_retry;
    pthread_mutex_lock(&c->lock);
    return status;
}

/* A reference to keys that can be used. */
static enum hf_status current_keys(struct hf_scope *s, struct credentials *c, struct keys **keys)
{
    enum hf_status status = HF_OK;
    struct clocks now = clocks_now(&c->env);

    pthread_mutex_lock(&c->lock);
    for (;;) {
        enum need need = what_now(c, now);

        if (need == NEED_FRESH || (need == NEED_SOON && c->refreshing))
            break;
        status = c->refreshing ? wait_for(s, c) : keys_refresh(s, c, need);
        pthread_mutex_unlock(&c->lock);
        now = clocks_now(&c->env);
        pthread_mutex_lock(&c->lock);
        if (status != HF_OK && (is_own_failure(status) || !is_usable(c, now)))
            break;
        if (status != HF_OK) /* what somebody else's refresh failed with does not matter */
            hf__scope_error_clear(s);
        status = HF_OK;
    }
    credentials_check(c);
    assert(status != HF_OK || (c->keys && !c->refused));
    if (status == HF_OK)
        *keys = keys_hold(c->keys);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- for the client ------------------------------------------------------------------------- */

static enum hf_status hand_out(struct hf_scope *s, const struct source_keys *keys,
                               struct sign_credentials *now, struct hf_str *account)
{
    assert(keys->access_key.len && keys->secret_key.len);
    *now = (struct sign_credentials){.access_key = hf_scope_copy(s, keys->access_key),
                                     .secret_key = hf_scope_copy(s, keys->secret_key)};
    *account = hf_str_of(NULL, 0);
    if (keys->session_token.ptr)
        now->session_token = hf_scope_copy(s, keys->session_token);
    if (keys->account.ptr)
        *account = hf_scope_copy(s, keys->account);
    if (!now->access_key.ptr || !now->secret_key.ptr ||
        (keys->session_token.ptr && !now->session_token.ptr) ||
        (keys->account.ptr && !account->ptr))
        return hf__fail_nomem(s);
    return HF_OK;
}

enum hf_status hf__credentials_get(struct hf_scope *s, struct credentials *c,
                                   struct sign_credentials *now, struct hf_str *account)
{
    struct keys *keys = NULL;
    enum hf_status status;

    TRY(current_keys(s, c, &keys));
    status = hand_out(s, &keys->is, now, account);
    keys_drop(&c->env, keys);
    return status;
}

enum hf_status hf__credentials_show(struct hf_scope *s, struct credentials *c,
                                    struct credentials_shown *shown)
{
    struct keys *keys = NULL;

    TRY(current_keys(s, c, &keys));
    *shown = (struct credentials_shown){.access_key = hf_scope_copy(s, keys->is.access_key),
                                        .origin = keys->is.origin,
                                        .expires_us = keys->is.expires_us,
                                        .made_up = keys->is.origin == made_up.origin};
    keys_drop(&c->env, keys);
    return shown->access_key.ptr ? HF_OK : hf__fail_nomem(s);
}

bool hf__credentials_refused(struct credentials *c, struct hf_str access_key)
{
    int64_t now_us = hf__env_elapsed_us(&c->env);
    bool others = false;

    pthread_mutex_lock(&c->lock);
    if (c->keys && !hf_str_equal(c->keys->is.access_key, access_key))
        others = true; /* replaced in the meantime */
    else if (c->keys && !c->keys->is.fixed &&
             (c->same_us == 0 || now_us - c->same_us >= REFUSED_AGAIN_US))
        others = c->refused = true;
    credentials_check(c);
    pthread_mutex_unlock(&c->lock);
    return others;
}

static enum hf_status keep_given(struct hf_scope *s, struct credentials *c,
                                 const struct hf_credentials *fixed)
{
    struct source_keys keys = {.origin = "the program", .fixed = true};

    assert(!c->given);
    if (!fixed || !fixed->access_key.len)
        return HF_OK;
    keys.access_key = fixed->access_key;
    keys.secret_key = fixed->secret_key;
    keys.session_token = fixed->session_token;
    keys.expires_us = fixed->expires_us;
    TRY(check_keys(s, &keys));
    c->given = keys_new(&c->env, &keys);
    return c->given ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status keep_region(struct hf_scope *s, struct credentials *c, struct hf_str region)
{
    char *copy;

    assert(!c->region);
    if (!region.len)
        return HF_OK;
    copy = hf__env_alloc(&c->env, region.len);
    if (!copy)
        return hf__fail_nomem(s);
    memcpy(copy, region.ptr, region.len);
    c->region = copy;
    c->options.region = hf_str_of(copy, region.len);
    return HF_OK;
}

static enum hf_status init_lock(struct hf_scope *s, struct credentials *c)
{
    if (cond_monotonic_init(&c->ended) != 0)
        return hf__fail_nomem(s);
    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        pthread_cond_destroy(&c->ended);
        return hf__fail_nomem(s);
    }
    return HF_OK;
}

enum hf_status hf__credentials_region(struct hf_scope *s, const struct config *config,
                                      struct hf_str *region)
{
    struct source source = {.config = config, .env = hf__config_env(config)};
    enum hf_status status = hf__source_metadata_region(s, &source, region);

    hf__source_end(&source);
    return status;
}

enum hf_status hf__credentials_open(struct hf_scope *s, const struct credentials_options *options,
                                    struct credentials **credentials)
{
    const struct hf_env *env = hf__config_env(options->config);
    struct credentials *c = hf__env_alloc(env, sizeof(*c));
    enum hf_status status;

    assert(options->config && options->transport);
    *credentials = NULL;
    if (!c)
        return hf__fail_nomem(s);
    memset(c, 0, sizeof(*c));
    c->env = *env;
    c->options = *options;
    c->options.fixed = NULL;
    c->options.region = hf_str_of(NULL, 0);
    status = init_lock(s, c);
    if (status != HF_OK) {
        hf__env_free(env, c, sizeof(*c));
        return status;
    }
    status = keep_region(s, c, options->region);
    if (status == HF_OK)
        status = keep_given(s, c, options->fixed);
    c->source = (struct source){.config = options->config,
                                .env = &c->env,
                                .transport = options->transport,
                                .region = c->options.region};
    if (status == HF_OK)
        *credentials = c;
    else
        hf__credentials_close(c);
    return status;
}

void hf__credentials_close(struct credentials *c)
{
    struct hf_env env;

    if (!c)
        return;
    env = c->env;
    assert(!c->refreshing);
    hf__source_end(&c->source);
    keys_drop(&env, c->keys);
    keys_drop(&env, c->given);
    hf__env_free(&env, c->region, c->options.region.len);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->ended);
    hf__env_free(&env, c, sizeof(*c));
}
