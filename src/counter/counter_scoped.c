/*
 * counter/counter_scoped.c: counters by keys of the caller's own type, which he maps to names.
 */
#include "counter/counter.h"

static struct hf_counter_key key_map(struct hf_scope *s, const struct hf_scoped_counter *scoped,
                                     const void *key)
{
    return scoped->map(s, key, scoped->user);
}

enum hf_status hf_scoped_counter_incr(struct hf_scope *s, const struct hf_scoped_counter *scoped,
                                      const void *key, int64_t by, int64_t *value)
{
    return hf_counter_incr(s, scoped->counters, key_map(s, scoped, key), by, value);
}

enum hf_status hf_scoped_counter_decr(struct hf_scope *s, const struct hf_scoped_counter *scoped,
                                      const void *key, int64_t by, int64_t *value)
{
    return hf_counter_decr(s, scoped->counters, key_map(s, scoped, key), by, value);
}

enum hf_status hf_scoped_counter_get(struct hf_scope *s, const struct hf_scoped_counter *scoped,
                                     const void *key, int64_t *value)
{
    return hf_counter_get(s, scoped->counters, key_map(s, scoped, key), value);
}

enum hf_status hf_scoped_counter_get_many(struct hf_scope *s,
                                          const struct hf_scoped_counter *scoped,
                                          const void *const *keys, size_t len,
                                          struct hf_counter_value *values)
{
    struct hf_counter_key *mapped;

    if (len > SIZE_MAX / sizeof(*mapped))
        return hf_scope_fail(s, HF_INVALID, "%zu counters are too many", len);
    mapped = hf_scope_alloc(s, len * sizeof(*mapped) + 1);
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++)
        mapped[i] = key_map(s, scoped, keys[i]);
    return hf_counter_get_many(s, scoped->counters, mapped, len, values);
}

enum hf_status hf_scoped_counter_reset(struct hf_scope *s, const struct hf_scoped_counter *scoped,
                                       const void *key, int64_t *was)
{
    return hf_counter_reset(s, scoped->counters, key_map(s, scoped, key), was);
}
