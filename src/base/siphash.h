/*
 * base/siphash.h: SipHash-2-4, a short keyed hash: who does not know the key cannot make two
 * inputs meet, nor forge a value. For tables keyed by hostile input, and to sign small tokens.
 */
#ifndef HF_BASE_SIPHASH_H
#define HF_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hf__siphash(const uint8_t key[16], const void *bytes, size_t len);

#endif
