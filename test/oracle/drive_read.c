/* oracle/drive_read.c: reads by key, by range, and of everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"

enum { GETS_MAX = 6, PAGES_MAX = 200 };

/* ---- by key ---------------------------------------------------------------------------------- */

struct get {
    struct otable *table;
    struct val *key;
    struct projection projection;
};

static struct get gen_get(struct drive *d)
{
    struct get get = {.table = some_table(d)};

    get.key = gen_key(&d->g, get.table);
    if (chance(d, 2))
        get.projection = gen_projection(&d->g, get.table);
    return get;
}

static void put_projection(struct drive *d, struct text *json, const struct projection *projection,
                           struct render *r)
{
    struct text text = {.arena = &d->o.arena};

    if (!projection->len)
        return;
    render_projection(r, &text, projection);
    text_add(json, ",\"ProjectionExpression\":\"%s\"", text.ptr);
}

static void put_get(struct drive *d, struct text *json, const struct get *get)
{
    struct render r;

    render_begin(&r, &d->o.arena, &d->g.rnd);
    text_add(json, "{\"TableName\":\"%s\",\"Key\":", get->table->name);
    item_json(json, get->key, &d->g.rnd);
    put_projection(d, json, &get->projection, &r);
    render_end(&r, json);
}

static struct val *shown(struct drive *d, const struct projection *projection, struct val *item)
{
    return item && projection->len ? project(&d->o.arena, projection->paths, projection->len, item)
                                   : item;
}

static struct val *expected_of(struct drive *d, const struct get *get)
{
    return shown(d, &get->projection, find_item(get->table, get->key));
}

void do_get(struct drive *d)
{
    struct get get = gen_get(d);
    struct text json = {.arena = &d->o.arena};
    struct hf_get_item_result result;

    put_get(d, &json, &get);
    text_add(&json, ",\"ConsistentRead\":%s}", chance(d, 2) ? "true" : "false");
    drive_ok(d, "GetItem", json.ptr, &result);
    expect_item(d, "item", expected_of(d, &get), result.item);
}

void do_transact_get(struct drive *d)
{
    struct get gets[GETS_MAX];
    struct text json = {.arena = &d->o.arena};
    struct hf_transact_get_items_result result;
    int len = 1 + rnd_below(&d->g.rnd, GETS_MAX);

    text_add(&json, "{\"TransactItems\":[");
    for (int i = 0; i < len; i++) {
        bool twice;

        do {
            gets[i] = gen_get(d);
            twice = false;
            for (int j = 0; j < i; j++)
                twice |= gets[i].table == gets[j].table && val_equal(gets[i].key, gets[j].key);
        } while (twice);
        text_add(&json, "%s{\"Get\":", i ? "," : "");
        put_get(d, &json, &gets[i]);
        text_add(&json, "}}");
    }
    text_add(&json, "]}");
    drive_ok(d, "TransactGetItems", json.ptr, &result);
    expect_number(d, "responses", len, (int64_t)result.items_len);
    for (int i = 0; i < len; i++)
        expect_item(d, "response", expected_of(d, &gets[i]), result.items[i].item);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void do_batch_get(struct drive *d)
{
    struct text json = {.arena = &d->o.arena};
    struct hf_batch_get_item_result result;
    const char *expected[TABLES][GETS_MAX];
    int counts[TABLES] = {0};
    int tables = 0, first = rnd_below(&d->g.rnd, d->o.tables_len);

    text_add(&json, "{\"RequestItems\":{");
    for (int t = first; t < d->o.tables_len; t++, tables++) {
        struct otable *table = &d->o.tables[t];
        struct projection projection = {.len = 0};
        struct val *keys[GETS_MAX];
        int len = 0;
        struct render r;

        render_begin(&r, &d->o.arena, &d->g.rnd);
        if (chance(d, 2))
            projection = gen_projection(&d->g, table);
        text_add(&json, "%s\"%s\":{\"Keys\":[", tables ? "," : "", table->name);
        for (int tries = 1 + rnd_below(&d->g.rnd, GETS_MAX); tries > 0; tries--) {
            bool twice = false;
            struct val *item;

            keys[len] = gen_key(&d->g, table);
            for (int i = 0; i < len; i++)
                twice |= val_equal(keys[i], keys[len]);
            if (twice)
                continue;
            text_add(&json, len ? "," : "");
            item_json(&json, keys[len], &d->g.rnd);
            item = shown(d, &projection, find_item(table, keys[len]));
            if (item)
                expected[tables][counts[tables]++] = item_text(&d->o.arena, item);
            len++;
        }
        text_add(&json, "]");
        put_projection(d, &json, &projection, &r);
        render_end(&r, &json);
        text_add(&json, "}");
    }
    text_add(&json, "}}");
    drive_ok(d, "BatchGetItem", json.ptr, &result);
    expect_number(d, "tables", tables, (int64_t)result.tables_len);
    expect_number(d, "unprocessed", 0, (int64_t)result.unprocessed_len);
    for (int t = 0; t < tables; t++) {
        const char *actual[GETS_MAX];

        expect_number(d, "items of a table", counts[t], (int64_t)result.tables[t].items_len);
        for (int i = 0; i < counts[t]; i++)
            actual[i] = engine_item(d, result.tables[t].items[i]);
        qsort(actual, (size_t)counts[t], sizeof(actual[0]), by_text);
        qsort(expected[t], (size_t)counts[t], sizeof(actual[0]), by_text);
        for (int i = 0; i < counts[t]; i++)
            expect_text(d, "item of a batch", expected[t][i], actual[i]);
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* What a Query or Scan asks for, beside its keys. */
struct reading {
    struct otable *table;
    struct oindex *index; /* NULL: the table */
    struct cond *filter;
    struct projection projection;
    const char *select; /* NULL: not given */
    bool counting;
};

struct row {
    const struct val *sort; /* NULL: no sort key */
    const char *text;       /* NULL: filtered out */
};

struct rows {
    struct row *list;
    size_t len;
    size_t shown;
};

static bool wants_all(const struct reading *r)
{
    return r->select && strcmp(r->select, "ALL_ATTRIBUTES") == 0;
}

/* Does the reading need an attribute that a local index does not have? */
static bool must_fetch(const struct reading *r, const struct val *item)
{
    if (!r->index->local)
        return false;
    if (wants_all(r))
        return true;
    for (int i = 0; i < r->projection.len; i++)
        if (!index_projects(r->table, r->index, r->projection.paths[i].steps[0].name))
            return true;
    for (size_t i = 0; r->filter && i < item->count; i++)
        if (!index_projects(r->table, r->index, item->names[i]) &&
            cond_mentions(r->filter, item->names[i]))
            return true;
    return false;
}

/* The row that an item makes, as the reading shows it. */
static struct row row_of(struct drive *d, const struct reading *r, struct val *item)
{
    const char *range = r->index ? r->index->range.name : r->table->range.name;
    struct row row = {.sort = range ? map_get(item, range) : NULL};
    struct val *entry = r->index ? index_entry(&d->o, r->table, r->index, item) : item;
    struct val *judged = r->index && must_fetch(r, item) ? item : entry;

    if (r->filter && !cond_match(r->filter, judged))
        return row;
    if (r->projection.len)
        entry = project(&d->o.arena, r->projection.paths, r->projection.len, judged);
    else if (wants_all(r))
        entry = judged;
    row.text = item_text(&d->o.arena, entry);
    return row;
}

/* Does the index have all that the filter names? */
static bool filter_projected(const struct reading *r, const struct cond *cond)
{
    if (!cond)
        return true;
    for (int i = 0; i < cond->x_len; i++)
        if (cond->x[i]->kind != O_VALUE &&
            !index_projects(r->table, r->index, cond->x[i]->path.steps[0].name))
            return false;
    return filter_projected(r, cond->l) && filter_projected(r, cond->r);
}

static struct reading gen_reading(struct drive *d, bool query)
{
    struct reading r = {.table = some_table(d)};
    const char *but1 = NULL, *but2 = NULL;

    if (r.table->indexes_len && chance(d, 2)) {
        r.index = &r.table->indexes[rnd_below(&d->g.rnd, r.table->indexes_len)];
        if (r.index->building)
            r.index = NULL;
    }
    if (query) {
        but1 = r.index ? r.index->hash.name : r.table->hash.name;
        but2 = r.index ? r.index->range.name : r.table->range.name;
    }
    if (chance(d, 2))
        r.filter = gen_cond(&d->g, r.table, 2, but1, but2);
    if (query && r.index && !r.index->local && !filter_projected(&r, r.filter))
        r.filter = NULL; /* which a query of a global index refuses */
    if (chance(d, 3))
        r.projection = gen_projection(&d->g, r.table);
    for (int i = 0; i < r.projection.len; i++)
        if (r.index && !r.index->local &&
            !index_projects(r.table, r.index, r.projection.paths[i].steps[0].name))
            r.projection.len = 0;
    if (r.projection.len == 0 && chance(d, 3)) {
        if (chance(d, 2)) {
            r.select = "COUNT";
            r.counting = true;
        } else if (!r.index || r.index->local || r.index->projecting == P_ALL) {
            r.select = "ALL_ATTRIBUTES";
        } else {
            r.select = "ALL_PROJECTED_ATTRIBUTES";
        }
    }
    return r;
}

static void put_reading(struct drive *d, struct text *json, const struct reading *r,
                        struct render *render)
{
    struct text filter = {.arena = &d->o.arena};

    if (r->index)
        text_add(json, ",\"IndexName\":\"%s\"", r->index->name);
    if (r->filter) {
        render_cond(render, &filter, r->filter);
        text_add(json, ",\"FilterExpression\":\"%s\"", filter.ptr);
    }
    put_projection(d, json, &r->projection, render);
    if (r->select)
        text_add(json, ",\"Select\":\"%s\"", r->select);
    if ((!r->index || r->index->local) && chance(d, 2))
        text_add(json, ",\"ConsistentRead\":true");
}

/* What came out of all pages. */
struct pages {
    const char **texts;
    size_t len, cap;
    int64_t count;
    int64_t scanned;
    bool deleting; /* delete some of the items that pages end with */
};

static void add_text(struct drive *d, struct pages *pages, const char *text)
{
    if (pages->len == pages->cap) {
        const char **more;

        pages->cap = 2 * pages->cap + 32;
        more = arena_alloc(&d->o.arena, pages->cap * sizeof(*more));
        for (size_t i = 0; i < pages->len; i++)
            more[i] = pages->texts[i];
        pages->texts = more;
    }
    pages->texts[pages->len++] = text;
}

/* The item that a cursor names. */
static struct val *at_cursor(struct drive *d, const struct reading *r, struct hf_item last)
{
    const char *wanted = engine_item(d, last);

    for (size_t i = 0; i < r->table->len; i++) {
        struct val *item = r->table->items[i];
        struct val *key;

        if (r->index && !index_has(r->index, item))
            continue;
        key = key_of(&d->o, r->table, item);
        if (r->index)
            map_set(&d->o.arena, key, r->index->hash.name, map_get(item, r->index->hash.name));
        if (r->index && r->index->range.name)
            map_set(&d->o.arena, key, r->index->range.name, map_get(item, r->index->range.name));
        if (strcmp(item_text(&d->o.arena, key), wanted) == 0)
            return item;
    }
    mismatch(d, "LastEvaluatedKey", "the key of an item", wanted);
}

/* The item that a page ended with goes away; the next page is none the wiser. */
static void delete_at_cursor(struct drive *d, const struct reading *r, struct hf_item last)
{
    struct val *key = key_of(&d->o, r->table, at_cursor(d, r, last));
    struct owrite write = {.kind = W_DELETE, .table = r->table, .item = key};
    struct judged judged = judge(&d->o, &write);
    struct text json = {.arena = &d->o.arena};
    struct hf_delete_item_result result;

    text_add(&json, "{\"TableName\":\"%s\",\"Key\":%s}", r->table->name,
             item_text(&d->o.arena, key));
    drive_ok(d, "DeleteItem", json.ptr, &result);
    apply(&d->o, &write, &judged, d->t->wall_us);
}

/* Read page after page; `request` lacks its closing brace. */
static void read_pages(struct drive *d, const char *operation, const char *request,
                       const struct reading *r, int limit, bool one_row, struct pages *pages)
{
    struct hf_item last = {NULL, 0};

    for (int page = 0;; page++) {
        struct text json = {.arena = &d->o.arena};
        struct hf_query_result result; /* Scan's is alike */

        _Static_assert(sizeof(struct hf_scan_result) == sizeof(result), "alike");
        text_add(&json, "%s", request);
        if (limit)
            text_add(&json, ",\"Limit\":%d", limit);
        if (last.ptr)
            text_add(&json, ",\"ExclusiveStartKey\":%s", engine_item(d, last));
        text_add(&json, "}");
        drive_ok(d, operation, json.ptr, &result);
        pages->count += result.count;
        pages->scanned += result.scanned_count;
        expect_number(d, "number of items", r->counting ? 0 : result.count,
                      (int64_t)result.items_len);
        if (limit && result.scanned_count > limit)
            expect_number(d, "ScannedCount", limit, result.scanned_count);
        expect_number(d, "LastEvaluatedKey", limit && !one_row && result.scanned_count == limit,
                      result.last.ptr != NULL);
        for (size_t i = 0; i < result.items_len; i++)
            add_text(d, pages, engine_item(d, result.items[i]));
        if (!result.last.ptr || one_row)
            return;
        last = result.last;
        (void)at_cursor(d, r, last);
        if (pages->deleting && chance(d, 3))
            delete_at_cursor(d, r, last);
        if (page > PAGES_MAX)
            mismatch(d, "pages", "an end", "none");
    }
}

/* Equal sort keys may come in any order: compare group by group. */
static void expect_rows(struct drive *d, const struct rows *rows, const struct reading *r,
                        struct pages *pages)
{
    size_t at = 0;

    expect_number(d, "ScannedCount of all pages", (int64_t)rows->len, pages->scanned);
    expect_number(d, "Count of all pages", (int64_t)rows->shown, pages->count);
    if (r->counting)
        return;
    for (size_t i = 0; i < rows->len;) {
        const char **group = arena_alloc(&d->o.arena, (rows->len + 1) * sizeof(*group));
        const struct val *sort = rows->list[i].sort;
        size_t len = 0;

        for (; i < rows->len && (!sort || val_compare(sort, rows->list[i].sort) == 0); i++)
            if (rows->list[i].text)
                group[len++] = rows->list[i].text;
        if (len == 0)
            continue;
        qsort(group, len, sizeof(*group), by_text);
        qsort(pages->texts + at, len, sizeof(*group), by_text);
        for (size_t j = 0; j < len; j++)
            expect_text(d, "item of a page", group[j], pages->texts[at + j]);
        at += len;
    }
}

static void add_row(struct rows *rows, struct row row)
{
    rows->list[rows->len++] = row;
    rows->shown += row.text != NULL;
}

/* ---- Query ----------------------------------------------------------------------------------- */

enum range_op { R_NONE, R_EQ, R_LT, R_LE, R_GT, R_GE, R_BETWEEN, R_BEGINS };

struct key_cond {
    struct val *hash;
    enum range_op op;
    struct val *low, *high;
};

static struct key_cond gen_key_cond(struct drive *d, const struct key_part *hash,
                                    const struct key_part *range)
{
    struct key_cond key = {.hash = gen_scalar(&d->g, hash->type)};

    if (!range->name || chance(d, 3))
        return key;
    key.op = (enum range_op)rnd_below(&d->g.rnd, range->type == V_N ? R_BEGINS : R_BEGINS + 1);
    key.low = gen_scalar(&d->g, range->type);
    key.high = gen_scalar(&d->g, range->type);
    if (val_compare(key.low, key.high) > 0) {
        struct val *high = key.low;

        key.low = key.high;
        key.high = high;
    }
    return key;
}

static bool in_range(const struct key_cond *key, const struct val *sort)
{
    int order = key->op == R_NONE ? 0 : val_compare(sort, key->low);

    switch (key->op) {
    case R_NONE:
        return true;
    case R_EQ:
        return order == 0;
    case R_LT:
        return order < 0;
    case R_LE:
        return order <= 0;
    case R_GT:
        return order > 0;
    case R_GE:
        return order >= 0;
    case R_BETWEEN:
        return order >= 0 && val_compare(sort, key->high) <= 0;
    case R_BEGINS:
        return sort->len >= key->low->len &&
               memcmp(sort->bytes, key->low->bytes, key->low->len) == 0;
    }
    return false;
}

static void render_key_cond(struct render *r, struct text *out, const struct key_part *hash,
                            const struct key_part *range, const struct key_cond *key)
{
    static const char *const signs[] = {"", "=", "<", "<=", ">", ">="};
    static const char *const mirrored[] = {"", "=", ">", ">=", "<", "<="};
    bool range_first = key->op != R_NONE && rnd_one_in(r->rnd, 3);

    for (int part = 0; part < 2; part++) {
        if (part == 1 && key->op != R_NONE)
            text_add(out, " AND ");
        if ((part == 0) != range_first) {
            render_name(r, out, hash->name);
            text_add(out, " = ");
            render_value(r, out, key->hash);
        } else if (key->op == R_BEGINS) {
            text_add(out, "begins_with(");
            render_name(r, out, range->name);
            text_add(out, ", ");
            render_value(r, out, key->low);
            text_add(out, ")");
        } else if (key->op == R_BETWEEN) {
            render_name(r, out, range->name);
            text_add(out, " BETWEEN ");
            render_value(r, out, key->low);
            text_add(out, " AND ");
            render_value(r, out, key->high);
        } else if (key->op != R_NONE && rnd_one_in(r->rnd, 4)) {
            render_value(r, out, key->low);
            text_add(out, " %s ", mirrored[key->op]);
            render_name(r, out, range->name);
        } else if (key->op != R_NONE) {
            render_name(r, out, range->name);
            text_add(out, " %s ", signs[key->op]);
            render_value(r, out, key->low);
        }
    }
}

static int by_sort(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->sort ? val_compare(x->sort, y->sort) : 0;
}

static int by_sort_down(const void *a, const void *b)
{
    return by_sort(b, a);
}

void do_query(struct drive *d)
{
    struct reading r = gen_reading(d, true);
    const struct key_part *hash = r.index ? &r.index->hash : &r.table->hash;
    const struct key_part *range = r.index ? &r.index->range : &r.table->range;
    struct key_cond key = gen_key_cond(d, hash, range);
    bool down = chance(d, 2);
    int limit = chance(d, 2) ? 1 + rnd_below(&d->g.rnd, 4) : 0;
    bool one_row = !r.index && !range->name;
    struct text json = {.arena = &d->o.arena};
    struct text text = {.arena = &d->o.arena};
    struct rows rows = {.list = arena_alloc(&d->o.arena, (r.table->len + 1) * sizeof(struct row))};
    struct pages pages = {.deleting = chance(d, 4)};
    struct pages back = {.texts = NULL};
    struct render render;

    render_begin(&render, &d->o.arena, &d->g.rnd);
    render_key_cond(&render, &text, hash, range, &key);
    text_add(&json, "{\"TableName\":\"%s\",\"KeyConditionExpression\":\"%s\"", r.table->name,
             text.ptr);
    put_reading(d, &json, &r, &render);
    render_end(&render, &json);
    for (size_t i = 0; i < r.table->len; i++) {
        struct val *item = r.table->items[i];

        if ((!r.index || index_has(r.index, item)) &&
            val_equal(map_get(item, hash->name), key.hash) &&
            (!range->name || in_range(&key, map_get(item, range->name))))
            add_row(&rows, row_of(d, &r, item));
    }
    qsort(rows.list, rows.len, sizeof(*rows.list), down ? by_sort_down : by_sort);

    text = (struct text){.arena = &d->o.arena};
    text_add(&text, "%s,\"ScanIndexForward\":%s", json.ptr, down ? "false" : "true");
    read_pages(d, "Query", text.ptr, &r, limit, one_row, &pages);
    if (!pages.deleting &&
        chance(d, 3)) { /* the other way round is the exact reverse, ties included */
        text = (struct text){.arena = &d->o.arena};
        text_add(&text, "%s,\"ScanIndexForward\":%s", json.ptr, down ? "true" : "false");
        read_pages(d, "Query", text.ptr, &r, 0, one_row, &back);
        expect_number(d, "items in reverse", (int64_t)pages.len, (int64_t)back.len);
        for (size_t i = 0; i < back.len; i++)
            expect_text(d, "item in reverse", pages.texts[i], back.texts[back.len - 1 - i]);
    }
    expect_rows(d, &rows, &r, &pages);
}

/* ---- Scan ------------------------------------------------------------------------------------ */

static void scan(struct drive *d, const struct reading *reading, int segments, int limit,
                 bool deleting)
{
    struct reading r = *reading;
    struct rows rows = {.list = arena_alloc(&d->o.arena, (r.table->len + 1) * sizeof(struct row))};
    struct pages pages = {.deleting = deleting};
    struct text json = {.arena = &d->o.arena};
    struct render render;

    render_begin(&render, &d->o.arena, &d->g.rnd);
    text_add(&json, "{\"TableName\":\"%s\"", r.table->name);
    put_reading(d, &json, &r, &render);
    render_end(&render, &json);
    for (size_t i = 0; i < r.table->len; i++)
        if (!r.index || index_has(r.index, r.table->items[i])) {
            struct row row = row_of(d, &r, r.table->items[i]);

            row.sort = NULL; /* partitions come in any order */
            add_row(&rows, row);
        }
    for (int segment = 0; segment < segments; segment++) {
        struct text one = {.arena = &d->o.arena};

        text_add(&one, "%s", json.ptr);
        if (segments > 1)
            text_add(&one, ",\"Segment\":%d,\"TotalSegments\":%d", segment, segments);
        read_pages(d, "Scan", one.ptr, &r, limit, false, &pages);
    }
    expect_rows(d, &rows, &r, &pages);
}

void do_scan(struct drive *d)
{
    struct reading r = gen_reading(d, false);

    scan(d, &r, 1 + rnd_below(&d->g.rnd, 4), chance(d, 2) ? 1 + rnd_below(&d->g.rnd, 6) : 0,
         chance(d, 4));
}

/* ---- everything ------------------------------------------------------------------------------ */

static void compare_counts(struct drive *d, struct otable *table)
{
    struct text json = {.arena = &d->o.arena};
    struct hf_describe_table_result result;
    size_t bytes = 0;

    text_add(&json, "{\"TableName\":\"%s\"}", table->name);
    drive_ok(d, "DescribeTable", json.ptr, &result);
    for (size_t i = 0; i < table->len; i++)
        bytes += item_size(table->items[i]);
    expect_number(d, "ItemCount", (int64_t)table->len, result.table->item_count);
    expect_number(d, "TableSizeBytes", (int64_t)bytes, result.table->size_bytes);
    for (int i = 0; i < table->indexes_len; i++) {
        const struct oindex *index = &table->indexes[i];
        const struct hf_index_description *found = NULL;
        size_t items = 0;

        for (size_t j = 0; j < result.table->local_indexes_len; j++)
            if (hf_str_equal(result.table->local_indexes[j].name, hf_str_from(index->name)))
                found = &result.table->local_indexes[j];
        for (size_t j = 0; j < result.table->global_indexes_len; j++)
            if (hf_str_equal(result.table->global_indexes[j].name, hf_str_from(index->name)))
                found = &result.table->global_indexes[j];
        if (!found)
            mismatch(d, "index", index->name, "none");
        if (index->building)
            continue;
        bytes = 0;
        for (size_t j = 0; j < table->len; j++)
            if (index_has(index, table->items[j])) {
                items++;
                bytes += item_size(index_entry(&d->o, table, index, table->items[j]));
            }
        expect_number(d, "ItemCount of an index", (int64_t)items, found->item_count);
        expect_number(d, "IndexSizeBytes", (int64_t)bytes, found->size_bytes);
    }
}

void compare_tables(struct drive *d)
{
    for (int t = 0; t < d->o.tables_len; t++) {
        struct reading r = {.table = &d->o.tables[t]};

        compare_counts(d, r.table);
        scan(d, &r, 1, 0, false);
        for (int i = 0; i < r.table->indexes_len; i++) {
            r.index = &r.table->indexes[i];
            if (!r.index->building)
                scan(d, &r, 1, 0, false);
        }
    }
}
