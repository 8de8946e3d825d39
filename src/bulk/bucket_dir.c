/*
 * bulk/bucket_dir.c: a bucket as a folder, objects as files in it; a slash in a key is a folder.
 *
 * What always holds:
 *
 *  (1) Nothing outside of the folder is read or written, whatever a key says: no part of a key between
 *      slashes is empty, "." or "..", and no symbolic link is followed below the folder of the bucket.
 *  (2) A file is written under another name, synced and renamed, so it is there whole or not at all.
 *      Such names, and what is no plain file, are in no list.
 */
#include "bulk/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, FILE_MODE = 0600, FOLDER_MODE = 0700 };

static const char part_end[] = ".hf-part"; /* of a file that is being written */

struct dir_bucket {
    struct bucket bucket;
    int fd;
    struct hf_scope *memory;
    struct hf_str path; /* for messages */
};

static enum hf_status fail_errno(struct hf_scope *s, const struct dir_bucket *dir,
                                 struct hf_str key, int error)
{
    enum hf_status status = error == ENOENT                      ? HF_NOT_FOUND
                            : error == EACCES || error == EPERM  ? HF_DENIED
                            : error == ENOSPC || error == EDQUOT ? HF_NO_SPACE
                            : error == ELOOP || error == ENOTDIR ? HF_DENIED
                                                                 : HF_IO;

    return hf__fail(s, status, "%.*s/%.*s: %s", HF_FMT(dir->path), HF_FMT(key), strerror(error));
}

/* ---- keys ----------------------------------------------------------------------------------- */

static bool is_part(struct hf_str part)
{
    return part.len > 0 && part.len <= NAME_MAX && !str_is(part, ".") && !str_is(part, "..") &&
           !memchr(part.ptr, '\0', part.len);
}

/* (1) */
static bool is_key(struct hf_str key)
{
    struct hf_str rest = key;
    int depth = 0;

    if (!key.len || key.ptr[key.len - 1] == '/')
        return false;
    while (rest.len)
        if (!is_part(str_cut(&rest, '/')) || ++depth > DEPTH_MAX)
            return false;
    return true;
}

/*
 * The folder that a key's file is in, opened part by part; made, if `make`. *name is the last part, in
 * the scope, with a NUL. The caller closes *fd.
 */
static enum hf_status parent_open(struct hf_scope *s, const struct dir_bucket *dir,
                                  struct hf_str key, bool make, int *fd, struct hf_str *name)
{
    struct hf_str rest = key;
    int at = dup(dir->fd);

    *fd = -1;
    if (at < 0)
        return fail_errno(s, dir, key, errno);
    for (;;) {
        struct hf_str part = hf_scope_copy(s, str_cut(&rest, '/'));
        int error, next;

        if (!part.ptr) {
            close(at);
            return hf__fail_nomem(s);
        }
        if (!rest.len) {
            *name = part;
            *fd = at;
            return HF_OK;
        }
        if (make && mkdirat(at, part.ptr, FOLDER_MODE) == 0)
            (void)fsync(at);
        next = openat(at, part.ptr, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        error = errno;
        close(at);
        if (next < 0)
            return fail_errno(s, dir, key, error);
        at = next;
    }
}

static enum hf_status bad_key(struct hf_scope *s, struct hf_str key)
{
    return hf__fail(s, HF_DENIED,
                    "\"%.*s\" is no key of a file: no part between slashes may be empty, \".\" or "
                    "\"..\"",
                    HF_FMT(key));
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct listing {
    struct hf_scope *s;
    const struct dir_bucket *dir;
    struct hf_str prefix;
    struct bucket_list *list;
    size_t cap;
};

static bool begins_with(struct hf_str text, struct hf_str prefix)
{
    return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

static bool is_unfinished(struct hf_str name)
{
    size_t len = sizeof(part_end) - 1;

    return name.len > len && memcmp(name.ptr + name.len - len, part_end, len) == 0;
}

static enum hf_status folder_list(struct listing *l, int fd, struct hf_str above, int depth);

static enum hf_status entry_list(struct listing *l, int fd, struct hf_str above, const char *name,
                                 int depth)
{
    struct hf_str key =
        hf_scope_format(l->s, "%.*s%s%s", HF_FMT(above), above.len ? "/" : "", name);
    struct hf_str folder;
    struct stat about;
    int inner;

    if (!key.ptr)
        return hf__fail_nomem(l->s);
    if (fstatat(fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? HF_OK : fail_errno(l->s, l->dir, key, errno);
    if (S_ISREG(about.st_mode))
        return begins_with(key, l->prefix) && !is_unfinished(key)
                   ? hf__bulk_bucket_list_add(l->s, l->list, &l->cap, key, (uint64_t)about.st_size)
                   : HF_OK;
    folder = hf_scope_format(l->s, "%.*s/", HF_FMT(key));
    if (!folder.ptr)
        return hf__fail_nomem(l->s);
    if (!S_ISDIR(about.st_mode) || depth >= DEPTH_MAX ||
        (!begins_with(folder, l->prefix) && !begins_with(l->prefix, folder)))
        return HF_OK;
    inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return errno == ENOENT ? HF_OK : fail_errno(l->s, l->dir, key, errno);
    return folder_list(l, inner, key, depth + 1);
}

/* Closes `fd`. */
static enum hf_status folder_list(struct listing *l, int fd, struct hf_str above, int depth)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    enum hf_status status = HF_OK;

    if (!folder) {
        int error = errno;

        close(fd);
        return fail_errno(l->s, l->dir, above, error);
    }
    while (status == HF_OK && (entry = readdir(folder)) != NULL) {
        struct hf_str name = hf_str_from(entry->d_name);

        if (str_is(name, ".") || str_is(name, ".."))
            continue;
        status = hf__scope_alive(l->s);
        if (status == HF_OK)
            status = entry_list(l, dirfd(folder), above, entry->d_name, depth);
    }
    closedir(folder);
    return status;
}

static enum hf_status dir_list(struct hf_scope *s, struct bucket *bucket, struct hf_str prefix,
                               struct bucket_list *list)
{
    const struct dir_bucket *dir = (struct dir_bucket *)(void *)bucket;
    struct listing l = {.s = s, .dir = dir, .prefix = prefix, .list = list};
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a place of its own */

    if (fd < 0)
        return fail_errno(s, dir, prefix, errno);
    return folder_list(&l, fd, (struct hf_str){NULL, 0}, 0);
}

/* ---- reading and writing -------------------------------------------------------------------- */

static enum hf_status read_all(struct hf_scope *s, const struct dir_bucket *dir, int fd,
                               struct hf_str key, uint64_t from, size_t len, struct hf_bytes *bytes)
{
    uint8_t *room = hf_scope_alloc(s, len);
    size_t got = 0;

    if (!room)
        return hf__fail_nomem(s);
    while (got < len) {
        ssize_t done = pread(fd, room + got, len - got, (off_t)(from + got));

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno(s, dir, key, errno);
        if (done == 0)
            break;
        got += (size_t)done;
    }
    *bytes = hf_bytes_of(room, got);
    return HF_OK;
}

static enum hf_status dir_read(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                               uint64_t from, size_t len, struct hf_bytes *bytes)
{
    const struct dir_bucket *dir = (struct dir_bucket *)(void *)bucket;
    struct hf_str name;
    enum hf_status status;
    int parent, fd, error;

    if (!is_key(key))
        return bad_key(s, key);
    TRY(parent_open(s, dir, key, false, &parent, &name));
    fd = openat(parent, name.ptr, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    error = errno;
    close(parent);
    if (fd < 0)
        return fail_errno(s, dir, key, error);
    status = read_all(s, dir, fd, key, from, len, bytes);
    close(fd);
    return status;
}

static bool write_all(int fd, struct hf_bytes bytes)
{
    size_t done = 0;

    while (done < bytes.len) {
        ssize_t wrote = write(fd, bytes.ptr + done, bytes.len - done);

        if (wrote < 0 && errno != EINTR)
            return false;
        if (wrote > 0)
            done += (size_t)wrote;
    }
    return true;
}

/* (2) */
static enum hf_status file_put(struct hf_scope *s, const struct dir_bucket *dir, int parent,
                               struct hf_str key, struct hf_str name, struct hf_bytes bytes)
{
    struct hf_str part = hf_scope_format(s, "%.*s%s", HF_FMT(name), part_end);
    int error = 0;
    int fd;

    if (!part.ptr)
        return hf__fail_nomem(s);
    fd = openat(parent, part.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return fail_errno(s, dir, key, errno);
    if (!write_all(fd, bytes) || fsync(fd) != 0)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && renameat(parent, part.ptr, parent, name.ptr) != 0)
        error = errno;
    if (!error && fsync(parent) != 0)
        error = errno;
    if (!error)
        return HF_OK;
    (void)unlinkat(parent, part.ptr, 0);
    return fail_errno(s, dir, key, error);
}

static enum hf_status dir_put(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                              struct hf_bytes bytes)
{
    const struct dir_bucket *dir = (struct dir_bucket *)(void *)bucket;
    struct hf_str name;
    enum hf_status status;
    int parent;

    if (!is_key(key))
        return bad_key(s, key);
    TRY(parent_open(s, dir, key, true, &parent, &name));
    status = file_put(s, dir, parent, key, name, bytes);
    close(parent);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void dir_close(struct bucket *bucket)
{
    struct dir_bucket *dir = (struct dir_bucket *)(void *)bucket;
    struct hf_env env = bucket->env;

    if (dir->fd >= 0)
        close(dir->fd);
    hf_scope_free(dir->memory);
    hf__env_free(&env, dir, sizeof(*dir));
}

static const struct bucket_kind dir_kind = {
    .list = dir_list,
    .read = dir_read,
    .put = dir_put,
    .close = dir_close,
};

enum hf_status hf__bulk_bucket_dir_open(struct hf_scope *s, const struct hf_env *env,
                                        struct hf_str path, struct hf_str name,
                                        struct bucket **bucket)
{
    struct hf_env whole = hf__env_fill(env);
    struct dir_bucket *dir = hf__env_zalloc(&whole, sizeof(*dir));
    int error;

    if (!dir)
        return hf__fail_nomem(s);
    dir->bucket = (struct bucket){.kind = &dir_kind, .env = whole};
    dir->fd = -1;
    dir->memory = hf_scope_new(&whole);
    if (dir->memory)
        dir->path = hf_scope_format(dir->memory, "%.*s/%.*s", HF_FMT(path), HF_FMT(name));
    if (!dir->path.ptr) {
        dir_close(&dir->bucket);
        return hf__fail_nomem(s);
    }
    if (is_part(name) && !memchr(name.ptr, '/', name.len))
        dir->fd = open(dir->path.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else
        errno = ENOENT;
    error = errno;
    if (dir->fd >= 0) {
        *bucket = &dir->bucket;
        return HF_OK;
    }
    if (error == ENOENT)
        hf__fail(s, HF_NOT_FOUND, "The specified bucket does not exist: there is no folder %.*s",
                 HF_FMT(dir->path));
    else
        (void)fail_errno(s, dir, HF_STR(""), error);
    dir_close(&dir->bucket);
    return hf_scope_error(s)->status;
}
