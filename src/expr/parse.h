/*
 * expr/parse.h: the parser's state, between compile.c, which owns it, and parse.c, which runs it.
 */
#ifndef HF_EXPR_PARSE_H
#define HF_EXPR_PARSE_H

#include "expr/private.h"

/* What may be wrong with a text that has no syntax error. The first of each kind is kept. */
enum finding {
    FOUND_PARENTHESES,
    FOUND_FUNCTION,    /* unknown */
    FOUND_NOT_ALLOWED, /* not in this kind of expression */
    FOUND_MISUSE,      /* not in this place */
    FOUND_RESERVED,
    FOUND_SECTION,
    FOUND_INDEX,
    FOUND_DEPTH,
    FOUND_TYPE, /* size() of size() */
    FINDINGS
};

/* What waits for its operands to be complete. */
enum slot {
    SLOT_BASE,
    SLOT_PAREN,
    SLOT_CALL,
    SLOT_LIST, /* of IN */
    SLOT_NOT,
    SLOT_AND,
    SLOT_OR,
    SLOT_COMPARE,
    SLOT_LOW, /* of BETWEEN */
    SLOT_HIGH,
    SLOT_SUM
};

struct waiting {
    uint16_t node;     /* under construction */
    uint8_t slot;      /* enum slot */
    bool operand_only; /* no condition may come here */
};

struct parser {
    struct hf_str text; /* the program's own copy */
    struct expr *expr;
    size_t at;  /* the token being looked at */
    size_t bad; /* the token of the syntax error */
    unsigned operators;
    size_t values_len;
    size_t aliases_len;
    size_t depth; /* of the stack */
    bool found[FINDINGS];
    size_t found_at[FINDINGS];                /* token, or for FOUND_DEPTH the depth */
    struct token tokens[EXPR_TEXT_MAX + 1];   /* the last is TOKEN_END */
    struct waiting stack[EXPR_TEXT_MAX + 1];  /* every entry stands for a token, but the first */
    uint16_t value_tokens[EXPR_TEXT_MAX / 2]; /* where each value was used */
    uint16_t alias_tokens[EXPR_TEXT_MAX / 2];
};

/* False on a syntax error at token p->bad. */
bool hf__expr_parse_condition(struct parser *p);
bool hf__expr_parse_update(struct parser *p);
bool hf__expr_parse_projection(struct parser *p);

static inline struct hf_str hf__expr_token_text(const struct parser *p, size_t token)
{
    return hf_str_of(p->text.ptr + p->tokens[token].at, p->tokens[token].len);
}

#endif
