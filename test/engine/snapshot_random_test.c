/*
 * engine/snapshot_random_test.c: random operations between snapshots, which come back exactly; and
 * threads that read and write while the database is put back under them.
 */
#include "dump.h"

/* ---- random operations ---------------------------------------------------------------------- */

enum { TABLES = 3, KEYS = 12, STEPS = 60, ROUNDS = 12, KEPT = 3 };

static const char *const tables[TABLES] = {"ants", "bees", "cows"};

static void create(struct world *w, const char *table)
{
    const char *stream = test_random_below(w->t, 2) ? STREAM_OF("NEW_AND_OLD_IMAGES") : "";

    callf(w, "CreateTable",
          "{'TableName':'%s','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"
          "{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'g','AttributeType':'S'},"
          "{'AttributeName':'k','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk',"
          "'KeyType':'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],'BillingMode':"
          "'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'first','KeySchema':[{"
          "'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}],"
          "'LocalSecondaryIndexes':[{'IndexName':'local','KeySchema':[{'AttributeName':'pk',"
          "'KeyType':'HASH'},{'AttributeName':'k','KeyType':'RANGE'}],'Projection':{"
          "'ProjectionType':'KEYS_ONLY'}}]%s}",
          table, stream);
}

/* Restore the first backup, or delete it. */
static void use_backup(struct world *w, const char *table)
{
    struct hf_str backups = world_call(w, "ListBackups", "{}");
    struct hf_str arn = next_text(&backups, "BackupArn");

    if (test_random_below(w->t, 2))
        callf(w, "RestoreTableFromBackup", "{'BackupArn':'%.*s','TargetTableName':'%s'}",
              HF_FMT(arn), table);
    else
        callf(w, "DeleteBackup", "{'BackupArn':'%.*s'}", HF_FMT(arn));
}

static void change_table(struct world *w, const char *table)
{
    switch (test_random_below(w->t, 9)) {
    case 0:
        callf(w, "DeleteTable", "{'TableName':'%s'}", table);
        break;
    case 1:
        callf(w, "UpdateTable",
              "{'TableName':'%s','AttributeDefinitions':[{'AttributeName':'k','AttributeType':'S'}"
              "],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'second','KeySchema':[{"
              "'AttributeName':'k','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}",
              table);
        break;
    case 2:
        callf(w, "UpdateTable",
              "{'TableName':'%s','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'%s'}}]}",
              table, test_random_below(w->t, 2) ? "first" : "second");
        break;
    case 3:
        callf(w, "UpdateTable",
              "{'TableName':'%s','StreamSpecification':{'StreamEnabled':true,'StreamViewType':"
              "'NEW_IMAGE'}}",
              table);
        break;
    case 4:
        callf(w, "UpdateTable", "{'TableName':'%s','StreamSpecification':{'StreamEnabled':false}}",
              table);
        break;
    case 5:
        callf(w, "UpdateTimeToLive",
              "{'TableName':'%s','TimeToLiveSpecification':{'Enabled':%s,'AttributeName':'t'}}",
              table, test_random_below(w->t, 2) ? "true" : "false");
        break;
    case 6:
        callf(w, "TagResource",
              "{'ResourceArn':'arn:aws:dynamodb:us-east-1:123456789012:table/%s','Tags':[{'Key':"
              "'tag%llu','Value':'x'}]}",
              table, (unsigned long long)test_random_below(w->t, 5));
        break;
    case 7:
        callf(w, "CreateBackup", "{'TableName':'%s','BackupName':'backup'}", table);
        break;
    case 8:
        use_backup(w, table);
        break;
    }
}

static void change_item(struct world *w, const char *table)
{
    unsigned long long key = test_random_below(w->t, KEYS);
    unsigned long long x = test_random_below(w->t, 5);

    switch (test_random_below(w->t, 5)) {
    case 0:
    case 1:
        callf(w, "PutItem",
              "{'TableName':'%s','Item':{'pk':{'S':'p%llu'},'sk':{'N':'%llu'},'g':{'S':'g%llu'},"
              "'k':{'S':'k%llu'},'t':{'N':'%lld'}}}",
              table, key % 4, key, x, x, (long long)(w->t->wall_us / 1000000) + (long long)x * 30);
        break;
    case 2:
        callf(w, "UpdateItem",
              "{'TableName':'%s','Key':{'pk':{'S':'p%llu'},'sk':{'N':'%llu'}},'UpdateExpression':"
              "'SET g = :g REMOVE k ADD n :one','ExpressionAttributeValues':{':g':{'S':'g%llu'},"
              "':one':{'N':'1'}}}",
              table, key % 4, key, x);
        break;
    case 3:
        callf(w, "DeleteItem", "{'TableName':'%s','Key':{'pk':{'S':'p%llu'},'sk':{'N':'%llu'}}}",
              table, key % 4, key);
        break;
    case 4:
        callf(w, "TransactWriteItems",
              "{'TransactItems':[{'Put':{'TableName':'%s','Item':{'pk':{'S':'p%llu'},'sk':{'N':"
              "'%llu'},'k':{'S':'tx'}}}}],'ClientRequestToken':'token-%llu'}",
              table, key % 4, key, x);
        break;
    }
}

/* Many of them are refused, as there is no such table or index; that is part of it. */
static void random_operations(struct world *w)
{
    for (int i = 0; i < STEPS; i++) {
        const char *table = tables[test_random_below(w->t, TABLES)];
        uint64_t choice = test_random_below(w->t, 100);

        if (choice < 15)
            create(w, table);
        else if (choice < 25)
            change_table(w, table);
        else if (choice < 28)
            upkeep(w);
        else
            change_item(w, table);
        test_advance_ms(w->t, (int64_t)test_random_below(w->t, 3000));
    }
}

struct kept {
    struct hf_engine_snapshot *snapshot;
    char *text;
};

static void keep(struct world *w, struct kept *kept)
{
    hf_engine_snapshot_free(kept->snapshot);
    free(kept->text);
    kept->text = dump(w);
    CHECK_OK(hf_engine_snapshot_take(w->scope, w->db, &kept->snapshot));
}

static void random_rounds(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    struct world other = world_open(t, "memory:");
    struct kept kept[KEPT] = {{NULL, NULL}};

    for (int i = 0; i < KEPT; i++) {
        random_operations(&w);
        keep(&w, &kept[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct kept *which = &kept[test_random_below(t, KEPT)];

        random_operations(&w);
        CHECK_OK(hf_engine_snapshot_restore(w.scope, w.db, which->snapshot));
        CHECK_DUMP(&w, which->text);
        /* A backup that is being made is started over by opening, and so is not as it was. */
        if (test_random_below(t, 3) == 0 && !strstr(which->text, "CREATING")) {
            world_reopen(&w);
            if (strcmp(kind, "memory:") == 0)
                CHECK_OK(hf_engine_snapshot_restore(w.scope, w.db, which->snapshot));
            CHECK_DUMP(&w, which->text);
        }
        random_operations(&other);
        CHECK_OK(hf_engine_snapshot_restore(other.scope, other.db, which->snapshot));
        CHECK_DUMP(&other, which->text);
        if (test_random_below(t, 2)) {
            random_operations(&w);
            keep(&w, which);
        }
        hf_scope_reset(w.scope);
        hf_scope_reset(other.scope);
    }
    for (int i = 0; i < KEPT; i++) {
        hf_engine_snapshot_free(kept[i].snapshot);
        free(kept[i].text);
    }
    world_close(&w);
    world_close(&other);
}

TEST(snapshot_random, comes_back_in_memory)
{
    random_rounds(t, "memory:");
}

TEST(snapshot_random, comes_back_on_disk)
{
    random_rounds(t, "disk:");
}

/* ---- threads -------------------------------------------------------------------------------- */

/*
 * Two items in two tables, each with a copy in an index, that are only ever written together and
 * with the same number. Whoever reads both in one transaction sees the same number; whoever reads
 * an index sees one entry.
 */
enum { RESTORES = 60 };

#define PAIR_TABLE(name)                                                                                      \
    "{'TableName':'" name "','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"             \
    "{'AttributeName':'g','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':"                \
    "'HASH'}],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'index',"                \
    "'KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}]" STREAM_OF( \
        "NEW_IMAGE") "}"

static bool put_pair(struct world *w, unsigned n)
{
    return !is_error(callf(w, "TransactWriteItems",
                           "{'TransactItems':[{'Put':{'TableName':'left','Item':{'pk':{'S':'a'},"
                           "'g':{'S':'g%u'},'n':{'N':'%u'}}}},{'Put':{'TableName':'right','Item':{"
                           "'pk':{'S':'a'},'g':{'S':'g%u'},'n':{'N':'%u'}}}}]}",
                           n % 7, n, n % 7, n));
}

static void read_pair(struct worker *worker)
{
    struct world *w = &worker->w;
    struct hf_str both =
        world_call(w, "TransactGetItems",
                   "{'TransactItems':[{'Get':{'TableName':'left','Key':{'pk':{'S':'a'}}}},{'Get':{"
                   "'TableName':'right','Key':{'pk':{'S':'a'}}}}]}");
    struct hf_str rest = both;
    long long left = next_number(&rest, "\"n\":{\"N\":\"");
    struct hf_str seen;

    if (is_error(both) || left < 0 || left != next_number(&rest, "\"n\":{\"N\":\""))
        worker->wrong++;
    seen = world_call(w, "Scan", "{'TableName':'right','IndexName':'index'}");
    if (is_error(seen) || next_number(&seen, "\"Count\":") != 1)
        worker->wrong++;
    seen = world_call(w, "DescribeTable", "{'TableName':'left'}");
    worker->wrong += is_error(seen);
}

static void *pair_thread(void *arg)
{
    struct worker *worker = arg;
    struct hf_engine_snapshot *snapshot;

    for (unsigned i = 0; !atomic_load((atomic_bool *)worker->user); i++) {
        switch (worker->number) {
        case 0: /* transactions meet only each other's, of which there are none */
            worker->wrong += !put_pair(&worker->w, i);
            break;
        case 1: /* tables that come and go, perhaps by a restore */
            world_call(&worker->w, "CreateTable", PK_TABLE("brief", STREAM_OF("KEYS_ONLY")));
            world_call(&worker->w, "PutItem", "{'TableName':'brief','Item':{'pk':{'S':'a'}}}");
            world_call(&worker->w, "DeleteTable", "{'TableName':'brief'}");
            break;
        case 2:
            worker->wrong += hf_engine_upkeep(worker->w.scope, worker->w.db, NULL) != HF_OK;
            if (i % 10 == 0)
                worker->wrong += hf_engine_check(worker->w.scope, worker->w.db, NULL) != HF_OK;
            break;
        case 3:
            worker->wrong +=
                hf_engine_snapshot_take(worker->w.scope, worker->w.db, &snapshot) != HF_OK;
            hf_engine_snapshot_free(snapshot);
            break;
        default:
            read_pair(worker);
            break;
        }
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

static void busy_restores(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    struct worker workers[6];
    struct hf_engine_snapshot *fresh;
    atomic_bool done = false;
    unsigned wrong = 0;

    world_ok(&w, "CreateTable", PAIR_TABLE("left"));
    world_ok(&w, "CreateTable", PAIR_TABLE("right"));
    CHECK(put_pair(&w, 1000));
    CHECK_OK(hf_engine_snapshot_take(w.scope, w.db, &fresh));
    workers_start(&w, workers, ARRAY_LEN(workers), 0, pair_thread, &done);
    for (int i = 0; i < RESTORES; i++) {
        wrong += hf_engine_snapshot_restore(w.scope, w.db, fresh) != HF_OK;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    atomic_store(&done, true);
    wrong += workers_join(workers, ARRAY_LEN(workers));
    CHECK_INT(0, wrong);
    hf_engine_snapshot_free(fresh);
    world_close(&w);
}

TEST(snapshot_threads, restores_while_others_work_in_memory)
{
    busy_restores(t, "memory:");
}

TEST(snapshot_threads, restores_while_others_work_on_disk)
{
    busy_restores(t, "disk:");
}
