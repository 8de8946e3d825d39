/*
 * Sets as values of <holdfast/kv.h>: a list without equals, in the order in which its elements
 * came. What is equal is for the caller to say.
 *
 *     struct hf_value tags[] = {
 *         hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("c"))),
 *         hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("sql")))};
 *     struct hf_set_change change;
 *     if (hf_set_add(s, kv, key, tags, 2, NULL, &change) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     printf("%zu of them are new\n", change.added);
 *
 * A set is one value, up to 400 KB, and each change reads it and writes it conditional on its
 * version: changes of any number of writers all count, and so does a plain hf_kv_set() or
 * hf_kv_delete() between them. A set that stays as it is is not written. A list that was set by
 * hf_kv_set() is a set; a time to live that it has stays.
 *
 * All fail as hf_kv_change() does, and with HF_INVALID when the value is not a list.
 */
#ifndef HOLDFAST_SET_H
#define HOLDFAST_SET_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/kv.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is the element of the set the same as `other`, which was given? */
typedef bool hf_set_equal_fn(struct hf_value element, struct hf_value other, void *user);

/* Is this element meant? */
typedef bool hf_set_match_fn(struct hf_value element, void *user);

struct hf_set_options {
    size_t size;             /* set by HF_OPTIONS() */
    hf_set_equal_fn *equal;  /* default hf_value_equal() */
    void *user;              /* handed to `equal` and to `match` */
    bool delete_empty;       /* a set that loses its last element is deleted */
    uint32_t ttl_s;          /* from a change on; default: what it has stays */
    uint32_t max_attempts;   /* how often to try while others change it; default 100 */
    enum hf_flag consistent; /* hf_set_get(), hf_set_contains(): default as the table */
};

struct hf_set_change {
    bool found;            /* there was a set */
    size_t added, removed; /* elements; none of both: nothing was written */
    size_t len;            /* elements that it has now */
    struct hf_str version; /* that it has now; absent when there is none */
    uint64_t reserved[4];
};

/* Add those elements that it does not have; there may be no set yet. *change may be NULL, here and
 * below. */
HF_API HF_NODISCARD enum hf_status hf_set_add(struct hf_scope *s, struct hf_kv *kv,
                                              struct hf_kv_key key, const struct hf_value *elements,
                                              size_t len, const struct hf_set_options *options,
                                              struct hf_set_change *change);

/* Remove those that equal one of the elements. */
HF_API HF_NODISCARD enum hf_status hf_set_remove(struct hf_scope *s, struct hf_kv *kv,
                                                 struct hf_kv_key key,
                                                 const struct hf_value *elements, size_t len,
                                                 const struct hf_set_options *options,
                                                 struct hf_set_change *change);

/* Remove those that match. */
HF_API HF_NODISCARD enum hf_status hf_set_remove_if(struct hf_scope *s, struct hf_kv *kv,
                                                    struct hf_kv_key key, hf_set_match_fn *match,
                                                    const struct hf_set_options *options,
                                                    struct hf_set_change *change);

/*
 * Replace those that match, NULL: that equal the element, by the element, which comes last; also
 * when none does. Nothing happens when there is no set.
 */
HF_API HF_NODISCARD enum hf_status hf_set_update(struct hf_scope *s, struct hf_kv *kv,
                                                 struct hf_kv_key key, struct hf_value element,
                                                 hf_set_match_fn *match,
                                                 const struct hf_set_options *options,
                                                 struct hf_set_change *change);

/* Does one of its elements equal this one? */
HF_API HF_NODISCARD enum hf_status hf_set_contains(struct hf_scope *s, struct hf_kv *kv,
                                                   struct hf_kv_key key, struct hf_value element,
                                                   const struct hf_set_options *options,
                                                   bool *contains);

struct hf_set {
    const struct hf_value *elements; /* none when there is no set */
    size_t len;
    struct hf_str version; /* absent when there is no set */
    uint64_t reserved[4];
};

/* All elements, in the scope. */
HF_API HF_NODISCARD enum hf_status hf_set_get(struct hf_scope *s, struct hf_kv *kv,
                                              struct hf_kv_key key,
                                              const struct hf_set_options *options,
                                              struct hf_set *set);

/* ---- in transactions ------------------------------------------------------------------------ */

/*
 * As hf_kv_change_tx(): an action that makes the change, if the set is still as it was seen now.
 * When there is nothing to change the action checks just that.
 */
HF_API HF_NODISCARD enum hf_status
hf_set_add_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
              const struct hf_value *elements, size_t len, const struct hf_set_options *options,
              struct hf_transact_write *action, struct hf_set_change *change);
HF_API HF_NODISCARD enum hf_status
hf_set_remove_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                 const struct hf_value *elements, size_t len, const struct hf_set_options *options,
                 struct hf_transact_write *action, struct hf_set_change *change);

#ifdef __cplusplus
}
#endif

#endif
