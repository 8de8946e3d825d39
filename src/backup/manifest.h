/*
 * backup/manifest.h: what a backup has, and who may add to it.
 *
 * Every process that begins to ship begins an epoch, with a manifest of its own that nobody else
 * writes. The one of the highest epoch counts. It has the list of snapshots, where each epoch began
 * in the chain of segments, and how far the chain was when it was written last: whatever of that is
 * not there is missing. Segments may be there behind that.
 *
 * The payload:
 *
 *     16   token: random, of who made the epoch; the directory of the database has it, too
 *     u64  seq of the newest segment, 0: there is none yet; i64 its time, u64 its last change, u64
 *          its check, 32 its hash; when the epoch has no segment yet, what its first one goes on from
 *     u64  floor: segments up to this seq may be gone
 *     u8   1: the process has ended in an orderly way, and had nothing left to ship
 *     u32  how many epochs, each: u64 epoch, u64 first seq, u64 change before its first one,
 *          i64 time, u8 joined, 32 hash before its first segment
 *     u32  how many snapshots, each: u64 epoch, u64 seq, u64 last change, i64 time, u64 parts,
 *          u64 entries, u64 bytes, 32 hash of the last part
 *
 * An epoch is joined when the journal was shown to go on where the chain had ended. Otherwise what
 * happened in between is not known: no restore goes across, and the epoch begins with a snapshot.
 */
#ifndef HF_BACKUP_MANIFEST_H
#define HF_BACKUP_MANIFEST_H

#include "backup/form.h"

enum { MANIFEST_TOKEN = 16 };

struct backup_tail {
    uint64_t seq; /* 0: there is no segment */
    int64_t to_us;
    uint64_t last;
    uint64_t check;
    uint8_t hash[FORM_HASH];
};

struct backup_epoch {
    uint64_t epoch;
    uint64_t first_seq;
    uint64_t base; /* the change before its first one */
    int64_t time_us;
    bool joined;
    uint8_t before[FORM_HASH]; /* what its first segment has as the hash before it */
};

struct backup_snapshot {
    uint64_t epoch;
    uint64_t seq;
    uint64_t last;
    int64_t time_us;
    uint64_t parts;
    uint64_t entries;
    uint64_t bytes; /* of its objects */
    uint8_t hash[FORM_HASH];
};

struct manifest {
    uint64_t id;
    uint64_t epoch;
    int64_t to_us; /* everything until then is in the segments up to the tail */
    uint8_t token[MANIFEST_TOKEN];
    struct backup_tail tail;
    uint64_t floor;
    bool closed;
    struct hf__buf epochs;    /* struct backup_epoch, ascending */
    struct hf__buf snapshots; /* struct backup_snapshot, ascending */
};

static inline size_t manifest_epochs(const struct manifest *m)
{
    return m->epochs.len / sizeof(struct backup_epoch);
}
static inline struct backup_epoch *manifest_epoch(const struct manifest *m, size_t i)
{
    assert(i < manifest_epochs(m));
    return (struct backup_epoch *)(void *)m->epochs.ptr + i;
}
static inline size_t manifest_snapshots(const struct manifest *m)
{
    return m->snapshots.len / sizeof(struct backup_snapshot);
}
static inline struct backup_snapshot *manifest_snapshot(const struct manifest *m, size_t i)
{
    assert(i < manifest_snapshots(m));
    return (struct backup_snapshot *)(void *)m->snapshots.ptr + i;
}

/* The epoch that the segment with this seq belongs to; NULL: none that is known. */
const struct backup_epoch *hf__chain_epoch_of(const struct manifest *m, uint64_t seq);

/* The first epoch behind `epoch` that is not joined; NULL: none. */
const struct backup_epoch *hf__chain_break_behind(const struct manifest *m, uint64_t epoch);

/* Does the newest snapshot, with the segments behind it, make the end of the chain? */
bool hf__chain_has_base(const struct manifest *m);

/* The object of a manifest, in a buffer of the scope. */
enum hf_status hf__chain_manifest_make(struct hf_scope *s, const struct form *form,
                                       const struct manifest *m, struct hf_bytes *object);

/* Read one; its lists are in the scope. HF_CORRUPT and what hf__form_read() returns. */
enum hf_status hf__chain_manifest_read(struct hf_scope *s, const struct form *form,
                                       struct hf_str name, struct hf_bytes object,
                                       struct manifest *m);

#endif
