/*
 * coord/wakers.h: functions that are called when something has come in that others in this process wait for:
 * an event in an outbox, or in an event store. wakers.c has the essay.
 */
#ifndef HF_COORD_WAKERS_H
#define HF_COORD_WAKERS_H

#include <holdfast/base.h>

#include <pthread.h>
#include <stdatomic.h>

enum { WAKERS_MAX = 256 };

/* A function of whatever type; who calls it casts it back. */
typedef void waker_fn(void);

struct waker {
    waker_fn *wake; /* NULL: the place is free, unless a call is running */
    void *user;
    unsigned running; /* calls under way */
};

struct wakers {
    size_t max;                 /* places that may be used, at most WAKERS_MAX */
    _Atomic uint32_t listening; /* places with a function */
    pthread_mutex_t mutex;      /* guards all below */
    pthread_cond_t ended;       /* a call of one that was removed has ended */
    struct waker places[WAKERS_MAX];
    size_t len; /* places that are or were in use */
};

void hf__wakers_init(struct wakers *wakers, size_t max);
void hf__wakers_destroy(struct wakers *wakers);

/* False: all places are in use. */
bool hf__wakers_add(struct wakers *wakers, waker_fn *wake, void *user);

/* Waits until no call of it is running; not to be called by itself. Nothing happens if it is not there. */
void hf__wakers_remove(struct wakers *wakers, waker_fn *wake, void *user);

/* Call all of them, each by `call`, which gets `what` as well. */
typedef void waker_call_fn(waker_fn *wake, void *user, const void *what);
void hf__wakers_call(struct wakers *wakers, waker_call_fn *call, const void *what);

#endif
