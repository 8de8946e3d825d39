/*
 * cli/cmd_iam.c: `holdfast iam outbox|events`: the policy that a user or role of AWS needs, and no
 * more.
 *
 * A transaction needs the permission for each of its actions, and none for itself; a batch needs
 * its own. Neither table has an index, so nothing is allowed on one. test/cli/iam_test.c compares
 * what is printed with what those who have these roles really call.
 */
#include "cli/commands.h"
#include "cli/database.h"

enum { ACTIONS_MAX = 16 };

enum role { ROLE_PRODUCER, ROLE_RELAY, ROLE_OPERATOR };
enum events_role { ROLE_WRITER, ROLE_READER, ROLE_ADMIN };

struct settings {
    struct hf_str table, partition, region, account;
    unsigned role; /* enum role, enum events_role */
    bool create;
    bool stream;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define CREATE_SPEC                                                                                \
    {                                                                                              \
        .kind = OPTION_FLAG, .name = "create",                                                     \
        .text = "May make the table when it is missing, too.", FIELD(create)                       \
    }
#define PLACE_SPECS                                                                                \
    {.kind = OPTION_TEXT,                                                                          \
     .name = "region",                                                                             \
     .value = "NAME",                                                                              \
     .fallback = "*",                                                                              \
     .text = "The region it is in.",                                                               \
     FIELD(region)},                                                                               \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "account",                                                                        \
         .value = "NUMBER",                                                                        \
         .fallback = "*",                                                                          \
         .text = "The account it is in.",                                                          \
         FIELD(account)},                                                                          \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "partition", .value = "NAME", .fallback = "aws",              \
        .text = "aws, aws-cn or aws-us-gov.", FIELD(partition)                                     \
    }

static const struct option_spec specs[] = {
    {.heading = "Who",
     .kind = OPTION_CHOICE,
     .letter = 'r',
     .name = "role",
     .choices = "producer relay operator",
     .fallback = "producer",
     .text = "Who emits events; who delivers them; who looks at them, retries and discards them.",
     FIELD(role)},
    CREATE_SPEC,
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
    PLACE_SPECS,
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
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*";

    for (size_t i = 0; i < text.len; i++)
        if (!memchr(plain, text.ptr[i], sizeof(plain) - 1))
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

/* Each of them once. */
static size_t add(const char **actions, size_t len, const char *const *more, size_t more_len)
{
    for (size_t i = 0; i < more_len; i++) {
        size_t at = 0;

        while (at < len && strcmp(actions[at], more[i]) != 0)
            at++;
        actions[at] = more[i];
        len = at == len ? len + 1 : len;
    }
    return len;
}

/* The statement of the table, with what making it needs, and that of its stream. */
static void print_policy(FILE *out, const struct settings *settings, const char *sid,
                         const char *const *needed, size_t needed_len, const char *const *create,
                         size_t create_len)
{
    static const char *const streams[] = {"DescribeStream", "GetShardIterator", "GetRecords"};
    const char *actions[ACTIONS_MAX];
    size_t len = add(actions, 0, needed, needed_len);

    if (settings->create)
        len = add(actions, len, create, create_len);
    fprintf(out, "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n");
    print_statement(out, sid, actions, len, settings, "", !settings->stream);
    if (settings->stream)
        print_statement(out, "OutboxStream", streams, COMMAND_LEN(streams), settings, "/stream/*",
                        true);
    fprintf(out, "  ]\n}\n");
}

/* Read the arguments. False: *ends says how to end. */
static bool read_settings(struct cli *cli, const struct options_table *table, size_t args_len,
                          const char *const *args, struct settings *settings, int *ends)
{
    struct options options;

    if (!hf__cli_options(cli, table, args_len, args, settings, &options, ends))
        return false;
    if (is_plain(settings->table) && is_plain(settings->region) && is_plain(settings->account) &&
        is_plain(settings->partition))
        return true;
    *ends = hf__cli_fail(cli, table->name, CLI_USAGE,
                         "a table, region, account or partition has letters that an ARN cannot "
                         "have");
    return false;
}

int hf__iam_outbox_run(struct cli *cli, size_t args_len, const char *const *args)
{
    static const char *const producer[] = {"DescribeTable", "DescribeTimeToLive", "GetItem",
                                           "PutItem", "BatchWriteItem"};
    static const char *const operator[] = {"DescribeTable", "DescribeTimeToLive",
                                           "GetItem",       "Query",
                                           "PutItem",       "UpdateItem",
                                           "DeleteItem",    "BatchWriteItem"};
    static const char *const relay[] = {"DescribeTable", "DescribeTimeToLive",
                                        "GetItem",       "Query",
                                        "PutItem",       "UpdateItem",
                                        "DeleteItem",    "BatchWriteItem",
                                        "PartiQLSelect"}; /* what an idle one asks with */
    static const char *const create[] = {"CreateTable", "UpdateTimeToLive",
                                         "Scan"}; /* is it another's table? */
    static const struct {
        const char *const *actions;
        size_t len;
    } roles[] = {[ROLE_PRODUCER] = {producer, COMMAND_LEN(producer)},
                 [ROLE_RELAY] = {relay, COMMAND_LEN(relay)},
                 [ROLE_OPERATOR] = {operator, COMMAND_LEN(operator)}};
    struct settings settings = {.create = false};
    int ends;

    if (!read_settings(cli, &hf__iam_outbox_options, args_len, args, &settings, &ends))
        return ends;
    print_policy(cli->out, &settings, "Outbox", roles[settings.role].actions,
                 roles[settings.role].len, create, COMMAND_LEN(create));
    return hf__cli_flushed(cli, CLI_OK);
}

/* ---- events --------------------------------------------------------------------------------- */

static const struct option_spec events_specs[] = {
    {.heading = "Who",
     .kind = OPTION_CHOICE,
     .letter = 'r',
     .name = "role",
     .choices = "writer reader admin",
     .fallback = "writer",
     .text = "Who appends, and reads streams; who reads all, follows, and keeps checkpoints; who "
             "looks after streams, sweeps, imports and verifies.",
     FIELD(role)},
    CREATE_SPEC,
    {.heading = "On what",
     .kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .fallback = "events",
     .text = "The table of the events.",
     FIELD(table)},
    PLACE_SPECS,
};

static const struct option_example events_examples[] = {
    {"holdfast iam events --role reader --region eu-west-1 --account 123456789012 > reader.json",
     "For a role that only follows."},
};

const struct options_table hf__iam_events_options = {
    .name = "iam events",
    .about = "Print the IAM policy that a writer, a reader or an administrator of an event store "
             "on DynamoDB needs. Readers write, too: they close the order up to what they have "
             "read. Buckets for blobs, and tables of projections and groups, need their own.",
    .specs = events_specs,
    .len = COMMAND_LEN(events_specs),
    .examples = events_examples,
    .examples_len = COMMAND_LEN(events_examples),
};

int hf__iam_events_run(struct cli *cli, size_t args_len, const char *const *args)
{
    static const char *const roles[][ACTIONS_MAX] = {
        [ROLE_WRITER] = {"DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem",
                         "UpdateItem", "DeleteItem", "ConditionCheckItem", "BatchWriteItem"},
        [ROLE_READER] = {"DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem",
                         "UpdateItem", "DeleteItem", "ConditionCheckItem"},
        [ROLE_ADMIN] = {"DescribeTable", "GetItem", "BatchGetItem", "Query", "Scan", "PutItem",
                        "UpdateItem", "DeleteItem", "ConditionCheckItem"},
    };
    static const char *const create[] = {"CreateTable", "Scan"}; /* is it another's table? */
    struct settings settings = {.create = false};
    size_t len = 0;
    int ends;

    if (!read_settings(cli, &hf__iam_events_options, args_len, args, &settings, &ends))
        return ends;
    while (roles[settings.role][len])
        len++;
    print_policy(cli->out, &settings, "Events", roles[settings.role], len, create,
                 COMMAND_LEN(create));
    return hf__cli_flushed(cli, CLI_OK);
}
