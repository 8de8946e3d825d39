/*
 * bulk/manifest.c: the texts of manifests. manifest.h has the layout.
 */
#include "bulk/manifest.h"

#include <time.h>

enum { DATA_NAME_LEN = 26, TIME_ROOM = 40 };

void hf__bulk_md5_of(struct hf_bytes bytes, uint8_t digest[MD5_LEN])
{
    struct md5 md5;

    hf__md5_begin(&md5);
    hf__md5_add(&md5, bytes.ptr, bytes.len);
    hf__md5_end(&md5, digest);
}

/* As a string of JSON; absent is null. */
static void put_string(struct hf__buf *out, struct hf_str text)
{
    if (!text.ptr) {
        hf__buf_put_str(out, HF_STR("null"));
        return;
    }
    hf__buf_put_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c < ' ') {
            hf__buf_format(out, "\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\')
            hf__buf_put_byte(out, '\\');
        hf__buf_put_byte(out, c);
    }
    hf__buf_put_byte(out, '"');
}

static void put_time(struct hf__buf *out, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[TIME_ROOM];
    struct tm parts;

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    hf__buf_format(out, "\"%s.%03dZ\"", text, (int)(us / 1000 % 1000));
}

/* Of an upload in one part, S3's etag is the MD5 in hexadecimal. */
void hf__bulk_manifest_file(struct hf__buf *out, const struct manifest_file *file)
{
    char base64[MD5_BASE64_LEN + 1];

    hf__md5_base64(file->md5, base64);
    hf__buf_format(out, "{\"itemCount\":%llu,\"md5Checksum\":\"%s\",\"etag\":\"",
                   (unsigned long long)file->items, base64);
    for (size_t i = 0; i < MD5_LEN; i++)
        hf__buf_format(out, "%02x", file->md5[i]);
    hf__buf_put_str(out, HF_STR("\",\"dataFileS3Key\":"));
    put_string(out, file->key);
    hf__buf_put_str(out, HF_STR("}\n"));
}

void hf__bulk_manifest_summary(struct hf__buf *out, const struct manifest_summary *m)
{
    hf__buf_put_str(out, HF_STR("{\"version\":\"2020-06-30\",\"exportArn\":"));
    put_string(out, m->export_arn);
    hf__buf_put_str(out, HF_STR(",\"startTime\":"));
    put_time(out, m->started_us);
    hf__buf_put_str(out, HF_STR(",\"endTime\":"));
    put_time(out, m->ended_us);
    hf__buf_put_str(out, HF_STR(",\"tableArn\":"));
    put_string(out, m->table_arn);
    hf__buf_put_str(out, HF_STR(",\"tableId\":"));
    put_string(out, m->table_id);
    hf__buf_put_str(out, HF_STR(",\"exportTime\":"));
    put_time(out, m->export_us);
    hf__buf_put_str(out, HF_STR(",\"s3Bucket\":"));
    put_string(out, m->bucket);
    hf__buf_put_str(out, HF_STR(",\"s3Prefix\":"));
    put_string(out, m->prefix);
    hf__buf_format(out, ",\"s3SseAlgorithm\":\"%s\",\"s3SseKmsKeyId\":", m->sse);
    put_string(out, m->sse_key);
    hf__buf_put_str(out, HF_STR(",\"manifestFilesS3Key\":"));
    put_string(out, m->files_key);
    hf__buf_format(out,
                   ",\"billedSizeBytes\":%llu,\"itemCount\":%llu,\"outputFormat\":\"%s\","
                   "\"exportType\":\"FULL_EXPORT\"}",
                   (unsigned long long)m->bytes, (unsigned long long)m->items, m->format);
}

struct hf_str hf__bulk_manifest_data_name(struct hf_scope *s, const struct hf_env *env)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t random[DATA_NAME_LEN];
    char name[DATA_NAME_LEN];

    hf__env_random(env, random, sizeof(random));
    for (size_t i = 0; i < DATA_NAME_LEN; i++)
        name[i] = digits[random[i] % 32];
    return hf_scope_copy(s, hf_str_of(name, sizeof(name)));
}
