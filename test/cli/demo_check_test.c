/*
 * cli/demo: what the demo says at its end is found out by reading: one item less, or a sum that is wrong, and the check
 * of it does not hold any more.
 */
#include "cli/demo/demo.h"
#include "test.h"

#include <holdfast/engine.h>
#include <holdfast/pages.h>

enum { CHECK_EVENTS, CHECK_PAYMENTS, CHECK_FENCES, CHECK_SALES, CHECK_COUNTERS };
enum { PATIENCE_MS = 60000 };

/* A second of the demo, in memory. */
static void demo_run(struct hf_scope *s, struct demo *demo)
{
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &demo->db));
    pthread_mutex_init(&demo->mutex, NULL);
    demo->seed = 7;
    demo->seconds = 1;
    demo->attempts = DEMO_RATE;
    demo->nights = 2;
    demo->limit = 4;
    CHECK_OK(hf__demo_open(s, demo));
    CHECK_OK(hf__demo_start(s, demo));
    CHECK_OK(hf__demo_finish(s, demo, PATIENCE_MS));
    CHECK(demo->error[0] == '\0');
}

/* The first item of a table. */
static struct hf_item item_first(struct hf_scope *s, struct hf_db *db, struct hf_str table)
{
    struct hf_scan_result found;

    CHECK_OK(hf_scan(s, db, &(struct hf_scan){.table = table, .limit = 1}, &found));
    CHECK(found.items_len == 1);
    return found.items[0];
}

static void item_put(struct hf_scope *s, struct hf_db *db, struct hf_str table, struct hf_item item)
{
    CHECK_OK(hf_put_item(s, db, &(struct hf_put_item){.table = table, .item = item}, NULL));
}

/* Only that check does not hold; all of them if it is DEMO_CHECKS. */
static void demo_expect(struct hf_scope *s, struct demo *demo, size_t broken)
{
    struct demo_result result;

    CHECK_OK(hf__demo_check(s, demo, &result));
    for (size_t i = 0; i < DEMO_CHECKS; i++)
        CHECK(result.held[i] == (i != broken));
    CHECK(result.all == (broken == DEMO_CHECKS));
}

TEST(demo, a_check_sees_what_is_wrong)
{
    static uint8_t tried[DEMO_RATE + 1];
    struct hf_scope *s = hf_scope_new(NULL);
    struct demo demo = {.tried = tried};
    struct hf_counter_key orders = hf_counter_named(HF_STR("orders"));
    struct hf_item payment, sales;
    int64_t id, count;

    (void)t;
    demo_run(s, &demo);
    demo_expect(s, &demo, DEMO_CHECKS);

    payment = item_first(s, demo.db, DEMO_PAYMENTS);
    CHECK(hf_value_i64(hf_item_get(payment, HF_STR("id")), &id));
    CHECK_OK(hf_delete_item(s, demo.db,
                            &(struct hf_delete_item){.table = DEMO_PAYMENTS,
                                                     .key = HF_ITEM(s, HF_N("id", id))},
                            NULL));
    demo_expect(s, &demo, CHECK_PAYMENTS);
    item_put(s, demo.db, DEMO_PAYMENTS, payment);

    sales = item_first(s, demo.db, DEMO_SALES);
    item_put(s, demo.db, DEMO_SALES,
             HF_ITEM(s, HF_S("customer", hf_value_str(hf_item_get(sales, HF_STR("customer")))),
                     HF_N("orders", 1), HF_N("cents", 1)));
    demo_expect(s, &demo, CHECK_SALES);
    item_put(s, demo.db, DEMO_SALES, sales);

    CHECK_OK(hf_counter_incr(s, demo.counters, orders, 1, &count));
    demo_expect(s, &demo, CHECK_COUNTERS);
    CHECK_OK(hf_counter_decr(s, demo.counters, orders, 1, &count));

    item_put(s, demo.db, DEMO_REPORTS, HF_ITEM(s, HF_N("night", 2), HF_N("fence", 1)));
    demo_expect(s, &demo, CHECK_FENCES);
    item_put(s, demo.db, DEMO_REPORTS, HF_ITEM(s, HF_N("night", 2), HF_N("fence", INT64_MAX)));

    CHECK_OK(hf_outbox_emit(s, demo.outbox, &(struct hf_event){.type = HF_STR("stray")}, 1, NULL));
    demo_expect(s, &demo, CHECK_EVENTS);

    hf__demo_close(&demo);
    hf_db_close(demo.db);
    pthread_mutex_destroy(&demo.mutex);
    hf_scope_free(s);
}
