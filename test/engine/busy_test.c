/*
 * engine/busy_test.c: what takes long holds nobody up. The store is made to wait at the first item
 * that a long operation looks at; meanwhile others must come through.
 */
#include "help.h"

#include "engine/engine.h"
#include "engine/layout.h"
#include "store/private.h"
#include "store/store.h"

enum { PATIENCE_MS = 30000 };

/* A store in memory whose first step onto an item, once armed, waits. */
struct slow {
    struct store_kind kind; /* that of the store, with our step */
    enum hf_status (*next)(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                           struct hf_bytes *key, struct hf_bytes *value);
    atomic_bool armed;
    atomic_bool waiting;
    atomic_bool released;
    atomic_bool gave_up; /* nobody came through in time */
};

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static enum hf_status slow_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                struct hf_bytes *key, struct hf_bytes *value)
{
    const void *kind = iter->store->kind;
    struct slow *slow = (struct slow *)(uintptr_t)kind;
    enum hf_status status = slow->next(s, iter, found, key, value);

    if (*found && key->ptr[0] == SPACE_ITEM && atomic_exchange(&slow->armed, false)) {
        atomic_store(&slow->waiting, true);
        for (int i = 0; i < PATIENCE_MS && !atomic_load(&slow->released); i++)
            nap();
        atomic_store(&slow->gave_up, !atomic_load(&slow->released));
    }
    return status;
}

/* A database with a few items, as it is after a crash: nothing is counted. */
static struct world open_uncounted(struct test *t, struct slow *slow)
{
    struct world w = world_open(t, "memory:");
    struct store_batch batch = {.ops = {.scope = w.scope}};
    const struct store_range all = {.fill_cache = true};
    struct hf__store_iter *iter;
    struct hf__store *copy;
    struct hf_bytes key, value;
    uint64_t ticket;
    bool found = true;

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (int i = 0; i < 5; i++)
        CHECK(!is_error(callf(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%d'}}}", i)));
    CHECK_OK(hf__store_iter_open(w.scope, hf__engine_of(w.db)->store, NULL, &all, &iter));
    while (found) {
        CHECK_OK(hf__store_iter_next(w.scope, iter, &found, &key, &value));
        if (found)
            hf__batch_put(&batch, key, value);
    }
    hf__store_iter_close(iter);
    CHECK_OK(hf__store_open_memory(w.scope, test_env(t), &copy));
    CHECK_OK(hf__store_write(w.scope, copy, &batch, &ticket));
    hf_db_close(w.db);
    *slow = (struct slow){.kind = *copy->kind, .next = copy->kind->iter_next};
    slow->kind.iter_next = slow_next;
    copy->kind = &slow->kind;
    CHECK_OK(hf__engine_open_on(w.scope, copy, &w.options, &w.db));
    atomic_store(&slow->armed, true);
    return w;
}

struct call {
    const char *operation;
    const char *json;
};

static void *do_call(void *arg)
{
    struct worker *me = arg;
    const struct call *call = me->user;

    if (strcmp(call->operation, "Upkeep") == 0)
        me->wrong += hf_engine_upkeep(me->w.scope, me->w.db, NULL) != HF_OK;
    else if (strcmp(call->operation, "Check") == 0)
        me->wrong += hf_engine_check(me->w.scope, me->w.db, NULL) != HF_OK;
    else
        me->wrong += is_error(world_call(&me->w, call->operation, call->json));
    return NULL;
}

/* While `slowly` waits in the middle of its work, the other call is done. */
static void must_not_wait(struct test *t, struct call slowly, struct call other)
{
    struct slow slow;
    struct world w = open_uncounted(t, &slow);
    struct worker first, second;
    struct hf_str answer;

    workers_start(&w, &first, 1, 1, do_call, &slowly);
    while (!atomic_load(&slow.waiting))
        nap();
    workers_start(&w, &second, 1, 1, do_call, &other);
    CHECK_INT(0, workers_join(&second, 1));
    atomic_store(&slow.released, true);
    CHECK_INT(0, workers_join(&first, 1));
    CHECK(!atomic_load(&slow.gave_up));
    answer = world_call(&w, "DescribeTable", "{'TableName':'tab'}");
    if (strcmp(other.operation, "DeleteTable") != 0)
        CHECK_INT(5, next_number(&answer, "\"ItemCount\":"));
    world_close(&w);
}

static const struct call create = {"CreateTable", PK_TABLE("more", "")};

TEST(busy, counting_for_describe_table_holds_nobody_up)
{
    must_not_wait(t, (struct call){"DescribeTable", "{'TableName':'tab'}"}, create);
}

TEST(busy, counting_for_update_table_holds_nobody_up)
{
    must_not_wait(t,
                  (struct call){"UpdateTable",
                                "{'TableName':'tab','DeletionProtectionEnabled':true}"},
                  create);
}

TEST(busy, counting_in_upkeep_holds_nobody_up)
{
    must_not_wait(t, (struct call){"Upkeep", NULL}, create);
}

TEST(busy, a_check_holds_nobody_up)
{
    must_not_wait(t, (struct call){"Check", NULL}, create);
    must_not_wait(t, (struct call){"Check", NULL},
                  (struct call){"DeleteTable", "{'TableName':'tab'}"});
}

/* Upkeep that finds nothing to change does not wait for a reader, and so nobody waits for it. */
TEST(busy, upkeep_beside_a_long_read_holds_nobody_up)
{
    struct call scan = {"Scan", "{'TableName':'tab'}"};
    struct call idle = {"Upkeep", NULL};
    struct call put = {"PutItem", "{'TableName':'tab','Item':{'pk':{'S':'0'},'x':{'S':'x'}}}"};
    struct slow slow;
    struct world w = open_uncounted(t, &slow);
    struct worker reader, maintainer, writer;

    workers_start(&w, &reader, 1, 1, do_call, &scan);
    while (!atomic_load(&slow.waiting))
        nap();
    workers_start(&w, &maintainer, 1, 1, do_call, &idle);
    for (int i = 0; i < 100; i++)
        nap();
    workers_start(&w, &writer, 1, 1, do_call, &put);
    CHECK_INT(0, workers_join(&writer, 1));
    atomic_store(&slow.released, true);
    CHECK_INT(0, workers_join(&reader, 1));
    CHECK_INT(0, workers_join(&maintainer, 1));
    CHECK(!atomic_load(&slow.gave_up));
    world_close(&w);
}
