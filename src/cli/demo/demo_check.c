/*
 * cli/demo/demo_check.c: what always holds (demo.h), found out by reading what is stored.
 *
 * Orders are read first, into a table by their ids; everything else is compared with that.
 */
#include "base/base.h"
#include "cli/demo/demo.h"

#include <holdfast/pages.h>

#include <string.h>

struct found {
    uint32_t attempts;
    int64_t *cents;  /* of an order, by its id; 0: there is no such order */
    uint8_t *events; /* of it in the store */
    uint8_t *paid;   /* how often */
    uint64_t orders;
    int64_t sum;
    struct { /* by customer, in the order in which they were found */
        char name[16];
        int64_t orders, cents;
    } customers[DEMO_CUSTOMERS];
    size_t customers_len;
};

typedef bool check_item_fn(struct found *found, struct hf_item item);

/* Call it with every item of a table; *holds is false when it is false of one. */
static enum hf_status table_check(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                  struct found *found, check_item_fn *check, bool *holds)
{
    const struct hf_scan scan = {.table = table, .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    *holds = true;
    TRY(hf_pages_scan(s, db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr)
        *holds = check(found, item) && *holds;
    hf_pages_free(pages);
    return status;
}

static int64_t item_number(struct hf_item item, struct hf_str name)
{
    int64_t number;

    return hf_value_i64(hf_item_get(item, name), &number) ? number : -1;
}

/* The order with that id; false: there is none. */
static bool order_find(const struct found *found, struct hf_item item, int64_t *id)
{
    *id = item_number(item, HF_STR("id"));
    return *id >= 1 && *id <= found->attempts && found->cents[*id] > 0;
}

/* Where the sums of a customer are, or would be. */
static size_t customer_find(struct found *found, struct hf_str name)
{
    size_t at = 0;

    while (at < found->customers_len && !hf_str_equal(hf_str_from(found->customers[at].name), name))
        at++;
    return at;
}

static bool order_note(struct found *found, struct hf_item item)
{
    struct hf_str customer = hf_value_str(hf_item_get(item, HF_STR("customer")));
    int64_t id = item_number(item, HF_STR("id")), cents = item_number(item, HF_STR("cents"));
    size_t at = customer_find(found, customer);

    if (id < 1 || id > found->attempts || cents <= 0 || found->cents[id] || at == DEMO_CUSTOMERS ||
        customer.len >= sizeof(found->customers[at].name))
        return false;
    if (at == found->customers_len) {
        assert(found->customers_len < DEMO_CUSTOMERS);
        memcpy(found->customers[at].name, customer.ptr, customer.len);
        found->customers_len++;
    }
    found->customers[at].orders++;
    found->customers[at].cents += cents;
    found->cents[id] = cents;
    found->orders++;
    found->sum += cents;
    return true;
}

static bool payment_check(struct found *found, struct hf_item item)
{
    int64_t id;

    if (!order_find(found, item, &id))
        return false;
    found->paid[id]++;
    return item_number(item, HF_STR("cents")) == found->cents[id];
}

static bool sales_check(struct found *found, struct hf_item item)
{
    size_t at = customer_find(found, hf_value_str(hf_item_get(item, HF_STR("customer"))));

    if (at == found->customers_len)
        return false;
    found->customers[at].orders -= item_number(item, HF_STR("orders"));
    found->customers[at].cents -= item_number(item, HF_STR("cents"));
    return true;
}

/* ---- what holds ----------------------------------------------------------------------------- */

/* (1) */
static enum hf_status check_events(struct hf_scope *s, struct demo *demo, struct found *found,
                                   struct demo_result *result, bool *holds)
{
    const struct hf_stored_event *events;
    struct hf_events_reader *reader;
    struct hf_outbox_stats stats;
    enum hf_status status;
    size_t len;
    int64_t id;

    TRY(hf_events_reader_open(s, demo->store, NULL, &reader));
    *holds = true;
    while ((status = hf_events_reader_next(s, reader, &events, &len)) == HF_OK && len > 0)
        for (size_t i = 0; i < len; i++) {
            if (order_find(found, events[i].meta, &id))
                found->events[id]++;
            else
                *holds = false; /* an event without an order */
        }
    hf_events_reader_close(reader);
    TRY(status);
    TRY(hf_outbox_stats(s, demo->outbox, 0, &stats));
    result->published = stats.published;
    result->dead_letters = stats.failed;
    result->pending = stats.pending;
    *holds = *holds && stats.published + stats.failed + stats.pending == 2 * found->orders;
    for (uint32_t i = 1; i <= found->attempts; i++)
        *holds = *holds && found->events[i] == (found->cents[i] > 0);
    return HF_OK;
}

/* (2) */
static enum hf_status check_payments(struct hf_scope *s, struct demo *demo, struct found *found,
                                     bool *holds)
{
    TRY(table_check(s, demo->db, DEMO_PAYMENTS, found, payment_check, holds));
    for (uint32_t i = 1; i <= found->attempts; i++)
        *holds = *holds && found->paid[i] == (found->cents[i] > 0);
    *holds = *holds && atomic_load(&demo->paid) == found->orders;
    return HF_OK;
}

/* (3) */
static enum hf_status check_fences(struct hf_scope *s, struct demo *demo, bool *holds)
{
    int64_t last = 0;

    *holds = !demo->fence_went_back;
    for (uint32_t night = 1; night <= demo->night; night++) {
        const struct hf_get_item get = {.table = DEMO_REPORTS,
                                        .key = HF_ITEM(s, HF_N("night", night)),
                                        .consistent = HF_YES};
        struct hf_get_item_result got;
        int64_t fence;

        TRY(hf_get_item(s, demo->db, &get, &got));
        fence = got.item.ptr ? item_number(got.item, HF_STR("fence")) : -1;
        *holds = *holds && fence > last;
        last = fence;
    }
    return HF_OK;
}

/* (4) */
static enum hf_status check_sales(struct hf_scope *s, struct demo *demo, struct found *found,
                                  bool *holds)
{
    TRY(table_check(s, demo->db, DEMO_SALES, found, sales_check, holds));
    for (size_t i = 0; i < found->customers_len; i++)
        *holds = *holds && !found->customers[i].orders && !found->customers[i].cents;
    return HF_OK;
}

/* (5) */
static enum hf_status check_counters(struct hf_scope *s, struct demo *demo,
                                     const struct found *found, bool *holds)
{
    int64_t orders, cents;

    TRY(hf_counter_get(s, demo->counters, hf_counter_named(HF_STR("orders")), &orders));
    TRY(hf_counter_get(s, demo->counters, hf_counter_named(HF_STR("revenue_cents")), &cents));
    *holds = orders == (int64_t)found->orders && cents == found->sum;
    return HF_OK;
}

enum hf_status hf__demo_check(struct hf_scope *s, struct demo *demo, struct demo_result *result)
{
    struct found found = {
        .attempts = demo->attempts,
        .cents = hf__scope_array(s, demo->attempts + 1, sizeof(*found.cents)),
        .events = hf__scope_array(s, demo->attempts + 1, 1),
        .paid = hf__scope_array(s, demo->attempts + 1, 1),
    };
    bool readable;

    assert(demo->attempts <= DEMO_ATTEMPTS_MAX);
    *result =
        (struct demo_result){.names = {"every order has its events", "every order is paid once",
                                       "fences only grew", "the projection equals the orders",
                                       "the counters equal the orders"},
                             .keys = {"events", "payments", "fences", "projection", "counters"}};
    if (!found.cents || !found.events || !found.paid)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    TRY(table_check(s, demo->db, DEMO_ORDERS, &found, order_note, &readable));
    result->orders = found.orders;
    result->cents = (uint64_t)found.sum;
    TRY(check_events(s, demo, &found, result, &result->held[0]));
    TRY(check_payments(s, demo, &found, &result->held[1]));
    TRY(check_fences(s, demo, &result->held[2]));
    TRY(check_sales(s, demo, &found, &result->held[3]));
    TRY(check_counters(s, demo, &found, &result->held[4]));
    result->all = readable && found.orders == atomic_load(&demo->placed);
    for (size_t i = 0; i < DEMO_CHECKS; i++)
        result->all = result->all && result->held[i];
    return HF_OK;
}
