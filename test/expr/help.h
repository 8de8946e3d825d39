/*
 * test/expr/help.h: compile and bind in one call, and tables of texts with their errors.
 */
#ifndef HF_TEST_EXPR_HELP_H
#define HF_TEST_EXPR_HELP_H

#include "expr/expr.h"

#include "test.h"

#define NO_ITEM ((struct hf_item){NULL, 0})

/* Compile, check the maps, bind; *bound is NULL when one of them fails. */
static inline enum hf_status try_bind(struct hf_scope *s, enum expr_kind kind, struct hf_str text,
                                      struct hf_item names, struct hf_item values,
                                      struct expr_bound **bound)
{
    const struct expr *expr;
    struct expr_params params;

    *bound = NULL;
    TRY(hf__expr_compile(s, kind, text, &expr));
    TRY(hf__expr_params(s, names, values, &params));
    return hf__expr_bind(s, expr, &params, bound);
}

static inline struct expr_bound *must_bind(struct hf_scope *s, enum expr_kind kind,
                                           const char *text, struct hf_item names,
                                           struct hf_item values)
{
    struct expr_bound *bound;
    enum hf_status status = try_bind(s, kind, hf_str_from(text), names, values, &bound);

    if (status != HF_OK)
        print_error("%s\n  %s\n", text, hf_scope_error_text(s));
    CHECK_INT(HF_OK, status);
    return bound;
}

/* The text does not bind, and this is why; NULL: it binds. */
struct refusal {
    enum expr_kind kind;
    const char *text;
    const char *message;
};

static inline void check_refusals(struct hf_scope *s, const struct refusal *list, size_t len,
                                  struct hf_item names, struct hf_item values)
{
    for (size_t i = 0; i < len; i++) {
        struct expr_bound *bound;
        enum hf_status status =
            try_bind(s, list[i].kind, hf_str_from(list[i].text), names, values, &bound);
        const char *got = status == HF_OK ? "" : hf_scope_error_text(s);

        if (strcmp(got, list[i].message ? list[i].message : "") != 0) {
            print_error("%s\n  expected  %s\n  got       %s\n", list[i].text,
                        list[i].message ? list[i].message : "that it binds", got);
            fail();
        }
        CHECK_INT(list[i].message ? HF_INVALID : HF_OK, status);
        CHECK((bound == NULL) == (status != HF_OK));
    }
}

#define CHECK_REFUSALS(scope, list, names, values)                                                 \
    check_refusals((scope), (list), ARRAY_LEN(list), (names), (values))

/* Equal items, printed as bytes when they are not. */
static inline void check_item(struct hf_item expected, struct hf_item actual, const char *what)
{
    if (hf_item_equal(expected, actual))
        return;
    print_error("%s: %zu attributes in %zu bytes, expected %zu in %zu\n", what,
                hf_item_count(actual), actual.len, hf_item_count(expected), expected.len);
    fail();
}

#endif
