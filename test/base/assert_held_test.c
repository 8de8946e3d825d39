/*
 * base/assert_held_test.c: ASSERT_HELD() passes for the thread that holds a mutex, and for no other.
 */
#include "base/assert_held.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test.h"

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool waits;
    bool held; /* what another thread saw */
};

static void *look_from_elsewhere(void *user)
{
    struct shared *shared = user;

    shared->held = mutex_is_held(&shared->mutex);
    return NULL;
}

static bool is_held_elsewhere(struct shared *shared)
{
    pthread_t thread;

    CHECK_INT(0, pthread_create(&thread, NULL, look_from_elsewhere, shared));
    CHECK_INT(0, pthread_join(thread, NULL));
    return shared->held;
}

TEST(assert_held, holds_for_the_thread_that_locked)
{
    struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

    (void)t;
    CHECK(!mutex_is_held(&shared.mutex));
    CHECK_INT(0, pthread_mutex_lock(&shared.mutex));
    CHECK(mutex_is_held(&shared.mutex));
    ASSERT_HELD(&shared.mutex);
    CHECK_INT(0, pthread_mutex_unlock(&shared.mutex));
    CHECK(!mutex_is_held(&shared.mutex));
    CHECK_INT(0, pthread_mutex_trylock(&shared.mutex));
    CHECK(mutex_is_held(&shared.mutex));
    CHECK_INT(0, pthread_mutex_unlock(&shared.mutex));
}

#if defined(__GLIBC__) /* elsewhere it is only known that somebody holds it */
TEST(assert_held, not_for_another_thread)
{
    struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

    (void)t;
    CHECK_INT(0, pthread_mutex_lock(&shared.mutex));
    CHECK(!is_held_elsewhere(&shared));
    CHECK_INT(0, pthread_mutex_unlock(&shared.mutex));
}
#endif

static void *wait_for_change(void *user)
{
    struct shared *shared = user;

    pthread_mutex_lock(&shared->mutex);
    shared->waits = true;
    pthread_cond_signal(&shared->changed);
    while (shared->waits)
        pthread_cond_wait(&shared->changed, &shared->mutex);
    shared->held = mutex_is_held(&shared->mutex);
    pthread_mutex_unlock(&shared->mutex);
    return NULL;
}

/* A wait at a condition gives the mutex away, and has it again at its end. */
TEST(assert_held, across_a_wait_at_a_condition)
{
    struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;

    (void)t;
    CHECK_INT(0, pthread_create(&thread, NULL, wait_for_change, &shared));
    pthread_mutex_lock(&shared.mutex);
    while (!shared.waits)
        pthread_cond_wait(&shared.changed, &shared.mutex);
    CHECK(mutex_is_held(&shared.mutex));
    shared.waits = false;
    pthread_cond_signal(&shared.changed);
    pthread_mutex_unlock(&shared.mutex);
    CHECK_INT(0, pthread_join(thread, NULL));
    CHECK(shared.held);
}

CHILD(assert_held_of_a_free_mutex)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    (void)args;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    ASSERT_HELD(&mutex);
    return 0;
}

TEST(assert_held, aborts_when_it_is_not)
{
    int status, out;
    pid_t pid = test_child("assert_held_of_a_free_mutex", (const char *[]){NULL}, &out);

    (void)t;
    CHECK_INT(pid, waitpid(pid, &status, 0));
    close(out);
    CHECK_INT(DEV_CHECKS ? SIGABRT : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* A child has another number than the one that its thread inherits. */
TEST(assert_held, holds_in_a_child_of_fork)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int status;
    pid_t pid;

    pthread_mutex_lock(&mutex);
    CHECK(mutex_is_held(&mutex));
    pthread_mutex_unlock(&mutex);
    pid = fork();
    if (pid == 0) {
        bool right = !mutex_is_held(&mutex);

        pthread_mutex_lock(&mutex);
        right = right && mutex_is_held(&mutex);
        pthread_mutex_unlock(&mutex);
        _exit(right && !mutex_is_held(&mutex) ? 0 : 1);
    }
    CHECK(pid > 0);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    CHECK_INT(0, status);
    CHECK(!mutex_is_held(&mutex));
}
