/*
 * coord/pump.h: worker threads that do what is due. pump.c has the essay.
 */
#ifndef HF_COORD_PUMP_H
#define HF_COORD_PUMP_H

#include <holdfast/env.h>
#include <holdfast/scope.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- threads that wait for something, by a scope -------------------------------------------- */

struct waiter {
    struct waiter *next;
    struct hf_scope *s;
};

/* Threads that wait until something of an owner changes. Zero but for the mutex is an empty
 * list. */
struct waiters {
    pthread_mutex_t mutex; /* guards the list */
    struct waiter *first;
};

/* Does what is waited for hold? Called without a mutex of ours. */
typedef bool waiters_fn(void *user);

void hf__waiters_init(struct waiters *waiters);
void hf__waiters_free(struct waiters *waiters);

/* Let all waiters look again. Called after the change, with the owner's mutex or without. */
void hf__waiters_notify(struct waiters *waiters);

/*
 * Wait until `holds`, or until a time of the elapsed clock (INT64_MAX: without a limit): HF_OK in
 * both cases. HF_TIMEOUT, HF_CANCELED: the scope has ended first.
 */
enum hf_status hf__waiters_wait(struct hf_scope *s, struct waiters *waiters, waiters_fn *holds,
                                void *user, int64_t until_us);

/* The same by the env's clock: an env that has its own sleep is used, as its time may not pass
 * otherwise. For pauses; not to wait for what other threads do. */
enum hf_status hf__waiters_pause(struct hf_scope *s, struct waiters *waiters, waiters_fn *holds,
                                 void *user, int64_t until_us);

/* ---- the pump ------------------------------------------------------------------------------- */

/*
 * Do what is due, as this worker; returns when the next thing is, on the elapsed clock of the env: a
 * time that has passed, such as 0: at once; INT64_MAX: not before a wake.
 */
typedef int64_t pump_step_fn(size_t worker, void *user);

struct pump_options {
    size_t workers; /* threads; 0: none, hf__pump_step() does it all */
    pump_step_fn *step;
    void *user;
};

struct pump;

/* Without threads yet. HF_NOMEM. */
enum hf_status hf__pump_open(struct hf_scope *s, const struct pump_options *options,
                             struct pump **pump);

/* Waits for steps that are under way. NULL is fine. Not from inside. */
void hf__pump_close(struct pump *pump);

/* Let the threads begin; a first step is due at once. HF_LIMIT: the system has no more threads, and
 * no step was called. HF_IN_USE: a step of the time before has not returned. */
enum hf_status hf__pump_start(struct hf_scope *s, struct pump *pump);

/* Without threads: one step, on this one. Returns as it does. */
int64_t hf__pump_step(struct pump *pump);

/* Let a step begin: (1). Or as many as there are workers. Any thread, with the owner's mutex too. */
void hf__pump_wake(struct pump *pump);
void hf__pump_wake_all(struct pump *pump);

/* Let a step begin at that time at the latest. Costs little if one does anyway. */
void hf__pump_wake_at(struct pump *pump, int64_t at_us);

/* No more steps begin. Does not wait, so it may be called from inside. */
void hf__pump_end(struct pump *pump);

/* The same, then wait until all threads have ended, for at most so long on the elapsed clock
 * (INT64_MAX: without a limit). How many were left: (5). Not from inside. */
size_t hf__pump_stop(struct pump *pump, int64_t for_us);

/* Wait by a scope until all threads have ended, after hf__pump_end(). HF_TIMEOUT, HF_CANCELED: it
 * has ended first. */
enum hf_status hf__pump_let_end(struct hf_scope *s, struct pump *pump);

/* Threads that hf__pump_stop() has left and that are still in their step. */
size_t hf__pump_left(struct pump *pump);

/* Is this thread in a step of the pump? Then it cannot wait for it to end. */
bool hf__pump_is_inside(struct pump *pump);

#endif
