/*
 * test/fuzz/fuzz_number.c: model/number.c against the slow reference.
 *
 * The input is taken as two texts with a newline between, and once more as stored bytes.
 */
#include "model/number.h"

#include "decimal_reference.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be(const struct number *number, const struct reference *reference)
{
    char text[NUMBER_TEXT_MAX], expected[REFERENCE_TEXT_MAX];
    size_t len = hf__number_text(number->bytes, number->len, text);

    MUST(hf__number_length(number->bytes, number->len) == number->len);
    MUST(len == reference_text(reference, expected));
    MUST(memcmp(text, expected, len) == 0);
}

static bool parse(const char *text, size_t len, struct number *number, struct reference *reference)
{
    enum reference_error expected = reference_parse(text, len, reference);
    int64_t whole = 0, expected_whole = 0;

    MUST((int)expected == (int)hf__number_parse(hf_str_of(text, len), number));
    if (expected != REFERENCE_OK)
        return false;
    must_be(number, reference);
    MUST(hf__number_size(number->bytes, number->len) == reference_size(reference));
    MUST(hf__number_to_i64(number->bytes, number->len, &whole) ==
         reference_to_i64(reference, &expected_whole));
    MUST(whole == expected_whole);
    MUST(hf__number_floor_i64(number->bytes, number->len) == reference_floor_i64(reference));
    return true;
}

static void texts(const char *text, size_t size)
{
    const char *newline = size ? memchr(text, '\n', size) : NULL;
    size_t a_len = newline ? (size_t)(newline - text) : size;
    struct number a, b, got;
    struct reference a_slow, b_slow, slow;
    enum reference_error expected;
    int order;

    if (!parse(text, a_len, &a, &a_slow) || !newline ||
        !parse(newline + 1, size - a_len - 1, &b, &b_slow))
        return;
    order = bytes_compare(a.bytes, a.len, b.bytes, b.len);
    MUST((order > 0) - (order < 0) == reference_compare(&a_slow, &b_slow));
    expected = reference_add(&a_slow, &b_slow, &slow);
    MUST((int)expected == (int)hf__number_add(a.bytes, a.len, b.bytes, b.len, &got));
    if (expected == REFERENCE_OK)
        must_be(&got, &slow);
    expected = reference_subtract(&a_slow, &b_slow, &slow);
    MUST((int)expected == (int)hf__number_subtract(a.bytes, a.len, b.bytes, b.len, &got));
    if (expected == REFERENCE_OK)
        must_be(&got, &slow);
}

/* Bytes that pass for a number are those that its text leads back to. */
static void stored(const uint8_t *data, size_t size)
{
    size_t len = hf__number_length(data, size);
    char text[NUMBER_TEXT_MAX];
    struct number again;

    if (len == 0)
        return;
    MUST(len <= size && len <= NUMBER_BYTES_MAX);
    MUST(hf__number_parse(hf_str_of(text, hf__number_text(data, len, text)), &again) == NUMBER_OK);
    MUST(again.len == len && memcmp(again.bytes, data, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    texts((const char *)data, size);
    stored(data, size);
    return 0;
}
