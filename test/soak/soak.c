/*
 * test/soak/soak.c: the plan.
 *
 *     soak PROGRAM [--seconds N] [--clients N] [--restarts N] [--seed N] [--any-memory]
 *
 * A server on files, with every write durable before its answer, has as many lives as there are
 * restarts, and one more. In each life the clients first read everything and compare, then write
 * and read. A life ends under load, by SIGKILL and SIGTERM in turn; the last one, which has four
 * tenths of the time, ends in peace. What must hold:
 *
 *  (1) No acknowledged write is lost, in any life; reads see the last one; transactions are whole.
 *  (2) The last life's memory is flat: its peak in the last quarter is at most MEMORY_FACTOR times,
 *      plus MEMORY_MORE_MB, the peak of the first half. Its descriptors are, too: sockets by the
 *      connection, files within FILES_MORE.
 *  (3) When all clients have gone, so have their sockets.
 *  (4) SIGTERM ends with status 0, and nothing in the log is worse than information.
 *  (5) In the end the table counts as many items as there must be.
 */
#include "soak.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 4000,
    END_S = 120,     /* a server that was told to stop must have ended by then */
    FILES_MORE = 40, /* tables and logs of the store come and go */
    MEMORY_MORE_MB = 16,
};
#define MEMORY_FACTOR 1.1
#define SAMPLE_S 0.25
#define LAST_LIFE_PART 0.4

struct plan {
    const char *program;
    double seconds;
    size_t clients;
    unsigned restarts;
    uint64_t seed;
    bool any_memory; /* a sanitizer's allocator keeps what was freed */
};

struct peaks {
    struct usage early, late; /* the highest of each, by time */
};

static struct process server; /* of the one run that a process has; soak_fail() names its place */

_Noreturn void soak_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "soak: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (%s:%d)\nthe data and the log are left in %s\n", file, line, server.dir);
    if (server.pid)
        kill(server.pid, SIGKILL);
    exit(1);
}

static void raise_limit(size_t clients)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        FAIL("getrlimit");
    if (limit.rlim_cur < clients + 100) {
        limit.rlim_cur = limit.rlim_max;
        if (limit.rlim_max < clients + 100 || setrlimit(RLIMIT_NOFILE, &limit))
            FAIL("%zu clients need more open files than are allowed", clients);
    }
}

static void keep_peak(struct usage *peak, struct usage now)
{
    if (now.resident_mb > peak->resident_mb)
        peak->resident_mb = now.resident_mb;
    if (now.sockets > peak->sockets)
        peak->sockets = now.sockets;
    if (now.files > peak->files)
        peak->files = now.files;
}

/* Load for some time, and what the server used in its first half and in its last quarter. */
static struct peaks live(struct clients *clients, double seconds)
{
    struct peaks peaks = {0};
    double begin = soak_now(), passed;

    while ((passed = soak_now() - begin) < seconds) {
        struct usage now;

        clients_run(clients, SAMPLE_S, false);
        now = process_usage(&server);
        if (passed < seconds / 2)
            keep_peak(&peaks.early, now);
        else if (passed > seconds * 3 / 4)
            keep_peak(&peaks.late, now);
    }
    return peaks;
}

/* End it; with clients under load they go on until it is gone. */
static void end(struct clients *clients, int how)
{
    double begin = soak_now();
    int status;

    process_signal(&server, how);
    while (!process_ended(&server, &status)) {
        if (clients)
            clients_run(clients, 0.01, true);
        if (soak_now() - begin > END_S)
            FAIL("the server does not end");
        usleep(1000);
    }
    if (clients)
        clients_lost(clients);
    if (how == SIGTERM && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) /* (4) */
        FAIL("after SIGTERM the server's status was %d", status);
}

/* (2) */
static void check_flat(const struct plan *plan, const struct peaks *peaks)
{
    double limit = peaks->early.resident_mb * MEMORY_FACTOR + MEMORY_MORE_MB;

    if (!plan->any_memory && peaks->late.resident_mb > limit)
        FAIL("memory grew from %.1f to %.1f MB", peaks->early.resident_mb, peaks->late.resident_mb);
    /* A closed connection may take a moment to be noticed. */
    if (peaks->late.sockets > plan->clients + plan->clients / 20 + 20)
        FAIL("%zu clients have %u sockets", plan->clients, peaks->late.sockets);
    if (peaks->late.files > peaks->early.files + FILES_MORE)
        FAIL("descriptors of files grew from %u to %u", peaks->early.files, peaks->late.files);
}

/* (3) */
static void check_sockets_gone(unsigned before)
{
    double begin = soak_now();
    unsigned sockets;

    while ((sockets = process_usage(&server).sockets) > before) {
        if (soak_now() - begin > 30)
            FAIL("all clients are gone, but %u sockets of %u are left", sockets - before, sockets);
        usleep(10000);
    }
}

/* (5) */
static void check_count(const struct clients *clients)
{
    char body[3000];
    const char *count;

    if (clients_call(server.port, "DescribeTable", "{\"TableName\":\"soak\"}", body,
                     sizeof(body)) != 200)
        FAIL("DescribeTable: %s", body);
    count = strstr(body, "\"ItemCount\":");
    if (!count || strtoull(count + 12, NULL, 10) != clients_items(clients))
        FAIL("there must be %llu items: %s", (unsigned long long)clients_items(clients), body);
}

static void create_table(void)
{
    char body[3000];

    if (clients_call(
            server.port, "CreateTable",
            "{\"TableName\":\"soak\",\"BillingMode\":\"PAY_PER_REQUEST\","
            "\"AttributeDefinitions\":[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}],"
            "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}]}",
            body, sizeof(body)) != 200)
        FAIL("CreateTable: %s", body);
}

/* One life but the last. */
static void short_life(struct clients *clients, unsigned number, double seconds)
{
    int how = number % 2 == 0 ? SIGKILL : SIGTERM;
    uint64_t writes = clients_totals(clients)->writes;

    clients_connect(clients, server.port);
    clients_verify(clients);
    live(clients, seconds);
    end(clients, how);
    printf("life %u: %llu writes, ended by %s\n", number + 1,
           (unsigned long long)(clients_totals(clients)->writes - writes),
           how == SIGKILL ? "SIGKILL" : "SIGTERM");
    fflush(stdout);
}

static struct peaks last_life(const struct plan *plan, struct clients *clients, double seconds)
{
    unsigned sockets = process_usage(&server).sockets;
    struct peaks peaks;

    clients_connect(clients, server.port);
    clients_verify(clients);
    peaks = live(clients, seconds);
    clients_settle(clients);
    clients_disconnect(clients);
    check_sockets_gone(sockets);
    check_flat(plan, &peaks);
    clients_connect(clients, server.port);
    clients_verify(clients);
    check_count(clients);
    clients_disconnect(clients);
    end(NULL, SIGTERM);
    return peaks;
}

static void run(const struct plan *plan)
{
    struct clients *clients = clients_new(plan->clients, plan->seed);
    const struct totals *t = clients_totals(clients);
    double part = plan->restarts ? 1 - LAST_LIFE_PART : 0, begin = soak_now();
    struct peaks peaks;

    printf("%zu clients, %u restarts, %.0f s, seed %llu\n", plan->clients, plan->restarts,
           plan->seconds, (unsigned long long)plan->seed);
    fflush(stdout);
    process_start(&server);
    create_table();
    for (unsigned i = 0; i < plan->restarts; i++) {
        short_life(clients, i, plan->seconds * part / plan->restarts);
        process_start(&server);
    }
    peaks = last_life(plan, clients, plan->seconds * (1 - part));
    printf("%.0f s\n"
           "%llu writes acknowledged, none lost; %llu reads; %llu items verified after restarts\n"
           "%llu writes without an answer, of which %llu had happened\n"
           "%llu reconnects, %llu requests cut short; slowest answer %.0f ms\n"
           "memory %.1f MB, later %.1f MB; sockets %u, later %u; files %u, later %u\n",
           soak_now() - begin, (unsigned long long)t->writes, (unsigned long long)t->reads,
           (unsigned long long)t->verified, (unsigned long long)t->open,
           (unsigned long long)t->happened, (unsigned long long)t->reconnects,
           (unsigned long long)t->halves, t->slowest_s * 1000, peaks.early.resident_mb,
           peaks.late.resident_mb, peaks.early.sockets, peaks.late.sockets, peaks.early.files,
           peaks.late.files);
    clients_free(clients);
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: soak PROGRAM [--seconds N] [--clients N] [--restarts N] [--seed N] "
                    "[--any-memory]\n");
    exit(2);
}

static void read_options(struct plan *plan, int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},  {"clients", required_argument, NULL, 'c'},
        {"restarts", required_argument, NULL, 'r'}, {"seed", required_argument, NULL, 'S'},
        {"any-memory", no_argument, NULL, 'm'},     {NULL, 0, NULL, 0},
    };

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            plan->seconds = strtod(optarg, NULL);
            break;
        case 'c':
            plan->clients = strtoul(optarg, NULL, 10);
            break;
        case 'r':
            plan->restarts = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'S':
            plan->seed = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            plan->any_memory = true;
            break;
        default:
            usage();
        }
    }
    if (optind != argc - 1 || plan->clients == 0 || plan->clients > CLIENTS_MAX ||
        !(plan->seconds > 0))
        usage();
    plan->program = argv[optind];
}

int main(int argc, char **argv)
{
    struct plan plan = {.seconds = 60,
                        .clients = 500,
                        .restarts = 6,
                        .seed = (uint64_t)(soak_now() * 1e6)};

    read_options(&plan, argc, argv);
    raise_limit(plan.clients);
    process_prepare(&server, plan.program);
    run(&plan);
    process_remove(&server);
    return 0;
}
