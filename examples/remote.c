/*
 * examples/remote.c: a database behind a URL: a table that is created if missing, some writes, and
 * a query that is read page by page. Needs no engine.
 *
 *     cc remote.c $(pkg-config --cflags --libs holdfast) -o remote
 *     ./remote http://127.0.0.1:8000              holdfast serve, DynamoDB Local, Alternator
 *     ./remote dynamodb://eu-central-1            Amazon DynamoDB, with the credentials of your
 *     profile
 *     ./remote 'http://127.0.0.1:8000?prefix=test-&attempts=2'
 */
#include <holdfast/client.h>
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include <stdio.h>

enum { DAYS = 12, PAGE = 5 };

/* Every failure is one of two: nothing was done, or something may have been. */
static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s%s\n", hf_scope_error_text(s),
            hf_scope_error(s)->may_have_happened ? " (and it may have been done)" : "");
    return 1;
}

static enum hf_status put_days(struct hf_scope *s, struct hf_db *db, struct hf_str table)
{
    for (int day = 1; day <= DAYS; day++) {
        const struct hf_put_item put = {.table = table,
                                        .item = HF_ITEM(s, HF_S("customer", HF_STR("ann")),
                                                        HF_N("day", day), HF_N("pieces", day * 2))};
        enum hf_status status = hf_put_item(s, db, &put, NULL);

        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* All of them from day 3 on, five at a time. */
static enum hf_status print_days(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                 int *count)
{
    const struct hf_query query = {.table = table,
                                   .key_condition = HF_STR("customer = :who AND #day >= :first"),
                                   .names = HF_ITEM(s, HF_S("#day", HF_STR("day"))),
                                   .values =
                                       HF_ITEM(s, HF_S(":who", HF_STR("ann")), HF_N(":first", 3)),
                                   .consistent = HF_YES,
                                   .limit = PAGE};
    enum hf_status status;
    struct hf_pages *pages;
    struct hf_item item;

    status = hf_pages_query(s, db, &query, NULL, &pages);
    while (status == HF_OK && (status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        printf("%s\n", hf_item_to_json(s, item).ptr);
        ++*count;
    }
    hf_pages_free(pages);
    return status;
}

int main(int argc, char **argv)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("customer"), HF_SCALAR_S},
                                                         {HF_STR("day"), HF_SCALAR_N}};
    const struct hf_key_element key[] = {{HF_STR("customer"), HF_KEY_HASH},
                                         {HF_STR("day"), HF_KEY_RANGE}};
    const struct hf_create_table orders = {.table = HF_STR("orders"),
                                           .attributes = attributes,
                                           .attributes_len = 2,
                                           .key_schema = key,
                                           .key_schema_len = 2};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    int count = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: remote URL\n");
        return 2;
    }
    if (!s || hf_connect(s, hf_str_from(argv[1]), NULL, &db) != HF_OK)
        return complain(s);

    hf_scope_timeout_ms(s, 60000); /* for all calls that follow, with their retries */
    if (hf_table_ensure(s, db, &orders, NULL) != HF_OK || put_days(s, db, orders.table) != HF_OK ||
        print_days(s, db, orders.table, &count) != HF_OK)
        return complain(s);

    hf_db_close(db);
    hf_scope_free(s);
    return count == DAYS - 2 ? 0 : 1;
}
