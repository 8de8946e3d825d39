/*
 * engine/statement/statement_read.c: ExecuteStatement, and the SELECT that it may be.
 *
 * A SELECT is a row of reads, each a query of a part of one partition (expr/partiql_keys.c), or one
 * scan. Each is read with the WHERE clause as its filter, so a read may bring more than its bounds
 * say and yet shows nothing that it should not.
 *
 * A page ends with the limit, with a megabyte, or with the last read. Where the next one begins is
 * in the token, base64 of:
 *
 *     1 byte    TOKEN_VERSION
 *     2 bytes   number of the read
 *     8 bytes   what statement and parameters hash to
 *     n bytes   the start key as a flat item, or nothing: from the beginning of the read
 *     8 bytes   a tag over all of it, keyed with the database's secret
 *
 * so that nobody can make one, or use one with another statement.
 */
#include "base/buf.h"
#include "engine/item/capacity.h"
#include "engine/operations.h"
#include "engine/read/page.h"
#include "engine/statement/statement.h"
#include "engine/write/write.h"
#include "expr/expr.h"
#include "model/value.h"
#include "ops/prepare.h"

#include "base/base64.h"
#include "base/siphash.h"

enum { TOKEN_VERSION = 1, TOKEN_START = 11, TOKEN_TAG = 8 };
_Static_assert(TOKEN_START == 1 + 2 + 8, "version, u16be read, u64be hash of the request");

struct select {
    struct engine *e;
    const struct hf_execute_statement *request;
    const struct statement *statement;
    const struct statement_key *key; /* of what is read: the table or the index */
    struct statement_span *spans;
    size_t spans_len; /* 0: a scan */
    bool reverse;
    size_t at;            /* the read that is next */
    struct hf_item start; /* where it begins; absent: at its beginning */
    struct hf__buf items; /* struct hf_item */
    struct hf_capacity *capacity;
    int64_t left; /* of the limit */
    size_t bytes;
};

/* ---- tokens --------------------------------------------------------------------------------- */

static enum hf_status hash_request(struct hf_scope *s, const struct select *q, uint64_t *hash)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, q->request->statement);
    for (size_t i = 0; i < q->request->parameters_len; i++)
        hf__buf_put(&buf, q->request->parameters[i].ptr, q->request->parameters[i].len);
    if (buf.failed)
        return hf__fail_nomem(s);
    *hash = hf__siphash(q->e->secret, buf.ptr, buf.len);
    return HF_OK;
}

static enum hf_status write_token(struct hf_scope *s, const struct select *q, struct hf_str *token)
{
    struct hf__buf buf = {.scope = s};
    uint8_t head[TOKEN_START];
    uint8_t tag[TOKEN_TAG];
    uint64_t hash;
    char *text;

    TRY(hash_request(s, q, &hash));
    assert(q->at <= q->spans_len && q->at <= UINT16_MAX);
    head[0] = TOKEN_VERSION;
    store_u16be(head + 1, (uint16_t)q->at);
    store_u64be(head + 3, hash);
    hf__buf_put(&buf, head, sizeof(head));
    hf__buf_put(&buf, q->start.ptr, q->start.len);
    if (buf.failed)
        return hf__fail_nomem(s);
    store_u64be(tag, hf__siphash(q->e->secret, buf.ptr, buf.len));
    hf__buf_put(&buf, tag, sizeof(tag));
    text = hf_scope_alloc(s, hf__base64_encoded_len(buf.len));
    if (buf.failed || !text)
        return hf__fail_nomem(s);
    *token = hf_str_of(text, hf__base64_encode(hf_bytes_of(buf.ptr, buf.len), text));
    return HF_OK;
}

static enum hf_status read_token(struct hf_scope *s, struct select *q)
{
    struct hf_str token = q->request->next_token;
    uint8_t *bytes;
    uint64_t hash;
    size_t len;
    size_t item_len;

    if (!token.ptr)
        return HF_OK;
    bytes = hf_scope_alloc(s, hf__base64_decoded_max(token.len) + 1);
    if (!bytes)
        return hf__fail_nomem(s);
    TRY(hash_request(s, q, &hash));
    if (hf__base64_decode(token, bytes, &len) != BASE64_OK || len < TOKEN_START + TOKEN_TAG ||
        bytes[0] != TOKEN_VERSION ||
        load_u64be(bytes + len - TOKEN_TAG) != hf__siphash(q->e->secret, bytes, len - TOKEN_TAG))
        return hf__fail(s, HF_INVALID, "Invalid NextToken");
    if (load_u64be(bytes + 3) != hash)
        return hf__fail(s, HF_INVALID, "NextToken does not match request");
    q->at = load_u16be(bytes + 1);
    item_len = len - TOKEN_START - TOKEN_TAG;
    if (q->at > q->spans_len || (item_len && !hf__item_valid(bytes + TOKEN_START, item_len)))
        return hf__fail(s, HF_INVALID, "Invalid NextToken");
    if (item_len)
        q->start = (struct hf_item){bytes + TOKEN_START, item_len};
    return HF_OK;
}

/* ---- order ---------------------------------------------------------------------------------- */

static bool is_attr(const struct statement_key_attr *attr, struct hf_str name)
{
    return attr->name.ptr && hf_str_equal(attr->name, name);
}

struct ordering {
    bool by_hash;
    bool hash_down;
    bool range_down;
};

static enum hf_status read_order(struct hf_scope *s, const struct select *q, struct ordering *out)
{
    for (size_t i = 0; i < q->statement->order_len; i++) {
        const struct statement_order *order = &q->statement->order[i];

        if (is_attr(&q->key->hash, order->name)) {
            out->by_hash = true;
            out->hash_down = order->descending;
        } else if (is_attr(&q->key->range, order->name)) {
            out->range_down = order->descending;
        } else {
            return hf__fail(s, HF_INVALID,
                            "Variable reference %.*s in ORDER BY clause must be part of the "
                            "primary key",
                            HF_FMT(order->name));
        }
    }
    return HF_OK;
}

static bool comes_after(const struct ordering *o, const struct statement_span *a,
                        const struct statement_span *b)
{
    int order = hf__value_compare(a->hash, b->hash);

    if (order)
        return o->hash_down ? order < 0 : order > 0;
    order = hf__partiql_span_compare(a, b);
    return o->range_down ? order < 0 : order > 0;
}

/* At most STATEMENT_READS_MAX of them. */
static void sort_spans(struct select *q, const struct ordering *o)
{
    for (size_t i = 1; i < q->spans_len; i++) {
        struct statement_span span = q->spans[i];
        size_t at = i;

        for (; at > 0 && comes_after(o, &q->spans[at - 1], &span); at--)
            q->spans[at] = q->spans[at - 1];
        q->spans[at] = span;
    }
}

static enum hf_status apply_order(struct hf_scope *s, struct select *q)
{
    struct ordering ordering = {.by_hash = false};
    bool one = true;

    if (!q->statement->order_len)
        return HF_OK;
    TRY(read_order(s, q, &ordering));
    if (!q->spans_len)
        return hf__fail(s, HF_INVALID,
                        "Must have at least one non-optional hash key condition in WHERE clause "
                        "when using ORDER BY clause.");
    for (size_t i = 1; i < q->spans_len; i++)
        one = one && hf_value_equal(q->spans[i].hash, q->spans[0].hash);
    if (!one && !ordering.by_hash)
        return hf__fail(s, HF_INVALID,
                        "Must have hash key in ORDER BY clause when more than one hash key "
                        "condition specified in WHERE clause.");
    sort_spans(q, &ordering);
    q->reverse = ordering.range_down;
    return HF_OK;
}

/* ---- one read ------------------------------------------------------------------------------- */

/* Bounds in the wrong order contain nothing. */
static bool is_empty(const struct statement_span *span)
{
    return span->low.ptr && span->high.ptr && !span->prefix &&
           hf__value_compare(span->low, span->high) > 0;
}

/* The bounds of the sort key as one term of a query. It may read too much, which is filtered. */
static bool range_term(const struct statement_span *span, const struct statement_key *key,
                       struct hf_value values[2], struct expr_legacy_condition *term)
{
    if (!span->low.ptr && !span->high.ptr)
        return false;
    values[0] = span->low.ptr ? span->low : span->high;
    values[1] = span->high;
    *term =
        (struct expr_legacy_condition){.name = key->range.name, .values = values, .values_len = 1};
    if (span->prefix) {
        values[0] = span->high;
        term->compare = COMPARE_BEGINS_WITH;
    } else if (!span->high.ptr) {
        term->compare = span->low_open ? COMPARE_GT : COMPARE_GE;
    } else if (!span->low.ptr) {
        term->compare = span->high_open ? COMPARE_LT : COMPARE_LE;
    } else if (hf_value_equal(span->low, span->high)) {
        term->compare = COMPARE_EQ;
    } else {
        term->compare = COMPARE_BETWEEN;
        term->values_len = 2;
    }
    return true;
}

static enum hf_status read_span(struct hf_scope *s, struct select *q, struct prepared_page *page,
                                struct page_answer *answer)
{
    const struct statement_span *span = &q->spans[q->at];
    struct expr_legacy_condition terms[2] = {
        {.name = q->key->hash.name, .compare = COMPARE_EQ, .values = &span->hash, .values_len = 1}};
    struct hf_value values[2];
    struct expr_bound *key;
    size_t len = 1;

    if (is_empty(span))
        return HF_OK;
    len += range_term(span, q->key, values, &terms[1]);
    TRY(hf__expr_legacy_key(s, terms, len, &key));
    page->key = key;
    return hf__query_page(s, q->e, page, answer);
}

static enum hf_status add_capacity(struct hf_scope *s, struct select *q,
                                   const struct hf_capacity *more)
{
    if (!more)
        return HF_OK;
    if (q->capacity)
        return hf__capacity_add(s, q->capacity, more);
    q->capacity = hf__scope_array(s, 1, sizeof(*q->capacity));
    if (!q->capacity)
        return hf__fail_nomem(s);
    *q->capacity = *more;
    return HF_OK;
}

/* Read number q->at, from q->start on; then say where the next read begins. */
static enum hf_status read_next(struct hf_scope *s, struct select *q)
{
    struct page_answer answer = {.count = 0};
    struct prepared_page page = {
        .table = q->statement->table,
        .index = q->statement->index,
        .filter = q->statement->where,
        .projection = q->statement->columns,
        .statement = true,
        .limit = q->left,
        .start = q->start,
        .reverse = q->reverse,
        .consistent = q->request->consistent == HF_YES,
        .total_segments = 1,
        .return_capacity = q->request->return_capacity,
    };

    TRY(q->spans_len ? read_span(s, q, &page, &answer) : hf__scan_page(s, q->e, &page, &answer));
    hf__buf_put(&q->items, answer.items, answer.items_len * sizeof(*answer.items));
    TRY(add_capacity(s, q, answer.capacity));
    q->bytes += answer.bytes;
    if (q->left)
        q->left -= answer.scanned;
    assert(q->left >= 0);
    q->start = answer.last;
    if (!q->start.ptr)
        q->at++;
    return HF_OK;
}

/* ---- SELECT --------------------------------------------------------------------------------- */

static enum hf_status check_index(struct hf_scope *s, const struct select *q,
                                  const struct statement_target *target)
{
    if (target->many)
        return hf__fail(s, HF_INVALID,
                        "PartiQL statements cannot be executed on tables with multi-attribute HASH "
                        "keys or multi-attribute RANGE keys.");
    if (target->global && q->request->consistent == HF_YES)
        return hf__fail(s, HF_INVALID,
                        "Strongly consistent read is not supported on Global Secondary Indexes");
    if (target->missing_column.ptr)
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: Global secondary index %.*s "
                        "does not project [%.*s]",
                        HF_FMT(q->statement->index), HF_FMT(target->missing_column));
    return HF_OK;
}

/* A read by key may not filter by attributes that the index lacks; in a scan they are absent. */
static enum hf_status check_filter(struct hf_scope *s, const struct select *q,
                                   const struct statement_target *target)
{
    if (!q->spans_len || !target->missing_filter.ptr)
        return HF_OK;
    return hf__fail(s, HF_INVALID,
                    "One or more parameter values were invalid: Secondary index %.*s does not "
                    "project one or more filter attributes: [%.*s]",
                    HF_FMT(q->statement->index), HF_FMT(target->missing_filter));
}

static enum hf_status fill_result(struct hf_scope *s, struct select *q,
                                  struct hf_execute_statement_result *result)
{
    size_t reads = q->spans_len ? q->spans_len : 1;

    hf__buf_reserve(&q->items, sizeof(struct hf_item)); /* an empty list is not an absent one */
    if (q->items.failed)
        return hf__fail_nomem(s);
    result->items = (const struct hf_item *)(const void *)q->items.ptr;
    result->items_len = q->items.len / sizeof(struct hf_item);
    result->capacity = q->capacity;
    result->last = q->start;
    return q->at < reads ? write_token(s, q, &result->next_token) : HF_OK;
}

static enum hf_status select_items(struct hf_scope *s, struct engine *e,
                                   const struct hf_execute_statement *request,
                                   const struct statement *statement,
                                   const struct statement_target *target,
                                   struct hf_execute_statement_result *result)
{
    struct select q = {.e = e,
                       .request = request,
                       .statement = statement,
                       .key = target->index ? &target->index_key : &target->key,
                       .items = {.scope = s},
                       .left = request->limit};
    size_t reads;

    TRY(check_index(s, &q, target));
    TRY(hf__partiql_spans(s, statement, q.key, &q.spans, &q.spans_len));
    TRY(check_filter(s, &q, target));
    TRY(apply_order(s, &q));
    TRY(read_token(s, &q));
    reads = q.spans_len ? q.spans_len : 1;
    while (q.at < reads) {
        TRY(hf__scope_alive(s));
        TRY(read_next(s, &q));
        if (q.start.ptr || q.bytes > PAGE_BYTES_MAX || (request->limit && q.left <= 0))
            break;
    }
    return fill_result(s, &q, result);
}

/* ---- the operation -------------------------------------------------------------------------- */

static enum hf_status change_item(struct hf_scope *s, struct engine *e,
                                  const struct hf_execute_statement *request,
                                  const struct statement *statement,
                                  const struct statement_target *target,
                                  struct hf_execute_statement_result *result)
{
    const struct statement_wishes wishes = {
        .capacity = request->return_capacity,
        .old_on_failure = request->returns_on_failure == HF_ON_FAILURE_ALL_OLD,
    };
    struct write_answer answer = {.attributes = {NULL, 0}};
    struct hf_item *item = hf__scope_array(s, 1, sizeof(*item));
    struct statement_found found;

    if (!item)
        return hf__fail_nomem(s);
    TRY(hf__statement_find_item(s, statement, target, &found));
    TRY(hf__statement_change(s, e, statement, target, &found, &wishes, &answer));
    *item = answer.attributes;
    result->items = item;
    result->items_len = answer.attributes.ptr != NULL;
    result->capacity = answer.capacity;
    return HF_OK;
}

enum hf_status hf__engine_execute_statement(struct hf_scope *s, struct engine *e,
                                            const struct hf_execute_statement *request,
                                            struct hf_execute_statement_result *result)
{
    struct statement_target target;
    struct statement statement;

    TRY(hf__prepare_plain(s, HF_OP_EXECUTE_STATEMENT, request));
    TRY(hf__prepare_parameters(s, request->parameters, request->parameters_len));
    TRY(hf__prepare_statement(s, request->statement, request->parameters, request->parameters_len,
                              &statement));
    if (statement.kind == STATEMENT_EXISTS)
        return hf__fail(s, HF_INVALID,
                        "EXISTS can only be used in ExecuteTransaction write requests.");
    TRY(hf__statement_target(s, e, &statement, &target));
    if (statement.kind == STATEMENT_SELECT)
        return select_items(s, e, request, &statement, &target, result);
    if (request->next_token.ptr) /* of another statement: no write has one */
        return hf__fail(s, HF_INVALID, "NextToken does not match request");
    return change_item(s, e, request, &statement, &target, result);
}
