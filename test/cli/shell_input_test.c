/* cli/shell_input_test.c: where statements and commands end. */
#include "cli/shell/shell_input.h"
#include "test.h"

#include <string.h>

static void lines_add(struct shell_input *input, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");

        CHECK(hf__shell_input_add(input, hf_str_of(text, len)));
        text += len + (text[len] == '\n');
    }
}

/* The next unit is this one. */
static void unit_check(struct shell_input *input, enum shell_unit_kind kind, const char *text,
                       uint64_t line)
{
    struct shell_unit unit;

    CHECK(hf__shell_input_next(input, &unit));
    CHECK_INT(kind, unit.kind);
    CHECK_STR(text, unit.text);
    CHECK_INT(line, unit.line);
}

static void nothing_check(struct shell_input *input)
{
    struct shell_unit unit;

    CHECK(!hf__shell_input_next(input, &unit));
}

TEST(shell_input, units_of_every_kind)
{
    struct shell_input input = {.ptr = NULL};

    lines_add(&input, "select 1; table ls ; \\d a;b\n"
                      "-- a comment; with quotes '\n"
                      ";; /* another; */ item put t '{\"a\":\n\";\"}'\n"
                      "INSERT INTO \"a;\" VALUE {'b': 'it''s;'} -- ;\n;\n"
                      "DELETE/* ; */FROM t;\n"
                      "deleted x\n");
    unit_check(&input, SHELL_STATEMENT, "select 1", 1);
    unit_check(&input, SHELL_COMMAND, "table ls", 1);
    unit_check(&input, SHELL_META, "\\d a;b", 1);
    unit_check(&input, SHELL_COMMAND, "item put t '{\"a\":\n\";\"}'", 3);
    unit_check(&input, SHELL_STATEMENT, "INSERT INTO \"a;\" VALUE {'b': 'it''s;'} -- ;", 5);
    unit_check(&input, SHELL_STATEMENT, "DELETE/* ; */FROM t", 7);
    unit_check(&input, SHELL_COMMAND, "deleted x", 8);
    nothing_check(&input);
    CHECK_INT(0, hf__shell_input_pending(&input).len);
    hf__shell_input_free(&input);
}

/* (1) of shell_input.c: what is there after some lines does not depend on how they came. */
TEST(shell_input, goes_on_where_it_was)
{
    static const char *const lines[] = {"UPDATE t", "SET a = 'x", "; y' -- ;", "WHERE \"b;",
                                        "\" = 1"};
    struct shell_input input = {.ptr = NULL};
    struct shell_unit unit;
    bool open;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        lines_add(&input, lines[i]);
        CHECK(!hf__shell_input_whole(&input));
        nothing_check(&input);
    }
    lines_add(&input, ";");
    CHECK(hf__shell_input_whole(&input));
    unit_check(&input, SHELL_STATEMENT, "UPDATE t\nSET a = 'x\n; y' -- ;\nWHERE \"b;\n\" = 1", 1);
    lines_add(&input, "SELECT 2");
    nothing_check(&input);
    hf__shell_input_clear(&input);
    lines_add(&input, "SELECT 3");
    nothing_check(&input);
    CHECK(hf__shell_input_last(&input, &unit, &open));
    CHECK(!open);
    CHECK_STR("SELECT 3", unit.text);
    CHECK_INT(8, unit.line);
    CHECK(!hf__shell_input_last(&input, &unit, &open));
    hf__shell_input_free(&input);
}

TEST(shell_input, what_does_not_end)
{
    static const char *const texts[] = {"SELECT 'a", "SELECT \"a",  "SELECT /* a",
                                        "/* a",      "item put 'a", "item put \"a"};
    struct shell_unit unit;
    bool open;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct shell_input input = {.ptr = NULL};

        lines_add(&input, texts[i]);
        nothing_check(&input);
        CHECK(hf__shell_input_last(&input, &unit, &open));
        CHECK(open);
        hf__shell_input_free(&input);
    }
}

TEST(shell_input, quotes_of_commands)
{
    struct shell_input input = {.ptr = NULL};

    lines_add(&input, "kv set a \"x;\\\"y\"; kv set b it\\'s; kv set c '\\'; kv get d\\;e");
    unit_check(&input, SHELL_COMMAND, "kv set a \"x;\\\"y\"", 1);
    unit_check(&input, SHELL_COMMAND, "kv set b it\\'s", 1);
    unit_check(&input, SHELL_COMMAND, "kv set c '\\'", 1);
    unit_check(&input, SHELL_COMMAND, "kv get d\\;e", 1);
    nothing_check(&input);
    hf__shell_input_free(&input);
}
