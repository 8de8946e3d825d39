/*
 * server/console/console_api.c: what the page asks for, in JSON.
 *
 * Errors are {"error": {"code", "message", "retryable", "may_have_happened"}}, as those of calls.
 */
#include "server/console/console.h"

#include <holdfast/engine.h>

#include "base/json.h"
#include "server/console/figures.h"
#include "server/console/watcher.h"
#include "server/metrics.h"
#include "server/private.h"
#include "wire/wire.h"

#define CALL "call"

enum {
    CALL_LEVELS = 128, /* of a call's arguments */
    CALL_MS = 60 * 1000
};

bool hf__console_is_call(struct hf_str path)
{
    return hf_str_equal(path, HF_STR("/console/api/" CALL));
}

/* ---- answers -------------------------------------------------------------------------------- */

void hf__console_error(struct answer *answer, int http_status, enum hf_status status,
                       struct hf_str message)
{
    struct hf__buf *out = hf__answer_begin(answer);

    hf__buf_format(out, "{\"error\":{\"code\":\"%s\",\"message\":", hf_status_name(status));
    hf__wire_write_str(out, message);
    hf__buf_format(out, ",\"retryable\":%s,\"may_have_happened\":false}}",
                   http_status == 503 ? "true" : "false");
    hf__answer_end(answer, http_status);
}

/* ---- who may ask ---------------------------------------------------------------------------- */

/* (1) of console.h. Only browsers send these fields, and no page can change them. */
static bool is_own_page(struct answer *answer)
{
    const struct http_head *head = answer->head;
    struct hf_str origin = hf__http_field(head, "origin");
    struct hf_str site = hf__http_field(head, "sec-fetch-site");

    if (origin.ptr && !hf__access_own(answer->context->server, origin, head->host))
        return false;
    return !site.ptr || hf_str_equal(site, HF_STR("same-origin")) ||
           hf_str_equal(site, HF_STR("none"));
}

/* Signed, where keys are. Not admitted: *refusal says why. */
static bool is_admitted(struct answer *answer, struct hf_bytes body, struct auth_refusal *refusal)
{
    struct context *context = answer->context;

    return context->server->options.keys_len == 0 ||
           hf__auth_check(context->scope, context->auth, answer->head, body,
                          hf__env_wall_us(&context->server->env) / 1000000, refusal);
}

/* ---- info ----------------------------------------------------------------------------------- */

static void write_methods(struct hf__buf *out, const struct server *server)
{
    const char *const *names = server->options.methods;

    hf__buf_put_str(out, HF_STR("\"methods\":["));
    for (size_t i = 0; names && names[i]; i++)
        hf__buf_format(out, "%s\"%s\"", i ? "," : "", names[i]);
    hf__buf_put_byte(out, ']');
}

static void answer_info(struct answer *answer, bool admitted)
{
    struct hf__buf *out = hf__answer_begin(answer);
    const struct server *server = answer->context->server;
    const struct server_options *o = &server->options;

    hf__buf_format(out, "{\"version\":\"%s\",\"access\":\"%s\"", hf_version(),
                   o->keys_len ? "keys" : "open");
    if (admitted) {
        hf__buf_format(out, ",\"read_only\":%s,\"admin\":%s,\"database\":{\"kind\":\"%s\",\"url\":",
                       o->read_only ? "true" : "false", o->admin ? "true" : "false",
                       o->remote ? "remote" : "engine");
        hf__wire_write_str(out, o->database);
        hf__buf_put_str(out, HF_STR("},\"region\":"));
        hf__wire_write_str(out, o->region_shown);
        hf__buf_put_byte(out, ',');
        write_methods(out, server);
    }
    hf__buf_put_byte(out, '}');
    hf__answer_end(answer, 200);
}

/* ---- calls ---------------------------------------------------------------------------------- */

struct api_call {
    struct hf_str method;
    struct hf_str arguments; /* JSON */
};

static struct hf_str unescape_text(struct hf_scope *s, const struct json_string *text)
{
    char *plain = text->escaped ? hf_scope_alloc(s, text->raw.len) : NULL;

    return plain ? hf_str_of(plain, hf__json_unescape(text->raw, plain)) : text->raw;
}

/* {"method": "...", "arguments": {...}}. False: it is something else. */
static bool read_call(struct hf_scope *s, struct hf_bytes body, struct api_call *call)
{
    struct json_cursor json = {.at = (const char *)body.ptr,
                               .end = (const char *)body.ptr + body.len};
    struct json_string text;

    *call = (struct api_call){.arguments = HF_STR("{}")};
    if (hf__json_kind(&json) != JSON_OBJECT)
        return false;
    for (bool more = hf__json_enter(&json, '}'); more; more = hf__json_more(&json, '}')) {
        const char *from;

        if (!hf__json_name(&json, &text))
            return false;
        if (hf_str_equal(text.raw, HF_STR("method"))) {
            if (hf__json_kind(&json) != JSON_STRING || !hf__json_string(&json, &text))
                return false;
            call->method = unescape_text(s, &text);
        } else if (hf_str_equal(text.raw, HF_STR("arguments"))) {
            if (hf__json_kind(&json) != JSON_OBJECT)
                return false;
            from = json.at;
            if (!hf__json_skip(&json, CALL_LEVELS))
                return false;
            call->arguments = hf_str_of(from, (size_t)(json.at - from));
        } else {
            return false;
        }
    }
    return hf__json_sound(&json) && hf__json_ended(&json) && call->method.ptr;
}

static int call_status(enum hf_status status)
{
    switch (status) {
    case HF_OK:
        return 200;
    case HF_DENIED:
        return 403;
    case HF_UNKNOWN_OPERATION:
        return 404;
    case HF_TIMEOUT:
    case HF_CANCELED:
    case HF_STOPPED:
        return 503;
    default:
        return hf__call_status(status);
    }
}

/* The time of a call is limited here, as a worker is busy meanwhile; its own `deadline_ms` may be
 * shorter. */
static void answer_call(struct answer *answer, struct hf_bytes body)
{
    const struct server_options *o = &answer->context->server->options;
    struct hf_scope *s = answer->context->scope;
    struct hf_str result = {0};
    struct api_call call;
    enum hf_status status;
    struct hf__buf *out;

    if (!answer->context->worker) {
        answer->conn->for_worker = true;
        return;
    }
    if (!read_call(s, body, &call)) {
        hf__console_error(answer, 400, HF_INVALID,
                          HF_STR("expected {\"method\": \"...\", \"arguments\": {...}}"));
        return;
    }
    if (!o->call) {
        hf__console_error(answer, 404, HF_UNKNOWN_OPERATION,
                          HF_STR("this server has no calls of patterns"));
        return;
    }
    hf_scope_timeout_ms(s, CALL_MS);
    status = o->call(s, o->call_user, call.method, call.arguments, &result);
    hf_scope_timeout_ms(s, 0);
    if (!result.ptr)
        status = HF_NOMEM;
    out = hf__answer_begin(answer);
    hf__buf_put_str(out, status == HF_OK ? HF_STR("{\"result\":") : HF_STR("{\"error\":"));
    hf__buf_put_str(out, result.ptr ? result
                                    : HF_STR("{\"code\":\"HF_NOMEM\",\"message\":\"out of memory\","
                                             "\"retryable\":true,\"may_have_happened\":true}"));
    hf__buf_put_byte(out, '}');
    hf__answer_end(answer, call_status(status));
}

/* ---- requests ------------------------------------------------------------------------------- */

struct api_path {
    const char *path;
    const char *method;
    void (*run)(struct answer *answer, struct hf_bytes body);
};

static const struct api_path *find_path(struct hf_str path)
{
    static const struct api_path paths[] = {
        {"info", "GET", NULL},
        {CALL, "POST", answer_call},
        {"explain", "POST", hf__console_explain},
        {"stream", "GET", hf__watcher_handle},
        {"history", "GET", hf__figures_history},
    };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (hf_str_equal(path, hf_str_from(paths[i].path)))
            return &paths[i];
    }
    return NULL;
}

/* A form cannot send this type, and a page of another origin may send it only after a preflight. */
static bool is_json(const struct http_head *head)
{
    struct hf_str type = hf__http_field(head, "content-type"), rest;
    struct hf_str json = HF_STR("application/json");

    if (type.len < json.len || !hf__http_same(type.ptr, json.ptr, json.len))
        return false;
    rest = hf_str_of(type.ptr + json.len, type.len - json.len);
    return rest.len == 0 || rest.ptr[0] == ';' || rest.ptr[0] == ' ';
}

void hf__console_api(struct answer *answer, struct hf_str path, struct hf_bytes body)
{
    const struct api_path *found = find_path(path);
    struct auth_refusal refusal;
    bool post, admitted;

    answer->type = hf__type_json;
    answer->fields = hf_scope_format(answer->context->scope, "%.*sCache-Control: no-store\r\n",
                                     HF_FMT(answer->fields));
    post = hf_str_equal(answer->head->method, HF_STR("POST"));
    if (!is_own_page(answer)) {
        hf__console_error(answer, 403, HF_DENIED,
                          HF_STR("pages of other origins may not use the console"));
        return;
    }
    if (!found) {
        hf__console_error(answer, 404, HF_NOT_FOUND, HF_STR("the console has no such path"));
        return;
    }
    if (!hf_str_equal(answer->head->method, hf_str_from(found->method))) {
        hf__console_error(answer, 405, HF_INVALID,
                          post ? HF_STR("this path supports GET")
                               : HF_STR("this path supports POST"));
        return;
    }
    if (post && !is_json(answer->head)) {
        hf__console_error(answer, 415, HF_INVALID,
                          HF_STR("expected Content-Type: application/json"));
        return;
    }
    admitted = is_admitted(answer, body, &refusal);
    if (!found->run && (admitted || !hf__http_field(answer->head, "authorization").ptr)) {
        answer_info(answer, admitted);
    } else if (!admitted) {
        hf__metrics_refused(answer->context->metrics);
        hf__console_error(answer, 403, HF_DENIED, refusal.message);
    } else {
        found->run(answer, body);
    }
}
