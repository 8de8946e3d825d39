/*
 * store/tables_look.c: a check of the table files before RocksDB opens them.
 *
 * RocksDB verifies the checksum of every block before it reads it, but for the properties of a
 * table: their last word it reads first. The word is how many restart points there are, and its
 * highest bit says that the block has a hash index. Properties have none. With the bit flipped,
 * RocksDB looks for the index; as a build with assertions, which Debian's is, it ends the process
 * then (7.8). So we look at this bit in every table before a database is opened.
 *
 * A table ends like this; numbers of blocks are varints, and behind each block are 5 bytes:
 *
 *     properties | metaindex: where blocks are, by name | footer: 53 bytes
 *     footer: checksum type, offset and length of the metaindex, of the index, zeros, u32 version,
 *             u64 magic
 *
 * All other damage is left to RocksDB, which detects it. A file may also be an unfinished table,
 * which RocksDB removes.
 */
#include "store/tables_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t TABLE_MAGIC = 0x88e241b785f4cff7;

enum {
    FOOTER_BYTES = 53,
    MAGIC_BYTES = 8,
    TAIL_BYTES = 4096, /* metaindex, and mostly the end of the properties: read at once */
    NAME_END = 4       /* ".sst" */
};

/* The end of a file. */
struct tail {
    uint8_t bytes[TAIL_BYTES];
    uint64_t from; /* where it begins in the file */
    size_t len;
};

/* ---- what is in it -------------------------------------------------------------------------- */

static bool take_varint(struct hf_bytes *bytes, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; shift < 64 && bytes->len; shift += 7) {
        uint8_t byte = bytes->ptr[0];

        *bytes = hf_bytes_of(bytes->ptr + 1, bytes->len - 1);
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static uint64_t little_endian(const uint8_t *bytes, size_t len)
{
    uint64_t number = 0;

    for (size_t i = len; i-- > 0;)
        number = number << 8 | bytes[i];
    return number;
}

/* Bytes of the file, if they are in its tail; none otherwise. */
static struct hf_bytes part_of(const struct tail *tail, uint64_t offset, uint64_t len)
{
    uint64_t at = offset - tail->from;

    if (offset < tail->from || at > tail->len || len > tail->len - at)
        return hf_bytes_of(NULL, 0);
    return hf_bytes_of(tail->bytes + at, (size_t)len);
}

/* The next entry of a metaindex. */
static bool take_entry(struct hf_bytes *index, struct hf_str *name, struct hf_bytes *value)
{
    uint64_t shared, name_len, value_len;

    if (!take_varint(index, &shared) || !take_varint(index, &name_len) ||
        !take_varint(index, &value_len) || shared != 0 || name_len > index->len ||
        value_len > index->len - name_len)
        return false;
    *name = hf_str_of((const char *)index->ptr, (size_t)name_len);
    *value = hf_bytes_of(index->ptr + name_len, (size_t)value_len);
    *index = hf_bytes_of(value->ptr + value_len, index->len - (size_t)(name_len + value_len));
    return true;
}

/* Where the properties of the table end; false: the metaindex does not say, or is not in the tail.
 */
static bool find_properties(const struct tail *tail, uint64_t *end)
{
    struct hf_bytes footer, index, value;
    struct hf_str name;
    uint64_t offset, len;

    footer = part_of(tail, tail->from + tail->len - FOOTER_BYTES, FOOTER_BYTES);
    if (!footer.ptr ||
        little_endian(footer.ptr + FOOTER_BYTES - MAGIC_BYTES, MAGIC_BYTES) != TABLE_MAGIC)
        return false;
    footer = hf_bytes_of(footer.ptr + 1, footer.len - 1);
    if (!take_varint(&footer, &offset) || !take_varint(&footer, &len))
        return false;
    index = part_of(tail, offset, len);
    do {
        if (!take_entry(&index, &name, &value))
            return false;
    } while (!hf_str_equal(name, HF_STR("rocksdb.properties")));
    if (!take_varint(&value, &offset) || !take_varint(&value, &len))
        return false;
    *end = offset + len;
    return *end > offset;
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool read_tail(int fd, struct tail *tail)
{
    struct stat info;
    ssize_t len;

    if (fstat(fd, &info) || info.st_size < FOOTER_BYTES)
        return false;
    tail->from = info.st_size > TAIL_BYTES ? (uint64_t)info.st_size - TAIL_BYTES : 0;
    tail->len = (size_t)((uint64_t)info.st_size - tail->from);
    len = pread(fd, tail->bytes, tail->len, (off_t)tail->from);
    return len == (ssize_t)tail->len;
}

static bool is_sound(int fd)
{
    struct tail tail;
    uint64_t end;
    uint8_t last;

    if (!read_tail(fd, &tail) || !find_properties(&tail, &end))
        return true;
    return pread(fd, &last, 1, (off_t)(end - 1)) != 1 || !(last & 0x80);
}

static bool is_table(const char *name)
{
    size_t len = strlen(name);

    return len > NAME_END && strcmp(name + len - NAME_END, ".sst") == 0;
}

char *hf__rocksdb_flaw(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    char *error = NULL;

    if (!folder)
        return NULL;
    while (!error && (entry = readdir(folder)) != NULL) {
        int fd;

        if (!is_table(entry->d_name))
            continue;
        fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (!is_sound(fd) &&
            asprintf(&error, "Corruption: %s/%s: the properties of the table are damaged", path,
                     entry->d_name) < 0)
            error = strdup("Corruption: the properties of a table are damaged");
        close(fd);
    }
    closedir(folder);
    return error;
}
