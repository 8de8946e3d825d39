/*
 * engine/item/capacity.h: consumed capacity, and ItemCollectionMetrics.
 */
#ifndef HF_ENGINE_ITEM_CAPACITY_H
#define HF_ENGINE_ITEM_CAPACITY_H

#include "engine/item/change.h"
#include "engine/table/schema.h"

double hf__read_units(size_t bytes, bool consistent);
double hf__write_units(size_t before, size_t after);

/* Units of one table while an operation adds them up. */
struct usage {
    const struct table *table;
    struct hf_str named; /* as the request named it: its name or its ARN */
    double table_units;
    double index_units[INDEXES_MAX];
    bool index_used[INDEXES_MAX];
    bool transaction; /* the answer reports read and write units separately */
    bool write;
};
/* The usage of a table in a transaction's list, which has room for it; added if it is missing. */
struct usage *hf__usage_of(struct usage *usages, size_t *len, const struct table *table,
                           struct hf_str named);
void hf__usage_add_change(struct usage *usage, const struct change *change, double table_factor);

/* ConsumedCapacity; NULL when it was not asked for. */
const struct hf_capacity *hf__usage_capacity(struct hf_scope *s, const struct usage *usage,
                                             enum hf_return_capacity asked);

/* Add the cost of a further part of one operation on the same table. */
enum hf_status hf__capacity_add(struct hf_scope *s, struct hf_capacity *sum,
                                const struct hf_capacity *more);

/* ItemCollectionMetrics; NULL when not asked for, or the table has no local index. */
const struct hf_collection_metrics *hf__collection_metrics(struct hf_scope *s,
                                                           const struct table *table,
                                                           enum hf_return_metrics asked,
                                                           struct hf_item item);

#endif
