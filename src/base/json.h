/*
 * base/json.h: a cursor over JSON text (RFC 8259): what is there, is it valid, and where it is
 * not.
 *
 * The cursor builds nothing and allocates nothing: its caller, the walker, decides what to do with
 * each value. All readers of JSON in this library are such walkers: of DynamoDB's JSON (wire/), of events and change
 * records (coord/json.c), of the command's arguments (cli/frame/output/json_read.c).
 *
 * Functions return false when they cannot go on. The cursor then stands where the text is wrong, and
 * `wrong` says what was expected there. A walker does not continue after a false: it returns
 * false, too.
 */
#ifndef HF_BASE_JSON_H
#define HF_BASE_JSON_H

#include "base/base.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { JSON_LEVELS_MAX = 1024 }; /* that can be skipped */

enum { JSON_SOUND, JSON_MALFORMED }; /* higher numbers are the walker's own */

struct json_cursor {
    const char *at;
    const char *end;
    int error;        /* JSON_SOUND, JSON_MALFORMED, or the walker's own */
    bool lone_halves; /* accept \u escapes of half of a surrogate pair: the text is kept as it is */
    const char *wrong; /* what was expected, when the text is malformed */
};

enum json_kind {
    JSON_BAD, /* nothing that begins a value; error is set */
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_ARRAY,
    JSON_OBJECT
};

/* Record what is wrong, unless something was before, and return false: giving up is one
 * statement. */
bool hf__json_wrong(struct json_cursor *json, const char *what);

extern const uint8_t hf__json_kinds[256]; /* by the first character */

static inline void hf__json_spaces(struct json_cursor *json)
{
    while (json->at < json->end && (unsigned char)*json->at <= ' ') {
        char c = *json->at;

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return;
        json->at++;
    }
}

/* What the next value is, judged by its first character; the cursor stays in front of it. */
static inline enum json_kind hf__json_kind(struct json_cursor *json)
{
    enum json_kind kind = JSON_BAD;

    hf__json_spaces(json);
    if (json->at < json->end)
        kind = (enum json_kind)hf__json_kinds[(unsigned char)*json->at];
    if (kind == JSON_BAD)
        hf__json_wrong(json, "expected a value");
    return kind;
}

/* A string as it stands between its quotes, known to be valid. */
struct json_string {
    struct hf_str raw;
    bool escaped;
};
bool hf__json_string_slow(struct json_cursor *json, struct json_string *text);

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
static inline bool hf__json_string(struct json_cursor *json, struct json_string *text)
{
    const char *from = json->at + 1;

    if (json->end - json->at > PLAIN_STEP && *json->at == '"') {
        size_t run = hf__json_plain(from);

        if (run < PLAIN_STEP && from[run] == '"') {
            *text = (struct json_string){hf_str_of(from, run), false};
            json->at = from + run + 1;
            return true;
        }
    }
    return hf__json_string_slow(json, text);
}

/* Unescape into `out`, which has raw.len bytes; the length. It cannot fail. */
size_t hf__json_unescape(struct hf_str raw, char *out);

/* The text of a number. */
bool hf__json_number(struct json_cursor *json, struct hf_str *text);

/* Step over true, false or null, which hf__json_kind() announced. */
bool hf__json_word(struct json_cursor *json, enum json_kind kind);

/*
 * Walk what is between brackets, the cursor being in front of the opening one:
 *
 *     for (bool more = hf__json_enter(&json, '}'); more; more = hf__json_more(&json, '}')) {
 *         if (!hf__json_name(&json, &name) || !read_value(&json))
 *             return false;
 *     }
 *     return hf__json_sound(&json);
 */
static inline bool hf__json_enter(struct json_cursor *json, char close)
{
    assert(json->at < json->end);
    json->at++;
    hf__json_spaces(json);
    if (json->at == json->end)
        return hf__json_wrong(json,
                              close == '}' ? "expected a name in quotes" : "expected a value");
    if (*json->at == close) {
        json->at++;
        return false;
    }
    return true;
}

static inline bool hf__json_more(struct json_cursor *json, char close)
{
    hf__json_spaces(json);
    if (json->at < json->end && *json->at == close) {
        json->at++;
        return false;
    }
    if (json->at == json->end || *json->at != ',')
        return hf__json_wrong(json, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    json->at++;
    return true;
}

/* A member's name and the colon behind it. */
static inline bool hf__json_name(struct json_cursor *json, struct json_string *name)
{
    hf__json_spaces(json);
    if (!hf__json_string(json, name))
        return false;
    hf__json_spaces(json);
    if (json->at == json->end || *json->at != ':')
        return hf__json_wrong(json, "expected ':'");
    json->at++;
    return true;
}

static inline bool hf__json_sound(const struct json_cursor *json)
{
    return json->error == JSON_SOUND;
}

/* Step over any value of at most `levels` levels, which are JSON_LEVELS_MAX at most. */
bool hf__json_skip(struct json_cursor *json, int levels);

/* Only spaces up to the end? */
bool hf__json_ended(struct json_cursor *json);

/* Step over one value of at most `levels` levels, which has to be all of the text. */
bool hf__json_skip_all(struct json_cursor *json, int levels);

/*
 * The value of a number's text times 10^scale, cut towards zero; false when that is beyond 64
 * bits.
 */
bool hf__json_scaled(struct hf_str text, int scale, int64_t *out);

/* The double nearest to a number's text, whatever the locale. */
double hf__json_double(struct hf_str text);

#endif
