/* ops/constraints_test.c: (n) is an invariant of ops/constraints.c. */
#include "ops_test.h"

#define BAD_CAPACITY                                                                               \
    "Value 'hi' at 'returnConsumedCapacity' " FAILED                                               \
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"

TEST(constraints, a_missing_table_is_reported_with_all_else_that_is_wrong)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = {.return_capacity = (enum hf_return_capacity)bogus(s, "hi")};

    REFUSED("3 validation errors detected: " BAD_CAPACITY
            "; Value null at 'tableName' " FAILED NOT_NULL
            "; Value null at 'item' " FAILED NOT_NULL,
            hf__prepare_plain(s, HF_OP_PUT_ITEM, &put));
    hf_scope_free(s);
}

/* JSON is, but a program may pass anything. */
TEST(constraints, texts_are_utf8)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_tag tag = {.key = HF_STR("caf\xE9"), .value = HF_STR("caf\xC3\xA9")};
    struct hf_tag_resource request = {.arn = HF_STR("arn"), .tags = &tag, .tags_len = 1};
    struct hf_attribute_update change = {.name = HF_STR("\xFF"), .action = HF_ACTION_DELETE};
    struct hf_update_item update = {.table = HF_STR("tab"),
                                    .key = HF_ITEM(s, HF_S("a", HF_STR("a"))),
                                    .updates = &change,
                                    .updates_len = 1};

    REFUSED(ONE "Value at 'Tags.1.member.Key' " FAILED "Member must be UTF-8",
            hf__prepare_plain(s, HF_OP_TAG_RESOURCE, &request));
    tag.key = HF_STR("caf\xC3\xA9");
    CHECK_OK(hf__prepare_plain(s, HF_OP_TAG_RESOURCE, &request));
    REFUSED(ONE "Value at 'AttributeUpdates.1.member' " FAILED "Member must be UTF-8",
            hf__prepare_plain(s, HF_OP_UPDATE_ITEM, &update));
    hf_scope_free(s);
}

/* (2) */
TEST(constraints, a_bad_table_name_is_reported_alone)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_get_item get = {.return_capacity = (enum hf_return_capacity)bogus(s, "hi"),
                              .key = hf_item_make(s, NULL, 0)};

    get.table = HF_STR("");
    REFUSED(ONE "Value '' at 'tableName' " FAILED LEAST(1),
            hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    get.table = HF_STR("abc;");
    REFUSED(ONE "Value 'abc;' at 'tableName' " FAILED
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    get.table = HF_STR("");
    get.key.ptr = NULL; /* then it is one of many */
    REFUSED("3 validation errors detected: " BAD_CAPACITY
            "; Value '' at 'tableName' " FAILED LEAST(1) "; Value null at 'key' " FAILED NOT_NULL,
            hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    get = (struct hf_get_item){.table = repeated(s, 'a', 255),
                               .key = HF_ITEM(s, HF_S("a", HF_STR("a")))};
    CHECK_OK(hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    get.table = repeated(s, 'a', 256);
    CHECK_STATUS(HF_INVALID, hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    CHECK(strstr(hf_scope_error_text(s), "at 'tableName' " FAILED MOST(255)));
    get.table = HF_STR("a"); /* one character is enough, and then it is not found */
    CHECK_OK(hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    get.table = HF_STR("arn:aws:dynamodb:us-east-1:123456789012:table/users");
    CHECK_OK(hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    hf_scope_free(s);
}

TEST(constraints, create_table_wants_a_name_of_three_characters)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_create_table create = {.table = {NULL, 0}};

    REFUSED("The parameter 'TableName' is required but was not present in the request",
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    create.table = HF_STR("ab");
    REFUSED(ONE "Value 'ab' at 'tableName' " FAILED LEAST(3),
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    create.table = HF_STR("a;b");
    REFUSED(ONE "Value 'a;b' at 'tableName' " FAILED
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    create.table = HF_STR("abc");
    REFUSED("2 validation errors detected: Value null at 'attributeDefinitions' " FAILED NOT_NULL
            "; Value null at 'keySchema' " FAILED NOT_NULL,
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    hf_scope_free(s);
}

TEST(constraints, paths_lead_into_lists_structures_and_maps)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_key_element keys[] = {{HF_STR("a"), HF_KEY_HASH},
                                          {HF_STR("b"), (enum hf_key_type)bogus(s, "x")}};
    const struct hf_attribute_definition defined[] = {{HF_STR(""), HF_SCALAR_S}};
    const struct hf_throughput throughput = {.read_units = HF_ZERO, .write_units = -1};
    const struct hf_create_table create = {.table = HF_STR("abc"),
                                           .attributes = defined,
                                           .attributes_len = 1,
                                           .key_schema = keys,
                                           .key_schema_len = 2,
                                           .throughput = &throughput};
    const struct hf_condition condition = {.name = HF_STR("b"),
                                           .comparison = (enum hf_comparison)bogus(s, "eq")};
    const struct hf_query query = {.table = HF_STR("abc"),
                                   .key_conditions = &condition,
                                   .key_conditions_len = 1};

    REFUSED("4 validation errors detected: Value '' at "
            "'attributeDefinitions.1.member.attributeName' " FAILED LEAST(
                1) "; Value 'x' at 'keySchema.2.member.keyType' " FAILED
                   "Member must satisfy enum value set: [HASH, RANGE]; Value '0' at "
                   "'provisionedThroughput.readCapacityUnits' " FAILED
                   "Member must have value greater than or equal to 1; Value '-1' at "
                   "'provisionedThroughput.writeCapacityUnits' " FAILED
                   "Member must have value greater than or equal to 1",
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    REFUSED(ONE "Value 'eq' at 'keyConditions.b.member.comparisonOperator' " FAILED
                "Member must satisfy enum value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, "
                "NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]",
            hf__prepare_plain(s, HF_OP_QUERY, &query));
    hf_scope_free(s);
}

TEST(constraints, lists_print_their_elements)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_key_element keys[] = {{HF_STR("a"), HF_KEY_HASH},
                                          {HF_STR("b"), HF_KEY_RANGE},
                                          {HF_STR("c"), HF_KEY_RANGE}};
    const struct hf_attribute_definition defined[] = {{HF_STR("a"), HF_SCALAR_S}};
    const struct hf_create_table create = {.table = HF_STR("abc"),
                                           .attributes = defined,
                                           .attributes_len = 1,
                                           .key_schema = keys,
                                           .key_schema_len = 3};
    const struct hf_str nothing = HF_STR("");
    const struct hf_get_item get = {.table = HF_STR("abc"),
                                    .key = HF_ITEM(s, HF_S("a", HF_STR("a"))),
                                    .attributes_to_get = &nothing,
                                    .attributes_to_get_len = 0};

    REFUSED(ONE "Value '[KeySchemaElement(attributeName=a, keyType=HASH), "
                "KeySchemaElement(attributeName=b, keyType=RANGE), "
                "KeySchemaElement(attributeName=c, keyType=RANGE)]' at 'keySchema' " FAILED MOST(2),
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    REFUSED(ONE "Value '[]' at 'attributesToGet' " FAILED LEAST(1),
            hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    hf_scope_free(s);
}

/* (1) */
TEST(constraints, at_most_ten_are_reported)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_attribute_definition defined[12];
    const struct hf_key_element key = {HF_STR("a"), HF_KEY_HASH};
    struct hf_create_table create = {.table = HF_STR("abc"),
                                     .attributes = defined,
                                     .attributes_len = 10,
                                     .key_schema = &key,
                                     .key_schema_len = 1};
    int printed = 0;

    for (size_t i = 0; i < 12; i++)
        defined[i] = (struct hf_attribute_definition){HF_STR(""), HF_SCALAR_S};
    for (size_t len = 10; len <= 12; len++) {
        create.attributes_len = len;
        CHECK_STATUS(HF_INVALID, hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
        CHECK(strncmp(hf_scope_error_text(s), "10 validation errors detected: ", 31) == 0);
        printed = 0;
        for (const char *at = hf_scope_error_text(s); (at = strstr(at, FAILED)); at++)
            printed++;
        CHECK_INT(10, printed);
    }
    hf_scope_free(s);
}

TEST(constraints, numbers_at_their_limits)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scan scan = {.table = HF_STR("abc")};
    struct hf_list_tables list = {.limit = 100};
    struct hf_query query = {.table = HF_STR("abc")};

    scan.total_segments = 1000000;
    scan.segment = 999999;
    CHECK_OK(hf__prepare_plain(s, HF_OP_SCAN, &scan));
    scan.total_segments++;
    scan.segment++;
    REFUSED("2 validation errors detected: Value '1000001' at 'totalSegments' " FAILED
            "Member must have value less than or equal to 1000000; Value '1000000' at "
            "'segment' " FAILED "Member must have value less than or equal to 999999",
            hf__prepare_plain(s, HF_OP_SCAN, &scan));
    scan = (struct hf_scan){.table = HF_STR("abc"), .total_segments = HF_ZERO, .segment = -1};
    REFUSED("2 validation errors detected: Value '0' at 'totalSegments' " FAILED
            "Member must have value greater than or equal to 1; Value '-1' at 'segment' " FAILED
            "Member must have value greater than or equal to 0",
            hf__prepare_plain(s, HF_OP_SCAN, &scan));
    scan = (struct hf_scan){.table = HF_STR("abc"), .limit = HF_ZERO};
    REFUSED(ONE "Value '0' at 'limit' " FAILED "Member must have value greater than or equal to 1",
            hf__prepare_plain(s, HF_OP_SCAN, &scan));
    query.limit = HF_ZERO; /* Query's Limit has the newer form in either wording */
    REFUSED(ONE "Value at 'Limit' " FAILED "Member must have value greater than or equal to 1",
            hf__prepare_plain(s, HF_OP_QUERY, &query));
    CHECK_OK(hf__prepare_plain(s, HF_OP_LIST_TABLES, &list));
    list.limit = 101;
    REFUSED(ONE "Value '101' at 'limit' " FAILED "Member must have value less than or equal to 100",
            hf__prepare_plain(s, HF_OP_LIST_TABLES, &list));
    hf_scope_free(s);
}

TEST(constraints, an_index_name_breaks_its_pattern_and_its_length)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_query query = {.table = HF_STR("abc"), .index = HF_STR("a;")};

    REFUSED("2 validation errors detected: Value 'a;' at 'indexName' " FAILED
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a;' at "
            "'indexName' " FAILED LEAST(3),
            hf__prepare_plain(s, HF_OP_QUERY, &query));
    hf_scope_free(s);
}

TEST(constraints, the_newer_layer_names_no_values)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_get_item get = {.table = HF_STR(""), .key = hf_item_make(s, NULL, 0)};
    const struct hf_key_element key = {HF_STR(""), HF_KEY_HASH};
    const struct hf_attribute_definition defined = {HF_STR("a"), HF_SCALAR_S};
    const struct hf_create_table create = {.table = HF_STR("abc"),
                                           .attributes = &defined,
                                           .attributes_len = 1,
                                           .key_schema = &key,
                                           .key_schema_len = 1};
    const struct hf_update_item update = {
        .table = HF_STR("abc"),
        .returns = (enum hf_return_values)bogus(s, "hi"),
        .return_capacity = (enum hf_return_capacity)bogus(s, "hi"),
    };

    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED(ONE "Value at 'TableName' " FAILED LEAST(1),
            hf__prepare_plain(s, HF_OP_GET_ITEM, &get));
    REFUSED(ONE "Value at 'KeySchema.1.member.AttributeName' " FAILED LEAST(1),
            hf__prepare_plain(s, HF_OP_CREATE_TABLE, &create));
    REFUSED(ONE "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, "
                "UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
            hf__prepare_plain(s, HF_OP_UPDATE_ITEM, &update));
    hf_scope_free(s);
}

TEST(constraints, operations_without_members_are_fine)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_describe_limits limits = {0};
    const struct hf_ttl_spec spec = {.attribute = HF_STR("")};
    const struct hf_update_time_to_live ttl = {.table = HF_STR("abc"), .spec = &spec};

    CHECK_OK(hf__prepare_plain(s, HF_OP_DESCRIBE_LIMITS, &limits));
    REFUSED("2 validation errors detected: Value null at 'timeToLiveSpecification.enabled' " FAILED
                NOT_NULL "; Value '' at 'timeToLiveSpecification.attributeName' " FAILED LEAST(1),
            hf__prepare_plain(s, HF_OP_UPDATE_TIME_TO_LIVE, &ttl));
    hf_scope_free(s);
}

TEST(constraints, any_allocation_may_fail)
{
    const struct hf_put_item put = {.table = {NULL, 0}};

    SWEEP(HF_INVALID, , hf__prepare_plain(s, HF_OP_PUT_ITEM, &put));
}

TEST(constraints, a_table_is_named_by_its_arn)
{
    CHECK_STR("users", hf__ops_table_name(HF_STR("users")));
    CHECK_STR("users", hf__ops_table_name(HF_STR("arn:aws:dynamodb:eu-west-2:1:table/users")));
    CHECK_STR("users",
              hf__ops_table_name(HF_STR("arn:aws:dynamodb:eu-west-2:1:table/users/index/i")));
    CHECK_STR("arn:aws:s3:::bucket", hf__ops_table_name(HF_STR("arn:aws:s3:::bucket")));
}
