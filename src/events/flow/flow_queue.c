/*
 * events/flow/flow_queue.c: the queues of flows: which tree is built next.
 *
 * A queue is a list of tasks, and its first task runs. A task that was submitted waits and runs on
 * the thread of its caller, in the caller's scope; a task that was posted runs on the thread of the
 * queue, a pump (coord/pump.c) that is started for the first one. A shard key always leads to the
 * same queue: its hash is that of the system this one follows, h = 33 h + c from 5381 on, 32 bits.
 *
 *  (1) The tasks of a queue run one at a time, in the order in which they came.
 *  (2) A thread that runs a task does not enter a queue: it might wait for itself.
 *  (3) Calls of others that use the flows are counted, and nothing is freed while one is under way.
 */
#include "events/flow/flow.h"

#include "base/assert_held.h"
#include "base/wait.h"

uint32_t hf_flows_partition(const struct hf_flows *flows, struct hf_str key)
{
    uint32_t hash = 5381;

    for (size_t i = 0; i < key.len; i++)
        hash = hash * 33 + (uint8_t)key.ptr[i];
    return key.len ? hash % flows->o.partitions : 0;
}

struct hf_str hf__flow_key(const struct hf_flows *flows, const struct hf_flow_event *event)
{
    const struct hf_flow *flow = hf__flow_find(flows, event->stream.domain, event->event.type);

    return flow && flow->shard_key ? flow->shard_key(event, flow->user) : event->stream.id;
}

/* ---- calls under way ------------------------------------------------------------------------ */

void hf__flow_begin(struct hf_flows *flows)
{
    pthread_mutex_lock(&flows->mutex);
    flows->inside++;
    pthread_mutex_unlock(&flows->mutex);
}

void hf__flow_end(struct hf_flows *flows)
{
    pthread_mutex_lock(&flows->mutex);
    assert(flows->inside > 0);
    if (--flows->inside == 0)
        pthread_cond_broadcast(&flows->left);
    pthread_mutex_unlock(&flows->mutex); /* the flows may be gone by now */
}

void hf__flow_wait(struct hf_flows *flows)
{
    pthread_mutex_lock(&flows->mutex);
    while (flows->inside > 0)
        pthread_cond_wait(&flows->left, &flows->mutex);
    pthread_mutex_unlock(&flows->mutex);
}

/* What always holds while the mutex is not being used to change it. */
static void queue_check(struct flow_queue *queue)
{
    struct flow_task **at = &queue->first;

    ASSERT_HELD(&queue->flows->mutex);
    assert(!*queue->end);
    assert(!queue->running || queue->first);
    while (*at) {
        assert(!(*at)->scope != !(*at)->waits); /* posted, or submitted */
        at = &(*at)->next;
    }
    assert(at == queue->end);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Does this thread run a task? (2) */
static bool thread_is_running(struct hf_flows *flows)
{
    ASSERT_HELD(&flows->mutex);
    for (uint32_t i = 0; i < flows->o.partitions; i++)
        if (flows->queues[i].running && pthread_equal(flows->queues[i].runner, pthread_self()))
            return true;
    return false;
}

/* (1) */
static void queue_add(struct flow_queue *queue, struct flow_task *task)
{
    ASSERT_HELD(&queue->flows->mutex);
    task->next = NULL;
    *queue->end = task;
    queue->end = &task->next;
    if (DEV_CHECKS)
        queue_check(queue);
}

static bool is_posted_first(const struct flow_queue *queue)
{
    return queue->first && !queue->running && queue->first->scope;
}

/* If no task runs, let the first one. Without a thread, posted tasks are run by those who wait
 * behind them. */
static void queue_wake_first(struct flow_queue *queue)
{
    ASSERT_HELD(&queue->flows->mutex);
    if (!queue->first || queue->running)
        return;
    if (queue->first->waits)
        hf__scope_wake(queue->first->waits);
    else if (queue->pump)
        hf__pump_wake(queue->pump);
    else
        for (struct flow_task *task = queue->first; task; task = task->next)
            if (task->waits)
                hf__scope_wake(task->waits);
}

static void queue_remove(struct flow_queue *queue, struct flow_task *task)
{
    struct flow_task **at = &queue->first;

    ASSERT_HELD(&queue->flows->mutex);
    assert(!queue->running || task != queue->first); /* that one is being worked on */
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (!*at)
        queue->end = at;
    if (DEV_CHECKS)
        queue_check(queue);
    queue_wake_first(queue);
    if (!queue->first || !queue->pump)
        hf__waiters_notify(&queue->flows->emptied);
}

static void queue_set_running(struct flow_queue *queue)
{
    ASSERT_HELD(&queue->flows->mutex);
    assert(!queue->running && queue->first);
    queue->running = true;
    queue->runner = pthread_self();
}

/* Run the first task, which was posted. The mutex is held, but not meanwhile. */
static void queue_run_posted(struct hf_flows *flows, struct flow_queue *queue)
{
    struct flow_task *task = queue->first;
    struct hf_flow_result result;
    enum hf_status status;

    assert(task && task->scope); /* it was posted */
    queue_set_running(queue);
    pthread_mutex_unlock(&flows->mutex);
    status = hf__flow_take(task->scope, flows, queue, &task->event, NULL, &result);
    if (task->done)
        task->done(status == HF_OK ? &result : NULL,
                   status == HF_OK ? NULL : hf_scope_error(task->scope), task->user);
    hf__flow_leave(flows, queue);
    hf_scope_free(task->scope); /* the task is in it */
    pthread_mutex_lock(&flows->mutex);
}

/* Wait until something has changed in the queue. The mutex is held, but not meanwhile. */
static enum hf_status queue_wait(struct hf_scope *s, struct hf_flows *flows)
{
    uint32_t wakes = hf__scope_wakes(s);
    enum hf_status status;

    ASSERT_HELD(&flows->mutex);
    pthread_mutex_unlock(&flows->mutex);
    status = hf__scope_wait(s, wakes, INT64_MAX);
    pthread_mutex_lock(&flows->mutex);
    return status;
}

enum hf_status hf__flow_enter(struct hf_scope *s, struct hf_flows *flows, struct hf_str key,
                              bool inner, struct flow_task *task, struct flow_queue **out)
{
    struct flow_queue *queue = &flows->queues[hf_flows_partition(flows, key)];
    enum hf_status status = HF_OK;

    *out = queue;
    task->waits = s;
    pthread_mutex_lock(&flows->mutex);
    if (flows->stopping && !inner)
        status = hf_scope_fail(s, HF_CANCELED, "the flows are shut down");
    else if (thread_is_running(flows))
        status = hf_scope_fail(
            s, HF_INVALID,
            "a function of a flow, or an observer that is waited for, cannot submit events or "
            "revert trees");
    else
        queue_add(queue, task);
    while (status == HF_OK && queue->first != task) {
        if (flows->o.no_threads && is_posted_first(queue)) {
            queue_run_posted(flows, queue);
            continue;
        }
        status = queue_wait(s, flows);
        if (status != HF_OK)
            queue_remove(queue, task);
    }
    assert(status != HF_OK || queue->first == task);
    if (status == HF_OK)
        queue_set_running(queue);
    pthread_mutex_unlock(&flows->mutex);
    return status;
}

void hf__flow_leave(struct hf_flows *flows, struct flow_queue *queue)
{
    pthread_mutex_lock(&flows->mutex);
    assert(queue->running && queue->first);
    assert(pthread_equal(queue->runner, pthread_self()));
    queue->running = false;
    queue_remove(queue, queue->first);
    pthread_mutex_unlock(&flows->mutex);
}

/* ---- posting -------------------------------------------------------------------------------- */

/* Run the first task, if it was posted: a pump_step_fn. */
static int64_t queue_step(size_t worker, void *user)
{
    struct flow_queue *queue = user;
    bool more;

    (void)worker;
    pthread_mutex_lock(&queue->flows->mutex);
    if (is_posted_first(queue))
        queue_run_posted(queue->flows, queue);
    more = is_posted_first(queue);
    pthread_mutex_unlock(&queue->flows->mutex);
    return more ? 0 : INT64_MAX;
}

/* Let the queue have a thread, if it has none. */
static bool queue_start_thread(struct hf_scope *s, struct hf_flows *flows, struct flow_queue *queue)
{
    ASSERT_HELD(&flows->mutex);
    if (queue->pump || flows->o.no_threads)
        return true;
    if (hf__pump_open(s, &(struct pump_options){.workers = 1, .step = queue_step, .user = queue},
                      &queue->pump) == HF_OK &&
        hf__pump_start(s, queue->pump) == HF_OK)
        return true;
    hf__pump_close(queue->pump);
    queue->pump = NULL;
    return false;
}

static struct flow_task *task_new(struct hf_flows *flows, const struct hf_flow_event *event,
                                  hf_flow_posted_fn *done, void *user)
{
    struct hf_scope *own = hf_scope_new(&flows->env);
    struct flow_task *task = own ? hf_scope_alloc(own, sizeof(*task)) : NULL;
    struct hf_stored_event copy;

    if (!task) {
        hf_scope_free(own);
        return NULL;
    }
    copy = hf__event_of_new(&event->event, event->stream);
    copy = hf__flow_copy(own, &copy);
    *task = (struct flow_task){.scope = own,
                               .event = {.stream = copy.stream, .event = event->event},
                               .done = done,
                               .user = user};
    task->event.event.id = copy.id;
    task->event.event.type = copy.type;
    task->event.event.payload = copy.payload;
    task->event.event.content_type = copy.content_type;
    task->event.event.meta = copy.meta;
    task->event.event.causation = copy.causation;
    task->event.event.correlation = copy.correlation;
    task->event.event.compensates = copy.compensates;
    if (hf_scope_built(own) != HF_OK) {
        hf_scope_free(own);
        return NULL;
    }
    return task;
}

static enum hf_status event_post(struct hf_scope *s, struct hf_flows *flows,
                                 const struct hf_flow_event *event, hf_flow_posted_fn *done,
                                 void *user)
{
    struct flow_queue *queue =
        &flows->queues[hf_flows_partition(flows, hf__flow_key(flows, event))];
    struct flow_task *task;
    bool stopping, posted;

    if (!hf__flow_find(flows, event->stream.domain, event->event.type))
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no flow for %.*s/%.*s",
                             HF_FMT(event->stream.domain), HF_FMT(event->event.type));
    task = task_new(flows, event, done, user);
    if (!task)
        return hf_scope_fail(s, HF_NOMEM, "no memory to post an event");
    pthread_mutex_lock(&flows->mutex);
    stopping = flows->stopping;
    posted = !stopping && queue_start_thread(s, flows, queue);
    if (posted) {
        queue_add(queue, task);
        queue_wake_first(queue);
    }
    pthread_mutex_unlock(&flows->mutex);
    if (posted)
        return HF_OK;
    hf_scope_free(task->scope);
    return stopping ? hf_scope_fail(s, HF_CANCELED, "the flows are shut down")
                    : hf_scope_fail(s, HF_LIMIT, "cannot start a thread for a queue of flows");
}

enum hf_status hf_flows_post(struct hf_scope *s, struct hf_flows *flows,
                             const struct hf_flow_event *event, hf_flow_posted_fn *done, void *user)
{
    enum hf_status status;

    call_begins(s);
    hf__flow_begin(flows);
    status = event_post(s, flows, event, done, user);
    hf__flow_end(flows);
    return status;
}

bool hf__flow_run_posted(struct hf_flows *flows)
{
    bool any = false;

    pthread_mutex_lock(&flows->mutex);
    for (uint32_t i = 0; i < flows->o.partitions; i++)
        while (is_posted_first(&flows->queues[i])) {
            queue_run_posted(flows, &flows->queues[i]);
            any = true;
        }
    pthread_mutex_unlock(&flows->mutex);
    return any;
}

/* ---- coming to an end ----------------------------------------------------------------------- */

void hf__flow_stop(struct hf_flows *flows)
{
    pthread_mutex_lock(&flows->mutex);
    flows->stopping = true;
    pthread_mutex_unlock(&flows->mutex);
}

static bool queues_are_empty(struct hf_flows *flows)
{
    bool empty = true;

    pthread_mutex_lock(&flows->mutex);
    for (uint32_t i = 0; i < flows->o.partitions; i++)
        empty = empty && !flows->queues[i].first;
    pthread_mutex_unlock(&flows->mutex);
    return empty;
}

/* Without threads, what was posted is taken here. */
static bool queues_are_drained(void *user)
{
    struct hf_flows *flows = user;

    if (flows->o.no_threads)
        (void)hf__flow_run_posted(flows);
    return queues_are_empty(flows);
}

bool hf__flow_drain(struct hf_scope *s, struct hf_flows *flows)
{
    return hf__waiters_pause(s, &flows->emptied, queues_are_drained, flows, INT64_MAX) == HF_OK ||
           queues_are_empty(flows);
}

/* The first that was posted and is not being taken, out of its queue. */
static struct flow_task *posted_remove(struct hf_flows *flows)
{
    struct flow_task *task = NULL;

    pthread_mutex_lock(&flows->mutex);
    for (uint32_t i = 0; i < flows->o.partitions && !task; i++) {
        struct flow_queue *queue = &flows->queues[i];

        task = queue->first && queue->running ? queue->first->next : queue->first;
        while (task && !task->scope)
            task = task->next;
        if (task)
            queue_remove(queue, task);
    }
    pthread_mutex_unlock(&flows->mutex);
    return task;
}

void hf__flow_forget_posted(struct hf_flows *flows)
{
    struct flow_task *task;

    while ((task = posted_remove(flows))) {
        (void)hf_scope_fail(task->scope, HF_CANCELED,
                            "the flows were shut down before the event was processed");
        if (task->done)
            task->done(NULL, hf_scope_error(task->scope), task->user);
        hf_scope_free(task->scope);
    }
}

/* ---- opening and closing -------------------------------------------------------------------- */

enum hf_status hf__flow_queues_open(struct hf_scope *s, struct hf_flows *flows)
{
    size_t size = flows->o.partitions * sizeof(*flows->queues);

    flows->queues = hf_scope_alloc(flows->kept, size);
    if (!flows->queues)
        return hf_scope_fail(s, HF_NOMEM, "no memory for flows");
    memset(flows->queues, 0, size);
    for (uint32_t i = 0; i < flows->o.partitions; i++) {
        flows->queues[i].flows = flows;
        flows->queues[i].end = &flows->queues[i].first;
        flows->queues[i].spare = hf_scope_new(&flows->env);
    }
    for (uint32_t i = 0; i < flows->o.partitions; i++)
        if (!flows->queues[i].spare)
            return hf_scope_fail(s, HF_NOMEM, "no memory for flows");
    return HF_OK;
}

void hf__flow_queues_close(struct hf_flows *flows)
{
    if (!flows->queues)
        return;
    hf__flow_forget_posted(flows);
    for (uint32_t i = 0; i < flows->o.partitions; i++) {
        hf__pump_close(flows->queues[i].pump);
        assert(!flows->queues[i].first && !flows->queues[i].running);
        hf_scope_free(flows->queues[i].spare);
    }
}
