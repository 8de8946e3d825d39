/*
 * test/crash/doors_test.c: directories that cannot be opened or written: open already, not a
 * directory, read-only, on a disk that is full.
 */
#include "damage.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS_MAX = 300000, TRIES_MAX = 200 };

static void check_refused(struct test *t, const char *dir, enum hf_status want, const char *text)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    enum hf_status status;
    struct hf_db *db = open_at(s, dir, &status);

    CHECK(!db);
    CHECK_STATUS(want, status);
    if (!strstr(hf_scope_error_text(s), text))
        fail_msg("not in the message: %s: %s", text, hf_scope_error_text(s));
    hf_scope_free(s);
}

TEST(doors, one_at_a_time)
{
    char dir[PATH_ROOM];
    struct hf_scope *s = hf_scope_new(test_env(t));
    enum hf_status status;
    struct hf_db *db;
    struct look look;

    snprintf(dir, sizeof(dir), "%s/d", test_directory(t));
    db = open_at(s, dir, &status);
    CHECK_OK(status);
    check_refused(t, dir, HF_LOCKED, dir);
    look = look_at(dir); /* another process */
    CHECK(!look.crashed && !look.opened);
    CHECK(strstr(look.text, "HF_LOCKED") != NULL);
    hf_db_close(db);
    db = open_at(s, dir, &status);
    CHECK_OK(status);
    hf_db_close(db);
    hf_scope_free(s);
}

/* A child that does not know of us holds nothing. */
TEST(doors, a_fork_does_not_matter)
{
    char dir[PATH_ROOM];
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_list_tables list = {.limit = 0};
    enum hf_status status;
    struct hf_db *db;
    int ends[2], ended;
    pid_t pid;

    snprintf(dir, sizeof(dir), "%s/d", test_directory(t));
    CHECK(pipe(ends) == 0);
    db = open_at(s, dir, &status);
    CHECK_OK(status);
    pid = fork();
    if (pid == 0) {
        char byte;

        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* lives until the parent is done */
    }
    CHECK_OK(hf_list_tables(s, db, &list, NULL));
    hf_db_close(db);
    db = open_at(s, dir, &status);
    CHECK_OK(status);
    hf_db_close(db);
    close(ends[0]);
    close(ends[1]);
    CHECK_INT(pid, waitpid(pid, &ended, 0));
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    hf_scope_free(s);
}

TEST(doors, what_is_no_directory_is_refused)
{
    char path[PATH_ROOM];
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_db *db;
    const char *root = test_directory(t);
    struct stat info;

    snprintf(path, sizeof(path), "%s/file", root);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    check_refused(t, path, HF_INVALID, "not a directory");
    CHECK(stat(path, &info) == 0 && S_ISREG(info.st_mode));
    check_refused(t, "", HF_INVALID, "path");
    snprintf(path, sizeof(path), "%s/no/such/parent", root);
    check_refused(t, path, HF_IO, "no/such/parent");
    /* Somebody else's files are not touched. */
    check_refused(t, root, HF_INVALID, "not empty");
    CHECK_STATUS(HF_INVALID, hf_open(s, hf_str_of("embedded:/tmp/a\0b", 17), NULL, &db));
    CHECK_STATUS(HF_INVALID, hf_open(s, HF_STR("embedded"), NULL, &db));
    CHECK_STATUS(HF_INVALID, hf_open(s, HF_STR(""), NULL, &db));
    hf_scope_free(s);
}

/* A disk of our own. false: the system does not let us have one. */
static bool mount_disk(const char *path)
{
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return false;
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    mkdir(path, 0700);
    return mount("holdfast-test", path, "tmpfs", 0, "size=64m") == 0;
}

static int complain(struct hf_scope *s, const char *what)
{
    printf("%s: %s %s", what, hf_status_name(hf_scope_error(s)->status), hf_scope_error_text(s));
    return CHILD_WRONG;
}

/* ---- read-only ------------------------------------------------------------------------------- */

int child_read_only(const char *path)
{
    struct hf_scope *s = hf_scope_new(NULL);
    char dir[PATH_ROOM];
    enum hf_status status;
    struct hf_db *db;

    if (!mount_disk(path))
        return CHILD_SKIPPED;
    snprintf(dir, sizeof(dir), "%s/d", path);
    db = open_at(s, dir, &status);
    if (!db)
        return complain(s, "a new directory");
    hf_db_close(db);
    if (mount("none", path, NULL, MS_REMOUNT | MS_RDONLY, NULL))
        return CHILD_SKIPPED;
    for (int i = 0; i < 2; i++) { /* a database that is there, and one that is not */
        db = open_at(s, dir, &status);
        if (db || status != HF_IO || !strstr(hf_scope_error_text(s), "Read-only"))
            return complain(s, "a read-only directory");
        snprintf(dir, sizeof(dir), "%s/new", path);
    }
    hf_scope_free(s);
    return CHILD_GOOD;
}

static void run_on_disk(struct test *t, const char *mode)
{
    char path[PATH_ROOM], text[TEXT_ROOM];
    int status;

    snprintf(path, sizeof(path), "%s/disk", test_directory(t));
    status = child_run(mode, path, "", text);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED) {
        print_message("skipped: the system does not let us mount a small disk\n");
        return;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CHILD_GOOD)
        fail_msg("%s %d: %s", WIFEXITED(status) ? "exit" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), text);
}

TEST(doors, a_read_only_disk_is_refused)
{
    run_on_disk(t, "read_only");
}

/* ---- full ------------------------------------------------------------------------------------ */

static void fill(const char *path, off_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || posix_fallocate(fd, 0, bytes))
        perror(path);
    close(fd);
}

static enum hf_status make_table(struct hf_scope *s, struct hf_db *db, struct hf_str name)
{
    struct hf_attribute_definition pk = {HF_STR("pk"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("pk"), HF_KEY_HASH};
    struct hf_create_table create = {.table = name,
                                     .attributes = &pk,
                                     .attributes_len = 1,
                                     .key_schema = &key,
                                     .key_schema_len = 1,
                                     .billing = HF_BILLING_PAY_PER_REQUEST};

    return hf_create_table(s, db, &create, NULL);
}

static enum hf_status put(struct hf_scope *s, struct hf_db *db, unsigned n)
{
    struct hf_put_item request = {.table = HF_STR("damaged"), .item = damage_item(s, n)};

    return hf_put_item(s, db, &request, NULL);
}

static bool is_there(struct hf_scope *s, struct hf_db *db, unsigned n)
{
    struct hf_get_item get = {.table = HF_STR("damaged"),
                              .key = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "item %u", n))),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    return hf_get_item(s, db, &get, &got) == HF_OK && got.item.ptr &&
           hf_item_equal(got.item, damage_item(s, n));
}

static enum hf_status transact(struct hf_scope *s, struct hf_db *db, struct hf_str token)
{
    struct hf_put_item one = {.table = HF_STR("damaged"), .item = damage_item(s, 1)};
    struct hf_transact_write action = {.put = &one};
    struct hf_transact_write_items request = {.actions = &action, .actions_len = 1, .token = token};

    return hf_transact_write_items(s, db, &request, NULL);
}

/* Put items until the disk is full; another status than HF_NO_SPACE is returned. */
static enum hf_status put_until_full(struct hf_scope *s, struct hf_db *db, unsigned *count)
{
    enum hf_status status;

    while ((status = put(s, db, *count + 1)) == HF_OK && *count < ITEMS_MAX) {
        (*count)++;
        hf_scope_reset(s);
    }
    return status == HF_NO_SPACE && !hf_scope_error(s)->may_have_happened ? HF_OK : HF_INTERNAL;
}

/*
 * Fill it up; then every kind of write is refused, and reads go on. A compaction that ends, or a
 * file of the journal that is dropped, gives space back, and then a write may succeed after all:
 * fill up again, until it does not.
 */
static int fill_up(struct hf_scope *s, struct hf_db *db, unsigned *number, unsigned *count)
{
    struct hf_engine_stats stats;
    enum hf_status status;
    bool refused[2] = {false, false};

    for (unsigned tries = 0; tries < TRIES_MAX && !(refused[0] && refused[1]); tries++) {
        struct hf_str name;

        if (put_until_full(s, db, count) != HF_OK)
            return complain(s, "PutItem on a full disk");
        hf_engine_stats(db, &stats);
        if (stats.stopped)
            return complain(s, "stats of a full disk");
        if (!stats.no_space)
            continue; /* a file of the journal, or a compaction's input, went just now */
        name = hf_scope_format(s, "late%u", (*number)++);
        status = tries % 2 ? transact(s, db, name) : make_table(s, db, name);
        if (status != HF_OK && status != HF_NO_SPACE)
            return complain(s, "another write on a full disk");
        refused[tries % 2] |= status == HF_NO_SPACE;
        status = hf_engine_upkeep(s, db, NULL);
        if (status != HF_OK && status != HF_NO_SPACE)
            return complain(s, "upkeep on a full disk");
        if (!is_there(s, db, 1) || !is_there(s, db, *count))
            return complain(s, "a read on a full disk");
    }
    return refused[0] && refused[1] ? CHILD_GOOD : complain(s, "a disk that does not get full");
}

int child_full(const char *path)
{
    struct hf_engine_options *options = HF_OPTIONS(hf_engine_options, .memtable_bytes = 1 << 20,
                                                   .no_upkeep_thread = true, .sync = HF_SYNC_NONE);
    struct hf_scope *s = hf_scope_new(NULL);
    char url[PATH_ROOM], filler[PATH_ROOM];
    struct hf_check_report report;
    unsigned count = 0, number = 0;
    struct statvfs disk;
    struct hf_db *db;
    int result;

    if (!mount_disk(path))
        return CHILD_SKIPPED;
    snprintf(url, sizeof(url), "embedded:%s/d", path);
    snprintf(filler, sizeof(filler), "%s/filler", path);
    if (hf_open(s, hf_str_from(url), options, &db) != HF_OK ||
        make_table(s, db, HF_STR("damaged")) != HF_OK)
        return complain(s, "a new directory");
    fill(filler, 16 << 20);
    result = fill_up(s, db, &number, &count);
    if (result != CHILD_GOOD)
        return result;
    /* Freed while it is open. */
    unlink(filler);
    if (put(s, db, count + 1) != HF_OK || make_table(s, db, HF_STR("again")) != HF_OK ||
        transact(s, db, HF_STR("again")) != HF_OK)
        return complain(s, "a write when there is room again");
    count++;
    fill(filler, 16 << 20);
    result = fill_up(s, db, &number, &count);
    if (result != CHILD_GOOD)
        return result;
    hf_db_close(db);
    /* Others have taken all but a MiB: it can be read. Freed, it is all there. */
    snprintf(filler, sizeof(filler), "%s/filler2", path);
    if (statvfs(path, &disk))
        return CHILD_SKIPPED;
    fill(filler, (off_t)(disk.f_bavail * disk.f_frsize) - (1 << 20));
    if (hf_open(s, hf_str_from(url), options, &db) != HF_NO_SPACE)
        return complain(s, "an open on a full disk");
    if (hf_open(s, hf_str_from(url), HF_OPTIONS(hf_engine_options, .read_only = true), &db) !=
            HF_OK ||
        !is_there(s, db, 1) || !is_there(s, db, count))
        return complain(s, "an open to be read on a full disk");
    hf_db_close(db);
    unlink(filler);
    snprintf(filler, sizeof(filler), "%s/filler", path);
    unlink(filler);
    if (hf_open(s, hf_str_from(url), options, &db) != HF_OK)
        return complain(s, "an open when there is room again");
    for (unsigned n = 1; n <= count; n += 7)
        if (!is_there(s, db, n))
            return complain(s, "an item is gone");
    if (!is_there(s, db, count) || hf_engine_check(s, db, &report) != HF_OK ||
        report.items != count)
        return complain(s, "the check");
    hf_db_close(db);
    hf_scope_free(s);
    return CHILD_GOOD;
}

/* P7. */
TEST(doors, a_full_disk_is_an_error_and_then_is_not)
{
    run_on_disk(t, "full");
}
