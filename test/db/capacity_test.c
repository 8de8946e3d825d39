/*
 * db/capacity_test.c: what operations consume is added up in the scope, whatever shape the answer
 * has, once, and only when asked for.
 */
#include "world.h"

#include <string.h>

#include "between.h"

static void make_table(struct world *w, const char *name)
{
    struct hf_str json = hf_scope_format(
        w->scope,
        "{'TableName':'%s','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"
        "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}",
        name);

    world_ok(w, "CreateTable", json.ptr);
}

/* The sums since the last time, in tenths to compare as whole numbers. */
static void consumed(struct world *w, int read_tenths, int write_tenths, unsigned calls)
{
    struct hf_scope_capacity sum = hf_scope_capacity(w->scope);

    CHECK_INT(read_tenths, (int)(sum.read_units * 10 + 0.5));
    CHECK_INT(write_tenths, (int)(sum.write_units * 10 + 0.5));
    CHECK_INT(calls, sum.calls);
    hf_scope_reset(w->scope);
    CHECK_INT(0, hf_scope_capacity(w->scope).calls);
    hf_scope_count_capacity(w->scope, true);
}

TEST(capacity, of_single_operations)
{
    struct world w = world_open(t, "memory:");
    const struct hf_put_item put = {.table = HF_STR("tab"),
                                    .item = HF_ITEM(w.scope, HF_S("pk", HF_STR("a")))};
    const struct hf_get_item get = {.table = HF_STR("tab"), .key = put.item};
    struct hf_get_item_result got;

    make_table(&w, "tab");
    CHECK_INT(0, hf_scope_capacity(w.scope).calls);
    hf_scope_count_capacity(w.scope, true);
    CHECK_OK(hf_put_item(w.scope, w.db, &put, NULL));
    CHECK_OK(hf_put_item(w.scope, w.db, &put, NULL));
    CHECK_OK(hf_get_item(w.scope, w.db, &get, &got));
    CHECK(got.item.ptr && got.capacity);
    CHECK_OK(hf_list_tables(w.scope, w.db, &(struct hf_list_tables){0}, NULL));
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_get_item(w.scope, w.db,
                             &(struct hf_get_item){.table = HF_STR("none"), .key = put.item},
                             NULL));
    /* what was asked for by the caller stays as it was asked for */
    CHECK_OK(hf_get_item(w.scope, w.db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = put.item,
                                               .consistent = HF_YES,
                                               .return_capacity = HF_CAPACITY_INDEXES},
                         &got));
    CHECK(got.capacity->table_part != NULL);
    CHECK_OK(hf_get_item(w.scope, w.db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = put.item,
                                               .return_capacity = HF_CAPACITY_NONE},
                         &got));
    CHECK(!got.capacity);
    hf_scope_count_capacity(w.scope, false);
    CHECK_OK(hf_get_item(w.scope, w.db, &get, &got));
    CHECK(!got.capacity);
    consumed(&w, 15, 20, 7);
    world_close(&w);
}

TEST(capacity, of_lists_and_statements)
{
    struct world w = world_open(t, "memory:");

    make_table(&w, "tab");
    make_table(&w, "ube");
    hf_scope_reset(w.scope);
    hf_scope_count_capacity(w.scope, true);
    world_ok(&w, "BatchWriteItem",
             "{'RequestItems':{'tab':[{'PutRequest':{'Item':{'pk':{'S':'a'}}}},{'PutRequest':{"
             "'Item':{'pk':{'S':'b'}}}}],'ube':[{'PutRequest':{'Item':{'pk':{'S':'a'}}}}]}}");
    consumed(&w, 0, 30, 1);
    world_ok(
        &w, "BatchGetItem",
        "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'a'}}]},'ube':{'Keys':[{'pk':{'S':'a'}}]}}}");
    consumed(&w, 10, 0, 1);
    world_ok(&w, "TransactWriteItems",
             "{'TransactItems':[{'Put':{'TableName':'tab','Item':{'pk':{'S':'c'}}}}]}");
    consumed(&w, 0, 20, 1);
    world_ok(&w, "TransactGetItems",
             "{'TransactItems':[{'Get':{'TableName':'tab','Key':{'pk':{'S':'c'}}}}]}");
    consumed(&w, 20, 0, 1);
    world_ok(&w, "Scan", "{'TableName':'tab'}");
    consumed(&w, 5, 0, 1);
    world_ok(&w, "ExecuteStatement",
             "{'Statement':' SELECT * FROM tab WHERE pk = \\u0027a\\u0027'}");
    consumed(&w, 5, 0, 1);
    world_ok(&w, "ExecuteStatement", "{'Statement':'DELETE FROM tab WHERE pk = \\u0027a\\u0027'}");
    consumed(&w, 0, 10, 1);
    world_ok(&w, "BatchExecuteStatement",
             "{'Statements':[{'Statement':'SELECT * FROM tab WHERE pk = \\u0027b\\u0027'}]}");
    consumed(&w, 5, 0, 1);
    world_close(&w);
}

/* A wrapper that goes through the waist itself does not make it count twice. */
static enum hf_status through_the_waist(struct hf_scope *s, struct between *b, enum hf_op op,
                                        const void *request, void *response)
{
    return hf_db_call(s, b->inner, op, request, response);
}

TEST(capacity, counts_once_through_wrappers)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    const struct hf_put_item put = {.table = HF_STR("tab"),
                                    .item = HF_ITEM(w.scope, HF_S("pk", HF_STR("a")))};

    b.on_call = through_the_waist;
    make_table(&w, "tab");
    hf_scope_count_capacity(w.scope, true);
    CHECK_OK(hf_put_item(w.scope, &b.db, &put, NULL));
    consumed(&w, 0, 10, 1);
    world_close(&w);
}

/* Every request that can ask fits into the copy that asks. */
TEST(capacity, every_operation_that_can_ask_is_asked)
{
    struct world w = world_open(t, "memory:");
    unsigned can = 0;

    hf_scope_count_capacity(w.scope, true);
    for (int op = 0; op < HF_OP_COUNT; op++) {
        const struct op *entry = hf__op((enum hf_op)op);
        bool asks = false;

        for (size_t i = 0; i < entry->request->len; i++)
            if (strcmp(entry->request->list[i].name, "ReturnConsumedCapacity") == 0)
                asks = true;
        if (asks) {
            void *empty = hf__scope_array(w.scope, 1, entry->request->size);

            CHECK(hf_db_call(w.scope, w.db, (enum hf_op)op, empty, NULL) != HF_OK);
            can++;
        }
    }
    CHECK_INT(13, can);
    CHECK_INT(13, hf_scope_capacity(w.scope).calls);
    world_close(&w);
}
