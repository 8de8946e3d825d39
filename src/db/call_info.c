/*
 * db/call_info.c: what can be said of a call from its structs: tables, counts and units.
 *
 * Where one rule fits all operations the field tables are read; where they differ there is a switch
 * whose default is "nothing to say", so that a new operation is no mistake here.
 */
#include "db/call_info.h"

/* ---- tables --------------------------------------------------------------------------------- */

static struct hf_str table_of_write(const struct hf_transact_write *w)
{
    return w->put      ? w->put->table
           : w->update ? w->update->table
           : w->del    ? w->del->table
           : w->check  ? w->check->table
                       : hf_str_of(NULL, 0);
}

/* Of operations with one table. */
static struct hf_str only_table(enum hf_op op, const void *request)
{
    const struct fields *fields = hf__op(op)->request;

    for (size_t i = 0; i < fields->len; i++) {
        const struct field *field = &fields->list[i];

        if (field->kind == FIELD_STR && strcmp(field->name, "TableName") == 0)
            return *(const struct hf_str *)(const void *)((const char *)request + field->at);
    }
    return hf_str_of(NULL, 0);
}

/* The nth table that the request names, as often as it names it; false behind the last. */
static bool nth_table(enum hf_op op, const void *request, size_t n, struct hf_str *table)
{
    const struct hf_batch_write_item *writes = request;
    const struct hf_batch_get_item *gets = request;
    const struct hf_transact_write_items *write = request;
    const struct hf_transact_get_items *get = request;

    *table = hf_str_of(NULL, 0);
    switch (op) {
    case HF_OP_BATCH_WRITE_ITEM:
        if (n >= writes->tables_len)
            return false;
        *table = writes->tables[n].table;
        return true;
    case HF_OP_BATCH_GET_ITEM:
        if (n >= gets->tables_len)
            return false;
        *table = gets->tables[n].table;
        return true;
    case HF_OP_TRANSACT_WRITE_ITEMS:
        if (n >= write->actions_len)
            return false;
        *table = table_of_write(&write->actions[n]);
        return true;
    case HF_OP_TRANSACT_GET_ITEMS:
        if (n >= get->actions_len)
            return false;
        if (get->actions[n].get)
            *table = get->actions[n].get->table;
        return true;
    default:
        if (n > 0)
            return false;
        *table = only_table(op, request);
        return true;
    }
}

struct hf_str hf__db_call_nth_table(enum hf_op op, const void *request, size_t n)
{
    struct hf_str table;

    nth_table(op, request, n, &table);
    return table;
}

struct hf_str hf__db_call_table(enum hf_op op, const void *request)
{
    return hf__db_call_nth_table(op, request, 0);
}

bool hf__db_call_names(enum hf_op op, const void *request, struct hf_str table)
{
    struct hf_str named;

    for (size_t i = 0; nth_table(op, request, i, &named); i++)
        if (named.ptr && hf_str_equal(named, table))
            return true;
    return false;
}

/* ---- counts --------------------------------------------------------------------------------- */

size_t hf__db_call_sent(enum hf_op op, const void *request)
{
    const struct hf_batch_write_item *writes = request;
    const struct hf_batch_get_item *gets = request;
    size_t sum = 0;

    switch (op) {
    case HF_OP_PUT_ITEM:
    case HF_OP_UPDATE_ITEM:
    case HF_OP_DELETE_ITEM:
    case HF_OP_GET_ITEM:
    case HF_OP_EXECUTE_STATEMENT:
        return 1;
    case HF_OP_BATCH_WRITE_ITEM:
        for (size_t i = 0; i < writes->tables_len; i++)
            sum += writes->tables[i].writes_len;
        return sum;
    case HF_OP_BATCH_GET_ITEM:
        for (size_t i = 0; i < gets->tables_len; i++)
            sum += gets->tables[i].keys_len;
        return sum;
    case HF_OP_TRANSACT_WRITE_ITEMS:
        return ((const struct hf_transact_write_items *)request)->actions_len;
    case HF_OP_TRANSACT_GET_ITEMS:
        return ((const struct hf_transact_get_items *)request)->actions_len;
    case HF_OP_BATCH_EXECUTE_STATEMENT:
        return ((const struct hf_batch_execute_statement *)request)->statements_len;
    case HF_OP_EXECUTE_TRANSACTION:
        return ((const struct hf_execute_transaction *)request)->statements_len;
    default:
        return 0;
    }
}

static size_t count_present(const struct hf_item_response *items, size_t len)
{
    size_t sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += items[i].item.ptr != NULL;
    return sum;
}

static size_t count_answered(const struct hf_batch_execute_statement_result *r)
{
    size_t sum = 0;

    for (size_t i = 0; i < r->responses_len; i++)
        sum += r->responses[i].item.ptr != NULL;
    return sum;
}

static size_t count_gotten(const struct hf_batch_get_item_result *r)
{
    size_t sum = 0;

    for (size_t i = 0; i < r->tables_len; i++)
        sum += r->tables[i].items_len;
    return sum;
}

static struct hf_str bytes_of(struct hf_item key)
{
    return hf_str_of((const char *)key.ptr, key.len);
}

/* Equal keys have equal bytes. */
static bool same_place(struct hf_str from, struct hf_str to)
{
    return from.len && hf_str_equal(from, to);
}

#define START(name, member) (((const struct hf_##name *)request)->member)
#define LAST(name, member) (((const struct hf_##name##_result *)response)->member)

bool hf__db_call_stands_still(enum hf_op op, const void *request, const void *response)
{
    switch (op) {
    case HF_OP_QUERY:
        return same_place(bytes_of(START(query, start)), bytes_of(LAST(query, last)));
    case HF_OP_SCAN:
        return same_place(bytes_of(START(scan, start)), bytes_of(LAST(scan, last)));
    case HF_OP_EXECUTE_STATEMENT:
        return same_place(START(execute_statement, next_token),
                          LAST(execute_statement, next_token));
    case HF_OP_LIST_TABLES:
        return same_place(START(list_tables, start), LAST(list_tables, last));
    case HF_OP_LIST_TAGS_OF_RESOURCE:
        return same_place(START(list_tags_of_resource, next_token),
                          LAST(list_tags_of_resource, next_token));
    case HF_OP_LIST_BACKUPS:
        return same_place(START(list_backups, start_arn), LAST(list_backups, last_arn));
    case HF_OP_LIST_STREAMS:
        return same_place(START(list_streams, start_arn), LAST(list_streams, last_arn));
    case HF_OP_DESCRIBE_STREAM:
        return same_place(START(describe_stream, start_shard),
                          LAST(describe_stream, stream)->last_shard);
    default:
        return false;
    }
}

#undef START
#undef LAST

size_t hf__db_call_returned(enum hf_op op, const void *response)
{
    const struct hf_transact_get_items_result *get = response;
    const struct hf_execute_transaction_result *statements = response;

    switch (op) {
    case HF_OP_GET_ITEM:
        return ((const struct hf_get_item_result *)response)->item.ptr != NULL;
    case HF_OP_QUERY:
        return ((const struct hf_query_result *)response)->items_len;
    case HF_OP_SCAN:
        return ((const struct hf_scan_result *)response)->items_len;
    case HF_OP_EXECUTE_STATEMENT:
        return ((const struct hf_execute_statement_result *)response)->items_len;
    case HF_OP_GET_RECORDS:
        return ((const struct hf_get_records_result *)response)->records_len;
    case HF_OP_BATCH_GET_ITEM:
        return count_gotten(response);
    case HF_OP_BATCH_EXECUTE_STATEMENT:
        return count_answered(response);
    case HF_OP_TRANSACT_GET_ITEMS:
        return count_present(get->items, get->items_len);
    case HF_OP_EXECUTE_TRANSACTION:
        return count_present(statements->items, statements->items_len);
    default:
        return 0;
    }
}

/* ---- units ---------------------------------------------------------------------------------- */

/* The capacities of an answer; a switch and no search, as it is asked after every call. */
static const struct hf_capacity *capacities_of(enum hf_op op, const void *response, size_t *len)
{
#define ONE(constant, type)                                                                        \
    case HF_OP_##constant:                                                                         \
        *len = ((const struct hf_##type##_result *)response)->capacity != NULL;                    \
        return ((const struct hf_##type##_result *)response)->capacity
#define LIST(constant, type)                                                                       \
    case HF_OP_##constant:                                                                         \
        *len = ((const struct hf_##type##_result *)response)->capacity_len;                        \
        return ((const struct hf_##type##_result *)response)->capacity

    switch (op) {
        ONE(PUT_ITEM, put_item);
        ONE(GET_ITEM, get_item);
        ONE(UPDATE_ITEM, update_item);
        ONE(DELETE_ITEM, delete_item);
        ONE(QUERY, query);
        ONE(SCAN, scan);
        ONE(EXECUTE_STATEMENT, execute_statement);
        LIST(BATCH_GET_ITEM, batch_get_item);
        LIST(BATCH_WRITE_ITEM, batch_write_item);
        LIST(TRANSACT_GET_ITEMS, transact_get_items);
        LIST(TRANSACT_WRITE_ITEMS, transact_write_items);
        LIST(BATCH_EXECUTE_STATEMENT, batch_execute_statement);
        LIST(EXECUTE_TRANSACTION, execute_transaction);
    default:
        *len = 0;
        return NULL;
    }
#undef ONE
#undef LIST
}

static bool is_select(struct hf_str statement)
{
    enum { WORD_LEN = 6 };

    while (statement.len && char_in(statement.ptr[0], " \t\r\n")) {
        statement.ptr++;
        statement.len--;
    }
    return statement.len >= WORD_LEN &&
           str_is_any_case(hf_str_of(statement.ptr, WORD_LEN), "select");
}

/* A batch or transaction of statements is of reads or of writes, so the first one tells. */
static bool is_read(enum hf_op op, const void *request)
{
    const struct hf_batch_execute_statement *batch = request;
    const struct hf_execute_transaction *transaction = request;

    switch (op) {
    case HF_OP_EXECUTE_STATEMENT:
        return is_select(((const struct hf_execute_statement *)request)->statement);
    case HF_OP_BATCH_EXECUTE_STATEMENT:
        return batch->statements_len && is_select(batch->statements[0].statement);
    case HF_OP_EXECUTE_TRANSACTION:
        return transaction->statements_len && is_select(transaction->statements[0].statement);
    default:
        return hf__op(op)->access == OP_READ;
    }
}

/* What a table's part reads and what it writes is told apart in transactions only. */
static void add_units(struct call_units *units, const struct hf_capacity *c, bool reading)
{
    if (c->read_units > 0 || c->write_units > 0) {
        units->read += c->read_units;
        units->write += c->write_units;
    } else if (reading) {
        units->read += c->units;
    } else {
        units->write += c->units;
    }
}

struct call_units hf__db_call_units(enum hf_op op, const void *request, const void *response)
{
    struct call_units units = {0, 0};
    size_t len;
    const struct hf_capacity *list = capacities_of(op, response, &len);

    for (size_t i = 0; i < len; i++)
        add_units(&units, &list[i], is_read(op, request));
    return units;
}
