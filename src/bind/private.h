/*
 * bind/private.h: what the files of this folder share: the methods, and what a bind has open.
 */
#ifndef HF_BIND_PRIVATE_H
#define HF_BIND_PRIVATE_H

#include <holdfast/bind.h>

#include <pthread.h>

#include "bind/fields.h"

/* ---- methods -------------------------------------------------------------------------------- */

enum bind_access { BIND_READ, BIND_WRITE };

typedef enum hf_status bind_fn(struct hf_scope *s, struct hf_bind *bind, void *args, void *result);

struct bind_method {
    struct hf_str name;
    enum bind_access access;
    bind_fn *call;
    const struct bind_fields *args;
    const struct bind_fields *result;
    const char *what;
};

#define METHOD(object, method, access_, what_)                                                     \
    extern const struct bind_fields hf__bind_##object##_##method##_args;                           \
    extern const struct bind_fields hf__bind_##object##_##method##_result;                         \
    enum hf_status hf__bind_##object##_##method(struct hf_scope *s, struct hf_bind *bind,          \
                                                void *args_in, void *result_out);
#include "bind/methods.def"
#undef METHOD

/* methods.c: the method of that name; NULL when there is none. */
const struct bind_method *hf__bind_method(struct hf_str name);

/* ---- what is open --------------------------------------------------------------------------- */

/*
 * A kind of thing that methods open on demand, one for each table: a table of locks, an outbox.
 * `open` gets the options that the method was called with, whatever they are, or NULL.
 */
struct bind_opener {
    const char *table; /* default name */
    enum hf_status (*open)(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                           bool create, const void *options, void **object);
    void (*close)(void *object);
};

/*
 * The object of that kind for that table (absent: the default), which is opened unless it is.
 * Methods that only look say `create` false: HF_NOT_FOUND where there is no table.
 */
enum hf_status hf__bind_open_object(struct hf_scope *s, struct hf_bind *bind,
                                    const struct bind_opener *kind, struct hf_str table,
                                    bool create, void **object);

/*
 * Open it with options, for a method whose arguments are `args`, by `fields`, with nothing left in them
 * but options. HF_INVALID: it is open already, and was opened with other ones.
 */
enum hf_status hf__bind_open_with(struct hf_scope *s, struct hf_bind *bind,
                                  const struct bind_opener *kind, struct hf_str table,
                                  const struct bind_fields *fields, const void *args,
                                  const void *options);

/* Take a text out of arguments. */
static inline struct hf_str hf__bind_take_text(struct hf_str *text)
{
    struct hf_str taken = *text;

    *text = (struct hf_str){0};
    return taken;
}

struct hf_db *hf__bind_db(struct hf_bind *bind);
const struct hf_env *hf__bind_env(struct hf_bind *bind);
struct hf_str hf__bind_owner(struct hf_bind *bind); /* absent: the default */

/* Room for one more element of that size in a list of `len` that lives in the scope. */
static inline enum hf_status hf__bind_grow(struct hf_scope *s, void **list, size_t len, size_t *cap,
                                           size_t size)
{
    size_t wider_cap = *cap ? *cap * 2 : 8;
    void *wider;

    if (len < *cap)
        return HF_OK;
    wider = hf__scope_array(s, wider_cap, size);
    if (!wider)
        return hf__fail_nomem(s);
    if (len)
        memcpy(wider, *list, len * size);
    *list = wider;
    *cap = wider_cap;
    return HF_OK;
}

/* Let the call end after so many milliseconds; the caller's deadline comes back after it. */
void hf__bind_shorten(struct hf_scope *s, uint32_t ms);

/* ---- bind_actions.c ------------------------------------------------------------------------- */

/* Actions of a transaction as JSON: a list of TransactWriteItem. */
struct bind_actions {
    struct hf_str actions;
};
extern const struct bind_field hf__bind_actions_part_list[1];
extern const struct bind_fields hf__bind_actions_part;
enum hf_status hf__bind_actions(struct hf_scope *s, const struct hf_transact_write *actions,
                                size_t len, struct bind_actions *result);
/* And back: such a list, which was given as an argument. Borrows from `json`. */
enum hf_status hf__bind_read_actions(struct hf_scope *s, struct hf_str json,
                                     struct hf_transact_write_items *request);
struct hf_tx;
enum hf_status hf__bind_tx_actions(struct hf_scope *s, const struct hf_tx *tx,
                                   struct bind_actions *result);

/* call_json.c: an operation, for hf_bind_call(). */
enum hf_status hf__bind_operation(struct hf_scope *s, struct hf_db *db, struct hf_str operation,
                                  struct hf_str json, bool read_only,
                                  struct hf_json_answer *answer);
/* May that operation be tried by a caller that has no time to wait? */
bool hf__bind_is_quick(struct hf_db *db, struct hf_str operation);
/* The answer of one that was refused before it was done, by the scope's error. */
enum hf_status hf__bind_operation_refused(struct hf_scope *s, enum hf_status status,
                                          struct hf_json_answer *answer);

#endif
