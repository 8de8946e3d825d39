/*
 * server/console/figures.c: see figures.h.
 *
 * The thread has two pairs of sums of the counters, of now and of the last point or news; what
 * happened in between is their difference. News is made as text, once, and kept until the next:
 * each loop copies it to its connections.
 */
#include "server/console/figures.h"

#include <holdfast/engine.h>
#include <sys/statvfs.h>

#include "base/cond_monotonic.h"
#include "base/fnv.h"
#include "ops/fields.h"
#include "server/console/figures_private.h"
#include "server/console/hot.h"
#include "server/console/tail.h"
#include "server/console/watcher.h"
#include "server/metrics.h"
#include "server/private.h"
#include "wire/wire.h"

enum {
    WRITTEN_TABLES = 256, /* places for tables at first, a power of two */
    MINUTE_POINTS = 60 * 1000 / POINT_MS,
    RECENT_POINTS = 5 * MINUTE_POINTS,
    BACKUPS_MS = 5 * 60 * 1000,
    BACKUP_PAGES = 20,             /* that are read at most */
    JUMP_MS = 2000,                /* a clock that differs by more has jumped, */
    JUMP_SHOWN_MS = 10 * 60 * 1000 /* and for so long this is said */
};

/* ---- looking -------------------------------------------------------------------------------- */

static uint64_t ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / 1000000 : 0;
}

static void look_at_disk(const struct server *server, struct gauges *gauges)
{
    struct statvfs disk;

    if (!server->options.data_dir.ptr || statvfs(server->options.data_dir.ptr, &disk) != 0)
        return;
    gauges->disk_free = (uint64_t)disk.f_bavail * disk.f_frsize;
    gauges->disk_total = (uint64_t)disk.f_blocks * disk.f_frsize;
}

static void look_at_gauges(struct server *server, struct gauges *gauges)
{
    struct hf_engine_stats stats;

    hf_engine_stats(server->engine, &stats);
    *gauges = (struct gauges){.connections = atomic_load(&server->conns_len),
                              .resident = hf__metrics_resident(),
                              .input = atomic_load(&server->budget.input),
                              .output = atomic_load(&server->budget.output),
                              .waiting = atomic_load(&server->work.waiting),
                              .running = atomic_load(&server->work.running),
                              .syncs = stats.syncs,
                              .store = stats.memory_bytes,
                              .disk = stats.disk_bytes,
                              .stopped = stats.stopped,
                              .no_space = stats.no_space};
    look_at_disk(server, gauges);
}

static void swap_sums(uint64_t **a, uint64_t **b)
{
    uint64_t *other = *a;

    *a = *b;
    *b = other;
}

/* ---- points --------------------------------------------------------------------------------- */

static void fill_point(struct figures *f, struct point *point)
{
    struct metrics_times reads, writes, commits;

    hf__metrics_sum(f->server, f->sum);
    for (int op = 0; op < HF_OP_COUNT; op++) {
        struct metrics_times times = hf__metrics_between(f->point_sum, f->sum, op);

        point->count[op] = (uint32_t)times.count;
        point->errors[op] = (uint32_t)times.errors;
    }
    reads = hf__metrics_between(f->point_sum, f->sum, METRICS_READS);
    writes = hf__metrics_between(f->point_sum, f->sum, METRICS_WRITES);
    commits = hf__metrics_commits(f->point_sum, f->sum);
    point->read_p50 = (float)reads.p50_us;
    point->read_p99 = (float)reads.p99_us;
    point->write_p50 = (float)writes.p50_us;
    point->write_p99 = (float)writes.p99_us;
    point->commit_p50 = (float)commits.p50_us;
    point->commit_p99 = (float)commits.p99_us;
    point->commits = commits.count;
    point->committed = commits.errors;
    point->events = hf__metrics_events(f->point_sum, f->sum);
    look_at_gauges(f->server, &point->gauges);
    point->syncs = point->gauges.syncs - f->point_syncs;
    f->point_syncs = point->gauges.syncs;
    swap_sums(&f->sum, &f->point_sum);
}

/* A clock that somebody set differs from the monotonic one by what it was set by. */
static void look_at_clock(struct figures *f, int64_t wall_us, uint64_t now_ns)
{
    int64_t jump_ms = (wall_us - f->clock_us) / 1000 - (int64_t)ms_between(f->clock_ns, now_ns);

    if (f->clock_ns && (jump_ms > JUMP_MS || jump_ms < -JUMP_MS)) {
        f->jump_ms = jump_ms;
        f->jump_ns = now_ns;
    }
    f->clock_us = wall_us;
    f->clock_ns = now_ns;
    if (f->jump_ms && ms_between(f->jump_ns, now_ns) > JUMP_SHOWN_MS)
        f->jump_ms = 0;
}

static void take_point(struct figures *f, uint64_t now_ns)
{
    int64_t wall_us = hf__env_wall_us(&f->server->env);
    struct point point;

    memset(&point, 0, sizeof(point));
    point.time_ms = wall_us / 1000;
    look_at_clock(f, wall_us, now_ns);
    fill_point(f, &point);
    f->point_ns = now_ns;
    pthread_mutex_lock(&f->lock);
    f->points[f->points_next] = point;
    f->points_next = (f->points_next + 1) % POINTS;
    f->points_len += f->points_len < POINTS;
    pthread_mutex_unlock(&f->lock);
}

/* ---- health --------------------------------------------------------------------------------- */

static void look_at_backups(struct figures *f, uint64_t now_ns)
{
    struct hf_list_backups ask = {.limit = 100};
    struct hf_list_backups_result got;
    struct hf_list_tables_result tables;
    struct hf_scope *s = f->scope;
    int64_t newest_us = -1;

    if (f->server->options.remote ||
        (f->backups_ns && ms_between(f->backups_ns, now_ns) < BACKUPS_MS))
        return;
    f->backups_ns = now_ns;
    f->facts.backups_known = false;
    hf_scope_reset(s);
    if (hf_list_tables(s, f->server->engine, &(struct hf_list_tables){.limit = 1}, &tables) !=
        HF_OK)
        return;
    f->facts.tables = (int64_t)tables.tables_len;
    for (int page = 0; page < BACKUP_PAGES; page++) {
        hf_scope_timeout_ms(s, POINT_MS);
        if (hf_list_backups(s, f->server->engine, &ask, &got) != HF_OK)
            return;
        for (size_t i = 0; i < got.backups_len; i++) {
            if (got.backups[i].created_us > newest_us)
                newest_us = got.backups[i].created_us;
        }
        if (!got.last_arn.ptr)
            break;
        ask.start_arn = got.last_arn;
    }
    f->facts.backup_age_s =
        newest_us < 0 ? -1 : (hf__env_wall_us(&f->server->env) - newest_us) / 1000000;
    f->facts.backups_known = true;
}

/* Of the last minutes; points are the thread's to read, as only it changes them. */
static void look_back(struct figures *f)
{
    struct health_facts *facts = &f->facts;

    facts->commits = facts->turned_away = facts->busy = facts->evicted = facts->lengthy =
        facts->refused = 0;
    facts->commit_p99_us = 0;
    for (size_t i = f->points_len > RECENT_POINTS ? f->points_len - RECENT_POINTS : 0;
         i < f->points_len; i++) {
        const struct point *point = hf__figures_point(f, i);

        facts->turned_away += point->events.turned_away;
        facts->busy += point->events.busy;
        facts->evicted += point->events.evicted;
        facts->lengthy += point->events.lengthy;
        facts->refused += point->events.refused;
        if (i + MINUTE_POINTS < f->points_len)
            continue;
        facts->commits += point->commits;
        if (point->commit_p99 > facts->commit_p99_us)
            facts->commit_p99_us = point->commit_p99;
    }
}

static void make_health(struct figures *f, const struct gauges *gauges, uint64_t now_ns)
{
    const struct server *server = f->server;
    const struct server_options *o = &server->options;
    struct health_facts *facts = &f->facts;

    look_at_backups(f, now_ns);
    look_back(f);
    facts->in_memory = o->in_memory;
    facts->remote = o->remote;
    facts->read_only = o->read_only;
    facts->open_to_all = o->keys_len == 0 && !server->loopback;
    facts->stopped = gauges->stopped;
    facts->no_space = gauges->no_space;
    facts->disk_free = gauges->disk_free;
    facts->disk_total = gauges->disk_total;
    facts->disk_used = gauges->disk;
    facts->connections = gauges->connections;
    facts->connections_limit = o->connections_max;
    facts->input = gauges->input;
    facts->input_limit = server->budget.input_max;
    facts->output = gauges->output;
    facts->output_limit = server->budget.output_max;
    facts->resident = gauges->resident;
    if (!facts->memory_limit)
        facts->memory_limit = hf__memory_limit();
    facts->clock_jump_ms = f->jump_ms;
    f->more.len = 0;
    f->more.failed = false;
    hf__buf_put_str(&f->more, HF_STR("event: health\ndata: "));
    hf__health_write(&f->more, facts);
    hf__buf_put_str(&f->more, HF_STR("\n\n"));
    f->health_ns = now_ns;
}

/* ---- tables that were written --------------------------------------------------------------- */

static struct written *place_of(struct written *list, size_t cap, uint64_t hash)
{
    for (size_t i = 0;; i++) { /* a quarter is free */
        struct written *written = &list[(hash + i) & (cap - 1)];

        if (!written->hash || written->hash == hash)
            return written;
    }
}

static bool grow_written(struct figures *f)
{
    const struct hf_env *env = &f->server->env;
    size_t cap = f->written_cap ? 2 * f->written_cap : WRITTEN_TABLES;
    struct written *grown = hf__env_alloc(env, cap * sizeof(*grown));

    if (!grown)
        return false;
    memset(grown, 0, cap * sizeof(*grown));
    for (size_t i = 0; i < f->written_cap; i++) {
        if (f->written[i].hash)
            *place_of(grown, cap, f->written[i].hash) = f->written[i];
    }
    hf__env_free(env, f->written, f->written_cap * sizeof(*grown));
    f->written = grown;
    f->written_cap = cap;
    return true;
}

static struct written *find_written(struct figures *f, struct hf_str table)
{
    uint64_t hash = fnv_fold(fnv_add(FNV_BEGIN, table.ptr, table.len)) | 1;
    struct written *written;

    if (4 * (f->written_len + 1) > 3 * f->written_cap && !grow_written(f)) {
        f->written_full = true;
        return NULL;
    }
    written = place_of(f->written, f->written_cap, hash);
    if (!written->hash)
        f->written_len++;
    written->hash = hash;
    return written;
}

static void add_written(struct hf_str table, uint64_t writes, void *user)
{
    struct written *written = find_written(user, table);

    if (written)
        written->now += writes;
}

static void report_written(struct hf_str table, uint64_t writes, void *user)
{
    struct figures *f = user;
    struct written *written = find_written(f, table);

    (void)writes;
    if (!written || written->now == written->before)
        return;
    written->before = written->now;
    hf__buf_put_str(&f->text,
                    f->written_any ? HF_STR(",") : HF_STR("event: writes\ndata: {\"tables\":["));
    hf__wire_write_str(&f->text, table);
    f->written_any = true;
}

/* Of an embedded database the engine counts all changes of items. Of tables, and of a service, we know
 * our own calls. */
static void look_at_writes(struct figures *f, hf_engine_changes_fn *take)
{
    struct server *server = f->server;

    hf__hot_writes(server->hot, server->loops_len + server->options.workers, take, f);
    hf_engine_changes(server->engine, take, f);
}

/* Tables that were written since the last time; of the first, since somebody watched before that, so
 * that nothing is missed between the begin of a stream and its first news. */
static void make_writes(struct figures *f)
{
    size_t begin = f->text.len;

    for (size_t i = 0; i < f->written_cap; i++)
        f->written[i].now = 0;
    f->written_full = f->written_any = false;
    look_at_writes(f, add_written);
    look_at_writes(f, report_written);
    if (f->written_any)
        hf__buf_put_str(&f->text, HF_STR("]}\n\n"));
    if (f->written_full) {
        f->text.len = begin;
        hf__buf_put_str(&f->text, HF_STR("event: writes\ndata: {\"all\":true}\n\n"));
    }
}

/* ---- news ----------------------------------------------------------------------------------- */

static void put_times(struct hf__buf *out, const char *name, const struct metrics_times *times)
{
    hf__buf_format(out, "\"%s\":{\"count\":%llu,\"errors\":%llu,\"p50_us\":%.0f,\"p99_us\":%.0f}",
                   name, (unsigned long long)times->count, (unsigned long long)times->errors,
                   times->p50_us, times->p99_us);
}

static void put_number(struct hf__buf *out, const char *name, uint64_t number)
{
    hf__buf_format(out, ",\"%s\":%llu", name, (unsigned long long)number);
}

static void put_ops(struct hf__buf *out, const uint64_t *before, const uint64_t *now)
{
    bool any = false;

    hf__buf_put_str(out, HF_STR("\"ops\":{"));
    for (int op = 0; op < HF_OP_COUNT; op++) {
        struct metrics_times times = hf__metrics_between(before, now, op);

        if (times.count == 0)
            continue;
        if (any)
            hf__buf_put_byte(out, ',');
        put_times(out, hf__op((enum hf_op)op)->name.ptr, &times);
        any = true;
    }
    hf__buf_put_byte(out, '}');
}

static void put_gauges(struct hf__buf *out, const struct server *server,
                       const struct gauges *gauges)
{
    put_number(out, "connections", gauges->connections);
    put_number(out, "connections_limit", server->options.connections_max);
    put_number(out, "resident_bytes", gauges->resident);
    put_number(out, "input_bytes", gauges->input);
    put_number(out, "input_limit_bytes", server->budget.input_max);
    put_number(out, "output_bytes", gauges->output);
    put_number(out, "output_limit_bytes", server->budget.output_max);
    put_number(out, "work_waiting", gauges->waiting);
    put_number(out, "work_running", gauges->running);
    if (server->options.remote)
        return;
    put_number(out, "store_bytes", gauges->store);
    put_number(out, "disk_bytes", gauges->disk);
    if (gauges->disk_total) {
        put_number(out, "disk_free_bytes", gauges->disk_free);
        put_number(out, "disk_total_bytes", gauges->disk_total);
    }
}

static void make_figures(struct figures *f, const struct gauges *gauges, uint64_t now_ns)
{
    struct hf__buf *out = &f->text;
    struct metrics_times reads, writes, commits;
    struct metrics_events events;

    hf__metrics_sum(f->server, f->sum);
    reads = hf__metrics_between(f->news_sum, f->sum, METRICS_READS);
    writes = hf__metrics_between(f->news_sum, f->sum, METRICS_WRITES);
    commits = hf__metrics_commits(f->news_sum, f->sum);
    events = hf__metrics_events(f->news_sum, f->sum);
    hf__buf_format(out, "event: figures\ndata: {\"time_ms\":%lld,\"interval_ms\":%llu,",
                   (long long)(hf__env_wall_us(&f->server->env) / 1000),
                   (unsigned long long)ms_between(f->news_ns, now_ns));
    put_ops(out, f->news_sum, f->sum);
    hf__buf_put_byte(out, ',');
    put_times(out, "read", &reads);
    hf__buf_put_byte(out, ',');
    put_times(out, "write", &writes);
    hf__buf_format(out,
                   ",\"commit\":{\"count\":%llu,\"answers\":%llu,\"p50_us\":%.0f,\"p99_us\":%.0f}",
                   (unsigned long long)commits.count, (unsigned long long)commits.errors,
                   commits.p50_us, commits.p99_us);
    put_number(out, "fsyncs", gauges->syncs - f->news_syncs);
    put_number(out, "bytes_in", events.bytes_in);
    put_number(out, "bytes_out", events.bytes_out);
    put_gauges(out, f->server, gauges);
    hf__buf_put_str(out, HF_STR("}\n\n"));
    swap_sums(&f->sum, &f->news_sum);
    f->news_syncs = gauges->syncs;
    f->news_ns = now_ns;
}

static void swap_bufs(struct hf__buf *a, struct hf__buf *b)
{
    struct hf__buf other = *a;

    *a = *b;
    *b = other;
    b->len = 0;
    b->failed = false;
}

static bool same_text(const struct hf__buf *a, const struct hf__buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

static void wake_watchers(struct figures *f)
{
    for (size_t i = 0; i < f->server->loops_len; i++)
        uv_async_send(&f->server->loops[i].news);
}

/* A text that there was no memory for is no news: the next tells as much. */
static void make_news(struct figures *f, uint64_t now_ns, bool tails)
{
    bool due = ms_between(f->news_ns, now_ns) >= NEWS_MS;
    bool health = due && ms_between(f->health_ns, now_ns) >= HEALTH_MS;
    uint64_t dropped = 0, requests = 0;
    struct gauges gauges;
    struct hf__buf tail = {.env = &f->server->env};

    if (due) {
        look_at_gauges(f->server, &gauges);
        make_writes(f);
        make_figures(f, &gauges, now_ns);
        if (health)
            make_health(f, &gauges, now_ns);
    }
    if (due && ms_between(f->beat_ns, now_ns) >= HEARTBEAT_MS) {
        hf__buf_put_str(&f->text, HF_STR(": alive\n\n"));
        f->beat_ns = now_ns;
    }
    if (tails) {
        dropped = hf__tail_take(f->server, &tail, &requests);
        f->tail_ns = now_ns;
    }
    if (!due && requests == 0 && dropped == 0) {
        hf__buf_free(&tail);
        return;
    }
    pthread_mutex_lock(&f->lock);
    if (health && !f->more.failed && !same_text(&f->more, &f->health)) {
        hf__buf_put(&f->text, f->more.ptr, f->more.len);
        swap_bufs(&f->health, &f->more);
    }
    swap_bufs(&f->news, &f->text);
    swap_bufs(&f->tail, &tail);
    f->tail_len = requests;
    f->tail_dropped = dropped;
    f->number++;
    pthread_mutex_unlock(&f->lock);
    hf__buf_free(&tail);
    wake_watchers(f);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static uint64_t next_ms(const struct figures *f, bool watched, bool tailed, uint64_t now_ns)
{
    uint64_t every = tailed ? TAIL_MS : watched ? NEWS_MS : POINT_MS;
    uint64_t since = tailed    ? ms_between(f->tail_ns, now_ns)
                     : watched ? ms_between(f->news_ns, now_ns)
                               : ms_between(f->point_ns, now_ns);

    return since >= every ? 0 : every - since;
}

/* The first to watch: what is told begins now. */
static void begin_news(struct figures *f)
{
    struct gauges gauges;

    look_at_gauges(f->server, &gauges);
    hf__metrics_sum(f->server, f->news_sum);
    f->news_syncs = gauges.syncs;
    f->news_ns = uv_hrtime() - NEWS_MS * UINT64_C(1000000) / 2;
    f->health_ns = 0;
}

static void *run_figures(void *user)
{
    struct figures *f = user;
    bool watched = false;

    take_point(f, uv_hrtime());
    pthread_mutex_lock(&f->lock);
    while (!f->stops) {
        bool begins = f->watches > 0 && !watched, tailed = f->tails > 0;
        uint64_t now_ns = uv_hrtime(), ms;

        watched = f->watches > 0;
        ms = next_ms(f, watched, tailed, now_ns);
        if (ms > 0 && !begins) {
            cond_wait_ms(&f->changed, &f->lock, (int64_t)ms);
            continue;
        }
        pthread_mutex_unlock(&f->lock);
        if (begins)
            begin_news(f);
        if (ms_between(f->point_ns, now_ns) >= POINT_MS)
            take_point(f, now_ns);
        if (watched && !begins)
            make_news(f, now_ns, tailed);
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- watching ------------------------------------------------------------------------------- */

bool hf__figures_watch(struct figures *f, bool requests)
{
    bool room;

    pthread_mutex_lock(&f->lock);
    room = f->watches < f->watches_max && !f->stops;
    f->watches += room;
    f->tails += room && requests;
    if (room && requests)
        atomic_store(&f->server->tailed, true);
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return room;
}

void hf__figures_unwatch(struct figures *f, bool requests)
{
    pthread_mutex_lock(&f->lock);
    assert(f->watches > 0 && f->tails >= requests);
    f->watches--;
    f->tails -= requests;
    if (f->watches == 0)
        f->health.len = 0; /* it grows old */
    if (f->tails == 0)
        atomic_store(&f->server->tailed, false);
    pthread_mutex_unlock(&f->lock);
}

void hf__figures_begin(struct figures *f, struct news_seen *seen, struct hf__buf *out)
{
    pthread_mutex_lock(&f->lock);
    *seen = (struct news_seen){.number = f->number};
    hf__buf_put(out, f->health.ptr, f->health.len);
    pthread_mutex_unlock(&f->lock);
}

static void put_dropped(struct hf__buf *out, struct news_seen *seen)
{
    if (seen->dropped)
        hf__buf_format(out, "event: dropped\ndata: {\"requests\":%llu}\n\n",
                       (unsigned long long)seen->dropped);
    seen->dropped = 0;
}

void hf__figures_news(struct figures *f, struct news_seen *seen, bool requests, bool missed,
                      struct hf__buf *out)
{
    pthread_mutex_lock(&f->lock);
    if (seen->number != f->number) {
        if (seen->number + 1 != f->number) /* its loop had no time for some */
            seen->missed = true;
        seen->number = f->number;
        if (requests)
            seen->dropped += f->tail_dropped + (missed ? f->tail_len : 0);
        if (missed) {
            seen->missed = true;
        } else {
            if (seen->missed) { /* of health only changes are told */
                hf__buf_put_str(out, HF_STR("event: writes\ndata: {\"all\":true}\n\n"));
                hf__buf_put(out, f->health.ptr, f->health.len);
            }
            seen->missed = false;
            hf__buf_put(out, f->news.ptr, f->news.len);
            if (requests)
                hf__buf_put(out, f->tail.ptr, f->tail.len);
            put_dropped(out, seen);
        }
    }
    pthread_mutex_unlock(&f->lock);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

struct figures *hf__figures_new(struct server *server)
{
    struct figures *f = hf__env_alloc(&server->env, sizeof(*f));
    size_t words = hf__metrics_words();

    if (!f)
        return NULL;
    memset(f, 0, sizeof(*f));
    f->server = server;
    f->watches_max = WATCHES_MAX;
    f->news.env = f->tail.env = f->health.env = f->text.env = f->more.env = &server->env;
    f->points = hf__scope_array(server->memory, POINTS, sizeof(*f->points));
    f->sum = hf__scope_array(server->memory, words, sizeof(*f->sum));
    f->point_sum = hf__scope_array(server->memory, words, sizeof(*f->sum));
    f->news_sum = hf__scope_array(server->memory, words, sizeof(*f->sum));
    f->scope = hf_scope_new(&server->env);
    pthread_mutex_init(&f->lock, NULL);
    cond_monotonic_init(&f->changed);
    if (!f->points || !f->sum || !f->point_sum || !f->news_sum || !f->scope) {
        hf__figures_free(f);
        return NULL;
    }
    return f;
}

enum hf_status hf__figures_start(struct hf_scope *s, struct figures *f)
{
    f->stops = false;
    if (pthread_create(&f->thread, NULL, run_figures, f) != 0)
        return hf__fail(s, HF_LIMIT, "cannot start a thread: is the limit of processes reached?");
    f->started = true;
    return HF_OK;
}

void hf__figures_stop(struct figures *f)
{
    if (!f || !f->started)
        return;
    pthread_mutex_lock(&f->lock);
    f->stops = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    hf_scope_cancel(f->scope);
    pthread_join(f->thread, NULL);
    f->started = false;
}

void hf__figures_free(struct figures *f)
{
    if (!f)
        return;
    assert(!f->started && f->watches == 0);
    hf__buf_free(&f->news);
    hf__buf_free(&f->tail);
    hf__buf_free(&f->health);
    hf__buf_free(&f->text);
    hf__buf_free(&f->more);
    hf__env_free(&f->server->env, f->written, f->written_cap * sizeof(*f->written));
    hf_scope_free(f->scope);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    hf__env_free(&f->server->env, f, sizeof(*f));
}
