/*
 * engine/tokens_test.c: a client token makes a transaction happen once, with many callers at once,
 * across reopening and after a crash, for ten minutes.
 */
#include "help.h"

#define ADD_ONE                                                                                    \
    "{'ClientRequestToken':'%s','TransactItems':[{'Update':{'TableName':'tab','Key':{'pk':{'S':"   \
    "'a'}},'UpdateExpression':'ADD n :one','ExpressionAttributeValues':{':one':{'N':'1'}}}}]}"

static long long value_of_n(struct world *w)
{
    struct hf_str rest =
        world_ok(w, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}},'ConsistentRead':true}");

    return next_number(&rest, "\"n\":{\"N\":\"");
}

static void *add_with_same_tokens(void *arg)
{
    struct worker *worker = arg;

    for (unsigned i = 0; i < worker->rounds; i++) {
        char token[32];

        snprintf(token, sizeof(token), "token-%u", i);
        worker->wrong += is_error(callf(&worker->w, "TransactWriteItems", ADD_ONE, token));
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

static void happens_once(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    struct worker workers[WORKERS_MAX];

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    workers_start(&w, workers, WORKERS_MAX, 50, add_with_same_tokens, NULL);
    CHECK_INT(0, workers_join(workers, WORKERS_MAX));
    CHECK_INT(50, value_of_n(&w));
    world_close(&w);
}

TEST(tokens, eight_threads_with_one_token_have_its_effect_once_in_memory)
{
    happens_once(t, "memory:");
}

TEST(tokens, eight_threads_with_one_token_have_its_effect_once_on_disk)
{
    happens_once(t, "disk:");
}

TEST(tokens, last_ten_minutes_across_reopening)
{
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    CHECK(!is_error(callf(&w, "TransactWriteItems", ADD_ONE, "once")));
    world_reopen(&w);
    test_advance_ms(t, 10 * 60 * 1000 - 1);
    CHECK(!is_error(callf(&w, "TransactWriteItems", ADD_ONE, "once")));
    CHECK_INT(1, value_of_n(&w));
    CHECK_INT(0, upkeep(&w).dropped_tokens);
    world_reopen(&w);
    test_advance_ms(t, 1);
    CHECK(!is_error(callf(&w, "TransactWriteItems", ADD_ONE, "once"))); /* as good as new */
    CHECK_INT(2, value_of_n(&w));
    CHECK(!is_error(callf(&w, "TransactWriteItems", ADD_ONE, "once")));
    CHECK_INT(2, value_of_n(&w));

    /* Upkeep drops the old one's age, not the token that was used again. */
    test_advance_ms(t, 1);
    upkeep(&w);
    CHECK(!is_error(callf(&w, "TransactWriteItems", ADD_ONE, "once")));
    CHECK_INT(2, value_of_n(&w));
    test_advance_ms(t, 10 * 60 * 1000);
    CHECK_INT(1, upkeep(&w).dropped_tokens);
    CHECK_INT(0, upkeep(&w).dropped_tokens);
    world_close(&w);
}

/* Many more than upkeep looks at in one go. */
TEST(tokens, all_old_ones_are_dropped)
{
    struct world w = world_open(t, "memory:");
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < 2500; i++) {
        char token[32];

        snprintf(token, sizeof(token), "token-%u", i);
        CHECK(!is_error(callf(&w, "TransactWriteItems", ADD_ONE, token)));
        hf_scope_reset(w.scope);
    }
    test_advance_ms(t, 10 * 60 * 1000 + 1);
    CHECK_INT(2500, upkeep(&w).dropped_tokens);
    CHECK_INT(0, upkeep(&w).dropped_tokens);
    world_close(&w);
}

static int add_once(struct world *w)
{
    return is_error(callf(w, "TransactWriteItems", ADD_ONE, "once"));
}

TEST(tokens, survive_a_process_that_ends_without_closing)
{
    struct world w;

    crash_here(t, add_once);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    crash_after(&w);
    CHECK_INT(1, value_of_n(&w));
    CHECK_INT(0, add_once(&w));
    CHECK_INT(1, value_of_n(&w));
    world_close(&w);
}
