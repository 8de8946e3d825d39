/*
 * Values and counters of one table, side by side: <holdfast/kv.h> and <holdfast/counter.h> under
 * one roof. A value and a counter of the same key are two things, and neither touches the other.
 *
 *     struct hf_keys keys;
 *     struct hf_kv_key key = hf_kv_in(HF_STR("user-7"), HF_STR("login"), HF_STR("count"));
 *     if (hf_keys_open(s, db, NULL, &keys) != HF_OK ||
 *         hf_keys_incr_counter(s, &keys, key, 1, &logins) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_keys_close(&keys);
 *
 * For more than this use the two handles in it.
 */
#ifndef HOLDFAST_KEYS_H
#define HOLDFAST_KEYS_H

#include <holdfast/base.h>
#include <holdfast/counter.h>
#include <holdfast/db.h>
#include <holdfast/kv.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any thread may use it. */
struct hf_keys {
    struct hf_kv *values;
    struct hf_counters *counters;
};

struct hf_keys_options {
    size_t size;         /* set by HF_OPTIONS() */
    bool no_partitions;  /* keys have an id alone */
    struct hf_str table; /* default "partitioned_keys", without partitions "keys" */
    struct hf_str space; /* of keys that name none; default "", without partitions "global" */
    bool no_create;      /* the table has to exist */

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */
};

/* Fails as hf_kv_open() and hf_counters_open() do; then there is nothing to be closed. */
HF_API HF_NODISCARD enum hf_status hf_keys_open(struct hf_scope *s, struct hf_db *db,
                                                const struct hf_keys_options *options,
                                                struct hf_keys *keys);

/* Closes both. */
HF_API void hf_keys_close(struct hf_keys *keys);

/* The value, absent when there is none; by a consistent read. */
HF_API HF_NODISCARD enum hf_status hf_keys_get_value(struct hf_scope *s, const struct hf_keys *keys,
                                                     struct hf_kv_key key, struct hf_value *value);

/* Set the value, whatever it was. */
HF_API HF_NODISCARD enum hf_status hf_keys_set_value(struct hf_scope *s, const struct hf_keys *keys,
                                                     struct hf_kv_key key, struct hf_value value);

/* Delete the value, and then the counter. */
HF_API HF_NODISCARD enum hf_status hf_keys_delete(struct hf_scope *s, const struct hf_keys *keys,
                                                  struct hf_kv_key key);

/* The counter; 0 when there is none. */
HF_API HF_NODISCARD enum hf_status hf_keys_get_counter(struct hf_scope *s,
                                                       const struct hf_keys *keys,
                                                       struct hf_kv_key key, int64_t *value);

/* As hf_counter_incr() and hf_counter_decr(). */
HF_API HF_NODISCARD enum hf_status hf_keys_incr_counter(struct hf_scope *s,
                                                        const struct hf_keys *keys,
                                                        struct hf_kv_key key, int64_t by,
                                                        int64_t *value);
HF_API HF_NODISCARD enum hf_status hf_keys_decr_counter(struct hf_scope *s,
                                                        const struct hf_keys *keys,
                                                        struct hf_kv_key key, int64_t by,
                                                        int64_t *value);

#ifdef __cplusplus
}
#endif

#endif
