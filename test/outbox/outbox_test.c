/*
 * outbox/outbox_test.c: emitting events, how they are stored, and what relays do with them, on
 * every kind of database. (n) is an invariant of the file in question.
 */
#include <holdfast/outbox.h>

#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

#include "outbox/outbox.h"

static struct hf_outbox *open_outbox(struct kit *k, uint32_t buckets, uint32_t history_s)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = buckets,
                                       .history_s = history_s),
                            &outbox));
    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        CHECK(!outbox->transactions);
    return outbox;
}

static struct hf_event event_of(const char *type, const char *key)
{
    return (struct hf_event){.type = hf_str_from(type), .key = hf_str_from(key)};
}

static struct hf_str emit(struct kit *k, struct hf_outbox *outbox, const char *type,
                          const char *key)
{
    struct hf_event event = event_of(type, key);
    struct hf_str id;

    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, HF_OPTIONS(hf_emit_options, .ids = &id)));
    return id;
}

/* What waits in a bucket and is due. */
static size_t read_all(struct kit *k, struct hf_outbox *outbox, uint32_t bucket,
                       struct hf_outbox_event **events)
{
    struct outbox_reading r = {.bucket = bucket,
                               .now_ms = hf__env_wall_ms(&outbox->env),
                               .skew_ms = OUTBOX_SKEW_MS,
                               .limit = 1000};

    CHECK_OK(hf__outbox_read(k->scope, outbox, &r));
    CHECK(!r.more);
    *events = r.events;
    return r.len;
}

static size_t waiting(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_outbox_event *events;
    size_t len = 0;

    for (uint32_t i = 0; i < outbox->buckets; i++)
        len += read_all(k, outbox, i, &events);
    return len;
}

/* ---- outbox.c ------------------------------------------------------------------------------- */

/* (1) */
KIT_TEST(outbox, the_number_of_buckets_stays)
{
    struct hf_outbox *outbox = open_outbox(k, 7, 0), *other;

    CHECK_INT(7, outbox->buckets);
    CHECK_STATUS(HF_INVALID,
                 hf_outbox_open(k->scope, k->db,
                                HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 8),
                                &other));
    CHECK(!other);
    CHECK(strstr(hf_scope_error_text(k->scope), "has 7 buckets, expected 8"));
    other = open_outbox(k, 0, 0);
    CHECK_INT(7, other->buckets);
    CHECK_STATUS(HF_INVALID, hf_outbox_open(k->scope, k->db,
                                            HF_OPTIONS(hf_outbox_options, .table = k->other,
                                                       .buckets = HF_OUTBOX_BUCKETS_MAX + 1),
                                            &(struct hf_outbox *){NULL}));
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_outbox_open(k->scope, k->db,
                                HF_OPTIONS(hf_outbox_options, .table = k->other, .no_create = true),
                                &(struct hf_outbox *){NULL}));
    hf_outbox_close(other);
    hf_outbox_close(outbox);
    hf_outbox_close(NULL);
}

KIT_TEST(outbox, another_table_is_none)
{
    struct hf_outbox *outbox;

    kit_make_table(k, k->table);
    CHECK_STATUS(HF_INVALID,
                 hf_outbox_open(k->scope, k->db, HF_OPTIONS(hf_outbox_options, .table = k->table),
                                &outbox));
    CHECK(!outbox);
    CHECK_STATUS(HF_INVALID, hf_outbox_open(k->scope, NULL, NULL, &outbox));
}

struct listener {
    struct hf_outbox *outbox;
    uint32_t calls, last;
};

static void note(void *user, uint32_t bucket, bool urgent)
{
    struct listener *listener = user;

    (void)urgent;
    listener->calls++;
    listener->last = bucket;
}

KIT_TEST(outbox, those_who_listen_are_told)
{
    struct hf_outbox *outbox = open_outbox(k, 16, 0);
    struct listener one = {0}, other = {0}, more[OUTBOX_WAKERS_MAX];
    uint32_t bucket = hf__outbox_bucket(outbox, HF_STR("ann"));

    CHECK(hf__outbox_listen(outbox, note, &one));
    CHECK(hf__outbox_listen(outbox, note, &other));
    emit(k, outbox, "t", "ann");
    CHECK_INT(1, one.calls);
    CHECK_INT(1, other.calls);
    CHECK_INT(bucket, one.last);
    hf__outbox_unlisten(outbox, note, &one);
    hf_outbox_wake(outbox);
    CHECK_INT(1, one.calls);
    CHECK_INT(2, other.calls);
    CHECK(other.last == UINT32_MAX);
    CHECK(hf__outbox_listen(outbox, note, &one));
    for (int i = 2; i < OUTBOX_WAKERS_MAX; i++)
        CHECK(hf__outbox_listen(outbox, note, &more[i]));
    CHECK(!hf__outbox_listen(outbox, note, &more[0]));
    hf__outbox_unlisten(outbox, note, &more[2]);
    CHECK(hf__outbox_listen(outbox, note, &more[0]));
    hf_outbox_close(outbox);
}

/* Ordered or competing, until nobody has worked for ten minutes. */
KIT_TEST(outbox, the_kind_of_work_is_stamped)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0), *other = open_outbox(k, 4, 0);
    struct hf_put_item relay = {.table = k->table,
                                .item = HF_ITEM(k->scope, HF_S("pk", HF_STR("c")),
                                                HF_S("sk", HF_STR("m.one")))};
    struct hf_delete_item gone = {.table = k->table, .key = relay.item};

    CHECK_OK(hf__outbox_take_mode(k->scope, outbox, false));
    CHECK_OK(hf__outbox_take_mode(k->scope, other, false));
    CHECK_STATUS(HF_INVALID, hf__outbox_take_mode(k->scope, other, true));
    CHECK(strstr(hf_scope_error_text(k->scope), "is for ordered work"));
    test_advance_ms(k->t, 590000);
    CHECK_OK(hf__outbox_take_mode(k->scope, outbox, false)); /* a new stamp */
    test_advance_ms(k->t, 590000);
    CHECK_STATUS(HF_INVALID, hf__outbox_take_mode(k->scope, other, true));
    test_advance_ms(k->t, 10001);
    CHECK_OK(hf_put_item(k->scope, k->db, &relay, NULL));
    CHECK_STATUS(HF_INVALID, hf__outbox_take_mode(k->scope, other, true));
    CHECK(strstr(hf_scope_error_text(k->scope), "m.one"));
    CHECK_OK(hf_delete_item(k->scope, k->db, &gone, NULL));
    CHECK_OK(hf__outbox_take_mode(k->scope, other, true));
    CHECK_STATUS(HF_INVALID, hf__outbox_take_mode(k->scope, outbox, false));
    hf_outbox_close(other);
    hf_outbox_close(outbox);
}

/* ---- outbox_item.c -------------------------------------------------------------------------- */

static struct hf_event full_event(struct hf_scope *s)
{
    static const uint8_t payload[] = {0, 1, 2, 0xFF, 0xFE, '"', 0};

    return (struct hf_event){.type = HF_STR("the type"),
                             .key = HF_STR("the key"),
                             .sequence = INT64_MAX,
                             .time_us = 1111111111111111,
                             .due_us = 1767225600000001, /* 2026-01-01, one microsecond */
                             .payload = hf_bytes_of(payload, sizeof(payload)),
                             .content_type = HF_STR("the content type"),
                             .schema = HF_STR("the schema"),
                             .headers = HF_ITEM(s, HF_S("a", HF_STR("b")), HF_N("n", 7)),
                             .source = HF_STR("the source"),
                             .correlation = HF_STR("the correlation"),
                             .causation = HF_STR("the causation"),
                             .aggregate = HF_STR("the aggregate"),
                             .aggregate_type = HF_STR("the aggregate type"),
                             .tenant = HF_STR("the tenant"),
                             .destination = HF_STR("the destination"),
                             .trace_parent = HF_STR("the trace parent"),
                             .trace_state = HF_STR("the trace state")};
}

static void check_same(const struct hf_event *a, const struct hf_event *b)
{
    const struct hf_str one[] = {a->type,        a->key,         a->content_type,   a->schema,
                                 a->source,      a->correlation, a->causation,      a->aggregate,
                                 a->tenant,      a->destination, a->aggregate_type, a->trace_parent,
                                 a->trace_state, a->id};
    const struct hf_str other[] = {
        b->type,           b->key,          b->content_type, b->schema, b->source,
        b->correlation,    b->causation,    b->aggregate,    b->tenant, b->destination,
        b->aggregate_type, b->trace_parent, b->trace_state,  b->id};

    for (size_t i = 0; i < ARRAY_LEN(one); i++) {
        CHECK(hf_str_equal(one[i], other[i]));
        CHECK(!one[i].ptr == !other[i].ptr);
    }
    CHECK(a->sequence == b->sequence);
    CHECK_INT(a->time_us, b->time_us);
    CHECK_INT(a->due_us, b->due_us);
    CHECK_INT(a->payload.len, b->payload.len);
    CHECK(a->payload.len == 0 || memcmp(a->payload.ptr, b->payload.ptr, a->payload.len) == 0);
    CHECK(!a->headers.ptr == !b->headers.ptr);
    CHECK(!a->headers.ptr || hf_item_equal(a->headers, b->headers));
}

/* Every field has a value of its own, so one that is dropped or swapped is found out. */
KIT_TEST(outbox_item, every_field_comes_back)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 0);
    struct hf_event event = full_event(k->scope);
    struct hf_outbox_event *found;
    struct hf_str id;

    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, HF_OPTIONS(hf_emit_options, .ids = &id)));
    test_advance_ms(k->t, 1);
    CHECK_INT(1, read_all(k, outbox, hf__outbox_bucket(outbox, event.key), &found));
    event.id = id;
    check_same(&event, &found[0].event);
    CHECK(hf_str_equal(id, found[0].ref));
    CHECK_INT(HF_TYPE_B, hf_value_type(hf_item_get(found[0].item, HF_STR("payload"))));
    CHECK_INT(HF_TYPE_M, hf_value_type(hf_item_get(found[0].item, HF_STR("headers"))));
    CHECK_INT(HF_OUTBOX_PENDING, found[0].state);
    CHECK_INT(0, found[0].attempts);
    hf_outbox_close(outbox);
}

/* Wherever it goes: claimed, failed for good, retried, published, replayed. */
KIT_TEST(outbox_item, every_field_stays_through_all_states)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 3600);
    const struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_event event = full_event(k->scope);
    struct hf_claim_list claims;
    struct hf_event_list list;
    struct hf_str id;

    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, HF_OPTIONS(hf_emit_options, .ids = &id)));
    event.id = id;
    test_advance_ms(k->t, 1);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, NULL, &claims));
    CHECK_INT(1, claims.events_len);
    check_same(&event, &claims.events[0].event.event);
    CHECK_OK(hf_outbox_fail(k->scope, outbox, &claims.events[0], &error, true, NULL));
    CHECK_OK(hf_outbox_failed(k->scope, outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    check_same(&event, &list.events[0].event);
    CHECK_OK(hf_outbox_retry(k->scope, outbox, &id, 1, NULL));
    CHECK_OK(hf_outbox_pending(k->scope, outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    check_same(&event, &list.events[0].event);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, NULL, &claims));
    CHECK_INT(1, claims.events_len);
    check_same(&event, &claims.events[0].event.event);
    CHECK_OK(hf_outbox_published(k->scope, outbox, &claims.events[0]));
    CHECK_OK(hf_outbox_history(k->scope, outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    check_same(&event, &list.events[0].event);
    CHECK_OK(hf_outbox_replay(k->scope, outbox, NULL, NULL));
    CHECK_OK(hf_outbox_claim(k->scope, outbox, NULL, &claims));
    CHECK_INT(1, claims.events_len);
    check_same(&event, &claims.events[0].event.event);
    hf_outbox_close(outbox);
}

/* (3) What is left out is absent, or what it is by default. */
KIT_TEST(outbox_item, what_is_left_out_comes_back_so)
{
    struct hf_outbox *outbox;
    struct hf_event event = {.type = HF_STR("t"), .aggregate = HF_STR("order/1")}, expected;
    struct hf_outbox_event *found;
    struct hf_str id;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 3,
                                       .source = HF_STR("shop")),
                            &outbox));
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, HF_OPTIONS(hf_emit_options, .ids = &id)));
    CHECK_INT(1, read_all(k, outbox, hf__outbox_bucket(outbox, HF_STR("order/1")), &found));
    expected = event;
    expected.id = id;
    expected.key = event.aggregate;
    expected.content_type = HF_STR("application/json");
    expected.source = HF_STR("shop");
    expected.time_us = k->t->wall_us;
    check_same(&expected, &found[0].event);
    hf_outbox_close(outbox);
}

static void check_limit(struct kit *k, const char *name, uint64_t max, uint64_t actual)
{
    const struct hf_error_limit *limit = &hf_scope_error(k->scope)->limit;

    CHECK_STR(name, limit->name);
    CHECK_INT(max, limit->max);
    CHECK_INT(actual, limit->actual);
}

KIT_TEST(outbox_item, what_cannot_be_an_event)
{
    struct hf_outbox *outbox = open_outbox(k, 2, 0);
    char *text = malloc(500000);
    struct hf_event events[2] = {{.type = HF_STR("ok")}, {.key = HF_STR("k")}};

    memset(text, 'x', 500000);
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
    CHECK_ERROR(HF_INVALID, "event 2 has no type", k->scope);
    events[1].type = HF_STR("t");
    events[1].tenant = hf_str_of(text, HF_EVENT_TEXT_MAX + 1);
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
    CHECK_ERROR(HF_INVALID, "event 2 (t): tenant has 1025 bytes, more than 1024", k->scope);
    check_limit(k, "HF_EVENT_TEXT_MAX", HF_EVENT_TEXT_MAX, HF_EVENT_TEXT_MAX + 1);
    events[1].tenant = HF_STR("\xC3");
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
    CHECK_ERROR(HF_INVALID, "event 2: tenant is not UTF-8", k->scope);
    events[1].tenant = hf_str_of(NULL, 0);
    events[1].sequence = UINT64_MAX;
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
    events[1].sequence = 0;
    events[1].due_us = INT64_MAX;
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
    events[1].due_us = 0;
    events[1].payload = hf_bytes_of(text, 500000);
    CHECK_STATUS(HF_LIMIT, hf_outbox_emit(k->scope, outbox, events + 1, 1, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "event 1 (t) has 500"));
    CHECK(strstr(hf_scope_error_text(k->scope), "of these 500000 of payload"));
    CHECK_INT(0, waiting(k, outbox));
    free(text);
    hf_outbox_close(outbox);
}

/* (4) The largest event can still fail with the longest text, be claimed, and be kept. */
KIT_TEST(outbox_item, the_largest_event_can_fail)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 3600);
    struct hf_event event = {.type = HF_STR("t"), .key = HF_STR("k")};
    struct hf_outbox_event *found;
    char *text = malloc(HF_EVENT_SIZE_MAX), error[3000];
    size_t size = HF_EVENT_SIZE_MAX - 40; /* names, seq and time are more */

    memset(text, 'x', HF_EVENT_SIZE_MAX);
    memset(error, 'e', sizeof(error));
    event.payload = hf_bytes_of(text, size);
    while (hf_outbox_emit(k->scope, outbox, &event, 1, NULL) == HF_LIMIT && event.payload.len)
        event.payload.len--;
    CHECK(event.payload.len + 200 > HF_EVENT_SIZE_MAX);
    event.payload.len++;
    CHECK_STATUS(HF_LIMIT, hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    check_limit(k, "HF_EVENT_SIZE_MAX", HF_EVENT_SIZE_MAX, HF_EVENT_SIZE_MAX + 1);
    CHECK_INT(1, read_all(k, outbox, 0, &found));
    CHECK_INT(HF_EVENT_SIZE_MAX, hf_item_size(found[0].item));
    CHECK_OK(hf__outbox_note_failure(k->scope, outbox, &found[0],
                                     &(struct hf_error){.status = HF_IO,
                                                        .message = hf_str_of(error, sizeof(error))},
                                     k->t->wall_us, false));
    CHECK_INT(1, read_all(k, outbox, 0, &found));
    CHECK_INT(HF_EVENT_ERROR_MAX, found[0].error_text.len);
    CHECK_OK(
        hf__outbox_done(k->scope, outbox, (const struct hf_outbox_event *const[]){&found[0]}, 1));
    CHECK_INT(0, waiting(k, outbox));
    free(text);
    hf_outbox_close(outbox);
}

/* Error texts are cut between characters; what is no UTF-8 is stored all the same. */
TEST(outbox_item, failures_are_cut_and_grouped)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct outbox_failure f;
    char text[3000];

    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xC3\xA4", 2);
    text[0] = 'a'; /* the limit is in the middle of a character now */
    memmove(text + 1, text + 2, sizeof(text) - 2);
    f = hf__outbox_failure(s,
                           &(struct hf_error){.status = HF_IO, .message = hf_str_of(text, 2999)});
    CHECK_INT(HF_EVENT_ERROR_MAX - 1, f.text.len);
    CHECK_OK(hf_item_check(s, HF_ITEM(s, HF_S("x", f.text), HF_S("y", f.cause))));
    f = hf__outbox_failure(s, &(struct hf_error){.status = HF_IO, .message = HF_STR("\xFFoo")});
    CHECK_STR("?oo", f.text);
    f = hf__outbox_failure(s, &(struct hf_error){.status = HF_TIMEOUT,
                                                 .message = HF_STR(
                                                     "order a-17 to \"Ann B\" took 12 s, x1")});
    CHECK_STR("HF_TIMEOUT: order # to # took # s, #", f.cause);
    f = hf__outbox_failure(s, &(struct hf_error){.status = HF_OK});
    CHECK_STR("HF_INTERNAL", f.cause);
    CHECK_STR("", f.text);
    hf_scope_free(s);
}

/* ---- outbox_emit.c -------------------------------------------------------------------------- */

KIT_TEST(outbox_emit, one_event_is_one_put)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event event = event_of("t", "k");

    CHECK_OK(hf_outbox_emit(k->scope, outbox, NULL, 0, NULL));
    hf_scope_count_capacity(k->scope, true);
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    CHECK_INT(1, hf_scope_capacity(k->scope).calls);
    CHECK(hf_scope_capacity(k->scope).write_units == 1 ||
          hf_scope_capacity(k->scope).write_units == 0); /* not all databases tell */
    CHECK_INT(1, waiting(k, outbox));
    hf_outbox_close(outbox);
}

/* (2) Whichever half of the exchange gets lost: once. */
KIT_TEST(outbox_emit, a_lost_answer_does_no_harm)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct listener listener = {0};

    CHECK(hf__outbox_listen(outbox, note, &listener));
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        kit_fault(k, kinds[i], "PutItem", 2);
        emit(k, outbox, "t", "k");
        kit_no_faults(k);
        CHECK_INT(i + 1, waiting(k, outbox));
        CHECK_INT(i + 1, listener.calls);
    }
    kit_fault(k, HF_FAULT_THROTTLE, "PutItem", 1);
    CHECK_STATUS(HF_THROTTLED, hf_outbox_emit(k->scope, outbox,
                                              &(struct hf_event){.type = HF_STR("t")}, 1, NULL));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK_INT(2, waiting(k, outbox));
    CHECK_INT(2, listener.calls); /* (5) */
    hf_outbox_close(outbox);
}

/* (2) A seq that another has, as unlikely as it is, is replaced. */
static void no_randomness(void *bytes, size_t len, void *user)
{
    (void)user;
    memset(bytes, 7, len);
}

KIT_TEST(outbox_emit, a_seq_that_is_taken_is_replaced)
{
    struct hf_outbox *outbox = open_outbox(k, 2, 0);
    uint64_t count = outbox->last_count;
    struct hf_str one, other;

    outbox->env.random = no_randomness;
    one = emit(k, outbox, "one", "k");
    outbox->last_count = count; /* another process counts where we do */
    other = emit(k, outbox, "other", "k");
    CHECK_INT(2, waiting(k, outbox));
    CHECK(!hf_str_equal(one, other));
    hf_outbox_close(outbox);
}

/* (3) All or none, once, however often it is sent. */
KIT_TEST(outbox_emit, several_are_one_transaction)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST,
                                               HF_FAULT_CONFLICT};
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event events[HF_OUTBOX_EMIT_MAX + 1];
    struct listener listener = {0};

    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        events[i] = event_of("t", i % 2 ? "even" : "odd");
    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        CHECK_STATUS(HF_UNSUPPORTED, hf_outbox_emit(k->scope, outbox, events, 3, NULL));
        CHECK_INT(0, waiting(k, outbox));
        hf_outbox_close(outbox);
        return;
    }
    CHECK(hf__outbox_listen(outbox, note, &listener));
    CHECK_OK(hf_outbox_emit(k->scope, outbox, events, HF_OUTBOX_EMIT_MAX, NULL));
    CHECK_INT(HF_OUTBOX_EMIT_MAX, waiting(k, outbox));
    CHECK_INT(2, listener.calls); /* once for each bucket */
    CHECK_STATUS(HF_LIMIT, hf_outbox_emit(k->scope, outbox, events, HF_OUTBOX_EMIT_MAX + 1, NULL));
    CHECK_ERROR(HF_LIMIT, "101 events are more than the 100 that are stored together", k->scope);
    CHECK_INT(HF_OUTBOX_EMIT_MAX, waiting(k, outbox));
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        kit_fault(k, kinds[i], "TransactWriteItems", 2);
        CHECK_OK(hf_outbox_emit(k->scope, outbox, events, 3, NULL));
        kit_no_faults(k);
        CHECK_INT(HF_OUTBOX_EMIT_MAX + 3 * (i + 1), waiting(k, outbox));
    }
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_emit, events_of_a_key_are_in_order)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event events[40];
    struct hf_outbox_event *found;
    uint32_t bucket = hf__outbox_bucket(outbox, HF_STR("k"));

    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        events[i] = event_of("t", "k");
        events[i].sequence = i + 1;
    }
    CHECK_OK(hf_outbox_emit(k->scope, outbox, events, 20,
                            HF_OPTIONS(hf_emit_options, .each_alone = true)));
    k->t->wall_us -= 1000000; /* the clock is set back by a second */
    for (size_t i = 20; i < 40; i++)
        CHECK_OK(hf_outbox_emit(k->scope, outbox, &events[i], 1, NULL));
    CHECK_INT(40, read_all(k, outbox, bucket, &found));
    for (size_t i = 0; i < 40; i++)
        CHECK_INT(i + 1, found[i].event.sequence);
    hf_outbox_close(outbox);
}

/* (4) An id that the caller chose is taken once. */
KIT_TEST(outbox_emit, a_repeated_id_is_refused)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event events[2] = {event_of("t", "k"), event_of("t", "k")};
    struct hf_outbox_event *found;

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
        outbox->transactions = !without;
        events[0].id = without ? HF_STR("without") : HF_STR("with");
        events[0].time_us = 1;
        CHECK_OK(hf_outbox_emit(k->scope, outbox, events, 1, NULL));
        CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, events, 1, NULL));
        CHECK(strstr(hf_scope_error_text(k->scope), without ? "without" : "with"));
        CHECK_INT(1, waiting(k, outbox));
        CHECK_INT(1, read_all(k, outbox, hf__outbox_bucket(outbox, HF_STR("k")), &found));
        CHECK(hf_str_equal(events[0].id, found[0].event.id));
        CHECK(!hf_str_equal(events[0].id, found[0].ref));
        if (!without) { /* nothing else is stored then either */
            CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
            events[1].id = events[0].id;
            CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, events, 2, NULL));
            CHECK(strstr(hf_scope_error_text(k->scope), "events 1 and 2"));
            events[1].id = hf_str_of(NULL, 0);
        }
        /* Each for itself: the others are. */
        CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, events, 2,
                                                  HF_OPTIONS(hf_emit_options, .each_alone = true)));
        CHECK_INT(2, read_all(k, outbox, hf__outbox_bucket(outbox, HF_STR("k")), &found));
        CHECK_OK(hf__outbox_done(k->scope, outbox,
                                 (const struct hf_outbox_event *const[]){&found[0], &found[1]}, 2));
    }
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_emit, an_id_is_free_again_after_a_while)
{
    struct hf_outbox *outbox;
    struct hf_event event = event_of("t", "k");

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        return;
    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .unique_s = 60),
                            &outbox));
    event.id = HF_STR("x");
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    test_advance_ms(k->t, 59000);
    CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    test_advance_ms(k->t, 2000);
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    CHECK_INT(2, waiting(k, outbox));
    hf_outbox_close(outbox);
}

/* (4) The answer gets lost: it was us who took the id. */
KIT_TEST(outbox_emit, our_own_id_is_no_repetition)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_outbox *outbox = open_outbox(k, 4, 0);

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++)
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            struct hf_event event = event_of("t", "k");
            size_t before = waiting(k, outbox);

            event.id = hf_scope_format(k->scope, "id-%d-%d", without, (int)i);
            event.time_us = k->t->wall_us;
            outbox->transactions = !without;
            kit_fault(k, kinds[i], without ? "PutItem" : "TransactWriteItems", 1);
            CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
            kit_no_faults(k);
            CHECK_INT(before + 1, waiting(k, outbox));
        }
    hf_outbox_close(outbox);
}

/* (4) Without transactions a repetition is recognised wherever the event is by now. */
KIT_TEST(outbox_emit, without_transactions_the_place_is_the_id)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 3600);
    struct hf_event event = {.type = HF_STR("t"), .id = HF_STR("x")};
    struct hf_outbox_event *found;
    struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};

    outbox->transactions = false;
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "has to have its time"));
    event.time_us = k->t->wall_us;
    for (int i = 0; i < 2; i++) { /* failed; published */
        event.id = i ? HF_STR("y") : HF_STR("x");
        CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
        CHECK_INT(1, read_all(k, outbox, hf__outbox_bucket(outbox, event.id), &found));
        if (i)
            CHECK_OK(hf__outbox_done(k->scope, outbox,
                                     (const struct hf_outbox_event *const[]){&found[0]}, 1));
        else
            CHECK_OK(hf__outbox_note_failure(k->scope, outbox, &found[0], &error, 0, true));
        CHECK_INT(0, waiting(k, outbox));
        CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    }
    CHECK_STATUS(HF_UNSUPPORTED,
                 hf_outbox_emit(k->scope, outbox, (struct hf_event[]){event, event}, 2, NULL));
    hf_outbox_close(outbox);
}

/* ---- transactions --------------------------------------------------------------------------- */

struct order {
    struct hf_outbox *outbox;
    struct hf_str table;
    const char *id;
    size_t events;
    bool at_once, fails;
};

static enum hf_status place_order(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct order *order = user;
    struct hf_put_item put = {.table = order->table,
                              .item = HF_ITEM(s, HF_S("id", hf_str_from(order->id))),
                              .condition = HF_STR("attribute_not_exists(#id)"),
                              .names = HF_ITEM(s, HF_S("#id", HF_STR("id")))};
    struct hf_event events[HF_OUTBOX_EMIT_MAX];

    for (size_t i = 0; i < order->events; i++)
        events[i] = event_of("order.placed", order->id);
    TRY(hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put}));
    TRY(hf_outbox_emit(s, order->outbox, events, order->events,
                       HF_OPTIONS(hf_emit_options, .join_tx = !order->at_once)));
    return order->fails ? hf_scope_fail(s, HF_INVALID, "no") : HF_OK;
}

KIT_TEST(outbox_emit, the_transaction_of_the_scope_is_joined_by_who_asks_for_it)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct order order = {.outbox = outbox, .table = k->other, .id = "1", .events = 2};
    struct listener listener = {0};

    kit_make_table(k, k->other);
    CHECK(hf__outbox_listen(outbox, note, &listener));
    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        hf_outbox_close(outbox);
        return;
    }
    CHECK_OK(hf_tx_run(k->scope, k->db, place_order, &order, NULL));
    CHECK_INT(2, waiting(k, outbox));
    CHECK_INT(1, listener.calls);
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_run(k->scope, k->db, place_order, &order, NULL));
    CHECK_INT(2, waiting(k, outbox)); /* with the rest or not at all */
    CHECK_INT(1, listener.calls);
    order.id = "2";
    order.fails = true;
    CHECK_STATUS(HF_INVALID, hf_tx_run(k->scope, k->db, place_order, &order, NULL));
    CHECK_INT(2, waiting(k, outbox));
    order.at_once = true; /* as it is by itself */
    CHECK_STATUS(HF_INVALID, hf_tx_run(k->scope, k->db, place_order, &order, NULL));
    CHECK_INT(4, waiting(k, outbox));
    order.at_once = order.fails = false;
    order.events = HF_OUTBOX_EMIT_MAX;
    CHECK_STATUS(HF_LIMIT, hf_tx_run(k->scope, k->db, place_order, &order, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "with 1 actions has room for"));
    order.events = HF_OUTBOX_EMIT_MAX - 1;
    CHECK_OK(hf_tx_run(k->scope, k->db, place_order, &order, NULL));
    CHECK_INT(4 + HF_OUTBOX_EMIT_MAX - 1, waiting(k, outbox));
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_emit, into_a_transaction_with_ids)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event events[51];
    char names[51][24];
    struct hf_tx *tx;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        hf_outbox_close(outbox);
        return;
    }
    for (size_t i = 0; i < 51; i++) {
        snprintf(names[i], sizeof(names[i]), "id-%zu", i);
        events[i] = event_of("t", "k");
        events[i].id = hf_str_from(names[i]);
    }
    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_STATUS(HF_LIMIT, hf_outbox_emit_into(k->scope, outbox, tx, events, 51, NULL));
    CHECK_INT(0, hf_tx_len(tx));
    CHECK_STATUS(HF_LIMIT, hf_outbox_emit(k->scope, outbox, events, 51, NULL));
    CHECK_OK(hf_outbox_emit_into(k->scope, outbox, tx, events, 50, NULL));
    CHECK_INT(0, waiting(k, outbox));
    CHECK_OK(hf_tx_commit(k->scope, tx, NULL));
    CHECK_INT(50, waiting(k, outbox));
    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_OK(hf_outbox_emit_into(k->scope, outbox, tx, events + 49, 2, NULL));
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_commit(k->scope, tx, NULL));
    CHECK_INT(50, waiting(k, outbox));
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_emit, an_action_for_ones_own_transaction)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event event = event_of("t", "k");
    struct hf_transact_write action;
    struct hf_outbox_event *found;
    struct hf_str id;

    CHECK_OK(hf_outbox_emit_tx(k->scope, outbox, &event, &action, &id));
    CHECK_INT(0, waiting(k, outbox));
    CHECK(action.put);
    CHECK_OK(hf_put_item(k->scope, k->db, action.put, NULL));
    CHECK_INT(1, read_all(k, outbox, hf__outbox_bucket(outbox, HF_STR("k")), &found));
    CHECK(hf_str_equal(id, found[0].event.id));
    event.id = HF_STR("x");
    CHECK_STATUS(HF_INVALID, hf_outbox_emit_tx(k->scope, outbox, &event, &action, NULL));
    CHECK(!action.put);
    hf_outbox_close(outbox);
}

/* Any number, each for itself; what the database hands back is sent again. */
KIT_TEST(outbox_emit, any_number_each_alone)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_event events[120];

    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        events[i] = (struct hf_event){.type = HF_STR("t")};
    kit_fault(k, HF_FAULT_UNPROCESSED, "BatchWriteItem", 3);
    CHECK_OK(hf_outbox_emit(k->scope, outbox, events, ARRAY_LEN(events),
                            HF_OPTIONS(hf_emit_options, .each_alone = true)));
    CHECK_INT(ARRAY_LEN(events), waiting(k, outbox));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "BatchWriteItem", 2);
    CHECK_OK(hf_outbox_emit(k->scope, outbox, events, 30,
                            HF_OPTIONS(hf_emit_options, .each_alone = true)));
    kit_no_faults(k);
    CHECK_INT(ARRAY_LEN(events) + 30, waiting(k, outbox));
    hf_outbox_close(outbox);
}

/* ---- outbox_work.c -------------------------------------------------------------------------- */

KIT_TEST(outbox_work, what_is_due_is_read_in_parts)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct outbox_reading r = {.skew_ms = OUTBOX_SKEW_MS, .limit = 10, .more = true};
    size_t total = 0;

    for (int i = 0; i < 25; i++)
        emit(k, outbox, "t", "k");
    for (int rounds = 0; r.more; rounds++) {
        CHECK(rounds < 5);
        r.now_ms = hf__env_wall_ms(&outbox->env);
        CHECK_OK(hf__outbox_read(k->scope, outbox, &r));
        for (size_t i = 0; i < r.len; i++) {
            CHECK(!r.after.len || memcmp(r.events[i].ref.ptr, r.after.ptr, OUTBOX_SEQ_LEN) > 0);
            r.after = r.events[i].ref;
        }
        total += r.len;
    }
    CHECK_INT(25, total);
    hf_outbox_close(outbox);
}

/* Scheduled ones come when they are due; a clock that is ahead delays nothing. */
KIT_TEST(outbox_work, not_before_it_is_due)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_event event = event_of("later", "k");
    struct hf_outbox_event *events;
    int64_t due_ms, now_ms = hf__env_wall_ms(&outbox->env);

    CHECK_OK(hf__outbox_next_due(k->scope, outbox, 0, now_ms, &due_ms));
    CHECK(due_ms == INT64_MAX);
    event.due_us = (now_ms + 5000) * 1000;
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    k->t->wall_us += 10000000;
    emit(k, outbox, "ahead", "k");
    k->t->wall_us -= 10000000;
    CHECK_INT(1, read_all(k, outbox, 0, &events));
    CHECK_STR("ahead", events[0].event.type);
    CHECK_OK(hf__outbox_next_due(k->scope, outbox, 0, now_ms, &due_ms));
    CHECK_INT(now_ms + 5000, due_ms);
    test_advance_ms(k->t, 4999);
    CHECK_INT(1, read_all(k, outbox, 0, &events));
    test_advance_ms(k->t, 1);
    CHECK_INT(2, read_all(k, outbox, 0, &events));
    CHECK_STR("later", events[0].event.type);
    CHECK_OK(hf__outbox_next_due(k->scope, outbox, 0, now_ms + 5000, &due_ms));
    CHECK(due_ms == INT64_MAX);
    hf_outbox_close(outbox);
}

/* What is no event does not keep the others, and stays where no dead letter is to be made. */
KIT_TEST(outbox_work, what_is_no_event_is_not_in_the_way)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_outbox_event *events;
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(k->scope, HF_S("pk", HF_STR("p.000")),
                                              HF_S("sk", HF_STR("0000000000")))};

    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    emit(k, outbox, "t", "k");
    CHECK_INT(1, read_all(k, outbox, 0, &events));
    CHECK_STATUS(HF_CORRUPT, hf__outbox_view(k->scope, outbox, put.item, &events[0]));
    hf_outbox_close(outbox);
}

/* (2) Gone, and no failure when it is gone already. */
KIT_TEST(outbox_work, what_was_delivered_leaves)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    const struct hf_outbox_event *all[60];
    struct hf_outbox_event *events;

    for (int i = 0; i < 60; i++)
        emit(k, outbox, "t", "k");
    CHECK_INT(60, read_all(k, outbox, 0, &events));
    for (int i = 0; i < 60; i++)
        all[i] = &events[i];
    kit_fault(k, HF_FAULT_UNPROCESSED, "BatchWriteItem", 2);
    CHECK_OK(hf__outbox_done(k->scope, outbox, all, 30));
    CHECK_INT(30, waiting(k, outbox));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "BatchWriteItem", 1);
    CHECK_OK(hf__outbox_done(k->scope, outbox, all, 60));
    CHECK_INT(0, waiting(k, outbox));
    hf_outbox_close(outbox);
}

/* (3) A failure is counted once, and only by one who knows the count before. */
KIT_TEST(outbox_work, failures_are_counted_once)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_error error = {.status = HF_IO, .message = HF_STR("the line to 10.0.0.1 is down")};
    struct hf_outbox_event *events, *stale;
    int64_t now_us;
    bool failed;

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
        outbox->transactions = !without;
        emit(k, outbox, "t", without ? "k2" : "k1");
        CHECK_INT(1, read_all(k, outbox, 0, &events));
        CHECK_INT(1, read_all(k, outbox, 0, &stale));
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
        now_us = k->t->wall_us;
        CHECK_OK(
            hf__outbox_note_failure(k->scope, outbox, &events[0], &error, now_us + 5000, false));
        CHECK_INT(1, events[0].attempts);
        CHECK_STATUS(HF_LOST,
                     hf__outbox_note_failure(k->scope, outbox, &stale[0], &error, 0, false));
        CHECK_STATUS(HF_LOST,
                     hf__outbox_note_failure(k->scope, outbox, &stale[0], &error, 0, true));
        CHECK_INT(1, read_all(k, outbox, 0, &events));
        CHECK_INT(1, events[0].attempts);
        CHECK_INT(HF_IO, events[0].error);
        CHECK_STR("the line to 10.0.0.1 is down", events[0].error_text);
        CHECK_STR("HF_IO: the line to #.#.#.# is down", events[0].cause);
        CHECK_INT(now_us + 5000, events[0].next_us);
        CHECK_INT(now_us, events[0].tried_us);
        CHECK_OK(hf__outbox_key_failed(k->scope, outbox, 0, events[0].event.key, &failed));
        CHECK(!failed);
        kit_fault(k, HF_FAULT_LOST_ANSWER, without ? "DeleteItem" : "TransactWriteItems", 1);
        CHECK_OK(hf__outbox_note_failure(k->scope, outbox, &events[0], &error, 0, true));
        kit_no_faults(k);
        CHECK_INT(HF_OUTBOX_FAILED, events[0].state);
        CHECK_INT(0, waiting(k, outbox));
        CHECK_OK(hf__outbox_key_failed(k->scope, outbox, 0, events[0].event.key, &failed));
        CHECK(failed);
        CHECK_OK(hf__outbox_key_failed(k->scope, outbox, 0, HF_STR("other"), &failed));
        CHECK(!failed);
        CHECK_STATUS(HF_LOST,
                     hf__outbox_note_failure(k->scope, outbox, &events[0], &error, 0, false));
    }
    hf_outbox_close(outbox);
}

/* The scope's own error is told, although the calls that note it forget it. */
KIT_TEST(outbox_work, the_error_may_be_the_scopes)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_outbox_event *events;

    emit(k, outbox, "t", "k");
    CHECK_INT(1, read_all(k, outbox, 0, &events));
    (void)hf_scope_fail(k->scope, HF_TIMEOUT, "%s", "slow");
    CHECK_OK(
        hf__outbox_note_failure(k->scope, outbox, &events[0], hf_scope_error(k->scope), 1, false));
    CHECK_INT(1, read_all(k, outbox, 0, &events));
    CHECK_INT(HF_TIMEOUT, events[0].error);
    CHECK_STR("slow", events[0].error_text);
    hf_outbox_close(outbox);
}
