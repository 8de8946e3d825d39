/*
 * blob/blob_dir_sweep.c: what sweeps do with a directory: listing; removing by way of the trash, from which a
 * blob goes back that turns out to be younger than it seemed; and what killed processes have left. (n) is an
 * invariant of blob_dir.c.
 */
#include "blob/blob_dir.h"

#include "base/kill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- listing -------------------------------------------------------------------------------- */

struct listing {
    hf_blob_list_fn *fn;
    void *user;
    char way[5]; /* names of the folders that were entered */
};

static bool is_two_digits(const char *name)
{
    return strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2;
}

static enum hf_status list_blob(struct hf_scope *s, struct dir *dir, int folder, const char *name,
                                void *user)
{
    struct listing *l = user;
    struct stat info;

    (void)dir;
    if (!hf__blob_is_digest(hf_str_from(name)) || memcmp(name, l->way, 4) != 0 ||
        fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode))
        return HF_OK; /* not ours, or removed a moment ago */
    return l->fn(s,
                 &(struct hf_blob_info){.digest = hf_str_from(name),
                                        .size = (uint64_t)info.st_size,
                                        .put_us = hf__blob_dir_time_us(&info)},
                 l->user);
}

/* Enter a folder with two digits, whose name is put at `at` of the way. */
static enum hf_status list_folder(struct hf_scope *s, struct dir *dir, int folder, const char *name,
                                  name_fn *fn, struct listing *l, size_t at)
{
    enum hf_status status;
    int fd;

    assert(at + 2 < sizeof(l->way));
    if (!is_two_digits(name))
        return HF_OK;
    memcpy(l->way + at, name, 2);
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
        return HF_OK;
    if (fd < 0)
        return hf__blob_dir_fail(s, dir, "open", name);
    status = hf__scope_alive(s);
    if (status == HF_OK)
        status = hf__blob_dir_each(s, dir, fd, fn, l);
    close(fd);
    return status;
}

static enum hf_status list_inner(struct hf_scope *s, struct dir *dir, int folder, const char *name,
                                 void *user)
{
    return list_folder(s, dir, folder, name, list_blob, user, 2);
}

static enum hf_status list_outer(struct hf_scope *s, struct dir *dir, int folder, const char *name,
                                 void *user)
{
    return list_folder(s, dir, folder, name, list_inner, user, 0);
}

enum hf_status hf__blob_dir_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                                 void *user)
{
    struct dir *dir = hf__blob_dir_of(blobs);
    struct listing l = {.fn = fn, .user = user};

    return hf__blob_dir_each(s, dir, dir->root, list_outer, &l);
}

/* ---- removing ------------------------------------------------------------------------------- */

/* Exclude other sweeps. -1: the file system has no such locks, and we go on without. */
static int lock_trash(const struct dir *dir)
{
    int fd = openat(dir->trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    while (fd >= 0 && flock(fd, LOCK_EX)) {
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    }
    return fd;
}

static void unlock_trash(int fd)
{
    if (fd < 0)
        return;
    flock(fd, LOCK_UN); /* a forked child may still hold the descriptor */
    close(fd);
}

/* Move a blob from the trash to its place, unless a new one is there. */
static enum hf_status move_back(struct hf_scope *s, struct dir *dir, int leaf, const char *name)
{
    assert(leaf >= 0 && dir->trash >= 0);
    if (linkat(dir->trash, name, leaf, name, 0) && errno != EEXIST &&
        renameat(dir->trash, name, leaf, name) && errno != ENOENT)
        return hf__blob_dir_fail(s, dir, "move back", name);
    unlinkat(dir->trash, name, 0);
    return hf__blob_dir_sync(s, dir, leaf, name);
}

enum hf_status hf__blob_dir_remove(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest)
{
    struct dir *dir = hf__blob_dir_of(blobs);
    char name[NAME_MAX_LEN];
    enum hf_status status = HF_OK;
    int leaf;

    hf__blob_dir_name(digest, name);
    TRY(hf__blob_dir_leaf(s, dir, digest, false, &leaf));
    if (unlinkat(dir->trash, name, 0) && errno != ENOENT)
        status = hf__blob_dir_fail(s, dir, "remove", name);
    if (status == HF_OK && leaf >= 0 && unlinkat(leaf, name, 0) && errno != ENOENT)
        status = hf__blob_dir_fail(s, dir, "remove", name);
    if (status == HF_OK && leaf >= 0)
        status = hf__blob_dir_sync(s, dir, leaf, name);
    if (leaf >= 0)
        close(leaf);
    return status;
}

static enum hf_status sweep_away(struct hf_scope *s, struct dir *dir, int leaf, const char *name,
                                 int64_t before_us, bool *removed)
{
    struct stat info;

    assert(leaf >= 0 && !*removed);
    if (fstatat(leaf, name, &info, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? HF_OK : hf__blob_dir_fail(s, dir, "look at", name);
    if (!S_ISREG(info.st_mode) || hf__blob_dir_time_us(&info) >= before_us)
        return HF_OK;
    if (renameat(leaf, name, dir->trash, name))
        return errno == ENOENT ? HF_OK : hf__blob_dir_fail(s, dir, "move to the trash", name);
    hf__kill_point("blob_trashed");
    if (fstatat(dir->trash, name, &info, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? HF_OK : hf__blob_dir_fail(s, dir, "look at", name);
    if (hf__blob_dir_time_us(&info) >= before_us)
        return move_back(s, dir, leaf, name);
    if (unlinkat(dir->trash, name, 0))
        return errno == ENOENT ? HF_OK : hf__blob_dir_fail(s, dir, "remove", name);
    *removed = true;
    return HF_OK;
}

enum hf_status hf__blob_dir_remove_old(struct hf_scope *s, struct hf_blobs *blobs,
                                       struct hf_str digest, int64_t before_us, bool *removed)
{
    struct dir *dir = hf__blob_dir_of(blobs);
    char name[NAME_MAX_LEN];
    enum hf_status status;
    int leaf, lock;

    hf__blob_dir_name(digest, name);
    TRY(hf__blob_dir_leaf(s, dir, digest, false, &leaf));
    if (leaf < 0)
        return HF_OK;
    lock = lock_trash(dir);
    status = sweep_away(s, dir, leaf, name, before_us, removed);
    unlock_trash(lock);
    close(leaf);
    return status;
}

/* (3) */
static enum hf_status recover_one(struct hf_scope *s, struct dir *dir, int folder, const char *name,
                                  void *user)
{
    enum hf_status status;
    int leaf;

    (void)folder;
    (void)user;
    if (!hf__blob_is_digest(hf_str_from(name)))
        return HF_OK;
    TRY(hf__blob_dir_leaf(s, dir, hf_str_from(name), true, &leaf));
    status = move_back(s, dir, leaf, name);
    close(leaf);
    return status;
}

enum hf_status hf__blob_dir_recover(struct hf_scope *s, struct dir *dir)
{
    int lock = lock_trash(dir);
    enum hf_status status = hf__blob_dir_each(s, dir, dir->trash, recover_one, NULL);

    unlock_trash(lock);
    return status;
}

/* (2): files of killed processes. A file that is being written gets newer with every write. */
static enum hf_status leftover_remove(struct hf_scope *s, struct dir *dir, int folder,
                                      const char *name, void *user)
{
    const int64_t *before_us = user;
    struct stat info;

    (void)s;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
        hf__blob_dir_time_us(&info) < *before_us && unlinkat(folder, name, 0) == 0)
        hf__env_log(&dir->blobs.env, HF_LOG_INFO, "blobs in %s: removed the unfinished file %s/%s",
                    dir->path, NEW_FOLDER, name);
    return HF_OK;
}

enum hf_status hf__blob_dir_leftovers(struct hf_scope *s, struct hf_blobs *blobs, int64_t before_us)
{
    struct dir *dir = hf__blob_dir_of(blobs);

    TRY(hf__blob_dir_recover(s, dir));
    return hf__blob_dir_each(s, dir, dir->new, leftover_remove, &before_us);
}
