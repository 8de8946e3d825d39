/*
 * db/table_test.c: tables that are waited for, made and compared; (n) is an invariant of table.c.
 */
#include "world.h"

#include <holdfast/faults.h>
#include <holdfast/table.h>

#include <string.h>

#include "between.h"

/* ---- a table with everything ---------------------------------------------------------------- */

static const struct hf_projection all = {.type = HF_PROJECT_ALL};
static const struct hf_projection keys_only = {.type = HF_PROJECT_KEYS_ONLY};

struct plan {
    struct hf_attribute_definition attributes[4];
    struct hf_key_element key[2];
    struct hf_key_element owner_key[1];
    struct hf_key_element day_key[2];
    struct hf_key_element local_key[2];
    struct hf_index global[2];
    struct hf_index local[1];
    struct hf_stream_spec stream;
    struct hf_create_table spec;
};

static void plan_make(struct plan *p)
{
    *p = (struct plan){
        .attributes = {{HF_STR("id"), HF_SCALAR_S},
                       {HF_STR("at"), HF_SCALAR_N},
                       {HF_STR("owner"), HF_SCALAR_S},
                       {HF_STR("day"), HF_SCALAR_B}},
        .key = {{HF_STR("id"), HF_KEY_HASH}, {HF_STR("at"), HF_KEY_RANGE}},
        .owner_key = {{HF_STR("owner"), HF_KEY_HASH}},
        .day_key = {{HF_STR("day"), HF_KEY_HASH}, {HF_STR("at"), HF_KEY_RANGE}},
        .local_key = {{HF_STR("id"), HF_KEY_HASH}, {HF_STR("owner"), HF_KEY_RANGE}},
        .stream = {.enabled = HF_YES, .view = HF_VIEW_NEW_IMAGE},
    };
    p->global[0] = (struct hf_index){.name = HF_STR("by-owner"),
                                     .key_schema = p->owner_key,
                                     .key_schema_len = 1,
                                     .projection = &keys_only};
    p->global[1] = (struct hf_index){.name = HF_STR("by-day"),
                                     .key_schema = p->day_key,
                                     .key_schema_len = 2,
                                     .projection = &all};
    p->local[0] = (struct hf_index){.name = HF_STR("local"),
                                    .key_schema = p->local_key,
                                    .key_schema_len = 2,
                                    .projection = &all};
    p->spec = (struct hf_create_table){.table = HF_STR("things"),
                                       .attributes = p->attributes,
                                       .attributes_len = 4,
                                       .key_schema = p->key,
                                       .key_schema_len = 2,
                                       .global_indexes = p->global,
                                       .global_indexes_len = 2,
                                       .local_indexes = p->local,
                                       .local_indexes_len = 1,
                                       .stream = &p->stream};
}

/* The same without anything that is not the key. */
static void plan_bare(struct plan *p)
{
    plan_make(p);
    p->spec.attributes_len = 2;
    p->spec.global_indexes = p->spec.local_indexes = NULL; /* an empty list is not "none" */
    p->spec.global_indexes_len = p->spec.local_indexes_len = 0;
    p->spec.stream = NULL;
}

#define TTL HF_OPTIONS(hf_table_options, .ttl_attribute = HF_STR("expires"))

static const struct hf_table_description *described(struct world *w, struct hf_str table)
{
    const struct hf_describe_table request = {.table = table};
    struct hf_describe_table_result result;

    CHECK_OK(hf_describe_table(w->scope, w->db, &request, &result));
    return result.table;
}

/* ---- ensuring ------------------------------------------------------------------------------- */

TEST(table, ensure_makes_it_once_and_then_agrees)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    const struct hf_table_description *table;
    struct plan p;

    plan_make(&p);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, TTL));
    CHECK_INT(1, b.calls[HF_OP_CREATE_TABLE]);
    CHECK_INT(1, b.calls[HF_OP_UPDATE_TIME_TO_LIVE]);
    table = described(&w, HF_STR("things"));
    CHECK_INT(HF_BILLING_PAY_PER_REQUEST, table->billing->billing);
    CHECK_INT(2, table->global_indexes_len);
    CHECK_INT(HF_VIEW_NEW_IMAGE, table->stream->view);
    CHECK_JSON(&w,
               "{'TimeToLiveDescription':{'TimeToLiveStatus':'ENABLED','AttributeName':'expires'}}",
               "DescribeTimeToLive", "{'TableName':'things'}");

    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, TTL));
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_OK(
        hf_table_ensure(w.scope, &b.db, &p.spec, HF_OPTIONS(hf_table_options, .no_create = true)));
    CHECK_INT(1, b.calls[HF_OP_CREATE_TABLE]);
    CHECK_INT(1, b.calls[HF_OP_UPDATE_TIME_TO_LIVE]);
    CHECK_INT(0, b.calls[HF_OP_UPDATE_TABLE]);
    CHECK_INT(0, b.calls[HF_OP_TAG_RESOURCE]);
    CHECK_INT(1000000, t->elapsed_us); /* nobody slept */
    world_close(&w);
}

TEST(table, ensure_keeps_the_throughput_that_it_is_given)
{
    struct world w = world_open(t, "memory:");
    const struct hf_throughput units = {.read_units = 3, .write_units = 4};
    struct plan p;

    plan_bare(&p);
    p.spec.throughput = &units;
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    CHECK_INT(4, described(&w, HF_STR("things"))->throughput->write_units);
    CHECK(!described(&w, HF_STR("things"))->billing);
    world_close(&w);
}

TEST(table, every_difference_is_named)
{
    struct world w = world_open(t, "memory:");
    struct plan p;

    world_ok(&w, "CreateTable",
             "{'TableName':'things','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':"
             "'S'},{'AttributeName':'at','AttributeType':'S'},{'AttributeName':'day',"
             "'AttributeType':'B'},{'AttributeName':'owner','AttributeType':'S'}],'KeySchema':[{"
             "'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'at','KeyType':'RANGE'}],"
             "'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'by-day',"
             "'KeySchema':[{'AttributeName':'day','KeyType':'HASH'}],'Projection':{"
             "'ProjectionType':'INCLUDE','NonKeyAttributes':['b','a']}},{'IndexName':'local',"
             "'KeySchema':[{'AttributeName':'owner','KeyType':'HASH'}],'Projection':{"
             "'ProjectionType':'ALL'}}],'StreamSpecification':{'StreamEnabled':true,"
             "'StreamViewType':'KEYS_ONLY'}}");
    world_ok(&w, "UpdateTimeToLive",
             "{'TableName':'things','TimeToLiveSpecification':{'Enabled':true,'AttributeName':"
             "'gone'}}");
    plan_make(&p);
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, w.db, &p.spec, TTL));
    CHECK_ERROR(HF_INVALID,
                "table things: hash key is pk S, expected id S; range key is at S, expected at N; "
                "index local is global, expected local; index by-owner is missing; index by-day: "
                "range key is none, expected at N; index by-day: projection is INCLUDE a, b, "
                "expected ALL; stream view is KEYS_ONLY, expected NEW_IMAGE; time to live is by "
                "gone, expected expires",
                w.scope);
    world_close(&w);
}

/* Global indexes may have several attributes in each part of their key. */
TEST(table, keys_of_several_attributes_are_compared_whole)
{
    struct world w = world_open(t, "memory:");
    struct hf_key_element three[] = {{HF_STR("owner"), HF_KEY_HASH},
                                     {HF_STR("day"), HF_KEY_HASH},
                                     {HF_STR("at"), HF_KEY_RANGE}};
    struct plan p;

    plan_make(&p);
    p.global[0].key_schema = three;
    p.global[0].key_schema_len = 3;
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    three[1].name = HF_STR("id");
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    CHECK_ERROR(HF_INVALID,
                "table things: index by-owner: hash key is owner S, day B, expected owner S, id S",
                w.scope);
    world_close(&w);
}

/* Names of included attributes may come in any order. */
TEST(table, an_equal_projection_is_no_difference)
{
    struct world w = world_open(t, "memory:");
    const struct hf_str ab[] = {HF_STR("a"), HF_STR("b")}, ba[] = {HF_STR("b"), HF_STR("a")};
    const struct hf_projection one = {HF_PROJECT_INCLUDE, ab, 2}, two = {HF_PROJECT_INCLUDE, ba, 2};
    struct plan p;

    plan_make(&p);
    p.global[0].projection = &one;
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    p.global[0].projection = &two;
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    world_close(&w);
}

TEST(table, what_is_off_is_switched_on)
{
    struct world w = world_open(t, "memory:");
    struct plan p;

    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    p.spec.stream = &p.stream;
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, w.db, &p.spec,
                                             HF_OPTIONS(hf_table_options, .no_create = true,
                                                        .ttl_attribute = HF_STR("expires"))));
    CHECK_ERROR(HF_INVALID,
                "table things: stream is off, expected NEW_IMAGE; time to live is off, expected "
                "expires",
                w.scope);
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, TTL));
    CHECK_INT(HF_VIEW_NEW_IMAGE, described(&w, HF_STR("things"))->stream->view);
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec,
                             HF_OPTIONS(hf_table_options, .no_create = true,
                                        .ttl_attribute = HF_STR("expires"))));
    world_close(&w);
}

/* (2) */
TEST(table, a_table_of_another_kind_is_not_touched)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;

    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    plan_make(&p);
    p.spec.local_indexes = NULL;
    p.spec.local_indexes_len = 0;
    p.key[0].name = HF_STR("owner");
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec,
                                             HF_OPTIONS(hf_table_options, .add_indexes = true,
                                                        .ttl_attribute = HF_STR("expires"))));
    CHECK_ERROR(HF_INVALID,
                "table things: hash key is id S, expected owner S; index by-owner is missing; "
                "index by-day is missing; stream is off, expected NEW_IMAGE; time to live is off, "
                "expected expires",
                w.scope);
    CHECK_INT(0, b.calls[HF_OP_UPDATE_TABLE]);
    CHECK_INT(0, b.calls[HF_OP_UPDATE_TIME_TO_LIVE]);
    world_close(&w);
}

/* The engine builds indexes in its upkeep; here, a bit whenever somebody looks. */
static enum hf_status upkeep_at_looks(struct hf_scope *s, struct between *b, enum hf_op op,
                                      const void *request, void *response)
{
    const struct hf_update_table *update = request;

    /* definitions of attributes that are no keys of the new index would be refused by DynamoDB */
    if (op == HF_OP_UPDATE_TABLE && update->index_changes_len)
        CHECK_INT(update->index_changes[0].create->key_schema_len, update->attributes_len);
    if (op == HF_OP_DESCRIBE_TABLE && ++b->left % 3 == 0)
        CHECK_OK(hf_engine_upkeep(b->own, b->inner, NULL));
    return between_pass(s, b, op, request, response);
}

TEST(table, missing_indexes_are_added_one_by_one)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    const struct hf_table_options add = {.size = sizeof(add), .add_indexes = true};
    struct plan p;

    b.on_call = upkeep_at_looks;
    b.own = hf_scope_new(test_env(t));
    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, &add));
    plan_make(&p);
    p.spec.local_indexes = NULL;
    p.spec.local_indexes_len = 0;
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_ERROR(HF_INVALID,
                "table things: index by-owner is missing; index by-day is missing; stream is off, "
                "expected NEW_IMAGE",
                w.scope);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, &add));
    CHECK_INT(3, b.calls[HF_OP_UPDATE_TABLE]); /* the stream, and each index */
    CHECK_INT(HF_TABLE_ACTIVE, described(&w, HF_STR("things"))->global_indexes[1].status);
    CHECK(t->elapsed_us > 1000000); /* it waited for them */
    CHECK_OK(hf_table_wait(w.scope, &b.db, HF_STR("things"), HF_TABLE_UNTIL_INDEXES_ACTIVE, NULL));
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec,
                                             HF_OPTIONS(hf_table_options, .add_indexes = true,
                                                        .no_create = true)));
    hf_scope_free(b.own);
    world_close(&w);
}

/* (1): every change is done, its answer is lost, and it was still done once. */
TEST(table, lost_answers_and_throttling_are_survived)
{
    struct world w = world_open(t, "memory:");
    struct hf_db *engine = w.db;
    struct plan p;
    const struct hf_fault faults[] = {
        {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("CreateTable"), .count = 1},
        {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("UpdateTimeToLive"), .count = 1},
        {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("UpdateTable"), .count = 1},
        {.kind = HF_FAULT_THROTTLE, .skip = 1, .count = 5},
        {.kind = HF_FAULT_ERROR, .skip = 9, .count = 3}};

    CHECK_OK(hf_faulty_open(w.scope, engine, &w.db));
    CHECK_OK(hf_faulty_set(w.scope, w.db, faults, 5));
    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, TTL));
    p.spec.stream = &p.stream;
    CHECK_OK(hf_table_ensure(w.scope, w.db, &p.spec, TTL));
    CHECK_INT(HF_OK, hf_scope_error(w.scope)->status);
    CHECK_OK(hf_engine_check(w.scope, engine, NULL));
    hf_db_close(w.db);
    hf_scope_free(w.scope);
}

/* As DynamoDB does: a table is CREATING for a while, and so it is for who comes second. */
static enum hf_status slow_service(struct hf_scope *s, struct between *b, enum hf_op op,
                                   const void *request, void *response)
{
    struct hf_describe_table_result *result = response;
    struct hf_table_description *copy = hf__scope_array(s, 1, sizeof(*copy));
    enum hf_status status = between_pass(s, b, op, request, response);

    if (op == HF_OP_CREATE_TABLE && status == HF_OK && b->calls[op] == 1)
        return hf__fail(s, HF_IN_USE, "Table already exists: things");
    if (op != HF_OP_DESCRIBE_TABLE || status != HF_OK || b->left == 0)
        return status;
    b->left--;
    *copy = *result->table;
    copy->status = HF_TABLE_CREATING;
    result->table = copy;
    return HF_OK;
}

TEST(table, a_table_of_another_creator_is_waited_for)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;

    b.on_call = slow_service;
    b.left = 4;
    plan_make(&p);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, TTL));
    CHECK_INT(1, b.calls[HF_OP_CREATE_TABLE]);
    /* 50 ms after "in use", then 100, 200, 400, 800 */
    CHECK_INT(1000000 + 1550 * 1000, t->elapsed_us);
    world_close(&w);
}

/* DELETING for three looks, then gone: it is made again. */
static enum hf_status deleting_service(struct hf_scope *s, struct between *b, enum hf_op op,
                                       const void *request, void *response)
{
    struct hf_describe_table_result *result = response;
    struct hf_table_description *table = hf__scope_array(s, 1, sizeof(*table));

    if (op == HF_OP_CREATE_TABLE && b->left > 0)
        return hf__fail(s, HF_IN_USE, "Table is being deleted: things");
    if (op != HF_OP_DESCRIBE_TABLE || b->left == 0)
        return between_pass(s, b, op, request, response);
    if (--b->left == 0)
        return hf__fail(s, HF_NOT_FOUND, "Requested resource not found: Table: things not found");
    table->status = HF_TABLE_DELETING;
    result->table = table;
    return HF_OK;
}

TEST(table, a_table_that_is_on_its_way_out_is_made_anew)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;

    b.on_call = deleting_service;
    b.left = 4;
    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_INT(1, b.calls[HF_OP_CREATE_TABLE]);
    CHECK_INT(0, described(&w, HF_STR("things"))->item_count);
    world_close(&w);
}

TEST(table, no_create_makes_nothing)
{
    struct world w = world_open(t, "memory:");
    struct plan p;

    plan_make(&p);
    CHECK_STATUS(HF_NOT_FOUND, hf_table_ensure(w.scope, w.db, &p.spec,
                                               HF_OPTIONS(hf_table_options, .no_create = true)));
    CHECK_ERROR(HF_NOT_FOUND, "table things does not exist", w.scope);
    CHECK_JSON(&w, "{'TableNames':[]}", "ListTables", "{}");
    world_close(&w);
}

TEST(table, a_spec_that_cannot_be_is_refused_at_once)
{
    struct world w = world_open(t, "memory:");
    struct plan p;

    plan_make(&p);
    p.spec.attributes_len = 1;
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, w.db, &p.spec, NULL));
    CHECK_INT(1000000, t->elapsed_us);
    CHECK(hf_str_equal(HF_STR("CreateTable"), hf_scope_error(w.scope)->operation));
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, w.db, NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, NULL, &p.spec, NULL));
    CHECK_ERROR(HF_INVALID, "hf_table_ensure() was called without a database (NULL)", w.scope);
    world_close(&w);
}

/* UpdateTimeToLive is refused `left` times; the first refusal is another program's success. */
static enum hf_status refusing_service(struct hf_scope *s, struct between *b, enum hf_op op,
                                       const void *request, void *response)
{
    if (op == HF_OP_UPDATE_TIME_TO_LIVE && b->left != 0) {
        if (b->left > 0 && --b->left == 0 && between_pass(s, b, op, request, response) != HF_OK)
            return HF_INTERNAL;
        return hf__fail(s, HF_INVALID, "TimeToLive is already enabled");
    }
    return between_pass(s, b, op, request, response);
}

TEST(table, a_refused_repair_is_looked_at_again_but_not_for_ever)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;

    b.on_call = refusing_service;
    b.left = 1;
    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, TTL));
    CHECK_INT(1, b.calls[HF_OP_UPDATE_TIME_TO_LIVE]);
    b.left = -1;
    p.spec.table = HF_STR("others");
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec, TTL));
    CHECK_ERROR(HF_INVALID, "TimeToLive is already enabled", w.scope);
    CHECK_INT(1 + 5, b.calls[HF_OP_UPDATE_TIME_TO_LIVE]);
    world_close(&w);
}

/* ---- ScyllaDB ------------------------------------------------------------------------------- */

#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/things"
#define TAGS(value) "{'Tags':[{'Key':'system:write_isolation','Value':'" value "'}]}"

TEST(table, scylladb_gets_its_write_isolation)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    const struct hf_tag unsafe = {HF_STR("system:write_isolation"), HF_STR("unsafe")};
    struct plan p;

    b.no_transactions = true;
    plan_bare(&p);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_JSON(&w, TAGS("always"), "ListTagsOfResource", "{'ResourceArn':'" ARN "'}");
    CHECK_INT(0, b.calls[HF_OP_TAG_RESOURCE]);

    /* a table that others made without it */
    world_ok(&w, "UntagResource", "{'ResourceArn':'" ARN "','TagKeys':['system:write_isolation']}");
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec,
                                             HF_OPTIONS(hf_table_options, .no_create = true)));
    CHECK_ERROR(HF_INVALID, "table things: write isolation is not set, expected always", w.scope);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec,
                             HF_OPTIONS(hf_table_options, .any_isolation = true)));
    CHECK_INT(0, b.calls[HF_OP_TAG_RESOURCE]);
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_JSON(&w, TAGS("always"), "ListTagsOfResource", "{'ResourceArn':'" ARN "'}");
    CHECK_INT(1, b.calls[HF_OP_TAG_RESOURCE]);

    /* with another value it is not overruled, unless the spec says so */
    world_ok(&w, "TagResource",
             "{'ResourceArn':'" ARN "','Tags':[{'Key':'system:write_isolation','Value':'u'}]}");
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_ERROR(HF_INVALID, "table things: write isolation is u, expected always", w.scope);
    p.spec.tags = &unsafe;
    p.spec.tags_len = 1;
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    world_close(&w);
}

/* It projects everything, and says so. */
TEST(table, scylladb_may_project_everything)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;

    b.no_transactions = true;
    plan_make(&p);
    p.global[0].projection = &all;
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    p.global[0].projection = &keys_only;
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    b.no_transactions = false;
    CHECK_STATUS(HF_INVALID, hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_ERROR(HF_INVALID, "table things: index by-owner: projection is ALL, expected KEYS_ONLY",
                w.scope);
    world_close(&w);
}

/* ---- waiting -------------------------------------------------------------------------------- */

TEST(table, waiting_ends_with_the_time_limit_or_the_deadline)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;
    size_t live;

    CHECK_STATUS(HF_TIMEOUT,
                 hf_table_wait(w.scope, w.db, HF_STR("things"), HF_TABLE_UNTIL_ACTIVE, NULL));
    CHECK_ERROR(HF_TIMEOUT, "table things does not exist; the time limit has passed", w.scope);
    CHECK_INT(1000000 + INT64_C(300000) * 1000, t->elapsed_us);

    b.on_call = slow_service;
    b.left = INT64_MAX;
    plan_bare(&p);
    hf_scope_reset(w.scope);
    live = t->live_bytes;
    CHECK_STATUS(HF_TIMEOUT, hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_ERROR(HF_TIMEOUT, "table things is CREATING; the time limit has passed", w.scope);
    CHECK(b.calls[HF_OP_DESCRIBE_TABLE] > 150 && b.calls[HF_OP_DESCRIBE_TABLE] < 165);
    CHECK(t->live_bytes < live + 64 * 1024); /* (4); the table itself is in there */

    hf_scope_reset(w.scope);
    hf_scope_timeout_ms(w.scope, 1000);
    CHECK_STATUS(HF_TIMEOUT, hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_ERROR(HF_TIMEOUT, "table things is CREATING; the deadline has passed", w.scope);
    hf_scope_reset(w.scope);
    CHECK_STATUS(HF_TIMEOUT,
                 hf_table_ensure(w.scope, &b.db, &p.spec,
                                 HF_OPTIONS(hf_table_options,
                                            .wait = HF_OPTIONS(hf_table_wait_options,
                                                               .timeout_ms = 3, .delay_ms = 1))));
    world_close(&w);
}

/* From the call with the number left on, five cannot be sent. */
static enum hf_status breaking_network(struct hf_scope *s, struct between *b, enum hf_op op,
                                       const void *request, void *response)
{
    if (b->left-- > 0 || b->left < -5)
        return between_pass(s, b, op, request, response);
    hf__fail(s, HF_IO, "no connection to http://nowhere");
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

/* (5) */
TEST(table, who_never_answers_is_not_waited_for)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);
    struct plan p;

    plan_bare(&p);
    b.on_call = breaking_network;
    CHECK_STATUS(HF_IO, hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_ERROR(HF_IO, "no connection to http://nowhere", w.scope);
    CHECK_STATUS(HF_IO,
                 hf_table_wait(w.scope, &b.db, HF_STR("things"), HF_TABLE_UNTIL_ACTIVE, NULL));
    CHECK_INT(2, b.calls[HF_OP_DESCRIBE_TABLE]);
    CHECK_INT(1000000, t->elapsed_us);
    b.left = 1; /* the first look is answered, what follows is not for a while */
    CHECK_OK(hf_table_ensure(w.scope, &b.db, &p.spec, NULL));
    CHECK_INT(2, b.calls[HF_OP_CREATE_TABLE]);
    world_close(&w);
}

static enum hf_status cancels_third_look(struct hf_scope *s, struct between *b, enum hf_op op,
                                         const void *request, void *response)
{
    if (b->calls[HF_OP_DESCRIBE_TABLE] == 3)
        hf_scope_cancel(s);
    return between_pass(s, b, op, request, response);
}

TEST(table, waiting_ends_when_it_is_canceled)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);

    b.on_call = cancels_third_look;
    CHECK_STATUS(HF_CANCELED,
                 hf_table_wait(w.scope, &b.db, HF_STR("things"), HF_TABLE_UNTIL_ACTIVE, NULL));
    CHECK_INT(3, b.calls[HF_OP_DESCRIBE_TABLE]);
    hf_scope_reset(w.scope);
    world_close(&w);
}

TEST(table, waiting_until_it_is_gone)
{
    struct world w = world_open(t, "memory:");
    struct between b = between_of(w.db);

    b.on_call = deleting_service;
    b.left = 3;
    CHECK_OK(hf_table_wait(w.scope, &b.db, HF_STR("things"), HF_TABLE_UNTIL_GONE, NULL));
    CHECK_INT(HF_OK, hf_scope_error(w.scope)->status);
    CHECK_INT(3, b.calls[HF_OP_DESCRIBE_TABLE]);
    CHECK_STATUS(HF_INVALID,
                 hf_table_wait(w.scope, &b.db, HF_STR("things"), (enum hf_table_until)9, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_table_wait(w.scope, NULL, HF_STR("things"), HF_TABLE_UNTIL_GONE, NULL));
    CHECK_STATUS(HF_INVALID, hf_table_wait(w.scope, &b.db, HF_STR("?"), HF_TABLE_UNTIL_GONE, NULL));
    world_close(&w);
}

/* ---- names ---------------------------------------------------------------------------------- */

TEST(table, names_keep_environments_apart)
{
    struct world w = world_open(t, "memory:");
    struct hf_scope *s = w.scope;
    char most[253];
    struct hf_str name;

    memset(most, 'x', sizeof(most));
    CHECK_OK(hf_table_name(s, HF_STR("prod"), HF_STR("users"), &name));
    CHECK_STR("prod.users", name);
    CHECK_OK(hf_table_guard(s, HF_STR("prod"), name));
    CHECK_OK(hf_table_name(s, HF_STR("a"), HF_STR("b"), &name)); /* the shortest: 3 */
    CHECK_OK(hf_table_name(s, HF_STR("a"), hf_str_of(most, 253), &name));
    CHECK_INT(255, name.len);
    CHECK_OK(hf_table_guard(s, HF_STR("a"), name));
    CHECK_STATUS(HF_INVALID, hf_table_name(s, HF_STR("ab"), hf_str_of(most, 253), &name));
    CHECK(!name.ptr);
    CHECK_STATUS(HF_INVALID, hf_table_name(s, HF_STR(""), HF_STR("users"), &name));
    CHECK_STATUS(HF_INVALID, hf_table_name(s, hf_str_of(NULL, 0), HF_STR("users"), &name));
    CHECK_STATUS(HF_INVALID, hf_table_name(s, HF_STR("a.b"), HF_STR("users"), &name));
    CHECK_STATUS(HF_INVALID, hf_table_name(s, HF_STR("prod"), HF_STR(""), &name));
    CHECK_STATUS(HF_INVALID, hf_table_name(s, HF_STR("prod"), HF_STR("us ers"), &name));
    CHECK_OK(hf_table_name(s, HF_STR("prod"), HF_STR("eu.users"), &name));

    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR("prod"), HF_STR("dev.users")));
    CHECK_ERROR(HF_INVALID, "table \"dev.users\" does not belong to the environment prod", s);
    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR("prod"), HF_STR("dev.prod.users")));
    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR("prod"), HF_STR("production.users")));
    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR("prod"), HF_STR("prod")));
    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR("prod"), HF_STR("prod.")));
    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR("prod"), HF_STR("prod.us/ers")));
    CHECK_STATUS(HF_INVALID, hf_table_guard(s, HF_STR(""), HF_STR(".users")));
    world_close(&w);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(table, without_memory_it_says_so)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_engine_options options = {.size = sizeof(options),
                                            .env = test_env(t),
                                            .no_upkeep_thread = true};
        struct hf_scope *s;
        struct hf_db *db = NULL;
        struct between b;
        enum hf_status status;
        struct plan p;

        /* opening is tested elsewhere; here the sweep begins behind it */
        t->fail_at = 0;
        s = hf_scope_new(test_env(t));
        CHECK_OK(hf_open(s, HF_STR("memory:"), &options, &db));
        plan_make(&p);
        b = between_of(db);
        b.no_transactions = true;
        t->fail_at = (int64_t)t->allocs + nth;
        status = hf_table_ensure(s, &b.db, &p.spec, TTL);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == hf_scope_error(s)->status);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK_OK(hf_table_ensure(s, &b.db, &p.spec, TTL)); /* and goes on from there */
        hf_db_close(db);
        hf_scope_free(s);
    }
}
