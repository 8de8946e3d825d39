/*
 * engine/ttl_test.c: items that expire, on the virtual clock, which starts at 2026-01-01
 * (1767225600 seconds): what expires and when, and that a changed item is not swept away.
 */
#include "help.h"

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/maintenance/maintenance.h"
#include "engine/table/catalog.h"
#include "store/store.h"

#define ENABLE_TTL                                                                                 \
    "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'ttl'}}"
#define DISABLE_TTL                                                                                \
    "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':false,'AttributeName':'ttl'}}"

enum { NOW = 1767225600, YEAR = 365 * 24 * 60 * 60 };

static void put_expiring(struct world *w, const char *pk, const char *ttl)
{
    CHECK(!is_error(
        callf(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%s'},'ttl':%s}}", pk, ttl)));
}

static bool is_there(struct world *w, const char *pk)
{
    struct hf_str answer =
        callf(w, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'%s'}},'ConsistentRead':true}",
              pk);

    CHECK(!is_error(answer));
    return answer.len > 2;
}

static void sweeps_on_the_virtual_clock(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    put_expiring(&w, "before", "{'N':'1767225610'}"); /* was there before it was enabled */
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    put_expiring(&w, "after", "{'N':'1767225620'}");
    put_expiring(&w, "fraction", "{'N':'1767225620.9'}");
    put_expiring(&w, "exponent", "{'N':'1.76722562e9'}");
    put_expiring(&w, "text", "{'S':'1767225600'}");
    put_expiring(&w, "list", "{'L':[{'N':'1767225600'}]}");
    put_expiring(&w, "negative", "{'N':'-1'}");
    put_expiring(&w, "zero", "{'N':'0'}");
    put_expiring(&w, "huge", "{'N':'1e100'}");
    CHECK_INT(0, upkeep(&w).expired_items);

    test_advance_ms(t, 10000); /* now is exactly when "before" ends: not past it yet */
    CHECK_INT(0, upkeep(&w).expired_items);
    test_advance_ms(t, 1000);
    CHECK_INT(1, upkeep(&w).expired_items);
    CHECK(!is_there(&w, "before"));
    CHECK(is_there(&w, "after"));
    test_advance_ms(t, 11000);
    CHECK_INT(3, upkeep(&w).expired_items);
    CHECK(!is_there(&w, "after") && !is_there(&w, "fraction") && !is_there(&w, "exponent"));
    CHECK(is_there(&w, "text") && is_there(&w, "list") && is_there(&w, "negative"));
    CHECK(is_there(&w, "zero") && is_there(&w, "huge"));
    test_advance_ms(t, INT64_C(1000) * YEAR);
    CHECK_INT(0, upkeep(&w).expired_items);
    world_close(&w);
}

TEST(ttl, sweeps_on_the_virtual_clock_in_memory)
{
    sweeps_on_the_virtual_clock(t, "memory:");
}

TEST(ttl, sweeps_on_the_virtual_clock_on_disk)
{
    sweeps_on_the_virtual_clock(t, "disk:");
}

/* Five years and a day ago is a mistake of units, not an expiry. */
TEST(ttl, what_ended_more_than_five_years_ago_stays)
{
    struct world w = world_open(t, "memory:");
    char ttl[32];

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    snprintf(ttl, sizeof(ttl), "{'N':'%d'}", NOW - 5 * YEAR - 24 * 60 * 60);
    put_expiring(&w, "older", ttl);
    snprintf(ttl, sizeof(ttl), "{'N':'%d'}", NOW - 5 * YEAR + 24 * 60 * 60);
    put_expiring(&w, "younger", ttl);
    CHECK_INT(1, upkeep(&w).expired_items);
    CHECK(is_there(&w, "older") && !is_there(&w, "younger"));
    world_close(&w);
}

TEST(ttl, expiry_survives_reopening)
{
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    put_expiring(&w, "early", "{'N':'1767225601'}");
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL); /* "early" has no entry before upkeep */
    put_expiring(&w, "late", "{'N':'1767225602'}");
    world_reopen(&w);
    CHECK_JSON(&w, "{'TimeToLiveDescription':{'TimeToLiveStatus':'ENABLED','AttributeName':'ttl'}}",
               "DescribeTimeToLive", "{'TableName':'tab'}");
    test_advance_ms(t, 5000);
    CHECK_INT(2, upkeep(&w).expired_items);
    CHECK(!is_there(&w, "early") && !is_there(&w, "late"));
    world_close(&w);
}

TEST(ttl, an_expired_item_leaves_its_indexes)
{
    struct world w = world_open(t, "memory:");

    world_ok(
        &w, "CreateTable",
        "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"
        "{'AttributeName':'g','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk',"
        "'KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{"
        "'IndexName':'by_g','KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],"
        "'Projection':{'ProjectionType':'ALL'}}]}");
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    world_ok(&w, "PutItem",
             "{'TableName':'tab','Item':{'pk':{'S':'a'},'g':{'S':'x'},'ttl':{'N':'1767225600'}}}");
    test_advance_ms(t, 2000);
    CHECK_INT(1, upkeep(&w).expired_items);
    CHECK_JSON(&w, "{'Items':[],'Count':0,'ScannedCount':0}", "Scan",
               "{'TableName':'tab','IndexName':'by_g'}");
    world_close(&w);
}

/* ---- racing the sweeper --------------------------------------------------------------------- */

enum { RACE_ITEMS = 200 };

/* Move every item's end to the far future; each is due when we begin. */
static void *prolong(void *arg)
{
    struct worker *worker = arg;

    for (unsigned i = 0; i < RACE_ITEMS; i++) {
        struct hf_str answer =
            callf(&worker->w, "UpdateItem",
                  "{'TableName':'tab','Key':{'pk':{'S':'%u'}},'UpdateExpression':'SET #t = :f',"
                  "'ConditionExpression':'attribute_exists(pk)','ExpressionAttributeNames':"
                  "{'#t':'ttl'},'ExpressionAttributeValues':{':f':{'N':'1999999999'}}}",
                  i);

        ((bool *)worker->user)[i] = !is_error(answer);
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

static void a_changed_item_stays(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    bool prolonged[RACE_ITEMS];
    struct worker worker;
    uint64_t expired = 0;
    unsigned kept = 0;

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    for (unsigned i = 0; i < RACE_ITEMS; i++) {
        char pk[16];

        snprintf(pk, sizeof(pk), "%u", i);
        put_expiring(&w, pk, "{'N':'1767225500'}");
    }
    workers_start(&w, &worker, 1, 0, prolong, prolonged);
    for (int i = 0; i < 20; i++)
        expired += upkeep(&w).expired_items;
    CHECK_INT(0, workers_join(&worker, 1));
    expired += upkeep(&w).expired_items;
    for (unsigned i = 0; i < RACE_ITEMS; i++) {
        char pk[16];

        snprintf(pk, sizeof(pk), "%u", i);
        CHECK(prolonged[i] == is_there(&w, pk)); /* the update came first, or the sweeper did */
        kept += prolonged[i];
        hf_scope_reset(w.scope);
    }
    CHECK_INT(RACE_ITEMS, kept + expired);
    world_close(&w);
}

TEST(ttl, an_item_whose_end_was_changed_stays_in_memory)
{
    a_changed_item_stays(t, "memory:");
}

TEST(ttl, an_item_whose_end_was_changed_stays_on_disk)
{
    a_changed_item_stays(t, "disk:");
}

static void *keep_house(void *arg)
{
    struct worker *worker = arg;

    for (unsigned i = 0; i < worker->rounds; i++)
        worker->wrong += hf_engine_upkeep(worker->w.scope, worker->w.db, NULL) != HF_OK;
    return NULL;
}

/* Disabled and enabled again while upkeep walks the table: no item may be left without its expiry
 * entry. world_close() looks. */
TEST(ttl, enabling_anew_starts_the_walk_anew)
{
    enum { ITEMS = 5000, ROUNDS = 25 };
    struct world w = world_open(t, "memory:");
    struct worker worker;

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (int i = 0; i < ITEMS; i++) {
        char pk[16];

        snprintf(pk, sizeof(pk), "%d", i);
        put_expiring(&w, pk, "{'N':'1767225700'}");
        hf_scope_reset(w.scope);
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec pause = {.tv_nsec = 200000 * i};
        struct hf_check_report report;

        world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
        workers_start(&w, &worker, 1, 1, keep_house, NULL);
        nanosleep(&pause, NULL);
        world_ok(&w, "UpdateTimeToLive", DISABLE_TTL);
        world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
        CHECK_INT(0, workers_join(&worker, 1));
        CHECK_OK(hf_engine_check(w.scope, w.db, &report));
        world_ok(&w, "UpdateTimeToLive", DISABLE_TTL);
    }
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    test_advance_ms(t, 200000);
    CHECK_INT(ITEMS, upkeep(&w).expired_items);
    world_close(&w);
}

/* Without anybody's help: the engine's own thread expires items. */
TEST(ttl, the_upkeep_thread_sweeps)
{
    struct world w = world_open(t, "memory:");

    hf_db_close(w.db);
    w.db = NULL;
    w.options.no_upkeep_thread = false;
    world_reopen(&w);
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    put_expiring(&w, "a", "{'N':'1767225500'}");
    put_expiring(&w, "b", "{'N':'1999999999'}");
    for (int i = 0; i < 100 && is_there(&w, "a"); i++) {
        struct timespec pause = {.tv_nsec = 50000000};

        nanosleep(&pause, NULL);
    }
    CHECK(!is_there(&w, "a"));
    CHECK(is_there(&w, "b"));
    world_close(&w);
}

/* A round of upkeep holds a few items at a time, however many expire. */
TEST(ttl, expiring_large_items_takes_little_memory)
{
    enum { ITEMS = 350, BYTES = 40000 };
    struct world w = world_open(t, "memory:");
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_upkeep_report report;
    char text[BYTES + 1];
    size_t with;

    memset(text, 'x', BYTES);
    text[BYTES] = '\0';
    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("OLD_IMAGE")));
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    for (int i = 0; i < ITEMS; i++) {
        CHECK(!is_error(callf(&w, "PutItem",
                              "{'TableName':'tab','Item':{'pk':{'S':'%d'},'ttl':{'N':'1767225600'},"
                              "'x':{'S':'%s'}}}",
                              i, text)));
        hf_scope_reset(w.scope);
    }
    upkeep(&w);
    test_advance_ms(t, 10000);
    CHECK_OK(hf_engine_upkeep(s, w.db, &report));
    CHECK_INT(ITEMS, report.expired_items);
    with = t->live_bytes;
    hf_scope_free(s);
    CHECK(with - t->live_bytes < 1024 * 1024);
    world_close(&w);
}

static uint32_t table_id(struct engine *e, const char *name)
{
    uint32_t id;

    pthread_rwlock_rdlock(&e->schema);
    id = hf__catalog_find(e, hf_str_from(name))->id;
    pthread_rwlock_unlock(&e->schema);
    return id;
}

/* A damaged item, at which the building of an index ends, does not keep others from expiring. */
TEST(ttl, items_expire_beside_a_damaged_one)
{
    struct world w = world_open(t, "memory:");
    struct hf__store *store = hf__engine_of(w.db)->store;
    struct store_batch damage = {.ops = {.scope = w.scope}};
    struct store_batch repair = {.ops = {.scope = w.scope}};
    struct hf__buf key = {.scope = w.scope};
    struct hf_upkeep_report report;
    uint64_t ticket;

    world_ok(&w, "CreateTable", PK_TABLE("other", ""));
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    world_ok(&w, "UpdateTimeToLive", ENABLE_TTL);
    put_expiring(&w, "due", "{'N':'1767225610'}");
    upkeep(&w);
    world_ok(&w, "UpdateTable",
             "{'TableName':'other','AttributeDefinitions':[{'AttributeName':'x','AttributeType':"
             "'S'}],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'idx','KeySchema':["
             "{'AttributeName':'x','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}");
    hf__stored_key_prefix(&key, SPACE_ITEM, table_id(hf__engine_of(w.db), "other"));
    hf__buf_put_byte(&key, 1);
    hf__batch_put(&damage, hf_bytes_of(key.ptr, key.len), hf_bytes_of("?", 1));
    hf__batch_delete(&repair, hf_bytes_of(key.ptr, key.len));
    CHECK_OK(hf__store_write(w.scope, store, &damage, &ticket));

    test_advance_ms(t, 11000);
    CHECK_STATUS(HF_CORRUPT, hf_engine_upkeep(w.scope, w.db, &report));
    CHECK_INT(1, report.expired_items);
    CHECK_STATUS(HF_CORRUPT, hf_scope_error(w.scope)->status);
    CHECK_OK(hf__store_write(w.scope, store, &repair, &ticket));
    upkeep(&w);
    world_close(&w);
}

/* ---- what upkeep's own thread says ---------------------------------------------------------- */

static atomic_uint logged;

static void count_log(enum hf_log_level level, struct hf_str line, void *user)
{
    (void)user;
    if (level == HF_LOG_ERROR && line.len > 13 && memcmp(line.ptr, "maintenance: ", 13) == 0)
        atomic_fetch_add(&logged, 1);
}

/* Some rounds: when one begins, the one before it has ended. */
static void run_rounds(struct engine *e)
{
    for (int i = 0; i < 5; i++) {
        bool begun = false;

        hf__engine_maintenance_wake(e);
        while (!begun) {
            usleep(1000);
            pthread_mutex_lock(&e->maintenance.lock);
            begun = !e->maintenance.woken;
            pthread_mutex_unlock(&e->maintenance.lock);
        }
    }
}

/* What fails in every round, as on a full disk, is logged at once and then once a minute. */
TEST(ttl, a_failure_that_stays_is_logged_once_a_minute)
{
    struct world w = world_open(t, "memory:");
    struct store_batch damage = {.ops = {.scope = w.scope}};
    struct store_batch repair = {.ops = {.scope = w.scope}};
    struct hf__buf key = {.scope = w.scope};
    struct hf_env env = *test_env(t);
    struct engine *e;
    uint64_t ticket;

    atomic_store(&logged, 0);
    env.log = count_log;
    w.options.env = &env;
    w.options.no_upkeep_thread = false;
    world_reopen(&w);
    key = (struct hf__buf){.scope = w.scope};
    e = hf__engine_of(w.db);
    world_ok(&w, "CreateTable", PK_TABLE("other", ""));
    hf__stored_key_prefix(&key, SPACE_ITEM, table_id(e, "other"));
    hf__buf_put_byte(&key, 1);
    hf__batch_put(&damage, hf_bytes_of(key.ptr, key.len), hf_bytes_of("?", 1));
    hf__batch_delete(&repair, hf_bytes_of(key.ptr, key.len));
    CHECK_OK(hf__store_write(w.scope, e->store, &damage, &ticket));
    world_ok(&w, "UpdateTable",
             "{'TableName':'other','AttributeDefinitions':[{'AttributeName':'x','AttributeType':"
             "'S'}],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'idx','KeySchema':["
             "{'AttributeName':'x','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}");
    run_rounds(e);
    run_rounds(e);
    CHECK_INT(1, atomic_load(&logged));
    test_advance_ms(t, 61 * 1000);
    run_rounds(e);
    CHECK_INT(2, atomic_load(&logged));
    CHECK_OK(hf__store_write(w.scope, e->store, &repair, &ticket));
    run_rounds(e);
    world_close(&w);
}
