/*
 * copy/copy_random_test.c: random histories of the source, copiers that end at random with answers and requests
 * that are lost, and somebody else who writes to the target. (copy_apply.c has the proof that this tries
 * to refute.)
 *
 * The source is changed between any two steps of a copier, by a wrapper around the target that does it while a
 * call is under way. Without threads, so that a seed repeats a failure.
 */
#include <holdfast/copy.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/table.h>
#include <holdfast/trace.h>

#include <stdio.h>
#include <string.h>

#include "test.h"

enum { KEYS = 6, STATES = 3, FOREIGN_KEYS = 3, OPERATIONS = 4 };

struct world {
    struct test *t;
    struct hf_scope *s, *writer;
    struct hf_db *source, *target, *traced, *engine;
    bool writing; /* the source changes while calls are under way */
    bool inside;
    bool foreign;          /* somebody else writes to the target */
    char theirs[KEYS][16]; /* what he has written last; "": nothing, "-": removed */
    uint64_t writes;
};

static struct hf_item key_of(struct hf_scope *s, uint64_t n)
{
    return HF_ITEM(s, HF_S("id", hf_scope_format(s, "k%llu", (unsigned long long)n)));
}

/* Few states, so that items come to be again as they were. */
static void source_write(struct world *w)
{
    uint64_t key = test_random_below(w->t, KEYS), what = test_random_below(w->t, STATES + 1);
    const struct hf_attr state[] = {HF_N("state", (int64_t)what)};

    w->writes++;
    if (what == STATES) {
        struct hf_delete_item del = {.table = HF_STR("orders"), .key = key_of(w->writer, key)};

        CHECK_OK(hf_delete_item(w->writer, w->source, &del, NULL));
        return;
    }
    CHECK_OK(hf_put_item(
        w->writer, w->source,
        &(struct hf_put_item){.table = HF_STR("orders"),
                              .item = hf_item_with(w->writer, key_of(w->writer, key), state, 1)},
        NULL));
}

/* Texts that the source never has. */
static void foreign_write(struct world *w)
{
    uint64_t key = test_random_below(w->t, FOREIGN_KEYS);
    char *theirs = w->theirs[key];
    const struct hf_attr text[] = {HF_S("theirs", hf_str_from(theirs))};

    if (test_random_below(w->t, 8))
        return;
    snprintf(theirs, sizeof(w->theirs[key]), "t%llu", (unsigned long long)w->writes++);
    CHECK_OK(
        hf_put_item(w->writer, w->engine,
                    &(struct hf_put_item){
                        .table = HF_STR("orders"),
                        .item = hf_item_with(w->writer, key_of(w->writer, key),
                                             (struct hf_attr[]){
                                                 hf_attr_of_str(text[0].name, hf_str_from(theirs))},
                                             1)},
                    NULL));
}

static void between_calls(struct hf_trace_call *call, void *user)
{
    struct world *w = user;

    (void)call;
    if (!w->writing || w->inside)
        return;
    w->inside = true;
    hf_scope_reset(w->writer);
    while (test_random_below(w->t, 3) == 0)
        source_write(w);
    if (w->foreign)
        foreign_write(w);
    w->inside = false;
}

static struct hf_db *memory_open(struct world *w)
{
    struct hf_engine_options options = {.size = sizeof(options),
                                        .env = test_env(w->t),
                                        .no_upkeep_thread = true,
                                        .sync = HF_SYNC_NONE};
    struct hf_db *db;

    CHECK_OK(hf_open(w->s, HF_STR("memory:"), &options, &db));
    return db;
}

static void world_open(struct world *w, struct test *t)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_stream_spec both = {HF_YES, HF_VIEW_NEW_AND_OLD_IMAGES};
    const struct hf_create_table spec = {.table = HF_STR("orders"),
                                         .attributes = &attribute,
                                         .attributes_len = 1,
                                         .key_schema = &key,
                                         .key_schema_len = 1,
                                         .stream = &both};
    struct hf_db *faulty;

    *w = (struct world){.t = t};
    w->s = hf_scope_new(test_env(t));
    w->writer = hf_scope_new(test_env(t));
    w->source = memory_open(w);
    w->target = memory_open(w);
    CHECK_OK(hf_table_ensure(w->s, w->source, &spec, NULL));
    CHECK_OK(hf_faulty_open(w->s, w->target, &faulty));
    w->engine = w->target;
    w->target = faulty;
    CHECK_OK(hf_trace_open(w->s, faulty,
                           HF_OPTIONS(hf_trace_options, .before = between_calls, .user = w),
                           &w->traced));
}

static void world_close(struct world *w)
{
    hf_db_close(w->traced);
    hf_db_close(w->source);
    hf_scope_free(w->writer);
    hf_scope_free(w->s);
}

static struct hf_copy *copier_open(struct world *w)
{
    const struct hf_copy_options o = {.size = sizeof(o), .segments = 1, .follow = true};
    struct hf_copy *copy = NULL;

    hf_scope_reset(w->s);
    CHECK_OK(hf_copy_open(w->s, w->source, w->traced, &o, &copy));
    return copy;
}

/* The nth call from now on is lost, before it is done or behind that, and so are all that follow: as far as
 * the copier goes, it was killed. */
static void copier_run(struct world *w, bool killed)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    static const char *const operations[] = {"PutItem", "UpdateItem", "DeleteItem", "GetItem"};
    struct hf_copy *copy = copier_open(w);
    struct hf_fault faults[OPERATIONS] = {{.skip = 0}};

    w->writing = true;
    for (size_t i = 0; i < OPERATIONS; i++)
        faults[i] = (struct hf_fault){
            .kind = kinds[test_random_below(w->t, 2)],
            .operation = hf_str_from(operations[i]),
            .skip = (uint32_t)test_random_below(w->t, test_random_below(w->t, 2) ? 12 : 80)};
    if (killed)
        CHECK_OK(hf_faulty_set(w->s, w->target, faults, OPERATIONS));
    if (hf_copy_run(w->s, copy) == HF_OK)
        (void)!hf_copy_follow(w->s, copy, true);
    w->writing = false;
    CHECK_OK(hf_faulty_set(w->s, w->target, NULL, 0));
    hf_copy_close(copy);
}

static struct hf_copy_result world_settle(struct world *w)
{
    struct hf_copy *copy = copier_open(w);
    struct hf_copy_result result;

    CHECK_OK(hf_copy_run(w->s, copy));
    CHECK_OK(hf_copy_follow(w->s, copy, true));
    CHECK_OK(hf_copy_verify(w->s, copy, NULL, NULL, &result));
    hf_copy_close(copy);
    return result;
}

TEST(copy_random, the_target_ends_as_the_source)
{
    for (uint32_t round = 0; round < test_times(400); round++) {
        struct hf_copy_result result;
        struct world w;

        world_open(&w, t);
        for (int i = 0; i < 20; i++)
            source_write(&w);
        for (uint64_t i = test_random_below(t, 8); i > 0; i--)
            copier_run(&w, true);
        copier_run(&w, false);
        result = world_settle(&w);
        CHECK_INT(0, result.missing + result.extra + result.different + result.moving);
        CHECK_INT(0, result.conflicts);
        CHECK_INT(result.source_items, result.target_items);
        world_close(&w);
    }
}

/* What somebody else wrote stays, whatever happens to the copier; and nothing else differs. */
TEST(copy_random, what_others_write_stays)
{
    for (uint32_t round = 0; round < test_times(400); round++) {
        struct hf_copy_result result;
        uint64_t theirs = 0;
        struct world w;

        world_open(&w, t);
        for (int i = 0; i < 20; i++)
            source_write(&w);
        copier_run(&w, false); /* all items are copied */
        w.foreign = true;
        for (uint64_t i = 1 + test_random_below(t, 6); i > 0; i--)
            copier_run(&w, i > 1);
        result = world_settle(&w);
        for (uint64_t key = 0; key < FOREIGN_KEYS; key++) {
            struct hf_get_item get = {.table = HF_STR("orders"), .key = key_of(w.s, key)};
            struct hf_get_item_result got;

            if (!w.theirs[key][0])
                continue;
            theirs++;
            CHECK_OK(hf_get_item(w.s, w.target, &get, &got));
            CHECK_STR(w.theirs[key], hf_value_str(hf_item_get(got.item, HF_STR("theirs"))));
        }
        CHECK_INT(theirs, result.missing + result.extra + result.different);
        world_close(&w);
    }
}
