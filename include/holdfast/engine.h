/*
 * The embedded engine: a whole DynamoDB-compatible database in your process. Link
 * libholdfast-engine.
 *
 *     struct hf_db *db;
 *     if (hf_open(s, HF_STR("embedded:/var/lib/shop"), NULL, &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db);
 *
 * By default a write that returned HF_OK survives kill -9 and power loss. One process at a time
 * has a directory open; any number of its threads use the database.
 *
 * A child of fork() has none of the engine's threads. It must not use a database on disk, and must
 * end with exec() or _exit(): its exit() would wait in RocksDB for a thread that only the parent
 * has.
 */
#ifndef HOLDFAST_ENGINE_H
#define HOLDFAST_ENGINE_H

#include <holdfast/backup.h>
#include <holdfast/base.h>
#include <holdfast/bind.h>
#include <holdfast/check.h>
#include <holdfast/db.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

enum hf_sync {
    HF_SYNC_FULL = 1, /* a call that returns HF_OK has been synced to disk; the default */
    HF_SYNC_BATCH,    /* synced within sync_window_ms; a crash of the machine may lose that */
    HF_SYNC_NONE      /* the system decides; a crash of the machine may lose minutes */
};

enum hf_wording {
    HF_WORDING_CLASSIC = 1, /* DynamoDB's texts before 2026; the default */
    HF_WORDING_2026         /* the texts of the newer validation layer where they are known */
};

struct hf_engine_options {
    size_t size;              /* set by HF_OPTIONS(), so that the struct can grow */
    const struct hf_env *env; /* memory, clocks, log; copied; default: the system's */
    enum hf_sync sync;        /* default HF_SYNC_FULL */
    uint32_t sync_window_ms;  /* with HF_SYNC_BATCH; default 100 */
    size_t memtable_bytes;    /* memory for the newest writes; default 64 MiB */
    size_t cache_bytes;       /* memory for blocks that were read; default 32 MiB */
    uint64_t reserve_bytes;   /* free disk space to keep; default from memtable_bytes */
    bool no_verify;           /* skip checksums of blocks on reads */
    bool compress;            /* lz4 on disk */
    bool no_upkeep_thread;    /* expiry, trimming and index building wait for hf_engine_upkeep() */
    uint32_t stream_shards;   /* of a stream that is enabled; default 4, at most 64 */
    struct hf_str region;     /* in ARNs and stream records; default "us-east-1" */
    struct hf_str account;    /* in ARNs; default "123456789012" */
    enum hf_wording wording;  /* default HF_WORDING_CLASSIC */
    uint32_t max_tables;      /* CreateTable fails beyond that, HF_LIMIT; default 2500 */
    bool read_only;           /* change nothing on disk; see hf_open() */
    bool no_create;           /* the directory has to exist, with a database in it */
    uint64_t bulk_bytes;      /* about to be put at once: meanwhile, tables are merged less often */
    const struct hf_backup_options
        *backup;           /* copy it elsewhere while it is used: backup.h; default: no */
    struct hf_str buckets; /* where the buckets of exports and imports are; default: nowhere */
};

/*
 * Open a database by URL: "memory:" is new, empty and gone when closed; "embedded:PATH" is the
 * directory PATH, created if missing (its parent must be there). "http://HOST:PORT",
 * "https://HOST:PORT" and "dynamodb://REGION" are services, connected to as hf_connect() of
 * client.h does it; of the options only env and region count then. On failure *db is NULL.
 *
 * With `read_only` nothing in the directory is created, changed or removed, and there are no
 * threads: no expiry, no trimming, no building of indexes. Calls that write fail with HF_DENIED.
 * Any number of processes may open a directory read-only at the same time, but not while another
 * process writes. Changes that are not in table files yet are held in memory, whatever
 * memtable_bytes says. The disk may be full.
 *
 * `buckets` is a URL: the bucket B of ExportTableToPointInTime and ImportTable is, with "dir:PATH",
 * the folder PATH/B, which has to exist; with "s3://?endpoint=URL", the bucket B of that service, and of
 * Amazon S3 without an endpoint; with "s3://OUTER/PREFIX", what is below PREFIX/B/ in the bucket OUTER.
 * (Parameters and credentials as in blob.h.) Without it those two operations are refused.
 *
 * HF_INVALID   the URL is unknown, the directory holds something else, or an option is invalid: a
 *              region or account is up to 64 letters, digits, - and _
 * HF_IO        the directory cannot be created, read or written; the message says why
 * HF_LOCKED    the directory is open already
 * HF_NOT_FOUND with `read_only` or `no_create`: the database does not exist
 * HF_FORMAT    it was written by a newer version
 * HF_CORRUPT   it is damaged; the message names what
 * HF_NO_SPACE  the disk is too full to open it safely
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_open(struct hf_scope *s, struct hf_str url,
                                           const struct hf_engine_options *options,
                                           struct hf_db **db);

/*
 * hf_open() for other languages: what hf_bind_connect() of bind.h is, for every URL that hf_open()
 * takes.
 */
HF_API int hf_bind_open_url(const char *url, size_t url_len, const char *options,
                            size_t options_len, struct hf_bind **bind, char **answer,
                            size_t *answer_len);

/* What one round of maintenance did. */
struct hf_upkeep_report {
    uint64_t expired_items;   /* deleted because their time to live ended */
    uint64_t trimmed_records; /* stream records older than 24 hours */
    uint64_t dropped_tokens;  /* of transactions, older than ten minutes */
    uint64_t indexed_items;   /* looked at for indexes that are being built */
    uint64_t erased_keys;     /* of tables, indexes, streams and backups that are gone */
    uint64_t backed_up_items; /* copied to backups that are being made */
    uint64_t restored_items;  /* put into tables that are being restored */
    uint64_t reserved[8];
};

/*
 * Do the maintenance that is due by the env's clock: finish backups, restores and indexes, expire
 * items, trim streams, drop tokens, erase the data of deleted tables. The engine's thread does the
 * same about once a second; one round runs at a time. `report` may be NULL. HF_UNSUPPORTED when
 * `db` is not an embedded database. Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_engine_upkeep(struct hf_scope *s, struct hf_db *db,
                                                    struct hf_upkeep_report *report);

/*
 * Verify everything: each stored record is well-formed, every index entry has its item and every
 * item its entries, sequence numbers grow, expiry entries and tokens match, backups have all their
 * items. Reads the whole database as of one moment, beside other calls. It empties the block cache
 * at its start, so that blocks are read from their files. `report` may be NULL; if the check fails,
 * it has what was read until then.
 *
 * HF_CORRUPT      damage was found; the message names the first
 * HF_UNSUPPORTED  `db` is not an embedded database
 * HF_CANCELED, HF_TIMEOUT  by the scope, which is checked all the time
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_engine_check(struct hf_scope *s, struct hf_db *db,
                                                   struct hf_check_report *report);

/* The same, with options; NULL: all defaults. */
HF_API HF_NODISCARD enum hf_status hf_engine_check_with(struct hf_scope *s, struct hf_db *db,
                                                        const struct hf_check_options *options,
                                                        struct hf_check_report *report);

struct hf_engine_stats {
    uint64_t syncs;        /* times the journal was synced */
    uint64_t sync_waits;   /* writes that waited for one */
    uint64_t disk_bytes;   /* what the directory takes; 0 in memory */
    uint64_t memory_bytes; /* what the store holds in memory */
    bool stopped;          /* a sync failed: writes are refused until it is opened again */
    bool no_space;         /* writes are refused until there is room */
    bool read_only;        /* it was opened to be read */
    bool embedded;         /* it is an embedded database */
    struct hf_str path;    /* of its directory, until it is closed; absent in memory */
    uint64_t reserved[6];
};

/* Figures of now; all zero when `db` is not an embedded database. Any thread. */
HF_API void hf_engine_stats(struct hf_db *db, struct hf_engine_stats *stats);

/* Called for a table, with how many of its items have changed so far. It must not use the database. */
typedef void hf_engine_changes_fn(struct hf_str table, uint64_t changes, void *user);

/*
 * Call `take` for each table of which items have changed since it was created or the database was
 * opened, whoever changed them. So a program can notice which tables were written since it last
 * asked. Does nothing when `db` is not an embedded database. Any thread.
 */
HF_API void hf_engine_changes(struct hf_db *db, hf_engine_changes_fn *take, void *user);

/* ---- snapshots ------------------------------------------------------------------------------ */

/*
 * Everything that a database holds at one moment, kept in memory, so that tests can start from the
 * same state again and again:
 *
 *     struct hf_engine_snapshot *fresh;
 *     if (hf_engine_snapshot_take(s, db, &fresh) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...                                                            a test that makes a mess
 *     if (hf_engine_snapshot_restore(s, db, fresh) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     hf_engine_snapshot_free(fresh);
 *
 * It contains tables with their settings and indexes, items, streams with their records, tokens of
 * transactions and unfinished maintenance. A snapshot does not change; any number of threads may
 * restore it at once, also into other databases, and after its own was closed. (Databases that
 * share one should have the same region and account: ARNs are in it.)
 *
 * Not meant for backups of large databases: the snapshot has to fit in memory, and so does the data
 * that a restore replaces.
 */
struct hf_engine_snapshot;

/* Take a snapshot; free it with hf_engine_snapshot_free(). Others go on meanwhile, reading and
 * writing. On failure *snapshot is NULL.
 *
 * HF_LIMIT        the database holds more than 256 MiB of keys and values, which no restore could
 *                 put back
 * HF_UNSUPPORTED  `db` is not an embedded database
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_engine_snapshot_take(struct hf_scope *s, struct hf_db *db,
                                                           struct hf_engine_snapshot **snapshot);

/*
 * Set the database to the state of the snapshot, in one step and durably, as the sync mode says.
 * Calls of other threads wait and then go on; each of them sees the state before or after, and so
 * does the next open after a crash. On failure nothing has changed, unless hf_scope_error(s) says
 * that it may have happened.
 *
 * Sequence numbers of streams do not go back, nor do the ids in which tables, indexes and streams
 * are kept. A shard iterator stays valid if its stream is in the snapshot; later records are gone.
 *
 * HF_LIMIT        the database and the snapshot together hold more than 256 MiB of keys and values
 * HF_NO_SPACE     the disk has too little room for the change; nothing was written
 * HF_CORRUPT      the snapshot came from an invalid file; nothing was written
 * HF_STOPPED      the database accepts no writes since one failed
 * HF_UNSUPPORTED  `db` is not an embedded database
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status
hf_engine_snapshot_restore(struct hf_scope *s, struct hf_db *db,
                           const struct hf_engine_snapshot *snapshot);

/* NULL is accepted. */
HF_API void hf_engine_snapshot_free(struct hf_engine_snapshot *snapshot);

struct hf_engine_snapshot_size {
    uint64_t tables;
    uint64_t items;
    uint64_t entries; /* all that is stored: items, index entries, stream records and so on */
    uint64_t bytes;   /* of their keys and values, and eight for each */
    int64_t taken_us; /* when, by the clock of the database; microseconds since 1970 */
    uint64_t reserved[4];
};

/* How much the snapshot holds. */
HF_API void hf_engine_snapshot_size(const struct hf_engine_snapshot *snapshot,
                                    struct hf_engine_snapshot_size *size);

/*
 * Keep a snapshot in the file `path`, which is replaced whole when it exists: after a crash it is
 * the old or the new one. HF_IO or HF_NO_SPACE when it cannot be written. Blocks.
 */
HF_API HF_NODISCARD enum hf_status
hf_engine_snapshot_save(struct hf_scope *s, const struct hf_engine_snapshot *snapshot,
                        struct hf_str path);

/*
 * Read a snapshot from a file. Everything in the file is covered by checksums; they find damage,
 * not malice: load files that you trust. On failure *snapshot is NULL.
 *
 * HF_IO       the file cannot be read
 * HF_CORRUPT  it is no snapshot, cut short or damaged; the message says where
 * HF_FORMAT   it was written by a newer version
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_engine_snapshot_load(struct hf_scope *s, struct hf_str path,
                                                           struct hf_engine_snapshot **snapshot);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
