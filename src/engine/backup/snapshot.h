/*
 * engine/backup/snapshot.h: what a database held at one moment, in memory; snapshot.c takes and
 * restores it, snapshot_file.c keeps it in a file.
 *
 * A snapshot is the store's entries in the order of their keys, one behind the other in blocks:
 * u32le length of the key, u32le length of the value, key, value. A block is what is written to a
 * file and checked as one. The settings of the database are not among the entries: two of them are
 * fields here, and the others (its secret, its counts) stay with their database.
 */
#ifndef HF_ENGINE_BACKUP_SNAPSHOT_H
#define HF_ENGINE_BACKUP_SNAPSHOT_H

#include <holdfast/engine.h>

#include "base/base.h"

enum {
    SNAPSHOT_BLOCK = 256 * 1024, /* bytes in a block; an entry that is longer has its own */
    SNAPSHOT_HEAD = 8            /* lengths in front of an entry */
};

struct snapshot_block {
    struct snapshot_block *next;
    size_t cap;
    size_t len;
    uint32_t entries;
    uint8_t bytes[];
};

struct hf_engine_snapshot {
    struct hf_env env;
    struct hf_engine_snapshot_size size;
    uint32_t next_id;  /* ids of tables, indexes and streams are below it */
    uint64_t sequence; /* and numbers of stream records below this one */
    struct snapshot_block *first;
    struct snapshot_block *last;
    uint64_t blocks;
};

/* Where a walk over the entries is; zeroed but for `block`, which is the first. */
struct snapshot_cursor {
    const struct snapshot_block *block;
    size_t at;
};
bool hf__snapshot_next(struct snapshot_cursor *cursor, struct hf_bytes *key,
                       struct hf_bytes *value);

/* An empty one. */
enum hf_status hf__snapshot_new(struct hf_scope *s, struct hf_engine_snapshot **snapshot);
/* A block with room for that many bytes at the end of the list; NULL when there is no memory. */
struct snapshot_block *hf__snapshot_block(struct hf_engine_snapshot *snapshot, size_t cap);
/* Count an entry that is in the last block now. */
void hf__snapshot_count(struct hf_engine_snapshot *snapshot, struct hf_bytes key,
                        struct hf_bytes value);

#endif
