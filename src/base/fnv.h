/*
 * base/fnv.h: FNV-1a of 64 bits, for hash tables, and for places that are stored.
 *
 * Some items are found by such a hash (buckets of the outbox, members of records), so it must
 * not change. An attacker who chooses the input can make collisions; where that matters, use
 * siphash.h.
 */
#ifndef HF_BASE_FNV_H
#define HF_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

/* Add bytes to a hash, which begins as FNV_BEGIN. */
static inline uint64_t fnv_add(uint64_t hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * FNV_PRIME;
    return hash;
}

/* Mix the high bits into the low ones, which alone are poor, before a remainder is taken. */
static inline uint64_t fnv_fold(uint64_t hash)
{
    return hash ^ hash >> 32;
}

#endif
