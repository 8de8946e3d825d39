/*
 * cli/iam/iam.h: what the commands that print IAM policies have in common.
 */
#ifndef HF_CLI_IAM_IAM_H
#define HF_CLI_IAM_IAM_H

#include "cli/frame/cli.h"
#include "cli/frame/options.h"

enum { IAM_ACTIONS_MAX = 16 };

struct iam_settings {
    struct hf_str table, positions, partition, region, account;
    unsigned role; /* which of the command's, from 0 */
    bool create;
    bool stream;
    bool partitioned;
    bool space_index;
    const char *tables[2]; /* those that are meant when none is named, without and with partitions;
                              NULL: it has to be named */
};

#define IAM_FIELD(member) .offset = offsetof(struct iam_settings, member)

#define IAM_ROLE(choices_, fallback_, text_)                                                       \
    {                                                                                              \
        .heading = "Who", .kind = OPTION_CHOICE, .letter = 'r', .name = "role",                    \
        .choices = (choices_), .fallback = (fallback_), .text = (text_), IAM_FIELD(role)           \
    }
#define IAM_CREATE                                                                                 \
    {                                                                                              \
        .kind = OPTION_FLAG, .name = "create",                                                     \
        .text = "May make the table when it is missing, too.", IAM_FIELD(create)                   \
    }
#define IAM_TABLE(fallback_, text_)                                                                \
    {                                                                                              \
        .heading = "On what", .kind = OPTION_TEXT, .name = "table", .value = "NAME",               \
        .fallback = (fallback_), .text = (text_), IAM_FIELD(table)                                 \
    }
#define IAM_PLACE                                                                                  \
    {.kind = OPTION_TEXT,                                                                          \
     .name = "region",                                                                             \
     .value = "NAME",                                                                              \
     .fallback = "*",                                                                              \
     .text = "The region it is in.",                                                               \
     IAM_FIELD(region)},                                                                           \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "account",                                                                        \
         .value = "NUMBER",                                                                        \
         .fallback = "*",                                                                          \
         .text = "The account it is in.",                                                          \
         IAM_FIELD(account)},                                                                      \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "partition", .value = "NAME", .fallback = "aws",              \
        .text = "aws, aws-cn or aws-us-gov.", IAM_FIELD(partition)                                 \
    }

/* What may be done on one thing. Lists of actions end with NULL. */
struct iam_statement {
    const char *sid;
    struct hf_str table;
    const char *tail; /* "", "/index/NAME", "/stream/STAR" */
    const char *const *actions;
    const char *const *more; /* further ones; NULL: none. What is in both lists is printed once */
};

/* Read the arguments; `tables` is the caller's. False: *ends says how to end. */
bool hf__iam_settings(struct cli *cli, const struct options_table *table, size_t args_len,
                      const char *const *args, struct iam_settings *settings, int *ends);

/* Print the policy; returns how to end. Statements without an action are left out. */
int hf__iam_print(struct cli *cli, const struct iam_settings *settings,
                  const struct iam_statement *statements, size_t len);

#endif
