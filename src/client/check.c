/*
 * client/check.c: having a holdfast server verify its database: hf_server_check().
 *
 *     POST /_holdfast/check      starts a check, or gives the state of the one that runs
 *     GET  /_holdfast/check      its state, again and again until it has ended
 *
 * The server numbers its checks. A higher number than ours is a check that somebody started after
 * ours had ended, and as good; a lower one or none says that the server was restarted.
 *
 * A connection that breaks is tried again, as starting a check twice is the same as once.
 */
#include "client/client.h"

#include "wire/checks.h"
#include "wire/wire.h"

#include <assert.h>

enum {
    POLL_MS = 500,
    POLL_LEAST_MS = 10, /* also the first wait: small databases are checked at once */
    ATTEMPTS = 4,       /* in a row that may fail */
    ANSWER_MAX = 64 * 1024,
    SHOWN_MAX = 200 /* bytes of an answer that is not ours, in a message */
};

struct asking {
    struct hf_scope *s; /* for one request at a time */
    struct hf_scope *caller;
    struct client_parts parts;
    struct signer *signer;
    struct http_head head;
};

_Static_assert(POLL_LEAST_MS > 0 && POLL_LEAST_MS <= POLL_MS, "the first wait is the shortest");

/* ---- one request ---------------------------------------------------------------------------- */

static void header_add(struct http_head *head, const char *name, struct hf_str value)
{
    assert(name && value.ptr);
    assert(head->fields_len < HTTP_FIELDS_MAX);
    head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
}

static enum hf_status request_build(struct asking *a, const char *method,
                                    const struct sign_credentials *credentials)
{
    const struct endpoint *endpoint = &a->parts.fixed;
    struct http_head *head = &a->head;
    const struct sign_how how = {.credentials = credentials,
                                 .region = endpoint->signing_region,
                                 .service = endpoint->signing_name,
                                 .now_s = hf__env_wall_us(&a->parts.env) / 1000000};

    head->method = hf_str_from(method);
    head->path = head->target =
        hf_scope_format(a->s, "%.*s%s", HF_FMT(endpoint->path), CHECKS_PATH);
    if (!head->path.ptr)
        return hf__fail_nomem(a->s);
    head->fields_len = 0;
    header_add(head, "Host", endpoint->host);
    header_add(head, "User-Agent", a->parts.agent);
    return hf__sign_request(a->s, a->signer, head, &how);
}

struct wire_refusal {
    struct hf_str error;
};

static struct hf_str refusal_of(struct hf_scope *s, struct hf_str json)
{
    static const struct field list[] = {
        {.name = "error", .kind = FIELD_STR, .at = (uint16_t)offsetof(struct wire_refusal, error)}};
    static const struct fields table = {"Refusal", list, ARRAY_LEN(list),
                                        sizeof(struct wire_refusal)};
    struct wire_refusal refusal = {{NULL, 0}};

    if (hf__wire_read_answer(s, &table, json, &refusal) != HF_OK)
        return (struct hf_str){0};
    return refusal.error;
}

/* What is no state: ours says why in JSON, or in a line when the Host is not known to it. */
static enum hf_status fail_refused(struct asking *a, int status, struct hf_str body)
{
    struct hf_str origin = a->parts.fixed.origin;
    struct hf_str why = refusal_of(a->s, body);

    if (status == 403 && !why.ptr)
        why = hf_str_of(body.ptr, body.len < SHOWN_MAX ? body.len : SHOWN_MAX);
    if ((status == 400 && why.ptr) || status == 403)
        return hf__fail(a->s, HF_DENIED, "%.*s refused the check: %.*s", HF_FMT(origin),
                        HF_FMT(why));
    if (status >= 500) {
        hf__fail(a->s, HF_IO, "%.*s answered with HTTP status %d%s%.*s", HF_FMT(origin), status,
                 why.ptr ? ": " : "", HF_FMT(why));
        hf__scope_error_edit(a->s)->may_retry = true;
        return HF_IO;
    }
    return hf__fail(a->s, HF_UNSUPPORTED, "%.*s is not a holdfast server, or is too old for checks",
                    HF_FMT(origin));
}

static enum hf_status ask_once(struct asking *a, const char *method, struct wire_check *state)
{
    struct sign_credentials credentials;
    struct http_answer answer;
    struct hf_str account, body;

    memset(state, 0, sizeof(*state));
    TRY(hf__credentials_get(a->s, a->parts.credentials, &credentials, &account));
    TRY(request_build(a, method, &credentials));
    TRY(hf__transport_call(a->s, a->parts.transport,
                           &(struct transport_call){.origin = a->parts.fixed.origin,
                                                    .head = &a->head,
                                                    .timeout_ms = a->parts.attempt_ms,
                                                    .answer_max = ANSWER_MAX},
                           &answer));
    body = hf_str_of((const char *)answer.body.ptr, answer.body.len);
    if (answer.status != 200 && answer.status != 202)
        return fail_refused(a, answer.status, body);
    if (hf__wire_read_answer(a->s, &hf__wire_check, body, state) != HF_OK || !state->state)
        return fail_refused(a, 404, body);
    return HF_OK;
}

/* The error of a request becomes the caller's. */
static enum hf_status hand_up(struct asking *a, enum hf_status status)
{
    return hf_scope_fail_from(a->caller, status, a->s);
}

/* The state lives in a->s until the next one is asked for. */
static enum hf_status state_request(struct asking *a, const char *method, struct wire_check *state)
{
    enum hf_status status;

    for (int attempt = 1;; attempt++) {
        hf_scope_reset(a->s);
        hf__scope_follow(a->s, a->caller);
        status = ask_once(a, method, state);
        if (status != HF_IO || !hf_scope_error(a->s)->may_retry || attempt == ATTEMPTS)
            break;
        TRY(hf_scope_sleep_ms(a->caller, (uint32_t)POLL_MS * (uint32_t)attempt / 2));
    }
    if (status == HF_OK)
        return HF_OK;
    hf__scope_error_edit(a->s)->may_have_happened = false; /* a check changes nothing */
    return hand_up(a, status);
}

/* ---- waiting for the end -------------------------------------------------------------------- */

static enum hf_status progress_report(struct hf_scope *s, const struct hf_check_options *options,
                                      const struct wire_check *state)
{
    const struct hf_check_progress progress = {.keys = (uint64_t)state->keys,
                                               .bytes = (uint64_t)state->bytes,
                                               .about_bytes = (uint64_t)state->about_bytes};
    enum hf_status status;

    if (!options->on_progress)
        return HF_OK;
    status = options->on_progress(&progress, options->user);
    return status == HF_OK ? HF_OK : hf__fail(s, status, "on_progress ended the wait");
}

static enum hf_status wait_for_end(struct asking *a, const struct hf_check_options *options,
                                   struct wire_check *state)
{
    uint32_t most = options->poll_ms ? options->poll_ms : POLL_MS;
    uint32_t wait = POLL_LEAST_MS;
    int64_t number;

    TRY(state_request(a, "POST", state));
    number = state->number;
    TRY(progress_report(a->caller, options, state));
    while (state->state == CHECKS_RUNNING) {
        TRY(hf_scope_sleep_ms(a->caller, wait < most ? wait : most));
        if (wait < most)
            wait *= 2;
        TRY(state_request(a, "GET", state));
        if (state->number < number) {
            hf__fail(a->caller, HF_IO, "%.*s was restarted during the check",
                     HF_FMT(a->parts.fixed.origin));
            hf__scope_error_edit(a->caller)->may_retry = true;
            return HF_IO;
        }
        TRY(progress_report(a->caller, options, state));
    }
    return HF_OK;
}

static enum hf_status check_outcome(struct asking *a, const struct wire_check *state,
                                    struct hf_check_report *report)
{
    struct hf_str problem = hf_scope_copy(a->caller, state->problem);

    assert(state->state >= CHECKS_SOUND && state->state <= CHECKS_FAILED);
    if (report)
        *report = (struct hf_check_report){.tables = (uint64_t)state->tables,
                                           .items = (uint64_t)state->items,
                                           .index_entries = (uint64_t)state->index_entries,
                                           .stream_records = (uint64_t)state->stream_records,
                                           .expiry_entries = (uint64_t)state->expiry_entries,
                                           .tokens = (uint64_t)state->tokens,
                                           .problems = (uint64_t)state->problems,
                                           .first_problem = problem,
                                           .backups = (uint64_t)state->backups,
                                           .backup_items = (uint64_t)state->backup_items};
    if (state->state == CHECKS_SOUND)
        return HF_OK;
    if (state->state == CHECKS_DAMAGED)
        return hf__fail(a->caller, HF_CORRUPT, "%.*s", HF_FMT(problem));
    return hf__fail(a->caller, HF_IO, "the check of %.*s failed: %.*s",
                    HF_FMT(a->parts.fixed.origin), HF_FMT(problem));
}

static enum hf_status check_by(struct asking *a, const struct hf_check_options *options,
                               struct hf_check_report *report)
{
    struct wire_check state;

    assert(!a->s && !a->signer);
    if (!a->parts.fixed.origin.ptr)
        return hf__fail(a->caller, HF_UNSUPPORTED,
                        "Amazon DynamoDB cannot be checked: name a holdfast server, "
                        "http://HOST:PORT");
    a->s = hf_scope_new(&a->parts.env);
    if (!a->s)
        return hf__fail_nomem(a->caller);
    TRY(hf__signer_new(a->caller, &a->parts.env, &a->signer));
    TRY(wait_for_end(a, options, &state));
    return check_outcome(a, &state, report);
}

enum hf_status hf_server_check(struct hf_scope *s, struct hf_str url,
                               const struct hf_client_options *options,
                               const struct hf_check_options *check, struct hf_check_report *report)
{
    struct hf_client_options o = hf__client_options(options);
    struct hf_check_options c = {.size = sizeof(c)};
    struct asking a = {.caller = s};
    enum hf_status status;

    if (check)
        memcpy(&c, check, check->size && check->size < sizeof(c) ? check->size : sizeof(c));
    if (report)
        memset(report, 0, sizeof(*report));
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    if (c.poll_ms && c.poll_ms < POLL_LEAST_MS)
        return hf__fail(s, HF_INVALID, "poll_ms is %u, and at least %d is required", c.poll_ms,
                        POLL_LEAST_MS);
    TRY(hf__client_parts_of(s, url, &o, &a.parts));
    assert(a.parts.attempt_ms > 0 && a.parts.region.len);
    status = check_by(&a, &c, report);
    hf__signer_free(a.signer);
    hf_scope_free(a.s);
    hf__client_parts_free(&a.parts);
    return status;
}
