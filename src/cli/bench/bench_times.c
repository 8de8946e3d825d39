/*
 * cli/bench/bench_times.c: histograms of durations.
 *
 * A bucket is found by the highest bit of the number and the TIMES_SUB_BITS bits behind it:
 *
 *     ns < 32        the bucket of that number
 *     otherwise      32 * (highest bit - 4) and the five bits behind the highest
 *
 * so buckets double in width when their numbers double, and nothing is ever out of range.
 */
#include "cli/bench/bench.h"

#include <assert.h>

_Static_assert(TIMES_SUBS == 1 << TIMES_SUB_BITS, "a power of two");
_Static_assert(TIMES_BUCKETS >= (64 - TIMES_SUB_BITS + 1) * TIMES_SUBS, "every time has a bucket");

size_t hf__bench_bucket(uint64_t ns)
{
    unsigned high;

    if (ns < TIMES_SUBS)
        return (size_t)ns;
    high = 63 - (unsigned)__builtin_clzll(ns);
    return (size_t)(high - TIMES_SUB_BITS + 1) * TIMES_SUBS +
           (size_t)((ns >> (high - TIMES_SUB_BITS)) & (TIMES_SUBS - 1));
}

uint64_t hf__bench_bucket_max(size_t bucket)
{
    unsigned shift;

    assert(bucket < TIMES_BUCKETS);
    if (bucket < TIMES_SUBS)
        return bucket;
    shift = (unsigned)(bucket / TIMES_SUBS) - 1;
    return ((TIMES_SUBS + bucket % TIMES_SUBS + UINT64_C(1)) << shift) - 1;
}

void hf__bench_times_add(struct bench_times *times, uint64_t ns)
{
    assert(hf__bench_bucket(ns) < TIMES_BUCKETS &&
           ns <= hf__bench_bucket_max(hf__bench_bucket(ns)));
    _Atomic uint32_t *bucket = &times->buckets[hf__bench_bucket(ns)];

    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (ns > atomic_load_explicit(&times->max_ns, memory_order_relaxed))
        atomic_store_explicit(&times->max_ns, ns, memory_order_relaxed);
}

void hf__bench_times_sum(struct bench_summary *summary, const struct bench_times *times)
{
    uint64_t max = atomic_load_explicit(&times->max_ns, memory_order_relaxed);

    for (size_t i = 0; i < TIMES_BUCKETS; i++) {
        uint32_t count = atomic_load_explicit(&times->buckets[i], memory_order_relaxed);

        summary->counts[i] += count;
        summary->count += count;
    }
    if (max > summary->max_ns)
        summary->max_ns = max;
}

uint64_t hf__bench_percentile(const struct bench_summary *summary, double share)
{
    double wanted = share * (double)summary->count;
    uint64_t seen = 0;

    assert(share > 0 && share <= 1);
    for (size_t i = 0; i < TIMES_BUCKETS; i++) {
        seen += summary->counts[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t max = hf__bench_bucket_max(i);

            return max < summary->max_ns ? max : summary->max_ns;
        }
    }
    return 0;
}
