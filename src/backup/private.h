/*
 * backup/private.h: the shipper, as its files share it: ship.c (marks, segments, the thread),
 * ship_attach.c (beginning an epoch), ship_snapshot.c (snapshots, and removing what is old).
 */
#ifndef HF_BACKUP_PRIVATE_H
#define HF_BACKUP_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "backup/chain.h"
#include "backup/ship.h"

enum {
    SHIP_MARKS_MAX =
        16384, /* marks that are kept: half an hour of an outage; then every other one goes */
    SHIP_SEGMENT = 8 * 1024 * 1024, /* bytes of records of a segment; a single one may be larger */
    SHIP_PART = 8 * 1024 * 1024,    /* bytes of a part of a snapshot, likewise */
    SHIP_MANIFEST_MS = 10000,       /* how often the manifest is written while segments are */
    SHIP_IDLE_MS = 60000,           /* and while there are none */
    SHIP_MARK_MS = 100,             /* between two marks, at most */
    SHIP_CALL_MS = 900000,       /* that a step may take; its requests have limits of their own */
    SHIP_BACKOFF_MS = 200,       /* before a failed request is sent again: at first, */
    SHIP_BACKOFF_MAX_MS = 15000, /* and at most */
    SHIP_REFUSED_MS = 30000      /* before a place that cannot be used is looked at again */
};

/* What is durable up to `change` was so at `time_us`. */
struct ship_mark {
    int64_t time_us;
    uint64_t change;
};

/* A snapshot that is being taken. */
struct ship_snapshot {
    struct hf__store_snapshot *from;
    struct hf__store_iter *iter;
    bool ended;                /* the walk has */
    struct backup_snapshot is; /* as far as it is */
    struct hf__buf part;       /* an object that is to be put; empty: none */
    uint8_t part_hash[FORM_HASH];
};

struct hf__shipper {
    struct hf_env env;
    struct hf__store *store;
    struct hf_backup_options o;
    struct hf_scope *memory; /* of the options' texts */
    struct hf_str directory;
    struct hf__objects *objects;
    struct hf__seal *seal;
    struct form form;

    /* of the thread that steps */
    bool attached;
    bool breaks; /* the next epoch is not joined: changes are missing */
    struct manifest manifest;
    struct store_changes changes; /* up to those that are in segments that were made */
    struct hf__buf segment;       /* an object that is to be put; empty: none */
    struct form_head segment_head;
    uint8_t segment_hash[FORM_HASH];
    struct ship_snapshot snapshot;
    bool wants_snapshot;
    bool manifest_dirty;
    int64_t manifest_us, snapshot_began_us; /* elapsed clock */
    int64_t retry_us;                       /* elapsed clock: nothing is sent before; 0: now */
    uint32_t backoff_ms;
    bool was_behind;

    pthread_mutex_t lock;    /* guards all below */
    pthread_cond_t wake;     /* of the threads */
    pthread_cond_t done;     /* of those who wait */
    struct ship_mark *marks; /* a ring */
    size_t marks_at, marks_len;
    struct ship_mark marked; /* the newest that was ever made */
    uint64_t shipped;        /* changes up to this one are in segments that were put */
    bool hurry;              /* somebody waits */
    bool closing;
    struct hf_backup_health status;

    bool has_threads;
    pthread_t ship_thread, mark_thread;
    struct hf_scope *work; /* of the thread that steps; canceled by a close */
};

/* ---- ship.c --------------------------------------------------------------------------------- */

/* Put an object, and count it. */
enum hf_status hf__ship_put(struct hf_scope *s, struct hf__shipper *sh, struct hf_str name,
                            struct hf_bytes bytes, bool once, bool *made);

/* Ship changes that are due, or all. When the journal has lost some, sh->attached is false. */
enum hf_status hf__ship_changes(struct hf_scope *s, struct hf__shipper *sh, bool all);

/* Write the manifest, after a look whether the place is still ours. HF_LOST. */
enum hf_status hf__ship_manifest(struct hf_scope *s, struct hf__shipper *sh);

/* Another process has begun an epoch. */
enum hf_status hf__ship_lost(struct hf_scope *s, struct hf__shipper *sh);

/* ---- ship_attach.c -------------------------------------------------------------------------- */

/* Begin an epoch. HF_LOST, HF_INVALID (it is the place of another database), HF_CORRUPT, ... */
enum hf_status hf__ship_attach(struct hf_scope *s, struct hf__shipper *sh);

/* ---- ship_snapshot.c ------------------------------------------------------------------------ */

/* Begin a snapshot, or go on with it by a part. */
enum hf_status hf__ship_snapshot_step(struct hf_scope *s, struct hf__shipper *sh);
void hf__ship_snapshot_drop(struct hf__shipper *sh);

/* Remove what no restore within the window needs. */
enum hf_status hf__ship_trim(struct hf_scope *s, struct hf__shipper *sh);

#endif
