/*
 * bench/lib_run.c: threads that do one operation over and over, and what they measured.
 *
 *  (1) Threads warm up for a fifth of the time, then meet at a barrier and start together.
 *  (2) A thread stops with the first call that ends after the deadline, so every call that began
 *      is counted, and the time divided by is that of the last thread to end.
 */
#include "lib.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

enum { WARM_UP_PART = 5 };

/* ---- clocks and dice ------------------------------------------------------------------------- */

int64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t bench_roll(struct bench_dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t bench_below(struct bench_dice *dice, uint64_t limit)
{
    return (bench_roll(dice) >> 32) * limit >> 32;
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* Values below SUB have a step each; above, every power of two has SUB steps. */
static size_t step_of(int64_t ns)
{
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
    unsigned octave = value < HISTOGRAM_SUB ? 0 : 63 - 6 - (unsigned)__builtin_clzll(value) + 1;
    size_t step;

    if (octave == 0)
        return value;
    step = (size_t)octave * HISTOGRAM_SUB + (size_t)((value >> (octave - 1)) - HISTOGRAM_SUB);
    return step < HISTOGRAM_LEN ? step : HISTOGRAM_LEN - 1;
}

_Static_assert(HISTOGRAM_SUB == 1 << 6, "step_of() counts six bits");

/* The largest value of a step, so that a quantile is never flattered. */
static double step_ns(size_t step)
{
    size_t octave = step / HISTOGRAM_SUB;
    size_t rest = step % HISTOGRAM_SUB;

    if (octave == 0)
        return (double)rest;
    return (double)(((uint64_t)(HISTOGRAM_SUB + rest + 1) << (octave - 1)) - 1);
}

void bench_histogram_add(struct bench_histogram *h, int64_t ns)
{
    h->count++;
    h->sum_ns += ns;
    if (ns > h->max_ns)
        h->max_ns = ns;
    h->steps[step_of(ns)]++;
}

void bench_histogram_merge(struct bench_histogram *h, const struct bench_histogram *other)
{
    h->count += other->count;
    h->sum_ns += other->sum_ns;
    if (other->max_ns > h->max_ns)
        h->max_ns = other->max_ns;
    for (size_t i = 0; i < HISTOGRAM_LEN; i++)
        h->steps[i] += other->steps[i];
}

double bench_histogram_us(const struct bench_histogram *h, double quantile)
{
    uint64_t want = (uint64_t)((double)h->count * quantile);
    uint64_t seen = 0;

    for (size_t i = 0; i < HISTOGRAM_LEN; i++) {
        seen += h->steps[i];
        if (seen > want)
            return step_ns(i) / 1000;
    }
    return (double)h->max_ns / 1000;
}

/* ---- running --------------------------------------------------------------------------------- */

struct run {
    bench_op_fn *op;
    pthread_barrier_t warm, go;
    int64_t warm_until_ns, until_ns; /* the second is set between the barriers */
    atomic_bool complained;
};

struct thread {
    struct run *run;
    pthread_t id;
    struct bench_worker worker;
    struct bench_allocs allocs;
    uint64_t errors;
    struct bench_histogram histogram;
};

static void complain(struct thread *t, enum hf_status status)
{
    t->errors++;
    if (!atomic_exchange(&t->run->complained, true))
        fprintf(stderr, "bench: %s: %s\n", hf_status_name(status),
                hf_scope_error_text(t->worker.s));
}

static struct bench_allocs allocs_since(struct bench_allocs then)
{
    struct bench_allocs now = bench_allocs_now();

    return (struct bench_allocs){now.calls - then.calls, now.bytes - then.bytes,
                                 now.our_calls - then.our_calls, now.our_bytes - then.our_bytes};
}

static void *thread_main(void *user)
{
    struct thread *t = user;
    struct bench_worker *w = &t->worker;
    struct bench_allocs then;

    do {
        hf_scope_reset(w->s);
        if (t->run->op(w) != HF_OK)
            break; /* shown below, as it will come again */
    } while (w->end_ns < t->run->warm_until_ns);
    pthread_barrier_wait(&t->run->warm);
    pthread_barrier_wait(&t->run->go);
    w->items = 0;
    then = bench_allocs_now();
    do {
        enum hf_status status;

        hf_scope_reset(w->s);
        status = t->run->op(w);
        if (status == HF_OK)
            bench_histogram_add(&t->histogram, w->end_ns - w->begin_ns);
        else
            complain(t, status);
    } while (w->end_ns < t->run->until_ns);
    t->allocs = allocs_since(then);
    return NULL;
}

double bench_cpu_us(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void merge(struct bench_tally *tally, const struct thread *t)
{
    tally->ops += t->histogram.count;
    tally->items += t->worker.items;
    tally->errors += t->errors;
    tally->allocs.calls += t->allocs.calls;
    tally->allocs.bytes += t->allocs.bytes;
    tally->allocs.our_calls += t->allocs.our_calls;
    tally->allocs.our_bytes += t->allocs.our_bytes;
    bench_histogram_merge(&tally->histogram, &t->histogram);
}

static void start(struct run *run, struct thread *threads, unsigned count, void *user)
{
    for (unsigned i = 0; i < count; i++) {
        struct thread *t = &threads[i];

        t->run = run;
        t->worker =
            (struct bench_worker){.s = hf_scope_new(&bench_env),
                                  .user = user,
                                  .dice = {.state = (i + 1) * UINT64_C(0x6a09e667f3bcc909)}};
        if (!t->worker.s || pthread_create(&t->id, NULL, thread_main, t))
            bench_die("cannot start thread %u", i);
    }
}

void bench_run(struct bench_tally *tally, bench_op_fn *op, void *user, unsigned count,
               double seconds)
{
    struct thread *threads = calloc(count, sizeof(*threads));
    struct run run = {.op = op};
    int64_t begin, end = 0;
    double cpu;

    if (!threads)
        bench_die("out of memory");
    pthread_barrier_init(&run.warm, NULL, count + 1);
    pthread_barrier_init(&run.go, NULL, count + 1);
    run.warm_until_ns = bench_now_ns() + (int64_t)(seconds * 1e9 / WARM_UP_PART);
    start(&run, threads, count, user);
    pthread_barrier_wait(&run.warm);
    cpu = bench_cpu_us();
    begin = bench_now_ns();
    run.until_ns = begin + (int64_t)(seconds * 1e9);
    pthread_barrier_wait(&run.go);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i].id, NULL);
    tally->cpu_us += bench_cpu_us() - cpu;
    tally->threads = count;
    for (unsigned i = 0; i < count; i++) {
        merge(tally, &threads[i]);
        end = threads[i].worker.end_ns > end ? threads[i].worker.end_ns : end;
        hf_scope_free(threads[i].worker.s);
    }
    tally->seconds += (double)(end - begin) / 1e9;
    pthread_barrier_destroy(&run.warm);
    pthread_barrier_destroy(&run.go);
    free(threads);
}

void bench_settle(double max_seconds)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const double idle_us = 5000;

    for (double waited = 0; waited < max_seconds; waited += 0.1) {
        double before = bench_cpu_us();

        nanosleep(&pause, NULL);
        if (bench_cpu_us() - before < idle_us)
            return;
    }
}
