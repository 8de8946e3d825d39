/*
 * blob/blob_test.c: what holds for every kind of store: names, verification, limits, lists, sweeps
 * by a virtual clock. (n) is an invariant of blob.c.
 */
#include "help.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "blob/private.h"

static const char digest_of_abc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char digest_of_nothing[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static struct hf_bytes bytes_of(const char *text)
{
    return hf_bytes_of(text, strlen(text));
}

static struct hf_str put(struct hf_scope *s, struct hf_blobs *blobs, const char *text)
{
    struct hf_str digest;

    CHECK_OK(hf_blob_put(s, blobs, bytes_of(text), &digest));
    return digest;
}

static void check_there(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                        const char *text)
{
    struct hf_bytes found;
    uint64_t size = 99;

    CHECK_OK(hf_blob_get(s, blobs, digest, &found));
    CHECK_STR(text, hf_str_of((const char *)found.ptr, found.len));
    CHECK_OK(hf_blob_has(s, blobs, digest, &size));
    CHECK_INT(strlen(text), size);
}

static void check_missing(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest)
{
    struct hf_bytes found;

    CHECK_STATUS(HF_NOT_FOUND, hf_blob_get(s, blobs, digest, &found));
    CHECK(found.ptr == NULL);
    CHECK(strstr(hf_scope_error_text(s), "there is no blob "));
    CHECK_STATUS(HF_NOT_FOUND, hf_blob_has(s, blobs, digest, NULL));
}

TEST(blob, what_is_put_is_found_by_its_digest)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_str digest = put(s, blobs, "abc");

        CHECK_STR(digest_of_abc, digest);
        check_there(s, blobs, digest, "abc");
        CHECK_STR(digest_of_abc, put(s, blobs, "abc")); /* once more: it is there */
        CHECK_INT(1, help_count(s, blobs));
        put(s, blobs, "abd");
        CHECK_INT(2, help_count(s, blobs));
        CHECK_OK(hf_blob_delete(s, blobs, digest));
        check_missing(s, blobs, digest);
        CHECK_OK(hf_blob_delete(s, blobs, digest)); /* no failure */
        CHECK_INT(1, help_count(s, blobs));
    }
    hf_scope_free(s);
}

TEST(blob, nothing_is_a_blob_too)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_bytes found = {0};
        struct hf_str digest;

        CHECK_OK(hf_blob_put(s, blobs, (struct hf_bytes){0}, &digest));
        CHECK_STR(digest_of_nothing, digest);
        CHECK_OK(hf_blob_get(s, blobs, digest, &found));
        CHECK(found.ptr != NULL);
        CHECK_INT(0, found.len);
        CHECK_OK(hf_blob_put(s, blobs, (struct hf_bytes){0}, &digest));
        CHECK_INT(1, help_count(s, blobs));
    }
    hf_scope_free(s);
}

/* A name is 64 digits in lower case, and anything else is refused before a store sees it. */
TEST(blob, evil_names_are_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char upper[sizeof(digest_of_abc)], nul[sizeof(digest_of_abc)], slash[sizeof(digest_of_abc)];
    char longer[80];

    memcpy(upper, digest_of_abc, sizeof(upper));
    upper[0] = 'B';
    memcpy(nul, digest_of_abc, sizeof(nul));
    nul[10] = '\0';
    memset(slash, '/', 64);
    memcpy(slash, "../../../../etc/passwd", 22);
    snprintf(longer, sizeof(longer), "%s0", digest_of_abc);
    EACH_STORE(t, s, blobs)
    {
        const struct hf_str evil[] = {
            {0},
            HF_STR(""),
            HF_STR(".."),
            HF_STR("../../../../etc/passwd"),
            hf_str_of(digest_of_abc, 63),
            hf_str_of(longer, 65),
            hf_str_of(upper, 64),
            hf_str_of(nul, 64),
            hf_str_of(slash, 64),
            HF_STR("g3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        };

        put(s, blobs, "abc");
        for (size_t i = 0; i < sizeof(evil) / sizeof(evil[0]); i++) {
            struct hf_bytes found;

            CHECK_STATUS(HF_INVALID, hf_blob_get(s, blobs, evil[i], &found));
            CHECK_ERROR(HF_INVALID,
                        "invalid blob name: expected a SHA-256 as 64 lower case hexadecimal digits",
                        s);
            CHECK_STATUS(HF_INVALID, hf_blob_has(s, blobs, evil[i], NULL));
            CHECK_STATUS(HF_INVALID, hf_blob_delete(s, blobs, evil[i]));
            CHECK_STATUS(HF_INVALID, hf_blob_get_many(s, blobs, &evil[i], 1, &found));
        }
        check_there(s, blobs, hf_str_from(digest_of_abc), "abc");
    }
    hf_scope_free(s);
}

TEST(blob, urls_that_are_none)
{
    static const char *const urls[] = {"",     "memory", "memory:x", "dir:",  "file:/tmp",
                                       "s3:x", "/tmp",   "dir",      "S3://b"};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_blobs *blobs;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        CHECK_STATUS(HF_INVALID, hf_blobs_open(s, hf_str_from(urls[i]), NULL, &blobs));
        CHECK(blobs == NULL);
    }
    CHECK_STATUS(HF_INVALID, hf_blobs_open(s, hf_str_of("dir:/tmp/\0x", 11), NULL, &blobs));
    CHECK_STATUS(HF_INVALID, hf_blobs_open(s, HF_STR("dir:/dev/null"), NULL, &blobs));
    CHECK_ERROR(HF_INVALID, "/dev/null is not a directory", s);
    CHECK_STATUS(HF_IO, hf_blobs_open(s, HF_STR("dir:/nowhere/at/all"), NULL, &blobs));
    CHECK_ERROR(HF_IO, "cannot create /nowhere/at/all: No such file or directory", s);
    hf_blobs_close(NULL);
    hf_scope_free(s);
}

TEST(blob, a_store_that_is_not_there)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str digest;
    struct hf_bytes found;

    CHECK_STATUS(HF_INVALID, hf_blob_put(s, NULL, bytes_of("abc"), &digest));
    CHECK_STATUS(HF_INVALID, hf_blob_get(s, NULL, hf_str_from(digest_of_abc), &found));
    CHECK_STATUS(HF_INVALID, hf_blobs_list(s, NULL, NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_blobs_sweep(s, NULL, 0, help_none_used, NULL, NULL));
    hf_scope_free(s);
}

/* The limit, at it and one past it; one gigabyte is not tried, but a limit that is set lower. */
TEST(blob, limit_at_and_past)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_str digest;

        CHECK_INT(HF_BLOB_MAX, blobs->max);
        CHECK_STATUS(HF_LIMIT, hf_blob_put(s, blobs, hf_bytes_of("x", (size_t)HF_BLOB_MAX + 1),
                                           &digest)); /* and not read */
        CHECK_ERROR(HF_LIMIT, "the blob has 1073741825 bytes; the limit is 1073741824", s);
        CHECK(digest.ptr == NULL);
        blobs->max = 3;
        put(s, blobs, "abc");
        CHECK_STATUS(HF_LIMIT, hf_blob_put(s, blobs, bytes_of("abcd"), &digest));
        CHECK_INT(1, help_count(s, blobs));
    }
    hf_scope_free(s);
}

TEST(blob, many_are_all_or_none)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_str digests[40];
        struct hf_bytes found[40];
        char text[16];

        CHECK_OK(hf_blob_get_many(s, blobs, NULL, 0, NULL));
        for (int i = 0; i < 40; i++) {
            snprintf(text, sizeof(text), "blob %d", i % 30); /* some are asked for twice */
            digests[i] = put(s, blobs, text);
        }
        CHECK_OK(hf_blob_get_many(s, blobs, digests, 40, found));
        for (int i = 0; i < 40; i++) {
            snprintf(text, sizeof(text), "blob %d", i % 30);
            CHECK_STR(text, hf_str_of((const char *)found[i].ptr, found[i].len));
        }
        CHECK_OK(hf_blob_delete(s, blobs, digests[15]));
        CHECK_STATUS(HF_NOT_FOUND, hf_blob_get_many(s, blobs, digests, 40, found));
        for (int i = 0; i < 40; i++)
            CHECK(found[i].ptr == NULL);
    }
    hf_scope_free(s);
}

static enum hf_status stop(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)blob;
    ++*(int *)user;
    return hf_scope_fail(s, HF_CONDITION, "seen enough");
}

TEST(blob, a_list_tells_when_and_how_large_and_ends_when_told)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        int calls = 0;

        for (int i = 0; i < 300; i++) /* more than one page, or one size of a table */
            put(s, blobs, hf_scope_format(s, "blob %d", i).ptr);
        CHECK_INT(300, help_count(s, blobs));
        CHECK_STATUS(HF_CONDITION, hf_blobs_list(s, blobs, stop, &calls));
        CHECK_ERROR(HF_CONDITION, "seen enough", s);
        CHECK_INT(1, calls);
    }
    hf_scope_free(s);
}

static enum hf_status see(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)s;
    *(struct hf_blob_info *)user = *blob;
    return HF_OK;
}

/* ---- sweeps --------------------------------------------------------------------------------- */

TEST(blob, a_sweep_takes_what_is_old_and_unused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_str old = put(s, blobs, "old");
        struct hf_blob_info info;
        uint64_t removed = 99;
        struct hf_str young;

        CHECK_OK(hf_blobs_list(s, blobs, see, &info));
        CHECK_INT(3, info.size);
        CHECK_INT(t->wall_us, info.put_us);
        test_advance_ms(t, 60 * 1000);
        CHECK_OK(hf_blobs_sweep(s, blobs, 60, help_none_used, NULL, &removed));
        CHECK_INT(0, removed); /* not more than 60 seconds */
        young = put(s, blobs, "young");
        test_advance_ms(t, 1);
        CHECK_OK(hf_blobs_sweep(s, blobs, 60, help_all_used, NULL, &removed));
        CHECK_INT(0, removed);
        CHECK_OK(hf_blobs_sweep(s, blobs, 60, help_none_used, NULL, &removed));
        CHECK_INT(1, removed);
        check_missing(s, blobs, old);
        check_there(s, blobs, young, "young");
    }
    hf_scope_free(s);
}

TEST(blob, a_day_unless_said_otherwise)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        uint64_t removed;

        put(s, blobs, "a day");
        test_advance_ms(t, 24 * 60 * 60 * 1000);
        CHECK_OK(hf_blobs_sweep(s, blobs, 0, help_none_used, NULL, &removed));
        CHECK_INT(0, removed);
        test_advance_ms(t, 1);
        CHECK_OK(hf_blobs_sweep(s, blobs, 0, help_none_used, NULL, &removed));
        CHECK_INT(1, removed);
    }
    hf_scope_free(s);
}

/* Put again, it counts as new. */
TEST(blob, a_put_renews)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_str digest = put(s, blobs, "again");
        uint64_t removed;

        test_advance_ms(t, 100 * 1000);
        put(s, blobs, "again");
        test_advance_ms(t, 10 * 1000);
        CHECK_OK(hf_blobs_sweep(s, blobs, 60, help_none_used, NULL, &removed));
        CHECK_INT(0, removed);
        check_there(s, blobs, digest, "again");
    }
    hf_scope_free(s);
}

struct meddler {
    struct hf_blobs *blobs;
    const char *text;
};

/* Somebody puts it again after it was found old: while we are asked whether it is used. */
static enum hf_status used_meanwhile(struct hf_scope *s, struct hf_str digest, bool *used,
                                     void *user)
{
    struct meddler *m = user;

    (void)digest;
    put(s, m->blobs, m->text);
    *used = false;
    return HF_OK;
}

/* (3) */
TEST(blob, what_is_put_again_during_a_sweep_stays)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct meddler m = {blobs, "meanwhile"};
        struct hf_str digest = put(s, blobs, "meanwhile");
        uint64_t removed;

        test_advance_ms(t, 100 * 1000);
        CHECK_OK(hf_blobs_sweep(s, blobs, 60, used_meanwhile, &m, &removed));
        CHECK_INT(0, removed);
        check_there(s, blobs, digest, "meanwhile");
    }
    hf_scope_free(s);
}

static enum hf_status used_unknown(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    (void)digest;
    (void)user;
    *used = false;
    return hf_scope_fail(s, HF_THROTTLED, "ask later");
}

TEST(blob, who_cannot_tell_loses_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    EACH_STORE(t, s, blobs)
    {
        struct hf_str digest = put(s, blobs, "precious");
        uint64_t removed;

        test_advance_ms(t, 100 * 1000);
        CHECK_STATUS(HF_THROTTLED, hf_blobs_sweep(s, blobs, 60, used_unknown, NULL, &removed));
        CHECK_ERROR(HF_THROTTLED, "ask later", s);
        CHECK_INT(0, removed);
        check_there(s, blobs, digest, "precious");
        hf_scope_cancel(s);
        CHECK_STATUS(HF_CANCELED, hf_blobs_sweep(s, blobs, 60, help_none_used, NULL, &removed));
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

/* ---- parts ---------------------------------------------------------------------------------- */

TEST(blob, parts_do_not_see_each_other)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char longest[HF_BLOBS_NAME_MAX + 1];

    memset(longest, '/', sizeof(longest));
    EACH_STORE(t, s, blobs)
    {
        struct hf_blobs *one, *two, *same;
        struct hf_str digest = put(s, blobs, "shared");
        uint64_t removed;

        CHECK_OK(hf_blobs_part(s, blobs, HF_STR("one"), &one));
        CHECK_OK(hf_blobs_part(s, blobs, hf_str_of(longest, HF_BLOBS_NAME_MAX), &two));
        CHECK_OK(hf_blobs_part(s, blobs, HF_STR("one"), &same));
        check_missing(s, one, digest);
        put(s, one, "shared");
        check_there(s, same, digest, "shared");
        check_missing(s, two, digest);
        CHECK_INT(1, help_count(s, blobs)); /* the whole has those of its own */
        test_advance_ms(t, 100 * 1000);
        CHECK_OK(hf_blobs_sweep(s, blobs, 60, help_none_used, NULL, &removed));
        CHECK_INT(1, removed);
        check_there(s, one, digest, "shared");
        CHECK_OK(hf_blobs_sweep(s, two, 60, help_none_used, NULL, &removed));
        CHECK_INT(0, removed);
        hf_blobs_close(one);
        check_there(s, same, digest, "shared");
        hf_blobs_close(same);
        CHECK_OK(hf_blobs_part(s, blobs, HF_STR("one"), &one));
        check_there(s, one, digest, "shared"); /* it is there as long as the whole is */
        hf_blobs_close(one);
        hf_blobs_close(two);
        CHECK_STATUS(HF_INVALID, hf_blobs_part(s, blobs, HF_STR(""), &one));
        CHECK_STATUS(HF_INVALID, hf_blobs_part(s, blobs, hf_str_of(longest, 1025), &one));
        CHECK_ERROR(HF_INVALID, "the name of a part has 1 to 1024 bytes, not 1025", s);
        CHECK_STATUS(HF_INVALID, hf_blobs_part(s, NULL, HF_STR("one"), &one));
    }
    hf_scope_free(s);
}

/* ---- threads and memory --------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 100, CONTENTS = 5 };

struct crowd {
    struct hf_blobs *blobs;
    unsigned number;
    bool good;
};

/* Put, and what was put is there although another thread sweeps everything all the time: until the
 * time passes, which it does not. */
static void *crowd_put(void *user)
{
    struct crowd *c = user;
    struct hf_scope *s = hf_scope_new(NULL);

    c->good = s != NULL;
    for (unsigned i = 0; i < test_times(ROUNDS) && c->good; i++) {
        struct hf_str digest;
        struct hf_bytes found;
        struct hf_str text = hf_scope_format(s, "content %u", (i + c->number) % CONTENTS);

        c->good = hf_blob_put(s, c->blobs, hf_bytes_of(text.ptr, text.len), &digest) == HF_OK &&
                  hf_blob_get(s, c->blobs, digest, &found) == HF_OK && found.len == text.len;
        if (!c->good)
            print_error("put %u of thread %u: %s\n", i, c->number, hf_scope_error_text(s));
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* With blobs that are as old as that: each put finds them about to be swept. */
static void *crowd_sweep(void *user)
{
    struct crowd *c = user;
    struct hf_scope *s = hf_scope_new(NULL);
    const struct blob_kind *kind = c->blobs->kind;

    c->good = s != NULL;
    for (unsigned i = 0; i < test_times(ROUNDS) && c->good; i++) {
        for (unsigned j = 0; j < CONTENTS && c->good; j++) {
            struct hf_str text = hf_scope_format(s, "content %u", j);
            struct hf_str digest;
            struct hf_bytes found;
            bool removed;

            /* It was put now, which is not before now. */
            c->good =
                hf_blob_put(s, c->blobs, hf_bytes_of(text.ptr, text.len), &digest) == HF_OK &&
                kind->remove_old(s, c->blobs, digest, hf_scope_env(s)->wall_us(NULL) - 1000000,
                                 &removed) == HF_OK &&
                hf_blob_get(s, c->blobs, digest, &found) == HF_OK;
            if (!c->good)
                print_error("sweep %u: %s\n", i, hf_scope_error_text(s));
        }
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(blob, threads_share_a_store)
{
    struct hf_scope *s = hf_scope_new(NULL);

    EACH_STORE(t, s, blobs)
    {
        struct crowd crowd[THREADS + 1];
        pthread_t threads[THREADS + 1];

        for (unsigned i = 0; i <= THREADS; i++) {
            crowd[i] = (struct crowd){.blobs = blobs, .number = i};
            CHECK_INT(0, pthread_create(&threads[i], NULL, i < THREADS ? crowd_put : crowd_sweep,
                                        &crowd[i]));
        }
        for (unsigned i = 0; i <= THREADS; i++)
            pthread_join(threads[i], NULL);
        for (unsigned i = 0; i <= THREADS; i++)
            CHECK(crowd[i].good);
        CHECK_INT(CONTENTS, help_count(s, blobs));
    }
    hf_scope_free(s);
}

static enum hf_status life(struct hf_scope *s, struct hf_str url)
{
    struct hf_blobs *blobs = NULL, *part = NULL;
    struct hf_str digest;
    struct hf_bytes found;
    size_t count = 0;
    enum hf_status status = hf_blobs_open(s, url, NULL, &blobs);

    if (status == HF_OK)
        status = hf_blob_put(s, blobs, bytes_of("abc"), &digest);
    if (status == HF_OK)
        status = hf_blob_put(s, blobs, bytes_of("abc"), &digest);
    if (status == HF_OK)
        status = hf_blob_get(s, blobs, digest, &found);
    if (status == HF_OK)
        status = hf_blobs_sweep(s, blobs, 60, help_none_used, &count, NULL);
    if (status == HF_OK)
        status = hf_blobs_part(s, blobs, HF_STR("part"), &part);
    if (status == HF_OK)
        status = hf_blob_put(s, part, bytes_of("abc"), &digest);
    hf_blobs_close(part);
    hf_blobs_close(blobs);
    return status;
}

TEST(blob, any_allocation_may_fail)
{
    struct hf_str urls[] = {HF_STR("memory:"), {0}};

    for (size_t i = 0; i < 2; i++) {
        char url[300];

        if (!urls[i].ptr) {
            snprintf(url, sizeof(url), "dir:%s", test_quick_directory(t));
            urls[i] = hf_str_from(url);
        }
        ALLOC_SWEEP (t, nth) {
            struct hf_scope *s = hf_scope_new(test_env(t));
            enum hf_status status = s ? life(s, urls[i]) : HF_NOMEM;

            ALLOC_SWEEP_STOP(t);
            CHECK(status == HF_OK || status == HF_NOMEM);
            CHECK((status == HF_NOMEM) == t->alloc_failed);
            hf_scope_free(s);
        }
    }
}
