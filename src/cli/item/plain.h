/*
 * cli/item/plain.h: items as plain JSON, both ways, without loss.
 *
 *     S "text"    N 12.50    BOOL true    NULL null    L [...]    M {...}
 *     SS, NS, BS  {"$set":["a","b"]}, of strings, numbers or bytes; a set is never empty
 *     B           {"$binary":"aGk="}
 *     an M with one member whose name begins with $    {"$map":{"$set":1}}
 *
 * Numbers keep all their digits. What is at the top is the item itself, so its names may be any.
 */
#ifndef HF_CLI_ITEM_PLAIN_H
#define HF_CLI_ITEM_PLAIN_H

#include "cli/frame/output/json.h"

/* Write a value, or an item. The scope is for the texts of numbers. */
void hf__cli_plain_write(FILE *out, struct hf_scope *s, struct hf_value value);
void hf__cli_plain_write_item(FILE *out, struct hf_scope *s, struct hf_item item);

/* The same as texts in the scope; absent: no memory. */
struct hf_str hf__cli_plain_of_value(struct hf_scope *s, struct hf_value value);
struct hf_str hf__cli_plain_of_item(struct hf_scope *s, struct hf_item item);

/* Read a value, or an object as an item. False: *error, a sentence. */
bool hf__cli_plain_read(struct hf_scope *s, const struct json_node *json, struct hf_value *value,
                        struct hf_str *error);
bool hf__cli_plain_read_item(struct hf_scope *s, struct hf_str text, struct hf_item *item,
                             struct hf_str *error);

#endif
