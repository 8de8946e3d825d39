/*
 * client/client_server_test.c: hf_connect() against a real server, in this process.
 */
#include <holdfast/client.h>
#include <holdfast/table.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/base.h"
#include "rig.h"

struct here {
    struct rig rig;
    struct hf_scope *s;
    struct hf_db *db;
};

static void here_open(struct here *h)
{
    struct hf_env env = rig_plain_env();

    rig_open(&h->rig);
    h->s = hf_scope_new(NULL);
    CHECK_OK(hf_connect(h->s, rig_url(&h->rig, h->s), HF_OPTIONS(hf_client_options, .env = &env),
                        &h->db));
    rig_do(&h->rig, "CreateTable",
           "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':"
           "[{'AttributeName':'pk','AttributeType':'S'}],'KeySchema':"
           "[{'AttributeName':'pk','KeyType':'HASH'}]}");
}

static void here_close(struct here *h)
{
    hf_db_close(h->db);
    hf_scope_free(h->s);
    rig_close(&h->rig);
}

TEST(client, puts_and_gets_an_item)
{
    struct here h;
    struct hf_get_item_result got;

    here_open(&h);
    CHECK_OK(hf_put_item(h.s, h.db,
                         &(struct hf_put_item){.table = HF_STR("tab"),
                                               .item = HF_ITEM(h.s, HF_S("pk", HF_STR("a")),
                                                               HF_N("n", 7))},
                         NULL));
    CHECK_OK(hf_get_item(h.s, h.db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(h.s, HF_S("pk", HF_STR("a"))),
                                               .consistent = true},
                         &got));
    CHECK_STR("{\"n\":{\"N\":\"7\"},\"pk\":{\"S\":\"a\"}}", hf_item_to_json(h.s, got.item));
    CHECK_OK(hf_get_item(h.s, h.db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(h.s, HF_S("pk", HF_STR("b")))},
                         &got));
    CHECK(!got.item.ptr);
    here_close(&h);
}

TEST(client, errors_are_those_of_the_service)
{
    struct here h;
    const struct hf_error *error;

    here_open(&h);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_get_item(h.s, h.db,
                             &(struct hf_get_item){.table = HF_STR("none"),
                                                   .key = HF_ITEM(h.s, HF_S("pk", HF_STR("a")))},
                             NULL));
    error = hf_scope_error(h.s);
    CHECK_STR("Requested resource not found", error->message);
    CHECK_STR("Requested resource not found: table none", hf_str_from(hf_scope_error_text(h.s)));
    CHECK_STR("GetItem", error->operation);
    CHECK_STR("ResourceNotFoundException", error->exception);
    CHECK(!error->may_have_happened && !error->may_retry);

    rig_do(&h.rig, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'v':{'N':'1'}}}");
    CHECK_STATUS(HF_CONDITION,
                 hf_put_item(h.s, h.db,
                             &(struct hf_put_item){.table = HF_STR("tab"),
                                                   .item = HF_ITEM(h.s, HF_S("pk", HF_STR("a"))),
                                                   .condition = HF_STR("attribute_not_exists(pk)"),
                                                   .returns_on_failure = HF_ON_FAILURE_ALL_OLD},
                             NULL));
    error = hf_scope_error(h.s);
    CHECK_STR("{\"pk\":{\"S\":\"a\"},\"v\":{\"N\":\"1\"}}", hf_item_to_json(h.s, error->item));
    CHECK(!error->may_have_happened);
    here_close(&h);
}

static void check_error(struct hf_scope *s, enum hf_status status, const char *exception,
                        enum hf_status got)
{
    const struct hf_error *error = hf_scope_error(s);

    CHECK_STATUS(status, got);
    CHECK_INT(status, error->status);
    CHECK_STR(exception, error->exception);
}

/* Exceptions that are one status: the error says which, of the engine and through the network. */
static void check_exceptions(struct hf_scope *s, struct hf_db *db)
{
    struct hf_point_in_time_spec spec = {.enabled = HF_YES};
    struct hf_describe_table_result told;
    struct hf_create_backup_result made;
    struct hf_str arn;

    check_error(s, HF_NOT_FOUND, "TableNotFoundException",
                hf_create_backup(s, db,
                                 &(struct hf_create_backup){.table = HF_STR("none"),
                                                            .name = HF_STR("backup")},
                                 NULL));
    check_error(s, HF_UNSUPPORTED, "ContinuousBackupsUnavailableException",
                hf_update_continuous_backups(
                    s, db,
                    &(struct hf_update_continuous_backups){.table = HF_STR("tab"), .spec = &spec},
                    NULL));
    check_error(s, HF_UNSUPPORTED, "PointInTimeRecoveryUnavailableException",
                hf_restore_table_to_point_in_time(
                    s, db,
                    &(struct hf_restore_table_to_point_in_time){.source = HF_STR("tab"),
                                                                .table = HF_STR("copy")},
                    NULL));
    check_error(s, HF_NOT_FOUND, "GlobalTableNotFoundException",
                hf_describe_global_table(s, db,
                                         &(struct hf_describe_global_table){.name = HF_STR("none")},
                                         NULL));
    CHECK_OK(hf_describe_table(s, db, &(struct hf_describe_table){.table = HF_STR("tab")}, &told));
    arn = told.table->arn;
    check_error(s, HF_NOT_FOUND, "PolicyNotFoundException",
                hf_get_resource_policy(s, db, &(struct hf_get_resource_policy){.arn = arn}, NULL));
    check_error(s, HF_NOT_FOUND, "ExportNotFoundException",
                hf_describe_export(s, db,
                                   &(struct hf_describe_export){
                                       .arn =
                                           hf_scope_format(s, "%.*s/export/01234567890123-a1b2c3d4",
                                                           HF_FMT(arn))},
                                   NULL));
    check_error(s, HF_NOT_FOUND, "ImportNotFoundException",
                hf_describe_import(s, db,
                                   &(struct hf_describe_import){
                                       .arn =
                                           hf_scope_format(s, "%.*s/import/01234567890123-a1b2c3d4",
                                                           HF_FMT(arn))},
                                   NULL));
    CHECK_OK(hf_create_backup(s, db,
                              &(struct hf_create_backup){.table = HF_STR("tab"),
                                                         .name = HF_STR("backup")},
                              &made));
    check_error(s, HF_IN_USE, "TableAlreadyExistsException",
                hf_restore_table_from_backup(
                    s, db,
                    &(struct hf_restore_table_from_backup){.backup_arn = made.details->arn,
                                                           .table = HF_STR("tab")},
                    NULL));
    check_error(s, HF_NOT_FOUND, "BackupNotFoundException",
                hf_describe_backup(s, db,
                                   &(struct hf_describe_backup){
                                       .arn =
                                           hf_scope_format(s, "%.*s/backup/01234567890123-a1b2c3d4",
                                                           HF_FMT(arn))},
                                   NULL));
}

TEST(client, exceptions_have_their_names_everywhere)
{
    struct here h;

    here_open(&h);
    check_exceptions(h.s, h.rig.truth.db);
    check_exceptions(h.s, h.db);

    /* What is not DynamoDB's has none. */
    hf_scope_cancel(h.s);
    CHECK_STATUS(HF_CANCELED,
                 hf_list_tables(h.s, h.db, &(struct hf_list_tables){.limit = 1}, NULL));
    CHECK(!hf_scope_error(h.s)->exception.ptr);
    here_close(&h);
}

/* TagResource and UntagResource are answered with no body at all. */
TEST(client, an_operation_without_results_has_an_empty_answer)
{
    struct here h;
    struct hf_describe_table_result told;
    struct hf_list_tags_of_resource_result tags;

    here_open(&h);
    CHECK_OK(
        hf_describe_table(h.s, h.db, &(struct hf_describe_table){.table = HF_STR("tab")}, &told));
    CHECK_OK(hf_tag_resource(h.s, h.db,
                             &(struct hf_tag_resource){.arn = told.table->arn,
                                                       .tags = &(struct hf_tag){HF_STR("k"),
                                                                                HF_STR("v")},
                                                       .tags_len = 1},
                             NULL));
    CHECK_OK(hf_list_tags_of_resource(h.s, h.db,
                                      &(struct hf_list_tags_of_resource){.arn = told.table->arn},
                                      &tags));
    CHECK_INT(1, tags.tags_len);
    here_close(&h);
}

TEST(client, a_prefix_stands_before_the_names_of_tables)
{
    struct here h;
    struct hf_env env = rig_plain_env();
    struct hf_db *db;
    struct hf_list_tables_result tables;
    struct hf_str url;

    here_open(&h);
    url = rig_url(&h.rig, h.s);
    url = hf_scope_format(h.s, "%.*s?prefix=t", HF_FMT(url));
    CHECK_OK(hf_connect(h.s, url, HF_OPTIONS(hf_client_options, .env = &env), &db));
    CHECK_OK(hf_list_tables(h.s, db, &(struct hf_list_tables){.limit = 1}, &tables));
    CHECK_INT(1, tables.tables_len);
    CHECK_STR("ab", tables.tables[0]);
    hf_db_close(db);
    CHECK_STATUS(HF_INVALID, hf_connect(h.s, rig_url(&h.rig, h.s),
                                        HF_OPTIONS(hf_client_options, .env = &env,
                                                   .table_prefix = HF_STR("a b")),
                                        &db));
    CHECK(!db);
    here_close(&h);
}

TEST(client, a_poisoned_request_is_refused_before_it_is_sent)
{
    struct here h;

    here_open(&h);
    CHECK_STATUS(HF_INVALID,
                 hf_put_item(h.s, h.db,
                             &(struct hf_put_item){.table = HF_STR("tab"),
                                                   .item = HF_ITEM(h.s, HF_S("pk", HF_STR("a")),
                                                                   HF_NUM("n", HF_STR("x")))},
                             NULL));
    CHECK(strstr(hf_scope_error_text(h.s), "number") != NULL);
    CHECK(!hf_scope_error(h.s)->may_have_happened);
    here_close(&h);
}

TEST(client, features_of_our_own_server_are_all_there)
{
    struct here h;

    here_open(&h);
    for (int feature = HF_FEATURE_TRANSACTIONS; feature <= HF_FEATURE_BACKUPS; feature++) {
        bool there = false;

        CHECK_OK(hf_db_supports(h.s, h.db, (enum hf_feature)feature, &there));
        CHECK(there);
    }
    here_close(&h);
}

struct crowd {
    struct hf_db *db;
    atomic_int done;
    int number;
};

static void *crowd_thread(void *user)
{
    struct crowd *crowd = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < 50; i++) {
        const struct hf_update_item add = {
            .table = HF_STR("tab"),
            .key = HF_ITEM(s, HF_S("pk", HF_STR("counter"))),
            .update = HF_STR("ADD n :one"),
            .values = HF_ITEM(s, HF_N(":one", 1)),
        };

        if (hf_update_item(s, crowd->db, &add, NULL) == HF_OK)
            atomic_fetch_add(&crowd->done, 1);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(client, many_threads_share_a_client)
{
    struct here h;
    struct crowd crowd;
    pthread_t threads[8];

    here_open(&h);
    crowd.db = h.db;
    atomic_init(&crowd.done, 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, crowd_thread, &crowd) == 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(400, atomic_load(&crowd.done));
    CHECK_INT(1, (int64_t)occurrences(rig_true(&h.rig, "GetItem",
                                               "{'TableName':'tab','Key':{'pk':{'S':'counter'}}}"),
                                      "'400'"));
    here_close(&h);
}

/* The embedded engine's own door opens services as well. */
TEST(client, hf_open_knows_services)
{
    struct here h;
    struct hf_db *db;
    struct hf_list_tables_result tables;

    here_open(&h);
    CHECK_OK(hf_open(h.s, rig_url(&h.rig, h.s), NULL, &db));
    CHECK_OK(hf_list_tables(h.s, db, &(struct hf_list_tables){.limit = 10}, &tables));
    CHECK_INT(1, (int64_t)tables.tables_len);
    hf_db_close(db);
    here_close(&h);
}

TEST(client, a_prefix_of_the_url_goes_before_every_table)
{
    struct here h;
    struct hf_db *db;
    struct hf_list_tables_result tables;

    here_open(&h);
    CHECK_OK(hf_open(h.s, hf_scope_format(h.s, "%.*s?prefix=t", HF_FMT(rig_url(&h.rig, h.s))), NULL,
                     &db));
    CHECK_OK(hf_list_tables(h.s, db, &(struct hf_list_tables){.limit = 10}, &tables));
    CHECK_INT(1, (int64_t)tables.tables_len);
    CHECK_STR("ab", tables.tables[0]);
    hf_db_close(db);
    here_close(&h);
}

TEST(client, a_packed_answer_is_unpacked)
{
    struct hf_env env = rig_plain_env();
    struct hf_get_item_result got;
    struct hf_db *packed;
    struct here h;
    char text[4096];

    memset(text, 'x', sizeof(text));
    here_open(&h);
    CHECK_OK(hf_connect(h.s, rig_url(&h.rig, h.s),
                        HF_OPTIONS(hf_client_options, .env = &env, .gzip = HF_YES), &packed));
    CHECK_OK(
        hf_put_item(h.s, packed,
                    &(struct hf_put_item){.table = HF_STR("tab"),
                                          .item =
                                              HF_ITEM(h.s, HF_S("pk", HF_STR("a")),
                                                      HF_S("text", hf_str_of(text, sizeof(text))))},
                    NULL));
    CHECK_OK(hf_get_item(h.s, packed,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(h.s, HF_S("pk", HF_STR("a")))},
                         &got));
    CHECK_INT(sizeof(text), hf_value_str(hf_item_get(got.item, HF_STR("text"))).len);
    hf_db_close(packed);
    here_close(&h);
}
