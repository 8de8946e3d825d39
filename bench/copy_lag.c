/*
 * bench/copy_lag.c: how far a copy that follows is behind its source.
 *
 *     bench_copy_lag SOURCE TARGET [--rate N] [--seconds N] [--writers N] [--table NAME]
 *
 * Writers put items into a table of the source, one request at a time each, together at most --rate
 * a second: each has its own schedule, and one that is late goes on at once, so that a pause of the
 * source does not make the load easier. A sampler puts an item of its own, notes when the source has
 * acknowledged it, and asks the target for it until it is there: the time between is the lag, with at
 * most one GetItem of the target too much. Another program, `holdfast copy --follow`, does the work:
 * bench/copy starts it.
 *
 * It prints one line of JSON: writes that were acknowledged, seconds, samples, and the lag in
 * milliseconds.
 */
#include "lib.h"

#include <holdfast/client.h>
#include <holdfast/db.h>

#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    RATE = 5000,
    SECONDS = 20,
    WRITERS = 8,
    WRITERS_MAX = 64,
    SAMPLE_GAP_MS = 5,
    KEYS = 100000, /* of each writer: it begins again behind the last */
    LOST_MS = 60000
};

struct load {
    struct hf_db *source;
    struct hf_db *target;
    struct hf_str table;
    unsigned rate, seconds, writers;
    double begin;
    atomic_ullong acknowledged;
    struct bench_histogram lag;
};

struct writer {
    struct load *load;
    unsigned number;
};

static double now_s(void)
{
    return (double)bench_now_ns() / 1e9;
}

static void sleep_until(double when)
{
    double left = when - now_s();
    struct timespec for_s;

    if (left <= 0)
        return;
    for_s.tv_sec = (time_t)left;
    for_s.tv_nsec = (long)((left - (double)for_s.tv_sec) * 1e9);
    nanosleep(&for_s, NULL);
}

static void fail(struct hf_scope *s, const char *what)
{
    fprintf(stderr, "bench_copy_lag: %s: %s\n", what, hf_scope_error_text(s));
    exit(1);
}

static void put(struct hf_scope *s, const struct load *load, struct hf_str key, int64_t number)
{
    const char text[] = "a hundred bytes or so, as items of the usual kind have them; this one "
                        "has a few more than that";
    struct hf_put_item request = {.table = load->table,
                                  .item = HF_ITEM(s, HF_S("id", key), HF_N("number", number),
                                                  HF_S("text", hf_str_from(text)))};

    if (hf_put_item(s, load->source, &request, NULL) != HF_OK)
        fail(s, "a write failed");
}

static void *writer_run(void *user)
{
    const struct writer *writer = user;
    struct load *load = writer->load;
    struct hf_scope *s = hf_scope_new(NULL);
    double step = (double)load->writers / load->rate;

    for (int64_t i = 0;; i++) {
        double due = load->begin + ((double)i + (double)writer->number / load->writers) * step;

        if (due >= load->begin + load->seconds)
            break;
        sleep_until(due);
        if (now_s() >= load->begin + load->seconds)
            break;
        put(s, load, hf_scope_format(s, "w%u-%lld", writer->number, (long long)(i % KEYS)), i);
        atomic_fetch_add(&load->acknowledged, 1);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* Seconds from the answer of the source to the first answer of the target that has the item. */
static double sample_lag(struct hf_scope *s, const struct load *load, struct hf_str key)
{
    struct hf_get_item request = {.table = load->table, .consistent = HF_YES};
    double acknowledged, seen;

    put(s, load, key, 0);
    acknowledged = now_s();
    request.key = HF_ITEM(s, HF_S("id", key));
    do {
        struct hf_get_item_result got;

        if (hf_get_item(s, load->target, &request, &got) != HF_OK)
            fail(s, "a read of the target failed");
        seen = now_s();
        if (got.item.ptr)
            return seen - acknowledged;
        sleep_until(seen + 0.001);
    } while (seen - acknowledged < LOST_MS / 1000.0);
    fprintf(stderr, "bench_copy_lag: %.*s did not arrive within a minute: is the copy running?\n",
            HF_FMT(key));
    exit(1);
}

static void samples_take(struct load *load)
{
    struct hf_scope *s = hf_scope_new(NULL);

    while (now_s() < load->begin + load->seconds) {
        struct hf_str key = hf_scope_format(s, "sample-%llu", (unsigned long long)load->lag.count);

        bench_histogram_add(&load->lag, (int64_t)(sample_lag(s, load, key) * 1e9));
        hf_scope_reset(s);
        sleep_until(now_s() + SAMPLE_GAP_MS / 1000.0);
    }
    hf_scope_free(s);
}

static struct hf_db *open_url(struct hf_scope *s, const char *url)
{
    struct hf_db *db;

    if (hf_connect(s, hf_str_from(url), HF_OPTIONS(hf_client_options, .no_aws_config = true),
                   &db) != HF_OK)
        fail(s, url);
    return db;
}

static unsigned number_of(const char *text, unsigned max)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (*end || !number || number > max) {
        fprintf(stderr, "bench_copy_lag: \"%s\" is no number from 1 to %u\n", text, max);
        exit(2);
    }
    return (unsigned)number;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"rate", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"writers", required_argument, NULL, 'w'},
                                            {"table", required_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    static struct load load = {.rate = RATE,
                               .seconds = SECONDS,
                               .writers = WRITERS,
                               .table = {"orders", 6}};
    struct hf_scope *s = hf_scope_new(NULL);
    pthread_t threads[WRITERS_MAX];
    struct writer writers[WRITERS_MAX];
    double end;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'r')
            load.rate = number_of(optarg, 1000000);
        else if (option == 's')
            load.seconds = number_of(optarg, 3600);
        else if (option == 'w')
            load.writers = number_of(optarg, WRITERS_MAX);
        else if (option == 't')
            load.table = hf_str_from(optarg);
        else
            return 2;
    }
    if (argc - optind != 2) {
        fprintf(stderr, "usage: bench_copy_lag SOURCE TARGET [--rate N] [--seconds N] "
                        "[--writers N] [--table NAME]\n");
        return 2;
    }
    load.source = open_url(s, argv[optind]);
    load.target = open_url(s, argv[optind + 1]);
    load.begin = now_s();
    for (unsigned i = 0; i < load.writers; i++) {
        writers[i] = (struct writer){&load, i};
        if (pthread_create(&threads[i], NULL, writer_run, &writers[i]) != 0)
            return 1;
    }
    samples_take(&load);
    for (unsigned i = 0; i < load.writers; i++)
        pthread_join(threads[i], NULL);
    end = now_s();
    printf("{\"writes\": %llu, \"seconds\": %.3f, \"samples\": %llu, \"p50_ms\": %.2f, "
           "\"p99_ms\": %.2f, \"max_ms\": %.2f}\n",
           (unsigned long long)load.acknowledged, end - load.begin,
           (unsigned long long)load.lag.count, bench_histogram_us(&load.lag, 0.5) / 1000,
           bench_histogram_us(&load.lag, 0.99) / 1000, (double)load.lag.max_ns / 1e6);
    hf_db_close(load.target);
    hf_db_close(load.source);
    hf_scope_free(s);
    return 0;
}
