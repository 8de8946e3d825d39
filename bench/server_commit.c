/*
 * bench/server_commit.c: how many records the disk under a directory can take durably.
 *
 *     bench_server_commit --dir DIR [--writers N] [--seconds S] [--loop]
 *
 * N threads each want a record of 1.1 KiB to be durable, over and over. They share commits: one of
 * those that wait leads, writes what has gathered to a file that was filled before, and calls
 * fdatasync(); the others sleep. With --loop there is one thread instead that writes N records and
 * syncs, as a server does that gathers the requests of one turn of its loop. Prints a line of JSON.
 *
 * Guarded by `mutex`: everything in struct log but the file, which is the leader's.
 */
#include "lib.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <unistd.h>

enum { RECORD_BYTES = 1126, WRITERS_MAX = 1024, FILE_BYTES = 64 * 1024 * 1024 };

struct log {
    int fd;
    off_t offset;
    pthread_mutex_t mutex;
    pthread_cond_t written;
    bool leading;
    char *gathered, *writing; /* two buffers that change places */
    size_t gathered_len;      /* records; never more than writers */
    uint64_t asked, durable;  /* records so far */
    int64_t until_ns;
};

struct writer {
    struct log *log;
    pthread_t thread;
    struct bench_histogram histogram;
};

/* Write and sync; from the start again when the file is full, so that it never grows. */
static void commit(struct log *log, const char *bytes, size_t len)
{
    if (log->offset + (off_t)len > FILE_BYTES)
        log->offset = 0;
    if (pwrite(log->fd, bytes, len, log->offset) != (ssize_t)len || fdatasync(log->fd))
        bench_die("write: %s", strerror(errno));
    log->offset += (off_t)len;
}

static void append(struct log *log)
{
    uint64_t mine;

    pthread_mutex_lock(&log->mutex);
    memset(log->gathered + log->gathered_len * RECORD_BYTES, 'r', RECORD_BYTES);
    log->gathered_len++;
    mine = ++log->asked;
    while (log->durable < mine) {
        size_t count = log->gathered_len;
        char *bytes = log->gathered;

        if (log->leading) {
            pthread_cond_wait(&log->written, &log->mutex);
            continue;
        }
        log->leading = true;
        log->gathered = log->writing;
        log->gathered_len = 0;
        log->writing = bytes;
        pthread_mutex_unlock(&log->mutex);
        commit(log, bytes, count * RECORD_BYTES);
        pthread_mutex_lock(&log->mutex);
        log->durable += count;
        log->leading = false;
        pthread_cond_broadcast(&log->written);
    }
    pthread_mutex_unlock(&log->mutex);
}

static void *writer_main(void *user)
{
    struct writer *w = user;
    int64_t begin, end;

    do {
        begin = bench_now_ns();
        append(w->log);
        end = bench_now_ns();
        bench_histogram_add(&w->histogram, end - begin);
    } while (end < w->log->until_ns);
    return NULL;
}

static void run_writers(struct log *log, unsigned count, struct bench_histogram *all)
{
    struct writer *writers = calloc(count, sizeof(*writers));

    if (!writers)
        bench_die("out of memory");
    for (unsigned i = 0; i < count; i++) {
        writers[i].log = log;
        if (pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]))
            bench_die("cannot start thread %u", i);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(writers[i].thread, NULL);
        bench_histogram_merge(all, &writers[i].histogram);
    }
    free(writers);
}

static void run_loop(struct log *log, unsigned count, struct bench_histogram *all)
{
    int64_t begin, end;

    do {
        begin = bench_now_ns();
        memset(log->gathered, 'r', (size_t)count * RECORD_BYTES);
        commit(log, log->gathered, (size_t)count * RECORD_BYTES);
        end = bench_now_ns();
        for (unsigned i = 0; i < count; i++)
            bench_histogram_add(all, end - begin);
    } while (end < log->until_ns);
}

/* Written, not only allocated: a first write to allocated blocks would change the file's extents.
 */
static void open_log(struct log *log, const char *dir)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/commit.XXXXXX", dir);
    log->fd = mkstemp(path);
    if (log->fd < 0)
        bench_die("%s: %s", path, strerror(errno));
    unlink(path);
    log->gathered = calloc(WRITERS_MAX, RECORD_BYTES);
    log->writing = calloc(WRITERS_MAX, RECORD_BYTES);
    if (!log->gathered || !log->writing)
        bench_die("out of memory");
    for (off_t at = 0; at < FILE_BYTES; at += 64 * 1024)
        if (pwrite(log->fd, log->writing, 64 * 1024, at) != 64 * 1024)
            bench_die("%s: %s", path, strerror(errno));
    if (fsync(log->fd))
        bench_die("%s: %s", path, strerror(errno));
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},
        {"writers", required_argument, NULL, 'w'},
        {"seconds", required_argument, NULL, 's'},
        {"loop", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    static struct bench_histogram all;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER, .written = PTHREAD_COND_INITIALIZER};
    const char *dir = ".";
    unsigned writers = 32;
    double seconds = 1, took;
    bool loop = false;
    int64_t begin;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'd')
            dir = optarg;
        else if (c == 'w')
            writers = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 's')
            seconds = strtod(optarg, NULL);
        else if (c == 'l')
            loop = true;
        else
            bench_die("usage: bench_server_commit --dir DIR [--writers N] [--seconds S] [--loop]");
    }
    if (writers == 0 || writers > WRITERS_MAX || !(seconds > 0))
        bench_die("--writers must be from 1 to %d, --seconds above 0", WRITERS_MAX);
    open_log(&log, dir);
    begin = bench_now_ns();
    log.until_ns = begin + (int64_t)(seconds * 1e9);
    (loop ? run_loop : run_writers)(&log, writers, &all);
    took = (double)(bench_now_ns() - begin) / 1e9;
    close(log.fd);
    free(log.gathered);
    free(log.writing);
    printf("{\"ops\": %llu, \"errors\": 0, \"seconds\": %.6f, \"ops_per_s\": %.1f, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"cpu_us\": 0}\n",
           (unsigned long long)all.count, took, (double)all.count / took,
           bench_histogram_us(&all, 0.5), bench_histogram_us(&all, 0.99),
           (double)all.max_ns / 1000);
    return 0;
}
