/*
 * test/events/chain_test.c: the chain of hashes, as events_chain.c describes it.
 */
#include "events/store/events.h"
#include "events_kit.h"

/* The hashes of a stream, computed again from what is read. */
static void check_chain(struct kit *k, struct hf_events *store, struct hf_event_stream_key stream,
                        size_t expected)
{
    struct hf_events_page page;
    uint8_t before[EVENTS_HASH] = {0};

    CHECK_OK(hf_events_read(k->scope, store, stream,
                            HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
    CHECK_INT(expected, page.events_len);
    for (size_t i = 0; i < page.events_len; i++) {
        uint8_t content[EVENTS_HASH], hash[EVENTS_HASH];

        hf__events_content(&page.events[i], content);
        hf__events_chain(&page.events[i], content, before, hash);
        CHECK_INT(EVENTS_HASH, page.events[i].hash.len);
        CHECK(memcmp(hash, page.events[i].hash.ptr, EVENTS_HASH) == 0);
        memcpy(before, hash, EVENTS_HASH);
    }
}

/* Whatever way events came in, the chain goes through all of them: one by one, by another store,
 * many at once, larger than a transaction, with payloads in the blob store, with ids and causes. */
KIT_TEST_TX(chain, goes_through_all_events_of_a_stream)
{
    struct hf_blobs *blobs;
    struct hf_events *store, *other = open_store(k);
    struct hf_new_event event = {.type = HF_STR("t"),
                                 .id = HF_STR("mine"),
                                 .payload = PAYLOAD("a payload that has more bytes than are "
                                                    "allowed for an item in this store, which "
                                                    "are four hundred, so it goes elsewhere: "
                                                    "a payload that has more bytes than are "
                                                    "allowed for an item in this store, which "
                                                    "are four hundred, so it goes elsewhere"),
                                 .meta = HF_ITEM(k->scope, HF_S("a", HF_STR("b"))),
                                 .causation = HF_STR("x"),
                                 .correlation = HF_STR("mine"),
                                 .compensates = HF_STR("z")};
    struct hf_append append = {.stream = ORDER("1"), .events = &event, .events_len = 1};
    struct hf_events_page page;
    struct hf_appended done;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .blob_bytes = 400});
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 3, &done));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 150, &done));
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    check_chain(k, store, ORDER("1"), 158);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .from = 157, .limit = 1), &page));
    CHECK_INT(HF_BLOB_DIGEST_LEN, page.events[0].blob.len);
    CHECK(hf_str_equal(hf_str_of((const char *)event.payload.ptr, event.payload.len),
                       payload_of(&page.events[0])));
    CHECK_STR("mine", page.events[0].correlation);
    hf_events_close(store);
    hf_events_close(other);
    hf_blobs_close(blobs);
}

/* Every field that an event has makes another hash. */
TEST(chain, covers_every_field)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_stored_event base = {.id = HF_STR("id"),
                                         .position = HF_STR("01KA1234567890ABCDEFGHJK00"),
                                         .stream = {HF_STR("d"), HF_STR("i")},
                                         .version = 7,
                                         .type = HF_STR("t"),
                                         .payload = PAYLOAD("p"),
                                         .content_type = HF_STR("c"),
                                         .schema = 1,
                                         .time_us = 5,
                                         .meta = HF_ITEM(s, HF_N("n", 1)),
                                         .causation = HF_STR("a"),
                                         .correlation = HF_STR("o"),
                                         .compensates = HF_STR("r")};
    uint8_t zero[EVENTS_HASH] = {0}, one[EVENTS_HASH] = {1}, hashes[20][EVENTS_HASH];
    struct hf_stored_event events[18];
    size_t len = 0;

    for (size_t i = 0; i < 18; i++)
        events[i] = base;
    events[1].id = HF_STR("ie");
    events[2].position = HF_STR("01KA1234567890ABCDEFGHJK01");
    events[3].stream.domain = HF_STR("e");
    events[4].stream.id = HF_STR("j");
    events[5].version = 8;
    events[6].type = HF_STR("u");
    events[7].payload = (struct hf_bytes)PAYLOAD("q");
    events[8].content_type = HF_STR("b");
    events[9].schema = 2;
    events[10].time_us = 6;
    events[11].meta = HF_ITEM(s, HF_N("n", 2));
    events[12].causation = HF_STR("b");
    events[13].correlation = HF_STR("p");
    events[14].compensates = HF_STR("s");
    events[15].meta = (struct hf_item){NULL, 0};
    events[16].stream = (struct hf_event_stream_key){HF_STR("di"), HF_STR("")};
    events[17].causation = HF_STR("ao"); /* bytes that move from one field to the next */
    events[17].correlation = HF_STR("");
    for (size_t i = 0; i < 18; i++) {
        uint8_t content[EVENTS_HASH];

        hf__events_content(&events[i], content);
        hf__events_chain(&events[i], content, zero, hashes[len++]);
        if (i == 0)
            hf__events_chain(&events[i], content, one, hashes[len++]);
    }
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(memcmp(hashes[i], hashes[j], EVENTS_HASH) != 0);
    hf_scope_free(s);
}

/* What was written by this version is what later ones compute: the hash of one event, written down,
 * and computed by another program (see the fields in events_chain.c). */
TEST(chain, is_the_same_for_ever)
{
    const struct hf_stored_event event = {.id = HF_STR("01KA1234567890ABCDEFGHJK00"),
                                          .position = HF_STR("01KA1234567890ABCDEFGHJK00"),
                                          .stream = {HF_STR("order"), HF_STR("7")},
                                          .version = 1,
                                          .type = HF_STR("placed"),
                                          .payload = PAYLOAD("{}"),
                                          .content_type = HF_STR("application/json"),
                                          .schema = 1,
                                          .time_us = 1700000000000000,
                                          .correlation = HF_STR("01KA1234567890ABCDEFGHJK00")};
    uint8_t zero[EVENTS_HASH] = {0}, content[EVENTS_HASH], hash[EVENTS_HASH];
    char hex[2 * EVENTS_HASH + 1];

    hf__events_content(&event, content);
    hf__events_chain(&event, content, zero, hash);
    for (size_t i = 0; i < EVENTS_HASH; i++) {
        hex[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
    CHECK_STR("cb4aff3a040b54f7563ebb5a541e7bd39dece0c2bf3fe2e375867fc2c0fe85b1",
              hf_str_of(hex, sizeof(hex) - 1));
}

/* A store without a chain has none, and everybody knows. */
KIT_TEST_TX(chain, can_be_left_out)
{
    struct hf_events *store = open_store_with(k, (struct hf_events_options){.no_chain = true});
    struct hf_events *other = open_store(k);
    struct hf_events_page page;
    struct hf_appended done;

    CHECK(!hf_events_abilities(store).chain);
    CHECK(!hf_events_abilities(other).chain);
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 2, &done));
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(4, page.events_len);
    CHECK(!page.events[3].hash.ptr);
    hf_events_close(store);
    hf_events_close(other);
}
