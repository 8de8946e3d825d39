/*
 * store/journal_read.c: reading a journal whose writer has ended.
 *
 * Records are read in the order of their changes, from segment to segment, until one is not there.
 * That is the end, unless a later segment begins with exactly the change that is missing: every
 * open begins a new segment, at the change where reading ended.
 *
 * An end is either torn or damaged. What was handed to the system and not synced may be lost in
 * part, and in any order: a record is missing, and a later one is there. No caller was promised
 * that those are durable, so the journal ends before the first one that is missing. But if the
 * missing record was durable, the disk has lost it, and the open has to fail. Two witnesses show
 * that: the mark that the store keeps beside the journal, and every record and every head behind
 * the gap, which say what was durable when they were written.
 *
 * As long as the machine has not been started again nothing that the system was handed can be lost:
 * a write that was cut short by kill -9 is the last one. So then a gap with something behind it is
 * damage, too (`whole`).
 *
 * What always holds:
 *
 *  (1) Records are replayed in order, without a gap, and only those behind `based`.
 *  (2) Nothing behind a gap is replayed, now or later: the next segment has another number, and
 *      those behind the gap are removed before it is begun.
 */
#include "store/journal_form.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

/* The end of every message about damage. */
#define JOURNAL_DAMAGED                                                                            \
    ". Nothing was changed; restore the whole directory of the store from one copy"

void hf__journal_name(uint64_t number, char name[JOURNAL_NAME])
{
    snprintf(name, JOURNAL_NAME, "%016llx", (unsigned long long)number);
}

static enum hf_status fail_errno(struct hf_scope *s, const char *what, const char *path,
                                 const char *name)
{
    int error = errno;
    char room[128];

    return hf__fail(s, error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO,
                    "Cannot %s %s/%s: %s", what, path, name, strerror_r(error, room, sizeof(room)));
}

/* ---- the files ------------------------------------------------------------------------------ */

/* The number in a name; 0: it is not the name of a segment. */
static uint64_t number_of(const char *name)
{
    char again[JOURNAL_NAME];
    uint64_t number = strtoull(name, NULL, 16);

    hf__journal_name(number, again);
    return strcmp(name, again) == 0 ? number : 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

enum hf_status hf__journal_list(struct hf_scope *s, const char *path, int dir, uint64_t **numbers,
                                size_t *len)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    uint64_t *list = NULL;
    struct dirent *entry;
    size_t cap = 0;

    *len = 0;
    if (!listing) {
        if (fd >= 0)
            close(fd);
        return fail_errno(s, "list", path, "");
    }
    while ((entry = readdir(listing))) {
        uint64_t number = number_of(entry->d_name);

        if (!number)
            continue;
        if (*len == cap) {
            size_t more = cap ? 2 * cap : 16;
            uint64_t *moved = hf__scope_grow(s, list, cap * sizeof(*list), more * sizeof(*list));

            if (!moved) {
                closedir(listing);
                return hf__fail_nomem(s);
            }
            list = moved;
            cap = more;
        }
        list[(*len)++] = number;
    }
    closedir(listing);
    if (*len)
        qsort(list, *len, sizeof(*list), by_number);
    *numbers = list;
    return HF_OK;
}

/* A segment in memory. */
struct segment {
    char name[JOURNAL_NAME];
    uint64_t number;
    uint64_t first;   /* 0: it has no valid head, so it was not begun */
    uint64_t durable; /* when it was begun */
    uint8_t *bytes;
    size_t len;
    size_t size; /* of the memory */
};

static enum hf_status read_to(struct hf_scope *s, const struct journal_reading *reading, int fd,
                              struct segment *segment, size_t end)
{
    while (segment->len < end) {
        ssize_t got =
            pread(fd, segment->bytes + segment->len, end - segment->len, (off_t)segment->len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(s, "read", reading->path, segment->name);
        if (got == 0)
            break;
        segment->len += (size_t)got;
    }
    return HF_OK;
}

static void segment_drop(const struct journal_reading *reading, struct segment *segment)
{
    hf__env_free(reading->env, segment->bytes, segment->size);
    segment->bytes = NULL;
}

/* The first change of a segment that was begun, or 0. HF_CORRUPT: it is one of another store. */
static enum hf_status read_head(struct hf_scope *s, const struct journal_reading *reading,
                                struct segment *segment)
{
    const bool old = reading->marks->old_form;
    const uint8_t *head = segment->bytes;
    size_t hashed = (old ? JOURNAL_HEAD_2 : JOURNAL_HEAD) - 8;

    if (segment->len < hashed + 8 ||
        memcmp(head, old ? journal_magic_2 : journal_magic, sizeof(journal_magic)) != 0 ||
        load_u64le(head + 8) != segment->number ||
        load_u64le(head + hashed) != XXH3_64bits(head, hashed))
        return HF_OK;
    if (!old && load_u64le(head + 24) != reading->marks->id)
        return hf__fail(s, HF_CORRUPT, "%s/%s belongs to another database" JOURNAL_DAMAGED,
                        reading->path, segment->name);
    segment->first = load_u64le(head + 16);
    segment->durable = old ? 0 : load_u64le(head + 32);
    return HF_OK;
}

/* A file that waits to be reused may be large, and contains no record. */
static enum hf_status read_all(struct hf_scope *s, const struct journal_reading *reading, int fd,
                               struct segment *segment)
{
    size_t start = segment->size < JOURNAL_START ? segment->size : JOURNAL_START;

    TRY(read_to(s, reading, fd, segment, start));
    TRY(read_head(s, reading, segment));
    if (!segment->first || segment->first < reading->from)
        return HF_OK;
    TRY(read_to(s, reading, fd, segment, segment->size));
    /* A file system that cannot be written to has nothing to sync, and may say so. */
    if (reading->sync && fdatasync(fd) && errno != EINVAL && errno != EROFS)
        return fail_errno(s, "sync", reading->path, segment->name);
    return HF_OK;
}

static enum hf_status segment_load(struct hf_scope *s, const struct journal_reading *reading,
                                   uint64_t number, struct segment *segment)
{
    enum hf_status status;
    struct stat info;
    int fd;

    *segment = (struct segment){.number = number};
    hf__journal_name(number, segment->name);
    fd = openat(reading->dir, segment->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info)) {
        status = fail_errno(s, "open", reading->path, segment->name);
        if (fd >= 0)
            close(fd);
        return status;
    }
    segment->size = (size_t)info.st_size;
    segment->bytes = hf__env_alloc(reading->env, segment->size);
    status = segment->bytes ? read_all(s, reading, fd, segment) : hf__fail_nomem(s);
    close(fd);
    if (status != HF_OK)
        segment_drop(reading, segment);
    return status;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Is there a whole record at `at`, of whatever change? */
static bool is_record(const struct segment *segment, size_t at)
{
    const uint8_t *head = segment->bytes + at;

    if (at > segment->len || segment->len - at < JOURNAL_RECORD_HEAD ||
        journal_segment(head) != (uint32_t)segment->number || journal_len(head) == 0 ||
        journal_record_size(journal_len(head)) > segment->len - at)
        return false;
    return journal_hash(head) == XXH3_64bits_withSeed(head + 8,
                                                      journal_record_size(journal_len(head)) - 8,
                                                      segment->number);
}

/* Replay what follows on change `*last`; *at is where it ends. */
static enum hf_status segment_replay(struct hf_scope *s, const struct journal_reading *reading,
                                     const struct segment *segment, uint64_t *last, size_t *at)
{
    assert(segment->first == *last + 1);
    *at = JOURNAL_START;
    while (is_record(segment, *at) && journal_change(segment->bytes + *at) == *last + 1) {
        const uint8_t *head = segment->bytes + *at;

        if (reading->replay && *last + 1 > reading->marks->based)
            TRY(reading->replay(s, reading->user,
                                hf_bytes_of(head + JOURNAL_RECORD_HEAD, journal_len(head))));
        (*last)++;
        *at += journal_record_size(journal_len(head));
    }
    return HF_OK;
}

/* Does a record from `at` on say that `change` was durable? With 0: is there any record? */
static bool says_durable(const struct segment *segment, size_t at, uint64_t change)
{
    for (; at < segment->len && segment->len - at >= JOURNAL_RECORD_HEAD; at += JOURNAL_ALIGN)
        if (journal_segment(segment->bytes + at) == (uint32_t)segment->number &&
            journal_durable(segment->bytes + at) >= change && is_record(segment, at))
            return true;
    return false;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static enum hf_status fail_damaged(struct hf_scope *s, const struct journal_reading *reading,
                                   const char *name, uint64_t change)
{
    return hf__fail(
        s, HF_CORRUPT,
        "The journal in %s is damaged or incomplete: change %llu was durable, and is missing at "
        "the end of %s" JOURNAL_DAMAGED,
        reading->path, (unsigned long long)change, name);
}

struct walk {
    uint64_t last;             /* the newest change so far */
    uint64_t number;           /* the segment that it is in */
    char ended[JOURNAL_NAME];  /* its name */
    uint64_t begun;            /* the newest segment that was begun */
    char behind[JOURNAL_NAME]; /* the segment with something behind the end, or "" */
};

/* The first change that is neither read nor in the database's tables. */
static uint64_t missing_change(const struct journal_reading *reading, const struct walk *walk)
{
    return (walk->last > reading->marks->based ? walk->last : reading->marks->based) + 1;
}

static enum hf_status walk_segment(struct hf_scope *s, const struct journal_reading *reading,
                                   struct walk *walk, const struct segment *segment)
{
    size_t at = JOURNAL_START;
    bool joined;

    if (!segment->first) /* it was never begun, or its head is lost with all its records */
        return HF_OK;
    walk->begun = segment->number;
    if (segment->first <= reading->marks->based + 1 && segment->first > walk->last)
        walk->last = segment->first - 1; /* what is before it is in the tables */
    joined = segment->first == walk->last + 1;
    if (joined) {
        TRY(segment_replay(s, reading, segment, &walk->last, &at));
        walk->number = segment->number;
        memcpy(walk->ended, segment->name, sizeof(walk->ended));
        walk->behind[0] = '\0'; /* an open that came after the gap went on here */
    }
    if (segment->durable >= missing_change(reading, walk) ||
        says_durable(segment, at, missing_change(reading, walk)))
        return fail_damaged(s, reading, walk->ended, missing_change(reading, walk));
    if (reading->marks->whole &&
        (segment->first > walk->last + 1 || (joined && says_durable(segment, at, 0))))
        memcpy(walk->behind, segment->name, sizeof(walk->behind));
    return HF_OK;
}

/* What was written since the machine was started must be there: only the end may be torn. */
static enum hf_status check_whole(struct hf_scope *s, const struct journal_reading *reading,
                                  const struct walk *walk)
{
    char name[JOURNAL_NAME];

    if (walk->behind[0])
        return hf__fail(
            s, HF_CORRUPT,
            "The journal in %s is damaged: change %llu is missing at the end of %s, and "
            "%s has later ones" JOURNAL_DAMAGED,
            reading->path, (unsigned long long)missing_change(reading, walk), walk->ended,
            walk->behind);
    hf__journal_name(reading->marks->segment, name);
    if (walk->begun < reading->marks->segment)
        return hf__fail(s, HF_CORRUPT, "%s/%s is damaged: its head is invalid" JOURNAL_DAMAGED,
                        reading->path, name);
    return HF_OK;
}

/* No name of a segment is ever lost, in whatever mode. */
static enum hf_status check_names(struct hf_scope *s, const struct journal_reading *reading,
                                  const uint64_t *numbers, size_t len)
{
    char name[JOURNAL_NAME];

    if (reading->marks->segment <= (len ? numbers[len - 1] : 0))
        return HF_OK;
    hf__journal_name(reading->marks->segment, name);
    return hf__fail(s, HF_CORRUPT,
                    "%s/%s is missing, or this journal is an older copy" JOURNAL_DAMAGED,
                    reading->path, name);
}

enum hf_status hf__journal_read(struct hf_scope *s, const struct journal_reading *reading,
                                struct journal_found *found)
{
    struct walk walk = {.ended = "the directory"};
    uint64_t *numbers;
    size_t len;

    TRY(hf__journal_list(s, reading->path, reading->dir, &numbers, &len));
    TRY(check_names(s, reading, numbers, len));
    for (size_t i = 0; i < len; i++) {
        struct segment segment;
        enum hf_status status;

        TRY(segment_load(s, reading, numbers[i], &segment));
        status = walk_segment(s, reading, &walk, &segment);
        segment_drop(reading, &segment);
        TRY(status);
    }
    if (missing_change(reading, &walk) <= reading->marks->durable)
        return fail_damaged(s, reading, walk.ended, missing_change(reading, &walk));
    if (reading->marks->whole)
        TRY(check_whole(s, reading, &walk));
    *found = (struct journal_found){.number = len ? numbers[len - 1] : 0,
                                    .last = missing_change(reading, &walk) - 1,
                                    .ended = walk.number};
    return HF_OK;
}

/* ---- checking ------------------------------------------------------------------------------- */

/* The store was closed cleanly: is there a change later than its last one? */
static enum hf_status check_clean(struct hf_scope *s, const struct journal_reading *reading)
{
    const uint64_t clean = reading->marks->clean;
    uint64_t *numbers;
    size_t len;

    TRY(hf__journal_list(s, reading->path, reading->dir, &numbers, &len));
    TRY(check_names(s, reading, numbers, len));
    for (size_t i = 0; i < len; i++) {
        struct segment segment;
        bool later;

        TRY(segment_load(s, reading, numbers[i], &segment));
        later = segment.first > clean + 1 ||
                (segment.first == clean + 1 && is_record(&segment, JOURNAL_START) &&
                 journal_change(segment.bytes + JOURNAL_START) == clean + 1);
        segment_drop(reading, &segment);
        if (later)
            return hf__fail(
                s, HF_CORRUPT,
                "The journal in %s does not match the file durable: the store was closed after "
                "change %llu, and %s has a later change. One of the two is an older "
                "copy" JOURNAL_DAMAGED,
                reading->path, (unsigned long long)clean, segment.name);
    }
    return HF_OK;
}

enum hf_status hf__journal_check(struct hf_scope *s, const struct hf_env *env, const char *path,
                                 const struct journal_marks *marks)
{
    struct journal_reading reading = {.env = env,
                                      .path = path,
                                      .marks = marks,
                                      .from = marks->clean};
    struct hf__mark mark = hf__scope_mark(s);
    struct journal_found found;
    enum hf_status status;

    reading.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (reading.dir < 0 && errno == ENOENT)
        return hf__fail(s, HF_CORRUPT, "%s is missing" JOURNAL_DAMAGED, path);
    if (reading.dir < 0)
        return fail_errno(s, "open", path, ".");
    status = marks->clean ? check_clean(s, &reading) : hf__journal_read(s, &reading, &found);
    close(reading.dir);
    if (status == HF_OK)
        hf__scope_rewind(s, mark);
    return status;
}
