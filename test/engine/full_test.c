/*
 * engine/full_test.c: a database that has filled its disk, as P7 and P9 of docs/guarantees.md say:
 * puts are refused, everything that deletes is carried out, and puts go on when that has made room.
 *
 * The disk is a small tmpfs that only a process of ours sees: this program once more, with
 * the running test as its argument and the place in its environment. Where the system does not let
 * us mount one, nothing is tested.
 */
#include "help.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    SKIPPED = 12,
    ITEM_BYTES = 4000,
    EXPIRING = 500,
    BACKED_UP = 1000,
    FILLS_MAX = 100,
    TRIES = 2000,      /* of what may have to wait until something is merged, */
    TRY_AFTER = 10000, /* so many us apart */
};

static const char disk_variable[] = "HF_TEST_FULL_DISK";
static const char disk_size[] = "size=96m";

/* ---- the disk ------------------------------------------------------------------------------- */

static bool mount_disk(const char *path)
{
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return false;
    /* What we mount is not seen outside, and goes with us. */
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return mount("holdfast-test", path, "tmpfs", 0, disk_size) == 0;
}

/* This program again, for the running test; `disk`: with a small disk at `value`. */
static int run_again(struct test *t, const char *variable, const char *value, bool disk)
{
    char name[256];
    int status = -1;
    pid_t pid;

    snprintf(name, sizeof(name), "%s.%s", t->group, t->name);
    pid = fork();
    if (pid == 0) {
        setenv(variable, value, 1);
        if (disk && !mount_disk(value))
            _exit(SKIPPED);
        execl("/proc/self/exe", "test_engine", name, (char *)NULL);
        _exit(127);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

/* Where the disk is, in the process that has one; NULL in the first one, which waits for it. */
static const char *on_a_small_disk(struct test *t)
{
    const char *path = getenv(disk_variable);
    int status;

    if (path)
        return path;
    status = run_again(t, disk_variable, test_directory(t), true);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        print_message("skipped: the system does not let us mount a small disk\n");
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return NULL;
}

/* Take away what is free but for so much. */
static void leave(const char *disk, int mib)
{
    char path[256];
    struct statvfs info;
    int fd;

    snprintf(path, sizeof(path), "%s/filler", disk);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && fstatvfs(fd, &info) == 0);
    CHECK(posix_fallocate(fd, 0, (off_t)(info.f_bavail * info.f_frsize) - ((off_t)mib << 20)) == 0);
    close(fd);
}

static void give_back(const char *disk)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/filler", disk);
    CHECK(unlink(path) == 0);
}

/* ---- the database --------------------------------------------------------------------------- */

static struct world open_here(struct test *t, const char *url)
{
    struct world w = world_open(t, "memory:");

    w.url = url;
    w.options.memtable_bytes = 2 << 20;
    w.options.sync = HF_SYNC_NONE;
    world_reopen(&w);
    return w;
}

static enum hf_status put(struct world *w, const char *table, unsigned number, const char *more)
{
    char value[ITEM_BYTES];
    uint64_t x = number * UINT64_C(0x9E3779B97F4A7C15) + 1;

    for (size_t i = 0; i < sizeof(value) - 1; i++) { /* nothing that could be packed */
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        value[i] = (char)('a' + x % 26);
    }
    value[sizeof(value) - 1] = '\0';
    return is_error(callf(w, "PutItem",
                          "{'TableName':'%s','Item':{'pk':{'S':'k%u'},'v':{'S':'%s'}%s}}", table,
                          number, value, more))
               ? hf_scope_error(w->scope)->status
               : HF_OK;
}

/* As it is answered at last: what makes room waits now and then for what made room before. */
static void soon(struct world *w, const char *operation, const char *json)
{
    struct hf_str answer = world_call(w, operation, json);

    for (int i = 0; i < TRIES && is_error(answer); i++) {
        if (hf_scope_error(w->scope)->status != HF_NO_SPACE)
            break;
        usleep(TRY_AFTER);
        hf_scope_reset(w->scope);
        answer = world_call(w, operation, json);
    }
    if (is_error(answer))
        fail_msg("%s: %s", operation, hf_scope_error_text(w->scope));
    hf_scope_reset(w->scope);
}

static void put_soon(struct world *w, unsigned number)
{
    enum hf_status status = put(w, "tab", number, "");

    for (int i = 0; i < TRIES && status == HF_NO_SPACE; i++) {
        usleep(TRY_AFTER);
        hf_scope_reset(w->scope);
        status = put(w, "tab", number, "");
    }
    CHECK_OK(status);
    hf_scope_reset(w->scope);
}

static bool is_full(struct world *w)
{
    struct hf_engine_stats stats;

    hf_engine_stats(w->db, &stats);
    CHECK(!stats.stopped);
    return stats.no_space;
}

static unsigned count(struct world *w, const char *table)
{
    struct hf_describe_table_result found;

    CHECK_OK(hf_describe_table(w->scope, w->db,
                               &(struct hf_describe_table){.table = hf_str_from(table)}, &found));
    return (unsigned)found.table->item_count;
}

/* Put items until there is no room, which nothing has happened of; how many there are then. */
static unsigned fill(struct world *w)
{
    unsigned items = count(w, "tab");
    enum hf_status status = HF_OK;

    for (; status == HF_OK && items < 100000; items++) {
        hf_scope_reset(w->scope);
        status = put(w, "tab", items, "");
    }
    CHECK_STATUS(HF_NO_SPACE, status);
    CHECK(!hf_scope_error(w->scope)->may_have_happened);
    hf_scope_reset(w->scope);
    return items - 1;
}

/* In a process of its own: until the disk is full, and an end without a close. */
static void fill_and_die(struct test *t)
{
    const char *url = getenv(crash_variable);
    struct world w;

    if (!url)
        return;
    w = open_here(t, url);
    fill(&w);
    kill(getpid(), SIGKILL);
}

/* ---- tests ---------------------------------------------------------------------------------- */

#define DELETE_OF(number) "{'DeleteRequest':{'Key':{'pk':{'S':'k" #number "'}}}}"
#define CHANGE_OF(number) "{'Delete':{'TableName':'tab','Key':{'pk':{'S':'k" #number "'}}}}"

static void prepare(struct world *w, char arn[256])
{
    struct hf_str answer;

    world_ok(w, "CreateTable", PK_TABLE("tab", ""));
    world_ok(w, "CreateTable", PK_TABLE("other", ""));
    world_ok(w, "CreateTable", PK_TABLE("expiring", STREAM_OF("KEYS_ONLY")));
    world_ok(w, "UpdateTimeToLive",
             "{'TableName':'expiring','TimeToLiveSpecification':{'Enabled':true,"
             "'AttributeName':'at'}}");
    for (unsigned i = 0; i < EXPIRING; i++)
        CHECK_OK(put(w, "expiring", i, ",'at':{'N':'1767225700'}")); /* 100 s after the start */
    for (unsigned i = 0; i < BACKED_UP; i++)
        CHECK_OK(put(w, "other", i, ""));
    answer = world_ok(w, "CreateBackup", "{'TableName':'other','BackupName':'back'}");
    answer = next_text(&answer, "BackupArn");
    snprintf(arn, 256, "%.*s", HF_FMT(answer));
    CHECK_INT(BACKED_UP, upkeep(w).backed_up_items);
}

TEST(full, everything_that_deletes_is_carried_out_and_makes_room)
{
    char url[256], arn[256], text[512];
    const char *disk;
    unsigned items, rounds = 0;
    struct world w;
    int status;

    fill_and_die(t);
    disk = on_a_small_disk(t);
    if (!disk)
        return;
    snprintf(url, sizeof(url), "embedded:%s/db", disk);
    w = open_here(t, url);
    prepare(&w, arn);
    hf_db_close(w.db);
    w.db = NULL;
    status = run_again(t, crash_variable, url, false);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    hf_scope_reset(w.scope);
    CHECK_OK(hf_open(w.scope, hf_str_from(url), &w.options, &w.db));
    CHECK(count(&w, "tab") > 1000);
    do /* what was under way at the kill, or is now, may leave some room */
        items = fill(&w);
    while (!is_full(&w) && ++rounds < FILLS_MAX);
    CHECK(rounds < FILLS_MAX);
    world_ok(&w, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'k7'}}}");

    soon(&w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'k0'}}}");
    soon(&w, "BatchWriteItem",
         "{'RequestItems':{'tab':[" DELETE_OF(1) "," DELETE_OF(2) "," DELETE_OF(3) "]}}");
    soon(&w, "TransactWriteItems", "{'TransactItems':[" CHANGE_OF(4) "," CHANGE_OF(5) "]}");
    soon(&w, "ExecuteStatement",
         "{'Statement':'DELETE FROM tab WHERE pk = ?','Parameters':[{'S':'k6'}]}");
    CHECK_INT(items - 7, count(&w, "tab"));
    test_advance_ms(t, 200 * 1000);
    CHECK_INT(EXPIRING, upkeep(&w).expired_items);
    CHECK_INT(0, count(&w, "expiring"));
    snprintf(text, sizeof(text), "{'BackupArn':'%s'}", arn);
    soon(&w, "DeleteBackup", text);
    soon(&w, "DeleteTable", "{'TableName':'other'}");
    CHECK_INT(2 * BACKED_UP, upkeep(&w).erased_keys); /* the table's items, and the backup's */

    for (unsigned i = 7; i < items / 2; i++) {
        snprintf(text, sizeof(text), "{'TableName':'tab','Key':{'pk':{'S':'k%u'}}}", i);
        soon(&w, "DeleteItem", text);
    }
    for (unsigned i = 0; i < items / 4; i++)
        put_soon(&w, items + i);
    CHECK(!is_full(&w));
    CHECK_INT(items - items / 2 + items / 4, count(&w, "tab"));
    world_close(&w);
}

/* Next to nothing is left, as another program may do it, while the database is closed. */
TEST(full, a_backup_that_is_being_made_waits_for_room)
{
    struct hf_upkeep_report report;
    char url[256], arn[256], text[512];
    const char *disk = on_a_small_disk(t);
    struct hf_str answer;
    struct world w;

    if (!disk)
        return;
    snprintf(url, sizeof(url), "embedded:%s/db", disk);
    w = open_here(t, url);
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < BACKED_UP; i++)
        CHECK_OK(put(&w, "tab", i, ""));
    answer = world_ok(&w, "CreateBackup", "{'TableName':'tab','BackupName':'back'}");
    answer = next_text(&answer, "BackupArn");
    snprintf(arn, sizeof(arn), "%.*s", HF_FMT(answer));
    snprintf(text, sizeof(text), "{'BackupArn':'%s'}", arn);
    hf_db_close(w.db);
    for (int round = 0; round < 2; round++) { /* the second time the counts are not known, either */
        leave(disk, 5);
        hf_scope_reset(w.scope);
        CHECK_OK(hf_open(w.scope, hf_str_from(url), &w.options, &w.db));
        CHECK(is_full(&w));
        CHECK_STATUS(HF_NO_SPACE, hf_engine_upkeep(w.scope, w.db, &report));
        answer = world_ok(&w, "DescribeBackup", text);
        CHECK(after(&answer, "\"BackupStatus\":\"CREATING\"").ptr);
        CHECK_STATUS(HF_NO_SPACE, put(&w, "tab", BACKED_UP, ""));
        CHECK_INT(BACKED_UP, count(&w, "tab"));
        if (round == 0)
            hf_db_close(w.db);
        give_back(disk);
    }
    put_soon(&w, BACKED_UP); /* and then the backup is of this moment */
    CHECK_INT(BACKED_UP + 1, upkeep(&w).backed_up_items);
    answer = world_ok(&w, "DescribeBackup", text);
    CHECK(after(&answer, "\"BackupStatus\":\"AVAILABLE\"").ptr);
    world_close(&w);
}
