/*
 * test/fuzz/fuzz_row.c: rows of the tables of other event stores, which `events adopt` reads, and objects of S3
 * with their payloads.
 *
 * The first line is an item in DynamoDB's JSON, the rest an object.
 *
 *  - A row is read, or refused with a sentence. What says where it belongs is the same whether all of it is read
 *    or only that.
 *  - A row that is read is an event: as a line of an export it comes back with the same id, payload and time.
 *  - An object has the payload of the event whose id is in it, or is refused with a sentence.
 */
#include <string.h>

#include "cli/events/events_row.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(struct hf_str one, struct hf_str other)
{
    MUST(one.len == other.len && (!one.len || memcmp(one.ptr, other.ptr, one.len) == 0));
}

/* As an import has it. */
static void check_line(struct hf_scope *s, struct events_row *row)
{
    struct hf_stored_event again;
    struct hf_str json;

    row->event.version = 1;
    if (hf_event_to_json(s, &row->event, &json) != HF_OK)
        return; /* a text that is no UTF-8, or headers that cannot be: the import says so */
    MUST(hf_event_from_json(s, json, &again) == HF_OK);
    check_same(row->event.id, again.id);
    check_same(row->event.type, again.type);
    check_same(row->event.stream.domain, again.stream.domain);
    check_same(row->event.stream.id, again.stream.id);
    check_same(row->event.compensates, again.compensates);
    MUST(row->event.time_us == again.time_us && row->event.schema == again.schema);
    MUST(row->event.payload.len == again.payload.len &&
         (!again.payload.len ||
          memcmp(row->event.payload.ptr, again.payload.ptr, again.payload.len) == 0));
}

static void check_row(struct hf_scope *s, struct hf_item item, struct hf_bytes object)
{
    struct hf_str error = {NULL, 0};
    struct events_row look, row;
    bool looked = hf__cli_events_row_look(s, item, &look, &error);

    MUST(looked || error.len > 0);
    error.len = 0;
    if (!hf__cli_events_row_read(s, item, &row, &error)) {
        MUST(error.len > 0);
        return;
    }
    MUST(looked && look.head == row.head && look.sequence == row.sequence);
    if (row.head)
        return;
    check_same(look.event.id, row.event.id);
    check_same(look.event.stream.domain, row.event.stream.domain);
    MUST(look.event.time_us == row.event.time_us && row.event.id.len && row.event.type.len);
    MUST(!row.event.meta.ptr || hf_item_check(s, row.event.meta) == HF_OK);
    if (row.reference.ptr && !hf__cli_events_row_object(s, object, &row, &error)) {
        MUST(error.len > 0);
        return;
    }
    check_line(s, &row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t len = end ? (size_t)(end - data) : size;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str text, object;
    struct hf_item item;

    MUST(s);
    text = hf_scope_copy(s, hf_str_of((const char *)data, len));
    object = hf_scope_copy(s, hf_str_of((const char *)data + (end ? len + 1 : len),
                                        end ? size - len - 1 : 0)); /* files end with a NUL */
    if (text.ptr && object.ptr && hf_item_from_json(s, text, &item) == HF_OK)
        check_row(s, item, hf_bytes_of(object.ptr, object.len));
    hf_scope_free(s);
    return 0;
}
