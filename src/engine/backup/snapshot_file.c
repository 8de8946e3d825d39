/*
 * engine/backup/snapshot_file.c: a snapshot in a file.
 *
 * All numbers are little-endian.
 *
 *     head      8   "hf-snap\n"
 *               4   version, 1
 *               4   0
 *               8   when it was taken, microseconds since 1970
 *               8   the next id
 *               8   the next sequence number
 *               8   how many entries
 *               8   bytes of keys and values, and eight for each entry
 *               8   how many blocks
 *               8   XXH3 of the 64 bytes before
 *     block     8   XXH3 of the other two, then of the entries, with the block's number as its seed
 *               4   length of the entries
 *               4   how many entries
 *               ... entries, as in memory (snapshot.h), in the order of their keys
 *     trailer   8   "hf-snap."
 *               8   length of the whole file
 *               8   the checksums of the head and of all blocks, chained by XXH3
 *
 * The head stays as it is in later versions, so that an old reader can distinguish a newer file
 * from a damaged one. No byte is without a checksum, blocks cannot change places, and behind the
 * trailer there is nothing.
 */
#include "engine/backup/snapshot.h"

#include "base/kill.h"
#include "engine/item/change.h"
#include "engine/layout.h"
#include "engine/stream/streams.h"
#include "model/value.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

enum {
    VERSION = 1,
    HEAD = 72,
    HEAD_HASHED = 64,
    BLOCK_HEAD = 16,
    TRAILER = 24,
    MODE_FILE = 0600,
    ERROR_TEXT_MAX = 128
};

_Static_assert(HEAD_HASHED == 8 + 2 * 4 + 6 * 8 && HEAD == HEAD_HASHED + 8, "as above");
_Static_assert(BLOCK_HEAD == 8 + 2 * 4 && TRAILER == 3 * 8, "as above");
_Static_assert(SNAPSHOT_HEAD == 2 * 4, "lengths of key and value");

_Static_assert(RECORD_KEY == 15 && PREFIX_LEN == 5 && ROW_HEAD == 4, "what good_entry() knows");

static const char head_magic[8] = {'h', 'f', '-', 's', 'n', 'a', 'p', '\n'};
static const char trailer_magic[8] = {'h', 'f', '-', 's', 'n', 'a', 'p', '.'};

/* A snapshot's file while it is written or read. */
struct file {
    struct hf_scope *s;
    const char *path;
    int fd;
    uint64_t at;    /* bytes that were written or read */
    uint64_t chain; /* of the checksums so far */
};

static enum hf_status fail_errno(const struct file *file, const char *what, const char *path)
{
    int error = errno;
    char room[ERROR_TEXT_MAX];
    const char *text = strerror_r(error, room, sizeof(room));
    enum hf_status status = error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO;

    return hf__fail(file->s, status, "Cannot %s %s: %s", what, path, text);
}

static void chain_add(struct file *file, const uint8_t hash[8])
{
    file->chain = XXH3_64bits_withSeed(hash, 8, file->chain);
}

/* `head` is the block's without its checksum. */
static uint64_t block_hash(const uint8_t *head, const struct snapshot_block *block, uint64_t number)
{
    return XXH3_64bits_withSeed(block->bytes, block->len,
                                XXH3_64bits_withSeed(head, BLOCK_HEAD - 8, number));
}

/* A path of the caller, with a NUL at its end. */
static enum hf_status path_of(struct hf_scope *s, struct hf_str path, const char **out)
{
    struct hf_str copy;

    if (path.len == 0 || memchr(path.ptr, 0, path.len))
        return hf__fail(s, HF_INVALID, "The path of the snapshot file is empty");
    copy = hf_scope_format(s, "%.*s", HF_FMT(path));
    if (!copy.ptr)
        return hf__fail_nomem(s);
    *out = copy.ptr;
    return HF_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static enum hf_status file_write(struct file *file, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(file->fd, bytes, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno(file, "write", file->path);
        bytes += done;
        len -= (size_t)done;
        file->at += (uint64_t)done;
    }
    return HF_OK;
}

static enum hf_status put_head(struct file *file, const struct hf_engine_snapshot *snapshot)
{
    uint8_t head[HEAD] = {0};

    assert(file->at == 0 && snapshot->next_id > 0);
    memcpy(head, head_magic, sizeof(head_magic));
    store_u32le(head + 8, VERSION);
    store_u64le(head + 16, (uint64_t)snapshot->size.taken_us);
    store_u64le(head + 24, snapshot->next_id);
    store_u64le(head + 32, snapshot->sequence);
    store_u64le(head + 40, snapshot->size.entries);
    store_u64le(head + 48, snapshot->size.bytes);
    store_u64le(head + 56, snapshot->blocks);
    store_u64le(head + HEAD_HASHED, XXH3_64bits(head, HEAD_HASHED));
    chain_add(file, head + HEAD_HASHED);
    return file_write(file, head, sizeof(head));
}

static enum hf_status put_block(struct file *file, const struct snapshot_block *block,
                                uint64_t number)
{
    uint8_t head[BLOCK_HEAD];

    assert(block->len > 0 && block->len <= UINT32_MAX && block->entries > 0);
    store_u32le(head + 8, (uint32_t)block->len);
    store_u32le(head + 12, block->entries);
    store_u64le(head, block_hash(head + 8, block, number));
    chain_add(file, head);
    TRY(file_write(file, head, sizeof(head)));
    return file_write(file, block->bytes, block->len);
}

static enum hf_status put_all(struct file *file, const struct hf_engine_snapshot *snapshot)
{
    uint8_t trailer[TRAILER];
    uint64_t number = 0;

    TRY(put_head(file, snapshot));
    for (const struct snapshot_block *block = snapshot->first; block; block = block->next) {
        TRY(hf__scope_alive(file->s));
        TRY(put_block(file, block, number++));
    }
    memcpy(trailer, trailer_magic, sizeof(trailer_magic));
    store_u64le(trailer + 8, file->at + sizeof(trailer));
    store_u64le(trailer + 16, file->chain);
    TRY(file_write(file, trailer, sizeof(trailer)));
    return fsync(file->fd) ? fail_errno(file, "sync", file->path) : HF_OK;
}

/* Sync the directory: the new name has to survive a power loss, too. */
static enum hf_status sync_directory(struct file *file, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct hf_str name = !slash ? HF_STR(".")
                         : slash == path
                             ? HF_STR("/")
                             : hf_scope_format(file->s, "%.*s", (int)(slash - path), path);
    enum hf_status status = HF_OK;
    int fd;

    if (!name.ptr)
        return hf__fail_nomem(file->s);
    fd = open(name.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(file, "open", name.ptr);
    if (fsync(fd) && errno != EINVAL) /* EINVAL: a file system without syncs */
        status = fail_errno(file, "sync", name.ptr);
    close(fd);
    return status;
}

enum hf_status hf_engine_snapshot_save(struct hf_scope *s,
                                       const struct hf_engine_snapshot *snapshot,
                                       struct hf_str path)
{
    struct file file = {.s = s, .fd = -1};
    struct hf_str temporary;
    const char *target = NULL; /* which compilers for other machines do not see to be set */
    uint64_t random;
    enum hf_status status;

    hf__scope_error_clear(s);
    if (!snapshot)
        return hf__fail(s, HF_INVALID, "The snapshot to save is NULL");
    TRY(hf__scope_alive(s));
    TRY(path_of(s, path, &target));
    hf__env_random(hf__scope_env(s), &random, sizeof(random));
    temporary = hf_scope_format(s, "%s.%016llx", target, (unsigned long long)random);
    if (!temporary.ptr)
        return hf__fail_nomem(s);
    file.path = temporary.ptr;
    file.fd = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    if (file.fd < 0)
        return fail_errno(&file, "create", file.path);
    status = put_all(&file, snapshot);
    if (close(file.fd) && status == HF_OK)
        status = fail_errno(&file, "write", file.path);
    hf__kill_point("before_snapshot_file");
    if (status == HF_OK && rename(file.path, target))
        status = fail_errno(&file, "rename", file.path);
    if (status != HF_OK) {
        unlink(file.path);
        return status;
    }
    return sync_directory(&file, target);
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status fail_damaged(const struct file *file, const char *what)
{
    return hf__fail(file->s, HF_CORRUPT, "The snapshot in %s is damaged: %s", file->path, what);
}

static enum hf_status fail_block(const struct file *file, uint64_t number, const char *what)
{
    return hf__fail(file->s, HF_CORRUPT, "The snapshot in %s is damaged: block %llu %s", file->path,
                    (unsigned long long)number, what);
}

static enum hf_status file_read(struct file *file, uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = read(file->fd, bytes, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno(file, "read", file->path);
        if (done == 0)
            return fail_damaged(file, "it is truncated");
        bytes += done;
        len -= (size_t)done;
        file->at += (uint64_t)done;
    }
    return HF_OK;
}

/* The numbers of the head, which have to match the rest of the file. */
struct promised {
    uint64_t entries;
    uint64_t bytes;
    uint64_t blocks;
    uint64_t length; /* of the file, as the system has it */
};

static enum hf_status get_head(struct file *file, struct hf_engine_snapshot *snapshot,
                               struct promised *promised)
{
    uint8_t head[HEAD];
    uint64_t next_id;

    TRY(file_read(file, head, sizeof(head)));
    if (memcmp(head, head_magic, sizeof(head_magic)) != 0)
        return fail_damaged(file, "it is not a snapshot file");
    if (load_u64le(head + HEAD_HASHED) != XXH3_64bits(head, HEAD_HASHED))
        return fail_damaged(file, "the checksum of its head does not match");
    if (load_u32le(head + 8) > VERSION)
        return hf__fail(
            file->s, HF_FORMAT,
            "The snapshot in %s has version %u; this library supports versions up to %d",
            file->path, load_u32le(head + 8), VERSION);
    next_id = load_u64le(head + 24);
    if (load_u32le(head + 8) != VERSION || next_id == 0 || next_id > UINT32_MAX ||
        load_u64le(head + 32) >= SEQUENCE_MAX)
        return fail_damaged(file, "its head is invalid");
    chain_add(file, head + HEAD_HASHED);
    snapshot->size.taken_us = (int64_t)load_u64le(head + 16);
    snapshot->next_id = (uint32_t)next_id;
    snapshot->sequence = load_u64le(head + 32);
    promised->entries = load_u64le(head + 40);
    promised->bytes = load_u64le(head + 48);
    promised->blocks = load_u64le(head + 56);
    return HF_OK;
}

static bool good_items(const uint8_t *item, uint32_t len)
{
    return len == 0 || hf__item_valid(item, len);
}

/*
 * Check what the engine reads without further checks: lengths of keys, and the inside of items. The
 * records of tables, streams and backups are checked when they are restored.
 */
static bool good_entry(struct hf_scope *s, struct hf_bytes key, struct hf_bytes value)
{
    struct record_head head;
    struct row row;

    switch (key.ptr[0]) {
    case SPACE_TABLE:
    case SPACE_STREAM:
    case SPACE_BACKUP:
    case SPACE_TOKEN:
        return true;
    case SPACE_ERASE:
        return key.len == 6;
    case SPACE_ITEM:
    case SPACE_INDEX:
    case SPACE_COPY:
        return key.len > PREFIX_LEN && hf__row_decode(s, value, &row) == HF_OK &&
               hf__item_valid(row.item.ptr, row.item.len) && hf_item_size(row.item) == row.size;
    case SPACE_RECORD:
        return key.len == RECORD_KEY && load_u64be(key.ptr + 7) < SEQUENCE_MAX &&
               hf__stream_record_head_get(value, &head) &&
               hf__item_valid(value.ptr + RECORD_HEAD, head.keys_len) &&
               good_items(value.ptr + RECORD_HEAD + head.keys_len, head.new_len) &&
               good_items(value.ptr + RECORD_HEAD + head.keys_len + head.new_len, head.old_len);
    case SPACE_EXPIRY:
        return key.len > PREFIX_LEN + 8;
    case SPACE_TOKEN_AGE:
        return key.len >= 1 + 8;
    default:
        return false;
    }
}

/* Are these entries, in the order of keys, of kinds that we know? Counts them. */
static bool good_entries(struct hf_scope *s, struct hf_engine_snapshot *snapshot,
                         struct hf_bytes *last)
{
    struct snapshot_block *block = snapshot->last;
    uint32_t entries = 0;
    size_t at = 0;

    while (at < block->len) {
        const uint8_t *from = block->bytes + at;
        size_t left = block->len - at;
        struct hf_bytes key, value;

        if (left < SNAPSHOT_HEAD || load_u32le(from) == 0 ||
            (uint64_t)load_u32le(from) + load_u32le(from + 4) > left - SNAPSHOT_HEAD)
            return false;
        key = hf_bytes_of(from + SNAPSHOT_HEAD, load_u32le(from));
        value = hf_bytes_of(key.ptr + key.len, load_u32le(from + 4));
        if (!good_entry(s, key, value) ||
            bytes_compare(last->ptr, last->len, key.ptr, key.len) >= 0)
            return false;
        hf__snapshot_count(snapshot, key, value);
        *last = key;
        entries++;
        at += SNAPSHOT_HEAD + key.len + value.len;
    }
    assert(at == block->len);
    return entries == block->entries;
}

static enum hf_status get_block(struct file *file, struct hf_engine_snapshot *snapshot,
                                uint64_t number, uint64_t length, struct hf_bytes *last)
{
    struct snapshot_block *block;
    uint8_t head[BLOCK_HEAD];
    uint32_t len;

    TRY(file_read(file, head, sizeof(head)));
    len = load_u32le(head + 8);
    if (file->at > length || len > length - file->at) /* before memory is allocated for it */
        return fail_block(file, number, "is longer than the file");
    block = hf__snapshot_block(snapshot, len);
    if (!block)
        return hf__fail_nomem(file->s);
    block->len = len;
    block->entries = load_u32le(head + 12);
    TRY(file_read(file, block->bytes, len));
    if (load_u64le(head) != block_hash(head + 8, block, number))
        return fail_block(file, number, "does not match its checksum");
    if (!good_entries(file->s, snapshot, last))
        return fail_block(file, number, "has invalid or unordered entries");
    chain_add(file, head);
    return HF_OK;
}

static enum hf_status get_trailer(struct file *file, const struct promised *promised)
{
    uint8_t trailer[TRAILER];

    TRY(file_read(file, trailer, sizeof(trailer)));
    if (memcmp(trailer, trailer_magic, sizeof(trailer_magic)) != 0 ||
        load_u64le(trailer + 8) != file->at || load_u64le(trailer + 16) != file->chain)
        return fail_damaged(file, "its trailer is invalid");
    return file->at == promised->length ? HF_OK : fail_damaged(file, "data follows its end");
}

static enum hf_status get_all(struct file *file, struct hf_engine_snapshot *snapshot)
{
    struct promised promised = {.length = 0};
    struct hf_bytes last = hf_bytes_of(NULL, 0);
    struct stat info;

    if (fstat(file->fd, &info))
        return fail_errno(file, "read", file->path);
    if (!S_ISREG(info.st_mode))
        return hf__fail(file->s, HF_IO, "Cannot read %s: it is not a regular file", file->path);
    promised.length = (uint64_t)info.st_size;
    TRY(get_head(file, snapshot, &promised));
    for (uint64_t i = 0; i < promised.blocks; i++) {
        TRY(hf__scope_alive(file->s));
        TRY(get_block(file, snapshot, i, promised.length, &last));
    }
    if (snapshot->size.entries != promised.entries || snapshot->size.bytes != promised.bytes)
        return fail_damaged(file, "its blocks do not match its head");
    return get_trailer(file, &promised);
}

enum hf_status hf_engine_snapshot_load(struct hf_scope *s, struct hf_str path,
                                       struct hf_engine_snapshot **snapshot)
{
    struct file file = {.s = s};
    enum hf_status status;

    *snapshot = NULL;
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    TRY(path_of(s, path, &file.path));
    file.fd = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file.fd < 0)
        return fail_errno(&file, "open", file.path);
    status = hf__snapshot_new(s, snapshot);
    if (status == HF_OK)
        status = get_all(&file, *snapshot);
    close(file.fd);
    if (status != HF_OK) {
        hf_engine_snapshot_free(*snapshot);
        *snapshot = NULL;
    }
    return status;
}
