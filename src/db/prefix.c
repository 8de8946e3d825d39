/*
 * db/prefix.c: a database whose tables are those of another that begin with a prefix.
 *
 * A walk over the field tables finds the names: fields say whether they hold the name of a table,
 * an ARN with one in it, or a statement. On the way in the prefix is put before each, on the way
 * out it is taken away. No operation is known here; that an operation gives a list of what the
 * account has, and how its pages go on, are rules of fields, too.
 *
 * What always holds:
 *
 *  (1) No name goes in as it came, except none and the empty one, which no table has. What looks
 *      like an ARN and is none gets the prefix in front and so becomes the name of no table. A
 *      statement in which we find no single table is refused.
 *  (2) What the caller handed in and what the inner database handed out is never written to: the
 *      structs on the way to a changed name are copied, all others are shared.
 *  (3) A list leaves out what is not ours. The cursor of a page is the name of something; one of
 *      ours is handed out, from another one we go on reading ourselves, so a list ends where the
 *      inner one does. No page has more than was asked for.
 */
#include <holdfast/prefix.h>

#include "base/buf.h"
#include "db/db.h"
#include "expr/partiql.h"
#include "ops/prepare.h"

enum {
    PAGE_DEFAULT = 100, /* elements, when the request does not say */
    ARN_COLONS = 5      /* before what it is the ARN of */
};

struct prefixed {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    struct hf_str prefix;
    char text[HF_PREFIX_MAX];
};

/* A walk over one request or response. */
struct walk {
    struct hf_scope *s;
    struct hf_str prefix;
    bool out;            /* take the prefix away */
    enum hf_op op;       /* of a request */
    const void *request; /* likewise */
};

/* ---- texts ---------------------------------------------------------------------------------- */

/* Where the table's name begins, in a name or an ARN; false when it is the ARN of no table. */
static bool find_name(struct hf_str text, enum field_holds holds, size_t *at)
{
    struct hf_str rest = text;
    struct hf_str name;

    *at = 0;
    if (!str_after(text, HF_STR("arn:"), &rest))
        return holds == HOLDS_TABLE;
    rest = text;
    for (int i = 0; i < ARN_COLONS; i++) {
        const char *colon = rest.len ? memchr(rest.ptr, ':', rest.len) : NULL;

        if (!colon)
            return false;
        rest = hf_str_of(colon + 1, (size_t)(text.ptr + text.len - colon - 1));
    }
    if (!str_after(rest, HF_STR("table/"), &name) &&
        !str_after(rest, HF_STR("global-table/"), &name))
        return false;
    *at = (size_t)(name.ptr - text.ptr);
    return true;
}

/* Something must be left of the name without the prefix. */
static bool is_ours(const struct walk *w, struct hf_str text, enum field_holds holds)
{
    struct hf_str rest;
    size_t at;

    return text.ptr && find_name(text, holds, &at) &&
           str_after(hf_str_of(text.ptr + at, text.len - at), w->prefix, &rest) && rest.len > 0 &&
           rest.ptr[0] != '/';
}

/* `text` with `insert` in place of the `cut` bytes at `at`. */
static enum hf_status text_splice(struct hf_scope *s, struct hf_str text, size_t at, size_t cut,
                                  struct hf_str insert, struct hf_str *out)
{
    struct hf__buf buf = {.scope = s};

    assert(at <= text.len && cut <= text.len - at);
    hf__buf_put(&buf, text.ptr, at);
    hf__buf_put_str(&buf, insert);
    hf__buf_put(&buf, text.ptr + at + cut, text.len - at - cut);
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = hf_str_of((const char *)buf.ptr, buf.len);
    return HF_OK;
}

/* (1) The table becomes a quoted name; as the prefix has no quotes, those in the name stay right.
 */
static enum hf_status walk_statement(const struct walk *w, struct hf_str text, struct hf_str *out)
{
    struct hf_str word, name, quoted;
    size_t at;

    if (text.len > STATEMENT_TEXT_MAX)
        TRY(hf__prepare_plain(w->s, w->op, w->request)); /* says that it is too long */
    if (text.len > STATEMENT_TEXT_MAX)
        return hf__fail(w->s, HF_INVALID, "the statement is too long");
    TRY(hf__partiql_table(w->s, text, &word));
    name = word.ptr[0] == '"' ? hf_str_of(word.ptr + 1, word.len - 2) : word;
    find_name(name, HOLDS_TABLE, &at);
    quoted = hf_scope_format(w->s, "\"%.*s%.*s%.*s\"", (int)at, name.ptr, HF_FMT(w->prefix),
                             (int)(name.len - at), name.ptr + at);
    if (!quoted.ptr)
        return hf__fail_nomem(w->s);
    return text_splice(w->s, text, (size_t)(word.ptr - text.ptr), word.len, quoted, out);
}

/* *out is `text` itself when nothing changes. */
static enum hf_status walk_text(const struct walk *w, enum field_holds holds, struct hf_str text,
                                struct hf_str *out)
{
    size_t at;

    *out = text;
    if (holds == HOLDS_NO_NAME || text.len == 0)
        return HF_OK;
    if (holds == HOLDS_STATEMENT)
        return walk_statement(w, text, out);
    if (!w->out) {
        find_name(text, holds, &at); /* (1): or 0 */
        return text_splice(w->s, text, at, 0, w->prefix, out);
    }
    if (!is_ours(w, text, holds))
        return HF_OK;
    find_name(text, holds, &at);
    if (at > 0)
        return text_splice(w->s, text, at, w->prefix.len, HF_STR(""), out);
    *out = hf_str_of(text.ptr + w->prefix.len, text.len - w->prefix.len);
    return HF_OK;
}

/* ---- structs -------------------------------------------------------------------------------- */

/* (2) A struct, or several in a row, that is copied when the first change comes. */
struct piece {
    const uint8_t *from;
    size_t size;
    uint8_t *to; /* NULL: nothing has changed yet */
};

static enum hf_status piece_change(struct hf_scope *s, struct piece *piece, size_t at,
                                   const void *bytes, size_t len)
{
    if (!piece->to) {
        piece->to = hf_scope_alloc(s, piece->size);
        if (!piece->to)
            return hf__fail_nomem(s);
        memcpy(piece->to, piece->from, piece->size);
    }
    memcpy(piece->to + at, bytes, len);
    return HF_OK;
}

static const void *pointer_at(const uint8_t *in, size_t at)
{
    const void *pointer;

    memcpy(&pointer, in + at, sizeof(pointer));
    return pointer;
}

static size_t count_of(const uint8_t *in, const struct field *field)
{
    size_t count;

    memcpy(&count, in + field->count_at, sizeof(count));
    return count;
}

static struct hf_str str_at(const uint8_t *in, size_t at)
{
    struct hf_str text;

    memcpy(&text, in + at, sizeof(text));
    return text;
}

/* The text at `at`. */
static enum hf_status walk_str(const struct walk *w, enum field_holds holds, struct piece *piece,
                               size_t at)
{
    struct hf_str text = str_at(piece->from, at);
    struct hf_str changed;

    TRY(walk_text(w, holds, text, &changed));
    if (changed.ptr == text.ptr)
        return HF_OK;
    return piece_change(w->s, piece, at, &changed, sizeof(changed));
}

static size_t element_size(const struct field *field)
{
    return field->kind == FIELD_STRS ? sizeof(struct hf_str) : field->sub->size;
}

static enum hf_status walk_struct(const struct walk *w, const struct fields *fields,
                                  struct piece *piece, size_t at);

/* What a pointer at `at` leads to: one struct, or a list or map of them, or of strings. */
static enum hf_status walk_elements(const struct walk *w, const struct field *field,
                                    struct piece *piece, size_t at, size_t count)
{
    const size_t size = element_size(field);
    struct piece list = {.from = pointer_at(piece->from, at), .size = count * size};

    for (size_t i = 0; list.from && i < count; i++) {
        if (field->kind == FIELD_STRS || field->kind == FIELD_MAP)
            TRY(walk_str(w, field->holds, &list, i * size)); /* a map's entry begins with its key */
        if (field->kind != FIELD_STRS)
            TRY(walk_struct(w, field->sub, &list, i * size));
    }
    return list.to ? piece_change(w->s, piece, at, &list.to, sizeof(list.to)) : HF_OK;
}

/* The struct of these fields that lies at `at`. */
static enum hf_status walk_struct(const struct walk *w, const struct fields *fields,
                                  struct piece *piece, size_t at)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct field *field = &fields->list[i];

        switch (field->kind) {
        case FIELD_STR:
            TRY(walk_str(w, field->holds, piece, at + field->at));
            break;
        case FIELD_STRUCT:
            TRY(walk_elements(w, field, piece, at + field->at, 1));
            break;
        case FIELD_STRS:
        case FIELD_STRUCTS:
        case FIELD_MAP:
            if (field->kind != FIELD_STRS || field->holds)
                TRY(walk_elements(w, field, piece, at + field->at,
                                  count_of(piece->from + at, field)));
            break;
        default:
            break;
        }
    }
    return HF_OK;
}

/* ---- lists of what the account has ---------------------------------------------------------- */

/* The fields by which an operation gives lists in pages; `last` is NULL where tokens do. */
struct paging {
    const struct field *listed;
    const struct field *last;
    const struct field *start;
    const struct field *limit;
};

static const struct field *find_rule(const struct fields *fields, unsigned rule)
{
    for (size_t i = 0; i < fields->len; i++)
        if (fields->list[i].rules & rule)
            return &fields->list[i];
    return NULL;
}

static struct paging paging_of(const struct op *op)
{
    return (struct paging){.listed = find_rule(op->response, FIELD_LISTED),
                           .last = find_rule(op->response, FIELD_PAGE_LAST),
                           .start = find_rule(op->request, FIELD_PAGE_START),
                           .limit = find_rule(op->request, FIELD_PAGE_LIMIT)};
}

/* An element is what its first name says. */
static bool is_our_element(const struct walk *w, const struct field *list, const uint8_t *element)
{
    if (list->kind == FIELD_STRS)
        return is_ours(w, str_at(element, 0), list->holds);
    for (size_t i = 0; i < list->sub->len; i++) {
        const struct field *field = &list->sub->list[i];

        if (field->holds)
            return is_ours(w, str_at(element, field->at), field->holds);
    }
    return false;
}

struct gathered {
    uint8_t *elements;
    size_t len;
};

/* Add those of the page that are ours. */
static enum hf_status page_gather(const struct walk *w, const struct field *list,
                                  const uint8_t *page, struct gathered *all)
{
    const uint8_t *from = pointer_at(page, list->at);
    const size_t count = from ? count_of(page, list) : 0;
    const size_t size = element_size(list);
    uint8_t *elements = hf__scope_array(w->s, all->len + count + 1, size);

    if (!elements)
        return hf__fail_nomem(w->s);
    if (all->len)
        memcpy(elements, all->elements, all->len * size);
    all->elements = elements;
    for (size_t i = 0; i < count; i++)
        if (is_our_element(w, list, from + i * size))
            memcpy(elements + all->len++ * size, from + i * size, size);
    return HF_OK;
}

/* What the next page starts from when this one ends with the element before `len`. */
static struct hf_str cursor_behind(const struct field *list, const struct gathered *all)
{
    const uint8_t *element = all->elements + (all->len - 1) * element_size(list);

    return str_at(element,
                  list->kind == FIELD_STRS ? 0 : find_rule(list->sub, FIELD_PAGE_LAST)->at);
}

/* Let the request ask for the page that starts from `cursor`, and for as much as there may be. */
static enum hf_status turn_page(struct hf_scope *s, const struct paging *paging,
                                struct piece *request, struct hf_str cursor)
{
    const int64_t limit = 0;

    if (hf_str_equal(cursor, str_at(request->to ? request->to : request->from, paging->start->at)))
        return hf__fail(s, HF_INTERNAL,
                        "the list of the inner database does not continue after %.*s",
                        HF_FMT(cursor));
    TRY(piece_change(s, request, paging->start->at, &cursor, sizeof(cursor)));
    TRY(piece_change(s, request, paging->limit->at, &limit, sizeof(limit)));
    return hf__scope_alive(s);
}

/* (3) */
static enum hf_status call_list(const struct walk *w, struct prefixed *p, struct piece request,
                                const struct paging *paging, uint8_t *response)
{
    const size_t response_size = hf__op(w->op)->response->size;
    struct gathered all = {NULL, 0};
    struct hf_str cursor = {NULL, 0};
    uint8_t *page = response;
    int64_t limit = 0;

    if (paging->limit)
        memcpy(&limit, request.from + paging->limit->at, sizeof(limit));
    limit = limit > 0 ? limit : PAGE_DEFAULT;
    for (;;) {
        TRY(p->inner->calls->call(w->s, p->inner, w->op, request.to ? request.to : request.from,
                                  page));
        TRY(page_gather(w, paging->listed, page, &all));
        if (!paging->last)
            break;
        cursor = str_at(page, paging->last->at);
        if (!cursor.ptr || all.len >= (size_t)limit || is_ours(w, cursor, paging->last->holds))
            break;
        TRY(turn_page(w->s, paging, &request, cursor));
        page = hf__scope_array(w->s, 1, response_size);
        if (!page)
            return hf__fail_nomem(w->s);
    }
    if (paging->last && all.len >= (size_t)limit && (cursor.ptr || all.len > (size_t)limit)) {
        all.len = (size_t)limit;
        cursor = cursor_behind(paging->listed, &all);
    }
    if (paging->last)
        memcpy(response + paging->last->at, &cursor, sizeof(cursor));
    memcpy(response + paging->listed->at, &all.elements, sizeof(all.elements));
    memcpy(response + paging->listed->count_at, &all.len, sizeof(all.len));
    return HF_OK;
}

/* ---- the database --------------------------------------------------------------------------- */

static enum hf_status call_inside(const struct walk *w, struct prefixed *p, struct piece request,
                                  void *response)
{
    const struct paging paging = paging_of(hf__op(w->op));

    if (paging.listed)
        return call_list(w, p, request, &paging, response);
    return p->inner->calls->call(w->s, p->inner, w->op, request.from, response);
}

static enum hf_status prefix_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct prefixed *p = (struct prefixed *)(void *)db;
    const struct op *entry = hf__op(op);
    struct walk walk = {.s = s, .prefix = p->prefix, .op = op, .request = request};
    struct piece in = {.from = request, .size = entry->request->size};
    struct piece out = {.from = response, .size = entry->response->size, .to = response};
    enum hf_status status;

    if (p->prefix.len == 0)
        return p->inner->calls->call(s, p->inner, op, request, response);
    TRY(walk_struct(&walk, entry->request, &in, 0));
    if (in.to)
        in = (struct piece){.from = in.to, .size = in.size};
    status = call_inside(&walk, p, in, response);
    if (status == HF_OK) {
        walk.out = true;
        status = walk_struct(&walk, entry->response, &out, 0);
        if (status != HF_OK)
            hf__scope_error_edit(s)->may_have_happened = entry->access == OP_WRITE;
    }
    if (status != HF_OK)
        memset(response, 0, entry->response->size);
    return status;
}

static enum hf_status prefix_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct prefixed *p = (struct prefixed *)(void *)db;

    return hf__db_sync(s, p->inner, ticket);
}

static enum hf_status prefix_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                      bool *supported)
{
    struct prefixed *p = (struct prefixed *)(void *)db;

    return hf_db_supports(s, p->inner, feature, supported);
}

static void prefix_close(struct hf_db *db)
{
    struct prefixed *p = (struct prefixed *)(void *)db;
    struct hf_env env = p->env;

    hf_db_close(p->inner);
    hf__env_free(&env, p, sizeof(*p));
}

/* All of it: parts have the full names of tables. */
static enum hf_status prefix_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct prefixed *)(void *)db)->inner, blobs);
}

static enum hf_status prefix_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                       struct hf_str *full)
{
    struct prefixed *p = (struct prefixed *)(void *)db;
    const struct walk walk = {.s = s, .prefix = p->prefix};
    struct hf_str name;

    TRY(walk_text(&walk, HOLDS_TABLE, table, &name));
    return hf__db_full_name(s, p->inner, name, full);
}

static struct hf_str prefix_opener(struct hf_db *db)
{
    return hf_db_opener(((struct prefixed *)(void *)db)->inner);
}

static const struct db_calls prefix_calls = {.call = prefix_call,
                                             .sync = prefix_sync,
                                             .close = prefix_close,
                                             .supports = prefix_supports,
                                             .blobs = prefix_blobs,
                                             .full_name = prefix_full_name,
                                             .opener = prefix_opener};

enum hf_status hf_prefix_open(struct hf_scope *s, struct hf_db *inner, struct hf_str prefix,
                              struct hf_db **db)
{
    const struct hf_env *env = hf__scope_env(s);
    struct prefixed *p;

    *db = NULL;
    hf__scope_error_clear(s);
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_prefix_open() was called without a database (NULL)");
    if (prefix.len > HF_PREFIX_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_PREFIX_MAX, prefix.len),
                                   "the prefix has %zu characters, and at most %d are allowed",
                                   prefix.len, HF_PREFIX_MAX);
    if (prefix.len && !hf__ops_is_table_name(prefix))
        return hf__fail(s, HF_INVALID,
                        "invalid prefix '%.*s': names of tables have the characters a-z, A-Z, "
                        "0-9, '_', '-', '.'",
                        HF_FMT(prefix));
    p = hf__env_alloc(env, sizeof(*p));
    if (!p)
        return hf__fail_nomem(s);
    *p = (struct prefixed){.db = {.calls = &prefix_calls}, .env = *env, .inner = inner};
    if (prefix.len)
        memcpy(p->text, prefix.ptr, prefix.len);
    p->prefix = hf_str_of(p->text, prefix.len);
    *db = &p->db;
    return HF_OK;
}
