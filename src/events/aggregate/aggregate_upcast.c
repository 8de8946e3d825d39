/*
 * events/aggregate/aggregate_upcast.c: events of older forms, brought to the one of today when they
 * are read.
 *
 * What is stored stays as it is. A function brings an event of its type one schema further, or, by
 * setting the schema, several; then it is looked for the next one, by the type that the event has
 * then. An event with a schema that is as high as that of its type, or higher (a newer program has
 * written it), is left alone.
 *
 *  (1) The schema of an event never gets lower by this, and each step raises it or changes the
 *      type; a circle of types is stopped.
 */
#include "events/aggregate/aggregate.h"

static const struct hf_upcast *upcast_find(const struct hf_upcast *upcasts, size_t len,
                                           const struct hf_stored_event *event)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(upcasts[i].type, event->type))
            return &upcasts[i];
    return NULL;
}

enum hf_status hf_event_upcast(struct hf_scope *s, const struct hf_upcast *upcasts, size_t len,
                               struct hf_stored_event *event)
{
    const struct hf_upcast *upcast = upcast_find(upcasts, len, event);

    call_begins(s);
    for (int steps = 0; upcast && upcast->upcast && event->schema < upcast->schema; steps++) {
        uint32_t from = event->schema;

        if (steps == HF_UPCAST_STEPS_MAX)
            return hf_scope_fail(s, HF_LIMIT, "upcasting event %.*s (type %.*s) does not terminate",
                                 HF_FMT(event->id), HF_FMT(event->type));
        TRY(upcast->upcast(s, event, from, upcast->user));
        if (event->schema < from) /* (1) */
            return hf_scope_fail(
                s, HF_INVALID, "upcasting event %.*s (type %.*s) lowered its schema from %u to %u",
                HF_FMT(event->id), HF_FMT(event->type), from, event->schema);
        if (event->schema == from)
            event->schema = from + 1;
        assert(event->schema > from); /* (1) */
        upcast = upcast_find(upcasts, len, event);
    }
    return HF_OK;
}
