/*
 * cli/table/table_template.c: tables of CloudFormation's templates, also as `cdk synth` writes them.
 *
 *     {"Parameters": {"Stage": {"Type": "String", "Default": "dev"}},
 *      "Resources": {"Orders": {"Type": "AWS::DynamoDB::Table",
 *                               "Properties": {"TableName": {"Fn::Sub": "orders-${Stage}"}, ...}}}}
 *
 * Values may be functions of other values. A function is an object with one member: Ref, or Fn::NAME. They
 * are resolved when a property is read, so that one in a property that is not used does no harm. A
 * parameter has the value of --parameter, or its default; so have CloudFormation's own, such as
 * AWS::Region, which have no default.
 *
 * What always holds:
 *
 *  (1) A value that cannot be resolved is an error that names its path; nothing is guessed.
 *      A table that --only leaves out need not be resolved.
 *  (2) Functions in functions go DEPTH_MAX deep, so that conditions that name each other end.
 */
#include "cli/frame/process/input.h"
#include "cli/table/table_file.h"

#include <assert.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

struct template
{
    struct table_file *file;
    const struct json_node *root;
    unsigned depth;
};

/* ---- properties ----------------------------------------------------------------------------- */

struct replica_spec {
    const struct hf_tag *tags;
    size_t tags_len;
    enum hf_table_class table_class;
    enum hf_flag deletion_protection;
};

struct template_table {
    struct hf_create_table spec; /* first: members of hf_create_table are at their places */
    struct hf_stream_spec *stream;
    struct hf_ttl_spec *ttl;
    const struct replica_spec *replicas;
    size_t replicas_len;
};

_Static_assert(offsetof(struct template_table, spec) == 0, "see there");

static const struct shape_member ttl_members[] = {
    {"AttributeName", SHAPE_TEXT, SHAPE_AT(hf_ttl_spec, attribute)},
    {"Enabled", SHAPE_FLAG, SHAPE_AT(hf_ttl_spec, enabled)},
};
static const struct table_shape ttl_shape = SHAPE_OF(hf_ttl_spec, ttl_members);

static const struct shape_member stream_members[] = {
    {"StreamViewType", SHAPE_WORD, SHAPE_AT(hf_stream_spec, view), .words = SHAPE_WORDS_VIEW},
    {"ResourcePolicy", .kind = SHAPE_IGNORED},
};
static const struct table_shape stream_shape = SHAPE_OF(hf_stream_spec, stream_members);

static const struct shape_member index_members[] = {
    SHAPE_INDEX_MEMBERS(hf__cli_shape_throughput),
    {"WarmThroughput", SHAPE_OBJECT, SHAPE_AT(hf_index, warm_throughput),
     .shape = &hf__cli_shape_warm},
    {"ContributorInsightsSpecification", .kind = SHAPE_IGNORED},
    {"ReadOnDemandThroughputSettings", .kind = SHAPE_IGNORED},
    {"ReadProvisionedThroughputSettings", .kind = SHAPE_IGNORED},
    {"WriteOnDemandThroughputSettings", .kind = SHAPE_IGNORED},
    {"WriteProvisionedThroughputSettings", .kind = SHAPE_IGNORED},
};
static const struct table_shape index_shape = SHAPE_OF(hf_index, index_members);

static const struct shape_member replica_members[] = {
    {"Tags", SHAPE_LIST, SHAPE_LIST_AT(replica_spec, tags), .shape = &hf__cli_shape_tag},
    {"TableClass", SHAPE_WORD, SHAPE_AT(replica_spec, table_class), .words = SHAPE_WORDS_CLASS},
    {"DeletionProtectionEnabled", SHAPE_FLAG, SHAPE_AT(replica_spec, deletion_protection)},
    {"Region", .kind = SHAPE_SKIPPED},
    {"GlobalTableSettingsReplicationMode", .kind = SHAPE_SKIPPED},
    {"ContributorInsightsSpecification", .kind = SHAPE_IGNORED},
    {"GlobalSecondaryIndexes", .kind = SHAPE_IGNORED},
    {"KinesisStreamSpecification", .kind = SHAPE_IGNORED},
    {"PointInTimeRecoverySpecification", .kind = SHAPE_IGNORED},
    {"ReadOnDemandThroughputSettings", .kind = SHAPE_IGNORED},
    {"ReadProvisionedThroughputSettings", .kind = SHAPE_IGNORED},
    {"ReplicaStreamSpecification", .kind = SHAPE_IGNORED},
    {"ResourcePolicy", .kind = SHAPE_IGNORED},
    {"SSESpecification", .kind = SHAPE_IGNORED},
};
static const struct table_shape replica_shape = SHAPE_OF(replica_spec, replica_members);

/* Of AWS::DynamoDB::Table and AWS::DynamoDB::GlobalTable. */
static const struct shape_member table_members[] = {
    SHAPE_TABLE_MEMBERS(index_shape),
    {"BillingMode", SHAPE_WORD, SHAPE_AT(template_table, spec.billing),
     .words = SHAPE_WORDS_BILLING},
    SHAPE_CAPACITY_MEMBERS(hf__cli_shape_throughput),
    {"WarmThroughput", SHAPE_OBJECT, SHAPE_AT(template_table, spec.warm_throughput),
     .shape = &hf__cli_shape_warm},
    {"StreamSpecification", SHAPE_OBJECT, SHAPE_AT(template_table, stream), .shape = &stream_shape},
    {"TimeToLiveSpecification", SHAPE_OBJECT, SHAPE_AT(template_table, ttl), .shape = &ttl_shape},
    {"TableClass", SHAPE_WORD, SHAPE_AT(template_table, spec.table_class),
     .words = SHAPE_WORDS_CLASS},
    {"DeletionProtectionEnabled", SHAPE_FLAG, SHAPE_AT(template_table, spec.deletion_protection)},
    {"Tags", SHAPE_LIST, SHAPE_LIST_AT(template_table, spec.tags), .shape = &hf__cli_shape_tag},
    {"Replicas", SHAPE_LIST, SHAPE_LIST_AT(template_table, replicas), .shape = &replica_shape},
    {"ContributorInsightsSpecification", .kind = SHAPE_IGNORED},
    {"GlobalTableSourceArn", .kind = SHAPE_REFUSED},
    {"GlobalTableWitnesses", .kind = SHAPE_IGNORED},
    {"ImportSourceSpecification", .kind = SHAPE_REFUSED},
    {"KinesisStreamSpecification", .kind = SHAPE_IGNORED},
    {"MultiRegionConsistency", .kind = SHAPE_IGNORED},
    {"PointInTimeRecoverySpecification", .kind = SHAPE_IGNORED},
    {"ReadOnDemandThroughputSettings", .kind = SHAPE_IGNORED},
    {"ReadProvisionedThroughputSettings", .kind = SHAPE_IGNORED},
    {"ResourcePolicy", .kind = SHAPE_IGNORED},
    {"SSESpecification", .kind = SHAPE_IGNORED},
    {"WriteOnDemandThroughputSettings", .kind = SHAPE_IGNORED},
    {"WriteProvisionedThroughputSettings", .kind = SHAPE_IGNORED},
};
static const struct table_shape table_shape = SHAPE_OF(template_table, table_members);

/* ---- functions ------------------------------------------------------------------------------ */

static const struct json_node no_value = {.kind = JSON_NULL};

static const struct json_node *value_of(struct shape_reader *r, const char *path,
                                        const struct json_node *json);

static const struct json_node *resolve_fail(struct shape_reader *r, const char *path,
                                            const char *what, struct hf_str name)
{
    assert(path && what);
    r->error = hf_scope_format(r->s, "%s: %s '%.*s'", path, what, HF_FMT(name));
    return NULL;
}

static const struct json_node *named_member(const struct json_node *object, struct hf_str name)
{
    for (const struct json_node *at = object && object->kind == JSON_OBJECT ? object->first : NULL;
         at; at = at->next)
        if (hf_str_equal(at->name, name))
            return at;
    return NULL;
}

/* The nth element of an array; NULL: there is none. */
static const struct json_node *element_at(const struct json_node *array, size_t at)
{
    const struct json_node *element = array->kind == JSON_ARRAY ? array->first : NULL;

    while (element && at--)
        element = element->next;
    return element;
}

/* A value as text. False: r->error is set. */
static bool text_of(struct shape_reader *r, const char *path, const struct json_node *json,
                    struct hf_str *text)
{
    const struct json_node *value = json ? value_of(r, path, json) : NULL;

    if (!json)
        return hf__cli_shape_fail(r, path, ": a function has too few arguments", "");
    if (!value)
        return false;
    if (value->kind == JSON_TRUE || value->kind == JSON_FALSE)
        *text = value->kind == JSON_TRUE ? HF_STR("true") : HF_STR("false");
    else if (value->kind == JSON_STRING || value->kind == JSON_NUMBER)
        *text = value->text;
    else
        return hf__cli_shape_fail(r, path, ": expected a string", "");
    return true;
}

static bool text_begins(struct hf_str text, const char *start)
{
    return text.len >= strlen(start) && memcmp(text.ptr, start, strlen(start)) == 0;
}

/* "a,b" as a list. `trims`: blanks around an element are no part of it. */
static const struct json_node *list_split(struct shape_reader *r, struct hf_str text,
                                          struct hf_str by, bool trims)
{
    struct json_node *list = hf_scope_alloc(r->s, sizeof(*list));
    struct json_node *last = NULL;
    const char *end = text.ptr + text.len;

    assert(text.ptr);
    if (!list)
        return resolve_fail(r, "", "out of memory", by);
    *list = (struct json_node){.kind = JSON_ARRAY};
    for (const char *at = text.ptr;;) {
        const char *next = by.len ? memmem(at, (size_t)(end - at), by.ptr, by.len) : NULL;
        struct json_node *node = hf_scope_alloc(r->s, sizeof(*node));

        if (!node)
            return resolve_fail(r, "", "out of memory", by);
        *node = (struct json_node){.kind = JSON_STRING,
                                   .text = hf_str_of(at, (size_t)((next ? next : end) - at))};
        if (trims)
            node->text = hf__input_trim(node->text);
        if (last)
            last->next = node;
        else
            list->first = node;
        last = node;
        list->len++;
        if (!next)
            return list;
        at = next + by.len;
    }
}

/* A parameter, one of CloudFormation's own, or another table. */
static const struct json_node *ref_value(struct shape_reader *r, const char *path,
                                         struct hf_str name)
{
    const struct template *t = r->user;
    struct hf_str given = hf__cli_table_file_parameter(t->file, name);
    const struct json_node *parameter =
        named_member(hf__cli_json_member(t->root, "Parameters"), name);
    const struct json_node *type = parameter ? hf__cli_json_member(parameter, "Type") : NULL;
    const struct json_node *value = parameter ? hf__cli_json_member(parameter, "Default") : NULL;
    const struct json_node *resource =
        named_member(hf__cli_json_member(t->root, "Resources"), name);
    struct hf_str text;

    if (hf_str_equal(name, HF_STR("AWS::NoValue")))
        return &no_value;
    if (given.ptr)
        text = given;
    else if (value && type && !text_begins(type->text, "AWS::SSM::") && value->kind == JSON_STRING)
        text = value->text;
    else if (value && type && !text_begins(type->text, "AWS::SSM::"))
        return value;
    else if (resource && text_begins(hf__cli_json_member(resource, "Type")
                                         ? hf__cli_json_member(resource, "Type")->text
                                         : HF_STR(""),
                                     "AWS::DynamoDB::")) {
        const struct json_node *table_name =
            hf__cli_json_member(hf__cli_json_member(resource, "Properties"), "TableName");

        return table_name ? value_of(r, path, table_name) : hf__cli_table_node_text(r->s, name);
    } else {
        r->error = hf_scope_format(
            r->s, "%s: the value of '%.*s' is not in the template; add --parameter %.*s=VALUE",
            path, HF_FMT(name), HF_FMT(name));
        return NULL;
    }
    if (type && (hf_str_equal(type->text, HF_STR("CommaDelimitedList")) ||
                 text_begins(type->text, "List<")))
        return list_split(r, text, HF_STR(","), true);
    return hf__cli_table_node_text(r->s, text);
}

/* "orders-${Stage}", or that and an object of more names. */
static const struct json_node *sub_value(struct shape_reader *r, const char *path,
                                         const struct json_node *argument)
{
    const struct json_node *text = argument->kind == JSON_ARRAY ? argument->first : argument;
    const struct json_node *names = text && argument->kind == JSON_ARRAY ? text->next : NULL;
    struct hf_str made = HF_STR(""), rest;

    if (!text || text->kind != JSON_STRING)
        return resolve_fail(r, path, "no text for", HF_STR("Fn::Sub"));
    for (rest = text->text; rest.len;) {
        const char *open = memmem(rest.ptr, rest.len, "${", 2);
        size_t before = open ? (size_t)(open - rest.ptr) : rest.len;
        const char *close = open ? memchr(open, '}', rest.len - before) : NULL;
        struct hf_str name, value = {0};
        const struct json_node *known;

        made = hf_scope_format(r->s, "%.*s%.*s", HF_FMT(made), (int)before, rest.ptr);
        if (!open)
            break;
        if (!close)
            return resolve_fail(r, path, "missing } in", text->text);
        name = hf_str_of(open + 2, (size_t)(close - open) - 2);
        rest = hf_str_of(close + 1, rest.len - before - (size_t)(close - open) - 1);
        if (name.len && name.ptr[0] == '!') {
            made =
                hf_scope_format(r->s, "%.*s${%.*s}", HF_FMT(made), (int)name.len - 1, name.ptr + 1);
            continue;
        }
        if (memchr(name.ptr, '.', name.len) && !named_member(names, name))
            return resolve_fail(r, path, "cannot resolve an attribute of a resource:", name);
        known = named_member(names, name);
        if (!known)
            known = ref_value(r, path, name);
        if (!known || !text_of(r, path, known, &value))
            return NULL;
        made = hf_scope_format(r->s, "%.*s%.*s", HF_FMT(made), HF_FMT(value));
    }
    return made.ptr ? hf__cli_table_node_text(r->s, made) : NULL;
}

static const struct json_node *join_value(struct shape_reader *r, const char *path,
                                          const struct json_node *argument)
{
    const struct json_node *by = element_at(argument, 0), *list = element_at(argument, 1);
    struct hf_str made = HF_STR(""), between, part;

    list = list ? value_of(r, path, list) : NULL;
    if (!list && r->error.ptr)
        return NULL;
    if (!by || by->kind != JSON_STRING || !list || list->kind != JSON_ARRAY)
        return resolve_fail(r, path, "invalid arguments of", HF_STR("Fn::Join"));
    between = by->text;
    for (const struct json_node *at = list->first; at; at = at->next) {
        if (!text_of(r, path, at, &part))
            return NULL;
        made = hf_scope_format(r->s, "%.*s%.*s%.*s", HF_FMT(made),
                               HF_FMT(at == list->first ? HF_STR("") : between), HF_FMT(part));
    }
    return made.ptr ? hf__cli_table_node_text(r->s, made) : NULL;
}

static const struct json_node *map_value(struct shape_reader *r, const char *path,
                                         const struct json_node *argument)
{
    const struct template *t = r->user;
    const struct json_node *found = hf__cli_json_member(t->root, "Mappings");
    struct hf_str name = HF_STR("Mappings");

    for (size_t i = 0; i < 3; i++) {
        if (!text_of(r, path, element_at(argument, i), &name))
            return NULL;
        found = named_member(found, name);
        if (!found)
            return resolve_fail(r, path, "Fn::FindInMap: no mapping", name);
    }
    return found;
}

static const struct json_node *select_value(struct shape_reader *r, const char *path,
                                            const struct json_node *argument)
{
    const struct json_node *list = element_at(argument, 1), *found = NULL;
    struct hf_str number;
    uint64_t at = 0;

    if (!text_of(r, path, element_at(argument, 0), &number))
        return NULL;
    list = list ? value_of(r, path, list) : NULL;
    if (!list && r->error.ptr)
        return NULL;
    number = hf_scope_copy(r->s, number);
    if (list && number.ptr && hf__options_number(number.ptr, &at))
        found = element_at(list, (size_t)at);
    return found ? value_of(r, path, found)
                 : resolve_fail(r, path, "Fn::Select: no element", number);
}

static const struct json_node *split_value(struct shape_reader *r, const char *path,
                                           const struct json_node *argument)
{
    struct hf_str by, text;

    if (!text_of(r, path, element_at(argument, 0), &by) ||
        !text_of(r, path, element_at(argument, 1), &text))
        return NULL;
    return list_split(r, text, by, false);
}

/* ---- conditions ----------------------------------------------------------------------------- */

static bool condition_holds(struct shape_reader *r, const char *path, const struct json_node *json,
                            bool *holds);

static bool condition_named(struct shape_reader *r, const char *path, struct hf_str name,
                            bool *holds)
{
    const struct template *t = r->user;
    const struct json_node *found = named_member(hf__cli_json_member(t->root, "Conditions"), name);

    if (!found) {
        resolve_fail(r, path, "no condition", name);
        return false;
    }
    return condition_holds(r, path, found, holds);
}

static bool conditions_hold(struct shape_reader *r, const char *path, const struct json_node *list,
                            bool all, bool *holds)
{
    *holds = all;
    for (const struct json_node *at = list->first; at; at = at->next) {
        bool one;

        if (!condition_holds(r, path, at, &one))
            return false;
        if (one != all)
            *holds = !all;
    }
    return true;
}

static bool condition_compute(struct shape_reader *r, const char *path,
                              const struct json_node *json, bool *holds)
{
    const struct json_node *function =
        json->kind == JSON_OBJECT && json->len == 1 ? json->first : NULL;
    struct hf_str a, b;

    if (!function)
        return hf__cli_shape_fail(r, path, ": a condition is not a function", "");
    if (hf_str_equal(function->name, HF_STR("Condition")) && function->kind == JSON_STRING)
        return condition_named(r, path, function->text, holds);
    if (function->kind != JSON_ARRAY)
        return hf__cli_shape_fail(r, path, ": a condition has no list of arguments", "");
    if (hf_str_equal(function->name, HF_STR("Fn::And")))
        return conditions_hold(r, path, function, true, holds);
    if (hf_str_equal(function->name, HF_STR("Fn::Or")))
        return conditions_hold(r, path, function, false, holds);
    if (hf_str_equal(function->name, HF_STR("Fn::Not"))) {
        if (!conditions_hold(r, path, function, true, holds))
            return false;
        *holds = !*holds;
        return true;
    }
    if (!hf_str_equal(function->name, HF_STR("Fn::Equals"))) {
        resolve_fail(r, path, "cannot resolve the condition", function->name);
        return false;
    }
    if (!text_of(r, path, element_at(function, 0), &a) ||
        !text_of(r, path, element_at(function, 1), &b))
        return false;
    *holds = hf_str_equal(a, b);
    return true;
}

static bool condition_holds(struct shape_reader *r, const char *path, const struct json_node *json,
                            bool *holds)
{
    struct template *t = r->user;
    bool fine;

    if (t->depth == DEPTH_MAX)
        return hf__cli_shape_fail(r, path, ": functions are nested too deeply", "");
    t->depth++;
    fine = condition_compute(r, path, json, holds);
    t->depth--;
    return fine;
}

static const struct json_node *if_value(struct shape_reader *r, const char *path,
                                        const struct json_node *argument)
{
    const struct json_node *name = element_at(argument, 0), *chosen;
    bool holds = false;

    if (!name || name->kind != JSON_STRING || argument->len != 3)
        return resolve_fail(r, path, "invalid arguments of", HF_STR("Fn::If"));
    if (!condition_named(r, path, name->text, &holds))
        return NULL;
    chosen = element_at(argument, holds ? 1 : 2);
    return value_of(r, path, chosen);
}

/* ---- resolving ------------------------------------------------------------------------------ */

typedef const struct json_node *function_fn(struct shape_reader *r, const char *path,
                                            const struct json_node *argument);

static const struct json_node *ref_call(struct shape_reader *r, const char *path,
                                        const struct json_node *argument)
{
    if (argument->kind != JSON_STRING)
        return resolve_fail(r, path, "no name for", HF_STR("Ref"));
    return ref_value(r, path, argument->text);
}

static const struct json_node *function_call(struct shape_reader *r, const char *path,
                                             const struct json_node *function)
{
    static const struct {
        const char *name;
        function_fn *call;
    } known[] = {
        {"Ref", ref_call},           {"Fn::Sub", sub_value},       {"Fn::Join", join_value},
        {"Fn::If", if_value},        {"Fn::Select", select_value}, {"Fn::Split", split_value},
        {"Fn::FindInMap", map_value}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (hf_str_equal(function->name, hf_str_from(known[i].name)))
            return known[i].call(r, path, function);
    return resolve_fail(r, path, "cannot resolve the function", function->name);
}

static const struct json_node *value_of(struct shape_reader *r, const char *path,
                                        const struct json_node *json)
{
    struct template *t = r->user;
    const struct json_node *value;

    if (json->kind != JSON_OBJECT || json->len != 1 ||
        (!hf_str_equal(json->first->name, HF_STR("Ref")) &&
         !text_begins(json->first->name, "Fn::")))
        return json;
    if (t->depth == DEPTH_MAX) {
        hf__cli_shape_fail(r, path, ": functions are nested too deeply", "");
        return NULL;
    }
    t->depth++;
    value = function_call(r, path, json->first);
    t->depth--;
    if (!value && !r->error.ptr)
        hf__cli_shape_fail(r, "", "out of memory", "");
    return value;
}

/* ---- resources ------------------------------------------------------------------------------ */

/* What CreateTable has in other places. */
static void table_finish(struct template_table *table, struct table_definition *made)
{
    struct hf_create_table *spec = &table->spec;

    if (table->stream)
        table->stream->enabled = HF_YES;
    spec->stream = table->stream;
    if (table->ttl && table->ttl->enabled == HF_YES)
        made->ttl = table->ttl->attribute;
    if (table->replicas_len) { /* of a global table; its first replica is where the stack is */
        spec->tags = table->replicas[0].tags;
        spec->tags_len = table->replicas[0].tags_len;
        spec->table_class = table->replicas[0].table_class;
        spec->deletion_protection = table->replicas[0].deletion_protection;
        if (!spec->throughput) /* it is in settings of auto scaling, which were listed as ignored */
            spec->billing = HF_BILLING_PAY_PER_REQUEST;
    }
    made->spec = *spec;
}

static bool table_read(struct shape_reader *r, const char *path, const struct json_node *resource)
{
    struct template *t = r->user;
    const struct json_node *properties = hf__cli_json_member(resource, "Properties");
    struct table_definition *made = hf__cli_table_file_add(t->file, resource->name);
    struct template_table table = {.ttl = NULL};

    if (!made)
        return hf__cli_shape_fail(r, "", t->file->error.ptr, "");
    if (!properties)
        return hf__cli_shape_fail(r, path, ": no Properties", "");
    if (!hf__cli_shape_read(r, hf__cli_shape_path(r, path, HF_STR("Properties")), &table_shape,
                            properties, &table))
        return false;
    table_finish(&table, made);
    if (table.replicas_len > 1)
        r->ignored = hf_scope_format(r->s, "%.*s%s%s.Properties.Replicas[1...]", HF_FMT(r->ignored),
                                     r->ignored.len ? ", " : "", path);
    if (made->spec.table.ptr)
        return true;
    made->spec.table = resource->name;
    t->file->unnamed = hf_scope_format(r->s, "%.*s%s%.*s", HF_FMT(t->file->unnamed),
                                       t->file->unnamed.len ? ", " : "", HF_FMT(resource->name));
    return t->file->unnamed.ptr || hf__cli_shape_fail(r, "", "out of memory", "");
}

/* Absent: it has none, or it cannot be resolved. */
static struct hf_str table_name(struct shape_reader *r, const char *path,
                                const struct json_node *resource)
{
    const struct json_node *json =
        hf__cli_json_member(hf__cli_json_member(resource, "Properties"), "TableName");
    struct hf_str name = {0};

    if (json && !text_of(r, path, json, &name)) {
        r->error = (struct hf_str){0};
        name = (struct hf_str){0};
    }
    return name;
}

/* Tables that are made in other ways: told, not created. */
static bool resource_other(struct shape_reader *r, const char *path,
                           const struct json_node *resource, const struct json_node *type)
{
    static const char loop[] = "Fn::ForEach::", kind[] = "AWS::DynamoDB::";

    if (text_begins(resource->name, loop) &&
        memmem(resource->raw.ptr, resource->raw.len, kind, sizeof(kind) - 1))
        return hf__cli_shape_fail(r, path,
                                  ": not supported; use the template that 'aws cloudformation "
                                  "get-template --template-stage Processed' prints",
                                  "");
    if (type && hf_str_equal(type->text, HF_STR("AWS::Serverless::SimpleTable")))
        r->ignored = hf_scope_format(r->s, "%.*s%s%s (AWS::Serverless::SimpleTable)",
                                     HF_FMT(r->ignored), r->ignored.len ? ", " : "", path);
    return r->ignored.ptr || hf__cli_shape_fail(r, "", "out of memory", "");
}

static bool resource_read(struct shape_reader *r, const struct json_node *resource)
{
    const struct template *t = r->user;
    const struct json_node *type = hf__cli_json_member(resource, "Type");
    const struct json_node *condition = hf__cli_json_member(resource, "Condition");
    const char *path = hf__cli_shape_path(r, "Resources", resource->name);
    bool holds = true;

    if (!type || (!hf_str_equal(type->text, HF_STR("AWS::DynamoDB::Table")) &&
                  !hf_str_equal(type->text, HF_STR("AWS::DynamoDB::GlobalTable"))))
        return resource_other(r, path, resource, type);
    if (hf__cli_table_file_leaves(t->file, resource->name, table_name(r, path, resource)))
        return true;
    if (condition && condition->kind != JSON_STRING)
        return hf__cli_shape_fail(r, path, ".Condition: expected a string", "");
    if (condition && !condition_named(r, path, condition->text, &holds))
        return false;
    return !holds || table_read(r, path, resource);
}

bool hf__cli_table_template_read(struct table_file *file, const struct json_node *json)
{
    struct template t = {.file = file, .root = json};
    struct shape_reader r = {.s = file->s,
                             .what = "a table in CloudFormation",
                             .lenient = true,
                             .resolve = value_of,
                             .user = &t,
                             .ignored = HF_STR("")};
    const struct json_node *resources = hf__cli_json_member(json, "Resources");

    if (resources->kind != JSON_OBJECT)
        return hf__cli_table_file_take(file, &r,
                                       hf__cli_shape_fail(&r, "Resources", ": expected an object",
                                                          ""));
    for (const struct json_node *at = resources->first; at; at = at->next)
        if (!resource_read(&r, at))
            return hf__cli_table_file_take(file, &r, false);
    return hf__cli_table_file_take(file, &r, true);
}
