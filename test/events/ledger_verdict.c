/*
 * test/events/ledger_verdict.c: what there is in the end, against what was promised; numbers are
 * those of ledger.h.
 */
#include "ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_ASKED = 200 };

/* ---- the global order ----------------------------------------------------------------------- */

static void note(struct truth *truth, const struct hf_stored_event *event)
{
    struct truth_event *e;

    if ((truth->len & (truth->len - 1)) == 0) {
        truth->events =
            realloc(truth->events, (truth->len ? 2 * truth->len : 1) * sizeof(*truth->events));
        if (!truth->events)
            FAIL("out of memory");
    }
    e = &truth->events[truth->len++];
    memset(e, 0, sizeof(*e));
    if (event->position.len != HF_POSITION_LEN || !plan_origin(event, &e->origin) ||
        e->origin.stream < 0 || e->origin.stream >= STREAMS || e->origin.writer < 0 ||
        e->origin.writer >= WRITERS)
        FAIL("an event that nobody has appended");
    memcpy(e->position, event->position.ptr, HF_POSITION_LEN);
    e->stream = e->origin.stream;
    e->version = event->version;
    if (truth->len > 1 && strcmp(e[-1].position, e->position) >= 0)
        FAIL("%s comes after %s", e->position, e[-1].position);
    if (e->version != truth->versions[e->stream] + 1) /* (4) */
        FAIL("in the global order, stream %d has version %llu after %llu, at %s", e->stream,
             (unsigned long long)e->version, (unsigned long long)truth->versions[e->stream],
             e->position);
    truth->versions[e->stream] = e->version;
}

void truth_read(struct hf_scope *s, struct hf_events *store, struct truth *truth)
{
    struct hf_events_reader *reader;
    const struct hf_stored_event *events;
    size_t len;

    MUST_OK(s, hf_events_reader_open(s, store, NULL, &reader));
    do {
        hf_scope_reset(s);
        MUST_OK(s, hf_events_reader_next(s, reader, &events, &len));
        for (size_t i = 0; i < len; i++)
            note(truth, &events[i]);
    } while (len > 0);
    hf_events_reader_close(reader);
    if (truth->len == 0)
        FAIL("there are no events");
}

/* ---- logs (5) ------------------------------------------------------------------------------- */

static int compare_positions(const void *a, const void *b)
{
    return strcmp(a, ((const struct truth_event *)b)->position);
}

static struct truth_event *find(struct truth *truth, const char *position)
{
    return bsearch(position, truth->events, truth->len, sizeof(*truth->events), compare_positions);
}

/* The event of a line; NULL: the line is empty, or cut in two. */
static struct truth_event *read_line(struct truth *truth, const char *path, const char *line)
{
    char position[HF_POSITION_LEN + 1];
    struct truth_event *e;
    struct origin o;
    int stream;
    unsigned long long version;

    if (!strstr(line, " .\n"))
        return NULL;
    if (sscanf(line, "%26s s/%d %llu %d %u %u .", position, &stream, &version, &o.writer, &o.number,
               &o.index) != 6)
        FAIL("%s: '%s'", path, line);
    e = find(truth, position);
    if (!e || e->stream != stream || e->version != version || e->origin.writer != o.writer ||
        e->origin.number != o.number || e->origin.index != o.index)
        FAIL("%s: there is no such event: %s", path, line);
    return e;
}

bool log_is_whole(const struct site *site, const char *name, enum log_kind kind,
                  struct truth *truth)
{
    char path[PATH_ROOM], line[LINE_ROOM];
    size_t next = 0;
    FILE *file;

    site_path(site, name, path);
    file = fopen(path, "re");
    if (!file)
        FAIL("%s: %s", path, strerror(errno));
    for (size_t i = 0; i < truth->len; i++)
        truth->events[i].consumed = false;
    while (fgets(line, sizeof(line), file)) {
        struct truth_event *e = read_line(truth, path, line);

        if (!e)
            continue;
        if (kind == LOG_ANY_ORDER) {
            next += !e->consumed;
            e->consumed = true;
        } else if (next < truth->len && e == &truth->events[next]) {
            next++;
        } else if (kind == LOG_EXACT || e > &truth->events[next]) {
            FAIL("%s: %s came before %s", path, e->position,
                 next < truth->len ? truth->events[next].position : "the end");
        }
    }
    fclose(file);
    return next == truth->len;
}

/* ---- journals (2) (3) ----------------------------------------------------------------------- */

static void place(struct journal journals[WRITERS], uint64_t seed, const struct truth_event *e)
{
    struct origin o = e->origin;
    struct op op = plan_op(seed, o.writer, o.number);
    struct journal *j = &journals[o.writer];
    struct entry *entry;
    size_t part = 0;

    if (o.number == 0 || o.number >= j->len || j->entries[o.number].fate == FATE_NONE)
        FAIL("writer %d has not begun append %u, which is there", o.writer, o.number);
    entry = &j->entries[o.number];
    if (entry->fate == FATE_REFUSED)
        FAIL("append %u of writer %d was refused, and is there", o.number, o.writer);
    while (part < op.len && op.parts[part].stream != o.stream)
        part++;
    if (part == op.len || o.index >= op.parts[part].count)
        FAIL("append %u of writer %d has something more in stream %d", o.number, o.writer,
             o.stream);
    if (entry->fate != FATE_DONE && entry->found[part] == 0)
        entry->first[part] = e->version - o.index;
    if (e->version != entry->first[part] + o.index) /* so no index is there twice */
        FAIL("append %u of writer %d: event %u of stream %d has version %llu, the first one %llu",
             o.number, o.writer, o.index, o.stream, (unsigned long long)e->version,
             (unsigned long long)entry->first[part]);
    entry->found[part]++;
}

static void check_journal(struct journal *j, uint64_t seed, int writer, unsigned counts[5])
{
    uint64_t last[STREAMS] = {0};

    for (uint32_t number = 1; number < j->len; number++) {
        struct entry *entry = &j->entries[number];
        struct op op = plan_op(seed, writer, number);
        bool there = entry->found[0] > 0;

        counts[entry->fate]++;
        if (entry->fate == FATE_BEGUN)
            FAIL("writer %d has not finished append %u", writer, number);
        if (entry->fate == FATE_DONE && !there)
            FAIL("append %u of writer %d is lost", number, writer);
        for (size_t i = 0; i < op.len; i++) {
            int stream = op.parts[i].stream;

            if (entry->found[i] != (there ? op.parts[i].count : 0))
                FAIL("append %u of writer %d: %u of %u events in stream %d", number, writer,
                     entry->found[i], op.parts[i].count, stream);
            if (entry->fate != FATE_DONE)
                continue; /* one that nobody knew of may have happened later */
            if (entry->first[i] <= last[stream])
                FAIL("append %u of writer %d is in front of an earlier one in stream %d", number,
                     writer, stream);
            last[stream] = entry->first[i];
        }
    }
}

static void check_journals(const struct site *site, const struct truth *truth)
{
    struct journal journals[WRITERS];
    unsigned counts[5] = {0};

    for (int i = 0; i < WRITERS; i++)
        journal_open(&journals[i], site, i);
    for (size_t i = 0; i < truth->len; i++)
        place(journals, site->seed, &truth->events[i]);
    for (int i = 0; i < WRITERS; i++) {
        check_journal(&journals[i], site->seed, i, counts);
        journal_close(&journals[i]);
    }
    printf("%zu events; %u appends done, %u refused, %u unknown; ", truth->len, counts[FATE_DONE],
           counts[FATE_REFUSED], counts[FATE_UNKNOWN]);
}

/* ---- streams (1), ids, and what is staged (6) ----------------------------------------------- */

static void check_stream(struct hf_scope *s, struct hf_events *store, int stream,
                         const struct truth *truth)
{
    struct hf_events_page page = {.next = 1};
    uint64_t version = 0;
    size_t at = 0;

    while (page.next) {
        hf_scope_reset(s);
        MUST_OK(s,
                hf_events_read(s, store, plan_stream(s, stream),
                               HF_OPTIONS(hf_events_read_options, .from = page.next, .limit = 333),
                               &page));
        for (size_t i = 0; i < page.events_len; i++, at++) {
            const struct hf_stored_event *event = &page.events[i];

            if (event->version != ++version)
                FAIL("stream %d has version %llu instead of %llu", stream,
                     (unsigned long long)event->version, (unsigned long long)version);
            while (at < truth->len && truth->events[at].stream != stream)
                at++;
            if (at == truth->len ||
                memcmp(event->position.ptr, truth->events[at].position, HF_POSITION_LEN) != 0)
                FAIL("version %llu of stream %d is another one in the global order",
                     (unsigned long long)version, stream);
        }
    }
    if (version != truth->versions[stream])
        FAIL("stream %d ends at %llu, and at %llu in the global order", stream,
             (unsigned long long)version, (unsigned long long)truth->versions[stream]);
}

static void check_ids(struct hf_scope *s, struct hf_events *store, uint64_t seed,
                      const struct truth *truth)
{
    uint64_t random = seed * 2 + 1;

    for (int i = 0; i < IDS_ASKED; i++) {
        const struct truth_event *e = &truth->events[random_below(&random, truth->len)];
        struct hf_stored_event event;
        struct hf_str id;

        hf_scope_reset(s);
        id = plan_op(seed, e->origin.writer, e->origin.number).kind == OP_OWN
                 ? hf_str_from(e->position)
                 : hf_scope_format(s, "w%d-%u-%d-%u", e->origin.writer, e->origin.number, e->stream,
                                   e->origin.index);
        MUST_OK(s, hf_events_get(s, store, id, &event));
        if (event.version != e->version ||
            memcmp(event.position.ptr, e->position, HF_POSITION_LEN) != 0)
            FAIL("the id %.*s names another event", (int)id.len, id.ptr);
    }
}

static void check_aside(struct hf_scope *s, struct hf_db *db, struct hf_events *store)
{
    struct hf_events_swept swept;
    struct hf_query query = {.table = HF_STR("events"),
                             .key_condition = HF_STR("#pk = :pk"),
                             .consistent = HF_YES};
    struct hf_query_result result;

    nap_ms(SWEEP_S * 1000 + 1100);
    hf_scope_reset(s);
    MUST_OK(s, hf_events_sweep(s, store, SWEEP_S, &swept));
    query.names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")));
    query.values = HF_ITEM(s, HF_S(":pk", HF_STR("x")));
    MUST_OK(s, hf_query(s, db, &query, &result));
    if (result.items_len != 0)
        FAIL("%zu appends are staged after a sweep", result.items_len);
}

void verdict(struct hf_scope *s, struct hf_db *db, struct hf_events *store, const struct site *site,
             const struct truth *truth)
{
    struct hf_events_verified verified;

    for (int i = 0; i < STREAMS; i++)
        check_stream(s, store, i, truth);
    check_journals(site, truth);
    check_ids(s, store, site->seed, truth);
    check_aside(s, db, store);
    hf_scope_reset(s);
    MUST_OK(s, hf_events_verify(s, store, NULL, NULL, &verified));
    if (verified.events != truth->len)
        FAIL("the chain has %llu events of %zu", (unsigned long long)verified.events, truth->len);
}
