/*
 * server/console/tail.h: the last requests, while somebody looks at them.
 *
 * Every loop and worker has a ring of TAIL_RECORDS, which the thread of figures.h empties several
 * times a second. A ring that is full takes no more until then: requests are counted as dropped, and
 * nobody waits. While nobody looks, a request costs the look at one flag.
 */
#ifndef HF_SERVER_TAIL_H
#define HF_SERVER_TAIL_H

#include <holdfast/db.h>

#include "base/buf.h"

enum { TAIL_RECORDS = 64 };

struct answer;
struct op;
struct server;
struct tail; /* of one loop or worker */

/* NULL: no memory. */
struct tail *hf__tail_new(struct hf_scope *s, size_t len);
struct tail *hf__tail_thread(struct tail *tails, size_t number);
void hf__tail_free(struct tail *tails, size_t len); /* NULL is accepted */

/* A call has ended, and its answer is made. `response` is NULL for one that failed. */
void hf__tail_call(struct answer *answer, const struct op *op, const void *request,
                   const void *response, enum hf_status status, uint64_t took_ns);

/* Take all that is there, as events of the stream, and count them; returns how many were dropped since
 * the last time. */
uint64_t hf__tail_take(struct server *server, struct hf__buf *out, uint64_t *len);

#endif
