/* cli/time_arg_test.c: moments as they are typed. */
#include "cli/frame/options/time_arg.h"
#include "test.h"

TEST(when, times)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"2026-11-15T12:00:00Z", 1794744000000000},
                {"2026-11-15T12:00:00", 1794744000000000},
                {"2026-11-15T12:00:00.25Z", 1794744000250000},
                {"2026-11-15T12:00:00.1234567Z", 1794744000123456},
                {"2026-11-15T12:00", 1794744000000000},
                {"2026-11-15T12:00Z", 1794744000000000},
                {"2026-11-15", 1794700800000000},
                {"2026-11-15T13:30:00+01:30", 1794744000000000},
                {"2026-11-15T04:00-08:00", 1794744000000000},
                {"2026-11-15T12:00:00.25+00:00", 1794744000250000},
                {"1970-01-01T00:00:01Z", 1000000}};
    static const char *const bad[] = {"",
                                      "yesterday",
                                      "2026-13-01",
                                      "2026-11-15T12:00:00+2",
                                      "1969-12-31",
                                      "2026-11-15T12:00:00.1x",
                                      "12:00",
                                      "2026-02-31",
                                      "2026-11-15+01:00",
                                      "2026-11-15T12:00:00+24:00",
                                      "2026-11-15T12:00:00+01:60",
                                      "2026-11-15T12:00:00+01:00Z",
                                      "2026-11-15T12:00:00+0100",
                                      "2026-11-15T12:00:00+-1:00",
                                      "1970-01-01T00:30:00+01:00"};
    int64_t us;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK(hf__time_arg_parse_time(good[i].text, &us));
        CHECK_INT(good[i].us, us);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!hf__time_arg_parse_time(bad[i], &us));
}

TEST(when, how_long_ago)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_env *env = hf_scope_env(s);
    int64_t us;

    CHECK(hf__time_arg_parse(s, "15m", &us));
    CHECK(env->wall_us(env->user) - us >= 15 * 60 * 1000000LL);
    CHECK(env->wall_us(env->user) - us < 16 * 60 * 1000000LL);
    CHECK(hf__time_arg_parse(s, "2026-11-15", &us));
    CHECK_INT(1794700800000000, us);
    CHECK(!hf__time_arg_parse(s, "15", &us));
    CHECK(!hf__time_arg_parse(s, "9999999h", &us)); /* before 1970 */
    hf_scope_free(s);
}
