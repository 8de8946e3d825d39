/*
 * examples/events.c: events of orders are appended to streams, never changed, and read by stream,
 * in the global order, and as a tree of causes. Two clerks act on the same version, and the second
 * one gets an error.
 *
 *     cc events.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/events.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

static struct hf_bytes bytes_of(struct hf_str text)
{
    return hf_bytes_of(text.ptr, text.len);
}

/* Append one event to an order that is at `version`. */
static enum hf_status append(struct hf_scope *s, struct hf_events *store, struct hf_str order,
                             uint64_t version, const struct hf_new_event *event,
                             const struct hf_stored_event *cause, struct hf_appended *appended)
{
    struct hf_append append = {.stream = {HF_STR("order"), order},
                               .expect = HF_EXPECT_VERSION,
                               .version = version,
                               .events = event,
                               .events_len = 1};

    return hf_events_append(s, store, &append, 1, HF_OPTIONS(hf_append_options, .parent = cause),
                            appended);
}

/* ---- what happens --------------------------------------------------------------------------- */

/* An order is placed. A clerk cancels it while another ships it: both have seen version 1. */
static int two_clerks(struct hf_scope *s, struct hf_events *store, struct hf_str *placed)
{
    struct hf_new_event event = {.type = HF_STR("placed"),
                                 .payload = bytes_of(HF_STR("{\"pieces\": 2}"))};
    struct hf_appended appended;

    if (append(s, store, HF_STR("7"), 0, &event, NULL, &appended) != HF_OK)
        return complain(s);
    *placed = appended.ids[0];
    event = (struct hf_new_event){.type = HF_STR("shipped")};
    if (append(s, store, HF_STR("7"), 1, &event, NULL, &appended) != HF_OK)
        return complain(s);
    event.type = HF_STR("canceled");
    if (append(s, store, HF_STR("7"), 1, &event, NULL, &appended) != HF_CONDITION)
        return complain(s);
    printf("too late: %s\n", hf_scope_error_text(s)); /* the message says at which version it is */
    return appended.last == 2 ? 0 : 1;
}

/* A request with a number of its own may be repeated: it happens once. */
static int once_only(struct hf_scope *s, struct hf_events *store, struct hf_str placed)
{
    struct hf_new_event paid = {.type = HF_STR("paid"),
                                .id = HF_STR("payment-4711"),
                                .payload = bytes_of(HF_STR("{\"cents\": 990}"))};
    struct hf_append ledger = {.stream = {HF_STR("ledger"), HF_STR("2026")},
                               .events = &paid,
                               .events_len = 1};
    struct hf_append_options options = {.size = sizeof(options)};
    struct hf_appended first, second;
    struct hf_stored_event cause;

    if (hf_events_get(s, store, placed, &cause) != HF_OK)
        return complain(s);
    options.parent = &cause; /* fills in causation and correlation */
    if (hf_events_append(s, store, &ledger, 1, &options, &first) != HF_OK ||
        hf_events_append(s, store, &ledger, 1, &options, &second) != HF_OK)
        return complain(s);
    printf("payment-4711 is version %llu%s\n", (unsigned long long)second.last,
           second.repeated ? ", as it was before" : "");
    return second.repeated && second.last == first.last ? 0 : 1;
}

/* ---- looking at it -------------------------------------------------------------------------- */

static void print(const struct hf_stored_event *event)
{
    printf("  %.*s/%.*s %llu: %.*s %.*s\n", HF_FMT(event->stream.domain), HF_FMT(event->stream.id),
           (unsigned long long)event->version, HF_FMT(event->type), (int)event->payload.len,
           event->payload.len ? (const char *)event->payload.ptr : "");
}

static int read_order(struct hf_scope *s, struct hf_events *store)
{
    struct hf_events_page page = {.next = 1};

    puts("order 7:");
    do {
        if (hf_events_read(s, store, (struct hf_event_stream_key){HF_STR("order"), HF_STR("7")},
                           HF_OPTIONS(hf_events_read_options, .from = page.next), &page) != HF_OK)
            return complain(s);
        for (size_t i = 0; i < page.events_len; i++)
            print(&page.events[i]);
    } while (page.next);
    return page.version == 2 ? 0 : 1;
}

static int read_all(struct hf_scope *s, struct hf_events *store)
{
    const struct hf_stored_event *events;
    struct hf_events_reader *reader;
    size_t count = 0, len;
    enum hf_status status;

    puts("all, in an order that never changes:");
    if (hf_events_reader_open(s, store, NULL, &reader) != HF_OK)
        return complain(s);
    while ((status = hf_events_reader_next(s, reader, &events, &len)) == HF_OK && len) {
        for (size_t i = 0; i < len; i++)
            print(&events[i]);
        count += len;
    }
    hf_events_reader_close(reader); /* another reader can continue from its position */
    return status == HF_OK && count == 3 ? 0 : 1;
}

static int what_followed(struct hf_scope *s, struct hf_events *store, struct hf_str id)
{
    struct hf_event_tree tree;

    if (hf_events_tree(s, store, id, 0, &tree) != HF_OK)
        return complain(s);
    puts("what followed from the order:");
    for (size_t i = 0; i < tree.children_len; i++)
        print(&tree.children[i].event);
    return tree.children_len == 1 ? 0 : 1;
}

/* The hash chain shows that no event was changed. */
static int verify(struct hf_scope *s, struct hf_events *store)
{
    struct hf_events_verified verified;

    if (hf_events_verify(s, store, NULL, NULL, &verified) != HF_OK)
        return complain(s);
    printf("%llu events of %llu streams are as they were written\n",
           (unsigned long long)verified.events, (unsigned long long)verified.streams);
    return verified.events == 3 ? 0 : 1;
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_events *store;
    struct hf_str placed;
    struct hf_db *db;
    int failed;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    if (hf_events_open(s, db, NULL, &store) != HF_OK)
        return complain(s);
    failed = two_clerks(s, store, &placed) || once_only(s, store, placed) || read_order(s, store) ||
             read_all(s, store) || what_followed(s, store, placed) || verify(s, store);
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
    return failed;
}
