/* blob/objects_test.c: objects under chosen names, in a folder and in a strict fake of S3; (n) is what
 * objects.h says always holds. */
#include "fake_s3.h"

#include "blob/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bench {
    struct test *t;
    struct fake_s3 *fake; /* NULL: a folder */
    struct hf_env env;
    struct hf_scope *s;
    struct hf__objects *o;
    const char *path;
};

static int64_t true_clock(void *user)
{
    struct timespec now;

    (void)user;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void bench_open(struct test *t, bool s3, struct bench *b)
{
    struct hf_client_options client = {.size = sizeof(client),
                                       .region = HF_STR("eu-central-1"),
                                       .credentials = {.access_key = HF_STR(FAKE_KEY),
                                                       .secret_key = HF_STR(FAKE_SECRET)},
                                       .retry = {.backoff_ms = 1, .throttle_ms = 1},
                                       .no_aws_config = true};
    struct hf_str url;

    *b = (struct bench){.t = t, .env = *test_env(t)};
    b->env.wall_us = true_clock;
    b->s = hf_scope_new(&b->env);
    client.env = &b->env;
    b->path = hf_scope_format(b->s, "%s/place", test_quick_directory(t)).ptr;
    url = hf_scope_format(b->s, "dir:%s", b->path);
    if (s3) {
        b->fake = calloc(1, sizeof(*b->fake));
        CHECK(b->fake);
        fake_open(b->fake);
        url = hf_scope_format(b->s, "s3://test-bucket/a/b?endpoint=%s", b->fake->listener.origin);
    }
    CHECK_OK(hf__objects_open(b->s, &b->env, url, &client, &b->o));
    CHECK_OK(hf__objects_reach(b->s, b->o, true));
}

static void bench_close(struct bench *b)
{
    hf__objects_close(b->o);
    if (b->fake)
        fake_close(b->fake);
    free(b->fake);
    hf_scope_free(b->s);
}

static struct hf_bytes text(const char *bytes)
{
    return hf_bytes_of(bytes, strlen(bytes));
}

static void check_is(struct bench *b, const char *name, const char *expected)
{
    struct hf_bytes there;

    CHECK_OK(hf__objects_get(b->s, b->o, hf_str_from(name), 0, &there));
    CHECK(there.len == strlen(expected) && memcmp(there.ptr, expected, there.len) == 0);
}

struct names {
    char all[512];
    uint64_t bytes;
};

static enum hf_status take_name(struct hf_scope *s, struct hf_str name, uint64_t size, void *user)
{
    struct names *names = user;

    (void)s;
    snprintf(names->all + strlen(names->all), sizeof(names->all) - strlen(names->all), " %.*s",
             HF_FMT(name));
    names->bytes += size;
    return HF_OK;
}

static void whole_life(struct bench *b)
{
    struct names names = {.bytes = 0};
    struct hf_bytes there;
    bool made;

    CHECK_STATUS(HF_NOT_FOUND, hf__objects_get(b->s, b->o, HF_STR("log/1"), 0, &there));
    CHECK_OK(hf__objects_list(b->s, b->o, "log/", take_name, &names));
    CHECK_STR("", hf_str_from(names.all));
    CHECK_OK(hf__objects_put(b->s, b->o, HF_STR("log/1"), text("one"), false, NULL));
    CHECK_OK(hf__objects_put(b->s, b->o, HF_STR("log/1"), text("uno"), false, NULL));
    check_is(b, "log/1", "uno");
    CHECK_OK(hf__objects_put(b->s, b->o, HF_STR("log/1"), text("one"), true, &made));
    CHECK(!made);
    check_is(b, "log/1", "uno");
    CHECK_OK(hf__objects_put(b->s, b->o, HF_STR("log/2"), text("twoo"), true, &made));
    CHECK(made);
    check_is(b, "log/2", "twoo");
    CHECK_OK(hf__objects_put(b->s, b->o, HF_STR("format"), text("1"), true, &made));
    CHECK_OK(hf__objects_put(b->s, b->o, HF_STR("other/3"), text(""), false, NULL));
    check_is(b, "other/3", "");
    CHECK_OK(hf__objects_list(b->s, b->o, "log/", take_name, &names));
    CHECK(strstr(names.all, " log/1") && strstr(names.all, " log/2"));
    CHECK(strlen(names.all) == strlen(" log/1 log/2") && names.bytes == 7);
    CHECK_OK(hf__objects_remove(b->s, b->o, HF_STR("log/1")));
    CHECK_OK(hf__objects_remove(b->s, b->o, HF_STR("log/1")));
    CHECK_STATUS(HF_NOT_FOUND, hf__objects_get(b->s, b->o, HF_STR("log/1"), 0, &there));
}

TEST(blob_objects, a_whole_life)
{
    for (int s3 = 0; s3 < 2; s3++) {
        struct bench b;

        bench_open(t, s3, &b);
        whole_life(&b);
        bench_close(&b);
    }
}

/* (2): an answer that is lost does not make us lose to ourselves. */
TEST(blob_objects, a_lost_answer_of_our_own)
{
    struct bench b;
    bool made;

    bench_open(t, true, &b);
    FAKE_MOODS(b.fake, LOST);
    CHECK_OK(hf__objects_put(b.s, b.o, HF_STR("log/1"), text("one"), true, &made));
    CHECK(made);
    FAKE_MOODS(b.fake, BROKEN, SLOW_DOWN);
    CHECK_OK(hf__objects_put(b.s, b.o, HF_STR("log/1"), text("two"), true, &made));
    CHECK(!made);
    check_is(&b, "log/1", "one");
    bench_close(&b);
}

TEST(blob_objects, a_service_without_conditions)
{
    struct bench b;
    bool made;

    bench_open(t, true, &b);
    b.fake->no_conditions = true;
    CHECK_OK(hf__objects_put(b.s, b.o, HF_STR("log/1"), text("one"), true, &made));
    CHECK(made);
    CHECK_OK(hf__objects_put(b.s, b.o, HF_STR("log/1"), text("two"), true, &made));
    CHECK(!made);
    check_is(&b, "log/1", "one");
    bench_close(&b);
}

/* (1): what killed processes left is no object, and is removed. */
TEST(blob_objects, leftovers)
{
    struct names names = {.bytes = 0};
    struct bench b;
    const char *left;
    struct stat info;
    FILE *file;

    bench_open(t, false, &b);
    CHECK_OK(hf__objects_put(b.s, b.o, HF_STR("log/1"), text("one"), false, NULL));
    left = hf_scope_format(b.s, "%s/new/0123456789abcdef0123456789abcdef", b.path).ptr;
    file = fopen(left, "w");
    CHECK(file && fclose(file) == 0);
    CHECK_OK(hf__objects_list(b.s, b.o, "log/", take_name, &names));
    CHECK_STR(" log/1", hf_str_from(names.all));
    CHECK_OK(hf__objects_clean(b.s, b.o));
    CHECK(stat(left, &info) != 0);
    bench_close(&b);
}

TEST(blob_objects, wrong_places)
{
    static const char *const wrong[] = {"", "dir:", "file:x", "s3://", "s3://UPPER/x", "http://x"};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__objects *o;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_STATUS(HF_INVALID, hf__objects_open(s, test_env(t), hf_str_from(wrong[i]), NULL, &o));
    CHECK_OK(hf__objects_open(s, test_env(t), HF_STR("dir:/nowhere/at/all"), NULL, &o));
    CHECK_STATUS(HF_NOT_FOUND, hf__objects_reach(s, o, false));
    CHECK_STATUS(HF_NOT_FOUND, hf__objects_reach(s, o, true));
    CHECK_STATUS(HF_NOT_FOUND, hf__objects_put(s, o, HF_STR("a/b"), text("x"), false, NULL));
    hf__objects_close(o);
    hf_scope_free(s);
}
