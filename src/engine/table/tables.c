/*
 * engine/table/tables.c: CreateTable and DeleteTable.
 *
 * A table exists from the moment its record is stored; there is no time in which it is "creating",
 * unless it is restored from a backup or files are imported into it: then it is, until it is filled
 * (backup/restore.c, transfer/import.c).
 * Deleting removes the record and records what belonged to it, which maintenance erases (erase.c);
 * so a crash leaves either the whole table or nothing of it that anyone can see.
 */
#include "engine/table/tables.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/key_filter.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/operations.h"
#include "engine/stream/streams.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/table/throughput.h"
#include "engine/transfer/transfers.h"
#include "ops/prepare.h"
#include "store/store.h"

/* Store only what was requested: the rest follows from the billing mode. */
static enum hf_status new_warm(struct hf_scope *s, const struct hf_throughput_description *units,
                               enum hf_billing billing, const struct hf_warm_throughput *wanted,
                               struct hf_str index,
                               const struct hf_warm_throughput_description **out)
{
    if (!wanted || (!wanted->read_units && !wanted->write_units))
        return HF_OK;
    return hf__warm_raise(s, (struct throughput_of){NULL, units, billing}, wanted, index, out);
}

/* The stored description of an index that a request asks for. */
enum hf_status hf__describe_new_index(struct hf_scope *s, struct engine *e, struct hf_str table,
                                      const struct hf_index *index, bool local,
                                      enum hf_billing billing, struct hf_index_description *out)
{
    *out = (struct hf_index_description){
        .name = index->name,
        .key_schema = index->key_schema,
        .key_schema_len = index->key_schema_len,
        .projection = index->projection,
        .arn = hf_scope_format(s, "arn:aws:dynamodb:%.*s:%.*s:table/%.*s/index/%.*s",
                               HF_FMT(e->region), HF_FMT(e->account), HF_FMT(table),
                               HF_FMT(index->name)),
    };
    if (!local) {
        out->throughput = hf__describe_throughput(s, index->throughput);
        if (!out->throughput)
            return hf__fail_nomem(s);
        TRY(hf__on_demand_merge(s, NULL, index->on_demand_throughput, &out->on_demand_throughput));
        TRY(new_warm(s, out->throughput, billing, index->warm_throughput, index->name,
                     &out->warm_throughput));
    }
    return out->arn.ptr ? HF_OK : hf__fail_nomem(s);
}

struct creating {
    const struct hf_create_table *request;
    struct hf_table_description description;
    struct table_record record;
    struct store_batch batch;
    struct stream *stream;
};

static enum hf_status add_indexes(struct hf_scope *s, struct engine *e, struct creating *c)
{
    const struct hf_create_table *r = c->request;
    size_t count = r->local_indexes_len + r->global_indexes_len;
    struct hf_index_description *all = hf__scope_array(s, count, sizeof(*all));
    struct index_record *records = hf__scope_array(s, count, sizeof(*records));

    if (!all || !records)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < count; i++) {
        bool local = i < r->local_indexes_len;
        const struct hf_index *index =
            local ? &r->local_indexes[i] : &r->global_indexes[i - r->local_indexes_len];

        TRY(hf__describe_new_index(s, e, c->description.name, index, local, r->billing, &all[i]));
        records[i].name = index->name;
        records[i].id = hf__catalog_new_id(s, e, &c->batch);
    }
    if (r->local_indexes_len) {
        c->description.local_indexes = all;
        c->description.local_indexes_len = r->local_indexes_len;
    }
    if (r->global_indexes_len) {
        c->description.global_indexes = all + r->local_indexes_len;
        c->description.global_indexes_len = r->global_indexes_len;
    }
    assert(count <= INDEXES_MAX);
    c->record.indexes = records;
    c->record.indexes_len = count;
    return HF_OK;
}

static enum hf_status add_settings(struct hf_scope *s, struct engine *e, struct creating *c)
{
    const struct hf_create_table *r = c->request;
    struct hf_table_description *d = &c->description;
    struct hf_billing_summary *billing = hf__scope_array(s, 1, sizeof(*billing));
    struct hf_table_class_summary *class = hf__scope_array(s, 1, sizeof(*class));
    struct hf_sse_description *sse = hf__scope_array(s, 1, sizeof(*sse));

    d->throughput = hf__describe_throughput(s, r->throughput);
    if (!billing || !class || !sse || !d->throughput)
        return hf__fail_nomem(s);
    TRY(hf__on_demand_merge(s, NULL, r->on_demand_throughput, &d->on_demand_throughput));
    TRY(new_warm(s, d->throughput, r->billing, r->warm_throughput, hf_str_of(NULL, 0),
                 &d->warm_throughput));
    if (r->billing == HF_BILLING_PAY_PER_REQUEST) {
        billing->billing = r->billing;
        billing->last_to_pay_per_request_us = d->created_us;
        d->billing = billing;
    }
    if (r->table_class) {
        class->table_class = r->table_class;
        d->table_class = class;
    }
    if (hf__sse_wanted(r->sse)) {
        sse->status = HF_STR("ENABLED");
        sse->type = HF_SSE_KMS;
        sse->kms_key_arn = r->sse->kms_key_id;
        d->sse = sse;
    }
    d->deletion_protection = r->deletion_protection == HF_YES ? HF_YES : HF_NO;
    if (!r->stream || r->stream->enabled != HF_YES)
        return HF_OK;
    TRY(hf__stream_enable(s, e, &c->batch, d, r->stream->view, &c->stream));
    d->stream = r->stream;
    d->stream_arn = hf__stream_arn(c->stream);
    d->stream_label = hf__stream_label(c->stream);
    c->record.stream_id = hf__stream_id(c->stream);
    return HF_OK;
}

/* CREATING, until it is filled. */
static enum hf_status add_restore(struct hf_scope *s, struct creating *c,
                                  const struct backup *backup)
{
    struct hf_restore_summary *summary = hf__scope_array(s, 1, sizeof(*summary));

    if (!summary)
        return hf__fail_nomem(s);
    *summary = (struct hf_restore_summary){.backup_arn = backup->record.arn,
                                           .table_arn = backup->record.table->arn,
                                           .restored_us = c->description.created_us,
                                           .in_progress = HF_YES};
    c->description.restore = summary;
    c->record.restore_from = backup->record.id;
    return HF_OK;
}

static enum hf_status make_table(struct hf_scope *s, struct engine *e,
                                 const struct hf_create_table *r, struct table_origin *origin,
                                 struct creating *c, struct table **table,
                                 const struct hf_table_description **out)
{
    struct hf_str name = hf__ops_table_name(r->table);
    enum hf_status status;

    assert(name.len > 0);
    *c = (struct creating){.request = r, .batch = {.ops = {.scope = s}}};
    c->description = (struct hf_table_description){
        .name = name,
        .created_us = hf__env_wall_us(&e->env),
        .attributes = r->attributes,
        .attributes_len = r->attributes_len,
        .key_schema = r->key_schema,
        .key_schema_len = r->key_schema_len,
        .arn = hf__table_arn(s, e, name),
        .id = hf__uuid(s, &e->env),
    };
    c->record = (struct table_record){.description = &c->description,
                                      .tags = r->tags,
                                      .tags_len = r->tags_len,
                                      .resource_policy = r->resource_policy};
    if (r->resource_policy.ptr)
        c->record.policy_revision = hf__policy_revision(e, 0);
    c->record.id = hf__catalog_new_id(s, e, &c->batch);
    TRY(hf__catalog_reserve(s, e));
    TRY(add_indexes(s, e, c));
    TRY(add_settings(s, e, c));
    if (origin && origin->backup)
        TRY(add_restore(s, c, origin->backup));
    hf__catalog_put_record(s, &c->batch, &c->record);
    TRY(hf__table_new(s, e, &c->record, NULL, table));
    status = HF_OK;
    if (!origin || !origin->backup) {
        (*table)->counts->keys = hf__row_filter_new(&e->env, e->key_filter_bytes);
        status = (*table)->counts->keys ? HF_OK : hf__fail_nomem(s);
    }
    if (status == HF_OK)
        status = hf__table_describe(s, e, *table, out);
    if (status == HF_OK && origin && origin->import)
        status = hf__transfers_record_import(s, e, &c->batch, &c->record, origin->import,
                                             &origin->transfer);
    if (status == HF_OK)
        status = hf__catalog_commit(s, e, &c->batch);
    if (status != HF_OK) {
        if (origin)
            hf__transfers_free_one(e, origin->transfer);
        hf__table_free(e, *table, true);
        *table = NULL;
    }
    return status;
}

enum hf_status hf__table_create(struct hf_scope *s, struct engine *e,
                                const struct hf_create_table *request, struct table_origin *origin,
                                const struct hf_table_description **out)
{
    struct creating c = {.request = NULL};
    struct table *table = NULL;
    enum hf_status status;

    ASSERT_SCHEMA_WRITTEN(e);
    assert(!hf__catalog_find(e, hf__ops_table_name(request->table)));
    if (e->catalog.len >= e->max_tables)
        return hf__fail(s, HF_LIMIT,
                        "Subscriber limit exceeded: There is a limit of %u tables per subscriber",
                        e->max_tables);
    status = make_table(s, e, request, origin, &c, &table, out);
    if (c.stream) {
        hf__stream_finish_change(e, c.stream, status == HF_OK);
        if (status == HF_OK)
            table->stream = c.stream;
    }
    if (status == HF_OK)
        hf__catalog_add(e, table);
    return status;
}

static enum hf_status create_locked(struct hf_scope *s, struct engine *e,
                                    const struct hf_create_table *request,
                                    struct hf_create_table_result *result)
{
    struct hf_str name = hf__ops_table_name(request->table);
    const struct table *there;

    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    there = hf__catalog_find(e, name);
    if (there)
        return hf__fail(s, HF_IN_USE,
                        hf__table_filling(e, there) ? "Table is being used: %.*s"
                                                    : "Table already exists: %.*s",
                        HF_FMT(name));
    return hf__table_create(s, e, request, NULL, &result->table);
}

enum hf_status hf__engine_create_table(struct hf_scope *s, struct engine *e,
                                       const struct hf_create_table *request,
                                       struct hf_create_table_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_create_table(s, request));
    if (request->resource_policy.ptr)
        TRY(hf__policy_check(s, request->resource_policy));
    hf__schema_lock(e);
    status = create_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}

/* ---- DeleteTable ---------------------------------------------------------------------------- */

static enum hf_status describe_deleted(struct hf_scope *s, const struct table *table,
                                       int64_t now_us, const struct hf_table_description **out)
{
    const struct hf_table_description *stored = table->record.description;
    struct hf_table_description *d = hf__scope_array(s, 1, sizeof(*d));
    struct hf_billing_summary *billing = hf__scope_array(s, 1, sizeof(*billing));

    if (!d)
        return hf__fail_nomem(s);
    d->name = hf_scope_copy(s, stored->name);
    d->status = HF_TABLE_DELETING;
    d->arn = hf_scope_copy(s, stored->arn);
    d->id = hf_scope_copy(s, stored->id);
    d->deletion_protection = HF_NO;
    d->throughput = hf__throughput_today(s, stored->throughput, now_us);
    if (!d->throughput || !billing)
        return hf__fail_nomem(s);
    if (stored->billing && stored->billing->billing == HF_BILLING_PAY_PER_REQUEST) {
        *billing = *stored->billing;
        d->billing = billing;
    }
    *out = d;
    return HF_OK;
}

enum hf_status hf__table_delete(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                struct table *table)
{
    enum hf_status status;

    ASSERT_SCHEMA_WRITTEN(e);
    assert(!table->record.restore_from);
    hf__catalog_delete_record(s, batch, table->name);
    hf__erase_later(batch, SPACE_ITEM, table->id);
    if (table->ttl_id)
        hf__erase_later(batch, SPACE_EXPIRY, table->ttl_id);
    for (size_t i = 0; i < table->indexes_len; i++)
        hf__erase_later(batch, SPACE_INDEX, table->indexes[i].id);
    if (table->stream)
        TRY(hf__stream_disable(s, e, batch, table->stream));
    status = hf__catalog_commit(s, e, batch);
    if (table->stream)
        hf__stream_finish_change(e, table->stream, status == HF_OK);
    if (status == HF_OK)
        hf__catalog_remove(e, table);
    return status;
}

enum hf_status hf__engine_delete_table(struct hf_scope *s, struct engine *e,
                                       const struct hf_delete_table *request,
                                       struct hf_delete_table_result *result)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    struct table *table;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DELETE_TABLE, request));
    hf__schema_lock(e);
    status = hf__catalog_any_table(s, e, request->table, &table);
    if (status == HF_OK && hf__table_filling(e, table))
        status = hf__fail(s, HF_IN_USE,
                          "Attempt to change a resource which is still in use: Table is being "
                          "created: %.*s",
                          HF_FMT(table->name));
    if (status == HF_OK && table->record.description->deletion_protection == HF_YES)
        status = hf__fail(s, HF_INVALID,
                          "Resource cannot be deleted as it is currently protected against "
                          "deletion. Disable deletion protection first.");
    if (status == HF_OK)
        status = describe_deleted(s, table, hf__env_wall_us(&e->env), &result->table);
    if (status == HF_OK)
        status = hf__table_delete(s, e, &batch, table);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}
