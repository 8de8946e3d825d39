/*
 * db/db_test.c: what hf_db_call() and the calls beside it do with mistakes of the caller, and that
 * deadlines, cancellation and the last error mean the same for all of them.
 */
#include "world.h"

#include <string.h>

static bool error_has(struct world *w, const char *piece)
{
    return strstr(hf_scope_error_text(w->scope), piece) != NULL;
}

TEST(db, a_missing_database_or_request_is_an_error)
{
    struct world w = world_open(t, "memory:");
    const struct hf_list_tables list = {.limit = 0};
    struct hf_list_tables_result result = {.tables_len = 7};

    CHECK_STATUS(HF_INVALID, hf_list_tables(w.scope, NULL, &list, &result));
    CHECK(error_has(&w, "ListTables was called without a database"));
    CHECK_INT(0, result.tables_len);
    CHECK_STATUS(HF_INVALID, hf_list_tables(w.scope, w.db, NULL, NULL));
    CHECK(error_has(&w, "ListTables was called without a request"));
    CHECK(hf_str_equal(HF_STR("ListTables"), hf_scope_error(w.scope)->operation));
    CHECK_STATUS(HF_INVALID, hf_scan(w.scope, w.db, NULL, NULL));
    CHECK_OK(hf_list_tables(w.scope, w.db, &list, NULL));
    CHECK_STATUS(HF_OK, hf_scope_error(w.scope)->status);
    world_close(&w);
}

TEST(db, a_number_that_is_no_operation_is_an_error)
{
    struct world w = world_open(t, "memory:");

    CHECK_STATUS(HF_UNKNOWN_OPERATION, hf_db_call(w.scope, w.db, HF_OP_COUNT, "", NULL));
    CHECK_STATUS(HF_UNKNOWN_OPERATION, hf_db_call(w.scope, w.db, (enum hf_op) - 1, "", NULL));
    CHECK(error_has(&w, "-1"));
    CHECK(!hf_op_name(HF_OP_COUNT).ptr);
    world_close(&w);
}

/* Room that is not zero comes from a program of newer headers: its request is refused, and nothing
 * is written beside the result. docs/abi.md */
TEST(db, a_request_of_a_newer_program_is_refused)
{
    struct world w = world_open(t, "memory:");
    struct hf_list_tables list = {.limit = 0};
    struct {
        struct hf_list_tables_result result;
        unsigned char behind[64];
    } out;
    const size_t words = sizeof(list.reserved) / sizeof(list.reserved[0]);

    memset(&out, 0x5a, sizeof(out));
    for (size_t i = 0; i < words; i++) {
        list.reserved[i] = 1;
        CHECK_STATUS(HF_INVALID, hf_list_tables(w.scope, w.db, &list, &out.result));
        CHECK(error_has(&w, "ListTables uses a member that libholdfast"));
        list.reserved[i] = 0;
    }
    CHECK_OK(hf_list_tables(w.scope, w.db, &list, &out.result));
    for (size_t i = 0; i < words; i++)
        CHECK_INT(0, out.result.reserved[i]);
    for (size_t i = 0; i < sizeof(out.behind); i++)
        CHECK_INT(0x5a, out.behind[i]);
    world_close(&w);
}

/* An error outside of an operation does not carry the name of the last one. */
TEST(db, the_operation_of_an_error_is_its_own)
{
    struct world w = world_open(t, "memory:");
    struct hf_item item;

    CHECK_STATUS(HF_INVALID, hf_get_item(w.scope, w.db, &(struct hf_get_item){0}, NULL));
    CHECK(hf_str_equal(HF_STR("GetItem"), hf_scope_error(w.scope)->operation));
    CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(w.scope, HF_STR("{\"a\":"), &item));
    CHECK(!hf_scope_error(w.scope)->operation.ptr);
    CHECK(error_has(&w, "not well-formed JSON"));
    CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(w.scope, HF_STR(""), &item));
    CHECK(error_has(&w, "not well-formed JSON"));
    CHECK_OK(hf_engine_upkeep(w.scope, w.db, NULL));
    CHECK_STATUS(HF_OK, hf_scope_error(w.scope)->status);
    world_close(&w);
}

/* An error has the table that the caller named; its text for people says it where DynamoDB's words
 * do not, and its message is DynamoDB's. */
TEST(db, an_error_names_its_table)
{
    struct world w = world_open(t, "memory:");
    struct hf_item key = HF_ITEM(w.scope, HF_S("pk", HF_STR("a")));
    char name[] = "nowhere";
    struct hf_get_item get = {.table = hf_str_from(name), .key = key};
    struct hf_update_item update = {.table = HF_STR("gone"),
                                    .key = key,
                                    .update = HF_STR("SET a = :a"),
                                    .values = HF_ITEM(w.scope, HF_N(":a", 1))};
    const struct hf_transact_write actions[] = {{.update = &update}};
    struct hf_transact_write_items all = {.actions = actions, .actions_len = 1};
    struct hf_list_tables list = {.limit = 1000};
    struct hf_execute_statement statement = {
        .statement = HF_STR("SELECT * FROM \"no.where\".\"by\" WHERE pk = 'a'")};
    const struct hf_transact_statement statements[] = {
        {.statement = HF_STR("DELETE FROM gone WHERE pk = 'a'")}};
    struct hf_execute_transaction together = {.statements = statements, .statements_len = 1};
    struct hf_get_item_result got;

    CHECK_STATUS(HF_NOT_FOUND, hf_get_item(w.scope, w.db, &get, &got));
    memset(name, 'x', sizeof(name) - 1); /* requests are borrowed */
    CHECK_STR("nowhere", hf_scope_error(w.scope)->table);
    CHECK_STR("GetItem", hf_scope_error(w.scope)->operation);
    CHECK_STR("Requested resource not found", hf_scope_error(w.scope)->message);
    CHECK_STR("Requested resource not found: table nowhere",
              hf_str_from(hf_scope_error_text(w.scope)));
    CHECK_STATUS(HF_NOT_FOUND, hf_transact_write_items(w.scope, w.db, &all, NULL));
    CHECK_STR("gone", hf_scope_error(w.scope)->table);
    CHECK_STATUS(HF_NOT_FOUND, hf_execute_statement(w.scope, w.db, &statement, NULL));
    CHECK_STR("no.where", hf_scope_error(w.scope)->table);
    CHECK_STR("Requested resource not found: table no.where",
              hf_str_from(hf_scope_error_text(w.scope)));
    CHECK_STATUS(HF_TX_CANCELED, hf_execute_transaction(w.scope, w.db, &together, NULL));
    CHECK_STR("gone", hf_scope_error(w.scope)->table);
    statement.statement = HF_STR("SELECT * FROM \"no");
    CHECK_STATUS(HF_INVALID, hf_execute_statement(w.scope, w.db, &statement, NULL));
    CHECK(!hf_scope_error(w.scope)->table.ptr);
    CHECK_STATUS(HF_INVALID, hf_list_tables(w.scope, w.db, &list, NULL));
    CHECK(!hf_scope_error(w.scope)->table.ptr);
    CHECK_STR(hf_scope_error_text(w.scope), hf_scope_error(w.scope)->message);
    (void)hf_scope_fail(w.scope, HF_INVALID, "something else");
    CHECK_STR("something else", hf_str_from(hf_scope_error_text(w.scope)));
    world_close(&w);
}

TEST(db, every_call_heeds_the_deadline_and_cancellation)
{
    struct world w = world_open(t, "memory:");
    struct hf_check_report report;
    struct hf_db *other;

    hf_scope_cancel(w.scope);
    CHECK_STATUS(HF_CANCELED, hf_engine_check(w.scope, w.db, &report));
    CHECK_STATUS(HF_CANCELED, hf_engine_upkeep(w.scope, w.db, NULL));
    CHECK_STATUS(HF_CANCELED, hf_open(w.scope, HF_STR("memory:"), NULL, &other));
    CHECK(!other);
    hf_scope_reset(w.scope);
    hf_scope_timeout_ms(w.scope, 10);
    test_advance_ms(t, 10);
    CHECK_STATUS(HF_TIMEOUT, hf_engine_check(w.scope, w.db, &report));
    CHECK_STATUS(HF_TIMEOUT, hf_engine_upkeep(w.scope, w.db, NULL));
    CHECK_STATUS(HF_TIMEOUT, hf_open(w.scope, HF_STR("memory:"), NULL, &other));
    hf_scope_reset(w.scope);
    world_close(&w);
}

TEST(db, options_that_are_no_members_of_their_enums_are_refused)
{
    struct world w = world_open(t, "memory:");
    const struct hf_engine_options sync = {.size = sizeof(sync), .sync = (enum hf_sync)9};
    const struct hf_engine_options wording = {.size = sizeof(wording),
                                              .wording = (enum hf_wording)9};
    struct hf_db *other;

    CHECK_STATUS(HF_INVALID, hf_open(w.scope, HF_STR("memory:"), &sync, &other));
    CHECK(error_has(&w, "sync is 9"));
    CHECK_STATUS(HF_INVALID, hf_open(w.scope, HF_STR("memory:"), &wording, &other));
    CHECK(error_has(&w, "wording is 9"));
    CHECK(!other);
    hf_db_close(other);
    world_close(&w);
}
