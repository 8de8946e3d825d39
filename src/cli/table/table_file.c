/*
 * cli/table/table_file.c: a file that defines tables: which format it has. See table_file.h.
 */
#include "cli/table/table_file.h"

#include "cli/frame/options/nearest.h"

#include <assert.h>
#include <string.h>

static bool file_fail(struct table_file *file, const char *what)
{
    assert(what);
    file->error = hf_scope_format(file->s, "%s", what);
    return false;
}

struct table_definition *hf__cli_table_file_add(struct table_file *file, struct hf_str label)
{
    struct table_definition *table;

    if (!file->tables)
        file->tables = hf_scope_alloc(file->s, TABLE_FILE_TABLES_MAX * sizeof(*file->tables));
    if (!file->tables || file->tables_len == TABLE_FILE_TABLES_MAX) {
        file->error = file->tables ? hf_scope_format(file->s, "more than %d tables in one file",
                                                     (int)TABLE_FILE_TABLES_MAX)
                                   : HF_STR("out of memory");
        return NULL;
    }
    table = &file->tables[file->tables_len++];
    assert(file->tables_len <= TABLE_FILE_TABLES_MAX);
    *table = (struct table_definition){.label = label};
    return table;
}

static bool list_has(const struct option_list *list, struct hf_str word)
{
    for (size_t i = 0; i < list->len; i++)
        if (hf_str_equal(list->values[i], word))
            return true;
    return false;
}

bool hf__cli_table_file_leaves(struct table_file *file, struct hf_str label, struct hf_str name)
{
    struct table_definition *table;

    assert(label.ptr || name.ptr);
    if (!file->only || !file->only->len || list_has(file->only, label) ||
        (name.ptr && list_has(file->only, name)))
        return false;
    table = hf__cli_table_file_add(file, label);
    if (table) {
        table->left_out = true;
        table->spec.table = name.ptr ? name : label;
    }
    return true;
}

struct hf_str hf__cli_table_file_parameter(const struct table_file *file, struct hf_str name)
{
    const struct option_list *list = file->parameters;
    struct hf_str value = {0};

    for (size_t i = 0; list && i < list->len; i++) { /* the last one counts */
        struct hf_str word = list->values[i];

        if (word.len <= name.len || word.ptr[name.len] != '=' ||
            memcmp(word.ptr, name.ptr, name.len) != 0)
            continue;
        value = hf_str_of(word.ptr + name.len + 1, word.len - name.len - 1);
        file->used[i] = true;
    }
    return value;
}

bool hf__cli_table_file_take(struct table_file *file, const struct shape_reader *r, bool fine)
{
    assert(fine || r->error.ptr);
    file->ignored = r->ignored;
    if (!fine)
        file->error = r->error;
    return fine;
}

const struct json_node *hf__cli_table_node_text(struct hf_scope *s, struct hf_str text)
{
    struct json_node *node = hf_scope_alloc(s, sizeof(*node));

    if (node)
        *node = (struct json_node){.kind = JSON_STRING, .text = text, .raw = text};
    return node;
}

/* ---- formats -------------------------------------------------------------------------------- */

static bool text_has(struct hf_str text, struct hf_str word)
{
    return memmem(text.ptr, text.len, word.ptr, word.len) != NULL;
}

static bool text_begins(struct hf_str text, struct hf_str start)
{
    return text.len >= start.len && memcmp(text.ptr, start.ptr, start.len) == 0;
}

/* Files of the same tools that are not JSON get an advice. */
static bool file_no_json(struct table_file *file, struct hf_str text, struct hf_str error)
{
    const char *advice = "";

    if (text_has(text, HF_STR("resource \"aws_dynamodb_table\"")))
        advice = "; this looks like Terraform's language: use the output of 'terraform show -json'";
    else if (text_has(text, HF_STR("Resources:")))
        advice = "; this looks like YAML: convert the template to JSON first";
    file->error = hf_scope_format(file->s, "%.*s%s", HF_FMT(error), advice);
    return false;
}

/* The object without that member; NULL: no memory. */
static const struct json_node *node_without(struct hf_scope *s, const struct json_node *json,
                                            const char *name)
{
    struct json_node *made = hf_scope_alloc(s, (json->len + 1) * sizeof(*made));
    struct json_node **last;

    if (!made)
        return NULL;
    made[0] = *json;
    made[0].len = 0;
    last = &made[0].first;
    for (const struct json_node *at = json->first; at; at = at->next)
        if (!hf_str_equal(at->name, hf_str_from(name))) {
            struct json_node *copy = &made[++made[0].len];

            *copy = *at;
            *last = copy;
            last = &copy->next;
        }
    *last = NULL;
    return made;
}

/* {"AttributeName": "expires", "Enabled": true} */
static bool read_expiry(struct table_file *file, const struct json_node *json,
                        struct table_definition *table)
{
    const struct json_node *name = hf__cli_json_member(json, "AttributeName");
    const struct json_node *enabled = hf__cli_json_member(json, "Enabled");

    if (json->kind != JSON_OBJECT || !name || name->kind != JSON_STRING || !name->text.len ||
        !enabled || (enabled->kind != JSON_TRUE && enabled->kind != JSON_FALSE))
        return file_fail(file, TABLE_TTL_MEMBER " has to have AttributeName and Enabled");
    if (enabled->kind == JSON_TRUE)
        table->ttl = name->text;
    return true;
}

static bool read_request(struct table_file *file, const struct json_node *json)
{
    struct table_definition *table = hf__cli_table_file_add(file, (struct hf_str){0});
    const struct json_node *described =
        json->kind == JSON_OBJECT ? hf__cli_json_member(json, "Table") : NULL;
    const struct json_node *expiry =
        json->kind == JSON_OBJECT ? hf__cli_json_member(json, TABLE_TTL_MEMBER) : NULL;

    if (!table || (expiry && !read_expiry(file, expiry, table)))
        return false;
    if (expiry && !(json = node_without(file->s, json, TABLE_TTL_MEMBER)))
        return file_fail(file, "out of memory");
    if (described && json->len == 1) {
        if (!hf__cli_table_spec_read_described(file->s, described, &table->spec, &file->error))
            return false;
    } else if (!hf__cli_table_spec_read(file->s, json, &table->spec, &file->error)) {
        return false;
    }
    table->label = table->spec.table;
    return true;
}

/* Every table has a name, and no two have the same. */
static bool names_check(struct table_file *file)
{
    for (size_t i = 0; i < file->tables_len; i++)
        for (size_t j = 0; j < i; j++)
            if (!file->tables[i].left_out && !file->tables[j].left_out &&
                hf_str_equal(file->tables[i].spec.table, file->tables[j].spec.table)) {
                file->error =
                    hf_scope_format(file->s, "%.*s and %.*s are both called '%.*s'",
                                    HF_FMT(file->tables[j].label), HF_FMT(file->tables[i].label),
                                    HF_FMT(file->tables[i].spec.table));
                return false;
            }
    return true;
}

/* Is it a parameter of the template, or a variable of the configuration, which may be in several blocks? */
static bool is_declared(const struct json_node *json, const char *name, struct nearest *nearest)
{
    static const char *const blocks[] = {"Parameters", "variable"};

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        const struct json_node *whole = hf__cli_json_member(json, blocks[i]);
        bool several = whole && whole->kind == JSON_ARRAY;

        for (const struct json_node *block = several ? whole->first : whole; block;
             block = several ? block->next : NULL) {
            if (hf__cli_json_member(block, name))
                return true;
            for (const struct json_node *at = block->kind == JSON_OBJECT ? block->first : NULL; at;
                 at = at->next)
                hf__nearest_offer(nearest, at->name.ptr);
        }
    }
    return false;
}

/* A parameter that the file does not have is a slip. */
static bool parameters_check(struct table_file *file, const struct json_node *json)
{
    const struct option_list *list = file->parameters;

    for (size_t i = 0; list && i < list->len; i++) {
        const char *end = memchr(list->values[i].ptr, '=', list->values[i].len);
        size_t len = end ? (size_t)(end - list->values[i].ptr) : list->values[i].len;
        struct hf_str name = hf_scope_copy(file->s, hf_str_of(list->values[i].ptr, len));
        struct nearest nearest = {.word = name.ptr};

        if (!name.ptr)
            return file_fail(file, "out of memory");
        if (file->used[i] || text_begins(name, HF_STR("AWS::")) ||
            is_declared(json, name.ptr, &nearest))
            continue;
        file->error = hf_scope_format(file->s, "the file has no parameter '%.*s'%s%s%s",
                                      HF_FMT(name), nearest.best ? "; did you mean '" : "",
                                      nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
        return false;
    }
    return true;
}

bool hf__cli_table_file_read(struct table_file *file, struct hf_str text)
{
    size_t parameters = file->parameters ? file->parameters->len : 0;
    struct hf_str error = {0};
    const struct json_node *json = hf__cli_json_read(file->s, text, &error);
    bool fine;

    assert(file->s);
    file->ignored = file->unnamed = HF_STR("");
    file->used = hf_scope_alloc(file->s, parameters + 1);
    if (!file->used)
        return file_fail(file, "out of memory");
    memset(file->used, 0, parameters + 1);
    if (!json)
        return file_no_json(file, text, error);
    file->is_template = true;
    if (hf__cli_json_member(json, "Resources"))
        fine = hf__cli_table_template_read(file, json);
    else if (hf__cli_table_is_terraform(json))
        fine = hf__cli_table_terraform_read(file, json);
    else {
        file->is_template = false;
        fine = read_request(file, json);
    }
    if (!fine || !parameters_check(file, json))
        return false;
    if (!file->tables_len)
        return file_fail(file, "the file defines no table of DynamoDB");
    return names_check(file);
}
