/*
 * serving/read_only.c: see read_only.h.
 *
 *  (1) An operation that writes fails with HF_DENIED, and nothing is asked of the database.
 *  (2) A statement passes when its first word is SELECT, or EXISTS as transactions have it: a
 *      request has one statement only, so nothing that writes can begin like this.
 */
#include "serving/read_only.h"

static enum hf_status deny_write(struct hf_scope *s, struct hf_str what)
{
    return hf__fail(s, HF_DENIED, "The database is served read-only: %.*s is refused",
                    HF_FMT(what));
}

static bool begins_with(struct hf_str text, struct hf_str word)
{
    if (text.len < word.len)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if ((text.ptr[i] & ~0x20) != word.ptr[i])
            return false;
    }
    return text.len == word.len || text.ptr[word.len] <= ' ' || text.ptr[word.len] == '(' ||
           text.ptr[word.len] == '"' || text.ptr[word.len] == '*';
}

static bool only_reads(struct hf_str statement)
{
    while (statement.len > 0 && (unsigned char)*statement.ptr <= ' ')
        statement = hf_str_of(statement.ptr + 1, statement.len - 1);
    return begins_with(statement, HF_STR("SELECT")) || begins_with(statement, HF_STR("EXISTS"));
}

/* The nth statement of a request; false behind the last. */
static bool nth_statement(enum hf_op op, const void *request, size_t n, struct hf_str *statement)
{
    const struct hf_execute_statement *one = request;
    const struct hf_batch_execute_statement *batch = request;
    const struct hf_execute_transaction *transaction = request;

    if (op == HF_OP_EXECUTE_STATEMENT && n == 0)
        *statement = one->statement;
    else if (op == HF_OP_BATCH_EXECUTE_STATEMENT && n < batch->statements_len)
        *statement = batch->statements[n].statement;
    else if (op == HF_OP_EXECUTE_TRANSACTION && n < transaction->statements_len)
        *statement = transaction->statements[n].statement;
    else
        return false;
    return true;
}

static bool may_pass(enum hf_op op, const void *request)
{
    struct hf_str statement;

    if (hf__op(op)->access == OP_READ)
        return true;
    if (!nth_statement(op, request, 0, &statement))
        return false;
    for (size_t n = 0; nth_statement(op, request, n, &statement); n++) {
        if (!only_reads(statement))
            return false;
    }
    return true;
}

static struct hf_db *inner_of(struct hf_db *db)
{
    return ((struct serving_read_only *)(void *)db)->inner;
}

static enum hf_status read_only_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                     const void *request, void *response)
{
    struct hf_db *inner = inner_of(db);

    if (!may_pass(op, request))
        return deny_write(s, hf__op(op)->name);
    return inner->calls->call(s, inner, op, request, response);
}

static enum hf_status read_only_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    return hf__db_sync(s, inner_of(db), ticket);
}

static void read_only_close(struct hf_db *db)
{
    (void)db; /* the inner one is somebody else's */
}

static enum hf_status read_only_supports(struct hf_scope *s, struct hf_db *db,
                                         enum hf_feature feature, bool *supported)
{
    return hf_db_supports(s, inner_of(db), feature, supported);
}

static enum hf_status read_only_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    (void)db;
    *blobs = NULL; /* a store takes bytes before the database is asked: so patterns do without */
    return hf_scope_fail(s, HF_UNSUPPORTED,
                         "the database was opened read-only: its blob store is not available");
}

static enum hf_status read_only_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                          struct hf_str *full)
{
    return hf__db_full_name(s, inner_of(db), table, full);
}

static struct hf_str read_only_opener(struct hf_db *db)
{
    return hf_db_opener(inner_of(db));
}

static const struct db_calls read_only_calls = {.call = read_only_call,
                                                .sync = read_only_sync,
                                                .close = read_only_close,
                                                .supports = read_only_supports,
                                                .blobs = read_only_blobs,
                                                .full_name = read_only_full_name,
                                                .opener = read_only_opener};

void hf__serving_read_only_init(struct serving_read_only *wrapper, struct hf_db *inner)
{
    *wrapper = (struct serving_read_only){.db = {.calls = &read_only_calls}, .inner = inner};
}
