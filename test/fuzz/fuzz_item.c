/*
 * test/fuzz/fuzz_item.c: any item in the tables of the patterns and of the event store.
 *
 * The first byte chooses whose item it is, the rest is the item as DynamoDB's JSON.
 *
 *  - It is understood, or refused as HF_CORRUPT with a sentence.
 *  - What is understood can be looked at: texts are there, and of UTF-8.
 *  - An event of an outbox is a JSON object for sinks, whatever is in it.
 *  - A table whose mark it is can be opened, or is refused with a sentence that fits a line.
 *  - An item in the place of a counter can be read, added to and set, or is refused: nobody waits.
 */
#include <holdfast/engine.h>
#include <holdfast/kv.h>
#include <holdfast/outbox.h>
#include <holdfast/records.h>
#include <holdfast/sink.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter/counter.h"
#include "events/store/events.h"
#include "events/subscribe/subscribe.h"
#include "files.h"
#include "kv/kv.h"
#include "limit/limit.h"
#include "lock/lock.h"
#include "once/once.h"
#include "outbox/outbox.h"
#include "records/records.h"
#include "streams/consumer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

bool hf__wire_json_valid(
    struct hf_str text); /* of wire/wire.h, which has names that patterns have, too */

static struct hf_db *db;
static struct hf_counters *counters;
static struct hf_kv *kv;
static struct hf_outbox *outbox;
static struct hf_records *records;

static void open_all(struct hf_scope *s)
{
    MUST(hf_open(s, HF_STR("memory:"), NULL, &db) == HF_OK);
    MUST(hf_counters_open(s, db, HF_OPTIONS(hf_counters_options, .table = HF_STR("counters")),
                          &counters) == HF_OK);
    MUST(hf_kv_open(s, db, NULL, &kv) == HF_OK);
    MUST(hf_outbox_open(s, db, NULL, &outbox) == HF_OK);
    MUST(hf_records_open(s, db, NULL, &records) == HF_OK);
}

static void must_be_text(struct hf_str text)
{
    volatile char sum = 0;

    for (size_t i = 0; i < text.len; i++)
        sum = (char)(sum + text.ptr[i]);
}

static enum hf_status look_kv(struct hf_scope *s, struct hf_item item)
{
    struct hf_kv_key key;
    struct kv_view view;

    TRY(hf__kv_view(s, kv, item, &view));
    must_be_text(view.version);
    must_be_text(view.blob);
    TRY(hf__kv_key_of(s, kv, item, &key));
    return HF_OK;
}

static void must_be_expected(enum hf_status status)
{
    MUST(status == HF_OK || status == HF_CORRUPT || status == HF_LIMIT);
}

static enum hf_status look_counter(struct hf_scope *s, struct hf_item item)
{
    const struct hf_counter_key key = {.id = HF_STR("c")};
    struct hf_counter_list list;
    struct counter_at at;
    enum hf_status status;
    struct hf_attr name;
    int64_t value;
    bool again;

    TRY(hf__counter_at(s, counters, key, 0, &at));
    name = (struct hf_attr)HF_V("key", hf_item_get(at.key, HF_STR("key")));
    item = hf_item_with(s, item, &name, 1);
    if (hf_put_item(s, db, &(struct hf_put_item){.table = counters->table, .item = item}, NULL) !=
        HF_OK)
        return HF_OK; /* it can be in no table */
    status = hf_counter_get(s, counters, key, &value);
    must_be_expected(hf_counter_add(s, counters, key, 1, NULL, &value));
    must_be_expected(hf_counter_add_once(s, counters, key, HF_STR("r"), 1, NULL, &value, &again));
    must_be_expected(hf_counter_list(s, counters, NULL, &list));
    must_be_expected(hf_counter_set(s, counters, key, 7, &value));
    must_be_expected(hf_counter_delete(s, counters, key));
    MUST(hf_delete_item(s, db, &(struct hf_delete_item){.table = counters->table, .key = at.key},
                        NULL) == HF_OK);
    if (status == HF_CORRUPT)
        hf_scope_fail(s, status, "a counter that is none");
    return status;
}

/* With the item as the mark of a table, which is as it was afterwards. */
static enum hf_status look_mark(struct hf_scope *s, struct hf_item item)
{
    const struct hf_counters_options options = {.size = sizeof(options), .table = counters->table};
    const struct hf_attr name = HF_S("key", HF_STR("holdfast:table"));
    struct hf_delete_item remove = {.table = counters->table, .key = hf_item_make(s, &name, 1)};
    struct hf_put_item put = {.table = counters->table, .item = hf_item_with(s, item, &name, 1)};
    struct hf_counters *opened;
    enum hf_status status;

    if (hf_put_item(s, db, &put, NULL) != HF_OK)
        return HF_OK;
    status = hf_counters_open(s, db, &options, &opened);
    MUST(status == HF_OK || status == HF_INVALID || status == HF_CORRUPT || status == HF_FORMAT);
    if (status != HF_OK) {
        const char *text = hf_scope_error_text(s);

        MUST(*text);
        for (; *text; text++)
            MUST((unsigned char)*text >= ' ');
    }
    hf_counters_close(opened);
    MUST(hf_delete_item(s, db, &remove, NULL) == HF_OK);
    MUST(hf_counters_open(s, db, &options, &opened) == HF_OK);
    hf_counters_close(opened);
    return HF_OK;
}

static enum hf_status look_outbox(struct hf_scope *s, struct hf_item item)
{
    struct hf_outbox_event event;
    struct hf_str json;
    enum hf_status status;

    TRY(hf__outbox_view(s, outbox, item, &event));
    must_be_text(event.event.id);
    must_be_text(event.event.type);
    must_be_text(event.error_text);
    must_be_text(event.ref);
    status = hf_event_json(s, &event.event, &json);
    MUST(status == HF_INVALID || (status == HF_OK && hf__wire_json_valid(json)));
    return HF_OK;
}

static enum hf_status look_records(struct hf_scope *s, struct hf_item item)
{
    struct hf_record_info info;

    TRY(hf__records_view(s, records, item, &info));
    (void)hf__records_beat(item);
    (void)hf__records_lease_ms(item);
    (void)hf__records_after_ms(item);
    must_be_text(hf__records_failed_by(item));
    must_be_text(hf__records_put_id(item));
    return HF_OK;
}

static enum hf_status look_events(struct hf_scope *s, struct hf_item item, unsigned which)
{
    struct hf_event_stream_key stream = {HF_STR("order"), HF_STR("7")};
    struct hf_stored_event event;
    struct events_commit commit;
    struct events_place place;
    struct events_head head;
    struct events_step step;
    struct events_stub stub;
    struct hf_parked parked;
    struct sub_item sub;
    uint32_t number;

    switch (which) {
    case 0:
        return hf__events_head_view(s, item, &head);
    case 1:
        return hf__events_item_view(s, item, stream, 1, &event);
    case 2:
        return hf__events_commit_view(s, item, &commit);
    case 3:
        return hf__events_place_view(s, item, &place);
    case 4:
        return hf__events_step_view(s, item, &step);
    case 5:
        if (hf__events_stub_view(item, &stub))
            must_be_text(stub.large);
        (void)!hf__events_large_number(item, &number);
        return HF_OK;
    case 6:
        hf__sub_view(item, &sub);
        must_be_text(sub.holder);
        must_be_text(sub.failure);
        return HF_OK;
    default:
        hf__parked_view(item, &parked);
        return HF_OK;
    }
}

static enum hf_status look(struct hf_scope *s, struct hf_item item, unsigned which)
{
    const struct pattern_at locks_at = {.table = HF_STR("t"),
                                        .hash = HF_STR("name"),
                                        .expires = HF_STR("expires")};
    const struct pattern_at onces_at = {.table = HF_STR("t"),
                                        .hash = HF_STR("user"),
                                        .sort = HF_STR("key"),
                                        .expires = HF_STR("expires")};
    struct lock_view lock;
    struct once_view once;
    struct limit_view limit;
    struct shard_lease_view lease;

    switch (which) {
    case 'k':
        return look_kv(s, item);
    case 'u':
        return look_counter(s, item);
    case 'h':
        return look_mark(s, item);
    case 'o':
        return look_outbox(s, item);
    case 'r':
        return look_records(s, item);
    case 'l':
        return hf__lock_view(s, &locks_at, item, &lock);
    case 'n':
        return hf__once_view(s, &onces_at, item, INT64_C(1767225600000), &once);
    case 'm':
        return hf__limit_view(s, HF_STR("t"), HF_STR("name"), item, &limit);
    case 'c':
        return hf__shard_lease_view(s, item, &lease);
    default:
        return look_events(s, item, which % 8);
    }
}

/* Who sleeps waits for others, and here is nobody. */
static void sleep_not(int64_t us, void *user)
{
    (void)user;
    (void)us;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    unsigned which = input_byte(&input);
    struct hf_env env = {.sleep = sleep_not};
    struct hf_scope *s = hf_scope_new(&env);
    struct hf_item item;
    enum hf_status status;

    MUST(s);
    if (!db)
        open_all(s);
    if (hf_item_from_json(s, hf_str_of((const char *)input.at, input.left), &item) == HF_OK) {
        status = look(s, item, which);
        if (status != HF_OK && (status != HF_CORRUPT || !hf_scope_error_text(s)[0])) {
            fprintf(stderr, "%s: %s\n", hf_status_name(status), hf_scope_error_text(s));
            abort();
        }
    }
    hf_scope_free(s);
    return 0;
}
