/*
 * blob/blob_dir.c: blobs as files.
 *
 *     PATH/FORMAT              "holdfast blobs format 1"
 *     PATH/ab/cd/abcd...       a blob: its name is its digest, its time when it was put last
 *     PATH/new/RANDOM          one that is being written
 *     PATH/trash/abcd...       one that a sweep is about to remove
 *     PATH/part.DIGITS/        a part: a folder of blobs like this one
 *
 * Files are for their owner alone (0600, folders 0700). PATH itself may be a link; below it links
 * are never followed, and what is neither a file nor a folder of ours is not read. Times are those
 * of the env, set by us: a file server has a clock of its own.
 *
 * Any number of processes use a folder. A put writes to new/, syncs, renames, and syncs the
 * folders. One that finds the blob there compares it and renews its time, and then looks whether it
 * is still there. A sweep moves a blob to the trash, looks at its time once more, and moves it back
 * when it is new. So of a put and a sweep that meet, at least one sees the other:
 *
 *     put renews the time before the sweep looks:   the sweep moves it back
 *     put renews it after that:                     put finds it gone, and writes it
 *
 * Meanwhile the blob is in the trash, where readers look, too. Sweeps exclude each other by flock()
 * on the trash, as one must not remove what another one moved there.
 *
 * What always holds:
 *
 *  (1) A file by the name of a digest was complete and synced before it had that name.
 *  (2) A put that failed leaves nothing behind but, when the process dies, a file in new/, which a
 *      later sweep removes.
 *  (3) What is in the trash when no sweep runs was left by a killed process. The next open or sweep
 *      of the store moves it back, and it can be read all the time.
 *  (4) Before a put returns, all folders on the way to the blob are durable: those of other
 *      processes, too, which may have ended before they synced them.
 */
#include "blob/blob_dir.h"

#include "base/kill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FORMAT_FILE "FORMAT"
#define FORMAT_TEXT "holdfast blobs format "

enum {
    FORMAT = 1,
    MODE_FOLDER = 0700,
    MODE_FILE = 0600,
    CHUNK = 1024 * 1024, /* bytes between two checks of the deadline */
    COMPARE = 64 * 1024,
    TEMP_LEN = 32, /* digits of a name in new/ */
    LOOKS = 3,     /* times that place and trash are searched before a blob counts as missing */
    ERROR_TEXT_MAX = 128
};

_Static_assert(offsetof(struct dir, blobs) == 0, "a store begins with what all stores have");
_Static_assert(LEAVES == 1 << 16 && LEAVES % CHAR_BIT == 0, "a leaf is four hexadecimal digits");
_Static_assert(TEMP_LEN == 32, "two numbers of 64 bits in hexadecimal");

enum hf_status hf__blob_dir_fail(struct hf_scope *s, const struct dir *dir, const char *what,
                                 const char *name)
{
    int error = errno;
    char room[ERROR_TEXT_MAX];
    const char *text = strerror_r(error, room, sizeof(room));
    enum hf_status status = error == ENOSPC || error == EDQUOT  ? HF_NO_SPACE
                            : error == EACCES || error == EPERM ? HF_DENIED
                                                                : HF_IO;

    if (error == ENOMEM)
        return hf__fail_nomem(s);
    return hf__fail(s, status, "cannot %s %s%s%s: %s", what, dir->path, *name ? "/" : "", name,
                    text);
}

enum hf_status hf__blob_dir_sync(struct hf_scope *s, const struct dir *dir, int fd,
                                 const char *name)
{
    if (dir->no_sync || fsync(fd) == 0 || errno == EINVAL) /* EINVAL: a file system without syncs */
        return HF_OK;
    return hf__blob_dir_fail(s, dir, "sync", name);
}

int64_t hf__blob_dir_time_us(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000 + info->st_mtim.tv_nsec / 1000;
}

static int set_time(int fd, int64_t us)
{
    const struct timespec at = {.tv_sec = (time_t)(us / 1000000),
                                .tv_nsec = (long)(us % 1000000) * 1000};

    return futimens(fd, (const struct timespec[2]){at, at});
}

/* ---- folders -------------------------------------------------------------------------------- */

/* Open a folder in a folder. *fd is -1, and HF_OK, when it does not exist and `make` is not set. */
static enum hf_status open_folder(struct hf_scope *s, const struct dir *dir, int in,
                                  const char *name, bool make, bool *made, int *fd)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    *fd = openat(in, name, how);
    if (*fd < 0 && errno == ENOENT && make) {
        if (mkdirat(in, name, MODE_FOLDER) == 0)
            *made = true;
        else if (errno != EEXIST)
            return hf__blob_dir_fail(s, dir, "create", name);
        *fd = openat(in, name, how);
    }
    if (*fd >= 0 || (errno == ENOENT && !make))
        return HF_OK;
    if (errno == ENOTDIR || errno == ELOOP)
        return hf__fail(s, HF_CORRUPT, "%s contains \"%s\", which is not a directory", dir->path,
                        name);
    return hf__blob_dir_fail(s, dir, "open", name);
}

static bool is_known_durable(struct dir *dir, size_t leaf)
{
    return atomic_load(&dir->known_durable[leaf / CHAR_BIT]) >> leaf % CHAR_BIT & 1;
}

enum hf_status hf__blob_dir_leaf(struct hf_scope *s, struct dir *dir, struct hf_str digest,
                                 bool make, int *fd)
{
    const char outer[] = {digest.ptr[0], digest.ptr[1], '\0'};
    const char inner[] = {digest.ptr[2], digest.ptr[3], '\0'};
    size_t leaf = 0;
    bool made = false;
    int on_the_way;
    enum hf_status status;

    assert(hf__blob_is_digest(digest));
    *fd = -1;
    for (size_t i = 0; i < 4; i++)
        leaf = leaf << 4 | (size_t)hex_digit(digest.ptr[i]);
    assert(leaf < LEAVES);
    TRY(open_folder(s, dir, dir->root, outer, make, &made, &on_the_way));
    if (on_the_way < 0)
        return HF_OK;
    status = open_folder(s, dir, on_the_way, inner, make, &made, fd);
    if (status == HF_OK && make && (made || !is_known_durable(dir, leaf))) { /* (4) */
        status = hf__blob_dir_sync(s, dir, on_the_way, outer);
        if (status == HF_OK)
            status = hf__blob_dir_sync(s, dir, dir->root, "");
        if (status == HF_OK)
            atomic_fetch_or(&dir->known_durable[leaf / CHAR_BIT],
                            (unsigned char)(1u << leaf % CHAR_BIT));
    }
    close(on_the_way);
    if (status != HF_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    assert(status != HF_OK || !make || *fd >= 0);
    return status;
}

enum hf_status hf__blob_dir_each(struct hf_scope *s, struct dir *dir, int folder, name_fn *fn,
                                 void *user)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    enum hf_status status = HF_OK;
    struct dirent *entry;

    if (!listing) {
        status = hf__blob_dir_fail(s, dir, "list", "");
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == HF_OK) {
        errno = 0;
        entry = readdir(listing);
        if (!entry && errno)
            status = hf__blob_dir_fail(s, dir, "list", "");
        if (!entry)
            break;
        if (entry->d_name[0] != '.')
            status = fn(s, dir, folder, entry->d_name, user);
    }
    closedir(listing);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static enum hf_status write_all(struct hf_scope *s, const struct dir *dir, int fd,
                                struct hf_bytes bytes, const char *name)
{
    size_t at = 0;

    while (at < bytes.len) {
        size_t some = bytes.len - at < CHUNK ? bytes.len - at : CHUNK;
        ssize_t done = write(fd, bytes.ptr + at, some);

        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = ENOSPC; /* a write of 0 bytes means that */
        if (done <= 0)
            return hf__blob_dir_fail(s, dir, "write", name);
        at += (size_t)done;
        if (at < bytes.len)
            TRY(hf__scope_alive(s));
    }
    assert(at == bytes.len);
    return HF_OK;
}

static enum hf_status fill_temp(struct hf_scope *s, struct dir *dir, int fd, struct hf_bytes bytes,
                                const char *name)
{
    if (fchmod(fd, MODE_FILE)) /* whatever the umask says */
        return hf__blob_dir_fail(s, dir, "protect", name);
    TRY(write_all(s, dir, fd, bytes, name));
    hf__kill_point("blob_written");
    if (set_time(fd, hf__env_wall_us(&dir->blobs.env)))
        return hf__blob_dir_fail(s, dir, "set the time of", name);
    if (!dir->no_sync && fsync(fd))
        return hf__blob_dir_fail(s, dir, "sync", name);
    hf__kill_point("blob_synced");
    return HF_OK;
}

/* Leave the reserve free: a full disk is worse for others, such as the database, than for us. */
static enum hf_status check_room(struct hf_scope *s, const struct dir *dir, size_t len)
{
    struct statvfs info;
    uint64_t room;

    if (dir->reserve == 0 || fstatvfs(dir->root, &info))
        return HF_OK;
    room = (uint64_t)info.f_bavail * info.f_frsize;
    if (room >= dir->reserve && room - dir->reserve >= len)
        return HF_OK;
    return hf__fail(
        s, HF_NO_SPACE,
        "no space for a blob of %zu bytes: the disk of %s has %llu bytes free, and %llu are "
        "reserved",
        len, dir->path, (unsigned long long)room, (unsigned long long)dir->reserve);
}

/* (1) (2) */
static enum hf_status write_new(struct hf_scope *s, struct dir *dir, int leaf, const char *name,
                                struct hf_bytes bytes)
{
    char temp[TEMP_LEN + 1];
    uint64_t bits[2];
    enum hf_status status;
    int fd;

    assert(leaf >= 0 && dir->new >= 0);
    TRY(check_room(s, dir, bytes.len));
    hf__env_random(&dir->blobs.env, bits, sizeof(bits));
    snprintf(temp, sizeof(temp), "%016llx%016llx", (unsigned long long)bits[0],
             (unsigned long long)bits[1]);
    assert(strlen(temp) == TEMP_LEN);
    fd = openat(dir->new, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE_FILE);
    if (fd < 0)
        return hf__blob_dir_fail(s, dir, "create a file in", NEW_FOLDER);
    hf__kill_point("blob_made");
    status = fill_temp(s, dir, fd, bytes, name);
    if (close(fd) && status == HF_OK) /* a file server may report a full disk here */
        status = hf__blob_dir_fail(s, dir, "write", name);
    if (status == HF_OK && renameat(dir->new, temp, leaf, name))
        status = hf__blob_dir_fail(s, dir, "create", name);
    if (status != HF_OK) {
        unlinkat(dir->new, temp, 0);
        return status;
    }
    hf__kill_point("blob_renamed");
    status = hf__blob_dir_sync(s, dir, leaf, name);
    return status == HF_OK ? HF_OK : hf_scope_doubt(s);
}

/* Has the file these bytes? */
static bool is_same(int fd, struct hf_bytes bytes)
{
    uint8_t chunk[COMPARE];
    struct stat info;
    size_t at = 0;

    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || (uint64_t)info.st_size != bytes.len)
        return false;
    while (at < bytes.len) {
        size_t some = bytes.len - at < sizeof(chunk) ? bytes.len - at : sizeof(chunk);
        ssize_t len = read(fd, chunk, some);

        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0 || memcmp(chunk, bytes.ptr + at, (size_t)len) != 0)
            return false;
        at += (size_t)len;
    }
    return true;
}

/* Renew the time of a blob that exists. *there is false when the blob has to be written: it does
 * not exist, is damaged, or belongs to another user. */
static enum hf_status blob_renew(struct hf_scope *s, struct dir *dir, int leaf, const char *name,
                                 struct hf_bytes bytes, bool *there)
{
    int fd = openat(leaf, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum hf_status status = HF_OK;
    struct stat opened, named;

    *there = false;
    if (fd < 0)
        return HF_OK;
    if (!is_same(fd, bytes)) {
        hf__env_log(&dir->blobs.env, HF_LOG_WARNING,
                    "blobs in %s: %s was damaged and is being rewritten", dir->path, name);
    } else if (set_time(fd, hf__env_wall_us(&dir->blobs.env)) == 0 &&
               (dir->no_sync || fsync(fd) == 0)) {
        hf__kill_point("blob_renewed");
        status =
            hf__blob_dir_sync(s, dir, leaf, name); /* the process that renamed it may not have */
        *there = status == HF_OK && fstat(fd, &opened) == 0 &&
                 fstatat(leaf, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                 opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
    }
    close(fd);
    return status;
}

void hf__blob_dir_name(struct hf_str digest, char name[NAME_MAX_LEN])
{
    assert(digest.len == HF_BLOB_DIGEST_LEN);
    memcpy(name, digest.ptr, HF_BLOB_DIGEST_LEN);
    name[HF_BLOB_DIGEST_LEN] = '\0';
}

static enum hf_status dir_put(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                              struct hf_bytes bytes)
{
    struct dir *dir = hf__blob_dir_of(blobs);
    char name[NAME_MAX_LEN];
    enum hf_status status;
    bool there;
    int leaf;

    hf__blob_dir_name(digest, name);
    TRY(hf__blob_dir_leaf(s, dir, digest, true, &leaf));
    status = blob_renew(s, dir, leaf, name, bytes, &there);
    if (status == HF_OK && !there)
        status = write_new(s, dir, leaf, name, bytes);
    close(leaf);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Open a blob in its place, or in the trash, where a sweep may have it for a moment. *fd is -1, and
 * HF_OK, when there is none. */
static enum hf_status open_blob(struct hf_scope *s, struct dir *dir, struct hf_str digest, int *fd,
                                struct stat *info)
{
    const int how = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    char name[NAME_MAX_LEN];
    int leaf;

    hf__blob_dir_name(digest, name);
    *fd = -1;
    for (int look = 0; look < LOOKS && *fd < 0; look++) {
        TRY(hf__blob_dir_leaf(s, dir, digest, false, &leaf));
        errno = ENOENT;
        if (leaf >= 0) {
            int error;

            *fd = openat(leaf, name, how);
            error = errno;
            close(leaf);
            errno = error;
        }
        if (*fd < 0 && errno == ENOENT)
            *fd = openat(dir->trash, name, how);
        if (*fd < 0 && errno == ELOOP)
            return hf__fail(s, HF_CORRUPT, "%s in %s is a symbolic link, not a blob", name,
                            dir->path);
        if (*fd < 0 && errno != ENOENT)
            return hf__blob_dir_fail(s, dir, "open", name);
    }
    if (*fd < 0)
        return HF_OK;
    if (fstat(*fd, info) == 0 && S_ISREG(info->st_mode))
        return HF_OK;
    close(*fd);
    *fd = -1;
    return hf__fail(s, HF_CORRUPT, "%s in %s is not a regular file", name, dir->path);
}

static enum hf_status read_all(struct hf_scope *s, const struct dir *dir, int fd, size_t size,
                               const char *name, struct hf_bytes *bytes)
{
    uint8_t *copy = hf_scope_alloc(s, size ? size : 1);
    size_t at = 0;

    if (!copy)
        return hf__fail_nomem(s);
    while (at < size) {
        size_t some = size - at < CHUNK ? size - at : CHUNK;
        ssize_t len = read(fd, copy + at, some);

        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return hf__blob_dir_fail(s, dir, "read", name);
        if (len == 0) /* truncated while it is read: its digest will not match */
            break;
        at += (size_t)len;
        if (at < size)
            TRY(hf__scope_alive(s));
    }
    *bytes = hf_bytes_of(copy, at);
    return HF_OK;
}

static enum hf_status dir_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                              struct hf_bytes *bytes)
{
    struct dir *dir = hf__blob_dir_of(blobs);
    char name[NAME_MAX_LEN];
    enum hf_status status;
    struct stat info;
    int fd;

    hf__blob_dir_name(digest, name);
    TRY(open_blob(s, dir, digest, &fd, &info));
    if (fd < 0)
        return hf__blob_missing(s, digest);
    if ((uint64_t)info.st_size > blobs->max) /* allocate nothing for what cannot be a blob */
        status = hf__fail(s, HF_CORRUPT, "the blob %s is damaged: it has %llu bytes", name,
                          (unsigned long long)info.st_size);
    else
        status = read_all(s, dir, fd, (size_t)info.st_size, name, bytes);
    close(fd);
    return status;
}

static enum hf_status dir_has(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                              uint64_t *size)
{
    struct stat info;
    int fd;

    TRY(open_blob(s, hf__blob_dir_of(blobs), digest, &fd, &info));
    if (fd < 0)
        return hf__blob_missing(s, digest);
    close(fd);
    *size = (uint64_t)info.st_size;
    return HF_OK;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void dir_close(struct hf_blobs *blobs)
{
    struct dir *dir = hf__blob_dir_of(blobs);
    struct hf_env env = blobs->env;
    int fds[] = {dir->trash, dir->new, dir->root};

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    hf__env_free(&env, dir->path, dir->path_size);
    hf__env_free(&env, dir, sizeof(*dir));
}

static enum hf_status open_in(struct hf_scope *s, const struct hf_env *env,
                              const struct blob_dir_options *options, int in, size_t skip,
                              struct hf_blobs **blobs);

/* A part is opened in the open folder, as its path may lead elsewhere by now. */
enum hf_status hf__blobs_dir_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                                  bool no_create, struct hf_blobs **part)
{
    const struct dir *dir = hf__blob_dir_of(blobs);
    struct blob_dir_options options = {.path =
                                           hf_scope_format(s, "%s/%.*s", dir->path, HF_FMT(name)),
                                       .no_sync = dir->no_sync,
                                       .no_create = no_create,
                                       .reserve = dir->reserve};

    *part = NULL;
    assert(name.len > 0 && !memchr(name.ptr, '/', name.len));
    if (!options.path.ptr)
        return hf__fail_nomem(s);
    return open_in(s, &blobs->env, &options, dir->root, options.path.len - name.len, part);
}

static enum hf_status dir_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                               struct hf_blobs **part)
{
    return hf__blobs_dir_part(s, blobs, name, false, part);
}

const struct blob_kind hf__blob_dir_kind = {.part = dir_part,
                                            .put = dir_put,
                                            .get = dir_get,
                                            .has = dir_has,
                                            .remove = hf__blob_dir_remove,
                                            .list = hf__blob_dir_list,
                                            .remove_old = hf__blob_dir_remove_old,
                                            .remove_leftovers = hf__blob_dir_leftovers,
                                            .close = dir_close};

/* Open the folder, or create it and sync the one above, so that it is found after a power loss.
 * dir->root is -1, and HF_OK, when it does not exist and no_create is set. */
static enum hf_status open_root(struct hf_scope *s, struct dir *dir, int in, const char *name)
{
    const bool part = in != AT_FDCWD;
    bool made = !dir->no_create && mkdirat(in, name, MODE_FOLDER) == 0;
    enum hf_status status;
    int above;

    if (!made && !dir->no_create && errno != EEXIST)
        return hf__blob_dir_fail(s, dir, "create", "");
    dir->root = openat(in, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (part ? O_NOFOLLOW : 0));
    if (dir->root < 0 && (errno == ENOTDIR || (part && errno == ELOOP)))
        return hf__fail(s, part ? HF_CORRUPT : HF_INVALID, "%s is not a directory", dir->path);
    if (dir->root < 0 && errno == ENOENT && dir->no_create)
        return HF_OK;
    if (dir->root < 0)
        return hf__blob_dir_fail(s, dir, "open", "");
    if (!made)
        return HF_OK;
    above = openat(dir->root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return hf__blob_dir_fail(s, dir, "open", "..");
    status = hf__blob_dir_sync(s, dir, above, "..");
    close(above);
    return status;
}

static enum hf_status write_format(struct hf_scope *s, struct dir *dir)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%s%d\n", FORMAT_TEXT, FORMAT);

    assert(len > 0 && (size_t)len < sizeof(text));
    return write_new(s, dir, dir->root, FORMAT_FILE, hf_bytes_of(text, (size_t)len));
}

static enum hf_status check_format(struct hf_scope *s, struct dir *dir)
{
    int fd = openat(dir->root, FORMAT_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[64] = "";
    unsigned long long format;
    ssize_t len;
    char *end;

    if (fd < 0)
        return errno == ENOENT ? write_format(s, dir)
                               : hf__blob_dir_fail(s, dir, "open", FORMAT_FILE);
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len < 0)
        return hf__blob_dir_fail(s, dir, "read", FORMAT_FILE);
    if (memcmp(text, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1) != 0)
        return hf__fail(s, HF_INVALID,
                        "%s is not a directory of blobs: its file %s has other content", dir->path,
                        FORMAT_FILE);
    format = strtoull(text + sizeof(FORMAT_TEXT) - 1, &end, 10);
    if (format == 0 || *end != '\n')
        return hf__fail(s, HF_CORRUPT, "%s/%s is damaged", dir->path, FORMAT_FILE);
    if (format > FORMAT)
        return hf__fail(s, HF_FORMAT,
                        "the blobs in %s have format %llu; this version supports formats up to %d",
                        dir->path, format, FORMAT);
    return HF_OK;
}

/* Is it a folder of blobs? Without no_create it becomes one. */
static bool is_made(const struct dir *dir)
{
    struct stat info;

    return dir->root >= 0 &&
           (!dir->no_create || fstatat(dir->root, FORMAT_FILE, &info, AT_SYMLINK_NOFOLLOW) == 0 ||
            errno != ENOENT);
}

/* *there: it is open. False: it does not exist, and no_create is set. */
static enum hf_status open_all(struct hf_scope *s, struct dir *dir, int in, const char *name,
                               bool *there)
{
    bool made = false;

    *there = false;
    TRY(open_root(s, dir, in, name));
    if (!is_made(dir))
        return HF_OK;
    *there = true;
    TRY(open_folder(s, dir, dir->root, NEW_FOLDER, true, &made, &dir->new));
    TRY(open_folder(s, dir, dir->root, TRASH_FOLDER, true, &made, &dir->trash));
    assert(dir->new >= 0 && dir->trash >= 0);
    if (made)
        TRY(hf__blob_dir_sync(s, dir, dir->root, ""));
    TRY(check_format(s, dir));
    return hf__blob_dir_recover(s, dir);
}

/* `in` is the folder that the first `skip` bytes of the path lead to; AT_FDCWD, 0: none. */
static enum hf_status open_in(struct hf_scope *s, const struct hf_env *env,
                              const struct blob_dir_options *options, int in, size_t skip,
                              struct hf_blobs **blobs)
{
    struct hf_str path = options->path;
    struct dir *dir;
    enum hf_status status;
    bool there = false;

    *blobs = NULL;
    if (path.len == 0 || memchr(path.ptr, '\0', path.len))
        return hf__fail(s, HF_INVALID,
                        "dir: must be followed by the path of a directory, without a NUL");
    assert((in == AT_FDCWD) == (skip == 0) && skip < path.len);
    dir = hf__env_alloc(env, sizeof(*dir));
    if (!dir)
        return hf__fail_nomem(s);
    memset(dir, 0, sizeof(*dir));
    dir->blobs = (struct hf_blobs){.kind = &hf__blob_dir_kind, .env = *env, .max = HF_BLOB_MAX};
    dir->root = dir->new = dir->trash = -1;
    dir->no_sync = options->no_sync;
    dir->no_create = options->no_create;
    dir->reserve = options->reserve;
    dir->path_size = path.len + 1;
    dir->path = hf__env_alloc(env, dir->path_size);
    if (dir->path) {
        memcpy(dir->path, path.ptr, path.len);
        dir->path[path.len] = '\0';
    }
    status = dir->path ? open_all(s, dir, in, dir->path + skip, &there) : hf__fail_nomem(s);
    if (status != HF_OK || !there) {
        dir_close(&dir->blobs);
        return status;
    }
    *blobs = &dir->blobs;
    return HF_OK;
}

enum hf_status hf__blobs_open_dir(struct hf_scope *s, const struct hf_env *env,
                                  const struct blob_dir_options *options, struct hf_blobs **blobs)
{
    return open_in(s, env, options, AT_FDCWD, 0, blobs);
}
