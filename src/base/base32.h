/*
 * base/base32.h: numbers in Crockford's base 32, five bits a digit, which sort as the numbers do.
 *
 * The alphabet is a parameter: keys of the outbox are in lower case, positions of events in upper
 * case, as ULIDs are. Reading takes the one case only: two texts for one number would be two keys.
 */
#ifndef HF_BASE_BASE32_H
#define HF_BASE_BASE32_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BASE32_LOWER "0123456789abcdefghjkmnpqrstvwxyz"
#define BASE32_UPPER "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

enum { BASE32_DIGITS_MAX = 13 }; /* of 64 bits */

/* The low 5 * `digits` bits. Returns where the text goes on; no NUL is written. */
static inline char *base32_write(char *to, uint64_t number, int digits, const char *alphabet)
{
    assert(digits > 0 && digits <= BASE32_DIGITS_MAX);
    for (int i = digits - 1; i >= 0; i--, number >>= 5)
        to[i] = alphabet[number & 31];
    return to + digits;
}

/* Values of digits, plus 1, in rows of 16 characters; 0: no digit. */
#define BASE32_NONE 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define BASE32_FIGURES 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0, 0, 0
#define BASE32_LETTERS                                                                             \
    0, 11, 12, 13, 14, 15, 16, 17, 18, 0, 19, 20, 0, 21, 22, 0, 23, 24, 25, 26, 27, 0, 28, 29, 30, \
        31, 32, 0, 0, 0, 0, 0

/* False when one of the characters is no digit; then *number has no meaning. This is for every event
 * that is read. */
static inline bool base32_read(const char *from, int digits, const char *alphabet, uint64_t *number)
{
    static const uint8_t lower[256] = {BASE32_NONE, BASE32_NONE, BASE32_NONE,   BASE32_FIGURES,
                                       BASE32_NONE, BASE32_NONE, BASE32_LETTERS};
    static const uint8_t upper[256] = {BASE32_NONE, BASE32_NONE, BASE32_NONE, BASE32_FIGURES,
                                       BASE32_LETTERS};
    const uint8_t *values = alphabet[10] == 'a' ? lower : upper;
    uint64_t sum = 0;
    uint32_t bits = 0; /* of all digits; what is none has all of them */

    assert(digits > 0 && digits <= BASE32_DIGITS_MAX);
    for (int i = 0; i < digits; i++) {
        uint32_t digit = values[(unsigned char)from[i]] - 1u;

        bits |= digit;
        sum = sum << 5 | digit;
    }
    *number = sum;
    return bits < 32;
}

#endif
