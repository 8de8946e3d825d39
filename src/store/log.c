/*
 * store/log.c: writing the log. How it lies in its files is in log_form.h, how it is read again in
 * log_read.c.
 *
 * Appending copies a record to the end of a buffer. Flushing takes the buffer away, so that others
 * go on with another, gives each record the rest of its head, and hands all of them to the file in
 * one write. Between two records it may begin the next segment.
 *
 * A sync is cheap when the file's space is there and has been written before: no block has to be
 * found, no size to be changed, only data goes to the disk. So a segment is filled with zeros ahead
 * of its end, and files whose changes are in the database's tables are used again.
 *
 * What always holds:
 *
 *  (1) Records go to the files in the order of their changes, and a segment is begun only when the
 *      one before it has all of its own; with `syncs`, when that is synced, too.
 *  (2) Zeros are never written to where a record may be: the region that is being filled lies
 *      behind `filled`, and whoever writes beyond `filled` waits until nobody fills.
 *  (3) A name that a segment is begun under is in the directory, durably, before.
 *  (4) `order` is held only to copy, and by the store to apply what was appended.
 */
#include "store/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/buf.h"
#include "base/kill.h"
#include "store/log_form.h"

enum {
    MODE_DIRECTORY = 0700,
    MODE_FILE = 0600,
    ZEROS = 64 * 1024,
    FILL_STEP = 1024 * 1024,
    BUFFER_KEPT = 4 * 1024 * 1024 /* a buffer that grew larger is given back */
};

struct log {
    struct hf_env env;
    struct log_options options;
    int dir;

    pthread_mutex_t order; /* guards the next, and changes of `last` */
    struct hf__buf filling;
    atomic_uint_fast64_t last;

    struct hf__buf writing; /* whoever flushes uses these three */
    uint64_t number;
    bool failed;

    pthread_mutex_t lock; /* guards all below; number and file change under it, too */
    pthread_cond_t filled_some;
    int file;
    uint64_t first;  /* change of the segment */
    uint64_t at;     /* where the next record goes */
    uint64_t filled; /* before this, space is there */
    bool is_filling;
    uint64_t oldest; /* the lowest number of a file; == number when there is no other */
    int spare;       /* the next file, or -1 */
    atomic_bool wants;
};

/* ---- files ---------------------------------------------------------------------------------- */

static enum hf_status fail_errno(struct hf_scope *s, const struct log *log, const char *what)
{
    int error = errno;
    char room[128];

    return hf__fail(s, error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO, "Cannot %s %s: %s",
                    what, log->options.path, strerror_r(error, room, sizeof(room)));
}

static bool write_at(int fd, const void *bytes, size_t len, uint64_t at)
{
    const uint8_t *from = bytes;

    while (len > 0) {
        ssize_t put = pwrite(fd, from, len, (off_t)at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            errno = put ? errno : ENOSPC;
            return false;
        }
        from += put;
        at += (uint64_t)put;
        len -= (size_t)put;
    }
    return true;
}

/* Make the file of that number, or -1. Its name is durable. */
static int make_file(const struct log *log, uint64_t number)
{
    char name[LOG_NAME];
    int fd;

    hf__log_name(number, name);
    fd = openat(log->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    if (fd >= 0 && fsync(log->dir)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static uint64_t size_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) ? 0 : (uint64_t)info.st_size;
}

/* Begin the next segment with change `first`. With `lock` held. */
static bool begin_segment(struct log *log, uint64_t first)
{
    uint8_t head[LOG_HEAD];
    int file = log->spare;

    if (file < 0)
        file = make_file(log, log->number + 1);
    log->spare = -1;
    if (file < 0)
        return false;
    memcpy(head, log_magic, sizeof(log_magic));
    store_u64le(head + 8, log->number + 1);
    store_u64le(head + 16, first);
    store_u64le(head + 24, XXH3_64bits(head, 24));
    if (!write_at(file, head, sizeof(head), 0)) {
        close(file);
        return false;
    }
    if (log->file >= 0)
        close(log->file);
    log->file = file;
    log->number++;
    log->first = first;
    log->at = LOG_START;
    log->filled = size_of(file);
    if (log->filled < LOG_START)
        log->filled = LOG_START;
    if (log->oldest < log->number)
        atomic_store(&log->wants, true);
    hf__kill_point("log_segment");
    return true;
}

/* ---- opening and closing -------------------------------------------------------------------- */

void hf__log_close(struct log *log)
{
    struct hf_env env;

    if (!log)
        return;
    if (log->file >= 0)
        close(log->file);
    if (log->spare >= 0)
        close(log->spare);
    if (log->dir >= 0)
        close(log->dir);
    hf__buf_free(&log->filling);
    hf__buf_free(&log->writing);
    pthread_mutex_destroy(&log->order);
    pthread_mutex_destroy(&log->lock);
    pthread_cond_destroy(&log->filled_some);
    env = log->env;
    hf__env_free(&env, log, sizeof(*log));
}

static struct log *log_new(const struct log_options *options)
{
    struct log *log = hf__env_alloc(options->env, sizeof(*log));
    pthread_mutexattr_t attr;

    if (!log)
        return NULL;
    *log =
        (struct log){.env = *options->env, .options = *options, .dir = -1, .file = -1, .spare = -1};
    log->options.env = &log->env;
    log->filling.env = log->writing.env = &log->env;
    atomic_init(&log->last, 0);
    atomic_init(&log->wants, false);
    /* Held for microseconds: two who meet are better off turning a few rounds than asleep. */
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&log->order, &attr);
    pthread_mutexattr_destroy(&attr);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->filled_some, NULL);
    return log;
}

static enum hf_status open_directory(struct hf_scope *s, struct log *log)
{
    bool made = mkdir(log->options.path, MODE_DIRECTORY) == 0;

    if (!made && errno != EEXIST)
        return fail_errno(s, log, "create");
    log->dir = open(log->options.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return log->dir < 0 ? fail_errno(s, log, "open") : HF_OK;
}

/* Remove all files but the newest, and use that one again: nothing in them is needed. */
static enum hf_status start_over(struct hf_scope *s, struct log *log)
{
    char name[LOG_NAME], next[LOG_NAME];
    uint64_t *numbers;
    size_t len;

    TRY(hf__log_list(s, log->options.path, log->dir, &numbers, &len));
    log->number = len ? numbers[len - 1] : 0;
    log->oldest = log->number + 1;
    for (size_t i = 0; i + 1 < len; i++) {
        hf__log_name(numbers[i], name);
        if (unlinkat(log->dir, name, 0))
            return fail_errno(s, log, "remove a file of");
    }
    if (!len)
        return HF_OK;
    hf__log_name(log->number, name);
    hf__log_name(log->number + 1, next);
    log->spare = openat(log->dir, name, O_RDWR | O_CLOEXEC);
    if (log->spare < 0 || renameat(log->dir, name, log->dir, next) || fsync(log->dir))
        return fail_errno(s, log, "use a file again in");
    return HF_OK;
}

static enum hf_status read_back(struct hf_scope *s, struct log *log, const struct log_marks *marks,
                                log_replay_fn *replay, void *user)
{
    const struct log_reading reading = {.env = &log->env,
                                        .path = log->options.path,
                                        .dir = log->dir,
                                        .durable = marks->durable,
                                        .based = marks->based,
                                        .sync = log->options.syncs,
                                        .replay = replay,
                                        .user = user};
    struct log_found found;
    uint64_t *numbers;
    size_t len;

    TRY(hf__log_read(s, &reading, &found));
    TRY(hf__log_list(s, log->options.path, log->dir, &numbers, &len));
    log->number = found.number;
    log->oldest = len ? numbers[0] : found.number + 1;
    atomic_store(&log->last, found.last);
    return HF_OK;
}

static enum hf_status open_inside(struct hf_scope *s, struct log *log,
                                  const struct log_marks *marks, log_replay_fn *replay, void *user)
{
    bool begun;

    TRY(open_directory(s, log));
    if (marks->fresh || marks->clean) {
        atomic_store(&log->last, marks->fresh ? marks->durable : marks->clean);
        TRY(start_over(s, log));
    } else {
        TRY(read_back(s, log, marks, replay, user));
    }
    pthread_mutex_lock(&log->lock);
    begun = begin_segment(log, atomic_load(&log->last) + 1) && fdatasync(log->file) == 0;
    pthread_mutex_unlock(&log->lock);
    return begun ? HF_OK : fail_errno(s, log, "begin a file of");
}

enum hf_status hf__log_open(struct hf_scope *s, const struct log_options *options,
                            const struct log_marks *marks, log_replay_fn *replay, void *user,
                            struct log **log)
{
    struct log *made = log_new(options);
    enum hf_status status;

    *log = NULL;
    if (!made)
        return hf__fail_nomem(s);
    status = open_inside(s, made, marks, replay, user);
    if (status != HF_OK) {
        hf__log_close(made);
        return status;
    }
    *log = made;
    return HF_OK;
}

/* ---- appending ------------------------------------------------------------------------------ */

void hf__log_begin(struct log *log)
{
    pthread_mutex_lock(&log->order);
}

void hf__log_end(struct log *log)
{
    pthread_mutex_unlock(&log->order);
}

uint64_t hf__log_last(const struct log *log)
{
    return atomic_load(&log->last);
}

/* What flushing knows better is left 0. */
uint64_t hf__log_append(struct log *log, struct hf_bytes record)
{
    size_t size = log_record_size(record.len);
    uint64_t change = atomic_load_explicit(&log->last, memory_order_relaxed) + 1;
    uint8_t *to =
        record.len <= UINT32_MAX - LOG_START ? hf__buf_reserve(&log->filling, size) : NULL;

    if (!to) {
        log->filling.failed = false; /* what is in it already is whole */
        return 0;
    }
    memset(to, 0, LOG_RECORD_HEAD);
    store_u64le(to + 8, change);
    store_u32le(to + 24, (uint32_t)record.len);
    memcpy(to + LOG_RECORD_HEAD, record.ptr, record.len);
    memset(to + LOG_RECORD_HEAD + record.len, 0, size - LOG_RECORD_HEAD - record.len);
    log->filling.len += size;
    atomic_store(&log->last, change);
    return change;
}

/* ---- flushing ------------------------------------------------------------------------------- */

static void finish_record(uint8_t *head, uint64_t number, uint64_t durable)
{
    store_u64le(head + 16, durable);
    store_u32le(head + 28, (uint32_t)number);
    store_u64le(head, XXH3_64bits_withSeed(head + 8, log_record_size(log_len(head)) - 8, number));
}

/* As many filled bytes shall there be beyond the end: a little for those who write little. */
static uint64_t fill_ahead(const struct log *log)
{
    return log->at > FILL_STEP ? log->at : FILL_STEP;
}

/* Hand bytes to the segment; there is nobody else who does. */
static bool write_out(struct log *log, const uint8_t *bytes, size_t len)
{
    uint64_t at;

    if (len == 0)
        return true;
    pthread_mutex_lock(&log->lock);
    at = log->at;
    log->at += len;
    while (log->is_filling && log->at > log->filled)
        pthread_cond_wait(&log->filled_some, &log->lock);
    if (log->at > log->filled)
        log->filled = log->at;
    if (log->options.syncs && log->filled < log->options.segment_bytes &&
        log->filled - log->at < fill_ahead(log) / 2)
        atomic_store(&log->wants, true);
    pthread_mutex_unlock(&log->lock);
    return write_at(log->file, bytes, len, at);
}

static bool next_segment(struct log *log, uint64_t first)
{
    bool begun;

    if (log->options.syncs && fdatasync(log->file))
        return false;
    pthread_mutex_lock(&log->lock);
    while (log->is_filling)
        pthread_cond_wait(&log->filled_some, &log->lock);
    begun = begin_segment(log, first);
    pthread_mutex_unlock(&log->lock);
    return begun;
}

/* Everything in `writing`. */
static bool write_records(struct log *log, uint64_t durable)
{
    uint8_t *end = log->writing.ptr + log->writing.len;
    uint8_t *from = log->writing.ptr;
    uint64_t at = log->at;

    for (uint8_t *head = from; head < end;) {
        size_t size = log_record_size(log_len(head));

        if (at > LOG_START && at + size > log->options.segment_bytes) {
            if (!write_out(log, from, (size_t)(head - from)) ||
                !next_segment(log, log_change(head)))
                return false;
            from = head;
            at = LOG_START;
        }
        finish_record(head, log->number, durable);
        at += size;
        head += size;
    }
    return write_out(log, from, (size_t)(end - from));
}

bool hf__log_flush(struct log *log, uint64_t durable, bool sync, uint64_t *upto)
{
    struct hf__buf taken;
    bool done;

    if (log->failed) {
        errno = EIO;
        return false;
    }
    pthread_mutex_lock(&log->order);
    taken = log->filling;
    log->filling = log->writing;
    *upto = atomic_load_explicit(&log->last, memory_order_relaxed);
    pthread_mutex_unlock(&log->order);
    log->writing = taken;
    done = (log->writing.len == 0 || write_records(log, durable)) &&
           (!sync || fdatasync(log->file) == 0);
    log->failed = !done;
    log->writing.len = 0;
    if (log->writing.cap > BUFFER_KEPT) {
        int error = errno;

        hf__buf_free(&log->writing);
        log->writing.env = &log->env;
        errno = error;
    }
    return done;
}

bool hf__log_sync(struct log *log)
{
    int fd, error;
    bool done;

    pthread_mutex_lock(&log->lock);
    fd = fcntl(log->file, F_DUPFD_CLOEXEC, 0); /* the segment may be over meanwhile */
    pthread_mutex_unlock(&log->lock);
    if (fd < 0)
        return false;
    done = fdatasync(fd) == 0;
    error = errno;
    close(fd);
    errno = error;
    return done;
}

/* ---- tending -------------------------------------------------------------------------------- */

bool hf__log_wants(const struct log *log)
{
    return atomic_load_explicit(&log->wants, memory_order_relaxed);
}

static bool write_zeros(int fd, size_t len, uint64_t at)
{
    static const uint8_t zeros[ZEROS];

    for (size_t part; len > 0; len -= part, at += part) {
        part = len < sizeof(zeros) ? len : sizeof(zeros);
        if (!write_at(fd, zeros, part, at))
            return false;
    }
    return fdatasync(fd) == 0;
}

/* Is there something to fill? Then it is ours until is_filling is false again. With `lock` held. */
static bool fill_due(struct log *log, uint64_t *at, size_t *len)
{
    uint64_t end = log->options.segment_bytes;

    if (!log->options.syncs || log->filled >= end || log->filled >= log->at + fill_ahead(log))
        return false;
    *at = log->filled;
    *len = end - log->filled < FILL_STEP ? (size_t)(end - log->filled) : FILL_STEP;
    log->is_filling = true;
    return true;
}

void hf__log_tend(struct log *log)
{
    bool made = true;
    uint64_t at;
    size_t len;

    pthread_mutex_lock(&log->lock);
    atomic_store(&log->wants, false);
    while (made && fill_due(log, &at, &len)) {
        int file = log->file; /* is not closed while somebody fills it */

        pthread_mutex_unlock(&log->lock);
        made = write_zeros(file, len, at);
        pthread_mutex_lock(&log->lock);
        log->is_filling = false;
        if (made)
            log->filled = at + len;
        pthread_cond_broadcast(&log->filled_some);
    }
    if (log->spare < 0 && log->at > log->options.segment_bytes / 2)
        log->spare = make_file(log, log->number + 1);
    pthread_mutex_unlock(&log->lock);
}

bool hf__log_old(struct log *log, uint64_t *upto, uint64_t *number)
{
    bool old;

    pthread_mutex_lock(&log->lock);
    old = log->oldest < log->number;
    *upto = log->first - 1;
    *number = log->number;
    pthread_mutex_unlock(&log->lock);
    return old;
}

void hf__log_trim(struct log *log, uint64_t number)
{
    pthread_mutex_lock(&log->lock);
    for (; log->oldest < number; log->oldest++) {
        char name[LOG_NAME], next[LOG_NAME];

        hf__log_name(log->oldest, name);
        hf__log_name(log->number + 1, next);
        if (log->spare < 0 && renameat(log->dir, name, log->dir, next) == 0) {
            log->spare = openat(log->dir, next, O_RDWR | O_CLOEXEC);
            if (log->spare >= 0 && fsync(log->dir) == 0)
                continue;
            if (log->spare >= 0)
                close(log->spare);
            log->spare = -1;
        } else {
            unlinkat(log->dir, name, 0);
        }
    }
    pthread_mutex_unlock(&log->lock);
}

uint64_t hf__log_bytes(struct log *log)
{
    char name[LOG_NAME];
    struct stat info;
    uint64_t sum = 0;

    pthread_mutex_lock(&log->lock);
    for (uint64_t number = log->oldest; number <= log->number + 1; number++) {
        hf__log_name(number, name);
        if (fstatat(log->dir, name, &info, 0) == 0)
            sum += (uint64_t)info.st_size;
    }
    pthread_mutex_unlock(&log->lock);
    return sum;
}
