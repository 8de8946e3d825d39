/*
 * store/threads.c: can threads be started? RocksDB ends the process when it cannot start one, so
 * we try before it does: as many threads as it may want, at once.
 *
 * Another process of the same user can still take what we have found; there is no remedy for that.
 */
#include "store/tables.h"

#include <pthread.h>

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

static void *wait_at(void *arg)
{
    struct gate *gate = arg;

    pthread_mutex_lock(&gate->lock);
    while (!gate->open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

unsigned hf__threads_possible(unsigned wanted)
{
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    pthread_t threads[THREADS_TRIED_MAX];
    unsigned started = 0;

    while (started < wanted && started < THREADS_TRIED_MAX &&
           pthread_create(&threads[started], NULL, wait_at, &gate) == 0)
        started++;
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started;
}
