/*
 * patterns/killer_test.c: handlers that end their process, in real processes: one after the other,
 * until one ends well. Each opens the same directory and handles what there is.
 */
#include <holdfast/bus.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>

#include "killer_kit.h"

enum { ATTEMPTS = 3, DEATHS_MAX = 12, WAIT_MS = 20000 };

/* ---- the child ------------------------------------------------------------------------------ */

static enum hf_status handle(struct hf_scope *s, const struct hf_event *event, void *user)
{
    (void)s, (void)user;
    if (hf_str_equal(event->type, HF_STR("deadly")))
        _exit(KILLED);
    return HF_OK;
}

static int child_main(const char *mode)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = killer_db(s, getenv("HF_KILLER_URL"));
    struct hf_relay_options options = {.size = sizeof(options),
                                       .lease_ms = KILLER_LEASE_MS,
                                       .poll_ms = 20,
                                       .backoff_ms = 10,
                                       .max_attempts = ATTEMPTS,
                                       .workers = 2,
                                       .competing = strcmp(mode, "competing") == 0};
    struct hf_outbox *outbox;
    struct hf_outbox_stats stats = {.pending = 1};
    struct hf_bus *bus;

    if (hf_outbox_open(s, db, NULL, &outbox) != HF_OK ||
        hf_bus_open(s, outbox, HF_OPTIONS(hf_bus_options, .relay = &options), &bus) != HF_OK ||
        hf_bus_on(s, bus, HF_STR("deadly"), handle, NULL) != HF_OK ||
        hf_bus_on(s, bus, HF_STR("healthy"), handle, NULL) != HF_OK ||
        hf_bus_start(s, bus) != HF_OK) {
        fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
        return 2;
    }
    for (int i = 0; i < WAIT_MS / 5 && stats.pending; i++) {
        hf_scope_reset(s);
        killer_sleep_ms(5);
        if (hf_outbox_stats(s, outbox, 0, &stats) != HF_OK)
            return 3;
    }
    hf_scope_timeout_ms(s, WAIT_MS);
    if (stats.pending || hf_bus_stop(s, bus) != HF_OK)
        return 4;
    hf_bus_close(bus);
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
    return 0;
}

/* Before main(): a child is no test. */
__attribute__((constructor)) static void be_a_child(void)
{
    const char *mode = getenv("HF_KILLER_BUS");

    if (mode)
        _exit(child_main(mode));
}

/* ---- the parent ----------------------------------------------------------------------------- */

static void put(struct hf_scope *s, struct hf_outbox *outbox, const char *type, const char *key)
{
    struct hf_event event = {.type = hf_str_from(type), .key = hf_str_from(key)};

    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
}

static void one_is_deadly(struct test *t, const char *mode)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str url = hf_scope_format(s, "embedded:%s/db", test_quick_directory(t));
    struct hf_db *db = killer_db(s, url.ptr);
    struct hf_outbox *outbox;
    struct hf_outbox_stats stats;
    struct hf_event_list failed;
    struct hf_outbox_event again;
    int deaths = 0;

    CHECK_OK(hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .buckets = 4), &outbox));
    put(s, outbox, "healthy", "a");
    put(s, outbox, "deadly", "a");
    put(s, outbox, "healthy", "a"); /* behind it */
    for (int i = 0; i < 20; i++)
        put(s, outbox, "healthy", (const char *[]){"b", "c", "d", ""}[i % 4]);
    hf_outbox_close(outbox);
    hf_db_close(db);
    while (deaths < DEATHS_MAX && killer_run("HF_KILLER_BUS", mode, url))
        deaths++;
    CHECK(deaths >= ATTEMPTS && deaths <= ATTEMPTS + 1); /* the first is not counted */

    db = killer_db(s, url.ptr);
    CHECK_OK(hf_outbox_open(s, db, NULL, &outbox));
    CHECK_OK(hf_outbox_stats(s, outbox, 0, &stats));
    CHECK_INT(0, stats.pending);
    CHECK_INT(1, stats.failed);
    CHECK_OK(hf_outbox_failed(s, outbox, NULL, &failed));
    CHECK_INT(1, failed.events_len);
    CHECK_STR("deadly", failed.events[0].event.type);
    CHECK_INT(ATTEMPTS, failed.events[0].crashes);
    CHECK_INT(ATTEMPTS, failed.events[0].attempts);
    CHECK(strstr(failed.events[0].error_text.ptr, "process ended") != NULL);
    CHECK_OK(hf_outbox_retry(s, outbox, &failed.events[0].event.id, 1, NULL));
    CHECK_OK(hf_outbox_get(s, outbox, failed.events[0].event.id, &again));
    CHECK_INT(0, again.crashes); /* it begins anew */
    CHECK_INT(0, again.attempts);
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(killer, the_bus_puts_aside_what_ends_its_process)
{
    one_is_deadly(t, "ordered");
}

/* Claims ahead of it that were not begun count as nothing. */
TEST(killer, so_does_a_competing_one)
{
    one_is_deadly(t, "competing");
}
