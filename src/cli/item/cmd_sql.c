/*
 * cli/item/cmd_sql.c: statements of PartiQL: `holdfast sql`.
 */
#include "base/base.h"
#include "cli/item/item.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { LOOK_MAX = 4000, LOOK_GROWTH = 4 }; /* items of a page */

struct settings {
    struct item_settings item;
    uint64_t limit;
    bool all;
    bool consistent;
    bool transaction;
    const struct hf_value *parameters;
    size_t parameters_len;
};

static const struct option_spec sql_specs[] = {
    OPT_NUMBER("limit", limit, 1, UINT32_MAX, "Print at most so many items.", .letter = 'n',
               .fallback = "100"),
    OPT_FLAG("all", all, "Print all items."),
    OPT_FLAG("consistent", consistent, "See every write that was acknowledged before."),
    OPT_FLAG(
        "transaction", transaction,
        "Each operand is a statement, and all of them happen or none: up to 100 writes, or reads, "
        "of one item each."),
    ITEM_FORMAT,
    ITEM_LIST,
};

static const struct option_example sql_examples[] = {
    {"holdfast sql \"SELECT * FROM orders WHERE customer = 'ann'\"", "The orders of ann."},
    {"holdfast sql 'SELECT * FROM orders WHERE customer = ? AND day = ?' ann 2",
     "With parameters: a word is a string if it is no JSON."},
    {"holdfast sql \"UPDATE orders SET status = 'paid' WHERE customer = 'ann' AND day = 2\"",
     "Change an item."},
    {"holdfast sql --transaction \"DELETE FROM a WHERE id = 1\" \"INSERT INTO b VALUE {'id': 1}\"",
     "Both or neither."},
};

const struct options_table hf__sql_options = {
    .name = "sql",
    .operands = "STATEMENT [PARAMETER...]",
    .about = "Run a statement of PartiQL, and print the items of a SELECT.\n\n"
             "A SELECT whose WHERE names no key reads the whole table.",
    COMMAND_SPECS(sql),
};

/* Behind a string, a quoted name or a comment that begins here; `at` itself: none does. */
static const char *quoted_skip(const char *at)
{
    const char *end = at;

    if (*at == '\'' || *at == '"') {
        end = strchr(at + 1, *at);
        return end ? end + 1 : at + strlen(at);
    }
    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    return at;
}

/* How many parameters a statement has. */
static size_t parameters_count(const char *statement)
{
    size_t count = 0;

    for (const char *at = statement; *at;) {
        const char *behind = quoted_skip(at);

        count += behind == at && *at == '?';
        at = behind == at ? at + 1 : behind;
    }
    return count;
}

static enum hf_status sql_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_value *parameters;
    size_t wanted;

    if (settings->transaction)
        return HF_OK;
    settings->parameters_len = c->operands_len - 1;
    wanted = parameters_count(c->operands[0]);
    if (settings->parameters_len > wanted) /* DynamoDB would ignore them */
        return hf__command_fail(
            c, CLI_USAGE, "'%s' is too much: the statement has %zu parameter%s (?)%s",
            c->operands[wanted + 1], wanted, wanted == 1 ? "" : "s",
            wanted ? "" : "; for several statements use --transaction or 'holdfast shell'");
    parameters = hf_scope_alloc(c->scope, c->operands_len * sizeof(*parameters));
    if (!parameters)
        return HF_NOMEM;
    for (size_t i = 0; i < settings->parameters_len; i++)
        TRY(hf__cli_item_word(c, settings->item.dynamodb, "", hf__command_operand(c, i + 1),
                              &parameters[i]));
    settings->parameters = settings->parameters_len ? parameters : NULL;
    return HF_OK;
}

/* ---- columns -------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || ((unsigned char)c & 0x80);
}

/* The next word, quoted name or sign of a statement, which is taken off; empty: there is none. */
static struct hf_str token_take(struct hf_str *rest)
{
    size_t at = 0, end;
    bool quoted;
    struct hf_str token;

    while (at < rest->len && isspace((unsigned char)rest->ptr[at]))
        at++;
    quoted = at < rest->len && rest->ptr[at] == '"';
    at += quoted;
    end = at;
    while (end < rest->len && (quoted ? rest->ptr[end] != '"' : is_name_char(rest->ptr[end])))
        end++;
    if (!quoted && end == at && end < rest->len)
        end++; /* a sign */
    token = hf_str_of(rest->ptr + at, end - at);
    end += quoted && end < rest->len;
    *rest = hf_str_of(rest->ptr + end, rest->len - end);
    return token;
}

static bool token_is(struct hf_str token, const char *word)
{
    if (token.len != strlen(word))
        return false;
    for (size_t i = 0; i < token.len; i++)
        if (toupper((unsigned char)token.ptr[i]) != word[i])
            return false;
    return true;
}

/* SELECT *: the key first. Whoever may not describe the table may still read it. */
static void key_first(struct command_ctx *c, struct item_list *list, struct hf_str table)
{
    struct item_keys keys;

    if (hf__cli_item_keys(c, table, (struct hf_str){0}, &keys) == HF_OK) {
        hf__cli_item_list_column(list, keys.hash.name);
        hf__cli_item_list_column(list, keys.range.name);
    }
    hf_scope_ok(c->scope);
}

/* Which columns come first in a table for people. Other columns are in the order in which they come up. */
static void columns_order(struct command_ctx *c, struct item_list *list)
{
    struct hf_str rest = hf__command_operand(c, 0), name, behind;

    if (!hf__cli_for_people(c->cli) || !token_is(token_take(&rest), "SELECT"))
        return;
    name = token_take(&rest);
    behind = token_take(&rest);
    if (hf_str_equal(name, HF_STR("*")) && token_is(behind, "FROM")) {
        key_first(c, list, token_take(&rest));
        return;
    }
    /* names, and no paths: those have other names in the items */
    while (name.len && (hf_str_equal(behind, HF_STR(",")) || token_is(behind, "FROM"))) {
        hf__cli_item_list_column(list, name);
        if (token_is(behind, "FROM"))
            break;
        name = token_take(&rest);
        behind = token_take(&rest);
    }
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Print the items of a page, up to the limit. *left is how many more may follow, *cut whether there are
 * others. */
static enum hf_status page_print(struct item_list *list,
                                 const struct hf_execute_statement_result *result, uint64_t *left,
                                 bool *cut)
{
    size_t i = 0;

    for (; i < result->items_len && *left; i++, (*left)--)
        TRY(hf__cli_item_list_add(list, result->items[i]));
    *cut = i < result->items_len || result->next_token.ptr;
    return HF_OK;
}

/*
 * How many items the first page looks at: as many as are printed and one, which shows whether there are
 * more. 0: a whole page, which is a megabyte.
 */
static int64_t first_look(const char *statement, uint64_t limit)
{
    static const char select[] = "SELECT";

    while (isspace((unsigned char)*statement))
        statement++;
    if (strncasecmp(statement, select, strlen(select)) != 0 || limit >= LOOK_MAX)
        return 0;
    return (int64_t)limit + 1;
}

/* The next page, as WHERE has left items out of the one before. */
static int64_t next_look(int64_t look)
{
    return look * LOOK_GROWTH < LOOK_MAX ? look * LOOK_GROWTH : 0;
}

/* There are others than those that were printed. */
static void more_report(struct command_ctx *c)
{
    if (c->cli->outcome)
        c->cli->outcome->more = true;
    else if (!c->database->quiet)
        hf__cli_notice(c->cli, c->name, "there are more items: use --all or a larger --limit");
}

/*
 * Page by page, in the memory of one: what a page took is given back, and `tokens` has a copy of where the
 * next one begins. Statements run on the command's scope, so that a signal ends the one that runs.
 */
static enum hf_status pages_print(struct command_ctx *c, struct item_list *list,
                                  struct hf_scope *tokens)
{
    const struct settings *settings = c->settings;
    struct hf_execute_statement request = {.statement = hf__command_operand(c, 0),
                                           .parameters = settings->parameters,
                                           .parameters_len = settings->parameters_len,
                                           .consistent = settings->consistent ? HF_YES : HF_UNSET};
    uint64_t left = settings->all ? UINT64_MAX : settings->limit;
    struct hf_scope_mark mark = hf_scope_mark(c->scope);
    struct hf_execute_statement_result result = {0};
    bool cut = false;

    request.limit = first_look(c->operands[0], left);
    for (;;) {
        hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
        TRY(hf_execute_statement(c->scope, c->db, &request, &result));
        TRY(page_print(list, &result, &left, &cut));
        if (!result.next_token.ptr || !left)
            break;
        hf_scope_reset(tokens);
        request.next_token = hf_scope_copy(tokens, result.next_token);
        if (!request.next_token.ptr)
            return HF_NOMEM;
        request.limit = next_look(request.limit);
        hf_scope_rewind(c->scope, mark);
    }
    hf__cli_item_list_flush(list);
    if (!left && cut)
        more_report(c);
    return HF_OK;
}

/* Which of the statements failed, and why. */
static void reasons_report(struct command_ctx *c)
{
    const struct hf_error *error = hf_scope_error(c->scope);
    bool reported = false; /* the first one: error->table is that of it */

    for (size_t i = 0; i < error->reasons_len; i++) {
        const struct hf_cancel_reason *reason = &error->reasons[i];
        bool named = !reported && hf_str_equal(reason->code, HF_STR("ResourceNotFound"));

        if (hf_str_equal(reason->code, HF_STR("None")))
            continue;
        reported = true;
        hf__cli_notice(c->cli, c->name, "statement %zu: %.*s%s%.*s", i + 1,
                       HF_FMT(reason->message.ptr ? reason->message : reason->code),
                       named && error->table.ptr ? ": table " : "",
                       HF_FMT(named ? error->table : (struct hf_str){0}));
    }
}

/* All statements, or none of them. */
static enum hf_status transaction_run(struct command_ctx *c, struct item_list *list)
{
    struct hf_transact_statement *statements =
        hf_scope_alloc(c->scope, c->operands_len * sizeof(*statements));
    struct hf_execute_transaction request = {.statements = statements,
                                             .statements_len = c->operands_len};
    struct hf_execute_transaction_result result = {0};
    enum hf_status status;

    if (!statements)
        return HF_NOMEM;
    for (size_t i = 0; i < c->operands_len; i++)
        statements[i] = (struct hf_transact_statement){.statement = hf__command_operand(c, i)};
    status = hf_execute_transaction(c->scope, c->db, &request, &result);
    if (status == HF_TX_CANCELED)
        reasons_report(c);
    TRY(status);
    for (size_t i = 0; i < result.items_len; i++)
        if (result.items[i].item.ptr)
            TRY(hf__cli_item_list_add(list, result.items[i].item));
    return HF_OK;
}

static enum hf_status sql_run(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_scope *tokens = hf_scope_new(NULL);
    struct item_list *list = NULL;
    enum hf_status status = HF_NOMEM;

    if (tokens)
        status = hf__cli_item_list_begin(c, settings->item.dynamodb, NULL, &list);
    if (status == HF_OK && !settings->transaction)
        columns_order(c, list);
    hf__cli_item_capacity_begin(c, &settings->item);
    if (status == HF_OK)
        status = settings->transaction ? transaction_run(c, list) : pages_print(c, list, tokens);
    hf__cli_item_list_end(list);
    hf_scope_free(tokens);
    TRY(status);
    hf__cli_item_capacity_report(c, &settings->item);
    return HF_OK;
}

const struct command hf__sql_command = {ITEM_SETTINGS(struct settings), .min = 1,
                                        .max = COMMAND_MANY, .check = sql_check, .body = sql_run};
