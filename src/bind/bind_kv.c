/*
 * bind/bind_kv.c: methods of keys and values, and of sets.
 */
#include <holdfast/kv.h>
#include <holdfast/set.h>

#include "bind/table.h"

static enum hf_status open_kv(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                              bool create, const void *options, bool partitioned, void **object)
{
    struct hf_kv_options o = {.size = sizeof(o)};
    struct hf_kv *kv;

    if (options)
        o = *(const struct hf_kv_options *)options;
    o.table = table;
    o.partitioned = partitioned;
    o.no_create = !create;
    TRY(hf_kv_open(s, hf__bind_db(bind), &o, &kv));
    *object = kv;
    return HF_OK;
}

static enum hf_status open_plain(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                 bool create, const void *options, void **object)
{
    return open_kv(s, bind, table, create, options, false, object);
}

static enum hf_status open_partitioned(struct hf_scope *s, struct hf_bind *bind,
                                       struct hf_str table, bool create, const void *options,
                                       void **object)
{
    return open_kv(s, bind, table, create, options, true, object);
}

static void close_kv(void *object)
{
    hf_kv_close(object);
}

static const struct bind_opener plain_kind = {.table = "keys",
                                              .open = open_plain,
                                              .close = close_kv};
static const struct bind_opener partitioned_kind = {.table = "partitioned_keys",
                                                    .open = open_partitioned,
                                                    .close = close_kv};

struct kv_at {
    struct hf_str table;
    bool partitioned;
    struct hf_kv_key key;
};

#define T kv_at
PART(kv_at, TEXT("table", table), BOOL("partitioned", partitioned),
     TEXT("partition", key.partition), TEXT("space", key.space), TEXT("id", key.id, REQUIRED));
#undef T

static enum hf_status find_kv(struct hf_scope *s, struct hf_bind *bind, const struct kv_at *at,
                              bool create, struct hf_kv **kv)
{
    bool partitioned = at->partitioned || at->key.partition.ptr;
    void *object;

    TRY(hf__bind_open_object(s, bind, partitioned ? &partitioned_kind : &plain_kind, at->table,
                             create, &object));
    *kv = object;
    return HF_OK;
}

#define T hf_kv_entry
PART(kv_entry, TEXT("partition", key.partition), TEXT("space", key.space), TEXT("id", key.id),
     VALUE("value", value), TEXT("version", version), I64("expires_s", expires_s));
RESULT_AS(kv_get, kv_entry);
RESULT_AS(kv_set, kv_entry);
RESULT_AS(kv_delete, kv_entry);
#undef T

/* ---- opening -------------------------------------------------------------------------------- */

struct kv_open_args {
    struct kv_at at;
    struct hf_kv_options o;
};

#define T kv_open_args
ARGUMENTS(kv_open, TEXT("table", at.table), BOOL("partitioned", at.partitioned),
          TEXT("space", o.space), BOOL("consistent", o.consistent), BOOL("any_ttl", o.any_ttl),
          U32("tombstone_s", o.tombstone_s), BOOL("no_tombstones", o.no_tombstones),
          U32("remember", o.remember), BOOL("space_index", o.space_index), BOOL("adopt", o.adopt),
          TEXT("hash_attribute", o.hash_attribute), TEXT("sort_attribute", o.sort_attribute),
          TEXT("data_attribute", o.data_attribute), TEXT("version_attribute", o.version_attribute),
          TEXT("expires_attribute", o.expires_attribute));
#undef T
NO_RESULT(kv_open);

BIND_FUNCTION(kv_open)
{
    struct kv_open_args *args = args_in;
    const struct bind_opener *kind = args->at.partitioned ? &partitioned_kind : &plain_kind;

    (void)result_out;
    args->o.size = sizeof(args->o);
    args->at.partitioned = false; /* that is no option */
    return hf__bind_open_with(s, bind, kind, hf__bind_take_text(&args->at.table),
                              &hf__bind_kv_open_args, args, &args->o);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct kv_get_args {
    struct kv_at at;
    struct hf_kv_get_options o;
};

#define T kv_get_args
ARGUMENTS(kv_get, FLAT(at, kv_at), FLAG("consistent", o.consistent));
#undef T

BIND_FUNCTION(kv_get)
{
    struct kv_get_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_kv_get(s, kv, args->at.key, &args->o, result_out);
}

struct kv_many_args {
    struct kv_at at;
    struct hf_kv_key *keys;
    size_t keys_len;
};

#define T hf_kv_key
PART(kv_key, TEXT("partition", partition), TEXT("space", space), TEXT("id", id, REQUIRED));
#undef T
#define T kv_many_args
ARGUMENTS(kv_get_many, TEXT("table", at.table), BOOL("partitioned", at.partitioned),
          STRUCTS("keys", keys, kv_key, REQUIRED));
#undef T
#define T hf_kv_many
RESULT(kv_get_many, STRUCTS("entries", entries, kv_entry));
#undef T

BIND_FUNCTION(kv_get_many)
{
    struct kv_many_args *args = args_in;
    struct hf_kv *kv;

    args->at.partitioned = args->at.partitioned || (args->keys_len && args->keys[0].partition.ptr);
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_kv_get_many(s, kv, args->keys, args->keys_len, NULL, result_out);
}

struct kv_list_args {
    struct kv_at at;
    struct hf_kv_range range;
    struct hf_kv_list_options o;
    struct hf_kv_clear_options clear;
};

#define T kv_list_args
PART(kv_range, TEXT("table", at.table), BOOL("partitioned", at.partitioned),
     TEXT("partition", range.partition), TEXT("space", range.space),
     BOOL("all_spaces", range.all_spaces), TEXT("prefix", range.prefix), TEXT("from", range.from),
     TEXT("before", range.before), TEXT("id_contains", range.id_contains));
#define KV_RANGE                                                                                   \
    {                                                                                              \
        .name = "", .kind = BIND_STRUCT, .at = 0, .sub = &kv_range, .rules = BIND_FLAT             \
    }
ARGUMENTS(kv_list, KV_RANGE, U32("limit", o.limit, LISTED), TEXT("after", o.after),
          BOOL("backward", o.backward), FLAG("consistent", o.consistent));
ARGUMENTS(kv_clear, KV_RANGE, BOOL("exact", clear.exact), BOOL("eventual", clear.eventual));
#undef T
#define T hf_kv_page
RESULT(kv_list, STRUCTS("entries", entries, kv_entry), TEXT("next", next));
#undef T

BIND_FUNCTION(kv_list)
{
    struct kv_list_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    args->at.partitioned = args->at.partitioned || args->range.partition.ptr;
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_kv_page(s, kv, &args->range, &args->o, result_out);
}

struct kv_clear_result {
    uint64_t cleared;
};

#define T kv_clear_result
RESULT(kv_clear, U64("cleared", cleared));
#undef T

BIND_FUNCTION(kv_clear)
{
    struct kv_clear_result *result = result_out;
    struct kv_list_args *args = args_in;
    struct hf_kv *kv;

    args->clear.size = sizeof(args->clear);
    args->at.partitioned = args->at.partitioned || args->range.partition.ptr;
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_kv_clear(s, kv, &args->range, &args->clear, &result->cleared);
}

/* ---- writing -------------------------------------------------------------------------------- */

struct kv_set_args {
    struct kv_at at;
    struct hf_value value;
    struct hf_kv_set_options o;
};

#define T kv_set_args
MEMBERS(kv_set_part, FLAT(at, kv_at), VALUE("value", value, REQUIRED), U32("ttl_s", o.ttl_s),
        BOOL("if_absent", o.if_absent), TEXT("if_version", o.if_version), BOOL("blind", o.blind),
        U32("max_attempts", o.max_attempts));
ARGUMENTS_AS(kv_set, kv_set_part);
ARGUMENTS_AS(kv_set_actions, kv_set_part);
#undef T

BIND_FUNCTION(kv_set)
{
    struct kv_set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, true, &kv));
    return hf_kv_set(s, kv, args->at.key, args->value, &args->o, result_out);
}

struct kv_delete_args {
    struct kv_at at;
    struct hf_kv_delete_options o;
};

#define T kv_delete_args
MEMBERS(kv_delete_part, FLAT(at, kv_at), TEXT("if_version", o.if_version),
        U32("max_attempts", o.max_attempts));
ARGUMENTS_AS(kv_delete, kv_delete_part);
ARGUMENTS_AS(kv_delete_actions, kv_delete_part);
#undef T

BIND_FUNCTION(kv_delete)
{
    struct kv_delete_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_kv_delete(s, kv, args->at.key, &args->o, result_out);
}

#define T bind_actions
RESULT_AS(kv_set_actions, hf__bind_actions_part);
RESULT_AS(kv_delete_actions, hf__bind_actions_part);
RESULT_AS(kv_check_actions, hf__bind_actions_part);
RESULT_AS(set_add_actions, hf__bind_actions_part);
RESULT_AS(set_remove_actions, hf__bind_actions_part);
#undef T

BIND_FUNCTION(kv_set_actions)
{
    struct hf_transact_write action = {0};
    struct kv_set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, true, &kv));
    TRY(hf_kv_set_tx(s, kv, args->at.key, args->value, &args->o, &action, NULL));
    return hf__bind_actions(s, &action, 1, result_out);
}

BIND_FUNCTION(kv_delete_actions)
{
    struct hf_transact_write action = {0};
    struct kv_delete_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, true, &kv));
    TRY(hf_kv_delete_tx(s, kv, args->at.key, &args->o, &action));
    return hf__bind_actions(s, &action, 1, result_out);
}

struct kv_check_args {
    struct kv_at at;
    struct hf_str version;
};

#define T kv_check_args
ARGUMENTS(kv_check_actions, FLAT(at, kv_at), TEXT("version", version));
#undef T

BIND_FUNCTION(kv_check_actions)
{
    struct hf_transact_write action = {0};
    struct kv_check_args *args = args_in;
    struct hf_kv *kv;

    TRY(find_kv(s, bind, &args->at, true, &kv));
    TRY(hf_kv_check_tx(s, kv, args->at.key, args->version, &action));
    return hf__bind_actions(s, &action, 1, result_out);
}

/* ---- sets ----------------------------------------------------------------------------------- */

struct set_args {
    struct kv_at at;
    struct hf_value *elements;
    size_t elements_len;
    struct hf_value element;
    struct hf_set_options o;
};

#define T set_args
MEMBERS(set_change_part, FLAT(at, kv_at), VALUES("elements", elements, REQUIRED),
        BOOL("delete_empty", o.delete_empty), U32("ttl_s", o.ttl_s),
        U32("max_attempts", o.max_attempts));
ARGUMENTS_AS(set_add, set_change_part);
ARGUMENTS_AS(set_remove, set_change_part);
ARGUMENTS_AS(set_add_actions, set_change_part);
ARGUMENTS_AS(set_remove_actions, set_change_part);
ARGUMENTS(set_get, FLAT(at, kv_at), FLAG("consistent", o.consistent));
ARGUMENTS(set_contains, FLAT(at, kv_at), VALUE("element", element, REQUIRED),
          FLAG("consistent", o.consistent));
#undef T

struct set_get_result {
    const struct hf_value *elements;
    size_t elements_len;
    struct hf_str version;
    bool contains;
};

#define T set_get_result
RESULT(set_get, VALUES("elements", elements), TEXT("version", version));
RESULT(set_contains, BOOL("contains", contains));
#undef T
#define T hf_set_change
MEMBERS(set_change, BOOL("found", found), U64("added", added), U64("removed", removed),
        U64("len", len), TEXT("version", version));
RESULT_AS(set_add, set_change);
RESULT_AS(set_remove, set_change);
#undef T

BIND_FUNCTION(set_get)
{
    struct set_get_result *result = result_out;
    struct set_args *args = args_in;
    struct hf_set set;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, false, &kv));
    TRY(hf_set_get(s, kv, args->at.key, &args->o, &set));
    result->elements = set.elements;
    result->elements_len = set.len;
    result->version = set.version;
    return HF_OK;
}

BIND_FUNCTION(set_contains)
{
    struct set_get_result *result = result_out;
    struct set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_set_contains(s, kv, args->at.key, args->element, &args->o, &result->contains);
}

BIND_FUNCTION(set_add)
{
    struct set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, true, &kv));
    return hf_set_add(s, kv, args->at.key, args->elements, args->elements_len, &args->o,
                      result_out);
}

BIND_FUNCTION(set_remove)
{
    struct set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, false, &kv));
    return hf_set_remove(s, kv, args->at.key, args->elements, args->elements_len, &args->o,
                         result_out);
}

BIND_FUNCTION(set_add_actions)
{
    struct hf_transact_write action = {0};
    struct set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, true, &kv));
    TRY(hf_set_add_tx(s, kv, args->at.key, args->elements, args->elements_len, &args->o, &action,
                      NULL));
    return hf__bind_actions(s, &action, 1, result_out);
}

BIND_FUNCTION(set_remove_actions)
{
    struct hf_transact_write action = {0};
    struct set_args *args = args_in;
    struct hf_kv *kv;

    args->o.size = sizeof(args->o);
    TRY(find_kv(s, bind, &args->at, true, &kv));
    TRY(hf_set_remove_tx(s, kv, args->at.key, args->elements, args->elements_len, &args->o, &action,
                         NULL));
    return hf__bind_actions(s, &action, 1, result_out);
}
