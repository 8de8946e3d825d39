/*
 * copy/copy_digest.c: one number for an item, the same for equal items of any two databases.
 *
 *  (1) Items that hf_item_equal() calls equal have the same digest: numbers go in by their canonical
 *      text, elements of sets in no order, attributes and members of maps by their names.
 *  (2) The key of the hash is random for each copy, so nobody can make two items that meet. Two that
 *      differ have the same digest once in 2^64.
 *
 * Digests live as long as the process: none is stored.
 */
#include "copy/private.h"

#include "base/siphash.h"

#include <string.h>

static uint64_t bytes_hash(const struct hf_copy *c, uint8_t kind, const void *bytes, size_t len)
{
    return hf__siphash(c->seed, bytes, len) * UINT64_C(0x9E3779B97F4A7C15) + kind;
}

/* In this order. */
static uint64_t two_hash(const struct hf_copy *c, uint64_t one, uint64_t other)
{
    uint8_t both[16];

    store_u64le(both, one);
    store_u64le(both + 8, other);
    return hf__siphash(c->seed, both, sizeof(both));
}

static uint64_t value_digest(struct hf_scope *s, const struct hf_copy *c, struct hf_value value);

/* (1) */
static uint64_t map_digest(struct hf_scope *s, const struct hf_copy *c, struct hf_item item)
{
    struct hf_item_walk walk = {.next = 0};
    uint64_t sum = 0;

    while (hf_item_next(item, &walk))
        sum += two_hash(c, bytes_hash(c, HF_TYPE_NONE, walk.name.ptr, walk.name.len),
                        value_digest(s, c, walk.value));
    return two_hash(c, HF_TYPE_M, sum);
}

static uint64_t elements_digest(struct hf_scope *s, const struct hf_copy *c, enum hf_type type,
                                struct hf_value value)
{
    struct hf_value_walk walk = {.next = 0};
    uint64_t digest = 0;

    while (hf_value_next(s, value, &walk)) {
        uint64_t element = value_digest(s, c, walk.value);

        digest = type == HF_TYPE_L ? two_hash(c, digest, element) : digest + element;
    }
    return two_hash(c, (uint64_t)type, digest);
}

static uint64_t value_digest(struct hf_scope *s, const struct hf_copy *c, struct hf_value value)
{
    enum hf_type type = hf_value_type(value);
    struct hf_str text = {0};
    struct hf_bytes bytes;
    uint8_t truth;

    switch (type) {
    case HF_TYPE_S:
        text = hf_value_str(value);
        break;
    case HF_TYPE_N:
        text = hf_value_number(s, value);
        break;
    case HF_TYPE_B:
        bytes = hf_value_bytes(value);
        return bytes_hash(c, (uint8_t)type, bytes.ptr, bytes.len);
    case HF_TYPE_BOOL:
        truth = hf_value_true(value) ? 1 : 0;
        return bytes_hash(c, (uint8_t)type, &truth, sizeof(truth));
    case HF_TYPE_M:
        return map_digest(s, c, hf_value_item(value));
    case HF_TYPE_L:
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return elements_digest(s, c, type, value);
    case HF_TYPE_NULL:
    case HF_TYPE_NONE:
        break;
    }
    return bytes_hash(c, (uint8_t)type, text.ptr, text.len);
}

uint64_t hf__copy_digest(struct hf_scope *s, const struct hf_copy *c, struct hf_item item)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint64_t digest = item.ptr ? map_digest(s, c, item) : 0;

    hf_scope_rewind(s, mark);
    return digest;
}
