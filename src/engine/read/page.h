/*
 * engine/read/page.h: reading items by range: what Query and Scan share.
 */
#ifndef HF_ENGINE_READ_PAGE_H
#define HF_ENGINE_READ_PAGE_H

#include "engine/engine.h"
#include "engine/table/schema.h"

enum { PAGE_BYTES_MAX = 1024 * 1024 }; /* bytes that Query or Scan reads for one page */

struct page_answer {
    const struct hf_item *items;
    size_t items_len;
    int64_t count;
    int64_t scanned;
    size_t bytes; /* of the items that were read */
    struct hf_item last;
    const struct hf_capacity *capacity;
};
/* One page of a prepared query or scan. */
enum hf_status hf__query_page(struct hf_scope *s, struct engine *e,
                              const struct prepared_page *page, struct page_answer *answer);
enum hf_status hf__scan_page(struct hf_scope *s, struct engine *e, const struct prepared_page *page,
                             struct page_answer *answer);
/* Find the index, and check Select as far as the request alone decides. */
enum hf_status hf__page_check(struct hf_scope *s, struct table *table,
                              const struct prepared_page *page, struct index **index);
/* Check projection, filter and Select against the schema. Keys and start key are checked before. */
enum hf_status hf__page_check_expressions(struct hf_scope *s, const struct table *table,
                                          const struct index *index,
                                          const struct prepared_page *page);
/* The stored keys in [lower, upper) of a table, or of one of its indexes, that a page is read from. */
struct page_range {
    struct table *table;
    struct index *index; /* NULL: the table */
    const struct prepared_page *page;
    struct hf_bytes lower;
    struct hf_bytes upper;
};
enum hf_status hf__page_read(struct hf_scope *s, struct engine *e, const struct page_range *range,
                             struct page_answer *answer);
/* Fail because nothing can follow this key: its partition has one item at most. */
enum hf_status hf__page_fail_restart(struct hf_scope *s, struct hf_item start);

/* The stored key that a start key stands for; checks its attributes and their types. */
enum hf_status hf__page_start_key(struct hf_scope *s, const struct table *table,
                                  const struct index *index, struct hf_item start,
                                  struct hf__buf *buf);

#endif
