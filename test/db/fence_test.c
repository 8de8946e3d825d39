/*
 * db/fence_test.c: fences around tables, as the wrapper and as the engine honour them; (n) is an
 * invariant of db/fence.c, (En) one of engine/write/fence.c.
 */
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/fence.h>
#include <holdfast/prefix.h>
#include <holdfast/table.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "test.h"

static void table_make(struct hf_scope *s, struct hf_db *db, const char *name)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_create_table spec = {.table = hf_str_from(name),
                                         .attributes = &attribute,
                                         .attributes_len = 1,
                                         .key_schema = &key,
                                         .key_schema_len = 1};

    CHECK_OK(hf_table_ensure(s, db, &spec, NULL));
}

/* A database that knows nothing of fences, as the name of their table is another one to it. */
static struct hf_db *unfenced_open(struct hf_scope *s)
{
    struct hf_db *engine, *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &engine));
    CHECK_OK(hf_prefix_open(s, engine, HF_STR("old-"), &db));
    table_make(s, db, "orders");
    table_make(s, db, "others");
    return db;
}

static struct hf_db *wrapper_open(struct hf_scope *s)
{
    struct hf_db *db;

    CHECK_OK(hf_fenced_open(s, unfenced_open(s), NULL, &db));
    return db;
}

static struct hf_db *engine_open(struct hf_scope *s)
{
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    table_make(s, db, "orders");
    table_make(s, db, "others");
    return db;
}

static enum hf_status item_put(struct hf_scope *s, struct hf_db *db, const char *table)
{
    return hf_put_item(s, db,
                       &(struct hf_put_item){.table = hf_str_from(table),
                                             .item = HF_ITEM(s, HF_S("id", HF_STR("a")))},
                       NULL);
}

/* Every operation that writes items, whatever way it names the table. */
/* `each_statement`: of a batch of statements each has an error of its own. */
static void refuse_all_writes(struct hf_scope *s, struct hf_db *db, bool each_statement)
{
    const struct hf_item item = HF_ITEM(s, HF_S("id", HF_STR("b")));
    const struct hf_put_request put = {item};
    const struct hf_write_request write = {.put = &put};
    const struct hf_table_writes writes[] = {{HF_STR("others"), &write, 1},
                                             {HF_STR("orders"), &write, 1}};
    const struct hf_put_item tx_put = {.table = HF_STR("orders"), .item = item};
    const struct hf_put_item tx_other = {.table = HF_STR("others"), .item = item};
    const struct hf_transact_write actions[] = {{.put = &tx_other}, {.put = &tx_put}};
    const struct hf_batch_statement statement = {
        .statement = HF_STR("INSERT INTO \"orders\" VALUE {'id': 'c'}")};
    const struct hf_transact_statement tx_statement = {
        .statement = HF_STR("DELETE FROM orders WHERE id = 'a'")};
    struct hf_batch_execute_statement_result each;
    struct hf_describe_table_result is;
    enum hf_status statuses;
    struct hf_get_item_result got;
    struct hf_str to;

    CHECK_OK(item_put(s, db, "orders"));
    CHECK_OK(hf_describe_table(s, db, &(struct hf_describe_table){.table = HF_STR("orders")}, &is));
    CHECK_OK(hf_fence_set(s, db, HF_STR("orders"), HF_STR("https://new")));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    CHECK(strstr(hf_scope_error_text(s), "orders") &&
          strstr(hf_scope_error_text(s), "https://new"));
    CHECK(!hf_scope_error(s)->may_retry && !hf_scope_error(s)->may_have_happened);
    CHECK_STATUS(HF_DENIED,
                 hf_put_item(s, db, &(struct hf_put_item){.table = is.table->arn, .item = item},
                             NULL));
    CHECK_STATUS(HF_DENIED,
                 hf_update_item(s, db,
                                &(struct hf_update_item){.table = HF_STR("orders"), .key = item},
                                NULL));
    CHECK_STATUS(HF_DENIED,
                 hf_delete_item(s, db,
                                &(struct hf_delete_item){.table = HF_STR("orders"), .key = item},
                                NULL));
    CHECK_STATUS(HF_DENIED, hf_batch_write_item(s, db,
                                                &(struct hf_batch_write_item){.tables = writes,
                                                                              .tables_len = 2},
                                                NULL));
    CHECK_STATUS(HF_DENIED,
                 hf_transact_write_items(s, db,
                                         &(struct hf_transact_write_items){.actions = actions,
                                                                           .actions_len = 2},
                                         NULL));
    CHECK_STATUS(HF_DENIED,
                 hf_execute_statement(s, db,
                                      &(struct hf_execute_statement){
                                          .statement =
                                              HF_STR("UPDATE \"orders\" SET x = 1 WHERE id = 'a'")},
                                      NULL));
    statuses =
        hf_batch_execute_statement(s, db,
                                   &(struct hf_batch_execute_statement){.statements = &statement,
                                                                        .statements_len = 1},
                                   &each);
    if (each_statement) {
        CHECK_OK(statuses);
        CHECK(each.responses[0].error != NULL);
        CHECK_STR("AccessDenied", each.responses[0].error->code);
    } else {
        CHECK_STATUS(HF_DENIED, statuses);
    }
    CHECK_STATUS(HF_DENIED,
                 hf_execute_transaction(s, db,
                                        &(struct hf_execute_transaction){.statements =
                                                                             &tx_statement,
                                                                         .statements_len = 1},
                                        NULL));
    CHECK_OK(hf_execute_statement(s, db,
                                  &(struct hf_execute_statement){
                                      .statement = HF_STR(" select * FROM orders WHERE id = 'a'")},
                                  NULL));
    CHECK_OK(
        hf_get_item(s, db, &(struct hf_get_item){.table = HF_STR("others"), .key = item}, &got));
    CHECK(!got.item.ptr); /* nothing of the batch or the transaction was done */
    CHECK_OK(item_put(s, db, "others"));
    CHECK_OK(hf_fence_get(s, db, HF_STR("orders"), &to));
    CHECK_STR("https://new", to);
    CHECK_OK(
        hf_execute_statement(/* (2), by whatever operation */
                             s, db,
                             &(struct hf_execute_statement){
                                 .statement = HF_STR(
                                     "INSERT INTO \"holdfast.fence\" VALUE {'table': 'others'}")},
                             NULL));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "others"));
    CHECK_OK(hf_fence_clear(s, db, HF_STR("others")));
    CHECK_OK(item_put(s, db, "others"));
    CHECK_OK(hf_fence_clear(s, db, HF_STR("orders")));
    CHECK_OK(hf_fence_clear(s, db, HF_STR("orders")));
    CHECK_OK(hf_fence_get(s, db, HF_STR("orders"), &to));
    CHECK(!to.ptr);
    CHECK_OK(item_put(s, db, "orders"));
}

TEST(fence, the_wrapper_refuses_all_writes_and_no_read)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = wrapper_open(s);

    refuse_all_writes(s, db, false);
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(fence, the_engine_refuses_all_writes_and_no_read)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = engine_open(s);

    refuse_all_writes(s, db, true);
    hf_db_close(db);
    hf_scope_free(s);
}

/* (3) What others set is noticed within check_ms; what is there at the beginning at once. */
TEST(fence, of_other_processes)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *inner = unfenced_open(s), *db;

    CHECK_OK(hf_fenced_open(s, inner, HF_OPTIONS(hf_fence_options, .check_ms = 50), &db));
    CHECK_OK(hf_fence_set(s, inner, HF_STR("orders"), (struct hf_str){0}));
    CHECK_OK(hf_scope_sleep_ms(s, 60));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    CHECK_OK(hf_fence_clear(s, inner, HF_STR("orders")));
    CHECK_OK(hf_scope_sleep_ms(s, 60));
    CHECK_OK(item_put(s, db, "orders"));
    hf_db_close(db);
    CHECK_STATUS(HF_INVALID, hf_fenced_open(s, NULL, NULL, &db));
    hf_scope_free(s);
}

/* (4) */
TEST(fence, that_cannot_be_read_refuses_writes)
{
    const struct hf_fault faults[] = {{.kind = HF_FAULT_ERROR, .operation = HF_STR("Scan")}};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *engine, *faulty, *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &engine));
    table_make(s, engine, "orders");
    CHECK_OK(hf_faulty_open(s, engine, &faulty));
    CHECK_OK(hf_fenced_open(s, faulty, HF_OPTIONS(hf_fence_options, .check_ms = 1), &db));
    CHECK_OK(hf_faulty_set(s, faulty, faults, 1));
    CHECK_OK(hf_scope_sleep_ms(s, 5));
    CHECK(item_put(s, db, "orders") != HF_OK);
    CHECK_OK(hf_faulty_set(s, faulty, NULL, 0));
    CHECK_OK(item_put(s, db, "orders"));
    hf_db_close(db);
    hf_scope_free(s);
}

struct adder {
    struct hf_db *db;
    atomic_bool *set; /* the fence is, and hf_fence_set() has returned */
    int done;
    bool late; /* a write that began behind the fence was done */
};

static void *adder_run(void *user)
{
    struct adder *adder = user;
    struct hf_scope *s = hf_scope_new(NULL);
    const struct hf_item values = HF_ITEM(s, HF_N(":one", 1));
    const struct hf_update_item add = {.table = HF_STR("orders"),
                                       .key = HF_ITEM(s, HF_S("id", HF_STR("sum"))),
                                       .update = HF_STR("ADD hits :one"),
                                       .values = values};
    enum hf_status status;

    do {
        bool behind = atomic_load(adder->set);

        status = hf_update_item(s, adder->db, &add, NULL);
        adder->done += status == HF_OK;
        adder->late = adder->late || (behind && status == HF_OK);
    } while (status == HF_OK);
    hf_scope_free(s);
    return NULL;
}

/* (1) (2): what is there when the fence is set is all that there will be. */
static void fence_beside_writers(struct hf_scope *s, struct hf_db *db)
{
    enum { ADDERS = 4 };
    struct hf_get_item get = {.table = HF_STR("orders"),
                              .key = HF_ITEM(s, HF_S("id", HF_STR("sum")))};
    struct hf_get_item_result got;
    struct adder adders[ADDERS];
    pthread_t threads[ADDERS];
    atomic_bool set = false;
    int64_t sum = 0, done = 0;

    for (int i = 0; i < ADDERS; i++) {
        adders[i] = (struct adder){.db = db, .set = &set};
        CHECK_INT(0, pthread_create(&threads[i], NULL, adder_run, &adders[i]));
    }
    CHECK_OK(hf_scope_sleep_ms(s, 30));
    CHECK_OK(hf_fence_set(s, db, HF_STR("orders"), HF_STR("x")));
    atomic_store(&set, true);
    CHECK_OK(hf_get_item(s, db, &get, &got));
    (void)hf_value_i64(hf_item_get(got.item, HF_STR("hits")), &sum);
    for (int i = 0; i < ADDERS; i++) {
        pthread_join(threads[i], NULL);
        done += adders[i].done;
        CHECK(!adders[i].late);
    }
    CHECK_INT(done, sum);
}

TEST(fence, no_write_of_the_wrapper_is_under_way_behind_it)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = wrapper_open(s);

    fence_beside_writers(s, db);
    hf_db_close(db);
    hf_scope_free(s);
}

/* (E1) (E2) (E3) */
TEST(fence, no_write_of_the_engine_is_under_way_behind_it)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = engine_open(s);

    fence_beside_writers(s, db);
    hf_db_close(db);
    hf_scope_free(s);
}

static void table_delete(struct hf_scope *s, struct hf_db *db, struct hf_str table)
{
    CHECK_OK(hf_delete_table(s, db, &(struct hf_delete_table){.table = table}, NULL));
}

/* (E4) */
TEST(fence, outlives_an_open_a_restore_and_its_table)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str url = hf_scope_format(s, "embedded:%s/db", test_quick_directory(t));
    struct hf_engine_options *o = HF_OPTIONS(hf_engine_options, .sync = HF_SYNC_NONE);
    struct hf_engine_snapshot *with, *without;
    struct hf_db *db;

    CHECK_OK(hf_open(s, url, o, &db));
    table_make(s, db, "orders");
    CHECK_OK(item_put(s, db, "orders")); /* the table knows that there is no fence */
    CHECK_OK(hf_engine_snapshot_take(s, db, &without));
    CHECK_OK(hf_fence_set(s, db, HF_STR("orders"), HF_STR("x")));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    CHECK_OK(hf_engine_snapshot_take(s, db, &with));

    CHECK_OK(hf_engine_snapshot_restore(s, db, without));
    CHECK_OK(item_put(s, db, "orders"));
    CHECK_OK(hf_engine_snapshot_restore(s, db, with));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    hf_engine_snapshot_free(with);
    hf_engine_snapshot_free(without);
    table_delete(s, db, HF_STR("orders"));
    table_make(s, db, "orders");
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    hf_db_close(db);

    CHECK_OK(hf_open(s, url, o, &db));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    table_delete(s, db, HF_FENCE_TABLE);
    CHECK_OK(item_put(s, db, "orders"));
    CHECK_OK(hf_fence_set(s, db, HF_STR("orders"), HF_STR("y")));
    CHECK_STATUS(HF_DENIED, item_put(s, db, "orders"));
    hf_db_close(db);
    hf_scope_free(s);
}

/* A table of that name with another key is somebody else's: it fences nothing. */
TEST(fence, of_a_foreign_table)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = engine_open(s);

    table_make(s, db, "holdfast.fence");
    CHECK_OK(hf_put_item(s, db,
                         &(struct hf_put_item){.table = HF_FENCE_TABLE,
                                               .item = HF_ITEM(s, HF_S("id", HF_STR("orders")))},
                         NULL));
    CHECK_OK(item_put(s, db, "orders"));
    hf_db_close(db);
    hf_scope_free(s);
}
