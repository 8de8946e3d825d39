/*
 * test/events/flow_kit.h: flows that write down what they are called for.
 *
 * A stage has a store, an outbox, a table for what apply writes, and parts: each is a flow of the
 * domain "d" whose functions note their letter and the type of the event in the log, and do what
 * the part says. Letters: v validate, p pre_apply, a apply, c cancel_apply, q consequents,
 * e side_effect, r compensate. What the runtime tells goes to another log.
 */
#ifndef HF_TEST_FLOW_KIT_H
#define HF_TEST_FLOW_KIT_H

#include <holdfast/engine.h>
#include <holdfast/flow.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "events_kit.h"

enum { PARTS_MAX = 12, EMITS_MAX = 4, LOG_MAX = 4000, OBSERVERS_MAX = 6 };

struct stage;

struct part {
    const char *type;
    const char *follows[EMITS_MAX];  /* types of its consequents */
    const char *leads_to[EMITS_MAX]; /* types that its side effect emits */
    const char *takes_back;          /* type that compensates it; NULL: none can */
    const char *own_stream;          /* id of the stream of its events when others emit them */
    enum hf_status refuses;          /* validate fails with it */
    enum hf_status fails;            /* apply fails with it */
    int effect_fails;                /* so many times */
    bool has_effect;
    bool writes; /* apply puts an item with the event's id and payload */
    bool quiet;  /* no apply, no cancel_apply */
    uint32_t retries;
    const struct hf_aggregate *aggregate;
    hf_flow_fn *validate; /* instead of the usual one */
    hf_flow_fn *apply;
    hf_flow_fn *effect;
    hf_flow_replace_fn *pre_apply;
    hf_upcast_fn *upcast;
    hf_flow_key_fn *shard_key;
    uint32_t schema;
    struct stage *stage;
    void *user;
};

struct stage {
    struct kit *k;
    struct hf_events *store;
    struct hf_outbox *outbox;
    struct hf_flows *flows;
    struct hf_str items; /* the table that apply writes to; absent: none */
    struct part parts[PARTS_MAX];
    size_t parts_len;
    struct hf_flow_observer observers[OBSERVERS_MAX];
    size_t observers_len;
    struct hf_flows_options o;
    struct hf_relay_options relay;
    pthread_mutex_t mutex; /* guards the logs */
    char log[LOG_MAX], told[LOG_MAX];
};

static inline void stage_note(struct stage *st, char *log, const char *what, struct hf_str type)
{
    size_t len;

    pthread_mutex_lock(&st->mutex);
    len = strlen(log);
    (void)snprintf(log + len, LOG_MAX - len, "%s%s:%.*s", len ? " " : "", what, HF_FMT(type));
    pthread_mutex_unlock(&st->mutex);
}

/* What was noted since this was asked last. */
#define CHECK_LOG(expected, st) stage_check((st), (st)->log, (expected), __FILE__, __LINE__)
#define CHECK_TOLD(expected, st) stage_check((st), (st)->told, (expected), __FILE__, __LINE__)

static inline void stage_check(struct stage *st, char *log, const char *expected, const char *file,
                               int line)
{
    char copy[LOG_MAX];

    pthread_mutex_lock(&st->mutex);
    memcpy(copy, log, LOG_MAX);
    log[0] = 0;
    pthread_mutex_unlock(&st->mutex);
    test_check_str(hf_str_from(expected), hf_str_from(copy), "the log", file, line);
}

/* ---- functions of the parts ----------------------------------------------------------------- */

static inline enum hf_status part_validate(struct hf_scope *s, struct hf_flow_call *call,
                                           const struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    stage_note(part->stage, part->stage->log, "v", event->type);
    if (part->validate)
        return part->validate(s, call, event, part);
    return part->refuses ? hf_scope_fail(s, part->refuses, "%.*s is refused", HF_FMT(event->type))
                         : HF_OK;
}

static inline enum hf_status part_pre_apply(struct hf_scope *s, struct hf_flow_call *call,
                                            struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    stage_note(part->stage, part->stage->log, "p", event->type);
    return part->pre_apply(s, call, event, part);
}

static inline enum hf_status part_write(struct hf_scope *s, struct hf_flow_call *call,
                                        struct stage *st, const struct hf_stored_event *event)
{
    struct hf_str payload = event->payload.len ? payload_of(event) : HF_STR("");
    struct hf_put_item put = {.table = st->items,
                              .item = HF_ITEM(s, HF_S("id", event->id), HF_S("payload", payload))};

    return hf_flow_write(s, call, &(struct hf_transact_write){.put = &put});
}

static inline enum hf_status part_apply(struct hf_scope *s, struct hf_flow_call *call,
                                        const struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    stage_note(part->stage, part->stage->log, "a", event->type);
    if (part->apply)
        return part->apply(s, call, event, part);
    if (part->fails)
        return part->fails; /* without a word */
    return part->writes ? part_write(s, call, part->stage, event) : HF_OK;
}

static inline enum hf_status part_cancel(struct hf_scope *s, struct hf_flow_call *call,
                                         const struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    (void)call;
    stage_note(part->stage, part->stage->log, "c", event->type);
    return hf_scope_fail(s, HF_DENIED, "nobody listens to this");
}

static inline enum hf_status part_emit(struct hf_scope *s, struct hf_flow_call *call,
                                       struct part *part, const char *const *types)
{
    for (size_t i = 0; i < EMITS_MAX && types[i]; i++) {
        struct hf_flow_event event = {.stream = {HF_STR("d"), hf_str_of(NULL, 0)},
                                      .event = {.type = hf_str_from(types[i])}};
        enum hf_status status;

        for (size_t k = 0; k < part->stage->parts_len; k++)
            if (strcmp(part->stage->parts[k].type, types[i]) == 0 &&
                part->stage->parts[k].own_stream)
                event.stream.id = hf_str_from(part->stage->parts[k].own_stream);
        status = hf_flow_emit(s, call, &event);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

static inline enum hf_status part_consequents(struct hf_scope *s, struct hf_flow_call *call,
                                              const struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    stage_note(part->stage, part->stage->log, "q", event->type);
    return part_emit(s, call, part, part->follows);
}

static inline enum hf_status part_effect(struct hf_scope *s, struct hf_flow_call *call,
                                         const struct hf_stored_event *event, void *user)
{
    struct part *part = user;

    stage_note(part->stage, part->stage->log, "e", event->type);
    if (part->effect)
        return part->effect(s, call, event, part);
    if (part->effect_fails > 0) {
        part->effect_fails--;
        return hf_scope_fail(s, HF_IO, "attempt %u failed", hf_flow_attempt(call));
    }
    return part_emit(s, call, part, part->leads_to);
}

static inline enum hf_status part_compensate(struct hf_scope *s, struct hf_flow_call *call,
                                             const struct hf_stored_event *event, void *user)
{
    struct part *part = user;
    struct hf_flow_event back = {
        .event = {.type = hf_str_from(part->takes_back), .payload = event->payload}};

    stage_note(part->stage, part->stage->log, "r", event->type);
    return part->takes_back[0] ? hf_flow_emit(s, call, &back) : HF_OK;
}

/* ---- the stage ------------------------------------------------------------------------------ */

static inline void stage_told(const struct hf_flow_output *output, void *user)
{
    static const char *const names[] = {"",         "success",       "invalid",        "canceled",
                                        "reverted", "revert-failed", "done",           "retry",
                                        "failed",   "observed",      "observer-failed"};
    struct stage *st = user;
    bool fails =
        output->outcome == HF_FLOW_INVALID || output->outcome == HF_FLOW_CANCELED ||
        output->outcome == HF_FLOW_REVERT_FAILED || output->outcome == HF_FLOW_EFFECT_RETRY ||
        output->outcome == HF_FLOW_EFFECT_FAILED || output->outcome == HF_FLOW_OBSERVER_FAILED;

    CHECK(fails == (output->error != NULL));
    CHECK(!fails || (output->error->status != HF_OK && output->error->message.len > 0));
    stage_note(st, st->told, names[output->outcome], output->event->type);
}

static inline struct hf_flow stage_flow(struct part *part)
{
    bool emits = part->follows[0] != NULL;

    return (struct hf_flow){.domain = HF_STR("d"),
                            .type = hf_str_from(part->type),
                            .schema = part->schema,
                            .upcast = part->upcast,
                            .aggregate = part->aggregate,
                            .validate = part_validate,
                            .pre_apply = part->pre_apply ? part_pre_apply : NULL,
                            .apply = part->quiet ? NULL : part_apply,
                            .cancel_apply = part->quiet ? NULL : part_cancel,
                            .consequents = emits ? part_consequents : NULL,
                            .side_effect = part->has_effect ? part_effect : NULL,
                            .effect_retries = part->retries,
                            .compensate = part->takes_back ? part_compensate : NULL,
                            .shard_key = part->shard_key,
                            .user = part};
}

/* An upcast and a shard_key get the part as their `user`, too. */
static inline enum hf_status stage_try(struct stage *st)
{
    struct hf_flow flows[PARTS_MAX];

    for (size_t i = 0; i < st->parts_len; i++) {
        st->parts[i].stage = st;
        flows[i] = stage_flow(&st->parts[i]);
    }
    st->o.size = sizeof(st->o);
    st->relay.size = sizeof(st->relay);
    st->o.relay = &st->relay;
    if (!st->o.on_output) {
        st->o.on_output = stage_told;
        st->o.user = st;
    }
    return hf_flows_open(st->k->scope, st->store, st->outbox, flows, st->parts_len, st->observers,
                         st->observers_len, &st->o, &st->flows);
}

static inline void stage_start(struct stage *st)
{
    CHECK_OK(stage_try(st));
}

/* A store, an outbox, no flows yet. Without threads: the test takes turns. */
static inline void stage_open(struct stage *st, struct kit *k)
{
    *st = (struct stage){.k = k, .store = open_store(k), .o = {.no_threads = true}};
    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->other, .buckets = 1),
                            &st->outbox));
    pthread_mutex_init(&st->mutex, NULL);
}

static inline struct part *stage_part(struct stage *st, struct part part)
{
    st->parts[st->parts_len] = part;
    return &st->parts[st->parts_len++];
}

/* A table for what apply writes. */
static inline void stage_items(struct stage *st)
{
    struct kit items = *st->k;

    st->items = hf_scope_format(st->k->scope, "%.*s.items", HF_FMT(st->k->table));
    st->items = hf_str_from(st->items.ptr);
    kit_make_table(&items, st->items);
}

static inline void stage_close(struct stage *st)
{
    hf_flows_close(st->flows);
    hf_outbox_close(st->outbox);
    hf_events_close(st->store);
    if (st->items.len)
        CHECK_OK(hf_delete_table(st->k->scope, st->k->db,
                                 &(struct hf_delete_table){.table = st->items}, NULL));
    pthread_mutex_destroy(&st->mutex);
}

static inline struct hf_flow_event event_of(const char *type, const char *id)
{
    return (struct hf_flow_event){.stream = {HF_STR("d"), hf_str_from(id)},
                                  .event = {.type = hf_str_from(type)}};
}

static inline enum hf_status submit(struct stage *st, const char *type, const char *id,
                                    struct hf_flow_result *result)
{
    struct hf_flow_event event = event_of(type, id);

    return hf_flows_submit(st->k->scope, st->flows, &event, NULL, result);
}

/* Side effects and all, until there is nothing more for so long by the virtual clock. */
static inline void stage_settle(struct stage *st, int64_t ms)
{
    for (int64_t spent = 0;;) {
        uint32_t wait_ms;

        CHECK_OK(hf_flows_step(st->k->scope, st->flows, &wait_ms));
        if (wait_ms == 0)
            continue;
        if (spent >= ms)
            return;
        test_advance_ms(st->k->t, 100);
        spent += 100;
    }
}

static inline uint64_t stage_version(struct stage *st, const char *id)
{
    struct hf_events_page page;

    CHECK_OK(hf_events_read(st->k->scope, st->store,
                            (struct hf_event_stream_key){HF_STR("d"), hf_str_from(id)}, NULL,
                            &page));
    return page.version;
}

/* The payload that apply has written for that event; absent: nothing was. */
static inline struct hf_str stage_item(struct stage *st, struct hf_str id)
{
    struct hf_get_item get = {.table = st->items,
                              .key = HF_ITEM(st->k->scope, HF_S("id", id)),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(st->k->scope, st->k->db, &get, &got));
    return hf_value_str(hf_item_get(got.item, HF_STR("payload")));
}

#endif
