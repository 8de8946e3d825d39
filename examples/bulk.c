/*
 * examples/bulk.c: a table that is created if missing, a thousand writes, and all of them read
 * again; and the capacity that this consumed.
 *
 *     cc bulk.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/batch.h>
#include <holdfast/engine.h>
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include <stdio.h>

enum { USERS = 1000 };

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

int main(void)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_N};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table users = {.attributes = &attribute,
                                    .attributes_len = 1,
                                    .key_schema = &key,
                                    .key_schema_len = 1};
    struct hf_scope *s = hf_scope_new(NULL);
    static struct hf_write writes[USERS];
    struct hf_write_many_result result;
    struct hf_scan all = {.limit = 100};
    struct hf_pages *pages;
    struct hf_item item;
    struct hf_db *db;
    int count = 0;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    hf_scope_count_capacity(s, true);
    if (hf_table_name(s, HF_STR("test"), HF_STR("users"), &users.table) != HF_OK ||
        hf_table_ensure(s, db, &users,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = HF_STR("expires"))) != HF_OK)
        return complain(s);

    for (int i = 0; i < USERS; i++)
        writes[i] = (struct hf_write){.table = users.table,
                                      .put = HF_ITEM(s, HF_N("id", i), HF_N("age", i % 90))};
    if (hf_write_many(s, db, writes, USERS, NULL, &result) != HF_OK) {
        for (size_t i = 0; i < result.left_len; i++)
            fprintf(stderr, "not written: %zu\n", result.left[i]);
        return complain(s);
    }

    all.table = users.table;
    if (hf_pages_scan(s, db, &all, NULL, &pages) != HF_OK)
        return complain(s);
    for (;; count++) {
        if (hf_pages_next_item(s, pages, &item) != HF_OK)
            return complain(s);
        if (!item.ptr)
            break;
    }
    hf_pages_free(pages);
    printf("%d users in %.*s; %.0f write units, %.0f read units\n", count, HF_FMT(users.table),
           hf_scope_capacity(s).write_units, hf_scope_capacity(s).read_units);

    hf_db_close(db);
    hf_scope_free(s);
    return count == USERS ? 0 : 1;
}
