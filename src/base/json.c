/*
 * base/json.c: lexing JSON; see the header.
 *
 * What always holds:
 *
 *  (1) Every byte is checked: strings are UTF-8 in its shortest form without surrogates, control
 *      characters are escaped, numbers have no leading zeros, and so on. What hf__json_string()
 *      let pass, hf__json_unescape() can write without a check.
 *  (2) A \u escape of one half of a surrogate pair without the other is malformed: no UTF-8 could
 *      hold it, and to replace it would change what was sent. Texts that are handed on as they were
 *      written may have them, if the cursor says so; those cannot be unescaped.
 *  (3) Skipping does not recurse, and stops as malformed beyond the levels that were asked for.
 *      Nothing that is nested deeper crashes us.
 */
#include "base/json.h"

#include "base/utf8.h"

bool hf__json_wrong(struct json_cursor *json, const char *what)
{
    if (json->error == JSON_SOUND) {
        json->error = JSON_MALFORMED;
        json->wrong = what;
    }
    return false;
}

/* The same with the cursor where it is wrong. */
static bool wrong_at(struct json_cursor *json, const char *at, const char *what)
{
    json->at = at;
    return hf__json_wrong(json, what);
}

const uint8_t hf__json_kinds[256] = {
    ['"'] = JSON_STRING, ['{'] = JSON_OBJECT, ['['] = JSON_ARRAY,  ['t'] = JSON_TRUE,
    ['f'] = JSON_FALSE,  ['n'] = JSON_NULL,   ['-'] = JSON_NUMBER, ['0'] = JSON_NUMBER,
    ['1'] = JSON_NUMBER, ['2'] = JSON_NUMBER, ['3'] = JSON_NUMBER, ['4'] = JSON_NUMBER,
    ['5'] = JSON_NUMBER, ['6'] = JSON_NUMBER, ['7'] = JSON_NUMBER, ['8'] = JSON_NUMBER,
    ['9'] = JSON_NUMBER,
};

bool hf__json_ended(struct json_cursor *json)
{
    hf__json_spaces(json);
    return json->at == json->end;
}

/* ---- strings -------------------------------------------------------------------------------- */

/* Step over bytes that stand for themselves: no quote, backslash, control or non-ASCII. */
static inline const char *skip_plain(const char *at, const char *end)
{
    for (; end - at >= PLAIN_STEP; at += PLAIN_STEP) {
        size_t run = hf__json_plain(at);

        if (run < PLAIN_STEP)
            return at + run;
    }
    while (at < end && (signed char)*at >= ' ' && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* The four hex digits at `p`; -1 when they are not. */
static int hex4_read(const char *p)
{
    int value = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

enum {
    ESCAPE_HEX = 6, /* \uXXXX */
    HIGH_FIRST = 0xD800,
    LOW_FIRST = 0xDC00,
    LOW_LAST = 0xDFFF
};

/* Characters of the escape at `at`, which points to the backslash; 0 when it is none. */
static size_t escape_length(const struct json_cursor *json, const char *at)
{
    const char *end = json->end;
    int code;
    int low;

    if (end - at < 2)
        return 0;
    switch (at[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return 2;
    case 'u':
        break;
    default:
        return 0;
    }
    if (end - at < ESCAPE_HEX)
        return 0;
    code = hex4_read(at + 2);
    if (code < 0)
        return 0;
    if (code < HIGH_FIRST || code > LOW_LAST || json->lone_halves) /* (2) */
        return ESCAPE_HEX;
    if (code >= LOW_FIRST)
        return 0;
    if (end - at < 2 * ESCAPE_HEX || at[ESCAPE_HEX] != '\\' || at[ESCAPE_HEX + 1] != 'u')
        return 0;
    low = hex4_read(at + ESCAPE_HEX + 2);
    return low >= LOW_FIRST && low <= LOW_LAST ? 2 * ESCAPE_HEX : 0;
}

bool hf__json_string_slow(struct json_cursor *json, struct json_string *text)
{
    const char *start;
    const char *at;

    if (json->at == json->end || *json->at != '"')
        return hf__json_wrong(json, "expected a name in quotes"); /* who reads values has looked */
    start = at = json->at + 1;
    text->escaped = false;
    for (;;) {
        size_t step;

        at = skip_plain(at, json->end);
        if (at == json->end)
            return wrong_at(json, at, "a string has no end");
        if (*at == '"')
            break;
        if ((unsigned char)*at < ' ')
            return wrong_at(json, at, "a control character in a string");
        if (*at == '\\') {
            step = escape_length(json, at);
            text->escaped = true;
        } else {
            step = hf__utf8_length((const unsigned char *)at, (size_t)(json->end - at));
        }
        if (step == 0)
            return wrong_at(json, at,
                            *at == '\\' ? "an escape that JSON does not have"
                                        : "invalid UTF-8 in a string");
        at += step;
    }
    text->raw = hf_str_of(start, (size_t)(at - start));
    json->at = at + 1;
    return true;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* Write what the escape at `at` stands for, and return where the text goes on. */
static const char *unescape_one(const char *at, char **to)
{
    uint32_t code;

    switch (at[1]) {
    case 'b':
        *(*to)++ = '\b';
        return at + 2;
    case 'f':
        *(*to)++ = '\f';
        return at + 2;
    case 'n':
        *(*to)++ = '\n';
        return at + 2;
    case 'r':
        *(*to)++ = '\r';
        return at + 2;
    case 't':
        *(*to)++ = '\t';
        return at + 2;
    case 'u':
        break;
    default:
        *(*to)++ = at[1];
        return at + 2;
    }
    code = (uint32_t)hex4_read(at + 2);
    at += ESCAPE_HEX;
    if (code >= HIGH_FIRST && code < LOW_FIRST) {
        uint32_t low = (uint32_t)hex4_read(at + 2);

        code = 0x10000 + ((code - HIGH_FIRST) << 10) + (low - LOW_FIRST);
        at += ESCAPE_HEX;
    }
    *to = put_utf8(*to, code);
    return at;
}

size_t hf__json_unescape(struct hf_str raw, char *out)
{
    const char *at = raw.ptr;
    const char *end = raw.ptr + raw.len;
    char *to = out;

    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t run = (size_t)((escape ? escape : end) - at);

        memcpy(to, at, run);
        to += run;
        at += run;
        if (escape)
            at = unescape_one(at, &to);
    }
    return (size_t)(to - out);
}

/* ---- numbers and words ---------------------------------------------------------------------- */

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

bool hf__json_number(struct json_cursor *json, struct hf_str *text)
{
    const char *at = json->at;
    const char *end = json->end;
    const char *part;

    if (at < end && *at == '-')
        at++;
    part = at;
    at = skip_digits(at, end);
    if (at == part || (*part == '0' && at - part > 1))
        return wrong_at(json, at, "a malformed number");
    if (at < end && *at == '.') {
        part = ++at;
        at = skip_digits(at, end);
        if (at == part)
            return wrong_at(json, at, "a malformed number");
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        part = at;
        at = skip_digits(at, end);
        if (at == part)
            return wrong_at(json, at, "a malformed number");
    }
    *text = hf_str_of(json->at, (size_t)(at - json->at));
    json->at = at;
    return true;
}

bool hf__json_word(struct json_cursor *json, enum json_kind kind)
{
    const char *word = kind == JSON_TRUE ? "true" : kind == JSON_FALSE ? "false" : "null";
    size_t len = strlen(word);

    if ((size_t)(json->end - json->at) < len || memcmp(json->at, word, len) != 0)
        return hf__json_wrong(json, "expected a value");
    json->at += len;
    return true;
}

/* A number taken apart: its digits without zeros in front, and the power of ten behind them. */
struct decimal {
    bool negative;
    const char *digits; /* may have a point among them */
    const char *digits_end;
    int64_t power;
};

enum { POWER_MAX = 1000000 }; /* beyond, a number is as good as infinite, or zero */

static struct decimal take_apart(struct hf_str text)
{
    const char *at = text.ptr;
    const char *end = text.ptr + text.len;
    const char *point;
    struct decimal decimal = {.negative = *at == '-'};

    if (decimal.negative)
        at++;
    decimal.digits = at;
    while (at < end && *at != 'e' && *at != 'E')
        at++;
    decimal.digits_end = at;
    if (at < end) {
        bool negative;

        at++;
        negative = *at == '-';
        if (*at == '-' || *at == '+')
            at++;
        for (; at < end && decimal.power < POWER_MAX; at++)
            decimal.power = decimal.power * 10 + (*at - '0');
        if (negative)
            decimal.power = -decimal.power;
    }
    point = memchr(decimal.digits, '.', (size_t)(decimal.digits_end - decimal.digits));
    if (point)
        decimal.power -= decimal.digits_end - point - 1;
    return decimal;
}

bool hf__json_scaled(struct hf_str text, int scale, int64_t *out)
{
    struct decimal decimal = take_apart(text);
    int64_t places = decimal.power + scale; /* zeros to add, or digits to cut */
    int64_t left = decimal.digits_end - decimal.digits;
    int64_t value = 0;

    if (memchr(decimal.digits, '.', (size_t)left))
        left--;
    left += places < 0 ? places : 0;
    for (const char *at = decimal.digits; left > 0; at++) {
        if (*at == '.')
            continue;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return false;
        left--;
    }
    for (; places > 0 && value != 0; places--)
        if (__builtin_mul_overflow(value, 10, &value))
            return false;
    *out = decimal.negative ? -value : value;
    return true;
}

double hf__json_double(struct hf_str text)
{
    enum { DIGITS_MAX = 800 }; /* more cannot change which double is nearest */
    struct decimal decimal = take_apart(text);
    char plain[DIGITS_MAX + 32];
    size_t len = 0;

    /* Digits and an exponent, without a point: strtod() reads that alike in every locale. */
    for (const char *at = decimal.digits; at < decimal.digits_end; at++) {
        if (*at == '.')
            continue;
        if (len < DIGITS_MAX) {
            if (len > 0 || *at != '0')
                plain[len++] = *at;
        } else {
            decimal.power++;
        }
    }
    if (len == 0)
        return 0;
    len += (size_t)snprintf(plain + len, sizeof(plain) - len, "e%lld", (long long)decimal.power);
    plain[len] = '\0';
    return decimal.negative ? -strtod(plain, NULL) : strtod(plain, NULL);
}

/* ---- skipping ------------------------------------------------------------------------------- */

static bool skip_scalar(struct json_cursor *json, enum json_kind kind)
{
    struct json_string text;
    struct hf_str number;

    switch (kind) {
    case JSON_STRING:
        return hf__json_string(json, &text);
    case JSON_NUMBER:
        return hf__json_number(json, &number);
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return hf__json_word(json, kind);
    default:
        return false; /* hf__json_kind() has said so */
    }
}

bool hf__json_skip(struct json_cursor *json, int levels)
{
    char close[JSON_LEVELS_MAX]; /* the brackets that are open */
    int depth = 0;
    struct json_string name;

    assert(levels <= JSON_LEVELS_MAX);
    for (;;) {
        enum json_kind kind = hf__json_kind(json);
        bool inside = false;

        if (kind == JSON_OBJECT || kind == JSON_ARRAY) {
            if (depth >= levels)
                return hf__json_wrong(json, "too many levels");
            close[depth] = kind == JSON_OBJECT ? '}' : ']';
            inside = hf__json_enter(json, close[depth]);
            depth += inside;
        } else if (!skip_scalar(json, kind)) {
            return false;
        }
        while (!inside && depth > 0 && hf__json_sound(json)) {
            inside = hf__json_more(json, close[depth - 1]);
            depth -= !inside;
        }
        if (!hf__json_sound(json))
            return false;
        if (depth == 0)
            return true;
        if (close[depth - 1] == '}' && !hf__json_name(json, &name))
            return false;
    }
}

bool hf__json_skip_all(struct json_cursor *json, int levels)
{
    if (!hf__json_skip(json, levels))
        return false;
    return hf__json_ended(json) || hf__json_wrong(json, "something follows the value");
}
