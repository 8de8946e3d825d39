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

/* False when one of the characters is no digit. */
static inline bool base32_read(const char *from, int digits, const char *alphabet, uint64_t *number)
{
    assert(digits > 0 && digits <= BASE32_DIGITS_MAX);
    *number = 0;
    for (int i = 0; i < digits; i++) {
        const char *found = (const char *)memchr(alphabet, from[i], 32);

        if (!found)
            return false;
        *number = *number << 5 | (uint64_t)(found - alphabet);
    }
    return true;
}

#endif
