/*
 * examples/counter.c: visits that are counted once although answers are lost, stock that is not
 * sold twice, a hot counter in shards, and invoices whose numbers have no gaps.
 *
 *     cc counter.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/counter.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* An invoice for `user`, under the number that it is given. */
static enum hf_status write_invoice(struct hf_scope *s, int64_t number,
                                    struct hf_transact_write *actions, size_t cap, size_t *len,
                                    void *user)
{
    struct hf_put_item *put = hf_scope_alloc(s, sizeof(*put));

    if (!put || cap < 1)
        return HF_NOMEM;
    *put = (struct hf_put_item){
        .table = HF_STR("keys"),
        .item = HF_ITEM(s, HF_S("key", hf_scope_format(s, "invoice/%lld", (long long)number)),
                        HF_S("for", hf_str_from(user))),
        .condition = HF_STR("attribute_not_exists(#key)"),
        .names = HF_ITEM(s, HF_S("#key", HF_STR("key")))};
    actions[0].put = put;
    *len = 1;
    return HF_OK;
}

int main(void)
{
    struct hf_counter_key visits = hf_counter_named(HF_STR("visits"));
    struct hf_counter_key stock = hf_counter_named(HF_STR("stock/lamp"));
    struct hf_counter_key clicks = hf_counter_named(HF_STR("clicks"));
    struct hf_fault lossy = {.kind = HF_FAULT_LOST_ANSWER, .probability = 0.3};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_counters *counters, *hot;
    struct hf_sequence *invoices;
    struct hf_db *inner, *db;
    char customer[] = "ann";
    int64_t value;
    bool again;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &inner) != HF_OK)
        return 1;
    if (hf_faulty_open(s, inner, &db) != HF_OK ||
        hf_counters_open(s, db, NULL, &counters) != HF_OK ||
        hf_counters_open(s, db, HF_OPTIONS(hf_counters_options, .shards = 8), &hot) != HF_OK)
        return complain(s);

    /* Three of ten answers are lost, and the count is still exact. */
    if (hf_faulty_set(s, db, &lossy, 1) != HF_OK)
        return complain(s);
    for (int i = 0; i < 20; i++)
        if (hf_counter_incr(s, counters, visits, 1, &value) != HF_OK)
            return complain(s);
    printf("%lld visits\n", (long long)value);
    if (value != 20 || hf_faulty_set(s, db, NULL, 0) != HF_OK)
        return 1;

    /* A message that is delivered twice counts once. */
    for (int i = 0; i < 2; i++)
        if (hf_counter_add_once(s, counters, stock, HF_STR("delivery-17"), 5, NULL, &value,
                                &again) != HF_OK)
            return complain(s);
    printf("%lld lamps%s\n", (long long)value, again ? ", and the same delivery again" : "");

    /* Six customers, five lamps. */
    for (int i = 0; i < 6; i++) {
        enum hf_status status =
            hf_counter_add(s, counters, stock, -1, HF_OPTIONS(hf_counter_options, .floor = HF_ZERO),
                           &value);

        if (status != (i < 5 ? HF_OK : HF_LIMIT))
            return complain(s);
    }
    printf("%s\n", hf_scope_error_text(s));

    /* Spread over eight items; the sum is read from all of them. */
    for (int i = 0; i < 100; i++)
        if (hf_counter_incr(s, hot, clicks, 1, NULL) != HF_OK)
            return complain(s);
    if (hf_counter_get(s, hot, clicks, &value) != HF_OK)
        return complain(s);
    printf("%lld clicks\n", (long long)value);
    if (value != 100)
        return 1;

    /* The transaction that writes the invoice also takes its number. */
    if (hf_sequence_open(s, counters, hf_counter_named(HF_STR("invoice")), NULL, &invoices) !=
        HF_OK)
        return complain(s);
    for (int i = 1; i <= 3; i++)
        if (hf_sequence_commit(s, invoices, 1, write_invoice, customer, &value) != HF_OK ||
            value != i)
            return complain(s);
    printf("invoice %lld\n", (long long)value);

    if (hf_sequence_close(s, invoices) != HF_OK)
        return complain(s);
    hf_counters_close(hot);
    hf_counters_close(counters);
    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}
