/*
 * cli/table/table_terraform.c: tables of Terraform: resources of the type aws_dynamodb_table.
 *
 *     terraform show -json PLAN     {"planned_values": {"root_module": MODULE}}
 *     terraform show -json          {"values": {"root_module": MODULE}}
 *                                   MODULE is {"resources": [{"type", "address", "values": {...}}],
 *                                              "child_modules": [MODULE]}
 *     a configuration, *.tf.json    {"resource": {"aws_dynamodb_table": {NAME: {...}}},
 *                                    "variable": {NAME: {"default": ...}}, "locals": {...}}
 *     a state, terraform.tfstate    {"version": 4, "resources": [{"type", "name",
 *                                    "instances": [{"attributes": {...}}]}]}
 *
 * What a table has is named the same in all of them. In a configuration, a block may be an object or a list
 * of objects, and texts may contain ${var.NAME} and ${local.NAME}, which are resolved by --parameter and by
 * defaults. Other expressions only Terraform itself can compute: the error says so.
 */
#include "cli/frame/process/input.h"
#include "cli/table/table_file.h"

#include <string.h>

enum { MODULES_DEPTH_MAX = 32, REFERENCES_DEPTH_MAX = 16 };

struct terraform {
    struct table_file *file;
    const struct json_node *root;
    unsigned depth;
};

/* ---- what a table has ----------------------------------------------------------------------- */

struct terraform_index {
    struct hf_str name;
    struct hf_str hash_key;
    struct hf_str range_key;
    const struct hf_key_element *key_schema; /* in newer versions, in place of the two */
    size_t key_schema_len;
    struct hf_projection projection;
    struct hf_throughput throughput;
    const struct hf_on_demand_throughput *on_demand;
};

struct terraform_table {
    struct hf_str name;
    struct hf_str hash_key;
    struct hf_str range_key;
    const struct hf_attribute_definition *attributes;
    size_t attributes_len;
    const struct terraform_index *global_indexes;
    size_t global_indexes_len;
    const struct terraform_index *local_indexes;
    size_t local_indexes_len;
    enum hf_billing billing;
    struct hf_throughput throughput;
    const struct hf_on_demand_throughput *on_demand;
    struct hf_stream_spec stream;
    const struct hf_ttl_spec *ttl;
    const struct hf_tag *tags;
    size_t tags_len;
    enum hf_table_class table_class;
    enum hf_flag deletion_protection;
};

static const struct shape_member attribute_members[] = {
    {"name", SHAPE_TEXT, SHAPE_AT(hf_attribute_definition, name)},
    {"type", SHAPE_WORD, SHAPE_AT(hf_attribute_definition, type), .words = SHAPE_WORDS_SCALAR},
};
static const struct table_shape attribute_shape =
    SHAPE_OF(hf_attribute_definition, attribute_members);

static const struct shape_member key_members[] = {
    {"attribute_name", SHAPE_TEXT, SHAPE_AT(hf_key_element, name)},
    {"key_type", SHAPE_WORD, SHAPE_AT(hf_key_element, type), .words = SHAPE_WORDS_KEY},
};
static const struct table_shape key_shape = SHAPE_OF(hf_key_element, key_members);

static const struct shape_member on_demand_members[] = {
    {"max_read_request_units", SHAPE_NUMBER, SHAPE_AT(hf_on_demand_throughput, max_read_units)},
    {"max_write_request_units", SHAPE_NUMBER, SHAPE_AT(hf_on_demand_throughput, max_write_units)},
};
static const struct table_shape on_demand_shape =
    SHAPE_OF(hf_on_demand_throughput, on_demand_members);

static const struct shape_member ttl_members[] = {
    {"attribute_name", SHAPE_TEXT, SHAPE_AT(hf_ttl_spec, attribute)},
    {"enabled", SHAPE_FLAG, SHAPE_AT(hf_ttl_spec, enabled)},
};
static const struct table_shape ttl_shape = SHAPE_OF(hf_ttl_spec, ttl_members);

static const struct shape_member index_members[] = {
    {"name", SHAPE_TEXT, SHAPE_AT(terraform_index, name)},
    {"hash_key", SHAPE_TEXT, SHAPE_AT(terraform_index, hash_key)},
    {"range_key", SHAPE_TEXT, SHAPE_AT(terraform_index, range_key)},
    {"key_schema", SHAPE_LIST, SHAPE_LIST_AT(terraform_index, key_schema), .shape = &key_shape},
    {"projection_type", SHAPE_WORD, SHAPE_AT(terraform_index, projection.type),
     .words = SHAPE_WORDS_PROJECTION},
    {"non_key_attributes", SHAPE_TEXTS, SHAPE_LIST_AT(terraform_index, projection.attributes)},
    {"read_capacity", SHAPE_NUMBER, SHAPE_AT(terraform_index, throughput.read_units)},
    {"write_capacity", SHAPE_NUMBER, SHAPE_AT(terraform_index, throughput.write_units)},
    {"on_demand_throughput", SHAPE_OBJECT, SHAPE_AT(terraform_index, on_demand),
     .shape = &on_demand_shape},
    {"warm_throughput", .kind = SHAPE_SKIPPED}, /* of a state: computed */
};
static const struct table_shape index_shape = SHAPE_OF(terraform_index, index_members);

static const struct shape_member table_members[] = {
    {"name", SHAPE_TEXT, SHAPE_AT(terraform_table, name)},
    {"hash_key", SHAPE_TEXT, SHAPE_AT(terraform_table, hash_key)},
    {"range_key", SHAPE_TEXT, SHAPE_AT(terraform_table, range_key)},
    {"attribute", SHAPE_LIST, SHAPE_LIST_AT(terraform_table, attributes),
     .shape = &attribute_shape},
    {"global_secondary_index", SHAPE_LIST, SHAPE_LIST_AT(terraform_table, global_indexes),
     .shape = &index_shape},
    {"local_secondary_index", SHAPE_LIST, SHAPE_LIST_AT(terraform_table, local_indexes),
     .shape = &index_shape},
    {"billing_mode", SHAPE_WORD, SHAPE_AT(terraform_table, billing), .words = SHAPE_WORDS_BILLING},
    {"read_capacity", SHAPE_NUMBER, SHAPE_AT(terraform_table, throughput.read_units)},
    {"write_capacity", SHAPE_NUMBER, SHAPE_AT(terraform_table, throughput.write_units)},
    {"on_demand_throughput", SHAPE_OBJECT, SHAPE_AT(terraform_table, on_demand),
     .shape = &on_demand_shape},
    {"stream_enabled", SHAPE_FLAG, SHAPE_AT(terraform_table, stream.enabled)},
    {"stream_view_type", SHAPE_WORD, SHAPE_AT(terraform_table, stream.view),
     .words = SHAPE_WORDS_VIEW},
    {"ttl", SHAPE_OBJECT, SHAPE_AT(terraform_table, ttl), .shape = &ttl_shape},
    {"tags", SHAPE_TAGS, SHAPE_LIST_AT(terraform_table, tags)},
    {"table_class", SHAPE_WORD, SHAPE_AT(terraform_table, table_class), .words = SHAPE_WORDS_CLASS},
    {"deletion_protection_enabled", SHAPE_FLAG, SHAPE_AT(terraform_table, deletion_protection)},
    {"point_in_time_recovery", .kind = SHAPE_IGNORED},
    {"replica", .kind = SHAPE_IGNORED},
    {"server_side_encryption", .kind = SHAPE_IGNORED},
    {"global_table_witness", .kind = SHAPE_IGNORED},
    {"import_table", .kind = SHAPE_REFUSED},
    {"restore_backup_arn", .kind = SHAPE_REFUSED},
    {"restore_date_time", .kind = SHAPE_REFUSED},
    {"restore_source_name", .kind = SHAPE_REFUSED},
    {"restore_source_table_arn", .kind = SHAPE_REFUSED},
    {"restore_to_latest_time", .kind = SHAPE_REFUSED},
    {"count", .kind = SHAPE_REFUSED},
    {"for_each", .kind = SHAPE_REFUSED},
    {"dynamic", .kind = SHAPE_REFUSED},
    {"arn", .kind = SHAPE_SKIPPED},
    {"id", .kind = SHAPE_SKIPPED},
    {"region", .kind = SHAPE_SKIPPED},
    {"stream_arn", .kind = SHAPE_SKIPPED},
    {"stream_label", .kind = SHAPE_SKIPPED},
    {"tags_all", .kind = SHAPE_SKIPPED},
    {"timeouts", .kind = SHAPE_SKIPPED},
    {"warm_throughput", .kind = SHAPE_SKIPPED}, /* of a state: computed */
    {"lifecycle", .kind = SHAPE_SKIPPED},
    {"depends_on", .kind = SHAPE_SKIPPED},
    {"provider", .kind = SHAPE_SKIPPED},
    {"provisioner", .kind = SHAPE_SKIPPED},
    {"connection", .kind = SHAPE_SKIPPED},
    {"//", .kind = SHAPE_SKIPPED},
};
static const struct table_shape table_shape = SHAPE_OF(terraform_table, table_members);

/* ---- expressions of a configuration --------------------------------------------------------- */

static const struct json_node *value_of(struct shape_reader *r, const char *path,
                                        const struct json_node *json);

/* A member of a block, or of one of several. */
static const struct json_node *block_member(const struct json_node *blocks, struct hf_str name)
{
    const struct json_node *block = blocks && blocks->kind == JSON_ARRAY ? blocks->first : blocks;

    for (; block; block = blocks->kind == JSON_ARRAY ? block->next : NULL)
        for (const struct json_node *at = block->kind == JSON_OBJECT ? block->first : NULL; at;
             at = at->next)
            if (hf_str_equal(at->name, name))
                return at;
    return NULL;
}

static bool name_after(struct hf_str text, const char *start, struct hf_str *name)
{
    size_t len = strlen(start);

    if (text.len <= len || memcmp(text.ptr, start, len) != 0)
        return false;
    *name = hf_str_of(text.ptr + len, text.len - len);
    for (size_t i = 0; i < name->len; i++) {
        char c = name->ptr[i];

        if (c != '_' && c != '-' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

/* var.NAME or local.NAME; NULL: r->error is set. */
static const struct json_node *reference_value(struct shape_reader *r, const char *path,
                                               struct hf_str reference)
{
    const struct terraform *t = r->user;
    const struct json_node *found = NULL;
    struct hf_str name = {0};

    if (name_after(reference, "var.", &name)) {
        struct hf_str given = hf__cli_table_file_parameter(t->file, name);

        if (given.ptr)
            return hf__cli_table_node_text(r->s, given);
        found = block_member(hf__cli_json_member(t->root, "variable"), name);
        found = found ? block_member(found, HF_STR("default")) : NULL;
        if (!found) {
            r->error =
                hf_scope_format(r->s,
                                "%s: variable '%.*s' has no default; add --parameter %.*s=VALUE",
                                path, HF_FMT(name), HF_FMT(name));
            return NULL;
        }
        return found;
    }
    if (name_after(reference, "local.", &name))
        found = block_member(hf__cli_json_member(t->root, "locals"), name);
    if (found)
        return value_of(r, path, found);
    r->error = hf_scope_format(r->s,
                               "%s: cannot resolve ${%.*s}; use the output of 'terraform show "
                               "-json' instead",
                               path, HF_FMT(reference));
    return NULL;
}

/* "orders-${var.stage}". A text that is one reference is what that refers to, of any type. */
static const struct json_node *text_resolve(struct shape_reader *r, const char *path,
                                            const struct json_node *json)
{
    struct hf_str rest = json->text, made = HF_STR("");

    while (rest.len) {
        const char *open = memmem(rest.ptr, rest.len, "${", 2);
        size_t before = open ? (size_t)(open - rest.ptr) : rest.len;
        const char *close = open ? memchr(open, '}', rest.len - before) : NULL;
        const struct json_node *value;

        if (open && before && open[-1] == '$') { /* $${ is ${ */
            made = hf_scope_format(r->s, "%.*s%.*s{", HF_FMT(made), (int)before, rest.ptr);
            rest = hf_str_of(open + 2, rest.len - before - 2);
            continue;
        }
        made = hf_scope_format(r->s, "%.*s%.*s", HF_FMT(made), (int)before, rest.ptr);
        if (!open)
            break;
        if (!close) {
            hf__cli_shape_fail(r, path, ": missing }", "");
            return NULL;
        }
        value = reference_value(r, path,
                                hf__input_trim(hf_str_of(open + 2, (size_t)(close - open) - 2)));
        if (!value)
            return NULL;
        rest = hf_str_of(close + 1, rest.len - before - (size_t)(close - open) - 1);
        if (!made.len && !rest.len)
            return value;
        if (value->kind != JSON_STRING && value->kind != JSON_NUMBER) {
            hf__cli_shape_fail(r, path, ": a reference in a text has to be a text", "");
            return NULL;
        }
        made = hf_scope_format(r->s, "%.*s%.*s", HF_FMT(made), HF_FMT(value->text));
    }
    return hf__cli_table_node_text(r->s, made);
}

static const struct json_node *value_of(struct shape_reader *r, const char *path,
                                        const struct json_node *json)
{
    struct terraform *t = r->user;
    const struct json_node *value;

    if (json->kind != JSON_STRING || !memmem(json->text.ptr, json->text.len, "${", 2))
        return json;
    if (t->depth == REFERENCES_DEPTH_MAX) {
        hf__cli_shape_fail(r, path, ": references are nested too deeply", "");
        return NULL;
    }
    t->depth++;
    value = text_resolve(r, path, json);
    t->depth--;
    if (!value && !r->error.ptr)
        hf__cli_shape_fail(r, "", "out of memory", "");
    return value;
}

/* ---- making --------------------------------------------------------------------------------- */

static const struct hf_key_element *keys_make(struct hf_scope *s, struct hf_str hash,
                                              struct hf_str range, size_t *len)
{
    struct hf_key_element *keys = hf_scope_alloc(s, 2 * sizeof(*keys));

    *len = range.len ? 2 : 1;
    if (keys) {
        keys[0] = (struct hf_key_element){.name = hash, .type = HF_KEY_HASH};
        keys[1] = (struct hf_key_element){.name = range, .type = HF_KEY_RANGE};
    }
    return keys;
}

static bool has_units(const struct hf_throughput *throughput)
{
    return throughput->read_units > 0 && throughput->write_units > 0;
}

/* `hash` is that of the table, for local indexes. */
static const struct hf_index *indexes_make(struct hf_scope *s, const struct terraform_index *from,
                                           size_t len, struct hf_str hash, bool provisioned)
{
    struct hf_index *made = len ? hf_scope_alloc(s, len * sizeof(*made)) : NULL;

    for (size_t i = 0; made && i < len; i++) {
        made[i] =
            (struct hf_index){.name = from[i].name,
                              .projection = from[i].projection.type ? &from[i].projection : NULL,
                              .on_demand_throughput = from[i].on_demand};
        if (from[i].key_schema_len && !from[i].hash_key.len) {
            made[i].key_schema = from[i].key_schema;
            made[i].key_schema_len = from[i].key_schema_len;
        } else
            made[i].key_schema = keys_make(s, from[i].hash_key.len ? from[i].hash_key : hash,
                                           from[i].range_key, &made[i].key_schema_len);
        if (provisioned && has_units(&from[i].throughput))
            made[i].throughput = &from[i].throughput;
    }
    return made;
}

static bool table_make(struct shape_reader *r, const char *path,
                       const struct terraform_table *table, struct table_definition *made)
{
    struct hf_create_table *spec = &made->spec;
    bool provisioned =
        table->billing != HF_BILLING_PAY_PER_REQUEST && has_units(&table->throughput);

    if (!table->name.len)
        return hf__cli_shape_fail(r, path, ".name: missing, or known only after it is applied", "");
    if (!table->hash_key.len)
        return hf__cli_shape_fail(r, path, ".hash_key: missing", "");
    *spec =
        (struct hf_create_table){.table = table->name,
                                 .attributes = table->attributes,
                                 .attributes_len = table->attributes_len,
                                 .billing = provisioned ? HF_BILLING_PROVISIONED
                                                        : HF_BILLING_PAY_PER_REQUEST,
                                 .throughput = provisioned ? &table->throughput : NULL,
                                 .on_demand_throughput = table->on_demand,
                                 .stream = table->stream.enabled == HF_YES ? &table->stream : NULL,
                                 .tags = table->tags,
                                 .tags_len = table->tags_len,
                                 .table_class = table->table_class,
                                 .deletion_protection = table->deletion_protection,
                                 .global_indexes_len = table->global_indexes_len,
                                 .local_indexes_len = table->local_indexes_len};
    spec->key_schema = keys_make(r->s, table->hash_key, table->range_key, &spec->key_schema_len);
    spec->global_indexes = indexes_make(r->s, table->global_indexes, table->global_indexes_len,
                                        table->hash_key, provisioned);
    spec->local_indexes =
        indexes_make(r->s, table->local_indexes, table->local_indexes_len, table->hash_key, false);
    if (table->ttl && table->ttl->enabled == HF_YES)
        made->ttl = table->ttl->attribute;
    return (spec->key_schema && (spec->global_indexes || !spec->global_indexes_len) &&
            (spec->local_indexes || !spec->local_indexes_len)) ||
           hf__cli_shape_fail(r, "", "out of memory", "");
}

/* Absent: it has none, or it cannot be resolved. */
static struct hf_str table_name(struct shape_reader *r, const char *path,
                                const struct json_node *values)
{
    const struct json_node *json = hf__cli_json_member(values, "name");

    if (json && r->resolve)
        json = r->resolve(r, path, json);
    r->error = (struct hf_str){0};
    return json && json->kind == JSON_STRING ? json->text : (struct hf_str){0};
}

static bool table_read(struct shape_reader *r, struct hf_str label, const struct json_node *values)
{
    const struct terraform *t = r->user;
    const char *path = hf__cli_shape_path(r, "", label);
    struct terraform_table *table;
    struct table_definition *made;

    if (r->error.ptr)
        return false;
    if (hf__cli_table_file_leaves(t->file, label, table_name(r, path, values)))
        return true;
    table = hf_scope_alloc(r->s, sizeof(*table));
    made = hf__cli_table_file_add(t->file, label);
    if (!table || !made)
        return hf__cli_shape_fail(r, "", made ? "out of memory" : t->file->error.ptr, "");
    memset(table, 0, sizeof(*table));
    return hf__cli_shape_read(r, path, &table_shape, values, table) &&
           table_make(r, path, table, made);
}

/* ---- the files ------------------------------------------------------------------------------ */

static bool is_table(const struct json_node *resource)
{
    const struct json_node *type = hf__cli_json_member(resource, "type");
    const struct json_node *mode = hf__cli_json_member(resource, "mode");

    return type && hf_str_equal(type->text, HF_STR("aws_dynamodb_table")) &&
           (!mode || hf_str_equal(mode->text, HF_STR("managed")));
}

/* A module of a plan or of a state, and its modules. */
static bool module_read(struct shape_reader *r, const struct json_node *module, unsigned depth)
{
    const struct json_node *resources = hf__cli_json_member(module, "resources");
    const struct json_node *modules = hf__cli_json_member(module, "child_modules");

    if (depth == MODULES_DEPTH_MAX)
        return hf__cli_shape_fail(r, "child_modules", ": modules are nested too deeply", "");
    for (const struct json_node *at = resources ? resources->first : NULL; at; at = at->next) {
        const struct json_node *address = hf__cli_json_member(at, "address");
        const struct json_node *values = hf__cli_json_member(at, "values");

        if (!is_table(at))
            continue;
        if (!address || !values)
            return hf__cli_shape_fail(r, "resources", ": a resource has no address or values", "");
        if (!table_read(r, address->text, values))
            return false;
    }
    for (const struct json_node *at = modules ? modules->first : NULL; at; at = at->next)
        if (!module_read(r, at, depth + 1))
            return false;
    return true;
}

/* {NAME: {...}, ...}, where a resource may be a list of one. */
static bool tables_read(struct shape_reader *r, const struct json_node *tables)
{
    for (const struct json_node *at = tables->first; at; at = at->next) {
        struct hf_str label = hf_scope_format(r->s, "aws_dynamodb_table.%.*s", HF_FMT(at->name));
        const struct json_node *values = at->kind == JSON_ARRAY && at->len == 1 ? at->first : at;

        if (!label.ptr)
            return hf__cli_shape_fail(r, "", "out of memory", "");
        if (!table_read(r, label, values))
            return false;
    }
    return true;
}

static bool configuration_read(struct shape_reader *r, const struct json_node *resource)
{
    const struct json_node *block = resource->kind == JSON_ARRAY ? resource->first : resource;

    for (; block; block = resource->kind == JSON_ARRAY ? block->next : NULL) {
        const struct json_node *tables = hf__cli_json_member(block, "aws_dynamodb_table");
        const struct json_node *part =
            tables && tables->kind == JSON_ARRAY ? tables->first : tables;

        for (; part; part = tables->kind == JSON_ARRAY ? part->next : NULL)
            if (!tables_read(r, part))
                return false;
    }
    return true;
}

static bool state_read(struct shape_reader *r, const struct json_node *resources)
{
    for (const struct json_node *at = resources->first; at; at = at->next) {
        const struct json_node *name = hf__cli_json_member(at, "name");
        const struct json_node *module = hf__cli_json_member(at, "module");
        const struct json_node *instances = hf__cli_json_member(at, "instances");
        struct hf_str label =
            hf_scope_format(r->s, "%.*s%saws_dynamodb_table.%.*s",
                            HF_FMT(module ? module->text : HF_STR("")), module ? "." : "",
                            HF_FMT(name ? name->text : HF_STR("?")));

        if (!is_table(at) || !instances)
            continue;
        for (const struct json_node *one = instances->first; one; one = one->next) {
            const struct json_node *values = hf__cli_json_member(one, "attributes");
            const struct json_node *key = hf__cli_json_member(one, "index_key");
            struct hf_str own = label; /* as Terraform writes it: a name or a number in brackets */

            if (key)
                own = hf_scope_format(r->s, "%.*s[%.*s]", HF_FMT(label), HF_FMT(key->raw));
            if (!own.ptr)
                return hf__cli_shape_fail(r, "", "out of memory", "");
            if (!values)
                return hf__cli_shape_fail(r, "resources", ": an instance has no attributes", "");
            if (!table_read(r, own, values))
                return false;
        }
    }
    return true;
}

static const struct json_node *root_module(const struct json_node *json)
{
    const struct json_node *values = hf__cli_json_member(json, "planned_values");

    if (!values)
        values = hf__cli_json_member(json, "values");
    return values ? hf__cli_json_member(values, "root_module") : NULL;
}

bool hf__cli_table_is_terraform(const struct json_node *json)
{
    return root_module(json) || hf__cli_json_member(json, "resource") ||
           hf__cli_json_member(json, "terraform_version");
}

bool hf__cli_table_terraform_read(struct table_file *file, const struct json_node *json)
{
    struct terraform t = {.file = file, .root = json};
    struct shape_reader r = {.s = file->s,
                             .what = "aws_dynamodb_table",
                             .lenient = true,
                             .user = &t,
                             .ignored = HF_STR("")};
    const struct json_node *module = root_module(json);
    const struct json_node *resource = hf__cli_json_member(json, "resource");
    const struct json_node *resources = hf__cli_json_member(json, "resources");
    bool fine = true;

    if (module)
        fine = module_read(&r, module, 0);
    else if (resource) {
        r.resolve = value_of;
        fine = configuration_read(&r, resource);
    } else if (resources)
        fine = state_read(&r, resources);
    return hf__cli_table_file_take(file, &r, fine);
}
