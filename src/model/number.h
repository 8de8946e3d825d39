/*
 * model/number.h: decimal numbers of 38 digits, kept in a form whose bytes sort as the numbers do.
 *
 * The stored form is also the key form: memcmp() over two of them is the numeric order, and two
 * numbers are equal exactly when their bytes are. It ends itself, so that it can stand in front of
 * other key parts:
 *
 *     zero       0x80 0x00
 *     positive   0x80 + (e + 64), then each base-100 digit d as d + 1, then 0x00
 *     negative   every byte of the positive form inverted (so the end is 0xFF)
 *
 * where the number is 0.D1D2D3... * 100^e in base 100, D1 and the last digit not zero, and e runs
 * from -64 (1E-130) to 63 (9.99E+125).
 */
#ifndef HF_MODEL_NUMBER_H
#define HF_MODEL_NUMBER_H

#include "base/base.h"

enum {
    NUMBER_DIGITS_MAX = 38, /* significant decimal digits */
    NUMBER_BYTES_MAX = 22,  /* first byte, 20 base-100 digits, end */
    NUMBER_TEXT_MAX = 176   /* "-0." 129 zeros and 38 digits is the longest canonical text */
};

struct number {
    uint8_t len;
    uint8_t bytes[NUMBER_BYTES_MAX];
};

enum number_error {
    NUMBER_OK,
    NUMBER_SYNTAX,    /* not a number at all */
    NUMBER_PRECISION, /* more than 38 significant digits */
    NUMBER_OVERFLOW,  /* magnitude above 9.99...E+125 */
    NUMBER_UNDERFLOW  /* magnitude below 1E-130 */
};

/*
 * Read DynamoDB's grammar: sign, digits with an optional point, optional exponent; no spaces, no
 * hex, no NaN. The exponent is read in full: beyond 32 bits it is still over- or underflow, beyond
 * 64 bits it is NUMBER_SYNTAX. A zero is range-checked by its written exponent.
 */
enum number_error hf__number_parse(struct hf_str text, struct number *out);

/* The canonical text, without exponent, into `out` of NUMBER_TEXT_MAX bytes; its length. */
size_t hf__number_text(const uint8_t *bytes, size_t len, char *out);

/*
 * Exact sum or difference. NUMBER_OVERFLOW is the one error: also when digits would be lost, and
 * when the result is too small. `out` may be what a or b lies in.
 */
enum number_error hf__number_add(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
                                 struct number *out);
enum number_error hf__number_subtract(const uint8_t *a, size_t a_len, const uint8_t *b,
                                      size_t b_len, struct number *out);

/*
 * The size that DynamoDB counts: 1 + ceil(integer digits / 2) + ceil(fraction digits / 2), and 1
 * more when negative, over the significant digits; 0 counts 1.
 */
size_t hf__number_size(const uint8_t *bytes, size_t len);

void hf__number_from_i64(int64_t value, struct number *out);

/* True and *out when it is whole and fits. */
bool hf__number_to_i64(const uint8_t *bytes, size_t len, int64_t *out);

/* The largest whole number not above it, clamped to 64 bits: what TTL and indexes need. */
int64_t hf__number_floor_i64(const uint8_t *bytes, size_t len);

/* real.c: the shortest decimal that reads back as that double. NUMBER_SYNTAX: NaN or infinite;
 * NUMBER_OVERFLOW, NUMBER_UNDERFLOW. And the nearest double. */
enum number_error hf__number_from_double(double value, struct number *out);
double hf__number_to_double(const uint8_t *bytes, size_t len);

/* How long the number at `bytes` is, at most `max`; 0 when it is not well-formed. */
size_t hf__number_length(const uint8_t *bytes, size_t max);

#endif
