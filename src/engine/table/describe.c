/*
 * engine/table/describe.c: descriptions of tables, and the operations that only read the catalog.
 */
#include "base/buf.h"
#include "engine/item/counts.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/table/tables.h"
#include "engine/table/throughput.h"
#include "ops/fields.h"
#include "ops/prepare.h"

#include "wire/wire.h"

static int64_t count_shown(atomic_llong *value)
{
    long long count = atomic_load_explicit(value, memory_order_relaxed);

    return count > 0 ? count : 0;
}

static enum hf_billing billing_of(const struct hf_table_description *d)
{
    return d->billing ? d->billing->billing : HF_BILLING_PROVISIONED;
}

/* The throughput of a global index as it is today. */
static enum hf_status describe_throughput(struct hf_scope *s, enum hf_billing billing,
                                          int64_t now_us, struct hf_index_description *d)
{
    struct throughput_of of = {d->warm_throughput, d->throughput, billing};

    TRY(hf__on_demand_merge(s, d->on_demand_throughput, NULL, &d->on_demand_throughput));
    d->warm_throughput = hf__warm_describe(s, of);
    if (d->throughput)
        d->throughput = hf__throughput_today(s, d->throughput, now_us);
    return d->warm_throughput && (!of.units || d->throughput) ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status describe_indexes(struct hf_scope *s, struct table *table, bool filling,
                                       int64_t now_us, const struct hf_index_description *from,
                                       size_t len, const struct hf_index_description **out)
{
    struct hf_index_description *copies;

    if (len == 0)
        return HF_OK;
    copies = hf__scope_array(s, len, sizeof(*copies));
    if (!copies)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        struct index *index = hf__table_index(table, from[i].name);

        assert(index && index->counts);
        copies[i] = from[i];
        copies[i].item_count = count_shown(&index->counts->items);
        copies[i].size_bytes = count_shown(&index->counts->bytes);
        if (!index->local)
            TRY(describe_throughput(s, billing_of(table->record.description), now_us, &copies[i]));
        if (!index->local && !filling) {
            copies[i].status = index->building ? HF_TABLE_CREATING : HF_TABLE_ACTIVE;
            copies[i].backfilling = index->building ? HF_YES : HF_UNSET;
        }
    }
    *out = copies;
    return HF_OK;
}

/* A copy that does not point into this version of the table, which may be replaced. */
static enum hf_status copy_description(struct hf_scope *s, const struct hf_table_description *d,
                                       const struct hf_table_description **out)
{
    struct hf_table_description *copied = hf__scope_array(s, 1, sizeof(*copied));
    struct hf__buf json = {.scope = s};

    hf__wire_write(&json, &hf__table_description_fields, d);
    if (!copied || json.failed)
        return hf__fail_nomem(s);
    TRY(hf__wire_read(s, &hf__table_description_fields, hf_str_of((const char *)json.ptr, json.len),
                      copied));
    *out = copied;
    return HF_OK;
}

enum hf_status hf__table_describe(struct hf_scope *s, struct engine *e, struct table *table,
                                  const struct hf_table_description **out)
{
    const struct hf_table_description *stored = table->record.description;
    struct hf_table_description d = *stored;
    int64_t now_us = hf__env_wall_us(&e->env);
    bool filling = hf__table_filling(e, table);

    d.status = HF_TABLE_ACTIVE;
    for (size_t i = 0; i < table->indexes_len; i++)
        if (table->indexes[i].building)
            d.status = HF_TABLE_UPDATING;
    if (filling)
        d.status = HF_TABLE_CREATING;
    d.item_count = count_shown(&table->counts->table.items);
    d.size_bytes = count_shown(&table->counts->table.bytes);
    d.throughput = hf__throughput_today(s, stored->throughput, now_us);
    d.warm_throughput =
        hf__warm_describe(s, (struct throughput_of){stored->warm_throughput, stored->throughput,
                                                    billing_of(stored)});
    if (!d.throughput || !d.warm_throughput)
        return hf__fail_nomem(s);
    TRY(hf__on_demand_merge(s, stored->on_demand_throughput, NULL, &d.on_demand_throughput));
    TRY(describe_indexes(s, table, filling, now_us, stored->local_indexes, d.local_indexes_len,
                         &d.local_indexes));
    TRY(describe_indexes(s, table, filling, now_us, stored->global_indexes, d.global_indexes_len,
                         &d.global_indexes));
    return copy_description(s, &d, out);
}

/* ---- operations ----------------------------------------------------------------------------- */

enum hf_status hf__engine_describe_table(struct hf_scope *s, struct engine *e,
                                         const struct hf_describe_table *request,
                                         struct hf_describe_table_result *result)
{
    struct table *table;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_TABLE, request));
    TRY(hf__counts_refresh(s, e, request->table));
    pthread_rwlock_rdlock(&e->schema);
    status = hf__catalog_any_table(s, e, request->table, &table);
    if (status == HF_OK)
        status = hf__table_describe(s, e, table, &result->table);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

enum { LIST_TABLES_MAX = 100 };

static enum hf_status list_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_list_tables *request,
                                  struct hf_list_tables_result *result)
{
    size_t limit = request->limit ? (size_t)request->limit : LIST_TABLES_MAX;
    struct hf_str *names = hf__scope_array(s, limit, sizeof(*names));
    const struct catalog *catalog = &e->catalog;
    size_t len = 0;

    if (!names)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < catalog->len; i++) {
        struct hf_str name = catalog->tables[i]->name;

        if (request->start.ptr &&
            bytes_compare(name.ptr, name.len, request->start.ptr, request->start.len) <= 0)
            continue;
        if (len == limit) {
            result->last = names[len - 1];
            break;
        }
        names[len] = hf_scope_copy(s, name);
        if (!names[len++].ptr)
            return hf__fail_nomem(s);
    }
    assert(len <= limit);
    result->tables = names;
    result->tables_len = len;
    return HF_OK;
}

enum hf_status hf__engine_list_tables(struct hf_scope *s, struct engine *e,
                                      const struct hf_list_tables *request,
                                      struct hf_list_tables_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_LIST_TABLES, request));
    pthread_rwlock_rdlock(&e->schema);
    status = list_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* The limits of a new AWS account in most regions. */
enum { ACCOUNT_UNITS_MAX = 80000, TABLE_UNITS_MAX = 40000, ENDPOINT_CACHE_MINUTES = 1440 };

enum hf_status hf__engine_describe_limits(struct hf_scope *s, struct engine *e,
                                          const struct hf_describe_limits *request,
                                          struct hf_describe_limits_result *result)
{
    (void)s;
    (void)e;
    (void)request;
    *result = (struct hf_describe_limits_result){.account_max_read_units = ACCOUNT_UNITS_MAX,
                                                 .account_max_write_units = ACCOUNT_UNITS_MAX,
                                                 .table_max_read_units = TABLE_UNITS_MAX,
                                                 .table_max_write_units = TABLE_UNITS_MAX};
    return HF_OK;
}

enum hf_status hf__engine_describe_endpoints(struct hf_scope *s, struct engine *e,
                                             const struct hf_describe_endpoints *request,
                                             struct hf_describe_endpoints_result *result)
{
    struct hf_endpoint *endpoint = hf__scope_array(s, 1, sizeof(*endpoint));

    (void)request;
    if (!endpoint)
        return hf__fail_nomem(s);
    endpoint->address = hf_scope_format(s, "dynamodb.%.*s.amazonaws.com", HF_FMT(e->region));
    endpoint->cache_minutes = ENDPOINT_CACHE_MINUTES;
    result->endpoints = endpoint;
    result->endpoints_len = 1;
    return HF_OK;
}
