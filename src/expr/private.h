/*
 * expr/private.h: programs, and what the files of this folder share.
 *
 * A program is a pool of nodes that refer to each other by number:
 *
 *     PATH       a document path, number `ref` of the program's paths
 *     VALUE      a placeholder for a value, number `ref` of the program's values
 *     CALL       a function; its operands are a chain from `first` on
 *     COMPARE    = <> < <= > >=, BETWEEN, IN; operands likewise
 *     SUM        + or - of an update; two operands
 *     LOGIC      AND, OR, NOT; one or two operands
 *
 * What is tested against items are the leaves: COMPARE nodes, and CALL nodes that are conditions,
 * in reading order. Each leaf says which leaf comes next when it holds and when it does not, always
 * a later one or the end; so matching is one loop, stops as early as it can, and does not recurse.
 *
 * What always holds for a compiled program:
 *
 *  (1) It refers to nothing outside of its scope and is never changed.
 *  (2) Numbers fit 16 bits, since a text has at most EXPR_TEXT_MAX bytes.
 *  (3) Operands nest in bounds: in conditions the only call among operands is size() of something
 *      that is no call; in updates calls nest only through the last operand of if_not_exists() and
 *      through one list_append(). LOGIC nests at most EXPR_OPERATORS_MAX deep, and so do the calls
 *      and sums of statements.
 *  (4) No path has more than EXPR_PATH_MAX steps, no bare name is a keyword or reserved word.
 *  (5) Aliases (#n) and values (:v) are listed once each, in the order of their bytes, which is
 *      the order in which a request's names and values lie in their items.
 */
#ifndef HF_EXPR_PRIVATE_H
#define HF_EXPR_PRIVATE_H

#include "expr/expr.h"
#include "expr/texts.h"

/* ---- tokens --------------------------------------------------------------------------------- */

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,    /* a, attribute_exists */
    TOKEN_KEYWORD, /* in any case */
    TOKEN_ALIAS,   /* #a */
    TOKEN_VALUE,   /* :a */
    TOKEN_NUMBER,  /* of a list index */
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_INDEX_OPEN,
    TOKEN_INDEX_CLOSE,
    TOKEN_COMMA,
    TOKEN_DOT,
    TOKEN_EQ, /* comparators in the order of enum compare */
    TOKEN_NE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_GT,
    TOKEN_GE,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_BAD /* a character that begins no token */
};

/* Those of updates behind the others, in the order of enum section. */
enum keyword {
    KEYWORD_NONE,
    KEYWORD_AND,
    KEYWORD_OR,
    KEYWORD_NOT,
    KEYWORD_BETWEEN,
    KEYWORD_IN,
    KEYWORD_SET,
    KEYWORD_REMOVE,
    KEYWORD_ADD,
    KEYWORD_DELETE
};

struct token {
    uint16_t at;
    uint16_t len;
    uint8_t kind;
    uint8_t keyword;
};

/* What was found, so that the program can be allocated in one piece. */
struct token_counts {
    size_t all;
    size_t names; /* and aliases */
    size_t aliases;
    size_t values;
    size_t steps; /* names, aliases, numbers */
};

/* `tokens` has room for EXPR_TEXT_MAX + 1; the last one is TOKEN_END. */
struct token_counts hf__expr_lex(struct hf_str text, struct token *tokens);

/* ---- programs ------------------------------------------------------------------------------- */

enum node_kind { NODE_PATH, NODE_VALUE, NODE_CALL, NODE_COMPARE, NODE_SUM, NODE_LOGIC };

enum compare { OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_BETWEEN, OP_IN };
enum sum { OP_PLUS, OP_MINUS };
enum logic { OP_AND, OP_OR, OP_NOT };

enum function {
    FUNCTION_NONE, /* no function has that name */
    FUNCTION_ATTRIBUTE_EXISTS,
    FUNCTION_ATTRIBUTE_NOT_EXISTS,
    FUNCTION_ATTRIBUTE_TYPE,
    FUNCTION_BEGINS_WITH,
    FUNCTION_CONTAINS,
    FUNCTION_SIZE,
    FUNCTION_IF_NOT_EXISTS,
    FUNCTION_LIST_APPEND,
    FUNCTION_NOT_CONTAINS /* the legacy operator: the attribute is there and does not contain */
};

enum { NO_NODE = UINT16_MAX, LEAF_ACCEPT = UINT16_MAX, LEAF_REJECT = UINT16_MAX - 1 };

struct node {
    uint8_t kind;
    uint8_t op;     /* enum compare, sum, logic or function */
    uint16_t count; /* of operands */
    uint16_t first; /* operand */
    uint16_t last;  /* operand */
    uint16_t next;  /* the operand behind this one, of the same parent */
    uint16_t ref;   /* path or value */
};

struct leaf {
    uint16_t node;
    uint16_t yes; /* the leaf to go to when this one holds */
    uint16_t no;
};

enum section { SECTION_SET, SECTION_REMOVE, SECTION_ADD, SECTION_DELETE };

/* One change of an update. */
struct action {
    uint8_t section;
    bool legacy;     /* ADD accepts lists; other texts */
    uint16_t path;   /* its target */
    uint16_t target; /* its number among the targets, in reading order */
    uint16_t value;  /* node; NO_NODE for REMOVE */
};

struct expr {
    enum expr_kind kind;
    uint16_t root; /* of a condition */
    struct node *nodes;
    size_t nodes_len;
    struct leaf *leaves;
    size_t leaves_len;
    struct expr_path *paths;
    size_t paths_len;
    struct expr_step *steps; /* of all paths; an alias still has its "#n" as name */
    uint16_t *step_aliases;  /* per step: number of the alias + 1, or 0 */
    size_t steps_len;
    struct hf_str *aliases;
    size_t aliases_len;
    struct hf_str *values;
    size_t values_len;
    struct action *actions;
    size_t actions_len;
};

/* One column of a SELECT: what lies at `head`, or of that only where its paths lead to. */
struct expr_column {
    struct hf_str name;
    struct expr_path head;
    size_t from; /* its paths, in the order of the listed ones */
    size_t to;
};

struct expr_bound {
    const struct expr *expr;
    const struct expr_path *paths;
    const struct hf_value *values;  /* by number */
    const struct expr_path *listed; /* targets of an update, paths of a projection */
    const uint16_t *order;          /* those in the order of their steps */
    size_t listed_len;
    const struct expr_column *columns; /* of a SELECT: how the listed paths are shown */
    size_t columns_len;
    struct expr_key_term *terms;
    size_t terms_len;
};

static inline const struct node *hf__expr_node(const struct expr *expr, uint16_t number)
{
    assert(number < expr->nodes_len);
    return &expr->nodes[number];
}

/* List the leaves under the root, in reading order, into expr->leaves, which has room for them. */
void hf__expr_link_leaves(struct expr *expr);

/* ---- shared --------------------------------------------------------------------------------- */

/*
 * Fail with "Invalid <Kind>Expression: " and the text. The one door for them, so that another
 * wording (hf__scope_wording()) has one place to be chosen in.
 */
enum hf_status hf__expr_fail(struct hf_scope *s, enum expr_kind kind, const char *format, ...)
    HF_PRINTF(3, 4);

enum function hf__expr_function(struct hf_str name);
const char *hf__expr_function_name(enum function function);
const char *hf__expr_compare_name(enum compare compare);
const char *hf__expr_section_name(enum section section);

/* Sort numbers; `compare` orders two of them. Takes n log n steps whatever the input. */
typedef int order_fn(const void *context, uint16_t a, uint16_t b);
void hf__expr_sort(uint16_t *numbers, size_t len, order_fn *compare, const void *context);

/* Order of paths: step by step, indexes before names, a prefix before what it begins. */
int hf__expr_path_compare(const struct expr_path *a, const struct expr_path *b);

/* "[a, b, [1]]"; absent without memory. */
struct hf_str hf__expr_path_text(struct hf_scope *s, const struct expr_path *path);

/* Put `listed` in order, and refuse paths that overlap or conflict. */
enum hf_status hf__expr_order_paths(struct hf_scope *s, enum expr_kind kind,
                                    struct expr_bound *bound);

/*
 * The listed paths [from, to) of the order that go through one container, `depth` steps deep. As
 * those with equal steps are neighbours, shares of shares make a tree of the paths.
 */
struct share {
    const struct expr_bound *bound;
    size_t from;
    size_t to;
    size_t depth;
};

static inline const struct expr_path *hf__path_share_path(const struct share *share, size_t at)
{
    return &share->bound->listed[share->bound->order[at]];
}

static inline const struct expr_step *hf__path_share_step(const struct share *share, size_t at)
{
    return &hf__path_share_path(share, at)->steps[share->depth];
}

/* Does the path go through the member (0), before it (< 0) or after it (> 0)? */
static inline int hf__path_share_against(const struct share *share, size_t at,
                                         const struct value_walk *walk, uint32_t index)
{
    const struct expr_step *step = hf__path_share_step(share, at);

    if (walk->type == HF_TYPE_L)
        return (step->index > index) - (step->index < index);
    return bytes_compare(step->name.ptr, step->name.len, walk->name.ptr, walk->name.len);
}

/* ---- find.c --------------------------------------------------------------------------------- */

enum {
    FINDER_NODES = 16,     /* expressions with that many nodes or actions have a finder */
    FINDER_MEMBERS = 64,   /* a finder remembers containers with that many members */
    FINDER_CONTAINERS = 4, /* containers that a finder remembers at a time */
    FINDER_NOTES = 512     /* places that it remembers of each container, at most */
};

struct finder_note {
    const uint8_t *ptr; /* the container; NULL: none */
    uint32_t count;     /* its members */
    uint32_t stride;    /* one of `stride` members is in `at` */
    uint32_t at[FINDER_NOTES];
};

struct expr_finder {
    struct finder_note notes[FINDER_CONTAINERS];
    unsigned next; /* the note that is replaced next */
};

void hf__expr_finder_begin(struct expr_finder *finder);
/* The finder may be NULL. Absent when there is none; any value may be given. */
struct hf_value hf__expr_find_name(struct expr_finder *finder, struct hf_value map,
                                   struct hf_str name);
struct hf_value hf__expr_find_index(struct expr_finder *finder, struct hf_value list,
                                    uint32_t index);
bool hf__expr_find_element(struct expr_finder *finder, struct hf_value set, struct hf_bytes bytes);

/* What lies at the path; none when it leads nowhere. */
struct hf_value hf__expr_resolve(struct expr_finder *finder, struct hf_item item,
                                 const struct expr_path *path);

/* Is one value contained in the other as contains() judges it? */
bool hf__expr_contains(struct expr_finder *finder, struct hf_value container,
                       struct hf_value element);

/* Fail when the path, by its number, has an alias that the request does not define. */
enum hf_status hf__expr_check_names(struct hf_scope *s, const struct expr_bound *bound,
                                    size_t path);

/* Checks of bind.c that have files of their own. */
enum hf_status hf__expr_check_condition(struct hf_scope *s, const struct expr_bound *bound);
enum hf_status hf__expr_check_update(struct hf_scope *s, const struct expr_bound *bound);
enum hf_status hf__expr_key_extract(struct hf_scope *s, struct expr_bound *bound);

/* The list itself, for tests. */
size_t hf__expr_reserved_words(const char *const **list);

#endif
