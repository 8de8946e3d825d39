/*
 * test/lib/decimal_reference.h: DynamoDB's decimals the slow and plain way, to compare with
 * model/number.c. Shares no code and no idea with it: every number is a fixed-point row of decimal
 * digits that covers all powers of ten a number or a sum of two can have.
 */
#ifndef HF_TEST_LIB_DECIMAL_REFERENCE_H
#define HF_TEST_LIB_DECIMAL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REFERENCE_TOP = 127,     /* the highest power of ten in a row */
    REFERENCE_BOTTOM = -170, /* the lowest */
    REFERENCE_ROW = REFERENCE_TOP - REFERENCE_BOTTOM + 1,
    REFERENCE_TEXT_MAX = REFERENCE_ROW + 4
};

/* The same outcomes as enum number_error, named apart so that neither follows the other. */
enum reference_error {
    REFERENCE_OK,
    REFERENCE_SYNTAX,
    REFERENCE_PRECISION,
    REFERENCE_OVERFLOW,
    REFERENCE_UNDERFLOW
};

struct reference {
    bool negative;
    uint8_t row[REFERENCE_ROW]; /* row[0] is the digit of 10^REFERENCE_TOP */
};

enum reference_error reference_parse(const char *text, size_t len, struct reference *out);

/* Canonical text with a NUL; its length. */
size_t reference_text(const struct reference *number, char *out);

/* -1, 0 or 1 */
int reference_compare(const struct reference *a, const struct reference *b);

/* REFERENCE_OVERFLOW for whatever a number cannot hold. */
enum reference_error reference_add(const struct reference *a, const struct reference *b,
                                   struct reference *out);
enum reference_error reference_subtract(const struct reference *a, const struct reference *b,
                                        struct reference *out);

size_t reference_size(const struct reference *number);
bool reference_to_i64(const struct reference *number, int64_t *out);
int64_t reference_floor_i64(const struct reference *number);

#endif
