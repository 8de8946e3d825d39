/*
 * bind/bind_limit.c: methods of limits. What is not allowed is a result, not an error: languages ask
 * for `allowed` and `retry_ms`.
 */
#include <holdfast/limit.h>

#include "bind/table.h"

static enum hf_status open_limits(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                  bool create, const void *options, void **object)
{
    struct hf_limit_table_options o = {.size = sizeof(o)};
    struct hf_limit_table *limits;

    if (options)
        o = *(const struct hf_limit_table_options *)options;
    o.table = table;
    o.no_create = !create;
    TRY(hf_limit_table_open(s, hf__bind_db(bind), &o, &limits));
    *object = limits;
    return HF_OK;
}

static void close_limits(void *object)
{
    hf_limit_table_close(object);
}

static const struct bind_opener limit_kind = {.table = "limits",
                                              .open = open_limits,
                                              .close = close_limits};

struct limit_open_args {
    struct hf_str table;
    struct hf_limit_table_options o;
};

#define T limit_open_args
ARGUMENTS(limit_open, TEXT("table", table), BOOL("adopt", o.adopt),
          TEXT("hash_attribute", o.hash_attribute), TEXT("expires_attribute", o.expires_attribute));
#undef T
NO_RESULT(limit_open);

BIND_FUNCTION(limit_open)
{
    struct limit_open_args *args = args_in;

    (void)result_out;
    args->o.size = sizeof(args->o);
    return hf__bind_open_with(s, bind, &limit_kind, hf__bind_take_text(&args->table),
                              &hf__bind_limit_open_args, args, &args->o);
}

static const char *const limit_kinds[] = {NULL, "attempts", "fixed", "sliding", "rate", NULL};

#define T hf_limit_rule
PART(limit_rule, CHOICE("kind", kind, limit_kinds), U32("limit", limit, REQUIRED),
     U32("window_ms", window_ms, REQUIRED), U32("burst", burst), U32("slices", slices),
     U32("lockout_ms", lockout_ms), U32("lockout_max_ms", lockout_max_ms));
#undef T
#define T hf_limit_verdict
PART(limit_verdict, BOOL("allowed", allowed), BOOL("unreached", unreached), BOOL("locked", locked),
     U64("used", used), U64("left", left), U32("retry_ms", retry_ms), U32("reset_ms", reset_ms),
     U32("lockouts", lockouts), I64("at_us", at_us), ITEM("context", context),
     TEXT("window", window), TEXT("id", id), U32("cost", cost));
RESULT_AS(limit_take, limit_verdict);
RESULT_AS(limit_peek, limit_verdict);
#undef T

struct limit_args {
    struct hf_str table, name;
    struct hf_limit_rule rule;
    struct hf_limit_options o;
    struct hf_limit_verdict *verdict;
};

#define T limit_args
MEMBERS(limit_take_part, TEXT("table", table), TEXT("name", name, REQUIRED),
        STRUCT("rule", rule, limit_rule, REQUIRED), U32("cost", o.cost), ITEM("context", o.context),
        BOOL("fail_open", o.fail_open), U32("reach_ms", o.reach_ms));
ARGUMENTS_AS(limit_take, limit_take_part);
ARGUMENTS_AS(limit_peek, limit_take_part);
ARGUMENTS_AS(limit_take_actions, limit_take_part);
ARGUMENTS(limit_refund, TEXT("table", table), TEXT("name", name, REQUIRED),
          STRUCT("rule", rule, limit_rule, REQUIRED),
          POINTER("verdict", verdict, limit_verdict, REQUIRED));
ARGUMENTS(limit_clear, TEXT("table", table), TEXT("name", name, REQUIRED),
          POINTER("verdict", verdict, limit_verdict));
#undef T
NO_RESULT(limit_refund);
NO_RESULT(limit_clear);

static enum hf_status find_limits(struct hf_scope *s, struct hf_bind *bind, struct limit_args *args,
                                  bool create, struct hf_limit_table **limits)
{
    void *object;

    args->o.size = sizeof(args->o);
    TRY(hf__bind_open_object(s, bind, &limit_kind, args->table, create, &object));
    *limits = object;
    return HF_OK;
}

BIND_FUNCTION(limit_take)
{
    struct hf_limit_verdict *verdict = result_out;
    struct limit_args *args = args_in;
    struct hf_limit_table *limits;
    enum hf_status status;

    TRY(find_limits(s, bind, args, true, &limits));
    status = hf_limit_take(s, limits, args->name, &args->rule, &args->o, verdict);
    return status == HF_LIMIT ? hf_scope_ok(s) : status;
}

BIND_FUNCTION(limit_peek)
{
    struct limit_args *args = args_in;
    struct hf_limit_table *limits;

    TRY(find_limits(s, bind, args, false, &limits));
    return hf_limit_peek(s, limits, args->name, &args->rule, &args->o, result_out);
}

BIND_FUNCTION(limit_refund)
{
    struct limit_args *args = args_in;
    struct hf_limit_table *limits;

    (void)result_out;
    TRY(find_limits(s, bind, args, false, &limits));
    return hf_limit_refund(s, limits, args->name, &args->rule, args->verdict);
}

BIND_FUNCTION(limit_clear)
{
    struct limit_args *args = args_in;
    struct hf_limit_table *limits;

    (void)result_out;
    TRY(find_limits(s, bind, args, false, &limits));
    return hf_limit_clear(s, limits, args->name, args->verdict);
}

struct limit_actions_result {
    struct bind_actions actions;
    struct hf_limit_verdict verdict;
};

#define T limit_actions_result
RESULT(limit_take_actions, FLAT(actions, hf__bind_actions_part),
       STRUCT("verdict", verdict, limit_verdict));
#undef T

BIND_FUNCTION(limit_take_actions)
{
    struct limit_actions_result *result = result_out;
    struct hf_transact_write action = {0};
    struct limit_args *args = args_in;
    struct hf_limit_table *limits;

    TRY(find_limits(s, bind, args, true, &limits));
    TRY(hf_limit_take_tx(s, limits, args->name, &args->rule, &args->o, &action, &result->verdict));
    return hf__bind_actions(s, &action, 1, &result->actions);
}
