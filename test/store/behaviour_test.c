/* store/behaviour_test.c: what every kind of store does, as store.h says. */
#include "kinds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

TEST(store, get_put_delete)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        struct store_batch batch;
        uint64_t ticket;

        fixture_open(t, &f, kind);
        CHECK(!get(&f, NULL, "k").ptr);
        put(&f, "k", "one");
        CHECK_STR("one", get(&f, NULL, "k"));
        put(&f, "k", "");
        CHECK_STR("", get(&f, NULL, "k")); /* empty, which is not absent */
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_delete(&batch, bytes_from("k"));
        hf__batch_delete(&batch, bytes_from("never there"));
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK_OK(hf__store_sync(f.s, f.store, ticket));
        CHECK(!get(&f, NULL, "k").ptr);
        fixture_close(&f);
    }
}

/* What is put or deleted is copied; of parts the batch has only the head, until it is written. */
TEST(store, a_batch_copies_or_points)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        struct store_batch batch;
        char key[] = "k", value[] = "value", body[] = "body";
        uint64_t ticket;

        fixture_open(t, &f, kind);
        put(&f, "x", "old");
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_put(&batch, bytes_from(key), bytes_from(value));
        value[0] = 'V';
        key[0] = 'x';
        hf__batch_delete(&batch, bytes_from(key));
        key[0] = 'y';
        hf__batch_put_parts(&batch, bytes_from("p"), bytes_from(key), bytes_from(body), false);
        key[0] = 'z';
        body[0] = 'B';
        hf__batch_put_parts(&batch, bytes_from("q"), bytes_from("head"), bytes_from(""), false);
        CHECK_INT(4, batch.count);
        CHECK_INT(1 + 5 + 1 + 1 + 1 + 4 + 1 + 4, batch.bytes);
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        body[1] = 'O';
        CHECK_STR("k=value p=yBody q=head", walk(&f, NULL, "", "", false));
        fixture_close(&f);
    }
}

TEST(store, the_last_change_of_a_batch_wins)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        struct store_batch batch;
        uint64_t ticket;

        fixture_open(t, &f, kind);
        put(&f, "b", "old");
        put(&f, "c", "old");
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_put(&batch, bytes_from("a"), bytes_from("1"));
        hf__batch_put(&batch, bytes_from("a"), bytes_from("2"));
        hf__batch_delete(&batch, bytes_from("b"));
        hf__batch_put(&batch, bytes_from("b"), bytes_from("3"));
        hf__batch_put(&batch, bytes_from("d"), bytes_from("4"));
        hf__batch_delete(&batch, bytes_from("d"));
        hf__batch_delete_range(&batch, bytes_from("c"), bytes_from("z"));
        hf__batch_put(&batch, bytes_from("e"), bytes_from("5"));
        hf__batch_delete_range(&batch, bytes_from("z"), bytes_from("a")); /* empty: nothing */
        hf__batch_delete_range(&batch, bytes_from("a"), bytes_from("a"));
        CHECK_INT(8, batch.count);
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK_STR("a=2 b=3 e=5", walk(&f, NULL, "", "", false));
        fixture_close(&f);
    }
}

TEST(store, ranges_both_ways)
{
    EACH_KIND(kind)
    {
        struct fixture f;

        fixture_open(t, &f, kind);
        CHECK_STR("", walk(&f, NULL, "", "", false));
        CHECK_STR("", walk(&f, NULL, "", "", true));
        put(&f, "b", "2");
        put(&f, "d", "4");
        put(&f, "a", "1");
        put(&f, "c", "3");
        CHECK_STR("a=1 b=2 c=3 d=4", walk(&f, NULL, "", "", false));
        CHECK_STR("d=4 c=3 b=2 a=1", walk(&f, NULL, "", "", true));
        CHECK_STR("b=2 c=3", walk(&f, NULL, "b", "d", false));
        CHECK_STR("c=3 b=2", walk(&f, NULL, "b", "d", true));
        CHECK_STR("b=2 c=3 d=4", walk(&f, NULL, "aa", "", false));
        CHECK_STR("d=4 c=3 b=2", walk(&f, NULL, "aa", "", true));
        CHECK_STR("a=1 b=2", walk(&f, NULL, "", "bb", false));
        CHECK_STR("b=2 a=1", walk(&f, NULL, "", "bb", true));
        CHECK_STR("", walk(&f, NULL, "c", "c", false));
        CHECK_STR("", walk(&f, NULL, "d", "b", true));
        CHECK_STR("", walk(&f, NULL, "e", "", false));
        fixture_close(&f);
    }
}

TEST(store, keys_are_plain_bytes)
{
    static const struct hf_bytes keys[] = {
        {(const uint8_t *)"\0", 1},
        {(const uint8_t *)"\0\0", 2},
        {(const uint8_t *)"\0\xff", 2},
        {(const uint8_t *)"a", 1},
        {(const uint8_t *)"a\0", 2},
        {(const uint8_t *)"a\0\0", 3},
        {(const uint8_t *)"aa", 2},
        {(const uint8_t *)"\x7f", 1},
        {(const uint8_t *)"\x80", 1},
        {(const uint8_t *)"\xff", 1},
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8},
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\0", 9},
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    };

    EACH_KIND(kind)
    {
        struct fixture f;
        struct store_range all = {.lower = {NULL, 0}};
        struct hf__store_iter *iter;
        struct hf_bytes key, value;
        bool found;

        fixture_open(t, &f, kind);
        for (size_t i = ARRAY_LEN(keys); i-- > 0;) {
            struct store_batch batch = {.ops = {.scope = f.s}};
            uint64_t ticket;

            hf__batch_put(&batch, keys[i], hf_bytes_of(&i, sizeof(i)));
            CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        }
        CHECK_OK(hf__store_iter_open(f.s, f.store, NULL, &all, &iter));
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
            CHECK_OK(hf__store_iter_next(f.s, iter, &found, &key, &value));
            CHECK(found && bytes_compare(keys[i].ptr, keys[i].len, key.ptr, key.len) == 0);
            CHECK(value.len == sizeof(i) && memcmp(value.ptr, &i, sizeof(i)) == 0);
            CHECK_OK(hf__store_get(f.s, f.store, NULL, keys[i], &value));
            CHECK(value.len == sizeof(i) && memcmp(value.ptr, &i, sizeof(i)) == 0);
        }
        CHECK_OK(hf__store_iter_next(f.s, iter, &found, &key, &value));
        CHECK(!found);
        hf__store_iter_close(iter);
        fixture_close(&f);
    }
}

TEST(store, big_values_and_keys)
{
    enum { BIG = 3 * 1024 * 1024, LONG = 4000 };
    uint8_t *big = malloc(BIG);

    for (size_t i = 0; i < BIG; i++)
        big[i] = (uint8_t)(i * 7 + i / 255);
    EACH_KIND(kind)
    {
        struct fixture f;
        struct store_batch batch;
        struct hf_bytes value;
        uint64_t ticket;

        fixture_open(t, &f, kind);
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_put(&batch, hf_bytes_of(big, LONG), hf_bytes_of(big, BIG));
        hf__batch_put(&batch, hf_bytes_of(big, LONG - 1), hf_bytes_of(big, 10));
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK_OK(hf__store_get(f.s, f.store, NULL, hf_bytes_of(big, LONG), &value));
        CHECK(value.len == BIG && memcmp(value.ptr, big, BIG) == 0);
        CHECK_OK(hf__store_get(f.s, f.store, NULL, hf_bytes_of(big, LONG - 1), &value));
        CHECK_INT(10, value.len);
        fixture_close(&f);
    }
    free(big);
}

TEST(store, a_snapshot_stays_as_it_is)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        struct hf__store_snapshot *empty, *full;
        struct store_batch batch;
        uint64_t ticket;

        fixture_open(t, &f, kind);
        CHECK_OK(hf__store_snapshot_open(f.s, f.store, &empty));
        put(&f, "a", "1");
        put(&f, "b", "2");
        CHECK_OK(hf__store_snapshot_open(f.s, f.store, &full));
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_put(&batch, bytes_from("a"), bytes_from("changed"));
        hf__batch_delete(&batch, bytes_from("b"));
        hf__batch_put(&batch, bytes_from("c"), bytes_from("new"));
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK_STR("", walk(&f, empty, "", "", false));
        CHECK(!get(&f, empty, "a").ptr);
        CHECK_STR("a=1 b=2", walk(&f, full, "", "", false));
        CHECK_STR("b=2 a=1", walk(&f, full, "", "", true));
        CHECK_STR("2", get(&f, full, "b"));
        CHECK(!get(&f, full, "c").ptr);
        CHECK_STR("a=changed c=new", walk(&f, NULL, "", "", false));
        hf__store_snapshot_close(f.store, empty);
        CHECK_STR("a=1 b=2", walk(&f, full, "", "", false));
        hf__store_snapshot_close(f.store, full);
        hf__store_snapshot_close(f.store, NULL);
        fixture_close(&f);
    }
}

/* An iterator sees the moment it was opened, whatever happens to the store meanwhile. */
TEST(store, a_walk_sees_one_state)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        struct store_range all = {.lower = {(const uint8_t *)"", 0}};
        struct hf__store_iter *iter;
        struct hf_bytes key, value;
        struct store_batch batch;
        uint64_t ticket;
        bool found;

        fixture_open(t, &f, kind);
        for (int i = 0; i < 500; i++)
            put(&f, hf_scope_format(f.s, "key %03d", i).ptr, "old");
        CHECK_OK(hf__store_iter_open(f.s, f.store, NULL, &all, &iter));
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_delete_range(&batch, bytes_from("key 1"), bytes_from("key 4"));
        hf__batch_put(&batch, bytes_from("key 000"), bytes_from("new"));
        hf__batch_put(&batch, bytes_from("key 0005"), bytes_from("new"));
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        for (int i = 0; i < 500; i++) {
            CHECK_OK(hf__store_iter_next(f.s, iter, &found, &key, &value));
            CHECK(found);
            CHECK_STR(hf_scope_format(f.s, "key %03d", i).ptr,
                      hf_str_of((const char *)key.ptr, key.len));
            CHECK_STR("old", hf_str_of((const char *)value.ptr, value.len));
        }
        CHECK_OK(hf__store_iter_next(f.s, iter, &found, &key, &value));
        CHECK(!found);
        hf__store_iter_close(iter);
        CHECK_OK(hf__store_verify(f.s, f.store, NULL));
        fixture_close(&f);
    }
}

TEST(store, tickets_grow)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        uint64_t last;

        fixture_open(t, &f, kind);
        last = hf__store_written(f.store);
        for (int i = 0; i < 20; i++) {
            struct store_batch batch = {.ops = {.scope = f.s}};
            uint64_t ticket;

            hf__batch_put(&batch, bytes_from("k"), bytes_from("v"));
            CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
            CHECK(ticket > last);
            CHECK_INT(ticket, hf__store_written(f.store));
            CHECK(hf__store_durable(f.store) <= ticket);
            last = ticket;
        }
        fixture_close(&f);
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { PAIRS = 64, WRITERS = 2, READERS = 2, ROUNDS = 300 };

struct crowd {
    struct test *t;
    struct hf__store *store;
    atomic_int next_id;
    atomic_bool over;
    atomic_int failures;
    atomic_int walks;
};

static void key_of(uint8_t key[8], int writer, int i)
{
    store_u32be(key, (uint32_t)i);
    store_u32be(key + 4, (uint32_t)writer);
}

/* Each batch gives all keys of this writer the same new value. */
static void *write_rounds(void *user)
{
    struct crowd *crowd = user;
    struct hf_scope *s = hf_scope_new(test_env(crowd->t));
    int me = atomic_fetch_add(&crowd->next_id, 1);

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        struct store_batch batch = {.ops = {.scope = s}};
        uint8_t key[8], value[4];
        uint64_t ticket;

        store_u32be(value, round);
        for (int i = 0; i < PAIRS; i++) {
            key_of(key, me, i);
            if (round % 3 == 0 && i % 2)
                hf__batch_delete(&batch, hf_bytes_of(key, 8));
            hf__batch_put(&batch, hf_bytes_of(key, 8), hf_bytes_of(value, 4));
        }
        if (hf__store_write(s, crowd->store, &batch, &ticket) != HF_OK ||
            hf__store_sync(s, crowd->store, ticket) != HF_OK)
            atomic_fetch_add(&crowd->failures, 1);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* A walk sees each writer's keys all from one batch; later reads never see older ones. */
static void *read_rounds(void *user)
{
    struct crowd *crowd = user;
    struct hf_scope *s = hf_scope_new(test_env(crowd->t));
    struct store_range all = {.lower = {(const uint8_t *)"", 0}};
    uint32_t last[WRITERS] = {0};

    while (!atomic_load(&crowd->over)) {
        struct hf__store_iter *iter;
        struct hf_bytes key, value;
        int seen[WRITERS] = {0};
        uint32_t state[WRITERS] = {0};
        bool found = true, good = true;

        good = hf__store_iter_open(s, crowd->store, NULL, &all, &iter) == HF_OK;
        while (good && hf__store_iter_next(s, iter, &found, &key, &value) == HF_OK && found) {
            uint32_t writer = load_u32be(key.ptr + 4);
            uint32_t round = load_u32be(value.ptr);

            good = writer < WRITERS && value.len == 4 &&
                   (seen[writer] == 0 || state[writer] == round) && round >= last[writer];
            if (good) {
                state[writer] = round;
                seen[writer]++;
            }
        }
        hf__store_iter_close(iter);
        for (int i = 0; i < WRITERS; i++) {
            good = good && (seen[i] == 0 || seen[i] == PAIRS);
            last[i] = state[i];
        }
        if (!good)
            atomic_fetch_add(&crowd->failures, 1);
        atomic_fetch_add(&crowd->walks, 1);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(store, walks_are_whole_while_others_write)
{
    EACH_KIND(kind)
    {
        struct fixture f;
        struct crowd crowd = {.t = t};
        pthread_t writers[WRITERS], readers[READERS];

        fixture_open(t, &f, kind);
        crowd.store = f.store;
        for (int i = 0; i < READERS; i++)
            pthread_create(&readers[i], NULL, read_rounds, &crowd);
        for (int i = 0; i < WRITERS; i++)
            pthread_create(&writers[i], NULL, write_rounds, &crowd);
        for (int i = 0; i < WRITERS; i++)
            pthread_join(writers[i], NULL);
        atomic_store(&crowd.over, true);
        for (int i = 0; i < READERS; i++)
            pthread_join(readers[i], NULL);
        CHECK_INT(0, atomic_load(&crowd.failures));
        CHECK(atomic_load(&crowd.walks) > 0);
        CHECK_OK(hf__store_verify(f.s, f.store, NULL));
        fixture_close(&f);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

/* (1) of store_memory.c: fail every allocation of a batch in turn; the map is old or new. */
TEST(store_memory, any_failed_allocation_leaves_the_map_as_it_was)
{
    for (int shared = 0; shared < 2; shared++) {
        struct hf__store_snapshot *snapshot = NULL;
        struct fixture f;
        struct hf_str before, after;
        int64_t failures = 0;

        fixture_open(t, &f, KIND_MEMORY);
        for (int i = 0; i < 3000; i++)
            put(&f, hf_scope_format(f.s, "key %04d", i * 2).ptr, "old");
        before = walk(&f, NULL, "", "", false);
        if (shared)
            CHECK_OK(hf__store_snapshot_open(f.s, f.store, &snapshot));
        for (int64_t nth = 1;; nth++) {
            struct store_batch batch = {.ops = {.scope = f.s}};
            enum hf_status status;
            uint64_t ticket;

            for (int i = 0; i < 200; i++)
                hf__batch_put(&batch, bytes_from(hf_scope_format(f.s, "key %04d", 1 + i).ptr),
                              bytes_from("new"));
            hf__batch_delete(&batch, bytes_from("key 3000"));
            hf__batch_delete_range(&batch, bytes_from("key 4"), bytes_from("key 45"));
            hf__batch_put(&batch, bytes_from("key 4200"), bytes_from("risen"));
            CHECK(!batch.ops.failed);
            t->fail_at = (int64_t)t->allocs + nth;
            status = hf__store_write(f.s, f.store, &batch, &ticket);
            t->fail_at = 0;
            CHECK_OK(hf__store_verify(f.s, f.store, NULL));
            if (status == HF_OK)
                break;
            CHECK_STATUS(HF_NOMEM, status);
            CHECK(hf_str_equal(before, walk(&f, NULL, "", "", false)));
            failures++;
        }
        CHECK(failures > 200); /* an entry for each put at least */
        after = walk(&f, NULL, "", "", false);
        CHECK(!hf_str_equal(before, after));
        CHECK_STR("new", get(&f, NULL, "key 0001"));
        CHECK_STR("risen", get(&f, NULL, "key 4200"));
        CHECK(!get(&f, NULL, "key 4400").ptr);
        if (shared)
            CHECK(hf_str_equal(before, walk(&f, snapshot, "", "", false)));
        hf__store_snapshot_close(f.store, snapshot);
        fixture_close(&f);
    }
}

/* A tree of several levels, grown in order, against order and at random, and taken apart. */
TEST(store_memory, grows_and_shrinks)
{
    enum { MANY = 60000 };

    for (int way = 0; way < 3; way++) {
        struct fixture f;
        struct store_stats stats;
        uint64_t full = 0;

        fixture_open(t, &f, KIND_MEMORY);
        for (int step = 0; step < 2; step++) {
            for (uint64_t i = 0; i < MANY; i++) {
                struct store_batch batch = {.ops = {.scope = f.s}};
                uint8_t key[24] = "a prefix of 16 b";
                uint64_t ticket;

                store_u64be(key + 16, way == 0 ? i : way == 1 ? MANY - i : i * 0x9E3779B97F4A7C15u);
                if (step == 0)
                    hf__batch_put(&batch, hf_bytes_of(key, 24), hf_bytes_of(&i, 8));
                else
                    hf__batch_delete(&batch, hf_bytes_of(key, 24));
                CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
                if (i % 16384 == 5)
                    CHECK_OK(hf__store_verify(f.s, f.store, NULL));
                hf_scope_reset(f.s);
            }
            hf__store_stats(f.store, &stats);
            if (step == 0)
                full = stats.memory_bytes;
        }
        CHECK(full > MANY * 32);
        CHECK(stats.memory_bytes < 1000); /* nothing is left */
        CHECK_STR("", walk(&f, NULL, "", "", false));
        fixture_close(&f);
    }
}

/* ---- faults --------------------------------------------------------------------------------- */

TEST(store_faults, the_chosen_call_fails)
{
    struct fixture f;
    struct store_batch batch;
    struct hf_bytes value;
    uint64_t ticket;

    fixture_open(t, &f, KIND_FAULTY);
    put(&f, "k", "v");
    f.faults.fail_at = f.faults.calls + 1;
    CHECK_STATUS(HF_IO, hf__store_get(f.s, f.store, NULL, bytes_from("k"), &value));
    CHECK_STR("v", get(&f, NULL, "k")); /* the next call works */

    f.faults.fail_at = f.faults.calls + 1;
    f.faults.status = HF_NO_SPACE;
    batch = (struct store_batch){.ops = {.scope = f.s}};
    hf__batch_put(&batch, bytes_from("k"), bytes_from("w"));
    CHECK_STATUS(HF_NO_SPACE, hf__store_write(f.s, f.store, &batch, &ticket));
    CHECK(!hf_scope_error(f.s)->may_have_happened);
    CHECK_STR("v", get(&f, NULL, "k"));
    CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket)); /* writes go on */
    fixture_close(&f);
}

TEST(store_faults, a_failed_write_stops_the_rest)
{
    for (int after = 0; after < 2; after++) {
        struct store_stats stats;
        struct fixture f;
        struct store_batch batch;
        uint64_t ticket;

        fixture_open(t, &f, KIND_FAULTY);
        f.faults = (struct store_faults){.fail_at = 1, .after = after};
        batch = (struct store_batch){.ops = {.scope = f.s}};
        hf__batch_put(&batch, bytes_from("k"), bytes_from("v"));
        CHECK_STATUS(HF_IO, hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK(hf_scope_error(f.s)->may_have_happened);
        CHECK(!get(&f, NULL, "k").ptr == !after);
        CHECK_STATUS(HF_STOPPED, hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK(!hf_scope_error(f.s)->may_have_happened);
        hf__store_stats(f.store, &stats);
        CHECK(stats.stopped);
        fixture_close(&f);
    }
}
