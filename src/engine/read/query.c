/*
 * engine/read/query.c: Query: a key condition becomes a range of stored keys, and page.c reads it.
 */
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/operations.h"
#include "engine/read/page.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "expr/expr.h"
#include "model/key.h"
#include "model/value.h"
#include "ops/prepare.h"

/* The condition's terms, sorted to the attributes of the key. */
struct bounds {
    struct hf_value hash[KEY_ATTRS_MAX];
    size_t hash_len;
    struct hf_value equal[KEY_ATTRS_MAX]; /* of the range attributes before `range` */
    size_t equal_len;
    const struct expr_key_term *range; /* on the last one named; NULL: the whole partition */
};

/* Legacy conditions may have operators that keys do not support. */
static bool suits_key(enum expr_compare compare)
{
    switch (compare) {
    case COMPARE_EQ:
    case COMPARE_LE:
    case COMPARE_LT:
    case COMPARE_GE:
    case COMPARE_GT:
    case COMPARE_BETWEEN:
    case COMPARE_BEGINS_WITH:
        return true;
    default:
        return false;
    }
}

/* One condition against its key attribute: operator, types, equality of a hash, sizes. */
static enum hf_status check_term(struct hf_scope *s, const struct key_attr *attr, bool hash,
                                 const struct expr_key_term *term)
{
    bool two = term->compare == COMPARE_BETWEEN;

    if (!suits_key(term->compare))
        return hf__fail(s, HF_INVALID,
                        "Attempted conditional constraint is not an indexable operation");
    if (hf_value_type(term->low) != attr->type || (two && hf_value_type(term->high) != attr->type))
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: Condition parameter type does "
                        "not match schema type");
    if (hash && term->compare != COMPARE_EQ)
        return hf__fail(s, HF_INVALID, "Query key condition not supported");
    TRY(hf__schema_check_value(s, attr, hash, term->low));
    return two ? hf__schema_check_value(s, attr, hash, term->high) : HF_OK;
}

static const struct expr_key_term *term_of(const struct expr_key_term *terms, size_t len,
                                           struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(terms[i].name, name))
            return &terms[i];
    return NULL;
}

/* The names of the attributes without an equality, or an empty text. */
static enum hf_status without_equality(struct hf_scope *s, const struct key_attr *attrs, size_t len,
                                       const struct expr_key_term *const *found,
                                       struct hf_str *names)
{
    struct hf__buf buf = {.scope = s};

    for (size_t i = 0; i < len; i++)
        if (!found[i] || found[i]->compare != COMPARE_EQ)
            hf__put_name(&buf, attrs[i].name);
    *names = hf_str_of((const char *)buf.ptr, buf.len);
    return buf.failed ? hf__fail_nomem(s) : HF_OK;
}

/* A key of several attributes: equality on all HASH, and on RANGE up to the last one named. */
static enum hf_status sort_many(struct hf_scope *s, const struct key_schema *key,
                                const struct expr_key_term *terms, size_t len,
                                struct bounds *bounds)
{
    const struct expr_key_term *hash[KEY_ATTRS_MAX];
    const struct expr_key_term *range[KEY_ATTRS_MAX];
    struct hf_str names;
    size_t found = 0;
    size_t named = 0; /* RANGE attributes up to the last one with a condition */

    for (size_t i = 0; i < key->hash_len; i++) {
        hash[i] = term_of(terms, len, key->hash[i].name);
        found += hash[i] != NULL;
    }
    for (size_t i = 0; i < key->range_len; i++) {
        range[i] = term_of(terms, len, key->range[i].name);
        found += range[i] != NULL;
        named = range[i] ? i + 1 : named;
    }
    TRY(without_equality(s, key->hash, key->hash_len, hash, &names));
    if (names.len)
        return hf__fail(s, HF_INVALID,
                        "HASH key attributes %.*s must have equality conditions specified in the "
                        "query",
                        HF_FMT(names));
    if (found < len)
        return hf__fail(s, HF_INVALID, "Query condition missed key schema element");
    for (size_t i = 0; i < key->hash_len; i++) {
        TRY(check_term(s, &key->hash[i], true, hash[i]));
        bounds->hash[bounds->hash_len++] = hash[i]->low;
    }
    if (!named)
        return HF_OK;
    TRY(without_equality(s, key->range, named - 1, range, &names));
    if (names.len)
        return hf__fail(s, HF_INVALID,
                        "RANGE key attributes %.*s must have equality conditions specified in the "
                        "query because a condition is present on key attribute %.*s",
                        HF_FMT(names), HF_FMT(key->range[named - 1].name));
    for (size_t i = 0; i < named; i++) {
        TRY(check_term(s, &key->range[i], false, range[i]));
        if (i < named - 1)
            bounds->equal[bounds->equal_len++] = range[i]->low;
    }
    bounds->range = range[named - 1];
    return HF_OK;
}

static enum hf_status sort_terms(struct hf_scope *s, const struct key_schema *key,
                                 const struct prepared_page *page, struct bounds *bounds)
{
    const struct expr_key_term *terms;
    const struct expr_key_term *hash;
    size_t len;
    size_t attrs = key->hash_len + key->range_len;

    hf__expr_key_terms(page->key, &terms, &len);
    if (len > attrs)
        return hf__fail(s, HF_INVALID,
                        "The number of query conditions (%zu) exceeds the number of key attributes "
                        "defined in the schema (%zu)",
                        len, attrs);
    if (key->hash_len > 1 || key->range_len > 1)
        return sort_many(s, key, terms, len, bounds);
    hash = term_of(terms, len, key->hash[0].name);
    if (!hash)
        return hf__fail(s, HF_INVALID, "Query condition missed key schema element: %.*s",
                        HF_FMT(key->hash[0].name));
    bounds->range = key->range_len ? term_of(terms, len, key->range[0].name) : NULL;
    if (len == 2 && !bounds->range)
        return hf__fail(s, HF_INVALID, "Query condition missed key schema element: %.*s",
                        HF_FMT(key->range[0].name));
    TRY(check_term(s, &key->hash[0], true, hash));
    bounds->hash[bounds->hash_len++] = hash->low;
    return bounds->range ? check_term(s, &key->range[0], false, bounds->range) : HF_OK;
}

/* ---- ranges --------------------------------------------------------------------------------- */

struct key_range {
    struct hf__buf lower;
    struct hf__buf upper;
};

static void copy_buf(struct hf__buf *to, const struct hf__buf *from)
{
    hf__buf_put(to, from->ptr, from->len);
}

static void make_successor(struct hf__buf *buf)
{
    if (!buf->failed)
        hf__key_successor(buf->ptr, &buf->len);
}

/* All that begins with `partition` lies in `range`; narrow it by the condition on what follows. */
static void narrow_range(struct key_range *range, const struct hf__buf *partition,
                         const struct expr_key_term *term)
{
    struct hf__buf low = {.scope = partition->scope};
    struct hf__buf high = {.scope = partition->scope};

    assert(suits_key(term->compare) && term->low.ptr);
    copy_buf(&low, partition);
    copy_buf(&high, partition);
    if (term->compare == COMPARE_BEGINS_WITH) {
        struct hf_bytes prefix = hf__value_scalar(term->low);

        hf__key_put_range_prefix(&low, prefix);
        hf__key_put_range_prefix(&high, prefix);
    } else {
        hf__key_put_range(&low, term->low);
        hf__key_put_range(&high, term->compare == COMPARE_BETWEEN ? term->high : term->low);
    }
    switch (term->compare) {
    case COMPARE_LT:
        range->upper = low;
        break;
    case COMPARE_LE:
        make_successor(&high);
        range->upper = high;
        break;
    case COMPARE_GT:
        make_successor(&low);
        range->lower = low;
        break;
    case COMPARE_GE:
        range->lower = low;
        break;
    default: /* EQ, BETWEEN, BEGINS_WITH */
        make_successor(&high);
        range->lower = low;
        range->upper = high;
        break;
    }
}

static enum hf_status make_range(struct hf_scope *s, uint8_t space, uint32_t id,
                                 const struct bounds *bounds, struct hf__buf *partition,
                                 struct key_range *range)
{
    struct hf__buf base = {.scope = s}; /* partition, and the equalities behind it */

    assert(id > 0 && bounds->hash_len > 0 && bounds->equal_len < KEY_ATTRS_MAX);
    *partition = (struct hf__buf){.scope = s};
    *range = (struct key_range){{.scope = s}, {.scope = s}};
    hf__stored_key_prefix(partition, space, id);
    hf__key_put_hash(partition, bounds->hash, bounds->hash_len);
    copy_buf(&base, partition);
    for (size_t i = 0; i < bounds->equal_len; i++)
        hf__key_put_range(&base, bounds->equal[i]);
    copy_buf(&range->lower, &base);
    copy_buf(&range->upper, &base);
    make_successor(&range->upper);
    if (bounds->range)
        narrow_range(range, &base, bounds->range);
    if (partition->failed || base.failed || range->lower.failed || range->upper.failed)
        return hf__fail_nomem(s); /* an empty buffer would mean the whole store */
    return HF_OK;
}

/* Does a value satisfy the condition on its attribute? */
static bool fits_term(const struct expr_key_term *term, struct hf_value value)
{
    struct hf_bytes prefix = hf__value_scalar(term->low);
    struct hf_bytes bytes = hf__value_scalar(value);

    switch (term->compare) {
    case COMPARE_LT:
        return hf__value_compare(value, term->low) < 0;
    case COMPARE_LE:
        return hf__value_compare(value, term->low) <= 0;
    case COMPARE_GT:
        return hf__value_compare(value, term->low) > 0;
    case COMPARE_GE:
        return hf__value_compare(value, term->low) >= 0;
    case COMPARE_BETWEEN:
        return hf__value_compare(value, term->low) >= 0 &&
               hf__value_compare(value, term->high) <= 0;
    case COMPARE_BEGINS_WITH:
        return bytes.len >= prefix.len && memcmp(bytes.ptr, prefix.ptr, prefix.len) == 0;
    default:
        return hf__value_compare(value, term->low) == 0;
    }
}

/* Does the start key lie in the range, in whatever partition? */
static bool fits_range(const struct key_schema *key, const struct bounds *bounds,
                       struct hf_item start)
{
    size_t last = bounds->equal_len;

    if (!bounds->range)
        return true;
    for (size_t i = 0; i < last; i++)
        if (hf__value_compare(hf_item_get(start, key->range[i].name), bounds->equal[i]) != 0)
            return false;
    return fits_term(bounds->range, hf_item_get(start, key->range[last].name));
}

/* Go on behind the start key: it must lie in the range, and in the partition. */
static enum hf_status apply_start(struct hf_scope *s, const struct table *table,
                                  const struct index *index, const struct prepared_page *page,
                                  const struct bounds *bounds, const struct hf__buf *partition,
                                  struct key_range *range)
{
    const struct key_schema *key = index ? &index->key : &table->key;
    struct hf__buf start = {.scope = s};

    if (!page->start.ptr)
        return HF_OK;
    if (!index && table->key.range_len == 0)
        return hf__page_fail_restart(s, page->start);
    TRY(hf__page_start_key(s, table, index, page->start, &start));
    if (!fits_range(key, bounds, page->start))
        return hf__fail(s, HF_INVALID,
                        "The provided starting key does not match the range key predicate");
    if (start.len < partition->len || memcmp(start.ptr, partition->ptr, partition->len) != 0)
        return hf__fail(s, HF_INVALID,
                        "The provided starting key is outside query boundaries based on provided "
                        "conditions");
    assert(partition->len > PREFIX_LEN);
    if (page->reverse) {
        range->upper = start;
    } else {
        hf__buf_put_byte(&start, 0); /* the least key that is greater */
        range->lower = start;
    }
    return start.failed ? hf__fail_nomem(s) : HF_OK;
}

/* ---- the operation -------------------------------------------------------------------------- */

static enum hf_status query_locked(struct hf_scope *s, struct engine *e,
                                   const struct prepared_page *page, size_t *latch,
                                   struct page_answer *answer)
{
    struct table *table;
    struct index *index;
    struct bounds bounds = {.range = NULL};
    struct hf__buf partition;
    struct key_range range;
    const struct key_schema *key;

    TRY(hf__catalog_item_table(s, e, page->table, &table));
    TRY(hf__page_check(s, table, page, &index));
    key = index ? &index->key : &table->key;
    TRY(sort_terms(s, key, page, &bounds));
    assert(bounds.hash_len == key->hash_len && bounds.equal_len <= key->range_len);
    TRY(make_range(s, index ? SPACE_INDEX : SPACE_ITEM, index ? index->id : table->id, &bounds,
                   &partition, &range));
    TRY(apply_start(s, table, index, page, &bounds, &partition, &range));
    TRY(hf__page_check_expressions(s, table, index, page));
    *latch = hf__hash_latch(table, bounds.hash[0]);
    TRY(hf__page_read(s, e,
                      &(struct page_range){.table = table,
                                           .index = index,
                                           .page = page,
                                           .lower = hf_bytes_of(range.lower.ptr, range.lower.len),
                                           .upper = hf_bytes_of(range.upper.ptr, range.upper.len)},
                      answer));
    if (!index && table->key.range_len == 0)
        /* apply_start() would refuse it as a start key */
        answer->last = (struct hf_item){.ptr = NULL};
    return HF_OK;
}

enum hf_status hf__query_page(struct hf_scope *s, struct engine *e,
                              const struct prepared_page *page, struct page_answer *answer)
{
    enum hf_status status;
    size_t latch = 0;

    pthread_rwlock_rdlock(&e->schema);
    status = query_locked(s, e, page, &latch, answer);
    pthread_rwlock_unlock(&e->schema);
    if (status == HF_OK && page->consistent)
        status = hf__engine_wait_durable_read(s, e, latch);
    return status;
}

enum hf_status hf__engine_query(struct hf_scope *s, struct engine *e,
                                const struct hf_query *request, struct hf_query_result *result)
{
    struct prepared_page page;
    struct page_answer answer = {.count = 0};
    enum hf_status status;

    TRY(hf__prepare_query(s, e->cache, request, &page));
    status = hf__query_page(s, e, &page, &answer);
    *result = (struct hf_query_result){.items = answer.items,
                                       .items_len = answer.items_len,
                                       .count = answer.count,
                                       .scanned_count = answer.scanned,
                                       .last = answer.last,
                                       .capacity = answer.capacity};
    return status;
}
