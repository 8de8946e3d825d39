/*
 * test/fuzz/fuzz_import.c: files that `events import` reads, into an event store in memory.
 *
 * The first byte has the size of the pieces in which the file arrives (low six bits, 0: all at
 * once) and whether events are renumbered. The rest is the file.
 *
 *  - An import succeeds, or fails with a status of its own and a sentence.
 *  - What is imported is there: an export has at least as many events, each a line.
 *  - Of one input in AGAIN_EVERY the export is imported again, and adds nothing.
 */
#include <holdfast/events.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "compares.h"
#include "files.h"
#include "requests.h"

enum { PIECE_BITS = 0x3f, RENUMBER = 0x40, AGAIN_EVERY = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
    struct input input;
    size_t piece;
};

static enum hf_status read_piece(struct hf_scope *s, void *bytes, size_t cap, size_t *len,
                                 void *user)
{
    struct source *source = user;
    const uint8_t *from;

    (void)s;
    from = input_bytes(&source->input, source->piece < cap ? source->piece : cap, len);
    if (*len)
        memcpy(bytes, from, *len);
    return HF_OK;
}

static enum hf_status write_piece(struct hf_scope *s, const void *bytes, size_t len, void *user)
{
    (void)s;
    hf__buf_put(user, bytes, len);
    return HF_OK;
}

static void import_again(struct hf_scope *s, struct hf_events *store, const struct hf__buf *lines)
{
    struct source source = {.input = {lines->ptr, lines->len}, .piece = SIZE_MAX};
    uint64_t count = 0;

    MUST(hf_events_import(s, store, NULL, read_piece, &source, &count) == HF_OK && count == 0);
}

static bool may_fail_with(enum hf_status status)
{
    return status == HF_SERIALIZATION || status == HF_CONDITION || status == HF_DUPLICATE ||
           status == HF_INVALID || status == HF_LIMIT || status == HF_NOT_FOUND;
}

static void import(struct hf_scope *s, struct hf_events *store, struct input input, bool again)
{
    unsigned flags = input_byte(&input);
    struct source source = {.input = input, .piece = flags & PIECE_BITS};
    struct hf_scope *kept = hf_scope_new(NULL); /* an export gives back what it takes of its own */
    struct hf__buf lines = {.scope = kept};
    uint64_t count = 0, exported = 0, newlines = 0;
    enum hf_status status;

    if (!source.piece)
        source.piece = SIZE_MAX;
    status = hf_events_import(s, store,
                              HF_OPTIONS(hf_events_transfer, .renumber = (flags & RENUMBER) != 0),
                              read_piece, &source, &count);
    if (status != HF_OK && (!may_fail_with(status) || !hf_scope_error_text(s)[0])) {
        fprintf(stderr, "import: %s %s\n", hf_status_name(status), hf_scope_error_text(s));
        abort();
    }
    MUST(hf_events_export(s, store, NULL, write_piece, &lines, &exported) == HF_OK);
    MUST(!lines.failed && exported >= count);
    for (size_t i = 0; i < lines.len; i++)
        newlines += lines.ptr[i] == '\n';
    MUST(newlines == exported);
    if (again)
        import_again(s, store, &lines);
    hf_scope_free(kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct machine m;
    struct hf_events *store;

    compares_begin(data, size);
    if (!m.db) {
        machine_open(&m, NULL);
        MUST(hf_events_open(m.s, m.db, NULL, &store) == HF_OK);
        hf_events_close(store);
        machine_mark(&m);
    }
    MUST(hf_events_open(m.s, m.db, NULL, &store) == HF_OK);
    import(m.s, store, (struct input){data, size}, one_in(AGAIN_EVERY, data, size));
    hf_events_close(store);
    machine_end(&m);
    return 0;
}
