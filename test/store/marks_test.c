/*
 * store/marks_test.c: the states of marks.c, all of them.
 *
 * A small model of a store: what its record, its journal and its tables say, without what is in
 * them. Every sequence of moves up to some length is gone through; each move is made of the steps
 * that marks.c lists, and after every step
 *
 *  (1) the process is killed: the store opens, with every change that was handed to the system;
 *  (2) the power is lost, and of what was not synced any part is there: the store opens, with every
 *      change that was synced;
 *  (3) one part is what it was at any earlier step: the store is refused, or holds everything.
 *      Without syncs an older journal may look like one whose end is torn; it then holds a part of
 *      it.
 *
 * And from there the store is opened again, and the moves go on. "Holds" is strict: a store that
 * skips changes that its tables do not have, or replays old ones over newer ones, is wrong.
 *
 * Tables are compared by the real code. The journal is checked by a copy of its rules, and for some
 * states, by the seed, both by that and by the real code on real files. HF_MARKS_DEPTH says how
 * many moves there are in a row.
 */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <xxhash.h>

#include "store/journal_form.h"
#include "store/store_dir.h"
#include "store/tables.h"

enum { SEGMENTS = 12, VERSIONS = 160, ID = 7, BOOT = 5, REAL_EVERY = 1009 };

struct t_part { /* the tables */
    bool there;
    uint64_t last, durable, segment; /* what their mark says */
    uint64_t manifest, bytes;
};

struct segment {
    uint64_t number, first, last; /* without records, last is first - 1 */
    uint64_t durable;
    bool begun;
};

struct j_part { /* the journal */
    struct segment segments[SEGMENTS];
    size_t len;
};

struct r_part { /* the record */
    uint64_t durable, based, clean, segment, boot, manifest, bytes;
};

struct world {
    struct t_part t;
    struct j_part j;
    struct r_part r;
    uint64_t written; /* handed to the system */
    uint64_t synced;  /* survives a loss of power */
    uint64_t tabled;
    size_t r_synced; /* the version of the record that a loss of power leaves at least */
    bool is_open;
};

struct model {
    struct test *t;
    struct hf_scope *s;
    bool syncs; /* every change is synced */
    const char *path;
    struct t_part ts[VERSIONS];
    struct j_part js[VERSIONS];
    struct r_part rs[VERSIONS];
    size_t ts_len, js_len, rs_len;
    uint64_t states, opens, refusals, real;
};

/* ---- what an open finds --------------------------------------------------------------------- */

static const struct segment *newest(const struct j_part *j)
{
    return &j->segments[j->len - 1];
}

/* The rules of journal_read.c. */
static bool journal_opens(const struct j_part *j, const struct journal_marks *marks, uint64_t *last)
{
    uint64_t at = 0, begun = 0;
    bool behind = false;

    if (!j->len || newest(j)->number < marks->segment)
        return false;
    for (size_t i = 0; i < j->len; i++) {
        const struct segment *seg = &j->segments[i];
        uint64_t missing;

        if (!seg->begun)
            continue;
        if (marks->clean && (seg->first > marks->clean + 1 ||
                             (seg->first == marks->clean + 1 && seg->last >= seg->first)))
            return false;
        begun = seg->number;
        if (seg->first <= marks->based + 1 && seg->first > at)
            at = seg->first - 1;
        if (seg->first == at + 1) {
            at = seg->last;
            behind = false;
        } else if (seg->first > at + 1) {
            behind = true;
        }
        missing = (at > marks->based ? at : marks->based) + 1;
        if (!marks->clean && seg->durable >= missing)
            return false;
    }
    *last = marks->clean ? marks->clean : at > marks->based ? at : marks->based;
    if (marks->clean)
        return true;
    return *last >= marks->durable && (!marks->whole || (!behind && begun >= marks->segment));
}

/* The same journal in files, read by the real code. */
static void write_segment(const struct model *model, const struct segment *seg)
{
    uint8_t bytes[JOURNAL_START + 64 * 48] = {0};
    size_t len = JOURNAL_START;
    char name[JOURNAL_NAME];

    if (seg->begun) {
        memcpy(bytes, journal_magic, 8);
        store_u64le(bytes + 8, seg->number);
        store_u64le(bytes + 16, seg->first);
        store_u64le(bytes + 24, ID);
        store_u64le(bytes + 32, seg->durable);
        store_u64le(bytes + 40, XXH3_64bits(bytes, 40));
    }
    for (uint64_t change = seg->first; seg->begun && change <= seg->last; change++) {
        uint8_t *head = bytes + len;
        size_t size = journal_record_size(8);

        CHECK(len + size <= sizeof(bytes));
        store_u64le(head + 8, change);
        store_u32le(head + 24, 8);
        store_u32le(head + 28, (uint32_t)seg->number);
        store_u64le(head, XXH3_64bits_withSeed(head + 8, size - 8, seg->number));
        len += size;
    }
    hf__journal_name(seg->number, name);
    write_file(in(model->s, model->path, name), bytes, len);
}

static bool really_opens(struct model *model, const struct j_part *j,
                         const struct journal_marks *marks)
{
    struct hf__mark mark = hf__scope_mark(model->s);
    bool opens;

    model->real++;
    empty_directory(model->path);
    for (size_t i = 0; i < j->len; i++)
        write_segment(model, &j->segments[i]);
    opens = hf__journal_check(model->s, test_env(model->t), model->path, marks) == HF_OK;
    hf__scope_rewind(model->s, mark);
    return opens;
}

/* The rules of marks.c and manifest.c. *noted: the tables need not be asked. */
static bool tables_open(struct model *model, const struct t_part *t, const struct r_part *r,
                        struct store_dir *store_dir)
{
    const struct tables_mark mark = {
        .whole = true, .last = t->last, .id = ID, .durable = t->durable, .segment = t->segment};

    store_dir->marks = (struct store_marks){.id = ID,
                                            .durable = r->durable,
                                            .based = r->based,
                                            .clean = r->clean,
                                            .segment = r->segment};
    store_dir->path = (char *)(uintptr_t) "model";
    store_dir->format = STORE_DIR_FORMAT;
    if (!t->there)
        return !r->manifest && !r->based;
    if (t->manifest < r->manifest || (t->manifest == r->manifest && t->bytes < r->bytes))
        return false;
    if (t->manifest == r->manifest && t->bytes == r->bytes)
        return true;
    return hf__marks_compare(model->s, store_dir, &mark) == HF_OK;
}

/* Does this open? *last is its newest change then, and *wrong that it holds something else. */
static bool opens(struct model *model, const struct t_part *t, const struct j_part *j,
                  const struct r_part *r, bool booted, uint64_t *last, bool *wrong,
                  struct journal_marks *marks)
{
    struct store_dir store_dir = {.fd = -1};
    bool good;

    if (!tables_open(model, t, r, &store_dir))
        return false;
    *marks = (struct journal_marks){.whole = r->boot && !booted,
                                    .id = ID,
                                    .durable = store_dir.marks.durable,
                                    .based = store_dir.marks.based,
                                    .clean = store_dir.marks.clean,
                                    .segment = store_dir.marks.segment};
    good = journal_opens(j, marks, last);
    if (++model->opens % REAL_EVERY == 0 && good != really_opens(model, j, marks))
        fail_msg("the real code says %s", good ? "no" : "yes");
    /* What is skipped must be there, and what is there must not be overwritten by older changes. */
    *wrong =
        t->last < store_dir.marks.based || (t->last > store_dir.marks.based && *last < t->last);
    return good;
}

/* ---- what is checked after every step ------------------------------------------------------- */

static void fail_at(const struct model *model, const struct world *w, const char *what)
{
    fail_msg(
        "%s, %s: tables %llu (manifest %llu, %llu), journal %zu files up to %llu, record: "
        "durable %llu, based %llu, clean %llu, segment %llu, manifest %llu, %llu; written %llu, "
        "synced %llu",
        model->syncs ? "with syncs" : "without", what, (unsigned long long)w->t.last,
        (unsigned long long)w->t.manifest, (unsigned long long)w->t.bytes, w->j.len,
        (unsigned long long)w->written, (unsigned long long)w->r.durable,
        (unsigned long long)w->r.based, (unsigned long long)w->r.clean,
        (unsigned long long)w->r.segment, (unsigned long long)w->r.manifest,
        (unsigned long long)w->r.bytes, (unsigned long long)w->written,
        (unsigned long long)w->synced);
}

/* Some part is of another time. */
static void check_mixture(struct model *model, const struct world *w, const struct t_part *t,
                          const struct j_part *j, const struct r_part *r, uint64_t least,
                          const char *what)
{
    struct journal_marks marks;
    uint64_t last;
    bool wrong;

    if (!opens(model, t, j, r, false, &last, &wrong, &marks))
        model->refusals++;
    else if (wrong || last < least || last > w->written)
        fail_at(model, w, what);
}

/* (3), but for versions that say the same. */
static void check_older(struct model *model, const struct world *w)
{
    for (size_t i = 0; i < model->ts_len; i++)
        if (memcmp(&model->ts[i], &w->t, sizeof(w->t)) != 0)
            check_mixture(model, w, &model->ts[i], &w->j, &w->r, w->written, "older tables");
    for (size_t i = 0; i < model->js_len; i++)
        check_mixture(model, w, &w->t, &model->js[i], &w->r, model->syncs ? w->r.durable : 0,
                      "an older journal");
    for (size_t i = 0; i < model->rs_len; i++)
        check_mixture(model, w, &w->t, &w->j, &model->rs[i], w->written, "an older record");
}

/* What is left of the journal when the power goes and changes up to `upto` are on the disk. */
static struct j_part torn(const struct j_part *j, uint64_t upto, bool heads)
{
    struct j_part left = *j;

    for (size_t i = 0; i < left.len; i++) {
        struct segment *seg = &left.segments[i];

        if (seg->last > upto)
            seg->last = upto >= seg->first ? upto : seg->first - 1;
        if (seg->first > upto + 1 && !heads)
            seg->begun = false;
    }
    return left;
}

/* (2) */
static void check_power(struct model *model, const struct world *w)
{
    for (size_t r = w->r_synced; r < model->rs_len; r++)
        for (uint64_t upto = w->synced; upto <= w->written; upto++)
            for (int heads = 0; heads < 2; heads++) {
                const struct j_part j = torn(&w->j, upto, heads);
                struct journal_marks marks;
                uint64_t last = 0;
                bool wrong = false;

                if (!opens(model, &w->t, &j, &model->rs[r], true, &last, &wrong, &marks) || wrong ||
                    last < w->synced)
                    fail_at(model, w, "after a loss of power");
            }
}

/* (1) */
static void check_kill(struct model *model, const struct world *w)
{
    struct journal_marks marks;
    uint64_t last = 0;
    bool wrong = false;

    if (!opens(model, &w->t, &w->j, &w->r, false, &last, &wrong, &marks) || wrong ||
        last != w->written)
        fail_at(model, w, "after kill -9");
}

/* ---- moves ---------------------------------------------------------------------------------- */

static void explore(struct model *model, const struct world *w, int depth);

/* A step was made: remember what is there, and look at what a crash would leave. */
static void stepped(struct model *model, const struct world *w, int depth)
{
    size_t ts = model->ts_len, js = model->js_len, rs = model->rs_len;
    struct world crashed;

    CHECK(ts < VERSIONS && js < VERSIONS && rs < VERSIONS);
    model->states++;
    if (!ts || memcmp(&model->ts[ts - 1], &w->t, sizeof(w->t)) != 0)
        model->ts[model->ts_len++] = w->t;
    if (!js || memcmp(&model->js[js - 1], &w->j, sizeof(w->j)) != 0)
        model->js[model->js_len++] = w->j;
    if (!rs || memcmp(&model->rs[rs - 1], &w->r, sizeof(w->r)) != 0)
        model->rs[model->rs_len++] = w->r;
    check_kill(model, w);
    check_power(model, w);
    check_older(model, w);
    if (depth > 0) {
        crashed = *w;
        crashed.is_open = false;
        explore(model, &crashed, depth - 1);
    }
}

static void note(struct world *w)
{
    if (w->r.segment < newest(&w->j)->number)
        w->r.segment = newest(&w->j)->number;
}

static void note_tables(struct world *w, bool manifest)
{
    if (!manifest && w->r.based < w->tabled)
        w->r.bytes = 0; /* it is never that one */
    if (w->r.based < w->tabled)
        w->r.based = w->tabled;
    if (w->r.durable < w->tabled)
        w->r.durable = w->tabled;
    if (manifest && w->t.there) {
        w->r.manifest = w->t.manifest;
        w->r.bytes = w->t.bytes;
    }
    note(w);
}

/* The record as it is now survives a loss of power. */
static void sync_record(struct model *model, struct world *w)
{
    w->r_synced = model->rs_len; /* it is about to be the next one */
    if (model->rs_len && memcmp(&model->rs[model->rs_len - 1], &w->r, sizeof(w->r)) == 0)
        w->r_synced--;
}

static void begin_segment(struct model *model, struct world *w, uint64_t number, uint64_t durable)
{
    CHECK(w->j.len < SEGMENTS);
    w->j.segments[w->j.len++] = (struct segment){.number = number,
                                                 .first = w->written + 1,
                                                 .last = w->written,
                                                 .durable = model->syncs ? w->written : durable,
                                                 .begun = true};
}

static bool move_write(struct model *model, struct world *w, int depth)
{
    w->j.segments[w->j.len - 1].last = ++w->written;
    stepped(model, w, depth);
    if (!model->syncs)
        return true;
    w->synced = w->written;
    stepped(model, w, depth);
    w->r.durable = w->written;
    note(w);
    stepped(model, w, depth);
    return true;
}

static bool move_rotate(struct model *model, struct world *w, int depth)
{
    if (newest(&w->j)->last < newest(&w->j)->first)
        return false;
    begin_segment(model, w, newest(&w->j)->number + 1, w->r.durable);
    stepped(model, w, depth);
    note(w);
    stepped(model, w, depth);
    return true;
}

static bool write_table(struct model *model, struct world *w, int depth, bool noted)
{
    if (w->tabled == w->written)
        return false;
    if (!w->t.there) { /* it is made first, with nothing in it */
        w->t = (struct t_part){.there = true, .manifest = 1, .bytes = 1};
        stepped(model, w, 0);
    }
    w->t.last = w->tabled = w->written;
    w->t.durable = w->synced;
    w->t.segment = newest(&w->j)->number;
    w->t.bytes++;
    if (w->synced < w->written)
        w->synced = w->written; /* in the tables */
    stepped(model, w, depth);
    if (!noted)
        return true;
    note_tables(w, true);
    stepped(model, w, depth);
    return true;
}

static bool move_table(struct model *model, struct world *w, int depth)
{
    return write_table(model, w, depth, true);
}

/* The note failed, or another table behind this one. */
static bool move_table_unnoted(struct model *model, struct world *w, int depth)
{
    return write_table(model, w, depth, false);
}

static bool move_compact(struct model *model, struct world *w, int depth)
{
    if (!w->t.there)
        return false;
    w->t.bytes++;
    stepped(model, w, depth);
    return true;
}

static bool move_trim(struct model *model, struct world *w, int depth)
{
    size_t drop = 0;

    while (drop + 1 < w->j.len && w->j.segments[drop + 1].first <= w->tabled + 1)
        drop++;
    if (!drop)
        return false;
    note_tables(w, false);
    sync_record(model, w);
    stepped(model, w, depth);
    while (drop--) {
        w->j.len--;
        memmove(w->j.segments, w->j.segments + 1, w->j.len * sizeof(w->j.segments[0]));
        memset(&w->j.segments[w->j.len], 0, sizeof(w->j.segments[0]));
        stepped(model, w, depth);
    }
    return true;
}

static bool move_close(struct model *model, struct world *w, int depth)
{
    (void)move_table(model, w, 0);
    if (w->written) {
        w->r.clean = w->written;
        note_tables(w, true);
        sync_record(model, w);
    }
    w->is_open = false;
    stepped(model, w, depth);
    return true;
}

/* After a close or a crash. Every step of it may be the last. */
static void reopen(struct model *model, struct world *w, int depth)
{
    const uint64_t number = newest(&w->j)->number;

    w->tabled = w->t.last;
    if (w->t.there) {
        w->t.manifest++;
        w->t.bytes = 1;
        stepped(model, w, depth);
    }
    if (w->r.clean) { /* all but the newest go, and that one is used again */
        w->j.segments[0] = *newest(&w->j);
        memset(&w->j.segments[1], 0, sizeof(w->j.segments) - sizeof(w->j.segments[0]));
        w->j.len = 1;
        stepped(model, w, depth);
        w->j.segments[0] = (struct segment){.number = number + 1};
        stepped(model, w, 0);
        w->j.len = 0;
    } else if (model->syncs) { /* what was read is synced */
        w->synced = w->written;
    }
    begin_segment(model, w, number + 1, w->r.durable > w->tabled ? w->r.durable : w->tabled);
    stepped(model, w, depth);
    w->r.clean = 0;
    w->r.boot = model->syncs ? 0 : BOOT;
    note_tables(w, true);
    sync_record(model, w);
    w->is_open = true;
    stepped(model, w, depth);
}

static void explore(struct model *model, const struct world *w, int depth)
{
    static bool (*const moves[])(struct model *, struct world *,
                                 int) = {move_write,   move_rotate, move_table, move_table_unnoted,
                                         move_compact, move_trim,   move_close};
    const size_t ts = model->ts_len, js = model->js_len, rs = model->rs_len;
    struct world next;

    if (!w->is_open) {
        next = *w;
        reopen(model, &next, depth > 0 ? depth - 1 : 0);
        if (depth > 0)
            explore(model, &next, depth - 1);
        model->ts_len = ts, model->js_len = js, model->rs_len = rs;
        return;
    }
    for (size_t i = 0; depth > 0 && i < ARRAY_LEN(moves); i++) {
        next = *w;
        if (moves[i](model, &next, i + 1 == ARRAY_LEN(moves) ? depth - 1 : depth / 2))
            explore(model, &next, depth - 1);
        model->ts_len = ts, model->js_len = js, model->rs_len = rs;
    }
}

static void run_model(struct test *t, bool syncs)
{
    const char *wanted = getenv("HF_MARKS_DEPTH");
    int depth = wanted ? (int)strtol(wanted, NULL, 10) : 8;
    struct model *model = calloc(1, sizeof(*model));
    struct world w;

    CHECK(model);
    memset(&w, 0, sizeof(w)); /* also between its fields, as versions are compared */
    model->t = t;
    model->s = hf_scope_new(test_env(t));
    model->syncs = syncs;
    model->path = test_quick_directory(t);
    model->opens = test_random_below(t, REAL_EVERY);
    begin_segment(model, &w, 1, 0);
    w.r.boot = syncs ? 0 : BOOT;
    note(&w);
    w.is_open = true;
    stepped(model, &w, 0);
    explore(model, &w, depth);
    print_message("%llu states, %llu opens, %llu of them refused, %llu by the real code as well\n",
                  (unsigned long long)model->states, (unsigned long long)model->opens,
                  (unsigned long long)model->refusals, (unsigned long long)model->real);
    CHECK(model->refusals > 0 && model->real > 0);
    hf_scope_free(model->s);
    free(model);
}

TEST(store_marks, every_state_with_syncs)
{
    run_model(t, true);
}

TEST(store_marks, every_state_without_syncs)
{
    run_model(t, false);
}
