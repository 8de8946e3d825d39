/*
 * server/admin/checker.h: a check of the whole database, beside everything else: /_holdfast/check.
 *
 *     GET  /_holdfast/check       the state of the last check: none, running, sound, damaged, failed
 *     POST /_holdfast/check       start one: 202; when one runs already, its state: 200
 *
 *     NONE --start--> RUNNING --> SOUND | DAMAGED | FAILED --start--> RUNNING
 *
 * Every server offers it, as it is for operators and not for tests. With keys these
 * requests have to be signed as all others.
 *
 *  (1) One check runs at a time, on a thread of its own: no loop and no worker waits for it.
 *  (2) When the server stops, the check is canceled and its thread joined.
 */
#ifndef HF_SERVER_CHECKER_H
#define HF_SERVER_CHECKER_H

#include <pthread.h>

#include "wire/checks.h"

struct admin_request;
struct answer;

enum { CHECKER_PROBLEM_MAX = 512 }; /* bytes of the sentence that are kept */

struct checker {
    struct hf_db *engine;
    struct hf_env env;
    struct hf_scope *scope; /* of the thread; others only cancel it */
    pthread_mutex_t lock;   /* guards the rest */
    pthread_t thread;
    bool started;            /* the thread is to be joined */
    bool stops;              /* nothing is started any more */
    struct wire_check state; /* its `problem` points to the next */
    char problem[CHECKER_PROBLEM_MAX];
};

/* HF_NOMEM: there is nothing to close. */
enum hf_status hf__checker_open(struct hf_scope *s, struct checker *checker,
                                const struct hf_env *env, struct hf_db *engine);
/* Cancel what runs and wait for its end. Any number of times. */
void hf__checker_stop(struct checker *checker);
void hf__checker_close(struct checker *checker); /* one that is zero is accepted */

/* ---- requests: see admin.h ------------------------------------------------------------------ */

void hf__admin_check_get(struct answer *answer, const struct admin_request *request);
void hf__admin_check_post(struct answer *answer, const struct admin_request *request);

#endif
