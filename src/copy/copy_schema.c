/*
 * copy/copy_schema.c: definitions of tables: reading one, comparing two, making one.
 *
 * What is copied: keys, indexes, billing, stream, time to live, protection, table class, tags. What is not:
 * encryption keys, resource policies, replicas and backups, which belong to an account.
 *
 *  (1) A table that is in the target already is compared before anything is written. Its stream, its
 *      tags and its billing are its own affair; its keys and indexes have to be those of the source.
 *  (2) The time to live is switched on when the copy is over, by hf__copy_ttl_enable(): were it on
 *      while changes are applied, the target could remove an item whose life the source has just
 *      prolonged, and the change would find it gone.
 *  (3) A stream that this copy has switched on in the source is no part of the definition.
 */
#include "copy/private.h"

#include <holdfast/batch.h>
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include <string.h>

enum { TAGS_MAX = 1000 };

/* ---- reading -------------------------------------------------------------------------------- */

static struct hf_str text_keep(struct copy_table *t, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(t->copy->memory, text) : text;
}

static const struct hf_key_element *keys_keep(struct copy_table *t,
                                              const struct hf_key_element *keys, size_t len)
{
    struct hf_key_element *copy = hf__scope_array(t->copy->memory, len, sizeof(*copy));

    for (size_t i = 0; copy && i < len; i++)
        copy[i] = (struct hf_key_element){text_keep(t, keys[i].name), keys[i].type};
    return copy;
}

static const struct hf_projection *projection_keep(struct copy_table *t,
                                                   const struct hf_projection *projection)
{
    struct hf_projection *copy =
        projection ? hf__scope_array(t->copy->memory, 1, sizeof(*copy)) : NULL;
    struct hf_str *names;

    if (!copy)
        return NULL;
    copy->type = projection->type;
    if (projection->type != HF_PROJECT_INCLUDE || !projection->attributes_len)
        return copy;
    names = hf__scope_array(t->copy->memory, projection->attributes_len, sizeof(*names));
    for (size_t i = 0; names && i < projection->attributes_len; i++)
        names[i] = text_keep(t, projection->attributes[i]);
    copy->attributes = names;
    copy->attributes_len = names ? projection->attributes_len : 0;
    return copy;
}

/* NULL where there is none, as with tables that are billed per request. */
static const struct hf_throughput *
throughput_keep(struct copy_table *t, const struct hf_throughput_description *throughput)
{
    struct hf_throughput *copy;

    if (!throughput || throughput->read_units <= 0 || throughput->write_units <= 0 ||
        t->spec.billing == HF_BILLING_PAY_PER_REQUEST)
        return NULL;
    copy = hf__scope_array(t->copy->memory, 1, sizeof(*copy));
    if (copy)
        *copy = (struct hf_throughput){throughput->read_units, throughput->write_units};
    return copy;
}

static const struct hf_on_demand_throughput *
on_demand_keep(struct copy_table *t, const struct hf_on_demand_throughput *throughput)
{
    struct hf_on_demand_throughput *copy =
        throughput ? hf__scope_array(t->copy->memory, 1, sizeof(*copy)) : NULL;

    if (copy)
        *copy = *throughput;
    return copy;
}

static const struct hf_index *indexes_keep(struct copy_table *t,
                                           const struct hf_index_description *indexes, size_t len,
                                           bool global)
{
    struct hf_index *copy = len ? hf__scope_array(t->copy->memory, len, sizeof(*copy)) : NULL;

    for (size_t i = 0; copy && i < len; i++) {
        copy[i].name = text_keep(t, indexes[i].name);
        copy[i].key_schema = keys_keep(t, indexes[i].key_schema, indexes[i].key_schema_len);
        copy[i].key_schema_len = indexes[i].key_schema_len;
        copy[i].projection = projection_keep(t, indexes[i].projection);
        if (global) {
            copy[i].throughput = throughput_keep(t, indexes[i].throughput);
            copy[i].on_demand_throughput = on_demand_keep(t, indexes[i].on_demand_throughput);
        }
    }
    return copy;
}

static enum hf_billing billing_of(const struct hf_table_description *is)
{
    if (is->billing && is->billing->billing)
        return is->billing->billing;
    return is->throughput && is->throughput->read_units > 0 ? HF_BILLING_PROVISIONED
                                                            : HF_BILLING_PAY_PER_REQUEST;
}

static enum hf_status spec_of(struct hf_scope *s, struct copy_table *t,
                              const struct hf_table_description *is)
{
    struct hf_attribute_definition *attributes =
        hf__scope_array(t->copy->memory, is->attributes_len, sizeof(*attributes));
    struct hf_create_table *spec = &t->spec;

    *spec = (struct hf_create_table){.table = t->target, .billing = billing_of(is)};
    for (size_t i = 0; attributes && i < is->attributes_len; i++)
        attributes[i] = (struct hf_attribute_definition){text_keep(t, is->attributes[i].name),
                                                         is->attributes[i].type};
    spec->attributes = attributes;
    spec->attributes_len = is->attributes_len;
    spec->key_schema = keys_keep(t, is->key_schema, is->key_schema_len);
    spec->key_schema_len = is->key_schema_len;
    spec->local_indexes = indexes_keep(t, is->local_indexes, is->local_indexes_len, false);
    spec->local_indexes_len = is->local_indexes_len;
    spec->global_indexes = indexes_keep(t, is->global_indexes, is->global_indexes_len, true);
    spec->global_indexes_len = is->global_indexes_len;
    spec->throughput = throughput_keep(t, is->throughput);
    spec->on_demand_throughput = on_demand_keep(t, is->on_demand_throughput);
    if (spec->billing == HF_BILLING_PROVISIONED && !spec->throughput)
        spec->billing = HF_BILLING_PAY_PER_REQUEST;
    spec->table_class = is->table_class ? is->table_class->table_class : 0;
    spec->deletion_protection = is->deletion_protection == HF_YES ? HF_YES : HF_UNSET;
    if (is->stream && is->stream->enabled == HF_YES) {
        struct hf_stream_spec *stream = hf__scope_array(t->copy->memory, 1, sizeof(*stream));

        if (stream)
            *stream = (struct hf_stream_spec){HF_YES, is->stream->view};
        spec->stream = stream;
    }
    for (size_t i = 0; i < is->key_schema_len; i++)
        *(is->key_schema[i].type == HF_KEY_HASH ? &t->hash : &t->range) =
            text_keep(t, is->key_schema[i].name);
    return hf_scope_built(t->copy->memory) == HF_OK ? HF_OK
                                                    : hf_scope_fail(s, HF_NOMEM, "out of memory");
}

/* What a database that lacks the feature answers. */
static bool feature_lacks(enum hf_status status)
{
    return status == HF_UNSUPPORTED || status == HF_UNKNOWN_OPERATION || status == HF_DENIED;
}

static enum hf_status tags_read(struct hf_scope *s, struct copy_table *t, struct hf_str arn)
{
    struct hf_list_tags_of_resource request = {.arn = arn};
    struct hf_tag *tags = hf_scope_alloc(t->copy->memory, TAGS_MAX * sizeof(*tags));
    struct hf_pages *pages = NULL;
    struct hf_tag tag = {.key = arn};
    enum hf_status status;

    if (!tags)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    TRY(hf_pages_list_tags_of_resource(s, t->copy->source, &request, NULL, &pages));
    while ((status = hf_pages_next_tag(s, pages, &tag)) == HF_OK && tag.key.ptr)
        /* Those of AWS's own cannot be given to another table. */
        if (t->spec.tags_len < TAGS_MAX && !(tag.key.len >= 4 && !memcmp(tag.key.ptr, "aws:", 4)))
            tags[t->spec.tags_len++] =
                (struct hf_tag){text_keep(t, tag.key), text_keep(t, tag.value)};
    hf_pages_free(pages);
    t->spec.tags = t->spec.tags_len ? tags : NULL;
    if (!feature_lacks(status))
        return status;
    hf__copy_note(t, "its tags are not copied: %s", hf_scope_error_text(s));
    return hf_scope_ok(s);
}

static enum hf_status ttl_read(struct hf_scope *s, struct copy_table *t)
{
    struct hf_describe_time_to_live_result result;
    enum hf_status status =
        hf_describe_time_to_live(s, t->copy->source,
                                 &(struct hf_describe_time_to_live){.table = t->source}, &result);

    if (feature_lacks(status))
        return hf_scope_ok(s);
    TRY(status);
    if (result.description && (result.description->status == HF_TTL_ENABLED ||
                               result.description->status == HF_TTL_ENABLING))
        t->ttl = text_keep(t, result.description->attribute);
    return HF_OK;
}

enum hf_status hf__copy_table_look(struct hf_scope *s, struct copy_table *t)
{
    struct hf_describe_table_result result;
    const struct hf_table_description *is;

    TRY(hf_describe_table(s, t->copy->source, &(struct hf_describe_table){.table = t->source},
                          &result));
    is = result.table;
    TRY(spec_of(s, t, is));
    t->view = is->stream && is->stream->enabled == HF_YES ? is->stream->view : 0;
    TRY(hf__copy_text_set(s, t->copy, &t->stream, is->stream_arn));
    t->items_total = is->item_count > 0 ? (uint64_t)is->item_count : 0;
    t->bytes_total = is->size_bytes > 0 ? (uint64_t)is->size_bytes : 0;
    t->source_id = is->id.len ? text_keep(t, is->id)
                              : hf_scope_format(t->copy->memory, "%.*s %lld", HF_FMT(is->arn),
                                                (long long)is->created_us);
    if (!t->source_id.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    TRY(ttl_read(s, t));
    return is->arn.len ? tags_read(s, t, text_keep(t, is->arn)) : HF_OK;
}

/* ---- the target ----------------------------------------------------------------------------- */

/* (1) */
enum hf_status hf__copy_table_compare(struct hf_scope *s, struct copy_table *t)
{
    struct hf_create_table spec = t->spec;
    struct hf_table_options look = {.size = sizeof(look), .no_create = true, .any_isolation = true};
    enum hf_status status;

    status = hf_describe_table(s, t->copy->target, &(struct hf_describe_table){.table = t->target},
                               NULL);
    t->make = status == HF_NOT_FOUND;
    if (t->make)
        return hf_scope_ok(s);
    TRY(status);
    spec.stream = NULL;
    status = hf_table_ensure(s, t->copy->target, &spec, &look);
    if (status != HF_INVALID)
        return status;
    return hf_scope_fail_because(s, HF_INVALID, hf_scope_error(s),
                                 "the target has another %s; delete it there, or copy to another "
                                 "name",
                                 hf_scope_copy(s, hf_str_from(hf_scope_error_text(s))).ptr);
}

enum hf_status hf__copy_table_make(struct hf_scope *s, struct copy_table *t)
{
    struct hf_create_table spec = t->spec;

    if (t->made_stream || !t->make) /* (3), (1) */
        spec.stream = NULL;
    return hf_table_ensure(s, t->copy->target, &spec, NULL);
}

static enum hf_status page_remove(struct hf_scope *s, struct copy_table *t,
                                  const struct hf_scan_result *page)
{
    struct hf_write *writes = hf__scope_array(s, page->items_len + 1, sizeof(*writes));

    if (!writes)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < page->items_len; i++)
        writes[i] =
            (struct hf_write){.table = t->target, .del = hf__copy_key(s, t, page->items[i])};
    return page->items_len ? hf_write_many(s, t->copy->target, writes, page->items_len, NULL, NULL)
                           : HF_OK;
}

enum hf_status hf__copy_table_clear(struct hf_scope *s, struct copy_table *t)
{
    struct hf_scope *own = hf_scope_new(&t->copy->env);
    struct hf_scope *kept = hf_scope_new(&t->copy->env);
    struct hf_scan request = {.table = t->target, .consistent = HF_YES};
    struct hf_scan_result page = {.items_len = 0};
    enum hf_status status = own && kept ? HF_OK : hf_scope_fail(s, HF_NOMEM, "out of memory");
    bool more = status == HF_OK;

    while (more) {
        hf_scope_reset(own);
        hf__scope_follow(own, s);
        status = hf_scan(own, t->copy->target, &request, &page);
        if (status == HF_OK)
            status = page_remove(own, t, &page);
        more = status == HF_OK && page.last.ptr;
        hf_scope_reset(kept);
        if (more)
            request.start = hf_item_copy(kept, page.last);
        if (status != HF_OK)
            status = hf_scope_fail_from(s, status, own);
    }
    hf_scope_free(kept);
    hf_scope_free(own);
    return status;
}

/* (2) */
enum hf_status hf__copy_ttl_enable(struct hf_scope *s, struct copy_table *t)
{
    struct hf_create_table spec = t->spec;
    bool has = false;

    if (!t->ttl.len)
        return HF_OK;
    TRY(hf_db_supports(s, t->copy->target, HF_FEATURE_TIME_TO_LIVE, &has));
    if (!has) {
        hf__copy_note(t, "the target has no time to live: items do not expire there");
        return HF_OK;
    }
    spec.stream = NULL;
    return hf_table_ensure(s, t->copy->target, &spec,
                           HF_OPTIONS(hf_table_options, .ttl_attribute = t->ttl));
}

/* ---- the stream of the source --------------------------------------------------------------- */

enum { STREAM_TRIES = 100, STREAM_WAIT_MS = 300 };

enum hf_status hf__copy_stream_enable(struct hf_scope *s, struct copy_table *t)
{
    const struct hf_stream_spec stream = {HF_YES, HF_VIEW_NEW_AND_OLD_IMAGES};
    struct hf_update_table update = {.table = t->source, .stream = &stream};
    struct hf_describe_table_result is;
    enum hf_status status = hf_update_table(s, t->copy->source, &update, NULL);

    if (status != HF_OK)
        return hf_scope_fail_because(s, status, hf_scope_error(s),
                                     "table %.*s has no stream, and it cannot be switched on: %s. "
                                     "Switch on a stream with new and old images, or copy without "
                                     "following",
                                     HF_FMT(t->source),
                                     hf_scope_copy(s, hf_str_from(hf_scope_error_text(s))).ptr);
    for (int i = 0; i < STREAM_TRIES; i++) {
        TRY(hf_describe_table(s, t->copy->source, &(struct hf_describe_table){.table = t->source},
                              &is));
        if (is.table->status == HF_TABLE_ACTIVE && is.table->stream_arn.len && is.table->stream &&
            is.table->stream->enabled == HF_YES)
            break;
        TRY(hf_scope_sleep_ms(s, STREAM_WAIT_MS));
    }
    if (!is.table->stream_arn.len)
        return hf_scope_fail(s, HF_TIMEOUT, "the stream of table %.*s did not become active",
                             HF_FMT(t->source));
    t->made_stream = true;
    t->view = stream.view;
    hf__copy_note(t, "a stream was switched on in the source, with new and old images");
    return hf__copy_text_set(s, t->copy, &t->stream, is.table->stream_arn);
}
