/*
 * test/fuzz/fuzz_key.c: reading keys from any bytes, and the order of range parts.
 *
 * The first byte chooses the types of three parts; the rest is read as a hash part of one or two
 * values with range parts behind it, then as range parts alone, then cut in two strings whose parts
 * must sort as they do.
 */
#include "model/key.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum hf_type type_of(unsigned choice)
{
    return choice % 3 == 0 ? HF_TYPE_S : choice % 3 == 1 ? HF_TYPE_N : HF_TYPE_B;
}

/* What was read is a valid value of the type asked for. */
static void must_be_value(struct hf_value value, enum hf_type type)
{
    MUST(hf_value_type(value) == type);
    MUST(hf__value_valid(value.ptr, value.len));
}

/* What can be read is, written again, the same bytes. */
static void read_hash(struct hf_scope *s, const uint8_t **at, const uint8_t *end,
                      const enum hf_type *types, size_t count)
{
    struct hf__buf scratch = {.scope = s}, again = {.scope = s};
    const uint8_t *from = *at;
    struct hf_value values[2];

    if (!hf__key_get_hash(&scratch, at, end, types, count, values)) {
        MUST(*at == from);
        return;
    }
    MUST(*at > from && *at <= end);
    for (size_t i = 0; i < count; i++)
        must_be_value(values[i], types[i]);
    hf__key_put_hash(&again, values, count);
    MUST(bytes_compare(again.ptr, again.len, from, (size_t)(*at - from)) == 0);
}

static void read_ranges(struct hf_scope *s, const uint8_t *at, const uint8_t *end,
                        enum hf_type type)
{
    struct hf__buf scratch = {.scope = s};
    const uint8_t *from = at;
    struct hf_value value;

    while (hf__key_get_range(&scratch, &at, end, type, &value)) {
        struct hf__buf again = {.scope = s};

        MUST(at > from && at <= end);
        must_be_value(value, type);
        hf__key_put_range(&again, value);
        MUST(bytes_compare(again.ptr, again.len, from, (size_t)(at - from)) == 0);
        from = at;
    }
    MUST(at == from);
}

/* Give the bytes the hash that they should have, or no input would ever pass. */
static void read_mended(struct hf_scope *s, const uint8_t *data, size_t size,
                        const enum hf_type *types, size_t count)
{
    struct hf_value values[2];
    struct hf__buf built = {.scope = s}, key = {.scope = s};
    size_t ends[3] = {0};
    size_t at = 8;

    if (size < at)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t len;

        if (size - at < 2)
            return;
        len = load_u16be(data + at);
        if (size - at - 2 < len)
            return;
        /* As an S whatever it is: the hash sees only the bytes. */
        hf__build_str(&built, HF_TYPE_S, hf_str_of((const char *)data + at + 2, len));
        ends[i + 1] = built.len;
        at += 2 + len;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = (struct hf_value){built.ptr + ends[i], ends[i + 1] - ends[i]};
    hf__key_put_hash(&key, values, count);
    MUST(key.len == at && memcmp(key.ptr + 8, data + 8, at - 8) == 0);
    hf__buf_put(&key, data + at, size - at);

    const uint8_t *from = key.ptr;
    read_hash(s, &from, key.ptr + key.len, types, count);
    MUST(from == key.ptr + (from == key.ptr ? 0 : at));
    MUST(from > key.ptr || types[0] == HF_TYPE_N || types[count - 1] == HF_TYPE_N);
    read_ranges(s, from, key.ptr + key.len, types[2]);
}

static void order(struct hf_scope *s, struct hf_str a, struct hf_str b)
{
    struct hf__buf values = {.scope = s}, a_part = {.scope = s}, b_part = {.scope = s};
    struct hf__buf prefix = {.scope = s};
    size_t cut;
    int parts, bytes = bytes_compare(a.ptr, a.len, b.ptr, b.len);
    bool begins = b.len >= a.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);

    hf__build_str(&values, HF_TYPE_S, a);
    cut = values.len;
    hf__build_str(&values, HF_TYPE_S, b);
    hf__key_put_range(&a_part, (struct hf_value){values.ptr, cut});
    hf__key_put_range(&b_part, (struct hf_value){values.ptr + cut, values.len - cut});
    parts = bytes_compare(a_part.ptr, a_part.len, b_part.ptr, b_part.len);
    MUST((parts > 0) - (parts < 0) == (bytes > 0) - (bytes < 0));

    hf__key_put_range_prefix(&prefix, hf_bytes_of(a.ptr, a.len));
    MUST(begins == (b_part.len >= prefix.len &&
                    (prefix.len == 0 || memcmp(b_part.ptr, prefix.ptr, prefix.len) == 0)));
    if (hf__key_successor(prefix.ptr, &prefix.len) && begins)
        MUST(bytes_compare(b_part.ptr, b_part.len, prefix.ptr, prefix.len) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s;
    enum hf_type types[3];
    size_t count, cut;
    const uint8_t *at;

    if (size == 0)
        return 0;
    s = hf_scope_new(NULL);
    MUST(s);
    for (unsigned i = 0, choice = data[0]; i < 3; i++, choice /= 3)
        types[i] = type_of(choice);
    count = 1 + (data[0] >> 7);
    cut = data[0] % size;
    data++;
    size--;
    at = data;
    read_hash(s, &at, data + size, types, count);
    read_mended(s, data, size, types, count);
    read_ranges(s, data, data + size, types[2]);
    order(s, hf_str_of((const char *)data, cut), hf_str_of((const char *)data + cut, size - cut));
    hf_scope_free(s);
    return 0;
}
