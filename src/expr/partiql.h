/*
 * expr/partiql.h: statements of PartiQL, as DynamoDB knows them.
 *
 *     text --lex--> tokens --parse--> tree --translate--> statement --> keys of a table in it
 *          partiql_lex.c   partiql_parse*.c  partiql_build.c             partiql_keys.c
 *                                            partiql_values.c
 *
 * A statement holds programs of the same kind as expressions do: a condition, an update, a list of
 * columns. They are bound already, since a statement brings its values along. How the items are
 * found depends on the schema of the table: the functions for that take the names of its key.
 *
 * Errors are HF_INVALID with DynamoDB's texts. No statement, however nested, may exhaust the stack.
 */
#ifndef HF_EXPR_PARTIQL_H
#define HF_EXPR_PARTIQL_H

#include "expr/expr.h"

enum {
    STATEMENT_TEXT_MAX = 32768, /* bytes; the constraint check allows 8192 characters */
    STATEMENT_READS_MAX = 50    /* reads that one SELECT may be split into */
};

enum statement_kind {
    STATEMENT_SELECT,
    STATEMENT_INSERT,
    STATEMENT_UPDATE,
    STATEMENT_DELETE,
    STATEMENT_EXISTS /* of ExecuteTransaction: the SELECT in it, as a check */
};

enum statement_returns {
    RETURNS_NONE,
    RETURNS_ALL_OLD,
    RETURNS_MODIFIED_OLD,
    RETURNS_ALL_NEW,
    RETURNS_MODIFIED_NEW
};

/* One term of ORDER BY. */
struct statement_order {
    struct hf_str name;
    bool descending;
};

struct pq_node; /* of the tree, see partiql_tree.h */

struct statement {
    enum statement_kind kind;
    struct hf_str table;
    struct hf_str index;        /* absent: the table itself */
    struct expr_bound *columns; /* of a SELECT; NULL: all attributes */
    struct expr_bound *where;   /* NULL: none */
    struct expr_bound *update;  /* of an UPDATE */
    struct hf_item item;        /* of an INSERT */
    enum statement_returns returns;
    const struct statement_order *order;
    size_t order_len;
    struct pq_node *condition; /* the tree of `where` */
    const struct hf_value *params;
    size_t params_len;
};

/* Read a statement; `params` are the values of its question marks, in their order. */
enum hf_status hf__partiql_parse(struct hf_scope *s, struct hf_str text,
                                 const struct hf_value *params, size_t params_len,
                                 struct statement *out);

/*
 * Find the name of the table in a statement: a part of `text`, with its quotes if it has any.
 * HF_INVALID: the statement is not well formed, or names no table or several.
 */
enum hf_status hf__partiql_table(struct hf_scope *s, struct hf_str text, struct hf_str *word);

/*
 * The condition of the write of a DELETE: its WHERE clause holds, or there is no item. `hash` is
 * the name of the partition key, which every item has.
 */
enum hf_status hf__partiql_unless_missing(struct hf_scope *s, const struct statement *statement,
                                          struct hf_str hash, struct expr_bound **bound);

/* An INSERT's condition: no item has that key yet. */
enum hf_status hf__partiql_not_exists(struct hf_scope *s, struct hf_str hash,
                                      struct expr_bound **bound);

/* ---- keys ----------------------------------------------------------------------------------- */

struct statement_key_attr {
    struct hf_str name; /* absent: the key has no such attribute */
    enum hf_type type;
};

/* The key of the table or index that a statement is about. */
struct statement_key {
    struct statement_key_attr hash;
    struct statement_key_attr range;
};

/* The key of one item, as far as the equalities of a WHERE clause give it. */
struct statement_found {
    struct hf_value hash;  /* none: the clause does not say */
    struct hf_value range; /* likewise */
    bool whole;            /* every attribute of the key has its value */
    bool more;             /* the clause says more than the key */
    struct hf_str twice;   /* an attribute with two different values; absent: none */
};

/* `lists`: an IN with one value counts as an equality, as it does for reads. */
enum hf_status hf__partiql_find_key(struct hf_scope *s, const struct statement *statement,
                                    const struct statement_key *key, bool lists,
                                    struct statement_found *found);

/* "Key attribute's data type should match ..." when a value has another type than the schema. */
enum hf_status hf__partiql_check_type(struct hf_scope *s, const struct statement_key_attr *attr,
                                      struct hf_value value);

/* One of the reads that a SELECT is split into: a part of one partition. A bound that is absent is
 * no limit. */
struct statement_span {
    struct hf_value hash;
    struct hf_value low;
    struct hf_value high;
    bool low_open;  /* the bound itself is excluded */
    bool high_open; /* likewise */
    bool prefix;    /* `high` is a prefix: what begins with it is included */
    bool loose;     /* there is also a term on the sort key that gives no bounds */
};

/*
 * The reads that together find every item that the WHERE clause may accept, each item once. *len 0:
 * everything has to be read. Evaluate the clause on every item that was read.
 */
enum hf_status hf__partiql_spans(struct hf_scope *s, const struct statement *statement,
                                 const struct statement_key *key, struct statement_span **spans,
                                 size_t *len);

/* Order of two spans: by the partition's value, then by where they begin. */
int hf__partiql_span_compare(const struct statement_span *a, const struct statement_span *b);

#endif
