/*
 * test/db/between.h: a database in between. It counts the calls and hands each to a function of the
 * test, which passes it on, answers it itself, or does something else at that moment.
 */
#ifndef HF_TEST_DB_BETWEEN_H
#define HF_TEST_DB_BETWEEN_H

#include "db/db.h"

struct between {
    struct hf_db db; /* what the test uses */
    struct hf_db *inner;
    enum hf_status (*on_call)(struct hf_scope *s, struct between *b, enum hf_op op,
                              const void *request, void *response); /* NULL: pass it on */
    bool no_transactions;
    size_t calls[HF_OP_COUNT];
    size_t all_calls;
    int64_t left;         /* for on_call */
    struct hf_scope *own; /* for on_call: a scope beside the caller's */
};

static inline enum hf_status between_pass(struct hf_scope *s, struct between *b, enum hf_op op,
                                          const void *request, void *response)
{
    return b->inner->calls->call(s, b->inner, op, request, response);
}

static inline enum hf_status between_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                          const void *request, void *response)
{
    struct between *b = (struct between *)(void *)db;

    __atomic_fetch_add(&b->calls[op], 1, __ATOMIC_RELAXED); /* patterns have threads */
    __atomic_fetch_add(&b->all_calls, 1, __ATOMIC_RELAXED);
    return b->on_call ? b->on_call(s, b, op, request, response)
                      : between_pass(s, b, op, request, response);
}

static inline enum hf_status between_supports(struct hf_scope *s, struct hf_db *db,
                                              enum hf_feature feature, bool *supported)
{
    const struct between *b = (const struct between *)(const void *)db;

    *supported = false;
    if (feature == HF_FEATURE_TRANSACTIONS && b->no_transactions)
        return HF_OK;
    return hf_db_supports(s, b->inner, feature, supported);
}

static inline struct between between_of(struct hf_db *inner)
{
    static const struct db_calls calls = {.call = between_call, .supports = between_supports};

    return (struct between){.db = {.calls = &calls}, .inner = inner};
}

#endif
