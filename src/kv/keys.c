/*
 * kv/keys.c: values and counters of one table.
 *
 * Nothing is stored here. Keys of counters begin as no key of a value can (counter_item.c), so that
 * the two share a table, and a partition, without knowing of each other.
 */
#include <holdfast/keys.h>

#include "coord/pattern.h"

enum hf_status hf_keys_open(struct hf_scope *s, struct hf_db *db,
                            const struct hf_keys_options *options, struct hf_keys *keys)
{
    struct hf_keys_options o;
    enum hf_status status;

    *keys = (struct hf_keys){0};
    OPTIONS_COPY(&o, options);
    TRY(hf_kv_open(s, db,
                   HF_OPTIONS(hf_kv_options, .partitioned = !o.no_partitions, .table = o.table,
                              .space = o.space, .consistent = true, .no_create = o.no_create,
                              .adopt = o.adopt),
                   &keys->values));
    status = hf_counters_open(s, db,
                              HF_OPTIONS(hf_counters_options, .partitioned = !o.no_partitions,
                                         .table = o.table, .space = o.space,
                                         .no_create = o.no_create, .adopt = o.adopt),
                              &keys->counters);
    if (status != HF_OK)
        hf_keys_close(keys);
    return status;
}

void hf_keys_close(struct hf_keys *keys)
{
    hf_kv_close(keys->values);
    hf_counters_close(keys->counters);
    *keys = (struct hf_keys){0};
}

enum hf_status hf_keys_get_value(struct hf_scope *s, const struct hf_keys *keys,
                                 struct hf_kv_key key, struct hf_value *value)
{
    struct hf_kv_entry entry;

    *value = (struct hf_value){0};
    TRY(hf_kv_get(s, keys->values, key, NULL, &entry));
    *value = entry.value;
    return HF_OK;
}

enum hf_status hf_keys_set_value(struct hf_scope *s, const struct hf_keys *keys,
                                 struct hf_kv_key key, struct hf_value value)
{
    return hf_kv_set(s, keys->values, key, value, NULL, NULL);
}

/* ---- counters ------------------------------------------------------------------------------- */

static struct hf_counter_key counter_of(struct hf_kv_key key)
{
    return (struct hf_counter_key){.id = key.id, .partition = key.partition, .space = key.space};
}

enum hf_status hf_keys_delete(struct hf_scope *s, const struct hf_keys *keys, struct hf_kv_key key)
{
    TRY(hf_kv_delete(s, keys->values, key, NULL, NULL));
    return hf_counter_delete(s, keys->counters, counter_of(key));
}

enum hf_status hf_keys_get_counter(struct hf_scope *s, const struct hf_keys *keys,
                                   struct hf_kv_key key, int64_t *value)
{
    return hf_counter_get(s, keys->counters, counter_of(key), value);
}

enum hf_status hf_keys_incr_counter(struct hf_scope *s, const struct hf_keys *keys,
                                    struct hf_kv_key key, int64_t by, int64_t *value)
{
    return hf_counter_incr(s, keys->counters, counter_of(key), by, value);
}

enum hf_status hf_keys_decr_counter(struct hf_scope *s, const struct hf_keys *keys,
                                    struct hf_kv_key key, int64_t by, int64_t *value)
{
    return hf_counter_decr(s, keys->counters, counter_of(key), by, value);
}
