/*
 * expr/expr.h: condition, filter, projection, update and key condition expressions.
 *
 * An expression goes through three steps:
 *
 *     compile   the text becomes a program. Depends on the text alone, so programs can be kept and
 *               shared between requests and threads. Finds what is wrong with the text itself.
 *     bind      the program meets a request's names and values. Finds what is undefined, overlaps,
 *               or has an operand of the wrong type. Marks what was used.
 *     use       match, project or update an item. Reads items in place; matching allocates nothing
 *               and cannot fail.
 *
 * The legacy parameters (Expected, AttributeUpdates, KeyConditions, QueryFilter, ScanFilter,
 * AttributesToGet) are turned into bound programs of the same kind.
 *
 * Errors are HF_INVALID with DynamoDB's texts; they begin "Invalid ConditionExpression: " or
 * likewise. No text, however nested, may exhaust the stack.
 */
#ifndef HF_EXPR_EXPR_H
#define HF_EXPR_EXPR_H

#include "base/base.h"
#include "model/value.h"

enum expr_kind {
    EXPR_CONDITION,
    EXPR_FILTER,
    EXPR_PROJECTION,
    EXPR_UPDATE,
    EXPR_KEY_CONDITION,
    EXPR_STATEMENT /* any part of a statement (partiql.h), whose errors have nothing in front */
};

enum {
    EXPR_TEXT_MAX = 4096,     /* bytes of one expression */
    EXPR_OPERATORS_MAX = 300, /* operators in one expression */
    EXPR_IN_MAX = 100,        /* operands of IN */
    EXPR_PATH_MAX = 32        /* elements of one document path */
};

struct expr; /* a compiled program; nobody changes it */

/* The names and values of one request, and which of them its expressions used. */
struct expr_params {
    struct hf_item names;  /* "#n" -> S; absent when the request has none */
    struct hf_item values; /* ":v" -> value */
    uint8_t *names_used;   /* one byte per name, in the order of the item */
    uint8_t *values_used;
};

/* One document path: a name, then names and list indexes. */
struct expr_step {
    struct hf_str name; /* absent: an index */
    uint32_t index;
};
struct expr_path {
    const struct expr_step *steps;
    size_t len;
};

/* A program with its names and values; lives in the scope it was bound in. */
struct expr_bound;

/* ---- making --------------------------------------------------------------------------------- */

/* Compile into the scope. The text is copied where the program needs it. */
enum hf_status hf__expr_compile(struct hf_scope *s, enum expr_kind kind, struct hf_str text,
                                const struct expr **expr);

/* Check the maps themselves: not empty, keys of the form #x and :x; and prepare the marks. */
enum hf_status hf__expr_params(struct hf_scope *s, struct hf_item names, struct hf_item values,
                               struct expr_params *params);

enum hf_status hf__expr_bind(struct hf_scope *s, const struct expr *expr,
                             struct expr_params *params, struct expr_bound **bound);

/* Fail when the request has a name or a value that no bound expression used. */
enum hf_status hf__expr_unused(struct hf_scope *s, const struct expr_params *params);

/* ---- legacy parameters ---------------------------------------------------------------------- */

enum expr_compare {
    COMPARE_NONE = 0, /* not given */
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LE,
    COMPARE_LT,
    COMPARE_GE,
    COMPARE_GT,
    COMPARE_BETWEEN,
    COMPARE_NOT_NULL,
    COMPARE_NULL,
    COMPARE_CONTAINS,
    COMPARE_NOT_CONTAINS,
    COMPARE_BEGINS_WITH,
    COMPARE_IN
};

/* One entry of Expected, QueryFilter, ScanFilter or KeyConditions, its shape already validated. */
struct expr_legacy_condition {
    struct hf_str name;
    enum expr_compare compare;
    const struct hf_value *values;
    size_t values_len;
};

/* Conditions joined by AND, or by OR; none gives a program that every item matches. */
enum hf_status hf__expr_legacy_condition(struct hf_scope *s,
                                         const struct expr_legacy_condition *conditions, size_t len,
                                         bool any, struct expr_bound **bound);
enum hf_status hf__expr_legacy_key(struct hf_scope *s,
                                   const struct expr_legacy_condition *conditions, size_t len,
                                   struct expr_bound **bound);

enum expr_action { ACTION_PUT, ACTION_ADD, ACTION_DELETE };

/* One entry of AttributeUpdates; a DELETE without a value removes the attribute. */
struct expr_legacy_update {
    struct hf_str name;
    enum expr_action action;
    struct hf_value value; /* may be absent */
};
enum hf_status hf__expr_legacy_update(struct hf_scope *s, const struct expr_legacy_update *updates,
                                      size_t len, struct expr_bound **bound);

/* AttributesToGet: names of top-level attributes, already checked for repeats. */
enum hf_status hf__expr_legacy_projection(struct hf_scope *s, const struct hf_str *names,
                                          size_t len, struct expr_bound **bound);

/* ---- using ---------------------------------------------------------------------------------- */

/* Every document path of the program, in reading order. */
void hf__expr_paths(const struct expr_bound *bound, const struct expr_path **paths, size_t *len);

/* Of those, what an update writes to, or a projection shows; in reading order. */
void hf__expr_targets(const struct expr_bound *bound, const struct expr_path **paths, size_t *len);

/* How much work the expression may be with that item: bytes that it may look at, more or less. */
size_t hf__expr_work(const struct expr_bound *bound, struct hf_item item);

/* Does the item (absent: no such item) satisfy the condition or filter? */
bool hf__expr_match(const struct expr_bound *bound, struct hf_item item);

/* What the projection leaves of the item: possibly an empty item. */
enum hf_status hf__expr_project(struct hf_scope *s, const struct expr_bound *bound,
                                struct hf_item item, struct hf_item *out);

/*
 * The item after the update. `old` may be absent; `key` is the item's key and is part of every
 * new item. *out is absent when the update made only of REMOVE and DELETE met no item, which
 * creates none.
 */
enum hf_status hf__expr_update(struct hf_scope *s, const struct expr_bound *bound,
                               struct hf_item key, struct hf_item old, struct hf_item *out);

/*
 * Is the type of what the update gives to the attribute known without the item, as that of a value
 * of the request, of a sum or of list_append() is? Statements are not asked so: false. For errors.
 */
bool hf__expr_update_typed(const struct expr_bound *bound, struct hf_item key, struct hf_item old,
                           struct hf_str name);

/*
 * What UPDATED_OLD and UPDATED_NEW return: the parts of `item` at the paths that the update
 * touched, nested pieces pruned to the touched leaf; absent when that is nothing.
 */
enum hf_status hf__expr_touched(struct hf_scope *s, const struct expr_bound *bound,
                                struct hf_item item, struct hf_item *out);

/* The terms of a key condition, in reading order, all joined by AND. */
struct expr_key_term {
    struct hf_str name;
    enum expr_compare compare; /* EQ, LT, LE, GT, GE, BETWEEN, BEGINS_WITH; any, of a legacy one */
    struct hf_value low;       /* the operand */
    struct hf_value high;      /* the upper bound of BETWEEN */
};
void hf__expr_key_terms(const struct expr_bound *bound, const struct expr_key_term **terms,
                        size_t *len);

/* Is the name one of DynamoDB's 573 reserved words, in any case? */
bool hf__expr_reserved(struct hf_str name);

#endif
