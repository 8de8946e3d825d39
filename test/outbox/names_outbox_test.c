/*
 * An outbox under other names than the usual: every request of emitting, looking, claiming,
 * delivering and putting right; names that cannot be; and two programs that name them differently.
 *
 * The names are a reserved word and no words at all: whoever left out a placeholder would be refused
 * by the database, and whoever used the usual name would find nothing.
 */
#include <holdfast/blob.h>
#include <holdfast/kv.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/table.h>

#include "kit.h"
#include "outbox/outbox.h"
#include "relay_kit.h"

#define HASH HF_STR("select")
#define SORT HF_STR("a.b c")
#define EXPIRES HF_STR("expires")

static enum hf_status open_at(struct kit *k, struct hf_str hash, struct hf_str sort,
                              struct hf_str expires, struct hf_outbox **outbox)
{
    return hf_outbox_open(k->scope, k->db,
                          HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 2,
                                     .history_s = 3600, .hash_attribute = hash,
                                     .sort_attribute = sort, .expires_attribute = expires),
                          outbox);
}

static struct hf_outbox *open_named(struct kit *k)
{
    struct hf_outbox *outbox;

    CHECK_OK(open_at(k, HASH, SORT, EXPIRES, &outbox));
    return outbox;
}

/* How many items there are whose partition begins so. Nothing has a usual name. */
static int items_of(struct kit *k, const char *partition)
{
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    struct hf_scan_result result;
    int count = 0;

    CHECK_OK(hf_scan(k->scope, k->db, &scan, &result));
    for (size_t i = 0; i < result.items_len; i++) {
        struct hf_item item = result.items[i];
        struct hf_str pk = hf_value_str(hf_item_get(item, HASH));

        CHECK(!hf_item_get(item, HF_STR("pk")).ptr && !hf_item_get(item, HF_STR("sk")).ptr);
        CHECK(!hf_item_get(item, HF_STR("ttl")).ptr);
        CHECK(hf_item_get(item, SORT).ptr);
        if (pk.len < strlen(partition) || memcmp(pk.ptr, partition, strlen(partition)) != 0)
            continue;
        count++;
        CHECK((hf_item_get(item, EXPIRES).ptr != NULL) == (pk.ptr[0] == 'h' || pk.ptr[0] == 'i'));
    }
    return count;
}

static struct hf_claimed_event claim_one(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_claim_list list;

    CHECK_OK(hf_outbox_claim(k->scope, outbox, HF_OPTIONS(hf_claim_options, .limit = 1), &list));
    CHECK_INT(1, list.events_len);
    return list.events[0];
}

KIT_TEST_TX(names_outbox, emitting_and_looking)
{
    struct hf_scope *s = k->scope;
    struct hf_outbox *outbox = open_named(k);
    struct hf_event event = {.type = HF_STR("t"), .id = HF_STR("mine"), .key = HF_STR("k")};
    struct hf_outbox_stats stats;
    struct hf_outbox_event found;
    struct hf_event_list list;
    struct hf_str id = event.id;
    uint64_t done;

    emit(s, outbox, "a", 1);
    emit_later(s, outbox, "", 2, 5000);
    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
    CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(s, outbox, &event, 1, NULL));
    CHECK_INT(3, items_of(k, "p."));
    CHECK_INT(1, items_of(k, "i."));
    CHECK_OK(hf_outbox_get(s, outbox, id, &found));
    CHECK_STR("k", found.event.key);
    CHECK_OK(hf_outbox_pending(s, outbox, NULL, &list));
    CHECK_INT(2, list.events_len);
    CHECK_OK(hf_outbox_pending(s, outbox,
                               HF_OPTIONS(hf_event_list_options, .limit = 1, .not_due_too = true),
                               &list));
    CHECK_OK(hf_outbox_pending(s, outbox,
                               HF_OPTIONS(hf_event_list_options, .after = list.next,
                                          .not_due_too = true),
                               &list));
    CHECK_INT(2, list.events_len);
    CHECK_OK(hf_outbox_stats(s, outbox, 0, &stats));
    CHECK_INT(3, stats.pending);
    CHECK_INT(1, stats.scheduled);
    CHECK_OK(hf_outbox_discard(s, outbox, &id, 1, &done));
    CHECK_INT(1, done);
    hf_outbox_close(outbox);
}

KIT_TEST_TX(names_outbox, transactions)
{
    struct hf_scope *s = k->scope;
    struct hf_outbox *outbox = open_named(k);
    const struct hf_event events[] = {{.type = HF_STR("t")},
                                      {.type = HF_STR("t"), .id = HF_STR("mine")}};
    struct hf_transact_write action;
    struct hf_transact_write_items request = {.actions = &action, .actions_len = 1};
    struct hf_tx *tx;

    CHECK_OK(hf_tx_new(s, k->db, &tx));
    CHECK_OK(hf_outbox_emit_into(s, outbox, tx, events, 2, NULL));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_OK(hf_outbox_emit_tx(s, outbox, events, &action, NULL));
    CHECK_OK(hf_transact_write_items(s, k->db, &request, NULL));
    CHECK_INT(3, items_of(k, "p."));
    CHECK_INT(1, items_of(k, "i."));
    hf_outbox_close(outbox);
}

KIT_TEST(names_outbox, claims)
{
    const struct hf_error no = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_scope *s = k->scope;
    struct hf_outbox *outbox = open_named(k);
    struct hf_claimed_event claimed;
    struct hf_event_list list;
    uint64_t done;

    emit(s, outbox, "a", 1);
    claimed = claim_one(k, outbox);
    CHECK_OK(hf_outbox_extend(s, outbox, &claimed, 1000));
    CHECK_OK(hf_outbox_release(s, outbox, &claimed));
    claimed = claim_one(k, outbox);
    test_advance_ms(k->t, 60000); /* the lease has ended: it is taken over */
    claimed = claim_one(k, outbox);
    CHECK_OK(hf_outbox_fail(s, outbox, &claimed, &no, false, NULL));
    test_advance_ms(k->t, 60000);
    claimed = claim_one(k, outbox);
    CHECK_OK(hf_outbox_fail(s, outbox, &claimed, &no, true, NULL));
    CHECK_INT(1, items_of(k, "f."));
    CHECK_OK(hf_outbox_failed(s, outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_OK(hf_outbox_retry_all(s, outbox, NULL, &done));
    CHECK_INT(1, done);
    claimed = claim_one(k, outbox);
    CHECK_OK(hf_outbox_published(s, outbox, &claimed));
    CHECK_INT(1, items_of(k, "h."));
    CHECK_OK(hf_outbox_history(s, outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_OK(hf_outbox_replay(s, outbox, NULL, &done));
    CHECK_INT(1, items_of(k, "p."));
    test_advance_ms(k->t, 1000);
    CHECK_OK(hf_outbox_cleanup(s, outbox, k->t->wall_us, &done));
    CHECK_INT(1, done);
    CHECK_INT(0, items_of(k, "h."));
    hf_outbox_close(outbox);
}

static void drain(struct kit *k, struct hf_relay *relay, uint64_t expected)
{
    uint64_t delivered = 0;

    hf_scope_reset(k->scope);
    hf_scope_timeout_ms(k->scope, 60000);
    CHECK_OK(hf_relay_drain(k->scope, relay, &delivered));
    hf_scope_timeout_ms(k->scope, 0);
    CHECK_INT(expected, delivered);
}

/* One relay after the other; an event that fails, an item that is none, and quiet buckets, for which
 * all are asked at once. */
KIT_TEST(names_outbox, relays)
{
    struct hf_scope *s = k->scope;
    struct hf_outbox *outbox = open_named(k);
    struct ear *ear = ear_open(s, 1, false);
    struct hf_relay *relay =
        relay_by_turns(s, outbox, ear, (struct hf_relay_options){.max_attempts = 2});
    const struct hf_attr bad[] = {
        {.name = HASH, .type = HF_TYPE_S, .text = HF_STR("p.000")},
        {.name = SORT, .type = HF_TYPE_S, .text = HF_STR("0")},
    };
    struct hf_put_item put = {.table = k->table, .item = hf_item_make(s, bad, 2)};
    struct hf_event_list list;

    ear->fails = 2;
    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
    emit(s, outbox, "a", 1);
    emit(s, outbox, "b", 2);
    drain(k, relay, 1);
    relays_run_for(k->t, k->scope, &relay, 1, 20000);
    CHECK_INT(2, ear_count(ear, 2));
    CHECK_INT(0, items_of(k, "p."));
    CHECK_INT(2, items_of(k, "f."));
    CHECK_INT(1, items_of(k, "h."));
    CHECK_OK(hf_outbox_failed(k->scope, outbox, NULL, &list));
    CHECK_INT(2, list.events_len);
    for (size_t i = 0; i < list.events_len; i++)
        if (list.events[i].error == HF_CORRUPT)
            CHECK(strstr(list.events[i].error_text.ptr, "its a.b c is not of 10 digits"));
    CHECK_OK(hf_relay_stop(k->scope, relay));
    hf_relay_close(relay);
    emit(k->scope, outbox, "a", 3);
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    drain(k, relay, 1);
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

KIT_TEST(names_outbox, competing_relays)
{
    struct hf_outbox *outbox = open_named(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.competing = true});

    for (int i = 1; i <= 5; i++)
        emit(k->scope, outbox, "", i);
    drain(k, relay, 5);
    CHECK_INT(5, items_of(k, "h."));
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

KIT_TEST(names_outbox, blobs)
{
    static char text[100000];
    struct hf_scope *s = k->scope;
    struct hf_event event = {.type = HF_STR("t"), .payload = hf_bytes_of(text, sizeof(text))};
    struct hf_event_list list;
    struct hf_outbox *outbox;
    struct hf_blobs *blobs;
    uint64_t removed;

    memset(text, 'x', sizeof(text));
    CHECK_OK(hf_blobs_open(s, HF_STR("memory:"), NULL, &blobs));
    CHECK_OK(hf_outbox_open(s, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .blobs = blobs,
                                       .blob_over = 1000, .hash_attribute = HASH,
                                       .sort_attribute = SORT, .expires_attribute = EXPIRES),
                            &outbox));
    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
    test_advance_ms(k->t, 60000);
    CHECK_OK(hf_outbox_sweep_blobs(s, outbox, 1, &removed));
    CHECK_INT(0, removed);
    CHECK_OK(hf_outbox_pending(s, outbox, NULL, &list));
    CHECK_INT(sizeof(text), list.events[0].event.payload.len);
    hf_outbox_close(outbox);
    hf_blobs_close(blobs);
}

/* A statement cannot have such a name; buckets are read one by one. */
KIT_TEST(names_outbox, with_quotes)
{
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_outbox *outbox;
    struct hf_relay *relay;

    CHECK_OK(open_at(k, HF_STR("say \"hash\""), HF_STR("\""), EXPIRES, &outbox));
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    emit(k->scope, outbox, "a", 1);
    drain(k, relay, 1);
    relays_run_for(k->t, k->scope, &relay, 1, 5000);
    emit(k->scope, outbox, "a", 2);
    drain(k, relay, 1);
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* ---- names that cannot be, and others who name them differently ------------------------------ */

KIT_TEST(names_outbox, that_cannot_be)
{
    static const struct {
        const char *hash, *sort, *expires;
        const char *says;
    } bad[] = {
        {"", "s", "e", "hash_attribute is empty"},
        {"h", "", "e", "sort_attribute is empty"},
        {"h", "s", "", "expires_attribute is empty"},
        {"x", "x", "e", "hash_attribute and sort_attribute are both \"x\""},
        {"x", "s", "x", "hash_attribute and expires_attribute are both \"x\""},
        {"h", "x", "x", "expires_attribute and sort_attribute are both \"x\""},
        {"id", "s", "e", "hash_attribute cannot be \"id\""},
        {"h", "key", "e", "sort_attribute cannot be \"key\""},
        {"h", "s", "lease", "expires_attribute cannot be \"lease\""},
        {"h", "buckets", "e", "sort_attribute cannot be \"buckets\""},
        {"h", "s", "window", "expires_attribute cannot be \"window\""},
        {"h", "s", "expires_attribute", "expires_attribute cannot be \"expires_attribute\""},
        {"holdfast", "s", "e", "hash_attribute cannot be \"holdfast\""},
    };
    struct hf_describe_table describe = {.table = k->table};
    struct hf_describe_table_result described;
    struct hf_outbox *outbox;
    char longest[257];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_STATUS(HF_INVALID, open_at(k, hf_str_from(bad[i].hash), hf_str_from(bad[i].sort),
                                         hf_str_from(bad[i].expires), &outbox));
        CHECK(!outbox && strstr(hf_scope_error_text(k->scope), bad[i].says));
    }
    memset(longest, 'n', 256);
    CHECK_STATUS(HF_INVALID, open_at(k, hf_str_of(longest, 256), SORT, EXPIRES, &outbox));
    CHECK(strstr(hf_scope_error_text(k->scope), "hash_attribute has 256 bytes, more than 255"));
    CHECK_STR("hash_attribute", hf_scope_error(k->scope)->limit.name);
    CHECK_INT(255, hf_scope_error(k->scope)->limit.max);
    CHECK_INT(256, hf_scope_error(k->scope)->limit.actual);
    CHECK_STATUS(HF_NOT_FOUND, hf_describe_table(k->scope, k->db, &describe, &described));
    CHECK_OK(open_at(k, hf_str_of(longest, 255), SORT, EXPIRES, &outbox));
    hf_outbox_close(outbox);
}

/* Every attribute of every kind of item that an outbox has is one that no name can be. */
KIT_TEST(names_outbox, no_attribute_is_forgotten)
{
    const struct hf_error no = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_str all = HF_STR("x");
    struct hf_scope *s = k->scope;
    struct hf_outbox *outbox = open_named(k), *other;
    struct ear *ear = ear_open(s, 1, false);
    struct hf_event event = {.type = all,
                             .id = all,
                             .key = all,
                             .sequence = 1,
                             .time_us = 1,
                             .due_us = 1,
                             .payload = hf_bytes_of("1", 1),
                             .content_type = all,
                             .schema = all,
                             .headers = HF_ITEM(s, HF_S("h", all)),
                             .source = all,
                             .correlation = all,
                             .causation = all,
                             .aggregate = all,
                             .aggregate_type = all,
                             .tenant = all,
                             .destination = all,
                             .trace_parent = all,
                             .trace_state = all};
    struct hf_claimed_event claimed;
    struct hf_relay *relay;

    /* One that failed and is claimed again, a dead letter, a relay and what it has. */
    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
    claimed = claim_one(k, outbox);
    CHECK_OK(hf_outbox_fail(s, outbox, &claimed, &no, false, NULL));
    test_advance_ms(k->t, 60000);
    claimed = claim_one(k, outbox);
    emit(s, outbox, "", 1);
    claimed = claim_one(k, outbox);
    CHECK_OK(hf_outbox_fail(s, outbox, &claimed, &no, true, NULL));
    test_advance_ms(k->t, 11 * 60000); /* the kind of work may change */
    relay = relay_by_turns(s, outbox, ear, (struct hf_relay_options){.only_type = HF_STR("none")});
    relays_run_for(k->t, k->scope, &relay, 1, 1000);
    s = k->scope;
    {
        struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
        struct hf_scan_result result;
        size_t seen = 0;

        CHECK_OK(hf_scan(s, k->db, &scan, &result));
        for (size_t i = 0; i < result.items_len; i++) {
            struct hf_item_walk walk = {0};

            while (hf_item_next(result.items[i], &walk)) {
                if (hf_str_equal(walk.name, HASH) || hf_str_equal(walk.name, SORT) ||
                    hf_str_equal(walk.name, EXPIRES))
                    continue;
                seen++;
                CHECK_STATUS(HF_INVALID, open_at(k, HASH, SORT, walk.name, &other));
                CHECK(strstr(hf_scope_error_text(s), "cannot be"));
            }
        }
        CHECK(seen > 40);
    }
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* Whoever comes second is refused, whether it is the key that differs or the time to live, and
 * nothing is changed. The usual names are names, too. */
KIT_TEST(names_outbox, of_others)
{
    const struct hf_str none = {0};
    struct hf_describe_time_to_live describe = {.table = k->table};
    struct hf_describe_time_to_live_result ttl;
    struct hf_outbox *outbox, *other;

    CHECK_OK(open_at(k, none, none, none, &outbox));
    hf_outbox_close(outbox);
    CHECK_STATUS(HF_INVALID, open_at(k, HASH, none, none, &other));
    CHECK_STATUS(HF_INVALID, open_at(k, none, none, EXPIRES, &other));
    CHECK(strstr(hf_scope_error_text(k->scope),
                 "has its time to live in the attribute \"ttl\", not in \"expires\""));
    if (kit_has(k, HF_FEATURE_TIME_TO_LIVE)) {
        CHECK_OK(hf_describe_time_to_live(k->scope, k->db, &describe, &ttl));
        CHECK_STR("ttl", ttl.description->attribute);
    }
    CHECK_OK(open_at(k, none, none, none, &outbox));
    hf_outbox_close(outbox);
    CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
    CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));

    CHECK_OK(open_at(k, none, none, EXPIRES, &outbox));
    hf_outbox_close(outbox);
    CHECK_STATUS(HF_INVALID, open_at(k, none, none, none, &other));
    CHECK(strstr(hf_scope_error_text(k->scope), "\"expires\", not in \"ttl\""));
    if (kit_has(k, HF_FEATURE_TIME_TO_LIVE)) {
        CHECK_OK(hf_describe_time_to_live(k->scope, k->db, &describe, &ttl));
        CHECK_STR("expires", ttl.description->attribute);
    }
}

/* Patterns that can share a table with an outbox find it under its names, and those that cannot. */
KIT_TEST(names_outbox, one_table_for_two)
{
    struct hf_outbox *outbox = open_named(k), *again;
    struct hf_kv *kv;

    CHECK_OK(hf_kv_open(k->scope, k->db,
                        HF_OPTIONS(hf_kv_options, .table = k->table, .partitioned = true,
                                   .hash_attribute = HASH, .sort_attribute = SORT),
                        &kv));
    hf_kv_close(kv);
    again = open_named(k);
    hf_outbox_close(again);
    hf_outbox_close(outbox);
}
