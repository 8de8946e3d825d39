/*
 * examples/bus.c: an order and its event are stored together. A handler sends a mail, fails at
 * first, and is retried; the events that it emits have the order's event as their cause. An event
 * without a handler becomes a dead letter, and is delivered once there is a handler.
 *
 *     cc bus.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/bus.h>
#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <stdio.h>

enum { PATIENCE_MS = 50000 };

struct shop {
    struct hf_db *db;
    struct hf_bus *bus;
    int mails;
};

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* Middleware: adds to every event who emits it. */
static enum hf_status sign(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    hf_bus_call_event(call)->headers = HF_ITEM(s, HF_S("signed", hf_str_from(user)));
    return hf_bus_next(s, call);
}

/* On a thread of the bus, at least once for each order. */
static enum hf_status mail(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct shop *shop = user;
    struct hf_event sent = {.type = HF_STR("mail.sent"), .key = event->key};

    if (++shop->mails == 1)
        return hf_scope_fail(s, HF_IO, "the mail server is tired");
    printf("mail for order %.*s, signed by %.*s\n", HF_FMT(event->key),
           HF_FMT(hf_value_str(hf_item_get(event->headers, HF_STR("signed")))));
    return hf_bus_emit(s, shop->bus, &sent, 1);
}

static enum hf_status count(struct hf_scope *s, const struct hf_event *event, void *user)
{
    (void)s;
    (void)user;
    printf("counted %.*s\n", HF_FMT(event->type));
    return HF_OK;
}

static void on_error(const struct hf_outbox_event *event, const struct hf_error *error,
                     enum hf_relay_outcome outcome, void *user)
{
    (void)user;
    if (event)
        printf("%.*s %s: %.*s\n", HF_FMT(event->event.type),
               outcome == HF_RELAY_GIVEN_UP ? "is a dead letter" : "will be retried",
               HF_FMT(error->message));
}

/* The order and its event, or neither: both are in the transaction. */
static enum hf_status place(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct shop *shop = user;
    struct hf_put_item order = {.table = HF_STR("orders"),
                                .item = HF_ITEM(s, HF_S("id", HF_STR("7")), HF_N("euros", 10)),
                                .condition = HF_STR("attribute_not_exists(id)")};
    struct hf_event placed = {.type = HF_STR("order.placed"), .key = HF_STR("7")};
    enum hf_status status = hf_tx_add(s, tx, &(struct hf_transact_write){.put = &order});

    return status == HF_OK ? hf_bus_emit_into(s, shop->bus, tx, &placed, 1) : status;
}

static enum hf_status open_shop(struct hf_scope *s, struct shop *shop, struct hf_outbox **outbox)
{
    const struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table orders = {.table = HF_STR("orders"),
                                     .attributes = &id,
                                     .attributes_len = 1,
                                     .key_schema = &key,
                                     .key_schema_len = 1};
    struct hf_relay_options relay = {.size = sizeof(relay), .backoff_ms = 50};
    enum hf_status status = hf_table_ensure(s, shop->db, &orders, NULL);

    if (status == HF_OK)
        status = hf_outbox_open(s, shop->db, NULL, outbox);
    if (status == HF_OK)
        status = hf_bus_open(s, *outbox,
                             HF_OPTIONS(hf_bus_options, .on_error = on_error, .relay = &relay),
                             &shop->bus);
    return status;
}

int main(void)
{
    static char name[] = "the shop";
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_outbox *outbox;
    struct hf_event_list failed;
    struct hf_event sent, counted;
    struct hf_bus_wait *wait;
    struct shop shop = {0};
    uint64_t again = 0;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &shop.db) != HF_OK)
        return 1;
    if (open_shop(s, &shop, &outbox) != HF_OK ||
        hf_bus_use(s, shop.bus, HF_BUS_EMIT, sign, name) != HF_OK ||
        hf_bus_on(s, shop.bus, HF_STR("order.*"), mail, &shop) != HF_OK ||
        hf_bus_start(s, shop.bus) != HF_OK)
        return complain(s);

    /* A mail is sent for an order, at the second attempt. */
    if (hf_bus_wait_begin(s, shop.bus, HF_STR("mail.sent"), &wait) != HF_OK ||
        hf_tx_run(s, shop.db, place, &shop, NULL) != HF_OK ||
        hf_bus_wait_end(s, wait, PATIENCE_MS, &sent) != HF_OK)
        return complain(s);
    printf("%.*s because of an event: %s\n", HF_FMT(sent.type), sent.causation.len ? "yes" : "no");

    /* There is no handler for this one: it becomes a dead letter until there is. */
    if (hf_bus_emit(s, shop.bus, &(struct hf_event){.type = HF_STR("visit")}, 1) != HF_OK)
        return complain(s);
    do {
        if (hf_scope_sleep_ms(s, 5) != HF_OK || hf_outbox_failed(s, outbox, NULL, &failed) != HF_OK)
            return complain(s);
    } while (failed.events_len == 0);
    if (hf_bus_wait_begin(s, shop.bus, HF_STR("visit"), &wait) != HF_OK ||
        hf_bus_on(s, shop.bus, HF_STR("visit"), count, NULL) != HF_OK ||
        hf_outbox_retry_all(s, outbox, NULL, &again) != HF_OK ||
        hf_bus_wait_end(s, wait, PATIENCE_MS, &counted) != HF_OK)
        return complain(s);

    hf_scope_timeout_ms(s, PATIENCE_MS);
    if (hf_bus_stop(s, shop.bus) != HF_OK)
        return complain(s);
    hf_bus_close(shop.bus);
    hf_outbox_close(outbox);
    hf_db_close(shop.db);
    hf_scope_free(s);
    return shop.mails == 2 && again == 1 ? 0 : 1;
}
