/*
 * cli/bench_times_test.c: the histograms of `holdfast bench`: every duration has a bucket, buckets are
 * narrow, percentiles are those of the durations.
 */
#include "cli/bench/bench.h"

#include "test.h"

TEST(bench_times, every_duration_has_its_bucket)
{
    uint64_t below = 0;

    for (size_t i = 0; i < TIMES_BUCKETS; i++) {
        uint64_t most = hf__bench_bucket_max(i);

        CHECK_INT((int64_t)i, (int64_t)hf__bench_bucket(below));
        CHECK_INT((int64_t)i, (int64_t)hf__bench_bucket(most));
        CHECK(most >= below && most - below <= below / TIMES_SUBS);
        below = most + 1;
    }
    CHECK(hf__bench_bucket_max(TIMES_BUCKETS - 1) == UINT64_MAX);
}

TEST(bench_times, percentiles)
{
    static struct bench_times first, second;
    static struct bench_summary sum;
    uint64_t p50;

    CHECK(hf__bench_percentile(&sum, 0.5) == 0);
    for (uint64_t i = 1; i <= 1000; i++)
        hf__bench_times_add(i % 2 ? &first : &second, i * 1000);
    hf__bench_times_sum(&sum, &first);
    hf__bench_times_sum(&sum, &second);
    CHECK_INT(1000, (int64_t)sum.count);
    CHECK_INT(1000000, (int64_t)sum.max_ns);
    p50 = hf__bench_percentile(&sum, 0.5);
    CHECK(p50 >= 500000 && p50 <= 516000);
    CHECK_INT(1000000, (int64_t)hf__bench_percentile(&sum, 0.9999));
    CHECK(hf__bench_percentile(&sum, 1) == sum.max_ns);
}

TEST(bench_times, one_duration_is_every_percentile)
{
    static struct bench_times times;
    static struct bench_summary sum;

    hf__bench_times_add(&times, 777777);
    hf__bench_times_sum(&sum, &times);
    CHECK_INT(777777, (int64_t)hf__bench_percentile(&sum, 0.001));
    CHECK_INT(777777, (int64_t)hf__bench_percentile(&sum, 0.999));
}
