/*
 * ops/prepare_backups.c: ListBackups, and the table that RestoreTableFromBackup asks for.
 *
 * A restored table has the keys, the billing, the limits, the encryption and the indexes of the
 * table that was backed up, each of which may be overridden. It does not have its stream, its time
 * to live, its tags, its policy, its class or its protection. Indexes can be left out and renamed;
 * none can be added, as an index is known by what it is of and not by its name.
 */
#include "ops/private.h"

#define BAD_REQUEST "Invalid Request: "

enum hf_status hf__prepare_list_backups(struct hf_scope *s, const struct hf_list_backups *request)
{
    TRY(hf__constraints(s, HF_OP_LIST_BACKUPS, request));
    if (request->from_us && request->until_us && request->from_us > request->until_us)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES
                        "Time range lower bound must be less than or equal to upper bound");
    return HF_OK;
}

/* ---- billing -------------------------------------------------------------------------------- */

static enum hf_billing billing_of(const struct hf_restore_table_from_backup *request,
                                  const struct hf_table_description *source)
{
    if (request->billing)
        return request->billing;
    return source->billing ? source->billing->billing : HF_BILLING_PROVISIONED;
}

/* What a description says, as a request says it; NULL when it has no units. */
static enum hf_status units_of(struct hf_scope *s, const struct hf_throughput_description *d,
                               const struct hf_throughput **out)
{
    struct hf_throughput *units = hf__scope_array(s, 1, sizeof(*units));

    if (!units)
        return hf__fail_nomem(s);
    *out = NULL;
    if (!d || d->read_units <= 0 || d->write_units <= 0)
        return HF_OK;
    *units = (struct hf_throughput){d->read_units, d->write_units};
    *out = units;
    return HF_OK;
}

/* Limits that were lifted, which is -1, are none for a new table. */
static enum hf_status limits_of(struct hf_scope *s, const struct hf_on_demand_throughput *limits,
                                const struct hf_on_demand_throughput **out)
{
    struct hf_on_demand_throughput *own = hf__scope_array(s, 1, sizeof(*own));

    if (!own)
        return hf__fail_nomem(s);
    *out = NULL;
    if (!limits)
        return HF_OK;
    own->max_read_units = limits->max_read_units > 0 ? limits->max_read_units : 0;
    own->max_write_units = limits->max_write_units > 0 ? limits->max_write_units : 0;
    if (own->max_read_units || own->max_write_units)
        *out = own;
    return HF_OK;
}

static enum hf_status restore_billing(struct hf_scope *s,
                                      const struct hf_restore_table_from_backup *request,
                                      const struct hf_table_description *source,
                                      struct hf_create_table *out)
{
    assert(source->name.ptr);
    out->billing = billing_of(request, source);
    if (request->throughput && out->billing != HF_BILLING_PROVISIONED)
        return hf__fail(s, HF_INVALID,
                        BAD_REQUEST "Cannot override ProvisionedThroughput unless BillingMode is "
                                    "PROVISIONED");
    if (request->billing == HF_BILLING_PROVISIONED && !request->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_REQUEST "Must override ProvisionedThroughput if BillingMode is "
                                    "overridden to PROVISIONED");
    out->throughput = request->throughput;
    out->on_demand_throughput = request->on_demand_throughput;
    if (out->billing == HF_BILLING_PROVISIONED)
        return request->throughput ? HF_OK : units_of(s, source->throughput, &out->throughput);
    return request->on_demand_throughput
               ? HF_OK
               : limits_of(s, source->on_demand_throughput, &out->on_demand_throughput);
}

/* ---- indexes -------------------------------------------------------------------------------- */

static bool same_keys(const struct hf_index *a, const struct hf_index_description *b)
{
    assert(a->key_schema && b->key_schema);
    if (a->key_schema_len != b->key_schema_len)
        return false;
    for (size_t i = 0; i < a->key_schema_len; i++)
        if (a->key_schema[i].type != b->key_schema[i].type ||
            !hf_str_equal(a->key_schema[i].name, b->key_schema[i].name))
            return false;
    return true;
}

static bool is_projected(const struct hf_projection *projection, struct hf_str name)
{
    assert(projection);
    for (size_t i = 0; i < projection->attributes_len; i++)
        if (hf_str_equal(projection->attributes[i], name))
            return true;
    return false;
}

static bool same_projection(const struct hf_projection *a, const struct hf_projection *b)
{
    assert(a);
    if (a->type != b->type || a->attributes_len != b->attributes_len)
        return false;
    for (size_t i = 0; i < a->attributes_len; i++)
        if (!is_projected(b, a->attributes[i]))
            return false;
    return true;
}

struct sources {
    const struct hf_index_description *list;
    size_t len;
    bool *taken; /* one of the request's is this one */
};

/* The index of the request is one that the table had, and that no other of the request is. */
static enum hf_status take_source(struct hf_scope *s, const struct hf_index *index,
                                  const struct sources *sources)
{
    assert(sources->taken);
    for (size_t i = 0; i < sources->len; i++) {
        if (!sources->taken[i] && same_keys(index, &sources->list[i]) &&
            same_projection(index->projection, sources->list[i].projection)) {
            sources->taken[i] = true;
            return HF_OK; /* so of each source there is one index at most */
        }
    }
    return hf__fail(s, HF_INVALID,
                    BAD_REQUEST "Index %.*s does not match a secondary index that existed in the "
                                "source table and cannot be created during the restore operation",
                    HF_FMT(index->name));
}

static enum hf_status check_units(struct hf_scope *s, const struct hf_index *index,
                                  enum hf_billing billing)
{
    assert(billing == HF_BILLING_PROVISIONED || billing == HF_BILLING_PAY_PER_REQUEST);
    if (billing == HF_BILLING_PROVISIONED && !index->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_REQUEST "Must specify provisioned throughput for index %.*s",
                        HF_FMT(index->name));
    if (billing != HF_BILLING_PROVISIONED && index->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_REQUEST "Cannot override ProvisionedThroughput if BillingMode is "
                                    "PAY_PER_REQUEST");
    return HF_OK;
}

/* All that the table had, as requests. */
static enum hf_status all_sources(struct hf_scope *s, const struct sources *sources, bool local,
                                  enum hf_billing billing, struct hf_index *out)
{
    assert(out && (sources->list || !sources->len));
    for (size_t i = 0; i < sources->len; i++) {
        const struct hf_index_description *d = &sources->list[i];

        out[i] = (struct hf_index){.name = d->name,
                                   .key_schema = d->key_schema,
                                   .key_schema_len = d->key_schema_len,
                                   .projection = d->projection};
        if (local)
            continue;
        if (billing == HF_BILLING_PROVISIONED)
            TRY(units_of(s, d->throughput, &out[i].throughput));
        else
            TRY(limits_of(s, d->on_demand_throughput, &out[i].on_demand_throughput));
        TRY(check_units(s, &out[i], billing));
    }
    return HF_OK;
}

/* The indexes of one kind: those of the request, or, when it has no list, all. */
static enum hf_status restore_indexes(struct hf_scope *s, const struct sources *sources, bool local,
                                      enum hf_billing billing, const struct hf_index **list,
                                      size_t *len)
{
    struct hf_index *all = hf__scope_array(s, sources->len, sizeof(*all));

    if (!all || !sources->taken)
        return hf__fail_nomem(s);
    if (*list) {
        for (size_t i = 0; i < *len; i++) {
            TRY(take_source(s, &(*list)[i], sources));
            if (!local)
                TRY(check_units(s, &(*list)[i], billing));
        }
    } else {
        TRY(all_sources(s, sources, local, billing, all));
        *list = all;
        *len = sources->len;
    }
    assert(*len <= sources->len); /* none is added */
    if (*len == 0)
        *list = NULL;
    return HF_OK;
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool in_keys(const struct hf_key_element *keys, size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(keys[i].name, name))
            return true;
    return false;
}

static bool is_key(const struct hf_create_table *table, struct hf_str name)
{
    if (in_keys(table->key_schema, table->key_schema_len, name))
        return true;
    for (size_t i = 0; i < table->local_indexes_len; i++)
        if (in_keys(table->local_indexes[i].key_schema, table->local_indexes[i].key_schema_len,
                    name))
            return true;
    for (size_t i = 0; i < table->global_indexes_len; i++)
        if (in_keys(table->global_indexes[i].key_schema, table->global_indexes[i].key_schema_len,
                    name))
            return true;
    return false;
}

/* Definitions of attributes that are still keys. */
static enum hf_status restore_definitions(struct hf_scope *s,
                                          const struct hf_table_description *source,
                                          struct hf_create_table *out)
{
    struct hf_attribute_definition *list =
        hf__scope_array(s, source->attributes_len, sizeof(*list));

    assert(!out->attributes && !out->attributes_len && out->key_schema_len > 0);
    if (!list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < source->attributes_len; i++)
        if (is_key(out, source->attributes[i].name))
            list[out->attributes_len++] = source->attributes[i];
    assert(out->attributes_len <= source->attributes_len);
    out->attributes = list;
    return HF_OK;
}

static enum hf_status restore_encryption(struct hf_scope *s,
                                         const struct hf_restore_table_from_backup *request,
                                         const struct hf_table_description *source,
                                         struct hf_create_table *out)
{
    struct hf_sse_spec *kept = hf__scope_array(s, 1, sizeof(*kept));

    if (!kept)
        return hf__fail_nomem(s);
    out->sse = request->sse;
    if (request->sse || !source->sse)
        return HF_OK;
    *kept = (struct hf_sse_spec){.enabled = HF_YES,
                                 .type = source->sse->type,
                                 .kms_key_id = source->sse->kms_key_arn};
    out->sse = kept;
    return HF_OK;
}

enum hf_status hf__prepare_restore(struct hf_scope *s,
                                   const struct hf_restore_table_from_backup *request,
                                   const struct hf_table_description *source,
                                   struct hf_create_table *out)
{
    struct sources local = {source->local_indexes, source->local_indexes_len,
                            hf__scope_array(s, source->local_indexes_len, sizeof(bool))};
    struct sources global = {source->global_indexes, source->global_indexes_len,
                             hf__scope_array(s, source->global_indexes_len, sizeof(bool))};

    *out = (struct hf_create_table){.table = request->table,
                                    .key_schema = source->key_schema,
                                    .key_schema_len = source->key_schema_len,
                                    .local_indexes = request->local_indexes,
                                    .local_indexes_len = request->local_indexes_len,
                                    .global_indexes = request->global_indexes,
                                    .global_indexes_len = request->global_indexes_len};
    TRY(restore_billing(s, request, source, out));
    TRY(restore_indexes(s, &local, true, out->billing, &out->local_indexes,
                        &out->local_indexes_len));
    TRY(restore_indexes(s, &global, false, out->billing, &out->global_indexes,
                        &out->global_indexes_len));
    TRY(restore_definitions(s, source, out));
    assert(out->attributes_len >= out->key_schema_len); /* its keys are defined */
    TRY(restore_encryption(s, request, source, out));
    return hf__prepare_create_table(s, out);
}
