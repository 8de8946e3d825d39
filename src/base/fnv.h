/*
 * base/fnv.h: FNV-1a of 64 bits, for hash tables, and for places that are stored.
 *
 * Some items are found by such a hash (buckets of the outbox, members of records), so it does not
 * change. Who chooses what is hashed can make collisions; where that matters there is siphash.h.
 */
#ifndef HF_BASE_FNV_H
#define HF_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

/* Of one piece after the other, the first with FNV_BEGIN. */
static inline uint64_t fnv_add(uint64_t hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * FNV_PRIME;
    return hash;
}

/* The high bits into the low ones, which alone are poor: for who takes a remainder. */
static inline uint64_t fnv_fold(uint64_t hash)
{
    return hash ^ hash >> 32;
}

#endif
