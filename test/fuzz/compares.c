/*
 * test/fuzz/compares.c: comparisons of whole-database targets are shown to libFuzzer now and then.
 *
 * libFuzzer learns what an input is compared with from a call at every comparison. Half of the time
 * of a target that goes through the whole engine is spent in these calls, and most of them compare
 * lengths and indexes. So the linker leads them here (--wrap), and one input in COMPARES_EVERY has
 * them handed on; which, follows from the input, so that the same input does the same.
 */
#include "compares.h"

enum { COMPARES_EVERY = 16 };

static bool handed_on;

bool one_in(unsigned every, const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 16777619u;
    return (hash ^ hash >> 15) % every == 0;
}

void compares_begin(const uint8_t *data, size_t size)
{
    handed_on = one_in(COMPARES_EVERY, data, size);
}

#ifdef HF_WRAP_COMPARES
#define COMPARE(name, type)                                                                        \
    void __real___sanitizer_cov_trace_##name(type a, type b);                                      \
    void __wrap___sanitizer_cov_trace_##name(type a, type b);                                      \
    void __wrap___sanitizer_cov_trace_##name(type a, type b)                                       \
    {                                                                                              \
        if (handed_on)                                                                             \
            __real___sanitizer_cov_trace_##name(a, b);                                             \
    }
COMPARE(cmp1, uint8_t)
COMPARE(cmp2, uint16_t)
COMPARE(cmp4, uint32_t)
COMPARE(cmp8, uint64_t)
COMPARE(const_cmp1, uint8_t)
COMPARE(const_cmp2, uint16_t)
COMPARE(const_cmp4, uint32_t)
COMPARE(const_cmp8, uint64_t)
#endif
