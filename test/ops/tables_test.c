/* ops/tables_test.c: tables and tags before the catalog is looked at. */
#include "ops_test.h"

#define UNDEFINED "Some index key attributes are not defined in AttributeDefinitions. "

static const struct hf_throughput units = {5, 5};

/* A table "abc" with hash key a and sort key b, and two attributes more for indexes. */
struct made {
    struct hf_create_table create;
    struct hf_attribute_definition attributes[50];
    struct hf_key_element keys[2];
    struct hf_index local[7];
    struct hf_key_element local_keys[2];
    struct hf_index global[22];
    struct hf_key_element global_keys[9];
    struct hf_projection projection;
};

static void make(struct made *m)
{
    *m = (struct made){
        .attributes = {{HF_STR("a"), HF_SCALAR_S},
                       {HF_STR("b"), HF_SCALAR_N},
                       {HF_STR("c"), HF_SCALAR_B}},
        .keys = {{HF_STR("a"), HF_KEY_HASH}, {HF_STR("b"), HF_KEY_RANGE}},
        .local_keys = {{HF_STR("a"), HF_KEY_HASH}, {HF_STR("c"), HF_KEY_RANGE}},
        .global_keys = {{HF_STR("c"), HF_KEY_HASH}, {HF_STR("a"), HF_KEY_RANGE}},
        .projection = {.type = HF_PROJECT_ALL},
    };
    m->local[0] = (struct hf_index){.name = HF_STR("lsi"),
                                    .key_schema = m->local_keys,
                                    .key_schema_len = 2,
                                    .projection = &m->projection};
    m->global[0] = (struct hf_index){.name = HF_STR("gsi"),
                                     .key_schema = m->global_keys,
                                     .key_schema_len = 2,
                                     .projection = &m->projection,
                                     .throughput = &units};
    m->create = (struct hf_create_table){.table = HF_STR("abc"),
                                         .attributes = m->attributes,
                                         .attributes_len = 2,
                                         .key_schema = m->keys,
                                         .key_schema_len = 2,
                                         .throughput = &units};
}

/* ... with one local and one global index. */
static void make_indexed(struct made *m)
{
    make(m);
    m->create.attributes_len = 3;
    m->create.local_indexes = m->local;
    m->create.local_indexes_len = 1;
    m->create.global_indexes = m->global;
    m->create.global_indexes_len = 1;
}

TEST(tables, throughput_and_billing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_throughput large = {INT64_C(1000000000000), INT64_C(1000000000000)};
    struct made m;

    make(&m);
    m.create.throughput = &large;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    large.write_units++;
    REFUSED("Given value 1000000000001 for WriteCapacityUnits is out of bounds",
            hf__prepare_create_table(s, &m.create));
    large.read_units++;
    REFUSED("Given value 1000000000001 for ReadCapacityUnits is out of bounds",
            hf__prepare_create_table(s, &m.create));
    m.create.billing = HF_BILLING_PAY_PER_REQUEST;
    REFUSED(BAD "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                "BillingMode is PAY_PER_REQUEST",
            hf__prepare_create_table(s, &m.create));
    m.create.throughput = NULL;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.create.billing = (enum hf_billing)0;
    m.create.attributes_len = 1; /* keys come later */
    REFUSED(BAD "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode "
                "is PROVISIONED",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, on_demand_throughput)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_on_demand_throughput limits = {.max_write_units = 1};
    struct made m;

    make(&m);
    m.create.on_demand_throughput = &limits;
    REFUSED(BAD "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when the table "
                "BillingMode is PROVISIONED",
            hf__prepare_create_table(s, &m.create));
    m.create.throughput = NULL;
    m.create.billing = HF_BILLING_PAY_PER_REQUEST;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    limits.max_read_units = HF_ZERO;
    REFUSED(BAD "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of "
                "valid range",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, the_key_schema_and_its_definitions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct made m;

    make(&m);
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.create.attributes_len = 1;
    REFUSED("Invalid KeySchema: Some index key attribute have no definition",
            hf__prepare_create_table(s, &m.create));
    make(&m);
    m.attributes[1].name = HF_STR("z");
    REFUSED(BAD UNDEFINED "Keys: [a, b], AttributeDefinitions: [a, z]",
            hf__prepare_create_table(s, &m.create));
    m.attributes[1].name = HF_STR("a");
    REFUSED(BAD "Duplicate AttributeName in AttributeDefinitions: a",
            hf__prepare_create_table(s, &m.create));
    make(&m);
    m.keys[1].name = HF_STR("a");
    REFUSED("Both the Hash Key and the Range Key element in the KeySchema have the same name",
            hf__prepare_create_table(s, &m.create));
    make(&m);
    m.keys[0].type = HF_KEY_RANGE;
    REFUSED("Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
            hf__prepare_create_table(s, &m.create));
    make(&m);
    m.keys[1].type = HF_KEY_HASH;
    REFUSED("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
            hf__prepare_create_table(s, &m.create));
    make(&m);
    m.create.attributes_len = 3;
    REFUSED(BAD "Number of attributes in KeySchema does not exactly match number of attributes "
                "defined in AttributeDefinitions",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, local_indexes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct made m;

    make_indexed(&m);
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.create.local_indexes_len = 0;
    REFUSED(BAD "List of LocalSecondaryIndexes is empty", hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.create.key_schema_len = 1;
    REFUSED(BAD "Table KeySchema does not have a range key, which is required when specifying a "
                "LocalSecondaryIndex",
            hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.local_keys[1].name = HF_STR("z");
    REFUSED(BAD UNDEFINED "Keys: [a, z], AttributeDefinitions: [a, b, c]",
            hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.local[0].key_schema_len = 1;
    REFUSED(BAD "Index KeySchema does not have a range key for index: lsi",
            hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.local_keys[0].name = HF_STR("b");
    REFUSED(BAD "Index KeySchema does not have the same leading hash key as table KeySchema for "
                "index: lsi. index hash key: b, table hash key: a",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, projections)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str names[] = {HF_STR("x"), HF_STR("a"), HF_STR("x")};
    struct made m;

    make_indexed(&m);
    m.projection.type = (enum hf_projection_type)0;
    REFUSED(BAD "Unknown ProjectionType: null", hf__prepare_create_table(s, &m.create));
    m.projection.type = HF_PROJECT_INCLUDE;
    REFUSED(BAD "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
            hf__prepare_create_table(s, &m.create));
    m.projection.attributes = names;
    m.projection.attributes_len = 2; /* a key may be named */
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.projection.attributes_len = 3;
    REFUSED(BAD "Duplicate element in NonKeyAttributes: x", hf__prepare_create_table(s, &m.create));
    m.projection.type = HF_PROJECT_KEYS_ONLY;
    REFUSED(BAD "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
            hf__prepare_create_table(s, &m.create));
    m.projection.type = HF_PROJECT_ALL;
    REFUSED(BAD "ProjectionType is ALL, but NonKeyAttributes is specified",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, global_indexes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct made m;

    make_indexed(&m);
    m.create.global_indexes_len = 0;
    REFUSED(BAD "List of GlobalSecondaryIndexes is empty", hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.global[0].throughput = NULL;
    REFUSED(BAD "ProvisionedThroughput is not specified for index: gsi",
            hf__prepare_create_table(s, &m.create));
    m.create.billing = HF_BILLING_PAY_PER_REQUEST;
    m.create.throughput = NULL;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.global[0].throughput = &units;
    REFUSED(BAD "ProvisionedThroughput should not be specified for index: gsi when BillingMode is "
                "PAY_PER_REQUEST",
            hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.global[0].name = HF_STR("lsi"); /* of the other kind, but taken */
    REFUSED(BAD "Duplicate index name: lsi", hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.global[1] = m.global[0];
    m.create.global_indexes_len = 2;
    REFUSED(BAD "Duplicate index name: gsi", hf__prepare_create_table(s, &m.create));
    make_indexed(&m);
    m.attributes[3] = (struct hf_attribute_definition){HF_STR("d"), HF_SCALAR_S};
    m.create.attributes_len = 4;
    REFUSED(BAD "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], keys "
                "used: [a, b, c]",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

/* Of a global index: HASH attributes, then RANGE attributes, four of each, none twice. */
TEST(tables, keys_of_several_attributes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct made m;

    make_indexed(&m);
    m.global_keys[2] = (struct hf_key_element){HF_STR("b"), HF_KEY_RANGE};
    m.global[0].key_schema_len = 3;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.global_keys[1].type = HF_KEY_HASH;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.global_keys[1].type = HF_KEY_RANGE;
    m.global_keys[2].type = HF_KEY_HASH;
    REFUSED(BAD "All HASH key attributes must precede RANGE key attributes in the KeySchema",
            hf__prepare_create_table(s, &m.create));
    m.global_keys[2] = (struct hf_key_element){HF_STR("c"), HF_KEY_RANGE};
    REFUSED("The KeySchema contains multiple key attributes with the same name",
            hf__prepare_create_table(s, &m.create));
    m.global_keys[1] = m.global_keys[0];
    m.global[0].key_schema_len = 2;
    REFUSED("The KeySchema contains multiple key attributes with the same name",
            hf__prepare_create_table(s, &m.create));
    m.global_keys[1].type = HF_KEY_RANGE;
    REFUSED("Both the Hash Key and the Range Key element in the KeySchema have the same name",
            hf__prepare_create_table(s, &m.create));
    for (size_t i = 1; i < 9; i++) {
        m.global_keys[i] = (struct hf_key_element){hf_scope_format(s, "k%zu", i), HF_KEY_RANGE};
        m.attributes[2 + i] = (struct hf_attribute_definition){m.global_keys[i].name, HF_SCALAR_S};
    }
    m.create.attributes_len = 3 + 4;
    m.global[0].key_schema_len = 5;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.create.attributes_len = 3 + 5;
    m.global[0].key_schema_len = 6;
    REFUSED(BAD "The KeySchema exceeds the maximum allowed number of RANGE key attributes",
            hf__prepare_create_table(s, &m.create));
    for (size_t i = 1; i < 6; i++)
        m.global_keys[i].type = HF_KEY_HASH;
    REFUSED(BAD "The KeySchema exceeds the maximum allowed number of HASH key attributes",
            hf__prepare_create_table(s, &m.create));
    m.global[0].key_schema_len = 9;
    CHECK_STATUS(HF_INVALID, hf__prepare_create_table(s, &m.create));
    CHECK(strstr(hf_scope_error_text(s),
                 "]' at 'globalSecondaryIndexes.1.member.keySchema' " FAILED MOST(8)));
    hf_scope_free(s);
}

TEST(tables, so_many_indexes_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct made m;

    make_indexed(&m);
    for (size_t i = 1; i < 7; i++) {
        m.local[i] = m.local[0];
        m.local[i].name = hf_scope_format(s, "lsi%zu", i);
    }
    for (size_t i = 1; i < 22; i++) {
        m.global[i] = m.global[0];
        m.global[i].name = hf_scope_format(s, "gsi%zu", i);
    }
    m.create.local_indexes_len = 5;
    m.create.global_indexes_len = 20;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.create.global_indexes_len = 21;
    REFUSED(BAD "GlobalSecondaryIndex count exceeds the per-table limit of 20",
            hf__prepare_create_table(s, &m.create));
    m.create.global_indexes_len = 22;
    REFUSED(BAD "GlobalSecondaryIndex count exceeds the per-table limit of 20",
            hf__prepare_create_table(s, &m.create));
    m.create.local_indexes_len = 6;
    REFUSED(BAD "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, one_hundred_projected_names_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str names[21];
    struct hf_projection one = {HF_PROJECT_INCLUDE, names, 1};
    struct made m;

    make_indexed(&m);
    m.create.local_indexes = NULL;
    m.create.local_indexes_len = 0;
    for (size_t i = 0; i < 21; i++)
        names[i] = hf_scope_format(s, "n%zu", i);
    m.projection = (struct hf_projection){HF_PROJECT_INCLUDE, names, 20};
    for (size_t i = 1; i < 6; i++) {
        m.global[i] = m.global[0];
        m.global[i].name = hf_scope_format(s, "gsi%zu", i);
    }
    m.create.global_indexes_len = 5;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.global[5].projection = &one;
    m.create.global_indexes_len = 6;
    REFUSED(BAD "Number of NonKeyAttributes of all indexes exceeds the per-table limit of 100",
            hf__prepare_create_table(s, &m.create));
    m.projection.attributes_len = 21;
    CHECK_STATUS(HF_INVALID, hf__prepare_create_table(s, &m.create));
    CHECK(strstr(hf_scope_error_text(s),
                 "'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' " FAILED MOST(20)));
    hf_scope_free(s);
}

TEST(tables, streams)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stream_spec stream = {.enabled = HF_YES};
    struct hf_update_table update = {.table = HF_STR("abc"), .stream = &stream};
    struct made m;

    make(&m);
    m.create.stream = &stream;
    REFUSED(BAD "Table is being created with a stream enabled, UpdateViewType is required",
            hf__prepare_create_table(s, &m.create));
    REFUSED(BAD "If stream is being enabled then UpdateViewType is required",
            hf__prepare_update_table(s, &update));
    stream.view = HF_VIEW_KEYS_ONLY;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    stream.enabled = HF_NO;
    REFUSED(BAD "Table is being created with a stream disabled, UpdateViewType should not be "
                "specified",
            hf__prepare_create_table(s, &m.create));
    REFUSED(BAD "If stream is being disabled, then UpdateViewType must not be specified",
            hf__prepare_update_table(s, &update));
    hf_scope_free(s);
}

#define ARN "arn:aws:dynamodb:eu-west-2:123456789012:table/abc"

static enum hf_status tag(struct hf_scope *s, struct hf_str key, struct hf_str value)
{
    const struct hf_tag tags[] = {{key, value}};
    const struct hf_tag_resource request = {.arn = HF_STR(ARN), .tags = tags, .tags_len = 1};

    return hf__prepare_tag_resource(s, &request);
}

TEST(tables, keys_and_values_of_tags)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str x = HF_STR("x");
    struct hf__buf wide = {.scope = s};

    for (size_t i = 0; i < 128; i++)
        hf__buf_put_str(&wide, HF_STR("\xC3\xA9"));
    CHECK_OK(tag(s, HF_STR("a +-=._:/@9"), HF_STR("")));
    CHECK_OK(tag(s, hf_str_of((const char *)wide.ptr, wide.len), repeated(s, 'v', 256)));
    REFUSED("The Tag Key provided is invalid, Key: ", tag(s, HF_STR(""), x));
    REFUSED("The Tag Key provided is invalid, Key: null", tag(s, hf_str_of(NULL, 0), x));
    REFUSED("The Tag Value provided is invalid, Value: null", tag(s, x, hf_str_of(NULL, 0)));
    CHECK_STATUS(HF_INVALID, tag(s, repeated(s, 'k', 129), x));
    CHECK_STATUS(HF_INVALID, tag(s, x, repeated(s, 'v', 257)));
    REFUSED("The Tag Key provided is invalid, Key: a!", tag(s, HF_STR("a!"), x));
    REFUSED("The Tag Value provided is invalid, Value: <b>", tag(s, x, HF_STR("<b>")));
    REFUSED("Tag Key cannot be prefixed with aws:, Key: aws:x", tag(s, HF_STR("aws:x"), x));
    hf_scope_free(s);
}

TEST(tables, fifty_tags_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_tag tags[51];
    struct made m;

    make(&m);
    for (size_t i = 0; i < 51; i++)
        tags[i] = (struct hf_tag){hf_scope_format(s, "k%zu", i), HF_STR("v")};
    m.create.tags = tags;
    m.create.tags_len = 50;
    CHECK_OK(hf__prepare_create_table(s, &m.create));
    m.create.tags_len = 51;
    REFUSED("Number of Tags exceed the current limit for the provided ResourceArn",
            hf__prepare_create_table(s, &m.create));
    m.create.tags_len = 50;
    tags[49].key = tags[7].key;
    REFUSED("Duplicate Tag Keys provided as input: Duplicate Tag Key found k7",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, resources_that_are_tagged)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_tag one = {HF_STR("k"), HF_STR("v")};
    const struct hf_str key = HF_STR("k");
    struct hf_tag_resource request = {.arn = HF_STR(ARN), .tags = &one};
    struct hf_untag_resource untag = {.arn = HF_STR(ARN), .keys = &key};

    REFUSED("Atleast one Tag needs to be provided as Input.",
            hf__prepare_tag_resource(s, &request));
    REFUSED("Atleast one Tag Key needs to be provided as Input.",
            hf__prepare_untag_resource(s, &untag));
    request.arn = HF_STR("abc"); /* before the empty list */
    REFUSED(BAD "ARNs must start with 'arn:': abc", hf__prepare_tag_resource(s, &request));
    request.arn = HF_STR("arn:aws:s3:eu-west-2:123456789012:table/abc");
    CHECK_STATUS(HF_INVALID, hf__prepare_tag_resource(s, &request));
    request.arn = HF_STR("arn:aws:dynamodb:eu-west-2:x:table/abc");
    CHECK_STATUS(HF_INVALID, hf__prepare_tag_resource(s, &request));
    request.arn = HF_STR("arn:aws:dynamodb:eu-west-2:1:table/");
    CHECK_STATUS(HF_INVALID, hf__prepare_tag_resource(s, &request));
    request.arn = HF_STR(ARN "/index/idx");
    REFUSED(BAD "Invalid resource arn provided, only table or stream is accepted. Provided "
                "resource arn: " ARN "/index/idx",
            hf__prepare_tag_resource(s, &request));
    request.arn = HF_STR(ARN);
    request.tags_len = 1;
    CHECK_OK(hf__prepare_tag_resource(s, &request));
    untag.keys_len = 1;
    CHECK_OK(hf__prepare_untag_resource(s, &untag));
    untag.keys = NULL;
    REFUSED(ONE "Value null at 'tagKeys' " FAILED NOT_NULL, hf__prepare_untag_resource(s, &untag));
    hf_scope_free(s);
}

TEST(tables, an_update_changes_something)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_throughput large = {1, INT64_C(1000000000001)};
    const struct hf_replica_update replica = {.region = HF_STR("eu-west-1")};
    struct hf_update_table update = {.table = {NULL, 0}};

    REFUSED("The parameter 'TableName' is required but was not present in the request",
            hf__prepare_update_table(s, &update));
    update.table = HF_STR("abc");
    REFUSED("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required",
            hf__prepare_update_table(s, &update));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, "
            "MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
            "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is "
            "required",
            hf__prepare_update_table(s, &update));
    hf__scope_set_wording(s, HF__WORDING_CLASSIC);
    update.billing = HF_BILLING_PROVISIONED;
    REFUSED(BAD "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
            hf__prepare_update_table(s, &update));
    update.throughput = &units;
    CHECK_OK(hf__prepare_update_table(s, &update));
    update.throughput = &large;
    REFUSED("Given value 1000000000001 for WriteCapacityUnits is out of bounds",
            hf__prepare_update_table(s, &update));
    update.billing = HF_BILLING_PAY_PER_REQUEST;
    REFUSED(BAD "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                "BillingMode is PAY_PER_REQUEST",
            hf__prepare_update_table(s, &update));
    update = (struct hf_update_table){.table = HF_STR("abc"), .deletion_protection = HF_NO};
    CHECK_OK(hf__prepare_update_table(s, &update));
    update.throughput = &units;
    REFUSED(BAD "DeletionProtection modification must be the only operation in the request",
            hf__prepare_update_table(s, &update));
    update =
        (struct hf_update_table){.table = HF_STR("abc"), .replicas = &replica, .replicas_len = 1};
    CHECK_STATUS(HF_INVALID, hf__prepare_update_table(s, &update));
    hf_scope_free(s);
}

TEST(tables, changes_of_indexes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_index_update speed = {.name = HF_STR("one"), .throughput = &units};
    const struct hf_index_delete drop_one = {.name = HF_STR("one")};
    const struct hf_index_delete drop_two = {.name = HF_STR("two")};
    struct hf_index_change changes[2] = {{.update = NULL}};
    struct hf_update_table update = {.table = HF_STR("abc"),
                                     .index_changes = changes,
                                     .index_changes_len = 1};
    struct made m;

    make(&m);
    REFUSED(BAD "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null",
            hf__prepare_update_table(s, &update));
    changes[0] = (struct hf_index_change){.update = &speed, .del = &drop_one};
    REFUSED(BAD "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate "
                "object",
            hf__prepare_update_table(s, &update));
    changes[0] = (struct hf_index_change){.update = &speed};
    CHECK_OK(hf__prepare_update_table(s, &update));
    changes[1] = (struct hf_index_change){.del = &drop_one};
    update.index_changes_len = 2;
    REFUSED(BAD "Only one global secondary index update per index is allowed simultaneously. "
                "Index: one",
            hf__prepare_update_table(s, &update));
    changes[1] = (struct hf_index_change){.del = &drop_two};
    CHECK_OK(hf__prepare_update_table(s, &update));
    changes[0] = (struct hf_index_change){.create = &m.global[0]};
    CHECK_STATUS(HF_LIMIT, hf__prepare_update_table(s, &update));
    CHECK_ERROR(HF_LIMIT,
                "Subscriber limit exceeded: Only 1 online index can be created or deleted "
                "simultaneously per table",
                s);
    update.index_changes_len = 1; /* keys may be defined by the table already */
    CHECK_OK(hf__prepare_update_table(s, &update));
    update.throughput = &units;
    REFUSED(BAD "You cannot create or delete index while updating table IOPS",
            hf__prepare_update_table(s, &update));
    update.throughput = NULL;
    m.projection.type = (enum hf_projection_type)0;
    REFUSED(BAD "Unknown ProjectionType: null", hf__prepare_update_table(s, &update));
    update.index_changes_len = 0;
    update.deletion_protection = HF_YES;
    REFUSED(BAD "List of GlobalSecondaryIndexUpdates is empty",
            hf__prepare_update_table(s, &update));
    hf_scope_free(s);
}

/* Lists as long as a request must not take the square of their length. */
TEST(tables, long_lists_are_no_burden)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const size_t len = 200000;
    struct hf_attribute_definition *attributes = hf__scope_array(s, len, sizeof(*attributes));
    struct made m;

    make(&m);
    for (size_t i = 0; i < len; i++)
        attributes[i] =
            (struct hf_attribute_definition){hf_scope_format(s, "n%zu", i), HF_SCALAR_S};
    attributes[len - 1].name = attributes[len - 2].name;
    m.create.attributes = attributes;
    m.create.attributes_len = len;
    REFUSED(BAD "Duplicate AttributeName in AttributeDefinitions: n199998",
            hf__prepare_create_table(s, &m.create));
    hf_scope_free(s);
}

TEST(tables, any_allocation_may_fail)
{
    struct made m;

    make_indexed(&m);
    SWEEP(HF_OK, , hf__prepare_create_table(s, &m.create));
    m.attributes[3] = (struct hf_attribute_definition){HF_STR("d"), HF_SCALAR_S};
    m.create.attributes_len = 4;
    SWEEP(HF_INVALID, , hf__prepare_create_table(s, &m.create));
}
