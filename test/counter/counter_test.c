/*
 * counter/counter_test.c: one feature at a time, on every kind of database. (n) is an invariant of
 * counter/counter.c.
 */
#include <holdfast/counter.h>

#include <holdfast/engine.h>
#include <holdfast/kv.h>

#include <stdio.h>

#include "counter/counter.h"
#include "kit.h"

static struct hf_counters *open_as(struct kit *k, struct hf_counters_options options)
{
    struct hf_counters *c;

    options.size = sizeof(options);
    options.table = k->table;
    CHECK_OK(hf_counters_open(k->scope, k->db, &options, &c));
    return c;
}

#define OPEN(k, ...) open_as((k), (struct hf_counters_options){__VA_ARGS__})

static struct hf_counter_key named(const char *id)
{
    return hf_counter_named(hf_str_from(id));
}

static int64_t add(struct kit *k, struct hf_counters *c, const char *id, int64_t by)
{
    int64_t value;

    CHECK_OK(hf_counter_add(k->scope, c, named(id), by, NULL, &value));
    CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    return value;
}

static int64_t get(struct kit *k, struct hf_counters *c, const char *id)
{
    int64_t value;

    CHECK_OK(hf_counter_get(k->scope, c, named(id), &value));
    return value;
}

/* The item as it is stored, of a counter of the default namespace. */
static struct hf_item item_of(struct kit *k, const char *id)
{
    struct hf_str key = hf_scope_format(k->scope, "%%count.global.%s", id);
    struct hf_get_item read = {.table = k->table,
                               .key = HF_ITEM(k->scope, HF_S("key", key)),
                               .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(k->scope, k->db, &read, &got));
    return got.item;
}

static size_t marks_in(struct hf_item item, char kind)
{
    struct hf_item_walk walk = {0};
    size_t len = 0;

    while (hf_item_next(item, &walk))
        len += walk.name.len > 2 && walk.name.ptr[0] == kind && walk.name.ptr[1] == ':';
    return len;
}

/* ---- the seed's ----------------------------------------------------------------------------- */

KIT_TEST(counter, up_and_down_and_below_zero)
{
    struct hf_counters *c = OPEN(k);
    int64_t value;

    CHECK_INT(0, get(k, c, "x"));
    CHECK_OK(hf_counter_incr(k->scope, c, named("x"), 1, &value));
    CHECK_INT(1, value);
    CHECK_OK(hf_counter_incr(k->scope, c, named("x"), 41, &value));
    CHECK_INT(42, value);
    CHECK_OK(hf_counter_decr(k->scope, c, named("x"), 50, &value));
    CHECK_INT(-8, value);
    CHECK_OK(hf_counter_incr(k->scope, c, named("x"), 0, &value));
    CHECK_INT(-8, value);
    CHECK_OK(hf_counter_decr(k->scope, c, named("y"), 2, NULL));
    CHECK_INT(-8, get(k, c, "x"));
    CHECK_INT(-2, get(k, c, "y"));
    hf_counters_close(c);
    hf_counters_close(NULL);
}

/* One write each, once the first one is done; and one mark, as one add is under way at a time. */
KIT_TEST(counter, an_add_is_one_write)
{
    struct hf_counters *c = OPEN(k);

    hf_scope_count_capacity(k->scope, true);
    for (int i = 1; i <= 20; i++) {
        CHECK_INT(i, add(k, c, "x", 1));
        CHECK_INT(i, hf_scope_capacity(k->scope).calls);
    }
    CHECK_INT(1, marks_in(item_of(k, "x"), 'w'));
    hf_counters_close(c);
}

/* In their order, with those that are not there, and twice what is asked for twice. */
KIT_TEST(counter, many_at_once_in_order)
{
    enum { LEN = 250 };
    struct hf_counters *c = OPEN(k);
    static struct hf_counter_key keys[LEN];
    static struct hf_counter_value values[LEN];

    for (int i = 0; i < 40; i++)
        CHECK_INT(i - 20, add(k, c, hf_scope_format(k->scope, "%d", i).ptr, i - 20));
    for (int i = 0; i < LEN; i++)
        keys[i] = named(hf_scope_format(k->scope, "%d", (LEN - i) % 50).ptr);
    CHECK_OK(hf_counter_get_many(k->scope, c, keys, LEN, values));
    for (int i = 0; i < LEN; i++) {
        int id = (LEN - i) % 50;

        CHECK(hf_str_equal(keys[i].id, values[i].key.id));
        CHECK(values[i].found == (id < 40));
        CHECK_INT(id < 40 ? id - 20 : 0, values[i].value);
    }
    CHECK_OK(hf_counter_get_many(k->scope, c, NULL, 0, NULL));
    hf_counters_close(c);
}

KIT_TEST(counter, deleted_is_as_never_there)
{
    struct hf_counters *c = OPEN(k);
    struct hf_counter_value value;
    struct hf_counter_key key = named("x");

    CHECK_OK(hf_counter_delete(k->scope, c, key));
    add(k, c, "x", 5);
    CHECK_OK(hf_counter_delete(k->scope, c, key));
    CHECK(!item_of(k, "x").ptr);
    CHECK_OK(hf_counter_get_many(k->scope, c, &key, 1, &value));
    CHECK(!value.found);
    CHECK_INT(2, add(k, c, "x", 2)); /* under a new mark, as the old one is gone */
    CHECK_INT(3, add(k, c, "x", 1));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "DeleteItem", 2);
    CHECK_OK(hf_counter_delete(k->scope, c, key));
    CHECK(!item_of(k, "x").ptr);
    hf_counters_close(c);
}

KIT_TEST(counter, set_and_reset_tell_what_was)
{
    struct hf_counters *c = OPEN(k);
    int64_t was;

    CHECK_OK(hf_counter_set(k->scope, c, named("x"), 10, &was));
    CHECK_INT(0, was);
    CHECK_INT(13, add(k, c, "x", 3));
    for (uint32_t lost = 0; lost < 4; lost++) {
        if (lost)
            kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", lost);
        CHECK_OK(hf_counter_reset(k->scope, c, named("x"), &was));
        CHECK_INT(13, was);
        CHECK_OK(hf_counter_set(k->scope, c, named("x"), 13, NULL));
    }
    CHECK_INT(13, get(k, c, "x"));
    hf_counters_close(c);
}

/* Different parts, different counters, whatever dots are in them. */
KIT_TEST(counter, namespaces_do_not_collide)
{
    struct hf_counters *c = OPEN(k, .space = HF_STR("a.b")), *other = OPEN(k, .space = HF_STR("a"));
    struct hf_counter_key key = {.id = HF_STR("c"), .space = HF_STR("z")};
    int64_t value;

    CHECK_INT(1, add(k, c, "c", 1));
    CHECK_INT(2, add(k, other, "b.c", 2));
    CHECK_INT(4, add(k, other, "c", 4));
    CHECK_OK(hf_counter_incr(k->scope, other, key, 8, &value));
    CHECK_INT(8, value);
    CHECK_OK(hf_counter_get(k->scope, c, key, &value)); /* its own namespace goes first */
    CHECK_INT(8, value);
    key.space = HF_STR("");
    CHECK_OK(hf_counter_incr(k->scope, c, key, 16, &value));
    CHECK_INT(16, value);
    CHECK_INT(1, get(k, c, "c"));
    CHECK_INT(2, get(k, other, "b.c"));
    CHECK_INT(4, get(k, other, "c"));
    hf_counters_close(c);
    hf_counters_close(other);
}

/* In a table of another make, next to others' items. */
KIT_TEST(counter, keys_by_other_names)
{
    struct hf_counters *c = OPEN(k, .partitioned = true, .hash_attribute = HF_STR("partitionKey"),
                                 .sort_attribute = HF_STR("sortKey"), .space = HF_STR("s"));
    struct hf_counter_key key = hf_counter_of(HF_STR("ann"), HF_STR("x"));
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(k->scope, HF_S("partitionKey", HF_STR("ann")),
                                              HF_S("sortKey", HF_STR("s.x")),
                                              HF_S("data", HF_STR("a value")))};
    struct hf_query all = {.table = k->table,
                           .key_condition = HF_STR("partitionKey = :p"),
                           .values = HF_ITEM(k->scope, HF_S(":p", HF_STR("ann"))),
                           .consistent = HF_YES};
    struct hf_query_result result;
    int64_t value;

    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_OK(hf_counter_incr(k->scope, c, key, 3, NULL));
    CHECK_OK(hf_query(k->scope, k->db, &all, &result));
    CHECK_INT(2, result.items_len);
    CHECK_STR("%count.s.x", hf_value_str(hf_item_get(result.items[0], HF_STR("sortKey"))));
    CHECK(hf_item_equal(put.item, result.items[1]));
    CHECK_OK(hf_counter_delete(k->scope, c, key));
    CHECK_OK(hf_query(k->scope, k->db, &all, &result));
    CHECK_INT(1, result.items_len);
    CHECK_OK(hf_counter_get(k->scope, c, key, &value));
    CHECK_INT(0, value);
    hf_counters_close(c);
}

KIT_TEST(counter, partitions_keep_their_own)
{
    struct hf_counters *c = OPEN(k, .partitioned = true);
    struct hf_counter_key ann = hf_counter_of(HF_STR("ann"), HF_STR("logins"));
    struct hf_counter_key ben = hf_counter_of(HF_STR("ben"), HF_STR("logins"));
    struct hf_counter_value values[3];
    int64_t value;

    CHECK_OK(hf_counter_incr(k->scope, c, ann, 2, NULL));
    CHECK_OK(hf_counter_incr(k->scope, c, ben, 3, NULL));
    CHECK_OK(hf_counter_decr(k->scope, c, ben, 1, &value));
    CHECK_INT(2, value);
    CHECK_OK(hf_counter_incr(k->scope, c, ben, 2, &value));
    CHECK_OK(hf_counter_get_many(k->scope, c, (struct hf_counter_key[]){ben, ann, ben}, 3, values));
    CHECK_INT(4, values[0].value);
    CHECK_INT(2, values[1].value);
    CHECK_INT(4, values[2].value);
    CHECK_OK(hf_counter_delete(k->scope, c, ann));
    CHECK_OK(hf_counter_get(k->scope, c, ann, &value));
    CHECK_INT(0, value);
    CHECK_STATUS(HF_INVALID, hf_counter_incr(k->scope, c, named("logins"), 1, NULL));
    CHECK_STATUS(HF_LIMIT,
                 hf_counter_add(k->scope, c, ben, -5,
                                HF_OPTIONS(hf_counter_options, .floor = HF_ZERO), &value));
    CHECK_ERROR(HF_LIMIT, "counter logins of ben is 4: adding -5 would exceed its bounds",
                k->scope);
    hf_counters_close(c);
}

struct place {
    int floor, room;
};

static struct hf_counter_key map_place(struct hf_scope *s, const void *key, void *user)
{
    const struct place *place = key;

    return hf_counter_named(
        hf_scope_format(s, "%s-%d-%d", (const char *)user, place->floor, place->room));
}

KIT_TEST(counter, keys_of_a_type)
{
    char house[] = "house";
    struct hf_scoped_counter doors = {.counters = OPEN(k), .map = map_place, .user = house};
    struct place kitchen = {0, 1}, attic = {2, 0}, cellar = {-1, 0};
    const void *all[] = {&attic, &cellar, &kitchen};
    struct hf_counter_value values[3];
    int64_t value;

    CHECK_OK(hf_scoped_counter_incr(k->scope, &doors, &kitchen, 5, &value));
    CHECK_INT(5, value);
    CHECK_OK(hf_scoped_counter_decr(k->scope, &doors, &kitchen, 1, &value));
    CHECK_INT(4, value);
    CHECK_OK(hf_scoped_counter_incr(k->scope, &doors, &attic, 1, NULL));
    CHECK_OK(hf_scoped_counter_get(k->scope, &doors, &cellar, &value));
    CHECK_INT(0, value);
    CHECK_OK(hf_scoped_counter_get_many(k->scope, &doors, all, 3, values));
    CHECK_INT(1, values[0].value);
    CHECK(!values[1].found);
    CHECK_INT(4, values[2].value);
    CHECK_STR("house-0-1", values[2].key.id);
    CHECK_OK(hf_scoped_counter_reset(k->scope, &doors, &kitchen, &value));
    CHECK_INT(4, value);
    CHECK_INT(0, get(k, doors.counters, "house-0-1"));
    hf_counters_close(doors.counters);
}

/* ---- bounds --------------------------------------------------------------------------------- */

KIT_TEST(counter, floor_and_ceiling)
{
    struct hf_counters *c = OPEN(k);
    struct hf_counter_options stock = {.size = sizeof(stock), .floor = HF_ZERO, .ceiling = 10};
    int64_t value;

    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("s"), -1, &stock, &value));
    CHECK_ERROR(HF_LIMIT, "counter s is 0: adding -1 would exceed its bounds", k->scope);
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK(!item_of(k, "s").ptr);
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("s"), 11, &stock, &value));
    CHECK_OK(hf_counter_add(k->scope, c, named("s"), 10, &stock, &value));
    CHECK_INT(10, value);
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("s"), 1, &stock, &value));
    CHECK_INT(10, value);
    CHECK_OK(hf_counter_add(k->scope, c, named("s"), -7, &stock, &value));
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("s"), -4, &stock, &value));
    CHECK_INT(3, value);
    CHECK_OK(hf_counter_add(k->scope, c, named("s"), -3, &stock, &value));
    CHECK_INT(0, value);
    add(k, c, "s", -5); /* who does not care about the floor may be below; others may help it up */
    CHECK_OK(hf_counter_add(k->scope, c, named("s"), 1, &stock, &value));
    CHECK_INT(-4, value);
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("s"), -1, &stock, &value));
    CHECK_STATUS(HF_INVALID,
                 hf_counter_add(k->scope, c, named("s"), 1,
                                HF_OPTIONS(hf_counter_options, .floor = 2, .ceiling = 1), NULL));
    CHECK_ERROR(HF_INVALID, "counter s: the floor is above the ceiling", k->scope);
    CHECK_INT(1, marks_in(item_of(k, "s"), 'w'));
    hf_counters_close(c);
}

/* The bounds that every counter has. */
KIT_TEST(counter, sixty_four_bits)
{
    struct hf_counters *c = OPEN(k);
    int64_t value;

    CHECK_INT(INT64_MAX, add(k, c, "x", INT64_MAX));
    CHECK_STATUS(HF_LIMIT, hf_counter_incr(k->scope, c, named("x"), 1, &value));
    CHECK_INT(INT64_MAX, value);
    CHECK_INT(-1, add(k, c, "x", INT64_MIN));
    CHECK_INT(INT64_MIN, add(k, c, "y", INT64_MIN));
    CHECK_STATUS(HF_LIMIT, hf_counter_decr(k->scope, c, named("y"), 1, &value));
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("y"), INT64_MIN, NULL, &value));
    CHECK_INT(INT64_MIN, get(k, c, "y"));
    CHECK_STATUS(HF_INVALID, hf_counter_decr(k->scope, c, named("y"), INT64_MIN, &value));
    /* no value is so high that this would lead to the floor */
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("z"), INT64_MIN,
                                          HF_OPTIONS(hf_counter_options, .floor = 1), &value));
    CHECK_STATUS(HF_LIMIT, hf_counter_add(k->scope, c, named("z"), INT64_MAX,
                                          HF_OPTIONS(hf_counter_options, .ceiling = -5), &value));
    hf_counters_close(c);
}

KIT_TEST(counter, what_cannot_be)
{
    struct hf_counters *c = OPEN(k), *none;
    struct hf_scope *s = k->scope;
    struct hf_put_item put = {.table = k->table};
    char id[HF_COUNTER_REQUEST_MAX + 1];
    const char *const taken[] = {"count", "rev", "gone", "born", "shards", "w:me", "r:", "sort"};

    memset(id, 'r', sizeof(id));
    CHECK_STATUS(HF_INVALID, hf_counter_incr(s, c, named(""), 1, NULL));
    CHECK_ERROR(HF_INVALID, "a counter needs a name", s);
    CHECK_STATUS(HF_INVALID,
                 hf_counter_incr(s, c, hf_counter_of(HF_STR("p"), HF_STR("x")), 1, NULL));
    CHECK(strstr(hf_scope_error_text(s), "has no partitions"));
    CHECK_STATUS(HF_INVALID,
                 hf_counter_add_once(s, c, named("x"), HF_STR(""), 1, NULL, NULL, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_counter_add_once(s, c, named("x"), hf_str_of(NULL, 0), 1, NULL, NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_counter_add_once(s, c, named("x"), hf_str_of(id, sizeof(id)), 1,
                                                 NULL, NULL, NULL));
    CHECK_ERROR(HF_INVALID, "counter x: a request id has 1 to 256 bytes", s);
    CHECK_OK(
        hf_counter_add_once(s, c, named("x"), hf_str_of(id, sizeof(id) - 1), 1, NULL, NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_counters_open(s, NULL, NULL, &none));
    CHECK_STATUS(HF_INVALID,
                 hf_counters_open(s, k->db, HF_OPTIONS(hf_counters_options, .shards = 101), &none));
    CHECK_STATUS(HF_INVALID,
                 hf_counters_open(s, k->db, HF_OPTIONS(hf_counters_options, .writers = 1001),
                                  &none));
    CHECK_STATUS(HF_INVALID,
                 hf_counters_open(s, k->db, HF_OPTIONS(hf_counters_options, .requests = 201),
                                  &none));
    CHECK_STATUS(HF_INVALID, hf_counters_open(s, k->db,
                                              HF_OPTIONS(hf_counters_options, .table = k->table,
                                                         .partitioned = true),
                                              &none));
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_counters_open(s, k->db,
                                  HF_OPTIONS(hf_counters_options, .table = HF_STR("nowhere"),
                                             .no_create = true),
                                  &none));
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        CHECK_STATUS(HF_INVALID,
                     hf_counters_open(s, k->db,
                                      HF_OPTIONS(hf_counters_options, .table = k->other,
                                                 .partitioned = true,
                                                 .hash_attribute = hf_str_from(taken[i]),
                                                 .sort_attribute = HF_STR("sort")),
                                      &none));
    CHECK(!none);
    put.item = HF_ITEM(s, HF_S("key", HF_STR("%count.global.bad")), HF_NUM("count", HF_STR("1.5")));
    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_counter_get(s, c, named("bad"), &(int64_t){0}));
    CHECK_ERROR(HF_CORRUPT,
                hf_scope_format(s, "the item of counter bad in table %.*s is not a counter's",
                                HF_FMT(k->table))
                    .ptr,
                s);
    put.item = HF_ITEM(s, HF_S("key", HF_STR("%count.global.bad")), HF_N("count", 1),
                       HF_S("rev", HF_STR("x"))); /* a database refuses to add to that */
    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_counter_add(s, c, named("bad"), 1, NULL, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_counter_set(s, c, named("bad"), 1, NULL));
    put.item =
        HF_ITEM(s, HF_S("key", HF_STR("%count.global.bad")), HF_N("count", 1),
                HF_N("gone", 0)); /* no revision, and not absent: it would be tried forever */
    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_counter_add(s, c, named("bad"), 1, NULL, NULL));
    hf_counters_close(c);
}

/* ---- bad days ------------------------------------------------------------------------------- */

/* (1): answers to first and later adds get lost, once or often; each is counted once. */
KIT_TEST(counter, lost_answers_count_once)
{
    struct hf_counters *c = OPEN(k);
    int64_t expected = 0;

    for (int i = 0; i < 3; i++) {
        for (uint32_t lost = 1; lost < 5; lost++) {
            kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", lost);
            CHECK_INT(expected += 7, add(k, c, "x", 7));
            kit_fault(k, HF_FAULT_LOST_REQUEST, "UpdateItem", lost);
            CHECK_INT(expected -= 2, add(k, c, "x", -2));
        }
        CHECK_INT(expected, get(k, c, "x"));
        hf_counters_close(c);
        c = OPEN(k); /* another process: a new mark, whose first answer is lost */
    }
    CHECK_INT(3, marks_in(item_of(k, "x"), 'w'));
    hf_counters_close(c);
}

/* (2): what stays open is said to be, and the next add is not confused by it. */
KIT_TEST(counter, doubt_is_reported)
{
    struct hf_counters *c = OPEN(k);
    int64_t value;

    for (int i = 0; i < 2; i++) {
        struct hf_fault faults[] = {{.kind = i ? HF_FAULT_LOST_REQUEST : HF_FAULT_LOST_ANSWER,
                                     .count = 1},
                                    {.kind = HF_FAULT_THROTTLE}};

        CHECK_OK(hf_faulty_set(k->scope, k->db, faults, 2));
        CHECK(hf_counter_incr(k->scope, c, named("x"), 5, &value) != HF_OK);
        CHECK(hf_scope_error(k->scope)->may_have_happened);
        kit_no_faults(k);
        CHECK_INT(5 + 3 * (i + 1), add(k, c, "x", 3)); /* the first was, the second was not */
    }
    kit_fault(k, HF_FAULT_THROTTLE, "UpdateItem", 0);
    CHECK_STATUS(HF_THROTTLED, hf_counter_incr(k->scope, c, named("x"), 5, &value));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    hf_scope_count_capacity(k->scope, true);
    CHECK_INT(12, add(k, c, "x", 1)); /* under the same mark */
    CHECK_INT(1, hf_scope_capacity(k->scope).calls);
    hf_counters_close(c);
}

KIT_TEST(counter, plain_ones_do_not_repeat)
{
    struct hf_counters *c = OPEN(k, .plain = true);
    int64_t value;

    CHECK_INT(4, add(k, c, "x", 4));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK(hf_counter_incr(k->scope, c, named("x"), 1, &value) != HF_OK);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    CHECK_INT(5, get(k, c, "x"));
    CHECK_INT(2, hf_item_count(item_of(k, "x"))); /* the key and the value */
    CHECK_STATUS(HF_LIMIT,
                 hf_counter_add(k->scope, c, named("x"), -6,
                                HF_OPTIONS(hf_counter_options, .floor = HF_ZERO), &value));
    CHECK_INT(5, value);
    CHECK_STATUS(HF_LIMIT,
                 hf_counter_add(k->scope, c, named("y"), -6,
                                HF_OPTIONS(hf_counter_options, .floor = HF_ZERO), &value));
    CHECK_INT(0, value);
    CHECK_OK(hf_counter_set(k->scope, c, named("x"), 2, &value));
    CHECK_INT(5, value);
    CHECK_OK(hf_counter_set(k->scope, c, named("z"), 7, &value)); /* there was none */
    CHECK_INT(0, value);
    CHECK_OK(hf_counter_add_once(k->scope, c, named("x"), HF_STR("r"), 2, NULL, &value, NULL));
    CHECK_INT(4, value);
    CHECK_OK(hf_counter_add_once(k->scope, c, named("x"), HF_STR("r"), 2, NULL, &value, NULL));
    CHECK_INT(4, value);
    CHECK_OK(hf_counter_delete(k->scope, c, named("x")));
    CHECK_INT(0, get(k, c, "x"));
    hf_counters_close(c);
}

/* Many writers, one after the other: their marks are dropped, and nobody is the worse for it. */
KIT_TEST(counter, marks_are_bounded)
{
    enum { WRITERS = 30, KEPT = 4 };
    struct hf_counters *c[WRITERS];
    int64_t expected = 0;

    for (int i = 0; i < WRITERS; i++)
        c[i] = OPEN(k, .writers = KEPT);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < WRITERS; i++) {
            CHECK_INT(++expected, add(k, c[i], "x", 1));
            CHECK_INT(++expected, add(k, c[i], "x", 1));
            CHECK(marks_in(item_of(k, "x"), 'w') <= 2 * KEPT);
            CHECK_INT(marks_in(item_of(k, "x"), 'w'), marks_in(item_of(k, "x"), 'x'));
        }
    for (int i = 0; i < WRITERS; i++)
        hf_counters_close(c[i]);
}

/* Drop a writer's mark, as another would who finds too many. */
static void drop_a_mark(struct kit *k, struct hf_counters *c, const char *id)
{
    struct counter_drops drops = {.len = 1};
    struct hf_item_walk walk = {0};
    struct hf_item item = item_of(k, id);
    struct hf_update_item drop;
    struct counter_seen seen;
    struct counter_at at;

    CHECK_OK(hf__counter_at(k->scope, c, named(id), 0, &at));
    CHECK_OK(hf__counter_see(k->scope, &at, item, (struct counter_mark){0}, &seen));
    while (hf_item_next(item, &walk))
        if (walk.name.ptr[0] == 'w')
            drops.names[0] = walk.name;
    drop = hf__counter_drop_request(k->scope, c, &at, seen.gone, &drops);
    CHECK_OK(hf_update_item(k->scope, k->db, &drop, NULL));
    CHECK_INT(marks_in(item, 'w') - 1, marks_in(item_of(k, id), 'w'));
}

/* (2): an add without an answer, when marks were dropped before it could ask again. */
KIT_TEST(counter, a_forgotten_add_is_doubtful_and_not_repeated)
{
    struct hf_counters *ann = OPEN(k), *ben = OPEN(k);
    int64_t value;

    add(k, ben, "x", 1);
    for (int known = 0; known < 2; known++) {
        if (known)
            CHECK_INT(4, add(k, ann, "x", 3));
        drop_a_mark(k, ann, "x");
        kit_fault(k, HF_FAULT_LOST_REQUEST, "UpdateItem", 1);
        CHECK_STATUS(HF_EXPIRED, hf_counter_incr(k->scope, ann, named("x"), 3, &value));
        CHECK_ERROR(HF_EXPIRED,
                    "counter x has too many writers to know whether this add was counted",
                    k->scope);
        CHECK(hf_scope_error(k->scope)->may_have_happened);
        CHECK_INT(known ? 4 : 1, get(k, ann, "x"));
    }
    CHECK_INT(5, add(k, ben, "x", 1));
    CHECK_INT(6, add(k, ann, "x", 1));
    drop_a_mark(k, ann, "x"); /* without a doubt it is nothing but one more call */
    CHECK_INT(7, add(k, ann, "x", 1));
    CHECK_INT(8, add(k, ben, "x", 1));
    hf_counters_close(ann);
    hf_counters_close(ben);
}

/* ---- request ids ---------------------------------------------------------------------------- */

KIT_TEST(counter, a_request_counts_once)
{
    struct hf_counters *ann = OPEN(k), *ben = OPEN(k);
    struct hf_counter_options full = {.size = sizeof(full), .ceiling = 6};
    int64_t value;
    bool again;

    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 2);
    CHECK_OK(
        hf_counter_add_once(k->scope, ann, named("x"), HF_STR("m-1"), 5, NULL, &value, &again));
    CHECK_INT(5, value);
    CHECK(!again);
    CHECK_INT(6, add(k, ben, "x", 1));
    CHECK_OK(
        hf_counter_add_once(k->scope, ben, named("x"), HF_STR("m-1"), 5, NULL, &value, &again));
    CHECK_INT(5, value); /* what came out the first time */
    CHECK(again);
    CHECK_STATUS(HF_LIMIT, hf_counter_add_once(k->scope, ben, named("x"), HF_STR("m-2"), 1, &full,
                                               &value, &again));
    CHECK_INT(6, value);
    CHECK(!again);
    CHECK_OK(
        hf_counter_add_once(k->scope, ben, named("x"), HF_STR("m-1"), 1, &full, &value, &again));
    CHECK(again);
    CHECK_INT(6, get(k, ann, "x"));
    hf_counters_close(ann);
    hf_counters_close(ben);
}

/* So many are remembered at least, and at most twice as many. */
KIT_TEST(counter, requests_are_remembered_and_bounded)
{
    enum { KEPT = 8 };
    struct hf_counters *c = OPEN(k, .requests = KEPT);
    bool again;

    for (int i = 0; i < 100; i++) {
        struct hf_str id = hf_scope_format(k->scope, "r%d", i);

        CHECK_OK(hf_counter_add_once(k->scope, c, named("x"), id, 1, NULL, NULL, &again));
        CHECK(!again);
        CHECK(marks_in(item_of(k, "x"), 'q') <= 2 * KEPT);
        for (int j = i; j >= 0 && j > i - KEPT; j--) {
            id = hf_scope_format(k->scope, "r%d", j);
            CHECK_OK(hf_counter_add_once(k->scope, c, named("x"), id, 1, NULL, NULL, &again));
            CHECK(again);
        }
    }
    CHECK_INT(100, get(k, c, "x"));
    /* one call each, although marks were dropped */
    hf_scope_count_capacity(k->scope, true);
    CHECK_OK(hf_counter_add_once(k->scope, c, named("x"), HF_STR("s"), 1, NULL, NULL, NULL));
    CHECK_INT(1, hf_scope_capacity(k->scope).calls);
    hf_counters_close(c);
}

/* As many as there can be, as long as they can be, and writers, too: it fits into an item. */
TEST(counter, the_most_that_an_item_remembers)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char id[HF_COUNTER_REQUEST_MAX + 1];
    struct hf_counters *c;
    struct hf_db *db;
    int64_t value;
    bool again;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true),
                     &db));
    for (int i = 0; i < 2 * HF_COUNTER_REQUESTS_MAX + 100; i++) {
        hf_scope_reset(s);
        CHECK_OK(
            hf_counters_open(s, db,
                             HF_OPTIONS(hf_counters_options, .requests = HF_COUNTER_REQUESTS_MAX,
                                        .writers = HF_COUNTER_WRITERS_MAX),
                             &c));
        snprintf(id, sizeof(id), "%0*d", HF_COUNTER_REQUEST_MAX, i);
        CHECK_OK(hf_counter_add_once(s, c, named("x"), hf_str_from(id), 1, NULL, NULL, NULL));
        CHECK_OK(hf_counter_incr(s, c, named("x"), 1, &value));
        CHECK_INT(2 * (i + 1), value);
        snprintf(id, sizeof(id), "%0*d", HF_COUNTER_REQUEST_MAX,
                 i < HF_COUNTER_REQUESTS_MAX ? 0 : i - HF_COUNTER_REQUESTS_MAX + 1);
        CHECK_OK(hf_counter_add_once(s, c, named("x"), hf_str_from(id), 1, NULL, NULL, &again));
        CHECK(again);
        hf_counters_close(c);
    }
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- transactions --------------------------------------------------------------------------- */

static enum hf_status with_note(struct kit *k, struct hf_transact_write action, const char *id)
{
    struct hf_str key = hf_scope_format(k->scope, "note-%s", id);
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(k->scope, HF_S("key", key)),
                              .condition = HF_STR("attribute_not_exists(#key)"),
                              .names = HF_ITEM(k->scope, HF_S("#key", HF_STR("key")))};
    struct hf_transact_write actions[] = {{.put = &put}, action};
    struct hf_transact_write_items request = {.actions = actions, .actions_len = 2};

    return hf_transact_write_items(k->scope, k->db, &request, NULL);
}

KIT_TEST(counter, with_the_rest_or_not_at_all)
{
    struct hf_counters *c = OPEN(k);
    struct hf_transact_write action;
    struct hf_str none = {0};

    CHECK_OK(hf_counter_add_tx(k->scope, c, named("x"), none, 2, NULL, &action));
    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        CHECK_STATUS(HF_UNSUPPORTED, with_note(k, action, "1"));
        CHECK_INT(0, get(k, c, "x"));
        hf_counters_close(c);
        return;
    }
    CHECK_OK(with_note(k, action, "1"));
    CHECK_STATUS(HF_TX_CANCELED, with_note(k, action, "1"));
    CHECK_INT(2, get(k, c, "x"));
    CHECK_OK(hf_counter_add_tx(k->scope, c, named("x"), none, -3,
                               HF_OPTIONS(hf_counter_options, .floor = HF_ZERO), &action));
    CHECK_STATUS(HF_TX_CANCELED, with_note(k, action, "2"));
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);
    CHECK_INT(2, get(k, c, "x"));
    CHECK_OK(hf_counter_add_tx(k->scope, c, named("x"), HF_STR("r"), 5, NULL, &action));
    CHECK_OK(with_note(k, action, "3"));
    CHECK_OK(hf_counter_add_tx(k->scope, c, named("x"), HF_STR("r"), 5, NULL, &action));
    CHECK_STATUS(HF_TX_CANCELED, with_note(k, action, "4"));
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);
    CHECK(hf_scope_error(k->scope)->reasons[1].item.ptr);
    CHECK_INT(8, add(k, c, "x", 1));
    hf_counters_close(c);
}

KIT_TEST(counter, requests_in_transactions_are_bounded_too)
{
    struct hf_counters *c = OPEN(k, .requests = 4);
    int times = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 30 : 0;
    struct hf_transact_write action;

    for (int i = 0; i < times; i++) {
        struct hf_str id = hf_scope_format(k->scope, "r%d", i);

        CHECK_OK(hf_counter_add_tx(k->scope, c, named("x"), id, 1, NULL, &action));
        CHECK_OK(with_note(k, action, id.ptr));
        CHECK(marks_in(item_of(k, "x"), 'q') <= 2 * 4 + 1);
    }
    CHECK_INT(times, get(k, c, "x"));
    hf_counters_close(c);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* Its value in a list that names it once; INT64_MIN: it is not there. */
static int64_t listed(const struct hf_counter_list *list, const char *id)
{
    int64_t value = INT64_MIN;

    for (size_t i = 0; i < list->counters_len; i++)
        if (hf_str_equal(list->counters[i].key.id, hf_str_from(id))) {
            CHECK_INT(INT64_MIN, value);
            CHECK(list->counters[i].found);
            value = list->counters[i].value;
        }
    return value;
}

/* Whatever is in the table beside them, and whatever bytes are in their names. */
KIT_TEST(counter, which_there_are)
{
    struct hf_counters *c = OPEN(k), *hot = OPEN(k, .shards = 5),
                       *other = OPEN(k, .space = HF_STR("glob"));
    struct hf_counter_list list;
    struct hf_kv *kv;

    CHECK_OK(hf_counter_list(k->scope, c, NULL, &list));
    CHECK_INT(0, list.counters_len);
    CHECK_OK(hf_kv_open(k->scope, k->db, HF_OPTIONS(hf_kv_options, .table = k->table), &kv));
    CHECK_OK(hf_kv_set(k->scope, kv, hf_kv_id(HF_STR("a")),
                       hf_value_make(k->scope, (struct hf_attr)HF_N("", 9)), NULL, NULL));
    add(k, c, "a", 1);
    add(k, c, "a.b", 2);
    add(k, c, "a%2Eb", 3);
    add(k, c, "b", -4);
    add(k, c, "gone", 5);
    add(k, other, "al.a", 6);
    CHECK_OK(hf_counter_delete(k->scope, c, named("gone")));
    for (int i = 0; i < 30; i++)
        CHECK_OK(hf_counter_incr(k->scope, hot, named("hot"), 1, NULL));
    add(k, hot, "cold", 1);
    CHECK_OK(hf_counter_delete(k->scope, hot, named("cold")));
    CHECK_OK(hf_counter_list(k->scope, c, NULL, &list));
    CHECK_INT(5, list.counters_len);
    CHECK_INT(1, listed(&list, "a"));
    CHECK_INT(2, listed(&list, "a.b"));
    CHECK_INT(3, listed(&list, "a%2Eb"));
    CHECK_INT(-4, listed(&list, "b"));
    CHECK_INT(30, listed(&list, "hot"));
    CHECK_STR("global", list.counters[0].key.space);
    CHECK(!list.next.ptr);
    CHECK_OK(hf_counter_list(k->scope, c,
                             HF_OPTIONS(hf_counter_list_options, .prefix = HF_STR("a.")), &list));
    CHECK_INT(1, list.counters_len);
    CHECK_INT(2, listed(&list, "a.b"));
    CHECK_OK(hf_counter_list(k->scope, c,
                             HF_OPTIONS(hf_counter_list_options, .space = HF_STR("glob")), &list));
    CHECK_INT(1, list.counters_len);
    CHECK_INT(6, listed(&list, "al.a"));
    CHECK_STATUS(HF_INVALID,
                 hf_counter_list(k->scope, c,
                                 HF_OPTIONS(hf_counter_list_options, .partition = HF_STR("p")),
                                 &list));
    hf_kv_close(kv);
    hf_counters_close(other);
    hf_counters_close(hot);
    hf_counters_close(c);
}

/* All in parts, none twice; in a partition in their order. */
KIT_TEST(counter, a_list_in_parts)
{
    struct hf_counters *c = OPEN(k, .partitioned = true);
    struct hf_counter_list list = {0};
    int seen = 0;

    for (int i = 0; i < 23; i++)
        CHECK_OK(hf_counter_incr(k->scope, c,
                                 hf_counter_of(i < 20 ? HF_STR("p.q") : HF_STR("r"),
                                               hf_scope_format(k->scope, "%02d", i)),
                                 i + 1, NULL));
    do {
        CHECK_OK(hf_counter_list(k->scope, c,
                                 HF_OPTIONS(hf_counter_list_options, .partition = HF_STR("p.q"),
                                            .limit = 7, .after = list.next),
                                 &list));
        CHECK(list.counters_len <= 7);
        for (size_t i = 0; i < list.counters_len; i++) {
            CHECK_INT(++seen, list.counters[i].value);
            CHECK_STR("p.q", list.counters[i].key.partition);
        }
    } while (list.next.ptr);
    CHECK_INT(20, seen);
    CHECK_OK(hf_counter_list(k->scope, c,
                             HF_OPTIONS(hf_counter_list_options, .partition = HF_STR("p.q"),
                                        .limit = 20),
                             &list));
    CHECK(!list.next.ptr);
    seen = 0;
    do {
        CHECK_OK(
            hf_counter_list(k->scope, c,
                            HF_OPTIONS(hf_counter_list_options, .limit = 5, .after = list.next),
                            &list));
        seen += (int)list.counters_len;
    } while (list.next.ptr);
    CHECK_INT(23, seen);
    CHECK_STATUS(HF_INVALID,
                 hf_counter_list(k->scope, c,
                                 HF_OPTIONS(hf_counter_list_options, .partition = HF_STR("")),
                                 &list));
    CHECK_STATUS(HF_INVALID,
                 hf_counter_list(k->scope, c,
                                 HF_OPTIONS(hf_counter_list_options, .partition = HF_STR("r"),
                                            .after = HF_STR("q.s")),
                                 &list));
    hf_counters_close(c);
}

/* ---- shards --------------------------------------------------------------------------------- */

KIT_TEST(counter, a_sum_over_shards)
{
    struct hf_counters *hot = OPEN(k, .shards = 8), *more = OPEN(k, .shards = 20), *one = OPEN(k);
    struct hf_counter_value values[2];
    int64_t sum = 0, value;

    for (int i = 1; i <= 60; i++) {
        CHECK_OK(hf_counter_incr(k->scope, i % 3 ? hot : one, named("x"), i, NULL));
        sum += i;
        CHECK_INT(sum, get(k, i % 2 ? hot : one, "x"));
    }
    CHECK(item_of(k, "x.7").ptr || item_of(k, "x.6").ptr || item_of(k, "x.5").ptr);
    CHECK_INT(sum += 4, add(k, hot, "x", 4));
    for (int i = 0; i < 60; i++)
        CHECK_OK(hf_counter_incr(k->scope, more, named("x"), 1, NULL));
    CHECK_INT(sum += 60, get(k, hot, "x"));
    CHECK_INT(sum, get(k, one, "x"));
    add(k, one, "y", 3);
    CHECK_OK(hf_counter_get_many(k->scope, one, (struct hf_counter_key[]){named("y"), named("x")},
                                 2, values));
    CHECK_INT(3, values[0].value);
    CHECK_INT(sum, values[1].value);
    CHECK(values[1].found);
    CHECK_STATUS(HF_INVALID, hf_counter_add(k->scope, hot, named("x"), 1,
                                            HF_OPTIONS(hf_counter_options, .ceiling = 5), NULL));
    CHECK_ERROR(HF_INVALID, "counter x has shards, and so no floor and no ceiling", k->scope);
    CHECK_OK(hf_counter_reset(k->scope, one, named("x"), &value));
    CHECK_INT(sum, value);
    CHECK_INT(0, get(k, more, "x"));
    CHECK_INT(2, add(k, more, "x", 2));
    CHECK_OK(hf_counter_delete(k->scope, one, named("x")));
    CHECK_OK(hf_counter_get_many(k->scope, one, (struct hf_counter_key[]){named("x")}, 1, values));
    CHECK(!values[0].found);
    for (int i = 1; i <= 40; i++) /* whoever knew of the shards goes on, and is read */
        CHECK_OK(hf_counter_incr(k->scope, more, named("x"), 1, NULL));
    CHECK_INT(40, get(k, one, "x"));
    hf_counters_close(hot);
    hf_counters_close(more);
    hf_counters_close(one);
}

KIT_TEST(counter, shards_survive_lost_answers)
{
    struct hf_counters *c = OPEN(k, .shards = 4);
    bool again;

    for (int i = 0; i < 30; i++) {
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 2);
        CHECK_OK(hf_counter_incr(k->scope, c, named("x"), 1, NULL));
    }
    for (int i = 0; i < 10; i++)
        for (int twice = 0; twice < 2; twice++) {
            struct hf_str id = hf_scope_format(k->scope, "m%d", i);

            CHECK_OK(hf_counter_add_once(k->scope, c, named("x"), id, 100, NULL, NULL, &again));
            CHECK(again == twice);
        }
    CHECK_INT(1030, get(k, c, "x"));
    hf_counters_close(c);
}

/* What hands out nothing but numbers takes nothing of the scope, however often it is called. */
KIT_TEST(counter, nothing_stays_in_the_scope)
{
    struct hf_counters *c = OPEN(k), *hot = OPEN(k, .shards = 3);
    struct hf_scope *s = kit_scope(k);
    struct hf_scope_mark before = {0}, after;
    struct hf_sequence *q;
    int64_t value;

    CHECK_OK(hf_sequence_open(s, c, named("n"), HF_OPTIONS(hf_sequence_options, .block = 1), &q));
    for (int i = 0; i < 50; i++) {
        CHECK_OK(hf_counter_incr(s, c, named("x"), 1, &value));
        CHECK_OK(hf_counter_incr(s, hot, named("y"), 1, &value));
        CHECK_OK(hf_counter_get(s, hot, named("y"), &value));
        CHECK_OK(hf_counter_set(s, c, named("z"), 7, &value));
        CHECK_OK(hf_counter_delete(s, c, named("z")));
        CHECK_OK(hf_sequence_next(s, q, &value));
        after = hf_scope_mark(s);
        CHECK(i == 0 || (after.chunk == before.chunk && after.used == before.used));
        before = after;
    }
    CHECK_INT(50, value);
    CHECK_OK(hf_sequence_close(s, q));
    hf_counters_close(c);
    hf_counters_close(hot);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Whichever allocation fails, an add is done or not, and counted as it says. */
TEST(counter, any_failed_allocation)
{
    struct hf_scope *look = hf_scope_new(test_env(t));
    int64_t least = 0, most = 0, value;
    struct hf_db *db;
    struct hf_counter_list list;
    struct hf_counters *c;

    CHECK_OK(hf_open(look, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        enum hf_status status = HF_NOMEM;

        c = NULL;
        if (s)
            status = hf_counters_open(s, db, NULL, &c);
        for (int i = 0; i < 3 && status == HF_OK; i++) {
            bool maybe;

            status = i == 1
                         ? hf_counter_add_once(s, c, named("x"), HF_STR("r"), 0, NULL, NULL, NULL)
                         : hf_counter_incr(s, c, named("x"), 1, NULL);
            maybe = status != HF_OK && hf_scope_error(s)->may_have_happened;
            least += i != 1 && status == HF_OK;
            most += i != 1 && (status == HF_OK || maybe);
        }
        if (status == HF_OK)
            status = hf_counter_list(s, c, NULL, &list);
        ALLOC_SWEEP_STOP(t);
        CHECK(status != HF_OK || list.counters_len == 1);
        CHECK(status == HF_OK || t->alloc_failed);
        hf_counters_close(c);
        hf_scope_free(s);
    }
    CHECK_OK(hf_counters_open(look, db, NULL, &c));
    CHECK_OK(hf_counter_get(look, c, named("x"), &value));
    CHECK(value >= least && value <= most);
    hf_counters_close(c);
    hf_db_close(db);
    hf_scope_free(look);
}
