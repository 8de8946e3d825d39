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

/* The values of digits, plus 1, in an array of all characters; `a` is the first letter. */
#define BASE32_VALUES(a)                                                                           \
    ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,        \
    ['8'] = 9, ['9'] = 10, [(a)] = 11, [(a) + 1] = 12, [(a) + 2] = 13, [(a) + 3] = 14,             \
    [(a) + 4] = 15, [(a) + 5] = 16, [(a) + 6] = 17, [(a) + 7] = 18, [(a) + 9] = 19,                \
    [(a) + 10] = 20, [(a) + 12] = 21, [(a) + 13] = 22, [(a) + 15] = 23, [(a) + 16] = 24,           \
    [(a) + 17] = 25, [(a) + 18] = 26, [(a) + 19] = 27, [(a) + 21] = 28, [(a) + 22] = 29,           \
    [(a) + 23] = 30, [(a) + 24] = 31, [(a) + 25] = 32

/* False when one of the characters is no digit; then *number has no meaning. This is for every event
 * that is read. */
static inline bool base32_read(const char *from, int digits, const char *alphabet, uint64_t *number)
{
    static const uint8_t lower[256] = {BASE32_VALUES('a')}, upper[256] = {BASE32_VALUES('A')};
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
