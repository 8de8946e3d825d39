/*
 * cli/transfer/transfer_file.c: names of files, small files that are there whole or not at all, and state
 * files.
 *
 * What always holds: hf__transfer_write_file() replaces a file by rename(), after the new one and before
 * its directory was synced; so after a crash it is the old or the new one.
 */
#include "cli/transfer/transfer.h"

#include "base/base.h"
#include "base/md5.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_MAX = 64 * 1024 * 1024, READ_BYTES = 64 * 1024, DIR_MODE = 0777, FILE_MODE = 0666 };

/* ---- names ---------------------------------------------------------------------------------- */

bool hf__transfer_exists(struct hf_str path)
{
    struct stat about;

    return path.ptr && stat(path.ptr, &about) == 0;
}

bool hf__transfer_ends_with(const char *path, const char *end)
{
    size_t len = strlen(path), end_len = strlen(end);

    return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

struct hf_str hf__transfer_base_name(struct hf_str path)
{
    const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;

    return slash ? hf_str_of(slash + 1, path.len - (size_t)(slash + 1 - path.ptr)) : path;
}

/* Which formats the ends of names stand for. */
static const struct {
    const char *end;
    enum transfer_format format;
} ends[] = {
    {".jsonl", TRANSFER_JSONL},
    {".ndjson", TRANSFER_JSONL},
    {".json", TRANSFER_JSONL},
    {".csv", TRANSFER_CSV},
};

/* How long the name is without .gz. */
static size_t plain_len(const char *path)
{
    return strlen(path) - (hf__transfer_ends_with(path, ".gz") ? strlen(".gz") : 0);
}

static size_t ending_find(const char *path)
{
    size_t len = plain_len(path);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t end_len = strlen(ends[i].end);

        if (len > end_len && strncmp(path + len - end_len, ends[i].end, end_len) == 0)
            return i;
    }
    return sizeof(ends) / sizeof(ends[0]);
}

enum transfer_format hf__transfer_format_of(const char *path)
{
    size_t at = ending_find(path);

    return at < sizeof(ends) / sizeof(ends[0]) ? ends[at].format : TRANSFER_AUTO;
}

struct hf_str hf__transfer_stem(struct hf_scope *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t at = ending_find(name);
    size_t len = plain_len(name);

    if (at < sizeof(ends) / sizeof(ends[0]))
        len -= strlen(ends[at].end);
    return hf_scope_copy(s, hf_str_of(name, len));
}

/* ---- files ---------------------------------------------------------------------------------- */

enum hf_status hf__transfer_fail(struct hf_scope *s, const char *path, int error)
{
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;

    return hf_scope_fail(s, full ? HF_NO_SPACE : HF_IO, "%s: %s", path, strerror(error));
}

enum hf_status hf__transfer_make_dir(struct hf_scope *s, const char *path)
{
    if (mkdir(path, DIR_MODE) == 0)
        return hf__transfer_sync_dir(s, path);
    return errno == EEXIST ? HF_OK : hf__transfer_fail(s, path, errno);
}

enum hf_status hf__transfer_sync_dir(struct hf_scope *s, const char *path_in_it)
{
    const char *slash = strrchr(path_in_it, '/');
    struct hf_str dir = HF_STR(".");
    int fd, error;

    if (slash)
        dir = slash == path_in_it
                  ? HF_STR("/")
                  : hf_scope_copy(s, hf_str_of(path_in_it, (size_t)(slash - path_in_it)));
    if (!dir.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    fd = open(dir.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return hf__transfer_fail(s, dir.ptr, errno);
    error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno; /* some file systems have no such sync */
    close(fd);
    return error ? hf__transfer_fail(s, dir.ptr, error) : HF_OK;
}

static int write_all(int fd, struct hf_str text)
{
    while (text.len) {
        ssize_t done = write(fd, text.ptr, text.len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        text = hf_str_of(text.ptr + done, text.len - (size_t)done);
    }
    return 0;
}

enum hf_status hf__transfer_write_file(struct hf_scope *s, const char *path, struct hf_str text)
{
    struct hf_str temporary = hf_scope_format(s, "%s.part", path);
    int fd, error;

    if (!temporary.ptr || !text.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    fd = open(temporary.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0)
        return hf__transfer_fail(s, path, errno);
    error = write_all(fd, text);
    if (!error && fsync(fd) != 0)
        error = errno;
    close(fd);
    if (!error && rename(temporary.ptr, path) != 0)
        error = errno;
    if (error) {
        unlink(temporary.ptr);
        return hf__transfer_fail(s, path, error);
    }
    return hf__transfer_sync_dir(s, path);
}

/* ---- checksums ------------------------------------------------------------------------------ */

static void md5_texts(const uint8_t digest[MD5_LEN], struct transfer_md5 *md5)
{
    hf__md5_base64(digest, md5->base64);
    hex_write(md5->hex, digest, MD5_LEN);
    md5->hex[2 * MD5_LEN] = '\0';
}

enum hf_status hf__transfer_md5_file(struct hf_scope *s, const char *path, struct transfer_md5 *md5)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t room[READ_BYTES], digest[MD5_LEN];
    struct md5 sum;
    ssize_t got;
    int error;

    if (fd < 0)
        return hf__transfer_fail(s, path, errno);
    hf__md5_begin(&sum);
    while ((got = read(fd, room, sizeof(room))) > 0)
        hf__md5_add(&sum, room, (size_t)got);
    error = got < 0 ? errno : 0;
    close(fd);
    if (error)
        return hf__transfer_fail(s, path, error);
    hf__md5_end(&sum, digest);
    md5_texts(digest, md5);
    return HF_OK;
}

void hf__transfer_md5_text(struct hf_str text, struct transfer_md5 *md5)
{
    uint8_t digest[MD5_LEN];
    struct md5 sum;

    hf__md5_begin(&sum);
    hf__md5_add(&sum, text.ptr, text.len);
    hf__md5_end(&sum, digest);
    md5_texts(digest, md5);
}

/* ---- states --------------------------------------------------------------------------------- */

const struct json_node *hf__transfer_state_read(struct hf_scope *s, const char *path,
                                                struct hf_str *error)
{
    const struct json_node *state;
    struct hf_str text, why = {0};

    *error = (struct hf_str){0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return NULL;
    text = hf__input_read(s, path, STATE_MAX, error);
    if (!text.ptr)
        return NULL;
    state = hf__cli_json_read(s, text, &why);
    if (state && state->kind == JSON_OBJECT)
        return state;
    *error = hf_scope_format(s, "%s: not the state of a transfer: %.*s", path, HF_FMT(why));
    return NULL;
}

bool hf__transfer_state_number(const struct json_node *state, const char *name, uint64_t *number)
{
    const struct json_node *member = hf__cli_json_member(state, name);

    return member && member->kind == JSON_NUMBER && hf__options_number(member->text.ptr, number);
}

struct hf_str hf__transfer_state_text(const struct json_node *state, const char *name)
{
    const struct json_node *member = hf__cli_json_member(state, name);

    return member && member->kind == JSON_STRING ? member->text : (struct hf_str){0};
}
