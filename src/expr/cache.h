/*
 * expr/cache.h: compiled programs, kept by kind and text, shared by threads. Bounded; a program
 * that is in use stays until its user is done.
 */
#ifndef HF_EXPR_CACHE_H
#define HF_EXPR_CACHE_H

#include "expr/expr.h"

struct hf__expr_cache;

struct hf__expr_cache *hf__expr_cache_new(const struct hf_env *env);
void hf__expr_cache_free(struct hf__expr_cache *cache);

/*
 * Compile, or find what was compiled before. The program is valid until hf__expr_cache_free(), or
 * lives in the scope when the cache is NULL, full, or out of memory.
 */
enum hf_status hf__expr_cached(struct hf_scope *s, struct hf__expr_cache *cache,
                               enum expr_kind kind, struct hf_str text, const struct expr **expr);

#endif
