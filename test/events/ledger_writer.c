/*
 * test/events/ledger_writer.c: a process that appends, and one that sweeps behind all of them.
 */
#include "ledger.h"

#include <stdlib.h>
#include <unistd.h>

enum { PACE_MS = 2, PAUSE_MS = 20, AGAIN_EACH = 25, CALL_MS = 60000 };

struct writer {
    struct hf_scope *s;
    struct hf_events *store;
    struct journal journal;
    const struct site *site;
    int number;
    uint64_t random;
};

/* The version that the stream is at, for OP_EXACT; it may be another one soon. */
static int64_t look(struct writer *w, const struct op *op)
{
    struct hf_events_page page;

    if (op->kind != OP_EXACT)
        return -1;
    for (;;) {
        hf_scope_reset(w->s);
        if (hf_events_read(w->s, w->store, plan_stream(w->s, op->parts[0].stream),
                           HF_OPTIONS(hf_events_read_options, .backward = true, .limit = 1),
                           &page) == HF_OK)
            return (int64_t)page.version;
        nap_ms(PAUSE_MS);
    }
}

static enum hf_status try_op(struct writer *w, const struct op *op, int64_t expected,
                             struct hf_appended *results)
{
    hf_scope_reset(w->s);
    hf_scope_timeout_ms(w->s, CALL_MS);
    return hf_events_append(w->s, w->store, plan_appends(w->s, op, expected), op->len, NULL,
                            results);
}

/* What cannot come of appends as these are, whatever happens. */
static bool is_wrong(const struct op *op, enum hf_status status)
{
    return (status == HF_CONDITION && op->kind != OP_EXACT) || status == HF_DUPLICATE ||
           status == HF_INVALID || status == HF_LIMIT || status == HF_CORRUPT ||
           status == HF_UNSUPPORTED || status == HF_NOT_FOUND;
}

/* Until it is known what became of it, or cannot be. */
static void make(struct writer *w, const struct op *op)
{
    int64_t expected = w->journal.entries[op->number].expected;
    struct hf_appended results[PARTS_MAX];

    for (;;) {
        enum hf_status status = try_op(w, op, expected, results);

        if (status == HF_OK) {
            for (size_t i = 0; i < op->len; i++)
                if (results[i].last - results[i].first + 1 != op->parts[i].count)
                    FAIL("append %u of %d: versions %llu to %llu", op->number, op->writer,
                         (unsigned long long)results[i].first, (unsigned long long)results[i].last);
            journal_end(&w->journal, op, FATE_DONE, results);
            return;
        }
        if (is_wrong(op, status))
            FAIL("append %u of %d: %s: %s", op->number, op->writer, hf_status_name(status),
                 hf_scope_error_text(w->s));
        if (status == HF_CONDITION) {
            journal_end(&w->journal, op, FATE_REFUSED, NULL);
            return;
        }
        if (op->kind == OP_OWN && hf_scope_error(w->s)->may_have_happened) {
            journal_end(&w->journal, op, FATE_UNKNOWN, NULL);
            return;
        }
        nap_ms(PAUSE_MS);
    }
}

/* (2) An append of long ago, again: it changes nothing, and tells what it told then. */
static void make_again(struct writer *w, uint32_t last)
{
    struct op op = plan_op(w->site->seed, w->number, 1 + (uint32_t)random_below(&w->random, last));
    const struct entry *entry = &w->journal.entries[op.number];
    struct hf_appended results[PARTS_MAX];

    if (op.kind == OP_OWN || entry->fate != FATE_DONE)
        return;
    if (try_op(w, &op, entry->expected, results) != HF_OK) {
        if (is_wrong(&op, hf_scope_error(w->s)->status) ||
            hf_scope_error(w->s)->status == HF_CONDITION)
            FAIL("append %u of %d again: %s", op.number, op.writer, hf_scope_error_text(w->s));
        return;
    }
    atomic_fetch_add(&w->site->board->again, 1);
    for (size_t i = 0; i < op.len; i++)
        if (!results[i].repeated || results[i].first != entry->first[i] ||
            results[i].last != entry->first[i] + op.parts[i].count - 1)
            FAIL("append %u of %d again: %s, first version %llu, and %llu before", op.number,
                 op.writer, results[i].repeated ? "repeated" : "not repeated",
                 (unsigned long long)results[i].first, (unsigned long long)entry->first[i]);
}

int write_main(const struct site *site, int number)
{
    struct writer w = {.s = hf_scope_new(NULL), .site = site, .number = number};
    pid_t parent = getppid();
    struct hf_db *db;

    w.random = (uint64_t)now_us() * 2 + 1;
    w.store = site_store(w.s, site, &db);
    journal_open(&w.journal, site, number);
    for (uint32_t next = 1; getppid() == parent; next++) {
        struct op op = plan_op(site->seed, number, next);
        enum fate fate = next < w.journal.len ? w.journal.entries[next].fate : FATE_NONE;

        if (fate == FATE_DONE || fate == FATE_REFUSED || fate == FATE_UNKNOWN)
            continue;
        if (fate == FATE_BEGUN && op.kind == OP_OWN) { /* in a former life */
            journal_end(&w.journal, &op, FATE_UNKNOWN, NULL);
            continue;
        }
        if (atomic_load(&site->board->finish) && fate != FATE_BEGUN)
            break;
        if (fate != FATE_BEGUN)
            journal_begin(&w.journal, &op, look(&w, &op));
        make(&w, &op);
        if (random_below(&w.random, AGAIN_EACH) == 0)
            make_again(&w, next);
        nap_ms(PACE_MS);
    }
    journal_close(&w.journal);
    hf_events_close(w.store);
    hf_db_close(db);
    hf_scope_free(w.s);
    return 0;
}

/* ---- the sweeper ---------------------------------------------------------------------------- */

int sweep_main(const struct site *site)
{
    struct hf_scope *s = hf_scope_new(NULL);
    pid_t parent = getppid();
    struct hf_db *db;
    struct hf_events *store = site_store(s, site, &db);

    while (getppid() == parent) {
        struct hf_events_swept swept;

        hf_scope_reset(s);
        hf_scope_timeout_ms(s, CALL_MS);
        if (hf_events_sweep(s, store, SWEEP_S, &swept) == HF_OK)
            atomic_fetch_add(&site->board->swept, (unsigned)swept.aside);
        nap_ms(10 * PAUSE_MS);
    }
    return 0;
}
