/*
 * test/events/aggregate_kit.h: an account as an aggregate, for tests of aggregates.
 *
 * Events "put" and "taken" have a number as payload. The state also counts its events, to show
 * that none is missing or comes twice.
 */
#ifndef HF_TEST_AGGREGATE_KIT_H
#define HF_TEST_AGGREGATE_KIT_H

#include <holdfast/aggregate.h>

#include <stdlib.h>

#include "events_kit.h"

#define ACCOUNT(number) ((struct hf_event_stream_key){HF_STR("account"), HF_STR(number)})

struct account {
    int64_t cents;
    uint64_t events;
    struct hf_str last; /* type of the last event, copied */
};

static inline int64_t number_of(struct hf_bytes payload)
{
    int64_t number = 0;

    for (size_t i = 0; i < payload.len; i++)
        number = 10 * number + (payload.ptr[i] - '0');
    return number;
}

static inline struct hf_bytes number_as(struct hf_scope *s, int64_t number)
{
    struct hf_str text = hf_scope_format(s, "%lld", (long long)number);

    return hf_bytes_of(text.ptr, text.len);
}

static inline enum hf_status account_evolve(struct hf_scope *s, void *state,
                                            const struct hf_stored_event *event, void *user)
{
    struct account *account = state;

    (void)user;
    account->events++;
    account->last = hf_scope_copy(s, event->type);
    if (hf_str_equal(event->type, HF_STR("put")))
        account->cents += number_of(event->payload);
    else if (hf_str_equal(event->type, HF_STR("taken")))
        account->cents -= number_of(event->payload);
    else
        return hf_scope_fail(s, HF_INVALID, "no account knows %.*s", HF_FMT(event->type));
    return HF_OK;
}

static inline enum hf_status account_save(struct hf_scope *s, const void *state,
                                          struct hf_item *item, void *user)
{
    const struct account *account = state;

    (void)user;
    *item = HF_ITEM(s, HF_N("cents", account->cents), HF_N("events", account->events));
    return HF_OK;
}

static inline enum hf_status account_restore(struct hf_scope *s, struct hf_item item, void *state,
                                             void *user)
{
    struct account *account = state;
    int64_t events = 0;

    (void)s;
    (void)user;
    CHECK(hf_value_i64(hf_item_get(item, HF_STR("cents")), &account->cents));
    CHECK(hf_value_i64(hf_item_get(item, HF_STR("events")), &events));
    account->events = (uint64_t)events;
    return HF_OK;
}

/* An account with a snapshot for each so many events; 0: without. */
static inline struct hf_aggregate accounts(uint32_t snapshot_every)
{
    return (struct hf_aggregate){.domain = HF_STR("account"),
                                 .state_size = sizeof(struct account),
                                 .evolve = account_evolve,
                                 .save = snapshot_every ? account_save : NULL,
                                 .restore = snapshot_every ? account_restore : NULL,
                                 .snapshot_every = snapshot_every};
}

/* Puts so much in, in so many events; or takes so much, if it is there. */
struct transfer {
    int64_t cents;
    int events;
    int decided;                                /* how often */
    void (*meanwhile)(void *user, int decided); /* called while it is decided */
    void *user;
};

static inline enum hf_status transfer_put(struct hf_scope *s, const void *state,
                                          struct hf_decision *decision, void *user)
{
    struct transfer *transfer = user;

    (void)state;
    transfer->decided++;
    if (transfer->meanwhile)
        transfer->meanwhile(transfer->user, transfer->decided);
    for (int i = 0; i < transfer->events; i++) {
        enum hf_status status =
            hf_decision_emit(s, decision,
                             &(struct hf_new_event){.type = HF_STR("put"),
                                                    .payload = number_as(s, transfer->cents)});
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

static inline enum hf_status transfer_take(struct hf_scope *s, const void *state,
                                           struct hf_decision *decision, void *user)
{
    const struct account *account = state;
    struct transfer *transfer = user;

    transfer->decided++;
    if (transfer->meanwhile)
        transfer->meanwhile(transfer->user, transfer->decided);
    if (account->cents < transfer->cents)
        return hf_scope_fail(s, HF_DENIED, "there are %lld cents only", (long long)account->cents);
    return hf_decision_emit(s, decision,
                            &(struct hf_new_event){.type = HF_STR("taken"),
                                                   .payload = number_as(s, transfer->cents)});
}

static inline enum hf_status put(struct hf_scope *s, struct hf_events *store,
                                 const struct hf_aggregate *aggregate, const char *id,
                                 int64_t cents, int events, struct hf_handled *handled)
{
    struct transfer transfer = {.cents = cents, .events = events};

    return hf_aggregate_handle(s, store, aggregate, hf_str_from(id),
                               &(struct hf_command){.decide = transfer_put, .user = &transfer},
                               HF_OPTIONS(hf_handle_options, .join_tx = true), handled);
}

static inline enum hf_status take(struct hf_scope *s, struct hf_events *store,
                                  const struct hf_aggregate *aggregate, const char *id,
                                  int64_t cents, struct hf_handled *handled)
{
    struct transfer transfer = {.cents = cents};

    return hf_aggregate_handle(s, store, aggregate, hf_str_from(id),
                               &(struct hf_command){.decide = transfer_take, .user = &transfer},
                               HF_OPTIONS(hf_handle_options, .join_tx = true), handled);
}

#endif
