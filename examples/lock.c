/*
 * examples/lock.c: two workers, one invoice: a lock, its fence, and what the fence is for.
 *
 *     cc lock.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/lock.h>
#include <holdfast/table.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* Write the invoice, unless somebody with a higher fence has written it already. */
static enum hf_status write_invoice(struct hf_scope *s, struct hf_db *db, struct hf_lock *lock,
                                    const char *who)
{
    struct hf_put_item put = {.table = HF_STR("invoices"),
                              .item = HF_ITEM(s, HF_S("id", HF_STR("7")),
                                              HF_S("written_by", hf_str_from(who)))};
    enum hf_status status = hf_lock_guard_put(s, lock, HF_STR("fence"), &put);

    if (status == HF_OK)
        status = hf_put_item(s, db, &put, NULL);
    printf("%s writes the invoice: %s\n", who,
           status == HF_OK ? "done" : "refused, it is too late");
    return status;
}

int main(void)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_create_table invoices = {.table = HF_STR("invoices"),
                                             .attributes = &attribute,
                                             .attributes_len = 1,
                                             .key_schema = &key,
                                             .key_schema_len = 1};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_lock_table *ann, *ben;
    struct hf_lock *first, *second;
    struct hf_db *db;

    /* The same with "http://127.0.0.1:8000" or "dynamodb://eu-central-1". */
    if (hf_open(s, HF_STR("embedded:lock.db"), NULL, &db) != HF_OK ||
        hf_table_ensure(s, db, &invoices, NULL) != HF_OK)
        return complain(s);

    /* Each worker has its own table of locks; usually that is one for a process. Ann's heartbeats
     * are left out here, as if her process had been stopped. */
    if (hf_lock_table_open(s, db, HF_OPTIONS(hf_lock_table_options, .owner = HF_STR("ann")),
                           &ann) != HF_OK ||
        hf_lock_table_open(s, db, HF_OPTIONS(hf_lock_table_options, .owner = HF_STR("ben")),
                           &ben) != HF_OK)
        return complain(s);
    if (hf_lock_acquire(s, ann, HF_STR("invoice/7"),
                        HF_OPTIONS(hf_lock_options, .lease_ms = 500, .no_heartbeats = true),
                        &first) != HF_OK)
        return complain(s);
    printf("ann has the lock\n");

    if (hf_lock_try(s, ben, HF_STR("invoice/7"), NULL, &second) == HF_LOCKED)
        printf("ben: %s\n", hf_scope_error_text(s));

    hf_scope_timeout_ms(s, 10000);
    if (hf_lock_acquire(s, ben, HF_STR("invoice/7"), NULL, &second) != HF_OK)
        return complain(s);
    hf_scope_timeout_ms(s, 0);
    printf("ben has it now, and his fence is %s\n",
           hf_lock_fence(second) > hf_lock_fence(first) ? "higher" : "lower");

    if (write_invoice(s, db, second, "ben") != HF_OK)
        return complain(s);
    if (write_invoice(s, db, first, "ann") != HF_CONDITION)
        return 1;

    if (hf_lock_release(s, first) == HF_LOST)
        printf("ann: %s\n", hf_scope_error_text(s));
    if (hf_lock_release(s, second) != HF_OK)
        return complain(s);
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}
