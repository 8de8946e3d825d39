/*
 * model/key.h: key values as bytes that sort as DynamoDB sorts them.
 *
 * A store key of an item is made of parts:
 *
 *     hash part    u64be XXH64 (seed 0) of the partition value's bytes, u16be length, those bytes
 *     range part   S, B: the bytes with every 0x00 written 0x00 0xFF, then 0x00 0x00
 *                  N: the form of model/number.h, which ends itself
 *
 * Partitions lie in the order of their hash, so a scan segment is a range of hashes. Within one
 * partition the order is that of the sort values. Every part ends itself, so that index entries can
 * append the table's key behind the index's.
 *
 * Both parts take lists of values although tables have one attribute each: keys of global
 * indexes may have up to four of either. The hash of one hash value is the seed for the next; it
 * stands once, before the length and bytes of each. Range parts stand one behind the other.
 */
#ifndef HF_MODEL_KEY_H
#define HF_MODEL_KEY_H

#include "base/buf.h"
#include "model/value.h"

/* Append the hash part of a key, from its values (each S, N or B). */
void hf__key_put_hash(struct hf__buf *buf, const struct hf_value *values, size_t count);

/* Append one range part. */
void hf__key_put_range(struct hf__buf *buf, struct hf_value value);

/* Append the bytes that every range part of an S or B beginning with `prefix` starts with. */
void hf__key_put_range_prefix(struct hf__buf *buf, struct hf_bytes prefix);

/* The hash that a partition value leads to, as it stands in front of the hash part. */
uint64_t hf__key_hash(const struct hf_value *values, size_t count);

/*
 * Turn the last byte of a prefix into its successor, dropping trailing 0xFF, so that [prefix,
 * successor) holds all that begins with the prefix. False when there is none (all 0xFF), and then
 * nothing is changed.
 */
bool hf__key_successor(uint8_t *bytes, size_t *len);

/*
 * Read a part back; *at moves behind it. False when it is not well-formed, or when scratch->failed:
 * *at stays. The values live in `scratch`; in one that lives with an env they move when it grows.
 */
bool hf__key_get_hash(struct hf__buf *scratch, const uint8_t **at, const uint8_t *end,
                      const enum hf_type *types, size_t count, struct hf_value *values);
bool hf__key_get_range(struct hf__buf *scratch, const uint8_t **at, const uint8_t *end,
                       enum hf_type type, struct hf_value *value);

#endif
