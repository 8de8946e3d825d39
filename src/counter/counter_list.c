/*
 * counter/counter_list.c: which counters there are.
 *
 * In a partition a list is a Query: counters whose names begin alike are stored side by side.
 * Elsewhere it is a Scan of the whole table, of which others may have most.
 *
 *  (1) Of a counter with shards its first item is in the list, with the sum of all; the others are
 *      parts of it.
 *  (2) An item without a value is no counter yet, or none any more (counter_shard.c).
 *  (3) A page without items does not end a list; only a page without a `last` does.
 */
#include "counter/counter.h"

#define HEAD HF_STR("%count.")

/* One list, as it is asked for. */
struct asked {
    struct hf_counters *c;
    struct hf_str partition; /* absent: all, or there are none */
    struct hf_query query;
    struct hf_scan scan;
};

/* The counters so far; they grow in the scope. */
struct gathered {
    struct hf_counter_value *values;
    size_t len, cap;
};

static enum hf_status list_append(struct hf_scope *s, struct gathered *all,
                                  const struct hf_counter_value *value)
{
    if (all->len == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 16;
        struct hf_counter_value *moved = hf_scope_alloc(s, cap * sizeof(*moved));

        if (!moved)
            return hf_scope_built(s);
        if (all->len)
            memcpy(moved, all->values, all->len * sizeof(*moved));
        all->values = moved;
        all->cap = cap;
    }
    all->values[all->len++] = *value;
    return HF_OK;
}

/* ---- the request ---------------------------------------------------------------------------- */

static struct hf_attr text_attr(const char *placeholder, struct hf_str text)
{
    return (struct hf_attr){.name = hf_str_from(placeholder), .type = HF_TYPE_S, .text = text};
}

static struct hf_item key_item(struct hf_scope *s, const struct hf_counters *c, struct hf_str hash,
                               struct hf_str sort)
{
    const struct hf_attr attrs[] = {{.name = c->hash, .type = HF_TYPE_S, .text = hash},
                                    {.name = c->sort, .type = HF_TYPE_S, .text = sort}};

    return hf_item_make(s, attrs, c->partitioned ? 2 : 1);
}

/* The cursor is the key of the last one that was handed out. */
static enum hf_status start_after(struct hf_scope *s, const struct asked *asked,
                                  struct hf_str after, struct hf_item *start)
{
    const struct hf_counters *c = asked->c;
    struct hf_str parts[2] = {{NULL, 0}, {NULL, 0}};

    if (!after.ptr)
        return HF_OK;
    if (hf__pattern_key_parts(s, after, parts, c->partitioned ? 2 : 1) != HF_OK ||
        (asked->partition.ptr && !hf_str_equal(parts[0], asked->partition)))
        return hf_scope_fail(s, HF_INVALID, "invalid cursor for a list of counters of table %.*s",
                             HF_FMT(c->table));
    *start = key_item(s, c, parts[0], parts[1]);
    return HF_OK;
}

static enum hf_status requests_make(struct hf_scope *s, struct asked *asked,
                                    const struct hf_counter_list_options *o)
{
    const struct hf_counters *c = asked->c;
    struct hf_str parts[] = {o->space.ptr ? o->space : c->space, o->prefix};
    struct hf_str head = hf__pattern_join(s, HEAD, hf__pattern_key(s, parts, 2));
    struct hf_str key = c->partitioned ? c->sort : c->hash;
    struct hf_attr names[] = {text_attr("#key", key), text_attr("#count", HF_STR("count")),
                              text_attr("#shards", HF_STR("shards")), text_attr("#hash", c->hash)};
    struct hf_attr values[] = {text_attr(":head", head), text_attr(":hash", asked->partition)};
    struct hf_item start = {0}, named = hf_item_make(s, names, c->partitioned ? 4 : 3);
    struct hf_str wanted =
        c->partitioned ? HF_STR("#hash, #key, #count, #shards") : HF_STR("#key, #count, #shards");

    TRY(start_after(s, asked, o->after, &start));
    asked->query =
        (struct hf_query){.table = c->table,
                          .key_condition = HF_STR("#hash = :hash AND begins_with(#key, :head)"),
                          .projection = wanted,
                          .names = named,
                          .values = hf_item_make(s, values, asked->partition.ptr ? 2 : 1),
                          .start = start,
                          .consistent = HF_YES};
    asked->scan = (struct hf_scan){.table = c->table,
                                   .filter = HF_STR("begins_with(#key, :head)"),
                                   .projection = wanted,
                                   .names = named,
                                   .values = asked->query.values,
                                   .start = start,
                                   .consistent = HF_YES};
    return hf_scope_built(s);
}

static enum hf_status page_fetch(struct hf_scope *s, struct asked *asked,
                                 const struct hf_item **items, size_t *len, struct hf_item *last)
{
    struct hf_query_result queried;
    struct hf_scan_result scanned;

    if (asked->partition.ptr) {
        TRY(hf_query(s, asked->c->db, &asked->query, &queried));
        *items = queried.items;
        *len = queried.items_len;
        *last = queried.last;
    } else {
        TRY(hf_scan(s, asked->c->db, &asked->scan, &scanned));
        *items = scanned.items;
        *len = scanned.items_len;
        *last = scanned.last;
    }
    asked->query.start = asked->scan.start = *last;
    return HF_OK;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static size_t dots_of(struct hf_str text)
{
    size_t dots = 0;

    for (size_t i = 0; i < text.len; i++)
        dots += text.ptr[i] == '.';
    return dots;
}

/* The counter of an item; *found is false when it is none, or a part of another (1) (2). */
static enum hf_status counter_of(struct hf_scope *s, const struct asked *asked, struct hf_item item,
                                 struct hf_counter_value *value)
{
    struct hf_counters *c = asked->c;
    struct hf_str hash = hf_value_str(hf_item_get(item, c->hash));
    struct hf_str key = c->partitioned ? hf_value_str(hf_item_get(item, c->sort)) : hash;
    struct counter_seen seen;
    struct counter_at at;
    struct hf_str parts[2];

    *value = (struct hf_counter_value){.found = false};
    key = hf_str_of(key.ptr + HEAD.len, key.len - HEAD.len);
    if (dots_of(key) != 1)
        return HF_OK;
    TRY(hf__pattern_key_parts(s, key, parts, 2));
    value->key = (struct hf_counter_key){.id = parts[1], .space = parts[0]};
    if (c->partitioned)
        value->key.partition = hash;
    at = (struct counter_at){.name = value->key, .table = c->table};
    TRY(hf__counter_see(s, &at, item, (struct counter_mark){0}, &seen));
    value->value = seen.value;
    value->found = seen.found;
    if (seen.shards > 1)
        TRY(hf__counter_sum(s, c, value->key, seen.shards, value));
    return HF_OK;
}

static struct hf_str cursor_of(struct hf_scope *s, const struct asked *asked, struct hf_item item)
{
    const struct hf_counters *c = asked->c;
    struct hf_str parts[2] = {hf_value_str(hf_item_get(item, c->hash)),
                              hf_value_str(hf_item_get(item, c->sort))};

    return hf__pattern_key(s, parts, c->partitioned ? 2 : 1);
}

enum hf_status hf_counter_list(struct hf_scope *s, struct hf_counters *c,
                               const struct hf_counter_list_options *options,
                               struct hf_counter_list *list)
{
    struct hf_counter_list_options o;
    struct asked asked = {.c = c};
    struct gathered all = {0};
    struct hf_item before = {0}, last;
    const struct hf_item *items;
    size_t len;

    *list = (struct hf_counter_list){0};
    OPTIONS_COPY(&o, options);
    if (o.partition.ptr && (!c->partitioned || o.partition.len == 0))
        return hf_scope_fail(s, HF_INVALID, "a list of counters of %.*s: %s", HF_FMT(c->table),
                             c->partitioned ? "the partition is empty" : "it has no partitions");
    asked.partition = o.partition;
    TRY(requests_make(s, &asked, &o));
    do {
        TRY(page_fetch(s, &asked, &items, &len, &last));
        for (size_t i = 0; i < len && !list->next.ptr; i++) {
            struct hf_counter_value value;

            TRY(counter_of(s, &asked, items[i], &value));
            if (!value.found)
                continue;
            if (o.limit && all.len == o.limit) {
                list->next = cursor_of(s, &asked, before);
                continue;
            }
            before = items[i];
            TRY(list_append(s, &all, &value));
        }
    } while (last.ptr && !list->next.ptr); /* (3) */
    list->counters = all.values;
    list->counters_len = all.len;
    return hf_scope_built(s);
}
