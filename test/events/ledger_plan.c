/*
 * test/events/ledger_plan.c: the appends of each writer. They follow from the seed, the writer and
 * a number, so a new life of a writer makes the same one again, byte by byte, and the verdict knows
 * what there has to be.
 *
 * A payload begins with "WRITER NUMBER STREAM INDEX." and is filled up with dots.
 */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 40, LARGE_BYTES = 300000 };

static void plan_parts(struct op *op, uint64_t *random, size_t len, uint32_t count_max)
{
    int first = (int)random_below(random, STREAMS);

    op->len = len;
    for (size_t i = 0; i < len; i++) { /* each stream once */
        op->parts[i].stream = (first + (int)i * 3) % STREAMS;
        op->parts[i].count = 1 + (uint32_t)random_below(random, count_max);
    }
}

_Static_assert(STREAMS % 3 != 0 && PARTS_MAX <= STREAMS, "no stream is taken twice");

struct op plan_op(uint64_t seed, int writer, uint32_t number)
{
    uint64_t random = (seed * 31 + (uint64_t)writer) * UINT64_C(0x9e3779b97f4a7c15) +
                      number * UINT64_C(0xbf58476d1ce4e5b9);
    struct op op = {.writer = writer, .number = number, .bytes = SMALL_BYTES};
    uint64_t dice;

    random |= 1;
    for (int i = 0; i < 8; i++)
        (void)random_below(&random, 2);
    dice = random_below(&random, 200);
    op.kind = random_below(&random, 3) == 0 ? OP_OWN : OP_CHOSEN;
    if (dice < 1) { /* more bytes than a transaction has */
        plan_parts(&op, &random, 1, 1);
        op.parts[0].count = 15;
        op.bytes = LARGE_BYTES;
    } else if (dice < 9) { /* more events */
        plan_parts(&op, &random, 1 + random_below(&random, 2), 150);
        op.parts[0].count += 60;
    } else if (dice < 40) {
        plan_parts(&op, &random, 2 + random_below(&random, PARTS_MAX - 1), 3);
    } else if (dice < 70) {
        plan_parts(&op, &random, 1, 3);
        op.kind = OP_EXACT;
    } else {
        plan_parts(&op, &random, 1, 5);
    }
    return op;
}

struct hf_event_stream_key plan_stream(struct hf_scope *s, int stream)
{
    return (struct hf_event_stream_key){HF_STR("ledger"), hf_scope_format(s, "s/%d", stream)};
}

static struct hf_new_event plan_event(struct hf_scope *s, const struct op *op, size_t part,
                                      uint32_t index)
{
    int stream = op->parts[part].stream;
    char *payload = hf_scope_alloc(s, op->bytes + 1);
    struct hf_new_event event = {.type = HF_STR("step")};
    int len;

    if (!payload)
        FAIL("out of memory");
    memset(payload, '.', op->bytes);
    len = snprintf(payload, op->bytes, "%d %u %d %u", op->writer, op->number, stream, index);
    payload[len] = '.';
    event.payload = hf_bytes_of(payload, op->bytes);
    if (op->kind != OP_OWN)
        event.id = hf_scope_format(s, "w%d-%u-%d-%u", op->writer, op->number, stream, index);
    return event;
}

struct hf_append *plan_appends(struct hf_scope *s, const struct op *op, int64_t expected)
{
    struct hf_append *appends = hf_scope_alloc(s, op->len * sizeof(*appends));

    for (size_t i = 0; i < op->len; i++) {
        uint32_t count = op->parts[i].count;
        struct hf_new_event *events = hf_scope_alloc(s, count * sizeof(*events));

        if (!appends || !events)
            FAIL("out of memory");
        for (uint32_t j = 0; j < count; j++)
            events[j] = plan_event(s, op, i, j);
        appends[i] = (struct hf_append){.stream = plan_stream(s, op->parts[i].stream),
                                        .events = events,
                                        .events_len = count};
        if (op->kind == OP_EXACT) {
            appends[i].expect = HF_EXPECT_VERSION;
            appends[i].version = (uint64_t)expected;
        }
    }
    return appends;
}

bool plan_origin(const struct hf_stored_event *event, struct origin *origin)
{
    char text[SMALL_BYTES];

    if (event->payload.len < sizeof(text))
        return false;
    memcpy(text, event->payload.ptr, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    return sscanf(text, "%d %u %d %u.", &origin->writer, &origin->number, &origin->stream,
                  &origin->index) == 4;
}

void plan_line(const struct hf_stored_event *event, char line[LINE_ROOM])
{
    struct origin o;

    if (event->position.len != HF_POSITION_LEN || !plan_origin(event, &o))
        FAIL("an event that nobody has appended");
    snprintf(line, LINE_ROOM, "%.*s %.*s %llu %d %u %u", HF_POSITION_LEN, event->position.ptr,
             (int)event->stream.id.len, event->stream.id.ptr, (unsigned long long)event->version,
             o.writer, o.number, o.index);
}
