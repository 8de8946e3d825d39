/*
 * db/prometheus.h: histograms of times, and the text format that Prometheus reads (0.0.4). The
 * server's metrics use it too.
 */
#ifndef HF_DB_PROMETHEUS_H
#define HF_DB_PROMETHEUS_H

#include "base/buf.h"

/*
 * Buckets double, from 8 us to about 8 s, and one more is for what took longer: fine enough for a
 * quantile, and a bucket is found by counting the zeros in front of a number.
 */
enum { TIME_BUCKETS = 22, TIME_BUCKET_FIRST_NS = 8000 };

static inline size_t time_bucket(uint64_t ns)
{
    uint64_t units = ns / TIME_BUCKET_FIRST_NS;
    size_t bucket = units == 0 ? 0 : 64 - (size_t)__builtin_clzll(units);

    return bucket < TIME_BUCKETS ? bucket : TIME_BUCKETS - 1;
}

void hf__prometheus_head(struct hf__buf *buf, const char *name, const char *type, const char *help);

/* The lines of one histogram; `labels` as in the braces, "" for none. The buckets are not yet
 * cumulative. */
void hf__prometheus_times(struct hf__buf *buf, const char *name, const char *labels,
                          const uint64_t buckets[TIME_BUCKETS], uint64_t sum_ns);

/* A label's value in quotes. */
void hf__prometheus_quote(struct hf__buf *buf, struct hf_str value);

#endif
