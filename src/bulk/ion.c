/*
 * bulk/ion.c: items in the text form of Amazon Ion, as far as DynamoDB writes and reads it:
 *
 *     $ion_1_0 {Item:{Authors:$dynamodb_SS::["a","b"],Id:103.,Pages:6d2,Raw:{{aGk=}},Sold:true}}
 *
 *     S   string                    L           list
 *     N   decimal                   M           struct
 *     B   blob                      SS, NS, BS  list with an annotation
 *     BOOL, NULL   bool, null
 *
 * When reading, whole numbers and floats are numbers, too, and names may be in either kind of quotes, as
 * JSON has them. Symbols as values, timestamps, clobs, long strings, s-expressions and comments are
 * refused: no item is made of them.
 *
 * What always holds:
 *
 *  (1) Reading recurses as deep as values may be, and no deeper.
 *  (2) Nothing is read behind the end of the text.
 */
#include "base/base64.h"
#include "base/utf8.h"
#include "bulk/record.h"
#include "model/value.h"

enum { PLAIN_ZEROS_MAX = 6 }; /* behind the point, before a number gets an exponent */

struct ion {
    struct hf_scope *s;
    const char *at;
    const char *end;
    const char *wrong;  /* a sentence, when it went wrong */
    struct hf__buf out; /* the value that is built */
};

static bool ion_wrong(struct ion *ion, const char *why)
{
    if (!ion->wrong)
        ion->wrong = why;
    return false;
}

static void ion_spaces(struct ion *ion)
{
    while (ion->at < ion->end && (*ion->at == ' ' || *ion->at == '\t' || *ion->at == '\n' ||
                                  *ion->at == '\r' || *ion->at == '\f' || *ion->at == '\v'))
        ion->at++;
}

/* Is this next? Then it is taken. */
static bool ion_take(struct ion *ion, const char *text)
{
    size_t len = strlen(text);

    if ((size_t)(ion->end - ion->at) < len || memcmp(ion->at, text, len) != 0)
        return false;
    ion->at += len;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An identifier; empty when there is none. */
static struct hf_str ion_word(struct ion *ion)
{
    const char *start = ion->at;

    if (ion->at < ion->end && is_digit(*ion->at))
        return hf_str_of(start, 0);
    while (ion->at < ion->end && is_word(*ion->at))
        ion->at++;
    return hf_str_of(start, (size_t)(ion->at - start));
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void put_utf8(struct hf__buf *out, uint32_t c)
{
    if (c < 0x80) {
        hf__buf_put_byte(out, (uint8_t)c);
    } else if (c < 0x800) {
        hf__buf_put_byte(out, (uint8_t)(0xC0 | c >> 6));
        hf__buf_put_byte(out, (uint8_t)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        hf__buf_put_byte(out, (uint8_t)(0xE0 | c >> 12));
        hf__buf_put_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
        hf__buf_put_byte(out, (uint8_t)(0x80 | (c & 0x3F)));
    } else {
        hf__buf_put_byte(out, (uint8_t)(0xF0 | c >> 18));
        hf__buf_put_byte(out, (uint8_t)(0x80 | (c >> 12 & 0x3F)));
        hf__buf_put_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
        hf__buf_put_byte(out, (uint8_t)(0x80 | (c & 0x3F)));
    }
}

static bool ion_hex(struct ion *ion, int digits, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++) {
        char c = ion->at < ion->end ? *ion->at++ : '\0';
        uint32_t digit = is_digit(c)            ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;

        if (digit == 16)
            return ion_wrong(ion, "invalid escape in a text");
        *out = *out << 4 | digit;
    }
    return true;
}

/* What follows \u or \U: a character, or the first half of one whose second half follows. */
static bool escape_unicode(struct ion *ion, int digits, struct hf__buf *out)
{
    uint32_t c, low;

    if (!ion_hex(ion, digits, &c))
        return false;
    if (c >= 0xD800 && c < 0xDC00) {
        if (!ion_take(ion, "\\u") || !ion_hex(ion, 4, &low) || low < 0xDC00 || low > 0xDFFF)
            return ion_wrong(ion, "half of a surrogate pair in a text");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return ion_wrong(ion, "invalid character in a text");
    put_utf8(out, c);
    return true;
}

static bool ion_escape(struct ion *ion, struct hf__buf *out)
{
    static const char from[] = "abtnfrv0\"'?\\/";
    static const char to[] = "\a\b\t\n\f\r\v\0\"'?\\/";
    char c = ion->at < ion->end ? *ion->at++ : '\0';
    const char *found = c ? memchr(from, c, sizeof(from) - 1) : NULL;
    uint32_t byte;

    if (found)
        hf__buf_put_byte(out, (uint8_t)to[found - from]);
    else if (c == 'x')
        return ion_hex(ion, 2, &byte) && (put_utf8(out, byte), true);
    else if (c == 'u')
        return escape_unicode(ion, 4, out);
    else if (c == 'U')
        return escape_unicode(ion, 8, out);
    else if (c != '\n') /* a line that goes on */
        return ion_wrong(ion, "invalid escape in a text");
    return true;
}

/* A text between quotes, of which the first is taken; in the scope. */
static bool ion_text(struct ion *ion, char quote, struct hf_str *out)
{
    struct hf__buf buf = {.scope = ion->s};
    const char *start = ion->at;

    while (ion->at < ion->end && *ion->at != quote && *ion->at != '\\')
        ion->at++;
    hf__buf_put(&buf, start, (size_t)(ion->at - start));
    while (ion->at < ion->end && *ion->at != quote) {
        char c = *ion->at++;

        if (c != '\\')
            hf__buf_put_byte(&buf, (uint8_t)c);
        else if (!ion_escape(ion, &buf))
            return false;
    }
    if (ion->at == ion->end)
        return ion_wrong(ion, "a text that does not end");
    ion->at++;
    if (buf.failed)
        return ion_wrong(ion, "out of memory");
    *out = hf_str_of(buf.ptr ? (const char *)buf.ptr : "", buf.len);
    return hf__utf8_valid(*out) || ion_wrong(ion, "a text that is not UTF-8");
}

/* ---- scalars -------------------------------------------------------------------------------- */

/* A number: Ion's d is an e, a point may be last, digits may be grouped by _. */
static bool ion_number(struct ion *ion, struct number *out)
{
    struct hf__buf plain = {.scope = ion->s};
    char last = '\0';

    while (ion->at < ion->end &&
           (is_word(*ion->at) || *ion->at == '.' || *ion->at == '-' || *ion->at == '+')) {
        char c = *ion->at++;

        if (c == '_' && is_digit(last) && ion->at < ion->end && is_digit(*ion->at))
            continue;
        if (c == 'd' || c == 'D')
            c = 'e';
        if (last == '.' && !is_digit(c) && plain.len)
            plain.len--; /* "103." and "1.e5" have nothing behind the point */
        hf__buf_put_byte(&plain, (uint8_t)c);
        last = c;
    }
    if (last == '.')
        plain.len--;
    if (plain.failed)
        return ion_wrong(ion, "out of memory");
    switch (hf__number_parse(hf_str_of((const char *)plain.ptr, plain.len), out)) {
    case NUMBER_OK:
        return true;
    case NUMBER_PRECISION:
        return ion_wrong(ion, "a number of more than 38 significant digits");
    case NUMBER_OVERFLOW:
    case NUMBER_UNDERFLOW:
        return ion_wrong(ion, "a number that is too large or too small");
    case NUMBER_SYNTAX:
        break;
    }
    return ion_wrong(ion, "expected a value");
}

/* The bytes of a blob, whose {{ is taken. */
static bool ion_blob(struct ion *ion, struct hf_str *out)
{
    struct hf__buf plain = {.scope = ion->s};
    uint8_t *bytes;
    size_t len = 0;

    for (ion_spaces(ion); ion->at < ion->end && *ion->at != '}'; ion_spaces(ion))
        hf__buf_put_byte(&plain, (uint8_t)*ion->at++);
    if (!ion_take(ion, "}}"))
        return ion_wrong(ion, "a blob that does not end");
    bytes = hf_scope_alloc(ion->s, hf__base64_decoded_max(plain.len) + 1);
    if (plain.failed || !bytes)
        return ion_wrong(ion, "out of memory");
    if (plain.len &&
        hf__base64_decode(hf_str_of((const char *)plain.ptr, plain.len), bytes, &len) != BASE64_OK)
        return ion_wrong(ion, "a blob that is not base64");
    *out = hf_str_of((const char *)bytes, len);
    return true;
}

/* ---- containers ----------------------------------------------------------------------------- */

static bool ion_value(struct ion *ion, int depth);

/* What is between two elements: a comma, or the end. */
static bool next_element(struct ion *ion, char close, bool *more)
{
    ion_spaces(ion);
    *more = true;
    if (ion->at < ion->end && *ion->at == ',') {
        ion->at++;
        ion_spaces(ion);
        if (ion->at < ion->end && *ion->at == close) { /* a comma may be last */
            ion->at++;
            *more = false;
        }
        return true;
    }
    if (ion->at == ion->end || *ion->at != close)
        return ion_wrong(ion, "expected a comma or a closing bracket");
    ion->at++;
    *more = false;
    return true;
}

static bool is_empty(struct ion *ion, char close)
{
    ion_spaces(ion);
    if (ion->at == ion->end || *ion->at != close)
        return false;
    ion->at++;
    return true;
}

static bool ion_list(struct ion *ion, int depth)
{
    size_t open = hf__build_open(&ion->out, HF_TYPE_L);
    bool more = !is_empty(ion, ']');

    while (more)
        if (!ion_value(ion, depth + 1) || !next_element(ion, ']', &more))
            return false;
    (void)hf__build_close(&ion->out, open);
    return true;
}

static bool ion_name(struct ion *ion, struct hf_str *out)
{
    ion_spaces(ion);
    if (ion_take(ion, "\"")) {
        if (!ion_text(ion, '"', out))
            return false;
    } else if (ion_take(ion, "'")) {
        if (!ion_text(ion, '\'', out))
            return false;
    } else {
        *out = ion_word(ion);
        if (!out->len)
            return ion_wrong(ion, "expected a name");
    }
    ion_spaces(ion);
    if (!ion_take(ion, ":") || (ion->at < ion->end && *ion->at == ':'))
        return ion_wrong(ion, "expected a colon behind a name");
    if (out->len == 0 || out->len > ATTR_NAME_MAX)
        return ion_wrong(ion, "a name that is empty or too long");
    return true;
}

static bool ion_structure(struct ion *ion, int depth)
{
    size_t open = hf__build_open(&ion->out, HF_TYPE_M);
    bool more = !is_empty(ion, '}');

    while (more) {
        struct hf_str member;

        if (!ion_name(ion, &member))
            return false;
        hf__build_name(&ion->out, member);
        if (!ion_value(ion, depth + 1) || !next_element(ion, '}', &more))
            return false;
    }
    (void)hf__build_close(&ion->out, open);
    return true;
}

static bool ion_element(struct ion *ion, enum hf_type set)
{
    struct hf_str bytes;
    struct number n;

    ion_spaces(ion);
    if (set == HF_TYPE_NS) {
        if (!ion_number(ion, &n))
            return false;
        hf__build_element(&ion->out, set, hf_bytes_of(n.bytes, n.len));
        return true;
    }
    if (set == HF_TYPE_SS && !ion_take(ion, "\""))
        return ion_wrong(ion, "expected a string in a set of strings");
    if (set == HF_TYPE_BS && !ion_take(ion, "{{"))
        return ion_wrong(ion, "expected a blob in a set of blobs");
    if (set == HF_TYPE_SS ? !ion_text(ion, '"', &bytes) : !ion_blob(ion, &bytes))
        return false;
    hf__build_element(&ion->out, set, hf_bytes_of(bytes.ptr, bytes.len));
    return true;
}

static bool set_of(struct ion *ion, enum hf_type type)
{
    size_t open = hf__build_open(&ion->out, type);
    bool more;

    ion_spaces(ion);
    if (!ion_take(ion, "["))
        return ion_wrong(ion, "expected a list behind the annotation of a set");
    more = !is_empty(ion, ']');
    while (more)
        if (!ion_element(ion, type) || !next_element(ion, ']', &more))
            return false;
    if (ion->out.failed)
        return ion_wrong(ion, "out of memory");
    switch (hf__build_close(&ion->out, open)) {
    case BUILD_OK:
        return true;
    case BUILD_EMPTY_SET:
        return ion_wrong(ion, "an empty set");
    case BUILD_DUPLICATE:
        break;
    }
    return ion_wrong(ion, "a set with an element that comes twice");
}

/* ---- values --------------------------------------------------------------------------------- */

/* A value that begins with a letter. */
static bool named_value(struct ion *ion)
{
    struct hf_str found = ion_word(ion);

    if (str_is(found, "true") || str_is(found, "false")) {
        hf__build_bool(&ion->out, str_is(found, "true"));
        return true;
    }
    if (str_is(found, "null")) {
        if (ion_take(ion, ".") && !ion_word(ion).len) /* null.string and so on */
            return ion_wrong(ion, "expected a type behind null.");
        hf__build_null(&ion->out);
        return true;
    }
    ion_spaces(ion);
    if (ion_take(ion, "::")) {
        if (str_is(found, "$dynamodb_SS"))
            return set_of(ion, HF_TYPE_SS);
        if (str_is(found, "$dynamodb_NS"))
            return set_of(ion, HF_TYPE_NS);
        if (str_is(found, "$dynamodb_BS"))
            return set_of(ion, HF_TYPE_BS);
        return ion_wrong(ion,
                         "an annotation that is not $dynamodb_SS, $dynamodb_NS or $dynamodb_BS");
    }
    return ion_wrong(ion, "a symbol, which is no value of DynamoDB");
}

/* `depth` levels are around it; an attribute's own is the first. */
static bool ion_value(struct ion *ion, int depth)
{
    struct hf_str bytes;
    struct number n;
    char c;

    if (depth > VALUE_DEPTH_MAX) /* (1) */
        return ion_wrong(ion, "nesting levels exceed the limit of 32");
    ion_spaces(ion);
    if (ion->at == ion->end)
        return ion_wrong(ion, "expected a value");
    c = *ion->at;
    if (ion_take(ion, "{{")) {
        if (!ion_blob(ion, &bytes))
            return false;
        hf__build_str(&ion->out, HF_TYPE_B, bytes);
        return true;
    }
    if (ion_take(ion, "{"))
        return ion_structure(ion, depth);
    if (ion_take(ion, "["))
        return ion_list(ion, depth);
    if (ion_take(ion, "\"")) {
        if (!ion_text(ion, '"', &bytes))
            return false;
        hf__build_str(&ion->out, HF_TYPE_S, bytes);
        return true;
    }
    if (is_digit(c) || c == '-') {
        if (!ion_number(ion, &n))
            return false;
        hf__build_number(&ion->out, n.bytes, n.len);
        return true;
    }
    return is_word(c) ? named_value(ion) : ion_wrong(ion, "expected a value");
}

/* What may stand before an item: the version, and the bracket or comma of a list of items. */
static void ion_preamble(struct ion *ion)
{
    do
        ion_spaces(ion);
    while (ion_take(ion, "$ion_1_0") || ion_take(ion, "[") || ion_take(ion, "]") ||
           ion_take(ion, ","));
}

/* {Item:{...}}; other members do no harm. */
static bool ion_envelope(struct ion *ion, struct hf_item *item)
{
    bool found = false, more;

    ion_preamble(ion);
    if (!ion_take(ion, "{") || (ion->at < ion->end && *ion->at == '{'))
        return ion_wrong(ion, "expected a struct with a member Item");
    more = !is_empty(ion, '}');
    while (more) {
        struct hf_str member;
        size_t from = ion->out.len;
        bool is_item;

        if (!ion_name(ion, &member))
            return false;
        ion_spaces(ion);
        is_item = str_is(member, "Item");
        if (is_item && (ion->at == ion->end || *ion->at != '{'))
            return ion_wrong(ion, "expected a struct behind Item");
        if (!ion_value(ion, 0))
            return false;
        if (ion->out.failed)
            return ion_wrong(ion, "out of memory");
        if (is_item && !found) {
            *item = hf__build_item_from(&ion->out, from);
            found = true;
            ion->out = (struct hf__buf){.scope = ion->s};
        } else {
            ion->out.len = from;
        }
        if (!next_element(ion, '}', &more))
            return false;
    }
    ion_spaces(ion);
    if (ion->at < ion->end)
        return ion_wrong(ion, "unexpected text behind the item");
    return found || ion_wrong(ion, "expected a struct with a member Item");
}

bool hf__bulk_record_ion_read(struct hf_scope *s, struct hf_str record, struct hf_item *item,
                              struct hf_str *error)
{
    struct ion ion = {.s = s,
                      .at = record.ptr,
                      .end = record.ptr + record.len,
                      .out = {.scope = s}};

    *error = (struct hf_str){NULL, 0};
    *item = (struct hf_item){NULL, 0};
    if (ion_envelope(&ion, item) && hf_item_check(s, *item) == HF_OK)
        return true;
    *error = hf_str_from(ion.wrong ? ion.wrong : hf_scope_error_text(s));
    return false;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_text(struct hf__buf *out, struct hf_str str, char quote)
{
    hf__buf_put_byte(out, (uint8_t)quote);
    for (size_t i = 0; i < str.len; i++) {
        char c = str.ptr[i];

        if (c == quote || c == '\\') {
            hf__buf_put_byte(out, '\\');
            hf__buf_put_byte(out, (uint8_t)c);
        } else if (c == '\n') {
            hf__buf_put_str(out, HF_STR("\\n"));
        } else if ((unsigned char)c < ' ' || c == 127) {
            hf__buf_format(out, "\\x%02x", (unsigned)(unsigned char)c);
        } else {
            hf__buf_put_byte(out, (uint8_t)c);
        }
    }
    hf__buf_put_byte(out, (uint8_t)quote);
}

/* Names that are no identifiers, or mean something else, are between quotes. */
static void put_name(struct hf__buf *out, struct hf_str member)
{
    static const char *const reserved[] = {"null", "true", "false", "nan"};
    bool plain = member.len > 0 && !is_digit(member.ptr[0]) && member.ptr[0] != '$';

    for (size_t i = 0; plain && i < member.len; i++)
        plain = is_word(member.ptr[i]);
    for (size_t i = 0; plain && i < ARRAY_LEN(reserved); i++)
        plain = !str_is(member, reserved[i]);
    if (plain)
        hf__buf_put_str(out, member);
    else
        put_text(out, member, '\'');
}

/* As a decimal of Ion: 103. and 6d2, 1.5 and 1d-9. */
static void put_number(struct hf__buf *out, const uint8_t *bytes, size_t len)
{
    char room[NUMBER_TEXT_MAX];
    struct hf_str digits = {room, hf__number_text(bytes, len, room)};
    const char *point = memchr(room, '.', digits.len);
    size_t zeros = 0;

    if (digits.ptr[0] == '-') {
        hf__buf_put_byte(out, '-');
        digits = hf_str_of(digits.ptr + 1, digits.len - 1);
    }
    if (!point) {
        while (digits.len > 1 && digits.ptr[digits.len - 1] == '0') {
            digits.len--;
            zeros++;
        }
        hf__buf_put_str(out, digits);
        if (zeros)
            hf__buf_format(out, "d%zu", zeros);
        else
            hf__buf_put_byte(out, '.');
        return;
    }
    while (point + 1 + zeros < digits.ptr + digits.len && point[1 + zeros] == '0')
        zeros++;
    if (digits.ptr[0] != '0' || zeros < PLAIN_ZEROS_MAX) {
        hf__buf_put_str(out, digits);
        return;
    }
    digits = hf_str_of(point + 1, digits.len - (size_t)(point + 1 - digits.ptr));
    hf__buf_put(out, digits.ptr + zeros, digits.len - zeros);
    hf__buf_format(out, "d-%zu", digits.len);
}

static void put_blob(struct hf__buf *out, struct hf_bytes bytes)
{
    uint8_t *to;

    hf__buf_put_str(out, HF_STR("{{"));
    to = hf__buf_reserve(out, hf__base64_encoded_len(bytes.len) + 1);
    if (to)
        out->len += hf__base64_encode(bytes, (char *)to);
    hf__buf_put_str(out, HF_STR("}}"));
}

static void put_scalar(struct hf__buf *out, enum hf_type type, struct hf_bytes bytes)
{
    if (type == HF_TYPE_S)
        put_text(out, hf_str_of((const char *)bytes.ptr, bytes.len), '"');
    else if (type == HF_TYPE_N)
        put_number(out, bytes.ptr, bytes.len);
    else
        put_blob(out, bytes);
}

static void put_value(struct hf__buf *out, struct hf_value v);

static void put_members(struct hf__buf *out, struct hf_value v, char open, char close)
{
    struct value_walk walk = hf__value_walk(v);
    bool first = true;

    hf__buf_put_byte(out, (uint8_t)open);
    while (hf__value_next(&walk)) {
        if (!first)
            hf__buf_put_byte(out, ',');
        first = false;
        if (walk.type == HF_TYPE_M) {
            put_name(out, walk.name);
            hf__buf_put_byte(out, ':');
        }
        put_value(out, walk.value);
    }
    hf__buf_put_byte(out, (uint8_t)close);
}

static void put_set(struct hf__buf *out, struct hf_value v, enum hf_type type)
{
    struct value_walk walk = hf__value_walk(v);
    enum hf_type element_type = type == HF_TYPE_SS   ? HF_TYPE_S
                                : type == HF_TYPE_NS ? HF_TYPE_N
                                                     : HF_TYPE_B;
    bool first = true;

    hf__buf_format(out, "$dynamodb_%s::[", hf__type_name(type));
    while (hf__value_next(&walk)) {
        if (!first)
            hf__buf_put_byte(out, ',');
        first = false;
        put_scalar(out, element_type, walk.scalar);
    }
    hf__buf_put_byte(out, ']');
}

static void put_value(struct hf__buf *out, struct hf_value v)
{
    enum hf_type type = hf_value_type(v);

    switch (type) {
    case HF_TYPE_S:
    case HF_TYPE_N:
    case HF_TYPE_B:
        put_scalar(out, type, hf__value_scalar(v));
        break;
    case HF_TYPE_BOOL:
        hf__buf_put_str(out, hf_value_true(v) ? HF_STR("true") : HF_STR("false"));
        break;
    case HF_TYPE_M:
        put_members(out, v, '{', '}');
        break;
    case HF_TYPE_L:
        put_members(out, v, '[', ']');
        break;
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        put_set(out, v, type);
        break;
    case HF_TYPE_NULL:
    case HF_TYPE_NONE:
        hf__buf_put_str(out, HF_STR("null"));
        break;
    }
}

void hf__bulk_record_ion_write(struct hf__buf *out, struct hf_scope *s, struct hf_item item)
{
    (void)s;
    hf__buf_put_str(out, HF_STR("$ion_1_0 {Item:"));
    put_value(out, hf_item_value(item));
    hf__buf_put_str(out, HF_STR("}\n"));
}
