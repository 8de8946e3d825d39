/*
 * engine/table/update_table.c: UpdateTable: the next version of a table's schema.
 *
 * All changes of one request are worked into a copy of the description; then the new record is
 * stored and takes the old one's place. A new global index is maintained by every write from that
 * moment on, and the items that were there before are added by maintenance (backfill.c); until then
 * it is "building" and cannot be read.
 */
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/counts.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/maintenance/maintenance.h"
#include "engine/operations.h"
#include "engine/stream/streams.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/table/tables.h"
#include "engine/table/throughput.h"
#include "ops/prepare.h"
#include "store/store.h"

#define BAD_VALUES "One or more parameter values were invalid: "

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
    bool switches; /* to the other billing mode */
};

/* ---- billing and throughput ----------------------------------------------------------------- */

static enum hf_billing billing_of(const struct hf_table_description *d)
{
    return d->billing ? d->billing->billing : HF_BILLING_PROVISIONED;
}

static bool same_units(const struct hf_throughput *wanted,
                       const struct hf_throughput_description *now)
{
    return wanted->read_units == now->read_units && wanted->write_units == now->write_units;
}

/* `of` is "table", or "index " and its name. */
static enum hf_status fail_same(struct hf_scope *s, struct hf_str of, const char *kind,
                                const struct hf_throughput *units)
{
    return hf__fail(
        s, HF_INVALID,
        "The provisioned throughput for the %.*s will not change. The requested value equals the "
        "current value. Current ReadCapacityUnits provisioned for the %s: %lld. Requested "
        "ReadCapacityUnits: %lld. Current WriteCapacityUnits provisioned for the %s: %lld. "
        "Requested WriteCapacityUnits: %lld. Refer to the Amazon DynamoDB Developer Guide for "
        "current limits and how to request higher limits.",
        HF_FMT(of), kind, (long long)units->read_units, (long long)units->read_units, kind,
        (long long)units->write_units, (long long)units->write_units);
}

static enum hf_status update_throughput(struct hf_scope *s, struct engine *e, struct updating *u)
{
    const struct hf_throughput *wanted = u->request->throughput;
    struct hf_table_description *d = &u->description;

    if (!wanted)
        return HF_OK;
    if (billing_of(d) == HF_BILLING_PAY_PER_REQUEST)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be "
                                   "specified when BillingMode is PAY_PER_REQUEST");
    if (!u->switches && same_units(wanted, d->throughput))
        return fail_same(s, HF_STR("table"), "table", wanted);
    d->throughput = u->switches
                        ? hf__throughput_switch(s, d->throughput, wanted)
                        : hf__throughput_change(s, d->throughput, wanted, hf__env_wall_us(&e->env));
    return d->throughput ? HF_OK : hf__fail_nomem(s);
}

/* Units of what is billed by request, and limits of what is not: they go, of indexes too. */
static enum hf_status drop_units(struct hf_scope *s, struct hf_table_description *d)
{
    struct hf_index_description *all = hf__scope_array(s, d->global_indexes_len, sizeof(*all));

    if (!all)
        return hf__fail_nomem(s);
    d->throughput = hf__throughput_switch(s, d->throughput, NULL);
    d->on_demand_throughput = NULL;
    for (size_t i = 0; i < d->global_indexes_len; i++) {
        all[i] = d->global_indexes[i];
        all[i].throughput = hf__throughput_switch(s, all[i].throughput, NULL);
        all[i].on_demand_throughput = NULL;
        if (!all[i].throughput)
            return hf__fail_nomem(s);
    }
    d->global_indexes = d->global_indexes_len ? all : NULL;
    return d->throughput ? HF_OK : hf__fail_nomem(s);
}

static const struct hf_index_update *update_of(const struct hf_update_table *request,
                                               struct hf_str index)
{
    for (size_t i = 0; i < request->index_changes_len; i++)
        if (request->index_changes[i].update &&
            hf_str_equal(request->index_changes[i].update->name, index))
            return request->index_changes[i].update;
    return NULL;
}

/* A change to provisioned capacity has to name the units of the table and of each index. */
static enum hf_status check_index_units(struct hf_scope *s, const struct updating *u)
{
    const struct hf_table_description *d = &u->description;
    struct hf__buf missing = {.scope = s};

    for (size_t i = 0; i < d->global_indexes_len; i++) {
        const struct hf_index_update *update = update_of(u->request, d->global_indexes[i].name);

        if (update && update->throughput)
            continue;
        hf__buf_put_str(&missing, missing.len ? HF_STR(",") : HF_STR(""));
        hf__buf_put_str(&missing, d->global_indexes[i].name);
    }
    if (missing.failed)
        return hf__fail_nomem(s);
    if (missing.len == 0)
        return HF_OK;
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "ProvisionedThroughput must be specified for index: %.*s",
                    (int)missing.len, (const char *)missing.ptr);
}

static enum hf_status update_billing(struct hf_scope *s, struct engine *e, struct updating *u)
{
    struct hf_billing_summary *billing = hf__scope_array(s, 1, sizeof(*billing));
    enum hf_billing wanted = u->request->billing;

    if (!billing)
        return hf__fail_nomem(s);
    u->switches = wanted && wanted != billing_of(&u->description);
    if (u->switches) {
        if (u->description.billing)
            *billing = *u->description.billing;
        if (wanted == HF_BILLING_PROVISIONED)
            TRY(check_index_units(s, u));
        else
            billing->last_to_pay_per_request_us = hf__env_wall_us(&e->env);
        TRY(drop_units(s, &u->description));
        billing->billing = wanted;
        u->description.billing = billing;
    }
    return update_throughput(s, e, u);
}

static enum hf_status fail_limit(struct hf_scope *s, const char *member, struct hf_str index)
{
    if (index.ptr)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "%s for OnDemandThroughput for index : %.*s cannot be specified "
                                   "when the table BillingMode is PROVISIONED",
                        member, HF_FMT(index));
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "%s for OnDemandThroughput cannot be specified when the table "
                               "BillingMode is PROVISIONED",
                    member);
}

static enum hf_status update_limits(struct hf_scope *s, enum hf_billing billing,
                                    const struct hf_on_demand_throughput *wanted,
                                    struct hf_str index,
                                    const struct hf_on_demand_throughput **limits)
{
    if (wanted && billing != HF_BILLING_PAY_PER_REQUEST) {
        if (wanted->max_read_units)
            return fail_limit(s, "MaxReadRequestUnits", index);
        if (wanted->max_write_units)
            return fail_limit(s, "MaxWriteRequestUnits", index);
    }
    return hf__on_demand_merge(s, *limits, wanted, limits);
}

/* What the table was ready for before the request, which the request may raise but not lower. */
static enum hf_status update_warm(struct hf_scope *s, struct updating *u)
{
    const struct hf_table_description *old = u->table->record.description;
    struct hf_index_description *all =
        hf__scope_array(s, u->description.global_indexes_len, sizeof(*all));

    if (!all)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < u->description.global_indexes_len; i++) {
        all[i] = u->description.global_indexes[i];
        TRY(hf__warm_raise(s,
                           (struct throughput_of){all[i].warm_throughput, all[i].throughput,
                                                  billing_of(old)},
                           NULL, all[i].name, &all[i].warm_throughput));
    }
    u->description.global_indexes = u->description.global_indexes_len ? all : NULL;
    return hf__warm_raise(
        s, (struct throughput_of){old->warm_throughput, old->throughput, billing_of(old)},
        u->request->warm_throughput, hf_str_of(NULL, 0), &u->description.warm_throughput);
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

static char type_letter(enum hf_scalar_type type)
{
    return type == HF_SCALAR_S ? 'S' : type == HF_SCALAR_N ? 'N' : 'B';
}

static enum hf_status fail_redefined(struct hf_scope *s, struct hf_str name, enum hf_scalar_type is,
                                     enum hf_scalar_type wanted)
{
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "Attributes cannot be redefined. Please check that your attribute "
                               "has the same type as previously defined. Existing schema: "
                               "Schema:[SchemaElement: key{%.*s:%c:HASH}] New schema: "
                               "Schema:[SchemaElement: key{%.*s:%c:HASH}]",
                    HF_FMT(name), type_letter(is), HF_FMT(name), type_letter(wanted));
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
            return fail_redefined(s, definition->name, merged[at].type, definition->type);
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
        return hf__fail(s, HF_INVALID, "Attempting to create an index which already exists");
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
    if (u->request->attributes_len == 0)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "AttributeDefinitions is not specified for index: %.*s",
                        HF_FMT(index->name));
    TRY(known_definitions(s, u, &definitions, &definitions_len));
    TRY(hf__prepare_index(s, index, false, definitions, definitions_len, table->key.hash[0].name));
    all = hf__scope_array(s, d->global_indexes_len + 1, sizeof(*all));
    records = hf__scope_array(s, u->record.indexes_len + 1, sizeof(*records));
    if (!all || !records)
        return hf__fail_nomem(s);
    if (d->global_indexes_len)
        memcpy(all, d->global_indexes, d->global_indexes_len * sizeof(*all));
    if (u->record.indexes_len)
        memcpy(records, u->record.indexes, u->record.indexes_len * sizeof(*records));
    TRY(hf__describe_new_index(s, e, d->name, index, false, billing_of(d),
                               &all[d->global_indexes_len]));
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

/* The index of a change is there, and global. */
static enum hf_status find_global(struct hf_scope *s, const struct updating *u, struct hf_str name,
                                  const char *verb, struct index **index)
{
    *index = hf__table_index(u->table, name);
    if (!*index)
        return hf__fail(s, HF_NOT_FOUND, "Requested resource not found: Index %.*s for table %.*s",
                        HF_FMT(name), HF_FMT(u->table->name));
    if ((*index)->local)
        return hf__fail(s, HF_INVALID,
                        "Cannot %s an index that is not a GlobalSecondaryIndex: %.*s", verb,
                        HF_FMT(name));
    return HF_OK;
}

static enum hf_status drop_index(struct hf_scope *s, struct updating *u, struct hf_str name)
{
    struct hf_table_description *d = &u->description;
    struct hf_index_description *all;
    struct index_record *records;
    size_t len = 0;

    TRY(find_global(s, u, name, "delete", &u->dropped));
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
    assert(len + 1 == u->record.indexes_len);
    u->record.indexes = records;
    u->record.indexes_len = len;
    hf__erase_later(&u->batch, SPACE_INDEX, u->dropped->id);
    return HF_OK;
}

/* An update says something that the table's billing knows. */
static enum hf_status check_index_update(struct hf_scope *s, const struct updating *u,
                                         const struct hf_index_update *update)
{
    const struct hf_on_demand_throughput *limits = update->on_demand_throughput;
    bool by_request = billing_of(&u->description) == HF_BILLING_PAY_PER_REQUEST;

    if (by_request && update->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be "
                                   "specified for index: %.*s when BillingMode is PAY_PER_REQUEST",
                        HF_FMT(update->name));
    if (update->throughput || update->warm_throughput ||
        (limits && (limits->max_read_units || limits->max_write_units)))
        return HF_OK;
    if (by_request)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "The only Updates for index: %.*s when TableThroughputMode is "
                                   "PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput",
                        HF_FMT(update->name));
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "Both ReadCapacityUnits and WriteCapacityUnits must be specified "
                               "for index: %.*s",
                    HF_FMT(update->name));
}

static enum hf_status change_index(struct hf_scope *s, struct engine *e, const struct updating *u,
                                   const struct hf_index_update *update,
                                   struct hf_index_description *d)
{
    const struct hf_throughput *wanted = update->throughput;
    enum hf_billing billing = billing_of(&u->description);
    struct hf_str of = hf_scope_format(s, "index %.*s", HF_FMT(d->name));

    if (!of.ptr)
        return hf__fail_nomem(s);
    if (wanted && !u->switches && same_units(wanted, d->throughput))
        return fail_same(s, of, "index", wanted);
    TRY(hf__warm_raise(s,
                       (struct throughput_of){d->warm_throughput, d->throughput,
                                              billing_of(u->table->record.description)},
                       update->warm_throughput, d->name, &d->warm_throughput));
    if (wanted)
        d->throughput =
            u->switches ? hf__throughput_switch(s, d->throughput, wanted)
                        : hf__throughput_change(s, d->throughput, wanted, hf__env_wall_us(&e->env));
    if (!d->throughput)
        return hf__fail_nomem(s);
    return update_limits(s, billing, update->on_demand_throughput, d->name,
                         &d->on_demand_throughput);
}

static enum hf_status update_index(struct hf_scope *s, struct engine *e, struct updating *u,
                                   const struct hf_index_update *update)
{
    struct hf_table_description *d = &u->description;
    struct hf_index_description *all = hf__scope_array(s, d->global_indexes_len, sizeof(*all));
    struct index *index;

    if (!all)
        return hf__fail_nomem(s);
    TRY(find_global(s, u, update->name, "update", &index));
    TRY(check_index_update(s, u, update));
    for (size_t i = 0; i < d->global_indexes_len; i++) {
        all[i] = d->global_indexes[i];
        if (hf_str_equal(all[i].name, update->name))
            TRY(change_index(s, e, u, update, &all[i]));
    }
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
            TRY(update_index(s, e, u, change->update));
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
        return hf__fail(s, HF_INVALID, "Table has no stream to disable: TableName: %.*s",
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
    TRY(update_limits(s, billing_of(&u->description), r->on_demand_throughput, hf_str_of(NULL, 0),
                      &u->description.on_demand_throughput));
    if (r->deletion_protection)
        u->description.deletion_protection = r->deletion_protection;
    if (r->table_class) {
        class->table_class = r->table_class;
        class->last_update_us = hf__env_wall_us(&e->env);
        u->description.table_class = class;
    }
    if (r->sse && !hf__sse_wanted(r->sse) && !u->description.sse)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Table is already encrypted by default");
    if (hf__sse_wanted(r->sse)) {
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

/* Free the counts of indexes that the table no longer has. */
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
    TRY(update_warm(s, u));
    TRY(update_billing(s, e, u));
    TRY(update_indexes(s, e, u));
    TRY(update_settings(s, e, u));
    assert(u->record.indexes_len ==
           u->description.local_indexes_len + u->description.global_indexes_len);
    assert(u->record.indexes_len <= INDEXES_MAX);
    hf__catalog_put_record(s, &u->batch, &u->record);
    TRY(hf__table_new(s, e, &u->record, u->table->counts, next));
    TRY(hf__table_describe(s, e, *next, &result->table));
    return hf__catalog_commit(s, e, &u->batch);
}

/* Apply the outcome in memory. */
static void finish_update(struct engine *e, struct updating *u, struct table *next, bool done)
{
    ASSERT_SCHEMA_WRITTEN(e);
    assert(!done || (next && u->table));
    assert(!u->enabled || !u->disabled);
    if (u->enabled)
        hf__stream_finish_change(e, u->enabled, done);
    if (u->disabled)
        hf__stream_finish_change(e, u->disabled, done);
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
    finish_update(e, &u, next, status == HF_OK);
    pthread_rwlock_unlock(&e->schema);
    if (status == HF_OK && u.building)
        hf__engine_maintenance_wake(e);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}
