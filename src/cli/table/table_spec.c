/*
 * cli/table/table_spec.c: from CreateTable's JSON to the struct that the library takes.
 *
 * Objects are tables of members: name, kind, where it goes. A member that is in no table is an
 * error, as it would otherwise be forgotten without a word: most are slips, and the rest would make
 * another table than the file describes.
 */
#include "cli/table/table_spec.h"

#include "cli/frame/json.h"

#include <string.h>

enum member_kind {
    MEMBER_TEXT = 1, /* struct hf_str */
    MEMBER_TEXTS,    /* an array of them, and its length */
    MEMBER_NUMBER,   /* int64_t */
    MEMBER_FLAG,     /* enum hf_flag */
    MEMBER_WORD,     /* an enum: which of `words`, from 1 */
    MEMBER_OBJECT,   /* a pointer to a struct */
    MEMBER_LIST      /* a pointer to structs, and its length */
};

struct shape;

struct member {
    const char *name;
    enum member_kind kind;
    size_t offset;
    size_t len_offset;         /* of MEMBER_LIST and MEMBER_TEXTS */
    const char *words;         /* of MEMBER_WORD, with blanks between them */
    const struct shape *shape; /* of MEMBER_OBJECT and MEMBER_LIST */
};

struct shape {
    size_t size;
    const struct member *members;
    size_t len;
};

#define SHAPE(name, type)                                                                          \
    static const struct shape name = {sizeof(struct type), name##_members,                         \
                                      sizeof(name##_members) / sizeof(name##_members[0])}
#define AT(type, field) .offset = offsetof(struct type, field)
#define LIST_AT(type, field) AT(type, field), .len_offset = offsetof(struct type, field##_len)

/* ---- the shapes ----------------------------------------------------------------------------- */

static const struct member attribute_members[] = {
    {"AttributeName", MEMBER_TEXT, AT(hf_attribute_definition, name)},
    {"AttributeType", MEMBER_WORD, AT(hf_attribute_definition, type), .words = "S N B"},
};
SHAPE(attribute, hf_attribute_definition);

static const struct member key_members[] = {
    {"AttributeName", MEMBER_TEXT, AT(hf_key_element, name)},
    {"KeyType", MEMBER_WORD, AT(hf_key_element, type), .words = "HASH RANGE"},
};
SHAPE(key, hf_key_element);

static const struct member throughput_members[] = {
    {"ReadCapacityUnits", MEMBER_NUMBER, AT(hf_throughput, read_units)},
    {"WriteCapacityUnits", MEMBER_NUMBER, AT(hf_throughput, write_units)},
};
SHAPE(throughput, hf_throughput);

static const struct member on_demand_members[] = {
    {"MaxReadRequestUnits", MEMBER_NUMBER, AT(hf_on_demand_throughput, max_read_units)},
    {"MaxWriteRequestUnits", MEMBER_NUMBER, AT(hf_on_demand_throughput, max_write_units)},
};
SHAPE(on_demand, hf_on_demand_throughput);

static const struct member warm_members[] = {
    {"ReadUnitsPerSecond", MEMBER_NUMBER, AT(hf_warm_throughput, read_units)},
    {"WriteUnitsPerSecond", MEMBER_NUMBER, AT(hf_warm_throughput, write_units)},
};
SHAPE(warm, hf_warm_throughput);

static const struct member projection_members[] = {
    {"ProjectionType", MEMBER_WORD, AT(hf_projection, type), .words = "ALL KEYS_ONLY INCLUDE"},
    {"NonKeyAttributes", MEMBER_TEXTS, LIST_AT(hf_projection, attributes)},
};
SHAPE(projection, hf_projection);

static const struct member secondary_members[] = {
    {"IndexName", MEMBER_TEXT, AT(hf_index, name)},
    {"KeySchema", MEMBER_LIST, LIST_AT(hf_index, key_schema), .shape = &key},
    {"Projection", MEMBER_OBJECT, AT(hf_index, projection), .shape = &projection},
    {"ProvisionedThroughput", MEMBER_OBJECT, AT(hf_index, throughput), .shape = &throughput},
    {"OnDemandThroughput", MEMBER_OBJECT, AT(hf_index, on_demand_throughput), .shape = &on_demand},
    {"WarmThroughput", MEMBER_OBJECT, AT(hf_index, warm_throughput), .shape = &warm},
};
SHAPE(secondary, hf_index);

static const struct member stream_members[] = {
    {"StreamEnabled", MEMBER_FLAG, AT(hf_stream_spec, enabled)},
    {"StreamViewType", MEMBER_WORD, AT(hf_stream_spec, view),
     .words = "NEW_IMAGE OLD_IMAGE NEW_AND_OLD_IMAGES KEYS_ONLY"},
};
SHAPE(stream, hf_stream_spec);

static const struct member sse_members[] = {
    {"Enabled", MEMBER_FLAG, AT(hf_sse_spec, enabled)},
    {"SSEType", MEMBER_WORD, AT(hf_sse_spec, type), .words = "AES256 KMS"},
    {"KMSMasterKeyId", MEMBER_TEXT, AT(hf_sse_spec, kms_key_id)},
};
SHAPE(sse, hf_sse_spec);

static const struct member tag_members[] = {
    {"Key", MEMBER_TEXT, AT(hf_tag, key)},
    {"Value", MEMBER_TEXT, AT(hf_tag, value)},
};
SHAPE(tag, hf_tag);

static const struct member table_members[] = {
    {"TableName", MEMBER_TEXT, AT(hf_create_table, table)},
    {"AttributeDefinitions", MEMBER_LIST, LIST_AT(hf_create_table, attributes),
     .shape = &attribute},
    {"KeySchema", MEMBER_LIST, LIST_AT(hf_create_table, key_schema), .shape = &key},
    {"LocalSecondaryIndexes", MEMBER_LIST, LIST_AT(hf_create_table, local_indexes),
     .shape = &secondary},
    {"GlobalSecondaryIndexes", MEMBER_LIST, LIST_AT(hf_create_table, global_indexes),
     .shape = &secondary},
    {"BillingMode", MEMBER_WORD, AT(hf_create_table, billing),
     .words = "PROVISIONED PAY_PER_REQUEST"},
    {"ProvisionedThroughput", MEMBER_OBJECT, AT(hf_create_table, throughput), .shape = &throughput},
    {"OnDemandThroughput", MEMBER_OBJECT, AT(hf_create_table, on_demand_throughput),
     .shape = &on_demand},
    {"WarmThroughput", MEMBER_OBJECT, AT(hf_create_table, warm_throughput), .shape = &warm},
    {"StreamSpecification", MEMBER_OBJECT, AT(hf_create_table, stream), .shape = &stream},
    {"SSESpecification", MEMBER_OBJECT, AT(hf_create_table, sse), .shape = &sse},
    {"Tags", MEMBER_LIST, LIST_AT(hf_create_table, tags), .shape = &tag},
    {"TableClass", MEMBER_WORD, AT(hf_create_table, table_class),
     .words = "STANDARD STANDARD_INFREQUENT_ACCESS"},
    {"DeletionProtectionEnabled", MEMBER_FLAG, AT(hf_create_table, deletion_protection)},
    {"ResourcePolicy", MEMBER_TEXT, AT(hf_create_table, resource_policy)},
};
SHAPE(table, hf_create_table);

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    struct hf_scope *s;
    struct hf_str error;
};

static bool member_refuse(struct reading *r, const char *path, const char *what, const char *more)
{
    r->error = hf_scope_format(r->s, "%s%s%s", path, what, more);
    if (!r->error.ptr)
        r->error = HF_STR("out of memory");
    return false;
}

static bool read_object(struct reading *r, const char *path, const struct shape *shape,
                        const struct json_node *json, void *to);

static bool read_number(struct reading *r, const char *path, const struct json_node *json,
                        int64_t *to)
{
    int64_t sum = 0;

    if (json->kind != JSON_NUMBER || json->text.len > 15)
        return member_refuse(r, path, ": expected a whole number", "");
    for (size_t i = 0; i < json->text.len; i++) {
        if (i == 0 && json->text.ptr[0] == '-' && json->text.len > 1)
            continue;
        if (json->text.ptr[i] < '0' || json->text.ptr[i] > '9')
            return member_refuse(r, path, ": expected a whole number", "");
        sum = sum * 10 + (json->text.ptr[i] - '0');
    }
    *to = json->text.ptr[0] == '-' ? -sum : sum;
    if (*to == 0)
        *to = HF_ZERO; /* 0 stands for a member that is not there */
    return true;
}

static bool read_word(struct reading *r, const char *path, const char *words,
                      const struct json_node *json, unsigned *to)
{
    unsigned number = 1;

    for (const char *word = words; json->kind == JSON_STRING && *word; number++) {
        size_t len = strcspn(word, " ");

        if (hf_str_equal(hf_str_of(word, len), json->text)) {
            *to = number;
            return true;
        }
        word += len;
        word += *word == ' ';
    }
    return member_refuse(r, path, ": expected one of: ", words);
}

static bool read_texts(struct reading *r, const char *path, const struct json_node *json,
                       const struct member *member, char *to)
{
    struct hf_str *texts = hf_scope_alloc(r->s, (json->len + 1) * sizeof(*texts));
    const struct hf_str *list = texts;
    size_t len = 0;

    if (!texts)
        return member_refuse(r, "", "out of memory", "");
    if (json->kind != JSON_ARRAY)
        return member_refuse(r, path, ": expected a list", "");
    for (const struct json_node *element = json->first; element; element = element->next) {
        if (element->kind != JSON_STRING)
            return member_refuse(r, path, ": expected strings", "");
        texts[len++] = element->text;
    }
    memcpy(to + member->offset, &list, sizeof(list));
    memcpy(to + member->len_offset, &len, sizeof(len));
    return true;
}

/* One struct, or a list of them. */
static bool read_structs(struct reading *r, const char *path, const struct json_node *json,
                         const struct member *member, char *to)
{
    bool many = member->kind == MEMBER_LIST;
    size_t size = member->shape->size;
    char *structs = hf_scope_alloc(r->s, ((many ? json->len : 1) + 1) * size);
    const char *list = structs;
    size_t len = 0;

    if (!structs)
        return member_refuse(r, "", "out of memory", "");
    if (!many) {
        memset(structs, 0, size);
        memcpy(to + member->offset, &list, sizeof(list));
        return read_object(r, path, member->shape, json, structs);
    }
    if (json->kind != JSON_ARRAY)
        return member_refuse(r, path, ": expected a list", "");
    for (const struct json_node *element = json->first; element; element = element->next) {
        struct hf_str inner = hf_scope_format(r->s, "%s[%zu]", path, len);

        memset(structs + len * size, 0, size);
        if (!read_object(r, inner.ptr ? inner.ptr : path, member->shape, element,
                         structs + len * size))
            return false;
        len++;
    }
    memcpy(to + member->offset, &list, sizeof(list));
    memcpy(to + member->len_offset, &len, sizeof(len));
    return true;
}

static bool read_member(struct reading *r, const char *path, const struct json_node *json,
                        const struct member *member, char *to)
{
    enum hf_flag flag;
    unsigned word = 0;
    int64_t number = 0;

    switch (member->kind) {
    case MEMBER_TEXT:
        if (json->kind != JSON_STRING)
            return member_refuse(r, path, ": expected a string", "");
        memcpy(to + member->offset, &json->text, sizeof(json->text));
        return true;
    case MEMBER_NUMBER:
        if (!read_number(r, path, json, &number))
            return false;
        memcpy(to + member->offset, &number, sizeof(number));
        return true;
    case MEMBER_FLAG:
        if (json->kind != JSON_TRUE && json->kind != JSON_FALSE)
            return member_refuse(r, path, ": expected true or false", "");
        flag = json->kind == JSON_TRUE ? HF_YES : HF_NO;
        memcpy(to + member->offset, &flag, sizeof(flag));
        return true;
    case MEMBER_WORD:
        if (!read_word(r, path, member->words, json, &word))
            return false;
        memcpy(to + member->offset, &word, sizeof(word));
        return true;
    case MEMBER_TEXTS:
        return read_texts(r, path, json, member, to);
    case MEMBER_OBJECT:
    case MEMBER_LIST:
        break;
    }
    return read_structs(r, path, json, member, to);
}

static const struct member *find_member(const struct shape *shape, struct hf_str name)
{
    for (size_t i = 0; i < shape->len; i++)
        if (hf_str_equal(hf_str_from(shape->members[i].name), name))
            return &shape->members[i];
    return NULL;
}

static bool read_object(struct reading *r, const char *path, const struct shape *shape,
                        const struct json_node *json, void *to)
{
    if (json->kind != JSON_OBJECT)
        return member_refuse(r, *path ? path : "the table", ": expected an object", "");
    for (const struct json_node *part = json->first; part; part = part->next) {
        const struct member *member = find_member(shape, part->name);
        struct hf_str inner =
            hf_scope_format(r->s, "%s%s%.*s", path, *path ? "." : "", HF_FMT(part->name));

        if (!inner.ptr)
            return member_refuse(r, "", "out of memory", "");
        if (!member)
            return member_refuse(r, inner.ptr, ": unknown member of CreateTable", "");
        if (part->kind != JSON_NULL && !read_member(r, inner.ptr, part, member, to))
            return false;
    }
    return true;
}

_Static_assert(sizeof(enum hf_flag) == sizeof(unsigned) &&
                   sizeof(enum hf_scalar_type) == sizeof(unsigned),
               "enums are copied as what they are");

bool hf__cli_table_spec_read(struct hf_scope *s, struct hf_str text, struct hf_create_table *spec,
                             struct hf_str *error)
{
    struct reading r = {.s = s};
    const struct json_node *json = hf__cli_json_read(s, text, error);

    memset(spec, 0, sizeof(*spec));
    if (!json)
        return false;
    if (read_object(&r, "", &table, json, spec) &&
        (spec->table.len || member_refuse(&r, "TableName: missing", "", "")))
        return true;
    *error = r.error;
    return false;
}
