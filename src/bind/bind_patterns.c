/*
 * bind/bind_patterns.c: which tables are whose: every table of the database that has a mark
 * (docs/tables.md), with the patterns that it says keep something there.
 *
 *     the common mark      "holdfast:table" in each key attribute; `holdfast` M, a format for each
 *     outbox, event store  keys "c", "config"; `kind` and `format`
 *     records              keys "holdfast:records", "shards"; `Kind` and `Format`
 *
 * Of each table two or three items are read, and nothing is written.
 */
#include <holdfast/pages.h>

#include "bind/table.h"

#define MARK HF_STR("holdfast:table")

struct pattern_kind_row {
    struct hf_str kind;
    int64_t format;
};
struct pattern_table {
    struct hf_str table;
    struct pattern_kind_row *kinds;
    size_t kinds_len;
    int64_t items, bytes; /* as the database estimates them */
};
struct patterns_result {
    struct pattern_table *tables;
    size_t tables_len;
};

NO_ARGUMENTS(patterns_list);
#define T pattern_kind_row
PART(pattern_kind_part, TEXT("kind", kind), I64("format", format));
#undef T
#define T pattern_table
PART(pattern_table_part, TEXT("table", table), STRUCTS("kinds", kinds, pattern_kind_part),
     I64("items", items), I64("bytes", bytes));
#undef T
#define T patterns_result
RESULT(patterns_list, STRUCTS("tables", tables, pattern_table_part));
#undef T

enum { KINDS_MAX = 16 };

static void add_kind(struct pattern_table *row, struct hf_str kind, struct hf_value format)
{
    struct pattern_kind_row *to = &row->kinds[row->kinds_len];

    if (!kind.len || row->kinds_len == KINDS_MAX || !hf_value_i64(format, &to->format))
        return;
    to->kind = kind;
    row->kinds_len++;
}

/* The names of the key attributes; false when one is not a text, so that no mark can be there. */
static bool key_names(const struct hf_table_description *table, struct hf_str names[2])
{
    for (size_t i = 0; i < table->attributes_len; i++)
        if (table->attributes[i].type != HF_SCALAR_S)
            for (size_t k = 0; k < table->key_schema_len; k++)
                if (hf_str_equal(table->attributes[i].name, table->key_schema[k].name))
                    return false;
    for (size_t k = 0; k < table->key_schema_len && k < 2; k++)
        names[table->key_schema[k].type == HF_KEY_HASH ? 0 : 1] = table->key_schema[k].name;
    return names[0].ptr != NULL;
}

static enum hf_status read_mark(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                const struct hf_str names[2], struct hf_str hash,
                                struct hf_str range, struct hf_item *item)
{
    struct hf_attr key[2] = {hf_attr_of_str(names[0], hash), hf_attr_of_str(names[1], range)};
    struct hf_get_item get = {.table = table,
                              .key = hf_item_make(s, key, names[1].ptr ? 2 : 1),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    TRY(hf_get_item(s, db, &get, &got));
    *item = got.item;
    return HF_OK;
}

static enum hf_status read_marks(struct hf_scope *s, struct hf_db *db, const struct hf_str names[2],
                                 struct pattern_table *row)
{
    struct hf_item_walk walk = {0};
    struct hf_item mark;

    TRY(read_mark(s, db, row->table, names, MARK, MARK, &mark));
    while (hf_item_next(hf_value_item(hf_item_get(mark, HF_STR("holdfast"))), &walk))
        if (!memchr(walk.name.ptr, '.', walk.name.len)) /* of settings of a pattern */
            add_kind(row, walk.name, walk.value);
    if (!names[1].ptr)
        return HF_OK;
    TRY(read_mark(s, db, row->table, names, HF_STR("c"), HF_STR("config"), &mark));
    add_kind(row, hf_value_str(hf_item_get(mark, HF_STR("kind"))),
             hf_item_get(mark, HF_STR("format")));
    TRY(read_mark(s, db, row->table, names, HF_STR("holdfast:records"), HF_STR("shards"), &mark));
    add_kind(row, hf_value_str(hf_item_get(mark, HF_STR("Kind"))),
             hf_item_get(mark, HF_STR("Format")));
    return HF_OK;
}

/* A table that goes away meanwhile is none. */
static enum hf_status look_at_table(struct hf_scope *s, struct hf_db *db, struct pattern_table *row)
{
    struct hf_describe_table_result described;
    struct hf_str names[2] = {{0}, {0}};
    enum hf_status status;

    row->kinds = hf__scope_array(s, KINDS_MAX + 1, sizeof(*row->kinds));
    if (!row->kinds)
        return hf__fail_nomem(s);
    status = hf_describe_table(s, db, &(struct hf_describe_table){.table = row->table}, &described);
    if (status == HF_OK && described.table->status == HF_TABLE_ACTIVE &&
        key_names(described.table, names)) {
        row->items = described.table->item_count;
        row->bytes = described.table->size_bytes;
        status = read_marks(s, db, names, row);
    }
    return status == HF_NOT_FOUND ? hf_scope_ok(s) : status;
}

static enum hf_status add_table(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct patterns_result *result, size_t *cap)
{
    struct pattern_table row = {.table = hf_scope_copy(s, table)};

    TRY(hf_scope_built(s));
    TRY(look_at_table(s, db, &row));
    if (!row.kinds_len)
        return HF_OK;
    TRY(hf__bind_grow(s, (void **)&result->tables, result->tables_len, cap, sizeof(row)));
    result->tables[result->tables_len++] = row;
    return HF_OK;
}

static enum hf_status walk_tables(struct hf_scope *s, struct hf_db *db, struct hf_pages *pages,
                                  struct patterns_result *result)
{
    struct hf_str table;
    size_t cap = 0;

    for (;;) {
        TRY(hf_pages_next_table(s, pages, &table));
        if (!table.ptr)
            return HF_OK;
        TRY(add_table(s, db, table, result, &cap));
    }
}

BIND_FUNCTION(patterns_list)
{
    struct hf_db *db = hf__bind_db(bind);
    struct hf_pages *pages;
    enum hf_status status;

    (void)args_in;
    TRY(hf_pages_list_tables(s, db, &(struct hf_list_tables){.limit = 100}, NULL, &pages));
    status = walk_tables(s, db, pages, result_out);
    hf_pages_free(pages);
    return status;
}
