/*
 * test/events/events_kit.h: what tests of the event store have in common.
 */
#ifndef HF_TEST_EVENTS_KIT_H
#define HF_TEST_EVENTS_KIT_H

#include <holdfast/events.h>

#include "kit.h"

#define PAYLOAD(text)                                                                              \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }
#define ORDER(number) ((struct hf_event_stream_key){HF_STR("order"), HF_STR(number)})

static inline struct hf_str payload_of(const struct hf_stored_event *event)
{
    return hf_str_of((const char *)event->payload.ptr, event->payload.len);
}

/* A store in the kit's table, with options of the test's own but for the table. */
static inline struct hf_events *open_store_with(struct kit *k, struct hf_events_options options)
{
    struct hf_events *store;

    options.size = sizeof(options);
    options.table = k->table;
    CHECK_OK(hf_events_open(k->scope, k->db, &options, &store));
    return store;
}

static inline struct hf_events *open_store(struct kit *k)
{
    return open_store_with(k, (struct hf_events_options){.size = 0});
}

/* Append `count` events of the types "t1", "t2", and so on, with "1", "2" as payload. */
static inline enum hf_status append_some(struct kit *k, struct hf_events *store,
                                         struct hf_event_stream_key stream, enum hf_expect expect,
                                         uint64_t version, size_t count, struct hf_appended *done)
{
    struct hf_new_event *events = hf_scope_alloc(k->scope, (count + 1) * sizeof(*events));
    struct hf_append append = {.stream = stream,
                               .expect = expect,
                               .version = version,
                               .events = events,
                               .events_len = count};

    for (size_t i = 0; i < count; i++) {
        struct hf_str number = hf_scope_format(k->scope, "%zu", i + 1);

        events[i] = (struct hf_new_event){.type = hf_scope_format(k->scope, "t%zu", i + 1),
                                          .payload = hf_bytes_of(number.ptr, number.len)};
    }
    return hf_events_append(k->scope, store, &append, 1, NULL, done);
}

#endif
