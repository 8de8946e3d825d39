/*
 * cli/item/item.c: what the commands for items read besides keys, and what they consumed. See item.h.
 */
#include "cli/item/item.h"

#include <string.h>

#include "base/base.h"
#include "cli/item/plain.h"

enum hf_status hf__cli_item_read(struct command_ctx *c, bool dynamodb, const char *what,
                                 struct hf_str text, struct hf_item *item)
{
    struct hf_str error = {0};

    if (dynamodb) {
        if (hf_item_from_json(c->scope, text, item) == HF_OK)
            return HF_OK;
        return hf__command_fail(c, CLI_USAGE, "%s: %s", what, hf_scope_error_text(c->scope));
    }
    if (hf__cli_plain_read_item(c->scope, text, item, &error))
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "%s: %.*s", what, HF_FMT(error));
}

/* Those that begin with hf are ours: item_expression.c. */
static enum hf_status placeholder_check(struct command_ctx *c, const char *option,
                                        struct hf_str name)
{
    if (name.len < 3 || memcmp(name.ptr + 1, "hf", 2) != 0)
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "%s: placeholders that begin with hf are reserved: %.*s",
                            option, HF_FMT(name));
}

enum hf_status hf__cli_item_placeholders(struct command_ctx *c, struct item_settings *settings)
{
    struct hf_item_walk walk = {.next = 0}, values = {.next = 0};

    if (settings->values.ptr)
        TRY(hf__cli_item_read(c, settings->dynamodb, "--values", settings->values,
                              &settings->values_item));
    while (settings->values.ptr && hf_item_next(settings->values_item, &values))
        TRY(placeholder_check(c, "--values", values.name));
    if (!settings->names.ptr)
        return HF_OK;
    TRY(hf__cli_item_read(c, false, "--names", settings->names, &settings->names_item));
    while (hf_item_next(settings->names_item, &walk)) {
        TRY(placeholder_check(c, "--names", walk.name));
        if (hf_value_type(walk.value) != HF_TYPE_S)
            return hf__command_fail(c, CLI_USAGE,
                                    "--names: %.*s has to be a string, the name of an "
                                    "attribute",
                                    HF_FMT(walk.name));
    }
    return HF_OK;
}

enum hf_status hf__cli_item_explained(struct command_ctx *c, enum hf_status status)
{
    static const char said[] = "reserved keyword: ";
    const char *message = hf_scope_error_text(c->scope);
    const char *word = status == HF_INVALID ? strstr(message, said) : NULL;

    if (!word)
        return status;
    word += strlen(said);
    return hf__command_fail(c, CLI_USAGE, "%s; write #%s, and add --names '{\"#%s\":\"%s\"}'",
                            message, word, word, word);
}

void hf__cli_item_capacity_begin(struct command_ctx *c, const struct item_settings *settings)
{
    if (settings->capacity)
        hf_scope_count_capacity(c->scope, true);
}

void hf__cli_item_capacity_tell(struct command_ctx *c, const struct item_settings *settings,
                                struct hf_scope_capacity sum)
{
    struct cli_outcome *outcome = c->cli->outcome;

    if (settings->capacity && outcome) {
        outcome->counted = true;
        outcome->consumed = sum;
    } else if (settings->capacity)
        hf__cli_notice(c->cli, c->name, "consumed %g read units and %g write units in %llu calls",
                       sum.read_units, sum.write_units, (unsigned long long)sum.calls);
}

void hf__cli_item_capacity_report(struct command_ctx *c, const struct item_settings *settings)
{
    hf__cli_item_capacity_tell(c, settings, hf_scope_capacity(c->scope));
    hf_scope_count_capacity(c->scope, false);
}
