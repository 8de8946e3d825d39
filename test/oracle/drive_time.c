/* oracle/drive_time.c: schemas, their changes, and what happens with time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"

/* ---- schemas --------------------------------------------------------------------------------- */

static void add_index(struct otable *table, struct oindex index)
{
    table->indexes[table->indexes_len++] = index;
}

static const struct oindex by_g1 = {.name = "by_g1",
                                    .hash = {"g1", V_S},
                                    .range = {"g2", V_N},
                                    .projecting = P_ALL};
static const struct oindex by_g2 = {.name = "by_g2",
                                    .hash = {"g2", V_N},
                                    .projecting = P_INCLUDE,
                                    .included = {"aa", "mm"},
                                    .included_len = 2};
static const struct oindex by_g2_keys = {.name = "by_g2_keys",
                                         .hash = {"g2", V_N},
                                         .projecting = P_KEYS};
static const struct oindex by_k2 = {.name = "by_k2",
                                    .local = true,
                                    .range = {"k2", V_S},
                                    .projecting = P_INCLUDE,
                                    .included = {"bb"},
                                    .included_len = 1};

static void add_local(struct otable *table)
{
    struct oindex local = by_k2;

    local.hash = table->hash;
    add_index(table, local);
}

static void put_definitions(struct text *json, const struct key_part *const *parts, int len)
{
    const char *before = "";

    text_add(json, ",\"AttributeDefinitions\":[");
    for (int i = 0; i < len; i++) {
        bool twice = !parts[i]->name;

        for (int j = 0; j < i && !twice; j++)
            twice = parts[j]->name && strcmp(parts[i]->name, parts[j]->name) == 0;
        if (twice)
            continue;
        text_add(json, "%s{\"AttributeName\":\"%s\",\"AttributeType\":\"%s\"}", before,
                 parts[i]->name, type_tag(parts[i]->type));
        before = ",";
    }
    text_add(json, "]");
}

static void put_schema(struct text *json, const struct key_part *hash, const struct key_part *range)
{
    text_add(json, "\"KeySchema\":[{\"AttributeName\":\"%s\",\"KeyType\":\"HASH\"}", hash->name);
    if (range->name)
        text_add(json, ",{\"AttributeName\":\"%s\",\"KeyType\":\"RANGE\"}", range->name);
    text_add(json, "]");
}

static void put_index(struct text *json, const struct oindex *index)
{
    static const char *const kinds[] = {"ALL", "KEYS_ONLY", "INCLUDE"};

    text_add(json, "{\"IndexName\":\"%s\",", index->name);
    put_schema(json, &index->hash, &index->range);
    text_add(json, ",\"Projection\":{\"ProjectionType\":\"%s\"", kinds[index->projecting]);
    for (int i = 0; i < index->included_len; i++)
        text_add(json, "%s\"%s\"", i ? "," : ",\"NonKeyAttributes\":[", index->included[i]);
    text_add(json, index->included_len ? "]}}" : "}}");
}

static void put_indexes(struct text *json, const struct otable *table, bool local)
{
    const char *before = local ? ",\"LocalSecondaryIndexes\":[" : ",\"GlobalSecondaryIndexes\":[";
    bool any = false;

    for (int i = 0; i < table->indexes_len; i++) {
        if (table->indexes[i].local != local)
            continue;
        text_add(json, "%s", before);
        put_index(json, &table->indexes[i]);
        before = ",";
        any = true;
    }
    if (any)
        text_add(json, "]");
}

static void create(struct drive *d, const struct otable *table)
{
    static const char *const views[] = {"", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES",
                                        "KEYS_ONLY"};
    const struct key_part *parts[2 + 2 * TABLE_INDEXES] = {&table->hash, &table->range};
    struct text json = {.arena = &d->o.arena};
    struct hf_create_table_result result;
    int len = 2;

    for (int i = 0; i < table->indexes_len; i++) {
        parts[len++] = &table->indexes[i].hash;
        parts[len++] = &table->indexes[i].range;
    }
    text_add(&json, "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\",", table->name);
    put_schema(&json, &table->hash, &table->range);
    put_definitions(&json, parts, len);
    put_indexes(&json, table, true);
    put_indexes(&json, table, false);
    if (table->view)
        text_add(&json,
                 ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}",
                 views[table->view]);
    text_add(&json, "}");
    drive_ok(d, "CreateTable", json.ptr, &result);
}

static void enable_ttl(struct drive *d, struct otable *table)
{
    struct text json = {.arena = &d->o.arena};
    struct hf_update_time_to_live_result result;

    text_add(&json,
             "{\"TableName\":\"%s\",\"TimeToLiveSpecification\":{\"Enabled\":true,"
             "\"AttributeName\":\"tt\"}}",
             table->name);
    drive_ok(d, "UpdateTimeToLive", json.ptr, &result);
    table->ttl = "tt";
}

void make_tables(struct drive *d)
{
    struct otable *t = d->o.tables;

    t[0] = (struct otable){.name = "string_number",
                           .hash = {"pk", V_S},
                           .range = {"sk", V_N},
                           .view = VIEW_BOTH};
    add_local(&t[0]);
    add_index(&t[0], by_g1);
    add_index(&t[0], by_g2);
    t[1] = (struct otable){.name = "number_alone", .hash = {"id", V_N}, .view = VIEW_KEYS};
    add_index(&t[1], by_g1);
    add_index(&t[1], by_g2_keys);
    t[2] = (struct otable){.name = "binary_binary",
                           .hash = {"bk", V_B},
                           .range = {"br", V_B},
                           .view = VIEW_NEW};
    add_local(&t[2]);
    t[3] = (struct otable){.name = "string_string", .hash = {"pk", V_S}, .range = {"sk", V_S}};
    d->o.tables_len = TABLES;
    for (int i = 0; i < TABLES; i++)
        create(d, &t[i]);
    enable_ttl(d, &t[0]);
}

/* ---- changes --------------------------------------------------------------------------------- */

static struct oindex *dynamic_index(struct otable *table)
{
    for (int i = 0; i < table->indexes_len; i++)
        if (strcmp(table->indexes[i].name, "dynamic") == 0)
            return &table->indexes[i];
    return NULL;
}

/* Add an index over attributes that are of any type in the items that are there, or drop it. */
void do_index_change(struct drive *d)
{
    struct otable *table = some_table(d);
    struct oindex *there = dynamic_index(table);
    struct text json = {.arena = &d->o.arena};
    struct hf_update_table_result result;
    struct oindex index = {.name = "dynamic",
                           .building = true,
                           .hash = {"aa", gen_scalar(&d->g, V_N)->thousandths > 0 ? V_S : V_N},
                           .projecting = chance(d, 2) ? P_ALL : P_KEYS};
    const struct key_part *parts[] = {&index.hash, &index.range};

    if (there && there->building)
        return;
    if (there) {
        text_add(&json,
                 "{\"TableName\":\"%s\",\"GlobalSecondaryIndexUpdates\":[{\"Delete\":"
                 "{\"IndexName\":\"dynamic\"}}]}",
                 table->name);
        drive_ok(d, "UpdateTable", json.ptr, &result);
        table->indexes_len = (int)(there - table->indexes); /* it is the last */
        return;
    }
    if (chance(d, 2))
        index.range = (struct key_part){"bb", V_N};
    text_add(&json, "{\"TableName\":\"%s\"", table->name);
    put_definitions(&json, parts, 2);
    text_add(&json, ",\"GlobalSecondaryIndexUpdates\":[{\"Create\":");
    put_index(&json, &index);
    text_add(&json, "}]}");
    drive_ok(d, "UpdateTable", json.ptr, &result);
    add_index(table, index);
}

void do_enable_ttl(struct drive *d)
{
    struct otable *table = some_table(d);

    if (!table->ttl)
        enable_ttl(d, table);
}

void do_upkeep(struct drive *d)
{
    struct hf_upkeep_report report;
    size_t expired = 0, trimmed = 0;

    d->operation = "upkeep";
    d->request = "";
    for (int i = 0; i < d->o.tables_len; i++) {
        struct otable *table = &d->o.tables[i];

        expired += expire(&d->o, table, d->t->wall_us);
        trimmed += trim(table, d->t->wall_us);
        for (int j = 0; j < table->indexes_len; j++)
            table->indexes[j].building = false;
    }
    if (hf_engine_upkeep(d->w.scope, d->w.db, &report) != HF_OK)
        mismatch(d, "upkeep", "", hf_scope_error_text(d->w.scope));
    expect_number(d, "expired items", (int64_t)expired, (int64_t)report.expired_items);
    expect_number(d, "trimmed records", (int64_t)trimmed, (int64_t)report.trimmed_records);
}

void do_advance(struct drive *d)
{
    int64_t seconds =
        chance(d, 10) ? 20 * 3600 + rnd_below(&d->g.rnd, 8 * 3600) : rnd_below(&d->g.rnd, 3000);

    test_advance_ms(d->t, seconds * 1000 + 1);
}

/* ---- streams --------------------------------------------------------------------------------- */

struct record {
    const char *sequence;
    const char *key;
    const char *text;
    size_t place;
};

struct records {
    struct record *list;
    size_t len, cap;
};

static void add_record(struct drive *d, struct records *records, struct record record)
{
    if (records->len == records->cap) {
        struct record *more;

        records->cap = 2 * records->cap + 64;
        more = arena_alloc(&d->o.arena, records->cap * sizeof(*more));
        if (records->len)
            memcpy(more, records->list, records->len * sizeof(*more));
        records->list = more;
    }
    records->list[records->len++] = record;
}

static const char *record_text(struct drive *d, const char *event, const char *key,
                               const char *new_image, const char *old_image, bool by_service,
                               size_t size)
{
    struct text text = {.arena = &d->o.arena};

    text_add(&text, "%s %s new %s old %s%s size %zu", event, key, new_image, old_image,
             by_service ? " by the service" : "", size);
    return text.ptr;
}

static void read_shard(struct drive *d, struct hf_str arn, struct hf_str shard,
                       struct records *records)
{
    static const char *const events[] = {"", "INSERT", "MODIFY", "REMOVE"};
    struct text json = {.arena = &d->o.arena};
    struct hf_get_shard_iterator_result start;
    struct hf_get_records_result page;
    struct hf_str iterator;

    text_add(&json,
             "{\"StreamArn\":\"%.*s\",\"ShardId\":\"%.*s\",\"ShardIteratorType\":"
             "\"TRIM_HORIZON\"}",
             HF_FMT(arn), HF_FMT(shard));
    drive_ok(d, "GetShardIterator", json.ptr, &start);
    iterator = start.iterator;
    do {
        json = (struct text){.arena = &d->o.arena};
        text_add(&json, "{\"ShardIterator\":\"%.*s\",\"Limit\":%d}", HF_FMT(iterator),
                 1 + rnd_below(&d->g.rnd, 40));
        drive_ok(d, "GetRecords", json.ptr, &page);
        for (size_t i = 0; i < page.records_len; i++) {
            const struct hf_record *r = &page.records[i];
            const char *key = engine_item(d, r->change->keys);

            add_record(d, records,
                       (struct record){hf_scope_copy(d->w.scope, r->change->sequence).ptr, key,
                                       record_text(d, events[r->event], key,
                                                   engine_item(d, r->change->new_image),
                                                   engine_item(d, r->change->old_image),
                                                   r->identity != NULL,
                                                   (size_t)r->change->size_bytes),
                                       0});
        }
        iterator = page.next;
    } while (page.records_len && iterator.ptr);
}

static int by_sequence(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->sequence, ((const struct record *)b)->sequence);
}

static int by_key(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order ? order : x->place < y->place ? -1 : 1;
}

static void expected_records(struct drive *d, const struct otable *table, struct records *out)
{
    bool with_new = table->view == VIEW_NEW || table->view == VIEW_BOTH;
    bool with_old = table->view == VIEW_OLD || table->view == VIEW_BOTH;

    for (size_t i = 0; i < table->events_len; i++) {
        const struct event *e = &table->events[i];
        const struct val *after = with_new ? e->after : NULL;
        const struct val *before = with_old ? e->before : NULL;
        const char *key = item_text(&d->o.arena, e->key);

        add_record(d, out,
                   (struct record){"", key,
                                   record_text(d, e->name, key, item_text(&d->o.arena, after),
                                               item_text(&d->o.arena, before), e->by_service,
                                               item_size(e->key) + item_size(after) +
                                                   item_size(before)),
                                   i});
    }
}

/* The changes of one item come in their order; between items a transaction has none. */
static void compare_stream(struct drive *d, struct otable *table)
{
    struct text json = {.arena = &d->o.arena};
    struct records actual = {.list = NULL}, expected = {.list = NULL};
    struct hf_describe_table_result described;
    struct hf_describe_stream_result stream;

    text_add(&json, "{\"TableName\":\"%s\"}", table->name);
    drive_ok(d, "DescribeTable", json.ptr, &described);
    json = (struct text){.arena = &d->o.arena};
    text_add(&json, "{\"StreamArn\":\"%.*s\"}", HF_FMT(described.table->stream_arn));
    drive_ok(d, "DescribeStream", json.ptr, &stream);
    for (size_t i = 0; i < stream.stream->shards_len; i++)
        read_shard(d, stream.stream->arn, stream.stream->shards[i].id, &actual);
    expected_records(d, table, &expected);
    expect_number(d, "stream records", (int64_t)expected.len, (int64_t)actual.len);
    if (actual.len == 0)
        return;
    qsort(actual.list, actual.len, sizeof(*actual.list), by_sequence);
    for (size_t i = 0; i < actual.len; i++) {
        actual.list[i].place = i;
        if (i > 0 && strcmp(actual.list[i].sequence, actual.list[i - 1].sequence) == 0)
            mismatch(d, "sequence numbers", "different", actual.list[i].sequence);
    }
    qsort(actual.list, actual.len, sizeof(*actual.list), by_key);
    qsort(expected.list, expected.len, sizeof(*expected.list), by_key);
    for (size_t i = 0; i < actual.len; i++)
        expect_text(d, "stream record", expected.list[i].text, actual.list[i].text);
}

void compare_streams(struct drive *d)
{
    do_upkeep(d);
    for (int i = 0; i < d->o.tables_len; i++)
        if (d->o.tables[i].view)
            compare_stream(d, &d->o.tables[i]);
}
