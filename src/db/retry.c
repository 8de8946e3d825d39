/*
 * db/retry.c: a database around a database that tries again. When, and how often, is in retry_policy.c;
 * here is what may be repeated at all.
 *
 *  (1) After an attempt that may have been done, only what is the same twice as once follows:
 *      operations that ops.def calls so, and transactions by their token, which those without one
 *      are given before the first attempt.
 *  (2) may_have_happened of the last error is true when any attempt may have been done.
 *  (3) Before an attempt the response is zero, and the scope has the memory that it had before the
 *      call, but for the token. The error that is returned is never given back.
 *
 * Unprocessed parts of batches are a success here; a caller that wants them done repeats those alone.
 */
#include <holdfast/retry.h>

#include "db/db.h"
#include "db/retry_policy.h"

struct retry {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    struct retry_policy policy;
};

/* One call on its way. */
struct course {
    const struct op *op;
    const void *request;
    struct retry_course course;
};

/* ---- one call ------------------------------------------------------------------------------- */

static const struct field *token_field(const struct op *op)
{
    for (size_t i = 0; i < op->request->len; i++)
        if (strcmp(op->request->list[i].name, "ClientRequestToken") == 0)
            return &op->request->list[i];
    return NULL;
}

/* (1): the request becomes a copy of itself with a token, if it has none. */
static enum hf_status give_token(struct hf_scope *s, const struct retry *r, struct course *c)
{
    const struct field *field = token_field(c->op);
    char *copy;
    struct hf_str *token;

    assert(field && field->kind == FIELD_STR);
    if (((const struct hf_str *)(const void *)((const char *)c->request + field->at))->ptr)
        return HF_OK;
    copy = hf_scope_alloc(s, c->op->request->size);
    if (!copy)
        return hf__fail_nomem(s);
    memcpy(copy, c->request, c->op->request->size);
    token = (struct hf_str *)(void *)(copy + field->at);
    *token = hf__uuid(s, &r->env);
    if (!token->ptr)
        return hf__fail_nomem(s);
    c->request = copy;
    return HF_OK;
}

/* Attempt after attempt. */
static enum hf_status attempts_run(struct hf_scope *s, struct retry *r, struct course *c,
                                   void *response)
{
    struct hf__mark mark = hf__scope_mark(s);
    enum hf_status status;

    for (;;) {
        c->course.attempt++;
        status = r->inner->calls->call(s, r->inner, c->op->op, c->request, response);
        if (status == HF_OK) {
            hf__retry_succeeded(&r->policy, &c->course);
            return HF_OK;
        }
        if (!hf__retry_next_attempt(s, &r->policy, &c->course))
            break;
        hf__scope_error_clear(s); /* (3) */
        hf__scope_rewind(s, mark);
        memset(response, 0, c->op->response->size);
    }
    hf__scope_error_edit(s)->may_have_happened = c->course.happened; /* (2) */
    return hf_scope_error(s)->status;
}

static enum hf_status retry_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct retry *r = (struct retry *)(void *)db;
    const struct op *entry = hf__op(op);
    const struct hf_retry_options *o = &r->policy.options;
    struct course c = {.op = entry,
                       .request = request,
                       .course.repeatable = entry->repeat != OP_REPEAT_NO || o->repeat_writes};
    enum hf_status status;

    if (o->max_attempts == 1 && o->mode != HF_RETRY_ADAPTIVE)
        return r->inner->calls->call(s, r->inner, op, request, response);
    if (entry->repeat == OP_REPEAT_TOKEN)
        TRY(give_token(s, r, &c));
    status = hf__retry_wait_to_send(s, &r->policy);
    if (status == HF_TIMEOUT)
        return hf__fail(s, HF_THROTTLED,
                        "The client was throttled, and at its present rate it cannot send "
                        "this call before its deadline");
    return status == HF_OK ? attempts_run(s, r, &c, response) : status;
}

/* ---- the database --------------------------------------------------------------------------- */

static enum hf_status retry_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct retry *r = (struct retry *)(void *)db;

    return hf__db_sync(s, r->inner, ticket);
}

static void retry_close(struct hf_db *db)
{
    struct retry *r = (struct retry *)(void *)db;
    struct hf_env env = r->env;

    hf_db_close(r->inner);
    hf__retry_policy_close(&r->policy);
    hf__env_free(&env, r, sizeof(*r));
}

static enum hf_status retry_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                     bool *supported)
{
    struct retry *r = (struct retry *)(void *)db;
    struct retry_course c = {.repeatable = true};
    struct hf__mark mark = hf__scope_mark(s);

    for (;;) {
        c.attempt++;
        if (hf_db_supports(s, r->inner, feature, supported) == HF_OK)
            break;
        *supported = false;
        if (!hf__retry_next_attempt(s, &r->policy, &c))
            return hf_scope_error(s)->status;
        hf__scope_rewind(s, mark);
    }
    if (c.held) /* most answers are known, and cost nothing */
        hf__retry_succeeded(&r->policy, &c);
    return HF_OK;
}

static enum hf_status retry_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct retry *)(void *)db)->inner, blobs);
}

static enum hf_status retry_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                      struct hf_str *full)
{
    return hf__db_full_name(s, ((struct retry *)(void *)db)->inner, table, full);
}

static struct hf_str retry_opener(struct hf_db *db)
{
    return hf_db_opener(((struct retry *)(void *)db)->inner);
}

static const struct db_calls retry_calls = {.call = retry_call,
                                            .sync = retry_sync,
                                            .close = retry_close,
                                            .supports = retry_supports,
                                            .blobs = retry_blobs,
                                            .full_name = retry_full_name,
                                            .opener = retry_opener};

enum hf_status hf_retry_open(struct hf_scope *s, struct hf_db *inner,
                             const struct hf_retry_options *options, struct hf_db **db)
{
    struct hf_env env = options && options->env ? hf__env_fill(options->env) : *hf__scope_env(s);
    enum hf_status status;
    struct retry *r;

    *db = NULL;
    hf__scope_error_clear(s);
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_retry_open() was called without a database (NULL)");
    r = hf__env_alloc(&env, sizeof(*r));
    if (!r)
        return hf__fail_nomem(s);
    *r = (struct retry){.db.calls = &retry_calls, .env = env, .inner = inner};
    status = hf__retry_policy_open(s, options, &r->policy);
    if (status != HF_OK) {
        hf__env_free(&env, r, sizeof(*r));
        return status;
    }
    *db = &r->db;
    return HF_OK;
}
