/* expr/partiql_test.c: statements; (n) is an invariant of the file that is tested. */
#include <stdio.h>

#include "expr/partiql_tree.h"

#include "help.h"

static enum hf_status parse(struct hf_scope *s, const char *text, struct statement *out)
{
    return hf__partiql_parse(s, hf_str_from(text), NULL, 0, out);
}

static struct statement must_parse(struct hf_scope *s, const char *text)
{
    struct statement statement;
    enum hf_status status = parse(s, text, &statement);

    if (status != HF_OK)
        print_error("%s\n  %s\n", text, hf_scope_error_text(s));
    CHECK_INT(HF_OK, status);
    return statement;
}

/* ---- tokens --------------------------------------------------------------------------------- */

TEST(partiql, tokens_have_kinds_and_places)
{
    static const struct {
        enum pq_token_kind kind;
        const char *text;
        unsigned line;
        unsigned column;
    } expected[] = {
        {PQ_KEYWORD, "SELECT", 1, 1},
        {PQ_QUOTED, "\"a\"\"b\"", 1, 8},
        {PQ_PUNCTUATION, ",", 1, 14},
        {PQ_NAME, "ab_1$", 1, 16},
        {PQ_NUMBER, "1.5e-3", 2, 3},
        {PQ_NUMBER, ".5", 2, 10},
        {PQ_STRING, "'\xc3\xa4'' '", 2, 13},
        {PQ_OPERATOR, "<>", 2, 20},
        {PQ_PUNCTUATION, "<<", 2, 23},
        {PQ_PUNCTUATION, ">>", 2, 25},
        {PQ_OPERATOR, "<=", 2, 28},
        {PQ_QUESTION, "?", 2, 31},
        {PQ_ION, "`x`", 2, 33},
        {PQ_NUMBER, "1", 3, 3},
        {PQ_NAME, "e", 3, 4},
        {PQ_PUNCTUATION, ".", 3, 6},
        {PQ_NAME, "data", 3, 8},
        {PQ_END, "", 3, 12},
    };
    static const char text[] = "SELECT \"a\"\"b\", ab_1$ -- note\n"
                               "  1.5e-3 .5 '\xc3\xa4'' ' <> <<>> <= ? `x`/* a\n*/1e . data";
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct pq_token *tokens;

    CHECK_OK(hf__pq_lex(s, hf_str_from(text), &tokens));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        CHECK_INT(expected[i].kind, tokens[i].kind);
        CHECK_STR(expected[i].text, hf_str_of(text + tokens[i].at, tokens[i].len));
        CHECK_INT(expected[i].line, tokens[i].line);
        CHECK_INT(expected[i].column, tokens[i].column);
    }
    hf_scope_free(s);
}

TEST(partiql, keywords_are_no_names_in_any_case)
{
    static const char *const words[] = {"absolute", "zone",  "SELECT", "Missing", "nUlL", "false",
                                        "inner",    "value", "size",   "date",    "user"};
    static const char *const names[] = {"data",     "name",
                                        "tab",      "status",
                                        "selected", "zones",
                                        "",         "a_very_long_word_that_is_none_of_them"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK(hf__pq_keyword(hf_str_from(words[i])));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK(!hf__pq_keyword(hf_str_from(names[i])));
}

/* ---- statements ----------------------------------------------------------------------------- */

TEST(partiql, a_select_has_its_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct statement st = must_parse(s, "SELECT a, b.c[0] FROM \"t\".\"i\" WHERE a = 1 ORDER BY x "
                                        "DESC, \"y\"");

    CHECK_INT(STATEMENT_SELECT, st.kind);
    CHECK_STR("t", st.table);
    CHECK_STR("i", st.index);
    CHECK_INT(2, st.columns->columns_len);
    CHECK(st.where);
    CHECK_INT(2, st.order_len);
    CHECK_STR("x", st.order[0].name);
    CHECK(st.order[0].descending);
    CHECK_STR("y", st.order[1].name);
    CHECK(!st.order[1].descending);
    st = must_parse(s, "SELECT * FROM t");
    CHECK(!st.columns && !st.where && !st.index.ptr);
    hf_scope_free(s);
}

TEST(partiql, writes_have_their_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct statement st = must_parse(s, "INSERT INTO t VALUE {'a': 'it''s', 'b': [1, <<2>>]}");
    const struct expr_path *targets;
    size_t len;

    CHECK_INT(STATEMENT_INSERT, st.kind);
    CHECK_STR("{\"a\":{\"S\":\"it's\"},\"b\":{\"L\":[{\"N\":\"1\"},{\"NS\":[\"2\"]}]}}",
              hf_item_to_json(s, st.item));
    st = must_parse(s,
                    "UPDATE t SET a = 1, b[2] = c REMOVE d WHERE pk = 1 RETURNING MODIFIED OLD *");
    CHECK_INT(STATEMENT_UPDATE, st.kind);
    CHECK_INT(RETURNS_MODIFIED_OLD, st.returns);
    hf__expr_targets(st.update, &targets, &len);
    CHECK_INT(3, len);
    CHECK_STR("b", targets[1].steps[0].name);
    CHECK_INT(2, targets[1].steps[1].index);
    CHECK_INT(STATEMENT_UPDATE, must_parse(s, "FROM t WHERE a = 1 REMOVE b").kind);
    CHECK_INT(STATEMENT_DELETE, must_parse(s, "DELETE FROM t WHERE a = 1").kind);
    CHECK_INT(STATEMENT_EXISTS, must_parse(s, "EXISTS(SELECT * FROM t WHERE a = 1)").kind);
    hf_scope_free(s);
}

/* What SET, REMOVE and the set functions make of an item. */
TEST(partiql, updates_change_items)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item old;
    struct hf_item out;
    struct statement st = must_parse(
        s,
        "UPDATE t SET a = (a + 1) - 3 SET m.x = if_not_exists(z, 'new'), l = list_append(l, [2]) "
        "SET s = set_add(s, <<'q'>>), r = set_delete(r, <<'p'>>) REMOVE gone WHERE pk = 1");

    CHECK_OK(hf_item_from_json(
        s,
        HF_STR("{\"pk\":{\"N\":\"1\"},\"a\":{\"N\":\"5\"},\"m\":{\"M\":{\"y\":{\"S\":\"y\"}}},"
               "\"l\":{\"L\":[]},\"s\":{\"SS\":[\"p\"]},\"r\":{\"SS\":[\"p\"]},\"gone\":{\"NULL\":"
               "true}}"),
        &old));
    CHECK_OK(hf__expr_update(s, st.update, NO_ITEM, old, &out));
    CHECK_STR(
        "{\"a\":{\"N\":\"3\"},\"l\":{\"L\":[{\"N\":\"2\"}]},\"m\":{\"M\":{\"x\":{\"S\":\"new\"},"
        "\"y\":{\"S\":\"y\"}}},\"pk\":{\"N\":\"1\"},\"s\":{\"SS\":[\"p\",\"q\"]}}",
        hf_item_to_json(s, out));
    hf_scope_free(s);
}

TEST(partiql, columns_are_named_by_their_ends)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item;
    struct hf_item out;
    struct statement st =
        must_parse(s, "SELECT m.k.y, m.x[1], m.x[0].a, m.x[0].b, l[0][0], gone, m.lost FROM t");

    CHECK_OK(hf_item_from_json(
        s,
        HF_STR(
            "{\"m\":{\"M\":{\"k\":{\"M\":{\"y\":{\"S\":\"deep\"}}},\"x\":{\"L\":[{\"M\":{\"a\":{"
            "\"N\":\"1\"},\"b\":{\"N\":\"2\"},\"c\":{\"N\":\"3\"}}},{\"N\":\"9\"}]}}},\"l\":{\"L\":"
            "[{\"L\":[{\"N\":\"7\"}]}]}}"),
        &item));
    CHECK_OK(hf__expr_project(s, st.columns, item, &out));
    CHECK(hf__item_valid(out.ptr, out.len));
    CHECK_STR(
        "{\"l[0][0]\":{\"N\":\"7\"},\"x[0]\":{\"M\":{\"a\":{\"N\":\"1\"},\"b\":{\"N\":\"2\"}}},"
        "\"x[1]\":{\"N\":\"9\"},\"y\":{\"S\":\"deep\"}}",
        hf_item_to_json(s, out));
    hf_scope_free(s);
}

/* ---- conditions ----------------------------------------------------------------------------- */

TEST(partiql, operators_bind_as_in_sql)
{
    static const struct {
        const char *where;
        bool holds; /* of {a: 1, b: 2, t: true} */
    } cases[] = {
        {"a = 1 OR a = 2 AND b = 3", true},
        {"(a = 1 OR a = 2) AND b = 3", false},
        {"NOT a = 1 OR b = 2", true},
        {"NOT (a = 1 OR b = 2)", false},
        {"NOT a = 2 AND b = 2", true},
        {"NOT NOT a = 1", true},
        {"a BETWEEN 0 AND 1 AND b = 2", true},
        {"a NOT BETWEEN 0 AND 1", false},
        {"a NOT IN [1, 2]", false},
        {"a < 2 = t", true},
        {"a < 1 = t", false},
        {"t = (a IN [1])", true},
        {"(a = 1) = (b = 2)", true},
        {"(a = 1) <> (b = 2)", false},
        {"(a = 1) = (b = 3)", false},
        {"(a = 1) = 1", false},
        {"(a = 1) <> 1", true},
        {"(a = 1) = b", false},
        {"(a = 9) IN [false]", true},
        {"a IS NUMERIC AND c IS MISSING AND t IS NOT STRING", true},
        {"1 IS MISSING", false},
        {"'x' IS STRING", true},
        {"a = - - 1", true},
        {"a > -5", true},
        {"a IN (1)", true},
        {"a IN (3, 1)", true},
        {"((((a = 1))))", true},
        {"size(c) <> 5", true},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item = HF_ITEM(s, HF_N("a", 1), HF_N("b", 2), HF_BOOL("t", true));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str text = hf_scope_format(s, "SELECT * FROM t WHERE %s", cases[i].where);
        struct statement st = must_parse(s, text.ptr);

        if (hf__expr_match(st.where, item) != cases[i].holds) {
            print_error("%s\n", cases[i].where);
            fail();
        }
    }
    hf_scope_free(s);
}

/* ---- limits --------------------------------------------------------------------------------- */

static struct hf_str repeated(struct hf_scope *s, const char *before, const char *text,
                              size_t times, const char *after)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, hf_str_from(before));
    for (size_t i = 0; i < times; i++)
        hf__buf_put_str(&buf, hf_str_from(text));
    hf__buf_put_str(&buf, hf_str_from(after));
    CHECK(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

/* (1) of partiql_tree.h: what nests is refused, what hangs side by side is not. */
TEST(partiql, nothing_exhausts_the_stack)
{
    static const char *const deep[] = {"(",  "[",  "{'a':", "<<",     "NOT ",       "- a - (",
                                       "f(", "a[", "a = (", "a IN (", "a BETWEEN ("};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct statement st;
    struct hf_str text;

    for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
        text = repeated(s, "SELECT * FROM t WHERE ", deep[i], 8000 / strlen(deep[i]), "1");
        CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
        text = repeated(s, "UPDATE t SET a = ", deep[i], 8000 / strlen(deep[i]), "1");
        CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
    }
    text = repeated(s, "SELECT * FROM t WHERE a = 1", " AND a = 1", 140, "");
    CHECK_OK(hf__partiql_parse(s, text, NULL, 0, &st));
    text = repeated(s, "SELECT * FROM t WHERE a = 1", " AND a = 1", 150, "");
    CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
    CHECK_STR("The expression contains too many operators; operator count: 301",
              hf_scope_error(s)->message);
    text = repeated(s, "SELECT * FROM t WHERE (a = 1) = b", " = b", 20, "");
    CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
    text = repeated(s, "SELECT a", ".b", 32, " FROM t");
    CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
    CHECK_STR("The document path has too many nesting levels; nesting levels: 33",
              hf_scope_error(s)->message);
    text = repeated(s, "SELECT a", ", a", 2000, " FROM t");
    CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
    text = repeated(s, "UPDATE t SET a = 1", " + 1", 127, "");
    CHECK_OK(hf__partiql_parse(s, text, NULL, 0, &st));
    text = repeated(s, "UPDATE t SET a = 1", " + 1", 2000, "");
    CHECK_STATUS(HF_INVALID, hf__partiql_parse(s, text, NULL, 0, &st));
    hf_scope_free(s);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static const struct statement_key two = {{{"pk", 2}, HF_TYPE_S}, {{"sk", 2}, HF_TYPE_N}};
static const struct statement_key texts = {{{"pk", 2}, HF_TYPE_S}, {{"sk", 2}, HF_TYPE_S}};

TEST(partiql, a_write_names_one_item)
{
    static const struct {
        const char *where;
        bool whole;
        bool more;
        bool twice;
    } cases[] = {
        {"pk = 'a' AND sk = 1", true, false, false},
        {"1 = sk AND 'a' = pk", true, false, false},
        {"(pk = 'a' AND sk = 1) AND x = 1", true, true, false},
        {"pk = 'a' AND sk = 1 AND sk = 1.0", true, false, false},
        {"pk = 'a' AND sk = 1 AND sk = 2", true, true, true},
        {"pk = 'a'", false, false, false},
        {"pk = 'a' AND sk > 1", false, true, false},
        {"pk = 'a' AND sk = 1 OR x = 1", false, true, false},
        {"NOT (pk = 'a' AND sk = 1)", false, true, false},
        {"pk = 'a' AND sk IN [1]", false, true, false},
        {"pk.x = 'a' AND sk = 1", false, true, false},
        {"pk = sk", false, true, false},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct statement_found found;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str text = hf_scope_format(s, "DELETE FROM t WHERE %s", cases[i].where);
        struct statement st = must_parse(s, text.ptr);

        CHECK_OK(hf__partiql_find_key(s, &st, &two, false, &found));
        CHECK_INT(cases[i].whole, found.whole);
        CHECK_INT(cases[i].more, found.more);
        CHECK_INT(cases[i].twice, found.twice.ptr != NULL);
    }
    {
        struct statement st = must_parse(s, "SELECT * FROM t WHERE pk = 'a' AND sk IN [1]");

        CHECK_OK(hf__partiql_find_key(s, &st, &two, true, &found));
        CHECK(found.whole && !found.more);
    }
    hf_scope_free(s);
}

static bool below(struct hf_value value, const struct statement_span *span)
{
    struct hf_bytes prefix, bytes;
    int order;

    if (!span->high.ptr)
        return true;
    if (span->prefix) {
        prefix = hf__value_scalar(span->high);
        bytes = hf__value_scalar(value);
        return (bytes.len >= prefix.len && memcmp(bytes.ptr, prefix.ptr, prefix.len) == 0) ||
               hf__value_compare(value, span->high) < 0;
    }
    order = hf__value_compare(value, span->high);
    return order < 0 || (order == 0 && !span->high_open);
}

static bool covers(const struct statement_span *span, struct hf_value pk, struct hf_value sk)
{
    int order = span->low.ptr ? hf__value_compare(sk, span->low) : 1;

    return hf_value_equal(span->hash, pk) && (order > 0 || (order == 0 && !span->low_open)) &&
           below(sk, span);
}

/* A clause made of terms on a small table, so that many of them mean something. */
static void random_clause(struct hf__buf *buf, struct test *t, bool text, int depth)
{
    static const char *const signs[] = {"=", "<", "<=", ">", ">=", "<>"};
    const char *quote = text ? "'" : "";
    unsigned choice = (unsigned)test_random_below(t, depth > 0 ? 12 : 9);
    unsigned a = (unsigned)test_random_below(t, 5);
    unsigned b = a + (unsigned)test_random_below(t, 3);

    switch (choice) {
    case 0:
    case 1:
    case 2:
        hf__buf_format(buf, "pk = '%c'", 'a' + a % 3);
        break;
    case 3:
        hf__buf_format(buf, "pk IN ['%c', '%c']", 'a' + a % 3, 'a' + b % 3);
        break;
    case 4:
    case 5:
        hf__buf_format(buf, "sk %s %s%u%s", signs[test_random_below(t, 6)], quote, a, quote);
        break;
    case 6:
        hf__buf_format(buf, "sk BETWEEN %s%u%s AND %s%u%s", quote, a, quote, quote, b, quote);
        break;
    case 7:
        if (text)
            hf__buf_format(buf, "begins_with(sk, '%u')", a);
        else
            hf__buf_format(buf, "sk IN [%u, %u]", a, b);
        break;
    case 8:
        hf__buf_format(buf, "x = %u", a % 2);
        break;
    case 9:
        hf__buf_put_str(buf, HF_STR("NOT ("));
        random_clause(buf, t, text, depth - 1);
        hf__buf_put_byte(buf, ')');
        break;
    default:
        hf__buf_put_byte(buf, '(');
        random_clause(buf, t, text, depth - 1);
        hf__buf_put_str(buf, choice == 10 ? HF_STR(" AND ") : HF_STR(" OR "));
        random_clause(buf, t, text, depth - 1);
        hf__buf_put_byte(buf, ')');
        break;
    }
}

/* Every item of a table of 3 * 10 keys is judged; (1) of partiql_keys.c. */
static void check_spans(struct test *t, struct hf_scope *s, struct hf_str clause, bool text,
                        const struct statement *st, const struct statement_span *spans, size_t len)
{
    for (unsigned i = 0; i < 60; i++) {
        char pk[2] = {(char)('a' + i % 3), 0};
        struct hf_str digits = hf_scope_format(s, i % 2 ? "%u" : "%u5", i / 6);
        struct hf_attr sk =
            text ? (struct hf_attr)HF_S("sk", digits) : (struct hf_attr)HF_NUM("sk", digits);
        struct hf_item item = HF_ITEM(s, HF_S("pk", hf_str_from(pk)), sk, HF_N("x", i % 2));
        size_t covering = 0;

        for (size_t j = 0; j < len; j++)
            covering +=
                covers(&spans[j], hf_item_get(item, HF_STR("pk")), hf_item_get(item, HF_STR("sk")));
        if (covering > 1 || (covering == 0 && hf__expr_match(st->where, item))) {
            print_error("%.*s\n  %s is in %zu of %zu reads; seed %llu\n", HF_FMT(clause),
                        hf_item_to_json(s, item).ptr, covering, len, (unsigned long long)t->seed);
            fail();
        }
    }
}

TEST(partiql, reads_cover_what_a_clause_accepts_and_no_item_twice)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    unsigned split = 0;
    unsigned refused = 0;

    for (int round = 0; round < 4000; round++) {
        struct hf__buf buf = {.scope = s};
        struct statement_span *spans;
        struct statement st;
        bool text = round % 2;
        size_t len;

        hf__buf_put_str(&buf, HF_STR("SELECT * FROM t WHERE "));
        random_clause(&buf, t, text, 4);
        CHECK_OK(hf__partiql_parse(s, hf_str_of((const char *)buf.ptr, buf.len), NULL, 0, &st));
        if (hf__partiql_spans(s, &st, text ? &texts : &two, &spans, &len) != HF_OK) {
            refused++;
        } else if (len > 0) {
            split++;
            check_spans(t, s, hf_str_of((const char *)buf.ptr, buf.len), text, &st, spans, len);
        }
        hf_scope_reset(s);
    }
    CHECK(split > 400);
    CHECK(refused > 20);
    hf_scope_free(s);
}

/* (2) of partiql_keys.c: counting comes first, however many branches there would be. */
TEST(partiql, too_many_reads_are_counted_not_made)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str text =
        repeated(s, "SELECT * FROM t WHERE pk = 'a'", " AND (sk = 1 OR sk = 2)", 60, "");
    struct statement_span *spans;
    struct statement st;
    size_t len;

    CHECK_OK(hf__partiql_parse(s, text, NULL, 0, &st));
    CHECK_STATUS(HF_INVALID, hf__partiql_spans(s, &st, &two, &spans, &len));
    CHECK_STR("Too many decomposed read operations for a given query.", hf_scope_error(s)->message);
    hf_scope_free(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status all_kinds(struct hf_scope *s)
{
    static const char *const statements[] = {
        "SELECT a, m.x[0], m.x[1].y FROM \"t\".i WHERE pk IN ['a', 'b'] AND (sk > 1 OR sk = 0) AND "
        "NOT x = [1, {'k': <<2>>}] AND attribute_exists(y) = b ORDER BY pk",
        "INSERT INTO t VALUE {'pk': 'it''s', 'v': [1, -2.5, null, {'k': <<'a', 'b'>>}]}",
        "UPDATE t SET a = a + 1 - 2, l = list_append(l, [1]), s = set_add(s, <<1>>) REMOVE x WHERE "
        "pk = 'a' AND sk = 1 AND n IS MISSING RETURNING ALL NEW *",
        "DELETE FROM t WHERE pk = 'a' AND sk = 1 AND begins_with(a, 'x')",
    };
    struct statement_found found;
    struct statement_span *spans;
    struct expr_bound *bound;
    struct statement st;
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        TRY(parse(s, statements[i], &st));
        TRY(hf__partiql_spans(s, &st, &two, &spans, &len));
        TRY(hf__partiql_find_key(s, &st, &two, true, &found));
    }
    TRY(hf__partiql_unless_missing(s, &st, HF_STR("pk"), &bound));
    return hf__partiql_not_exists(s, HF_STR("pk"), &bound);
}

TEST(partiql, any_allocation_may_fail)
{
    enum { ROOM_MAX = 65536, ROOM_STEP = 16 };
    enum hf_status status = HF_NOMEM;
    size_t room;

    for (room = 0; status != HF_OK; room += ROOM_STEP) {
        struct hf_scope *s = hf_scope_new(test_env(t));

        CHECK(room < ROOM_MAX);
        CHECK(hf_scope_alloc(s, 2 * ROOM_MAX));
        t->fail_at = -1;
        hf_scope_reset(s);
        CHECK(hf_scope_alloc(s, 2 * ROOM_MAX - room));
        status = all_kinds(s);
        t->fail_at = 0;
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status == HF_NOMEM)
            CHECK_INT(HF_NOMEM, hf_scope_error(s)->status);
        hf_scope_free(s);
    }
    CHECK(room > 1000);
}
