/*
 * engine/backups_test.c: backups with more items than one batch, beside writers, and in processes
 * that are killed half-way. (n) is an invariant of engine/backup/backups.c. What the answers look
 * like is in test/conformance/backups/; failing memory and stores are in sweep_test.c.
 */
#include "help.h"

#include "engine/engine.h"
#include "engine/layout.h"
#include "store/store.h"

enum { ITEMS = 2500 }; /* more than two batches of copying or restoring */

static void fill(struct world *w, const char *table, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i += 25) {
        struct hf_put_request puts[25];
        struct hf_write_request writes[25];
        struct hf_table_writes all = {hf_str_from(table), writes, 25};
        struct hf_batch_write_item request = {.tables = &all, .tables_len = 1};
        struct hf_scope *s = hf_scope_new(test_env(w->t));

        for (unsigned j = 0; j < 25; j++) {
            puts[j].item = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "key %u", i + j)),
                                   HF_N("n", i + j), HF_S("g", HF_STR("group")));
            writes[j] = (struct hf_write_request){.put = &puts[j]};
        }
        CHECK_OK(hf_batch_write_item(s, w->db, &request, NULL));
        hf_scope_free(s);
    }
}

#define INDEXED                                                                                    \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'g','AttributeType':'S'},{'AttributeName':'n','AttributeType':'N'}],"        \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST',"       \
    "'GlobalSecondaryIndexes':[{'IndexName':'byg','KeySchema':[{'AttributeName':'g','KeyType':"    \
    "'HASH'},{'AttributeName':'n','KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}]}"

static struct hf_str back_up(struct world *w, const char *table)
{
    struct hf_create_backup request = {.table = hf_str_from(table), .name = HF_STR("backup")};
    struct hf_create_backup_result made;

    CHECK_OK(hf_create_backup(w->scope, w->db, &request, &made));
    CHECK_INT(HF_BACKUP_CREATING, made.details->status);
    return made.details->arn;
}

static const struct hf_backup_description *describe(struct world *w, struct hf_str arn)
{
    struct hf_describe_backup_result result;

    CHECK_OK(
        hf_describe_backup(w->scope, w->db, &(struct hf_describe_backup){.arn = arn}, &result));
    return result.backup;
}

static enum hf_status restore(struct world *w, struct hf_str arn, const char *table)
{
    struct hf_restore_table_from_backup request = {.table = hf_str_from(table), .backup_arn = arn};

    return hf_restore_table_from_backup(w->scope, w->db, &request, NULL);
}

static const struct hf_table_description *table_of(struct world *w, const char *name)
{
    struct hf_describe_table_result result;

    CHECK_OK(hf_describe_table(w->scope, w->db,
                               &(struct hf_describe_table){.table = hf_str_from(name)}, &result));
    return result.table;
}

/* The only backup that there is. */
static struct hf_str only_backup(struct world *w)
{
    struct hf_list_backups_result list;

    CHECK_OK(hf_list_backups(w->scope, w->db, &(struct hf_list_backups){.limit = 10}, &list));
    CHECK_INT(1, list.backups_len);
    return list.backups[0].arn;
}

static void check_whole(struct world *w, const char *name, int64_t items)
{
    const struct hf_table_description *d = table_of(w, name);
    struct hf_scan_result scanned = {.count = 0};
    struct hf_scan scan = {.table = hf_str_from(name), .select = HF_SELECT_COUNT};
    int64_t count = 0;

    CHECK_INT(HF_TABLE_ACTIVE, d->status);
    CHECK_INT(items, d->item_count);
    CHECK_INT(items, d->global_indexes[0].item_count);
    do {
        CHECK_OK(hf_scan(w->scope, w->db, &scan, &scanned));
        count += scanned.count;
        scan.start = scanned.last;
    } while (scanned.last.ptr);
    CHECK_INT(items, count);
    CHECK_OK(hf_engine_check(w->scope, w->db, NULL));
}

/* (1): what is written after the call is not in it, wherever the copy is. */
TEST(backups, hold_the_state_of_their_moment)
{
    struct world w = world_open(t, "memory:");
    struct hf_check_report report;
    struct hf_str arn;
    int64_t size;

    world_ok(&w, "CreateTable", INDEXED);
    fill(&w, "tab", 0, ITEMS);
    size = table_of(&w, "tab")->size_bytes;
    arn = back_up(&w, "tab");
    fill(&w, "tab", ITEMS, ITEMS + 500);
    for (unsigned i = 0; i < 300; i++)
        callf(&w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'key %u'}}}", i * 7);
    CHECK_INT(ITEMS, upkeep(&w).backed_up_items);
    CHECK_INT(HF_BACKUP_AVAILABLE, describe(&w, arn)->details->status);
    CHECK_INT(ITEMS, describe(&w, arn)->table->item_count);
    CHECK_INT(size, describe(&w, arn)->details->size_bytes);
    CHECK_OK(hf_engine_check(w.scope, w.db, &report));
    CHECK_INT(1, report.backups);
    CHECK_INT(ITEMS, report.backup_items);
    CHECK_OK(restore(&w, arn, "again"));
    CHECK_INT(HF_TABLE_CREATING, table_of(&w, "again")->status);
    CHECK_INT(ITEMS, upkeep(&w).restored_items);
    check_whole(&w, "again", ITEMS);
    CHECK_INT(size, table_of(&w, "again")->size_bytes);
    world_close(&w);
}

/* Several of one table at once, each of its own moment; and of a table of the same name later. */
TEST(backups, of_one_table_do_not_disturb_each_other)
{
    struct world w = world_open(t, "memory:");
    struct hf_str first, second, third;

    world_ok(&w, "CreateTable", INDEXED);
    fill(&w, "tab", 0, 50);
    first = back_up(&w, "tab");
    fill(&w, "tab", 50, 100);
    second = back_up(&w, "tab");
    world_ok(&w, "DeleteTable", "{'TableName':'tab'}");
    world_ok(&w, "CreateTable", INDEXED);
    fill(&w, "tab", 0, 25);
    third = back_up(&w, "tab");
    upkeep(&w);
    CHECK_INT(50, describe(&w, first)->table->item_count);
    CHECK_INT(100, describe(&w, second)->table->item_count);
    CHECK_INT(25, describe(&w, third)->table->item_count);
    CHECK(!hf_str_equal(describe(&w, first)->table->id, describe(&w, third)->table->id));
    CHECK(hf_str_equal(describe(&w, first)->table->id, describe(&w, second)->table->id));
    CHECK_OK(restore(&w, second, "again"));
    upkeep(&w);
    check_whole(&w, "again", 100);
    world_close(&w);
}

/* (4): what a deleted backup had is erased, and only that. */
TEST(backups, leave_nothing_when_they_go)
{
    struct world w = world_open(t, "memory:");
    struct hf_check_report report;
    struct hf_str arn;

    world_ok(&w, "CreateTable", INDEXED);
    fill(&w, "tab", 0, ITEMS);
    arn = back_up(&w, "tab");
    upkeep(&w);
    CHECK_OK(hf_delete_backup(w.scope, w.db, &(struct hf_delete_backup){.arn = arn}, NULL));
    CHECK_OK(hf_engine_check(w.scope, w.db, &report));
    CHECK_INT(0, report.backups);
    CHECK_INT(ITEMS, upkeep(&w).erased_keys);
    CHECK_OK(hf_engine_check(w.scope, w.db, &report));
    CHECK_INT(0, report.backup_items);
    CHECK_INT(ITEMS, report.items);
    world_close(&w);
}

/* A database that is put back as it was has its backups as they were; what was being made then is
 * made, of the state that was put back, and what is being made now is forgotten. */
TEST(backups, are_put_back_with_the_database)
{
    struct world w = world_open(t, "memory:");
    struct hf_engine_snapshot *snapshot;
    struct hf_list_backups_result list;
    struct hf_str made, making;

    world_ok(&w, "CreateTable", INDEXED);
    fill(&w, "tab", 0, 50);
    made = back_up(&w, "tab");
    upkeep(&w);
    fill(&w, "tab", 50, 100);
    making = back_up(&w, "tab");
    CHECK_OK(restore(&w, made, "again"));
    CHECK_OK(hf_engine_snapshot_take(w.scope, w.db, &snapshot));
    upkeep(&w);
    CHECK_OK(hf_delete_backup(w.scope, w.db, &(struct hf_delete_backup){.arn = made}, NULL));
    world_ok(&w, "DeleteTable", "{'TableName':'again'}");
    fill(&w, "tab", 100, 200);
    back_up(&w, "tab");
    CHECK_OK(hf_engine_snapshot_restore(w.scope, w.db, snapshot));
    hf_engine_snapshot_free(snapshot);

    CHECK_OK(hf_list_backups(w.scope, w.db, &(struct hf_list_backups){.limit = 10}, &list));
    CHECK_INT(2, list.backups_len);
    CHECK_INT(HF_BACKUP_AVAILABLE, describe(&w, made)->details->status);
    CHECK_INT(HF_BACKUP_CREATING, describe(&w, making)->details->status);
    CHECK_INT(HF_TABLE_CREATING, table_of(&w, "again")->status);
    CHECK_INT(0, table_of(&w, "again")->item_count);
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));
    upkeep(&w);
    CHECK_INT(HF_BACKUP_AVAILABLE, describe(&w, making)->details->status);
    CHECK_INT(100, describe(&w, making)->table->item_count);
    check_whole(&w, "again", 50);
    CHECK_OK(restore(&w, making, "more"));
    upkeep(&w);
    check_whole(&w, "more", 100);
    world_close(&w);
}

/* ---- beside writers ------------------------------------------------------------------------- */

enum { ACCOUNTS = 40, TOTAL = ACCOUNTS * 100 };

/* Moves amounts from account to account, in transactions: the sum stays. */
static void *mover(void *arg)
{
    struct worker *worker = arg;
    struct world *w = &worker->w;

    for (unsigned i = 0; i < worker->rounds; i++) {
        unsigned from = (i * 7 + worker->number) % ACCOUNTS;
        unsigned to = (i * 11 + worker->number + 1) % ACCOUNTS;

        if (from == to)
            continue;
        worker->wrong += is_error(
            callf(w, "TransactWriteItems",
                  "{'TransactItems':[{'Update':{'TableName':'tab','Key':{'pk':{'S':'%u'}},"
                  "'UpdateExpression':'ADD n :m','ExpressionAttributeValues':{':m':{'N':'-1'}}}},"
                  "{'Update':{'TableName':'tab','Key':{'pk':{'S':'%u'}},'UpdateExpression':"
                  "'ADD n :m','ExpressionAttributeValues':{':m':{'N':'1'}}}}]}",
                  from, to));
        hf_scope_reset(w->scope);
    }
    return NULL;
}

static int64_t sum_of(struct world *w, const char *table)
{
    struct hf_scan_result scanned;
    int64_t sum = 0;

    CHECK_OK(hf_scan(w->scope, w->db, &(struct hf_scan){.table = hf_str_from(table)}, &scanned));
    CHECK_INT(ACCOUNTS, scanned.count);
    for (size_t i = 0; i < scanned.items_len; i++) {
        int64_t n = 0;

        CHECK(hf_value_i64(hf_item_get(scanned.items[i], HF_STR("n")), &n));
        sum += n;
    }
    return sum;
}

/* (1): between two writes, so with the whole of every transaction or nothing of it. */
TEST(backups, see_transactions_whole)
{
    struct world w = world_open(t, "memory:");
    struct worker workers[3];
    struct hf_str arns[10];

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < ACCOUNTS; i++)
        callf(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%u'},'n':{'N':'100'}}}", i);
    workers_start(&w, workers, 3, 400, mover, NULL);
    for (unsigned i = 0; i < ARRAY_LEN(arns); i++) {
        arns[i] = back_up(&w, "tab");
        upkeep(&w);
    }
    CHECK_INT(0, workers_join(workers, 3));
    for (unsigned i = 0; i < ARRAY_LEN(arns); i++) {
        char name[32];

        snprintf(name, sizeof(name), "again%u", i);
        CHECK_OK(restore(&w, arns[i], name));
        upkeep(&w);
        CHECK_INT(TOTAL, sum_of(&w, name));
    }
    world_close(&w);
}

/* ---- killed half-way ------------------------------------------------------------------------ */

#ifdef HF_KILL_POINTS

static int run_upkeep(struct world *w)
{
    return hf_engine_upkeep(w->scope, w->db, NULL) == HF_OK ? 0 : 1;
}

/* The copy is half there; it is started over, and nothing of the half is left. */
TEST(backups, that_were_killed_half_way_are_made_anew)
{
    static const char *const points[] = {"before_backup_chunk:2", "after_backup_chunk:2",
                                         "before_backup_end:1"};
    struct world w;

    crash_here(t, run_upkeep);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct hf_check_report report;
        struct hf_str arn;

        w = world_open(t, "disk:");
        world_ok(&w, "CreateTable", INDEXED);
        fill(&w, "tab", 0, ITEMS);
        back_up(&w, "tab");
        CHECK(crash_at(&w, points[i]));
        arn = only_backup(&w);
        CHECK_INT(HF_BACKUP_CREATING, describe(&w, arn)->details->status);
        CHECK_OK(hf_engine_check(w.scope, w.db, &report));
        CHECK(report.backup_items >= 1000);
        CHECK(upkeep(&w).erased_keys >= 1000);
        CHECK_OK(hf_engine_check(w.scope, w.db, &report));
        CHECK_INT(ITEMS, report.backup_items);
        CHECK_INT(HF_BACKUP_AVAILABLE, describe(&w, arn)->details->status);
        CHECK_INT(ITEMS, describe(&w, arn)->table->item_count);
        CHECK_OK(restore(&w, arn, "again"));
        upkeep(&w);
        check_whole(&w, "again", ITEMS);
        world_close(&w);
    }
}

/* (2): once it was shown to be made, it is. */
TEST(backups, that_were_made_stay_so)
{
    struct world w;
    struct hf_str arn;

    crash_here(t, run_upkeep);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", INDEXED);
    fill(&w, "tab", 0, 50);
    back_up(&w, "tab");
    CHECK(crash_at(&w, "after_backup_end:1")); /* not shown yet: either is right */
    arn = only_backup(&w);
    upkeep(&w);
    CHECK_INT(HF_BACKUP_AVAILABLE, describe(&w, arn)->details->status);
    world_reopen(&w);
    arn = only_backup(&w);
    CHECK_INT(HF_BACKUP_AVAILABLE, describe(&w, arn)->details->status);
    CHECK_INT(50, describe(&w, arn)->table->item_count);
    world_close(&w);
}

/* The table is half full; it is filled to the end, and the counts are right. */
TEST(backups, restores_that_were_killed_half_way_go_on)
{
    static const char *const points[] = {"before_restore_chunk:3", "after_restore_chunk:3",
                                         "before_restore_end:1", "after_restore_end:1"};
    struct world w;

    crash_here(t, run_upkeep);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct hf_check_report report;
        struct hf_str arn;

        w = world_open(t, "disk:");
        world_ok(&w, "CreateTable", INDEXED);
        fill(&w, "tab", 0, ITEMS);
        arn = back_up(&w, "tab");
        upkeep(&w);
        CHECK_OK(restore(&w, arn, "again"));
        CHECK(crash_at(&w, points[i]));
        CHECK_OK(hf_engine_check(w.scope, w.db, &report));
        CHECK(report.items >= ITEMS + 1000);
        if (table_of(&w, "again")->status == HF_TABLE_CREATING)
            CHECK_INT(0, table_of(&w, "again")->item_count);
        upkeep(&w);
        check_whole(&w, "again", ITEMS);
        world_reopen(&w);
        check_whole(&w, "again", ITEMS);
        world_close(&w);
    }
}

#endif

/* ---- a check finds what is wrong ------------------------------------------------------------ */

/* A database on a store that the test can reach, with a made backup of 25 items. */
static struct hf__store *open_on_store(struct world *w, struct test *t)
{
    struct hf__store *store;

    *w = (struct world){.t = t, .scope = hf_scope_new(test_env(t)), .url = "memory:"};
    w->options = (struct hf_engine_options){.size = sizeof(w->options),
                                            .env = test_env(t),
                                            .no_upkeep_thread = true};
    CHECK_OK(hf__store_open_memory(w->scope, test_env(t), &store));
    CHECK_OK(hf__engine_open_on(w->scope, store, &w->options, &w->db));
    world_ok(w, "CreateTable", INDEXED);
    fill(w, "tab", 0, 25);
    back_up(w, "tab");
    upkeep(w);
    CHECK_OK(hf_engine_check(w->scope, w->db, NULL));
    return store;
}

/* The first key of the space, and what is under it. */
static void first_of(struct world *w, struct hf__store *store, uint8_t space, struct hf_str *key,
                     struct hf_str *value)
{
    const uint8_t lower[] = {space};
    const struct store_range range = {.lower = {lower, 1}};
    struct hf__store_iter *iter;
    struct hf_bytes k, v;
    bool found;

    CHECK_OK(hf__store_iter_open(w->scope, store, NULL, &range, &iter));
    CHECK_OK(hf__store_iter_next(w->scope, iter, &found, &k, &v));
    CHECK(found && k.ptr[0] == space);
    *key = hf_scope_copy(w->scope, hf_str_of((const char *)k.ptr, k.len));
    *value = hf_scope_copy(w->scope, hf_str_of((const char *)v.ptr, v.len));
    hf__store_iter_close(iter);
}

static void write_to(struct world *w, struct hf__store *store, const char *key, size_t len,
                     struct hf_str value)
{
    struct store_batch batch = {.ops = {.scope = w->scope}};
    uint64_t ticket;

    if (value.ptr)
        hf__batch_put(&batch, hf_bytes_of(key, len), hf_bytes_of(value.ptr, value.len));
    else
        hf__batch_delete(&batch, hf_bytes_of(key, len));
    CHECK_OK(hf__store_write(w->scope, store, &batch, &ticket));
}

/* The check ends with this problem first; and well again when what was changed is put back. */
static void check_finds(struct world *w, const char *problem)
{
    struct hf_check_report report;

    CHECK_STATUS(HF_CORRUPT, hf_engine_check(w->scope, w->db, &report));
    if (!memmem(report.first_problem.ptr, report.first_problem.len, problem, strlen(problem)))
        fail_msg("%.*s", HF_FMT(report.first_problem));
}

TEST(backups, are_checked)
{
    struct world w;
    struct hf__store *store = open_on_store(&w, t);
    struct hf_str key, value, none = {NULL, 0};
    char *other;

    first_of(&w, store, SPACE_COPY, &key, &value);
    write_to(&w, store, key.ptr, key.len, none);
    check_finds(&w, "a backup has a wrong number of items");
    write_to(&w, store, key.ptr, key.len, hf_str_of(value.ptr, value.len - 1));
    check_finds(&w, "an item in a backup is damaged");
    write_to(&w, store, key.ptr, key.len, value);
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));

    other = hf_scope_alloc(w.scope, key.len);
    memcpy(other, key.ptr, key.len);
    other[key.len - 1] ^= 1;
    write_to(&w, store, other, key.len, value);
    check_finds(&w, "an item in a backup is stored under a wrong key");
    write_to(&w, store, other, key.len, none);
    other[key.len - 1] ^= 1;
    other[1] ^= 1; /* a copy of another id */
    write_to(&w, store, other, key.len, value);
    check_finds(&w, "an item of a backup belongs to no backup");
    write_to(&w, store, other, key.len, none);

    first_of(&w, store, SPACE_BACKUP, &key, &value);
    write_to(&w, store, key.ptr, key.len, HF_STR("{}"));
    CHECK_STATUS(HF_CORRUPT, hf_engine_check(w.scope, w.db, NULL));
    write_to(&w, store, key.ptr, key.len, value);
    world_close(&w);
}
