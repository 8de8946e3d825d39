/*
 * store/media_test.c: tables that are cut, overwritten or cannot be read while a store has them
 * open. Reads say so and name the file, and the process goes on. It happens in a child, as what is
 * read through a mapping would end the process.
 */
#include "child.h"
#include "image.h"
#include "system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEDIA_ITEMS = 3000, MEDIA_CACHE = 64 * 1024, GARBAGE = 64 * 1024 };

static void damage_table(struct hf_scope *s, const char *dir, const char *name, void *user)
{
    const char *how = user;
    const char *path = in(s, dir, name);
    size_t len = strlen(name);
    struct stat info;
    int fd;

    if (len < 4 || strcmp(name + len - 4, ".sst") != 0)
        return;
    fd = open(path, O_RDWR);
    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    if (strcmp(how, "cut") == 0)
        CHECK(ftruncate(fd, info.st_size / 2) == 0);
    if (strcmp(how, "empty") == 0)
        CHECK(ftruncate(fd, 0) == 0);
    if (strcmp(how, "garbage") == 0) {
        static uint8_t bytes[GARBAGE];

        memset(bytes, 0xA5, sizeof(bytes));
        for (off_t at = 0; at + GARBAGE < info.st_size; at += GARBAGE)
            CHECK(pwrite(fd, bytes, sizeof(bytes), at) == GARBAGE);
    }
    close(fd);
}

/* The error of something that met the damage. */
static bool is_named(struct hf_scope *s, enum hf_status status)
{
    return (status == HF_CORRUPT || status == HF_IO) && strstr(hf_scope_error_text(s), ".sst");
}

/* Every item by itself: it is right, or an error that names the file. */
static bool read_each(struct hf_scope *s, struct hf__store *store, unsigned *failures)
{
    *failures = 0;
    for (uint32_t n = 1; n <= MEDIA_ITEMS; n++) {
        struct hf_str key = hf_scope_format(s, "item/0/%08u", n);
        struct hf_bytes value;
        enum hf_status status = hf__store_get(s, store, NULL, bytes_from(key.ptr), &value);

        if (status == HF_OK ? !value.ptr : !is_named(s, status)) {
            fprintf(stderr, "child: item %u: %s\n", n,
                    status ? hf_scope_error_text(s) : "it is not there");
            return false;
        }
        *failures += status != HF_OK;
        hf_scope_reset(s);
    }
    return true;
}

/* A walk over all of them ends with such an error, and not before. */
static bool walk_fails(struct hf_scope *s, struct hf__store *store, bool reverse, bool fill)
{
    const struct store_range all = {.reverse = reverse, .fill_cache = fill};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    enum hf_status status;
    bool found = true;

    if (hf__store_iter_open(s, store, NULL, &all, &iter) != HF_OK)
        return false;
    do {
        status = hf__store_iter_next(s, iter, &found, &key, &value);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    if (!is_named(s, status))
        fprintf(stderr, "child: a walk: %d %s\n", (int)status, hf_scope_error_text(s));
    return is_named(s, status);
}

/* More tables, so that a compaction meets it. Writes may stop, with the reason. */
static bool writes_end_well(struct hf_scope *s, struct hf__store *store)
{
    enum hf_status status = HF_OK;

    for (uint32_t n = 1; status == HF_OK && n <= MEDIA_ITEMS; n++)
        status = write_items(s, store, 1, n, n, false);
    if (status != HF_OK && (status != HF_STOPPED || !strstr(hf_scope_error_text(s), ".sst"))) {
        fprintf(stderr, "child: writes: %s\n", hf_scope_error_text(s));
        return false;
    }
    return true;
}

/* The arguments: a directory, what happens to its tables. */
CHILD(store_media)
{
    const struct store_options options = {.memtable_bytes = SMALL, .cache_bytes = MEDIA_CACHE};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__store *store;
    unsigned failures;
    bool good;

    if (hf__store_open_disk(s, NULL, hf_str_from(args[0]), &options, &store) != HF_OK ||
        write_items(s, store, 0, 1, MEDIA_ITEMS, false) != HF_OK)
        return CHILD_ERROR;
    hf__store_close(store);
    if (hf__store_open_disk(s, NULL, hf_str_from(args[0]), &options, &store) != HF_OK ||
        !read_each(s, store, &failures) || failures > 0)
        return CHILD_ERROR;
    if (strcmp(args[1], "eio") == 0) {
        atomic_store(&read_target, ".sst");
        atomic_store(&read_errno, EIO);
    } else {
        each_file(s, in(s, args[0], "db"), damage_table, args[1]);
    }
    good = read_each(s, store, &failures) && failures > 0 && walk_fails(s, store, false, true) &&
           walk_fails(s, store, false, false) && walk_fails(s, store, true, true) &&
           is_named(s, hf__store_verify(s, store, NULL)) && writes_end_well(s, store);
    hf__store_close(store);
    hf_scope_free(s);
    return good ? CHILD_OK : CHILD_WRONG;
}

/* P6: an error that names the file, and a process that lives. */
TEST(store_media, damage_under_an_open_store_is_an_error)
{
    static const char *const ways[] = {"cut", "empty", "garbage", "eio"};

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        int out, status;
        pid_t pid = test_child("store_media",
                               (const char *[]){test_quick_directory(t), ways[i], NULL}, &out);

        close(out);
        CHECK_INT(pid, waitpid(pid, &status, 0));
        if (!WIFEXITED(status))
            fail_msg("%s ended the process", ways[i]);
        CHECK_INT(CHILD_OK, WEXITSTATUS(status));
    }
}
