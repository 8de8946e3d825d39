/*
 * cli/demo/demo_shop.c: the shop: its tables, and the thread that places orders.
 *
 * An order is one transaction. Its item, what the outbox is to deliver, its event in the store, and
 * the counters are there together, or none of it is.
 */
#include "base/base.h"
#include "cli/demo/demo.h"

#include <holdfast/table.h>
#include <holdfast/tx.h>

#include <assert.h>
#include <string.h>

enum {
    LIMIT_WINDOW_MS = 600000, /* longer than a run, so that time decides nothing */
    SLICE_MS = 20,            /* of a wait, between looks at `stop` */
    CALL_MS = 30000,          /* of one step of the shop */
    GREEDY_ONE_IN = 4,        /* attempts that are of the last customer */
    FEE_CENTS = 490,
    FEE_LATER_CENTS = 390, /* from the middle on */
    PIECES_MAX = 3
};

/* What the dice are thrown for. */
enum { DICE_GREEDY = 1, DICE_CUSTOMER, DICE_ARTICLE, DICE_PIECES };

static const char *const customers[DEMO_CUSTOMERS] = {"ann", "ben",  "cleo", "dan", "eve", "finn",
                                                      "gus", "hana", "ida",  "jon", "kim", "zoe"};

static const struct article {
    const char *name;
    int64_t cents;
} articles[] = {{"book", 1990}, {"chair", 7900}, {"lamp", 3450}, {"mug", 890}, {"shelf", 12900}};

uint64_t hf__demo_dice(const struct demo *demo, uint64_t number, uint64_t what, uint64_t sides)
{
    uint64_t x = demo->seed + number * 0x9e3779b97f4a7c15u + what * 0xd1b54a32d192ed03u;

    assert(sides > 0);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % sides;
}

void hf__demo_failed(struct demo *demo, const char *what, const struct hf_scope *s)
{
    pthread_mutex_lock(&demo->mutex);
    if (!demo->error[0])
        snprintf(demo->error, sizeof(demo->error), "%s: %s", what, hf_scope_error_text(s));
    pthread_mutex_unlock(&demo->mutex);
    atomic_store(&demo->stop, true);
}

bool hf__demo_wait_until(struct demo *demo, struct hf_scope *s, int64_t after_us)
{
    const struct hf_env *env = hf_scope_env(s);

    while (!atomic_load(&demo->stop)) {
        int64_t left_ms = (demo->begin_us + after_us - env->elapsed_us(env->user)) / 1000;

        if (left_ms <= 0)
            return true;
        if (hf_scope_sleep_ms(s, left_ms < SLICE_MS ? (uint32_t)left_ms : SLICE_MS) != HF_OK)
            return false;
    }
    return false;
}

/* ---- tables --------------------------------------------------------------------------------- */

/* A table with a hash key, and a range key unless that has no name. */
static enum hf_status table_make(struct hf_scope *s, struct hf_db *db, struct hf_str name,
                                 struct hf_attribute_definition hash,
                                 struct hf_attribute_definition range)
{
    const size_t len = range.name.len ? 2 : 1;
    const struct hf_attribute_definition attributes[] = {hash, range};
    const struct hf_key_element keys[] = {{hash.name, HF_KEY_HASH}, {range.name, HF_KEY_RANGE}};
    const struct hf_create_table spec = {.table = name,
                                         .attributes = attributes,
                                         .attributes_len = len,
                                         .key_schema = keys,
                                         .key_schema_len = len};

    return hf_table_ensure(s, db, &spec, NULL);
}

static enum hf_status tables_make(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_attribute_definition none = {0};
    const struct hf_attribute_definition customer = {HF_STR("customer"), HF_SCALAR_S};
    const struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_N};
    const struct hf_attribute_definition night = {HF_STR("night"), HF_SCALAR_N};

    TRY(table_make(s, db, DEMO_MARK, id, none)); /* first: from here on it is the demo's */
    TRY(table_make(s, db, DEMO_ORDERS, customer, id));
    TRY(table_make(s, db, DEMO_PAYMENTS, id, none));
    TRY(table_make(s, db, DEMO_SALES, customer, none));
    return table_make(s, db, DEMO_REPORTS, night, none);
}

enum hf_status hf__demo_erase(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_str tables[] = {DEMO_ORDERS,    DEMO_PAYMENTS,    DEMO_SALES,
                                    DEMO_REPORTS,   HF_STR("outbox"), HF_STR("events"),
                                    HF_STR("once"), HF_STR("limits"), HF_STR("locks"),
                                    HF_STR("keys"), DEMO_MARK}; /* last, as it is the mark */

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        enum hf_status status =
            hf_delete_table(s, db, &(struct hf_delete_table){.table = tables[i]}, NULL);

        if (status != HF_OK && status != HF_NOT_FOUND)
            return status;
    }
    return hf_scope_ok(s);
}

/* ---- opening -------------------------------------------------------------------------------- */

static struct hf_kv_key fee_key(void)
{
    return hf_kv_in(hf_str_of(NULL, 0), HF_STR("shop"), HF_STR("delivery_fee"));
}

static enum hf_status fee_set(struct hf_scope *s, struct demo *demo, int64_t cents,
                              struct hf_str if_version)
{
    struct hf_value value = hf_value_make(s, (struct hf_attr)HF_N("", cents));

    TRY(hf_kv_set(s, demo->settings, fee_key(), value,
                  HF_OPTIONS(hf_kv_set_options, .if_version = if_version), NULL));
    atomic_store(&demo->fee_cents, (uint64_t)cents);
    return HF_OK;
}

enum hf_status hf__demo_open(struct hf_scope *s, struct demo *demo)
{
    static const char *const names[DEMO_WORKERS] = {"worker-1", "worker-2"};

    assert(demo->db && demo->attempts > 0 && demo->attempts <= DEMO_ATTEMPTS_MAX);
    TRY(tables_make(s, demo->db));
    TRY(hf_outbox_open(s, demo->db,
                       HF_OPTIONS(hf_outbox_options, .source = HF_STR("shop"),
                                  .history_s = HF_OUTBOX_HISTORY_S),
                       &demo->outbox));
    TRY(hf_events_open(s, demo->db, NULL, &demo->store));
    TRY(hf_once_table_open(s, demo->db, NULL, &demo->onces));
    TRY(hf_limit_table_open(s, demo->db, NULL, &demo->limits));
    TRY(hf_counters_open(s, demo->db, NULL, &demo->counters));
    TRY(hf_kv_open(s, demo->db, HF_OPTIONS(hf_kv_options, .consistent = true), &demo->settings));
    for (size_t i = 0; i < DEMO_WORKERS; i++) {
        struct demo_worker *worker = &demo->workers[i];

        worker->demo = demo;
        worker->name = names[i];
        TRY(hf_lock_table_open(s, demo->db,
                               HF_OPTIONS(hf_lock_table_options,
                                          .owner = hf_str_from(worker->name)),
                               &worker->locks));
    }
    return fee_set(s, demo, FEE_CENTS, hf_str_of(NULL, 0));
}

void hf__demo_close(struct demo *demo)
{
    hf_subscription_close(demo->projection);
    hf_bus_close(demo->bus);
    for (size_t i = 0; i < DEMO_WORKERS; i++)
        if (demo->workers[i].locks)
            hf_lock_table_close(demo->workers[i].locks);
    hf_kv_close(demo->settings);
    hf_counters_close(demo->counters);
    hf_limit_table_close(demo->limits);
    if (demo->onces)
        hf_once_table_close(demo->onces);
    hf_events_close(demo->store);
    hf_outbox_close(demo->outbox);
}

/* ---- an order ------------------------------------------------------------------------------- */

struct order {
    struct demo *demo;
    uint64_t id; /* the number of the attempt: refused ones leave gaps */
    struct hf_str customer;
    const struct article *article;
    int64_t pieces;
    int64_t fee_cents;
    int64_t cents; /* all of it */
};

/* Who buys what; the last customer buys more often than a limit allows. */
static struct order order_of(struct demo *demo, uint64_t id)
{
    bool greedy = hf__demo_dice(demo, id, DICE_GREEDY, GREEDY_ONE_IN) == 0;
    size_t customer =
        greedy ? DEMO_CUSTOMERS - 1 : hf__demo_dice(demo, id, DICE_CUSTOMER, DEMO_CUSTOMERS - 1);

    return (struct order){.demo = demo,
                          .id = id,
                          .customer = hf_str_from(customers[customer]),
                          .article =
                              &articles[hf__demo_dice(demo, id, DICE_ARTICLE,
                                                      sizeof(articles) / sizeof(articles[0]))],
                          .pieces = 1 + (int64_t)hf__demo_dice(demo, id, DICE_PIECES, PIECES_MAX)};
}

/* The function of hf_tx_run(), which may call it again after a conflict. */
static enum hf_status order_write(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    const struct order *order = user;
    struct demo *demo = order->demo;
    const int64_t id = (int64_t)order->id;
    struct hf_item facts =
        HF_ITEM(s, HF_S("customer", order->customer), HF_N("id", id), HF_N("cents", order->cents));
    struct hf_str json =
        hf_scope_format(s, "{\"customer\":\"%.*s\",\"id\":%lld,\"cents\":%lld}",
                        HF_FMT(order->customer), (long long)id, (long long)order->cents);
    struct hf_put_item put = {.table = DEMO_ORDERS,
                              .item = HF_ITEM(s, HF_S("customer", order->customer), HF_N("id", id),
                                              HF_S("article", hf_str_from(order->article->name)),
                                              HF_N("pieces", order->pieces),
                                              HF_N("fee_cents", order->fee_cents),
                                              HF_N("cents", order->cents)),
                              .condition = HF_STR("attribute_not_exists(customer)")};
    const struct hf_event requests[] = {
        {.type = HF_STR("payment.requested"),
         .key = order->customer, /* events of one customer are delivered in order */
         .payload = hf_bytes_of(json.ptr, json.len),
         .headers = facts},
        {.type = HF_STR("shipment.requested"),
         .key = order->customer,
         .payload = hf_bytes_of(json.ptr, json.len),
         .headers = facts}};
    const struct hf_new_event placed = {.type = HF_STR("placed"),
                                        .payload = hf_bytes_of(json.ptr, json.len),
                                        .meta = facts};
    const struct hf_append append = {.stream = {HF_STR("order"),
                                                hf_scope_format(s, "%lld", (long long)id)},
                                     .expect = HF_EXPECT_NONE,
                                     .events = &placed,
                                     .events_len = 1};
    struct hf_transact_write count, sum;

    assert(order->cents > 0);
    TRY(hf_scope_built(s)); /* the texts above; without one there would be no condition */
    TRY(hf_counter_add_tx(s, demo->counters, hf_counter_named(HF_STR("orders")), hf_str_of(NULL, 0),
                          1, NULL, &count));
    TRY(hf_counter_add_tx(s, demo->counters, hf_counter_named(HF_STR("revenue_cents")),
                          hf_str_of(NULL, 0), order->cents, NULL, &sum));
    TRY(hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put}));
    TRY(hf_tx_add(s, tx, &count));
    TRY(hf_tx_add(s, tx, &sum));
    TRY(hf_outbox_emit_into(s, demo->outbox, tx, requests, 2, NULL));
    return hf_events_append_into(s, demo->store, tx, &append, 1, NULL, NULL);
}

/* In the middle of the run delivery becomes cheaper, if nobody has changed the fee meanwhile. */
static enum hf_status fee_read(struct hf_scope *s, struct demo *demo, uint64_t id, int64_t *cents)
{
    struct hf_kv_entry entry;

    TRY(hf_kv_get(s, demo->settings, fee_key(), NULL, &entry));
    if (!hf_value_i64(entry.value, cents))
        return hf_scope_fail(s, HF_CORRUPT, "the delivery fee is not a number");
    if (id != demo->attempts / 2)
        return HF_OK;
    TRY(fee_set(s, demo, FEE_LATER_CENTS, entry.version));
    atomic_fetch_add(&demo->fee_changes, 1);
    *cents = FEE_LATER_CENTS;
    return HF_OK;
}

static enum hf_status order_place(struct hf_scope *s, struct demo *demo, uint64_t id)
{
    const struct hf_limit_rule rule = {.limit = demo->limit, .window_ms = LIMIT_WINDOW_MS};
    const struct hf_env *env = hf_scope_env(s);
    struct order order = order_of(demo, id);
    struct hf_limit_verdict verdict;
    int64_t began_us;
    enum hf_status status;

    TRY(fee_read(s, demo, id, &order.fee_cents));
    order.cents = order.pieces * order.article->cents + order.fee_cents;
    status =
        hf_limit_take(s, demo->limits, hf_scope_format(s, "orders/%.*s", HF_FMT(order.customer)),
                      &rule, NULL, &verdict);
    if (status == HF_LIMIT) {
        atomic_fetch_add(&demo->refused, 1);
        return hf_scope_ok(s);
    }
    TRY(status);
    began_us = env->elapsed_us(env->user);
    TRY(hf_tx_run(s, demo->db, order_write, &order, NULL));
    atomic_fetch_add(&demo->place_us, (uint64_t)(env->elapsed_us(env->user) - began_us));
    atomic_fetch_add(&demo->cents, (uint64_t)order.cents);
    atomic_fetch_add(&demo->placed, 1);
    return HF_OK;
}

void *hf__demo_shop(void *user)
{
    struct demo *demo = user;
    struct hf_scope *s = hf_scope_new(NULL);

    assert(demo->begin_us && !atomic_load(&demo->sold));
    for (uint64_t id = 1; s && id <= demo->attempts; id++) {
        if (!hf__demo_wait_until(demo, s, (int64_t)(id - 1) * 1000000 / DEMO_RATE))
            break;
        hf_scope_reset(s);
        hf_scope_timeout_ms(s, CALL_MS);
        if (order_place(s, demo, id) != HF_OK) {
            hf__demo_failed(demo, "an order could not be placed", s);
            break;
        }
        atomic_fetch_add(&demo->attempted, 1);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    atomic_store(&demo->sold, true);
    return NULL;
}
