/* coord/backoff_test.c: (n) is an invariant of coord/backoff.c. */
#include "coord/backoff.h"

#include "test.h"

TEST(backoff, it_doubles_up_to_the_most)
{
    CHECK_INT(100, hf__backoff_plain_ms(100, 1000, 0));
    CHECK_INT(100, hf__backoff_plain_ms(100, 1000, 1));
    CHECK_INT(200, hf__backoff_plain_ms(100, 1000, 2));
    CHECK_INT(800, hf__backoff_plain_ms(100, 1000, 4));
    CHECK_INT(1000, hf__backoff_plain_ms(100, 1000, 5));
    CHECK_INT(1000, hf__backoff_plain_ms(100, 1000, 6));
    CHECK_INT(50, hf__backoff_plain_ms(100, 50, 1)); /* the most is the most */
}

/* (2) */
TEST(backoff, no_number_of_failures_overflows)
{
    CHECK_INT(UINT32_MAX, hf__backoff_plain_ms(1, UINT32_MAX, 33));
    CHECK_INT(UINT32_MAX, hf__backoff_plain_ms(UINT32_MAX, UINT32_MAX, UINT64_MAX));
    CHECK_INT(30000, hf__backoff_plain_ms(1000, 30000, UINT64_MAX));
    CHECK_INT(0, hf__backoff_plain_ms(0, 30000, UINT64_MAX));
}

/* (1) */
TEST(backoff, jitter_is_from_half_to_whole)
{
    uint32_t least = UINT32_MAX, most = 0;

    for (int i = 0; i < 1000; i++) {
        uint32_t ms = hf__backoff_ms(test_env(t), 500, 60000, 2);

        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    CHECK(least >= 500 && least < 600);
    CHECK(most <= 1000 && most > 900);
    CHECK_INT(1, hf__backoff_jitter_ms(test_env(t), 1));
    CHECK_INT(0, hf__backoff_jitter_ms(test_env(t), 0));
}

TEST(backoff, a_series_of_waits)
{
    struct backoff backoff = {.first_ms = 10, .max_ms = 35};
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const uint32_t most_ms[] = {10, 20, 35, 35};

    for (size_t i = 0; i < sizeof(most_ms) / sizeof(most_ms[0]); i++) {
        int64_t before_us = t->elapsed_us, slept_us;

        CHECK_INT(most_ms[i], hf__backoff_next_ms(&backoff));
        CHECK_STATUS(HF_OK, hf__backoff_sleep(s, &backoff));
        slept_us = t->elapsed_us - before_us;
        CHECK(slept_us <= most_ms[i] * 1000 && slept_us >= most_ms[i] * 500);
    }
    hf_scope_timeout_ms(s, 5);
    CHECK_STATUS(HF_TIMEOUT, hf__backoff_sleep(s, &backoff));
    hf_scope_free(s);
}
