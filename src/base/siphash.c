/*
 * base/siphash.c: SipHash-2-4 as its authors describe it: two rounds for each eight bytes, four at
 * the end.
 */
#include "base/siphash.h"

#include "base/base.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t word_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_rounds(struct sip *s, int count)
{
    while (count-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = word_rotate(s->v1, 13) ^ s->v0;
        s->v3 = word_rotate(s->v3, 16) ^ s->v2;
        s->v0 = word_rotate(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = word_rotate(s->v1, 17) ^ s->v2;
        s->v3 = word_rotate(s->v3, 21) ^ s->v0;
        s->v2 = word_rotate(s->v2, 32);
    }
}

static uint64_t word_load(const uint8_t *p)
{
    return (uint64_t)load_u32le(p) | (uint64_t)load_u32le(p + 4) << 32;
}

static void sip_absorb(struct sip *s, uint64_t m)
{
    s->v3 ^= m;
    sip_rounds(s, 2);
    s->v0 ^= m;
}

uint64_t hf__siphash(const uint8_t key[16], const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t k0 = word_load(key);
    uint64_t k1 = word_load(key + 8);
    uint64_t last = (uint64_t)len << 56;
    struct sip s = {0x736f6d6570736575u ^ k0, 0x646f72616e646f6du ^ k1, 0x6c7967656e657261u ^ k0,
                    0x7465646279746573u ^ k1};

    for (size_t i = 0; i < len / 8; i++)
        sip_absorb(&s, word_load(p + 8 * i));
    for (size_t i = len & ~(size_t)7; i < len; i++)
        last |= (uint64_t)p[i] << (8 * (i & 7));
    sip_absorb(&s, last);
    s.v2 ^= 0xff;
    sip_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
