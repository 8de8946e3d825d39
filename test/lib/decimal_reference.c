/*
 * test/lib/decimal_reference.c: school arithmetic on rows of decimal digits.
 */
#include "decimal_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of a power of ten in a row, and of the first digit behind the point. */
#define AT(power) (REFERENCE_TOP - (power))
#define POINT AT(-1)

/* ---- rows ----------------------------------------------------------------------------------- */

/* Index of the first and of the last digit that is not zero; -1 for zero. */
static int first_digit(const struct reference *number)
{
    for (int i = 0; i < REFERENCE_ROW; i++)
        if (number->row[i])
            return i;
    return -1;
}

static int last_digit(const struct reference *number)
{
    for (int i = REFERENCE_ROW; i-- > 0;)
        if (number->row[i])
            return i;
    return -1;
}

static enum reference_error check(const struct reference *number)
{
    int first = first_digit(number);

    if (first < 0)
        return REFERENCE_OK;
    if (first < AT(125))
        return REFERENCE_OVERFLOW;
    if (first > AT(-130))
        return REFERENCE_UNDERFLOW;
    return last_digit(number) - first + 1 > 38 ? REFERENCE_PRECISION : REFERENCE_OK;
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool all_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr("0123456789", text[i]) || text[i] == '\0')
            return false;
    return len > 0;
}

static bool all_zeros(const char *text, size_t len)
{
    while (len && text[len - 1] == '0')
        len--;
    return len == 0;
}

/* The exponent behind an E, in 64 bits. */
static bool parse_exponent(const char *text, size_t len, long long *out)
{
    char copy[32] = "+";
    size_t sign = len && (text[0] == '+' || text[0] == '-') ? 1 : 0;
    const char *limit;

    if (!all_digits(text + sign, len - sign))
        return false;
    if (sign)
        copy[0] = text[0];
    text += sign;
    len -= sign;
    while (len > 1 && *text == '0') {
        text++;
        len--;
    }
    limit = copy[0] == '-' ? "9223372036854775808" : "9223372036854775807";
    if (len > 19 || (len == 19 && memcmp(text, limit, 19) > 0))
        return false;
    memcpy(copy + 1, text, len);
    *out = strtoll(copy, NULL, 10);
    return true;
}

/* Put the digits `text`, the first of which stands for 10^power, into the row. */
static enum reference_error place(const char *text, size_t len, long long power,
                                  struct reference *out)
{
    size_t kept = 0;

    while (len && text[0] == '0') {
        text++;
        len--;
        power--;
    }
    while (len && text[len - 1] == '0')
        len--;
    if (power > 125)
        return REFERENCE_OVERFLOW;
    if (power < -130)
        return REFERENCE_UNDERFLOW;
    if (len > 38)
        return REFERENCE_PRECISION;
    for (; kept < len; kept++)
        out->row[AT(power) + (int)kept] = (uint8_t)(text[kept] - '0');
    return REFERENCE_OK;
}

/* Cut the text at its E and at its point, then look at the pieces. */
enum reference_error reference_parse(const char *text, size_t len, struct reference *out)
{
    size_t mantissa = 0, whole = 0;
    long long exponent = 0;
    enum reference_error error;
    char *digits;
    size_t count;
    bool negative = len && text[0] == '-';

    memset(out, 0, sizeof(*out));
    if (len && (text[0] == '-' || text[0] == '+')) {
        text++;
        len--;
    }
    while (mantissa < len && text[mantissa] != 'e' && text[mantissa] != 'E')
        mantissa++;
    if (mantissa < len && !parse_exponent(text + mantissa + 1, len - mantissa - 1, &exponent))
        return REFERENCE_SYNTAX;
    while (whole < mantissa && text[whole] != '.')
        whole++;
    digits = malloc(len + 1);
    if (!digits)
        abort();
    if (whole)
        memcpy(digits, text, whole);
    count = whole;
    if (whole < mantissa) {
        memcpy(digits + whole, text + whole + 1, mantissa - whole - 1);
        count = mantissa - 1;
    }
    if (!all_digits(digits, count)) {
        error = REFERENCE_SYNTAX;
    } else if (all_zeros(digits, count)) {
        error = exponent > 125    ? REFERENCE_OVERFLOW
                : exponent < -130 ? REFERENCE_UNDERFLOW
                                  : REFERENCE_OK;
    } else {
        /* A text is far shorter than 10^15, so nothing beyond that can come back. */
        if (exponent > 1000000000000000)
            exponent = 1000000000000000;
        if (exponent < -1000000000000000)
            exponent = -1000000000000000;
        error = place(digits, count, exponent + (long long)whole - 1, out);
        out->negative = error == REFERENCE_OK && negative;
    }
    free(digits);
    return error;
}

size_t reference_text(const struct reference *number, char *out)
{
    int first = first_digit(number);
    int last = last_digit(number);
    size_t len = 0;

    if (first < 0 || first > AT(0))
        first = AT(0);
    if (last < AT(0))
        last = AT(0);
    if (number->negative)
        out[len++] = '-';
    for (int i = first; i <= last; i++) {
        if (i == POINT)
            out[len++] = '.';
        out[len++] = (char)('0' + number->row[i]);
    }
    out[len] = '\0';
    return len;
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

int reference_compare(const struct reference *a, const struct reference *b)
{
    int order = memcmp(a->row, b->row, sizeof(a->row));

    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    order = (order > 0) - (order < 0);
    return a->negative ? -order : order;
}

enum reference_error reference_add(const struct reference *a, const struct reference *b,
                                   struct reference *out)
{
    struct reference sum = {.negative = a->negative};
    int carry = 0;

    if (a->negative == b->negative) {
        for (int i = REFERENCE_ROW; i-- > 0;) {
            int digit = a->row[i] + b->row[i] + carry;

            sum.row[i] = (uint8_t)(digit % 10);
            carry = digit / 10;
        }
    } else {
        if (memcmp(a->row, b->row, sizeof(a->row)) < 0) {
            const struct reference *swap = a;

            a = b;
            b = swap;
        }
        sum.negative = a->negative;
        for (int i = REFERENCE_ROW; i-- > 0;) {
            int digit = a->row[i] - b->row[i] + carry;

            sum.row[i] = (uint8_t)((digit + 10) % 10);
            carry = digit < 0 ? -1 : 0;
        }
    }
    if (first_digit(&sum) < 0)
        sum.negative = false;
    *out = sum;
    return check(&sum) == REFERENCE_OK ? REFERENCE_OK : REFERENCE_OVERFLOW;
}

enum reference_error reference_subtract(const struct reference *a, const struct reference *b,
                                        struct reference *out)
{
    struct reference minus = *b;

    if (first_digit(b) >= 0)
        minus.negative = !b->negative;
    return reference_add(a, &minus, out);
}

/* ---- measures ------------------------------------------------------------------------------- */

size_t reference_size(const struct reference *number)
{
    int first = first_digit(number);
    int last = last_digit(number);
    size_t whole = 0, fraction = 0;

    if (first < 0)
        return 1;
    for (int i = first; i <= last; i++) {
        if (i < POINT)
            whole++;
        else
            fraction++;
    }
    return 1 + whole / 2 + whole % 2 + fraction / 2 + fraction % 2 + (number->negative ? 1 : 0);
}

static bool has_fraction(const struct reference *number)
{
    return last_digit(number) >= POINT;
}

bool reference_to_i64(const struct reference *number, int64_t *out)
{
    struct reference low, high;

    if (has_fraction(number))
        return false;
    reference_parse("-9223372036854775808", 20, &low);
    reference_parse("9223372036854775807", 19, &high);
    if (reference_compare(number, &low) < 0 || reference_compare(number, &high) > 0)
        return false;
    *out = 0;
    for (int i = 0; i < POINT; i++)
        *out = *out * 10 + (number->negative ? -number->row[i] : number->row[i]);
    return true;
}

int64_t reference_floor_i64(const struct reference *number)
{
    struct reference whole = *number;
    int64_t out;

    memset(whole.row + POINT, 0, sizeof(whole.row) - POINT);
    if (first_digit(&whole) < 0)
        whole.negative = false;
    if (!reference_to_i64(&whole, &out))
        return number->negative ? INT64_MIN : INT64_MAX;
    return number->negative && has_fraction(number) && out > INT64_MIN ? out - 1 : out;
}
