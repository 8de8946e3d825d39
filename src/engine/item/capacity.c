/*
 * engine/item/capacity.c: consumed capacity, as DynamoDB counts it.
 *
 * A read costs one unit per 4 KiB begun, half of that when it need not be consistent. A write costs
 * one unit per KiB begun of the larger of the item before and after; and for each index one unit
 * per KiB of an entry that is written or removed, nothing for an entry that stays as it is.
 * Transactions cost twice as much on the table itself.
 */
#include "engine/item/capacity.h"
#include "engine/table/schema.h"

enum { READ_BLOCK = 4096, WRITE_BLOCK = 1024 };

static double count_blocks(size_t bytes, size_t block)
{
    size_t count = (bytes + block - 1) / block;

    return count ? (double)count : 1.0;
}

double hf__read_units(size_t bytes, bool consistent)
{
    return count_blocks(bytes, READ_BLOCK) * (consistent ? 1.0 : 0.5);
}

double hf__write_units(size_t before, size_t after)
{
    return count_blocks(before > after ? before : after, WRITE_BLOCK);
}

struct usage *hf__usage_of(struct usage *usages, size_t *len, const struct table *table,
                           struct hf_str named)
{
    for (size_t i = 0; i < *len; i++)
        if (usages[i].table == table)
            return &usages[i];
    usages[*len] = (struct usage){.table = table, .named = named, .transaction = true};
    return &usages[(*len)++];
}

void hf__usage_add_change(struct usage *usage, const struct change *change, double table_factor)
{
    assert(!usage->table || usage->table == change->table);
    assert(change->units >= 1.0 && table_factor >= 1.0);
    usage->table = change->table;
    usage->table_units += change->units * table_factor;
    usage->write = true;
    for (size_t i = 0; change->indexes && i < change->table->indexes_len; i++) {
        if (change->indexes[i].units > 0) {
            usage->index_units[i] += change->indexes[i].units;
            usage->index_used[i] = true;
        }
    }
}

static void fill_part(struct hf_capacity_part *part, const struct usage *usage, double units)
{
    part->units = units;
    if (usage->transaction && usage->write)
        part->write_units = units;
    else if (usage->transaction)
        part->read_units = units;
}

/* The units of the local, or of the global indexes that were used. */
static const struct hf_capacity_part *index_parts(struct hf_scope *s, const struct usage *usage,
                                                  bool local, size_t *len)
{
    const struct table *table = usage->table;
    struct hf_capacity_part *parts = hf__scope_array(s, table->indexes_len, sizeof(*parts));

    *len = 0;
    for (size_t i = 0; parts && i < table->indexes_len; i++) {
        if (table->indexes[i].local != local || !usage->index_used[i])
            continue;
        parts[*len].name = hf_scope_copy(s, table->indexes[i].name);
        fill_part(&parts[*len], usage, usage->index_units[i]);
        (*len)++;
    }
    return *len ? parts : NULL;
}

const struct hf_capacity *hf__usage_capacity(struct hf_scope *s, const struct usage *usage,
                                             enum hf_return_capacity asked)
{
    struct hf_capacity *capacity;
    struct hf_capacity_part *part;

    assert(usage->table && usage->table_units >= 0);
    if (asked != HF_CAPACITY_TOTAL && asked != HF_CAPACITY_INDEXES)
        return NULL;
    capacity = hf__scope_array(s, 1, sizeof(*capacity));
    if (!capacity)
        return NULL;
    capacity->table = hf_scope_copy(s, usage->named.ptr ? usage->named : usage->table->name);
    capacity->units = usage->table_units;
    for (size_t i = 0; i < usage->table->indexes_len; i++)
        capacity->units += usage->index_units[i];
    if (usage->transaction && usage->write)
        capacity->write_units = capacity->units;
    else if (usage->transaction)
        capacity->read_units = capacity->units;
    if (asked == HF_CAPACITY_TOTAL)
        return capacity;
    capacity->local_indexes = index_parts(s, usage, true, &capacity->local_indexes_len);
    capacity->global_indexes = index_parts(s, usage, false, &capacity->global_indexes_len);
    /* also when the index provided everything: zero units */
    part = hf__scope_array(s, 1, sizeof(*part));
    if (part)
        fill_part(part, usage, usage->table_units);
    capacity->table_part = part;
    return capacity;
}

const struct hf_collection_metrics *hf__collection_metrics(struct hf_scope *s,
                                                           const struct table *table,
                                                           enum hf_return_metrics asked,
                                                           struct hf_item item)
{
    static const double range[2] = {0, 1};
    struct hf_collection_metrics *metrics;
    struct key_schema hash_only = table->key;
    bool has_local = false;

    for (size_t i = 0; i < table->indexes_len; i++)
        has_local = has_local || table->indexes[i].local;
    if (asked != HF_METRICS_SIZE || !has_local)
        return NULL;
    metrics = hf__scope_array(s, 1, sizeof(*metrics));
    if (!metrics)
        return NULL;
    hash_only.range_len = 0;
    metrics->key = hf__schema_key_item(s, &hash_only, item);
    metrics->size_range_gb = range;
    metrics->size_range_gb_len = 2;
    return metrics;
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* Merge two lists; units of the same index are added up. */
static enum hf_status add_parts(struct hf_scope *s, const struct hf_capacity_part **sum,
                                size_t *sum_len, const struct hf_capacity_part *more,
                                size_t more_len)
{
    struct hf_capacity_part *parts;
    size_t len = *sum_len;

    if (!more_len)
        return HF_OK;
    parts = hf__scope_array(s, len + more_len, sizeof(*parts));
    if (!parts)
        return hf__fail_nomem(s);
    if (len)
        memcpy(parts, *sum, len * sizeof(*parts));
    for (size_t i = 0; i < more_len; i++) {
        size_t at = 0;

        while (at < len && !hf_str_equal(parts[at].name, more[i].name))
            at++;
        if (at == len) {
            parts[len++] = more[i];
            continue;
        }
        parts[at].units += more[i].units;
        parts[at].read_units += more[i].read_units;
        parts[at].write_units += more[i].write_units;
    }
    *sum = parts;
    *sum_len = len;
    return HF_OK;
}

enum hf_status hf__capacity_add(struct hf_scope *s, struct hf_capacity *sum,
                                const struct hf_capacity *more)
{
    size_t tables = sum->table_part != NULL;

    assert(sum != more && more->units >= 0);
    sum->units += more->units;
    sum->read_units += more->read_units;
    sum->write_units += more->write_units;
    TRY(add_parts(s, &sum->table_part, &tables, more->table_part, more->table_part != NULL));
    TRY(add_parts(s, &sum->local_indexes, &sum->local_indexes_len, more->local_indexes,
                  more->local_indexes_len));
    return add_parts(s, &sum->global_indexes, &sum->global_indexes_len, more->global_indexes,
                     more->global_indexes_len);
}
