/*
 * blob/seal.h: bytes that only those can read or make who have a key: AES-256-GCM.
 */
#ifndef HF_BLOB_SEAL_H
#define HF_BLOB_SEAL_H

#include "base/base.h"

struct hf__seal; /* any thread may use it */

enum { SEAL_KEY = 32, SEAL_NONCE = 12, SEAL_TAG = 16 };

/*
 * Read the key from a file: 32 bytes, or 64 hexadecimal digits, as "openssl rand -hex 32" prints.
 *
 * HF_INVALID  the file has something else, or others than its owner may read it
 * HF_NOT_FOUND, HF_IO, HF_NOMEM
 */
enum hf_status hf__seal_open(struct hf_scope *s, const struct hf_env *env, struct hf_str file,
                             struct hf__seal **seal);
void hf__seal_close(struct hf__seal *seal);

/* Encrypt in place. `head` is not encrypted, but part of what the tag covers. A nonce is random, and
 * used once. HF_NOMEM. */
enum hf_status hf__seal_lock(struct hf_scope *s, const struct hf__seal *seal,
                             const uint8_t nonce[SEAL_NONCE], struct hf_bytes head, uint8_t *bytes,
                             size_t len, uint8_t tag[SEAL_TAG]);

/* Decrypt in place. HF_DENIED: it is another key, or something was changed; no message says what it is about. */
enum hf_status hf__seal_unlock(struct hf_scope *s, const struct hf__seal *seal,
                               const uint8_t nonce[SEAL_NONCE], struct hf_bytes head,
                               uint8_t *bytes, size_t len, const uint8_t tag[SEAL_TAG]);

#endif
