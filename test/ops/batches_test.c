/* ops/batches_test.c: BatchGetItem and BatchWriteItem before any table is looked at. */
#include "ops_test.h"

#define NO_TYPE                                                                                    \
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
#define MAP_VALUE                                                                                  \
    "Map value must satisfy constraint: [Member must have length less than or equal to 25, "       \
    "Member must have length greater than or equal to 1]"
#define MAP_KEYS                                                                                   \
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "       \
    "Member must have length greater than or equal to 3, Member must satisfy regular expression "  \
    "pattern: [a-zA-Z0-9_.-]+]"

enum { MANY = 101 };

/* One key, many times: repeats are the engine's. */
static const struct hf_item *keys_of(struct hf_scope *s)
{
    struct hf_item *keys = hf__scope_array(s, MANY, sizeof(*keys));

    for (size_t i = 0; i < MANY; i++)
        keys[i] = HF_ITEM(s, HF_N("a", i));
    return keys;
}

TEST(batches, there_is_something_to_get)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_table_gets none = {.table = HF_STR("abc"), .keys = keys_of(s)};
    struct hf_batch_get_item get = {.tables = NULL};
    struct hf_batch_write_item write = {.tables = NULL};
    const struct hf_table_writes no_writes = {.table = HF_STR("abc"), .writes_len = 0};
    struct prepared_read *out;

    REFUSED(ONE "Value null at 'requestItems' " FAILED NOT_NULL,
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    get.tables = &none;
    REFUSED("The requestItems parameter is required for BatchGetItem",
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    get.tables_len = 1;
    REFUSED(ONE "Value at 'RequestItems.abc.member.Keys' " FAILED LEAST(1),
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    write.tables = &no_writes;
    REFUSED("The requestItems parameter is required for BatchWriteItem",
            hf__prepare_batch_write_item(s, &write, NULL));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED(ONE "Value at 'RequestItems' " FAILED LEAST(1),
            hf__prepare_batch_write_item(s, &write, NULL));
    hf_scope_free(s);
}

TEST(batches, one_hundred_keys_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_table_gets tables[] = {{.table = HF_STR("abc"), .keys = keys_of(s), .keys_len = 100},
                                     {.table = HF_STR("def"), .keys = keys_of(s), .keys_len = 1}};
    struct hf_batch_get_item get = {.tables = tables, .tables_len = 1};
    struct prepared_read *out;

    get.return_capacity = HF_CAPACITY_INDEXES;
    tables[0].consistent = HF_YES;
    CHECK_OK(hf__prepare_batch_get_item(s, NULL, &get, &out));
    CHECK_STR("abc", out[0].table);
    CHECK(out[0].consistent && !out[0].projection);
    CHECK_INT(HF_CAPACITY_INDEXES, out[0].return_capacity);
    get.tables_len = 2;
    REFUSED("Too many items requested for the BatchGetItem call",
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    tables[0].keys_len = 101;
    REFUSED(ONE "Value at 'RequestItems.abc.member.Keys' " FAILED MOST(100),
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    hf_scope_free(s);
}

TEST(batches, every_table_of_a_get_is_checked)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_item bad = spoiled(s, NO_TYPE, "a");
    const struct hf_str names[] = {HF_STR("a"), HF_STR("a")};
    struct hf_table_gets tables[] = {{.table = HF_STR("abc"), .keys = keys_of(s), .keys_len = 1},
                                     {.table = HF_STR("def"), .keys = &bad, .keys_len = 1}};
    struct hf_batch_get_item get = {.tables = tables, .tables_len = 2};
    struct prepared_read *out;

    REFUSED(NO_TYPE, hf__prepare_batch_get_item(s, NULL, &get, &out));
    tables[0].projection = HF_STR("a, a");
    REFUSED("Invalid ProjectionExpression: Two document paths overlap with each other; must remove "
            "or rewrite one of these paths; path one: [a], path two: [a]",
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    tables[1].attributes_to_get = names; /* mixed, although in another table */
    tables[1].attributes_to_get_len = 2;
    REFUSED("Can not use both expression and non-expression parameters in the same request: "
            "Non-expression parameters: {AttributesToGet} Expression parameters: "
            "{ProjectionExpression}",
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    tables[0].projection.ptr = NULL;
    REFUSED(BAD "Duplicate value in attribute name: a",
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    tables[1].attributes_to_get = NULL;
    tables[1].attributes_to_get_len = 0;
    tables[1].names = HF_ITEM(s, HF_S("#a", HF_STR("a")));
    REFUSED("ExpressionAttributeNames can only be specified when using expressions",
            hf__prepare_batch_get_item(s, NULL, &get, &out));
    hf_scope_free(s);
}

/* What null in a list of the wire becomes. */
TEST(batches, a_key_that_is_null)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_item keys[] = {HF_ITEM(s, HF_N("a", 1)), {NULL, 0}};
    const struct hf_str names[] = {HF_STR("a"), {NULL, 0}};
    const struct hf_table_gets table = {.table = HF_STR("abc"),
                                        .keys = keys,
                                        .keys_len = 2,
                                        .attributes_to_get = names,
                                        .attributes_to_get_len = 2};
    const struct hf_batch_get_item get = {.tables = &table, .tables_len = 1};
    struct prepared_read *out;

    REFUSED(
        "2 validation errors detected: Value null at 'requestItems.abc.member.keys.2.member' " FAILED
            NOT_NULL
        "; Value null at 'requestItems.abc.member.attributesToGet.2.member' " FAILED NOT_NULL,
        hf__prepare_batch_get_item(s, NULL, &get, &out));
    hf_scope_free(s);
}

TEST(batches, names_of_tables)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_put_request put = {.item = HF_ITEM(s, HF_N("a", 1))};
    const struct hf_write_request write = {.put = &put};
    const struct hf_table_writes writes = {.table = HF_STR("bad!name"),
                                           .writes = &write,
                                           .writes_len = 1};
    struct hf_batch_write_item request = {.tables = &writes, .tables_len = 1};
    const struct hf_table_gets reads = {.table = HF_STR("ab"), .keys = keys_of(s), .keys_len = 1};
    struct hf_batch_get_item get = {.tables = &reads, .tables_len = 1};
    struct prepared_read *out;

    REFUSED(ONE "Value '{bad!name=[WriteRequest(putRequest=PutRequest(item={a=AttributeValue(N)}), "
                "deleteRequest=null)]}' at 'requestItems' " FAILED MAP_KEYS,
            hf__prepare_batch_write_item(s, &request, NULL));
    REFUSED(
        ONE
        "Value '{\"ab\":{\"Keys\":[{\"a\":{\"N\":\"0\"}}]}}' at 'requestItems' " FAILED MAP_KEYS,
        hf__prepare_batch_get_item(s, NULL, &get, &out));
    get.return_capacity = (enum hf_return_capacity)bogus(s, "hi");
    CHECK_STATUS(HF_INVALID, hf__prepare_batch_get_item(s, NULL, &get, &out));
    CHECK(strncmp(hf_scope_error_text(s), "2 validation errors detected: ", 30) == 0);
    request.return_capacity = get.return_capacity; /* here the name gives way */
    REFUSED(ONE "Value 'hi' at 'returnConsumedCapacity' " FAILED
                "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
            hf__prepare_batch_write_item(s, &request, NULL));
    hf_scope_free(s);
}

TEST(batches, twenty_five_writes_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_delete_request del = {.key = HF_ITEM(s, HF_N("a", 1))};
    struct hf_write_request writes[26];
    struct hf_table_writes tables[] = {{HF_STR("abc"), writes, 25}, {HF_STR("def"), writes, 1}};
    struct hf_batch_write_item request = {.tables = tables, .tables_len = 1};

    for (size_t i = 0; i < 26; i++)
        writes[i] = (struct hf_write_request){.del = &del};
    CHECK_OK(hf__prepare_batch_write_item(s, &request, NULL));
    request.tables_len = 2;
    REFUSED("Too many items requested for the BatchWriteItem call",
            hf__prepare_batch_write_item(s, &request, NULL));
    request.tables_len = 1;
    tables[0].writes_len = 26;
    CHECK_STATUS(HF_INVALID, hf__prepare_batch_write_item(s, &request, NULL));
    CHECK(strncmp(hf_scope_error_text(s), ONE "Value '{abc=[WriteRequest(", 55) == 0);
    CHECK(strstr(hf_scope_error_text(s), "]}' at 'requestItems' " FAILED MAP_VALUE));
    tables[0].writes_len = 0;
    REFUSED(ONE "Value '{abc=[]}' at 'requestItems' " FAILED MAP_VALUE,
            hf__prepare_batch_write_item(s, &request, NULL));
    hf__scope_set_wording(s, HF__WORDING_2026);
    tables[0].writes_len = 26;
    REFUSED(ONE "Value at 'RequestItems.abc.member' " FAILED MOST(25),
            hf__prepare_batch_write_item(s, &request, NULL));
    hf_scope_free(s);
}

TEST(batches, every_write_is_checked)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_request put = {.item = HF_ITEM(s, HF_N("a", 1))};
    struct hf_delete_request del = {.key = HF_ITEM(s, HF_N("a", 1))};
    struct hf_write_request writes[] = {{.put = &put}, {.del = &del}};
    const struct hf_table_writes table = {HF_STR("abc"), writes, 2};
    const struct hf_batch_write_item request = {.tables = &table, .tables_len = 1};

    CHECK_OK(hf__prepare_batch_write_item(s, &request, NULL));
    put.item = HF_ITEM(s, HF_S("a", repeated(s, 'x', ITEM_SIZE_MAX)));
    REFUSED("Item size has exceeded the maximum allowed size",
            hf__prepare_batch_write_item(s, &request, NULL));
    put.item = HF_ITEM(s, HF_N("a", 1));
    del.key = spoiled(s, NO_TYPE, "a");
    REFUSED(NO_TYPE, hf__prepare_batch_write_item(s, &request, NULL));
    writes[1].put = &put; /* both */
    REFUSED("Supplied AttributeValue has more than one datatypes set, must contain exactly one of "
            "the supported datatypes",
            hf__prepare_batch_write_item(s, &request, NULL));
    writes[1] = (struct hf_write_request){.put = NULL}; /* neither */
    REFUSED("Supplied AttributeValue has more than one datatypes set, must contain exactly one of "
            "the supported datatypes",
            hf__prepare_batch_write_item(s, &request, NULL));
    put.item.ptr = NULL;
    REFUSED(ONE "Value null at 'requestItems.abc.member.1.member.putRequest.item' " FAILED NOT_NULL,
            hf__prepare_batch_write_item(s, &request, NULL));
    hf_scope_free(s);
}

TEST(batches, any_allocation_may_fail)
{
    const struct hf_table_writes none = {.table = HF_STR("abc"), .writes_len = 0};
    const struct hf_batch_write_item write = {.tables = &none, .tables_len = 1};
    struct hf_table_gets reads;
    struct hf_batch_get_item get = {.tables = &reads, .tables_len = 1};
    struct prepared_read *out;

    SWEEP(HF_INVALID, , hf__prepare_batch_write_item(s, &write, NULL));
    SWEEP(HF_OK,
          (reads = (struct hf_table_gets){.table = HF_STR("abc"),
                                          .keys = keys_of(s),
                                          .keys_len = 3,
                                          .projection = HF_STR("a.b, c[1]")}),
          hf__prepare_batch_get_item(s, NULL, &get, &out));
}
