/*
 * server/console/console_explain.c: what a statement or query will read, without reading it.
 *
 *     POST /console/api/explain
 *         {"statement": "SELECT ...", "parameters": [{"S": "ann"}]}
 *         {"query": {...}} or {"scan": {...}}, as DynamoDB has them
 *
 *     -> {"operation", "table", "index", "reads", "key_condition", "filter", "full_scan",
 *         "items", "bytes", "note"}
 *
 * Statements are read by the code that executes them (expr/partiql.h), and split into reads by the
 * key that DescribeTable says; so this holds for any database. `items` and `bytes` are of the table
 * or index, as DescribeTable has them: what a full scan reads.
 */
#include "server/console/console.h"

#include "base/json.h"
#include "expr/partiql.h"
#include "model/value.h"
#include "ops/fields.h"
#include "server/private.h"
#include "wire/wire.h"

enum { EXPLAIN_LEVELS = 128, READS_SHOWN = 5 };

/* What is known of the plan; absent and zero members are not written. */
struct plan {
    const char *operation;
    struct hf_str table;
    struct hf_str index;
    size_t reads;
    struct hf__buf key; /* the key condition */
    struct hf_str filter;
    bool full_scan;
    bool writes;
    int64_t items;
    int64_t bytes;
    const char *note;
};

/* ---- the table ------------------------------------------------------------------------------ */

static enum hf_type type_of(const struct hf_table_description *table, struct hf_str name)
{
    for (size_t i = 0; i < table->attributes_len; i++) {
        if (hf_str_equal(table->attributes[i].name, name))
            return table->attributes[i].type == HF_SCALAR_N   ? HF_TYPE_N
                   : table->attributes[i].type == HF_SCALAR_B ? HF_TYPE_B
                                                              : HF_TYPE_S;
    }
    return HF_TYPE_S;
}

static struct statement_key key_of(const struct hf_table_description *table,
                                   const struct hf_key_element *elements, size_t len)
{
    struct statement_key key = {.hash = {.type = HF_TYPE_S}};

    for (size_t i = len; i-- > 0;) { /* of several the first */
        struct statement_key_attr attr = {elements[i].name, type_of(table, elements[i].name)};

        *(elements[i].type == HF_KEY_HASH ? &key.hash : &key.range) = attr;
    }
    return key;
}

/* The key of the table or the index of that name. False: there is no such index. */
static bool find_key(const struct hf_table_description *table, struct hf_str index,
                     struct plan *plan, struct statement_key *key)
{
    plan->items = table->item_count;
    plan->bytes = table->size_bytes;
    *key = key_of(table, table->key_schema, table->key_schema_len);
    if (!index.ptr)
        return true;
    for (int local = 0; local < 2; local++) {
        const struct hf_index_description *list =
            local ? table->local_indexes : table->global_indexes;

        for (size_t i = 0; i < (local ? table->local_indexes_len : table->global_indexes_len);
             i++) {
            if (!hf_str_equal(list[i].name, index))
                continue;
            plan->items = list[i].item_count;
            plan->bytes = list[i].size_bytes;
            *key = key_of(table, list[i].key_schema, list[i].key_schema_len);
            return true;
        }
    }
    return false;
}

static enum hf_status look_up(struct answer *answer, struct hf_str table, struct hf_str index,
                              struct plan *plan, struct statement_key *key)
{
    struct hf_scope *s = answer->context->scope;
    struct hf_describe_table_result got;

    plan->table = table;
    plan->index = index;
    TRY(hf_describe_table(s, answer->context->server->db,
                          &(struct hf_describe_table){.table = table}, &got));
    if (!got.table)
        return hf__fail(s, HF_NOT_FOUND, "table %.*s does not exist", HF_FMT(table));
    if (!find_key(got.table, index, plan, key))
        return hf__fail(s, HF_INVALID, "table %.*s has no index %.*s", HF_FMT(table),
                        HF_FMT(index));
    return HF_OK;
}

/* ---- statements ----------------------------------------------------------------------------- */

static void put_value(struct hf_scope *s, struct hf__buf *out, struct hf_value value)
{
    struct hf_str text = hf_value_str(value);
    struct hf_str number =
        text.ptr || hf_value_bytes(value).ptr ? (struct hf_str){0} : hf_value_number(s, value);

    if (text.ptr)
        hf__wire_write_str(out, text);
    else if (number.ptr)
        hf__buf_put_str(out, number);
    else
        hf__wire_write_value(out, value);
}

static void put_term(struct hf_scope *s, struct hf__buf *out, struct hf_str name,
                     const char *compare, struct hf_value value)
{
    hf__buf_format(out, "%.*s %s ", HF_FMT(name), compare);
    put_value(s, out, value);
}

static void put_span(struct hf_scope *s, struct hf__buf *out, const struct statement_key *key,
                     const struct statement_span *span)
{
    put_term(s, out, key->hash.name, "=", span->hash);
    if (span->prefix) {
        hf__buf_format(out, " AND begins_with(%.*s, ", HF_FMT(key->range.name));
        put_value(s, out, span->high);
        hf__buf_put_byte(out, ')');
        return;
    }
    if (span->low.ptr && span->high.ptr && hf_value_equal(span->low, span->high)) {
        hf__buf_put_str(out, HF_STR(" AND "));
        put_term(s, out, key->range.name, "=", span->low);
        return;
    }
    if (span->low.ptr) {
        hf__buf_put_str(out, HF_STR(" AND "));
        put_term(s, out, key->range.name, span->low_open ? ">" : ">=", span->low);
    }
    if (span->high.ptr) {
        hf__buf_put_str(out, HF_STR(" AND "));
        put_term(s, out, key->range.name, span->high_open ? "<" : "<=", span->high);
    }
}

static enum hf_status explain_select(struct hf_scope *s, const struct statement *statement,
                                     const struct statement_key *key, struct plan *plan)
{
    struct statement_found found = {.whole = false};
    struct statement_span *spans;

    TRY(hf__partiql_spans(s, statement, key, &spans, &plan->reads));
    if (statement->where)
        TRY(hf__partiql_find_key(s, statement, key, true, &found));
    for (size_t i = 0; i < plan->reads && i < READS_SHOWN; i++) {
        if (i > 0)
            hf__buf_put_str(&plan->key, HF_STR("; "));
        put_span(s, &plan->key, key, &spans[i]);
    }
    if (plan->reads > READS_SHOWN)
        hf__buf_put_str(&plan->key, HF_STR("; ..."));
    plan->full_scan = plan->reads == 0;
    plan->operation = plan->full_scan ? "Scan" : "Query";
    if (plan->full_scan && statement->where)
        plan->note = "The WHERE clause does not fix the partition key: every item is read, and "
                     "paid for, and most may be thrown away.";
    else if (plan->full_scan)
        plan->note = "Every item is read.";
    else if (found.whole && !plan->index.ptr && plan->reads == 1)
        plan->note = "One item is read by its key.";
    else if (plan->reads > 1)
        plan->note = "Several parts of partitions are read, one after the other.";
    if (statement->where && (plan->full_scan || found.more))
        plan->filter = HF_STR("the rest of the WHERE clause, after reading");
    return HF_OK;
}

static enum hf_status explain_change(struct hf_scope *s, const struct statement *statement,
                                     const struct statement_key *key, struct plan *plan)
{
    static const char *const operations[] = {[STATEMENT_INSERT] = "PutItem",
                                             [STATEMENT_UPDATE] = "UpdateItem",
                                             [STATEMENT_DELETE] = "DeleteItem",
                                             [STATEMENT_EXISTS] = "ConditionCheck"};
    struct statement_found found;

    plan->operation = operations[statement->kind];
    plan->writes = statement->kind != STATEMENT_EXISTS;
    if (statement->kind == STATEMENT_INSERT) {
        plan->note = "One item is written, if there is none with its key.";
        return HF_OK;
    }
    TRY(hf__partiql_find_key(s, statement, key, false, &found));
    if (!found.whole) {
        plan->note = "It will fail: the WHERE clause has to fix the whole key of one item.";
        return HF_OK;
    }
    put_term(s, &plan->key, key->hash.name, "=", found.hash);
    if (found.range.ptr) {
        hf__buf_put_str(&plan->key, HF_STR(" AND "));
        put_term(s, &plan->key, key->range.name, "=", found.range);
    }
    if (found.more)
        plan->filter = HF_STR("the rest of the WHERE clause, as the condition of the write");
    plan->note = "One item is read and written by its key.";
    return HF_OK;
}

static enum hf_status explain_statement(struct answer *answer,
                                        const struct hf_execute_statement *request,
                                        struct plan *plan)
{
    struct hf_scope *s = answer->context->scope;
    struct statement statement;
    struct statement_key key;

    TRY(hf__partiql_parse(s, request->statement, request->parameters, request->parameters_len,
                          &statement));
    TRY(look_up(answer, statement.table, statement.index, plan, &key));
    return statement.kind == STATEMENT_SELECT ? explain_select(s, &statement, &key, plan)
                                              : explain_change(s, &statement, &key, plan);
}

/* ---- queries -------------------------------------------------------------------------------- */

static enum hf_status explain_query(struct answer *answer, const struct hf_query *query,
                                    struct plan *plan)
{
    struct statement_key key;

    TRY(look_up(answer, query->table, query->index, plan, &key));
    plan->operation = "Query";
    plan->reads = 1;
    hf__buf_put_str(&plan->key, query->key_condition);
    plan->filter = query->filter;
    if (query->filter.ptr)
        plan->note = "Items that the filter drops are read, and paid for.";
    return HF_OK;
}

static enum hf_status explain_scan(struct answer *answer, const struct hf_scan *scan,
                                   struct plan *plan)
{
    struct statement_key key;

    TRY(look_up(answer, scan->table, scan->index, plan, &key));
    plan->operation = "Scan";
    plan->full_scan = true;
    plan->filter = scan->filter;
    plan->note = scan->filter.ptr ? "Every item is read, and paid for; the filter drops some after "
                                    "that."
                                  : "Every item is read.";
    return HF_OK;
}

/* ---- the request ---------------------------------------------------------------------------- */

struct explain_request {
    struct hf_str statement, parameters, query, scan; /* JSON */
};

static bool read_request(struct hf_bytes body, struct explain_request *request)
{
    struct json_cursor json = {.at = (const char *)body.ptr,
                               .end = (const char *)body.ptr + body.len};
    struct json_string name;

    *request = (struct explain_request){.statement = {0}};
    if (hf__json_kind(&json) != JSON_OBJECT)
        return false;
    for (bool more = hf__json_enter(&json, '}'); more; more = hf__json_more(&json, '}')) {
        struct hf_str *to;
        const char *from;

        if (!hf__json_name(&json, &name))
            return false;
        to = hf_str_equal(name.raw, HF_STR("statement"))    ? &request->statement
             : hf_str_equal(name.raw, HF_STR("parameters")) ? &request->parameters
             : hf_str_equal(name.raw, HF_STR("query"))      ? &request->query
             : hf_str_equal(name.raw, HF_STR("scan"))       ? &request->scan
                                                            : NULL;
        if (!to)
            return false;
        hf__json_spaces(&json);
        from = json.at;
        if (!hf__json_skip(&json, EXPLAIN_LEVELS))
            return false;
        *to = hf_str_of(from, (size_t)(json.at - from));
    }
    return hf__json_sound(&json) && hf__json_ended(&json) &&
           !!request->statement.ptr + !!request->query.ptr + !!request->scan.ptr == 1;
}

static enum hf_status make_plan(struct answer *answer, const struct explain_request *request,
                                struct plan *plan)
{
    struct hf_scope *s = answer->context->scope;
    struct hf_execute_statement statement = {.statement = {0}};
    struct hf_query query = {.table = {0}};
    struct hf_scan scan = {.table = {0}};
    struct hf_str json;

    if (request->statement.ptr) {
        json =
            hf_scope_format(s, "{\"Statement\":%.*s,\"Parameters\":%.*s}",
                            HF_FMT(request->statement),
                            HF_FMT(request->parameters.ptr ? request->parameters : HF_STR("null")));
        if (!json.ptr)
            return hf__fail_nomem(s);
        TRY(hf__wire_read(s, hf__op(HF_OP_EXECUTE_STATEMENT)->request, json, &statement));
        return explain_statement(answer, &statement, plan);
    }
    if (request->query.ptr) {
        TRY(hf__wire_read(s, hf__op(HF_OP_QUERY)->request, request->query, &query));
        return explain_query(answer, &query, plan);
    }
    TRY(hf__wire_read(s, hf__op(HF_OP_SCAN)->request, request->scan, &scan));
    return explain_scan(answer, &scan, plan);
}

static void put_text(struct hf__buf *out, const char *name, struct hf_str text)
{
    if (!text.ptr || text.len == 0)
        return;
    hf__buf_format(out, ",\"%s\":", name);
    hf__wire_write_str(out, text);
}

static void write_plan(struct hf__buf *out, const struct plan *plan)
{
    hf__buf_format(out, "{\"operation\":\"%s\",\"full_scan\":%s,\"writes\":%s,\"reads\":%zu",
                   plan->operation, plan->full_scan ? "true" : "false",
                   plan->writes ? "true" : "false", plan->reads);
    put_text(out, "table", plan->table);
    put_text(out, "index", plan->index);
    put_text(out, "key_condition", hf_str_of((const char *)plan->key.ptr, plan->key.len));
    put_text(out, "filter", plan->filter);
    hf__buf_format(out, ",\"items\":%lld,\"bytes\":%lld", (long long)plan->items,
                   (long long)plan->bytes);
    if (plan->note)
        put_text(out, "note", hf_str_from(plan->note));
    hf__buf_put_byte(out, '}');
}

void hf__console_explain(struct answer *answer, struct hf_bytes body)
{
    struct hf_scope *s = answer->context->scope;
    struct plan plan = {.key = {.scope = s}};
    struct explain_request request;

    if (!answer->context->worker) { /* a service may be asked about the table */
        answer->conn->for_worker = true;
        return;
    }
    if (!read_request(body, &request)) {
        hf__console_error(answer, 400, HF_INVALID,
                          HF_STR("expected {\"statement\": \"...\", \"parameters\": [...]}, "
                                 "{\"query\": {...}} or {\"scan\": {...}}"));
        return;
    }
    if (make_plan(answer, &request, &plan) != HF_OK) {
        const struct hf_error *error = hf_scope_error(s);

        hf__console_error(answer, hf__call_status(error->status), error->status, error->message);
        return;
    }
    write_plan(hf__answer_begin(answer), &plan);
    hf__answer_end(answer, 200);
}
