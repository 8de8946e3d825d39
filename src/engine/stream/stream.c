/*
 * engine/stream/stream.c: which streams there are; enabling, disabling, loading and trimming them.
 */
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/stream/streams.h"
#include "engine/table/catalog.h"
#include "ops/fields.h"
#include "store/store.h"

#include <time.h>

#include <xxhash.h>

#include "wire/wire.h"

/* ---- how a stream is stored ----------------------------------------------------------------- */

#define AT(type, member) (uint16_t) offsetof(struct type, member)

static const struct field shard_list[] = {
    {.name = "Id", .kind = FIELD_STR, .at = AT(shard_record, id)},
    {.name = "Parent", .kind = FIELD_STR, .at = AT(shard_record, parent)},
    {.name = "First", .kind = FIELD_INT, .at = AT(shard_record, first)},
    {.name = "Last", .kind = FIELD_INT, .at = AT(shard_record, last)},
    {.name = "Trimmed", .kind = FIELD_INT, .at = AT(shard_record, trimmed)},
};
static const struct fields shard_fields = {"Shard", shard_list, ARRAY_LEN(shard_list),
                                           sizeof(struct shard_record)};

static const char *const key_type_names[] = {"HASH", "RANGE"};
static const struct field_enum key_types = {key_type_names, ARRAY_LEN(key_type_names), ""};
static const struct field key_list[] = {
    {.name = "Name", .kind = FIELD_STR, .at = AT(hf_key_element, name)},
    {.name = "Type", .kind = FIELD_ENUM, .at = AT(hf_key_element, type), .members = &key_types},
};
static const struct fields key_fields = {"Key", key_list, ARRAY_LEN(key_list),
                                         sizeof(struct hf_key_element)};

static const struct field stream_list[] = {
    {.name = "Id", .kind = FIELD_INT, .at = AT(stream_record, id)},
    {.name = "Arn", .kind = FIELD_STR, .at = AT(stream_record, arn)},
    {.name = "Label", .kind = FIELD_STR, .at = AT(stream_record, label)},
    {.name = "Table", .kind = FIELD_STR, .at = AT(stream_record, table)},
    {.name = "View", .kind = FIELD_INT, .at = AT(stream_record, view)},
    {.name = "Created", .kind = FIELD_INT, .at = AT(stream_record, created_us)},
    {.name = "Disabled", .kind = FIELD_INT, .at = AT(stream_record, disabled_us)},
    {.name = "KeySchema",
     .kind = FIELD_STRUCTS,
     .at = AT(stream_record, key_schema),
     .count_at = AT(stream_record, key_schema_len),
     .sub = &key_fields},
    {.name = "Shards",
     .kind = FIELD_STRUCTS,
     .at = AT(stream_record, shards),
     .count_at = AT(stream_record, shards_len),
     .sub = &shard_fields},
};
static const struct fields stream_fields = {"Stream", stream_list, ARRAY_LEN(stream_list),
                                            sizeof(struct stream_record)};

static void stream_key(uint8_t key[PREFIX_LEN], uint32_t id)
{
    key[0] = SPACE_STREAM;
    store_u32be(key + 1, id);
}

void hf__stream_put_record(struct hf_scope *s, struct store_batch *batch,
                           const struct stream_record *record)
{
    struct hf__buf json = {.scope = s};
    uint8_t key[PREFIX_LEN];

    stream_key(key, (uint32_t)record->id);
    hf__wire_write(&json, &stream_fields, record);
    if (json.failed)
        batch->ops.failed = true;
    else
        hf__batch_put(batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(json.ptr, json.len));
}

/* ---- streams in memory ---------------------------------------------------------------------- */

/* Is the record valid? If not, it is damaged. */
static bool is_whole(const struct stream_record *record)
{
    if (record->id <= 0 || record->id >= UINT32_MAX || !record->arn.ptr || !record->table.ptr ||
        record->shards_len == 0 || record->shards_len > SHARDS_MAX ||
        record->view < HF_VIEW_NEW_IMAGE || record->view > HF_VIEW_KEYS_ONLY)
        return false;
    for (size_t i = 0; i < record->shards_len; i++) {
        const struct shard_record *shard = &record->shards[i];

        if (!shard->id.ptr || shard->first < 0 || shard->trimmed < 0 || shard->last < 0 ||
            (shard->last && shard->last < shard->first) || (record->disabled_us && !shard->last))
            return false;
    }
    return true;
}

void hf__stream_check(const struct stream *stream)
{
    assert(stream->memory && stream->record.shards == stream->shards);
    assert(is_whole(&stream->record));
    assert(!stream->closing_us == !stream->closing_at);
    assert(stream->listed || !stream->record.disabled_us);
}

/* The list is in the order of ids, each once. */
static void streams_check(const struct streams *streams)
{
    assert(streams->len <= streams->cap);
    for (size_t i = 0; i < streams->len; i++) {
        hf__stream_check(streams->list[i]);
        assert(streams->list[i]->listed);
        assert(i == 0 || streams->list[i - 1]->record.id < streams->list[i]->record.id);
    }
}

/* There is room for it: streams_reserve() was called. */
static void streams_add(struct streams *streams, struct stream *stream)
{
    assert(streams->len < streams->cap && !stream->listed);
    stream->listed = true;
    streams->list[streams->len++] = stream;
    if (DEV_CHECKS)
        streams_check(streams);
}

/* A stream in memory of its own, copied from a record by encoding and decoding it. */
static enum hf_status stream_new(struct hf_scope *s, struct engine *e,
                                 const struct stream_record *record, struct stream **out)
{
    struct hf_scope *memory = hf_scope_new(&e->env);
    struct stream *stream = memory ? hf__scope_array(memory, 1, sizeof(*stream)) : NULL;
    struct hf__buf json = {.scope = memory};
    enum hf_status status;

    if (!stream)
        goto no_memory;
    stream->memory = memory;
    hf__wire_write(&json, &stream_fields, record);
    if (json.failed)
        goto no_memory;
    status = hf__wire_read(memory, &stream_fields, hf_str_of((const char *)json.ptr, json.len),
                           &stream->record);
    if (status == HF_NOMEM)
        goto no_memory;
    if (status != HF_OK || !is_whole(&stream->record)) {
        hf_scope_free(memory);
        return hf__fail(s, HF_CORRUPT, "The record of a stream is damaged");
    }
    for (size_t i = 0; i < stream->record.shards_len; i++)
        stream->shards[i] = stream->record.shards[i];
    stream->record.shards = stream->shards;
    *out = stream;
    return HF_OK;
no_memory:
    hf_scope_free(memory);
    return hf__fail_nomem(s);
}

static enum hf_status streams_reserve(struct hf_scope *s, struct engine *e)
{
    struct streams *streams = &e->streams;
    size_t cap = streams->cap ? streams->cap * 2 : 8;
    struct stream **list;

    if (streams->len < streams->cap)
        return HF_OK;
    list =
        hf__env_resize(&e->env, streams->list, streams->cap * sizeof(*list), cap * sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    streams->list = list;
    streams->cap = cap;
    return HF_OK;
}

struct stream *hf__stream_by_id(struct engine *e, uint32_t id)
{
    for (size_t i = 0; i < e->streams.len; i++)
        if ((uint32_t)e->streams.list[i]->record.id == id)
            return e->streams.list[i];
    return NULL;
}

uint32_t hf__stream_id(const struct stream *stream)
{
    return (uint32_t)stream->record.id;
}

struct hf_str hf__stream_arn(const struct stream *stream)
{
    return stream->record.arn;
}

struct hf_str hf__stream_label(const struct stream *stream)
{
    return stream->record.label;
}

/* ---- enabling and disabling ----------------------------------------------------------------- */

/* Labels are times in milliseconds; if one is in use, the next is tried. */
static struct hf_str label_of(struct hf_scope *s, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm utc;

    gmtime_r(&seconds, &utc);
    return hf_scope_format(s, "%04d-%02d-%02dT%02d:%02d:%02d.%03d", utc.tm_year + 1900,
                           utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                           (int)(us / 1000 % 1000));
}

static struct hf_str free_label(struct hf_scope *s, struct engine *e, struct hf_str table,
                                int64_t us)
{
    struct hf_str label = label_of(s, us);

    for (size_t i = 0; i < e->streams.len && label.ptr; i++) {
        const struct stream_record *record = &e->streams.list[i]->record;

        if (hf_str_equal(record->table, table) && hf_str_equal(record->label, label)) {
            us += 1000;
            label = label_of(s, us);
            i = SIZE_MAX; /* from the beginning again */
        }
    }
    return label;
}

static int order_tails(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The last parts of the shards' ids: no two are equal, and ids are in order as shards are. */
static void make_tails(uint32_t tails[SHARDS_MAX], uint32_t len, int64_t id)
{
    for (uint32_t i = 0; i < len; i++)
        tails[i] = (uint32_t)XXH64(&id, sizeof(id), i);
    qsort(tails, len, sizeof(*tails), order_tails);
    for (uint32_t i = 1; i < len; i++)
        if (tails[i] <= tails[i - 1])
            tails[i] = tails[i - 1] + 1;
}

static enum hf_status make_shards(struct hf_scope *s, struct engine *e,
                                  struct stream_record *record)
{
    struct shard_record *shards = hf__scope_array(s, e->stream_shards, sizeof(*shards));
    uint32_t tails[SHARDS_MAX];
    uint64_t first;

    if (!shards)
        return hf__fail_nomem(s);
    assert(e->stream_shards > 0 && e->stream_shards <= SHARDS_MAX);
    make_tails(tails, e->stream_shards, record->id);
    pthread_mutex_lock(&e->sequencer.lock);
    first = e->sequencer.next;
    pthread_mutex_unlock(&e->sequencer.lock);
    for (uint32_t i = 0; i < e->stream_shards; i++) {
        shards[i].id = hf_scope_format(s, "shardId-%020lld-%08x",
                                       (long long)(record->created_us / 1000), tails[i]);
        shards[i].first = (int64_t)first;
        if (!shards[i].id.ptr)
            return hf__fail_nomem(s);
    }
    record->shards = shards;
    record->shards_len = e->stream_shards;
    return HF_OK;
}

enum hf_status hf__stream_enable(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                 const struct hf_table_description *table, enum hf_stream_view view,
                                 struct stream **stream)
{
    struct stream_record record = {
        .id = hf__catalog_new_id(s, e, batch),
        .table = table->name,
        .view = view,
        .created_us = hf__env_wall_us(&e->env),
        .key_schema = table->key_schema,
        .key_schema_len = table->key_schema_len,
    };

    record.label = free_label(s, e, table->name, record.created_us);
    record.arn = hf_scope_format(s, "%.*s/stream/%.*s", HF_FMT(table->arn), HF_FMT(record.label));
    if (!record.label.ptr || !record.arn.ptr)
        return hf__fail_nomem(s);
    TRY(make_shards(s, e, &record));
    TRY(streams_reserve(s, e));
    TRY(stream_new(s, e, &record, stream));
    hf__stream_put_record(s, batch, &record);
    return HF_OK;
}

enum hf_status hf__stream_disable(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                  struct stream *stream)
{
    struct stream_record record = stream->record;
    struct shard_record shards[SHARDS_MAX];

    ASSERT_SCHEMA_WRITTEN(e);
    assert(stream->listed && !stream->record.disabled_us && !stream->closing_us);
    pthread_mutex_lock(&e->sequencer.lock);
    stream->closing_at = (int64_t)e->sequencer.next;
    pthread_mutex_unlock(&e->sequencer.lock);
    stream->closing_us = hf__env_wall_us(&e->env);
    record.disabled_us = stream->closing_us;
    for (size_t i = 0; i < record.shards_len; i++) {
        shards[i] = stream->shards[i];
        if (shards[i].last == 0)
            shards[i].last = stream->closing_at;
    }
    record.shards = shards;
    hf__stream_put_record(s, batch, &record);
    return HF_OK;
}

void hf__stream_finish_change(struct engine *e, struct stream *stream, bool done)
{
    ASSERT_SCHEMA_WRITTEN(e);
    if (!stream->listed) {
        if (!done) {
            hf_scope_free(stream->memory);
            return;
        }
        streams_add(&e->streams, stream);
        return;
    }
    if (done) {
        stream->record.disabled_us = stream->closing_us;
        for (size_t i = 0; i < stream->record.shards_len; i++)
            if (stream->shards[i].last == 0)
                stream->shards[i].last = stream->closing_at;
    }
    stream->closing_us = stream->closing_at = 0;
    if (DEV_CHECKS)
        hf__stream_check(stream);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* `key` has its id: no two streams have the same. */
static enum hf_status load_stream(struct hf_scope *s, struct engine *e, struct hf_bytes key,
                                  struct hf_bytes json)
{
    struct stream_record record = {.id = 0};
    struct stream *stream;
    struct hf_str text = hf_scope_copy(s, hf_str_of((const char *)json.ptr, json.len));

    if (!text.ptr)
        return hf__fail_nomem(s);
    if (hf__wire_read(s, &stream_fields, text, &record) != HF_OK || key.len != PREFIX_LEN ||
        record.id != (int64_t)load_u32be(key.ptr + 1))
        return hf__fail(s, HF_CORRUPT, "The record of a stream is damaged");
    TRY(streams_reserve(s, e));
    TRY(stream_new(s, e, &record, &stream));
    streams_add(&e->streams, stream);
    return HF_OK;
}

enum hf_status hf__streams_load(struct hf_scope *s, struct engine *e)
{
    static const uint8_t lower[] = {SPACE_STREAM};
    static const uint8_t upper[] = {SPACE_STREAM + 1};
    const struct store_range range = {.lower = {lower, 1}, .upper = {upper, 1}};
    struct hf__store_iter *iter;
    enum hf_status status;
    bool found = true;

    TRY(hf__store_iter_open(s, e->store, e->opened, &range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            status = load_stream(s, e, key, value);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    return status;
}

void hf__streams_free(struct engine *e)
{
    for (size_t i = 0; i < e->streams.len; i++)
        hf_scope_free(e->streams.list[i]->memory);
    hf__env_free(&e->env, e->streams.list, e->streams.cap * sizeof(*e->streams.list));
}

/* ---- trimming ------------------------------------------------------------------------------- */

/* Few at a time: other operations wait while they are deleted. */
enum { TRIM_A_ROUND = 1000 };

/* Find the first record of the shard that is young enough to stay; count those before it. */
static enum hf_status find_horizon(struct hf_scope *s, struct engine *e,
                                   const struct stream *stream, uint16_t shard, int64_t before_us,
                                   uint64_t *horizon, uint64_t *count)
{
    uint8_t lower[RECORD_KEY];
    uint8_t upper[RECORD_KEY];
    struct store_range range;
    struct hf__store_iter *iter;
    enum hf_status status;
    bool found = true;

    /* Begin behind the trimmed records: an iterator would have to step over them again. */
    hf__stream_record_key(lower, hf__stream_id(stream), shard,
                          (uint64_t)stream->shards[shard].trimmed);
    hf__stream_record_key(upper, hf__stream_id(stream), shard, UINT64_MAX);
    range = (struct store_range){.lower = {lower, sizeof(lower)}, .upper = {upper, sizeof(upper)}};
    *count = 0;
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    do {
        struct hf_bytes key, value;
        struct record_head head;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status != HF_OK || !found)
            break;
        if (key.len != RECORD_KEY) {
            status = hf__fail(s, HF_CORRUPT, "The key of a stream record is damaged");
            break;
        }
        if (hf__stream_record_head_get(value, &head) && (int64_t)head.created_us >= before_us)
            break;
        *horizon = load_u64be(key.ptr + 7) + 1;
        (*count)++;
    } while (*count < TRIM_A_ROUND);
    hf__store_iter_close(iter);
    return status;
}

/* *count is the number of trimmed records; below TRIM_A_ROUND: no more are too old. */
static enum hf_status trim_some(struct hf_scope *s, struct engine *e, struct stream *stream,
                                uint16_t shard, int64_t before_us, uint64_t *count)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    uint8_t lower[RECORD_KEY];
    uint8_t upper[RECORD_KEY];
    uint64_t horizon = 0;
    uint64_t ticket;
    int64_t trimmed;
    enum hf_status status;

    TRY(find_horizon(s, e, stream, shard, before_us, &horizon, count));
    if (*count == 0)
        return HF_OK;
    hf__stream_record_key(lower, hf__stream_id(stream), shard,
                          (uint64_t)stream->shards[shard].trimmed);
    hf__stream_record_key(upper, hf__stream_id(stream), shard, horizon);
    hf__batch_delete_range(&batch, hf_bytes_of(lower, sizeof(lower)),
                           hf_bytes_of(upper, sizeof(upper)));
    assert((int64_t)horizon > stream->shards[shard].trimmed);
    hf__schema_lock(e);
    trimmed = stream->shards[shard].trimmed;
    stream->shards[shard].trimmed = (int64_t)horizon;
    hf__stream_put_record(s, &batch, &stream->record);
    status = hf__store_write(s, e->store, &batch, &ticket);
    if (status != HF_OK) /* the records still exist, and the next round finds them */
        stream->shards[shard].trimmed = trimmed;
    pthread_rwlock_unlock(&e->schema);
    return status;
}

static enum hf_status trim_shard(struct hf_scope *s, struct engine *e, struct stream *stream,
                                 uint16_t shard, int64_t before_us, uint64_t *trimmed)
{
    uint64_t count = TRIM_A_ROUND;

    while (count == TRIM_A_ROUND && !atomic_load(&e->maintenance.stop)) {
        struct hf__mark mark = hf__scope_mark(s);

        TRY(trim_some(s, e, stream, shard, before_us, &count));
        *trimmed += count;
        hf__scope_rewind(s, mark);
    }
    return HF_OK;
}

/* Delete a stream that was disabled a day ago, with its remaining records. */
static enum hf_status drop_stream(struct hf_scope *s, struct engine *e, size_t at)
{
    struct stream *stream = e->streams.list[at];
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    uint8_t key[PREFIX_LEN];
    uint64_t ticket;

    ASSERT_SCHEMA_WRITTEN(e);
    assert(at < e->streams.len && stream->record.disabled_us);
    stream_key(key, hf__stream_id(stream));
    hf__batch_delete(&batch, hf_bytes_of(key, sizeof(key)));
    hf__erase_later(&batch, SPACE_RECORD, hf__stream_id(stream));
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    TRY(hf__store_write(s, e->store, &batch, &ticket));
    memmove(e->streams.list + at, e->streams.list + at + 1,
            (e->streams.len - at - 1) * sizeof(*e->streams.list));
    e->streams.len--;
    hf_scope_free(stream->memory);
    if (DEV_CHECKS)
        streams_check(&e->streams);
    return HF_OK;
}

static bool is_old(const struct stream *stream, int64_t before_us)
{
    return stream->record.disabled_us && stream->record.disabled_us < before_us;
}

static enum hf_status drop_old(struct hf_scope *s, struct engine *e, int64_t before_us)
{
    enum hf_status status = HF_OK;
    bool any = false;

    /* Check before locking: the lock is rarely needed, and others would wait every second. */
    pthread_rwlock_rdlock(&e->schema);
    for (size_t i = 0; i < e->streams.len; i++)
        any = any || is_old(e->streams.list[i], before_us);
    pthread_rwlock_unlock(&e->schema);
    if (!any)
        return HF_OK;
    hf__schema_lock(e);
    for (size_t i = 0; i < e->streams.len && status == HF_OK;) {
        if (is_old(e->streams.list[i], before_us))
            status = drop_stream(s, e, i);
        else
            i++;
    }
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* Only maintenance removes streams, and there is one round of it at a time: so the list may be read
 * without the lock here, except while an operation on tables may be adding to it. */
enum hf_status hf__streams_trim(struct hf_scope *s, struct engine *e, uint64_t *trimmed)
{
    int64_t before_us = hf__env_wall_us(&e->env) - STREAM_LIFE_US;

    TRY(drop_old(s, e, before_us));
    for (size_t i = 0;; i++) {
        struct stream *stream = NULL;

        pthread_rwlock_rdlock(&e->schema);
        if (i < e->streams.len)
            stream = e->streams.list[i];
        pthread_rwlock_unlock(&e->schema);
        if (!stream)
            return HF_OK;
        for (size_t j = 0; j < stream->record.shards_len; j++)
            TRY(trim_shard(s, e, stream, (uint16_t)j, before_us, trimmed));
    }
}
