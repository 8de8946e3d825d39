/*
 * cli/demo/demo_work.c: what works behind the shop: the bus with its two functions, the projection,
 * and the workers of the nights.
 *
 * Functions of the bus are called at least once for each event. Payments are written by do-once,
 * together with the record that they were made; so another call finds them done.
 */
#include "base/base.h"
#include "cli/demo/demo.h"

#include <holdfast/pages.h>
#include <holdfast/relay.h>
#include <holdfast/tx.h>

#include <string.h>

enum {
    ATTEMPTS = 3, /* of a shipment; then it is a dead letter */
    BACKOFF_MS = 50,
    POLL_MS = 100,
    ASKED_TWICE_ONE_IN = 5, /* payments that are requested twice */
    NO_ADDRESS_ONE_IN = 40, /* shipments that always fail */
    BUSY_ONE_IN = 12,       /* shipments that fail once */
    ACQUIRE_MS = 20000,
    REPORT_MS = 60, /* how long a report takes, so that the other worker has to wait */
    STOP_MS = 10000
};

enum { DICE_TWICE = 11, DICE_ADDRESS, DICE_BUSY };

static bool number_of(struct hf_item item, struct hf_str name, int64_t *number)
{
    return hf_value_i64(hf_item_get(item, name), number);
}

/* ---- payments and shipments ----------------------------------------------------------------- */

static enum hf_status payment_make(struct hf_scope *s, struct demo *demo, struct hf_str customer,
                                   int64_t id, int64_t cents)
{
    struct hf_put_item put = {.table = DEMO_PAYMENTS,
                              .item = HF_ITEM(s, HF_N("id", id), HF_S("customer", customer),
                                              HF_N("cents", cents)),
                              .condition = HF_STR("attribute_not_exists(id)")};
    const struct hf_transact_write action = {.put = &put};
    struct hf_once_record record;

    TRY(hf_once_transact(s, demo->onces, customer, hf_scope_format(s, "pay/%lld", (long long)id),
                         NULL, HF_ITEM(s, HF_N("cents", cents)), &action, 1, &record));
    atomic_fetch_add(record.did ? &demo->paid : &demo->paid_again, 1);
    return HF_OK;
}

static enum hf_status payment_handle(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct demo *demo = user;
    int64_t id, cents;

    if (!number_of(event->headers, HF_STR("id"), &id) ||
        !number_of(event->headers, HF_STR("cents"), &cents))
        return hf_scope_fail(s, HF_INVALID, "a payment without an order");
    TRY(payment_make(s, demo, event->key, id, cents));
    if (hf__demo_dice(demo, (uint64_t)id, DICE_TWICE, ASKED_TWICE_ONE_IN) == 0)
        return payment_make(s, demo, event->key, id, cents); /* an impatient customer */
    return HF_OK;
}

static enum hf_status shipment_handle(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct demo *demo = user;
    int64_t id;

    if (!number_of(event->headers, HF_STR("id"), &id) || id < 1 || id > demo->attempts)
        return hf_scope_fail(s, HF_INVALID, "a shipment without an order");
    if (hf__demo_dice(demo, (uint64_t)id, DICE_ADDRESS, NO_ADDRESS_ONE_IN) == 0) {
        atomic_fetch_add(&demo->ship_failures, 1);
        return hf_scope_fail(s, HF_INVALID, "the warehouse has no address for order %lld",
                             (long long)id);
    }
    if (hf__demo_dice(demo, (uint64_t)id, DICE_BUSY, BUSY_ONE_IN) == 0 && !demo->tried[id]) {
        demo->tried[id] = 1;
        atomic_fetch_add(&demo->ship_failures, 1);
        return hf_scope_fail(s, HF_IO, "the warehouse is busy");
    }
    atomic_fetch_add(&demo->shipped, 1);
    return HF_OK;
}

/* Failures of handlers are counted by these; all else stays in the outbox, and is retried. */
static void bus_on_error(const struct hf_outbox_event *event, const struct hf_error *error,
                         enum hf_relay_outcome outcome, void *user)
{
    (void)event;
    (void)error;
    (void)outcome;
    (void)user;
}

/* ---- the projection ------------------------------------------------------------------------- */

/* The update and the checkpoint are one transaction: each event counts once. */
static enum hf_status sales_project(struct hf_scope *s, struct hf_tx *tx,
                                    const struct hf_stored_event *event, void *user)
{
    int64_t cents;
    struct hf_update_item update = {
        .table = DEMO_SALES,
        .key = HF_ITEM(s, HF_S("customer",
                               hf_value_str(hf_item_get(event->meta, HF_STR("customer"))))),
        .update = HF_STR("ADD orders :one, cents :cents")};

    (void)user;
    if (!number_of(event->meta, HF_STR("cents"), &cents))
        return hf_scope_fail(s, HF_INVALID, "an order without a sum");
    update.values = HF_ITEM(s, HF_N(":one", 1), HF_N(":cents", cents));
    return hf_tx_add(s, tx, &(struct hf_transact_write){.update = &update});
}

/* ---- nights --------------------------------------------------------------------------------- */

static void night_note(struct demo_worker *worker, uint64_t fence)
{
    struct demo *demo = worker->demo;

    pthread_mutex_lock(&demo->mutex);
    demo->fence_went_back |= fence <= demo->fence;
    demo->fence = fence;
    demo->holder = worker->name;
    demo->held++;
    pthread_mutex_unlock(&demo->mutex);
}

/* What the customers have bought so far. */
static enum hf_status sales_sum(struct hf_scope *s, struct hf_db *db, int64_t *orders,
                                int64_t *cents)
{
    const struct hf_scan scan = {.table = DEMO_SALES, .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    *orders = *cents = 0;
    TRY(hf_pages_scan(s, db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        int64_t some = 0, sum = 0;

        if (number_of(item, HF_STR("orders"), &some) && number_of(item, HF_STR("cents"), &sum)) {
            *orders += some;
            *cents += sum;
        }
    }
    hf_pages_free(pages);
    return status;
}

/* The lock is ours: write the report, unless the other worker has. The write has the fence in it, and
 * is refused if a later holder has written there. */
static enum hf_status report_write(struct hf_scope *s, struct demo_worker *worker,
                                   const struct hf_lock *lock, uint32_t night)
{
    struct demo *demo = worker->demo;
    struct hf_put_item put = {.table = DEMO_REPORTS,
                              .condition = HF_STR("attribute_not_exists(night)")};
    int64_t orders, cents;
    enum hf_status status;

    TRY(sales_sum(s, demo->db, &orders, &cents));
    TRY(hf_scope_sleep_ms(s, REPORT_MS));
    put.item = HF_ITEM(s, HF_N("night", night), HF_S("worker", hf_str_from(worker->name)),
                       HF_N("orders", orders), HF_N("cents", cents),
                       HF_N("fence", (int64_t)hf_lock_fence(lock)));
    TRY(hf_lock_guard_put(s, lock, HF_STR("fence"), &put));
    status = hf_put_item(s, demo->db, &put, NULL);
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    pthread_mutex_lock(&demo->mutex);
    assert(night == demo->night + 1 || status == HF_CONDITION); /* one report after the other */
    if (status == HF_OK)
        demo->night = night;
    else
        demo->skipped++;
    pthread_mutex_unlock(&demo->mutex);
    return hf_scope_ok(s);
}

static enum hf_status night_work(struct hf_scope *s, struct demo_worker *worker, uint32_t night)
{
    struct hf_lock *lock;
    enum hf_status status;

    hf_scope_timeout_ms(s, ACQUIRE_MS);
    TRY(hf_lock_acquire(s, worker->locks, HF_STR("nightly-report"),
                        HF_OPTIONS(hf_lock_options, .poll_ms = POLL_MS), &lock));
    night_note(worker, hf_lock_fence(lock));
    status = report_write(s, worker, lock, night);
    if (status != HF_OK) {
        struct hf_scope *other = hf_scope_new(NULL); /* keeps the error */

        if (other)
            hf_lock_release(other, lock);
        hf_scope_free(other);
        return status;
    }
    return hf_lock_release(s, lock);
}

static void *worker_run(void *user)
{
    struct demo_worker *worker = user;
    struct demo *demo = worker->demo;
    struct hf_scope *s = hf_scope_new(NULL);
    int64_t step_us = (int64_t)demo->seconds * 1000000 / (demo->nights + 1);

    for (uint32_t night = 1; s && night <= demo->nights; night++) {
        if (!hf__demo_wait_until(demo, s, night * step_us))
            break;
        if (night_work(s, worker, night) != HF_OK) {
            hf__demo_failed(demo, "the nightly job failed", s);
            break;
        }
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

static enum hf_status thread_start(struct hf_scope *s, pthread_t *thread, void *(*run)(void *),
                                   void *user, bool *started)
{
    if (pthread_create(thread, NULL, run, user) != 0)
        return hf_scope_fail(s, HF_LIMIT, "cannot start a thread");
    *started = true;
    return HF_OK;
}

enum hf_status hf__demo_start(struct hf_scope *s, struct demo *demo)
{
    const struct hf_relay_options relay = {.size = sizeof(relay),
                                           .poll_ms = POLL_MS,
                                           .max_attempts = ATTEMPTS,
                                           .backoff_ms = BACKOFF_MS};
    const struct hf_env *env = hf_scope_env(s);

    assert(demo->outbox && demo->store && demo->tried && demo->nights > 0);
    TRY(hf_bus_open(s, demo->outbox,
                    HF_OPTIONS(hf_bus_options, .relay = &relay, .on_error = bus_on_error),
                    &demo->bus));
    TRY(hf_bus_on(s, demo->bus, HF_STR("payment.requested"), payment_handle, demo));
    TRY(hf_bus_on(s, demo->bus, HF_STR("shipment.requested"), shipment_handle, demo));
    TRY(hf_subscribe(s, demo->store, HF_STR("sales"),
                     HF_OPTIONS(hf_subscribe_options, .project = sales_project,
                                .domain = HF_STR("order"), .batch_max = 10, .poll_ms = POLL_MS),
                     &demo->projection));
    TRY(hf_bus_start(s, demo->bus));
    TRY(hf_subscription_start(s, demo->projection));
    demo->begin_us = env->elapsed_us(env->user);
    for (size_t i = 0; i < DEMO_WORKERS; i++)
        TRY(thread_start(s, &demo->workers[i].thread, worker_run, &demo->workers[i],
                         &demo->workers[i].started));
    return thread_start(s, &demo->shop, hf__demo_shop, demo, &demo->shop_started);
}

/* Nothing is left to deliver, and the projection has all orders. */
static enum hf_status work_is_done(struct hf_scope *s, struct demo *demo, bool *done)
{
    struct hf_subscription_metrics projection;
    struct hf_outbox_stats stats;

    TRY(hf_outbox_stats(s, demo->outbox, 0, &stats));
    hf_subscription_metrics(demo->projection, &projection);
    *done = stats.pending == 0 && projection.handled >= atomic_load(&demo->placed);
    return HF_OK;
}

enum hf_status hf__demo_finish(struct hf_scope *s, struct demo *demo, uint32_t patience_ms)
{
    const struct hf_env *env = hf_scope_env(s);
    int64_t end_us = env->elapsed_us(env->user) + (int64_t)patience_ms * 1000;
    bool done = false;

    if (demo->shop_started)
        pthread_join(demo->shop, NULL);
    for (size_t i = 0; i < DEMO_WORKERS; i++)
        if (demo->workers[i].started)
            pthread_join(demo->workers[i].thread, NULL);
    if (!demo->bus || !demo->projection)
        return HF_OK;
    while (!done && env->elapsed_us(env->user) < end_us) {
        hf_scope_reset(s);
        TRY(work_is_done(s, demo, &done));
        if (!done)
            TRY(hf_scope_sleep_ms(s, POLL_MS));
    }
    hf_scope_timeout_ms(s, STOP_MS);
    TRY(hf_bus_stop(s, demo->bus));
    return hf_subscription_stop(s, demo->projection);
}
