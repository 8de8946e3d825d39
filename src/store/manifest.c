/*
 * store/manifest.c: checking the manifest of the database without RocksDB.
 *
 *     PATH/db/CURRENT           "MANIFEST-000005\n"
 *     PATH/db/MANIFEST-000005   is only ever appended to; RocksDB begins another one, with a higher
 *                               number, at each open, and when this one has become large
 *
 * The checksum is a chain over blocks: each has that of the blocks before it as its seed. So the
 * part that was noted before is not read again.
 *
 * What always holds:
 *
 *  (1) What is noted is durable: the manifest is synced before, and so is the name of a new one. It
 *      stays a beginning of that manifest as long as CURRENT names it.
 *  (2) Nothing is ever written here.
 */
#include "store/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "store/store_dir.h"

enum { BLOCK_BYTES = 4096, NAME_MAX_BYTES = 64 };

#define CURRENT_FILE "db/CURRENT"
#define NAME_PREFIX "MANIFEST-"

static void file_name(uint64_t number, char name[NAME_MAX_BYTES])
{
    snprintf(name, NAME_MAX_BYTES, "db/" NAME_PREFIX "%06llu", (unsigned long long)number);
}

/* The number of the manifest that CURRENT names; 0: it names none; -1: a system call failed. */
static int read_current(const struct store_dir *store_dir, uint64_t *number)
{
    char text[NAME_MAX_BYTES] = "", again[NAME_MAX_BYTES];
    int fd = openat(store_dir->fd, CURRENT_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t len;

    *number = 0;
    if (fd < 0)
        return -1;
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len < 0)
        return -1;
    if (len > (ssize_t)sizeof(NAME_PREFIX) && text[len - 1] == '\n') {
        *number = strtoull(text + sizeof(NAME_PREFIX) - 1, NULL, 10);
        file_name(*number, again);
        text[len - 1] = '\0';
        if (strcmp(text, again + sizeof("db/") - 1) != 0)
            *number = 0;
    }
    return 0;
}

/* Read one block, or the rest of the file if that is shorter. */
static bool read_block(int fd, uint8_t *block, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t got = pread(fd, block, len, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        block += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return true;
}

/* The checksum of the first `bytes`; *sum is raised to the last whole block. */
static bool add_up(int fd, struct manifest_sum *sum, uint64_t bytes, uint64_t *hash)
{
    uint8_t block[BLOCK_BYTES];

    while (bytes - sum->bytes >= BLOCK_BYTES) {
        if (!read_block(fd, block, BLOCK_BYTES, sum->bytes))
            return false;
        sum->hash = XXH3_64bits_withSeed(block, BLOCK_BYTES, sum->hash);
        sum->bytes += BLOCK_BYTES;
    }
    if (!read_block(fd, block, bytes - sum->bytes, sum->bytes))
        return false;
    *hash = XXH3_64bits_withSeed(block, bytes - sum->bytes, sum->hash);
    return true;
}

/* ---- checking ------------------------------------------------------------------------------- */

static enum hf_status fail_damaged(struct hf_scope *s, const struct store_dir *store_dir,
                                   const char *name, const char *how)
{
    return hf__fail(s, HF_CORRUPT, "The store in %s is damaged: %s %s" STORE_DIR_DAMAGED,
                    store_dir->path, name, how);
}

static enum hf_status fail_errno(struct hf_scope *s, const struct store_dir *store_dir,
                                 const char *name)
{
    int error = errno;
    char room[128];

    return hf__fail(s, HF_IO, "Cannot read %s/%s: %s", store_dir->path, name,
                    strerror_r(error, room, sizeof(room)));
}

/* Check that the noted manifest begins with the noted bytes. */
static enum hf_status manifest_compare(struct hf_scope *s, const struct store_dir *store_dir,
                                       const char *name, struct manifest_sum *sum, bool *noted)
{
    const struct manifest_mark *mark = &store_dir->marks.manifest;
    int fd = openat(store_dir->fd, name, O_RDONLY | O_CLOEXEC);
    enum hf_status status = HF_OK;
    struct stat info = {0};
    uint64_t hash = 0;

    if (fd < 0 && errno == ENOENT)
        return fail_damaged(s, store_dir, name, "is missing");
    if (fd < 0 || fstat(fd, &info))
        status = fail_errno(s, store_dir, name);
    else if ((uint64_t)info.st_size < mark->bytes)
        status = fail_damaged(s, store_dir, name, "was cut short, or replaced by an older copy");
    else if (!add_up(fd, sum, mark->bytes, &hash))
        status = fail_errno(s, store_dir, name);
    else if (hash != mark->hash)
        status = fail_damaged(s, store_dir, name, "was changed, or belongs to another database");
    if (fd >= 0)
        close(fd);
    *noted = (uint64_t)info.st_size == mark->bytes;
    return status;
}

enum hf_status hf__manifest_check(struct hf_scope *s, struct store_dir *store_dir, bool *noted)
{
    const struct manifest_mark *mark = &store_dir->marks.manifest;
    char name[NAME_MAX_BYTES];
    struct stat info;
    uint64_t number;

    *noted = false;
    if (!store_dir->has_database)
        return mark->number ? fail_damaged(s, store_dir, CURRENT_FILE, "is missing") : HF_OK;
    if (read_current(store_dir, &number))
        return fail_errno(s, store_dir, CURRENT_FILE);
    if (!number)
        return fail_damaged(s, store_dir, CURRENT_FILE, "is invalid");
    file_name(number, name);
    if (number < mark->number)
        return fail_damaged(s, store_dir, "db", "is older than the file durable");
    if (number == mark->number) {
        store_dir->manifest = (struct manifest_sum){.number = number};
        return manifest_compare(s, store_dir, name, &store_dir->manifest, noted);
    }
    if (fstatat(store_dir->fd, name, &info, 0))
        return errno == ENOENT ? fail_damaged(s, store_dir, name, "is missing")
                               : fail_errno(s, store_dir, name);
    return HF_OK;
}

/* ---- noting --------------------------------------------------------------------------------- */

/* The name of another manifest than the one that was noted last. */
static bool sync_name(const struct store_dir *store_dir)
{
    int current = openat(store_dir->fd, CURRENT_FILE, O_RDONLY | O_CLOEXEC);
    int folder = openat(store_dir->fd, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = current >= 0 && folder >= 0 && fdatasync(current) == 0 && fsync(folder) == 0;

    if (current >= 0)
        close(current);
    if (folder >= 0)
        close(folder);
    return done;
}

static bool note_file(struct store_dir *store_dir, int fd, uint64_t number,
                      struct manifest_mark *mark)
{
    struct manifest_sum sum = store_dir->manifest;
    struct stat info;

    if (sum.number != number)
        sum = (struct manifest_sum){.number = number};
    if (fstat(fd, &info) || (uint64_t)info.st_size < sum.bytes)
        return false;
    *mark = (struct manifest_mark){.number = number, .bytes = (uint64_t)info.st_size};
    if (!add_up(fd, &sum, mark->bytes, &mark->hash) || fdatasync(fd))
        return false;
    store_dir->manifest = sum;
    return true;
}

bool hf__manifest_note(struct store_dir *store_dir, struct manifest_mark *mark)
{
    char name[NAME_MAX_BYTES];
    uint64_t number;
    bool done, known;
    int fd;

    *mark = (struct manifest_mark){0};
    if (read_current(store_dir, &number))
        return errno == ENOENT && !store_dir->manifest.number; /* there is no database yet */
    file_name(number, name);
    fd = number ? openat(store_dir->fd, name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    known = number == store_dir->manifest.number;
    done = note_file(store_dir, fd, number, mark);
    close(fd);
    if (done && !known && !sync_name(store_dir)) {
        store_dir->manifest = (struct manifest_sum){0};
        done = false;
    }
    return done;
}

struct manifest_mark hf__manifest_any(uint64_t number)
{
    return (struct manifest_mark){.number = number, .hash = XXH3_64bits_withSeed("", 0, 0)};
}
