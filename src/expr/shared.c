/*
 * expr/shared.c: names of functions and operators, failing, sorting, and document paths.
 */
#include "expr/private.h"

/* ---- failing -------------------------------------------------------------------------------- */

static const char *kind_prefix(enum expr_kind kind)
{
    switch (kind) {
    case EXPR_CONDITION:
        return "Invalid ConditionExpression: ";
    case EXPR_FILTER:
        return "Invalid FilterExpression: ";
    case EXPR_PROJECTION:
        return "Invalid ProjectionExpression: ";
    case EXPR_UPDATE:
        return "Invalid UpdateExpression: ";
    case EXPR_KEY_CONDITION:
        return "Invalid KeyConditionExpression: ";
    case EXPR_STATEMENT:
        break;
    }
    return "";
}

enum hf_status hf__expr_fail(struct hf_scope *s, enum expr_kind kind, const char *format, ...)
{
    struct hf__buf buf = {.scope = s};
    va_list args;

    hf__buf_put_str(&buf, hf_str_from(kind_prefix(kind)));
    va_start(args, format);
    hf__buf_vformat(&buf, format, args);
    va_end(args);
    if (buf.failed)
        return hf__fail_text(s, HF_INVALID, hf_str_of(NULL, 0));
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)buf.ptr, buf.len));
}

/* ---- names ---------------------------------------------------------------------------------- */

static const char *const function_names[] = {
    "",     "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains",
    "size", "if_not_exists",    "list_append",          "NOT_CONTAINS",
};

_Static_assert(ARRAY_LEN(function_names) == FUNCTION_NOT_CONTAINS + 1, "a name for each function");

enum function hf__expr_function(struct hf_str name)
{
    for (size_t i = FUNCTION_ATTRIBUTE_EXISTS; i <= FUNCTION_LIST_APPEND; i++)
        if (hf_str_equal(name, hf_str_from(function_names[i])))
            return (enum function)i;
    return FUNCTION_NONE;
}

const char *hf__expr_function_name(enum function function)
{
    assert(function < ARRAY_LEN(function_names));
    return function_names[function];
}

const char *hf__expr_compare_name(enum compare compare)
{
    static const char *const names[] = {"=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN"};

    _Static_assert(ARRAY_LEN(names) == OP_IN + 1, "a name for each");
    assert(compare < ARRAY_LEN(names));
    return names[compare];
}

const char *hf__expr_section_name(enum section section)
{
    static const char *const names[] = {"SET", "REMOVE", "ADD", "DELETE"};

    _Static_assert(ARRAY_LEN(names) == SECTION_DELETE + 1, "a name for each");
    assert(section < ARRAY_LEN(names));
    return names[section];
}

/* ---- sorting -------------------------------------------------------------------------------- */

enum { FEW = 24 }; /* up to here insertion is quicker */

static void sort_few(uint16_t *numbers, size_t len, order_fn *compare, const void *context)
{
    for (size_t i = 1; i < len; i++) {
        uint16_t number = numbers[i];
        size_t at = i;

        for (; at > 0 && compare(context, numbers[at - 1], number) > 0; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
}

static void sift_down(uint16_t *numbers, size_t root, size_t len, order_fn *compare,
                      const void *context)
{
    uint16_t number = numbers[root];

    for (;;) {
        size_t child = 2 * root + 1;

        if (child >= len)
            break;
        if (child + 1 < len && compare(context, numbers[child], numbers[child + 1]) < 0)
            child++;
        if (compare(context, number, numbers[child]) >= 0)
            break;
        numbers[root] = numbers[child];
        root = child;
    }
    numbers[root] = number;
}

void hf__expr_sort(uint16_t *numbers, size_t len, order_fn *compare, const void *context)
{
    if (len <= FEW) {
        sort_few(numbers, len, compare, context);
        return;
    }
    for (size_t i = len / 2; i-- > 0;)
        sift_down(numbers, i, len, compare, context);
    for (size_t end = len - 1; end > 0; end--) {
        uint16_t largest = numbers[0];

        numbers[0] = numbers[end];
        numbers[end] = largest;
        sift_down(numbers, 0, end, compare, context);
    }
}

/* ---- paths ---------------------------------------------------------------------------------- */

static int step_compare(const struct expr_step *a, const struct expr_step *b)
{
    if (!a->name.ptr || !b->name.ptr) {
        if (a->name.ptr || b->name.ptr)
            return a->name.ptr ? 1 : -1;
        return (a->index > b->index) - (a->index < b->index);
    }
    return bytes_compare(a->name.ptr, a->name.len, b->name.ptr, b->name.len);
}

int hf__expr_path_compare(const struct expr_path *a, const struct expr_path *b)
{
    for (size_t i = 0; i < a->len && i < b->len; i++) {
        int order = step_compare(&a->steps[i], &b->steps[i]);

        if (order)
            return order;
    }
    return (a->len > b->len) - (a->len < b->len);
}

struct hf_str hf__expr_path_text(struct hf_scope *s, const struct expr_path *path)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_byte(&buf, '[');
    for (size_t i = 0; i < path->len; i++) {
        if (i > 0)
            hf__buf_put_str(&buf, HF_STR(", "));
        if (path->steps[i].name.ptr)
            hf__buf_put_str(&buf, path->steps[i].name);
        else
            hf__buf_format(&buf, "[%u]", path->steps[i].index);
    }
    hf__buf_put_byte(&buf, ']');
    return buf.failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)buf.ptr, buf.len);
}

struct hf_value hf__expr_resolve(struct expr_finder *finder, struct hf_item item,
                                 const struct expr_path *path)
{
    struct hf_value value = hf_item_value(item);

    for (size_t i = 0; i < path->len && value.ptr; i++) {
        const struct expr_step *step = &path->steps[i];

        if (step->name.ptr)
            value = finder ? hf__expr_find_name(finder, value, step->name)
                           : hf_value_get(value, step->name);
        else
            value = hf__expr_find_index(finder, value, step->index);
    }
    return value;
}

size_t hf__expr_work(const struct expr_bound *bound, struct hf_item item)
{
    return (bound->expr->nodes_len + bound->expr->actions_len) * item.len;
}

/* ---- paths that exclude each other ---------------------------------------------------------- */

enum relation { APART, OVERLAP, CONFLICT };

static enum relation paths_relate(const struct expr_path *a, const struct expr_path *b)
{
    for (size_t i = 0; i < a->len && i < b->len; i++) {
        if (!a->steps[i].name.ptr != !b->steps[i].name.ptr)
            return CONFLICT;
        if (step_compare(&a->steps[i], &b->steps[i]) != 0)
            return APART;
    }
    return OVERLAP;
}

enum { PAIRS_MAX = 64 }; /* paths of which every pair is looked at to name the first */

/* The first pair in reading order that is so related. */
static bool find_pair(const struct expr_bound *bound, enum relation relation, size_t *one,
                      size_t *two)
{
    for (size_t b = 1; b < bound->listed_len; b++)
        for (size_t a = 0; a < b; a++)
            if (paths_relate(&bound->listed[a], &bound->listed[b]) == relation) {
                *one = a;
                *two = b;
                return true;
            }
    return false;
}

/* Overlaps are reported before conflicts; `one` and `two` exclude each other in any case. */
static enum hf_status fail_related(struct hf_scope *s, enum expr_kind kind,
                                   const struct expr_bound *bound, size_t one, size_t two)
{
    struct hf_str first;
    struct hf_str second;

    if (bound->listed_len <= PAIRS_MAX && !find_pair(bound, OVERLAP, &one, &two))
        find_pair(bound, CONFLICT, &one, &two);
    first = hf__expr_path_text(s, &bound->listed[one < two ? one : two]);
    second = hf__expr_path_text(s, &bound->listed[one < two ? two : one]);
    if (paths_relate(&bound->listed[one], &bound->listed[two]) == OVERLAP)
        return hf__expr_fail(s, kind, TEXT_OVERLAP, HF_FMT(first), HF_FMT(second));
    return hf__expr_fail(s, kind, TEXT_CONFLICT, HF_FMT(first), HF_FMT(second));
}

static int order_listed(const void *context, uint16_t a, uint16_t b)
{
    const struct expr_bound *bound = context;

    return hf__expr_path_compare(&bound->listed[a], &bound->listed[b]);
}

enum hf_status hf__expr_order_paths(struct hf_scope *s, enum expr_kind kind,
                                    struct expr_bound *bound)
{
    uint16_t *order = hf_scope_alloc(s, bound->listed_len * sizeof(*order));

    if (!order)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < bound->listed_len; i++)
        order[i] = (uint16_t)i;
    hf__expr_sort(order, bound->listed_len, order_listed, bound);
    bound->order = order;
    /* In order, a path that excludes another one also excludes the next one. */
    for (size_t i = 1; i < bound->listed_len; i++)
        if (paths_relate(&bound->listed[order[i - 1]], &bound->listed[order[i]]) != APART)
            return fail_related(s, kind, bound, order[i - 1], order[i]);
    return HF_OK;
}
