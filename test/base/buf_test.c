/* base/buf_test.c: buffers with an env and in a scope. */
#include "base/buf.h"

#include "test.h"

TEST(buf, bytes_strings_and_formats_stand_one_behind_the_other)
{
    struct hf__buf buf = {.env = test_env(t)};

    hf__buf_put(&buf, "ab", 2);
    hf__buf_put(&buf, NULL, 0);
    hf__buf_put_byte(&buf, 'c');
    hf__buf_put_str(&buf, HF_STR("de"));
    hf__buf_put_str(&buf, hf_str_of(NULL, 0));
    hf__buf_format(&buf, "%d%s", 12, "f");
    CHECK(!buf.failed);
    CHECK_STR("abcde12f", hf_str_of((char *)buf.ptr, buf.len));
    hf__buf_free(&buf);
}

TEST(buf, a_free_buffer_is_empty_and_usable)
{
    struct hf__buf buf = {.env = test_env(t)};

    for (int i = 0; i < 1000; i++)
        hf__buf_put(&buf, "0123456789", 10);
    CHECK_INT(10000, buf.len);
    hf__buf_free(&buf);
    CHECK_INT(0, buf.len);
    CHECK_INT(0, t->live_count);
    hf__buf_put(&buf, "x", 1);
    CHECK_STR("x", hf_str_of((char *)buf.ptr, buf.len));
    hf__buf_free(&buf);
    hf__buf_free(&buf);
}

TEST(buf, nothing_put_into_an_empty_buffer_is_nothing)
{
    struct hf__buf buf = {.env = test_env(t)};

    hf__buf_put(&buf, NULL, 0);
    hf__buf_put_str(&buf, HF_STR(""));
    CHECK(!buf.failed);
    CHECK_INT(0, buf.len);
    CHECK_INT(0, t->allocs);
    CHECK(hf__buf_reserve(&buf, 0)); /* NULL would mean that it failed */
    hf__buf_free(&buf);
}

/* What does not fit in memory, or in a size, is remembered; what was there stays. */
TEST(buf, a_failure_is_remembered_and_keeps_what_was_there)
{
    struct hf__buf buf = {.env = test_env(t)};

    hf__buf_put(&buf, "kept", 4);
    CHECK(!hf__buf_reserve(&buf, SIZE_MAX - 2));
    CHECK(buf.failed);
    hf__buf_put_byte(&buf, 'x');
    hf__buf_format(&buf, "more");
    CHECK_STR("kept", hf_str_of((char *)buf.ptr, buf.len));
    hf__buf_free(&buf);
    CHECK(!buf.failed);
}

static void fill(struct hf__buf *buf)
{
    for (int i = 0; i < 2000; i++) {
        hf__buf_put_byte(buf, (uint8_t)i);
        if (i % 500 == 0)
            hf__buf_format(buf, "%0300d", i);
    }
}

TEST(buf, any_failed_allocation_is_noticed)
{
    ALLOC_SWEEP (t, nth) {
        struct hf__buf buf = {.env = test_env(t)};

        fill(&buf);
        CHECK(buf.failed == t->alloc_failed);
        CHECK(buf.failed || buf.len == 2000 + 4 * 300);
        hf__buf_free(&buf);
    }
}

TEST(buf, any_failed_allocation_is_noticed_in_a_scope)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));

        if (s) {
            struct hf__buf buf = {.scope = s};

            fill(&buf);
            while (!buf.failed && buf.len < 100000)
                hf__buf_put(&buf, "0123456789abcdef", 16);
            CHECK(buf.failed == t->alloc_failed);
        }
        hf_scope_free(s);
    }
}
