/*
 * bulk/record_test.c: records of Ion, JSON and CSV, one by one. That any item comes back equal is shown by
 * engine/transfers_test.c and by test/fuzz/fuzz_ion.c.
 */
#include "bulk/record.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

/* The item of a text of Ion, as JSON; or why there is none. */
static struct hf_str ion_read(struct hf_scope *s, const char *text)
{
    struct hf_item item;
    struct hf_str error;

    return hf__bulk_record_ion_read(s, hf_str_from(text), &item, &error) ? hf_item_to_json(s, item)
                                                                         : error;
}

/* The example of AWS's documentation, both ways. */
TEST(record, ion_as_aws_documents_it)
{
    static const char text[] =
        "$ion_1_0 {Item:{Authors:$dynamodb_SS::[\"Author1\",\"Author2\"],Dimensions:\"8.5 x 11.0 x "
        "1.5\",ISBN:\"333-3333333333\",Id:103.,InPublication:false,PageCount:6d2,Price:2d3,"
        "ProductCategory:\"Book\",Title:\"Book 103 Title\"}}\n";
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf out = {.scope = s};
    struct hf_item item;
    struct hf_str error;

    CHECK(hf__bulk_record_ion_read(s, hf_str_from(text), &item, &error));
    CHECK_STR("600", hf_value_number(s, hf_item_get(item, HF_STR("PageCount"))));
    CHECK_STR("103", hf_value_number(s, hf_item_get(item, HF_STR("Id"))));
    hf__bulk_record_ion_write(&out, s, item);
    CHECK_STR(text, hf_str_of((const char *)out.ptr, out.len));
    hf_scope_free(s);
}

TEST(record, ion_that_is_read)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"{Item:{}}", "{}"},
        {"{\"Item\":{\"a\":1}}", "{\"a\":{\"N\":\"1\"}}"},
        {"$ion_1_0 {Other:[1],Item:{a:-1.5d-2,},}", "{\"a\":{\"N\":\"-0.015\"}}"},
        {"{Item:{'a b':1_000,c:null.string}}", "{\"a b\":{\"N\":\"1000\"},\"c\":{\"NULL\":true}}"},
        {"[{Item:{a:{{ aG\nk= }},b:true}}", "{\"a\":{\"B\":\"aGk=\"},\"b\":{\"BOOL\":true}}"},
        {"{Item:{a:\"\\x41\\u00e4\\ud83d\\ude00\\n\"}}",
         "{\"a\":{\"S\":\"A\xC3\xA4\xF0\x9F\x98\x80\\n\"}}"},
        {"{Item:{a:$dynamodb_NS::[2.,1.],b:$dynamodb_BS::[{{AA==}}]}}",
         "{\"a\":{\"NS\":[\"1\",\"2\"]},\"b\":{\"BS\":[\"AA==\"]}}"},
        {"{Item:{a:[1,\"x\",{b:[]}]}}",
         "{\"a\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"},{\"M\":{\"b\":{\"L\":[]}}}]}}"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(cases[i].json, ion_read(s, cases[i].text));
    hf_scope_free(s);
}

TEST(record, ion_that_is_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "expected a struct with a member Item"},
        {"{}", "expected a struct with a member Item"},
        {"{Item:1}", "expected a struct behind Item"},
        {"{Item:{a:1}} more", "unexpected text behind the item"},
        {"{Item:{a:sym}}", "a symbol, which is no value of DynamoDB"},
        {"{Item:{a:2020-01-01T}}", "expected a value"},
        {"{Item:{a:unit::5}}",
         "an annotation that is not $dynamodb_SS, $dynamodb_NS or $dynamodb_BS"},
        {"{Item:{a:$dynamodb_SS::[]}}", "an empty set"},
        {"{Item:{a:$dynamodb_SS::[\"x\",\"x\"]}}", "a set with an element that comes twice"},
        {"{Item:{a:$dynamodb_SS::[1]}}", "expected a string in a set of strings"},
        {"{Item:{a:\"\\ud800\"}}", "half of a surrogate pair in a text"},
        {"{Item:{a:\"open}}", "a text that does not end"},
        {"{Item:{a:{{AA=}}}}", "a blob that is not base64"},
        {"{Item:{a:1 b:2}}", "expected a comma or a closing bracket"},
        {"{Item:{a:1d999}}", "a number that is too large or too small"},
        {"{Item:{a:nan}}", "a symbol, which is no value of DynamoDB"},
        {"{Item:{a:[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}",
         "nesting levels exceed the limit of 32"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(cases[i].why, ion_read(s, cases[i].text));
    hf_scope_free(s);
}

TEST(record, cells_of_csv)
{
    static const struct {
        const char *text;
        size_t len;
        const char *last;
    } cases[] = {
        {"a,b", 2, "b"},           {"", 1, ""},        {"a,", 2, ""}, {"\"a,\"\"b\"", 1, "a,\"b"},
        {"x,\"a\nb\"", 2, "a\nb"}, {"a b ", 1, "a b "}};
    static const char *const wrong[] = {"a\"b", "\"a", "\"a\"b", "\xFF"};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str *cells, error;
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK(hf__bulk_record_csv_cells(s, hf_str_from(cases[i].text), ',', &cells, &len, &error));
        CHECK_INT(cases[i].len, len);
        CHECK_STR(cases[i].last, cells[len - 1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK(!hf__bulk_record_csv_cells(s, hf_str_from(wrong[i]), ',', &cells, &len, &error));
        CHECK(error.len > 0);
    }
    hf_scope_free(s);
}

/* Lack of memory is a failure like any other, and leaks nothing. */
TEST(record, without_memory)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf__buf out = {.scope = s};
        struct hf_item item;
        struct hf_str error;

        if (s && hf__bulk_record_ion_read(
                     s, HF_STR("{Item:{a:$dynamodb_SS::[\"x\\n\",\"y\"],b:{{AA==}},c:[1,{d:2}]}}"),
                     &item, &error))
            hf__bulk_record_ion_write(&out, s, item);
        ALLOC_SWEEP_STOP(t);
        CHECK(t->alloc_failed || out.len > 0);
        hf_scope_free(s);
    }
}
