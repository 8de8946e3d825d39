/*
 * bind/bind_once.c: methods of do-once records. Attempts are sessions: session_once.c.
 */
#include "bind/once.h"

static enum hf_status open_onces(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                 bool create, const void *options, void **object)
{
    struct hf_once_table_options o = {.size = sizeof(o)};
    struct hf_once_table *onces;

    if (options)
        o = *(const struct hf_once_table_options *)options;
    o.table = table;
    o.owner = hf__bind_owner(bind);
    o.no_create = !create;
    TRY(hf_once_table_open(s, hf__bind_db(bind), &o, &onces));
    *object = onces;
    return HF_OK;
}

static void close_onces(void *object)
{
    hf_once_table_close(object);
}

static const struct bind_opener once_kind = {.table = "once",
                                             .open = open_onces,
                                             .close = close_onces};

enum hf_status hf__bind_onces(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                              bool create, struct hf_once_table **onces)
{
    void *object;

    TRY(hf__bind_open_object(s, bind, &once_kind, table, create, &object));
    *onces = object;
    return HF_OK;
}

struct once_open_args {
    struct hf_str table;
    struct hf_once_table_options o;
};

#define T once_open_args
ARGUMENTS(once_open, TEXT("table", table), U32("clock_skew_ms", o.clock_skew_ms),
          BOOL("adopt", o.adopt), TEXT("hash_attribute", o.hash_attribute),
          TEXT("sort_attribute", o.sort_attribute), TEXT("expires_attribute", o.expires_attribute));
#undef T
NO_RESULT(once_open);

BIND_FUNCTION(once_open)
{
    struct once_open_args *args = args_in;

    (void)result_out;
    args->o.size = sizeof(args->o);
    return hf__bind_open_with(s, bind, &once_kind, hf__bind_take_text(&args->table),
                              &hf__bind_once_open_args, args, &args->o);
}

static const char *const once_states[] = {"none", "running", "done", "failed", NULL};

#define T hf_once_record
SHARED_PART(hf__bind_once_record, TEXT("user", user), TEXT("key", key),
            CHOICE("state", state, once_states), BOOL("did", did), ITEM("result", result),
            I64("at_us", at_us), I64("until_us", until_us), I64("began_us", began_us),
            I64("renewed_us", renewed_us), U32("timeout_ms", timeout_ms), U64("tries", tries),
            TEXT("owner", owner), TEXT("attempt", attempt));
RESULT_AS(once_get, hf__bind_once_record);
RESULT_AS(once_mark_done, hf__bind_once_record);
#undef T

struct once_args {
    struct hf_str table, user, key;
    struct hf_item result;
    struct hf_once_options o;
    struct hf_once_list_options list;
};

#define T once_args
#define ONCE_KEY TEXT("table", table), TEXT("user", user, REQUIRED), TEXT("key", key, REQUIRED)
ARGUMENTS(once_get, ONCE_KEY);
ARGUMENTS(once_clear, ONCE_KEY);
ARGUMENTS(once_mark_done, ONCE_KEY, ITEM("result", result), BYTES("payload", o.payload),
          U32("keep_s", o.keep_s));
ARGUMENTS(once_list, TEXT("table", table), TEXT("user", user, REQUIRED),
          TEXT("prefix", list.prefix), U32("limit", list.limit, LISTED_OR_ALL),
          TEXT("after", list.after));
#undef T
#define T hf_once_list
RESULT(once_list, STRUCTS("records", records, hf__bind_once_record), TEXT("next", next));
#undef T

BIND_FUNCTION(once_get)
{
    struct once_args *args = args_in;
    struct hf_once_table *onces;

    TRY(hf__bind_onces(s, bind, args->table, false, &onces));
    return hf_once_get(s, onces, args->user, args->key, result_out);
}

BIND_FUNCTION(once_list)
{
    struct once_args *args = args_in;
    struct hf_once_table *onces;

    args->list.size = sizeof(args->list);
    TRY(hf__bind_onces(s, bind, args->table, false, &onces));
    return hf_once_list(s, onces, args->user, &args->list, result_out);
}

BIND_FUNCTION(once_mark_done)
{
    struct once_args *args = args_in;
    struct hf_once_table *onces;

    args->o.size = sizeof(args->o);
    TRY(hf__bind_onces(s, bind, args->table, true, &onces));
    return hf_once_mark_done(s, onces, args->user, args->key, &args->o, args->result, result_out);
}

struct once_clear_result {
    bool cleared;
};

#define T once_clear_result
RESULT(once_clear, BOOL("cleared", cleared));
#undef T

BIND_FUNCTION(once_clear)
{
    struct once_clear_result *result = result_out;
    struct once_args *args = args_in;
    struct hf_once_table *onces;

    TRY(hf__bind_onces(s, bind, args->table, false, &onces));
    return hf_once_clear(s, onces, args->user, args->key, &result->cleared);
}
