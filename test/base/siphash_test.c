/* base/siphash_test.c: the authors' published vectors for the key 00 01 ... 0f. */
#include "base/siphash.h"

#include "test.h"

TEST(siphash, published_vectors)
{
    uint8_t key[16];
    uint8_t in[16];

    for (uint8_t i = 0; i < 16; i++)
        key[i] = in[i] = i;
    CHECK(hf__siphash(key, in, 0) == 0x726fdb47dd0e0e31u);
    CHECK(hf__siphash(key, in, 1) == 0x74f839c593dc67fdu);
    CHECK(hf__siphash(key, in, 8) == 0x93f5f5799a932462u);
    CHECK(hf__siphash(key, in, 15) == 0xa129ca6149be45e5u);
}
