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

/* Step over whole groups of ASCII; at most seven bytes of it are left where it ends. */
static const unsigned char *skip_ascii(const unsigned char *p, const unsigned char *end)
{
    uint64_t eight;

#if defined(__SSE2__)
    for (; end - p >= 32; p += 32) {
        __m128i first = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));

        if (_mm_movemask_epi8(_mm_or_si128(first, second)))
            break;
    }
#endif
    for (; end - p >= 8; p += 8) {
        memcpy(&eight, p, sizeof(eight));
        if (eight & UINT64_C(0x8080808080808080))
            break;
    }
    return p;
}

bool hf__utf8_valid(struct hf_str text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    const unsigned char *end = text.len ? p + text.len : p;

    while (p < end) {
        if (*p >= 0x80) {
            size_t step = hf__utf8_length(p, (size_t)(end - p));

            if (step == 0)
                return false;
            p += step;
        } else {
            p = skip_ascii(p, end);
            while (p < end && *p < 0x80)
                p++;
        }
    }
    return true;
}
