/*
 * cli/item/cmd_query.c: many items: `holdfast query` and `holdfast scan`.
 *
 * A list ends after --limit items, and says then how to go on: with --start, which takes the key that
 * was printed. With --all it goes on to the end.
 */
#include "base/base.h"
#include "cli/item/item.h"
#include "cli/item/plain.h"

#include <assert.h>
#include <holdfast/pages.h>
#include <string.h>

struct settings {
    struct item_settings item;
    struct hf_str index;
    struct hf_str where;
    struct hf_str filter;
    struct hf_str attributes;
    struct hf_str start;
    uint64_t limit;
    bool all;
    bool count;
    bool reverse;
    bool consistent;
    bool scan; /* it is `scan`, not `query` */
    struct hf_item start_item;
    struct hf_str projection;
};

#define LIMIT_DEFAULT "100"

#define READ_SPECS                                                                                 \
    OPT_TEXT("index", "NAME", index, "Read this index of the table.", .letter = 'i'),              \
        OPT_TEXT("filter", "EXPRESSION", filter,                                                   \
                 "Print only items for which this holds. All items are read and paid for."),       \
        ITEM_PLACEHOLDERS,                                                                         \
        OPT_TEXT("attributes", "LIST", attributes,                                                 \
                 "Only these attributes: status,address.city,lines[0].", .letter = 'a'),           \
        OPT_NUMBER("limit", limit, 1, UINT32_MAX, "Print at most so many items.", .letter = 'n',   \
                   .fallback = LIMIT_DEFAULT),                                                     \
        OPT_FLAG("all", all, "Print all items."),                                                  \
        OPT_TEXT("start", "KEY", start,                                                            \
                 "Start after this key, which the list before printed at its end."),               \
        OPT_FLAG("count", count, "Print how many items there are, not the items."),                \
        OPT_FLAG("consistent", consistent,                                                         \
                 "See every write that was acknowledged before; not with a global index.")

static const struct option_spec query_specs[] = {
    OPT_TEXT("where", "EXPRESSION", where,
             "A key condition expression, in place of keys as operands.", .letter = 'w'),
    OPT_FLAG("reverse", reverse, "From the largest range key down.", .letter = 'r'),
    READ_SPECS,
    ITEM_FORMAT,
    ITEM_LIST,
};

static const struct option_example query_examples[] = {
    {"holdfast query orders ann", "All orders of ann, by their range key."},
    {"holdfast query orders ann '>=20' --reverse -n 5", "The last five from 20 on."},
    {"holdfast query orders ann 10..19 --filter 'price > :p' --values '{\":p\":100}'",
     "Those of ten days that cost more than 100."},
    {"holdfast query orders open --index by_status --all", "By an index."},
    {"holdfast query logs web '=2026*'", "The range key that is 2026*, not those that begin so."},
};

const struct options_table hf__query_options = {
    .name = "query",
    .operands = "TABLE [KEY [RANGE]]",
    .about = "Print the items with one hash key, in the order of their range keys.\n\n"
             "RANGE is a value, or one of: =V  <V  <=V  >V  >=V  FROM..TO  PREFIX*. Behind a sign "
             "V is taken as it is: =a..b is the string a..b, and ==x the string =x.",
    COMMAND_SPECS(query),
};

static const struct option_spec scan_specs[] = {
    READ_SPECS,
    ITEM_FORMAT,
    ITEM_LIST,
};

static const struct option_example scan_examples[] = {
    {"holdfast scan orders -n 10", "Ten items, as they come."},
    {"holdfast scan orders --count", "How many there are; every item is read for that."},
    {"holdfast scan users --all --dynamodb > users.jsonl", "A whole table."},
};

const struct options_table hf__scan_options = {
    .name = "scan",
    .operands = "TABLE",
    .about = "Print the items of a table or of an index. Their order has no meaning.",
    COMMAND_SPECS(scan),
};

/* ---- the request ---------------------------------------------------------------------------- */

static enum hf_status read_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->scan = c->command == &hf__scan_command;
    if (settings->count && (settings->attributes.ptr || settings->start.ptr))
        return hf__command_fail(c, CLI_USAGE, "--count goes without --attributes and --start");
    if (!settings->scan && !settings->where.ptr && c->operands_len < 2)
        return hf__command_fail(c, CLI_USAGE,
                                "give the hash key, or --where; to read all items "
                                "use 'holdfast scan'");
    if (settings->where.ptr && c->operands_len > 1)
        return hf__command_fail(c, CLI_USAGE,
                                "--where stands in place of the keys: give one or "
                                "the other");
    TRY(hf__cli_item_placeholders(c, &settings->item));
    if (settings->start.ptr)
        TRY(hf__cli_item_read(c, settings->item.dynamodb, "--start", settings->start,
                              &settings->start_item));
    if (settings->attributes.ptr) {
        TRY(hf__cli_item_paths(c, &settings->item, settings->attributes, &settings->projection));
    }
    return HF_OK;
}

/* The operator that RANGE begins with, which is taken off; NULL: there is none. */
static const char *operator_take(struct hf_str *word)
{
    static const char *const signs[] = {"<=", ">=", "<", ">", "="};

    for (size_t i = 0; i < COMMAND_LEN(signs); i++) {
        size_t len = strlen(signs[i]);

        if (word->len >= len && memcmp(word->ptr, signs[i], len) == 0) {
            *word = hf_str_of(word->ptr + len, word->len - len);
            return signs[i];
        }
    }
    return NULL;
}

static struct hf_str value_add(struct command_ctx *c, const struct key_part *part,
                               struct hf_str word, enum hf_status *status)
{
    struct settings *settings = c->settings;
    struct hf_value value = {0};
    struct hf_str holder = {0};

    if (*status == HF_OK)
        *status = hf__cli_item_key_value(c, part, word, &value);
    if (*status == HF_OK) {
        holder = hf__cli_item_value(c, &settings->item, value);
        if (!holder.ptr)
            *status = HF_NOMEM;
    }
    return holder;
}

/* The condition for the range key. */
static enum hf_status range_make(struct command_ctx *c, const struct key_part *part,
                                 struct hf_str word, struct hf_str *text)
{
    struct settings *settings = c->settings;
    struct hf_str path = hf__cli_item_name(c, &settings->item, part->name), value, to;
    const char *sign = operator_take(&word), *dots = memmem(word.ptr, word.len, "..", 2);
    enum hf_status status = HF_OK;

    if (!sign && dots && dots > word.ptr && dots + 2 < word.ptr + word.len) {
        value = value_add(c, part, hf_str_of(word.ptr, (size_t)(dots - word.ptr)), &status);
        to = value_add(c, part, hf_str_of(dots + 2, (size_t)(word.ptr + word.len - dots - 2)),
                       &status);
        *text = hf_scope_format(c->scope, "%.*s BETWEEN %.*s AND %.*s", HF_FMT(path), HF_FMT(value),
                                HF_FMT(to));
        return status;
    }
    if (!sign && part->type == HF_SCALAR_S && word.len && word.ptr[word.len - 1] == '*') {
        value = value_add(c, part, hf_str_of(word.ptr, word.len - 1), &status);
        *text = hf_scope_format(c->scope, "begins_with(%.*s, %.*s)", HF_FMT(path), HF_FMT(value));
        return status;
    }
    value = value_add(c, part, word, &status);
    *text =
        hf_scope_format(c->scope, "%.*s %s %.*s", HF_FMT(path), sign ? sign : "=", HF_FMT(value));
    return status;
}

/* The key condition from the operands. */
static enum hf_status condition_make(struct command_ctx *c, const struct item_keys *keys,
                                     struct hf_str *condition)
{
    struct settings *settings = c->settings;
    struct hf_str path, value, range = {0};
    enum hf_status status = HF_OK;

    *condition = settings->where;
    if (condition->ptr)
        return HF_OK;
    path = hf__cli_item_name(c, &settings->item, keys->hash.name);
    value = value_add(c, &keys->hash, hf__command_operand(c, 1), &status);
    TRY(status);
    *condition = hf_scope_format(c->scope, "%.*s = %.*s", HF_FMT(path), HF_FMT(value));
    if (c->operands_len > 2) {
        if (!keys->range.name.ptr)
            return hf__command_fail(c, CLI_USAGE, "there is no range key: '%s' is too much",
                                    c->operands[2]);
        TRY(range_make(c, &keys->range, hf__command_operand(c, 2), &range));
        *condition = hf_scope_format(c->scope, "%.*s AND %.*s", HF_FMT(*condition), HF_FMT(range));
    }
    return condition->ptr ? HF_OK : HF_NOMEM;
}

static enum hf_status query_begin(struct command_ctx *c, const struct item_keys *keys,
                                  const struct hf_pages_options *options, struct hf_pages **pages)
{
    struct settings *settings = c->settings;
    struct hf_query query = {.table = hf__command_operand(c, 0),
                             .index = settings->index,
                             .filter = settings->filter,
                             .projection = settings->projection,
                             .start = settings->start_item,
                             .select = settings->count ? HF_SELECT_COUNT : 0,
                             .forward = settings->reverse ? HF_NO : HF_UNSET,
                             .consistent = settings->consistent ? HF_YES : HF_UNSET};

    TRY(condition_make(c, keys, &query.key_condition));
    query.names = settings->item.names_item;
    query.values = settings->item.values_item;
    return hf_pages_query(c->scope, c->db, &query, options, pages);
}

static enum hf_status scan_begin(struct command_ctx *c, const struct hf_pages_options *options,
                                 struct hf_pages **pages)
{
    const struct settings *settings = c->settings;
    struct hf_scan scan = {.table = hf__command_operand(c, 0),
                           .index = settings->index,
                           .filter = settings->filter,
                           .projection = settings->projection,
                           .names = settings->item.names_item,
                           .values = settings->item.values_item,
                           .start = settings->start_item,
                           .select = settings->count ? HF_SELECT_COUNT : 0,
                           .consistent = settings->consistent ? HF_YES : HF_UNSET};

    return hf_pages_scan(c->scope, c->db, &scan, options, pages);
}

/* ---- the list ------------------------------------------------------------------------------- */

/* JSON that can stand between two ' of a shell; absent: no memory. */
static struct hf_str json_quotable(struct hf_scope *s, struct hf_str json)
{
    const struct hf_str quote = HF_STR("\\u0027");
    char *made = hf_scope_alloc(s, json.len * quote.len + 1);
    size_t len = 0;

    for (size_t i = 0; made && i < json.len; i++) {
        if (json.ptr[i] != '\'') {
            made[len++] = json.ptr[i];
            continue;
        }
        memcpy(made + len, quote.ptr, quote.len);
        len += quote.len;
    }
    return hf_str_of(made, len);
}

/* Where a list that --limit has ended goes on. Without a key in what was read nobody knows. */
static void next_report(struct command_ctx *c, struct hf_pages *pages)
{
    const struct settings *settings = c->settings;
    struct hf_item start = {0};

    if (hf_pages_cursor(c->scope, pages, &start) != HF_OK) {
        hf_scope_ok(c->scope);
        hf__cli_notice(c->cli, c->name, "there may be more items: use --all");
        return;
    }
    if (!start.ptr)
        return;
    c->next = settings->item.dynamodb ? hf_item_to_json(c->scope, start)
                                      : hf__cli_plain_of_item(c->scope, start);
    if (!c->database->json && !c->database->quiet) {
        struct hf_str start_text = json_quotable(c->scope, c->next);

        hf__cli_notice(c->cli, c->name, "there may be more items: use --all, or --start '%.*s'",
                       HF_FMT(start_text));
    }
}

static enum hf_status items_print(struct command_ctx *c, const struct item_keys *keys,
                                  struct hf_pages *pages)
{
    const struct settings *settings = c->settings;
    struct item_list *list = NULL;
    struct hf_item item = {0};
    enum hf_status status;

    status = hf__cli_item_list_begin(c, settings->item.dynamodb, keys, &list);
    while (status == HF_OK) {
        status = hf_pages_next_item(c->scope, pages, &item);
        if (status != HF_OK || !item.ptr)
            break;
        status = hf__cli_item_list_add(list, item);
    }
    hf__cli_item_list_end(list);
    if (status == HF_OK && !settings->all)
        next_report(c, pages);
    return status;
}

static enum hf_status items_count(struct command_ctx *c, struct hf_pages *pages)
{
    struct hf_page page = {.found = true};
    uint64_t count = 0;

    while (page.found) {
        TRY(hf_pages_next(c->scope, pages, &page));
        if (page.found)
            count += (uint64_t)page.count;
    }
    return hf__command_count(c, "count", count);
}

static enum hf_status items_read(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_pages_options options = {.size = sizeof(options)};
    struct hf_pages *pages = NULL;
    struct item_keys keys = {0};
    enum hf_status status;

    if (!settings->all && !settings->count)
        options.limit = settings->limit;
    if (!settings->where.ptr && !(settings->scan && settings->index.ptr))
        TRY(hf__cli_item_keys(c, hf__command_operand(c, 0), settings->index, &keys));
    hf__cli_item_capacity_begin(c, &settings->item);
    status =
        settings->scan ? scan_begin(c, &options, &pages) : query_begin(c, &keys, &options, &pages);
    if (status == HF_OK)
        status = settings->count ? items_count(c, pages) : items_print(c, &keys, pages);
    hf_pages_free(pages);
    TRY(hf__cli_item_explained(c, status));
    hf__cli_item_capacity_report(c, &settings->item);
    return HF_OK;
}

COMMAND_OF(query, items_read, ITEM_SETTINGS(struct settings), .min = 1, .max = 3,
           .check = read_check);

COMMAND_OF(scan, items_read, ITEM_SETTINGS(struct settings), .min = 1, .max = 1,
           .check = read_check);
