/*
 * model/number.c: decimals, read from text straight into base-100 digits and added in them.
 *
 * A decimal digit lies either in the higher or in the lower half of its base-100 digit, which of
 * the two depends on the parity of the decimal point's place and on nothing else. So 38 decimal
 * digits that begin in a lower half and end in a higher one take 20 base-100 digits, one more than
 * 38 / 2. Nothing here divides, except by constants, and nothing needs more than 64 bits.
 *
 * Three forms of a number:
 *
 *     struct scan     decimal digits and point, as they were found in a text
 *     struct digits   sign, exponent and base-100 digits, open for arithmetic
 *     bytes           the stored form of number.h
 *
 * What always holds:
 *
 *  (1) Stored bytes are canonical: first and last base-100 digit are not zero, there are at most 38
 *      decimal digits between the first and the last that is not zero, and zero has one form only.
 *      hf__number_length() accepts exactly what the other functions produce.
 *  (2) The exponents that the first byte can hold are those that the limits allow: a magnitude is
 *      in [1E-130, 1E+126) exactly when e is in [-64, 63].
 *  (3) A sum is exact, or it is refused. The work is bounded by SPAN_MAX, however far the exponents
 *      are apart.
 */
#include "model/number.h"

enum {
    PAIRS_MAX = 20, /* base-100 digits of a number */
    /*
     * Base-100 digits from the highest to the lowest of a sum that may yet fit. The lowest digit
     * of the operand that reaches further down is a digit of the result too, and a borrow can
     * clear at most the one highest place, unless the operands begin at the same or at neighbouring
     * places, where the span is at most 21 anyway. So of a span of 22 there remain at least 21
     * base-100 digits, which are at least 40 decimal ones: too many.
     */
    SPAN_MAX = 21,
    EXPONENT_MIN = -64, /* of 100 */
    EXPONENT_MAX = 63,
    POWER_MIN = -130, /* of 10, of the first digit */
    POWER_MAX = 125
};

_Static_assert(NUMBER_BYTES_MAX == PAIRS_MAX + 2, "first byte, digits, end");
_Static_assert(NUMBER_TEXT_MAX >= 3 - 2 * EXPONENT_MIN + 2 * PAIRS_MAX, "longest text fits");

struct digits {
    bool negative;
    int exponent;          /* the number is 0.at[0]at[1]... * 100^exponent */
    int len;               /* 0 for zero */
    uint8_t at[PAIRS_MAX]; /* 0 to 99 */
};

/* ---- stored form ---------------------------------------------------------------------------- */

/* How many decimal digits there are from the first to the last that is not zero. */
static int count_decimals(const uint8_t *pairs, int len)
{
    return 2 * len - (pairs[0] < 10) - (pairs[len - 1] % 10 == 0);
}

static void put_zero(struct number *out)
{
    out->len = 2;
    out->bytes[0] = 0x80;
    out->bytes[1] = 0x00;
}

static void put_digits(bool negative, int exponent, const uint8_t *pairs, int len,
                       struct number *out)
{
    uint8_t flip = negative ? 0xFF : 0x00;

    assert(len > 0 && len <= PAIRS_MAX && exponent >= EXPONENT_MIN && exponent <= EXPONENT_MAX);
    out->bytes[0] = (uint8_t)((0x80 + exponent - EXPONENT_MIN) ^ flip);
    for (int i = 0; i < len; i++)
        out->bytes[1 + i] = (uint8_t)((pairs[i] + 1) ^ flip);
    out->bytes[1 + len] = flip;
    out->len = (uint8_t)(len + 2);
}

static struct digits get_digits(const uint8_t *bytes, size_t len)
{
    struct digits out = {.negative = bytes[0] < 0x80, .len = (int)len - 2};
    uint8_t flip = out.negative ? 0xFF : 0x00;

    assert(len >= 2 && len <= NUMBER_BYTES_MAX && bytes[len - 1] == flip);
    out.exponent = (bytes[0] ^ flip) - 0x80 + EXPONENT_MIN;
    for (int i = 0; i < out.len; i++)
        out.at[i] = (uint8_t)((bytes[1 + i] ^ flip) - 1);
    return out;
}

size_t hf__number_length(const uint8_t *bytes, size_t max)
{
    uint8_t pairs[PAIRS_MAX];
    uint8_t flip;
    int len = 0;

    if (max < 2)
        return 0;
    if (bytes[0] == 0x80 && bytes[1] == 0x00)
        return 2;
    flip = bytes[0] < 0x80 ? 0xFF : 0x00;
    for (size_t i = 1; i < max; i++) {
        unsigned byte = bytes[i] ^ flip;

        if (byte == 0) {
            if (len == 0 || pairs[0] == 0 || pairs[len - 1] == 0 ||
                count_decimals(pairs, len) > NUMBER_DIGITS_MAX)
                return 0;
            return i + 1;
        }
        if (byte > 100 || len == PAIRS_MAX)
            return 0;
        pairs[len++] = (uint8_t)(byte - 1);
    }
    return 0;
}

/* ---- from text ------------------------------------------------------------------------------ */

struct scan {
    int64_t point; /* the number is 0.d1d2... * 10^point, before the written exponent */
    int64_t seen;  /* digits from the first that is not zero on */
    int64_t len;   /* of those, up to the last that is not zero */
    int64_t exponent;
    /* From [1] on; [0] and the one behind the last are a half that no written digit fills. */
    uint8_t digits[1 + NUMBER_DIGITS_MAX + 1];
};

/* Read digits; those beyond what a number holds are only counted. How many zeros led them. */
static const char *scan_digits(struct scan *scan, const char *at, const char *end, int64_t *zeros)
{
    const char *from = at;

    if (scan->seen == 0)
        while (at < end && *at == '0')
            at++;
    *zeros = at - from;
    for (; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';

        if (digit > 9)
            break;
        if (scan->seen < NUMBER_DIGITS_MAX)
            scan->digits[1 + scan->seen] = (uint8_t)digit;
        scan->seen++;
        if (digit)
            scan->len = scan->seen;
    }
    return at;
}

/* Read what follows an E up to the end; false when it is no number or beyond 64 bits. */
static bool scan_exponent(struct scan *scan, const char *at, const char *end)
{
    bool negative = at < end && *at == '-';

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end)
        return false;
    for (; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        int64_t step = negative ? -(int64_t)digit : (int64_t)digit;

        if (digit > 9 || __builtin_mul_overflow(scan->exponent, 10, &scan->exponent) ||
            __builtin_add_overflow(scan->exponent, step, &scan->exponent))
            return false;
    }
    return true;
}

/* Read the text behind the sign. */
static bool scan_text(struct scan *scan, const char *at, const char *end)
{
    const char *from = at;
    int64_t zeros;
    bool any;

    at = scan_digits(scan, at, end, &zeros);
    any = at > from;
    scan->point = scan->seen;
    if (at < end && *at == '.') {
        from = ++at;
        at = scan_digits(scan, at, end, &zeros);
        any = any || at > from;
        scan->point -= zeros;
    }
    if (!any)
        return false;
    if (at == end)
        return true;
    return (*at == 'e' || *at == 'E') && scan_exponent(scan, at + 1, end);
}

/* Pack decimal digits; `power` is that of the first. */
static void digits_pack(bool negative, int power, const struct scan *scan, struct number *out)
{
    /* With an even power the first digit is a lower half, and digits[0], a zero, its higher one. */
    int from = (power & 1) ? 1 : 0;
    int len = ((int)scan->len + (from == 0) + 1) / 2;
    uint8_t pairs[PAIRS_MAX];

    for (int i = 0; i < len; i++)
        pairs[i] = (uint8_t)(scan->digits[from + 2 * i] * 10 + scan->digits[from + 2 * i + 1]);
    put_digits(negative, (power - 2 * EXPONENT_MIN + 2) / 2 + EXPONENT_MIN, pairs, len, out);
}

/* Is the power of ten of the first digit within the limits? */
static enum number_error check_power(int64_t power)
{
    return power > POWER_MAX ? NUMBER_OVERFLOW : power < POWER_MIN ? NUMBER_UNDERFLOW : NUMBER_OK;
}

enum { PLAIN_DIGITS = 18 };

/* A whole number without sign or zeros in front, as most are; false, and nothing done, for others.
 */
static bool parse_plain(struct hf_str text, struct number *out)
{
    const char *at = text.ptr;
    const char *end = text.ptr + text.len;
    uint8_t *to = out->bytes;

    if (text.len > PLAIN_DIGITS || *at < '1' || *at > '9')
        return false;
    *to++ = (uint8_t)(0x80 - EXPONENT_MIN + (int)(text.len + 1) / 2);
    if (text.len % 2)
        *to++ = (uint8_t)(*at++ - '0' + 1);
    for (; at < end; at += 2) {
        unsigned high = (unsigned)at[0] - '0', low = (unsigned)at[1] - '0';

        if (high > 9 || low > 9)
            return false;
        *to++ = (uint8_t)(high * 10 + low + 1);
    }
    while (to[-1] == 1) /* a zero; the first digit is none */
        to--;
    *to++ = 0x00;
    out->len = (uint8_t)(to - out->bytes);
    return true;
}

enum number_error hf__number_parse(struct hf_str text, struct number *out)
{
    const int64_t far = INT64_MAX / 2;
    const char *at = text.ptr;
    struct scan scan;
    enum number_error error;
    bool negative;

    if (text.len == 0)
        return NUMBER_SYNTAX;
    if (parse_plain(text, out))
        return NUMBER_OK;
    negative = *at == '-';
    if (*at == '-' || *at == '+')
        at++;
    scan.point = scan.seen = scan.len = scan.exponent = 0;
    scan.digits[0] = 0;
    if (!scan_text(&scan, at, text.ptr + text.len))
        return NUMBER_SYNTAX;
    if (scan.len == 0) {
        error = check_power(scan.exponent);
        if (error == NUMBER_OK)
            put_zero(out);
        return error;
    }

    /* Half of what 64 bits hold is as far out as all of it, and leaves room to add. */
    if (scan.exponent > far)
        scan.exponent = far;
    if (scan.exponent < -far)
        scan.exponent = -far;
    error = check_power(scan.point + scan.exponent - 1);
    if (error != NUMBER_OK)
        return error;
    if (scan.len > NUMBER_DIGITS_MAX)
        return NUMBER_PRECISION;
    scan.digits[1 + scan.len] = 0;
    digits_pack(negative, (int)(scan.point + scan.exponent - 1), &scan, out);
    return NUMBER_OK;
}

/* ---- to text -------------------------------------------------------------------------------- */

/* "00", "01", ..., "99" */
static const char pair_text[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";

static char *write_pairs(char *to, const uint8_t *pairs, int len)
{
    for (int i = 0; i < len; i++, to += 2)
        memcpy(to, pair_text + 2 * pairs[i], 2);
    return to;
}

static char *write_zeros(char *to, int pairs)
{
    if (pairs <= 0)
        return to;
    memset(to, '0', 2 * (size_t)pairs);
    return to + 2 * pairs;
}

size_t hf__number_text(const uint8_t *bytes, size_t len, char *out)
{
    struct digits number = get_digits(bytes, len);
    char *to = out;
    int whole = number.exponent < number.len ? number.exponent : number.len;

    if (number.len == 0) {
        *out = '0';
        return 1;
    }
    if (number.negative)
        *to++ = '-';
    if (whole > 0) {
        if (number.at[0] < 10)
            *to++ = (char)('0' + number.at[0]);
        else
            to = write_pairs(to, number.at, 1);
        to = write_pairs(to, number.at + 1, whole - 1);
        to = write_zeros(to, number.exponent - whole);
    } else {
        *to++ = '0';
        whole = 0;
    }
    if (whole < number.len) {
        *to++ = '.';
        to = write_zeros(to, -number.exponent);
        to = write_pairs(to, number.at + whole, number.len - whole);
        to -= to[-1] == '0';
    }
    return (size_t)(to - out);
}

/* ---- sums ----------------------------------------------------------------------------------- */

static int compare_magnitude(const struct digits *a, const struct digits *b)
{
    if (a->exponent != b->exponent)
        return a->exponent < b->exponent ? -1 : 1;
    return bytes_compare(a->at, (size_t)a->len, b->at, (size_t)b->len);
}

/* Store what a sum left in `pairs`, if it is a number that can be stored. */
static enum number_error close_sum(bool negative, int exponent, const uint8_t *pairs, int len,
                                   struct number *out)
{
    while (len && pairs[len - 1] == 0)
        len--;
    while (len && pairs[0] == 0) {
        pairs++;
        len--;
        exponent--;
    }
    if (len == 0) {
        put_zero(out);
        return NUMBER_OK;
    }
    if (exponent < EXPONENT_MIN || exponent > EXPONENT_MAX ||
        count_decimals(pairs, len) > NUMBER_DIGITS_MAX)
        return NUMBER_OVERFLOW;
    put_digits(negative, exponent, pairs, len, out);
    return NUMBER_OK;
}

/* Add `len` pairs to those that end at `to`, carrying beyond them. */
static void add_pairs(uint8_t *to, const uint8_t *pairs, int len)
{
    int carry = 0;

    while (len-- > 0) {
        int sum = *--to + pairs[len] + carry;

        carry = sum >= 100;
        *to = (uint8_t)(carry ? sum - 100 : sum);
    }
    while (carry) {
        carry = *--to == 99;
        *to = (uint8_t)(carry ? 0 : *to + 1);
    }
}

/* Subtract likewise, from what is not less. */
static void subtract_pairs(uint8_t *to, const uint8_t *pairs, int len)
{
    int borrow = 0;

    while (len-- > 0) {
        int left = *--to - pairs[len] - borrow;

        borrow = left < 0;
        *to = (uint8_t)(borrow ? left + 100 : left);
    }
    while (borrow) {
        borrow = *--to == 0;
        *to = (uint8_t)(borrow ? 99 : *to - 1);
    }
}

static enum number_error digits_add(const struct digits *a, const struct digits *b,
                                    struct number *out)
{
    uint8_t sum[1 + SPAN_MAX] = {0}; /* the first takes the carry */
    const struct digits *large = a, *small = b;
    int low, span, small_end;

    if (a->len == 0 || b->len == 0) {
        const struct digits *other = a->len ? a : b;

        return close_sum(other->negative, other->exponent, other->at, other->len, out);
    }
    if (compare_magnitude(a, b) < 0) {
        large = b;
        small = a;
    }
    low = large->exponent - large->len;
    if (small->exponent - small->len < low)
        low = small->exponent - small->len;
    span = large->exponent - low;
    if (span > SPAN_MAX)
        return NUMBER_OVERFLOW;

    memcpy(sum + 1, large->at, (size_t)large->len);
    small_end = 1 + large->exponent - small->exponent + small->len;
    if (large->negative == small->negative)
        add_pairs(sum + small_end, small->at, small->len);
    else
        subtract_pairs(sum + small_end, small->at, small->len);
    return close_sum(large->negative, large->exponent + 1, sum, 1 + span, out);
}

enum number_error hf__number_add(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
                                 struct number *out)
{
    struct digits left = get_digits(a, a_len);
    struct digits right = get_digits(b, b_len);

    return digits_add(&left, &right, out);
}

enum number_error hf__number_subtract(const uint8_t *a, size_t a_len, const uint8_t *b,
                                      size_t b_len, struct number *out)
{
    struct digits left = get_digits(a, a_len);
    struct digits right = get_digits(b, b_len);

    right.negative = !right.negative;
    return digits_add(&left, &right, out);
}

/* ---- size ----------------------------------------------------------------------------------- */

size_t hf__number_size(const uint8_t *bytes, size_t len)
{
    uint8_t flip = bytes[0] < 0x80 ? 0xFF : 0x00;
    int exponent = (bytes[0] ^ flip) - 0x80 + EXPONENT_MIN;
    int all, whole, pairs;
    uint8_t first, last;

    assert(len >= 2 && len <= NUMBER_BYTES_MAX && bytes[len - 1] == flip);
    if (len == 2)
        return 1;
    first = (uint8_t)((bytes[1] ^ flip) - 1);
    last = (uint8_t)((bytes[len - 2] ^ flip) - 1);
    all = 2 * ((int)len - 2) - (first < 10) - (last % 10 == 0);
    whole = 2 * exponent - (first < 10);
    if (whole < 0)
        whole = 0;
    if (whole > all)
        whole = all;
    pairs = (whole + 1) / 2 + (all - whole + 1) / 2;
    return (size_t)pairs + (flip ? 2 : 1);
}

/* ---- whole numbers -------------------------------------------------------------------------- */

void hf__number_from_i64(int64_t value, struct number *out)
{
    uint8_t pairs[PAIRS_MAX];
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int from = PAIRS_MAX;
    int len, exponent;

    if (value == 0) {
        put_zero(out);
        return;
    }
    do {
        pairs[--from] = (uint8_t)(left % 100);
        left /= 100;
    } while (left);
    len = exponent = PAIRS_MAX - from;
    while (len > 1 && pairs[from + len - 1] == 0)
        len--;
    put_digits(value < 0, exponent, pairs + from, len, out);
}

/* The whole part, towards zero; false when it does not fit. */
static bool whole_part(const struct digits *number, int64_t *out)
{
    int64_t value = 0;

    for (int i = 0; i < number->exponent; i++) {
        int64_t pair = i < number->len ? number->at[i] : 0;

        if (__builtin_mul_overflow(value, 100, &value) ||
            __builtin_add_overflow(value, number->negative ? -pair : pair, &value))
            return false;
    }
    *out = value;
    return true;
}

bool hf__number_to_i64(const uint8_t *bytes, size_t len, int64_t *out)
{
    struct digits number = get_digits(bytes, len);

    if (number.len == 0) {
        *out = 0;
        return true;
    }
    return number.len <= number.exponent && whole_part(&number, out);
}

int64_t hf__number_floor_i64(const uint8_t *bytes, size_t len)
{
    struct digits number = get_digits(bytes, len);
    int64_t whole;

    if (number.len == 0)
        return 0;
    if (!whole_part(&number, &whole))
        return number.negative ? INT64_MIN : INT64_MAX;
    /* The whole part lies above a negative number that has a fraction. */
    if (number.negative && number.len > number.exponent && whole > INT64_MIN)
        whole--;
    return whole;
}
