/*
 * test/fuzz/fuzz_reply.c: bodies of answers to the client, of every operation, and of errors.
 *
 * The first byte says which operation (its place in ops.def), or from 0x80 on that the body is an
 * error; then the second byte chooses its HTTP status. The rest is the body.
 *
 *  - What is read can be written, read again, and written again the same.
 *  - What is not read is an error.
 *  - An error's status is one that a caller can have, with a sentence, too.
 */
#include <string.h>

#include "base/buf.h"
#include "files.h"
#include "ops/fields.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum hf_op ops[] = {
#define OP(name_, constant, struct_, service_, access_, repeat_) HF_OP_##constant,
#include "ops/ops.def"
#undef OP
};

static const int statuses[] = {400, 403, 404, 413, 429, 500, 502, 503, 504, 200, 301, 599};

static void read_error(struct hf_scope *s, int http, struct hf_str body)
{
    enum hf_status status = hf__wire_read_error(s, http, body);
    const struct hf_error *error = hf_scope_error(s);
    struct hf__buf buf = {.scope = s};

    MUST(status != HF_OK && error->status == status);
    MUST(hf_scope_error_text(s)[0]);
    hf__wire_error_type(s, body);
    hf__wire_write_error(&buf, error);
    MUST(!buf.failed && hf__wire_json_valid(hf_str_of((const char *)buf.ptr, buf.len)));
}

static void read_answer(struct hf_scope *s, const struct op *op, struct hf_str body)
{
    void *first = hf__scope_array(s, 1, op->response->size);
    void *second = hf__scope_array(s, 1, op->response->size);
    struct hf__buf once = {.scope = s}, twice = {.scope = s};

    MUST(first && second);
    if (hf__wire_read_answer(s, op->response, body, first) != HF_OK) {
        MUST(hf_scope_error(s)->status != HF_OK);
        return;
    }
    hf__wire_write(&once, op->response, first);
    MUST(!once.failed);
    MUST(hf__wire_read_answer(s, op->response, hf_str_of((const char *)once.ptr, once.len),
                              second) == HF_OK);
    hf__wire_write(&twice, op->response, second);
    MUST(!twice.failed && once.len == twice.len && memcmp(once.ptr, twice.ptr, once.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    unsigned which = input_byte(&input);
    struct hf_scope *s = hf_scope_new(NULL);

    MUST(s);
    if (which >= 0x80) {
        int http = statuses[input_byte(&input) % ARRAY_LEN(statuses)];

        read_error(s, http, hf_str_of((const char *)input.at, input.left));
    } else {
        read_answer(s, hf__op(ops[which % ARRAY_LEN(ops)]),
                    hf_str_of((const char *)input.at, input.left));
    }
    hf_scope_free(s);
    return 0;
}
