/*
 * engine/counts_test.c: ItemCount and TableSizeBytes are exact: while writing, after reopening, and
 * after a process that ended without closing.
 */
#include "help.h"

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'g','AttributeType':'S'}],"       \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk','KeyType':"        \
    "'RANGE'}],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'by_g',"     \
    "'KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':"         \
    "'KEYS_ONLY'}}],'LocalSecondaryIndexes':[{'IndexName':'local','KeySchema':[{'AttributeName':"  \
    "'pk','KeyType':'HASH'},{'AttributeName':'g','KeyType':'RANGE'}],'Projection':"                \
    "{'ProjectionType':'ALL'}}]}"

struct expected {
    long long items, bytes;        /* of the table */
    long long global, global_size; /* of its global index */
    long long local, local_size;
};

static void check_counts(struct world *w, const struct expected *expected)
{
    struct hf_str answer = world_ok(w, "DescribeTable", "{'TableName':'tab'}");
    struct hf_str rest = answer;

    CHECK_INT(expected->bytes, next_number(&rest, "\"TableSizeBytes\":"));
    rest = answer;
    CHECK_INT(expected->items, next_number(&rest, "\"ItemCount\":"));
    rest = answer;
    after(&rest, "\"GlobalSecondaryIndexes\":");
    CHECK_INT(expected->global_size, next_number(&rest, "\"IndexSizeBytes\":"));
    CHECK_INT(expected->global, next_number(&rest, "\"ItemCount\":"));
    rest = answer;
    after(&rest, "\"LocalSecondaryIndexes\":");
    CHECK_INT(expected->local_size, next_number(&rest, "\"IndexSizeBytes\":"));
    CHECK_INT(expected->local, next_number(&rest, "\"ItemCount\":"));
}

/* pk 2+1, sk 2+2 (1 for a digit, 1 for the number), g 1+1, x 1+10: what one item takes. */
enum { KEYS = 3 + 4, WITH_G = KEYS + 2, WITH_X = WITH_G + 11 };

static int put(struct world *w, int sk, const char *more)
{
    struct hf_str answer =
        callf(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'sk':{'N':'%d'}%s}}", sk,
              more);

    hf_scope_reset(w->scope);
    return is_error(answer);
}

/* Nine items with g and x, one of them loses both again, and one is deleted. */
static int write_some(struct world *w)
{
    int wrong = 0;

    for (int i = 1; i <= 9; i++)
        wrong += put(w, i, ",'g':{'S':'g'},'x':{'S':'0123456789'}");
    wrong += put(w, 1, "");
    wrong += is_error(
        world_call(w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'a'},'sk':{'N':'2'}}}"));
    return wrong;
}

static const struct expected after_some = {.items = 8,
                                           .bytes = 7 * WITH_X + KEYS,
                                           .global = 7,
                                           .global_size = 7 * WITH_G,
                                           .local = 7,
                                           .local_size = 7 * WITH_X};
static const struct expected after_one_more = {.items = 9,
                                               .bytes = 8 * WITH_X + KEYS,
                                               .global = 8,
                                               .global_size = 8 * WITH_G,
                                               .local = 8,
                                               .local_size = 8 * WITH_X};

TEST(counts, are_exact_at_once)
{
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", TABLE);
    CHECK_INT(0, write_some(&w));
    check_counts(&w, &after_some);
    world_close(&w);
}

TEST(counts, are_exact_after_reopening)
{
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", TABLE);
    CHECK_INT(0, write_some(&w));
    world_reopen(&w);
    check_counts(&w, &after_some);
    CHECK_INT(0, put(&w, 2, ",'g':{'S':'g'},'x':{'S':'0123456789'}"));
    world_reopen(&w);
    world_reopen(&w);
    check_counts(&w, &after_one_more);
    world_close(&w);
}

TEST(counts, are_exact_after_a_crash)
{
    struct world w;

    crash_here(t, write_some);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", TABLE);
    crash_after(&w);
    check_counts(&w, &after_some);
    CHECK_INT(0, put(&w, 2, ",'g':{'S':'g'},'x':{'S':'0123456789'}"));
    check_counts(&w, &after_one_more);
    world_reopen(&w);
    check_counts(&w, &after_one_more);
    world_close(&w);
}

/* Writes after the crash and before anybody asks are counted once, not twice. */
TEST(counts, are_exact_when_asked_late_after_a_crash)
{
    struct world w;

    crash_here(t, write_some);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", TABLE);
    crash_after(&w);
    CHECK_INT(0, put(&w, 2, ",'g':{'S':'g'},'x':{'S':'0123456789'}"));
    CHECK_INT(0, put(&w, 2, ",'g':{'S':'h'},'x':{'S':'0123456789'}"));
    upkeep(&w);
    check_counts(&w, &after_one_more);
    world_close(&w);
}

/* Never asked, closed cleanly: then a clean close must not save counts that it does not know. */
TEST(counts, are_exact_when_never_asked_after_a_crash)
{
    struct world w;

    crash_here(t, write_some);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", TABLE);
    crash_after(&w);
    CHECK_INT(0, put(&w, 2, ",'g':{'S':'g'},'x':{'S':'0123456789'}"));
    world_reopen(&w);
    check_counts(&w, &after_one_more);
    world_close(&w);
}

/* Whoever names the table by its ARN gets the same counts; a backup has them, too. */
TEST(counts, are_exact_after_a_crash_for_who_asks_by_arn)
{
    struct world w;
    struct hf_str rest;

    crash_here(t, write_some);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", TABLE);
    crash_after(&w);
    rest = world_ok(&w, "DescribeTable",
                    "{'TableName':'arn:aws:dynamodb:us-east-1:123456789012:table/tab'}");
    CHECK_INT(after_some.bytes, next_number(&rest, "\"TableSizeBytes\":"));
    crash_after(&w);
    rest = world_ok(&w, "CreateBackup",
                    "{'TableName':'arn:aws:dynamodb:us-east-1:123456789012:table/tab',"
                    "'BackupName':'backup'}");
    CHECK_INT(after_some.bytes, next_number(&rest, "\"BackupSizeBytes\":"));
    world_close(&w);
}
