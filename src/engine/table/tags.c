/*
 * engine/table/tags.c: tags of tables, and the ARNs by which they are asked for.
 */
#include "engine/engine.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "ops/prepare.h"
#include "store/store.h"

enum { TAGS_MAX = 50 };

static enum hf_status fail_arn(struct hf_scope *s, struct hf_str arn)
{
    return hf__fail(s, HF_INVALID, "Invalid TableArn: Invalid ResourceArn provided as input %.*s",
                    HF_FMT(arn));
}

/* The table that an ARN names; the schema lock is held. */
static enum hf_status find_by_arn(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                  struct table **table)
{
    struct table_arn parts;

    if (!hf__arn_split(arn, &parts))
        return fail_arn(s, arn);
    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    TRY(hf__arn_check_account(s, e, parts.account, arn));
    if (!hf_str_equal(parts.region, e->region))
        return fail_arn(s, arn);
    *table = hf__catalog_find(e, parts.name);
    if (!*table || hf__table_filling(e, *table))
        return hf__fail(s, HF_NOT_FOUND,
                        "Requested resource not found: ResourceArn: %.*s not found", HF_FMT(arn));
    return HF_OK;
}

/* ---- changing ------------------------------------------------------------------------------- */

static enum hf_status replace_tags(struct hf_scope *s, struct engine *e, struct table *table,
                                   const struct hf_tag *tags, size_t len)
{
    struct table_record record = table->record;
    struct store_batch batch = {.ops = {.scope = s}};

    assert(len <= TAGS_MAX);
    record.tags = tags;
    record.tags_len = len;
    return hf__catalog_update(s, e, &batch, table, &record);
}

static enum hf_status tag_locked(struct hf_scope *s, struct engine *e,
                                 const struct hf_tag_resource *request)
{
    struct table *table;
    struct hf_tag *tags;
    size_t len;

    TRY(find_by_arn(s, e, request->arn, &table));
    len = table->record.tags_len;
    tags = hf__scope_array(s, len + request->tags_len, sizeof(*tags));
    if (!tags)
        return hf__fail_nomem(s);
    if (len)
        memcpy(tags, table->record.tags, len * sizeof(*tags));
    for (size_t i = 0; i < request->tags_len; i++) {
        size_t at = 0;

        while (at < len && !hf_str_equal(tags[at].key, request->tags[i].key))
            at++;
        tags[at] = request->tags[i];
        len += at == len;
    }
    if (len > TAGS_MAX)
        return hf__fail(s, HF_INVALID,
                        "Number of Tags exceed the current limit for the provided ResourceArn");
    return replace_tags(s, e, table, tags, len);
}

enum hf_status hf__engine_tag_resource(struct hf_scope *s, struct engine *e,
                                       const struct hf_tag_resource *request,
                                       struct hf_tag_resource_result *result)
{
    enum hf_status status;

    (void)result;
    TRY(hf__prepare_tag_resource(s, request));
    hf__schema_lock(e);
    status = tag_locked(s, e, request);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}

static bool is_listed(const struct hf_str *keys, size_t len, struct hf_str key)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(keys[i], key))
            return true;
    return false;
}

static enum hf_status untag_locked(struct hf_scope *s, struct engine *e,
                                   const struct hf_untag_resource *request)
{
    struct table *table;
    struct hf_tag *tags;
    size_t len = 0;

    TRY(find_by_arn(s, e, request->arn, &table));
    tags = hf__scope_array(s, table->record.tags_len, sizeof(*tags));
    if (!tags)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < table->record.tags_len; i++)
        if (!is_listed(request->keys, request->keys_len, table->record.tags[i].key))
            tags[len++] = table->record.tags[i];
    return replace_tags(s, e, table, tags, len);
}

enum hf_status hf__engine_untag_resource(struct hf_scope *s, struct engine *e,
                                         const struct hf_untag_resource *request,
                                         struct hf_untag_resource_result *result)
{
    enum hf_status status;

    (void)result;
    TRY(hf__prepare_untag_resource(s, request));
    hf__schema_lock(e);
    status = untag_locked(s, e, request);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}

/* ---- listing -------------------------------------------------------------------------------- */

static enum hf_status list_locked(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                  struct hf_list_tags_of_resource_result *result)
{
    struct table *table;
    struct hf_tag *tags;

    TRY(find_by_arn(s, e, arn, &table));
    tags = hf__scope_array(s, table->record.tags_len, sizeof(*tags));
    if (!tags)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < table->record.tags_len; i++) {
        tags[i].key = hf_scope_copy(s, table->record.tags[i].key);
        tags[i].value = hf_scope_copy(s, table->record.tags[i].value);
        if (!tags[i].key.ptr || !tags[i].value.ptr)
            return hf__fail_nomem(s);
    }
    result->tags = tags;
    result->tags_len = table->record.tags_len;
    return HF_OK;
}

enum hf_status hf__engine_list_tags_of_resource(struct hf_scope *s, struct engine *e,
                                                const struct hf_list_tags_of_resource *request,
                                                struct hf_list_tags_of_resource_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_LIST_TAGS_OF_RESOURCE, request));
    TRY(hf__prepare_resource_arn(s, request->arn));
    pthread_rwlock_rdlock(&e->schema);
    status = list_locked(s, e, request->arn, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}
