/*
 * blob/dir_test.c: blobs as files: modes, links and other traps, damage, full disks, and what is
 * left when the process is killed on the way. (n) is an invariant of blob_dir.c.
 */
#include "help.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill.h"
#include "blob/private.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static struct hf_str put(struct hf_scope *s, struct hf_blobs *blobs, const char *text)
{
    struct hf_str digest;

    CHECK_OK(hf_blob_put(s, blobs, hf_bytes_of(text, strlen(text)), &digest));
    return digest;
}

static void check_there(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                        const char *text)
{
    struct hf_bytes found;

    CHECK_OK(hf_blob_get(s, blobs, digest, &found));
    CHECK_STR(text, hf_str_of((const char *)found.ptr, found.len));
}

static const char *in(struct hf_scope *s, const char *path, const char *name)
{
    return hf_scope_format(s, "%s/%s", path, name).ptr;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    CHECK_INT(strlen(text), write(fd, text, strlen(text)));
    close(fd);
}

/* The time of a file, a hundred seconds before the virtual clock. */
static void make_old(struct test *t, const char *path)
{
    struct timespec at = {.tv_sec = t->wall_us / 1000000 - 100};

    CHECK_INT(0, utimensat(AT_FDCWD, path, (const struct timespec[2]){at, at}, 0));
}

TEST(blob_dir, files_and_folders_are_for_their_owner)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = in(s, test_quick_directory(t), "blobs");
    mode_t mask = umask(0);
    struct hf_blobs *blobs = help_open_dir(s, path);
    const char *const folders[] = {"", "new", "trash", "ba", "ba/78"};
    const char *const files[] = {"FORMAT", "ba/78/" ABC};
    struct stat info;

    put(s, blobs, "abc");
    umask(mask);
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(0, stat(in(s, path, folders[i]), &info));
        CHECK_INT(0700, info.st_mode & 07777);
    }
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(0, stat(in(s, path, files[i]), &info));
        CHECK_INT(0600, info.st_mode & 07777);
    }
    CHECK_INT(1, help_files(path));
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

TEST(blob_dir, another_process_or_handle_finds_it)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *one = help_open_dir(s, path);
    struct hf_blobs *two = help_open_dir(s, path);
    struct hf_str digest = put(s, one, "abc");

    check_there(s, two, digest, "abc");
    hf_blobs_close(one);
    hf_blobs_close(two);
    two = help_open_dir(s, path);
    check_there(s, two, digest, "abc");
    hf_blobs_close(two);
    hf_scope_free(s);
}

TEST(blob_dir, formats_of_the_future_and_of_others_are_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_str url = hf_scope_format(s, "dir:%s", path);
    struct hf_blobs *blobs;

    hf_blobs_close(help_open_dir(s, path));
    write_file(in(s, path, "FORMAT"), "holdfast blobs format 2\n");
    CHECK_STATUS(HF_FORMAT, hf_blobs_open(s, url, NULL, &blobs));
    CHECK(strstr(hf_scope_error_text(s), "have format 2; this version supports formats up to 1"));
    write_file(in(s, path, "FORMAT"), "holdfast blobs format x\n");
    CHECK_STATUS(HF_CORRUPT, hf_blobs_open(s, url, NULL, &blobs));
    write_file(in(s, path, "FORMAT"), "mine\n");
    CHECK_STATUS(HF_INVALID, hf_blobs_open(s, url, NULL, &blobs));
    write_file(in(s, path, "FORMAT"), "holdfast blobs format 1\n");
    CHECK_OK(hf_blobs_open(s, url, NULL, &blobs));
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* ---- traps ---------------------------------------------------------------------------------- */

/* A link in the place of a blob is not read, and a put replaces the link, not what it leads to. */
TEST(blob_dir, links_are_not_followed)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = in(s, test_quick_directory(t), "blobs");
    const char *secret = in(s, test_quick_directory(t), "secret");
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest = put(s, blobs, "abc");
    const char *place = help_place(s, path, digest);
    struct hf_bytes found;
    uint64_t removed;
    struct stat info;

    write_file(secret, "abc");
    CHECK_INT(0, unlink(place));
    CHECK_INT(0, symlink(secret, place));
    CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    CHECK(strstr(hf_scope_error_text(s), "is a symbolic link, not a blob"));
    CHECK_STATUS(HF_CORRUPT, hf_blob_has(s, blobs, digest, NULL));
    CHECK_INT(0, help_count(s, blobs));
    test_advance_ms(t, 100 * 1000);
    CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed));
    CHECK_INT(0, removed);
    put(s, blobs, "abc");
    CHECK_INT(0, lstat(place, &info));
    CHECK(S_ISREG(info.st_mode));
    check_there(s, blobs, digest, "abc");
    CHECK_INT(0, unlink(place));
    CHECK_INT(0, symlink(secret, place));
    CHECK_OK(hf_blob_delete(s, blobs, digest)); /* the link alone */
    CHECK_INT(0, access(secret, R_OK));
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* Nor in the place of a folder: nothing is written elsewhere. */
TEST(blob_dir, linked_folders_are_not_followed)
{
    static const char *const places[] = {"ba", "ba/78", "new", "trash"};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < 4; i++) {
        const char *path = in(s, test_quick_directory(t), "blobs");
        const char *elsewhere = test_quick_directory(t);
        struct hf_str url = hf_scope_format(s, "dir:%s", path);
        struct hf_blobs *blobs = help_open_dir(s, path);
        struct hf_bytes found;
        struct hf_str digest;
        enum hf_status status;

        if (i == 1)
            CHECK_INT(0, mkdir(in(s, path, "ba"), 0700));
        if (i >= 2) {
            hf_blobs_close(blobs);
            CHECK_INT(0, rmdir(in(s, path, places[i])));
        }
        CHECK_INT(0, symlink(elsewhere, in(s, path, places[i])));
        if (i >= 2) {
            CHECK_STATUS(HF_CORRUPT, hf_blobs_open(s, url, NULL, &blobs));
            continue;
        }
        CHECK_STATUS(HF_CORRUPT, hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digest));
        CHECK(strstr(hf_scope_error_text(s), "which is not a directory"));
        status = hf_blob_get(s, blobs, HF_STR(ABC), &found);
        CHECK(status == HF_CORRUPT);
        CHECK_INT(0, help_count(s, blobs));
        CHECK_INT(0, help_files(elsewhere));
        hf_blobs_close(blobs);
    }
    hf_scope_free(s);
}

/* What is neither: a pipe must not stop who reads, a folder is not replaced. */
TEST(blob_dir, pipes_and_folders_are_no_blobs)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest = put(s, blobs, "abc");
    const char *place = help_place(s, path, digest);
    struct hf_bytes found;

    CHECK_INT(0, unlink(place));
    CHECK_INT(0, mkfifo(place, 0600));
    CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    put(s, blobs, "abc"); /* replaces it */
    check_there(s, blobs, digest, "abc");
    CHECK_INT(0, unlink(place));
    CHECK_INT(0, mkdir(place, 0700));
    CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    CHECK_STATUS(HF_IO, hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digest));
    CHECK_INT(0, help_files(path)); /* (2) */
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* ---- damage --------------------------------------------------------------------------------- */

TEST(blob_dir, damage_is_told_and_healed_by_a_put)
{
    static const char *const damaged[] = {"abd", "ab", "abcd", ""};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest = put(s, blobs, "abc");

    for (size_t i = 0; i < 4; i++) {
        struct hf_bytes found;

        write_file(help_place(s, path, digest), damaged[i]);
        CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
        CHECK(strstr(hf_scope_error_text(s), "the blob " ABC " is damaged"));
        CHECK(found.ptr == NULL);
        CHECK_STATUS(HF_CORRUPT, hf_blob_get_many(s, blobs, &digest, 1, &found));
        put(s, blobs, "abc");
        check_there(s, blobs, digest, "abc");
    }
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

static void write_bytes(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    CHECK(file && fwrite(bytes, 1, len, file) == len);
    fclose(file);
}

/* P6: every bit flipped, every length, zeros from every byte on, another blob's bytes, none. */
TEST(blob_dir, every_bit_of_a_small_blob)
{
    static const char text[] = "forty bytes, of which none is like those";
    enum { LEN = sizeof(text) - 1 };
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest = put(s, blobs, text);
    const char *place = help_place(s, path, digest);
    char bytes[LEN];
    struct hf_bytes found;

    for (size_t i = 0; i < 8 * LEN; i++) {
        memcpy(bytes, text, LEN);
        bytes[i / 8] = (char)(bytes[i / 8] ^ 1 << i % 8);
        write_bytes(place, bytes, LEN);
        CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    }
    for (size_t i = LEN; i-- > 0;) {
        memcpy(bytes, text, LEN);
        write_bytes(place, bytes, i);
        CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
        memset(bytes + i, 0, LEN - i);
        write_bytes(place, bytes, LEN);
        CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    }
    write_bytes(place, "abc", 3);
    CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    CHECK(unlink(place) == 0);
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, blobs, digest, &found));
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* A file that is larger than a blob can be takes no memory. */
TEST(blob_dir, what_is_too_large_is_not_read)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest = put(s, blobs, "abc");
    struct hf_bytes found;
    size_t live = t->live_bytes;

    CHECK_INT(0, truncate(help_place(s, path, digest), (off_t)HF_BLOB_MAX + 1));
    CHECK_STATUS(HF_CORRUPT, hf_blob_get(s, blobs, digest, &found));
    CHECK(strstr(hf_scope_error_text(s), "it has 1073741825 bytes"));
    CHECK(t->live_bytes < live + 100000);
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* ---- folders that are not there yet --------------------------------------------------------- */

static struct hf_blobs *open_lazy(struct hf_scope *s, const char *path)
{
    struct hf_blobs *blobs;

    CHECK_OK(hf_blobs_open(s, hf_scope_format(s, "dir:%s", path),
                           HF_OPTIONS(hf_blobs_options, .lazy = true), &blobs));
    return blobs;
}

/* Whatever is asked for, nothing is there and nothing is made. */
static void look_in_vain(struct hf_scope *s, struct hf_blobs *blobs)
{
    static const char digest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    uint64_t removed = 7;
    struct hf_bytes found;

    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, blobs, hf_str_from(digest), &found));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(s, blobs, hf_str_from(digest), NULL));
    CHECK_OK(hf_blob_delete(s, blobs, hf_str_from(digest)));
    CHECK_INT(0, help_count(s, blobs));
    CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed));
    CHECK_INT(0, removed);
}

TEST(blob_dir, a_lazy_store_is_made_by_the_first_put)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *folder = test_quick_directory(t);
    const char *path = hf_scope_format(s, "%s/new", folder).ptr;
    struct hf_blobs *blobs = open_lazy(s, path), *part, *other, *again;
    struct hf_str digest;
    struct hf_bytes found;
    struct stat info;

    CHECK_OK(hf_blobs_part(s, blobs, HF_STR("events"), &part));
    look_in_vain(s, blobs);
    look_in_vain(s, part);
    CHECK_INT(-1, stat(path, &info));

    /* One that others make meanwhile is found, but no part of it is made. */
    other = help_open_dir(s, path);
    look_in_vain(s, blobs);
    look_in_vain(s, part);
    CHECK_OK(hf_blob_put(s, other, hf_bytes_of("abc", 3), &digest));
    CHECK_OK(hf_blob_get(s, blobs, digest, &found));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, part, digest, &found));
    CHECK_INT(1, help_files(path));
    CHECK_OK(hf_blob_put(s, part, hf_bytes_of("abc", 3), &digest));
    CHECK_INT(2, help_files(path));
    CHECK_OK(hf_blobs_part(s, other, HF_STR("events"), &again));
    CHECK_OK(hf_blob_get(s, again, digest, &found));
    hf_blobs_close(again);
    hf_blobs_close(other);
    hf_blobs_close(part);
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* An empty folder stays empty; what is no folder of blobs is an error at once. */
TEST(blob_dir, a_lazy_store_looks_at_what_is_there)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    const char *file = hf_scope_format(s, "%s/file", path).ptr;
    struct hf_blobs *blobs = open_lazy(s, path);
    FILE *out;

    look_in_vain(s, blobs);
    hf_blobs_close(blobs);
    CHECK_INT(0, rmdir(path)); /* nothing is in it */
    CHECK_INT(0, mkdir(path, 0700));
    out = fopen(file, "w");
    CHECK(out != NULL);
    CHECK_INT(0, fclose(out));
    CHECK_STATUS(HF_INVALID, hf_blobs_open(s, hf_scope_format(s, "dir:%s", file),
                                           HF_OPTIONS(hf_blobs_options, .lazy = true), &blobs));
    CHECK_STATUS(HF_INVALID, hf_blobs_open(s, HF_STR("dir:"),
                                           HF_OPTIONS(hf_blobs_options, .lazy = true), &blobs));
    hf_scope_free(s);
}

/* ---- full disks ----------------------------------------------------------------------------- */

/* What is kept free for others stays free. */
TEST(blob_dir, a_reserve_is_kept)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs;
    struct hf_str digest;

    hf_blobs_close(help_open_dir(s, path));
    CHECK_OK(hf__blobs_open_dir(s, test_env(t),
                                &(struct blob_dir_options){.path = hf_str_from(path),
                                                           .reserve = UINT64_MAX / 2},
                                &blobs));
    CHECK_STATUS(HF_NO_SPACE, hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digest));
    CHECK(strstr(hf_scope_error_text(s), "no space for a blob of 3 bytes: "));
    CHECK_INT(0, help_files(path));
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* A real one: a file system of one megabyte. */
TEST(blob_dir, a_full_disk_leaves_nothing_behind)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    enum { LARGE = 300 * 1024 };
    uint8_t *large = malloc(LARGE);
    struct hf_blobs *blobs;
    struct hf_str first, digest;
    struct hf_bytes found;
    unsigned stored = 0;
    enum hf_status status;

    CHECK(large != NULL);
    memset(large, 7, LARGE);
    if (mount("none", path, "tmpfs", 0, "size=1m")) {
        print_message("[  SKIPPED ] no file system of our own here: %s\n", strerror(errno));
        free(large);
        hf_scope_free(s);
        return;
    }
    blobs = help_open_dir(s, path);
    for (;; stored++) {
        large[0] = (uint8_t)stored;
        status = hf_blob_put(s, blobs, hf_bytes_of(large, LARGE), &digest);
        if (status != HF_OK)
            break;
        if (stored == 0)
            first = digest;
    }
    if (status == HF_NO_SPACE && stored == 3) {
        uint64_t removed;
        bool named = strstr(hf_scope_error_text(s), "No space left on device") != NULL;
        size_t left = help_files(path);
        enum hf_status got = hf_blob_get(s, blobs, first, &found);

        test_advance_ms(t, 100 * 1000);
        status = hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed);
        if (status == HF_OK) /* goes on when there is room */
            status = hf_blob_put(s, blobs, hf_bytes_of(large, LARGE), &digest);
        hf_blobs_close(blobs);
        umount2(path, MNT_DETACH);
        CHECK(named);
        CHECK_INT(3, left); /* and no part of the fourth */
        CHECK_OK(got);
        CHECK_INT(3, removed);
        CHECK_OK(status);
    } else {
        hf_blobs_close(blobs);
        umount2(path, MNT_DETACH);
        CHECK_STATUS(HF_NO_SPACE, status);
        CHECK_INT(3, stored);
    }
    free(large);
    hf_scope_free(s);
}

TEST(blob_dir, a_deadline_ends_a_long_put_and_leaves_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest;

    hf_scope_cancel(s);
    CHECK_STATUS(HF_CANCELED, hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digest));
    CHECK_INT(0, help_files(path));
    hf_scope_reset(s);
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* ---- kills ---------------------------------------------------------------------------------- */

#ifdef HF_KILL_POINTS

/* A child at a path that dies at a point. */
CHILD(put)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_blobs *blobs;
    struct hf_str digest;

    hf__kill_at(args[1]);
    return hf_blobs_open(s, hf_scope_format(s, "dir:%s", args[0]), NULL, &blobs) != HF_OK ||
           hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digest) != HF_OK;
}

CHILD(sweep)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_blobs *blobs;

    hf__kill_at(args[1]);
    return hf_blobs_open(s, hf_scope_format(s, "dir:%s", args[0]), NULL, &blobs) != HF_OK ||
           hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, NULL) != HF_OK;
}

static void die_at(const char *point, const char *child, const char *path)
{
    int out, status;
    pid_t pid = test_child(child, (const char *[]){path, point, NULL}, &out);

    close(out);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    CHECK(WIFSIGNALED(status));
    CHECK_INT(SIGKILL, WTERMSIG(status));
}

/* (1) (2): whole or not at all, and what is left over is swept. */
TEST(blob_dir, killed_on_the_way)
{
    static const struct {
        const char *point;
        size_t left; /* files */
        bool there;
    } cases[] = {{"blob_made:1", 1, false},
                 {"blob_written:1", 1, false},
                 {"blob_synced:1", 1, false},
                 {"blob_renamed:1", 1, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        const char *path = test_quick_directory(t);
        struct hf_blobs *blobs = help_open_dir(s, path);
        int64_t now_us = t->wall_us;
        struct hf_bytes found;

        die_at(cases[i].point, "put", path);
        CHECK_INT(cases[i].left, help_files(path));
        CHECK_STATUS(cases[i].there ? HF_OK : HF_NOT_FOUND,
                     hf_blob_get(s, blobs, HF_STR(ABC), &found));
        CHECK_INT(cases[i].there, help_count(s, blobs));
        /* Left in new/ by the child, whose clock is the system's: far in our future. */
        CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_all_used, NULL, NULL));
        CHECK_INT(1, help_files(path));
        t->wall_us = INT64_C(4102444800000000); /* 2100 */
        CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_all_used, NULL, NULL));
        CHECK_INT(cases[i].there, help_files(path));
        put(s, blobs, "abc");
        check_there(s, blobs, HF_STR(ABC), "abc");
        CHECK_INT(1, help_files(path));
        t->wall_us = now_us;
        hf_blobs_close(blobs);
        hf_scope_free(s);
    }
}

/* (3) */
TEST(blob_dir, killed_while_sweeping)
{
    for (int open_again = 0; open_again < 2; open_again++) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        const char *path = test_quick_directory(t);
        struct hf_blobs *blobs = help_open_dir(s, path);
        struct hf_str digest = put(s, blobs, "abc");
        uint64_t removed;

        make_old(t, help_place(s, path, digest));
        die_at("blob_trashed:1", "sweep", path);
        CHECK(access(help_place(s, path, digest), F_OK) != 0);
        check_there(s, blobs, digest, "abc"); /* in the trash */
        CHECK_OK(hf_blob_has(s, blobs, digest, NULL));
        if (open_again) {
            hf_blobs_close(blobs);
            blobs = help_open_dir(s, path);
            CHECK_INT(1, help_count(s, blobs));
        }
        CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_all_used, NULL, &removed));
        CHECK_INT(0, removed);
        CHECK_INT(0, access(help_place(s, path, digest), F_OK));
        CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed));
        CHECK_INT(1, removed);
        CHECK_INT(0, help_files(path));
        hf_blobs_close(blobs);
        hf_scope_free(s);
    }
}

/* Trashed by who was killed, put again meanwhile: the new one counts. */
TEST(blob_dir, what_lies_in_the_trash_does_not_replace_a_new_one)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    struct hf_str digest = put(s, blobs, "abc");
    uint64_t removed;

    make_old(t, help_place(s, path, digest));
    die_at("blob_trashed:1", "sweep", path);
    put(s, blobs, "abc");
    CHECK_INT(2, help_files(path));
    CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed));
    CHECK_INT(0, removed); /* it is new */
    CHECK_INT(1, help_files(path));
    check_there(s, blobs, digest, "abc");
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

#endif

/* ---- races ---------------------------------------------------------------------------------- */

enum { PUTTERS = 2, SWEEPERS = 2, RACES = 200, RACES_MAX = 200000 };

struct race {
    const char *path;
    atomic_bool *over;
    atomic_ullong *removed; /* by all sweepers */
    unsigned number;
    bool good;
};

/* Some more as long as nothing was removed: else they never met. */
static bool race_goes_on(const struct race *r, unsigned done)
{
    return r->good &&
           (done < test_times(RACES) || (atomic_load(r->removed) == 0 && done < RACES_MAX));
}

static bool race_open(struct hf_scope *s, const struct race *r, struct hf_blobs **blobs)
{
    *blobs = NULL;
    return s && hf_blobs_open(s, hf_scope_format(s, "dir:%s", r->path),
                              HF_OPTIONS(hf_blobs_options, .no_sync = true), blobs) == HF_OK;
}

/* A blob of this thread's own becomes old, is put again, and is there then, whatever sweeps do. */
static void *race_put(void *user)
{
    struct race *r = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_blobs *blobs;

    r->good = race_open(s, r, &blobs);
    for (unsigned i = 0; race_goes_on(r, i); i++) {
        const struct timespec old = {.tv_sec = 1000};
        struct hf_str text = hf_scope_format(s, "racer %u", r->number);
        struct hf_str digest;
        struct hf_bytes found;

        r->good = hf_blob_put(s, blobs, hf_bytes_of(text.ptr, text.len), &digest) == HF_OK &&
                  hf_blob_get(s, blobs, digest, &found) == HF_OK;
        if (!r->good)
            print_error("put %u: %s\n", i, hf_scope_error_text(s));
        else
            utimensat(AT_FDCWD, help_place(s, r->path, digest),
                      (const struct timespec[2]){old, old}, 0);
        hf_scope_reset(s);
    }
    hf_blobs_close(blobs);
    hf_scope_free(s);
    return NULL;
}

static void *race_sweep(void *user)
{
    struct race *r = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_blobs *blobs;

    r->good = race_open(s, r, &blobs);
    while (r->good && !atomic_load(r->over)) {
        uint64_t removed;

        r->good = hf_blobs_sweep(s, blobs, 3600, help_none_used, NULL, &removed) == HF_OK;
        if (!r->good)
            print_error("sweep: %s\n", hf_scope_error_text(s));
        atomic_fetch_add(r->removed, removed);
        hf_scope_reset(s);
    }
    hf_blobs_close(blobs);
    hf_scope_free(s);
    return NULL;
}

TEST(blob_dir, a_sweep_loses_no_blob_that_is_put_again)
{
    struct hf_scope *s = hf_scope_new(NULL);
    const char *path = test_quick_directory(t);
    atomic_bool over = false;
    struct race races[PUTTERS + SWEEPERS];
    pthread_t threads[PUTTERS + SWEEPERS];
    atomic_ullong removed = 0;

    hf_blobs_close(help_open_dir(s, path));
    for (unsigned i = 0; i < PUTTERS + SWEEPERS; i++) {
        races[i] = (struct race){.path = path, .over = &over, .removed = &removed, .number = i};
        CHECK_INT(0, pthread_create(&threads[i], NULL, i < PUTTERS ? race_put : race_sweep,
                                    &races[i]));
    }
    for (unsigned i = 0; i < PUTTERS + SWEEPERS; i++) {
        if (i == PUTTERS)
            atomic_store(&over, true);
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < PUTTERS + SWEEPERS; i++)
        CHECK(races[i].good);
    CHECK(atomic_load(&removed) > 0);
    hf_scope_free(s);
}

/* A part is in the folder that was opened, whatever its path leads to by now. */
TEST(blob_dir, parts_are_found_after_chdir)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs, *part;
    struct hf_str digest;
    char before[4096];

    CHECK(getcwd(before, sizeof(before)) != NULL);
    CHECK_INT(0, chdir(path));
    blobs = help_open_dir(s, "blobs");
    CHECK_INT(0, mkdir("elsewhere", 0700));
    CHECK_INT(0, chdir("elsewhere"));
    CHECK_OK(hf_blobs_part(s, blobs, HF_STR("one"), &part));
    CHECK_OK(hf_blob_put(s, part, hf_bytes_of("abc", 3), &digest));
    CHECK_INT(0, chdir(before));
    CHECK_INT(1, help_files(hf_scope_format(s, "%s/blobs", path).ptr));
    CHECK_INT(0, help_files(hf_scope_format(s, "%s/elsewhere", path).ptr));
    hf_blobs_close(part);
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* "one" is the part whose folder has these digits of its hash. */
#define PART_ONE "part.7692c3ad3540bb803c020b3aee66cd88"

TEST(blob_dir, a_part_is_no_link)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path), *part;
    const char *place = hf_scope_format(s, "%s/" PART_ONE, path).ptr;

    CHECK_INT(0, mkdir(hf_scope_format(s, "%s/elsewhere", path).ptr, 0700));
    CHECK_INT(0, symlink("elsewhere", place));
    CHECK_STATUS(HF_CORRUPT, hf_blobs_part(s, blobs, HF_STR("one"), &part));
    CHECK(part == NULL);
    CHECK_INT(0, unlink(place));
    CHECK_OK(hf_blobs_part(s, blobs, HF_STR("one"), &part));
    CHECK_INT(0, access(place, F_OK)); /* it is the one that was meant */
    hf_blobs_close(part);
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

static enum hf_status cancel_list(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)blob;
    ++*(unsigned *)user;
    hf_scope_cancel(s);
    return HF_OK;
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(blob_dir, a_list_that_is_canceled_leaves_no_descriptor_open)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scope *canceled = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct hf_blobs *blobs = help_open_dir(s, path);
    unsigned listed = 0;
    unsigned before;

    put(s, blobs, "abc");
    put(s, blobs, "def");
    before = open_descriptors();
    CHECK_STATUS(HF_CANCELED, hf_blobs_list(canceled, blobs, cancel_list, &listed));
    CHECK_INT(1, listed);
    CHECK_INT(before, open_descriptors());
    hf_blobs_close(blobs);
    hf_scope_free(canceled);
    hf_scope_free(s);
}
