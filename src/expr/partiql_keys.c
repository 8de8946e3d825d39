/*
 * expr/partiql_keys.c: the keys in a WHERE clause, and the reads that find its items.
 *
 * A write, and a read in a batch or transaction, is of one item: the clause has an equality for
 * every attribute of the key, joined by AND.
 *
 * A SELECT is split into reads. The clause is treated as branches joined by OR, each a list of
 * terms joined by AND. Only terms on key attributes count; an OR without a key attribute is not
 * split. When every branch has a value for the partition key, each is one read of that partition
 * between the bounds that its terms on the sort key give. As in DynamoDB, two branches may not read
 * the same part of a partition. The exception: if one of them has a term on the sort key that gives
 * no bounds (NOT, <>), the partition is read once, as a whole.
 *
 * What always holds for the reads:
 *
 *  (1) Together they cover every item that the clause accepts, and no item comes in two of them.
 *  (2) There are at most STATEMENT_READS_MAX, counted before any is made.
 */
#include "expr/partiql_tree.h"

static const struct hf_value none = {NULL, 0};

/* ---- terms on keys -------------------------------------------------------------------------- */

static bool node_names(const struct pq_node *node, const struct statement_key_attr *attr)
{
    return attr->name.ptr && node->kind == PQ_PATH && node->path.len == 1 &&
           hf_str_equal(node->path.steps[0].name, attr->name);
}

/* The first member of the list behind an IN; the others follow it. */
static const struct pq_node *list_of(const struct pq_node *in)
{
    const struct pq_node *list = in->last;

    return list->kind == PQ_LIST || list->kind == PQ_BAG ? list->first : list;
}

static size_t list_length(const struct pq_node *in)
{
    const struct pq_node *list = in->last;

    return list->kind == PQ_LIST || list->kind == PQ_BAG ? list->count : 1;
}

/* A comparison of the attribute with values; `mirrored` when the value stands in front. */
static bool node_compares(const struct pq_node *node, const struct statement_key_attr *attr,
                          bool *mirrored)
{
    *mirrored = false;
    if (node->kind != PQ_BINARY ||
        (node->text.ptr[0] != '=' && node->text.ptr[0] != '<' && node->text.ptr[0] != '>'))
        return false;
    if (node_names(node->first, attr) && hf__pq_is_value(node->last))
        return true;
    *mirrored = true;
    return node_names(node->last, attr) && hf__pq_is_value(node->first);
}

static bool is_equality(const struct pq_node *node, const struct statement_key_attr *attr,
                        const struct pq_node **value)
{
    bool mirrored;

    if (!node_compares(node, attr, &mirrored) || node->text.ptr[0] != '=')
        return false;
    *value = mirrored ? node->first : node->last;
    return true;
}

static bool is_list(const struct pq_node *node, const struct statement_key_attr *attr)
{
    if (node->kind != PQ_IN || !node_names(node->first, attr))
        return false;
    for (const struct pq_node *member = list_of(node); member; member = member->next)
        if (!hf__pq_is_value(member))
            return false;
    return true;
}

/* A term that gives bounds for the sort key. */
static bool is_bound(const struct pq_node *node, const struct statement_key_attr *attr)
{
    bool mirrored;

    if (node_compares(node, attr, &mirrored))
        return !hf_str_equal(node->text, HF_STR("<>"));
    if (node->kind == PQ_BETWEEN)
        return node_names(node->first, attr) && hf__pq_is_value(node->first->next) &&
               hf__pq_is_value(node->last);
    return node->kind == PQ_CALL && hf__pq_same_word(node->text, "begins_with") &&
           node->count == 2 && node_names(node->first, attr) && hf__pq_is_value(node->last);
}

static bool is_key_term(const struct pq_node *node, const struct statement_key *key)
{
    const struct pq_node *value;

    return is_equality(node, &key->hash, &value) || is_list(node, &key->hash) ||
           is_bound(node, &key->range) || is_list(node, &key->range);
}

/* The value was valid when the condition was built, so only memory can be lacking here. */
static enum hf_status value_of(struct hf_scope *s, const struct statement *statement,
                               const struct pq_node *node, struct hf_value *value)
{
    const struct pq_params params = {statement->params, statement->params_len};

    return hf__pq_value(s, &params, node, value);
}

enum hf_status hf__partiql_check_type(struct hf_scope *s, const struct statement_key_attr *attr,
                                      struct hf_value value)
{
    if (hf_value_type(value) == attr->type)
        return HF_OK;
    return hf__fail(s, HF_INVALID,
                    "Key attribute's data type should match its data type in table's schema: Key "
                    "%.*s",
                    HF_FMT(attr->name));
}

/* ---- one item ------------------------------------------------------------------------------- */

/* The search for the key of one item. */
struct key_search {
    struct hf_scope *s;
    const struct statement *statement;
    bool lists; /* an IN with one value counts as an equality */
    struct statement_found *found;
};

/* Look at one term of those joined by AND: *value is what it gives the attribute. */
static enum hf_status find_in_term(const struct key_search *search, const struct pq_node *node,
                                   const struct statement_key_attr *attr, struct hf_value *value,
                                   bool *is_key)
{
    const struct pq_node *literal;
    struct hf_value this;

    if (!is_equality(node, attr, &literal)) {
        if (!search->lists || !is_list(node, attr) || list_length(node) != 1)
            return HF_OK;
        literal = list_of(node);
    }
    TRY(value_of(search->s, search->statement, literal, &this));
    *is_key = true;
    if (!value->ptr) {
        *value = this;
    } else if (!hf_value_equal(*value, this)) {
        search->found->twice = attr->name;
        *is_key = false;
    }
    return HF_OK;
}

enum hf_status hf__partiql_find_key(struct hf_scope *s, const struct statement *statement,
                                    const struct statement_key *key, bool lists,
                                    struct statement_found *found)
{
    const struct key_search search = {.s = s,
                                      .statement = statement,
                                      .lists = lists,
                                      .found = found};
    const struct pq_node *node = statement->condition;

    *found = (struct statement_found){.hash = none};
    if (node && node->kind == PQ_AND)
        node = node->first;
    for (; node; node = node->next) {
        bool is_key = false;

        TRY(find_in_term(&search, node, &key->hash, &found->hash, &is_key));
        TRY(find_in_term(&search, node, &key->range, &found->range, &is_key));
        found->more = found->more || !is_key;
        if (node == statement->condition)
            break;
    }
    found->whole = found->hash.ptr && (!key->range.name.ptr || found->range.ptr);
    return HF_OK;
}

/* ---- branches ------------------------------------------------------------------------------- */

/* The depth is limited by (1) of partiql_tree.h, here and below. */
static bool has_key_term(const struct pq_node *node, const struct statement_key *key)
{
    if (node->kind != PQ_AND && node->kind != PQ_OR)
        return is_key_term(node, key);
    for (const struct pq_node *child = node->first; child; child = child->next)
        if (has_key_term(child, key))
            return true;
    return false;
}

/* Does every branch say which partition it is in? */
static bool has_hash(const struct pq_node *node, const struct statement_key *key)
{
    const struct pq_node *value;

    if (node->kind == PQ_AND) {
        for (const struct pq_node *child = node->first; child; child = child->next)
            if (has_hash(child, key))
                return true;
        return false;
    }
    if (node->kind == PQ_OR) {
        for (const struct pq_node *child = node->first; child; child = child->next)
            if (!has_hash(child, key))
                return false;
        return true;
    }
    return is_equality(node, &key->hash, &value) || is_list(node, &key->hash);
}

static size_t branches_cap(size_t count)
{
    return count > STATEMENT_READS_MAX ? STATEMENT_READS_MAX + 1 : count;
}

/* Count the branches, up to one more than are allowed. */
static size_t count_branches(const struct pq_node *node, const struct statement_key *key)
{
    size_t count = node->kind == PQ_OR ? 0 : 1;

    if (node->kind == PQ_OR && !has_key_term(node, key))
        return 1;
    if (node->kind == PQ_AND || node->kind == PQ_OR) {
        for (const struct pq_node *child = node->first; child; child = child->next) {
            size_t more = count_branches(child, key);

            count = branches_cap(node->kind == PQ_AND ? count * more : count + more);
        }
        return count;
    }
    if (is_list(node, &key->hash) || is_list(node, &key->range))
        return branches_cap(list_length(node));
    return 1;
}

/* ---- bounds --------------------------------------------------------------------------------- */

/* Compare the upper bound with a value; a prefix is above everything that begins with it. */
static int compare_high(const struct statement_span *span, struct hf_value value)
{
    struct hf_bytes prefix;
    struct hf_bytes bytes;

    if (!span->prefix)
        return hf__value_compare(span->high, value);
    prefix = hf__value_scalar(span->high);
    bytes = hf__value_scalar(value);
    if (bytes.len >= prefix.len && (!prefix.len || !memcmp(bytes.ptr, prefix.ptr, prefix.len)))
        return 1;
    return bytes_compare(prefix.ptr, prefix.len, bytes.ptr, bytes.len);
}

/* Is the upper bound of `a` no further than that of `b`? */
static bool ends_first(const struct statement_span *a, const struct statement_span *b)
{
    int order;

    if (!b->high.ptr || !a->high.ptr)
        return !b->high.ptr;
    if (b->prefix && a->prefix) /* the longer of two that begin alike, else the lesser */
        return compare_high(b, a->high) > 0;
    if (b->prefix)
        return compare_high(b, a->high) > 0;
    order = compare_high(a, b->high);
    return order < 0 || (order == 0 && (a->high_open || !b->high_open));
}

/* Narrow a branch by the bounds of another one; both are of the same partition. */
static void span_narrow(struct statement_span *to, const struct statement_span *by)
{
    int order;

    if (by->low.ptr) {
        order = to->low.ptr ? hf__value_compare(to->low, by->low) : -1;
        if (order < 0) {
            to->low = by->low;
            to->low_open = by->low_open;
        } else if (order == 0) {
            to->low_open = to->low_open || by->low_open;
        }
    }
    if (ends_first(by, to) && by->high.ptr) {
        to->high = by->high;
        to->high_open = by->high_open;
        to->prefix = by->prefix;
    }
    to->loose = to->loose || by->loose;
}

/* Does `a` end before `b` begins? */
static bool lies_before(const struct statement_span *a, const struct statement_span *b)
{
    int order;

    if (!a->high.ptr || !b->low.ptr)
        return false;
    order = compare_high(a, b->low);
    return order < 0 || (order == 0 && (a->high_open || b->low_open));
}

static bool spans_overlap(const struct statement_span *a, const struct statement_span *b)
{
    return hf_value_equal(a->hash, b->hash) && !lies_before(a, b) && !lies_before(b, a);
}

int hf__partiql_span_compare(const struct statement_span *a, const struct statement_span *b)
{
    int order = hf__value_compare(a->hash, b->hash);

    if (order || !a->low.ptr || !b->low.ptr)
        return order ? order : (a->low.ptr != NULL) - (b->low.ptr != NULL);
    order = hf__value_compare(a->low, b->low);
    return order ? order : a->low_open - b->low_open;
}

/* ---- making the branches -------------------------------------------------------------------- */

/* Branches under construction. */
struct branches {
    struct statement_span *list;
    size_t len;
    size_t cap;
    bool conflict; /* a branch asks for two partitions: read everything, and filter */
};

struct splitter {
    struct hf_scope *s;
    const struct statement *statement;
    const struct statement_key *key;
};

static enum hf_status branches_new(struct hf_scope *s, size_t cap, struct branches *out)
{
    *out = (struct branches){.list = hf__scope_array(s, cap, sizeof(*out->list)), .cap = cap};
    return out->list ? HF_OK : hf__fail_nomem(s);
}

static void add_branch(struct branches *to, const struct statement_span *span)
{
    assert(to->len < to->cap && to->cap <= STATEMENT_READS_MAX);
    to->list[to->len++] = *span;
}

/* One value of the right type for a key attribute. */
static enum hf_status key_value(struct splitter *p, const struct statement_key_attr *attr,
                                const struct pq_node *node, struct hf_value *value)
{
    TRY(value_of(p->s, p->statement, node, value));
    return hf__partiql_check_type(p->s, attr, *value);
}

static enum hf_status range_bounds(struct splitter *p, const struct pq_node *node,
                                   struct statement_span *span)
{
    const struct statement_key_attr *attr = &p->key->range;
    struct hf_value value;
    bool mirrored;
    char sign;

    if (node->kind == PQ_BETWEEN) {
        TRY(key_value(p, attr, node->first->next, &span->low));
        return key_value(p, attr, node->last, &span->high);
    }
    if (node->kind == PQ_CALL) {
        TRY(key_value(p, attr, node->last, &span->low));
        span->high = span->low;
        span->prefix = true;
        return HF_OK;
    }
    node_compares(node, attr, &mirrored);
    TRY(key_value(p, attr, mirrored ? node->first : node->last, &value));
    sign = node->text.ptr[0];
    if (mirrored && sign != '=')
        sign = sign == '<' ? '>' : '<';
    if (sign != '<')
        span->low = value;
    if (sign != '>')
        span->high = value;
    span->low_open = span->high_open = sign != '=' && node->text.len == 1;
    return HF_OK;
}

/* Is it a term on the sort key that gives no bounds, with NOT or <>? */
static bool node_mentions(const struct pq_node *node, const struct statement_key_attr *attr)
{
    if (node_names(node, attr))
        return true;
    if (node->kind == PQ_PATH)
        return false;
    for (const struct pq_node *child = node->first; child; child = child->next)
        if (node_mentions(child, attr))
            return true;
    return false;
}

static bool is_negation(const struct pq_node *node)
{
    return node->kind == PQ_NOT ||
           (node->kind == PQ_BINARY && hf_str_equal(node->text, HF_STR("<>")));
}

static enum hf_status split_list(struct splitter *p, const struct pq_node *in,
                                 const struct statement_key_attr *attr, struct branches *out)
{
    for (const struct pq_node *member = list_of(in); member; member = member->next) {
        struct statement_span span = {.hash = none};
        struct hf_value value;

        TRY(key_value(p, attr, member, &value));
        if (attr == &p->key->hash)
            span.hash = value;
        else
            span.low = span.high = value;
        add_branch(out, &span);
    }
    return HF_OK;
}

static enum hf_status split_term(struct splitter *p, const struct pq_node *node,
                                 struct branches *out)
{
    struct statement_span span = {.hash = none};
    const struct pq_node *value;

    if (is_list(node, &p->key->hash))
        return split_list(p, node, &p->key->hash, out);
    if (is_list(node, &p->key->range))
        return split_list(p, node, &p->key->range, out);
    if (is_equality(node, &p->key->hash, &value))
        TRY(key_value(p, &p->key->hash, value, &span.hash));
    else if (is_bound(node, &p->key->range))
        TRY(range_bounds(p, node, &span));
    else
        span.loose = is_negation(node) && node_mentions(node, &p->key->range);
    add_branch(out, &span);
    return HF_OK;
}

/* Every branch of one with every branch of the other: both must hold. */
static void branches_join(const struct branches *a, const struct branches *b, struct branches *out)
{
    for (size_t i = 0; i < a->len; i++)
        for (size_t j = 0; j < b->len; j++) {
            struct statement_span span = a->list[i];

            if (span.hash.ptr && b->list[j].hash.ptr && !hf_value_equal(span.hash, b->list[j].hash))
                out->conflict = true;
            if (!span.hash.ptr)
                span.hash = b->list[j].hash;
            span_narrow(&span, &b->list[j]);
            add_branch(out, &span);
        }
    out->conflict = out->conflict || a->conflict || b->conflict;
}

static enum hf_status branches_split(struct splitter *p, const struct pq_node *node,
                                     struct branches *out);

static enum hf_status split_and(struct splitter *p, const struct pq_node *node,
                                struct branches *out)
{
    const struct statement_span all = {.hash = none};

    add_branch(out, &all);
    for (const struct pq_node *child = node->first; child; child = child->next) {
        size_t count = count_branches(child, p->key);
        struct branches more;
        struct branches both;

        TRY(branches_new(p->s, count, &more));
        TRY(branches_new(p->s, out->len * count, &both));
        TRY(branches_split(p, child, &more));
        branches_join(out, &more, &both);
        *out = both;
    }
    return HF_OK;
}

static enum hf_status branches_split(struct splitter *p, const struct pq_node *node,
                                     struct branches *out)
{
    if (node->kind == PQ_AND)
        return split_and(p, node, out);
    if (node->kind != PQ_OR || !has_key_term(node, p->key))
        return split_term(p, node, out);
    for (const struct pq_node *child = node->first; child; child = child->next) {
        struct branches more;

        TRY(branches_new(p->s, count_branches(child, p->key), &more));
        TRY(branches_split(p, child, &more));
        for (size_t i = 0; i < more.len; i++)
            add_branch(out, &more.list[i]);
        out->conflict = out->conflict || more.conflict;
    }
    return HF_OK;
}

/* ---- spans ---------------------------------------------------------------------------------- */

/* Make branch `at` one read of the whole partition; it replaces the other branches there. */
static void take_partition(struct branches *b, size_t at)
{
    size_t kept = at + 1;

    b->list[at] = (struct statement_span){.hash = b->list[at].hash, .loose = true};
    for (size_t i = at + 1; i < b->len; i++)
        if (!hf_value_equal(b->list[i].hash, b->list[at].hash))
            b->list[kept++] = b->list[i];
    b->len = kept;
}

static enum hf_status branches_separate(struct hf_scope *s, struct branches *b)
{
    for (size_t i = 0; i < b->len; i++)
        for (size_t j = i + 1; j < b->len; j++) {
            if (!spans_overlap(&b->list[i], &b->list[j]))
                continue;
            if (!b->list[i].loose && !b->list[j].loose)
                return hf__fail(s, HF_INVALID,
                                "Overlapping conditions with range keys are not supported in where "
                                "clause");
        }
    for (size_t i = 0; i < b->len; i++)
        for (size_t j = 0; j < b->len; j++)
            if (i != j && spans_overlap(&b->list[i], &b->list[j])) {
                take_partition(b, i < j ? i : j);
                i = 0;
                j = 0;
            }
    return HF_OK;
}

enum hf_status hf__partiql_spans(struct hf_scope *s, const struct statement *statement,
                                 const struct statement_key *key, struct statement_span **spans,
                                 size_t *len)
{
    struct splitter p = {s, statement, key};
    struct branches b;
    size_t count;

    *spans = NULL;
    *len = 0;
    if (!statement->condition || !has_hash(statement->condition, key))
        return HF_OK;
    count = count_branches(statement->condition, key);
    if (count > STATEMENT_READS_MAX)
        return hf__fail(s, HF_INVALID, "Too many decomposed read operations for a given query.");
    TRY(branches_new(s, count, &b));
    TRY(branches_split(&p, statement->condition, &b));
    if (b.conflict)
        return HF_OK;
    TRY(branches_separate(s, &b));
    *spans = b.list;
    *len = b.len;
    return HF_OK;
}
