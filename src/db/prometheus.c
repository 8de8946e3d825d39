/*
 * db/prometheus.c: writing what Prometheus reads.
 */
#include "db/prometheus.h"

void hf__prometheus_head(struct hf__buf *buf, const char *name, const char *type, const char *help)
{
    hf__buf_format(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void hf__prometheus_times(struct hf__buf *buf, const char *name, const char *labels,
                          const uint64_t buckets[TIME_BUCKETS], uint64_t sum_ns)
{
    const char *comma = labels[0] ? "," : "", *open = labels[0] ? "{" : "";
    const char *close = labels[0] ? "}" : "";
    uint64_t count = 0;

    for (size_t i = 0; i < TIME_BUCKETS; i++) {
        count += buckets[i];
        if (i == TIME_BUCKETS - 1)
            hf__buf_format(buf, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
                           (unsigned long long)count);
        else
            hf__buf_format(buf, "%s_bucket{%s%sle=\"%.6f\"} %llu\n", name, labels, comma,
                           (double)TIME_BUCKET_FIRST_NS * (double)(UINT64_C(1) << i) / 1e9,
                           (unsigned long long)count);
    }
    hf__buf_format(buf, "%s_sum%s%s%s %.9f\n", name, open, labels, close, (double)sum_ns / 1e9);
    hf__buf_format(buf, "%s_count%s%s%s %llu\n", name, open, labels, close,
                   (unsigned long long)count);
}

void hf__prometheus_quote(struct hf__buf *buf, struct hf_str value)
{
    hf__buf_put_byte(buf, '"');
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];

        if (c == '\\' || c == '"' || c == '\n')
            hf__buf_put_byte(buf, '\\');
        hf__buf_put_byte(buf, (uint8_t)(c == '\n' ? 'n' : c));
    }
    hf__buf_put_byte(buf, '"');
}
