/*
 * db/pages.c: lists that come in pages, one element or one page at a time.
 *
 * A list has a copy of its request, the page that it is in, and `next`, which is where the page
 * behind that one starts. The page is in a scope of the list, which is reset for each page.
 *
 *  (1) A step that fails changes nothing but that the old page is gone: `next` is replaced when the
 *      new page is there, so the step can be repeated.
 *  (2) A page's scope ends with the scope that the step was given (hf__scope_follow()), and what
 *      fails in it is reported in that one.
 *  (3) Elements are handed out in their order, each once, and at most `limit` of them.
 *  (4) Memory is the request, one page, and two keys.
 *  (5) A list ends, or fails, whatever a service answers: a page that is to be continued from where
 *      an earlier one was, at once or in a circle, is refused. The place of one page is remembered,
 *      and each time that twice as many have come since, that of the newest (Brent's way to find a
 *      circle), so a circle of n pages is seen within 3 n of them.
 */
#include <holdfast/pages.h>

#include "base/buf.h"
#include "db/db.h"
#include "db/request_copy.h"

struct hf_pages {
    struct hf_env env;
    struct hf_db *db;
    enum hf_op op;
    struct hf_scope *memory;  /* of the request */
    struct hf_scope *current; /* of the page */
    void *request;
    uint64_t left;       /* elements that may be handed out */
    struct hf_page page; /* as it came; `found` once there is one */
    size_t at;           /* elements of it that were handed out */
    size_t whole;        /* how many it came with, before the limit cut it */
    bool last;           /* no page comes behind it */
    struct hf__buf next; /* the key or text where the next page starts; empty: the request's own */
    struct hf__buf seen; /* (5): where some page before ended */
    uint64_t since;      /* (5): pages since then */
    uint64_t again_at;   /* (5): at how many the newest is remembered instead; a power of two */
    int64_t count;       /* of pages that were not handed out */
    int64_t scanned_count;
};

/* ---- beginning and end ---------------------------------------------------------------------- */

static enum hf_status options_check(struct hf_scope *s, const struct hf_db *db, enum hf_op op,
                                    const void *request, const struct hf_pages_options *options)
{
    enum hf_select select = 0;

    if (!db || !request)
        return hf__fail(s, HF_INVALID, "pages of %.*s were asked for without a %s (NULL)",
                        HF_FMT(hf_op_name(op)), db ? "request" : "database");
    if (op == HF_OP_QUERY)
        select = ((const struct hf_query *)request)->select;
    if (op == HF_OP_SCAN)
        select = ((const struct hf_scan *)request)->select;
    if (select == HF_SELECT_COUNT && options->limit)
        return hf__fail(s, HF_INVALID, "pages of %.*s: a limit cannot be used with a count",
                        HF_FMT(hf_op_name(op)));
    return HF_OK;
}

/* Copy the error of one of our scopes to the caller's scope. */
static enum hf_status error_copy(struct hf_scope *s, const struct hf_scope *inner,
                                 enum hf_status status)
{
    const struct hf_error *error = hf_scope_error(inner);
    struct hf_error *copy = hf__scope_error_edit(s);

    hf__fail_text(s, status, hf_scope_copy(s, error->message));
    copy->operation = error->operation;
    if (error->exception.ptr)
        copy->exception = hf_scope_copy(s, error->exception);
    copy->may_retry = error->may_retry;
    copy->may_have_happened = error->may_have_happened;
    copy->retry_after_ms = error->retry_after_ms;
    return status;
}

static enum hf_status pages_begin(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, const struct hf_pages_options *options,
                                  struct hf_pages **pages)
{
    const struct fields *fields = hf__op(op)->request;
    struct hf_pages_options o = {.size = sizeof(o)};
    const struct hf_env *env = hf__scope_env(s);
    struct hf_pages *p;
    enum hf_status status;

    *pages = NULL;
    hf__scope_error_clear(s);
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    TRY(options_check(s, db, op, request, &o));
    p = hf__env_alloc(env, sizeof(*p));
    if (!p)
        return hf__fail_nomem(s);
    *p = (struct hf_pages){.env = *env, .db = db, .op = op, .left = o.limit ? o.limit : UINT64_MAX};
    p->memory = hf_scope_new(env);
    p->current = hf_scope_new(env);
    p->next.env = p->seen.env = &p->env;
    p->request = p->memory ? hf_scope_alloc(p->memory, fields->size) : NULL;
    if (!p->current || !p->request) {
        hf_pages_free(p);
        return hf__fail_nomem(s);
    }
    status = hf__request_copy(p->memory, fields, request, p->request);
    if (status != HF_OK) {
        error_copy(s, p->memory, status);
        hf_pages_free(p);
        return status;
    }
    *pages = p;
    return HF_OK;
}

#define BEGIN(constant, name)                                                                      \
    enum hf_status hf_pages_##name(struct hf_scope *s, struct hf_db *db,                           \
                                   const struct hf_##name *request,                                \
                                   const struct hf_pages_options *options,                         \
                                   struct hf_pages **pages)                                        \
    {                                                                                              \
        return pages_begin(s, db, HF_OP_##constant, request, options, pages);                      \
    }

BEGIN(QUERY, query)
BEGIN(SCAN, scan)
BEGIN(LIST_TABLES, list_tables)
BEGIN(LIST_TAGS_OF_RESOURCE, list_tags_of_resource)
BEGIN(LIST_STREAMS, list_streams)
BEGIN(DESCRIBE_STREAM, describe_stream)

void hf_pages_free(struct hf_pages *pages)
{
    struct hf_env env;

    if (!pages)
        return;
    hf__buf_free(&pages->next);
    hf__buf_free(&pages->seen);
    hf_scope_free(pages->current);
    hf_scope_free(pages->memory);
    env = pages->env;
    hf__env_free(&env, pages, sizeof(*pages));
}

/* ---- a page --------------------------------------------------------------------------------- */

static struct hf_item key_of(const struct hf__buf *buf)
{
    return (struct hf_item){.ptr = buf->ptr, .len = buf->len};
}

static struct hf_str text_of(const struct hf__buf *buf)
{
    return hf_str_of((const char *)buf->ptr, buf->len);
}

/* Without a filter no more need be looked at than may be handed out. */
static int64_t page_limit(const struct hf_pages *p, int64_t asked, bool filtered)
{
    if (filtered || p->left > INT32_MAX || (asked > 0 && (uint64_t)asked <= p->left) || asked < 0)
        return asked;
    return (int64_t)p->left;
}

static enum hf_status fetch_query(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    struct hf_query request = *(const struct hf_query *)p->request;
    struct hf_query_result result;

    if (p->next.len)
        request.start = key_of(&p->next);
    request.limit = page_limit(p, request.limit, request.filter.len || request.query_filter_len);
    TRY(hf_query(p->current, p->db, &request, &result));
    page->items = result.items;
    page->len = result.items_len;
    page->count = result.count;
    page->scanned_count = result.scanned_count;
    *next = hf_str_of((const char *)result.last.ptr, result.last.len);
    return HF_OK;
}

static enum hf_status fetch_scan(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    struct hf_scan request = *(const struct hf_scan *)p->request;
    struct hf_scan_result result;

    if (p->next.len)
        request.start = key_of(&p->next);
    request.limit = page_limit(p, request.limit, request.filter.len || request.scan_filter_len);
    TRY(hf_scan(p->current, p->db, &request, &result));
    page->items = result.items;
    page->len = result.items_len;
    page->count = result.count;
    page->scanned_count = result.scanned_count;
    *next = hf_str_of((const char *)result.last.ptr, result.last.len);
    return HF_OK;
}

static enum hf_status fetch_tables(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    struct hf_list_tables request = *(const struct hf_list_tables *)p->request;
    struct hf_list_tables_result result;

    if (p->next.len)
        request.start = text_of(&p->next);
    TRY(hf_list_tables(p->current, p->db, &request, &result));
    page->tables = result.tables;
    page->len = result.tables_len;
    *next = result.last;
    return HF_OK;
}

static enum hf_status fetch_tags(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    struct hf_list_tags_of_resource request = *(const struct hf_list_tags_of_resource *)p->request;
    struct hf_list_tags_of_resource_result result;

    if (p->next.len)
        request.next_token = text_of(&p->next);
    TRY(hf_list_tags_of_resource(p->current, p->db, &request, &result));
    page->tags = result.tags;
    page->len = result.tags_len;
    *next = result.next_token;
    return HF_OK;
}

static enum hf_status fetch_streams(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    struct hf_list_streams request = *(const struct hf_list_streams *)p->request;
    struct hf_list_streams_result result;

    if (p->next.len)
        request.start_arn = text_of(&p->next);
    TRY(hf_list_streams(p->current, p->db, &request, &result));
    page->streams = result.streams;
    page->len = result.streams_len;
    *next = result.last_arn;
    return HF_OK;
}

static enum hf_status fetch_shards(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    struct hf_describe_stream request = *(const struct hf_describe_stream *)p->request;
    struct hf_describe_stream_result result;

    if (p->next.len)
        request.start_shard = text_of(&p->next);
    TRY(hf_describe_stream(p->current, p->db, &request, &result));
    page->shards = result.stream->shards;
    page->len = result.stream->shards_len;
    *next = result.stream->last_shard;
    return HF_OK;
}

static enum hf_status fetch_of_op(struct hf_pages *p, struct hf_page *page, struct hf_str *next)
{
    switch (p->op) {
    case HF_OP_QUERY:
        return fetch_query(p, page, next);
    case HF_OP_SCAN:
        return fetch_scan(p, page, next);
    case HF_OP_LIST_TABLES:
        return fetch_tables(p, page, next);
    case HF_OP_LIST_TAGS_OF_RESOURCE:
        return fetch_tags(p, page, next);
    case HF_OP_LIST_STREAMS:
        return fetch_streams(p, page, next);
    default:
        assert(p->op == HF_OP_DESCRIBE_STREAM);
        return fetch_shards(p, page, next);
    }
}

/* (5) */
static enum hf_status check_progress(struct hf_scope *s, const struct hf_pages *p,
                                     struct hf_str next)
{
    if (!next.len || !p->seen.len || !hf_str_equal(next, text_of(&p->seen)))
        return HF_OK;
    hf__fail(s, HF_IO,
             "%.*s goes in circles: a page ends where an earlier one did, so the list would never "
             "end",
             HF_FMT(hf_op_name(p->op)));
    hf__scope_error_edit(s)->operation = hf_op_name(p->op);
    return HF_IO;
}

/* (5): a place that there is no memory for is not remembered; one behind it will be. */
static void position_remember(struct hf_pages *p, struct hf_str next)
{
    struct hf__buf seen = {.env = &p->env};

    if (p->since++ < p->again_at)
        return;
    hf__buf_put_str(&seen, next);
    if (seen.failed) {
        hf__buf_free(&seen);
        return;
    }
    hf__buf_free(&p->seen);
    p->seen = seen;
    p->again_at = p->again_at ? 2 * p->again_at : 1;
    p->since = 0;
}

static void pages_check(const struct hf_pages *p)
{
    assert(p->at <= p->page.len && p->page.len <= p->whole);
    assert(p->left >= p->page.len - p->at);
    assert(!p->page.found || p->last == (p->next.len == 0));
    assert((p->again_at & (p->again_at - 1)) == 0); /* (5): a power of two */
}

/* The page behind this one; (1), (2). */
static enum hf_status page_fetch(struct hf_scope *s, struct hf_pages *p)
{
    struct hf_page page = {.found = true};
    struct hf__buf kept = {.env = &p->env};
    struct hf_str next = {NULL, 0};
    enum hf_status status;

    p->page.len = p->whole = p->at = 0;
    hf_scope_reset(p->current);
    hf__scope_follow(p->current, s);
    status = fetch_of_op(p, &page, &next);
    if (status != HF_OK)
        return error_copy(s, p->current, status);
    TRY(check_progress(s, p, next));
    hf__buf_put_str(&kept, next);
    if (kept.failed) {
        hf__buf_free(&kept);
        return hf__fail_nomem(s);
    }
    hf__buf_free(&p->next);
    p->next = kept;
    p->last = next.len == 0;
    position_remember(p, next);
    p->page = page;
    p->whole = page.len;
    if (page.len > p->left) /* the rest is for a list that continues from the cursor */
        p->page.len = (size_t)p->left;
    p->count += page.count;
    p->scanned_count += page.scanned_count;
    pages_check(p);
    return HF_OK;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static bool is_counting(const struct hf_pages *p)
{
    return (p->op == HF_OP_QUERY &&
            ((const struct hf_query *)p->request)->select == HF_SELECT_COUNT) ||
           (p->op == HF_OP_SCAN && ((const struct hf_scan *)p->request)->select == HF_SELECT_COUNT);
}

/* Let there be elements that were not handed out, or, when it counts, a new page; or the end. */
static enum hf_status pages_advance(struct hf_scope *s, struct hf_pages *p, bool *found)
{
    *found = true;
    if (p->at < p->page.len)
        return HF_OK;
    while (!(p->page.found && p->last) && p->left > 0) {
        TRY(page_fetch(s, p));
        if (p->page.len || is_counting(p))
            return HF_OK;
    }
    *found = false;
    return HF_OK;
}

enum hf_status hf_pages_next(struct hf_scope *s, struct hf_pages *p, struct hf_page *page)
{
    bool found;

    *page = (struct hf_page){.found = false};
    hf__scope_error_clear(s);
    TRY(pages_advance(s, p, &found));
    if (found) {
        *page = p->page;
        page->len -= p->at;
        page->items = page->items ? page->items + p->at : NULL;
        page->tables = page->tables ? page->tables + p->at : NULL;
        page->tags = page->tags ? page->tags + p->at : NULL;
        page->streams = page->streams ? page->streams + p->at : NULL;
        page->shards = page->shards ? page->shards + p->at : NULL;
        p->left -= page->len;
        p->at = p->page.len;
        pages_check(p);
    }
    page->count = p->count;
    page->scanned_count = p->scanned_count;
    p->count = p->scanned_count = 0;
    return HF_OK;
}

/* The number of the next element in the page, or `found` false. */
static enum hf_status element_next(struct hf_scope *s, struct hf_pages *p, bool right_kind,
                                   size_t *at, bool *found)
{
    *found = false;
    hf__scope_error_clear(s);
    if (!right_kind)
        return hf__fail(s, HF_INVALID, "the result of %.*s has elements of another type",
                        HF_FMT(hf_op_name(p->op)));
    do {
        TRY(pages_advance(s, p, found));
    } while (*found && p->at == p->page.len); /* a count has pages, but no elements */
    if (*found) {
        *at = p->at++;
        p->left--;
        pages_check(p);
    }
    return HF_OK;
}

#define NEXT(name, type, list, is_right)                                                           \
    enum hf_status hf_pages_next_##name(struct hf_scope *s, struct hf_pages *pages, type *element) \
    {                                                                                              \
        size_t at;                                                                                 \
        bool found;                                                                                \
                                                                                                   \
        memset(element, 0, sizeof(*element));                                                      \
        TRY(element_next(s, pages, (is_right), &at, &found));                                      \
        if (found)                                                                                 \
            *element = pages->page.list[at];                                                       \
        return HF_OK;                                                                              \
    }

NEXT(item, struct hf_item, items, pages->op == HF_OP_QUERY || pages->op == HF_OP_SCAN)
NEXT(table, struct hf_str, tables, pages->op == HF_OP_LIST_TABLES)
NEXT(tag, struct hf_tag, tags, pages->op == HF_OP_LIST_TAGS_OF_RESOURCE)
NEXT(stream, struct hf_stream_name, streams, pages->op == HF_OP_LIST_STREAMS)
NEXT(shard, struct hf_shard, shards, pages->op == HF_OP_DESCRIBE_STREAM)

/* ---- cursors -------------------------------------------------------------------------------- */

/* Between two elements of a page, as it came. */
static bool is_inside(const struct hf_pages *p)
{
    return p->at > 0 && p->at < p->whole;
}

static struct hf_item request_start(const struct hf_pages *p)
{
    return p->op == HF_OP_QUERY ? ((const struct hf_query *)p->request)->start
                                : ((const struct hf_scan *)p->request)->start;
}

static enum hf_status add_keys(struct hf_scope *s, const struct hf_key_element *keys, size_t len,
                               struct hf_item item, struct hf_item *out)
{
    for (size_t i = 0; i < len; i++) {
        const struct hf_attr attr = {.name = keys[i].name,
                                     .value = hf_item_get(item, keys[i].name)};

        if (!attr.value.ptr)
            return hf__fail(s, HF_INVALID,
                            "there is no cursor here: the item has no attribute %.*s, which is a "
                            "key",
                            HF_FMT(attr.name));
        *out = hf_item_with(s, *out, &attr, 1);
    }
    return hf_item_check(s, *out);
}

/* The key of an item, by the description of its table and index. */
static enum hf_status describe_key(struct hf_scope *s, struct hf_pages *p, struct hf_item item,
                                   struct hf_item *out)
{
    const struct hf_query *query = p->request;
    const struct hf_scan *scan = p->request;
    struct hf_str index = p->op == HF_OP_QUERY ? query->index : scan->index;
    const struct hf_describe_table request = {.table = p->op == HF_OP_QUERY ? query->table
                                                                            : scan->table};
    struct hf_describe_table_result result;
    const struct hf_table_description *t;

    TRY(hf_describe_table(s, p->db, &request, &result));
    t = result.table;
    TRY(add_keys(s, t->key_schema, t->key_schema_len, item, out));
    for (size_t i = 0; i < t->local_indexes_len; i++)
        if (hf_str_equal(t->local_indexes[i].name, index))
            TRY(add_keys(s, t->local_indexes[i].key_schema, t->local_indexes[i].key_schema_len,
                         item, out));
    for (size_t i = 0; i < t->global_indexes_len; i++)
        if (hf_str_equal(t->global_indexes[i].name, index))
            TRY(add_keys(s, t->global_indexes[i].key_schema, t->global_indexes[i].key_schema_len,
                         item, out));
    return HF_OK;
}

/* A key that is `like` another, with the values of an item. */
static enum hf_status key_like(struct hf_scope *s, struct hf_item like, struct hf_item item,
                               struct hf_item *out)
{
    struct hf_item_walk walk = {.next = 0};

    while (hf_item_next(like, &walk)) {
        const struct hf_key_element key = {.name = walk.name};

        TRY(add_keys(s, &key, 1, item, out));
    }
    return HF_OK;
}

enum hf_status hf_pages_cursor(struct hf_scope *s, struct hf_pages *p, struct hf_item *start)
{
    struct hf_item item, like = key_of(&p->next), key = {NULL, 0};

    *start = key;
    hf__scope_error_clear(s);
    if (p->op != HF_OP_QUERY && p->op != HF_OP_SCAN)
        return hf__fail(s, HF_INVALID, "%.*s continues from a text: use hf_pages_cursor_text()",
                        HF_FMT(hf_op_name(p->op)));
    if (!is_inside(p)) {
        key = p->page.found ? like : request_start(p);
        if (key.len)
            key = hf_item_copy(s, key);
        TRY(hf_item_check(s, key));
        *start = key;
        return HF_OK;
    }
    item = p->page.items[p->at - 1];
    if (!like.len)
        like = request_start(p);
    if (like.len)
        TRY(key_like(s, like, item, &key));
    else
        TRY(describe_key(s, p, item, &key));
    *start = key;
    return HF_OK;
}

static struct hf_str request_text(const struct hf_pages *p)
{
    switch (p->op) {
    case HF_OP_LIST_TABLES:
        return ((const struct hf_list_tables *)p->request)->start;
    case HF_OP_LIST_TAGS_OF_RESOURCE:
        return ((const struct hf_list_tags_of_resource *)p->request)->next_token;
    case HF_OP_LIST_STREAMS:
        return ((const struct hf_list_streams *)p->request)->start_arn;
    default:
        return ((const struct hf_describe_stream *)p->request)->start_shard;
    }
}

enum hf_status hf_pages_cursor_text(struct hf_scope *s, struct hf_pages *p, struct hf_str *start)
{
    struct hf_str text = p->page.found ? text_of(&p->next) : hf_str_of(NULL, 0);

    *start = hf_str_of(NULL, 0);
    hf__scope_error_clear(s);
    if (p->op == HF_OP_QUERY || p->op == HF_OP_SCAN)
        return hf__fail(s, HF_INVALID, "%.*s continues from a key: use hf_pages_cursor()",
                        HF_FMT(hf_op_name(p->op)));
    if (!p->page.found)
        text = request_text(p);
    if (is_inside(p) && p->page.tags)
        return hf__fail(s, HF_INVALID, "a list of tags can continue only at the end of a page");
    if (is_inside(p))
        text = p->page.tables    ? p->page.tables[p->at - 1]
               : p->page.streams ? p->page.streams[p->at - 1].arn
                                 : p->page.shards[p->at - 1].id;
    if (!text.len)
        return HF_OK;
    *start = hf_scope_copy(s, text);
    return start->ptr ? HF_OK : hf__fail_nomem(s);
}
