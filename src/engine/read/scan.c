/*
 * engine/read/scan.c: Scan: all items of a table or an index, or one segment of them.
 *
 * Partitions lie in the order of their 64-bit hashes, so segment i of n is the n-th part of the
 * hashes; segments are disjoint and cover the table whatever n is.
 */
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/operations.h"
#include "engine/read/page.h"
#include "engine/table/catalog.h"
#include "ops/prepare.h"
#include "store/store.h"

__extension__ typedef unsigned __int128 u128;

/* The least hash of segment `number` of `total`; only called for number < total. */
static uint64_t segment_begin(int64_t number, int64_t total)
{
    u128 space = (u128)1 << 64;

    return (uint64_t)((space * (u128)number + (u128)total - 1) / (u128)total);
}

static void put_bound(struct hf__buf *buf, uint8_t space, uint32_t id, uint64_t hash)
{
    uint8_t bytes[8];

    hf__stored_key_prefix(buf, space, id);
    store_u64be(bytes, hash);
    hf__buf_put(buf, bytes, sizeof(bytes));
}

static enum hf_status apply_start(struct hf_scope *s, const struct table *table,
                                  const struct index *index, const struct prepared_page *page,
                                  struct hf__buf *lower, const struct hf__buf *upper)
{
    struct hf__buf start = {.scope = s};

    if (!page->start.ptr)
        return HF_OK;
    TRY(hf__page_start_key(s, table, index, page->start, &start));
    if (bytes_compare(start.ptr, start.len, lower->ptr, lower->len) < 0 ||
        bytes_compare(start.ptr, start.len, upper->ptr, upper->len) >= 0)
        return hf__fail(s, HF_INVALID,
                        "The provided starting key is invalid: Invalid ExclusiveStartKey. Please "
                        "use ExclusiveStartKey with correct Segment. TotalSegments: %lld Segment: "
                        "%lld",
                        (long long)page->total_segments, (long long)page->segment);
    hf__buf_put_byte(&start, 0); /* the least key that is greater */
    *lower = start;
    return start.failed ? hf__fail_nomem(s) : HF_OK;
}

static enum hf_status scan_locked(struct hf_scope *s, struct engine *e,
                                  const struct prepared_page *page, struct page_answer *answer)
{
    struct table *table;
    struct index *index;
    struct hf__buf lower = {.scope = s};
    struct hf__buf upper = {.scope = s};
    uint8_t space;
    uint32_t id;

    TRY(hf__catalog_item_table(s, e, page->table, &table));
    TRY(hf__page_check(s, table, page, &index));
    space = index ? SPACE_INDEX : SPACE_ITEM;
    id = index ? index->id : table->id;
    put_bound(&lower, space, id, segment_begin(page->segment, page->total_segments));
    if (page->segment + 1 < page->total_segments)
        put_bound(&upper, space, id, segment_begin(page->segment + 1, page->total_segments));
    else
        hf__stored_key_prefix(&upper, space, id + 1);
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    TRY(apply_start(s, table, index, page, &lower, &upper));
    TRY(hf__page_check_expressions(s, table, index, page));
    return hf__page_read(s, e,
                         &(struct page_range){.table = table,
                                              .index = index,
                                              .page = page,
                                              .lower = hf_bytes_of(lower.ptr, lower.len),
                                              .upper = hf_bytes_of(upper.ptr, upper.len)},
                         answer);
}

enum hf_status hf__scan_page(struct hf_scope *s, struct engine *e, const struct prepared_page *page,
                             struct page_answer *answer)
{
    enum hf_status status;

    pthread_rwlock_rdlock(&e->schema);
    status = scan_locked(s, e, page, answer);
    pthread_rwlock_unlock(&e->schema);
    if (status == HF_OK && page->consistent)
        status = hf__engine_wait_durable_seen(s, e, hf__store_written(e->store));
    return status;
}

enum hf_status hf__engine_scan(struct hf_scope *s, struct engine *e, const struct hf_scan *request,
                               struct hf_scan_result *result)
{
    struct prepared_page page;
    struct page_answer answer = {.count = 0};
    enum hf_status status;

    TRY(hf__prepare_scan(s, e->cache, request, &page));
    status = hf__scan_page(s, e, &page, &answer);
    *result = (struct hf_scan_result){.items = answer.items,
                                      .items_len = answer.items_len,
                                      .count = answer.count,
                                      .scanned_count = answer.scanned,
                                      .last = answer.last,
                                      .capacity = answer.capacity};
    return status;
}
