/* cli/json_test.c: JSON both ways, and rows; (n) is an invariant of the file under test. */
#include "cli/frame/output/json.h"
#include "cli/frame/output/rows.h"
#include "test.h"

#include <stdlib.h>

static void check_read(struct hf_scope *s, const char *text, const char *written)
{
    struct hf_str error;
    const struct json_node *json = hf__cli_json_read(s, hf_str_from(text), &error);

    CHECK(json != NULL);
    CHECK_STR(written, hf__cli_json_of_value(s, hf__cli_json_to_value(s, json)));
}

TEST(json, what_is_read_is_what_is_written)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_read(s, " {\"b\" : [1, -2.5e3, 0], \"a\":null,\"c\":{}} ",
               "{\"a\":null,\"b\":[1,-2500,0],\"c\":{}}");
    check_read(s, "\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\u0001\"",
               "\"\xC3\xA9\xF0\x9F\x98\x80\\n\\\"\\\\/\\u0001\"");
    check_read(s, "12345678901234567890123456789012345678",
               "12345678901234567890123456789012345678"); /* (2) of json.c */
    check_read(s, "true", "true");
    check_read(s, "[]", "[]");
    hf_scope_free(s);
}

static void check_bad(struct hf_scope *s, struct hf_str text, const char *message)
{
    struct hf_str error = {0};

    CHECK(hf__cli_json_read(s, text, &error) == NULL);
    CHECK_STR(message, error);
}

/* (1) (2) (3) of json_read.c. Texts are copied to a block of their length, for the sanitizers. */
TEST(json, what_is_none_is_told_with_its_line)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "line 1: expected a value"},
        {"\n\n nul", "line 3: expected a value"},
        {"{\"a\":1,}", "line 1: expected a name in quotes"},
        {"{\"a\" 1}", "line 1: expected ':'"},
        {"{\"a\":1", "line 1: expected ',' or '}'"},
        {"[1 2]", "line 1: expected ',' or ']'"},
        {"[1,\n", "line 2: expected a value"},
        {"\"a", "line 1: a string has no end"},
        {"\"a\\", "line 1: an escape that JSON does not have"},
        {"\"\\u12", "line 1: an escape that JSON does not have"},
        {"\"\\ud800\"", "line 1: an escape that JSON does not have"},
        {"\"a\tb\"", "line 1: a control character in a string"},
        {"01", "line 1: a malformed number"},
        {"1.", "line 1: a malformed number"},
        {"1e", "line 1: a malformed number"},
        {"-", "line 1: a malformed number"},
        {"1 1", "line 1: unexpected text after the value"},
        {"{\"a\":1,\"a\":2}", "line 1: duplicate member"},
        {"\n\"\xff\"", "line 2: invalid UTF-8 in a string"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);
        char *exact = malloc(len ? len : 1);

        memcpy(exact, cases[i].text, len);
        check_bad(s, hf_str_of(exact, len), cases[i].message);
        free(exact);
    }
    hf_scope_free(s);
}

/* (3) of json_read.c: a name that comes twice is found wherever it is, also among many. */
TEST(json, a_name_that_comes_twice_among_many)
{
    static const struct {
        size_t len, again; /* members; which of them has the name of the first, 0: none */
    } cases[] = {{32, 0}, {32, 31}, {33, 0}, {33, 32}, {34, 33}, {60000, 0}, {60000, 40000}};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_str error = {0};
        struct hf_str message =
            hf_scope_format(s, "line %zu: duplicate member", cases[i].again + 1);
        char *text;
        size_t len;
        FILE *out = open_memstream(&text, &len);
        const struct json_node *json;

        for (size_t at = 0; at < cases[i].len; at++)
            fprintf(out, "%s\"n%zu\":1", at ? ",\n" : "{",
                    cases[i].again && at == cases[i].again ? (size_t)0 : at);
        fputc('}', out);
        fclose(out);
        json = hf__cli_json_read(s, hf_str_of(text, len), &error);
        CHECK((json != NULL) == !cases[i].again);
        CHECK(json == NULL || json->len == cases[i].len);
        if (cases[i].again)
            CHECK_STR(message.ptr, error);
        free(text);
    }
    hf_scope_free(s);
}

/* (1) of json.c: what is no UTF-8, and what a terminal would obey. */
TEST(json, hostile_text_is_written_as_text)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STR("\"\\u001b[1m\\u007f\"", hf__cli_json_of_text(s, HF_STR("\x1b[1m\x7f")));
    CHECK_STR("\"a\xEF\xBF\xBD\xEF\xBF\xBD\"", hf__cli_json_of_text(s, HF_STR("a\xC0\x80")));
    CHECK_STR("\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"",
              hf__cli_json_of_text(s, HF_STR("\xED\xA0\x80"))); /* half of a pair */
    CHECK_STR("\"\xEF\xBF\xBD\"", hf__cli_json_of_text(s, HF_STR("\xE2")));
    hf_scope_free(s);
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct page {
    struct cli cli;
    char *out;
    size_t len;
};

static void page_open(struct page *p, struct test *t)
{
    *p = (struct page){.cli = {.scope = hf_scope_new(test_env(t)), .err = stderr}};
    p->cli.out = open_memstream(&p->out, &p->len);
}

static void page_close(struct page *p)
{
    fclose(p->cli.out);
    free(p->out);
    hf_scope_free(p->cli.scope);
}

static void print_two(struct page *p, const struct database_settings *settings)
{
    static struct rows rows;
    struct rows_field first[] = {hf__rows_text("name", HF_STR("a\tb\x1b")),
                                 hf__rows_number(&p->cli, "fence", 12345),
                                 {.name = "more", .kind = ROWS_JSON, .text = HF_STR("[1]")}};
    struct rows_field second[] = {hf__rows_text("name", HF_STR("longer-name")),
                                  hf__rows_text("fence", (struct hf_str){0}),
                                  hf__rows_bool("more", true)};

    second[2].kind = ROWS_JSON;
    rewind(p->cli.out);
    hf__rows_begin(&rows, &p->cli, settings, "locks");
    hf__rows_add(&rows, first, 3);
    hf__rows_add(&rows, second, 3);
    CHECK_INT(CLI_OK, hf__rows_end(&rows, HF_STR("next\""), CLI_OK));
}

TEST(rows, one_list_in_every_form)
{
    struct database_settings settings = {.json = false};
    struct page p;

    page_open(&p, t);
    print_two(&p, &settings);
    CHECK_STR("a\\tb\\x1b\t12345\nlonger-name\t-\n", hf_str_of(p.out, p.len));
    p.cli.terminal = true;
    print_two(&p, &settings);
    CHECK_STR("name         fence\n"
              "a\\tb\\x1b     12345\n"
              "longer-name  -\n",
              hf_str_of(p.out, p.len));
    settings.jsonl = true;
    print_two(&p, &settings);
    CHECK_STR("{\"name\":\"a\\tb\\u001b\",\"fence\":12345,\"more\":[1]}\n"
              "{\"name\":\"longer-name\",\"fence\":null,\"more\":true}\n",
              hf_str_of(p.out, p.len));
    settings.json = true;
    print_two(&p, &settings);
    CHECK_STR("{\"locks\":[{\"name\":\"a\\tb\\u001b\",\"fence\":12345,\"more\":[1]},"
              "{\"name\":\"longer-name\",\"fence\":null,\"more\":true}],\"next\":\"next\\\"\"}\n",
              hf_str_of(p.out, p.len));
    settings.quiet = true;
    print_two(&p, &settings);
    CHECK_STR("", hf_str_of(p.out, p.len));
    page_close(&p);
}

TEST(rows, more_rows_than_are_held_back)
{
    struct database_settings settings = {.json = false};
    static struct rows rows;
    struct page p;
    size_t lines = 0;

    page_open(&p, t);
    p.cli.terminal = true;
    hf__rows_begin(&rows, &p.cli, &settings, "x");
    for (unsigned i = 0; i < 3 * ROWS_HELD_MAX + 1; i++) {
        struct rows_field field = hf__rows_number(&p.cli, "n", i);

        hf__rows_add(&rows, &field, 1);
    }
    CHECK_INT(CLI_OK, hf__rows_end(&rows, (struct hf_str){0}, CLI_OK));
    for (size_t i = 0; i < p.len; i++)
        lines += p.out[i] == '\n';
    CHECK_INT(3 * ROWS_HELD_MAX + 2, lines);
    page_close(&p);
}

static void print_sparse(struct page *p, const char *value, uint64_t count)
{
    struct database_settings settings = {.json = false};
    static struct rows rows;

    rewind(p->cli.out);
    hf__rows_begin(&rows, &p->cli, &settings, "x");
    for (unsigned i = 0; i < 2; i++) {
        char id[] = {'i', 'd', (char)('0' + i)};
        struct rows_field fields[] = {hf__rows_text("id", hf_str_of(id, sizeof(id))),
                                      hf__rows_number(&p->cli, "count", i ? count : 0),
                                      hf__rows_text("value", hf_str_from(value))};

        fields[1].sparse = true;
        fields[2].cut = true;
        hf__rows_add(&rows, fields, 3);
        memset(id, '?', sizeof(id)); /* rows keep copies */
    }
    CHECK_INT(CLI_OK, hf__rows_end(&rows, (struct hf_str){0}, CLI_OK));
}

/* A column that says nothing is left out; what is too wide is cut, or becomes a block. */
TEST(rows, columns_fit_the_terminal)
{
    struct page p;

    page_open(&p, t);
    p.cli.terminal = true;
    print_sparse(&p, "short", 0);
    CHECK_STR("id   value\nid0  short\nid1  short\n", hf_str_of(p.out, p.len));
    print_sparse(&p, "short", 7);
    CHECK_STR("id   count  value\nid0  0      short\nid1  7      short\n", hf_str_of(p.out, p.len));
    p.cli.columns = 24;
    print_sparse(&p, "0123456789abcdefghijk", 7); /* one column more than there is */
    CHECK_STR("id   count  value\nid0  0      012345678...\nid1  7      012345678...\n",
              hf_str_of(p.out, p.len));
    print_sparse(&p, "0123456789ab", 7);
    CHECK_STR("id   count  value\nid0  0      0123456789ab\nid1  7      0123456789ab\n",
              hf_str_of(p.out, p.len));
    p.cli.columns = 23;
    print_sparse(&p, "0123456789abcdefghijk", 7);
    CHECK_STR("id     id0\ncount  0\nvalue  0123456789abcdefghijk\n"
              "\nid     id1\ncount  7\nvalue  0123456789abcdefghijk\n",
              hf_str_of(p.out, p.len));
    page_close(&p);
}

TEST(rows, width_is_what_is_printed)
{
    static const struct {
        const char *text;
        size_t width;
    } cases[] = {{"", 0},
                 {"abc", 3},
                 {"\n\t\\", 6},
                 {"\x1b[1m", 7},
                 {"\xc2\x85", 8},
                 {"\xc3\xbc", 1},
                 {"\xe6\x97\xa5", 2},
                 {"e\xcc\x81", 1},
                 {"\xf0\x9f\x98\x80", 2},
                 {"\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", 2}, /* with a skin tone */
                 {"\xe2\x9c\x85", 2},
                 {"\xe0\xb8\x81\xe0\xb8\xb4", 1}, /* Thai, with a vowel above */
                 {"\xd9\x85\xd9\x8f", 1},
                 {"\xe1\x84\x92\xe1\x85\xa1", 2}, /* a syllable of two parts */
                 {"\xe2\x80\xae", 0},
                 {"\xff\xc3", 2},
                 {"\xe2\x82", 2}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_INT(cases[i].width, hf__rows_width(hf_str_from(cases[i].text)));
}

TEST(rows, durations)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {{0, "0ms"},
                 {999, "999ms"},
                 {1000, "1s"},
                 {1001, "2s"},
                 {59999, "1m"},
                 {899970, "15m"},
                 {899000, "14m 59s"},
                 {3600000, "1h"},
                 {7500000, "2h 5m"},
                 {86400000, "1d"},
                 {273600000, "3d 4h"},
                 {3601000, "1h"},
                 {UINT64_MAX, "213503982334d 14h"}};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_STR(cases[i].text, hf__rows_duration(s, cases[i].ms));
    hf_scope_free(s);
}

TEST(json, a_check_without_a_tree)
{
    static const char *const good[] = {"null",
                                       " 7 ",
                                       "-0.5e+3",
                                       "\"\\u00fc\\n\"",
                                       "[]",
                                       "{}",
                                       "[1,{\"a\":[true,false]},\"x\"]",
                                       "{\"a\":1,\"a\":2}",
                                       "\"\xc3\xbc\""};
    static const char *const bad[] = {"",         "{",         "[1,]", "[1 2]",   "{\"a\"}",
                                      "{\"a\":}", "{a:1}",     "01",   "1.",      "1e",
                                      "-",        "nul",       "\"",   "\"\\x\"", "\"\\u12g4\"",
                                      "\"a\nb\"", "1 2",       "]",    "[}",      "{\"a\":1]",
                                      "\"\xff\"", "[\"\xc3\"]"};
    char deep[2 * JSON_LEVELS_MAX + 2];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK_INT(0, hf__cli_json_check(hf_str_from(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (hf__cli_json_check(hf_str_from(bad[i])) == 0)
            fail_msg("%s is JSON", bad[i]);
    CHECK_INT(3, hf__cli_json_check(HF_STR("{\n\"a\":\nx}")));
    memset(deep, '[', JSON_LEVELS_MAX);
    memset(deep + JSON_LEVELS_MAX, ']', JSON_LEVELS_MAX);
    CHECK_INT(0, hf__cli_json_check(hf_str_of(deep, 2 * JSON_LEVELS_MAX)));
    memset(deep, '[', JSON_LEVELS_MAX + 1);
    memset(deep + JSON_LEVELS_MAX + 1, ']', JSON_LEVELS_MAX + 1);
    CHECK_INT(1, hf__cli_json_check(hf_str_of(deep, 2 * JSON_LEVELS_MAX + 2)));
}

TEST(rows, times)
{
    struct page p;

    page_open(&p, t);
    CHECK_STR("2026-11-15T12:00:00.123Z", hf__rows_time(&p.cli, "at", 1794744000123456LL).text);
    CHECK(!hf__rows_time(&p.cli, "at", 0).text.ptr);
    page_close(&p);
}

/* A row that has its JSON already is printed as that, and has no column for it. */
TEST(rows, one_that_is_whole)
{
    struct database_settings settings = {.json = false};
    struct rows_field fields[] = {hf__rows_text("id", HF_STR("a")),
                                  {.name = "x", .kind = ROWS_WHOLE, .text = HF_STR("{\"b\":1}")}};
    static struct rows rows;
    struct page p;

    page_open(&p, t);
    p.cli.terminal = true;
    hf__rows_begin(&rows, &p.cli, &settings, "x");
    hf__rows_add(&rows, fields, 2);
    fields[0].text = HF_STR("wide");
    hf__rows_add(&rows, fields, 2);
    CHECK_INT(CLI_OK, hf__rows_end(&rows, (struct hf_str){0}, CLI_OK));
    CHECK_STR("id\na\nwide\n", hf_str_of(p.out, p.len));
    rewind(p.cli.out);
    settings.jsonl = true;
    hf__rows_begin(&rows, &p.cli, &settings, "x");
    hf__rows_add(&rows, fields, 2);
    fields[1].text = (struct hf_str){0}; /* there was no memory */
    hf__rows_add(&rows, fields, 2);
    CHECK_INT(CLI_OK, hf__rows_end(&rows, (struct hf_str){0}, CLI_OK));
    CHECK_STR("{\"b\":1}\nnull\n", hf_str_of(p.out, p.len));
    page_close(&p);
}

TEST(json, members)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str error;
    const struct json_node *object = hf__cli_json_read(s, HF_STR("{\"a\":1,\"b\":[2]}"), &error);

    CHECK_STR("1", hf__cli_json_member(object, "a")->text);
    CHECK_INT(JSON_ARRAY, hf__cli_json_member(object, "b")->kind);
    CHECK(!hf__cli_json_member(object, "c"));
    CHECK(!hf__cli_json_member(hf__cli_json_member(object, "b"), "a"));
    hf_scope_free(s);
}
