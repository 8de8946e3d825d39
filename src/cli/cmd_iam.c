/*
 * cli/cmd_iam.c: `holdfast iam outbox`: the policy that a user or role of AWS needs, and no more.
 *
 * A transaction needs the permission for each of its actions, and none for itself; a batch needs
 * its own. The outbox has no index, so nothing is allowed on one. test/cli/iam_test.c compares what
 * is printed with what a producer, a relay and an operator really call.
 */
#include "cli/commands.h"
#include "cli/database.h"

enum { ACTIONS_MAX = 16 };

enum role { ROLE_PRODUCER, ROLE_RELAY, ROLE_OPERATOR };

struct settings {
    struct hf_str table, partition, region, account;
    unsigned role; /* enum role */
    bool create;
    bool stream;
};

#define FIELD(member) .offset = offsetof(struct settings, member)

static const struct option_spec specs[] = {
    {.heading = "Who",
     .kind = OPTION_CHOICE,
     .letter = 'r',
     .name = "role",
     .choices = "producer relay operator",
     .fallback = "producer",
     .text = "Who emits events; who delivers them; who looks at them, retries and discards them.",
     FIELD(role)},
    {.kind = OPTION_FLAG,
     .name = "create",
     .text = "May make the table when it is missing, too.",
     FIELD(create)},
    {.kind = OPTION_FLAG,
     .name = "stream",
     .text = "May read the table's stream, too.",
     FIELD(stream)},
    {.heading = "On what",
     .kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .fallback = "outbox",
     .text = "The table of the outbox.",
     FIELD(table)},
    {.kind = OPTION_TEXT,
     .name = "region",
     .value = "NAME",
     .fallback = "*",
     .text = "The region it is in.",
     FIELD(region)},
    {.kind = OPTION_TEXT,
     .name = "account",
     .value = "NUMBER",
     .fallback = "*",
     .text = "The account it is in.",
     FIELD(account)},
    {.kind = OPTION_TEXT,
     .name = "partition",
     .value = "NAME",
     .fallback = "aws",
     .text = "aws, aws-cn or aws-us-gov.",
     FIELD(partition)},
};

static const struct option_example examples[] = {
    {"holdfast iam outbox --role relay --region eu-west-1 --account 123456789012 > relay.json",
     "For a role that only delivers."},
};

const struct options_table hf__iam_outbox_options = {
    .name = "iam outbox",
    .about =
        "Print the IAM policy that a producer, a relay or an operator of an outbox on DynamoDB "
        "needs. Tables of the business that events are emitted with need their own.",
    .specs = specs,
    .len = COMMAND_LEN(specs),
    .examples = examples,
    .examples_len = COMMAND_LEN(examples),
};

static bool is_plain(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*",
                    text.ptr[i]))
            return false;
    return text.len > 0;
}

static void print_statement(FILE *out, const char *sid, const char *const *actions, size_t len,
                            const struct settings *settings, const char *tail, bool last)
{
    fprintf(out, "    {\n      \"Sid\": \"%s\",\n      \"Effect\": \"Allow\",\n", sid);
    fprintf(out, "      \"Action\": [\n");
    for (size_t i = 0; i < len; i++)
        fprintf(out, "        \"dynamodb:%s\"%s\n", actions[i], i + 1 < len ? "," : "");
    fprintf(out,
            "      ],\n      \"Resource\": \"arn:%.*s:dynamodb:%.*s:%.*s:table/%.*s%s\"\n    }%s\n",
            HF_FMT(settings->partition), HF_FMT(settings->region), HF_FMT(settings->account),
            HF_FMT(settings->table), tail, last ? "" : ",");
}

static size_t add(const char **actions, size_t len, const char *const *more, size_t more_len)
{
    for (size_t i = 0; i < more_len; i++)
        actions[len++] = more[i];
    return len;
}

static void print_policy(FILE *out, const struct settings *settings)
{
    static const char *const producer[] = {"DescribeTable", "DescribeTimeToLive", "GetItem",
                                           "PutItem", "BatchWriteItem"};
    static const char *const worker[] = {"DescribeTable", "DescribeTimeToLive",
                                         "GetItem",       "Query",
                                         "PutItem",       "UpdateItem",
                                         "DeleteItem",    "BatchWriteItem"};
    static const char *const create[] = {"CreateTable", "UpdateTimeToLive"};
    static const char *const streams[] = {"DescribeStream", "GetShardIterator", "GetRecords"};
    const char *actions[ACTIONS_MAX];
    size_t len = 0;

    len = settings->role == ROLE_PRODUCER ? add(actions, len, producer, COMMAND_LEN(producer))
                                          : add(actions, len, worker, COMMAND_LEN(worker));
    if (settings->create)
        len = add(actions, len, create, COMMAND_LEN(create));
    fprintf(out, "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n");
    print_statement(out, "Outbox", actions, len, settings, "", !settings->stream);
    if (settings->stream)
        print_statement(out, "OutboxStream", streams, COMMAND_LEN(streams), settings, "/stream/*",
                        true);
    fprintf(out, "  ]\n}\n");
}

int hf__iam_outbox_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.create = false};
    struct options options;
    int ends;

    if (!hf__cli_options(cli, &hf__iam_outbox_options, args_len, args, &settings, &options, &ends))
        return ends;
    if (!is_plain(settings.table) || !is_plain(settings.region) || !is_plain(settings.account) ||
        !is_plain(settings.partition))
        return hf__cli_fail(cli, "iam outbox", CLI_USAGE,
                            "a table, region, account or partition has letters that an ARN cannot "
                            "have");
    print_policy(cli->out, &settings);
    return hf__cli_flushed(cli, CLI_OK);
}
