/*
 * test/fuzz/fuzz_outbox.c: lines that `outbox import` reads: of our own, CloudEvents, and rows of
 * the tables of other libraries.
 *
 * The first byte says which of the five forms it is, the rest is the line.
 *
 *  - It is read, or refused with a sentence.
 *  - What is read is an event: its texts and its payload can be read to their ends, its headers are
 *    an item, and its times are not before 1970. An empty type is the outbox's to refuse.
 *  - It is read the same way again.
 */
#include <string.h>

#include "cli/outbox/outbox_line.h"
#include "files.h"

enum { FORMS = OUTBOX_LINE_EXCALIBUR_DATA + 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte, so that a sanitizer sees them. */
static uint64_t sum_of(const void *ptr, size_t len)
{
    const uint8_t *bytes = ptr;
    uint64_t sum = len;

    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + bytes[i];
    return sum;
}

static uint64_t look_at(struct hf_scope *s, const struct outbox_line *line)
{
    const struct hf_event *e = &line->event;
    const struct hf_str texts[] = {
        e->id,     e->type,        e->key,          e->content_type, e->schema,
        e->source, e->correlation, e->causation,    e->aggregate,    e->aggregate_type,
        e->tenant, e->destination, e->trace_parent, e->trace_state};
    uint64_t sum = sum_of(e->payload.ptr, e->payload.len) + (uint64_t)e->time_us +
                   (uint64_t)e->due_us + e->sequence + line->done * 2u + line->failed;

    MUST(e->time_us >= 0 && e->due_us >= 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        sum = sum * 31 + sum_of(texts[i].ptr, texts[i].len);
    if (e->headers.ptr) {
        MUST(hf_item_check(s, e->headers) == HF_OK);
        sum += hf_item_size(e->headers);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_str error = {NULL, 0}, text;
    struct outbox_line line, again;
    enum outbox_line_form form;
    struct hf_scope *s;

    if (size == 0)
        return 0;
    form = (enum outbox_line_form)(data[0] % FORMS);
    s = hf_scope_new(NULL);
    MUST(s);
    text = hf_scope_copy(s, hf_str_of((const char *)data + 1, size - 1)); /* lines end with a NUL */
    MUST(text.ptr);
    if (hf__cli_outbox_line_read(s, form, text, &line, &error)) {
        uint64_t sum = look_at(s, &line);

        MUST(hf__cli_outbox_line_read(s, form, text, &again, &error));
        MUST(look_at(s, &again) == sum);
    } else {
        MUST(error.len > 0);
    }
    hf_scope_free(s);
    return 0;
}
