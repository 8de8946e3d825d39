/*
 * engine/pending_sync_test.c: calls that note what has to be durable instead of waiting for it, as
 * the server has them do for all requests of one iteration of an event loop.
 */
#include "help.h"

#include "db/db.h"
#include "engine/engine.h"
#include "store/store.h"

struct pending {
    struct world w;
    struct store_faults faults;
    struct hf__store *store;
    struct hf__pending_sync pending_sync;
};

static void pending_open(struct test *t, struct pending *o)
{
    struct hf__store *memory;

    *o = (struct pending){.w = world_open(t, "memory:")};
    hf_db_close(o->w.db);
    CHECK_OK(hf__store_open_memory(o->w.scope, test_env(t), &memory));
    CHECK_OK(hf__store_open_with_faults(o->w.scope, test_env(t), memory, &o->faults, &o->store));
    CHECK_OK(hf__engine_open_on(o->w.scope, o->store, &o->w.options, &o->w.db));
    world_ok(&o->w, "CreateTable", PK_TABLE("tab", ""));
}

static enum hf_status put(struct pending *o, int number)
{
    struct hf_scope *s = o->w.scope;

    return hf_put_item(s, o->w.db,
                       &(struct hf_put_item){.table = HF_STR("tab"),
                                             .item = HF_ITEM(s, HF_S("pk", HF_STR("a")),
                                                             HF_N("n", number))},
                       NULL);
}

static enum hf_status get(struct pending *o, struct hf_get_item_result *got)
{
    struct hf_scope *s = o->w.scope;

    return hf_get_item(s, o->w.db,
                       &(struct hf_get_item){.table = HF_STR("tab"),
                                             .key = HF_ITEM(s, HF_S("pk", HF_STR("a"))),
                                             .consistent = HF_YES},
                       got);
}

/* Two writes and a read of what they wrote, one sync. */
TEST(pending_sync, is_done_once_for_many_calls)
{
    struct hf_get_item_result got;
    uint64_t before;
    struct pending o;

    pending_open(t, &o);
    before = o.faults.calls;
    hf__scope_set_pending_sync(o.w.scope, &o.pending_sync);
    CHECK_OK(put(&o, 1));
    CHECK(o.pending_sync.ticket > hf__store_durable(o.store));
    CHECK_OK(put(&o, 2));
    CHECK_OK(get(&o, &got));
    CHECK(got.item.ptr != NULL);
    CHECK(o.pending_sync.ticket == hf__store_written(o.store));
    /* A put reads and writes; the first one of a new table does not read. */
    CHECK_INT(4, o.faults.calls - before);
    hf__scope_set_pending_sync(o.w.scope, NULL);
    CHECK_OK(hf__db_sync(o.w.scope, o.w.db, o.pending_sync.ticket));
    CHECK_INT(5, o.faults.calls - before);
    CHECK(o.pending_sync.ticket <= hf__store_durable(o.store));
    world_close(&o.w);
}

/* A read of what is durable owes nothing. */
TEST(pending_sync, is_none_for_what_is_durable)
{
    struct hf_get_item_result got;
    struct pending o;

    pending_open(t, &o);
    CHECK_OK(put(&o, 1));
    hf__scope_set_pending_sync(o.w.scope, &o.pending_sync);
    CHECK_OK(get(&o, &got));
    CHECK_INT(0, o.pending_sync.ticket);
    CHECK_OK(hf__db_sync(o.w.scope, o.w.db, o.pending_sync.ticket));
    world_close(&o.w);
}

/* A read of what is not durable needs the sync, too; a sync that fails is an error. */
TEST(pending_sync, of_a_failed_sync_is_an_error)
{
    struct hf_get_item_result got;
    struct hf__pending_sync reader = {0};
    struct pending o;

    pending_open(t, &o);
    hf__scope_set_pending_sync(o.w.scope, &o.pending_sync);
    CHECK_OK(put(&o, 1));
    hf__scope_set_pending_sync(o.w.scope, &reader);
    CHECK_OK(get(&o, &got));
    CHECK(reader.ticket >= o.pending_sync.ticket);
    hf__scope_set_pending_sync(o.w.scope, NULL);
    o.faults.fail_at = o.faults.calls + 1;
    CHECK_STATUS(HF_IO, hf__db_sync(o.w.scope, o.w.db, o.pending_sync.ticket));
    CHECK(hf_scope_error(o.w.scope)->may_have_happened);
    world_close(&o.w);
}

/* A reset ends it: the next user of the scope waits. */
TEST(pending_sync, ends_with_a_reset)
{
    struct pending o;

    pending_open(t, &o);
    hf__scope_set_pending_sync(o.w.scope, &o.pending_sync);
    hf_scope_reset(o.w.scope);
    CHECK_OK(put(&o, 1));
    CHECK_INT(0, o.pending_sync.ticket);
    CHECK(hf__store_written(o.store) == hf__store_durable(o.store));
    world_close(&o.w);
}

/* The same for programs: writes return before they are durable, and hf_db_sync() waits for all of them. */
TEST(pending_sync, of_a_scope_that_syncs_later)
{
    struct pending o;

    pending_open(t, &o);
    CHECK_OK(hf_db_sync(o.w.scope, o.w.db)); /* nothing waits */
    hf_scope_sync_later(o.w.scope, true);
    CHECK_OK(hf_db_sync(o.w.scope, o.w.db));
    CHECK_OK(put(&o, 1));
    CHECK_OK(put(&o, 2));
    CHECK(hf__store_written(o.store) > hf__store_durable(o.store));
    CHECK_OK(hf_db_sync(o.w.scope, o.w.db));
    CHECK_INT(hf__store_written(o.store), hf__store_durable(o.store));
    CHECK_OK(put(&o, 3)); /* it stays on */
    CHECK(hf__store_written(o.store) > hf__store_durable(o.store));
    hf_scope_sync_later(o.w.scope, false);
    CHECK_OK(put(&o, 4));
    CHECK_INT(hf__store_written(o.store), hf__store_durable(o.store));
    CHECK_STATUS(HF_INVALID, hf_db_sync(o.w.scope, NULL));
    world_close(&o.w);
}

/* A sync that fails is an error of each call until one succeeds: none may take the writes for durable. */
TEST(pending_sync, of_a_scope_is_not_forgotten_when_it_fails)
{
    struct pending o;

    pending_open(t, &o);
    hf_scope_sync_later(o.w.scope, true);
    CHECK_OK(put(&o, 1));
    o.faults.fail_at = o.faults.calls + 1;
    CHECK_STATUS(HF_IO, hf_db_sync(o.w.scope, o.w.db));
    CHECK(hf_scope_error(o.w.scope)->may_have_happened);
    CHECK(hf_db_sync(o.w.scope, o.w.db) != HF_OK);
    world_close(&o.w);
}
