/*
 * cli/iam/iam.h: what the commands that print IAM policies have in common.
 */
#ifndef HF_CLI_IAM_IAM_H
#define HF_CLI_IAM_IAM_H

#include "cli/frame/command.h"

enum { IAM_ACTIONS_MAX = 16 };

struct iam_settings {
    struct hf_str table, positions, partition, region, account;
    unsigned role; /* which of the command's, from 0 */
    bool create;
    bool stream;
    bool partitioned;
    bool space_index;
};

#define IAM_FIELD(member) .offset = offsetof(struct iam_settings, member)

#define IAM_ROLE(choices_, fallback_, text_)                                                       \
    {                                                                                              \
        .heading = "Role", .kind = OPTION_CHOICE, .letter = 'r', .name = "role",                   \
        .choices = (choices_), .fallback = (fallback_), .text = (text_), IAM_FIELD(role)           \
    }
#define IAM_CREATE                                                                                 \
    {                                                                                              \
        .kind = OPTION_FLAG, .name = "create",                                                     \
        .text = "Allow creating the table if it is missing.", IAM_FIELD(create)                    \
    }
#define IAM_TABLE(fallback_, text_)                                                                \
    {                                                                                              \
        .heading = "Resources", .kind = OPTION_TEXT, .name = "table", .value = "NAME",             \
        .fallback = (fallback_), .text = (text_), IAM_FIELD(table)                                 \
    }
#define IAM_PLACE                                                                                  \
    {.kind = OPTION_TEXT,                                                                          \
     .name = "region",                                                                             \
     .value = "NAME",                                                                              \
     .fallback = "*",                                                                              \
     .text = "Region of the table.",                                                               \
     IAM_FIELD(region)},                                                                           \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "account",                                                                        \
         .value = "NUMBER",                                                                        \
         .fallback = "*",                                                                          \
         .text = "Account of the table.",                                                          \
         IAM_FIELD(account)},                                                                      \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "partition", .value = "NAME", .fallback = "aws",              \
        .text = "AWS partition: aws, aws-cn or aws-us-gov.", IAM_FIELD(partition)                  \
    }

/* What may be done on one thing. Lists of actions end with NULL. */
struct iam_statement {
    const char *sid;
    struct hf_str table;
    const char *tail; /* "", "/index/NAME", "/stream/STAR" */
    const char *const *actions;
    const char *const *more; /* further ones; NULL: none. What is in both lists is printed once */
};

/* Are the names such as an ARN can have? For a struct command. */
enum hf_status hf__iam_check(struct command_ctx *c);

/* Print the policy. Statements without an action are left out. */
enum hf_status hf__iam_print(struct command_ctx *c, const struct iam_statement *statements,
                             size_t len);

/* They open no database. */
#define IAM_COMMAND(check_, body_)                                                                 \
    .settings_size = sizeof(struct iam_settings), .check = (check_), .body = (body_)

#endif
