/*
 * lock/lock.h: what the files of the lock share. lock.c has the essay.
 */
#ifndef HF_LOCK_LOCK_H
#define HF_LOCK_LOCK_H

#include <holdfast/lock.h>

#include <pthread.h>
#include <stdatomic.h>

#include "coord/lease.h"
#include "coord/names.h"
#include "coord/watch.h"

enum {
    LEASE_DEFAULT_MS = 20000,
    POLL_DEFAULT_MS = 1000,
    POLL_FIRST_MS = 5,
    EVICT_MAX = 40,    /* holders that one write replaces */
    FREED_BUCKETS = 64 /* a power of two */
};

/* ---- lock_item.c: the item, and the requests that change it --------------------------------- */

/* A lock as it was read. */
struct lock_view {
    struct hf_str table;
    struct hf_lock_info info;
    const uint64_t *beats;        /* of info.holders */
    const struct hf_str *openers; /* likewise; absent: none */
};

/* An absent item is a lock that nobody ever held. HF_CORRUPT when it cannot be one. */
enum hf_status hf__lock_view(struct hf_scope *s, const struct pattern_at *at, struct hf_item item,
                             struct lock_view *view);

/* Is the holder with this id among them? Its index, or SIZE_MAX. */
size_t hf__lock_view_find(const struct lock_view *view, struct hf_str id);

/* A holder that is to go, if its beat is still this one. */
struct lock_evict {
    struct hf_str id;
    uint64_t beat;
    bool any_beat; /* whatever it is */
};

struct lock_take {
    const struct pattern_at *at;
    struct hf_str name;
    struct hf_str id;
    struct hf_item entry;   /* who we are: hf__lock_entry() */
    enum hf_lock_mode mode; /* 0: take nothing, only evict */
    uint32_t permits;
    int64_t wall_ms;      /* the first fence of a new lock comes behind this */
    struct hf_item data;  /* absent: leave it */
    enum hf_lock_mode of; /* in which mode those to be evicted hold it */
    const struct lock_evict *evict;
    size_t evict_len; /* at most EVICT_MAX */
};

/* What the item says of one holder. */
struct lock_holder {
    struct hf_str owner;
    struct hf_str opener; /* absent: it has none */
    uint64_t beat;
    uint32_t lease_ms;
    int64_t since_ms;
    int64_t renewed_ms;
};
struct hf_item hf__lock_entry(struct hf_scope *s, const struct lock_holder *holder);

struct hf_item hf__lock_key(struct hf_scope *s, const struct pattern_at *at, struct hf_str name);

/* The request that takes the lock, evicting those whose lease has ended. */
struct hf_update_item hf__lock_take_request(struct hf_scope *s, const struct lock_take *take);

/* A lock that we hold. */
struct lock_own {
    const struct pattern_at *at;
    struct hf_str name;
    struct hf_str id;
    uint64_t fence; /* 0: we do not know which; only to give it back */
};

/* The request that renews it: the holder's entry is replaced, if it is there and its beat is a
 * lower one. */
struct hf_update_item hf__lock_beat_request(struct hf_scope *s, const struct lock_own *own,
                                            uint64_t beat, struct hf_item entry,
                                            struct hf_item data);

/* The request that gives it back. expires_s 0: it stays. */
struct hf_update_item hf__lock_free_request(struct hf_scope *s, const struct lock_own *own,
                                            struct hf_item data, int64_t expires_s);

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_lock_table {
    struct hf_env env;
    struct hf_db *db;       /* NULL: no-op */
    struct hf_scope *names; /* the next two live here */
    struct pattern_at at;
    struct hf_str owner;
    uint32_t clock_skew_ms;
    uint32_t forget_s;
    bool grant;             /* no-op */
    struct hf_scope *work;  /* of whoever runs hf__lock_beats() */
    struct timer *beater;   /* renews; NULL: without threads */
    struct timer *watcher;  /* calls on_late and on_lost; NULL: without threads */
    pthread_mutex_t mutex;  /* guards all below, and what locks say it does */
    pthread_cond_t changed; /* a lock has stopped being busy or calling */
    struct hf_lock *locks;
    struct hf_election *elections; /* only without threads */
    struct watch watch;
    bool busy_beater;  /* there are new locks since the beater looked last */
    bool busy_watcher; /* the same for the watcher */
    uint64_t noop_fence;
    atomic_uint freed[FREED_BUCKETS]; /* by name: how often we released one; no mutex */
};

struct hf_lock {
    struct hf_lock_table *table;
    struct hf_lock *next, **link; /* table->mutex */
    struct hf_str name;           /* in `text` */
    struct pattern_id id;
    enum hf_lock_mode mode;
    uint64_t fence;
    int64_t since_ms;
    uint32_t heartbeat_ms;
    uint32_t stuck_ms;
    uint32_t late_ms;
    bool no_heartbeats;
    hf_lock_late_fn *on_late;
    hf_lock_lost_fn *on_lost;
    void *user;

    /* table->mutex guards all below. */
    uint32_t refs; /* the holder's, and one for each who works on it without the mutex */
    enum hf_lock_state state;
    uint32_t lease_ms;
    struct lease lease; /* due: renew it, or release it again */
    int64_t touched_us; /* hf_lock_touch() */
    bool busy;          /* one request at a time renews it */
    uint64_t beat;      /* of the last request that renewed it; who is busy counts */
    bool dropped;       /* its holder has released it */
    bool unreleased;    /* the release could not be sent: it is tried until the lease ends */
    bool late_reported; /* on_late was called since the last renewal */
    bool lost_reported; /* on_lost was called, or there is none */
    bool calling;       /* on_late or on_lost is running */
    pthread_t caller;   /* the thread that runs it, if `calling` */
    struct hf_scope *data_memory; /* data lives here */
    struct hf_item data;

    char text[]; /* the name; not in a scope, whose first chunk is many times larger */
};

/* With a lease of `lease_ms`, which a renewal may change. */
static inline struct lease_terms lock_terms(const struct hf_lock *lock, uint32_t lease_ms)
{
    return (struct lease_terms){.lease_ms = lease_ms, .heartbeat_ms = lock->heartbeat_ms};
}

static inline struct hf_str lock_id(const struct hf_lock *lock)
{
    return id_str(&lock->id);
}

/* ---- lock_beat.c: leases over time ---------------------------------------------------------- */

/* Let the lock expire if it is time; the mutex is held. */
enum hf_lock_state hf__lock_look(struct hf_lock *lock, int64_t now_us);

/*
 * Renew it with one write, now: HF_OK, HF_LOST, or it could not be reached. `data` absent: leave
 * it. The caller has made it busy, or nobody else knows it yet.
 */
enum hf_status hf__lock_renew(struct hf_scope *s, struct hf_lock *lock, uint32_t lease_ms,
                              struct hf_item data);

/* Make it busy, waiting until nobody else is; and the reverse. The mutex is held. */
void hf__lock_enter(struct hf_lock *lock);
void hf__lock_leave(struct hf_lock *lock);

/* The error of a lock that was lost in this way. */
enum hf_status hf__lock_lost(struct hf_scope *s, const struct hf_lock *lock,
                             enum hf_lock_state state);

/* The end of a call: when it has succeeded, nothing of it stays in the scope. */
enum hf_status hf__lock_done(struct hf_scope *s, struct hf_scope_mark mark, enum hf_status status);

/* One reference less; the last one frees it. The mutex is held. */
void hf__lock_unref(struct hf_lock *lock);

/* Send what gives it back: HF_OK, HF_CONDITION when it was not there, or an error. */
enum hf_status hf__lock_free_send(struct hf_scope *s, struct hf_lock *lock, struct hf_item data,
                                  struct hf_item *item);

/* Renew the one that is due first. Microseconds until there is more, 0: there may be now. */
int64_t hf__lock_beats(void *table);

/* Make all calls that are due. Microseconds until there are more. */
int64_t hf__lock_calls(void *table);

/* Let the threads look again when the next renewal or call is due. */
void hf__lock_wake(struct hf_lock_table *table);

/* Evict those of `item` whose lease has ended, as housekeeping: no failure matters. */
void hf__lock_reap(struct hf_scope *s, struct hf_lock_table *table, struct hf_item item);

/* ---- lock_wait.c: getting it ---------------------------------------------------------------- */

/* Which holders stand in the way, and which of them are gone. */
struct lock_plan {
    bool possible;
    int64_t wait_us; /* when not: until another may be known to be gone */
    struct lock_evict evict[EVICT_MAX];
    size_t evict_len;
    bool more; /* there are more to evict than fit into one write: evict first */
};
void hf__lock_plan(struct hf_lock_table *table, const struct lock_view *view,
                   enum hf_lock_mode mode, uint32_t permits, struct lock_plan *plan);

/* Let the threads that wait for it on this table look again. */
void hf__lock_freed(struct hf_lock_table *table, struct hf_str name);

/* ---- election.c ----------------------------------------------------------------------------- */

/* Without threads: let every candidate do what is due. */
int64_t hf__election_runs(struct hf_lock_table *table);

#endif
