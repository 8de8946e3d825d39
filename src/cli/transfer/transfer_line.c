/*
 * cli/transfer/transfer_line.c: an item as a line, in any format.
 *
 * What always holds: what was written is read as an equal item. Lines have no end of line inside, but
 * for records of CSV, where it is between quotes.
 */
#include "cli/transfer/transfer.h"

#include "base/json.h"
#include "cli/item/plain.h"

#include <string.h>

static void dynamodb_write(FILE *out, struct hf_scope *s, struct hf_item item)
{
    struct hf_str text = hf_item_to_json(s, item);

    fwrite(text.ptr ? text.ptr : "", 1, text.len, out);
}

void hf__transfer_line_write(FILE *out, struct hf_scope *s, enum transfer_format format,
                             const struct transfer_columns *columns, struct hf_item item)
{
    switch (format) {
    case TRANSFER_DYNAMODB:
        dynamodb_write(out, s, item);
        break;
    case TRANSFER_AWS:
        fputs("{\"Item\":", out);
        dynamodb_write(out, s, item);
        fputc('}', out);
        break;
    case TRANSFER_CSV:
        hf__transfer_csv_write(out, s, columns, item); /* with its own end of line */
        return;
    case TRANSFER_AUTO:
    case TRANSFER_JSONL:
        hf__cli_plain_write_item(out, s, item);
        break;
    }
    fputc('\n', out);
}

static bool error_say(struct hf_str *error, const char *text)
{
    *error = hf_str_from(text);
    return false;
}

/* The item of {"Item":{...}}; other members are not expected, but do no harm. */
static bool envelope_open(struct hf_str line, struct hf_str *inner, struct hf_str *error)
{
    struct json_cursor json = {.at = line.ptr, .end = line.ptr + line.len};

    *inner = (struct hf_str){0};
    if (hf__json_kind(&json) != JSON_OBJECT)
        return error_say(error, "expected an object with a member Item");
    for (bool more = hf__json_enter(&json, '}'); more; more = hf__json_more(&json, '}')) {
        struct json_string name;
        const char *start;

        if (!hf__json_name(&json, &name))
            return error_say(error, json.wrong);
        hf__json_spaces(&json);
        start = json.at;
        if (!hf__json_skip(&json, JSON_LEVELS_MAX))
            return error_say(error, json.wrong);
        if (hf_str_equal(name.raw, HF_STR("Item")))
            *inner = hf_str_of(start, (size_t)(json.at - start));
    }
    if (!hf__json_sound(&json) || !hf__json_ended(&json))
        return error_say(error, json.wrong ? json.wrong : "unexpected text after the object");
    return inner->ptr || error_say(error, "expected an object with a member Item");
}

static bool dynamodb_read(struct hf_scope *s, struct hf_str text, struct hf_item *item,
                          struct hf_str *error)
{
    if (hf_item_from_json(s, text, item) == HF_OK)
        return true;
    *error = hf_str_from(hf_scope_error_text(s));
    return false;
}

/* The same in one go, for lines as AWS and we write them. */
static bool envelope_plain(struct hf_scope *s, struct hf_str line, struct hf_item *item)
{
    static const char head[] = "{\"Item\":";
    size_t head_len = sizeof(head) - 1;

    return line.len > head_len + 1 && memcmp(line.ptr, head, head_len) == 0 &&
           line.ptr[line.len - 1] == '}' &&
           hf_item_from_json(s, hf_str_of(line.ptr + head_len, line.len - head_len - 1), item) ==
               HF_OK;
}

bool hf__transfer_line_read(struct hf_scope *s, enum transfer_format format,
                            const struct transfer_columns *columns, struct hf_str line,
                            struct hf_item *item, struct hf_str *error)
{
    static const char place[] = "line 1: "; /* a line has one */
    struct hf_str inner;

    *error = (struct hf_str){0};
    switch (format) {
    case TRANSFER_DYNAMODB:
        return dynamodb_read(s, line, item, error);
    case TRANSFER_AWS:
        return envelope_plain(s, line, item) ||
               (envelope_open(line, &inner, error) && dynamodb_read(s, inner, item, error));
    case TRANSFER_CSV:
        return hf__transfer_csv_read(s, columns, line, item, error);
    case TRANSFER_AUTO:
    case TRANSFER_JSONL:
        break;
    }
    if (hf__cli_plain_read_item(s, line, item, error))
        return true;
    if (error->len > sizeof(place) - 1 && memcmp(error->ptr, place, sizeof(place) - 1) == 0)
        *error = hf_str_of(error->ptr + sizeof(place) - 1, error->len - (sizeof(place) - 1));
    return false;
}
