/*
 * cli/transfer/transfer_aws.c: the folder that DynamoDB's export to S3 makes.
 *
 *     AWSDynamoDB/01700000000000-0a1b2c3d/
 *         _started               empty
 *         data/NAME.json.gz      lines of {"Item":{...}}, in DynamoDB's JSON
 *         manifest-files.json    a line for each of them: its name, MD5 and number of items
 *         manifest-summary.json  which table, when, how many items
 *         manifest-files.md5, manifest-summary.md5    the MD5 of the two, in base64
 *
 * Ours also has schema.json, the request of CreateTable for the table.
 *
 * What always holds:
 *
 *  (1) manifest-summary.json is written last: an export without it is not complete.
 *  (2) Files are only read from the folder of the manifest, whatever names stand in it.
 */
#include "cli/transfer/transfer.h"

#include "base/base.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char folder[] = "AWSDynamoDB";

enum { NAME_LEN = 26, TIME_ROOM = 40 };

/* ---- finding -------------------------------------------------------------------------------- */

bool hf__transfer_aws_complete(struct hf_scope *s, struct hf_str dir)
{
    return hf__transfer_exists(hf_scope_format(s, "%.*s/manifest-summary.json", HF_FMT(dir)));
}

static bool looks_exported(struct hf_scope *s, struct hf_str dir)
{
    return hf__transfer_aws_complete(s, dir) ||
           hf__transfer_exists(hf_scope_format(s, "%.*s/manifest-files.json", HF_FMT(dir))) ||
           hf__transfer_exists(hf_scope_format(s, "%.*s/_started", HF_FMT(dir)));
}

static int path_compare(const void *a, const void *b)
{
    const struct hf_str *first = a, *second = b;

    return bytes_compare(first->ptr, first->len, second->ptr, second->len);
}

/* Add the exports that are entries of `path`. */
static enum hf_status entries_add(struct hf_scope *s, struct hf_str path, struct hf_str **dirs,
                                  size_t *len)
{
    DIR *dir = path.ptr ? opendir(path.ptr) : NULL;
    const struct dirent *entry;
    size_t cap = 0;

    if (!dir)
        return path.ptr ? HF_OK : hf_scope_fail(s, HF_NOMEM, "out of memory");
    while ((entry = readdir(dir))) {
        struct hf_str at = hf_scope_format(s, "%.*s/%s", HF_FMT(path), entry->d_name);

        if (entry->d_name[0] == '.' || !looks_exported(s, at))
            continue;
        if (*len == cap) {
            struct hf_str *more = hf_scope_alloc(s, (cap ? cap * 2 : 16) * sizeof(*more));

            if (!more)
                break;
            if (*len)
                memcpy(more, *dirs, *len * sizeof(*more));
            *dirs = more;
            cap = cap ? cap * 2 : 16;
        }
        (*dirs)[(*len)++] = at;
    }
    closedir(dir);
    if (*len)
        qsort(*dirs, *len, sizeof(**dirs), path_compare);
    return hf_scope_built(s);
}

enum hf_status hf__transfer_aws_find(struct hf_scope *s, const char *path, struct hf_str **dirs,
                                     size_t *len)
{
    struct hf_str whole = hf_scope_copy(s, hf_str_from(path));

    *dirs = NULL;
    *len = 0;
    while (whole.ptr && whole.len > 1 && whole.ptr[whole.len - 1] == '/')
        whole = hf_scope_copy(s, hf_str_of(whole.ptr, whole.len - 1));
    if (looks_exported(s, whole)) {
        *dirs = hf_scope_alloc(s, sizeof(**dirs));
        if (!*dirs)
            return hf_scope_fail(s, HF_NOMEM, "out of memory");
        (*dirs)[(*len)++] = whole;
        return HF_OK;
    }
    TRY(entries_add(s, hf_scope_format(s, "%.*s/%s", HF_FMT(whole), folder), dirs, len));
    return *len ? HF_OK : entries_add(s, whole, dirs, len);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A manifest that matches its checksum, if that is there. */
static enum hf_status manifest_read(struct hf_scope *s, struct hf_str dir, const char *name,
                                    struct hf_str *text)
{
    struct hf_str path = hf_scope_format(s, "%.*s/%s.json", HF_FMT(dir), name);
    struct hf_str sum_path = hf_scope_format(s, "%.*s/%s.md5", HF_FMT(dir), name);
    struct hf_str error = {0}, sum;
    struct transfer_md5 md5;

    if (!path.ptr || !sum_path.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    if (!hf__transfer_exists(path))
        return hf_scope_fail(s, HF_NOT_FOUND,
                             "%.*s is missing: the export is not complete, or not an export",
                             HF_FMT(path));
    *text = hf__input_read(s, path.ptr, TRANSFER_MANIFEST_MAX, &error);
    if (!text->ptr)
        return hf_scope_fail(s, HF_IO, "%.*s", HF_FMT(error));
    if (!hf__transfer_exists(sum_path))
        return HF_OK;
    sum = hf__input_read(s, sum_path.ptr, TRANSFER_MANIFEST_MAX, &error);
    if (!sum.ptr)
        return hf_scope_fail(s, HF_IO, "%.*s", HF_FMT(error));
    while (sum.len && (unsigned char)sum.ptr[sum.len - 1] <= ' ')
        sum.len--;
    hf__transfer_md5_text(*text, &md5);
    if (!hf_str_equal(sum, hf_str_from(md5.base64)))
        return hf_scope_fail(s, HF_CORRUPT,
                             "%.*s: its MD5 is %s, and %s.md5 says %.*s: the file was changed",
                             HF_FMT(path), md5.base64, name, HF_FMT(sum));
    return HF_OK;
}

static enum hf_status summary_read(struct hf_scope *s, struct hf_str dir, struct transfer_aws *aws)
{
    static const char before[] = ":table/";
    const struct json_node *json;
    struct hf_str text, error = {0}, word;
    const char *at;

    TRY(manifest_read(s, dir, "manifest-summary", &text));
    json = hf__cli_json_read(s, text, &error);
    if (!json)
        return hf_scope_fail(s, HF_INVALID, "%.*s/manifest-summary.json: %.*s", HF_FMT(dir),
                             HF_FMT(error));
    word = hf__transfer_state_text(json, "outputFormat");
    if (word.ptr && !hf_str_equal(word, HF_STR("DYNAMODB_JSON")))
        return hf_scope_fail(s, HF_INVALID,
                             "%.*s/manifest-summary.json: outputFormat is %.*s; only "
                             "DYNAMODB_JSON can be imported",
                             HF_FMT(dir), HF_FMT(word));
    word = hf__transfer_state_text(json, "exportType");
    if (word.ptr && !hf_str_equal(word, HF_STR("FULL_EXPORT")))
        return hf_scope_fail(s, HF_INVALID,
                             "%.*s/manifest-summary.json: exportType is %.*s; only FULL_EXPORT "
                             "can be imported",
                             HF_FMT(dir), HF_FMT(word));
    word = hf__transfer_state_text(json, "tableArn");
    aws->table_arn = word;
    aws->table_id = hf__transfer_state_text(json, "tableId");
    at = word.ptr ? memmem(word.ptr, word.len, before, sizeof(before) - 1) : NULL;
    if (at)
        aws->table = hf_str_of(at + sizeof(before) - 1,
                               word.len - (size_t)(at - word.ptr) - (sizeof(before) - 1));
    (void)hf__transfer_state_number(json, "itemCount", &aws->items);
    return HF_OK;
}

static enum hf_status file_read(struct hf_scope *s, struct hf_str dir, struct hf_str line,
                                size_t number, struct transfer_file *file)
{
    struct hf_str error = {0}, key;
    const struct json_node *json = hf__cli_json_read(s, line, &error);
    struct stat about;

    if (!json)
        return hf_scope_fail(s, HF_INVALID, "%.*s/manifest-files.json:%zu: %.*s", HF_FMT(dir),
                             number, HF_FMT(error));
    key = hf__transfer_state_text(json, "dataFileS3Key");
    key = hf__transfer_base_name(key); /* (2) */
    if (!key.len || key.ptr[0] == '.')
        return hf_scope_fail(s, HF_INVALID, "%.*s/manifest-files.json:%zu: no dataFileS3Key",
                             HF_FMT(dir), number);
    file->path = hf_scope_format(s, "%.*s/data/%.*s", HF_FMT(dir), HF_FMT(key));
    file->md5 = hf__transfer_state_text(json, "md5Checksum");
    file->has_items = hf__transfer_state_number(json, "itemCount", &file->items);
    if (!file->path.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    if (stat(file->path.ptr, &about) != 0)
        return hf__transfer_fail(s, file->path.ptr, errno);
    file->bytes = (uint64_t)about.st_size;
    file->modified_us = (int64_t)about.st_mtim.tv_sec * 1000000 + about.st_mtim.tv_nsec / 1000;
    return HF_OK;
}

enum hf_status hf__transfer_aws_read(struct hf_scope *s, struct hf_str dir,
                                     struct transfer_aws *aws)
{
    struct hf_str text;
    size_t lines = 1, number = 0;

    *aws = (struct transfer_aws){.dir = dir};
    TRY(summary_read(s, dir, aws));
    TRY(manifest_read(s, dir, "manifest-files", &text));
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    if (lines > TRANSFER_FILES_MAX + 1)
        return hf_scope_fail(s, HF_LIMIT, "%.*s/manifest-files.json: more than %d files",
                             HF_FMT(dir), TRANSFER_FILES_MAX);
    aws->files = hf_scope_alloc(s, lines * sizeof(*aws->files));
    if (!aws->files)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    while (text.len) {
        struct hf_str line = str_cut(&text, '\n');

        number++;
        while (line.len && (unsigned char)line.ptr[line.len - 1] <= ' ')
            line.len--;
        if (!line.len)
            continue;
        aws->files[aws->files_len] = (struct transfer_file){.bytes = 0};
        TRY(file_read(s, dir, line, number, &aws->files[aws->files_len++]));
    }
    return HF_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static struct hf_str time_text(struct hf_scope *s, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[TIME_ROOM];
    struct tm parts;

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    return hf_scope_format(s, "%s.%03dZ", text, (int)(us / 1000 % 1000));
}

/* The manifest, and its checksum before it: (1). */
static enum hf_status manifest_write(struct hf_scope *s, struct hf_str dir, const char *name,
                                     struct hf_str text)
{
    struct hf_str path = hf_scope_format(s, "%.*s/%s.json", HF_FMT(dir), name);
    struct hf_str sum_path = hf_scope_format(s, "%.*s/%s.md5", HF_FMT(dir), name);
    struct transfer_md5 md5;

    if (!path.ptr || !sum_path.ptr || !text.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    hf__transfer_md5_text(text, &md5);
    TRY(hf__transfer_write_file(s, sum_path.ptr, hf_str_from(md5.base64)));
    return hf__transfer_write_file(s, path.ptr, text);
}

static struct hf_str files_text(struct hf_scope *s, const struct transfer_aws_summary *summary)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text))
        for (size_t i = 0; i < summary->files_len; i++) {
            const struct transfer_file *file = &summary->files[i];

            fprintf(text.out,
                    "{\"itemCount\":%llu,\"md5Checksum\":", (unsigned long long)file->items);
            hf__cli_json_write_text(text.out, file->md5);
            fprintf(text.out, ",\"etag\":\"%.*s\",\"dataFileS3Key\":\"%s/%.*s/data/%.*s\"}\n",
                    HF_FMT(file->md5_hex), folder, HF_FMT(summary->id),
                    HF_FMT(hf__transfer_base_name(file->path)));
        }
    return hf__cli_json_text_end(&text, s);
}

static struct hf_str summary_text(struct hf_scope *s, const struct transfer_aws_summary *summary)
{
    struct hf_str begin = time_text(s, summary->begin_us), end = time_text(s, summary->end_us);
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        FILE *out = text.out;

        fputs("{\"version\":\"2020-06-30\",\"exportArn\":", out);
        hf__cli_json_write_text(out,
                                hf_scope_format(s, "%.*s/export/%.*s", HF_FMT(summary->table_arn),
                                                HF_FMT(summary->id)));
        fprintf(out, ",\"startTime\":\"%.*s\",\"endTime\":\"%.*s\",\"tableArn\":", HF_FMT(begin),
                HF_FMT(end));
        hf__cli_json_write_text(out, summary->table_arn);
        fputs(",\"tableId\":", out);
        if (summary->table_id.ptr)
            hf__cli_json_write_text(out, summary->table_id);
        else
            fputs("null", out);
        fprintf(out,
                ",\"exportTime\":\"%.*s\",\"s3Bucket\":\"\",\"s3Prefix\":null,"
                "\"s3SseAlgorithm\":null,\"s3SseKmsKeyId\":null,"
                "\"manifestFilesS3Key\":\"%s/%.*s/manifest-files.json\",\"billedSizeBytes\":%llu,"
                "\"itemCount\":%llu,\"outputFormat\":\"DYNAMODB_JSON\","
                "\"exportType\":\"FULL_EXPORT\"}",
                HF_FMT(begin), folder, HF_FMT(summary->id), (unsigned long long)summary->bytes,
                (unsigned long long)summary->items);
    }
    return hf__cli_json_text_end(&text, s);
}

enum hf_status hf__transfer_aws_write(struct hf_scope *s,
                                      const struct transfer_aws_summary *summary)
{
    TRY(manifest_write(s, summary->dir, "manifest-files", files_text(s, summary)));
    return manifest_write(s, summary->dir, "manifest-summary", summary_text(s, summary));
}

struct hf_str hf__transfer_aws_id(struct hf_scope *s)
{
    const struct hf_env *env = hf_scope_env(s);
    uint8_t random[4];
    char hex[9];

    env->random(random, sizeof(random), env->user);
    hex_write(hex, random, sizeof(random));
    hex[8] = '\0';
    return hf_scope_format(s, "%014lld-%s", (long long)(env->wall_us(env->user) / 1000), hex);
}

struct hf_str hf__transfer_aws_file_name(struct hf_scope *s)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    const struct hf_env *env = hf_scope_env(s);
    uint8_t random[NAME_LEN];
    char name[NAME_LEN + 1] = "";

    env->random(random, sizeof(random), env->user);
    for (size_t i = 0; i < NAME_LEN; i++)
        name[i] = digits[random[i] % 32];
    return hf_scope_format(s, "%s.json.gz", name);
}
