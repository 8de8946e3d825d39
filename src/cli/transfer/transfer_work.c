/*
 * cli/transfer/transfer_work.c: what the threads of an import and an export share: their first failure, a
 * limit of items a second, and the line of progress.
 */
#include "cli/transfer/transfer.h"

#include "base/base.h"

#include <stdarg.h>

void hf__transfer_failure_say(struct transfer_failure *failure, int ends, const char *format, ...)
{
    va_list args;

    if (failure->set)
        return;
    failure->set = true;
    failure->ends = ends;
    va_start(args, format);
    vsnprintf(failure->text, sizeof(failure->text), format, args);
    va_end(args);
}

void hf__transfer_failure_of(struct transfer_failure *failure, const struct hf_scope *s,
                             const char *what)
{
    const char *text = hf_scope_error_text(s);

    assert(failure && s);
    hf__transfer_failure_say(failure, hf__database_exit(hf_scope_error(s)), "%s%s%s",
                             what ? what : "", what ? ": " : "", *text ? text : "failed");
}

uint32_t hf__transfer_rate_wait_ms(struct transfer_rate *rate, int64_t now_us, size_t count)
{
    if (!rate->per_second)
        return 0;
    if (rate->next_us < now_us)
        rate->next_us = now_us;
    assert(rate->next_us >= now_us);
    rate->next_us += (int64_t)((double)count * 1e6 / (double)rate->per_second);
    return (uint32_t)((rate->next_us - now_us + 999) / 1000);
}

struct hf_str hf__transfer_bytes_text(struct hf_scope *s, uint64_t bytes)
{
    if (bytes < 1000)
        return hf_scope_format(s, "%llu bytes", (unsigned long long)bytes);
    if (bytes < 1000 * 1000)
        return hf_scope_format(s, "%.1f KB", (double)bytes / 1e3);
    if (bytes < 1000ull * 1000 * 1000)
        return hf_scope_format(s, "%.1f MB", (double)bytes / 1e6);
    return hf_scope_format(s, "%.2f GB", (double)bytes / 1e9);
}

void hf__transfer_progress_print(struct progress *progress, struct hf_scope *s, const char *table,
                                 uint64_t items, uint64_t bytes, double done, double all)
{
    double part = all > 0 ? done / all : 0;
    double rate = hf__progress_rate(progress, 1000000); /* 1e6 / elapsed seconds */
    double seconds = rate > 0 ? 1e6 / rate : 0;
    struct hf_str left = HF_STR(""), percent = HF_STR("");

    assert(table && done >= 0 && all >= 0);
    if (part > 1)
        part = 1;
    if (all > 0)
        percent = hf_scope_format(s, " %.0f%%,", part * 100);
    if (part > 0.001 && part < 1 && seconds > 0.5) {
        uint64_t left_s = (uint64_t)((1 - part) / part * seconds) + 1;

        left = hf_scope_format(s, ", %.*s left", HF_FMT(hf__rows_duration(s, left_s * 1000)));
    }
    hf__progress_print(progress, "%s:%.*s %llu items, %.0f/s, %.*s%.*s", table, HF_FMT(percent),
                       (unsigned long long)items, hf__progress_rate(progress, items),
                       HF_FMT(hf__transfer_bytes_text(s, bytes)), HF_FMT(left));
}
