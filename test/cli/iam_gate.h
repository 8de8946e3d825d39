/*
 * test/cli/iam_gate.h: a database behind an IAM policy: what the policy does not allow is denied,
 * and what it allows and nobody asked for is found.
 *
 *     gate_open(&gate, s, db, IAM(lock), "--role", "holder");
 *     ... work on &gate.base ...
 *     gate_check(&gate);
 *
 * As the service has it: a transaction needs the permission for each of its actions and none for
 * itself, a batch its own; a query of an index is allowed on the index, calls of streams on the
 * stream. A call that names no table, GetRecords, is allowed when it is on any stream.
 */
#ifndef HF_TEST_CLI_IAM_GATE_H
#define HF_TEST_CLI_IAM_GATE_H

#include "cli/frame/cli.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "db/db.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { GATE_RULES = 64 };

struct gate_rule {
    char action[40];
    char resource[200]; /* behind ":table/" */
    bool used;
};

struct gate {
    struct hf_db base;
    struct hf_db *inner;
    struct gate_rule rules[GATE_RULES];
    size_t len;
    pthread_mutex_t mutex; /* guards what follows, and `used`: patterns have threads */
    size_t denied;
};

/* Does the resource of a rule cover what was asked for? A star at its end stands for anything. */
static inline bool gate_covers(const char *resource, const char *asked)
{
    size_t len = strlen(resource);

    if (len && resource[len - 1] == '*')
        return strncmp(resource, asked, len - 1) == 0;
    return strcmp(resource, asked) == 0;
}

static inline bool gate_pass(struct gate *gate, const char *action, struct hf_str table,
                             const char *tail)
{
    char asked[300];
    bool passes = false;

    snprintf(asked, sizeof(asked), "%.*s%s", HF_FMT(table), tail);
    pthread_mutex_lock(&gate->mutex);
    for (size_t i = 0; i < gate->len && !passes; i++) {
        struct gate_rule *rule = &gate->rules[i];

        if (strcmp(rule->action, action) != 0)
            continue;
        passes = table.len ? gate_covers(rule->resource, asked)
                           : strstr(rule->resource, "/stream/") != NULL;
        rule->used |= passes;
    }
    if (!passes) {
        gate->denied++;
        fprintf(stderr, "the policy lacks %s on %s\n", action, asked);
    }
    pthread_mutex_unlock(&gate->mutex);
    return passes;
}

static inline bool gate_pass_action(struct gate *gate, const struct hf_transact_write *action)
{
    if (action->put)
        return gate_pass(gate, "PutItem", action->put->table, "");
    if (action->del)
        return gate_pass(gate, "DeleteItem", action->del->table, "");
    if (action->check)
        return gate_pass(gate, "ConditionCheckItem", action->check->table, "");
    return gate_pass(gate, "UpdateItem", action->update->table, "");
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL */
static inline bool gate_pass_stream(struct gate *gate, const char *action, struct hf_str arn)
{
    struct hf_str table = {"?", 1};

    for (size_t i = 0; i + 6 < arn.len; i++)
        if (memcmp(arn.ptr + i, "table/", 6) == 0) {
            const char *end = memchr(arn.ptr + i + 6, '/', arn.len - i - 6);

            table = hf_str_of(arn.ptr + i + 6, end ? (size_t)(end - arn.ptr) - i - 6 : 0);
        }
    return gate_pass(gate, action, table, "/stream/1");
}

/* SELECT ... FROM "TABLE" ... */
static inline bool gate_pass_statement(struct gate *gate, struct hf_str statement)
{
    struct hf_str table = {"?", 1};

    for (size_t i = 0; i + 6 < statement.len; i++)
        if (memcmp(statement.ptr + i, "FROM \"", 6) == 0) {
            const char *end = memchr(statement.ptr + i + 6, '"', statement.len - i - 6);

            table =
                hf_str_of(statement.ptr + i + 6, end ? (size_t)(end - statement.ptr) - i - 6 : 0);
        }
    return gate_pass(gate, "PartiQLSelect", table, "");
}

static inline bool gate_pass_all(struct gate *gate, enum hf_op op, const void *request)
{
    const char *name = hf_op_name(op).ptr; /* with a NUL */
    bool passes = true;

    switch (op) {
    case HF_OP_TRANSACT_WRITE_ITEMS: {
        const struct hf_transact_write_items *tx = request;

        for (size_t i = 0; i < tx->actions_len; i++)
            passes &= gate_pass_action(gate, &tx->actions[i]);
        return passes;
    }
    case HF_OP_TRANSACT_GET_ITEMS: {
        const struct hf_transact_get_items *tx = request;

        for (size_t i = 0; i < tx->actions_len; i++)
            passes &= gate_pass(gate, "GetItem", tx->actions[i].get->table, "");
        return passes;
    }
    case HF_OP_BATCH_GET_ITEM: {
        const struct hf_batch_get_item *batch = request;

        for (size_t i = 0; i < batch->tables_len; i++)
            passes &= gate_pass(gate, name, batch->tables[i].table, "");
        return passes;
    }
    case HF_OP_BATCH_WRITE_ITEM: {
        const struct hf_batch_write_item *batch = request;

        for (size_t i = 0; i < batch->tables_len; i++)
            passes &= gate_pass(gate, name, batch->tables[i].table, "");
        return passes;
    }
    case HF_OP_QUERY: {
        const struct hf_query *query = request;

        return gate_pass(gate, name, query->table, query->index.len ? "/index/1" : "");
    }
    case HF_OP_SCAN: {
        const struct hf_scan *scan = request;

        return gate_pass(gate, name, scan->table, scan->index.len ? "/index/1" : "");
    }
    case HF_OP_DESCRIBE_STREAM:
        return gate_pass_stream(gate, name, ((const struct hf_describe_stream *)request)->arn);
    case HF_OP_GET_SHARD_ITERATOR:
        return gate_pass_stream(gate, name, ((const struct hf_get_shard_iterator *)request)->arn);
    case HF_OP_EXECUTE_STATEMENT: /* patterns have no others than SELECT */
        return gate_pass_statement(gate, ((const struct hf_execute_statement *)request)->statement);
    case HF_OP_GET_RECORDS:
        return gate_pass(gate, name, hf_str_of(NULL, 0), "");
    case HF_OP_GET_ITEM:
        return gate_pass(gate, name, ((const struct hf_get_item *)request)->table, "");
    case HF_OP_PUT_ITEM:
        return gate_pass(gate, name, ((const struct hf_put_item *)request)->table, "");
    case HF_OP_UPDATE_ITEM:
        return gate_pass(gate, name, ((const struct hf_update_item *)request)->table, "");
    case HF_OP_DELETE_ITEM:
        return gate_pass(gate, name, ((const struct hf_delete_item *)request)->table, "");
    case HF_OP_CREATE_TABLE:
        return gate_pass(gate, name, ((const struct hf_create_table *)request)->table, "");
    case HF_OP_UPDATE_TABLE:
        return gate_pass(gate, name, ((const struct hf_update_table *)request)->table, "");
    case HF_OP_DESCRIBE_TABLE:
        return gate_pass(gate, name, ((const struct hf_describe_table *)request)->table, "");
    case HF_OP_DESCRIBE_TIME_TO_LIVE:
        return gate_pass(gate, name, ((const struct hf_describe_time_to_live *)request)->table, "");
    case HF_OP_UPDATE_TIME_TO_LIVE:
        return gate_pass(gate, name, ((const struct hf_update_time_to_live *)request)->table, "");
    default:
        return gate_pass(gate, name, HF_STR("?"), "");
    }
}

static inline enum hf_status gate_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                       const void *request, void *response)
{
    struct gate *gate = (struct gate *)(void *)db;

    if (!gate_pass_all(gate, op, request))
        return hf_scope_fail(s, HF_DENIED, "%s is not allowed", hf_op_name(op).ptr);
    return hf_db_call(s, gate->inner, op, request, response);
}

static inline void gate_read(struct gate *gate, struct hf_scope *s, struct hf_str policy)
{
    struct hf_str error;
    const struct json_node *json = hf__cli_json_read(s, policy, &error);
    const struct json_node *statement;

    CHECK(json != NULL);
    for (statement = hf__cli_json_member(json, "Statement")->first; statement;
         statement = statement->next) {
        const char *resource = hf__cli_json_member(statement, "Resource")->text.ptr;
        const char *table = strstr(resource, ":table/");
        const struct json_node *action = hf__cli_json_member(statement, "Action")->first;

        CHECK(table && strncmp(resource, "arn:aws:dynamodb:*:*:table/", 27) == 0);
        for (; action; action = action->next) {
            struct gate_rule *rule = &gate->rules[gate->len++];

            CHECK(gate->len <= GATE_RULES);
            CHECK(strncmp(action->text.ptr, "dynamodb:", 9) == 0);
            snprintf(rule->action, sizeof(rule->action), "%s", action->text.ptr + 9);
            snprintf(rule->resource, sizeof(rule->resource), "%s", table + 7);
        }
    }
}

/* A command that prints a policy: IAM(lock) */
struct gate_command {
    const struct command *command;
    const struct options_table *options;
};

#define IAM(noun)                                                                                  \
    (struct gate_command)                                                                          \
    {                                                                                              \
        &hf__iam_##noun##_command, &hf__iam_##noun##_options                                       \
    }

/* What the command prints with these arguments, which end with NULL, is the policy. */
static inline void gate_open_with(struct gate *gate, struct hf_scope *s, struct hf_db *inner,
                                  struct gate_command command, const char *const *args)
{
    static const struct db_calls calls = {.call = gate_call};
    char *out = NULL;
    size_t len = 0, args_len = 0;
    struct cli cli = {.scope = s, .out = open_memstream(&out, &len), .err = stderr, .width = 80};

    *gate = (struct gate){.base = {.calls = &calls},
                          .inner = inner,
                          .mutex = PTHREAD_MUTEX_INITIALIZER};
    while (args[args_len])
        args_len++;
    CHECK_INT(CLI_OK, hf__command_run(&cli, command.command, command.options, args_len, args));
    CHECK_INT(0, fclose(cli.out));
    gate_read(gate, s, hf_str_of(out, len));
    free(out);
}

#define gate_open(gate, s, inner, command, ...)                                                    \
    gate_open_with(gate, s, inner, command, (const char *const[]){__VA_ARGS__, NULL})

/* Was it asked for, and allowed? */
static inline bool gate_used(struct gate *gate, const char *action)
{
    bool used = false;

    pthread_mutex_lock(&gate->mutex);
    for (size_t i = 0; i < gate->len; i++)
        used |= gate->rules[i].used && strcmp(gate->rules[i].action, action) == 0;
    pthread_mutex_unlock(&gate->mutex);
    return used;
}

/* All that was asked for is in the policy, and nothing else. */
static inline void gate_check(struct gate *gate)
{
    size_t unused = 0;

    for (size_t i = 0; i < gate->len; i++) {
        if (!gate->rules[i].used)
            fprintf(stderr, "nobody needs %s on %s\n", gate->rules[i].action,
                    gate->rules[i].resource);
        unused += !gate->rules[i].used;
    }
    CHECK_INT(0, gate->denied);
    CHECK_INT(0, unused);
}

#endif
