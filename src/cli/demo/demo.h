/*
 * cli/demo/demo.h: a small order service, as `holdfast demo` runs it.
 *
 *     shop thread         attempts, one after the other:
 *                           limit     how many orders a customer may place
 *                           setting   the delivery fee, by its key
 *                           order     one transaction: the item, two events of the outbox,
 *                                     an event of the store, two counters
 *     bus                 delivers the outbox's events to two functions:
 *                           payment   do-once: the payment is stored once, however often it is asked
 *                           shipment  fails once for some, and always for others: dead letters
 *     projection          adds every order of the event store to the sales of its customer
 *     two night workers   compete for a lock; its holder writes the report of the night
 *
 * All of it uses installed headers only, as a program of yours would. What happens depends on the
 * seed and on the number of the attempt alone, never on time, so that a seed gives the same orders,
 * refusals, payments and dead letters again.
 *
 * What always holds, and is checked at the end by reading the database (demo_check.c):
 *
 *  (1) An order has its event in the store, and two in the outbox: pending, delivered or failed.
 *  (2) An order is paid once, with its sum.
 *  (3) Fences grow: from holder to holder, and from report to report.
 *  (4) The sales of a customer are the sum of the orders.
 *  (5) The counters are the number and the sum of the orders.
 */
#ifndef HF_CLI_DEMO_DEMO_H
#define HF_CLI_DEMO_DEMO_H

#include <holdfast/bus.h>
#include <holdfast/counter.h>
#include <holdfast/db.h>
#include <holdfast/events.h>
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>
#include <holdfast/outbox.h>
#include <holdfast/scope.h>
#include <holdfast/subscribe.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    DEMO_RATE = 25, /* attempts a second */
    DEMO_WORKERS = 2,
    DEMO_CUSTOMERS = 12,
    DEMO_ERROR_MAX = 512,
    DEMO_SECONDS_MAX = 3600,
    DEMO_ATTEMPTS_MAX = DEMO_SECONDS_MAX * DEMO_RATE
};

/* Names of tables that are not a pattern's own. */
#define DEMO_MARK HF_STR("holdfast_demo") /* a database with this table is the demo's */
#define DEMO_ORDERS HF_STR("orders")      /* customer, id */
#define DEMO_PAYMENTS HF_STR("payments")  /* id */
#define DEMO_SALES HF_STR("sales")        /* customer: the projection */
#define DEMO_REPORTS HF_STR("reports")    /* night */

/* A worker of the nights, and how it is shown. */
struct demo_worker {
    struct demo *demo;
    struct hf_lock_table *locks; /* a table handle each: they are as two processes */
    const char *name;
    pthread_t thread;
    bool started;
};

struct demo {
    /* set before any thread starts */
    struct hf_db *db;
    uint64_t seed;
    uint32_t seconds;
    uint32_t attempts; /* in all */
    uint32_t nights;
    uint32_t limit; /* orders of a customer */
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    struct hf_events *store;
    struct hf_subscription *projection;
    struct hf_once_table *onces;
    struct hf_limit_table *limits;
    struct hf_counters *counters;
    struct hf_kv *settings;
    struct demo_worker workers[DEMO_WORKERS];
    pthread_t shop;
    bool shop_started;
    int64_t begin_us; /* by the elapsed clock */
    uint8_t *tried;   /* by order: its shipment has failed once; one thread at a time per order */

    /* any thread */
    _Atomic bool stop; /* begin nothing new */
    _Atomic bool sold; /* the shop has ended */
    _Atomic uint64_t attempted, placed, refused, cents, place_us;
    _Atomic uint64_t paid, paid_again, shipped, ship_failures;
    _Atomic uint64_t fee_cents, fee_changes;

    pthread_mutex_t mutex;      /* guards what follows */
    char error[DEMO_ERROR_MAX]; /* the first one; empty: none */
    uint32_t night;             /* the last whose report was written */
    uint64_t fence;             /* of the last holder */
    const char *holder;
    bool fence_went_back;
    uint64_t held, skipped; /* how often the lock was acquired, and the report was there already */
};

/* ---- demo_shop.c ---------------------------------------------------------------------------- */

/* A number below `sides`, which depends on nothing else. */
uint64_t hf__demo_dice(const struct demo *demo, uint64_t number, uint64_t what, uint64_t sides);

/* Make the tables and open the patterns; close them, in any state. */
enum hf_status hf__demo_open(struct hf_scope *s, struct demo *demo);
void hf__demo_close(struct demo *demo);

/* Delete the tables of an earlier demo. */
enum hf_status hf__demo_erase(struct hf_scope *s, struct hf_db *db);

/* Note an error of the scope, if it is the first, and stop. `what` could not be done. */
void hf__demo_failed(struct demo *demo, const char *what, const struct hf_scope *s);

/* Sleep until so long after the beginning; false: it is to stop. */
bool hf__demo_wait_until(struct demo *demo, struct hf_scope *s, int64_t after_us);

/* The thread of the shop. */
void *hf__demo_shop(void *user);

/* ---- demo_work.c ---------------------------------------------------------------------------- */

/* Start and stop all that works behind the shop. The second waits until nothing is left to deliver. */
enum hf_status hf__demo_start(struct hf_scope *s, struct demo *demo);
enum hf_status hf__demo_finish(struct hf_scope *s, struct demo *demo, uint32_t patience_ms);

/* ---- demo_check.c --------------------------------------------------------------------------- */

enum { DEMO_CHECKS = 5 };

struct demo_result {
    uint64_t orders, cents, published, dead_letters, pending;
    const char *names[DEMO_CHECKS]; /* what was checked */
    const char *keys[DEMO_CHECKS];  /* the same as a name for programs */
    bool held[DEMO_CHECKS];         /* and whether it holds */
    bool all;
};

/* Read everything, and see whether (1) to (5) hold. A status: it could not be read. */
enum hf_status hf__demo_check(struct hf_scope *s, struct demo *demo, struct demo_result *result);

/* ---- demo_view.c ---------------------------------------------------------------------------- */

/* What is shown while it runs: a picture that is drawn again and again, or a line a second. */
struct demo_view {
    FILE *out;
    bool screen; /* a terminal that can move its cursor */
    bool colors;
    size_t columns;
    size_t drawn; /* lines of the picture that is there; 0: none */
    uint64_t last_placed, last_delivered, last_projected;
    int64_t last_us;
    double orders_rate, delivered_rate, projected_rate;
    int64_t line_us; /* when the last line was printed */
};

void hf__demo_view_begin(struct demo_view *view, FILE *out, bool screen, bool colors);
void hf__demo_view_show(struct demo_view *view, struct hf_scope *s, struct demo *demo,
                        const char *state);
void hf__demo_view_end(struct demo_view *view);

#endif
