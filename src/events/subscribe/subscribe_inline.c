/*
 * events/subscribe/subscribe_inline.c: projections in the transaction of an append.
 *
 * The function of a projection is called with events as they will be, as far as that is known
 * before they are appended, and with a transaction that is never committed: what it has gathered
 * becomes part of the append's own.
 */
#include "events/store/events.h"

#include <holdfast/subscribe.h>

/* The version of the first event of an append; 0: only the append finds out. */
static uint64_t first_version(const struct hf_append *append)
{
    if (append->expect == HF_EXPECT_NONE)
        return 1;
    return append->expect == HF_EXPECT_VERSION ? append->version + 1 : 0;
}

static struct hf_stored_event as_stored(const struct hf_scope *s, const struct hf_append *append,
                                        size_t number)
{
    const struct hf_new_event *event = &append->events[number];
    const struct hf_env *env = hf_scope_env(s);
    uint64_t first = first_version(append);

    return (struct hf_stored_event){
        .id = event->id,
        .stream = append->stream,
        .version = first ? first + number : 0,
        .type = event->type,
        .payload = event->payload,
        .content_type = event->content_type.ptr ? event->content_type : HF_STR("application/json"),
        .schema = event->schema ? event->schema : 1,
        .time_us = event->time_us ? event->time_us : env->wall_us(env->user),
        .meta = event->meta,
        .causation = event->causation,
        .correlation = event->correlation.ptr ? event->correlation : event->id,
        .compensates = event->compensates,
    };
}

enum hf_status hf_project_inline(struct hf_scope *s, struct hf_events *store,
                                 hf_project_fn *project, void *user,
                                 const struct hf_append *appends, size_t len,
                                 struct hf_append_options *options)
{
    struct hf_tx *tx, *former;
    enum hf_status status = HF_OK;

    call_begins(s);
    TRY(hf_tx_new(s, store->db, &tx));
    for (size_t i = 0; i < options->with_len; i++)
        TRY(hf_tx_add(s, tx, &options->with[i]));
    former = hf_scope_set_tx(s, tx);
    for (size_t i = 0; i < len && status == HF_OK; i++)
        for (size_t j = 0; j < appends[i].events_len && status == HF_OK; j++) {
            struct hf_stored_event event = as_stored(s, &appends[i], j);

            status = project(s, tx, &event, user);
        }
    hf_scope_set_tx(s, former);
    if (status != HF_OK)
        return status;
    options->with = hf__tx_actions(tx);
    options->with_len = hf_tx_len(tx);
    return HF_OK;
}
