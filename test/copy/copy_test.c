/*
 * copy/copy_test.c: copies between two databases in memory; (n) and names are invariants of the files of
 * src/copy/.
 */
#include <holdfast/batch.h>
#include <holdfast/copy.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/fence.h>
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* ---- a pair of databases -------------------------------------------------------------------- */

struct pair {
    struct hf_scope *s;
    struct hf_db *source, *target;
    int notes, conflicts;
    char note[512];
    struct hf_copy_options o;
};

static struct hf_db *memory_open(struct hf_scope *s)
{
    struct hf_db *engine, *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &engine));
    CHECK_OK(hf_faulty_open(s, engine, &db));
    return db;
}

static void note_keep(struct hf_str table, struct hf_str text, void *user)
{
    struct pair *p = user;

    p->notes++;
    snprintf(p->note, sizeof(p->note), "%.*s: %.*s", HF_FMT(table), HF_FMT(text));
}

static void conflict_count(struct hf_str table, struct hf_item key, struct hf_item theirs,
                           void *user)
{
    struct pair *p = user;

    (void)theirs;
    CHECK(table.len && key.ptr);
    p->conflicts++;
}

static void pair_open(struct pair *p)
{
    *p = (struct pair){.s = hf_scope_new(NULL)};
    p->source = memory_open(p->s);
    p->target = memory_open(p->s);
    p->o = (struct hf_copy_options){.size = sizeof(p->o),
                                    .poll_ms = 20,
                                    .on_note = note_keep,
                                    .on_conflict = conflict_count};
}

static void pair_close(struct pair *p)
{
    hf_db_close(p->target);
    hf_db_close(p->source);
    hf_scope_free(p->s);
}

static struct hf_copy *pair_copy(struct pair *p)
{
    struct hf_copy *copy = NULL;

    hf_scope_timeout_ms(p->s, 120000);
    p->o.user = p;
    CHECK_OK(hf_copy_open(p->s, p->source, p->target, &p->o, &copy));
    return copy;
}

/* With everything that a definition may have. */
static void orders_make(struct pair *p, struct hf_db *db, const char *name, bool stream)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("customer"), HF_SCALAR_S},
                                                         {HF_STR("day"), HF_SCALAR_N},
                                                         {HF_STR("city"), HF_SCALAR_B}};
    const struct hf_key_element keys[] = {{HF_STR("customer"), HF_KEY_HASH},
                                          {HF_STR("day"), HF_KEY_RANGE}};
    const struct hf_key_element by_city[] = {{HF_STR("city"), HF_KEY_HASH}};
    const struct hf_key_element local[] = {{HF_STR("customer"), HF_KEY_HASH},
                                           {HF_STR("city"), HF_KEY_RANGE}};
    const struct hf_str included[] = {HF_STR("total")};
    const struct hf_projection some = {HF_PROJECT_INCLUDE, included, 1};
    const struct hf_projection all = {HF_PROJECT_ALL, NULL, 0};
    const struct hf_index global = {.name = HF_STR("by_city"),
                                    .key_schema = by_city,
                                    .key_schema_len = 1,
                                    .projection = &some};
    const struct hf_index inner = {.name = HF_STR("in_customer"),
                                   .key_schema = local,
                                   .key_schema_len = 2,
                                   .projection = &all};
    const struct hf_stream_spec both = {HF_YES, HF_VIEW_NEW_AND_OLD_IMAGES};
    const struct hf_tag tags[] = {{HF_STR("team"), HF_STR("shop")}, {HF_STR("cost"), HF_STR("7")}};
    const struct hf_create_table spec = {.table = hf_str_from(name),
                                         .attributes = attributes,
                                         .attributes_len = 3,
                                         .key_schema = keys,
                                         .key_schema_len = 2,
                                         .global_indexes = &global,
                                         .global_indexes_len = 1,
                                         .local_indexes = &inner,
                                         .local_indexes_len = 1,
                                         .stream = stream ? &both : NULL,
                                         .tags = tags,
                                         .tags_len = 2,
                                         .billing = HF_BILLING_PAY_PER_REQUEST};

    CHECK_OK(hf_table_ensure(p->s, db, &spec,
                             HF_OPTIONS(hf_table_options, .ttl_attribute = HF_STR("expires"))));
}

static struct hf_item order_item(struct hf_scope *s, int n, int version)
{
    static const struct hf_str set[] = {{"b", 1}, {"a", 1}, {"c", 1}};
    static const struct hf_str numbers[] = {{"1", 1}, {"2.5", 3}};
    const uint8_t bytes[] = {0, 255, (uint8_t)n};
    struct hf_bytes city = {bytes, sizeof(bytes)};

    return HF_ITEM(s, HF_S("customer", hf_scope_format(s, "c%d", n / 10)), HF_N("day", n % 10),
                   HF_B("city", city), HF_N("version", version), HF_SS("set", set, 3),
                   HF_NS("numbers", numbers, 2), HF_NULL("nothing"), HF_BOOL("yes", n % 2),
                   HF_NUM("large", HF_STR("12345678901234567890123456789012345678")),
                   HF_M("map",
                        HF_ITEM(s, HF_S("a", HF_STR("x")), HF_L("l", HF_LIST(s, HF_N("", 1))))));
}

static void order_put(struct pair *p, struct hf_db *db, int n, int version)
{
    struct hf_put_item put = {.table = HF_STR("orders"), .item = order_item(p->s, n, version)};

    CHECK_OK(hf_put_item(p->s, db, &put, NULL));
}

static struct hf_item order_key(struct hf_scope *s, int n)
{
    return HF_ITEM(s, HF_S("customer", hf_scope_format(s, "c%d", n / 10)), HF_N("day", n % 10));
}

static void order_delete(struct pair *p, struct hf_db *db, int n)
{
    struct hf_delete_item del = {.table = HF_STR("orders"), .key = order_key(p->s, n)};

    CHECK_OK(hf_delete_item(p->s, db, &del, NULL));
}

/* -1: it is not there */
static int order_version(struct pair *p, struct hf_db *db, int n)
{
    struct hf_get_item get = {.table = HF_STR("orders"), .key = order_key(p->s, n)};
    struct hf_get_item_result got;
    int64_t version = -1;

    CHECK_OK(hf_get_item(p->s, db, &get, &got));
    (void)hf_value_i64(hf_item_get(got.item, HF_STR("version")), &version);
    return (int)version;
}

static void orders_put(struct pair *p, int count)
{
    for (int i = 0; i < count; i++)
        order_put(p, p->source, i, 0);
}

static void equal_check(struct pair *p, struct hf_copy *copy, uint64_t items)
{
    struct hf_copy_result result;

    CHECK_OK(hf_copy_verify(p->s, copy, NULL, NULL, &result));
    CHECK_INT(items, result.source_items);
    CHECK_INT(items, result.target_items);
    CHECK_INT(0, result.missing + result.extra + result.different + result.moving);
}

/* ---- definitions and items ------------------------------------------------------------------ */

TEST(copy, a_table_with_all_that_belongs_to_it)
{
    struct hf_describe_table_result is;
    struct hf_describe_time_to_live_result ttl;
    struct hf_list_tags_of_resource_result tags;
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 300);
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_describe_table(p.s, p.target,
                               &(struct hf_describe_table){.table = HF_STR("orders")}, &is));
    CHECK_INT(2, is.table->key_schema_len);
    CHECK_INT(1, is.table->global_indexes_len);
    CHECK_STR("by_city", is.table->global_indexes[0].name);
    CHECK_INT(HF_PROJECT_INCLUDE, is.table->global_indexes[0].projection->type);
    CHECK_INT(1, is.table->local_indexes_len);
    CHECK(is.table->stream && is.table->stream->view == HF_VIEW_NEW_AND_OLD_IMAGES);
    CHECK(is.table->billing && is.table->billing->billing == HF_BILLING_PAY_PER_REQUEST);
    CHECK_OK(hf_describe_time_to_live(p.s, p.target,
                                      &(struct hf_describe_time_to_live){.table = HF_STR("orders")},
                                      &ttl));
    CHECK_STR("expires", ttl.description->attribute);
    CHECK_OK(hf_list_tags_of_resource(p.s, p.target,
                                      &(struct hf_list_tags_of_resource){.arn = is.table->arn},
                                      &tags));
    CHECK_INT(2, tags.tags_len);
    equal_check(&p, copy, 300);
    CHECK_INT(0, p.notes);
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy, under_another_name_and_of_an_empty_table)
{
    const struct hf_copy_name name = {HF_STR("orders"), HF_STR("orders-2")};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    p.o.names = &name;
    p.o.names_len = 1;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    equal_check(&p, copy, 0);
    CHECK_OK(hf_table_wait(p.s, p.target, HF_STR("orders-2"), HF_TABLE_UNTIL_ACTIVE, NULL));
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy, items_of_400_kb)
{
    struct hf_copy *copy;
    struct pair p;
    char *text = malloc(399 * 1024);

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    memset(text, 'x', 399 * 1024);
    for (int i = 0; i < 12; i++) {
        const struct hf_attr large[] = {HF_S("text", hf_str_of(text, 399 * 1024))};
        struct hf_put_item put = {.table = HF_STR("orders"),
                                  .item = hf_item_with(p.s, order_item(p.s, i, 0), large, 1)};

        CHECK_OK(hf_put_item(p.s, p.source, &put, NULL));
    }
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    equal_check(&p, copy, 12);
    hf_copy_close(copy);
    pair_close(&p);
    free(text);
}

TEST(copy, a_target_that_differs_or_has_items_is_refused)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_create_table other = {.table = HF_STR("orders"),
                                          .attributes = &attribute,
                                          .attributes_len = 1,
                                          .key_schema = &key,
                                          .key_schema_len = 1};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    CHECK_OK(hf_table_ensure(p.s, p.target, &other, NULL));
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    CHECK(strstr(hf_scope_error_text(p.s), "table orders") &&
          strstr(hf_scope_error_text(p.s), "id"));
    CHECK(copy == NULL);
    CHECK_OK(
        hf_delete_table(p.s, p.target, &(struct hf_delete_table){.table = HF_STR("orders")}, NULL));
    orders_make(&p, p.target, "orders", false);
    order_put(&p, p.target, 5, 9);
    order_put(&p, p.target, 95, 9);
    orders_put(&p, 10);
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    CHECK(strstr(hf_scope_error_text(p.s), "has items"));
    p.o.restart = true; /* there was no copy: that is no permission */
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    p.o.restart = false;
    p.o.overwrite = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_INT(0, order_version(&p, p.target, 5));
    CHECK_INT(9, order_version(&p, p.target, 95));
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy, options_and_names_that_are_wrong)
{
    const struct hf_str missing = HF_STR("missing"), own = HF_STR("holdfast.copy");
    const struct hf_copy_name both[] = {{HF_STR("orders"), HF_STR("x-x")},
                                        {HF_STR("others"), HF_STR("x-x")}};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_make(&p, p.source, "others", false);
    p.o.tables = &missing;
    p.o.tables_len = 1;
    CHECK_STATUS(HF_NOT_FOUND, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    CHECK(strstr(hf_scope_error_text(p.s), "missing"));
    p.o.tables = &own;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    p.o.tables_len = 0;
    p.o.names = both;
    p.o.names_len = 2;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    CHECK(strstr(hf_scope_error_text(p.s), "x-x"));
    p.o.names_len = 0;
    p.o.segments = 65;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    p.o.segments = 0;
    p.o.eventual = p.o.follow = true;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    p.o.eventual = p.o.follow = false;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.source, &p.o, &copy));
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, NULL, p.target, &p.o, &copy));
    pair_close(&p);
}

/* Each write of the target fails in its turn; the next process goes on. (copy_scan.c (1)) */
TEST(copy, goes_on_after_failures_of_the_target)
{
    struct hf_copy *copy;
    struct pair p;
    int failed = 0;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_put(&p, 500);
    for (uint32_t skip = 0; skip < 24; skip += 2) {
        static const char *const operations[] = {"GetItem", "PutItem", "UpdateItem", "Query"};
        const struct hf_fault faults[] = {{.kind = HF_FAULT_LOST_REQUEST,
                                           .operation = hf_str_from(operations[skip / 2 % 4]),
                                           .skip = skip / 8}};

        CHECK_OK(hf_faulty_set(p.s, p.target, faults, 1));
        if (hf_copy_open(p.s, p.source, p.target, &p.o, &copy) != HF_OK) {
            failed++;
            continue;
        }
        failed += hf_copy_run(p.s, copy) != HF_OK;
        hf_copy_close(copy);
    }
    CHECK(failed > 2);
    CHECK_OK(hf_faulty_set(p.s, p.target, NULL, 0));
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    equal_check(&p, copy, 500);
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy, throttling_and_unprocessed_items)
{
    const struct hf_fault faults[] = {
        {.kind = HF_FAULT_UNPROCESSED, .operation = HF_STR("BatchWriteItem"), .probability = 0.5},
        {.kind = HF_FAULT_THROTTLE, .operation = HF_STR("BatchWriteItem"), .probability = 0.2}};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_put(&p, 200);
    CHECK_OK(hf_faulty_set(p.s, p.target, faults, 2));
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_faulty_set(p.s, p.target, NULL, 0));
    equal_check(&p, copy, 200);
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy, limits_are_kept)
{
    struct hf_copy_progress progress;
    struct hf_copy *copy;
    struct pair p;
    int64_t begin_us, took_us;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_put(&p, 60);
    p.o.items_per_s = 60;
    p.o.segments = 2;
    copy = pair_copy(&p);
    begin_us = hf_scope_env(p.s)->elapsed_us(hf_scope_env(p.s)->user);
    CHECK_OK(hf_copy_run(p.s, copy));
    took_us = hf_scope_env(p.s)->elapsed_us(hf_scope_env(p.s)->user) - begin_us;
    CHECK(took_us > 400000); /* a second but for the last pages */
    hf_copy_progress(copy, &progress);
    CHECK_INT(60, progress.items);
    CHECK_INT(60, progress.items_now);
    CHECK(progress.read_units > 0 && progress.write_units >= 60);
    hf_copy_close(copy);
    pair_close(&p);
}

/* copy_state.c (1): the former process is refused. */
TEST(copy, a_second_process_takes_over)
{
    struct hf_copy *one, *two;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 50);
    p.o.follow = true;
    one = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, one));
    CHECK_OK(hf_copy_follow(p.s, one, true));
    two = pair_copy(&p);
    CHECK_OK(hf_copy_follow(p.s, two, true));
    order_put(&p, p.source, 3, 1);
    CHECK_STATUS(HF_LOST, hf_copy_follow(p.s, one, true));
    CHECK_OK(hf_copy_follow(p.s, two, true));
    CHECK_INT(1, order_version(&p, p.target, 3));
    hf_copy_close(one);
    hf_copy_close(two);
    pair_close(&p);
}

TEST(copy, restart_removes_what_was_copied)
{
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_put(&p, 100);
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    hf_copy_close(copy);
    for (int i = 0; i < 50; i++)
        order_delete(&p, p.source, i);
    p.o.restart = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    equal_check(&p, copy, 50);
    hf_copy_close(copy);
    /* A table that was made again is another one. */
    CHECK_OK(
        hf_delete_table(p.s, p.source, &(struct hf_delete_table){.table = HF_STR("orders")}, NULL));
    orders_make(&p, p.source, "orders", false);
    p.o.restart = false;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    CHECK(strstr(hf_scope_error_text(p.s), "another copy"));
    p.o.restart = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    equal_check(&p, copy, 0);
    hf_copy_close(copy);
    pair_close(&p);
}

/* ---- comparing ------------------------------------------------------------------------------ */

struct seen {
    int missing, extra, different;
};

static enum hf_status difference_see(struct hf_scope *s, const struct hf_copy_difference *is,
                                     void *user)
{
    struct seen *seen = user;

    CHECK_STR("orders", is->table);
    CHECK(hf_item_get(is->key, HF_STR("customer")).ptr && hf_item_count(is->key) == 2);
    seen->missing += is->kind == HF_COPY_MISSING && is->source.ptr && !is->target.ptr;
    seen->extra += is->kind == HF_COPY_EXTRA && !is->source.ptr && is->target.ptr;
    seen->different += is->kind == HF_COPY_DIFFERENT && is->source.ptr && is->target.ptr;
    return s ? HF_OK : HF_INVALID;
}

TEST(copy, every_difference_is_named)
{
    struct hf_copy_result result;
    struct seen seen = {0};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_put(&p, 1000);
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    for (int i = 0; i < 7; i++)
        order_delete(&p, p.target, 10 * i);
    for (int i = 0; i < 5; i++)
        order_put(&p, p.target, 2000 + i, 0);
    for (int i = 0; i < 3; i++)
        order_put(&p, p.target, 501 + i, 1);
    CHECK_OK(hf_copy_verify(p.s, copy, difference_see, &seen, &result));
    CHECK_INT(7, result.missing);
    CHECK_INT(5, result.extra);
    CHECK_INT(3, result.different);
    CHECK_INT(7, seen.missing);
    CHECK_INT(5, seen.extra);
    CHECK_INT(3, seen.different);
    CHECK_INT(1000, result.source_items);
    CHECK_INT(998, result.target_items);
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy, an_index_that_is_missing_is_a_difference)
{
    const struct hf_index_delete drop = {HF_STR("by_city")};
    const struct hf_index_change change = {.del = &drop};
    struct hf_copy_result result;
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_update_table(p.s, p.target,
                             &(struct hf_update_table){.table = HF_STR("orders"),
                                                       .index_changes = &change,
                                                       .index_changes_len = 1},
                             NULL));
    for (int i = 0; i < 3000; i++) {
        struct hf_describe_table_result is;

        CHECK_OK(hf_describe_table(p.s, p.target,
                                   &(struct hf_describe_table){.table = HF_STR("orders")}, &is));
        if (!is.table->global_indexes_len)
            break;
        CHECK_OK(hf_scope_sleep_ms(p.s, 10));
    }
    CHECK_STATUS(HF_INVALID, hf_copy_verify(p.s, copy, NULL, NULL, &result));
    CHECK(strstr(hf_scope_error_text(p.s), "by_city"));
    hf_copy_close(copy);
    pair_close(&p);
}

/* ---- changes -------------------------------------------------------------------------------- */

TEST(copy_follow, changes_come_after_items)
{
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 100);
    p.o.follow = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    for (int i = 0; i < 30; i++)
        order_put(&p, p.source, i, 1);
    for (int i = 20; i < 40; i++)
        order_delete(&p, p.source, i);
    for (int i = 100; i < 110; i++)
        order_put(&p, p.source, i, 2);
    order_put(&p, p.source, 25, 3); /* deleted, and there again */
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    equal_check(&p, copy, 91);
    CHECK_INT(0, p.conflicts);
    hf_copy_close(copy);
    pair_close(&p);
}

/* A stream that is off is switched on in the source, but not in the target. */
TEST(copy_follow, switches_the_stream_on)
{
    struct hf_describe_table_result is;
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    orders_put(&p, 10);
    p.o.follow = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_INT(1, p.notes);
    CHECK(strstr(p.note, "stream"));
    order_put(&p, p.source, 3, 1);
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    equal_check(&p, copy, 10);
    CHECK_OK(hf_describe_table(p.s, p.target,
                               &(struct hf_describe_table){.table = HF_STR("orders")}, &is));
    CHECK(!is.table->stream || is.table->stream->enabled != HF_YES);
    hf_copy_close(copy);
    pair_close(&p);
}

TEST(copy_follow, a_stream_without_both_images_is_refused)
{
    const struct hf_stream_spec keys = {HF_YES, HF_VIEW_KEYS_ONLY};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", false);
    CHECK_OK(hf_update_table(p.s, p.source,
                             &(struct hf_update_table){.table = HF_STR("orders"), .stream = &keys},
                             NULL));
    p.o.follow = true;
    CHECK_STATUS(HF_INVALID, hf_copy_open(p.s, p.source, p.target, &p.o, &copy));
    CHECK(strstr(hf_scope_error_text(p.s), "NEW_AND_OLD_IMAGES"));
    pair_close(&p);
}

/* copy_apply.c, the proof: the target is ahead of the position, by as much as there is. The position
 * stays where it is as the target refuses to store it. */
TEST(copy_follow, what_is_repeated_changes_nothing)
{
    const struct hf_fault no_positions[] = {{.kind = HF_FAULT_LOST_REQUEST,
                                             .operation = HF_STR("PutItem"),
                                             .table = HF_STR("holdfast.copy")}};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 20);
    p.o.follow = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    hf_copy_close(copy);
    for (int round = 1; round < 4; round++) {
        for (int i = 0; i < 20; i++) {
            order_put(&p, p.source, i, 2 * round);
            if (i % 3 == 0)
                order_delete(&p, p.source, i);
            if (i % 2 == 0) /* as before: A, B, A */
                order_put(&p, p.source, i, 2 * round - 2);
        }
        copy = pair_copy(&p);
        CHECK_OK(hf_faulty_set(p.s, p.target, no_positions, 1));
        hf_scope_timeout_ms(p.s, 400); /* however far it gets */
        if (hf_copy_follow(p.s, copy, true) == HF_OK)
            CHECK(false);
        hf_scope_timeout_ms(p.s, 120000);
        CHECK_OK(hf_faulty_set(p.s, p.target, NULL, 0));
        hf_copy_close(copy);
    }
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK_INT(0, p.conflicts);
    {
        struct hf_copy_result result;

        CHECK_OK(hf_copy_verify(p.s, copy, NULL, NULL, &result));
        CHECK_INT(0, result.missing + result.extra + result.different + result.moving);
        CHECK_INT(result.source_items, result.target_items);
    }
    hf_copy_close(copy);
    pair_close(&p);
}

/* copy_follow.c (3) */
TEST(copy_follow, throttled_changes_are_tried_again)
{
    const struct hf_fault faults[] = {{.kind = HF_FAULT_THROTTLE,
                                       .operation = HF_STR("PutItem"),
                                       .table = HF_STR("orders"),
                                       .probability = 0.3,
                                       .count = 12},
                                      {.kind = HF_FAULT_LOST_ANSWER,
                                       .operation = HF_STR("PutItem"),
                                       .table = HF_STR("orders"),
                                       .probability = 0.3,
                                       .count = 12}};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 20);
    p.o.follow = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    for (int i = 0; i < 40; i++)
        order_put(&p, p.source, i, 1);
    CHECK_OK(hf_faulty_set(p.s, p.target, faults, 2));
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK_OK(hf_faulty_set(p.s, p.target, NULL, 0));
    equal_check(&p, copy, 40);
    CHECK_INT(0, p.conflicts);
    hf_copy_close(copy);
    pair_close(&p);
}

/* Nothing that others have written is overwritten: not if they changed, removed, or only added. */
TEST(copy_follow, what_others_wrote_stays_and_is_reported)
{
    const struct hf_attr extra[] = {HF_S("theirs", HF_STR("x"))};
    struct hf_copy_result result;
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 20);
    p.o.follow = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    order_put(&p, p.target, 1, 77);
    order_delete(&p, p.target, 2);
    CHECK_OK(hf_put_item(p.s, p.target,
                         &(struct hf_put_item){.table = HF_STR("orders"),
                                               .item = hf_item_with(p.s, order_item(p.s, 3, 0),
                                                                    extra, 1)},
                         NULL));
    order_put(&p, p.target, 4, 77);
    for (int i = 1; i < 6; i++)
        order_put(&p, p.source, i, 1);
    order_put(&p, p.source, 4, 77); /* comes to be the same */
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK_INT(3, p.conflicts);
    CHECK_INT(77, order_version(&p, p.target, 1));
    CHECK_INT(-1, order_version(&p, p.target, 2));
    CHECK_INT(0, order_version(&p, p.target, 3));
    CHECK_INT(1, order_version(&p, p.target, 5));
    order_put(&p, p.source, 1, 2); /* they stay so in another process */
    hf_copy_close(copy);
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK_INT(77, order_version(&p, p.target, 1));
    CHECK_OK(hf_copy_verify(p.s, copy, NULL, NULL, &result));
    CHECK_INT(1, result.missing);
    CHECK_INT(2, result.different);
    CHECK_INT(3, result.conflicts);
    CHECK_STATUS(HF_CONDITION,
                 hf_copy_cutover(p.s, copy, HF_OPTIONS(hf_copy_cutover_options, .settle_ms = 1),
                                 &result));
    order_put(&p, p.source, 9, 9); /* it can be written again */
    hf_copy_close(copy);
    pair_close(&p);
}

/* The stream was off for a while: nobody knows what was changed, so the table is copied again. */
TEST(copy_follow, a_gap_starts_the_table_over)
{
    const struct hf_stream_spec off = {.enabled = HF_NO};
    const struct hf_stream_spec on = {HF_YES, HF_VIEW_NEW_AND_OLD_IMAGES};
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 50);
    p.o.follow = true;
    copy = pair_copy(&p);
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK_OK(hf_update_table(p.s, p.source,
                             &(struct hf_update_table){.table = HF_STR("orders"), .stream = &off},
                             NULL));
    for (int i = 0; i < 10; i++)
        order_delete(&p, p.source, i);
    order_put(&p, p.source, 20, 5);
    CHECK_OK(hf_update_table(p.s, p.source,
                             &(struct hf_update_table){.table = HF_STR("orders"), .stream = &on},
                             NULL));
    order_put(&p, p.source, 21, 5);
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK(p.notes >= 2);
    equal_check(&p, copy, 40);
    CHECK_INT(5, order_version(&p, p.target, 20));
    order_put(&p, p.source, 22, 5);
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    equal_check(&p, copy, 40);
    hf_copy_close(copy);
    pair_close(&p);
}

/* ---- the end -------------------------------------------------------------------------------- */

TEST(copy_cutover, fences_compares_and_can_be_taken_back)
{
    struct hf_describe_time_to_live_result ttl;
    struct hf_copy_result result;
    struct hf_copy *copy;
    struct pair p;

    pair_open(&p);
    orders_make(&p, p.source, "orders", true);
    orders_put(&p, 50);
    p.o.follow = true;
    p.o.target_name = HF_STR("the new place");
    copy = pair_copy(&p);
    CHECK_STATUS(HF_INVALID, hf_copy_cutover(p.s, copy, NULL, &result));
    CHECK_OK(hf_copy_run(p.s, copy));
    CHECK_OK(hf_describe_time_to_live(p.s, p.target,
                                      &(struct hf_describe_time_to_live){.table = HF_STR("orders")},
                                      &ttl));
    CHECK(!ttl.description->attribute.len); /* copy_schema.c (2) */
    order_put(&p, p.source, 7, 1);
    CHECK_OK(
        hf_copy_cutover(p.s, copy, HF_OPTIONS(hf_copy_cutover_options, .settle_ms = 1), &result));
    CHECK_INT(50, result.source_items);
    CHECK_INT(50, result.target_items);
    CHECK_INT(1, order_version(&p, p.target, 7));
    CHECK_OK(hf_describe_time_to_live(p.s, p.target,
                                      &(struct hf_describe_time_to_live){.table = HF_STR("orders")},
                                      &ttl));
    CHECK_STR("expires", ttl.description->attribute);
    CHECK_STATUS(HF_DENIED, hf_put_item(p.s, p.source,
                                        &(struct hf_put_item){.table = HF_STR("orders"),
                                                              .item = order_item(p.s, 1, 1)},
                                        NULL));
    CHECK(strstr(hf_scope_error_text(p.s), "the new place"));
    CHECK_STATUS(HF_INVALID, hf_copy_follow(p.s, copy, true));
    CHECK_OK(hf_copy_cutover(p.s, copy, NULL, &result)); /* it is */
    CHECK_OK(hf_copy_abort(p.s, copy));
    order_put(&p, p.source, 1, 1);
    CHECK_OK(hf_copy_follow(p.s, copy, true));
    CHECK_INT(1, order_version(&p, p.target, 1));
    hf_copy_close(copy);
    pair_close(&p);
}
