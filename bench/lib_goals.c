/*
 * bench/lib_goals.c: the goals of the engine, beside what bench_engine measured. A goal whose cells
 * did not run, as with --only, counts as not measured, never as met.
 */
#include "lib.h"

#include <stdarg.h>

enum {
    ALLOWED_MIB = 32 /* besides the settings: threads, table readers, a compaction's buffers */
};

static void HF_PRINTF(4, 5)
    goal(struct bench_report *report, int met, const char *name, const char *format, ...)
{
    struct bench_goal *goal = &report->goals[report->goals_len++];
    va_list args;

    assert(report->goals_len <= BENCH_GOALS_MAX);
    goal->met = met;
    snprintf(goal->name, sizeof(goal->name), "%s", name);
    va_start(args, format);
    vsnprintf(goal->measured, sizeof(goal->measured), format, args);
    va_end(args);
}

static const struct bench_cell no_cell;

/* The cell, or one of zeros, with which no goal counts as measured. */
static const struct bench_cell *get_cell(const struct bench_report *report, const char *name)
{
    const struct bench_cell *found = bench_find_cell(report, name);

    return found ? found : &no_cell;
}

static double get_fact(const struct bench_report *report, const char *name)
{
    const struct bench_fact *found = bench_find_fact(report, name);

    return found ? found->value : 0;
}

static int judge(bool measured, bool met)
{
    return !measured ? -1 : met;
}

static void goals_of_speed(struct bench_report *report)
{
    const struct bench_cell *get = get_cell(report, "memory/plain/get/1");
    const struct bench_cell *million = get_cell(report, "rocksdb/none/million/get/1");
    const struct bench_cell *put = get_cell(report, "rocksdb/none/plain/put/1");
    const struct bench_cell *batch = get_cell(report, "rocksdb/none/plain/batch25/1");
    double per_get = get->ops ? 1e6 / get->ops_per_s : 0;
    double of_raw = get_fact(report, "bare/engine-to-rocksdb");
    double of_store = get_fact(report, "bare/engine-to-store");

    goal(report, judge(get->ops, per_get < 2), "memory GetItem under 2 us",
         "%.2f us (p50 of the call %.2f us)", per_get, get->p50_us);
    goal(report, judge(get->ops && bench_counts_malloc(), get->mallocs < 0.001),
         "memory GetItem without malloc", "%.4f per call", get->mallocs);
    goal(report, judge(million->ops, million->p50_us <= 8),
         "RocksDB warm GetItem p50 at most 8 us, a million items", "%.2f us with %.0f items",
         million->p50_us, get_fact(report, "million/loaded"));
    goal(report, judge(put->ops, put->ops_per_s > 60000),
         "RocksDB PutItem, durability none, 1 thread, above 60000/s", "%.0f/s", put->ops_per_s);
    goal(report, judge(batch->ops, batch->items_per_s > 80000),
         "batches of 25, durability none, 1 thread, above 80000 items/s", "%.0f items/s",
         batch->items_per_s);
    goal(report, judge(of_raw > 0, of_raw >= 0.6 && of_store >= 0.6),
         "durability full, 32 threads, at least 60 % of a bare loop",
         "%.0f %% of raw RocksDB, %.0f %% of the store alone", of_raw * 100, of_store * 100);
}

/*
 * Linear: an item of a page of 200 costs no more than one of a page of 50 (a quarter for noise),
 * and no more than twice as much in a partition ten times the size, which does not fit the
 * processor's caches any more.
 */
static void goal_query(struct bench_report *report, const char *store)
{
    double items[2][2];
    static const char *const sizes[] = {"small", "large"};
    char name[BENCH_NAME_MAX];

    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s/query-%s/50/1/per-item", store, sizes[i]);
        items[i][0] = get_fact(report, name);
        snprintf(name, sizeof(name), "%s/query-%s/200/1/per-item", store, sizes[i]);
        items[i][1] = get_fact(report, name);
    }
    snprintf(name, sizeof(name), "Query cost linear in items returned, %s", store);
    goal(report,
         judge(items[1][1] > 0, items[0][1] <= 1.25 * items[0][0] &&
                                    items[1][1] <= 1.25 * items[1][0] &&
                                    items[1][1] <= 2 * items[0][1]),
         name, "us per item, 50 and 200 of small: %.2f %.2f, of large: %.2f %.2f", items[0][0],
         items[0][1], items[1][0], items[1][1]);
}

static void goal_memory(struct bench_report *report, const char *label)
{
    char name[BENCH_NAME_MAX];
    double peak, set;

    snprintf(name, sizeof(name), "%s/anon-peak", label);
    peak = get_fact(report, name);
    snprintf(name, sizeof(name), "%s/settings", label);
    set = get_fact(report, name);
    snprintf(name, sizeof(name), "memory bounded by settings, %s", label);
    goal(report, judge(set > 0, peak <= set + ALLOWED_MIB), name,
         "peak %.1f MiB; settings %.0f MiB, %d MiB allowed besides", peak, set, ALLOWED_MIB);
}

void bench_judge_engine(struct bench_report *report)
{
    double create = get_fact(report, "open-empty/create");
    double again = get_fact(report, "open-empty/again");

    goals_of_speed(report);
    goal_query(report, "memory");
    goal_query(report, "rocksdb");
    goal(report, judge(again > 0, again < 25), "open of an empty database under 25 ms", "%.1f ms",
         again);
    goal(report, judge(create > 0, create < 25), "the same when it has to be created", "%.1f ms",
         create);
    goal_memory(report, "million");
    goal_memory(report, "small-settings");
}

void bench_print_goals(const struct bench_report *report)
{
    printf("\n%-62s %-58s %s\n", "goal", "measured", "met?");
    for (size_t i = 0; i < report->goals_len; i++) {
        const struct bench_goal *g = &report->goals[i];

        printf("%-62s %-58s %s\n", g->name, g->met < 0 ? "-" : g->measured,
               g->met < 0 ? "not measured"
               : g->met   ? "yes"
                          : "NO");
    }
}
