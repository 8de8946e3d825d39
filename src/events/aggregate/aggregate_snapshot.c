/*
 * events/aggregate/aggregate_snapshot.c: stored states, from which loading begins.
 *
 * A snapshot is an item of the store's table:
 *
 *     pk       n.STREAM
 *     sk       n, or n.NAME for the aggregate of that name
 *     version  of the stream
 *     schema   of the state's form
 *     time     when it was made, in microseconds
 *     state    an M
 *
 *  (1) The pair of version and schema only grows: a put is conditional on that, so of two snapshots
 *      that are saved at the same time the newer one stays. A put that is sent again after its
 *      answer was lost is refused by what it has written itself, which is as good.
 */
#include "events/aggregate/aggregate.h"

static enum hf_status snapshot_key(struct hf_scope *s, struct hf_event_stream_key stream,
                                   struct hf_str name, struct hf_item *key)
{
    struct hf_str pk, sk = HF_STR("n");

    if (name.len > HF_AGGREGATE_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_AGGREGATE_NAME_MAX, name.len),
                                   "the name of an aggregate is longer than %d bytes",
                                   HF_AGGREGATE_NAME_MAX);
    TRY(hf__events_stream_pk(s, 'n', stream, &pk));
    if (name.len)
        sk = hf__pattern_join(s, HF_STR("n."), name);
    *key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", sk));
    return hf_scope_built(s);
}

static int64_t schema_of(const struct hf_snapshot *snapshot)
{
    return snapshot->schema ? snapshot->schema : 1;
}

/* The put, apart from being sent. (1) */
static struct hf_put_item save_request(struct hf_scope *s, struct hf_str table, struct hf_item key,
                                       const struct hf_snapshot *snapshot)
{
    int64_t version = (int64_t)snapshot->version, schema = schema_of(snapshot);
    const struct hf_attr attrs[] = {HF_N("version", version), HF_N("schema", schema),
                                    HF_N("time", hf_scope_env(s)->wall_us(hf_scope_env(s)->user)),
                                    HF_M("state", snapshot->item)};

    assert(version != 0 && schema > 0 && snapshot->item.ptr);
    return (struct hf_put_item){
        .table = table,
        .item = hf_item_with(s, key, attrs, ARRAY_LEN(attrs)),
        .condition = HF_STR("attribute_not_exists(#v) OR #v < :v OR (#v = :v AND #s < :s)"),
        .names = HF_ITEM(s, HF_S("#v", HF_STR("version")), HF_S("#s", HF_STR("schema"))),
        .values = HF_ITEM(s, HF_N(":v", version), HF_N(":s", schema)),
        .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
}

enum hf_status hf_snapshot_save(struct hf_scope *s, struct hf_events *store,
                                struct hf_event_stream_key stream, struct hf_str name,
                                const struct hf_snapshot *snapshot, bool *saved)
{
    struct hf_item key, there;
    struct hf_put_item put;
    enum hf_status status;

    if (saved)
        *saved = false;
    TRY(snapshot_key(s, stream, name, &key));
    if (snapshot->version == 0 || !snapshot->item.ptr)
        return hf_scope_fail(s, HF_INVALID, "a snapshot of %.*s/%.*s needs a version and an item",
                             HF_FMT(stream.domain), HF_FMT(stream.id));
    TRY(hf_item_check(s, snapshot->item));
    put = save_request(s, store->table, key, snapshot);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, store->db, &(struct hf_transact_write){.put = &put}, key, &there);
    if (status == HF_CONDITION) {
        bool doubtful = hf_scope_error(s)->may_have_happened;
        int64_t version = 0, schema = 0;

        /* Ours, that came after all? Then it is there. */
        if (saved && doubtful && hf_value_i64(hf_item_get(there, HF_STR("version")), &version) &&
            hf_value_i64(hf_item_get(there, HF_STR("schema")), &schema))
            *saved = version == (int64_t)snapshot->version && schema == schema_of(snapshot);
        return hf_scope_ok(s);
    }
    if (status == HF_OK && saved)
        *saved = true;
    return status;
}

enum hf_status hf_snapshot_get(struct hf_scope *s, struct hf_events *store,
                               struct hf_event_stream_key stream, struct hf_str name,
                               struct hf_snapshot *snapshot)
{
    int64_t version = 0, schema = 0, time_us = 0;
    struct hf_item key, item;

    *snapshot = (struct hf_snapshot){0};
    TRY(snapshot_key(s, stream, name, &key));
    TRY(hf__pattern_read(s, store->db, store->table, key, &item));
    if (!item.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no snapshot of %.*s/%.*s",
                             HF_FMT(stream.domain), HF_FMT(stream.id));
    if (!hf_value_i64(hf_item_get(item, HF_STR("version")), &version) || version <= 0 ||
        !hf_value_i64(hf_item_get(item, HF_STR("schema")), &schema) || schema <= 0 ||
        schema > UINT32_MAX || !hf_value_i64(hf_item_get(item, HF_STR("time")), &time_us) ||
        hf_value_type(hf_item_get(item, HF_STR("state"))) != HF_TYPE_M)
        return hf_scope_fail(s, HF_CORRUPT, "the snapshot of %.*s/%.*s is damaged",
                             HF_FMT(stream.domain), HF_FMT(stream.id));
    *snapshot = (struct hf_snapshot){.version = (uint64_t)version,
                                     .schema = (uint32_t)schema,
                                     .item = hf_value_item(hf_item_get(item, HF_STR("state"))),
                                     .time_us = time_us};
    return HF_OK;
}

enum hf_status hf_snapshot_delete(struct hf_scope *s, struct hf_events *store,
                                  struct hf_event_stream_key stream, struct hf_str name)
{
    struct hf_delete_item del = {.table = store->table};
    struct hf_item there;

    TRY(snapshot_key(s, stream, name, &del.key));
    return hf__pattern_write(s, store->db, &(struct hf_transact_write){.del = &del}, del.key,
                             &there);
}
