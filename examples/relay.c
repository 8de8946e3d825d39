/*
 * examples/relay.c: a relay delivers events of an outbox to a function of this program, which fails
 * at first; then another relay, in the background, delivers events to a file. Events of one key
 * stay in order.
 *
 *     cc relay.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/relay.h>

#include <stdio.h>

enum { STEPS = 3, PARCELS = 2 };

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

static enum hf_status emit_steps(struct hf_scope *s, struct hf_outbox *outbox)
{
    static const char *const types[STEPS] = {"parcel.packed", "parcel.sent", "parcel.delivered"};

    for (int step = 0; step < STEPS; step++)
        for (int parcel = 1; parcel <= PARCELS; parcel++) {
            struct hf_event event = {.type = hf_str_from(types[step]),
                                     .key = hf_scope_format(s, "parcel-%d", parcel)};
            enum hf_status status = hf_outbox_emit(s, outbox, &event, 1, NULL);

            if (status != HF_OK)
                return status;
        }
    return HF_OK;
}

/* ---- to a function -------------------------------------------------------------------------- */

struct screen {
    int failures; /* how many events fail at first */
    int shown;
};

/* Each event has an outcome of its own. With workers = 1 there is one call of this at a time. */
static enum hf_status show(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                           size_t len)
{
    struct screen *screen = self;

    (void)s;
    for (size_t i = 0; i < len; i++) {
        const struct hf_event *event = &deliveries[i].event->event;

        if (screen->failures > 0) {
            screen->failures--;
            deliveries[i].status = HF_IO;
            deliveries[i].error = HF_STR("the screen is dark");
            continue;
        }
        printf("%.*s %.*s\n", HF_FMT(event->key), HF_FMT(event->type));
        screen->shown++;
        deliveries[i].status = HF_OK;
    }
    return HF_OK;
}

static void tell(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                 const struct hf_error *error, void *user)
{
    (void)user;
    if (outcome == HF_RELAY_RETRY)
        printf("%.*s %.*s comes again: %.*s\n", HF_FMT(event->event.key), HF_FMT(event->event.type),
               HF_FMT(error->message));
}

/* Until nothing is due. Events that failed wait for their retry; this does not wait for them. */
static int drain_to_screen(struct hf_scope *s, struct hf_outbox *outbox)
{
    struct screen screen = {.failures = 1};
    struct hf_sink *sink = NULL;
    struct hf_relay *relay = NULL;
    enum hf_status status =
        hf_sink_new(s, HF_OPTIONS(hf_sink_ops, .name = "screen", .send = show), &screen, &sink);

    if (status == HF_OK)
        status = hf_relay_open(s, outbox, sink,
                               HF_OPTIONS(hf_relay_options, .workers = 1, .backoff_ms = 100,
                                          .on_ended = tell),
                               &relay);
    while (status == HF_OK && screen.shown < STEPS * PARCELS) {
        status = hf_relay_drain(s, relay, NULL);
        if (status == HF_OK)
            status = hf_scope_sleep_ms(s, 20);
    }
    hf_relay_close(relay);
    hf_sink_close(sink);
    return status == HF_OK ? 0 : complain(s);
}

/* ---- to a file, beside the program ---------------------------------------------------------- */

static int count_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    int lines = 0, c;

    while (file && (c = fgetc(file)) != EOF)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

static int relay_to_file(struct hf_scope *s, struct hf_outbox *outbox)
{
    struct hf_relay_metrics metrics = {0};
    struct hf_relay *relay = NULL;
    struct hf_sink *sink = NULL;
    enum hf_status status = hf_sink_open(s, HF_STR("file:events.jsonl"), &sink);

    if (status == HF_OK)
        status = hf_relay_open(s, outbox, sink, NULL, &relay);
    if (status == HF_OK)
        status = hf_relay_start(s, relay);
    if (status == HF_OK)
        status = emit_steps(s, outbox); /* which wakes the relay */
    while (status == HF_OK && metrics.delivered < STEPS * PARCELS) {
        status = hf_scope_sleep_ms(s, 5);
        hf_relay_metrics(relay, &metrics);
    }
    if (status == HF_OK)
        status = hf_relay_stop(s, relay); /* deliveries in flight may finish */
    hf_relay_close(relay);
    hf_sink_close(sink);
    if (status != HF_OK)
        return complain(s);
    printf("%d lines in events.jsonl, by %llu calls\n", count_lines("events.jsonl"),
           (unsigned long long)metrics.batches);
    return count_lines("events.jsonl") == STEPS * PARCELS ? 0 : 1;
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_outbox *outbox;
    struct hf_db *db;
    int failed = 1;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    hf_scope_timeout_ms(s, 30000);
    if (hf_outbox_open(s, db, NULL, &outbox) != HF_OK)
        return complain(s);
    if (emit_steps(s, outbox) == HF_OK && drain_to_screen(s, outbox) == 0)
        failed = relay_to_file(s, outbox);
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
    return failed;
}
