/* client/ini_test.c: AWS's dialect of ini; (n) is an invariant of ini.c. */
#include "client/ini.h"
#include "test.h"

#include <stdio.h>

#include "base/buf.h"

/* All that was read, as text: "kind name: key=value key.sub=value", one section a line. */
static struct hf_str dump(struct hf_scope *s, const struct ini *ini)
{
    static const char *const kinds[] = {"other", "profile", "sso", "services"};
    struct hf__buf out = {.scope = s};

    for (size_t i = 0; i < ini->len; i++) {
        const struct ini_entry *entry = &ini->list[i];

        if (!entry->key.ptr) {
            hf__buf_format(&out, "%s%s '%.*s':", out.len ? "\n" : "", kinds[entry->kind],
                           HF_FMT(entry->section));
            continue;
        }
        hf__buf_format(&out, " %.*s", HF_FMT(entry->key));
        if (entry->sub.ptr)
            hf__buf_format(&out, ".%.*s", HF_FMT(entry->sub));
        hf__buf_format(&out, "='%.*s'", HF_FMT(entry->value));
    }
    CHECK(!out.failed);
    return out.ptr ? hf_str_of((const char *)out.ptr, out.len) : HF_STR("");
}

static enum hf_status parse(struct hf_scope *s, enum ini_file file, struct hf_str text,
                            struct ini *ini)
{
    struct hf_str copy = hf_scope_copy(s, text);

    return copy.ptr ? hf__ini_parse(s, s, file, "f", (char *)(uintptr_t)copy.ptr, copy.len, ini)
                    : HF_NOMEM;
}

static void check_reads(struct hf_scope *s, enum ini_file file, const char *expected,
                        const char *text)
{
    struct ini ini = {0};

    CHECK_OK(parse(s, file, hf_str_from(text), &ini));
    CHECK_STR(expected, dump(s, &ini));
}

static void check_bad(struct hf_scope *s, const char *message, struct hf_str text)
{
    struct ini ini = {0};

    CHECK_STATUS(HF_INVALID, parse(s, INI_CONFIG, text, &ini));
    CHECK_ERROR(HF_INVALID, message, s);
}

/* ---- sections ------------------------------------------------------------------------------- */

TEST(ini, sections)
{
    static const struct {
        const char *text, *config, *credentials;
    } cases[] = {
        {"", "", ""},
        {"\n \t\r\n", "", ""},
        {"[default]", "profile 'default':", "profile 'default':"},
        {"[profile foo]", "profile 'foo':", "profile 'profile foo':"},
        {"[profile\tfoo]", "profile 'foo':", "profile 'profile\tfoo':"},
        {"[ \tprofile  \tfoo \t]", "profile 'foo':", "profile 'profile  \tfoo':"},
        {"[foo]", "other '':", "profile 'foo':"},
        {"[ foo ]", "other '':", "profile 'foo':"},
        {"[profilefoo]", "other '':", "profile 'profilefoo':"},
        {"[profile]", "other '':", "profile 'profile':"},
        {"[profile ]", "other '':", "profile 'profile':"},
        {"[]", "other '':", "other '':"},
        {"[sso-session a]", "sso 'a':", "profile 'sso-session a':"},
        {"[services a]", "services 'a':", "profile 'services a':"},
        {"[services]", "other '':", "profile 'services':"},
        {"[Default]", "other '':", "profile 'Default':"},
        {"[Profile a]", "other '':", "profile 'Profile a':"},
        {"[profile in valid]", "other '':", "profile 'profile in valid':"},
        {"[profile a-b:c/d_e%f.g@h+i]", "profile 'a-b:c/d_e%f.g@h+i':", NULL},
        {"[profile \xc3\xa4]", "profile '\xc3\xa4':", NULL},
        {"[profile \"two words\"]", "profile 'two words':", NULL},
        {"[profile 'two words']", "profile 'two words':", NULL},
        {"[profile 'it\"s']", "profile 'it\"s':", NULL},
        {"[profile \"a]b\"]", "profile 'a]b':", NULL},
        {"[profile \"a\\\"b] # c\"]", "profile 'a\"b] # c':", NULL},
        {"[profile a\"b c\"d]", "profile 'ab cd':", NULL},
        {"[profile a\\ b]", "profile 'a b':", NULL},
        {"[profile \"a\\\"b\\c\"]", "profile 'a\"b\\c':", NULL},
        {"[profile \"a\\\\b\"]", "profile 'a\\b':", NULL},
        {"[profile 'a\\']", "profile 'a\\':", NULL},
        {"[profile a\\]", "other '':", NULL},
        {"[profile \"a]", "other '':", NULL},
        {"[profile \"\"]", "other '':", NULL},
        {"[profile a] # c", "profile 'a':", NULL},
        {"[profile a];c", "profile 'a':", NULL},
        {"[profile a]# see [1]", "profile 'a':", NULL},
        {"[profile a'b] # it's", "other '':", NULL},
        {"[a'b] # it's", "other '':", "profile 'a'b':"},
        {"[a'b] # it's [1]", "other '':", "profile 'a'b':"},
        {"\xef\xbb\xbf[profile a]", "profile 'a':", NULL},
        {"  [profile a]", "profile 'a':", NULL},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (cases[i].config)
            check_reads(s, INI_CONFIG, cases[i].config, cases[i].text);
        if (cases[i].credentials)
            check_reads(s, INI_CREDENTIALS, cases[i].credentials, cases[i].text);
    }
    hf_scope_free(s);
}

/* ---- settings ------------------------------------------------------------------------------- */

TEST(ini, settings)
{
    static const struct {
        const char *text, *expected; /* behind "[profile a]\n" */
    } cases[] = {
        {"name = value", "name='value'"},
        {"name=value\r\n", "name='value'"},
        {"name \t=  \tvalue \t\r", "name='value'"},
        {"name = val=ue", "name='val=ue'"},
        {"name = \xf0\x9f\x98\x82", "name='\xf0\x9f\x98\x82'"},
        {"name =", "name=''"},
        {"a=1\nb=2", "a='1' b='2'"},
        {"a=1\n\n\t\n# c\n; c\n  # c\nb=2", "a='1' b='2'"},
        {"in valid = x", "in valid='x'"},
        {"a : b = c", "a : b='c'"},
        /* comments */
        {"a = v # c", "a='v'"},
        {"a = v ; c # d", "a='v'"},
        {"a = v\t#", "a='v'"},
        {"a = v# no", "a='v# no'"},
        {"a = v;no", "a='v;no'"},
        {"a = # c", "a=''"},
        {"a =# no", "a='# no'"},
        /* values of several lines */
        {"a = v\n -more", "a='v\n-more'"},
        {"a = v # c\n \t more \t \n\tmost", "a='v\nmore\nmost'"},
        {"a = v\n more # no comment", "a='v\nmore # no comment'"},
        {"a = v\n x = y\nb = w", "a='v\nx = y' b='w'"},
        {"a = v\n\n more", "a='v\nmore'"},
        {"a = v\n # c\n more", "a='v\nmore'"},
        {"a = v\r\n more\r\n", "a='v\nmore'"},
        /* tables */
        {"s3 =\n name = value", "s3='' s3.name='value'"},
        {"s3 = # c\n name = value # c\n\t \n # c\n n2=v2", "s3='' s3.name='value' s3.n2='v2'"},
        {"s3 =\n a = 1\n   b = 2\n c =", "s3='' s3.a='1' s3.b='2' s3.c=''"},
        {"s3 =\n in valid = x\nb = 1", "s3='' s3.in valid='x' b='1'"},
        /* indented as a whole */
        {"  a = 1\n  b = 2", "a='1' b='2'"},
        {"  a =\n    x = 1\n  b = 2\n c = 3", "a='' a.x='1' b='2' c='3'"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str text = hf_scope_format(s, "[profile a]\n%s", cases[i].text);
        struct hf_str expected = hf_scope_format(s, "profile 'a': %s", cases[i].expected);

        check_reads(s, INI_CONFIG, expected.ptr, text.ptr);
    }
    hf_scope_free(s);
}

/* (3): whatever is wrong, what stands in the line is not shown. */
TEST(ini, lines_that_cannot_be)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char *line = hf_scope_alloc(s, INI_LINE_MAX + 20);
    struct ini ini = {0};

    check_bad(s, "f:1: a setting before the first [SECTION]", HF_STR("hush = hush"));
    check_bad(s, "f:1: a setting before the first [SECTION]", HF_STR(" hush"));
    check_bad(s, "f:2: the name of a section ends with a ']'", HF_STR("\n[profile hush"));
    check_bad(s, "f:1: only a comment may follow the name of a section",
              HF_STR("[profile \"hush]\""));
    check_bad(s, "f:1: only a comment may follow the name of a section", HF_STR("[a] hush"));
    check_bad(s, "f:2: a setting is written NAME = VALUE", HF_STR("[a]\nhush : hush"));
    check_bad(s, "f:2: a setting is written NAME = VALUE", HF_STR("[a]\n hush"));
    check_bad(s, "f:4: a setting is written NAME = VALUE", HF_STR("[a]\nb=c\n[a]\n hush"));
    check_bad(s, "f:2: a setting is written NAME = VALUE", HF_STR("[a]\nhush #=hush"));
    check_bad(s, "f:2: a setting has no name before its '='", HF_STR("[a]\r\n = hush"));
    check_bad(s, "f:3: a setting in a table is written NAME = VALUE", HF_STR("[a]\ns3=\n hush"));
    check_bad(s, "f:3: a setting in a table has no name before its '='",
              HF_STR("[a]\ns3=\n =hush"));
    check_bad(s, "f:2: the line has a NUL byte in it", HF_STR("[a]\na = hush\0hush"));
    check_bad(s, "f:1: the line has a NUL byte in it", HF_STR("#\0"));
    check_bad(s, "f:2: the line is not UTF-8", HF_STR("[a]\na = hush\xff"));

    memset(line, 'h', INI_LINE_MAX + 20);
    memcpy(line, "[a]\nb=", 6);
    CHECK_OK(parse(s, INI_CONFIG, hf_str_of(line, INI_LINE_MAX + 4), &ini));
    check_bad(s, "f:2: the line is longer than 65536 bytes", hf_str_of(line, INI_LINE_MAX + 5));
    hf_scope_free(s);
}

/* ---- questions ------------------------------------------------------------------------------ */

static void check_value(const struct ini *ini, const char *expected, const char *section,
                        const char *key, const char *sub)
{
    struct hf_str value = hf__ini_find(ini, INI_PROFILE, hf_str_from(section), key, sub);

    CHECK(!expected == !value.ptr);
    if (expected)
        CHECK_STR(expected, value);
}

/* (1) */
TEST(ini, the_last_wins)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct ini ini = {0};

    CHECK_OK(parse(s, INI_CONFIG,
                   HF_STR("[profile a]\nName = 1\nkept = k\ns3 =\n  x = 1\n  y = 1\n  X = 2\n"
                          "[profile b]\nname = b\n"
                          "[profile a]\nNAME = 2\n"
                          "[profile c]\ns3 =\n  x = 1\n  y = 1\ns3 =\n  x = 2\n"
                          "[profile d]\ns3 =\n  x = 1\ns3 = plain\n"
                          "[sso-session a]\nname = sso\n[a]\nname = other\n"),
                   &ini));
    check_value(&ini, "2", "a", "name", NULL);
    check_value(&ini, "2", "a", "nAmE", NULL);
    check_value(&ini, "k", "a", "kept", NULL);
    check_value(&ini, NULL, "a", "kep", NULL);
    check_value(&ini, NULL, "A", "name", NULL);
    check_value(&ini, "", "a", "s3", NULL);
    check_value(&ini, "2", "a", "s3", "x");
    check_value(&ini, "1", "a", "s3", "Y");
    check_value(&ini, NULL, "a", "s3", "z");
    check_value(&ini, NULL, "a", "x", NULL);
    check_value(&ini, "b", "b", "name", NULL);
    check_value(&ini, "2", "c", "s3", "x");
    check_value(&ini, NULL, "c", "s3", "y");
    check_value(&ini, "plain", "d", "s3", NULL);
    check_value(&ini, NULL, "d", "s3", "x");
    CHECK_STR("sso", hf__ini_find(&ini, INI_SSO_SESSION, HF_STR("a"), "name", NULL));
    CHECK(hf__ini_has(&ini, INI_SSO_SESSION, HF_STR("a")));
    CHECK(!hf__ini_has(&ini, INI_SSO_SESSION, HF_STR("b")));

    CHECK_OK(parse(s, INI_CREDENTIALS, HF_STR("[a]\nname = 3\n[e]\n"), &ini));
    check_value(&ini, "3", "a", "name", NULL);
    check_value(&ini, "k", "a", "kept", NULL);
    CHECK(hf__ini_has(&ini, INI_PROFILE, HF_STR("e")));
    CHECK(!hf__ini_has(&ini, INI_PROFILE, HF_STR("f")));
    hf_scope_free(s);
}

/* (1): whichever comes first; that of the credentials stays. */
TEST(ini, profile_default_replaces_default)
{
    static const char *const texts[] = {
        "[profile default]\na = 1\n[default]\nb = 2\n",
        "[default]\nb = 2\n[profile default]\na = 1\n",
        "[default]\nb=3\n[profile x]\n[default]\na=3\n[profile 'default']\na=1"};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct ini ini = {0};

        CHECK_OK(parse(s, INI_CONFIG, hf_str_from(texts[i]), &ini));
        check_value(&ini, "1", "default", "a", NULL);
        check_value(&ini, NULL, "default", "b", NULL);
        CHECK_OK(parse(s, INI_CREDENTIALS, HF_STR("[default]\nb = 4"), &ini));
        check_value(&ini, "1", "default", "a", NULL);
        check_value(&ini, "4", "default", "b", NULL);
    }
    hf_scope_free(s);
}

/* (2): as much as a file may have of what might cost more than it is long. */
TEST(ini, the_largest_file_takes_no_longer)
{
    static const struct {
        const char *head, *line;
        size_t entries;
    } cases[] = {
        {"[a]\nb=c\n", " d\n", 2},
        {"[a]\nb=\n", " d=\n", 2 + (INI_FILE_MAX - 10) / 4},
        {"[a]\n", "b=\n", 1 + (INI_FILE_MAX - 10) / 3},
        {"", "[]\n", (INI_FILE_MAX - 10) / 3},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    char *text = hf_scope_alloc(s, INI_FILE_MAX);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t step = strlen(cases[i].line), len = strlen(cases[i].head);
        struct ini ini = {0};

        memcpy(text, cases[i].head, len);
        for (size_t n = 0; n < (INI_FILE_MAX - 10) / step; n++, len += step)
            memcpy(text + len, cases[i].line, step);
        CHECK_OK(hf__ini_parse(s, s, INI_CONFIG, "f", text, len, &ini));
        CHECK_INT(cases[i].entries, ini.len);
        if (i == 0)
            CHECK_INT(1 + (INI_FILE_MAX - 10) / 3 * 2, ini.list[1].value.len);
    }
    hf_scope_free(s);
}

TEST(ini, without_memory_it_says_so)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct ini ini = {0};
        enum hf_status status = HF_NOMEM;

        if (s) {
            char *text = hf_scope_alloc(s, 4000);

            for (size_t i = 0; text && i < 4000; i += 4)
                memcpy(text + i, i ? "k=v\n" : "[a]\n", 4);
            if (text)
                status = hf__ini_parse(s, s, INI_CONFIG, "f", text, 4000, &ini);
        }
        ALLOC_SWEEP_STOP(t);
        CHECK(status == (t->alloc_failed ? HF_NOMEM : HF_OK));
        hf_scope_free(s);
    }
}
