/*
 * store/golden_test.c: directories that older versions made, below golden/; script/golden says how.
 * Each opens, holds what was put into it, and is of this format then (P16). What is damaged in one
 * is refused before anything is changed, and so is a format that we do not know.
 */
#include "child.h"
#include "golden.h"
#include "power.h"
#include "system.h"
#include "tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { FORMATS = 3, GOLDENS = 2 * FORMATS };

static const char *const golden_names[GOLDENS] = {"format-1-closed", "format-1-killed",
                                                  "format-2-closed", "format-2-killed",
                                                  "format-3-closed", "format-3-killed"};

/* What all of them hold. */
static uint64_t golden_digest(struct test *t, struct hf_scope *s)
{
    struct hf__store *store;
    uint64_t digest;

    CHECK_OK(hf__store_open_memory(s, test_env(t), &store));
    for (unsigned n = 1; n <= GOLDEN_BATCHES; n++)
        CHECK_OK(golden_write(s, store, n));
    CHECK(store_digest(s, store, &digest));
    hf__store_close(store);
    return digest;
}

/* The golden directory of that number, read; its journal is there even if it has no files. */
static void golden_read(struct hf_scope *s, int i, struct tree *tree)
{
    tree_read(s, in(s, GOLDEN_DIR, golden_names[i]), tree);
    CHECK(tree->len > 4);
}

static void check_format(struct hf_scope *s, const char *path)
{
    size_t len;
    uint8_t *format = read_file(in(s, path, "HOLDFAST"), &len);

    CHECK(len == 24 && memcmp(format, "holdfast store format 3\n", 24) == 0);
    free(format);
}

static void check_content(struct test *t, struct hf_scope *s, const char *path, const char *what)
{
    uint64_t want = golden_digest(t, s), digest;
    struct hf__store *store;

    if (open_at(t, s, path, &store) != HF_OK)
        fail_msg("%s: %s", what, hf_scope_error_text(s));
    CHECK(store_digest(s, store, &digest));
    if (digest != want)
        fail_msg("%s holds something else", what);
    CHECK_OK(hf__store_verify(s, store, NULL));
    hf__store_close(store);
    check_format(s, path);
}

TEST(store_golden, a_directory_of_every_format_opens)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);

    for (int i = 0; i < GOLDENS; i++) {
        struct hf__store *store;
        struct tree tree;

        golden_read(s, i, &tree);
        tree_write(s, &tree, path);
        check_content(t, s, path, golden_names[i]);
        check_content(t, s, path, "opened again");
        CHECK_OK(open_at(t, s, path, &store)); /* and goes on */
        CHECK_OK(write_items(s, store, 0, 1, 5, true));
        hf__store_close(store);
        tree_free(&tree);
    }
    hf_scope_free(s);
}

TEST(store_golden, a_newer_format_is_refused_and_stays)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);

    for (int i = 0; i < GOLDENS; i++) {
        struct hf__store *store;
        struct tree tree;
        struct tree_file *format;

        golden_read(s, i, &tree);
        format = (struct tree_file *)(uintptr_t)tree_find(&tree, "HOLDFAST");
        format->bytes[format->len - 2] = '4';
        tree_write(s, &tree, path);
        CHECK_STATUS(HF_FORMAT, open_at(t, s, path, &store));
        CHECK_STR(hf_scope_format(
                      s, "The store in %s has format 4; this version supports formats up to 3",
                      path)
                      .ptr,
                  hf_scope_error(s)->message);
        CHECK(!tree_difference(s, &tree, path));
        tree_free(&tree);
    }
    hf_scope_free(s);
}

/* Every cut and every flipped bit of the manifest of an older format: its record does not know it.
 */
TEST(store_golden, a_damaged_manifest_of_an_older_format)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    uint64_t want = golden_digest(t, s);

    power_skip_syncs(true);
    for (int i = 0; i < 4; i++) {
        struct tree tree;
        struct tree_file *manifest;
        unsigned tried = 0, refused = 0;
        uint8_t *bytes;
        size_t len;

        golden_read(s, i, &tree);
        manifest = (struct tree_file *)(uintptr_t)tree_find(&tree, "db/MANIFEST");
        bytes = manifest->bytes;
        len = manifest->len;
        for (size_t at = 0; at < 9 * len; at++) {
            struct hf__mark mark = hf__scope_mark(s);
            struct hf__store *store;
            uint64_t digest;

            if (!test_one_in(t, at < len ? 1 : 50)) /* cuts all, of flips a part */
                continue;
            tried++;
            if (at < len)
                manifest->len = at;
            else
                bytes[(at - len) / 8] ^= (uint8_t)(1 << at % 8);
            tree_write(s, &tree, path);
            if (open_at(t, s, path, &store) == HF_OK) {
                CHECK(store_digest(s, store, &digest));
                if (digest != want)
                    fail_msg("%s, manifest damaged at %zu: other items", golden_names[i], at);
                hf__store_close(store);
            } else {
                const char *different = tree_difference(s, &tree, path);

                CHECK_INT(HF_CORRUPT, hf_scope_error(s)->status);
                if (different)
                    fail_msg("%s, manifest damaged at %zu: %s has changed", golden_names[i], at,
                             different);
                refused++;
            }
            manifest->len = len;
            if (at >= len)
                bytes[(at - len) / 8] ^= (uint8_t)(1 << at % 8);
            hf__scope_rewind(s, mark);
        }
        CHECK(refused > tried / 2);
        tree_free(&tree);
    }
    power_skip_syncs(false);
    hf_scope_free(s);
}

/* An upgrade whose writes fail is made by the next open, too: also if it was the table of what the
 * older journal has. */
TEST(store_golden, an_upgrade_fails)
{
    static const char *const targets[] = {".sst", "/MANIFEST", "/journal/", "/durable",
                                          "/HOLDFAST"};
    static const int errors[] = {EIO, ENOSPC, EMFILE};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    unsigned failed = 0;

    for (size_t i = 0; i < 4 * ARRAY_LEN(targets) * ARRAY_LEN(errors); i++) {
        const char *target = targets[i / 4 % ARRAY_LEN(targets)];
        struct hf__store *store;
        struct tree tree;

        golden_read(s, (int)(i % 4), &tree);
        tree_write(s, &tree, path);
        atomic_store(&write_target, target);
        atomic_store(&write_errno, errors[i / 4 / ARRAY_LEN(targets)]);
        if (open_at(t, s, path, &store) == HF_OK)
            hf__store_close(store);
        else
            failed++;
        atomic_store(&write_errno, 0);
        atomic_store(&write_target, NULL);
        check_content(t, s, path, target);
        tree_free(&tree);
    }
    CHECK(failed >= 2 * ARRAY_LEN(targets) * ARRAY_LEN(errors));
    hf_scope_free(s);
}

#ifdef HF_KILL_POINTS
/* An upgrade that is killed at any point is made by the next open. */
TEST(store_golden, an_upgrade_is_killed)
{
    static const char *const points[] = {"journal_segment:1",  "table_begun:1",
                                         "table_written:1",    "before_first_note:1",
                                         "after_first_note:1", "after_format_file:1",
                                         "before_seal:1",      "after_seal:1"};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);

    for (size_t i = 0; i < 4 * ARRAY_LEN(points); i++) {
        const char *point = points[i / 4];
        struct acked acked = {{0}};
        struct tree tree;
        int out, status;

        golden_read(s, (int)(i % 4), &tree);
        tree_write(s, &tree, path);
        for (int again = 0; again < 2; again++) {
            pid_t pid = child_start("open", path, 0, 0, point, &out);

            status = child_wait(pid, out, &acked);
            if (again == 0 && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
                fail_msg("%s was not passed", point);
        }
        check_content(t, s, path, point);
        tree_free(&tree);
    }
    hf_scope_free(s);
}
#endif
