/*
 * examples/copy.c: a shop moves to another database while it is open: copy, follow, cut over.
 *
 *     cc copy.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/copy.h>
#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

static enum hf_status set_state(struct hf_scope *s, struct hf_db *db, const char *order,
                                const char *state)
{
    struct hf_put_item put = {.table = HF_STR("orders"),
                              .item = HF_ITEM(s, HF_S("id", hf_str_from(order)),
                                              HF_S("state", hf_str_from(state)))};

    return hf_put_item(s, db, &put, NULL);
}

/* The shop sells all the time: one order before the copy, one while it follows. */
static enum hf_status move(struct hf_scope *s, struct hf_db *shop, struct hf_db *target)
{
    struct hf_copy_options *options =
        HF_OPTIONS(hf_copy_options, .follow = true, .target_name = HF_STR("the new database"));
    struct hf_copy_cutover_options *now = HF_OPTIONS(hf_copy_cutover_options, .settle_ms = 1);
    struct hf_copy_result result;
    struct hf_copy *copy;
    enum hf_status status;

    status = hf_copy_open(s, shop, target, options, &copy);
    if (status == HF_OK)
        status = hf_copy_run(s, copy); /* tables and items */
    if (status == HF_OK)
        status = set_state(s, shop, "7", "paid");
    if (status == HF_OK)
        status = hf_copy_follow(s, copy, true); /* a service does that until it is told to stop */
    if (status == HF_OK)
        status = hf_copy_cutover(s, copy, now, &result);
    if (status == HF_OK)
        printf("%llu of %llu orders are there\n", (unsigned long long)result.target_items,
               (unsigned long long)result.source_items);
    hf_copy_close(copy);
    return status;
}

int main(void)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_create_table orders = {.table = HF_STR("orders"),
                                           .attributes = &attribute,
                                           .attributes_len = 1,
                                           .key_schema = &key,
                                           .key_schema_len = 1};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *shop, *target;

    /* Once the data has moved, writes to the source are refused. The target may be any URL. */
    if (hf_open(s, HF_STR("embedded:old.db"), NULL, &shop) != HF_OK ||
        hf_open(s, HF_STR("embedded:new.db"), NULL, &target) != HF_OK ||
        hf_table_ensure(s, shop, &orders, NULL) != HF_OK ||
        set_state(s, shop, "7", "placed") != HF_OK || set_state(s, shop, "8", "placed") != HF_OK ||
        move(s, shop, target) != HF_OK)
        return complain(s);

    if (set_state(s, shop, "8", "paid") != HF_DENIED)
        return 1;
    printf("%s\n", hf_scope_error_text(s));
    if (set_state(s, target, "8", "paid") != HF_OK)
        return complain(s);
    hf_db_close(target);
    hf_db_close(shop);
    hf_scope_free(s);
    return 0;
}
