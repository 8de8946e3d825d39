/*
 * store/journal.h: the journal of a store on disk: every batch that was applied, in order, until
 * the database below has it in a table of its own.
 *
 * RocksDB has a write-ahead log, which grows with every write, so that each sync has to commit the
 * file's new size as well, and which takes damage at its end for a torn write. This one is written
 * into space that is there already: a sync is one write of data. And it knows what was durable.
 *
 *     hf__journal_begin(journal);                        from here on nobody else appends
 *     to = hf__journal_reserve(journal, len);            room for a record; NULL: no memory
 *     ... write the record there ...
 *     n = hf__journal_append(journal, len);              it is the nth change
 *     ... apply it to the database ...
 *     hf__journal_end(journal);
 *     hf__journal_flush(journal, durable, true, &upto)   hand it to the file, and sync that
 *
 * Any thread appends; one at a time flushes, and one at a time does maintenance.
 */
#ifndef HF_STORE_JOURNAL_H
#define HF_STORE_JOURNAL_H

#include "base/base.h"

struct journal;

struct journal_options {
    const struct hf_env *env;
    const char
        *path; /* of the journal's directory, made when it is missing; outlives the journal */
    size_t segment_bytes; /* of a file, unless a single record is larger, or no other opens */
    bool syncs;           /* files are synced before others follow, and filled ahead */
    bool read_only;       /* nothing is made, removed or written */
};

/* A change that the database may not have; in order, and again whenever the end was not clean. */
typedef enum hf_status journal_replay_fn(struct hf_scope *s, void *user, struct hf_bytes record);

/* Where the journal of a store stands, as the store noted it. */
struct journal_marks {
    bool fresh;       /* there is no journal yet: changes are counted on from `durable` */
    bool old_form;    /* it is one of format 2, whose files have no id */
    bool whole;       /* everything that it was handed is there, but for a torn end */
    uint64_t id;      /* of the store */
    uint64_t durable; /* every change up to here was durable */
    uint64_t based;   /* every change up to here is in the database's tables */
    uint64_t clean;   /* nothing was appended behind this change; 0: nobody knows */
    uint64_t segment; /* a file with this number or a higher one is there */
};

/*
 * Look whether a journal has everything that it must have, and change nothing. With `clean` that is
 * quick.
 *
 * HF_CORRUPT  it has not, or has what cannot be; the message names the file
 * HF_IO, HF_NOMEM
 */
enum hf_status hf__journal_check(struct hf_scope *s, const struct hf_env *env, const char *path,
                                 const struct journal_marks *marks);

/*
 * Open, or make, the journal in a directory, and replay what is behind `based`.
 *
 * HF_CORRUPT  a change that was durable is not there; the message names the file
 * HF_IO, HF_NO_SPACE, HF_NOMEM, or what replaying came to
 */
enum hf_status hf__journal_open(struct hf_scope *s, const struct journal_options *options,
                                const struct journal_marks *marks, journal_replay_fn *replay,
                                void *user, struct journal **journal);

/* Nothing is flushed. NULL is accepted. */
void hf__journal_close(struct journal *journal);

/* ---- writing -------------------------------------------------------------------------------- */

void hf__journal_begin(struct journal *journal);
void hf__journal_end(struct journal *journal);

/* Between those two: room for a record of `len` bytes, and it is appended. What is reserved and not
 * appended is forgotten. */
uint8_t *hf__journal_reserve(struct journal *journal, size_t len);
uint64_t hf__journal_append(struct journal *journal, size_t len);

/* Bytes that were appended and not flushed. */
size_t hf__journal_pending(const struct journal *journal);

/* The file that is written to. */
uint64_t hf__journal_number(struct journal *journal);

/* The newest change that was appended. */
uint64_t hf__journal_last(const struct journal *journal);

/*
 * Hand everything that was appended to the file, and sync it when asked to. `durable` is the newest
 * change that is known to be. False: errno says why; nothing more may be appended.
 */
bool hf__journal_flush(struct journal *journal, uint64_t durable, bool sync, uint64_t *upto);

/* Sync what was flushed, beside somebody who flushes. False: errno says why. */
bool hf__journal_sync(struct journal *journal);

/* ---- maintenance ---------------------------------------------------------------------------- */

/* Is maintenance due? Set by a flush; cheap to ask. */
bool hf__journal_needs_work(const struct journal *journal);

/* Fill the file ahead and prepare the next one; as much as is due. Failing is harmless; false: the
 * next one is wanted and cannot be opened now. */
bool hf__journal_preallocate(struct journal *journal);

/* Is there no file for the next segment, and this one much too long? Append nothing more for now.
 */
bool hf__journal_is_stretched(const struct journal *journal);

/* How many files are closed: nothing is written to them any more? */
uint64_t hf__journal_closed_count(struct journal *journal);

/* Are there closed files with changes up to `tabled` only? Those are the files below *number. */
bool hf__journal_reclaimable(struct journal *journal, uint64_t tabled, uint64_t *number);

/* Those changes are in the database's tables, and that was noted: drop the files below `number`, or
 * use them again as long as there are fewer than `spares` that wait for it, or one without `syncs`.
 * Files of single large records are not used again. */
void hf__journal_reclaim(struct journal *journal, uint64_t number, uint64_t spares);

/* Read what was flushed, as hf__journal_open() does: what is behind `based`, and up to `upto` at
 * least. Nobody flushes meanwhile, and there is no maintenance. */
enum hf_status hf__journal_replay(struct hf_scope *s, struct journal *journal, uint64_t based,
                                  uint64_t upto, journal_replay_fn *replay, void *user);

/* Bytes of all files. */
uint64_t hf__journal_bytes(struct journal *journal);

#endif
