/*
 * test/relay/relay_ledger.c: an outbox between real processes that are killed (SIGKILL) at any
 * moment or stopped (SIGSTOP) for longer than their leases, with a sink that is away at times.
 *
 *     relay_ledger EVENTS [SEED]
 *
 * The parent has an engine in memory and a server before it; or, where HF_LEDGER_HOLDFAST names the
 * command, it runs `holdfast serve` on a directory, and kills that, too, and relays are `holdfast
 * relay`, woken by the stream. HF_LEDGER_EVENTS, HF_LEDGER_PRODUCERS (2), HF_LEDGER_PACE_MS (3, the
 * pause of a producer between two transactions) and HF_LEDGER_PATIENCE_S (240) are for longer runs.
 *
 * Producers advance numbers, one for
 * each key, in transactions that emit an event for each step. Relays deliver to a ledger: a file to
 * which each delivery is appended as one line. In the end the ledger and the numbers are compared:
 *
 *  (1) Nothing is lost: each step of each number is in the ledger.
 *  (2) Nothing else is.
 *  (3) First deliveries of a key are in order, but for transactions that took longer than relays
 *      allow for (outbox.h), as their producer was stopped or the server was away: producers write
 *      down which these were. Urgent ones of a key have an order of their own.
 *  (4) Nothing is stuck: the outbox is empty, and there is no dead letter.
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
    PRODUCERS_MAX = 16,
    KEYS = 60,
    STEPS = 10, /* of one transaction */
    LEASE_MS = 1000,
    LATE_MS = 400, /* a transaction that takes longer may be found out of order */
    BUCKETS = 16,
    SERVER_MS = 4000 /* about how long a server lives */
};

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

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

static bool is_urgent(int key, int n)
{
    return key % 2 && n % 5 == 0;
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
                                      .urgent = is_urgent(step->key, step->from + i + 1),
                                      .payload = hf_bytes_of(payload.ptr, payload.len)};
    }
    if (hf_tx_add(s, tx, &(struct hf_transact_write){.update = update}) != HF_OK)
        return hf_scope_error(s)->status;
    return hf_outbox_emit_into(s, step->outbox, tx, events, STEPS, NULL);
}

/* (3) */
static void note_late(const struct step *step)
{
    int fd = open(getenv("HF_LEDGER_LATE"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    char line[64];
    int n = snprintf(line, sizeof(line), "%d %d\n", step->key, step->from);

    if (fd < 0 || write(fd, line, (size_t)n) != n)
        _exit(3);
    close(fd);
}

/* Its share of the keys, in turns, until each is at `target`. */
static int produce(const char *url, int which, int target)
{
    int producers = setting("HF_LEDGER_PRODUCERS", 2), pace_ms = setting("HF_LEDGER_PACE_MS", 3);
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = connect_to(s, url);
    struct step step;
    bool more = true;

    while (hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .no_create = true), &step.outbox))
        nap_ms(20); /* the server is away */
    nap_ms(2);      /* a former life was not in this millisecond */
    while (more) {
        more = false;
        for (step.key = which; step.key < KEYS; step.key += producers) {
            int64_t begun_us;

            hf_scope_reset(s);
            step.from = number_of(s, db, step.key);
            more = more || step.from < target; /* or not known */
            begun_us = now_us();
            if (step.from >= 0 && step.from < target)
                (void)!hf_tx_run(s, db, build, &step, NULL); /* or not: the number will tell */
            if (now_us() - begun_us > LATE_MS * 1000)
                note_late(&step);
            nap_ms(pace_ms);
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
    const char *holdfast; /* the command; NULL: all of it is in this process */
    pid_t serving;
    char port[16];
    char url[64], folder[64], away[80], ledger[80], board_path[80], data[80], late[80];
    struct board *board;
    int producers;
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
                                    HF_OPTIONS(hf_outbox_options, .buckets = BUCKETS,
                                               .stream = site->holdfast != NULL),
                                    &outbox));
    hf_outbox_close(outbox);
}

/* A server of its own, on the port that it had before, if any. */
static void start_server(struct site *site)
{
    char line[256] = "", *at = NULL;
    int out[2];
    FILE *said;

    if (pipe(out) != 0) {
        perror("pipe");
        exit(1);
    }
    site->serving = fork();
    if (site->serving == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* that it serves, and so on */
        close(out[0]);
        execl(site->holdfast, site->holdfast, "serve", "--db-path", site->data, "--host",
              "127.0.0.1", "--port", site->port, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    said = fdopen(out[0], "r");
    while (said && !at && fgets(line, sizeof(line), said))
        at = strstr(line, "http://");
    if (!at) {
        fprintf(stderr, "the server did not start\n");
        exit(1);
    }
    fclose(said);
    at[strcspn(at, " \n")] = '\0';
    snprintf(site->url, sizeof(site->url), "%.60s", at);
    snprintf(site->port, sizeof(site->port), "%.15s", strrchr(at, ':') + 1);
}

static void end_server(struct site *site)
{
    kill(site->serving, SIGKILL);
    waitpid(site->serving, NULL, 0);
}

static void make_paths(struct site *site)
{
    int fd;

    snprintf(site->folder, sizeof(site->folder), "/tmp/hf_ledger.XXXXXX");
    if (!mkdtemp(site->folder)) {
        perror(site->folder);
        exit(1);
    }
    snprintf(site->away, sizeof(site->away), "%s.away", site->folder);
    snprintf(site->data, sizeof(site->data), "%s.data", site->folder);
    snprintf(site->board_path, sizeof(site->board_path), "%s.board", site->folder);
    snprintf(site->late, sizeof(site->late), "%s.late", site->folder);
    setenv("HF_LEDGER_LATE", site->late, 1);
    snprintf(site->ledger, sizeof(site->ledger), "%s/ledger", site->folder);
    fd = open(site->ledger, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(site->ledger);
        exit(1);
    }
    close(fd);
    site->board = map_board(site->board_path);
}

static void site_open(struct site *site)
{
    struct server_options options = {.loops = 1, .drain_ms = 2000};

    make_paths(site);
    site->s = hf_scope_new(NULL);
    if (site->holdfast) {
        snprintf(site->port, sizeof(site->port), "0");
        start_server(site);
        site->db = connect_to(site->s, site->url);
        make_tables(site);
        return;
    }
    MUST_OK(site->s, hf_open(site->s, HF_STR("memory:"), NULL, &site->db));
    make_tables(site);
    MUST_OK(site->s, hf__server_open(site->s, site->db, &options, &site->server));
    snprintf(site->url, sizeof(site->url), "http://127.0.0.1:%u",
             (unsigned)hf__server_port(site->server));
    if (pthread_create(&site->thread, NULL, serve, site) != 0)
        exit(1);
}

static void remove_all(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", path, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static void site_close(struct site *site)
{
    if (site->holdfast) {
        end_server(site);
        remove_all(site->data);
    } else {
        hf__server_stop(site->server);
        pthread_join(site->thread, NULL);
        hf__server_close(site->server);
    }
    hf_db_close(site->db);
    hf_scope_free(site->s);
    munmap(site->board, sizeof(*site->board));
    remove_all(site->folder);
    unlink(site->board_path);
    unlink(site->late);
}

/* The sink can be reached, or not: for the command, its file is not where it was. */
static void set_away(struct site *site, bool away)
{
    site->board->sink_is_away = away;
    if (site->holdfast &&
        rename(away ? site->folder : site->away, away ? site->away : site->folder))
        perror("rename");
}

struct child {
    int number;
    pid_t pid; /* 0: a producer that is done */
    bool stopped;
    int64_t until_us;
};

static void start(struct child *child, const char *self, const struct site *site)
{
    char which[16], target[16], sink[128];

    snprintf(sink, sizeof(sink), "file:%s?form=payload&sync=no", site->ledger);
    snprintf(which, sizeof(which), "%d", child->number);
    snprintf(target, sizeof(target), "%d", site->target);
    child->pid = fork();
    if (child->pid == 0) {
        if (child->number < site->producers)
            execl(self, self, "produce", site->url, which, target, (char *)NULL);
        else if (site->holdfast)
            execl(site->holdfast, site->holdfast, "relay", "--to", sink, "--db", site->url,
                  "--quiet", "--lease", "1s", "--poll", "100ms", "--wake", "20ms", "--backoff",
                  "20ms", "--backoff-max", "200ms", "--attempts", "100", (char *)NULL);
        else
            execl(self, self, "relay", site->url, site->ledger, site->board_path, (char *)NULL);
        _exit(127);
    }
    if (child->pid < 0) {
        perror("fork");
        exit(1);
    }
}

/* Has it ended by itself? Producers may; and the command, when it begins without a server. */
static void look_after(struct child *child, const char *self, const struct site *site)
{
    int how;

    if (!child->pid || waitpid(child->pid, &how, WNOHANG) != child->pid)
        return;
    if (child->number >= site->producers && site->holdfast && WIFEXITED(how)) {
        start(child, self, site);
        return;
    }
    if (child->number >= site->producers || !WIFEXITED(how) || WEXITSTATUS(how) != 0) {
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

/* Is there a pending event of that kind, or a dead letter? */
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

        while (hf_query(s, site->db, &query, &result) != HF_OK)
            nap_ms(20); /* the server is away */
        count += result.items_len;
    }
    hf_scope_free(s);
    return count;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

enum { SEEN = 1, LATE = 2 };

/* What is known of each step of each key; those that were late are marked. */
static unsigned char *make_marks(const struct site *site, unsigned *late)
{
    unsigned char *marks = calloc(KEYS, (size_t)site->target + 1);
    FILE *file = fopen(site->late, "r");
    int key, from;

    if (!marks)
        exit(1);
    while (file && fscanf(file, "%d %d", &key, &from) == 2)
        for (int n = from + 1; n <= from + STEPS && n <= site->target; n++) {
            marks[key * (site->target + 1) + n] = LATE;
            ++*late;
        }
    if (file)
        fclose(file);
    return marks;
}

static int conclude(struct site *site, int64_t began_us, unsigned servers, unsigned stops,
                    unsigned kills, unsigned outages)
{
    unsigned lines = 0, again = 0, phantom = 0, order = 0, lost = 0, late = 0;
    unsigned char *marks = make_marks(site, &late);
    FILE *file = fopen(site->ledger, "r");
    int last[KEYS][2] = {{0}}, key, n;
    size_t stuck = items_of(site, "p") + items_of(site, "f");

    while (file && fscanf(file, "%d %d", &key, &n) == 2) {
        unsigned char *mark;
        int *before;

        lines++;
        if (key < 0 || key >= KEYS || n < 1 || n > site->target) {
            phantom++; /* (2) */
            continue;
        }
        mark = &marks[key * (site->target + 1) + n];
        again += *mark & SEEN;
        before = &last[key][is_urgent(key, n)];
        order += !*mark && n < *before; /* (3) */
        *mark |= SEEN;
        *before = n > *before ? n : *before;
    }
    if (file)
        fclose(file);
    for (key = 0; key < KEYS; key++) {
        for (n = 1; n <= site->target; n++)
            lost += !(marks[key * (site->target + 1) + n] & SEEN); /* (1) */
        while ((n = number_of(site->s, site->db, key)) < 0)
            nap_ms(20);
        if (n != site->target)
            phantom++;
    }
    free(marks);
    printf("%d events in %.1f s; %u servers, %u kills, %u stops, %u outages; ", KEYS * site->target,
           (double)(now_us() - began_us) / 1e6, servers, kills, stops, outages);
    printf("%u deliveries, of these %u again, %u late; %u lost, %u phantom, %u out of order, %zu "
           "stuck\n",
           lines, again, late, lost, phantom, order, stuck);
    return lost || phantom || order || stuck ? 1 : 0;
}

/* How often something is to happen next: between half of that and half more. */
static int64_t in_about(uint64_t *random, int64_t ms)
{
    return now_us() + ms * 500 + (int64_t)random_below(random, (uint64_t)ms * 1000);
}

static int lead(const char *self, int events, uint64_t random)
{
    struct site site = {.target = (events / KEYS + STEPS - 1) / STEPS * STEPS,
                        .producers = setting("HF_LEDGER_PRODUCERS", 2),
                        .holdfast = getenv("HF_LEDGER_HOLDFAST")};
    struct child children[PRODUCERS_MAX + RELAYS];
    int64_t began_us = now_us(), outage_us = began_us + 2000000;
    int64_t end_us = began_us + setting("HF_LEDGER_PATIENCE_S", 240) * INT64_C(1000000);
    int64_t server_us = in_about(&random, SERVER_MS);
    unsigned stops = 0, kills = 0, outages = 0, servers = 1;
    int len = site.producers + RELAYS, result;
    bool producing = true;

    if (site.producers < 1 || site.producers > PRODUCERS_MAX)
        return 2;
    site_open(&site);
    for (int i = 0; i < len; i++) {
        children[i] = (struct child){.number = i, .until_us = in_about(&random, 1750)};
        start(&children[i], self, &site);
    }
    while ((producing || items_of(&site, "p")) && now_us() < end_us) {
        producing = false;
        for (int i = 0; i < len; i++) {
            look_after(&children[i], self, &site);
            torment(&children[i], self, &site, &random, &stops, &kills);
            producing = producing || (i < site.producers && children[i].pid);
        }
        if (now_us() > outage_us) {
            set_away(&site, !site.board->sink_is_away);
            outages += (unsigned)site.board->sink_is_away;
            outage_us = now_us() + (site.board->sink_is_away ? 300000 : 3000000);
        }
        if (site.holdfast && now_us() > server_us) {
            end_server(&site);
            start_server(&site);
            servers++;
            server_us = in_about(&random, SERVER_MS);
        }
        nap_ms(10);
    }
    for (int i = 0; i < len; i++)
        end(&children[i]);
    if (site.board->sink_is_away)
        set_away(&site, false);
    result = conclude(&site, began_us, servers, stops, kills, outages);
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
    setenv("AWS_ACCESS_KEY_ID", "kit", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "kit", 1);
    setenv("AWS_REGION", "eu-central-1", 1);
    return lead(argv[0], setting("HF_LEDGER_EVENTS", (int)strtol(argv[1], NULL, 10)),
                argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : (uint64_t)time(NULL) | 1);
}
