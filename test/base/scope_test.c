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
    CHECK_STR("no such table, index, stream or resource", hf_scope_error(s)->message);
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
