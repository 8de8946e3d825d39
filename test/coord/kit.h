/*
 * test/coord/kit.h: a test of a pattern runs on every kind of database.
 *
 *     KIT_TEST(lock, one_of_two_gets_it)
 *     {
 *         CHECK_OK(hf_lock_table_open(k->scope, k->db, ...));
 *     }
 *
 * makes lock.one_of_two_gets_it_on_memory, ..._on_disk, ..._on_server (ours, over TCP, in the same
 * process) and ..._on_url, which is any other: HF_KIT_URL names it, and without that variable it
 * does nothing. All have the test's virtual clock and counted memory: patterns measure time by the
 * env, not by the database, however far away that is. `db` can be told to have faults, by
 * hf_faulty_set().
 */
#ifndef HF_TEST_PATTERNS_KIT_H
#define HF_TEST_PATTERNS_KIT_H

#include <holdfast/db.h>
#include <holdfast/faults.h>
#include <holdfast/scope.h>

#include "test.h"

struct kit {
    struct test *t;
    struct hf_scope *scope;
    struct hf_db *db;
    struct hf_str table; /* a name that no other test uses, for a table to be made */
    struct hf_str other; /* and another one; both are deleted in the end */
};

typedef void kit_fn(struct kit *k);

void kit_run(struct test *t, const char *kind, kit_fn *run);

/* Make the table, with the key "id", and wait for it. */
void kit_make_table(struct kit *k, struct hf_str table);

/* Does the database have it? dynalite and ScyllaDB have no transactions, say. */
bool kit_has(struct kit *k, enum hf_feature feature);

/* Does a refusal come with the item that is there? dynalite's does not, so it has to be read. */
bool kit_refusal_has_item(struct kit *k);

/* One more scope, of another thread or actor; the kit frees it. */
struct hf_scope *kit_scope(struct kit *k);

/* Let the database build its indexes, as far as it is ours: others do that by themselves. */
void kit_upkeep(struct kit *k);

/* Strike `count` calls of one operation (0: all of them); and make all well again. */
void kit_fault(struct kit *k, enum hf_fault_kind kind, const char *operation, uint32_t count);
void kit_no_faults(struct kit *k);

#define KIT_TEST(group_, name_)                                                                    \
    static void kit_##group_##_##name_(struct kit *k);                                             \
    TEST(group_, name_##_on_memory)                                                                \
    {                                                                                              \
        kit_run(t, "memory:", kit_##group_##_##name_);                                             \
    }                                                                                              \
    TEST(group_, name_##_on_disk)                                                                  \
    {                                                                                              \
        kit_run(t, "disk:", kit_##group_##_##name_);                                               \
    }                                                                                              \
    TEST(group_, name_##_on_server)                                                                \
    {                                                                                              \
        kit_run(t, "server:", kit_##group_##_##name_);                                             \
    }                                                                                              \
    TEST(group_, name_##_on_url)                                                                   \
    {                                                                                              \
        kit_run(t, "url:", kit_##group_##_##name_);                                                \
    }                                                                                              \
    static void kit_##group_##_##name_(struct kit *k)

/* The same where there are transactions, and nothing elsewhere. */
#define KIT_TEST_TX(group_, name_)                                                                 \
    static void kit_tx_##group_##_##name_(struct kit *k);                                          \
    KIT_TEST(group_, name_)                                                                        \
    {                                                                                              \
        if (kit_has(k, HF_FEATURE_TRANSACTIONS))                                                   \
            kit_tx_##group_##_##name_(k);                                                          \
    }                                                                                              \
    static void kit_tx_##group_##_##name_(struct kit *k)

#endif
