/*
 * relay/relay.c: from the outbox to a sink: opening, what is done next, and what was done.
 *
 * A relay owns buckets (relay_member.c), reads them (relay_read.c), holds some of their events, by key
 * (relay_key.c), sends them (relay_send.c) and notes deliveries (relay_note.c). All of this is divided
 * into tasks that last for one request or one call of the sink: hf__relay_next() chooses the next one.
 * The worker threads do nothing else, or hf_relay_step() does (relay_run.c); so while one task waits,
 * other threads go on with other tasks. One more thread, the heartbeat thread, renews the lease. With
 * `competing` events are claimed one by one instead (relay_claim.c).
 *
 *  (1) The state of a relay is guarded by its mutex, which is not held during requests, calls of
 *      the sink, and callbacks.
 *  (2) Nothing is begun when the lease has ended by our own clock, counted from before the renewal
 *      was sent: then all buckets are dropped, and what is under way is not noted.
 *  (3) Emitting into the outbox in this process wakes the relay for that bucket; no thread polls in
 *      shorter intervals than poll_ms when nothing happens.
 */
#include "relay/relay.h"

enum { OLD_WISH_US = 5000, STUCK_TIMES = 10 };

/* ---- small things --------------------------------------------------------------------------- */

void hf__relay_signal(struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    if (relay->idle)
        pthread_cond_signal(&relay->work_cond);
    if (relay->members.leaving && relay->heartbeat.timer && !relay->ended)
        hf__timer_wake(relay->heartbeat.timer);
}

void hf__relay_begin(struct hf_relay *relay, struct hf_scope *s, uint32_t timeout_ms)
{
    (void)relay;
    hf_scope_reset(s);
    hf_scope_timeout_ms(s, timeout_ms ? timeout_ms : 1);
    hf_scope_count_capacity(s, true);
}

void hf__relay_consumed(struct hf_relay *relay, struct hf_scope *s)
{
    struct hf_scope_capacity sum = hf_scope_capacity(s);

    hf_scope_count_capacity(s, false);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.read_units += sum.read_units;
    relay->metrics.write_units += sum.write_units;
    pthread_mutex_unlock(&relay->mutex);
}

void hf__relay_report_error(struct hf_relay *relay, struct hf_scope *s)
{
    if (relay->o.on_error)
        relay->o.on_error(hf_scope_error(s), relay->o.user);
}

uint32_t hf__relay_backoff_ms(const struct hf_relay *relay, uint32_t first_ms, uint32_t failures)
{
    uint32_t ms = hf__backoff_ms(&relay->env, first_ms, relay->o.backoff_max_ms, failures);

    return ms ? ms : 1;
}

/* ---- opening -------------------------------------------------------------------------------- */

struct preset {
    uint32_t batch, poll_ms, attempts, workers;
};

static const struct preset presets[] = {
    [HF_RELAY_BALANCED] = {.batch = 50, .poll_ms = 1000, .attempts = 5, .workers = 4},
    [HF_RELAY_THROUGHPUT] = {.batch = 1000, .poll_ms = 100, .attempts = 3, .workers = 8},
    [HF_RELAY_RELIABILITY] = {.batch = 10, .poll_ms = 5000, .attempts = 10, .workers = 1}};

static void set_default(uint32_t *field, uint32_t value)
{
    *field = *field ? *field : value;
}

static void set_defaults(struct hf_relay_options *o)
{
    const struct preset *preset;

    o->preset = o->preset ? o->preset : HF_RELAY_BALANCED;
    preset = &presets[o->preset];
    set_default(&o->batch, preset->batch);
    set_default(&o->poll_ms, preset->poll_ms);
    set_default(&o->max_attempts, preset->attempts);
    set_default(&o->workers, preset->workers);
    set_default(&o->backoff_ms, 1000);
    set_default(&o->backoff_max_ms, 30000);
    set_default(&o->timeout_ms, 30000);
    set_default(&o->lease_ms, 20000);
    set_default(&o->heartbeat_ms, hf__lease_heartbeat_ms(o->lease_ms));
    set_default(&o->breaker_ms, 1000);
    set_default(&o->wake_ms, 200);
    set_default(&o->stuck_ms, o->timeout_ms < UINT32_MAX / STUCK_TIMES ? o->timeout_ms * STUCK_TIMES
                                                                       : UINT32_MAX);
    o->stuck = o->stuck ? o->stuck : HF_STUCK_LEAVE;
    set_default(&o->max_crashes, o->max_attempts);
}

static enum hf_status check_options(struct hf_scope *s, const struct hf_relay_options *o)
{
    if (o->preset > HF_RELAY_RELIABILITY)
        return hf_scope_fail(s, HF_INVALID, "invalid preset %d", (int)o->preset);
    if (o->heartbeat_ms > o->lease_ms / 2)
        return hf_scope_fail(s, HF_INVALID,
                             "a heartbeat of %u ms is more than half of a lease of %u ms",
                             o->heartbeat_ms, o->lease_ms);
    if (o->stuck > HF_STUCK_GIVE_UP)
        return hf_scope_fail(s, HF_INVALID, "invalid value %d of the option stuck", (int)o->stuck);
    if (o->workers > RELAY_WORKERS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   hf_error_limit_of("workers", RELAY_WORKERS_MAX, o->workers),
                                   "%u workers are more than %d", o->workers, RELAY_WORKERS_MAX);
    if (o->competing && (o->dry_run || o->failed_blocks))
        return hf_scope_fail(s, HF_INVALID, "competing relays do not support %s",
                             o->dry_run ? "dry_run" : "failed_blocks");
    return hf__outbox_only_check(s, &(struct outbox_only){.type = o->only_type,
                                                          .key = o->only_key,
                                                          .tenant = o->only_tenant});
}

/* True: that is news. */
static bool bucket_wake(struct relay_bucket *bucket, bool urgent)
{
    bool *woken = urgent ? &bucket->urgent.woken : &bucket->woken, news = !*woken;

    *woken = true;
    return news && bucket->state == BUCKET_OURS;
}

void hf__relay_wake(struct hf_relay *relay, uint32_t bucket, bool urgent)
{
    bool news = false;

    pthread_mutex_lock(&relay->mutex);
    if (relay->o.competing) {
        news = !relay->claims.woken;
        relay->claims.woken = true;
    } else {
        for (uint32_t i = bucket == UINT32_MAX ? 0 : bucket; i < relay->outbox->buckets; i++) {
            news = bucket_wake(&relay->reader.buckets[i], urgent) || news;
            if (bucket != UINT32_MAX)
                break;
            news = bucket_wake(&relay->reader.buckets[i], !urgent) || news;
            relay->reader.buckets[i].urgent.from_start =
                true; /* by hand, it may be in its old place */
        }
    }
    if (news)
        hf__relay_signal(relay);
    pthread_mutex_unlock(&relay->mutex);
}

static void wake_listener(void *user, uint32_t bucket, bool urgent)
{
    hf__relay_wake(user, bucket, urgent);
}

static enum hf_status make_workers(struct hf_relay *relay)
{
    size_t len = relay->o.no_threads ? 1 : relay->o.workers;

    relay->workers = hf__env_zalloc(&relay->env, len * sizeof(*relay->workers));
    if (!relay->workers)
        return HF_NOMEM;
    relay->workers_len = len;
    for (size_t i = 0; i < len; i++) {
        relay->workers[i].relay = relay;
        relay->workers[i].io = hf_scope_new(&relay->env);
        relay->workers[i].work = hf_scope_new(&relay->env);
        if (!relay->workers[i].io || !relay->workers[i].work)
            return HF_NOMEM;
    }
    return HF_OK;
}

static enum hf_status make_buckets(struct hf_relay *relay)
{
    uint32_t len = relay->outbox->buckets;

    relay->reader.buckets = hf__env_zalloc(&relay->env, len * sizeof(*relay->reader.buckets));
    relay->members.rows = hf__env_zalloc(&relay->env, len * sizeof(*relay->members.rows));
    relay->members.plan = hf__env_zalloc(&relay->env, len * sizeof(*relay->members.plan));
    if (!relay->reader.buckets || !relay->members.rows || !relay->members.plan)
        return HF_NOMEM;
    pthread_mutex_lock(&relay->mutex);
    for (uint32_t i = 0; i < len; i++) {
        relay->reader.buckets[i].number = i;
        if (relay->o.dry_run) { /* nothing is noted, so it may look at all of them */
            relay->reader.buckets[i].state = BUCKET_OURS;
            hf__relay_read_reset(relay, &relay->reader.buckets[i], relay_now_us(relay));
        }
    }
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

static enum hf_status relay_fill(struct hf_scope *s, struct hf_relay *relay)
{
    relay->names = hf_scope_new(&relay->env);
    relay->heartbeat.scope = hf_scope_new(&relay->env);
    for (size_t i = 0; i < ARRAY_LEN(relay->watch.scopes) && relay->o.wake_by_stream; i++)
        relay->watch.scopes[i] = hf_scope_new(&relay->env);
    if (!relay->names || !relay->heartbeat.scope ||
        (relay->o.wake_by_stream && (!relay->watch.scopes[0] || !relay->watch.scopes[1])) ||
        make_buckets(relay) != HF_OK || make_workers(relay) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a relay");
    relay->o.owner = hf__pattern_owner(relay->names, relay->o.owner);
    relay->only = (struct outbox_only){.type = hf_scope_copy(relay->names, relay->o.only_type),
                                       .key = hf_scope_copy(relay->names, relay->o.only_key),
                                       .tenant = hf_scope_copy(relay->names, relay->o.only_tenant)};
    relay->only_text = hf__outbox_only_text(relay->names, &relay->only);
    relay->only_bucket = hf__outbox_only_bucket(relay->outbox, &relay->only);
    if (hf_scope_built(relay->names) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a relay");
    if (!relay->o.dry_run)
        TRY(hf__outbox_take_mode(s, relay->outbox, relay->o.competing));
    (void)hf__outbox_listen(relay->outbox, wake_listener,
                            relay); /* without it we find things by polling */
    return HF_OK;
}

static void take_limits(struct hf_relay *relay)
{
    size_t sink_max = relay->ops->batch_max ? relay->ops->batch_max : 1;

    relay->batch_max =
        relay->o.batch_max && relay->o.batch_max < sink_max ? relay->o.batch_max : sink_max;
    relay->sends_max = relay->o.workers;
    if (relay->ops->workers && relay->ops->workers < relay->sends_max)
        relay->sends_max = relay->ops->workers;
}

enum hf_status hf_relay_open(struct hf_scope *s, struct hf_outbox *outbox, struct hf_sink *sink,
                             const struct hf_relay_options *options, struct hf_relay **out)
{
    struct hf_relay_options o;
    struct hf_relay *relay;
    enum hf_status status;

    call_begins(s);
    *out = NULL;
    OPTIONS_COPY(&o, options);
    if (!outbox || !sink)
        return hf_scope_fail(s, HF_INVALID, "hf_relay_open() was called without %s",
                             outbox ? "a sink" : "an outbox");
    if (o.preset <= HF_RELAY_RELIABILITY)
        set_defaults(&o);
    TRY(check_options(s, &o));
    relay = hf__env_zalloc(hf_scope_env(s), sizeof(*relay));
    if (!relay)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a relay");
    relay->env = *hf_scope_env(s);
    relay->outbox = outbox;
    relay->sink = sink;
    relay->ops = hf_sink_ops(sink);
    relay->o = o;
    relay->unasked = o.competing;
    relay->keys.ready.last = relay->keys.ready.urgent = &relay->keys.ready.first;
    relay->noter.last = &relay->noter.first;
    relay->timed_us = INT64_MAX;
    relay->self = hf__pattern_id_make(&relay->env);
    relay->sender.tokens_us = relay_now_us(relay);
    relay->sender.tokens = 1;
    take_limits(relay);
    pthread_mutex_init(&relay->mutex, NULL);
    cond_monotonic_init(&relay->work_cond);
    cond_monotonic_init(&relay->idle_cond);
    status = relay_fill(s, relay);
    if (status != HF_OK) {
        hf_relay_close(relay);
        return status;
    }
    *out = relay;
    return HF_OK;
}

void hf_relay_close(struct hf_relay *relay)
{
    struct hf_env env;
    size_t buckets;

    if (!relay)
        return;
    env = relay->env;
    buckets = relay->outbox->buckets;
    hf__relay_end(relay);
    hf__outbox_unlisten(relay->outbox, wake_listener, relay);
    pthread_mutex_lock(&relay->mutex);
    hf__relay_keys_free(relay);
    pthread_mutex_unlock(&relay->mutex);
    for (size_t i = 0; i < relay->workers_len; i++) {
        hf_scope_free(relay->workers[i].io);
        hf_scope_free(relay->workers[i].work);
    }
    hf__env_free(&env, relay->workers, relay->workers_len * sizeof(*relay->workers));
    hf__env_free(&env, relay->reader.buckets, buckets * sizeof(*relay->reader.buckets));
    hf__env_free(&env, relay->members.rows, buckets * sizeof(*relay->members.rows));
    hf__env_free(&env, relay->members.plan, buckets * sizeof(*relay->members.plan));
    hf__env_free(&env, relay->members.list, relay->members.size * sizeof(*relay->members.list));
    hf_scope_free(relay->names);
    hf_scope_free(relay->heartbeat.scope);
    hf_scope_free(relay->watch.scopes[0]);
    hf_scope_free(relay->watch.scopes[1]);
    pthread_cond_destroy(&relay->work_cond);
    pthread_cond_destroy(&relay->idle_cond);
    pthread_mutex_destroy(&relay->mutex);
    hf__env_free(&env, relay, sizeof(*relay));
}

/* ---- what always holds ---------------------------------------------------------------------- */

enum { CHECK_TABLES_EVERY = 32 };

void hf__relay_check(struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    assert(relay->idle <= relay->workers_len);
    assert(!relay->ended || relay->stopping || !relay->started);
    hf__reader_check(relay);
    hf__sender_check(relay);
    hf__noter_check(relay);
    hf__members_check(relay);
    hf__relay_claims_check(relay);
    if (relay->checks++ % CHECK_TABLES_EVERY == 0)
        hf__relay_keys_check(relay);
}

/* ---- what is next --------------------------------------------------------------------------- */

static struct task task_note(struct hf_relay *relay, int64_t now_us)
{
    struct task task = {.kind = TASK_NOTE};

    ASSERT_RELAY_HELD(relay);
    task.len = hf__note_take(relay, now_us, &task.batch);
    if (!task.len)
        task.kind = TASK_NONE;
    return task;
}

/* The breaker is open: it may be time for a probe. */
static struct task task_probe(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    struct task task = {.kind = TASK_NONE};

    ASSERT_RELAY_HELD(relay);
    if (relay->sender.breaker.probing || relay_is_paused(relay))
        return task;
    if (relay->sender.breaker.probe_us > now_us) {
        *next_us =
            relay->sender.breaker.probe_us < *next_us ? relay->sender.breaker.probe_us : *next_us;
        return task;
    }
    if (relay->ops->probe) {
        relay->sender.breaker.probing = true;
        task.kind = TASK_PROBE;
    } else if (relay->o.competing) {
        if (relay->claims.next_us <= now_us || relay->claims.woken) {
            relay->sender.breaker.probing = true;
            relay->claims.running++;
            relay->claims.woken = false;
            task = (struct task){.kind = TASK_CLAIM, .probe = true};
        } else {
            *next_us = relay->claims.next_us < *next_us ? relay->claims.next_us : *next_us;
        }
    } else if (relay->keys.ready.first && relay->sender.running < relay->sends_max) {
        task.len = hf__send_take(relay, 1, now_us, &task.batch);
        relay->sender.breaker.probing = task.len > 0;
        task.probe = true;
        task.kind = task.len ? TASK_SEND : TASK_NONE;
        relay->sender.running -= !task.len;
    }
    return task;
}

static struct task task_send(struct hf_relay *relay, int64_t now_us)
{
    struct task task = {.kind = TASK_SEND};

    ASSERT_RELAY_HELD(relay);
    task.len = hf__send_take(relay, relay->batch_max, now_us, &task.batch);
    if (!task.len) {
        relay->sender.running--;
        task.kind = TASK_NONE;
    }
    return task;
}

static struct task task_read(struct relay_bucket *bucket)
{
    bucket->reading = true;
    return (struct task){.kind = TASK_READ, .bucket = bucket};
}

static struct task task_look(struct hf_relay *relay)
{
    relay->reader.looking = true;
    return (struct task){.kind = TASK_LOOK};
}

/* Read or send: first what can be sent, unless a batch can be filled up, or a bucket has waited for
 * long. */
static struct task task_bucket(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    struct relay_bucket *bucket = hf__relay_read_choose(relay, now_us, next_us);
    bool may = hf__send_may(relay, now_us, next_us);

    ASSERT_RELAY_HELD(relay);
    if (bucket && (!may || now_us - bucket->wants_us >= OLD_WISH_US ||
                   hf__urgent_is_due(relay, bucket, now_us) ||
                   (bucket->more && relay->keys.ready.len < relay->batch_max)))
        return hf__look_may(relay, bucket, now_us) ? task_look(relay) : task_read(bucket);
    return may ? task_send(relay, now_us) : (struct task){.kind = TASK_NONE};
}

struct task hf__relay_next(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    struct task task = {.kind = TASK_NONE};
    bool note;

    ASSERT_RELAY_HELD(relay);
    if (DEV_CHECKS)
        hf__relay_check(relay);
    *next_us = INT64_MAX;
    if (relay->members.lease.until_us && now_us >= relay->members.lease.until_us) /* (2) */
        hf__member_drop(relay);
    note = hf__note_may(relay, now_us, next_us);
    if (note && hf__note_is_pressing(relay, now_us))
        task = task_note(relay, now_us);
    if (task.kind == TASK_NONE && !relay->stopping && breaker_is_open(&relay->sender))
        task = task_probe(relay, now_us, next_us);
    if (task.kind != TASK_NONE || relay->stopping)
        return task;
    if (relay->o.competing)
        return (struct task){.kind = hf__relay_claim_may(relay, now_us, next_us) ? TASK_CLAIM
                                                                                 : TASK_NONE};
    task = task_bucket(relay, now_us, next_us);
    return task.kind == TASK_NONE && note ? task_note(relay, now_us) : task;
}

void hf__relay_do(struct relay_worker *worker, const struct task *task)
{
    switch (task->kind) {
    case TASK_READ:
        hf__relay_read_run(worker, task->bucket);
        break;
    case TASK_LOOK:
        hf__look_run(worker);
        break;
    case TASK_SEND:
        hf__send_run(worker, task->batch, task->len, task->probe);
        break;
    case TASK_NOTE:
        hf__note_run(worker, task->batch, task->len);
        break;
    case TASK_PROBE:
        hf__probe_run(worker);
        break;
    case TASK_CLAIM:
        hf__relay_claim_run(worker, task->probe);
        break;
    case TASK_NONE:
        break;
    }
}

/* ---- looking -------------------------------------------------------------------------------- */

void hf_relay_pause(struct hf_relay *relay)
{
    pthread_mutex_lock(&relay->mutex);
    relay->paused = true;
    pthread_mutex_unlock(&relay->mutex);
}

void hf_relay_resume(struct hf_relay *relay)
{
    pthread_mutex_lock(&relay->mutex);
    relay->paused = false;
    pthread_cond_broadcast(&relay->work_cond);
    pthread_mutex_unlock(&relay->mutex);
}

/* The lag: how long ago the oldest event that is not delivered was due. Events that wait for a
 * retry count, too. */
static int64_t lag_compute_ms(struct hf_relay *relay, uint64_t *waiting)
{
    int64_t now_us = relay->env.wall_us(relay->env.user), oldest_us = now_us;

    ASSERT_RELAY_HELD(relay);
    *waiting = 0;
    if (relay->o.competing)
        return (now_us - hf__relay_claim_oldest_us(relay, now_us, waiting)) / 1000;
    for (size_t i = 0; i < RELAY_SLOTS; i++) {
        for (const struct held *held = relay->keys.by_seq[i]; held; held = held->chain) {
            if (held->state != HELD_WAITS && held->state != HELD_RUNS)
                continue;
            *waiting += held->state == HELD_WAITS;
            oldest_us = held->due_us < oldest_us ? held->due_us : oldest_us;
        }
        for (const struct relay_key *key = relay->keys.by_name[i]; key; key = key->chain)
            if (key->skips && key->due_us && key->due_us < oldest_us)
                oldest_us = key->due_us;
    }
    return (now_us - oldest_us) / 1000;
}

void hf_relay_metrics(struct hf_relay *relay, struct hf_relay_metrics *metrics)
{
    pthread_mutex_lock(&relay->mutex);
    *metrics = relay->metrics;
    metrics->breaker_open = breaker_is_open(&relay->sender);
    metrics->paused = relay_is_paused(relay);
    metrics->buckets = 0;
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        metrics->buckets += relay->reader.buckets[i].state != BUCKET_OTHERS;
    metrics->lag_ms = lag_compute_ms(relay, &metrics->waiting);
    pthread_mutex_unlock(&relay->mutex);
    metrics->unreadable = hf__outbox_unreadable(relay->outbox);
}
