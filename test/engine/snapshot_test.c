/*
 * engine/snapshot_test.c: snapshots of a whole database; (n) is an invariant of snapshot.c. What
 * random operations and other threads do to them is in snapshot_random_test.c, files in
 * snapshot_file_test.c, faults and crashes in snapshot_fault_test.c.
 */
#include "snapshot_states.h"

#include <fcntl.h>
#include <signal.h>

/* ---- there and back ------------------------------------------------------------------------- */

static void there_and_back(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    struct hf_engine_snapshot *fresh, *empty = take(&w);
    char *nothing = dump(&w);
    char *before, *after;

    fill(&w);
    before = dump(&w);
    fresh = take(&w);
    mess_up(&w);
    after = dump(&w);
    CHECK(strcmp(before, after) != 0);
    for (int i = 0; i < 3; i++) {
        restore(&w, fresh);
        CHECK_DUMP(&w, before);
        mess_up(&w);
        test_advance_ms(t, 1000);
        upkeep(&w); /* erases: the old ids must not be among what goes */
    }
    restore(&w, empty);
    CHECK_DUMP(&w, nothing);
    restore(&w, fresh);
    restore(&w, fresh);
    CHECK_DUMP(&w, before);
    if (strcmp(kind, "disk:") == 0) {
        world_reopen(&w);
        CHECK_DUMP(&w, before);
        mess_up(&w);
        restore(&w, fresh);
        CHECK_DUMP(&w, before);
    }
    hf_engine_snapshot_free(fresh);
    hf_engine_snapshot_free(empty);
    free(nothing);
    free(before);
    free(after);
    world_close(&w);
}

TEST(snapshot, there_and_back_in_memory)
{
    there_and_back(t, "memory:");
}

TEST(snapshot, there_and_back_on_disk)
{
    there_and_back(t, "disk:");
}

TEST(snapshot, what_is_written_after_a_restore_stays)
{
    struct world w = world_open(t, "disk:");
    struct hf_engine_snapshot *fresh;
    char *now;

    fill(&w);
    fresh = take(&w);
    mess_up(&w);
    restore(&w, fresh);
    mess_up(&w);
    upkeep(&w);
    now = dump(&w);
    hf_engine_snapshot_free(fresh);
    world_reopen(&w);
    CHECK_DUMP(&w, now);
    free(now);
    world_close(&w);
}

TEST(snapshot, of_one_database_into_another)
{
    struct world from = world_open(t, "disk:");
    struct world to = world_open(t, "memory:");
    struct hf_engine_snapshot *snapshot;
    char *expected;

    fill(&from);
    fill(&to);
    mess_up(&to);
    expected = dump(&from);
    snapshot = take(&from);
    world_close(&from);
    restore(&to, snapshot);
    CHECK_DUMP(&to, expected);
    mess_up(&to); /* ids and numbers of the two do not get into each other's way */
    upkeep(&to);
    restore(&to, snapshot);
    CHECK_DUMP(&to, expected);
    hf_engine_snapshot_free(snapshot);
    free(expected);
    world_close(&to);
}

TEST(snapshot, size_and_strange_arguments)
{
    struct world w = world_open(t, "memory:");
    struct hf_engine_snapshot_size size;
    struct hf_engine_snapshot *snapshot = take(&w);
    char *now;

    hf_engine_snapshot_size(snapshot, &size);
    CHECK_INT(0, size.entries + size.tables + size.items + size.bytes);
    hf_engine_snapshot_free(snapshot);
    fill(&w);
    snapshot = take(&w);
    hf_engine_snapshot_size(snapshot, &size);
    CHECK_INT(2, size.tables);
    CHECK_INT(7, size.items);
    CHECK_INT(t->wall_us, size.taken_us);
    /* 2 tables, 2 streams, 7 items, 5 entries in each index, 7 records, 5 expiries, a token. */
    CHECK_INT(2 + 2 + 7 + 10 + 7 + 5 + 2, size.entries);

    hf_engine_snapshot_free(NULL);
    now = dump(&w);
    CHECK_STATUS(HF_INVALID, hf_engine_snapshot_restore(w.scope, w.db, NULL));
    CHECK_STATUS(HF_INVALID, hf_engine_snapshot_save(w.scope, NULL, HF_STR("/tmp/x")));
    CHECK_STATUS(HF_INVALID, hf_engine_snapshot_save(w.scope, snapshot, HF_STR("")));
    CHECK_STATUS(HF_UNSUPPORTED, hf_engine_snapshot_restore(w.scope, NULL, snapshot));
    hf_scope_cancel(w.scope);
    CHECK_STATUS(HF_CANCELED, hf_engine_snapshot_restore(w.scope, w.db, snapshot));
    hf_engine_snapshot_free(snapshot);
    CHECK_STATUS(HF_CANCELED, hf_engine_snapshot_take(w.scope, w.db, &snapshot));
    CHECK(snapshot == NULL);
    hf_scope_reset(w.scope);
    CHECK_DUMP(&w, now);
    free(now);
    world_close(&w);
}

/* ---- what must not go back, and what goes on ------------------------------------------------ */

static struct hf_str first_iterator(struct world *w, const char *type)
{
    struct hf_str streams = world_ok(w, "ListStreams", "{'TableName':'all'}");
    struct hf_str arn = next_text(&streams, "StreamArn");
    struct hf_str described = callf(w, "DescribeStream", "{'StreamArn':'%.*s'}", HF_FMT(arn));
    struct hf_str shard = next_text(&described, "ShardId");
    struct hf_str answer = callf(w, "GetShardIterator",
                                 "{'StreamArn':'%.*s','ShardId':'%.*s','ShardIteratorType':'%s'}",
                                 HF_FMT(arn), HF_FMT(shard), type);

    return next_text(&answer, "ShardIterator");
}

/* (2): an iterator from before goes on behind the restore, with numbers that nobody has seen. */
TEST(snapshot, sequence_numbers_and_ids_do_not_go_back)
{
    struct world w = world_open(t, "memory:");
    struct engine *e = hf__engine_of(w.db);
    struct hf_engine_snapshot *fresh;
    struct hf_str old, answer, rest;
    uint64_t next;
    uint32_t id;

    w.options.stream_shards = 1;
    world_reopen(&w);
    e = hf__engine_of(w.db);
    fill(&w);
    fresh = take(&w);
    for (int i = 0; i < 3; i++)
        CHECK(
            !is_error(callf(&w, "PutItem",
                            "{'TableName':'all','Item':{'pk':{'S':'later'},'sk':{'N':'%d'}}}", i)));
    old = first_iterator(&w, "LATEST");
    world_ok(&w, "CreateTable", PK_TABLE("more", ""));
    next = e->sequencer.next;
    id = e->next_id;
    restore(&w, fresh);
    CHECK_INT(next, e->sequencer.next);
    CHECK_INT(id, e->next_id);
    world_ok(&w, "PutItem", "{'TableName':'all','Item':{'pk':{'S':'new'},'sk':{'N':'0'}}}");
    answer = callf(&w, "GetRecords", "{'ShardIterator':'%.*s'}", HF_FMT(old));
    rest = answer;
    CHECK(after(&rest, "\"SequenceNumber\"").ptr != NULL);
    CHECK(after(&rest, "\"SequenceNumber\"").ptr == NULL);
    rest = answer;
    CHECK(after(&rest, "\"new\"").ptr != NULL);
    /* From the beginning there are the records of the snapshot, and the new one. */
    answer = callf(&w, "GetRecords", "{'ShardIterator':'%.*s'}",
                   HF_FMT(first_iterator(&w, "TRIM_HORIZON")));
    rest = answer;
    CHECK(after(&rest, "\"later\"").ptr == NULL);
    for (int i = 0; i < 7; i++)
        CHECK(after(&answer, "\"SequenceNumber\"").ptr != NULL);
    CHECK(after(&answer, "\"SequenceNumber\"").ptr == NULL);
    hf_engine_snapshot_free(fresh);
    world_close(&w);
}

/* (2) with numbers that only the snapshot has; also when nothing was written before a crash. */
TEST(snapshot, numbers_of_another_database_are_not_used_again)
{
    struct world from = world_open(t, "memory:");
    struct world to = world_open(t, "disk:");
    struct hf_engine_snapshot *snapshot;
    uint64_t next;

    fill(&from);
    for (int i = 0; i < 50; i++)
        CHECK(!is_error(callf(&from, "PutItem",
                              "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'%d'}}}", i)));
    next = hf__engine_of(from.db)->sequencer.next;
    snapshot = take(&from);
    restore(&to, snapshot);
    CHECK_INT(next, hf__engine_of(to.db)->sequencer.next);
    CHECK_INT(hf__engine_of(from.db)->next_id, hf__engine_of(to.db)->next_id);
    world_reopen(&to);
    CHECK(hf__engine_of(to.db)->sequencer.next >= next);
    CHECK_INT(hf__engine_of(from.db)->next_id, hf__engine_of(to.db)->next_id);
    world_ok(&to, "PutItem", "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'1'}}}");
    hf_engine_snapshot_free(snapshot);
    world_close(&from);
    world_close(&to);
}

/* (3) */
TEST(snapshot, work_that_was_going_on_goes_on)
{
    struct world w = world_open(t, "memory:");
    struct hf_engine_snapshot *building, *erasing;
    struct hf_str described;

    fill(&w);
    world_ok(&w, "UpdateTable",
             "{'TableName':'all','AttributeDefinitions':[{'AttributeName':'k','AttributeType':'S'}"
             "],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'late','KeySchema':[{"
             "'AttributeName':'k','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}");
    building = take(&w);
    upkeep(&w);
    world_ok(&w, "DeleteTable", "{'TableName':'all'}");
    erasing = take(&w);
    CHECK(upkeep(&w).erased_keys > 0);
    restore(&w, erasing);
    CHECK(upkeep(&w).erased_keys > 0);
    restore(&w, building);
    CHECK_INT(6, upkeep(&w).indexed_items);
    described = world_ok(&w, "Scan", "{'TableName':'all','IndexName':'late','Select':'COUNT'}");
    CHECK_INT(5, next_number(&described, "\"Count\":"));
    hf_engine_snapshot_free(building);
    hf_engine_snapshot_free(erasing);
    world_close(&w);
}

/* (3): one backup is made, another one is being made, and a table is filled from the first. */
static void backups_come_back(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    struct hf_engine_snapshot *fresh;
    struct hf_str answer, arn;
    char *before;

    fill(&w);
    answer = world_ok(&w, "CreateBackup", "{'TableName':'all','BackupName':'made'}");
    arn = next_text(&answer, "BackupArn");
    upkeep(&w);
    world_ok(&w, "CreateBackup", "{'TableName':'goes','BackupName':'being-made'}");
    CHECK(!is_error(callf(&w, "RestoreTableFromBackup",
                          "{'BackupArn':'%.*s','TargetTableName':'filled'}", HF_FMT(arn))));
    fresh = take(&w);
    before = dump(&w);
    mess_up(&w);
    upkeep(&w); /* both of them end */
    CHECK(!is_error(callf(&w, "DeleteBackup", "{'BackupArn':'%.*s'}", HF_FMT(arn))));
    world_ok(&w, "CreateBackup", "{'TableName':'all','BackupName':'another'}");
    restore(&w, fresh); /* while that is being made */
    CHECK_DUMP(&w, before);
    if (strcmp(kind, "disk:") == 0)
        world_reopen(&w);
    world_ok(&w, "DeleteTable", "{'TableName':'goes'}");
    upkeep(&w);
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));
    answer = world_ok(&w, "Scan", "{'TableName':'filled','Select':'COUNT'}");
    CHECK_INT(6, next_number(&answer, "\"Count\":"));
    answer = world_ok(&w, "ListBackups", "{}");
    CHECK(after(&answer, "\"AVAILABLE\"").ptr != NULL);
    CHECK(after(&answer, "\"AVAILABLE\"").ptr != NULL);
    CHECK(after(&answer, "\"BackupArn\"").ptr == NULL);
    hf_engine_snapshot_free(fresh);
    free(before);
    world_close(&w);
}

TEST(snapshot, backups_come_back_in_memory)
{
    backups_come_back(t, "memory:");
}

TEST(snapshot, backups_come_back_on_disk)
{
    backups_come_back(t, "disk:");
}

TEST(snapshot, tokens_and_expiry_are_as_they_were)
{
    struct world w = world_open(t, "memory:");
    struct hf_engine_snapshot *fresh;
    struct hf_str count;

    fill(&w);
    fresh = take(&w);
    world_ok(&w, "TransactWriteItems", TRANSACTION("after"));
    restore(&w, fresh);
    /* The one that was used before is still used, the other one is not. */
    world_ok(&w, "DeleteItem", "{'TableName':'all','Key':{'pk':{'S':'before'},'sk':{'N':'1'}}}");
    world_ok(&w, "TransactWriteItems", TRANSACTION("before"));
    world_ok(&w, "TransactWriteItems", TRANSACTION("after"));
    count = world_ok(&w, "Scan", "{'TableName':'all','Select':'COUNT'}");
    CHECK_INT(6, next_number(&count, "\"Count\":"));
    restore(&w, fresh);
    test_advance_ms(t, (INT64_C(1999999999) - t->wall_us / 1000000 + 10) * 1000);
    CHECK_INT(5, upkeep(&w).expired_items);
    hf_engine_snapshot_free(fresh);
    world_close(&w);
}

/* (4): a database that was not closed has not counted its items when it is restored. */
static int put_more(struct world *w)
{
    int wrong = 0;

    for (int i = 0; i < 5; i++)
        wrong += is_error(
            callf(w, "PutItem", "{'TableName':'all','Item':{'pk':{'S':'m'},'sk':{'N':'%d'}}}", i));
    return wrong;
}

TEST(snapshot, counts_are_right_after_a_crash)
{
    struct hf_engine_snapshot *fresh, *uncounted;
    struct world w;
    char *before, *after;

    crash_here(t, put_more);
    w = world_open(t, "disk:");
    fill(&w);
    before = dump(&w);
    fresh = take(&w);
    crash_after(&w);
    CHECK(hf__engine_of(w.db)->opened != NULL);
    uncounted = take(&w);
    restore(&w, fresh);
    CHECK(hf__engine_of(w.db)->opened == NULL);
    CHECK_DUMP(&w, before);
    restore(&w, uncounted);
    after = dump(&w);
    world_reopen(&w);
    CHECK_DUMP(&w, after);
    hf_engine_snapshot_free(fresh);
    hf_engine_snapshot_free(uncounted);
    free(before);
    free(after);
    world_close(&w);
}

/* ---- the limit ------------------------------------------------------------------------------ */

TEST(snapshot, the_limit_is_for_both_states_together)
{
    struct world w = world_open(t, "memory:");
    struct engine *e = hf__engine_of(w.db);
    struct hf_engine_snapshot_size before, after;
    struct hf_engine_snapshot *fresh, *other;
    char *now;

    fill(&w);
    fresh = take(&w);
    hf_engine_snapshot_size(fresh, &before);
    mess_up(&w);
    other = take(&w);
    hf_engine_snapshot_size(other, &after);
    hf_engine_snapshot_free(other);

    e->snapshot_max = after.bytes;
    CHECK_OK(hf_engine_snapshot_take(w.scope, w.db, &other));
    hf_engine_snapshot_free(other);
    e->snapshot_max = after.bytes - 1;
    CHECK_STATUS(HF_LIMIT, hf_engine_snapshot_take(w.scope, w.db, &other));
    CHECK(other == NULL);

    now = dump(&w);
    e->snapshot_max = before.bytes - 1;
    CHECK_STATUS(HF_LIMIT, hf_engine_snapshot_restore(w.scope, w.db, fresh));
    e->snapshot_max = before.bytes + after.bytes - 1;
    CHECK_STATUS(HF_LIMIT, hf_engine_snapshot_restore(w.scope, w.db, fresh));
    CHECK(!hf_scope_error(w.scope)->may_have_happened);
    CHECK_DUMP(&w, now);
    e->snapshot_max = before.bytes + after.bytes;
    restore(&w, fresh);
    hf_engine_snapshot_free(fresh);
    free(now);
    world_close(&w);
}
