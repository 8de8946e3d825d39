/* cli/options_test.c: the parser, the help and the completion; (n) is an invariant of options.c. */
#include "cli/frame/options/manual.h"
#include "cli/frame/options/nearest.h"
#include "cli/frame/options/options.h"
#include "cli/frame/output/text.h"
#include "test.h"

#include <stdlib.h>

struct settings {
    uint64_t port;
    bool quiet;
    bool keen;
    struct hf_str host;
    struct hf_str dir;
    struct option_list names;
    unsigned mode;
    uint64_t wait_ms;
    uint64_t room_bytes;
    bool memory;
};

#define FIELD(name_) .offset = offsetof(struct settings, name_)

static const struct option_spec specs[] = {
    {.kind = OPTION_NUMBER,
     .letter = 'p',
     .name = "port",
     .local = "port",
     .value = "PORT",
     .min = 1,
     .max = 65535,
     .fallback = "8000",
     .env = "X_PORT",
     .text = "Port.",
     FIELD(port)},
    {.kind = OPTION_FLAG, .letter = 'q', .name = "quiet", .text = "Say less.", FIELD(quiet)},
    {.kind = OPTION_FLAG, .letter = 'k', .name = "keen", .text = "Try more.", FIELD(keen)},
    {.heading = "More",
     .kind = OPTION_TEXT,
     .name = "host",
     .value = "NAME",
     .text = "Host.",
     FIELD(host)},
    {.kind = OPTION_TEXT, .name = "dir", .value = "DIR", .text = "Place.", FIELD(dir)},
    {.kind = OPTION_LIST, .name = "name", .value = "NAME", .text = "Names.", FIELD(names)},
    {.kind = OPTION_CHOICE,
     .name = "mode",
     .choices = "fast safe slow",
     .fallback = "safe",
     .text = "How.",
     FIELD(mode)},
    {.kind = OPTION_DURATION,
     .name = "wait",
     .value = "TIME",
     .min = 10,
     .max = 7200000,
     .fallback = "5s",
     .text = "How long.",
     FIELD(wait_ms)},
    {.kind = OPTION_SIZE,
     .name = "room",
     .value = "SIZE",
     .min = 1024,
     .max = 1 << 30,
     .fallback = "32MiB",
     .text = "How much.",
     FIELD(room_bytes)},
    {.kind = OPTION_FLAG, .local = "inMemory", .text = "As there.", FIELD(memory)},
};

static const struct option_example examples[] = {{"holdfast try --port 1", "Try it."}};

static const struct options_table table = {
    .name = "try",
    .about = "A command to try options with, whose description is so long that it has to be "
             "wrapped at some place before its end.",
    .specs = specs,
    .len = sizeof(specs) / sizeof(specs[0]),
    .examples = examples,
    .examples_len = 1,
};

#define ARGS(...) ((const char *[]){__VA_ARGS__})
#define COUNT(...) (sizeof(ARGS(__VA_ARGS__)) / sizeof(const char *))
#define PARSE(...) parse(s, &table, NULL, COUNT(__VA_ARGS__), ARGS(__VA_ARGS__), &o, &got)
#define CHECK_GOOD(...) CHECK_INT(OPTIONS_OK, PARSE(__VA_ARGS__))
#define CHECK_BAD(error_, ...)                                                                     \
    do {                                                                                           \
        CHECK_INT(OPTIONS_BAD, PARSE(__VA_ARGS__));                                                \
        CHECK_STR(error_, got.error);                                                              \
    } while (0)

static enum options_result parse(struct hf_scope *s, const struct options_table *t_,
                                 options_env_fn *env, size_t len, const char *const *args,
                                 struct settings *o, struct options *got)
{
    *o = (struct settings){0};
    return hf__options_parse(s, t_, len, args, env, o, got);
}

static const char *good_env(const char *name)
{
    return strcmp(name, "X_PORT") == 0 ? "99" : NULL;
}

static const char *bad_env(const char *name)
{
    return strcmp(name, "X_PORT") == 0 ? "ninety" : NULL;
}

static const char *empty_env(const char *name)
{
    (void)name;
    return "";
}

TEST(options, without_arguments_there_are_defaults)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct settings o;
    struct options got;

    CHECK_INT(OPTIONS_OK, parse(s, &table, NULL, 0, NULL, &o, &got));
    CHECK_INT(8000, o.port);
    CHECK_INT(1, o.mode);
    CHECK_INT(5000, o.wait_ms);
    CHECK_INT(32 << 20, o.room_bytes);
    CHECK(!o.quiet && !o.host.ptr && o.names.len == 0);
    CHECK_INT(OPTION_DEFAULT, hf__options_source(&table, &got, "port"));
    hf_scope_free(s);
}

TEST(options, every_way_to_write_one)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct settings o;
    struct options got;

    CHECK_GOOD("--port", "1");
    CHECK_INT(1, o.port);
    CHECK_INT(OPTION_GIVEN, hf__options_source(&table, &got, "port"));
    CHECK_INT(OPTION_DEFAULT, hf__options_source(&table, &got, "wait"));
    CHECK_GOOD("--port=2");
    CHECK_INT(2, o.port);
    CHECK_GOOD("-p", "3");
    CHECK_INT(3, o.port);
    CHECK_GOOD("-p4");
    CHECK_INT(4, o.port);
    CHECK_GOOD("-p=5");
    CHECK_INT(5, o.port);
    CHECK_GOOD("-port", "6");
    CHECK_INT(6, o.port);
    CHECK_GOOD("-port=7");
    CHECK_INT(7, o.port);
    CHECK_GOOD("-qkp", "8");
    CHECK(o.quiet && o.keen && o.port == 8);
    CHECK_GOOD("-qp9");
    CHECK(o.quiet && !o.keen && o.port == 9);
    CHECK_GOOD("-inMemory", "--quiet");
    CHECK(o.memory && o.quiet);
    CHECK_INT(OPTION_GIVEN, hf__options_source(&table, &got, "inMemory"));
    CHECK_GOOD("--quiet", "--no-quiet");
    CHECK(!o.quiet);
    CHECK_GOOD("--port", "1", "--port", "2"); /* the last counts */
    CHECK_INT(2, o.port);
    CHECK_GOOD("--name", "a", "--host=h", "--name=b=c", "--name", "-");
    CHECK_INT(3, o.names.len);
    CHECK_STR("a", o.names.values[0]);
    CHECK_STR("b=c", o.names.values[1]);
    CHECK_STR("-", o.names.values[2]);
    CHECK_STR("h", o.host);
    CHECK_GOOD("--mode", "slow", "--wait", "2m", "--room", "1KiB");
    CHECK_INT(2, o.mode);
    CHECK_INT(120000, o.wait_ms);
    CHECK_INT(1024, o.room_bytes);
    CHECK_GOOD("--host", "-x"); /* no option of ours, so a value */
    CHECK_STR("-x", o.host);
    CHECK_GOOD("--host=--port");
    CHECK_STR("--port", o.host);
    hf_scope_free(s);
}

/* (2) */
TEST(options, errors_name_the_option_and_the_value)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct settings o;
    struct options got;

    CHECK_BAD("--port: 'x' is not a number", "--port", "x");
    CHECK_BAD("-port: '' is not a number", "-port=");
    CHECK_BAD("-p: '1x' is not a number", "-p1x");
    CHECK_BAD("--port: '-1' is not a number", "--port", "-1");
    CHECK_BAD("--port: '0' is out of range: use 1 to 65535", "--port", "0");
    CHECK_BAD("--port: '65536' is out of range: use 1 to 65535", "--port", "65536");
    CHECK_BAD("--port: '18446744073709551616' is not a number", "--port", "18446744073709551616");
    CHECK_BAD("--port needs a value: PORT", "--port");
    CHECK_BAD("-p needs a value: PORT", "-qp");
    CHECK_BAD("--host needs a value: NAME", "--host", "--port", "1");
    CHECK_BAD("--host needs a value: NAME", "--host", "-inMemory");
    CHECK_BAD("--host needs a value: NAME", "--host", "--no-quiet");
    CHECK_BAD("--host needs a value: NAME", "--host", "--");
    CHECK_BAD("--host: the value is empty", "--host", "");
    CHECK_BAD("--name: the value is empty", "--name=");
    CHECK_BAD("--quiet takes no value, but got 'yes'", "--quiet=yes");
    CHECK_BAD("--no-quiet takes no value, but got ''", "--no-quiet=");
    CHECK_BAD("--mode: 'fas' is invalid: use one of fast safe slow", "--mode", "fas");
    CHECK_BAD("--mode: 'fast safe' is invalid: use one of fast safe slow", "--mode", "fast safe");
    CHECK_BAD("--mode: '' is invalid: use one of fast safe slow", "--mode", "");
    CHECK_BAD("--wait: '5' is not a time such as 300ms, 5s, 2h or 7d", "--wait", "5");
    CHECK_BAD("--wait: '9ms' is out of range: use 10ms to 2h", "--wait", "9ms");
    CHECK_BAD("--wait: '0' is out of range: use 10ms to 2h", "--wait", "0");
    CHECK_BAD("--wait: '3h' is out of range: use 10ms to 2h", "--wait", "3h");
    CHECK_BAD("--room: '1MiBs' is not a size such as 512KiB or 32MiB", "--room", "1MiBs");
    CHECK_BAD("--room: '1023' is out of range: use 1KiB to 1GiB", "--room", "1023");
    CHECK_BAD("--room: '2GiB' is out of range: use 1KiB to 1GiB", "--room", "2GiB");
    CHECK_BAD("unexpected argument 'x'", "x");
    CHECK_BAD("unexpected argument '--port'", "--", "--port");
    CHECK_BAD("unexpected argument '-'", "-");
    hf_scope_free(s);
}

/* (3) */
TEST(options, unknown_ones_are_refused_with_a_suggestion)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct settings o;
    struct options got;

    CHECK_BAD("unknown option '--prot'; did you mean --port?", "--prot=1");
    CHECK_BAD("unknown option '--por'; did you mean --port?", "--por", "1");
    CHECK_BAD("unknown option '-prot'; did you mean -port?", "-prot", "1");
    CHECK_BAD("unknown option '-inmemory'; did you mean -inMemory?", "-inmemory");
    CHECK_BAD("unknown option '--inMemory'; did you mean -inMemory?", "--inMemory");
    CHECK_BAD("unknown option '--hlep'; did you mean --help?", "--hlep");
    CHECK_BAD("unknown option '--zzzzzzzz'", "--zzzzzzzz");
    CHECK_BAD("unknown option '--no-port'; did you mean --port?", "--no-port");
    CHECK_BAD("unknown option '--pot'; did you mean --port?", "--pot",
              "1"); /* dashes do not count */
    CHECK_BAD("unknown option '--pxx'", "--pxx", "1");
    CHECK_BAD("unknown option '-z'", "-z");
    CHECK_BAD("unknown option '-qz'", "-qz");
    hf_scope_free(s);
}

TEST(options, variables_are_defaults)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct settings o;
    struct options got;

    CHECK_INT(OPTIONS_OK, parse(s, &table, good_env, 0, NULL, &o, &got));
    CHECK_INT(99, o.port);
    CHECK_INT(OPTION_ENVIRONMENT, hf__options_source(&table, &got, "port"));
    CHECK_INT(OPTIONS_OK, parse(s, &table, good_env, 1, ARGS("-p1"), &o, &got));
    CHECK_INT(1, o.port);
    CHECK_INT(OPTIONS_OK, parse(s, &table, empty_env, 0, NULL, &o, &got));
    CHECK_INT(8000, o.port);
    CHECK_INT(OPTIONS_BAD, parse(s, &table, bad_env, 0, NULL, &o, &got));
    CHECK_STR("X_PORT: 'ninety' is not a number", got.error);
    CHECK_INT(OPTIONS_HELP, parse(s, &table, bad_env, 1, ARGS("--help"), &o, &got));
    hf_scope_free(s);
}

TEST(options, operands_and_help)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct options_table with = table;
    struct settings o;
    struct options got;

    with.operands = "FILE...";
    CHECK_INT(OPTIONS_OK,
              parse(s, &with, NULL, 6, ARGS("a", "--port", "1", "-", "--", "--help"), &o, &got));
    CHECK_INT(3, got.operands_len);
    CHECK_STR("a", hf_str_from(got.operands[0]));
    CHECK_STR("-", hf_str_from(got.operands[1]));
    CHECK_STR("--help", hf_str_from(got.operands[2]));
    CHECK_INT(OPTIONS_OK, parse(s, &with, NULL, 3, ARGS("-5", "-q", "-07"), &o, &got));
    CHECK_INT(2, got.operands_len);
    CHECK_STR("-5", hf_str_from(got.operands[0]));
    CHECK(o.quiet);
    CHECK_INT(OPTIONS_BAD, PARSE("-5")); /* where there are no operands it is an unknown option */
    CHECK_INT(OPTIONS_HELP, PARSE("--help"));
    CHECK_INT(OPTIONS_HELP, PARSE("-help"));
    CHECK_INT(OPTIONS_HELP, PARSE("--wrong", "-h"));
    hf_scope_free(s);
}

TEST(options, units)
{
    uint64_t n;

    CHECK(hf__options_duration("300ms", &n) && n == 300);
    CHECK(hf__options_duration("5s", &n) && n == 5000);
    CHECK(hf__options_duration("2m", &n) && n == 120000);
    CHECK(hf__options_duration("1h", &n) && n == 3600000);
    CHECK(hf__options_duration("7d", &n) && n == 604800000);
    CHECK(hf__options_duration("0", &n) && n == 0);
    CHECK(!hf__options_duration("", &n) && !hf__options_duration("s", &n));
    CHECK(!hf__options_duration("5", &n) && !hf__options_duration("5 s", &n));
    CHECK(!hf__options_duration("1.5s", &n) && !hf__options_duration("-5s", &n));
    CHECK(!hf__options_duration("18446744073709551615s", &n));
    CHECK(hf__options_size("0", &n) && n == 0);
    CHECK(hf__options_size("512", &n) && n == 512);
    CHECK(hf__options_size("7B", &n) && n == 7);
    CHECK(hf__options_size("4kib", &n) && n == 4096);
    CHECK(hf__options_size("4KB", &n) && n == 4000);
    CHECK(hf__options_size("3GiB", &n) && n == 3ull << 30);
    CHECK(hf__options_size("2TB", &n) && n == 2000000000000);
    CHECK(!hf__options_size("4K", &n) && !hf__options_size("MiB", &n));
    CHECK(!hf__options_size("18446744073709551615KiB", &n));
}

static struct hf_str help_text(struct hf_scope *s, size_t width)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct hf_str copy;

    hf__options_help(out, &table, width, false);
    fclose(out);
    copy = hf_scope_copy(s, hf_str_of(text, len));
    free(text);
    return copy;
}

TEST(options, help_has_everything_and_fits)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t width = 60; width <= 100; width += 20) {
        struct hf_str help = help_text(s, width);
        size_t column = 0;

        for (size_t i = 0; i < help.len; i++) {
            column = help.ptr[i] == '\n' ? 0 : column + 1;
            CHECK(column <= width);
            if (help.ptr[i] == '\n' && i > 0)
                CHECK(help.ptr[i - 1] != ' ');
        }
        CHECK(strstr(help.ptr, "Usage: holdfast try [options]\n") != NULL);
        CHECK(strstr(help.ptr, "\nOptions:\n  -p, --port PORT          Port. [default: 8000]") !=
              NULL);
        CHECK(strstr(help.ptr, "X_PORT]") != NULL);
        CHECK(strstr(help.ptr, "\nMore:\n      --host NAME          Host.\n") != NULL);
        CHECK(strstr(help.ptr, "      --mode fast|safe|slow\n") != NULL);
        CHECK(strstr(help.ptr, "\n      -inMemory            As there.\n") != NULL);
        CHECK(strstr(help.ptr, "-h, --help") != NULL);
        CHECK(strstr(help.ptr, "Examples:\n  holdfast try --port 1\n      Try it.\n") != NULL);
    }
    hf_scope_free(s);
}

static void check_wrap(const char *expected, const char *text, size_t indent, size_t width)
{
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);

    hf__texts_wrap(out, text, indent, indent, width);
    fclose(out);
    CHECK_STR(expected, hf_str_of(got, len));
    free(got);
}

TEST(options, wrapping)
{
    check_wrap("aaa bbb\nccc\n", "aaa bbb ccc", 0, 7);
    check_wrap("aaa\n  bbb\n", "aaa bbb", 2, 8);
    check_wrap("aaaaaaaaaa\nb\n", "aaaaaaaaaa b", 0, 5); /* longer than a line: stays whole */
    check_wrap("a\n\nb\n", "a\n\nb", 0, 10);
    check_wrap("a b\n", "a  b", 0, 10);
    check_wrap("", "", 0, 10);
    check_wrap("aaa\n[b c]\n", "aaa [b c]", 0, 7); /* brackets are not torn */
    check_wrap("aaa [b\n", "aaa [b", 0, 7);
}

static void check_text(const char *expected, const char *text, size_t width)
{
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);

    hf__texts_print(out, text, width);
    fclose(out);
    CHECK_STR(expected, hf_str_of(got, len));
    free(got);
}

TEST(options, texts_have_paragraphs_lists_and_lines_as_they_are)
{
    check_text("aaa\nbbb\n\nccc\n", "aaa bbb\n\nccc", 5);
    check_text("List:\n  a    one\n       two\n  bbb  three\n\nEnd.\n",
               "List:\n  a\tone two\n  bbb\tthree\n\nEnd.", 12);
    check_text("  a   b \n", "  a   b ", 3); /* as it is */
    check_text("  a-term-that-is-much-too-long-for-it\n      x\n  ab  y\n",
               "  a-term-that-is-much-too-long-for-it\tx\n  ab\ty", 60);
    check_text("", "", 10);
    check_text("", "\n\n", 10);
}

static void check_escape(const char *expected, const char *text)
{
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);

    hf__manual_escape(out, hf_str_from(text));
    fclose(out);
    CHECK_STR(expected, hf_str_of(got, len));
    free(got);
}

TEST(options, nothing_in_a_text_means_anything_to_roff)
{
    check_escape("plain", "plain");
    check_escape("\\&.TH x", ".TH x");
    check_escape("\\(aqbr", "'br");
    check_escape("a\\efB \\e\\(dq", "a\\fB \\\"");
    check_escape("\\-\\-x \\(ti/\\(ga\\(ha", "--x ~/`^");
    check_escape("", "");
}

static void check_complete(const char *expected, size_t len, const char *const *words)
{
    char *got = NULL;
    size_t got_len = 0;
    FILE *out = open_memstream(&got, &got_len);

    hf__options_complete(out, &table, len, words);
    fclose(out);
    CHECK_STR(expected, hf_str_of(got, got_len));
    free(got);
}

#define CHECK_COMPLETE(expected, ...)                                                              \
    check_complete((expected), COUNT(__VA_ARGS__), ARGS(__VA_ARGS__))

TEST(options, completion)
{
    CHECK_COMPLETE("--port\n", "--p");
    CHECK_COMPLETE("--host\n--help\n", "--h");
    CHECK_COMPLETE("-inMemory\n", "-in");
    CHECK_COMPLETE("fast\nsafe\nslow\n", "--mode", "");
    CHECK_COMPLETE("safe\nslow\n", "--mode", "s");
    CHECK_COMPLETE("slow\n", "--mode=sl");
    CHECK_COMPLETE(":dir\n", "--dir", "x");
    CHECK_COMPLETE("", "--host", "");
    CHECK_COMPLETE("--port\n", "--quiet", "--po");
    CHECK_COMPLETE("", "x");
    CHECK_COMPLETE("", "--", "--p");
    check_complete("", 0, NULL);
}

TEST(options, nearest_words)
{
    CHECK_INT(0, hf__nearest_distance("serve", "serve"));
    CHECK_INT(1, hf__nearest_distance("sevre", "serve"));
    CHECK_INT(1, hf__nearest_distance("serv", "serve"));
    CHECK_INT(1, hf__nearest_distance("sserve", "serve"));
    CHECK_INT(1, hf__nearest_distance("zerve", "serve"));
    CHECK_INT(5, hf__nearest_distance("", "serve"));
    CHECK_INT(3, hf__nearest_distance("kitten", "sitting"));
    CHECK(hf__nearest_distance("0123456789012345678901234567890123456789012345678901234567890123"
                               "4",
                               "x") == SIZE_MAX);
}

/* (1): any allocation may fail, and that is said. */
TEST(options, without_memory_it_says_so)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct settings o;
        struct options got;

        if (s && PARSE("--name", "a", "--name", "b", "--host", "c") != OPTIONS_OK) {
            ALLOC_SWEEP_STOP(t);
            CHECK_STR("out of memory", got.error);
            CHECK(t->alloc_failed);
        }
        ALLOC_SWEEP_STOP(t);
        hf_scope_free(s);
    }
}
