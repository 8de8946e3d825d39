/*
 * test/lock/lock_processes.c: locks between processes that are stopped (SIGSTOP) for longer
 * than their leases and killed (SIGKILL) at any moment.
 *
 *     lock_processes SECONDS [SEED]
 *
 * The parent has an engine in memory and a server before it. Workers connect to it, fight for a few
 * locks with leases of 200 ms, and in each section make three guarded writes (two that carry the
 * fence, one in a transaction) and an unguarded one. Guarded writes append their fence to a list in
 * the item, so the database itself keeps the order in which it accepted them. In the end:
 *
 *  (1) In no list does a fence come after a higher one.
 *  (2) Fences of a lock that were handed out only grow: each worker appends those it got to a list
 *      of its own, in its own order, and none is in two of them.
 *
 * Sections in which somebody else's unguarded write got in between are counted and reported: they
 * are what fences are for, and no lock can rule them out.
 */
#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/lock.h>
#include <holdfast/table.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/server.h"

enum { WORKERS = 6, LOCKS = 3, LEASE_MS = 200, LIST_MAX = 12000 };

#define MUST_OK(s, call) must_ok((s), (call), #call, __LINE__)

static void must_ok(struct hf_scope *s, enum hf_status status, const char *what, int line)
{
    if (status == HF_OK)
        return;
    fprintf(stderr, "line %d: %s: %s: %s\n", line, what, hf_status_name(status),
            hf_scope_error_text(s));
    exit(1);
}

static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % bound;
}

/* ---- workers -------------------------------------------------------------------------------- */

struct worker {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_lock_table *locks;
    struct hf_str name;
    uint64_t random;
};

/* The update that appends a fence to a list: one for each lock and minute, as an item holds only so
 * much. */
static struct hf_update_item append_request(struct hf_scope *s, struct hf_str of, int number,
                                            uint64_t fence)
{
    struct hf_str id =
        hf_scope_format(s, "%.*s.%lld.%d", HF_FMT(of), (long long)time(NULL) / 60, number);
    struct hf_value list = HF_LIST(s, HF_N("", fence)), none = hf_list_make(s, NULL, 0);

    return (struct hf_update_item){
        .table = HF_STR("things"),
        .key = HF_ITEM(s, HF_S("id", id)),
        .update = HF_STR("SET #list = list_append(if_not_exists(#list, :none), :fence)"),
        .names = HF_ITEM(s, HF_S("#list", HF_STR("list"))),
        .values = HF_ITEM(s, HF_L(":fence", list), HF_L(":none", none)),
    };
}

static void count(struct worker *w, const char *what)
{
    struct hf_update_item add = {
        .table = HF_STR("things"),
        .key = HF_ITEM(w->s, HF_S("id", HF_STR("counts"))),
        .update = HF_STR("ADD #what :one"),
        .names = HF_ITEM(w->s, HF_S("#what", hf_str_from(what))),
        .values = HF_ITEM(w->s, HF_N(":one", 1)),
    };

    (void)!hf_update_item(w->s, w->db, &add, NULL);
}

static void fenced_write(struct worker *w, struct hf_lock *lock, int number)
{
    struct hf_update_item update =
        append_request(w->s, HF_STR("fenced"), number, hf_lock_fence(lock));
    enum hf_status status;

    MUST_OK(w->s, hf_lock_guard_update(w->s, lock, hf_str_of(NULL, 0), &update));
    status = hf_update_item(w->s, w->db, &update, NULL);
    count(w, status == HF_OK ? "accepted" : status == HF_CONDITION ? "refused" : "failed");
}

static void guarded_write(struct worker *w, struct hf_lock *lock, int number)
{
    struct hf_update_item update =
        append_request(w->s, HF_STR("guarded"), number, hf_lock_fence(lock));
    struct hf_transact_write actions[2] = {{.update = &update}};
    enum hf_status status;

    MUST_OK(w->s, hf_lock_guard(w->s, lock, &actions[1]));
    status = hf_transact_write_items(
        w->s, w->db, &(struct hf_transact_write_items){.actions = actions, .actions_len = 2}, NULL);
    count(w, status == HF_OK ? "accepted" : status == HF_TX_CANCELED ? "refused" : "failed");
}

/* Does anybody else write while we believe to be alone? */
static void unguarded_write(struct worker *w, struct hf_lock *lock, int number)
{
    struct hf_item key = HF_ITEM(w->s, HF_S("id", hf_scope_format(w->s, "unguarded.%d", number)));
    struct hf_attr mine = HF_N("fence", hf_lock_fence(lock));
    struct hf_put_item put = {.table = HF_STR("things"), .item = hf_item_with(w->s, key, &mine, 1)};
    struct hf_get_item get = {.table = HF_STR("things"), .key = key, .consistent = HF_YES};
    struct hf_get_item_result got;
    int64_t fence;

    if (hf_put_item(w->s, w->db, &put, NULL) != HF_OK || hf_scope_sleep_ms(w->s, 3) != HF_OK ||
        hf_get_item(w->s, w->db, &get, &got) != HF_OK)
        return;
    if (hf_value_i64(hf_item_get(got.item, HF_STR("fence")), &fence) &&
        (uint64_t)fence != hf_lock_fence(lock))
        count(w, "overlaps");
}

static void section(struct worker *w)
{
    int number = (int)random_below(&w->random, LOCKS);
    struct hf_str name = hf_scope_format(w->s, "lock.%d", number);
    struct hf_update_item mine;
    struct hf_lock *lock;

    hf_scope_timeout_ms(w->s, 5000);
    if (hf_lock_acquire(w->s, w->locks, name,
                        HF_OPTIONS(hf_lock_options, .lease_ms = LEASE_MS, .poll_ms = 20),
                        &lock) != HF_OK) {
        count(w, "timeouts");
        return;
    }
    mine = append_request(w->s, w->name, number, hf_lock_fence(lock));
    if (hf_update_item(w->s, w->db, &mine, NULL) == HF_OK)
        count(w, "sections");
    fenced_write(w, lock, number);
    unguarded_write(w, lock, number);
    (void)!hf_scope_sleep_ms(w->s, (uint32_t)random_below(&w->random, 50));
    guarded_write(w, lock, number);
    fenced_write(w, lock, number);
    if (hf_lock_release(w->s, lock) == HF_LOST)
        count(w, "lost");
}

/* A life: until it is killed, or the parent is gone. Its lists are its own, by its process id. */
static int work(const char *url, const char *seed)
{
    struct worker w = {.s = hf_scope_new(NULL), .random = strtoull(seed, NULL, 10) | 1};
    struct hf_client_options options = {.size = sizeof(options),
                                        .region = HF_STR("eu-central-1"),
                                        .credentials = {.access_key = HF_STR("kit"),
                                                        .secret_key = HF_STR("kit")},
                                        .no_aws_config = true};
    struct hf_scope *names = hf_scope_new(NULL);
    pid_t parent = getppid();

    w.name = hf_scope_format(names, "worker.%ld", (long)getpid());
    MUST_OK(w.s, hf_connect(w.s, hf_str_from(url), &options, &w.db));
    MUST_OK(w.s, hf_lock_table_open(w.s, w.db, HF_OPTIONS(hf_lock_table_options, .no_create = true),
                                    &w.locks));
    while (getppid() == parent) {
        hf_scope_reset(w.s);
        section(&w);
    }
    return 0;
}

/* ---- the parent ----------------------------------------------------------------------------- */

struct site {
    struct hf_scope *s;
    struct hf_db *db;
    struct server *server;
    pthread_t thread;
};

static void *serve(void *user)
{
    struct site *site = user;
    struct hf_scope *s = hf_scope_new(NULL);

    MUST_OK(s, hf__server_run(s, site->server));
    hf_scope_free(s);
    return NULL;
}

static void site_open(struct site *site)
{
    struct server_options options = {.loops = 1, .drain_ms = 2000};

    site->s = hf_scope_new(NULL);
    MUST_OK(site->s, hf_open(site->s, HF_STR("memory:"), NULL, &site->db));
    MUST_OK(site->s, hf__server_open(site->s, site->db, &options, &site->server));
    if (pthread_create(&site->thread, NULL, serve, site) != 0)
        exit(1);
}

static void site_close(struct site *site)
{
    hf__server_stop(site->server);
    pthread_join(site->thread, NULL);
    hf__server_close(site->server);
    hf_db_close(site->db);
    hf_scope_free(site->s);
}

struct child {
    pid_t pid;
    bool stopped;
    int64_t until_us; /* it is stopped, or left alone */
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static pid_t start(const char *self, const char *url, uint64_t seed)
{
    char text[32];
    pid_t pid;

    snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
    pid = fork();
    if (pid == 0) {
        execl(self, self, "worker", url, text, (char *)NULL);
        _exit(127);
    }
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    return pid;
}

static void reap(pid_t pid)
{
    int how;

    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL)
        return;
    fprintf(stderr, "a worker ended by itself: %d\n", how);
    exit(1);
}

/* Stop, wake or kill somebody. */
static void torment(struct child *child, const char *self, const char *url, uint64_t *random,
                    unsigned *stops, unsigned *kills)
{
    if (now_us() < child->until_us)
        return;
    if (child->stopped) {
        kill(child->pid, SIGCONT);
        child->stopped = false;
    } else if (random_below(random, 3)) {
        kill(child->pid, SIGSTOP);
        child->stopped = true;
        ++*stops;
    } else {
        kill(child->pid, SIGKILL);
        reap(child->pid);
        child->pid = start(self, url, random_below(random, UINT64_MAX));
        ++*kills;
    }
    child->until_us = now_us() + (int64_t)random_below(random, 3 * LEASE_MS) * 1000;
}

static void make_table(struct hf_scope *s, struct hf_db *db, struct hf_str table, struct hf_str id)
{
    struct hf_attribute_definition attribute = {id, HF_SCALAR_S};
    struct hf_key_element key = {id, HF_KEY_HASH};
    struct hf_create_table spec = {.table = table,
                                   .attributes = &attribute,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};

    MUST_OK(s, hf_table_ensure(s, db, &spec, NULL));
}

/* ---- the verdict ---------------------------------------------------------------------------- */

struct verdict {
    struct hf_scope *s;
    uint64_t handed_out[LOCKS * LIST_MAX]; /* fences, of all workers */
    size_t handed_out_len;
    unsigned lists, wrong;
};

/* (1) (2): the list of one item. */
static void judge(struct verdict *v, struct hf_item item)
{
    struct hf_str id = hf_value_str(hf_item_get(item, HF_STR("id")));
    struct hf_value list = hf_item_get(item, HF_STR("list"));
    bool own = id.len > 7 && memcmp(id.ptr, "worker.", 7) == 0;
    int64_t last = 0;

    v->lists += list.ptr != NULL;
    for (size_t i = 0; i < hf_value_count(list); i++) {
        int64_t fence = 0;

        if (!hf_value_i64(hf_value_at(v->s, list, i), &fence) || fence < last ||
            (own && fence == last)) {
            fprintf(stderr, "%.*s: %lld comes after %lld\n", HF_FMT(id), (long long)fence,
                    (long long)last);
            v->wrong++;
        }
        last = fence;
        if (own && v->handed_out_len < LOCKS * LIST_MAX) /* locks begin at different times */
            v->handed_out[v->handed_out_len++] =
                (uint64_t)fence * LOCKS + (uint64_t)(id.ptr[id.len - 1] - '0');
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int64_t counted(struct hf_item counts, const char *what)
{
    int64_t value = 0;

    (void)hf_value_i64(hf_item_get(counts, hf_str_from(what)), &value);
    return value;
}

static int conclude(struct site *site, unsigned stops, unsigned kills)
{
    static struct verdict v;
    struct hf_item counts = {0}, start_key = {0};
    struct hf_scan_result page;

    v.s = hf_scope_new(NULL);
    do {
        struct hf_scan scan = {.table = HF_STR("things"), .start = start_key};

        MUST_OK(v.s, hf_scan(v.s, site->db, &scan, &page));
        for (size_t i = 0; i < page.items_len; i++) {
            judge(&v, page.items[i]);
            if (hf_str_equal(hf_value_str(hf_item_get(page.items[i], HF_STR("id"))),
                             HF_STR("counts")))
                counts = page.items[i];
        }
        start_key = page.last;
    } while (start_key.ptr);
    qsort(v.handed_out, v.handed_out_len, sizeof(v.handed_out[0]), compare);
    for (size_t i = 1; i < v.handed_out_len; i++)
        if (v.handed_out[i] == v.handed_out[i - 1]) {
            fprintf(stderr, "fence %llu was handed out twice\n",
                    (unsigned long long)(v.handed_out[i] / LOCKS));
            v.wrong++;
        }
    printf("%u stops, %u kills; %lld sections, %lld lost; %lld guarded writes, %lld refused; "
           "%lld overlaps of unguarded ones; %u lists, %u wrong\n",
           stops, kills, (long long)counted(counts, "sections"), (long long)counted(counts, "lost"),
           (long long)counted(counts, "accepted"), (long long)counted(counts, "refused"),
           (long long)counted(counts, "overlaps"), v.lists, v.wrong);
    if (counted(counts, "sections") < 10 || v.lists < 2) {
        fprintf(stderr, "that proves nothing\n");
        v.wrong++;
    }
    hf_scope_free(v.s);
    return v.wrong ? 1 : 0;
}

static int lead(const char *self, long seconds, uint64_t random)
{
    struct site site;
    struct child children[WORKERS];
    int64_t end_us = now_us() + seconds * 1000000;
    unsigned stops = 0, kills = 0;
    char url[64];
    int result;

    site_open(&site);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)hf__server_port(site.server));
    make_table(site.s, site.db, HF_STR("locks"), HF_STR("name"));
    make_table(site.s, site.db, HF_STR("things"), HF_STR("id"));
    for (int i = 0; i < WORKERS; i++)
        children[i] = (struct child){.pid = start(self, url, random_below(&random, UINT64_MAX)),
                                     .until_us = now_us() + 500000};
    while (now_us() < end_us) {
        for (int i = 0; i < WORKERS; i++)
            torment(&children[i], self, url, &random, &stops, &kills);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(children[i].pid, SIGKILL);
        reap(children[i].pid);
    }
    result = conclude(&site, stops, kills);
    site_close(&site);
    return result;
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    long seconds;

    if (argc == 4 && strcmp(argv[1], "worker") == 0)
        return work(argv[2], argv[3]);
    seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (seconds < 1) {
        fprintf(stderr, "usage: lock_processes SECONDS [SEED]\n");
        return 2;
    }
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    return lead(argv[0], seconds, seed | 1);
}
