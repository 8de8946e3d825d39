/*
 * model/number_test.c: decimals at their limits and one past them, and against the slow reference;
 * (n) is an invariant of number.c.
 */
#include "model/number.h"

#include <math.h>

#include "decimal_reference.h"
#include "test.h"

#define NINES_38 "99999999999999999999999999999999999999"
#define DIGITS_38 "12345678901234567890123456789012345678"
#define ZEROS_40 "0000000000000000000000000000000000000000"

/* ---- helpers -------------------------------------------------------------------------------- */

static struct number parse(const char *text)
{
    struct number number;

    if (hf__number_parse(hf_str_from(text), &number) != NUMBER_OK)
        fail_msg("%s is a number", text);
    CHECK_INT(number.len, hf__number_length(number.bytes, number.len));
    return number;
}

static struct hf_str text_of(struct number number, char *out)
{
    return hf_str_of(out, hf__number_text(number.bytes, number.len, out));
}

/* `text` is a number and comes back as `canonical`. */
static void check_text(const char *canonical, const char *text)
{
    char out[NUMBER_TEXT_MAX];

    CHECK_STR(canonical, text_of(parse(text), out));
}

static void check_error(enum number_error expected, const char *text)
{
    struct number number;
    enum number_error got = hf__number_parse(hf_str_from(text), &number);

    if (got != expected)
        fail_msg("%s: expected error %d, got %d", text, (int)expected, (int)got);
}

static int compare(struct number a, struct number b)
{
    int order = memcmp(a.bytes, b.bytes, a.len < b.len ? a.len : b.len);

    return (order > 0) - (order < 0);
}

/* a + b is `sum`, or is refused when `sum` is NULL; and b + a; and a - -b. */
static void check_sum(const char *sum, const char *a_text, const char *b_text)
{
    char out[NUMBER_TEXT_MAX], negated[256];
    struct number a = parse(a_text), b = parse(b_text), minus_b, got;
    enum number_error expected = sum ? NUMBER_OK : NUMBER_OVERFLOW;

    if (b_text[0] == '-')
        snprintf(negated, sizeof(negated), "%s", b_text + 1);
    else
        snprintf(negated, sizeof(negated), "-%s", b_text);
    minus_b = parse(negated);

    CHECK_INT(expected, hf__number_add(a.bytes, a.len, b.bytes, b.len, &got));
    if (sum)
        CHECK_STR(sum, text_of(got, out));
    CHECK_INT(expected, hf__number_add(b.bytes, b.len, a.bytes, a.len, &got));
    if (sum)
        CHECK_STR(sum, text_of(got, out));
    CHECK_INT(expected, hf__number_subtract(a.bytes, a.len, minus_b.bytes, minus_b.len, &got));
    if (sum)
        CHECK_STR(sum, text_of(got, out));
}

static size_t size_of(const char *text)
{
    struct number number = parse(text);

    return hf__number_size(number.bytes, number.len);
}

/* ---- grammar -------------------------------------------------------------------------------- */

TEST(number, reads_every_way_to_write_a_number)
{
    check_text("0", "0");
    check_text("7", "7");
    check_text("10", "10");
    check_text("100", "100");
    check_text("-12", "-12");
    check_text("12", "+12");
    check_text("0.5", ".5");
    check_text("-0.5", "-.5");
    check_text("5", "5.");
    check_text("5.25", "5.25");
    check_text("0.05", "0.05");
    check_text("1200", "1.2e3");
    check_text("1200", "1.2E+3");
    check_text("0.0012", "1.2E-3");
    check_text("120", "12.e1");
    check_text("1.2", ".12e1");
    check_text("5", "5e0000000000000000000000000000");
    check_text("50", "5e00000000000000000000000000001");
    check_text("5", "5e-0");
}

TEST(number, refuses_what_is_no_number)
{
    static const char *const texts[] = {"",      "+",        "-",         ".",   "+.",   "-.",
                                        "e5",    ".e5",      "1e",        "1e+", "1e-",  "1e.5",
                                        "1e5.0", "1..2",     "1.2.3",     " 1",  "1 ",   "1\n",
                                        "\t1",   "1 000",    "1,5",       "1_0", "0x10", "NaN",
                                        "nan",   "Infinity", "-Infinity", "inf", "+-1",  "--1",
                                        "1e5e5", "1e++5",    "1e+-5",     "1f",  "1d",   "1L",
                                        "a",     "1a",       "\xD9\xA1",  "e"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_error(NUMBER_SYNTAX, texts[i]);

    /* A NUL within is a byte like any other. */
    struct number number;
    CHECK_INT(NUMBER_SYNTAX, hf__number_parse(hf_str_of("1\0", 2), &number));
    CHECK_INT(NUMBER_SYNTAX, hf__number_parse(hf_str_of("1\0"
                                                        "2",
                                                        3),
                                              &number));
    CHECK_INT(NUMBER_SYNTAX, hf__number_parse(hf_str_of(NULL, 0), &number));
}

TEST(number, canonical_text_has_no_exponent_and_no_needless_zero)
{
    char long_text[200];

    check_text("0.001", "1e-3");
    check_text("1000", "1e3");
    check_text("1", "0001.000");
    check_text("1.5", "+001.500");
    check_text("0", "-0");
    check_text("0", "+0");
    check_text("0", "-0.000");
    check_text("0", ".0");
    check_text("0", "0.");
    check_text("100.001", "0100.0010");

    memset(long_text, '0', sizeof(long_text));
    long_text[0] = '1';
    long_text[126] = '\0';
    check_text(long_text, "1E125");

    memset(long_text, '0', sizeof(long_text));
    long_text[1] = '.';
    long_text[131] = '1';
    long_text[132] = '\0';
    check_text(long_text, "1E-130");
}

TEST(number, longest_text_fits)
{
    char out[NUMBER_TEXT_MAX + 8];
    struct number number = parse("-1.2345678901234567890123456789012345678E-130");
    size_t len;

    memset(out, '#', sizeof(out));
    len = hf__number_text(number.bytes, number.len, out);
    CHECK_INT(3 + 129 + 38, len);
    for (size_t i = NUMBER_TEXT_MAX; i < sizeof(out); i++)
        CHECK_INT('#', out[i]);
}

/* ---- limits --------------------------------------------------------------------------------- */

TEST(number, holds_38_digits_wherever_they_lie)
{
    check_text(NINES_38, NINES_38);
    check_text(DIGITS_38, DIGITS_38);
    check_text(NINES_38 "0", NINES_38 "0");
    check_text(NINES_38 "00", NINES_38 "e2");
    check_text("9.9999999999999999999999999999999999999",
               "9.9999999999999999999999999999999999999");
    check_text("0." NINES_38, "." NINES_38);
    check_text("0.0" NINES_38, ".0" NINES_38);
    check_text(NINES_38, ZEROS_40 NINES_38 "." ZEROS_40);
    check_text("0." ZEROS_40 NINES_38, "." ZEROS_40 NINES_38 ZEROS_40);
    check_text("1" ZEROS_40 ZEROS_40, "1" ZEROS_40 ZEROS_40);
    check_text("10000000000000000000000000000000000001", "10000000000000000000000000000000000001");
}

TEST(number, refuses_39_digits_wherever_they_lie)
{
    check_error(NUMBER_PRECISION, NINES_38 "9");
    check_error(NUMBER_PRECISION, "1" DIGITS_38);
    check_error(NUMBER_PRECISION, NINES_38 ".9");
    check_error(NUMBER_PRECISION, "." NINES_38 "9");
    check_error(NUMBER_PRECISION, ".0" NINES_38 "9");
    check_error(NUMBER_PRECISION, "1.00000000000000000000000000000000000001");
    check_error(NUMBER_PRECISION, "100000000000000000000000000000000000001");
    check_error(NUMBER_PRECISION, "1" ZEROS_40 ZEROS_40 "1");
    check_error(NUMBER_PRECISION, "-1" ZEROS_40 "." ZEROS_40 "1e-20");
}

TEST(number, magnitude_is_limited_at_both_ends)
{
    check_text("9.9999999999999999999999999999999999999",
               "9.9999999999999999999999999999999999999");
    parse("9.9999999999999999999999999999999999999E125");
    parse("-9.9999999999999999999999999999999999999E125");
    parse("0.1e126");
    parse("1000e122");
    check_error(NUMBER_OVERFLOW, "1E126");
    check_error(NUMBER_OVERFLOW, "-1E126");
    check_error(NUMBER_OVERFLOW, "10E125");
    check_error(NUMBER_OVERFLOW, "1000e123");
    check_error(NUMBER_OVERFLOW, "0.1e127");

    parse("1E-130");
    parse("-1E-130");
    parse("1.2345678901234567890123456789012345678E-130");
    parse("10E-131");
    parse("0.01e-128");
    check_error(NUMBER_UNDERFLOW, "1E-131");
    check_error(NUMBER_UNDERFLOW, "-1E-131");
    check_error(NUMBER_UNDERFLOW, "9.99E-131");
    check_error(NUMBER_UNDERFLOW, "0.1E-130");
    check_error(NUMBER_UNDERFLOW, NINES_38 "E-168");

    /* The range is judged before the digits are counted. */
    check_error(NUMBER_OVERFLOW, NINES_38 "9e100");
    check_error(NUMBER_UNDERFLOW, NINES_38 "9e-200");
}

TEST(number, exponent_is_read_in_full)
{
    check_error(NUMBER_OVERFLOW, "1e2147483648");
    check_error(NUMBER_OVERFLOW, "1e4294967296");
    check_error(NUMBER_OVERFLOW, "1e4294967297");
    check_error(NUMBER_UNDERFLOW, "1e-4294967296");
    check_error(NUMBER_OVERFLOW, "1e9223372036854775807");
    check_error(NUMBER_OVERFLOW, "1000e9223372036854775807");
    check_error(NUMBER_UNDERFLOW, "1e-9223372036854775808");
    check_error(NUMBER_UNDERFLOW, "0.001e-9223372036854775808");
    check_error(NUMBER_SYNTAX, "1e9223372036854775808");
    check_error(NUMBER_SYNTAX, "1e-9223372036854775809");
    check_error(NUMBER_SYNTAX, "1e18446744073709551616");
    check_error(NUMBER_SYNTAX, "1e18446744073709551617");
    check_error(NUMBER_SYNTAX, "1e99999999999999999999999999999999999999999");
    check_error(NUMBER_SYNTAX, "0e9223372036854775808");
    check_error(NUMBER_SYNTAX, "1e9223372036854775807x");
}

TEST(number, exponent_and_digits_may_cancel)
{
    char text[600];
    size_t len = 0;

    /* 1 and 300 zeros, times 10^-300. */
    text[len++] = '1';
    memset(text + len, '0', 300);
    len += 300;
    snprintf(text + len, sizeof(text) - len, "e-300");
    check_text("1", text);

    /* 0.000...1 with 299 zeros, times 10^300. */
    len = 0;
    text[len++] = '.';
    memset(text + len, '0', 299);
    len += 299;
    snprintf(text + len, sizeof(text) - len, "1e300");
    check_text("1", text);
}

TEST(number, zero_is_judged_by_its_written_exponent)
{
    check_text("0", "0e125");
    check_text("0", "-0e125");
    check_error(NUMBER_OVERFLOW, "0e126");
    check_text("0", "0e-130");
    check_error(NUMBER_UNDERFLOW, "0e-131");
    check_error(NUMBER_OVERFLOW, "0e4294967296");
    check_text("0", "0." ZEROS_40 ZEROS_40 ZEROS_40 ZEROS_40);
    check_text("0", ZEROS_40 ZEROS_40 ZEROS_40 ZEROS_40);
}

/* ---- stored form ---------------------------------------------------------------------------- */

static void check_bytes(const char *text, const char *bytes, size_t len)
{
    struct number number = parse(text);

    CHECK_INT(len, number.len);
    CHECK(memcmp(bytes, number.bytes, len) == 0);
}

/* What is on disk stays readable: these bytes may never change. */
TEST(number, stored_form_is_frozen)
{
    check_bytes("0", "\x80\x00", 2);
    check_bytes("1", "\xC1\x02\x00", 3);
    check_bytes("10", "\xC1\x0B\x00", 3);
    check_bytes("100", "\xC2\x02\x00", 3);
    check_bytes("-1", "\x3E\xFD\xFF", 3);
    check_bytes("0.1", "\xC0\x0B\x00", 3);
    check_bytes("0.01", "\xC0\x02\x00", 3);
    check_bytes("123.45", "\xC2\x02\x18\x2E\x00", 5);
    check_bytes("-123.45", "\x3D\xFD\xE7\xD1\xFF", 5);
    check_bytes("1E-130", "\x80\x02\x00", 3);
    check_bytes("9E125", "\xFF\x5B\x00", 3);
    check_bytes("-9E125", "\x00\xA4\xFF", 3);
}

TEST(number, equal_values_have_equal_bytes)
{
    static const char *const same[][2] = {{"1000", "1e3"},      {"1.0", "1"},      {"-0", "0e5"},
                                          {"0.10", "1e-1"},     {"12e1", "120.0"}, {"+7", "007"},
                                          {"1e-130", "10e-131"}};

    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        struct number a = parse(same[i][0]), b = parse(same[i][1]);

        CHECK_INT(a.len, b.len);
        CHECK(memcmp(a.bytes, b.bytes, a.len) == 0);
    }
}

/* (1): only canonical bytes are a number. */
TEST(number, length_accepts_canonical_bytes_only)
{
#define LENGTH(bytes) hf__number_length((const uint8_t *)(bytes), sizeof(bytes) - 1)
    uint8_t wide[32];

    CHECK_INT(2, LENGTH("\x80\x00"));
    CHECK_INT(2, LENGTH("\x80\x00rest"));
    CHECK_INT(3, LENGTH("\xC1\x02\x00\x00"));
    CHECK_INT(3, LENGTH("\x3E\xFD\xFF\xFF"));
    CHECK_INT(0, LENGTH(""));
    CHECK_INT(0, LENGTH("\x80"));
    CHECK_INT(0, LENGTH("\xC1\x02"));         /* no end */
    CHECK_INT(0, LENGTH("\xC1\x00"));         /* no digits */
    CHECK_INT(0, LENGTH("\x7F\xFF"));         /* minus zero */
    CHECK_INT(0, LENGTH("\xC1\x01\x02\x00")); /* first digit zero */
    CHECK_INT(0, LENGTH("\xC1\x02\x01\x00")); /* last digit zero */
    CHECK_INT(0, LENGTH("\xC1\x65\x00"));     /* digit 100 */
    CHECK_INT(3, LENGTH("\xC1\x64\x00"));     /* digit 99 */
    CHECK_INT(0, LENGTH("\x3E\xFD\x00"));     /* the end of the other sign */
#undef LENGTH

    /* 38 digits over 20 bytes; 39 over 20; 40 over 20; 21 bytes of digits. */
    memset(wide, 0x0B, sizeof(wide));
    wide[0] = 0xC1;
    wide[1] = 0x02;
    wide[21] = 0x00;
    CHECK_INT(22, hf__number_length(wide, 22));
    CHECK_INT(0, hf__number_length(wide, 21));
    wide[20] = 0x0C;
    CHECK_INT(0, hf__number_length(wide, 22));
    wide[1] = 0x0B;
    wide[20] = 0x0B;
    CHECK_INT(0, hf__number_length(wide, 22));
    wide[1] = 0x02;
    wide[21] = 0x0B;
    wide[22] = 0x00;
    CHECK_INT(0, hf__number_length(wide, 23));
}

TEST(number, bytes_sort_as_the_numbers_do)
{
    static const char *const order[] = {"-9.9999999999999999999999999999999999999E125",
                                        "-1e125",
                                        "-1000",
                                        "-100.5",
                                        "-100",
                                        "-99.9",
                                        "-99",
                                        "-10",
                                        "-9",
                                        "-1.01",
                                        "-1.001",
                                        "-1",
                                        "-0.5",
                                        "-0.1",
                                        "-0.01",
                                        "-1e-129",
                                        "-1.1e-130",
                                        "-1e-130",
                                        "0",
                                        "1e-130",
                                        "1.1e-130",
                                        "1e-129",
                                        "0.01",
                                        "0.1",
                                        "0.10001",
                                        "0.5",
                                        "1",
                                        "1.001",
                                        "1.01",
                                        "9",
                                        "10",
                                        "99",
                                        "99.9",
                                        "100",
                                        "100.5",
                                        "1000",
                                        "1e125",
                                        "9.9999999999999999999999999999999999999E125"};

    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        for (size_t j = 0; j < ARRAY_LEN(order); j++)
            CHECK_INT((i > j) - (i < j), compare(parse(order[i]), parse(order[j])));
}

/* ---- sums ----------------------------------------------------------------------------------- */

TEST(number, sums_are_exact)
{
    check_sum("2", "1", "1");
    check_sum("100", "99", "1");
    check_sum("1000", "999.9", "0.1");
    check_sum("0.3", "0.1", "0.2");
    check_sum("0", "5", "-5");
    check_sum("0", "0", "0");
    check_sum("7", "7", "0");
    check_sum("-7", "-7", "0");
    check_sum("-4", "-5", "1");
    check_sum("0.9", "1", "-0.1");
    check_sum("0.99", "1", "-0.01");
    check_sum("99.99", "100", "-0.01");
    check_sum("100000000000000000001", "1e20", "1");
}

TEST(number, sums_of_38_digits_fit_and_of_39_do_not)
{
    check_sum("1"
              "00000000000000000000000000000000000000",
              NINES_38, "1");
    check_sum(NINES_38, "1e38", "-1");
    check_sum("0." NINES_38, "1", "-1e-38");
    check_sum("9.9999999999999999999999999999999999999", "10", "-1e-37");
    check_sum("10000000000000000000000000000000000001", "1e37", "1");
    check_sum(NULL, "1e38", "1");
    check_sum(NULL, NINES_38, "0.1");
    check_sum(NULL, "1e39", "-1");
    check_sum(NULL, "1", "-1e-39");
    check_sum(NULL, "1e50", "1");
    check_sum(NULL, "1e50", "-1");
    check_sum(NULL, "1e125", "1e-130");
    check_sum(NULL, "1e125", "-1e-130");
}

/* (3): the borrow that clears the highest place, at every alignment and length. */
TEST(number, differences_shrink_from_every_span)
{
    for (int power = -60; power <= 60; power++) {
        for (int nines = 1; nines <= 38; nines++) {
            char one[32], many[80], rest[32];
            struct number a, b, c, got;

            snprintf(one, sizeof(one), "1e%d", power);
            snprintf(many, sizeof(many), "%.*se%d", nines, NINES_38, power - nines);
            snprintf(rest, sizeof(rest), "1e%d", power - nines);
            a = parse(one);
            b = parse(many);
            c = parse(rest);
            CHECK_INT(NUMBER_OK, hf__number_subtract(a.bytes, a.len, b.bytes, b.len, &got));
            CHECK_INT(0, compare(c, got));
            CHECK_INT(NUMBER_OK, hf__number_subtract(a.bytes, a.len, c.bytes, c.len, &got));
            CHECK_INT(0, compare(b, got));
            CHECK_INT(NUMBER_OK, hf__number_add(b.bytes, b.len, c.bytes, c.len, &got));
            CHECK_INT(0, compare(a, got));
        }
    }
}

/* A result outside the range is an overflow at either end. */
TEST(number, sums_outside_the_range_overflow)
{
    check_sum(NULL, "9e125", "1e125");
    check_sum(NULL, "-9e125", "-1e125");
    check_sum(NULL, "9.9999999999999999999999999999999999999e125", "1e88");
    check_sum(NINES_38 ZEROS_40 ZEROS_40 "00000000", "9.9999999999999999999999999999999999998e125",
              "1e88");
    check_sum(NULL, "1.5e-130", "-1.4e-130");
    check_sum(NULL, "-1.5e-130", "1.4e-130");
    check_sum("0", "1.5e-130", "-1.5e-130");
}

TEST(number, sum_may_replace_its_operand)
{
    struct number a = parse("99.5"), b = parse("0.5");
    char out[NUMBER_TEXT_MAX];

    CHECK_INT(NUMBER_OK, hf__number_add(a.bytes, a.len, b.bytes, b.len, &a));
    CHECK_STR("100", text_of(a, out));
    CHECK_INT(NUMBER_OK, hf__number_subtract(a.bytes, a.len, a.bytes, a.len, &a));
    CHECK_STR("0", text_of(a, out));
}

/* ---- size ----------------------------------------------------------------------------------- */

TEST(number, size_is_what_dynamodb_counts)
{
    CHECK_INT(1, size_of("0"));
    CHECK_INT(1, size_of("-0.00"));
    CHECK_INT(2, size_of("1"));
    CHECK_INT(2, size_of("10"));
    CHECK_INT(2, size_of("99"));
    CHECK_INT(3, size_of("101"));
    CHECK_INT(3, size_of("-1"));
    CHECK_INT(5, size_of("3.14159"));
    CHECK_INT(4, size_of("123456"));
    CHECK_INT(2, size_of("1E125"));
    CHECK_INT(2, size_of("1E-130"));
    CHECK_INT(2, size_of("0.001"));
    CHECK_INT(3, size_of("1.5"));
    CHECK_INT(3, size_of("0.125"));
    CHECK_INT(4, size_of("100.5"));
    CHECK_INT(5, size_of("1000.001"));
    CHECK_INT(20, size_of(NINES_38));
    CHECK_INT(21, size_of("-" NINES_38));
    CHECK_INT(21, size_of("9.9999999999999999999999999999999999999"));
}

/* ---- whole numbers -------------------------------------------------------------------------- */

static void check_i64(const char *text, bool fits, int64_t whole, int64_t floor)
{
    struct number number = parse(text);
    int64_t got = 77;

    CHECK_INT(fits, hf__number_to_i64(number.bytes, number.len, &got));
    CHECK_INT(fits ? whole : 77, got);
    CHECK_INT(floor, hf__number_floor_i64(number.bytes, number.len));
}

TEST(number, whole_numbers_of_64_bits)
{
    check_i64("0", true, 0, 0);
    check_i64("1", true, 1, 1);
    check_i64("-1", true, -1, -1);
    check_i64("1200", true, 1200, 1200);
    check_i64("1e18", true, 1000000000000000000, 1000000000000000000);
    check_i64("9223372036854775807", true, INT64_MAX, INT64_MAX);
    check_i64("9223372036854775808", false, 0, INT64_MAX);
    check_i64("-9223372036854775808", true, INT64_MIN, INT64_MIN);
    check_i64("-9223372036854775809", false, 0, INT64_MIN);
    check_i64("1e19", false, 0, INT64_MAX);
    check_i64("-1e19", false, 0, INT64_MIN);
    check_i64("9e125", false, 0, INT64_MAX);
    check_i64("-9e125", false, 0, INT64_MIN);
}

/* Doubles are the shortest decimal that reads back as the same one. */
TEST(number, doubles_are_the_shortest_decimal)
{
    static const struct {
        double value;
        const char *text;
    } all[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1, "-1"},
        {9.99, "9.99"},
        {-9.99, "-9.99"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {100, "100"},
        {1e21, "1000000000000000000000"},
        {123456789012345680.0, "123456789012345680"},
        {9007199254740993.0, "9007199254740992"},
        {0x1p-44, "0.00000000000005684341886080802"}, /* nearest of 16 digits is not the one */
        {4.35, "4.35"},
        {1e-7, "0.0000001"},
    };

    (void)t;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        char text[NUMBER_TEXT_MAX];
        struct number number;
        size_t len;

        CHECK_INT(NUMBER_OK, hf__number_from_double(all[i].value, &number));
        len = hf__number_text(number.bytes, number.len, text);
        CHECK_STR(all[i].text, hf_str_of(text, len));
        CHECK(hf__number_to_double(number.bytes, number.len) == all[i].value);
    }
}

/* The range is DynamoDB's, and what is no number is none. */
TEST(number, doubles_out_of_range)
{
    struct number number;

    (void)t;
    CHECK_INT(NUMBER_OK, hf__number_from_double(9.9e125, &number));
    CHECK_INT(NUMBER_OK, hf__number_from_double(-9.9e125, &number));
    CHECK_INT(NUMBER_OVERFLOW, hf__number_from_double(1e126, &number));
    CHECK_INT(NUMBER_OVERFLOW, hf__number_from_double(-1.7976931348623157e308, &number));
    CHECK_INT(NUMBER_OK, hf__number_from_double(1e-130, &number));
    CHECK_INT(NUMBER_UNDERFLOW, hf__number_from_double(9e-131, &number));
    CHECK_INT(NUMBER_UNDERFLOW, hf__number_from_double(5e-324, &number));
    CHECK_INT(NUMBER_SYNTAX, hf__number_from_double((double)NAN, &number));
    CHECK_INT(NUMBER_SYNTAX, hf__number_from_double((double)INFINITY, &number));
    CHECK_INT(NUMBER_SYNTAX, hf__number_from_double(-(double)INFINITY, &number));
}

/* Any double of the range comes back, in any locale. */
TEST(number, doubles_come_back)
{
    for (int i = 0; i < 20000; i++) {
        struct number number;
        double value, back;
        uint64_t bits = test_random(t);

        memcpy(&value, &bits, sizeof(value));
        if (hf__number_from_double(value, &number) != NUMBER_OK)
            continue;
        back = hf__number_to_double(number.bytes, number.len);
        CHECK(back == value);
    }
}

TEST(number, floor_goes_down)
{
    check_i64("0.5", false, 0, 0);
    check_i64("-0.5", false, 0, -1);
    check_i64("1.99", false, 0, 1);
    check_i64("-1.01", false, 0, -2);
    check_i64("1e-130", false, 0, 0);
    check_i64("-1e-130", false, 0, -1);
    check_i64("9223372036854775807.9", false, 0, INT64_MAX);
    check_i64("9223372036854775806.9", false, 0, INT64_MAX - 1);
    check_i64("-9223372036854775807.1", false, 0, INT64_MIN);
    check_i64("-9223372036854775808.1", false, 0, INT64_MIN);
}

TEST(number, i64_round_trip)
{
    for (int i = 0; i < 20000; i++) {
        int64_t value = (int64_t)(test_random(t) >> test_random_below(t, 64));
        char expected[32], out[NUMBER_TEXT_MAX];
        struct number number;
        int64_t back;

        if (i == 0)
            value = INT64_MIN;
        if (i & 1)
            value = -(value & INT64_MAX);
        if (i % 3 == 0 && value > INT64_MIN / 1000)
            value = value / 1000 * 1000;
        hf__number_from_i64(value, &number);
        CHECK_INT(number.len, hf__number_length(number.bytes, number.len));
        CHECK(hf__number_to_i64(number.bytes, number.len, &back));
        CHECK_INT(value, back);
        snprintf(expected, sizeof(expected), "%lld", (long long)value);
        CHECK_STR(expected, text_of(number, out));
        CHECK_INT(0, compare(number, parse(expected)));
    }
}

/* ---- against the reference ------------------------------------------------------------------ */

/* A written number: mostly valid, with digits, zeros, points and exponents where they hurt. */
static size_t random_text(struct test *t, char *out, int power)
{
    static const char *const alphabets[] = {"0123456789", "09", "0000000001", "9", "0059"};
    const char *alphabet = alphabets[test_random_below(t, ARRAY_LEN(alphabets))];
    size_t letters = strlen(alphabet);
    size_t count = 1 + test_random_below(t, test_random_below(t, 4) ? 38 : 41);
    size_t point = test_random_below(t, 3) ? count : test_random_below(t, count + 1);
    size_t len = 0;

    if (test_random_below(t, 2))
        out[len++] = test_random_below(t, 8) ? '-' : '+';
    for (size_t zeros = test_random_below(t, 4) ? 0 : test_random_below(t, 4); zeros > 0; zeros--)
        out[len++] = '0';
    for (size_t i = 0; i < count; i++) {
        if (i == point)
            out[len++] = '.';
        out[len++] = alphabet[test_random_below(t, letters)];
    }
    for (size_t zeros = test_random_below(t, 4) ? 0 : test_random_below(t, 6); zeros > 0; zeros--)
        out[len++] = '0';
    if (test_random_below(t, 8))
        len += (size_t)snprintf(out + len, 32, "%c%d", test_random_below(t, 2) ? 'e' : 'E',
                                power - (int)test_random_below(t, 40));
    return len;
}

/* Parse both ways; the error and every measure of the number agree. */
static bool check_one(const char *text, size_t len, struct number *number,
                      struct reference *reference)
{
    char out[NUMBER_TEXT_MAX], expected[REFERENCE_TEXT_MAX];
    enum reference_error error = reference_parse(text, len, reference);
    struct number again;
    int64_t whole = 0, expected_whole = 0;
    bool fits;

    CHECK_INT((int)error, (int)hf__number_parse(hf_str_of(text, len), number));
    if (error != REFERENCE_OK)
        return false;
    CHECK_INT(number->len, hf__number_length(number->bytes, number->len));
    reference_text(reference, expected);
    CHECK_STR(expected, text_of(*number, out));
    again = parse(expected);
    CHECK_INT(0, bytes_compare(again.bytes, again.len, number->bytes, number->len));
    CHECK_INT(reference_size(reference), hf__number_size(number->bytes, number->len));
    fits = reference_to_i64(reference, &expected_whole);
    CHECK_INT(fits, hf__number_to_i64(number->bytes, number->len, &whole));
    CHECK_INT(expected_whole, whole);
    CHECK_INT(reference_floor_i64(reference), hf__number_floor_i64(number->bytes, number->len));
    return true;
}

static void check_result(enum reference_error expected_error, const struct reference *expected,
                         enum number_error error, struct number got)
{
    char out[NUMBER_TEXT_MAX], expected_text[REFERENCE_TEXT_MAX];

    CHECK_INT((int)expected_error, (int)error);
    if (error != NUMBER_OK)
        return;
    CHECK_INT(got.len, hf__number_length(got.bytes, got.len));
    reference_text(expected, expected_text);
    CHECK_STR(expected_text, text_of(got, out));
}

TEST(number, agrees_with_the_reference)
{
    int pairs = 0, sums = 0, refused = 0;

    _Static_assert((int)NUMBER_UNDERFLOW == (int)REFERENCE_UNDERFLOW &&
                       (int)NUMBER_PRECISION == (int)REFERENCE_PRECISION,
                   "errors are compared by number");
    for (int i = 0; pairs < 100000; i++) {
        char a_text[160], b_text[160];
        struct number a, b, got = {0};
        struct reference a_slow, b_slow, slow;
        int power =
            i % 4 == 0 ? 126 - (int)test_random_below(t, 290) : (int)test_random_below(t, 40);
        size_t a_len = random_text(t, a_text, power);
        size_t b_len = random_text(t, b_text, power + 5 - (int)test_random_below(t, 10));
        bool a_ok = check_one(a_text, a_len, &a, &a_slow);
        bool b_ok = check_one(b_text, b_len, &b, &b_slow);
        enum number_error error;

        if (!a_ok || !b_ok)
            continue;
        pairs++;
        CHECK_INT(reference_compare(&a_slow, &b_slow), compare(a, b));
        error = hf__number_add(a.bytes, a.len, b.bytes, b.len, &got);
        check_result(reference_add(&a_slow, &b_slow, &slow), &slow, error, got);
        error == NUMBER_OK ? sums++ : refused++;
        error = hf__number_subtract(a.bytes, a.len, b.bytes, b.len, &got);
        check_result(reference_subtract(&a_slow, &b_slow, &slow), &slow, error, got);
        error == NUMBER_OK ? sums++ : refused++;
    }
    /* Both outcomes were met often, or the texts were chosen badly. */
    CHECK(sums > 20000);
    CHECK(refused > 20000);
}
