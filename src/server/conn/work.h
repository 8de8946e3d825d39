/*
 * server/conn/work.h: requests that may take long are handled by workers, threads beside the loops, so
 * that nobody waits for them who did not send them.
 *
 *     WAITING --there is memory for it, and a worker--> RUNNING --> DONE, back to its loop
 *        \--no memory within body_ms: refused with 503--> RUNNING
 *
 * That a request may take long shows by its size (WORK_BODY), or while its loop handles it: it is
 * packed, or for an operation that may take any time, or a read that has gone over many items by
 * now (hf__scope_set_patience()). Nothing was done then; the loop notes it in the connection as
 * `for_worker`, and a worker handles it from the start.
 *
 *  (1) While its request is WAITING or RUNNING, a connection is WORKING: its loop reads nothing,
 *      sends nothing and frees nothing of it, and leaves `out`, `pending_sync`, `parts` and `close_after`
 *      to the worker. One request per connection at a time, so order stays.
 *  (2) A request starts when what it may come to hold fits into the budget; first come, first
 *      served, but small ones pass large ones that wait for memory.
 *  (3) While one waits for memory, the budget is `pressed`.
 *  (4) Calls of patterns (console.h) may take a minute each. They never have all workers: one is
 *      always there for operations, unless there is only one. One that waits longer than body_ms is
 *      refused.
 */
#ifndef HF_SERVER_WORK_H
#define HF_SERVER_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/base.h"
#include "base/buf.h"
#include "http/http.h"

struct conn;
struct job;
struct loop;
struct server;
struct worker;

enum {
    WORK_BODY = 128 * 1024,        /* requests with a larger body may take long */
    WORK_SMALL = 12 * 1024 * 1024, /* what a page may take: its items, their JSON, its packing */
    WORK_BATCH = 20 * 1024 * 1024, /* the items of a BatchGetItem */
    WORK_TRANSACTION = 42 * 1024 * 1024, /* those of a transaction that reads */
    WORK_DECODED = 3 /* what a body of so many bytes may take once it is decoded */
};

struct work {
    struct server *server;
    struct worker *workers;
    size_t workers_len;
    size_t started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct job *first;
    struct job **end;
    bool stops;
    size_t calls;          /* workers that run a call of a pattern: (4) */
    atomic_size_t waiting; /* jobs in the list */
    atomic_size_t running;
};

/* Threads, as many as the server's options say. HF_NOMEM, HF_IO: there are none. */
enum hf_status hf__work_start(struct hf_scope *s, struct server *server);
/* Cancel what workers are doing: nobody waits for it any more. Any thread. */
void hf__work_cancel(struct work *work);
/* No connection is WORKING any more. */
void hf__work_stop(struct work *work);

/*
 * Hand the request at `bytes`, which the reader has read, to a worker; the connection has nothing
 * to send. Takes the connection's input buffer when the request is at its start. False when there
 * is no memory.
 */
bool hf__work_give(struct conn *conn, const struct http_reader *reader, uint8_t *bytes);

/* On the loop: take back what workers are done with. */
void hf__work_done(struct loop *loop);

/* Memory was given back: look whether a job fits. Any thread. */
void hf__work_room(struct work *work);

#endif
