/*
 * bind/call_json.c: an operation of DynamoDB from JSON to JSON, as the server has it: the same
 * reader and writer, the same bodies of errors.
 */
#include "bind/private.h"
#include "db/db.h"
#include "ops/fields.h"
#include "wire/wire.h"

static const struct op *find_op(struct hf_str name)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, name);

    return op ? op : hf__op_of_name(OP_STREAMS, name);
}

static int http_status_of(enum hf_status status)
{
    if (status == HF_OK)
        return 200;
    return strstr(hf__wire_type(status), "#InternalServerError") ? 500 : 400;
}

static enum hf_status call_operation(struct hf_scope *s, struct hf_db *db, const struct op *op,
                                     struct hf_str json, void **response)
{
    void *request = hf__scope_array(s, 1, op->request->size);

    *response = hf__scope_array(s, 1, op->response->size);
    if (!request || !*response)
        return hf__fail_nomem(s);
    TRY(hf__wire_read(s, op->request, json, request));
    return hf_db_call(s, db, op->op, request, *response);
}

/* A SELECT is the only statement that reads. */
static bool is_select(struct hf_str statement)
{
    while (statement.len && char_in(*statement.ptr, " \t\r\n"))
        statement = hf_str_of(statement.ptr + 1, statement.len - 1);
    return statement.len > 6 && str_is_any_case(hf_str_of(statement.ptr, 6), "select");
}

static bool only_reads(struct hf_scope *s, const struct op *op, struct hf_str json)
{
    struct hf_execute_statement *request;

    if (op->access == OP_READ)
        return true;
    if (op->op != HF_OP_EXECUTE_STATEMENT)
        return false;
    request = hf__scope_array(s, 1, op->request->size);
    return request && hf__wire_read(s, op->request, json, request) == HF_OK &&
           is_select(request->statement);
}

static enum hf_status operation_answer(struct hf_scope *s, struct hf_db *db,
                                       struct hf_str operation, struct hf_str json, bool read_only,
                                       struct hf__buf *buf)
{
    const struct op *op = find_op(operation);
    void *response;

    if (!op)
        return hf__fail(s, HF_UNKNOWN_OPERATION, "there is no operation \"%.*s\"",
                        operation.len > 100 ? 0 : (int)operation.len, operation.ptr);
    if (!db)
        return hf__fail(s, HF_INVALID, "the database is NULL");
    if (read_only && !only_reads(s, op, json))
        return hf__fail(s, HF_DENIED, "%.*s writes, and this is read-only", HF_FMT(operation));
    TRY(call_operation(s, db, op, json, &response));
    hf__wire_write(buf, op->response, response);
    return buf->failed ? hf__fail_nomem(s) : HF_OK;
}

/* The body of an error, which is open at its end: '}' is missing. */
static void write_failure(struct hf__buf *buf, const struct hf_error *error)
{
    hf__wire_write_error(buf, error);
    if (!buf->failed && buf->len)
        buf->len--;
}

/* The answer with that text, or of the scope's error; `more`: with what the wire does not have. */
static enum hf_status answer_make(struct hf_scope *s, enum hf_status status, struct hf__buf *buf,
                                  bool more, struct hf_json_answer *answer)
{
    answer->http_status = http_status_of(status);
    if (status != HF_OK) {
        *buf = (struct hf__buf){.scope = s};
        write_failure(buf, hf_scope_error(s));
        if (more) {
            hf__buf_format(buf, ",\"code\":\"%s\"", hf_status_name(status));
            hf__bind_write_error_rest(buf, hf_scope_error(s));
        }
        hf__buf_put_byte(buf, '}');
    }
    hf__buf_put_byte(buf, '\0');
    if (!buf->failed)
        answer->json = hf_str_of((const char *)buf->ptr, buf->len - 1);
    else if (status == HF_OK)
        status = hf__fail_nomem(s);
    return status;
}

static enum hf_status operation_call(struct hf_scope *s, struct hf_db *db, struct hf_str operation,
                                     struct hf_str json, bool read_only, bool more,
                                     struct hf_json_answer *answer)
{
    struct hf__buf buf = {.scope = s};
    enum hf_status status;

    memset(answer, 0, sizeof(*answer));
    hf__scope_error_clear(s);
    if (!json.ptr)
        json = HF_STR("");
    status = operation_answer(s, db, operation, json, read_only, &buf);
    return answer_make(s, status, &buf, more, answer);
}

enum hf_status hf_db_call_json(struct hf_scope *s, struct hf_db *db, struct hf_str operation,
                               struct hf_str json, struct hf_json_answer *answer)
{
    return operation_call(s, db, operation, json, false, false, answer);
}

enum hf_status hf__bind_operation(struct hf_scope *s, struct hf_db *db, struct hf_str operation,
                                  struct hf_str json, bool read_only, struct hf_json_answer *answer)
{
    return operation_call(s, db, operation, json, read_only, true, answer);
}

bool hf__bind_is_quick(struct hf_db *db, struct hf_str operation)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, operation);

    return op && db->calls->is_quick && db->calls->is_quick(db, op->op);
}

enum hf_status hf__bind_operation_refused(struct hf_scope *s, enum hf_status status,
                                          struct hf_json_answer *answer)
{
    struct hf__buf buf = {.scope = s};

    assert(status != HF_OK);
    memset(answer, 0, sizeof(*answer));
    return answer_make(s, status, &buf, true, answer);
}
