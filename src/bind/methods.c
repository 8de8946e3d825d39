/*
 * bind/methods.c: the methods as a table, and bind.methods, which prints it.
 */
#include "bind/table.h"

#include "wire/wire.h"

#define METHOD(object, method, access_, what_)                                                     \
    {.name = HF_STR_INIT(#object "." #method),                                                     \
     .access = BIND_##access_,                                                                     \
     .call = hf__bind_##object##_##method,                                                         \
     .args = &hf__bind_##object##_##method##_args,                                                 \
     .result = &hf__bind_##object##_##method##_result,                                             \
     .what = what_},
static const struct bind_method methods[] = {
#include "bind/methods.def"
};
#undef METHOD

const struct bind_method *hf__bind_method(struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (hf_str_equal(methods[i].name, name))
            return &methods[i];
    return NULL;
}

#define T bind_common
SHARED_PART(hf__bind_common_fields, U32("deadline_ms", deadline_ms), U64("cancel", cancel));
#undef T

const char *hf__bind_kind_name(const struct bind_field *field)
{
    switch (field->kind) {
    case BIND_TEXT:
        return "text";
    case BIND_BYTES:
        return "bytes";
    case BIND_BOOL:
    case BIND_FLAG:
        return "boolean";
    case BIND_U32:
        return "u32";
    case BIND_U64:
        return "u64";
    case BIND_I64:
    case BIND_BOUND:
        return "i64";
    case BIND_DOUBLE:
        return "double";
    case BIND_ENUM:
        return "enum";
    case BIND_ITEM:
        return "item";
    case BIND_VALUE:
        return "value";
    case BIND_JSON:
        return "json";
    case BIND_STRUCT:
    case BIND_POINTER:
        return "object";
    case BIND_TEXTS:
        return "texts";
    case BIND_VALUES:
        return "values";
    case BIND_COUNTS:
        return "u64s";
    case BIND_STRUCTS:
    case BIND_POINTERS:
        return "objects";
    }
    return "json";
}

enum { DEPTH_MAX = 4 }; /* trees contain themselves */

static void write_fields(struct hf__buf *buf, const struct bind_fields *fields, int depth,
                         bool *first);

static void write_choices(struct hf__buf *buf, const char *const *members)
{
    bool first = true;

    hf__buf_put_str(buf, HF_STR(",\"values\":["));
    for (int i = 0; members[i] || i == 0; i++) {
        if (!members[i])
            continue;
        if (!first)
            hf__buf_put_byte(buf, ',');
        first = false;
        hf__wire_write_str(buf, hf_str_from(members[i]));
    }
    hf__buf_put_byte(buf, ']');
}

static void write_one(struct hf__buf *buf, const struct bind_field *field, int depth)
{
    bool first = true;

    hf__buf_format(buf, "{\"name\":\"%s\",\"type\":\"%s\"", field->name, hf__bind_kind_name(field));
    if (field->rules & BIND_REQUIRED)
        hf__buf_put_str(buf, HF_STR(",\"required\":true"));
    if (field->kind == BIND_ENUM)
        write_choices(buf, field->members);
    if (field->sub && depth < DEPTH_MAX) {
        hf__buf_put_str(buf, HF_STR(",\"members\":["));
        write_fields(buf, field->sub, depth + 1, &first);
        hf__buf_put_byte(buf, ']');
    }
    hf__buf_put_byte(buf, '}');
}

static void write_fields(struct hf__buf *buf, const struct bind_fields *fields, int depth,
                         bool *first)
{
    for (size_t i = 0; i < fields->len; i++) {
        if (fields->list[i].rules & BIND_FLAT) {
            write_fields(buf, fields->list[i].sub, depth, first);
            continue;
        }
        if (!*first)
            hf__buf_put_byte(buf, ',');
        *first = false;
        write_one(buf, &fields->list[i], depth);
    }
}

static void write_table(struct hf__buf *buf, const char *name, const struct bind_fields *fields)
{
    bool first = true;

    hf__buf_format(buf, ",\"%s\":[", name);
    write_fields(buf, fields, 0, &first);
    hf__buf_put_byte(buf, ']');
}

static void write_method(struct hf__buf *buf, const struct bind_method *method)
{
    hf__buf_format(buf, "{\"name\":\"%s\",\"writes\":%s,\"what\":", method->name.ptr,
                   method->access == BIND_WRITE ? "true" : "false");
    hf__wire_write_str(buf, hf_str_from(method->what));
    write_table(buf, "arguments", method->args);
    write_table(buf, "result", method->result);
    hf__buf_put_byte(buf, '}');
}

/* ---- bind.methods, bind.version ------------------------------------------------------------- */

struct bind_methods_result {
    struct hf_str methods, common;
};

NO_ARGUMENTS(bind_methods);
#define T bind_methods_result
RESULT(bind_methods, JSON("methods", methods), JSON("common", common));
#undef T

BIND_FUNCTION(bind_methods)
{
    struct hf__buf buf = {.scope = s}, common = {.scope = s};
    struct bind_methods_result *result = result_out;
    bool first = true;

    (void)bind;
    (void)args_in;
    hf__buf_put_byte(&buf, '[');
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (i)
            hf__buf_put_byte(&buf, ',');
        write_method(&buf, &methods[i]);
    }
    hf__buf_put_byte(&buf, ']');
    hf__buf_put_byte(&common, '[');
    write_fields(&common, &hf__bind_common_fields, 0, &first);
    hf__buf_put_byte(&common, ']');
    if (buf.failed || common.failed)
        return hf__fail_nomem(s);
    result->methods = hf_str_of((const char *)buf.ptr, buf.len);
    result->common = hf_str_of((const char *)common.ptr, common.len);
    return HF_OK;
}

struct bind_version_result {
    struct hf_str version;
};

NO_ARGUMENTS(bind_version);
#define T bind_version_result
RESULT(bind_version, TEXT("version", version));
#undef T

BIND_FUNCTION(bind_version)
{
    struct bind_version_result *result = result_out;

    (void)s;
    (void)bind;
    (void)args_in;
    result->version = hf_str_from(hf_version());
    return HF_OK;
}
