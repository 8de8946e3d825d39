/*
 * cli/mcp/mcp_result.c: what a tool printed, as a result of the protocol. (n) is an invariant of mcp_call.c.
 */
#include "cli/mcp/mcp_result.h"

#include <string.h>

#include "cli/frame/process/input.h"

/* The message of the error among the lines of standard error; absent: none. *notices are the others. */
static struct hf_str error_find(struct hf_scope *s, const struct mcp_outcome *outcome,
                                struct hf_str *notices)
{
    struct hf_str text = hf_str_of(outcome->err, outcome->err_len), found = {0}, written;

    *notices = HF_STR("");
    while (hf__input_line(&text, &written)) {
        struct hf_str wrong = {0};
        const struct json_node *line = hf__cli_json_read(s, written, &wrong);
        const struct json_node *error = line ? hf__cli_json_member(line, "error") : NULL;
        const struct json_node *notice = line ? hf__cli_json_member(line, "notice") : NULL;
        const struct json_node *code = hf__cli_json_member(error, "code");
        const struct json_node *message = hf__cli_json_member(error ? error : notice, "message");

        if (error && code && message)
            found = hf_scope_format(s, "%.*s: %.*s", HF_FMT(code->text), HF_FMT(message->text));
        else if (message)
            *notices = hf_scope_format(s, "%.*s%s%.*s", HF_FMT(*notices), notices->len ? "\n" : "",
                                       HF_FMT(message->text));
    }
    return found;
}

bool hf__mcp_table_allowed(const struct mcp_settings *settings, const struct json_node *name)
{
    for (size_t i = 0; i < settings->tables.len; i++)
        if (name->kind == JSON_STRING && hf_str_equal(settings->tables.values[i], name->text))
            return true;
    return !settings->tables.len;
}

static void write_content(FILE *out, struct hf_str text)
{
    fputs("{\"type\":\"text\",\"text\":", out);
    hf__cli_json_write_text(out, text);
    fputc('}', out);
}

struct hf_str hf__mcp_result_error(struct hf_scope *s, struct hf_str message)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        fputs("{\"content\":[", text.out);
        write_content(text.out, message);
        fputs("],\"isError\":true}", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

struct hf_str hf__mcp_result_make(struct hf_scope *s, struct hf_str json, struct hf_str notices,
                                  bool structured)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        fputs("{\"content\":[", text.out);
        write_content(text.out, json);
        if (notices.len) {
            fputc(',', text.out);
            write_content(text.out, notices);
        }
        fputc(']', text.out);
        if (structured)
            fprintf(text.out, ",\"structuredContent\":%.*s", HF_FMT(json));
        fputs(",\"isError\":false}", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

/* One line: what a command prints may have line ends between the elements of a list. */
static struct hf_str json_line(struct hf_scope *s, const char *text, size_t len)
{
    char *copy = hf_scope_alloc(s, len + 1);

    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    for (size_t i = 0; copy && i < len; i++)
        copy[i] = text[i] == '\n' ? ' ' : text[i];
    return copy ? hf_str_of(copy, len) : (struct hf_str){0};
}

/* Of a list of tables only those that the server is limited to. */
static struct hf_str tables_filter(struct hf_scope *s, const struct mcp_settings *settings,
                                   struct hf_str json)
{
    struct hf_str error = {0};
    const struct json_node *root = hf__cli_json_read(s, json, &error);
    const struct json_node *list = hf__cli_json_member(root, "tables");
    struct json_text text;
    bool more = false;

    if (hf__cli_json_text_begin(&text)) {
        fputs("{\"tables\":[", text.out);
        for (const struct json_node *at = list ? list->first : NULL; at; at = at->next) {
            const struct json_node *name = hf__cli_json_member(at, "name");

            if (!name || !hf__mcp_table_allowed(settings, name))
                continue;
            fprintf(text.out, "%s%.*s", more ? "," : "", HF_FMT(at->raw));
            more = true;
        }
        fputs("]}", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

/* An object whose list has more than `len` elements: the first of them, and "more". (2) */
static struct hf_str list_cut(struct hf_scope *s, struct hf_str json, uint64_t len)
{
    struct hf_str error = {0};
    const struct json_node *root = hf__cli_json_read(s, json, &error);
    const struct json_node *list = root && root->kind == JSON_OBJECT ? root->first : NULL;
    struct json_text text;
    size_t count = 0;

    assert(len > 0);
    if (!list || list->kind != JSON_ARRAY || list->len <= len)
        return json;
    if (hf__cli_json_text_begin(&text)) {
        fputc('{', text.out);
        hf__cli_json_write_text(text.out, list->name);
        fputs(":[", text.out);
        for (const struct json_node *at = list->first; at && count < len; at = at->next)
            fprintf(text.out, "%s%.*s", count++ ? "," : "", HF_FMT(at->raw));
        fputc(']', text.out);
        for (const struct json_node *at = list->next; at; at = at->next) {
            fputc(',', text.out);
            hf__cli_json_write_text(text.out, at->name);
            fprintf(text.out, ":%.*s", HF_FMT(at->raw));
        }
        fputs(",\"more\":true}", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

struct hf_str hf__mcp_outcome_json(struct hf_scope *s, const struct mcp_outcome *outcome,
                                   struct hf_str *error)
{
    struct hf_str notices, failed = error_find(s, outcome, &notices);

    if (!failed.ptr)
        return json_line(s, outcome->out, outcome->out_len);
    *error = failed;
    return (struct hf_str){0};
}

struct hf_str hf__mcp_outcome_result(struct hf_scope *s, const struct mcp_settings *settings,
                                     const struct mcp_tool *tool, const struct mcp_outcome *outcome,
                                     uint64_t cut_at, bool structured)
{
    struct hf_str notices, json, error = error_find(s, outcome, &notices);

    if (error.ptr)
        return hf__mcp_result_error(s, error);
    json = json_line(s, outcome->out, outcome->out_len);
    if (json.ptr && cut_at) {
        struct hf_str cut = list_cut(s, json, cut_at);

        if (cut.ptr != json.ptr)
            notices = HF_STR(""); /* that there are more */
        json = cut;
    }
    if (!json.ptr)
        return json;
    if (json.len > settings->max_bytes)
        return hf__mcp_result_error(
            s, hf_scope_format(s,
                               "the result has %zu bytes, and at most %llu are returned: ask for "
                               "fewer items (limit) or fewer attributes",
                               json.len, (unsigned long long)settings->max_bytes));
    if (!json.len && outcome->ends != CLI_OK)
        return hf__mcp_result_error(s, hf_scope_format(s, "the command failed with code %d",
                                                       outcome->ends));
    if (!json.len)
        json = HF_STR("{\"done\":true}");
    if (settings->tables.len && strcmp(tool->command, "table ls") == 0)
        json = tables_filter(s, settings, json);
    if (!json.ptr)
        return json;
    return hf__mcp_result_make(s, json, notices, structured && json.ptr[0] == '{');
}
