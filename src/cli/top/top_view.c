/*
 * cli/top/top_view.c: rates and percentiles between two samples.
 *
 * A percentile is in the bucket in which that share of the requests is reached, and inside of it as
 * far as the share says: buckets double, so it is exact to a factor of two at worst.
 */
#include "cli/top/top.h"

#include "base/base.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t counter_grown(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

static void times_grown(const struct top_times *before, const struct top_times *now,
                        struct top_times *grown)
{
    bool restarted = before && now->buckets[TOP_BUCKETS - 1] < before->buckets[TOP_BUCKETS - 1];

    for (size_t i = 0; i < TOP_BUCKETS; i++)
        grown->buckets[i] = before && !restarted
                                ? counter_grown(before->buckets[i], now->buckets[i])
                                : now->buckets[i];
}

/* Negative: there is nothing to take it of. */
static double times_percentile(const struct top_times *times, double share)
{
    double wanted = share * (double)times->buckets[TOP_BUCKETS - 1];
    double low = 0, high = TOP_BUCKET_FIRST_US;

    assert(share > 0 && share <= 1);
    if (times->buckets[TOP_BUCKETS - 1] == 0)
        return -1;
    for (size_t i = 0; i < TOP_BUCKETS; i++, low = high, high *= 2) {
        double below = i ? (double)times->buckets[i - 1] : 0, inside;

        if ((double)times->buckets[i] < wanted)
            continue;
        inside = (double)times->buckets[i] - below;
        return low + (high - low) * (inside > 0 ? (wanted - below) / inside : 1);
    }
    return low;
}

static const struct top_op *op_before(const struct top_sample *before, struct hf_str name)
{
    for (size_t i = 0; i < before->ops_len; i++)
        if (hf_str_equal(before->ops[i].name, name))
            return &before->ops[i];
    return NULL;
}

static void op_view_make(struct top_view *view, const struct top_sample *before,
                         const struct top_op *now)
{
    static const struct top_op none = {.ok = 0};
    const struct top_op *old = op_before(before, now->name);
    struct top_op_view *op = &view->ops[view->ops_len];
    struct top_times grown;
    uint64_t errors;

    assert(view->ops_len < TOP_OPS_MAX && view->seconds > 0);
    old = old ? old : &none;
    times_grown(&old->times, &now->times, &grown);
    errors = counter_grown(old->client_errors, now->client_errors) +
             counter_grown(old->server_errors, now->server_errors);
    *op = (struct top_op_view){.name = now->name,
                               .rate = (double)(counter_grown(old->ok, now->ok) + errors) /
                                       view->seconds,
                               .errors = (double)errors / view->seconds,
                               .p50_us = times_percentile(&grown, 0.5),
                               .p99_us = times_percentile(&grown, 0.99)};
    view->rate += op->rate;
    view->errors += op->errors;
    view->ops_len++;
}

static void table_view_make(struct top_view *view, const struct top_sample *before,
                            const struct top_table *now)
{
    struct top_table old = {.reads = 0};

    if (before->tables_len ==
        TOP_TABLES_MAX) /* it may have been left out: how it grew is unknown */
        old = *now;
    for (size_t i = 0; i < before->tables_len; i++)
        if (hf_str_equal(before->tables[i].name, now->name))
            old = before->tables[i];
    assert(view->tables_len < TOP_TABLES_MAX && view->seconds > 0);
    view->tables[view->tables_len++] = (struct top_table_view){
        .name = now->name,
        .reads = (double)counter_grown(old.reads, now->reads) / view->seconds,
        .writes = (double)counter_grown(old.writes, now->writes) / view->seconds,
        .errors = (double)counter_grown(old.errors, now->errors) / view->seconds};
}

/* ---- sorting -------------------------------------------------------------------------------- */

static int number_order(double a, double b)
{
    return (a < b) - (a > b);
}

static int name_order(struct hf_str a, struct hf_str b)
{
    return bytes_compare(a.ptr, a.len, b.ptr, b.len);
}

static int ops_by_rate(const void *a, const void *b)
{
    const struct top_op_view *x = a, *y = b;

    return x->rate == y->rate ? name_order(x->name, y->name) : number_order(x->rate, y->rate);
}

static int ops_by_p99(const void *a, const void *b)
{
    const struct top_op_view *x = a, *y = b;

    return x->p99_us == y->p99_us ? ops_by_rate(a, b) : number_order(x->p99_us, y->p99_us);
}

static int ops_by_errors(const void *a, const void *b)
{
    const struct top_op_view *x = a, *y = b;

    return x->errors == y->errors ? ops_by_rate(a, b) : number_order(x->errors, y->errors);
}

static int ops_by_name(const void *a, const void *b)
{
    return name_order(((const struct top_op_view *)a)->name, ((const struct top_op_view *)b)->name);
}

static int tables_by_rate(const void *a, const void *b)
{
    const struct top_table_view *x = a, *y = b;
    int order = number_order(x->reads + x->writes, y->reads + y->writes);

    return order ? order : name_order(x->name, y->name);
}

static int tables_by_errors(const void *a, const void *b)
{
    const struct top_table_view *x = a, *y = b;

    return x->errors == y->errors ? tables_by_rate(a, b) : number_order(x->errors, y->errors);
}

static int tables_by_name(const void *a, const void *b)
{
    return name_order(((const struct top_table_view *)a)->name,
                      ((const struct top_table_view *)b)->name);
}

static void view_sort(struct top_view *view, enum top_sort sort)
{
    static int (*const of_ops[TOP_SORTS])(const void *, const void *) = {ops_by_rate, ops_by_p99,
                                                                         ops_by_errors,
                                                                         ops_by_name};
    static int (*const of_tables[TOP_SORTS])(const void *,
                                             const void *) = {tables_by_rate, tables_by_rate,
                                                              tables_by_errors, tables_by_name};

    assert(sort < TOP_SORTS);
    qsort(view->ops, view->ops_len, sizeof(view->ops[0]), of_ops[sort]);
    qsort(view->tables, view->tables_len, sizeof(view->tables[0]), of_tables[sort]);
}

static void history_add(struct top_view *view)
{
    assert(view->history_len <= TOP_HISTORY);
    if (view->history_len == TOP_HISTORY)
        memmove(view->history, view->history + 1, (TOP_HISTORY - 1) * sizeof(view->history[0]));
    else
        view->history_len++;
    view->history[view->history_len - 1] = view->rate;
}

void hf__top_view_make(struct top_view *view, const struct top_sample *before,
                       const struct top_sample *now, enum top_sort sort)
{
    struct top_times commit;

    view->sample = now;
    view->seconds = (double)(now->elapsed_us - before->elapsed_us) / 1e6;
    if (view->seconds < 1e-3)
        view->seconds = 1e-3;
    view->rate = view->errors = 0;
    view->ops_len = view->tables_len = 0;
    for (size_t i = 0; i < now->ops_len; i++)
        op_view_make(view, before, &now->ops[i]);
    for (size_t i = 0; i < now->tables_len; i++)
        table_view_make(view, before, &now->tables[i]);
    view->syncs = (double)counter_grown(before->syncs, now->syncs) / view->seconds;
    view->received =
        (double)counter_grown(before->received_bytes, now->received_bytes) / view->seconds;
    view->sent = (double)counter_grown(before->sent_bytes, now->sent_bytes) / view->seconds;
    times_grown(&before->commit, &now->commit, &commit);
    view->commit_p50_us = times_percentile(&commit, 0.5);
    view->commit_p99_us = times_percentile(&commit, 0.99);
    view_sort(view, sort);
    history_add(view);
}
