/*
 * ops/private.h: what the files of this folder share. Others include prepare.h and fields.h.
 */
#ifndef HF_OPS_PRIVATE_H
#define HF_OPS_PRIVATE_H

#include "base/buf.h"
#include "ops/prepare.h"

/* How many of DynamoDB's sentences about a request begin. */
#define BAD_VALUES "One or more parameter values were invalid: "

/* ---- constraints.c -------------------------------------------------------------------------- */

enum { VIOLATIONS_MAX = 10 };

/* A step of a path: a member by name, an element by key, or by place when there is neither. */
struct path_step {
    const struct path_step *up;
    const char *name;
    struct hf_str key;
    size_t place;
};

/* Constraints that were not met; they become one sentence. */
struct violations {
    struct hf_scope *s;
    struct hf__buf text;
    const struct path_step *at; /* where the walk is; written out only when it is needed */
    int count;
};

/* Check the members of a request; a TableName that is wrong by itself ends in an error at once. */
enum hf_status hf__constraints_collect(struct violations *v, const struct op *op,
                                       const void *request);

/* Add one that the tables cannot express. `constraint` is what follows the path. */
void hf__violation_add(struct violations *v, struct hf_str path, struct hf_str value,
                       const char *constraint);

/* HF_OK when there are none. */
enum hf_status hf__violations_end(struct violations *v);

/* The three in one. */
enum hf_status hf__constraints(struct hf_scope *s, enum hf_op op, const void *request);

/* Print a member as DynamoDB does in "Value '...' at": [a, b], {k=v}, Name(member=value). */
void hf__print_field(struct hf_scope *s, struct hf__buf *out, const struct field *field,
                     const void *base);

/* ---- values.c ------------------------------------------------------------------------------- */

/* An item, key or value is well-formed, within 32 levels, and names no attribute "". */
enum hf_status hf__check_item(struct hf_scope *s, enum hf_op op, struct hf_item item);
enum hf_status hf__check_value(struct hf_scope *s, enum hf_op op, struct hf_value value);

/* The same of an ExclusiveStartKey, whose errors often begin with a sentence of their own. */
enum hf_status hf__check_start(struct hf_scope *s, enum hf_op op, struct hf_item start);

/*
 * The first string of a list that stood in it before, NULL when there is none. Each string is the
 * first member of its element. Sorts, because a list may be as long as a request.
 */
enum hf_status hf__find_repeat(struct hf_scope *s, const void *first, size_t stride, size_t len,
                               const struct hf_str **repeat);

enum hf_status hf__check_item_size(struct hf_scope *s, struct hf_item item, size_t *size);

/* ---- expressions.c -------------------------------------------------------------------------- */

/* One expression of a request. */
struct expression {
    const char *name;
    enum expr_kind kind;
    struct hf_str text; /* absent: the request has none */
    struct expr_bound **bound;
};

/* A legacy parameter that expressions exclude. */
struct legacy_given {
    const char *name;
    bool given;
};

enum { EXPRESSIONS_MAX = 3, LEGACY_MAX = 4 };

/*
 * The expressions of one request or action. They stand in the order in which messages name them;
 * `order` is the order in which they are read.
 */
struct expressions {
    struct hf__expr_cache *cache;
    enum hf_op op;
    struct expression list[EXPRESSIONS_MAX];
    size_t len;
    size_t order[EXPRESSIONS_MAX];
    struct legacy_given legacy[LEGACY_MAX];
    size_t legacy_len;
    struct hf_item names;
    struct hf_item values;
};

/* Steps 3 and 4: no mixing with legacy parameters, no names or values without an expression. */
enum hf_status hf__expressions_mixed(struct hf_scope *s, const struct expressions *e);

/* Steps 7 to 9: placeholders, each expression in order, nothing unused. */
enum hf_status hf__expressions_bind(struct hf_scope *s, const struct expressions *e);

/* ---- legacy.c ------------------------------------------------------------------------------- */

/* Expected as a condition: NULL when it is absent or empty. */
enum hf_status hf__legacy_expected(struct hf_scope *s, enum hf_op op,
                                   const struct hf_expected *expected, size_t len,
                                   enum hf_conditional_operator joined, struct expr_bound **bound);

/* QueryFilter or ScanFilter; NULL when it is absent or empty. */
enum hf_status hf__legacy_filter(struct hf_scope *s, enum hf_op op,
                                 const struct hf_condition *conditions, size_t len,
                                 enum hf_conditional_operator joined, struct expr_bound **bound);

enum hf_status hf__legacy_key(struct hf_scope *s, const struct hf_condition *conditions, size_t len,
                              struct expr_bound **bound);

enum hf_status hf__legacy_updates(struct hf_scope *s, const struct hf_attribute_update *updates,
                                  size_t len, struct expr_bound **bound);

/* AttributesToGet names nothing twice; its projection, NULL when there is none. */
enum hf_status hf__legacy_projection(struct hf_scope *s, const struct hf_str *names, size_t len,
                                     struct expr_bound **bound);

/* ---- prepare_tags.c ------------------------------------------------------------------------- */

enum hf_status hf__check_tags(struct hf_scope *s, const struct hf_tag *tags, size_t len);

/* ---- prepare_throughput.c ------------------------------------------------------------------- */

/* Do they say anything? Structures without a member count as absent. */
bool hf__has_limits(const struct hf_on_demand_throughput *limits);
bool hf__has_warm(const struct hf_warm_throughput *warm);

enum hf_status hf__check_units(struct hf_scope *s, const struct hf_throughput *throughput);

/* Of UpdateTable: limits of the table, one change of an index. */
enum hf_status hf__check_limits(struct hf_scope *s, const struct hf_on_demand_throughput *limits);
enum hf_status hf__check_index_update(struct hf_scope *s, const struct hf_index_update *update);

/* Of CreateTable, without its indexes. */
enum hf_status hf__check_table_throughput(struct hf_scope *s,
                                          const struct hf_create_table *request);

/* ---- messages.c ----------------------------------------------------------------------------- */

/* How the 2026 layer words errors of values and expressions for an operation. */
enum newer_wording {
    NEWER_AS_BEFORE, /* not moved yet */
    NEWER_BARE,      /* the text alone, expression values not wrapped */
    NEWER_PREFIXED   /* likewise, behind "1 validation error detected: " */
};
enum newer_wording hf__newer_wording(enum hf_op op);

/* Put the 2026 layer's prefix before the scope's HF_INVALID, when the operation has one. */
enum hf_status hf__reword(struct hf_scope *s, enum hf_op op, enum hf_status status);

/* The text of a poison in the wording that the operation has. */
struct hf_str hf__poison_text(struct hf_scope *s, enum hf_op op, const struct poison *poison);

/* Fail for a poisoned expression value, wrapped as the operation has it. */
enum hf_status hf__ops_fail_expression_value(struct hf_scope *s, enum hf_op op,
                                             const struct poison *poison);

#endif
