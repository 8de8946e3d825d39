/*
 * server/console/hot_report.c: GET /_holdfast/top: what the threads have counted (hot.c), added up and in order.
 *
 * Counts are added up under the lock of their thread, one thread after the other, and put in order and written without,
 * so nobody waits for the answer.
 */
#include "server/console/hot_private.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "server/admin/admin.h"
#include "server/private.h"
#include "wire/wire.h"

enum { SHOWN_TABLES = 64, SHOWN_KEYS = 20 };

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
    double seconds = hot->counted_s + (double)since_ns / (double)HOT_SECOND_NS;

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
        hf__hot_counts_halve(hot, now_ns);
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
