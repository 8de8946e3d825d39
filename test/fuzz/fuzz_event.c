/*
 * test/fuzz/fuzz_event.c: events/store/events_json.c on any text.
 *
 *  - A text is an event, or refused as HF_SERIALIZATION with a sentence of ours.
 *  - What was read is written as one line, and read again it is the same, byte for byte.
 *  - Written once more it is the same line.
 *
 * The text is also a payload of its own: it comes back, whatever it is.
 */
#include <holdfast/events.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_bytes(struct hf_bytes a, struct hf_bytes b)
{
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void check_same(const struct hf_stored_event *a, const struct hf_stored_event *b)
{
    MUST(hf_str_equal(a->id, b->id));
    MUST(hf_str_equal(a->position, b->position));
    MUST(hf_str_equal(a->stream.domain, b->stream.domain));
    MUST(hf_str_equal(a->stream.id, b->stream.id));
    MUST(a->version == b->version);
    MUST(hf_str_equal(a->type, b->type));
    MUST(same_bytes(a->payload, b->payload));
    MUST(hf_str_equal(a->content_type, b->content_type));
    MUST(a->schema == b->schema);
    MUST(a->time_us == b->time_us);
    MUST(hf_item_count(a->meta) ? hf_item_equal(a->meta, b->meta) : !hf_item_count(b->meta));
    MUST(hf_str_equal(a->causation, b->causation));
    MUST(hf_str_equal(a->correlation, b->correlation));
    MUST(hf_str_equal(a->compensates, b->compensates));
    MUST(same_bytes(a->hash, b->hash));
    MUST(hf_str_equal(a->blob, b->blob));
}

static void check_returns(struct hf_scope *s, const struct hf_stored_event *event)
{
    struct hf_stored_event back;
    struct hf_str json, again;

    MUST(hf_event_to_json(s, event, &json) == HF_OK);
    MUST(!memchr(json.ptr, '\n', json.len) && !memchr(json.ptr, '\r', json.len));
    MUST(hf_event_from_json(s, json, &back) == HF_OK);
    check_same(event, &back);
    MUST(hf_event_to_json(s, &back, &again) == HF_OK);
    MUST(hf_str_equal(json, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_stored_event event;
    enum hf_status status;

    MUST(s);
    status = hf_event_from_json(s, hf_str_of((const char *)data, size), &event);
    if (status == HF_OK) {
        check_returns(s, &event);
    } else {
        MUST(status == HF_SERIALIZATION);
        MUST(strncmp(hf_scope_error_text(s), "the event", 9) == 0);
    }
    event = (struct hf_stored_event){.stream = {.domain = HF_STR("d")},
                                     .type = HF_STR("t"),
                                     .payload = hf_bytes_of(data, size)};
    check_returns(s, &event);
    hf_scope_free(s);
    return 0;
}
