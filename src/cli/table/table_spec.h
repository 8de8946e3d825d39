/*
 * cli/table/table_spec.h: a table as DynamoDB's CreateTable has it in JSON, and as DescribeTable has it.
 */
#ifndef HF_CLI_TABLE_TABLE_SPEC_H
#define HF_CLI_TABLE_TABLE_SPEC_H

#include "cli/table/table_shape.h"

#include <holdfast/db.h>
#include <holdfast/scope.h>

/*
 * Read it; all lives in the scope. False and *error, which names the member, when it is not as
 * CreateTable has it. What the values mean is for the database to judge.
 */
bool hf__cli_table_spec_read(struct hf_scope *s, const struct json_node *json,
                             struct hf_create_table *spec, struct hf_str *error);

/* The same for the member "Table" of what DescribeTable answers. */
bool hf__cli_table_spec_read_described(struct hf_scope *s, const struct json_node *json,
                                       struct hf_create_table *spec, struct hf_str *error);

/* The request that would make the table again, without its tags and the expiry of items. */
enum hf_status hf__cli_table_spec_of(struct hf_scope *s, const struct hf_table_description *table,
                                     struct hf_create_table *spec);

/* The request as JSON, as AWS's tools take it; absent: no memory. */
struct hf_str hf__cli_table_spec_request(struct hf_scope *s, const struct hf_create_table *spec);

/* Values that are words, wherever they stand. */
#define SHAPE_WORDS_SCALAR "S N B"
#define SHAPE_WORDS_KEY "HASH RANGE"
#define SHAPE_WORDS_PROJECTION "ALL KEYS_ONLY INCLUDE"
#define SHAPE_WORDS_BILLING "PROVISIONED PAY_PER_REQUEST"
#define SHAPE_WORDS_VIEW "NEW_IMAGE OLD_IMAGE NEW_AND_OLD_IMAGES KEYS_ONLY"
#define SHAPE_WORDS_CLASS "STANDARD STANDARD_INFREQUENT_ACCESS"

/*
 * Members that a request, a description and a template have alike: those of an index, and the first of a table, which
 * are those of a struct hf_create_table at the beginning of the caller's own. `throughput_shape` and `index_shape` are
 * how the caller reads those parts.
 */
#define SHAPE_INDEX_MEMBERS(throughput_shape)                                                      \
    {"IndexName", SHAPE_TEXT, SHAPE_AT(hf_index, name)},                                           \
        {"KeySchema", SHAPE_LIST, SHAPE_LIST_AT(hf_index, key_schema),                             \
         .shape = &hf__cli_shape_key},                                                             \
        {"Projection", SHAPE_OBJECT, SHAPE_AT(hf_index, projection),                               \
         .shape = &hf__cli_shape_projection},                                                      \
        {"ProvisionedThroughput", SHAPE_OBJECT, SHAPE_AT(hf_index, throughput),                    \
         .shape = &(throughput_shape)},                                                            \
    {                                                                                              \
        "OnDemandThroughput", SHAPE_OBJECT, SHAPE_AT(hf_index, on_demand_throughput),              \
            .shape = &hf__cli_shape_on_demand                                                      \
    }
#define SHAPE_TABLE_MEMBERS(index_shape)                                                           \
    {"TableName", SHAPE_TEXT, SHAPE_AT(hf_create_table, table)},                                   \
        {"AttributeDefinitions", SHAPE_LIST, SHAPE_LIST_AT(hf_create_table, attributes),           \
         .shape = &hf__cli_shape_attribute},                                                       \
        {"KeySchema", SHAPE_LIST, SHAPE_LIST_AT(hf_create_table, key_schema),                      \
         .shape = &hf__cli_shape_key},                                                             \
        {"LocalSecondaryIndexes", SHAPE_LIST, SHAPE_LIST_AT(hf_create_table, local_indexes),       \
         .shape = &(index_shape)},                                                                 \
    {                                                                                              \
        "GlobalSecondaryIndexes", SHAPE_LIST, SHAPE_LIST_AT(hf_create_table, global_indexes),      \
            .shape = &(index_shape)                                                                \
    }
#define SHAPE_CAPACITY_MEMBERS(throughput_shape)                                                   \
    {"ProvisionedThroughput", SHAPE_OBJECT, SHAPE_AT(hf_create_table, throughput),                 \
     .shape = &(throughput_shape)},                                                                \
    {                                                                                              \
        "OnDemandThroughput", SHAPE_OBJECT, SHAPE_AT(hf_create_table, on_demand_throughput),       \
            .shape = &hf__cli_shape_on_demand                                                      \
    }

/* Parts of it that templates have, too. */
extern const struct table_shape hf__cli_shape_attribute, hf__cli_shape_key,
    hf__cli_shape_throughput, hf__cli_shape_on_demand, hf__cli_shape_warm, hf__cli_shape_projection,
    hf__cli_shape_stream, hf__cli_shape_tag;

/* The description as DynamoDB has it in JSON, without what only Amazon knows; absent: no memory. */
struct hf_str hf__cli_table_spec_json(struct hf_scope *s, const struct hf_table_description *table);

/* "id S, at N": the keys and their types. */
struct hf_str hf__cli_table_spec_keys(struct hf_scope *s, const struct hf_table_description *table,
                                      const struct hf_key_element *keys, size_t len);

/* "ACTIVE" */
const char *hf__cli_table_spec_status(enum hf_table_status status);

#endif
