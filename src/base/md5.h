/*
 * base/md5.h: MD5 (RFC 1321), by which AWS's exports name what their files have to be. It protects
 * against accidents, not against people.
 */
#ifndef HF_BASE_MD5_H
#define HF_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { MD5_LEN = 16, MD5_BLOCK = 64, MD5_BASE64_LEN = 24 };

struct md5 {
    uint32_t state[4];
    uint64_t len; /* bytes so far */
    uint8_t block[MD5_BLOCK];
};

void hf__md5_begin(struct md5 *md5);
void hf__md5_add(struct md5 *md5, const void *bytes, size_t len);
void hf__md5_end(struct md5 *md5, uint8_t digest[MD5_LEN]);

/* In MD5_BASE64_LEN characters and a NUL. */
void hf__md5_base64(const uint8_t digest[MD5_LEN], char *text);

#endif
