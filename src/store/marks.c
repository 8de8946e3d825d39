/*
 * store/marks.c: the record of where a store stands, PATH/durable, and what it says of the others.
 *
 * A store has three parts that change: the record, the journal and the database. A part that is
 * gone, cut short, older than the others or of another store looks by itself like one that is good.
 * So each says what it knows of the others, and an open compares before anything is changed.
 *
 *     the record     id      of the store
 *                    durable every change up to here is durable
 *                    based   every change up to here is in tables
 *                    clean   the store was closed, and this was its last change; or 0
 *                    segment the newest file of the journal that was begun
 *                    boot    which start of the machine this is, in modes that do not sync each
 *                            change: until the next one, what the journal was handed is there; or 0
 *                    manifest  number, length and checksum of the manifest, as far as it is durable
 *     the tables     a mark: last change, id, and `durable` and `segment` of when they were written
 *     the journal    in the head of a file the id, its first change and what was durable then; in a
 *                    record the number of its change and what was durable then
 *
 * The record alternates between two slots with a checksum each, so that one of them is whole at any
 * moment. It is written with pwrite() and not through a mapping, because a disk error behind a
 * mapping is a signal that ends the process. A note need not be synced unless this is said below:
 * an older one says less, and what it says still holds.
 *
 *     slot i at i * 512:  8 bytes "hfmarks3", u64be sequence, id, durable, based, clean, segment,
 *                         boot, number, length and checksum of the manifest, and XXH3 of those 88
 *                         bytes; the higher sequence is the newer one
 *
 * The states of a store are those of its record. R is the record, J the journal, T the tables, H
 * the file HOLDFAST. The moves, each with its writes in order:
 *
 *     from     move              writes
 *     none     make              H.new, R, J; R is synced; H gets its name: open
 *     closed   open              T: RocksDB begins another manifest, whose number is higher
 *                                J: all files but the newest go; that one gets the next number and a
 *                                   new head
 *                                R: clean = 0, synced: open
 *     open     a change          J; after a sync R.durable
 *              a new file        J: its name, durably; then its head; then R.segment
 *              a table           T; then R.based and R.manifest. Before R, T says more than R
 *              a compaction      T: the manifest is longer than the noted one
 *              files go          R.based, synced; then J
 *              a failed write    R.boot = 0: what the system was handed may be gone
 *              a close           T has everything; when RocksDB is closed R.clean, synced: closed
 *     crashed  open              T: another manifest
 *                                J: a name behind all others; files behind a gap go; a head
 *                                R, synced: open
 *     older    open              of format 1 or 2. T gets all that J has, and a mark; R, synced; H.
 *                                Until R has this format J is read in its older form
 *
 * A crash between any two writes leaves a store that the next open takes. test/store/marks_test.c
 * goes through all sequences of these moves, crashes and older parts.
 *
 * What an open refuses, with HF_CORRUPT, before anything is changed:
 *
 *     - a manifest with a lower number than the noted one, or with the same number that does not
 *       begin with the noted bytes; db/CURRENT that is gone although tables were noted
 *     - if the manifest is not exactly the noted one, after opening the tables read-only: tables of
 *       another id, tables that end before R.based, tables that end behind R.clean
 *     - a file of the journal with another id; no file as new as `segment` of R or T says
 *     - a change that neither J nor T has, and that was durable by R, by T or by a later record
 *     - R.clean, and a later change in J
 *     - R.boot of this start of the machine, and J has a gap with something behind it, or lacks the
 *       head of R.segment
 *
 * R.boot holds as long as the file system keeps what it was handed. One that forgets it although
 * the machine was not started again, as a disk that is pulled or an old image of a virtual
 * machine's memory above a newer disk, may leave a journal without syncs that is refused.
 *
 * What cannot be noticed: that the whole directory, or all parts that have changed since, are an
 * older copy; that the torn end of a journal that was not synced is in truth a damaged one.
 *
 * What always holds:
 *
 *  (1) The record never says more than what is durable. `durable`, `based` and `segment` never go
 *      back.
 *  (2) A record that says that something is in tables exists only when PATH/db/CURRENT does: the
 *      database is made when it gets its first table.
 *  (3) `clean` is the last change of all, and is taken back, durably, before another one is made.
 *  (4) The tables of the noted manifest have every change up to `based`, as it was noted then, and
 *      none behind it. So they need not be asked when the manifest is exactly the noted one.
 *
 * Format 2 had "hfmarks2", u64be sequence, durable, based, clean, XXH3 of those 40 bytes; format 1
 * had the database's own log, and "hfdurabl", u64be durable, XXH3.
 */
#include "store/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <xxhash.h>

#include "store/store_dir.h"
#include "store/tables.h"

enum {
    MODE_FILE = 0600,
    SLOTS = 2,
    SLOT_STRIDE = 512,
    SLOT_NUMBERS = 10,                  /* the sequence and the marks */
    SLOT_HASHED = 8 + 8 * SLOT_NUMBERS, /* with the magic */
    SLOT_BYTES = SLOT_HASHED + 8,
    SLOT_NUMBERS_2 = 4, /* of format 2: the sequence, durable, based, clean */
    SLOT_NUMBERS_1 = 1, /* of format 1: durable */
    BOOT_ID_MAX = 64
};

_Static_assert(SLOT_BYTES <= SLOT_STRIDE, "a slot is within one sector");
_Static_assert(SLOT_HASHED == 88 && SLOT_BYTES == 96, "magic, ten numbers, XXH3");
_Static_assert(sizeof(struct store_marks) == (SLOT_NUMBERS - 1) * sizeof(uint64_t),
               "all but the sequence number, and no padding: notes are compared as bytes");

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static const char *const slot_magic[STORE_DIR_FORMAT + 1] = {"", "hfdurabl", "hfmarks2",
                                                             "hfmarks3"};

static enum hf_status fail_errno(struct hf_scope *s, const struct store_dir *store_dir,
                                 const char *what)
{
    int error = errno;
    char room[128];

    return hf__fail(s, error == ENOSPC || error == EDQUOT ? HF_NO_SPACE : HF_IO,
                    "Cannot %s %s/durable: %s", what, store_dir->path,
                    strerror_r(error, room, sizeof(room)));
}

static enum hf_status fail_damaged(struct hf_scope *s, const struct store_dir *store_dir,
                                   const char *how)
{
    return hf__fail(s, HF_CORRUPT, "The store in %s is damaged: %s" STORE_DIR_DAMAGED,
                    store_dir->path, how);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void slot_fill(uint8_t slot[SLOT_BYTES], uint64_t sequence, const struct store_marks *marks)
{
    const uint64_t numbers[SLOT_NUMBERS] = {sequence,
                                            marks->id,
                                            marks->durable,
                                            marks->based,
                                            marks->clean,
                                            marks->segment,
                                            marks->boot,
                                            marks->manifest.number,
                                            marks->manifest.bytes,
                                            marks->manifest.hash};

    memcpy(slot, slot_magic[STORE_DIR_FORMAT], 8);
    for (int i = 0; i < SLOT_NUMBERS; i++)
        store_u64be(slot + 8 + 8 * i, numbers[i]);
    store_u64be(slot + SLOT_HASHED, XXH3_64bits(slot, SLOT_HASHED));
}

static bool slot_write(const struct store_dir *store_dir, const uint8_t slot[SLOT_BYTES],
                       uint64_t sequence)
{
    return pwrite(store_dir->record, slot, SLOT_BYTES, (off_t)(sequence % SLOTS) * SLOT_STRIDE) ==
           SLOT_BYTES;
}

/* Is that a slot of this format, and whole? */
static bool slot_is(const uint8_t slot[SLOT_BYTES], ssize_t len, int format, int numbers)
{
    int hashed = 8 + 8 * numbers;

    return len >= hashed + 8 && memcmp(slot, slot_magic[format], 8) == 0 &&
           load_u64be(slot + hashed) == XXH3_64bits(slot, (size_t)hashed);
}

/* The slot's format, sequence and marks; 0 when it is not whole. */
static int slot_read(const struct store_dir *store_dir, unsigned number, uint64_t *sequence,
                     struct store_marks *marks)
{
    uint8_t slot[SLOT_BYTES] = {0};
    ssize_t len = pread(store_dir->record, slot, SLOT_BYTES, (off_t)number * SLOT_STRIDE);
    uint64_t n[SLOT_NUMBERS];

    for (int i = 0; i < SLOT_NUMBERS; i++)
        n[i] = load_u64be(slot + 8 + 8 * i);
    if (slot_is(slot, len, 3, SLOT_NUMBERS)) {
        *sequence = n[0];
        *marks = (struct store_marks){n[1], n[2], n[3], n[4], n[5], n[6], {n[7], n[8], n[9]}};
        return 3;
    }
    if (slot_is(slot, len, 2, SLOT_NUMBERS_2)) {
        *sequence = n[0];
        *marks = (struct store_marks){.durable = n[1], .based = n[2], .clean = n[3]};
        return 2;
    }
    if (slot_is(slot, len, 1, SLOT_NUMBERS_1)) {
        *sequence = number; /* the next record must have a higher one, and go to the other slot */
        *marks = (struct store_marks){.durable = n[0]};
        return 1;
    }
    return 0;
}

/* ---- noting --------------------------------------------------------------------------------- */

/* (1), as far as it can be checked here, and that the marks belong to this store. */
static void marks_check(const struct store_dir *store_dir, const struct store_marks *marks)
{
    const struct store_marks *before = &store_dir->marks;

    assert(store_dir->record >= 0 && !store_dir->read_only);
    assert(marks->id && marks->id == store_dir->id);
    assert(marks->durable >= before->durable && marks->based >= before->based);
    assert(marks->segment >= before->segment);
}

bool hf__marks_note(struct store_dir *store_dir, struct store_marks marks)
{
    uint8_t slot[SLOT_BYTES];

    marks_check(store_dir, &marks);
    if (!store_dir->unnoted && memcmp(&marks, &store_dir->marks, sizeof(marks)) == 0)
        return true;
    slot_fill(slot, store_dir->sequence + 1, &marks);
    store_dir->marks = marks;
    store_dir->unnoted = !slot_write(store_dir, slot, store_dir->sequence + 1);
    /* After a failure the other slot has the last record, so the next one must go to this slot
     * again. */
    if (store_dir->unnoted)
        hf__env_log(&store_dir->env, HF_LOG_WARNING, "store %s: cannot write the durable record",
                    store_dir->path);
    else
        store_dir->sequence++;
    return !store_dir->unnoted;
}

bool hf__marks_sync(struct store_dir *store_dir)
{
    bool done = fdatasync(store_dir->record) == 0;

    if (!done)
        /* the system dropped it, and a second sync would report nothing */
        store_dir->unnoted = true;
    return done;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* An id for a store that has none. It has to distinguish stores on real disks, so it does not come
 * from the random numbers of the env, which may be the same for two stores. */
static void give_id(struct store_dir *store_dir)
{
    const struct hf_env world = hf__env_fill(NULL);

    while (!store_dir->marks.id)
        hf__env_random(&world, &store_dir->marks.id, sizeof(store_dir->marks.id));
    store_dir->id = store_dir->marks.id;
    assert(store_dir->id);
}

static enum hf_status make_record(struct hf_scope *s, struct store_dir *store_dir)
{
    uint8_t slot[SLOT_BYTES];

    store_dir->record =
        openat(store_dir->fd, "durable", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE_FILE);
    if (store_dir->record < 0)
        return fail_errno(s, store_dir, "create");
    give_id(store_dir);
    errno = ENOSPC;
    for (store_dir->sequence = 0; store_dir->sequence < SLOTS; store_dir->sequence++) {
        slot_fill(slot, store_dir->sequence, &store_dir->marks);
        if (!slot_write(store_dir, slot, store_dir->sequence))
            return fail_errno(s, store_dir, "write");
    }
    return HF_OK;
}

/* Read the newer of the valid slots. Returns its format, or 0. */
static int newest_slot(struct store_dir *store_dir)
{
    int newest = 0;

    for (unsigned i = 0; i < SLOTS; i++) {
        struct store_marks marks;
        uint64_t sequence;
        int format = slot_read(store_dir, i, &sequence, &marks);

        if (!format || format < newest)
            continue;
        if (format > newest || (format == 1 ? marks.durable > store_dir->marks.durable
                                            : sequence > store_dir->sequence)) {
            store_dir->sequence = sequence;
            store_dir->marks = marks;
            newest = format;
        }
    }
    return newest;
}

enum hf_status hf__marks_open(struct hf_scope *s, struct store_dir *store_dir)
{
    int format;

    if (store_dir->fresh)
        return make_record(s, store_dir);
    store_dir->record =
        openat(store_dir->fd, "durable", (store_dir->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    if (store_dir->record < 0 && errno == ENOENT)
        return fail_damaged(s, store_dir, "the file durable is missing");
    if (store_dir->record < 0)
        return fail_errno(s, store_dir, "open");
    format = newest_slot(store_dir);
    if (!format)
        return fail_damaged(s, store_dir, "the file durable is invalid");
    if (format < store_dir->format)
        return fail_damaged(s, store_dir, "the files durable and HOLDFAST have different formats");
    if (store_dir->marks.clean && store_dir->marks.clean < store_dir->marks.based)
        return fail_damaged(s, store_dir, "the file durable is invalid"); /* (3) */
    /* A higher format: the last open ended when all parts but HOLDFAST were upgraded. */
    store_dir->format = format;
    store_dir->unnoted = format != STORE_DIR_FORMAT;
    give_id(store_dir);
    if (!store_dir->has_database && (store_dir->marks.based || format == 1))
        return fail_damaged(s, store_dir, "db/CURRENT is missing");
    return HF_OK;
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* Raise a mark to what the tables say: the record on disk says less. */
static void mark_raise(struct store_dir *store_dir, uint64_t *mark, uint64_t to)
{
    if (*mark >= to)
        return;
    *mark = to;
    store_dir->unnoted = true;
}

void hf__marks_based(struct store_dir *store_dir, uint64_t change)
{
    mark_raise(store_dir, &store_dir->marks.based, change);
}

static enum hf_status too_old(struct hf_scope *s, const struct store_dir *store_dir, uint64_t have,
                              uint64_t want)
{
    return hf__fail(
        s, HF_CORRUPT,
        "The store in %s is damaged: its table files in db end at change %llu, expected at least "
        "%llu; the manifest of db is damaged, or db is an older copy" STORE_DIR_DAMAGED,
        store_dir->path, (unsigned long long)have, (unsigned long long)want);
}

/* Compare the parts of a store of an older format, whose tables need not have a mark. Format 1
 * counted changes by RocksDB's sequence number; format 2 does so until its first table is written.
 */
static enum hf_status compare_old(struct hf_scope *s, struct store_dir *store_dir,
                                  const struct tables_mark *mark)
{
    uint64_t want = store_dir->format == 1 ? store_dir->marks.durable : store_dir->marks.based;
    uint64_t have = store_dir->format == 1 || !mark->last ? mark->sequence : mark->last;

    if (have < want && store_dir->format == 1)
        return hf__fail(s, HF_CORRUPT,
                        "The store in %s is damaged: a log file is missing or cut short, or the "
                        "manifest of db is damaged (it ends at change %llu, and %llu were made "
                        "durable)" STORE_DIR_DAMAGED,
                        store_dir->path, (unsigned long long)have, (unsigned long long)want);
    if (have < want)
        return too_old(s, store_dir, have, want);
    if (store_dir->format == 1)
        mark_raise(store_dir, &store_dir->marks.durable, have);
    else
        mark_raise(store_dir, &store_dir->marks.based, mark->last);
    return HF_OK;
}

enum hf_status hf__marks_compare(struct hf_scope *s, struct store_dir *store_dir,
                                 const struct tables_mark *mark)
{
    struct store_marks *marks = &store_dir->marks;

    if (store_dir->fresh)
        return HF_OK;
    if (store_dir->format != STORE_DIR_FORMAT)
        return compare_old(s, store_dir, mark);
    if (mark->last && (!mark->whole || mark->id != marks->id))
        return fail_damaged(
            s, store_dir,
            "the table files in db and the file durable belong to different databases");
    if (mark->last < marks->based)
        return too_old(s, store_dir, mark->last, marks->based);
    if (marks->clean && mark->last > marks->clean)
        return fail_damaged(s, store_dir, "the file durable is older than the table files in db");
    mark_raise(store_dir, &marks->based, mark->last);
    mark_raise(store_dir, &marks->durable, mark->durable);
    mark_raise(store_dir, &marks->segment, mark->segment);
    return HF_OK;
}

uint64_t hf__marks_boot(void)
{
    int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    char text[BOOT_ID_MAX];
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text));

    if (fd >= 0)
        close(fd);
    return len > 0 ? XXH3_64bits(text, (size_t)len) : 0;
}
