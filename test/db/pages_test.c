/*
 * db/pages_test.c: lists from their first element to their last, left anywhere and continued; (n)
 * is an invariant of pages.c.
 */
#include "world.h"

#include <holdfast/batch.h>
#include <holdfast/faults.h>
#include <holdfast/pages.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "between.h"

enum { ITEMS = 50 };

/* pk "all", sk 0 to 49, g one of 5, odd on odd ones. */
static struct world open_items(struct test *t)
{
    struct world w = world_open(t, "memory:");
    struct hf_write writes[ITEMS];

    world_ok(&w, "CreateTable",
             "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'"
             "},{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'g','AttributeType':"
             "'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk',"
             "'KeyType':'RANGE'}],'GlobalSecondaryIndexes':[{'IndexName':'global','KeySchema':[{"
             "'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'g','KeyType':'RANGE'}],"
             "'Projection':{'ProjectionType':'ALL'}}],'LocalSecondaryIndexes':[{'IndexName':"
             "'local','KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'g',"
             "'KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],'BillingMode':"
             "'PAY_PER_REQUEST'}");
    for (size_t i = 0; i < ITEMS; i++)
        writes[i] =
            (struct hf_write){.table = HF_STR("tab"),
                              .put = HF_ITEM(w.scope, HF_S("pk", HF_STR("all")), HF_N("sk", i),
                                             HF_S("g", hf_scope_format(w.scope, "g%zu", i % 5)),
                                             HF_N("odd", i % 2))};
    CHECK_OK(hf_write_many(w.scope, w.db, writes, ITEMS, NULL, NULL));
    return w;
}

static struct hf_query query_of(struct hf_scope *s, int64_t limit)
{
    return (struct hf_query){.table = HF_STR("tab"),
                             .key_condition = HF_STR("pk = :p"),
                             .values = HF_ITEM(s, HF_S(":p", HF_STR("all"))),
                             .limit = limit};
}

static struct hf_query odd_query_of(struct hf_scope *s, int64_t limit)
{
    struct hf_query request = query_of(s, limit);

    request.filter = HF_STR("odd = :one");
    request.values = HF_ITEM(s, HF_S(":p", HF_STR("all")), HF_N(":one", 1));
    return request;
}

static int64_t number_of(struct hf_item item)
{
    int64_t n = -1;

    CHECK(hf_value_i64(hf_item_get(item, HF_STR("sk")), &n));
    return n;
}

/* The numbers of the items of a list, appended to `numbers`. */
static void take(struct world *w, struct hf_pages *pages, size_t most, int64_t *numbers,
                 size_t *len)
{
    struct hf_item item = {NULL, 0};

    for (size_t i = 0; i < most; i++) {
        CHECK_OK(hf_pages_next_item(w->scope, pages, &item));
        if (!item.ptr)
            return;
        CHECK(*len < 2 * ITEMS);
        numbers[(*len)++] = number_of(item);
    }
}

/* ---- elements and pages --------------------------------------------------------------------- */

TEST(pages, elements_come_in_order_over_all_pages)
{
    struct world w = open_items(t);
    struct between b = between_of(w.db);
    struct hf_query request = query_of(w.scope, 7);
    int64_t numbers[2 * ITEMS];
    struct hf_pages *pages;
    struct hf_item item;
    size_t len = 0;

    CHECK_OK(hf_pages_query(w.scope, &b.db, &request, NULL, &pages));
    CHECK_INT(0, b.all_calls);
    take(&w, pages, SIZE_MAX, numbers, &len);
    CHECK_INT(ITEMS, len);
    for (size_t i = 0; i < ITEMS; i++)
        CHECK_INT(i, numbers[i]);
    CHECK_INT(8, b.all_calls);
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item)); /* the end stays the end */
    CHECK(!item.ptr);
    CHECK_INT(8, b.all_calls);
    hf_pages_free(pages);
    hf_pages_free(NULL);
    world_close(&w);
}

/* Pages of two of which one or none passes the filter. */
TEST(pages, a_page_without_elements_does_not_end_the_list)
{
    struct world w = open_items(t);
    struct hf_query request = odd_query_of(w.scope, 1);
    struct hf_pages *pages;
    struct hf_page page;
    int64_t scanned = 0;
    size_t seen = 0;

    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    do {
        CHECK_OK(hf_pages_next(w.scope, pages, &page));
        CHECK_INT(page.found ? 1 : 0, page.len);
        CHECK_INT(page.len, page.count);
        if (page.found)
            CHECK_INT(2 * seen++ + 1, number_of(page.items[0]));
        scanned += page.scanned_count;
    } while (page.found);
    CHECK_INT(ITEMS / 2, seen);
    CHECK_INT(ITEMS, scanned);
    hf_pages_free(pages);
    world_close(&w);
}

TEST(pages, the_rest_of_a_page_and_counts)
{
    struct world w = open_items(t);
    struct hf_query request = query_of(w.scope, 20);
    struct hf_pages *pages;
    struct hf_item item;
    struct hf_page page;
    int64_t count = 0;
    size_t counted = 0;

    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_OK(hf_pages_next(w.scope, pages, &page));
    CHECK_INT(18, page.len);
    CHECK_INT(2, number_of(page.items[0]));
    CHECK_INT(20, page.count);
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_INT(20, number_of(item));
    hf_pages_free(pages);

    request.select = HF_SELECT_COUNT;
    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    for (;; counted++) {
        CHECK_OK(hf_pages_next(w.scope, pages, &page));
        count += page.count;
        if (!page.found)
            break;
        CHECK(!page.items && page.len == 0);
    }
    CHECK_INT(ITEMS, count);
    CHECK_INT(3, counted);
    hf_pages_free(pages);
    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item)); /* no elements, but an end */
    CHECK(!item.ptr);
    hf_pages_free(pages);
    CHECK_STATUS(HF_INVALID, hf_pages_query(w.scope, w.db, &request,
                                            HF_OPTIONS(hf_pages_options, .limit = 1), &pages));
    CHECK(!pages);
    world_close(&w);
}

static enum hf_status check_limit(struct hf_scope *s, struct between *b, enum hf_op op,
                                  const void *request, void *response)
{
    const struct hf_query *query = request;

    CHECK(query->limit > 0 && query->limit <= b->left);
    b->left -= query->limit;
    return between_pass(s, b, op, request, response);
}

/* (3): at most so many, and without a filter no more is asked for. */
TEST(pages, a_total_limit)
{
    struct world w = open_items(t);
    struct between b = between_of(w.db);
    struct hf_query plain = query_of(w.scope, 0), odd = odd_query_of(w.scope, 10);

    b.on_call = check_limit;
    for (uint64_t limit = 1; limit < ITEMS + 5; limit++) {
        const struct hf_pages_options options = {.size = sizeof(options), .limit = limit};
        int64_t numbers[2 * ITEMS];
        struct hf_pages *pages;
        struct hf_page page;
        size_t len = 0, want;

        b.left = (int64_t)limit;
        plain.limit = limit % 2 ? 7 : 0;
        CHECK_OK(hf_pages_query(w.scope, &b.db, &plain, &options, &pages));
        take(&w, pages, SIZE_MAX, numbers, &len);
        CHECK_INT(limit < ITEMS ? limit : ITEMS, len);
        hf_pages_free(pages);

        len = 0;
        want = limit < ITEMS / 2 ? limit : ITEMS / 2;
        CHECK_OK(hf_pages_query(w.scope, w.db, &odd, &options, &pages));
        do {
            CHECK_OK(hf_pages_next(w.scope, pages, &page));
            len += page.len;
        } while (page.found);
        CHECK_INT(want, len);
        hf_pages_free(pages);
        hf_scope_reset(w.scope);
        plain = query_of(w.scope, 0);
        odd = odd_query_of(w.scope, 10);
    }
    world_close(&w);
}

/* ---- cursors -------------------------------------------------------------------------------- */

/* Take n, go on elsewhere from the cursor: together it is the list, for every n. */
static void check_cursors(struct world *w, enum hf_op op, const void *request, bool limited)
{
    int64_t all[2 * ITEMS], numbers[2 * ITEMS];
    struct hf_pages *pages;
    size_t all_len = 0;

    for (size_t n = 0; n == 0 || n <= all_len; n++) {
        const struct hf_pages_options options = {.size = sizeof(options), .limit = limited ? n : 0};
        struct hf_query query = {.limit = 0};
        struct hf_scan scan = {.limit = 0};
        struct hf_item start;
        size_t len = 0;

        if (op == HF_OP_QUERY)
            query = *(const struct hf_query *)request;
        else
            scan = *(const struct hf_scan *)request;
        CHECK_OK(op == HF_OP_QUERY ? hf_pages_query(w->scope, w->db, &query, &options, &pages)
                                   : hf_pages_scan(w->scope, w->db, &scan, &options, &pages));
        if (n == 0)
            take(w, pages, SIZE_MAX, all, &all_len);
        else
            take(w, pages, limited ? SIZE_MAX : n, numbers, &len);
        CHECK_OK(hf_pages_cursor(w->scope, pages, &start));
        hf_pages_free(pages);
        if (n == 0)
            CHECK(!start.ptr);
        if (!start.ptr) {
            CHECK_INT(n, len);
            CHECK(n == 0 || n == all_len);
            continue;
        }
        query.start = scan.start = start;
        CHECK_OK(op == HF_OP_QUERY ? hf_pages_query(w->scope, w->db, &query, NULL, &pages)
                                   : hf_pages_scan(w->scope, w->db, &scan, NULL, &pages));
        take(w, pages, SIZE_MAX, numbers, &len);
        hf_pages_free(pages);
        CHECK_INT(all_len, len);
        CHECK(memcmp(all, numbers, len * sizeof(all[0])) == 0);
    }
    CHECK(all_len > 0);
}

TEST(pages, a_list_goes_on_from_its_cursor)
{
    struct world w = open_items(t);

    for (int round = 0; round < 8; round++) {
        struct hf_query query = round & 1 ? odd_query_of(w.scope, 9) : query_of(w.scope, 9);
        struct hf_scan scan = {.table = HF_STR("tab"), .limit = 9};

        check_cursors(&w, HF_OP_QUERY, &query, round & 2);
        query.index = round & 4 ? HF_STR("global") : HF_STR("local");
        check_cursors(&w, HF_OP_QUERY, &query, round & 2);
        query.forward = HF_NO;
        query.limit = 0;
        check_cursors(&w, HF_OP_QUERY, &query, round & 2);
        check_cursors(&w, HF_OP_SCAN, &scan, round & 2);
        scan.index = query.index;
        check_cursors(&w, HF_OP_SCAN, &scan, round & 2);
        hf_scope_reset(w.scope);
    }
    world_close(&w);
}

TEST(pages, the_table_is_described_only_when_it_must_be)
{
    struct world w = open_items(t);
    struct between b = between_of(w.db);
    struct hf_query request = query_of(w.scope, 30);
    struct hf_pages *pages;
    struct hf_item item, start;

    CHECK_OK(hf_pages_query(w.scope, &b.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_cursor(w.scope, pages, &start));
    CHECK(!start.ptr);
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_OK(hf_pages_cursor(w.scope, pages, &start));
    CHECK_INT(0, number_of(start));
    CHECK_INT(2, hf_item_count(start));
    CHECK_INT(0, b.calls[HF_OP_DESCRIBE_TABLE]);
    hf_pages_free(pages);

    request.limit = 0;
    CHECK_OK(hf_pages_query(w.scope, &b.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_OK(hf_pages_cursor(w.scope, pages, &start));
    CHECK_INT(1, b.calls[HF_OP_DESCRIBE_TABLE]);
    CHECK_INT(2, hf_item_count(start));
    hf_pages_free(pages);

    request.start = start;
    CHECK_OK(hf_pages_query(w.scope, &b.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_cursor(w.scope, pages, &start)); /* not begun: where it begins */
    CHECK(hf_item_equal(request.start, start));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_OK(hf_pages_cursor(w.scope, pages, &start));
    CHECK_INT(1, number_of(start));
    CHECK_INT(1, b.calls[HF_OP_DESCRIBE_TABLE]);
    hf_pages_free(pages);

    request.projection = HF_STR("sk");
    CHECK_OK(hf_pages_query(w.scope, &b.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_STATUS(HF_INVALID, hf_pages_cursor(w.scope, pages, &start));
    CHECK_ERROR(HF_INVALID, "there is no cursor here: the item has no attribute pk, which is a key",
                w.scope);
    CHECK(!start.ptr);
    hf_pages_free(pages);
    world_close(&w);
}

/* ---- the other lists ------------------------------------------------------------------------ */

static void make_table(struct world *w, const char *name)
{
    struct hf_str json = hf_scope_format(
        w->scope,
        "{'TableName':'%s','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"
        "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST',"
        "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'KEYS_ONLY'}}",
        name);

    world_ok(w, "CreateTable", json.ptr);
}

TEST(pages, tables_and_streams)
{
    struct world w = world_open(t, "memory:");
    struct hf_list_tables tables = {.limit = 3};
    struct hf_list_streams streams = {.limit = 3};
    struct hf_pages *pages;
    struct hf_stream_name stream;
    struct hf_str table, start;
    struct hf_page page;
    size_t n = 0;
    char name[8];

    for (size_t i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "tab%zu", i);
        make_table(&w, name);
    }
    CHECK_OK(hf_pages_list_tables(w.scope, w.db, &tables, NULL, &pages));
    for (;; n++) {
        CHECK_OK(hf_pages_next_table(w.scope, pages, &table));
        if (!table.ptr)
            break;
        snprintf(name, sizeof(name), "tab%zu", n);
        CHECK_STR(name, table);
        CHECK_OK(hf_pages_cursor_text(w.scope, pages, &start));
        CHECK(n == 9 || hf_str_equal(start, table));
    }
    CHECK_INT(10, n);
    CHECK_OK(hf_pages_cursor_text(w.scope, pages, &start));
    CHECK(!start.ptr);
    hf_pages_free(pages);

    tables.start = HF_STR("tab4");
    CHECK_OK(hf_pages_list_tables(w.scope, w.db, &tables, HF_OPTIONS(hf_pages_options, .limit = 2),
                                  &pages));
    CHECK_OK(hf_pages_cursor_text(w.scope, pages, &start));
    CHECK_STR("tab4", start);
    CHECK_OK(hf_pages_next(w.scope, pages, &page));
    CHECK(page.found && page.len == 2);
    CHECK_STR("tab6", page.tables[1]);
    CHECK_OK(hf_pages_cursor_text(w.scope, pages, &start));
    CHECK_STR("tab6", start);
    CHECK_OK(hf_pages_next(w.scope, pages, &page));
    CHECK(!page.found);
    hf_pages_free(pages);

    n = 0;
    CHECK_OK(hf_pages_list_streams(w.scope, w.db, &streams, NULL, &pages));
    for (;; n++) {
        CHECK_OK(hf_pages_next_stream(w.scope, pages, &stream));
        if (!stream.arn.ptr)
            break;
        CHECK_OK(hf_pages_cursor_text(w.scope, pages, &start));
        CHECK(n == 9 || hf_str_equal(start, stream.arn));
    }
    CHECK_INT(10, n);
    hf_pages_free(pages);
    world_close(&w);
}

TEST(pages, shards_and_tags)
{
    struct world w = world_open(t, "memory:");
    struct hf_describe_stream request = {.limit = 1};
    struct hf_list_tags_of_resource of = {
        .arn = HF_STR("arn:aws:dynamodb:us-east-1:123456789012:table/tab")};
    struct hf_describe_table_result table;
    struct hf_pages *pages;
    struct hf_shard shard;
    struct hf_tag tag;
    struct hf_str start;
    struct hf_page page;
    size_t n = 0;
    bool seen[50] = {false};

    make_table(&w, "tab");
    for (size_t i = 0; i < 50; i++) {
        struct hf_tag one = {.key = hf_scope_format(w.scope, "%zu", i), .value = HF_STR("v")};

        CHECK_OK(
            hf_tag_resource(w.scope, w.db,
                            &(struct hf_tag_resource){.arn = of.arn, .tags = &one, .tags_len = 1},
                            NULL));
    }
    CHECK_OK(hf_describe_table(w.scope, w.db, &(struct hf_describe_table){.table = HF_STR("tab")},
                               &table));
    request.arn = table.table->stream_arn;
    CHECK_OK(hf_pages_describe_stream(w.scope, w.db, &request, NULL, &pages));
    do {
        CHECK_OK(hf_pages_next_shard(w.scope, pages, &shard));
        n += shard.id.ptr != NULL;
    } while (shard.id.ptr);
    CHECK(n > 1);
    hf_pages_free(pages);
    request.limit = 0;
    CHECK_OK(hf_pages_describe_stream(w.scope, w.db, &request, NULL, &pages));
    CHECK_OK(hf_pages_next_shard(w.scope, pages, &shard));
    CHECK_OK(hf_pages_cursor_text(w.scope, pages, &start));
    CHECK(hf_str_equal(shard.id, start));
    CHECK_OK(hf_pages_next(w.scope, pages, &page));
    CHECK_INT(n - 1, page.len);
    hf_pages_free(pages);

    CHECK_OK(hf_pages_list_tags_of_resource(w.scope, w.db, &of, NULL, &pages));
    for (n = 0;; n++) {
        size_t number = 50;

        CHECK_OK(hf_pages_next_tag(w.scope, pages, &tag));
        if (!tag.key.ptr)
            break;
        CHECK_INT(1, sscanf(tag.key.ptr, "%zu", &number));
        CHECK(number < 50 && !seen[number]);
        seen[number] = true;
    }
    CHECK_INT(50, n);
    hf_pages_free(pages);
    CHECK_OK(hf_pages_list_tags_of_resource(w.scope, w.db, &of, NULL, &pages));
    CHECK_OK(hf_pages_next_tag(w.scope, pages, &tag));
    CHECK_STATUS(HF_INVALID, hf_pages_cursor_text(w.scope, pages, &start));
    hf_pages_free(pages);
    world_close(&w);
}

/* ---- mistakes and failures ------------------------------------------------------------------ */

TEST(pages, mistakes_are_told)
{
    struct world w = open_items(t);
    struct hf_query request = query_of(w.scope, 0);
    struct hf_pages *pages;
    struct hf_tag tag;
    struct hf_str text;
    struct hf_item item;

    CHECK_STATUS(HF_INVALID, hf_pages_query(w.scope, NULL, &request, NULL, &pages));
    CHECK_STATUS(HF_INVALID, hf_pages_query(w.scope, w.db, NULL, NULL, &pages));
    CHECK_ERROR(HF_INVALID, "pages of Query were asked for without a request (NULL)", w.scope);
    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    CHECK_STATUS(HF_INVALID, hf_pages_next_tag(w.scope, pages, &tag));
    CHECK_ERROR(HF_INVALID, "the result of Query has elements of another type", w.scope);
    CHECK_STATUS(HF_INVALID, hf_pages_cursor_text(w.scope, pages, &text));
    hf_pages_free(pages);
    CHECK_OK(
        hf_pages_list_tables(w.scope, w.db, &(struct hf_list_tables){.limit = 1}, NULL, &pages));
    CHECK_STATUS(HF_INVALID, hf_pages_cursor(w.scope, pages, &item));
    CHECK_STATUS(HF_INVALID, hf_pages_next_item(w.scope, pages, &item));
    hf_pages_free(pages);
    request.values = HF_ITEM(w.scope, HF_NUM(":p", HF_STR("no number")));
    CHECK_STATUS(HF_INVALID, hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    CHECK(!pages);
    request = query_of(w.scope, 0);
    request.table = HF_STR("none");
    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    CHECK_STATUS(HF_NOT_FOUND, hf_pages_next_item(w.scope, pages, &item));
    CHECK(hf_str_equal(HF_STR("Query"), hf_scope_error(w.scope)->operation));
    hf_pages_free(pages);
    world_close(&w);
}

/* Pages of one table each, whose names go round. */
static enum hf_status circle(struct hf_scope *s, struct between *b, enum hf_op op,
                             const void *request, void *response)
{
    struct hf_list_tables_result *result = response;
    struct hf_str *name = hf_scope_alloc(s, sizeof(*name));

    (void)request;
    CHECK(op == HF_OP_LIST_TABLES && name);
    *name = hf_scope_format(s, "t%zu",
                            (b->all_calls - 1) < 5 ? b->all_calls - 1
                                                   : 5 + (b->all_calls - 6) % (size_t)b->left);
    *result = (struct hf_list_tables_result){.tables = name, .tables_len = 1, .last = *name};
    return HF_OK;
}

/* (5): a circle is seen, however long it is and wherever it begins. */
TEST(pages, a_service_that_goes_in_circles_is_left)
{
    static const int64_t lengths[] = {1, 2, 3, 7, 100, 1000};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct between b = between_of(NULL);
        struct hf_pages *pages;
        struct hf_str table;

        b.on_call = circle;
        b.left = lengths[i];
        CHECK_OK(
            hf_pages_list_tables(s, &b.db, &(struct hf_list_tables){.limit = 1}, NULL, &pages));
        while (hf_pages_next_table(s, pages, &table) == HF_OK)
            CHECK(table.ptr);
        CHECK_INT(HF_IO, hf_scope_error(s)->status);
        CHECK(strstr(hf_scope_error_text(s), "ListTables goes in circles"));
        CHECK(b.all_calls <= 3 * (size_t)lengths[i] + 20);
        hf_pages_free(pages);
    }
    hf_scope_free(s);
}

/* (1): failures between pages lose nothing and double nothing. */
TEST(pages, a_step_that_failed_can_be_repeated)
{
    const struct hf_fault faults[] = {{.kind = HF_FAULT_THROTTLE, .probability = 0.5},
                                      {.kind = HF_FAULT_LOST_ANSWER, .probability = 0.3}};
    struct world w = open_items(t);
    struct hf_db *faulty;
    struct hf_query request = query_of(w.scope, 3);
    struct hf_pages *pages;
    struct hf_item item = {NULL, 0};
    int64_t expected = 0;
    size_t failures = 0;

    CHECK_OK(hf_faulty_open(w.scope, w.db, &faulty));
    CHECK_OK(hf_faulty_set(w.scope, faulty, faults, 2));
    CHECK_OK(hf_pages_query(w.scope, faulty, &request, NULL, &pages));
    for (;;) {
        if (hf_pages_next_item(w.scope, pages, &item) != HF_OK) {
            CHECK(hf_scope_error(w.scope)->may_retry);
            failures++;
            continue;
        }
        if (!item.ptr)
            break;
        CHECK_INT(expected++, number_of(item));
    }
    CHECK_INT(ITEMS, expected);
    CHECK(failures > 0);
    hf_pages_free(pages);
    w.db = faulty;
    hf_scope_reset(w.scope);
    CHECK_OK(hf_faulty_set(w.scope, faulty, NULL, 0));
    hf_db_close(faulty);
    hf_scope_free(w.scope);
}

/* The scope that is given is canceled by another thread while the call is under way. */
static enum hf_status cancel_outer(struct hf_scope *s, struct between *b, enum hf_op op,
                                   const void *request, void *response)
{
    CHECK(s != b->own);
    CHECK_OK(hf__scope_alive(s));
    hf_scope_cancel(b->own);
    CHECK_STATUS(HF_CANCELED, hf__scope_alive(s));
    return between_pass(s, b, op, request, response);
}

/* (2) */
TEST(pages, a_step_ends_with_its_scope)
{
    struct world w = open_items(t);
    struct between b = between_of(w.db);
    struct hf_query request = query_of(w.scope, 10);
    struct hf_pages *pages;
    struct hf_item item;
    size_t i;

    CHECK_OK(hf_pages_query(w.scope, &b.db, &request, NULL, &pages));
    hf_scope_timeout_ms(w.scope, 100);
    for (i = 0; i < 10; i++)
        CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    test_advance_ms(t, 100);
    CHECK_STATUS(HF_TIMEOUT, hf_pages_next_item(w.scope, pages, &item));
    CHECK(!item.ptr);
    hf_scope_timeout_ms(w.scope, 0);
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item)); /* there is time again */
    CHECK_INT(10, number_of(item));
    b.on_call = cancel_outer;
    b.own = w.scope;
    for (i = 0; i < 9; i++)
        CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_OK(hf_pages_next_item(w.scope, pages, &item)); /* came before it was noticed */
    for (i = 0; i < 9; i++)
        CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
    CHECK_STATUS(HF_CANCELED, hf_pages_next_item(w.scope, pages, &item));
    hf_scope_reset(w.scope);
    hf_pages_free(pages);
    world_close(&w);
}

TEST(pages, what_pages_consume_counts_for_the_scope)
{
    struct world w = open_items(t);
    struct hf_query request = query_of(w.scope, 10);
    struct hf_pages *pages;
    int64_t numbers[2 * ITEMS];
    size_t len = 0;

    hf_scope_count_capacity(w.scope, true);
    CHECK_OK(hf_pages_query(w.scope, w.db, &request, NULL, &pages));
    take(&w, pages, SIZE_MAX, numbers, &len);
    CHECK(hf_scope_capacity(w.scope).read_units > 0);
    CHECK_INT(6, hf_scope_capacity(w.scope).calls);
    hf_pages_free(pages);
    world_close(&w);
}

/* The request is copied, with everything that it points to. */
TEST(pages, the_request_need_not_live_on)
{
    struct world w = open_items(t);
    struct hf_scope *other = hf_scope_new(test_env(t));
    struct hf_value *pk = hf_scope_alloc(other, sizeof(*pk));
    struct hf_condition *conditions = hf__scope_array(other, 1, sizeof(*conditions));
    struct hf_str *attributes = hf__scope_array(other, 1, sizeof(*attributes));
    struct hf_query *request = hf__scope_array(other, 1, sizeof(*request));
    int64_t numbers[2 * ITEMS];
    struct hf_pages *pages;
    size_t len = 0;

    *pk = hf_value_make(other, (struct hf_attr){.type = HF_TYPE_S,
                                                .text = hf_scope_copy(other, HF_STR("all"))});
    *conditions = (struct hf_condition){.name = hf_scope_copy(other, HF_STR("pk")),
                                        .values = pk,
                                        .values_len = 1,
                                        .comparison = HF_EQ};
    *attributes = hf_scope_copy(other, HF_STR("sk"));
    *request = (struct hf_query){.table = hf_scope_copy(other, HF_STR("tab")),
                                 .key_conditions = conditions,
                                 .key_conditions_len = 1,
                                 .attributes_to_get = attributes,
                                 .attributes_to_get_len = 1,
                                 .limit = 8};
    CHECK_OK(hf_pages_query(other, w.db, request, NULL, &pages));
    hf_scope_free(other);
    take(&w, pages, SIZE_MAX, numbers, &len);
    CHECK_INT(ITEMS, len);
    hf_pages_free(pages);
    world_close(&w);
}

/* ---- memory and threads --------------------------------------------------------------------- */

enum { MANY = 100000 };

static void fill_many(struct world *w)
{
    make_table(w, "many");
    for (size_t i = 0; i < MANY; i += 1000) {
        struct hf_write writes[1000];

        hf_scope_reset(w->scope);
        for (size_t j = 0; j < 1000; j++)
            writes[j] = (struct hf_write){
                .table = HF_STR("many"),
                .put = HF_ITEM(w->scope, HF_S("pk", hf_scope_format(w->scope, "%zu", i + j)))};
        CHECK_OK(hf_write_many(w->scope, w->db, writes, 1000, NULL, NULL));
    }
    hf_scope_reset(w->scope);
}

struct segment {
    struct world *w;
    int64_t number;
    size_t items;
    enum hf_status status;
};

static void *scan_segment(void *user)
{
    struct segment *segment = user;
    struct hf_scope *s = hf_scope_new(test_env(segment->w->t));
    struct hf_scan request = {.table = HF_STR("many"),
                              .segment = segment->number,
                              .total_segments = 4,
                              .limit = 500};
    struct hf_pages *pages = NULL;
    struct hf_item item;

    segment->status = hf_pages_scan(s, segment->w->db, &request, NULL, &pages);
    while (segment->status == HF_OK &&
           (segment->status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr)
        segment->items++;
    hf_pages_free(pages);
    hf_scope_free(s);
    return NULL;
}

/* (4); and the same in four segments, each in its thread. */
TEST(pages, a_hundred_thousand_items_take_the_memory_of_a_page)
{
    struct world w = world_open(t, "memory:");
    struct hf_scan request = {.table = HF_STR("many"), .limit = 500};
    struct segment segments[4];
    pthread_t threads[4];
    struct hf_pages *pages;
    struct hf_item item;
    size_t live, peak = 0, n = 0;

    fill_many(&w);
    live = t->live_bytes;
    CHECK_OK(hf_pages_scan(w.scope, w.db, &request, NULL, &pages));
    for (;; n++) {
        CHECK_OK(hf_pages_next_item(w.scope, pages, &item));
        if (!item.ptr)
            break;
        peak = t->live_bytes > peak ? t->live_bytes : peak;
    }
    CHECK_INT(MANY, n);
    CHECK(peak - live < 512 * 1024);
    hf_pages_free(pages);

    n = 0;
    for (int i = 0; i < 4; i++) {
        segments[i] = (struct segment){.w = &w, .number = i};
        CHECK_INT(0, pthread_create(&threads[i], NULL, scan_segment, &segments[i]));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_OK(segments[i].status);
        CHECK(segments[i].items > 0 && segments[i].items < MANY);
        n += segments[i].items;
    }
    CHECK_INT(MANY, n);
    world_close(&w);
}

TEST(pages, without_memory_a_step_can_be_repeated)
{
    ALLOC_SWEEP (t, nth) {
        struct world w;
        struct hf_query request;
        struct hf_pages *pages = NULL;
        struct hf_item item, start = {NULL, 0};
        int64_t expected = 0;
        enum hf_status status;

        t->fail_at = 0; /* the sweep begins behind the opening */
        w = open_items(t);
        request = odd_query_of(w.scope, 16);
        t->fail_at = (int64_t)t->allocs + nth;
        status = hf_pages_query(w.scope, w.db, &request, NULL, &pages);
        CHECK((status == HF_OK) == (pages != NULL));
        CHECK(status == HF_OK || status == HF_NOMEM);
        while (pages && expected < ITEMS / 2) {
            status = hf_pages_next_item(w.scope, pages, &item);
            CHECK(status == HF_OK || status == HF_NOMEM);
            if (status == HF_OK)
                CHECK_INT(2 * expected++ + 1, number_of(item));
            if (status == HF_OK)
                status = hf_pages_cursor(w.scope, pages, &start);
            CHECK(status == HF_OK || status == HF_NOMEM);
        }
        ALLOC_SWEEP_STOP(t);
        hf_pages_free(pages);
        world_close(&w);
    }
}
