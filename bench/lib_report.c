/*
 * bench/lib_report.c: results as a table for people and as JSON for programs.
 */
#include "lib.h"

#include <stdarg.h>
#include <unistd.h>

void bench_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    fflush(NULL);
    _exit(1); /* exit() would clean up under the feet of the other threads */
}

struct bench_cell bench_cell_of(const char *name, const struct bench_tally *tally)
{
    double ops = tally->ops ? (double)tally->ops : 1;
    struct bench_cell cell = {
        .threads = tally->threads,
        .ops = tally->ops,
        .errors = tally->errors,
        .ops_per_s = (double)tally->ops / tally->seconds,
        .items_per_s = (double)tally->items / tally->seconds,
        .p50_us = bench_histogram_us(&tally->histogram, 0.5),
        .p99_us = bench_histogram_us(&tally->histogram, 0.99),
        .max_us = (double)tally->histogram.max_ns / 1000,
        .cpu_us = tally->cpu_us / ops,
        .mallocs = (double)tally->allocs.calls / ops,
        .malloc_bytes = (double)tally->allocs.bytes / ops,
        .our_mallocs = (double)tally->allocs.our_calls / ops,
        .our_bytes = (double)tally->allocs.our_bytes / ops,
        .items_per_op = (double)tally->items / ops,
    };

    snprintf(cell.name, sizeof(cell.name), "%s", name);
    return cell;
}

void bench_print_head(void)
{
    if (!bench_counts_malloc())
        printf("malloc() is not counted in a build with a sanitizer\n");
    printf("%-36s %10s %10s %9s %9s %8s %7s %8s %6s %7s\n", "cell (.../threads)", "ops/s",
           "items/s", "p50 us", "p99 us", "cpu us", "malloc", "bytes", "ours", "bytes");
}

void bench_print(const struct bench_record *record)
{
    const struct bench_cell *c = &record->cell;

    if (!record->is_cell) {
        printf("%-36s %10.2f %s\n", record->fact.name, record->fact.value, record->fact.unit);
        return;
    }
    printf("%-36s %10.0f %10.0f %9.2f %9.2f %8.2f %7.2f %8.0f %6.2f %7.0f", c->name, c->ops_per_s,
           c->items_per_s, c->p50_us, c->p99_us, c->cpu_us, c->mallocs, c->malloc_bytes,
           c->our_mallocs, c->our_bytes);
    if (c->errors)
        printf("  %llu ERRORS", (unsigned long long)c->errors);
    printf("\n");
}

const struct bench_cell *bench_find_cell(const struct bench_report *report, const char *name)
{
    for (size_t i = 0; i < report->len; i++)
        if (report->records[i].is_cell && strcmp(report->records[i].cell.name, name) == 0)
            return &report->records[i].cell;
    return NULL;
}

const struct bench_fact *bench_find_fact(const struct bench_report *report, const char *name)
{
    for (size_t i = 0; i < report->len; i++)
        if (!report->records[i].is_cell && strcmp(report->records[i].fact.name, name) == 0)
            return &report->records[i].fact;
    return NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_cell(FILE *file, const struct bench_cell *c)
{
    fprintf(file,
            "    {\"name\": \"%s\", \"threads\": %u, \"ops\": %llu, \"errors\": %llu, "
            "\"ops_per_s\": %.1f, \"items_per_s\": %.1f, \"p50_us\": %.3f, \"p99_us\": %.3f, "
            "\"max_us\": %.3f, \"cpu_us_per_op\": %.3f, \"mallocs_per_op\": %.4f, "
            "\"malloc_bytes_per_op\": %.1f, \"our_mallocs_per_op\": %.4f, "
            "\"our_bytes_per_op\": %.1f, \"items_per_op\": %.2f}",
            c->name, c->threads, (unsigned long long)c->ops, (unsigned long long)c->errors,
            c->ops_per_s, c->items_per_s, c->p50_us, c->p99_us, c->max_us, c->cpu_us, c->mallocs,
            c->malloc_bytes, c->our_mallocs, c->our_bytes, c->items_per_op);
}

static void write_records(FILE *file, const struct bench_report *report, bool cells)
{
    const char *between = "";

    fprintf(file, "  \"%s\": [\n", cells ? "cells" : "facts");
    for (size_t i = 0; i < report->len; i++) {
        const struct bench_record *r = &report->records[i];

        if (r->is_cell != cells)
            continue;
        fprintf(file, "%s", between);
        if (cells)
            write_cell(file, &r->cell);
        else
            fprintf(file, "    {\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}", r->fact.name,
                    r->fact.value, r->fact.unit);
        between = ",\n";
    }
    fprintf(file, "\n  ],\n");
}

bool bench_write_json(const struct bench_report *report, const char *path, const char *about)
{
    FILE *file = fopen(path, "w");
    bool good;

    if (!file)
        return false;
    fprintf(file, "{\n  \"about\": {%s},\n", about);
    write_records(file, report, true);
    write_records(file, report, false);
    fprintf(file, "  \"goals\": [");
    for (size_t i = 0; i < report->goals_len; i++) {
        const struct bench_goal *g = &report->goals[i];

        fprintf(file, "%s\n    {\"goal\": \"%s\", \"measured\": \"%s\", \"met\": %s}", i ? "," : "",
                g->name, g->measured,
                g->met < 0 ? "null"
                : g->met   ? "true"
                           : "false");
    }
    fprintf(file, "\n  ]\n}\n");
    good = !ferror(file);
    return fclose(file) == 0 && good;
}
