/*
 * examples/outbox.c: orders are stored together with their events. A worker claims the events and
 * delivers them. One cannot be delivered, becomes a dead letter, and is retried by hand.
 *
 *     cc outbox.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/outbox.h>
#include <holdfast/table.h>
#include <holdfast/tx.h>

#include <stdio.h>

enum { ORDERS = 5 };

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* ---- who emits ------------------------------------------------------------------------------ */

struct order {
    struct hf_outbox *outbox;
    int number;
};

/* The order and its event: both or neither. */
static enum hf_status place_order(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    const struct order *order = user;
    struct hf_str id = hf_scope_format(s, "order-%d", order->number);
    struct hf_str json = hf_scope_format(s, "{\"total\": %d}", 100 * order->number);
    struct hf_put_item put = {.table = HF_STR("orders"), .item = HF_ITEM(s, HF_S("id", id))};
    struct hf_event event = {.type = HF_STR("order.placed"),
                             .aggregate = id, /* events of one order are in order */
                             .payload = hf_bytes_of(json.ptr, json.len),
                             .headers = HF_ITEM(s, HF_S("channel", HF_STR("shop")))};
    enum hf_status status = hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put});

    return status == HF_OK ? hf_outbox_emit_into(s, order->outbox, tx, &event, 1, NULL) : status;
}

static int place_orders(struct hf_scope *s, struct hf_db *db, struct hf_outbox *outbox)
{
    const struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_create_table orders = {.table = HF_STR("orders"),
                                           .attributes = &id,
                                           .attributes_len = 1,
                                           .key_schema = &key,
                                           .key_schema_len = 1};

    if (hf_table_ensure(s, db, &orders, NULL) != HF_OK)
        return complain(s);
    for (int i = 1; i <= ORDERS; i++) {
        struct order order = {.outbox = outbox, .number = i};

        if (hf_tx_run(s, db, place_order, &order, NULL) != HF_OK)
            return complain(s);
    }
    return 0;
}

/* ---- who delivers --------------------------------------------------------------------------- */

/* A mailer that does not know the third customer at first. */
static enum hf_status send_mail(struct hf_scope *s, const struct hf_event *event, bool knows_all)
{
    if (!knows_all && hf_str_equal(event->aggregate, HF_STR("order-3")))
        return hf_scope_fail(s, HF_INVALID, "there is no address for %.*s",
                             HF_FMT(event->aggregate));
    printf("mail: %.*s %.*s %.*s\n", HF_FMT(event->type), HF_FMT(event->aggregate),
           (int)event->payload.len, (const char *)event->payload.ptr);
    return HF_OK;
}

/* Deliver what is due; returns how many were, or -1. */
static int deliver(struct hf_scope *s, struct hf_outbox *outbox, bool knows_all)
{
    struct hf_claim_list claims;
    int delivered = 0;

    do {
        if (hf_outbox_claim(s, outbox, NULL, &claims) != HF_OK)
            return -1;
        for (size_t i = 0; i < claims.events_len; i++) {
            const struct hf_claimed_event *event = &claims.events[i];
            enum hf_status status = send_mail(s, &event->event.event, knows_all);

            if (status == HF_OK && hf_outbox_published(s, outbox, event) == HF_OK)
                delivered++;
            else if (status != HF_OK && /* a retry would not help: for good */
                     hf_outbox_fail(s, outbox, event, hf_scope_error(s), true, NULL) != HF_OK)
                return -1;
        }
    } while (claims.events_len);
    return delivered;
}

/* ---- who looks after it --------------------------------------------------------------------- */

static int run(struct hf_scope *s, struct hf_db *db, struct hf_outbox *outbox)
{
    struct hf_outbox_stats stats;
    struct hf_event_list failed;
    uint64_t retried;

    if (place_orders(s, db, outbox) != 0)
        return 1;
    if (deliver(s, outbox, false) != ORDERS - 1)
        return complain(s);
    if (hf_outbox_failed(s, outbox, NULL, &failed) != HF_OK ||
        hf_outbox_stats(s, outbox, 0, &stats) != HF_OK)
        return complain(s);
    for (size_t i = 0; i < failed.events_len; i++)
        printf("failed: %.*s: %.*s\n", HF_FMT(failed.events[i].event.id),
               HF_FMT(failed.events[i].error_text));
    printf("%llu published, %llu failed, mostly by \"%.*s\"\n", (unsigned long long)stats.published,
           (unsigned long long)stats.failed, stats.causes_len ? (int)stats.causes[0].cause.len : 0,
           stats.causes_len ? stats.causes[0].cause.ptr : "");
    if (hf_outbox_retry_all(s, outbox, NULL, &retried) != HF_OK)
        return complain(s);
    return failed.events_len == 1 && retried == 1 && deliver(s, outbox, true) == 1 ? 0 : 1;
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_outbox *outbox;
    struct hf_db *db;
    int failed;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    if (hf_outbox_open(s, db,
                       HF_OPTIONS(hf_outbox_options, .source = HF_STR("shop"),
                                  .history_s = HF_OUTBOX_HISTORY_S),
                       &outbox) != HF_OK)
        return complain(s);
    failed = run(s, db, outbox);
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
    return failed;
}
