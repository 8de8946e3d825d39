/*
 * examples/flow.c: an order goes through its flow. It is refused if it has no lines. A consequent
 * event reserves stock, if there is enough. Both are stored together, with a list of orders that
 * always agrees with them. A mail is sent afterwards, also when the first attempt fails, and is an
 * event as well. Then all of it is reverted.
 *
 *     cc flow.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/flow.h>
#include <holdfast/table.h>

#include <stdatomic.h>
#include <stdio.h>

enum { PATIENCE = 6000, IN_STOCK = 3 };

static atomic_int mails, seen;

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* ---- orders --------------------------------------------------------------------------------- */

static enum hf_status has_lines(struct hf_scope *s, struct hf_flow_call *call,
                                const struct hf_stored_event *event, void *user)
{
    (void)call;
    (void)user;
    return event->payload.len
               ? HF_OK
               : hf_scope_fail(s, HF_INVALID, "order %.*s has no lines", HF_FMT(event->stream.id));
}

/* Written by the transaction that stores the events: together with them, or not at all. */
static enum hf_status list_order(struct hf_scope *s, struct hf_flow_call *call,
                                 const struct hf_stored_event *event, void *user)
{
    struct hf_put_item put = {.table = HF_STR("orders"),
                              .item = HF_ITEM(s, HF_S("id", event->stream.id),
                                              HF_S("state", hf_str_from(user)))};

    return hf_flow_write(s, call, &(struct hf_transact_write){.put = &put});
}

static enum hf_status reserve(struct hf_scope *s, struct hf_flow_call *call,
                              const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event reserved = {.stream = {HF_STR("stock"), HF_STR("apples")},
                                     .event = {.type = HF_STR("reserved")}};

    (void)event;
    (void)user;
    return hf_flow_emit(s, call, &reserved);
}

/* On a thread of the flows, at least once, after the events were stored. */
static enum hf_status send_mail(struct hf_scope *s, struct hf_flow_call *call,
                                const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event mailed = {.stream = {HF_STR("mail"), event->stream.id},
                                   .event = {.type = HF_STR("sent")}};

    (void)user;
    if (atomic_fetch_add(&mails, 1) == 0)
        return hf_scope_fail(s, HF_IO, "the mail server is tired");
    printf("mail for order %.*s, attempt %u\n", HF_FMT(event->stream.id), hf_flow_attempt(call));
    return hf_flow_emit(s, call, &mailed);
}

static enum hf_status take_back(struct hf_scope *s, struct hf_flow_call *call,
                                const struct hf_stored_event *event, void *user)
{
    (void)event;
    (void)user;
    return hf_flow_emit(s, call, &(struct hf_flow_event){.event = {.type = HF_STR("canceled")}});
}

/* ---- stock ---------------------------------------------------------------------------------- */

static enum hf_status count_stock(struct hf_scope *s, void *state,
                                  const struct hf_stored_event *event, void *user)
{
    int64_t *left = state;

    (void)s;
    (void)user;
    *left += hf_str_equal(event->type, HF_STR("reserved")) ? -1 : 1;
    return HF_OK;
}

static enum hf_status fill_stock(struct hf_scope *s, void *state, struct hf_event_stream_key stream,
                                 void *user)
{
    (void)s;
    (void)stream;
    (void)user;
    *(int64_t *)state = IN_STOCK;
    return HF_OK;
}

/* Called again if another process reserves the last ones meanwhile. */
static enum hf_status is_there(struct hf_scope *s, struct hf_flow_call *call,
                               const struct hf_stored_event *event, void *user)
{
    (void)user;
    return *(const int64_t *)hf_flow_state(call) > 0
               ? HF_OK
               : hf_scope_fail(s, HF_DENIED, "there are no %.*s left", HF_FMT(event->stream.id));
}

/* ---- what is reported ----------------------------------------------------------------------- */

static enum hf_status watch(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    (void)s;
    (void)user;
    (void)event;
    atomic_fetch_add(&seen, 1);
    return HF_OK;
}

static void tell(const struct hf_flow_output *output, void *user)
{
    static const char *const names[] = {"?",        "stored",        "refused", "canceled",
                                        "reverted", "revert failed", "done",    "tried again",
                                        "failed",   "observed",      "?"};

    (void)user;
    if (output->error)
        printf("%.*s/%.*s %s: %.*s\n", HF_FMT(output->event->stream.domain),
               HF_FMT(output->event->type), names[output->outcome], HF_FMT(output->error->message));
}

static enum hf_status place(struct hf_scope *s, struct hf_flows *flows, const char *id,
                            const char *lines, struct hf_flow_result *result)
{
    struct hf_flow_event order = {.stream = {HF_STR("order"), hf_str_from(id)},
                                  .event = {.type = HF_STR("placed"),
                                            .payload = hf_bytes_of(lines, strlen(lines))}};

    return hf_flows_submit(s, flows, &order, NULL, result);
}

static enum hf_status make_list(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table orders = {.table = HF_STR("orders"),
                                     .attributes = &id,
                                     .attributes_len = 1,
                                     .key_schema = &key,
                                     .key_schema_len = 1};

    return hf_table_ensure(s, db, &orders, NULL);
}

int main(void)
{
    static char placed[] = "placed", canceled[] = "canceled";
    const struct hf_aggregate stock = {.domain = HF_STR("stock"),
                                       .state_size = sizeof(int64_t),
                                       .init = fill_stock,
                                       .evolve = count_stock};
    const struct hf_flow given[] = {{.domain = HF_STR("order"),
                                     .type = HF_STR("placed"),
                                     .validate = has_lines,
                                     .apply = list_order,
                                     .consequents = reserve,
                                     .side_effect = send_mail,
                                     .effect_retries = 3,
                                     .compensate = take_back,
                                     .user = placed},
                                    {.domain = HF_STR("order"),
                                     .type = HF_STR("canceled"),
                                     .apply = list_order,
                                     .user = canceled},
                                    {.domain = HF_STR("stock"),
                                     .type = HF_STR("reserved"),
                                     .aggregate = &stock,
                                     .validate = is_there,
                                     .compensate = take_back},
                                    {.domain = HF_STR("mail"),
                                     .type = HF_STR("sent"),
                                     .compensate = take_back}};
    const struct hf_flow_filter mail = {.domain = HF_STR("mail")};
    const struct hf_flow_observer observer = {.filters = &mail, .filters_len = 1, .observe = watch};
    const struct hf_relay_options relay = {.size = sizeof(relay), .backoff_ms = 20};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_flow_result result, other;
    struct hf_reverted reverted;
    struct hf_aggregate_state left;
    struct hf_outbox *outbox;
    struct hf_events *store;
    struct hf_flows *flows;
    struct hf_db *db;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK || make_list(s, db) != HF_OK ||
        hf_events_open(s, db, NULL, &store) != HF_OK ||
        hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .table = HF_STR("effects")), &outbox) !=
            HF_OK ||
        hf_flows_open(s, store, outbox, given, 4, &observer, 1,
                      HF_OPTIONS(hf_flows_options, .on_output = tell, .relay = &relay),
                      &flows) != HF_OK)
        return s ? complain(s) : 1;

    if (place(s, flows, "1", "", &other) != HF_INVALID ||
        place(s, flows, "2", "apples", &result) != HF_OK)
        return complain(s);
    printf("order 2 and what follows: %zu events\n", result.events_len);
    for (int i = 0; i < PATIENCE && atomic_load(&seen) == 0; i++)
        if (hf_scope_sleep_ms(s, 5) != HF_OK)
            return complain(s);

    /* The rest of the stock; after that an order is refused, and nothing of it is stored. */
    if (place(s, flows, "3", "apples", &other) != HF_OK ||
        place(s, flows, "4", "apples", &other) != HF_OK ||
        place(s, flows, "5", "apples", &other) != HF_DENIED)
        return complain(s);

    /* Revert order 2 and everything that it caused: the mail, the reservation, the order. */
    if (hf_flows_revert(s, flows, result.events[0].id, &reverted) != HF_OK ||
        hf_aggregate_load(s, store, &stock, HF_STR("apples"), 0, &left) != HF_OK)
        return complain(s);
    printf("taken back with %zu others; in stock: %d\n", reverted.children_len,
           (int)*(int64_t *)left.state);

    if (hf_flows_shutdown(s, flows, 0) != HF_OK)
        return complain(s);
    hf_flows_close(flows);
    hf_outbox_close(outbox);
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
    return result.events_len == 2 && reverted.children_len == 2 ? 0 : 1;
}
