/*
 * wire/private.h: what the files of this folder share: the reader of DynamoDB's JSON, a cursor of
 * base/json.h and what is built on the way; and the walkers for attribute values.
 *
 * Its functions return false when they cannot go on, and the cursor's `error` then says why; the
 * first error stays. Nobody continues after a false, so it is passed up as it is.
 */
#ifndef HF_WIRE_PRIVATE_H
#define HF_WIRE_PRIVATE_H

#include "base/json.h"
#include "model/value.h"
#include "wire/wire.h"

enum json_trouble {
    READ_NONE = JSON_SOUND,
    READ_MALFORMED = JSON_MALFORMED,
    READ_TYPE,    /* JSON, but not of the type that belongs here; see `message` */
    READ_REFUSED, /* a member that is refused by name; see `message` */
    READ_NOMEM
};

struct wire_json {
    struct json_cursor in;
    bool is_answer; /* of a service, read by its client: see hf__wire_read_answer() */
    struct hf_scope *scope;
    struct hf_str message;  /* of READ_TYPE and READ_REFUSED */
    struct hf__buf flat;    /* where attribute values are built, one behind the other */
    struct hf__buf scratch; /* for texts that are needed only until the next one */
    struct hf_item poison;  /* of the item being read; absent while it is sound */
    struct hf_str attr;     /* the top-level attribute being read */
};

/* ---- the reader ----------------------------------------------------------------------------- */

/* Both set the error and return false, so that giving up is one statement. */
static inline bool hf__wire_read_malformed(struct wire_json *json)
{
    return hf__json_wrong(&json->in, "not what belongs here");
}

static inline bool hf__wire_read_nomem(struct wire_json *json)
{
    json->in.error = READ_NOMEM;
    return false;
}

/* The text of a string: borrowed, or unescaped into the scope, or into the scratch buffer. */
bool hf__wire_read_kept(struct wire_json *json, struct json_string text, struct hf_str *out);
bool hf__wire_read_unescaped(struct wire_json *json, struct json_string text, struct hf_str *out);

static inline bool hf__wire_read_keep(struct wire_json *json, struct json_string text,
                                      struct hf_str *out)
{
    *out = text.raw;
    return !text.escaped || hf__wire_read_kept(json, text, out);
}

static inline bool hf__wire_read_scratch(struct wire_json *json, struct json_string text,
                                         struct hf_str *out)
{
    *out = text.raw;
    return !text.escaped || hf__wire_read_unescaped(json, text, out);
}

/* Trouble of type: "<what was found> cannot be converted to <wanted>", and its kin. */
bool hf__wire_read_type_error(struct wire_json *json, const char *format, ...) HF_PRINTF(2, 3);

/* The value at the cursor is no scalar of type `wanted`: say so. */
bool hf__wire_read_not_scalar(struct wire_json *json, enum json_kind kind, const char *wanted);

/* Read a string, or a truth; else report that the value does not fit the scalar type `wanted`. */
bool hf__wire_read_bool(struct wire_json *json, bool *out);

static inline bool hf__wire_read_string(struct wire_json *json, const char *wanted,
                                        struct json_string *text)
{
    enum json_kind kind = hf__json_kind(&json->in);

    if (kind != JSON_STRING)
        return hf__wire_read_not_scalar(json, kind, wanted);
    return hf__json_string(&json->in, text);
}

/* The kind of value, after checking that it is a `want` (an object or an array). `scalar` is what
 * a string or number here is called, `type` the type's name in Java. */
bool hf__wire_read_not_compound(struct wire_json *json, enum json_kind kind, const char *scalar,
                                const char *type);

/* One item, one value, one map of strings at the cursor, value_read.c. */
bool hf__wire_read_item(struct wire_json *json, const char *scalar, struct hf_item *out);
bool hf__wire_read_value(struct wire_json *json, const char *scalar, struct hf_value *out);
bool hf__wire_read_names(struct wire_json *json, const char *scalar, struct hf_item *out);

/* What a scalar is called in place of a member that is a list, map or structure, and in place of
 * an element of a list or map that is one. */
#define FIELD_SCALAR "Unexpected field type"
#define ELEMENT_SCALAR "Unexpected value type in payload"

/* Fail in the scope with the cursor's error. `whole` is all of the text. */
enum hf_status hf__wire_read_fail(struct wire_json *json, struct hf_str whole);

/* ---- the writer ----------------------------------------------------------------------------- */

void hf__wire_write_int(struct hf__buf *buf, int64_t value);
void hf__wire_write_double(struct hf__buf *buf, double value);

#endif
