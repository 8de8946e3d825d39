/*
 * bulk/manifest.h: the files beside the data of an export, as AWS writes them.
 *
 *     PREFIX/AWSDynamoDB/01700000000000-0a1b2c3d/
 *         _started               empty
 *         data/NAME.json.gz      or .ion.gz: records of items
 *         manifest-files.json    a line for each of them: its key, MD5 and number of items
 *         manifest-summary.json  which table, when, how many items
 *         manifest-files.md5, manifest-summary.md5    the MD5 of the two, in base64
 *
 * What always holds: manifest-summary.json is written last, so an export without it is not complete.
 */
#ifndef HF_BULK_MANIFEST_H
#define HF_BULK_MANIFEST_H

#include "base/base.h"
#include "base/buf.h"
#include "base/md5.h"

struct manifest_file {
    struct hf_str key;
    uint64_t items;
    uint8_t md5[MD5_LEN];
};

struct manifest_summary {
    struct hf_str export_arn;
    int64_t started_us, ended_us, export_us;
    struct hf_str table_arn, table_id;
    struct hf_str bucket, prefix; /* prefix may be absent */
    const char *sse;
    struct hf_str sse_key;   /* may be absent */
    struct hf_str files_key; /* of manifest-files.json */
    uint64_t bytes, items;
    const char *format;
};

void hf__bulk_md5_of(struct hf_bytes bytes, uint8_t digest[MD5_LEN]);

/* Append the line of a file to manifest-files.json. */
void hf__bulk_manifest_file(struct hf__buf *out, const struct manifest_file *file);

/* manifest-summary.json */
void hf__bulk_manifest_summary(struct hf__buf *out, const struct manifest_summary *summary);

/* A random name for a file of data, without an end. In the scope; absent without memory. */
struct hf_str hf__bulk_manifest_data_name(struct hf_scope *s, const struct hf_env *env);

#endif
