/*
 * cli/item/item_print.c: items for people and for programs. See item.h.
 *
 * On a terminal a list is a table. Items have different attributes, so up to HELD_MAX of them are
 * held back until it is known which there are: the key first, then in the order in which they come
 * up, and what has no column of its own is in the last one, as JSON.
 *
 * For programs a list is a line of JSON for each item, and nothing is held back.
 */
#include "cli/item/item.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "cli/item/plain.h"

enum { HELD_MAX = 100, COLUMNS_MAX = ROWS_FIELDS_MAX - 1 };

struct item_list {
    struct command_ctx *c;
    bool dynamodb;
    bool table;         /* for people: a table */
    struct rows *rows;  /* NULL: lines of JSON, written as they come */
    struct hf_scope *s; /* of an item while it is written, or of those that are held */
    struct hf_item held[HELD_MAX];
    size_t held_len;
    struct hf_scope *names;             /* of the names of columns */
    struct hf_str columns[COLUMNS_MAX]; /* each with a NUL */
    size_t columns_len;
};

/* What a terminal obeys and JSON allows as it is: DEL, and U+0080 to U+009F. How many bytes; 0: none. */
static size_t control_len(struct hf_str json, size_t at)
{
    unsigned char first = (unsigned char)json.ptr[at];

    if (first == 0x7F)
        return 1;
    return first == 0xC2 && at + 1 < json.len && (unsigned char)json.ptr[at + 1] < 0xA0 ? 2 : 0;
}

/* JSON of the library with these as escapes, which they can only be inside of strings. */
static struct hf_str json_clean(struct hf_scope *s, struct hf_str json)
{
    struct json_text text;
    bool clean = true;

    for (size_t i = 0; i < json.len && clean; i++)
        clean = control_len(json, i) == 0;
    if (clean)
        return json;
    if (hf__cli_json_text_begin(&text))
        for (size_t i = 0, len; i < json.len; i += len ? len : 1) {
            len = control_len(json, i);
            if (len)
                fprintf(text.out, "\\u%04x", (unsigned char)json.ptr[i + len - 1]);
            else
                fputc(json.ptr[i], text.out);
        }
    return hf__cli_json_text_end(&text, s);
}

static struct hf_str item_text(struct hf_scope *s, bool dynamodb, struct hf_item item)
{
    return dynamodb ? json_clean(s, hf_item_to_json(s, item)) : hf__cli_plain_of_item(s, item);
}

/* A value in a column: strings without quotes. */
static struct hf_str value_text(struct hf_scope *s, struct hf_value value)
{
    if (hf_value_type(value) == HF_TYPE_S)
        return hf_value_str(value);
    return value.ptr ? hf__cli_plain_of_value(s, value) : (struct hf_str){0};
}

enum hf_status hf__cli_item_print(struct command_ctx *c, bool dynamodb, struct hf_item item)
{
    struct hf_item_walk walk = {.next = 0};
    FILE *out = c->cli->out;
    struct hf_str text;
    size_t width = 0;

    if (c->database->quiet)
        return HF_OK;
    if (!hf__cli_for_people(c->cli) || dynamodb) {
        text = item_text(c->scope, dynamodb, item);
        if (!text.ptr)
            return HF_NOMEM;
        fprintf(out, "%.*s\n", HF_FMT(text));
        return HF_OK;
    }
    while (hf_item_next(item, &walk))
        if (width < hf__rows_width(walk.name))
            width = hf__rows_width(walk.name);
    walk = (struct hf_item_walk){.next = 0};
    while (hf_item_next(item, &walk)) {
        hf__rows_print(out, walk.name);
        fprintf(out, "%*s", (int)(width - hf__rows_width(walk.name) + 2), "");
        hf__rows_print(out, value_text(c->scope, walk.value));
        fputc('\n', out);
    }
    return HF_OK;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static bool column_is_there(const struct item_list *list, struct hf_str name)
{
    for (size_t i = 0; i < list->columns_len; i++)
        if (hf_str_equal(list->columns[i], name))
            return true;
    return false;
}

static void column_add(struct item_list *list, struct hf_str name)
{
    struct hf_str copy;

    if (!name.ptr || list->columns_len == COLUMNS_MAX || column_is_there(list, name))
        return;
    copy = hf_scope_copy(list->names, name);
    if (copy.ptr)
        list->columns[list->columns_len++] = copy;
}

void hf__cli_item_list_column(struct item_list *list, struct hf_str name)
{
    column_add(list, name);
}

enum hf_status hf__cli_item_list_begin(struct command_ctx *c, bool dynamodb,
                                       const struct item_keys *keys, struct item_list **list)
{
    struct item_list *made = hf_scope_alloc(c->scope, sizeof(*made));
    bool people = hf__cli_for_people(c->cli) && !c->database->json && !c->database->jsonl;

    *list = NULL;
    if (!made)
        return HF_NOMEM;
    memset(made, 0, sizeof(*made));
    made->c = c;
    made->dynamodb = dynamodb;
    made->table = people && !dynamodb;
    made->s = hf_scope_new(NULL);
    made->names = hf_scope_new(NULL);
    if (!made->s || !made->names) {
        hf_scope_free(made->s);
        hf_scope_free(made->names);
        return HF_NOMEM;
    }
    if (c->cli->outcome)
        c->cli->outcome->listed = true;
    if (made->table || c->database->json || c->database->jsonl)
        made->rows = hf__command_rows(c, "items");
    if (keys) {
        column_add(made, keys->hash.name);
        column_add(made, keys->range.name);
    }
    *list = made;
    return HF_OK;
}

/* What has no column of its own; absent: all have. */
static struct hf_str rest_text(const struct item_list *list, struct hf_item item)
{
    struct hf_item_walk walk = {.next = 0};
    struct hf_item rest = {0};
    struct hf_attr *attrs;
    size_t len = 0;

    attrs = hf_scope_alloc(list->s, (hf_item_count(item) + 1) * sizeof(*attrs));
    while (attrs && hf_item_next(item, &walk))
        if (!column_is_there(list, walk.name))
            attrs[len++] = (struct hf_attr){.name = walk.name, .value = walk.value};
    if (len)
        rest = hf_item_make(list->s, attrs, len);
    return rest.ptr ? hf__cli_plain_of_item(list->s, rest) : (struct hf_str){0};
}

static void held_print(struct item_list *list)
{
    struct rows_field fields[ROWS_FIELDS_MAX];

    for (size_t i = 0; i < list->held_len; i++) {
        struct hf_item_walk walk = {.next = 0};

        while (hf_item_next(list->held[i], &walk))
            column_add(list, walk.name);
    }
    for (size_t i = 0; i < list->held_len; i++) {
        size_t len = 0;

        for (; len < list->columns_len; len++) {
            struct hf_value value = hf_item_get(list->held[i], list->columns[len]);

            fields[len] = (struct rows_field){.name = list->columns[len].ptr,
                                              .text = value_text(list->s, value),
                                              .cut = true};
        }
        fields[len++] = (struct rows_field){.name = "others",
                                            .text = rest_text(list, list->held[i]),
                                            .sparse = true,
                                            .cut = true};
        hf__rows_add(list->rows, fields, len);
    }
    list->held_len = 0;
    hf_scope_reset(list->s);
}

/* For who runs the command. */
static void outcome_add(struct cli_outcome *outcome, struct hf_item item)
{
    if (!outcome)
        return;
    outcome->items++;
    if (outcome->on_item)
        outcome->on_item(outcome->user, item);
}

enum hf_status hf__cli_item_list_add(struct item_list *list, struct hf_item item)
{
    struct hf_str text;

    outcome_add(list->c->cli->outcome, item);
    if (list->table) {
        assert(list->held_len < HELD_MAX);
        list->held[list->held_len] = hf_item_copy(list->s, item);
        TRY(hf_item_check(list->s, list->held[list->held_len]));
        if (++list->held_len == HELD_MAX)
            held_print(list);
        return HF_OK;
    }
    text = item_text(list->s, list->dynamodb, item);
    if (!text.ptr)
        return HF_NOMEM;
    if (list->rows)
        COMMAND_ROW(list->rows,
                    (struct rows_field){.name = "item", .text = text, .kind = ROWS_WHOLE});
    else if (!list->c->database->quiet)
        fprintf(list->c->cli->out, "%.*s\n", HF_FMT(text));
    hf_scope_reset(list->s);
    return HF_OK;
}

void hf__cli_item_list_flush(struct item_list *list)
{
    if (!list->table)
        return;
    held_print(list);
    hf__rows_screen_print(list->rows);
}

void hf__cli_item_list_end(struct item_list *list)
{
    if (!list)
        return;
    hf__cli_item_list_flush(list);
    hf_scope_free(list->s);
    hf_scope_free(list->names);
}
