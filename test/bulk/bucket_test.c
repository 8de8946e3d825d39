/*
 * bulk/bucket_test.c: buckets as folders, and in a strict fake of S3. (n) is an invariant of
 * bulk/bucket_dir.c.
 */
#include "bulk/bucket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../blob/fake_s3.h"
#include "test.h"

static struct hf_bytes bytes_of(const char *text)
{
    return hf_bytes_of(text, strlen(text));
}

/* The keys of a list, with a space behind each. */
static struct hf_str keys_of(struct hf_scope *s, struct bucket *bucket, const char *prefix)
{
    struct hf_str all = HF_STR("");
    struct bucket_list list;

    CHECK_OK(hf__bulk_bucket_list(s, bucket, hf_str_from(prefix), &list));
    for (size_t i = 0; i < list.len; i++)
        all = hf_scope_format(s, "%.*s%.*s ", HF_FMT(all), HF_FMT(list.objects[i].key));
    return all;
}

static void check_read(struct hf_scope *s, struct bucket *bucket, const char *key, uint64_t from,
                       size_t len, const char *expected)
{
    struct hf_bytes bytes;

    CHECK_OK(hf__bulk_bucket_read(s, bucket, hf_str_from(key), from, len, &bytes));
    CHECK_STR(expected, hf_str_of((const char *)bytes.ptr, bytes.len));
}

/* What every kind does. */
static void check_kind(struct hf_scope *s, struct bucket *bucket)
{
    static const char *const names[] = {"a/2", "a/1", "ab", "b/c/d", "a/10"};
    struct hf_bytes bytes;

    CHECK_STR("", keys_of(s, bucket, ""));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK_OK(hf__bulk_bucket_put(s, bucket, hf_str_from(names[i]), bytes_of("0123456789")));
    CHECK_STR("a/1 a/10 a/2 ab b/c/d ", keys_of(s, bucket, ""));
    CHECK_STR("a/1 a/10 a/2 ab ", keys_of(s, bucket, "a"));
    CHECK_STR("a/1 a/10 ", keys_of(s, bucket, "a/1"));
    CHECK_STR("b/c/d ", keys_of(s, bucket, "b/c/d"));
    CHECK_STR("", keys_of(s, bucket, "x"));
    CHECK_OK(hf__bulk_bucket_put(s, bucket, HF_STR("ab"), bytes_of("other")));
    check_read(s, bucket, "ab", 0, 100, "other");
    check_read(s, bucket, "a/1", 3, 4, "3456");
    check_read(s, bucket, "a/1", 8, 4, "89");
    check_read(s, bucket, "a/1", 10, 4, "");
    CHECK_OK(hf__bulk_bucket_put(s, bucket, HF_STR("empty"), bytes_of("")));
    check_read(s, bucket, "empty", 0, 4, "");
    CHECK_STATUS(HF_NOT_FOUND, hf__bulk_bucket_read(s, bucket, HF_STR("no"), 0, 4, &bytes));
    CHECK_STR("S3NoSuchKey", hf_str_from(hf__bulk_bucket_code(bucket, HF_NOT_FOUND)));
}

TEST(bucket, a_folder)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *dir = test_directory(t);
    struct hf_str url = hf_scope_format(s, "dir:%s", dir);
    struct bucket *bucket;

    mkdir(hf_scope_format(s, "%s/mine", dir).ptr, 0700);
    CHECK_OK(hf__bulk_bucket_open(s, test_env(t), url, HF_STR("mine"), &bucket));
    check_kind(s, bucket);
    hf__bulk_bucket_close(bucket);
    CHECK_STATUS(HF_NOT_FOUND, hf__bulk_bucket_open(s, test_env(t), url, HF_STR("no"), &bucket));
    CHECK(!bucket);
    CHECK_STR("S3NoSuchBucket", hf_str_from(hf__bulk_bucket_code(NULL, HF_NOT_FOUND)));
    hf_scope_free(s);
}

/* (1): no key leads out, and no symbolic link is followed. */
TEST(bucket, keys_stay_in_the_folder)
{
    static const char *const evil[] = {"../out", "a/../../out", "/etc/passwd", "a//b", ".", "..",
                                       "a/.",    "a/",          "link/x",      "link", ""};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *dir = test_directory(t);
    struct hf_str url = hf_scope_format(s, "dir:%s", dir);
    struct bucket *bucket;
    struct hf_bytes bytes;

    mkdir(hf_scope_format(s, "%s/mine", dir).ptr, 0700);
    mkdir(hf_scope_format(s, "%s/outside", dir).ptr, 0700);
    CHECK_INT(0, symlink("../outside", hf_scope_format(s, "%s/mine/link", dir).ptr));
    CHECK_OK(hf__bulk_bucket_open(s, test_env(t), url, HF_STR("mine"), &bucket));
    for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
        struct hf_str key = hf_str_from(evil[i]);

        if (key.len && strcmp(evil[i], "link") != 0) /* which is replaced by a file */
            CHECK(hf__bulk_bucket_put(s, bucket, key, bytes_of("x")) == HF_DENIED);
        CHECK(hf__bulk_bucket_read(s, bucket, key, 0, 4, &bytes) == HF_DENIED);
    }
    CHECK_INT(0, rmdir(hf_scope_format(s, "%s/outside", dir).ptr)); /* nothing is in it */
    CHECK_STR("", keys_of(s, bucket, ""));
    hf__bulk_bucket_close(bucket);
    CHECK_STATUS(HF_NOT_FOUND, hf__bulk_bucket_open(s, test_env(t), url, HF_STR(".."), &bucket));
    CHECK_STATUS(HF_NOT_FOUND,
                 hf__bulk_bucket_open(s, test_env(t), url, HF_STR("mine/x"), &bucket));
    CHECK_STATUS(HF_INVALID, hf__bulk_bucket_check(s, HF_STR("file:/tmp")));
    CHECK_STATUS(HF_INVALID, hf__bulk_bucket_check(s, HF_STR("dir:")));
    hf_scope_free(s);
}

/* ---- S3 ------------------------------------------------------------------------------------- */

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t wall_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_REALTIME);
}

static int64_t elapsed_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_MONOTONIC);
}

struct far {
    struct fake_s3 *fake;
    struct hf_env env;
    struct hf_scope *s;
};

static void far_open(struct far *far, struct test *t)
{
    far->fake = calloc(1, sizeof(*far->fake));
    CHECK(far->fake != NULL);
    fake_open(far->fake);
    far->fake->deep_lists = true;
    far->fake->page = 2;
    far->env = *test_env(t);
    far->env.wall_us = wall_us;
    far->env.elapsed_us = elapsed_us;
    far->s = hf_scope_new(&far->env);
    setenv("AWS_ACCESS_KEY_ID", FAKE_KEY, 1);
    setenv("AWS_SECRET_ACCESS_KEY", FAKE_SECRET, 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
}

static void far_close(struct far *far)
{
    fake_close(far->fake);
    free(far->fake);
    hf_scope_free(far->s);
}

static struct hf_str far_url(struct far *far, const char *path)
{
    return hf_scope_format(far->s, "s3://%s?endpoint=%s&region=eu-central-1", path,
                           far->fake->listener.origin);
}

/* The bucket of a request is a bucket of the service. */
TEST(bucket, buckets_of_s3)
{
    struct far far;
    struct bucket *bucket;

    far_open(&far, t);
    CHECK_OK(
        hf__bulk_bucket_open(far.s, &far.env, far_url(&far, ""), HF_STR("test-bucket"), &bucket));
    check_kind(far.s, bucket);
    CHECK(fake_find(far.fake, "b/c/d") != NULL);
    hf__bulk_bucket_close(bucket);
    CHECK_STATUS(HF_NOT_FOUND, hf__bulk_bucket_open(far.s, &far.env, far_url(&far, ""),
                                                    HF_STR("Upper_case"), &bucket));
    far_close(&far);
}

/* Or a folder in one. Others of that bucket are not seen. */
TEST(bucket, a_folder_in_s3)
{
    struct far far;
    struct bucket *bucket;

    far_open(&far, t);
    fake_add(far.fake, "deep/other/x", "text");
    CHECK_OK(hf__bulk_bucket_open(far.s, &far.env, far_url(&far, "test-bucket/deep"),
                                  HF_STR("mine"), &bucket));
    check_kind(far.s, bucket);
    CHECK(fake_find(far.fake, "deep/mine/b/c/d") != NULL);
    hf__bulk_bucket_close(bucket);
    far_close(&far);
}

TEST(bucket, one_of_s3_that_is_missing)
{
    struct far far;
    struct bucket *bucket;
    struct bucket_list list;

    far_open(&far, t);
    far.fake->there = false;
    CHECK_OK(
        hf__bulk_bucket_open(far.s, &far.env, far_url(&far, ""), HF_STR("test-bucket"), &bucket));
    CHECK_STATUS(HF_NOT_FOUND, hf__bulk_bucket_list(far.s, bucket, HF_STR(""), &list));
    CHECK_STR("S3NoSuchBucket", hf_str_from(hf__bulk_bucket_code(bucket, HF_NOT_FOUND)));
    far.fake->there = true;
    far.fake->forbidden = true;
    CHECK_STATUS(HF_DENIED, hf__bulk_bucket_put(far.s, bucket, HF_STR("x"), bytes_of("x")));
    CHECK_STR("S3AccessDenied", hf_str_from(hf__bulk_bucket_code(bucket, HF_DENIED)));
    hf__bulk_bucket_close(bucket);
    far_close(&far);
}
