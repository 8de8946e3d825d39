/*
 * server/route.c: which part of the server a request is for.
 *
 *     POST /            an operation
 *     OPTIONS /         a browser asks what a page may send (CORS)
 *     GET /             DynamoDB's own sign of health
 *     GET /livez        the process runs
 *     GET /readyz       it takes requests, and writes are possible, or it is read-only
 *     GET /metrics      figures for Prometheus
 *     /console/         a page about the database: console.c
 *     /_holdfast/check  verify everything: checker.c
 *     /_holdfast/top    hot tables and partitions: hot.c
 *     /_holdfast/       for users' tests, when it was asked for: admin.c
 *
 * Everything else is what DynamoDB says to a path it does not know.
 */
#include "server/private.h"

#include <holdfast/engine.h>

#include "server/admin/admin.h"
#include "server/console/console.h"
#include "server/metrics.h"

enum { HOST_SHOWN = 255 }; /* bytes of a Host that a refusal names */

static bool is_method(const struct http_head *head, const char *method)
{
    return hf_str_equal(head->method, hf_str_from(method));
}

/* A sentence for people, as a line. */
static void answer_line(struct answer *answer, int status, struct hf_str text)
{
    struct hf__buf *out;

    answer->type = hf__type_text;
    answer->no_crc = true;
    out = hf__answer_begin(answer);
    hf__buf_put_str(out, text);
    hf__buf_put_byte(out, '\n');
    hf__answer_end(answer, status);
}

static void answer_not_found(struct answer *answer)
{
    hf__answer_text(answer, 404, HF_STR("<UnknownOperationException/>\n"));
}

/* A path of admin.c on a server without --admin; see hf__admin_path(). */
static bool wants_admin(struct hf_str path)
{
    struct hf_str rest;

    return str_after(path, HF_STR("/_holdfast"), &rest) && (!rest.len || rest.ptr[0] == '/');
}

static void answer_healthy(struct answer *answer)
{
    struct hf__buf *out;

    answer->type = hf__type_text;
    out = hf__answer_begin(answer);
    hf__buf_put_str(out, HF_STR("healthy: "));
    hf__buf_put_str(out, answer->head->host);
    hf__buf_put_str(out, HF_STR(" "));
    hf__answer_end(answer, 200);
}

static bool is_backup_late(struct server *server)
{
    struct hf_backup_health health;

    hf_backup_health(server->engine, &health);
    return health.state == HF_BACKUP_BEHIND || health.state == HF_BACKUP_FENCED ||
           health.state == HF_BACKUP_REFUSED;
}

/* Ready means that writes work: a stopped or full store still reads, but should get no traffic. */
static void answer_ready(struct answer *answer)
{
    struct server *server = answer->context->server;
    struct hf_engine_stats stats;

    hf_engine_stats(server->engine, &stats);
    answer->type = hf__type_text;
    if (atomic_load(&server->stopping))
        hf__answer_text(answer, 503, HF_STR("stopping\n"));
    else if (stats.stopped)
        hf__answer_text(answer, 503, HF_STR("a sync failed: writes are refused until a restart\n"));
    else if (stats.no_space)
        hf__answer_text(answer, 503, HF_STR("the disk is full: writes are refused\n"));
    else if (stats.read_only)
        hf__answer_text(answer, 200, HF_STR("ready, read-only\n"));
    else if (is_backup_late(server)) /* which is no reason to send requests elsewhere */
        hf__answer_text(answer, 200,
                        HF_STR("ready, but the continuous backup is not up to date\n"));
    else
        hf__answer_text(answer, 200, HF_STR("ready\n"));
}

static void answer_get(struct answer *answer)
{
    struct hf_str path = answer->head->path;

    if (hf_str_equal(path, HF_STR("/"))) {
        answer_healthy(answer);
        return;
    }
    answer->no_crc = true;
    if (hf_str_equal(path, HF_STR("/livez"))) {
        answer->type = hf__type_text;
        hf__answer_text(answer, 200, HF_STR("alive\n"));
    } else if (hf_str_equal(path, HF_STR("/readyz"))) {
        answer_ready(answer);
    } else if (hf_str_equal(path, HF_STR("/metrics"))) {
        answer->type = HF_STR("text/plain; version=0.0.4; charset=utf-8");
        hf__metrics_write(hf__answer_begin(answer), answer->context->server);
        hf__answer_end(answer, 200);
    } else {
        answer->no_crc = false;
        answer_not_found(answer);
    }
}

/* A browser's preflight request: allow what it asks for. */
static void answer_preflight(struct answer *answer, struct hf_str origin)
{
    struct hf_scope *s = answer->context->scope;
    struct hf_str headers = hf__http_field(answer->head, "access-control-request-headers");
    struct hf_str method = hf__http_field(answer->head, "access-control-request-method");

    if (!origin.ptr) {
        answer_not_found(answer);
        return;
    }
    answer->fields =
        hf_scope_format(s, "%.*s%s%.*s%s%s%.*s%sAccess-Control-Max-Age: 172800\r\n",
                        HF_FMT(answer->fields), headers.len ? "Access-Control-Allow-Headers: " : "",
                        HF_FMT(headers), headers.len ? "\r\n" : "",
                        method.len ? "Access-Control-Allow-Methods: " : "", HF_FMT(method),
                        method.len ? "\r\n" : "");
    hf__answer_text(answer, 200, (struct hf_str){0});
}

/* Plain text for people; JSON for SDKs, which would only report that the text is not JSON. */
static bool deny_request(struct answer *answer, struct hf_str message)
{
    if (hf__http_field(answer->head, "x-amz-target").ptr)
        hf__call_refuse(answer, 403, message);
    else
        answer_line(answer, 403, message);
    return false;
}

static struct hf_str host_refusal(struct hf_scope *s, struct hf_str host)
{
    struct hf_str shown = hf_str_of(host.ptr, host.len < HOST_SHOWN ? host.len : HOST_SHOWN);
    struct hf_str text =
        hf_scope_format(s, "Host \"%.*s\" is not allowed; restart the server with --allow-host",
                        HF_FMT(shown));

    return text.ptr ? text : HF_STR("This Host is not allowed");
}

/* Requests of pages of other origins, and requests for names that were made to point here, are
 * refused before anything else is looked at. False: the refusal is the answer. */
static bool admit_request(struct answer *answer, struct hf_str origin)
{
    struct server *server = answer->context->server;
    struct hf_str host = answer->head->host;

    if (!hf__access_host(server, host))
        return deny_request(answer, host_refusal(answer->context->scope, host));
    if (origin.ptr && !hf__access_origin(server, origin, host))
        return deny_request(answer,
                            HF_STR("This Origin is not allowed; restart the server with --cors to "
                                   "allow it"));
    if (origin.ptr)
        answer->fields = hf__access_fields(answer->context->scope, server, origin);
    return true;
}

void hf__route_request(struct context *context, struct conn *conn, const struct http_reader *reader)
{
    const struct http_head *head = &reader->head;
    struct answer answer = {.conn = conn, .context = context, .head = head};
    struct hf_str origin;

    assert(!conn->parts && !conn->for_worker && conn->asked);
    hf_scope_reset(context->scope);
    if (context->server->options.access_log)
        answer.begun_ns = uv_hrtime();
    origin = hf__http_field(head, "origin");
    if (!admit_request(&answer, origin))
        return;
    if (is_method(head, "POST") && hf_str_equal(head->path, HF_STR("/")))
        hf__call_handle(&answer, reader->body);
    else if (hf__console_path(head->path))
        hf__console_handle(&answer, reader->body);
    else if (hf__admin_path(context->server, head->path) && !context->worker)
        conn->for_worker = true;
    else if (hf__admin_path(context->server, head->path))
        hf__admin_handle(&answer, reader->body);
    else if (wants_admin(head->path))
        answer_line(&answer, 404,
                    HF_STR("/_holdfast/ is disabled; start the server with --admin to enable it"));
    else if (is_method(head, "GET") || is_method(head, "HEAD"))
        answer_get(&answer);
    else if (is_method(head, "OPTIONS"))
        answer_preflight(&answer, origin);
    else
        answer_not_found(&answer);
}

void hf__route_bad(struct conn *conn, const struct http_reader *reader)
{
    struct context *context = &conn->loop->context;
    struct answer answer = {.conn = conn, .context = context};
    struct hf_str text = hf_str_from(reader->error.text);
    int status = reader->error.status;

    assert(status >= 400 && reader->error.text && conn->state != CONN_WORKING);
    hf_scope_reset(context->scope);
    conn->close_after = true;
    if (status == 413 || status == 503) /* whoever sends that much is a client of DynamoDB's */
        hf__call_refuse(&answer, status, text);
    else
        answer_line(&answer, status, text);
    hf__metrics_bad(context->metrics);
}
