/*
 * events/subscribe/subscribe.c: subscriptions: options, the lease, steps. Threads are in subscribe_run.c.
 *
 * A subscription that works has the lease of its name: a token in the item q.NAME/q, which every
 * write of it names (subscribe_item.c). One that waits takes over when it has seen no heartbeat for
 * a whole lease, on the condition that there is none still. Why the holder stops first:
 * coord/lease.c.
 *
 * A step renews or takes the lease, looks at the item now and then (is the subscription to be
 * rebuilt, are parked events to be handled again), reads events, hands them over, and moves the
 * checkpoint. The caller of hf_subscription_step() does all of it, or a thread; another thread
 * renews the lease meanwhile. Both are pumps (coord/pump.c). Appends of this process wake the
 * first.
 *
 *  (1) No function is called without a lease that is ours by our clock, and what is read is read
 *      behind the checkpoint that was there when it was taken.
 *  (2) The events at hand are forgotten when the lease is lost.
 *  (3) After hf_subscription_stop() no function is called, the checkpoint is behind all that were
 *      handled, and the lease is free, as far as the database could be reached.
 *  (4) A rebuild is noted first, which refuses all moves; then the reset function is called; then
 *      one write takes the checkpoint back and changes the token.
 *  (5) A function that does not return although it was canceled is left behind by a stop that has
 *      a deadline: its thread goes on, the lease is given back. The next stop waits for it again,
 *      and closing does so without a limit, as it uses what is freed then.
 */
#include "events/subscribe/subscribe.h"

#include "base/assert_held.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BATCH_MAX = 100,
    CHECKPOINT_MS = 1000,
    POLL_MS = 1000,
    MAX_ATTEMPTS = 10,
    BACKOFF_MS = 100,
    BACKOFF_MAX_MS = 30000,
    STUCK_MS = 300000,
    STUCK_TIMES = 10,
    LEASE_MS = 20000,
    LEASE_LEAST_MS = 20,
    OWNER_MAX = 256
};

/* ---- small things --------------------------------------------------------------------------- */

void hf__sub_notify(struct hf_subscription *sub, enum hf_subscription_event what,
                    const struct hf_stored_event *event, const struct hf_error *error)
{
    if (sub->o.on_notice)
        sub->o.on_notice(what, event, error ? error : &(struct hf_error){0}, sub->o.user);
}

bool hf__sub_stops(struct hf_subscription *sub)
{
    bool stops;

    pthread_mutex_lock(&sub->mutex);
    stops = sub->stopping;
    pthread_mutex_unlock(&sub->mutex);
    return stops;
}

/* Is the one checkpoint before the other, or the same? What is damaged is not compared. */
static bool checkpoints_are_in_order(const struct checkpoint *one, const struct checkpoint *other)
{
    struct hf_str a = checkpoint_str(one), b = checkpoint_str(other);
    bool comparable = (is_position(a) && is_position(b)) ||
                      (a.len == b.len && hf__sub_is_version(a) && hf__sub_is_version(b));

    return !comparable || strcmp(one->text, other->text) <= 0;
}

void hf__sub_check(const struct hf_subscription *sub)
{
    assert(sub->at <= sub->events_len && (sub->events || !sub->events_len));
    assert((sub->reader != NULL) == (sub->has_source && !sub->of_stream));
    assert(sub->has_source || !sub->events_len);
    assert(sub->careful <= sub->window);
    assert(sub->narrow <= sub->o.batch_max);
    assert(checkpoints_are_in_order(&sub->written, &sub->handled)); /* never written ahead */
}

static void set_state(struct hf_subscription *sub, enum hf_subscription_state state)
{
    pthread_mutex_lock(&sub->mutex);
    sub->metrics.state = state;
    if (state == HF_SUBSCRIPTION_LIVE)
        sub->metrics.lag_ms = 0;
    pthread_mutex_unlock(&sub->mutex);
}

/* ---- the lease ------------------------------------------------------------------------------ */

/* How much of it is left that we count on. */
static int64_t left_us_of(struct hf_subscription *sub)
{
    int64_t left;

    pthread_mutex_lock(&sub->mutex);
    left = sub->held ? lease_left_us(&sub->lease, hf__env_elapsed_us(&sub->env)) : 0;
    pthread_mutex_unlock(&sub->mutex);
    return left;
}

bool hf__sub_holds(struct hf_subscription *sub)
{
    return left_us_of(sub) > 0;
}

struct lease_terms hf__sub_terms(const struct hf_subscription *sub)
{
    return (struct lease_terms){.lease_ms = sub->o.lease_ms,
                                .heartbeat_ms = hf__lease_heartbeat_ms(sub->o.lease_ms)};
}

void hf__sub_lost(struct hf_scope *s, struct hf_subscription *sub)
{
    bool held;

    pthread_mutex_lock(&sub->mutex);
    held = sub->held;
    sub->held = false;
    sub->rebuild = false;
    sub->metrics.fence = 0;
    sub->metrics.lost += held;
    sub->metrics.state = HF_SUBSCRIPTION_WAITING;
    pthread_mutex_unlock(&sub->mutex);
    hf__sub_source_close(sub);
    if (held)
        hf__sub_notify(sub, HF_SUBSCRIPTION_LOST, NULL, hf_scope_error(s));
}

enum hf_status hf__sub_lease_renew(struct hf_scope *s, struct hf_subscription *sub)
{
    int64_t asked_us = hf__env_elapsed_us(&sub->env);
    struct pattern_id token;
    enum hf_status status;
    bool held;

    pthread_mutex_lock(&sub->mutex);
    token = sub->token;
    held = sub->held;
    pthread_mutex_unlock(&sub->mutex);
    if (!held)
        return HF_OK;
    status = hf__sub_renew(s, sub->store, sub->pk, id_str(&token));
    pthread_mutex_lock(&sub->mutex);
    if (memcmp(token.text, sub->token.text, sizeof(token.text)) != 0) {
        status = HF_OK; /* it was about another lease */
    } else if (status == HF_OK || status == HF_IN_USE) {
        hf__lease_renew(&sub->lease, hf__sub_terms(sub), asked_us);
        sub->rebuild = sub->rebuild || status == HF_IN_USE;
        status = HF_OK;
    } else if (status == HF_LOST) {
        sub->lease.until_us = 0;
    }
    pthread_mutex_unlock(&sub->mutex);
    return status;
}

/* Another has it: watch its beat. HF_OK: it was silent for so long that it can be replaced. */
static enum hf_status holder_watch(struct hf_scope *s, struct hf_subscription *sub,
                                   const struct sub_item *view, uint32_t *wait_ms)
{
    int64_t now = hf__env_elapsed_us(&sub->env);
    uint64_t beat = fnv_add(FNV_BEGIN, view->beat.ptr, view->beat.len);
    int64_t left_ms;

    if (hf_str_equal(view->holder, id_str(&sub->token)))
        return HF_OK; /* our own, which we have given up */
    if (hf__pattern_is_orphan(sub->store->db, view->opener))
        return HF_OK;
    left_ms = (hf__watch_silent_in(hf__watch_see(&sub->sight, beat, now),
                                   view->lease_ms ? view->lease_ms : LEASE_MS, now) +
               999) /
              1000;
    if (!left_ms)
        return HF_OK;
    if (left_ms < *wait_ms)
        *wait_ms = (uint32_t)left_ms;
    return hf_scope_fail(s, HF_LOCKED, "subscription \"%.*s\" is held by \"%.*s\"",
                         HF_FMT(sub->name), HF_FMT(view->owner));
}

static enum hf_status lease_take(struct hf_scope *s, struct hf_subscription *sub, uint32_t *wait_ms)
{
    struct pattern_id token = hf__pattern_id_make(&sub->env);
    struct sub_taker taker = {.token = id_str(&token),
                              .owner = sub->o.owner,
                              .lease_ms = sub->o.lease_ms};
    struct sub_item seen, view;
    bool from_silent;
    int64_t asked_us;

    TRY(hf__sub_read(s, sub->store, sub->pk, &seen));
    if (seen.holder.ptr)
        TRY(holder_watch(s, sub, &seen, wait_ms));
    from_silent = seen.holder.ptr && !hf_str_equal(seen.holder, id_str(&sub->token));
    taker.window = hf__suspects_window(&seen, from_silent);
    asked_us = hf__env_elapsed_us(&sub->env);
    TRY(hf__sub_take(s, sub->store, sub->pk, seen.holder.ptr ? &seen : NULL, &taker, &view));
    assert(!sub->held); /* what we had before was lost or released */
    hf__sub_source_close(sub);
    hf__suspects_taken(sub, &view, seen.holder.ptr && !from_silent);
    sub->handled = sub->written = view.at;
    sub->handled_count = view.handled;
    sub->written_us = hf__env_elapsed_us(&sub->env);
    sub->looked_us = 0;
    sub->sight.seen = false;
    pthread_mutex_lock(&sub->mutex);
    sub->token = token;
    sub->held = true;
    sub->rebuild = view.rebuild.ptr != NULL;
    hf__lease_take(&sub->lease, hf__sub_terms(sub), asked_us);
    sub->metrics.fence = view.fence;
    sub->metrics.state = HF_SUBSCRIPTION_CATCHING_UP;
    pthread_mutex_unlock(&sub->mutex);
    hf__sub_notify(sub, HF_SUBSCRIPTION_TAKEN, NULL, NULL);
    return HF_OK;
}

/* (1) HF_LOCKED: another has it. */
static enum hf_status lease_have(struct hf_scope *s, struct hf_subscription *sub, uint32_t *wait_ms)
{
    int64_t left_us = left_us_of(sub);
    enum hf_status status;

    if (left_us && !sub->heartbeat && left_us < (int64_t)sub->o.lease_ms * 500) {
        status = hf__sub_lease_renew(s, sub);
        left_us = left_us_of(sub);
        if (status != HF_OK && status != HF_LOST && !left_us)
            return status;
    }
    if (left_us)
        return HF_OK;
    if (sub->held) {
        (void)hf_scope_fail(s, HF_LOST, "the lease of subscription \"%.*s\" has ended",
                            HF_FMT(sub->name));
        hf__sub_lost(s, sub);
    }
    set_state(sub, HF_SUBSCRIPTION_WAITING);
    return lease_take(s, sub, wait_ms);
}

/* ---- a step --------------------------------------------------------------------------------- */

/* Where a rebuild begins: where the request says, or in front of all events, whatever the options
 * say about a start. */
static struct checkpoint rebuild_at(const struct hf_subscription *sub, const struct sub_item *view)
{
    struct checkpoint at = checkpoint_of(view->rebuild_after);
    struct events_position first = hf__events_position_floor(0);

    if (sub->of_stream)
        hf__events_version_text(strtoull(at.text, NULL, 10), at.text);
    else if (!at.text[0])
        at = checkpoint_of(position_str(&first));
    return at;
}

/* Is the place where it is to begin one of what it follows? */
static enum hf_status check_place(struct hf_scope *s, const struct hf_subscription *sub,
                                  struct hf_str after)
{
    if (!after.len || hf__sub_is_version(after) == sub->of_stream)
        return HF_OK;
    return hf_scope_fail(s, HF_INVALID,
                         "subscription \"%.*s\" is to be rebuilt after \"%.*s\", which is not a %s",
                         HF_FMT(sub->name), HF_FMT(after), sub->of_stream ? "version" : "position");
}

/* (4) */
static enum hf_status rebuild_begin(struct hf_scope *s, struct hf_subscription *sub)
{
    struct pattern_id fresh = hf__pattern_id_make(&sub->env);
    struct sub_item view;
    enum hf_status status = HF_OK;

    TRY(hf__sub_read(s, sub->store, sub->pk, &view));
    assert(sub->held);
    hf__sub_source_close(sub);
    if (view.rebuild.ptr) {
        if (!hf__sub_holds(sub)) /* another may hold it by now, and have begun already */
            return hf_scope_fail(s, HF_LOST, "the lease of the subscription has ended");
        TRY(check_place(s, sub, view.rebuild_after));
        hf_scope_reset(sub->work);
        if (sub->o.reset)
            status = sub->o.reset(sub->work, sub->o.user);
        if (status != HF_OK)
            return hf_scope_fail_because(s, status, hf_scope_error(sub->work),
                                         "the reset function of \"%.*s\" failed: %s",
                                         HF_FMT(sub->name), hf_scope_error_text(sub->work));
        TRY(hf__parked_clear(s, sub->store, sub->pk, id_str(&sub->token)));
        view.at = rebuild_at(sub, &view);
        TRY(hf__sub_rebuild(s, sub->store, sub->pk, &view, &view.at, id_str(&sub->token),
                            id_str(&fresh)));
        view.handled = 0;
        sub->window = sub->careful = sub->crashes = 0;
        sub->counted = false;
    } else {
        fresh = sub->token;
    }
    sub->handled = sub->written = view.at;
    sub->handled_count = view.handled;
    pthread_mutex_lock(&sub->mutex);
    sub->token = fresh;
    sub->rebuild = false;
    pthread_mutex_unlock(&sub->mutex);
    return HF_OK;
}

/* Now and then: what does the item say, is something to be handled again? */
static enum hf_status item_look(struct hf_scope *s, struct hf_subscription *sub)
{
    int64_t now = hf__env_elapsed_us(&sub->env);
    const struct hf_parked *replays;
    struct sub_item view;
    size_t len;

    if (sub->looked_us && now - sub->looked_us < (int64_t)sub->o.poll_ms * 1000)
        return HF_OK;
    TRY(hf__sub_look(s, sub->store, sub->pk, &view, &replays, &len));
    if (!view.holder.ptr || !hf_str_equal(view.holder, id_str(&sub->token)))
        return hf_scope_fail(s, HF_LOST, "another process has taken over the subscription");
    if (view.rebuild.ptr)
        return hf_scope_fail(s, HF_IN_USE, "the subscription is to be rebuilt");
    sub->looked_us = now ? now : 1;
    return hf__sub_replay(s, sub, replays, len);
}

/* Whether all there was has been handled. */
static bool is_idle(const struct hf_subscription *sub)
{
    return sub->at == sub->events_len && sub->has_source && !sub->source_more;
}

static enum hf_status step_work(struct hf_scope *s, struct hf_subscription *sub, uint32_t *wait_ms)
{
    int64_t wait_us;
    bool rebuild;

    pthread_mutex_lock(&sub->mutex);
    rebuild = sub->rebuild;
    pthread_mutex_unlock(&sub->mutex);
    if (rebuild)
        TRY(rebuild_begin(s, sub));
    TRY(item_look(s, sub));
    if (sub->retry_us <= hf__env_elapsed_us(&sub->env)) {
        TRY(hf__sub_source(s, sub));
        TRY(hf__sub_handle(s, sub));
    }
    if (sub->gave_up)
        return HF_OK;
    wait_us = sub->retry_us - hf__env_elapsed_us(&sub->env);
    if (is_idle(sub))
        sub->careful = 0; /* nothing is left of what was there when the lease was taken */
    if (is_idle(sub) || wait_us > 0 ||
        hf__env_elapsed_us(&sub->env) - sub->written_us >= (int64_t)sub->o.checkpoint_ms * 1000)
        TRY(hf__sub_checkpoint(s, sub));
    set_state(sub, is_idle(sub) ? HF_SUBSCRIPTION_LIVE : HF_SUBSCRIPTION_CATCHING_UP);
    if (!is_idle(sub) && wait_us <= 0)
        *wait_ms = 0;
    else if (wait_us > 0 && wait_us / 1000 + 1 < *wait_ms)
        *wait_ms = (uint32_t)(wait_us / 1000 + 1);
    return HF_OK;
}

/* The lease has to be renewed in time, also when there is nothing else to do. */
static uint32_t until_renewal(struct hf_subscription *sub, uint32_t wait_ms)
{
    int64_t left_ms = (left_us_of(sub) - (int64_t)sub->o.lease_ms * 500) / 1000 + 1;

    if (sub->heartbeat || !sub->held || left_ms >= wait_ms)
        return wait_ms;
    return left_ms > 0 ? (uint32_t)left_ms : 0;
}

static enum hf_status give_up(struct hf_scope *s, struct hf_subscription *sub)
{
    struct hf_str failure = hf_str_of(sub->failure, strlen(sub->failure));
    enum hf_status status;

    if (sub->held) {
        status = hf__sub_checkpoint(s, sub);
        if (status != HF_IN_USE) /* it is to be rebuilt: there is no checkpoint to write */
            TRY(status);
        TRY(hf__sub_release(s, sub->store, sub->pk, id_str(&sub->token), failure));
        pthread_mutex_lock(&sub->mutex);
        sub->held = false;
        sub->metrics.fence = 0;
        pthread_mutex_unlock(&sub->mutex);
        hf__sub_source_close(sub);
    }
    return hf_scope_fail_from(s, HF_STOPPED, sub->why);
}

enum hf_status hf__sub_step_run(struct hf_scope *s, struct hf_subscription *sub, uint32_t *wait_ms)
{
    enum hf_status status;

    if (DEV_CHECKS)
        hf__sub_check(sub);
    *wait_ms = sub->o.poll_ms;
    if (!sub->gave_up) {
        TRY(lease_have(s, sub, wait_ms));
        status = step_work(s, sub, wait_ms);
        if (DEV_CHECKS)
            hf__sub_check(sub);
        if (status == HF_IN_USE) {
            pthread_mutex_lock(&sub->mutex);
            sub->rebuild = true;
            sub->metrics.state = HF_SUBSCRIPTION_CATCHING_UP;
            pthread_mutex_unlock(&sub->mutex);
            *wait_ms = 0;
            return HF_OK;
        }
        if (status == HF_LOST) {
            hf__sub_lost(s, sub);
            return hf_scope_fail(s, HF_LOCKED, "another process holds subscription \"%.*s\"",
                                 HF_FMT(sub->name));
        }
        TRY(status);
    }
    if (sub->gave_up)
        return give_up(s, sub);
    *wait_ms = until_renewal(sub, *wait_ms);
    return HF_OK;
}

enum hf_status hf_subscription_step(struct hf_scope *s, struct hf_subscription *sub,
                                    uint32_t *wait_ms)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    enum hf_status status;

    call_begins(s);
    *wait_ms = 0;
    if (sub->worker)
        return hf_scope_fail(
            s, HF_IN_USE,
            "subscription \"%.*s\" runs on its own threads; open it with no_threads to call "
            "hf_subscription_step()",
            HF_FMT(sub->name));
    status = hf__sub_step_run(s, sub, wait_ms);
    if (status == HF_OK)
        hf_scope_rewind(s, mark);
    return call_ends(s, status);
}

enum hf_status hf_subscription_drain(struct hf_scope *s, struct hf_subscription *sub,
                                     uint64_t *handled)
{
    uint64_t before = sub->metrics.handled;
    uint32_t wait_ms;
    enum hf_status status = HF_OK;

    sub->looked_us = 0;
    while (status == HF_OK) {
        status = hf_subscription_step(s, sub, &wait_ms);
        if (status != HF_OK || sub->metrics.state == HF_SUBSCRIPTION_LIVE)
            break;
        status = hf_scope_sleep_ms(s, wait_ms);
    }
    if (handled)
        *handled = sub->metrics.handled - before;
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void sub_free(struct hf_subscription *sub)
{
    struct hf_env env = sub->env;

    hf__sub_source_close(sub);
    hf_scope_free(sub->why);
    hf_scope_free(sub->kept);
    hf_scope_free(sub->scope);
    hf_scope_free(sub->work);
    hf_scope_free(sub->page);
    hf_scope_free(sub->heartbeat_scope);
    pthread_cond_destroy(&sub->looked);
    pthread_mutex_destroy(&sub->mutex);
    hf__env_free(&env, sub, sizeof(*sub));
}

void hf_subscription_close(struct hf_subscription *sub)
{
    bool left;

    if (!sub)
        return;
    (void)hf__sub_threads_stop(NULL, sub, &left);
    (void)hf__sub_final_write(sub);
    sub_free(sub);
}

static enum hf_status check_options(struct hf_scope *s, struct hf_str name,
                                    const struct hf_subscribe_options *o)
{
    int functions = (o->each != NULL) + (o->batch != NULL) + (o->project != NULL);
    bool of_stream = o->stream.domain.len > 0;

    if (functions != 1)
        return hf_scope_fail(s, HF_INVALID,
                             "subscription \"%.*s\": set exactly one of each, batch and project",
                             HF_FMT(name));
    if (of_stream && (o->domain.ptr || o->type.ptr || o->archived || o->start == HF_START_TIME))
        return hf_scope_fail(
            s, HF_INVALID,
            "a subscription to one stream cannot have a domain, a type, archived or a start time");
    if (o->start < 0 || o->start > HF_START_TIME || o->give_up < 0 ||
        o->give_up > HF_GIVE_UP_PARK || o->stuck > HF_STUCK_GIVE_UP)
        return hf_scope_fail(s, HF_INVALID,
                             "subscription \"%.*s\": invalid value of start, give_up or stuck",
                             HF_FMT(name));
    if (o->start == HF_START_AFTER &&
        !(of_stream ? hf__sub_is_version(o->after)
                    : hf__events_position_read(o->after, NULL, NULL, NULL)))
        return hf_scope_fail(s, HF_INVALID, "\"%.*s\" (after) is not a %s", HF_FMT(o->after),
                             of_stream ? "version" : "position");
    if (o->reset && !o->project)
        return hf_scope_fail(s, HF_INVALID, "only a projection can have a reset function");
    if (o->batch_max > HF_SUBSCRIPTION_BATCH_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_SUBSCRIPTION_BATCH_MAX, o->batch_max),
                                   "batch_max must be at most %d", HF_SUBSCRIPTION_BATCH_MAX);
    if (o->lease_ms && o->lease_ms < LEASE_LEAST_MS)
        return hf_scope_fail(s, HF_INVALID, "lease_ms must be at least %d", LEASE_LEAST_MS);
    return HF_OK;
}

static void set_defaults(struct hf_subscribe_options *o)
{
    if (!o->batch_max)
        o->batch_max = o->project ? 1 : BATCH_MAX;
    if (o->project && o->batch_max > HF_TX_ACTIONS_MAX - 1)
        o->batch_max = HF_TX_ACTIONS_MAX - 1;
    if (!o->checkpoint_ms)
        o->checkpoint_ms = CHECKPOINT_MS;
    if (!o->poll_ms)
        o->poll_ms = POLL_MS;
    if (!o->max_attempts)
        o->max_attempts = MAX_ATTEMPTS;
    if (!o->backoff_ms)
        o->backoff_ms = BACKOFF_MS;
    if (!o->backoff_max_ms)
        o->backoff_max_ms = BACKOFF_MAX_MS;
    if (!o->lease_ms)
        o->lease_ms = LEASE_MS;
    if (!o->start)
        o->start = HF_START_FIRST;
    if (!o->stuck_ms && o->timeout_ms)
        o->stuck_ms =
            o->timeout_ms < UINT32_MAX / STUCK_TIMES ? o->timeout_ms * STUCK_TIMES : UINT32_MAX;
    if (!o->stuck_ms)
        o->stuck_ms = STUCK_MS;
    if (!o->stuck)
        o->stuck = HF_STUCK_LEAVE;
}

static struct hf_str text_keep(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

static enum hf_status keep_texts(struct hf_subscription *sub, struct hf_str name)
{
    struct hf_subscribe_options *o = &sub->o;

    sub->name = text_keep(sub->kept, name);
    o->stream.domain = text_keep(sub->kept, o->stream.domain);
    o->stream.id = text_keep(sub->kept, o->stream.id);
    o->domain = text_keep(sub->kept, o->domain);
    o->type = text_keep(sub->kept, o->type);
    o->after = text_keep(sub->kept, o->after);
    o->owner = hf__pattern_text(sub->kept, hf__pattern_owner(sub->kept, o->owner), OWNER_MAX);
    TRY(hf__sub_pk(sub->kept, name, &sub->pk));
    return hf_scope_built(sub->kept);
}

enum hf_status hf_subscribe(struct hf_scope *s, struct hf_events *store, struct hf_str name,
                            const struct hf_subscribe_options *options,
                            struct hf_subscription **out)
{
    struct hf_subscribe_options o;
    struct hf_subscription *sub;
    struct hf_str pk;
    enum hf_status status = HF_NOMEM;

    call_begins(s);
    *out = NULL;
    OPTIONS_COPY(&o, options);
    TRY(hf__sub_pk(s, name, &pk));
    TRY(check_options(s, name, &o));
    sub = hf__env_zalloc(&store->env, sizeof(*sub));
    if (!sub)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a subscription");
    sub->env = store->env;
    sub->store = store;
    sub->o = o;
    sub->of_stream = o.stream.domain.len > 0;
    sub->metrics.state = HF_SUBSCRIPTION_IDLE;
    set_defaults(&sub->o);
    assert(sub->o.batch_max && sub->o.max_attempts && sub->o.lease_ms >= LEASE_LEAST_MS);
    pthread_mutex_init(&sub->mutex, NULL);
    cond_monotonic_init(&sub->looked);
    sub->kept = hf_scope_new(&store->env);
    sub->scope = hf_scope_new(&store->env);
    sub->work = hf_scope_new(&store->env);
    sub->page = hf_scope_new(&store->env);
    sub->heartbeat_scope = hf_scope_new(&store->env);
    sub->why = hf_scope_new(&store->env);
    if (sub->kept && sub->scope && sub->work && sub->page && sub->heartbeat_scope && sub->why)
        status = keep_texts(sub, name);
    if (status != HF_OK) {
        sub_free(sub);
        return hf_scope_fail(s, status, "no memory for a subscription");
    }
    *out = sub;
    return HF_OK;
}

uint64_t hf_subscription_fence(struct hf_subscription *sub)
{
    uint64_t fence;

    pthread_mutex_lock(&sub->mutex);
    fence = sub->held ? sub->metrics.fence : 0;
    pthread_mutex_unlock(&sub->mutex);
    return fence;
}

void hf_subscription_metrics(struct hf_subscription *sub, struct hf_subscription_metrics *metrics)
{
    pthread_mutex_lock(&sub->mutex);
    *metrics = sub->metrics;
    pthread_mutex_unlock(&sub->mutex);
}
