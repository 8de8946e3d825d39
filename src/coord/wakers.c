/*
 * coord/wakers.c: who is called when something has come in. See wakers.h.
 *
 * A place is taken by a function until it is removed and its last call has ended; only then may another have
 * it, as calls find their place again by its address.
 *
 *  (1) No function is called after hf__wakers_remove() has returned.
 *  (2) None is called while the mutex is held.
 *  (3) `listening` is the number of places with a function.
 */
#include "coord/wakers.h"

#include <assert.h>

static void wakers_check(const struct wakers *wakers)
{
    assert(wakers->max > 0 && wakers->max <= WAKERS_MAX);
    assert(wakers->len <= wakers->max);
    assert(atomic_load(&wakers->listening) <= wakers->len && "(3)");
}

void hf__wakers_init(struct wakers *wakers, size_t max)
{
    assert(max > 0 && max <= WAKERS_MAX);
    wakers->max = max;
    wakers->len = 0;
    atomic_init(&wakers->listening, 0);
    pthread_mutex_init(&wakers->mutex, NULL);
    pthread_cond_init(&wakers->ended, NULL);
}

void hf__wakers_destroy(struct wakers *wakers)
{
    wakers_check(wakers);
    for (size_t i = 0; i < wakers->len; i++)
        assert(!wakers->places[i].running);
    pthread_cond_destroy(&wakers->ended);
    pthread_mutex_destroy(&wakers->mutex);
}

bool hf__wakers_add(struct wakers *wakers, waker_fn *wake, void *user)
{
    size_t free = 0;

    assert(wake);
    pthread_mutex_lock(&wakers->mutex);
    wakers_check(wakers);
    while (free < wakers->len && (wakers->places[free].wake || wakers->places[free].running))
        free++;
    assert(free <= wakers->len);
    if (free < wakers->max) {
        wakers->places[free] = (struct waker){.wake = wake, .user = user};
        if (free == wakers->len)
            wakers->len++;
        atomic_fetch_add(&wakers->listening, 1);
    }
    wakers_check(wakers);
    pthread_mutex_unlock(&wakers->mutex);
    return free < wakers->max;
}

void hf__wakers_remove(struct wakers *wakers, waker_fn *wake, void *user)
{
    pthread_mutex_lock(&wakers->mutex);
    wakers_check(wakers);
    for (size_t i = 0; i < wakers->len; i++) {
        struct waker *waker = &wakers->places[i];

        if (waker->wake != wake || waker->user != user)
            continue;
        assert(atomic_load(&wakers->listening) > 0);
        waker->wake = NULL; /* (1) no call begins any more, and those under way end */
        atomic_fetch_sub(&wakers->listening, 1);
        while (waker->running)
            pthread_cond_wait(&wakers->ended, &wakers->mutex);
        break;
    }
    pthread_mutex_unlock(&wakers->mutex);
}

void hf__wakers_call(struct wakers *wakers, waker_call_fn *call, const void *what)
{
    bool waited_for = false;

    if (!atomic_load(&wakers->listening))
        return;
    pthread_mutex_lock(&wakers->mutex);
    for (size_t i = 0; i < wakers->len; i++) {
        struct waker *waker = &wakers->places[i];
        waker_fn *wake = waker->wake;
        void *user = waker->user;

        if (!wake)
            continue;
        waker->running++;
        pthread_mutex_unlock(&wakers->mutex);
        call(wake, user, what); /* (2) */
        pthread_mutex_lock(&wakers->mutex);
        assert(waker->running > 0);
        waker->running--;
        waited_for = waited_for || !waker->wake;
    }
    if (waited_for)
        pthread_cond_broadcast(&wakers->ended);
    pthread_mutex_unlock(&wakers->mutex);
}
