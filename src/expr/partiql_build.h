/*
 * expr/partiql_build.h: a program under construction, between partiql_build.c, which has
 * conditions, and partiql_update.c.
 */
#ifndef HF_EXPR_PARTIQL_BUILD_H
#define HF_EXPR_PARTIQL_BUILD_H

#include "expr/partiql_tree.h"

/* Behind so many no operator begins; a single one adds less than half of what 16 bits leave. */
enum { NODES_MAX = 16384 };

struct builder {
    struct hf_scope *s;
    const struct pq_params *params;
    struct expr *expr;
    struct expr_bound *bound;
    struct hf__buf nodes;  /* struct node */
    struct hf__buf paths;  /* struct expr_path */
    struct hf__buf values; /* struct hf_value */
    unsigned operators;
};

enum hf_status hf__pq_start(struct hf_scope *s, const struct pq_params *params, struct builder *b);

/* The program is complete: it takes over its nodes, paths and values. */
enum hf_status hf__pq_end(struct builder *b);

/* Nodes by number; NO_NODE when memory ran out, which hf__pq_end() reports. */
uint16_t hf__pq_add_node(struct builder *b, enum node_kind kind, unsigned op, size_t ref);
uint16_t hf__pq_add_two(struct builder *b, enum node_kind kind, unsigned op, uint16_t first,
                        uint16_t second);
uint16_t hf__pq_add_value(struct builder *b, struct hf_value value);
void hf__pq_add_operand(struct builder *b, uint16_t parent, uint16_t child);

/* One operator more; fails when there are too many. */
enum hf_status hf__pq_count(struct builder *b);

/* A path, a value or size(). */
enum hf_status hf__pq_operand(struct builder *b, struct pq_node *node, uint16_t *out);

enum function hf__pq_function(const struct pq_node *call);
enum hf_status hf__pq_fail_function(struct builder *b, const struct pq_node *call);
bool hf__pq_is_missing(const struct pq_node *node);

#endif
