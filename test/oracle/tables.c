/* oracle/tables.c: tables as arrays of items, and what a write does to them. */
#include <stdio.h>
#include <string.h>

#include "oracle.h"

static const int64_t day_us = INT64_C(24) * 3600 * 1000000;

struct val *key_of(struct oracle *o, const struct otable *table, const struct val *item)
{
    struct val *key = val_new(&o->arena, V_M);

    map_set(&o->arena, key, table->hash.name, map_get(item, table->hash.name));
    if (table->range.name)
        map_set(&o->arena, key, table->range.name, map_get(item, table->range.name));
    return key;
}

static bool at_key(const struct otable *table, const struct val *item, const struct val *key)
{
    return val_equal(map_get(item, table->hash.name), map_get(key, table->hash.name)) &&
           (!table->range.name ||
            val_equal(map_get(item, table->range.name), map_get(key, table->range.name)));
}

struct val *find_item(const struct otable *table, const struct val *key)
{
    for (size_t i = 0; i < table->len; i++)
        if (at_key(table, table->items[i], key))
            return table->items[i];
    return NULL;
}

/* ---- indexes --------------------------------------------------------------------------------- */

static bool part_fits(const struct key_part *part, const struct val *item)
{
    const struct val *val = part->name ? map_get(item, part->name) : NULL;

    return !part->name || (val && val->type == part->type && (val->type == V_N || val->len > 0));
}

bool index_has(const struct oindex *index, const struct val *item)
{
    return part_fits(&index->hash, item) && part_fits(&index->range, item);
}

static bool is_part(const struct key_part *part, const char *name)
{
    return part->name && strcmp(part->name, name) == 0;
}

bool index_projects(const struct otable *table, const struct oindex *index, const char *name)
{
    if (!index || index->projecting == P_ALL || is_part(&index->hash, name) ||
        is_part(&index->range, name) || is_part(&table->hash, name) || is_part(&table->range, name))
        return true;
    for (int i = 0; i < index->included_len; i++)
        if (strcmp(index->included[i], name) == 0)
            return true;
    return false;
}

struct val *index_entry(struct oracle *o, const struct otable *table, const struct oindex *index,
                        const struct val *item)
{
    struct val *entry = val_new(&o->arena, V_M);

    for (size_t i = 0; i < item->count; i++)
        if (index_projects(table, index, item->names[i]))
            map_set(&o->arena, entry, item->names[i], item->at[i]);
    return entry;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void complain(struct judged *judged, const char *message)
{
    judged->verdict = INVALID;
    if (judged->messages_len < 8)
        judged->messages[judged->messages_len++] = message;
}

#define NOT_VALID "One or more parameter values are not valid. "
#define NO_EMPTY "The AttributeValue for a key attribute cannot contain an empty %s value."
#define WRONG_TYPE                                                                                 \
    "One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s "      \
    "Actual: %s IndexName: %s"
#define EMPTY_BY_PUT                                                                               \
    NOT_VALID "A value specified for a secondary index key is not supported. " NO_EMPTY            \
              " IndexName: %s, IndexKey: %s"
#define EMPTY_BY_UPDATE                                                                            \
    NOT_VALID "The update expression attempted to update a secondary index key to a value that "   \
              "is not supported. " NO_EMPTY

static void put_empty(struct text *text, enum write_kind kind, enum vtype type, const char *index,
                      const char *key)
{
    const char *word = type == V_S ? "string" : "binary";

    if (kind == W_UPDATE)
        text_add(text, EMPTY_BY_UPDATE, word);
    else
        text_add(text, EMPTY_BY_PUT, word, index, key);
}

/* Index keys that are there must have their type; of an update, those that it changed. */
static void judge_index_keys(struct oracle *o, const struct owrite *write, const struct val *before,
                             const struct val *after, struct judged *judged)
{
    for (int i = 0; i < write->table->indexes_len; i++) {
        const struct oindex *index = &write->table->indexes[i];
        const struct key_part *parts[] = {&index->hash, &index->range};

        for (int j = 0; j < 2; j++) {
            const struct val *val = parts[j]->name ? map_get(after, parts[j]->name) : NULL;
            struct text text = {.arena = &o->arena};

            if (!val || part_fits(parts[j], after))
                continue;
            if (write->kind == W_UPDATE && val_equal(val, map_get(before, parts[j]->name)))
                continue;
            if (val->type == parts[j]->type)
                put_empty(&text, write->kind, val->type, index->name, parts[j]->name);
            else if (write->update &&
                     update_reads(write->update, before ? before : write->item, parts[j]->name))
                text_add(&text, "%s", text_index_type);
            else
                text_add(&text, WRONG_TYPE, parts[j]->name, type_tag(parts[j]->type),
                         type_tag(val->type), index->name);
            complain(judged, text.ptr);
        }
    }
}

static void judge_update(struct oracle *o, const struct owrite *write, struct judged *judged)
{
    static const struct update nothing;
    int bad = 0;

    judged->after = update_apply(&o->arena, write->update ? write->update : &nothing, write->item,
                                 judged->before, &bad);
    if (bad & BAD_MISSING)
        complain(judged, text_missing);
    if (bad & BAD_TYPE)
        complain(judged, text_type);
    if (bad & BAD_PATH)
        complain(judged, text_path);
    if (!bad && judged->after)
        judge_index_keys(o, write, judged->before, judged->after, judged);
}

struct judged judge(struct oracle *o, const struct owrite *write)
{
    struct judged judged = {.before = find_item(write->table, write->item)};

    if (write->kind == W_PUT) {
        judge_index_keys(o, write, judged.before, write->item, &judged);
        judged.at_once = judged.verdict == INVALID;
    }
    if (judged.at_once)
        return judged;
    if (write->cond && !cond_match(write->cond, judged.before)) {
        judged.verdict = CONDITION_FAILED;
        return judged;
    }
    if (write->kind == W_PUT)
        judged.after = write->item;
    else if (write->kind == W_UPDATE)
        judge_update(o, write, &judged);
    else if (write->kind == W_CHECK)
        judged.after = judged.before;
    return judged;
}

static void note_event(struct oracle *o, struct otable *table, const struct val *before,
                       const struct val *after, bool by_service, int64_t now_us)
{
    if (table->view == VIEW_NONE)
        return;
    if (table->events_len == table->events_cap) {
        struct event *more;

        table->events_cap = 2 * table->events_cap + 16;
        more = arena_alloc(&o->arena, table->events_cap * sizeof(*more));
        if (table->events_len)
            memcpy(more, table->events, table->events_len * sizeof(*more));
        table->events = more;
    }
    table->events[table->events_len++] =
        (struct event){.name = !before  ? "INSERT"
                               : !after ? "REMOVE"
                                        : "MODIFY",
                       .key = key_of(o, table, after ? after : before),
                       .before = before,
                       .after = after,
                       .by_service = by_service,
                       .at_us = now_us};
}

static void change(struct oracle *o, struct otable *table, struct val *before, struct val *after,
                   bool by_service, int64_t now_us)
{
    size_t at = 0;

    if (val_equal(before, after))
        return;
    note_event(o, table, before, after, by_service, now_us);
    while (at < table->len && table->items[at] != before)
        at++;
    if (at < table->len)
        table->items[at] = after ? after : table->items[--table->len];
    if (before || !after)
        return;
    if (table->len == table->cap) {
        struct val **more;

        table->cap = 2 * table->cap + 16;
        more = arena_alloc(&o->arena, table->cap * sizeof(*more));
        for (size_t i = 0; i < table->len; i++)
            more[i] = table->items[i];
        table->items = more;
    }
    table->items[table->len++] = after;
}

void apply(struct oracle *o, const struct owrite *write, const struct judged *judged,
           int64_t now_us)
{
    change(o, write->table, judged->before, judged->after, false, now_us);
}

/* ---- time ------------------------------------------------------------------------------------ */

size_t expire(struct oracle *o, struct otable *table, int64_t now_us)
{
    size_t expired = 0;

    for (size_t i = 0; table->ttl && i < table->len;) {
        const struct val *when = map_get(table->items[i], table->ttl);

        if (when && when->type == V_N && when->thousandths >= 0 &&
            when->thousandths / 1000 < now_us / 1000000 &&
            when->thousandths / 1000 >= now_us / 1000000 - INT64_C(5) * 365 * 24 * 3600) {
            change(o, table, table->items[i], NULL, true, now_us);
            expired++;
        } else {
            i++;
        }
    }
    return expired;
}

size_t trim(struct otable *table, int64_t now_us)
{
    size_t kept = 0, len = table->events_len;

    for (size_t i = 0; i < len; i++)
        if (table->events[i].at_us >= now_us - day_us)
            table->events[kept++] = table->events[i];
    table->events_len = kept;
    return len - kept;
}
