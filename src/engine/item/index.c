/*
 * engine/item/index.c: entries of secondary indexes.
 *
 * An item has an entry in an index when it has all of the index's key attributes, of the right
 * types, not empty and within the size limits. The entry's stored key is the index's key parts
 * followed by the table's, so that items with equal index keys lie side by side in the order of
 * their table keys; its value is a row that holds the projected attributes.
 */
#include "base/buf.h"
#include "engine/layout.h"
#include "engine/table/schema.h"
#include "model/value.h"

/* All key attributes exist, with the right types, not empty, and together not too long. */
static bool attrs_fit(const struct key_attr *attrs, size_t attrs_len, struct hf_item item,
                      size_t max)
{
    size_t sum = 0;

    for (size_t i = 0; i < attrs_len; i++) {
        struct hf_value value = hf_item_get(item, attrs[i].name);
        size_t len;

        if (hf_value_type(value) != attrs[i].type)
            return false;
        len = hf__value_scalar(value).len;
        if (len == 0)
            return false;
        sum += len;
    }
    return sum <= max;
}

bool hf__index_has(const struct index *index, struct hf_item item)
{
    const struct key_schema *key = &index->key;

    return attrs_fit(key->hash, key->hash_len, item, KEY_HASH_MAX) &&
           attrs_fit(key->range, key->range_len, item, KEY_RANGE_MAX);
}

bool hf__index_key(struct hf__buf *buf, const struct table *table, const struct index *index,
                   struct hf_item item)
{
    if (!item.ptr || !hf__index_has(index, item))
        return false;
    hf__stored_key_prefix(buf, SPACE_INDEX, index->id);
    hf__stored_key_parts(buf, &index->key, item);
    hf__stored_key_parts(buf, &table->key, item);
    return true;
}

bool hf__index_projects(const struct table *table, const struct index *index, struct hf_str name)
{
    if (index->projection == HF_PROJECT_ALL || hf__schema_is_key(&index->key, name) ||
        hf__schema_is_key(&table->key, name))
        return true;
    for (size_t i = 0; i < index->included_len; i++)
        if (hf_str_equal(index->included[i], name))
            return true;
    return false;
}

struct hf_item hf__index_project(struct hf_scope *s, const struct table *table,
                                 const struct index *index, struct hf_item item)
{
    struct hf__buf buf = {.scope = s};
    struct value_walk walk;
    size_t open;

    if (index->projection == HF_PROJECT_ALL)
        return item;
    open = hf__build_open(&buf, HF_TYPE_M);
    walk = hf__value_walk(hf_item_value(item));
    while (hf__value_next(&walk)) {
        if (hf__index_projects(table, index, walk.name)) {
            hf__build_name(&buf, walk.name);
            hf__build_value(&buf, walk.value);
        }
    }
    hf__build_close(&buf, open);
    return hf__build_item_from(&buf, 0);
}
