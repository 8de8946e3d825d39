/*
 * records/records_test.c: a table of records, one feature at a time, on every kind of database.
 * (n) is an invariant of records/records.c.
 */
#include <holdfast/records.h>

#include <holdfast/batch.h>
#include <holdfast/engine.h>

#include <time.h>

#include "kit.h"

static struct hf_records *open_records(struct kit *k)
{
    struct hf_records *records;

    CHECK_OK(hf_records_open(k->scope, k->db,
                             HF_OPTIONS(hf_records_options, .table = k->table, .shards = 4),
                             &records));
    return records;
}

static struct hf_item record_of(struct hf_scope *s, const char *account, const char *run_time,
                                const char *document)
{
    return HF_ITEM(s, HF_S("AccountId", hf_str_from(account)),
                   HF_S("RunTime", hf_str_from(run_time)),
                   HF_S("DocumentId", hf_str_from(document)));
}

static void put(struct kit *k, struct hf_records *records, const char *account,
                const char *run_time)
{
    CHECK_OK(
        hf_records_put(k->scope, records, record_of(k->scope, account, run_time, "doc"), NULL));
}

static struct hf_record_info get(struct kit *k, struct hf_records *records, const char *account,
                                 const char *run_time)
{
    struct hf_record_info info;

    CHECK_OK(hf_records_get(k->scope, records, hf_str_from(account), hf_str_from(run_time), &info));
    return info;
}

static enum hf_status mark(struct kit *k, struct hf_records *records, const char *account,
                           const char *run_time)
{
    return hf_records_mark(k->scope, records, hf_str_from(account), hf_str_from(run_time));
}

static struct hf_str text_of(struct hf_item item, const char *name)
{
    return hf_value_str(hf_item_get(item, hf_str_from(name)));
}

static int64_t number_of(struct hf_item item, const char *name)
{
    int64_t number = -1;

    (void)hf_value_i64(hf_item_get(item, hf_str_from(name)), &number);
    return number;
}

static size_t unprocessed(struct kit *k, struct hf_records *records)
{
    struct hf_record_list list;

    CHECK_OK(hf_records_unprocessed(k->scope, records, NULL, &list));
    CHECK(!list.next.ptr);
    return list.records_len;
}

static size_t processed(struct kit *k, struct hf_records *records)
{
    struct hf_record_list list;

    CHECK_OK(hf_records_processed(k->scope, records, NULL, &list));
    CHECK(!list.next.ptr);
    return list.records_len;
}

/* ---- the seed's example --------------------------------------------------------------------- */

KIT_TEST(records, put_query_mark_delete)
{
    struct hf_records *records = open_records(k);
    time_t now = (time_t)(k->t->wall_us / 1000000);
    char today[32];
    struct hf_record_info info;
    struct hf_record_list list;

    CHECK_OK(hf_records_put(k->scope, records,
                            record_of(k->scope, "ACC12345", "2026-02-17T12:00:00Z", "DOC67890"),
                            NULL));
    put(k, records, "ACC12345", "2026-02-18T12:00:00Z");
    put(k, records, "ACC2", "2026-02-17T12:00:00Z");
    info = get(k, records, "ACC12345", "2026-02-17T12:00:00Z");
    CHECK_STR("ACC12345", info.account);
    CHECK_STR("2026-02-17T12:00:00Z", info.run_time);
    CHECK_STR("DOC67890", text_of(info.item, "DocumentId"));
    CHECK_INT(0, number_of(info.item, "Processed"));
    CHECK_INT(HF_RECORD_UNPROCESSED, info.state);
    CHECK_INT(24, text_of(info.item, "CreatedAt").len); /* making a table may have taken a while */
    strftime(today, sizeof(today), "%Y-%m-%dT00:0", gmtime(&now));
    CHECK_STR(today, hf_str_of(text_of(info.item, "CreatedAt").ptr, 15));
    CHECK(!info.owner.ptr && !info.claim && !info.done_by.ptr && info.error == HF_OK);
    CHECK_INT(3, unprocessed(k, records));
    CHECK_INT(0, processed(k, records));
    CHECK_OK(mark(k, records, "ACC12345", "2026-02-17T12:00:00Z"));
    info = get(k, records, "ACC12345", "2026-02-17T12:00:00Z");
    CHECK_INT(1, number_of(info.item, "Processed"));
    CHECK_INT(HF_RECORD_PROCESSED, info.state);
    CHECK_INT(2, unprocessed(k, records));
    CHECK_OK(hf_records_processed(k->scope, records, NULL, &list));
    CHECK_INT(1, list.records_len);
    CHECK_STR("DOC67890", text_of(list.records[0].item, "DocumentId"));
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("ACC12345"), NULL, &list));
    CHECK_INT(2, list.records_len);
    CHECK_STR("2026-02-17T12:00:00Z", list.records[0].run_time);
    CHECK_STR("2026-02-18T12:00:00Z", list.records[1].run_time);
    CHECK_OK(hf_records_delete(k->scope, records, HF_STR("ACC2"), HF_STR("2026-02-17T12:00:00Z")));
    CHECK_OK(hf_records_delete(k->scope, records, HF_STR("ACC2"), HF_STR("2026-02-17T12:00:00Z")));
    CHECK_STATUS(HF_NOT_FOUND, hf_records_get(k->scope, records, HF_STR("ACC2"),
                                              HF_STR("2026-02-17T12:00:00Z"), &info));
    CHECK_INT(1, unprocessed(k, records));
    hf_records_close(records);
}

/* (1): only what waits is in the index, and marking takes it out. */
KIT_TEST(records, the_index_has_only_what_waits)
{
    struct hf_records *records = open_records(k);
    struct hf_scan scan = {.table = k->table, .index = HF_STR("Processed")};
    struct hf_scan_result result;
    uint64_t count;

    for (int i = 0; i < 20; i++)
        put(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr);
    CHECK_OK(hf_records_count(k->scope, records, HF_RECORD_UNPROCESSED, &count));
    CHECK_INT(20, count);
    for (int i = 0; i < 20; i += 2)
        CHECK_OK(mark(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr));
    CHECK_OK(hf_scan(k->scope, k->db, &scan, &result));
    CHECK_INT(10, result.items_len);
    CHECK_INT(3, hf_item_count(result.items[0])); /* keys alone */
    CHECK_OK(hf_records_count(k->scope, records, HF_RECORD_UNPROCESSED, &count));
    CHECK_INT(10, count);
    CHECK_INT(10, processed(k, records));
    CHECK_STATUS(HF_INVALID, hf_records_count(k->scope, records, HF_RECORD_PROCESSED, &count));
    hf_records_close(records);
}

KIT_TEST(records, processed_ones_can_be_in_the_index_too)
{
    struct hf_records *records;
    uint64_t count;

    CHECK_OK(
        hf_records_open(k->scope, k->db,
                        HF_OPTIONS(hf_records_options, .table = k->table, .index_processed = true),
                        &records));
    for (int i = 0; i < 10; i++)
        put(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr);
    for (int i = 0; i < 10; i += 2)
        CHECK_OK(mark(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr));
    CHECK_OK(hf_records_count(k->scope, records, HF_RECORD_PROCESSED, &count));
    CHECK_INT(5, count);
    CHECK_INT(5, processed(k, records));
    CHECK_INT(5, unprocessed(k, records));
    hf_records_close(records);
}

/* ---- putting -------------------------------------------------------------------------------- */

KIT_TEST(records, a_put_replaces_and_keeps_what_is_to_be_kept)
{
    struct hf_scope *s = k->scope;
    struct hf_records *records = open_records(k);
    struct hf_record_info first, second;
    struct hf_item changed;

    put(k, records, "a", "1");
    first = get(k, records, "a", "1");
    CHECK_OK(mark(k, records, "a", "1"));
    test_advance_ms(k->t, 1000);
    /* A record that was read, changed, and put again. */
    changed = get(k, records, "a", "1").item;
    changed = hf_item_with(s, changed,
                           (const struct hf_attr[]){HF_S("DocumentId", HF_STR("new")),
                                                    HF_N("Processed", 0)},
                           2);
    CHECK_OK(hf_records_put(s, records, changed, NULL));
    second = get(k, records, "a", "1");
    CHECK_STR("new", text_of(second.item, "DocumentId"));
    CHECK_INT(HF_RECORD_UNPROCESSED, second.state);
    CHECK(!second.done_by.ptr);
    CHECK(second.fence > first.fence); /* (2) */
    CHECK(text_of(second.item, "CreatedAt").ptr != NULL);
    CHECK(hf_str_equal(text_of(first.item, "CreatedAt"), text_of(second.item, "CreatedAt")));
    CHECK(!hf_str_equal(text_of(first.item, "UpdatedAt"), text_of(second.item, "UpdatedAt")));
    CHECK_INT(1, unprocessed(k, records));
    CHECK_STATUS(HF_DUPLICATE, hf_records_put(s, records, record_of(s, "a", "1", "third"),
                                              HF_OPTIONS(hf_record_put_options, .only_new = true)));
    CHECK_ERROR(HF_DUPLICATE, "record a, 1 already exists", s);
    CHECK_STR("new", text_of(get(k, records, "a", "1").item, "DocumentId"));
    CHECK_OK(hf_records_put(s, records, record_of(s, "a", "2", "third"),
                            HF_OPTIONS(hf_record_put_options, .only_new = true)));
    hf_records_close(records);
}

static struct {
    struct kit *k;
    struct hf_records *records; /* NULL: not now */
} meddler;

/* While one waits to send again what may have been done, another puts the same record. */
static void meddle(int64_t us, void *user)
{
    struct hf_records *records = meddler.records;

    meddler.records = NULL;
    test_advance_ms(user, us / 1000 + 1);
    if (records)
        CHECK_OK(hf_records_put(meddler.k->scope, records,
                                record_of(meddler.k->scope, "a", "1", "theirs"), NULL));
}

/* What may have been put, and was replaced by another since, is not put again: it may have been
 * worked on. Nor is it told not to have been put. */
KIT_TEST(records, what_may_have_been_put_is_not_put_again)
{
    struct hf_records *records = open_records(k);
    struct hf_env env = *test_env(k->t);
    struct hf_scope *s;

    env.sleep = meddle;
    s = hf_scope_new(&env);
    for (int i = 0; i < 3; i++) {
        const struct hf_record_put_options o = {.size = sizeof(o), .only_new = i == 1};
        struct hf_fault fault = {.kind = HF_FAULT_LOST_ANSWER,
                                 .operation = HF_STR("PutItem"),
                                 .count = 1};

        if (i == 2) /* in the place of one that is there */
            put(k, records, "a", "1");
        meddler.k = k;
        meddler.records = records;
        fault.skip = i == 2 ? 1 : 0; /* the insert, which is refused */
        CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
        CHECK(hf_records_put(s, records, record_of(s, "a", "1", "ours"), &o) != HF_OK);
        CHECK(hf_scope_error(s)->may_have_happened);
        CHECK(!meddler.records);
        CHECK_STR("theirs", text_of(get(k, records, "a", "1").item, "DocumentId"));
        CHECK_OK(hf_records_delete(k->scope, records, HF_STR("a"), HF_STR("1")));
    }
    hf_scope_free(s);
    hf_records_close(records);
}

KIT_TEST(records, a_lost_answer_puts_once)
{
    struct hf_records *records = open_records(k);
    struct hf_record_info first;

    kit_fault(k, HF_FAULT_LOST_ANSWER, "PutItem", 2);
    CHECK_OK(hf_records_put(k->scope, records, record_of(k->scope, "a", "1", "d"),
                            HF_OPTIONS(hf_record_put_options, .only_new = true)));
    first = get(k, records, "a", "1");
    kit_fault(k, HF_FAULT_LOST_REQUEST, "PutItem", 1);
    CHECK_OK(hf_records_put(k->scope, records, record_of(k->scope, "b", "1", "d"),
                            HF_OPTIONS(hf_record_put_options, .only_new = true)));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "PutItem", 1);
    put(k, records, "a", "1"); /* the insert is refused, the replacement's answer is not lost */
    CHECK_INT(first.fence + 1, get(k, records, "a", "1").fence);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(mark(k, records, "a", "1"));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_records_reset(k->scope, records, HF_STR("a"), HF_STR("1")));
    kit_no_faults(k);
    CHECK_INT(first.fence + 2, get(k, records, "a", "1").fence);
    CHECK_INT(2, unprocessed(k, records));
    hf_records_close(records);
}

KIT_TEST(records, what_is_no_record_is_refused)
{
    struct hf_scope *s = k->scope;
    struct hf_records *records = open_records(k);
    struct hf_record_list list;

    CHECK_STATUS(HF_INVALID,
                 hf_records_put(s, records, HF_ITEM(s, HF_S("RunTime", HF_STR("1"))), NULL));
    CHECK_STATUS(HF_INVALID, hf_records_put(s, records, record_of(s, "a", "", "d"), NULL));
    CHECK_ERROR(HF_INVALID, "a record needs an account and a run time", s);
    CHECK_STATUS(HF_INVALID,
                 hf_records_put(s, records,
                                HF_ITEM(s, HF_S("AccountId", HF_STR("a")),
                                        HF_S("RunTime", HF_STR("1")), HF_N("Processed", 2)),
                                NULL));
    CHECK_ERROR(HF_INVALID, "record a, 1: Processed is neither 0 nor 1", s);
    CHECK_STATUS(HF_NOT_FOUND, mark(k, records, "a", "1")); /* (3) */
    CHECK_STATUS(HF_NOT_FOUND, hf_records_reset(s, records, HF_STR("a"), HF_STR("1")));
    CHECK_OK(hf_records_by_account(s, records, HF_STR("a"), NULL, &list));
    CHECK_INT(0, list.records_len);
    CHECK_STATUS(HF_INVALID, hf_records_by_account(s, records, HF_STR(""), NULL, &list));
    CHECK_STATUS(HF_INVALID, hf_records_unprocessed(s, records,
                                                    HF_OPTIONS(hf_record_list_options,
                                                               .after = HF_STR("9.x.y")),
                                                    &list));
    CHECK_ERROR(HF_INVALID, "\"9.x.y\" is not a cursor of a list of records", s);
    /* One that is processed when it is put never waits. */
    CHECK_OK(hf_records_put(s, records,
                            HF_ITEM(s, HF_S("AccountId", HF_STR("a")), HF_S("RunTime", HF_STR("1")),
                                    HF_N("Processed", 1)),
                            NULL));
    CHECK_INT(0, unprocessed(k, records));
    CHECK_INT(1, processed(k, records));
    hf_records_close(records);
}

KIT_TEST(records, puts_and_marks_in_transactions)
{
    struct hf_scope *s = k->scope;
    struct hf_records *records = open_records(k);
    struct hf_transact_write actions[2];
    struct hf_transact_write_items tx = {.actions = actions, .actions_len = 2};

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        hf_records_close(records);
        return;
    }
    put(k, records, "a", "1");
    CHECK_OK(hf_records_put_tx(s, records, record_of(s, "a", "2", "d"), &actions[0]));
    CHECK_OK(hf_records_mark_tx(s, records, HF_STR("a"), HF_STR("1"), &actions[1]));
    CHECK_OK(hf_transact_write_items(s, k->db, &tx, NULL));
    CHECK_INT(1, unprocessed(k, records));
    CHECK_INT(HF_RECORD_PROCESSED, get(k, records, "a", "1").state);
    CHECK_INT(HF_RECORD_UNPROCESSED, get(k, records, "a", "2").state);
    CHECK_OK(hf_records_put_tx(s, records, record_of(s, "a", "3", "d"), &actions[0]));
    CHECK_STATUS(HF_TX_CANCELED, hf_transact_write_items(s, k->db, &tx, NULL));
    CHECK_INT(1, unprocessed(k, records));
    hf_records_close(records);
}

KIT_TEST(records, reset_makes_it_unprocessed)
{
    struct hf_records *records = open_records(k);
    struct hf_item foreign = record_of(k->scope, "a", "9", "of another program");
    struct hf_put_item plain = {.table = k->table, .item = foreign};
    uint64_t fence;

    put(k, records, "a", "1");
    fence = get(k, records, "a", "1").fence;
    CHECK_OK(mark(k, records, "a", "1"));
    CHECK_INT(0, unprocessed(k, records));
    CHECK_OK(hf_records_reset(k->scope, records, HF_STR("a"), HF_STR("1")));
    CHECK_INT(1, unprocessed(k, records));
    CHECK(get(k, records, "a", "1").fence > fence);
    CHECK_INT(0, number_of(get(k, records, "a", "1").item, "Processed"));
    CHECK_OK(hf_put_item(k->scope, k->db, &plain, NULL));
    CHECK_INT(1, unprocessed(k, records));
    CHECK_OK(hf_records_reset(k->scope, records, HF_STR("a"), HF_STR("9")));
    CHECK_INT(2, unprocessed(k, records));
    hf_records_close(records);
}

/* ---- lists ---------------------------------------------------------------------------------- */

KIT_TEST(records, lists_come_in_pages)
{
    enum { RECORDS = 57 };
    struct hf_records *records = open_records(k);
    struct hf_record_list list;
    struct hf_str after = {0};
    bool found[RECORDS] = {false};
    int count = 0, pages = 0;

    for (int i = 0; i < RECORDS; i++)
        put(k, records, hf_scope_format(k->scope, "account.%d", i % 3).ptr,
            hf_scope_format(k->scope, "%02d", i).ptr);
    do {
        CHECK_OK(
            hf_records_unprocessed(k->scope, records,
                                   HF_OPTIONS(hf_record_list_options, .limit = 10, .after = after),
                                   &list));
        CHECK(list.records_len <= 10);
        for (size_t i = 0; i < list.records_len; i++) {
            int n = (list.records[i].run_time.ptr[0] - '0') * 10 + list.records[i].run_time.ptr[1] -
                    '0';

            CHECK(!found[n]);
            found[n] = true;
            count++;
        }
        after = list.next;
        pages++;
    } while (after.ptr);
    CHECK_INT(RECORDS, count);
    CHECK(pages == 6 || pages == 7);
    hf_records_close(records);
}

KIT_TEST(records, an_account_by_time)
{
    struct hf_records *records = open_records(k);
    struct hf_record_list list;

    for (int i = 0; i < 30; i++)
        put(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr);
    put(k, records, "b", "05");
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("a"),
                                   HF_OPTIONS(hf_record_list_options, .from = HF_STR("10"),
                                              .to = HF_STR("19")),
                                   &list));
    CHECK_INT(10, list.records_len);
    CHECK_STR("10", list.records[0].run_time);
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("a"),
                                   HF_OPTIONS(hf_record_list_options, .from = HF_STR("20"),
                                              .newest_first = true, .limit = 4),
                                   &list));
    CHECK_INT(4, list.records_len);
    CHECK_STR("29", list.records[0].run_time);
    CHECK_STR("26", list.next);
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("a"),
                                   HF_OPTIONS(hf_record_list_options, .from = HF_STR("20"),
                                              .newest_first = true, .limit = 6, .after = list.next),
                                   &list));
    CHECK_INT(6, list.records_len);
    CHECK_STR("20", list.records[5].run_time);
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("a"),
                                   HF_OPTIONS(hf_record_list_options, .to = HF_STR("02")), &list));
    CHECK_INT(3, list.records_len);
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("a"),
                                   HF_OPTIONS(hf_record_list_options, .from = HF_STR("9"),
                                              .to = HF_STR("1")),
                                   &list));
    CHECK_INT(0, list.records_len);
    hf_records_close(records);
}

/* More than one page of a megabyte. */
KIT_TEST(records, large_records_follow_every_page)
{
    enum { RECORDS = 12, BYTES = 300000 };
    struct hf_records *records = open_records(k);
    struct hf_record_list list;
    char *large = hf_scope_alloc(k->scope, BYTES + 1);

    memset(large, 'x', BYTES);
    large[BYTES] = '\0';
    for (int i = 0; i < RECORDS; i++)
        CHECK_OK(hf_records_put(k->scope, records,
                                record_of(k->scope, "a", hf_scope_format(k->scope, "%02d", i).ptr,
                                          large),
                                NULL));
    CHECK_OK(hf_records_by_account(k->scope, records, HF_STR("a"), NULL, &list));
    CHECK_INT(RECORDS, list.records_len);
    CHECK_INT(RECORDS, unprocessed(k, records));
    for (int i = 0; i < RECORDS; i++)
        CHECK_OK(mark(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr));
    CHECK_OK(hf_records_processed(k->scope, records, HF_OPTIONS(hf_record_list_options, .limit = 5),
                                  &list));
    CHECK_INT(5, list.records_len);
    CHECK_OK(hf_records_processed(k->scope, records,
                                  HF_OPTIONS(hf_record_list_options, .after = list.next), &list));
    CHECK_INT(RECORDS - 5, list.records_len);
    hf_records_close(records);
}

KIT_TEST(records, many_at_once)
{
    enum { RECORDS = 300 };
    struct hf_scope *s = k->scope;
    struct hf_records *records = open_records(k);
    struct hf_write writes[RECORDS];

    for (int i = 0; i < RECORDS; i++) {
        writes[i] = (struct hf_write){.table = k->table};
        CHECK_OK(hf_records_item(s, records,
                                 record_of(s, "a", hf_scope_format(s, "%03d", i).ptr, "d"),
                                 &writes[i].put));
    }
    CHECK_OK(hf_write_many(s, k->db, writes, RECORDS, NULL, NULL));
    CHECK_INT(RECORDS, unprocessed(k, records));
    hf_records_close(records);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* (4) */
KIT_TEST(records, the_number_of_shards_stays)
{
    struct hf_records *records = open_records(k), *other;

    put(k, records, "a", "1");
    hf_records_close(records);
    CHECK_OK(hf_records_open(k->scope, k->db, HF_OPTIONS(hf_records_options, .table = k->table),
                             &other));
    CHECK_INT(1, unprocessed(k, other));
    put(k, other, "a", "2");
    hf_records_close(other);
    CHECK_STATUS(HF_INVALID,
                 hf_records_open(k->scope, k->db,
                                 HF_OPTIONS(hf_records_options, .table = k->table, .shards = 5),
                                 &other));
    CHECK_ERROR(
        HF_INVALID,
        hf_scope_format(k->scope, "table %.*s has 4 shards, expected 5", HF_FMT(k->table)).ptr,
        k->scope);
    CHECK(!other);
    CHECK_STATUS(HF_INVALID,
                 hf_records_open(k->scope, k->db,
                                 HF_OPTIONS(hf_records_options, .table = k->table, .shards = 1001),
                                 &other));
    CHECK_ERROR(HF_INVALID, "1001 shards are more than 1000", k->scope);
    records = open_records(k);
    CHECK_INT(2, unprocessed(k, records));
    hf_records_close(records);
    hf_records_close(NULL);
}

KIT_TEST(records, as_many_shards_as_there_can_be)
{
    struct hf_records *records;

    CHECK_OK(hf_records_open(k->scope, k->db,
                             HF_OPTIONS(hf_records_options, .table = k->table, .shards = 1000),
                             &records));
    for (int i = 0; i < 10; i++)
        put(k, records, "a", hf_scope_format(k->scope, "%02d", i).ptr);
    CHECK_INT(10, unprocessed(k, records));
    hf_records_close(records);
}

KIT_TEST(records, all_names_can_be_others)
{
    struct hf_scope *s = k->scope;
    struct hf_records *records;
    struct hf_records_options options = {.size = sizeof(options),
                                         .table = k->table,
                                         .account = HF_STR("key"), /* reserved words */
                                         .run_time = HF_STR("time"),
                                         .processed = HF_STR("status"),
                                         .index = HF_STR("by-status"),
                                         .shard = HF_STR("hash")};
    struct hf_record_info info;

    CHECK_OK(hf_records_open(s, k->db, &options, &records));
    CHECK_OK(hf_records_put(s, records,
                            HF_ITEM(s, HF_S("key", HF_STR("a")), HF_S("time", HF_STR("1"))), NULL));
    CHECK_INT(1, unprocessed(k, records));
    CHECK_OK(mark(k, records, "a", "1"));
    info = get(k, records, "a", "1");
    CHECK_INT(1, number_of(info.item, "status"));
    CHECK_INT(0, unprocessed(k, records));
    hf_records_close(records);
    options.shard = HF_STR("time");
    CHECK_STATUS(HF_INVALID, hf_records_open(s, k->db, &options, &records));
    CHECK_ERROR(HF_INVALID, "two attributes of records have the name \"time\"", s);
    options.shard = HF_STR("Claim");
    CHECK_STATUS(HF_INVALID, hf_records_open(s, k->db, &options, &records));
}

KIT_TEST(records, a_table_that_is_not_one_of_records)
{
    struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table spec = {.table = k->table,
                                   .attributes = &attribute,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1,
                                   .billing = HF_BILLING_PAY_PER_REQUEST};
    struct hf_records *records;

    CHECK_STATUS(HF_NOT_FOUND, hf_records_open(k->scope, k->db,
                                               HF_OPTIONS(hf_records_options, .table = k->table,
                                                          .no_create = true),
                                               &records));
    CHECK_OK(hf_create_table(k->scope, k->db, &spec, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_records_open(k->scope, k->db, HF_OPTIONS(hf_records_options, .table = k->table),
                                 &records));
    CHECK(!records);
    CHECK_STATUS(HF_INVALID, hf_records_open(k->scope, NULL, NULL, &records));
}

/* Where a record is may not change from version to version. */
KIT_TEST(records, shards_are_as_they_ever_were)
{
    struct hf_records *records;
    const struct {
        const char *account, *run_time, *shard;
    } known[] = {
        {"ACC12345", "2026-02-17T12:00:00Z", "unprocessed.11"},
        {"a", "b", "unprocessed.11"},
        {"ab", "c", "unprocessed.4"},
        {"a", "bc", "unprocessed.1"},
    };

    CHECK_OK(hf_records_open(k->scope, k->db, HF_OPTIONS(hf_records_options, .table = k->table),
                             &records));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        put(k, records, known[i].account, known[i].run_time);
        CHECK_STR(known[i].shard, text_of(get(k, records, known[i].account, known[i].run_time).item,
                                          "ProcessedShard"));
    }
    hf_records_close(records);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* What other programs put has no place in the index, until it is adopted; nothing else changes. */
KIT_TEST(records, what_others_put_is_adopted)
{
    struct hf_records *records = open_records(k);
    struct hf_scope *s = k->scope;
    struct hf_record_info info;
    uint64_t count = 7;

    put(k, records, "ours", "1");
    put(k, records, "ours", "2");
    CHECK_OK(mark(k, records, "ours", "2"));
    for (int i = 0; i < 5; i++)
        CHECK_OK(hf_put_item(
            s, k->db,
            &(struct hf_put_item){.table = k->table,
                                  .item = HF_ITEM(s, HF_S("AccountId", HF_STR("other")),
                                                  HF_S("RunTime", hf_scope_format(s, "%d", i)),
                                                  HF_N("Processed", i / 3), HF_N("Amount", i))},
            NULL));
    CHECK_INT(1, unprocessed(k, records));
    CHECK_OK(hf_records_adopt(s, records, &count));
    CHECK_INT(3, count);
    CHECK_INT(4, unprocessed(k, records));
    CHECK_INT(3, processed(k, records));
    info = get(k, records, "other", "2");
    CHECK(info.state == HF_RECORD_UNPROCESSED && number_of(info.item, "Amount") == 2);
    info = get(k, records, "other", "3");
    CHECK(info.state == HF_RECORD_PROCESSED && hf_item_count(info.item) == 4);
    CHECK_OK(hf_records_adopt(s, records, &count));
    CHECK_INT(0, count);
    hf_records_close(records);
}

/* An answer that gets lost adopts once, and what has changed meanwhile is left alone. */
KIT_TEST(records, adopting_counts_what_it_did)
{
    struct hf_records *records = open_records(k);
    struct hf_scope *s = k->scope;
    uint64_t count;

    for (int i = 0; i < 2; i++)
        CHECK_OK(hf_put_item(
            s, k->db,
            &(struct hf_put_item){.table = k->table,
                                  .item = HF_ITEM(s, HF_S("AccountId", HF_STR("other")),
                                                  HF_S("RunTime", hf_scope_format(s, "%d", i)),
                                                  HF_N("Processed", 0))},
            NULL));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_records_adopt(s, records, &count));
    CHECK_INT(2, count);
    kit_no_faults(k);
    CHECK_INT(2, unprocessed(k, records));
    CHECK_OK(hf_records_adopt(s, records, NULL));
    hf_records_close(records);
}

TEST(records, any_allocation_may_fail)
{
    struct hf_scope *outer = hf_scope_new(test_env(t));
    struct hf_db *db;
    struct hf_records *records;

    CHECK_OK(hf_open(outer, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    CHECK_OK(hf_records_open(outer, db, NULL, &records));
    hf_records_close(records);
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        enum hf_status status = s ? HF_OK : HF_NOMEM;
        struct hf_record_list list;

        records = NULL;
        if (status == HF_OK)
            status = hf_records_open(s, db, NULL, &records);
        if (status == HF_OK)
            status = hf_records_put(s, records, record_of(s, "a", "1", "d"), NULL);
        if (status == HF_OK)
            status = hf_records_unprocessed(s, records, NULL, &list);
        if (status == HF_OK)
            status = hf_records_mark(s, records, HF_STR("a"), HF_STR("1"));
        if (status == HF_OK)
            status = hf_records_by_account(s, records, HF_STR("a"), NULL, &list);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_records_close(records);
        hf_scope_free(s);
    }
    hf_db_close(db);
    hf_scope_free(outer);
}
