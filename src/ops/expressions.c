/*
 * ops/expressions.c: the expressions of a request, from "may they be there at all" to bound
 * programs.
 *
 * A name or value is used if any expression of the request uses it, so the check for unused ones
 * comes after the last expression was bound.
 */
#include "base/assert_held.h"
#include "expr/cache.h"
#include "ops/private.h"

/* Every expression is read once, in an order of its own, and no two are of one kind. */
static void expressions_check(const struct expressions *e)
{
    size_t places = 0;

    assert(e->len >= 1 && e->len <= EXPRESSIONS_MAX && e->legacy_len <= LEGACY_MAX);
    for (size_t i = 0; i < e->len; i++) {
        assert(e->list[i].name && e->order[i] < e->len);
        places |= (size_t)1 << e->order[i];
        for (size_t k = 0; k < i; k++)
            assert(e->list[k].kind != e->list[i].kind);
    }
    assert(places == ((size_t)1 << e->len) - 1);
    for (size_t i = 0; i < e->legacy_len; i++)
        assert(e->legacy[i].name);
}

static size_t count_given(const struct expressions *e)
{
    size_t count = 0;

    for (size_t i = 0; i < e->len; i++)
        count += e->list[i].text.ptr != NULL;
    return count;
}

/* KeyConditions may be combined with expressions, except a KeyConditionExpression. */
static bool is_excluded(const struct expressions *e, const struct legacy_given *legacy)
{
    assert(legacy->name);
    if (!legacy->given || strcmp(legacy->name, "KeyConditions") != 0)
        return legacy->given;
    for (size_t i = 0; i < e->len; i++)
        if (e->list[i].kind == EXPR_KEY_CONDITION)
            return e->list[i].text.ptr != NULL;
    return false;
}

static void list_put(struct hf__buf *out, const char *name, bool *first)
{
    assert(name && name[0]);
    hf__buf_format(out, "%s%s", *first ? "" : ", ", name);
    *first = false;
}

static enum hf_status check_both(struct hf_scope *s, const struct expressions *e)
{
    struct hf__buf without = {.scope = s};
    struct hf__buf with = {.scope = s};
    bool first_without = true;
    bool first_with = true;

    assert(e->legacy_len <= LEGACY_MAX);
    for (size_t i = 0; i < e->legacy_len; i++)
        if (is_excluded(e, &e->legacy[i]))
            list_put(&without, e->legacy[i].name, &first_without);
    if (first_without)
        return HF_OK;
    for (size_t i = 0; i < e->len; i++)
        if (e->list[i].text.ptr)
            list_put(&with, e->list[i].name, &first_with);
    assert(!first_with); /* who calls has found one */
    if (without.failed || with.failed)
        return hf__fail_nomem(s);
    return hf__fail(s, HF_INVALID,
                    "Can not use both expression and non-expression parameters in the same "
                    "request: Non-expression parameters: {%.*s} Expression parameters: {%.*s}",
                    (int)without.len, (const char *)without.ptr, (int)with.len,
                    (const char *)with.ptr);
}

/* ExpressionAttributeValues need an expression that can use them: any but a projection. */
static enum hf_status check_values_wanted(struct hf_scope *s, const struct expressions *e)
{
    struct hf__buf missing = {.scope = s};
    size_t count = 0;

    for (size_t i = 0; i < e->len; i++) {
        if (e->list[i].kind == EXPR_PROJECTION)
            continue;
        if (e->list[i].text.ptr)
            return HF_OK;
        hf__buf_format(&missing, "%s%s", count ? " and " : "", e->list[i].name);
        count++;
    }
    assert(count > 0); /* a request with values has an expression that can use them */
    if (missing.failed)
        return hf__fail_nomem(s);
    if (hf__scope_wording(s) == HF__WORDING_2026 && hf__newer_wording(e->op) == NEWER_PREFIXED)
        return hf__fail(s, HF_INVALID,
                        "ExpressionAttributeValues can only be specified when using expressions");
    return hf__fail(s, HF_INVALID,
                    "ExpressionAttributeValues can only be specified when using expressions: "
                    "%.*s %s null",
                    (int)missing.len, (const char *)missing.ptr, count > 1 ? "are" : "is");
}

enum hf_status hf__expressions_mixed(struct hf_scope *s, const struct expressions *e)
{
    bool any = count_given(e) > 0;

    if (DEV_CHECKS)
        expressions_check(e);
    if (any)
        TRY(check_both(s, e));
    if (e->names.ptr && !any)
        return hf__fail(s, HF_INVALID,
                        "ExpressionAttributeNames can only be specified when using expressions");
    return e->values.ptr ? check_values_wanted(s, e) : HF_OK;
}

/* ---- binding -------------------------------------------------------------------------------- */

/* Check the keys of both maps first; if a value could not be built, those of the other values. */
static enum hf_status check_params(struct hf_scope *s, const struct expressions *e,
                                   struct expr_params *params)
{
    struct hf_item_walk walk = {0};

    assert(count_given(e) > 0); /* or there is nothing to bind */
    TRY(hf_item_check(s, e->names));
    if (hf__item_poisoned(e->values)) {
        TRY(hf__expr_params(s, e->names, hf__item_poison(e->values)->rest, params));
        return hf__ops_fail_expression_value(s, e->op, hf__item_poison(e->values));
    }
    TRY(hf__expr_params(s, e->names, e->values, params));
    while (hf_item_next(e->values, &walk)) {
        enum hf_status status = hf__check_value(s, e->op, walk.value);

        if (status != HF_OK) {
            struct poison poison = {.status = status,
                                    .message = hf_scope_error(s)->message,
                                    .key = walk.name};

            return hf__ops_fail_expression_value(s, e->op, &poison);
        }
    }
    return HF_OK;
}

static enum hf_status bind_all(struct hf_scope *s, const struct expressions *e)
{
    struct expr_params params = {.names = {NULL, 0}};

    TRY(check_params(s, e, &params));
    for (size_t i = 0; i < e->len; i++) {
        const struct expression *expression = &e->list[e->order[i]];
        const struct expr *program;

        assert(expression->bound);
        if (!expression->text.ptr)
            continue;
        assert(!*expression->bound); /* it was not given as a legacy parameter, too */
        TRY(hf__expr_cached(s, e->cache, expression->kind, expression->text, &program));
        TRY(hf__expr_bind(s, program, &params, expression->bound));
        assert(*expression->bound);
    }
    return hf__expr_unused(s, &params);
}

enum hf_status hf__expressions_bind(struct hf_scope *s, const struct expressions *e)
{
    if (count_given(e) == 0)
        return HF_OK;
    return bind_all(s, e);
}
