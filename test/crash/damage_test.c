/*
 * test/crash/damage_test.c: logs cut short, bits flipped, files missing or from another day.
 *
 * What is promised: everything, or an error that says what is wrong; never wrong data, never
 * silently less, never a crash.
 */
#include "damage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 30, OLDER = 500, NEWER = 900, NOTES_MAX = 64, TAIL = 200, FLIPS = 60 };

/* ---- torn tails ------------------------------------------------------------------------------ */

static size_t read_notes(const char *dir, struct note notes[NOTES_MAX])
{
    char path[PATH_ROOM];
    FILE *file;
    size_t len;

    snprintf(path, sizeof(path), "%s.notes", dir);
    file = fopen(path, "rb");
    len = file ? fread(notes, sizeof(notes[0]), NOTES_MAX, file) : 0;
    if (file)
        fclose(file);
    return len;
}

/* How many items are there; they must be the first ones, whole. -1: they are not. */
static int prefix_length(struct hf_scope *s, struct hf_db *db, unsigned upto)
{
    unsigned found = 0;

    for (unsigned n = 1; n <= upto; n++) {
        struct hf_get_item get = {.table = HF_STR("damaged"),
                                  .key = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "item %u", n)))};
        struct hf_get_item_result got;

        if (hf_get_item(s, db, &get, &got) != HF_OK)
            return -1;
        if (got.item.ptr && (found != n - 1 || !hf_item_equal(got.item, damage_item(s, n))))
            return -1;
        found += got.item.ptr != NULL;
    }
    return (int)found;
}

/* Cut the log at `at`, or overwrite what comes after with `fill`. */
static void tear(const char *log, off_t at, int fill)
{
    int fd = open(log, O_RDWR | O_CLOEXEC);
    struct stat info;
    char byte = (char)fill;

    if (fd < 0 || fstat(fd, &info))
        return;
    if (fill < 0 && ftruncate(fd, at))
        perror(log);
    for (off_t i = at; fill >= 0 && i < info.st_size; i++)
        if (pwrite(fd, &byte, 1, i) != 1)
            perror(log);
    close(fd);
}

/* One way to tear: with the newest record of what is durable, or with an older one. */
static bool torn_once(struct hf_scope *s, const char *dir, const struct note *notes, size_t len,
                      off_t at, int fill, bool old_record, unsigned *opened)
{
    const struct note *last = &notes[len - 1];
    const char *copy = hf_scope_format(s, "%s.torn", dir).ptr;
    unsigned safe = 0;
    enum hf_status status;
    struct hf_db *db;
    int there;
    bool fine;

    copy_directory(dir, copy);
    tear(hf_scope_format(s, "%s/journal/%016x", copy, last->log).ptr, at, fill);
    if (old_record)
        copy_file(hf_scope_format(s, "%s.durable", dir).ptr,
                  hf_scope_format(s, "%s/durable", copy).ptr);
    for (size_t i = 0; i < len; i++)
        if (notes[i].log < last->log || (off_t)notes[i].size <= at)
            safe = notes[i].n;
    db = open_at(s, copy, &status);
    if (!db) {
        /* A mere cut, as a power loss leaves it, must open when nothing durable is gone. */
        fine =
            status == HF_CORRUPT && hf_scope_error(s)->message.len > 0 && !(old_record && fill < 0);
        if (!fine)
            printf("at %lld, fill %d, old record %d: %s %s\n", (long long)at, fill, old_record,
                   hf_status_name(status), hf_scope_error_text(s));
        return fine;
    }
    (*opened)++;
    there = prefix_length(s, db, last->n);
    fine = hf_engine_check(s, db, NULL) == HF_OK && there >= (int)safe &&
           (old_record || there == (int)last->n);
    if (!fine)
        printf("at %lld, fill %d, old record %d: %d of %u items, %u safe; %s\n", (long long)at,
               fill, old_record, there, last->n, safe, hf_scope_error_text(s));
    hf_db_close(db);
    return fine;
}

int child_torn(const char *dir, const char *argument)
{
    static const int fills[] = {-1, 0, 0xff};
    struct hf_scope *s = hf_scope_new(NULL);
    struct note notes[NOTES_MAX];
    size_t len = read_notes(dir, notes);
    bool old_record = strcmp(argument, "old") == 0;
    unsigned opened = 0, tried = 0;

    if (len == 0)
        return CHILD_ERROR;
    for (off_t back = 0; back <= TAIL; back++) {
        for (size_t i = 0; i < 3; i++) {
            off_t at = (off_t)notes[len - 1].size - back;

            if (i > 0 && back % 8)
                continue;
            tried++;
            if (!torn_once(s, dir, notes, len, at, fills[i], old_record, &opened))
                return CHILD_WRONG;
            hf_scope_reset(s);
        }
    }
    printf("%u tears, %u opened", tried, opened);
    /* At the very end nothing is lost, with an old record a cut never is too much. */
    return opened >= (old_record ? TAIL : 1) ? CHILD_GOOD : CHILD_WRONG;
}

static void torn(struct test *t, const char *record)
{
    char dir[PATH_ROOM], text[TEXT_ROOM];
    int status;

    snprintf(dir, sizeof(dir), "%s/d", test_directory(t));
    build(dir, 1, SMALL);
    status = child_run("torn", dir, record, text);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CHILD_GOOD)
        fail_msg("status %x: %s", (unsigned)status, text);
    print_message("%s record: %s\n", record, text);
}

/* The machine stopped in the middle of a write: what was answered before it is there. */
TEST(torn, a_log_cut_anywhere_keeps_what_was_synced_before)
{
    torn(t, "old");
}

/* A log that lost what was known to be durable is refused. */
TEST(torn, a_log_that_lost_durable_writes_is_refused)
{
    torn(t, "newest");
}

/* ---- bits ------------------------------------------------------------------------------------ */

static void flip(const char *path, uint64_t random)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    uint8_t byte;
    off_t at;

    CHECK(fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0);
    at = (off_t)(random / 8 % (uint64_t)info.st_size);
    CHECK(pread(fd, &byte, 1, at) == 1);
    byte ^= (uint8_t)(1u << random % 8);
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

static off_t size_of(const char *dir, const char *name)
{
    char path[PATH_ROOM + NAME_ROOM];
    struct stat info;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return stat(path, &info) ? 0 : info.st_size;
}

/* Everything is there, or an error says why not. */
static void check_look(const struct look *look, const struct look *whole, const char *what)
{
    if (look->crashed)
        fail_msg("%s: the process crashed: %s", what, look->text);
    if (look->read && (look->digest != whole->digest || look->items != whole->items))
        fail_msg("%s: other data than before (%u items, were %u): %s", what, look->items,
                 whole->items, look->text);
    if (!look->read && strlen(look->text) < 20)
        fail_msg("%s: no explanation: %s", what, look->text);
    /* The file or the directory must be named. */
    if (!look->read && !strstr(look->text, "/d.copy") && !strstr(look->text, "check of the"))
        fail_msg("%s: the error names nothing: %s", what, look->text);
}

TEST(damage, a_flipped_bit_is_harmless_or_an_error)
{
    char dir[PATH_ROOM], copy[PATH_ROOM], path[PATH_ROOM + NAME_ROOM], what[PATH_ROOM];
    unsigned harmless = 0, at_open = 0, at_read = 0, at_check = 0;
    struct files files;
    struct look whole;

    snprintf(dir, sizeof(dir), "%s/d", test_directory(t));
    snprintf(copy, sizeof(copy), "%.250s.copy", dir);
    build(dir, 1, NEWER);
    copy_directory(dir, copy);
    whole = look_at(copy);
    CHECK(whole.read && whole.checked);
    CHECK_INT(2 * NEWER, whole.items); /* table and index */
    list_files(dir, &files);
    for (unsigned i = 0; i < FLIPS; i++) {
        const char *name;
        struct look look;

        do
            name = files.names[test_random_below(t, files.len)];
        while (size_of(dir, name) == 0);
        copy_directory(dir, copy);
        snprintf(path, sizeof(path), "%s/%s", copy, name);
        snprintf(what, sizeof(what), "flip %u, in %s", i, name);
        flip(path, test_random(t));
        look = look_at(copy);
        check_look(&look, &whole, what);
        at_open += !look.opened;
        at_read += look.opened && !look.read;
        at_check += look.read && !look.checked;
        harmless += look.read && look.checked;
    }
    print_message("%d flips: %u harmless, %u seen at opening, %u at reading, %u by the check\n",
                  FLIPS, harmless, at_open, at_read, at_check);
    CHECK(at_open + at_read + at_check > 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

TEST(damage, a_missing_file_is_harmless_or_an_error)
{
    char dir[PATH_ROOM], copy[PATH_ROOM], path[PATH_ROOM + NAME_ROOM];
    struct files files;
    struct look whole;
    unsigned refused = 0;

    snprintf(dir, sizeof(dir), "%s/d", test_directory(t));
    snprintf(copy, sizeof(copy), "%.250s.copy", dir);
    build(dir, 1, NEWER);
    copy_directory(dir, copy);
    whole = look_at(copy);
    CHECK(whole.read);
    list_files(dir, &files);
    for (size_t i = 0; i < files.len; i++) {
        struct look look;

        copy_directory(dir, copy);
        snprintf(path, sizeof(path), "%s/%s", copy, files.names[i]);
        CHECK(unlink(path) == 0);
        look = look_at(copy);
        check_look(&look, &whole, files.names[i]);
        refused += !look.read;
    }
    print_message("%zu files removed in turn, %u noticed\n", files.len, refused);
    CHECK(refused >= 4); /* HOLDFAST, durable, CURRENT, MANIFEST; and tables, and logs */

    /* All but what names it a store. */
    copy_directory(dir, copy);
    snprintf(path, sizeof(path), "%s/db", copy);
    remove_directory(path);
    whole = look_at(copy);
    CHECK(!whole.crashed && !whole.opened);
}

TEST(damage, an_older_file_is_harmless_or_an_error)
{
    char dir[PATH_ROOM], old[PATH_ROOM], copy[PATH_ROOM];
    char from[PATH_ROOM + NAME_ROOM], to[PATH_ROOM + NAME_ROOM];
    struct files files;
    struct look whole, look;
    unsigned swapped = 0;

    snprintf(dir, sizeof(dir), "%s/d", test_directory(t));
    snprintf(copy, sizeof(copy), "%.250s.copy", dir);
    snprintf(old, sizeof(old), "%.250s.old", dir);
    build(dir, 1, OLDER);
    copy_directory(dir, old);
    build(dir, OLDER + 1, NEWER);
    copy_directory(dir, copy);
    whole = look_at(copy);
    CHECK(whole.read);
    CHECK_INT(2 * NEWER, whole.items);
    list_files(old, &files);
    for (size_t i = 0; i < files.len; i++) {
        snprintf(from, sizeof(from), "%s/%s", old, files.names[i]);
        snprintf(to, sizeof(to), "%s/%s", copy, files.names[i]);
        copy_directory(dir, copy);
        copy_file(from, to);
        look = look_at(copy);
        check_look(&look, &whole, files.names[i]);
        swapped++;
    }
    CHECK(swapped >= 5);

    /* The whole database of yesterday, and today's record of what was made durable. */
    copy_directory(old, copy);
    snprintf(from, sizeof(from), "%s/durable", dir);
    snprintf(to, sizeof(to), "%s/durable", copy);
    copy_file(from, to);
    look = look_at(copy);
    CHECK(!look.crashed && !look.opened);
    CHECK(strstr(look.text, "HF_CORRUPT") != NULL);
}
