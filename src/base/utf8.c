/*
 * base/utf8.c: whether bytes are UTF-8. Most text is ASCII, so that is looked at as many bytes at a
 * time as the processor takes.
 */
#include "base/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

size_t hf__utf8_length(const unsigned char *p, size_t left)
{
    unsigned char first = p[0];

    if (first >= 0xC2 && first <= 0xDF)
        return left >= 2 && (p[1] & 0xC0) == 0x80 ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        if (left < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80)
            return 0;
        if (first == 0xE0 && p[1] < 0xA0)
            return 0; /* too long for what it says */
        if (first == 0xED && p[1] >= 0xA0)
            return 0; /* a surrogate */
        return 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (left < 4 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80)
            return 0;
        if ((first == 0xF0 && p[1] < 0x90) || (first == 0xF4 && p[1] >= 0x90))
            return 0;
        return 4;
    }
    return 0;
}

enum { EIGHT = 8 };

static inline bool is_ascii8(const unsigned char *p)
{
    uint64_t eight;

    memcpy(&eight, p, sizeof(eight));
    return (eight & UINT64_C(0x8080808080808080)) == 0;
}

/* Is all of it ASCII? The last eight bytes are looked at together, whether or not some of them
 * were before; of less than eight, each. */
static inline bool is_ascii(const unsigned char *p, size_t len)
{
    const unsigned char *end = p + len;
    unsigned char any = 0;

    if (len < EIGHT) {
        while (p < end)
            any |= *p++;
        return any < 0x80;
    }
#if defined(__SSE2__)
    for (; end - p >= 32; p += 32) {
        __m128i first = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));

        if (_mm_movemask_epi8(_mm_or_si128(first, second)))
            return false;
    }
#endif
    for (; end - p >= EIGHT; p += EIGHT)
        if (!is_ascii8(p))
            return false;
    return is_ascii8(end - EIGHT);
}

static bool is_utf8(const unsigned char *p, const unsigned char *end)
{
    while (p < end) {
        size_t step = 1;

        if (*p >= 0x80)
            step = hf__utf8_length(p, (size_t)(end - p));
        else if (end - p >= EIGHT && is_ascii8(p))
            step = EIGHT;
        if (step == 0)
            return false;
        p += step;
    }
    return true;
}

bool hf__utf8_valid(struct hf_str text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;

    return text.len == 0 || is_ascii(p, text.len) || is_utf8(p, p + text.len);
}
