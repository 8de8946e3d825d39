/*
 * events/flow/flow_observe.c: telling observers.
 *
 * Those that are waited for are called by who has stored the tree, one after the other, by
 * priority; the others by one thread, from a list, in the order in which it was filled. Whatever an
 * observer returns, what is stored is stored: a failure is told, and that is all.
 *
 *  (1) An observer is called at most once for an event by a submit, and those that are waited for
 *      have been called when it returns.
 *  (2) What the thread is to tell has memory of its own. When there is none, it is told at once.
 */
#include "events/flow/flow.h"

static bool fits_text(struct hf_str wanted, struct hf_str text)
{
    if (wanted.len == 0)
        return true;
    if (wanted.ptr[wanted.len - 1] == '*')
        return text.len >= wanted.len - 1 &&
               (wanted.len == 1 || memcmp(wanted.ptr, text.ptr, wanted.len - 1) == 0);
    return hf_str_equal(wanted, text);
}

static bool fits(const struct hf_flow_observer *observer, const struct hf_stored_event *event)
{
    for (size_t i = 0; i < observer->filters_len; i++)
        if ((observer->filters[i].domain.len == 0 ||
             hf_str_equal(observer->filters[i].domain, event->stream.domain)) &&
            fits_text(observer->filters[i].type, event->type))
            return true;
    return observer->filters_len == 0;
}

static void call(struct hf_flows *flows, struct hf_scope *own,
                 const struct hf_flow_observer *observer, const struct hf_stored_event *event)
{
    enum hf_status status;

    hf_scope_reset(own);
    status =
        hf__flow_said(own, observer->observe(own, event, observer->user), "an observer", event);
    if (status == HF_OK) {
        hf__flow_tell(flows, HF_FLOW_OBSERVED, event, NULL, 0, observer->name);
        return;
    }
    if (observer->on_error)
        observer->on_error(event, hf_scope_error(own), observer->user);
    if (flows->o.on_output || !observer->on_error)
        hf__flow_tell(flows, HF_FLOW_OBSERVER_FAILED, event, hf_scope_error(own), 0,
                      observer->name);
}

static struct hf_str copied(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

static struct hf_bytes copied_bytes(struct hf_scope *s, struct hf_bytes bytes)
{
    struct hf_str text = copied(s, hf_str_of((const char *)bytes.ptr, bytes.len));

    return hf_bytes_of(text.ptr, text.len);
}

struct hf_stored_event hf__flow_copy(struct hf_scope *s, const struct hf_stored_event *event)
{
    struct hf_stored_event copy = *event;

    copy.id = copied(s, event->id);
    copy.position = copied(s, event->position);
    copy.stream.domain = copied(s, event->stream.domain);
    copy.stream.id = copied(s, event->stream.id);
    copy.type = copied(s, event->type);
    copy.payload = copied_bytes(s, event->payload);
    copy.content_type = copied(s, event->content_type);
    if (event->meta.ptr)
        copy.meta = hf_item_copy(s, event->meta);
    copy.causation = copied(s, event->causation);
    copy.correlation = copied(s, event->correlation);
    copy.compensates = copied(s, event->compensates);
    copy.hash = copied_bytes(s, event->hash);
    copy.blob = copied(s, event->blob);
    return copy;
}

/* For the thread. False: there is no memory. (2) */
static bool note(struct hf_flows *flows, const struct hf_flow_observer *observer,
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
    *flows->notices_end = notice;
    flows->notices_end = &notice->next;
    if (flows->teller)
        hf__pump_wake(flows->teller);
    pthread_mutex_unlock(&flows->mutex);
    return true;
}

uint64_t hf__flow_observe(struct hf_flows *flows, struct hf_scope *spare,
                          const struct hf_stored_event *event, bool wait)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < flows->observers_len; i++) {
        const struct hf_flow_observer *observer = &flows->observers[i];

        if (!fits(observer, event))
            continue;
        calls++;
        if (wait || !observer->fire_and_forget || !note(flows, observer, event))
            call(flows, spare, observer, event);
    }
    return calls;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Tell the first of the list. The mutex is held, but not meanwhile. */
static void tell_first(struct hf_flows *flows)
{
    struct flow_notice *notice = flows->notices;

    flows->notices = notice->next;
    if (!flows->notices)
        flows->notices_end = &flows->notices;
    flows->telling = true;
    pthread_mutex_unlock(&flows->mutex);
    call(flows, notice->calls, notice->observer, &notice->event);
    hf_scope_free(notice->calls);
    hf_scope_free(notice->scope); /* the notice is in it */
    pthread_mutex_lock(&flows->mutex);
    flows->telling = false;
    if (!flows->notices)
        hf__waiters_notify(&flows->emptied);
}

/* Tell one: a pump_step_fn. */
static int64_t tell_next(size_t worker, void *user)
{
    struct hf_flows *flows = user;
    bool more;

    (void)worker;
    pthread_mutex_lock(&flows->mutex);
    if (flows->notices)
        tell_first(flows);
    more = flows->notices != NULL;
    pthread_mutex_unlock(&flows->mutex);
    return more ? 0 : INT64_MAX;
}

bool hf__flow_run_notices(struct hf_flows *flows)
{
    bool any = false;

    pthread_mutex_lock(&flows->mutex);
    for (; flows->notices; any = true)
        tell_first(flows);
    pthread_mutex_unlock(&flows->mutex);
    return any;
}

static bool is_told(void *user)
{
    struct hf_flows *flows = user;
    bool told;

    pthread_mutex_lock(&flows->mutex);
    told = !flows->notices && !flows->telling;
    pthread_mutex_unlock(&flows->mutex);
    return told;
}

bool hf__flow_drain_notices(struct hf_scope *s, struct hf_flows *flows)
{
    if (flows->o.no_threads)
        (void)hf__flow_run_notices(flows);
    return hf__waiters_pause(s, &flows->emptied, is_told, flows, INT64_MAX) == HF_OK ||
           is_told(flows);
}

enum hf_status hf__flow_observers_open(struct hf_scope *s, struct hf_flows *flows)
{
    bool needed = false;

    for (size_t i = 0; i < flows->observers_len; i++)
        needed = needed || flows->observers[i].fire_and_forget;
    if (!needed || flows->o.no_threads)
        return HF_OK;
    TRY(hf__pump_open(s, &(struct pump_options){.workers = 1, .step = tell_next, .user = flows},
                      &flows->teller));
    return hf__pump_start(s, flows->teller) == HF_OK
               ? HF_OK
               : hf_scope_fail(s, HF_LIMIT, "the system has no thread for observers");
}

void hf__flow_observers_close(struct hf_flows *flows)
{
    hf__pump_close(flows->teller);
    flows->teller = NULL;
    (void)hf__flow_run_notices(flows);
}
