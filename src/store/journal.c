/*
 * store/journal.c: writing the journal. How it lies in its files is in journal_form.h, how it is
 * read again in journal_read.c.
 *
 * A record is written to the end of a buffer, and appended when it is whole. Flushing takes the
 * buffer away, so that others go on with another, gives each record the rest of its head, and hands
 * all of them to the file in one write. Between two records it may begin the next segment.
 *
 * A sync is cheap when the file's space is there and has been written before: no block has to be
 * found, no size to be changed, only data goes to the disk. So a segment is filled with zeros ahead
 * of its end, and files whose changes are in the database's tables are used again: they get the
 * next names, up to `ready`. Until a segment is begun in such a file, its head has another number.
 *
 * What always holds:
 *
 *  (1) Records go to the files in the order of their changes, and a segment is begun only when the
 *      one before it has all of its own; with `syncs`, when that is synced, too.
 *  (2) Zeros are never written to where a record may be: the region that is being filled lies
 *      behind `filled`, and whoever writes beyond `filled` waits until nobody fills.
 *  (3) A name that a segment is begun under is in the directory, durably, before. Its head is
 *      durable with its first record: a sync is one of the whole file.
 *  (4) `order` is held only to write a record to memory, and by the store to apply it.
 *  (5) Flushing and syncing open no file. While no file can be opened for the next segment, records
 *      go on in this one; when it is STRETCH times as long as it should be,
 *      hf__journal_is_stretched() asks callers to append nothing more.
 */
#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/assert_held.h"
#include "base/buf.h"
#include "base/kill.h"
#include "base/spin_lock.h"
#include "store/journal_form.h"

enum {
    MODE_DIRECTORY = 0700,
    MODE_FILE = 0600,
    ZEROS = 64 * 1024,
    FILL_STEP = 1024 * 1024,
    FIRSTS = 64, /* number of segments whose first change is remembered */
    /* a segment grows to this many times its size when no next file can be opened */
    STRETCH = 4,
    BUFFER_KEPT = 4 * 1024 * 1024 /* a buffer that grew larger is freed */
};

struct journal {
    struct hf_env env;
    struct journal_options options;
    uint64_t id; /* of the store */
    int dir;

    pthread_mutex_t order; /* guards `filling`, and changes of `last` */
    struct hf__buf filling;
    atomic_uint_fast64_t last;
    atomic_size_t pending; /* bytes in `filling` */

    struct hf__buf writing; /* these three belong to the thread that flushes */
    uint64_t number;
    bool failed;

    pthread_mutex_t lock; /* guards all below; number and file change under it, too */
    pthread_cond_t filled_some;
    int file;
    uint64_t at;     /* where the next record goes */
    uint64_t filled; /* bytes before this offset are preallocated */
    bool is_filling;
    uint64_t oldest;         /* the lowest number of a file; == number when there is no other */
    uint64_t firsts[FIRSTS]; /* of the newest segments, by number: the first change */
    uint64_t ready;          /* the highest number of a file that has its name, durably */
    int spare;               /* the next file, or -1 */
    int syncing;             /* the file that hf__journal_sync() is at, or -1 */
    bool names_failed;       /* a sync of the directory failed; the next one would not report it */
    atomic_bool needs_work;
    atomic_bool stretched; /* see (5) */
};

/* What holds of files and offsets while nobody holds `lock`. */
static void journal_check(struct journal *journal)
{
    uint64_t number = journal->number;

    ASSERT_HELD(&journal->lock);
    assert(journal->file >= 0 && journal->file != journal->spare);
    assert(number && journal->oldest && journal->oldest <= number);
    assert(journal->ready >= number + (journal->spare >= 0));
    assert(journal->at >= JOURNAL_START && journal->at % JOURNAL_ALIGN == 0);
    assert(journal->firsts[number % FIRSTS] <= atomic_load(&journal->last) + 1);
}

/* ---- files ---------------------------------------------------------------------------------- */

static enum hf_status fail_errno(struct hf_scope *s, const struct journal *journal,
                                 const char *what)
{
    int error = errno;
    char room[128];

    return hf__fail(s, error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO, "Cannot %s %s: %s",
                    what, journal->options.path, strerror_r(error, room, sizeof(room)));
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

/* Create the file of that number, with a durable name; -1: that failed. */
static int make_file(struct journal *journal, uint64_t number)
{
    char name[JOURNAL_NAME];
    int fd;

    assert(number > journal->number);
    hf__journal_name(number, name);
    fd = openat(journal->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    if (fd >= 0 && fsync(journal->dir)) {
        journal->names_failed = true;
        close(fd);
        errno = EIO;
        fd = -1;
    }
    return fd;
}

static uint64_t size_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) ? 0 : (uint64_t)info.st_size;
}

/* The file of the next segment, or -1. The caller holds `lock`, or no other thread has the journal.
 */
static int next_file(struct journal *journal)
{
    uint64_t number = journal->number + 1;
    char name[JOURNAL_NAME];
    int fd = -1;

    if (journal->ready >= number) {
        hf__journal_name(number, name);
        fd = openat(journal->dir, name, O_RDWR | O_CLOEXEC);
    }
    if (fd < 0)
        fd = make_file(journal, number);
    if (fd >= 0 && journal->ready < number)
        journal->ready = number;
    return fd;
}

/* Begin the next segment with change `first`. With `syncs`, everything before it is synced. */
static bool begin_segment(struct journal *journal, uint64_t first, uint64_t durable)
{
    uint8_t head[JOURNAL_HEAD];
    int file = journal->spare;

    ASSERT_HELD(&journal->lock);
    assert(first && !journal->is_filling);
    if (file < 0)
        file = next_file(journal);
    journal->spare = -1;
    if (file < 0)
        return false;
    if (journal->names_failed) {
        close(file);
        errno = EIO;
        return false;
    }
    memcpy(head, journal_magic, sizeof(journal_magic));
    store_u64le(head + 8, journal->number + 1);
    store_u64le(head + 16, first);
    store_u64le(head + 24, journal->id);
    store_u64le(head + 32, journal->options.syncs ? first - 1 : durable);
    store_u64le(head + 40, XXH3_64bits(head, 40));
    if (!write_at(file, head, sizeof(head), 0)) {
        close(file);
        return false;
    }
    if (journal->file >= 0 && journal->file != journal->syncing)
        close(journal->file); /* otherwise the thread that syncs it closes it */
    journal->file = file;
    journal->number++;
    atomic_store(&journal->stretched, false);
    journal->firsts[journal->number % FIRSTS] = first;
    journal->at = JOURNAL_START;
    journal->filled = size_of(file);
    if (journal->filled < JOURNAL_START)
        journal->filled = JOURNAL_START;
    if (journal->oldest < journal->number)
        atomic_store(&journal->needs_work, true);
    journal_check(journal);
    hf__kill_point("journal_segment");
    return true;
}

/* ---- opening and closing -------------------------------------------------------------------- */

void hf__journal_close(struct journal *journal)
{
    struct hf_env env;

    if (!journal)
        return;
    if (journal->file >= 0)
        close(journal->file);
    if (journal->spare >= 0)
        close(journal->spare);
    if (journal->dir >= 0)
        close(journal->dir);
    hf__buf_free(&journal->filling);
    hf__buf_free(&journal->writing);
    pthread_mutex_destroy(&journal->order);
    pthread_mutex_destroy(&journal->lock);
    pthread_cond_destroy(&journal->filled_some);
    env = journal->env;
    hf__env_free(&env, journal, sizeof(*journal));
}

static struct journal *journal_new(const struct journal_options *options)
{
    struct journal *journal = hf__env_alloc(options->env, sizeof(*journal));

    if (!journal)
        return NULL;
    *journal = (struct journal){.env = *options->env,
                                .options = *options,
                                .dir = -1,
                                .file = -1,
                                .spare = -1,
                                .syncing = -1};
    journal->options.env = &journal->env;
    journal->filling.env = journal->writing.env = &journal->env;
    atomic_init(&journal->last, 0);
    atomic_init(&journal->pending, 0);
    atomic_init(&journal->needs_work, false);
    atomic_init(&journal->stretched, false);
    pthread_mutex_init(&journal->order, NULL);
    pthread_mutex_init(&journal->lock, NULL);
    pthread_cond_init(&journal->filled_some, NULL);
    return journal;
}

static enum hf_status open_directory(struct hf_scope *s, struct journal *journal)
{
    bool made = !journal->options.read_only && mkdir(journal->options.path, MODE_DIRECTORY) == 0;
    struct stat info;

    if (!made && !journal->options.read_only && errno != EEXIST)
        return fail_errno(s, journal, "create");
    journal->dir = open(journal->options.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->dir < 0)
        return fail_errno(s, journal, "open");
    if (!journal->options.read_only && fstat(journal->dir, &info) == 0 && (info.st_mode & 077) &&
        fchmod(journal->dir, MODE_DIRECTORY))
        return fail_errno(s, journal, "set the mode of");
    return HF_OK;
}

/* Remove all files but the newest and reuse that one: nothing in them is needed. */
static enum hf_status start_over(struct hf_scope *s, struct journal *journal)
{
    char name[JOURNAL_NAME], next[JOURNAL_NAME];
    uint64_t *numbers;
    size_t len;

    TRY(hf__journal_list(s, journal->options.path, journal->dir, &numbers, &len));
    journal->number = len ? numbers[len - 1] : 0;
    journal->oldest = journal->number + 1;
    for (size_t i = 0; i + 1 < len; i++) {
        hf__journal_name(numbers[i], name);
        if (unlinkat(journal->dir, name, 0))
            return fail_errno(s, journal, "remove a file of");
    }
    if (!len)
        return HF_OK;
    hf__journal_name(journal->number, name);
    hf__journal_name(journal->number + 1, next);
    journal->spare = openat(journal->dir, name, O_RDWR | O_CLOEXEC);
    if (journal->spare < 0 || renameat(journal->dir, name, journal->dir, next) ||
        fsync(journal->dir))
        return fail_errno(s, journal, "reuse a file of");
    journal->ready = journal->number + 1;
    return HF_OK;
}

/*
 * Remove the files behind the one where reading ended, if there are any: changes before theirs are
 * lost, and new changes will get the same numbers. The next file gets its name before they are
 * removed, so that at any moment a file exists whose number is as high as any that was noted.
 */
static enum hf_status drop_behind(struct hf_scope *s, struct journal *journal, uint64_t ended)
{
    char name[JOURNAL_NAME];
    uint64_t *numbers;
    size_t len;

    TRY(hf__journal_list(s, journal->options.path, journal->dir, &numbers, &len));
    journal->oldest = journal->number + 1;
    if (len && numbers[0] <= ended)
        journal->oldest = numbers[0];
    if (!len || numbers[len - 1] <= ended)
        return HF_OK;
    journal->spare = next_file(journal);
    if (journal->spare < 0)
        return fail_errno(s, journal, "create a file of");
    hf__kill_point("journal_behind");
    while (len > 0 && numbers[len - 1] > ended) {
        hf__journal_name(numbers[--len], name);
        if (unlinkat(journal->dir, name, 0))
            return fail_errno(s, journal, "remove a file of");
    }
    return fsync(journal->dir) ? fail_errno(s, journal, "sync") : HF_OK;
}

static enum hf_status read_back(struct hf_scope *s, struct journal *journal,
                                const struct journal_marks *marks, journal_replay_fn *replay,
                                void *user)
{
    const struct journal_reading reading = {.env = &journal->env,
                                            .path = journal->options.path,
                                            .dir = journal->dir,
                                            .marks = marks,
                                            .sync = journal->options.syncs,
                                            .replay = replay,
                                            .user = user};
    struct journal_found found;

    TRY(hf__journal_read(s, &reading, &found));
    journal->number = found.number;
    atomic_store(&journal->last, found.last);
    if (journal->options.read_only)
        return HF_OK;
    return drop_behind(s, journal, found.ended);
}

static enum hf_status open_inside(struct hf_scope *s, struct journal *journal,
                                  const struct journal_marks *marks, journal_replay_fn *replay,
                                  void *user)
{
    uint64_t first, durable = marks->durable > marks->based ? marks->durable : marks->based;
    bool begun;

    TRY(open_directory(s, journal));
    journal->id = marks->id;
    if (marks->fresh || marks->clean) {
        atomic_store(&journal->last, marks->fresh ? marks->durable : marks->clean);
        if (!journal->options.read_only)
            TRY(start_over(s, journal));
    } else {
        TRY(read_back(s, journal, marks, replay, user));
    }
    if (journal->options.read_only)
        return HF_OK;
    first = atomic_load(&journal->last) + 1;
    for (int i = 0; i < FIRSTS; i++) /* older ones count as if they all ended here */
        journal->firsts[i] = first;
    pthread_mutex_lock(&journal->lock);
    begun = begin_segment(journal, first, durable);
    pthread_mutex_unlock(&journal->lock);
    return begun ? HF_OK : fail_errno(s, journal, "start a file of");
}

enum hf_status hf__journal_open(struct hf_scope *s, const struct journal_options *options,
                                const struct journal_marks *marks, journal_replay_fn *replay,
                                void *user, struct journal **journal)
{
    struct journal *made = journal_new(options);
    enum hf_status status;

    *journal = NULL;
    if (!made)
        return hf__fail_nomem(s);
    status = open_inside(s, made, marks, replay, user);
    if (status != HF_OK) {
        hf__journal_close(made);
        return status;
    }
    *journal = made;
    return HF_OK;
}

/* ---- appending ------------------------------------------------------------------------------ */

void hf__journal_begin(struct journal *journal)
{
    spin_lock(&journal->order);
}

void hf__journal_end(struct journal *journal)
{
    pthread_mutex_unlock(&journal->order);
}

uint64_t hf__journal_number(struct journal *journal)
{
    uint64_t number;

    pthread_mutex_lock(&journal->lock);
    number = journal->number;
    pthread_mutex_unlock(&journal->lock);
    return number;
}

uint64_t hf__journal_last(const struct journal *journal)
{
    return atomic_load(&journal->last);
}

size_t hf__journal_pending(const struct journal *journal)
{
    return atomic_load_explicit(&journal->pending, memory_order_relaxed);
}

uint8_t *hf__journal_reserve(struct journal *journal, size_t len)
{
    uint8_t *to;

    ASSERT_HELD(&journal->order);
    to = len <= UINT32_MAX - JOURNAL_START
             ? hf__buf_reserve(&journal->filling, journal_record_size(len))
             : NULL;

    if (to)
        return to + JOURNAL_RECORD_HEAD;
    journal->filling.failed = false; /* what is in it already is whole */
    return NULL;
}

/* The parts of the head that the flush fills in stay 0. */
uint64_t hf__journal_append(struct journal *journal, size_t len)
{
    size_t size = journal_record_size(len);
    uint64_t change = atomic_load_explicit(&journal->last, memory_order_relaxed) + 1;
    uint8_t *to = journal->filling.ptr + journal->filling.len;

    ASSERT_HELD(&journal->order);
    assert(len && size <= journal->filling.cap - journal->filling.len);
    assert(journal->filling.len % JOURNAL_ALIGN == 0 && !journal->options.read_only);
    memset(to, 0, JOURNAL_RECORD_HEAD);
    store_u64le(to + 8, change);
    store_u32le(to + 24, (uint32_t)len);
    memset(to + JOURNAL_RECORD_HEAD + len, 0, size - JOURNAL_RECORD_HEAD - len);
    journal->filling.len += size;
    atomic_store_explicit(&journal->pending, journal->filling.len, memory_order_relaxed);
    atomic_store(&journal->last, change);
    return change;
}

/* ---- flushing ------------------------------------------------------------------------------- */

static void finish_record(uint8_t *head, uint64_t number, uint64_t durable)
{
    assert(durable < journal_change(head) && journal_len(head));
    store_u64le(head + 16, durable);
    store_u32le(head + 28, (uint32_t)number);
    store_u64le(head,
                XXH3_64bits_withSeed(head + 8, journal_record_size(journal_len(head)) - 8, number));
}

/* How many preallocated bytes should follow the end: few for a store that writes little. */
static uint64_t fill_ahead(const struct journal *journal)
{
    return journal->at > FILL_STEP ? journal->at : FILL_STEP;
}

/* Write bytes to the segment. One thread at a time does that. */
static bool write_out(struct journal *journal, const uint8_t *bytes, size_t len)
{
    uint64_t at;

    if (len == 0)
        return true;
    pthread_mutex_lock(&journal->lock);
    at = journal->at;
    journal->at += len;
    while (journal->is_filling && journal->at > journal->filled)
        pthread_cond_wait(&journal->filled_some, &journal->lock);
    if (journal->at > journal->filled)
        journal->filled = journal->at;
    if (journal->options.syncs && journal->filled < journal->options.segment_bytes &&
        journal->filled - journal->at < fill_ahead(journal) / 2)
        atomic_store(&journal->needs_work, true);
    journal_check(journal);
    pthread_mutex_unlock(&journal->lock);
    return write_at(journal->file, bytes, len, at);
}

static bool next_segment(struct journal *journal, uint64_t first, uint64_t durable)
{
    bool begun;

    if (journal->options.syncs && fdatasync(journal->file))
        return false;
    pthread_mutex_lock(&journal->lock);
    while (journal->is_filling)
        pthread_cond_wait(&journal->filled_some, &journal->lock);
    begun = begin_segment(journal, first, durable);
    pthread_mutex_unlock(&journal->lock);
    return begun;
}

/* Is there a file for the next segment, or a failure to report? If neither, see (5). */
static bool has_next(struct journal *journal)
{
    bool has;

    pthread_mutex_lock(&journal->lock);
    if (journal->spare < 0)
        journal->spare = next_file(journal);
    has = journal->spare >= 0 || journal->names_failed;
    if (!has) {
        atomic_store(&journal->needs_work, true);
        atomic_store(&journal->stretched, journal->at > STRETCH * journal->options.segment_bytes);
    }
    pthread_mutex_unlock(&journal->lock);
    return has;
}

/* Write everything in `writing` to the segments. */
static bool write_records(struct journal *journal, uint64_t durable)
{
    uint8_t *end = journal->writing.ptr + journal->writing.len;
    uint8_t *from = journal->writing.ptr;
    uint64_t at = journal->at;

    for (uint8_t *head = from; head < end;) {
        size_t size = journal_record_size(journal_len(head));

        assert(size <= (size_t)(end - head));
        if (at > JOURNAL_START && at + size > journal->options.segment_bytes && has_next(journal)) {
            if (!write_out(journal, from, (size_t)(head - from)) ||
                !next_segment(journal, journal_change(head), durable))
                return false;
            from = head;
            at = JOURNAL_START;
        }
        finish_record(head, journal->number, durable);
        at += size;
        head += size;
    }
    return write_out(journal, from, (size_t)(end - from));
}

/* Sync the files before this one, unless each was synced when its segment ended. */
static bool sync_older(const struct journal *journal)
{
    uint64_t number = journal->options.syncs ? journal->number : journal->oldest;
    bool done = true;

    for (; done && number < journal->number; number++) {
        char name[JOURNAL_NAME];
        int fd, error;

        hf__journal_name(number, name);
        fd = openat(journal->dir, name, O_RDONLY | O_CLOEXEC);
        done = fd < 0 ? errno == ENOENT : fdatasync(fd) == 0;
        error = errno;
        if (fd >= 0)
            close(fd);
        errno = error;
    }
    return done;
}

bool hf__journal_flush(struct journal *journal, uint64_t durable, bool sync, uint64_t *upto)
{
    struct hf__buf taken;
    bool done;

    if (journal->failed) {
        errno = EIO;
        return false;
    }
    pthread_mutex_lock(&journal->order);
    taken = journal->filling;
    journal->filling = journal->writing;
    atomic_store_explicit(&journal->pending, 0, memory_order_relaxed);
    *upto = atomic_load_explicit(&journal->last, memory_order_relaxed);
    pthread_mutex_unlock(&journal->order);
    journal->writing = taken;
    done = (journal->writing.len == 0 || write_records(journal, durable)) &&
           (!sync || (sync_older(journal) && fdatasync(journal->file) == 0));
    journal->failed = !done;
    journal->writing.len = 0;
    if (journal->writing.cap > BUFFER_KEPT) {
        int error = errno;

        hf__buf_free(&journal->writing);
        journal->writing.env = &journal->env;
        errno = error;
    }
    return done;
}

bool hf__journal_sync(struct journal *journal)
{
    int fd, error;
    bool done;

    pthread_mutex_lock(&journal->lock);
    fd = journal->syncing = journal->file; /* the segment may end meanwhile */
    pthread_mutex_unlock(&journal->lock);
    done = fdatasync(fd) == 0;
    error = errno;
    pthread_mutex_lock(&journal->lock);
    journal->syncing = -1;
    if (fd != journal->file)
        close(fd);
    pthread_mutex_unlock(&journal->lock);
    errno = error;
    return done;
}

/* ---- maintenance ---------------------------------------------------------------------------- */

bool hf__journal_is_stretched(const struct journal *journal)
{
    return atomic_load_explicit(&journal->stretched, memory_order_relaxed);
}

bool hf__journal_needs_work(const struct journal *journal)
{
    return atomic_load_explicit(&journal->needs_work, memory_order_relaxed);
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

/*
 * The system reports a failed write once per open descriptor. If zeros were synced through the
 * descriptor that records are synced through, that sync could take the report of a failed record.
 * So zeros have a descriptor of their own.
 */
static bool segment_fill(const struct journal *journal, uint64_t number, size_t len, uint64_t at)
{
    char name[JOURNAL_NAME];
    bool done;
    int fd;

    hf__journal_name(number, name);
    fd = openat(journal->dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    done = write_zeros(fd, len, at);
    close(fd);
    return done;
}

/* Is there something to preallocate? Then this thread does it, until is_filling is false again. */
static bool fill_due(struct journal *journal, uint64_t *at, size_t *len)
{
    uint64_t end = journal->options.segment_bytes;

    ASSERT_HELD(&journal->lock);
    assert(!journal->is_filling);
    if (!journal->options.syncs || journal->filled >= end ||
        journal->filled >= journal->at + fill_ahead(journal))
        return false;
    *at = journal->filled;
    *len = end - journal->filled < FILL_STEP ? (size_t)(end - journal->filled) : FILL_STEP;
    journal->is_filling = true;
    return true;
}

bool hf__journal_preallocate(struct journal *journal)
{
    bool made = true;
    bool is_ready;
    uint64_t at;
    size_t len;

    pthread_mutex_lock(&journal->lock);
    atomic_store(&journal->needs_work, false);
    while (made && fill_due(journal, &at, &len)) {
        uint64_t number = journal->number; /* stays the newest while it is being filled */

        pthread_mutex_unlock(&journal->lock);
        made = segment_fill(journal, number, len, at);
        pthread_mutex_lock(&journal->lock);
        journal->is_filling = false;
        if (made)
            journal->filled = at + len;
        pthread_cond_broadcast(&journal->filled_some);
    }
    if (journal->spare < 0 && journal->at > journal->options.segment_bytes / 2)
        journal->spare = next_file(journal);
    is_ready = journal->spare >= 0 || journal->at <= journal->options.segment_bytes;
    if (journal->spare >= 0)
        atomic_store(&journal->stretched, false); /* the next flush uses it */
    journal_check(journal);
    pthread_mutex_unlock(&journal->lock);
    return is_ready;
}

/* The first change of a segment, or one behind it. */
static uint64_t first_of(struct journal *journal, uint64_t number)
{
    ASSERT_HELD(&journal->lock);
    assert(number <= journal->number);
    if (journal->number - number >= FIRSTS)
        number = journal->number - FIRSTS + 1;
    return journal->firsts[number % FIRSTS];
}

/* The oldest file that has a change behind `tabled`, or may get one. */
static uint64_t oldest_needed(struct journal *journal, uint64_t tabled)
{
    uint64_t number = journal->oldest;

    ASSERT_HELD(&journal->lock);
    while (number < journal->number && first_of(journal, number + 1) - 1 <= tabled)
        number++;
    return number;
}

uint64_t hf__journal_closed_count(struct journal *journal, uint64_t tabled)
{
    uint64_t count;

    pthread_mutex_lock(&journal->lock);
    count = journal->number - oldest_needed(journal, tabled);
    pthread_mutex_unlock(&journal->lock);
    return count;
}

bool hf__journal_reclaimable(struct journal *journal, uint64_t tabled, uint64_t *number)
{
    bool old;

    pthread_mutex_lock(&journal->lock);
    *number = oldest_needed(journal, tabled);
    old = journal->oldest < *number;
    pthread_mutex_unlock(&journal->lock);
    return old;
}

struct journal_files hf__journal_files(struct journal *journal)
{
    struct journal_files files;

    pthread_mutex_lock(&journal->lock);
    files = (struct journal_files){.dir = journal->dir,
                                   .path = journal->options.path,
                                   .id = journal->id,
                                   .oldest = journal->oldest,
                                   .newest = journal->number};
    pthread_mutex_unlock(&journal->lock);
    return files;
}

/* Rename the oldest file to the number behind `ready`, unless it holds a single large record. */
static bool use_again(struct journal *journal)
{
    char name[JOURNAL_NAME], next[JOURNAL_NAME];
    struct stat info;

    ASSERT_HELD(&journal->lock);
    assert(journal->oldest < journal->number && journal->ready >= journal->number);
    hf__journal_name(journal->oldest, name);
    hf__journal_name(journal->ready + 1, next);
    if (fstatat(journal->dir, name, &info, 0) ||
        (uint64_t)info.st_size > journal->options.segment_bytes ||
        renameat(journal->dir, name, journal->dir, next))
        return false;
    journal->ready++;
    return true;
}

/* Remove files that wait to be reused. */
static void drop_ready(struct journal *journal, uint64_t kept)
{
    char name[JOURNAL_NAME];

    ASSERT_HELD(&journal->lock);
    assert(kept >= 1); /* which may be open */
    for (; journal->ready > journal->number + kept; journal->ready--) {
        hf__journal_name(journal->ready, name);
        unlinkat(journal->dir, name, 0);
    }
}

void hf__journal_reclaim(struct journal *journal, uint64_t number, uint64_t spares)
{
    char name[JOURNAL_NAME];
    bool renamed = false;
    uint64_t first;

    pthread_mutex_lock(&journal->lock);
    if (spares < 1 || !journal->options.syncs) /* without syncs preallocated files gain nothing */
        spares = 1;                            /* which may be open already */
    assert(number <= journal->number);
    first = journal->oldest;
    for (; journal->oldest < number; journal->oldest++)
        if (journal->ready < journal->number + spares)
            renamed |= use_again(journal);
    if (renamed && fsync(journal->dir)) /* what is open had its name before */
        journal->ready = journal->number + (journal->spare >= 0);
    drop_ready(journal, spares);
    journal_check(journal);
    pthread_mutex_unlock(&journal->lock);
    for (; first < number; first++) { /* nobody else knows these names, and it takes long */
        hf__journal_name(first, name);
        unlinkat(journal->dir, name, 0);
    }
}

enum hf_status hf__journal_replay(struct hf_scope *s, struct journal *journal, uint64_t based,
                                  uint64_t upto, journal_replay_fn *replay, void *user)
{
    const struct journal_marks marks = {.id = journal->id, .durable = upto, .based = based};
    const struct journal_reading reading = {.env = &journal->env,
                                            .path = journal->options.path,
                                            .dir = journal->dir,
                                            .marks = &marks,
                                            .replay = replay,
                                            .user = user};
    struct journal_found found;

    return hf__journal_read(s, &reading, &found);
}

uint64_t hf__journal_bytes(struct journal *journal)
{
    char name[JOURNAL_NAME];
    struct stat info;
    uint64_t sum = 0;

    pthread_mutex_lock(&journal->lock);
    for (uint64_t number = journal->oldest; number <= journal->ready; number++) {
        hf__journal_name(number, name);
        if (fstatat(journal->dir, name, &info, 0) == 0)
            sum += (uint64_t)info.st_size;
    }
    pthread_mutex_unlock(&journal->lock);
    return sum;
}
