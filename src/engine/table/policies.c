/*
 * engine/table/policies.c: resource policies of tables. They are stored with the table, returned as
 * they were sent, and deleted with the table. They are not enforced: the engine has no
 * authorization.
 *
 *  (1) A revision is the millisecond of the change, or one more than the last when that is taken;
 *      so of one table's revisions no two are the same, even after its policy was deleted.
 *  (2) Putting what is there already changes nothing, not even the revision.
 */
#include "engine/engine.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/table/tables.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "wire/wire.h"

enum { POLICY_MAX = 20480 }; /* bytes, spaces included */

#define BAD_VALUES "One or more parameter values were invalid: "
#define NO_POLICY "Resource-based policy not found for the provided ResourceArn: "

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

enum hf_status hf__policy_check(struct hf_scope *s, struct hf_str policy)
{
    struct hf_str rest = policy;

    if (policy.len > POLICY_MAX)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Maximum policy size of %d bytes exceeded",
                        POLICY_MAX);
    while (rest.len && is_space(*rest.ptr)) {
        rest.ptr++;
        rest.len--;
    }
    if (!rest.len || *rest.ptr != '{' || !hf__wire_json_valid(policy)) /* an object, of whatever */
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Invalid policy document: This policy contains invalid Json");
    return HF_OK;
}

int64_t hf__policy_revision(struct engine *e, int64_t last)
{
    int64_t now_ms = hf__env_wall_us(&e->env) / 1000;

    return now_ms > last ? now_ms : last + 1;
}

/* ---- which table ---------------------------------------------------------------------------- */

/* An ARN of a table, alone, of this account and region; *name is the table's. */
static enum hf_status check_arn(struct hf_scope *s, const struct engine *e, struct hf_str arn,
                                struct hf_str *name)
{
    struct table_arn parts;
    struct hf_str whole = arn;
    const char *more = NULL;

    if (!hf__arn_is(arn))
        return hf__fail(s, HF_INVALID, BAD_VALUES "ARNs must start with 'arn:': %.*s", HF_FMT(arn));
    for (size_t i = 0, slashes = 0; i < arn.len && !more; i++)
        if (arn.ptr[i] == '/' && ++slashes == 2)
            more = arn.ptr + i;
    if (more)
        whole.len = (size_t)(more - arn.ptr);
    if (!hf__arn_split(whole, &parts) || (more && memmem(more, 8, "/backup/", 8)))
        return hf__fail(s, HF_INVALID,
                        memcmp(arn.ptr, "arn:aws-", 8) == 0
                            ? BAD_VALUES "Invalid resource Arn: %.*s"
                            : BAD_VALUES "Provided Arn is not a DynamoDB resource arn: %.*s",
                        HF_FMT(arn));
    if (!hf_str_equal(parts.account, e->account))
        return hf__fail(s, HF_INVALID,
                        "This action is only supported by accounts that match the resource owner’s "
                        "account.");
    if (!hf_str_equal(parts.region, e->region) || memcmp(arn.ptr, "arn:aws:", 8) != 0)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Invalid resource Arn: %.*s", HF_FMT(arn));
    if (more)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Invalid resource arn provided, only table or stream is "
                                   "accepted. Provided resource arn: %.*s",
                        HF_FMT(arn));
    *name = parts.name;
    return HF_OK;
}

/* The schema lock is held. */
static enum hf_status find_table(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                 struct table **table)
{
    struct hf_str name;

    TRY(check_arn(s, e, arn, &name));
    return hf__catalog_table(s, e, name, table);
}

static struct hf_str revision_text(struct hf_scope *s, const struct table *table)
{
    return hf_scope_format(s, "%lld", (long long)table->record.policy_revision);
}

/* Does the policy have the revision that the caller expects? */
static enum hf_status check_expected(struct hf_scope *s, const struct table *table,
                                     struct hf_str expected)
{
    bool there = table->record.resource_policy.ptr != NULL;
    struct hf_str revision = revision_text(s, table);

    if (!expected.ptr)
        return HF_OK;
    if (!revision.ptr)
        return hf__fail_nomem(s);
    if (hf_str_equal(expected, HF_STR("NO_POLICY"))) {
        if (!there)
            return HF_OK;
        return hf__fail_as(s, HF_NOT_FOUND, "PolicyNotFoundException",
                           NO_POLICY
                           "Requested policy update expecting none to be present for table "
                           "%.*s, but a policy exists with revision id %.*s.",
                           HF_FMT(table->name), HF_FMT(revision));
    }
    if (!there)
        return hf__fail_as(s, HF_NOT_FOUND, "PolicyNotFoundException",
                           NO_POLICY "Requested update for policy with revision id %.*s, but table "
                                     "%.*s has no associated policy.",
                           HF_FMT(expected), HF_FMT(table->name));
    if (!hf_str_equal(expected, revision))
        return hf__fail_as(s, HF_NOT_FOUND, "PolicyNotFoundException",
                           NO_POLICY "Requested update for policy with revision id %.*s, but the "
                                     "policy associated to target table %.*s has revision id %.*s.",
                           HF_FMT(expected), HF_FMT(table->name), HF_FMT(revision));
    return HF_OK;
}

/* ---- operations ----------------------------------------------------------------------------- */

static enum hf_status replace_policy(struct hf_scope *s, struct engine *e, struct table *table,
                                     struct hf_str policy)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct table_record record = table->record;

    record.resource_policy = policy;
    if (policy.ptr)
        record.policy_revision = hf__policy_revision(e, record.policy_revision);
    return hf__catalog_update(s, e, &batch, table, &record);
}

/* A call that has nothing to change succeeds only when the present state is durable. */
static enum hf_status wait_durable(struct hf_scope *s, struct engine *e, bool changed)
{
    uint64_t ticket = hf__store_written(e->store);

    return changed ? hf__engine_wait_durable(s, e, ticket)
                   : hf__engine_wait_durable_seen(s, e, ticket);
}

static enum hf_status put_locked(struct hf_scope *s, struct engine *e,
                                 const struct hf_put_resource_policy *request,
                                 struct hf_put_resource_policy_result *result, bool *changed)
{
    struct table *table;

    TRY(find_table(s, e, request->arn, &table));
    TRY(check_expected(s, table, request->expected_revision));
    if (!hf_str_equal(table->record.resource_policy, request->policy)) { /* (2) */
        struct hf_str name = table->name;

        *changed = true;
        name = hf_scope_copy(s, name);
        if (!name.ptr)
            return hf__fail_nomem(s);
        TRY(replace_policy(s, e, table, request->policy));
        table = hf__catalog_find(e, name);
    }
    assert(table);
    result->revision = revision_text(s, table);
    return HF_OK;
}

enum hf_status hf__engine_put_resource_policy(struct hf_scope *s, struct engine *e,
                                              const struct hf_put_resource_policy *request,
                                              struct hf_put_resource_policy_result *result)
{
    enum hf_status status;
    bool changed = false;

    TRY(hf__prepare_plain(s, HF_OP_PUT_RESOURCE_POLICY, request));
    TRY(hf__policy_check(s, request->policy));
    hf__schema_lock(e);
    status = put_locked(s, e, request, result, &changed);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? wait_durable(s, e, changed) : status;
}

static enum hf_status get_locked(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                 struct hf_get_resource_policy_result *result)
{
    struct table *table;

    TRY(find_table(s, e, arn, &table));
    if (!table->record.resource_policy.ptr)
        return hf__fail_as(s, HF_NOT_FOUND, "PolicyNotFoundException", NO_POLICY "%.*s",
                           HF_FMT(arn));
    result->policy = hf_scope_copy(s, table->record.resource_policy);
    result->revision = revision_text(s, table);
    return HF_OK;
}

enum hf_status hf__engine_get_resource_policy(struct hf_scope *s, struct engine *e,
                                              const struct hf_get_resource_policy *request,
                                              struct hf_get_resource_policy_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_GET_RESOURCE_POLICY, request));
    pthread_rwlock_rdlock(&e->schema);
    status = get_locked(s, e, request->arn, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

static enum hf_status delete_locked(struct hf_scope *s, struct engine *e,
                                    const struct hf_delete_resource_policy *request,
                                    struct hf_delete_resource_policy_result *result, bool *changed)
{
    struct table *table;

    TRY(find_table(s, e, request->arn, &table));
    TRY(check_expected(s, table, request->expected_revision));
    if (!table->record.resource_policy.ptr)
        return HF_OK;
    *changed = true;
    result->revision = revision_text(s, table);
    return replace_policy(s, e, table, hf_str_of(NULL, 0));
}

enum hf_status hf__engine_delete_resource_policy(struct hf_scope *s, struct engine *e,
                                                 const struct hf_delete_resource_policy *request,
                                                 struct hf_delete_resource_policy_result *result)
{
    enum hf_status status;
    bool changed = false;

    TRY(hf__prepare_plain(s, HF_OP_DELETE_RESOURCE_POLICY, request));
    hf__schema_lock(e);
    status = delete_locked(s, e, request, result, &changed);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? wait_durable(s, e, changed) : status;
}
