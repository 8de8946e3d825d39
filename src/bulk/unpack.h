/*
 * bulk/unpack.h: data that is decompressed piece by piece: gzip by zlib, zstd by libzstd, which is loaded when it
 * is first needed. unpack.c has the rest.
 */
#ifndef HF_BULK_UNPACK_H
#define HF_BULK_UNPACK_H

#include "base/base.h"

enum bulk_packing { BULK_PLAIN, BULK_GZIP, BULK_ZSTD };

/* Can it be decompressed here? HF_UNSUPPORTED says which package is missing. */
enum hf_status hf__bulk_unpack_check(struct hf_scope *s, enum bulk_packing packing);

struct unpacker;

/* Of what is BULK_PLAIN, *unpacker is NULL. */
enum hf_status hf__bulk_unpack_open(struct hf_scope *s, enum bulk_packing packing,
                                    struct unpacker **unpacker);
void hf__bulk_unpack_close(struct unpacker *unpacker);

/* Take from the beginning of *packed, and write *got bytes, at most `max`. HF_CORRUPT: it is damaged. */
enum hf_status hf__bulk_unpack(struct hf_scope *s, struct unpacker *unpacker,
                               struct hf_bytes *packed, uint8_t *room, size_t max, size_t *got);

/* Would the data be cut if it ended here? NULL is not. */
bool hf__bulk_unpack_inside(const struct unpacker *unpacker);

#endif
