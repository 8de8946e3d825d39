/*
 * bind/read.c: the arguments of a method, from JSON into a struct, by its table of fields.
 *
 *  (1) All of the text is one JSON object, in UTF-8.
 *  (2) A member that the table does not have is refused by name, and so is one that comes twice.
 *  (3) null is as if the member were left out.
 *  (4) A number that its member cannot hold is refused, not cut.
 *  (5) Nothing recurses deeper than the tables, or than the reader of items.
 */
#include "bind/fields.h"

#include "base/base64.h"
#include "base/json.h"

enum {
    LIST_FIRST = 8,
    SHOWN_MAX = 60,  /* bytes of what was found instead, in a message */
    LEVELS_MAX = 200 /* of JSON that is kept as it is */
};

struct bind_reader {
    struct json_cursor in;
    struct hf_scope *scope;
    struct hf_str method;
    const char *path; /* the member being read, such as "events[2].payload"; "" at the top */
};

/* ---- errors --------------------------------------------------------------------------------- */

static enum hf_status refuse_malformed(struct bind_reader *r, const char *begin)
{
    return hf_scope_fail(r->scope, HF_INVALID,
                         "%.*s: the arguments are not valid JSON: %s at byte %zu",
                         HF_FMT(r->method), r->in.wrong ? r->in.wrong : "expected an object",
                         (size_t)(r->in.at - begin) + 1);
}

static enum hf_status refuse_member(struct bind_reader *r, const char *wanted)
{
    const char *from = r->in.at;
    size_t len;

    if (!hf__json_skip(&r->in, LEVELS_MAX))
        return HF_INVALID; /* malformed, which goes first; reported by the caller */
    len = (size_t)(r->in.at - from);
    return hf_scope_fail(r->scope, HF_INVALID, "%.*s: \"%s\": expected %s, got %.*s%s",
                         HF_FMT(r->method), r->path, wanted, len > SHOWN_MAX ? 0 : (int)len, from,
                         len > SHOWN_MAX ? "something else" : "");
}

/* ---- single values -------------------------------------------------------------------------- */

static enum hf_status read_string(struct bind_reader *r, const char *wanted, struct hf_str *out)
{
    struct json_string text;
    char *copy;

    if (hf__json_kind(&r->in) != JSON_STRING)
        return refuse_member(r, wanted);
    if (!hf__json_string(&r->in, &text))
        return HF_INVALID;
    *out = text.raw;
    if (text.escaped) {
        copy = hf_scope_alloc(r->scope, text.raw.len + 1);
        if (!copy)
            return hf__fail_nomem(r->scope);
        out->ptr = copy;
        out->len = hf__json_unescape(text.raw, copy);
    }
    if (!out->ptr)
        out->ptr = "";
    return HF_OK;
}

/* A whole number as JSON or as a string of digits: its sign and its size. */
static bool parse_whole(struct hf_str text, bool *negative, uint64_t *out)
{
    uint64_t sum = 0;
    size_t i = 0;

    *negative = text.len > 1 && text.ptr[0] == '-';
    i = *negative ? 1 : 0;
    if (i == text.len)
        return false;
    for (; i < text.len; i++) {
        unsigned digit = (unsigned)(text.ptr[i] - '0');

        if (text.ptr[i] < '0' || text.ptr[i] > '9' || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *out = sum;
    return true;
}

static enum hf_status read_whole(struct bind_reader *r, const char *wanted, int64_t min,
                                 uint64_t max, int64_t *low, uint64_t *high)
{
    struct json_cursor before = r->in;
    enum json_kind kind = hf__json_kind(&r->in);
    struct json_string quoted;
    struct hf_str text;
    bool negative;
    uint64_t sum;

    if (kind == JSON_NUMBER) {
        if (!hf__json_number(&r->in, &text))
            return HF_INVALID;
    } else if (kind == JSON_STRING) {
        if (!hf__json_string(&r->in, &quoted))
            return HF_INVALID;
        text = quoted.raw;
    } else {
        return refuse_member(r, wanted);
    }
    if (parse_whole(text, &negative, &sum)) {
        if (!negative && sum <= max) {
            *high = sum;
            *low = sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
            return HF_OK;
        }
        if (negative && min < 0 && sum <= (uint64_t)INT64_MAX + 1) {
            *low = sum == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)sum;
            *high = 0;
            return HF_OK;
        }
        if (negative && sum == 0) {
            *low = 0;
            *high = 0;
            return HF_OK;
        }
    }
    r->in = before;
    hf__json_spaces(&r->in);
    return refuse_member(r, wanted);
}

#define WHOLE_U32 "a whole number from 0 to 4294967295"
#define WHOLE_U64 "a whole number from 0 on, of 64 bits"
#define WHOLE_I64 "a whole number of 64 bits"

static enum hf_status read_u32(struct bind_reader *r, uint32_t *out)
{
    int64_t low;
    uint64_t high = 0;

    TRY(read_whole(r, WHOLE_U32, 0, UINT32_MAX, &low, &high));
    *out = (uint32_t)high;
    return HF_OK;
}

static enum hf_status read_u64(struct bind_reader *r, uint64_t *out)
{
    int64_t low;

    return read_whole(r, WHOLE_U64, 0, UINT64_MAX, &low, out);
}

static enum hf_status read_i64(struct bind_reader *r, bool bound, int64_t *out)
{
    uint64_t high;

    TRY(read_whole(r, WHOLE_I64, INT64_MIN, INT64_MAX, out, &high));
    if (bound && *out == 0)
        *out = HF_ZERO;
    return HF_OK;
}

static enum hf_status read_double(struct bind_reader *r, double *out)
{
    struct hf_str text;

    if (hf__json_kind(&r->in) != JSON_NUMBER)
        return refuse_member(r, "a number");
    if (!hf__json_number(&r->in, &text))
        return HF_INVALID;
    *out = hf__json_double(text);
    return HF_OK;
}

static enum hf_status read_truth(struct bind_reader *r, bool *out)
{
    enum json_kind kind = hf__json_kind(&r->in);

    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return refuse_member(r, "true or false");
    *out = kind == JSON_TRUE;
    return hf__json_word(&r->in, kind) ? HF_OK : HF_INVALID;
}

static enum hf_status read_choice(struct bind_reader *r, const char *const *members, int *out)
{
    struct hf_str all = HF_STR(""), text;
    struct json_cursor before;

    hf__json_spaces(&r->in);
    before = r->in;
    TRY(read_string(r, "a string", &text));
    for (int i = 0; members[i] || i == 0; i++)
        if (members[i] && str_is(text, members[i])) {
            *out = i;
            return HF_OK;
        }
    for (int i = 0; members[i] || i == 0; i++)
        if (members[i])
            all = hf_scope_format(r->scope, "%.*s%s\"%s\"", HF_FMT(all), all.len ? ", " : "",
                                  members[i]);
    r->in = before;
    return refuse_member(r, hf_scope_format(r->scope, "one of %.*s", HF_FMT(all)).ptr);
}

/* The text of the value at the cursor, whatever it is. */
static enum hf_status read_raw(struct bind_reader *r, struct hf_str *out)
{
    const char *from;

    hf__json_spaces(&r->in);
    from = r->in.at;
    if (!hf__json_skip(&r->in, LEVELS_MAX))
        return HF_INVALID;
    *out = hf_str_of(from, (size_t)(r->in.at - from));
    return HF_OK;
}

/* The error of an item, with the method and the member in front. */
static enum hf_status item_wrong(struct bind_reader *r, enum hf_status status)
{
    struct hf_str why = hf_scope_error(r->scope)->message;

    if (status == HF_NOMEM)
        return status;
    return hf_scope_fail(r->scope, HF_INVALID, "%.*s: \"%s\": %.*s", HF_FMT(r->method), r->path,
                         HF_FMT(why));
}

static enum hf_status read_item(struct bind_reader *r, struct hf_item *out)
{
    struct hf_str text;
    enum hf_status status;

    if (hf__json_kind(&r->in) != JSON_OBJECT)
        return refuse_member(r, "an item in DynamoDB's JSON, such as {\"id\": {\"S\": \"7\"}}");
    TRY(read_raw(r, &text));
    status = hf_item_from_json(r->scope, text, out);
    if (status == HF_OK)
        status = hf_item_check(r->scope, *out);
    return status == HF_OK ? HF_OK : item_wrong(r, status);
}

static enum hf_status read_value(struct bind_reader *r, struct hf_value *out)
{
    struct hf_item item;
    struct hf_str text;
    enum hf_status status;

    if (hf__json_kind(&r->in) != JSON_OBJECT)
        return refuse_member(r, "a value in DynamoDB's JSON, such as {\"S\": \"7\"}");
    TRY(read_raw(r, &text));
    text = hf_scope_format(r->scope, "{\"value\":%.*s}", HF_FMT(text));
    if (!text.ptr)
        return hf__fail_nomem(r->scope);
    status = hf_item_from_json(r->scope, text, &item);
    if (status == HF_OK)
        status = hf_item_check(r->scope, item);
    *out = status == HF_OK ? hf_item_get(item, HF_STR("value")) : (struct hf_value){0};
    return status == HF_OK ? HF_OK : item_wrong(r, status);
}

#define BYTES_WANTED "a string, or bytes as {\"base64\": \"...\"}"

static enum hf_status read_bytes(struct bind_reader *r, struct hf_bytes *out)
{
    struct json_cursor before;
    struct json_string name;
    struct hf_str text;
    uint8_t *to;

    hf__json_spaces(&r->in);
    before = r->in;
    if (hf__json_kind(&r->in) == JSON_STRING) {
        TRY(read_string(r, BYTES_WANTED, &text));
        *out = hf_bytes_of(text.ptr, text.len);
        return HF_OK;
    }
    if (hf__json_kind(&r->in) != JSON_OBJECT)
        return refuse_member(r, BYTES_WANTED);
    if (hf__json_enter(&r->in, '}') && hf__json_name(&r->in, &name) && str_is(name.raw, "base64") &&
        hf__json_kind(&r->in) == JSON_STRING) {
        TRY(read_string(r, BYTES_WANTED, &text));
        to = hf_scope_alloc(r->scope, text.len / 4 * 3 + 3);
        if (!to)
            return hf__fail_nomem(r->scope);
        if (!hf__json_more(&r->in, '}') && hf__json_sound(&r->in) &&
            hf__base64_decode(text, to, &out->len) == BASE64_OK) {
            out->ptr = to;
            return HF_OK;
        }
    }
    if (!hf__json_sound(&r->in))
        return HF_INVALID;
    r->in = before;
    return refuse_member(r, BYTES_WANTED);
}

/* ---- structs -------------------------------------------------------------------------------- */

static enum hf_status read_struct(struct bind_reader *r, const struct bind_fields *fields,
                                  const struct bind_fields *common, void *common_out, void *out);

static size_t element_size(const struct bind_field *field)
{
    switch (field->kind) {
    case BIND_TEXTS:
        return sizeof(struct hf_str);
    case BIND_VALUES:
        return sizeof(struct hf_value);
    case BIND_COUNTS:
        return sizeof(uint64_t);
    default:
        assert(field->kind == BIND_STRUCTS);
        return field->sub->size;
    }
}

static enum hf_status read_element(struct bind_reader *r, const struct bind_field *field, void *out)
{
    switch (field->kind) {
    case BIND_TEXTS:
        return read_string(r, "a string", out);
    case BIND_VALUES:
        return read_value(r, out);
    case BIND_COUNTS:
        return read_u64(r, out);
    default:
        return read_struct(r, field->sub, NULL, NULL, out);
    }
}

static enum hf_status read_list(struct bind_reader *r, const struct bind_field *field,
                                uint8_t *base)
{
    size_t size = element_size(field), len = 0, cap = LIST_FIRST;
    const char *path = r->path;
    uint8_t *list;

    if (hf__json_kind(&r->in) != JSON_ARRAY)
        return refuse_member(r, "a list");
    list = hf__scope_array(r->scope, cap, size);
    if (!list)
        return hf__fail_nomem(r->scope);
    for (bool more = hf__json_enter(&r->in, ']'); more; more = hf__json_more(&r->in, ']')) {
        if (len == cap) {
            uint8_t *wider = hf__scope_array(r->scope, cap * 2, size);

            if (!wider)
                return hf__fail_nomem(r->scope);
            memcpy(wider, list, cap * size);
            list = wider;
            cap *= 2;
        }
        r->path = hf_scope_format(r->scope, "%s[%zu]", path, len).ptr;
        if (!r->path)
            return hf__fail_nomem(r->scope);
        TRY(read_element(r, field, list + len * size));
        len++;
    }
    r->path = path;
    if (!hf__json_sound(&r->in))
        return HF_INVALID;
    memcpy(base + field->at, &list, sizeof(list));
    memcpy(base + field->count_at, &len, sizeof(len));
    return HF_OK;
}

static enum hf_status read_field(struct bind_reader *r, const struct bind_field *field,
                                 uint8_t *base)
{
    void *at = base + field->at;
    bool truth = false;
    void *sub;

    switch (field->kind) {
    case BIND_TEXT:
        return read_string(r, "a string", at);
    case BIND_BYTES:
        return read_bytes(r, at);
    case BIND_BOOL:
        return read_truth(r, at);
    case BIND_FLAG:
        TRY(read_truth(r, &truth));
        *(enum hf_flag *)at = truth ? HF_YES : HF_NO;
        return HF_OK;
    case BIND_U32:
        return read_u32(r, at);
    case BIND_U64:
        return read_u64(r, at);
    case BIND_I64:
    case BIND_BOUND:
        return read_i64(r, field->kind == BIND_BOUND, at);
    case BIND_DOUBLE:
        return read_double(r, at);
    case BIND_ENUM:
        return read_choice(r, field->members, at);
    case BIND_ITEM:
        return read_item(r, at);
    case BIND_VALUE:
        return read_value(r, at);
    case BIND_JSON:
        return read_raw(r, at);
    case BIND_STRUCT:
        return read_struct(r, field->sub, NULL, NULL, at);
    case BIND_POINTER:
        sub = hf__scope_array(r->scope, 1, field->sub->size);
        if (!sub)
            return hf__fail_nomem(r->scope);
        memcpy(at, &sub, sizeof(sub));
        return read_struct(r, field->sub, NULL, NULL, sub);
    default:
        assert(field->kind != BIND_POINTERS);
        return read_list(r, field, base);
    }
}

/* The field of that name, with those of flat structs; *base is moved to where it counts from. */
static const struct bind_field *find_field(const struct bind_fields *fields, struct hf_str name,
                                           uint8_t **base)
{
    for (size_t i = 0; fields && i < fields->len; i++) {
        const struct bind_field *field = &fields->list[i];

        if (field->rules & BIND_FLAT) {
            uint8_t *inner = *base + field->at;
            const struct bind_field *found = find_field(field->sub, name, &inner);

            if (found) {
                *base = inner;
                return found;
            }
        } else if (str_is(name, field->name)) {
            return field;
        }
    }
    return NULL;
}

static struct hf_str list_names(struct hf_scope *s, const struct bind_fields *fields,
                                struct hf_str so_far)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct bind_field *field = &fields->list[i];

        if (field->rules & BIND_FLAT)
            so_far = list_names(s, field->sub, so_far);
        else
            so_far =
                hf_scope_format(s, "%.*s%s%s", HF_FMT(so_far), so_far.len ? ", " : "", field->name);
    }
    return so_far;
}

static enum hf_status refuse_unknown(struct bind_reader *r, const struct bind_fields *fields,
                                     struct hf_str name, const char *path)
{
    struct hf_str names = list_names(r->scope, fields, HF_STR(""));
    int len = name.len > SHOWN_MAX ? 0 : (int)name.len;

    return hf_scope_fail(r->scope, HF_INVALID, "%.*s: unknown member \"%s%s%.*s%s\"; %s%.*s",
                         HF_FMT(r->method), path, *path ? "." : "", len, name.ptr,
                         len == 0 && name.len ? "..." : "",
                         names.len ? "there are " : "it has none", HF_FMT(names));
}

/* (2) Which fields have been seen, by where they lie. */
struct seen_fields {
    const void *list[64];
    size_t len;
};

static bool was_seen(const struct seen_fields *seen, const void *field)
{
    for (size_t i = 0; i < seen->len; i++)
        if (seen->list[i] == field)
            return true;
    return false;
}

static enum hf_status check_required(struct bind_reader *r, const struct bind_fields *fields,
                                     const struct seen_fields *seen, const char *path)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct bind_field *field = &fields->list[i];

        if (field->rules & BIND_FLAT)
            TRY(check_required(r, field->sub, seen, path));
        else if ((field->rules & BIND_REQUIRED) && !was_seen(seen, field))
            return hf_scope_fail(r->scope, HF_INVALID, "%.*s: \"%s%s%s\" is missing",
                                 HF_FMT(r->method), path, *path ? "." : "", field->name);
    }
    return HF_OK;
}

static enum hf_status read_member(struct bind_reader *r, const struct bind_fields *fields,
                                  uint8_t *out, const struct bind_fields *common,
                                  uint8_t *common_out, struct seen_fields *seen, const char *path)
{
    const struct bind_field *field;
    struct json_string quoted;
    struct hf_str name;
    uint8_t *base = out;
    char *copy;

    if (!hf__json_name(&r->in, &quoted))
        return HF_INVALID;
    name = quoted.raw;
    if (quoted.escaped) {
        copy = hf_scope_alloc(r->scope, name.len + 1);
        if (!copy)
            return hf__fail_nomem(r->scope);
        name = hf_str_of(copy, hf__json_unescape(quoted.raw, copy));
    }
    field = find_field(fields, name, &base);
    if (!field) {
        base = common_out;
        field = find_field(common, name, &base);
    }
    if (!field)
        return refuse_unknown(r, fields, name, path);
    r->path = *path ? hf_scope_format(r->scope, "%s.%s", path, field->name).ptr : field->name;
    if (!r->path)
        return hf__fail_nomem(r->scope);
    if (was_seen(seen, field))
        return hf_scope_fail(r->scope, HF_INVALID, "%.*s: \"%s\" is there twice", HF_FMT(r->method),
                             r->path);
    if (hf__json_kind(&r->in) == JSON_NULL) /* (3) */
        return hf__json_word(&r->in, JSON_NULL) ? HF_OK : HF_INVALID;
    assert(seen->len < ARRAY_LEN(seen->list));
    seen->list[seen->len++] = field;
    TRY(read_field(r, field, base));
    r->path = path;
    return HF_OK;
}

static enum hf_status read_struct(struct bind_reader *r, const struct bind_fields *fields,
                                  const struct bind_fields *common, void *common_out, void *out)
{
    struct seen_fields seen = {.len = 0};
    const char *path = r->path;

    if (hf__json_kind(&r->in) != JSON_OBJECT)
        return *path ? refuse_member(r, "an object") : HF_INVALID;
    for (bool more = hf__json_enter(&r->in, '}'); more; more = hf__json_more(&r->in, '}'))
        TRY(read_member(r, fields, out, common, common_out, &seen, path));
    if (!hf__json_sound(&r->in))
        return HF_INVALID;
    r->path = path;
    return check_required(r, fields, &seen, path);
}

enum hf_status hf__bind_read(struct hf_scope *s, struct hf_str method,
                             const struct bind_fields *fields, struct hf_str json, void *args,
                             struct bind_common *common)
{
    struct hf_str text = json.len ? json : HF_STR("{}");
    struct bind_reader r = {.in = {.at = text.ptr, .end = text.ptr + text.len},
                            .scope = s,
                            .method = method,
                            .path = ""};
    struct json_cursor whole = r.in;
    enum hf_status status;

    if (!hf__json_skip_all(&whole, LEVELS_MAX)) { /* (1) */
        r.in = whole;
        return refuse_malformed(&r, text.ptr);
    }
    hf__scope_error_clear(s);
    status = read_struct(&r, fields, &hf__bind_common_fields, common, args);
    if (status != HF_OK && hf_scope_error(s)->status == HF_OK)
        return refuse_malformed(&r, text.ptr);
    return status;
}

/* Only what is of every method; what else there is, and whether it is JSON at all, others say. */
static enum hf_status read_common(struct bind_reader *r, struct bind_common *common)
{
    struct seen_fields seen = {.len = 0};

    if (hf__json_kind(&r->in) != JSON_OBJECT)
        return HF_OK;
    for (bool more = hf__json_enter(&r->in, '}'); more; more = hf__json_more(&r->in, '}')) {
        const struct bind_field *field;
        struct json_string name;
        uint8_t *base = (uint8_t *)common;

        if (!hf__json_name(&r->in, &name))
            return HF_OK;
        field = find_field(&hf__bind_common_fields, name.raw, &base);
        if (!field || hf__json_kind(&r->in) == JSON_NULL) {
            if (!hf__json_skip(&r->in, LEVELS_MAX))
                return HF_OK;
            continue;
        }
        r->path = field->name;
        if (was_seen(&seen, field))
            return hf_scope_fail(r->scope, HF_INVALID, "%.*s: \"%s\" is there twice",
                                 HF_FMT(r->method), r->path);
        assert(seen.len < ARRAY_LEN(seen.list));
        seen.list[seen.len++] = field;
        TRY(read_field(r, field, base));
    }
    return HF_OK;
}

enum hf_status hf__bind_read_common(struct hf_scope *s, struct hf_str method, struct hf_str json,
                                    struct bind_common *common)
{
    struct bind_reader r = {.in = {.at = json.ptr, .end = json.ptr + json.len},
                            .scope = s,
                            .method = method,
                            .path = ""};
    enum hf_status status;

    if (!memmem(json.ptr, json.len, "\"deadline_ms\"", 13) &&
        !memmem(json.ptr, json.len, "\"cancel\"", 8))
        return HF_OK; /* as nearly always */
    hf__scope_error_clear(s);
    status = read_common(&r, common);
    /* What is no JSON is refused by the operation's own reader. */
    return status != HF_OK && hf_scope_error(s)->status == HF_OK ? HF_OK : status;
}

void hf__bind_bound_lists(const struct bind_fields *fields, uint32_t most, void *args)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct bind_field *field = &fields->list[i];
        void *at = (uint8_t *)args + field->at;
        uint64_t limit = 0;
        uint32_t narrow = 0;

        if (!(field->rules & BIND_LISTED))
            continue;
        assert(field->kind == BIND_U32 || field->kind == BIND_U64);
        memcpy(field->kind == BIND_U32 ? (void *)&narrow : &limit, at,
               field->kind == BIND_U32 ? sizeof(narrow) : sizeof(limit));
        limit += narrow;
        if (limit > most || (limit == 0 && (field->rules & BIND_ALL)))
            limit = most;
        narrow = (uint32_t)limit;
        memcpy(at, field->kind == BIND_U32 ? (void *)&narrow : &limit,
               field->kind == BIND_U32 ? sizeof(narrow) : sizeof(limit));
    }
}
