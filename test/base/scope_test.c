/* base/scope_test.c: (n) is an invariant of base/scope.c. */
#include "base/base.h"
#include "base/buf.h"

#include "test.h"

/* (1): a round that fits into what the last one took allocates nothing. */
TEST(scope, steady_rounds_allocate_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    size_t allocs;

    for (int i = 0; i < 100; i++)
        CHECK(hf_scope_alloc(s, 1000));
    hf_scope_reset(s);
    for (int i = 0; i < 50; i++)
        CHECK(hf_scope_alloc(s, 1000));
    hf_scope_reset(s);
    allocs = t->allocs;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 50; i++)
            CHECK(hf_scope_alloc(s, 1000));
        hf_scope_reset(s);
    }
    CHECK_INT(allocs, t->allocs);
    hf_scope_free(s);
}

/* (2): failing without memory keeps the status. */
TEST(scope, failing_without_memory_keeps_the_status)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    t->fail_at = -(int64_t)(t->allocs + 1);
    CHECK_STATUS(HF_NOT_FOUND, hf__fail(s, HF_NOT_FOUND, "no %s", "table"));
    CHECK_INT(HF_NOT_FOUND, hf_scope_error(s)->status);
    CHECK_STR("not found", hf_scope_error(s)->message);
    t->fail_at = 0;
    hf_scope_free(s);
}

TEST(scope, a_growing_buffer_keeps_its_bytes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    struct hf__buf other = {.scope = s};

    for (int i = 0; i < 100000; i++) {
        hf__buf_put_byte(&buf, (uint8_t)i);
        if (i % 1000 == 0)
            hf__buf_format(&other, "%d,", i);
    }
    CHECK(!buf.failed && !other.failed);
    CHECK_INT(100000, buf.len);
    for (int i = 0; i < 100000; i++)
        CHECK(buf.ptr[i] == (uint8_t)i);
    CHECK(memcmp(other.ptr, "0,1000,2000,", 12) == 0);
    hf_scope_free(s);
}

TEST(scope, deadline_and_cancel)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    hf_scope_timeout_ms(s, 100);
    CHECK_OK(hf__scope_alive(s));
    CHECK_INT(100, hf__scope_left_ms(s, 5000));
    test_advance_ms(t, 99);
    CHECK_OK(hf__scope_alive(s));
    test_advance_ms(t, 1);
    CHECK_STATUS(HF_TIMEOUT, hf__scope_alive(s));
    CHECK(hf_scope_error(s)->may_retry);
    hf_scope_reset(s);
    CHECK_OK(hf__scope_alive(s));
    hf_scope_cancel(s);
    CHECK_STATUS(HF_CANCELED, hf__scope_alive(s));
    hf_scope_free(s);
}

/* Memory taken since a mark is given out again after a rewind, in the same chunk or a newer one. */
TEST(scope, rewinding_gives_memory_back)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    void *kept = hf_scope_alloc(s, 100);
    struct hf__mark mark = hf__scope_mark(s);
    void *first = hf_scope_alloc(s, 100);
    size_t allocs;

    CHECK(kept && first);
    memset(kept, 'k', 100);
    hf__scope_rewind(s, mark);
    CHECK(hf_scope_alloc(s, 100) == first);

    CHECK(hf_scope_alloc(s, 20000)); /* does not fit: a second chunk */
    hf__scope_rewind(s, mark);
    allocs = t->allocs;
    for (int i = 0; i < 100; i++) {
        char *again = hf_scope_alloc(s, 15000);

        CHECK(again);
        memset(again, 'x', 15000);
        hf__scope_rewind(s, mark);
    }
    CHECK_INT(allocs, t->allocs);
    CHECK_INT('k', ((char *)kept)[99]);
    hf_scope_free(s);
}

TEST(scope, a_mark_in_an_empty_scope)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__mark mark = hf__scope_mark(s);
    void *first = hf_scope_alloc(s, 10);

    CHECK(first);
    hf__scope_rewind(s, mark);
    CHECK(hf_scope_alloc(s, 10) == first);
    hf_scope_free(s);
}

/* A loop that marks, takes more than a chunk, and rewinds needs no more in its last round than in
 * an early one. */
TEST(scope, rewinding_over_many_chunks_frees_them)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char *kept = hf_scope_alloc(s, 100);
    size_t early = 0;

    CHECK(kept);
    memset(kept, 'k', 100);
    for (int round = 0; round < 20; round++) {
        struct hf__mark mark = hf__scope_mark(s);

        for (int i = 0; i < 4; i++) {
            char *some = hf_scope_alloc(s, 3 * 1024 * 1024);

            CHECK(some);
            some[0] = some[3 * 1024 * 1024 - 1] = 'x';
        }
        hf__scope_rewind(s, mark);
        if (round == 2)
            early = t->live_bytes;
    }
    CHECK_INT(early, t->live_bytes);
    CHECK_INT('k', kept[99]);
    hf_scope_free(s);
}

/* Memory is aligned for any type, whatever was asked for before it. */
TEST(scope, memory_is_aligned_and_nobody_elses)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    uint8_t *blocks[200];

    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        size_t size = test_random_below(t, 300);

        blocks[i] = hf_scope_alloc(s, size);
        CHECK(blocks[i] && (uintptr_t)blocks[i] % _Alignof(max_align_t) == 0);
        memset(blocks[i], (int)i, size);
        if (size)
            blocks[i][size - 1] = blocks[i][0] = (uint8_t)i;
        else
            blocks[i][0] = (uint8_t)i; /* an allocation of nothing has an address of its own */
    }
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        CHECK_INT((uint8_t)i, blocks[i][0]);
    CHECK(!hf_scope_alloc(s, SIZE_MAX));
    CHECK(!hf_scope_alloc(s, SIZE_MAX / 2));
    CHECK(!hf__scope_array(s, SIZE_MAX / 4, 8));
    hf_scope_free(s);
}

/* The last error stays until the next one or a reset, with its text ready for printf. */
TEST(scope, the_last_error)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_INT(HF_OK, hf_scope_error(s)->status);
    CHECK_STR("", hf_str_from(hf_scope_error_text(s)));
    CHECK_STATUS(HF_INVALID, hf__fail(s, HF_INVALID, "no %s of %d", "table", 7));
    CHECK_ERROR(HF_INVALID, "no table of 7", s);
    CHECK_STR("no table of 7", hf_str_from(hf_scope_error_text(s)));
    CHECK(!hf_scope_error(s)->may_retry && !hf_scope_error(s)->may_have_happened);
    CHECK_STATUS(HF_THROTTLED, hf__fail_text(s, HF_THROTTLED, HF_STR("slow down")));
    CHECK(hf_scope_error(s)->may_retry);
    CHECK_STATUS(HF_NOMEM, hf__fail_nomem(s));
    CHECK_STR("out of memory", hf_str_from(hf_scope_error_text(s)));
    hf__scope_error_clear(s);
    CHECK_INT(HF_OK, hf_scope_error(s)->status);
    hf_scope_free(s);
}

TEST(scope, kept_texts_have_negative_numbers)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    int a = hf__scope_keep_text(s, HF_STR("one"));
    int b = hf__scope_keep_text(s, HF_STR("two"));

    CHECK(a < 0 && b < 0 && a != b);
    CHECK_STR("one", hf__scope_kept_text(s, a));
    CHECK_STR("two", hf__scope_kept_text(s, b));
    for (int i = 0; i < 100; i++) /* more than there is room for: some text, never outside */
        CHECK(hf__scope_kept_text(s, hf__scope_keep_text(s, HF_STR("more"))).ptr);
    hf_scope_free(s);
}

TEST(scope, a_free_of_nothing_does_nothing)
{
    hf_scope_free(NULL);
    CHECK_INT(0, t->allocs);
}

/* What is left of the time, at most the cap. */
TEST(scope, the_time_that_is_left)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_INT(500, hf_scope_left_ms(s, 500));
    hf_scope_timeout_ms(s, 300);
    CHECK_INT(300, hf_scope_left_ms(s, 500));
    CHECK_INT(100, hf_scope_left_ms(s, 100));
    test_advance_ms(t, 299);
    CHECK_INT(1, hf_scope_left_ms(s, 500));
    test_advance_ms(t, 100);
    CHECK_INT(0, hf_scope_left_ms(s, 500));
    CHECK(hf_scope_env(s)->elapsed_us == test_env(t)->elapsed_us);
    hf_scope_free(s);
}

/* Whatever their length: short ones and long ones are made in different ways. */
/* Formats of strings alone are copied, and give what printf() gives. */
TEST(scope, formatted_strings)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const char long_one[] = "abcdefghijklmnopqrstuvwxyz";
    const char *volatile none = NULL; /* gcc knows too much otherwise */

    CHECK_STR("", hf_scope_format(s, "%s", ""));
    CHECK_STR("plain", hf_scope_format(s, "plain"));
    CHECK_STR("a-b", hf_scope_format(s, "%s-%s", "a", "b"));
    CHECK_STR("abc|", hf_scope_format(s, "%.*s|", 3, long_one));
    CHECK_STR("ab|", hf_scope_format(s, "%.*s|", 9, "ab\0cd")); /* as printf() does it */
    CHECK_STR("|", hf_scope_format(s, "%.*s|", 0, none));
    CHECK_STR("ab|", hf_scope_format(s, "%.*s|", -1, "ab"));
    CHECK_STR("50% of 7", hf_scope_format(s, "%s%% of %d", "50", 7));
    for (int len = 500; len < 530; len++) { /* at the length up to which there is room nearby */
        struct hf_str text = hf_scope_format(s, "%0*d", len, 0);
        struct hf_str same = hf_scope_format(s, "%s%s", text.ptr, "x");

        CHECK(same.len == (size_t)len + 1 && same.ptr[len] == 'x' && !same.ptr[len + 1]);
        CHECK(memcmp(same.ptr, text.ptr, text.len) == 0);
    }
    hf_scope_free(s);
}

TEST(scope, formatted_texts_of_any_length)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (int len = 0; len < 1100; len = len < 505 || len > 517 ? len + 7 : len + 1) {
        struct hf_str text = hf_scope_format(s, "%0*d", len, 7);
        size_t whole = len ? (size_t)len : 1;

        CHECK_INT(whole, text.len);
        CHECK(text.ptr[whole - 1] == '7' && text.ptr[whole] == '\0');
        for (size_t i = 0; i + 1 < whole; i++)
            CHECK(text.ptr[i] == '0');
        CHECK_STATUS(HF_IO, hf_scope_fail(s, HF_IO, "%0*d", len, 7));
        CHECK_STR(text.ptr, hf_scope_error(s)->message);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

/* An impossible size counts as a failed allocation, as lack of memory does. */
TEST(scope, an_array_that_is_too_large_is_a_failed_allocation)
{
    struct hf_scope *s = hf_scope_new(NULL);
    void *small = hf_scope_alloc(s, 8);

    CHECK(!hf__scope_array(s, SIZE_MAX / 4, 8));
    CHECK_STATUS(HF_NOMEM, hf_scope_built(s));
    CHECK_OK(hf_scope_built(s));
    CHECK(!hf__scope_grow(s, small, 8, SIZE_MAX / 2));
    CHECK(hf__scope_alloc_failed(s));
    hf_scope_free(s);
}

/* A text for which there was no memory is reported once, before it is used. */
TEST(scope, a_request_that_could_not_be_built)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_OK(hf_scope_built(s));
    t->fail_at = -(int64_t)(t->allocs + 1);
    CHECK(!hf_scope_format(s, "%s", "a = :b").ptr);
    t->fail_at = 0;
    CHECK_STATUS(HF_NOMEM, hf_scope_built(s));
    CHECK_INT(HF_NOMEM, hf_scope_error(s)->status);
    CHECK_OK(hf_scope_built(s));
    hf_scope_free(s);
}

/* Others' failures look like ours, and HF_OK forgets them. */
TEST(scope, failing_from_outside)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STATUS(HF_LOST, hf_scope_fail(s, HF_LOST, "lock %s is gone", "a"));
    CHECK_ERROR(HF_LOST, "lock a is gone", s);
    CHECK(!hf_scope_error(s)->may_retry && !hf_scope_error(s)->may_have_happened);
    CHECK_STATUS(HF_LOST, hf_scope_doubt(s));
    CHECK(hf_scope_error(s)->may_have_happened);
    CHECK_OK(hf_scope_fail(s, HF_OK, "%s", ""));
    CHECK_INT(HF_OK, hf_scope_error(s)->status);
    CHECK_INT('\0', hf_scope_error_text(s)[0]);
    CHECK_STATUS(HF_LOST, hf_scope_fail(s, HF_LOST, "lock %s is gone", "b"));
    CHECK_STATUS(HF_LOST, hf_scope_doubt(s));
    CHECK_OK(hf_scope_ok(s));
    CHECK_INT(HF_OK, hf_scope_error(s)->status);
    CHECK(!hf_scope_error(s)->may_have_happened);
    CHECK_INT('\0', hf_scope_error_text(s)[0]);
    hf_scope_free(s);
}

/* A loop that rewinds does not grow. */
TEST(scope, rewinding_from_outside)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scope_mark mark;
    struct hf_str kept = hf_scope_copy(s, HF_STR("kept"));
    size_t allocs;

    mark = hf_scope_mark(s);
    CHECK(hf_scope_alloc(s, 4000));
    allocs = t->allocs;
    for (int i = 0; i < 100; i++) {
        hf_scope_rewind(s, mark);
        CHECK(hf_scope_alloc(s, 4000));
    }
    CHECK_INT(allocs, t->allocs);
    CHECK_STR("kept", kept);
    hf_scope_free(s);
}
