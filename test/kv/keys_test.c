/* kv/keys_test.c: values and counters in one table, and even under one key. */
#include <holdfast/keys.h>

#include "kit.h"

static void check_value(struct kit *k, const struct hf_keys *keys, struct hf_kv_key key,
                        const char *expected)
{
    struct hf_value value;

    CHECK_OK(hf_keys_get_value(k->scope, keys, key, &value));
    CHECK((value.ptr != NULL) == (expected != NULL));
    if (expected)
        CHECK_STR(expected, hf_value_str(value));
}

static void check_counter(struct kit *k, const struct hf_keys *keys, struct hf_kv_key key,
                          int64_t expected)
{
    int64_t value;

    CHECK_OK(hf_keys_get_counter(k->scope, keys, key, &value));
    CHECK_INT(expected, value);
}

static void side_by_side(struct kit *k, bool no_partitions)
{
    struct hf_str ann = no_partitions ? hf_str_of(NULL, 0) : HF_STR("ann");
    struct hf_kv_key key = {.partition = ann, .id = HF_STR("x")};
    struct hf_kv_key spaced = {.partition = ann, .space = HF_STR("a.b"), .id = HF_STR("x")};
    struct hf_value text = hf_value_make(k->scope, (struct hf_attr)HF_S("", HF_STR("text")));
    struct hf_keys keys;
    int64_t value;

    CHECK_OK(
        hf_keys_open(k->scope, k->db,
                     HF_OPTIONS(hf_keys_options, .table = k->table, .no_partitions = no_partitions),
                     &keys));
    check_value(k, &keys, key, NULL);
    check_counter(k, &keys, key, 0);
    CHECK_OK(hf_keys_incr_counter(k->scope, &keys, key, 5, &value));
    CHECK_INT(5, value);
    CHECK_OK(hf_keys_set_value(k->scope, &keys, key, text));
    CHECK_OK(hf_keys_set_value(k->scope, &keys, key, text)); /* over it, and the counter stays */
    CHECK_OK(hf_keys_decr_counter(k->scope, &keys, key, 7, &value));
    CHECK_INT(-2, value);
    CHECK_OK(hf_keys_incr_counter(k->scope, &keys, spaced, 1, NULL));
    check_value(k, &keys, key, "text");
    check_value(k, &keys, spaced, NULL);
    CHECK_OK(hf_keys_delete(k->scope, &keys, key));
    check_value(k, &keys, key, NULL);
    check_counter(k, &keys, key, 0);
    check_counter(k, &keys, spaced, 1);
    hf_keys_close(&keys);
    CHECK(!keys.values && !keys.counters);
}

KIT_TEST(keys, side_by_side_in_a_partition)
{
    side_by_side(k, false);
}

KIT_TEST(keys, side_by_side_without_partitions)
{
    side_by_side(k, true);
}

/* A table of another make: nothing stays open. */
KIT_TEST(keys, not_opened)
{
    struct hf_keys keys, other;

    CHECK_OK(hf_keys_open(k->scope, k->db, HF_OPTIONS(hf_keys_options, .table = k->table), &keys));
    CHECK_STATUS(HF_INVALID,
                 hf_keys_open(k->scope, k->db,
                              HF_OPTIONS(hf_keys_options, .table = k->table, .no_partitions = true),
                              &other));
    CHECK(!other.values && !other.counters);
    hf_keys_close(&keys);
}
