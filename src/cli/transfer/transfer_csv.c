/*
 * cli/transfer/transfer_csv.c: items as records of CSV (RFC 4180), with types.
 *
 *     customer:S,day:N,paid:BOOL,tags:SS,address:M
 *     ann,2,true,"[""new"",""eu""]","{""zip"":""10115""}"
 *
 * S is the text, N the number, B base64, BOOL true or false, NULL null. SS, NS and BS are arrays of JSON,
 * of base64 for BS. L and M are plain JSON as item/plain.h has it. An empty cell stands for an attribute that the item
 * does not have; "" between quotes is an empty string.
 *
 * What always holds:
 *
 *  (1) What was written is read as an equal item: an attribute that has several types in a table has a
 *      column for each of them, and an item has a value in one of these.
 *  (2) A type is behind the last colon of a heading, so names may have colons.
 */
#include "cli/transfer/transfer.h"

#include "base/base.h"
#include "base/base64.h"
#include "cli/item/plain.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"",  "S", "N",  "B",  "BOOL", "NULL",
                                         "M", "L", "SS", "NS", "BS"};

enum { TYPES = sizeof(type_names) / sizeof(type_names[0]) };

/* ---- columns -------------------------------------------------------------------------------- */

static bool type_read(struct hf_str text, enum hf_type *type)
{
    for (size_t i = 1; i < TYPES; i++)
        if (hf_str_equal(text, hf_str_from(type_names[i]))) {
            *type = (enum hf_type)i;
            return true;
        }
    return false;
}

/* "name:S"; the type is HF_TYPE_NONE when there is none. (2) */
static struct transfer_column heading_read(struct hf_str text)
{
    struct transfer_column column = {.name = text, .type = HF_TYPE_NONE};
    const char *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    size_t len = colon ? (size_t)(colon - text.ptr) : 0;

    if (colon && len && type_read(hf_str_of(colon + 1, text.len - len - 1), &column.type))
        column.name = hf_str_of(text.ptr, len);
    return column;
}

static bool column_append(struct hf_scope *s, struct transfer_columns *columns,
                          struct transfer_column column, struct hf_str *error)
{
    assert(column.type != HF_TYPE_NONE && columns->len <= columns->cap);
    if (columns->len == TRANSFER_COLUMNS_MAX) {
        *error = hf_scope_format(s, "more than %d columns", TRANSFER_COLUMNS_MAX);
        return false;
    }
    if (columns->len == columns->cap) {
        size_t cap = columns->cap ? columns->cap * 2 : 16;
        struct transfer_column *list = hf_scope_alloc(s, cap * sizeof(*list));

        if (!list) {
            *error = HF_STR("out of memory");
            return false;
        }
        if (columns->len)
            memcpy(list, columns->list, columns->len * sizeof(*list));
        columns->list = list;
        columns->cap = cap;
    }
    columns->list[columns->len++] = column;
    return true;
}

static bool column_there(const struct transfer_columns *columns, struct hf_str name,
                         enum hf_type type)
{
    for (size_t i = 0; i < columns->len; i++)
        if (columns->list[i].type == type && hf_str_equal(columns->list[i].name, name))
            return true;
    return false;
}

bool hf__transfer_columns_read(struct hf_scope *s, struct hf_str text,
                               struct transfer_columns *columns, struct hf_str *error)
{
    while (text.ptr) {
        const char *comma = text.len ? memchr(text.ptr, ',', text.len) : NULL;
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;
        struct transfer_column column = heading_read(hf_str_of(text.ptr, len));

        if (column.type == HF_TYPE_NONE) {
            *error = hf_scope_format(s,
                                     "%.*s: a column is NAME:TYPE with a type of S, N, B, BOOL, "
                                     "NULL, SS, NS, BS, L or M: name:S,age:N",
                                     (int)len, text.ptr);
            return false;
        }
        if (!column_append(s, columns, column, error))
            return false;
        text = comma ? hf_str_of(comma + 1, text.len - len - 1) : (struct hf_str){0};
    }
    return true;
}

bool hf__transfer_columns_add(struct hf_scope *s, struct transfer_columns *columns,
                              struct hf_item item, struct hf_str *error)
{
    struct hf_item_walk walk = {.next = 0};

    while (hf_item_next(item, &walk)) {
        struct transfer_column column = {.type = hf_value_type(walk.value)};

        if (column_there(columns, walk.name, column.type))
            continue;
        column.name = hf_scope_copy(s, walk.name);
        if (!column.name.ptr) {
            *error = HF_STR("out of memory");
            return false;
        }
        if (!column_append(s, columns, column, error)) {
            *error = hf_scope_format(s, "the items have %.*s: choose some with --columns",
                                     HF_FMT(*error));
            return false;
        }
    }
    return true;
}

/* The type of a column whose heading has none: of the list, of the keys of the table (may be NULL), or S. */
static enum hf_type type_of_name(const struct transfer_columns *types,
                                 const struct hf_table_description *table, struct hf_str name)
{
    static const enum hf_type scalars[] = {HF_TYPE_S, HF_TYPE_S, HF_TYPE_N, HF_TYPE_B};

    for (size_t i = 0; i < types->len; i++)
        if (hf_str_equal(types->list[i].name, name))
            return types->list[i].type;
    for (size_t i = 0; table && i < table->attributes_len; i++)
        if (hf_str_equal(table->attributes[i].name, name) &&
            (size_t)table->attributes[i].type < sizeof(scalars) / sizeof(scalars[0]))
            return scalars[table->attributes[i].type];
    return HF_TYPE_S;
}

bool hf__transfer_columns_add_keys(struct hf_scope *s, struct transfer_columns *columns,
                                   const struct hf_table_description *table, struct hf_str *error)
{
    static const struct transfer_columns none = {.len = 0};

    for (size_t k = 0; k < table->key_schema_len; k++) {
        struct hf_str name = table->key_schema[k].name;
        struct transfer_column column = {.name = name, .type = type_of_name(&none, table, name)};

        if (!column_there(columns, name, column.type) && !column_append(s, columns, column, error))
            return false;
    }
    return true;
}

static int column_compare(const void *a, const void *b)
{
    const struct transfer_column *first = a, *second = b;
    size_t len = first->name.len < second->name.len ? first->name.len : second->name.len;
    int order = len ? memcmp(first->name.ptr, second->name.ptr, len) : 0;

    if (order)
        return order;
    if (first->name.len != second->name.len)
        return first->name.len < second->name.len ? -1 : 1;
    return (int)first->type - (int)second->type;
}

void hf__transfer_columns_sort(struct transfer_columns *columns,
                               const struct hf_table_description *table)
{
    size_t sorted = 0;

    if (columns->len)
        qsort(columns->list, columns->len, sizeof(columns->list[0]), column_compare);
    for (size_t k = 0; k < table->key_schema_len; k++)
        for (size_t i = sorted; i < columns->len; i++) {
            struct transfer_column column = columns->list[i];

            if (!hf_str_equal(column.name, table->key_schema[k].name))
                continue;
            memmove(&columns->list[sorted + 1], &columns->list[sorted],
                    (i - sorted) * sizeof(columns->list[0]));
            columns->list[sorted++] = column;
            break;
        }
}

struct hf_str hf__transfer_columns_missing(const struct transfer_columns *columns,
                                           struct hf_item item)
{
    struct hf_item_walk walk = {.next = 0};

    while (hf_item_next(item, &walk))
        if (!column_there(columns, walk.name, hf_value_type(walk.value)))
            return walk.name;
    return (struct hf_str){0};
}

/* ---- writing -------------------------------------------------------------------------------- */

/* May it stand without quotes? */
static bool text_is_plain(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (char_in(text.ptr[i], ",\"\r\n"))
            return false;
    /* Other readers take blanks at the ends away. */
    return !text.len || (!char_in(text.ptr[0], " \t") && !char_in(text.ptr[text.len - 1], " \t"));
}

static void quoted_write(FILE *out, struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"')
            fputc('"', out);
        fputc(text.ptr[i], out);
    }
}

static void field_write(FILE *out, struct hf_str text)
{
    if (text.len && text_is_plain(text)) {
        fwrite(text.ptr, 1, text.len, out);
        return;
    }
    fputc('"', out);
    quoted_write(out, text);
    fputc('"', out);
}

void hf__transfer_csv_header(FILE *out, const struct transfer_columns *columns)
{
    for (size_t i = 0; i < columns->len; i++) {
        const struct transfer_column *column = &columns->list[i];

        if (i)
            fputc(',', out);
        if (text_is_plain(column->name)) {
            fwrite(column->name.ptr, 1, column->name.len, out);
            fprintf(out, ":%s", type_names[column->type]);
        } else {
            fputc('"', out);
            quoted_write(out, column->name);
            fprintf(out, ":%s\"", type_names[column->type]);
        }
    }
    fputc('\n', out);
}

/* A set or a list: an array; bytes in it as base64. */
static struct hf_str array_text(struct hf_scope *s, struct hf_value value)
{
    struct hf_value_walk walk = {.index = 0};
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        fputc('[', text.out);
        while (hf_value_next(s, value, &walk)) {
            if (walk.index)
                fputc(',', text.out);
            hf__cli_json_write_value(text.out, s, walk.value);
        }
        fputc(']', text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

static struct hf_str bytes_text(struct hf_scope *s, struct hf_bytes bytes)
{
    size_t len = hf__base64_encoded_len(bytes.len);
    char *text = hf_scope_alloc(s, len + 1);

    if (!text)
        return (struct hf_str){0};
    hf__base64_encode(bytes, text);
    return hf_str_of(text, len);
}

static struct hf_str cell_text(struct hf_scope *s, struct hf_value value)
{
    switch (hf_value_type(value)) {
    case HF_TYPE_S:
        return hf_value_str(value);
    case HF_TYPE_N:
        return hf_value_number(s, value);
    case HF_TYPE_B:
        return bytes_text(s, hf_value_bytes(value));
    case HF_TYPE_BOOL:
        return hf_value_true(value) ? HF_STR("true") : HF_STR("false");
    case HF_TYPE_NULL:
        return HF_STR("null");
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return array_text(s, value);
    case HF_TYPE_L:
    case HF_TYPE_M:
        return hf__cli_plain_of_value(s, value);
    case HF_TYPE_NONE:
        break;
    }
    return (struct hf_str){0};
}

void hf__transfer_csv_write(FILE *out, struct hf_scope *s, const struct transfer_columns *columns,
                            struct hf_item item)
{
    for (size_t i = 0; i < columns->len; i++) {
        struct hf_value value = hf_item_get(item, columns->list[i].name);

        if (i)
            fputc(',', out);
        if (value.ptr && hf_value_type(value) == columns->list[i].type)
            field_write(out, cell_text(s, value));
    }
    fputc('\n', out);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct csv_field {
    struct hf_str text;
    bool quoted;
};

struct csv_reader {
    struct hf_scope *s;
    struct hf_str rest; /* behind the last field and its comma; absent: there is no more */
    struct hf_str *error;
};

static bool csv_fails(struct csv_reader *r, const char *what)
{
    if (!r->error->ptr)
        *r->error = hf_scope_format(r->s, "%s", what);
    return false;
}

/* What follows a field: a comma, or the end. */
static bool field_end(struct csv_reader *r, const char *at, const char *end)
{
    assert(at <= end);
    if (at == end) {
        r->rest = (struct hf_str){0};
        return true;
    }
    if (*at != ',')
        return csv_fails(r, "expected a comma behind the closing quote of a field");
    r->rest = hf_str_of(at + 1, (size_t)(end - at - 1));
    return true;
}

static bool field_take(struct csv_reader *r, struct csv_field *field)
{
    const char *at = r->rest.ptr, *end = at + r->rest.len;
    char *to;
    size_t len = 0;

    assert(r->rest.ptr);
    *field = (struct csv_field){.text = hf_str_of(at, 0)};
    if (at == end || *at != '"') {
        const char *comma = at == end ? NULL : memchr(at, ',', (size_t)(end - at));
        const char *last = comma ? comma : end;

        field->text = hf_str_of(at, (size_t)(last - at));
        if (field->text.len && memchr(at, '"', field->text.len))
            return csv_fails(r, "a field with a quote in it has to stand between quotes");
        return field_end(r, last, end);
    }
    field->quoted = true;
    to = hf_scope_alloc(r->s, r->rest.len + 1);
    if (!to)
        return csv_fails(r, "out of memory");
    for (at++; at < end; at++) {
        if (*at == '"') {
            if (at + 1 == end || at[1] != '"')
                break;
            at++;
        }
        to[len++] = *at;
    }
    if (at == end)
        return csv_fails(r, "a field has an opening quote and no closing one");
    assert(len <= r->rest.len);
    to[len] = '\0';
    field->text = hf_str_of(to, len);
    return field_end(r, at + 1, end);
}

static bool bytes_read(struct csv_reader *r, struct hf_str text, struct hf_str *bytes)
{
    uint8_t *room = hf_scope_alloc(r->s, hf__base64_decoded_max(text.len) + 1);
    size_t len = 0;

    if (!room)
        return csv_fails(r, "out of memory");
    if (hf__base64_decode(text, room, &len) != BASE64_OK)
        return csv_fails(r, "not base64");
    assert(len <= hf__base64_decoded_max(text.len));
    *bytes = hf_str_of((const char *)room, len);
    return true;
}

/* An array of strings, numbers or base64. */
static bool set_read(struct csv_reader *r, struct hf_str text, struct hf_attr *attr)
{
    enum json_kind wanted = attr->type == HF_TYPE_NS ? JSON_NUMBER : JSON_STRING;
    const struct json_node *json = hf__cli_json_read(r->s, text, r->error);
    struct hf_str *list;

    assert(attr->type == HF_TYPE_SS || attr->type == HF_TYPE_NS || attr->type == HF_TYPE_BS);
    if (!json)
        return false;
    if (json->kind != JSON_ARRAY || !json->len)
        return csv_fails(r, "a set is an array of JSON with at least one element: [\"a\",\"b\"]");
    list = hf_scope_alloc(r->s, json->len * sizeof(*list));
    if (!list)
        return csv_fails(r, "out of memory");
    for (const struct json_node *at = json->first; at; at = at->next) {
        if (at->kind != wanted)
            return csv_fails(r, wanted == JSON_NUMBER ? "a set of numbers has numbers alone"
                                                      : "this set has strings alone");
        list[attr->list_len] = at->text;
        if (attr->type == HF_TYPE_BS && !bytes_read(r, at->text, &list[attr->list_len]))
            return false;
        attr->list_len++;
    }
    attr->list = list;
    return true;
}

static bool json_cell_read(struct csv_reader *r, struct hf_str text, struct hf_attr *attr)
{
    const struct json_node *json = hf__cli_json_read(r->s, text, r->error);
    enum hf_type type = attr->type;

    if (!json || !hf__cli_plain_read(r->s, json, &attr->value, r->error))
        return false;
    if (hf_value_type(attr->value) != type && hf_value_type(attr->value) != HF_TYPE_NONE)
        return csv_fails(r, type == HF_TYPE_L ? "not a list of JSON" : "not an object of JSON");
    attr->type = HF_TYPE_NONE;
    return true;
}

static bool cell_read(struct csv_reader *r, struct hf_str text, struct hf_attr *attr)
{
    attr->text = text;
    switch (attr->type) {
    case HF_TYPE_S:
    case HF_TYPE_N:
    case HF_TYPE_NONE:
        return true;
    case HF_TYPE_B:
        return bytes_read(r, text, &attr->text);
    case HF_TYPE_BOOL:
        attr->number = hf_str_equal(text, HF_STR("true"));
        return attr->number || hf_str_equal(text, HF_STR("false")) ||
               csv_fails(r, "expected true or false");
    case HF_TYPE_NULL:
        return hf_str_equal(text, HF_STR("null")) || csv_fails(r, "expected null");
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return set_read(r, text, attr);
    case HF_TYPE_L:
    case HF_TYPE_M:
        return json_cell_read(r, text, attr);
    }
    return false;
}

static bool column_fails(struct csv_reader *r, const struct transfer_column *column)
{
    *r->error = hf_scope_format(r->s, "column %.*s: %.*s", HF_FMT(column->name),
                                HF_FMT(r->error->ptr ? *r->error : HF_STR("out of memory")));
    return false;
}

/* One of the cells is a value that no item can have, such as a number that is none: say which. */
static bool item_fails(struct csv_reader *r, const struct hf_attr *attrs, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct hf_item one = hf_item_make(r->s, &attrs[i], 1);
        struct transfer_column column = {.name = attrs[i].name};

        if (hf_item_check(r->s, one) == HF_OK)
            continue;
        *r->error = hf_str_from(hf_scope_error_text(r->s));
        return column_fails(r, &column);
    }
    return csv_fails(r, "out of memory");
}

bool hf__transfer_csv_read(struct hf_scope *s, const struct transfer_columns *columns,
                           struct hf_str line, struct hf_item *item, struct hf_str *error)
{
    struct csv_reader r = {.s = s, .rest = line, .error = error};
    struct hf_attr *attrs = hf_scope_alloc(s, (columns->len + 1) * sizeof(*attrs));
    size_t len = 0, at = 0;

    if (!attrs)
        return csv_fails(&r, "out of memory");
    for (; r.rest.ptr; at++) {
        struct csv_field field;

        if (!field_take(&r, &field))
            return false;
        if (at >= columns->len) {
            *error = hf_scope_format(s, "more fields than the %zu of the header", columns->len);
            return false;
        }
        if (!field.text.len && !field.quoted)
            continue;
        for (size_t i = 0; i < len; i++)
            if (hf_str_equal(attrs[i].name, columns->list[at].name)) {
                *error = HF_STR("it has values of two types");
                return column_fails(&r, &columns->list[at]);
            }
        attrs[len] =
            (struct hf_attr){.name = columns->list[at].name, .type = columns->list[at].type};
        if (!cell_read(&r, field.text, &attrs[len]))
            return column_fails(&r, &columns->list[at]);
        len++;
    }
    if (at < columns->len) {
        *error = hf_scope_format(s, "%zu fields, and the header has %zu", at, columns->len);
        return false;
    }
    *item = hf_item_make(s, attrs, len);
    return hf_item_check(s, *item) == HF_OK || item_fails(&r, attrs, len);
}

bool hf__transfer_csv_read_header(struct hf_scope *s, struct hf_str line,
                                  const struct transfer_columns *types,
                                  const struct hf_table_description *table,
                                  struct transfer_columns *columns, struct hf_str *error)
{
    struct csv_reader r = {.s = s, .rest = line, .error = error};

    *columns = (struct transfer_columns){0};
    *error = (struct hf_str){0};
    while (r.rest.ptr) {
        struct transfer_column column;
        struct csv_field field;

        if (!field_take(&r, &field))
            return false;
        if (!field.quoted && field.text.len && memchr(field.text.ptr, '\r', field.text.len))
            return csv_fails(&r, "a heading has a carriage return (CR) in it: lines have to end "
                                 "with LF or CR LF, not with CR alone");
        column = heading_read(field.text);
        if (!column.name.len)
            return csv_fails(&r, "a column has no name");
        if (column.type == HF_TYPE_NONE)
            column.type = type_of_name(types, table, column.name);
        if (column_there(columns, column.name, column.type)) {
            *error = hf_scope_format(s, "column %.*s comes twice", HF_FMT(field.text));
            return false;
        }
        column.name = hf_scope_copy(s, column.name);
        if (!column.name.ptr)
            return csv_fails(&r, "out of memory");
        if (!column_append(s, columns, column, error))
            return false;
    }
    return columns->len > 0 || csv_fails(&r, "the header is empty");
}
