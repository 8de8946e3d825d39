/*
 * events/flow/flow_replay.c: stored events once more, through apply and observers.
 *
 * A checkpoint is an item of the store's table:
 *
 *     pk        f.NAME
 *     sk        f
 *     position  of the last event whose writes were done; "0": none was
 *     by        the replay that has it
 *
 * A replay makes it its own first, and then writes it together with what each apply writes, in one
 * transaction; events that write nothing move it at the end of their page. To start over it is set
 * to "0" before anything is emptied, so a replay that dies there starts over as well.
 *
 *  (1) What an apply writes is written together with the checkpoint, which then is behind it: no
 *      event's writes are done twice, and none is passed over.
 *  (2) A checkpoint only grows, and only for the replay that has it: of two the later one goes on,
 *      and the other one learns of it at its next write, which does nothing.
 *  (3) Nothing is refused by a replay: validate and pre_apply are not called.
 */
#include "events/flow/flow.h"

enum { STATES = 64, EVOLVED_MAX = 10000, CLAIMS = 10 };

#define AT_START HF_STR("0")

/* The state of a stream at the event that is replayed. */
struct replay_state {
    struct hf_scope *scope; /* NULL: the place is free */
    struct flow_used used;
    uint32_t evolved;
    uint64_t last; /* when it was used */
};

struct replay {
    struct hf_flows *flows;
    struct hf_replay_options o;
    struct hf_scope *page;  /* of one event's functions */
    struct hf_scope *spare; /* of observers */
    struct pattern_id me;
    struct hf_str key;                  /* f.NAME; absent: no checkpoint */
    char position[HF_POSITION_LEN + 1]; /* of the last event that was done */
    bool moved;                         /* and the checkpoint does not say so yet */
    bool lost;                          /* another replay has the checkpoint */
    struct replay_state states[STATES];
    uint64_t clock;
    struct hf_replayed done;
};

static struct hf_str position_of(const struct replay *r)
{
    return hf_str_from(r->position);
}

/* ---- the checkpoint ------------------------------------------------------------------------- */

static struct hf_item checkpoint_key(struct hf_scope *s, const struct replay *r)
{
    return HF_ITEM(s, HF_S("pk", r->key), HF_S("sk", HF_STR("f")));
}

/* The write that makes it ours, at that place, if it still is as it was seen. */
static struct hf_put_item claim_request(struct hf_scope *s, const struct replay *r,
                                        struct hf_item seen, struct hf_str position)
{
    struct hf_value by = hf_item_get(seen, HF_STR("by"));
    struct hf_put_item put = {.table = r->flows->store->table,
                              .item =
                                  HF_ITEM(s, HF_S("pk", r->key), HF_S("sk", HF_STR("f")),
                                          HF_S("position", position), HF_S("by", id_str(&r->me))),
                              .condition = HF_STR("attribute_not_exists(#b)"),
                              .names = HF_ITEM(s, HF_S("#b", HF_STR("by")))};

    if (!seen.ptr)
        return put;
    put.condition = HF_STR("#b = :b AND #p = :p");
    put.names = HF_ITEM(s, HF_S("#b", HF_STR("by")), HF_S("#p", HF_STR("position")));
    put.values = HF_ITEM(s, HF_V(":b", by), HF_V(":p", hf_item_get(seen, HF_STR("position"))));
    return put;
}

static enum hf_status checkpoint_claim(struct hf_scope *s, struct replay *r,
                                       struct hf_str *position)
{
    for (int i = 0; i < CLAIMS; i++) {
        struct hf_item key = checkpoint_key(s, r), item, there;
        struct hf_put_item put;
        enum hf_status status;

        TRY(hf_scope_built(s));
        TRY(hf__pattern_read(s, r->flows->store->db, r->flows->store->table, key, &item));
        *position = hf_value_str(hf_item_get(item, HF_STR("position")));
        if (!item.ptr || r->o.restart)
            *position = AT_START;
        put = claim_request(s, r, item, *position);
        TRY(hf_scope_built(s));
        status = hf__pattern_write(s, r->flows->store->db, &(struct hf_transact_write){.put = &put},
                                   key, &there);
        if (status == HF_OK ||
            (status == HF_CONDITION &&
             hf_str_equal(hf_value_str(hf_item_get(there, HF_STR("by"))), id_str(&r->me))))
            return HF_OK;
        if (status != HF_CONDITION)
            return status;
    }
    return hf_scope_fail(
        s, HF_IN_USE,
        "checkpoint %.*s could not be claimed: other replays claim it at the same time",
        HF_FMT(r->o.checkpoint));
}

/* The write that moves it on. (2) */
static struct hf_put_item move_request(struct hf_scope *s, const struct replay *r,
                                       struct hf_str position)
{
    return (
        struct hf_put_item){.table = r->flows->store->table,
                            .item = HF_ITEM(s, HF_S("pk", r->key), HF_S("sk", HF_STR("f")),
                                            HF_S("position", position), HF_S("by", id_str(&r->me))),
                            .condition = HF_STR("#b = :b AND #p < :p"),
                            .names = HF_ITEM(s, HF_S("#b", HF_STR("by")),
                                             HF_S("#p", HF_STR("position"))),
                            .values = HF_ITEM(s, HF_S(":b", id_str(&r->me)), HF_S(":p", position))};
}

static enum hf_status checkpoint_lost(struct hf_scope *s, struct replay *r)
{
    r->lost = true;
    return hf_scope_fail(s, HF_LOST, "another replay has taken over checkpoint %.*s",
                         HF_FMT(r->o.checkpoint));
}

/* Let it say where we are. */
static enum hf_status checkpoint_save(struct hf_scope *s, struct replay *r)
{
    struct hf_put_item put;
    struct hf_item there;
    enum hf_status status;

    if (!r->key.len || !r->moved)
        return HF_OK;
    put = move_request(s, r, position_of(r));
    TRY(hf_scope_built(s));
    assert(is_position(position_of(r)));
    status = hf__pattern_write(s, r->flows->store->db, &(struct hf_transact_write){.put = &put},
                               checkpoint_key(s, r), &there);
    if (status == HF_CONDITION) {
        bool ours =
            hf_str_equal(hf_value_str(hf_item_get(there, HF_STR("by"))), id_str(&r->me)) &&
            hf_str_equal(hf_value_str(hf_item_get(there, HF_STR("position"))), position_of(r));

        if (!ours)
            return checkpoint_lost(s, r);
        status = hf_scope_ok(s);
    }
    if (status == HF_OK)
        r->moved = false;
    return status;
}

/* Was it the checkpoint that let the transaction fail? */
static bool is_checkpoint_refused(const struct hf_error *error)
{
    return error->status == HF_TX_CANCELED && error->reasons_len > 0 &&
           hf_str_equal(error->reasons[0].code, HF_STR("ConditionalCheckFailed"));
}

/* What the apply has to write, and the checkpoint behind it. (1) */
static enum hf_status event_write(struct hf_scope *s, struct replay *r,
                                  const struct flow_build *build, struct hf_str position)
{
    struct hf_put_item put;
    struct hf_tx *tx;
    enum hf_status status;

    TRY(hf_tx_new(s, r->flows->store->db, &tx));
    if (r->key.len) {
        put = move_request(s, r, position);
        TRY(hf_scope_built(s));
        TRY(hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put}));
    }
    for (size_t i = 0; i < build->with.len; i++)
        TRY(hf_tx_add(s, tx, &build->with.list[i]));
    status = hf_tx_commit(s, tx, NULL);
    return status != HF_OK && r->key.len && is_checkpoint_refused(hf_scope_error(s))
               ? checkpoint_lost(s, r)
               : status;
}

/* ---- states --------------------------------------------------------------------------------- */

static struct replay_state *state_find(struct replay *r, const struct hf_aggregate *aggregate,
                                       struct hf_str id)
{
    struct replay_state *oldest = &r->states[0];

    for (size_t i = 0; i < STATES; i++) {
        struct replay_state *at = &r->states[i];

        if (at->scope && at->used.aggregate == aggregate && hf_str_equal(at->used.id, id))
            return at;
        if (at->last < oldest->last)
            oldest = at;
    }
    oldest->used = (struct flow_used){0};
    return oldest;
}

/* The state with that event, from the one before it when we have that. */
static enum hf_status state_at(struct hf_scope *s, struct replay *r, const struct hf_flow *flow,
                               const struct hf_stored_event *event, const struct flow_used **out)
{
    struct replay_state *at = state_find(r, flow->aggregate, event->stream.id);
    enum hf_status status;

    at->last = ++r->clock;
    if (!at->scope)
        at->scope = hf_scope_new(&r->flows->env);
    if (!at->scope)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a state");
    *out = &at->used;
    if (at->used.aggregate && at->used.state.version + 1 == event->version &&
        ++at->evolved < EVOLVED_MAX) {
        status = hf__aggregate_evolve(at->scope, flow->aggregate, event, &at->used.state);
    } else {
        hf_scope_reset(at->scope);
        at->evolved = 0;
        at->used = (struct flow_used){.aggregate = flow->aggregate,
                                      .id = hf_scope_copy(at->scope, event->stream.id)};
        status = hf_scope_built(at->scope);
        if (status == HF_OK)
            status = hf__aggregate_load(at->scope, r->flows->store,
                                        &(struct aggregate_wanted){.aggregate = flow->aggregate,
                                                                   .id = at->used.id,
                                                                   .version = event->version,
                                                                   .upcast = hf__flow_upcast,
                                                                   .user = r->flows},
                                        &at->used.state);
    }
    assert(status != HF_OK || at->used.state.version == event->version);
    if (status != HF_OK) {
        at->used = (struct flow_used){0};
        return hf_scope_fail_because(s, status, hf_scope_error(at->scope),
                                     "the state of %.*s/%.*s at version %llu: %s",
                                     HF_FMT(event->stream.domain), HF_FMT(event->stream.id),
                                     (unsigned long long)event->version,
                                     hf_scope_error_text(at->scope));
    }
    return HF_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

static enum hf_status event_apply(struct hf_scope *s, struct replay *r, const struct hf_flow *flow,
                                  const struct hf_stored_event *event)
{
    struct flow_build build = {.flows = r->flows, .attempt = 1, .replay = true};
    struct hf_flow_call call = {
        .flows = r->flows, .build = &build, .phase = FLOW_APPLY, .flow = flow, .attempt = 1};

    assert(flow->apply && !r->lost);
    if (flow->aggregate)
        TRY(state_at(s, r, flow, event, &call.own));
    TRY(hf__flow_call(s, &call, flow->apply, "apply", event));
    return build.with.len ? event_write(s, r, &build, event->position) : HF_OK;
}

static void move_to(struct replay *r, struct hf_str position)
{
    if (position.len == HF_POSITION_LEN)
        memcpy(r->position, position.ptr, HF_POSITION_LEN);
    r->moved = true;
}

/* The caller (on_error) may say that a failure does not matter; then the event is done. */
static enum hf_status event_failed(struct hf_scope *s, struct replay *r, enum hf_status status,
                                   const struct hf_stored_event *event)
{
    struct hf_error error = *hf_scope_error(s);

    r->done.failed++;
    if (!r->o.on_error || r->lost)
        return status;
    status = r->o.on_error(s, event, &error, r->o.user);
    return hf__flow_explain(s, status, "the replay", event);
}

static enum hf_status replay_one(struct hf_scope *s, struct replay *r,
                                 const struct hf_stored_event *stored)
{
    struct hf_stored_event event = *stored;
    enum hf_status status = hf__flow_upcast(s, &event, r->flows);
    const struct hf_flow *flow = hf__flow_find(r->flows, event.stream.domain, event.type);

    r->done.events++;
    if (status == HF_OK && flow && flow->apply && !r->o.no_apply) {
        r->done.applied++;
        status = event_apply(s, r, flow, &event);
    }
    if (status != HF_OK)
        TRY(event_failed(s, r, status, &event));
    move_to(r, event.position);
    if (!r->o.no_observers)
        r->done.observed += hf__flow_observe(r->flows, r->spare, &event, true);
    return HF_OK;
}

/* A failure in the scope of an event as one of the caller's. */
static enum hf_status fail_from_event(struct hf_scope *s, const struct replay *r,
                                      enum hf_status status, const struct hf_stored_event *event)
{
    const struct hf_error *error = hf_scope_error(r->page);

    if (status == HF_OK)
        return HF_OK;
    (void)hf_scope_fail(s, status, "replay of event %.*s (%.*s/%.*s): %.*s", HF_FMT(event->id),
                        HF_FMT(event->stream.domain), HF_FMT(event->type), HF_FMT(error->message));
    return error->may_have_happened ? hf_scope_doubt(s) : status;
}

static enum hf_status replay_page(struct hf_scope *s, struct replay *r,
                                  const struct hf_stored_event *events, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);

        TRY(hf_scope_sleep_ms(s, 0)); /* canceled, or too late? */
        hf_scope_reset(r->page);
        if (left_ms != UINT32_MAX)
            hf_scope_timeout_ms(r->page, left_ms ? left_ms : 1);
        TRY(fail_from_event(s, r, replay_one(r->page, r, &events[i]), &events[i]));
    }
    return HF_OK;
}

static enum hf_status replay_all(struct hf_scope *s, struct replay *r,
                                 struct hf_events_reader *reader)
{
    const struct hf_stored_event *events;
    size_t len;

    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        enum hf_status status;

        TRY(hf_events_reader_next(s, reader, &events, &len));
        if (len == 0)
            return HF_OK;
        status = replay_page(s, r, events, len);
        if (status != HF_OK) { /* what was done is done */
            struct hf_error error = *hf_scope_error(s);

            if (!r->lost && hf_scope_sleep_ms(s, 0) == HF_OK)
                (void)!checkpoint_save(s, r);
            return hf_scope_fail(s, status, "%.*s", HF_FMT(error.message));
        }
        TRY(checkpoint_save(s, r));
        if (r->o.on_progress)
            TRY(r->o.on_progress(r->done.events, 0, r->o.user));
        hf_scope_rewind(s, mark);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static enum hf_status replay_begin(struct hf_scope *s, struct replay *r, struct hf_str *after)
{
    *after = r->o.after.len ? r->o.after : AT_START;
    if (r->o.checkpoint.len) {
        if (r->o.after.len)
            return hf_scope_fail(
                s, HF_INVALID,
                "a replay begins behind its checkpoint or behind a position (after), not both");
        if (r->o.checkpoint.len > HF_EVENTS_ID_MAX)
            return hf_scope_fail_limit(s, HF_INVALID,
                                       HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, r->o.checkpoint.len),
                                       "the name of a checkpoint is longer than %d bytes",
                                       HF_EVENTS_ID_MAX);
        r->key = hf__pattern_join(s, HF_STR("f."), r->o.checkpoint);
        TRY(hf_scope_built(s));
        TRY(checkpoint_claim(s, r, after));
    }
    if (hf_str_equal(*after, AT_START)) {
        *after = hf_str_of(NULL, 0);
        return r->o.reset ? r->o.reset(s, r->o.user) : HF_OK;
    }
    move_to(r, *after);
    r->moved = false;
    return HF_OK;
}

static enum hf_status replay_run(struct hf_scope *s, struct replay *r)
{
    struct hf_events_all_options all = {.size = sizeof(all),
                                        .until = r->o.until,
                                        .domain = r->o.domain,
                                        .limit = r->o.page ? r->o.page : HF_FLOW_PAGE};
    struct hf_events_reader *reader;
    enum hf_status status;

    TRY(replay_begin(s, r, &all.after));
    TRY(hf_events_reader_open(s, r->flows->store, &all, &reader));
    status = replay_all(s, r, reader);
    hf_events_reader_close(reader);
    return status;
}

static void replay_free(struct replay *r)
{
    struct hf_env env = r->flows->env;

    for (size_t i = 0; i < STATES; i++)
        hf_scope_free(r->states[i].scope);
    hf_scope_free(r->page);
    hf_scope_free(r->spare);
    hf__env_free(&env, r, sizeof(*r));
}

static enum hf_status replay_events(struct hf_scope *s, struct hf_flows *flows,
                                    const struct hf_replay_options *options,
                                    struct hf_replayed *replayed)
{
    struct replay *r = hf__env_zalloc(&flows->env, sizeof(*r));
    enum hf_status status;

    if (replayed)
        *replayed = (struct hf_replayed){0};
    if (!r)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a replay");
    r->flows = flows;
    OPTIONS_COPY(&r->o, options);
    r->page = hf_scope_new(hf_scope_env(s));
    r->spare = hf_scope_new(hf_scope_env(s));
    r->me = hf__pattern_id_make(hf_scope_env(s));
    if (hf_scope_tx(s))
        status = hf_scope_fail(s, HF_INVALID, "a replay cannot be part of a transaction");
    else
        status = r->page && r->spare ? replay_run(s, r)
                                     : hf_scope_fail(s, HF_NOMEM, "no memory for a replay");
    if (replayed) {
        *replayed = r->done;
        if (r->position[0])
            replayed->position = hf_scope_copy(s, position_of(r));
    }
    replay_free(r);
    return status;
}

enum hf_status hf_flows_replay(struct hf_scope *s, struct hf_flows *flows,
                               const struct hf_replay_options *options,
                               struct hf_replayed *replayed)
{
    enum hf_status status;

    hf__flow_begin(flows);
    status = replay_events(s, flows, options, replayed);
    hf__flow_end(flows);
    return status;
}
