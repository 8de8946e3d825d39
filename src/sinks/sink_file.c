/*
 * sinks/sink_file.c: lines at the end of a file.
 *
 *     open, lock -> is it still the file of that name? -> repair its end -> write -> sync -> unlock
 *
 * The file is looked up again for each batch, so it can be renamed away at any time, by logrotate
 * for one: the next batch goes to a new file. Several relays may write to one file, as each holds
 * its lock (flock) while it does.
 *
 * What always holds, whenever the lock is not held:
 *
 *  (1) The file ends with a line end, or is empty, unless a process died while writing, or the disk
 *      was full and the incomplete line could not be removed. The next writer repairs that: an
 *      incomplete line of ours is removed, as its event was not done and comes again; any other
 *      incomplete line stays, and gets its line end.
 *  (2) A delivery is done when its line was synced (or written, with sync=no). After a failed sync
 *      the kernel's pages are not trusted any more: the file is opened again, and the batch is
 *      written again.
 */
#include "sinks/private.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_MODE = 0640,
    REOPENS_MAX = 100,          /* how often the file may be replaced while we wait for its lock */
    LOCK_MS = 10,               /* between two attempts to lock */
    TAIL_MAX = 16 * 1024 * 1024 /* bytes; a line of ours is shorter */
};

/* How every line of ours begins: see event_json.c. */
#define OUR_LINE "{\"specversion\":\"1.0\","

struct options {
    int form; /* enum line_form */
    enum hf_flag sync;
    uint64_t batch;
};

struct file {
    struct hf_env env;
    struct options options;
    struct hf_str path; /* followed by a NUL */
    int fd;             /* -1: not open */
};

static const struct sink_option options[] = {
    {"form", SINK_WORD, offsetof(struct options, form), 0, 0, "event|payload|outbox-event-bus"},
    {"sync", SINK_YES_NO, offsetof(struct options, sync), 0, 0, NULL},
    {"batch", SINK_NUMBER, offsetof(struct options, batch), 1, 10000, NULL},
};

static enum hf_status fail_errno(struct hf_scope *s, const struct file *file, const char *what)
{
    enum hf_status status = errno == ENOSPC || errno == EDQUOT ? HF_NO_SPACE : HF_IO;

    return hf__fail(s, status, "%s %s failed: %s", what, file->path.ptr, strerror(errno));
}

/* ---- opening -------------------------------------------------------------------------------- */

static void file_drop(struct file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* A new file is there after a crash only when its directory was synced, too. */
static enum hf_status sync_directory(struct hf_scope *s, const struct file *file)
{
    char *copy = hf_scope_alloc(s, file->path.len + 1);
    int fd, failed;

    if (!copy)
        return hf__fail_nomem(s);
    memcpy(copy, file->path.ptr, file->path.len + 1);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    failed = fd < 0 || fsync(fd) != 0;
    if (fd >= 0)
        close(fd);
    return failed ? fail_errno(s, file, "syncing the directory of") : HF_OK;
}

static enum hf_status file_open(struct hf_scope *s, struct file *file)
{
    /* O_NONBLOCK: a FIFO without a reader must not keep us; it does nothing to a file. */
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    struct stat info;
    bool made = false;

    assert(file->fd < 0);
    file->fd = open(file->path.ptr, flags);
    if (file->fd < 0 && errno == ENOENT) {
        file->fd = open(file->path.ptr, flags | O_CREAT, FILE_MODE);
        made = true;
    }
    if (file->fd < 0)
        return fail_errno(s, file, "opening");
    if (fstat(file->fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        file_drop(file);
        return hf__fail(s, HF_INVALID, "%s is not a regular file", file->path.ptr);
    }
    if (made && file->options.sync != HF_NO) {
        enum hf_status status = sync_directory(s, file);

        if (status != HF_OK)
            file_drop(file);
        return status;
    }
    return HF_OK;
}

/* Is the open file the one that the path leads to? */
static bool is_current(const struct file *file)
{
    struct stat ours, theirs;

    return fstat(file->fd, &ours) == 0 && stat(file->path.ptr, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

static enum hf_status file_lock(struct hf_scope *s, const struct file *file)
{
    assert(file->fd >= 0);
    while (flock(file->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return fail_errno(s, file, "locking");
        TRY(hf_scope_sleep_ms(s, LOCK_MS));
    }
    return HF_OK;
}

/* Open and lock the file that has the name at this moment. */
static enum hf_status file_take(struct hf_scope *s, struct file *file)
{
    for (int i = 0; i < REOPENS_MAX; i++) {
        enum hf_status status;

        if (file->fd < 0)
            TRY(file_open(s, file));
        status = file_lock(s, file);
        if (status == HF_OK && is_current(file))
            return HF_OK;
        file_drop(file); /* and the lock with it */
        TRY(status);
    }
    return hf__fail(s, HF_IO, "%s was replaced %d times while this process waited for its lock",
                    file->path.ptr, REOPENS_MAX);
}

/* ---- the end of the file -------------------------------------------------------------------- */

/* Where an incomplete last line begins; the file's length if the last line is complete. */
static enum hf_status find_torn(struct hf_scope *s, const struct file *file, off_t size, off_t *at)
{
    char block[4096];
    off_t from = size;

    assert(size >= 0);
    *at = 0;
    while (from > 0 && size - from < TAIL_MAX) {
        size_t len = from < (off_t)sizeof(block) ? (size_t)from : sizeof(block);
        const char *line_end;

        if (pread(file->fd, block, len, from - (off_t)len) != (ssize_t)len)
            return fail_errno(s, file, "reading");
        from -= (off_t)len;
        line_end = memrchr(block, '\n', len);
        if (line_end) {
            *at = from + (off_t)(line_end - block) + 1;
            return HF_OK;
        }
    }
    assert(from >= 0 && from <= size);
    *at = from;
    return HF_OK;
}

/* (1) */
static enum hf_status file_repair(struct hf_scope *s, const struct file *file, off_t *size)
{
    char start[sizeof(OUR_LINE) - 1];
    struct stat info;
    off_t torn;
    size_t len, written;

    if (fstat(file->fd, &info) != 0)
        return fail_errno(s, file, "reading the size of");
    *size = info.st_size;
    TRY(find_torn(s, file, *size, &torn));
    assert(torn >= 0 && torn <= *size);
    if (torn == *size)
        return HF_OK;
    len = *size - torn < (off_t)sizeof(start) ? (size_t)(*size - torn) : sizeof(start);
    if (pread(file->fd, start, len, torn) != (ssize_t)len)
        return fail_errno(s, file, "reading");
    if (memcmp(start, OUR_LINE, len) == 0) {
        if (ftruncate(file->fd, torn) != 0)
            return fail_errno(s, file, "removing an incomplete line from");
        hf__env_log(&file->env, HF_LOG_WARNING, "sink: removed an incomplete line at the end of %s",
                    file->path.ptr);
        *size = torn;
        return HF_OK;
    }
    TRY(hf__lines_write(s, file->path.ptr, file->fd, hf_bytes_of("\n", 1), &written));
    *size += 1;
    return HF_OK;
}

static enum hf_status file_append(struct hf_scope *s, const struct file *file, struct hf_bytes text)
{
    enum hf_status status;
    size_t written;
    off_t size = 0;

    assert(text.len > 0 && text.ptr[text.len - 1] == '\n');
    TRY(file_repair(s, file, &size));
    status = hf__lines_write(s, file->path.ptr, file->fd, text, &written);
    if (status != HF_OK) {
        if (written > 0 && ftruncate(file->fd, size) != 0)
            hf__env_log(&file->env, HF_LOG_WARNING,
                        "sink: could not remove an incomplete batch at the end of %s",
                        file->path.ptr);
        return status;
    }
    if (file->options.sync != HF_NO && fdatasync(file->fd) != 0)
        return fail_errno(s, file, "syncing");
    return HF_OK;
}

/* ---- the sink ------------------------------------------------------------------------------- */

static enum hf_status file_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    struct file *file = self;
    enum hf_status status;
    struct lines lines;

    TRY(hf__lines_make(s, (enum line_form)file->options.form, deliveries, len, &lines));
    if (lines.text.len == 0)
        return HF_OK;
    TRY(file_take(s, file));
    assert(file->fd >= 0);
    status = file_append(s, file, lines.text);
    if (status != HF_OK) {
        file_drop(file); /* (2) */
        return status;
    }
    flock(file->fd, LOCK_UN);
    hf__lines_done(&lines, deliveries, len, lines.text.len);
    return HF_OK;
}

static enum hf_status file_probe(struct hf_scope *s, void *self)
{
    struct file *file = self;

    TRY(file_take(s, file));
    flock(file->fd, LOCK_UN);
    return HF_OK;
}

static void file_close(void *self)
{
    struct file *file = self;
    struct hf_env env = file->env;

    file_drop(file);
    hf__env_free(&env, file, sizeof(*file));
}

enum hf_status hf__sink_file_open(struct hf_scope *s, const struct sink_url *url,
                                  struct hf_sink **sink)
{
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "file",
                              .workers = 1,
                              .keeps_order = true,
                              .send = file_send,
                              .probe = file_probe,
                              .close = file_close};
    struct file *file = hf__env_alloc(hf_scope_env(s), sizeof(*file));
    enum hf_status status;

    if (!file)
        return hf__fail_nomem(s);
    *file = (struct file){.env = *hf_scope_env(s),
                          .options = {.form = LINE_EVENT, .batch = LINES_BATCH},
                          .fd = -1};
    status = hf__sink_options(s, url, options, ARRAY_LEN(options), &file->options);
    if (status == HF_OK)
        status = hf__sink_decode(s, url->memory, "the path", url->rest, &file->path);
    if (status == HF_OK && (!file->path.len || memchr(file->path.ptr, '\0', file->path.len)))
        status = hf__fail(s, HF_INVALID, "the URL of a file sink is file:PATH");
    ops.batch_max = file->options.batch;
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, file, sink);
    if (status != HF_OK)
        file_close(file);
    return status;
}
