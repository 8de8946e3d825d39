/* cli/events_test.c: names of streams, expectations, lines of events; (n) is an invariant of the
 * file under test. */
#include "cli/events/events.h"

#include "cli/events/events_line.h"
#include "test.h"

#include <stdlib.h>

struct desk {
    struct cli cli;
    char *err;
    size_t len;
};

static void desk_open(struct desk *d, struct test *t)
{
    *d = (struct desk){.cli = {.scope = hf_scope_new(test_env(t)), .out = stdout}};
    d->cli.err = open_memstream(&d->err, &d->len);
}

static void desk_close(struct desk *d)
{
    fclose(d->cli.err);
    free(d->err);
    hf_scope_free(d->cli.scope);
}

/* What was said last. */
static struct hf_str said(struct desk *d)
{
    struct hf_str text;

    fflush(d->cli.err);
    text = hf_scope_copy(d->cli.scope, hf_str_of(d->err, d->len));
    rewind(d->cli.err);
    return text;
}

/* (1) */
TEST(events, what_was_printed_can_be_typed)
{
    static const struct {
        const char *text, *domain, *id;
    } names[] = {{"order/7", "order", "7"},   {"order", "order", ""},
                 {"a%2Fb/c/d", "a/b", "c/d"}, {"100%25/%41", "100%", "%41"},
                 {"%252F", "%2F", ""},        {"\xC3\xBC/\xC3\xB6", "\xC3\xBC", "\xC3\xB6"},
                 {"a b/\n", "a b", "\n"}};
    struct hf_event_stream_key stream;
    struct desk d;

    desk_open(&d, t);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK(hf__cli_events_stream(&d.cli, "x", names[i].text, &stream));
        CHECK_STR(names[i].domain, stream.domain);
        CHECK_INT(strlen(names[i].id), stream.id.len);
        CHECK(!stream.id.len || hf_str_equal(hf_str_from(names[i].id), stream.id));
        CHECK_STR(names[i].text, hf__cli_events_stream_text(d.cli.scope, stream));
    }
    CHECK(hf__cli_events_stream(&d.cli, "x", "%61/b", &stream)); /* more than has to be */
    CHECK_STR("a", stream.domain);
    CHECK_STR("", said(&d));
    desk_close(&d);
}

TEST(events, streams_that_cannot_be)
{
    static const char *const bad[] = {"", "/7", "%", "a%2", "a%2/x", "a%xy/b", "%4"};
    struct hf_event_stream_key stream;
    struct desk d;

    desk_open(&d, t);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(!hf__cli_events_stream(&d.cli, "events read", bad[i], &stream));
        CHECK(strstr(said(&d).ptr, "holdfast events read: stream '") != NULL);
    }
    desk_close(&d);
}

TEST(events, expectations)
{
    enum hf_expect expect;
    uint64_t version;
    struct desk d;

    desk_open(&d, t);
    CHECK(hf__cli_events_expect(&d.cli, "x", (struct hf_str){0}, &expect, &version));
    CHECK_INT(HF_EXPECT_ANY, expect);
    CHECK(hf__cli_events_expect(&d.cli, "x", HF_STR("any"), &expect, &version));
    CHECK_INT(HF_EXPECT_ANY, expect);
    CHECK(hf__cli_events_expect(&d.cli, "x", HF_STR("none"), &expect, &version));
    CHECK_INT(HF_EXPECT_NONE, expect);
    CHECK(hf__cli_events_expect(&d.cli, "x", HF_STR("exists"), &expect, &version));
    CHECK_INT(HF_EXPECT_EXISTS, expect);
    CHECK(hf__cli_events_expect(&d.cli, "x", HF_STR("0"), &expect, &version));
    CHECK_INT(HF_EXPECT_VERSION, expect);
    CHECK_INT(0, version);
    CHECK(hf__cli_events_expect(&d.cli, "x", HF_STR("18446744073709551615"), &expect, &version));
    CHECK(version == UINT64_MAX);
    CHECK_STR("", said(&d));
    CHECK(!hf__cli_events_expect(&d.cli, "x", HF_STR("-1"), &expect, &version));
    CHECK(!hf__cli_events_expect(&d.cli, "x", HF_STR("18446744073709551616"), &expect, &version));
    CHECK(!hf__cli_events_expect(&d.cli, "x", HF_STR("None"), &expect, &version));
    desk_close(&d);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const struct hf_event_stream_key orders = {{"ord\"er", 6}, {"7", 1}};

TEST(events, lines_say_only_what_they_want)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str error = {0};
    struct events_line *lines;
    size_t len;

    CHECK(hf__cli_events_lines(s,
                               HF_STR("{\"type\":\"a\",\"payload\":{\"n\": 1.50}}\n"
                                      "\n \t\r\n"
                                      "  { \"id\":\"i\",\"type\":\"b\",\"stream\":\"8\"}\r\n"
                                      "{\"type\":\"c\",\"domain\":\"d\"}"),
                               orders, &lines, &len, &error));
    CHECK_INT(3, len);
    CHECK_STR("ord\"er", lines[0].stream.domain);
    CHECK_STR("7", lines[0].stream.id);
    CHECK_STR("a", lines[0].event.type);
    CHECK_STR("{\"n\": 1.50}", hf_str_of((const char *)lines[0].event.payload.ptr,
                                         lines[0].event.payload.len)); /* as it was written */
    CHECK(!lines[0].event.id.ptr && !lines[0].event.correlation.ptr);
    CHECK_INT(0, lines[0].event.time_us);
    CHECK_STR("ord\"er", lines[1].stream.domain);
    CHECK_STR("8", lines[1].stream.id);
    CHECK_STR("i", lines[1].event.id);
    CHECK_STR("d", lines[2].stream.domain);
    CHECK_INT(0, lines[2].stream.id.len); /* another domain: the id is not ours */
    hf_scope_free(s);
}

TEST(events, lines_that_are_none)
{
    static const struct {
        const char *text, *error;
    } bad[] = {{"{\"type\":\"a\"}\n{", "event 2: "},
               {"[]", "event 1: not a JSON object"},
               {"{}", "event 1: "},
               {"{\"type\":\"a\",\"type\":\"b\"}", "duplicate member"},
               {"{\"type\":\"a\",\"colour\":1}", "colour"},
               {"{\"type\":\"a\"} x", "event 1: "}};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct events_line *lines;
    size_t len;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_str error = {0};

        CHECK(!hf__cli_events_lines(s, hf_str_from(bad[i].text), orders, &lines, &len, &error));
        if (!strstr(error.ptr, bad[i].error))
            fprintf(stderr, "%s: %s\n", bad[i].text, error.ptr);
        CHECK(strstr(error.ptr, bad[i].error) != NULL);
    }
    hf_scope_free(s);
}

TEST(events, as_many_lines_as_one_append_takes)
{
    static const char line[] = "{\"type\":\"a\"}\n";
    struct hf_scope *s = hf_scope_new(test_env(t));
    size_t one = sizeof(line) - 1, max = HF_EVENTS_APPEND_MAX;
    char *text = hf_scope_alloc(s, one * (max + 1));
    struct events_line *lines;
    struct hf_str error = {0};
    size_t len;

    for (size_t i = 0; i <= max; i++)
        memcpy(text + i * one, line, one);
    CHECK(hf__cli_events_lines(s, hf_str_of(text, one * max), orders, &lines, &len, &error));
    CHECK_INT(max, len);
    CHECK(!hf__cli_events_lines(s, hf_str_of(text, one * (max + 1)), orders, &lines, &len, &error));
    CHECK(strstr(error.ptr, "10001") != NULL);
    hf_scope_free(s);
}
