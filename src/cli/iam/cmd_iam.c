/*
 * cli/iam/cmd_iam.c: `holdfast iam outbox|events`: the policy that a user or role of AWS needs, and no
 * more.
 *
 * A transaction needs the permission for each of its actions, and none for itself; a batch needs
 * its own. Neither table has an index, so nothing is allowed on one. test/cli/iam_test.c
 * lets those who have these roles work behind a gate that denies what is not printed.
 *
 * cmd_iam_patterns.c has the other patterns.
 */
#include "cli/iam/iam.h"

enum role { ROLE_PRODUCER, ROLE_RELAY, ROLE_OPERATOR };
enum events_role { ROLE_WRITER, ROLE_READER, ROLE_ADMIN };

/* ---- policies ------------------------------------------------------------------------------- */

static bool is_plain(struct hf_str text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*";

    for (size_t i = 0; i < text.len; i++)
        if (!memchr(plain, text.ptr[i], sizeof(plain) - 1))
            return false;
    return text.len > 0;
}

enum hf_status hf__iam_check(struct command_ctx *c)
{
    struct iam_settings *settings = c->settings;

    if (!settings->positions.ptr)
        settings->positions = HF_STR("checkpoints");
    if (!settings->table.ptr)
        return hf__command_missing(c, "--table");
    if (is_plain(settings->table) && is_plain(settings->positions) && is_plain(settings->region) &&
        is_plain(settings->account) && is_plain(settings->partition))
        return HF_OK;
    return hf__command_fail(
        c, CLI_USAGE,
        "a table, region, account or partition contains characters that an ARN cannot have");
}

/* Each of them once. */
static size_t actions_add(const char **actions, size_t len, const char *const *more)
{
    for (; more && *more; more++) {
        size_t at = 0;

        while (at < len && strcmp(actions[at], *more) != 0)
            at++;
        actions[at] = *more;
        len = at == len ? len + 1 : len;
    }
    return len;
}

static void print_statement(FILE *out, const struct iam_settings *settings,
                            const struct iam_statement *statement, bool first)
{
    const char *actions[2 * IAM_ACTIONS_MAX];
    size_t len = actions_add(actions, actions_add(actions, 0, statement->actions), statement->more);

    fprintf(out, "%s    {\n      \"Sid\": \"%s\",\n      \"Effect\": \"Allow\",\n",
            first ? "" : ",\n", statement->sid);
    fprintf(out, "      \"Action\": [\n");
    for (size_t i = 0; i < len; i++)
        fprintf(out, "        \"dynamodb:%s\"%s\n", actions[i], i + 1 < len ? "," : "");
    fprintf(out,
            "      ],\n      \"Resource\": \"arn:%.*s:dynamodb:%.*s:%.*s:table/%.*s%s\"\n    }",
            HF_FMT(settings->partition), HF_FMT(settings->region), HF_FMT(settings->account),
            HF_FMT(statement->table), statement->tail);
}

enum hf_status hf__iam_print(struct command_ctx *c, const struct iam_statement *statements,
                             size_t len)
{
    FILE *out = c->cli->out;
    bool first = true;

    fprintf(out, "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n");
    for (size_t i = 0; i < len; i++) {
        if (!statements[i].actions || !statements[i].actions[0])
            continue;
        print_statement(out, c->settings, &statements[i], first);
        first = false;
    }
    fprintf(out, "\n  ]\n}\n");
    return HF_OK;
}

/* ---- outbox --------------------------------------------------------------------------------- */

static const struct option_spec specs[] = {
    IAM_ROLE("producer relay operator", "producer",
             "producer: emits events; relay: delivers them; operator: lists, retries and discards "
             "them."),
    IAM_CREATE,
    OPT_FLAG("stream", stream, "Allow reading the table's stream."),
    IAM_TABLE("outbox", "The table of the outbox."),
    IAM_PLACE,
};

static const struct option_example examples[] = {
    {"holdfast iam outbox --role relay --region eu-west-1 --account 123456789012 > relay.json",
     "For a role that only delivers."},
};

const struct options_table hf__iam_outbox_options = {
    .name = "iam outbox",
    .about =
        "Print the IAM policy for a producer, a relay or an operator of an outbox on DynamoDB. "
        "Add permissions for your own tables that are written in the same transactions.",
    COMMAND_TABLE(specs, examples),
};

static enum hf_status outbox_policy(struct command_ctx *c)
{
    static const char *const producer[] = {"DescribeTable", "DescribeTimeToLive", "GetItem",
                                           "PutItem",       "BatchWriteItem",     NULL};
    static const char *const operator[] = {
        "DescribeTable", "DescribeTimeToLive", "GetItem",        "Query", "PutItem",
        "UpdateItem",    "DeleteItem",         "BatchWriteItem", NULL};
    static const char *const relay[] = {"DescribeTable",
                                        "DescribeTimeToLive",
                                        "GetItem",
                                        "Query",
                                        "PutItem",
                                        "UpdateItem",
                                        "DeleteItem",
                                        "BatchWriteItem",
                                        "PartiQLSelect", /* when idle */
                                        NULL};
    static const char *const *const roles[] = {
        [ROLE_PRODUCER] = producer, [ROLE_RELAY] = relay, [ROLE_OPERATOR] = operator};
    static const char *const create[] = {"CreateTable", "UpdateTimeToLive", /* and the mark: */
                                         "Scan", "ConditionCheckItem", NULL};
    static const char *const streams[] = {"DescribeStream", "GetShardIterator", "GetRecords", NULL};
    const struct iam_settings *settings = c->settings;
    struct iam_statement statements[] = {
        {"Outbox", settings->table, "", roles[settings->role], settings->create ? create : NULL},
        {"OutboxStream", settings->table, "/stream/*", settings->stream ? streams : NULL, NULL},
    };

    return hf__iam_print(c, statements, COMMAND_LEN(statements));
}

const struct command hf__iam_outbox_command = {IAM_COMMAND(hf__iam_check, outbox_policy)};

/* ---- events --------------------------------------------------------------------------------- */

static const struct option_spec events_specs[] = {
    IAM_ROLE("writer reader admin", "writer",
             "writer: appends and reads streams; reader: reads all streams, subscribes and stores "
             "checkpoints; admin: manages streams, sweeps, imports and verifies."),
    IAM_CREATE,
    IAM_TABLE("events", "The table of the events."),
    IAM_PLACE,
};

static const struct option_example events_examples[] = {
    {"holdfast iam events --role reader --region eu-west-1 --account 123456789012 > reader.json",
     "For a role that only subscribes."},
};

const struct options_table hf__iam_events_options = {
    .name = "iam events",
    .about =
        "Print the IAM policy for a writer, a reader or an administrator of an event store on "
        "DynamoDB. Readers need write permissions, too: they close the global order up to what "
        "they have read. Add permissions for blob buckets and for tables of projections and "
        "groups.",
    COMMAND_SPECS(events),
};

static enum hf_status events_policy(struct command_ctx *c)
{
    static const char *const roles[][IAM_ACTIONS_MAX] = {
        [ROLE_WRITER] = {"DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem",
                         "UpdateItem", "DeleteItem", "ConditionCheckItem", "BatchWriteItem"},
        [ROLE_READER] = {"DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem",
                         "UpdateItem", "DeleteItem", "ConditionCheckItem"},
        [ROLE_ADMIN] = {"DescribeTable", "GetItem", "BatchGetItem", "Query", "Scan", "PutItem",
                        "UpdateItem", "DeleteItem", "ConditionCheckItem"},
    };
    static const char *const create[] = {"CreateTable", "Scan", /* is it another's table? */
                                         NULL};
    const struct iam_settings *settings = c->settings;
    return hf__iam_print(c,
                         &(struct iam_statement){"Events", settings->table, "",
                                                 roles[settings->role],
                                                 settings->create ? create : NULL},
                         1);
}

const struct command hf__iam_events_command = {IAM_COMMAND(hf__iam_check, events_policy)};
