/*
 * bulk/record.c: records of DynamoDB's JSON and of CSV.
 *
 * CSV is that of RFC 4180: a cell that begins with a quote ends with one, and quotes in it are doubled. A
 * quote in any other cell is an error, as DynamoDB has it.
 */
#include "bulk/record.h"

#include "base/json.h"
#include "base/utf8.h"

enum { CELLS_FIRST = 16 };

static bool error_say(struct hf_str *error, const char *text)
{
    *error = hf_str_from(text);
    return false;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* The item of {"Item":{...}}; other members do no harm. */
static bool envelope_open(struct hf_str record, struct hf_str *inner, struct hf_str *error)
{
    struct json_cursor json = {.at = record.ptr, .end = record.ptr + record.len};

    *inner = (struct hf_str){NULL, 0};
    if (hf__json_kind(&json) != JSON_OBJECT)
        return error_say(error, "expected an object with a member Item");
    for (bool more = hf__json_enter(&json, '}'); more; more = hf__json_more(&json, '}')) {
        struct json_string name;
        const char *start;

        if (!hf__json_name(&json, &name))
            return error_say(error, json.wrong);
        hf__json_spaces(&json);
        start = json.at;
        if (!hf__json_skip(&json, JSON_LEVELS_MAX))
            return error_say(error, json.wrong);
        if (hf_str_equal(name.raw, HF_STR("Item")))
            *inner = hf_str_of(start, (size_t)(json.at - start));
    }
    if (!hf__json_sound(&json) || !hf__json_ended(&json))
        return error_say(error, json.wrong ? json.wrong : "unexpected text after the object");
    return inner->ptr || error_say(error, "expected an object with a member Item");
}

bool hf__bulk_record_json_read(struct hf_scope *s, struct hf_str record, struct hf_item *item,
                               struct hf_str *error)
{
    struct hf_str inner;

    *error = (struct hf_str){NULL, 0};
    if (!envelope_open(record, &inner, error))
        return false;
    if (hf_item_from_json(s, inner, item) == HF_OK && hf_item_check(s, *item) == HF_OK)
        return true;
    return error_say(error, hf_scope_error_text(s));
}

void hf__bulk_record_json_write(struct hf__buf *out, struct hf_scope *s, struct hf_item item)
{
    struct hf_str text = hf_item_to_json(s, item);

    if (!text.ptr)
        out->failed = true;
    hf__buf_put_str(out, HF_STR("{\"Item\":"));
    hf__buf_put_str(out, text);
    hf__buf_put_str(out, HF_STR("}\n"));
}

/* ---- CSV ------------------------------------------------------------------------------------ */

/* The cell at *at, which is left behind it: at its delimiter or at the end. */
static bool cell_read(struct hf_scope *s, struct hf_str record, char delimiter, size_t *at,
                      struct hf_str *cell, struct hf_str *error)
{
    struct hf__buf text = {.scope = s};
    size_t i = *at;

    if (i == record.len || record.ptr[i] != '"') {
        while (i < record.len && record.ptr[i] != delimiter && record.ptr[i] != '"')
            i++;
        if (i < record.len && record.ptr[i] == '"')
            return error_say(error, "a quote in a cell that does not begin with one");
        *cell = hf_str_of(record.ptr + *at, i - *at);
        *at = i;
        return true;
    }
    for (i++;; i++) {
        if (i == record.len)
            return error_say(error, "a quote that is not closed");
        if (record.ptr[i] == '"') {
            if (i + 1 == record.len || record.ptr[i + 1] != '"')
                break;
            i++;
        }
        hf__buf_put_byte(&text, (uint8_t)record.ptr[i]);
    }
    if (text.failed)
        return error_say(error, "out of memory");
    *cell = hf_str_of(text.ptr ? (const char *)text.ptr : "", text.len);
    *at = i + 1;
    return *at == record.len || record.ptr[*at] == delimiter ||
           error_say(error, "text behind the quote that ends a cell");
}

bool hf__bulk_record_csv_cells(struct hf_scope *s, struct hf_str record, char delimiter,
                               struct hf_str **cells, size_t *len, struct hf_str *error)
{
    size_t cap = CELLS_FIRST, at = 0;

    *error = (struct hf_str){NULL, 0};
    *len = 0;
    *cells = hf_scope_alloc(s, cap * sizeof(**cells));
    if (!*cells)
        return error_say(error, "out of memory");
    if (!hf__utf8_valid(record))
        return error_say(error, "it is not UTF-8");
    for (;;) {
        if (*len == cap) {
            struct hf_str *more = hf_scope_alloc(s, cap * 2 * sizeof(*more));

            if (!more)
                return error_say(error, "out of memory");
            memcpy(more, *cells, cap * sizeof(*more));
            *cells = more;
            cap *= 2;
        }
        if (!cell_read(s, record, delimiter, &at, &(*cells)[(*len)++], error))
            return false;
        if (at == record.len)
            return true;
        at++;
    }
}

static enum hf_type type_of(struct hf_str name, const struct hf_attribute_definition *types,
                            size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(types[i].name, name))
            return types[i].type == HF_SCALAR_N   ? HF_TYPE_N
                   : types[i].type == HF_SCALAR_B ? HF_TYPE_B
                                                  : HF_TYPE_S;
    return HF_TYPE_S;
}

/* One cell as an attribute; of bytes it has the base64. */
static bool cell_attr(struct hf_scope *s, struct hf_str name, struct hf_str cell, enum hf_type type,
                      struct hf_attr *attr, struct hf_str *error)
{
    struct hf_str json;
    struct hf_item item;

    *attr = hf_attr_of(name, type, cell, 0);
    if (type != HF_TYPE_B)
        return true;
    json = hf_scope_format(s, "{\"b\":{\"B\":\"%.*s\"}}", HF_FMT(cell));
    if (!json.ptr)
        return error_say(error, "out of memory");
    if (memchr(cell.ptr, '"', cell.len) || memchr(cell.ptr, '\\', cell.len) ||
        hf_item_from_json(s, json, &item) != HF_OK)
        return error_say(error, "a key of type B has to be base64");
    *attr = hf_attr_of_value(name, hf_item_get(item, HF_STR("b")));
    return true;
}

bool hf__bulk_record_csv_item(struct hf_scope *s, const struct hf_str *names, size_t names_len,
                              const struct hf_str *cells, size_t cells_len,
                              const struct hf_attribute_definition *types, size_t types_len,
                              struct hf_item *item, struct hf_str *error)
{
    struct hf_attr *attrs = hf_scope_alloc(s, (names_len + 1) * sizeof(*attrs));
    size_t len = 0;

    *error = (struct hf_str){NULL, 0};
    if (!attrs)
        return error_say(error, "out of memory");
    if (cells_len != names_len) {
        *error =
            hf_scope_format(s, "it has %zu cells, and there are %zu columns", cells_len, names_len);
        return error->ptr ? false
                          : error_say(error, "it has not as many cells as there are columns");
    }
    for (size_t i = 0; i < names_len; i++)
        if (cells[i].len && !cell_attr(s, names[i], cells[i], type_of(names[i], types, types_len),
                                       &attrs[len++], error))
            return false;
    *item = hf_item_make(s, attrs, len);
    if (hf_item_check(s, *item) == HF_OK)
        return true;
    return error_say(error, hf_scope_error_text(s));
}
