/*
 * test/events/ledger.c: the parent, which starts, stops, wakes and kills; ledger.h says what for.
 */
#include "ledger.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/client.h>

enum {
    LEAST_MS = 300, /* between two blows to a process */
    MOST_MS = 2000,
    SERVER_LEAST_MS = 2500,
    SERVER_MOST_MS = 6000,
    GHOSTS_MS = 500, /* requests of those who were killed are done by then */
    PATIENCE_S = 180 /* for the end to come, once nobody is hurt any more */
};

/* ---- what processes share ------------------------------------------------------------------- */

void must_ok(struct hf_scope *s, enum hf_status status, const char *what, const char *file,
             int line)
{
    if (status != HF_OK)
        fail(file, line, "%s: %s: %s", what, hf_status_name(status), hf_scope_error_text(s));
}

void fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: process %d: ", file, line, (int)getpid());
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

uint64_t random_below(uint64_t *state, uint64_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 16) % bound;
}

int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void nap_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void site_path(const struct site *site, const char *name, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/%s", site->dir, name);
}

static void map_board(struct site *site)
{
    char path[PATH_ROOM];
    int fd;

    site_path(site, "board", path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*site->board)) != 0)
        FAIL("%s: %s", path, strerror(errno));
    site->board = mmap(NULL, sizeof(*site->board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (site->board == MAP_FAILED)
        FAIL("mmap: %s", strerror(errno));
}

void site_join(struct site *site, char **argv)
{
    snprintf(site->dir, sizeof(site->dir), "%s", argv[0]);
    snprintf(site->url, sizeof(site->url), "%s", argv[1]);
    site->seed = strtoull(argv[2], NULL, 10);
    map_board(site);
}

bool is_passing(struct hf_scope *s)
{
    const struct hf_error *error = hf_scope_error(s);

    return error->may_retry || error->may_have_happened || error->status == HF_IO ||
           error->status == HF_TIMEOUT;
}

/* Waits for the server, which may be down at the moment. */
struct hf_events *site_store(struct hf_scope *s, const struct site *site, struct hf_db **db)
{
    struct hf_client_options options = {.size = sizeof(options),
                                        .region = HF_STR("eu-central-1"),
                                        .credentials = {.access_key = HF_STR("ledger"),
                                                        .secret_key = HF_STR("ledger")},
                                        .attempt_ms = 2000,
                                        .no_aws_config = true};
    struct hf_events *store;

    MUST_OK(s, hf_connect(s, hf_str_from(site->url), &options, db));
    for (int64_t until_us = now_us() + PATIENCE_S * 1000000LL;;) {
        hf_scope_reset(s);
        if (hf_events_open(s, *db, HF_OPTIONS(hf_events_options, .shards = 3), &store) == HF_OK)
            return store;
        if (!is_passing(s) || now_us() > until_us)
            FAIL("hf_events_open: %s: %s", hf_status_name(hf_scope_error(s)->status),
                 hf_scope_error_text(s));
        nap_ms(50);
    }
}

/* ---- processes ------------------------------------------------------------------------------ */

struct child {
    const char *role; /* NULL: the server */
    int number;
    int64_t least_ms, most_ms; /* between two blows */
    pid_t pid;                 /* 0: a writer that is done */
    bool stopped;
    int64_t until_us;
};

struct lead {
    struct site site;
    const char *self, *program;
    char port[8];
    uint64_t random;
    unsigned stops, kills;
};

static void wait_a_while(struct lead *lead, struct child *child)
{
    child->until_us =
        now_us() + child->least_ms * 1000 +
        (int64_t)random_below(&lead->random, (uint64_t)(child->most_ms - child->least_ms) * 1000);
}

static void run_server(const struct lead *lead)
{
    char data[PATH_ROOM], log[PATH_ROOM];
    int fd;

    site_path(&lead->site, "data", data);
    site_path(&lead->site, "server.log", log);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(126);
    execl(lead->program, lead->program, "serve", "--port", lead->port, "--db-path", data, "--sync",
          "none", (char *)NULL);
}

static void start(const struct lead *lead, struct child *child)
{
    char seed[24], number[16];

    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)lead->site.seed);
    snprintf(number, sizeof(number), "%d", child->number);
    child->pid = fork();
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the parent fails nobody is left behind */
        if (child->role)
            execl(lead->self, lead->self, child->role, number, lead->site.dir, lead->site.url, seed,
                  (char *)NULL);
        else
            run_server(lead);
        _exit(127);
    }
    if (child->pid < 0)
        FAIL("fork: %s", strerror(errno));
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
    child->stopped = false;
}

static void wake(struct child *child)
{
    if (child->pid && child->stopped)
        kill(child->pid, SIGCONT);
    child->stopped = false;
}

static bool is_writer(const struct child *child)
{
    return child->role && strcmp(child->role, "write") == 0;
}

/* Stop, wake or kill it, when it is time. */
static void torment(struct lead *lead, struct child *child)
{
    if (!child->pid || now_us() < child->until_us)
        return;
    if (child->stopped) {
        wake(child);
    } else if (random_below(&lead->random, 3) == 0) {
        kill(child->pid, SIGSTOP);
        child->stopped = true;
        lead->stops++;
    } else {
        end(child);
        start(lead, child);
        lead->kills++;
    }
    wait_a_while(lead, child);
}

/* Whoever ends by itself has found something wrong, but for writers at the end. */
static void look_after(struct lead *lead, struct child *children, size_t len, struct child *child)
{
    int how;

    if (!child->pid || waitpid(child->pid, &how, WNOHANG) != child->pid)
        return;
    child->pid = 0;
    if (is_writer(child) && WIFEXITED(how) && WEXITSTATUS(how) == 0 &&
        atomic_load(&lead->site.board->finish))
        return;
    for (size_t i = 0; i < len; i++)
        end(&children[i]);
    FAIL("%s %d ended by itself: %d; see %s (seed %llu)", child->role ? child->role : "server",
         child->number, how, lead->site.dir, (unsigned long long)lead->site.seed);
}

/* ---- the run -------------------------------------------------------------------------------- */

static void choose_port(struct lead *lead)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        FAIL("no free port: %s", strerror(errno));
    close(fd);
    snprintf(lead->port, sizeof(lead->port), "%u", (unsigned)ntohs(address.sin_port));
    snprintf(lead->site.url, sizeof(lead->site.url), "http://127.0.0.1:%s", lead->port);
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

/* Nobody is hurt any more; writers finish, followers come to the end. */
static void calm_down(struct lead *lead, struct child *children, size_t len, struct hf_scope *s,
                      struct hf_events *store, struct truth *truth)
{
    static const struct {
        const char *name;
        enum log_kind kind;
    } logs[] = {{"read-0", LOG_EXACT},
                {"read-1", LOG_EXACT},
                {"subscribe", LOG_REPEATS},
                {"consume", LOG_ANY_ORDER}};
    int64_t until_us = now_us() + PATIENCE_S * 1000000LL;
    bool writing = true;

    atomic_store(&lead->site.board->finish, 1);
    for (size_t i = 0; i < len; i++)
        wake(&children[i]);
    while (writing) {
        writing = false;
        for (size_t i = 0; i < len; i++) {
            look_after(lead, children, len, &children[i]);
            writing = writing || (is_writer(&children[i]) && children[i].pid);
        }
        if (now_us() > until_us)
            FAIL("writers do not come to an end; see %s", lead->site.dir);
        nap_ms(10);
    }
    nap_ms(GHOSTS_MS);
    truth_read(s, store, truth);
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
        while (!log_is_whole(&lead->site, logs[i].name, logs[i].kind, truth)) {
            for (size_t j = 0; j < len; j++)
                look_after(lead, children, len, &children[j]);
            if (now_us() > until_us)
                FAIL("%s/%s does not come to an end", lead->site.dir, logs[i].name);
            nap_ms(50);
        }
}

static int run(struct lead *lead, double seconds)
{
    struct child children[] = {
        {NULL, 0, SERVER_LEAST_MS, SERVER_MOST_MS, 0, false, 0},
        {"write", 0, LEAST_MS, MOST_MS, 0, false, 0},
        {"write", 1, LEAST_MS, MOST_MS, 0, false, 0},
        {"write", 2, LEAST_MS, MOST_MS, 0, false, 0},
        {"read", 0, LEAST_MS, MOST_MS, 0, false, 0},
        {"read", 1, LEAST_MS, MOST_MS, 0, false, 0},
        {"subscribe", 0, LEAST_MS, MOST_MS, 0, false, 0},
        {"subscribe", 1, LEAST_MS, MOST_MS, 0, false, 0},
        {"consume", 0, LEAST_MS, MOST_MS, 0, false, 0},
        {"consume", 1, LEAST_MS, MOST_MS, 0, false, 0},
        {"sweep", 0, LEAST_MS, MOST_MS, 0, false, 0},
    };
    size_t len = sizeof(children) / sizeof(children[0]);
    struct hf_scope *s = hf_scope_new(NULL);
    int64_t end_us;
    struct truth truth = {0};
    struct hf_events *store;
    struct hf_db *db;

    start(lead, &children[0]);
    store = site_store(s, &lead->site, &db); /* makes the table */
    for (size_t i = 0; i < len; i++) {
        if (i > 0)
            start(lead, &children[i]);
        wait_a_while(lead, &children[i]);
    }
    for (end_us = now_us() + (int64_t)(seconds * 1e6); now_us() < end_us; nap_ms(5))
        for (size_t i = 0; i < len; i++) {
            look_after(lead, children, len, &children[i]);
            torment(lead, &children[i]);
        }
    calm_down(lead, children, len, s, store, &truth);
    for (size_t i = 1; i < len; i++)
        end(&children[i]);
    verdict(s, db, store, &lead->site, &truth);
    free(truth.events);
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
    end(&children[0]);
    printf("%u kills, %u stops; %u appends repeated, %u pieces swept; seed %llu\n", lead->kills,
           lead->stops, atomic_load(&lead->site.board->again),
           atomic_load(&lead->site.board->swept), (unsigned long long)lead->site.seed);
    munmap(lead->site.board, sizeof(*lead->site.board));
    nftw(lead->site.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

_Static_assert(WRITERS == 3, "run() starts that many");

static int child_main(char **argv)
{
    int number = (int)strtol(argv[2], NULL, 10);
    struct site site;

    site_join(&site, argv + 3);
    if (strcmp(argv[1], "write") == 0)
        return write_main(&site, number);
    if (strcmp(argv[1], "read") == 0)
        return read_main(&site, number);
    if (strcmp(argv[1], "subscribe") == 0)
        return subscribe_main(&site, number);
    if (strcmp(argv[1], "consume") == 0)
        return consume_main(&site, number);
    return sweep_main(&site);
}

int main(int argc, char **argv)
{
    struct lead lead = {.self = argv[0]};
    const char *tmp = getenv("TMPDIR");

    if (argc == 6)
        return child_main(argv);
    if (argc < 3) {
        fprintf(stderr, "usage: events_ledger HOLDFAST SECONDS [SEED]\n");
        return 2;
    }
    lead.program = argv[1];
    lead.site.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
    lead.random = lead.site.seed * 2 + 1;
    snprintf(lead.site.dir, sizeof(lead.site.dir), "%s/holdfast-ledger-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(lead.site.dir))
        FAIL("%s: %s", lead.site.dir, strerror(errno));
    map_board(&lead.site);
    choose_port(&lead);
    return run(&lead, strtod(argv[2], NULL));
}
