/*
 * Continuous backups of an embedded database: its journal is copied to a folder or to S3 while it
 * is written, in segments that are at most a second behind, with a snapshot of everything now and
 * then. The state of any moment can be restored from that.
 *
 *     struct hf_backup_options *backup =
 *         HF_OPTIONS(hf_backup_options, .to = HF_STR("s3://backups/shop"));
 *
 *     if (hf_open(s, HF_STR("embedded:shop.db"),
 *                 HF_OPTIONS(hf_engine_options, .backup = backup), &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * and, on whatever machine:
 *
 *     struct hf_backup *backup;
 *
 *     if (hf_backup_open(s, HF_STR("s3://backups/shop"), NULL, &backup) != HF_OK ||
 *         hf_backup_restore(s, backup, HF_STR("shop-restored.db"),
 *                           HF_OPTIONS(hf_backup_restore_options, .at_us = 1795000000000000),
 *                           NULL) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     hf_backup_close(backup);
 *
 * Writes never wait for a backup. What was not shipped yet is lost with the disk; hf_backup_health()
 * says how much that is. Blobs (blob.h) of an embedded database are not part of it.
 * docs/backups.md has all of it. Link libholdfast-engine.
 */
#ifndef HOLDFAST_BACKUP_H
#define HOLDFAST_BACKUP_H

#include <holdfast/base.h>
#include <holdfast/client.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- making backups -------------------------------------------------------------------------- */

struct hf_backup_options {
    size_t size;          /* set by HF_OPTIONS(), so that the struct can grow */
    struct hf_str to;     /* dir:PATH or s3://BUCKET/PREFIX, as in blob.h; of this database alone */
    uint32_t window_ms;   /* how old a change may become before it is shipped; default 1000,
                               from 50 to 3600000 */
    uint64_t snapshot_ms; /* how often a snapshot is taken; default a day, at least a second */
    uint64_t retain_ms;   /* how far back a restore reaches; default 7 days */
    struct hf_str key_file; /* encrypt with AES-256-GCM and the key in this file: 32 bytes, or 64
                               hexadecimal digits; default: not encrypted */
    uint64_t journal_bytes; /* the journal that is kept for a place that cannot be reached; default
                               1 GiB. Beyond that, a new snapshot is taken when it is back */
    uint32_t close_ms;      /* how long a close may take to ship what is left; default 5000 */
    const struct hf_client_options *client; /* s3: as for hf_connect(); default: what the
                                               environment says; used by hf_open() alone */
};

enum hf_backup_state {
    HF_BACKUP_OFF = 1,  /* the database was opened without a backup */
    HF_BACKUP_STARTING, /* the place was not reached yet */
    HF_BACKUP_SHIPPING, /* all is well */
    HF_BACKUP_BEHIND, /* changes are older than they should be: `error` says why, if it is known */
    HF_BACKUP_FENCED, /* another process ships to the place now; nothing is shipped any more */
    HF_BACKUP_REFUSED /* the place cannot be used: `error` says why. It is tried again */
};

/* "off", "starting", "shipping", "behind", "fenced", "refused". */
HF_API const char *hf_backup_state_name(enum hf_backup_state state);

struct hf_backup_health {
    enum hf_backup_state state;
    uint64_t epoch;         /* one more with each process that ships to the place; 0: none yet */
    uint64_t segments;      /* in the chain */
    uint64_t lag_ms;        /* age of the oldest change that is not shipped; 0: all are */
    uint64_t lag_changes;   /* changes that are not shipped */
    uint64_t objects;       /* put by this process */
    uint64_t bytes;         /* of those */
    uint64_t requests;      /* sent by this process, for objects, lists and removals */
    uint64_t failures;      /* requests that failed, so far */
    uint64_t snapshots;     /* that can be restored from */
    uint64_t journal_bytes; /* of the journal, with what is kept for the backup */
    int64_t oldest_us; /* the first moment that can be restored; microseconds since 1970; 0: none */
    int64_t newest_us; /* the last one */
    int64_t snapshot_us; /* when the newest snapshot was taken; 0: there is none */
    bool snapshotting;   /* a snapshot is being taken */
    char error[256];     /* why the last request failed; empty: it did not */
    uint64_t reserved[8];
};

/* Any thread. HF_BACKUP_OFF when `db` is not an embedded database, or has no backup. */
HF_API void hf_backup_health(struct hf_db *db, struct hf_backup_health *health);

/*
 * Wait until everything that is durable at the moment of the call was shipped, and the snapshot that
 * a restore of it begins with was taken. A restore to the newest moment has it from then on.
 *
 * HF_TIMEOUT, HF_CANCELED  by the scope
 * HF_LOST                  another process ships to the place
 * HF_UNSUPPORTED           the database has no backup
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_backup_wait(struct hf_scope *s, struct hf_db *db);

/* ---- using them ------------------------------------------------------------------------------ */

struct hf_backup; /* one thread at a time uses it */

struct hf_backup_open_options {
    size_t size;                            /* set by HF_OPTIONS() */
    struct hf_str key_file;                 /* of the backup, if it is encrypted */
    const struct hf_client_options *client; /* s3: as for hf_connect(); default: what the
                                               environment says */
};

/*
 * Look at the backup in a place: its manifest and the list of its objects. It may be one that is
 * being added to; what comes later is not seen.
 *
 * HF_NOT_FOUND  there is none
 * HF_DENIED     it is encrypted and the key is missing or another one; S3 refused
 * HF_CORRUPT    the manifest is damaged
 * HF_FORMAT     a newer version made it
 * HF_INVALID, HF_IO, HF_NOMEM
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_backup_open(struct hf_scope *s, struct hf_str from,
                                                  const struct hf_backup_open_options *options,
                                                  struct hf_backup **backup);

/* NULL is accepted. */
HF_API void hf_backup_close(struct hf_backup *backup);

struct hf_backup_info {
    uint64_t database; /* the id of the database that it is of */
    uint64_t epoch;
    uint64_t segments;
    uint64_t snapshots;
    uint64_t objects;  /* that count, with the manifest */
    uint64_t bytes;    /* of those */
    uint64_t unneeded; /* objects that nobody needs: they are removed by who ships */
    int64_t oldest_us; /* the first moment that can be restored; 0: none */
    int64_t newest_us; /* the last one */
    bool closed;       /* the process that shipped has ended, and nothing was left to ship */
    bool encrypted;
    uint64_t reserved[8];
};

/* As of hf_backup_open(). Nothing but the manifest was verified. */
HF_API void hf_backup_info(const struct hf_backup *backup, struct hf_backup_info *info);

struct hf_backup_snapshot_info {
    int64_t time_us; /* of which it is */
    uint64_t change; /* number of the newest change in it */
    uint64_t parts;
    uint64_t entries; /* all that is stored: items, index entries, stream records and so on */
    uint64_t bytes;
    uint64_t reserved[4];
};

/* Its snapshots, oldest first, in the scope. HF_NOMEM. */
HF_API HF_NODISCARD enum hf_status
hf_backup_snapshots(struct hf_scope *s, const struct hf_backup *backup,
                    const struct hf_backup_snapshot_info **snapshots, size_t *len);

/* How far a verification or a restore is. On the caller's thread; not HF_OK ends it. */
typedef enum hf_status hf_backup_progress_fn(struct hf_scope *s, uint64_t bytes,
                                             uint64_t bytes_total, void *user);

/* Something that is wrong, as a sentence that names the object. On the caller's thread. */
typedef void hf_backup_damage_fn(struct hf_str text, void *user);

struct hf_backup_verify_options {
    size_t size; /* set by HF_OPTIONS() */
    hf_backup_progress_fn *progress;
    hf_backup_damage_fn
        *damage; /* called with each damage, where verification can go on behind it */
    void *user;  /* handed to both */
};

struct hf_backup_report {
    uint64_t objects; /* that were read and verified */
    uint64_t bytes;
    uint64_t entries; /* of snapshots */
    uint64_t changes; /* of segments */
    uint64_t damages;
    int64_t at_us; /* of a restore: the moment whose state it has; it is not after the one that was
                      asked for, and nothing is known to have happened in between */
    uint64_t reserved[4];
};

/*
 * Read everything: every object is whole and where it belongs, segments follow on each other without
 * a gap, snapshots have all their parts. `report` may be NULL.
 *
 * HF_CORRUPT  something is damaged or missing; the message names the first
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_backup_verify(struct hf_scope *s, struct hf_backup *backup,
                                                    const struct hf_backup_verify_options *options,
                                                    struct hf_backup_report *report);

struct hf_backup_restore_options {
    size_t size;   /* set by HF_OPTIONS() */
    int64_t at_us; /* the moment: microseconds since 1970; default: the newest */
    hf_backup_progress_fn *progress;
    void *user; /* handed to it */
};

/*
 * Make the directory `path`, which must not be there, with the database as it was at a moment:
 * everything that was acknowledged by then is in it, but for a tenth of a second before it (longer,
 * where a thread had to wait for a processor), and nothing that was begun after it. Objects are verified before they are used, and `path` is there
 * when all of it is, and durable. (While it is made it is PATH.restoring; what a killed restore
 * left there is removed.) The new database has an id of its own, and needs a place of its own for
 * its backups. `report` may be NULL.
 *
 * HF_NOT_FOUND  the backup does not reach back to that moment, or does not have it yet, or nothing
 *               was shipped around it; the message says which moments there are
 * HF_CORRUPT    something that is needed is damaged or missing; the message names it
 * HF_IN_USE     `path` is there
 * HF_NO_SPACE, HF_IO, HF_NOMEM, and what `progress` returned
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status
hf_backup_restore(struct hf_scope *s, struct hf_backup *backup, struct hf_str path,
                  const struct hf_backup_restore_options *options, struct hf_backup_report *report);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
