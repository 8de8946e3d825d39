/*
 * ops/prepare_tables.c: CreateTable and UpdateTable: all checks of a table that need no other
 * table.
 *
 * A new table is checked in DynamoDB's order: throughput, the table's own keys, local indexes,
 * global indexes, then whether every attribute definition is used. Tables and local indexes have one
 * HASH and at most one RANGE element, global indexes up to four of both.
 */
#include "ops/private.h"

enum {
    LOCAL_INDEXES_MAX = 5,
    GLOBAL_INDEXES_MAX = 20,
    INDEX_KEYS_MAX = 4, /* HASH attributes of a global index, and RANGE attributes */
    PROJECTED_MAX = 100 /* names in INCLUDE projections of all indexes */
};

/* ---- encryption ----------------------------------------------------------------------------- */

bool hf__sse_wanted(const struct hf_sse_spec *sse)
{
    return sse && (sse->enabled == HF_YES || (sse->enabled == HF_UNSET && sse->type));
}

static enum hf_status check_sse(struct hf_scope *s, const struct hf_sse_spec *sse)
{
    const char *wrong = NULL;

    if (!sse)
        return HF_OK;
    if (sse->enabled == HF_NO && sse->type)
        wrong = "SSEType can not be specified if Enabled is false";
    else if (sse->enabled == HF_NO && sse->kms_key_id.ptr)
        wrong = "KMSMasterKeyId can not be specified if Enabled is false";
    else if (sse->type == HF_SSE_AES256)
        wrong = "SSEType AES256 is not supported";
    else if (sse->kms_key_id.ptr && !sse->type)
        wrong = "SSEType KMS is required if KMSMasterKeyId is specified";
    return wrong ? hf__fail(s, HF_INVALID, BAD_VALUES "%s", wrong) : HF_OK;
}

/* ---- key schemas ---------------------------------------------------------------------------- */

struct definitions {
    const struct hf_attribute_definition *list;
    size_t len;
};

static const struct hf_attribute_definition *definition_find(struct definitions d,
                                                             struct hf_str name)
{
    for (size_t i = 0; i < d.len; i++)
        if (hf_str_equal(d.list[i].name, name))
            return &d.list[i];
    return NULL;
}

static void put_names(struct hf__buf *out, const void *names, size_t len, size_t size)
{
    assert((names || !len) && size >= sizeof(struct hf_str));
    for (size_t i = 0; i < len; i++) {
        struct hf_str name;

        memcpy(&name, (const uint8_t *)names + i * size, sizeof(name));
        if (i > 0)
            hf__buf_put_str(out, HF_STR(", "));
        hf__buf_put_str(out, name);
    }
}

_Static_assert(HF_KEY_HASH != HF_KEY_RANGE && HF_KEY_HASH > 0, "0 is absent");

/* Names are the first member of both structs. */
_Static_assert(offsetof(struct hf_attribute_definition, name) == 0, "put_names() reads it");
_Static_assert(offsetof(struct hf_key_element, name) == 0, "put_names() reads it");

static enum hf_status fail_undefined(struct hf_scope *s, const struct hf_key_element *keys,
                                     size_t len, struct definitions d)
{
    struct hf__buf text = {.scope = s};

    assert(keys && len > 0);
    hf__buf_put_str(&text,
                    HF_STR(BAD_VALUES
                           "Some index key attributes are not defined in AttributeDefinitions. "
                           "Keys: ["));
    put_names(&text, keys, len, sizeof(*keys));
    hf__buf_put_str(&text, HF_STR("], AttributeDefinitions: ["));
    put_names(&text, d.list, d.len, sizeof(*d.list));
    hf__buf_put(&text, "]", 2);
    if (text.failed)
        return hf__fail_nomem(s);
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)text.ptr, text.len - 1));
}

/* HASH before RANGE, and not too many of either; constraints have seen to the sum. */
static enum hf_status check_global_keys(struct hf_scope *s, const struct hf_key_element *keys,
                                        size_t len)
{
    size_t hashes = 0;

    assert(len >= 1 && keys[0].type == HF_KEY_HASH); /* check_key_schema() */
    for (size_t i = 0; i < len; i++) {
        if (keys[i].type == HF_KEY_HASH && hashes < i)
            return hf__fail(s, HF_INVALID,
                            BAD_VALUES "All HASH key attributes must precede RANGE key attributes "
                                       "in the KeySchema");
        hashes += keys[i].type == HF_KEY_HASH;
    }
    if (hashes > INDEX_KEYS_MAX || len - hashes > INDEX_KEYS_MAX)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "The KeySchema exceeds the maximum allowed number of %s key "
                                   "attributes",
                        hashes > INDEX_KEYS_MAX ? "HASH" : "RANGE");
    return HF_OK;
}

/* The pair of a HASH and a RANGE has a text that is older than keys of several attributes. */
static enum hf_status fail_same_name(struct hf_scope *s, const struct hf_key_element *keys,
                                     size_t len, bool global)
{
    assert(len >= 2);
    if (global && (len > 2 || keys[0].type == keys[1].type))
        return hf__fail(s, HF_INVALID,
                        "The KeySchema contains multiple key attributes with the same name");
    return hf__fail(s, HF_INVALID,
                    "Both the Hash Key and the Range Key element in the KeySchema have the same "
                    "name");
}

/* One HASH, then perhaps one RANGE; a global index may have several of both. */
static enum hf_status check_key_schema(struct hf_scope *s, const struct hf_key_element *keys,
                                       size_t len, struct definitions d, bool global)
{
    assert(keys && len >= 1); /* constraints ask for one at least */
    for (size_t i = 0; d.list && i < len; i++)
        if (!definition_find(d, keys[i].name))
            return fail_undefined(s, keys, len, d);
    for (size_t i = 1; i < len; i++)
        for (size_t k = 0; k < i; k++)
            if (hf_str_equal(keys[i].name, keys[k].name))
                return fail_same_name(s, keys, len, global);
    if (keys[0].type != HF_KEY_HASH)
        return hf__fail(s, HF_INVALID,
                        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    if (global)
        return check_global_keys(s, keys, len);
    if (len == 2 && keys[1].type != HF_KEY_RANGE)
        return hf__fail(s, HF_INVALID,
                        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
    return HF_OK;
}

static enum hf_status check_definitions(struct hf_scope *s, struct definitions d)
{
    const struct hf_str *repeat;

    assert(d.list || !d.len);
    TRY(hf__find_repeat(s, d.list, sizeof(*d.list), d.len, &repeat));
    if (repeat)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Duplicate AttributeName in AttributeDefinitions: %.*s",
                        HF_FMT(*repeat));
    return HF_OK;
}

/* ---- indexes -------------------------------------------------------------------------------- */

static const char *projection_name(enum hf_projection_type type)
{
    assert(type == HF_PROJECT_ALL || type == HF_PROJECT_KEYS_ONLY || type == HF_PROJECT_INCLUDE);
    return type == HF_PROJECT_ALL ? "ALL" : type == HF_PROJECT_KEYS_ONLY ? "KEYS_ONLY" : "INCLUDE";
}

static enum hf_status check_projection(struct hf_scope *s, const struct hf_projection *projection)
{
    const struct hf_str *repeat;

    assert(projection); /* it is required */
    if (!projection->type)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Unknown ProjectionType: null");
    if (projection->attributes && projection->type != HF_PROJECT_INCLUDE)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "ProjectionType is %s, but NonKeyAttributes is specified",
                        projection_name(projection->type));
    if (!projection->attributes && projection->type == HF_PROJECT_INCLUDE)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES
                        "ProjectionType is INCLUDE, but NonKeyAttributes is not specified");
    TRY(hf__find_repeat(s, projection->attributes, sizeof(*projection->attributes),
                        projection->attributes_len, &repeat));
    if (repeat)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Duplicate element in NonKeyAttributes: %.*s",
                        HF_FMT(*repeat));
    return HF_OK;
}

enum hf_status hf__prepare_index(struct hf_scope *s, const struct hf_index *index, bool local,
                                 const struct hf_attribute_definition *attributes,
                                 size_t attributes_len, struct hf_str hash)
{
    struct definitions d = {attributes, attributes_len};

    assert(index->name.len && index->key_schema_len > 0);
    TRY(check_key_schema(s, index->key_schema, index->key_schema_len, d, !local));
    if (local && index->key_schema_len != 2)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Index KeySchema does not have a range key for index: %.*s",
                        HF_FMT(index->name));
    if (local && !hf_str_equal(index->key_schema[0].name, hash))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Index KeySchema does not have the same leading hash key as "
                                   "table KeySchema for index: %.*s. index hash key: %.*s, table "
                                   "hash key: %.*s",
                        HF_FMT(index->name), HF_FMT(index->key_schema[0].name), HF_FMT(hash));
    return check_projection(s, index->projection);
}

/* Is the name of global_indexes[i], or local_indexes[i], taken by one before it? */
static bool name_taken(const struct hf_create_table *request, bool local, size_t i)
{
    const struct hf_index *own = local ? request->local_indexes : request->global_indexes;

    assert(i < (local ? request->local_indexes_len : request->global_indexes_len));
    for (size_t k = 0; k < i; k++)
        if (hf_str_equal(own[k].name, own[i].name))
            return true;
    for (size_t k = 0; !local && k < request->local_indexes_len; k++)
        if (hf_str_equal(request->local_indexes[k].name, own[i].name))
            return true;
    return false;
}

static enum hf_status check_indexes(struct hf_scope *s, const struct hf_create_table *request,
                                    bool local)
{
    const struct hf_index *indexes = local ? request->local_indexes : request->global_indexes;
    size_t len = local ? request->local_indexes_len : request->global_indexes_len;
    size_t most = local ? LOCAL_INDEXES_MAX : GLOBAL_INDEXES_MAX;

    if (indexes && len == 0)
        return hf__fail(s, HF_INVALID, BAD_VALUES "List of %s is empty",
                        local ? "LocalSecondaryIndexes" : "GlobalSecondaryIndexes");
    if (local && indexes && request->key_schema_len < 2)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Table KeySchema does not have a range key, which is required "
                                   "when specifying a LocalSecondaryIndex");
    for (size_t i = 0; i < len && i <= most; i++) { /* one past the limit fails below */
        TRY(hf__prepare_index(s, &indexes[i], local, request->attributes, request->attributes_len,
                              request->key_schema[0].name));
        if (!local)
            TRY(hf__check_index_throughput(s, &indexes[i], request->billing));
        if (name_taken(request, local, i))
            return hf__fail(s, HF_INVALID, BAD_VALUES "Duplicate index name: %.*s",
                            HF_FMT(indexes[i].name));
    }
    if (local && len > most)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Number of LocalSecondaryIndexes exceeds per-table limit of 5");
    if (len > most)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "GlobalSecondaryIndex count exceeds the per-table limit of 20");
    return HF_OK;
}

static size_t count_projected(const struct hf_index *indexes, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        assert(indexes[i].projection); /* hf__prepare_index() */
        count += indexes[i].projection->attributes_len;
    }
    return count;
}

/* ---- every definition is used --------------------------------------------------------------- */

static bool in_schema(const struct hf_key_element *keys, size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(keys[i].name, name))
            return true;
    return false;
}

static bool in_indexes(const struct hf_index *indexes, size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (in_schema(indexes[i].key_schema, indexes[i].key_schema_len, name))
            return true;
    return false;
}

static bool is_used(const struct hf_create_table *request, struct hf_str name)
{
    return in_schema(request->key_schema, request->key_schema_len, name) ||
           in_indexes(request->local_indexes, request->local_indexes_len, name) ||
           in_indexes(request->global_indexes, request->global_indexes_len, name);
}

static enum hf_status check_all_used(struct hf_scope *s, const struct hf_create_table *request)
{
    struct hf__buf text = {.scope = s};
    size_t used = 0;

    hf__buf_put_str(&text,
                    HF_STR(BAD_VALUES
                           "Some AttributeDefinitions are not used. AttributeDefinitions: ["));
    put_names(&text, request->attributes, request->attributes_len, sizeof(*request->attributes));
    hf__buf_put_str(&text, HF_STR("], keys used: ["));
    for (size_t i = 0; i < request->attributes_len; i++) {
        if (!is_used(request, request->attributes[i].name))
            continue;
        hf__buf_put_str(&text, used++ ? HF_STR(", ") : HF_STR(""));
        hf__buf_put_str(&text, request->attributes[i].name);
    }
    hf__buf_put(&text, "]", 2);
    assert(used >= request->key_schema_len); /* keys are defined, and have different names */
    if (used == request->attributes_len)
        return HF_OK;
    if (text.failed)
        return hf__fail_nomem(s);
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)text.ptr, text.len - 1));
}

/* The table's own keys; without indexes every definition must be one of them. */
static enum hf_status check_table_keys(struct hf_scope *s, const struct hf_create_table *request)
{
    struct definitions d = {request->attributes, request->attributes_len};

    assert(request->key_schema && request->key_schema_len > 0);
    if (request->key_schema_len > d.len)
        return hf__fail(s, HF_INVALID,
                        "Invalid KeySchema: Some index key attribute have no definition");
    TRY(check_definitions(s, d));
    TRY(check_key_schema(s, request->key_schema, request->key_schema_len, d, false));
    if (!request->local_indexes && !request->global_indexes && request->key_schema_len != d.len)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Number of attributes in KeySchema does not exactly match "
                                   "number of attributes defined in AttributeDefinitions");
    return HF_OK;
}

/* ---- streams -------------------------------------------------------------------------------- */

static enum hf_status check_stream(struct hf_scope *s, const struct hf_stream_spec *stream,
                                   bool creating)
{
    if (stream && stream->enabled == HF_YES && !stream->view)
        return hf__fail(s, HF_INVALID, BAD_VALUES "%s",
                        creating ? "Table is being created with a stream enabled, UpdateViewType "
                                   "is required"
                                 : "If stream is being enabled then UpdateViewType is required");
    if (stream && stream->enabled == HF_NO && stream->view)
        return hf__fail(s, HF_INVALID, BAD_VALUES "%s",
                        creating ? "Table is being created with a stream disabled, UpdateViewType "
                                   "should not be specified"
                                 : "If stream is being disabled, then UpdateViewType must not be "
                                   "specified");
    return HF_OK;
}

/* ---- CreateTable ---------------------------------------------------------------------------- */

enum hf_status hf__prepare_create_table(struct hf_scope *s, const struct hf_create_table *request)
{
    size_t projected;

    TRY(hf__constraints(s, HF_OP_CREATE_TABLE, request));
    TRY(hf__check_table_throughput(s, request));
    TRY(check_table_keys(s, request));
    TRY(check_indexes(s, request, true));
    TRY(check_indexes(s, request, false));
    projected = count_projected(request->local_indexes, request->local_indexes_len) +
                count_projected(request->global_indexes, request->global_indexes_len);
    if (projected > PROJECTED_MAX)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Number of NonKeyAttributes of all indexes exceeds the "
                                   "per-table limit of 100");
    TRY(check_all_used(s, request));
    TRY(check_stream(s, request->stream, true));
    TRY(check_sse(s, request->sse));
    return hf__check_tags(s, request->tags, request->tags_len);
}

/* ---- UpdateTable ---------------------------------------------------------------------------- */

static bool changes_something(const struct hf_update_table *request)
{
    return request->throughput || request->billing || request->stream ||
           request->index_changes_len || request->sse || request->replicas_len ||
           request->table_class || request->deletion_protection ||
           hf__has_limits(request->on_demand_throughput) || hf__has_warm(request->warm_throughput);
}

/* The newer wording has no text of its own for an empty list of indexes. */
static enum hf_status fail_nothing(struct hf_scope *s, const struct hf_update_table *request)
{
    assert(!changes_something(request));
    if (hf__scope_wording(s) == HF__WORDING_2026)
        return hf__fail(s, HF_INVALID,
                        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                        "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, "
                        "MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
                        "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or "
                        "TableClass is required");
    if (request->index_changes)
        return hf__fail(s, HF_INVALID, BAD_VALUES "List of GlobalSecondaryIndexUpdates is empty");
    return hf__fail(s, HF_INVALID,
                    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                    "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is "
                    "required");
}

static struct hf_str change_name(const struct hf_index_change *change)
{
    assert(change->update || change->create || change->del);
    return change->update   ? change->update->name
           : change->create ? change->create->name
                            : change->del->name;
}

static enum hf_status check_change(struct hf_scope *s, const struct hf_index_change *change)
{
    int members = (change->update != NULL) + (change->create != NULL) + (change->del != NULL);

    assert(change);
    if (members == 0)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "One of GlobalSecondaryIndexUpdate.Update, "
                                   "GlobalSecondaryIndexUpdate.Create, "
                                   "GlobalSecondaryIndexUpdate.Delete must not be null");
    if (members > 1)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Only one global secondary index action is allowed per "
                                   "GlobalSecondaryIndexUpdate object");
    if (change->create)
        TRY(hf__prepare_index(s, change->create, false, NULL, 0, hf_str_of(NULL, 0)));
    if (change->create && change->create->throughput)
        TRY(hf__check_units(s, change->create->throughput));
    return change->update ? hf__check_index_update(s, change->update) : HF_OK;
}

static enum hf_status check_changes(struct hf_scope *s, const struct hf_update_table *request)
{
    struct hf_str *names = hf__scope_array(s, request->index_changes_len, sizeof(*names));
    const struct hf_str *repeat;
    size_t online = 0;

    assert(request->index_changes || !request->index_changes_len);
    if (!names)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < request->index_changes_len; i++) {
        TRY(check_change(s, &request->index_changes[i]));
        names[i] = change_name(&request->index_changes[i]);
        online += !request->index_changes[i].update;
    }
    TRY(hf__find_repeat(s, names, sizeof(*names), request->index_changes_len, &repeat));
    if (repeat)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Only one global secondary index update per index is allowed "
                                   "simultaneously. Index: %.*s",
                        HF_FMT(*repeat));
    if (online > 1)
        return hf__fail(s, HF_LIMIT,
                        "Subscriber limit exceeded: Only 1 online index can be created or deleted "
                        "simultaneously per table");
    return HF_OK;
}

/* How many kinds of change the request asks for. */
static int count_kinds(const struct hf_update_table *request)
{
    return (request->throughput || request->billing ||
            hf__has_limits(request->on_demand_throughput)) +
           (request->stream != NULL) + (request->index_changes_len > 0) + (request->sse != NULL) +
           (request->replicas_len > 0) + (request->table_class != 0) +
           (request->deletion_protection != HF_UNSET) + hf__has_warm(request->warm_throughput);
}

static bool changes_online(const struct hf_update_table *request)
{
    for (size_t i = 0; i < request->index_changes_len; i++)
        if (request->index_changes[i].create || request->index_changes[i].del)
            return true;
    return false;
}

static bool creates_index(const struct hf_update_table *request)
{
    for (size_t i = 0; i < request->index_changes_len; i++)
        if (request->index_changes[i].create)
            return true;
    return false;
}

/* Throughput that is neither provisioned nor of one index, beside other changes. */
static enum hf_status check_limits_alone(struct hf_scope *s, const struct hf_update_table *request)
{
    bool warm = hf__has_warm(request->warm_throughput);

    assert(count_kinds(request) >= 1);
    if (hf__has_limits(request->on_demand_throughput) && (request->stream || warm))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "OnDemandThroughput can only be combined with BillingMode in an "
                                   "UpdateTable request");
    if (warm && creates_index(request))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Create global secondary index cannot be specified when "
                                   "updating WarmThroughput");
    if (warm && count_kinds(request) - (request->index_changes_len > 0) > 1)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "WarmThroughput must be the only operation in the request");
    return HF_OK;
}

/* Some changes want a call of their own. */
static enum hf_status check_together(struct hf_scope *s, const struct hf_update_table *request)
{
    const char *alone = request->sse                   ? "Server-Side Encryption"
                        : request->table_class         ? "TableClass"
                        : request->deletion_protection ? "DeletionProtection"
                        : request->replicas_len        ? "Replica"
                                                       : NULL;

    assert(count_kinds(request) >= 1); /* or there was nothing to change */
    if (alone && count_kinds(request) > 1)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "%s modification must be the only operation in the request",
                        alone);
    TRY(check_limits_alone(s, request));
    if (request->throughput && request->stream)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "You cannot modify stream status while updating table IOPS");
    if (request->throughput && changes_online(request))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "You cannot create or delete index while updating table IOPS");
    if (request->stream && changes_online(request))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "You cannot create or delete index while changing stream "
                                   "status");
    return HF_OK;
}

enum hf_status hf__prepare_update_table(struct hf_scope *s, const struct hf_update_table *request)
{
    struct definitions d = {request->attributes, request->attributes_len};

    TRY(hf__constraints(s, HF_OP_UPDATE_TABLE, request));
    if (!changes_something(request))
        return fail_nothing(s, request);
    if (request->billing == HF_BILLING_PROVISIONED && !request->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES
                        "ProvisionedThroughput must be specified when BillingMode is PROVISIONED");
    if (request->billing == HF_BILLING_PAY_PER_REQUEST && request->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be "
                                   "specified when BillingMode is PAY_PER_REQUEST");
    if (request->throughput)
        TRY(hf__check_units(s, request->throughput));
    TRY(check_definitions(s, d));
    TRY(check_stream(s, request->stream, false));
    TRY(check_together(s, request));
    TRY(check_sse(s, request->sse));
    TRY(hf__check_limits(s, request->on_demand_throughput));
    if (request->index_changes && request->index_changes_len == 0)
        return hf__fail(s, HF_INVALID, BAD_VALUES "List of GlobalSecondaryIndexUpdates is empty");
    if (request->replicas_len)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "ReplicaUpdates are not supported: there are no other regions");
    return check_changes(s, request);
}
