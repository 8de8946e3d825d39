/*
 * wire/private.h: what the files of this folder share: a cursor over JSON text, and the walkers
 * for attribute values.
 *
 * The cursor's functions return false when they cannot go on, and `trouble` then says why; the
 * first trouble stays. Nobody continues after a false, so it is passed up as it is.
 */
#ifndef HF_WIRE_PRIVATE_H
#define HF_WIRE_PRIVATE_H

#include "model/value.h"
#include "wire/wire.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum json_trouble {
    TROUBLE_NONE,
    TROUBLE_MALFORMED, /* not JSON */
    TROUBLE_TYPE,      /* JSON, but not of the type that belongs here; see `message` */
    TROUBLE_REFUSED,   /* a member that is refused by name; see `message` */
    TROUBLE_NOMEM
};

struct json {
    const char *at;
    const char *end;
    enum json_trouble trouble;
    bool is_answer;         /* of a service, read by its client: see hf__wire_read_answer() */
    struct hf_scope *scope; /* the rest is not used by the lexer */
    struct hf_str message;  /* of TROUBLE_TYPE and TROUBLE_REFUSED */
    struct hf__buf flat;    /* where attribute values are built, one behind the other */
    struct hf__buf scratch; /* for texts that are needed only until the next one */
    struct hf_item poison;  /* of the item being read; absent while it is sound */
    struct hf_str attr;     /* the top-level attribute being read */
};

/* ---- lexing, json_read.c -------------------------------------------------------------------- */

enum json_kind {
    JSON_BAD, /* nothing that begins a value; trouble is set */
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_ARRAY,
    JSON_OBJECT
};

/* Both set the trouble and return false, so that giving up is one statement. */
bool hf__json_malformed(struct json *json);
bool hf__json_nomem(struct json *json);

extern const uint8_t hf__json_kinds[256]; /* by the first character */

static inline void hf__json_spaces(struct json *json)
{
    while (json->at < json->end && (unsigned char)*json->at <= ' ') {
        char c = *json->at;

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return;
        json->at++;
    }
}

/* What the next value is, judged by its first character; the cursor stays in front of it. */
static inline enum json_kind hf__json_kind(struct json *json)
{
    enum json_kind kind = JSON_BAD;

    hf__json_spaces(json);
    if (json->at < json->end)
        kind = (enum json_kind)hf__json_kinds[(unsigned char)*json->at];
    if (kind == JSON_BAD)
        hf__json_malformed(json);
    return kind;
}

/* A string as it stands between its quotes, known to be valid. */
struct json_text {
    struct hf_str raw;
    bool escaped;
};
bool hf__json_string_slow(struct json *json, struct json_text *text);

enum { PLAIN_STEP = 16 };

/* How many of the PLAIN_STEP bytes at `at` stand for themselves, up to the first that is a quote, a
 * backslash, a control character or outside of ASCII. */
static inline size_t hf__json_plain(const char *at)
{
#if defined(__SSE2__)
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    /* Signed: everything from 0x80 up is below ' ' as well. */
    __m128i odd = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
                               _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')));

    return (size_t)__builtin_ctz((unsigned)_mm_movemask_epi8(odd) | 1u << PLAIN_STEP);
#else
    size_t run = 0;

    while (run < PLAIN_STEP && (signed char)at[run] >= ' ' && at[run] != '"' && at[run] != '\\')
        run++;
    return run;
#endif
}

/* Most strings are names and short values, and end within the first step. */
static inline bool hf__json_string(struct json *json, struct json_text *text)
{
    const char *from = json->at + 1;

    if (json->end - json->at > PLAIN_STEP && *json->at == '"') {
        size_t run = hf__json_plain(from);

        if (run < PLAIN_STEP && from[run] == '"') {
            *text = (struct json_text){hf_str_of(from, run), false};
            json->at = from + run + 1;
            return true;
        }
    }
    return hf__json_string_slow(json, text);
}

/* Unescape into `out`, which has raw.len bytes; the length. It cannot fail. */
size_t hf__json_unescape(struct hf_str raw, char *out);

/* The text of a number. */
bool hf__json_number(struct json *json, struct hf_str *text);

/* Step over true, false or null, which hf__json_kind() announced. */
bool hf__json_word(struct json *json, enum json_kind kind);

/*
 * Walk what is between brackets, the cursor being in front of the opening one:
 *
 *     for (bool more = hf__json_enter(&json, '}'); more; more = hf__json_more(&json, '}')) {
 *         if (!hf__json_name(&json, &name) || !read_value(&json))
 *             return false;
 *     }
 *     return hf__json_sound(&json);
 */
static inline bool hf__json_enter(struct json *json, char close)
{
    json->at++;
    hf__json_spaces(json);
    if (json->at == json->end)
        return hf__json_malformed(json);
    if (*json->at == close) {
        json->at++;
        return false;
    }
    return true;
}

static inline bool hf__json_more(struct json *json, char close)
{
    hf__json_spaces(json);
    if (json->at == json->end)
        return hf__json_malformed(json);
    if (*json->at == close) {
        json->at++;
        return false;
    }
    if (*json->at != ',')
        return hf__json_malformed(json);
    json->at++;
    return true;
}

/* A member's name and the colon behind it. */
static inline bool hf__json_name(struct json *json, struct json_text *name)
{
    hf__json_spaces(json);
    if (!hf__json_string(json, name))
        return false;
    hf__json_spaces(json);
    if (json->at == json->end || *json->at != ':')
        return hf__json_malformed(json);
    json->at++;
    return true;
}

static inline bool hf__json_sound(const struct json *json)
{
    return json->trouble == TROUBLE_NONE;
}

/* Step over any value, at most JSON_DEPTH_MAX deep. */
bool hf__json_skip(struct json *json);

/* Only spaces up to the end? */
bool hf__json_ended(struct json *json);

/*
 * The value of a number's text times 10^scale, cut towards zero; false when that is beyond 64
 * bits.
 */
bool hf__json_scaled(struct hf_str text, int scale, int64_t *out);

/* The double nearest to a number's text, whatever the locale. */
double hf__json_double(struct hf_str text);

/* ---- the reader ----------------------------------------------------------------------------- */

/* The text of a string: borrowed, or unescaped into the scope, or into the scratch buffer. */
bool hf__read_kept(struct json *json, struct json_text text, struct hf_str *out);
bool hf__read_unescaped(struct json *json, struct json_text text, struct hf_str *out);

static inline bool hf__read_keep(struct json *json, struct json_text text, struct hf_str *out)
{
    *out = text.raw;
    return !text.escaped || hf__read_kept(json, text, out);
}

static inline bool hf__read_scratch(struct json *json, struct json_text text, struct hf_str *out)
{
    *out = text.raw;
    return !text.escaped || hf__read_unescaped(json, text, out);
}

/* Trouble of type: "<what was found> cannot be converted to <wanted>", and its kin. */
bool hf__read_type_error(struct json *json, const char *format, ...) HF_PRINTF(2, 3);

/* The value at the cursor is no scalar of type `wanted`: say so. */
bool hf__read_not_scalar(struct json *json, enum json_kind kind, const char *wanted);

/* Read a string, or a truth; else report that the value does not fit the scalar type `wanted`. */
bool hf__read_bool(struct json *json, bool *out);

static inline bool hf__read_string(struct json *json, const char *wanted, struct json_text *text)
{
    enum json_kind kind = hf__json_kind(json);

    if (kind != JSON_STRING)
        return hf__read_not_scalar(json, kind, wanted);
    return hf__json_string(json, text);
}

/* The kind of value, after checking that it is a `want` (an object or an array). `scalar` is what
 * a string or number here is called, `type` the type's name in Java. */
bool hf__read_not_compound(struct json *json, enum json_kind kind, const char *scalar,
                           const char *type);

/* One item, one value, one map of strings at the cursor, value_read.c. */
bool hf__read_item(struct json *json, const char *scalar, struct hf_item *out);
bool hf__read_value(struct json *json, const char *scalar, struct hf_value *out);
bool hf__read_names(struct json *json, const char *scalar, struct hf_item *out);

/* What a scalar is called in place of a member that is a list, map or structure, and in place of
 * an element of a list or map that is one. */
#define FIELD_SCALAR "Unexpected field type"
#define ELEMENT_SCALAR "Unexpected value type in payload"

/* The error of the cursor's trouble, in its scope. `whole` is all of the text. */
enum hf_status hf__read_fail(struct json *json, struct hf_str whole);

/* ---- the writer ----------------------------------------------------------------------------- */

void hf__write_int(struct hf__buf *buf, int64_t value);
void hf__write_double(struct hf__buf *buf, double value);

#endif
