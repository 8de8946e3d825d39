/*
 * test/events/reader_archived_test.c: readers of the global order, with archived streams, while
 * those are being archived and put back; (n) is an invariant of events_reader.c.
 */
#include "admin_kit.h"

enum { PARTS = 4 }; /* commits of each stream */

static struct hf_events *filled(struct kit *k)
{
    struct hf_events *store = open_store_with(k, (struct hf_events_options){.shards = 2});

    for (int i = 0; i < PARTS; i++) {
        CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, NULL));
        CHECK_OK(append_some(k, store, ORDER("2"), HF_EXPECT_ANY, 0, 1, NULL));
        test_advance_ms(k->t, 20);
    }
    return store;
}

/* ---- what others do between two queries ----------------------------------------------------- */

enum { STEPS_MAX = 2 };

/* Before the query of that number, and again before another one. */
struct mover {
    struct hf_db db;
    struct kit *k;
    struct hf_scope *scope;
    struct hf_events *other;
    int at[STEPS_MAX]; /* -1: never */
    bool in[STEPS_MAX];
    int queries;
};

static void move(struct mover *m, bool in)
{
    if (in)
        CHECK_OK(hf_events_archive(m->scope, m->other, ORDER("1")));
    else
        CHECK_OK(hf_events_unarchive(m->scope, m->other, ORDER("1")));
}

static enum hf_status mover_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct mover *m = (struct mover *)(void *)db;

    for (int i = 0; op == HF_OP_QUERY && i < STEPS_MAX; i++)
        if (m->at[i] == m->queries)
            move(m, m->in[i]);
    m->queries += op == HF_OP_QUERY;
    return m->k->db->calls->call(s, m->k->db, op, request, response);
}

/* All events as a reader finds them to whom that happens. Returns how many queries it had. */
static int read_while(struct kit *k, struct hf_events *store, struct mover *m, struct hf_str *seen)
{
    static const struct db_calls calls = {.call = mover_call};
    struct hf_events *moved;
    int at[STEPS_MAX];

    memcpy(at, m->at, sizeof(at));
    m->db.calls = &calls;
    m->k = k;
    m->other = store;
    m->at[0] = m->at[1] = -1;
    CHECK_OK(
        hf_events_open(k->scope, &m->db, HF_OPTIONS(hf_events_options, .table = k->table), &moved));
    memcpy(m->at, at, sizeof(at));
    m->queries = 0;
    *seen = all_of(k, moved);
    hf_events_close(moved);
    return m->queries;
}

/* (4): whenever it happens, no event is missed, and none comes twice. */
KIT_TEST_TX(reader_archived, put_back_meanwhile)
{
    struct hf_events *store = filled(k);
    struct hf_str expected = all_of(k, store), seen;
    struct hf_scope *scope = kit_scope(k);
    int queries = 1;

    for (int in = 0; in < 2; in++)
        for (int at = 0; at < queries; at++) {
            struct hf_scope_mark mark = hf_scope_mark(k->scope);
            struct mover m = {.scope = scope, .at = {at, -1}, .in = {in}};

            m.other = store;
            move(&m, !in);
            queries = read_while(k, store, &m, &seen);
            CHECK_STR(expected.ptr, seen);
            hf_scope_rewind(k->scope, mark);
        }
    CHECK(queries > 8);
    hf_events_close(store);
}

/* The same there and back again, at any two moments. */
KIT_TEST_TX(reader_archived, there_and_back_meanwhile)
{
    struct hf_events *store = filled(k);
    struct hf_str expected = all_of(k, store), seen;
    struct hf_scope *scope = kit_scope(k);

    for (int in = 0; in < 2; in++)
        for (int first = 2; first < 10; first++)
            for (int second = first + 1; second < first + 4; second++) {
                struct hf_scope_mark mark = hf_scope_mark(k->scope);
                struct mover m = {.scope = scope, .at = {first, second}, .in = {in, !in}};

                m.other = store;
                move(&m, !in);
                read_while(k, store, &m, &seen);
                CHECK_STR(expected.ptr, seen);
                hf_scope_rewind(k->scope, mark);
            }
    hf_events_close(store);
}
