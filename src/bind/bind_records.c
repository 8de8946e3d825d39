/*
 * bind/bind_records.c: methods of records. Processing them is a session: session_records.c.
 */
#include "bind/records.h"

#include "bind/texts.h"

static enum hf_status open_records(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                   bool create, const void *options, void **object)
{
    struct hf_records_options o = {.size = sizeof(o)};
    struct hf_records *records;

    if (options)
        o = *(const struct hf_records_options *)options;
    o.table = table;
    o.no_create = !create;
    TRY(hf_records_open(s, hf__bind_db(bind), &o, &records));
    *object = records;
    return HF_OK;
}

static void close_records(void *object)
{
    hf_records_close(object);
}

static const struct bind_opener records_kind = {.table = "Records",
                                                .open = open_records,
                                                .close = close_records};

enum hf_status hf__bind_records(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                bool create, struct hf_records **records)
{
    void *object;

    TRY(hf__bind_open_object(s, bind, &records_kind, table, create, &object));
    *records = object;
    return HF_OK;
}

struct records_open_args {
    struct hf_str table;
    struct hf_records_options o;
};

#define T records_open_args
ARGUMENTS(records_open, TEXT("table", table), TEXT("account", o.account),
          TEXT("run_time", o.run_time), TEXT("processed", o.processed), TEXT("index", o.index),
          TEXT("shard", o.shard), U32("shards", o.shards),
          BOOL("index_processed", o.index_processed), BOOL("adopt", o.adopt));
#undef T
NO_RESULT(records_open);

BIND_FUNCTION(records_open)
{
    struct records_open_args *args = args_in;

    (void)result_out;
    args->o.size = sizeof(args->o);
    return hf__bind_open_with(s, bind, &records_kind, hf__bind_take_text(&args->table),
                              &hf__bind_records_open_args, args, &args->o);
}

/* ---- one record ----------------------------------------------------------------------------- */

static const char *const record_states[] = {NULL, "unprocessed", "processed", "failed", NULL};

#define T hf_record_info
SHARED_PART(hf__bind_record, TEXT("account", account), TEXT("run_time", run_time),
            ITEM("item", item), CHOICE("state", state, record_states), U64("fence", fence),
            U32("attempts", attempts), U32("failures", failures), TEXT("owner", owner),
            TEXT("token", token), TEXT("done_by", done_by), CHOICE("error", error, status_texts),
            TEXT("error_text", error_text));
RESULT_AS(records_get, hf__bind_record);
#undef T

struct records_args {
    struct hf_str table, account, run_time;
    struct hf_item record;
    bool only_new;
    enum hf_record_state state;
    struct hf_record_list_options o;
    uint64_t limit;
};
struct records_count_result {
    uint64_t count;
};

#define T records_args
#define RECORD_KEY                                                                                 \
    TEXT("table", table), TEXT("account", account, REQUIRED), TEXT("run_time", run_time, REQUIRED)
ARGUMENTS(records_put, TEXT("table", table), ITEM("record", record, REQUIRED),
          BOOL("only_new", only_new));
ARGUMENTS(records_put_actions, TEXT("table", table), ITEM("record", record, REQUIRED));
ARGUMENTS(records_get, RECORD_KEY);
ARGUMENTS(records_mark, RECORD_KEY);
ARGUMENTS(records_mark_actions, RECORD_KEY);
ARGUMENTS(records_reset, RECORD_KEY);
ARGUMENTS(records_delete, RECORD_KEY);
ARGUMENTS(records_count, TEXT("table", table), CHOICE("state", state, record_states, REQUIRED));
ARGUMENTS(records_list, TEXT("table", table), CHOICE("state", state, record_states),
          TEXT("account", account), U64("limit", o.limit, LISTED_OR_ALL), TEXT("after", o.after),
          TEXT("from", o.from), TEXT("to", o.to), BOOL("newest_first", o.newest_first));
ARGUMENTS(records_retry_failed, TEXT("table", table), U64("limit", limit));
ARGUMENTS(records_adopt, TEXT("table", table));
#undef T
NO_RESULT(records_put);
NO_RESULT(records_mark);
NO_RESULT(records_reset);
NO_RESULT(records_delete);
#define T records_count_result
RESULT(records_count, U64("count", count));
RESULT(records_retry_failed, U64("count", count));
RESULT(records_adopt, U64("count", count));
#undef T
#define T hf_record_list
RESULT(records_list, STRUCTS("records", records, hf__bind_record), TEXT("next", next));
#undef T
#define T bind_actions
RESULT_AS(records_put_actions, hf__bind_actions_part);
RESULT_AS(records_mark_actions, hf__bind_actions_part);
#undef T

BIND_FUNCTION(records_put)
{
    struct records_args *args = args_in;
    struct hf_records *records;

    (void)result_out;
    TRY(hf__bind_records(s, bind, args->table, true, &records));
    return hf_records_put(s, records, args->record,
                          HF_OPTIONS(hf_record_put_options, .only_new = args->only_new));
}

BIND_FUNCTION(records_put_actions)
{
    struct hf_transact_write action = {0};
    struct records_args *args = args_in;
    struct hf_records *records;

    TRY(hf__bind_records(s, bind, args->table, true, &records));
    TRY(hf_records_put_tx(s, records, args->record, &action));
    return hf__bind_actions(s, &action, 1, result_out);
}

BIND_FUNCTION(records_get)
{
    struct records_args *args = args_in;
    struct hf_records *records;

    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_get(s, records, args->account, args->run_time, result_out);
}

BIND_FUNCTION(records_mark)
{
    struct records_args *args = args_in;
    struct hf_records *records;

    (void)result_out;
    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_mark(s, records, args->account, args->run_time);
}

BIND_FUNCTION(records_mark_actions)
{
    struct hf_transact_write action = {0};
    struct records_args *args = args_in;
    struct hf_records *records;

    TRY(hf__bind_records(s, bind, args->table, false, &records));
    TRY(hf_records_mark_tx(s, records, args->account, args->run_time, &action));
    return hf__bind_actions(s, &action, 1, result_out);
}

BIND_FUNCTION(records_reset)
{
    struct records_args *args = args_in;
    struct hf_records *records;

    (void)result_out;
    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_reset(s, records, args->account, args->run_time);
}

BIND_FUNCTION(records_delete)
{
    struct records_args *args = args_in;
    struct hf_records *records;

    (void)result_out;
    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_delete(s, records, args->account, args->run_time);
}

/* ---- lists ---------------------------------------------------------------------------------- */

BIND_FUNCTION(records_list)
{
    struct records_args *args = args_in;
    struct hf_records *records;

    args->o.size = sizeof(args->o);
    if (!args->o.limit)
        args->o.limit = 100;
    if (!args->state == !args->account.ptr)
        return hf_scope_fail(s, HF_INVALID, "records.list: give \"state\" or \"account\"");
    TRY(hf__bind_records(s, bind, args->table, false, &records));
    switch (args->state) {
    case HF_RECORD_UNPROCESSED:
        return hf_records_unprocessed(s, records, &args->o, result_out);
    case HF_RECORD_PROCESSED:
        return hf_records_processed(s, records, &args->o, result_out);
    case HF_RECORD_FAILED:
        return hf_records_failed(s, records, &args->o, result_out);
    }
    return hf_records_by_account(s, records, args->account, &args->o, result_out);
}

BIND_FUNCTION(records_count)
{
    struct records_count_result *result = result_out;
    struct records_args *args = args_in;
    struct hf_records *records;

    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_count(s, records, args->state, &result->count);
}

BIND_FUNCTION(records_retry_failed)
{
    struct records_count_result *result = result_out;
    struct records_args *args = args_in;
    struct hf_records *records;

    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_retry_failed(s, records, args->limit, &result->count);
}

BIND_FUNCTION(records_adopt)
{
    struct records_count_result *result = result_out;
    struct records_args *args = args_in;
    struct hf_records *records;

    TRY(hf__bind_records(s, bind, args->table, false, &records));
    return hf_records_adopt(s, records, &result->count);
}
