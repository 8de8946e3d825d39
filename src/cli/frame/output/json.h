/*
 * cli/frame/output/json.h: JSON, both ways.
 */
#ifndef HF_CLI_FRAME_JSON_H
#define HF_CLI_FRAME_JSON_H

#include <holdfast/item.h>
#include <holdfast/scope.h>

#include <stdio.h>

#include "base/json.h"

/* ---- writing -------------------------------------------------------------------------------- */

/* A string with its quotes. Bytes that are no UTF-8 become U+FFFD. */
void hf__cli_json_write_text(FILE *out, struct hf_str text);

/*
 * A value as plain JSON: numbers with all their digits, sets as arrays, bytes as base64. The
 * type that it has in DynamoDB is lost.
 */
void hf__cli_json_write_value(FILE *out, struct hf_scope *s, struct hf_value value);

/* An object of the attributes, and an array of the elements; `write` writes each value. */
typedef void json_write_fn(FILE *out, struct hf_scope *s, struct hf_value value);
void hf__cli_json_write_members(FILE *out, struct hf_scope *s, struct hf_item item,
                                json_write_fn *write);
void hf__cli_json_write_elements(FILE *out, struct hf_scope *s, struct hf_value value,
                                 json_write_fn *write);

/*
 * A text that is written piece by piece into `out`, and is in the scope then; absent when there is
 * no memory.
 *
 *     struct json_text text;
 *     if (hf__cli_json_text_begin(&text))
 *         hf__cli_json_write_value(text.out, s, value);
 *     return hf__cli_json_text_end(&text, s);
 */
struct json_text {
    FILE *out; /* NULL: there is no memory */
    char *ptr;
    size_t len;
};
bool hf__cli_json_text_begin(struct json_text *text);
struct hf_str hf__cli_json_text_end(struct json_text *text, struct hf_scope *s);

/* A value, by `write`, and a text as a text of JSON in the scope; absent when there is no memory. */
struct hf_str hf__cli_json_of(struct hf_scope *s, struct hf_value value, json_write_fn *write);
struct hf_str hf__cli_json_of_value(struct hf_scope *s, struct hf_value value);
struct hf_str hf__cli_json_of_text(struct hf_scope *s, struct hf_str text);

/* ---- reading -------------------------------------------------------------------------------- */

enum { CLI_JSON_DEPTH_MAX = 64 };

struct json_node {
    enum json_kind kind;
    struct hf_str name;      /* as a member of an object */
    struct hf_str text;      /* of a number as it was written, of a string without its escapes */
    struct hf_str raw;       /* all of it as it was written, in the text that was read */
    struct json_node *first; /* of an array or object */
    struct json_node *next;  /* beside it */
    size_t len;              /* of an array or object */
};

/* One value and nothing behind it; NULL and *error, which says where, when it is no JSON. */
const struct json_node *hf__cli_json_read(struct hf_scope *s, struct hf_str text,
                                          struct hf_str *error);

/* Is it one value of JSON in UTF-8, with JSON_LEVELS_MAX levels at most? 0: it is; otherwise the
 * line where it is not. Nothing is built. */
size_t hf__cli_json_check(struct hf_str text);

/* The member of that name; NULL: there is none, or it is no object, or NULL itself. */
const struct json_node *hf__cli_json_member(const struct json_node *object, const char *name);

/* Plain JSON as a value: strings are S, numbers N, arrays L, objects M. Absent: no memory, or a
 * number that DynamoDB does not have. */
struct hf_value hf__cli_json_to_value(struct hf_scope *s, const struct json_node *json);

#endif
