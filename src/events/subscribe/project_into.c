/*
 * events/subscribe/project_into.c: projections in the transaction of an append.
 *
 * The function of a projection is called with events as they will be, as far as that is known
 * before they are appended, and adds to the transaction that they are appended in.
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

struct projecting {
    struct hf_tx *tx;
    hf_project_fn *project;
    void *user;
    const struct hf_append *appends;
    size_t len;
};

/* An hf_tx_fn. */
static enum hf_status project_all(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    const struct projecting *p = user;

    if (tx != p->tx)
        return hf_scope_fail(s, HF_INVALID, "the transaction was committed already");
    for (size_t i = 0; i < p->len; i++)
        for (size_t j = 0; j < p->appends[i].events_len; j++) {
            struct hf_stored_event event = as_stored(s, &p->appends[i], j);

            TRY(p->project(s, tx, &event, p->user));
        }
    return HF_OK;
}

enum hf_status hf_project_into(struct hf_scope *s, struct hf_events *store, struct hf_tx *tx,
                               hf_project_fn *project, void *user, const struct hf_append *appends,
                               size_t len)
{
    struct projecting p = {
        .tx = tx, .project = project, .user = user, .appends = appends, .len = len};
    struct hf_tx *former;
    enum hf_status status;

    call_begins(s);
    if (hf_tx_db(tx) != store->db)
        return hf_scope_fail(s, HF_INVALID,
                             "the transaction is on another database than event store %.*s",
                             HF_FMT(store->table));
    former = hf_scope_set_tx(s, tx);
    status = hf_tx_run(s, store->db, project_all, &p, NULL); /* inside of `tx`: all or nothing */
    hf_scope_set_tx(s, former);
    return status;
}
