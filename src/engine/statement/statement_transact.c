/*
 * engine/statement/statement_transact.c: ExecuteTransaction: up to a hundred statements, all reads
 * or all writes, that happen all or not at all. EXISTS counts as a write: it is a check.
 *
 * Statements are read in their order, and the first that is wrong in itself decides for all. A
 * table that is not there, and a key that does not fit its schema, are reasons to cancel; unlike
 * those of TransactWriteItems they are given for every statement that has one. The rest is what
 * TransactWriteItems and TransactGetItems do. Client tokens are kept apart from theirs.
 */
#include "engine/operations.h"
#include "engine/read/read.h"
#include "engine/statement/statement.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/write/token.h"
#include "engine/write/write.h"
#include "model/value.h"
#include "ops/prepare.h"

struct transact {
    struct engine *e;
    const struct hf_execute_transaction *request;
    size_t len;
    struct statement *statements;
    struct statement_target *targets;
    struct prepared_action *actions; /* of writes */
    struct prepared_get *gets;       /* of reads */
    struct hf_cancel_reason *reasons;
    bool reads;
    bool canceled;
};

/* ---- errors --------------------------------------------------------------------------------- */

/* An error of a statement itself names its place in the request. */
static enum hf_status fail_in(struct hf_scope *s, size_t at, enum hf_status status)
{
    struct hf_str message = hf_scope_error(s)->message;

    if (status != HF_INVALID)
        return status;
    return hf__fail(s, HF_INVALID, "Validation failed in TransactStatements[%zu]: %.*s", at,
                    HF_FMT(message));
}

static void cancel_for(struct transact *t, size_t at, struct hf_str code, struct hf_str message)
{
    assert(at < t->len);
    t->reasons[at] = (struct hf_cancel_reason){.code = code, .message = message};
    t->canceled = true;
}

/* ---- reading the statements ----------------------------------------------------------------- */

/* The size of a statement: the item of an INSERT, else the values of its parameters. */
static size_t size_of(const struct statement *statement)
{
    size_t size = 0;

    if (statement->kind == STATEMENT_INSERT)
        return hf_item_size(statement->item);
    for (size_t i = 0; i < statement->params_len; i++)
        size += hf__value_size(statement->params[i]);
    return size;
}

static enum hf_status parse_all(struct hf_scope *s, struct transact *t)
{
    bool writes = false;
    size_t size = 0;

    for (size_t i = 0; i < t->len; i++)
        TRY(hf__prepare_parameters(s, t->request->statements[i].parameters,
                                   t->request->statements[i].parameters_len));
    for (size_t i = 0; i < t->len; i++) {
        const struct hf_transact_statement *request = &t->request->statements[i];
        enum hf_status status = hf__prepare_statement(s, request->statement, request->parameters,
                                                      request->parameters_len, &t->statements[i]);

        if (status != HF_OK)
            return fail_in(s, i, status);
        t->reads = t->reads || t->statements[i].kind == STATEMENT_SELECT;
        writes = writes || t->statements[i].kind != STATEMENT_SELECT;
        size += size_of(&t->statements[i]);
    }
    if (size > TRANSACTION_BYTES_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   hf_error_limit_of("HF_TX_BYTES_MAX", TRANSACTION_BYTES_MAX,
                                                     size),
                                   "Transaction size cannot exceed 4 MB");
    if (t->reads && writes)
        return hf__fail(s, HF_INVALID,
                        "ExecuteTransaction API does not support both read and write operations in "
                        "the same request.");
    return HF_OK;
}

static enum hf_status check_shape(struct hf_scope *s, const struct statement *statement)
{
    if (statement->returns != RETURNS_NONE)
        return hf__fail(s, HF_INVALID, "RETURNING clause is not supported in ExecuteTransaction.");
    if (!statement->index.ptr)
        return HF_OK;
    if (statement->kind == STATEMENT_SELECT)
        return hf__fail(s, HF_INVALID, "Reads on indices are not supported within transactions.");
    return hf__fail(s, HF_INVALID, "Operations on indices are not supported in transactions");
}

/* A SELECT names one item and says nothing else. */
static enum hf_status read_get(struct hf_scope *s, struct transact *t, size_t at)
{
    const struct statement *statement = &t->statements[at];
    const struct statement_key *key = &t->targets[at].key;
    struct statement_found found;
    struct statement_span *spans;
    size_t len;

    TRY(hf__partiql_find_key(s, statement, key, true, &found));
    if (!found.whole || found.more) {
        TRY(hf__partiql_spans(s, statement, key, &spans, &len));
        return hf__fail(s, HF_INVALID,
                        "Select statements within ExecuteTransaction must specify the primary key "
                        "in the where clause.");
    }
    t->gets[at] = (struct prepared_get){
        .read = {.table = statement->table,
                 .projection = statement->columns,
                 .consistent = true,
                 .return_capacity = t->request->return_capacity},
        .key = hf__statement_key_item(s, key, &found),
    };
    return hf_item_check(s, t->gets[at].key);
}

static enum hf_status read_write(struct hf_scope *s, struct transact *t, size_t at)
{
    const struct statement *statement = &t->statements[at];
    const struct statement_wishes wishes = {
        .capacity = t->request->return_capacity,
        .old_on_failure = t->request->statements[at].returns_on_failure == HF_ON_FAILURE_ALL_OLD,
    };
    struct statement_found found = {.whole = true};

    if (statement->kind != STATEMENT_INSERT)
        TRY(hf__partiql_find_key(s, statement, &t->targets[at].key, false, &found));
    if (statement->kind == STATEMENT_EXISTS && (!found.whole || !found.more))
        return hf__fail(s, HF_INVALID,
                        "EXISTS() must contain a single item read with additional condition");
    if (statement->kind != STATEMENT_EXISTS && (!found.whole || found.twice.ptr))
        cancel_for(t, at, HF_STR("ValidationError"),
                   HF_STR("The provided key element does not match the schema"));
    return hf__statement_write(s, statement, &t->targets[at], &found, &wishes, &t->actions[at].kind,
                               &t->actions[at].write);
}

/* Find the table of one statement, and check the statement against its schema. */
static enum hf_status place_action(struct hf_scope *s, struct transact *t, size_t at)
{
    struct statement bare = t->statements[at];
    enum hf_status status;

    bare.index = hf_str_of(NULL, 0); /* whether it exists does not matter: it is refused */
    status = hf__statement_target(s, t->e, &bare, &t->targets[at]);
    if (status == HF_NOT_FOUND) {
        cancel_for(t, at, HF_STR("ResourceNotFound"), hf_scope_error(s)->message);
        return HF_OK;
    }
    if (status == HF_OK)
        status = check_shape(s, &t->statements[at]);
    if (status == HF_OK)
        status = t->reads ? read_get(s, t, at) : read_write(s, t, at);
    return status == HF_OK ? HF_OK : fail_in(s, at, status);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static enum hf_status check_key(struct hf_scope *s, struct transact *t, size_t at)
{
    struct table *table;

    TRY(hf__catalog_item_table(s, t->e, t->statements[at].table, &table));
    if (t->reads)
        return hf__schema_check_key(s, table, t->gets[at].key);
    if (t->actions[at].kind == WRITE_PUT)
        return hf__schema_check_put(s, table, t->actions[at].write.item);
    return hf__schema_check_key(s, table, t->actions[at].write.key);
}

/* Every key that does not fit is a reason of its own. */
static enum hf_status check_keys(struct hf_scope *s, struct transact *t)
{
    enum hf_status status = HF_OK;

    pthread_rwlock_rdlock(&t->e->schema);
    for (size_t i = 0; i < t->len && status == HF_OK; i++) {
        if (!hf_str_equal(t->reasons[i].code, HF_STR("None")))
            continue;
        status = check_key(s, t, i);
        if (status == HF_INVALID) {
            cancel_for(t, i, HF_STR("ValidationError"), hf_scope_error(s)->message);
            status = HF_OK;
        }
    }
    pthread_rwlock_unlock(&t->e->schema);
    return status;
}

/* ---- the operation -------------------------------------------------------------------------- */

static enum hf_status run_writes(struct hf_scope *s, struct transact *t,
                                 struct hf_execute_transaction_result *result)
{
    struct hf_transact_write_items_result written = {.capacity = NULL};
    struct transact_request run = {.actions = t->actions,
                                   .len = t->len,
                                   .return_capacity = t->request->return_capacity,
                                   .statements = true};

    if (t->request->token.ptr) {
        run.token = hf__token_of_statements(s, t->request->token);
        if (!run.token.ptr)
            return hf__fail_nomem(s);
        TRY(hf__token_digest_statements(s, t->request, &run.digest));
    }
    result->items = hf__scope_array(s, 1, sizeof(*result->items));
    if (!result->items)
        return hf__fail_nomem(s);
    TRY(hf__transact_write(s, t->e, &run, &written));
    result->capacity = written.capacity;
    result->capacity_len = written.capacity_len;
    return HF_OK;
}

static enum hf_status run_reads(struct hf_scope *s, struct transact *t,
                                struct hf_execute_transaction_result *result)
{
    struct hf_transact_get_items_result got = {.items = NULL};

    TRY(hf__transact_get(s, t->e, t->gets, t->len, t->request->return_capacity, &got));
    *result = (struct hf_execute_transaction_result){.items = got.items,
                                                     .items_len = got.items_len,
                                                     .capacity = got.capacity,
                                                     .capacity_len = got.capacity_len};
    return HF_OK;
}

enum hf_status hf__engine_execute_transaction(struct hf_scope *s, struct engine *e,
                                              const struct hf_execute_transaction *request,
                                              struct hf_execute_transaction_result *result)
{
    struct transact t = {.e = e, .request = request, .len = request->statements_len};

    TRY(hf__prepare_plain(s, HF_OP_EXECUTE_TRANSACTION, request));
    t.statements = hf__scope_array(s, t.len, sizeof(*t.statements));
    t.targets = hf__scope_array(s, t.len, sizeof(*t.targets));
    t.actions = hf__scope_array(s, t.len, sizeof(*t.actions));
    t.gets = hf__scope_array(s, t.len, sizeof(*t.gets));
    t.reasons = hf__scope_array(s, t.len, sizeof(*t.reasons));
    if (!t.statements || !t.targets || !t.actions || !t.gets || !t.reasons)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < t.len; i++)
        t.reasons[i].code = HF_STR("None");
    TRY(parse_all(s, &t));
    for (size_t i = 0; i < t.len; i++)
        TRY(place_action(s, &t, i));
    TRY(check_keys(s, &t));
    if (t.canceled)
        return hf__cancel(s, t.reasons, t.len);
    return t.reads ? run_reads(s, &t, result) : run_writes(s, &t, result);
}
