/*
 * blob/s3_test.c: blobs in S3: a strict fake of it in many moods, and, where HF_KIT_URL names one,
 * a server that is not ours (tests called on_url). (n) is an invariant of blob_s3.c.
 */
#include "fake_s3.h"
#include "help.h"

#include <holdfast/blob.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "blob/s3.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum { MB = 1024 * 1024 };

/* A fake, a scope whose memory is counted, with the system's clock plus an offset, and a store. */
struct bench {
    struct test *t;
    struct fake_s3 *fake;
    struct hf_env env;
    struct hf_scope *s;
    struct hf_blobs *blobs;
    struct hf_client_options client;
};

static _Atomic int64_t
    clock_off_us; /* of the bench; an env has one pointer, and it is the test's */

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t wall_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_REALTIME) + clock_off_us;
}

static int64_t elapsed_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_MONOTONIC);
}

static void sleep_us(int64_t us, void *user)
{
    (void)user;
    usleep((useconds_t)us);
}

static void bench_begin(struct test *t, struct bench *b)
{
    memset(b, 0, sizeof(*b));
    b->t = t;
    b->fake = calloc(1, sizeof(*b->fake));
    CHECK(b->fake != NULL);
    fake_open(b->fake);
    clock_off_us = 0;
    b->env = *test_env(t);
    b->env.wall_us = wall_us;
    b->env.elapsed_us = elapsed_us;
    b->env.sleep = sleep_us;
    b->s = hf_scope_new(&b->env);
    b->client = (struct hf_client_options){.size = sizeof(b->client),
                                           .env = &b->env,
                                           .region = HF_STR("eu-central-1"),
                                           .credentials = {.access_key = HF_STR(FAKE_KEY),
                                                           .secret_key = HF_STR(FAKE_SECRET)},
                                           .retry = {.backoff_ms = 1, .throttle_ms = 1},
                                           .no_aws_config = true};
}

static enum hf_status bench_try(struct bench *b, const char *path, const char *params)
{
    hf_blobs_close(b->blobs);
    return hf_blobs_open(b->s,
                         hf_scope_format(b->s, "s3://test-bucket%s?endpoint=%s%s", path,
                                         b->fake->listener.origin, params),
                         HF_OPTIONS(hf_blobs_options, .client = &b->client), &b->blobs);
}

static void bench_open(struct test *t, struct bench *b)
{
    bench_begin(t, b);
    CHECK_OK(bench_try(b, "", "&part=5242880"));
}

static void bench_close(struct bench *b)
{
    hf_blobs_close(b->blobs);
    fake_close(b->fake);
    free(b->fake);
    hf_scope_free(b->s);
}

static struct hf_str put(struct bench *b, const char *text)
{
    struct hf_str digest;

    CHECK_OK(hf_blob_put(b->s, b->blobs, hf_bytes_of(text, strlen(text)), &digest));
    return digest;
}

static void check_there(struct bench *b, struct hf_str digest, const char *text)
{
    struct hf_bytes found;
    uint64_t size;

    CHECK_OK(hf_blob_get(b->s, b->blobs, digest, &found));
    CHECK_STR(text, hf_str_of((const char *)found.ptr, found.len));
    CHECK_OK(hf_blob_has(b->s, b->blobs, digest, &size));
    CHECK_INT(strlen(text), size);
}

static bool error_has(struct bench *b, const char *part)
{
    bool has = strstr(hf_scope_error_text(b->s), part) != NULL;

    if (!has)
        print_error("\"%s\" does not have \"%s\"\n", hf_scope_error_text(b->s), part);
    return has;
}

/* Bytes that are the same nowhere. */
static uint8_t *large_bytes(size_t len)
{
    uint8_t *bytes = malloc(len);

    CHECK(bytes != NULL);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 24);
    return bytes;
}

/* Time passes, for S3 as for us. */
static void pass(struct bench *b, int64_t seconds)
{
    clock_off_us += seconds * 1000000;
    b->fake->clock_off_s += seconds;
}

/* ---- the interface -------------------------------------------------------------------------- */

TEST(blob_s3, what_is_put_is_found)
{
    struct hf_bytes found;
    struct hf_str digest;
    struct bench b;

    bench_open(t, &b);
    CHECK_STR(ABC, put(&b, "abc"));
    CHECK(fake_find(b.fake, ABC) != NULL);
    check_there(&b, HF_STR(ABC), "abc");
    CHECK_STR(ABC, put(&b, "abc"));
    CHECK_OK(hf_blob_put(b.s, b.blobs, (struct hf_bytes){0}, &digest));
    CHECK_STR(EMPTY, digest);
    check_there(&b, digest, "");
    CHECK_INT(2, help_count(b.s, b.blobs));
    CHECK_OK(hf_blob_delete(b.s, b.blobs, HF_STR(ABC)));
    CHECK_OK(hf_blob_delete(b.s, b.blobs, HF_STR(ABC)));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(b.s, b.blobs, HF_STR(ABC), &found));
    CHECK_ERROR(HF_NOT_FOUND, "there is no blob " ABC, b.s);
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(b.s, b.blobs, HF_STR(ABC), NULL));
    CHECK_INT(1, help_count(b.s, b.blobs));
    bench_close(&b);
}

/* What other programs have put there, by its key. */
TEST(blob_s3, objects_of_others_are_read)
{
    uint8_t *large = large_bytes(6 * MB);
    struct hf_blobs *folder;
    struct hf_bytes found;
    struct hf_str digest;
    struct bench b;

    bench_begin(t, &b);
    CHECK_OK(bench_try(&b, "/in", "&part=5242880"));
    fake_add(b.fake, "in/events/a b.json", "{\"n\":1}");
    fake_add(b.fake, "in/empty", "");
    fake_add(b.fake, "events/a b.json", "not in the prefix");
    CHECK_OK(hf_blobs_read_object(b.s, b.blobs, HF_STR("events/a b.json"), &found));
    CHECK_STR("{\"n\":1}", hf_str_of((const char *)found.ptr, found.len));
    CHECK_OK(hf_blobs_read_object(b.s, b.blobs, HF_STR("empty"), &found));
    CHECK(found.ptr && found.len == 0);
    CHECK_OK(hf_blob_put(b.s, b.blobs, hf_bytes_of(large, 6 * MB), &digest)); /* in two parts */
    CHECK_OK(hf_blobs_read_object(b.s, b.blobs, digest, &found));
    CHECK(found.len == 6 * MB && memcmp(found.ptr, large, 6 * MB) == 0);
    b.blobs->max = 100;
    CHECK_STATUS(HF_LIMIT, hf_blobs_read_object(b.s, b.blobs, digest, &found));
    CHECK(error_has(&b, "more than 100 bytes"));
    b.blobs->max = HF_BLOB_MAX;
    CHECK_STATUS(HF_NOT_FOUND, hf_blobs_read_object(b.s, b.blobs, HF_STR("events/b"), &found));
    CHECK(error_has(&b, "bucket test-bucket has no object in/events/b") && !found.ptr);
    CHECK_STATUS(HF_INVALID, hf_blobs_read_object(b.s, b.blobs, HF_STR(""), &found));
    FAKE_MOODS(b.fake, DENIED);
    CHECK_STATUS(HF_DENIED, hf_blobs_read_object(b.s, b.blobs, HF_STR("events/b"), &found));
    CHECK_OK(hf_blobs_open(b.s, HF_STR("memory:"), NULL, &folder));
    CHECK_STATUS(HF_UNSUPPORTED, hf_blobs_read_object(b.s, folder, HF_STR("a"), &found));
    hf_blobs_close(folder);
    bench_close(&b);
    free(large);
}

/* A prefix with what has to be encoded, and strangers around it. */
TEST(blob_s3, prefixes_are_kept_apart)
{
    struct bench b;

    bench_begin(t, &b);
    CHECK_OK(bench_try(&b, "/a%20b/%C3%BC+~!/", ""));
    put(&b, "abc");
    CHECK(fake_find(b.fake, "a b/\xc3\xbc+~!/" ABC) != NULL);
    fake_add(b.fake, "a b/\xc3\xbc+~!/other", "x");
    fake_add(b.fake, "a b/\xc3\xbc+~!/deeper/" EMPTY, "");
    fake_add(b.fake, EMPTY, "");
    CHECK_INT(1, help_count(b.s, b.blobs));
    check_there(&b, HF_STR(ABC), "abc");
    bench_close(&b);
}

TEST(blob_s3, lists_have_pages)
{
    struct bench b;

    bench_open(t, &b);
    b.fake->page = 3;
    for (int i = 0; i < 10; i++)
        put(&b, hf_scope_format(b.s, "blob %d", i).ptr);
    CHECK_INT(10, help_count(b.s, b.blobs));
    CHECK_INT(4, b.fake->lists);
    b.fake->same_page = true;
    CHECK_STATUS(HF_IO, hf_blobs_sweep(b.s, b.blobs, 1000, help_none_used, NULL, NULL));
    CHECK(error_has(&b, "repeats the previous page of a list"));
    bench_close(&b);
}

TEST(blob_s3, urls_that_are_none)
{
    static const struct {
        const char *url, *said;
    } cases[] = {
        {"s3://", "invalid bucket name"},
        {"s3://ab", "invalid bucket name"},
        {"s3://UPPER", "invalid bucket name"},
        {"s3://-abc", "invalid bucket name"},
        {"s3://a..b", "invalid bucket name"},
        {"s3://abc/x//y", "part between slashes that is empty"},
        {"s3://abc/../x", "part between slashes that is empty"},
        {"s3://abc/x%00y", "part between slashes that is empty"},
        {"s3://abc/trash", "\"trash\" or begins with \"part.\""},
        {"s3://abc/x/trash/y", "\"trash\" or begins with \"part.\""},
        {"s3://abc/x/part.1", "\"trash\" or begins with \"part.\""},
        {"s3://abc/%zz", "a % without two hex digits"},
        {"s3://abc?colour=red", "unknown parameter \"colour\""},
        {"s3://abc?path_style=maybe", "path_style of the s3:// URL must be 1 or 0"},
        {"s3://abc?part=5242879", "from 5242880 to 1073741824 bytes"},
        {"s3://abc?part=1073741825", "from 5242880 to 1073741824 bytes"},
        {"s3://abc?part=x", "a number of bytes"},
        {"s3://abc?endpoint=ftp://x", "the URL of the endpoint"},
        {"s3://abc", "no region: use ?region=NAME in the URL"},
    };
    struct bench b;

    bench_begin(t, &b);
    b.client.region = (struct hf_str){0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(HF_INVALID,
                     hf_blobs_open(b.s, hf_str_from(cases[i].url),
                                   HF_OPTIONS(hf_blobs_options, .client = &b.client), &b.blobs));
        CHECK(error_has(&b, cases[i].said));
        CHECK(b.blobs == NULL);
    }
    CHECK_INT(0, b.fake->calls);
    bench_close(&b);
}

/* Where buckets are: in the host's name at Amazon, in the path elsewhere, or as the URL says. */
TEST(blob_s3, hosts_and_paths)
{
    static const struct {
        const char *rest, *origin, *path;
    } cases[] = {
        {"my-bucket", "https://my-bucket.s3.eu-central-1.amazonaws.com", ""},
        {"my-bucket/x?path_style=1", "https://s3.eu-central-1.amazonaws.com", "/my-bucket"},
        {"my.bucket", "https://s3.eu-central-1.amazonaws.com", "/my.bucket"},
        {"my.bucket?path_style=0", "https://my.bucket.s3.eu-central-1.amazonaws.com", ""},
        {"my-bucket?region=us-east-1", "https://my-bucket.s3.us-east-1.amazonaws.com", ""},
        {"my-bucket?endpoint=http%3A%2F%2Flocalhost%3A9000", "http://localhost:9000", "/my-bucket"},
        {"my-bucket?endpoint=https://store.example/s3/", "https://store.example", "/s3/my-bucket"},
        {"my-bucket?endpoint=https://store.example&path_style=no",
         "https://my-bucket.store.example", ""},
    };
    struct bench b;

    bench_begin(t, &b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct s3 *s3;

        CHECK_OK(hf__s3_open(b.s, &b.env, hf_str_from(cases[i].rest), &b.client, &s3));
        CHECK_STR(cases[i].origin, hf__s3_origin(s3));
        CHECK_STR(cases[i].path, hf__s3_path(s3));
        hf__s3_close(s3);
    }
    bench_close(&b);
}

/* ---- buckets -------------------------------------------------------------------------------- */

TEST(blob_s3, buckets_are_made_when_asked_for_only)
{
    struct bench b;

    bench_begin(t, &b);
    b.fake->there = false;
    CHECK_STATUS(HF_NOT_FOUND, bench_try(&b, "", ""));
    CHECK_ERROR(HF_NOT_FOUND,
                "bucket test-bucket does not exist; add ?create=1 to the URL to create it", b.s);
    CHECK_INT(0, b.fake->bucket_puts);
    CHECK_OK(bench_try(&b, "", "&create=1"));
    CHECK_INT(1, b.fake->bucket_puts);
    CHECK_OK(bench_try(&b, "", "&create=yes"));
    CHECK_INT(1, b.fake->bucket_puts); /* it is there */
    put(&b, "abc");
    bench_close(&b);
}

/* A bucket of somebody else is not a reason to make one. */
TEST(blob_s3, a_forbidden_bucket_is_denied)
{
    struct bench b;

    bench_begin(t, &b);
    b.fake->forbidden = true;
    CHECK_STATUS(HF_DENIED, bench_try(&b, "", "&create=1"));
    CHECK(error_has(&b, "S3 refused HEAD of test-bucket/: HTTP status 403"));
    CHECK_INT(0, b.fake->bucket_puts);
    CHECK_INT(1, b.fake->calls); /* and not tried again */
    bench_close(&b);
}

/* The answer to the making was lost. */
TEST(blob_s3, a_bucket_that_was_made_after_all)
{
    struct bench b;

    bench_begin(t, &b);
    b.fake->there = false;
    FAKE_MOODS(b.fake, WELL, LOST);
    CHECK_OK(bench_try(&b, "", "&create=1"));
    CHECK_INT(2, b.fake->bucket_puts);
    bench_close(&b);
}

/* A bucket that is gone, or another one by mistake, is no reason to say that a blob is lost. */
TEST(blob_s3, a_bucket_that_is_gone_loses_no_blobs)
{
    struct hf_bytes bytes;
    struct hf_str digest;
    struct bench b;

    bench_begin(t, &b);
    CHECK_OK(bench_try(&b, "", ""));
    digest = put(&b, "abc");
    b.fake->there = false;
    CHECK_STATUS(HF_IO, hf_blob_get(b.s, b.blobs, digest, &bytes));
    CHECK_ERROR(HF_IO, "bucket test-bucket no longer exists", b.s);
    b.fake->there = true;
    CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &bytes));
    bench_close(&b);
}

TEST(blob_s3, the_region_of_a_bucket_is_told)
{
    struct bench b;

    bench_begin(t, &b);
    b.fake->region = "us-west-2";
    CHECK_STATUS(HF_INVALID, bench_try(&b, "", ""));
    CHECK_ERROR(HF_INVALID,
                "the bucket test-bucket is in the region us-west-2, not in eu-central-1", b.s);
    CHECK_OK(bench_try(&b, "", "&region=us-west-2"));
    b.fake->there = false;
    b.fake->region = "us-east-1"; /* has no constraint */
    CHECK_OK(bench_try(&b, "", "&region=us-east-1&create=1"));
    bench_close(&b);
}

/* ---- moods ---------------------------------------------------------------------------------- */

/* What passes is waited out. */
TEST(blob_s3, passing_failures_are_tried_again)
{
    static const enum fake_mood moods[] = {BROKEN, BROKEN_AFTER, SLOW_DOWN, GATEWAY, HANG_UP, LOST};
    struct bench b;

    bench_open(t, &b);
    for (size_t i = 0; i < sizeof(moods) / sizeof(moods[0]); i++) {
        struct hf_str digest;

        CHECK_OK(bench_try(&b, "", "")); /* with a new quota of attempts */
        FAKE_MOODS(b.fake, moods[i], moods[i], moods[i]);
        digest = put(&b, hf_scope_format(b.s, "text %zu", i).ptr);
        FAKE_MOODS(b.fake, moods[i], moods[i], moods[i]);
        check_there(&b, digest, hf_scope_format(b.s, "text %zu", i).ptr);
        FAKE_MOODS(b.fake, moods[i], moods[i], moods[i]);
        CHECK_INT(i + 1, help_count(b.s, b.blobs));
    }
    CHECK_OK(bench_try(&b, "", ""));
    FAKE_MOODS(b.fake, CUT, CUT, CUT);
    check_there(&b, put(&b, "abc"), "abc");
    FAKE_MOODS(b.fake, CUT, CUT, CUT);
    CHECK_OK(hf_blob_get(b.s, b.blobs, HF_STR(ABC), &(struct hf_bytes){0}));
    FAKE_MOODS(b.fake, CUT, CUT, GARBAGE);
    help_count(b.s, b.blobs);
    FAKE_MOODS(b.fake, PACKED);
    CHECK_OK(hf_blob_get(b.s, b.blobs, HF_STR(ABC), &(struct hf_bytes){0}));
    bench_close(&b);
}

/* What does not pass is told in S3's words, after four attempts. */
TEST(blob_s3, failures_that_stay_have_the_code)
{
    static const struct {
        enum fake_mood mood;
        enum hf_status status;
        int calls;
        const char *said;
    } cases[] = {
        {BROKEN, HF_IO, 4, "HTTP status 500, InternalError: We encountered an internal error."},
        {SLOW_DOWN, HF_THROTTLED, 4, "HTTP status 503, SlowDown: Please reduce"},
        {GATEWAY, HF_IO, 4, "HTTP status 502"},
        {HANG_UP, HF_IO, 4, ""},
        {DENIED, HF_DENIED, 1, "S3 refused PUT of test-bucket/" ABC ": HTTP status 403, Acc"},
        {EXPIRED, HF_DENIED, 1, "ExpiredToken"},
        {FULL, HF_NO_SPACE, 1, "XMinioStorageFull"},
        {LEAK, HF_DENIED, 1, "SignatureDoesNotMatch"},
    };
    struct bench b;

    bench_open(t, &b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum fake_mood m = cases[i].mood;
        int before = b.fake->calls;
        struct hf_str digest;

        FAKE_MOODS(b.fake, m, m, m, m);
        CHECK_STATUS(cases[i].status, hf_blob_put(b.s, b.blobs, hf_bytes_of("abc", 3), &digest));
        CHECK(error_has(&b, cases[i].said));
        CHECK(strstr(hf_scope_error_text(b.s), FAKE_SECRET) == NULL);
        CHECK_INT(cases[i].calls, b.fake->calls - before);
        CHECK(digest.ptr == NULL);
        FAKE_MOODS(b.fake, WELL); /* instead of those that nobody met */
    }
    bench_close(&b);
}

/* Nothing is tried again beyond the deadline. */
TEST(blob_s3, deadlines_are_kept)
{
    struct hf_str digest;
    struct bench b;

    bench_begin(t, &b);
    b.client.retry.backoff_ms = b.client.retry.throttle_ms = 3600 * 1000;
    CHECK_OK(bench_try(&b, "", ""));
    FAKE_MOODS(b.fake, SLOW_DOWN, SLOW_DOWN, SLOW_DOWN, SLOW_DOWN);
    hf_scope_timeout_ms(b.s, 2);
    sleep_ms(5);
    CHECK_STATUS(HF_TIMEOUT, hf_blob_put(b.s, b.blobs, hf_bytes_of("abc", 3), &digest));
    hf_scope_timeout_ms(b.s, 0);
    hf_scope_cancel(b.s);
    CHECK_STATUS(HF_CANCELED, hf_blob_put(b.s, b.blobs, hf_bytes_of("abc", 3), &digest));
    hf_scope_reset(b.s);
    bench_close(&b);
}

/* The clock of S3 is an hour ahead: learned from the first refusal, to a HEAD too. */
TEST(blob_s3, another_clock_is_learned)
{
    struct bench b;

    bench_begin(t, &b);
    b.fake->clock_off_s = 3600;
    CHECK_OK(bench_try(&b, "", ""));
    CHECK_INT(2, b.fake->calls);
    check_there(&b, put(&b, "abc"), "abc");
    bench_close(&b);
}

TEST(blob_s3, damage_is_told_and_healed_by_a_put)
{
    struct hf_bytes found;
    struct bench b;

    bench_open(t, &b);
    put(&b, "abc");
    fake_find(b.fake, ABC)->bytes[1] = 'x';
    CHECK_STATUS(HF_CORRUPT, hf_blob_get(b.s, b.blobs, HF_STR(ABC), &found));
    CHECK(found.ptr == NULL);
    put(&b, "abc");
    check_there(&b, HF_STR(ABC), "abc");
    bench_close(&b);
}

TEST(blob_s3, any_allocation_may_fail)
{
    struct bench b;

    bench_begin(t, &b);
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(&b.env);
        struct hf_blobs *blobs = NULL;
        struct hf_str digests[2];
        struct hf_bytes found[2];
        struct hf_str url =
            s ? hf_scope_format(s, "s3://test-bucket?endpoint=%s", b.fake->listener.origin)
              : (struct hf_str){0};
        enum hf_status status = HF_NOMEM;

        if (url.ptr)
            status =
                hf_blobs_open(s, url, HF_OPTIONS(hf_blobs_options, .client = &b.client), &blobs);
        if (status == HF_OK)
            status = hf_blob_put(s, blobs, hf_bytes_of("abc", 3), &digests[0]);
        if (status == HF_OK) {
            digests[1] = digests[0];
            status = hf_blob_get_many(s, blobs, digests, 1, found);
        }
        if (status == HF_OK)
            status = hf_blob_has(s, blobs, digests[0], NULL);
        pass(&b, 100);
        if (status == HF_OK)
            status = hf_blobs_sweep(s, blobs, 60, help_none_used, NULL, NULL);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        hf_blobs_close(blobs);
        hf_scope_free(s);
    }
    bench_close(&b);
}

/* ---- parts ---------------------------------------------------------------------------------- */

enum { LARGE = 11 * MB }; /* three parts of five megabytes */

TEST(blob_s3, large_ones_go_in_parts)
{
    uint8_t *large = large_bytes(LARGE);
    struct hf_bytes bytes = hf_bytes_of(large, LARGE), found;
    struct hf_str digest;
    struct bench b;

    bench_open(t, &b);
    CHECK_OK(hf_blob_put(b.s, b.blobs, bytes, &digest));
    CHECK_INT(3, b.fake->part_puts);
    CHECK_INT(0, b.fake->puts);
    CHECK_INT(0, fake_uploads(b.fake));
    CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &found));
    CHECK_INT(3, b.fake->gets);
    CHECK(found.len == LARGE && memcmp(found.ptr, large, LARGE) == 0);
    CHECK_OK(hf_blob_put(b.s, b.blobs, bytes, &digest)); /* is there: nothing is sent */
    CHECK_INT(3, b.fake->part_puts);
    CHECK_INT(1, b.fake->copies);
    hf_scope_reset(b.s);
    FAKE_MOODS(b.fake, WELL, LATE_ERROR, LATE_ERROR); /* of the copy */
    CHECK_OK(hf_blob_put(b.s, b.blobs, bytes, &digest));
    CHECK_INT(3, b.fake->part_puts);
    FAKE_MOODS(b.fake, WELL, CUT, BROKEN, HANG_UP); /* of the second range */
    CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &found));
    FAKE_MOODS(b.fake, WELL, WRONG_RANGE);
    CHECK_STATUS(HF_IO, hf_blob_get(b.s, b.blobs, digest, &found));
    CHECK(error_has(&b, "is not the requested range"));
    b.fake->no_ranges = true;
    CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &found));
    CHECK_INT(LARGE, found.len);
    bench_close(&b);
    free(large);
}

/* At the size of a part, and one past it. */
TEST(blob_s3, one_part_at_and_past)
{
    uint8_t *large = large_bytes(5 * MB + 1);
    struct hf_bytes found;
    struct hf_str digest;
    struct bench b;

    bench_open(t, &b);
    CHECK_OK(hf_blob_put(b.s, b.blobs, hf_bytes_of(large, 5 * MB), &digest));
    CHECK_INT(1, b.fake->puts);
    CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &found));
    CHECK_INT(1, b.fake->gets);
    CHECK_OK(hf_blob_put(b.s, b.blobs, hf_bytes_of(large, 5 * MB + 1), &digest));
    CHECK_INT(2, b.fake->part_puts);
    CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &found));
    CHECK_INT(3, b.fake->gets);
    bench_close(&b);
    free(large);
}

/* (2): whatever fails on the way, no upload is left, and another put succeeds. */
TEST(blob_s3, uploads_that_fail_are_given_up)
{
    static const struct {
        enum fake_mood moods[8]; /* HEAD, begin, part, part, part, complete, ... */
        enum hf_status status;
    } cases[] = {
        {{WELL, WELL, WELL, BAD_PART}, HF_INVALID},
        {{WELL, WELL, WELL, DENIED}, HF_DENIED},
        {{WELL, WELL, WELL, FULL}, HF_NO_SPACE},
        {{WELL, WELL, BROKEN, BROKEN, BROKEN, BROKEN}, HF_IO},
        {{WELL, GARBAGE, GARBAGE, GARBAGE, GARBAGE}, HF_IO},
        {{WELL, WELL, WELL, WELL, WELL, DENIED}, HF_DENIED},
        {{DENIED}, HF_DENIED},
    };
    uint8_t *large = large_bytes(LARGE);
    struct hf_bytes bytes = hf_bytes_of(large, LARGE);
    struct hf_str digest;
    struct bench b;

    bench_open(t, &b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_moods(b.fake, cases[i].moods, 8);
        CHECK_STATUS(cases[i].status, hf_blob_put(b.s, b.blobs, bytes, &digest));
        FAKE_MOODS(b.fake, WELL);
        CHECK_INT(0, fake_uploads(b.fake));
        CHECK(b.fake->objects_len == 0);
        hf_scope_reset(b.s);
    }
    CHECK_OK(hf_blob_put(b.s, b.blobs, bytes, &digest));
    bench_close(&b);
    free(large);
}

/* Completed, but its answer was lost: then the upload is not there any more, and the blob is. */
TEST(blob_s3, completions_that_were_lost)
{
    static const enum fake_mood moods[][7] = {
        {WELL, WELL, WELL, WELL, WELL, LOST, WELL},
        {WELL, WELL, WELL, WELL, WELL, BROKEN_AFTER, WELL},
        {WELL, WELL, WELL, WELL, WELL, CUT, WELL},
        {WELL, WELL, WELL, WELL, WELL, LATE_ERROR, WELL},
        {WELL, LOST, WELL, WELL, WELL, WELL, WELL}, /* begun twice: one upload is left over */
    };
    uint8_t *large = large_bytes(LARGE);
    struct bench b;

    for (size_t i = 0; i < 5; i++) {
        struct hf_bytes found;
        struct hf_str digest;

        bench_open(t, &b);
        fake_moods(b.fake, moods[i], 7);
        CHECK_OK(hf_blob_put(b.s, b.blobs, hf_bytes_of(large, LARGE), &digest));
        CHECK_OK(hf_blob_get(b.s, b.blobs, digest, &found));
        CHECK_INT(i == 4, fake_uploads(b.fake));
        clock_off_us = 0;
        if (i == 4) { /* and is swept */
            for (size_t j = 0; j < FAKE_UPLOADS; j++)
                b.fake->uploads[j].at_s -= 100;
            CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 200, help_all_used, NULL, NULL));
            CHECK_INT(1, fake_uploads(b.fake));
            CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 50, help_all_used, NULL, NULL));
            CHECK_INT(0, fake_uploads(b.fake));
        }
        bench_close(&b);
    }
    free(large);
}

/* ---- many ----------------------------------------------------------------------------------- */

TEST(blob_s3, many_are_read_side_by_side)
{
    enum { MANY = 40 };
    struct hf_str digests[MANY];
    struct hf_bytes found[MANY];
    struct bench b;

    bench_open(t, &b);
    for (int i = 0; i < MANY; i++)
        digests[i] = put(&b, hf_scope_format(b.s, "blob %d", i).ptr);
    b.fake->slow_ms = 5;
    FAKE_MOODS(b.fake, WELL, BROKEN, SLOW_DOWN, CUT, HANG_UP);
    CHECK_OK(hf_blob_get_many(b.s, b.blobs, digests, MANY, found));
    for (int i = 0; i < MANY; i++)
        CHECK_STR(hf_scope_format(b.s, "blob %d", i).ptr,
                  hf_str_of((const char *)found[i].ptr, found[i].len));
    CHECK(b.fake->most > 1);
    CHECK(b.fake->most <= 8);
    CHECK_OK(hf_blob_delete(b.s, b.blobs, digests[20]));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get_many(b.s, b.blobs, digests, MANY, found));
    CHECK(error_has(&b, digests[20].ptr));
    for (int i = 0; i < MANY; i++)
        CHECK(found[i].ptr == NULL);
    hf_scope_cancel(b.s);
    CHECK_STATUS(HF_CANCELED, hf_blob_get_many(b.s, b.blobs, digests, MANY, found));
    hf_scope_reset(b.s);
    bench_close(&b);
}

/* ---- sweeps --------------------------------------------------------------------------------- */

TEST(blob_s3, a_sweep_goes_by_the_trash)
{
    struct hf_str old, young;
    struct bench b;
    uint64_t removed;

    bench_open(t, &b);
    old = put(&b, "old");
    pass(&b, 100);
    young = put(&b, "young");
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_all_used, NULL, &removed));
    CHECK(fake_find(b.fake, old.ptr) != NULL);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    CHECK_INT(0, removed);
    CHECK_INT(1, help_count(b.s, b.blobs));
    CHECK(fake_find(b.fake, old.ptr) == NULL);
    check_there(&b, old, "old"); /* for who asks, still */
    check_there(&b, young, "young");
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    CHECK_INT(0, removed); /* not long enough */
    pass(&b, 100);
    put(&b, "young");
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    CHECK_INT(1, removed);
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(b.s, b.blobs, old, NULL));
    CHECK_INT(1, b.fake->objects_len);
    bench_close(&b);
}

/* (1): put between the last look and the removal, which no condition guards: what is left then is
 * the copy in the trash. It is read there, and comes back as it is used. */
TEST(blob_s3, what_is_put_during_a_sweep_comes_back)
{
    struct hf_str digest;
    struct bench b;
    uint64_t removed;

    bench_open(t, &b);
    digest = put(&b, "abc");
    pass(&b, 100);
    /* List of uploads, list, HEAD, COPY are well; the DELETE is done, but its answer is lost, and
     * so it comes once more, after the put. */
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    put(&b, "abc");
    pthread_mutex_lock(&b.fake->lock);
    b.fake->objects[0].key[0] = '!'; /* what the late DELETE does to it */
    pthread_mutex_unlock(&b.fake->lock);
    CHECK(fake_find(b.fake, ABC) == NULL);
    check_there(&b, digest, "abc");
    pass(&b, 100);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_all_used, NULL, &removed));
    CHECK_INT(0, removed);
    CHECK(fake_find(b.fake, ABC) != NULL);
    CHECK(fake_find(b.fake, "trash/" ABC) == NULL);
    check_there(&b, digest, "abc");
    bench_close(&b);
}

static enum hf_status put_then_unused(struct hf_scope *s, struct hf_str digest, bool *used,
                                      void *user)
{
    struct bench *b = user;

    (void)s;
    (void)digest;
    put(b, "abc");
    *used = false;
    return HF_OK;
}

TEST(blob_s3, what_is_put_before_the_last_look_stays)
{
    struct bench b;
    uint64_t removed;

    bench_open(t, &b);
    put(&b, "abc");
    pass(&b, 100);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, put_then_unused, &b, &removed));
    CHECK_INT(0, removed);
    CHECK(fake_find(b.fake, ABC) != NULL);
    CHECK_INT(0, b.fake->copies);
    bench_close(&b);
}

static enum hf_status put_ahead_then_unused(struct hf_scope *s, struct hf_str digest, bool *used,
                                            void *user)
{
    struct bench *b = user;

    CHECK_OK(put_then_unused(s, digest, used, user));
    pthread_mutex_lock(&b->fake->lock);
    b->fake->objects[0].at_s += 5;
    pthread_mutex_unlock(&b->fake->lock);
    return HF_OK;
}

/* S3 is many machines: the time of an object may be ahead of that of an answer. */
TEST(blob_s3, what_is_of_the_future_is_new)
{
    struct bench b;
    uint64_t removed;

    bench_open(t, &b);
    put(&b, "abc");
    pass(&b, 100);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, put_ahead_then_unused, &b, &removed));
    CHECK_INT(0, removed);
    CHECK_INT(0, b.fake->copies);
    bench_close(&b);
}

TEST(blob_s3, parts_have_prefixes)
{
    struct hf_blobs *part;
    struct hf_str digest;
    struct bench b;
    uint64_t removed;

    bench_begin(t, &b);
    CHECK_OK(bench_try(&b, "/p", ""));
    CHECK_OK(hf_blobs_part(b.s, b.blobs, HF_STR("one"), &part));
    put(&b, "abc");
    CHECK_OK(hf_blob_put(b.s, part, hf_bytes_of("abc", 3), &digest));
    CHECK_INT(2, b.fake->objects_len);
    CHECK_INT(1, help_count(b.s, b.blobs));
    CHECK_INT(1, help_count(b.s, part));
    for (int i = 0; i < 2; i++) {
        pass(&b, 100);
        CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    }
    CHECK_INT(1, removed);
    CHECK_OK(hf_blob_has(b.s, part, digest, NULL));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(b.s, b.blobs, digest, NULL));
    hf_blobs_close(part);
    bench_close(&b);
}

/* S3 copies as fast as it can: what is large may take longer than an attempt does. */
TEST(blob_s3, copies_of_large_ones_take_their_time)
{
    uint8_t *large = large_bytes(LARGE);
    struct hf_bytes bytes = hf_bytes_of(large, LARGE);
    struct hf_str digest;
    struct bench b;
    uint64_t removed;

    bench_begin(t, &b);
    b.client.attempt_ms = 500;
    b.client.retry.mode = HF_RETRY_OFF;
    b.fake->slow_copy_ms = 1500;
    CHECK_OK(bench_try(&b, "", "&part=5242880"));
    CHECK_OK(hf_blob_put(b.s, b.blobs, bytes, &digest));
    CHECK_OK(hf_blob_put(b.s, b.blobs, bytes, &digest));
    CHECK_INT(3, b.fake->part_puts);
    CHECK_INT(1, b.fake->copies);
    pass(&b, 100);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    CHECK_INT(2, b.fake->copies);
    CHECK(fake_find(b.fake, digest.ptr) == NULL);
    CHECK_OK(hf_blob_has(b.s, b.blobs, digest, NULL));
    free(large);
    bench_close(&b);
}

/* However many there are, the caller's memory does not grow with them. */
TEST(blob_s3, lists_and_sweeps_of_many_have_little_memory)
{
    enum { BLOBS = 200, PREFIX = 400, ENOUGH = 32 * 1024 };
    char path[PREFIX + 2] = "/";
    struct bench b;
    uint64_t removed;
    size_t before;

    memset(path + 1, 'p', PREFIX);
    bench_begin(t, &b);
    b.fake->page = 50;
    CHECK_OK(bench_try(&b, path, ""));
    for (int i = 0; i < BLOBS; i++) {
        char key[PREFIX + HF_BLOB_DIGEST_LEN + 2];

        snprintf(key, sizeof(key), "%s/%064x", path + 1, i);
        fake_add(b.fake, key, "x");
    }
    pass(&b, 100);
    before = t->live_bytes;
    CHECK_INT(BLOBS, help_count(b.s, b.blobs));
    CHECK(t->live_bytes < before + ENOUGH);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    CHECK_INT(BLOBS, b.fake->copies);
    CHECK(t->live_bytes < before + ENOUGH);
    pass(&b, 100);
    CHECK_OK(hf_blobs_sweep(b.s, b.blobs, 60, help_none_used, NULL, &removed));
    CHECK_INT(BLOBS, removed);
    CHECK(t->live_bytes < before + ENOUGH);
    bench_close(&b);
}

/* ---- a server that is not ours -------------------------------------------------------------- */

static bool has_url(void)
{
    if (getenv("HF_KIT_URL"))
        return true;
    print_message("[  SKIPPED ] HF_KIT_URL names no server\n");
    return false;
}

TEST(blob_s3, whole_life_on_url)
{
    const char *url = getenv("HF_KIT_URL");
    struct hf_client_options client = {.size = sizeof(client),
                                       .region = HF_STR("us-east-1"),
                                       .credentials = {.access_key = HF_STR("S3RVER"),
                                                       .secret_key = HF_STR("S3RVER")},
                                       .no_aws_config = true};
    uint8_t *large = large_bytes(LARGE);
    struct hf_str digests[30], digest;
    struct hf_bytes found[30];
    struct hf_blobs *blobs;
    struct hf_scope *s;
    uint64_t size, removed;

    if (!has_url()) {
        free(large);
        return;
    }
    s = hf_scope_new(NULL);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_blobs_open(s, hf_scope_format(s, "s3://not-there?endpoint=%s", url),
                               HF_OPTIONS(hf_blobs_options, .client = &client), &blobs));
    for (int round = 0; round < 2; round++) {
        CHECK_OK(hf_blobs_open(
            s, hf_scope_format(s, "s3://made-here/a%%20b/c?create=1&part=5242880&endpoint=%s", url),
            HF_OPTIONS(hf_blobs_options, .client = &client), &blobs));
        for (int i = 0; i < 30; i++) {
            struct hf_str text = hf_scope_format(s, "blob %d", i);

            CHECK_OK(hf_blob_put(s, blobs, hf_bytes_of(text.ptr, text.len), &digests[i]));
        }
        CHECK_OK(hf_blobs_read_object(s, blobs, digests[7], &found[0]));
        CHECK_STR("blob 7", hf_str_of((const char *)found[0].ptr, found[0].len));
        CHECK_OK(hf_blob_get_many(s, blobs, digests, 30, found));
        for (int i = 0; i < 30; i++)
            CHECK_STR(hf_scope_format(s, "blob %d", i).ptr,
                      hf_str_of((const char *)found[i].ptr, found[i].len));
        CHECK_INT(30, help_count(s, blobs));
        CHECK_OK(hf_blob_put(s, blobs, hf_bytes_of(large, LARGE), &digest));
        CHECK_OK(hf_blob_has(s, blobs, digest, &size));
        CHECK_INT(LARGE, size);
        CHECK_OK(hf_blob_put(s, blobs, hf_bytes_of(large, LARGE), &digest));
        CHECK_OK(hf_blob_get(s, blobs, digest, &found[0]));
        CHECK(found[0].len == LARGE && memcmp(found[0].ptr, large, LARGE) == 0);
        CHECK_OK(hf_blob_delete(s, blobs, digest));
        CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, blobs, digest, &found[0]));
        CHECK_OK(hf_blob_put(s, blobs, (struct hf_bytes){0}, &digest));
        CHECK_OK(hf_blob_get(s, blobs, digest, &found[0]));
        CHECK_INT(0, found[0].len);
        CHECK_OK(hf_blob_delete(s, blobs, digest));
        hf_blobs_close(blobs);
    }
    CHECK_OK(hf_blobs_open(s, hf_scope_format(s, "s3://made-here/a%%20b/c?endpoint=%s", url),
                           HF_OPTIONS(hf_blobs_options, .client = &client), &blobs));
    sleep_ms(2100);
    CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed));
    CHECK_INT(0, help_count(s, blobs));
    CHECK_OK(hf_blob_get(s, blobs, digests[7], &found[0])); /* from the trash */
    sleep_ms(2100);
    CHECK_OK(hf_blobs_sweep(s, blobs, 1, help_none_used, NULL, &removed));
    CHECK_INT(30, removed);
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, blobs, digests[7], &found[0]));
    hf_blobs_close(blobs);
    hf_scope_free(s);
    free(large);
}
