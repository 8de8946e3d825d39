/*
 * base/utf8.c: whether bytes are UTF-8. Most text is ASCII, so that is looked at eight bytes at a
 * time.
 */
#include "base/utf8.h"

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

bool hf__utf8_valid(struct hf_str text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t left = text.len;

    while (left > 0) {
        size_t step = 1;
        uint64_t eight = 0;

        if (left >= sizeof(eight))
            memcpy(&eight, p, sizeof(eight));
        if (left >= sizeof(eight) && (eight & UINT64_C(0x8080808080808080)) == 0)
            step = sizeof(eight);
        else if (*p >= 0x80)
            step = hf__utf8_length(p, left);
        if (step == 0)
            return false;
        p += step;
        left -= step;
    }
    return true;
}
