/*
 * server/profile.c: which operations others have.
 *
 * The operations that it has are listed here for each: of ScyllaDB's Alternator as of version 2026.1,
 * of DynamoDB Local 3.3 as found by asking it for each of ours. It refuses what is not in its list.
 */
#include "server/profile.h"

#include <holdfast/scope.h>

static bool alternator_has(enum hf_op op)
{
    switch (op) {
    case HF_OP_BATCH_GET_ITEM:
    case HF_OP_BATCH_WRITE_ITEM:
    case HF_OP_CREATE_TABLE:
    case HF_OP_DELETE_ITEM:
    case HF_OP_DELETE_TABLE:
    case HF_OP_DESCRIBE_CONTINUOUS_BACKUPS:
    case HF_OP_DESCRIBE_ENDPOINTS:
    case HF_OP_DESCRIBE_STREAM:
    case HF_OP_DESCRIBE_TABLE:
    case HF_OP_DESCRIBE_TIME_TO_LIVE:
    case HF_OP_GET_ITEM:
    case HF_OP_GET_RECORDS:
    case HF_OP_GET_SHARD_ITERATOR:
    case HF_OP_LIST_STREAMS:
    case HF_OP_LIST_TABLES:
    case HF_OP_LIST_TAGS_OF_RESOURCE:
    case HF_OP_PUT_ITEM:
    case HF_OP_QUERY:
    case HF_OP_SCAN:
    case HF_OP_TAG_RESOURCE:
    case HF_OP_UNTAG_RESOURCE:
    case HF_OP_UPDATE_ITEM:
    case HF_OP_UPDATE_TABLE:
    case HF_OP_UPDATE_TIME_TO_LIVE:
        return true;
    default:
        return false;
    }
}

static bool local_tags(enum hf_op op)
{
    return op == HF_OP_LIST_TAGS_OF_RESOURCE || op == HF_OP_TAG_RESOURCE ||
           op == HF_OP_UNTAG_RESOURCE;
}

static bool local_has(enum hf_op op)
{
    switch (op) {
    case HF_OP_BATCH_EXECUTE_STATEMENT:
    case HF_OP_BATCH_GET_ITEM:
    case HF_OP_BATCH_WRITE_ITEM:
    case HF_OP_CREATE_TABLE:
    case HF_OP_DELETE_ITEM:
    case HF_OP_DELETE_TABLE:
    case HF_OP_DESCRIBE_LIMITS:
    case HF_OP_DESCRIBE_STREAM:
    case HF_OP_DESCRIBE_TABLE:
    case HF_OP_DESCRIBE_TIME_TO_LIVE:
    case HF_OP_EXECUTE_STATEMENT:
    case HF_OP_EXECUTE_TRANSACTION:
    case HF_OP_GET_ITEM:
    case HF_OP_GET_RECORDS:
    case HF_OP_GET_SHARD_ITERATOR:
    case HF_OP_LIST_STREAMS:
    case HF_OP_LIST_TABLES:
    case HF_OP_PUT_ITEM:
    case HF_OP_QUERY:
    case HF_OP_SCAN:
    case HF_OP_TRANSACT_GET_ITEMS:
    case HF_OP_TRANSACT_WRITE_ITEMS:
    case HF_OP_UPDATE_ITEM:
    case HF_OP_UPDATE_TABLE:
    case HF_OP_UPDATE_TIME_TO_LIVE:
        return true;
    default:
        return false;
    }
}

bool hf__profile_has(struct hf_scope *s, enum server_profile profile, enum hf_op op,
                     struct hf_str name, struct hf_str *message)
{
    *message = (struct hf_str){0};
    switch (profile) {
    case PROFILE_ALTERNATOR:
        if (alternator_has(op))
            return true;
        *message = hf_scope_format(s, "Unsupported operation %.*s", HF_FMT(name));
        return false;
    case PROFILE_DYNAMODB_LOCAL:
        if (local_has(op))
            return true;
        *message = local_tags(op) ? HF_STR("Tagging is not currently supported in DynamoDB Local.")
                                  : HF_STR("An unknown operation was requested.");
        return false;
    case PROFILE_DYNAMODB:
        break;
    }
    return true;
}
