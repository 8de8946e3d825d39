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
 * Linear: what one more item costs does not depend on how many there are. From a page of 10 to one
 * of 50 and from there to one of 200 an item more costs the same; were the cost the square of the
 * length, the second would be 4.2 times the first. And in a partition ten times the size it costs
 * the same but for the processor's caches, not ten times as much. The limits lie half way, as
 * factors go, so that noise has to double or halve a figure to be mistaken for the other thing.
 */
static void goal_query(struct bench_report *report, const char *store)
{
    static const char *const sizes[] = {"small", "large"};
    static const double lengths[] = {10, 50, 200};
    double near[2], far[2]; /* us per item more: up to 50, and from there up to 200 */
    bool measured = true, met = true;
    char name[BENCH_NAME_MAX];

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        double page[ARRAY_LEN(lengths)];

        for (size_t j = 0; j < ARRAY_LEN(lengths); j++) {
            snprintf(name, sizeof(name), "%s/query-%s/%.0f/1/per-item", store, sizes[i],
                     lengths[j]);
            page[j] = get_fact(report, name) * lengths[j];
            measured = measured && page[j] > 0;
        }
        near[i] = (page[1] - page[0]) / (lengths[1] - lengths[0]);
        far[i] = (page[2] - page[1]) / (lengths[2] - lengths[1]);
        met = met && far[i] <= 2 * near[i];
    }
    met = met && far[1] <= 3 * far[0];
    snprintf(name, sizeof(name), "Query cost linear in items returned, %s", store);
    goal(report, judge(measured, met), name,
         "us per item more, to 50 and to 200: %.2f %.2f, of large %.2f %.2f", near[0], far[0],
         near[1], far[1]);
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
