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
    const struct hf_value *parameters;
    size_t parameters_len;
};

#define FIELD(member) .offset = offsetof(struct settings, member)

static const struct option_spec sql_specs[] = {
    {.kind = OPTION_NUMBER,
     .letter = 'n',
     .name = "limit",
     .value = "N",
     .min = 1,
     .max = UINT32_MAX,
     .fallback = "100",
     .text = "Print at most so many items.",
     FIELD(limit)},
    {.kind = OPTION_FLAG, .name = "all", .text = "Print all items.", FIELD(all)},
    {.kind = OPTION_FLAG,
     .name = "consistent",
     .text = "See every write that was acknowledged before.",
     FIELD(consistent)},
    ITEM_FORMAT,
    ITEM_LIST,
};

static const struct option_example sql_examples[] = {
    {"holdfast sql \"SELECT * FROM orders WHERE customer = 'ann'\"", "The orders of ann."},
    {"holdfast sql 'SELECT * FROM orders WHERE customer = ? AND day = ?' ann 2",
     "With parameters: a word is a string if it is no JSON."},
    {"holdfast sql \"UPDATE orders SET status = 'paid' WHERE customer = 'ann' AND day = 2\"",
     "Change an item."},
};

const struct options_table hf__sql_options = {
    .name = "sql",
    .operands = "STATEMENT [PARAMETER...]",
    .about = "Run a statement of PartiQL, and print the items of a SELECT.\n\n"
             "A SELECT whose WHERE names no key reads the whole table.",
    COMMAND_SPECS(sql),
};

static enum hf_status sql_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_value *parameters;

    settings->parameters_len = c->operands_len - 1;
    parameters = hf_scope_alloc(c->scope, c->operands_len * sizeof(*parameters));
    if (!parameters)
        return HF_NOMEM;
    for (size_t i = 0; i < settings->parameters_len; i++)
        TRY(hf__cli_item_word(c, settings->item.dynamodb, hf__command_operand(c, i + 1),
                              &parameters[i]));
    settings->parameters = settings->parameters_len ? parameters : NULL;
    return HF_OK;
}

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

static void capacity_add(struct hf_scope_capacity *sum, struct hf_scope_capacity more)
{
    sum->read_units += more.read_units;
    sum->write_units += more.write_units;
    sum->calls += more.calls;
}

static enum hf_status pages_print(struct command_ctx *c, struct item_list *list,
                                  struct hf_scope_capacity *sum)
{
    const struct settings *settings = c->settings;
    struct hf_execute_statement request = {.statement = hf__command_operand(c, 0),
                                           .parameters = settings->parameters,
                                           .parameters_len = settings->parameters_len,
                                           .consistent = settings->consistent ? HF_YES : HF_UNSET};
    uint64_t left = settings->all ? UINT64_MAX : settings->limit;
    struct hf_scope *s = hf_scope_new(NULL), *last = hf_scope_new(NULL), *other;
    struct hf_execute_statement_result result = {0};
    enum hf_status status = s && last ? HF_OK : HF_NOMEM;
    bool cut = false;

    request.limit = first_look(c->operands[0], left);
    while (status == HF_OK) {
        hf_scope_timeout_ms(s, (uint32_t)c->database->timeout_ms);
        hf_scope_count_capacity(s, settings->item.capacity);
        status = hf_execute_statement(s, c->db, &request, &result);
        capacity_add(sum, hf_scope_capacity(s));
        if (status == HF_OK)
            status = page_print(list, &result, &left, &cut);
        if (status != HF_OK || !result.next_token.ptr || !left)
            break;
        /* In `s`, which stays until the next page is there. */
        request.next_token = result.next_token;
        request.limit = next_look(request.limit);
        other = last;
        last = s;
        s = other;
        hf_scope_reset(s);
    }
    hf__cli_item_list_flush(list);
    if (status == HF_OK && !left && cut && !c->database->quiet)
        hf__cli_notice(c->cli, c->name, "there are more items: use --all or a larger --limit");
    if (status != HF_OK && s)
        status = hf_scope_fail_from(c->scope, status, s);
    hf_scope_free(s);
    hf_scope_free(last);
    return status;
}

static enum hf_status sql_run(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_scope_capacity sum = {.calls = 0};
    struct item_list *list;
    enum hf_status status;

    TRY(hf__cli_item_list_begin(c, settings->item.dynamodb, NULL, &list));
    status = pages_print(c, list, &sum);
    hf__cli_item_list_end(list);
    TRY(status);
    hf__cli_item_capacity_tell(c, &settings->item, sum);
    return HF_OK;
}

const struct command hf__sql_command = {ITEM_SETTINGS(struct settings), .min = 1,
                                        .max = COMMAND_MANY, .check = sql_check, .body = sql_run};
