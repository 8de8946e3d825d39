/*
 * test/patterns/relay_ledger.c: an outbox between real processes that are killed (SIGKILL) at any
 * moment or stopped (SIGSTOP) for longer than their leases, with a sink that is away at times.
 *
 *     relay_ledger EVENTS [SEED]
 *
 * The parent has an engine in memory and a server before it. Producers advance numbers, one for
 * each key, in transactions that emit an event for each step. Relays deliver to a ledger: a file to
 * which each delivery is appended as one line. In the end the ledger and the numbers are compared:
 *
 *  (1) Nothing is lost: each step of each number is in the ledger.
 *  (2) Nothing else is.
 *  (3) First deliveries of a key are in order.
 *  (4) Nothing is stuck: the outbox is empty, and nothing was put aside.
 */
#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/relay.h>
#include <holdfast/table.h>
#include <holdfast/tx.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/server.h"

enum {
    RELAYS = 3,
    PRODUCERS = 2,
    CHILDREN = RELAYS + PRODUCERS,
    KEYS = 60,
    STEPS = 10,  /* of one transaction */
    PACE_MS = 5, /* so that it takes long enough to be killed often */
    LEASE_MS = 1000,
    BUCKETS = 16,
    PATIENCE_S = 240
};

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

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void nap_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* What all processes see. */
struct board {
    atomic_int sink_is_away;
    atomic_int deliveries;
    atomic_int refused;
};

static struct board *map_board(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct board *board;

    if (fd < 0 || ftruncate(fd, sizeof(*board)) != 0) {
        perror(path);
        exit(1);
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (board == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return board;
}

static struct hf_db *connect_to(struct hf_scope *s, const char *url)
{
    struct hf_client_options options = {.size = sizeof(options),
                                        .region = HF_STR("eu-central-1"),
                                        .credentials = {.access_key = HF_STR("kit"),
                                                        .secret_key = HF_STR("kit")},
                                        .no_aws_config = true};
    struct hf_db *db;

    MUST_OK(s, hf_connect(s, hf_str_from(url), &options, &db));
    return db;
}

/* ---- producers ------------------------------------------------------------------------------ */

struct step {
    struct hf_outbox *outbox;
    int key, from;
};

static struct hf_item number_key(struct hf_scope *s, int key)
{
    return HF_ITEM(s, HF_S("id", hf_scope_format(s, "key%d", key)));
}

static int number_of(struct hf_scope *s, struct hf_db *db, int key)
{
    struct hf_get_item get = {.table = HF_STR("numbers"),
                              .key = number_key(s, key),
                              .consistent = HF_YES};
    struct hf_get_item_result got;
    int64_t n = 0;

    if (hf_get_item(s, db, &get, &got) != HF_OK)
        return -1;
    (void)hf_value_i64(hf_item_get(got.item, HF_STR("n")), &n);
    return (int)n;
}

static enum hf_status build(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    const struct step *step = user;
    struct hf_update_item *update = hf_scope_alloc(s, sizeof(*update));
    struct hf_event events[STEPS];

    *update =
        (struct hf_update_item){.table = HF_STR("numbers"),
                                .key = number_key(s, step->key),
                                .update = HF_STR("SET #n = :to"),
                                .condition = step->from ? HF_STR("#n = :from")
                                                        : HF_STR("attribute_not_exists(#n)"),
                                .names = HF_ITEM(s, HF_S("#n", HF_STR("n"))),
                                .values = step->from ? HF_ITEM(s, HF_N(":to", step->from + STEPS),
                                                               HF_N(":from", step->from))
                                                     : HF_ITEM(s, HF_N(":to", STEPS))};
    for (int i = 0; i < STEPS; i++) {
        struct hf_str payload = hf_scope_format(s, "%d %d", step->key, step->from + i + 1);

        events[i] = (struct hf_event){.type = HF_STR("step"),
                                      .key = hf_scope_format(s, "key%d", step->key),
                                      .payload = hf_bytes_of(payload.ptr, payload.len)};
    }
    if (hf_tx_add(s, tx, &(struct hf_transact_write){.update = update}) != HF_OK)
        return hf_scope_error(s)->status;
    return hf_outbox_emit(s, step->outbox, events, STEPS, NULL);
}

/* Every second key, in turns, until each is at `target`. */
static int produce(const char *url, int which, int target)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = connect_to(s, url);
    struct step step;
    bool more = true;

    MUST_OK(s,
            hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .no_create = true), &step.outbox));
    nap_ms(2); /* a former life was not in this millisecond */
    while (more) {
        more = false;
        for (step.key = which; step.key < KEYS; step.key += PRODUCERS) {
            hf_scope_reset(s);
            step.from = number_of(s, db, step.key);
            more = more || step.from < target;
            if (step.from >= 0 && step.from < target)
                (void)!hf_tx_run(s, db, build, &step, NULL); /* or not: the number will tell */
            nap_ms(PACE_MS);
        }
    }
    hf_outbox_close(step.outbox);
    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}

/* ---- relays --------------------------------------------------------------------------------- */

struct ledger {
    struct board *board;
    int fd;
};

/* Each line is written at once; some are and are told not to be. */
static enum hf_status deliver(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                              size_t len)
{
    struct ledger *ledger = self;

    if (ledger->board->sink_is_away)
        return hf_scope_fail(s, HF_IO, "the sink is away");
    for (size_t i = 0; i < len; i++) {
        struct hf_bytes payload = deliveries[i].event->event.payload;
        char line[64];
        int n = snprintf(line, sizeof(line), "%.*s\n", (int)payload.len, (const char *)payload.ptr);
        int count;

        if (write(ledger->fd, line, (size_t)n) != n)
            _exit(3);
        count = atomic_fetch_add(&ledger->board->deliveries, 1);
        deliveries[i].status = count % 500 == 499 ? HF_IO : HF_OK;
    }
    return HF_OK;
}

/* Until it is killed, or the parent is gone. */
static int relay(const char *url, const char *path, const char *board)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = connect_to(s, url);
    struct ledger ledger = {.board = map_board(board),
                            .fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)};
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "ledger",
                              .batch_max = 10,
                              .send = deliver};
    pid_t parent = getppid();
    struct hf_relay *relay;
    struct hf_outbox *outbox;
    struct hf_sink *sink;

    MUST_OK(s, hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .no_create = true), &outbox));
    MUST_OK(s, hf_sink_new(s, &ops, &ledger, &sink));
    MUST_OK(s, hf_relay_open(s, outbox, sink,
                             HF_OPTIONS(hf_relay_options, .lease_ms = LEASE_MS, .poll_ms = 50,
                                        .backoff_ms = 20, .backoff_max_ms = 200, .breaker_ms = 50,
                                        .max_attempts = 100),
                             &relay));
    MUST_OK(s, hf_relay_start(s, relay));
    while (getppid() == parent)
        nap_ms(20);
    return 0;
}

/* ---- the parent ----------------------------------------------------------------------------- */

struct site {
    struct hf_scope *s;
    struct hf_db *db;
    struct server *server;
    pthread_t thread;
    char url[64], ledger[64], board_path[64];
    struct board *board;
    int target;
};

static void *serve(void *user)
{
    struct site *site = user;
    struct hf_scope *s = hf_scope_new(NULL);

    MUST_OK(s, hf__server_run(s, site->server));
    hf_scope_free(s);
    return NULL;
}

static void make_tables(struct site *site)
{
    struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table spec = {.table = HF_STR("numbers"),
                                   .attributes = &attribute,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};
    struct hf_outbox *outbox;

    MUST_OK(site->s, hf_table_ensure(site->s, site->db, &spec, NULL));
    MUST_OK(site->s, hf_outbox_open(site->s, site->db,
                                    HF_OPTIONS(hf_outbox_options, .buckets = BUCKETS), &outbox));
    hf_outbox_close(outbox);
}

static void site_open(struct site *site)
{
    struct server_options options = {.loops = 1, .drain_ms = 2000};
    int fd;

    snprintf(site->ledger, sizeof(site->ledger), "/tmp/hf_ledger.XXXXXX");
    fd = mkstemp(site->ledger);
    if (fd < 0) {
        perror(site->ledger);
        exit(1);
    }
    close(fd);
    snprintf(site->board_path, sizeof(site->board_path), "%.50s.board", site->ledger);
    site->board = map_board(site->board_path);
    site->s = hf_scope_new(NULL);
    MUST_OK(site->s, hf_open(site->s, HF_STR("memory:"), NULL, &site->db));
    make_tables(site);
    MUST_OK(site->s, hf__server_open(site->s, site->db, &options, &site->server));
    snprintf(site->url, sizeof(site->url), "http://127.0.0.1:%u",
             (unsigned)hf__server_port(site->server));
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
    munmap(site->board, sizeof(*site->board));
    unlink(site->ledger);
    unlink(site->board_path);
}

struct child {
    int number;
    pid_t pid; /* 0: a producer that is done */
    bool stopped;
    int64_t until_us;
};

static void start(struct child *child, const char *self, const struct site *site)
{
    char which[16], target[16];

    snprintf(which, sizeof(which), "%d", child->number);
    snprintf(target, sizeof(target), "%d", site->target);
    child->pid = fork();
    if (child->pid == 0) {
        if (child->number < PRODUCERS)
            execl(self, self, "produce", site->url, which, target, (char *)NULL);
        else
            execl(self, self, "relay", site->url, site->ledger, site->board_path, (char *)NULL);
        _exit(127);
    }
    if (child->pid < 0) {
        perror("fork");
        exit(1);
    }
}

/* Has it ended by itself? Producers may. */
static void look_after(struct child *child)
{
    int how;

    if (!child->pid || waitpid(child->pid, &how, WNOHANG) != child->pid)
        return;
    if (child->number >= PRODUCERS || !WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        fprintf(stderr, "child %d ended by itself: %d\n", child->number, how);
        exit(1);
    }
    child->pid = 0;
}

static void end(struct child *child)
{
    int how;

    if (!child->pid)
        return;
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR) {
    }
    child->pid = 0;
}

/* Stop, wake or kill it. */
static void torment(struct child *child, const char *self, const struct site *site,
                    uint64_t *random, unsigned *stops, unsigned *kills)
{
    if (!child->pid || now_us() < child->until_us)
        return;
    if (child->stopped) {
        kill(child->pid, SIGCONT);
        child->stopped = false;
    } else if (random_below(random, 3) == 0) {
        kill(child->pid, SIGSTOP);
        child->stopped = true;
        ++*stops;
    } else {
        end(child);
        start(child, self, site);
        ++*kills;
    }
    child->until_us = now_us() + 500000 + (int64_t)random_below(random, 2500000);
}

/* Does anything of that kind wait, or was put aside? */
static size_t items_of(struct site *site, const char *kind)
{
    struct hf_scope *s = hf_scope_new(NULL);
    size_t count = 0;

    for (unsigned i = 0; i < BUCKETS; i++) {
        struct hf_query query = {.table = HF_STR("outbox"),
                                 .key_condition = HF_STR("#pk = :pk"),
                                 .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk"))),
                                 .values = HF_ITEM(s, HF_S(":pk",
                                                           hf_scope_format(s, "%s.%03u", kind, i))),
                                 .limit = 100,
                                 .consistent = HF_YES};
        struct hf_query_result result;

        MUST_OK(s, hf_query(s, site->db, &query, &result));
        count += result.items_len;
    }
    hf_scope_free(s);
    return count;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static int conclude(struct site *site, int64_t began_us, unsigned stops, unsigned kills,
                    unsigned outages)
{
    FILE *file = fopen(site->ledger, "r");
    int last[KEYS] = {0}, key, n;
    unsigned lines = 0, again = 0, phantom = 0, order = 0, lost = 0;
    size_t stuck = items_of(site, "p") + items_of(site, "f");

    while (file && fscanf(file, "%d %d", &key, &n) == 2) {
        lines++;
        if (key < 0 || key >= KEYS || n < 1 || n > site->target)
            phantom++; /* (2) */
        else if (n <= last[key])
            again++;
        else if (n != last[key] + 1)
            order++; /* (3), or (1) */
        else
            last[key] = n;
    }
    if (file)
        fclose(file);
    for (key = 0; key < KEYS; key++) {
        lost += (unsigned)(site->target - last[key]); /* (1) */
        if (number_of(site->s, site->db, key) != site->target)
            phantom++;
    }
    printf("%d events in %.1f s; %u kills, %u stops, %u outages; %u deliveries, of these %u again; "
           "%u lost, %u phantom, %u out of order, %zu stuck\n",
           KEYS * site->target, (double)(now_us() - began_us) / 1e6, kills, stops, outages, lines,
           again, lost, phantom, order, stuck);
    return lost || phantom || order || stuck ? 1 : 0;
}

static int lead(const char *self, int events, uint64_t random)
{
    struct site site = {.target = (events / KEYS + STEPS - 1) / STEPS * STEPS};
    struct child children[CHILDREN];
    int64_t began_us = now_us(), outage_us = began_us + 2000000;
    unsigned stops = 0, kills = 0, outages = 0;
    bool producing = true;
    int result;

    site_open(&site);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] =
            (struct child){.number = i,
                           .until_us = now_us() + 500000 + (int64_t)random_below(&random, 2500000)};
        start(&children[i], self, &site);
    }
    while ((producing || items_of(&site, "p")) && now_us() < began_us + PATIENCE_S * 1000000LL) {
        producing = false;
        for (int i = 0; i < CHILDREN; i++) {
            look_after(&children[i]);
            torment(&children[i], self, &site, &random, &stops, &kills);
            producing = producing || (i < PRODUCERS && children[i].pid);
        }
        if (now_us() > outage_us) {
            site.board->sink_is_away = !site.board->sink_is_away;
            outages += (unsigned)site.board->sink_is_away;
            outage_us = now_us() + (site.board->sink_is_away ? 300000 : 3000000);
        }
        nap_ms(10);
    }
    for (int i = 0; i < CHILDREN; i++)
        end(&children[i]);
    result = conclude(&site, began_us, stops, kills, outages);
    site_close(&site);
    return result;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "produce") == 0)
        return produce(argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10));
    if (argc == 5 && strcmp(argv[1], "relay") == 0)
        return relay(argv[2], argv[3], argv[4]);
    if (argc < 2) {
        fprintf(stderr, "usage: relay_ledger EVENTS [SEED]\n");
        return 2;
    }
    return lead(argv[0], (int)strtol(argv[1], NULL, 10),
                argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : (uint64_t)time(NULL) | 1);
}
