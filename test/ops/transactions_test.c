/* ops/transactions_test.c: transactions before any table is looked at. */
#include "ops_test.h"

#define NO_TYPE                                                                                    \
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"

static enum hf_status prepare(struct hf_scope *s, const struct hf_transact_write *actions,
                              size_t len, struct prepared_action **out)
{
    const struct hf_transact_write_items request = {.actions = actions, .actions_len = len};

    return hf__prepare_transact_write_items(s, NULL, &request, out);
}

TEST(transactions, actions_give_their_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_item key = HF_ITEM(s, HF_N("a", 1));
    const struct hf_condition_check check = {.table = HF_STR("t1"),
                                             .key = key,
                                             .condition = HF_STR("attribute_exists(a)")};
    const struct hf_put_item put = {.table = HF_STR("t2"), .item = key};
    const struct hf_delete_item del = {.table = HF_STR("t3"),
                                       .key = key,
                                       .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
    const struct hf_update_item update = {.table = HF_STR("t4"),
                                          .key = key,
                                          .update = HF_STR("SET b = :v"),
                                          .values = HF_ITEM(s, HF_N(":v", 2))};
    const struct hf_transact_write actions[] = {{.check = &check},
                                                {.put = &put},
                                                {.del = &del},
                                                {.update = &update}};
    struct prepared_action *out;

    CHECK_OK(prepare(s, actions, 4, &out));
    CHECK_INT(WRITE_CHECK, out[0].kind);
    CHECK(out[0].write.condition && out[0].write.key.ptr);
    CHECK_INT(WRITE_PUT, out[1].kind);
    CHECK(out[1].write.item.ptr && !out[1].write.condition);
    CHECK_INT(WRITE_DELETE, out[2].kind);
    CHECK(out[2].write.return_old_on_failure && !out[3].write.return_old_on_failure);
    CHECK_INT(WRITE_UPDATE, out[3].kind);
    CHECK(out[3].write.update);
    CHECK_STR("t4", out[3].write.table);
    hf_scope_free(s);
}

TEST(transactions, from_one_to_one_hundred_actions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_delete_item del = {.table = HF_STR("abc"), .key = HF_ITEM(s, HF_N("a", 1))};
    struct hf_transact_write actions[101];
    struct prepared_action *out;

    for (size_t i = 0; i < 101; i++)
        actions[i] = (struct hf_transact_write){.del = &del};
    REFUSED(ONE "Value null at 'transactItems' " FAILED NOT_NULL, prepare(s, NULL, 0, &out));
    REFUSED(ONE "Value '[]' at 'transactItems' " FAILED LEAST(1), prepare(s, actions, 0, &out));
    CHECK_OK(prepare(s, actions, 100, &out));
    CHECK_STATUS(HF_INVALID, prepare(s, actions, 101, &out));
    CHECK(strstr(hf_scope_error_text(s), "]' at 'transactItems' " FAILED MOST(100)));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED(ONE "Value at 'TransactItems' " FAILED MOST(100), prepare(s, actions, 101, &out));
    hf_scope_free(s);
}

TEST(transactions, an_action_is_one_thing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_item key = HF_ITEM(s, HF_N("a", 1));
    const struct hf_put_item put = {.table = HF_STR("abc"), .item = key};
    const struct hf_delete_item del = {.table = HF_STR("abc"), .key = key};
    const struct hf_transact_write both = {.put = &put, .del = &del};
    const struct hf_transact_write none = {.put = NULL};
    struct prepared_action *out;

    REFUSED("TransactItems can only contain one of Check, Put, Update or Delete",
            prepare(s, &both, 1, &out));
    REFUSED("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
            prepare(s, &none, 1, &out));
    hf_scope_free(s);
}

TEST(transactions, members_of_actions_are_constrained)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_condition_check check = {.table = HF_STR("a;"),
                                             .key = HF_ITEM(s, HF_N("a", 1))};
    const struct hf_update_item update = {.table = HF_STR("abc"), .key = check.key};
    const struct hf_transact_write actions[] = {{.check = &check}, {.update = &update}};
    struct hf_transact_write_items request = {.actions = actions,
                                              .actions_len = 2,
                                              .token = repeated(s, 'x', 37)};
    struct prepared_action *out;

    REFUSED(
        "4 validation errors detected: Value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' at "
        "'clientRequestToken' " FAILED MOST(
            36) "; Value 'a;' at 'transactItems.1.member.conditionCheck.tableName' " FAILED
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value null at "
                "'transactItems.1.member.conditionCheck.conditionExpression' " FAILED NOT_NULL
                "; Value null at 'transactItems.2.member.update.updateExpression' " FAILED NOT_NULL,
        hf__prepare_transact_write_items(s, NULL, &request, &out));
    hf_scope_free(s);
}

/* Actions are read in order, and the first that fails decides. */
TEST(transactions, the_first_failing_action_decides)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_item key = HF_ITEM(s, HF_N("a", 1));
    const struct hf_condition_check syntax = {.table = HF_STR("abc"),
                                              .key = key,
                                              .condition = HF_STR("attribute_exists(")};
    const struct hf_put_item deep = {.table = HF_STR("abc"), .item = spoiled(s, NO_TYPE, "a")};
    const struct hf_condition_check unused = {.table = HF_STR("abc"),
                                              .key = key,
                                              .condition = HF_STR("attribute_exists(a)"),
                                              .values = HF_ITEM(s, HF_N(":v", 1))};
    const struct hf_put_item large = {.table = HF_STR("abc"),
                                      .item =
                                          HF_ITEM(s, HF_S("a", repeated(s, 'x', ITEM_SIZE_MAX)))};
    const struct hf_transact_write actions[] = {{.check = &syntax}, {.put = &deep},
                                                {.check = &syntax}, {.check = &unused},
                                                {.put = &large},    {.check = &unused}};
    const struct hf_delete_item del = {.table = HF_STR("abc"),
                                       .key = spoiled(s, NO_TYPE, "a"),
                                       .condition = HF_STR("")};
    const struct hf_transact_write both_wrong = {.del = &del};
    struct prepared_action *out;

    REFUSED("Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"(\"",
            prepare(s, actions, 2, &out));
    REFUSED(NO_TYPE, prepare(s, actions + 1, 2, &out));
    REFUSED("Invalid ConditionExpression: The expression can not be empty;",
            prepare(s, &both_wrong, 1, &out));
    REFUSED("Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
            prepare(s, actions + 3, 2, &out));
    REFUSED("Item size has exceeded the maximum allowed size", prepare(s, actions + 4, 2, &out));
    hf_scope_free(s);
}

TEST(transactions, four_megabytes_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const size_t large = 400 * 1000;
    struct hf_put_item put = {.table = HF_STR("abc"),
                              .item = HF_ITEM(s, HF_S("a", repeated(s, 'x', large - 1)))};
    struct hf_put_item last = put;
    struct hf_transact_write actions[11];
    struct prepared_action *out;
    size_t left = 4 * 1024 * 1024 - 10 * large;

    for (size_t i = 0; i < 10; i++)
        actions[i] = (struct hf_transact_write){.put = &put};
    actions[10] = (struct hf_transact_write){.put = &last};
    last.item = HF_ITEM(s, HF_S("a", repeated(s, 'x', left - 1)));
    CHECK_OK(prepare(s, actions, 11, &out));
    last.item = HF_ITEM(s, HF_S("a", repeated(s, 'x', left)));
    REFUSED("Transaction size cannot exceed 4 MB", prepare(s, actions, 11, &out));
    hf_scope_free(s);
}

TEST(transactions, reading_many)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_get_item get = {.table = HF_STR("abc"),
                              .key = HF_ITEM(s, HF_N("a", 1)),
                              .projection = HF_STR("#n"),
                              .names = HF_ITEM(s, HF_S("#n", HF_STR("n")))};
    struct hf_transact_get action = {.get = &get};
    struct hf_transact_get_items request = {.actions = &action,
                                            .actions_len = 1,
                                            .return_capacity = HF_CAPACITY_TOTAL};
    struct prepared_get *out;

    CHECK_OK(hf__prepare_transact_get_items(s, NULL, &request, &out));
    CHECK_STR("abc", out[0].read.table);
    CHECK(out[0].read.projection && hf_item_equal(get.key, out[0].key));
    CHECK_INT(HF_CAPACITY_TOTAL, out[0].read.return_capacity);
    get.projection = HF_STR("a");
    REFUSED("Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}",
            hf__prepare_transact_get_items(s, NULL, &request, &out));
    get.key = spoiled(s, NO_TYPE, "a");
    REFUSED(NO_TYPE, hf__prepare_transact_get_items(s, NULL, &request, &out));
    action.get = NULL;
    REFUSED(ONE "Value null at 'transactItems.1.member.get' " FAILED NOT_NULL,
            hf__prepare_transact_get_items(s, NULL, &request, &out));
    hf_scope_free(s);
}

TEST(transactions, any_allocation_may_fail)
{
    struct hf_update_item update;
    const struct hf_transact_write action = {.update = &update};
    const struct hf_transact_write_items request = {.actions = &action, .actions_len = 1};
    struct prepared_action *out;

    SWEEP(HF_OK,
          (update = (struct hf_update_item){.table = HF_STR("abc"),
                                            .key = HF_ITEM(s, HF_N("a", 1)),
                                            .update = HF_STR("ADD b :v"),
                                            .condition = HF_STR("b < :v"),
                                            .values = HF_ITEM(s, HF_N(":v", 1))}),
          hf__prepare_transact_write_items(s, NULL, &request, &out));
}
