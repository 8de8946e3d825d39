/*
 * pool.h: threads for calls that may block. A pool has as many threads as it has had tasks at the same
 * time, up to its maximum; those that had nothing to do for a while end.
 */
#ifndef HOLDFAST_NODE_POOL_H
#define HOLDFAST_NODE_POOL_H

#include <stdbool.h>

struct task {
    void (*run)(struct task *task); /* on a thread of the pool; may free the task */
    struct task *next;              /* of the pool */
};

struct pool;

/* NULL when there is no memory. */
struct pool *pool_new(unsigned max_threads);

/* Run the task some time later. False when no thread could be started and none is there. */
bool pool_submit(struct pool *pool, struct task *task);

/* Wait until all tasks have been run and all threads have ended, and free the pool. NULL is
 * accepted. */
void pool_free(struct pool *pool);

#endif
