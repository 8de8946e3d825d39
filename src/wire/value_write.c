/*
 * wire/value_write.c: strings, numbers, attribute values and items as JSON.
 *
 * Runs of bytes that need no escape are found 64 and 16 at a time and copied whole. Only the quote,
 * the backslash and control characters are escaped; everything else is written as it is, so what
 * was UTF-8 stays UTF-8.
 *
 * A poisoned item has no JSON: writing one fails the buffer. Callers check before they write.
 */
#include "base/base64.h"
#include "wire/private.h"

#include <math.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- strings -------------------------------------------------------------------------------- */

#if defined(__SSE2__)

static inline __m128i bytes_load16(const char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Which bytes have to be escaped: all bits of those. */
static inline __m128i odd_of(__m128i bytes)
{
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);

    return _mm_or_si128(_mm_or_si128(quote, backslash), control);
}

/* The same, a bit for each. */
static inline unsigned odd_mask16(const char *at)
{
    return (unsigned)_mm_movemask_epi8(odd_of(bytes_load16(at)));
}

static inline bool has_odd64(const char *at)
{
    __m128i first = _mm_or_si128(odd_of(bytes_load16(at)), odd_of(bytes_load16(at + 16)));
    __m128i second = _mm_or_si128(odd_of(bytes_load16(at + 32)), odd_of(bytes_load16(at + 48)));

    return _mm_movemask_epi8(_mm_or_si128(first, second)) != 0;
}

static inline bool bytes_copy16(uint8_t *to, const char *from)
{
    __m128i bytes = bytes_load16(from);

    _mm_storeu_si128((__m128i *)(void *)to, bytes);
    return _mm_movemask_epi8(odd_of(bytes)) == 0;
}

#endif

/* How many bytes from `at` on stand for themselves. */
static inline size_t plain_run(const char *at, size_t len)
{
    size_t run = 0;

#if defined(__SSE2__)
    while (len - run >= 64 && !has_odd64(at + run))
        run += 64;
    while (len - run >= 16) {
        unsigned odd = odd_mask16(at + run);

        if (odd)
            return run + (size_t)__builtin_ctz(odd);
        run += 16;
    }
    if (run > 0 && odd_mask16(at + len - 16) == 0)
        return len;
#endif
    while (run < len) {
        unsigned char c = (unsigned char)at[run];

        if (c < 0x20 || c == '"' || c == '\\')
            break;
        run++;
    }
    return run;
}

static void put_escape(struct hf__buf *buf, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

    assert(c < 0x20 || c == '"' || c == '\\');
    if (c < 0x20 && !letters[c]) {
        hf__buf_put(buf, escape, sizeof(escape));
        return;
    }
    escape[1] = c < 0x20 ? letters[c] : (char)c;
    hf__buf_put(buf, escape, 2);
}

/* Has any of the eight bytes to be escaped? */
static inline bool has_odd8(uint64_t bytes)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quote = bytes ^ ones * '"';
    uint64_t backslash = bytes ^ ones * '\\';

    /* Subtracting borrows from a byte's top bit when it is too small, and only then. */
    return (((bytes - ones * 0x20) & ~bytes) | ((quote - ones) & ~quote) |
            ((backslash - ones) & ~backslash)) &
           tops;
}

static inline bool bytes_copy8(uint8_t *to, const char *from)
{
    uint64_t bytes;

    memcpy(&bytes, from, sizeof(bytes));
    memcpy(to, &bytes, sizeof(bytes));
    return !has_odd8(bytes);
}

/* Copy a text, checking on the way that nothing in it needs an escape; short texts are most. What
 * a step leaves over is copied with the end of the step before once more. */
static inline bool copy_plain(uint8_t *to, struct hf_str text)
{
    bool plain = true;

#if defined(__SSE2__)
    if (text.len >= 16) {
        size_t at = 0;

        for (; plain && at + 16 <= text.len; at += 16)
            plain = bytes_copy16(to + at, text.ptr + at);
        return plain && bytes_copy16(to + text.len - 16, text.ptr + text.len - 16);
    }
#endif
    if (text.len >= 8) {
        size_t at = 0;

        for (; plain && at + 8 <= text.len; at += 8)
            plain = bytes_copy8(to + at, text.ptr + at);
        return plain && bytes_copy8(to + text.len - 8, text.ptr + text.len - 8);
    }
    if (text.len >= 4) {
        uint32_t first, last;

        memcpy(&first, text.ptr, 4);
        memcpy(&last, text.ptr + text.len - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + text.len - 4, &last, 4);
        return !has_odd8((uint64_t)first << 32 | last);
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        to[i] = c;
        plain &= c >= 0x20 && c != '"' && c != '\\';
    }
    return plain;
}

enum { SHORT_TEXT = 64 };

void hf__wire_write_str(struct hf__buf *buf, struct hf_str text)
{
    uint8_t *to = hf__buf_reserve(buf, text.len + 2);
    size_t at;

    assert(text.ptr || !text.len);
    if (!to)
        return;
    *to = '"';
    if (text.len <= SHORT_TEXT && copy_plain(to + 1, text)) {
        to[text.len + 1] = '"';
        buf->len += text.len + 2;
        return;
    }
    at = plain_run(text.ptr, text.len);
    memcpy(to + 1, text.ptr, at);
    buf->len += 1 + at;
    assert(at <= text.len);
    while (at < text.len) {
        size_t run;

        put_escape(buf, (unsigned char)text.ptr[at++]);
        run = plain_run(text.ptr + at, text.len - at);
        hf__buf_put(buf, text.ptr + at, run);
        at += run;
    }
    hf__buf_put_byte(buf, '"');
}

/* ---- numbers -------------------------------------------------------------------------------- */

void hf__wire_write_int(struct hf__buf *buf, int64_t value)
{
    char text[24];
    char *at = text + sizeof(text);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0)
        *--at = '-';
    assert(at >= text);
    hf__buf_put(buf, at, (size_t)(text + sizeof(text) - at));
}

/* The fewest digits that read back as the same double. printf() puts the locale's point among
 * them, which may be any bytes but those of a number. */
static void write_fraction(struct hf__buf *buf, double value)
{
    char text[64];
    size_t len = 0;

    assert(isfinite(value));
    for (int digits = 1; digits <= 17; digits++) {
        int printed = snprintf(text, sizeof(text), "%.*g", digits, value);

        len = 0;
        for (int i = 0; i < printed; i++) {
            if (char_in(text[i], "0123456789+-e"))
                text[len++] = text[i];
            else if (len > 0 && text[len - 1] != '.')
                text[len++] = '.';
        }
        if (hf__json_double(hf_str_of(text, len)) == value)
            break;
    }
    assert(len > 0 && len < sizeof(text));
    hf__buf_put(buf, text, len);
}

void hf__wire_write_double(struct hf__buf *buf, double value)
{
    enum { EXACT = 1 << 30 };
    int64_t halves;

    if (!isfinite(value)) {
        hf__buf_put_byte(buf, '0'); /* JSON has no word for it */
        return;
    }
    if (!(value > -EXACT && value < EXACT) || value * 2 != (double)(int64_t)(value * 2)) {
        write_fraction(buf, value);
        return;
    }
    /* Capacity comes in halves. */
    halves = (int64_t)(value * 2);
    if (halves == -1)
        hf__buf_put_byte(buf, '-');
    hf__wire_write_int(buf, halves / 2);
    if (halves % 2)
        hf__buf_put_str(buf, HF_STR(".5"));
}

/* ---- attribute values ----------------------------------------------------------------------- */

/* "text" of a number. */
static void write_number(struct hf__buf *buf, struct hf_bytes bytes)
{
    char *to = (char *)hf__buf_reserve(buf, NUMBER_TEXT_MAX + 2);
    size_t len;

    if (!to)
        return;
    to[0] = '"';
    len = hf__number_text(bytes.ptr, bytes.len, to + 1);
    assert(len > 0 && len <= NUMBER_TEXT_MAX);
    to[len + 1] = '"';
    buf->len += len + 2;
}

static void write_binary(struct hf__buf *buf, struct hf_bytes bytes)
{
    char *to = (char *)hf__buf_reserve(buf, hf__base64_encoded_len(bytes.len) + 2);
    size_t len;

    if (!to)
        return;
    to[0] = '"';
    len = hf__base64_encode(bytes, to + 1);
    assert(len == hf__base64_encoded_len(bytes.len));
    to[len + 1] = '"';
    buf->len += len + 2;
}

static void write_scalar(struct hf__buf *buf, enum hf_type type, struct hf_bytes bytes)
{
    switch (type) {
    case HF_TYPE_N:
    case HF_TYPE_NS:
        write_number(buf, bytes);
        break;
    case HF_TYPE_B:
    case HF_TYPE_BS:
        write_binary(buf, bytes);
        break;
    default:
        hf__wire_write_str(buf, hf_str_of((const char *)bytes.ptr, bytes.len));
        break;
    }
}

static void write_set(struct hf__buf *buf, struct hf_value set)
{
    struct value_walk walk = hf__value_walk(set);
    char open = '[';

    while (hf__value_next(&walk)) {
        hf__buf_put_byte(buf, (uint8_t)open);
        write_scalar(buf, walk.type, walk.scalar);
        open = ',';
    }
    hf__buf_put_byte(buf, ']');
}

/* What is before it, the name, and the colon: in one piece, as names are short and plain. */
static void write_name(struct hf__buf *buf, char before, struct hf_str name)
{
    uint8_t *to = hf__buf_reserve(buf, name.len + 4);

    if (!to)
        return;
    to[0] = (uint8_t)before;
    to[1] = '"';
    if (name.len <= SHORT_TEXT && copy_plain(to + 2, name)) {
        to[name.len + 2] = '"';
        to[name.len + 3] = ':';
        buf->len += name.len + 4;
        return;
    }
    buf->len++;
    hf__wire_write_str(buf, name);
    hf__buf_put_byte(buf, ':');
}

static void write_members(struct hf__buf *buf, struct hf_value map)
{
    struct value_walk walk = hf__value_walk(map);
    char before = '{';

    if (walk.left == 0)
        hf__buf_put_byte(buf, '{');
    while (hf__value_next(&walk)) {
        write_name(buf, before, walk.name);
        hf__wire_write_value(buf, walk.value);
        before = ',';
    }
    hf__buf_put_byte(buf, '}');
}

static void write_list(struct hf__buf *buf, struct hf_value list)
{
    struct value_walk walk = hf__value_walk(list);
    const uint32_t count = walk.left;

    hf__buf_put_byte(buf, '[');
    while (hf__value_next(&walk)) {
        if (walk.left + 1 != count)
            hf__buf_put_byte(buf, ',');
        hf__wire_write_value(buf, walk.value);
    }
    hf__buf_put_byte(buf, ']');
}

void hf__wire_write_value(struct hf__buf *buf, struct hf_value value)
{
    /* Always copied as eight bytes, of which the first few count. */
    static const struct {
        char text[8];
        uint8_t len;
    } heads[] = {
        {"", 0},           {"{\"S\":", 5},    {"{\"N\":", 5},  {"{\"B\":", 5},
        {"{\"BOOL\":", 8}, {"{\"NULL\":", 8}, {"{\"M\":", 5},  {"{\"L\":", 5},
        {"{\"SS\":", 6},   {"{\"NS\":", 6},   {"{\"BS\":", 6},
    };
    _Static_assert(ARRAY_LEN(heads) == HF_TYPE_BS + 1, "every type is there, in its order");
    uint8_t *to = hf__buf_reserve(buf, sizeof(heads[0].text));
    enum hf_type type = hf_value_type(value);

    if (type == HF_TYPE_NONE)
        buf->failed = true;
    if (!to || buf->failed)
        return;
    memcpy(to, heads[type].text, sizeof(heads[type].text));
    buf->len += heads[type].len;
    switch (type) {
    case HF_TYPE_S:
    case HF_TYPE_N:
    case HF_TYPE_B:
        write_scalar(buf, type, hf__value_scalar(value));
        break;
    case HF_TYPE_BOOL:
        hf__buf_put_str(buf, hf_value_true(value) ? HF_STR("true") : HF_STR("false"));
        break;
    case HF_TYPE_NULL:
        hf__buf_put_str(buf, HF_STR("true"));
        break;
    case HF_TYPE_M:
        write_members(buf, value);
        break;
    case HF_TYPE_L:
        write_list(buf, value);
        break;
    default:
        write_set(buf, value);
        break;
    }
    hf__buf_put_byte(buf, '}');
}

void hf__wire_write_item(struct hf__buf *buf, struct hf_item item)
{
    if (hf__item_poisoned(item))
        buf->failed = true;
    else
        write_members(buf, hf_item_value(item));
}

struct hf_str hf_item_to_json(struct hf_scope *s, struct hf_item item)
{
    struct hf__buf buf = {.scope = s};

    assert(s);
    if (!item.ptr)
        return hf_str_of(NULL, 0);
    hf__wire_write_item(&buf, item);
    hf__buf_put_byte(&buf, '\0'); /* for printf(), as other texts in a scope */
    return buf.failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)buf.ptr, buf.len - 1);
}
