/*
 * base/base64.c: see base64.h. Tables of 256 bytes decode a group of four with four loads and one
 * test; only a group that fails is looked at again.
 */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { NO = 0x80 }; /* no character of the alphabet */

static const uint8_t digits[256] = {
#define ROW16(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
    ROW16(NO), ROW16(NO), NO,        NO,        NO,        NO,       NO, NO, NO,        NO,
    NO,        NO,        NO,        62,        NO,        NO,       NO, 63, 52,        53,
    54,        55,        56,        57,        58,        59,       60, 61, NO,        NO,
    NO,        NO,        NO,        NO,        NO,        0,        1,  2,  3,         4,
    5,         6,         7,         8,         9,         10,       11, 12, 13,        14,
    15,        16,        17,        18,        19,        20,       21, 22, 23,        24,
    25,        NO,        NO,        NO,        NO,        NO,       NO, 26, 27,        28,
    29,        30,        31,        32,        33,        34,       35, 36, 37,        38,
    39,        40,        41,        42,        43,        44,       45, 46, 47,        48,
    49,        50,        51,        NO,        NO,        NO,       NO, NO, ROW16(NO), ROW16(NO),
    ROW16(NO), ROW16(NO), ROW16(NO), ROW16(NO), ROW16(NO), ROW16(NO)
#undef ROW16
};

/* The last group, which ends in one or two '='. */
static enum base64_result decode_padded(const uint8_t *in, uint8_t *out, size_t *out_len)
{
    bool two = in[2] == '=';
    uint8_t last = digits[two ? in[1] : in[2]];

    /* The service looks at the stray bits before it looks at the characters. */
    if (last != NO && (last & (two ? 0xF : 0x3)))
        return BASE64_LAST;
    if (last == NO || digits[in[0]] == NO || digits[in[1]] == NO)
        return BASE64_CHARACTER;
    out[0] = (uint8_t)(digits[in[0]] << 2 | digits[in[1]] >> 4);
    if (!two)
        out[1] = (uint8_t)(digits[in[1]] << 4 | digits[in[2]] >> 2);
    *out_len += two ? 1 : 2;
    return BASE64_OK;
}

enum base64_result hf__base64_decode(struct hf_str text, uint8_t *out, size_t *out_len)
{
    const uint8_t *in = (const uint8_t *)text.ptr;
    size_t whole = text.len;
    size_t len = 0;
    uint8_t seen = 0;

    *out_len = 0;
    if (text.len % 4 != 0)
        return BASE64_LENGTH;
    if (text.len > 0 && in[text.len - 1] == '=') {
        enum base64_result result;

        whole -= 4;
        result = decode_padded(in + whole, out + whole / 4 * 3, &len);
        if (result != BASE64_OK)
            return result;
    }
    for (size_t i = 0; i < whole; i += 4) {
        uint8_t a = digits[in[i]], b = digits[in[i + 1]];
        uint8_t c = digits[in[i + 2]], d = digits[in[i + 3]];

        seen |= a | b | c | d;
        out[0] = (uint8_t)(a << 2 | b >> 4);
        out[1] = (uint8_t)(b << 4 | c >> 2);
        out[2] = (uint8_t)(c << 6 | d);
        out += 3;
    }
    if (seen & NO)
        return BASE64_CHARACTER;
    *out_len = len + whole / 4 * 3;
    return BASE64_OK;
}

size_t hf__base64_encode(struct hf_bytes bytes, char *out)
{
    const uint8_t *in = bytes.ptr;
    size_t left = bytes.len;
    char *to = out;

    for (; left >= 3; left -= 3, in += 3) {
        *to++ = alphabet[in[0] >> 2];
        *to++ = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
        *to++ = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
        *to++ = alphabet[in[2] & 63];
    }
    if (left > 0) {
        uint8_t second = left > 1 ? in[1] : 0;

        *to++ = alphabet[in[0] >> 2];
        *to++ = alphabet[(in[0] & 3) << 4 | second >> 4];
        *to++ = left > 1 ? alphabet[(second & 15) << 2] : '=';
        *to++ = '=';
    }
    assert((size_t)(to - out) == hf__base64_encoded_len(bytes.len));
    return (size_t)(to - out);
}
