/*
 * ops/backups_test.c: the table that a restore asks for, made of a description and a request.
 */
#include "ops_test.h"

/* A provisioned table "src" with hash key a, sort key b, and indexes lsi (c) and gsi (d). */
struct made {
    struct hf_table_description source;
    struct hf_attribute_definition attributes[4];
    struct hf_key_element keys[2];
    struct hf_key_element local_keys[2];
    struct hf_key_element global_keys[1];
    struct hf_projection all;
    struct hf_projection some;
    struct hf_str included[2];
    struct hf_throughput_description units;
    struct hf_index_description local[1];
    struct hf_index_description global[1];
    struct hf_restore_table_from_backup request;
};

static void make(struct made *m)
{
    *m = (struct made){
        .attributes = {{HF_STR("a"), HF_SCALAR_S},
                       {HF_STR("b"), HF_SCALAR_N},
                       {HF_STR("c"), HF_SCALAR_B},
                       {HF_STR("d"), HF_SCALAR_S}},
        .keys = {{HF_STR("a"), HF_KEY_HASH}, {HF_STR("b"), HF_KEY_RANGE}},
        .local_keys = {{HF_STR("a"), HF_KEY_HASH}, {HF_STR("c"), HF_KEY_RANGE}},
        .global_keys = {{HF_STR("d"), HF_KEY_HASH}},
        .all = {.type = HF_PROJECT_ALL},
        .included = {HF_STR("x"), HF_STR("y")},
        .units = {.read_units = 3, .write_units = 4},
        .request = {.table = HF_STR("new"), .backup_arn = HF_STR("arn")},
    };
    m->some = (struct hf_projection){HF_PROJECT_INCLUDE, m->included, 2};
    m->local[0] = (struct hf_index_description){.name = HF_STR("lsi"),
                                                .key_schema = m->local_keys,
                                                .key_schema_len = 2,
                                                .projection = &m->all};
    m->global[0] = (struct hf_index_description){.name = HF_STR("gsi"),
                                                 .key_schema = m->global_keys,
                                                 .key_schema_len = 1,
                                                 .projection = &m->some,
                                                 .throughput = &m->units};
    m->source = (struct hf_table_description){.name = HF_STR("src"),
                                              .attributes = m->attributes,
                                              .attributes_len = 4,
                                              .key_schema = m->keys,
                                              .key_schema_len = 2,
                                              .throughput = &m->units,
                                              .local_indexes = m->local,
                                              .local_indexes_len = 1,
                                              .global_indexes = m->global,
                                              .global_indexes_len = 1};
}

/* The same table, billed by request. */
static void make_on_demand(struct made *m, const struct hf_billing_summary *billing)
{
    make(m);
    m->source.billing = billing;
    m->units = (struct hf_throughput_description){.read_units = 0};
}

static const struct hf_billing_summary on_demand = {.billing = HF_BILLING_PAY_PER_REQUEST};
static const struct hf_throughput units = {8, 9};

TEST(restore, keeps_what_is_not_overridden)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_sse_description sse = {.type = HF_SSE_KMS, .kms_key_arn = HF_STR("key")};
    struct hf_stream_spec stream = {HF_YES, HF_VIEW_KEYS_ONLY};
    struct hf_table_class_summary class = {.table_class = HF_TABLE_INFREQUENT_ACCESS};
    struct hf_create_table out;
    struct made m;

    make(&m);
    m.source.sse = &sse;
    m.source.stream = &stream;
    m.source.table_class = &class;
    m.source.deletion_protection = HF_YES;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK(hf_str_equal(HF_STR("new"), out.table));
    CHECK_INT(4, out.attributes_len);
    CHECK_INT(HF_BILLING_PROVISIONED, out.billing);
    CHECK_INT(3, out.throughput->read_units);
    CHECK_INT(1, out.local_indexes_len);
    CHECK_INT(1, out.global_indexes_len);
    CHECK_INT(4, out.global_indexes[0].throughput->write_units);
    CHECK_INT(HF_YES, out.sse->enabled);
    CHECK(hf_str_equal(HF_STR("key"), out.sse->kms_key_id));
    CHECK(!out.stream && !out.table_class && !out.deletion_protection && !out.tags_len);
    hf_scope_free(s);
}

TEST(restore, overrides_billing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_on_demand_throughput lifted = {-1, -1}, limits = {-1, 70};
    struct hf_create_table out;
    struct made m;

    make(&m);
    m.request.billing = HF_BILLING_PAY_PER_REQUEST;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK(!out.throughput && !out.global_indexes[0].throughput);
    m.request.throughput = &units;
    REFUSED(
        "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
        hf__prepare_restore(s, &m.request, &m.source, &out));
    m.request.billing = 0;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK_INT(8, out.throughput->read_units);
    CHECK_INT(3, out.global_indexes[0].throughput->read_units);

    make_on_demand(&m, &on_demand);
    m.source.on_demand_throughput = &lifted; /* as UpdateTable leaves them */
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK(!out.on_demand_throughput);
    m.source.on_demand_throughput = &limits;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK_INT(70, out.on_demand_throughput->max_write_units);
    CHECK_INT(0, out.on_demand_throughput->max_read_units);
    m.request.billing = HF_BILLING_PROVISIONED;
    REFUSED(
        "Invalid Request: Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED",
        hf__prepare_restore(s, &m.request, &m.source, &out));
    m.request.throughput = &units;
    REFUSED("Invalid Request: Must specify provisioned throughput for index gsi",
            hf__prepare_restore(s, &m.request, &m.source, &out));
    m.request.global_indexes = (struct hf_index[1]){{.name = HF_STR("none")}};
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    hf_scope_free(s);
}

/* An index is known by its keys and what it projects. */
TEST(restore, overrides_indexes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str turned[2] = {HF_STR("y"), HF_STR("x")};
    struct hf_projection same = {HF_PROJECT_INCLUDE, turned, 2};
    struct hf_create_table out;
    struct hf_index list[2];
    struct made m;

    make(&m);
    list[0] = (struct hf_index){.name = HF_STR("renamed"),
                                .key_schema = m.global_keys,
                                .key_schema_len = 1,
                                .projection = &same,
                                .throughput = &units};
    m.request.global_indexes = list;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out)); /* an empty list: none */
    CHECK(!out.global_indexes);
    CHECK_INT(3, out.attributes_len);
    m.request.global_indexes_len = 1;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK(hf_str_equal(HF_STR("renamed"), out.global_indexes[0].name));
    CHECK_INT(8, out.global_indexes[0].throughput->read_units);
    list[1] = list[0];
    list[1].name = HF_STR("twice");
    m.request.global_indexes_len = 2;
    REFUSED(
        "Invalid Request: Index twice does not match a secondary index that existed in the source table and "
        "cannot be created during the restore operation",
        hf__prepare_restore(s, &m.request, &m.source, &out));
    m.request.global_indexes_len = 1;
    list[0].throughput = NULL;
    REFUSED("Invalid Request: Must specify provisioned throughput for index renamed",
            hf__prepare_restore(s, &m.request, &m.source, &out));
    list[0].throughput = &units;
    turned[0] = HF_STR("z");
    REFUSED(
        "Invalid Request: Index renamed does not match a secondary index that existed in the source table and "
        "cannot be created during the restore operation",
        hf__prepare_restore(s, &m.request, &m.source, &out));
    turned[0] = HF_STR("y");
    list[0].name = HF_STR("lsi"); /* which the table has, too */
    REFUSED(BAD "Duplicate index name: lsi", hf__prepare_restore(s, &m.request, &m.source, &out));
    m.request.local_indexes = list + 1;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK(!out.local_indexes);

    make_on_demand(&m, &on_demand);
    m.request.global_indexes = list;
    m.request.global_indexes_len = 1;
    REFUSED(
        "Invalid Request: Cannot override ProvisionedThroughput if BillingMode is PAY_PER_REQUEST",
        hf__prepare_restore(s, &m.request, &m.source, &out));
    hf_scope_free(s);
}

TEST(restore, overrides_encryption)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_sse_description had = {.type = HF_SSE_KMS, .kms_key_arn = HF_STR("key")};
    struct hf_sse_spec off = {.enabled = HF_NO};
    struct hf_create_table out;
    struct made m;

    make(&m);
    m.source.sse = &had;
    m.request.sse = &off;
    CHECK_OK(hf__prepare_restore(s, &m.request, &m.source, &out));
    CHECK_INT(HF_NO, out.sse->enabled);
    hf_scope_free(s);
}

TEST(restore, any_memory_may_be_the_last)
{
    struct hf_on_demand_throughput limits = {50, 70};
    struct hf_create_table out;
    struct made m;

    make(&m);
    SWEEP(HF_OK, (void)0, hf__prepare_restore(s, &m.request, &m.source, &out));
    make_on_demand(&m, &on_demand);
    m.source.on_demand_throughput = &limits;
    SWEEP(HF_OK, (void)0, hf__prepare_restore(s, &m.request, &m.source, &out));
    m.request.billing = HF_BILLING_PROVISIONED;
    m.request.throughput = &units;
    SWEEP(HF_INVALID, (void)0, hf__prepare_restore(s, &m.request, &m.source, &out));
}

TEST(backups, list_bounds)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_list_backups request = {.from_us = 5, .until_us = 5};

    CHECK_OK(hf__prepare_list_backups(s, &request));
    request.until_us = 4;
    REFUSED(BAD "Time range lower bound must be less than or equal to upper bound",
            hf__prepare_list_backups(s, &request));
    request.from_us = 0;
    CHECK_OK(hf__prepare_list_backups(s, &request));
    hf_scope_free(s);
}
