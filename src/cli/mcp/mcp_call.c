/*
 * cli/mcp/mcp_call.c: running a tool. See mcp.h.
 *
 * Arguments become the words of a command line: options as --name=value, then "--", then operands. So no
 * argument can be taken for an option. The command runs in this process with streams of its own.
 *
 * What always holds:
 *
 *  (1) Only the database and the tables of the settings are used, and what is not writable is not written.
 *  (2) A result has --max-bytes at most, and lists have --max-items elements at most. A list that has
 *      more says so: a command without "next" is asked for one element more than is returned.
 */
#include "base/base.h"
#include "cli/frame/process/input.h"
#include "cli/mcp/mcp_result.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 1100, VALUES_MAX = 1000 }; /* of a command line; of one argument */

struct mcp_words {
    struct hf_scope *s;
    const char *words[WORDS_MAX];
    size_t len;
    const char *operands[WORDS_MAX];
    size_t operands_len;
    uint64_t cut_at;     /* how many elements of a list are returned, of one more; 0: all */
    struct hf_str error; /* absent: none */
};

/* ---- arguments ------------------------------------------------------------------------------ */

static bool words_fail(struct mcp_words *w, const char *name, const char *what)
{
    assert(name && what);
    w->error = hf_scope_format(w->s, "argument '%s': %s", name, what);
    if (!w->error.ptr)
        w->error = HF_STR("out of memory");
    return false;
}

/* One word: behind an option, or an operand. */
static bool word_add(struct mcp_words *w, const struct mcp_parameter *parameter, struct hf_str text)
{
    struct hf_str word;

    assert(w->len + w->operands_len <= WORDS_MAX);
    if (memchr(text.ptr, '\0', text.len))
        return words_fail(w, parameter->name, "contains a NUL character");
    if (w->len + w->operands_len + 16 > WORDS_MAX)
        return words_fail(w, parameter->name, "too many values");
    word = parameter->option ? hf_scope_format(w->s, "%s=%.*s", parameter->option, HF_FMT(text))
                             : hf_scope_copy(w->s, text);
    if (!word.ptr)
        return words_fail(w, parameter->name, "out of memory");
    assert(w->len + w->operands_len < WORDS_MAX);
    if (parameter->option)
        w->words[w->len++] = word.ptr;
    else
        w->operands[w->operands_len++] = word.ptr;
    return true;
}

static bool is_integer(const struct json_node *value)
{
    size_t first = value->text.len && value->text.ptr[0] == '-' ? 1 : 0;

    if (value->kind != JSON_NUMBER || value->text.len == first)
        return false;
    for (size_t i = first; i < value->text.len; i++)
        if (value->text.ptr[i] < '0' || value->text.ptr[i] > '9')
            return false;
    return true;
}

static bool list_add(struct mcp_words *w, const struct mcp_parameter *parameter,
                     const struct json_node *value)
{
    assert(parameter->kind == MCP_KEY || parameter->kind == MCP_TEXTS ||
           parameter->kind == MCP_VALUES);
    if (value->kind != JSON_ARRAY)
        return words_fail(w, parameter->name, "expected an array");
    if (value->len > VALUES_MAX)
        return words_fail(w, parameter->name, "more than 1000 values");
    if (parameter->kind == MCP_KEY && (value->len == 0 || value->len > 2))
        return words_fail(w, parameter->name, "a key has one part or two");
    for (const struct json_node *at = value->first; at; at = at->next) {
        bool fits = parameter->kind == MCP_VALUES || at->kind == JSON_STRING ||
                    (parameter->kind == MCP_KEY && at->kind == JSON_NUMBER);

        if (!fits)
            return words_fail(w, parameter->name,
                              parameter->kind == MCP_KEY ? "expected strings or numbers"
                                                         : "expected strings");
        if (!word_add(w, parameter, parameter->kind == MCP_VALUES ? at->raw : at->text))
            return false;
    }
    return true;
}

static bool is_among(struct hf_str text, const char *words)
{
    assert(words[0]);
    while (*words) {
        size_t len = strcspn(words, " ");

        if (hf_str_equal(text, hf_str_of(words, len)))
            return true;
        words += len + (words[len] == ' ');
    }
    return false;
}

static bool argument_add(struct mcp_words *w, const struct mcp_parameter *parameter,
                         const struct json_node *value)
{
    switch (parameter->kind) {
    case MCP_TEXT:
        if (value->kind != JSON_STRING)
            return words_fail(w, parameter->name, "expected a string");
        if (parameter->words && !is_among(value->text, parameter->words))
            return words_fail(w, parameter->name,
                              hf_scope_format(w->s, "expected one of: %s", parameter->words).ptr);
        return word_add(w, parameter, value->text);
    case MCP_NUMBER:
        if (!is_integer(value))
            return words_fail(w, parameter->name, "expected an integer");
        return word_add(w, parameter, value->text);
    case MCP_FLAG:
        if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
            return words_fail(w, parameter->name, "expected true or false");
        assert(parameter->option && w->len < WORDS_MAX);
        if (value->kind == JSON_TRUE)
            w->words[w->len++] = parameter->option;
        return true;
    case MCP_OBJECT:
        if (value->kind != JSON_OBJECT)
            return words_fail(w, parameter->name, "expected an object");
        return word_add(w, parameter, value->raw);
    case MCP_ANY:
        return word_add(w, parameter, value->raw);
    case MCP_KEY:
    case MCP_TEXTS:
    case MCP_VALUES:
        break;
    case MCP_KEYS:
        assert(false && "such a tool is run for each key");
        return false;
    }
    return list_add(w, parameter, value);
}

static const struct json_node *argument_of(const struct json_node *arguments, const char *name)
{
    const struct json_node *value = hf__cli_json_member(arguments, name);

    return value && value->kind != JSON_NULL ? value : NULL;
}

/* ---- statements ----------------------------------------------------------------------------- */

static struct hf_str text_from(struct hf_str text, size_t at)
{
    assert(at <= text.len);
    return hf_str_of(text.ptr + at, text.len - at);
}

/* Does the text begin with that word of letters, in either case? */
static bool text_begins(struct hf_str text, struct hf_str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (i == text.len || (text.ptr[i] & ~0x20) != word.ptr[i])
            return false;
    return true;
}

struct hf_str hf__mcp_statement(struct hf_str text, bool *reads)
{
    static const char blanks[] = {' ', '\t', '\r', '\n', '\f', '\v'};
    const struct hf_str word = HF_STR("SELECT");

    *reads = false;
    while (text.len) {
        const char *end;

        if (memchr(blanks, text.ptr[0], sizeof(blanks))) {
            text = text_from(text, 1);
        } else if (text.len > 1 && memcmp(text.ptr, "--", 2) == 0) {
            end = memchr(text.ptr, '\n', text.len);
            text = text_from(text, end ? (size_t)(end - text.ptr) + 1 : text.len);
        } else if (text.len > 1 && memcmp(text.ptr, "/*", 2) == 0) {
            end = memmem(text.ptr + 2, text.len - 2, "*/", 2);
            text = text_from(text, end ? (size_t)(end - text.ptr) + 2 : text.len);
        } else
            break;
    }
    if (text.len > word.len && text_begins(text, word)) {
        char next = text.ptr[word.len];

        *reads = !(next >= 'a' && next <= 'z') && !(next >= 'A' && next <= 'Z') &&
                 !(next >= '0' && next <= '9') && next != '_' && next != '$';
    }
    return text;
}

/* (1) */
static bool statement_add(struct mcp_words *w, const struct mcp_settings *settings,
                          const struct mcp_parameter *parameter, const struct json_node *value)
{
    struct hf_str text;
    bool reads;

    if (value->kind != JSON_STRING)
        return words_fail(w, parameter->name, "expected a string");
    text = hf__mcp_statement(value->text, &reads);
    if (!reads && !settings->write)
        return words_fail(w, parameter->name,
                          "only SELECT is allowed: this server was started without --write");
    return word_add(w, parameter, text);
}

/* ---- the command line ----------------------------------------------------------------------- */

static void option_add(struct mcp_words *w, const char *name, struct hf_str value)
{
    struct hf_str word;

    if (!value.ptr)
        return;
    word = hf_scope_format(w->s, "%s=%.*s", name, HF_FMT(value));
    if (!word.ptr)
        w->error = HF_STR("out of memory");
    else
        w->words[w->len++] = word.ptr;
}

/* The database, as the server was told; before the arguments, which have no such options. */
static void database_add(struct mcp_words *w, const struct database_settings *database)
{
    w->words[w->len++] = "--json";
    option_add(w, "--db", database->url);
    option_add(w, "--prefix", database->prefix);
    option_add(w, "--profile", database->profile);
    option_add(w, "--region", database->region);
    option_add(w, "--timeout",
               hf_scope_format(w->s, "%llums", (unsigned long long)database->timeout_ms));
}

/* The blob store, for a command that has the option. */
static void blobs_add(struct mcp_words *w, const struct cli *cli,
                      const struct mcp_settings *settings, const char *command)
{
    const struct options_table *table = NULL;

    for (size_t i = 0; i < cli->commands_len; i++)
        if (strcmp(cli->commands[i].name, command) == 0)
            table = cli->commands[i].options;
    for (size_t i = 0; table && i < table->len; i++)
        if (table->specs[i].name && strcmp(table->specs[i].name, "blobs") == 0)
            option_add(w, "--blobs", settings->blobs);
}

/* (2) */
static bool limit_add(struct mcp_words *w, const struct mcp_settings *settings,
                      const struct mcp_tool *tool, const struct json_node *value)
{
    uint64_t limit = settings->max_items;

    if (value) {
        if (!is_integer(value) || !hf__options_number(value->text.ptr, &limit) || limit == 0)
            return words_fail(w, "limit", "expected an integer from 1 on");
        if (limit > settings->max_items)
            limit = settings->max_items;
    }
    if (tool->cut)
        w->cut_at = limit++;
    option_add(w, "--limit", hf_scope_format(w->s, "%llu", (unsigned long long)limit));
    return true;
}

/* (1) */
static bool table_check(struct mcp_words *w, const struct mcp_settings *settings,
                        const struct json_node *value)
{
    return hf__mcp_table_allowed(settings, value) ||
           words_fail(w, "table", "this server is limited to other tables (--table)");
}

static bool arguments_known(struct mcp_words *w, const struct mcp_tool *tool,
                            const struct json_node *arguments)
{
    for (const struct json_node *at = arguments ? arguments->first : NULL; at; at = at->next) {
        bool known = tool->limited && hf_str_equal(at->name, HF_STR("limit"));

        for (size_t i = 0; i < tool->len; i++)
            known |= hf_str_equal(at->name, hf_str_from(tool->parameters[i].name));
        if (!known) {
            w->error = hf_scope_format(w->s, "unknown argument '%.*s'", HF_FMT(at->name));
            return false;
        }
    }
    return true;
}

static bool words_make(struct mcp_words *w, const struct cli *cli,
                       const struct mcp_settings *settings, const struct mcp_tool *tool,
                       const struct json_node *arguments)
{
    const struct json_node *counts = argument_of(arguments, "count");
    const char *left_out = NULL; /* an operand */

    for (const char *word = tool->command; *word;) { /* "item get" */
        size_t len = strcspn(word, " ");

        w->words[w->len++] = hf_scope_copy(w->s, hf_str_of(word, len)).ptr;
        word += len + (word[len] == ' ');
    }
    database_add(w, &settings->database);
    if (tool->guarded && !settings->write)
        w->words[w->len++] = "--read-only";
    blobs_add(w, cli, settings, tool->command);
    if (!arguments_known(w, tool, arguments))
        return false;
    for (size_t i = 0; i < tool->len; i++) {
        const struct mcp_parameter *parameter = &tool->parameters[i];
        const struct json_node *value = argument_of(arguments, parameter->name);

        if (!value && parameter->required)
            return words_fail(w, parameter->name, "missing");
        if (!value && !parameter->option)
            left_out = parameter->name;
        if (!value)
            continue;
        if (left_out && !parameter->option) /* it would be taken for the other */
            return words_fail(w, parameter->name,
                              hf_scope_format(w->s, "needs argument '%s'", left_out).ptr);
        if (tool->by_table && strcmp(parameter->name, "table") == 0 &&
            !table_check(w, settings, value))
            return false;
        if (!(tool->statement && i == 0 ? statement_add(w, settings, parameter, value)
                                        : argument_add(w, parameter, value)))
            return false;
    }
    if (tool->limited && !(counts && counts->kind == JSON_TRUE) &&
        !limit_add(w, settings, tool, argument_of(arguments, "limit")))
        return false;
    w->words[w->len++] = "--";
    for (size_t i = 0; i < w->operands_len; i++)
        w->words[w->len++] = w->operands[i];
    return !w->error.ptr;
}

/* ---- running -------------------------------------------------------------------------------- */

/* False: no memory. */
static bool command_call(const struct cli *outer, struct mcp_words *w, struct mcp_outcome *outcome)
{
    struct cli cli = *outer;

    cli.scope = w->s;
    cli.out = open_memstream(&outcome->out, &outcome->out_len);
    cli.err = open_memstream(&outcome->err, &outcome->err_len);
    cli.terminal = cli.styled = cli.table_named = cli.ends_by_signal = false;
    cli.columns = 0;
    cli.guard = NULL;
    cli.json = true;
    if (cli.out && cli.err)
        outcome->ends = hf__cli_run(&cli, w->len, w->words);
    if (cli.out)
        (void)fclose(cli.out);
    if (cli.err)
        (void)fclose(cli.err);
    return cli.out && cli.err;
}

/* Run a tool for its JSON, which is one line. Absent: *error. */
static struct hf_str json_call(const struct cli *cli, const struct mcp_settings *settings,
                               const char *name, const struct json_node *arguments,
                               struct hf_scope *s, struct hf_str *error)
{
    const struct mcp_tool *tool = hf__mcp_tool_find(hf_str_from(name));
    struct mcp_words *w = hf_scope_alloc(s, sizeof(*w));
    struct mcp_outcome outcome = {.ends = CLI_FAILED};
    struct hf_str json = {0};

    *error = HF_STR("out of memory");
    if (!w)
        return json;
    memset(w, 0, sizeof(*w));
    w->s = s;
    if (!words_make(w, cli, settings, tool, arguments)) {
        *error = w->error;
        return json;
    }
    if (command_call(cli, w, &outcome))
        json = hf__mcp_outcome_json(s, &outcome, error);
    free(outcome.out);
    free(outcome.err);
    return json;
}

/* ---- several keys --------------------------------------------------------------------------- */

/* The arguments with one `key` in place of `keys`; NULL: no memory. */
static const struct json_node *arguments_for(struct hf_scope *s, const struct json_node *arguments,
                                             const struct json_node *key)
{
    struct json_node *made = hf_scope_alloc(s, sizeof(*made) * (arguments->len + 1));
    struct json_node *members = made + 1;
    size_t len = 0;

    if (!made)
        return NULL;
    for (const struct json_node *at = arguments->first; at; at = at->next) {
        members[len] = hf_str_equal(at->name, HF_STR("keys")) ? *key : *at;
        if (hf_str_equal(at->name, HF_STR("keys")))
            members[len].name = HF_STR("key");
        members[len].next = NULL;
        if (len)
            members[len - 1].next = &members[len];
        len++;
    }
    *made = (struct json_node){.kind = JSON_OBJECT, .first = members, .len = len};
    return made;
}

/* "null" when there is no such item; absent: *error. */
static struct hf_str item_get(const struct cli *cli, const struct mcp_settings *settings,
                              const struct json_node *arguments, const struct json_node *key,
                              struct hf_scope *s, struct hf_str *error)
{
    const struct json_node *one = arguments_for(s, arguments, key);
    struct hf_str json = {0}, missing = HF_STR("no item with that key");

    *error = HF_STR("out of memory");
    if (one)
        json = json_call(cli, settings, "get_item", one, s, error);
    if (!json.ptr && memmem(error->ptr, error->len, missing.ptr, missing.len))
        return HF_STR("null");
    return json;
}

static struct hf_str items_get(const struct cli *cli, const struct mcp_settings *settings,
                               const struct mcp_tool *tool, const struct json_node *arguments,
                               bool structured, struct hf_scope *s)
{
    const struct json_node *keys = arguments ? argument_of(arguments, "keys") : NULL;
    struct hf_str items = HF_STR(""), error = {0};
    struct mcp_words w = {.s = s};

    if (!arguments_known(&w, tool, arguments))
        return hf__mcp_result_error(s, w.error);
    if (!keys || keys->kind != JSON_ARRAY || !keys->len || keys->len > MCP_KEYS_MAX)
        return hf__mcp_result_error(s,
                                    HF_STR("argument 'keys': expected an array of 1 to 25 keys"));
    for (const struct json_node *key = keys->first; key; key = key->next) {
        struct hf_str item = item_get(cli, settings, arguments, key, s, &error);

        if (!item.ptr)
            return hf__mcp_result_error(s, error);
        items = hf_scope_format(s, "%.*s%s%.*s", HF_FMT(items), items.len ? "," : "", HF_FMT(item));
        if (!items.ptr)
            return items;
        if (items.len > settings->max_bytes)
            return hf__mcp_result_error(
                s, HF_STR("the items are too large together: ask for fewer keys, or "
                          "fewer attributes"));
    }
    items = hf_scope_format(s, "{\"items\":[%.*s]}", HF_FMT(items));
    return items.ptr ? hf__mcp_result_make(s, items, HF_STR(""), structured) : items;
}

struct hf_str hf__mcp_call(const struct cli *cli, const struct mcp_settings *settings,
                           const struct mcp_tool *tool, const struct json_node *arguments,
                           bool structured, struct hf_scope *s)
{
    struct mcp_words *w = hf_scope_alloc(s, sizeof(*w));
    struct mcp_outcome outcome = {.ends = CLI_FAILED};
    struct hf_str result = {0};

    assert(hf__mcp_tool_offered(settings, tool));
    if (tool->each)
        return items_get(cli, settings, tool, arguments, structured, s);
    if (!w)
        return result;
    memset(w, 0, sizeof(*w));
    w->s = s;
    if (!words_make(w, cli, settings, tool, arguments))
        return hf__mcp_result_error(s, w->error);
    if (command_call(cli, w, &outcome))
        result = hf__mcp_outcome_result(s, settings, tool, &outcome, w->cut_at, structured);
    free(outcome.out);
    free(outcome.err);
    return result;
}

/* ---- resources ------------------------------------------------------------------------------ */

#define RESOURCE_TABLES "holdfast://tables/"

struct hf_str hf__mcp_resources_list(const struct cli *cli, const struct mcp_settings *settings,
                                     struct hf_scope *s, struct hf_str *error)
{
    struct hf_str json = json_call(cli, settings, "list_tables", NULL, s, error), wrong = {0};
    const struct json_node *root = json.ptr ? hf__cli_json_read(s, json, &wrong) : NULL;
    const struct json_node *list = root ? hf__cli_json_member(root, "tables") : NULL;
    struct json_text text;
    bool more = false;

    if (!list)
        return (struct hf_str){0};
    if (hf__cli_json_text_begin(&text)) {
        fputs("{\"resources\":[", text.out);
        for (const struct json_node *at = list->first; at; at = at->next) {
            const struct json_node *name = hf__cli_json_member(at, "name");

            if (!name || !hf__mcp_table_allowed(settings, name))
                continue;
            /* names of tables have no characters that URIs would have to escape */
            fprintf(text.out, "%s{\"uri\":\"" RESOURCE_TABLES "%.*s\",\"name\":%.*s,",
                    more ? "," : "", HF_FMT(name->text), HF_FMT(name->raw));
            fputs("\"description\":\"Keys, indexes and size of the table.\","
                  "\"mimeType\":\"application/json\"}",
                  text.out);
            more = true;
        }
        fputs("]}", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

struct hf_str hf__mcp_resource_read(const struct cli *cli, const struct mcp_settings *settings,
                                    struct hf_str uri, struct hf_scope *s, struct hf_str *error)
{
    size_t len = sizeof(RESOURCE_TABLES) - 1;
    struct json_node name = {.kind = JSON_STRING, .name = HF_STR("table")};
    const struct json_node arguments = {.kind = JSON_OBJECT, .first = &name, .len = 1};
    struct json_text text;
    struct hf_str json;

    if (uri.len <= len || memcmp(uri.ptr, RESOURCE_TABLES, len) != 0) {
        *error = hf_scope_format(s, "Resource not found: %.*s", HF_FMT(uri));
        return (struct hf_str){0};
    }
    name.text = text_from(uri, len);
    json = json_call(cli, settings, "describe_table", &arguments, s, error);
    if (!json.ptr)
        return json;
    if (hf__cli_json_text_begin(&text)) {
        fputs("{\"contents\":[{\"uri\":", text.out);
        hf__cli_json_write_text(text.out, uri);
        fputs(",\"mimeType\":\"application/json\",\"text\":", text.out);
        hf__cli_json_write_text(text.out, json);
        fputs("}]}", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}
