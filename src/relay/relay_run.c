/*
 * relay/relay_run.c: what runs the tasks of a relay: threads of its own, or calls of hf_relay_step();
 * and how it stops.
 *
 *  (1) Of the workers that have nothing to do, one waits for the time of the next task, the others
 *      until they are woken. So an idle relay wakes up once for each task.
 *  (2) A worker that begins a task wakes another one, which waits for the next task in its place.
 *  (3) Stopping: no task begins; running deliveries end or are canceled; deliveries are noted; then
 *      the threads end, the heartbeat thread last, as the lease has to last until here; then the
 *      buckets are released.
 *  (4) A sink that does not return although it was canceled is left behind: its thread goes on, and
 *      all else ends. Others get its buckets, so its outcome changes nothing
 *      (relay_stuck.c); a competing one's claims end with their lease. The next stop waits for it
 *      again, and closing does so without a limit, as it uses what is freed then.
 *  (5) A drain ends: when all is done, at its deadline, or when nothing has moved for stall_ms.
 */
#include "relay/relay.h"

enum {
    LONGEST_WAIT_US = 1000000,
    SLICE_MS = 20,
    STEP_TASKS_MAX = 1000,
    NOTE_TAIL_MS = 1000, /* how long noting is tried when the deadline has passed */
    LEAVE_MS = 2000
};

/* Wait for at most so long on the system's clock. */
static void wait_on(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us)
{
    ASSERT_HELD(mutex);
    cond_wait_us(cond, mutex, us < LONGEST_WAIT_US ? us : LONGEST_WAIT_US);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* (1) */
static void worker_rest(struct hf_relay *relay, int64_t now_us, int64_t next_us)
{
    ASSERT_RELAY_HELD(relay);
    relay->idle++;
    if (next_us < relay->timed_us) {
        relay->timed_us = next_us;
        wait_on(&relay->work_cond, &relay->mutex, next_us > now_us ? next_us - now_us : 0);
        if (relay->timed_us == next_us)
            relay->timed_us = INT64_MAX;
    } else {
        pthread_cond_wait(&relay->work_cond, &relay->mutex);
    }
    relay->idle--;
}

static void *worker_main(void *user)
{
    struct relay_worker *worker = user;
    struct hf_relay *relay = worker->relay;

    pthread_mutex_lock(&relay->mutex);
    worker->self = pthread_self();
    worker->runs = true;
    while (!relay->ended) {
        int64_t now_us = relay_now_us(relay), next_us;
        struct task task = hf__relay_next(relay, now_us, &next_us);

        if (task.kind == TASK_NONE) {
            worker_rest(relay, now_us, next_us);
            continue;
        }
        if ((task.kind == TASK_SEND || task.kind == TASK_CLAIM) &&
            (relay->keys.ready.first || relay->timed_us == INT64_MAX))
            hf__relay_signal(relay); /* (2) */
        pthread_mutex_unlock(&relay->mutex);
        hf__relay_do(worker, &task);
        pthread_mutex_lock(&relay->mutex);
    }
    worker->runs = false;
    worker->over = true;
    pthread_mutex_unlock(&relay->mutex);
    return NULL;
}

static int64_t heartbeat_step(struct hf_relay *relay)
{
    int64_t stuck_us = relay->o.no_threads ? INT64_MAX : hf__relay_stuck_step(relay), next_us;

    if (relay->o.dry_run)
        return stuck_us;
    if (relay->o.competing) {
        int64_t renewed_us, pause_us;

        next_us = hf__relay_claim_renew(relay); /* first, as looking may take its time */
        renewed_us = relay_now_us(relay);
        pause_us = hf__relay_pause_look(relay);
        next_us -= relay_now_us(relay) - renewed_us;
        next_us = next_us > 0 ? next_us : 0;
        next_us = pause_us < next_us ? pause_us : next_us;
    } else {
        next_us = hf__member_step(relay);
    }
    return stuck_us < next_us ? stuck_us : next_us;
}

/* From here on until it ends, calls on this thread are calls by the relay. */
static void thread_mark(struct hf_relay *relay, pthread_t *thread, bool *inside, bool begins)
{
    pthread_mutex_lock(&relay->mutex);
    *thread = pthread_self();
    *inside = begins;
    pthread_mutex_unlock(&relay->mutex);
}

static int64_t heartbeat_run(void *user)
{
    struct hf_relay *relay = user;
    int64_t wait_us;

    thread_mark(relay, &relay->heartbeat.thread, &relay->heartbeat.inside, true);
    wait_us = heartbeat_step(relay);
    thread_mark(relay, &relay->heartbeat.thread, &relay->heartbeat.inside, false);
    return wait_us;
}

/* When to ask the stream next. */
static int64_t watch_step(struct hf_relay *relay)
{
    if (!relay->o.wake_by_stream)
        return INT64_MAX;
    if (relay_now_us(relay) >= relay->watch.next_us) {
        int64_t wait_us = hf__relay_watch_step(relay);

        relay->watch.next_us = relay_now_us(relay) + wait_us;
    }
    return relay->watch.next_us;
}

/* A timer calls more often than it is asked to. */
static int64_t watch_run(void *user)
{
    struct hf_relay *relay = user;
    int64_t left_us;

    thread_mark(relay, &relay->watch.thread, &relay->watch.inside, true);
    left_us = watch_step(relay) - relay_now_us(relay);
    thread_mark(relay, &relay->watch.thread, &relay->watch.inside, false);
    return left_us > 0 ? left_us : 0;
}

/* (3) Wait for the threads to end. `left`: except those that are stuck in a sink. (4) */
static void threads_join(struct hf_relay *relay, bool left)
{
    pthread_mutex_lock(&relay->mutex);
    relay->ended = true;
    pthread_cond_broadcast(&relay->work_cond);
    pthread_mutex_unlock(&relay->mutex);
    for (size_t i = 0; i < relay->workers_len; i++) {
        struct relay_worker *worker = &relay->workers[i];
        bool over;

        pthread_mutex_lock(&relay->mutex);
        over = worker->over;
        pthread_mutex_unlock(&relay->mutex);
        if (!worker->started || (left && !over))
            continue;
        pthread_join(worker->thread, NULL);
        worker->started = false;
    }
    hf__timer_stop(relay->watch.timer);
    relay->watch.timer = NULL;
    hf__timer_stop(relay->heartbeat.timer);
    pthread_mutex_lock(&relay->mutex);
    relay->heartbeat.timer = NULL;
    pthread_mutex_unlock(&relay->mutex);
}

static enum hf_status start_threads(struct hf_scope *s, struct hf_relay *relay)
{
    struct timer *timer;

    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < relay->workers_len; i++)
        relay->workers[i].runs = relay->workers[i].over = false;
    pthread_mutex_unlock(&relay->mutex);
    for (size_t i = 0; i < relay->workers_len; i++) {
        if (pthread_create(&relay->workers[i].thread, NULL, worker_main, &relay->workers[i]) != 0)
            return hf_scope_fail(s, HF_LIMIT, "the system could not start a thread for the relay");
        relay->workers[i].started = true;
    }
    TRY(hf__timer_start(s, heartbeat_run, relay, &timer));
    pthread_mutex_lock(&relay->mutex);
    relay->heartbeat.timer = timer;
    pthread_mutex_unlock(&relay->mutex);
    relay->watch.next_us = 0;
    return relay->o.wake_by_stream ? hf__timer_start(s, watch_run, relay, &relay->watch.timer)
                                   : HF_OK;
}

enum hf_status hf_relay_start(struct hf_scope *s, struct hf_relay *relay)
{
    enum hf_status status;

    call_begins(s);
    if (relay->o.no_threads)
        return hf_scope_fail(s, HF_INVALID,
                             "this relay was opened with no_threads: call hf_relay_step()");
    pthread_mutex_lock(&relay->mutex);
    if (relay->started) {
        pthread_mutex_unlock(&relay->mutex);
        return hf_scope_fail(s, HF_IN_USE, "the relay is already running");
    }
    relay->started = true;
    relay->stopping = relay->canceled = relay->ended = false;
    relay->members.complete = false;
    pthread_mutex_unlock(&relay->mutex);
    status = start_threads(s, relay);
    if (status != HF_OK) {
        threads_join(relay, false);
        relay->started = false;
    }
    return status;
}

/* ---- stopping ------------------------------------------------------------------------------- */

static bool is_quiet(const struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    return !relay->sender.running && !relay->claims.running && !relay->sender.breaker.probing;
}

/* */
static void cancel_all(struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    relay->canceled = true;
    for (size_t i = 0; i < relay->workers_len; i++)
        if (relay->workers[i].sending)
            hf_scope_cancel(relay->workers[i].work);
}

/* How what was under way came to an end. */
enum ending {
    ENDING_BY_ITSELF,
    ENDING_CANCELED,
    ENDING_LEFT /* it did not (4) */
};

/* Wait until everything that is under way has ended. It is canceled when the deadline of the scope
 * passes, or `at_once`. Without a scope it is canceled, too, and the wait has no limit. */
static enum ending wait_for_end(struct hf_scope *s, struct hf_relay *relay, bool at_once)
{
    enum ending ending = ENDING_BY_ITSELF;
    int64_t left_us = 0;

    pthread_mutex_lock(&relay->mutex);
    while (!is_quiet(relay)) {
        if (ending == ENDING_BY_ITSELF && (at_once || !s || hf_scope_sleep_ms(s, 0) != HF_OK)) {
            cancel_all(relay);
            ending = ENDING_CANCELED;
            left_us = relay_now_us(relay) + INT64_C(1000) * HF_RELAY_CANCEL_MS;
        } else if (ending == ENDING_CANCELED && s && relay_now_us(relay) >= left_us) {
            ending = ENDING_LEFT;
            break;
        }
        wait_on(&relay->idle_cond, &relay->mutex, SLICE_MS * 1000);
    }
    pthread_mutex_unlock(&relay->mutex);
    return ending;
}

/* What was delivered is noted, as long as that can be done. */
static void wait_for_notes(struct hf_relay *relay, uint32_t ms)
{
    int64_t end_us = relay_now_us(relay) + (int64_t)ms * 1000;

    pthread_mutex_lock(&relay->mutex);
    hf__relay_signal(relay);
    while ((relay->noter.first || relay->noter.running) && relay_now_us(relay) < end_us)
        wait_on(&relay->idle_cond, &relay->mutex, SLICE_MS * 1000);
    pthread_mutex_unlock(&relay->mutex);
}

static enum ending stop_threads(struct hf_scope *s, struct hf_relay *relay, bool at_once)
{
    enum ending ending;

    pthread_mutex_lock(&relay->mutex);
    relay->stopping = true;
    pthread_cond_broadcast(&relay->work_cond);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
    ending = wait_for_end(s, relay, at_once);
    wait_for_notes(relay,
                   s && ending == ENDING_BY_ITSELF && hf_scope_left_ms(s, UINT32_MAX) > NOTE_TAIL_MS
                       ? hf_scope_left_ms(s, relay->o.lease_ms)
                       : NOTE_TAIL_MS);
    threads_join(relay, ending == ENDING_LEFT);
    return ending;
}

/* Without threads nothing is under way; what was delivered may not be noted yet. */
static void note_remaining(struct hf_relay *relay)
{
    for (int i = 0; i < STEP_TASKS_MAX; i++) {
        int64_t now_us = relay_now_us(relay), next_us;
        struct task task;

        pthread_mutex_lock(&relay->mutex);
        relay->stopping = true;
        task = hf__relay_next(relay, now_us, &next_us);
        pthread_mutex_unlock(&relay->mutex);
        if (task.kind == TASK_NONE)
            return;
        hf__relay_do(&relay->workers[0], &task);
    }
}

static enum ending relay_end(struct hf_scope *s, struct hf_relay *relay, bool at_once,
                             enum hf_status *left)
{
    enum ending ending = ENDING_BY_ITSELF;

    *left = HF_OK;
    if (relay->started)
        ending = stop_threads(s, relay, at_once);
    else if (relay->workers && relay->workers_len && relay->workers[0].work)
        note_remaining(relay);
    if (relay->heartbeat.scope && !relay->o.dry_run && !relay->o.competing)
        *left = hf__member_leave(relay, LEAVE_MS);
    if (ending == ENDING_LEFT)
        return ending;
    relay->started = false;
    pthread_mutex_lock(&relay->mutex);
    relay->stopping = false;
    pthread_mutex_unlock(&relay->mutex);
    return ending;
}

/* Is this a thread of the relay, in its sink or in a callback? Then it would
 * wait for itself. */
static bool is_inside(struct hf_relay *relay)
{
    bool inside;

    pthread_mutex_lock(&relay->mutex);
    inside = (relay->heartbeat.inside && pthread_equal(relay->heartbeat.thread, pthread_self())) ||
             (relay->watch.inside && pthread_equal(relay->watch.thread, pthread_self()));
    for (size_t i = 0; i < relay->workers_len; i++)
        inside = inside ||
                 (relay->workers[i].runs && pthread_equal(relay->workers[i].self, pthread_self()));
    pthread_mutex_unlock(&relay->mutex);
    return inside;
}

void hf__relay_end(struct hf_relay *relay)
{
    enum hf_status left;

    assert(!is_inside(relay) && "a relay is closed by its sink, or by a function it calls");
    (void)relay_end(NULL, relay, true, &left);
}

enum hf_status hf_relay_stop(struct hf_scope *s, struct hf_relay *relay)
{
    enum hf_status left;
    enum ending ending;

    call_begins(s);
    if (is_inside(relay))
        return hf_scope_fail(
            s, HF_INVALID,
            "hf_relay_stop() was called by the relay's sink, or by a function that "
            "the relay calls: it would wait for itself. Let another thread call "
            "it");
    ending = relay_end(s, relay, false, &left);
    if (ending == ENDING_LEFT)
        return hf_scope_fail(s, HF_TIMEOUT,
                             "the sink \"%s\" has not returned %d ms after it was canceled: its "
                             "events are left to others; stop the relay again, or close it, which "
                             "waits for the sink",
                             relay->ops->name ? relay->ops->name : "", HF_RELAY_CANCEL_MS);
    if (ending == ENDING_CANCELED)
        return hf_scope_fail(s, HF_TIMEOUT, "deliveries had to be canceled");
    if (left != HF_OK)
        return hf_scope_fail_because(s, left, hf_scope_error(relay->heartbeat.scope),
                                     "the buckets could not be released: %s",
                                     hf_scope_error_text(relay->heartbeat.scope));
    return HF_OK;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static uint32_t ms_until(int64_t now_us, int64_t at_us)
{
    int64_t ms;

    if (at_us <= now_us)
        return 0;
    ms = (at_us - now_us + 999) / 1000;
    return at_us == INT64_MAX || ms > INT32_MAX ? INT32_MAX : (uint32_t)ms;
}

/* One task, or what the heartbeat thread has to do. False: there is nothing, until *next_us. */
static bool task_step(struct hf_relay *relay, int64_t *beat_us, int64_t *next_us)
{
    int64_t now_us = relay_now_us(relay);
    struct task task;

    if (now_us >= *beat_us) {
        int64_t wait_us = heartbeat_run(relay);

        now_us = relay_now_us(relay);
        *beat_us = wait_us == INT64_MAX ? INT64_MAX : now_us + wait_us;
    }
    pthread_mutex_lock(&relay->mutex);
    task = hf__relay_next(relay, now_us, next_us);
    pthread_mutex_unlock(&relay->mutex);
    if (task.kind == TASK_NONE)
        return false;
    hf__relay_do(&relay->workers[0], &task);
    *beat_us = 0; /* a bucket that is to leave may be free of work now */
    return true;
}

static int64_t earlier_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum hf_status hf_relay_step(struct hf_scope *s, struct hf_relay *relay, uint32_t *wait_ms)
{
    int64_t beat_us = 0, next_us = 0, watch_us;
    int tasks = 0;

    call_begins(s);
    *wait_ms = 0;
    if (!relay->o.no_threads)
        return hf_scope_fail(s, HF_INVALID,
                             "hf_relay_step() is for relays that were opened with no_threads");
    watch_us = watch_step(relay);
    while (tasks++ < STEP_TASKS_MAX) {
        TRY(hf_scope_sleep_ms(s, 0));
        if (!task_step(relay, &beat_us, &next_us)) {
            *wait_ms =
                ms_until(relay_now_us(relay), earlier_of(earlier_of(beat_us, next_us), watch_us));
            break;
        }
    }
    return HF_OK;
}

/* ---- draining ------------------------------------------------------------------------------- */

static bool is_drained(struct hf_relay *relay)
{
    bool drained;

    pthread_mutex_lock(&relay->mutex);
    drained = is_quiet(relay) && !relay->noter.first && !relay->noter.running;
    if (relay->o.competing)
        drained = drained && relay->claims.empty && !relay->claims.woken;
    else
        drained = drained && (relay->members.complete || relay->o.dry_run);
    for (uint32_t i = 0; drained && !relay->o.competing && i < relay->outbox->buckets; i++)
        drained = relay->reader.buckets[i].state == BUCKET_OTHERS ||
                  hf__relay_read_is_dry(relay, &relay->reader.buckets[i]);
    pthread_mutex_unlock(&relay->mutex);
    return drained;
}

/* How far a drain has come, and since when it is there. */
struct progress {
    uint64_t moves;
    int64_t since_us;
};

/* (5) Did nothing move for stall_ms? */
static bool is_stalled(struct hf_relay *relay, struct progress *progress)
{
    int64_t now_us = relay_now_us(relay), most_ms = relay->o.stall_ms;
    uint64_t moves;

    if (!relay->o.stall_ms)
        return false;
    pthread_mutex_lock(&relay->mutex);
    moves = relay->metrics.delivered + relay->metrics.retried + relay->metrics.given_up +
            relay->reader.moved;
    if (relay->sender.running) /* a delivery may take its time, and so may its payload */
        most_ms += (int64_t)relay->o.timeout_ms * (relay->outbox->blobs ? 2 : 1);
    pthread_mutex_unlock(&relay->mutex);
    if (moves != progress->moves)
        *progress = (struct progress){.moves = moves, .since_us = now_us};
    return now_us - progress->since_us >= most_ms * 1000;
}

/* Go on draining? HF_TIMEOUT: there is no more time. */
static enum hf_status drain_may(struct hf_scope *s, struct hf_relay *relay,
                                struct progress *progress)
{
    TRY(hf_scope_sleep_ms(s, 0));
    return is_stalled(relay, progress) ? hf_scope_fail(s, HF_TIMEOUT, "%s", "") : HF_OK;
}

/* What a drain that has no more time waits for; in the scope. */
static struct hf_str waits_for(struct hf_scope *s, struct hf_relay *relay)
{
    struct hf_str text;

    pthread_mutex_lock(&relay->mutex);
    if (breaker_has_outage(&relay->sender))
        text = hf_scope_format(s, "the sink cannot be reached: %s", relay->sender.breaker.text);
    else if (relay->members.yields)
        text = HF_STR("another relay delivers another part of the events");
    else if (relay->all_paused)
        text = HF_STR("all relays of this outbox are paused (hf_outbox_pause())");
    else if (relay->unasked)
        text = HF_STR("whether all relays of this outbox are to pause cannot be read");
    else if (relay->paused)
        text = HF_STR("the relay is paused");
    else if (relay->metrics.stuck)
        text = HF_STR("a delivery has not returned");
    else if (relay->sender.payloads.failures)
        text = HF_STR("the blob store cannot be reached");
    else if (!relay->o.competing && !relay->o.dry_run && !relay->members.complete)
        text = HF_STR("other relays have its buckets, or the database does not answer");
    else
        text = HF_STR("the deadline has passed");
    pthread_mutex_unlock(&relay->mutex);
    return text;
}

static enum hf_status not_drained(struct hf_scope *s, enum hf_status status, struct hf_str why)
{
    if (status == HF_TIMEOUT)
        return hf_scope_fail(s, status, "the outbox is not drained: %.*s", HF_FMT(why));
    if (status == HF_CANCELED)
        return hf_scope_fail(s, status, "the outbox is not drained: it was canceled");
    return status;
}

static enum hf_status drain_by_steps(struct hf_scope *s, struct hf_relay *relay)
{
    struct progress progress = {.since_us = relay_now_us(relay)};
    enum hf_status status = HF_OK;

    while (status == HF_OK && !is_drained(relay)) {
        uint32_t wait_ms = 0;

        status = drain_may(s, relay, &progress);
        if (status == HF_OK)
            status = hf_relay_step(s, relay, &wait_ms);
        if (status == HF_OK && wait_ms && !is_drained(relay))
            status = hf_scope_sleep_ms(s, wait_ms < SLICE_MS ? wait_ms : SLICE_MS);
    }
    return status == HF_OK ? HF_OK : not_drained(s, status, waits_for(s, relay));
}

static enum hf_status drain_threads(struct hf_scope *s, struct hf_relay *relay)
{
    struct progress progress = {.since_us = relay_now_us(relay)};
    enum hf_status status, left;
    struct hf_str why;

    TRY(hf_relay_start(s, relay));
    while ((status = drain_may(s, relay, &progress)) == HF_OK && !is_drained(relay)) {
        pthread_mutex_lock(&relay->mutex);
        wait_on(&relay->idle_cond, &relay->mutex, SLICE_MS * 1000);
        pthread_mutex_unlock(&relay->mutex);
    }
    if (status == HF_OK)
        return hf_relay_stop(s, relay);
    why = waits_for(s, relay); /* before all that is forgotten */
    (void)relay_end(s, relay, true, &left);
    return not_drained(s, status, why);
}

enum hf_status hf_relay_drain(struct hf_scope *s, struct hf_relay *relay, uint64_t *delivered)
{
    uint64_t before = relay->metrics.delivered;
    struct hf_relay_metrics metrics;
    enum hf_status status;

    call_begins(s);
    if (delivered)
        *delivered = 0;
    pthread_mutex_lock(&relay->mutex);
    relay->claims.empty = false;
    pthread_mutex_unlock(&relay->mutex);
    status = relay->o.no_threads ? drain_by_steps(s, relay) : drain_threads(s, relay);
    hf_relay_metrics(relay, &metrics);
    if (delivered)
        *delivered = metrics.delivered - before;
    return status;
}
