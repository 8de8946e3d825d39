/*
 * bind/bind_counter.c: methods of counters and sequences.
 */
#include <holdfast/counter.h>

#include "bind/table.h"

static enum hf_status open_counters(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                    bool create, const void *options, bool partitioned,
                                    void **object)
{
    struct hf_counters_options o = {.size = sizeof(o)};
    struct hf_counters *counters;

    if (options)
        o = *(const struct hf_counters_options *)options;
    o.table = table;
    o.partitioned = partitioned;
    o.no_create = !create;
    TRY(hf_counters_open(s, hf__bind_db(bind), &o, &counters));
    *object = counters;
    return HF_OK;
}

static enum hf_status open_plain(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                 bool create, const void *options, void **object)
{
    return open_counters(s, bind, table, create, options, false, object);
}

static enum hf_status open_partitioned(struct hf_scope *s, struct hf_bind *bind,
                                       struct hf_str table, bool create, const void *options,
                                       void **object)
{
    return open_counters(s, bind, table, create, options, true, object);
}

static void close_counters(void *object)
{
    hf_counters_close(object);
}

static const struct bind_opener plain_kind = {.table = "keys",
                                              .open = open_plain,
                                              .close = close_counters};
static const struct bind_opener partitioned_kind = {.table = "partitioned_keys",
                                                    .open = open_partitioned,
                                                    .close = close_counters};

/* Which counter, in which table: a partition says that the table has such. */
struct counter_at {
    struct hf_str table;
    bool partitioned;
    struct hf_counter_key key;
};

#define T counter_at
PART(counter_at, TEXT("table", table), BOOL("partitioned", partitioned),
     TEXT("partition", key.partition), TEXT("space", key.space), TEXT("id", key.id, REQUIRED));
#undef T

static enum hf_status find_counters(struct hf_scope *s, struct hf_bind *bind,
                                    const struct counter_at *at, bool create,
                                    struct hf_counters **counters)
{
    bool partitioned = at->partitioned || at->key.partition.ptr;
    void *object;

    TRY(hf__bind_open_object(s, bind, partitioned ? &partitioned_kind : &plain_kind, at->table,
                             create, &object));
    *counters = object;
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

struct counter_open_args {
    struct counter_at at;
    struct hf_counters_options o;
};

#define T counter_open_args
ARGUMENTS(counter_open, TEXT("table", at.table), BOOL("partitioned", at.partitioned),
          TEXT("space", o.space), BOOL("plain", o.plain), U32("writers", o.writers),
          U32("requests", o.requests), U32("shards", o.shards), BOOL("adopt", o.adopt),
          TEXT("hash_attribute", o.hash_attribute), TEXT("sort_attribute", o.sort_attribute));
#undef T
NO_RESULT(counter_open);

BIND_FUNCTION(counter_open)
{
    struct counter_open_args *args = args_in;
    const struct bind_opener *kind = args->at.partitioned ? &partitioned_kind : &plain_kind;

    (void)result_out;
    args->o.size = sizeof(args->o);
    args->at.partitioned = false; /* that is no option */
    return hf__bind_open_with(s, bind, kind, hf__bind_take_text(&args->at.table),
                              &hf__bind_counter_open_args, args, &args->o);
}

/* ---- looking -------------------------------------------------------------------------------- */

struct counter_list_args {
    struct counter_at at;
    struct hf_counter_list_options o;
};

#define T counter_list_args
ARGUMENTS(counter_list, TEXT("table", at.table), BOOL("partitioned", at.partitioned),
          TEXT("partition", o.partition), TEXT("space", o.space), TEXT("prefix", o.prefix),
          U32("limit", o.limit, LISTED_OR_ALL), TEXT("after", o.after));
#undef T
#define T hf_counter_value
PART(counter_value, TEXT("partition", key.partition), TEXT("space", key.space), TEXT("id", key.id),
     I64("value", value), BOOL("found", found));
#undef T
#define T hf_counter_list
RESULT(counter_list, STRUCTS("counters", counters, counter_value), TEXT("next", next));
#undef T

BIND_FUNCTION(counter_list)
{
    struct counter_list_args *args = args_in;
    struct hf_counters *counters;

    args->o.size = sizeof(args->o);
    args->at.partitioned = args->at.partitioned || args->o.partition.ptr;
    TRY(find_counters(s, bind, &args->at, false, &counters));
    return hf_counter_list(s, counters, &args->o, result_out);
}

struct counter_value_result {
    int64_t value;
    bool again;
};

#define T counter_at
ARGUMENTS_AS(counter_get, counter_at);
ARGUMENTS_AS(counter_reset, counter_at);
ARGUMENTS_AS(counter_delete, counter_at);
#undef T
#define T counter_value_result
RESULT(counter_get, I64("value", value));
RESULT(counter_add, I64("value", value), BOOL("again", again));
RESULT(counter_set, I64("was", value));
RESULT(counter_reset, I64("was", value));
#undef T
NO_RESULT(counter_delete);

BIND_FUNCTION(counter_get)
{
    struct counter_value_result *result = result_out;
    struct counter_at *args = args_in;
    struct hf_counters *counters;

    TRY(find_counters(s, bind, args, false, &counters));
    return hf_counter_get(s, counters, args->key, &result->value);
}

struct counter_many_args {
    struct counter_at at;
    struct hf_counter_key *keys;
    size_t keys_len;
};
struct counter_many_result {
    struct hf_counter_value *counters;
    size_t counters_len;
};

#define T hf_counter_key
PART(counter_key, TEXT("partition", partition), TEXT("space", space), TEXT("id", id, REQUIRED));
#undef T
#define T counter_many_args
ARGUMENTS(counter_get_many, TEXT("table", at.table), BOOL("partitioned", at.partitioned),
          STRUCTS("keys", keys, counter_key, REQUIRED));
#undef T
#define T counter_many_result
RESULT(counter_get_many, STRUCTS("counters", counters, counter_value));
#undef T

BIND_FUNCTION(counter_get_many)
{
    struct counter_many_result *result = result_out;
    struct counter_many_args *args = args_in;
    struct hf_counters *counters;

    args->at.partitioned = args->at.partitioned || (args->keys_len && args->keys[0].partition.ptr);
    TRY(find_counters(s, bind, &args->at, false, &counters));
    result->counters = hf__scope_array(s, args->keys_len + 1, sizeof(*result->counters));
    if (!result->counters)
        return hf__fail_nomem(s);
    result->counters_len = args->keys_len;
    return hf_counter_get_many(s, counters, args->keys, args->keys_len, result->counters);
}

/* ---- changing ------------------------------------------------------------------------------- */

struct counter_add_args {
    struct counter_at at;
    int64_t by;
    struct hf_str request;
    struct hf_counter_options o;
};

#define T counter_add_args
ARGUMENTS(counter_add, FLAT(at, counter_at), I64("by", by, REQUIRED), TEXT("request", request),
          BOUND("floor", o.floor), BOUND("ceiling", o.ceiling));
ARGUMENTS(counter_add_actions, FLAT(at, counter_at), I64("by", by, REQUIRED),
          TEXT("request", request), BOUND("floor", o.floor), BOUND("ceiling", o.ceiling));
#undef T

BIND_FUNCTION(counter_add)
{
    struct counter_value_result *result = result_out;
    struct counter_add_args *args = args_in;
    struct hf_counters *counters;

    args->o.size = sizeof(args->o);
    TRY(find_counters(s, bind, &args->at, true, &counters));
    if (args->request.ptr)
        return hf_counter_add_once(s, counters, args->at.key, args->request, args->by, &args->o,
                                   &result->value, &result->again);
    return hf_counter_add(s, counters, args->at.key, args->by, &args->o, &result->value);
}

#define T bind_actions
RESULT_AS(counter_add_actions, hf__bind_actions_part);
#undef T

BIND_FUNCTION(counter_add_actions)
{
    struct counter_add_args *args = args_in;
    struct hf_transact_write action = {0};
    struct hf_counters *counters;

    args->o.size = sizeof(args->o);
    TRY(find_counters(s, bind, &args->at, true, &counters));
    TRY(hf_counter_add_tx(s, counters, args->at.key, args->request, args->by, &args->o, &action));
    return hf__bind_actions(s, &action, 1, result_out);
}

struct counter_set_args {
    struct counter_at at;
    int64_t value;
};

#define T counter_set_args
ARGUMENTS(counter_set, FLAT(at, counter_at), I64("value", value, REQUIRED));
#undef T

BIND_FUNCTION(counter_set)
{
    struct counter_value_result *result = result_out;
    struct counter_set_args *args = args_in;
    struct hf_counters *counters;

    TRY(find_counters(s, bind, &args->at, true, &counters));
    return hf_counter_set(s, counters, args->at.key, args->value, &result->value);
}

BIND_FUNCTION(counter_reset)
{
    struct counter_value_result *result = result_out;
    struct counter_at *args = args_in;
    struct hf_counters *counters;

    TRY(find_counters(s, bind, args, false, &counters));
    return hf_counter_reset(s, counters, args->key, &result->value);
}

BIND_FUNCTION(counter_delete)
{
    struct counter_at *args = args_in;
    struct hf_counters *counters;

    (void)result_out;
    TRY(find_counters(s, bind, args, false, &counters));
    return hf_counter_delete(s, counters, args->key);
}

/* ---- sequences ------------------------------------------------------------------------------ */

struct counter_take_args {
    struct counter_at at;
    uint32_t count;
    int64_t last;
};
struct counter_take_result {
    int64_t first;
};

#define T counter_take_args
ARGUMENTS(sequence_take, FLAT(at, counter_at), U32("count", count), I64("last", last));
#undef T
#define T counter_take_result
RESULT(sequence_take, I64("first", first));
#undef T

BIND_FUNCTION(sequence_take)
{
    struct counter_take_result *result = result_out;
    struct counter_take_args *args = args_in;
    struct hf_sequence *sequence;
    struct hf_counters *counters;
    enum hf_status status;

    TRY(find_counters(s, bind, &args->at, true, &counters));
    TRY(hf_sequence_open(s, counters, args->at.key,
                         HF_OPTIONS(hf_sequence_options, .block = 1, .last = args->last),
                         &sequence));
    status = hf_sequence_take(s, sequence, args->count ? args->count : 1, &result->first);
    (void)hf_sequence_close(NULL, sequence);
    return status;
}
