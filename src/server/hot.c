/*
 * server/hot.c: hot tables, hot partitions, large items; bounded memory, some nanoseconds a request.
 *
 * Tables are counted exactly: reads, writes and errors since the server started. A thread knows the
 * HOT_TABLES that it saw last.
 *
 * Partitions, which are hash keys, are counted by "space saving": a thread has HOT_KEYS counters. A
 * key without one takes over that of the lowest count and adds to it, so a key that gets more than
 * one of HOT_KEYS requests is always there, and a count is too high by at most the lowest one.
 * Counts are halved every HALF_S seconds, so that they tell of now, and so is the time in which they
 * were counted:
 *
 *     rate = count / (that time + seconds since the last halving)
 *
 * Beyond QUIET requests a second one of SAMPLE is counted, SAMPLE times.
 *
 * Of items that were put the HOT_LARGEST largest are known, with the size that they had when they
 * were put. An item is measured only if its request is longer than the smallest of them.
 *
 * What always holds:
 *
 *  (1) Memory does not grow: all of it is there from the start.
 *  (2) A name that a request made up takes no place: tables are added by calls that succeeded.
 *  (3) Only the thread of a `struct hot` waits for its lock, and only while it is being read.
 */
#include "server/hot.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/fnv.h"
#include "base/utf8.h"
#include "db/call_info.h"
#include "ops/fields.h"
#include "server/admin.h"
#include "server/private.h"
#include "wire/wire.h"

enum {
    HOT_TABLES = 128,
    HOT_KEYS = 64,
    HOT_LARGEST = 8,
    HOT_NAME = 64, /* bytes of an attribute's name; keys with longer ones are not counted */
    HOT_TEXT = 96, /* bytes of a key that are kept */
    TABLE_NAME = 255,
    QUIET = 1000,
    SAMPLE = 8,
    HALF_S = 10,
    SHOWN_TABLES = 64,
    SHOWN_KEYS = 20
};

#define SECOND_NS UINT64_C(1000000000)

struct hot_name {
    uint8_t len; /* 0: not known */
    char text[HOT_NAME];
};

struct hot_text {
    uint8_t len;
    bool cut; /* the key is longer */
    char text[HOT_TEXT];
};

struct hot_table {
    uint64_t hash; /* of the name; 0: free */
    uint64_t used_ns;
    uint64_t reads, writes, errors;
    uint8_t len;
    char name[TABLE_NAME];
    struct hot_name key, range;
};

struct hot_key {
    uint64_t hash; /* of table and key; 0: free */
    uint64_t table;
    uint64_t count;
    struct hot_text text;
};

struct hot_item {
    uint64_t hash; /* of table and whole key; 0: free */
    uint64_t table;
    uint64_t bytes;
    struct hot_text key, range;
};

struct hot {
    pthread_mutex_t lock; /* guards all of it */
    struct hot_table tables[HOT_TABLES];
    struct hot_key keys[HOT_KEYS];
    struct hot_item largest[HOT_LARGEST];
    uint64_t least_bytes; /* of `largest`; 0 while one is free */
    uint64_t halved_ns;   /* when counts were halved, or counting began */
    double counted_s;     /* the time before that, halved as often as the counts were */
    uint64_t second;      /* of the next */
    uint32_t in_second;
    uint32_t random;
};

struct hot *hf__hot_new(struct hf_scope *s, size_t len)
{
    struct hot *hot = hf__scope_array(s, len, sizeof(*hot));

    for (size_t i = 0; hot && i < len; i++) {
        pthread_mutex_init(&hot[i].lock, NULL);
        hot[i].random = (uint32_t)i + 1;
    }
    return hot;
}

struct hot *hf__hot_thread(struct hot *hot, size_t number)
{
    return hot + number;
}

void hf__hot_free(struct hot *hot, size_t len)
{
    for (size_t i = 0; hot && i < len; i++)
        pthread_mutex_destroy(&hot[i].lock);
}

/* ---- what a call is about ------------------------------------------------------------------- */

/* An item or key that a call names. */
struct hot_entry {
    struct hf_str table;
    struct hf_item item; /* of a put the whole item, of others the key; absent: none */
    bool writes;
    bool puts;
};

static struct hot_entry entry_of(struct hf_str table, struct hf_item item, bool writes, bool puts)
{
    return (struct hot_entry){.table = table, .item = item, .writes = writes, .puts = puts};
}

/* The nth write of a BatchWriteItem, over all of its tables. */
static bool batch_write_entry(const struct hf_batch_write_item *request, size_t n,
                              struct hot_entry *entry)
{
    for (size_t i = 0; i < request->tables_len; i++) {
        const struct hf_table_writes *table = &request->tables[i];

        if (n < table->writes_len) {
            const struct hf_write_request *write = &table->writes[n];

            *entry = write->put   ? entry_of(table->table, write->put->item, true, true)
                     : write->del ? entry_of(table->table, write->del->key, true, false)
                                  : entry_of(table->table, (struct hf_item){0}, true, false);
            return true;
        }
        n -= table->writes_len;
    }
    return false;
}

static bool batch_get_entry(const struct hf_batch_get_item *request, size_t n,
                            struct hot_entry *entry)
{
    for (size_t i = 0; i < request->tables_len; i++) {
        if (n < request->tables[i].keys_len) {
            *entry = entry_of(request->tables[i].table, request->tables[i].keys[n], false, false);
            return true;
        }
        n -= request->tables[i].keys_len;
    }
    return false;
}

static bool transact_write_entry(const struct hf_transact_write_items *request, size_t n,
                                 struct hot_entry *entry)
{
    const struct hf_transact_write *action;

    if (n >= request->actions_len)
        return false;
    action = &request->actions[n];
    *entry = action->put      ? entry_of(action->put->table, action->put->item, true, true)
             : action->update ? entry_of(action->update->table, action->update->key, true, false)
             : action->del    ? entry_of(action->del->table, action->del->key, true, false)
             : action->check  ? entry_of(action->check->table, action->check->key, false, false)
                              : entry_of((struct hf_str){0}, (struct hf_item){0}, false, false);
    return true;
}

/* The nth item that the call names; false behind the last. */
static bool call_entry(const struct op *op, const void *request, size_t n, struct hot_entry *entry)
{
    const struct hf_put_item *put = request;
    const struct hf_get_item *get = request;
    const struct hf_update_item *update = request;
    const struct hf_delete_item *del = request;
    const struct hf_transact_get_items *gets = request;

    switch (op->op) {
    case HF_OP_BATCH_WRITE_ITEM:
        return batch_write_entry(request, n, entry);
    case HF_OP_BATCH_GET_ITEM:
        return batch_get_entry(request, n, entry);
    case HF_OP_TRANSACT_WRITE_ITEMS:
        return transact_write_entry(request, n, entry);
    case HF_OP_TRANSACT_GET_ITEMS:
        if (n >= gets->actions_len)
            return false;
        get = gets->actions[n].get;
        *entry = get ? entry_of(get->table, get->key, false, false)
                     : entry_of((struct hf_str){0}, (struct hf_item){0}, false, false);
        return true;
    case HF_OP_PUT_ITEM:
        *entry = entry_of(put->table, put->item, true, true);
        return n == 0;
    case HF_OP_GET_ITEM:
        *entry = entry_of(get->table, get->key, false, false);
        return n == 0;
    case HF_OP_UPDATE_ITEM:
        *entry = entry_of(update->table, update->key, true, false);
        return n == 0;
    case HF_OP_DELETE_ITEM:
        *entry = entry_of(del->table, del->key, true, false);
        return n == 0;
    default:
        *entry = entry_of(hf__db_call_table(op->op, request), (struct hf_item){0},
                          op->access == OP_WRITE, false);
        return n == 0;
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

/* A name may be an ARN: tables are known by their names. */
static uint64_t name_hash(struct hf_str name)
{
    return fnv_fold(fnv_add(FNV_BEGIN, name.ptr, name.len)) | 1;
}

/* The table of that name; NULL: it is not known, or with `add` its name is no name. */
static struct hot_table *table_find(struct hot *hot, struct hf_str name, bool add, uint64_t now_ns)
{
    uint64_t hash = name_hash(name);
    struct hot_table *oldest = &hot->tables[0];

    for (size_t i = 0; i < HOT_TABLES; i++) {
        struct hot_table *table = &hot->tables[i];

        if (table->hash == hash) {
            table->used_ns = now_ns;
            return table;
        }
        if (table->used_ns < oldest->used_ns)
            oldest = table;
        if (!table->hash) /* those behind it are free, too */
            break;
    }
    if (!add || !name.len || name.len > TABLE_NAME)
        return NULL;
    *oldest = (struct hot_table){.hash = hash, .used_ns = now_ns, .len = (uint8_t)name.len};
    memcpy(oldest->name, name.ptr, name.len);
    return oldest;
}

static void name_set(struct hot_name *name, struct hf_str text)
{
    name->len = text.len <= HOT_NAME ? (uint8_t)text.len : 0;
    memcpy(name->text, text.ptr, name->len);
}

/* Learn the key of a table from the engine. */
static void table_learn(struct hf_scope *s, struct hf_db *engine, struct hot_table *table)
{
    struct hf_describe_table ask = {.table = hf_str_of(table->name, table->len)};
    struct hf_describe_table_result got;

    table->key.len = table->range.len = 0;
    if (hf_describe_table(s, engine, &ask, &got) != HF_OK || !got.table) {
        hf__scope_error_clear(s);
        return;
    }
    for (size_t i = 0; i < got.table->key_schema_len; i++)
        name_set(got.table->key_schema[i].type == HF_KEY_HASH ? &table->key : &table->range,
                 got.table->key_schema[i].name);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void text_set(struct hf_scope *s, struct hot_text *to, struct hf_value value)
{
    struct hf_bytes bytes = hf_value_bytes(value);
    struct hf_str text = hf_value_str(value);
    char room[HOT_TEXT + 4];
    size_t len;

    to->cut = false;
    if (bytes.ptr) {
        to->cut = bytes.len > HOT_TEXT / 4 * 3;
        bytes.len = to->cut ? HOT_TEXT / 4 * 3 : bytes.len;
        text = hf_str_of(room, hf__base64_encode(bytes, room));
    } else if (!text.ptr) {
        text = hf_value_number(s, value);
    }
    len = text.len;
    if (len > HOT_TEXT) { /* and no half of a character */
        to->cut = true;
        len = HOT_TEXT;
        while (len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
            len--;
    }
    to->len = (uint8_t)len;
    if (len)
        memcpy(to->text, text.ptr, len);
}

/* Counts tell of the last seconds. */
static void counts_halve(struct hot *hot, uint64_t now_ns)
{
    uint64_t times;

    if (now_ns < hot->halved_ns) /* the caller took its time before another one halved */
        return;
    times = hot->halved_ns ? (now_ns - hot->halved_ns) / (HALF_S * SECOND_NS) : 0;
    if (!hot->halved_ns)
        hot->halved_ns = now_ns;
    if (!times)
        return;
    hot->halved_ns += times * HALF_S * SECOND_NS;
    for (size_t i = 0; i < HOT_KEYS; i++)
        hot->keys[i].count = times < 64 ? hot->keys[i].count >> times : 0;
    while (times-- > 0 && hot->counted_s < HALF_S - 0.01) /* where it ends up */
        hot->counted_s = (hot->counted_s + HALF_S) / 2;
}

static void key_count(struct hot *hot, struct hf_scope *s, const struct hot_table *table,
                      struct hf_value value, uint32_t weight)
{
    uint64_t hash = fnv_fold(fnv_add(table->hash, value.ptr, value.len)) | 1;
    struct hot_key *lowest = &hot->keys[0];

    for (size_t i = 0; i < HOT_KEYS; i++) {
        struct hot_key *key = &hot->keys[i];

        if (key->hash == hash) {
            key->count += weight;
            return;
        }
        if (key->count < lowest->count)
            lowest = key;
    }
    lowest->hash = hash;
    lowest->table = table->hash;
    lowest->count += weight;
    text_set(s, &lowest->text, value);
}

/* The value that a query's condition asks of the hash key; absent: it cannot be seen. */
static struct hf_value query_value(const struct hf_query *query, struct hf_str hash_key)
{
    static const char inside[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    struct hf_str text = query->key_condition;
    struct hf_str named = {0}; /* the name in front of a '=' */

    for (size_t at = 0; at < text.len;) {
        size_t begin = at;

        if (text.ptr[at] == '=') {
            at++;
            continue;
        }
        at += text.ptr[at] == '#' || text.ptr[at] == ':';
        while (at < text.len && char_in(text.ptr[at], inside))
            at++;
        if (at == begin) { /* another character */
            if (text.ptr[at] != ' ')
                named = (struct hf_str){0};
            at++;
        } else if (text.ptr[begin] == ':') {
            if (hf_str_equal(named, hash_key))
                return hf_item_get(query->values, hf_str_of(text.ptr + begin, at - begin));
            named = (struct hf_str){0};
        } else {
            named = hf_str_of(text.ptr + begin, at - begin);
            if (named.ptr[0] == '#')
                named = hf_value_str(hf_item_get(query->names, named));
        }
    }
    return (struct hf_value){0};
}

/* ---- large items ---------------------------------------------------------------------------- */

static void least_find(struct hot *hot)
{
    hot->least_bytes = UINT64_MAX;
    for (size_t i = 0; i < HOT_LARGEST; i++)
        if (hot->largest[i].bytes < hot->least_bytes)
            hot->least_bytes = hot->largest[i].bytes;
}

static void item_note(struct hot *hot, struct hf_scope *s, const struct hot_table *table,
                      struct hf_item item)
{
    struct hf_value key = hf_item_get(item, hf_str_of(table->key.text, table->key.len));
    struct hf_value range = {0};
    struct hot_item *place = NULL;
    uint64_t bytes = hf_item_size(item), hash;

    if (!key.ptr || bytes <= hot->least_bytes)
        return;
    if (table->range.len)
        range = hf_item_get(item, hf_str_of(table->range.text, table->range.len));
    hash = fnv_add(table->hash, key.ptr, key.len);
    hash = fnv_fold(fnv_add(hash, range.ptr, range.len)) | 1;
    for (size_t i = 0; i < HOT_LARGEST; i++)
        if (hot->largest[i].hash == hash || !place || hot->largest[i].bytes < place->bytes) {
            place = &hot->largest[i];
            if (place->hash == hash)
                break;
        }
    *place = (struct hot_item){.hash = hash, .table = table->hash, .bytes = bytes};
    text_set(s, &place->key, key);
    if (range.ptr)
        text_set(s, &place->range, range);
    least_find(hot);
}

/* ---- a call --------------------------------------------------------------------------------- */

/* How much a key counts for that is counted now; 0: it is not. */
static uint32_t sample_weight(struct hot *hot, uint64_t now_ns)
{
    uint64_t second = now_ns / SECOND_NS;

    if (second != hot->second) {
        hot->second = second;
        hot->in_second = 0;
    }
    if (hot->in_second++ < QUIET)
        return 1;
    hot->random ^= hot->random << 13;
    hot->random ^= hot->random >> 17;
    hot->random ^= hot->random << 5;
    return hot->random % SAMPLE ? 0 : SAMPLE;
}

static void entry_count(struct hot *hot, struct hf_scope *s, struct hf_db *engine,
                        const struct op *op, const void *request, const struct hot_entry *entry,
                        size_t body_len, uint64_t now_ns)
{
    uint32_t weight = sample_weight(hot, now_ns);
    struct hot_table *table = table_find(hot, entry->table, true, now_ns);
    const struct hf_query *query = op->op == HF_OP_QUERY ? request : NULL;
    struct hf_value value = {0};

    if (!table)
        return;
    table->reads += !entry->writes;
    table->writes += entry->writes;
    if ((!weight || (!entry->item.ptr && !query)) && !(entry->puts && body_len > hot->least_bytes))
        return;
    if (!table->key.len)
        table_learn(s, engine, table);
    if (!table->key.len)
        return;
    if (query && !query->index.len)
        value = query_value(query, hf_str_of(table->key.text, table->key.len));
    else if (entry->item.ptr)
        value = hf_item_get(entry->item, hf_str_of(table->key.text, table->key.len));
    if (!value.ptr && entry->item.ptr)
        table->key.len = 0; /* another table has this name now: learn its key at the next call */
    if (value.ptr && weight)
        key_count(hot, s, table, value, weight);
    if (entry->puts && body_len > hot->least_bytes)
        item_note(hot, s, table, entry->item);
}

/* Tables are named by name or ARN. */
static struct hf_str plain_name(struct hf_str name)
{
    const char *slash =
        name.len > 4 && memcmp(name.ptr, "arn:", 4) == 0 ? memrchr(name.ptr, '/', name.len) : NULL;

    return slash ? hf_str_of(slash + 1, (size_t)(name.ptr + name.len - slash - 1)) : name;
}

void hf__hot_call(struct hot *hot, struct hf_scope *s, struct hf_db *engine, const struct op *op,
                  const void *request, size_t body_len, bool failed, uint64_t now_ns)
{
    struct hot_entry entry;

    pthread_mutex_lock(&hot->lock);
    counts_halve(hot, now_ns);
    for (size_t n = 0; call_entry(op, request, n, &entry); n++) {
        entry.table = plain_name(entry.table);
        if (!entry.table.len)
            continue;
        if (failed) {
            struct hot_table *table = table_find(hot, entry.table, false, now_ns);

            if (table)
                table->errors++;
            break; /* the request failed, once */
        }
        entry_count(hot, s, engine, op, request, &entry, body_len, now_ns);
    }
    pthread_mutex_unlock(&hot->lock);
}

/* ---- answers -------------------------------------------------------------------------------- */

struct shown_key {
    struct hot_key key;
    double rate;
};

/* All threads together. */
struct shown {
    struct hot_table *tables;
    size_t tables_len;
    struct shown_key *keys;
    size_t keys_len;
    struct hot_item *items;
    size_t items_len;
};

static void tables_merge(struct shown *shown, const struct hot *hot)
{
    for (size_t i = 0; i < HOT_TABLES && hot->tables[i].hash; i++) {
        size_t at = 0;

        while (at < shown->tables_len && shown->tables[at].hash != hot->tables[i].hash)
            at++;
        if (at == shown->tables_len) {
            shown->tables[shown->tables_len++] = hot->tables[i];
            continue;
        }
        shown->tables[at].reads += hot->tables[i].reads;
        shown->tables[at].writes += hot->tables[i].writes;
        shown->tables[at].errors += hot->tables[i].errors;
        if (shown->tables[at].used_ns < hot->tables[i].used_ns)
            shown->tables[at].used_ns = hot->tables[i].used_ns;
        if (!shown->tables[at].key.len)
            shown->tables[at].key = hot->tables[i].key;
    }
}

static void keys_merge(struct shown *shown, const struct hot *hot, uint64_t now_ns)
{
    uint64_t since_ns = now_ns > hot->halved_ns ? now_ns - hot->halved_ns : 0;
    double seconds = hot->counted_s + (double)since_ns / (double)SECOND_NS;

    for (size_t i = 0; i < HOT_KEYS; i++) {
        const struct hot_key *key = &hot->keys[i];
        size_t at = 0;

        if (!key->hash || !key->count)
            continue;
        while (at < shown->keys_len && shown->keys[at].key.hash != key->hash)
            at++;
        if (at == shown->keys_len)
            shown->keys[shown->keys_len++] = (struct shown_key){.key = *key};
        shown->keys[at].rate += (double)key->count / (seconds > 1 ? seconds : 1);
    }
}

static void items_merge(struct shown *shown, const struct hot *hot)
{
    for (size_t i = 0; i < HOT_LARGEST; i++) {
        size_t at = 0;

        if (!hot->largest[i].hash)
            continue;
        while (at < shown->items_len && shown->items[at].hash != hot->largest[i].hash)
            at++;
        if (at == shown->items_len)
            shown->items[shown->items_len++] = hot->largest[i];
        else if (shown->items[at].bytes < hot->largest[i].bytes)
            shown->items[at] = hot->largest[i];
    }
}

/* The last used first: a table with much to do is among them, whatever it had to do before. */
static int tables_order(const void *a, const void *b)
{
    uint64_t x = ((const struct hot_table *)a)->used_ns, y = ((const struct hot_table *)b)->used_ns;

    return (x < y) - (x > y);
}

static int keys_order(const void *a, const void *b)
{
    double x = ((const struct shown_key *)a)->rate, y = ((const struct shown_key *)b)->rate;

    return (x < y) - (x > y);
}

static int items_order(const void *a, const void *b)
{
    uint64_t x = ((const struct hot_item *)a)->bytes, y = ((const struct hot_item *)b)->bytes;

    return (x < y) - (x > y);
}

static const struct hot_table *table_of(const struct shown *shown, uint64_t hash)
{
    for (size_t i = 0; i < shown->tables_len; i++)
        if (shown->tables[i].hash == hash)
            return &shown->tables[i];
    return NULL;
}

static void write_member(struct hf__buf *out, const char *name, struct hf_str text)
{
    hf__buf_format(out, "\"%s\":", name);
    hf__wire_write_str(out, text);
}

static void write_key(struct hf__buf *out, const char *name, const struct hot_text *key)
{
    write_member(out, name, hf_str_of(key->text, key->len));
    if (key->cut)
        hf__buf_format(out, ",\"%s_cut\":true", name);
}

static void write_tables(struct hf__buf *out, const struct shown *shown)
{
    hf__buf_put_str(out, HF_STR(",\"tables\":["));
    for (size_t i = 0; i < shown->tables_len && i < SHOWN_TABLES; i++) {
        const struct hot_table *table = &shown->tables[i];

        hf__buf_put_str(out, i ? HF_STR(",{") : HF_STR("{"));
        write_member(out, "name", hf_str_of(table->name, table->len));
        hf__buf_format(out, ",\"reads\":%llu,\"writes\":%llu,\"errors\":%llu}",
                       (unsigned long long)table->reads, (unsigned long long)table->writes,
                       (unsigned long long)table->errors);
    }
}

static void write_keys(struct hf__buf *out, const struct shown *shown)
{
    size_t count = 0;

    hf__buf_put_str(out, HF_STR("],\"partitions\":["));
    for (size_t i = 0; i < shown->keys_len && count < SHOWN_KEYS; i++) {
        const struct hot_table *table = table_of(shown, shown->keys[i].key.table);

        if (!table)
            continue;
        hf__buf_put_str(out, count++ ? HF_STR(",{") : HF_STR("{"));
        write_member(out, "table", hf_str_of(table->name, table->len));
        hf__buf_put_byte(out, ',');
        write_key(out, "key", &shown->keys[i].key.text);
        hf__buf_format(out, ",\"per_second\":%.1f}", shown->keys[i].rate);
    }
}

static void write_items(struct hf__buf *out, const struct shown *shown)
{
    size_t count = 0;

    hf__buf_put_str(out, HF_STR("],\"largest\":["));
    for (size_t i = 0; i < shown->items_len && count < HOT_LARGEST; i++) {
        const struct hot_table *table = table_of(shown, shown->items[i].table);

        if (!table)
            continue;
        hf__buf_put_str(out, count++ ? HF_STR(",{") : HF_STR("{"));
        write_member(out, "table", hf_str_of(table->name, table->len));
        hf__buf_put_byte(out, ',');
        write_key(out, "key", &shown->items[i].key);
        if (shown->items[i].range.len) {
            hf__buf_put_byte(out, ',');
            write_key(out, "range", &shown->items[i].range);
        }
        hf__buf_format(out, ",\"bytes\":%llu}", (unsigned long long)shown->items[i].bytes);
    }
}

static bool shown_collect(struct hf_scope *s, struct server *server, struct shown *shown)
{
    size_t len = server->loops_len + server->options.workers;

    shown->tables = hf__scope_array(s, len * HOT_TABLES, sizeof(*shown->tables));
    shown->keys = hf__scope_array(s, len * HOT_KEYS, sizeof(*shown->keys));
    shown->items = hf__scope_array(s, len * HOT_LARGEST, sizeof(*shown->items));
    if (!shown->tables || !shown->keys || !shown->items)
        return false;
    for (size_t i = 0; i < len; i++) {
        struct hot *hot = hf__hot_thread(server->hot, i);
        uint64_t now_ns = uv_hrtime();

        pthread_mutex_lock(&hot->lock);
        counts_halve(hot, now_ns);
        tables_merge(shown, hot);
        keys_merge(shown, hot, now_ns);
        items_merge(shown, hot);
        pthread_mutex_unlock(&hot->lock);
    }
    qsort(shown->tables, shown->tables_len, sizeof(*shown->tables), tables_order);
    qsort(shown->keys, shown->keys_len, sizeof(*shown->keys), keys_order);
    qsort(shown->items, shown->items_len, sizeof(*shown->items), items_order);
    return true;
}

void hf__admin_top(struct answer *answer, const struct admin_request *request)
{
    struct shown shown = {.tables_len = 0};
    struct hf__buf *out;

    (void)request;
    if (!shown_collect(answer->context->scope, answer->context->server, &shown)) {
        hf__admin_error(answer, 500, HF_STR("out of memory"));
        return;
    }
    out = hf__answer_begin(answer);
    hf__buf_put_byte(out, '{');
    write_member(out, "version", hf_str_from(hf_version()));
    write_tables(out, &shown);
    write_keys(out, &shown);
    write_items(out, &shown);
    hf__buf_put_str(out, HF_STR("]}\n"));
    hf__answer_end(answer, 200);
}
