/*
 * engine/table/continuous.c: continuous backups, of which there are none.
 *
 * The service reports them as enabled for every table, and point-in-time recovery as disabled until
 * it is requested. Here it cannot be enabled: no history of a table is kept from which it could be
 * recovered, so the request is refused.
 */
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/tables.h"
#include "ops/prepare.h"

static enum hf_status describe_continuous(struct hf_scope *s,
                                          const struct hf_continuous_backups_description **out)
{
    struct hf_continuous_backups_description *d = hf__scope_array(s, 1, sizeof(*d));
    struct hf_point_in_time_description *recovery = hf__scope_array(s, 1, sizeof(*recovery));

    if (!d || !recovery)
        return hf__fail_nomem(s);
    recovery->status = HF_SWITCH_DISABLED;
    d->status = HF_SWITCH_ENABLED;
    d->point_in_time = recovery;
    *out = d;
    return HF_OK;
}

/* Is there a table of that name? */
static enum hf_status find_table(struct hf_scope *s, struct engine *e, struct hf_str name)
{
    struct table *table;
    enum hf_status status;

    pthread_rwlock_rdlock(&e->schema);
    status = hf__catalog_backup_table(s, e, name, &table);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

enum hf_status hf__no_point_in_time(struct hf_scope *s, struct engine *e, struct hf_str name)
{
    TRY(find_table(s, e, name));
    return hf__fail_as(s, HF_UNSUPPORTED, "PointInTimeRecoveryUnavailableException",
                       "Point in time recovery is not enabled for table '%.*s'",
                       HF_FMT(hf__ops_table_name(name)));
}

enum hf_status
hf__engine_describe_continuous_backups(struct hf_scope *s, struct engine *e,
                                       const struct hf_describe_continuous_backups *request,
                                       struct hf_describe_continuous_backups_result *result)
{
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_CONTINUOUS_BACKUPS, request));
    TRY(find_table(s, e, request->table));
    return describe_continuous(s, &result->description);
}

enum hf_status
hf__engine_update_continuous_backups(struct hf_scope *s, struct engine *e,
                                     const struct hf_update_continuous_backups *request,
                                     struct hf_update_continuous_backups_result *result)
{
    TRY(hf__prepare_plain(s, HF_OP_UPDATE_CONTINUOUS_BACKUPS, request));
    TRY(find_table(s, e, request->table));
    if (request->spec->enabled == HF_YES)
        return hf__fail_as(s, HF_UNSUPPORTED, "ContinuousBackupsUnavailableException",
                           "Point in time recovery is not available for table: %.*s",
                           HF_FMT(hf__ops_table_name(request->table)));
    return describe_continuous(s, &result->description);
}

/* The source table is given by name or by ARN. */
enum hf_status
hf__engine_restore_table_to_point_in_time(struct hf_scope *s, struct engine *e,
                                          const struct hf_restore_table_to_point_in_time *request,
                                          struct hf_restore_table_to_point_in_time_result *result)
{
    struct table_arn parts;

    (void)result;
    TRY(hf__prepare_plain(s, HF_OP_RESTORE_TABLE_TO_POINT_IN_TIME, request));
    if (!request->source.ptr == !request->source_arn.ptr)
        return hf__fail(s, HF_INVALID,
                        "Invalid Request: Must provide exactly one of: sourceTableArn, "
                        "sourceTableName");
    if (request->source_arn.ptr && !hf__arn_split(request->source_arn, &parts))
        return hf__fail(s, HF_INVALID,
                        "One or more parameter values were invalid: sourceTableArn is not a valid "
                        "ARN");
    return hf__no_point_in_time(s, e, request->source.ptr ? request->source : request->source_arn);
}
