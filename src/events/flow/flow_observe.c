/*
 * events/flow/flow_observe.c: calling observers.
 *
 * Observers that are waited for are called on the thread that has stored the tree, one after the
 * other, by priority; the others by one thread, from a list, in the order in which it was filled.
 * Whatever an observer returns, what is stored is stored: a failure is reported, and that is all.
 *
 *  (1) An observer is called at most once for an event by a submit, and those that are waited for
 *      have been called when it returns.
 *  (2) A notice for the thread has memory of its own. Without memory, the observer is called at
 *      once.
 */
#include "events/flow/flow.h"

#include "base/assert_held.h"

static bool pattern_matches(struct hf_str wanted, struct hf_str text)
{
    if (wanted.len == 0)
        return true;
    if (wanted.ptr[wanted.len - 1] == '*')
        return text.len >= wanted.len - 1 &&
               (wanted.len == 1 || memcmp(wanted.ptr, text.ptr, wanted.len - 1) == 0);
    return hf_str_equal(wanted, text);
}

static bool observer_wants(const struct hf_flow_observer *observer,
                           const struct hf_stored_event *event)
{
    for (size_t i = 0; i < observer->filters_len; i++)
        if ((observer->filters[i].domain.len == 0 ||
             hf_str_equal(observer->filters[i].domain, event->stream.domain)) &&
            pattern_matches(observer->filters[i].type, event->type))
            return true;
    return observer->filters_len == 0;
}

static void observer_call(struct hf_flows *flows, struct hf_scope *own,
                          const struct hf_flow_observer *observer,
                          const struct hf_stored_event *event)
{
    enum hf_status status;

    hf_scope_reset(own);
    status =
        hf__flow_explain(own, observer->observe(own, event, observer->user), "an observer", event);
    if (status == HF_OK) {
        hf__flow_report(flows, HF_FLOW_OBSERVED, event, NULL, 0, observer->name);
        return;
    }
    if (observer->on_error)
        observer->on_error(event, hf_scope_error(own), observer->user);
    if (flows->o.on_output || !observer->on_error)
        hf__flow_report(flows, HF_FLOW_OBSERVER_FAILED, event, hf_scope_error(own), 0,
                        observer->name);
}

static struct hf_str text_copy(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

static struct hf_bytes bytes_copy(struct hf_scope *s, struct hf_bytes bytes)
{
    struct hf_str text = text_copy(s, hf_str_of((const char *)bytes.ptr, bytes.len));

    return hf_bytes_of(text.ptr, text.len);
}

struct hf_stored_event hf__flow_copy(struct hf_scope *s, const struct hf_stored_event *event)
{
    struct hf_stored_event copy = *event;

    copy.id = text_copy(s, event->id);
    copy.position = text_copy(s, event->position);
    copy.stream.domain = text_copy(s, event->stream.domain);
    copy.stream.id = text_copy(s, event->stream.id);
    copy.type = text_copy(s, event->type);
    copy.payload = bytes_copy(s, event->payload);
    copy.content_type = text_copy(s, event->content_type);
    if (event->meta.ptr)
        copy.meta = hf_item_copy(s, event->meta);
    copy.causation = text_copy(s, event->causation);
    copy.correlation = text_copy(s, event->correlation);
    copy.compensates = text_copy(s, event->compensates);
    copy.hash = bytes_copy(s, event->hash);
    copy.blob = text_copy(s, event->blob);
    return copy;
}

/* For the thread. False: there is no memory. (2) */
static bool notice_add(struct hf_flows *flows, const struct hf_flow_observer *observer,
                       const struct hf_stored_event *event)
{
    struct hf_scope *own = hf_scope_new(&flows->env), *calls = hf_scope_new(&flows->env);
    struct flow_notice *notice = own ? hf_scope_alloc(own, sizeof(*notice)) : NULL;

    if (notice)
        *notice = (struct flow_notice){.scope = own,
                                       .calls = calls,
                                       .observer = observer,
                                       .event = hf__flow_copy(own, event)};
    if (!notice || !calls || hf_scope_built(own) != HF_OK) {
        hf_scope_free(calls);
        hf_scope_free(own);
        return false;
    }
    pthread_mutex_lock(&flows->mutex);
    assert(!*flows->notices_end);
    *flows->notices_end = notice;
    flows->notices_end = &notice->next;
    if (flows->notifier)
        hf__pump_wake(flows->notifier);
    pthread_mutex_unlock(&flows->mutex);
    return true;
}

uint64_t hf__flow_observe(struct hf_flows *flows, struct hf_scope *spare,
                          const struct hf_stored_event *event, bool wait)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < flows->observers_len; i++) {
        const struct hf_flow_observer *observer = &flows->observers[i];

        if (!observer_wants(observer, event))
            continue;
        calls++;
        if (wait || !observer->fire_and_forget || !notice_add(flows, observer, event))
            observer_call(flows, spare, observer, event);
    }
    return calls;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Call the observer of the first notice. The mutex is held, but not meanwhile. */
static void notice_deliver(struct hf_flows *flows)
{
    struct flow_notice *notice = flows->notices;

    ASSERT_HELD(&flows->mutex);
    assert(notice);
    flows->notices = notice->next;
    if (!flows->notices)
        flows->notices_end = &flows->notices;
    flows->notifying = true;
    pthread_mutex_unlock(&flows->mutex);
    observer_call(flows, notice->calls, notice->observer, &notice->event);
    hf_scope_free(notice->calls);
    hf_scope_free(notice->scope); /* the notice is in it */
    pthread_mutex_lock(&flows->mutex);
    flows->notifying = false;
    if (!flows->notices)
        hf__waiters_notify(&flows->emptied);
}

/* Deliver one notice: a pump_step_fn. */
static int64_t observer_step(size_t worker, void *user)
{
    struct hf_flows *flows = user;
    bool more;

    (void)worker;
    pthread_mutex_lock(&flows->mutex);
    if (flows->notices)
        notice_deliver(flows);
    more = flows->notices != NULL;
    pthread_mutex_unlock(&flows->mutex);
    return more ? 0 : INT64_MAX;
}

bool hf__flow_run_notices(struct hf_flows *flows)
{
    bool any = false;

    pthread_mutex_lock(&flows->mutex);
    for (; flows->notices; any = true)
        notice_deliver(flows);
    pthread_mutex_unlock(&flows->mutex);
    return any;
}

static bool notices_are_delivered(void *user)
{
    struct hf_flows *flows = user;
    bool delivered;

    pthread_mutex_lock(&flows->mutex);
    delivered = !flows->notices && !flows->notifying;
    pthread_mutex_unlock(&flows->mutex);
    return delivered;
}

bool hf__flow_drain_notices(struct hf_scope *s, struct hf_flows *flows)
{
    if (flows->o.no_threads)
        (void)hf__flow_run_notices(flows);
    return hf__waiters_pause(s, &flows->emptied, notices_are_delivered, flows, INT64_MAX) ==
               HF_OK ||
           notices_are_delivered(flows);
}

enum hf_status hf__flow_observers_open(struct hf_scope *s, struct hf_flows *flows)
{
    bool needed = false;

    for (size_t i = 0; i < flows->observers_len; i++)
        needed = needed || flows->observers[i].fire_and_forget;
    if (!needed || flows->o.no_threads)
        return HF_OK;
    TRY(hf__pump_open(s, &(struct pump_options){.workers = 1, .step = observer_step, .user = flows},
                      &flows->notifier));
    return hf__pump_start(s, flows->notifier) == HF_OK
               ? HF_OK
               : hf_scope_fail(s, HF_LIMIT, "cannot start a thread for observers");
}

void hf__flow_observers_close(struct hf_flows *flows)
{
    hf__pump_close(flows->notifier);
    flows->notifier = NULL;
    (void)hf__flow_run_notices(flows);
    assert(!flows->notices && flows->notices_end == &flows->notices);
}
