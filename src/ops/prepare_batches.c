/*
 * ops/prepare_batches.c: BatchGetItem and BatchWriteItem.
 *
 * RequestItems is a map of lists. The tables of fields.c have no limits for its keys and lists, so
 * these are checked here and reported together with the other constraints. Whether a key is written
 * twice depends on the schema: the engine checks that.
 */
#include "ops/private.h"

enum {
    BATCH_GET_MAX = 100,
    TABLE_MIN = 3, /* characters of a name in the map */
    TABLE_MAX = 255,
    PRINTED_MAX = 4096 /* bytes of a map, about, in a message */
};

#define KEYS_CONSTRAINT                                                                            \
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "       \
    "Member must have length greater than or equal to 3, Member must satisfy regular expression "  \
    "pattern: [a-zA-Z0-9_.-]+]"
#define WRITES_CONSTRAINT                                                                          \
    "Map value must satisfy constraint: [Member must have length less than or equal to 25, "       \
    "Member must have length greater than or equal to 1]"

static const struct field *request_items(const struct op *op)
{
    assert(op->request->len > 0 && strcmp(op->request->list[0].name, "RequestItems") == 0);
    return &op->request->list[0];
}

/* Text as a JSON string, with quotes, backslashes and control characters escaped. */
static void put_quoted(struct hf__buf *out, struct hf_str text)
{
    hf__buf_put_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];

        if (c < 0x20)
            hf__buf_format(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            hf__buf_format(out, "\\%c", c);
        else
            hf__buf_put_byte(out, c);
    }
    hf__buf_put_byte(out, '"');
}

/* BatchGetItem's map is printed as JSON. */
static void print_reads(struct hf_scope *s, struct hf__buf *out,
                        const struct hf_batch_get_item *request)
{
    assert(request->tables || !request->tables_len);
    hf__buf_put_byte(out, '{');
    for (size_t i = 0; i < request->tables_len && out->len < PRINTED_MAX; i++) {
        const struct hf_table_gets *reads = &request->tables[i];

        hf__buf_put_str(out, i ? HF_STR(",") : HF_STR(""));
        put_quoted(out, reads->table);
        hf__buf_put_str(out, HF_STR(":{\"Keys\":["));
        for (size_t k = 0; k < reads->keys_len && out->len < PRINTED_MAX; k++) {
            struct hf_str key = HF_STR("null");

            if (reads->keys[k].ptr && !hf__item_poisoned(reads->keys[k]))
                key = hf_item_to_json(s, reads->keys[k]);
            out->failed |= !key.ptr;
            hf__buf_put_str(out, k ? HF_STR(",") : HF_STR(""));
            hf__buf_put_str(out, key);
        }
        hf__buf_put_str(out, HF_STR("]}"));
    }
    hf__buf_put_byte(out, '}');
}

/* RequestItems as a whole breaks `constraint`. */
static enum hf_status add_for_map(struct violations *v, const struct op *op, const void *request,
                                  const char *constraint)
{
    struct hf__buf printed = {.scope = v->s};

    assert(op->op == HF_OP_BATCH_GET_ITEM || op->op == HF_OP_BATCH_WRITE_ITEM);
    if (op->op == HF_OP_BATCH_GET_ITEM)
        print_reads(v->s, &printed, request);
    else
        hf__print_field(v->s, &printed, request_items(op), request);
    if (printed.failed)
        return hf__fail_nomem(v->s);
    hf__violation_add(v,
                      hf__scope_wording(v->s) == HF__WORDING_2026 ? HF_STR("RequestItems")
                                                                  : HF_STR("requestItems"),
                      hf_str_of((const char *)printed.ptr, printed.len), constraint);
    return HF_OK;
}

static bool bad_table(struct hf_str table)
{
    if (table.len > 4 && memcmp(table.ptr, "arn:", 4) == 0)
        return false;
    return table.len < TABLE_MIN || table.len > TABLE_MAX || !hf__ops_is_table_name(table);
}

/* An empty map has a sentence of its own in the older texts. */
static enum hf_status check_empty(struct hf_scope *s, const struct op *op, const void *map,
                                  size_t len)
{
    assert(map || !len);
    if (!map || len > 0)
        return HF_OK;
    if (hf__scope_wording(s) == HF__WORDING_2026)
        return hf__fail(s, HF_INVALID,
                        "1 validation error detected: Value at 'RequestItems' failed to satisfy "
                        "constraint: Member must have length greater than or equal to 1");
    return hf__fail(s, HF_INVALID, "The requestItems parameter is required for %.*s",
                    HF_FMT(op->name));
}

/* ---- BatchGetItem --------------------------------------------------------------------------- */

static enum hf_status get_constraints(struct hf_scope *s, const struct hf_batch_get_item *request)
{
    const struct op *op = hf__op(HF_OP_BATCH_GET_ITEM);
    struct violations v = {.s = s, .text = {.scope = s}};

    TRY(hf__constraints_collect(&v, op, request));
    for (size_t i = 0; i < request->tables_len && v.count < VIOLATIONS_MAX; i++)
        if (bad_table(request->tables[i].table))
            TRY(add_for_map(&v, op, request, KEYS_CONSTRAINT));
    TRY(hf__violations_end(&v));
    return check_empty(s, op, request->tables, request->tables_len);
}

/* DynamoDB compares keys as they were written; ours are canonical by now, which finds more. */
static enum hf_status check_keys(struct hf_scope *s, const struct hf_table_gets *reads)
{
    assert(reads->keys || !reads->keys_len);
    for (size_t i = 0; i < reads->keys_len; i++) {
        TRY(hf__check_item(s, HF_OP_BATCH_GET_ITEM, reads->keys[i]));
        for (size_t j = 0; j < i; j++)
            if (hf_item_equal(reads->keys[i], reads->keys[j]))
                return hf__fail(s, HF_INVALID, "Provided list of item keys contains duplicates");
    }
    return HF_OK;
}

static enum hf_status prepare_reads(struct hf_scope *s, struct hf__expr_cache *cache,
                                    const struct hf_table_gets *reads, struct prepared_read *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_BATCH_GET_ITEM,
        .list = {{"ProjectionExpression", EXPR_PROJECTION, reads->projection, &out->projection}},
        .len = 1,
        .legacy = {{"AttributesToGet", reads->attributes_to_get != NULL}},
        .legacy_len = 1,
        .names = reads->names,
    };

    assert(reads->table.ptr);
    *out = (struct prepared_read){
        .table = reads->table,
        .consistent = reads->consistent == HF_YES,
    };
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__legacy_projection(s, reads->attributes_to_get, reads->attributes_to_get_len,
                              &out->projection));
    TRY(hf__expressions_bind(s, &expressions));
    return check_keys(s, reads);
}

/* Expressions for one table and none for another count as mixed, too. */
static enum hf_status check_mixed_tables(struct hf_scope *s,
                                         const struct hf_batch_get_item *request)
{
    struct expressions all = {
        .op = HF_OP_BATCH_GET_ITEM,
        .list = {{.name = "ProjectionExpression", .kind = EXPR_PROJECTION}},
        .len = 1,
        .legacy = {{"AttributesToGet", false}},
        .legacy_len = 1,
    };

    assert(request->tables || !request->tables_len);
    for (size_t i = 0; i < request->tables_len; i++) {
        if (request->tables[i].projection.ptr)
            all.list[0].text = request->tables[i].projection;
        all.legacy[0].given |= request->tables[i].attributes_to_get != NULL;
    }
    return hf__expressions_mixed(s, &all);
}

enum hf_status hf__prepare_batch_get_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                          const struct hf_batch_get_item *request,
                                          struct prepared_read **out)
{
    size_t keys = 0;

    TRY(get_constraints(s, request));
    TRY(check_mixed_tables(s, request));
    *out = hf__scope_array(s, request->tables_len, sizeof(**out));
    if (!*out)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < request->tables_len; i++) {
        TRY(prepare_reads(s, cache, &request->tables[i], &(*out)[i]));
        (*out)[i].return_capacity = request->return_capacity;
        keys += request->tables[i].keys_len;
        if (keys > BATCH_GET_MAX)
            return hf__fail(s, HF_INVALID, "Too many items requested for the BatchGetItem call");
    }
    return HF_OK;
}

/* ---- BatchWriteItem ------------------------------------------------------------------------- */

/* A list of the map is empty or too long; the newer layer names the list instead of the map. */
static enum hf_status add_for_list(struct violations *v, const struct hf_batch_write_item *request,
                                   const struct hf_table_writes *writes)
{
    struct hf_str path;

    assert(writes->writes_len < 1 || writes->writes_len > BATCH_WRITE_MAX);
    if (hf__scope_wording(v->s) != HF__WORDING_2026)
        return add_for_map(v, hf__op(HF_OP_BATCH_WRITE_ITEM), request, WRITES_CONSTRAINT);
    path = hf_scope_format(v->s, "RequestItems.%.*s.member", HF_FMT(writes->table));
    if (!path.ptr)
        return hf__fail_nomem(v->s);
    hf__violation_add(v, path, path,
                      writes->writes_len ? "Member must have length less than or equal to 25"
                                         : "Member must have length greater than or equal to 1");
    return HF_OK;
}

/* Unlike in BatchGetItem, names of tables are checked only when all else is valid. */
static enum hf_status write_constraints(struct hf_scope *s,
                                        const struct hf_batch_write_item *request)
{
    const struct op *op = hf__op(HF_OP_BATCH_WRITE_ITEM);
    struct violations v = {.s = s, .text = {.scope = s}};

    TRY(hf__constraints_collect(&v, op, request));
    for (size_t i = 0; i < request->tables_len && v.count < VIOLATIONS_MAX; i++)
        if (request->tables[i].writes_len < 1 || request->tables[i].writes_len > BATCH_WRITE_MAX)
            TRY(add_for_list(&v, request, &request->tables[i]));
    TRY(hf__violations_end(&v));
    for (size_t i = 0; i < request->tables_len && v.count == 0; i++)
        if (bad_table(request->tables[i].table))
            TRY(add_for_map(&v, op, request, KEYS_CONSTRAINT));
    TRY(hf__violations_end(&v));
    return check_empty(s, op, request->tables, request->tables_len);
}

/* Exactly one of the two. The service's error is that of an attribute value. */
static enum hf_status check_write(struct hf_scope *s, const struct hf_write_request *write,
                                  size_t *size)
{
    *size = 0;
    if (!write->put == !write->del)
        return hf__fail(s, HF_INVALID,
                        "Supplied AttributeValue has more than one datatypes set, must contain "
                        "exactly one of the supported datatypes");
    if (write->del)
        return hf__check_item(s, HF_OP_BATCH_WRITE_ITEM, write->del->key);
    assert(write->put);
    TRY(hf__check_item(s, HF_OP_BATCH_WRITE_ITEM, write->put->item));
    return hf__check_item_size(s, write->put->item, size);
}

enum hf_status hf__prepare_batch_write_item(struct hf_scope *s,
                                            const struct hf_batch_write_item *request,
                                            size_t *sizes)
{
    size_t writes = 0, at = 0;

    TRY(write_constraints(s, request));
    for (size_t i = 0; i < request->tables_len; i++)
        writes += request->tables[i].writes_len;
    if (writes > BATCH_WRITE_MAX)
        return hf__fail(s, HF_INVALID, "Too many items requested for the BatchWriteItem call");
    for (size_t i = 0; i < request->tables_len; i++)
        for (size_t k = 0; k < request->tables[i].writes_len; k++, at++) {
            size_t size;

            TRY(check_write(s, &request->tables[i].writes[k], &size));
            if (sizes)
                sizes[at] = size;
        }
    assert(at == writes && at <= BATCH_WRITE_MAX);
    return HF_OK;
}
