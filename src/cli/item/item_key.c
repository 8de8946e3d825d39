/*
 * cli/item/item_key.c: keys as words of the command line. See item.h.
 *
 * The table says which types its keys have, so `holdfast item get orders ann 2` needs no quotes and
 * no types: a word for a string is taken as it is, one for a number has to be a number, one for bytes
 * has to be base64.
 */
#include "cli/item/item.h"

#include <assert.h>

#include "base/base.h"
#include "base/base64.h"

static enum hf_scalar_type type_of(const struct hf_table_description *table, struct hf_str name)
{
    for (size_t i = 0; i < table->attributes_len; i++)
        if (hf_str_equal(table->attributes[i].name, name))
            return table->attributes[i].type;
    return HF_SCALAR_S;
}

/* False: the key has more parts than words can name. */
static bool schema_read(const struct hf_table_description *table,
                        const struct hf_key_element *elements, size_t len, struct item_keys *keys)
{
    assert(elements && len > 0);
    *keys = (struct item_keys){.hash = {.name = {0}}};
    for (size_t i = 0; i < len; i++) {
        struct key_part *part = elements[i].type == HF_KEY_HASH ? &keys->hash : &keys->range;

        if (part->name.ptr)
            return false;
        *part = (struct key_part){elements[i].name, type_of(table, elements[i].name)};
    }
    return true;
}

static const struct hf_index_description *index_find(const struct hf_index_description *indexes,
                                                     size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(indexes[i].name, name))
            return &indexes[i];
    return NULL;
}

enum hf_status hf__cli_item_keys(struct command_ctx *c, struct hf_str table, struct hf_str index,
                                 struct item_keys *keys)
{
    const struct hf_index_description *found;
    const struct hf_table_description *about;
    struct hf_describe_table_result result;
    bool readable;

    TRY(hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = table}, &result));
    about = result.table;
    if (!index.ptr) {
        readable = schema_read(about, about->key_schema, about->key_schema_len, keys);
        assert(readable);
        return HF_OK;
    }
    found = index_find(about->global_indexes, about->global_indexes_len, index);
    if (!found)
        found = index_find(about->local_indexes, about->local_indexes_len, index);
    if (!found)
        return hf__command_fail(c, CLI_NOT_FOUND, "table %.*s has no index %.*s", HF_FMT(table),
                                HF_FMT(index));
    assert(found->key_schema_len > 0);
    if (!schema_read(about, found->key_schema, found->key_schema_len, keys))
        return hf__command_fail(c, CLI_USAGE,
                                "the key of index %.*s has several attributes of a "
                                "kind: use --where",
                                HF_FMT(index));
    return HF_OK;
}

static enum hf_status bytes_of(struct command_ctx *c, const struct key_part *part,
                               struct hf_str word, struct hf_str *bytes)
{
    uint8_t *room = hf_scope_alloc(c->scope, hf__base64_decoded_max(word.len) + 1);
    size_t len = 0;

    assert(part->type == HF_SCALAR_B);
    if (!room)
        return HF_NOMEM;
    if (hf__base64_decode(word, room, &len) != BASE64_OK)
        return hf__command_fail(c, CLI_USAGE, "%.*s is binary: '%.*s' is not base64",
                                HF_FMT(part->name), HF_FMT(word));
    *bytes = hf_str_of((const char *)room, len);
    return HF_OK;
}

enum hf_status hf__cli_item_key_value(struct command_ctx *c, const struct key_part *part,
                                      struct hf_str word, struct hf_value *value)
{
    struct hf_attr attr = {.type = HF_TYPE_S, .text = word};

    assert(part->name.len > 0 && part->type);
    if (part->type == HF_SCALAR_N)
        attr.type = HF_TYPE_N;
    if (part->type == HF_SCALAR_B) {
        attr.type = HF_TYPE_B;
        TRY(bytes_of(c, part, word, &attr.text));
    }
    *value = hf_value_make(c->scope, attr);
    if (attr.type == HF_TYPE_N &&
        hf_item_check(c->scope, HF_ITEM(c->scope, HF_V("n", *value))) != HF_OK)
        return hf__command_fail(c, CLI_USAGE, "%.*s is a number: '%.*s' is none",
                                HF_FMT(part->name), HF_FMT(word));
    return HF_OK;
}

enum hf_status hf__cli_item_key(struct command_ctx *c, const struct item_keys *keys,
                                size_t words_len, const char *const *words, struct hf_item *key)
{
    const struct key_part *parts[] = {&keys->hash, &keys->range};
    size_t need = keys->range.name.ptr ? 2 : 1;
    struct hf_attr attrs[2];

    assert(keys->hash.name.len > 0);
    if (words_len != need && need == 2)
        return hf__command_fail(c, CLI_USAGE, "the key has two parts: %.*s and %.*s",
                                HF_FMT(keys->hash.name), HF_FMT(keys->range.name));
    if (words_len != need)
        return hf__command_fail(c, CLI_USAGE, "the key has one part: %.*s",
                                HF_FMT(keys->hash.name));
    for (size_t i = 0; i < need; i++) {
        attrs[i] = (struct hf_attr){.name = parts[i]->name};
        TRY(hf__cli_item_key_value(c, parts[i], hf_str_from(words[i]), &attrs[i].value));
    }
    *key = hf_item_make(c->scope, attrs, need);
    return HF_OK;
}
