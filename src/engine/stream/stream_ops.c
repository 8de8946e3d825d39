/*
 * engine/stream/stream_ops.c: ListStreams, DescribeStream, GetShardIterator and GetRecords.
 *
 * A shard iterator is the stream's ARN, a bar, and in hex: stream id, shard, the sequence number
 * to go on from, when it was made, and a keyed hash over all of it. It is good for 15 minutes; one
 * that was made up or changed is refused.
 */
#include "engine/engine.h"
#include "engine/operations.h"
#include "engine/stream/streams.h"
#include "ops/prepare.h"
#include "store/store.h"

#include <xxhash.h>

#include "base/siphash.h"

enum {
    PAGE_STREAMS = 100,
    PAGE_SHARDS = 100,
    PAGE_RECORDS = 1000,
    PAGE_RECORD_BYTES = 1024 * 1024,
    ITERATOR_BYTES = 4 + 2 + 8 + 8,
    ITERATOR_TAG = 8
};
_Static_assert(ITERATOR_BYTES == 22 && ITERATOR_TAG == 8, "stream, shard, sequence, when; hash");

/* ---- sequence numbers as text --------------------------------------------------------------- */

static struct hf_str sequence_text(struct hf_scope *s, uint64_t number)
{
    return hf_scope_format(s, "1%020llu", (unsigned long long)number);
}

static bool sequence_number(struct hf_str text, uint64_t *number)
{
    uint64_t value = 0;

    if (text.len != SEQUENCE_TEXT || text.ptr[0] != '1')
        return false;
    for (size_t i = 1; i < text.len; i++) {
        char c = text.ptr[i];

        if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return false;
    }
    *number = value;
    return true;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* arn:<partition>:dynamodb:<region>:<account>:table/<name>/stream/<label> */
static bool is_stream_arn(struct hf_str arn)
{
    static const char table[] = "table/";
    static const char stream[] = "/stream/";
    const char *end = arn.ptr + arn.len;
    const char *part[6] = {arn.ptr};
    const char *mark;

    for (size_t i = 1; i < ARRAY_LEN(part); i++) {
        const char *colon = memchr(part[i - 1], ':', (size_t)(end - part[i - 1]));

        if (!colon)
            return false;
        part[i] = colon + 1;
    }
    if (!str_is(hf_str_of(part[0], (size_t)(part[1] - part[0])), "arn:") ||
        !str_is(hf_str_of(part[2], (size_t)(part[3] - part[2])), "dynamodb:") ||
        (size_t)(end - part[5]) < sizeof(table) || memcmp(part[5], table, sizeof(table) - 1) != 0)
        return false;
    part[5] += sizeof(table) - 1;
    mark = memmem(part[5], (size_t)(end - part[5]), stream, sizeof(stream) - 1);
    return mark && mark > part[5] && mark + sizeof(stream) - 1 < end;
}

static enum hf_status fail_arn(struct hf_scope *s, struct hf_str arn)
{
    return hf__fail(s, HF_INVALID, "Invalid StreamArn: %.*s", HF_FMT(arn));
}

static enum hf_status find_stream(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                  struct stream **stream)
{
    ASSERT_SCHEMA_HELD(e);
    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    for (size_t i = 0; i < e->streams.len; i++) {
        if (hf_str_equal(e->streams.list[i]->record.arn, arn)) {
            *stream = e->streams.list[i];
            return HF_OK;
        }
    }
    if (!is_stream_arn(arn))
        return fail_arn(s, arn);
    return hf__fail(s, HF_NOT_FOUND, "Requested resource not found: Stream: %.*s not found",
                    HF_FMT(arn));
}

static enum hf_status find_shard(struct hf_scope *s, const struct stream *stream, struct hf_str id,
                                 uint16_t *shard)
{
    for (size_t i = 0; i < stream->record.shards_len; i++) {
        if (hf_str_equal(stream->shards[i].id, id)) {
            *shard = (uint16_t)i;
            return HF_OK;
        }
    }
    return hf__fail(s, HF_NOT_FOUND,
                    "Requested resource not found: Shard: %.*s in Stream: %.*s not found",
                    HF_FMT(id), HF_FMT(stream->record.arn));
}

/* ---- ListStreams ---------------------------------------------------------------------------- */

/* The stream with the least ARN behind `after` (of one table, if given); NULL when none is left. */
static const struct stream *next_stream(struct engine *e, struct hf_str after, struct hf_str table)
{
    const struct stream *best = NULL;

    for (size_t i = 0; i < e->streams.len; i++) {
        const struct stream *stream = e->streams.list[i];
        struct hf_str arn = stream->record.arn;

        if (table.ptr && !hf_str_equal(stream->record.table, table))
            continue;
        if (after.ptr && bytes_compare(arn.ptr, arn.len, after.ptr, after.len) <= 0)
            continue;
        if (!best ||
            bytes_compare(arn.ptr, arn.len, best->record.arn.ptr, best->record.arn.len) < 0)
            best = stream;
    }
    return best;
}

static enum hf_status list_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_list_streams *request,
                                  struct hf_list_streams_result *result)
{
    size_t limit = request->limit ? (size_t)request->limit : PAGE_STREAMS;
    struct hf_stream_name *names = hf__scope_array(s, limit, sizeof(*names));
    struct hf_str after = request->start_arn;
    struct hf_str table = request->table;
    const struct stream *stream;
    size_t len = 0;

    if (!names)
        return hf__fail_nomem(s);
    while (len < limit && (stream = next_stream(e, after, table))) {
        names[len].arn = hf_scope_copy(s, stream->record.arn);
        names[len].table = hf_scope_copy(s, stream->record.table);
        names[len].label = hf_scope_copy(s, stream->record.label);
        if (!names[len].arn.ptr || !names[len].table.ptr || !names[len].label.ptr)
            return hf__fail_nomem(s);
        after = names[len++].arn;
    }
    if (len == limit && next_stream(e, after, table))
        result->last_arn = after;
    result->streams = names;
    result->streams_len = len;
    return HF_OK;
}

enum hf_status hf__engine_list_streams(struct hf_scope *s, struct engine *e,
                                       const struct hf_list_streams *request,
                                       struct hf_list_streams_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_LIST_STREAMS, request));
    if (request->start_arn.ptr && !is_stream_arn(request->start_arn))
        return fail_arn(s, request->start_arn);
    pthread_rwlock_rdlock(&e->schema);
    status = list_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* ---- DescribeStream ------------------------------------------------------------------------- */

static enum hf_status describe_shard(struct hf_scope *s, const struct shard_record *record,
                                     struct hf_shard *out)
{
    struct hf_sequence_range *range = hf__scope_array(s, 1, sizeof(*range));

    if (!range)
        return hf__fail_nomem(s);
    range->first = sequence_text(s, (uint64_t)record->first);
    if (record->last)
        range->last = sequence_text(s, (uint64_t)record->last);
    out->id = hf_scope_copy(s, record->id);
    if (record->parent.ptr)
        out->parent = hf_scope_copy(s, record->parent);
    out->range = range;
    return range->first.ptr && out->id.ptr ? HF_OK : hf__fail_nomem(s);
}

static int order_ids(struct hf_str a, struct hf_str b)
{
    return bytes_compare(a.ptr, a.len, b.ptr, b.len);
}

/* Readers rely on the order of ids. New streams have their shards in it; older ones need not. */
static void sort_shards(const struct stream *stream, const struct shard_record *sorted[SHARDS_MAX])
{
    assert(stream->record.shards_len <= SHARDS_MAX);
    for (size_t i = 0; i < stream->record.shards_len; i++) {
        size_t at = i;

        for (; at > 0 && order_ids(sorted[at - 1]->id, stream->shards[i].id) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &stream->shards[i];
    }
}

static enum hf_status describe_shards(struct hf_scope *s, const struct stream *stream,
                                      const struct hf_describe_stream *request,
                                      struct hf_stream_description *d)
{
    size_t limit = request->limit ? (size_t)request->limit : PAGE_SHARDS;
    struct hf_shard *shards = hf__scope_array(s, stream->record.shards_len, sizeof(*shards));
    const struct shard_record *sorted[SHARDS_MAX];

    if (!shards)
        return hf__fail_nomem(s);
    sort_shards(stream, sorted);
    for (size_t i = 0; i < stream->record.shards_len; i++) {
        const struct shard_record *record = sorted[i];

        if (request->start_shard.ptr && order_ids(record->id, request->start_shard) <= 0)
            continue;
        if (request->filter && !hf_str_equal(record->parent, request->filter->shard))
            continue;
        if (d->shards_len == limit) {
            d->last_shard = shards[d->shards_len - 1].id;
            break;
        }
        TRY(describe_shard(s, record, &shards[d->shards_len]));
        d->shards_len++;
    }
    d->shards = shards;
    return HF_OK;
}

static enum hf_status describe_locked(struct hf_scope *s, struct engine *e,
                                      const struct hf_describe_stream *request,
                                      struct hf_stream_description *d)
{
    struct hf_key_element *keys;
    const struct stream_record *record;
    struct stream *stream;

    TRY(find_stream(s, e, request->arn, &stream));
    record = &stream->record;
    d->arn = hf_scope_copy(s, record->arn);
    d->label = hf_scope_copy(s, record->label);
    d->table = hf_scope_copy(s, record->table);
    d->status = record->disabled_us ? HF_STREAM_DISABLED : HF_STREAM_ENABLED;
    d->view = (enum hf_stream_view)record->view;
    d->created_us = record->created_us;
    keys = hf__scope_array(s, record->key_schema_len, sizeof(*keys));
    if (!keys || !d->arn.ptr || !d->label.ptr || !d->table.ptr)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < record->key_schema_len; i++) {
        keys[i].name = hf_scope_copy(s, record->key_schema[i].name);
        keys[i].type = record->key_schema[i].type;
    }
    d->key_schema = keys;
    d->key_schema_len = record->key_schema_len;
    return describe_shards(s, stream, request, d);
}

enum hf_status hf__engine_describe_stream(struct hf_scope *s, struct engine *e,
                                          const struct hf_describe_stream *request,
                                          struct hf_describe_stream_result *result)
{
    struct hf_stream_description *d = hf__scope_array(s, 1, sizeof(*d));
    enum hf_status status;

    if (!d)
        return hf__fail_nomem(s);
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_STREAM, request));
    if (request->filter && (!request->filter->type || !request->filter->shard.ptr))
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: ShardFilter must have both "
                        "Type and ShardId");
    pthread_rwlock_rdlock(&e->schema);
    status = describe_locked(s, e, request, d);
    pthread_rwlock_unlock(&e->schema);
    result->stream = d;
    return status;
}

/* ---- iterators ------------------------------------------------------------------------------ */

struct position {
    uint32_t stream;
    uint16_t shard;
    uint64_t sequence; /* of the next record to read */
    int64_t made_us;
};

static uint64_t tag_of(const struct engine *e, struct hf_str arn,
                       const uint8_t bytes[ITERATOR_BYTES])
{
    uint8_t both[ITERATOR_BYTES + 8];

    memcpy(both, bytes, ITERATOR_BYTES);
    store_u64be(both + ITERATOR_BYTES, hf__siphash(e->secret, arn.ptr, arn.len));
    return hf__siphash(e->secret, both, sizeof(both));
}

static struct hf_str iterator_text(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                   const struct position *at)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[ITERATOR_BYTES + ITERATOR_TAG];
    char hex[2 * sizeof(bytes)];

    assert(at->stream > 0 && at->shard < SHARDS_MAX);
    store_u32be(bytes, at->stream);
    store_u16be(bytes + 4, at->shard);
    store_u64be(bytes + 6, at->sequence);
    store_u64be(bytes + 14, (uint64_t)at->made_us);
    store_u64be(bytes + ITERATOR_BYTES, tag_of(e, arn, bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    return hf_scope_format(s, "%.*s|1|%.*s", HF_FMT(arn), (int)sizeof(hex), hex);
}

/* Only the form that we write is valid: an iterator has one form. */
static int small_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum hf_status parse_iterator(struct hf_scope *s, struct engine *e, struct hf_str text,
                                     struct hf_str *arn, struct position *at)
{
    uint8_t bytes[ITERATOR_BYTES + ITERATOR_TAG];
    const size_t hex_len = 2 * sizeof(bytes);
    bool good = text.len > hex_len + 3;
    const char *hex = good ? text.ptr + text.len - hex_len : "";

    good = good && memcmp(hex - 3, "|1|", 3) == 0;
    for (size_t i = 0; i < sizeof(bytes) && good; i++) {
        int high = small_hex_digit(hex[2 * i]);
        int low = small_hex_digit(hex[2 * i + 1]);

        good = high >= 0 && low >= 0;
        bytes[i] = good ? (uint8_t)(high << 4 | low) : 0;
    }
    if (good) {
        *arn = hf_str_of(text.ptr, text.len - hex_len - 3);
        good = load_u64be(bytes + ITERATOR_BYTES) == tag_of(e, *arn, bytes);
    }
    if (!good)
        return hf__fail(s, HF_INVALID, "Invalid ShardIterator");
    *at = (struct position){.stream = load_u32be(bytes),
                            .shard = load_u16be(bytes + 4),
                            .sequence = load_u64be(bytes + 6),
                            .made_us = (int64_t)load_u64be(bytes + 14)};
    return HF_OK;
}

static enum hf_status locate_start(struct hf_scope *s, struct engine *e,
                                   const struct hf_get_shard_iterator *request,
                                   const struct shard_record *shard, struct position *at)
{
    uint64_t number = 0;
    bool by_number = request->type == HF_ITERATOR_AT_SEQUENCE_NUMBER ||
                     request->type == HF_ITERATOR_AFTER_SEQUENCE_NUMBER;

    if (!by_number && request->sequence.ptr)
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: SequenceNumber cannot be used "
                        "with ShardIteratorType TRIM_HORIZON and LATEST");
    if (by_number && !request->sequence.ptr)
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: SequenceNumber is required for "
                        "ShardIteratorType AT_SEQUENCE_NUMBER and AFTER_SEQUENCE_NUMBER");
    if (by_number && !sequence_number(request->sequence, &number))
        return hf__fail(s, HF_INVALID, "Invalid SequenceNumber: %.*s", HF_FMT(request->sequence));
    switch (request->type) {
    case HF_ITERATOR_TRIM_HORIZON:
        at->sequence = 0;
        break;
    case HF_ITERATOR_LATEST:
        at->sequence = hf__sequence_visible(e);
        break;
    case HF_ITERATOR_AT_SEQUENCE_NUMBER:
    case HF_ITERATOR_AFTER_SEQUENCE_NUMBER:
        at->sequence = number + (request->type == HF_ITERATOR_AFTER_SEQUENCE_NUMBER);
        /* Reading on behind the last trimmed record misses nothing. */
        if (at->sequence < (uint64_t)shard->trimmed)
            return hf__fail(s, HF_TRIMMED,
                            "The operation attempted to read past the oldest stream record in a "
                            "shard");
        break;
    }
    return HF_OK;
}

enum hf_status hf__engine_get_shard_iterator(struct hf_scope *s, struct engine *e,
                                             const struct hf_get_shard_iterator *request,
                                             struct hf_get_shard_iterator_result *result)
{
    struct position at = {.made_us = hf__env_wall_us(&e->env)};
    struct stream *stream;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_GET_SHARD_ITERATOR, request));
    pthread_rwlock_rdlock(&e->schema);
    status = find_stream(s, e, request->arn, &stream);
    if (status == HF_OK)
        status = find_shard(s, stream, request->shard, &at.shard);
    if (status == HF_OK) {
        at.stream = hf__stream_id(stream);
        status = locate_start(s, e, request, &stream->shards[at.shard], &at);
    }
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK)
        return status;
    result->iterator = iterator_text(s, e, request->arn, &at);
    return result->iterator.ptr ? HF_OK : hf__fail_nomem(s);
}

/* ---- GetRecords ----------------------------------------------------------------------------- */

static enum hf_status decode_record(struct hf_scope *s, struct engine *e, struct hf_bytes key,
                                    struct hf_bytes stored, struct hf_record *record)
{
    static const struct hf_stream_identity service = {.principal =
                                                          HF_STR_INIT("dynamodb.amazonaws.com"),
                                                      .type = HF_STR_INIT("Service")};
    struct hf_stream_change *change = hf__scope_array(s, 1, sizeof(*change));
    struct record_head head;
    uint8_t *copy;
    XXH128_hash_t id;

    if (key.len != RECORD_KEY || !hf__stream_record_head_get(stored, &head))
        return hf__fail(s, HF_CORRUPT, "A stream record is damaged; run a check of the database");
    assert(stored.len >= RECORD_HEAD);
    copy = hf_scope_alloc(s, stored.len);
    if (!copy || !change)
        return hf__fail_nomem(s);
    memcpy(copy, stored.ptr, stored.len);
    change->created_us = (int64_t)(head.created_us / 1000000 * 1000000);
    change->keys = (struct hf_item){copy + RECORD_HEAD, head.keys_len};
    if (head.new_len)
        change->new_image = (struct hf_item){copy + RECORD_HEAD + head.keys_len, head.new_len};
    if (head.old_len)
        change->old_image =
            (struct hf_item){copy + RECORD_HEAD + head.keys_len + head.new_len, head.old_len};
    change->sequence = sequence_text(s, load_u64be(key.ptr + 7));
    change->size_bytes = head.size;
    change->view = (enum hf_stream_view)head.view;
    id = XXH3_128bits_withSeed(key.ptr, key.len, load_u64be(e->secret));
    *record = (struct hf_record){
        .id = hf_scope_format(s, "%016llx%016llx", (unsigned long long)id.high64,
                              (unsigned long long)id.low64),
        .event = (enum hf_change_kind)head.event,
        .version = HF_STR("1.1"),
        .source = HF_STR("aws:dynamodb"),
        .region = hf_scope_copy(s, e->region),
        .change = change,
        .identity = head.by_service ? &service : NULL,
    };
    return change->sequence.ptr && record->id.ptr && record->region.ptr ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status read_records(struct hf_scope *s, struct engine *e, struct position *at,
                                   uint64_t end, size_t limit, struct hf_get_records_result *result)
{
    struct hf_record *records = hf__scope_array(s, limit, sizeof(*records));
    uint8_t lower[RECORD_KEY];
    uint8_t upper[RECORD_KEY];
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    size_t bytes = 0;
    bool found = true;

    if (!records)
        return hf__fail_nomem(s);
    result->records = records;
    if (at->sequence >= end)
        return HF_OK;
    assert(limit > 0 && limit <= PAGE_RECORDS);
    hf__stream_record_key(lower, at->stream, at->shard, at->sequence);
    hf__stream_record_key(upper, at->stream, at->shard, end);
    range = (struct store_range){.lower = {lower, sizeof(lower)}, .upper = {upper, sizeof(upper)}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status != HF_OK || !found)
            break;
        status = decode_record(s, e, key, value, &records[result->records_len]);
        if (status != HF_OK)
            break;
        result->records_len++;
        bytes += value.len;
        at->sequence = load_u64be(key.ptr + 7) + 1;
    } while (result->records_len < limit && bytes < PAGE_RECORD_BYTES);
    hf__store_iter_close(iter);
    assert(result->records_len <= limit && at->sequence <= end);
    if (status == HF_OK && !found)
        at->sequence = end;
    return status;
}

static enum hf_status get_locked(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                 struct position *at, size_t limit,
                                 struct hf_get_records_result *result)
{
    struct stream *stream;
    const struct shard_record *shard;
    uint64_t end = hf__sequence_visible(e);

    TRY(find_stream(s, e, arn, &stream));
    if (hf__stream_id(stream) != at->stream || at->shard >= stream->record.shards_len)
        return hf__fail(s, HF_INVALID, "Invalid ShardIterator");
    shard = &stream->shards[at->shard];
    if (at->sequence && at->sequence < (uint64_t)shard->trimmed)
        return hf__fail(s, HF_TRIMMED,
                        "The operation attempted to read past the oldest stream record in a shard");
    if (at->sequence == 0) /* from the oldest record: skip the trimmed ones */
        at->sequence = (uint64_t)shard->trimmed;
    if (shard->last && (uint64_t)shard->last < end)
        end = (uint64_t)shard->last;
    TRY(read_records(s, e, at, end, limit, result));
    if (shard->last && at->sequence >= (uint64_t)shard->last)
        return HF_OK; /* closed, and read to its end: there is no next iterator */
    at->made_us = hf__env_wall_us(&e->env);
    result->next = iterator_text(s, e, arn, at);
    return result->next.ptr ? HF_OK : hf__fail_nomem(s);
}

enum hf_status hf__engine_get_records(struct hf_scope *s, struct engine *e,
                                      const struct hf_get_records *request,
                                      struct hf_get_records_result *result)
{
    size_t limit = request->limit ? (size_t)request->limit : PAGE_RECORDS;
    struct position at = {.stream = 0};
    struct hf_str arn;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_GET_RECORDS, request));
    TRY(parse_iterator(s, e, request->iterator, &arn, &at));
    if (hf__env_wall_us(&e->env) - at.made_us > ITERATOR_LIFE_US)
        return hf__fail(s, HF_EXPIRED, "Iterator expired. Iterators are valid for 15 minutes");
    pthread_rwlock_rdlock(&e->schema);
    status = get_locked(s, e, arn, &at, limit, result);
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK || result->records_len == 0)
        return status;
    return hf__engine_wait_durable_seen(s, e, hf__store_written(e->store));
}
