/*
 * base/base64.h: base64 as DynamoDB takes and gives it: the alphabet with + and /, padding always,
 * and no bits set that belong to no byte. So every value has exactly one text.
 */
#ifndef HF_BASE_BASE64_H
#define HF_BASE_BASE64_H

#include "base/base.h"

enum base64_result {
    BASE64_OK,
    BASE64_LENGTH,   /* not a multiple of four characters */
    BASE64_LAST,     /* the last character has bits that belong to no byte */
    BASE64_CHARACTER /* outside of the alphabet, or padding where none belongs */
};

/* Room that decoding `text_len` characters needs, and encoding `len` bytes. */
static inline size_t hf__base64_decoded_max(size_t text_len)
{
    return text_len / 4 * 3;
}

static inline size_t hf__base64_encoded_len(size_t len)
{
    return (len + 2) / 3 * 4;
}

enum base64_result hf__base64_decode(struct hf_str text, uint8_t *out, size_t *out_len);
size_t hf__base64_encode(struct hf_bytes bytes, char *out);

#endif
