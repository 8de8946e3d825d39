/*
 * outbox/outbox_only_test.c: a part of the events: lists, counts, claims and relays of a type, a
 * key or a tenant, on every kind of database. (6) is that of relay_member.c.
 */
#include <holdfast/relay.h>

#include "kit.h"
#include "relay_kit.h"

#include "../db/between.h"

enum { BUCKETS = 4, EVENTS = 24 };

/* ---- a stage -------------------------------------------------------------------------------- */

static const char *const keys[] = {"ann", "ben", "eve"};
static const char *const tenants[] = {"acme", "initech"};
static const char *const types[] = {"order.placed", "order.paid", "parcel.sent"};

/* Number i has key i % 3, tenant i / 3 % 2 and type i / 6 % 3: all combinations in 18. */
static void emit_all(struct hf_scope *s, struct hf_outbox *outbox)
{
    for (int i = 0; i < EVENTS; i++) {
        struct hf_str payload = hf_scope_format(s, "%d", i);
        struct hf_event event = {.type = hf_str_from(types[i / 6 % 3]),
                                 .key = hf_str_from(keys[i % 3]),
                                 .tenant = hf_str_from(tenants[i / 3 % 2]),
                                 .payload = hf_bytes_of(payload.ptr, payload.len)};

        CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
    }
}

static struct hf_outbox *open_in(struct kit *k, struct hf_db *db)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = BUCKETS,
                                       .history_s = 1000),
                            &outbox));
    return outbox;
}

static struct hf_relay_metrics metrics_of(struct hf_relay *relay)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(relay, &metrics);
    return metrics;
}

/* ---- lists and counts ----------------------------------------------------------------------- */

/* All of the pages, which have to be as many as are counted by hand. */
static size_t list_len(struct kit *k, struct hf_outbox *outbox, struct hf_event_list_options o)
{
    size_t len = 0;

    o.size = sizeof(o);
    o.limit = 2;
    do {
        struct hf_event_list list;

        CHECK_OK(hf_outbox_pending(k->scope, outbox, &o, &list));
        for (size_t i = 0; i < list.events_len; i++) {
            const struct hf_event *event = &list.events[i].event;

            CHECK(!o.key.len || hf_str_equal(event->key, o.key));
            CHECK(!o.tenant.len || hf_str_equal(event->tenant, o.tenant));
            CHECK(o.type.len < 2 || event->type.ptr[0] == o.type.ptr[0]);
        }
        len += list.events_len;
        o.after = list.next;
    } while (o.after.len);
    return len;
}

KIT_TEST(outbox_only, lists_and_counts)
{
    struct hf_outbox *outbox = open_in(k, k->db);
    struct hf_event_list_options o = {.size = sizeof(o)};
    struct hf_outbox_stats stats;

    emit_all(k->scope, outbox);
    o.key = HF_STR("ben");
    CHECK_INT(8, list_len(k, outbox, o));
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_INT(8, stats.pending);
    CHECK_INT(8, stats.fullest);
    o.tenant = HF_STR("acme");
    CHECK_INT(4, list_len(k, outbox, o));
    o.key = HF_STR("");
    CHECK_INT(12, list_len(k, outbox, o));
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_INT(12, stats.due);
    o.type = HF_STR("order.*");
    CHECK_INT(9, list_len(k, outbox, o));
    o.type = HF_STR("order.paid");
    CHECK_INT(3, list_len(k, outbox, o));
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_INT(3, stats.pending);
    o = (struct hf_event_list_options){.size = sizeof(o), .type = HF_STR("*")};
    CHECK_INT(EVENTS, list_len(k, outbox, o));
    o.tenant = HF_STR("nobody");
    CHECK_INT(0, list_len(k, outbox, o));
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, NULL, &stats));
    CHECK_INT(EVENTS, stats.pending);
    hf_outbox_close(outbox);
}

/* A text that no event can have is a mistake of who asks, and one that it just can have is not. */
KIT_TEST(outbox_only, texts_are_checked)
{
    static char text[HF_EVENT_TEXT_MAX + 1];
    struct hf_outbox *outbox = open_in(k, k->db);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_event_list_options o = {.size = sizeof(o)};
    struct hf_claim_options claim = {.size = sizeof(claim)};
    struct hf_relay_options deliver = {.size = sizeof(deliver), .no_threads = true};
    struct hf_outbox_stats stats;
    struct hf_claim_list claimed;
    struct hf_event_list list;
    struct hf_relay *relay;

    memset(text, 'x', sizeof(text));
    deliver.only_key = claim.type = o.tenant = hf_str_of(text, HF_EVENT_TEXT_MAX);
    CHECK_OK(hf_outbox_pending(k->scope, outbox, &o, &list));
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_OK(hf_relay_open(k->scope, outbox, ear->sink, &deliver, &relay));
    hf_relay_close(relay);
    deliver.only_key = claim.type = o.tenant = hf_str_of(text, sizeof(text));
    CHECK_STATUS(HF_INVALID, hf_outbox_pending(k->scope, outbox, &o, &list));
    CHECK(strstr(hf_scope_error_text(k->scope), "the tenant to look for has 1025 bytes"));
    CHECK_STATUS(HF_INVALID, hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_STATUS(HF_INVALID, hf_relay_open(k->scope, outbox, ear->sink, &deliver, &relay));
    CHECK(strstr(hf_scope_error_text(k->scope), "the key to look for has 1025 bytes"));
    CHECK_STATUS(HF_INVALID, hf_outbox_claim(k->scope, outbox, &claim, &claimed));
    CHECK(strstr(hf_scope_error_text(k->scope), "the type to look for has 1025 bytes"));
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* What is asked of a key costs one bucket. */
KIT_TEST(outbox_only, a_key_is_one_bucket)
{
    struct between between = between_of(k->db);
    struct hf_outbox *outbox = open_in(k, &between.db);
    struct hf_event_list_options o = {.size = sizeof(o), .key = HF_STR("ann")};
    struct hf_claim_options claim = {.size = sizeof(claim), .key = HF_STR("ann")};
    struct hf_outbox_stats stats;
    struct hf_event_list list;
    struct hf_claim_list claimed;

    emit_all(k->scope, outbox);
    between.calls[HF_OP_QUERY] = 0;
    CHECK_OK(hf_outbox_pending(k->scope, outbox, &o, &list));
    CHECK_INT(8, list.events_len);
    CHECK_INT(1, between.calls[HF_OP_QUERY]);
    CHECK_OK(hf_outbox_failed(k->scope, outbox, &o, &list));
    CHECK_INT(3, between.calls[HF_OP_QUERY]); /* newest first, urgent ones are asked for apart */
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_INT(6, between.calls[HF_OP_QUERY]);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, &claim, &claimed));
    between.calls[HF_OP_QUERY] = 0; /* the first one also looks at other things */
    CHECK_INT(8, claimed.events_len);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, &claim, &claimed));
    CHECK_INT(0, claimed.events_len);
    CHECK_INT(1, between.calls[HF_OP_QUERY]);
    hf_outbox_close(outbox);
}

/* Claims, and what is done with all that has failed, of a tenant. */
KIT_TEST(outbox_only, claims_retries_and_discards)
{
    struct hf_outbox *outbox = open_in(k, k->db);
    struct hf_claim_options claim = {.size = sizeof(claim), .tenant = HF_STR("acme")};
    struct hf_event_list_options o = {.size = sizeof(o), .tenant = HF_STR("acme")};
    struct hf_outbox_stats stats;
    struct hf_claim_list list;
    uint64_t done;

    emit_all(k->scope, outbox);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, &claim, &list));
    CHECK_INT(12, list.events_len);
    for (size_t i = 0; i < list.events_len; i++) {
        CHECK_STR("acme", list.events[i].event.event.tenant);
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &list.events[i], NULL, true, NULL));
    }
    claim.tenant = HF_STR("initech");
    claim.limit = 2;
    CHECK_OK(hf_outbox_claim(k->scope, outbox, &claim, &list));
    CHECK_INT(2, list.events_len);
    for (size_t i = 0; i < list.events_len; i++)
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &list.events[i], NULL, true, NULL));
    CHECK_OK(hf_outbox_stats_of(k->scope, outbox, &o, &stats));
    CHECK_INT(0, stats.pending);
    CHECK_INT(12, stats.failed);
    o.key = HF_STR("ann");
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, &o, &done));
    CHECK_INT(4, done);
    o.key = HF_STR("");
    CHECK_OK(hf_outbox_discard_all(k->scope, outbox, &o, &done));
    CHECK_INT(8, done);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(2, stats.failed);
    CHECK_INT(4 + 10, stats.pending);
    hf_outbox_close(outbox);
}

/* ---- relays --------------------------------------------------------------------------------- */

/* It delivers its part, each key in order, and the others wait. */
static void deliver_part(struct kit *k, struct hf_relay_options options, int count)
{
    struct hf_outbox *outbox = open_in(k, k->db);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, options);
    struct hf_outbox_stats stats;
    uint64_t delivered;

    emit_all(k->scope, outbox);
    CHECK_OK(hf_relay_drain(k->scope, relay, &delivered));
    CHECK_INT(count, delivered);
    for (size_t i = 0; i < ear->len; i++) {
        int number = ear->heard[i].number;

        CHECK(!options.only_key.len ||
              hf_str_equal(hf_str_from(keys[number % 3]), options.only_key));
        CHECK(!options.only_tenant.len ||
              hf_str_equal(hf_str_from(tenants[number / 3 % 2]), options.only_tenant));
        for (size_t j = 0; j < i && !options.competing; j++)
            CHECK(ear->heard[j].number % 3 != number % 3 || ear->heard[j].number < number);
    }
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(EVENTS - count, stats.pending);
    CHECK_INT(count, stats.published);
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_only, a_relay_of_a_key)
{
    deliver_part(k, (struct hf_relay_options){.only_key = HF_STR("ben")}, 8);
}

KIT_TEST(outbox_only, a_relay_of_a_tenant)
{
    deliver_part(k, (struct hf_relay_options){.only_tenant = HF_STR("acme")}, 12);
}

KIT_TEST(outbox_only, a_relay_of_all_three)
{
    deliver_part(k,
                 (struct hf_relay_options){.only_tenant = HF_STR("acme"),
                                           .only_key = HF_STR("eve"),
                                           .only_type = HF_STR("order.*")},
                 3);
}

KIT_TEST(outbox_only, a_competing_relay_of_a_tenant_and_types)
{
    deliver_part(k,
                 (struct hf_relay_options){.competing = true,
                                           .only_tenant = HF_STR("acme"),
                                           .only_type = HF_STR("order.*")},
                 9);
}

struct told {
    int locked;
    char text[200];
};

static void on_error(const struct hf_error *error, void *user)
{
    struct told *told = user;

    if (error->status != HF_LOCKED)
        return;
    told->locked++;
    snprintf(told->text, sizeof(told->text), "%.*s", HF_FMT(error->message));
}

/* (6) One that delivers another part than who is at work waits, says so once, and takes over when
 * that one has ended; two of the same part share the buckets. */
KIT_TEST(outbox_only, different_parts_are_not_delivered_side_by_side)
{
    struct hf_outbox *outbox = open_in(k, k->db);
    struct ear *ear = ear_open(k->scope, 1, false), *other = ear_open(k->scope, 1, false);
    struct told told = {0};
    struct hf_relay *relays[3];
    uint64_t delivered;

    relays[0] = relay_by_turns(k->scope, outbox, ear,
                               (struct hf_relay_options){.only_tenant = HF_STR("acme"),
                                                         .owner = HF_STR("first")});
    relays[1] = relay_by_turns(k->scope, outbox, ear,
                               (struct hf_relay_options){.only_tenant = HF_STR("acme")});
    relays_run_for(k->t, k->scope, relays, 2, 3000);
    relays[2] = relay_by_turns(k->scope, outbox, other,
                               (struct hf_relay_options){.on_error = on_error,
                                                         .user = &told,
                                                         .stall_ms = 2000});
    CHECK_INT(2, metrics_of(relays[0]).buckets);
    CHECK_INT(2, metrics_of(relays[1]).buckets);
    emit_all(k->scope, outbox);
    relays_run_for(k->t, k->scope, relays, 3, 10000);
    CHECK_INT(12, ear->len);
    CHECK_INT(0, other->len);
    CHECK_INT(0, metrics_of(relays[2]).buckets);
    CHECK_INT(1, told.locked);
    CHECK(strstr(told.text, "delivers only tenant=acme of this outbox, and this one all"));
    CHECK_STATUS(HF_TIMEOUT, hf_relay_drain(k->scope, relays[2], &delivered));
    CHECK(strstr(hf_scope_error_text(k->scope), "another relay delivers another part"));

    hf_relay_close(relays[0]);
    hf_relay_close(relays[1]);
    relays_run_for(k->t, k->scope, &relays[2], 1, 3000);
    CHECK_INT(BUCKETS, metrics_of(relays[2]).buckets);
    CHECK_INT(12, other->len);
    hf_relay_close(relays[2]);
    ear_close(ear);
    ear_close(other);
    hf_outbox_close(outbox);
}

/* (6) Two that come together agree on who is first, whichever it is. */
KIT_TEST(outbox_only, of_two_that_come_together_one_waits)
{
    for (int round = 0; round < 4; round++) {
        struct hf_outbox *outbox = open_in(k, k->db);
        struct ear *ear = ear_open(k->scope, 1, false);
        struct hf_relay *relays[2];
        uint32_t one, two;

        relays[0] = relay_by_turns(k->scope, outbox, ear,
                                   (struct hf_relay_options){.only_key = HF_STR("ann")});
        relays[1] = relay_by_turns(k->scope, outbox, ear,
                                   (struct hf_relay_options){.only_key = HF_STR("ben")});
        relays_run_for(k->t, k->scope, relays, 2, 3000);
        one = metrics_of(relays[0]).buckets;
        two = metrics_of(relays[1]).buckets;
        CHECK((one == BUCKETS && two == 0) || (one == 0 && two == BUCKETS));
        hf_relay_close(relays[0]);
        hf_relay_close(relays[1]);
        ear_close(ear);
        hf_outbox_close(outbox);
    }
}
