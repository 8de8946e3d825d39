/*
 * test/crash/crash_rounds.c: kill -9, over and over.
 *
 *     crash_rounds [--rounds N] [--seed N] [--ledger FILE]   kill at random moments
 *     crash_rounds --points [--times N]                      kill at every named point
 *
 * A round: start the workload on a directory, kill it after 20 to 400 ms, sometimes start a process
 * that only opens the directory and kill that too, up to three times; then let the judge look.
 * Directories are used for ROUNDS_A_DIRECTORY rounds, so most rounds start from what a crash left.
 *
 * The last line is the totals. With --ledger they are appended to a file as well. A failed round
 * leaves its directory, and says where and which seed.
 */
#include "crash.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { ROUNDS_A_DIRECTORY = 8, PATH_ROOM = 200 };

struct totals {
    unsigned rounds;
    unsigned kills;
    unsigned reopen_kills;
    unsigned long long acked;
    unsigned long long open;
    unsigned long long refused;
};

struct place {
    char root[PATH_ROOM];
    char dir[PATH_ROOM + 8];
    char log[PATH_ROOM + 8];
};

/* ---- directories ----------------------------------------------------------------------------- */

static void place_make(struct place *p)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(p->root, sizeof(p->root), "%s/holdfast-crash-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(p->root)) {
        perror(p->root);
        exit(EXIT_BAD);
    }
    snprintf(p->dir, sizeof(p->dir), "%s/db", p->root);
    snprintf(p->log, sizeof(p->log), "%s/log", p->root);
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

static void place_remove(struct place *p)
{
    if (p->root[0])
        nftw(p->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    p->root[0] = '\0';
}

/* ---- processes ------------------------------------------------------------------------------- */

static pid_t start(const char *mode, const struct place *p, uint64_t seed, uint64_t calls,
                   const char *kill_at, int *out)
{
    char exe[] = "/proc/self/exe";
    char seed_text[24], calls_text[24];
    char *args[] = {exe,
                    (char *)(uintptr_t)mode,
                    (char *)(uintptr_t)p->dir,
                    (char *)(uintptr_t)p->log,
                    seed_text,
                    calls_text,
                    NULL};
    posix_spawn_file_actions_t actions;
    int ends[2] = {-1, -1};
    pid_t pid;

    snprintf(seed_text, sizeof(seed_text), "%llu", (unsigned long long)seed);
    snprintf(calls_text, sizeof(calls_text), "%llu", (unsigned long long)calls);
    if (kill_at)
        setenv("HF_KILL_AT", kill_at, 1);
    else
        unsetenv("HF_KILL_AT");
    posix_spawn_file_actions_init(&actions);
    if (out) {
        if (pipe2(ends, O_CLOEXEC)) {
            perror("pipe");
            exit(EXIT_BAD);
        }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        *out = ends[0];
    }
    errno = posix_spawn(&pid, exe, &actions, NULL, args, environ);
    if (errno) {
        perror("posix_spawn");
        exit(EXIT_BAD);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (out)
        close(ends[1]);
    return pid;
}

static void sleep_ms(uint64_t ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

/* Kill it after `ms`. True: it was alive until then, or killed itself. */
static bool kill_after(pid_t pid, uint64_t ms)
{
    int status;

    sleep_ms(ms);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    fprintf(stderr, "a process ended by itself: %s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

static bool judge(const struct place *p, struct totals *sum)
{
    unsigned long long acked, open, refused;
    char text[100] = "";
    int out, status;
    pid_t pid = start("verify", p, 0, 0, NULL, &out);
    ssize_t len = read(out, text, sizeof(text) - 1);

    close(out);
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_GOOD) {
        fprintf(stderr, "the judge: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        return false;
    }
    if (len <= 0 || sscanf(text, "%llu %llu %llu", &acked, &open, &refused) != 3)
        return false;
    sum->acked = acked;
    sum->open += open;
    sum->refused = refused;
    return true;
}

/* ---- random moments -------------------------------------------------------------------------- */

static bool round_of(const struct place *p, uint64_t *random, struct totals *all,
                     struct totals *here)
{
    pid_t pid = start("work", p, next_random(random), UINT64_MAX, NULL, NULL);
    unsigned reopens = next_random(random) % 3 ? 0 : 1 + (unsigned)(next_random(random) % 3);

    if (!kill_after(pid, 20 + next_random(random) % 381))
        return false;
    all->kills++;
    for (; reopens; reopens--) {
        int status;

        /* It may be done before we come. */
        pid = start("reopen", p, 0, 0, NULL, NULL);
        sleep_ms(next_random(random) % 60);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_GOOD)
            return false;
        all->reopen_kills += WIFSIGNALED(status);
    }
    return judge(p, here);
}

static void add_totals(struct totals *all, struct totals *here)
{
    all->acked += here->acked;
    all->open += here->open;
    all->refused += here->refused;
    *here = (struct totals){0};
}

static void report(const struct totals *all, uint64_t seed, const char *ledger)
{
    char line[300];
    FILE *file = ledger ? fopen(ledger, "a") : NULL;
    time_t now = time(NULL);
    char day[32];

    strftime(day, sizeof(day), "%Y-%m-%d", gmtime(&now));
    snprintf(
        line, sizeof(line),
        "%s crash_rounds %s seed %llu: %u rounds, %u kills, %u kills while opening, %llu calls "
        "answered (%llu of them refused as they had to be), %llu open when killed, 0 "
        "violations\n",
        day, hf_version(), (unsigned long long)seed, all->rounds, all->kills, all->reopen_kills,
        all->acked, all->refused, all->open);
    fputs(line, stdout);
    if (ledger && (!file || fputs(line, file) == EOF))
        perror(ledger);
    if (file)
        fclose(file);
}

static int rounds(unsigned count, uint64_t seed, const char *ledger)
{
    struct place place = {.root = ""};
    struct totals all = {0}, here = {0};
    uint64_t random = seed;

    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (; all.rounds < count; all.rounds++) {
        if (all.rounds % ROUNDS_A_DIRECTORY == 0) {
            add_totals(&all, &here);
            place_remove(&place);
            place_make(&place);
        }
        if (!round_of(&place, &random, &all, &here)) {
            printf("round %u failed; seed %llu; everything is in %s\n", all.rounds,
                   (unsigned long long)seed, place.root);
            return 1;
        }
    }
    add_totals(&all, &here);
    place_remove(&place);
    report(&all, seed, ledger);
    return 0;
}

/* ---- named points ---------------------------------------------------------------------------- */

/* Each with a pass early on and a later one; 0: it is passed once only. */
static const struct {
    const char *name;
    unsigned later;
} points[] = {
    {"after_format_file", 0},   {"before_ballast", 0},      {"before_seal", 0},
    {"after_seal", 0},          {"before_write", 60},       {"after_write", 60},
    {"before_sync", 60},        {"after_sync", 60},         {"after_record", 60},
    {"before_apply", 80},       {"after_apply", 80},        {"before_answer", 70},
    {"before_catalog", 9},      {"after_catalog", 9},       {"before_backfill_entry", 20},
    {"before_backfill_end", 2}, {"after_backfill_end", 2},  {"before_expiry", 4},
    {"before_maintenance", 5},  {"before_counts_saved", 0}, {"after_counts_saved", 0},
    {"before_close_flush", 0},  {"after_close_flush", 0},   {"table_begun", 0},
    {"table_written", 0},       {"before_backup_chunk", 2}, {"after_backup_chunk", 2},
    {"before_backup_end", 2},   {"after_backup_end", 2},    {"before_restore_chunk", 2},
    {"after_restore_chunk", 2}, {"before_restore_end", 2},  {"after_restore_end", 2},
};

enum { CALLS = 150, TRIES = 20 };

/*
 * Work until the point is passed, and killed there. The workload ends by itself after some calls,
 * so that closing is passed too; what it calls is left to chance, and if that left a point out the
 * next seed is tried. A later pass gets `times` as many calls. False: it was never passed, or something
 * else went wrong.
 */
static bool killed_at(struct place *place, const char *at, unsigned times, uint64_t seed)
{
    int status = 0;

    for (int i = 0; i < TRIES; i++) {
        pid_t pid;

        place_make(place);
        pid = start("work", place, seed + 1000 * (uint64_t)i, CALLS * times, at, NULL);
        waitpid(pid, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_GOOD || i + 1 == TRIES)
            break;
        place_remove(place);
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    printf("%s was not passed: %s %d\n", at, WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return false;
}

static bool point(const char *name, unsigned pass, unsigned times, uint64_t seed)
{
    struct place place;
    struct totals here = {0};
    char at[80];
    bool fine;
    int status = 0;
    pid_t pid;

    snprintf(at, sizeof(at), "%s:%u", name, pass);
    fine = killed_at(&place, at, times, seed) && judge(&place, &here);
    /* And once more from there. */
    if (fine) {
        pid = start("work", &place, seed + 1, 20, NULL, NULL);
        waitpid(pid, &status, 0);
        fine = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_GOOD && judge(&place, &here);
    }
    if (fine)
        place_remove(&place);
    else
        printf("%s failed; seed %llu; everything is in %s\n", at, (unsigned long long)seed,
               place.root);
    return fine;
}

static int all_points(unsigned times, uint64_t seed)
{
    unsigned runs = 0;

    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        for (unsigned t = 0; t < times; t++, runs++) {
            unsigned pass = t == 0 || !points[i].later ? 1 : points[i].later * t;

            if (!point(points[i].name, pass, t ? t : 1, seed + t))
                return 1;
        }
    }
    printf("%zu points, %u runs, 0 violations\n", sizeof(points) / sizeof(points[0]), runs);
    return 0;
}

/* ---- */

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    const char *ledger = NULL;
    const char *seed_text = getenv("HF_SEED");
    uint64_t seed = seed_text ? number(seed_text) : (uint64_t)time(NULL);
    unsigned count = 30, times = 2;
    bool named = false;

    if (argc == 6 && strcmp(argv[1], "work") == 0)
        return work(argv[2], argv[3], number(argv[4]), number(argv[5]));
    if (argc == 6 && strcmp(argv[1], "reopen") == 0)
        return reopen(argv[2]);
    if (argc == 6 && strcmp(argv[1], "verify") == 0)
        return verify(argv[2], argv[3], false);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--points") == 0) {
            named = true;
            continue;
        }
        if (strcmp(argv[i], "--rounds") == 0 && value)
            count = (unsigned)number(value);
        else if (strcmp(argv[i], "--times") == 0 && value)
            times = (unsigned)number(value);
        else if (strcmp(argv[i], "--seed") == 0 && value)
            seed = number(value);
        else if (strcmp(argv[i], "--ledger") == 0 && value)
            ledger = value;
        else {
            fprintf(stderr, "usage: crash_rounds [--rounds N | --points [--times N]] [--seed N] "
                            "[--ledger FILE]\n");
            return 2;
        }
        i++;
    }
    return named ? all_points(times, seed) : rounds(count, seed, ledger);
}
