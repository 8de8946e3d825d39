/*
 * test/events/verify_test.c: whatever was changed behind our back is found; (n) is an invariant of
 * events_verify.c.
 */
#include "admin_kit.h"

#include "events/store/events.h"

#define STREAM HF_STR("s.order.1")

static struct hf_events *filled(struct kit *k)
{
    struct hf_events *store = open_store(k);

    append_ids(k, store, "1", 1, 3);
    append_ids(k, store, "2", 1, 2);
    append_ids(k, store, "1", 4, 2);
    return store;
}

static void check_bad(struct kit *k, struct hf_events *store, uint64_t version, const char *what)
{
    struct hf_events_verified verified;
    struct hf_event_stream_key stream = ORDER("1");

    CHECK_STATUS(HF_CORRUPT, hf_events_verify(k->scope, store, NULL, NULL, &verified));
    CHECK_STR("order", verified.bad.domain);
    CHECK_STR("1", verified.bad.id);
    CHECK_INT(version, verified.bad_version);
    CHECK_STR(hf_scope_format(k->scope, "stream \"order/1\", version %llu: %s",
                              (unsigned long long)version, what)
                  .ptr,
              hf_scope_error(k->scope)->message);
    CHECK_STATUS(HF_CORRUPT, hf_events_verify(k->scope, store, &stream, NULL, NULL));
    stream = ORDER("2");
    CHECK_OK(hf_events_verify(k->scope, store, &stream, NULL, NULL));
}

static struct hf_str commit_pk(struct kit *k, const char *id, struct hf_str *sk)
{
    struct hf_stored_event event;
    struct hf_events *store = open_store(k);

    CHECK_OK(hf_events_get(k->scope, store, hf_str_from(id), &event));
    hf_events_close(store);
    *sk = hf_scope_format(k->scope, "%.24s00", event.position.ptr);
    return hf__events_part_of(k->scope, 'a', *sk);
}

KIT_TEST_TX(verify, all_is_well)
{
    struct hf_events *store = filled(k);
    struct hf_events_verified verified;
    struct hf_event_stream_key stream = ORDER("1");

    CHECK_OK(hf_events_verify(k->scope, store, NULL, NULL, &verified));
    CHECK_INT(2, verified.streams);
    CHECK_INT(7, verified.events);
    CHECK_OK(hf_events_verify(k->scope, store, &stream, NULL, &verified));
    CHECK_INT(1, verified.streams);
    CHECK_INT(5, verified.events);
    stream = ORDER("none");
    CHECK_STATUS(HF_NOT_FOUND, hf_events_verify(k->scope, store, &stream, NULL, &verified));
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    check_sound(k, store, 7);
    hf_events_close(store);
}

/* What a callback was told. */
struct heard {
    int calls;
    int stop_at; /* that call; 0: at none */
    uint64_t done, total;
};

static enum hf_status hear(uint64_t done, uint64_t total, void *user)
{
    struct heard *heard = user;

    CHECK(done >= heard->done);
    CHECK(!total || done <= total);
    heard->done = done;
    heard->total = total;
    return ++heard->calls == heard->stop_at ? HF_CANCELED : HF_OK;
}

/* Each event twice: in its stream, and in the global order; those of large appends, too. */
KIT_TEST_TX(verify, progress_is_told)
{
    struct hf_events *store = filled(k);
    struct hf_event_stream_key stream = ORDER("long");
    struct hf_events_verified verified;
    struct heard heard = {.calls = 0};

    CHECK_OK(append_some(k, store, stream, HF_EXPECT_ANY, 0, 300, NULL));
    for (int i = 0; i < 10; i++)
        CHECK_OK(append_some(k, store, stream, HF_EXPECT_ANY, 0, 20, NULL));
    CHECK_OK(
        hf_events_verify(k->scope, store, NULL,
                         HF_OPTIONS(hf_events_verify_options, .on_progress = hear, .user = &heard),
                         &verified));
    CHECK_INT(507, verified.events);
    CHECK_INT(2 * 507, heard.done);
    CHECK_INT(2 * 507, heard.total);
    CHECK(heard.calls >= 4);
    heard = (struct heard){.calls = 0};
    CHECK_OK(
        hf_events_verify(k->scope, store, &stream,
                         HF_OPTIONS(hf_events_verify_options, .on_progress = hear, .user = &heard),
                         &verified));
    CHECK_INT(500, heard.done);
    CHECK_INT(0, heard.total);
    for (int call = 1; call <= 4; call++) {
        heard = (struct heard){.stop_at = call};
        CHECK_STATUS(HF_CANCELED, hf_events_verify(k->scope, store, NULL,
                                                   HF_OPTIONS(hf_events_verify_options,
                                                              .on_progress = hear, .user = &heard),
                                                   NULL));
        CHECK_INT(call, heard.calls);
    }
    hf_events_close(store);
}

/* Change what the map of an event says. */
static struct hf_item changed(struct kit *k, struct hf_item item, const char *map, const char *name,
                              struct hf_attr attr)
{
    struct hf_item event = hf_value_item(hf_item_get(item, hf_str_from(map)));
    struct hf_attr set = {.name = hf_str_from(map)};

    attr.name = hf_str_from(name);
    set.value = hf_item_value(hf_item_with(k->scope, event, &attr, 1));
    return hf_item_with(k->scope, item, &set, 1);
}

/* (1) */
KIT_TEST_TX(verify, an_event_that_was_changed)
{
    static const char *const names[] = {"p", "t", "u", "i", "m", "a", "o", "r", "s", "c"};
    struct hf_events *store = filled(k);
    struct hf_item good = get_raw(k, STREAM, HF_STR("0000000000000002"));

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct hf_attr attr = {.type = HF_TYPE_S, .text = HF_STR("forged")};

        if (names[i][0] == 'p')
            attr.type = HF_TYPE_B;
        if (names[i][0] == 'u' || names[i][0] == 's')
            attr = (struct hf_attr)HF_N("", 77);
        if (names[i][0] == 'm')
            attr = (struct hf_attr)HF_M("", HF_ITEM(k->scope, HF_S("x", HF_STR("forged"))));
        put_raw(k, changed(k, good, "e", names[i], attr));
        check_bad(k, store, 2, "its hash does not match its content");
    }
    put_raw(k, good);
    check_sound(k, store, 7);
    hf_events_close(store);
}

/* (1) */
KIT_TEST_TX(verify, events_that_were_left_out_moved_or_put_in)
{
    struct hf_events *store = filled(k);
    struct hf_item second = get_raw(k, STREAM, HF_STR("0000000000000002"));
    struct hf_item third = get_raw(k, STREAM, HF_STR("0000000000000003"));
    struct hf_item last = get_raw(k, STREAM, HF_STR("0000000000000005"));
    struct hf_attr sk = HF_S("sk", HF_STR("0000000000000002"));

    delete_raw(k, STREAM, HF_STR("0000000000000002"));
    check_bad(k, store, 2, "it is missing");
    put_raw(k, hf_item_with(k->scope, third, &sk, 1));
    check_bad(k, store, 2, "its hash does not match its content");
    put_raw(k, second);
    delete_raw(k, STREAM, HF_STR("0000000000000005"));
    check_bad(k, store, 5, "it is missing");
    delete_raw(k, STREAM, HF_STR("0000000000000004"));
    check_bad(k, store, 4, "it is missing");
    put_raw(k, last);
    check_bad(k, store, 4, "it is missing");
    hf_events_close(store);
}

KIT_TEST_TX(verify, a_head_that_was_changed)
{
    struct hf_events *store = filled(k);
    struct hf_item head = get_raw(k, STREAM, HF_STR("h"));
    uint8_t zero[32] = {0};
    struct hf_attr attrs[] = {HF_B("h", hf_bytes_of(zero, sizeof(zero))), HF_N("v", 4),
                              HF_N("v", 6), HF_N("w", 2)};

    put_raw(k, hf_item_with(k->scope, head, &attrs[0], 1));
    check_bad(k, store, 5, "the head of the stream does not match its last event");
    put_raw(k, hf_item_with(k->scope, head, &attrs[1], 1));
    check_bad(k, store, 4, "the head of the stream does not match its last event");
    put_raw(k, hf_item_with(k->scope, head, &attrs[2], 1));
    check_bad(k, store, 6, "it is missing");
    put_raw(k, hf_item_with(k->scope, head, &attrs[3], 1)); /* as if the first had been swept */
    check_bad(k, store, 2, "its hash does not match its content");
    put_raw(k, head);
    check_sound(k, store, 7);
    hf_events_close(store);
}

/* The global order against the streams, and the other way round. */
KIT_TEST_TX(verify, the_order_of_all)
{
    struct hf_events *store = filled(k);
    struct hf_attr forged = HF_S("", HF_STR("forged")), attr;
    struct hf_events_verified verified;
    struct hf_str pk, sk;
    struct hf_item commit;

    pk = commit_pk(k, "1-1", &sk);
    commit = get_raw(k, pk, sk);
    delete_raw(k, pk, sk);
    check_bad(k, store, 1, "it is not in the global order");
    put_raw(k, changed(k, commit, "x01", "t", forged));
    check_bad(k, store, 2, "its copy in the global order differs");
    attr = (struct hf_attr)HF_N("v", 2);
    put_raw(k, hf_item_with(k->scope, commit, &attr, 1));
    check_bad(k, store, 1, "the global order has another event at its position");
    put_raw(k, commit);
    check_sound(k, store, 7);

    /* One more than the stream has. */
    attr = (struct hf_attr){.name = HF_STR("x03"), .value = hf_item_get(commit, HF_STR("x02"))};
    put_raw(k, hf_item_with(k->scope, commit, &attr, 1));
    CHECK_STATUS(HF_CORRUPT, hf_events_verify(k->scope, store, NULL, NULL, &verified));
    CHECK_ERROR(HF_CORRUPT,
                "stream \"order/1\", version 4: it is in the global order, but not in its stream",
                k->scope);
    CHECK_INT(4, verified.bad_version);
    put_raw(k, commit);
    check_sound(k, store, 7);
    hf_events_close(store);
}

KIT_TEST_TX(verify, large_appends)
{
    enum { LARGE = 60 };
    struct hf_events *store = filled(k);
    struct hf_attr forged = HF_S("", HF_STR("forged"));
    struct hf_item stub, good;
    struct hf_str pk;

    append_ids(k, store, "1", 6, LARGE);
    append_ids(k, store, "1", 6 + LARGE, 1);
    check_sound(k, store, 7 + LARGE + 1);
    stub = get_raw(k, STREAM, HF_STR("0000000000000006"));
    pk = hf_scope_format(k->scope, "t.%.*s", HF_FMT(hf_value_str(hf_item_get(stub, HF_STR("l")))));
    good = get_raw(k, pk, HF_STR("000010"));
    put_raw(k, changed(k, good, "e", "t", forged));
    check_bad(k, store, 16, "its hash does not match its content");
    delete_raw(k, pk, HF_STR("000010"));
    check_bad(k, store, 16, "it is missing");
    put_raw(k, good);
    delete_raw(k, pk, HF_STR("000059"));
    check_bad(k, store, 65, "it is missing");
    hf_events_close(store);
}

KIT_TEST_TX(verify, a_store_without_a_chain_cannot_be)
{
    struct hf_events *store = open_store_with(k, (struct hf_events_options){.no_chain = true});
    struct hf_events_verified verified;

    CHECK_STATUS(HF_UNSUPPORTED, hf_events_verify(k->scope, store, NULL, NULL, &verified));
    hf_events_close(store);
}

/* What others have written over keys and positions is reported. No assert fails. */
KIT_TEST_TX(verify, keys_and_positions_that_are_none)
{
    struct hf_events *store = filled(k);
    struct hf_str forged = HF_STR("not a position, but as lon");
    struct hf_item second = get_raw(k, STREAM, HF_STR("0000000000000002"));
    struct hf_item head = get_raw(k, STREAM, HF_STR("h"));
    struct hf_attr p = HF_S("p", forged);
    struct hf_events_verified verified;
    struct hf_events_swept swept;
    struct hf_stored_event event;
    struct hf_event_stream_info info;

    CHECK_INT(HF_POSITION_LEN, forged.len);
    put_raw(k, hf_item_with(k->scope, second, &p, 1));
    CHECK_STATUS(HF_CORRUPT, hf_events_verify(k->scope, store, NULL, NULL, &verified));
    CHECK_STATUS(HF_CORRUPT, hf_events_archive(k->scope, store, ORDER("1")));
    put_raw(k, head);
    put_raw(k, second);

    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("d")), HF_S("sk", HF_STR("123"))));
    CHECK_STATUS(HF_CORRUPT, hf_events_verify(k->scope, store, NULL, NULL, &verified));
    delete_raw(k, HF_STR("d"), HF_STR("123"));
    check_sound(k, store, 7);

    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("s.order.9")), HF_S("sk", HF_STR("h")),
                       HF_S("p", HF_STR("x"))));
    CHECK_STATUS(HF_CORRUPT, hf_events_stream_info(k->scope, store, ORDER("9"), &info));
    delete_raw(k, HF_STR("s.order.9"), HF_STR("h"));

    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("i.mine")), HF_S("sk", HF_STR("i")),
                       HF_S("s", HF_STR("order.1")), HF_N("v", 1),
                       HF_S("p", hf_value_str(hf_item_get(second, HF_STR("p")))), HF_N("n", 0),
                       HF_S("l", forged)));
    CHECK_STATUS(HF_CORRUPT, hf_events_get(k->scope, store, HF_STR("mine"), &event));
    delete_raw(k, HF_STR("i.mine"), HF_STR("i"));

    put_raw(k,
            HF_ITEM(k->scope, HF_S("pk", HF_STR("x")), HF_S("sk", HF_STR("short")), HF_N("at", 1)));
    CHECK_STATUS(HF_CORRUPT, hf_events_sweep(k->scope, store, 1, &swept));
    delete_raw(k, HF_STR("x"), HF_STR("short"));
    CHECK_OK(hf_events_sweep(k->scope, store, 1, &swept));
    check_sound(k, store, 7);
    hf_events_close(store);
}

/* A list of days that others have written to does not let a reader fail an assert. */
KIT_TEST_TX(verify, a_day_that_is_none)
{
    struct hf_events *store = filled(k);
    const struct hf_stored_event *events;
    struct hf_events_reader *reader;
    size_t len;

    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("d")), HF_S("sk", HF_STR("123"))));
    CHECK_OK(hf_events_reader_open(k->scope, store, NULL, &reader));
    CHECK_STATUS(HF_CORRUPT, hf_events_reader_next(k->scope, reader, &events, &len));
    hf_events_reader_close(reader);
    delete_raw(k, HF_STR("d"), HF_STR("123"));
    put_raw(k, HF_ITEM(k->scope, HF_S("pk", HF_STR("d")), HF_S("sk", HF_STR("1234567x"))));
    CHECK_OK(hf_events_reader_open(k->scope, store, NULL, &reader));
    CHECK_STATUS(HF_CORRUPT, hf_events_reader_next(k->scope, reader, &events, &len));
    hf_events_reader_close(reader);
    delete_raw(k, HF_STR("d"), HF_STR("1234567x"));
    hf_events_close(store);
}
