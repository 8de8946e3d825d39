/* expr/compile_test.c: texts that are wrong by themselves; (n) is an invariant of private.h. */
#include "expr/private.h"

#include "help.h"

#define C EXPR_CONDITION
#define U EXPR_UPDATE
#define P EXPR_PROJECTION
#define IC "Invalid ConditionExpression: "
#define IU "Invalid UpdateExpression: "
#define IP "Invalid ProjectionExpression: "

static struct hf_item some_values(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S(":v", HF_STR("x")), HF_N(":n", 1), HF_N(":m", 2));
}

static struct hf_item some_names(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("#a", HF_STR("a")), HF_S("#b", HF_STR("b.c")));
}

TEST(expr_compile, syntax_errors_name_the_token_and_its_neighbours)
{
    static const struct refusal list[] = {
        {C, "a", IC "Syntax error; token: \"<EOF>\", near: \"a\""},
        {C, ":v", IC "Syntax error; token: \"<EOF>\", near: \":v\""},
        {C, "a =", IC "Syntax error; token: \"<EOF>\", near: \"=\""},
        {C, "a = ", IC "Syntax error; token: \"<EOF>\", near: \"= \""},
        {C, "a AND b = :v", IC "Syntax error; token: \"AND\", near: \"a AND b\""},
        {C, "a = b = c", IC "Syntax error; token: \"=\", near: \"b = c\""},
        {C, "a == b", IC "Syntax error; token: \"=\", near: \"== b\""},
        {C, "a = @b", IC "Syntax error; token: \"@\", near: \"= @b\""},
        {C, "a = \xC3\xA4", IC "Syntax error; token: \"\xC3\xA4\", near: \"= \xC3\xA4\""},
        {C, "a-b = :v", IC "Syntax error; token: \"-\", near: \"a-b\""},
        {C, "a = 1", IC "Syntax error; token: \"1\", near: \"= 1\""},
        {C, "a = :v AND", IC "Syntax error; token: \"<EOF>\", near: \"AND\""},
        {C, "a = :v b", IC "Syntax error; token: \"b\", near: \":v b\""},
        {C, "(a = :v", IC "Syntax error; token: \"<EOF>\", near: \":v\""},
        {C, "a = :v)", IC "Syntax error; token: \")\", near: \":v)\""},
        {C, "a = (b = c)", IC "Syntax error; token: \"=\", near: \"b = c\""},
        {C, "a = NOT b", IC "Syntax error; token: \"NOT\", near: \"= NOT b\""},
        {C, "NOT a", IC "Syntax error; token: \"<EOF>\", near: \"a\""},
        {C, "(NOT a)", IC "Syntax error; token: \")\", near: \"a)\""},
        {C, "size()", IC "Syntax error; token: \")\", near: \"()\""},
        {C, "size(a", IC "Syntax error; token: \"<EOF>\", near: \"a\""},
        {C, "size(a b)", IC "Syntax error; token: \"b\", near: \"a b)\""},
        {C, "a BETWEEN :n", IC "Syntax error; token: \"<EOF>\", near: \":n\""},
        {C, "a BETWEEN :n OR :m", IC "Syntax error; token: \"OR\", near: \":n OR :m\""},
        {C, "a IN :n", IC "Syntax error; token: \":n\", near: \"IN :n\""},
        {C, "a IN ()", IC "Syntax error; token: \")\", near: \"()\""},
        {C, "a. = :v", IC "Syntax error; token: \"=\", near: \". = :v\""},
        {C, "a[b] = :v", IC "Syntax error; token: \"b\", near: \"[b]\""},
        {C, "a[:n] = :v", IC "Syntax error; token: \":n\", near: \"[:n]\""},
        {C, "a[-1] = :v", IC "Syntax error; token: \"-\", near: \"[-1\""},
        {C, "a[01] = :v", IC "Syntax error; token: \"1\", near: \"01]\""},
        {C, "a[1 = :v", IC "Syntax error; token: \"=\", near: \"1 = :v\""},
        {C, "[0] = :v", IC "Syntax error; token: \"[\", near: \"[0\""},
        {C, "# = :v", IC "Syntax error; token: \"#\", near: \"# =\""},
        {C, "a + b = :v", IC "Syntax error; token: \"+\", near: \"a + b\""},
        {C, "\t\n", IC "Syntax error; token: \"<EOF>\", near: \"\""},
        {U, "a = :v", IU "Syntax error; token: \"a\", near: \"a =\""},
        {U, "SET", IU "Syntax error; token: \"<EOF>\", near: \"SET\""},
        {U, "SET a", IU "Syntax error; token: \"<EOF>\", near: \"a\""},
        {U, "SET a = :v,", IU "Syntax error; token: \"<EOF>\", near: \",\""},
        {U, "SET a = :v REMOVE", IU "Syntax error; token: \"<EOF>\", near: \"REMOVE\""},
        {U, "SET a = :n + :n + :n", IU "Syntax error; token: \"+\", near: \":n + :n\""},
        {U, "SET a = if_not_exists(a, b + c)", IU "Syntax error; token: \"+\", near: \"b + c\""},
        {U, "SET a = :n + (b + c)", IU "Syntax error; token: \"+\", near: \"b + c\""},
        {U, "SET a = :n AND b", IU "Syntax error; token: \"AND\", near: \":n AND b\""},
        {U, "ADD a b", IU "Syntax error; token: \"b\", near: \"a b\""},
        {U, "ADD a = :n", IU "Syntax error; token: \"=\", near: \"a = :n\""},
        {U, "DELETE a", IU "Syntax error; token: \"<EOF>\", near: \"a\""},
        {U, "REMOVE a :v", IU "Syntax error; token: \":v\", near: \"a :v\""},
        {U, "REMOVE :v", IU "Syntax error; token: \":v\", near: \"REMOVE :v\""},
        {P, "a,", IP "Syntax error; token: \"<EOF>\", near: \",\""},
        {P, "a b", IP "Syntax error; token: \"b\", near: \"a b\""},
        {P, "a,,b", IP "Syntax error; token: \",\", near: \",,b\""},
        {P, "size(a)", IP "Syntax error; token: \"(\", near: \"size(a\""},
        {P, "a[]", IP "Syntax error; token: \"]\", near: \"[]\""},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, some_names(s), some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, errors_begin_with_their_kind)
{
    static const struct refusal list[] = {
        {EXPR_CONDITION, "", "Invalid ConditionExpression: The expression can not be empty;"},
        {EXPR_FILTER, "", "Invalid FilterExpression: The expression can not be empty;"},
        {EXPR_PROJECTION, "", "Invalid ProjectionExpression: The expression can not be empty;"},
        {EXPR_UPDATE, "", "Invalid UpdateExpression: The expression can not be empty;"},
        {EXPR_KEY_CONDITION, "",
         "Invalid KeyConditionExpression: The expression can not be empty;"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, NO_ITEM);
    hf_scope_free(s);
}

TEST(expr_compile, keywords_in_any_case_functions_in_one)
{
    static const struct refusal list[] = {
        {C, "a = :v and not b = :v oR c betWeen :n AND :m", NULL},
        {C, "a iN (:v)", NULL},
        {U, "sEt a = :v remove b aDd c :n", NULL},
        {C, "BEGINS_WITH(a, :v)", IC "Invalid function name; function: BEGINS_WITH"},
        {C, "dog(a)", IC "Invalid function name; function: dog"},
        {C, "a=:v   AND\t(b\n<>\r:v)", NULL},
        {C, "a_ = :v AND a_1 = :v", NULL},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, reserved_words)
{
    static const struct refusal list[] = {
        {U, "SET status = :v", IU "Attribute name is a reserved keyword; reserved keyword: status"},
        {C, "Size = :v", IC "Attribute name is a reserved keyword; reserved keyword: Size"},
        {C, "a.NAME = :v", IC "Attribute name is a reserved keyword; reserved keyword: NAME"},
        {P, "a, b.c[0].zone", IP "Attribute name is a reserved keyword; reserved keyword: zone"},
        {C, "size(a) = :n", NULL},
        {C, "statuses = :v", NULL},
        {C, "status_ = :v", NULL},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *const *words;
    size_t len = hf__expr_reserved_words(&words);

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    CHECK_INT(573, len);
    for (size_t i = 0; i < len; i++) {
        char lower[32] = {0};

        CHECK(i == 0 || strcmp(words[i - 1], words[i]) < 0);
        for (size_t c = 0; words[i][c]; c++)
            lower[c] = (char)(words[i][c] | 0x20);
        CHECK(hf__expr_reserved(hf_str_from(words[i])));
        CHECK(hf__expr_reserved(hf_str_from(lower)));
        lower[strlen(lower)] = '0';
        CHECK(!hf__expr_reserved(hf_str_from(lower)));
    }
    CHECK(!hf__expr_reserved(HF_STR("")));
    CHECK(!hf__expr_reserved(HF_STR("pk")));
    CHECK(!hf__expr_reserved(HF_STR("ZONES")));
    CHECK(!hf__expr_reserved(HF_STR("AARDVARK")));
    CHECK(!hf__expr_reserved(HF_STR("LOCALTIMESTAMPS")));
    hf_scope_free(s);
}

/* Keywords and the underscore are tokens in every kind of expression. */
TEST(expr_compile, what_no_bare_name_can_be)
{
    static const struct refusal list[] = {
        {U, "SET _type = :v", IU "Syntax error; token: \"_\", near: \"SET _type\""},
        {C, "_f(b)", IC "Syntax error; token: \"_\", near: \"_f\""},
        {P, "a._b", IP "Syntax error; token: \"_\", near: \"._b\""},
        {C, "#_x = :_x",
         IC "An expression attribute name used in the document path is not "
            "defined; attribute name: #_x"},
        {U, "set remove = :v", IU "Syntax error; token: \"remove\", near: \"set remove =\""},
        {U, "SET set = :v", IU "Syntax error; token: \"set\", near: \"SET set =\""},
        {P, "Remove", IP "Syntax error; token: \"Remove\", near: \"Remove\""},
        {C, "attribute_exists(DELETE)", IC "Syntax error; token: \"DELETE\", near: \"(DELETE)\""},
        {C, "in(a)", IC "Syntax error; token: \"in\", near: \"in(\""},
        {C, "a.between = :v", IC "Syntax error; token: \"between\", near: \".between =\""},
        {U, "SET a = b + not", IU "Syntax error; token: \"not\", near: \"+ not\""},
        {P, "ins, setting, removed, nor, ands", NULL},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, redundant_parentheses)
{
    static const struct refusal list[] = {
        {C, "(a = :v)", NULL},
        {C, "((a = :v) AND b = :v)", NULL},
        {C, "(a = :v) AND (b = :v)", NULL},
        {C, "(a) = (:v)", NULL},
        {C, "NOT (a = :v)", NULL},
        {C, "(NOT (a = :v))", NULL},
        {C, "((a = :v))", IC "The expression has redundant parentheses;"},
        {C, "b = :v OR ((a = :v))", IC "The expression has redundant parentheses;"},
        {C, "((a)) = :v", IC "The expression has redundant parentheses;"},
        {C, "(((a = :v) AND b = :v))", IC "The expression has redundant parentheses;"},
        {C, "((b.c)).d = :v", IC "The expression has redundant parentheses;"},
        {C, "(b.c).d = :v", NULL},
        {C, "((b).c)[0] = (a)[1].x", NULL},
        {C, "(b.c)d = :v", IC "Syntax error; token: \"d\", near: \")d =\""},
        {C, "(b.c). = :v", IC "Syntax error; token: \"=\", near: \". = :v\""},
        {C, "(size(a)).d = :v", IC "Syntax error; token: \".\", near: \").d\""},
        {P, "(a).b", IP "Syntax error; token: \"(\", near: \"(a\""},
        {U, "SET a = (b + :n)", NULL},
        {U, "SET a = (b) - (:n)", NULL},
        {U, "SET a = ((b + :n))", IU "The expression has redundant parentheses;"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, functions_in_the_wrong_place)
{
    static const struct refusal list[] = {
        {C, "size(a)",
         IC "The function is not allowed to be used this way in an expression; function: size"},
        {C, "a = :v AND size(a)",
         IC "The function is not allowed to be used this way in an expression; function: size"},
        {C, "NOT size(a)",
         IC "The function is not allowed to be used this way in an expression; function: size"},
        {C, "attribute_exists(a) < :v",
         IC "The function is not allowed to be used this way in an expression; "
            "function: attribute_exists"},
        {C, ":v = contains(a, :v)",
         IC "The function is not allowed to be used this way in an expression; "
            "function: contains"},
        {C, "contains(a, begins_with(b, :v))",
         IC "The function is not allowed to be used this way in an expression; "
            "function: begins_with"},
        {C, "a = if_not_exists(a, :v)",
         IC "The function is not allowed in a condition expression; function: if_not_exists"},
        {U, "SET a = size(b)",
         IU "The function is not allowed in an update expression; function: size"},
        {U, "SET a = dog(b)", IU "Invalid function name; function: dog"},
        {U, "SET a = list_append(list_append(a, b), c)",
         IU "The function is not allowed to be used this way in an expression; "
            "function: list_append"},
        {U, "SET a = list_append(if_not_exists(a, list_append(b, c)), d)",
         IU "The function is not allowed to be used this way in an expression; "
            "function: list_append"},
        {U, "SET a = b + list_append(b, c)",
         IU "The function is not allowed to be used this way in an expression; "
            "function: list_append"},
        {U, "SET a = list_append(if_not_exists(a, b), c)", NULL},
        {U, "SET a = if_not_exists(a, if_not_exists(b, :v))", NULL},
        {U, "SET a = if_not_exists(a, :n) + if_not_exists(b, :n)", NULL},
        {C, "contains(a, size(b))", NULL},
        {C, "size(size(a)) = :n",
         IC "Incorrect operand type for operator or function; operator or function: size, "
            "operand type: N"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, what_is_reported_first)
{
    static const struct refusal list[] = {
        {C, "((size(a))) AND dog(status)", IC "The expression has redundant parentheses;"},
        {C, "size(status) AND dog(a)", IC "Invalid function name; function: dog"},
        {C, "size(status) AND a = :v",
         IC "The function is not allowed to be used this way in an expression; function: size"},
        {C, "status = :nope", IC "Attribute name is a reserved keyword; reserved keyword: status"},
        {U, "SET a = dog(b) SET status = :v",
         IU "Attribute name is a reserved keyword; reserved keyword: status"},
        {U, "SET a = dog(b) SET c = :v", IU "Invalid function name; function: dog"},
        {C, "cat(dog(a))", IC "Invalid function name; function: dog"},
        {U, "SET a = cat(dog(a), dog(status_))", IU "Invalid function name; function: dog"},
        {C, "dog(a) AND", IC "Syntax error; token: \"<EOF>\", near: \"AND\""},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, a_section_comes_once)
{
    static const struct refusal list[] = {
        {U, "SET a = :v SET b = :v",
         IU "The \"SET\" section can only be used once in an update expression;"},
        {U, "REMOVE a REMOVE b",
         IU "The \"REMOVE\" section can only be used once in an update expression;"},
        {U, "ADD a :n SET c = :v ADD b :n",
         IU "The \"ADD\" section can only be used once in an update expression;"},
        {U, "DELETE a :n DELETE b :n",
         IU "The \"DELETE\" section can only be used once in an update expression;"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, some_values(s));
    hf_scope_free(s);
}

TEST(expr_compile, indexes_and_depths_have_limits)
{
    static const struct refusal list[] = {
        {P, "a[4294967294]", NULL},
        {P, "a[4294967295]",
         IP "List index is not within the allowable range; index: [4294967295]"},
        {P, "a[99999999999999999999999]",
         IP "List index is not within the allowable range; index: [99999999999999999999999]"},
        {P, "a.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b", NULL},
        {P, "a.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b",
         IP "The document path has too many nesting levels; nesting levels: 33"},
        {P,
         "a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]"
         "[0][0][0][0]",
         IP "The document path has too many nesting levels; nesting levels: 33"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, NO_ITEM);
    hf_scope_free(s);
}

/* A text of `count` times `part` between `front` and `back`. */
static struct hf_str repeated(struct hf_scope *s, const char *front, const char *part, size_t count,
                              const char *back)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, hf_str_from(front));
    for (size_t i = 0; i < count; i++)
        hf__buf_put_str(&buf, hf_str_from(part));
    hf__buf_put_str(&buf, hf_str_from(back));
    return hf_str_of((const char *)buf.ptr, buf.len);
}

TEST(expr_compile, size_and_operators_have_limits)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct expr *expr;

    CHECK_OK(hf__expr_compile(s, C, repeated(s, "a = b", " ", 4091, ""), &expr));
    CHECK_STATUS(HF_INVALID, hf__expr_compile(s, C, repeated(s, "a = b", " ", 4104, ""), &expr));
    CHECK_ERROR(HF_INVALID,
                IC "Expression size has exceeded the maximum allowed size; expression size: 4109",
                s);
    CHECK(!expr);
    /* 300 operators: 150 comparisons and 149 ANDs and a NOT */
    CHECK_OK(hf__expr_compile(s, C, repeated(s, "NOT a=b", " AND a=b", 149, ""), &expr));
    CHECK_STATUS(HF_INVALID,
                 hf__expr_compile(s, C, repeated(s, "a=b", " AND a=b", 150, ""), &expr));
    CHECK_ERROR(HF_INVALID, IC "The expression contains too many operators; operator count: 301",
                s);
    /* functions do not count */
    CHECK_OK(
        hf__expr_compile(s, C, repeated(s, "contains(a,b)", " AND contains(a,b)", 200, ""), &expr));
    hf_scope_free(s);
}

TEST(expr_compile, deep_nesting_gives_clean_errors)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct expr *expr;
    struct hf_str open = repeated(s, "", "(", 2000, "a=b");

    CHECK_STATUS(HF_INVALID, hf__expr_compile(s, C, open, &expr));
    CHECK_ERROR(HF_INVALID, IC "Syntax error; token: \"<EOF>\", near: \"b\"", s);
    CHECK_STATUS(HF_INVALID,
                 hf__expr_compile(s, C, repeated(s, (const char *)open.ptr, ")", 2000, ""), &expr));
    CHECK_STATUS(HF_INVALID, hf__expr_compile(s, C, repeated(s, "", "NOT ", 1000, "a=b"), &expr));
    CHECK_ERROR(HF_INVALID, IC "The expression contains too many operators; operator count: 1001",
                s);
    CHECK_OK(hf__expr_compile(s, C, repeated(s, "", "NOT ", 299, "a=b"), &expr));
    CHECK_STATUS(HF_INVALID, hf__expr_compile(s, C, repeated(s, "", "f(", 1000, "a"), &expr));
    CHECK_ERROR(HF_INVALID, IC "Syntax error; token: \"<EOF>\", near: \"a\"", s);
    CHECK_STATUS(HF_INVALID, hf__expr_compile(s, U, repeated(s, "SET a = ", "(", 4000, ""), &expr));
    CHECK_STATUS(HF_INVALID, hf__expr_compile(s, P, repeated(s, "a", "[0]", 1300, ""), &expr));
    CHECK_ERROR(HF_INVALID,
                IP "The document path has too many nesting levels; nesting levels: 1301", s);
    hf_scope_free(s);
}

TEST(expr_compile, a_thousand_nested_calls)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    const struct expr *expr;

    for (int i = 0; i < 1000; i++)
        hf__buf_put_str(&buf, HF_STR("f("));
    hf__buf_put_str(&buf, HF_STR("a"));
    for (int i = 0; i < 1000; i++)
        hf__buf_put_str(&buf, HF_STR(")"));
    CHECK_STATUS(HF_INVALID,
                 hf__expr_compile(s, C, hf_str_of((const char *)buf.ptr, buf.len), &expr));
    CHECK_ERROR(HF_INVALID, IC "Invalid function name; function: f", s);
    hf_scope_free(s);
}

/* (1): nothing of the caller's text is kept. */
TEST(expr_compile, the_text_is_copied)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char text[] = "#a = :v AND bb.cc[1] = :w";
    const struct expr *expr;
    struct expr_params params;
    struct expr_bound *bound;
    const struct expr_path *paths;
    size_t len;

    CHECK_OK(hf__expr_compile(s, C, hf_str_from(text), &expr));
    memset(text, '!', sizeof(text));
    CHECK_OK(hf__expr_params(s, HF_ITEM(s, HF_S("#a", HF_STR("x.y"))),
                             HF_ITEM(s, HF_N(":v", 1), HF_N(":w", 2)), &params));
    CHECK_OK(hf__expr_bind(s, expr, &params, &bound));
    hf__expr_paths(bound, &paths, &len);
    CHECK_INT(2, len);
    CHECK_INT(1, paths[0].len);
    CHECK_STR("x.y", paths[0].steps[0].name);
    CHECK_INT(3, paths[1].len);
    CHECK_STR("bb", paths[1].steps[0].name);
    CHECK_STR("cc", paths[1].steps[1].name);
    CHECK(!paths[1].steps[2].name.ptr);
    CHECK_INT(1, paths[1].steps[2].index);
    hf_scope_free(s);
}
