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

/* The request that would make the table again, without its tags and the expiry of items. */
enum hf_status hf__cli_table_spec_of(struct hf_scope *s, const struct hf_table_description *table,
                                     struct hf_create_table *spec);

/* The request as JSON, as AWS's tools take it; absent: no memory. */
struct hf_str hf__cli_table_spec_request(struct hf_scope *s, const struct hf_create_table *spec);

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
