/*
 * db/db.c: the narrow waist. Every operation on every kind of database passes through
 * hf_db_call(), so this is also where an error learns its operation and its table, and where
 * consumed capacity is added up for scopes that want to know.
 */
#include "db/db.h"

#include "db/call_info.h"
#include "expr/partiql.h"

/* ---- consumed capacity ---------------------------------------------------------------------- */

enum { REQUEST_MAX = 512 }; /* bytes of a request struct that can ask for its consumption */

static const struct field *field_named(const struct fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->len; i++)
        if (fields->list[i].name && strcmp(fields->list[i].name, name) == 0)
            return &fields->list[i];
    return NULL;
}

/* The call with its consumption asked for. Calls that a wrapper makes inside of it count once:
 * here. */
static enum hf_status call_counted(struct hf_scope *s, struct hf_db *db, const struct op *entry,
                                   const void *request, void *response)
{
    struct hf_scope_capacity *counter = hf__scope_counter(s);
    const struct field *field = field_named(entry->request, "ReturnConsumedCapacity");
    _Alignas(max_align_t) char copy[REQUEST_MAX];
    const void *asking = request;
    const int total = HF_CAPACITY_TOTAL;
    enum hf_status status;
    int asked = total;

    if (field)
        memcpy(&asked, (const char *)request + field->at, sizeof(asked));
    if (!asked) {
        assert(entry->request->size <= sizeof(copy));
        memcpy(copy, request, entry->request->size);
        memcpy(copy + field->at, &total, sizeof(total));
        asking = copy;
    }
    hf__scope_set_counter(s, NULL);
    status = db->calls->call(s, db, entry->op, asking, response);
    hf__scope_set_counter(s, counter);
    counter->calls++;
    if (status == HF_OK) {
        struct call_units units = hf__db_call_units(entry->op, request, response);

        counter->read_units += units.read;
        counter->write_units += units.write;
    }
    return status;
}

/* ---- errors --------------------------------------------------------------------------------- */

/* The table of a statement, a part of it. Absent: it names none. A scope of its own, for the error that is to be
 * named is in the caller's. */
static struct hf_str statement_table(struct hf_scope *s, struct hf_str text)
{
    struct hf_scope *own = hf_scope_new(hf_scope_env(s));
    struct hf_str word = {0};

    if (own && text.ptr && text.len <= STATEMENT_TEXT_MAX &&
        hf__partiql_table(own, text, &word) != HF_OK)
        word = (struct hf_str){0};
    hf_scope_free(own);
    if (word.len >= 2 && word.ptr[0] == '"')
        word = hf_str_of(word.ptr + 1, word.len - 2);
    return word;
}

/* Which part of a transaction was refused first; `len` when it does not say. */
static size_t part_at_fault(const struct hf_error *error, size_t len)
{
    for (size_t i = 0; i < error->reasons_len && i < len; i++)
        if (!hf_str_equal(error->reasons[i].code, HF_STR("None")))
            return i;
    return len;
}

static struct hf_str table_at_fault(struct hf_scope *s, const struct hf_error *error, enum hf_op op,
                                    const void *request)
{
    const struct hf_execute_transaction *transaction = request;
    const struct hf_execute_statement *single = request;
    size_t at;

    switch (op) {
    case HF_OP_TRANSACT_WRITE_ITEMS:
    case HF_OP_TRANSACT_GET_ITEMS:
        at = part_at_fault(error, error->reasons_len);
        return hf__db_call_nth_table(op, request, at < error->reasons_len ? at : 0);
    case HF_OP_EXECUTE_STATEMENT:
        return statement_table(s, single->statement);
    case HF_OP_EXECUTE_TRANSACTION:
        at = part_at_fault(error, transaction->statements_len);
        return at < transaction->statements_len
                   ? statement_table(s, transaction->statements[at].statement)
                   : (struct hf_str){0};
    default:
        return hf__db_call_table(op, request);
    }
}

/* What DynamoDB's protocol calls it, unless the database has said so, or it is none of DynamoDB's:
 * "InternalServerError" would say less than the status does. */
static struct hf_str exception_of(const struct hf_error *error)
{
    struct hf_str usual = hf__status_exception(error->status);

    if (error->exception.ptr || hf_str_equal(usual, HF_STR("InternalServerError")))
        return error->exception;
    return usual;
}

/* The error learns what it is about. Requests are borrowed, so the name is copied. */
static void name_error(struct hf_scope *s, const struct op *entry, const void *request)
{
    struct hf_error *error = hf__scope_error_edit(s);
    struct hf_str table = table_at_fault(s, error, entry->op, request);

    error->operation = entry->name;
    error->exception = exception_of(error);
    error->table = (struct hf_str){0};
    if (!table.ptr)
        return;
    error->table = hf_scope_copy(s, table);
    if (hf_str_equal(error->message, HF_STR("Requested resource not found")))
        hf__scope_error_say(s, hf_scope_format(s, "Requested resource not found: table %.*s",
                                               HF_FMT(table)));
}

/* ---- structs of other versions -------------------------------------------------------------- */

/*
 * Requests and results end with reserved room, so a program that was built with older headers of
 * this minor version has structs of the same size as ours: what we write into a result stays inside
 * of it, and members that we have learned since are zero in its requests, which is "left out". A
 * program that was built with newer headers may ask for what we do not know; then it is refused, as
 * a condition that is not looked at would be worse. docs/abi.md.
 */
static const uint16_t room_at[HF_OP_COUNT] = {
#define OP(name, constant, type, service, access, repeat)                                          \
    [HF_OP_##constant] = offsetof(struct hf_##type, reserved),
#include "ops/ops.def"
#undef OP
};
#define OP(name, constant, type, service, access, repeat)                                          \
    _Static_assert(offsetof(struct hf_##type, reserved) +                                          \
                           sizeof(((struct hf_##type *)NULL)->reserved) ==                         \
                       sizeof(struct hf_##type),                                                   \
                   "the room of a request is at its end");                                         \
    _Static_assert(offsetof(struct hf_##type##_result, reserved) +                                 \
                           sizeof(((struct hf_##type##_result *)NULL)->reserved) ==                \
                       sizeof(struct hf_##type##_result),                                          \
                   "the room of a result is at its end");
#include "ops/ops.def"
#undef OP

static enum hf_status check_room(struct hf_scope *s, const struct op *entry, const void *request)
{
    const char *at = (const char *)request + room_at[entry->op];
    const char *end = (const char *)request + entry->request->size;

    for (; at < end; at += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        if (word)
            return hf__fail(s, HF_INVALID,
                            "The request of %.*s uses a member that libholdfast %s does not have: "
                            "install the version that the program was built with, or zero the "
                            "request before it is filled in",
                            HF_FMT(entry->name), hf_version());
    }
    return HF_OK;
}

/* ---- the one call --------------------------------------------------------------------------- */

enum hf_status hf_db_call(struct hf_scope *s, struct hf_db *db, enum hf_op op, const void *request,
                          void *response)
{
    const struct op *entry;
    enum hf_status status;

    hf__scope_error_clear(s);
    if ((unsigned)op >= HF_OP_COUNT)
        return hf__fail(s, HF_UNKNOWN_OPERATION, "There is no operation with the number %d",
                        (int)op);
    entry = hf__op(op);
    if (!db || !request) {
        status = hf__fail(s, HF_INVALID, "%.*s was called without a %s (NULL)", HF_FMT(entry->name),
                          db ? "request" : "database");
        hf__scope_error_edit(s)->operation = entry->name;
        if (response)
            memset(response, 0, entry->response->size);
        return status;
    }
    if (!response) {
        response = hf_scope_alloc(s, entry->response->size);
        if (!response)
            return hf__fail_nomem(s);
    }
    memset(response, 0, entry->response->size);
    status = hf__scope_alive(s);
    if (status == HF_OK)
        status = check_room(s, entry, request);
    if (status == HF_OK)
        status = hf__scope_counter(s) ? call_counted(s, db, entry, request, response)
                                      : db->calls->call(s, db, op, request, response);
    if (status != HF_OK)
        name_error(s, entry, request);
    return status;
}

enum hf_status hf__db_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    hf__scope_error_clear(s);
    return ticket && db->calls->sync ? db->calls->sync(s, db, ticket) : HF_OK;
}

enum hf_status hf_db_sync(struct hf_scope *s, struct hf_db *db)
{
    uint64_t ticket = hf__scope_pending_ticket(s);
    enum hf_status status;

    hf__scope_error_clear(s);
    if (!db)
        return hf__fail(s, HF_INVALID, "hf_db_sync() was called without a database (NULL)");
    if (!ticket)
        return HF_OK;
    hf__scope_set_pending_sync(s, NULL); /* this one waits */
    status = hf__db_sync(s, db, ticket);
    hf_scope_sync_later(s, true);
    if (status != HF_OK)
        (void)hf__scope_defer_sync(s, ticket); /* the next call tries again */
    return status;
}

enum hf_status hf_db_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                              bool *supported)
{
    *supported = false;
    hf__scope_error_clear(s);
    if (!db)
        return hf__fail(s, HF_INVALID, "hf_db_supports() was called without a database (NULL)");
    if (feature < HF_FEATURE_TRANSACTIONS || feature > HF_FEATURE_BACKUPS)
        return hf__fail(s, HF_INVALID, "There is no feature with the number %d", (int)feature);
    *supported = true;
    return db->calls->supports ? db->calls->supports(s, db, feature, supported) : HF_OK;
}

enum hf_status hf__db_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    *blobs = NULL;
    if (!db->calls->blobs)
        return hf__fail(s, HF_UNSUPPORTED,
                        "the database is not embedded, so it has no blob store beside it: open one "
                        "by its URL");
    return db->calls->blobs(s, db, blobs);
}

enum hf_status hf__db_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct hf_str *full)
{
    *full = table;
    return db->calls->full_name ? db->calls->full_name(s, db, table, full) : HF_OK;
}

struct hf_str hf_db_opener(struct hf_db *db)
{
    return db && db->calls->opener ? db->calls->opener(db) : (struct hf_str){0};
}

void hf_db_close(struct hf_db *db)
{
    if (db)
        db->calls->close(db);
}
