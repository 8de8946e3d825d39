/*
 * engine/snapshot_test.c: snapshots of a whole database; (n) is an invariant of snapshot.c. What
 * random operations and other threads do to them is in snapshot_random_test.c.
 */
#include "dump.h"

#include "store/private.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <xxhash.h>

#define TABLE                                                                                      \
    "{'TableName':'all','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'g','AttributeType':'S'},"        \
    "{'AttributeName':'k','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':"     \
    "'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],'BillingMode':'PAY_PER_REQUEST',"           \
    "'GlobalSecondaryIndexes':[{'IndexName':'global','KeySchema':[{'AttributeName':'g','KeyType':" \
    "'HASH'}],'Projection':{'ProjectionType':'ALL'}}],"                                            \
    "'LocalSecondaryIndexes':[{'IndexName':'local','KeySchema':[{'AttributeName':'pk','KeyType':"  \
    "'HASH'},{'AttributeName':'k','KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],"    \
    "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'},"          \
    "'Tags':[{'Key':'owner','Value':'ann'}]}"
#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/all"
#define TRANSACTION(pk)                                                                            \
    "{'TransactItems':[{'Put':{'TableName':'all','Item':{'pk':{'S':'" pk                           \
    "'},'sk':{'N':'1'}}}}],'ClientRequestToken':'token-of-" pk "'}"

/* ---- two states ----------------------------------------------------------------------------- */

/* A table with everything, and one that will go. */
static void fill(struct world *w)
{
    world_ok(w, "CreateTable", TABLE);
    world_ok(w, "CreateTable", PK_TABLE("goes", STREAM_OF("KEYS_ONLY")));
    world_ok(w, "UpdateTimeToLive",
             "{'TableName':'all','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'t'}}");
    upkeep(w);
    for (int i = 0; i < 5; i++)
        CHECK(!is_error(callf(w, "PutItem",
                              "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'%d'},'g':{'S':"
                              "'g'},'k':{'S':'k%d'},'t':{'N':'1999999999'}}}",
                              i, i)));
    world_ok(w, "PutItem", "{'TableName':'goes','Item':{'pk':{'S':'a'}}}");
    world_ok(w, "TransactWriteItems", TRANSACTION("before"));
}

/* Change all there is to change; what erasing and building is due stays due. */
static void mess_up(struct world *w)
{
    world_ok(w, "DeleteTable", "{'TableName':'goes'}");
    world_ok(w, "CreateTable", PK_TABLE("came", STREAM_OF("NEW_IMAGE")));
    world_ok(w, "PutItem", "{'TableName':'came','Item':{'pk':{'S':'a'}}}");
    world_ok(w, "PutItem",
             "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'0'},'g':{'S':'moved'},'t':{'N':"
             "'1888888888'}}}");
    world_ok(w, "DeleteItem", "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}}}");
    world_ok(w, "TransactWriteItems", TRANSACTION("after"));
    world_ok(w, "TagResource", "{'ResourceArn':'" ARN "','Tags':[{'Key':'new','Value':'tag'}]}");
    world_ok(w, "UpdateTable",
             "{'TableName':'all','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'global'}}]"
             "}");
    world_ok(w, "UpdateTable", "{'TableName':'all','StreamSpecification':{'StreamEnabled':false}}");
}

static struct hf_engine_snapshot *take(struct world *w)
{
    struct hf_engine_snapshot *snapshot;

    CHECK_OK(hf_engine_snapshot_take(w->scope, w->db, &snapshot));
    return snapshot;
}

static void restore(struct world *w, const struct hf_engine_snapshot *snapshot)
{
    if (hf_engine_snapshot_restore(w->scope, w->db, snapshot) != HF_OK)
        fail_msg("restore: %s", hf_scope_error_text(w->scope));
}

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

/* ---- files ---------------------------------------------------------------------------------- */

struct image {
    uint8_t *bytes;
    size_t len;
};

static struct image read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct image image;
    struct stat info;

    CHECK(file && stat(path, &info) == 0);
    image.len = (size_t)info.st_size;
    image.bytes = malloc(image.len);
    CHECK(image.bytes && fread(image.bytes, 1, image.len, file) == image.len);
    fclose(file);
    return image;
}

static void write_image(const char *path, const uint8_t *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    CHECK(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

static struct hf_str path_in(struct world *w, const char *directory, const char *name)
{
    return hf_scope_format(w->scope, "%s/%s", directory, name);
}

TEST(snapshot, a_file_brings_everything_back)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "fixture");
    struct hf_engine_snapshot_size was, is;
    struct hf_engine_snapshot *fresh, *loaded;
    char *before;

    fill(&w);
    for (int i = 0; i < 3; i++) { /* several blocks, one of them for a single entry */
        char *long_text = calloc(1, 300001);

        memset(long_text, 'x', 300000);
        CHECK(!is_error(callf(&w, "PutItem",
                              "{'TableName':'goes','Item':{'pk':{'S':'%d'},'x':{'S':"
                              "'%s'}}}",
                              i, long_text)));
        free(long_text);
    }
    before = dump(&w);
    fresh = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path));
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path)); /* over the other */
    hf_engine_snapshot_size(fresh, &was);
    hf_engine_snapshot_free(fresh);
    mess_up(&w);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &loaded));
    hf_engine_snapshot_size(loaded, &is);
    CHECK(memcmp(&was, &is, sizeof(was)) == 0);
    restore(&w, loaded);
    CHECK_DUMP(&w, before);
    hf_engine_snapshot_free(loaded);
    free(before);
    world_close(&w);
}

TEST(snapshot, an_empty_database_in_a_file)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "empty");
    struct hf_engine_snapshot *empty = take(&w);
    char *before = dump(&w);

    CHECK_OK(hf_engine_snapshot_save(w.scope, empty, path));
    hf_engine_snapshot_free(empty);
    fill(&w);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &empty));
    restore(&w, empty);
    CHECK_DUMP(&w, before);
    hf_engine_snapshot_free(empty);
    free(before);
    world_close(&w);
}

TEST(snapshot, a_damaged_file_is_refused)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "damaged");
    struct hf_engine_snapshot *fresh;
    struct image image;

    fill(&w);
    fresh = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path));
    hf_engine_snapshot_free(fresh);
    image = read_image(path.ptr);
    for (size_t i = 0; i < image.len; i++) {
        uint8_t flip = (uint8_t)(1 << (i % 8));

        image.bytes[i] ^= flip;
        write_image(path.ptr, image.bytes, image.len);
        image.bytes[i] ^= flip;
        if (hf_engine_snapshot_load(w.scope, path, &fresh) != HF_CORRUPT || fresh)
            fail_msg("a flipped bit in byte %zu gives: %s", i, hf_scope_error_text(w.scope));
        write_image(path.ptr, image.bytes, i);
        if (hf_engine_snapshot_load(w.scope, path, &fresh) != HF_CORRUPT || fresh)
            fail_msg("cut to %zu bytes it gives: %s", i, hf_scope_error_text(w.scope));
    }
    image.bytes = realloc(image.bytes, image.len + 1);
    image.bytes[image.len] = 0;
    write_image(path.ptr, image.bytes, image.len + 1);
    CHECK_STATUS(HF_CORRUPT, hf_engine_snapshot_load(w.scope, path, &fresh));
    write_image(path.ptr, image.bytes, image.len);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &fresh));
    hf_engine_snapshot_free(fresh);
    free(image.bytes);
    world_close(&w);
}

static void check_refused(struct world *w, struct hf_str path, const struct image *image,
                          size_t len, const char *what, size_t at)
{
    struct hf_engine_snapshot *snapshot;

    write_image(path.ptr, image->bytes, len);
    if (hf_engine_snapshot_load(w->scope, path, &snapshot) != HF_CORRUPT || snapshot)
        fail_msg("%s %zu gives: %s", what, at, hf_scope_error_text(w->scope));
    CHECK(strstr(hf_scope_error_text(w->scope), path.ptr));
}

/* P6, of a file that is small enough to try everything; and it is for its owner alone. */
TEST(snapshot, every_bit_of_a_small_file)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "small");
    struct hf_engine_snapshot *snapshot;
    mode_t before = umask(0);
    struct image image;
    struct stat info;

    world_ok(&w, "CreateTable", PK_TABLE("small", STREAM_OF("KEYS_ONLY")));
    world_ok(&w, "PutItem", "{'TableName':'small','Item':{'pk':{'S':'a'}}}");
    snapshot = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, snapshot, path));
    hf_engine_snapshot_free(snapshot);
    umask(before);
    CHECK(stat(path.ptr, &info) == 0 && (info.st_mode & 0777) == 0600);
    image = read_image(path.ptr);
    for (size_t i = 0; i < 8 * image.len; i++) {
        image.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        check_refused(&w, path, &image, image.len, "a flip of bit", i);
        image.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t i = image.len; i-- > 0;) {
        bool was_zero = image.bytes[i] == 0;

        check_refused(&w, path, &image, i, "a cut at byte", i);
        image.bytes[i] = 0;
        if (!was_zero)
            check_refused(&w, path, &image, image.len, "zeros from byte", i);
    }
    free(image.bytes);
    world_close(&w);
}

static void seal_head(uint8_t *head)
{
    uint64_t hash = XXH3_64bits(head, 64);

    memcpy(head + 64, &hash, sizeof(hash)); /* tests run on little-endian machines */
}

TEST(snapshot, a_newer_file_and_no_file)
{
    struct world w = world_open(t, "memory:");
    const char *directory = test_directory(t);
    struct hf_str path = path_in(&w, directory, "newer");
    struct hf_engine_snapshot *snapshot = take(&w);
    struct image image;

    CHECK_OK(hf_engine_snapshot_save(w.scope, snapshot, path));
    CHECK_STATUS(HF_IO,
                 hf_engine_snapshot_save(w.scope, snapshot, path_in(&w, directory, "none/newer")));
    hf_engine_snapshot_free(snapshot);
    image = read_image(path.ptr);
    image.bytes[8] = 2;
    seal_head(image.bytes);
    write_image(path.ptr, image.bytes, image.len);
    CHECK_STATUS(HF_FORMAT, hf_engine_snapshot_load(w.scope, path, &snapshot));
    image.bytes[8] = 1;
    memset(image.bytes + 56, 0xff, 8); /* blocks without end */
    seal_head(image.bytes);
    write_image(path.ptr, image.bytes, image.len);
    CHECK_STATUS(HF_CORRUPT, hf_engine_snapshot_load(w.scope, path, &snapshot));
    CHECK_STATUS(HF_IO,
                 hf_engine_snapshot_load(w.scope, path_in(&w, directory, "gone"), &snapshot));
    CHECK_STATUS(HF_IO, hf_engine_snapshot_load(w.scope, hf_str_from(directory), &snapshot));
    CHECK(snapshot == NULL);
    free(image.bytes);
    world_close(&w);
}

/* Give the checksums of a file with one block the values that they should have. */
static void seal(struct image *image)
{
    uint8_t *block = image->bytes + 72;
    uint32_t len;
    uint64_t hash, chain = 0;

    seal_head(image->bytes);
    memcpy(&len, block + 8, sizeof(len));
    hash = XXH3_64bits_withSeed(block + 16, len, XXH3_64bits_withSeed(block + 8, 8, 0));
    memcpy(block, &hash, sizeof(hash));
    chain = XXH3_64bits_withSeed(image->bytes + 64, 8, chain);
    chain = XXH3_64bits_withSeed(block, 8, chain);
    memcpy(image->bytes + image->len - 8, &chain, sizeof(chain));
}

/* Files whose checksums are right and whose entries are not: nothing is promised of what they
 * give, but it is an answer, and what can be restored can be taken away again. */
TEST(snapshot, a_file_that_was_made_wrong_does_no_harm)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "wrong");
    struct hf_engine_snapshot *fresh, *wrong;
    unsigned loaded = 0, restored = 0;
    struct image image;
    char *before;

    fill(&w);
    world_ok(&w, "CreateBackup", "{'TableName':'all','BackupName':'backup'}");
    upkeep(&w);
    before = dump(&w);
    fresh = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path));
    image = read_image(path.ptr);
    seal(&image); /* changes nothing */
    write_image(path.ptr, image.bytes, image.len);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &wrong));
    hf_engine_snapshot_free(wrong);
    for (int i = 0; i < 1500; i++) {
        size_t at = 72 + 16 + test_random_below(t, image.len - 72 - 16 - 24);
        uint8_t was = image.bytes[at];

        image.bytes[at] = (uint8_t)test_random(t);
        seal(&image);
        write_image(path.ptr, image.bytes, image.len);
        image.bytes[at] = was;
        if (hf_engine_snapshot_load(w.scope, path, &wrong) != HF_OK) {
            CHECK_INT(HF_CORRUPT, hf_scope_error(w.scope)->status);
            continue;
        }
        loaded++;
        if (hf_engine_snapshot_restore(w.scope, w.db, wrong) == HF_OK) {
            restored++;
            world_call(&w, "Scan", "{'TableName':'all'}");
            world_call(&w, "Scan", "{'TableName':'all','IndexName':'global'}");
            if (hf_engine_check(w.scope, w.db, NULL) != HF_OK)
                CHECK_INT(HF_CORRUPT, hf_scope_error(w.scope)->status);
            restore(&w, fresh);
        }
        hf_engine_snapshot_free(wrong);
    }
    CHECK(loaded > 0 && restored > 0);
    CHECK_DUMP(&w, before);
    hf_engine_snapshot_free(fresh);
    free(before);
    free(image.bytes);
    world_close(&w);
}

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
