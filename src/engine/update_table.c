/*
 * engine/update_table.c: UpdateTable: the next version of a table's schema.
 *
 * All changes of one request are worked into a copy of the description; then the new record is
 * stored and takes the old one's place. A new global index is maintained by every write from that
 * moment on, and the items that were there before are added by upkeep (backfill.c); until then it
 * is "building" and cannot be read.
 */
#include "engine/private.h"

struct updating {
    const struct hf_update_table *request;
    struct table *table;
    struct hf_table_description description;
    struct table_record record;
    struct store_batch batch;
    struct stream *enabled;  /* a stream that this request enables */
    struct stream *disabled; /* or disables */
    struct index *dropped;
    bool building;
};

/* ---- billing and throughput ----------------------------------------------------------------- */

static enum hf_billing billing_of(const struct hf_table_description *d)
{
    return d->billing ? d->billing->billing : HF_BILLING_PROVISIONED;
}

static enum hf_status update_throughput(struct hf_scope *s, struct updating *u)
{
    const struct hf_throughput *wanted = u->request->throughput;
    const struct hf_throughput_description *now = u->description.throughput;

    if (!wanted)
        return HF_OK;
    if (billing_of(&u->description) == HF_BILLING_PAY_PER_REQUEST)
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: Neither ReadCapacityUnits nor "
                        "WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST");
    if (u->request->billing == 0 && wanted->read_units == now->read_units &&
        wanted->write_units == now->write_units)
        return hf__fail(
            s, HF_INVALID,
            "The provisioned throughput for the table will not change. The requested value equals "
            "the current value. Current ReadCapacityUnits provisioned for the table: %lld. "
            "Requested ReadCapacityUnits: %lld. Current WriteCapacityUnits provisioned for the "
            "table: %lld. Requested WriteCapacityUnits: %lld. Refer to the Amazon DynamoDB "
            "Developer Guide for current limits and how to request higher limits.",
            (long long)now->read_units, (long long)wanted->read_units, (long long)now->write_units,
            (long long)wanted->write_units);
    u->description.throughput = hf__describe_throughput(s, wanted);
    return u->description.throughput ? HF_OK : hf__fail_nomem(s);
}

/* What is billed by request has no units, and neither do its indexes. */
static enum hf_status drop_units(struct hf_scope *s, struct hf_table_description *d)
{
    const struct hf_throughput_description *none = hf__describe_throughput(s, NULL);
    struct hf_index_description *all = hf__scope_array(s, d->global_indexes_len, sizeof(*all));

    if (!none || !all)
        return hf__fail_nomem(s);
    d->throughput = none;
    for (size_t i = 0; i < d->global_indexes_len; i++) {
        all[i] = d->global_indexes[i];
        all[i].throughput = none;
    }
    d->global_indexes = d->global_indexes_len ? all : NULL;
    return HF_OK;
}

static enum hf_status update_billing(struct hf_scope *s, struct engine *e, struct updating *u)
{
    struct hf_billing_summary *billing = hf__scope_array(s, 1, sizeof(*billing));

    if (!billing)
        return hf__fail_nomem(s);
    if (u->description.billing)
        *billing = *u->description.billing;
    if (u->request->billing == HF_BILLING_PAY_PER_REQUEST) {
        billing->last_to_pay_per_request_us = hf__env_wall_us(&e->env);
        TRY(drop_units(s, &u->description));
    }
    if (u->request->billing) {
        billing->billing = u->request->billing;
        u->description.billing = billing;
    }
    return update_throughput(s, u);
}

/* ---- indexes -------------------------------------------------------------------------------- */

static bool is_used(const struct hf_table_description *d, struct hf_str name)
{
    for (size_t i = 0; i < d->key_schema_len; i++)
        if (hf_str_equal(d->key_schema[i].name, name))
            return true;
    for (size_t i = 0; i < d->local_indexes_len + d->global_indexes_len; i++) {
        const struct hf_index_description *index =
            i < d->local_indexes_len ? &d->local_indexes[i]
                                     : &d->global_indexes[i - d->local_indexes_len];

        for (size_t j = 0; j < index->key_schema_len; j++)
            if (hf_str_equal(index->key_schema[j].name, name))
                return true;
    }
    return false;
}

/* The definitions that the keys use: those that were there, and those that the request adds. */
static enum hf_status merge_definitions(struct hf_scope *s, struct updating *u)
{
    const struct hf_table_description *old = u->table->record.description;
    size_t count = old->attributes_len + u->request->attributes_len;
    struct hf_attribute_definition *merged = hf__scope_array(s, count, sizeof(*merged));
    size_t len = 0;

    if (!merged)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < count; i++) {
        const struct hf_attribute_definition *definition =
            i < old->attributes_len ? &old->attributes[i]
                                    : &u->request->attributes[i - old->attributes_len];
        size_t at = 0;

        while (at < len && !hf_str_equal(merged[at].name, definition->name))
            at++;
        if (at < len && merged[at].type != definition->type && is_used(old, definition->name))
            return hf__fail(s, HF_INVALID,
                            "One or more parameter values were invalid: Attribute %.*s is already "
                            "defined with another type",
                            HF_FMT(definition->name));
        if (at < len)
            merged[at].type = definition->type;
        else if (is_used(&u->description, definition->name))
            merged[len++] = *definition;
    }
    u->description.attributes = merged;
    u->description.attributes_len = len;
    return HF_OK;
}

/* All definitions that the request may refer to, before it is known which stay. */
static enum hf_status known_definitions(struct hf_scope *s, struct updating *u,
                                        struct hf_attribute_definition **out, size_t *len)
{
    const struct hf_table_description *old = u->table->record.description;
    size_t count = old->attributes_len + u->request->attributes_len;

    *out = hf__scope_array(s, count, sizeof(**out));
    if (!*out)
        return hf__fail_nomem(s);
    if (u->request->attributes_len)
        memcpy(*out, u->request->attributes, u->request->attributes_len * sizeof(**out));
    memcpy(*out + u->request->attributes_len, old->attributes, old->attributes_len * sizeof(**out));
    *len = count;
    return HF_OK;
}

static enum hf_status create_index(struct hf_scope *s, struct engine *e, struct updating *u,
                                   const struct hf_index *index)
{
    const struct table *table = u->table;
    struct hf_table_description *d = &u->description;
    struct hf_index_description *all;
    struct index_record *records;
    struct hf_attribute_definition *definitions;
    size_t definitions_len = 0;

    if (hf__table_index(u->table, index->name))
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: Attempting to create an index "
                        "which already exists");
    for (size_t i = 0; i < table->indexes_len; i++)
        if (table->indexes[i].building)
            return hf__fail(s, HF_LIMIT,
                            "Subscriber limit exceeded: Only 1 online index can be created or "
                            "deleted simultaneously per table");
    if (d->global_indexes_len == 20)
        return hf__fail(s, HF_LIMIT,
                        "One or more parameter values were invalid: GlobalSecondaryIndex count "
                        "exceeds the per-table limit of 20");
    TRY(hf__check_index_throughput(s, index, billing_of(d)));
    TRY(known_definitions(s, u, &definitions, &definitions_len));
    TRY(hf__prepare_index(s, index, false, definitions, definitions_len, table->key.hash[0].name,
                          table->key.range_len ? table->key.range[0].name : hf_str_of(NULL, 0)));
    all = hf__scope_array(s, d->global_indexes_len + 1, sizeof(*all));
    records = hf__scope_array(s, u->record.indexes_len + 1, sizeof(*records));
    if (!all || !records)
        return hf__fail_nomem(s);
    if (d->global_indexes_len)
        memcpy(all, d->global_indexes, d->global_indexes_len * sizeof(*all));
    if (u->record.indexes_len)
        memcpy(records, u->record.indexes, u->record.indexes_len * sizeof(*records));
    TRY(hf__describe_new_index(s, e, d->name, index, false, &all[d->global_indexes_len]));
    records[u->record.indexes_len] =
        (struct index_record){.name = index->name,
                              .id = hf__catalog_new_id(s, e, &u->batch),
                              .building = HF_YES};
    d->global_indexes = all;
    d->global_indexes_len++;
    u->record.indexes = records;
    u->record.indexes_len++;
    u->building = true;
    return HF_OK;
}

static enum hf_status drop_index(struct hf_scope *s, struct updating *u, struct hf_str name)
{
    struct hf_table_description *d = &u->description;
    struct hf_index_description *all;
    struct index_record *records;
    size_t len = 0;

    u->dropped = hf__table_index(u->table, name);
    if (!u->dropped || u->dropped->local)
        return hf__fail(s, HF_NOT_FOUND, "Requested resource not found");
    all = hf__scope_array(s, d->global_indexes_len, sizeof(*all));
    records = hf__scope_array(s, u->record.indexes_len, sizeof(*records));
    if (!all || !records)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < d->global_indexes_len; i++)
        if (!hf_str_equal(d->global_indexes[i].name, name))
            all[len++] = d->global_indexes[i];
    d->global_indexes = len ? all : NULL;
    d->global_indexes_len = len;
    len = 0;
    for (size_t i = 0; i < u->record.indexes_len; i++)
        if (!hf_str_equal(u->record.indexes[i].name, name))
            records[len++] = u->record.indexes[i];
    u->record.indexes = records;
    u->record.indexes_len = len;
    hf__erase_later(&u->batch, SPACE_INDEX, u->dropped->id);
    return HF_OK;
}

static enum hf_status update_index(struct hf_scope *s, struct updating *u,
                                   const struct hf_index_update *update)
{
    struct hf_table_description *d = &u->description;
    struct hf_index_description *all = hf__scope_array(s, d->global_indexes_len, sizeof(*all));

    if (!all)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < d->global_indexes_len; i++) {
        all[i] = d->global_indexes[i];
        if (!hf_str_equal(all[i].name, update->name))
            continue;
        if (update->throughput)
            all[i].throughput = hf__describe_throughput(s, update->throughput);
        if (update->on_demand_throughput)
            all[i].on_demand_throughput = update->on_demand_throughput;
        if (!all[i].throughput)
            return hf__fail_nomem(s);
        update = NULL;
        memcpy(all + i + 1, d->global_indexes + i + 1,
               (d->global_indexes_len - i - 1) * sizeof(*all));
        break;
    }
    if (update)
        return hf__fail(s, HF_NOT_FOUND, "Requested resource not found");
    d->global_indexes = all;
    return HF_OK;
}

static enum hf_status update_indexes(struct hf_scope *s, struct engine *e, struct updating *u)
{
    for (size_t i = 0; i < u->request->index_changes_len; i++) {
        const struct hf_index_change *change = &u->request->index_changes[i];

        if (change->create)
            TRY(create_index(s, e, u, change->create));
        else if (change->del)
            TRY(drop_index(s, u, change->del->name));
        else if (change->update)
            TRY(update_index(s, u, change->update));
    }
    return u->request->index_changes_len ? merge_definitions(s, u) : HF_OK;
}

/* ---- streams and settings ------------------------------------------------------------------- */

static enum hf_status update_stream(struct hf_scope *s, struct engine *e, struct updating *u)
{
    const struct hf_stream_spec *wanted = u->request->stream;
    struct hf_table_description *d = &u->description;

    if (!wanted)
        return HF_OK;
    if (wanted->enabled == HF_YES) {
        if (u->table->stream)
            return hf__fail(s, HF_INVALID, "Table already has an enabled stream: TableName: %.*s",
                            HF_FMT(d->name));
        TRY(hf__stream_enable(s, e, &u->batch, d, wanted->view, &u->enabled));
        d->stream = wanted;
        d->stream_arn = hf__stream_arn(u->enabled);
        d->stream_label = hf__stream_label(u->enabled);
        u->record.stream_id = hf__stream_id(u->enabled);
        return HF_OK;
    }
    if (!u->table->stream)
        return hf__fail(s, HF_INVALID, "Table already has a disabled stream: TableName: %.*s",
                        HF_FMT(d->name));
    u->disabled = u->table->stream;
    TRY(hf__stream_disable(s, e, &u->batch, u->disabled));
    d->stream = NULL;
    u->record.stream_id = 0;
    return HF_OK;
}

static enum hf_status update_settings(struct hf_scope *s, struct engine *e, struct updating *u)
{
    const struct hf_update_table *r = u->request;
    struct hf_table_class_summary *class = hf__scope_array(s, 1, sizeof(*class));
    struct hf_sse_description *sse = hf__scope_array(s, 1, sizeof(*sse));

    if (!class || !sse)
        return hf__fail_nomem(s);
    if (r->on_demand_throughput)
        u->description.on_demand_throughput = r->on_demand_throughput;
    if (r->deletion_protection)
        u->description.deletion_protection = r->deletion_protection;
    if (r->table_class) {
        class->table_class = r->table_class;
        class->last_update_us = hf__env_wall_us(&e->env);
        u->description.table_class = class;
    }
    if (r->sse && r->sse->enabled == HF_YES) {
        sse->status = HF_STR("ENABLED");
        sse->type = HF_SSE_KMS;
        sse->kms_key_arn = r->sse->kms_key_id;
        u->description.sse = sse;
    } else if (r->sse) {
        u->description.sse = NULL;
    }
    return update_stream(s, e, u);
}

/* ---- the operation -------------------------------------------------------------------------- */

/* Counts of indexes that the table does not have make room for others. */
static void prune_counts(struct table *table)
{
    struct table_counts *counts = table->counts;

    for (size_t i = 0; i < INDEXES_MAX; i++) {
        bool there = false;

        for (size_t j = 0; j < table->indexes_len; j++)
            there = there || table->indexes[j].id == counts->ids[i];
        if (!there)
            counts->ids[i] = 0;
    }
}

static enum hf_status update_locked(struct hf_scope *s, struct engine *e, struct updating *u,
                                    struct table **next, struct hf_update_table_result *result)
{
    TRY(hf__catalog_table(s, e, u->request->table, &u->table));
    u->description = *u->table->record.description;
    u->record = u->table->record;
    u->record.description = &u->description;
    u->batch = (struct store_batch){.ops = {.scope = s}};
    TRY(update_billing(s, e, u));
    TRY(update_indexes(s, e, u));
    TRY(update_settings(s, e, u));
    hf__catalog_put_record(s, &u->batch, &u->record);
    TRY(hf__table_new(s, e, &u->record, u->table->counts, next));
    TRY(hf__table_describe(s, *next, &result->table));
    return hf__catalog_commit(s, e, &u->batch);
}

/* Make the outcome true in memory. */
static void finish(struct engine *e, struct updating *u, struct table *next, bool done)
{
    if (u->enabled)
        hf__stream_settle(e, u->enabled, done);
    if (u->disabled)
        hf__stream_settle(e, u->disabled, done);
    if (!done) {
        hf__table_free(e, next, false);
        if (u->table)
            prune_counts(u->table);
        return;
    }
    if (u->enabled)
        next->stream = u->enabled;
    hf__catalog_replace(e, u->table, next);
    prune_counts(next);
}

enum hf_status hf__engine_update_table(struct hf_scope *s, struct engine *e,
                                       const struct hf_update_table *request,
                                       struct hf_update_table_result *result)
{
    struct updating u = {.request = request};
    struct table *next = NULL;
    enum hf_status status;

    TRY(hf__prepare_update_table(s, request));
    TRY(hf__counts_refresh(s, e, request->table)); /* for the answer */
    hf__schema_lock(e);
    status = update_locked(s, e, &u, &next, result);
    finish(e, &u, next, status == HF_OK);
    pthread_rwlock_unlock(&e->schema);
    if (status == HF_OK && u.building)
        hf__upkeep_poke(e);
    return status == HF_OK ? hf__engine_settle(s, e, hf__store_written(e->store)) : status;
}
