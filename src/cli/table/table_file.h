/*
 * cli/table/table_file.h: a file that defines tables. It is JSON, in one of these formats:
 *
 *     CreateTable       the request, which is one table, and TimeToLiveSpecification, if there is one: as
 *                       `holdfast export` writes it; also {"Table": {...}}, the answer of DescribeTable
 *     CloudFormation    a template, also as `cdk synth` writes it: Resources
 *     Terraform         what `terraform show -json` prints of a plan or a state: planned_values or values;
 *                       a configuration in *.tf.json: resource; a state file: resources
 *
 * In templates, values that are computed are resolved where the template itself or --parameter says what
 * they are.
 */
#ifndef HF_CLI_TABLE_TABLE_FILE_H
#define HF_CLI_TABLE_TABLE_FILE_H

#include "cli/frame/options/options.h"
#include "cli/table/table_spec.h"

#define TABLE_TTL_MEMBER "TimeToLiveSpecification"

enum { TABLE_FILE_MAX = 16 * 1024 * 1024 }; /* bytes */
enum { TABLE_FILE_TABLES_MAX = 1000 };      /* in a file */

struct table_definition {
    struct hf_str label; /* what the file calls it: a logical id, or an address of Terraform */
    struct hf_create_table spec;
    struct hf_str ttl; /* the attribute; absent: no expiry */
    bool left_out; /* by `only`; of the rest only the name is there, or the label in its place */
};

struct table_file {
    struct hf_scope *s;
    const struct option_list *parameters; /* NAME=VALUE */
    bool *used;                           /* for each of them: a table needs it */
    const struct option_list *only;       /* tables to read, by label or name; empty: all */
    bool is_template;                     /* not a request of CreateTable */
    struct table_definition *tables;
    size_t tables_len;
    struct hf_str ignored; /* paths of what was not used, with ", " between them; empty: none */
    struct hf_str unnamed; /* labels of tables that have no name but that; the same */
    struct hf_str error;   /* names the member */
};

/* Read the text of a file. `s`, `parameters` and `only` were set. False: file->error. */
bool hf__cli_table_file_read(struct table_file *file, struct hf_str text);

/* ---- for the formats ------------------------------------------------------------------------ */

/* CloudFormation: table_template.c. */
bool hf__cli_table_template_read(struct table_file *file, const struct json_node *json);

/* Terraform: table_terraform.c. */
bool hf__cli_table_terraform_read(struct table_file *file, const struct json_node *json);
bool hf__cli_table_is_terraform(const struct json_node *json);

/* Room for one more, zeroed; NULL: file->error is set. */
struct table_definition *hf__cli_table_file_add(struct table_file *file, struct hf_str label);

/* Is this table none of `only`? Then it was added, and the rest of it need not be read. `name` may be absent. */
bool hf__cli_table_file_leaves(struct table_file *file, struct hf_str label, struct hf_str name);

/* The value of --parameter NAME=VALUE; absent: it was not given. */
struct hf_str hf__cli_table_file_parameter(const struct table_file *file, struct hf_str name);

/* Take over what a reader has found; returns `fine`. */
bool hf__cli_table_file_take(struct table_file *file, const struct shape_reader *r, bool fine);

/* Texts as values of JSON; NULL: no memory. */
const struct json_node *hf__cli_table_node_text(struct hf_scope *s, struct hf_str text);

#endif
