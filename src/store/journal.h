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
#include "store/store.h"

struct journal;

struct journal_options {
    const struct hf_env *env;
    const char
        *path; /* of the journal's directory, made when it is missing; outlives the journal */
    /* size of a file; larger for a large record, or when no next file opens */
    size_t segment_bytes;
    bool syncs;     /* a file is synced before the next begins, and preallocated */
    bool read_only; /* nothing is made, removed or written */
};

/* Called for each change that tables may lack, in order, at every open after an unclean end. */
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
 * Check that a journal has everything that it must have. Changes nothing. Quick after a clean
 * close.
 *
 * HF_CORRUPT  something is missing or impossible; the message names the file
 * HF_IO, HF_NOMEM
 */
enum hf_status hf__journal_check(struct hf_scope *s, const struct hf_env *env, const char *path,
                                 const struct journal_marks *marks);

/*
 * Open, or make, the journal in a directory, and replay what is behind `based`.
 *
 * HF_CORRUPT  a change that was durable is not there; the message names the file
 * HF_IO, HF_NO_SPACE, HF_NOMEM, or the error of the replay
 */
enum hf_status hf__journal_open(struct hf_scope *s, const struct journal_options *options,
                                const struct journal_marks *marks, journal_replay_fn *replay,
                                void *user, struct journal **journal);

/* Nothing is flushed. NULL is accepted. */
void hf__journal_close(struct journal *journal);

/* ---- writing -------------------------------------------------------------------------------- */

void hf__journal_begin(struct journal *journal);
void hf__journal_end(struct journal *journal);

/* Between hf__journal_begin() and hf__journal_end(): reserve room for a record of `len` bytes, and
 * append it. A reservation that is not appended is dropped. */
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

/* Preallocate the file ahead of its end and prepare the next one, as far as that is due. A failure
 * is harmless; false: the next file is needed and cannot be opened now. */
bool hf__journal_preallocate(struct journal *journal);

/* Is this segment much too long, because no next file can be opened? Then append nothing for now.
 */
bool hf__journal_is_stretched(const struct journal *journal);

/* Number of closed files, to which nothing is written any more, whose changes are not all up to
 * `tabled`. */
uint64_t hf__journal_closed_count(struct journal *journal, uint64_t tabled);

/* Are there closed files that have only changes up to `tabled`? They are the files below *number.
 */
bool hf__journal_reclaimable(struct journal *journal, uint64_t tabled, uint64_t *number);

/* Reclaim the files below `number`: their changes are in tables, and that was noted. At most
 * `spares` of them are kept for reuse, or one without `syncs`; the others are removed. Files of
 * single large records are not reused. */
void hf__journal_reclaim(struct journal *journal, uint64_t number, uint64_t spares);

/* ---- reading beside writers ------------------------------------------------------------------ */

/* As hf__store_changes(), which see; journal_tail.c. */
enum hf_status hf__journal_tail(struct hf_scope *s, struct journal *journal,
                                struct store_changes *changes, uint64_t upto, size_t bytes,
                                store_change_fn *fn, void *user);

/* Replay flushed changes as hf__journal_open() does: those behind `based`, up to `upto` at least.
 * The caller makes sure that nobody flushes and that no maintenance runs meanwhile. */
enum hf_status hf__journal_replay(struct hf_scope *s, struct journal *journal, uint64_t based,
                                  uint64_t upto, journal_replay_fn *replay, void *user);

/* Bytes of all files. */
uint64_t hf__journal_bytes(struct journal *journal);

#endif
