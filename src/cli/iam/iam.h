/*
 * cli/iam/iam.h: what the commands that print IAM policies have in common.
 */
#ifndef HF_CLI_IAM_IAM_H
#define HF_CLI_IAM_IAM_H

#include "cli/frame/commands.h"

#undef OPTIONS_OF
#define OPTIONS_OF struct iam_settings

enum { IAM_ACTIONS_MAX = 16 };

struct iam_settings {
    struct hf_str table, positions, partition, region, account;
    unsigned role; /* which of the command's, from 0 */
    bool create;
    bool stream;
    bool partitioned;
    bool space_index;
};

#define IAM_ROLE(choices_, fallback_, text_)                                                       \
    OPT_CHOICE("role", (choices_), role, (text_), .letter = 'r', .fallback = (fallback_),          \
               .heading = "Role")
#define IAM_CREATE OPT_FLAG("create", create, "Allow creating the table if it is missing.")
#define IAM_TABLE(fallback_, text_)                                                                \
    OPT_TEXT("table", "NAME", table, (text_), .fallback = (fallback_), .heading = "Resources")
#define IAM_PLACE                                                                                  \
    OPT_TEXT("region", "NAME", region, "Region of the table.", .fallback = "*"),                   \
        OPT_TEXT("account", "NUMBER", account, "Account of the table.", .fallback = "*"),          \
        OPT_TEXT("partition", "NAME", partition, "AWS partition: aws, aws-cn or aws-us-gov.",      \
                 .fallback = "aws")

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
