/*
 * store/modes_test.c: who may read what a store makes. Whatever the umask is and whatever the
 * directory was before, nobody but the owner gets to a file of it.
 */
#include "child.h"
#include "tree.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *root;
static unsigned seen, loose;

/* A file or folder is for its owner alone, or in a folder of ours that is. */
static int look(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    const char *below = path + strlen(root);
    bool shut = (info->st_mode & 077) == 0;

    (void)kind;
    if (where->level == 0)
        return 0; /* which was there before */
    seen++;
    if (shut || (where->level > 1 && strncmp(below, "/db/", 4) == 0))
        return 0;
    print_message("%s has mode %o\n", path, (unsigned)info->st_mode & 0777);
    loose++;
    return 0;
}

static void check_modes(const char *path)
{
    root = path;
    seen = loose = 0;
    CHECK(nftw(path, look, 16, FTW_PHYS) == 0);
    CHECK_INT(0, loose);
}

TEST(store_modes, a_directory_that_was_open_to_all)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    mode_t before = umask(0);
    struct hf__store *store;
    struct stat info;

    CHECK(chmod(path, 0755) == 0);
    for (uint32_t i = 0; i < 3; i++) { /* made, opened again, and as an older version left it */
        if (i == 2) {
            CHECK(chmod(in(s, path, "db"), 0755) == 0);
            CHECK(chmod(in(s, path, "journal"), 0755) == 0);
        }
        CHECK_OK(open_at(t, s, path, &store));
        CHECK_OK(write_items(s, store, 0, 1 + 500 * i, 500 + 500 * i, false));
        check_modes(path);
        hf__store_close(store);
        check_modes(path);
        CHECK(seen > 8);
    }
    /* The directory itself was somebody's before, and keeps its mode; a new one is the owner's. */
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0755);
    path = in(s, path, "new");
    CHECK_OK(open_at(t, s, path, &store));
    hf__store_close(store);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0700);
    check_modes(path);
    umask(before);
    hf_scope_free(s);
}
