/*
 * events/aggregate_test.c: state from streams, commands, snapshots, upcasting, on every kind of
 * database. (n) is an invariant of events/aggregate/aggregate.c.
 */
#include "aggregate_kit.h"

#include <holdfast/engine.h>
#include <holdfast/tx.h>

#include <string.h>

/* ---- loading -------------------------------------------------------------------------------- */

KIT_TEST_TX(aggregate, a_state_has_all_events_of_its_stream)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct hf_aggregate_state loaded;
    struct hf_handled handled;

    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(0, loaded.version);
    CHECK_INT(0, ((struct account *)loaded.state)->cents);
    CHECK_OK(put(k->scope, store, &account, "7", 100, 3, &handled));
    CHECK_INT(3, handled.version);
    CHECK_INT(3, handled.events_len);
    CHECK_INT(1, handled.attempts);
    CHECK_INT(300, ((struct account *)handled.state)->cents);
    CHECK_INT(2, handled.events[1].version);
    CHECK_STR("account", handled.events[1].stream.domain);
    CHECK(handled.events[1].id.len > 0 && handled.events[1].time_us > 0);
    CHECK_OK(take(k->scope, store, &account, "7", 250, &handled));
    CHECK_INT(4, handled.version);
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(4, loaded.version);
    CHECK_INT(4, loaded.read);
    CHECK_INT(50, ((struct account *)loaded.state)->cents);
    CHECK_INT(4, ((struct account *)loaded.state)->events);
    CHECK_STR("taken", ((struct account *)loaded.state)->last);

    /* as it was then */
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 2, &loaded));
    CHECK_INT(2, loaded.version);
    CHECK_INT(200, ((struct account *)loaded.state)->cents);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 5, &loaded));
    CHECK_ERROR(HF_NOT_FOUND, "account/7 is at version 4, not yet at version 5", k->scope);
    CHECK(!loaded.state);
    hf_events_close(store);
}

KIT_TEST_TX(aggregate, loading_follows_all_pages)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct hf_aggregate_state loaded;

    for (int i = 0; i < 12; i++)
        CHECK_OK(put(k->scope, store, &account, "7", 1, 45, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(540, loaded.version);
    CHECK_INT(540, ((struct account *)loaded.state)->cents);
    CHECK_INT(540, loaded.read);
    hf_events_close(store);
}

static enum hf_status fill(struct hf_scope *s, void *state, struct hf_event_stream_key stream,
                           void *user)
{
    (void)s;
    (void)user;
    ((struct account *)state)->cents = number_of(hf_bytes_of(stream.id.ptr, stream.id.len));
    return HF_OK;
}

TEST(aggregate, a_description_that_lacks_something_is_told)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_aggregate good = accounts(10), bad = good;
    struct hf_aggregate_state loaded;
    struct transfer transfer = {0};

    bad.domain.len = 0;
    CHECK_STATUS(HF_INVALID, hf_aggregate_load(s, NULL, &bad, HF_STR("7"), 0, &loaded));
    CHECK_ERROR(HF_INVALID, "an aggregate has no domain", s);
    bad = good;
    bad.evolve = NULL;
    CHECK_STATUS(HF_INVALID, hf_aggregate_load(s, NULL, &bad, HF_STR("7"), 0, &loaded));
    CHECK_ERROR(HF_INVALID, "aggregate account has no evolve function", s);
    bad = good;
    bad.state_size = 0;
    CHECK_STATUS(HF_INVALID, hf_aggregate_load(s, NULL, &bad, HF_STR("7"), 0, &loaded));
    CHECK_ERROR(HF_INVALID, "aggregate account has no state_size", s);
    bad = good;
    bad.restore = NULL;
    CHECK_STATUS(HF_INVALID, hf_aggregate_load(s, NULL, &bad, HF_STR("7"), 0, &loaded));
    CHECK_ERROR(HF_INVALID, "aggregate account has only a save function; set both save and restore",
                s);
    CHECK_STATUS(HF_INVALID, put(s, NULL, &good, "", 1, 1, NULL));
    CHECK_ERROR(HF_INVALID, "a command for account has no stream id", s);
    CHECK_STATUS(HF_INVALID,
                 hf_aggregate_handle(s, NULL, &good, HF_STR("7"),
                                     &(struct hf_command){.user = &transfer}, NULL, NULL));
    CHECK_ERROR(HF_INVALID, "a command for account has no decide function", s);
    hf_scope_free(s);
}

/* ---- commands ------------------------------------------------------------------------------- */

static enum hf_status is_open(struct hf_scope *s, const void *state, uint64_t version, void *user)
{
    (void)state;
    (void)user;
    return version ? HF_OK : hf_scope_fail(s, HF_CONDITION, "the account is not open");
}

KIT_TEST_TX(aggregate, what_a_command_refuses_is_not_stored)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct transfer transfer = {.cents = 5, .events = 1};
    struct hf_command command = {.precondition = is_open,
                                 .decide = transfer_put,
                                 .user = &transfer};
    struct hf_aggregate_state loaded;
    struct hf_handled handled;

    account.init = fill;
    CHECK_STATUS(HF_CONDITION, hf_aggregate_handle(k->scope, store, &account, HF_STR("9"), &command,
                                                   NULL, &handled));
    CHECK_ERROR(HF_CONDITION, "the account is not open", k->scope);
    CHECK_INT(0, transfer.decided);
    CHECK(!handled.state);
    CHECK_OK(put(k->scope, store, &account, "9", 1, 1, &handled));
    CHECK_INT(10, ((struct account *)handled.state)->cents); /* 9 by init */
    CHECK_OK(hf_aggregate_handle(k->scope, store, &account, HF_STR("9"), &command, NULL, NULL));
    CHECK_STATUS(HF_DENIED, take(k->scope, store, &account, "9", 16, &handled));
    CHECK_ERROR(HF_DENIED, "there are 15 cents only", k->scope);
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("9"), 0, &loaded));
    CHECK_INT(2, loaded.version);

    /* deciding on nothing is fine */
    CHECK_OK(put(k->scope, store, &account, "9", 1, 0, &handled));
    CHECK_INT(0, handled.events_len);
    CHECK_INT(2, handled.version);
    hf_events_close(store);
}

static enum hf_status not_too_much(struct hf_scope *s, const void *state,
                                   const struct hf_stored_event *event, void *user)
{
    (void)user;
    return ((const struct account *)state)->cents + number_of(event->payload) > 25
               ? hf_scope_fail(s, HF_INVALID, "event %llu is too much",
                               (unsigned long long)event->version)
               : HF_OK;
}

/* Each event is checked with the state in front of it. */
KIT_TEST_TX(aggregate, each_event_is_checked_in_turn)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct hf_aggregate_state loaded;

    account.check = not_too_much;
    CHECK_OK(put(k->scope, store, &account, "7", 10, 2, NULL));
    CHECK_STATUS(HF_INVALID, put(k->scope, store, &account, "7", 2, 3, NULL));
    CHECK_ERROR(HF_INVALID, "event 5 is too much", k->scope);
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(2, loaded.version);
    hf_events_close(store);
}

struct rival {
    struct kit *k;
    struct hf_events *store;
    const struct hf_aggregate *account;
    int until; /* interferes with so many decisions */
};

static void interfere(void *user, int decided)
{
    struct rival *rival = user;
    struct hf_scope *s = hf_scope_new(test_env(rival->k->t));

    if (decided <= rival->until)
        CHECK_OK(take(s, rival->store, rival->account, "7", 60, NULL));
    hf_scope_free(s);
}

/* (1) D5 14: validation does not race across processes. */
KIT_TEST_TX(aggregate, who_is_second_decides_anew)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct rival rival = {.k = k, .store = other, .account = &account, .until = 1};
    struct transfer transfer = {.cents = 60, .meanwhile = interfere, .user = &rival};
    struct hf_command command = {.decide = transfer_take, .user = &transfer};
    struct hf_handled handled;

    CHECK_OK(put(k->scope, store, &account, "7", 130, 1, NULL));
    CHECK_OK(hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, NULL, &handled));
    CHECK_INT(2, handled.attempts);
    CHECK_INT(2, transfer.decided);
    CHECK_INT(3, handled.version);
    CHECK_INT(10, ((struct account *)handled.state)->cents);

    /* and this time there is not enough left for both */
    CHECK_OK(put(k->scope, store, &account, "7", 90, 1, NULL));
    transfer.decided = 0;
    CHECK_STATUS(HF_DENIED, hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command,
                                                NULL, &handled));
    CHECK_ERROR(HF_DENIED, "there are 40 cents only", k->scope);
    hf_events_close(other);
    hf_events_close(store);
}

KIT_TEST_TX(aggregate, attempts_are_bounded)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct rival rival = {.k = k, .store = other, .account = &account, .until = 1000};
    struct transfer transfer = {.cents = 1, .meanwhile = interfere, .user = &rival};
    struct hf_command command = {.decide = transfer_take, .user = &transfer};

    CHECK_OK(put(k->scope, store, &account, "7", 10000, 1, NULL));
    CHECK_STATUS(HF_CONDITION,
                 hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command,
                                     HF_OPTIONS(hf_handle_options, .max_attempts = 3), NULL));
    CHECK_INT(3, transfer.decided);
    CHECK_ERROR(
        HF_CONDITION,
        "a command for account/7 was decided 3 times, and each time another writer appended first",
        k->scope);
    hf_events_close(other);
    hf_events_close(store);
}

KIT_TEST_TX(aggregate, events_of_a_command_are_limited)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);

    CHECK_STATUS(HF_LIMIT,
                 put(k->scope, store, &account, "7", 1, HF_AGGREGATE_EVENTS_MAX + 1, NULL));
    CHECK_ERROR(HF_LIMIT, "a command may emit at most 1000 events", k->scope);
    hf_events_close(store);
}

/* (5) */
KIT_TEST_TX(aggregate, a_command_with_an_id_is_handled_once)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct transfer transfer = {.cents = 10, .events = 2};
    struct hf_command command = {.decide = transfer_put, .user = &transfer};
    struct hf_handle_options *options = HF_OPTIONS(hf_handle_options, .id = HF_STR("cmd-1"));
    struct hf_handled handled;

    CHECK_OK(
        hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, options, &handled));
    CHECK(!handled.repeated);
    CHECK_STR("cmd-1.1", handled.events[0].id);
    CHECK_STR("cmd-1.2", handled.events[1].id);
    CHECK_OK(put(k->scope, store, &account, "7", 1, 1, NULL));
    transfer.decided = 0;
    CHECK_OK(
        hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, options, &handled));
    CHECK(handled.repeated);
    CHECK_INT(0, transfer.decided);
    CHECK_INT(2, handled.events_len);
    CHECK_INT(2, handled.events[1].version);
    CHECK_INT(3, handled.version);
    CHECK_INT(21, ((struct account *)handled.state)->cents);
    CHECK_STATUS(HF_DUPLICATE, hf_aggregate_handle(k->scope, store, &account, HF_STR("8"), &command,
                                                   options, &handled));
    CHECK_ERROR(HF_DUPLICATE, "command id cmd-1 was already used for account/7", k->scope);
    hf_events_close(store);
}

/* Two events with ids of their own, whatever the state is. */
static enum hf_status put_named(struct hf_scope *s, const void *state, struct hf_decision *decision,
                                void *user)
{
    (void)state;
    (void)user;
    for (int i = 1; i <= 2; i++) {
        struct hf_new_event event = {.id = hf_scope_format(s, "named-%d", i),
                                     .type = HF_STR("put"),
                                     .payload = number_as(s, 10)};
        enum hf_status status = hf_decision_emit(s, decision, &event);

        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* A command without an id, whose events have some: who repeats it has the state that there is. */
KIT_TEST_TX(aggregate, events_with_ids_are_in_the_state_once)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(2);
    struct hf_command command = {.decide = put_named};
    struct hf_handled handled;

    CHECK_OK(put(k->scope, store, &account, "7", 1, 1, NULL));
    CHECK_OK(hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, NULL, &handled));
    CHECK(!handled.repeated);
    CHECK_INT(2, handled.events[0].version);
    CHECK_OK(put(k->scope, store, &account, "7", 1, 1, NULL));
    CHECK_OK(hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, NULL, &handled));
    CHECK(handled.repeated);
    CHECK_INT(4, handled.version);
    CHECK_INT(22, ((struct account *)handled.state)->cents);
    CHECK_INT(4, ((struct account *)handled.state)->events);
    CHECK_INT(2, handled.events_len);
    CHECK_STR("named-1", handled.events[0].id);
    CHECK_INT(2, handled.events[0].version);
    CHECK_INT(3, handled.events[1].version);
    hf_events_close(store);
}

static enum hf_status put_and_note(struct hf_scope *s, const void *state,
                                   struct hf_decision *decision, void *user)
{
    struct kit *k = user;
    struct hf_put_item note = {.table = k->other,
                               .item = HF_ITEM(s, HF_S("id", HF_STR("note")),
                                               HF_N("at", hf_decision_version(decision) + 1)),
                               .condition = HF_STR("attribute_not_exists(id)")};
    enum hf_status status =
        hf_decision_write(s, decision, &(struct hf_transact_write){.put = &note});

    (void)state;
    return status != HF_OK ? status
                           : hf_decision_emit(s, decision,
                                              &(struct hf_new_event){.type = HF_STR("put"),
                                                                     .payload = number_as(s, 5)});
}

KIT_TEST_TX(aggregate, what_is_written_with_the_events_is_there_with_them_or_not_at_all)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct hf_command command = {.decide = put_and_note, .user = k};
    struct hf_get_item get = {.table = k->other,
                              .key = HF_ITEM(k->scope, HF_S("id", HF_STR("note"))),
                              .consistent = HF_YES};
    struct hf_get_item_result got;
    struct hf_aggregate_state loaded;
    int64_t at = 0;

    kit_make_table(k, k->other);
    CHECK_OK(hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, NULL, NULL));
    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("at")), &at));
    CHECK_INT(1, at);
    CHECK_STATUS(HF_TX_CANCELED,
                 hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, NULL, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(1, loaded.version);
    hf_events_close(store);
}

/* ---- snapshots ------------------------------------------------------------------------------ */

KIT_TEST_TX(aggregate, a_snapshot_is_made_now_and_then_and_saves_reading)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(4);
    struct hf_aggregate_state loaded;
    struct hf_snapshot snapshot;
    struct hf_handled handled;

    CHECK_OK(put(k->scope, store, &account, "7", 1, 3, &handled));
    CHECK(!handled.snapshot);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_snapshot_get(k->scope, store, ACCOUNT("7"), hf_str_of(NULL, 0), &snapshot));
    CHECK_ERROR(HF_NOT_FOUND, "there is no snapshot of account/7", k->scope);
    CHECK_OK(put(k->scope, store, &account, "7", 1, 2, &handled)); /* passes 4 */
    CHECK(handled.snapshot);
    CHECK_OK(put(k->scope, store, &account, "7", 1, 2, &handled));
    CHECK(!handled.snapshot);
    CHECK_OK(hf_snapshot_get(k->scope, store, ACCOUNT("7"), hf_str_of(NULL, 0), &snapshot));
    CHECK_INT(5, snapshot.version);
    CHECK_INT(1, snapshot.schema);
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(7, loaded.version);
    CHECK_INT(5, loaded.snapshot);
    CHECK_INT(2, loaded.read);
    CHECK_INT(7, ((struct account *)loaded.state)->events);

    /* before the snapshot it is of no use; and after it was deleted */
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 4, &loaded));
    CHECK_INT(4, ((struct account *)loaded.state)->events);
    CHECK_INT(0, loaded.snapshot);
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 5, &loaded));
    CHECK_INT(5, loaded.snapshot);
    CHECK_INT(0, loaded.read);
    CHECK_OK(hf_snapshot_delete(k->scope, store, ACCOUNT("7"), hf_str_of(NULL, 0)));
    CHECK_OK(hf_snapshot_delete(k->scope, store, ACCOUNT("7"), hf_str_of(NULL, 0)));
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(0, loaded.snapshot);
    CHECK_INT(7, loaded.read);
    hf_events_close(store);
}

KIT_TEST_TX(aggregate, an_older_snapshot_never_replaces_a_newer_one)
{
    struct hf_events *store = open_store(k);
    struct hf_str none = hf_str_of(NULL, 0);
    struct hf_snapshot snapshot = {.version = 5,
                                   .item = HF_ITEM(k->scope, HF_S("a", HF_STR("five")))};
    struct hf_snapshot got;
    bool saved;

    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("7"), none, &snapshot, &saved));
    CHECK(saved);
    snapshot.version = 4;
    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("7"), none, &snapshot, &saved));
    CHECK(!saved);
    snapshot.version = 5;
    snapshot.item = HF_ITEM(k->scope, HF_S("a", HF_STR("other")));
    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("7"), none, &snapshot, &saved));
    CHECK(!saved);
    CHECK_OK(hf_snapshot_get(k->scope, store, ACCOUNT("7"), none, &got));
    CHECK_STR("five", hf_value_str(hf_item_get(got.item, HF_STR("a"))));
    CHECK(got.time_us > 0);
    snapshot.schema = 2; /* a newer form of the same version is newer */
    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("7"), none, &snapshot, &saved));
    CHECK(saved);
    snapshot.schema = 1;
    snapshot.version = 6;
    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("7"), none, &snapshot, &saved));
    CHECK(saved);

    /* others are others */
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_snapshot_get(k->scope, store, ACCOUNT("7"), HF_STR("named"), &got));
    CHECK_STATUS(HF_NOT_FOUND, hf_snapshot_get(k->scope, store, ACCOUNT("8"), none, &got));
    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("7"), HF_STR("named"), &snapshot, NULL));
    CHECK_OK(hf_snapshot_delete(k->scope, store, ACCOUNT("7"), none));
    CHECK_OK(hf_snapshot_get(k->scope, store, ACCOUNT("7"), HF_STR("named"), &got));
    CHECK_INT(6, got.version);

    snapshot.version = 0;
    CHECK_STATUS(HF_INVALID,
                 hf_snapshot_save(k->scope, store, ACCOUNT("7"), none, &snapshot, &saved));
    CHECK_ERROR(HF_INVALID, "a snapshot of account/7 needs a version and an item", k->scope);
    hf_events_close(store);
}

/* (3) */
KIT_TEST_TX(aggregate, a_snapshot_that_does_not_fit_is_passed_over)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(4), newer = account, named = account;
    struct hf_aggregate_state loaded;
    struct hf_snapshot ahead = {.version = 90,
                                .item = HF_ITEM(k->scope, HF_N("cents", 1), HF_N("events", 1))};

    newer.snapshot_schema = 2;
    named.name = HF_STR("named");
    CHECK_OK(put(k->scope, store, &account, "7", 1, 5, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, store, &newer, HF_STR("7"), 0, &loaded));
    CHECK_INT(0, loaded.snapshot);
    CHECK_INT(5, loaded.read);
    CHECK_OK(hf_aggregate_load(k->scope, store, &named, HF_STR("7"), 0, &loaded));
    CHECK_INT(0, loaded.snapshot);

    /* one that is ahead of the stream is of another one */
    CHECK_OK(put(k->scope, store, &account, "8", 1, 2, NULL));
    CHECK_OK(hf_snapshot_save(k->scope, store, ACCOUNT("8"), hf_str_of(NULL, 0), &ahead, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("8"), 0, &loaded));
    CHECK_INT(2, loaded.version);
    CHECK_INT(2, ((struct account *)loaded.state)->events);
    CHECK_INT(0, loaded.snapshot);
    hf_events_close(store);
}

/* (2) */
KIT_TEST_TX(aggregate, a_truncated_stream_has_a_state_only_by_a_snapshot)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate with = accounts(4), without = accounts(0);
    struct hf_aggregate_state loaded;

    CHECK_OK(put(k->scope, store, &with, "7", 1, 5, NULL)); /* a snapshot at 5 */
    CHECK_OK(put(k->scope, store, &with, "7", 1, 2, NULL));
    CHECK_OK(hf_events_truncate(k->scope, store, ACCOUNT("7"), 6));
    CHECK_OK(hf_aggregate_load(k->scope, store, &with, HF_STR("7"), 0, &loaded));
    CHECK_INT(7, ((struct account *)loaded.state)->events);
    CHECK_STATUS(HF_TRIMMED, hf_aggregate_load(k->scope, store, &without, HF_STR("7"), 0, &loaded));
    CHECK_ERROR(
        HF_TRIMMED,
        "account/7 begins at version 6, and no usable snapshot covers the versions before it",
        k->scope);
    CHECK_STATUS(HF_TRIMMED, put(k->scope, store, &without, "7", 1, 1, NULL));
    CHECK_OK(hf_events_truncate(k->scope, store, ACCOUNT("7"), 8)); /* all of it */
    CHECK_STATUS(HF_TRIMMED, hf_aggregate_load(k->scope, store, &with, HF_STR("7"), 0, &loaded));
    CHECK_ERROR(
        HF_TRIMMED,
        "account/7 begins at version 8, and no usable snapshot covers the versions before it",
        k->scope);
    hf_events_close(store);
}

KIT_TEST_TX(aggregate, a_deleted_stream_has_no_state)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(0);
    struct hf_aggregate_state loaded;

    CHECK_OK(put(k->scope, store, &account, "7", 1, 5, NULL));
    CHECK_OK(hf_events_tombstone(k->scope, store, ACCOUNT("7"), HF_EXPECT_ANY, 0));
    CHECK_STATUS(HF_DELETED, hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_STATUS(HF_DELETED, put(k->scope, store, &account, "7", 1, 5, NULL));
    hf_events_close(store);
}

struct complaints {
    int count;
    enum hf_status status;
    char text[200];
};

static void complain(const struct hf_error *error, struct hf_event_stream_key stream, void *user)
{
    struct complaints *complaints = user;

    CHECK_STR("7", stream.id);
    complaints->count++;
    complaints->status = error->status;
    CHECK(error->message.len < sizeof(complaints->text));
    memcpy(complaints->text, error->message.ptr, error->message.len);
    complaints->text[error->message.len] = 0;
}

static enum hf_status save_badly(struct hf_scope *s, const void *state, struct hf_item *item,
                                 void *user)
{
    (void)state;
    (void)item;
    (void)user;
    return hf_scope_fail(s, HF_DENIED, "not today");
}

/* (4), and what the tests of the system we follow ask for */
KIT_TEST_TX(aggregate, a_failing_snapshot_does_not_fail_the_command)
{
    struct hf_events *store = open_store(k);
    struct hf_aggregate account = accounts(1);
    struct complaints complaints = {0};
    struct transfer transfer = {.cents = 10, .events = 1};
    struct hf_command command = {.decide = transfer_put, .user = &transfer};
    struct hf_handle_options *options =
        HF_OPTIONS(hf_handle_options, .on_error = complain, .user = &complaints);
    struct hf_handled handled;

    account.save = save_badly;
    CHECK_OK(
        hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, options, &handled));
    CHECK_INT(1, handled.version);
    CHECK(!handled.snapshot);
    CHECK_INT(1, complaints.count);
    CHECK_INT(HF_DENIED, complaints.status);
    CHECK_STR("not today", hf_str_from(complaints.text));

    /* the database refuses it */
    account.save = account_save;
    kit_fault(k, HF_FAULT_LOST_REQUEST, "PutItem", 0);
    CHECK_OK(
        hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, options, &handled));
    kit_no_faults(k);
    CHECK_INT(2, handled.version);
    CHECK_INT(2, complaints.count);
    CHECK_INT(20, ((struct account *)handled.state)->cents);

    /* not wanted */
    options->no_snapshot = true;
    CHECK_OK(
        hf_aggregate_handle(k->scope, store, &account, HF_STR("7"), &command, options, &handled));
    CHECK(!handled.snapshot);
    CHECK_INT(2, complaints.count);
    hf_events_close(store);
}

KIT_TEST_TX(aggregate, a_lost_answer_to_a_snapshot_does_not_matter)
{
    struct hf_events *store = open_store(k);
    struct hf_snapshot snapshot = {.version = 5,
                                   .item = HF_ITEM(k->scope, HF_S("a", HF_STR("five")))};
    bool saved;

    kit_fault(k, HF_FAULT_LOST_ANSWER, "PutItem", 1);
    CHECK_OK(
        hf_snapshot_save(k->scope, store, ACCOUNT("7"), hf_str_of(NULL, 0), &snapshot, &saved));
    CHECK(saved);
    hf_events_close(store);
}

/* ---- transactions --------------------------------------------------------------------------- */

struct both {
    struct hf_events *store;
    struct hf_aggregate account;
};

static enum hf_status move_money(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct both *both = user;
    enum hf_status status;

    (void)tx;
    status = take(s, both->store, &both->account, "1", 70, NULL);
    return status == HF_OK ? put(s, both->store, &both->account, "2", 70, 1, NULL) : status;
}

/* What does not ask to join is stored, whatever becomes of the transaction. */
static enum hf_status pay_and_fail(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct transfer transfer = {.cents = 5, .events = 1};
    struct both *both = user;

    CHECK_OK(hf_aggregate_handle(s, both->store, &both->account, HF_STR("3"),
                                 &(struct hf_command){.decide = transfer_put, .user = &transfer},
                                 NULL, NULL));
    CHECK_INT(0, hf_tx_len(tx));
    return hf_scope_fail(s, HF_DENIED, "no");
}

KIT_TEST_TX(aggregate, commands_are_handled_at_once_unless_they_ask_to_join)
{
    struct both both = {.store = open_store(k), .account = accounts(1)};
    struct hf_aggregate_state three;

    CHECK_STATUS(HF_DENIED, hf_tx_run(k->scope, k->db, pay_and_fail, &both, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, both.store, &both.account, HF_STR("3"), 0, &three));
    CHECK_INT(5, ((struct account *)three.state)->cents);
    hf_events_close(both.store);
}

KIT_TEST_TX(aggregate, commands_join_the_transaction_of_the_scope)
{
    struct both both = {.store = open_store(k), .account = accounts(1)};
    struct hf_aggregate_state one, two;
    struct hf_snapshot snapshot;

    CHECK_OK(put(k->scope, both.store, &both.account, "1", 100, 1, NULL));
    CHECK_OK(hf_tx_run(k->scope, k->db, move_money, &both, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, both.store, &both.account, HF_STR("1"), 0, &one));
    CHECK_OK(hf_aggregate_load(k->scope, both.store, &both.account, HF_STR("2"), 0, &two));
    CHECK_INT(30, ((struct account *)one.state)->cents);
    CHECK_INT(70, ((struct account *)two.state)->cents);
    CHECK_STATUS(HF_NOT_FOUND, hf_snapshot_get(k->scope, both.store, ACCOUNT("2"),
                                               hf_str_of(NULL, 0), &snapshot));
    CHECK_STATUS(HF_DENIED, hf_tx_run(k->scope, k->db, move_money, &both, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, both.store, &both.account, HF_STR("2"), 0, &two));
    CHECK_INT(1, two.version);
    hf_events_close(both.store);
}

/* ---- upcasting ------------------------------------------------------------------------------ */

static enum hf_status one_further(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                                  void *user)
{
    struct hf_str text = hf_scope_format(s, "%.*s%u", (int)event->payload.len,
                                         (const char *)event->payload.ptr, from);

    (void)user;
    event->payload = hf_bytes_of(text.ptr, text.len);
    return HF_OK;
}

static enum hf_status to_three(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                               void *user)
{
    (void)s;
    (void)from;
    ++*(int *)user;
    event->schema = 3;
    return HF_OK;
}

static enum hf_status nothing(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                              void *user)
{
    (void)s;
    (void)event;
    (void)from;
    ++*(int *)user;
    return HF_OK;
}

static enum hf_status renamed(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                              void *user)
{
    (void)s;
    (void)from;
    event->type = hf_str_from(user);
    event->schema = 1;
    return HF_OK;
}

static enum hf_status down(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                           void *user)
{
    (void)s;
    (void)from;
    (void)user;
    event->schema = 1;
    return HF_OK;
}

TEST(aggregate, upcasting_goes_step_by_step_up_to_the_current_schema)
{
    static char put_name[] = "put", other_name[] = "deposited";
    struct hf_scope *s = hf_scope_new(test_env(t));
    int calls = 0;
    struct hf_upcast chain = {.type = HF_STR("put"),
                              .schema = 4,
                              .upcast = one_further,
                              .user = NULL};
    struct hf_upcast jump = {.type = HF_STR("put"),
                             .schema = 3,
                             .upcast = to_three,
                             .user = &calls};
    struct hf_upcast same = {.type = HF_STR("put"), .schema = 3, .upcast = nothing, .user = &calls};
    struct hf_upcast rename[] = {
        {.type = HF_STR("deposited"), .schema = 2, .upcast = renamed, .user = put_name},
        {.type = HF_STR("put"), .schema = 3, .upcast = one_further, .user = NULL}};
    struct hf_upcast circle[] = {
        {.type = HF_STR("deposited"), .schema = 2, .upcast = renamed, .user = put_name},
        {.type = HF_STR("put"), .schema = 2, .upcast = renamed, .user = other_name}};
    struct hf_upcast fall = {.type = HF_STR("put"), .schema = 3, .upcast = down, .user = NULL};
    struct hf_stored_event stored = {.id = HF_STR("e"),
                                     .type = HF_STR("put"),
                                     .payload = PAYLOAD("5"),
                                     .schema = 1};
    struct hf_stored_event event = stored;

    CHECK_OK(hf_event_upcast(s, &chain, 1, &event));
    CHECK_STR("5123", payload_of(&event));
    CHECK_INT(4, event.schema);
    CHECK_OK(hf_event_upcast(s, &chain, 1, &event)); /* it is up to date */
    CHECK_STR("5123", payload_of(&event));
    event = stored;
    event.schema = 3;
    CHECK_OK(hf_event_upcast(s, &chain, 1, &event));
    CHECK_STR("53", payload_of(&event));
    event.schema = 9; /* of a newer program */
    CHECK_OK(hf_event_upcast(s, &chain, 1, &event));
    CHECK_INT(9, event.schema);

    event = stored;
    CHECK_OK(hf_event_upcast(s, &jump, 1, &event));
    CHECK_INT(1, calls);
    CHECK_INT(3, event.schema);
    event = stored;
    CHECK_OK(hf_event_upcast(s, &same, 1, &event)); /* unchanged, but of the current schema */
    CHECK_INT(3, calls);
    CHECK_INT(3, event.schema);
    CHECK_STR("5", payload_of(&event));

    event = stored;
    event.type = HF_STR("deposited");
    CHECK_OK(hf_event_upcast(s, rename, 2, &event));
    CHECK_STR("put", event.type);
    CHECK_INT(3, event.schema);
    CHECK_STR("52", payload_of(&event));
    event = stored;
    event.type = HF_STR("unknown");
    CHECK_OK(hf_event_upcast(s, rename, 2, &event));
    CHECK_INT(1, event.schema);

    event = stored;
    event.schema = 2;
    CHECK_STATUS(HF_INVALID, hf_event_upcast(s, &fall, 1, &event));
    CHECK_ERROR(HF_INVALID, "upcasting event e (type put) lowered its schema from 2 to 1", s);
    event = stored;
    CHECK_OK(hf_event_upcast(s, circle, 2, &event)); /* the schema stops it */
    CHECK_INT(2, event.schema);
    hf_scope_free(s);
}

static enum hf_status spin(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                           void *user)
{
    (void)s;
    (void)event;
    (void)from;
    ++*(uint32_t *)user;
    return HF_OK;
}

TEST(aggregate, upcasting_comes_to_an_end)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    uint32_t steps = 0;
    struct hf_upcast far = {.type = HF_STR("put"),
                            .schema = HF_UPCAST_STEPS_MAX + 1,
                            .upcast = spin,
                            .user = &steps};
    struct hf_stored_event event = {.id = HF_STR("e"), .type = HF_STR("put"), .schema = 1};

    CHECK_OK(hf_event_upcast(s, &far, 1, &event));
    CHECK_INT(HF_UPCAST_STEPS_MAX, steps);
    far.schema = HF_UPCAST_STEPS_MAX + 2;
    event.schema = 1;
    CHECK_STATUS(HF_LIMIT, hf_event_upcast(s, &far, 1, &event));
    CHECK_ERROR(HF_LIMIT, "upcasting event e (type put) does not terminate", s);
    hf_scope_free(s);
}

static enum hf_status to_cents(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                               void *user)
{
    (void)user;
    CHECK_INT(1, from);
    event->payload = number_as(s, 100 * number_of(event->payload));
    return HF_OK;
}

KIT_TEST_TX(aggregate, old_events_are_brought_up_when_they_are_read)
{
    struct hf_events *store = open_store(k);
    struct hf_upcast upcast = {.type = HF_STR("put"),
                               .schema = 2,
                               .upcast = to_cents,
                               .user = NULL};
    struct hf_aggregate account = accounts(0);
    struct hf_new_event events[] = {{.type = HF_STR("put"), .payload = PAYLOAD("3")},
                                    {.type = HF_STR("put"), .payload = PAYLOAD("7"), .schema = 2}};
    struct hf_append append = {.stream = ACCOUNT("7"), .events = events, .events_len = 2};
    struct hf_aggregate_state loaded;
    struct hf_events_page page;

    account.upcasts = &upcast;
    account.upcasts_len = 1;
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_aggregate_load(k->scope, store, &account, HF_STR("7"), 0, &loaded));
    CHECK_INT(307, ((struct account *)loaded.state)->cents);
    CHECK_OK(hf_events_read(k->scope, store, ACCOUNT("7"), NULL, &page));
    CHECK_STR("3", payload_of(&page.events[0])); /* what is stored stays */
    hf_events_close(store);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(aggregate, any_failing_allocation_gives_a_handled_command_or_an_error)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_db *db = NULL;
        struct hf_events *store = NULL;
        struct hf_aggregate account = accounts(2);
        struct hf_handled handled = {0};
        struct hf_aggregate_state loaded = {0};
        enum hf_status status = HF_NOMEM;

        if (s)
            status =
                hf_open(s, HF_STR("memory:"),
                        HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                        &db);
        if (status == HF_OK)
            status = hf_events_open(s, db, NULL, &store);
        if (status == HF_OK)
            status = put(s, store, &account, "7", 5, 3, &handled);
        if (status == HF_OK)
            status = hf_aggregate_load(s, store, &account, HF_STR("7"), 0, &loaded);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status == HF_OK)
            CHECK_INT(15, ((struct account *)loaded.state)->cents);
        else
            CHECK(t->alloc_failed);
        hf_events_close(store);
        hf_db_close(db);
        hf_scope_free(s);
    }
}
