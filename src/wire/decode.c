/*
 * wire/decode.c: the walker that reads JSON into the structs of <holdfast/db.h> by their tables.
 *
 * What always holds:
 *
 *  (1) The body is gone over once. Syntax is checked on the way, so a body that is malformed is
 *      noticed at the latest at its end; only when a type error is met first is the whole body
 *      checked on its own, for malformed goes before mistyped.
 *  (2) Members that the table does not have are stepped over, save those that it refuses by name;
 *      null is a member that is not there; of a member that comes twice the last one counts.
 *  (3) The depth of the recursion is that of the tables.
 *  (4) Everything read lives in the scope or in the body.
 */
#include "wire/private.h"

#include <math.h>

#include "base/assert_held.h"

/* ---- texts ---------------------------------------------------------------------------------- */

bool hf__wire_read_kept(struct wire_json *json, struct json_string text, struct hf_str *out)
{
    char *room = hf_scope_alloc(json->scope, text.raw.len);

    if (!room)
        return hf__wire_read_nomem(json);
    *out = hf_str_of(room, hf__json_unescape(text.raw, room));
    assert(out->len <= text.raw.len); /* an escape is longer than what it stands for */
    return true;
}

bool hf__wire_read_unescaped(struct wire_json *json, struct json_string text, struct hf_str *out)
{
    char *room;

    json->scratch.len = 0;
    room = (char *)hf__buf_reserve(&json->scratch, text.raw.len);
    if (!room)
        return hf__wire_read_nomem(json);
    *out = hf_str_of(room, hf__json_unescape(text.raw, room));
    assert(out->len <= text.raw.len); /* an escape is longer than what it stands for */
    return true;
}

/* ---- type errors ---------------------------------------------------------------------------- */

bool hf__wire_read_type_error(struct wire_json *json, const char *format, ...)
{
    char text[256];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof(text));
    json->in.error = READ_TYPE;
    json->message = hf_scope_copy(json->scope, hf_str_of(text, (size_t)len));
    return json->message.ptr ? false : hf__wire_read_nomem(json);
}

/* A number with a point or an exponent is a decimal to the service. */
static const char *value_name(struct wire_json *json, enum json_kind kind)
{
    struct hf_str text;

    assert(kind != JSON_ARRAY && kind != JSON_OBJECT);
    switch (kind) {
    case JSON_STRING:
        return "STRING_VALUE";
    case JSON_TRUE:
        return "TRUE_VALUE";
    case JSON_FALSE:
        return "FALSE_VALUE";
    default:
        if (!hf__json_number(&json->in, &text))
            return "NUMBER_VALUE";
        for (size_t i = 0; i < text.len; i++)
            if (text.ptr[i] == '.' || text.ptr[i] == 'e' || text.ptr[i] == 'E')
                return "DECIMAL_VALUE";
        return "NUMBER_VALUE";
    }
}

bool hf__wire_read_not_scalar(struct wire_json *json, enum json_kind kind, const char *wanted)
{
    const char *package = char_in('.', wanted) ? "java" : "java.lang";

    switch (kind) {
    case JSON_BAD:
        return false;
    case JSON_ARRAY:
        return hf__wire_read_type_error(json, "Unrecognized collection type class %s.%s", package,
                                        wanted);
    case JSON_OBJECT:
        return hf__wire_read_type_error(json, "Start of structure or map found where not expected");
    default:
        return hf__wire_read_type_error(json, "%s cannot be converted to %s",
                                        value_name(json, kind), wanted);
    }
}

bool hf__wire_read_not_compound(struct wire_json *json, enum json_kind kind, const char *scalar,
                                const char *type)
{
    assert(scalar);
    switch (kind) {
    case JSON_BAD:
        return false;
    case JSON_ARRAY:
        return hf__wire_read_type_error(json, "Unrecognized collection type %s", type);
    case JSON_OBJECT:
        return hf__wire_read_type_error(json, "Start of structure or map found where not expected");
    default:
        return hf__wire_read_type_error(json, "%s", scalar);
    }
}

bool hf__wire_read_bool(struct wire_json *json, bool *out)
{
    enum json_kind kind = hf__json_kind(&json->in);

    if (kind == JSON_STRING)
        return hf__wire_read_type_error(json, "Unexpected token received from parser");
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return hf__wire_read_not_scalar(json, kind, "Boolean");
    *out = kind == JSON_TRUE;
    return hf__json_word(&json->in, kind);
}

enum hf_status hf__wire_read_fail(struct wire_json *json, struct hf_str whole)
{
    if (json->in.error == READ_NOMEM)
        return hf__fail_nomem(json->scope);
    assert(json->in.error != READ_NONE);
    if (json->in.error == READ_MALFORMED || !hf__wire_json_valid(whole))
        return hf__fail_text(json->scope, HF_SERIALIZATION, HF_STR(""));
    return hf__fail_text(json->scope,
                         json->in.error == READ_REFUSED ? HF_INVALID : HF_SERIALIZATION,
                         json->message);
}

/* ---- scalars -------------------------------------------------------------------------------- */

static bool read_str(struct wire_json *json, struct hf_str *out)
{
    struct json_string text;

    return hf__wire_read_string(json, "String", &text) && hf__wire_read_keep(json, text, out);
}

static bool read_int(struct wire_json *json, const struct field *field, int64_t *out)
{
    const char *wanted = field->rules & FIELD_LONG ? "Long" : "Integer";
    enum json_kind kind = hf__json_kind(&json->in);
    struct hf_str text;
    int64_t value;

    if (kind != JSON_NUMBER)
        return hf__wire_read_not_scalar(json, kind, wanted);
    if (!hf__json_number(&json->in, &text))
        return false;
    /* The service cuts fractions off. */
    if (!hf__json_scaled(text, 0, &value) || value == HF_ZERO)
        return hf__wire_read_type_error(json, "NUMBER_VALUE cannot be converted to %s", wanted);
    /* Where a response always has the member, 0 is just a number. */
    *out = value == 0 && !json->is_answer && !(field->rules & FIELD_ALWAYS) ? HF_ZERO : value;
    return true;
}

static bool read_double(struct wire_json *json, double *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    struct hf_str text;

    if (kind != JSON_NUMBER)
        return hf__wire_read_not_scalar(json, kind, "Double");
    if (!hf__json_number(&json->in, &text))
        return false;
    *out = hf__json_double(text);
    if (!isfinite(*out))
        return hf__wire_read_type_error(json, "NUMBER_VALUE cannot be converted to Double");
    return true;
}

enum { MICRO_DIGITS = 6 };

static bool read_time(struct wire_json *json, int64_t *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    struct hf_str text;

    if (kind != JSON_NUMBER)
        return hf__wire_read_not_scalar(json, kind, "util.Date");
    if (!hf__json_number(&json->in, &text))
        return false;
    if (!hf__json_scaled(text, MICRO_DIGITS, out))
        return hf__wire_read_type_error(json, "NUMBER_VALUE cannot be converted to Date");
    return true;
}

static bool read_flag(struct wire_json *json, enum hf_flag *out)
{
    bool truth;

    if (!hf__wire_read_bool(json, &truth))
        return false;
    *out = truth ? HF_YES : HF_NO;
    return true;
}

static bool read_enum(struct wire_json *json, const struct field *field, int *out)
{
    struct json_string raw;
    struct hf_str text;

    assert(field->kind == FIELD_ENUM && field->members);
    if (!hf__wire_read_string(json, "String", &raw) || !hf__wire_read_keep(json, raw, &text))
        return false;
    *out = hf__enum_of_name(field->members, text);
    assert(*out >= 0 && (size_t)*out <= field->members->len);
    if (*out == 0 && !json->is_answer)
        *out = hf__scope_keep_text(json->scope, text);
    return true;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static bool read_struct(struct wire_json *json, const struct fields *fields, void *out);

/* Elements of a list or map, zeroed one by one as they come. */
struct elements {
    uint8_t *ptr;
    size_t len;
    size_t cap;
};

enum { ELEMENTS_FIRST = 4 };

/* An empty list has to point somewhere. */
static const int64_t nothing;

static void *next_element(struct wire_json *json, struct elements *elements, size_t size)
{
    uint8_t *element;

    assert(size > 0 && elements->len <= elements->cap);
    if (elements->len == elements->cap) {
        size_t cap = elements->cap ? 2 * elements->cap : ELEMENTS_FIRST;
        uint8_t *moved =
            hf__scope_grow(json->scope, elements->ptr, elements->cap * size, cap * size);

        if (!moved) {
            hf__wire_read_nomem(json);
            return NULL;
        }
        elements->ptr = moved;
        elements->cap = cap;
    }
    element = elements->ptr + elements->len * size;
    elements->len++;
    assert(elements->len <= elements->cap);
    memset(element, 0, size);
    return element;
}

static void store_elements(const struct field *field, uint8_t *out, struct elements elements)
{
    const void *ptr = elements.ptr ? (const void *)elements.ptr : &nothing;

    assert(field->kind >= FIELD_STRS && (elements.ptr || !elements.len));
    memcpy(out + field->at, &ptr, sizeof(ptr));
    memcpy(out + field->count_at, &elements.len, sizeof(elements.len));
}

static bool read_struct_at(struct wire_json *json, const struct fields *fields, const char *scalar,
                           void *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    char type[128];
    int len;

    assert(fields->name);
    if (kind == JSON_OBJECT)
        return read_struct(json, fields, out);
    len = snprintf(type, sizeof(type), "class com.amazonaws.dynamodb.v20120810.%s", fields->name);
    assert(len > 0 && (size_t)len < sizeof(type));
    return hf__wire_read_not_compound(json, kind, scalar, type);
}

static bool read_element(struct wire_json *json, const struct field *field, void *element)
{
    switch (field->kind) {
    case FIELD_STRS:
        return read_str(json, element);
    case FIELD_DOUBLES:
        return read_double(json, element);
    case FIELD_ITEMS:
        return hf__wire_read_item(json, ELEMENT_SCALAR, element);
    case FIELD_VALUES:
        return hf__wire_read_value(json, ELEMENT_SCALAR, element);
    default:
        return read_struct_at(json, field->sub, ELEMENT_SCALAR, element);
    }
}

static bool read_list(struct wire_json *json, const struct field *field, uint8_t *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    struct elements elements = {NULL, 0, 0};

    if (kind != JSON_ARRAY)
        return hf__wire_read_not_compound(json, kind, FIELD_SCALAR, NULL);
    for (bool more = hf__json_enter(&json->in, ']'); more; more = hf__json_more(&json->in, ']')) {
        void *element = next_element(json, &elements, field_element_size(field));

        if (!element)
            return false;
        if (hf__json_kind(&json->in) == JSON_NULL && field->kind != FIELD_VALUES) {
            if (!hf__json_word(&json->in, JSON_NULL)) /* an element that is absent */
                return false;
        } else if (!read_element(json, field, element)) {
            return false;
        }
    }
    store_elements(field, out, elements);
    return hf__json_sound(&json->in);
}

/* ---- maps ----------------------------------------------------------------------------------- */

static bool read_field(struct wire_json *json, const struct field *field, uint8_t *out);

/* The key of an entry is its first member. */
static struct hf_str entry_key(const struct elements *entries, size_t size, size_t at)
{
    struct hf_str key;

    assert(at < entries->len && size >= sizeof(key));
    memcpy(&key, entries->ptr + at * size, sizeof(key));
    return key;
}

/* Order of two entries by key, and of equal keys by position. */
static bool entry_before(const struct elements *entries, size_t size, uint32_t a, uint32_t b)
{
    struct hf_str x = entry_key(entries, size, a);
    struct hf_str y = entry_key(entries, size, b);
    int order = bytes_compare(x.ptr, x.len, y.ptr, y.len);

    return order ? order < 0 : a < b;
}

/* Heapsort: a map may have a million entries, and the sender chose their order. */
static void sort_entries(const struct elements *entries, size_t size, uint32_t *order)
{
    size_t count = entries->len;

    for (size_t end = count, start = count / 2; end > 1;) {
        size_t root;

        if (start > 0) {
            start--;
        } else {
            uint32_t last = order[--end];

            order[end] = order[0];
            order[0] = last;
        }
        root = start;
        for (size_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
            uint32_t moved;

            if (child + 1 < end && entry_before(entries, size, order[child], order[child + 1]))
                child++;
            if (!entry_before(entries, size, order[root], order[child]))
                break;
            moved = order[root];
            order[root] = order[child];
            order[child] = moved;
            root = child;
        }
    }
}

/* Of entries with one key, keep the last; the order stays. */
static bool drop_repeated(struct wire_json *json, struct elements *entries, size_t size)
{
    uint32_t *order;
    size_t kept = 0;
    struct hf__mark mark = hf__scope_mark(json->scope);

    assert(size >= sizeof(struct hf_str) && entries->len <= UINT32_MAX);
    if (entries->len < 2)
        return true;
    order = hf__scope_array(json->scope, entries->len, 2 * sizeof(*order));
    if (!order)
        return hf__wire_read_nomem(json);
    for (uint32_t i = 0; i < entries->len; i++)
        order[i] = i;
    sort_entries(entries, size, order);
    for (size_t i = 0; DEV_CHECKS && i + 1 < entries->len; i++)
        assert(entry_before(entries, size, order[i], order[i + 1]));
    for (size_t i = 0; i + 1 < entries->len; i++)
        if (hf_str_equal(entry_key(entries, size, order[i]),
                         entry_key(entries, size, order[i + 1])))
            order[entries->len + order[i]] = 1;
    for (size_t i = 0; i < entries->len; i++) {
        if (order[entries->len + i])
            continue;
        if (kept != i)
            memcpy(entries->ptr + kept * size, entries->ptr + i * size, size);
        kept++;
    }
    assert(kept >= 1 && kept <= entries->len); /* the last of equal ones stays */
    entries->len = kept;
    hf__scope_rewind(json->scope, mark);
    return true;
}

static bool read_entry(struct wire_json *json, const struct fields *sub, uint8_t *entry)
{
    if (sub->len == 1 && !sub->list[0].name)
        return read_field(json, &sub->list[0], entry);
    return read_struct_at(json, sub, ELEMENT_SCALAR, entry);
}

static bool not_a_map(struct wire_json *json, enum json_kind kind, const struct fields *sub)
{
    bool list = sub->len == 1 && !sub->list[0].name;
    const struct fields *of = list ? sub->list[0].sub : sub;
    char type[192];
    int len;

    assert(kind != JSON_OBJECT);
    len = snprintf(type, sizeof(type), "java.util.Map<java.lang.String, %s%s%s%s>",
                   list ? "java.util.List<" : "", "com.amazonaws.dynamodb.v20120810.",
                   of ? of->name : "AttributeMap", list ? ">" : "");
    assert(len > 0 && (size_t)len < sizeof(type));
    return hf__wire_read_not_compound(json, kind, FIELD_SCALAR, type);
}

static bool read_map(struct wire_json *json, const struct field *field, uint8_t *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    struct elements entries = {NULL, 0, 0};
    size_t size = field->sub->size;

    if (kind != JSON_OBJECT)
        return not_a_map(json, kind, field->sub);
    for (bool more = hf__json_enter(&json->in, '}'); more; more = hf__json_more(&json->in, '}')) {
        uint8_t *entry = next_element(json, &entries, size);
        struct json_string raw;
        struct hf_str key;

        if (!entry || !hf__json_name(&json->in, &raw) || !hf__wire_read_keep(json, raw, &key))
            return false;
        if (hf__json_kind(&json->in) == JSON_NULL) {
            if (!hf__json_word(&json->in, JSON_NULL))
                return false;
        } else if (!read_entry(json, field->sub, entry)) {
            return false;
        }
        memcpy(entry, &key, sizeof(key)); /* last: a field may lie over a member called alike */
    }
    if (!hf__json_sound(&json->in) || !drop_repeated(json, &entries, size))
        return false;
    store_elements(field, out, entries);
    return true;
}

/* ---- structs -------------------------------------------------------------------------------- */

static bool read_struct_pointer(struct wire_json *json, const struct field *field, uint8_t *out)
{
    void *made = NULL;

    if (hf__json_kind(&json->in) == JSON_OBJECT) {
        made = hf__scope_array(json->scope, 1, field->sub->size);
        if (!made)
            return hf__wire_read_nomem(json);
    }
    if (!read_struct_at(json, field->sub, FIELD_SCALAR, made))
        return false;
    memcpy(out + field->at, &made, sizeof(made));
    return true;
}

/* Read the value at the cursor, which is not null, to where the field lies. */
static bool read_field(struct wire_json *json, const struct field *field, uint8_t *out)
{
    void *at = out + field->at;

    switch (field->kind) {
    case FIELD_STR:
        return read_str(json, at);
    case FIELD_INT:
        return read_int(json, field, at);
    case FIELD_DOUBLE:
        return read_double(json, at);
    case FIELD_FLAG:
        return read_flag(json, at);
    case FIELD_ENUM:
        return read_enum(json, field, at);
    case FIELD_TIME:
        return read_time(json, at);
    case FIELD_ITEM:
        return hf__wire_read_item(json, FIELD_SCALAR, at);
    case FIELD_NAMES:
        return hf__wire_read_names(json, FIELD_SCALAR, at);
    case FIELD_VALUE:
        return hf__wire_read_value(json, FIELD_SCALAR, at);
    case FIELD_STRUCT:
        return read_struct_pointer(json, field, out);
    case FIELD_STRS:
    case FIELD_DOUBLES:
    case FIELD_ITEMS:
    case FIELD_VALUES:
    case FIELD_STRUCTS:
        return read_list(json, field, out);
    case FIELD_MAP:
        return read_map(json, field, out);
    }
    return hf__wire_read_malformed(json);
}

/* Make a member absent again that was there before and then comes as null. */
static void clear_field(const struct field *field, uint8_t *out)
{
    static const size_t sizes[] = {
        [FIELD_STR] = sizeof(struct hf_str),
        [FIELD_INT] = sizeof(int64_t),
        [FIELD_DOUBLE] = sizeof(double),
        [FIELD_FLAG] = sizeof(enum hf_flag),
        [FIELD_ENUM] = sizeof(int),
        [FIELD_TIME] = sizeof(int64_t),
        [FIELD_ITEM] = sizeof(struct hf_item),
        [FIELD_NAMES] = sizeof(struct hf_item),
        [FIELD_VALUE] = sizeof(struct hf_value),
        [FIELD_STRUCT] = sizeof(void *),
    };

    assert(out);
    _Static_assert(ARRAY_LEN(sizes) == FIELD_STRUCT + 1, "lists and maps are behind it");
    if (field->kind <= FIELD_STRUCT) {
        memset(out + field->at, 0, sizes[field->kind]);
    } else {
        memset(out + field->at, 0, sizeof(void *));
        memset(out + field->count_at, 0, sizeof(size_t));
    }
}

/* The field of that name; `hint` is where to look first, as members mostly come in one order. */
static const struct field *find_field(const struct fields *fields, struct hf_str name, size_t *hint)
{
    assert(*hint == 0 || *hint < fields->len);
    for (size_t i = 0; i < fields->len; i++) {
        size_t at = *hint + i < fields->len ? *hint + i : *hint + i - fields->len;
        const struct field *field = &fields->list[at];

        if (name.len == 0 || field->name[0] != name.ptr[0] || !str_is(name, field->name))
            continue;
        *hint = at + 1 < fields->len ? at + 1 : 0;
        return field;
    }
    return NULL;
}

/* A member that the table does not have; the cursor is at its value. */
static bool read_unknown(struct wire_json *json, const struct fields *fields, struct hf_str name)
{
    const struct field_refused *refused = hf__field_refused(fields, name);

    assert(json->in.error == READ_NONE);
    if (!refused || hf__json_kind(&json->in) == JSON_NULL)
        return hf__json_skip(&json->in, JSON_DEPTH_MAX);
    json->in.error = READ_REFUSED;
    json->message = hf_scope_format(json->scope,
                                    "One or more parameter values were invalid: %s is not "
                                    "supported: %s",
                                    refused->name, refused->why);
    return json->message.ptr ? false : hf__wire_read_nomem(json);
}

/* Does an answer lack a member that its readers use without a look for NULL? */
static bool lacks_required(const struct fields *fields, const void *out)
{
    assert(out);
    for (size_t i = 0; i < fields->len; i++) {
        const struct field *field = &fields->list[i];
        const void *pointer;

        if (field->kind != FIELD_STRUCT || !(field->rules & FIELD_REQUIRED))
            continue;
        memcpy(&pointer, (const char *)out + field->at, sizeof(pointer));
        if (!pointer)
            return true;
    }
    return false;
}

/* Read the object at the cursor. */
static bool read_struct(struct wire_json *json, const struct fields *fields, void *out)
{
    size_t hint = 0;

    assert(out);
    for (bool more = hf__json_enter(&json->in, '}'); more; more = hf__json_more(&json->in, '}')) {
        const struct field *field;
        struct json_string raw;
        struct hf_str name;
        bool done;

        if (!hf__json_name(&json->in, &raw) || !hf__wire_read_scratch(json, raw, &name))
            return false;
        field = find_field(fields, name, &hint);
        if (!field) {
            done = read_unknown(json, fields, name);
        } else if (hf__json_kind(&json->in) == JSON_NULL) {
            clear_field(field, out);
            done = hf__json_word(&json->in, JSON_NULL);
        } else {
            done = read_field(json, field, out);
        }
        if (!done)
            return false;
    }
    if (json->is_answer && lacks_required(fields, out))
        return hf__wire_read_malformed(json);
    return hf__json_sound(&json->in);
}

static enum hf_status read_whole(struct wire_json *json, const struct fields *fields,
                                 struct hf_str text, void *out)
{
    enum json_kind kind;
    bool done;

    if (DEV_CHECKS)
        hf__fields_check(fields);
    if (!text.ptr)
        text = HF_STR("");
    json->in.at = text.ptr;
    json->in.end = text.ptr + text.len;
    kind = hf__json_kind(&json->in);
    if (kind == JSON_OBJECT)
        done = read_struct(json, fields, out);
    else
        done = kind != JSON_BAD && hf__wire_read_type_error(json, ELEMENT_SCALAR);
    if (!done)
        return hf__wire_read_fail(json, text);
    if (!hf__json_ended(&json->in)) {
        hf__wire_read_malformed(json);
        return hf__wire_read_fail(json, text);
    }
    assert(json->in.error == READ_NONE && json->in.at <= json->in.end);
    return HF_OK;
}

enum hf_status hf__wire_read(struct hf_scope *s, const struct fields *fields, struct hf_str text,
                             void *out)
{
    struct wire_json json = {.scope = s, .flat = {.scope = s}, .scratch = {.scope = s}};

    return read_whole(&json, fields, text, out);
}

enum hf_status hf__wire_read_answer(struct hf_scope *s, const struct fields *fields,
                                    struct hf_str text, void *out)
{
    struct wire_json json = {.is_answer = true,
                             .scope = s,
                             .flat = {.scope = s},
                             .scratch = {.scope = s}};

    return read_whole(&json, fields, text, out);
}

bool hf__wire_json_valid(struct hf_str text)
{
    struct json_cursor json = {.at = text.ptr, .end = text.ptr ? text.ptr + text.len : NULL};

    return hf__json_skip_all(&json, JSON_DEPTH_MAX);
}
