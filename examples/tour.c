/*
 * examples/tour.c: a database in your process: a table, a write, a query, a transaction.
 *
 *     cc tour.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str table = HF_STR("orders");
    struct hf_query_result page;
    struct hf_db *db;

    if (hf_open(s, HF_STR("embedded:tour.db"), NULL, &db) != HF_OK)
        return complain(s);

    const struct hf_attribute_definition attributes[] = {{HF_STR("customer"), HF_SCALAR_S},
                                                         {HF_STR("day"), HF_SCALAR_N}};
    const struct hf_key_element key[] = {{HF_STR("customer"), HF_KEY_HASH},
                                         {HF_STR("day"), HF_KEY_RANGE}};
    const struct hf_create_table create = {.table = table,
                                           .attributes = attributes,
                                           .attributes_len = 2,
                                           .key_schema = key,
                                           .key_schema_len = 2,
                                           .billing = HF_BILLING_PAY_PER_REQUEST};
    if (hf_create_table(s, db, &create, NULL) != HF_OK && hf_scope_error(s)->status != HF_IN_USE)
        return complain(s);

    for (int day = 1; day <= 3; day++) {
        const struct hf_put_item put = {.table = table,
                                        .item = HF_ITEM(s, HF_S("customer", HF_STR("ann")),
                                                        HF_N("day", day), HF_N("pieces", 1))};

        if (hf_put_item(s, db, &put, NULL) != HF_OK)
            return complain(s);
    }

    /* Both happen, or neither. */
    const struct hf_transact_write actions[] = {
        {.update = &(struct hf_update_item){.table = table,
                                            .key = HF_ITEM(s, HF_S("customer", HF_STR("ann")),
                                                           HF_N("day", 2)),
                                            .update = HF_STR("ADD pieces :more"),
                                            .condition = HF_STR("attribute_exists(customer)"),
                                            .values = HF_ITEM(s, HF_N(":more", 4))}},
        {.del = &(struct hf_delete_item){
             .table = table, .key = HF_ITEM(s, HF_S("customer", HF_STR("ann")), HF_N("day", 3))}}};
    const struct hf_transact_write_items both = {.actions = actions, .actions_len = 2};
    if (hf_transact_write_items(s, db, &both, NULL) != HF_OK)
        return complain(s);

    const struct hf_query query = {.table = table,
                                   .key_condition = HF_STR("customer = :c AND #day >= :from"),
                                   .names = HF_ITEM(s, HF_S("#day", HF_STR("day"))),
                                   .values =
                                       HF_ITEM(s, HF_S(":c", HF_STR("ann")), HF_N(":from", 1)),
                                   .forward = HF_NO};
    if (hf_query(s, db, &query, &page) != HF_OK)
        return complain(s);
    for (size_t i = 0; i < page.items_len; i++)
        printf("%s\n", hf_item_to_json(s, page.items[i]).ptr);

    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}
