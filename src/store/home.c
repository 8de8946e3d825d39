/*
 * store/home.c: the directory of a store on disk.
 *
 *     PATH/HOLDFAST   "holdfast store format 2\n": this directory is a store
 *     PATH/durable    the record: where the store stands, see below
 *     PATH/ballast    nothing, but it takes space: given back when the disk is full, so that the
 *                     database can still flush, compact and close
 *     PATH/db/        the database
 *     PATH/journal/   the journal of what the database does not have in tables yet
 *
 * Making a store. HOLDFAST.new comes first and becomes HOLDFAST when all the rest is there and
 * synced. So a directory with HOLDFAST lacks nothing, one with HOLDFAST.new was interrupted before
 * anything was stored and is finished by the next open, and one with neither must be empty.
 *
 * The record. A journal that is gone looks like one that never was, so we note after each sync how
 * far it went. The note itself is not synced then, and need not be: an older one is a lower bound
 * as well. It alternates between two slots with a checksum each, so that one of them is whole at
 * any moment. It is written with pwrite() and not through a mapping, because a disk error behind a
 * mapping is a signal that ends the process.
 *
 *     slot i at i * 512:  8 bytes "hfmarks2", u64be turn, u64be durable, u64be based, u64be clean,
 *                         u64be XXH3 of the 40 bytes before; the higher turn is the newer one
 *
 * Format 1 had the database's own log and "hfdurabl", u64be durable, u64be XXH3 in the slots. Its
 * record is read, and from then on the store has format 2.
 *
 * What always holds:
 *
 *  (1) HOLDFAST exists only when PATH/durable does. A record that says that something is in tables
 *      exists only when PATH/db/CURRENT does: the database is made when it gets its first table.
 *  (2) The record never says more than what was made durable. `durable` and `based` never go back.
 *  (3) `clean` is the last change of all, and is taken back, durably, before another one is made.
 */
#include "store/home.h"

#include "base/kill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <xxhash.h>

#define FORMAT_FILE "HOLDFAST"
#define FORMAT_FILE_NEW "HOLDFAST.new"
#define FORMAT_TEXT "holdfast store format "

enum {
    MODE_DIRECTORY = 0700,
    MODE_FILE = 0600,
    FORMAT_FILE_MAX = 64,
    SLOT_STRIDE = 512,
    SLOT_BYTES = 48,
    SLOT_BYTES_1 = 24, /* of format 1 */
    SLOTS = 2,
    ERROR_TEXT_MAX = 128
};

static const char slot_magic[8] = {'h', 'f', 'm', 'a', 'r', 'k', 's', '2'};
static const char slot_magic_1[8] = {'h', 'f', 'd', 'u', 'r', 'a', 'b', 'l'};

/* Fail because the system did: what, on which file, why. */
static enum hf_status fail_errno(struct hf_scope *s, const struct home *home, const char *what,
                                 const char *name)
{
    int error = errno;
    char room[ERROR_TEXT_MAX];
    const char *text = strerror_r(error, room, sizeof(room));
    enum hf_status status = error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO;

    return hf__fail(s, status, "Cannot %s %s%s%s: %s", what, home->path, *name ? "/" : "", name,
                    text);
}

static bool exists(const struct home *home, const char *name)
{
    struct stat info;

    return fstatat(home->dir, name, &info, 0) == 0;
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
static enum hf_status sync_parent(struct hf_scope *s, const struct home *home)
{
    int parent = openat(home->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed;

    if (parent < 0)
        return fail_errno(s, home, "open", "..");
    failed = fsync(parent);
    if (failed && errno == EINVAL)
        failed = 0; /* a file system that has nothing to sync */
    close(parent);
    return failed ? fail_errno(s, home, "sync", "..") : HF_OK;
}

static enum hf_status find_directory(struct hf_scope *s, struct home *home)
{
    bool made = mkdir(home->path, MODE_DIRECTORY) == 0;

    if (!made && errno != EEXIST)
        return fail_errno(s, home, "create", "");
    home->dir = open(home->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home->dir < 0 && errno == ENOTDIR)
        return hf__fail(s, HF_INVALID, "%s is not a directory", home->path);
    if (home->dir < 0)
        return fail_errno(s, home, "open", "");
    /* RocksDB has a lock of its own, but only after we have looked around. */
    if (flock(home->dir, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return hf__fail(s, HF_LOCKED,
                        "The store in %s is open already, in this or in another process",
                        home->path);
    return made ? sync_parent(s, home) : HF_OK;
}

/* Read HOLDFAST. *format is 0 when there is none. */
static enum hf_status read_format(struct hf_scope *s, const struct home *home, uint64_t *format)
{
    char text[FORMAT_FILE_MAX] = "";
    int fd = openat(home->dir, FORMAT_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t len;
    char *end;

    *format = 0;
    if (fd < 0)
        return errno == ENOENT ? HF_OK : fail_errno(s, home, "open", FORMAT_FILE);
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len < 0)
        return fail_errno(s, home, "read", FORMAT_FILE);
    if (strncmp(text, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1) == 0) {
        *format = strtoull(text + sizeof(FORMAT_TEXT) - 1, &end, 10);
        if (*end != '\n' || end != text + len - 1)
            *format = 0;
    }
    if (*format == 0)
        return hf__fail(s, HF_CORRUPT, "%s/%s is damaged", home->path, FORMAT_FILE);
    if (*format > HOME_FORMAT)
        return hf__fail(s, HF_FORMAT,
                        "The store in %s has format %llu; this version knows formats up to %d",
                        home->path, (unsigned long long)*format, HOME_FORMAT);
    return HF_OK;
}

static enum hf_status refuse_strangers(struct hf_scope *s, const struct home *home)
{
    int fd = openat(home->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    enum hf_status status = HF_OK;
    struct dirent *entry;

    if (!listing) {
        status = fail_errno(s, home, "list", "");
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == HF_OK && (entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = hf__fail(s, HF_INVALID,
                              "%s is not empty and is not a holdfast store (it has no file %s)",
                              home->path, FORMAT_FILE);
    closedir(listing);
    return status;
}

static enum hf_status write_format(struct hf_scope *s, const struct home *home)
{
    char text[FORMAT_FILE_MAX];
    int len = snprintf(text, sizeof(text), "%s%d\n", FORMAT_TEXT, HOME_FORMAT);
    int fd =
        openat(home->dir, FORMAT_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    enum hf_status status = HF_OK;

    if (fd < 0)
        return fail_errno(s, home, "create", FORMAT_FILE_NEW);
    errno = ENOSPC; /* what a short write means */
    if (write(fd, text, (size_t)len) != len || fsync(fd))
        status = fail_errno(s, home, "write", FORMAT_FILE_NEW);
    close(fd);
    if (status == HF_OK)
        hf__kill_point("after_format_file");
    return status;
}

static enum hf_status look_inside(struct hf_scope *s, struct home *home)
{
    uint64_t format;

    TRY(read_format(s, home, &format));
    home->has_database = exists(home, "db/CURRENT");
    if (format) {
        home->has_no_journal = format == 1;
        return HF_OK;
    }
    if (!exists(home, FORMAT_FILE_NEW))
        TRY(refuse_strangers(s, home));
    home->fresh = home->has_no_journal = true;
    return write_format(s, home);
}

enum hf_status hf__home_open(struct hf_scope *s, const struct hf_env *env, struct hf_str path,
                             struct home *home)
{
    enum hf_status status;

    *home = (struct home){.env = *env, .dir = -1, .record = -1, .ballast = -1};
    if (path.len == 0 || memchr(path.ptr, '\0', path.len))
        return hf__fail(s, HF_INVALID, "The path of a store must be neither empty nor have a NUL");
    home->path = path_join(env, path, "", &home->path_size);
    home->db_path = path_join(env, path, "/db", &home->db_path_size);
    home->journal_path = path_join(env, path, "/journal", &home->journal_path_size);
    if (!home->path || !home->db_path || !home->journal_path)
        status = hf__fail_nomem(s);
    else
        status = find_directory(s, home);
    if (status == HF_OK)
        status = look_inside(s, home);
    if (status != HF_OK)
        hf__home_close(home);
    return status;
}

enum hf_status hf__home_seal(struct hf_scope *s, struct home *home)
{
    if (!home->has_no_journal)
        return HF_OK;
    if (!home->fresh)
        TRY(write_format(s, home)); /* over the older one, when all else is there */
    hf__kill_point("before_seal");
    if (fsync(home->dir) || renameat(home->dir, FORMAT_FILE_NEW, home->dir, FORMAT_FILE) ||
        fsync(home->dir))
        return fail_errno(s, home, "create", FORMAT_FILE);
    hf__kill_point("after_seal");
    home->fresh = home->has_no_journal = false;
    return HF_OK;
}

void hf__home_close(struct home *home)
{
    int fds[] = {home->dir, home->record, home->ballast};

    /* A forked child may still hold the descriptor: the lock goes now all the same. */
    if (home->dir >= 0)
        flock(home->dir, LOCK_UN);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    hf__env_free(&home->env, home->path, home->path_size);
    hf__env_free(&home->env, home->db_path, home->db_path_size);
    hf__env_free(&home->env, home->journal_path, home->journal_path_size);
    home->path = home->db_path = home->journal_path = NULL;
    home->dir = home->record = home->ballast = -1;
}

/* ---- the record ----------------------------------------------------------------------------- */

static void slot_fill(uint8_t slot[SLOT_BYTES], uint64_t turn, const struct home_marks *marks)
{
    memcpy(slot, slot_magic, sizeof(slot_magic));
    store_u64be(slot + 8, turn);
    store_u64be(slot + 16, marks->durable);
    store_u64be(slot + 24, marks->based);
    store_u64be(slot + 32, marks->clean);
    store_u64be(slot + 40, XXH3_64bits(slot, 40));
}

static bool slot_write(const struct home *home, const uint8_t slot[SLOT_BYTES], uint64_t turn)
{
    return pwrite(home->record, slot, SLOT_BYTES, (off_t)(turn % SLOTS) * SLOT_STRIDE) ==
           SLOT_BYTES;
}

bool hf__home_record(struct home *home, struct home_marks marks)
{
    uint8_t slot[SLOT_BYTES];

    if (!home->unnoted && memcmp(&marks, &home->marks, sizeof(marks)) == 0)
        return true;
    slot_fill(slot, home->turn + 1, &marks);
    home->marks = marks;
    home->unnoted = !slot_write(home, slot, home->turn + 1);
    /* A failure leaves the record in the other slot, so the next one must go here again. */
    if (home->unnoted)
        hf__env_log(&home->env, HF_LOG_WARNING, "store %s: cannot write the durable record",
                    home->path);
    else
        home->turn++;
    return !home->unnoted;
}

bool hf__home_sync_record(struct home *home)
{
    bool done = fdatasync(home->record) == 0;

    if (!done)
        home->unnoted = true; /* the system has forgotten it, and would sync nothing next time */
    return done;
}

static enum hf_status make_record(struct hf_scope *s, struct home *home)
{
    uint8_t slot[SLOT_BYTES];

    home->record = openat(home->dir, "durable", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    if (home->record < 0)
        return fail_errno(s, home, "create", "durable");
    errno = ENOSPC;
    for (home->turn = 0; home->turn < SLOTS; home->turn++) {
        slot_fill(slot, home->turn, &home->marks);
        if (!slot_write(home, slot, home->turn))
            return fail_errno(s, home, "write", "durable");
    }
    return HF_OK;
}

/* The slot's turn and marks; false when it is not whole. */
static bool slot_read(const struct home *home, unsigned number, uint64_t *turn,
                      struct home_marks *marks)
{
    uint8_t slot[SLOT_BYTES] = {0};
    ssize_t len = pread(home->record, slot, SLOT_BYTES, (off_t)number * SLOT_STRIDE);

    if (home->has_no_journal) {
        /* The turn of what comes next must be higher, and go to the other slot. */
        *turn = number;
        *marks = (struct home_marks){.durable = load_u64be(slot + 8)};
        return len >= SLOT_BYTES_1 && memcmp(slot, slot_magic_1, sizeof(slot_magic_1)) == 0 &&
               load_u64be(slot + 16) == XXH3_64bits(slot, 16);
    }
    *turn = load_u64be(slot + 8);
    *marks =
        (struct home_marks){load_u64be(slot + 16), load_u64be(slot + 24), load_u64be(slot + 32)};
    return len == SLOT_BYTES && memcmp(slot, slot_magic, sizeof(slot_magic)) == 0 &&
           load_u64be(slot + 40) == XXH3_64bits(slot, 40);
}

enum hf_status hf__home_open_record(struct hf_scope *s, struct home *home)
{
    bool whole = false;

    if (home->fresh)
        return make_record(s, home);
    home->record = openat(home->dir, "durable", O_RDWR | O_CLOEXEC);
    if (home->record < 0 && errno == ENOENT)
        return hf__fail(s, HF_CORRUPT, "The store in %s is damaged: the file durable is missing",
                        home->path);
    if (home->record < 0)
        return fail_errno(s, home, "open", "durable");
    for (unsigned i = 0; i < SLOTS; i++) {
        struct home_marks marks;
        uint64_t turn;

        if (!slot_read(home, i, &turn, &marks))
            continue;
        if (!whole ||
            (home->has_no_journal ? marks.durable > home->marks.durable : turn > home->turn)) {
            home->turn = turn;
            home->marks = marks;
        }
        whole = true;
    }
    if (!whole)
        return hf__fail(s, HF_CORRUPT, "The store in %s is damaged: the file durable is",
                        home->path);
    home->unnoted = home->has_no_journal; /* not in this format */
    if (!home->has_database && (home->marks.based || home->has_no_journal))
        return hf__fail(s, HF_CORRUPT, "The store in %s is damaged: db/CURRENT is missing",
                        home->path);
    return HF_OK;
}

/* ---- space ---------------------------------------------------------------------------------- */

uint64_t hf__home_free_bytes(const struct home *home)
{
    struct statvfs info;

    /* f_bavail leaves out what is kept for root: if we are root, that is a reserve of its own. */
    if (fstatvfs(home->dir, &info))
        return UINT64_MAX;
    return (uint64_t)info.f_bavail * info.f_frsize;
}

void hf__home_fill_ballast(struct home *home)
{
    struct stat info;

    if (home->ballast < 0)
        home->ballast = openat(home->dir, "ballast", O_RDWR | O_CREAT | O_CLOEXEC, MODE_FILE);
    if (home->ballast < 0)
        return;
    hf__kill_point("before_ballast");
    home->ballast_full = (fstat(home->ballast, &info) == 0 && info.st_size == HOME_BALLAST_BYTES &&
                          info.st_blocks * 512 >= HOME_BALLAST_BYTES) ||
                         posix_fallocate(home->ballast, 0, HOME_BALLAST_BYTES) == 0;
    if (!home->ballast_full)
        hf__home_drop_ballast(home); /* no half measures */
}

void hf__home_drop_ballast(struct home *home)
{
    home->ballast_full = false;
    if (home->ballast >= 0 && ftruncate(home->ballast, 0))
        hf__env_log(&home->env, HF_LOG_WARNING, "store %s: cannot give the ballast back",
                    home->path);
}

uint64_t hf__home_used_bytes(const struct home *home)
{
    int fd = openat(home->dir, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
