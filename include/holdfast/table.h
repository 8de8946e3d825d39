/*
 * Tables as a program needs them: created if missing, waited for, and compared with the definition
 * of the program; and names that keep environments apart. Works on any database.
 *
 *     const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
 *     const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
 *     struct hf_create_table users = {.attributes = &attribute, .attributes_len = 1,
 *                                     .key_schema = &key, .key_schema_len = 1};
 *
 *     if (hf_table_name(s, HF_STR("prod"), HF_STR("users"), &users.table) ||
 *         hf_table_ensure(s, db, &users,
 *                         HF_OPTIONS(hf_table_options, .ttl_attribute = HF_STR("expires"))))
 *         return complain(hf_scope_error_text(s));
 *
 * All of these clear an earlier error of the scope when they begin, and leave only their results in
 * its memory.
 */
#ifndef HOLDFAST_TABLE_H
#define HOLDFAST_TABLE_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- waiting -------------------------------------------------------------------------------- */

enum hf_table_until {
    HF_TABLE_UNTIL_ACTIVE = 1,     /* it is there and ACTIVE */
    HF_TABLE_UNTIL_INDEXES_ACTIVE, /* so are all of its indexes */
    HF_TABLE_UNTIL_GONE            /* there is none of that name */
};

struct hf_table_wait_options {
    size_t size;           /* set by HF_OPTIONS() */
    uint32_t timeout_ms;   /* at most, if the scope's deadline is not earlier; default 300000 */
    uint32_t delay_ms;     /* between the first two looks; it doubles; default 50 */
    uint32_t max_delay_ms; /* no delay is longer; default 2000 */
};

/*
 * Wait until the table is in the given state. A table that does not exist is waited for, too.
 * Temporary failures (throttling, a broken connection) are retried until the timeout. If the
 * service never answered, only the retries of the database itself are made (retry.h).
 *
 * HF_IO        nothing answers
 * HF_TIMEOUT   not in time; the message says how the table is
 * HF_CANCELED  hf_scope_cancel() was called
 * HF_INVALID   `until` is none of the three, or the name is invalid
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_table_wait(struct hf_scope *s, struct hf_db *db,
                                                 struct hf_str table, enum hf_table_until until,
                                                 const struct hf_table_wait_options *options);

/* ---- ensuring ------------------------------------------------------------------------------- */

struct hf_table_options {
    size_t size;                 /* set by HF_OPTIONS() */
    struct hf_str ttl_attribute; /* items expire by this attribute; default: not looked at */
    bool no_create;              /* look only: nothing is made, nothing is changed */
    bool add_indexes;            /* add global indexes that are missing, one after the other */
    bool any_isolation;          /* ScyllaDB: take the table's write isolation as it is */
    const struct hf_table_wait_options *wait; /* how long, how often; default NULL */
};

/*
 * Make sure that the table exists, is ACTIVE, and is as `spec` says. It is created if missing, with
 * on-demand billing unless the spec has a billing mode or a throughput. Other programs may do the
 * same at the same time, answers may be lost, an old table may still be in deletion: this function
 * handles that within options->wait, once the service has answered.
 *
 * Then it is compared: the keys and their types, every index of the spec with its keys and its
 * projection, the stream if the spec has one, the time to live if it was asked for. Indexes beyond
 * the spec do not matter, and neither do billing, encryption or tags. A stream or a time to live
 * that is off is turned on; missing global indexes are added if the options say so. A table with a
 * difference that cannot be changed is left as it is.
 *
 * ScyllaDB isolates conditional writes as the table's tag system:write_isolation says. It has no
 * transactions, by which we know it; there the tag is set to "always", the only value under which
 * every mixture of writes is safe, unless the spec has that tag with another value.
 *
 * HF_INVALID    it differs; the message names every difference, such as "table t: hash key is
 *               pk S, expected id S; index by-owner is missing". Or the spec is invalid
 * HF_NOT_FOUND  it is missing and options->no_create
 * HF_IO         nothing answers
 * HF_TIMEOUT    not in time; the message has the present state
 * HF_CANCELED   hf_scope_cancel() was called
 * and what CreateTable, UpdateTable, UpdateTimeToLive and TagResource fail with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_table_ensure(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_create_table *spec,
                                                   const struct hf_table_options *options);

/* ---- names ---------------------------------------------------------------------------------- */

/*
 * The name of a table in an environment: "prod" and "users" give "prod.users". An environment has
 * letters, digits, '_' and '-', so the first dot ends it and two environments never share a name.
 *
 * HF_INVALID  the environment or the base is empty or has other characters, or the name is not 3 to
 *             255 characters long
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_table_name(struct hf_scope *s, struct hf_str environment,
                                                 struct hf_str base, struct hf_str *name);

/*
 * HF_OK when `name` is a table's name in that environment; HF_INVALID when it is one of another
 * environment, of none, or no name at all. For programs that are given whole names.
 */
HF_API HF_NODISCARD enum hf_status hf_table_guard(struct hf_scope *s, struct hf_str environment,
                                                  struct hf_str name);

#ifdef __cplusplus
}
#endif

#endif
