/*
 * engine/statement/statement_batch.c: BatchExecuteStatement: up to 25 statements, all reads or all
 * writes, each of one item that its whole key names. Each is independent: the error of one is in
 * its place of the answer, and the others are executed.
 */
#include "engine/item/capacity.h"
#include "engine/operations.h"
#include "engine/read/read.h"
#include "engine/statement/statement.h"
#include "engine/write/write.h"
#include "ops/prepare.h"

struct batch {
    struct engine *e;
    const struct hf_batch_execute_statement *request;
    struct member *members;
    struct hf_batch_statement_response *responses;
    struct hf_capacity *capacity; /* one per table, in the order of their first mention */
    size_t capacity_len;
};

/* One statement of the batch, as far as it could be read. */
struct member {
    struct statement statement;
    struct statement_target target;
    struct statement_found found;
    struct hf_item key;
    bool ready; /* nothing was wrong with it yet */
};

/* ---- errors --------------------------------------------------------------------------------- */

/* The code of a status in a batch; absent for errors that fail the whole batch. */
static struct hf_str code_of(enum hf_status status)
{
    switch (status) {
    case HF_INVALID:
        return HF_STR("ValidationError");
    case HF_NOT_FOUND:
        return HF_STR("ResourceNotFound");
    case HF_CONDITION:
        return HF_STR("ConditionalCheckFailed");
    case HF_DUPLICATE:
        return HF_STR("DuplicateItem");
    case HF_DENIED:
        return HF_STR("AccessDenied");
    default:
        return hf_str_of(NULL, 0);
    }
}

/* The failure of one statement becomes its answer; other failures are those of the call. */
static enum hf_status set_member_error(struct hf_scope *s, struct batch *b, size_t at,
                                       enum hf_status status)
{
    struct hf_statement_error *error;

    if (status == HF_OK)
        return HF_OK;
    if (!code_of(status).ptr)
        return status;
    assert(at < b->request->statements_len);
    error = hf__scope_array(s, 1, sizeof(*error));
    if (!error)
        return hf__fail_nomem(s);
    *error =
        (struct hf_statement_error){.code = code_of(status), .message = hf_scope_error(s)->message};
    b->responses[at].error = error;
    b->members[at].ready = false;
    return HF_OK;
}

/* ---- reading the statements ----------------------------------------------------------------- */

/* A SELECT names one item by its key and nothing else. */
static enum hf_status read_key(struct hf_scope *s, const struct statement *statement,
                               const struct statement_target *target, struct statement_found *found)
{
    const struct statement_key *key = target->index ? &target->index_key : &target->key;
    struct statement_span *spans;
    size_t len;

    if (target->many)
        return hf__fail(s, HF_INVALID,
                        "PartiQL statements cannot be executed on tables with multi-attribute HASH "
                        "keys or multi-attribute RANGE keys.");
    TRY(hf__partiql_spans(s, statement, key, &spans, &len));
    TRY(hf__partiql_find_key(s, statement, &target->key, true, found));
    if (target->index || !found->whole || found->more)
        return hf__fail(s, HF_INVALID,
                        "Select statements within BatchExecuteStatement must specify the primary "
                        "key in the where clause.");
    return HF_OK;
}

static enum hf_status prepare_member(struct hf_scope *s, struct batch *b, size_t at)
{
    const struct hf_batch_statement *request = &b->request->statements[at];
    struct member *member = &b->members[at];

    TRY(hf__prepare_parameters(s, request->parameters, request->parameters_len));
    TRY(hf__prepare_statement(s, request->statement, request->parameters, request->parameters_len,
                              &member->statement));
    if (member->statement.kind == STATEMENT_EXISTS)
        return hf__fail(s, HF_INVALID,
                        "EXISTS can only be used in ExecuteTransaction write requests.");
    member->ready = true;
    TRY(hf__statement_target(s, b->e, &member->statement, &member->target));
    if (member->statement.kind == STATEMENT_SELECT)
        TRY(read_key(s, &member->statement, &member->target, &member->found));
    else
        TRY(hf__statement_find_item(s, &member->statement, &member->target, &member->found));
    if (member->statement.kind == STATEMENT_INSERT)
        member->key = member->statement.item;
    else
        member->key = hf__statement_key_item(s, &member->target.key, &member->found);
    return hf_item_check(s, member->key);
}

/* Reads and writes do not mix; a statement that could not be read is neither. */
static enum hf_status check_mix(struct hf_scope *s, const struct batch *b, const bool *parsed)
{
    bool reads = false;
    bool writes = false;

    for (size_t i = 0; i < b->request->statements_len; i++) {
        if (!parsed[i])
            continue;
        reads = reads || b->members[i].statement.kind == STATEMENT_SELECT;
        writes = writes || b->members[i].statement.kind != STATEMENT_SELECT;
    }
    if (reads && writes)
        return hf__fail(s, HF_INVALID,
                        "Read and write requests together in the same batch is not supported.");
    return HF_OK;
}

static bool same_attr(const struct member *a, const struct member *b,
                      const struct statement_key_attr *attr)
{
    struct hf_value x;
    struct hf_value y;

    if (!attr->name.ptr)
        return true;
    x = hf_item_get(a->key, attr->name);
    y = hf_item_get(b->key, attr->name);
    return x.ptr && y.ptr && hf_value_equal(x, y);
}

static enum hf_status check_repeats(struct hf_scope *s, const struct batch *b)
{
    for (size_t i = 0; i < b->request->statements_len; i++)
        for (size_t j = 0; j < i; j++) {
            const struct member *one = &b->members[i];
            const struct member *two = &b->members[j];

            if (one->ready && two->ready &&
                hf_str_equal(hf__ops_table_name(one->statement.table),
                             hf__ops_table_name(two->statement.table)) &&
                same_attr(one, two, &one->target.key.hash) &&
                same_attr(one, two, &one->target.key.range))
                return hf__fail(s, HF_INVALID, "Provided list of item keys contains duplicates");
        }
    return HF_OK;
}

static enum hf_status prepare_all(struct hf_scope *s, struct batch *b)
{
    size_t len = b->request->statements_len;
    bool *parsed = hf__scope_array(s, len, sizeof(*parsed));

    if (!parsed)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        enum hf_status status = prepare_member(s, b, i);

        parsed[i] = b->members[i].ready;
        TRY(set_member_error(s, b, i, status));
    }
    TRY(check_mix(s, b, parsed));
    return check_repeats(s, b);
}

/* ---- carrying them out ---------------------------------------------------------------------- */

static enum hf_status add_capacity(struct hf_scope *s, struct batch *b,
                                   const struct hf_capacity *more)
{
    if (!more)
        return HF_OK;
    for (size_t i = 0; i < b->capacity_len; i++)
        if (hf_str_equal(b->capacity[i].table, more->table))
            return hf__capacity_add(s, &b->capacity[i], more);
    assert(b->capacity_len < b->request->statements_len);
    b->capacity[b->capacity_len++] = *more;
    return HF_OK;
}

static enum hf_status read_member(struct hf_scope *s, struct batch *b, size_t at)
{
    const struct member *member = &b->members[at];
    const struct prepared_read read = {
        .table = member->statement.table,
        .projection = member->statement.columns,
        .consistent = b->request->statements[at].consistent == HF_YES,
        .return_capacity = b->request->return_capacity,
    };
    struct hf_get_item_result got = {.item = {NULL, 0}};

    TRY(hf__get_one(s, b->e, member->key, &read, &got));
    b->responses[at].item = got.item;
    return add_capacity(s, b, got.capacity);
}

static enum hf_status write_member(struct hf_scope *s, struct batch *b, size_t at)
{
    const struct member *member = &b->members[at];
    const struct statement_wishes wishes = {.capacity = b->request->return_capacity};
    struct write_answer answer = {.attributes = {NULL, 0}};

    TRY(hf__statement_change(s, b->e, &member->statement, &member->target, &member->found, &wishes,
                             &answer));
    b->responses[at].item = answer.attributes;
    return add_capacity(s, b, answer.capacity);
}

enum hf_status hf__engine_batch_execute_statement(struct hf_scope *s, struct engine *e,
                                                  const struct hf_batch_execute_statement *request,
                                                  struct hf_batch_execute_statement_result *result)
{
    struct batch b = {.e = e, .request = request};
    size_t len = request->statements_len;
    bool written = false;

    TRY(hf__prepare_plain(s, HF_OP_BATCH_EXECUTE_STATEMENT, request));
    b.members = hf__scope_array(s, len, sizeof(*b.members));
    b.responses = hf__scope_array(s, len, sizeof(*b.responses));
    b.capacity = hf__scope_array(s, len, sizeof(*b.capacity));
    if (!b.members || !b.responses || !b.capacity)
        return hf__fail_nomem(s);
    TRY(prepare_all(s, &b));
    for (size_t i = 0; i < len; i++) {
        bool read = b.members[i].statement.kind == STATEMENT_SELECT;
        enum hf_status status;

        if (!b.members[i].ready)
            continue;
        b.responses[i].table = hf_scope_copy(s, hf__ops_table_name(b.members[i].statement.table));
        status = set_member_error(s, &b, i, read ? read_member(s, &b, i) : write_member(s, &b, i));
        if (status != HF_OK) { /* the batch ends here; earlier statements are executed */
            if (written)
                hf__scope_error_edit(s)->may_have_happened = true;
            return status;
        }
        written = written || (!read && !b.responses[i].error);
    }
    hf__scope_error_clear(s);
    result->responses = b.responses;
    result->responses_len = len;
    result->capacity = b.capacity_len ? b.capacity : NULL;
    result->capacity_len = b.capacity_len;
    return HF_OK;
}
