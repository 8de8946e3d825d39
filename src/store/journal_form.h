/*
 * store/journal_form.h: how the journal lies in its files, for those who write and read them.
 *
 *     JOURNAL/0000000000000001 a segment; numbers grow, in hexadecimal
 *
 *     at 0       8 bytes "hflogse3", u64le number, u64le first change, u64le id of the store, u64le
 *                durable: the newest change that was durable when it was begun, u64le XXH3 of those
 *                40 bytes
 *     at 4096    records, one behind the other, each padded to 8 bytes:
 *
 *         u64le  XXH3 of the rest of the record and its padding, seeded with the segment's number
 *         u64le  change: one more than the record before
 *         u64le  durable: the newest change that was durable when this one was written
 *         u32le  length of what follows
 *         u32le  number of the segment, its lower half: tells old records in used space cheaply
 *         bytes
 *
 * A file is used again under a new number, so what is behind the last record is anything: zeros, or
 * records of another number. The end of a segment is where the next record is not.
 *
 * In a store of format 2 the head was "hflogseg", number, first change, XXH3. Such files are read
 * only while the store's record is of that format, too; when it no longer is, all that was in them
 * is in tables.
 */
#ifndef HF_STORE_JOURNAL_FORM_H
#define HF_STORE_JOURNAL_FORM_H

#include "store/journal.h"

enum {
    JOURNAL_START = 4096,
    JOURNAL_HEAD = 48,        /* bytes of a segment's head */
    JOURNAL_HEAD_2 = 32,      /* in format 2 */
    JOURNAL_RECORD_HEAD = 32, /* bytes before a record's own */
    JOURNAL_NAME = 16 + 1,
    JOURNAL_ALIGN = 8
};

_Static_assert(JOURNAL_HEAD == 8 + 5 * 8, "magic, four numbers, XXH3");
_Static_assert(JOURNAL_HEAD_2 == 8 + 3 * 8, "magic, two numbers, XXH3");
_Static_assert(JOURNAL_HEAD <= JOURNAL_START, "the head is before the records");
_Static_assert(JOURNAL_RECORD_HEAD == 3 * 8 + 2 * 4, "XXH3, change, durable, length, segment");
_Static_assert((JOURNAL_ALIGN & (JOURNAL_ALIGN - 1)) == 0, "sizes are rounded up by a mask");
_Static_assert(JOURNAL_START % JOURNAL_ALIGN == 0 && JOURNAL_RECORD_HEAD % JOURNAL_ALIGN == 0,
               "records are looked for at multiples of this");

static const char journal_magic[8] = {'h', 'f', 'l', 'o', 'g', 's', 'e', '3'};
static const char journal_magic_2[8] = {'h', 'f', 'l', 'o', 'g', 's', 'e', 'g'};

static inline size_t journal_record_size(size_t len)
{
    return (JOURNAL_RECORD_HEAD + len + JOURNAL_ALIGN - 1) & ~(size_t)(JOURNAL_ALIGN - 1);
}

/* The parts of a record's head. */
static inline uint64_t journal_hash(const uint8_t *p)
{
    return load_u64le(p);
}
static inline uint64_t journal_change(const uint8_t *p)
{
    return load_u64le(p + 8);
}
static inline uint64_t journal_durable(const uint8_t *p)
{
    return load_u64le(p + 16);
}
static inline uint32_t journal_len(const uint8_t *p)
{
    return load_u32le(p + 24);
}
static inline uint32_t journal_segment(const uint8_t *p)
{
    return load_u32le(p + 28);
}

void hf__journal_name(uint64_t number, char name[JOURNAL_NAME]);

/* ---- finding the end, journal_read.c -------------------------------------------------------- */

struct journal_found {
    uint64_t number; /* the highest there is; 0: none */
    uint64_t last;   /* the newest change */
    uint64_t ended;  /* the file that it is in; nothing in those behind it counts. 0: none */
};

struct journal_reading {
    const struct hf_env *env;
    const char *path;
    int dir;
    const struct journal_marks *marks;
    uint64_t from; /* of segments that begin with an earlier change only the head is read */
    bool sync;     /* what was read may be known to the system only: make it durable */
    enum hf_status (*replay)(struct hf_scope *s, void *user, struct hf_bytes record); /* or NULL */
    void *user;
};

/* Read all segments. HF_CORRUPT: a change that must be there is missing. */
enum hf_status hf__journal_read(struct hf_scope *s, const struct journal_reading *reading,
                                struct journal_found *found);

/* The numbers of all segments, in ascending order, in the scope. */
enum hf_status hf__journal_list(struct hf_scope *s, const char *path, int dir, uint64_t **numbers,
                                size_t *len);

/* ---- for journal_tail.c --------------------------------------------------------------------- */

struct journal_files {
    int dir;
    const char *path;
    uint64_t id;             /* of the store */
    uint64_t oldest, newest; /* numbers of the files that may have records; gaps are possible */
};
struct journal_files hf__journal_files(struct journal *journal);

#endif
