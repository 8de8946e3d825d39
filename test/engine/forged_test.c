/*
 * engine/forged_test.c: what the database handed out and gets back: iterators, tokens, ARNs, names
 * of shards, sequence numbers. Each is sent with every byte changed, cut at every place, and
 * extended.
 *
 * What carries a signature, or names one thing, is refused unless it is as it was. What says where
 * to go on may be anything, and the answer is then some page, or a refusal. Never is it an error of
 * the database's own.
 */
#include "help.h"

#include "base/base.h"
#include "ops/fields.h"
#include "wire/wire.h"

enum forged { REFUSED, ANYTHING };

struct forger {
    struct world *w;
    const char *operation;
    const char *before; /* the body around what is forged, with ' for " */
    const char *behind;
    enum forged forged;
    struct hf_scope *call;
    size_t calls;
};

/* As a JSON string, every byte below 128 by its number; above that it is no UTF-8. */
static struct hf_str body_of(struct forger *f, struct hf_str token)
{
    static const char digits[] = "0123456789abcdef";
    struct hf_str before = world_json(f->w, f->before), behind = world_json(f->w, f->behind);
    struct hf__buf buf = {.scope = f->w->scope};

    hf__buf_put_str(&buf, before);
    for (size_t i = 0; i < token.len; i++) {
        uint8_t c = (uint8_t)token.ptr[i];

        if (c >= 0x80 || (c >= ' ' && c != '"' && c != '\\')) {
            hf__buf_put_byte(&buf, c);
        } else {
            hf__buf_put_str(&buf, HF_STR("\\u00"));
            hf__buf_put_byte(&buf, (uint8_t)digits[c >> 4]);
            hf__buf_put_byte(&buf, (uint8_t)digits[c & 15]);
        }
    }
    hf__buf_put_str(&buf, behind);
    CHECK(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

static void send_forged(struct forger *f, struct hf_str token)
{
    bool is_name = str_is(token, "tab"); /* which is left of an ARN without its beginning */
    struct hf_str answer;
    enum hf_status status = world_exchange(f->w, f->operation, body_of(f, token), &answer);

    f->calls++;
    if ((f->forged == REFUSED && status == HF_OK && !is_name) ||
        strstr(hf__wire_type(status), "InternalServerError"))
        fail_msg("%s %s%.*s%s: %.*s", f->operation, f->before, HF_FMT(token), f->behind,
                 HF_FMT(answer));
    hf_scope_reset(f->w->scope);
}

/* `token` is outside of the world's scope. */
static void forge(struct world *w, enum forged forged, const char *operation, const char *before,
                  const char *behind, const char *token)
{
    static const uint8_t others[] = {0, 1, ' ', '/', '0', '9', 'A', 'a', 'f', 'g', '|', ':', 0x7F};
    struct forger f = {w, operation, before, behind, forged, NULL, 0};
    size_t len = strlen(token);
    char changed[1200];

    CHECK(len > 0 && len + 600 < sizeof(changed));
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < ARRAY_LEN(others) + 9; j++) {
            memcpy(changed, token, len);
            changed[i] = (char)(j < ARRAY_LEN(others) ? others[j]
                                : j < ARRAY_LEN(others) + 8
                                    ? (uint8_t)token[i] ^ 1u << (j - ARRAY_LEN(others))
                                    : (uint8_t)token[i] + 1u);
            if (changed[i] != token[i])
                send_forged(&f, hf_str_of(changed, len));
        }
        send_forged(&f, hf_str_of(token, i));
        send_forged(&f, hf_str_of(token + i + 1, len - i - 1));
        memcpy(changed, token, len); /* a byte less in the middle */
        memmove(changed + i, changed + i + 1, len - i - 1);
        send_forged(&f, hf_str_of(changed, len - 1));
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        memcpy(changed, token, len);
        changed[len] = (char)others[i];
        send_forged(&f, hf_str_of(changed, len + 1));
        memset(changed + len, others[i], 600);
        send_forged(&f, hf_str_of(changed, len + 600));
        changed[0] = (char)others[i];
        memcpy(changed + 1, token, len);
        send_forged(&f, hf_str_of(changed, len + 1));
    }
    CHECK(f.calls > 20 * len);
}

/* The text member of an answer, kept outside of the scope. */
static void keep(struct world *w, char *to, size_t room, const char *member, struct hf_str answer)
{
    struct hf_str text = next_text(&answer, member);

    if (!text.len || text.len >= room)
        fail_msg("no %s", member);
    snprintf(to, room, "%.*s", HF_FMT(text));
    hf_scope_reset(w->scope);
}

#define KEEP(to, member, answer) keep(&w, (to), sizeof(to), (member), (answer))

static struct world stream_world(struct test *t, char arn[200], char shard[80])
{
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_AND_OLD_IMAGES")));
    for (int i = 0; i < 8; i++)
        callf(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%d'}}}", i);
    keep(&w, arn, 200, "LatestStreamArn", world_ok(&w, "DescribeTable", "{'TableName':'tab'}"));
    keep(&w, shard, 80, "ShardId", callf(&w, "DescribeStream", "{'StreamArn':'%s'}", arn));
    return w;
}

TEST(forged, iterators)
{
    char arn[200], shard[80], iterator[400], before[400];
    struct world w = stream_world(t, arn, shard);

    KEEP(iterator, "ShardIterator",
         callf(&w, "GetShardIterator",
               "{'StreamArn':'%s','ShardId':'%s','ShardIteratorType':'TRIM_HORIZON'}", arn, shard));
    forge(&w, REFUSED, "GetRecords", "{'ShardIterator':'", "'}", iterator);
    CHECK(!is_error(callf(&w, "GetRecords", "{'ShardIterator':'%s'}", iterator)));

    snprintf(before, sizeof(before),
             "{'StreamArn':'%s','ShardIteratorType':'TRIM_HORIZON','ShardId':'", arn);
    forge(&w, REFUSED, "GetShardIterator", before, "'}", shard);
    snprintf(before, sizeof(before), "{'StreamArn':'%s','ExclusiveStartShardId':'", arn);
    forge(&w, ANYTHING, "DescribeStream", before, "'}", shard);
    forge(&w, REFUSED, "DescribeStream", "{'StreamArn':'", "'}", arn);
    forge(&w, ANYTHING, "ListStreams", "{'ExclusiveStartStreamArn':'", "'}", arn);
    world_close(&w);
}

TEST(forged, sequence_numbers)
{
    char arn[200], shard[80], number[80], before[400];
    struct world w = stream_world(t, arn, shard);

    KEEP(number, "StartingSequenceNumber", callf(&w, "DescribeStream", "{'StreamArn':'%s'}", arn));
    for (int after = 0; after < 2; after++) {
        snprintf(before, sizeof(before),
                 "{'StreamArn':'%s','ShardId':'%s','ShardIteratorType':'%s_SEQUENCE_NUMBER',"
                 "'SequenceNumber':'",
                 arn, shard, after ? "AFTER" : "AT");
        forge(&w, ANYTHING, "GetShardIterator", before, "'}", number);
        forge(&w, ANYTHING, "GetShardIterator", before, "'}", "18446744073709551615");
        forge(&w, ANYTHING, "GetShardIterator", before, "'}",
              "9999999999999999999999999999999999999999");
    }
    world_close(&w);
}

/* An iterator behind the last number there can be is at the end, not at the beginning again. */
TEST(forged, the_largest_sequence_number_does_not_begin_anew)
{
    char arn[200], shard[80], iterator[400];
    struct world w = stream_world(t, arn, shard);
    static const char *const numbers[] = {"18446744073709551615", "18446744073709551614",
                                          "9223372036854775807", "9223372036854775808"};
    struct hf_str answer;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        answer = callf(&w, "GetShardIterator",
                       "{'StreamArn':'%s','ShardId':'%s','ShardIteratorType':"
                       "'AFTER_SEQUENCE_NUMBER','SequenceNumber':'%s'}",
                       arn, shard, numbers[i]);
        if (is_error(answer))
            continue;
        KEEP(iterator, "ShardIterator", answer);
        answer = callf(&w, "GetRecords", "{'ShardIterator':'%s'}", iterator);
        CHECK(memmem(answer.ptr, answer.len, "\"Records\":[]", 12));
    }
    world_close(&w);
}

TEST(forged, tokens_of_statements)
{
    char token[400];
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (int i = 0; i < 4; i++)
        callf(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%d'}}}", i);
    KEEP(token, "NextToken",
         world_ok(&w, "ExecuteStatement", "{'Statement':'SELECT * FROM tab','Limit':1}"));
    forge(&w, REFUSED, "ExecuteStatement", "{'Statement':'SELECT * FROM tab','NextToken':'", "'}",
          token);
    CHECK(!is_error(callf(&w, "ExecuteStatement",
                          "{'Statement':'SELECT * FROM tab','NextToken':'%s'}", token)));
    CHECK_FAILS(&w, "ValidationException", "NextToken does not match request", "ExecuteStatement",
                hf_scope_format(w.scope,
                                "{'Statement':'SELECT pk FROM tab','Limit':1,'NextToken':'%s'}",
                                token)
                    .ptr);
    world_close(&w);
}

/* Another token is another transaction, which is carried out. */
TEST(forged, tokens_of_transactions)
{
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    forge(&w, ANYTHING, "TransactWriteItems",
          "{'TransactItems':[{'Put':{'TableName':'tab','Item':{'pk':{'S':'a'}}}}],"
          "'ClientRequestToken':'",
          "'}", "0123456789abcdef0123456789abcdef0123");
    world_close(&w);
}

TEST(forged, arns)
{
    char table[200], backup[200], revision[80], before[400];
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", ",'Tags':[{'Key':'a','Value':'b'}]"));
    KEEP(table, "TableArn", world_ok(&w, "DescribeTable", "{'TableName':'tab'}"));
    KEEP(backup, "BackupArn",
         world_ok(&w, "CreateBackup", "{'TableName':'tab','BackupName':'saved'}"));
    (void)upkeep(&w);
    forge(&w, REFUSED, "DescribeBackup", "{'BackupArn':'", "'}", backup);
    forge(&w, REFUSED, "DeleteBackup", "{'BackupArn':'", "'}", backup);
    forge(&w, REFUSED, "RestoreTableFromBackup", "{'TargetTableName':'new','BackupArn':'", "'}",
          backup);
    forge(&w, ANYTHING, "ListBackups", "{'ExclusiveStartBackupArn':'", "'}", backup);
    forge(&w, REFUSED, "ListTagsOfResource", "{'ResourceArn':'", "'}", table);
    forge(&w, REFUSED, "DescribeTable", "{'TableName':'", "'}", table);
    forge(&w, REFUSED, "GetItem", "{'Key':{'pk':{'S':'a'}},'TableName':'", "'}", table);
    forge(&w, ANYTHING, "ListTables", "{'ExclusiveStartTableName':'", "'}", "tab");
    KEEP(revision, "RevisionId",
         callf(&w, "PutResourcePolicy",
               "{'ResourceArn':'%s','Policy':'{\\'Version\\':\\'2012-10-17\\',"
               "\\'Statement\\':[{\\'Effect\\':\\'Allow\\',\\'Principal\\':\\'*\\',"
               "\\'Action\\':\\'dynamodb:GetItem\\',\\'Resource\\':\\'*\\'}]}'}",
               table));
    snprintf(before, sizeof(before), "{'ResourceArn':'%s','ExpectedRevisionId':'", table);
    forge(&w, REFUSED, "DeleteResourcePolicy", before, "'}", revision);
    world_close(&w);
}
