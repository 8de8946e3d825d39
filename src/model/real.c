/*
 * model/real.c: doubles as decimals, and back.
 *
 * A double becomes the shortest decimal that reads back as the same double. A decimal of 15 digits
 * or fewer always survives the way there and back, so 15 digits are tried first, and trailing zeros
 * are none in the stored form; 17 digits always do. The decimal nearest to the double may fall out
 * where its neighbour does not, at powers of two, where doubles lie closer below than above. So the
 * neighbour away from zero is tried as well.
 *
 * printf() and strtod() follow the locale in what a decimal point is. No text here has one that is
 * read: digits are a whole number and a power of ten.
 */
#include "model/number.h"

#include <math.h>

enum {
    DIGITS_SURE = 15, /* a decimal of so many digits survives a double */
    DIGITS_MAX = 17,  /* a double survives a decimal of so many */
    TEXT_MAX = 48
};

/* The digits of "%.*e" as a whole number, and the power of ten that it is to be multiplied by. */
static uint64_t take_digits(const char *text, int digits, int *power)
{
    uint64_t whole = 0;
    const char *at = text;

    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            whole = whole * 10 + (uint64_t)(*at - '0');
    *power = (int)strtol(at + 1, NULL, 10) - (digits - 1);
    return whole;
}

enum number_error hf__number_from_double(double value, struct number *out)
{
    double size = fabs(value);
    char text[TEXT_MAX];

    if (!isfinite(value))
        return NUMBER_SYNTAX;
    if (size == 0) {
        hf__number_from_i64(0, out);
        return NUMBER_OK;
    }
    for (int digits = DIGITS_SURE;; digits++) {
        uint64_t whole;
        int power;

        snprintf(text, sizeof(text), "%.*e", digits - 1, size);
        whole = take_digits(text, digits, &power);
        for (uint64_t more = 0; more <= 1; more++) {
            int len =
                snprintf(text, sizeof(text), "-%llue%d", (unsigned long long)(whole + more), power);

            if (strtod(text + 1, NULL) == size || digits == DIGITS_MAX)
                return hf__number_parse(value < 0 ? hf_str_of(text, (size_t)len)
                                                  : hf_str_of(text + 1, (size_t)len - 1),
                                        out);
        }
    }
}

double hf__number_to_double(const uint8_t *bytes, size_t len)
{
    char text[NUMBER_TEXT_MAX + 8];
    size_t text_len = hf__number_text(bytes, len, text);
    char *point = memchr(text, '.', text_len);
    size_t places = point ? (size_t)(text + text_len - point) - 1 : 0;

    if (point) {
        memmove(point, point + 1, places);
        text_len--;
    }
    snprintf(text + text_len, sizeof(text) - text_len, "e-%zu", places);
    return strtod(text, NULL);
}
