/*
 * engine/write/write.h: operations that change items: put, update and delete, and transactions of
 * them.
 */
#ifndef HF_ENGINE_WRITE_WRITE_H
#define HF_ENGINE_WRITE_WRITE_H

#include "engine/item/change.h"
#include "engine/write/token.h"

enum { TRANSACTION_FACTOR = 2 }; /* transactions cost twice as much on the table */

/* Evaluate one prepared write against change->before; fills change->after. */
enum hf_status hf__write_evaluate(struct hf_scope *s, enum write_kind kind,
                                  const struct prepared_write *write, struct change *change);
/* The whole of PutItem, UpdateItem and DeleteItem. */
struct write_answer {
    struct hf_item attributes;
    const struct hf_capacity *capacity;
    const struct hf_collection_metrics *metrics;
};
enum hf_status hf__write_one(struct hf_scope *s, struct engine *e, enum write_kind kind,
                             const struct prepared_write *write, struct write_answer *answer);
/* Check a write as far as its table's schema decides. */
enum hf_status hf__write_check_schema(struct hf_scope *s, const struct table *table,
                                      enum write_kind kind, const struct prepared_write *write);

/* ---- fence.c -------------------------------------------------------------------------------- */

/* HF_DENIED when nobody may write the table, as its data has moved. The schema is read-locked until
 * the write is applied. */
enum hf_status hf__fence_check(struct hf_scope *s, struct engine *e, struct table *table);

/* At the end of a call: if it wrote fences, they hold from now on. No lock is held. */
void hf__fences_follow(struct engine *e);

/* ---- transact_write.c ----------------------------------------------------------------------- */

/* A transaction of writes, whatever request it came in. */
struct transact_request {
    const struct prepared_action *actions;
    size_t len;
    struct hf_str token; /* absent: none */
    struct token_digest digest;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    bool statements; /* a put is an INSERT */
};
enum hf_status hf__transact_write(struct hf_scope *s, struct engine *e,
                                  const struct transact_request *request,
                                  struct hf_transact_write_items_result *result);

#endif
