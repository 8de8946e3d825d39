/*
 * examples/records.c: a table of users; and 150 records, processed by five workers. Some fail the
 * first time, some permanently.
 *
 *     cc records.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/records.h>
#include <holdfast/table.h>

#include <stdio.h>

enum { RECORDS = 150 };

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* ---- users: a table with the keys pk and sk ------------------------------------------------- */

static int users(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_S}};
    const struct hf_key_element key[] = {{HF_STR("pk"), HF_KEY_HASH}, {HF_STR("sk"), HF_KEY_RANGE}};
    const struct hf_create_table table = {.table = HF_STR("Users"),
                                          .attributes = attributes,
                                          .attributes_len = 2,
                                          .key_schema = key,
                                          .key_schema_len = 2};
    struct hf_item id = HF_ITEM(s, HF_S("pk", HF_STR("USER#ann")), HF_S("sk", HF_STR("PROFILE")));
    const struct hf_attr profile[] = {HF_S("email", HF_STR("ann@example.com"))};
    struct hf_put_item put = {.table = table.table, .item = hf_item_with(s, id, profile, 1)};
    struct hf_get_item get = {.table = table.table, .key = id};
    struct hf_get_item_result got;

    if (hf_table_ensure(s, db, &table, NULL) != HF_OK || hf_put_item(s, db, &put, NULL) != HF_OK ||
        hf_get_item(s, db, &get, &got) != HF_OK)
        return complain(s);
    printf("user: %s\n", hf_item_to_json(s, got.item).ptr);
    return got.item.ptr ? 0 : 1;
}

/* ---- records -------------------------------------------------------------------------------- */

static struct hf_item record(struct hf_scope *s, int i)
{
    return HF_ITEM(s, HF_S("AccountId", hf_scope_format(s, "ACC%05d", i % 10)),
                   HF_S("RunTime", hf_scope_format(s, "2026-02-17T12:%02d:%02dZ", i / 60, i % 60)),
                   HF_S("DocumentId", hf_scope_format(s, "DOC%05d", i)), HF_N("Number", i));
}

/* Called by several threads at once. */
static enum hf_status process(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    int64_t number = 0;

    (void)user;
    if (!hf_value_i64(hf_item_get(record->item, HF_STR("Number")), &number))
        return hf_scope_fail(s, HF_INVALID, "the record has no number");
    if (number % 10 == 3 && record->failures == 0)
        return hf_scope_fail(s, HF_IO, "the printer is busy"); /* it is retried */
    if (number % 50 == 7)
        return hf_scope_fail(s, HF_INVALID, "document %d cannot be read", (int)number);
    return HF_OK;
}

static void progress(const struct hf_processor_progress *p, void *user)
{
    (void)user;
    printf("%llu of %llu, %.0f a second\n", (unsigned long long)p->metrics.completed,
           (unsigned long long)p->total, p->rate);
}

static int records(struct hf_scope *s, struct hf_db *db)
{
    struct hf_processor_report report;
    struct hf_processor *processor;
    struct hf_records *records;
    struct hf_record_list left;

    if (hf_records_open(s, db, NULL, &records) != HF_OK)
        return complain(s);
    for (int i = 0; i < RECORDS; i++)
        if (hf_records_put(s, records, record(s, i), NULL) != HF_OK)
            return complain(s);
    if (hf_processor_open(s, records,
                          HF_OPTIONS(hf_processor_options, .workers = 5, .max_retries = 3,
                                     .backoff_ms = 100, .backoff_multiplier = 2,
                                     .on_progress = progress),
                          &processor) != HF_OK)
        return complain(s);
    if (hf_processor_run(s, processor, process, NULL, &report) != HF_OK)
        return complain(s);
    hf_processor_close(processor);
    printf("processing complete: %llu done, %llu retried, %llu failed\n",
           (unsigned long long)report.metrics.completed, (unsigned long long)report.metrics.retried,
           (unsigned long long)report.metrics.failed);
    for (size_t i = 0; i < report.errors_len; i++)
        printf("failed: %.*s - %.*s: %.*s\n", HF_FMT(report.errors[i].account),
               HF_FMT(report.errors[i].run_time), HF_FMT(report.errors[i].text));
    if (hf_records_unprocessed(s, records, NULL, &left) != HF_OK)
        return complain(s);
    hf_records_close(records);
    return report.metrics.completed == RECORDS - 3 && report.metrics.retried == RECORDS / 10 &&
                   report.errors_len == 3 && left.records_len == 0
               ? 0
               : 1;
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    int failed;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    failed = users(s, db) || records(s, db);
    hf_db_close(db);
    hf_scope_free(s);
    return failed;
}
