/*
 * test/coord/played.c: streams that do what a test wants.
 *
 * An iterator is "SHARD INDEX CALL": where it goes on, and when it was made.
 */
#include "played.h"

#include <holdfast/scope.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARN "arn:aws:dynamodb:us-east-1:000000000000:table/played/stream/2026-01-01T00:00:00.000"

static int number_of(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

void played_stream_begin(struct played_stream *stream, struct hf_str table)
{
    memset(stream, 0, sizeof(*stream));
    stream->table = table;
    stream->list_page = 2;
    stream->now_us = 1767225600000000;
    stream->shards_len = 2;
    stream->shards[0] = (struct played_shard){.parent = -1, .low = 0, .high = PLAYED_ITEMS / 2};
    stream->shards[1] =
        (struct played_shard){.parent = -1, .low = PLAYED_ITEMS / 2, .high = PLAYED_ITEMS};
}

int played_shard_of(const struct played_stream *stream, int item)
{
    for (int i = 0; i < stream->shards_len; i++)
        if (!stream->shards[i].closed && item >= stream->shards[i].low &&
            item < stream->shards[i].high)
            return i;
    abort();
}

void played_change(struct played_stream *stream, int item)
{
    struct played_shard *shard = &stream->shards[played_shard_of(stream, item)];

    if (shard->len == PLAYED_RECORDS)
        abort();
    shard->records[shard->len++] = (struct played_record){.item = item,
                                                          .n = ++stream->numbers[item],
                                                          .created_us = stream->now_us,
                                                          .sequence = ++stream->sequence};
}

void played_split(struct played_stream *stream, int which, bool half)
{
    struct played_shard *shard = &stream->shards[which];
    int middle = (shard->low + shard->high) / 2;

    if (stream->shards_len + 2 > PLAYED_SHARDS)
        return;
    shard->closed = true;
    if (!half || middle == shard->low)
        middle = shard->high;
    stream->shards[stream->shards_len++] =
        (struct played_shard){.parent = which, .low = shard->low, .high = middle};
    if (middle < shard->high)
        stream->shards[stream->shards_len++] =
            (struct played_shard){.parent = which, .low = middle, .high = shard->high};
}

void played_read(const struct hf_item key, const struct hf_item image, int *item, int *n)
{
    int64_t number = 0;

    *item = hf_value_str(hf_item_get(key, HF_STR("id"))).ptr[0] - '0'; /* no NUL is behind it */
    (void)hf_value_i64(hf_item_get(image, HF_STR("n")), &number);
    *n = (int)number;
}

/* ---- what is asked -------------------------------------------------------------------------- */

static struct hf_str shard_id(struct hf_scope *s, int shard)
{
    return hf_scope_format(s, "shardId-%020d-played", shard);
}

static struct hf_str sequence_text(struct hf_scope *s, int sequence)
{
    return hf_scope_format(s, "1%020d", sequence);
}

/* The number of a listed shard; -1: there is none. */
static int shard_number(const struct played_stream *stream, struct hf_str id)
{
    int number = id.len == 35 ? number_of(id.ptr + 8) : -1;

    return number >= 0 && number < stream->shards_len && !stream->shards[number].gone ? number : -1;
}

static enum hf_status describe_table(struct hf_scope *s, struct played *played, const void *request,
                                     struct hf_describe_table_result *result)
{
    const struct hf_describe_table *ask = request;
    struct hf_table_description *table;
    enum hf_status status = hf_db_call(s, played->inner, HF_OP_DESCRIBE_TABLE, request, result);

    if (status != HF_OK || !hf_str_equal(ask->table, played->stream->table))
        return status;
    table = hf_scope_alloc(s, sizeof(*table));
    *table = *result->table;
    table->stream_arn = HF_STR(ARN);
    result->table = table;
    return HF_OK;
}

static enum hf_status describe_stream(struct hf_scope *s, struct played_stream *stream,
                                      const struct hf_describe_stream *request,
                                      struct hf_describe_stream_result *result)
{
    static const struct hf_key_element key = {{"id", 2}, HF_KEY_HASH};
    struct hf_stream_description *d = hf_scope_alloc(s, sizeof(*d));
    struct hf_shard *shards = hf_scope_alloc(s, PLAYED_SHARDS * sizeof(*shards));
    int from = request->start_shard.len ? number_of(request->start_shard.ptr + 8) + 1 : 0;

    *d = (struct hf_stream_description){.arn = HF_STR(ARN),
                                        .shards = shards,
                                        .key_schema = &key,
                                        .key_schema_len = 1};
    for (int i = from; i < stream->shards_len; i++) {
        const struct played_shard *shard = &stream->shards[i];
        struct hf_sequence_range *range = hf_scope_alloc(s, sizeof(*range));

        if (shard->gone || shard->hidden)
            continue;
        if (d->shards_len == (size_t)stream->list_page) {
            d->last_shard = shards[d->shards_len - 1].id;
            break;
        }
        *range = (struct hf_sequence_range){.first = sequence_text(s, 1)};
        if (shard->closed)
            range->last = sequence_text(s, stream->sequence);
        shards[d->shards_len] = (struct hf_shard){.id = shard_id(s, i), .range = range};
        if (shard->parent >= 0)
            shards[d->shards_len].parent = shard_id(s, shard->parent);
        d->shards_len++;
    }
    result->stream = d;
    return HF_OK;
}

static enum hf_status get_iterator(struct hf_scope *s, struct played_stream *stream,
                                   const struct hf_get_shard_iterator *request,
                                   struct hf_get_shard_iterator_result *result)
{
    int number = shard_number(stream, request->shard), at = 0;
    bool by_number = request->type == HF_ITERATOR_AT_SEQUENCE_NUMBER ||
                     request->type == HF_ITERATOR_AFTER_SEQUENCE_NUMBER;
    const struct played_shard *shard;

    if (number < 0)
        return hf_scope_fail(s, HF_NOT_FOUND, "no such shard");
    shard = &stream->shards[number];
    if (request->type == HF_ITERATOR_LATEST)
        at = shard->len;
    if (request->type == HF_ITERATOR_TRIM_HORIZON)
        at = shard->trimmed;
    if (by_number) {
        int sequence = number_of(request->sequence.ptr + 1);

        while (at < shard->len && shard->records[at].sequence < sequence)
            at++;
        if (at < shard->trimmed)
            return hf_scope_fail(s, HF_TRIMMED, "trimmed");
        if (request->type == HF_ITERATOR_AFTER_SEQUENCE_NUMBER)
            at++;
    }
    result->iterator = hf_scope_format(s, "%d %d %d", number, at, stream->calls);
    return HF_OK;
}

static struct hf_record record_of(struct hf_scope *s, const struct played_record *from)
{
    struct hf_stream_change *change = hf_scope_alloc(s, sizeof(*change));
    struct hf_item key = HF_ITEM(s, HF_S("id", hf_scope_format(s, "%d", from->item)));

    *change = (struct hf_stream_change){
        .created_us = from->created_us,
        .keys = key,
        .new_image = hf_item_with(s, key, (const struct hf_attr[]){HF_N("n", from->n)}, 1),
        .sequence = sequence_text(s, from->sequence)};
    return (struct hf_record){.id = hf_scope_format(s, "%d", from->sequence),
                              .event = from->n == 1 ? HF_CHANGE_INSERT : HF_CHANGE_MODIFY,
                              .change = change};
}

static enum hf_status get_records(struct hf_scope *s, struct played_stream *stream,
                                  const struct hf_get_records *request,
                                  struct hf_get_records_result *result)
{
    int limit = request->limit ? (int)request->limit : 1000, number, at, made;
    char *rest;
    struct played_shard *shard;
    struct hf_record *records;

    number = (int)strtol(request->iterator.ptr, &rest, 10);
    at = (int)strtol(rest, &rest, 10);
    made = (int)strtol(rest, &rest, 10);
    shard = &stream->shards[number];
    if (made < stream->expired)
        return hf_scope_fail(s, HF_EXPIRED, "expired");
    if (shard->gone)
        return hf_scope_fail(s, HF_NOT_FOUND, "no such shard");
    if (at < shard->trimmed)
        return hf_scope_fail(s, HF_TRIMMED, "trimmed");
    if (stream->page && limit > stream->page)
        limit = stream->page;
    if (stream->empty_every && ++shard->asked % stream->empty_every == 0)
        limit = 0;
    records = hf_scope_alloc(s, 1000 * sizeof(*records));
    result->records = records;
    while (at < shard->len && (int)result->records_len < limit)
        records[result->records_len++] = record_of(s, &shard->records[at++]);
    if (!shard->closed || at < shard->len)
        result->next = hf_scope_format(s, "%d %d %d", number, at, stream->calls);
    return HF_OK;
}

static enum hf_status list_streams(struct hf_scope *s, struct hf_list_streams_result *result)
{
    struct hf_stream_name *name = hf_scope_alloc(s, sizeof(*name));

    *name = (struct hf_stream_name){.arn = HF_STR(ARN)};
    *result = (struct hf_list_streams_result){.streams = name, .streams_len = 1};
    return HF_OK;
}

static enum hf_status played_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct played *played = (struct played *)(void *)db;
    struct played_stream *stream = played->stream;
    bool ours = op == HF_OP_DESCRIBE_STREAM || op == HF_OP_GET_SHARD_ITERATOR ||
                op == HF_OP_GET_RECORDS || op == HF_OP_LIST_STREAMS;
    struct hf_describe_table_result ignored;
    enum hf_status status;

    if (op == HF_OP_DESCRIBE_TABLE)
        return describe_table(s, played, request, response);
    if (!ours)
        return hf_db_call(s, played->inner, op, request, response);
    status = hf_describe_table(s, played->inner,
                               &(struct hf_describe_table){.table = stream->table}, &ignored);
    if (status != HF_OK)
        return status;
    stream->calls++;
    switch ((int)op) {
    case HF_OP_DESCRIBE_STREAM:
        return describe_stream(s, stream, request, response);
    case HF_OP_GET_SHARD_ITERATOR:
        return get_iterator(s, stream, request, response);
    case HF_OP_GET_RECORDS:
        return get_records(s, stream, request, response);
    default:
        return list_streams(s, response);
    }
}

static void played_close(struct hf_db *db)
{
    (void)db;
}

static const struct db_calls played_calls = {.call = played_call, .close = played_close};

void played_open(struct played *played, struct hf_db *inner, struct played_stream *stream)
{
    *played = (struct played){.db = {.calls = &played_calls}, .inner = inner, .stream = stream};
}
