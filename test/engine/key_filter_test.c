/*
 * engine/key_filter_test.c: what a filter of keys finds, what is not read because of it, and that items and index
 * entries are replaced as ever. On disk, builds for tests also look up each key that is said to be new.
 */
#include "help.h"

#include "engine/engine.h"
#include "engine/item/key_filter.h"
#include "store/store.h"

enum { KEYS = 50000, THREADS = 4, ROUNDS = 300 };

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'g','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':"     \
    "'HASH'}],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'by_g',"      \
    "'KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}]" \
    "}"

static struct hf_bytes key_of(char room[32], char kind, int number)
{
    return hf_bytes_of(room, (size_t)snprintf(room, 32, "\x10table%c%07d", kind, number));
}

static int count_found(const struct key_filter *filter, char kind)
{
    int found = 0;
    char room[32];

    for (int i = 0; i < KEYS; i++)
        found += hf__row_filter_has(filter, key_of(room, kind, i));
    return found;
}

TEST(key_filter, finds_what_was_added_and_little_else)
{
    struct key_filter *filter = hf__row_filter_new(test_env(t), 16 * 1024 * 1024);
    char room[32];

    CHECK(filter != NULL);
    CHECK_INT(0, count_found(filter, 'a'));
    for (int i = 0; i < KEYS; i++)
        hf__row_filter_add(test_env(t), filter, key_of(room, 'a', i));
    CHECK_INT(KEYS, count_found(filter, 'a'));
    CHECK(count_found(filter, 'b') < KEYS / 50);
    hf__row_filter_free(test_env(t), filter);
}

TEST(key_filter, that_is_full_finds_everything)
{
    struct key_filter *filter = hf__row_filter_new(test_env(t), 64 * 1024);
    char room[32];

    for (int i = 0; i < KEYS; i++)
        hf__row_filter_add(test_env(t), filter, key_of(room, 'a', i));
    CHECK_INT(KEYS, count_found(filter, 'a'));
    CHECK_INT(KEYS, count_found(filter, 'b'));
    hf__row_filter_free(test_env(t), filter);
}

struct adder {
    struct key_filter *filter;
    const struct hf_env *env;
    char kind;
};

static void *add_all(void *user)
{
    const struct adder *adder = user;
    char room[32];

    for (int i = 0; i < KEYS; i++)
        hf__row_filter_add(adder->env, adder->filter, key_of(room, adder->kind, i));
    return NULL;
}

TEST(key_filter, threads_add_at_the_same_time)
{
    const struct hf_env env = hf__env_fill(NULL); /* the one of tests belongs to one thread */
    struct key_filter *filter = hf__row_filter_new(&env, 16 * 1024 * 1024);
    struct adder adders[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){.filter = filter, .env = &env, .kind = (char)('a' + i)};
        CHECK_INT(0, pthread_create(&threads[i], NULL, add_all, &adders[i]));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(KEYS, count_found(filter, (char)('a' + i)));
    hf__row_filter_free(&env, filter);
}

/* Each key is put three times with another index key, and every third is deleted in between. */
static void fill(struct world *w)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < ROUNDS; i++) {
            CHECK(!is_error(callf(w, "PutItem",
                                  "{'TableName':'tab','Item':{'pk':{'S':'k%d'},'g':{'S':'g%d'}}}",
                                  i, round)));
            if (round < 2 && i % 3 == 0)
                CHECK(!is_error(
                    callf(w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'k%d'}}}", i)));
            hf_scope_reset(w->scope);
        }
}

static long long count_entries(struct world *w, const char *g)
{
    struct hf_str answer = callf(w, "Query",
                                 "{'TableName':'tab','IndexName':'by_g','Select':'COUNT',"
                                 "'KeyConditionExpression':'g=:g','ExpressionAttributeValues':"
                                 "{':g':{'S':'%s'}}}",
                                 g);

    return next_number(&answer, "\"Count\":");
}

static void check_filled(struct world *w)
{
    CHECK_INT(0, count_entries(w, "g0"));
    CHECK_INT(0, count_entries(w, "g1"));
    CHECK_INT(ROUNDS, count_entries(w, "g2"));
}

TEST(key_filter, items_are_replaced_on_a_new_table)
{
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", TABLE);
    fill(&w);
    check_filled(&w);
    world_close(&w);
}

/* A table that was closed while it was empty has a filter again; one with items has none. */
TEST(key_filter, items_are_replaced_after_reopening)
{
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", TABLE);
    world_reopen(&w);
    fill(&w);
    world_reopen(&w);
    fill(&w);
    check_filled(&w);
    world_close(&w);
}

static int fill_some(struct world *w)
{
    int wrong = 0;

    for (int i = 0; i < ROUNDS; i++)
        wrong +=
            is_error(callf(w, "PutItem",
                           "{'TableName':'tab','Item':{'pk':{'S':'k%d'},'g':{'S':'old'}}}", i));
    return wrong;
}

/* After a crash nobody knows whether the table is empty. */
TEST(key_filter, items_are_replaced_after_a_crash)
{
    struct world w;

    crash_here(t, fill_some);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", TABLE);
    crash_after(&w);
    fill(&w);
    CHECK_INT(0, count_entries(&w, "old"));
    check_filled(&w);
    world_close(&w);
}

static uint64_t calls_of_put(struct world *w, const struct store_faults *faults, int number)
{
    uint64_t before = faults->calls;

    CHECK(!is_error(callf(w, "PutItem",
                          "{'TableName':'tab','Item':{'pk':{'S':'k%d'},'n':{'N':'%llu'}}}", number,
                          (unsigned long long)before)));
    return faults->calls - before;
}

TEST(key_filter, what_is_new_is_not_looked_for)
{
    struct world w = {.t = t, .scope = hf_scope_new(test_env(t))};
    struct store_faults faults = {.status = HF_OK};
    struct hf__store *memory, *store;

    w.options = (struct hf_engine_options){.env = test_env(t),
                                           .no_upkeep_thread = true,
                                           .sync = HF_SYNC_NONE};
    CHECK_OK(hf__store_open_memory(w.scope, test_env(t), &memory));
    CHECK_OK(hf__store_open_with_faults(w.scope, test_env(t), memory, &faults, &store));
    CHECK_OK(hf__engine_open_on(w.scope, store, &w.options, &w.db));
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (int i = 0; i < 10; i++) {
        uint64_t first = calls_of_put(&w, &faults, i);

        CHECK_INT(first + 1, calls_of_put(&w, &faults, i)); /* what is there is read */
    }
    world_close(&w);
}
