/*
 * base/siphash.c: SipHash-2-4 as its authors describe it: two rounds for each eight bytes, four at
 * the end.
 */
#include "base/siphash.h"

#include "base/base.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void rounds(struct sip *s, int count)
{
    while (count-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 = rotate(s->v2, 32);
    }
}

static uint64_t word(const uint8_t *p)
{
    return (uint64_t)load_u32le(p) | (uint64_t)load_u32le(p + 4) << 32;
}

static void absorb(struct sip *s, uint64_t m)
{
    s->v3 ^= m;
    rounds(s, 2);
    s->v0 ^= m;
}

uint64_t hf__siphash(const uint8_t key[16], const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t k0 = word(key);
    uint64_t k1 = word(key + 8);
    uint64_t last = (uint64_t)len << 56;
    struct sip s = {0x736f6d6570736575u ^ k0, 0x646f72616e646f6du ^ k1, 0x6c7967656e657261u ^ k0,
                    0x7465646279746573u ^ k1};

    for (size_t i = 0; i < len / 8; i++)
        absorb(&s, word(p + 8 * i));
    for (size_t i = len & ~(size_t)7; i < len; i++)
        last |= (uint64_t)p[i] << (8 * (i & 7));
    absorb(&s, last);
    s.v2 ^= 0xff;
    rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
