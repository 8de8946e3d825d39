/*
 * db/batch_test.c: many writes and reads, at and past the limits of a batch, with parts handed
 * back, answers lost and keys that come twice; (n) is an invariant of batch_sender.c.
 */
#include "world.h"

#include <holdfast/batch.h>
#include <holdfast/faults.h>

#include <string.h>

#include "between.h"

#define TABLE(name)                                                                                \
    "{'TableName':'" name                                                                          \
    "','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'N'}],'KeySchema':[{"         \
    "'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}"

static const struct hf_str names[] = {{"tab", 3}, {"ube", 3}, {"wire", 4}};

struct many_world {
    struct world w;
    struct hf_db *engine;
    struct hf_db *faulty;
};

static struct many_world many_open(struct test *t)
{
    struct many_world m = {.w = world_open(t, "memory:")};

    m.engine = m.w.db;
    world_ok(&m.w, "CreateTable", TABLE("tab"));
    world_ok(&m.w, "CreateTable", TABLE("ube"));
    world_ok(&m.w, "CreateTable", TABLE("wire"));
    CHECK_OK(hf_faulty_open(m.w.scope, m.engine, &m.faulty));
    return m;
}

static void many_close(struct many_world *m)
{
    hf_scope_reset(m->w.scope);
    CHECK_OK(hf_engine_check(m->w.scope, m->engine, NULL));
    hf_db_close(m->faulty);
    hf_scope_free(m->w.scope);
}

static struct hf_item key_of(struct hf_scope *s, size_t n)
{
    return HF_ITEM(s, HF_N("pk", n));
}

static struct hf_write put_of(struct hf_scope *s, struct hf_str table, size_t n, int64_t value)
{
    return (struct hf_write){.table = table, .put = HF_ITEM(s, HF_N("pk", n), HF_N("v", value))};
}

/* The value under a key; -1: no item. */
static int64_t value_at(struct many_world *m, struct hf_str table, size_t n)
{
    const struct hf_get_item request = {.table = table, .key = key_of(m->w.scope, n)};
    struct hf_get_item_result result;
    int64_t value = -1;

    CHECK_OK(hf_get_item(m->w.scope, m->engine, &request, &result));
    if (result.item.ptr)
        CHECK(hf_value_i64(hf_item_get(result.item, HF_STR("v")), &value));
    return value;
}

/* `len` puts into one table, v = number. */
static struct hf_write *puts_of(struct hf_scope *s, size_t len)
{
    struct hf_write *writes = hf__scope_array(s, len, sizeof(*writes));

    for (size_t i = 0; i < len; i++)
        writes[i] = put_of(s, names[0], i, (int64_t)i);
    return writes;
}

/* ---- writing -------------------------------------------------------------------------------- */

TEST(batch, writes_are_split_at_25)
{
    struct many_world m = many_open(t);
    struct hf_write *writes = puts_of(m.w.scope, 76);
    struct hf_write_many_result result;

    CHECK_OK(hf_write_many(m.w.scope, m.engine, writes, 0, NULL, &result));
    CHECK_INT(0, result.calls);
    CHECK_OK(hf_write_many(m.w.scope, m.engine, writes, 1, NULL, &result));
    CHECK_INT(1, result.calls);
    CHECK_OK(hf_write_many(m.w.scope, m.engine, writes, 25, NULL, &result));
    CHECK_INT(1, result.calls);
    CHECK_OK(hf_write_many(m.w.scope, m.engine, writes, 26, NULL, &result));
    CHECK_INT(2, result.calls);
    CHECK_OK(hf_write_many(m.w.scope, m.engine, writes, 76, NULL, &result));
    CHECK_INT(4, result.calls);
    CHECK_INT(0, result.left_len);
    CHECK_OK(hf_write_many(m.w.scope, m.engine, writes, 76, NULL, NULL));
    for (size_t i = 0; i < 76; i++)
        CHECK_INT(i, value_at(&m, names[0], i));
    CHECK_INT(-1, value_at(&m, names[0], 76));
    many_close(&m);
}

TEST(batch, puts_and_deletes_over_several_tables)
{
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_write writes[90];

    for (size_t i = 0; i < 90; i++)
        writes[i] = put_of(s, names[i % 3], i, 7);
    CHECK_OK(hf_write_many(s, m.engine, writes, 90, NULL, NULL));
    for (size_t i = 0; i < 90; i += 2)
        writes[i] = (struct hf_write){.table = names[i % 3], .del = key_of(s, i)};
    CHECK_OK(hf_write_many(s, m.engine, writes, 90, NULL, NULL));
    for (size_t i = 0; i < 90; i++)
        CHECK_INT(i % 2 ? 7 : -1, value_at(&m, names[i % 3], i));
    many_close(&m);
}

/* Equal writes with another between them: what is handed back is all of them. */
TEST(batch, equal_writes_keep_their_places)
{
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_fault fault = {.kind = HF_FAULT_UNPROCESSED, .count = 1};
    struct hf_write writes[3];

    writes[0] = writes[2] = (struct hf_write){.table = names[0], .del = key_of(s, 1)};
    writes[1] = put_of(s, names[0], 1, 7);
    CHECK_OK(hf_faulty_set(s, m.faulty, &fault, 1));
    CHECK_OK(hf_write_many(s, m.faulty, writes, 3, NULL, NULL));
    CHECK_INT(-1, value_at(&m, names[0], 1));
    many_close(&m);
}

/* (1): a model that does one after the other agrees, whatever was handed back, lost, throttled. */
TEST(batch, of_writes_to_one_key_the_last_wins)
{
    enum { WRITES = 400, KEYS = 23 };
    const struct hf_fault faults[] = {{.kind = HF_FAULT_UNPROCESSED, .probability = 0.4},
                                      {.kind = HF_FAULT_LOST_ANSWER, .probability = 0.1},
                                      {.kind = HF_FAULT_THROTTLE, .probability = 0.1}};
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_write writes[WRITES];
    int64_t model[3][KEYS];

    CHECK_OK(hf_faulty_set(s, m.faulty, faults, 3));
    memset(model, -1, sizeof(model));
    for (size_t i = 0; i < WRITES; i++) {
        size_t table = test_random_below(t, 3), key = test_random_below(t, KEYS);
        bool gone = test_random_below(t, 3) == 0;

        writes[i] = put_of(s, names[table], key, (int64_t)i);
        if (gone)
            writes[i] = (struct hf_write){.table = names[table], .del = key_of(s, key)};
        model[table][key] = gone ? -1 : (int64_t)i;
    }
    CHECK_OK(hf_write_many(s, m.faulty, writes, WRITES,
                           HF_OPTIONS(hf_many_options, .max_attempts = 100), NULL));
    for (size_t table = 0; table < 3; table++)
        for (size_t key = 0; key < KEYS; key++)
            CHECK_INT(model[table][key], value_at(&m, names[table], key));
    many_close(&m);
}

/* (3): the last entry is handed back forever; all others are done, and it is told which. */
TEST(batch, what_is_left_is_told_exactly)
{
    const struct hf_fault fault = {.kind = HF_FAULT_UNPROCESSED};
    struct many_world m = many_open(t);
    struct hf_write *writes = puts_of(m.w.scope, 60);
    struct hf_write_many_result result;

    CHECK_OK(hf_faulty_set(m.w.scope, m.faulty, &fault, 1));
    CHECK_STATUS(HF_THROTTLED, hf_write_many(m.w.scope, m.faulty, writes, 60, NULL, &result));
    CHECK_INT(1, result.left_len);
    CHECK_INT(59, result.left[0]);
    CHECK_ERROR(HF_THROTTLED,
                "1 of 60 writes are left, the first is entry 59 (table tab): the limit of "
                "attempts is reached",
                m.w.scope);
    CHECK(hf_scope_error(m.w.scope)->may_retry);
    for (size_t i = 0; i < 60; i++)
        CHECK_INT(i == 59 ? -1 : (int64_t)i, value_at(&m, names[0], i));
    many_close(&m);
}

/* Delays: half of 50 to 50, then twice that, up to 400. */
TEST(batch, delays_grow_up_to_their_cap)
{
    const struct hf_fault fault = {.kind = HF_FAULT_THROTTLE};
    struct many_world m = many_open(t);
    struct hf_write *writes = puts_of(m.w.scope, 1);
    struct hf_write_many_result result;
    int64_t began = t->elapsed_us;

    CHECK_OK(hf_faulty_set(m.w.scope, m.faulty, &fault, 1));
    CHECK_STATUS(HF_THROTTLED, hf_write_many(m.w.scope, m.faulty, writes, 1,
                                             HF_OPTIONS(hf_many_options, .max_attempts = 7,
                                                        .backoff_max_ms = 400),
                                             &result));
    CHECK_INT(7, result.calls);
    CHECK(t->elapsed_us - began <= (50 + 100 + 200 + 3 * 400) * 1000);
    CHECK(t->elapsed_us - began >= (50 + 100 + 200 + 3 * 400) * 500);
    many_close(&m);
}

TEST(batch, the_entry_at_fault_is_named)
{
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_write *writes = puts_of(s, 60);
    struct hf_write_many_result result;

    writes[33].put = HF_ITEM(s, HF_N("v", 1));
    CHECK_STATUS(HF_INVALID, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK_ERROR(HF_INVALID,
                "entry 33 (table tab): The provided key element does not match the schema", s);
    CHECK_INT(27, result.left_len);
    for (size_t i = 0; i < 60; i++) {
        CHECK_INT(i < 33 ? (int64_t)i : -1, value_at(&m, names[0], i));
        CHECK(i < 33 || result.left[i - 33] == i);
    }
    writes[33] = put_of(s, HF_STR("none"), 33, 33);
    CHECK_STATUS(HF_NOT_FOUND, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK(strstr(hf_scope_error_text(s), "entry 33 (table none): ") == hf_scope_error_text(s));
    CHECK_INT(27, result.left_len);
    many_close(&m);
}

/* Mistakes that can be seen here are seen before anything is sent. */
TEST(batch, entries_are_looked_at_first)
{
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_write *writes = puts_of(s, 60);
    struct hf_write_many_result result;
    struct hf_get_many_result read;
    const struct hf_get gets[] = {{names[0], key_of(s, 1)}, {names[0], {NULL, 0}}};

    writes[59].del = key_of(s, 1);
    CHECK_STATUS(HF_INVALID, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK_ERROR(HF_INVALID, "entry 59 (table tab): it has an item to put and a key to delete", s);
    CHECK_INT(60, result.left_len);
    CHECK_INT(0, result.calls);
    writes[59] = (struct hf_write){.table = names[0]};
    CHECK_STATUS(HF_INVALID, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK_ERROR(HF_INVALID,
                "entry 59 (table tab): it has neither an item to put nor a key to delete", s);
    writes[59].put = HF_ITEM(s, HF_NUM("pk", HF_STR("many")));
    CHECK_STATUS(HF_INVALID, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK(strstr(hf_scope_error_text(s), "entry 59 (table tab): ") == hf_scope_error_text(s));
    CHECK_STATUS(HF_INVALID, hf_get_many(s, m.engine, gets, 2, NULL, &read));
    CHECK_ERROR(HF_INVALID, "entry 1 (table tab): it has no key", s);
    CHECK_INT(2, read.left_len);
    CHECK(!read.items[0].ptr && read.left[0] == 0 && read.left[1] == 1);
    CHECK_STATUS(HF_INVALID, hf_write_many(s, NULL, writes, 1, NULL, &result));
    CHECK_INT(1, result.left_len);
    many_close(&m);
}

TEST(batch, the_deadline_and_cancellation_end_it)
{
    const struct hf_fault fault = {.kind = HF_FAULT_THROTTLE, .skip = 1};
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_write *writes = puts_of(s, 60);
    struct hf_write_many_result result;
    struct hf_get_many_result read;

    CHECK_OK(hf_faulty_set(s, m.faulty, &fault, 1));
    hf_scope_timeout_ms(s, 1000);
    CHECK_STATUS(HF_TIMEOUT,
                 hf_write_many(s, m.faulty, writes, 60,
                               HF_OPTIONS(hf_many_options, .max_attempts = 1000), &result));
    CHECK_INT(35, result.left_len);
    CHECK_INT(25, result.left[0]);
    CHECK(strstr(hf_scope_error_text(s), "35 of 60 writes are left, the first is entry 25") !=
          NULL);
    test_advance_ms(t, 1000);
    CHECK_STATUS(HF_TIMEOUT, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK_INT(60, result.left_len);
    hf_scope_timeout_ms(s, 0);
    hf_scope_cancel(s);
    CHECK_STATUS(HF_CANCELED, hf_write_many(s, m.engine, writes, 60, NULL, &result));
    CHECK_INT(60, result.left_len);
    CHECK_STATUS(HF_CANCELED,
                 hf_get_many(s, m.engine, &(const struct hf_get){names[0], writes[0].put}, 1, NULL,
                             &read));
    CHECK_INT(1, read.left_len);
    many_close(&m);
}

/* Each request stays within what the wire carries, and takes more than one entry if it can. */
static enum hf_status weigh(struct hf_scope *s, struct between *b, enum hf_op op,
                            const void *request, void *response)
{
    const struct hf_batch_write_item *writes = request;
    size_t total = 0;

    (void)response;
    CHECK_INT(HF_OP_BATCH_WRITE_ITEM, op);
    CHECK_INT(1, writes->tables_len);
    for (size_t i = 0; i < writes->tables[0].writes_len; i++)
        total += hf_item_to_json(s, writes->tables[0].writes[i].put->item).len;
    CHECK(total < 16 * 1024 * 1024);
    b->left -= (int64_t)writes->tables[0].writes_len;
    return HF_OK;
}

TEST(batch, writes_are_split_at_16_mb)
{
    enum { NULLS = 190000 };
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct between b = between_of(m.engine);
    struct hf_attr *attrs = hf__scope_array(s, NULLS, sizeof(*attrs));
    struct hf_value list;
    struct hf_write writes[12];
    struct hf_write_many_result result;

    for (size_t i = 0; i < NULLS; i++)
        attrs[i].type = HF_TYPE_NULL;
    list = hf_list_make(s, attrs, NULLS);
    for (size_t i = 0; i < 12; i++)
        writes[i] =
            (struct hf_write){.table = names[0], .put = HF_ITEM(s, HF_N("pk", i), HF_V("l", list))};
    CHECK(hf_item_size(writes[0].put) < 400 * 1024);
    b.on_call = weigh;
    b.left = 12;
    CHECK_OK(hf_write_many(s, &b.db, writes, 12, NULL, &result));
    CHECK_INT(0, b.left);
    CHECK_INT(2, result.calls); /* 12 times 2.5 MB */
    many_close(&m);
}

/* Answers at once; what a call leaves behind would add up. */
static enum hf_status swallow(struct hf_scope *s, struct between *b, enum hf_op op,
                              const void *request, void *response)
{
    struct test *t = (struct test *)hf__scope_env(s)->user;

    (void)op;
    (void)request;
    (void)response;
    CHECK(hf_scope_alloc(s, 2000) != NULL);
    if (b->left == 0)
        b->left = (int64_t)t->live_bytes;
    CHECK(t->live_bytes <= (size_t)b->left + 16 * 1024);
    return HF_OK;
}

TEST(batch, a_hundred_thousand_writes_take_no_more_memory_than_a_few)
{
    enum { WRITES = 100000 };
    struct many_world m = many_open(t);
    struct between b = between_of(m.engine);
    struct hf_write *writes = puts_of(m.w.scope, WRITES);
    struct hf_write_many_result result;

    b.on_call = swallow;
    CHECK_OK(hf_write_many(m.w.scope, &b.db, writes, WRITES, NULL, &result));
    CHECK_INT(WRITES / 25, result.calls);
    many_close(&m);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void check_read(const struct hf_get_many_result *read, const struct hf_get *gets,
                       size_t written)
{
    for (size_t i = 0; i < read->items_len; i++) {
        int64_t key, found = -1;

        CHECK(hf_value_i64(hf_item_get(gets[i].key, HF_STR("pk")), &key));
        CHECK((read->items[i].ptr != NULL) == ((size_t)key < written));
        if (!read->items[i].ptr)
            continue;
        CHECK(hf_value_i64(hf_item_get(read->items[i], HF_STR("pk")), &found));
        CHECK_INT(key, found);
        CHECK(hf_value_i64(hf_item_get(read->items[i], HF_STR("v")), &found));
        CHECK_INT(key, found);
    }
}

TEST(batch, items_come_in_the_order_of_their_keys)
{
    const struct hf_fault faults[] = {{.kind = HF_FAULT_UNPROCESSED, .probability = 0.4},
                                      {.kind = HF_FAULT_LOST_ANSWER, .probability = 0.1},
                                      {.kind = HF_FAULT_THROTTLE, .probability = 0.1}};
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_write *writes = puts_of(s, 600);
    struct hf_get gets[1000];
    struct hf_get_many_result read;

    for (size_t i = 0; i < 600; i++)
        writes[i].table = names[i % 3];
    CHECK_OK(hf_write_many(s, m.engine, writes, 600, NULL, NULL));
    for (size_t i = 0; i < 1000; i++) {
        size_t n = test_random_below(t, 900);

        gets[i] = (struct hf_get){names[n % 3], key_of(s, n)};
    }
    CHECK_OK(hf_faulty_set(s, m.faulty, faults, 3));
    CHECK_OK(hf_get_many(s, m.faulty, gets, 1000, HF_OPTIONS(hf_many_options, .max_attempts = 100),
                         &read));
    CHECK_INT(1000, read.items_len);
    CHECK_INT(0, read.left_len);
    check_read(&read, gets, 600);
    many_close(&m);
}

TEST(batch, keys_are_split_at_100_and_read_once)
{
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_get gets[301];
    struct hf_get_many_result read;

    CHECK_OK(hf_write_many(s, m.engine, puts_of(s, 3), 3, NULL, NULL));
    for (size_t i = 0; i < 301; i++)
        gets[i] = (struct hf_get){names[0], key_of(s, i)};
    CHECK_OK(hf_get_many(s, m.engine, gets, 0, NULL, &read));
    CHECK_INT(0, read.calls);
    CHECK_OK(hf_get_many(s, m.engine, gets, 100, NULL, &read));
    CHECK_INT(1, read.calls);
    CHECK_OK(hf_get_many(s, m.engine, gets, 101, NULL, &read));
    CHECK_INT(2, read.calls);
    CHECK_OK(hf_get_many(s, m.engine, gets, 301, NULL, &read));
    CHECK_INT(4, read.calls);
    check_read(&read, gets, 3);
    for (size_t i = 0; i < 301; i++)
        gets[i].key = i % 2 ? key_of(s, 2) : HF_ITEM(s, HF_NUM("pk", HF_STR("2.0")));
    CHECK_OK(hf_get_many(s, m.engine, gets, 301, HF_OPTIONS(hf_many_options, .consistent = true),
                         &read));
    CHECK_INT(1, read.calls);
    check_read(&read, gets, 3);
    many_close(&m);
}

TEST(batch, what_was_not_read_is_told_exactly)
{
    const struct hf_fault fault = {.kind = HF_FAULT_UNPROCESSED};
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct hf_get gets[6];
    struct hf_get_many_result read;

    CHECK_OK(hf_write_many(s, m.engine, puts_of(s, 3), 3, NULL, NULL));
    for (size_t i = 0; i < 6; i++)
        gets[i] = (struct hf_get){names[0], key_of(s, i % 3)};
    CHECK_OK(hf_faulty_set(s, m.faulty, &fault, 1));
    CHECK_STATUS(HF_THROTTLED, hf_get_many(s, m.faulty, gets, 6, NULL, &read));
    CHECK_INT(2, read.left_len); /* the third key, at both of its places */
    CHECK_INT(2, read.left[0]);
    CHECK_INT(5, read.left[1]);
    CHECK(read.items[0].ptr && read.items[1].ptr && read.items[3].ptr && read.items[4].ptr);
    CHECK(!read.items[2].ptr && !read.items[5].ptr);
    gets[4].key = HF_ITEM(s, HF_S("pk", HF_STR("no number")));
    CHECK_STATUS(HF_INVALID, hf_get_many(s, m.engine, gets, 6, NULL, &read));
    CHECK(strstr(hf_scope_error_text(s), "entry 4 (table tab): ") == hf_scope_error_text(s));
    CHECK_INT(1, read.left_len); /* the keys before it were read while it was looked for */
    many_close(&m);
}

/* The first `left` answers hand back, or give, something that nobody sent or asked for. */
static enum hf_status strange_service(struct hf_scope *s, struct between *b, enum hf_op op,
                                      const void *request, void *response)
{
    static const struct hf_str other = {"other", 5};
    enum hf_status status = between_pass(s, b, op, request, response);
    struct hf_batch_write_item_result *wrote = response;
    struct hf_batch_get_item_result *read = response;
    struct hf_table_items *items = hf__scope_array(s, 1, sizeof(*items));
    struct hf_table_writes *writes = hf__scope_array(s, 1, sizeof(*writes));

    if (status != HF_OK || b->left-- <= 0)
        return status;
    if (op == HF_OP_BATCH_WRITE_ITEM) {
        *writes = ((const struct hf_batch_write_item *)request)->tables[0];
        writes->table = other;
        wrote->unprocessed = writes;
        wrote->unprocessed_len = 1;
    } else {
        *items = read->tables[0];
        items->table = other;
        read->tables = items;
    }
    return HF_OK;
}

TEST(batch, strange_answers_do_not_pass_for_success)
{
    struct many_world m = many_open(t);
    struct hf_scope *s = m.w.scope;
    struct between b = between_of(m.engine);
    const struct hf_get get = {names[0], key_of(s, 1)};
    struct hf_write_many_result wrote;
    struct hf_get_many_result read;

    b.on_call = strange_service;
    b.left = 2;
    CHECK_OK(hf_write_many(s, &b.db, puts_of(s, 30), 30, NULL, &wrote));
    CHECK_INT(4, wrote.calls); /* the first batch thrice, then the rest */
    b.left = 1;
    CHECK_STATUS(HF_INTERNAL, hf_get_many(s, &b.db, &get, 1, NULL, &read));
    CHECK_INT(1, read.left_len);
    CHECK(!read.items[0].ptr);
    CHECK_OK(hf_get_many(s, &b.db, &get, 1, NULL, &read));
    CHECK(read.items[0].ptr != NULL);
    many_close(&m);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* (4) */
TEST(batch, without_memory_it_says_what_is_left)
{
    ALLOC_SWEEP (t, nth) {
        struct many_world m;
        struct hf_scope *s;
        struct hf_write *writes;
        struct hf_get gets[40];
        struct hf_write_many_result wrote;
        struct hf_get_many_result read = {.items = NULL};
        enum hf_status status;
        size_t at = 0;

        t->fail_at = 0; /* the sweep begins behind the opening */
        m = many_open(t);
        s = m.w.scope;
        writes = puts_of(s, 40);
        for (size_t i = 0; i < 40; i++)
            gets[i] = (struct hf_get){names[0], key_of(s, i)};
        t->fail_at = (int64_t)t->allocs + nth;
        status = hf_write_many(s, m.engine, writes, 40, NULL, &wrote);
        if (status == HF_OK)
            status = hf_get_many(s, m.engine, gets, 40, NULL, &read);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == hf_scope_error(s)->status);
        for (size_t i = 0; i < 40 && wrote.left; i++) {
            bool left = at < wrote.left_len && wrote.left[at] == i;

            at += left;
            CHECK(left || value_at(&m, names[0], i) == (int64_t)i);
        }
        if (status == HF_OK)
            check_read(&read, gets, 40);
        many_close(&m);
    }
}
