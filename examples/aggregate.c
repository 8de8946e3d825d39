/*
 * examples/aggregate.c: accounts as aggregates. Commands are decided on the state of an account,
 * which is computed from its events. Two clerks who decide at the same time cannot both spend the
 * same money. A command that is given twice is handled once. A snapshot saves reading. An event of
 * an older schema is converted when it is read.
 *
 *     cc aggregate.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/aggregate.h>
#include <holdfast/engine.h>

#include <inttypes.h>
#include <stdio.h>

struct account {
    int64_t cents;
};

/* A command, and what happens while it is decided. */
struct order {
    int64_t cents;
    struct hf_events *store;
    bool rival; /* another command comes first, once */
    int decided;
};

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

static int64_t number(const struct hf_stored_event *event)
{
    int64_t sum = 0;

    for (size_t i = 0; i < event->payload.len; i++)
        sum = 10 * sum + (event->payload.ptr[i] - '0');
    return sum;
}

static struct hf_bytes text_of(struct hf_scope *s, int64_t value)
{
    struct hf_str text = hf_scope_format(s, "%" PRId64, value);

    return hf_bytes_of(text.ptr, text.len);
}

static enum hf_status evolve(struct hf_scope *s, void *state, const struct hf_stored_event *event,
                             void *user)
{
    struct account *account = state;

    (void)s;
    (void)user;
    account->cents +=
        hf_str_equal(event->type, HF_STR("deposited")) ? number(event) : -number(event);
    return HF_OK;
}

static enum hf_status save(struct hf_scope *s, const void *state, struct hf_item *item, void *user)
{
    (void)user;
    *item = HF_ITEM(s, HF_N("cents", ((const struct account *)state)->cents));
    return HF_OK;
}

static enum hf_status restore(struct hf_scope *s, struct hf_item item, void *state, void *user)
{
    (void)user;
    return hf_value_i64(hf_item_get(item, HF_STR("cents")), &((struct account *)state)->cents)
               ? HF_OK
               : hf_scope_fail(s, HF_CORRUPT, "a snapshot without cents");
}

/* Deposits were in euros once: schema 1. */
static enum hf_status to_cents(struct hf_scope *s, struct hf_stored_event *event, uint32_t from,
                               void *user)
{
    (void)from;
    (void)user;
    event->payload = text_of(s, 100 * number(event));
    return HF_OK;
}

static enum hf_status deposit(struct hf_scope *s, const void *state, struct hf_decision *decision,
                              void *user)
{
    struct hf_new_event event = {.type = HF_STR("deposited"),
                                 .payload = text_of(s, ((struct order *)user)->cents),
                                 .schema = 2};

    (void)state;
    return hf_decision_emit(s, decision, &event);
}

static enum hf_status withdraw(struct hf_scope *s, const void *state, struct hf_decision *decision,
                               void *user);

static const struct hf_upcast upcast = {.type = HF_STR_INIT("deposited"),
                                        .schema = 2,
                                        .upcast = to_cents};
static const struct hf_aggregate accounts = {.domain = HF_STR_INIT("account"),
                                             .state_size = sizeof(struct account),
                                             .evolve = evolve,
                                             .save = save,
                                             .restore = restore,
                                             .snapshot_every = 2,
                                             .upcasts = &upcast,
                                             .upcasts_len = 1};

static enum hf_status handle(struct hf_scope *s, hf_decide_fn *decide, struct order *order,
                             const char *id, struct hf_handled *handled)
{
    return hf_aggregate_handle(s, order->store, &accounts, HF_STR("ann"),
                               &(struct hf_command){.decide = decide, .user = order},
                               HF_OPTIONS(hf_handle_options, .id = hf_str_from(id)), handled);
}

static enum hf_status withdraw(struct hf_scope *s, const void *state, struct hf_decision *decision,
                               void *user)
{
    struct order *order = user;
    struct hf_new_event event = {.type = HF_STR("withdrawn"),
                                 .payload = text_of(s, order->cents),
                                 .schema = 1};

    order->decided++;
    if (order->rival) { /* as it may happen in another process */
        struct order other = {.cents = 600, .store = order->store};
        struct hf_handled handled;

        order->rival = false;
        if (handle(s, withdraw, &other, NULL, &handled) != HF_OK)
            return hf_scope_error(s)->status;
    }
    if (((const struct account *)state)->cents < order->cents)
        return hf_scope_fail(s, HF_DENIED, "there are %" PRId64 " cents only",
                             ((const struct account *)state)->cents);
    return hf_decision_emit(s, decision, &event);
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_new_event old = {.type = HF_STR("deposited"), .payload = {(const uint8_t *)"10", 2}};
    struct hf_append append = {.stream = {HF_STR("account"), HF_STR("ann")},
                               .events = &old,
                               .events_len = 1};
    struct hf_aggregate_state loaded;
    struct order order = {0};
    struct hf_handled handled;
    struct hf_db *db;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK ||
        hf_events_open(s, db, NULL, &order.store) != HF_OK ||
        hf_events_append(s, order.store, &append, 1, NULL, NULL) != HF_OK)
        return s ? complain(s) : 1;

    /* Ten euros in the old schema, and fifty cents: handled once, however often it is requested. */
    order.cents = 50;
    for (int i = 0; i < 2; i++) {
        if (handle(s, deposit, &order, "deposit-1", &handled) != HF_OK)
            return complain(s);
        printf("%" PRId64 " cents at version %" PRIu64 "%s\n",
               ((struct account *)handled.state)->cents, handled.version,
               handled.repeated ? ", deposited before" : "");
    }

    /* Another command comes first, and then there is not enough money. */
    order.cents = 700;
    order.rival = true;
    if (handle(s, withdraw, &order, NULL, &handled) != HF_DENIED)
        return complain(s);
    printf("decided %d times: %s\n", order.decided, hf_scope_error_text(s));

    if (hf_aggregate_load(s, order.store, &accounts, HF_STR("ann"), 0, &loaded) != HF_OK)
        return complain(s);
    printf("%" PRId64 " cents, from a snapshot at version %" PRIu64 " and %" PRIu64 " events\n",
           ((struct account *)loaded.state)->cents, loaded.snapshot, loaded.read);

    hf_events_close(order.store);
    hf_db_close(db);
    hf_scope_free(s);
    return order.decided == 2 && loaded.version == 3 && loaded.snapshot == 2 ? 0 : 1;
}
