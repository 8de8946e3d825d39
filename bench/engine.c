/*
 * bench/engine.c: what the embedded engine costs, by operation and setting, against its goals.
 *
 *     bench_engine [--quick] [--seconds S] [--only PATTERN] [--items N] [--json FILE] [--dir DIR]
 *
 * Cells are named store[/durability]/table/operation/threads. They come in groups that share a
 * loaded database. Every group runs in a process of its own, which hands its results up a pipe:
 * so the memory that one measures is not what another left behind, and a crash costs one group.
 *
 *  (1) A group is loaded only if a cell or figure of it is wanted.
 *  (2) Time is bounded: each cell by --seconds, each load by LOAD_SECONDS.
 *  (3) What is compared is measured in turns in one process: see group_bare(), query_store().
 */
#include "lib_data.h"

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MANY_THREADS = 32,
    MILLION_FACTOR = 10, /* "a million" is so many times --items */
    LOAD_SECONDS = 60,
    OPEN_TIMES = 7,
    REOPEN_TIMES = 3,
    BARE_ROUNDS = 3,
    QUERY_ROUNDS = 7,
    PATH_BYTES = 512,
    RECORDS_MAX = 512,
    MIB = 1024 * 1024,
    DEFAULT_MEMTABLE_MIB = 32,
    DEFAULT_CACHE_MIB = 8,
    SMALL_MEMTABLE_MIB = 8,
    SMALL_CACHE_MIB = 2
};

struct bench {
    double seconds;
    uint64_t items;
    const char *only;
    const char *json;
    const char *parent; /* directory that the next is made in */
    char dir[PATH_BYTES];
    int results; /* a group's end of the pipe */
};

static const unsigned thread_counts[] = {1, MANY_THREADS};

/* ---- in a group ------------------------------------------------------------------------------ */

static bool wanted(const struct bench *b, const char *name)
{
    if (!b->only)
        return true;
    return strpbrk(b->only, "*?[") ? fnmatch(b->only, name, 0) == 0 : strstr(name, b->only) != NULL;
}

static bool wanted_any(const struct bench *b, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wanted(b, names[i]))
            return true;
    return false;
}

static void emit(const struct bench *b, const struct bench_record *record)
{
    if (write(b->results, record, sizeof(*record)) != (ssize_t)sizeof(*record))
        _exit(1); /* nobody reads any more */
}

static void emit_cell(const struct bench *b, const char *name, const struct bench_tally *tally)
{
    emit(b, &(struct bench_record){.is_cell = true, .cell = bench_cell_of(name, tally)});
}

static void HF_PRINTF(4, 5)
    emit_fact(const struct bench *b, const char *unit, double value, const char *format, ...)
{
    struct bench_record record = {.fact = {.value = value}};
    va_list args;

    snprintf(record.fact.unit, sizeof(record.fact.unit), "%s", unit);
    va_start(args, format);
    vsnprintf(record.fact.name, sizeof(record.fact.name), format, args);
    va_end(args);
    emit(b, &record);
}

static void cell(const struct bench *b, const char *name, bench_op_fn *op, struct bench_data *data,
                 unsigned threads, double seconds)
{
    struct bench_tally *tally = calloc(1, sizeof(*tally));

    if (!tally)
        bench_die("out of memory");
    bench_run(tally, op, data, threads, seconds);
    emit_cell(b, name, tally);
    free(tally);
}

struct settings {
    enum hf_sync sync;
    size_t memtable_mib, cache_mib; /* 0: the default */
};

/* Open a database in the group's directory, or one in memory when `name` is NULL. */
static struct hf_db *open_db(const struct bench *b, const char *name, struct settings settings)
{
    const struct hf_engine_options options = {.size = sizeof(options),
                                              .env = &bench_env,
                                              .sync = settings.sync,
                                              .memtable_bytes = settings.memtable_mib * MIB,
                                              .cache_bytes = settings.cache_mib * MIB};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str url =
        s && name ? hf_scope_format(s, "embedded:%s/%s", b->dir, name) : HF_STR("memory:");
    struct hf_db *db;

    if (!s || hf_open(s, url, &options, &db) != HF_OK)
        bench_die("open: %s", s ? hf_scope_error_text(s) : "out of memory");
    hf_scope_free(s);
    return db;
}

static const struct settings no_sync = {.sync = HF_SYNC_NONE};
static const struct settings full_sync = {.sync = HF_SYNC_FULL};

/* ---- operations, stores, durabilities, threads ----------------------------------------------- */

static const struct {
    const char *name;
    bench_op_fn *op;
    bool writes;     /* durability matters */
    bool with_index; /* an index matters */
} ops[] = {
    {"get", bench_op_get, false, false},
    {"query50", bench_op_query, false, true},
    {"put", bench_op_put, true, true},
    {"update-add", bench_op_update, true, true},
    {"transact4", bench_op_transact, true, true},
    {"batch25", bench_op_batch, true, true},
};

/* All cells of one open database; with data NULL only say whether any is wanted. */
static bool cells(const struct bench *b, const char *prefix, bool indexed, bool writes_only,
                  struct bench_data *data)
{
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if ((writes_only && !ops[i].writes) || (indexed && !ops[i].with_index))
            continue;
        for (size_t j = 0; j < ARRAY_LEN(thread_counts); j++) {
            char name[BENCH_NAME_MAX];

            snprintf(name, sizeof(name), "%s/%s/%s/%u", prefix, indexed ? "gsi" : "plain",
                     ops[i].name, thread_counts[j]);
            if (!wanted(b, name))
                continue;
            any = true;
            if (!data)
                continue;
            bench_settle(0.5);
            cell(b, name, ops[i].op, data, thread_counts[j], b->seconds);
        }
    }
    return any;
}

static void load(struct bench_data *data)
{
    bench_create_table(data);
    bench_load(data, LOAD_SECONDS);
    bench_settle(3);
}

static void group_in_memory(struct bench *b, bool indexed)
{
    struct bench_data *data;

    if (!cells(b, "memory", indexed, false, NULL))
        return;
    data = bench_data_new(b->items, indexed, false);
    data->db = open_db(b, NULL, no_sync);
    load(data);
    cells(b, "memory", indexed, false, data);
    bench_data_free(data);
}

static void group_on_disk(struct bench *b, bool indexed)
{
    bool full = cells(b, "rocksdb/full", indexed, true, NULL);
    struct bench_data *data;

    if (!full && !cells(b, "rocksdb/none", indexed, false, NULL))
        return;
    data = bench_data_new(b->items, indexed, false);
    data->db = open_db(b, "db", no_sync);
    load(data);
    cells(b, "rocksdb/none", indexed, false, data);
    if (full) {
        hf_db_close(data->db);
        data->db = open_db(b, "db", full_sync);
        bench_settle(3);
        cells(b, "rocksdb/full", indexed, true, data);
    }
    bench_data_free(data);
}

static void group_memory_plain(struct bench *b)
{
    group_in_memory(b, false);
}

static void group_memory_gsi(struct bench *b)
{
    group_in_memory(b, true);
}

static void group_rocksdb_plain(struct bench *b)
{
    group_on_disk(b, false);
}

static void group_rocksdb_gsi(struct bench *b)
{
    group_on_disk(b, true);
}

/* ---- a million items: memory, opening, reading ----------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double timed_open_ms(const struct bench *b, const char *name, struct hf_db **db)
{
    int64_t begin = bench_now_ns();

    *db = open_db(b, name, no_sync);
    return (double)(bench_now_ns() - begin) / 1e6;
}

/* The median of so many times that a database which is there is opened. */
static double reopen_ms(const struct bench *b, const char *name, size_t times)
{
    double ms[OPEN_TIMES];

    for (size_t i = 0; i < times; i++) {
        struct hf_db *db;

        ms[i] = timed_open_ms(b, name, &db);
        hf_db_close(db);
    }
    qsort(ms, times, sizeof(ms[0]), compare_doubles);
    return ms[times / 2];
}

/* What load_and_weigh() says, and group_million() besides. */
static const char *const weights[] = {"loaded",    "load-speed", "settings",
                                      "anon-peak", "anon",       "rss"};

static bool weight_wanted(const struct bench *b, const char *label)
{
    for (size_t i = 0; i < ARRAY_LEN(weights); i++) {
        char name[BENCH_NAME_MAX];

        snprintf(name, sizeof(name), "%s/%s", label, weights[i]);
        if (wanted(b, name))
            return true;
    }
    return false;
}

static double mib_between(uint64_t before, uint64_t after)
{
    return ((double)after - (double)before) / MIB;
}

/* Load, and say what memory that took above what the process had before it opened the database. */
static void load_and_weigh(const struct bench *b, struct bench_data *data, const char *label,
                           struct settings settings)
{
    struct bench_memory before = bench_memory_now(), after;
    struct bench_load loaded;

    data->db = open_db(b, "db", settings);
    bench_create_table(data);
    loaded = bench_load(data, LOAD_SECONDS);
    after = bench_memory_now();
    if (loaded.peak_anon < after.anon) /* a short load is hardly looked at */
        loaded.peak_anon = after.anon;
    emit_fact(b, "items", (double)data->loaded, "%s/loaded", label);
    emit_fact(b, "items/s", (double)data->loaded / loaded.seconds, "%s/load-speed", label);
    emit_fact(b, "MiB", (double)(settings.memtable_mib + settings.cache_mib), "%s/settings", label);
    emit_fact(b, "MiB", mib_between(before.anon, loaded.peak_anon), "%s/anon-peak", label);
    emit_fact(b, "MiB", mib_between(before.anon, after.anon), "%s/anon", label);
    emit_fact(b, "MiB", mib_between(before.rss, after.rss), "%s/rss", label);
}

static void group_million(struct bench *b)
{
    static const char *const others[] = {"rocksdb/none/million/get/1",
                                         "rocksdb/none/million/get/32", "million/open",
                                         "million/anon-after-reads", "million/rss-after-reads"};
    const struct settings settings = {HF_SYNC_NONE, DEFAULT_MEMTABLE_MIB, DEFAULT_CACHE_MIB};
    struct bench_memory before, after;
    struct bench_data *data;

    if (!weight_wanted(b, "million") && !wanted_any(b, others, ARRAY_LEN(others)))
        return;
    data = bench_data_new(b->items * MILLION_FACTOR, false, false);
    before = bench_memory_now();
    load_and_weigh(b, data, "million", settings);
    bench_settle(10);
    hf_db_close(data->db);
    emit_fact(b, "ms", reopen_ms(b, "db", REOPEN_TIMES), "million/open");
    data->db = open_db(b, "db", settings);
    bench_settle(10);
    /* Warm: what a cold file cache costs is the disk's affair. */
    bench_run(&(struct bench_tally){.ops = 0}, bench_op_get, data, 2, b->seconds);
    cell(b, others[0], bench_op_get, data, 1, b->seconds);
    cell(b, others[1], bench_op_get, data, MANY_THREADS, b->seconds);
    after = bench_memory_now();
    emit_fact(b, "MiB", mib_between(before.anon, after.anon), "million/anon-after-reads");
    emit_fact(b, "MiB", mib_between(before.rss, after.rss), "million/rss-after-reads");
    bench_data_free(data);
}

static void group_small_settings(struct bench *b)
{
    const struct settings settings = {HF_SYNC_NONE, SMALL_MEMTABLE_MIB, SMALL_CACHE_MIB};
    struct bench_data *data;

    if (!weight_wanted(b, "small-settings"))
        return;
    data = bench_data_new(b->items, false, false);
    load_and_weigh(b, data, "small-settings", settings);
    bench_data_free(data);
}

static void group_open(struct bench *b)
{
    static const char *const names[] = {"open-empty/create", "open-empty/again"};
    double ms[OPEN_TIMES];

    if (!wanted_any(b, names, ARRAY_LEN(names)))
        return;
    for (size_t i = 0; i < OPEN_TIMES; i++) {
        struct hf_db *db;
        char name[16];

        snprintf(name, sizeof(name), "db%zu", i);
        ms[i] = timed_open_ms(b, name, &db);
        hf_db_close(db);
    }
    qsort(ms, OPEN_TIMES, sizeof(ms[0]), compare_doubles);
    emit_fact(b, "ms", ms[OPEN_TIMES / 2], "%s", names[0]);
    emit_fact(b, "ms", reopen_ms(b, "db0", OPEN_TIMES), "%s", names[1]);
}

/* ---- queries --------------------------------------------------------------------------------- */

static const uint64_t query_counts[] = {1, 10, 50, 200};
enum { LARGE_TO_SMALL = 10 };

static void query_name(char name[BENCH_NAME_MAX], const char *store, const char *size, size_t i)
{
    snprintf(name, BENCH_NAME_MAX, "%s/query-%s/%llu/1", store, size,
             (unsigned long long)query_counts[i]);
}

/* A partition that is queried, and what its pages of each length cost. */
struct query_side {
    const char *size;
    struct bench_data *data;
    struct bench_tally *tallies;
    double per_item[ARRAY_LEN(query_counts)]; /* processor time, the least of all rounds */
};

static void query_open(const struct bench *b, const char *store, uint64_t items,
                       struct query_side *side)
{
    side->tallies = calloc(ARRAY_LEN(query_counts), sizeof(*side->tallies));
    if (!side->tallies)
        bench_die("out of memory");
    side->data = bench_data_new(items, false, true);
    side->data->db = open_db(b, strcmp(store, "memory") == 0 ? NULL : side->size, no_sync);
    load(side->data);
    if (strcmp(store, "memory") != 0) { /* so that both sizes are read from files */
        hf_db_close(side->data->db);
        side->data->db = open_db(b, side->size, no_sync);
    }
}

/* Processor time, for other programs take turns but do not count; they still get in the way of
 * caches, which is why the best round is kept. */
static void query_round(const struct bench *b, struct query_side *side, size_t i)
{
    struct bench_tally *tally = &side->tallies[i];
    double cpu_us = tally->cpu_us;
    uint64_t items = tally->items;
    double per_item;

    side->data->query_items = query_counts[i];
    bench_run(tally, bench_op_query, side->data, 1, b->seconds / 2 / QUERY_ROUNDS);
    if (tally->items == items)
        return;
    per_item = (tally->cpu_us - cpu_us) / (double)(tally->items - items);
    if (side->per_item[i] == 0 || per_item < side->per_item[i])
        side->per_item[i] = per_item;
}

static bool query_wanted(const struct bench *b, const char *store, const char *size, size_t i)
{
    char name[BENCH_NAME_MAX];

    query_name(name, store, size, i);
    return wanted(b, name);
}

static void query_close(const struct bench *b, const char *store, struct query_side *side)
{
    for (size_t i = 0; i < ARRAY_LEN(query_counts); i++) {
        char name[BENCH_NAME_MAX];

        query_name(name, store, side->size, i);
        if (side->tallies[i].ops == 0)
            continue;
        emit_cell(b, name, &side->tallies[i]);
        emit_fact(b, "us/item", side->per_item[i], "%s/per-item", name);
    }
    free(side->tallies);
    bench_data_free(side->data);
}

/* A small partition and a large one, all pages of both in turns. */
static void query_store(struct bench *b, const char *store)
{
    struct query_side sides[] = {{.size = "small"}, {.size = "large"}};
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(query_counts); i++)
        for (size_t j = 0; j < ARRAY_LEN(sides); j++)
            any = any || query_wanted(b, store, sides[j].size, i);
    if (!any)
        return;
    query_open(b, store, b->items / LARGE_TO_SMALL, &sides[0]);
    query_open(b, store, b->items, &sides[1]);
    for (size_t round = 0; round < QUERY_ROUNDS; round++)
        for (size_t i = 0; i < ARRAY_LEN(query_counts); i++)
            for (size_t j = 0; j < ARRAY_LEN(sides); j++)
                if (query_wanted(b, store, sides[j].size, i))
                    query_round(b, &sides[j], i);
    query_close(b, store, &sides[0]);
    query_close(b, store, &sides[1]);
}

static void group_query(struct bench *b)
{
    query_store(b, "memory");
    query_store(b, "rocksdb");
}

/* ---- against a bare loop --------------------------------------------------------------------- */

static double speed(const struct bench_tally *tally)
{
    return (double)tally->ops / tally->seconds;
}

/* In turns, as the speed of a disk's fsync drifts; each gets its part of the time in every round.
 */
static void group_bare(struct bench *b)
{
    enum { RAW, STORE, ENGINE, KINDS };
    static const char *const names[KINDS] = {"bare/rocksdb-sync/32", "bare/store/32",
                                             "bare/engine-put/32"};
    static bench_op_fn *const kinds[KINDS] = {bench_op_bare_rocksdb, bench_op_bare_store,
                                              bench_op_put};
    struct bench_tally *tallies;
    struct bench_data *data;
    char raw[PATH_BYTES + 8], store[PATH_BYTES + 8];
    void *users[KINDS];

    if (!wanted_any(b, names, KINDS))
        return;
    tallies = calloc(KINDS, sizeof(*tallies));
    if (!tallies)
        bench_die("out of memory");
    snprintf(raw, sizeof(raw), "%s/raw", b->dir);
    snprintf(store, sizeof(store), "%s/store", b->dir);
    users[RAW] = bench_bare_open_rocksdb(raw, b->items);
    users[STORE] = bench_bare_open_store(store, b->items);
    users[ENGINE] = data = bench_data_new(b->items, false, false);
    data->db = open_db(b, "db", no_sync);
    load(data);
    hf_db_close(data->db);
    data->db = open_db(b, "db", full_sync);
    bench_settle(5);
    for (int round = 0; round < BARE_ROUNDS; round++)
        for (int i = 0; i < KINDS; i++)
            bench_run(&tallies[i], kinds[i], users[i], MANY_THREADS, b->seconds);
    for (int i = 0; i < KINDS; i++)
        emit_cell(b, names[i], &tallies[i]);
    emit_fact(b, "of raw", speed(&tallies[ENGINE]) / speed(&tallies[RAW]),
              "bare/engine-to-rocksdb");
    emit_fact(b, "of store", speed(&tallies[ENGINE]) / speed(&tallies[STORE]),
              "bare/engine-to-store");
    bench_data_free(data);
    bench_bare_close(users[STORE]);
    bench_bare_close(users[RAW]);
    free(tallies);
}

/* ---- groups in processes --------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct bench *b);
} groups[] = {
    {"million", group_million},
    {"small-settings", group_small_settings},
    {"open", group_open},
    {"memory-plain", group_memory_plain},
    {"memory-gsi", group_memory_gsi},
    {"rocksdb-plain", group_rocksdb_plain},
    {"rocksdb-gsi", group_rocksdb_gsi},
    {"query", group_query},
    {"bare", group_bare},
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* Read what a group hands up until it ends. */
static void collect(struct bench_report *report, int from, pid_t pid)
{
    struct bench_record record;
    size_t have = 0;

    for (;;) {
        ssize_t got = read(from, (char *)&record + have, sizeof(record) - have);

        if (got < 0 && errno == EINTR) {
            if (interrupted)
                kill(pid, SIGKILL);
            continue;
        }
        if (got <= 0)
            return;
        have += (size_t)got;
        if (have < sizeof(record))
            continue;
        have = 0;
        if (report->len == RECORDS_MAX)
            bench_die("too many results");
        report->records[report->len++] = record;
        bench_print(&record);
        fflush(stdout);
    }
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static bool run_group(struct bench *b, size_t index, struct bench_report *report)
{
    struct bench mine = *b;
    int ends[2], status = 0;
    pid_t pid;

    snprintf(mine.dir, sizeof(mine.dir), "%.400s/%s", b->dir, groups[index].name);
    if (mkdir(mine.dir, 0777) || pipe(ends))
        bench_die("%s: %s", mine.dir, strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        bench_die("fork: %s", strerror(errno));
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        close(ends[0]);
        mine.results = ends[1];
        groups[index].run(&mine);
        _exit(0);
    }
    close(ends[1]);
    collect(report, ends[0], pid);
    close(ends[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    remove_tree(mine.dir);
    if (status && !interrupted)
        fprintf(stderr, "bench: the group %s failed (status %d)\n", groups[index].name, status);
    return status == 0;
}

/* ---- main ------------------------------------------------------------------------------------ */

/* Durability on a file system in memory would be a fine figure about nothing. */
static const char *file_system(const char *path)
{
    struct statfs info;

    if (statfs(path, &info))
        bench_die("%s: %s", path, strerror(errno));
    switch ((unsigned long)info.f_type) {
    case 0xef53:
        return "ext4";
    case 0x58465342:
        return "xfs";
    case 0x9123683e:
        return "btrfs";
    case 0x2fc12fc1:
        return "zfs";
    case 0x794c7630:
        return "overlayfs";
    case 0x01021994:
    case 0x858458f6:
        bench_die("%s is in memory; name a directory on a disk with --dir", path);
    default:
        return "an unnamed file system";
    }
}

static _Noreturn void usage(int status)
{
    fprintf(status ? stderr : stdout,
            "usage: bench_engine [--quick] [--seconds S] [--only PATTERN] [--items N]\n"
            "                    [--json FILE] [--dir DIR]\n\n"
            "  --quick     0.2 seconds per cell and 10000 items: does it work?\n"
            "  --seconds   per cell; default 1\n"
            "  --only      cells whose name contains it, or matches it as a shell pattern\n"
            "  --items     in a table, default 100000; the large table has ten times as many\n"
            "  --json      write the results there too\n"
            "  --dir       where to make a directory for the databases; default \".\"\n");
    exit(status);
}

static void parse(struct bench *b, int argc, char **argv)
{
    static const struct option longs[] = {
        {"quick", no_argument, NULL, 'q'},      {"seconds", required_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'}, {"items", required_argument, NULL, 'n'},
        {"json", required_argument, NULL, 'j'}, {"dir", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (option == 'q') {
            b->seconds = 0.2;
            b->items = 10000;
        } else if (option == 's') {
            b->seconds = strtod(optarg, NULL);
        } else if (option == 'o') {
            b->only = optarg;
        } else if (option == 'n') {
            b->items = strtoull(optarg, NULL, 10);
        } else if (option == 'j') {
            b->json = optarg;
        } else if (option == 'd') {
            b->parent = optarg;
        } else {
            usage(option == 'h' ? 0 : 2);
        }
    }
    if (optind < argc || !(b->seconds > 0) || b->items < 2 * 200 * LARGE_TO_SMALL ||
        b->items > 10000000)
        usage(2);
}

int main(int argc, char **argv)
{
    struct bench b = {.seconds = 1, .items = 100000, .parent = "."};
    struct bench_report report = {.records = calloc(RECORDS_MAX, sizeof(*report.records)),
                                  .goals = calloc(BENCH_GOALS_MAX, sizeof(*report.goals))};
    char about[PATH_BYTES];
    struct utsname host;
    bool good = true;

    parse(&b, argc, argv);
    if (!report.records || !report.goals)
        bench_die("out of memory");
    snprintf(b.dir, sizeof(b.dir), "%.400s/bench-engine-XXXXXX", b.parent);
    uname(&host);
    snprintf(about, sizeof(about),
             "\"version\": \"%s\", \"kernel\": \"%s\", \"processors\": %ld, \"file_system\": "
             "\"%s\", \"seconds\": %g, \"items\": %llu",
             hf_version(), host.release, sysconf(_SC_NPROCESSORS_ONLN), file_system(b.parent),
             b.seconds, (unsigned long long)b.items);
    if (!mkdtemp(b.dir))
        bench_die("%s: %s", b.dir, strerror(errno));
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    printf("%s\nin %s\n\n", about, b.dir);
    bench_print_head();
    for (size_t i = 0; i < ARRAY_LEN(groups) && !interrupted; i++)
        good = run_group(&b, i, &report) && good;
    remove_tree(b.dir);
    bench_judge_engine(&report);
    bench_print_goals(&report);
    if (b.json && !bench_write_json(&report, b.json, about)) {
        fprintf(stderr, "bench: %s: %s\n", b.json, strerror(errno));
        good = false;
    }
    for (size_t i = 0; i < report.len; i++)
        good = good && !(report.records[i].is_cell && report.records[i].cell.errors);
    free(report.records);
    free(report.goals);
    return good && !interrupted ? 0 : 1;
}
