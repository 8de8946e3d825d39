/*
 * store/child.h: this test program as a child process that works on a store and may be killed.
 *
 * A writer has some threads. Thread `t` writes batches numbered from 1: item/t/n, and last/t = n.
 * After each sync it reports (t, n) through a pipe: that is acked and must survive anything.
 */
#ifndef HF_TEST_STORE_CHILD_H
#define HF_TEST_STORE_CHILD_H

#include "kinds.h"

#include <sys/types.h>

enum { CHILD_THREADS_MAX = 8 };

/* How a child ends when nobody kills it. */
enum child_exit { CHILD_OK = 0, CHILD_ERROR = 10, CHILD_WRONG = 11, CHILD_SKIPPED = 12 };

struct acked {
    uint32_t by_thread[CHILD_THREADS_MAX];
};

/* Start a child: `mode` as in child.c; `kill_at` is HF_KILL_AT or NULL; *out reads its reports. */
pid_t child_start(const char *mode, const char *path, unsigned threads, unsigned count,
                  const char *kill_at, int *out);

/* Wait for it, note what it reported, and return its status as waitpid() gives it. */
int child_wait(pid_t pid, int out, struct acked *acked);

/* Everything acked is there, and every batch is there wholly or not at all; false: it is not. */
bool acked_is_there(struct hf_scope *s, struct hf__store *store, const struct acked *acked);

/* Write the batches [from, to] of thread t, synced; the status of the first that fails. */
enum hf_status write_items(struct hf_scope *s, struct hf__store *store, unsigned thread,
                           uint32_t from, uint32_t to, bool sync);

#endif
