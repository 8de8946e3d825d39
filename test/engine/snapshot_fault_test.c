/*
 * engine/snapshot_fault_test.c: snapshots while allocations and the store fail, and a process that ends
 * during a restore; (n) is an invariant of snapshot.c.
 */
#include "snapshot_states.h"

#include "store/private.h"

#include <signal.h>

/* ---- faults --------------------------------------------------------------------------------- */

/* A database on a store that can be made to fail, in the state after mess_up(). */
struct bench {
    struct world w;
    struct store_faults faults;
    struct hf_engine_snapshot *fresh;
};

static void bench_open(struct bench *b, struct test *t)
{
    struct hf__store *inner, *store;

    *b = (struct bench){.w = {.t = t, .scope = hf_scope_new(test_env(t)), .url = "memory:"}};
    t->seed = 7; /* the same database every time */
    t->wall_us = 1767225600000000;
    CHECK_OK(hf__store_open_memory(b->w.scope, test_env(t), &inner));
    CHECK_OK(hf__store_open_with_faults(b->w.scope, test_env(t), inner, &b->faults, &store));
    b->w.options = (struct hf_engine_options){.size = sizeof(b->w.options),
                                              .env = test_env(t),
                                              .stream_shards = 1,
                                              .no_upkeep_thread = true};
    CHECK_OK(hf__engine_open_on(b->w.scope, store, &b->w.options, &b->w.db));
    fill(&b->w);
    b->fresh = take(&b->w);
    mess_up(&b->w);
}

static void bench_close(struct bench *b)
{
    hf_engine_snapshot_free(b->fresh);
    world_close(&b->w);
}

struct states {
    char *before;
    char *after;
};

static struct states clean_course(struct test *t)
{
    struct states states;
    struct bench b;

    bench_open(&b, t);
    states.before = dump(&b.w);
    restore(&b.w, b.fresh);
    states.after = dump(&b.w);
    bench_close(&b);
    return states;
}

static void free_states(struct states *states)
{
    free(states->before);
    free(states->after);
}

TEST(snapshot, an_allocation_fails_while_restoring)
{
    struct states states = clean_course(t);
    int64_t rounds = 0;

    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s;
        enum hf_status status;
        struct bench b;

        ALLOC_SWEEP_STOP(t);
        bench_open(&b, t);
        s = hf_scope_new(test_env(t));
        t->fail_at = (int64_t)t->allocs + nth;
        t->alloc_failed = false;
        status = hf_engine_snapshot_restore(s, b.w.db, b.fresh);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || !hf_scope_error(s)->may_have_happened);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK_DUMP(&b.w, status == HF_OK ? states.after : states.before);
        if (status != HF_OK) {
            restore(&b.w, b.fresh);
            CHECK_DUMP(&b.w, states.after);
        }
        hf_scope_free(s);
        bench_close(&b);
        rounds++;
    }
    CHECK(rounds > 20);
    free_states(&states);
}

TEST(snapshot, an_allocation_fails_while_taking_saving_or_loading)
{
    const char *directory = test_directory(t);
    struct bench b;
    char *before;

    bench_open(&b, t);
    before = dump(&b.w);
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_engine_snapshot *taken = NULL, *loaded = NULL;
        struct hf_str path = HF_STR("");
        enum hf_status status = HF_NOMEM;

        if (s)
            path = hf_scope_format(s, "%s/swept", directory);
        if (path.len)
            status = hf_engine_snapshot_take(s, b.w.db, &taken);
        if (status == HF_OK)
            status = hf_engine_snapshot_save(s, taken, path);
        if (status == HF_OK)
            status = hf_engine_snapshot_load(s, path, &loaded);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK(status != HF_OK || loaded != NULL);
        hf_engine_snapshot_free(taken);
        hf_engine_snapshot_free(loaded);
        hf_scope_free(s);
    }
    CHECK_DUMP(&b.w, before);
    free(before);
    bench_close(&b);
}

/* What the store has now, in a new engine: as after a crash. */
static char *dump_copy(struct bench *b)
{
    struct store_batch batch = {.ops = {.scope = b->w.scope}};
    const struct store_range all = {.fill_cache = true};
    struct bench copy = {.w = b->w};
    struct hf__store_iter *iter;
    struct hf__store *store;
    struct hf_bytes key, value;
    uint64_t ticket;
    bool found = true;
    char *text;

    CHECK_OK(hf__store_iter_open(b->w.scope, hf__engine_of(b->w.db)->store, NULL, &all, &iter));
    while (found) {
        CHECK_OK(hf__store_iter_next(b->w.scope, iter, &found, &key, &value));
        if (found)
            hf__batch_put(&batch, key, value);
    }
    hf__store_iter_close(iter);
    copy.w.scope = hf_scope_new(test_env(b->w.t));
    CHECK_OK(hf__store_open_memory(copy.w.scope, test_env(b->w.t), &store));
    CHECK_OK(hf__store_write(copy.w.scope, store, &batch, &ticket));
    CHECK_OK(hf__engine_open_on(copy.w.scope, store, &copy.w.options, &copy.w.db));
    text = dump(&copy.w);
    world_close(&copy.w);
    return text;
}

/* The nth call of the store fails while restoring; true when there was no nth. */
static bool store_fails(struct test *t, const struct states *states, uint64_t nth,
                        enum hf_status how, bool after)
{
    enum hf_status status;
    struct bench b;
    bool happened, sync;
    char *now;

    bench_open(&b, t);
    b.faults = (struct store_faults){.fail_at = nth, .status = how, .after = after};
    status = hf_engine_snapshot_restore(b.w.scope, b.w.db, b.fresh);
    b.faults.fail_at = 0;
    sync = b.faults.struck && strcmp(b.faults.struck, "sync") == 0;
    happened = status == HF_OK || sync ||
               (after && b.faults.struck && strcmp(b.faults.struck, "write") == 0);
    CHECK_STATUS(b.faults.struck ? how : HF_OK, status);
    CHECK(!happened || status == HF_OK || hf_scope_error(b.w.scope)->may_have_happened);
    if (how != HF_IO || !happened) { /* else reads wait for what never becomes durable */
        CHECK_DUMP(&b.w, happened ? states->after : states->before);
    } else {
        struct hf_list_tables_result tables;

        CHECK_OK(hf_list_tables(b.w.scope, b.w.db, &(struct hf_list_tables){.limit = 10}, &tables));
        CHECK_STR("goes", tables.tables[1]);
    }
    now = dump_copy(&b);
    CHECK(strcmp(now, happened ? states->after : states->before) == 0);
    free(now);
    if (status != HF_OK && how != HF_IO) {
        restore(&b.w, b.fresh);
        CHECK_DUMP(&b.w, states->after);
    }
    bench_close(&b);
    return b.faults.struck == NULL;
}

TEST(snapshot, a_call_of_the_store_fails_while_restoring)
{
    static const enum hf_status ways[] = {HF_IO, HF_NO_SPACE, HF_NOMEM};
    struct states states = clean_course(t);

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        uint64_t nth = 1;

        while (!store_fails(t, &states, nth, ways[i], false))
            nth++;
        CHECK(nth > 30);
    }
    for (uint64_t nth = 1; !store_fails(t, &states, nth, HF_IO, true);)
        nth++;
    free_states(&states);
}

static enum hf_status no_get(struct hf_scope *s, struct hf__store *store,
                             const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                             struct hf_bytes *value)
{
    (void)store, (void)snapshot, (void)key, (void)value;
    return hf__fail(s, HF_IO, "Nothing can be read");
}

/* The write of a restore fails, and then nothing can be read: did it take effect? */
TEST(snapshot, nobody_is_shown_a_state_that_is_not_known)
{
    struct states states = clean_course(t);

    for (int after = 0; after < 2; after++) {
        struct store_kind kind;
        const struct store_kind *real;
        struct engine *e;
        struct bench b;
        char *now;

        bench_open(&b, t);
        e = hf__engine_of(b.w.db);
        b.faults.calls = 0;
        restore(&b.w, b.fresh);
        b.faults = (struct store_faults){.status = HF_IO,
                                         .fail_at = b.faults.calls - 1, /* then comes the sync */
                                         .after = after};
        mess_up(&b.w);
        b.faults.calls = 0;
        real = e->store->kind;
        kind = *real;
        kind.get = no_get;
        e->store->kind = &kind;
        CHECK_STATUS(HF_IO, hf_engine_snapshot_restore(b.w.scope, b.w.db, b.fresh));
        e->store->kind = real;
        CHECK(hf_scope_error(b.w.scope)->may_have_happened);
        CHECK_INT(0, strcmp(b.faults.struck, "write"));
        b.faults.fail_at = 0;
        CHECK(is_error(world_call(&b.w, "DescribeTable", "{'TableName':'all'}")));
        CHECK(is_error(world_call(&b.w, "ListTables", "{}")));
        CHECK_STATUS(HF_STOPPED, hf_engine_upkeep(b.w.scope, b.w.db, NULL));
        CHECK_STATUS(HF_STOPPED, hf_engine_snapshot_restore(b.w.scope, b.w.db, b.fresh));
        now = dump_copy(&b);
        CHECK((strcmp(now, states.after) == 0) == (after == 1));
        free(now);
        bench_close(&b);
    }
    free_states(&states);
}

/* ---- crashes -------------------------------------------------------------------------------- */

#ifdef HF_KILL_POINTS

/* In the process that is killed: restore what the file beside the database holds. */
static int restore_from_file(struct world *w)
{
    struct hf_str path = hf_scope_format(w->scope, "%s.snapshot", w->url + strlen("embedded:"));
    struct hf_engine_snapshot *snapshot;

    return hf_engine_snapshot_load(w->scope, path, &snapshot) != HF_OK ||
           hf_engine_snapshot_restore(w->scope, w->db, snapshot) != HF_OK;
}

TEST(snapshot, a_crash_leaves_the_old_or_the_new_state)
{
    static const struct {
        const char *point;
        enum { OLD, EITHER, NEW } state;
    } points[] = {{"before_snapshot_restore:1", OLD},
                  {"before_write:1", OLD},
                  {"after_snapshot_restore:1", EITHER}, /* applied, and not waited for yet */
                  {"after_write:2", EITHER},
                  {"before_answer:1", NEW}};
    struct hf_engine_snapshot *fresh, *other;
    struct world w;
    char *before, *after, *now;

    crash_here(t, restore_from_file);
    w = world_open(t, "disk:");
    fill(&w);
    fresh = take(&w);
    after = dump(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh,
                                     hf_scope_format(w.scope, "%s.snapshot",
                                                     w.url + strlen("embedded:"))));
    mess_up(&w);
    upkeep(&w);
    other = take(&w);
    before = dump(&w);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        restore(&w, other);
        CHECK_DUMP(&w, before);
        if (!crash_at(&w, points[i].point))
            fail_msg("the point %s was not passed", points[i].point);
        now = dump(&w);
        if (points[i].state == OLD || (points[i].state == EITHER && strcmp(now, after) != 0))
            CHECK_DUMP(&w, before);
        else
            CHECK_DUMP(&w, after);
        free(now);
    }
    hf_engine_snapshot_free(fresh);
    hf_engine_snapshot_free(other);
    free(before);
    free(after);
    world_close(&w);
}

#endif
