/*
 * bulk/source.h: the records of an object in a bucket, one after the other. source.c has the essay.
 */
#ifndef HF_BULK_SOURCE_H
#define HF_BULK_SOURCE_H

#include "bulk/bucket.h"
#include "bulk/unpack.h"

enum bulk_form { SOURCE_LINES, SOURCE_CSV, SOURCE_ION };

enum { SOURCE_RECORD_MAX = 16 * 1024 * 1024 }; /* bytes: as much as a request may have */

struct source;

enum hf_status hf__bulk_source_open(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                                    enum bulk_form form, enum bulk_packing packing,
                                    struct source **source);
void hf__bulk_source_close(struct source *source);

/*
 * The next record, without the end of its line; valid until the next call. *found is false at the end.
 * Empty lines are stepped over. HF_CORRUPT: the object has none behind this place, as it is damaged,
 * is not compressed as it should be, or has a record that is too long. HF_NOT_FOUND, HF_IO, ...: the
 * object cannot be read.
 */
enum hf_status hf__bulk_source_next(struct hf_scope *s, struct source *source,
                                    struct hf_str *record, bool *found);

/* Bytes of the object, decompressed, up to the end of the last record; all of it at the end. */
uint64_t hf__bulk_source_bytes(const struct source *source);

#endif
