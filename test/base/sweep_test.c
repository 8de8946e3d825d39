/* base/sweep_test.c: ALLOC_SWEEP() of test/lib itself, and a scope under it. */
#include "base/base.h"

#include "test.h"

/* Three allocations: three rounds in which one fails, and one without. */
TEST(sweep, every_allocation_fails_once)
{
    const struct hf_env *env = test_env(t);
    int rounds = 0, failures[3] = {0};

    ALLOC_SWEEP (t, nth) {
        CHECK_INT(++rounds, nth);
        for (int i = 0; i < 3; i++) {
            void *ptr = hf__env_alloc(env, 10);

            failures[i] += !ptr;
            hf__env_free(env, ptr, 10);
        }
        CHECK(t->alloc_failed == (nth <= 3));
    }
    CHECK_INT(4, rounds);
    for (int i = 0; i < 3; i++)
        CHECK_INT(1, failures[i]);
    CHECK_INT(0, t->fail_at);
}

TEST(sweep, stop_lets_the_rest_of_the_round_through)
{
    const struct hf_env *env = test_env(t);
    int rounds = 0;

    ALLOC_SWEEP (t, nth) {
        void *ptr = hf__env_alloc(env, 10);

        ALLOC_SWEEP_STOP(t);
        CHECK(!ptr == (nth == 1));
        hf__env_free(env, ptr, 10);
        ptr = hf__env_alloc(env, 10);
        CHECK(ptr);
        hf__env_free(env, ptr, 10);
        rounds++;
    }
    CHECK_INT(2, rounds);
}

/* A resize that fails leaves the old block, which is still counted. */
TEST(sweep, a_failed_resize_keeps_the_block)
{
    const struct hf_env *env = test_env(t);
    char *ptr = hf__env_alloc(env, 10);

    CHECK(ptr);
    t->fail_at = (int64_t)t->allocs + 1;
    CHECK(!hf__env_resize(env, ptr, 10, 1000));
    t->fail_at = 0;
    CHECK_INT(10, t->live_bytes);
    CHECK_INT(1, t->live_count);
    hf__env_free(env, ptr, 10);
}

/* Whatever fails, a scope gives what was asked for or nothing, and its error has the status. */
TEST(sweep, a_scope_gives_memory_or_none)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        int absent = 0;

        if (s) {
            for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 5; i++)
                    absent += !hf_scope_alloc(s, 5000);
                absent += !hf_scope_copy(s, HF_STR("text")).ptr;
                absent += !hf_scope_format(s, "%0100d", 1).ptr;
                absent += !hf__scope_array(s, 3000, 8);
                CHECK_STATUS(HF_LIMIT, hf__fail(s, HF_LIMIT, "%02000d", 1));
                CHECK_INT(HF_LIMIT, hf_scope_error(s)->status);
                hf_scope_reset(s);
            }
            CHECK(t->alloc_failed || absent == 0);
        }
        CHECK(s || t->alloc_failed);
        hf_scope_free(s);
    }
}
