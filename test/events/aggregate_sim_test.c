/*
 * events/aggregate_sim_test.c: commands under bad luck, by seed.
 *
 * Hosts give commands for one account, each with an id, until it is known what became of it: those
 * who die give it again in their next life. Answers get lost, requests are done late or twice.
 * What has to hold, in every history:
 *
 *  (a) No event is appended on a state that was not that of its stream: nobody takes what is not
 *      there.
 *  (b) Each command is handled once: its events are there once, all of them.
 *  (c) A snapshot is of the events that it says: a state that began with one is the same as one
 *      that was made of all events.
 *  (d) Snapshots only get newer.
 */
#include "aggregate_kit.h"
#include "sim.h"

enum { HOSTS = 3, COMMANDS = 5, EVERY = 3 };

struct story {
    bool known[HOSTS][COMMANDS]; /* it was handled, or certainly refused */
    bool done[HOSTS][COMMANDS];
    uint64_t snapshot;                           /* the newest that was seen */
    uint64_t anew, repeated, refused, snapshots; /* over all histories */
};

static struct hf_events *open_by(struct actor *a)
{
    struct hf_events *store;

    while (hf_events_open(a->s, a->db, NULL, &store) != HF_OK) {
        hf_scope_reset(a->s);
        actor_sleep_ms(a, 20);
    }
    return store;
}

/* (d) */
static void look_at_snapshot(struct actor *a, struct hf_events *store)
{
    struct story *story = a->user;
    uint64_t before = story->snapshot;
    struct hf_snapshot snapshot;

    if (hf_snapshot_get(a->s, store, ACCOUNT("7"), hf_str_of(NULL, 0), &snapshot) != HF_OK)
        return;
    SIM_CHECK(a, snapshot.version >= before);
    if (snapshot.version > story->snapshot)
        story->snapshot = snapshot.version;
}

static void command(struct actor *a, struct hf_events *store, int host, int number)
{
    struct story *story = a->user;
    struct hf_aggregate account = accounts(EVERY);
    struct transfer transfer = {.cents = number % 2 ? 5 : 2, .events = 2};
    struct hf_command command = {.decide = number % 2 ? transfer_take : transfer_put,
                                 .user = &transfer};

    while (!story->known[host][number]) {
        struct hf_handle_options o = {.size = sizeof(o), .max_attempts = 20};
        struct hf_handled handled;
        enum hf_status status;

        hf_scope_reset(a->s);
        hf_scope_timeout_ms(a->s, 2000);
        o.id = hf_scope_format(a->s, "c-%d-%d", host, number);
        status = hf_aggregate_handle(a->s, store, &account, HF_STR("7"), &command, &o, &handled);
        if (status == HF_OK) {
            SIM_CHECK(a, ((struct account *)handled.state)->cents >= 0);
            SIM_CHECK(a, ((struct account *)handled.state)->events == handled.version);
            story->known[host][number] = story->done[host][number] = true;
            story->anew += handled.attempts > 1;
            story->repeated += handled.repeated;
            story->snapshots += handled.snapshot;
        } else if (status == HF_DENIED) {
            story->known[host][number] = true;
            story->refused++;
        }
        SIM_CHECK(a, status != HF_INVALID && status != HF_CORRUPT && status != HF_DUPLICATE &&
                         status != HF_TRIMMED);
    }
}

static void host(struct actor *a)
{
    struct hf_events *store = open_by(a);

    for (int i = 0; i < COMMANDS; i++) {
        command(a, store, a->name[0] - 'a', i);
        hf_scope_reset(a->s);
        look_at_snapshot(a, store);
    }
    hf_events_close(store);
}

static void check_end(struct sim *sim, struct story *story)
{
    struct hf_aggregate with = accounts(EVERY), without = accounts(0);
    struct hf_aggregate_state one, other;
    struct hf_scope *s = sim_scope(sim);
    struct hf_events *store;
    struct hf_events_page page;
    int64_t cents = 0;

    CHECK_OK(hf_events_open(s, sim_db(sim), NULL, &store));
    CHECK_OK(hf_events_read(s, store, ACCOUNT("7"),
                            HF_OPTIONS(hf_events_read_options, .limit = 500), &page));
    for (size_t i = 0; i < page.events_len; i++) { /* (a) */
        int64_t number = number_of(page.events[i].payload);

        cents += hf_str_equal(page.events[i].type, HF_STR("put")) ? number : -number;
        CHECK(cents >= 0);
        for (size_t k = 0; k < i; k++)
            CHECK(!hf_str_equal(page.events[i].id, page.events[k].id));
    }
    for (int h = 0; h < HOSTS; h++)
        for (int c = 0; c < COMMANDS; c++) { /* (b) */
            int events = c % 2 ? 1 : 2;

            for (int e = 1; e <= 3; e++) {
                struct hf_stored_event event;
                struct hf_str id = hf_scope_format(s, "c-%d-%d.%d", h, c, e);
                enum hf_status status = hf_events_get(s, store, id, &event);

                CHECK_INT(story->done[h][c] && e <= events ? HF_OK : HF_NOT_FOUND, status);
            }
        }
    CHECK_OK(hf_aggregate_load(s, store, &with, HF_STR("7"), 0, &one));
    CHECK_OK(hf_aggregate_load(s, store, &without, HF_STR("7"), 0, &other));
    CHECK_INT(page.version, one.version); /* (c) */
    CHECK_INT(((struct account *)other.state)->cents, ((struct account *)one.state)->cents);
    CHECK_INT(((struct account *)other.state)->events, ((struct account *)one.state)->events);
    CHECK_INT(cents, ((struct account *)one.state)->cents);
    hf_events_close(store);
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[HOSTS] = {"ann", "ben", "cyd"};
    struct story *sum = user;
    struct story story = {0};

    for (int i = 0; i < HOSTS; i++)
        sim_start(sim, names[i], host, &story);
    sim_run(sim);
    if (sim_failed(sim))
        return;
    check_end(sim, &story);
    sum->anew += story.anew;
    sum->repeated += story.repeated;
    sum->refused += story.refused;
    sum->snapshots += story.snapshots;
}

TEST(aggregate_sim, commands_are_handled_once_on_the_state_that_they_saw)
{
    const struct sim_luck luck = {.lost_requests = 20,
                                  .lost_answers = 40,
                                  .twice = 20,
                                  .later_again = 20,
                                  .refused = 10,
                                  .slow = 20,
                                  .pauses = 10,
                                  .deaths = 5,
                                  .slow_ms = 300,
                                  .pause_ms = 800,
                                  .wall_skew_ms = 3600000,
                                  .drift_ppm = 500};
    struct story sum = {0};

    sim_each(t, 150, &luck, history, &sum);
    if (sim_is_whole()) { /* histories that show nothing prove nothing */
        CHECK(sum.anew > 100);
        CHECK(sum.repeated > 20);
        CHECK(sum.refused > 5);
        CHECK(sum.snapshots > 100);
    }
}
