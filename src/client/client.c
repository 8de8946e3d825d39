/*
 * client/client.c: one operation as one signed request, and its answer.
 *
 *     struct -> JSON -> fields -> signature -> transport -> crc32 -> gunzip -> JSON -> struct
 *
 * Signing, a clock that is off and credentials that are refused are the matter of service.c.
 *
 * An attempt has one of three outcomes. Done: an answer that could be read. Not done: the service
 * said so, or the request never left whole. All else may have been done, and the error says that
 * of writes; of reads there is nothing that could have happened.
 *
 * What always holds:
 *
 *  (1) Any thread calls.
 *  (2) The features are atomic: the newest answer wins.
 *  (3) No secret is part of an error or of a log line.
 */
#include "client/client.h"

#include <assert.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "client/service.h"
#include "db/call_info.h"
#include "wire/wire.h"

enum {
    UNPACKED_MAX = 64 * 1024 * 1024,   /* bytes of an answer, unpacked */
    FEATURES = HF_FEATURE_BACKUPS + 1, /* numbers of features are below */
    BODY_FIRST = 1024
};

_Static_assert(HF_OP_COUNT <= 64, "a bit for each operation");

enum answer_to_feature { FEATURE_UNKNOWN, FEATURE_THERE, FEATURE_MISSING };

struct client {
    struct hf_db db;
    struct client_parts parts;
    struct service service;
    atomic_uint_fast64_t missing; /* a bit for each operation that the endpoint does not have */
    atomic_int features[FEATURES];
    pthread_mutex_t lock;  /* guards all below */
    struct hf_str account; /* whose endpoints these are; "" for none, absent: not known yet */
    struct endpoint dynamodb;
    struct endpoint streams;
};

static struct client *client_of(struct hf_db *db)
{
    return (struct client *)(void *)db;
}

/* ---- where to send -------------------------------------------------------------------------- */

static enum hf_status find_endpoint(struct hf_scope *s, const struct client *c,
                                    enum endpoint_service service, struct hf_str account,
                                    struct endpoint *endpoint)
{
    const struct endpoint_ask ask = {.service = service,
                                     .region = c->parts.region,
                                     .account = account,
                                     .account_later = !account.ptr,
                                     .fips = c->parts.fips,
                                     .dual_stack = c->parts.dual_stack};

    return hf__endpoint_find(s, c->parts.config, &ask, endpoint);
}

/* Learn the endpoints of an account, or of any when it is absent. Those of earlier ones stay in
 * memory: calls may be using them. A program changes its account hardly ever. */
static enum hf_status learn_endpoints(struct hf_scope *s, struct client *c, struct hf_str account)
{
    struct endpoint dynamodb, streams;
    struct hf_str kept = account;

    assert(c->parts.memory && c->parts.config);
    if (c->parts.fixed.origin.ptr) {
        dynamodb = streams = c->parts.fixed;
    } else {
        TRY(find_endpoint(s, c, ENDPOINT_DYNAMODB, account, &dynamodb));
        TRY(find_endpoint(s, c, ENDPOINT_STREAMS, account, &streams));
        TRY(hf__endpoint_keep(s, c->parts.memory, &dynamodb));
        TRY(hf__endpoint_keep(s, c->parts.memory, &streams));
        if (account.ptr)
            kept = hf_scope_copy(c->parts.memory, account);
        if (account.ptr && !kept.ptr)
            return hf__fail_nomem(s);
    }
    assert(dynamodb.origin.len && streams.origin.len);
    c->account = kept;
    c->dynamodb = dynamodb;
    c->streams = streams;
    return HF_OK;
}

static enum hf_status endpoint_for(struct hf_scope *s, struct client *c, enum op_service service,
                                   struct hf_str account, struct endpoint *endpoint)
{
    enum hf_status status = HF_OK;

    assert(service == OP_DYNAMODB || service == OP_STREAMS);
    if (!account.ptr)
        account = HF_STR("");
    pthread_mutex_lock(&c->lock);
    if ((!c->account.ptr || !hf_str_equal(account, c->account)) && !c->parts.fixed.origin.ptr)
        status = learn_endpoints(s, c, account);
    *endpoint = service == OP_STREAMS ? c->streams : c->dynamodb;
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- the request ---------------------------------------------------------------------------- */

static enum hf_status write_body(struct hf_scope *s, const struct op *op, const void *request,
                                 struct hf_bytes *body)
{
    struct hf__buf buf = {.scope = s};
    struct hf_item poison;

    hf__buf_reserve(&buf, BODY_FIRST);
    hf__wire_write(&buf, op->request, request);
    if (!buf.failed) {
        *body = hf_bytes_of(buf.ptr, buf.len);
        return HF_OK;
    }
    poison = hf__wire_poison(op->request, request);
    return poison.ptr ? hf_item_check(s, poison) : hf__fail_nomem(s);
}

static struct hf_str target_of(struct hf_scope *s, const struct op *op)
{
    const struct hf_str prefix = op->service == OP_STREAMS ? HF_STR("DynamoDBStreams_20120810.")
                                                           : HF_STR("DynamoDB_20120810.");
    char *text = hf_scope_alloc(s, prefix.len + op->name.len);

    assert(op->name.len > 0);
    if (!text)
        return (struct hf_str){0};
    memcpy(text, prefix.ptr, prefix.len);
    memcpy(text + prefix.len, op->name.ptr, op->name.len);
    return hf_str_of(text, prefix.len + op->name.len);
}

static enum hf_status send_request(struct hf_scope *s, const struct client *c,
                                   struct service_try *try, const struct op *op,
                                   const struct endpoint *endpoint, struct hf_bytes body)
{
    const struct http_field fields[] = {
        {HF_STR("Content-Type"), HF_STR("application/x-amz-json-1.0")},
        {HF_STR("X-Amz-Target"), target_of(s, op)},
        {HF_STR("Accept-Encoding"), HF_STR("gzip")}, /* the last: it may be left out */
    };
    size_t fields_len = ARRAY_LEN(fields) - (c->parts.gzip ? 0 : 1);
    struct hf_str path =
        endpoint->path.len ? hf_scope_format(s, "%.*s/", HF_FMT(endpoint->path)) : HF_STR("/");

    assert(endpoint->origin.len && body.len >= 2); /* {} at least */
    if (!fields[1].value.ptr || !path.ptr)
        return hf__fail_nomem(s);
    return hf__service_send(s, try,
                            &(struct service_request){.endpoint = endpoint,
                                                      .method = "POST",
                                                      .path = path,
                                                      .fields = fields,
                                                      .fields_len = fields_len,
                                                      .body = body,
                                                      .timeout_ms = c->parts.attempt_ms});
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* Check and unpack the body. */
static enum hf_status open_body(struct hf_scope *s, const struct endpoint *endpoint,
                                const struct http_answer *answer, struct hf_str *json)
{
    struct hf_str crc = hf__http_answer_field(answer, "x-amz-crc32");
    struct hf_str coding = hf__http_answer_field(answer, "content-encoding");
    struct hf_bytes body = answer->body;
    uint64_t said = 0;

    for (size_t i = 0; i < crc.len && crc.ptr[i] >= '0' && crc.ptr[i] <= '9' && said <= UINT32_MAX;
         i++)
        said = said * 10 + (uint64_t)(crc.ptr[i] - '0');
    if (crc.len && said != libdeflate_crc32(0, body.ptr, body.len))
        return hf__service_unreadable(s, endpoint->origin, "was damaged on its way (x-amz-crc32)");
    if (coding.len) {
        enum hf_status status = hf__http_unpack(s, coding, body, UNPACKED_MAX, &body);

        if (status == HF_INVALID)
            return hf__service_unreadable(s, endpoint->origin, "cannot be unpacked");
        if (status == HF_LIMIT) /* another attempt would cost as much, and end here as well */
            hf__scope_error_edit(s)->may_have_happened = true;
        TRY(status);
    }
    *json = hf_str_of((const char *)body.ptr, body.len);
    return HF_OK;
}

static uint64_t bit_of(const struct op *op)
{
    assert(op->op >= 0 && op->op < HF_OP_COUNT);
    return UINT64_C(1) << op->op;
}

static enum hf_status fail_missing(struct hf_scope *s, const struct op *op,
                                   const struct endpoint *endpoint)
{
    return hf__fail(s, HF_UNSUPPORTED, "%.*s does not have the operation %.*s",
                    HF_FMT(endpoint->origin), HF_FMT(op->name));
}

/*
 * (3): services explain a wrong signature with the request that should have been signed, and the
 * token is a part of that. Then only the first line is shown.
 */
static void error_cut_secret(struct hf_scope *s, const struct service_try *try)
{
    struct hf_error *error = hf__scope_error_edit(s);
    struct hf_str line = error->message;
    const char *end;

    assert(hf_scope_error(s)->status != HF_OK);
    if (!hf__service_has_secret(try, line))
        return;
    end = memchr(line.ptr, '\n', line.len);
    line.len = end ? (size_t)(end - line.ptr) : line.len;
    line = hf__service_has_secret(try, line) ? (struct hf_str){0} : hf_scope_copy(s, line);
    error->message =
        line.ptr ? line
                 : HF_STR("The message of the service is not shown, as it has secrets in it");
}

/* A database on this machine that wants real keys: say that it got none. */
static void error_explain_keys(struct hf_scope *s, const struct sign_credentials *used)
{
    struct hf_error *error = hf__scope_error_edit(s);
    struct hf_str message;

    assert(hf_scope_error(s)->status != HF_OK);
    if (error->status != HF_DENIED || !hf__credentials_made_up(used))
        return;
    message = hf_scope_format(s,
                              "%.*s; no credentials were found, and made-up ones were sent: set "
                              "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile",
                              HF_FMT(error->message));
    if (message.ptr)
        error->message = message;
}

static enum hf_status fail_refused(struct hf_scope *s, struct client *c, const struct op *op,
                                   const struct endpoint *endpoint, const struct service_try *try,
                                   struct hf_str json)
{
    enum hf_status status = hf__wire_read_error(s, try->answer.status, json);
    struct hf_error *error;

    assert(try->answer.status != 200);
    error_cut_secret(s, try);
    error_explain_keys(s, &try->used);

    if (status == HF_UNKNOWN_OPERATION) {
        atomic_fetch_or_explicit(&c->missing, bit_of(op), memory_order_relaxed);
        return fail_missing(s, op, endpoint);
    }
    error = hf__scope_error_edit(s);
    error->retry_after_ms = hf__service_retry_after_ms(&try->answer);
    return status;
}

/* ---- an attempt ----------------------------------------------------------------------------- */

struct attempt {
    struct client *c;
    const struct op *op;
    struct hf_bytes body;
    const void *request;
    void *response;
};

/* TagResource and its kin answer with no body at all. */
static bool has_no_answer(const struct op *op)
{
    return op->response->len == 0;
}

static enum hf_status take_answer(struct hf_scope *s, const struct attempt *attempt,
                                  const struct endpoint *endpoint, struct service_try *try)
{
    enum hf_status status;
    struct hf_str json;

    assert(attempt->op->response && attempt->response);
    TRY(open_body(s, endpoint, &try->answer, &json));
    if (try->answer.status != 200) {
        hf__service_refused(try, hf__wire_error_type(s, json));
        return fail_refused(s, attempt->c, attempt->op, endpoint, try, json);
    }
    if (has_no_answer(attempt->op) && (json.len == 0 || hf__wire_json_valid(json)))
        return HF_OK; /* no body, or, as some services have it, "" */
    status = hf__wire_read_answer(s, attempt->op->response, json, attempt->response);
    if (status == HF_SERIALIZATION)
        return hf__service_unreadable(s, endpoint->origin,
                                      "is not a valid response of the operation");
    if (status == HF_OK &&
        hf__db_call_stands_still(attempt->op->op, attempt->request, attempt->response))
        return hf__service_unreadable(
            s, endpoint->origin,
            "continues at the start of its own page, so the list would never end");
    return status;
}

static enum hf_status try_once(struct hf_scope *s, struct service_try *try, void *user)
{
    const struct attempt *attempt = user;
    struct client *c = attempt->c;
    struct endpoint endpoint;
    enum hf_status status;

    TRY(endpoint_for(s, c, attempt->op->service, try->account, &endpoint));
    if (atomic_load_explicit(&c->missing, memory_order_relaxed) & bit_of(attempt->op))
        return fail_missing(s, attempt->op, &endpoint);
    TRY(send_request(s, c, try, attempt->op, &endpoint, attempt->body));
    status = take_answer(s, attempt, &endpoint, try);
    if (status == HF_NOMEM) /* for the answer; what it is about may be done */
        hf__scope_error_edit(s)->may_have_happened = true;
    return status;
}

static enum hf_status client_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct client *c = client_of(db);
    struct attempt attempt = {.c = c, .op = hf__op(op), .request = request, .response = response};
    enum hf_status status;

    TRY(write_body(s, attempt.op, request, &attempt.body));
    assert(attempt.body.len >= 2 && attempt.body.ptr[0] == '{');
    status = hf__service_call(s, &c->service, try_once, &attempt);
    if (status != HF_OK) {
        memset(response, 0, attempt.op->response->size);
        if (attempt.op->access == OP_READ)
            hf__scope_error_edit(s)->may_have_happened = false;
    }
    return status;
}

/* ---- features ------------------------------------------------------------------------------- */

/* An operation of the feature that a request without any member can neither do nor change
 * anything with: it is refused, unless it is a list. */
static enum hf_op probe_of(enum hf_feature feature)
{
    switch (feature) {
    case HF_FEATURE_TRANSACTIONS:
        return HF_OP_TRANSACT_WRITE_ITEMS;
    case HF_FEATURE_PARTIQL:
        return HF_OP_EXECUTE_STATEMENT;
    case HF_FEATURE_STREAMS:
        return HF_OP_LIST_STREAMS;
    case HF_FEATURE_TIME_TO_LIVE:
        return HF_OP_UPDATE_TIME_TO_LIVE;
    case HF_FEATURE_BACKUPS:
        return HF_OP_LIST_BACKUPS;
    }
    return HF_OP_COUNT;
}

static enum hf_status client_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                      bool *supported)
{
    struct client *c = client_of(db);
    const struct op *op = hf__op(probe_of(feature));
    int known = atomic_load_explicit(&c->features[feature], memory_order_relaxed);
    enum hf_status status;
    void *request, *response;

    assert(feature >= HF_FEATURE_TRANSACTIONS && feature < (enum hf_feature)FEATURES);
    *supported = known == FEATURE_THERE;
    if (known != FEATURE_UNKNOWN)
        return HF_OK;
    request = hf__scope_array(s, 1, op->request->size);
    response = hf__scope_array(s, 1, op->response->size);
    if (!request || !response)
        return hf__fail_nomem(s);
    status = client_call(s, db, op->op, request, response);
    if (status != HF_OK && status != HF_INVALID && status != HF_UNSUPPORTED &&
        status != HF_SERIALIZATION) {
        hf__scope_error_edit(s)->may_have_happened = false; /* there was nothing to be done */
        return status;                                      /* no answer to the question */
    }
    hf__scope_error_clear(s);
    *supported = status != HF_UNSUPPORTED;
    atomic_store_explicit(&c->features[feature], *supported ? FEATURE_THERE : FEATURE_MISSING,
                          memory_order_relaxed);
    return HF_OK;
}

/* ---- open and close ------------------------------------------------------------------------- */

void hf__client_parts_free(struct client_parts *parts)
{
    hf__credentials_close(parts->credentials);
    hf__transport_close(parts->transport);
    hf__config_free(parts->config);
    hf_scope_free(parts->memory);
}

static void client_close(struct hf_db *db)
{
    struct client *c = client_of(db);
    struct hf_env env = c->parts.env;

    assert(c->db.calls && c->db.calls->close == client_close);
    hf__service_free(&c->service);
    pthread_mutex_destroy(&c->lock);
    hf__client_parts_free(&c->parts);
    hf__env_free(&env, c, sizeof(*c));
}

static const struct db_calls client_calls = {.call = client_call,
                                             .close = client_close,
                                             .supports = client_supports};

enum hf_status hf__client_open(struct hf_scope *s, const struct client_parts *parts,
                               struct hf_db **db)
{
    struct client *c = hf__env_alloc(&parts->env, sizeof(*c));
    enum hf_status status;

    assert(parts->memory && parts->transport && parts->credentials && parts->attempt_ms);
    *db = NULL;
    if (!c)
        return hf__fail_nomem(s);
    memset(c, 0, sizeof(*c));
    c->db.calls = &client_calls;
    c->parts = *parts;
    atomic_init(&c->missing, 0);
    for (size_t i = 0; i < FEATURES; i++)
        atomic_init(&c->features[i], FEATURE_UNKNOWN);
    status =
        learn_endpoints(s, c, (struct hf_str){0}); /* so that invalid settings are reported now */
    if (status != HF_OK) {
        hf__env_free(&parts->env, c, sizeof(*c));
        return status;
    }
    pthread_mutex_init(&c->lock, NULL);
    hf__service_init(&c->service, &c->parts.env, "the service");
    c->service.transport = c->parts.transport;
    c->service.credentials = c->parts.credentials;
    c->service.agent = c->parts.agent;
    *db = &c->db;
    return HF_OK;
}
