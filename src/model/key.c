/*
 * model/key.c: key parts, written and read back.
 *
 * The hash part of several values is one hash, then length and bytes of each. The hash of a value
 * is the seed for the next, which needs no state and tells ("ab", "c") from ("a", "bc"):
 *
 *     u64be XXH64(bytes 2, XXH64(bytes 1, 0))   u16be length 1, bytes 1   u16be length 2, bytes 2
 *
 * What always holds:
 *
 *  (1) The order of range parts is the order of their values, and no part is the beginning of
 *      another, so what stands behind a part never decides before the part does. A zero byte of an
 *      S or B is followed by 0xFF, the end by 0x00: a string sorts before all that continue it.
 *  (2) A value has one form as a part, and reading accepts no other. So store keys are equal
 *      exactly when the values are, and a damaged key is seldom read as a key.
 *  (3) The hash is on disk: XXH64 with seed 0. It never changes. A test holds it to known values.
 */
#include "model/key.h"

#include <xxhash.h>

enum { HASH_BYTES = 8, LENGTH_BYTES = 2, VALUE_HEAD_MAX = 6 };

/* ---- writing -------------------------------------------------------------------------------- */

uint64_t hf__key_hash(const struct hf_value *values, size_t count)
{
    uint64_t hash = 0;

    assert(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct hf_bytes bytes = hf__value_scalar(values[i]);

        hash = XXH64(bytes.ptr, bytes.len, hash);
    }
    return hash;
}

void hf__key_put_hash(struct hf__buf *buf, const struct hf_value *values, size_t count)
{
    uint8_t *to = hf__buf_reserve(buf, HASH_BYTES);

    if (!to)
        return;
    store_u64be(to, hf__key_hash(values, count));
    buf->len += HASH_BYTES;
    for (size_t i = 0; i < count; i++) {
        struct hf_bytes bytes = hf__value_scalar(values[i]);

        assert(bytes.len <= UINT16_MAX);
        to = hf__buf_reserve(buf, LENGTH_BYTES + bytes.len);
        if (!to)
            return;
        store_u16be(to, (uint16_t)bytes.len);
        buf->len += LENGTH_BYTES;
        hf__buf_put(buf, bytes.ptr, bytes.len);
    }
}

/* Append `bytes` with every zero followed by 0xFF; zeros are rare, so whole runs are copied. */
static void put_escaped(struct hf__buf *buf, struct hf_bytes bytes)
{
    const uint8_t *at = bytes.ptr;
    size_t left = bytes.len;

    while (left) {
        const uint8_t *zero = memchr(at, 0x00, left);
        size_t run = zero ? (size_t)(zero - at) + 1 : left;

        hf__buf_put(buf, at, run);
        if (zero)
            hf__buf_put_byte(buf, 0xFF);
        at += run;
        left -= run;
    }
}

void hf__key_put_range(struct hf__buf *buf, struct hf_value value)
{
    struct hf_bytes bytes = hf__value_scalar(value);

    if (hf_value_type(value) == HF_TYPE_N) {
        hf__buf_put(buf, bytes.ptr, bytes.len);
        return;
    }
    put_escaped(buf, bytes);
    hf__buf_put(buf, "\x00\x00", 2);
}

void hf__key_put_range_prefix(struct hf__buf *buf, struct hf_bytes prefix)
{
    put_escaped(buf, prefix);
}

bool hf__key_successor(uint8_t *bytes, size_t *len)
{
    size_t left = *len;

    while (left && bytes[left - 1] == 0xFF)
        left--;
    if (left == 0)
        return false;
    bytes[left - 1]++;
    *len = left;
    return true;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Write the head of a value as model/value.h has it; where its bytes go. */
static uint8_t *put_head(uint8_t *to, enum hf_type type, size_t len)
{
    *to++ = (uint8_t)type;
    for (; type != HF_TYPE_N && len >= 0x80; len >>= 7)
        *to++ = (uint8_t)(len | 0x80);
    *to++ = (uint8_t)len;
    return to;
}

/* Append a value whose room was reserved before. */
static struct hf_value put_value(struct hf__buf *scratch, enum hf_type type, const uint8_t *bytes,
                                 size_t len)
{
    uint8_t *from = scratch->ptr + scratch->len;
    uint8_t *to = put_head(from, type, len);

    if (len)
        memcpy(to, bytes, len);
    to += len;
    scratch->len += (size_t)(to - from);
    return (struct hf_value){from, (size_t)(to - from)};
}

bool hf__key_get_hash(struct hf__buf *scratch, const uint8_t **at, const uint8_t *end,
                      const enum hf_type *types, size_t count, struct hf_value *values)
{
    const uint8_t *p = *at;
    size_t scratch_len = scratch->len;
    size_t room = 0;

    if (end - p < HASH_BYTES)
        return false;
    p += HASH_BYTES;
    for (size_t i = 0; i < count; i++) {
        size_t len;

        if (end - p < LENGTH_BYTES)
            return false;
        len = load_u16be(p);
        p += LENGTH_BYTES;
        if ((size_t)(end - p) < len)
            return false;
        if (types[i] == HF_TYPE_N && (len == 0 || hf__number_length(p, len) != len))
            return false;
        p += len;
        room += VALUE_HEAD_MAX + len;
    }

    /* All at once, so that none of the values moves when the next is made. */
    if (!hf__buf_reserve(scratch, room))
        return false;
    p = *at + HASH_BYTES;
    for (size_t i = 0; i < count; i++) {
        size_t len = load_u16be(p);

        values[i] = put_value(scratch, types[i], p + LENGTH_BYTES, len);
        p += LENGTH_BYTES + len;
    }
    if (hf__key_hash(values, count) != load_u64be(*at)) {
        scratch->len = scratch_len;
        return false;
    }
    *at = p;
    return true;
}

/* The value's bytes in an S or B part that starts at `p`, and the part's; false when damaged. */
static bool measure_escaped(const uint8_t *p, const uint8_t *end, size_t *len, size_t *part)
{
    const uint8_t *from = p;
    size_t zeros = 0;

    for (;;) {
        p = p < end ? memchr(p, 0x00, (size_t)(end - p)) : NULL;
        if (!p || end - p < 2)
            return false;
        p += 2;
        if (p[-1] == 0x00)
            break;
        if (p[-1] != 0xFF)
            return false;
        zeros++;
    }
    *part = (size_t)(p - from);
    *len = *part - 2 - zeros;
    return true;
}

/* Copy a measured part's `len` bytes of value. */
static void copy_escaped(uint8_t *to, const uint8_t *p, size_t len)
{
    while (len) {
        const uint8_t *zero = memchr(p, 0x00, len);
        size_t run = zero ? (size_t)(zero - p) + 1 : len;

        memcpy(to, p, run);
        to += run;
        p += run + (zero ? 1 : 0);
        len -= run;
    }
}

bool hf__key_get_range(struct hf__buf *scratch, const uint8_t **at, const uint8_t *end,
                       enum hf_type type, struct hf_value *value)
{
    size_t len, part;
    uint8_t *from, *to;

    if (type == HF_TYPE_N) {
        part = len = hf__number_length(*at, (size_t)(end - *at));
        if (len == 0)
            return false;
    } else if (!measure_escaped(*at, end, &len, &part)) {
        return false;
    }
    from = hf__buf_reserve(scratch, VALUE_HEAD_MAX + len);
    if (!from)
        return false;
    to = put_head(from, type, len);
    if (type == HF_TYPE_N)
        memcpy(to, *at, len);
    else
        copy_escaped(to, *at, len);
    *value = (struct hf_value){from, (size_t)(to + len - from)};
    scratch->len += value->len;
    *at += part;
    return true;
}
