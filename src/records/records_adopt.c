/*
 * records/records_adopt.c: records that other programs put.
 *
 * Whoever puts a record without this library writes its keys and Processed, and no ProcessedShard.
 * The index has no entry for it then, and neither a list nor a processor sees it. To adopt it is to
 * give it its place: one conditional write of that item. All of the table has to be read to find
 * such records: by hf_records_adopt() at once, or by a processor a page now and then.
 *
 *  (1) Only what has Processed and no place is changed, on the condition that it still is so. Any
 *      number may adopt at once.
 *  (2) A record that is adopted starts over, like one that was reset. What other programs keep in
 *      it stays.
 */
#include <holdfast/pages.h>

#include "records/records.h"

#define PLACELESS "attribute_not_exists(#shard) AND #processed = :zero"
#define PLACELESS_OR_DONE "attribute_not_exists(#shard) AND #processed IN (:zero, :one)"
#define KEYS_AND_STATE "#account, #run_time, #processed"

/* Processed records have a place where the index has them, too. */
static struct hf_scan placeless_scan(struct hf_scope *s, const struct hf_records *records)
{
    const char *filter = records->index_processed ? PLACELESS_OR_DONE : PLACELESS;
    struct hf_item zero = HF_ITEM(s, HF_N(":zero", 0));

    return (struct hf_scan){
        .table = records->table,
        .filter = hf_str_from(filter),
        .projection = HF_STR(KEYS_AND_STATE),
        .names = hf__records_names(s, records, filter, KEYS_AND_STATE),
        .values = records->index_processed ? HF_ITEM(s, HF_N(":zero", 0), HF_N(":one", 1)) : zero,
    };
}

/* (1) HF_CONDITION: it has a place by now, or is in another state. */
static enum hf_status record_adopt(struct hf_scope *s, struct hf_records *records,
                                   struct hf_item found)
{
    struct record_key key = hf__records_key_of(records, found);
    struct pattern_id id = hf__pattern_id_make(&records->env);
    struct hf_update_item update;
    struct hf_item item;
    int64_t processed = 0;
    enum hf_status status;

    (void)hf_value_i64(hf_item_get(found, records->processed), &processed);
    update =
        processed
            ? hf__records_request(
                  s, records, RECORD_ADOPT_DONE, key,
                  HF_ITEM(s, HF_N(":one", 1),
                          HF_S(":shard", hf__records_place(s, records, HF_RECORD_PROCESSED, key))))
            : hf__records_request(s, records, RECORD_ADOPT, key,
                                  hf__records_again_values(s, records, key, id_str(&id)));
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, records->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status == HF_CONDITION && hf_str_equal(hf__records_put_id(item), id_str(&id)))
        return HF_OK; /* it was done, and its answer got lost */
    return status;
}

static enum hf_status adopt_and_count(struct hf_scope *s, struct hf_records *records,
                                      struct hf_item found, uint64_t *count)
{
    enum hf_status status = record_adopt(s, records, found);

    if (status != HF_OK && status != HF_CONDITION)
        return status;
    *count += status == HF_OK;
    return hf_scope_ok(s);
}

enum hf_status hf_records_adopt(struct hf_scope *s, struct hf_records *records, uint64_t *count)
{
    struct hf_scan scan = placeless_scan(s, records);
    enum hf_status status;
    struct hf_pages *pages;
    struct hf_item item;
    uint64_t adopted = 0;

    if (count)
        *count = 0;
    scan.consistent = HF_YES;
    TRY(hf_scope_built(s));
    TRY(hf_pages_scan(s, records->db, &scan, NULL, &pages));
    do {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = hf_pages_next_item(s, pages, &item);
        if (status != HF_OK || !item.ptr)
            break;
        status = adopt_and_count(s, records, item, &adopted);
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    } while (status == HF_OK);
    hf_pages_free(pages);
    if (count)
        *count = adopted;
    return status;
}

enum hf_status hf__records_adopt_page(struct hf_scope *s, struct hf_records *records,
                                      struct hf_item start, uint32_t limit, uint64_t *count,
                                      struct hf_item *last)
{
    struct hf_scan scan = placeless_scan(s, records);
    struct hf_scan_result page;

    *count = 0;
    *last = (struct hf_item){0};
    scan.start = start;
    scan.limit = limit;
    TRY(hf_scope_built(s));
    TRY(hf_scan(s, records->db, &scan, &page));
    for (size_t i = 0; i < page.items_len; i++)
        TRY(adopt_and_count(s, records, page.items[i], count));
    *last = page.last;
    return HF_OK;
}
