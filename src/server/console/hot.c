/*
 * server/console/hot.c: hot tables, hot partitions, large items; bounded memory, some nanoseconds a request.
 *
 * Tables are counted exactly: reads, writes and errors since the server started. A thread knows the
 * HOT_TABLES that it saw last.
 *
 * Partitions, which are hash keys, are counted by "space saving": a thread has HOT_KEYS counters. A
 * key without one takes over that of the lowest count and adds to it, so a key that gets more than
 * one of HOT_KEYS requests is always there, and a count is too high by at most the lowest one.
 * Counts are halved every HOT_HALF_S seconds, so that they tell of now, and so is the time in which they
 * were counted:
 *
 *     rate = count / (that time + seconds since the last halving)
 *
 * Beyond QUIET requests a second one of SAMPLE is counted, SAMPLE times.
 *
 * Of items that were put the HOT_LARGEST largest are known, with the size that they had when they
 * were put. By size is meant the length of what the engine is given, which costs nothing to look at and
 * differs from DynamoDB's by a few bytes an attribute. Only an item that is among them is measured.
 *
 * hot_report.c adds up what the threads have counted, and answers with it.
 *
 * What always holds:
 *
 *  (1) Memory does not grow: all of it is there from the start.
 *  (2) A name that a request made up takes no place: tables are added by calls that succeeded.
 *  (3) Only the thread of a `struct hot` waits for its lock, and only while it is being read.
 *  (4) Nothing is asked of a database that is remote: what the key of a table is would take a request,
 *      again and again where that is not allowed. So of its tables only calls are counted.
 */
#include "server/console/hot_private.h"

#include <assert.h>

#include "base/base64.h"
#include "base/fnv.h"
#include "db/call_info.h"
#include "ops/fields.h"

enum { QUIET = 1000, SAMPLE = 8 };

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
            table->used_ns = now_ns ? now_ns : table->used_ns;
            return table;
        }
        if (table->used_ns < oldest->used_ns)
            oldest = table;
        if (!table->hash) /* those behind it are free, too */
            break;
    }
    if (!add || !name.len || name.len > HOT_TABLE_NAME)
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
void hf__hot_counts_halve(struct hot *hot, uint64_t now_ns)
{
    uint64_t times;

    if (now_ns < hot->halved_ns) /* the caller took its time before another one halved */
        return;
    times = hot->halved_ns ? (now_ns - hot->halved_ns) / (HOT_HALF_S * HOT_SECOND_NS) : 0;
    if (!hot->halved_ns)
        hot->halved_ns = now_ns;
    if (!times)
        return;
    hot->halved_ns += times * HOT_HALF_S * HOT_SECOND_NS;
    for (size_t i = 0; i < HOT_KEYS; i++)
        hot->keys[i].count = times < 64 ? hot->keys[i].count >> times : 0;
    while (times-- > 0 && hot->counted_s < HOT_HALF_S - 0.01) /* where it ends up */
        hot->counted_s = (hot->counted_s + HOT_HALF_S) / 2;
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

/* Is it inside of a name? */
static bool is_inside(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* The value that a query's condition asks of the hash key; absent: it cannot be seen. */
static struct hf_value query_value(const struct hf_query *query, struct hf_str hash_key)
{
    struct hf_str text = query->key_condition;
    struct hf_str named = {0}; /* the name in front of a '=' */

    for (size_t at = 0; at < text.len;) {
        size_t begin = at;

        if (text.ptr[at] == '=') {
            at++;
            continue;
        }
        at += text.ptr[at] == '#' || text.ptr[at] == ':';
        while (at < text.len && is_inside(text.ptr[at]))
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
    hot->least_len = UINT64_MAX;
    for (size_t i = 0; i < HOT_LARGEST; i++)
        if (hot->largest[i].len < hot->least_len)
            hot->least_len = hot->largest[i].len;
}

static void item_note(struct hot *hot, struct hf_scope *s, const struct hot_table *table,
                      struct hf_item item)
{
    struct hf_value key = hf_item_get(item, hf_str_of(table->key.text, table->key.len));
    struct hf_value range = {0};
    struct hot_item *place = NULL;
    uint64_t hash;

    assert(item.len > hot->least_len);
    if (!key.ptr)
        return;
    if (table->range.len)
        range = hf_item_get(item, hf_str_of(table->range.text, table->range.len));
    hash = fnv_add(table->hash, key.ptr, key.len);
    hash = fnv_fold(fnv_add(hash, range.ptr, range.len)) | 1;
    for (size_t i = 0; i < HOT_LARGEST; i++)
        if (hot->largest[i].hash == hash || !place || hot->largest[i].len < place->len) {
            place = &hot->largest[i];
            if (place->hash == hash)
                break;
        }
    *place = (struct hot_item){.hash = hash,
                               .table = table->hash,
                               .len = item.len,
                               .bytes = hf_item_size(item)};
    text_set(s, &place->key, key);
    if (range.ptr)
        text_set(s, &place->range, range);
    least_find(hot);
}

/* ---- a call --------------------------------------------------------------------------------- */

/* How much a key counts for that is counted now; 0: it is not. */
static uint32_t sample_weight(struct hot *hot, uint64_t now_ns)
{
    uint64_t second = now_ns / HOT_SECOND_NS;

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
                        uint64_t now_ns)
{
    bool is_large = entry->puts && entry->item.len > hot->least_len;
    uint32_t weight = sample_weight(hot, now_ns);
    struct hot_table *table = table_find(hot, entry->table, true, now_ns);
    const struct hf_query *query = op->op == HF_OP_QUERY ? request : NULL;
    struct hf_value value = {0};

    if (!table)
        return;
    table->reads += !entry->writes;
    table->writes += entry->writes;
    if ((!weight || (!entry->item.ptr && !query)) && !is_large)
        return;
    if (!table->key.len && !engine) /* (4) */
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
    if (is_large)
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
                  const void *request, bool failed, uint64_t now_ns)
{
    struct hot_entry entry;

    pthread_mutex_lock(&hot->lock);
    hf__hot_counts_halve(hot, now_ns);
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
        entry_count(hot, s, engine, op, request, &entry, now_ns);
    }
    pthread_mutex_unlock(&hot->lock);
}

/* ---- for others that look ------------------------------------------------------------------- */

_Static_assert((int)HOT_SUBJECT_TABLE == (int)HOT_TABLE_NAME &&
                   (int)HOT_SUBJECT_KEY == (int)HOT_TEXT,
               "what is kept fits");

/* The value of the hash key that an item or key or condition has. */
static struct hf_value subject_value(const struct op *op, const void *request,
                                     const struct hot_entry *entry, const struct hot_table *table)
{
    struct hf_str name = hf_str_of(table->key.text, table->key.len);

    return op->op == HF_OP_QUERY ? query_value(request, name) : hf_item_get(entry->item, name);
}

void hf__hot_subject(struct hot *hot, struct hf_scope *s, const struct op *op, const void *request,
                     struct hot_subject *subject)
{
    struct hot_entry entry, next;
    const struct hot_table *table;
    struct hf_value value = {0};
    struct hot_text text;

    subject->more = false;
    subject->table_len = subject->key_len = 0;
    if (!call_entry(op, request, 0, &entry))
        return;
    entry.table = plain_name(entry.table);
    if (entry.table.len == 0 || entry.table.len > HOT_TABLE_NAME)
        return;
    subject->more = call_entry(op, request, 1, &next);
    subject->table_len = (uint8_t)entry.table.len;
    memcpy(subject->table, entry.table.ptr, entry.table.len);
    pthread_mutex_lock(&hot->lock);
    table = table_find(hot, entry.table, false, 0);
    if (table && table->key.len)
        value = subject_value(op, request, &entry, table);
    if (value.ptr) {
        text_set(s, &text, value);
        subject->key_len = text.len;
        memcpy(subject->key, text.text, text.len);
    }
    pthread_mutex_unlock(&hot->lock);
}

void hf__hot_writes(struct hot *hot, size_t len,
                    void (*take)(struct hf_str table, uint64_t writes, void *user), void *user)
{
    for (size_t i = 0; i < len; i++) {
        pthread_mutex_lock(&hot[i].lock);
        for (size_t at = 0; at < HOT_TABLES && hot[i].tables[at].hash; at++) {
            const struct hot_table *table = &hot[i].tables[at];

            if (table->writes)
                take(hf_str_of(table->name, table->len), table->writes, user);
        }
        pthread_mutex_unlock(&hot[i].lock);
    }
}
