/*
 * Databases and their operations.
 *
 * A database is opened by URL and used through one call, hf_db_call(): an operation, its request,
 * its response. The functions of db_ops.h are that call with types, one for each operation, and say
 * what it does and how it can fail. Requests and responses are DynamoDB's, under our names: a
 * member that is left out is zero, which is absent for a string, a list or an item, and "not given"
 * for a number, a flag or an enum (HF_ZERO and HF_NO say zero and no where that differs).
 *
 *     struct hf_get_item_result got;
 *     if (hf_get_item(s, db, &(struct hf_get_item){.table = HF_STR("users"),
 *                                                  .key = HF_ITEM(s, HF_S("id", id))}, &got))
 *         return complain(hf_scope_error_text(s));
 *     if (got.item.ptr)
 *         use(got.item);
 *
 * Results live in the scope. A result may be NULL when it does not matter; it is zeroed when the
 * call fails. A NULL database or request is HF_INVALID.
 *
 * A request struct and its function have the same name, so C++ has to say `struct hf_get_item` as C
 * does. Requests and results are declared by subject, in db_items.h, db_tables.h, db_streams.h,
 * db_backups.h, db_services.h and db_transfers.h; this header includes all of them.
 */
#ifndef HOLDFAST_DB_H
#define HOLDFAST_DB_H

#include <holdfast/base.h>
#include <holdfast/db_backups.h>
#include <holdfast/db_items.h>
#include <holdfast/db_ops.h>
#include <holdfast/db_services.h>
#include <holdfast/db_streams.h>
#include <holdfast/db_tables.h>
#include <holdfast/db_transfers.h>
#include <holdfast/env.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_db; /* any thread may use it */

/* ---- the one call --------------------------------------------------------------------------- */

/* The operation's name on the wire, such as "PutItem"; absent for any other number. */
HF_API struct hf_str hf_op_name(enum hf_op op);

/*
 * Do `op`. `request` is a struct of the operation's name, `response` its _result, zeroed by the
 * call; NULL when it does not matter.
 */
HF_API HF_NODISCARD enum hf_status hf_db_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                              const void *request, void *response);

/* Close the database. NULL is accepted. No call may be in flight. */
HF_API void hf_db_close(struct hf_db *db);

/*
 * A random text that identifies this opening of a database, on disk or in memory. One process at a
 * time has a directory open, and each opening gets a new text. So a lease with another text belongs
 * to a process that has ended, and patterns take it over at once. Absent for databases over the
 * network, which several processes use at the same time. It lives as long as `db`. Any thread.
 */
HF_API struct hf_str hf_db_opener(struct hf_db *db);

/*
 * An object that users of one database share, such as a thread. `make` is called for the first
 * user, `end` when the last one has released it; a kind is identified by the address of the struct.
 */
struct hf_shared_kind {
    enum hf_status (*make)(struct hf_scope *s, void **object);
    void (*end)(void *object);
};

/* Fails as `make` does, and with HF_NOMEM. Each one is given back, before the database is closed.
 * Any thread. */
HF_API HF_NODISCARD enum hf_status hf_db_share(struct hf_scope *s, struct hf_db *db,
                                               const struct hf_shared_kind *kind, void **object);
HF_API void hf_db_unshare(struct hf_db *db, const struct hf_shared_kind *kind);

/*
 * Wait until everything that calls on this scope wrote since hf_scope_sync_later() is durable, and with
 * it everything that other scopes wrote before. At once if nothing waits for a sync, and on services.
 *
 * HF_IO       the sync failed: what was written may be lost
 * HF_STOPPED  an earlier one failed
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_db_sync(struct hf_scope *s, struct hf_db *db);

/* Features that not every service has. */
enum hf_feature {
    HF_FEATURE_TRANSACTIONS = 1, /* TransactWriteItems, TransactGetItems; ScyllaDB has none */
    HF_FEATURE_PARTIQL,          /* statements; ScyllaDB has none */
    HF_FEATURE_STREAMS,          /* DescribeStream, GetRecords and kin */
    HF_FEATURE_TIME_TO_LIVE,     /* UpdateTimeToLive */
    HF_FEATURE_BACKUPS           /* CreateBackup and kin */
};

/*
 * Whether the database has a feature. A service is asked once, with a request that changes nothing,
 * and the answer is kept. The embedded engine has all of them. Fails as any operation does.
 */
HF_API HF_NODISCARD enum hf_status hf_db_supports(struct hf_scope *s, struct hf_db *db,
                                                  enum hf_feature feature, bool *supported);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
