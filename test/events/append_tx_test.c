/*
 * test/events/append_tx_test.c: appends in the transaction of the scope; (n) is an invariant of
 * events_append_tx.c. And what appends do about markers.
 */
#include "events/store/events.h"
#include "events_kit.h"

struct work {
    struct kit *k;
    struct hf_events *store, *other;
    const char *ids[2];
    int built;
    struct hf_appended done[2];
    enum hf_expect expect;
    uint64_t version;
    uint64_t other_at; /* when it is built so many times, the other store appends behind it */
    const char *close; /* and there the marker of the shard is closed */
    size_t padding;    /* actions that are there before */
    size_t events;
};

static enum hf_status add_padding(struct hf_scope *s, struct hf_tx *tx, struct work *w)
{
    for (size_t i = 0; i < w->padding; i++) {
        struct hf_put_item put = {.table = w->k->table,
                                  .item = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "n.pad%zu", i)),
                                                  HF_S("sk", HF_STR("n")))};
        enum hf_status status = hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put});

        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* Append to stream "1", and to "2" in a second call. */
static enum hf_status build(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct work *w = user;
    struct hf_new_event events[100];
    struct hf_append append = {.stream = ORDER("1"),
                               .expect = w->expect,
                               .version = w->version,
                               .events = events,
                               .events_len = w->events ? w->events : 1};
    struct hf_appended theirs;
    enum hf_status status;

    w->built++;
    for (size_t i = 0; i < 100; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t")};
    events[0].id = hf_str_from(w->ids[0]);
    status = add_padding(s, tx, w);
    if (status == HF_OK)
        status = hf_events_append_into(s, w->store, tx, &append, 1, NULL, &w->done[0]);
    if (status != HF_OK)
        return status;
    append.stream = ORDER("2");
    append.expect = HF_EXPECT_ANY;
    append.events_len = 1;
    events[0].id = hf_str_from(w->ids[1]);
    status = hf_events_append(s, w->store, &append, 1,
                              HF_OPTIONS(hf_append_options, .join_tx = true), &w->done[1]);
    if (status == HF_OK && w->other_at && (uint64_t)w->built == w->other_at) {
        struct kit theirs_kit = *w->k;

        theirs_kit.scope = kit_scope(w->k); /* which has no transaction */
        CHECK_OK(append_some(&theirs_kit, w->other, ORDER("1"), HF_EXPECT_ANY, 0, 1, &theirs));
    }
    return status;
}

static struct work work_of(struct kit *k)
{
    return (struct work){.k = k, .store = open_store(k), .other = open_store(k)};
}

static void close_work(struct work *w)
{
    hf_events_close(w->store);
    hf_events_close(w->other);
}

static uint64_t version_of(struct kit *k, struct hf_events *store, const char *id)
{
    struct hf_events_page page;

    CHECK_OK(hf_events_read(k->scope, store,
                            (struct hf_event_stream_key){HF_STR("order"), hf_str_from(id)}, NULL,
                            &page));
    CHECK_INT(page.version, page.events_len);
    return page.version;
}

/* Two appends in one transaction: nothing is there before the commit, all of it is then. (2) */
KIT_TEST_TX(append_tx, appends_happen_with_the_transaction)
{
    struct work w = work_of(k);
    struct hf_new_event twice = {.type = HF_STR("t")};
    struct hf_append append = {.stream = ORDER("1"), .events = &twice, .events_len = 1};
    struct hf_stored_event event;
    struct hf_tx *tx, *before;
    struct hf_appended done;

    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    before = hf_scope_set_tx(k->scope, tx);
    CHECK_OK(build(k->scope, tx, &w));
    CHECK_INT(1, w.done[0].last);
    CHECK_INT(1, w.done[1].last);
    CHECK(memcmp(w.done[0].position.ptr, w.done[1].position.ptr, HF_POSITION_LEN) < 0);
    CHECK_INT(7, hf_tx_len(tx));               /* head, event, commit of each; one marker */
    CHECK_INT(0, atomic_load(&w.store->busy)); /* each has given back the shard that it took */
    CHECK_STATUS(HF_INVALID, hf_events_append_into(k->scope, w.store, tx, &append, 1, NULL, &done));
    CHECK_ERROR(HF_INVALID,
                "stream \"order/1\" is already part of this transaction; append to it only once",
                k->scope);
    CHECK_INT(7, hf_tx_len(tx));
    CHECK_INT(0, version_of(k, w.store, "1"));
    hf_scope_set_tx(k->scope, before);
    CHECK_OK(hf_tx_commit(k->scope, tx, NULL));
    CHECK_INT(1, version_of(k, w.store, "1"));
    CHECK_INT(1, version_of(k, w.other, "2"));
    CHECK_OK(hf_events_get(k->scope, w.other, w.done[1].ids[0], &event));
    CHECK_STR("2", event.stream.id);
    CHECK_OK(append_some(k, w.store, ORDER("1"), HF_EXPECT_VERSION, 1, 1, &done));
    close_work(&w);
}

/* One that is not committed leaves nothing; one that does not ask to join is stored at once. */
KIT_TEST_TX(append_tx, what_is_not_committed_does_not_happen)
{
    struct work w = work_of(k);
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_append append = {.stream = ORDER("3"), .events = &event, .events_len = 1};
    struct hf_tx *tx, *before;

    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    before = hf_scope_set_tx(k->scope, tx);
    CHECK_OK(build(k->scope, tx, &w));
    CHECK_OK(hf_events_append(k->scope, w.store, &append, 1, NULL, NULL));
    CHECK_INT(1, version_of(k, w.store, "3"));
    hf_scope_set_tx(k->scope, before);
    CHECK_INT(0, version_of(k, w.store, "1"));
    CHECK_INT(0, version_of(k, w.store, "2"));
    CHECK_INT(1, version_of(k, w.store, "3"));
    close_work(&w);
}

/* (4): others were faster: it is built again, or the expectation is told to be wrong. */
KIT_TEST_TX(append_tx, others_who_are_faster_let_it_be_built_anew)
{
    struct work w = work_of(k);

    w.other_at = 1;
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK_INT(2, w.built);
    CHECK_INT(2, w.done[0].last);
    CHECK_INT(2, version_of(k, w.store, "1"));
    CHECK_INT(1, version_of(k, w.store, "2"));
    w.built = 0;
    w.expect = HF_EXPECT_VERSION;
    w.version = 2;
    CHECK_STATUS(HF_CONDITION, hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK_INT(2, w.built);
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" is at version 3, expected version 2", k->scope);
    CHECK_INT(3, w.done[0].last);
    CHECK_INT(1, version_of(k, w.store, "2"));
    close_work(&w);
}

/* (1): ids that are there are found before; only some of them are an error. */
KIT_TEST_TX(append_tx, the_same_events_again_add_nothing)
{
    struct work w = work_of(k);

    w.ids[0] = "a";
    w.ids[1] = "b";
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK(!w.done[0].repeated && !w.done[1].repeated);
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK(w.done[0].repeated && w.done[1].repeated);
    CHECK_INT(1, version_of(k, w.store, "1"));
    w.ids[0] = "b";
    CHECK_STATUS(HF_DUPLICATE, hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK_INT(1, version_of(k, w.store, "1"));
    close_work(&w);
}

/* As many as there is room for, and one more: then nothing is added. */
KIT_TEST_TX(append_tx, there_is_room_for_a_hundred_actions)
{
    struct work w = work_of(k);

    w.padding = 50;
    w.events = 44; /* with head, commit, marker, and three of the other stream: a hundred */
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK_INT(44, version_of(k, w.store, "1"));
    w.padding = 51;
    CHECK_STATUS(HF_LIMIT, hf_tx_run(k->scope, k->db, build, &w, NULL));
    CHECK_INT(44, version_of(k, w.store, "1"));
    CHECK_INT(1, version_of(k, w.store, "2"));
    close_work(&w);
}

/* ---- markers -------------------------------------------------------------------------------- */

/* Close all shards of that day up to that position, as readers do. */
static void close_upto(struct kit *k, struct hf_str day, struct hf_str position)
{
    for (uint32_t shard = 0; shard < HF_EVENTS_SHARDS; shard++) {
        struct hf_update_item update = {
            .table = k->table,
            .key = HF_ITEM(k->scope, HF_S("pk", hf__events_part(k->scope, 'm', day, shard)),
                           HF_S("sk", HF_STR("m"))),
            .update = HF_STR("SET #c = :c"),
            .names = HF_ITEM(k->scope, HF_S("#c", HF_STR("c"))),
            .values = HF_ITEM(k->scope, HF_S(":c", position))};

        CHECK_OK(hf_update_item(k->scope, k->db, &update, NULL));
    }
}

static struct hf_str day_of(struct kit *k, int64_t ms)
{
    char day[EVENTS_DAY_LEN + 1];

    hf__events_day(ms, day);
    return hf_scope_copy(k->scope, hf_str_from(day));
}

/* Positions behind what is closed: by another clock, by hours, by days that are over. */
KIT_TEST_TX(marker, what_is_closed_is_passed)
{
    struct work w = work_of(k);
    int64_t now = k->t->wall_us / 1000, begin;
    struct events_position ahead = hf__events_position_floor(now + 3600 * 1000);
    struct hf_put_item upto = {.table = k->table};
    struct hf_appended done;

    CHECK(hf__events_day_begin(day_of(k, now), &begin));
    CHECK_OK(append_some(k, w.store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    CHECK(memcmp(done.position.ptr, ahead.text, HF_POSITION_LEN) < 0);
    close_upto(k, day_of(k, now), position_str(&ahead));
    CHECK_OK(append_some(k, w.store, ORDER("1"), HF_EXPECT_VERSION, 1, 3, &done));
    CHECK_INT(4, done.last);
    CHECK(memcmp(done.ids[0].ptr, ahead.text, HF_POSITION_LEN) > 0);
    CHECK_OK(append_some(k, w.other, ORDER("2"), HF_EXPECT_NONE, 0, 150, &done));
    CHECK(memcmp(done.ids[0].ptr, ahead.text, HF_POSITION_LEN) > 0);
    w.other = (hf_events_close(w.other), open_store(k)); /* which knows nothing */
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &(struct work){.k = k, .store = w.other}, NULL));

    /* The day is over, and so is the next. */
    ahead = hf__events_position_floor(begin + 86400000);
    close_upto(k, day_of(k, now), position_str(&ahead));
    upto.item = HF_ITEM(k->scope, HF_S("pk", HF_STR("d")), HF_S("sk", HF_STR("closed")),
                        HF_S("u", day_of(k, begin + 2 * 86400000)));
    CHECK_OK(hf_put_item(k->scope, k->db, &upto, NULL));
    CHECK_OK(append_some(k, w.store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    ahead = hf__events_position_floor(begin + 2 * 86400000);
    CHECK(memcmp(done.ids[0].ptr, ahead.text, HF_POSITION_LEN) > 0);
    w.other = (hf_events_close(w.other), open_store(k));
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &(struct work){.k = k, .store = w.other}, NULL));
    CHECK_OK(append_some(k, w.other, ORDER("9"), HF_EXPECT_NONE, 0, 150, &done));
    CHECK(memcmp(done.ids[0].ptr, ahead.text, HF_POSITION_LEN) > 0);
    close_work(&w);
}

/* Calendar days, both ways. */
TEST(marker, days_are_those_of_the_calendar)
{
    static const struct {
        int64_t ms;
        const char *day;
    } days[] = {{0, "19700101"},
                {86399999, "19700101"},
                {86400000, "19700102"},
                {INT64_C(951782400000), "20000229"},
                {INT64_C(951868800000), "20000301"},
                {INT64_C(1709164800000), "20240229"},
                {INT64_C(1794700800000), "20261115"},
                {INT64_C(1798761599999), "20261231"},
                {INT64_C(4107542400000), "21000301"},
                {INT64_C(4107542399999), "21000228"}};
    static const char *const none[] = {"20230229", "20231301", "20230001",
                                       "2023010",  "2023010a", "19691231"};
    int64_t ms;

    (void)t;
    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
        char day[EVENTS_DAY_LEN + 1];

        hf__events_day(days[i].ms, day);
        CHECK_STR(days[i].day, hf_str_from(day));
        CHECK(hf__events_day_begin(hf_str_from(day), &ms));
        CHECK_INT(days[i].ms - days[i].ms % 86400000, ms);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        CHECK(!hf__events_day_begin(hf_str_from(none[i]), &ms));
}

/* Positions: a clock that is set back, many in one millisecond, what others have made. */
KIT_TEST_TX(marker, positions_only_grow)
{
    struct hf_events *store = open_store(k);
    struct events_position last = hf__events_position_make(store, 0, 1);
    struct events_position other;
    uint32_t shard, number;
    int64_t ms;

    for (int i = 0; i < 5000; i++) {
        struct events_position next =
            hf__events_position_make(store, (uint32_t)i % HF_EVENTS_SHARDS, 1 + (uint32_t)i % 3);

        CHECK(memcmp(last.text, next.text, HF_POSITION_LEN) < 0);
        last = hf__events_position_later(&next, (uint32_t)i % 3);
        if (i == 1000)
            k->t->wall_us -= 1000000;
        if (i == 2000) {
            other = hf__events_position_floor(k->t->wall_us / 1000 + 500000);
            hf__events_observe(store, position_str(&other));
            hf__events_observe(store, HF_STR("nonsense"));
        }
    }
    CHECK(memcmp(other.text, last.text, HF_POSITION_LEN) < 0);
    hf__events_position_number(&last, 1023);
    CHECK(hf__events_position_read(position_str(&last), &ms, &shard, &number));
    CHECK_INT(1023, number);
    CHECK_INT(4999 % HF_EVENTS_SHARDS, shard);
    CHECK_INT(k->t->wall_us / 1000 + 500000, ms);
    CHECK(!hf__events_position_read(HF_STR("01ARZ3NDEKTSV4RRFFQ69G5FA"), &ms, &shard, &number));
    CHECK(!hf__events_position_read(HF_STR("01ARZ3NDEKTSV4RRFFQ69G5FAu"), &ms, &shard, &number));
    CHECK(!hf__events_position_read(HF_STR(""), &ms, &shard, &number));
    hf_events_close(store);
}
