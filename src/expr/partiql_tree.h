/*
 * expr/partiql_tree.h: tokens and trees of statements, between the files partiql_*.c.
 *
 * What always holds:
 *
 *  (1) A tree is at most PQ_DEPTH_MAX deep, as the operands of a chain of one operator (a AND b AND
 *      c, 1 + 2 + 3) are side by side under one node. So a walk may recurse.
 *  (2) The parser checks only the grammar. Meaning is checked once the whole statement is known to
 *      be well formed, as in DynamoDB, whose errors come in that order.
 *  (3) The number of a node fits 16 bits, since every node is made of a token.
 */
#ifndef HF_EXPR_PARTIQL_TREE_H
#define HF_EXPR_PARTIQL_TREE_H

#include "expr/partiql.h"
#include "expr/private.h"

enum { PQ_DEPTH_MAX = 128 };

/* ---- tokens --------------------------------------------------------------------------------- */

enum pq_token_kind {
    PQ_END,
    PQ_NAME,    /* a name that is no keyword */
    PQ_QUOTED,  /* "a name" */
    PQ_KEYWORD, /* any of the words that are no names */
    PQ_STRING,  /* 'text' */
    PQ_NUMBER,
    PQ_ION,        /* `...`, which is read only to be refused */
    PQ_QUESTION,   /* ? */
    PQ_OPERATOR,   /* = <> != < <= > >= + - * / % || */
    PQ_PUNCTUATION /* ( ) [ ] { } << >> , . : ; */
};

struct pq_token {
    uint16_t at;
    uint16_t len;
    uint16_t line;   /* from 1 on */
    uint16_t column; /* in characters, from 1 on */
    uint8_t kind;
};

/* The place of something, for messages. */
struct pq_place {
    uint16_t line;
    uint16_t column;
    uint16_t len; /* in characters */
};

/* ---- trees ---------------------------------------------------------------------------------- */

enum pq_kind {
    PQ_PATH,      /* `steps`: expressions behind the first name, see pq_step */
    PQ_LITERAL,   /* a string, a number, NULL, TRUE, FALSE, MISSING: `text`, by its `op` */
    PQ_PARAMETER, /* number `ref` of the parameters */
    PQ_LIST,      /* [...] and (a, b) */
    PQ_BAG,       /* <<...>> */
    PQ_TUPLE,     /* {...}: names and values in turn */
    PQ_CALL,      /* `text`(...) */
    PQ_STAR,      /* the operand of COUNT(*) */
    PQ_UNARY,     /* + or - of something that is no number */
    PQ_BINARY,    /* `text`: = <> < <= > >= + - * / % || LIKE; operands in a chain */
    PQ_BETWEEN,
    PQ_IN,
    PQ_IS, /* `text` is the type's name, upper case; the operand */
    PQ_NOT,
    PQ_AND,
    PQ_OR,
    PQ_SUBSELECT
};

enum pq_literal { PQ_TEXT, PQ_NUMERIC, PQ_NULL, PQ_TRUE, PQ_FALSE, PQ_MISSING, PQ_ION_TEXT };

struct pq_node {
    uint8_t kind;
    uint8_t op;    /* enum pq_literal */
    bool parens;   /* it stands in parentheses of its own */
    bool negative; /* of a number: a minus in front */
    bool unpivot;  /* of a path: it has .* or [*] */
    uint16_t ref;  /* of a parameter */
    size_t count;  /* of operands, or of steps */
    struct pq_place place;
    struct hf_str text;
    struct pq_node *first;
    struct pq_node *last;
    struct pq_node *next;
    struct expr_path path; /* filled in by the translation */
};

enum pq_change { PQ_SET, PQ_REMOVE };

/* One SET or REMOVE. */
struct pq_action {
    enum pq_change change;
    struct pq_node *target;
    struct pq_node *value; /* of a SET */
    struct pq_action *next;
};

struct pq_column {
    struct pq_node *value;
    bool alias;
    struct pq_column *next;
};

struct pq_order {
    struct pq_node *by;
    bool descending;
    struct pq_order *next;
};

/* A statement as it is written. */
struct pq_statement {
    enum statement_kind kind;
    const char *refused; /* it is well formed, but DynamoDB does not support it: why */
    bool refused_there;  /* with `refused_at` behind it */
    struct pq_place refused_at;
    bool all; /* SELECT * */
    struct pq_column *columns;
    struct pq_node *source; /* a path */
    bool alias;
    bool sources; /* more than one */
    struct pq_node *item;
    struct pq_action *actions;
    size_t actions_len;
    struct pq_node *where;
    struct pq_order *order;
    size_t order_len;
    enum statement_returns returns;
    bool returns_column;  /* RETURNING ALL OLD x */
    bool returns_several; /* RETURNING ..., ... */
    size_t params;        /* question marks */
    size_t nodes;         /* of the whole tree */
};

/* The tokens of a text, the last one PQ_END; fails when something is no token. */
enum hf_status hf__pq_lex(struct hf_scope *s, struct hf_str text, struct pq_token **tokens);

enum hf_status hf__pq_parse(struct hf_scope *s, struct hf_str text, struct pq_statement *out);

/* "Statement wasn't well formed, can't be processed: " and the text. */
enum hf_status hf__pq_malformed(struct hf_scope *s, const char *detail);

/* Is it a word of the grammar, in any case? */
bool hf__pq_keyword(struct hf_str word);
bool hf__pq_same_word(struct hf_str text, const char *word);

/* ---- the parser's state, for partiql_parse.c, partiql_term.c, partiql_operators.c ----------- */

struct pq_parser {
    struct hf_scope *s;
    struct hf_str text;
    const struct pq_token *token; /* the one being looked at */
    struct pq_statement *statement;
    size_t depth;
    enum hf_status status; /* the first failure; from then on every token is the end */
};

bool hf__pq_is(const struct pq_parser *p, const char *word);  /* a keyword */
bool hf__pq_at(const struct pq_parser *p, const char *sign);  /* an operator or punctuation */
bool hf__pq_take(struct pq_parser *p, const char *word);      /* and go on */
bool hf__pq_take_sign(struct pq_parser *p, const char *sign); /* and go on */
const struct pq_token *hf__pq_next(struct pq_parser *p); /* take the token; the last one stays */
void hf__pq_fail(struct pq_parser *p, const char *detail);
struct hf_str hf__pq_token_text(const struct pq_parser *p, const struct pq_token *token);
struct pq_place hf__pq_place(const struct pq_parser *p, const struct pq_token *token);

bool hf__pq_enter(struct pq_parser *p); /* one level deeper; false when that is too deep */

/* NULL exactly when the parser has failed. */
struct pq_node *hf__pq_expression(struct pq_parser *p);
struct pq_node *hf__pq_term(struct pq_parser *p);
struct pq_node *hf__pq_path(struct pq_parser *p, const char *otherwise);
void hf__pq_select(struct pq_parser *p, struct pq_statement *out);
struct pq_node *hf__pq_node(struct pq_parser *p, enum pq_kind kind, struct pq_place place);
void hf__pq_attach(struct pq_node *parent, struct pq_node *child);

/* ---- translation ---------------------------------------------------------------------------- */

/* The parameters of a statement. */
struct pq_params {
    const struct hf_value *values;
    size_t len;
};

/* A literal, or a parameter where one may stand, as a value. */
enum hf_status hf__pq_value(struct hf_scope *s, const struct pq_params *params,
                            const struct pq_node *node, struct hf_value *value);
bool hf__pq_is_value(const struct pq_node *node);

/* The tuple of an INSERT as an item. */
enum hf_status hf__pq_item(struct hf_scope *s, const struct pq_params *params,
                           const struct pq_node *tuple, struct hf_item *item);

/* Fill in node->path of a path. */
enum hf_status hf__pq_resolve_path(struct hf_scope *s, struct pq_node *node);

/* Programs from trees. */
enum hf_status hf__pq_condition(struct hf_scope *s, const struct pq_params *params,
                                struct pq_node *where, struct expr_bound **bound);
enum hf_status hf__pq_update(struct hf_scope *s, const struct pq_params *params,
                             const struct pq_statement *tree, struct expr_bound **bound);

/* Fail with the text and " at line:column:length". */
enum hf_status hf__pq_fail_at(struct hf_scope *s, struct pq_place place, const char *format, ...)
    HF_PRINTF(3, 4);

#endif
