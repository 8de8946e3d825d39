/*
 * model/key_test.c: key parts against the order and the identity of their values; (n) is an
 * invariant of key.c.
 */
#include "model/key.h"

#include "decimal_reference.h"
#include "test.h"

/* ---- helpers -------------------------------------------------------------------------------- */

enum { PLAIN_MAX = 3000 };

/* A value built by hand, byte for byte as model/value.h says. */
struct plain {
    uint8_t bytes[PLAIN_MAX + 8];
    struct hf_value value;
};

static struct hf_value make_bytes(struct plain *plain, enum hf_type type, const void *bytes,
                                  size_t len)
{
    size_t at = 0;

    CHECK(len <= PLAIN_MAX);
    plain->bytes[at++] = (uint8_t)type;
    if (len < 128) {
        plain->bytes[at++] = (uint8_t)len;
    } else {
        plain->bytes[at++] = (uint8_t)(0x80 | (len & 0x7F));
        plain->bytes[at++] = (uint8_t)(len >> 7);
    }
    if (len)
        memcpy(plain->bytes + at, bytes, len);
    plain->value = (struct hf_value){plain->bytes, at + len};
    return plain->value;
}

static struct hf_value make_number(struct plain *plain, const char *text)
{
    struct number number;

    CHECK_INT(NUMBER_OK, hf__number_parse(hf_str_from(text), &number));
    plain->bytes[0] = HF_TYPE_N;
    plain->bytes[1] = number.len;
    memcpy(plain->bytes + 2, number.bytes, number.len);
    plain->value = (struct hf_value){plain->bytes, 2 + (size_t)number.len};
    return plain->value;
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static int buf_compare(const struct hf__buf *a, const struct hf__buf *b)
{
    return sign(bytes_compare(a->ptr, a->len, b->ptr, b->len));
}

static bool same_value(struct hf_value a, struct hf_value b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* Few different bytes, so that prefixes, zeros and 0xFF meet often. */
static size_t random_bytes(struct test *t, uint8_t *out, size_t max)
{
    static const uint8_t alphabet[] = {0x00, 0x00, 0x01, 0x61, 0xFE, 0xFF, 0xFF};
    size_t len = test_random_below(t, max + 1);

    for (size_t i = 0; i < len; i++)
        out[i] = alphabet[test_random_below(t, ARRAY_LEN(alphabet))];
    return len;
}

static void random_number(struct test *t, char *out, size_t size)
{
    snprintf(out, size, "%s%llu.%llue%d", test_random_below(t, 2) ? "-" : "",
             (unsigned long long)test_random_below(t, 200),
             (unsigned long long)test_random_below(t, 200), (int)test_random_below(t, 7) - 3);
}

static struct hf_value random_value(struct test *t, struct plain *plain, enum hf_type type)
{
    uint8_t bytes[8];
    char text[64];

    if (type == HF_TYPE_N) {
        random_number(t, text, sizeof(text));
        return make_number(plain, text);
    }
    return make_bytes(plain, type, bytes, random_bytes(t, bytes, sizeof(bytes)));
}

static void check_range(const char *bytes, size_t len, struct hf_value value, struct test *t)
{
    struct hf__buf buf = {.env = test_env(t)};

    hf__key_put_range(&buf, value);
    CHECK_INT(len, buf.len);
    CHECK(memcmp(bytes, buf.ptr, len) == 0);
    hf__buf_free(&buf);
}

/* ---- forms that are on disk ----------------------------------------------------------------- */

/* (3) */
TEST(key, hash_is_frozen)
{
    struct plain a, b, c;
    struct hf_value joined[2];

    make_bytes(&a, HF_TYPE_S, "", 0);
    CHECK(hf__key_hash(&a.value, 1) == 0xEF46DB3751D8E999u);
    make_bytes(&a, HF_TYPE_S, "a", 1);
    CHECK(hf__key_hash(&a.value, 1) == 0xD24EC4F1A98C6E5Bu);
    make_bytes(&a, HF_TYPE_B, "abc", 3);
    CHECK(hf__key_hash(&a.value, 1) == 0x44BC2CF5AD770999u);
    make_bytes(&a, HF_TYPE_S, "The quick brown fox jumps over the lazy dog", 43);
    CHECK(hf__key_hash(&a.value, 1) == 0x0B242D361FDA71BCu);
    make_number(&a, "1.0");
    CHECK(hf__key_hash(&a.value, 1) == 0xFF876EAEF500FD9Au);

    /* Of several, each is the seed for the next. */
    make_bytes(&b, HF_TYPE_S, "ab", 2);
    make_bytes(&c, HF_TYPE_B, "c", 1);
    joined[0] = b.value;
    joined[1] = c.value;
    CHECK(hf__key_hash(joined, 2) == 0x7807DF9D3024B0F2u);
}

TEST(key, parts_are_frozen)
{
    static const uint8_t hash_part[] = {0x44, 0xBC, 0x2C, 0xF5, 0xAD, 0x77, 0x09,
                                        0x99, 0x00, 0x03, 'a',  'b',  'c'};
    static const uint8_t joined_part[] = {0x78, 0x07, 0xDF, 0x9D, 0x30, 0x24, 0xB0, 0xF2,
                                          0x00, 0x02, 'a',  'b',  0x00, 0x01, 'c'};
    struct hf__buf buf = {.env = test_env(t)};
    struct plain a, b;
    struct hf_value joined[2];

    make_bytes(&a, HF_TYPE_S, "abc", 3);
    hf__key_put_hash(&buf, &a.value, 1);
    CHECK_INT(0, bytes_compare(hash_part, sizeof(hash_part), buf.ptr, buf.len));
    buf.len = 0;
    joined[0] = make_bytes(&a, HF_TYPE_S, "ab", 2);
    joined[1] = make_bytes(&b, HF_TYPE_S, "c", 1);
    hf__key_put_hash(&buf, joined, 2);
    CHECK_INT(0, bytes_compare(joined_part, sizeof(joined_part), buf.ptr, buf.len));
    hf__buf_free(&buf);

    check_range("abc\x00\x00", 5, make_bytes(&a, HF_TYPE_S, "abc", 3), t);
    check_range("\x00\x00", 2, make_bytes(&a, HF_TYPE_B, "", 0), t);
    check_range("a\x00\xFF\x00\x00", 5, make_bytes(&a, HF_TYPE_B, "a\0", 2), t);
    check_range("\x00\xFF\x00\xFF\xFF\x00\x00", 7, make_bytes(&a, HF_TYPE_S, "\0\0\xFF", 3), t);
    check_range("\xC1\x02\x00", 3, make_number(&a, "1"), t);
    check_range("\x80\x00", 2, make_number(&a, "0"), t);
}

/* ---- order ---------------------------------------------------------------------------------- */

/* (1), for strings and binaries, with zeros within and one the beginning of the other. */
TEST(key, range_parts_of_bytes_sort_as_the_bytes_do)
{
    struct hf__buf a_part = {.env = test_env(t)}, b_part = {.env = test_env(t)};

    for (int i = 0; i < 100000; i++) {
        enum hf_type type = i & 1 ? HF_TYPE_S : HF_TYPE_B;
        uint8_t a_bytes[10], b_bytes[16];
        size_t a_len = random_bytes(t, a_bytes, 6), b_len;
        struct plain a, b;

        b_len = random_bytes(t, b_bytes, 6);
        if (i % 3 == 0) {
            size_t tail = random_bytes(t, b_bytes + a_len, 3);

            memcpy(b_bytes, a_bytes, a_len);
            b_len = a_len + tail;
        }
        a_part.len = b_part.len = 0;
        hf__key_put_range(&a_part, make_bytes(&a, type, a_bytes, a_len));
        hf__key_put_range(&b_part, make_bytes(&b, type, b_bytes, b_len));
        CHECK_INT(sign(bytes_compare(a_bytes, a_len, b_bytes, b_len)),
                  buf_compare(&a_part, &b_part));

        /* Nothing that follows can turn the order round. */
        if (buf_compare(&a_part, &b_part) < 0) {
            hf__buf_put(&a_part, "\xFF\xFF", 2);
            CHECK_INT(-1, buf_compare(&a_part, &b_part));
        }
    }
    hf__buf_free(&a_part);
    hf__buf_free(&b_part);
}

/* (1), for numbers: the judge is the slow reference. */
TEST(key, range_parts_of_numbers_sort_as_the_numbers_do)
{
    struct hf__buf a_part = {.env = test_env(t)}, b_part = {.env = test_env(t)};

    for (int i = 0; i < 20000; i++) {
        char a_text[64], b_text[64];
        struct reference a_slow, b_slow;
        struct plain a, b;

        random_number(t, a_text, sizeof(a_text));
        random_number(t, b_text, sizeof(b_text));
        CHECK_INT(REFERENCE_OK, reference_parse(a_text, strlen(a_text), &a_slow));
        CHECK_INT(REFERENCE_OK, reference_parse(b_text, strlen(b_text), &b_slow));
        a_part.len = b_part.len = 0;
        hf__key_put_range(&a_part, make_number(&a, a_text));
        hf__key_put_range(&b_part, make_number(&b, b_text));
        CHECK_INT(reference_compare(&a_slow, &b_slow), buf_compare(&a_part, &b_part));
        if (buf_compare(&a_part, &b_part) < 0) {
            hf__buf_put(&a_part, "\xFF\xFF", 2);
            CHECK_INT(-1, buf_compare(&a_part, &b_part));
        }
    }
    hf__buf_free(&a_part);
    hf__buf_free(&b_part);
}

/* The keys from prefix to its successor are those of values that begin with it, and no other. */
TEST(key, range_prefix_holds_what_begins_with_it)
{
    struct hf__buf low = {.env = test_env(t)}, high = {.env = test_env(t)};
    struct hf__buf part = {.env = test_env(t)};
    int inside = 0;

    for (int i = 0; i < 100000; i++) {
        uint8_t prefix[3], bytes[8];
        size_t prefix_len = random_bytes(t, prefix, sizeof(prefix));
        size_t len = random_bytes(t, bytes, sizeof(bytes));
        bool begins, within;
        struct plain plain;

        low.len = high.len = part.len = 0;
        hf__key_put_range(&part, make_bytes(&plain, HF_TYPE_S, bytes, len));
        hf__key_put_range_prefix(&low, hf_bytes_of(prefix, prefix_len));
        hf__buf_put(&high, low.ptr, low.len);
        begins = len >= prefix_len && memcmp(bytes, prefix, prefix_len) == 0;
        within = buf_compare(&part, &low) >= 0;
        if (hf__key_successor(high.ptr, &high.len))
            within = within && buf_compare(&part, &high) < 0;
        CHECK_INT(begins, within);
        inside += begins;
    }
    CHECK(inside > 1000);
    hf__buf_free(&low);
    hf__buf_free(&high);
    hf__buf_free(&part);
}

TEST(key, successor_drops_what_cannot_grow)
{
    uint8_t bytes[4] = {0x01, 0x02, 0xFF, 0xFF};
    uint8_t full[2] = {0xFF, 0xFF};
    size_t len = 4, full_len = 2, none = 0;

    CHECK(hf__key_successor(bytes, &len));
    CHECK_INT(2, len);
    CHECK_INT(0x01, bytes[0]);
    CHECK_INT(0x03, bytes[1]);

    CHECK(!hf__key_successor(full, &full_len));
    CHECK_INT(2, full_len);
    CHECK_INT(0xFF, full[1]);
    CHECK(!hf__key_successor(full, &none));

    bytes[0] = 0x00;
    len = 1;
    CHECK(hf__key_successor(bytes, &len));
    CHECK_INT(0x01, bytes[0]);
    CHECK_INT(1, len);
}

/* ---- reading back --------------------------------------------------------------------------- */

/* A whole key of random parts, as an index entry has it, comes back part by part. */
TEST(key, reads_back_what_was_written)
{
    static const enum hf_type kinds[] = {HF_TYPE_S, HF_TYPE_N, HF_TYPE_B};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct plain *plains = hf_scope_alloc(s, 8 * sizeof(*plains));

    for (int i = 0; i < 20000; i++) {
        struct hf__mark mark = hf__scope_mark(s);
        struct hf__buf key = {.scope = s}, scratch = {.scope = s};
        size_t hashes = 1 + test_random_below(t, 4), ranges = test_random_below(t, 5);
        enum hf_type types[8] = {HF_TYPE_NONE};
        struct hf_value in[8] = {{0}}, out[8] = {{0}};
        const uint8_t *at;

        for (size_t j = 0; j < hashes + ranges; j++) {
            types[j] = kinds[test_random_below(t, 3)];
            in[j] = random_value(t, &plains[j], types[j]);
        }
        hf__key_put_hash(&key, in, hashes);
        for (size_t j = hashes; j < hashes + ranges; j++)
            hf__key_put_range(&key, in[j]);
        hf__buf_put(&key, "\x00", 1);

        at = key.ptr;
        CHECK(hf__key_get_hash(&scratch, &at, key.ptr + key.len, types, hashes, out));
        for (size_t j = hashes; j < hashes + ranges; j++)
            CHECK(hf__key_get_range(&scratch, &at, key.ptr + key.len, types[j], &out[j]));
        CHECK_INT(key.len - 1, at - key.ptr);
        for (size_t j = 0; j < hashes + ranges; j++)
            CHECK(same_value(in[j], out[j]));
        hf__scope_rewind(s, mark);
    }
    hf_scope_free(s);
}

/* The longest keys, whose lengths take two bytes in a value. */
TEST(key, reads_back_long_values)
{
    static const size_t lens[] = {127, 128, 129, KEY_RANGE_MAX, KEY_HASH_MAX};
    static uint8_t bytes[KEY_HASH_MAX];
    struct hf_scope *s = hf_scope_new(test_env(t));
    enum hf_type type = HF_TYPE_B;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        for (int fill = 0; fill < 3; fill++) {
            struct hf__buf key = {.scope = s}, scratch = {.scope = s};
            struct hf_value out;
            struct plain plain;
            const uint8_t *at;

            memset(bytes, fill == 2 ? 0xFF : fill, sizeof(bytes));
            make_bytes(&plain, type, bytes, lens[i]);
            hf__key_put_hash(&key, &plain.value, 1);
            hf__key_put_range(&key, plain.value);
            at = key.ptr;
            CHECK(hf__key_get_hash(&scratch, &at, key.ptr + key.len, &type, 1, &out));
            CHECK(same_value(plain.value, out));
            CHECK(hf__key_get_range(&scratch, &at, key.ptr + key.len, type, &out));
            CHECK(same_value(plain.value, out));
            CHECK(at == key.ptr + key.len);
        }
    }
    hf_scope_free(s);
}

/* (2): every beginning of a key, and every key with a byte changed in its hash part, is refused. */
TEST(key, refuses_what_was_cut_or_damaged)
{
    static const enum hf_type kinds[] = {HF_TYPE_S, HF_TYPE_N, HF_TYPE_B};
    struct hf__buf hash = {.env = test_env(t)}, range = {.env = test_env(t)};
    struct hf__buf scratch = {.env = test_env(t)};

    for (int i = 0; i < 2000; i++) {
        enum hf_type type = kinds[i % 3];
        struct plain plain;
        struct hf_value out;
        const uint8_t *at;

        hash.len = range.len = scratch.len = 0;
        random_value(t, &plain, type);
        hf__key_put_hash(&hash, &plain.value, 1);
        hf__key_put_range(&range, plain.value);
        for (size_t cut = 0; cut < hash.len; cut++) {
            at = hash.ptr;
            CHECK(!hf__key_get_hash(&scratch, &at, hash.ptr + cut, &type, 1, &out));
            CHECK(at == hash.ptr);
        }
        for (size_t cut = 0; cut < range.len; cut++) {
            at = range.ptr;
            CHECK(!hf__key_get_range(&scratch, &at, range.ptr + cut, type, &out));
            CHECK(at == range.ptr);
        }
        for (size_t bad = 0; bad < hash.len; bad++) {
            hash.ptr[bad] ^= 0x41;
            at = hash.ptr;
            CHECK(!hf__key_get_hash(&scratch, &at, hash.ptr + hash.len, &type, 1, &out));
            hash.ptr[bad] ^= 0x41;
        }
        CHECK_INT(0, scratch.len);
    }
    hf__buf_free(&hash);
    hf__buf_free(&range);
    hf__buf_free(&scratch);
}

TEST(key, refuses_other_forms_of_a_value)
{
    struct hf__buf scratch = {.env = test_env(t)};
    struct hf_value out;
    const uint8_t *at;

    at = (const uint8_t *)"a\x00\x01\x00\x00"; /* a zero followed by neither */
    CHECK(!hf__key_get_range(&scratch, &at, at + 5, HF_TYPE_S, &out));
    at = (const uint8_t *)"\xC1\x02\x01\x00"; /* a number with a zero behind */
    CHECK(!hf__key_get_range(&scratch, &at, at + 4, HF_TYPE_N, &out));
    /* A hash that is right, over bytes that are no number: none at all. */
    at = (const uint8_t *)"\xEF\x46\xDB\x37\x51\xD8\xE9\x99\x00\x00";
    CHECK(!hf__key_get_hash(&scratch, &at, at + 10, (enum hf_type[]){HF_TYPE_N}, 1, &out));
    CHECK(hf__key_get_hash(&scratch, &at, at + 10, (enum hf_type[]){HF_TYPE_S}, 1, &out));
    hf__buf_free(&scratch);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(key, no_memory_is_remembered)
{
    struct plain plain;
    struct hf__buf good = {.env = test_env(t)};
    enum hf_type type = HF_TYPE_S;
    struct hf_value out;
    const uint8_t *at;

    make_bytes(&plain, HF_TYPE_S, "a\0b", 3);
    hf__key_put_hash(&good, &plain.value, 1);
    hf__key_put_range(&good, plain.value);
    t->fail_at = -(int64_t)(t->allocs + 1);
    for (int i = 0; i < 5; i++) {
        struct hf__buf buf = {.env = test_env(t)};

        at = good.ptr;
        if (i == 0)
            hf__key_put_hash(&buf, &plain.value, 1);
        else if (i == 1)
            hf__key_put_range(&buf, plain.value);
        else if (i == 2)
            hf__key_put_range_prefix(&buf, hf_bytes_of("ab", 2));
        else if (i == 3)
            CHECK(!hf__key_get_hash(&buf, &at, good.ptr + good.len, &type, 1, &out));
        else {
            at += 13;
            CHECK(!hf__key_get_range(&buf, &at, good.ptr + good.len, type, &out));
        }
        CHECK(buf.failed);
        CHECK_INT(0, buf.len);
        CHECK(at == good.ptr + (i == 4 ? 13 : 0));
        hf__buf_free(&buf);
    }
    t->fail_at = 0;
    at = good.ptr + 13;
    struct hf__buf buf = {.env = test_env(t)};
    CHECK(hf__key_get_range(&buf, &at, good.ptr + good.len, type, &out));
    hf__buf_free(&buf);
    hf__buf_free(&good);
}
