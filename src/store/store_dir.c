/*
 * store/store_dir.c: the directory of a store on disk.
 *
 *     PATH/HOLDFAST   "holdfast store format 3\n": this directory is a store
 *     PATH/durable    the record: where the store stands, see marks.c
 *     PATH/ballast    nothing, but it takes space: given back when the disk is full, so that the
 *                     database can still flush, compact and close
 *     PATH/db/        the database
 *     PATH/journal/   the journal of what the database does not have in tables yet
 *
 * Making a store. HOLDFAST.new comes first and becomes HOLDFAST when all the rest is there and
 * synced. So a directory with HOLDFAST lacks nothing, one with HOLDFAST.new was interrupted before
 * anything was stored and is finished by the next open, and one with neither must be empty.
 *
 * A store of an older format becomes one of this format when all of its parts have: HOLDFAST.next
 * then replaces HOLDFAST. It has another name than HOLDFAST.new, so that a store that loses
 * HOLDFAST meanwhile is not taken for one that has nothing in it.
 *
 * Modes. What we make is for its owner alone, whatever the umask is: folders are made with 0700 and
 * files with 0600. RocksDB makes its files with 0644, which its C functions cannot change, so they
 * are protected by PATH/db, which has 0700. A PATH that existed before keeps its mode: its owner
 * chose it, and the files in it are protected by their own.
 *
 * What always holds:
 *
 *  (1) HOLDFAST exists only when PATH/durable does.
 *  (2) An open that finds damage has not changed what was there, but for RocksDB's LOCK and LOG.
 */
#include "store/store_dir.h"

#include "base/kill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FORMAT_FILE "HOLDFAST"
#define FORMAT_FILE_NEW "HOLDFAST.new"
#define FORMAT_FILE_NEXT "HOLDFAST.next"
#define FORMAT_TEXT "holdfast store format "

enum { MODE_DIRECTORY = 0700, MODE_FILE = 0600, FORMAT_FILE_MAX = 64, ERROR_TEXT_MAX = 128 };

/* Fail because the system did: what, on which file, why. */
static enum hf_status fail_errno(struct hf_scope *s, const struct store_dir *store_dir,
                                 const char *what, const char *name)
{
    int error = errno;
    char room[ERROR_TEXT_MAX];
    const char *text = strerror_r(error, room, sizeof(room));
    enum hf_status status = error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO;

    return hf__fail(s, status, "Cannot %s %s%s%s: %s", what, store_dir->path, *name ? "/" : "",
                    name, text);
}

static bool file_exists(const struct store_dir *store_dir, const char *name)
{
    struct stat info;

    return fstatat(store_dir->fd, name, &info, 0) == 0;
}

/* ---- finding or making ---------------------------------------------------------------------- */

static char *path_join(const struct hf_env *env, struct hf_str path, const char *tail, size_t *size)
{
    size_t tail_len = strlen(tail);
    char *joined = hf__env_alloc(env, path.len + tail_len + 1);

    if (!joined)
        return NULL;
    memcpy(joined, path.ptr, path.len);
    memcpy(joined + path.len, tail, tail_len + 1);
    *size = path.len + tail_len + 1;
    return joined;
}

/* Sync the directory above, so that the new one is found after a power loss. */
static enum hf_status sync_parent(struct hf_scope *s, const struct store_dir *store_dir)
{
    int parent = openat(store_dir->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed;

    if (parent < 0)
        return fail_errno(s, store_dir, "open", "..");
    failed = fsync(parent);
    if (failed && errno == EINVAL)
        failed = 0; /* a file system that has nothing to sync */
    close(parent);
    return failed ? fail_errno(s, store_dir, "sync", "..") : HF_OK;
}

/* If a shared lock can be taken, those who have it open are readers. */
static enum hf_status fail_locked(struct hf_scope *s, const struct store_dir *store_dir)
{
    bool read = !store_dir->read_only && flock(store_dir->fd, LOCK_SH | LOCK_NB) == 0;

    return hf__fail(s, HF_LOCKED, "The store in %s is already open%s in this or another process%s",
                    store_dir->path, read ? " read-only" : "",
                    read ? ", and cannot be opened for writing meanwhile" : "");
}

static enum hf_status fail_absent(struct hf_scope *s, const struct store_dir *store_dir)
{
    return hf__fail(s, HF_NOT_FOUND, "There is no store in %s", store_dir->path);
}

static enum hf_status find_directory(struct hf_scope *s, struct store_dir *store_dir)
{
    bool may_make = !store_dir->read_only && !store_dir->no_create;
    bool made = may_make && mkdir(store_dir->path, MODE_DIRECTORY) == 0;

    if (may_make && !made && errno != EEXIST)
        return fail_errno(s, store_dir, "create", "");
    store_dir->fd = open(store_dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store_dir->fd < 0 && errno == ENOENT)
        return fail_absent(s, store_dir);
    if (store_dir->fd < 0 && errno == ENOTDIR)
        return hf__fail(s, HF_INVALID, "%s is not a directory", store_dir->path);
    if (store_dir->fd < 0)
        return fail_errno(s, store_dir, "open", "");
    /* RocksDB has a lock of its own, but takes it only after we have checked the files. */
    if (flock(store_dir->fd, (store_dir->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) &&
        errno == EWOULDBLOCK)
        return fail_locked(s, store_dir);
    return made ? sync_parent(s, store_dir) : HF_OK;
}

/* Read HOLDFAST. *format is 0 when there is none. */
static enum hf_status read_format(struct hf_scope *s, const struct store_dir *store_dir,
                                  uint64_t *format)
{
    char text[FORMAT_FILE_MAX] = "";
    int fd = openat(store_dir->fd, FORMAT_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t len;
    char *end;

    *format = 0;
    if (fd < 0)
        return errno == ENOENT ? HF_OK : fail_errno(s, store_dir, "open", FORMAT_FILE);
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len < 0)
        return fail_errno(s, store_dir, "read", FORMAT_FILE);
    if (strncmp(text, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1) == 0) {
        *format = strtoull(text + sizeof(FORMAT_TEXT) - 1, &end, 10);
        if (*end != '\n' || end != text + len - 1)
            *format = 0;
    }
    if (*format == 0)
        return hf__fail(s, HF_CORRUPT, "%s/%s is damaged" STORE_DIR_DAMAGED, store_dir->path,
                        FORMAT_FILE);
    if (*format > STORE_DIR_FORMAT)
        return hf__fail(s, HF_FORMAT,
                        "The store in %s has format %llu; this version supports formats up to %d",
                        store_dir->path, (unsigned long long)*format, STORE_DIR_FORMAT);
    return HF_OK;
}

static enum hf_status refuse_strangers(struct hf_scope *s, const struct store_dir *store_dir)
{
    int fd = openat(store_dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    enum hf_status status = HF_OK;
    struct dirent *entry;

    if (!listing) {
        status = fail_errno(s, store_dir, "list", "");
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == HF_OK && (entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = hf__fail(s, HF_INVALID,
                              "%s is not empty and is not a holdfast store (it has no file %s)",
                              store_dir->path, FORMAT_FILE);
    closedir(listing);
    return status;
}

/* The file that becomes HOLDFAST, durably. */
static enum hf_status write_format(struct hf_scope *s, const struct store_dir *store_dir,
                                   const char *name)
{
    char text[FORMAT_FILE_MAX];
    int len = snprintf(text, sizeof(text), "%s%d\n", FORMAT_TEXT, STORE_DIR_FORMAT);
    int fd = openat(store_dir->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    enum hf_status status = HF_OK;

    if (fd < 0)
        return fail_errno(s, store_dir, "create", name);
    errno = ENOSPC; /* a short write means that */
    if (write(fd, text, (size_t)len) != len || fsync(fd))
        status = fail_errno(s, store_dir, "write", name);
    close(fd);
    if (status == HF_OK)
        hf__kill_point("after_format_file");
    return status;
}

static enum hf_status look_inside(struct hf_scope *s, struct store_dir *store_dir)
{
    uint64_t format;

    TRY(read_format(s, store_dir, &format));
    store_dir->has_database = file_exists(store_dir, "db/CURRENT");
    store_dir->format = (int)format;
    store_dir->sealed = format == STORE_DIR_FORMAT;
    if (store_dir->read_only && format <= 1)
        return hf__fail(
            s, HF_INVALID,
            format ? "The store in %s has format 1: open it for writing once before you open it "
                     "read-only"
                   : "%s is not a holdfast store, or is still being created",
            store_dir->path);
    if (format)
        return HF_OK;
    if (!file_exists(store_dir, FORMAT_FILE_NEW))
        TRY(refuse_strangers(s, store_dir));
    if (store_dir->has_database) /* one that is being made has none yet */
        return hf__fail(s, HF_CORRUPT,
                        "The store in %s is damaged: %s is missing" STORE_DIR_DAMAGED,
                        store_dir->path, FORMAT_FILE);
    if (store_dir->no_create)
        return fail_absent(s, store_dir);
    store_dir->fresh = true;
    store_dir->format = STORE_DIR_FORMAT;
    return write_format(s, store_dir, FORMAT_FILE_NEW);
}

enum hf_status hf__store_dir_open(struct hf_scope *s, const struct hf_env *env, struct hf_str path,
                                  bool read_only, bool no_create, struct store_dir *store_dir)
{
    enum hf_status status;

    *store_dir = (struct store_dir){.env = *env,
                                    .fd = -1,
                                    .record = -1,
                                    .ballast = -1,
                                    .read_only = read_only,
                                    .no_create = no_create};
    if (path.len == 0 || memchr(path.ptr, '\0', path.len))
        return hf__fail(s, HF_INVALID, "The path of a store must not be empty or contain a NUL");
    store_dir->path = path_join(env, path, "", &store_dir->path_size);
    store_dir->db_path = path_join(env, path, "/db", &store_dir->db_path_size);
    store_dir->journal_path = path_join(env, path, "/journal", &store_dir->journal_path_size);
    if (!store_dir->path || !store_dir->db_path || !store_dir->journal_path)
        status = hf__fail_nomem(s);
    else
        status = find_directory(s, store_dir);
    if (status == HF_OK)
        status = look_inside(s, store_dir);
    if (status != HF_OK)
        hf__store_dir_close(store_dir);
    return status;
}

enum hf_status hf__store_dir_seal(struct hf_scope *s, struct store_dir *store_dir)
{
    const char *name = store_dir->fresh ? FORMAT_FILE_NEW : FORMAT_FILE_NEXT;

    assert(!store_dir->read_only && store_dir->format == STORE_DIR_FORMAT);
    assert(store_dir->record >= 0); /* (1) */
    if (store_dir->sealed)
        return HF_OK;
    if (!store_dir->fresh)
        TRY(write_format(s, store_dir, name));
    hf__kill_point("before_seal");
    if (fsync(store_dir->fd) || renameat(store_dir->fd, name, store_dir->fd, FORMAT_FILE) ||
        fsync(store_dir->fd))
        return fail_errno(s, store_dir, "create", FORMAT_FILE);
    hf__kill_point("after_seal");
    store_dir->fresh = false;
    store_dir->sealed = true;
    return HF_OK;
}

void hf__store_dir_close(struct store_dir *store_dir)
{
    int fds[] = {store_dir->fd, store_dir->record, store_dir->ballast};

    /* Unlock explicitly: a forked child may still have the descriptor. */
    if (store_dir->fd >= 0)
        flock(store_dir->fd, LOCK_UN);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    hf__env_free(&store_dir->env, store_dir->path, store_dir->path_size);
    hf__env_free(&store_dir->env, store_dir->db_path, store_dir->db_path_size);
    hf__env_free(&store_dir->env, store_dir->journal_path, store_dir->journal_path_size);
    store_dir->path = store_dir->db_path = store_dir->journal_path = NULL;
    store_dir->fd = store_dir->record = store_dir->ballast = -1;
}

/* ---- space ---------------------------------------------------------------------------------- */

uint64_t hf__store_dir_free_bytes(const struct store_dir *store_dir)
{
    struct statvfs info;

    /* f_bavail leaves out blocks reserved for root: if we are root, they are an additional reserve.
     */
    if (fstatvfs(store_dir->fd, &info))
        return UINT64_MAX;
    return (uint64_t)info.f_bavail * info.f_frsize;
}

void hf__store_dir_fill_ballast(struct store_dir *store_dir)
{
    struct stat info;

    assert(!store_dir->read_only);
    if (store_dir->ballast < 0)
        store_dir->ballast =
            openat(store_dir->fd, "ballast", O_RDWR | O_CREAT | O_CLOEXEC, MODE_FILE);
    if (store_dir->ballast < 0)
        return;
    hf__kill_point("before_ballast");
    store_dir->ballast_full =
        (fstat(store_dir->ballast, &info) == 0 && info.st_size == STORE_DIR_BALLAST_BYTES &&
         info.st_blocks * 512 >= STORE_DIR_BALLAST_BYTES) ||
        posix_fallocate(store_dir->ballast, 0, STORE_DIR_BALLAST_BYTES) == 0;
    if (!store_dir->ballast_full)
        hf__store_dir_drop_ballast(store_dir); /* all of it or nothing */
}

void hf__store_dir_drop_ballast(struct store_dir *store_dir)
{
    store_dir->ballast_full = false;
    if (store_dir->ballast >= 0 && ftruncate(store_dir->ballast, 0))
        hf__env_log(&store_dir->env, HF_LOG_WARNING, "store %s: cannot empty the file ballast",
                    store_dir->path);
}

uint64_t hf__store_dir_used_bytes(const struct store_dir *store_dir)
{
    int fd = openat(store_dir->fd, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct stat info;
    uint64_t sum = 0;

    if (!listing) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while ((entry = readdir(listing)))
        if (fstatat(fd, entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode))
            sum += (uint64_t)info.st_size;
    closedir(listing);
    return sum;
}
