/*
 * test/fuzz/fuzz_json.c: the reader of JSON, and the writer after it.
 *
 * The first byte chooses the request or response of an operation, or an item; the rest is the body.
 * Whatever the bytes are, reading ends with a struct or an error; it is "malformed" exactly when
 * the text is not JSON; and what was read, written and read again is written the same.
 */
#include "model/value.h"
#include "wire/wire.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { STRUCT_MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The error of a failed read, whose text is `malformed` for what is not JSON; a body deeper than
 * JSON_DEPTH_MAX may be called either.
 */
static void must_be_explained(struct hf_scope *s, enum hf_status status, struct hf_str body,
                              struct hf_str malformed)
{
    MUST(status == HF_SERIALIZATION);
    MUST(hf_scope_error(s)->status == status);
    if (!hf_str_equal(hf_scope_error(s)->message, malformed))
        MUST(hf__wire_json_valid(body));
}

static void item(struct hf_scope *s, struct hf_str body)
{
    struct hf_item first, second;
    struct hf_str json;
    enum hf_status status = hf_item_from_json(s, body, &first);

    if (status == HF_INVALID) {
        MUST(!first.ptr);
        MUST(hf_scope_error(s)->message.len > 0);
        return;
    }
    if (status != HF_OK) {
        must_be_explained(s, status, body, HF_STR("The item is not well-formed JSON"));
        return;
    }
    MUST(hf__item_valid(first.ptr, first.len));
    json = hf_item_to_json(s, first);
    MUST(json.ptr && hf__wire_json_valid(json));
    MUST(hf_item_from_json(s, json, &second) == HF_OK);
    MUST(hf_item_equal(first, second));
}

static void message(struct hf_scope *s, const struct fields *fields, struct hf_str body)
{
    _Alignas(16) uint8_t first[STRUCT_MAX] = {0}, second[STRUCT_MAX] = {0};
    struct hf__buf once = {.scope = s}, twice = {.scope = s};
    enum hf_status status;
    struct hf_str json;

    MUST(fields->size <= STRUCT_MAX);
    status = hf__wire_read(s, fields, body, first);
    if (status != HF_OK) {
        must_be_explained(s, status, body, HF_STR(""));
        return;
    }
    hf__wire_write(&once, fields, first);
    if (once.failed)
        return; /* something in it is poisoned */
    json = hf_str_of((const char *)once.ptr, once.len);
    MUST(hf__wire_json_valid(json));
    MUST(hf__wire_read(s, fields, json, second) == HF_OK);
    hf__wire_write(&twice, fields, second);
    MUST(hf_str_equal(json, hf_str_of((const char *)twice.ptr, twice.len)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s;
    struct hf_str body;
    unsigned choice;

    if (size == 0)
        return 0;
    s = hf_scope_new(NULL);
    if (!s)
        return 0;
    /* From '0' on, so that a corpus is easy to write. */
    choice = (unsigned)(uint8_t)(data[0] - '0');
    body = hf_str_of((const char *)data + 1, size - 1);
    if (choice < HF_OP_COUNT)
        message(s, hf__op((enum hf_op)choice)->request, body);
    else if (choice < 2 * HF_OP_COUNT)
        message(s, hf__op((enum hf_op)(choice - HF_OP_COUNT))->response, body);
    else
        item(s, body);
    hf_scope_free(s);
    return 0;
}
