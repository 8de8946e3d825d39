/*
 * examples/once.c: a welcome mail that is sent once, however often it is requested; an order that
 * is refused when its number comes again with other contents; and a payment that is written
 * together with the record that it was made.
 *
 *     cc once.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/once.h>
#include <holdfast/table.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

static enum hf_status send_mail(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                void *user)
{
    int *mails = user;

    printf("attempt %llu sends mail %d\n", (unsigned long long)hf_once_tries(once), ++*mails);
    *result = HF_ITEM(s, HF_N("mail", *mails));
    return HF_OK;
}

/* The row of the payment and the record of "pay/7" are written together, or neither is. */
static enum hf_status pay(struct hf_scope *s, struct hf_once_table *onces, bool *did)
{
    struct hf_put_item row = {.table = HF_STR("payments"),
                              .item = HF_ITEM(s, HF_N("id", 7), HF_N("euros", 10)),
                              .condition = HF_STR("attribute_not_exists(id)")};
    struct hf_transact_write action = {.put = &row};
    struct hf_once_record record;
    enum hf_status status =
        hf_once_transact(s, onces, HF_STR("ann"), HF_STR("pay/7"), NULL,
                         HF_ITEM(s, HF_S("receipt", HF_STR("R-7"))), &action, 1, &record);

    *did = record.did;
    return status;
}

int main(void)
{
    const struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_N};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table payments = {.table = HF_STR("payments"),
                                       .attributes = &id,
                                       .attributes_len = 1,
                                       .key_schema = &key,
                                       .key_schema_len = 1};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_once_table *onces;
    struct hf_once_record record;
    struct hf_once *once;
    struct hf_db *db;
    bool first, second;
    int mails = 0;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    if (hf_once_table_open(s, db, NULL, &onces) != HF_OK ||
        hf_table_ensure(s, db, &payments, NULL) != HF_OK)
        return complain(s);

    for (int i = 0; i < 3; i++) {
        hf_scope_timeout_ms(s, 30000);
        if (hf_once_do(s, onces, HF_STR("ann"), HF_STR("welcome"), NULL, send_mail, &mails,
                       &record) != HF_OK)
            return complain(s);
        printf("%s\n", record.did ? "sent" : "was sent before");
    }

    if (hf_once_begin(s, onces, HF_STR("ann"), HF_STR("order/1"),
                      HF_OPTIONS(hf_once_options, .payload = hf_bytes_of("two shoes", 9)), &once,
                      &record) != HF_OK ||
        hf_once_finish(s, once, HF_ITEM(s, HF_S("order", HF_STR("accepted")))) != HF_OK)
        return complain(s);
    hf_once_close(once);
    if (hf_once_begin(s, onces, HF_STR("ann"), HF_STR("order/1"),
                      HF_OPTIONS(hf_once_options, .payload = hf_bytes_of("two hats", 8)), &once,
                      &record) != HF_TOKEN_MISMATCH)
        return 1;
    printf("%s\n", hf_scope_error_text(s));

    if (pay(s, onces, &first) != HF_OK || pay(s, onces, &second) != HF_OK)
        return complain(s);
    printf("paid %d time\n", first + second);

    hf_once_table_close(onces);
    hf_db_close(db);
    hf_scope_free(s);
    return mails == 1 && first && !second ? 0 : 1;
}
