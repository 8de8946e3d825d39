/*
 * wire/wire.h: DynamoDB's JSON to and from requests and responses, by walking the field tables.
 *
 * One reader and one writer serve every operation. The reader goes over the bytes once and puts
 * attribute values straight into their flat form; it knows no operation either.
 *
 * Two kinds of error come from reading:
 *
 *  - the body is not JSON, or a member has the wrong JSON type: HF_SERIALIZATION, at once, with
 *    DynamoDB's text (an empty message when the body is not JSON);
 *  - an attribute value is of the right shape but not a value (two types, an empty set, a number
 *    of 39 digits): the item is poisoned, see model/value.h, and validation reports it when it comes to it.
 *
 * An enum's text that is no member is kept with hf__scope_keep_text().
 */
#ifndef HF_WIRE_WIRE_H
#define HF_WIRE_WIRE_H

#include "base/base.h"
#include "base/buf.h"
#include "ops/fields.h"

enum {
    JSON_DEPTH_MAX = 200,    /* of what is skipped or checked; deeper is refused as malformed */
    WIRE_HOLE_MIN = 4 * 1024 /* bytes of an item, as it is held, that is left out of a frame */
};

/* Read `json` into the struct at `out`, which has fields->size zeroed bytes. Borrows from `json`
 * where a string needs no unescaping. */
enum hf_status hf__wire_read(struct hf_scope *s, const struct fields *fields, struct hf_str json,
                             void *out);

/*
 * The same for what a service answered. A zero is just 0, and an enum's text that is no member is 0
 * too, as a newer service may have one. An attribute value that is none fails at once.
 */
enum hf_status hf__wire_read_answer(struct hf_scope *s, const struct fields *fields,
                                    struct hf_str json, void *out);

/*
 * The error that a service answered with: becomes the scope's, with its item and its reasons. What
 * has no type that we know is judged by the HTTP status alone. Returns the status of the error.
 *
 * may_retry is as the service means it; may_have_happened is set for every HTTP status that does
 * not say that nothing was done: 429 and from 500 up.
 */
enum hf_status hf__wire_read_error(struct hf_scope *s, int http_status, struct hf_str json);

/* The name in the "__type" of an error, without what stands before '#'; absent when there is none.
 * Borrows from `json` or lives in the scope. */
struct hf_str hf__wire_error_type(struct hf_scope *s, struct hf_str json);

/* The first poisoned item or value of a struct; absent when writing it failed for another reason.
 */
struct hf_item hf__wire_poison(const struct fields *fields, const void *in);

/* Append the struct at `in` as a JSON object. Fails when something in it is poisoned. */
void hf__wire_write(struct hf__buf *buf, const struct fields *fields, const void *in);

/*
 * The same without its large items, for callers without memory for all of it at once: the JSON is
 * `text`, and before the byte `at` of that belongs the hole's item, hole after hole. Both live in
 * the scope; what is missing of memory shows in them as `failed`.
 */
struct wire_hole {
    size_t at;
    struct hf_item item;
};
struct wire_frame {
    struct hf__buf text;
    struct hf__buf holes; /* struct wire_hole */
};
void hf__wire_write_frame(struct hf_scope *s, const struct fields *fields, const void *in,
                          struct wire_frame *frame);
size_t hf__wire_holes(const struct wire_frame *frame, const struct wire_hole **holes);

/* Append one item, one value, or one string, as JSON. */
void hf__wire_write_item(struct hf__buf *buf, struct hf_item item);
void hf__wire_write_value(struct hf__buf *buf, struct hf_value value);
void hf__wire_write_str(struct hf__buf *buf, struct hf_str text);

/* The error of the scope as the body that DynamoDB would send, with its __type. */
void hf__wire_write_error(struct hf__buf *buf, const struct hf_error *error);

/* The exception's full name, such as "com.amazonaws.dynamodb.v20120810#LimitExceededException". */
const char *hf__wire_type(enum hf_status status);
const char *hf__wire_type_of(const struct hf_error *error); /* with the exception it has, if any */

/* Is the text one whole JSON value, and nothing behind it? */
bool hf__wire_json_valid(struct hf_str json);

#endif
