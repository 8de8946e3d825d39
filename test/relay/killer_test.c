/*
 * relay/killer_test.c: handlers that end their process, in real processes: one after the other,
 * until one ends well. Each opens the same directory and handles what there is.
 */
#include <holdfast/bus.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>

#include "killer_kit.h"

enum { ATTEMPTS = 3, DEATHS_MAX = 12, WAIT_MS = 20000 };

/* Words of a mode: "competing"; "once": one attempt; "exit": the process ends by exit(), as programs
 * do that close nothing. */
static bool has(const char *mode, const char *word)
{
    return strstr(mode, word) != NULL;
}

static uint32_t attempts_of(const char *mode)
{
    return has(mode, "once") ? 1 : ATTEMPTS;
}

/* ---- the child ------------------------------------------------------------------------------ */

static enum hf_status handle(struct hf_scope *s, const struct hf_event *event, void *user)
{
    (void)s;
    if (hf_str_equal(event->type, HF_STR("deadly"))) {
        if (has(user, "exit"))
            exit(KILLED);
        _exit(KILLED);
    }
    return HF_OK;
}

CHILD(bus)
{
    const char *mode = args[0];
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = killer_db(s, args[1]);
    struct hf_relay_options options = {.size = sizeof(options),
                                       .lease_ms = KILLER_LEASE_MS,
                                       .poll_ms = 20,
                                       .backoff_ms = 10,
                                       .max_attempts = attempts_of(mode),
                                       .workers = 2,
                                       .competing = has(mode, "competing")};
    struct hf_outbox *outbox;
    struct hf_outbox_stats stats = {.pending = 1};
    char *words = strdup(mode);
    struct hf_bus *bus;

    if (has(mode, "long")) /* so that nobody waits for its end */
        options.lease_ms = 2 * WAIT_MS;
    if (hf_outbox_open(s, db, NULL, &outbox) != HF_OK ||
        hf_bus_open(s, outbox, HF_OPTIONS(hf_bus_options, .relay = &options), &bus) != HF_OK ||
        hf_bus_on(s, bus, HF_STR("deadly"), handle, words) != HF_OK ||
        hf_bus_on(s, bus, HF_STR("healthy"), handle, words) != HF_OK ||
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
    free(words);
    return 0;
}

/* ---- the parent ----------------------------------------------------------------------------- */

static void put(struct hf_scope *s, struct hf_outbox *outbox, const char *type, const char *key)
{
    struct hf_event event = {.type = hf_str_from(type), .key = hf_str_from(key)};

    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
}

/* So many of them end their process. */
static void some_are_deadly(struct test *t, const char *mode, int deadly)
{
    int attempts = (int)attempts_of(mode);
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
    for (int i = 0; i < deadly; i++)
        put(s, outbox, "deadly", (const char *[]){"a", "b", "e"}[i % 3]);
    put(s, outbox, "healthy", "a"); /* behind it */
    for (int i = 0; i < 20; i++)
        put(s, outbox, "healthy", (const char *[]){"b", "c", "d", ""}[i % 4]);
    hf_outbox_close(outbox);
    hf_db_close(db);
    while (deaths < DEATHS_MAX && killer_run("bus", mode, url))
        deaths++;
    CHECK(deaths >= attempts + deadly - 1);   /* one death may count for several */
    CHECK(deaths <= (attempts + 1) * deadly); /* the first of each may not be counted */

    db = killer_db(s, url.ptr);
    CHECK_OK(hf_outbox_open(s, db, NULL, &outbox));
    CHECK_OK(hf_outbox_stats(s, outbox, 0, &stats));
    CHECK_INT(0, stats.pending);
    CHECK_INT(deadly, stats.failed);
    CHECK_OK(hf_outbox_failed(s, outbox, NULL, &failed));
    CHECK_INT(deadly, failed.events_len);
    for (size_t i = 0; i < failed.events_len; i++) {
        CHECK_STR("deadly", failed.events[i].event.type);
        CHECK_INT(attempts, failed.events[i].crashes);
        CHECK_INT(attempts, failed.events[i].attempts);
        CHECK(strstr(failed.events[i].error_text.ptr, "process ended") != NULL);
    }
    CHECK_OK(hf_outbox_retry(s, outbox, &failed.events[0].event.id, 1, NULL));
    CHECK_OK(hf_outbox_get(s, outbox, failed.events[0].event.id, &again));
    CHECK_INT(0, again.crashes); /* it starts over */
    CHECK_INT(0, again.attempts);
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(killer, the_bus_makes_a_dead_letter_of_what_ends_its_process)
{
    some_are_deadly(t, "ordered", 1);
}

/* Claims ahead of it that were not begun count as nothing. */
TEST(killer, so_does_a_competing_one)
{
    some_are_deadly(t, "competing", 1);
}

/* Two that were under way together: each is found out, and no healthy one is taken for them. */
TEST(killer, two_of_one_window)
{
    some_are_deadly(t, "ordered", 2);
}

TEST(killer, two_of_one_window_of_competing_ones)
{
    some_are_deadly(t, "competing", 2);
}

/* One attempt: the first death is not known, the second is the one that counts. */
TEST(killer, with_one_attempt)
{
    some_are_deadly(t, "ordered once", 1);
}

TEST(killer, with_one_attempt_of_competing_ones)
{
    some_are_deadly(t, "competing once", 1);
}

/* exit() without closing anything, with a lease that nobody could wait for: whoever opens the
 * directory next knows that its holder is gone. */
TEST(killer, who_exits_without_closing)
{
    some_are_deadly(t, "ordered exit long", 1);
}

TEST(killer, who_exits_without_closing_of_competing_ones)
{
    some_are_deadly(t, "competing exit long", 1);
}
