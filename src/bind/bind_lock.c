/*
 * bind/bind_lock.c: methods of locks.
 */
#include "bind/lock.h"

static enum hf_status open_locks(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                 bool create, const void *options, void **object)
{
    struct hf_lock_table_options o = {.size = sizeof(o)};
    struct hf_lock_table *locks;

    if (options)
        o = *(const struct hf_lock_table_options *)options;
    o.table = table;
    o.owner = hf__bind_owner(bind);
    o.no_create = !create;
    TRY(hf_lock_table_open(s, hf__bind_db(bind), &o, &locks));
    *object = locks;
    return HF_OK;
}

static void close_locks(void *object)
{
    hf_lock_table_close(object);
}

static const struct bind_opener lock_kind = {.table = "locks",
                                             .open = open_locks,
                                             .close = close_locks};

enum hf_status hf__bind_locks(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                              bool create, struct hf_lock_table **locks)
{
    void *object;

    TRY(hf__bind_open_object(s, bind, &lock_kind, table, create, &object));
    *locks = object;
    return HF_OK;
}

struct lock_open_args {
    struct hf_str table;
    struct hf_lock_table_options o;
};

#define T lock_open_args
ARGUMENTS(lock_open, TEXT("table", table), U32("clock_skew_ms", o.clock_skew_ms),
          U32("forget_s", o.forget_s), BOOL("adopt", o.adopt),
          TEXT("hash_attribute", o.hash_attribute), TEXT("expires_attribute", o.expires_attribute));
#undef T
NO_RESULT(lock_open);

BIND_FUNCTION(lock_open)
{
    struct lock_open_args *args = args_in;

    (void)result_out;
    args->o.size = sizeof(args->o);
    return hf__bind_open_with(s, bind, &lock_kind, hf__bind_take_text(&args->table),
                              &hf__bind_lock_open_args, args, &args->o);
}

static const char *const lock_modes[] = {NULL, "exclusive", "shared", "permit", NULL};

#define T hf_lock_holder
PART(lock_holder, TEXT("id", id), TEXT("owner", owner), U64("fence", fence),
     U32("lease_ms", lease_ms), I64("since_us", since_us), I64("renewed_us", renewed_us));
#undef T
#define T hf_lock_info
PART(lock_info, TEXT("name", name), CHOICE("mode", mode, lock_modes), U64("fence", fence),
     STRUCTS("holders", holders, lock_holder), ITEM("data", data));
RESULT_AS(lock_inspect, lock_info);
#undef T

/* ---- looking -------------------------------------------------------------------------------- */

struct lock_list_args {
    struct hf_str table;
    struct hf_lock_list_options o;
};

#define T lock_list_args
ARGUMENTS(lock_list, TEXT("table", table), TEXT("prefix", o.prefix), BOOL("free_too", o.free_too),
          U32("limit", o.limit, LISTED_OR_ALL), TEXT("after", o.after));
#undef T
#define T hf_lock_list
RESULT(lock_list, STRUCTS("locks", locks, lock_info), TEXT("next", next));
#undef T

BIND_FUNCTION(lock_list)
{
    struct lock_list_args *args = args_in;
    struct hf_lock_table *locks;

    args->o.size = sizeof(args->o);
    TRY(hf__bind_locks(s, bind, args->table, false, &locks));
    return hf_lock_list(s, locks, &args->o, result_out);
}

struct lock_name_args {
    struct hf_str table, name, id;
};

#define T lock_name_args
ARGUMENTS(lock_inspect, TEXT("table", table), TEXT("name", name, REQUIRED));
ARGUMENTS(lock_break, TEXT("table", table), TEXT("name", name, REQUIRED), TEXT("id", id));
#undef T

BIND_FUNCTION(lock_inspect)
{
    struct lock_name_args *args = args_in;
    struct hf_lock_table *locks;

    TRY(hf__bind_locks(s, bind, args->table, false, &locks));
    return hf_lock_inspect(s, locks, args->name, result_out);
}

struct lock_break_result {
    size_t broken;
};

#define T lock_break_result
RESULT(lock_break, U64("broken", broken));
#undef T

BIND_FUNCTION(lock_break)
{
    struct lock_break_result *result = result_out;
    struct lock_name_args *args = args_in;
    struct hf_lock_table *locks;

    TRY(hf__bind_locks(s, bind, args->table, false, &locks));
    return hf_lock_break(s, locks, args->name, args->id, &result->broken);
}
