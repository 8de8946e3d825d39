/*
 * cli/iam/cmd_iam_patterns.c: `holdfast iam lock|kv|counter|once|limit|records|streams`: the policy
 * that a user or role of AWS needs for one of these patterns, and no more. See cmd_iam.c.
 *
 * What a transaction of the caller's own has besides is not in it: the actions that a pattern gives
 * for one (PutItem, UpdateItem, DeleteItem, ConditionCheckItem on its table) are.
 */
#include "cli/iam/iam.h"

/* What a role may do: on the table, on its index, and on a table that has no partitions. */
struct role {
    const char *table[IAM_ACTIONS_MAX];
    const char *index[IAM_ACTIONS_MAX];
    const char *spread[IAM_ACTIONS_MAX];
};

/* To make the table, see that it is nobody else's, and mark it. */
static const char *const create[] = {"CreateTable", "Scan", "UpdateItem", NULL};
static const char *const create_ttl[] = {"CreateTable", "UpdateTimeToLive", "Scan", "UpdateItem",
                                         NULL};

/* Lists of one partition, and of one namespace. */
static const char *const partitions[] = {"Query", NULL};

/* What the policy of a pattern is made of. */
struct policy {
    const char *sid;
    const struct role *roles;
    const char *const *makes;
};

/* The tables that are meant when none is named. */
static enum hf_status pattern_check(struct command_ctx *c)
{
    struct iam_settings *settings = c->settings;

    if (!settings->table.ptr)
        settings->table = settings->partitioned ? HF_STR("partitioned_keys") : HF_STR("keys");
    return hf__iam_check(c);
}

static enum hf_status pattern_policy(struct command_ctx *c)
{
    const struct iam_settings *settings = c->settings;
    const struct policy *policy = c->command->data;
    const struct role *role = &policy->roles[settings->role];
    struct iam_statement statements[] = {
        {policy->sid, settings->table, "", role->table, settings->create ? policy->makes : NULL},
        {"Shards", settings->table, "", settings->partitioned ? NULL : role->spread, NULL},
        {"Partitions", settings->table, "", settings->partitioned ? partitions : NULL, NULL},
        {"Index", settings->table, "/index/*", role->index, NULL},
        {"Namespaces", settings->table, "/index/*", settings->space_index ? partitions : NULL,
         NULL},
    };

    return hf__iam_print(c, statements, COMMAND_LEN(statements));
}

/* The tables of `iam NOUN`. */
#define POLICY(noun, sid, about_, makes, example_role)                                             \
    static const struct option_example noun##_examples[] = {                                       \
        {"holdfast iam " #noun " --role " example_role                                             \
         " --region eu-west-1 --account 123456789012 > " #noun ".json",                            \
         "For a role with only these permissions."},                                               \
    };                                                                                             \
    const struct options_table hf__iam_##noun##_options = {                                        \
        .name = "iam " #noun,                                                                      \
        .about = (about_),                                                                         \
        .specs = noun##_specs,                                                                     \
        .len = COMMAND_LEN(noun##_specs),                                                          \
        .examples = noun##_examples,                                                               \
        .examples_len = COMMAND_LEN(noun##_examples),                                              \
    };                                                                                             \
    static const struct policy noun##_policy = {sid, noun##_roles, makes};                         \
    const struct command hf__iam_##noun##_command = {IAM_COMMAND(pattern_check, pattern_policy),   \
                                                     .data = &noun##_policy};

/* ---- lock ----------------------------------------------------------------------------------- */

static const struct option_spec lock_specs[] = {
    IAM_ROLE(
        "holder operator", "holder",
        "holder: acquires locks and takes part in elections; operator: lists and breaks locks."),
    IAM_CREATE,
    IAM_TABLE("locks", "The table of the locks."),
    IAM_PLACE,
};

static const struct role lock_roles[] = {
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "UpdateItem", "ConditionCheckItem"},
     {NULL},
     {NULL}},
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "UpdateItem", "Scan"}, {NULL}, {NULL}},
};

POLICY(lock, "Locks",
       "Print the IAM policy for a holder or an operator of locks on DynamoDB. Add permissions for "
       "the tables that a lock protects.",
       create_ttl, "holder")

/* ---- keys, with partitions and without ------------------------------------------------------- */

#define KEYS_PARTITIONED OPT_FLAG("partitioned", partitioned, "The table is partitioned.")

/* ---- kv ------------------------------------------------------------------------------------- */

static const struct option_spec kv_specs[] = {
    IAM_ROLE("reader writer indexer", "reader",
             "reader: reads and lists keys; writer: also sets, changes and deletes them; indexer: "
             "adds the namespace index (kv index)."),
    IAM_CREATE,
    KEYS_PARTITIONED,
    OPT_FLAG("namespace-index", space_index, "The table has a namespace index."),
    IAM_TABLE(NULL, "Table; by default \"keys\", or \"partitioned_keys\" with partitions."),
    IAM_PLACE,
};

static const struct role kv_roles[] = {
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "BatchGetItem", "Scan"}, {NULL}, {NULL}},
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "BatchGetItem", "Scan", "PutItem",
      "DeleteItem", "ConditionCheckItem", "BatchWriteItem"},
     {NULL},
     {NULL}},
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "Scan", "UpdateItem", "UpdateTable"},
     {NULL},
     {NULL}},
};

POLICY(kv, "Keys",
       "Print the IAM policy for a reader, a writer or an indexer of keys, values and sets on "
       "DynamoDB. Add permissions for buckets of large values.",
       create_ttl, "writer")

/* ---- counter -------------------------------------------------------------------------------- */

static const struct option_spec counter_specs[] = {
    IAM_ROLE("reader writer", "reader",
             "reader: reads and lists counters; writer: also adds to, sets and deletes them, and "
             "takes numbers from sequences."),
    IAM_CREATE,
    KEYS_PARTITIONED,
    IAM_TABLE(NULL, "Table; by default \"keys\", or \"partitioned_keys\" with partitions."),
    IAM_PLACE,
};

static const struct role counter_roles[] = {
    {{"DescribeTable", "GetItem", "BatchGetItem", "Scan"}, {NULL}, {NULL}},
    {{"DescribeTable", "GetItem", "BatchGetItem", "Scan", "UpdateItem", "DeleteItem"},
     {NULL},
     {"PutItem"}}, /* a counter with shards that is deleted leaves word of how many it has */
};

POLICY(counter, "Counters",
       "Print the IAM policy for a reader or a writer of counters and sequences on DynamoDB.",
       create, "writer")

/* ---- once ----------------------------------------------------------------------------------- */

static const struct option_spec once_specs[] = {
    IAM_ROLE(
        "worker operator", "worker",
        "worker: runs jobs once; operator: lists them and clears them so that they run again."),
    IAM_CREATE,
    IAM_TABLE("once", "The table of run-once jobs."),
    IAM_PLACE,
};

static const struct role once_roles[] = {
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "UpdateItem", "DeleteItem"},
     {NULL},
     {NULL}},
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "Query", "DeleteItem"}, {NULL}, {NULL}},
};

POLICY(once, "Once",
       "Print the IAM policy for a worker or an operator of run-once jobs on DynamoDB. Add "
       "permissions for tables that are written in the same transaction.",
       create_ttl, "worker")

/* ---- limit ---------------------------------------------------------------------------------- */

static const struct option_spec limit_specs[] = {
    IAM_ROLE("caller viewer", "caller",
             "caller: counts, gives back and resets; viewer: only checks what would be allowed."),
    IAM_CREATE,
    IAM_TABLE("limits", "The table of the limits."),
    IAM_PLACE,
};

static const struct role limit_roles[] = {
    {{"DescribeTable", "DescribeTimeToLive", "GetItem", "UpdateItem", "DeleteItem"},
     {NULL},
     {NULL}},
    {{"DescribeTable", "DescribeTimeToLive", "GetItem"}, {NULL}, {NULL}},
};

POLICY(limit, "Limits", "Print the IAM policy for a caller or a viewer of limits on DynamoDB.",
       create_ttl, "caller")

/* ---- records -------------------------------------------------------------------------------- */

static const struct option_spec records_specs[] = {
    IAM_ROLE(
        "producer processor operator", "producer",
        "producer: puts records; processor: processes them; operator: lists, marks, resets and "
        "deletes them."),
    IAM_CREATE,
    IAM_TABLE("Records", "The table of the records."),
    IAM_PLACE,
};

static const char *const create_records[] = {"CreateTable", "Scan", "PutItem", NULL};

static const struct role records_roles[] = {
    {{"DescribeTable", "GetItem", "PutItem"}, {NULL}, {NULL}},
    /* Scan: records that other programs put are found by looking at all of them. */
    {{"DescribeTable", "GetItem", "Query", "UpdateItem", "Scan"}, {"Query"}, {NULL}},
    {{"DescribeTable", "GetItem", "BatchGetItem", "Query", "UpdateItem", "DeleteItem", "Scan"},
     {"Query"},
     {NULL}},
};

POLICY(records, "Records",
       "Print the IAM policy for a producer, a processor or an operator of records on DynamoDB.",
       create_records, "processor")

/* ---- streams -------------------------------------------------------------------------------- */

enum streams_role { ROLE_CONSUMER, ROLE_READER };

static const struct option_spec streams_specs[] = {
    IAM_ROLE("consumer reader", "consumer",
             "consumer: reads changes and stores its position; reader: reads without a position."),
    OPT_FLAG("create", create, "Allow creating the table of positions if it is missing."),
    OPT_TEXT("table", "NAME", table, "The table whose stream is read; required.",
             .heading = "Resources"),
    OPT_TEXT("positions", "NAME", positions, "The table of positions.", .fallback = "checkpoints"),
    IAM_PLACE,
};

static const struct option_example streams_examples[] = {
    {"holdfast iam streams --table orders --region eu-west-1 --account 123456789012",
     "For a consumer of a table's changes."},
};

const struct options_table hf__iam_streams_options = {
    .name = "iam streams",
    .about = "Print the IAM policy for a consumer of a table's changes on DynamoDB.",
    COMMAND_SPECS(streams),
};

static enum hf_status streams_policy(struct command_ctx *c)
{
    static const char *const source[] = {"DescribeTable", NULL};
    static const char *const changes[] = {"DescribeStream", "GetShardIterator", "GetRecords", NULL};
    static const char *const positions[] = {
        "DescribeTable", "DescribeTimeToLive", "GetItem", "Query", "PutItem", "UpdateItem", NULL};
    /* Its keys are those of an event store: it is checked not to be one. */
    static const char *const create_checked[] = {"CreateTable", "UpdateTimeToLive",   "Scan",
                                                 "UpdateItem",  "ConditionCheckItem", NULL};
    const struct iam_settings *settings = c->settings;
    struct iam_statement statements[] = {
        {"Table", settings->table, "", source, NULL},
        {"Changes", settings->table, "/stream/*", changes, NULL},
        {"Positions", settings->positions, "", settings->role == ROLE_CONSUMER ? positions : NULL,
         settings->create ? create_checked : NULL},
    };

    return hf__iam_print(c, statements, COMMAND_LEN(statements));
}

const struct command hf__iam_streams_command = {IAM_COMMAND(hf__iam_check, streams_policy)};
