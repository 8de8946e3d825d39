/*
 * store/manifest.h: which manifest the database in PATH/db has, and what is in it, as bytes.
 *
 * RocksDB's manifest is a log of what its tables are, and it takes damage at the end of it for a
 * write that was torn: it opens with fewer tables, or none, and removes the files of the others. So
 * we note how much of the manifest is durable, with a checksum, and look before RocksDB does.
 */
#ifndef HF_STORE_MANIFEST_H
#define HF_STORE_MANIFEST_H

#include "store/marks.h"

/* The checksum of a manifest so far, so that only new bytes are read. */
struct manifest_sum {
    uint64_t number;
    uint64_t bytes; /* in whole blocks */
    uint64_t hash;  /* of those */
};

/*
 * Compare what is there with store_dir->marks.manifest, and change nothing. *noted: it is the same
 * to the byte. Otherwise it is longer, or a newer one, or none was noted: the tables themselves
 * have to say what they hold.
 *
 * HF_CORRUPT  what was noted is not there
 */
enum hf_status hf__manifest_check(struct hf_scope *s, struct store_dir *store_dir, bool *noted);

/* The mark of the manifest as it is now, which is made durable. RocksDB may append meanwhile; one
 * thread at a time calls this. False: that failed. */
bool hf__manifest_note(struct store_dir *store_dir, struct manifest_mark *mark);

/* A mark that names the manifest but none of its bytes, so that the next open asks the tables. */
struct manifest_mark hf__manifest_any(uint64_t number);

#endif
