/*
 * copy/copy_any_test.c: copies to every kind of database and back: kit.h. The other side is in memory. Without
 * threads, as the test's memory and clock are for one.
 */
#include <holdfast/copy.h>
#include <holdfast/engine.h>
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include <string.h>

#include "kit.h"

enum { ITEMS = 60 };

static struct hf_db *memory_open(struct kit *k)
{
    struct hf_engine_options options = {.size = sizeof(options),
                                        .env = test_env(k->t),
                                        .no_upkeep_thread = true,
                                        .sync = HF_SYNC_NONE};
    struct hf_db *db;

    CHECK_OK(hf_open(k->scope, HF_STR("memory:"), &options, &db));
    return db;
}

/* Binary and numeric keys, an index. */
static void table_make(struct kit *k, struct hf_db *db)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("part"), HF_SCALAR_B},
                                                         {HF_STR("number"), HF_SCALAR_N},
                                                         {HF_STR("name"), HF_SCALAR_S}};
    const struct hf_key_element keys[] = {{HF_STR("part"), HF_KEY_HASH},
                                          {HF_STR("number"), HF_KEY_RANGE}};
    const struct hf_key_element by_name[] = {{HF_STR("name"), HF_KEY_HASH}};
    const struct hf_projection all = {HF_PROJECT_ALL, NULL, 0};
    const struct hf_index index = {.name = HF_STR("by_name"),
                                   .key_schema = by_name,
                                   .key_schema_len = 1,
                                   .projection = &all};
    const struct hf_create_table spec = {.table = k->table,
                                         .attributes = attributes,
                                         .attributes_len = 3,
                                         .key_schema = keys,
                                         .key_schema_len = 2,
                                         .global_indexes = &index,
                                         .global_indexes_len = 1};

    CHECK_OK(hf_table_ensure(k->scope, db, &spec, NULL));
}

static struct hf_item item_key(struct kit *k, int n)
{
    const uint8_t part[] = {(uint8_t)(n % 7), 0, 255};
    const struct hf_bytes bytes = {part, sizeof(part)};

    return HF_ITEM(k->scope, HF_B("part", bytes), HF_N("number", n));
}

static void item_put(struct kit *k, struct hf_db *db, int n, const char *name)
{
    static const struct hf_str colours[] = {{"red", 3}, {"blue", 4}, {"green", 5}};
    static const struct hf_str numbers[] = {{"3", 1}, {"1", 1}, {"-2.5", 4}};
    const struct hf_attr more[] = {
        HF_S("name", hf_str_from(name)),
        HF_SS("colours", colours, 3),
        HF_NS("numbers", numbers, 3),
        HF_NUM("large", HF_STR("1234567890123456789012345678901234567.8")),
        HF_L("list", HF_LIST(k->scope, HF_N("", n), HF_NULL(""), HF_BOOL("", true))),
        HF_M("map", HF_ITEM(k->scope, HF_S("b", HF_STR("2")), HF_S("a", HF_STR("1"))))};
    struct hf_put_item put = {.table = k->table,
                              .item = hf_item_with(k->scope, item_key(k, n), more, 6)};

    CHECK_OK(hf_put_item(k->scope, db, &put, NULL));
}

static void item_delete(struct kit *k, struct hf_db *db, int n)
{
    struct hf_delete_item del = {.table = k->table, .key = item_key(k, n)};

    CHECK_OK(hf_delete_item(k->scope, db, &del, NULL));
}

static struct hf_copy *copy_open(struct kit *k, struct hf_db *source, struct hf_db *target,
                                 bool follow)
{
    const struct hf_copy_options o = {.size = sizeof(o),
                                      .tables = &k->table,
                                      .tables_len = 1,
                                      .segments = 1,
                                      .poll_ms = 50,
                                      .follow = follow};
    struct hf_copy *copy;

    if (hf_copy_open(k->scope, source, target, &o, &copy) != HF_OK)
        fail_msg("%s", hf_scope_error_text(k->scope));
    return copy;
}

static void copy_run(struct kit *k, struct hf_copy *copy)
{
    if (hf_copy_run(k->scope, copy) != HF_OK)
        fail_msg("%s", hf_scope_error_text(k->scope));
}

static void copy_compare(struct kit *k, struct hf_copy *copy, uint64_t items)
{
    struct hf_copy_result result;

    CHECK_OK(hf_copy_verify(k->scope, copy, NULL, NULL, &result));
    CHECK_INT(items, result.source_items);
    CHECK_INT(items, result.target_items);
    CHECK_INT(0, result.missing + result.extra + result.different + result.moving);
}

/* A table of the state that another test has left is no harm; its items are, as names repeat not. */
static void items_there_and_back(struct kit *k, struct hf_db *near, struct hf_db *far)
{
    struct hf_copy *copy;
    struct hf_db *back = memory_open(k);
    struct hf_copy_result result;

    table_make(k, near);
    for (int i = 0; i < ITEMS; i++)
        item_put(k, near, i, i % 2 ? "odd" : "even");
    copy = copy_open(k, near, far, false);
    copy_run(k, copy);
    copy_compare(k, copy, ITEMS);
    item_put(k, far, 3, "theirs");
    item_delete(k, far, 4);
    item_put(k, far, ITEMS + 1, "more");
    CHECK_OK(hf_copy_verify(k->scope, copy, NULL, NULL, &result));
    CHECK_INT(1, result.different);
    CHECK_INT(1, result.missing);
    CHECK_INT(1, result.extra);
    hf_copy_close(copy);
    copy = copy_open(k, far, back, false);
    copy_run(k, copy);
    copy_compare(k, copy, ITEMS);
    hf_copy_close(copy);
    hf_db_close(back);
}

KIT_TEST(copy_any, items_there_and_back)
{
    struct hf_db *near = memory_open(k);

    items_there_and_back(k, near, k->db);
    hf_db_close(near);
}

/* Changes from memory to there: every conditional write of copy_apply.c is the other database's. */
KIT_TEST(copy_any, changes_are_applied_there)
{
    struct hf_db *near = memory_open(k);
    struct hf_copy_result result;
    struct hf_copy *copy;

    table_make(k, near);
    for (int i = 0; i < ITEMS; i++)
        item_put(k, near, i, "old");
    copy = copy_open(k, near, k->db, true);
    copy_run(k, copy);
    for (int i = 0; i < 20; i++)
        item_put(k, near, i, "new");
    for (int i = 15; i < 25; i++)
        item_delete(k, near, i);
    item_put(k, near, 16, "again");
    item_put(k, near, ITEMS, "first");
    CHECK_OK(hf_copy_follow(k->scope, copy, true));
    copy_compare(k, copy, ITEMS - 10 + 2);
    item_put(k, k->db, 30, "theirs");
    item_put(k, near, 30, "ours");
    CHECK_OK(hf_copy_follow(k->scope, copy, true));
    CHECK_OK(hf_copy_verify(k->scope, copy, NULL, NULL, &result));
    CHECK_INT(1, result.conflicts);
    CHECK_INT(1, result.different);
    hf_copy_close(copy);
    hf_db_close(near);
}

/* Changes from there to memory: the stream is the other database's. */
KIT_TEST(copy_any, changes_are_read_there)
{
    struct hf_db *near;
    struct hf_copy *copy;

    if (!kit_has(k, HF_FEATURE_STREAMS))
        return;
    near = memory_open(k);
    table_make(k, k->db);
    for (int i = 0; i < ITEMS; i++)
        item_put(k, k->db, i, "old");
    copy = copy_open(k, k->db, near, true);
    copy_run(k, copy);
    for (int i = 0; i < 20; i++)
        item_put(k, k->db, i, "new");
    for (int i = 15; i < 25; i++)
        item_delete(k, k->db, i);
    item_put(k, k->db, 16, "again");
    CHECK_OK(hf_copy_follow(k->scope, copy, true));
    copy_compare(k, copy, ITEMS - 10 + 1);
    CHECK_OK(
        hf_copy_cutover(k->scope, copy, HF_OPTIONS(hf_copy_cutover_options, .settle_ms = 1), NULL));
    CHECK_OK(hf_copy_abort(k->scope, copy));
    hf_copy_close(copy);
    hf_db_close(near);
}
