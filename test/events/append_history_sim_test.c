/*
 * test/events/append_history_sim_test.c: appends under bad luck. Answers get lost, requests are
 * done late or twice, writers are paused and die, their clocks differ by seconds; a sweeper takes
 * away what large appends have staged, whether their writer is dead or slow.
 *
 * Writers append to the same streams: with ids that they chose (and then again and again, until
 * they know what became of it, also in their next life), with ids of the store's, with an exact
 * version expected, to several streams, and more than fits into a transaction. What has to hold, in
 * every history:
 *
 *  (1) Versions of a stream have no gap and no duplicate, for whoever reads at any time; and nobody
 *      sees a part of an append.
 *  (2) Who was told that it happened finds it in the end, at the versions it was told; who was told
 *      that it did not, and not that it may have, finds nothing; the rest is there once or not at
 *      all. The events of an append are all there or none, in all its streams.
 *  (3) Appending again what is there says so, with the versions of the first time, however late.
 *  (4) An exact version that was expected is refused only when the stream was at another one, and
 *      the refusal tells which; it never lets two through.
 *  (5) A reader of the global order, who is killed and goes on behind the last event that it noted,
 *      has noted in the end exactly the global order. It never contradicts streams.
 *  (6) The chain is whole, and nothing is staged after a last sweep.
 */
#include <holdfast/events.h>

#include <stdio.h>
#include <string.h>

#include "sim.h"

enum {
    WRITERS = 3,
    OPS = 5, /* of each writer */
    STREAMS = 3,
    LARGE = 56, /* events: with their ids more than a transaction has */
    PAYLOAD = 24,
    EVENTS_MAX = WRITERS * (OPS + 1) * (LARGE + 8)
};

enum kind { CHOSEN, OWN, EXACT };
enum fate { NOT_BEGUN, BEGUN, DONE, REFUSED, UNKNOWN };

struct op {
    enum kind kind;
    enum fate fate;
    size_t len; /* streams */
    int stream[STREAMS];
    uint32_t count[STREAMS];
    uint64_t expected;
    uint64_t first[STREAMS];
    uint32_t found[STREAMS];
};

struct noted {
    char position[HF_POSITION_LEN];
    uint8_t writer, number, stream, index;
};

struct model {
    struct op ops[WRITERS][OPS];
    int writing;                  /* writers that have not ended */
    struct noted log[EVENTS_MAX]; /* of the reader of all */
    size_t log_len;
    uint64_t seen[STREAMS];                                        /* versions in it */
    int done, refused, unknown, again, large, swept, lives, reads; /* over all histories */
};

static const struct hf_str table = {"events", 6};

static struct hf_events *open_by(struct actor *a)
{
    struct hf_events *store;

    while (hf_events_open(a->s, a->db,
                          HF_OPTIONS(hf_events_options, .table = table, .no_create = true),
                          &store) != HF_OK) {
        SIM_CHECK(a, hf_scope_error(a->s)->status != HF_INVALID);
        hf_scope_reset(a->s);
    }
    return store;
}

static struct hf_event_stream_key stream_of(struct hf_scope *s, int stream)
{
    return (struct hf_event_stream_key){HF_STR("sim"), hf_scope_format(s, "%d", stream)};
}

/* ---- writers -------------------------------------------------------------------------------- */

static void plan(struct sim *sim, struct op *op)
{
    int first = (int)sim_random_below(sim, STREAMS);
    uint64_t dice = sim_random_below(sim, 30);

    op->kind = sim_random_below(sim, 4) == 0 ? OWN : CHOSEN;
    op->len = dice < 8 ? 1 + sim_random_below(sim, STREAMS) : 1;
    for (size_t i = 0; i < op->len; i++) {
        op->stream[i] = (first + (int)i) % STREAMS;
        op->count[i] = 1 + (uint32_t)sim_random_below(sim, 3);
    }
    if (dice == 0 || dice == 9)
        op->count[0] += LARGE;
    if (dice >= 20)
        op->kind = EXACT;
}

static struct hf_append *appends_of(struct actor *a, const struct op *op, int writer, int number)
{
    struct hf_append *appends = hf_scope_alloc(a->s, op->len * sizeof(*appends));

    for (size_t i = 0; i < op->len; i++) {
        struct hf_new_event *events = hf_scope_alloc(a->s, op->count[i] * sizeof(*events));

        SIM_CHECK(a, appends && events);
        for (uint32_t j = 0; j < op->count[i]; j++) {
            struct hf_str text =
                hf_scope_format(a->s, "w%d-%d-%d-%02u", writer, number, op->stream[i], j);

            events[j] = (struct hf_new_event){.type = HF_STR("t"),
                                              .payload = hf_bytes_of(text.ptr, text.len)};
            if (op->kind != OWN)
                events[j].id = text;
        }
        appends[i] =
            (struct hf_append){.stream = stream_of(a->s, op->stream[i]),
                               .expect = op->kind == EXACT ? HF_EXPECT_VERSION : HF_EXPECT_ANY,
                               .version = op->expected,
                               .events = events,
                               .events_len = op->count[i]};
    }
    return appends;
}

static void origin_of(struct actor *a, const struct hf_stored_event *event, struct noted *noted)
{
    char text[PAYLOAD] = "";
    int writer, number, stream;
    unsigned index;

    SIM_CHECK(a, event->payload.len < sizeof(text));
    memcpy(text, event->payload.ptr, event->payload.len);
    SIM_CHECK(a, sscanf(text, "w%d-%d-%d-%u", &writer, &number, &stream, &index) == 4);
    SIM_CHECK(a, event->position.len == HF_POSITION_LEN);
    SIM_CHECK(a, event->stream.id.len == 1 && event->stream.id.ptr[0] == '0' + stream);
    *noted = (struct noted){.writer = (uint8_t)writer,
                            .number = (uint8_t)number,
                            .stream = (uint8_t)stream,
                            .index = (uint8_t)index};
    memcpy(noted->position, event->position.ptr, HF_POSITION_LEN);
}

/* The version that the stream was at, at some time before. */
static bool look(struct actor *a, struct hf_events *store, struct op *op)
{
    struct hf_events_page page;

    hf_scope_reset(a->s);
    if (hf_events_read(a->s, store, stream_of(a->s, op->stream[0]),
                       HF_OPTIONS(hf_events_read_options, .backward = true, .limit = 1),
                       &page) != HF_OK)
        return false;
    op->expected = page.version;
    if (op->len > 1)
        op->len = 1; /* one expectation, one stream */
    return true;
}

/* One attempt: true when it is known what became of it, or never will be. */
static bool try_op(struct actor *a, struct model *m, struct hf_events *store, int writer,
                   int number)
{
    struct op *op = &m->ops[writer][number];
    struct hf_appended results[STREAMS];
    enum hf_status status;

    hf_scope_reset(a->s);
    status =
        hf_events_append(a->s, store, appends_of(a, op, writer, number), op->len, NULL, results);
    SIM_CHECK(a, status != HF_DUPLICATE && status != HF_INVALID && status != HF_LIMIT &&
                     status != HF_CORRUPT && status != HF_NOT_FOUND && status != HF_DELETED);
    if (status == HF_OK) {
        for (size_t i = 0; i < op->len; i++) {
            SIM_CHECK(a, results[i].last - results[i].first + 1 == op->count[i]);
            SIM_CHECK(a, op->kind != EXACT || results[i].first == op->expected + 1); /* (4) */
            op->first[i] = results[i].first;
        }
        op->fate = DONE;
        return true;
    }
    if (status == HF_CONDITION) { /* (4) */
        SIM_CHECK(a, op->kind == EXACT && results[0].last != op->expected);
        SIM_CHECK(a, !hf_scope_error(a->s)->may_have_happened);
        op->fate = REFUSED;
        return true;
    }
    if (op->kind == OWN && hf_scope_error(a->s)->may_have_happened) {
        op->fate = UNKNOWN;
        return true;
    }
    return false;
}

/* (3) */
static void append_again(struct actor *a, struct model *m, struct hf_events *store, int writer,
                         int number)
{
    struct op *op = &m->ops[writer][number];
    struct hf_appended results[STREAMS];

    if (op->fate != DONE || op->kind == OWN)
        return;
    hf_scope_reset(a->s);
    if (hf_events_append(a->s, store, appends_of(a, op, writer, number), op->len, NULL, results) !=
        HF_OK) {
        enum hf_status status = hf_scope_error(a->s)->status;

        SIM_CHECK(a, status != HF_CONDITION && status != HF_DUPLICATE);
        return;
    }
    for (size_t i = 0; i < op->len; i++)
        SIM_CHECK(a, results[i].repeated && results[i].first == op->first[i] &&
                         results[i].last == op->first[i] + op->count[i] - 1);
    m->again++;
}

static void writer(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);
    int me = a->name[0] - 'a';

    m->lives++;
    for (int i = 0; i < OPS; i++) {
        struct op *op = &m->ops[me][i];

        if (op->fate == BEGUN && op->kind == OWN)
            op->fate = UNKNOWN; /* in another life */
        while (op->fate == NOT_BEGUN) {
            plan(a->sim, op);
            if (op->kind != EXACT || look(a, store, op))
                op->fate = BEGUN;
        }
        while (op->fate == BEGUN && !try_op(a, m, store, me, i))
            actor_sleep_ms(a, 10);
        if (sim_random_below(a->sim, 4) == 0)
            append_again(a, m, store, me, (int)sim_random_below(a->sim, (uint64_t)i + 1));
    }
    m->writing--;
    hf_events_close(store);
}

/* ---- readers, and the sweeper --------------------------------------------------------------- */

/* (1): at any time a stream ends where an append does. */
static void stream_reader(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);

    while (m->writing > 0) {
        int stream = (int)sim_random_below(a->sim, STREAMS);
        bool backward = sim_random_below(a->sim, 2) != 0;
        struct hf_events_page page;
        struct noted noted;

        actor_sleep_ms(a, 30);
        hf_scope_reset(a->s);
        if (hf_events_read(a->s, store, stream_of(a->s, stream),
                           HF_OPTIONS(hf_events_read_options, .limit = 10000, .backward = backward),
                           &page) != HF_OK)
            continue;
        SIM_CHECK(a, page.next == 0);
        for (size_t i = 0; i < page.events_len; i++)
            SIM_CHECK(a, page.events[i].version == (backward ? page.events_len - i : i + 1));
        if (page.events_len == 0)
            continue;
        m->reads++;
        for (int end = 0; end < 2; end++) {
            const struct op *op;
            bool first = (end == 0) != backward;
            size_t part = 0;

            origin_of(a, &page.events[end ? page.events_len - 1 : 0], &noted);
            op = &m->ops[noted.writer][noted.number];
            while (part + 1 < op->len && op->stream[part] != noted.stream)
                part++;
            SIM_CHECK(a, noted.index == (first ? 0 : op->count[part] - 1));
        }
    }
    hf_events_close(store);
}

/* (5): notes what it was handed; what it has noted survives it. */
static void reader(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);
    struct hf_events_all_options options = {.size = sizeof(options), .limit = 7};
    struct hf_events_reader *all;

    if (m->log_len > 0)
        options.after = hf_str_of(m->log[m->log_len - 1].position, HF_POSITION_LEN);
    while (hf_events_reader_open(a->s, store, &options, &all) != HF_OK)
        hf_scope_reset(a->s);
    for (bool more = true; more;) {
        const struct hf_stored_event *events;
        bool last = m->writing == 0;
        size_t len;

        hf_scope_reset(a->s);
        if (hf_events_reader_next(a->s, all, &events, &len) != HF_OK)
            continue;
        for (size_t i = 0; i < len; i++) {
            struct noted *noted = &m->log[m->log_len];

            SIM_CHECK(a, m->log_len < EVENTS_MAX);
            origin_of(a, &events[i], noted);
            SIM_CHECK(a, m->log_len == 0 ||
                             memcmp(noted[-1].position, noted->position, HF_POSITION_LEN) < 0);
            SIM_CHECK(a, events[i].version == ++m->seen[noted->stream]);
            m->log_len++;
        }
        if (len == 0)
            actor_sleep_ms(a, 20);
        more = len > 0 || !last;
    }
    hf_events_reader_close(all);
    hf_events_close(store);
}

static void sweeper(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);

    while (m->writing > 0) {
        struct hf_events_swept swept;

        actor_sleep_ms(a, 100);
        hf_scope_reset(a->s);
        if (hf_events_sweep(a->s, store, 1, &swept) == HF_OK)
            m->swept += swept.aside > 0;
    }
    hf_events_close(store);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void place(struct actor *a, struct model *m, const struct hf_stored_event *event)
{
    struct noted noted;
    struct op *op;
    size_t part = 0;

    origin_of(a, event, &noted);
    op = &m->ops[noted.writer][noted.number];
    SIM_CHECK(a, op->fate == DONE || op->fate == UNKNOWN); /* (2) */
    while (part < op->len && op->stream[part] != noted.stream)
        part++;
    SIM_CHECK(a, part < op->len && noted.index < op->count[part]);
    if (op->fate == UNKNOWN && op->found[part] == 0)
        op->first[part] = event->version - noted.index;
    SIM_CHECK(a, event->version == op->first[part] + noted.index);
    op->found[part]++;
}

static void check_ops(struct actor *a, struct model *m)
{
    for (int i = 0; i < WRITERS * OPS; i++) {
        const struct op *op = &m->ops[i / OPS][i % OPS];
        bool there = op->found[0] > 0;

        SIM_CHECK(a, there ? op->fate != REFUSED : op->fate != DONE); /* (2) */
        for (size_t j = 0; j < op->len; j++)
            SIM_CHECK(a, op->found[j] == (there ? op->count[j] : 0));
        m->done += op->fate == DONE;
        m->refused += op->fate == REFUSED;
        m->unknown += op->fate == UNKNOWN;
        m->large += there && op->count[0] > LARGE;
    }
}

/* (6) */
static void check_rest(struct actor *a, struct model *m, struct hf_events *store)
{
    struct hf_scope *s = a->s;
    struct hf_query query = {.table = table,
                             .key_condition = HF_STR("pk = :pk"),
                             .values = HF_ITEM(s, HF_S(":pk", HF_STR("x")))};
    struct hf_query_result result;
    struct hf_events_verified verified;
    struct hf_events_swept swept;

    actor_sleep_ms(a, 20000); /* whatever the clocks of others said, it is old now */
    SIM_CHECK(a, hf_events_sweep(s, store, 1, &swept) == HF_OK);
    SIM_CHECK(a, hf_query(s, a->db, &query, &result) == HF_OK && result.items_len == 0);
    SIM_CHECK(a, hf_events_verify(s, store, NULL, NULL, &verified) == HF_OK);
    SIM_CHECK(a, verified.events == m->log_len && verified.bad.domain.len == 0);
}

static void auditor(struct actor *a)
{
    struct model *m = a->user;
    struct hf_events *store = open_by(a);
    struct hf_scope *s = a->s;
    struct hf_events_page page;
    uint64_t events = 0;

    for (int stream = 0; stream < STREAMS; stream++) {
        SIM_CHECK(a, hf_events_read(s, store, stream_of(s, stream),
                                    HF_OPTIONS(hf_events_read_options, .limit = 10000),
                                    &page) == HF_OK);
        SIM_CHECK(a, page.next == 0 && page.version == page.events_len);
        SIM_CHECK(a, page.version == m->seen[stream]); /* (5) */
        for (size_t i = 0; i < page.events_len; i++) {
            SIM_CHECK(a, page.events[i].version == i + 1); /* (1) */
            place(a, m, &page.events[i]);
        }
        for (size_t i = 0, at = 0; i < page.events_len; i++, at++) { /* (5): the same positions */
            while (at < m->log_len && m->log[at].stream != stream)
                at++;
            SIM_CHECK(a, at < m->log_len && memcmp(m->log[at].position, page.events[i].position.ptr,
                                                   HF_POSITION_LEN) == 0);
        }
        events += page.version;
    }
    SIM_CHECK(a, events == m->log_len);
    check_ops(a, m);
    check_rest(a, m, store);
    hf_events_close(store);
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[WRITERS] = {"ann", "ben", "cyd"};
    static struct model m; /* large */
    struct model *sum = user;
    struct hf_events *store;

    memset(&m, 0, sizeof(m));
    m.writing = WRITERS;
    CHECK_OK(hf_events_open(sim_scope(sim), sim_db(sim),
                            HF_OPTIONS(hf_events_options, .table = table, .shards = 2), &store));
    hf_events_close(store);
    for (int i = 0; i < WRITERS; i++)
        sim_start(sim, names[i], writer, &m);
    sim_start(sim, "reader", reader, &m);
    sim_start(sim, "stream reader", stream_reader, &m);
    sim_start(sim, "sweeper", sweeper, &m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "reader again", reader, &m); /* a request of a dead writer may have come late */
    sim_run(sim);
    sim_start(sim, "auditor", auditor, &m);
    sim_run(sim);
    sum->done += m.done;
    sum->refused += m.refused;
    sum->unknown += m.unknown;
    sum->again += m.again;
    sum->large += m.large;
    sum->swept += m.swept;
    sum->lives += m.lives;
    sum->reads += m.reads;
}

TEST(append_history_sim, appended_once_or_not_at_all)
{
    const struct sim_luck luck = {.lost_requests = 25,
                                  .lost_answers = 40,
                                  .twice = 20,
                                  .later_again = 15,
                                  .refused = 15,
                                  .slow = 10,
                                  .pauses = 8,
                                  .deaths = 6,
                                  .slow_ms = 400,
                                  .pause_ms = 3000,
                                  .wall_skew_ms = 5000,
                                  .drift_ppm = 500};
    static struct model sum;

    memset(&sum, 0, sizeof(sum));
    sim_each(t, 500, &luck, history, &sum);
    CHECK(!sim_is_whole() || (sum.done > 2500 && sum.refused > 50 && sum.unknown > 50));
    CHECK(!sim_is_whole() || (sum.again > 250 && sum.large > 150 && sum.lives > 1750));
    CHECK(!sim_is_whole() || (sum.swept > 25 && sum.reads > 2500));
}
