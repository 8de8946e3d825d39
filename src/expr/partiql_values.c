/*
 * expr/partiql_values.c: literals and parameters of statements as values.
 *
 * A parameter stands for a whole value and never within a list, bag or tuple, except for the tuple
 * of an INSERT, whose members are the attributes. Messages name a place within a value by its path
 * from the top, the trail: root, root.x, root[1].x.
 */
#include "expr/partiql_tree.h"

enum hf_status hf__pq_fail_at(struct hf_scope *s, struct pq_place place, const char *format, ...)
{
    struct hf__buf buf = {.scope = s};
    va_list args;

    va_start(args, format);
    hf__buf_vformat(&buf, format, args);
    va_end(args);
    hf__buf_format(&buf, " at %u:%u:%u", (unsigned)place.line, (unsigned)place.column,
                   (unsigned)place.len);
    if (buf.failed)
        return hf__fail_nomem(s);
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)buf.ptr, buf.len));
}

/* A value under construction. */
struct making {
    struct hf_scope *s;
    struct hf__buf value;
    struct hf__buf trail;
    unsigned depth;
};

static enum hf_status make_value(struct making *m, const struct pq_node *node);

static struct hf_str trail_of(const struct making *m)
{
    return hf_str_of((const char *)m->trail.ptr, m->trail.len);
}

/* ---- scalars -------------------------------------------------------------------------------- */

static enum hf_status fail_number(struct making *m, enum number_error error)
{
    const char *text = error == NUMBER_PRECISION
                           ? "Attempting to store more than 38 significant digits in a Number"
                       : error == NUMBER_OVERFLOW
                           ? "Number overflow. Attempting to store a number with magnitude larger "
                             "than supported range"
                           : "Number underflow. Attempting to store a number with magnitude "
                             "smaller than supported range";

    return hf__fail(m->s, HF_INVALID, "%s under %.*s", text, HF_FMT(trail_of(m)));
}

static enum hf_status number_of(struct making *m, const struct pq_node *node, struct number *out)
{
    struct hf__buf text = {.scope = m->s};
    enum number_error error;

    if (node->negative)
        hf__buf_put_byte(&text, '-');
    hf__buf_put_str(&text, node->text);
    if (text.failed)
        return hf__fail_nomem(m->s);
    error = hf__number_parse(hf_str_of((const char *)text.ptr, text.len), out);
    if (error == NUMBER_SYNTAX)
        return hf__pq_malformed(m->s, "");
    return error == NUMBER_OK ? HF_OK : fail_number(m, error);
}

static const char *ion_type(struct hf_str text)
{
    char c = text.len > 2 ? text.ptr[1] : '\0';

    if (c == '"')
        return "STRING";
    if (c == '{')
        return "STRUCT";
    if (c == '[')
        return "LIST";
    return (c >= '0' && c <= '9') || c == '-' ? "INT" : "SYMBOL";
}

static enum hf_status fail_unsupported(struct making *m, const struct pq_node *node,
                                       struct hf_str what)
{
    return hf__pq_fail_at(m->s, node->place, "Unsupported data type: %.*s under key %.*s",
                          HF_FMT(what), HF_FMT(trail_of(m)));
}

static enum hf_status make_literal(struct making *m, const struct pq_node *node)
{
    struct number number;

    switch ((enum pq_literal)node->op) {
    case PQ_TEXT:
        hf__build_str(&m->value, HF_TYPE_S, node->text);
        return HF_OK;
    case PQ_NUMERIC:
        TRY(number_of(m, node, &number));
        hf__build_number(&m->value, number.bytes, number.len);
        return HF_OK;
    case PQ_NULL:
        hf__build_null(&m->value);
        return HF_OK;
    case PQ_TRUE:
    case PQ_FALSE:
        hf__build_bool(&m->value, node->op == PQ_TRUE);
        return HF_OK;
    case PQ_MISSING:
        return fail_unsupported(m, node, HF_STR("MISSING"));
    case PQ_ION_TEXT:
        break;
    }
    return hf__pq_fail_at(m->s, node->place, "Ion Literals are not supported: %s under key %.*s",
                          ion_type(node->text), HF_FMT(trail_of(m)));
}

/* ---- sets ----------------------------------------------------------------------------------- */

/* "[b, b]": the members as they are written. */
static enum hf_status fail_duplicates(struct making *m, const struct pq_node *bag, bool numbers)
{
    struct hf__buf list = {.scope = m->s};

    for (const struct pq_node *member = bag->first; member; member = member->next)
        hf__buf_format(&list, "%s%s%.*s", member == bag->first ? "" : ", ",
                       member->negative ? "-" : "", HF_FMT(member->text));
    if (list.failed)
        return hf__fail_nomem(m->s);
    if (numbers)
        return hf__fail(m->s, HF_INVALID,
                        "One or more parameter values were invalid: Input collection [%.*s] "
                        "contains duplicates! under %.*s",
                        (int)list.len, (const char *)list.ptr, HF_FMT(trail_of(m)));
    return hf__fail(m->s, HF_INVALID,
                    "One or more parameter values were invalid: Input collection [%.*s] contains "
                    "duplicates.",
                    (int)list.len, (const char *)list.ptr);
}

static enum hf_status make_bag(struct making *m, const struct pq_node *bag)
{
    bool numbers;
    size_t open;

    if (!bag->first)
        return hf__fail(m->s, HF_INVALID, "Empty bags are not supported");
    numbers = bag->first->kind == PQ_LITERAL && bag->first->op == PQ_NUMERIC;
    open = hf__build_open(&m->value, numbers ? HF_TYPE_NS : HF_TYPE_SS);
    for (const struct pq_node *member = bag->first; member; member = member->next) {
        struct number number;

        if (member->kind == PQ_PARAMETER)
            return fail_unsupported(m, member, HF_STR("Parameter"));
        if (member->kind != PQ_LITERAL || (member->op != PQ_TEXT && member->op != PQ_NUMERIC))
            return hf__pq_fail_at(m->s, member->place,
                                  "Unsupported data type in Bag. DynamoDB only supports either "
                                  "numbers or strings in bags");
        if ((member->op == PQ_NUMERIC) != numbers)
            return hf__fail(m->s, HF_INVALID,
                            "Unsupported data type in Bag. DynamoDB only supports either numbers "
                            "or strings in bags");
        if (!numbers) {
            hf__build_element(&m->value, HF_TYPE_SS,
                              hf_bytes_of(member->text.ptr, member->text.len));
            continue;
        }
        TRY(number_of(m, member, &number));
        hf__build_element(&m->value, HF_TYPE_NS, hf_bytes_of(number.bytes, number.len));
    }
    if (hf__build_close(&m->value, open) == BUILD_DUPLICATE)
        return fail_duplicates(m, bag, numbers);
    return HF_OK;
}

/* ---- lists and tuples ----------------------------------------------------------------------- */

/* One level deeper: the trail names the member. */
static enum hf_status make_member(struct making *m, const struct pq_node *node)
{
    if (++m->depth >= VALUE_DEPTH_MAX)
        return hf__fail(m->s, HF_INVALID,
                        "Nesting Levels have exceeded supported limits under "
                        "%.*s",
                        HF_FMT(trail_of(m)));
    TRY(make_value(m, node));
    m->depth--;
    return HF_OK;
}

static enum hf_status make_list(struct making *m, const struct pq_node *list)
{
    size_t open = hf__build_open(&m->value, HF_TYPE_L);
    size_t trail = m->trail.len;
    size_t at = 0;

    for (const struct pq_node *member = list->first; member; member = member->next) {
        hf__buf_format(&m->trail, "[%zu]", at++);
        TRY(make_member(m, member));
        m->trail.len = trail;
    }
    hf__build_close(&m->value, open);
    return HF_OK;
}

static const char *kind_of(const struct pq_node *node)
{
    return node->kind == PQ_PATH        ? "VariableReference"
           : node->kind == PQ_PARAMETER ? "Parameter"
           : node->kind == PQ_LITERAL   ? "Literal"
                                        : "NAry";
}

/* Names are strings, not empty, and come once. */
static enum hf_status check_name(struct making *m, const struct pq_node *tuple,
                                 const struct pq_node *name)
{
    if (name->kind != PQ_LITERAL || name->op != PQ_TEXT)
        return hf__pq_fail_at(m->s, name->place,
                              "Tuple keys must be of type String. Actual type: %s under %.*s",
                              kind_of(name), HF_FMT(trail_of(m)));
    if (name->text.len == 0)
        return hf__fail(m->s, HF_INVALID, "Path component cannot be an empty string");
    for (const struct pq_node *other = tuple->first; other != name; other = other->next->next)
        if (hf_str_equal(other->text, name->text))
            return hf__pq_fail_at(m->s, name->place,
                                  "Duplicate keys in tuple. Key: %.*s under %.*s",
                                  HF_FMT(name->text), HF_FMT(trail_of(m)));
    return HF_OK;
}

static enum hf_status make_tuple(struct making *m, const struct pq_node *tuple)
{
    size_t open = hf__build_open(&m->value, HF_TYPE_M);
    size_t trail = m->trail.len;

    for (const struct pq_node *name = tuple->first; name; name = name->next->next) {
        TRY(check_name(m, tuple, name));
        hf__build_name(&m->value, name->text);
        hf__buf_format(&m->trail, ".%.*s", HF_FMT(name->text));
        TRY(make_member(m, name->next));
        m->trail.len = trail;
    }
    hf__build_close(&m->value, open);
    return HF_OK;
}

static enum hf_status make_value(struct making *m, const struct pq_node *node)
{
    switch ((enum pq_kind)node->kind) {
    case PQ_LITERAL:
        return make_literal(m, node);
    case PQ_LIST:
        return make_list(m, node);
    case PQ_BAG:
        return make_bag(m, node);
    case PQ_TUPLE:
        return make_tuple(m, node);
    case PQ_PARAMETER:
        return fail_unsupported(m, node, HF_STR("Parameter"));
    case PQ_PATH:
        return fail_unsupported(m, node, node->first->text);
    default:
        return fail_unsupported(m, node, node->text);
    }
}

/* ---- whole values --------------------------------------------------------------------------- */

static enum hf_status parameter_value(struct hf_scope *s, const struct pq_params *params,
                                      const struct pq_node *node, struct hf_value *value)
{
    if (node->ref >= params->len)
        return hf__fail(s, HF_INVALID,
                        "Number of parameters in request and statement don't match.");
    *value = params->values[node->ref];
    return HF_OK;
}

static void making_start(struct making *m, struct hf_scope *s)
{
    *m = (struct making){.s = s, .value = {.scope = s}, .trail = {.scope = s}};
    hf__buf_put_str(&m->trail, HF_STR("root"));
}

bool hf__pq_is_value(const struct pq_node *node)
{
    switch ((enum pq_kind)node->kind) {
    case PQ_LITERAL:
    case PQ_PARAMETER:
    case PQ_LIST:
    case PQ_BAG:
    case PQ_TUPLE:
        return true;
    default:
        return false;
    }
}

enum hf_status hf__pq_value(struct hf_scope *s, const struct pq_params *params,
                            const struct pq_node *node, struct hf_value *value)
{
    struct making m;

    if (node->kind == PQ_PARAMETER)
        return parameter_value(s, params, node, value);
    making_start(&m, s);
    TRY(make_value(&m, node));
    if (m.value.failed || m.trail.failed)
        return hf__fail_nomem(s);
    *value = hf__build_value_from(&m.value, 0);
    return HF_OK;
}

enum hf_status hf__pq_item(struct hf_scope *s, const struct pq_params *params,
                           const struct pq_node *tuple, struct hf_item *item)
{
    struct making names; /* messages about names are of the item itself */
    struct hf__buf buf = {.scope = s};
    size_t open;

    if (tuple->kind != PQ_TUPLE)
        return hf__pq_fail_at(s, tuple->place,
                              "Unsupported format in item expression. Please use struct format "
                              "{...} to express item values for insert statement.");
    making_start(&names, s);
    open = hf__build_open(&buf, HF_TYPE_M);
    for (const struct pq_node *name = tuple->first; name; name = name->next->next) {
        struct hf_value value;

        TRY(check_name(&names, tuple, name));
        TRY(hf__pq_value(s, params, name->next, &value));
        hf__build_name(&buf, name->text);
        hf__build_value(&buf, value);
    }
    hf__build_close(&buf, open);
    if (buf.failed || names.trail.failed)
        return hf__fail_nomem(s);
    *item = hf__build_item_from(&buf, 0);
    return HF_OK;
}
