/*
 * engine/table/schema.c: items and keys against the schema of their table, and the stored keys that
 * follow from them.
 *
 * The order of checks and the texts are DynamoDB's; a PutItem and a GetItem report the same
 * mistake in different words, and a put of a batch in those of a GetItem.
 */
#include "engine/table/schema.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "expr/expr.h"
#include "model/key.h"
#include "model/value.h"

#define INVALID_VALUES "One or more parameter values were invalid: "
#define NOT_VALID "One or more parameter values are not valid. "
#define NO_MATCH "The provided key element does not match the schema"

static bool is_empty(struct hf_value value)
{
    return hf_value_type(value) != HF_TYPE_N && hf__value_scalar(value).len == 0;
}

static const char *empty_word(enum hf_type type)
{
    return type == HF_TYPE_B ? "binary" : "string";
}

static enum hf_status check_size(struct hf_scope *s, struct hf_value value, bool hash)
{
    size_t len = hf__value_scalar(value).len;

    if (hash && len > KEY_HASH_MAX)
        return hf__fail(s, HF_INVALID,
                        INVALID_VALUES
                        "Size of hashkey has exceeded the maximum size limit of2048 bytes");
    if (!hash && len > KEY_RANGE_MAX)
        return hf__fail(s, HF_INVALID,
                        INVALID_VALUES "Aggregated size of all range keys has exceeded the size "
                                       "limit of 1024 bytes");
    return HF_OK;
}

static enum hf_status check_not_empty(struct hf_scope *s, const struct key_attr *attr,
                                      struct hf_value value)
{
    if (!is_empty(value))
        return HF_OK;
    return hf__fail(s, HF_INVALID,
                    NOT_VALID "The AttributeValue for a key attribute cannot contain an empty %s "
                              "value. Key: %.*s",
                    empty_word(attr->type), HF_FMT(attr->name));
}

enum hf_status hf__schema_check_value(struct hf_scope *s, const struct key_attr *attr, bool hash,
                                      struct hf_value value)
{
    TRY(check_not_empty(s, attr, value));
    return check_size(s, value, hash);
}

/* Call `check` for the hash attributes, then for the range attributes. */
typedef enum hf_status attr_check(struct hf_scope *s, const struct key_attr *attr, bool hash,
                                  struct hf_item item);

static enum hf_status each_attr(struct hf_scope *s, const struct key_schema *key,
                                struct hf_item item, attr_check *check)
{
    for (size_t i = 0; i < key->hash_len; i++)
        TRY(check(s, &key->hash[i], true, item));
    for (size_t i = 0; i < key->range_len; i++)
        TRY(check(s, &key->range[i], false, item));
    return HF_OK;
}

static enum hf_status check_put_attr(struct hf_scope *s, const struct key_attr *attr, bool hash,
                                     struct hf_item item)
{
    struct hf_value value = hf_item_get(item, attr->name);
    enum hf_type type = hf_value_type(value);

    if (type == HF_TYPE_NONE)
        return hf__fail(s, HF_INVALID, INVALID_VALUES "Missing the key %.*s in the item",
                        HF_FMT(attr->name));
    if (type != attr->type)
        return hf__fail(s, HF_INVALID,
                        INVALID_VALUES "Type mismatch for key %.*s expected: %s actual: %s",
                        HF_FMT(attr->name), hf__type_name(attr->type), hf__type_name(type));
    return hf__schema_check_value(s, attr, hash, value);
}

enum hf_status hf__schema_check_put(struct hf_scope *s, const struct table *table,
                                    struct hf_item item)
{
    return each_attr(s, &table->key, item, check_put_attr);
}

const struct key_attr *hf__schema_attr(const struct key_schema *key, size_t at)
{
    assert(at < key->hash_len + key->range_len);
    return at < key->hash_len ? &key->hash[at] : &key->range[at - key->hash_len];
}

enum hf_status hf__schema_check_batch_put(struct hf_scope *s, const struct table *table,
                                          struct hf_item item)
{
    struct hf_value values[2 * KEY_ATTRS_MAX];
    size_t len = table->key.hash_len + table->key.range_len;

    assert(len > 0 && len <= ARRAY_LEN(values));
    for (size_t i = 0; i < len; i++) {
        const struct key_attr *attr = hf__schema_attr(&table->key, i);

        values[i] = hf_item_get(item, attr->name);
        if (hf_value_type(values[i]) != attr->type)
            return hf__fail(s, HF_INVALID, NO_MATCH);
    }
    for (size_t i = 0; i < len; i++)
        TRY(hf__schema_check_value(s, hf__schema_attr(&table->key, i), i < table->key.hash_len,
                                   values[i]));
    return HF_OK;
}

enum hf_status hf__schema_check_key(struct hf_scope *s, const struct table *table,
                                    struct hf_item key)
{
    if (hf_item_count(key) != table->key.hash_len + table->key.range_len)
        return hf__fail(s, HF_INVALID, NO_MATCH);
    /* the same messages; the key has no other attributes */
    return hf__schema_check_batch_put(s, table, key);
}

/* ---- index keys ----------------------------------------------------------------------------- */

/* Where the items of a check against indexes come from. */
struct origin {
    const struct prepared_write *update; /* NULL: a put */
    struct hf_item before;
};

/* An update may copy a value from the item: its type is no mistake of the request. */
static enum hf_status fail_index_type(struct hf_scope *s, const struct index *index,
                                      const struct key_attr *attr, enum hf_type type,
                                      const struct origin *origin)
{
    const struct prepared_write *write = origin->update;

    if (write && write->update &&
        !hf__expr_update_typed(write->update, write->key, origin->before, attr->name))
        return hf__fail(s, HF_INVALID,
                        "The update expression attempted to update the secondary index key to "
                        "unsupported type");
    return hf__fail(s, HF_INVALID,
                    INVALID_VALUES "Type mismatch for Index Key %.*s Expected: %s Actual: %s "
                                   "IndexName: %.*s",
                    HF_FMT(attr->name), hf__type_name(attr->type), hf__type_name(type),
                    HF_FMT(index->name));
}

static enum hf_status check_index_attr(struct hf_scope *s, const struct index *index,
                                       const struct key_attr *attr, bool hash,
                                       struct hf_value value, const struct origin *origin)
{
    enum hf_type type = hf_value_type(value);

    if (type != attr->type)
        return fail_index_type(s, index, attr, type, origin);
    if (is_empty(value) && origin->update)
        return hf__fail(s, HF_INVALID,
                        NOT_VALID "The update expression attempted to update a secondary index "
                                  "key to a value that is not supported. The AttributeValue for a "
                                  "key attribute cannot contain an empty %s value.",
                        empty_word(attr->type));
    if (is_empty(value))
        return hf__fail(s, HF_INVALID,
                        NOT_VALID "A value specified for a secondary index key is not supported. "
                                  "The AttributeValue for a key attribute cannot contain an empty "
                                  "%s value. IndexName: %.*s, IndexKey: %.*s",
                        empty_word(attr->type), HF_FMT(index->name), HF_FMT(attr->name));
    return check_size(s, value, hash);
}

/* Several attributes share the limit of one. An update is judged only by what it changes. */
static enum hf_status check_sum(struct hf_scope *s, const struct index *index, bool hash,
                                struct hf_item item, const struct origin *origin)
{
    const struct key_attr *attrs = hash ? index->key.hash : index->key.range;
    size_t len = hash ? index->key.hash_len : index->key.range_len;
    size_t max = hash ? KEY_HASH_MAX : KEY_RANGE_MAX;
    size_t sum = 0;
    bool changed = !origin->before.ptr;
    struct hf__buf names = {.scope = s};

    if (len < 2)
        return HF_OK;
    for (size_t i = 0; i < len; i++) {
        struct hf_value value = hf_item_get(item, attrs[i].name);

        if (hf_value_type(value) == attrs[i].type)
            sum += hf__value_scalar(value).len;
        changed = changed || !hf_value_equal(value, hf_item_get(origin->before, attrs[i].name));
        hf__put_name(&names, attrs[i].name);
    }
    if (!changed || sum <= max)
        return HF_OK;
    if (names.failed)
        return hf__fail_nomem(s);
    return hf__fail(s, HF_INVALID,
                    "Aggregate size for %s key attributes %.*s of index %.*s has exceeded limit "
                    "%zu bytes, with actual size %zu bytes",
                    hash ? "HASH" : "RANGE", (int)names.len, (const char *)names.ptr,
                    HF_FMT(index->name), max, sum);
}

void hf__put_name(struct hf__buf *names, struct hf_str name)
{
    if (names->len)
        hf__buf_put(names, ", ", 2);
    hf__buf_put(names, name.ptr, name.len);
}

enum hf_status hf__schema_check_indexes(struct hf_scope *s, const struct table *table,
                                        struct hf_item item, const struct prepared_write *update,
                                        struct hf_item before)
{
    const struct origin origin = {update, before};

    for (size_t i = 0; i < table->indexes_len; i++) {
        const struct index *index = &table->indexes[i];
        const struct key_schema *key = &index->key;

        for (size_t j = 0; j < key->hash_len + key->range_len; j++) {
            bool hash = j < key->hash_len;
            const struct key_attr *attr = hash ? &key->hash[j] : &key->range[j - key->hash_len];
            struct hf_value value = hf_item_get(item, attr->name);

            if (!value.ptr)
                continue;
            if (before.ptr && hf_value_equal(value, hf_item_get(before, attr->name)))
                continue;
            TRY(check_index_attr(s, index, attr, hash, value, &origin));
        }
        TRY(check_sum(s, index, true, item, &origin));
        TRY(check_sum(s, index, false, item, &origin));
    }
    return HF_OK;
}

/* ---- paths of expressions ------------------------------------------------------------------- */

static bool has_attr(const struct key_schema *key, struct hf_str name)
{
    for (size_t i = 0; i < key->hash_len; i++)
        if (hf_str_equal(key->hash[i].name, name))
            return true;
    for (size_t i = 0; i < key->range_len; i++)
        if (hf_str_equal(key->range[i].name, name))
            return true;
    return false;
}

enum hf_status hf__schema_check_paths(struct hf_scope *s, const struct table *table,
                                      const struct expr_bound *bound)
{
    const struct expr_path *paths;
    size_t len;

    if (!bound)
        return HF_OK;
    hf__expr_paths(bound, &paths, &len);
    for (size_t i = 0; i < len; i++) {
        struct hf_str name = paths[i].steps[0].name;
        const char *word = NULL;

        if (paths[i].len < 2)
            continue;
        if (has_attr(&table->key, name))
            word = "Key";
        for (size_t j = 0; j < table->indexes_len && !word; j++)
            if (has_attr(&table->indexes[j].key, name))
                word = "IndexKey";
        if (word)
            return hf__fail(s, HF_INVALID,
                            "Key attributes must be scalars; list random access '[]' and map "
                            "lookup '.' are not allowed: %s: %.*s",
                            word, HF_FMT(name));
    }
    return HF_OK;
}

bool hf__schema_is_key(const struct key_schema *key, struct hf_str name)
{
    return has_attr(key, name);
}

/* ---- what always holds ---------------------------------------------------------------------- */

static void key_check(const struct key_schema *key)
{
    assert(key->hash_len > 0 && key->hash_len <= KEY_ATTRS_MAX);
    assert(key->range_len <= KEY_ATTRS_MAX);
    for (size_t i = 0; i < key->hash_len + key->range_len; i++) {
        const struct key_attr *attr = hf__schema_attr(key, i);

        assert(attr->name.len > 0);
        assert(attr->type == HF_TYPE_S || attr->type == HF_TYPE_N || attr->type == HF_TYPE_B);
    }
}

void hf__table_check(const struct table *table)
{
    assert(table->memory && table->counts && table->id > 0 && table->name.len > 0);
    assert(table->record.description && (int64_t)table->id == table->record.id);
    assert(table->key.hash_len == 1 && table->key.range_len <= 1);
    assert(table->indexes_len <= INDEXES_MAX);
    key_check(&table->key);
    for (size_t i = 0; i < table->indexes_len; i++) {
        const struct index *index = &table->indexes[i];

        assert(index->id > 0 && index->id != table->id && index->name.len > 0);
        assert(index->counts >= table->counts->indexes &&
               index->counts < table->counts->indexes + INDEXES_MAX);
        assert(!index->local || !index->building); /* local ones are made with their table */
        key_check(&index->key);
    }
}

/* ---- stored keys ---------------------------------------------------------------------------- */

struct hf_item hf__schema_key_item(struct hf_scope *s, const struct key_schema *key,
                                   struct hf_item item)
{
    struct hf__buf buf = {.scope = s};
    size_t open = hf__build_open(&buf, HF_TYPE_M);

    for (size_t i = 0; i < key->hash_len + key->range_len; i++) {
        const struct key_attr *attr = hf__schema_attr(key, i);
        struct hf_value value = hf_item_get(item, attr->name);

        if (value.ptr) {
            hf__build_name(&buf, attr->name);
            hf__build_value(&buf, value);
        }
    }
    hf__build_close(&buf, open);
    return hf__build_item_from(&buf, 0);
}

void hf__stored_key_prefix(struct hf__buf *buf, uint8_t space, uint32_t id)
{
    uint8_t bytes[PREFIX_LEN] = {space};

    store_u32be(bytes + 1, id);
    hf__buf_put(buf, bytes, sizeof(bytes));
}

void hf__stored_key_parts(struct hf__buf *buf, const struct key_schema *key, struct hf_item item)
{
    struct hf_value hash[KEY_ATTRS_MAX];

    assert(key->hash_len > 0 && key->hash_len <= KEY_ATTRS_MAX);
    assert(key->range_len <= KEY_ATTRS_MAX);
    for (size_t i = 0; i < key->hash_len; i++)
        hash[i] = hf_item_get(item, key->hash[i].name);
    hf__key_put_hash(buf, hash, key->hash_len);
    for (size_t i = 0; i < key->range_len; i++)
        hf__key_put_range(buf, hf_item_get(item, key->range[i].name));
}

void hf__row_key(struct hf__buf *buf, const struct table *table, struct hf_item item)
{
    assert(table->id > 0 && item.ptr);
    hf__stored_key_prefix(buf, SPACE_ITEM, table->id);
    hf__stored_key_parts(buf, &table->key, item);
}

_Static_assert(PREFIX_LEN == 1 + 4, "space, u32be id");

static size_t latch_of(uint32_t id, uint64_t hash)
{
    return (size_t)(hash + id * 0x9E3779B97F4A7C15u) & (LATCH_COUNT - 1);
}

size_t hf__hash_latch(const struct table *table, struct hf_value hash)
{
    return latch_of(table->id, hf__key_hash(&hash, 1));
}

/* A stored key begins with the table's id and the hash. */
size_t hf__stored_latch(struct hf_bytes key)
{
    assert(key.len >= PREFIX_LEN + 8);
    return latch_of(load_u32be(key.ptr + 1), load_u64be(key.ptr + PREFIX_LEN));
}

size_t hf__row_latch(const struct table *table, struct hf_item item)
{
    return hf__hash_latch(table, hf_item_get(item, table->key.hash[0].name));
}
