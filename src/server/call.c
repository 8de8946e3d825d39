/*
 * server/call.c: one operation, from the body of a request to the body of its answer.
 *
 * The order in which DynamoDB finds fault, before the operation itself does:
 *
 *     content type -> coding -> is it JSON -> target -> signature -> types of members
 *
 * A body that is empty is not JSON either, but is judged last: after target and signature. With a
 * target it does not even need a content type.
 *
 * "Is it JSON" would be a walk over the whole body of its own. As reading the body finds out too,
 * the walk is made only when target or signature are refused, to see whether the body goes first.
 * With keys, the signature goes before the coding: see is_packed().
 */
#include "server/private.h"

#include "base/utf8.h"
#include "ops/fields.h"
#include "server/console/hot.h"
#include "server/console/tail.h"
#include "server/metrics.h"
#include "wire/wire.h"

#define TYPE_SERVICE "com.amazon.coral.service#"

/* ---- errors --------------------------------------------------------------------------------- */

int hf__call_status(enum hf_status status)
{
    return strstr(hf__wire_type(status), "#InternalServerError") ? 500 : 400;
}

static void answer_error(struct answer *answer, const struct hf_error *error)
{
    hf__wire_write_error(hf__answer_begin(answer), error);
    hf__answer_end(answer, hf__call_status(error->status));
}

/* An error of the HTTP layer in front of the operations, which is no status of the library. */
static void answer_refusal(struct answer *answer, int status, const char *type,
                           struct hf_str message)
{
    struct hf__buf *out = hf__answer_begin(answer);

    hf__buf_put_str(out, HF_STR("{\"__type\":\""));
    hf__buf_put_str(out, hf_str_from(type));
    if (message.ptr) {
        hf__buf_put_str(out, HF_STR("\",\"message\":"));
        hf__wire_write_str(out, message);
        hf__buf_put_byte(out, '}');
    } else {
        hf__buf_put_str(out, HF_STR("\"}"));
    }
    hf__answer_end(answer, status);
}

void hf__call_refuse(struct answer *answer, int status, struct hf_str message)
{
    assert(status == 403 || status == 413 || status == 503);
    answer->type = hf__type_json_1_0;
    answer->no_crc = false;
    answer_refusal(answer, status,
                   status == 403   ? TYPE_SERVICE "AccessDeniedException"
                   : status == 413 ? TYPE_SERVICE "RequestEntityTooLargeException"
                                   : TYPE_SERVICE "ServiceUnavailableException",
                   message);
}

/* True: the body is not JSON, and the answer says so. */
static bool refuse_no_json(struct answer *answer, struct hf_bytes body)
{
    if (body.len == 0 || hf__wire_json_valid(hf_str_of((const char *)body.ptr, body.len)))
        return false;
    answer_refusal(answer, 400, TYPE_SERVICE "SerializationException", (struct hf_str){0});
    return true;
}

void hf__call_lost(struct conn *conn, const struct hf_error *error)
{
    struct answer answer = {.conn = conn,
                            .context = &conn->loop->context,
                            .type = hf__type_json_1_0};
    uint32_t answers = conn->answers;

    assert(conn->state == CONN_SYNCING);
    hf__parts_free(&conn->loop->server->env, conn->parts);
    conn->parts = NULL;
    conn->out.len = 0;
    conn->out_begin = 0; /* there may be no answer to lose: none had memory */
    conn->answers = 0;
    conn->close_after = true;
    while (answers-- > 0)
        answer_error(&answer, error);
}

/* ---- the parts of a request ----------------------------------------------------------------- */

/* The operation that X-Amz-Target names; *name is what stands behind the service's name. */
static const struct op *find_op(const struct http_head *head, struct hf_str *name)
{
    struct hf_str target = hf__http_field(head, "x-amz-target");

    *name = (struct hf_str){0};
    if (str_after(target, HF_STR("DynamoDB_20120810."), name))
        return hf__op_of_name(OP_DYNAMODB, *name);
    if (str_after(target, HF_STR("DynamoDBStreams_20120810."), name))
        return hf__op_of_name(OP_STREAMS, *name);
    return NULL;
}

/* `message`: why it is not there, of a profile. */
static void refuse_op(struct answer *answer, struct hf_str name, struct hf_str message,
                      struct hf_bytes body)
{
    if (refuse_no_json(answer, body))
        return;
    /* A field may have any bytes, JSON may not. */
    if (!message.len && name.len && hf__utf8_valid(name))
        message = hf_scope_format(answer->context->scope, "Operation %.*s is not supported",
                                  HF_FMT(name));
    answer_refusal(answer, 400, TYPE_SERVICE "UnknownOperationException", message);
}

/* What the answer's type is, by the request's; absent when DynamoDB does not know the latter. */
static struct hf_str answer_type(const struct http_head *head, struct hf_bytes body)
{
    struct hf_str type = hf__http_field(head, "content-type");
    const char *semicolon = type.len ? memchr(type.ptr, ';', type.len) : NULL;

    if (!type.ptr && body.len == 0 && hf__http_field(head, "x-amz-target").ptr)
        return hf__type_json;
    if (semicolon)
        type.len = (size_t)(semicolon - type.ptr);
    while (type.len > 0 && type.ptr[type.len - 1] == ' ')
        type.len--;
    if (hf__http_is(type, hf__type_json_1_0.ptr))
        return hf__type_json_1_0;
    if (hf__http_is(type, hf__type_json.ptr))
        return hf__type_json;
    return (struct hf_str){0};
}

/* True: this would take too long on a loop, and nothing was done. */
static bool leave_to_worker(struct answer *answer)
{
    if (answer->context->worker)
        return false;
    answer->conn->for_worker = true;
    return true;
}

/* Undo Content-Encoding. False: it failed, and is answered; or it is left to a worker. */
static bool unpack_body(struct answer *answer, struct hf_bytes *body)
{
    struct hf_str coding = hf__http_field(answer->head, "content-encoding");

    if (!coding.ptr)
        return true;
    if (leave_to_worker(answer))
        return false;
    switch (hf__http_unpack(answer->context->scope, coding, *body, HTTP_BODY_MAX, body)) {
    case HF_OK:
        return true;
    case HF_LIMIT:
        hf__call_refuse(answer, 413, hf_scope_error(answer->context->scope)->message);
        return false;
    default:
        answer_refusal(answer, 500, "com.amazonaws.dynamodb.v20120810#InternalServerError",
                       hf_scope_error(answer->context->scope)->message);
        return false;
    }
}

/* Decompressing a malicious body of 16 MiB takes seconds: clients have to authenticate before. */
static bool is_packed(const struct http_head *head)
{
    struct hf_str coding = hf__http_field(head, "content-encoding");

    return coding.len && !hf__http_is(coding, "identity");
}

/* ---- the call ------------------------------------------------------------------------------- */

/* Statements may be anything, and all of a batch's run; tables are made and dropped in time that
 * depends on what is in them. */
static bool may_take_long(enum hf_op op)
{
    switch (op) {
    case HF_OP_BATCH_EXECUTE_STATEMENT:
    case HF_OP_EXECUTE_TRANSACTION:
    case HF_OP_CREATE_TABLE:
    case HF_OP_DELETE_TABLE:
    case HF_OP_UPDATE_TABLE:
    case HF_OP_CREATE_BACKUP:
    case HF_OP_DELETE_BACKUP:
    case HF_OP_RESTORE_TABLE_FROM_BACKUP:
        return true;
    default:
        return false;
    }
}

/* The call, and who counts what it is about: before the answer, which may take over the scope. */
static enum hf_status perform_call(struct answer *answer, const struct op *op, struct hf_bytes body,
                                   struct hf__patience *patience, uint64_t now_ns, void **asked,
                                   void **response)
{
    struct context *context = answer->context;
    struct hf_scope *s = context->scope;
    void *request = hf__scope_array(s, 1, op->request->size);
    enum hf_status status;

    *asked = request;
    *response = hf__scope_array(s, 1, op->response->size);
    if (!request || !*response)
        return hf__fail_nomem(s);
    TRY(hf__wire_read(s, op->request, hf_str_of((const char *)body.ptr, body.len), request));
    hf__scope_set_pending_sync(s, &answer->conn->pending_sync);
    hf__scope_set_patience(s, patience);
    status = hf_db_call(s, context->server->db, op->op, request, *response);
    if (!patience || !patience->lost) /* otherwise a worker repeats it */
        hf__hot_call(context->hot, s,
                     context->server->options.remote ? NULL : context->server->engine, op, request,
                     status != HF_OK, now_ns);
    return status;
}

/* A client that asks where to go on (endpoint discovery) is to stay here: the engine does not know
 * by what name it is reached, and names the service that has its data elsewhere. */
static void name_endpoint(struct answer *answer, struct hf_describe_endpoints_result *result)
{
    struct hf_endpoint *endpoint = hf__scope_array(answer->context->scope, 1, sizeof(*endpoint));

    if (!endpoint || !answer->head->host.len || result->endpoints_len != 1)
        return;
    *endpoint = result->endpoints[0];
    endpoint->address = answer->head->host;
    result->endpoints = endpoint;
}

/* These two operations have an empty answer. */
static bool answers_empty(enum hf_op op)
{
    return op == HF_OP_TAG_RESOURCE || op == HF_OP_UNTAG_RESOURCE;
}

/* Large results are not made into JSON as a whole. False when that is not needed, or not possible.
 */
static bool answer_in_parts(struct answer *answer, const struct op *op, const void *response)
{
    struct context *context = answer->context;
    struct parts *parts;

    if (!context->worker || hf__scope_bytes(context->scope) < PARTS_FROM)
        return false;
    parts = hf__parts_new(&context->server->env, context->scope, op->response, response);
    if (parts)
        hf__answer_parts(answer, 200, parts);
    return parts != NULL;
}

static bool only_reads(enum hf_op op)
{
    return op == HF_OP_GET_ITEM || op == HF_OP_QUERY || op == HF_OP_SCAN ||
           op == HF_OP_BATCH_GET_ITEM || op == HF_OP_TRANSACT_GET_ITEMS || op == HF_OP_GET_RECORDS;
}

static void answer_result(struct answer *answer, const struct op *op, void *response)
{
    struct hf__buf *out;

    if (op->op == HF_OP_DESCRIBE_ENDPOINTS)
        name_endpoint(answer, response);
    if (answer_in_parts(answer, op, response))
        return;
    out = hf__answer_begin(answer);
    if (!answers_empty(op->op))
        hf__wire_write(out, op->response, response);
    if (!only_reads(op->op) || !hf__answer_too_long(answer))
        hf__answer_end(answer, 200);
}

/* How long a read may take here. All reads of an iteration share its time, or the last connection
 * would wait for as many long ones as there are connections. */
static struct hf__patience *patience_of(struct context *context, struct conn *conn, uint64_t now,
                                        struct hf__patience *patience)
{
    struct loop *loop = conn->loop;

    if (context->worker || context->server->options.admin) /* a fault would strike twice */
        return NULL;
    assert(loop->reads_began_ns <= now);
    if (loop->reads_began_ns == 0)
        loop->reads_began_ns = now;
    *patience =
        (struct hf__patience){.until_ns = loop->reads_began_ns + READS_MS * UINT64_C(1000000),
                              .bytes = READ_MAX};
    return patience;
}

void hf__call_handle(struct answer *answer, struct hf_bytes body)
{
    struct hf__patience patience = {0};
    struct context *context = answer->context;
    struct auth_refusal refusal;
    enum hf_status status;
    const struct op *op;
    struct hf_str name, reason = {0};
    uint64_t begun, took;
    void *request, *response;
    bool passes;

    assert(answer->head && context->scope && !answer->conn->parts);
    answer->type = answer_type(answer->head, body);
    if (!answer->type.ptr) {
        hf__answer_text(answer, 404, HF_STR("<UnknownOperationException/>\n"));
        return;
    }
    begun = uv_hrtime();
    passes = hf__auth_check(context->scope, context->auth, answer->head, body,
                            hf__env_wall_us(&context->server->env) / 1000000, &refusal);
    if (!passes && context->server->options.keys_len > 0 && is_packed(answer->head)) {
        hf__metrics_refused(context->metrics);
        answer_refusal(answer, refusal.status, refusal.type, refusal.message);
        return;
    }
    if (!unpack_body(answer, &body))
        return;
    op = find_op(answer->head, &name);
    if (!op ||
        !hf__profile_has(context->scope, context->server->options.profile, op->op, name, &reason)) {
        refuse_op(answer, name, reason, body);
        return;
    }
    answer->operation = op->name;
    if (!passes) {
        hf__metrics_refused(context->metrics);
        if (!refuse_no_json(answer, body))
            answer_refusal(answer, refusal.status, refusal.type, refusal.message);
        return;
    }
    if ((may_take_long(op->op) || context->server->options.remote) && leave_to_worker(answer))
        return;
    status = perform_call(answer, op, body, patience_of(context, answer->conn, begun, &patience),
                          begun, &request, &response);
    if (patience.lost && leave_to_worker(answer))
        return;
    if (status != HF_OK)
        answer_error(answer, hf_scope_error(context->scope));
    else
        answer_result(answer, op, response);
    if (!context->worker && answer->conn->for_worker)
        return;
    took = uv_hrtime() - begun;
    if (took > LONG_MS * UINT64_C(1000000) && !context->worker)
        hf__metrics_long(context->metrics);
    hf__metrics_call(context->metrics, op->op, status == HF_OK ? 200 : hf__call_status(status),
                     took);
    if (atomic_load_explicit(&context->server->tailed, memory_order_acquire) && request &&
        context->scope)
        hf__tail_call(answer, op, request, status == HF_OK ? response : NULL, status, took);
}
