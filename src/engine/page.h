/*
 * engine/page.h: reading items by range: what Query and Scan share.
 */
#ifndef HF_ENGINE_PAGE_H
#define HF_ENGINE_PAGE_H

#include "engine/engine.h"
#include "engine/schema.h"

enum { PAGE_BYTES_MAX = 1024 * 1024 }; /* that Query or Scan looks at in one page */

struct page_answer {
    const struct hf_item *items;
    size_t items_len;
    int64_t count;
    int64_t scanned;
    size_t bytes; /* looked at */
    struct hf_item last;
    const struct hf_capacity *capacity;
};
/* One page of a prepared query or scan. */
enum hf_status hf__query_page(struct hf_scope *s, struct engine *e,
                              const struct prepared_page *page, struct page_answer *answer);
enum hf_status hf__scan_page(struct hf_scope *s, struct engine *e, const struct prepared_page *page,
                             struct page_answer *answer);
/* The index, and what Select says to the request alone. */
enum hf_status hf__page_check(struct hf_scope *s, struct table *table,
                              const struct prepared_page *page, struct index **index);
/* Projection, filter and Select against the schema; comes behind the keys and the start key. */
enum hf_status hf__page_check_expressions(struct hf_scope *s, const struct table *table,
                                          const struct index *index,
                                          const struct prepared_page *page);
/* Read one page of the keys in [lower, upper). */
enum hf_status hf__page_read(struct hf_scope *s, struct engine *e, struct table *table,
                             struct index *index, const struct prepared_page *page,
                             struct hf_bytes lower, struct hf_bytes upper,
                             struct page_answer *answer);
/* Fail because what was read has nothing behind this key: a partition of one item. */
enum hf_status hf__page_fail_restart(struct hf_scope *s, struct hf_item start);

/* The stored key that a start key stands for; checks its attributes and their types. */
enum hf_status hf__page_start_key(struct hf_scope *s, const struct table *table,
                                  const struct index *index, struct hf_item start,
                                  struct hf__buf *buf);

#endif
