/*
 * outbox/outbox_foreign_test.c: events that other programs put into the table of an outbox, as
 * items: in every form that clients write, and with every mistake.
 */
#include "kit.h"
#include "outbox/outbox.h"
#include "relay_kit.h"

enum { BUCKETS = 2 };

/* The last event that arrived, as texts. */
struct arrived {
    char payload[256];
    char headers[256];
    int count;
    bool fails;
};

static enum hf_status arrived_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                   size_t len)
{
    struct arrived *arrived = self;

    for (size_t i = 0; i < len; i++) {
        const struct hf_event *event = &deliveries[i].event->event;
        struct hf_str headers =
            event->headers.ptr ? hf_item_to_json(s, event->headers) : HF_STR("");

        snprintf(arrived->payload, sizeof(arrived->payload), "%.*s", (int)event->payload.len,
                 (const char *)event->payload.ptr);
        snprintf(arrived->headers, sizeof(arrived->headers), "%.*s", HF_FMT(headers));
        arrived->count++;
        deliveries[i].status = arrived->fails ? HF_IO : HF_OK;
        deliveries[i].error = arrived->fails ? HF_STR("the sink is on fire") : HF_STR("");
    }
    return HF_OK;
}

struct stage {
    struct kit *k;
    struct hf_outbox *outbox;
    struct arrived arrived;
    struct hf_sink *sink;
    struct hf_relay *relay;
};

static void open_stage_kept(struct kit *k, struct stage *stage, struct hf_relay_options o,
                            uint32_t history_s)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops), .name = "arrived", .send = arrived_send};

    *stage = (struct stage){.k = k};
    o.size = sizeof(o);
    o.no_threads = true;
    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = BUCKETS,
                                       .history_s = history_s),
                            &stage->outbox));
    CHECK_OK(hf_sink_new(k->scope, &ops, &stage->arrived, &stage->sink));
    CHECK_OK(hf_relay_open(k->scope, stage->outbox, stage->sink, &o, &stage->relay));
}

static void open_stage(struct kit *k, struct stage *stage, struct hf_relay_options o)
{
    open_stage_kept(k, stage, o, 0);
}

static void close_stage(struct stage *stage)
{
    hf_relay_close(stage->relay);
    hf_sink_close(stage->sink);
    hf_outbox_close(stage->outbox);
}

/* Let so much time pass, and the relay do what is due meanwhile: nobody tells it of items of
 * others, it looks. */
static void run_for(struct stage *stage, int64_t ms)
{
    struct hf_scope *s = hf_scope_new(test_env(stage->k->t));
    int64_t end_us = stage->k->t->elapsed_us + ms * 1000;

    while (stage->k->t->elapsed_us < end_us) {
        uint32_t wait_ms;

        hf_scope_reset(s);
        CHECK_OK(hf_relay_step(s, stage->relay, &wait_ms));
        test_advance_ms(stage->k->t, wait_ms ? wait_ms : 1);
    }
    hf_scope_free(s);
}

static void put_json(struct kit *k, const char *json)
{
    struct hf_put_item put = {.table = k->table};

    CHECK_OK(hf_item_from_json(k->scope, hf_str_from(json), &put.item));
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
}

/* ---- forms ---------------------------------------------------------------------------------- */

KIT_TEST(outbox_foreign, payloads_and_headers_of_any_form_arrive_whole)
{
    static const struct {
        const char *attributes, *payload, *headers;
    } forms[] = {
        {"'payload':{'B':'eyJhIjoxfQ=='}", "{'a':1}", ""},
        {"'payload':{'S':'{\\'a\\': 1}'}", "{'a': 1}", ""},
        {"'payload':{'S':'just text'},'content_type':{'S':'text/plain'}", "just text", ""},
        {"'payload':{'M':{'a':{'N':'1'},'b':{'L':[{'S':'x'},{'NULL':true},{'BOOL':false},"
         "{'M':{}},{'L':[]}]},'c':{'NS':['1','2.5']},'d':{'SS':['y']},'e':{'B':'AAE='}}}",
         "{'a':1,'b':['x',null,false,{},[]],'c':[1,2.5],'d':['y'],'e':'AAE='}", ""},
        {"'payload':{'L':[{'N':'1'},{'S':'two \\\\n'}]}", "[1,'two \\\\n']", ""},
        {"'payload':{'N':'42'}", "42", ""},
        {"'payload':{'NULL':true}", "null", ""},
        {"'headers':{'M':{'h':{'S':'v'}}}", "", "{'h':{'S':'v'}}"},
        {"'headers':{'S':'{\\'h\\': \\'v\\', \\'n\\': -1.5, \\'t\\': true, \\'z\\': null, "
         "\\'l\\': [1], \\'m\\': {}}'}",
         "",
         "{'h':{'S':'v'},'l':{'L':[{'N':'1'}]},'m':{'M':{}},'n':{'N':'-1.5'},"
         "'t':{'BOOL':true},'z':{'NULL':true}}"},
        {"'time':{'N':'1700000000000000'}", "", ""},
    };
    struct stage stage;

    open_stage(k, &stage, (struct hf_relay_options){0});
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        char json[1024], expected[256], headers[256];
        struct outbox_place place;

        hf__outbox_place_make(stage.outbox, 0, false, 0, &place);
        snprintf(json, sizeof(json), "{'pk':{'S':'p.000'},'sk':{'S':'%s'},'type':{'S':'t'},%s}",
                 place.seq, forms[i].attributes);
        snprintf(expected, sizeof(expected), "%s", forms[i].payload);
        snprintf(headers, sizeof(headers), "%s", forms[i].headers);
        for (char *at = json; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        for (char *at = expected; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        for (char *at = headers; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        put_json(k, json);
        run_for(&stage, 3000);
        CHECK_INT((int)i + 1, stage.arrived.count);
        CHECK_STR(expected, hf_str_from(stage.arrived.payload));
        CHECK_STR(headers, hf_str_from(stage.arrived.headers));
    }
    close_stage(&stage);
}

/* Those of docs/emitting.md, which emitters in other languages go by. */
TEST(outbox_foreign, buckets_are_what_the_document_says)
{
    const struct hf_outbox outbox = {.buckets = 16};

    (void)t;
    CHECK_INT(4, hf__outbox_bucket(&outbox, HF_STR("order-7")));
    CHECK_INT(1, hf__outbox_bucket(&outbox, HF_STR("ann")));
    CHECK_INT(13, hf__outbox_bucket(&outbox, HF_STR("\xc3\xbc")));
}

/* The attribute and the place make an event urgent; another attribute of the name does no harm. */
KIT_TEST(outbox_foreign, urgent_ones_have_the_attribute_and_the_place)
{
    static const struct {
        bool placed;
        const char *attribute;
        bool urgent;
    } forms[] = {{true, "{\"BOOL\":true}", true},
                 {true, "{\"BOOL\":false}", false},
                 {true, "{\"S\":\"very\"}", false},
                 {false, "{\"BOOL\":true}", false}};
    struct stage stage;

    open_stage(k, &stage, (struct hf_relay_options){0});
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct outbox_place place;
        struct hf_outbox_event found;

        hf__outbox_place_make(stage.outbox, 0, forms[i].placed, 0, &place);
        put_json(k, hf_scope_format(k->scope,
                                    "{\"pk\":{\"S\":\"p.000\"},\"sk\":{\"S\":\"%s\"},"
                                    "\"type\":{\"S\":\"t\"},\"urgent\":%s}",
                                    place.seq, forms[i].attribute)
                        .ptr);
        CHECK_OK(hf_outbox_get(k->scope, stage.outbox, hf_str_from(place.seq), &found));
        CHECK(found.event.urgent == forms[i].urgent);
        run_for(&stage, 3000);
        CHECK_INT((int)i + 1, stage.arrived.count);
    }
    close_stage(&stage);
}

/* The digits of docs/emitting.md, of 2026-11-16T12:00:00Z. */
TEST(outbox_foreign, urgent_places_are_what_the_document_says)
{
    const int64_t ms = INT64_C(1794830400000);
    char seq[OUTBOX_SEQ_LEN + 1];

    (void)t;
    hf__outbox_seq_floor(ms, seq);
    CHECK_STR("01m7j3myg0", hf_str_of(seq, 10));
    hf__outbox_seq_floor(ms - OUTBOX_URGENT_MS, seq);
    CHECK_STR("006a2x74g0", hf_str_of(seq, 10));
}

/* ---- mistakes ------------------------------------------------------------------------------- */

#define GOOD                                                                                       \
    "0000000001"                                                                                   \
    "00"                                                                                           \
    "00000001000001"

static const struct {
    const char *pk, *sk, *attributes, *text;
} mistakes[] = {
    {"p.000", GOOD, "\"colour\":{\"S\":\"blue\"}", "it has no type"},
    {"p.000", GOOD, "\"type\":{\"N\":\"1\"}", "its type is not an S"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"key\":{\"N\":\"7\"}", "its key is not an S"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"time\":{\"S\":\"now\"}", "its time is not an N"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"due\":{\"N\":\"1.5\"}", "its due is not an N"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"sequence\":{\"N\":\"-1\"}", "its sequence is not"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"attempts\":{\"S\":\"0\"}", "its attempts is not"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"headers\":{\"S\":\"[1]\"}", "not a JSON object"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"headers\":{\"S\":\"{\"}", "not a JSON object"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"headers\":{\"N\":\"1\"}", "its headers are neither"},
    {"p.000", GOOD, "\"type\":{\"S\":\"t\"},\"urgent\":{\"BOOL\":true},\"due\":{\"N\":\"1\"}",
     "it is urgent, and it is due at a time"},
    {"p.001", GOOD, "\"type\":{\"S\":\"t\"}", "its pk and its sk name different buckets"},
    {"p.000", "0001#order", "\"type\":{\"S\":\"t\"}", "its sk is not of 10 digits"},
    {"p.000", "order-17", "\"type\":{\"S\":\"t\"}", "its sk is not of 10 digits"},
    {"p.001", "{braces}", "\"type\":{\"S\":\"t\"}", "its sk is not of 10 digits"},
    {"p.007",
     "0000000001"
     "07"
     "00000001000001",
     "\"type\":{\"S\":\"t\"}", "its bucket is 7, and buckets are 0 to 1"},
    {"p.003", GOOD, "\"type\":{\"S\":\"t\"}", "its pk and its sk name different buckets"},
};

static void put_mistake(struct kit *k, size_t i)
{
    put_json(k, hf_scope_format(k->scope,
                                "{\"pk\":{\"S\":\"%s\"},\"sk\":{\"S\":\"%s\"},%s,"
                                "\"payload\":{\"S\":\"p\"},\"ours\":{\"S\":\"kept\"}}",
                                mistakes[i].pk, mistakes[i].sk, mistakes[i].attributes)
                    .ptr);
}

static void check_dead_letter(struct stage *stage, size_t i)
{
    struct hf_scope *s = stage->k->scope;
    struct hf_outbox_stats stats;
    struct hf_event_list list;

    CHECK_OK(hf_outbox_failed(s, stage->outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    if (!strstr(hf_scope_format(s, "%.*s", HF_FMT(list.events[0].error_text)).ptr,
                mistakes[i].text))
        fail_msg("%s: %.*s", mistakes[i].text, HF_FMT(list.events[0].error_text));
    CHECK_INT(HF_CORRUPT, list.events[0].error);
    CHECK_STR("p", hf_str_of((const char *)list.events[0].event.payload.ptr,
                             list.events[0].event.payload.len));
    CHECK_STR("kept", hf_value_str(hf_item_get(list.events[0].item, HF_STR("ours"))));
    CHECK_OK(hf_outbox_stats(s, stage->outbox, 0, &stats));
    CHECK_INT(0, stats.pending + stats.unreadable);
    CHECK_INT(1, stats.failed);
    CHECK_INT(1, stats.causes_len);
}

static void try_mistakes(struct kit *k, bool competing)
{
    struct hf_event good = {.type = HF_STR("t"), .payload = hf_bytes_of("good", 4)};
    struct hf_relay_metrics metrics;
    struct stage stage;
    uint64_t done;

    open_stage(k, &stage, (struct hf_relay_options){.competing = competing});
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        put_mistake(k, i);
        CHECK_OK(hf_outbox_emit(k->scope, stage.outbox, &good, 1, NULL));
        run_for(&stage, 70000); /* where nobody reads, it is looked once a minute */
        CHECK_INT((int)i + 1, stage.arrived.count); /* the good one */
        check_dead_letter(&stage, i);
        hf_relay_metrics(stage.relay, &metrics);
        CHECK_INT(i + 1, metrics.unreadable);
        CHECK_OK(hf_outbox_discard_all(k->scope, stage.outbox, NULL, &done));
        CHECK_INT(1, done);
        hf_scope_reset(k->scope);
    }
    close_stage(&stage);
}

KIT_TEST(outbox_foreign, what_cannot_be_read_becomes_a_dead_letter_with_its_cause)
{
    try_mistakes(k, false);
}

KIT_TEST(outbox_foreign, a_claim_makes_a_dead_letter_of_it_too)
{
    try_mistakes(k, true);
}

/* What was in a bucket that does not exist is in one that does; what still is wrong comes back. */
KIT_TEST(outbox_foreign, such_a_dead_letter_can_be_retried)
{
    struct hf_event_list list;
    struct stage stage;
    uint64_t done;

    open_stage(k, &stage, (struct hf_relay_options){0});
    put_mistake(k, 14);
    put_mistake(k, 0);
    run_for(&stage, 3000);
    CHECK_OK(hf_outbox_retry_all(k->scope, stage.outbox, NULL, &done));
    CHECK_INT(2, done);
    run_for(&stage, 70000);
    CHECK_INT(1, stage.arrived.count);
    CHECK_STR("p", hf_str_from(stage.arrived.payload));
    CHECK_OK(hf_outbox_failed(k->scope, stage.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    close_stage(&stage);
}

/* Looking changes nothing: statistics tell of it, and a dry run leaves it where it is. */
KIT_TEST(outbox_foreign, who_only_looks_leaves_it)
{
    struct hf_outbox_stats stats;
    struct stage stage;

    open_stage(k, &stage, (struct hf_relay_options){.dry_run = true});
    put_mistake(k, 0);
    put_mistake(k, 12);
    run_for(&stage, 3000);
    CHECK_OK(hf_outbox_stats(k->scope, stage.outbox, 0, &stats));
    CHECK_INT(2, stats.unreadable);
    CHECK_INT(0, stats.pending + stats.failed);
    close_stage(&stage);
}

/* Two processes that reject the same item put it into one place. */
KIT_TEST(outbox_foreign, it_becomes_one_dead_letter)
{
    struct stage one, other;
    struct hf_event_list list;
    struct hf_query query = {.table = k->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(k->scope, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(k->scope, HF_S(":pk", HF_STR("p.000"))),
                             .consistent = HF_YES};
    struct hf_query_result page;
    struct hf_outbox_event event;

    open_stage(k, &one, (struct hf_relay_options){.competing = true});
    open_stage(k, &other, (struct hf_relay_options){.competing = true});
    put_mistake(k, 12);
    CHECK_OK(hf_query(k->scope, k->db, &query, &page));
    CHECK_STATUS(HF_CORRUPT, hf__outbox_view(k->scope, one.outbox, page.items[0], &event));
    hf__outbox_reject(k->scope, one.outbox, page.items[0]);
    CHECK_STATUS(HF_CORRUPT, hf__outbox_view(k->scope, other.outbox, page.items[0], &event));
    hf__outbox_reject(k->scope, other.outbox, page.items[0]);
    CHECK_INT(1, hf__outbox_unreadable(one.outbox));
    CHECK_INT(0, hf__outbox_unreadable(other.outbox));
    CHECK_OK(hf_outbox_failed(k->scope, one.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    close_stage(&other);
    close_stage(&one);
}

/* An item that is as large as one may be cannot become a dead letter, as its mistake has no room.
 * It stays, and those behind it arrive. */
KIT_TEST(outbox_foreign, what_has_no_room_for_its_cause_is_not_in_the_way)
{
    enum { ITEMS = 3, ITEM_MAX = 400 * 1024 };
    struct hf_event good = {.type = HF_STR("t"), .payload = hf_bytes_of("good", 4)};
    char *text = hf_scope_alloc(k->scope, ITEM_MAX);
    struct hf_outbox_stats stats;
    struct stage stage;

    memset(text, 'x', ITEM_MAX);
    open_stage(k, &stage, (struct hf_relay_options){0});
    for (int i = 0; i < ITEMS; i++) {
        struct hf_item item =
            HF_ITEM(k->scope, HF_S("pk", hf_scope_format(k->scope, "p.%03d", i % BUCKETS)),
                    HF_S("sk", hf_scope_format(k->scope, "0000%04d", i)),
                    HF_S("x", hf_str_of(text, ITEM_MAX - 2 - 5 - 2 - 8 - 1)));

        CHECK_OK(hf_put_item(k->scope, k->db,
                             &(struct hf_put_item){.table = k->table, .item = item}, NULL));
    }
    for (int i = 0; i < 4; i++)
        CHECK_OK(hf_outbox_emit(k->scope, stage.outbox, &good, 1, NULL));
    run_for(&stage, 70000);
    CHECK_INT(4, stage.arrived.count);
    CHECK_OK(hf_outbox_stats(k->scope, stage.outbox, 0, &stats));
    CHECK_INT(ITEMS, stats.unreadable);
    CHECK_INT(0, stats.pending + stats.failed);
    close_stage(&stage);
}

/* ---- large ones ----------------------------------------------------------------------------- */

enum { FULL = 400 * 1024, LEAVES_ROOM = HF_EVENT_SIZE_MAX, ATTEMPTS = 3 };

/* An event, or without a type what cannot be read, of so many bytes as DynamoDB counts. */
static void put_sized(struct stage *stage, size_t size, bool has_type)
{
    struct hf_scope *s = stage->k->scope;
    char *text = hf_scope_alloc(s, size);
    struct hf_put_item put = {.table = stage->k->table};
    struct outbox_place place;
    size_t rest = size - (2 + 5) - (2 + OUTBOX_SEQ_LEN) - (4 + 1) - 7;

    memset(text, 'x', size);
    hf__outbox_place_make(stage->outbox, 0, false, 0, &place);
    put.item = has_type
                   ? HF_ITEM(s, HF_S("pk", HF_STR("p.000")), HF_S("sk", hf_str_from(place.seq)),
                             HF_S("payload", hf_str_of(text, rest)), HF_S("type", HF_STR("t")))
                   : HF_ITEM(s, HF_S("pk", HF_STR("p.000")), HF_S("sk", hf_str_from(place.seq)),
                             HF_S("payload", hf_str_of(text, rest - 1)), HF_N("type", 1));
    CHECK_INT(size, hf_item_size(put.item));
    CHECK_OK(hf_put_item(s, stage->k->db, &put, NULL));
}

static struct hf_outbox_event only_failed(struct stage *stage)
{
    struct hf_scope *s = stage->k->scope;
    struct hf_outbox_stats stats;
    struct hf_event_list list;

    CHECK_OK(hf_outbox_failed(s, stage->outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_OK(hf_outbox_stats(s, stage->outbox, 0, &stats));
    CHECK_INT(0, stats.pending + stats.unreadable);
    CHECK_INT(1, stats.failed);
    return list.events[0];
}

static const size_t sizes[] = {LEAVES_ROOM, LEAVES_ROOM + 1, FULL - 2000, FULL - 300,
                               FULL - 80,   FULL - 40,       FULL - 20,   FULL - 14,
                               FULL - 13,   FULL - 1,        FULL};

/* However little room an item leaves, it is given up, listed, and can be retried and discarded. */
KIT_TEST(outbox_foreign, a_large_event_that_fails_is_given_up)
{
    struct hf_outbox_event failed;
    struct stage stage;
    uint64_t done;

    open_stage(k, &stage, (struct hf_relay_options){.max_attempts = ATTEMPTS, .backoff_ms = 10});
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        bool room = sizes[i] <= LEAVES_ROOM;

        stage.arrived = (struct arrived){.fails = true};
        put_sized(&stage, sizes[i], true);
        run_for(&stage, 5000);
        CHECK_INT(room ? ATTEMPTS : 1, stage.arrived.count);
        failed = only_failed(&stage);
        CHECK_INT(sizes[i] <= FULL - 300 || room ? HF_IO : failed.error, failed.error);
        if (sizes[i] <= FULL - 2000)
            CHECK_STR("the sink is on fire", failed.error_text);
        stage.arrived.fails = false;
        CHECK_OK(hf_outbox_retry_all(k->scope, stage.outbox, NULL, &done));
        CHECK_INT(1, done);
        stage.arrived.fails = true;
        run_for(&stage, 5000);
        (void)only_failed(&stage);
        CHECK_OK(hf_outbox_discard_all(k->scope, stage.outbox, NULL, &done));
        CHECK_INT(1, done);
        hf_scope_reset(k->scope);
    }
    close_stage(&stage);
}

/* Nobody can claim what leaves no room for a claim. */
KIT_TEST(outbox_foreign, a_large_event_is_not_claimed)
{
    struct hf_outbox_event failed;
    struct stage stage;
    uint64_t done;

    open_stage(k, &stage, (struct hf_relay_options){.competing = true});
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        stage.arrived = (struct arrived){.count = 0};
        put_sized(&stage, sizes[i], true);
        run_for(&stage, 3000);
        CHECK_INT(sizes[i] <= LEAVES_ROOM, stage.arrived.count);
        if (stage.arrived.count)
            continue;
        failed = only_failed(&stage);
        if (sizes[i] <= FULL - 2000)
            CHECK(strstr(hf_scope_format(k->scope, "%.*s", HF_FMT(failed.error_text)).ptr,
                         "leave room for a claim"));
        CHECK_OK(hf_outbox_discard_all(k->scope, stage.outbox, NULL, &done));
        hf_scope_reset(k->scope);
    }
    close_stage(&stage);
}

/* Whoever takes over from one that ended without a word counts what it begins: what has no room for
 * that is not begun. */
KIT_TEST(outbox_foreign, a_large_event_is_not_tried_after_a_crash)
{
    struct stage silent, stage;
    struct hf_outbox_event failed;

    open_stage(k, &silent, (struct hf_relay_options){0});
    run_for(&silent, 1000); /* it has the buckets, and is silent then */
    put_sized(&silent, FULL - 2000, true);
    open_stage(k, &stage, (struct hf_relay_options){0});
    run_for(&stage, 90000);
    CHECK_INT(0, silent.arrived.count + stage.arrived.count);
    failed = only_failed(&stage);
    CHECK(strstr(hf_scope_format(k->scope, "%.*s", HF_FMT(failed.error_text)).ptr,
                 "too large for that to be counted"));
    close_stage(&stage);
    close_stage(&silent);
}

/* What was delivered is not delivered again because the history has no room for it. */
KIT_TEST(outbox_foreign, a_large_event_goes_to_the_history)
{
    struct hf_event_list list;
    struct stage stage;

    open_stage_kept(k, &stage, (struct hf_relay_options){0}, 3600);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        put_sized(&stage, sizes[i], true);
    run_for(&stage, 70000);
    CHECK_INT((int)ARRAY_LEN(sizes), stage.arrived.count);
    CHECK_OK(hf_outbox_history(k->scope, stage.outbox, NULL, &list));
    CHECK_INT(ARRAY_LEN(sizes) - 2, list.events_len); /* two have no room for their end */
    close_stage(&stage);
}

/* What cannot be read goes without its cause when there is no room for that. */
KIT_TEST(outbox_foreign, a_large_item_that_cannot_be_read_becomes_a_dead_letter)
{
    struct stage stage;
    uint64_t done;

    open_stage(k, &stage, (struct hf_relay_options){0});
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        put_sized(&stage, sizes[i], false);
        run_for(&stage, 3000);
        (void)only_failed(&stage);
        CHECK_OK(hf_outbox_discard_all(k->scope, stage.outbox, NULL, &done));
        CHECK_INT(1, done);
        hf_scope_reset(k->scope);
    }
    CHECK_INT(0, stage.arrived.count);
    close_stage(&stage);
}

/* ---- mended meanwhile ----------------------------------------------------------------------- */

/* Whoever read the item before it was mended does not take it away. */
KIT_TEST(outbox_foreign, what_was_mended_meanwhile_stays)
{
    static const char *const mended[] = {
        "\"type\":{\"S\":\"t\"},\"ours\":{\"S\":\"kept\"}", /* the attribute that was missing */
        "\"ours\":{\"S\":\"changed\"}",                     /* one that nobody reads */
        "\"colour\":{\"S\":\"red\"}",
    };
    struct hf_query query = {.table = k->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(k->scope, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(k->scope, HF_S(":pk", HF_STR("p.000"))),
                             .consistent = HF_YES};
    struct hf_outbox_event event;
    struct hf_query_result page;
    struct hf_event_list list;
    struct stage stage;

    open_stage(k, &stage, (struct hf_relay_options){0});
    for (size_t i = 0; i < ARRAY_LEN(mended); i++) {
        put_mistake(k, 0);
        CHECK_OK(hf_query(k->scope, k->db, &query, &page));
        CHECK_INT(1, page.items_len);
        put_json(k, hf_scope_format(k->scope, "{\"pk\":{\"S\":\"p.000\"},\"sk\":{\"S\":\"%s\"},%s}",
                                    GOOD, mended[i])
                        .ptr);
        CHECK_STATUS(HF_CORRUPT, hf__outbox_view(k->scope, stage.outbox, page.items[0], &event));
        hf__outbox_reject(k->scope, stage.outbox, page.items[0]);
        CHECK_INT(0, hf__outbox_unreadable(stage.outbox));
        CHECK_OK(hf_outbox_failed(k->scope, stage.outbox, NULL, &list));
        CHECK_INT(0, list.events_len);
    }
    put_mistake(k, 0); /* and what is as it was goes */
    CHECK_OK(hf_query(k->scope, k->db, &query, &page));
    CHECK_STATUS(HF_CORRUPT, hf__outbox_view(k->scope, stage.outbox, page.items[0], &event));
    hf__outbox_reject(k->scope, stage.outbox, page.items[0]);
    CHECK_INT(1, hf__outbox_unreadable(stage.outbox));
    close_stage(&stage);
}
