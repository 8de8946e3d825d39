/*
 * client/service.c: signed calls to a service; see the header.
 *
 * Two refusals are answered here with another attempt, as the service did nothing and knows better:
 * when our clock is off, its Date tells by how much, and when the credentials are refused, their
 * source may have new ones. Everything else is left to the callers: db/retry.c, db/retry_policy.h, the relay.
 *
 * What always holds:
 *
 *  (1) Any thread calls. What a call needs for itself only (a signer, the room for the fields) is
 *      a worker, taken from a list and put back.
 *  (2) The offset of the clock is atomic: the newest answer wins.
 *  (3) No secret is part of an error or of a log line. Services explain a wrong signature with what
 *      should have been signed, and the session token is a part of that; so their words are looked
 *      through before they are repeated.
 */
#include "client/service.h"

#include <assert.h>

enum {
    TRIES = 3,      /* the first, one after a new clock, one with new credentials */
    SECRET_MIN = 16 /* a shorter one is made up, and may be a word of the message by chance */
};

struct service_worker {
    struct service_worker *next;
    struct signer *signer;
    struct http_head head;
};

/* ---- workers -------------------------------------------------------------------------------- */

void hf__service_init(struct service *service, const struct hf_env *env, const char *name)
{
    assert(env && name);
    *service = (struct service){.env = env, .name = name};
    atomic_init(&service->skew_s, 0);
    pthread_mutex_init(&service->lock, NULL);
}

void hf__service_free(struct service *service)
{
    while (service->workers) { /* all are back: no call is under way */
        struct service_worker *worker = service->workers;

        service->workers = worker->next;
        hf__signer_free(worker->signer);
        hf__env_free(service->env, worker, sizeof(*worker));
    }
    pthread_mutex_destroy(&service->lock);
}

/* (1) */
static enum hf_status take_worker(struct hf_scope *s, struct service *service,
                                  struct service_worker **worker)
{
    struct service_worker *made;
    enum hf_status status;

    assert(service->transport && service->credentials && service->agent.ptr); /* set before */
    pthread_mutex_lock(&service->lock);
    *worker = service->workers;
    if (*worker)
        service->workers = (*worker)->next;
    pthread_mutex_unlock(&service->lock);
    if (*worker)
        return HF_OK;
    made = hf__env_zalloc(service->env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    status = hf__signer_new(s, service->env, &made->signer);
    if (status != HF_OK) {
        hf__env_free(service->env, made, sizeof(*made));
        return status;
    }
    assert(made->signer && !made->next);
    *worker = made;
    return HF_OK;
}

static void return_worker(struct service *service, struct service_worker *worker)
{
    pthread_mutex_lock(&service->lock);
    assert(worker != service->workers);
    worker->next = service->workers;
    service->workers = worker;
    pthread_mutex_unlock(&service->lock);
}

/* ---- a call --------------------------------------------------------------------------------- */

static void add_field(struct http_head *head, const char *name, struct hf_str value)
{
    assert(name && value.ptr);
    assert(head->fields_len < HTTP_FIELDS_MAX);
    head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
}

static enum hf_status build_head(struct hf_scope *s, const struct service_try *try,
                                 const struct service_request *request)
{
    const struct service *service = try->service;
    struct http_head *head = &try->worker->head;
    int64_t skew_s = atomic_load_explicit(&service->skew_s, memory_order_relaxed);

    head->method = hf_str_from(request->method);
    head->path = head->target = request->path;
    head->query = request->query;
    if (request->query.ptr)
        head->target =
            hf_scope_format(s, "%.*s?%.*s", HF_FMT(request->path), HF_FMT(request->query));
    if (!head->target.ptr)
        return hf__fail_nomem(s);
    head->fields_len = 0;
    add_field(head, "Host", request->endpoint->host);
    add_field(head, "User-Agent", service->agent);
    assert(request->fields_len <= HTTP_FIELDS_MAX - head->fields_len);
    for (size_t i = 0; i < request->fields_len; i++)
        head->fields[head->fields_len++] = request->fields[i];
    return hf__sign_request(s, try->worker->signer, head,
                            &(struct sign_how){.credentials = &try->used,
                                               .region = request->endpoint->signing_region,
                                               .service = request->endpoint->signing_name,
                                               .now_s =
                                                   hf__env_wall_us(service->env) / 1000000 + skew_s,
                                               .body = request->body});
}

enum hf_status hf__service_send(struct hf_scope *s, struct service_try *try,
                                const struct service_request *request)
{
    assert(try->worker && request->method && request->path.len && request->path.ptr[0] == '/');
    assert(request->endpoint->origin.len && request->endpoint->signing_name.len);
    try->is_head = str_is(hf_str_from(request->method), "HEAD");
    TRY(build_head(s, try, request));
    return hf__transport_call(s, try->service->transport,
                              &(struct transport_call){.origin = request->endpoint->origin,
                                                       .head = &try->worker->head,
                                                       .body = request->body,
                                                       .timeout_ms = request->timeout_ms,
                                                       .answer_max = request->answer_max},
                              &try->answer);
}

enum hf_status hf__service_call(struct hf_scope *s, struct service *service, service_try_fn *fn,
                                void *user)
{
    struct service_try try = {.service = service, .again = true};
    enum hf_status status = HF_OK;

    assert(fn);
    TRY(take_worker(s, service, &try.worker));
    for (int tries = 0; tries < TRIES && try.again; tries++) {
        hf__scope_error_clear(s);
        try.again = false;
        try.answer = (struct http_answer){.status = 0};
        status = hf__credentials_get(s, service->credentials, &try.used, &try.account);
        if (status == HF_OK)
            status = fn(s, &try, user);
    }
    assert(try.worker && (status == HF_OK || hf_scope_error(s)->status == status));
    return_worker(service, try.worker);
    return status;
}

/* ---- refusals ------------------------------------------------------------------------------- */

bool hf__service_clock_differs(const struct hf_env *env, const struct http_answer *answer,
                               int64_t *skew_s)
{
    int64_t date_s = hf__http_answer_date_s(answer);
    int64_t now_s = date_s - hf__env_wall_us(env) / 1000000;

    assert(skew_s);
    if (!date_s || (now_s - *skew_s > -CREDENTIALS_SKEW_S && now_s - *skew_s < CREDENTIALS_SKEW_S))
        return false;
    *skew_s = now_s;
    return true;
}

/* (2) */
static bool learn_clock(struct service *service, const struct http_answer *answer)
{
    int64_t skew_s = atomic_load_explicit(&service->skew_s, memory_order_relaxed);

    if (!hf__service_clock_differs(service->env, answer, &skew_s))
        return false;
    atomic_store_explicit(&service->skew_s, skew_s, memory_order_relaxed);
    hf__env_log(service->env, HF_LOG_WARNING,
                "the clock of this machine differs from that of %s by %lld s", service->name,
                (long long)skew_s);
    return true;
}

_Static_assert(SERVICE_RETRY_AFTER_MAX_MS % 1000 == 0, "it is cut in seconds, too");

static bool is_one_of(struct hf_str text, const char *const *words, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (str_is(text, words[i]))
            return true;
    return false;
}

struct hf_str hf__service_code(struct hf_str code)
{
    static const char end[] = "Exception";
    size_t end_len = strlen(end);

    for (size_t i = code.len; i > 0; i--)
        if (code.ptr[i - 1] == '#' || code.ptr[i - 1] == '.') {
            code = hf_str_of(code.ptr + i, code.len - i);
            break;
        }
    if (code.len > end_len && memcmp(code.ptr + code.len - end_len, end, end_len) == 0)
        code.len -= end_len;
    return code;
}

void hf__service_refused(struct service_try *try, struct hf_str code)
{
    static const char *const clock[] = {"RequestTimeTooSkewed", "RequestExpired",
                                        "InvalidSignature", "SignatureDoesNotMatch", "AuthFailure"};
    static const char *const key[] = {"ExpiredToken",         "InvalidToken",
                                      "UnrecognizedClient",   "InvalidAccessKeyId",
                                      "InvalidClientTokenId", "InvalidSecurity",
                                      "RequestExpired"};
    /* A HEAD is refused without a word. */
    bool silent = try->is_head && try->answer.status == 403 && !code.len;

    assert(try->answer.status != 200);
    code = hf__service_code(code);
    if ((silent || is_one_of(code, clock, ARRAY_LEN(clock))) &&
        learn_clock(try->service, &try->answer))
        try->again = true;
    else if (is_one_of(code, key, ARRAY_LEN(key)))
        try->again = hf__credentials_refused(try->service->credentials, try->used.access_key);
}

/* A number, cut to `max`; 0 when it is none. */
static uint32_t number_of(struct hf_str text, uint32_t max)
{
    uint64_t number = 0;

    assert(max > 0);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
        number = number < max ? number : max;
    }
    return (uint32_t)number;
}

uint32_t hf__service_retry_after_ms(const struct http_answer *answer)
{
    struct hf_str ms = hf__http_answer_field(answer, "x-amz-retry-after");

    if (ms.len)
        return number_of(ms, SERVICE_RETRY_AFTER_MAX_MS);
    return number_of(hf__http_answer_field(answer, "retry-after"),
                     SERVICE_RETRY_AFTER_MAX_MS / 1000) *
           1000;
}

enum hf_status hf__service_unreadable(struct hf_scope *s, struct hf_str who, const char *why)
{
    struct hf_error *error;

    assert(who.ptr && why);
    hf__fail(s, HF_IO, "the answer of %.*s %s", HF_FMT(who), why);
    error = hf__scope_error_edit(s);
    error->may_retry = true;
    error->may_have_happened = true;
    return HF_IO;
}

/* ---- words ---------------------------------------------------------------------------------- */

/* (3) */
bool hf__service_has_secret(const struct service_try *try, struct hf_str text)
{
    const struct hf_str secrets[] = {try->used.secret_key, try->used.session_token};

    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        if (secrets[i].len >= SECRET_MIN && text.len &&
            memmem(text.ptr, text.len, secrets[i].ptr, secrets[i].len))
            return true;
    return false;
}

struct hf_str hf__service_printable(struct hf_scope *s, struct hf_str text, size_t max)
{
    size_t len = text.len < max ? text.len : max;
    char *copy = hf_scope_alloc(s, len + 1);

    if (!copy)
        return HF_STR("");
    for (size_t i = 0; i < len; i++)
        copy[i] = text.ptr[i] >= ' ' && text.ptr[i] < 127 ? text.ptr[i] : '?';
    assert(len <= max);
    copy[len] = '\0';
    return hf_str_of(copy, len);
}

struct hf_str hf__service_quote(struct hf_scope *s, const struct service_try *try,
                                struct hf_str text, size_t max)
{
    return hf__service_has_secret(try, text) ? HF_STR("") : hf__service_printable(s, text, max);
}
