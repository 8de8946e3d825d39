/*
 * lock/election.c: a leader, by a lock: whoever holds it leads, and its fence is the term.
 *
 * A candidate tries for the lock again and again, and the table remembers what it saw, so that a
 * leader that is silent for a lease is replaced. All of it happens in election_run(): on a thread
 * of the election, or in hf_lock_table_step().
 *
 *  (1) `elected` and `deposed` are called alternately, beginning with `elected`, each pair with one
 *      term; terms grow.
 *  (2) The lock is released after `deposed` has returned, so it can be used in there.
 *  (3) Only election_run() and hf_election_close() change `lock`, and never both at once.
 */
#include "lock/lock.h"

struct hf_election {
    struct hf_lock_table *table;
    struct hf_election *next, **link; /* without threads: table->mutex */
    struct hf_env env;
    struct hf_scope *names; /* the name and the data live here */
    struct hf_scope *work;
    struct hf_str name;
    struct hf_election_options o;
    int64_t due_us;        /* of election_run() alone: when to try again */
    pthread_mutex_t mutex; /* guards all below */
    struct hf_lock *lock;  /* NULL: we do not lead */
    struct timer *timer;   /* NULL: without threads, or closing */
};

/* On a thread of the table: the lock is lost. */
static void election_wake(struct hf_lock *lock, enum hf_lock_state why, void *user)
{
    struct hf_election *e = user;

    (void)lock;
    (void)why;
    pthread_mutex_lock(&e->mutex);
    if (e->timer)
        hf__timer_wake(e->timer);
    pthread_mutex_unlock(&e->mutex);
}

static void set_lock(struct hf_election *e, struct hf_lock *lock)
{
    pthread_mutex_lock(&e->mutex);
    e->lock = lock;
    pthread_mutex_unlock(&e->mutex);
}

/* (1) (2) */
static void election_depose(struct hf_election *e, enum hf_lock_state why)
{
    struct hf_lock *lock = e->lock;

    assert(lock && why != HF_LOCK_HELD && "(1)");
    if (e->o.deposed)
        e->o.deposed(e, hf_lock_fence(lock), why, e->o.user);
    set_lock(e, NULL);
    hf_scope_reset(e->work);
    hf_scope_timeout_ms(e->work, e->o.lease_ms);
    (void)hf_lock_release(e->work, lock);
}

static bool election_campaign(struct hf_election *e)
{
    struct hf_lock_options options = {.size = sizeof(options),
                                      .lease_ms = e->o.lease_ms,
                                      .heartbeat_ms = e->o.heartbeat_ms,
                                      .data = e->o.data,
                                      .on_lost = election_wake,
                                      .user = e};
    struct hf_lock *lock;

    assert(!e->lock && "(1) a leader does not campaign");
    hf_scope_reset(e->work);
    hf_scope_timeout_ms(e->work, e->o.lease_ms);
    if (hf_lock_try(e->work, e->table, e->name, &options, &lock) != HF_OK)
        return false;
    set_lock(e, lock);
    if (e->o.elected)
        e->o.elected(e, hf_lock_fence(lock), e->o.user);
    return true;
}

static int64_t election_run(void *user)
{
    struct hf_election *e = user;

    for (;;) {
        int64_t now_us = hf__env_elapsed_us(&e->env);

        if (e->lock) {
            enum hf_lock_state state = hf_lock_state(e->lock);

            if (state == HF_LOCK_HELD)
                return INT64_MAX; /* election_wake() is called when that ends */
            election_depose(e, state);
            e->due_us = now_us;
        }
        if (now_us < e->due_us)
            return e->due_us - now_us;
        if (!election_campaign(e))
            e->due_us = hf__env_elapsed_us(&e->env) +
                        (int64_t)hf__backoff_jitter_ms(&e->env, e->o.poll_ms) * 1000;
    }
}

int64_t hf__election_runs(struct hf_lock_table *table)
{
    int64_t wait_us = INT64_MAX;

    assert((!table->elections || !table->beater) && "elections with threads run on their own");
    /* Without threads nobody else changes the list. */
    for (struct hf_election *e = table->elections, *next; e; e = next) {
        int64_t run_us;

        next = e->next;
        run_us = election_run(e);
        wait_us = run_us < wait_us ? run_us : wait_us;
    }
    return wait_us;
}

/* ---- open and close ------------------------------------------------------------------------- */

static void election_free(struct hf_election *e)
{
    struct hf_env env = e->env;

    pthread_mutex_destroy(&e->mutex);
    hf_scope_free(e->work);
    hf_scope_free(e->names);
    hf__env_free(&env, e, sizeof(*e));
}

static struct hf_election *election_new(struct hf_lock_table *table, struct hf_str name,
                                        const struct hf_election_options *o)
{
    struct hf_election *e = hf__env_zalloc(&table->env, sizeof(*e));

    if (!e)
        return NULL;
    e->table = table;
    e->env = table->env;
    e->o = *o;
    pthread_mutex_init(&e->mutex, NULL);
    e->names = hf_scope_new(&e->env);
    e->work = hf_scope_new(&e->env);
    if (e->names && e->work) {
        e->name = hf_scope_copy(e->names, name);
        e->o.data = hf_item_copy(e->names, o->data);
    }
    if (!e->name.ptr || (o->data.ptr && hf_item_check(e->names, e->o.data) != HF_OK)) {
        election_free(e);
        return NULL;
    }
    return e;
}

static void election_list(struct hf_election *e)
{
    struct hf_lock_table *table = e->table;

    e->next = table->elections;
    e->link = &table->elections;
    if (e->next)
        e->next->link = &e->next;
    table->elections = e;
}

enum hf_status hf_election_open(struct hf_scope *s, struct hf_lock_table *locks, struct hf_str name,
                                const struct hf_election_options *options,
                                struct hf_election **election)
{
    struct hf_election_options o;
    struct hf_election *e;
    struct timer *timer = NULL;

    call_begins(s);
    *election = NULL;
    OPTIONS_COPY(&o, options);
    o.lease_ms = o.lease_ms ? o.lease_ms : LEASE_DEFAULT_MS;
    o.poll_ms = o.poll_ms ? o.poll_ms : POLL_DEFAULT_MS;
    if (name.len == 0 || o.heartbeat_ms > o.lease_ms / 2)
        return hf_scope_fail(s, HF_INVALID, "election %.*s: %s", HF_FMT(name),
                             name.len ? "the heartbeat is more than half of the lease"
                                      : "it has no name");
    e = election_new(locks, name, &o);
    if (!e)
        return hf_scope_fail(s, HF_NOMEM, "no memory for election %.*s", HF_FMT(name));
    if (!locks->beater) {
        election_list(e);
        *election = e;
        return HF_OK;
    }
    /* The thread may call back before we know it: then there is nothing to wake it for. */
    if (hf__timer_start(s, election_run, e, &timer) != HF_OK) {
        election_free(e);
        return hf_scope_error(s)->status;
    }
    pthread_mutex_lock(&e->mutex);
    e->timer = timer;
    pthread_mutex_unlock(&e->mutex);
    hf__timer_wake(timer);
    *election = e;
    return HF_OK;
}

bool hf_election_leads(struct hf_election *election, uint64_t *term)
{
    bool leads;

    pthread_mutex_lock(&election->mutex);
    leads = election->lock && hf_lock_state(election->lock) == HF_LOCK_HELD;
    if (leads && term)
        *term = hf_lock_fence(election->lock);
    pthread_mutex_unlock(&election->mutex);
    return leads;
}

const struct hf_lock *hf_election_lock(struct hf_election *election)
{
    const struct hf_lock *lock;

    pthread_mutex_lock(&election->mutex);
    lock = election->lock;
    pthread_mutex_unlock(&election->mutex);
    return lock;
}

void hf_election_close(struct hf_election *election)
{
    struct timer *timer;

    if (!election)
        return;
    pthread_mutex_lock(&election->mutex);
    timer = election->timer;
    election->timer = NULL;
    pthread_mutex_unlock(&election->mutex);
    if (timer) {
        hf_scope_cancel(election->work); /* a request that is under way need not be waited for */
        hf__timer_stop(timer);
    } else {
        *election->link = election->next;
        if (election->next)
            election->next->link = election->link;
    }
    hf_scope_reset(election->work);
    hf_scope_timeout_ms(election->work, election->o.lease_ms);
    (void)hf_lock_release(election->work, election->lock);
    election_free(election);
}
