/* client/source_test.c: what sources of credentials share: times, XML, words of services. */
#include "client/source.h"
#include "client/xml.h"
#include "test.h"

TEST(source, times)
{
    static const struct {
        const char *text;
        int64_t us; /* 0: it is none */
    } cases[] = {
        {"2026-01-01T00:00:00Z", INT64_C(1767225600000000)},
        {"2026-01-01t00:00:00UTC", INT64_C(1767225600000000)},
        {"2026-01-01 00:00:00.999999999Z", INT64_C(1767225600000000)},
        {"2026-01-01T05:30:00+05:30", INT64_C(1767225600000000)},
        {"2025-12-31T16:00:00-0800", INT64_C(1767225600000000)},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
        {"1970-01-01T00:00:00Z", 1}, /* 0 would be never */
        {"1969-12-31T23:59:59Z", -1000000},
        {"2026-01-01T00:00:00", 0},
        {"2026-01-01T00:00:00Zx", 0},
        {"2026-01-01T00:00:00z", 0},
        {"2026-01-01T00:00:00+5:30", 0},
        {"2026-01-01T00:00:00+24:00", 0},
        {"2026-01-01T00:00:00+05:60", 0},
        {"2026-01-01T00:00:00+05:30Z", 0},
        {"2026-01-01T00:00Z", 0},
        {"2026-13-01T00:00:00Z", 0},
        {"2026-02-29T00:00:00Z", 0},
        {"2026-01-01T24:00:00Z", 0},
        {"2026-1-1T00:00:00Z", 0},
        {"+026-01-01T00:00:00Z", 0},
        {"1767225600", 0},
        {"", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t us = 0;
        bool is = hf__source_time(hf_str_from(cases[i].text), &us);

        CHECK_INT(cases[i].us != 0, is);
        CHECK_INT(cases[i].us, is ? us : 0);
    }
    CHECK(!hf__source_time(hf_str_of(NULL, 0), &(int64_t){0}));
}

struct walked {
    char text[512];
    size_t len;
    const char *stop_at;
};

static bool note_element(void *user, struct hf_str path, struct hf_str text)
{
    struct walked *walked = user;

    walked->len += (size_t)snprintf(walked->text + walked->len, sizeof(walked->text) - walked->len,
                                    "%.*s=%.*s;", HF_FMT(path), text.ptr ? (int)text.len : 1,
                                    text.ptr ? text.ptr : "-");
    return !walked->stop_at || !hf_str_equal(path, hf_str_from(walked->stop_at));
}

/* For answers with lists in them: every element, when it ends. */
TEST(source, xml_is_walked_element_by_element)
{
    static const struct {
        const char *xml, *stop_at, *walked; /* NULL: refused */
    } cases[] = {
        {"<r>1</r>", NULL, "r=1;"},
        {"<r></r>", NULL, "r=;"},
        {"<r><m><a>1</a></m>\n <m><a>&lt;2</a><b> </b></m></r>", NULL,
         "r/m/a=1;r/m=-;r/m/a=<2;r/m/b= ;r/m=-;r=-;"},
        {"<r><m/><n>x</n></r>", NULL, "r/n=x;r=-;"},
        {"<r><m/></r>", NULL, "r=-;"},
        {"<r>text<m>1</m>more</r>", NULL, "r/m=1;r=-;"},
        {"<r><a>1</a></r>", "r/a", NULL},
        {"<r><a>1</a>", NULL, NULL},
        {"<r><a>&nbsp;</a></r>", NULL, NULL},
        {"", NULL, NULL},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct walked walked = {.stop_at = cases[i].stop_at};
        enum hf_status status = hf__xml_walk(s, hf_str_from(cases[i].xml), note_element, &walked);

        CHECK_STATUS(cases[i].walked ? HF_OK : HF_INVALID, status);
        if (cases[i].walked)
            CHECK_STR(cases[i].walked, hf_str_from(walked.text));
    }
    hf_scope_free(s);
}

TEST(source, xml_gives_the_texts_that_are_wanted)
{
    static const struct {
        const char *xml;
        const char *a, *b; /* of "r/a" and "r/x/b"; NULL: absent */
    } cases[] = {
        {"<r><a>1</a><x><b>2</b></x></r>", "1", "2"},
        {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<r xmlns='u:v' k=\"<\" ><a\n>1</a ></r>\n",
         "!", NULL},
        {"<?xml version=\"1.0\"?>\n<r xmlns='u:v' k=\"&gt;>\" ><a\n>1</a ></r>\n", "1", NULL},
        {"<r><a>1</a><a>2</a></r>", "1", NULL}, /* the first */
        {"<r><x><a>1</a></x><b>2</b></r>", NULL, NULL},
        {"<r><a></a><x/></r>", "", NULL},
        {"<r><a/></r>", NULL, NULL},
        {"<r/>", NULL, NULL},
        {"<s><a>1</a></s>", NULL, NULL},
        {"<r><n:a>1</n:a></r>", NULL, NULL},
        {"<r><a>&amp;&lt;&gt;&quot;&apos;&#65;&#x42;&#xe9;&#x20AC;&#x1F600;</a></r>",
         "&<>\"'AB\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", NULL},
        /* Not well formed, or more than this reads: all is absent. */
        {"", "!", NULL},
        {"x", "!", NULL},
        {"<r>", "!", NULL},
        {"<r><a>1</a>", "!", NULL},
        {"<r><a>1</b></r>", "!", NULL},
        {"<r><a>1</r></a>", "!", NULL},
        {"<r><a>1</a></r>x", "!", NULL},
        {"<r><a>1</a></r><r/>", "!", NULL},
        {"<r><a>&nbsp;</a></r>", "!", NULL},
        {"<r><a>&amp</a></r>", "!", NULL},
        {"<r><a>&;</a></r>", "!", NULL},
        {"<r><a>&#;</a></r>", "!", NULL},
        {"<r><a>&#x;</a></r>", "!", NULL},
        {"<r><a>&#0;</a></r>", "!", NULL},
        {"<r><a>&#xD800;</a></r>", "!", NULL},
        {"<r><a>&#x110000;</a></r>", "!", NULL},
        {"<r><a>&#99999999999;</a></r>", "!", NULL},
        {"<r><a>&#6g;</a></r>", "!", NULL},
        {"<r><!-- c --><a>1</a></r>", "!", NULL},
        {"<r><a><![CDATA[1]]></a></r>", "!", NULL},
        {"<!DOCTYPE r><r><a>1</a></r>", "!", NULL},
        {"<r><?pi ?><a>1</a></r>", "!", NULL},
        {"<r k><a>1</a></r>", "!", NULL},
        {"<r k=1><a>1</a></r>", "!", NULL},
        {"<r k='1'l='2'><a>1</a></r>", "!", NULL},
        {"<r k='1><a>1</a></r>", "!", NULL},
        {"<><a>1</a></>", "!", NULL},
        {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a>"
         "</a></a></a></a></a></a></a></a>",
         "!", NULL}, /* 17 deep */
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str a = {NULL, 0}, b = {NULL, 0};
        const struct xml_want wants[] = {{"r/a", &a}, {"r/x/b", &b}};
        bool refused = cases[i].a && strcmp(cases[i].a, "!") == 0;

        CHECK_STATUS(refused ? HF_INVALID : HF_OK,
                     hf__xml_read(s, hf_str_from(cases[i].xml), wants, ARRAY_LEN(wants)));
        CHECK_STR(refused ? NULL : cases[i].a, a);
        CHECK_STR(cases[i].b, b);
    }
    hf_scope_free(s);
}

TEST(source, words_of_a_service_are_cleaned)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str secrets[] = {{NULL, 0}, {"HUSH", 4}};
    char large[400];

    memset(large, 'x', sizeof(large));
    CHECK_STR("a?b c", hf__source_quote(s,
                                        HF_STR(" a\x1B"
                                               "b c\n"),
                                        NULL, 0));
    CHECK_STR("???", hf__source_quote(s, HF_STR("\xE2\x82\xAC"), NULL, 0));
    CHECK_STR("", hf__source_quote(s, HF_STR("it is HUSH!"), secrets, 2));
    CHECK_STR("it is hush!", hf__source_quote(s, HF_STR("it is hush!"), secrets, 2));
    CHECK_STR("", hf__source_quote(s, hf_str_of(NULL, 0), secrets, 2));
    CHECK_INT(300, hf__source_quote(s, hf_str_of(large, sizeof(large)), secrets, 2).len);
    hf_scope_free(s);
}
