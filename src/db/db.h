/*
 * db/db.h: what a database is to the library: a table of functions. The engine, the client and the
 * wrappers each begin with a struct hf_db.
 */
#ifndef HF_DB_DB_H
#define HF_DB_DB_H

#include <holdfast/db.h>

#include <stdatomic.h>

#include "base/base.h"
#include "ops/fields.h"

struct hf_blobs; /* blob.h */

struct hf_db {
    const struct db_calls *calls;
    atomic_bool sharing;      /* the lock of `shared`: a thread has it */
    struct db_shared *shared; /* a list, see shared.c; NULL: empty */
};

struct db_calls {
    /* Do the operation; the response is zeroed and never NULL. */
    enum hf_status (*call)(struct hf_scope *s, struct hf_db *db, enum hf_op op, const void *request,
                           void *response);
    /* Wait until the ticket of a pending sync is durable. NULL: its calls leave no sync pending. */
    enum hf_status (*sync)(struct hf_scope *s, struct hf_db *db, uint64_t ticket);
    /* May the operation be tried by a caller that has no time to wait (hf__patience's `no_waits`)?
     * It then is done at once, or ends without an effect and the patience is lost. NULL: none may. */
    bool (*is_quick)(struct hf_db *db, enum hf_op op);
    void (*close)(struct hf_db *db);
    /* NULL: it has every feature. Wrappers ask the inner one: hf_db_supports(). */
    enum hf_status (*supports)(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                               bool *supported);
    /* Open the blob store that belongs to the database. NULL: it has none. */
    enum hf_status (*blobs)(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs);
    /* The name of a table in the innermost database. NULL: as it is called here. */
    enum hf_status (*full_name)(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct hf_str *full);
    /* hf_db_opener(). NULL: it has none, as others may use the same tables at the same time. */
    struct hf_str (*opener)(struct hf_db *db);
};

/* Wait until the ticket of hf__scope_set_pending_sync() is durable; the scope has no pending sync
 * now. When it fails, all calls that waited for it may have happened, and may be lost. */
enum hf_status hf__db_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket);

/* What hf_blobs_open_beside() is inside; wrappers ask the inner one. HF_UNSUPPORTED. */
enum hf_status hf__db_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs);

/* How a table is called where it is: with all prefixes that wrappers take away. In the scope, or
 * `table` itself. Wrappers ask the inner one. HF_NOMEM. */
enum hf_status hf__db_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct hf_str *full);

#endif
