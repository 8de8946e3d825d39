/*
 * server/hot.h: which tables, partitions and items the requests are about: GET /_holdfast/top, for
 * `holdfast top` and the like.
 *
 * As with metrics, every loop and worker counts for itself; a reader adds them up. Every server
 * offers it. With keys the request has to be signed as all others: names and keys are data.
 */
#ifndef HF_SERVER_HOT_H
#define HF_SERVER_HOT_H

#include <holdfast/db.h>

#include "base/base.h"

#define HOT_PATH "/_holdfast/top"

struct admin_request;
struct answer;
struct hot; /* of one loop or worker */
struct op;

/* NULL: no memory. */
struct hot *hf__hot_new(struct hf_scope *s, size_t len);
struct hot *hf__hot_thread(struct hot *hot, size_t number);
void hf__hot_free(struct hot *hot, size_t len); /* NULL is accepted */

/* A call has ended. `body_len` is the length of its JSON, `now_ns` of the monotonic clock. `s` is the
 * scope of the request: the call may allocate in it, and leaves its error as it is. */
void hf__hot_call(struct hot *hot, struct hf_scope *s, struct hf_db *engine, const struct op *op,
                  const void *request, size_t body_len, bool failed, uint64_t now_ns);

/* See admin.h. */
void hf__admin_top(struct answer *answer, const struct admin_request *request);

#endif
