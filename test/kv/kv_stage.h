/*
 * kv/kv_stage.h: what kv_test.c and kv_batch_test.c share: a table of values, and looking into it.
 */
#ifndef HF_TEST_KV_KV_STAGE_H
#define HF_TEST_KV_KV_STAGE_H

#include <holdfast/kv.h>

#include <stdio.h>

#include "kit.h"

#include "kv/kv.h"

static inline struct hf_kv *open_with(struct kit *k, struct hf_kv_options options)
{
    struct hf_kv *kv;

    options.size = sizeof(options);
    options.table = k->table;
    options.any_ttl = true; /* the clock of a database that is not ours is another one */
    CHECK_OK(hf_kv_open(k->scope, k->db, &options, &kv));
    return kv;
}

static inline struct hf_kv *open_plain(struct kit *k)
{
    return open_with(k, (struct hf_kv_options){.consistent = true});
}

static inline struct hf_kv *open_partitioned(struct kit *k)
{
    return open_with(k, (struct hf_kv_options){.consistent = true, .partitioned = true});
}

static inline struct hf_kv_key id(const char *text)
{
    return hf_kv_id(hf_str_from(text));
}

static inline struct hf_kv_key in(const char *partition, const char *space, const char *text)
{
    return hf_kv_in(hf_str_from(partition), hf_str_from(space), hf_str_from(text));
}

static inline struct hf_value text(struct kit *k, const char *chars)
{
    return hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_from(chars)));
}

static inline void set(struct kit *k, struct hf_kv *kv, struct hf_kv_key key, const char *chars)
{
    CHECK_OK(hf_kv_set(k->scope, kv, key, text(k, chars), NULL, NULL));
}

/* What is there, as text; NULL: nothing is. */
static inline const char *get(struct kit *k, struct hf_kv *kv, struct hf_kv_key key)
{
    struct hf_kv_entry entry;

    CHECK_OK(hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(!entry.value.ptr == !entry.version.ptr);
    return entry.value.ptr ? hf_scope_copy(k->scope, hf_value_str(entry.value)).ptr : NULL;
}

static inline struct hf_str version(struct kit *k, struct hf_kv *kv, struct hf_kv_key key)
{
    struct hf_kv_entry entry;

    CHECK_OK(hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(entry.version.len >= 32);
    return entry.version;
}

static inline bool same(const char *expected, const char *actual)
{
    return expected && actual ? strcmp(expected, actual) == 0 : expected == actual;
}

static inline struct hf_item raw(struct kit *k, struct hf_item key)
{
    struct hf_item item;

    CHECK_OK(hf__pattern_read(k->scope, k->db, k->table, key, &item));
    return item;
}

static inline void put_raw(struct kit *k, struct hf_item item)
{
    CHECK_OK(
        hf_put_item(k->scope, k->db, &(struct hf_put_item){.table = k->table, .item = item}, NULL));
}

static inline uint64_t struck(struct kit *k)
{
    const struct hf_fault *faults;
    size_t len;

    CHECK_OK(hf_faulty_get(k->scope, k->db, &faults, &len));
    return len ? faults[0].struck : 0;
}

static inline enum hf_status append_x(struct hf_scope *s, const struct hf_kv_entry *now,
                                      struct hf_value *value, void *user)
{
    (void)user;
    *value = hf_value_make(
        s, (struct hf_attr)HF_S("", hf_scope_format(s, "%.*sx", HF_FMT(hf_value_str(now->value)))));
    return HF_OK;
}

#endif
