/*
 * server/console/hot.h: which tables, partitions and items the requests are about: GET /_holdfast/top, for
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

/* A call has ended. `engine` is NULL for a database that is remote. `now_ns` is of the monotonic clock. `s` is the
 * scope of the request: the call may allocate in it, and leaves its error as it is. */
void hf__hot_call(struct hot *hot, struct hf_scope *s, struct hf_db *engine, const struct op *op,
                  const void *request, bool failed, uint64_t now_ns);

/* ---- for others that look: see tail.h, figures.h -------------------------------------------- */

enum { HOT_SUBJECT_TABLE = 255, HOT_SUBJECT_KEY = 96 };

/* What a call is about: its table, or the first of several, and the hash key in it. */
struct hot_subject {
    bool more; /* it names more items or tables */
    uint8_t table_len;
    uint8_t key_len; /* 0: none, or it is not known what the key is */
    char table[HOT_SUBJECT_TABLE];
    char key[HOT_SUBJECT_KEY]; /* bytes in base64; cut when it is longer */
};

void hf__hot_subject(struct hot *hot, struct hf_scope *s, const struct op *op, const void *request,
                     struct hot_subject *subject);

/* Hand over each table with the number of its writes so far, over all threads. A table may come
 * several times. */
void hf__hot_writes(struct hot *hot, size_t len,
                    void (*take)(struct hf_str table, uint64_t writes, void *user), void *user);

/* See admin.h. */
void hf__admin_top(struct answer *answer, const struct admin_request *request);

#endif
