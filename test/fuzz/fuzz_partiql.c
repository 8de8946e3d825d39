/*
 * test/fuzz/fuzz_partiql.c: statements of PartiQL from any text.
 *
 * The first byte chooses how many parameters there are and the types of the key; the rest is the
 * statement. Whatever the text:
 *
 *     reading it twice ends the same way, in the same words
 *     a condition comes to the same twice, and so does it with "or there is no item" on an item
 *     what columns, updates and INSERT make is a valid item
 *     the reads of a SELECT cover every item that its clause accepts, and none twice
 */
#include "expr/partiql_tree.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hf_str both[] = {{"a", 1}, {"b", 1}};

enum { PARAMS = 4, ITEMS = 12 };

static struct hf_item item_of(struct hf_scope *s, unsigned number, bool text)
{
    char pk[2] = {(char)('a' + number % 3), 0};
    struct hf_str digits = hf_scope_format(s, "%u", number / 3);
    struct hf_attr sk =
        text ? (struct hf_attr)HF_S("sk", digits) : (struct hf_attr)HF_NUM("sk", digits);

    return HF_ITEM(s, HF_S("pk", hf_str_from(pk)), sk, HF_N("a", number),
                   HF_SS("s", both, number % 2 + 1),
                   HF_L("l", HF_LIST(s, HF_N("", 1), HF_M("", HF_ITEM(s, HF_N("a", 1))))),
                   HF_M("m", HF_ITEM(s, HF_S("x", HF_STR("y")), HF_NULL("n"))),
                   HF_BOOL("t", number % 2));
}

static void must_be_valid(struct hf_item item)
{
    MUST(item.ptr && hf__item_valid(item.ptr, item.len));
}

static bool within(const struct statement_span *span, struct hf_value value)
{
    int low = span->low.ptr ? hf__value_compare(value, span->low) : 1;
    int high = span->high.ptr ? hf__value_compare(value, span->high) : -1;

    if (low < 0 || (low == 0 && span->low_open))
        return false;
    if (span->prefix) {
        struct hf_bytes prefix = hf__value_scalar(span->high);
        struct hf_bytes bytes = hf__value_scalar(value);

        return high < 0 || (bytes.len >= prefix.len &&
                            (!prefix.len || !memcmp(bytes.ptr, prefix.ptr, prefix.len)));
    }
    return high < 0 || (high == 0 && !span->high_open);
}

/* How many of the reads see the item. */
static size_t seen(const struct statement_span *spans, size_t len, struct hf_item item)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += hf_value_equal(spans[i].hash, hf_item_get(item, HF_STR("pk"))) &&
                 within(&spans[i], hf_item_get(item, HF_STR("sk")));
    return count;
}

static void use_where(struct hf_scope *s, const struct statement *statement, bool text)
{
    const struct statement_key key = {{HF_STR("pk"), HF_TYPE_S},
                                      {HF_STR("sk"), text ? HF_TYPE_S : HF_TYPE_N}};
    struct statement_found found;
    struct statement_span *spans;
    struct expr_bound *unless;
    size_t len;
    bool read = hf__partiql_spans(s, statement, &key, &spans, &len) == HF_OK && len > 0;

    MUST(hf__partiql_find_key(s, statement, &key, text, &found) == HF_OK);
    if (!statement->where)
        return;
    MUST(hf__partiql_unless_missing(s, statement, HF_STR("pk"), &unless) == HF_OK ||
         hf_scope_error(s)->status == HF_INVALID); /* one operator more may be one too many */
    for (unsigned i = 0; i < ITEMS; i++) {
        struct hf_item item = item_of(s, i, text);
        bool holds = hf__expr_match(statement->where, item);

        MUST(holds == hf__expr_match(statement->where, item));
        if (unless)
            MUST(holds == hf__expr_match(unless, item));
        if (read)
            MUST(seen(spans, len, item) <= 1 && (!holds || seen(spans, len, item) == 1));
    }
    (void)hf__expr_match(statement->where, (struct hf_item){NULL, 0});
    if (unless)
        MUST(hf__expr_match(unless, (struct hf_item){NULL, 0}));
}

static void use(struct hf_scope *s, const struct statement *statement, bool text)
{
    MUST(statement->table.len > 0);
    use_where(s, statement, text);
    if (statement->kind == STATEMENT_INSERT)
        must_be_valid(statement->item);
    for (unsigned i = 0; i < ITEMS; i += 5) {
        struct hf_item item = item_of(s, i, text);
        struct hf_item out;

        if (statement->columns) {
            MUST(hf__expr_project(s, statement->columns, item, &out) == HF_OK);
            must_be_valid(out);
        }
        if (statement->update &&
            hf__expr_update(s, statement->update, (struct hf_item){NULL, 0}, item, &out) == HF_OK)
            must_be_valid(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_value params[PARAMS];
    struct statement statement;
    struct statement again;
    struct hf_str text;
    struct hf_str words;
    enum hf_status status;
    size_t len;

    if (size == 0 || size > 8192 || !s) {
        hf_scope_free(s);
        return 0;
    }
    params[0] = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("a")));
    params[1] = hf_value_make(s, (struct hf_attr)HF_N("", 1));
    params[2] = hf_value_make(s, (struct hf_attr)HF_SS("", both, 2));
    params[3] = HF_LIST(s, HF_N("", 1));
    len = data[0] % (PARAMS + 1);
    text = hf_str_of((const char *)data + 1, size - 1);
    status = hf__partiql_parse(s, text, params, len, &statement);
    words = hf_scope_copy(s, hf_scope_error(s)->message);
    MUST(status == HF_OK || status == HF_INVALID);
    MUST(hf__partiql_parse(s, text, params, len, &again) == status);
    if (status != HF_OK)
        MUST(words.len > 0 && hf_str_equal(words, hf_scope_error(s)->message));
    else
        use(s, &statement, data[0] & 0x80);
    hf_scope_free(s);
    return 0;
}
