/*
 * base/md5.c: MD5. See md5.h.
 *
 * 64 steps over each block of 64 bytes. In step i one of four functions mixes three words; a word of the
 * block and a constant are added, and the sum is rotated. The constants are the sines of 1 to 64, times
 * 2^32; a table of them is shorter than computing them without rounding errors.
 */
#include "base/md5.h"

#include "base/base.h"
#include "base/base64.h"

#include <string.h>

static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static const uint8_t turns[4][4] = {{7, 12, 17, 22},
                                    {5, 9, 14, 20},
                                    {4, 11, 16, 23},
                                    {6, 10, 15, 21}};

static uint32_t word_rotate(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

static void block_add(struct md5 *md5, const uint8_t *block)
{
    uint32_t a = md5->state[0], b = md5->state[1], c = md5->state[2], d = md5->state[3];

    for (unsigned i = 0; i < 64; i++) {
        uint32_t mixed, next;
        unsigned word;

        switch (i / 16) {
        case 0:
            mixed = (b & c) | (~b & d);
            word = i;
            break;
        case 1:
            mixed = (d & b) | (~d & c);
            word = (5 * i + 1) % 16;
            break;
        case 2:
            mixed = b ^ c ^ d;
            word = (3 * i + 5) % 16;
            break;
        default:
            mixed = c ^ (b | ~d);
            word = 7 * i % 16;
            break;
        }
        next = d;
        d = c;
        c = b;
        b += word_rotate(a + mixed + sines[i] + load_u32le(block + (size_t)word * 4),
                         turns[i / 16][i % 4]);
        a = next;
    }
    md5->state[0] += a;
    md5->state[1] += b;
    md5->state[2] += c;
    md5->state[3] += d;
}

void hf__md5_begin(struct md5 *md5)
{
    *md5 = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void hf__md5_add(struct md5 *md5, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    size_t held = (size_t)(md5->len % MD5_BLOCK);

    md5->len += len;
    while (len) {
        size_t step = MD5_BLOCK - held < len ? MD5_BLOCK - held : len;

        if (!held && step == MD5_BLOCK) {
            block_add(md5, at);
        } else {
            memcpy(md5->block + held, at, step);
            held = (held + step) % MD5_BLOCK;
            if (!held)
                block_add(md5, md5->block);
        }
        at += step;
        len -= step;
    }
}

void hf__md5_end(struct md5 *md5, uint8_t digest[MD5_LEN])
{
    static const uint8_t padding[MD5_BLOCK] = {0x80};
    size_t held = (size_t)(md5->len % MD5_BLOCK);
    uint8_t bits[8];

    store_u64le(bits, md5->len * 8);
    hf__md5_add(md5, padding, held < 56 ? 56 - held : 120 - held);
    hf__md5_add(md5, bits, sizeof(bits));
    for (size_t i = 0; i < 4; i++)
        store_u32le(digest + 4 * i, md5->state[i]);
}

void hf__md5_base64(const uint8_t digest[MD5_LEN], char *text)
{
    size_t len = hf__base64_encode(hf_bytes_of(digest, MD5_LEN), text);

    assert(len == MD5_BASE64_LEN);
    text[len] = '\0';
}
