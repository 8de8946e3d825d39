/* coord/wakers_test.c: (n) is an invariant of coord/wakers.c. */
#include "coord/wakers.h"

#include "test.h"

#include <sched.h>

/* What one waker is called with, and where it waits. */
struct listener {
    struct wakers *wakers;
    _Atomic int calls;
    _Atomic int inside;
    _Atomic int hold; /* stay inside until this is 0 */
    _Atomic int removed;
};

static void note(struct listener *listener)
{
    /* (2): this would wait for ever */
    pthread_mutex_lock(&listener->wakers->mutex);
    pthread_mutex_unlock(&listener->wakers->mutex);
    atomic_fetch_add(&listener->inside, 1);
    while (atomic_load(&listener->hold))
        sched_yield();
    CHECK(!atomic_load(&listener->removed) && "(1)");
    atomic_fetch_add(&listener->calls, 1);
}

typedef void note_fn(struct listener *listener);

static void note_call(waker_fn *wake, void *user, const void *what)
{
    CHECK_INT(7, *(const int *)what);
    ((note_fn *)wake)(user);
}

static void wake_all(struct wakers *wakers)
{
    const int what = 7;

    hf__wakers_call(wakers, note_call, &what);
}

TEST(wakers, who_was_added_is_called_until_it_is_removed)
{
    static struct wakers wakers;
    struct listener some[4] = {{&wakers, 0, 0, 0, 0},
                               {&wakers, 0, 0, 0, 0},
                               {&wakers, 0, 0, 0, 0},
                               {&wakers, 0, 0, 0, 0}};

    hf__wakers_init(&wakers, 3);
    wake_all(&wakers); /* nobody */
    for (int i = 0; i < 3; i++)
        CHECK(hf__wakers_add(&wakers, (waker_fn *)note, &some[i]));
    CHECK(!hf__wakers_add(&wakers, (waker_fn *)note, &some[3]));
    wake_all(&wakers);
    hf__wakers_remove(&wakers, (waker_fn *)note, &some[1]);
    hf__wakers_remove(&wakers, (waker_fn *)note, &some[1]); /* not there: nothing */
    wake_all(&wakers);
    CHECK(hf__wakers_add(&wakers, (waker_fn *)note, &some[3])); /* in the place of 1 */
    CHECK(!hf__wakers_add(&wakers, (waker_fn *)note, &some[1]));
    wake_all(&wakers);
    CHECK_INT(3, some[0].calls);
    CHECK_INT(1, some[1].calls);
    CHECK_INT(3, some[2].calls);
    CHECK_INT(1, some[3].calls);
    CHECK_INT(3, wakers.listening); /* (3) */
    for (int i = 0; i < 4; i++)
        hf__wakers_remove(&wakers, (waker_fn *)note, &some[i]);
    CHECK_INT(0, wakers.listening);
    hf__wakers_destroy(&wakers);
}

static void *wake_from_thread(void *user)
{
    wake_all(user);
    return NULL;
}

static void *remove_from_thread(void *user)
{
    struct listener *listener = user;

    hf__wakers_remove(listener->wakers, (waker_fn *)note, listener);
    atomic_store(&listener->removed, 1);
    return NULL;
}

/* (1): a removal waits for the call that is running, and the place is nobody else's until then. */
TEST(wakers, removing_waits_for_the_call_that_is_running)
{
    static struct wakers wakers;
    struct listener slow = {&wakers, 0, 0, 1, 0}, other = {&wakers, 0, 0, 0, 0};
    pthread_t waking, removing;

    hf__wakers_init(&wakers, 1);
    CHECK(hf__wakers_add(&wakers, (waker_fn *)note, &slow));
    CHECK_INT(0, pthread_create(&waking, NULL, wake_from_thread, &wakers));
    while (!atomic_load(&slow.inside))
        sched_yield();
    CHECK_INT(0, pthread_create(&removing, NULL, remove_from_thread, &slow));
    while (atomic_load(&wakers.listening)) /* it has begun */
        sched_yield();
    CHECK(!hf__wakers_add(&wakers, (waker_fn *)note, &other));
    CHECK(!atomic_load(&slow.removed));
    atomic_store(&slow.hold, 0);
    pthread_join(waking, NULL);
    pthread_join(removing, NULL);
    CHECK_INT(1, slow.calls);
    CHECK(hf__wakers_add(&wakers, (waker_fn *)note, &other));
    wake_all(&wakers);
    CHECK_INT(1, slow.calls);
    CHECK_INT(1, other.calls);
    hf__wakers_remove(&wakers, (waker_fn *)note, &other);
    hf__wakers_destroy(&wakers);
}
