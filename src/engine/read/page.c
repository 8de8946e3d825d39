/*
 * engine/read/page.c: one page of items, which is what Query and Scan have in common: a range of
 * stored keys, walked in one direction until a limit, a megabyte or the end.
 *
 *  (1) The limit and the megabyte count what was looked at, before the filter; the item that
 *      crosses the line is the page's last.
 *  (2) A page that stopped early names the last item it looked at; the next page starts behind
 *      exactly that item, whether or not it still exists.
 *  (3) Items are filtered and projected where they lie; only what is returned is copied.
 *  (4) A start key has the types and sizes of a key that an item can have, as it becomes a stored
 *      key like theirs. It comes from the caller, who may have made it up.
 */
#include "engine/read/page.h"
#include "base/buf.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/layout.h"
#include "engine/read/read.h"
#include "engine/table/schema.h"
#include "expr/expr.h"
#include "model/value.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "base/base64.h"

#define START_INVALID "The provided starting key is invalid"
#define NO_MATCH START_INVALID ": The provided key element does not match the schema"

/* ---- checks against the schema -------------------------------------------------------------- */

/* A query's filter does not touch the key of what is queried. */
static enum hf_status check_filter_keys(struct hf_scope *s, const struct prepared_page *page,
                                        const struct key_schema *key)
{
    const struct expr_path *paths;
    size_t len;

    if (!page->key || !page->filter || page->statement)
        return HF_OK;
    hf__expr_paths(page->filter, &paths, &len);
    for (size_t i = 0; i < len; i++)
        if (hf__schema_is_key(key, paths[i].steps[0].name))
            return hf__fail(s, HF_INVALID,
                            "%s can only contain non-primary key attributes: Primary key "
                            "attribute: %.*s",
                            page->legacy_filter ? "QueryFilter" : "Filter Expression",
                            HF_FMT(paths[i].steps[0].name));
    return HF_OK;
}

/* A query's filter sees what the global index has; a scan's merely finds the rest missing. */
static enum hf_status check_filter_projected(struct hf_scope *s, const struct prepared_page *page,
                                             const struct table *table, const struct index *index)
{
    const struct expr_path *paths;
    size_t len;

    if (!page->key || !page->filter || page->statement)
        return HF_OK;
    hf__expr_paths(page->filter, &paths, &len);
    for (size_t i = 0; i < len; i++)
        if (!hf__index_projects(table, index, paths[i].steps[0].name))
            return hf__fail(s, HF_INVALID,
                            "One or more parameter values were invalid: Secondary index %.*s does "
                            "not project one or more filter attributes: [%.*s]",
                            HF_FMT(index->name), HF_FMT(paths[i].steps[0].name));
    return HF_OK;
}

/* A global index contains only what it projects. */
static enum hf_status check_projected(struct hf_scope *s, const struct prepared_page *page,
                                      const struct table *table, const struct index *index)
{
    const struct expr_path *paths;
    size_t len = 0;

    if (page->select == HF_SELECT_ALL_ATTRIBUTES && index->projection != HF_PROJECT_ALL)
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is "
                        "not supported for global secondary index %.*s because its projection type "
                        "is not ALL",
                        HF_FMT(index->name));
    if (page->projection)
        hf__expr_paths(page->projection, &paths, &len);
    for (size_t i = 0; i < len; i++)
        if (!hf__index_projects(table, index, paths[i].steps[0].name))
            return hf__fail(s, HF_INVALID,
                            "One or more parameter values were invalid: Global secondary index "
                            "%.*s does not project [%.*s]",
                            HF_FMT(index->name), HF_FMT(paths[i].steps[0].name));
    return check_filter_projected(s, page, table, index);
}

enum hf_status hf__page_check_expressions(struct hf_scope *s, const struct table *table,
                                          const struct index *index,
                                          const struct prepared_page *page)
{
    TRY(hf__schema_check_paths(s, table, page->projection));
    TRY(check_filter_keys(s, page, index ? &index->key : &table->key));
    if (index && !index->local)
        TRY(check_projected(s, page, table, index));
    return hf__schema_check_paths(s, table, page->filter);
}

enum hf_status hf__page_check(struct hf_scope *s, struct table *table,
                              const struct prepared_page *page, struct index **index)
{
    *index = NULL;
    if (page->index.ptr) {
        *index = hf__table_index(table, page->index);
        if (!*index)
            return hf__fail(s, HF_INVALID, "The table does not have the specified index: %.*s",
                            HF_FMT(page->index));
        if ((*index)->building)
            return hf__fail(s, HF_INVALID,
                            "Cannot read from backfilling global secondary index: %.*s",
                            HF_FMT(page->index));
        if (!(*index)->local && page->consistent)
            return hf__fail(s, HF_INVALID,
                            "Consistent reads are not supported on global secondary indexes");
    }
    return hf__prepare_select(s, page);
}

/* ---- start keys ----------------------------------------------------------------------------- */

static bool has_types(const struct key_schema *key, struct hf_item item, bool *present)
{
    bool fit = true;

    for (size_t i = 0; i < key->hash_len + key->range_len; i++) {
        const struct key_attr *attr = hf__schema_attr(key, i);
        struct hf_value value = hf_item_get(item, attr->name);

        *present = *present && value.ptr;
        fit = fit && hf_value_type(value) == attr->type;
    }
    return fit;
}

/* (4) */
static enum hf_status check_sizes(struct hf_scope *s, const struct key_schema *key,
                                  struct hf_item item)
{
    for (size_t i = 0; i < key->hash_len + key->range_len; i++) {
        const struct key_attr *attr = hf__schema_attr(key, i);

        if (hf__schema_check_value(s, attr, i < key->hash_len, hf_item_get(item, attr->name)))
            return hf__fail(s, HF_INVALID, START_INVALID ": %.*s",
                            HF_FMT(hf_scope_error(s)->message));
    }
    return HF_OK;
}

static size_t attrs_of(const struct table *table, const struct index *index)
{
    size_t count = table->key.hash_len + table->key.range_len;

    if (!index)
        return count;
    for (size_t i = 0; i < index->key.hash_len; i++)
        count += !hf__schema_is_key(&table->key, index->key.hash[i].name);
    for (size_t i = 0; i < index->key.range_len; i++)
        count += !hf__schema_is_key(&table->key, index->key.range[i].name);
    return count;
}

enum { PRINTED_KEY_MAX = 2048 }; /* bytes, as long as a key may be */

/* {S:x}, as the service prints a value of a key. */
static void print_value(struct hf_scope *s, struct hf__buf *out, struct hf_value value)
{
    enum hf_type type = hf_value_type(value);
    struct hf_bytes bytes = hf_value_bytes(value);
    struct hf_str text = type == HF_TYPE_N ? hf_value_number(s, value) : hf_value_str(value);
    char *room;

    if (type == HF_TYPE_B && bytes.len <= PRINTED_KEY_MAX) {
        room = hf_scope_alloc(s, hf__base64_encoded_len(bytes.len) + 1);
        text = room ? hf_str_of(room, hf__base64_encode(bytes, room)) : hf_str_of(NULL, 0);
    }
    if (text.len > PRINTED_KEY_MAX)
        text.len = 0;
    hf__buf_format(out, "{%s:%.*s}", hf__type_name(type), HF_FMT(text));
}

enum hf_status hf__page_fail_restart(struct hf_scope *s, struct hf_item start)
{
    struct hf_item_walk walk = {0};
    struct hf__buf text = {.scope = s};
    size_t from;

    hf__buf_put_str(&text, HF_STR("The provided exclusive start key is invalid: "
                                  "ExclusiveStartKey: {"));
    from = text.len;
    while (text.len - from < PRINTED_KEY_MAX && hf_item_next(start, &walk)) {
        hf__buf_put_str(&text, text.len > from ? HF_STR(", ") : HF_STR(""));
        hf__buf_put_str(&text, walk.name);
        hf__buf_put_str(&text, HF_STR("=AttributeValue: "));
        print_value(s, &text, walk.value);
    }
    hf__buf_put(&text, "}", 2);
    if (text.failed)
        return hf__fail_nomem(s);
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)text.ptr, text.len - 1));
}

enum hf_status hf__page_start_key(struct hf_scope *s, const struct table *table,
                                  const struct index *index, struct hf_item start,
                                  struct hf__buf *buf)
{
    bool present = hf_item_count(start) == attrs_of(table, index);
    bool fit = has_types(&table->key, start, &present);

    if (index)
        fit = has_types(&index->key, start, &present) && fit;
    if (!present)
        return hf__fail(s, HF_INVALID, START_INVALID);
    if (!fit)
        return hf__fail(s, HF_INVALID, NO_MATCH);
    TRY(check_sizes(s, &table->key, start));
    if (index)
        TRY(check_sizes(s, &index->key, start));
    if (index && !hf__index_has(index, start)) /* several attributes share the limit of one */
        return hf__fail(s, HF_INVALID, NO_MATCH);
    assert(start.ptr && buf->len == 0);
    if (index)
        hf__index_key(buf, table, index, start);
    else
        hf__row_key(buf, table, start);
    return buf->failed ? hf__fail_nomem(s) : HF_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    struct engine *e;
    struct table *table;
    struct index *index;
    const struct prepared_page *page;
    struct page_answer *answer;
    struct hf__buf items; /* struct hf_item */
    size_t bytes;         /* of the items that were read */
    double fetched;       /* units of table reads that a local index made necessary */
    bool fetch;           /* the index does not have what was asked for */
    bool full;            /* the page ends with the item that was just read */
};

/* Must items be fetched from the table, because the local index lacks something? */
static bool must_fetch(const struct reading *r)
{
    const struct expr_bound *wanted[] = {r->page->projection,
                                         r->page->statement ? NULL : r->page->filter};

    if (!r->index || !r->index->local || r->index->projection == HF_PROJECT_ALL)
        return false;
    if (r->page->select == HF_SELECT_ALL_ATTRIBUTES)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const struct expr_path *paths;
        size_t len;

        if (!wanted[i])
            continue;
        hf__expr_paths(wanted[i], &paths, &len);
        for (size_t j = 0; j < len; j++)
            if (!hf__index_projects(r->table, r->index, paths[j].steps[0].name))
                return true;
    }
    return false;
}

/* The filter may need the whole item although only the entry is returned. */
static bool shows_whole(const struct reading *r)
{
    return r->page->projection || r->page->select == HF_SELECT_ALL_ATTRIBUTES;
}

/* The attributes of a start key: the keys of the table and of the index. */
static enum hf_status last_key(struct hf_scope *s, const struct reading *r, struct hf_item item,
                               struct hf_item *out)
{
    struct hf__buf buf = {.scope = s};
    struct value_walk walk = hf__value_walk(hf_item_value(item));
    size_t open = hf__build_open(&buf, HF_TYPE_M);

    while (hf__value_next(&walk)) {
        if (hf__schema_is_key(&r->table->key, walk.name) ||
            (r->index && hf__schema_is_key(&r->index->key, walk.name))) {
            hf__build_name(&buf, walk.name);
            hf__build_value(&buf, walk.value);
        }
    }
    hf__build_close(&buf, open);
    *out = hf__build_item_from(&buf, 0);
    return hf_item_check(s, *out);
}

static enum hf_status add_to_page(struct hf_scope *s, struct reading *r, struct hf_item item)
{
    r->answer->count++;
    if (r->page->select == HF_SELECT_COUNT)
        return HF_OK;
    if (r->page->projection)
        TRY(hf__expr_project(s, r->page->projection, item, &item));
    else
        item = hf_item_copy(s, item);
    if (hf__item_poisoned(item))
        return hf_item_check(s, item);
    hf__buf_put(&r->items, &item, sizeof(item));
    return HF_OK;
}

static enum hf_status look_at(struct hf_scope *s, struct reading *r, struct hf_bytes stored)
{
    struct row row;
    struct row whole;

    assert(!r->full);
    TRY(hf__row_decode(s, stored, &row));
    r->answer->scanned++;
    r->bytes += row.size;
    TRY(hf__scope_patient(s, row.size));
    whole = row;
    if (r->fetch) {
        TRY(hf__read_key(s, r->e, r->table, NULL, hf__schema_key_item(s, &r->table->key, row.item),
                         &whole));
        r->fetched += hf__read_units(whole.size, r->page->consistent);
        if (!whole.item.ptr)
            whole = row; /* deleted in between: only the entry is left */
    }
    if (r->page->filter)
        TRY(hf__scope_patient_work(s, hf__expr_work(r->page->filter, whole.item)));
    if (!r->page->filter ||
        hf__expr_match(r->page->filter, r->page->statement ? row.item : whole.item))
        TRY(add_to_page(s, r, shows_whole(r) ? whole.item : row.item));
    r->full = r->bytes > PAGE_BYTES_MAX || r->answer->scanned == r->page->limit;
    return r->full ? last_key(s, r, row.item, &r->answer->last) : HF_OK;
}

static enum hf_status walk_range(struct hf_scope *s, struct reading *r,
                                 const struct store_range *range)
{
    struct hf__store_iter *iter;
    enum hf_status status;
    bool found = true;

    TRY(hf__store_iter_open(s, r->e->store, NULL, range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            status = look_at(s, r, value);
    } while (status == HF_OK && found && !r->full);
    hf__store_iter_close(iter);
    return status;
}

static void charge_page(struct hf_scope *s, struct reading *r)
{
    struct usage usage = {.table = r->table, .named = r->page->table};
    double units = hf__read_units(r->bytes, r->page->consistent);

    if (r->index) {
        size_t at = (size_t)(r->index - r->table->indexes);

        assert(at < r->table->indexes_len);
        usage.index_units[at] = units;
        usage.index_used[at] = true;
        usage.table_units = r->fetched;
    } else {
        usage.table_units = units;
    }
    r->answer->capacity = hf__usage_capacity(s, &usage, r->page->return_capacity);
}

enum hf_status hf__page_read(struct hf_scope *s, struct engine *e, const struct page_range *range,
                             struct page_answer *answer)
{
    const struct prepared_page *page = range->page;
    struct reading r = {.e = e,
                        .table = range->table,
                        .index = range->index,
                        .page = page,
                        .answer = answer,
                        .items = {.scope = s}};
    const struct store_range keys = {.lower = range->lower,
                                     .upper = range->upper,
                                     .reverse = page->reverse,
                                     .fill_cache = true};

    assert(range->lower.len >= PREFIX_LEN && range->upper.len > 0);
    ASSERT_SCHEMA_HELD(e);
    r.fetch = must_fetch(&r);
    TRY(walk_range(s, &r, &keys));
    if (page->select != HF_SELECT_COUNT) {
        hf__buf_reserve(&r.items, sizeof(struct hf_item)); /* an empty list is not an absent one */
        if (r.items.failed)
            return hf__fail_nomem(s);
        answer->items = (const struct hf_item *)(const void *)r.items.ptr;
        answer->items_len = r.items.len / sizeof(struct hf_item);
    }
    assert(answer->count <= answer->scanned);
    assert(!r.full || answer->last.ptr);
    answer->bytes = r.bytes;
    charge_page(s, &r);
    return HF_OK;
}
