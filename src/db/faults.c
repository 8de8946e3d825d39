/*
 * db/faults.c: a database around a database that fails on purpose.
 *
 * Every call draws one fault or none: the list is gone through in order, under a mutex, and the
 * first that matches and strikes decides. A latency does not decide: it is added up, and the search
 * goes on.
 *
 *  (1) A fault that says "nothing is done" strikes before the inner database is called; one that
 *      says "it is done" only after that has succeeded. Which of the two a lost request or answer
 *      is, the error does not tell.
 *  (2) A fault that a call cannot have (a conflict of a read, an unprocessed part of a PutItem)
 *      does not match it.
 *  (3) The inner database never sees what is handed back as unprocessed.
 */
#include <holdfast/faults.h>

#include <pthread.h>

#include "base/assert_held.h"
#include "db/call_info.h"
#include "ops/prepare.h"

enum { LATENCY_MAX_MS = 600000 };

struct rule {
    struct hf_fault fault;
    uint32_t skipped;
    uint64_t struck;
};

struct faulty {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    pthread_mutex_t lock; /* guards all below */
    struct hf_scope *memory;
    struct rule rules[HF_FAULTS_MAX];
    size_t len;
};

static const struct db_calls faulty_calls;

static struct faulty *faulty_of(struct hf_db *db)
{
    return db && db->calls == &faulty_calls ? (struct faulty *)(void *)db : NULL;
}

/* ---- which calls ---------------------------------------------------------------------------- */

/* (2) */
static bool can_have(enum hf_op op, enum hf_fault_kind kind)
{
    switch (kind) {
    case HF_FAULT_CONFLICT:
        return op == HF_OP_PUT_ITEM || op == HF_OP_UPDATE_ITEM || op == HF_OP_DELETE_ITEM ||
               op == HF_OP_TRANSACT_WRITE_ITEMS || op == HF_OP_TRANSACT_GET_ITEMS;
    case HF_FAULT_UNPROCESSED:
        return op == HF_OP_BATCH_WRITE_ITEM || op == HF_OP_BATCH_GET_ITEM;
    default:
        return true;
    }
}

static bool rule_applies(struct faulty *f, struct rule *rule)
{
    const struct hf_fault *fault = &rule->fault;
    uint64_t bits;

    ASSERT_HELD(&f->lock);
    if (fault->count && rule->struck >= fault->count)
        return false;
    if (fault->probability > 0 && fault->probability < 1) {
        hf__env_random(&f->env, &bits, sizeof(bits));
        if ((double)(bits >> 11) / (double)(UINT64_C(1) << 53) >= fault->probability)
            return false;
    }
    if (rule->skipped < fault->skip) {
        rule->skipped++;
        return false;
    }
    rule->struck++;
    return true;
}

/* The fault that this call has, 0 for none; and what its answer takes longer. */
static enum hf_fault_kind fault_draw(struct faulty *f, enum hf_op op, const void *request,
                                     uint32_t *latency_ms)
{
    enum hf_fault_kind kind = 0;

    *latency_ms = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->len && !kind; i++) {
        struct rule *rule = &f->rules[i];
        const struct hf_fault *fault = &rule->fault;

        if ((fault->operation.len && !hf_str_equal(fault->operation, hf__op(op)->name)) ||
            (fault->table.len && !hf__db_call_names(op, request, fault->table)) ||
            !can_have(op, fault->kind) || !rule_applies(f, rule))
            continue;
        if (fault->kind == HF_FAULT_LATENCY)
            *latency_ms += fault->latency_ms;
        else
            kind = fault->kind;
    }
    pthread_mutex_unlock(&f->lock);
    return kind;
}

/* ---- what strikes --------------------------------------------------------------------------- */

static enum hf_status fail_throttled(struct hf_scope *s)
{
    hf__fail(s, HF_THROTTLED,
             "The level of configured provisioned throughput for the table was exceeded. Consider "
             "increasing your provisioning level with the UpdateTable API.");
    hf__scope_error_edit(s)->may_retry = true;
    return HF_THROTTLED;
}

static enum hf_status fail_internal(struct hf_scope *s, bool done)
{
    hf__fail(s, HF_INTERNAL,
             "The request processing has failed because of an unknown error, exception or failure");
    hf__scope_error_edit(s)->may_retry = true;
    hf__scope_error_edit(s)->may_have_happened = done;
    return HF_INTERNAL;
}

/* What a client says of a connection that broke before an answer came. */
static enum hf_status cut_off(struct hf_scope *s, enum hf_op op)
{
    hf__fail(s, HF_IO, "The connection broke before an answer came");
    hf__scope_error_edit(s)->may_retry = true;
    hf__scope_error_edit(s)->may_have_happened = hf__op(op)->access == OP_WRITE;
    return HF_IO;
}

static size_t actions_of(enum hf_op op, const void *request)
{
    return op == HF_OP_TRANSACT_WRITE_ITEMS
               ? ((const struct hf_transact_write_items *)request)->actions_len
               : ((const struct hf_transact_get_items *)request)->actions_len;
}

/* A transaction says which of its actions met another one: the first. */
static enum hf_status fail_conflict(struct hf_scope *s, enum hf_op op, const void *request)
{
    struct hf_cancel_reason *reasons;
    size_t len;

    if (op != HF_OP_TRANSACT_WRITE_ITEMS && op != HF_OP_TRANSACT_GET_ITEMS) {
        hf__fail(s, HF_TX_CONFLICT, "Transaction is ongoing for the item");
        hf__scope_error_edit(s)->may_retry = true;
        return HF_TX_CONFLICT;
    }
    len = actions_of(op, request);
    reasons = hf__scope_array(s, len ? len : 1, sizeof(*reasons));
    if (!reasons)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        reasons[i].code = HF_STR("None");
    reasons[0].code = HF_STR("TransactionConflict");
    reasons[0].message = HF_STR("Transaction is ongoing for the item");
    hf__cancel(s, reasons, len);
    hf__scope_error_edit(s)->may_retry = true;
    return HF_TX_CANCELED;
}

/* Cut a list of `*len` elements: what fits into *room stays, *rest_len is the length of the rest. */
static const void *list_cut(const void *list, size_t *len, size_t element, size_t *room,
                            size_t *rest_len)
{
    size_t stays = *len < *room ? *len : *room;

    *rest_len = *len - stays;
    *len = stays;
    *room -= stays;
    return (const char *)list + stays * element;
}

/* Call with the first half of the entries, rounded down, and hand back the others. */
static enum hf_status write_half(struct hf_scope *s, struct faulty *f,
                                 const struct hf_batch_write_item *request,
                                 struct hf_batch_write_item_result *result)
{
    struct hf_table_writes *now = hf__scope_array(s, request->tables_len + 1, sizeof(*now));
    struct hf_table_writes *later = hf__scope_array(s, request->tables_len + 1, sizeof(*later));
    struct hf_batch_write_item half = {.tables = now,
                                       .return_capacity = request->return_capacity,
                                       .return_metrics = request->return_metrics};
    size_t room = 0, later_len = 0;

    if (!now || !later)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < request->tables_len; i++)
        room += request->tables[i].writes_len;
    room /= 2;
    for (size_t i = 0; i < request->tables_len; i++) {
        struct hf_table_writes table = request->tables[i], rest = table;

        rest.writes = list_cut(table.writes, &table.writes_len, sizeof(*table.writes), &room,
                               &rest.writes_len);
        if (table.writes_len)
            now[half.tables_len++] = table;
        if (rest.writes_len)
            later[later_len++] = rest;
    }
    if (half.tables_len)
        TRY(f->inner->calls->call(s, f->inner, HF_OP_BATCH_WRITE_ITEM, &half, result));
    result->unprocessed = later;
    result->unprocessed_len = later_len;
    return HF_OK;
}

static enum hf_status read_half(struct hf_scope *s, struct faulty *f,
                                const struct hf_batch_get_item *request,
                                struct hf_batch_get_item_result *result)
{
    struct hf_table_gets *now = hf__scope_array(s, request->tables_len + 1, sizeof(*now));
    struct hf_table_gets *later = hf__scope_array(s, request->tables_len + 1, sizeof(*later));
    struct hf_batch_get_item half = {.tables = now, .return_capacity = request->return_capacity};
    size_t room = 0, later_len = 0;

    if (!now || !later)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < request->tables_len; i++)
        room += request->tables[i].keys_len;
    room /= 2;
    for (size_t i = 0; i < request->tables_len; i++) {
        struct hf_table_gets table = request->tables[i], rest = table;

        rest.keys =
            list_cut(table.keys, &table.keys_len, sizeof(*table.keys), &room, &rest.keys_len);
        if (table.keys_len)
            now[half.tables_len++] = table;
        if (rest.keys_len)
            later[later_len++] = rest;
    }
    if (half.tables_len)
        TRY(f->inner->calls->call(s, f->inner, HF_OP_BATCH_GET_ITEM, &half, result));
    result->unprocessed = later;
    result->unprocessed_len = later_len;
    return HF_OK;
}

/* In a server the answer is kept for so long; otherwise the caller is, unless its scope ends before. */
static enum hf_status answer_delay(struct hf_scope *s, enum hf_op op, uint32_t ms,
                                   enum hf_status answer)
{
    uint32_t left = hf_scope_left_ms(s, ms);
    struct hf_error *error;

    if (hf__scope_defer_delay(s, ms))
        return answer;
    if (hf_scope_sleep_ms(s, left) == HF_OK) {
        if (left == ms)
            return answer;
        (void)hf__fail(s, HF_TIMEOUT, "the answer did not come before the deadline");
    }
    error = hf__scope_error_edit(s);
    error->may_have_happened = answer == HF_OK && hf__op(op)->access == OP_WRITE;
    return error->status;
}

static enum hf_status fault_apply(struct hf_scope *s, struct faulty *f, enum hf_fault_kind kind,
                                  enum hf_op op, const void *request, void *response)
{
    struct hf_db *inner = f->inner;

    switch (kind) {
    case HF_FAULT_THROTTLE:
        return fail_throttled(s);
    case HF_FAULT_CONFLICT:
        return fail_conflict(s, op, request);
    case HF_FAULT_ERROR:
        return fail_internal(s, false);
    case HF_FAULT_UNPROCESSED:
        return op == HF_OP_BATCH_WRITE_ITEM ? write_half(s, f, request, response)
                                            : read_half(s, f, request, response);
    case HF_FAULT_LOST_REQUEST:
        return cut_off(s, op);
    case HF_FAULT_LOST_ANSWER:
        TRY(inner->calls->call(s, inner, op, request, response));
        return fail_internal(s, hf__op(op)->access == OP_WRITE);
    default:
        return inner->calls->call(s, inner, op, request, response);
    }
}

/* ---- the database --------------------------------------------------------------------------- */

static enum hf_status faulty_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct faulty *f = (struct faulty *)(void *)db;
    enum hf_status status;
    uint32_t latency_ms;
    enum hf_fault_kind kind = fault_draw(f, op, request, &latency_ms);

    status = fault_apply(s, f, kind, op, request, response);
    return latency_ms ? answer_delay(s, op, latency_ms, status) : status;
}

static enum hf_status faulty_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct faulty *f = (struct faulty *)(void *)db;

    return hf__db_sync(s, f->inner, ticket);
}

static void faulty_free(struct faulty *f)
{
    struct hf_env env = f->env;

    hf_scope_free(f->memory);
    pthread_mutex_destroy(&f->lock);
    hf__env_free(&env, f, sizeof(*f));
}

static void faulty_close(struct hf_db *db)
{
    struct faulty *f = (struct faulty *)(void *)db;

    hf_db_close(f->inner);
    faulty_free(f);
}

static enum hf_status faulty_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                      bool *supported)
{
    struct faulty *f = (struct faulty *)(void *)db;

    return hf_db_supports(s, f->inner, feature, supported);
}

static enum hf_status faulty_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct faulty *)(void *)db)->inner, blobs);
}

static enum hf_status faulty_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                       struct hf_str *full)
{
    return hf__db_full_name(s, ((struct faulty *)(void *)db)->inner, table, full);
}

static struct hf_str faulty_opener(struct hf_db *db)
{
    return hf_db_opener(((struct faulty *)(void *)db)->inner);
}

static const struct db_calls faulty_calls = {.call = faulty_call,
                                             .sync = faulty_sync,
                                             .close = faulty_close,
                                             .supports = faulty_supports,
                                             .blobs = faulty_blobs,
                                             .full_name = faulty_full_name,
                                             .opener = faulty_opener};

enum hf_status hf_faulty_open(struct hf_scope *s, struct hf_db *inner, struct hf_db **db)
{
    const struct hf_env *env = hf__scope_env(s);
    struct faulty *f;

    *db = NULL;
    hf__scope_error_clear(s);
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_faulty_open() was called without a database (NULL)");
    f = hf__env_alloc(env, sizeof(*f));
    if (!f)
        return hf__fail_nomem(s);
    memset(f, 0, sizeof(*f));
    f->db.calls = &faulty_calls;
    f->env = *env;
    f->inner = inner;
    pthread_mutex_init(&f->lock, NULL);
    f->memory = hf_scope_new(env);
    if (!f->memory) {
        faulty_free(f);
        return hf__fail_nomem(s);
    }
    *db = &f->db;
    return HF_OK;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static enum hf_status fault_check(struct hf_scope *s, const struct hf_fault *fault, size_t number)
{
    struct hf_str op = fault->operation;

    if (fault->kind < HF_FAULT_THROTTLE || fault->kind > HF_FAULT_LOST_REQUEST)
        return hf__fail(s, HF_INVALID, "fault %zu: unknown kind of fault %d", number,
                        (int)fault->kind);
    if (op.len && !hf__op_of_name(OP_DYNAMODB, op) && !hf__op_of_name(OP_STREAMS, op))
        return hf__fail(s, HF_INVALID, "fault %zu: unknown operation %.*s", number, HF_FMT(op));
    if (!(fault->probability >= 0 && fault->probability <= 1))
        return hf__fail(s, HF_INVALID, "fault %zu: the probability is not between 0 and 1", number);
    if (fault->kind == HF_FAULT_LATENCY &&
        (fault->latency_ms == 0 || fault->latency_ms > LATENCY_MAX_MS))
        return hf__fail(s, HF_INVALID, "fault %zu: a latency is from 1 to %d milliseconds", number,
                        LATENCY_MAX_MS);
    return HF_OK;
}

/* The texts of the rules, copied to `memory`. */
static bool copy_rules(struct hf_scope *memory, const struct hf_fault *faults, size_t len,
                       struct rule *rules)
{
    for (size_t i = 0; i < len; i++) {
        rules[i] = (struct rule){.fault = faults[i]};
        rules[i].fault.operation = hf_scope_copy(memory, faults[i].operation);
        rules[i].fault.table = hf_scope_copy(memory, faults[i].table);
    }
    return !hf__scope_alloc_failed(memory);
}

enum hf_status hf_faulty_set(struct hf_scope *s, struct hf_db *db, const struct hf_fault *faults,
                             size_t len)
{
    struct faulty *f = faulty_of(db);
    struct hf_scope *memory, *old;
    struct rule *rules;

    hf__scope_error_clear(s);
    if (!f)
        return hf__fail(s, HF_INVALID, "the database was not opened by hf_faulty_open()");
    if (len > HF_FAULTS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_FAULTS_MAX, len),
                                   "%zu faults are more than %d", len, HF_FAULTS_MAX);
    for (size_t i = 0; i < len; i++)
        TRY(fault_check(s, &faults[i], i));
    rules = hf__scope_array(s, len ? len : 1, sizeof(*rules));
    memory = hf_scope_new(&f->env);
    if (!rules || !memory || !copy_rules(memory, faults, len, rules)) {
        hf_scope_free(memory);
        return hf__fail_nomem(s);
    }
    pthread_mutex_lock(&f->lock);
    old = f->memory;
    f->memory = memory;
    memcpy(f->rules, rules, len * sizeof(*rules));
    f->len = len;
    pthread_mutex_unlock(&f->lock);
    hf_scope_free(old);
    return HF_OK;
}

enum hf_status hf_faulty_get(struct hf_scope *s, struct hf_db *db, const struct hf_fault **faults,
                             size_t *len)
{
    struct faulty *f = faulty_of(db);
    struct hf_fault *copies;

    hf__scope_error_clear(s);
    *faults = NULL;
    *len = 0;
    if (!f)
        return hf__fail(s, HF_INVALID, "the database was not opened by hf_faulty_open()");
    copies = hf__scope_array(s, HF_FAULTS_MAX, sizeof(*copies));
    if (!copies)
        return hf__fail_nomem(s);
    hf__scope_alloc_clear(s);
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->len; i++) {
        copies[i] = f->rules[i].fault;
        copies[i].operation = hf_scope_copy(s, copies[i].operation);
        copies[i].table = hf_scope_copy(s, copies[i].table);
        copies[i].struck = f->rules[i].struck;
    }
    *len = f->len;
    pthread_mutex_unlock(&f->lock);
    if (hf__scope_alloc_failed(s)) {
        *len = 0;
        return hf__fail_nomem(s);
    }
    *faults = copies;
    return HF_OK;
}
