/*
 * test/events/append_sim_test.c: appending under bad luck, by seed. Hosts append events with ids, a
 * few at a time, or more than a transaction takes, or in a transaction of their own, to streams
 * that others append to as well; and repeat each until they are told that it is done, also after
 * they have died in the middle of it.
 *
 * What has to hold in the end:
 *
 *  (1) Versions follow each other from 1 on, and so do the hashes.
 *  (2) Each append is there once, its events one behind the other, where its host was told.
 *  (3) Nothing else is there.
 */
#include <stdio.h>

#include "events/store/events.h"
#include "events_kit.h"
#include "sim.h"

enum { HOSTS = 3, APPENDS = 4, STREAMS = 2, LARGE = 60, EVENTS_MAX = HOSTS * APPENDS * LARGE };

static const struct hf_str table = {"events", 6};

/* One append, as its host knows it. */
struct entry {
    int stream, kind;
    size_t events;
    uint64_t first; /* as it was told; 0: not yet */
    bool begun;
};

enum { SOME, MANY, TOGETHER, KINDS };

struct ledger {
    struct entry entries[HOSTS][APPENDS];
    uint64_t repeated, large, built; /* over all histories */
};

static struct hf_event_stream_key stream_of(int number)
{
    return (struct hf_event_stream_key){HF_STR("s"), number ? HF_STR("one") : HF_STR("other")};
}

static struct hf_events *open_by(struct actor *a)
{
    struct hf_events *store;

    while (hf_events_open(a->s, a->db, HF_OPTIONS(hf_events_options, .table = table), &store) !=
           HF_OK)
        hf_scope_reset(a->s);
    return store;
}

/* ---- hosts ---------------------------------------------------------------------------------- */

struct attempt {
    struct hf_events *store;
    struct hf_append append;
    struct hf_appended done;
    struct ledger *ledger;
};

static enum hf_status build(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct attempt *attempt = user;

    attempt->ledger->built++;
    return hf_events_append_into(s, attempt->store, tx, &attempt->append, 1, NULL, &attempt->done);
}

static void append_it(struct actor *a, struct hf_events *store, struct ledger *ledger, int host,
                      int number)
{
    struct entry *entry = &ledger->entries[host][number];
    struct hf_new_event *events = hf_scope_alloc(a->s, entry->events * sizeof(*events));
    struct attempt attempt = {.store = store,
                              .append = {.stream = stream_of(entry->stream),
                                         .events = events,
                                         .events_len = entry->events},
                              .ledger = ledger};
    struct hf_tx *before = hf_scope_tx(a->s);
    enum hf_status status;

    SIM_CHECK(a, !before);
    for (size_t i = 0; i < entry->events; i++)
        events[i] =
            (struct hf_new_event){.type = HF_STR("t"),
                                  .id = hf_scope_format(a->s, "%d-%d-%zu", host, number, i)};
    status = entry->kind == TOGETHER
                 ? hf_tx_run(a->s, a->db, build, &attempt, NULL)
                 : hf_events_append(a->s, store, &attempt.append, 1, NULL, &attempt.done);
    if (status != HF_OK) {
        SIM_CHECK(a, status != HF_DUPLICATE && status != HF_CORRUPT && status != HF_INVALID);
        actor_sleep_ms(a, (uint32_t)sim_random_below(a->sim, 50));
        return;
    }
    SIM_CHECK(a, attempt.done.last == attempt.done.first + entry->events - 1);
    SIM_CHECK(a, !entry->first || entry->first == attempt.done.first);
    entry->first = attempt.done.first;
    ledger->repeated += attempt.done.repeated;
    ledger->large += entry->kind == MANY;
}

static void host(struct actor *a)
{
    struct ledger *ledger = a->user;
    struct hf_events *store = open_by(a);
    int number = a->name[0] - 'a';

    for (int i = 0; i < APPENDS; i++) {
        struct entry *entry = &ledger->entries[number][i];

        if (!entry->begun) {
            entry->begun = true;
            entry->stream = (int)sim_random_below(a->sim, STREAMS);
            entry->kind = (int)sim_random_below(a->sim, KINDS);
            entry->events = entry->kind == MANY ? LARGE : 1 + sim_random_below(a->sim, 3);
        }
        for (int again = 0; !entry->first || (again == 1 && sim_random_below(a->sim, 4) == 0);
             again += entry->first > 0) {
            hf_scope_reset(a->s);
            append_it(a, store, ledger, number, i);
        }
    }
    hf_events_close(store);
}

/* ---- what has to hold ----------------------------------------------------------------------- */

static void check_chain(struct actor *a, const struct hf_stored_event *event,
                        uint8_t before[EVENTS_HASH])
{
    uint8_t content[EVENTS_HASH], hash[EVENTS_HASH];

    hf__events_content(event, content);
    hf__events_chain(event, content, before, hash);
    SIM_CHECK(a, event->hash.len == EVENTS_HASH &&
                     memcmp(event->hash.ptr, hash, EVENTS_HASH) == 0); /* (1) */
    memcpy(before, hash, EVENTS_HASH);
}

static void auditor(struct actor *a)
{
    struct ledger *ledger = a->user;
    struct hf_events *store = open_by(a);
    size_t expected = 0, found = 0;

    for (int host = 0; host < HOSTS; host++)
        for (int i = 0; i < APPENDS; i++)
            expected += ledger->entries[host][i].events;
    for (int stream = 0; stream < STREAMS; stream++) {
        uint8_t before[EVENTS_HASH] = {0};
        struct hf_events_page page;

        SIM_CHECK(a, hf_events_read(a->s, store, stream_of(stream),
                                    HF_OPTIONS(hf_events_read_options, .limit = EVENTS_MAX + 1),
                                    &page) == HF_OK);
        SIM_CHECK(a, page.version == page.events_len);
        for (size_t i = 0; i < page.events_len; i++) {
            int host, number;
            unsigned event;

            SIM_CHECK(a, page.events[i].version == i + 1);
            check_chain(a, &page.events[i], before);
            SIM_CHECK(a, sscanf(page.events[i].id.ptr, "%d-%d-%u", &host, &number, &event) == 3);
            SIM_CHECK(a, ledger->entries[host][number].stream == stream);
            SIM_CHECK(a, ledger->entries[host][number].first + event == i + 1); /* (2) */
        }
        found += page.events_len;
    }
    SIM_CHECK(a, found == expected); /* (3) */
    hf_events_close(store);
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[HOSTS] = {"a", "b", "c"};
    struct ledger *sum = user, *ledger = hf_scope_alloc(sim_scope(sim), sizeof(*ledger));

    memset(ledger, 0, sizeof(*ledger));
    for (int i = 0; i < HOSTS; i++)
        sim_start(sim, names[i], host, ledger);
    sim_run(sim);
    sim_calm(sim);
    if (!sim_failed(sim)) {
        sim_start(sim, "the auditor", auditor, ledger);
        sim_run(sim);
    }
    sum->repeated += ledger->repeated;
    sum->large += ledger->large;
    sum->built += ledger->built;
}

static const struct sim_luck bad_luck = {.lost_requests = 20,
                                         .lost_answers = 20,
                                         .twice = 10,
                                         .later_again = 10,
                                         .refused = 10,
                                         .slow = 20,
                                         .pauses = 10,
                                         .deaths = 10,
                                         .slow_ms = 200,
                                         .pause_ms = 500,
                                         .wall_skew_ms = 3000,
                                         .drift_ppm = 500};

TEST(append_sim, each_append_is_there_once)
{
    struct ledger sum = {.repeated = 0};

    sim_each(t, 120, &bad_luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.repeated > 30 && sum.large > 150 && sum.built > 300));
}

/* Nothing goes wrong but that all run at the same time. */
TEST(append_sim, each_append_is_there_once_among_others)
{
    const struct sim_luck luck = {.slow = 300, .slow_ms = 40, .wall_skew_ms = 5};
    struct ledger sum = {.repeated = 0};

    sim_each(t, 80, &luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.large > 100 && sum.built > 200));
}
