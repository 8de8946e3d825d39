/*
 * ops/prepare_pages.c: Query and Scan.
 *
 * Both run the same steps; a query has a key condition, a scan has segments. Select, and whether an
 * index exists, come after the table was found and are the engine's, with hf__prepare_select() for
 * what Select means to the request alone.
 */
#include "ops/private.h"

static int64_t number_of(int64_t given)
{
    return given == HF_ZERO ? 0 : given;
}

void hf__prepared_page_check(const struct prepared_page *page)
{
    assert(page->table.ptr && page->limit >= 0);
    assert(page->total_segments >= 1);
    assert(page->segment >= 0 && page->segment < page->total_segments);
    assert(!page->key || page->total_segments == 1); /* a query has no segments, */
    assert(page->key || !page->reverse);             /* a scan no order */
    assert(page->key || !page->legacy_key);
    assert(!page->legacy_filter || !page->statement);
    assert(!page->legacy_projection || !page->statement);
}

/* ---- Query ---------------------------------------------------------------------------------- */

static enum hf_status query_legacy(struct hf_scope *s, const struct hf_query *request,
                                   struct prepared_page *out)
{
    TRY(hf__legacy_filter(s, HF_OP_QUERY, request->query_filter, request->query_filter_len,
                          request->conditional_operator, &out->filter));
    return hf__legacy_projection(s, request->attributes_to_get, request->attributes_to_get_len,
                                 &out->projection);
}

static struct prepared_page query_page(const struct hf_query *request)
{
    return (struct prepared_page){
        .table = request->table,
        .index = request->index,
        .legacy_filter = request->query_filter != NULL,
        .legacy_projection = request->attributes_to_get != NULL,
        .legacy_key = request->key_conditions != NULL,
        .select = request->select,
        .limit = number_of(request->limit),
        .start = request->start,
        .reverse = request->forward == HF_NO,
        .consistent = request->consistent == HF_YES,
        .total_segments = 1,
        .return_capacity = request->return_capacity,
    };
}

enum hf_status hf__prepare_query(struct hf_scope *s, struct hf__expr_cache *cache,
                                 const struct hf_query *request, struct prepared_page *out)
{
    struct expr_bound *key = NULL;
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_QUERY,
        .list = {{"ProjectionExpression", EXPR_PROJECTION, request->projection, &out->projection},
                 {"FilterExpression", EXPR_FILTER, request->filter, &out->filter},
                 {"KeyConditionExpression", EXPR_KEY_CONDITION, request->key_condition, &key}},
        .len = 3,
        .order = {1, 0, 2},
        .legacy = {{"AttributesToGet", request->attributes_to_get != NULL},
                   {"QueryFilter", request->query_filter != NULL},
                   {"ConditionalOperator", request->conditional_operator != 0},
                   {"KeyConditions", request->key_conditions != NULL}},
        .legacy_len = 4,
        .names = request->names,
        .values = request->values,
    };

    *out = query_page(request);
    TRY(hf__constraints(s, HF_OP_QUERY, request));
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(query_legacy(s, request, out));
    TRY(hf__check_start(s, HF_OP_QUERY, request->start));
    if (!request->key_conditions && !request->key_condition.ptr)
        return hf__fail(s, HF_INVALID,
                        "Either the KeyConditions or KeyConditionExpression parameter must be "
                        "specified in the request.");
    TRY(hf__expressions_bind(s, &expressions));
    if (request->key_conditions)
        TRY(hf__legacy_key(s, request->key_conditions, request->key_conditions_len, &key));
    assert(key); /* one of the two was given, and not both */
    out->key = key;
    hf__prepared_page_check(out);
    return HF_OK;
}

/* ---- Scan ----------------------------------------------------------------------------------- */

static enum hf_status check_segments(struct hf_scope *s, const struct hf_scan *request)
{
    int64_t segment = number_of(request->segment);

    if (request->segment && !request->total_segments)
        return hf__fail(s, HF_INVALID,
                        "The TotalSegments parameter is required but was not present in the "
                        "request when Segment parameter is present");
    if (!request->total_segments)
        return HF_OK;
    if (!request->segment)
        return hf__fail(s, HF_INVALID,
                        "The Segment parameter is required but was not present in the request "
                        "when parameter TotalSegments is present");
    if (segment >= request->total_segments)
        return hf__fail(s, HF_INVALID,
                        "The Segment parameter is zero-based and must be less than parameter "
                        "TotalSegments: Segment: %lld is not less than TotalSegments: %lld",
                        (long long)segment, (long long)request->total_segments);
    return HF_OK;
}

static struct prepared_page scan_page(const struct hf_scan *request)
{
    return (struct prepared_page){
        .table = request->table,
        .index = request->index,
        .legacy_filter = request->scan_filter != NULL,
        .legacy_projection = request->attributes_to_get != NULL,
        .select = request->select,
        .limit = number_of(request->limit),
        .start = request->start,
        .consistent = request->consistent == HF_YES,
        .segment = number_of(request->segment),
        .total_segments = request->total_segments ? request->total_segments : 1,
        .return_capacity = request->return_capacity,
    };
}

enum hf_status hf__prepare_scan(struct hf_scope *s, struct hf__expr_cache *cache,
                                const struct hf_scan *request, struct prepared_page *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_SCAN,
        .list = {{"ProjectionExpression", EXPR_PROJECTION, request->projection, &out->projection},
                 {"FilterExpression", EXPR_FILTER, request->filter, &out->filter}},
        .len = 2,
        .order = {1, 0},
        .legacy = {{"AttributesToGet", request->attributes_to_get != NULL},
                   {"ScanFilter", request->scan_filter != NULL},
                   {"ConditionalOperator", request->conditional_operator != 0}},
        .legacy_len = 3,
        .names = request->names,
        .values = request->values,
    };

    *out = scan_page(request);
    TRY(hf__constraints(s, HF_OP_SCAN, request));
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__legacy_projection(s, request->attributes_to_get, request->attributes_to_get_len,
                              &out->projection));
    TRY(hf__legacy_filter(s, HF_OP_SCAN, request->scan_filter, request->scan_filter_len,
                          request->conditional_operator, &out->filter));
    TRY(hf__check_start(s, HF_OP_SCAN, request->start));
    TRY(check_segments(s, request));
    TRY(hf__expressions_bind(s, &expressions));
    hf__prepared_page_check(out);
    return HF_OK;
}

/* ---- Select --------------------------------------------------------------------------------- */

static const char *select_name(enum hf_select select)
{
    assert(select != 0); /* it was given */
    switch (select) {
    case HF_SELECT_ALL_ATTRIBUTES:
        return "ALL_ATTRIBUTES";
    case HF_SELECT_ALL_PROJECTED_ATTRIBUTES:
        return "ALL_PROJECTED_ATTRIBUTES";
    case HF_SELECT_COUNT:
        return "COUNT";
    case HF_SELECT_SPECIFIC_ATTRIBUTES:
        break;
    }
    return "SPECIFIC_ATTRIBUTES";
}

enum hf_status hf__prepare_select(struct hf_scope *s, const struct prepared_page *page)
{
    const char *projection = page->legacy_projection ? "AttributesToGet" : "ProjectionExpression";

    assert(page->table.ptr);
    if (page->select == HF_SELECT_SPECIFIC_ATTRIBUTES && !page->projection)
        return hf__fail(s, HF_INVALID,
                        "Must specify the AttributesToGet or ProjectionExpression when choosing "
                        "to get SPECIFIC_ATTRIBUTES");
    if (page->select && page->select != HF_SELECT_SPECIFIC_ATTRIBUTES && page->projection)
        return hf__fail(s, HF_INVALID, "Cannot specify the %s when choosing to get %s", projection,
                        page->select == HF_SELECT_COUNT ? "only the Count"
                                                        : select_name(page->select));
    if (page->select == HF_SELECT_ALL_PROJECTED_ATTRIBUTES && !page->index.ptr)
        return hf__fail(s, HF_INVALID,
                        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an "
                        "IndexName");
    return HF_OK;
}
