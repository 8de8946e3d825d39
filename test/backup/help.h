/* backup/help.h: a store on disk that is shipped to a folder, step by step, and what it held when. */
#ifndef HF_TEST_BACKUP_HELP_H
#define HF_TEST_BACKUP_HELP_H

#include "backup/chain.h"
#include "backup/ship.h"
#include "store/store.h"

#include "test.h"

enum { HELP_KEYS = 12, HELP_MOMENTS = 4000 };

/* What the store held from a moment on: the value of each key, 0: none. */
struct moment {
    int64_t at_us;
    uint32_t values[HELP_KEYS];
};

struct rig {
    struct test *t;
    struct hf_scope *s;
    const char *path;  /* of the store */
    const char *place; /* of the backup */
    struct hf_str url;
    struct hf_backup_options o; /* `to` is filled in */
    enum store_sync sync;
    uint64_t keep_bytes;
    size_t memtable_bytes;
    struct hf__store *store;
    struct hf__shipper *shipper;
    struct moment now;
    struct moment *moments; /* by time; the last is of now */
    size_t moments_len;
    uint32_t restored; /* directories so far */
};

void rig_begin(struct test *t, struct rig *rig);
void rig_open(struct rig *rig);  /* the store and the shipper */
void rig_close(struct rig *rig); /* both, in an orderly way */
void rig_end(struct rig *rig);

/* A change of one key, durable, and marked; `value` 0 deletes it. Some time passes before. */
void rig_put(struct rig *rig, unsigned key, uint32_t value);

/* The moments of this rig that a backup which reaches to `at_us` has. */
const struct moment *rig_moment(const struct rig *rig, int64_t at_us);

/* Restore to a moment, and compare with what the store held then. */
void rig_check_moment(struct rig *rig, int64_t at_us);

/* What hf_backup_verify() and hf_backup_open() say of the place. */
enum hf_status rig_verify(struct rig *rig, struct hf_backup_report *report);
enum hf_status rig_restore(struct rig *rig, int64_t at_us, const char **path,
                           struct hf_backup_report *report);

/* What is in a store that was restored. */
void rig_read(struct rig *rig, const char *path, uint32_t values[HELP_KEYS]);

/* The names of all objects in the place, but for what is being written. */
size_t rig_objects(struct rig *rig, const char **names, size_t max);

#endif
